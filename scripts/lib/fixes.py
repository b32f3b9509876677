# SPDX-License-Identifier: GPL-2.0
"""Commit the fixes for Linux' own code, patches/linux-7.3/fixes-*, on the unmodified base; build their kernels."""
import glob
import hashlib
import os
import shutil
import subprocess
import typing

import gitrepo
import guest
import patch
import series_build
from fixes_rows import NEW_CODE
from gitrepo import Git
from project import BASE, BUILD, LINUX, TOP, Failure, lines_of, read_bytes

FOLDER = os.path.join("patches", "linux-7.3")
# The base that the fixes are written for; another base can lack the code that a fix changes
WRITTEN_FOR = "7.3"
BUILD_KERNEL, BUILD_PERF = (os.path.join(TOP, "scripts", name) for name in ("build-kernel", "build-perf"))


class Fix(typing.NamedTuple):
    """A patch for Linux' own code, and its commit on the base, with the patches before it only if it needs them."""

    path: str                       # the path of the patch in the project
    name: str                       # TOPIC/NUMBER
    subject: str
    commit: typing.Optional[str]    # None if the patch is not committed
    reason: str                     # why there is no commit, or which patches it includes
    missing: bool                   # whether the patch should apply to this base and does not


def topics():
    """Return the topics of fixes in the order in which they are to be mailed."""
    listed = lines_of(os.path.join(FOLDER, "fixes"))
    folders = glob.glob(os.path.join(glob.escape(os.path.join(TOP, FOLDER)), "fixes-*"))
    other = {os.path.basename(folder) for folder in folders}.symmetric_difference(listed)
    if other:
        raise Failure(f"{FOLDER}/fixes does not list what is there: {' '.join(sorted(other))}")
    return listed


class Lab:
    """A work tree of the base in which fixes are applied and built."""

    def __init__(self):
        self.tree = os.path.join(BUILD, "fixes", "linux")
        self.base_dir = os.path.realpath(gitrepo.default_base(LINUX))
        self.title = gitrepo.title(LINUX, self.base_dir)
        store, self.base = gitrepo.base_commit(LINUX, self.base_dir)
        self.git = Git(os.path.join(self.tree, ".git"), self.tree)
        if not os.path.exists(self.git.git_dir):
            os.makedirs(self.tree, exist_ok=True)
            gitrepo.init(self.tree)
            for name, value in (("gc.auto", "0"), ("core.autocrlf", "false"), ("user.name", patch.NEUTRAL[0]),
                                ("user.email", patch.NEUTRAL[1]), ("advice.detachedHead", "false")):
                self.git.run("config", name, value)
        gitrepo.borrow_objects(self.git.git_dir, store)
        self.base_index = os.path.join(self.git.git_dir, f"index-{self.base}")
        if not os.path.exists(self.base_index):
            Git(self.git.git_dir, index=self.base_index + ".new").run("read-tree", self.base)
            os.replace(self.base_index + ".new", self.base_index)

    def checkout(self, commit):
        """Check out a commit; write only the files that differ, so that make compiles little."""
        self.git.run("checkout", "-q", "-f", "--detach", commit)

    def tree_of(self, commit):
        return self.git.text("rev-parse", f"{commit}^{{tree}}")

    def commit(self, tree, parents, message=""):
        return self.git.commit(tree, parents, message, (patch.NEUTRAL, patch.EPOCH))

    def apply(self, mail, parent, index):
        """Commit a patch on top of the commit parent; return (commit, None), or (None, the reason why not).

        index: a git index file with parent's content, which gets the new commit's content."""
        git = Git(self.git.git_dir, index=index)
        try:
            series_build.apply_hunks(git, mail)
        except Failure as failure:
            if git.run("apply", "--cached", "--check", "--reverse", "-", data=mail.hunks.encode(),
                       check=False).returncode == 0:
                return None, f"{self.title} has it already"
            return None, str(failure)
        return self.commit(git.text("write-tree"), [parent], mail.message), None

    def pick(self, commit, onto):
        """Cherry-pick a commit onto another commit; return the new commit, None if the changes collide."""
        before = self.commit(self.tree_of(f"{commit}^"), [])
        sides = [self.commit(self.tree_of(side), [before]) for side in (onto, commit)]
        merged = self.git.run("merge-tree", "--write-tree", *sides, check=False)
        return self.commit(merged.stdout.decode().split()[0], [onto]) if merged.returncode == 0 else None

    def topic(self, topic):
        """Return a topic's fixes, and the topic's patches as one series of commits on the base."""
        found, series = [], []
        index = shutil.copyfile(self.base_index, f"{self.base_index}.{os.getpid()}")
        for file in lines_of(os.path.join(FOLDER, topic, "series")):
            path = os.path.join(FOLDER, topic, file)
            mail = patch.read(path)
            name = f"{topic}/{file[:4]}"
            if BASE != WRITTEN_FOR and name in NEW_CODE:
                commit, reason = None, f"it is for Linux {WRITTEN_FOR} only"
            else:
                commit, reason = self.apply(mail, series[-1] if series else self.base, index)
            missing = not commit and BASE == WRITTEN_FOR and "already" not in reason
            found.append(Fix(path, name, mail.subject, commit, reason or "", missing))
            series += [commit] if commit else []
        os.unlink(index)
        return [self.alone(fix) if fix.commit else fix for fix in found], series

    def alone(self, fix):
        """Return a fix without the patches before it in its topic, or with them if it builds on them."""
        commit = self.pick(fix.commit, self.base)
        return fix._replace(commit=commit) if commit else fix._replace(reason="with the patches before it")

    def fixes(self):
        """Return all fixes in the order of their topics, and a commit with all fixes."""
        found, together = [], self.base
        for topic in topics():
            mine, series = self.topic(topic)
            found += mine
            for commit in series:
                together = self.pick(commit, together)
                if not together:
                    raise Failure(f"{topic} collides with the topics before it")
        return found, together

    def build(self, commit, arch, flavour=None):
        """Return the path of a commit's kernel; build it if there is none of this source and configuration."""
        flavours = [f"--{flavour}"] if flavour else []
        digest = hashlib.sha1(self.tree_of(commit).encode())
        for path in sorted(glob.glob(os.path.join(glob.escape(TOP), "scripts", "configs", "*"))):
            digest.update(read_bytes(path))
        name = guest.ARCHES[arch].kernel
        image = os.path.join(BUILD, "fixes", "kernels", arch, flavour or "-", digest.hexdigest()[:16], name)
        if not os.path.exists(image):
            self.checkout(commit)
            self.start_flavour(arch, flavour)
            subprocess.run([BUILD_KERNEL, arch, "--source", self.tree, *flavours], check=True)
            os.makedirs(os.path.dirname(image), exist_ok=True)
            built = os.path.join(self.tree, ".out", *([flavour] if flavour else []), arch, name)
            shutil.copyfile(built, image + ".new")
            os.replace(image + ".new", image)
        return image

    def start_flavour(self, arch, flavour):
        """Copy the objects of the plain kernel, so that only files that the flavour's options affect are compiled."""
        plain, mine = (os.path.join(self.tree, f".{name}") for name in (arch, f"{flavour}-{arch}"))
        if flavour and os.path.exists(os.path.join(plain, ".inputs")) and not os.path.exists(mine):
            shutil.rmtree(mine + ".part", ignore_errors=True)       # of an interrupted run
            subprocess.run(["cp", "-a", plain, mine + ".part"], check=True)
            for name in (".inputs", ".kconfig"):
                os.unlink(os.path.join(mine + ".part", name))
            os.rename(mine + ".part", mine)

    def compiles(self, commit, arch, flavour, *objects):
        """Return whether these objects of a commit's kernel can be compiled."""
        self.checkout(commit)
        self.start_flavour(arch, flavour)
        command = [BUILD_KERNEL, arch, "--source", self.tree, f"--{flavour}", "--", *objects]
        return subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 0

    def perf(self, commit, arch):
        """Return a directory with perf alone, built from a commit."""
        folder = os.path.join(BUILD, "fixes", "perf", arch, commit[:12])
        if not os.path.exists(os.path.join(folder, "perf")):
            self.checkout(commit)
            subprocess.run([BUILD_PERF, arch, "--source", self.tree], check=True)
            os.makedirs(folder, exist_ok=True)
            shutil.copy2(os.path.join(self.tree, ".out", "perf", arch, "perf"), folder)
        return folder

    def selftests(self, commit, arch, folder, programs=()):
        """Build programs of the kernel's selftests, all if none are named; return their directory."""
        self.checkout(commit)
        out = os.path.join(BUILD, "fixes", "selftests", folder.replace("/", "-"), commit[:12])
        os.makedirs(out, exist_ok=True)
        cross = {"powerpc": "powerpc64le-linux-gnu-", "x86": ""}[arch]
        done = subprocess.run(["make", "-B", "-C", os.path.join(self.tree, "tools", "testing", "selftests", folder),
                               f"OUTPUT={out}", f"ARCH={arch}", f"CROSS_COMPILE={cross}", f"CC={cross}gcc",
                               "LDFLAGS=-static", *([os.path.join(out, name) for name in programs] or ["all"])],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failure(f"the selftests in {folder} do not build: {done.stderr.strip().splitlines()[-1]}")
        return out

    def style(self, path):
        """Return checkpatch's messages about a patch file, except those that need the sender or Linux' history."""
        ignored = "--ignore=MISSING_FIXES_TAG,UNKNOWN_COMMIT_ID,FILE_PATH_CHANGES"
        checkpatch = os.path.join(self.tree, "scripts", "checkpatch.pl")
        if not os.path.exists(checkpatch):
            self.checkout(self.base)
        options = ["--strict", "--no-signoff", "--terse", "--show-types", "--no-summary", ignored]
        said = subprocess.run([checkpatch, *options, os.path.join(TOP, path)],
                              cwd=self.tree, capture_output=True, text=True, check=False)
        return said.stdout.strip()
