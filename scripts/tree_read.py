# SPDX-License-Identifier: GPL-2.0
"""Read a kernel tree's commits as what the project keeps: whole files and patch files."""
import os
import re

import baseline_rules
import project
from project import PATCHES, Failure, Patch, comparable
from series_build import REMOVAL, TRAILER


class Commit:
    def __init__(self, git, name):
        self.name = name
        message = git.text("log", "-1", "--format=%B", name).rstrip("\n")
        tag = re.search(rf"^{TRAILER}: *(\S+)$", message, re.M)
        self.file = tag[1] if tag else None
        # neither is for the patch file: the outgoing series is signed by who sends it
        message = re.sub(rf"^({TRAILER}|Signed-off-by): .*(\n|\Z)", "", message, flags=re.M)
        self.subject, _, body = message.partition("\n")
        self.body = body.strip("\n")
        listing = git.text("diff-tree", "-r", "--no-renames", "--no-commit-id", "--name-status", "-z", name)
        fields = listing.strip("\0").split("\0")
        self.changes = dict(zip(fields[1::2], fields[::2]))        # path: A, M, D or T

    @property
    def topic(self):
        return self.file.split("/")[0] if self.file else None


class Tree:
    """The commits of the tree by topic, and what is stock and what is ours in them."""

    def __init__(self, git, state, new_topic):
        self.git = git
        self.stock = set(git.text("ls-tree", "-r", "--name-only", "-z", state["base"]).split("\0"))
        removed = tuple(rule.target for topic in baseline_rules.topics()
                        for rule in baseline_rules.rules_of(topic) if rule.operation == "rm")
        self.stock = {path for path in self.stock if not any(
            path == gone or path.startswith(gone + "/") for gone in removed)}
        self.topics, last = {}, None
        known = {patch.subject: patch.name for topic in project.topics()
                 for patch in map(project.parse_patch, project.series_names(topic))}
        expected = dict(self.removals(state))
        self.made = {commit.file: commit for commit in (Commit(git, name) for _, name in state["steps"])}
        for name in git.text("rev-list", "--reverse", f"{state['base']}..HEAD").split():
            commit = Commit(git, name)
            commit.file = commit.file or known.get(commit.subject)
            topic = commit.topic or new_topic or self.owner(commit) or last
            last = topic
            if commit.file == f"{topic}/{REMOVAL}":
                self.check_removal(commit, expected.pop(topic, None))
                continue
            if not topic or topic not in project.topics():
                raise Failure(f"commit {name[:12]} '{commit.subject}' belongs to no topic: name one with --topic")
            self.topics.setdefault(topic, []).append(commit)
        if expected:
            raise Failure(f"the tree has lost the removal commit of {', '.join(expected)}")

    def owner(self, commit):
        """The topic whose commits so far touch the same files as a new commit, if there is just one."""
        owners = [topic for topic, commits in self.topics.items()
                  if any(commit.changes.keys() & other.changes.keys() for other in commits)]
        return owners[0] if len(owners) == 1 else None

    def removals(self, state):
        for _, name in state["steps"]:
            commit = Commit(self.git, name)
            if commit.file == f"{commit.topic}/{REMOVAL}":
                self.topics[commit.topic] = []
                yield commit.topic, name

    def check_removal(self, commit, made):
        if not made or commit.name != made and self.patch_id(commit.name) != self.patch_id(made):
            raise Failure(f"the commit '{commit.subject}' was changed: the removal is made by scripts/baseline.d")

    def patch_id(self, name):
        diff = self.git.run("diff-tree", "-p", "--no-renames", name).stdout
        return self.git.text("patch-id", "--stable", data=diff).split(" ")[0]

    def content(self, path):
        """(content, executable) in the newest commit, None if the file is not there."""
        entry = self.git.text("ls-tree", "HEAD", "--", path).split()
        if not entry:
            return None
        return self.git.run("cat-file", "blob", entry[2]).stdout, entry[0] == "100755"

    def hunks(self, commit, paths):
        if not paths:
            return ""
        diff = self.git.run("diff", "--no-renames", "--no-color", "--no-ext-diff", "--src-prefix=a/",
                            "--dst-prefix=b/", f"{commit.name}^", commit.name, "--", *paths).stdout.decode()
        return re.sub(r"^index [0-9a-f]+\.\.[0-9a-f]+( \d+)?\n", "", diff, flags=re.M)

    def is_as_made(self, commit, hunks):
        """Whether a commit says and does to stock files what scripts/tree made of its patch file."""
        made = self.made.get(commit.file)
        if not made or (commit.subject, commit.body) != (made.subject, made.body):
            return False
        return commit.name == made.name or comparable(hunks) == comparable(
            self.hunks(made, [path for path in made.changes if path in self.stock]))

    def outputs(self, topic, tell):
        """{project path: (content, executable)} of one topic."""
        files, patches, brought = {}, [], set()
        for commit in self.topics[topic]:
            brings = []
            for path, kind in commit.changes.items():
                # what a later commit changes in a whole file, or that it removes it, shows in HEAD
                if path not in self.stock and kind == "A" and path not in brought:
                    content = self.content(path)
                    if content is not None:
                        brings.append(path)
                        brought.add(path)
                        files[path] = content
            hunks = self.hunks(commit, [path for path in commit.changes if path in self.stock])
            if brings or hunks:
                patches.append(Patch(commit.file, commit.subject, commit.body, sorted(brings), hunks))
                patches[-1].untouched = self.is_as_made(commit, hunks)
            else:
                tell(f"'{commit.subject}' changes whole files only: folded into the patch that brings them")
        number(topic, patches, tell)
        for patch in patches:
            old = read_old(patch)
            if old and sorted(old.brings) == sorted(patch.brings):
                patch.brings = old.brings
            # a patch file may have another context than git gives; what has not changed stays as it is
            same = old and (patch.same_as(old) or patch.untouched and patch.brings == old.brings)
            text = project.read_bytes(os.path.join(PATCHES, patch.old)) if same else patch.format().encode()
            files[os.path.join(PATCHES, patch.name)] = text, False
        if [patch.name for patch in patches] != project.series_names(topic):
            lines = "".join(os.path.basename(patch.name) + "\n" for patch in patches)
            files[os.path.join(PATCHES, topic, "series")] = lines.encode(), False
        return files


def number(topic, patches, tell):
    """Name the patches so that their numbers ascend; what can keep its name does."""
    last = 0
    for patch in patches:
        patch.old = patch.name
        if patch.name:
            digits, _, slug = os.path.basename(patch.name).partition("-")
        else:
            digits, slug = "", re.sub(r"[^A-Za-z0-9]+", "-", patch.subject).strip("-")[:52].strip("-") + ".patch"
        last = int(digits) if digits.isdigit() and int(digits) > last else last + 1
        patch.name = f"{topic}/{last:04d}-{slug}"
        if patch.name != patch.old:
            tell(f"{patch.old or 'new'}: '{patch.subject}' is now {patch.name}")


def read_old(patch):
    if not patch.old or project.read_bytes(os.path.join(PATCHES, patch.old)) is None:
        return None
    return project.parse_patch(patch.old)
