# SPDX-License-Identifier: GPL-2.0
"""The project's side of the kernel series: patch files, their order, and whole files."""
import hashlib
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
PATCHES = os.path.join("patches", "linux-6.12")
BUILD = os.path.join(TOP, "build")
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "linux-ebb-brs")
# folders at the top of a kernel source in which the project may have whole files
KERNEL_DIRS = ("Documentation", "arch", "block", "certs", "crypto", "drivers", "fs", "include", "init",
               "io_uring", "ipc", "kernel", "lib", "mm", "net", "rust", "samples", "security", "sound",
               "tools", "usr", "virt")


class Failure(Exception):
    """What went wrong, as one sentence for the user."""


def digest(data):
    return hashlib.sha256(data).hexdigest()


def read_bytes(path):
    """A project file's content, None if there is none."""
    try:
        with open(os.path.join(TOP, path), "rb") as f:
            return f.read()
    except (FileNotFoundError, NotADirectoryError):
        return None


def write_bytes(path, data):
    full = os.path.join(TOP, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full + ".new", "wb") as f:
        f.write(data)
    if os.path.exists(full):
        os.chmod(full + ".new", os.stat(full).st_mode & 0o777)
    os.replace(full + ".new", full)


class Patch:
    """One patch file: what it says, the whole files that it brings, and its hunks."""

    def __init__(self, name, subject, body, brings, hunks):
        self.name, self.subject, self.body = name, subject, body
        self.brings, self.hunks = brings, hunks
        self.files = {}         # once read: {project path: (content, executable)}, the patch file too

    def read_files(self):
        """Read everything just once, so that all that is made of it is made of the same."""
        for path in (os.path.join(PATCHES, self.name), *self.brings):
            content = read_bytes(path)
            if content is None:
                raise Failure(f"{self.name} brings {path}, which does not exist")
            self.files[path] = content, os.access(os.path.join(TOP, path), os.X_OK)
        again = parse_text(self.name, self.files[os.path.join(PATCHES, self.name)][0])
        if again.brings != self.brings or again.message != self.message or again.hunks != self.hunks:
            raise Failure(f"{self.name} changed while it was read: run it again")

    @property
    def message(self):
        return f"{self.subject}\n\n{self.body}\n" if self.body else f"{self.subject}\n"

    def changed_paths(self):
        """What the hunks are about."""
        return sorted(set(re.findall(r"^(?:---|\+\+\+) [ab]/(.+?)\t?$", self.hunks, re.M)))

    def format(self):
        parts = [f"Subject: {self.subject}\n\n"]
        if self.body:
            parts.append(self.body + "\n")
        parts.append("---\n")
        parts += [f"Brings: {path}\n" for path in self.brings]
        if self.hunks:
            parts.append("\n" + self.hunks)
        return "".join(parts)

    def same_as(self, other):
        """Whether both say the same; line numbers and blob names do not count."""
        return ((self.subject, self.body, sorted(self.brings), comparable(self.hunks)) ==
                (other.subject, other.body, sorted(other.brings), comparable(other.hunks)))


def comparable(hunks):
    hunks = re.sub(r"^index [0-9a-f]+\.\.[0-9a-f]+.*\n", "", hunks, flags=re.M)
    return re.sub(r"^@@ -\S+ \+\S+ @@.*", "@@", hunks, flags=re.M)


def parse_patch(name):
    """Read PATCHES/name (TOPIC/FILE)."""
    path = os.path.join(PATCHES, name)
    data = read_bytes(path)
    if data is None:
        raise Failure(f"{os.path.dirname(path)}/series lists {os.path.basename(name)}, which does not exist")
    return parse_text(name, data)


def parse_text(name, data):
    path, text = os.path.join(PATCHES, name), data.decode()
    head, separator, rest = text.partition("\n---\n")
    first, _, body = head.partition("\n")
    if not first.startswith("Subject: ") or not separator:
        raise Failure(f"{path} is not a patch of ours: it needs a Subject: line first and a --- line")
    start = re.search(r"^diff --git ", rest, re.M)
    notes, hunks = (rest[:start.start()], rest[start.start():]) if start else (rest, "")
    brings = re.findall(r"^Brings: (.+?)\s*$", notes, re.M)
    if not brings and not hunks:
        raise Failure(f"{path} is empty: it has neither a Brings: line nor a hunk")
    return Patch(name, first[len("Subject: "):].strip(), body.strip("\n"), brings, hunks)


def topics():
    data = read_bytes(os.path.join(PATCHES, "topics"))
    if data is None:
        raise Failure(f"{PATCHES}/topics is missing")
    return [line.strip() for line in data.decode().splitlines() if line.strip() and not line.startswith("#")]


def series_names(topic):
    data = read_bytes(os.path.join(PATCHES, topic, "series"))
    if data is None:
        raise Failure(f"{PATCHES}/{topic}/series is missing")
    lines = (line.split("#")[0].strip() for line in data.decode().splitlines())
    return [f"{topic}/{line}" for line in lines if line]


def load(chosen=None, unfinished=False):
    """{topic: [Patch]} in order, with every Brings: line checked against the project's files.

    unfinished: whole files that no patch brings are only warned about.
    """
    everything = {topic: [parse_patch(name) for name in series_names(topic)] for topic in topics()}
    for topic in chosen or ():
        if topic not in everything:
            raise Failure(f"unknown topic {topic}: choose from {', '.join(everything)}")
    wanted = {topic: patches for topic, patches in everything.items() if not chosen or topic in chosen}
    check_brings([patch for patches in wanted.values() for patch in patches])
    for patches in wanted.values():
        for patch in patches:
            patch.read_files()
    check_brought({path for patches in everything.values() for patch in patches for path in patch.brings}, unfinished)
    return wanted


def check_brings(patches):
    brought = {}
    for patch in patches:
        for path in patch.brings:
            if path in brought:
                raise Failure(f"{path} is brought twice: by {brought[path]} and by {patch.name}")
            if not os.path.isfile(os.path.join(TOP, path)):
                raise Failure(f"{patch.name} brings {path}, which does not exist")
            if path.split("/")[0] not in KERNEL_DIRS:
                raise Failure(f"{patch.name} brings {path}, which is not in a folder of the kernel")
            brought[path] = patch.name
    for patch in patches:
        for path in patch.changed_paths():
            if path in brought:
                raise Failure(f"{patch.name} has hunks for {path}, a whole file that {brought[path]} brings: "
                              "keep it in its final form and leave the hunks out")


def check_brought(brought, unfinished):
    for path in whole_files():
        if path not in brought:
            message = f"no patch brings {path}: add a 'Brings: {path}' line to the patch that it belongs to"
            if not unfinished:
                raise Failure(message)
            print(f"warning: {message}", file=sys.stderr)


def whole_files():
    """The project's files at kernel paths: what git knows of, else what is there."""
    dirs = [d for d in KERNEL_DIRS if os.path.isdir(os.path.join(TOP, d))]
    if not dirs:
        return []
    listed = subprocess.run(["git", "-C", TOP, "ls-files", "-z", "--", *dirs],
                            capture_output=True, check=False) if os.path.exists(os.path.join(TOP, ".git")) else None
    if listed and listed.returncode == 0:
        names = listed.stdout.decode().split("\0")
        return [n for n in names if n and os.path.exists(os.path.join(TOP, n))]
    return sorted(os.path.relpath(os.path.join(folder, name), TOP)
                  for d in dirs for folder, _, names in os.walk(os.path.join(TOP, d)) for name in names)
