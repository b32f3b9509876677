# SPDX-License-Identifier: GPL-2.0
"""Turn a topic's commits into mails: numbered patches and a cover letter."""
import glob
import os
import re
import subprocess

import patch as patches_of
import project
from gitrepo import Git
from patch import EPOCH
from project import LINUX, Failure
from series_build import apply_hunks


class Cover:
    """A topic's cover letter: the subject, the recipients, the text, and a prefix for subjects, such as RFC PATCH."""

    def __init__(self, topic):
        self.path = cover_path(topic)
        data = project.read_bytes(self.path)
        if data is None:
            raise Failure(f"{self.path} is missing: it has the subject, the recipients and the text of the first mail")
        head, _, self.body = data.decode().partition("\n\n")
        fields = re.findall(r"^(\w+): *(.+)$", head, re.M)
        self.subject = next((value for name, value in fields if name == "Subject"), None)
        self.prefix = next((value + " " for name, value in fields if name == "Prefix"), "") + "PATCH"
        self.to = [value for name, value in fields if name == "To"]
        self.cc = [value for name, value in fields if name == "Cc"]
        if not self.subject or not self.to or not self.body.strip():
            raise Failure(f"{self.path} needs a Subject: line, a To: line, an empty line and a text")


def cover_path(topic):
    """Return the path of a topic's cover letter, which can be that of another base."""
    paths = [os.path.join(source.patches, topic, "cover-letter") for source in (LINUX, *LINUX.other_bases())]
    return next((path for path in paths if project.read_bytes(path) is not None), paths[0])


class Version:
    """A version of a series: its number, its base, and the version before if there was one."""

    def __init__(self, number, kernel, commit=None, previous=None):
        self.number, self.kernel = number, kernel
        self.commit = commit        # the base's commit in the public repository, or None if it is not known
        self.previous = previous    # the last commit of the version before, on the same base


# A paragraph of a patch's notes that is not for the recipients of its mail
FOR_SENDER = re.compile(r"^For the sender: (.*?)(?:\n\n+|\Z)", re.M | re.S)


def notes_for_sender(topic):
    """Return [(name of a patch, what it has to tell the sender)] for the patches of a topic."""
    found = []
    for path in LINUX.series(topic):
        found += [(os.path.basename(path), text) for text in FOR_SENDER.findall(patches_of.read(path).notes)]
    return found


def write_mails(git_dir, folder, topic, before, steps, commits, version, sender):
    """Write a mail for each commit into an empty directory, and 0000-cover-letter.patch if there are several.

    Each mail is signed off by the sender; another author is named in the text of the mail.
    """
    cover = Cover(topic) if len(commits) > 1 or project.read_bytes(cover_path(topic)) else None
    git = Git(git_dir)
    # the mails must not depend on the user's configuration: diff.noprefix, format.suffix and many more change them
    env = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
           "GIT_COMMITTER_NAME": sender[0], "GIT_COMMITTER_EMAIL": sender[1]}
    git.run("update-ref", f"refs/heads/{topic}", commits[-1])
    git.run("format-patch", "--quiet", "--signoff", f"--from={sender[0]} <{sender[1]}>",
            *(["--cover-letter", "--numbered"] if cover else ["--no-cover-letter"]), "--thread=shallow",
            "--no-renames", "--no-color", "--no-ext-diff", "--cover-from-description=none",
            f"--subject-prefix={cover.prefix if cover else 'PATCH'}",
            *([f"--reroll-count={version.number}"] if version.number > 1 else []),
            *([f"--range-diff={before}..{version.previous}", "--creation-factor=95"] if version.previous else []),
            *(f"--to={address}" for address in (cover.to if cover else ())),
            *(f"--cc={address}" for address in (cover.cc if cover else ())), "-o", folder, f"{before}..{topic}",
            env=env)
    names = sorted(glob.glob(os.path.join(glob.escape(folder), "*.patch")))
    base = f"\n\nbase-commit: {version.commit}\n" if version.commit else "\n"
    for name in names:
        edit(name, unfolded)
    for name, step in zip(names[1:] if cover else names, steps):
        notes = FOR_SENDER.sub("", step.patch.notes).strip("\n") if step.patch else ""
        if notes:
            edit(name, lambda text, notes=notes: text.replace("\n---\n", f"\n---\n{notes}\n\n", 1))
    if cover:
        body = f"{cover.body.strip()}\n\nThe series is based on Linux {version.kernel}."
        edit(names[0], lambda text: text.replace("*** SUBJECT HERE ***", cover.subject)
             .replace("*** BLURB HERE ***", body))
    edit(names[0], lambda text: re.sub(r"\n(?=-- \n[^\n]*\n*\Z)", lambda _: base, text))


def unfolded(text):
    """Return a mail with each header in one line: b4 0.12 fails on folded headers with newer Python versions."""
    head, end, body = text.partition("\n\n")
    return re.sub(r"\n[ \t]+", " ", head) + end + body


def edit(path, change):
    with open(path, encoding="utf-8") as mail:
        text = mail.read()
    with open(path, "w", encoding="utf-8") as mail:
        mail.write(change(text))


def sent_folder(topic):
    """Return the directory with the versions that have been sent, which are files vN.mbox."""
    return os.path.join(LINUX.patches, topic, "sent")


def last_sent(topic):
    """Return (number, path) of the newest version that was sent, or (0, None)."""
    found = [(int(re.search(r"v(\d+)\.mbox$", path)[1]), path) for path in
             glob.glob(os.path.join(glob.escape(os.path.join(project.TOP, sent_folder(topic))), "v*.mbox"))]
    return max(found, default=(0, None))


def commits_of(mbox, git_dir, base, sender, scratch):
    """Commit the patches in a mailbox on top of a base; return the last commit."""
    git, commit = Git(git_dir, index=os.path.join(scratch, "index")), base
    git.run("read-tree", base)
    mails = os.path.join(scratch, "mails")
    os.mkdir(mails)
    subprocess.run(["git", "mailsplit", f"-o{mails}", mbox], check=True, stdout=subprocess.DEVNULL)
    for name in sorted(glob.glob(os.path.join(glob.escape(mails), "*"))):
        with open(name, "rb") as mail:
            said = subprocess.run(["git", "mailinfo", name + ".text", name + ".diff"], stdin=mail, check=True,
                                  capture_output=True).stdout.decode()
        author = tuple(re.search(rf"^{field}: (.*)$", said, re.M)[1] for field in ("Author", "Email"))
        subject = re.search(r"^Subject: (.*)$", said, re.M)[1]
        texts = []
        for kind in ("text", "diff"):
            with open(f"{name}.{kind}", encoding="utf-8") as part:
                texts.append(part.read())
        start = texts[1].find("diff --git ")
        if start < 0:
            continue        # skip the cover letter
        body = texts[0].replace(f"\nSigned-off-by: {sender[0]} <{sender[1]}>\n", "\n").strip("\n")
        hunks = patches_of.without_signature(texts[1][start:])
        apply_hunks(git, patches_of.Patch(f"//{os.path.basename(mbox)}", None, None, subject, body, [], hunks))
        commit = git.commit(git.text("write-tree"), [commit], f"{subject}\n\n{body}\n", (author, EPOCH))
    return commit
