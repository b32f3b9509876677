# SPDX-License-Identifier: GPL-2.0
"""Convert the commits of a tree to files of the project: whole files and patch files."""
import os
import re
import tempfile

import baseline_rules
import patch as patches_of
import project
from gitrepo import Git
from patch import Patch, comparable
from project import Failure
from series_build import REMOVAL, TRAILER, apply_hunks
from tree_state import BASE, MADE


class Commit:
    def __init__(self, git, name):
        self.name = name
        *author, self.date, message = git.text("log", "-1", "--format=%an%x00%ae%x00%aD%x00%B", name).split("\0")
        self.author = tuple(author)
        tag = re.search(rf"^{TRAILER}: *(\S+) (\S+) \S+$", message, re.M)
        self.topic = tag[1] if tag else None
        self.path = tag[2] if tag else None      # the path of the commit's patch file, or REMOVAL
        message = re.sub(rf"^{TRAILER}: .*(\n|\Z)", "", message, flags=re.M).rstrip("\n")
        self.subject, _, body = message.partition("\n")
        self.body = body.strip("\n")
        listing = git.text("diff-tree", "-r", "--no-renames", "--no-commit-id", "--name-status", "-z", name)
        fields = listing.strip("\0").split("\0")
        self.changes = dict(zip(fields[1::2], fields[::2]))        # {path: git's status A, M, D or T}

    def says_the_same(self, other):
        return all(getattr(self, name) == getattr(other, name) for name in ("author", "date", "subject", "body"))


class Tree:
    """The commits of a tree that scripts/tree made, by topic."""

    def __init__(self, source, git, new_topic):
        self.source, self.git = source, git
        self.stock = set(git.text("ls-tree", "-r", "--name-only", "-z", BASE).split("\0"))
        removed = tuple(rule.target for topic in source.topics() if topic in baseline_rules.topics()
                        for rule in baseline_rules.rules_of(topic) if rule.operation == "rm")
        self.stock = {path for path in self.stock if not any(
            path == gone or path.startswith(gone + "/") for gone in removed)}
        known = {patch.subject: (topic, patch.path) for topic in source.topics()
                 for patch in map(patches_of.read, source.series(topic))}
        made = [Commit(git, name) for name in git.text("rev-list", "--reverse", f"{BASE}..{MADE}").split()]
        self.made = {commit.path: commit for commit in made if commit.path != REMOVAL}
        expected = {commit.topic: commit.name for commit in made if commit.path == REMOVAL}
        self.topics = {commit.topic: [] for commit in made}
        last = None
        for name in git.text("rev-list", "--reverse", f"{BASE}..HEAD").split():
            commit = Commit(git, name)
            if not commit.path and commit.subject in known:
                commit.topic, commit.path = known[commit.subject]
            topic = commit.topic
            if topic is None:
                topic = new_topic or self.owner(commit) or last
            last = topic
            if commit.path == REMOVAL:
                self.check_removal(commit, expected.pop(topic, None))
                continue
            if topic not in source.topics():
                raise Failure(f"commit {name[:12]} '{commit.subject}' belongs to no topic: name one with --topic")
            self.topics.setdefault(topic, []).append(commit)
        if expected:
            raise Failure(f"the tree has lost the removal commit of {', '.join(expected)}")

    def owner(self, commit):
        """Return the topic whose earlier commits change the same files as a new commit, or None if
        there is no such topic or more than one."""
        owners = [topic for topic, commits in self.topics.items()
                  if any(commit.changes.keys() & other.changes.keys() for other in commits)]
        return owners[0] if len(owners) == 1 else None

    def check_removal(self, commit, made):
        if not made or commit.name != made and self.patch_id(commit.name) != self.patch_id(made):
            raise Failure(f"the commit '{commit.subject}' was changed: change the rules in scripts/baseline.d instead")

    def patch_id(self, name):
        diff = self.git.run("diff-tree", "-p", "--no-renames", name).stdout
        return self.git.text("patch-id", "--stable", data=diff).split(" ")[0]

    def content(self, path, backports):
        """Return (content, executable) of a whole file in the newest commit, without the changes of
        the backports, which adapt the file to the base; None if the commit does not have the file."""
        entry = self.git.text("ls-tree", "HEAD", "--", path).split()
        if not entry:
            return None
        if backports:
            with tempfile.TemporaryDirectory(dir=self.git.git_dir) as scratch:
                index = Git(self.git.git_dir, index=os.path.join(scratch, "index"))
                index.run("update-index", "--add", "--cacheinfo", f"{entry[0]},{entry[2]},{path}")
                for patch in reversed(backports):
                    apply_hunks(index, patch, path, reverse=True)
                entry[2] = index.text("ls-files", "-s", "--", path).split()[1]
        return self.git.run("cat-file", "blob", entry[2]).stdout, entry[0] == "100755"

    def hunks(self, commit, paths):
        if not paths:
            return ""
        # diff-tree, unlike diff, takes almost nothing from the user's configuration
        diff = self.git.run("diff-tree", "-p", "--no-renames", "--indent-heuristic", f"{commit.name}^", commit.name,
                            "--", *paths).stdout.decode()
        return re.sub(r"^index [0-9a-f]+\.\.[0-9a-f]+( \d+)?\n", "", diff, flags=re.M)

    def is_as_made(self, commit, hunks):
        """Return whether a commit has the message and hunks that scripts/tree gave it from its patch file."""
        made = self.made.get(commit.path)
        if not made or not commit.says_the_same(made):
            return False
        return commit.name == made.name or comparable(hunks) == comparable(
            self.hunks(made, [path for path in made.changes if path in self.stock]))

    def outputs(self, topic, tell):
        """Return {path in the project: (content, executable)} of the files of one topic."""
        files, patches, brought = {}, [], set()
        backports = {}
        for patch in map(patches_of.read, self.source.backports()):
            for path in patch.changed_paths():
                backports.setdefault(path, []).append(patch)
        for commit in self.topics[topic]:
            brings = []
            for path, kind in commit.changes.items():
                # take the content from HEAD, as later commits can have changed or removed the file
                if path not in self.stock and kind == "A" and path not in brought:
                    content = self.content(path, backports.get(path))
                    if content is not None:
                        brings.append(path)
                        brought.add(path)
                        files[self.source.whole(path)] = content
            hunks = self.hunks(commit, [path for path in commit.changes if path in self.stock])
            if brings or hunks:
                patches.append(Patch(commit.path, commit.author, commit.date, commit.subject, commit.body,
                                     sorted(brings), hunks))
                patches[-1].untouched = self.is_as_made(commit, hunks)
            else:
                tell(f"'{commit.subject}' changes whole files only: folded into the patch that brings them")
        self.number(topic, patches, tell)
        for patch in patches:
            old = patches_of.read(patch.old) if patch.old and project.read_bytes(patch.old) is not None else None
            patch.notes = old.notes if old else ""
            if old and sorted(old.brings) == sorted(patch.brings):
                patch.brings = old.brings
            # keep the text of a patch that has not changed: git can write its hunks with other context lines
            same = old and old.author and old.date and (
                patch.same_as(old) or patch.untouched and patch.brings == old.brings)
            text = project.read_bytes(patch.old) if same else patch.format().encode()
            files[patch.path] = text, False
        folder = os.path.dirname(self.source.series_file(topic))
        if [patch.path for patch in patches] != self.source.series(topic):
            lines = "".join((os.path.basename(patch.path) if os.path.dirname(patch.path) == folder else patch.path)
                            + "\n" for patch in patches)
            files[self.source.series_file(topic)] = lines.encode(), False
        return files

    def number(self, topic, patches, tell):
        """Give names to new patches, and new numbers to patches whose numbers do not ascend."""
        folder, last = os.path.dirname(self.source.series_file(topic)), 0
        for patch in patches:
            patch.old = patch.path
            if patch.path and os.path.dirname(patch.path) != folder:
                continue        # the patch is kept in the directory of another base
            if patch.path:
                digits, _, slug = os.path.basename(patch.path).partition("-")
            else:
                digits, slug = "", re.sub(r"[^A-Za-z0-9]+", "-", patch.subject).strip("-")[:52].strip("-") + ".patch"
            last = int(digits) if digits.isdigit() and int(digits) > last else last + 1
            patch.path = os.path.join(folder, f"{last:04d}-{slug}")
            if patch.path != patch.old:
                tell(f"{patch.old or 'new'}: '{patch.subject}' is now {patch.path}")
