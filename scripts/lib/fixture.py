# SPDX-License-Identifier: GPL-2.0
"""For tests of scripts/tree and similar scripts: a small kernel, a small project, and KTAP output."""
import glob
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import traceback

SCRIPTS = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
TOP = os.path.dirname(SCRIPTS)
sys.path.insert(0, os.path.join(SCRIPTS, "lib"))
import baseline_rules  # noqa: E402
import ktap  # noqa: E402
from project import LINUX, QEMU  # noqa: E402

# files of a kernel source that the scripts need, besides those that the rules change
SKELETON = ("Makefile", "MAINTAINERS", ".gitignore", "kernel/fork.c", "scripts/get_maintainer.pl",
            "arch/x86/events/Makefile", "arch/powerpc/perf/Makefile", "tools/perf/util/Build")


# the head of a patch whose author is not the user of the scripts
MAIL = "From: Another Author <another@example.org>\nDate: Fri, 2 Jan 2026 10:00:00 +0100\nSubject: "


class Skip(Exception):
    """The reason why a test cannot run here."""


def run_tests(names):
    """Run the test_* functions of a module, whose vars() are names, and exit."""
    tests = [(name[5:], value) for name, value in names.items() if name.startswith("test_")]
    report = ktap.Writer()
    for name, test in tests:
        try:
            test()
            report.say("pass", name)
        except Skip as reason:
            report.say(str(reason), name)
        except Exception:
            print("".join(f"# {line}\n" for line in traceback.format_exc().rstrip().split("\n")), end="")
            report.say("FAIL", name)
    sys.exit(report.end())


def expect(condition, message):
    if not condition:
        raise AssertionError(message)


def one_sentence(output, *said):
    """Check that output is one line that contains each of the texts said."""
    for text in said:
        expect(text in output, f"{text!r} is not in: {output}")
    expect(len(output.strip().split("\n")) == 1, f"more than one sentence: {output}")


def read(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as handle:
        return handle.read()


def write(text, *parts):
    """Write a file under another name and rename it: the old file can have hard links in other trees."""
    path = os.path.join(*parts)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".test", "w", encoding="utf-8") as handle:
        handle.write(text)
    os.replace(path + ".test", path)


def kernel():
    """Return the directory of the kernel source that the project uses."""
    result = subprocess.run([os.path.join(SCRIPTS, "fetch"), "--print", "kernel"], capture_output=True, text=True,
                            check=False)
    if result.returncode:
        raise Skip("no kernel source: " + (result.stderr.strip().split("\n") or ["?"])[-1])
    return result.stdout.strip().split("\n")[-1]


def small_kernel(folder, source=None):
    """Copy the files of a kernel source that the rules of scripts/baseline change, and a few that they check."""
    source = source or kernel()
    wanted = set(SKELETON)
    for topic in baseline_rules.topics():
        for rule in baseline_rules.rules_of(topic):
            if not rule.target.startswith("gone "):
                wanted.add(rule.target)
                continue
            for pattern in rule.target.split()[1:]:
                found = (path for path in glob.iglob(os.path.join(source, pattern), recursive=True)
                         if os.path.isfile(path))
                wanted.update(os.path.relpath(path, source) for path, _ in zip(found, range(3)))
    for name in sorted(wanted):
        old, new = os.path.join(source, name), os.path.join(folder, name)
        if os.path.isdir(old):
            shutil.copytree(old, new, dirs_exist_ok=True)
        elif os.path.exists(old):
            os.makedirs(os.path.dirname(new), exist_ok=True)
            shutil.copy2(old, new)
    return folder


def snapshot(folder):
    """Return {path: digest} of all files in a directory, except those in .git."""
    result = {}
    for top, dirs, files in os.walk(folder):
        dirs[:] = [d for d in dirs if d != ".git"]
        for name in files:
            path = os.path.join(top, name)
            with open(path, "rb") as handle:
                result[os.path.relpath(path, folder)] = hashlib.sha256(handle.read()).hexdigest()
    return result


def hunk(base, path, line):
    """Return a hunk that adds a line after the first line of a file."""
    first, second = read(base, path).split("\n")[:2]
    return (f"\ndiff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n"
            f"@@ -1,2 +1,3 @@\n {first}\n+{line}\n {second}\n")


class Project:
    """A small project in a temporary directory, with the scripts, a series for each topic, a cache and a kernel."""

    def __init__(self):
        self.holder = tempfile.TemporaryDirectory(prefix="kernel scripts ")
        self.room = self.holder.name
        self.top = os.path.join(self.room, "project")
        self.base = small_kernel(os.path.join(self.room, "base"))
        self.tree = os.path.join(self.room, "tree")
        self.env = dict(os.environ, XDG_CACHE_HOME=os.path.join(self.room, "cache"),
                        GIT_CONFIG_GLOBAL=os.path.join(self.room, "gitconfig"), GIT_CONFIG_NOSYSTEM="1")
        for name in [n for n in self.env if n.startswith(("GIT_AUTHOR", "GIT_COMMITTER")) or n == "EMAIL"]:
            del self.env[name]
        write("[user]\nname = A Tester\nemail = tester@example.org\n[advice]\ndetachedHead = false\n",
              self.room, "gitconfig")
        shutil.copytree(SCRIPTS, os.path.join(self.top, "scripts"),
                        ignore=shutil.ignore_patterns("__pycache__", "tests"))
        shutil.copy2(os.path.join(SCRIPTS, "..", ".gitignore"), self.top)
        write("pmu\n", self.top, QEMU.patches, "topics")
        write("", self.top, QEMU.patches, "pmu/series")
        self.patch("topics", "powerpc-ebb\nx86-brs\nperf-tools\n")
        for topic in ("powerpc-ebb", "x86-brs", "perf-tools"):
            self.patch(f"{topic}/cover-letter", f"Subject: {topic}\nTo: list@example.org\n\nA text.\n")
            self.patch(f"{topic}/series", "")
        write("/* ours */\n", self.top, "arch/x86/events/amd/brs.c")
        self.patch("x86-brs/series", "0001-first.patch\n0002-second.patch\n")
        self.patch("x86-brs/0001-first.patch", MAIL + "perf/x86: First\n\nWhy.\n---\n"
                   "Brings: arch/x86/events/amd/brs.c\n" + hunk(self.base, "arch/x86/events/Makefile", "# first"))
        self.patch("x86-brs/0002-second.patch", MAIL + "perf/x86: Second\n\nWhy not.\n---\n"
                   + hunk(self.base, "arch/x86/events/amd/Makefile", "# second"))
        self.git("init", "-q")
        self.keep("start")

    def patch(self, name, text):
        write(text, self.top, LINUX.patches, name)

    def git(self, *args, folder=None):
        return subprocess.run(["git", *args], cwd=folder or self.top, env=self.env, check=True,
                              capture_output=True, text=True).stdout

    def keep(self, message):
        self.git("add", "--all")
        self.git("commit", "-q", "--allow-empty", "-m", message)

    def run(self, script, *args, status=0):
        """Run a script of the project and check its exit status; return its standard error."""
        result = subprocess.run([os.path.join(self.top, "scripts", script), *args], env=self.env, cwd=self.room,
                                capture_output=True, text=True, check=False)
        expect(result.returncode == status and "Traceback" not in result.stderr,
               f"{script} {' '.join(args)}: status {result.returncode}, not {status}: {result.stderr}")
        return result.stderr

    def anew(self):
        """Restore the project as it was at the start, and make its tree again."""
        for name in ("rebase-merge", "rebase-apply"):
            shutil.rmtree(os.path.join(self.tree, ".git", name), ignore_errors=True)
        self.git("checkout", "-q", "-f", self.git("rev-list", "--max-parents=0", "HEAD").strip())
        self.git("clean", "-fdq")
        self.run("tree", "--base", self.base, "--output", self.tree, "--force")
        self.tree_git("clean", "-fdqx")

    def tree_git(self, *args):
        return self.git(*args, folder=self.tree)

    def make_tree(self, status=0):
        return self.run("tree", "--base", self.base, "--output", self.tree, status=status)

    def refresh(self, *args, status=0):
        return self.run("refresh", "--tree", self.tree, *args, status=status)
