# SPDX-License-Identifier: GPL-2.0
"""Make the commits of the series on top of a base commit, without a work tree."""
import hashlib
import json
import os
import re
import tempfile

import baseline_rules
import project
from gitrepo import Git
from patch import EPOCH, NEUTRAL
from project import Failure

TRAILER = "Series"          # a trailer of commits in the trees: the topic, the patch file and the key of the commit
REMOVAL = "removal"


class Step:
    """A step that makes one commit: the removal of a topic's stock code, or a patch."""

    def __init__(self, topic, patch=None, backports=None):
        self.topic, self.patch = topic, patch
        self.backports = {path: (backports or {}).get(path, []) for path in (patch.brings if patch else [])}
        self.name = patch.name if patch else f"{topic}/{REMOVAL}"
        self.key = None

    def message(self, trailer):
        text = self.patch.message if self.patch else removal_message(self.topic)
        if not trailer:
            return text
        file = self.patch.path if self.patch else REMOVAL
        return f"{text}\n{TRAILER}: {self.topic} {file} {self.key}\n"

    def written_by(self, committer=None):
        """Return (author, date); the author of a removal is the committer."""
        return self.patch.written_by() if self.patch else committer or (NEUTRAL, EPOCH)

    def set_key(self, before):
        """Compute the digest of all inputs of the commit, including the commits before this one."""
        if self.patch:
            inputs = [self.name, self.written_by(), [(name, executable, project.digest(content))
                      for name, (content, executable) in self.patch.files.items()],
                      [(path, [patch.hunks for patch in patches]) for path, patches in self.backports.items()]]
        else:
            names = [f"scripts/lib/{name}" for name in ("removal.py", "baseline_rules.py", "series_build.py")]
            names += [f"scripts/baseline.d/{self.topic}.{kind}" for kind in ("rules", "commit")]
            inputs = [self.name, [project.digest(project.read_bytes(name) or b"") for name in names]]
        self.key = hashlib.sha256((before + json.dumps(inputs)).encode()).hexdigest()[:16]
        return self.key


def removal_message(topic):
    data = project.read_bytes(f"scripts/baseline.d/{topic}.commit")
    if data is None:
        raise Failure(f"scripts/baseline.d/{topic}.commit is missing: it has the message of the removal's commit")
    return data.decode()


def steps_of(series, backports=None):
    steps = []
    for topic, patches in series.items():
        if topic in baseline_rules.topics():
            steps.append(Step(topic))
        steps += [Step(topic, patch, backports) for patch in patches]
    return steps


class Builder:
    """A maker of the commits of a series in the repository git_dir.  base_dir holds the base's source;
    committer is ((name, address), date), or None if each commit's author is the committer."""

    def __init__(self, source, git_dir, base, base_dir, committer=None, trailer=False):
        self.source, self.git_dir, self.base, self.base_dir = source, git_dir, base, base_dir
        self.committer, self.trailer = committer, trailer

    def build(self, series, backports=None, known=None):
        """Make the commits of all steps; return their names.  known is the last commit of an earlier
        run, whose commits are used again up to the first commit whose inputs have changed."""
        steps, done, key = steps_of(series, backports), [], self.base
        for step in steps:
            key = step.set_key(key)
        for step, (commit, old_key) in zip(steps, self.made_before(known)):
            if step.key != old_key:
                break
            done.append(commit)
        if len(done) == len(steps):
            return done
        with tempfile.TemporaryDirectory(dir=self.git_dir) as scratch:
            git = Git(self.git_dir, index=os.path.join(scratch, "index"))
            git.run("read-tree", done[-1] if done else self.base)
            for step in steps[len(done):]:
                self.carry_out(git, step)
                parent = done[-1] if done else self.base
                done.append(git.commit(git.text("write-tree"), [parent], step.message(self.trailer),
                                       step.written_by(self.committer), self.committer))
        return done

    def made_before(self, known):
        if not known:
            return []
        log = Git(self.git_dir).text("log", "--reverse", f"--format=%H %(trailers:key={TRAILER},valueonly,separator=)",
                                     f"{self.base}..{known}", check=False)
        return [(words[0], words[-1]) for words in map(str.split, log.splitlines())]

    def carry_out(self, git, step):
        if not step.patch:
            self.remove_stock(git, step.topic)
            return
        if step.patch.hunks:
            apply_hunks(git, step.patch)
        lines = []
        for path in step.patch.brings:
            if git.text("ls-files", "--", path):
                raise Failure(f"{step.name} brings {path}, which the {self.source} has: change it by hunks instead")
            content, executable = step.patch.files[self.source.whole(path)]
            lines.append(f"{'100755' if executable else '100644'} {git.blob(content)}\t{path}\n")
        update_index(git, lines)
        for path, patches in step.backports.items():
            for patch in patches:
                apply_hunks(git, patch, path)

    def remove_stock(self, git, topic):
        def read(path):
            found = git.run("cat-file", "blob", f":{path}", check=False)
            if found.returncode:
                raise FileNotFoundError(2, "no such file", path)
            return found.stdout.decode()

        plan = baseline_rules.Plan(baseline_rules.rules_of(topic), read,
                                   lambda path: bool(git.text("ls-files", "--", path)))
        if plan.nothing_there():
            raise Failure(f"the kernel has no stock {topic} code: it was removed before")
        plan.check_gone(self.base_dir)
        if plan.problems:
            more = f" (and {len(plan.problems) - 1} more)" if len(plan.problems) > 1 else ""
            raise Failure(f"the kernel does not fit the baseline's rules: {plan.problems[0]}{more}")
        lines = []
        for path, text in plan.edits.items():
            mode = git.text("ls-files", "-s", "--", path).split()[0]
            lines.append(f"{mode} {git.blob(text.encode())}\t{path}\n")
        for path in plan.removed:
            names = git.text("ls-files", "-z", "--", path).strip("\0").split("\0")
            lines += [f"0 {'0' * 40}\t{name}\n" for name in names]
        update_index(git, lines)


def update_index(git, lines):
    if lines:
        git.run("update-index", "--add", "--index-info", data="".join(lines).encode())


def apply_hunks(git, patch, path=None, reverse=False):
    """Apply a patch's hunks, all or those for one path, to the index; raise Failure with the patch, the
    file and the hunk that does not fit."""
    hunks = patch.hunks_of(path) if path else patch.hunks
    result = git.run("apply", "--cached", "--whitespace=nowarn", *(["--reverse"] if reverse else []), "-",
                     data=hunks.encode(), check=False)
    if result.returncode == 0:
        return
    errors = result.stderr.decode(errors="replace")
    failed = re.search(r"^error: patch failed: (.+):(\d+)$", errors, re.M)
    if not failed:
        raise Failure(f"{patch.name} does not apply: {errors.strip().splitlines()[0].removeprefix('error: ')}")
    raise Failure(f"{patch.name} does not apply to this source: "
                  f"{which_hunk(hunks, failed[1], int(failed[2]))} of {failed[1]}, at line {failed[2]}, does not fit")


def which_hunk(hunks, path, line):
    """Return 'hunk N' for the hunk that starts at a line of a file before the patch."""
    for part in re.split(r"^(?=diff --git )", hunks, flags=re.M):
        if re.search(rf"^\+\+\+ b/{re.escape(path)}$", part, re.M):
            starts = [int(start) for start in re.findall(r"^@@ -(\d+)", part, re.M)]
            if line in starts:
                return f"hunk {starts.index(line) + 1}"
    return "a hunk"
