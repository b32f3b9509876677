# SPDX-License-Identifier: GPL-2.0
"""Functions for git repositories: the shared cache of base sources, and commits without a work tree."""
import contextlib
import fcntl
import glob
import hashlib
import os
import re
import subprocess
import sys

from patch import EPOCH, NEUTRAL
from project import CACHE, TOP, Failure


class Git:
    """A git repository; index names an index file to use instead of the repository's own."""

    def __init__(self, git_dir, work_tree=None, index=None):
        self.git_dir, self.work_tree, self.index = git_dir, work_tree, index

    def run(self, *args, data=None, env=None, check=True):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k == "GIT_CONFIG_GLOBAL"}
        environment.update(GIT_DIR=self.git_dir, LC_ALL="C", **(env or {}))
        if self.work_tree:
            environment["GIT_WORK_TREE"] = self.work_tree
        if self.index:
            environment["GIT_INDEX_FILE"] = self.index
        result = subprocess.run(["git", *args], input=data, capture_output=True, env=environment,
                                cwd=self.work_tree or self.git_dir, check=False)
        if check and result.returncode:
            reason = result.stderr.decode(errors="replace").strip() or "no reason given"
            raise Failure(f"git {args[0]} failed in {self.git_dir}: {reason}")
        return result

    def text(self, *args, **more):
        return self.run(*args, **more).stdout.decode(errors="surrogateescape").rstrip("\n")

    def ref(self, name):
        """Return the object that a ref points to, or None if there is no such ref."""
        return self.text("rev-parse", "-q", "--verify", name, check=False) or None

    def blob(self, data):
        return self.text("hash-object", "-w", "--stdin", data=data)

    def commit(self, tree, parents, message, author, committer=None):
        """Make a commit; author and committer are ((name, address), date), by default the same."""
        env = {}
        for role, ((name, address), date) in (("AUTHOR", author), ("COMMITTER", committer or author)):
            env.update({f"GIT_{role}_NAME": name, f"GIT_{role}_EMAIL": address, f"GIT_{role}_DATE": date})
        args = [arg for parent in parents for arg in ("-p", parent)]
        return self.text("commit-tree", tree, *args, data=message.encode(), env=env)


def identity(folder=TOP):
    """Return the user's (name, address) from git's configuration, or None."""
    result = subprocess.run(["git", "-c", "user.useConfigOnly=true", "var", "GIT_COMMITTER_IDENT"],
                            capture_output=True, cwd=folder, check=False)
    found = re.match(r"(.+) <(.+)> \d+ [-+]\d+$", result.stdout.decode(errors="replace").strip())
    return (found[1], found[2]) if result.returncode == 0 and found else None


def need_identity(what, folder=TOP):
    who = identity(folder)
    if not who:
        raise Failure(f"{what} needs your name: set it with "
                      "`git config --global user.name NAME` and `git config --global user.email ADDRESS`")
    return who


def init(folder, bare=False):
    subprocess.run(["git", "init", "-q", *(["--bare"] if bare else []), "-b", "series", folder],
                   check=True, stdout=subprocess.DEVNULL)


def borrow_objects(git_dir, store):
    """Let a repository use the objects of the repository store, instead of copies."""
    info = os.path.join(git_dir, "objects", "info")
    os.makedirs(info, exist_ok=True)
    with open(os.path.join(info, "alternates"), "w", encoding="utf-8") as handle:
        handle.write(os.path.join(store, "objects") + "\n")


@contextlib.contextmanager
def lock(path, what):
    """Let one process at a time run the body of the with statement; print a line if this process has to wait."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for another run that uses {what}", file=sys.stderr)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def kernel_version(folder):
    """Return the version in a kernel source's Makefile, or None if the directory is no kernel source."""
    try:
        with open(os.path.join(folder, "Makefile"), encoding="utf-8") as makefile:
            text = makefile.read()
    except OSError:
        return None
    numbers = [re.search(rf"^{name} = (\d+)$", text, re.M) for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL")]
    extra = re.search(r"^EXTRAVERSION = *(\S*)$", text, re.M)
    return ".".join(n[1] for n in numbers) + (extra[1] if extra else "") if all(numbers) else None


def title(source, folder):
    """Return 'Linux 6.12.1' or 'QEMU 10.0.2'; raise Failure for another directory or one with a build."""
    if source.name == "linux":
        version = kernel_version(folder)
        if not version:
            raise Failure(f"{folder} is not a kernel source: it has no top Makefile with a version")
    for needed in source.marks:
        if not os.path.exists(os.path.join(folder, needed)):
            raise Failure(f"{folder} is not a whole {source} source: {needed} is missing")
    if source.name == "qemu":
        with open(os.path.join(folder, "VERSION"), encoding="utf-8") as handle:
            return f"QEMU {handle.read().strip()}"
    for made in (".config", "vmlinux", "include/generated"):
        if os.path.exists(os.path.join(folder, made)):
            raise Failure(f"{folder} has been built in ({made} is there): run `make mrproper` in it")
    return f"Linux {version}"


def public_commit(folder, store, base):
    """Return the commit of the user's clone if its source is that of the base, otherwise None."""
    if not os.path.exists(os.path.join(folder, ".git")):
        return None
    clone = Git(os.path.join(folder, ".git"), folder)
    same = clone.ref("HEAD^{tree}") == Git(store).ref(f"{base}^{{tree}}")
    return clone.ref("HEAD") if same else None


def default_base(source):
    name = {"linux": "kernel", "qemu": "qemu"}[source.name]
    result = subprocess.run([os.path.join(TOP, "scripts", "fetch"), "--print", name],
                            stdout=subprocess.PIPE, check=False)
    folder = result.stdout.decode().strip().split("\n")[-1]
    if result.returncode or not folder:
        raise Failure(f"there is no {source} source: scripts/fetch could not provide one")
    return folder


def base_commit(source, folder):
    """Commit a source to the repository in the cache, if it is not there.  Return (repository, commit).

    Each source directory has an index file, so that a later call compares only dates and sizes.
    """
    folder = os.path.realpath(folder)
    name = title(source, folder)
    store = os.path.join(CACHE, f"{source.name}.git")
    index = os.path.join(store, f"base-{hashlib.sha1(folder.encode()).hexdigest()[:16]}.index")
    with lock(store + ".lock", f"the cache of {source} sources"):
        if not os.path.exists(os.path.join(store, "HEAD")):
            init(store, bare=True)
        # only an interrupted run can have left these files, as this run holds the repository's lock
        left = glob.glob(os.path.join(glob.escape(store), "objects", "pack", "tmp_pack_*"))
        left += [index, index + ".lock"] if os.path.exists(index + ".lock") else []
        for path in filter(os.path.exists, left):
            os.unlink(path)
        if not os.path.exists(index):
            print(f"storing {name} in {store}: this is done once and takes about a minute", file=sys.stderr)
        git = Git(store, folder, index)
        # bigFileThreshold makes git write one pack instead of 80000 small files
        git.run("-c", "core.bigFileThreshold=1", "-c", "core.compression=1", "-c", "gc.auto=0",
                "-c", "core.safecrlf=false", "-c", "core.autocrlf=false", "add", "--all", "--force", ".")
        commit = git.commit(git.text("write-tree"), [], f"{name}, the {source} source as it is shipped\n",
                            (NEUTRAL, EPOCH))
        git.run("update-ref", f"refs/heads/base-{commit[:12]}", commit)
    return store, commit
