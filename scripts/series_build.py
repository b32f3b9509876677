# SPDX-License-Identifier: GPL-2.0
"""Make the commits of the series on top of a base commit, in an index of their own."""
import json
import os
import re
import tempfile

import baseline_rules
import project
from kernel_git import EPOCH, Git
from project import Failure

TRAILER = "Series"          # in the tree only: which file a commit belongs to
REMOVAL = "removal"


class Step:
    """One commit to be: the removal of a topic, or a patch of its series."""

    def __init__(self, topic, patch=None):
        self.topic, self.patch = topic, patch
        self.name = patch.name if patch else f"{topic}/{REMOVAL}"

    def message(self, trailer):
        text = self.patch.message if self.patch else removal_message(self.topic)
        return f"{text}\n{TRAILER}: {self.name}\n" if trailer else text

    def inputs(self):
        """Everything that decides what the commit holds."""
        if self.patch:
            files = self.patch.files
            return json.dumps([self.name, [(name, executable, project.digest(content))
                                           for name, (content, executable) in files.items()]])
        names = [f"scripts/{name}" for name in ("removal.py", "baseline_rules.py", "series_build.py")]
        names += [f"scripts/baseline.d/{self.topic}.{kind}" for kind in ("rules", "commit")]
        return json.dumps([self.name, [project.digest(project.read_bytes(name) or b"") for name in names]])


def removal_message(topic):
    data = project.read_bytes(f"scripts/baseline.d/{topic}.commit")
    if data is None:
        raise Failure(f"scripts/baseline.d/{topic}.commit is missing: it says why the stock code goes")
    return data.decode()


def steps_of(series):
    return [step for topic, patches in series.items()
            for step in [Step(topic), *(Step(topic, patch) for patch in patches)]]


class Builder:
    """git: the repository that gets the objects; base_dir: a folder with the base's source."""

    def __init__(self, git_dir, base, base_dir, who, trailer, when=EPOCH):
        self.git_dir, self.base, self.base_dir = git_dir, base, base_dir
        self.who, self.trailer, self.when = who, trailer, when

    def build(self, series, known=()):
        """[(key, commit)] of all steps.  known: what an earlier run returned; its start is reused."""
        steps, done, key = steps_of(series), [], project.digest(f"{self.base} {self.who}".encode())
        keys = []
        for step in steps:
            key = project.digest((key + step.inputs()).encode())
            keys.append(key)
        repository = Git(self.git_dir)
        for key, (old_key, commit) in zip(keys, known):
            if key != old_key or not repository.has(commit):
                break
            done.append((key, commit))
        if len(done) == len(steps):
            return done
        with tempfile.TemporaryDirectory(dir=self.git_dir) as scratch:
            git = Git(self.git_dir, index=os.path.join(scratch, "index"))
            git.run("read-tree", done[-1][1] if done else self.base)
            for step, key in list(zip(steps, keys))[len(done):]:
                self.carry_out(git, step)
                parent = done[-1][1] if done else self.base
                done.append((key, git.commit(git.text("write-tree"), [parent], step.message(self.trailer),
                                             self.who, self.when + 60 * (len(done) + 1))))
        return done

    def carry_out(self, git, step):
        if not step.patch:
            self.remove_stock(git, step.topic)
            return
        if step.patch.hunks:
            apply_hunks(git, step.patch)
        lines = []
        for path in step.patch.brings:
            if git.text("ls-files", "--", path):
                raise Failure(f"{step.name} brings {path}, which the kernel has: change it by hunks instead")
            content, executable = step.patch.files[path]
            lines.append(f"{'100755' if executable else '100644'} {git.blob(content)}\t{path}\n")
        update_index(git, lines)

    def remove_stock(self, git, topic):
        def read(path):
            found = git.run("cat-file", "blob", f":{path}", check=False)
            if found.returncode:
                raise FileNotFoundError(2, "no such file", path)
            return found.stdout.decode()

        plan = baseline_rules.Plan(baseline_rules.rules_of(topic), read,
                                   lambda path: bool(git.text("ls-files", "--", path)))
        if plan.nothing_there():
            raise Failure(f"the kernel has no stock {topic} code: it was taken out before")
        plan.check_gone(self.base_dir)
        if plan.problems:
            more = f" (and {len(plan.problems) - 1} more)" if len(plan.problems) > 1 else ""
            raise Failure(f"the kernel has drifted from the baseline's rules: {plan.problems[0]}{more}")
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


def apply_hunks(git, patch):
    """Change the index by a patch's hunks; Failure names the patch, the file and the hunk."""
    result = git.run("apply", "--cached", "--whitespace=nowarn", "-", data=patch.hunks.encode(), check=False)
    if result.returncode == 0:
        return
    errors = result.stderr.decode(errors="replace")
    failed = re.search(r"^error: patch failed: (.+):(\d+)$", errors, re.M)
    if not failed:
        raise Failure(f"{patch.name} does not apply: {errors.strip().splitlines()[0].removeprefix('error: ')}")
    raise Failure(f"{patch.name} does not apply to this kernel: "
                  f"{which_hunk(patch.hunks, failed[1], int(failed[2]))} of {failed[1]}, at line {failed[2]}, "
                  "does not fit")


def which_hunk(hunks, path, line):
    """'hunk N' of the file's part of a patch, by its first line in the old file."""
    for part in re.split(r"^(?=diff --git )", hunks, flags=re.M):
        if re.search(rf"^\+\+\+ b/{re.escape(path)}$", part, re.M):
            starts = [int(start) for start in re.findall(r"^@@ -(\d+)", part, re.M)]
            if line in starts:
                return f"hunk {starts.index(line) + 1}"
    return "a hunk"
