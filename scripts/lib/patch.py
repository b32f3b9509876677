# SPDX-License-Identifier: GPL-2.0
"""Patch files: mails for `git am`, with `Brings:` lines that name the whole files of the patch."""
import email.header
import email.utils
import os
import re
import subprocess

import project
from project import TOP, Failure

NEUTRAL = ("linux-ebb-brs", "linux-ebb-brs@localhost")
EPOCH = "Thu, 01 Jan 2026 00:00:00 +0000"   # a fixed date for commits, so that the same input gives the same commit


class Patch:
    """One patch file: its author, date and message, the whole files that it brings, and its hunks."""

    def __init__(self, path, author, date, subject, body, brings, hunks):
        self.path = path                            # the path of the patch file in the project
        self.author, self.date = author, date       # (name, address), and a date as in a mail; or None
        self.subject, self.body = subject, body
        self.brings, self.hunks = brings, hunks
        self.notes = ""         # the text below the --- line of the mail
        self.files = {}         # by read_files(): {path: (content, executable)}, with the patch file itself

    @property
    def name(self):
        """The patch's name in messages: its path below patches/BASE/."""
        return self.path.split("/", 2)[2]

    def read_files(self, source):
        """Read the patch file and its whole files once, so that the commit and its recorded inputs agree."""
        for path in (self.path, *map(source.whole, self.brings)):
            content = project.read_bytes(path)
            if content is None:
                raise Failure(f"{self.name} brings {path}, which does not exist")
            self.files[path] = content, os.access(os.path.join(TOP, path), os.X_OK)
        if not parse(self.path, self.files[self.path][0]).same_as(self, exactly=True):
            raise Failure(f"{self.name} changed while it was read: run it again")

    @property
    def message(self):
        return f"{self.subject}\n\n{self.body}\n" if self.body else f"{self.subject}\n"

    def written_by(self):
        """Return (author, date) from the patch file, or else from the project's first commit of the file."""
        if self.author and self.date:
            return self.author, self.date
        said = subprocess.run(["git", "-C", TOP, "log", "--follow", "--format=%an%x00%ae%x00%aD", "--", self.path],
                              capture_output=True, check=False).stdout.decode().splitlines()
        name, address, date = said[-1].split("\0") if said else (*NEUTRAL, EPOCH)
        return (name, address), date

    def changed_paths(self):
        """Return the paths of the files that the hunks change."""
        return sorted(set(re.findall(r"^(?:---|\+\+\+) [ab]/(.+?)\t?$", self.hunks, re.M)))

    def hunks_of(self, path):
        """Return the hunks that change one file."""
        return "".join(part for part in re.split(r"^(?=diff --git )", self.hunks, flags=re.M)
                       if re.search(rf"^(?:---|\+\+\+) [ab]/{re.escape(path)}\t?$", part, re.M))

    def format(self):
        (name, address), date = self.written_by()
        if re.search(r'[^\w\s.\'-]', name):
            name = '"' + re.sub(r'(["\\])', r"\\\1", name) + '"'
        parts = [f"From: {name} <{address}>\nDate: {date}\nSubject: {self.subject}\n\n"]
        if self.body:
            parts.append(self.body + "\n")
        parts.append("---\n")
        parts += [f"Brings: {path}\n" for path in self.brings]
        parts += [self.notes + "\n"] if self.notes else []
        if self.hunks:
            parts.append("\n" + self.hunks)
        return "".join(parts)

    def same_as(self, other, exactly=False):
        """Return whether two patches are the same, ignoring line numbers and blob names unless exactly."""
        compare = (lambda hunks: hunks) if exactly else comparable
        return ((self.author, self.date, self.subject, self.body, sorted(self.brings), compare(self.hunks)) ==
                (other.author, other.date, other.subject, other.body, sorted(other.brings), compare(other.hunks)))


def comparable(hunks):
    hunks = re.sub(r"^index [0-9a-f]+\.\.[0-9a-f]+.*\n", "", hunks, flags=re.M)
    return re.sub(r"^@@ -\S+ \+\S+ @@.*", "@@", hunks, flags=re.M)


def without_signature(hunks):
    """Remove the line with git's version, which git format-patch writes at the end of a mail."""
    return re.sub(r"^-- \n.*\n*\Z", "", hunks, flags=re.M)


def read(path):
    """Read the patch file at a path of the project; return a Patch."""
    data = project.read_bytes(path)
    if data is None:
        raise Failure(f"{os.path.dirname(path)}/series lists {os.path.basename(path)}, which does not exist")
    return parse(path, data)


def parse(path, data):
    head, separator, rest = data.decode().partition("\n---\n")
    fields, _, body = head.partition("\n\n")
    fields = dict(re.findall(r"^([A-Z][\w-]*): (.*(?:\n[ \t].*)*)", fields, re.M))
    if "Subject" not in fields or not separator:
        raise Failure(f"{path} is not a patch of ours: it needs a Subject: line first and a --- line")
    subject = re.sub(r"^\[PATCH[^]]*\] *", "", re.sub(r"\n[ \t]", " ", fields["Subject"])).strip()
    start = re.search(r"^diff --git ", rest, re.M)
    notes, hunks = (rest[:start.start()], rest[start.start():]) if start else (rest, "")
    hunks = without_signature(hunks)
    brings = re.findall(r"^Brings: (.+?)\s*$", notes, re.M)
    if not brings and not hunks:
        raise Failure(f"{path} is empty: it has neither a Brings: line nor a hunk")
    author = None
    if "From" in fields:
        author = email.utils.parseaddr(str(email.header.make_header(email.header.decode_header(fields["From"]))))
    result = Patch(path, author, fields.get("Date"), subject, body.strip("\n"), brings, hunks)
    result.notes = re.sub(r"^Brings: .*(\n|\Z)", "", notes, flags=re.M).strip("\n")
    return result


def load(source, chosen=None, unfinished=False):
    """Return {topic: [Patch]} in order, after checking the Brings: lines against the project's files.

    With unfinished, a whole file that no patch brings causes a warning, not a Failure.
    """
    everything = {topic: [read(path) for path in source.series(topic)] for topic in source.topics()}
    for topic in chosen or ():
        if topic not in [*everything, *source.fixes()]:
            raise Failure(f"unknown topic {topic}: choose from {', '.join([*everything, *source.fixes()])}")
    if chosen and set(chosen) & set(source.fixes()):
        if len(chosen) > 1:
            raise Failure("a topic with fixes is for the kernel as it is shipped: name no other topic")
        everything = {chosen[0]: [read(path) for path in source.series(chosen[0])], **everything}
    wanted = {topic: patches for topic, patches in everything.items() if not chosen or topic in chosen}
    check_brings(source, [patch for patches in wanted.values() for patch in patches])
    for patches in wanted.values():
        for patch in patches:
            patch.read_files(source)
    brought = {path for patches in everything.values() for patch in patches for path in patch.brings}
    brought |= brought_elsewhere(source, everything)
    for path in source.whole_files():
        if path not in brought:
            message = f"no patch brings {path}: add a 'Brings: {path}' line to the patch that it belongs to"
            if not unfinished:
                raise Failure(message)
            project.warn(message)
    return wanted


def brought_elsewhere(source, topics):
    """Return the whole files that only patches of other bases name in Brings: lines."""
    return {path for other in source.other_bases() for topic in other.topics() if topic not in topics
            for name in other.series(topic) for path in read(name).brings}


def check_brings(source, patches):
    brought = {}
    for patch in patches:
        for path in patch.brings:
            if path in brought:
                raise Failure(f"{path} is brought twice: by {brought[path]} and by {patch.name}")
            if not os.path.isfile(os.path.join(TOP, source.whole(path))):
                raise Failure(f"{patch.name} brings {source.whole(path)}, which does not exist")
            if source.dirs and path.split("/")[0] not in source.dirs:
                raise Failure(f"{patch.name} brings {path}, which is not in a folder of the kernel")
            brought[path] = patch.name
    for patch in patches:
        for path in patch.changed_paths():
            if path in brought:
                raise Failure(f"{patch.name} has hunks for {path}, a whole file that {brought[path]} brings: "
                              "keep it in its final form and leave the hunks out")


def load_backports(source, series):
    """Return {path: [Patch]}: the patches that adapt whole files of the series to the base."""
    brought = {path for patches in series.values() for patch in patches for path in patch.brings}
    backports = {}
    for patch in map(read, source.backports()):
        for path in patch.changed_paths():
            if not os.path.exists(os.path.join(TOP, source.whole(path))):
                raise Failure(f"{patch.name} changes {path}, which is no whole file of the project")
            if path in brought:
                backports.setdefault(path, []).append(patch)
    return backports
