# SPDX-License-Identifier: GPL-2.0
"""Turn a topic's commits into mails: numbered patches and a cover letter."""
import os
import re

import project
from gitrepo import Git
from project import LINUX, Failure


class Cover:
    """A topic's cover letter: a subject, the recipients and the text."""

    def __init__(self, topic):
        path = os.path.join(LINUX.patches, topic, "cover-letter")
        data = project.read_bytes(path)
        if data is None:
            raise Failure(f"{path} is missing: it has the subject, the recipients and the text of the first mail")
        head, _, self.body = data.decode().partition("\n\n")
        fields = re.findall(r"^(\w+): *(.+)$", head, re.M)
        self.subject = next((value for name, value in fields if name == "Subject"), None)
        self.to = [value for name, value in fields if name == "To"]
        self.cc = [value for name, value in fields if name == "Cc"]
        if not self.subject or not self.to or not self.body.strip():
            raise Failure(f"{path} needs a Subject: line, a To: line, an empty line and a text")


def write_mails(git_dir, folder, topic, before, commits, version, sender):
    """Write 0000-cover-letter.patch and a mail for each commit into an empty folder.

    Each mail is signed off by the sender; another author is named in the text of the mail.
    """
    cover = Cover(topic)
    git = Git(git_dir)
    git.run("update-ref", f"refs/heads/{topic}", commits[-1])
    git.run("format-patch", "--quiet", "--signoff", f"--from={sender[0]} <{sender[1]}>", "--cover-letter",
            "--numbered", "--thread=shallow", "--no-renames", "--no-color", "--no-ext-diff",
            "--cover-from-description=none",
            *(f"--to={address}" for address in cover.to), *(f"--cc={address}" for address in cover.cc),
            "-o", folder, f"{before}..{topic}")
    first = os.path.join(folder, "0000-cover-letter.patch")
    with open(first, encoding="utf-8") as letter:
        text = letter.read()
    body = f"{cover.body.strip()}\n\nThe series is based on Linux {version}."
    text = text.replace("*** SUBJECT HERE ***", cover.subject).replace("*** BLURB HERE ***", body)
    with open(first, "w", encoding="utf-8") as letter:
        letter.write(text)
