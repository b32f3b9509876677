# SPDX-License-Identifier: GPL-2.0
"""Read and write the state of a tree that scripts/tree has made, which is kept in git refs.

  refs/tags/base       the source as it is shipped
  refs/series/made     the last commit that scripts/tree made
  refs/series/written  the last commit that scripts/refresh wrote back
  refs/series/inputs   a git tree with the project's files from which the tree was made
  refs/series/wanted   the new last commit; exists only while files of the tree are changed
"""
import contextlib
import os
import tempfile

from gitrepo import Git
from project import Failure, digest, read_bytes

BASE, MADE, WRITTEN = "refs/tags/base", "refs/series/made", "refs/series/written"
INPUTS, WANTED = "refs/series/inputs", "refs/series/wanted"
REBASES = ("rebase-merge", "rebase-apply", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD")


def git_of(tree):
    return Git(os.path.join(tree, ".git"), tree)


def check_ours(tree):
    """Return the Git of a tree; raise Failure if scripts/tree has not made the tree."""
    git = git_of(tree)
    if not os.path.exists(git.git_dir) or not git.ref(MADE) or not git.ref(BASE):
        raise Failure(f"{tree} exists but was not made by scripts/tree: move it away first")
    return git


def inputs_of(source, series, backports):
    """Return {path: content} of the project's files from which the tree is made, as they were read."""
    files = {}
    for topic, patches in series.items():
        files[source.series_file(topic)] = read_bytes(source.series_file(topic))
        for patch in patches:
            files.update({path: content for path, (content, _) in patch.files.items()})
    for patches in backports.values():
        files.update({patch.path: read_bytes(patch.path) for patch in patches})
    return files


def write_inputs(git, files):
    """Write refs/series/inputs; files is {path: content, or digest if the content is stored already}."""
    with tempfile.TemporaryDirectory(dir=git.git_dir) as scratch:
        index = Git(git.git_dir, index=os.path.join(scratch, "index"))
        known = set(read_inputs(git).values())
        lines = []
        for path, content in files.items():
            name = digest(content) if isinstance(content, bytes) else content
            if name not in known:
                index.blob(content)
            lines.append(f"100644 {name}\t{path}\n")
        index.run("update-index", "--add", "--index-info", data="".join(lines).encode())
        git.run("update-ref", INPUTS, index.text("write-tree"))


def read_inputs(git):
    """Return {path: digest} of the project's files from which the tree was made."""
    if not git.ref(INPUTS):
        return {}
    listing = git.text("ls-tree", "-r", "-z", INPUTS).strip("\0")
    return {line.partition("\t")[2]: line.split()[2] for line in listing.split("\0") if line}


def in_progress(tree):
    """Return the name of git's file for an unfinished rebase, merge or similar, or None."""
    return next((name for name in REBASES if os.path.exists(os.path.join(tree, ".git", name))), None)


def finish_interrupted(git):
    """Complete an update of the tree that was interrupted while it changed files."""
    if not git.ref(WANTED):
        return
    index_lock = os.path.join(git.git_dir, "index.lock")
    if os.path.exists(index_lock):
        os.unlink(index_lock)
    git.run("reset", "--hard", WANTED)
    git.run("update-ref", MADE, WANTED)
    git.run("update-ref", "-d", WANTED)


def uncommitted(tree):
    """Return the first path with changes that are not committed, or None."""
    git = git_of(tree)
    status = git.text("status", "--porcelain", "-z").split("\0")[0]
    return status[3:] if status else new_file(git, tree)


def new_file(git, tree):
    """Return a new file that git status does not show, or None.

    Debian's .gitignore has a pattern that ignores all new files.  So this uses the
    other patterns of that file, and the .gitignore files of the directories below it.
    """
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as patterns:
        with contextlib.suppress(FileNotFoundError), open(os.path.join(tree, ".gitignore"), encoding="utf-8") as lines:
            patterns.write("".join(line for line in lines if line.strip() not in ("/*", "!/debian/")))
        patterns.flush()
        names = git.run("ls-files", "--others", "-z", "-X", patterns.name).stdout
    if not names:
        return None
    rows = git.run("check-ignore", "-v", "-n", "-z", "--stdin", data=names, check=False).stdout.decode().split("\0")
    return next((path for pattern, path in zip(rows[2::4], rows[3::4]) if pattern in ("", "/*")), None)
