# SPDX-License-Identifier: GPL-2.0
"""What a tree made by scripts/tree remembers about the project's files that it was made from."""
import json
import os
import tempfile

import project
from kernel_git import Git
from project import Failure

STATE = "series-state.json"         # in the tree's .git: what it was made from
REBASES = ("rebase-merge", "rebase-apply", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD")


def read_state(tree):
    """What an earlier run left in the tree; Failure if the folder is not ours."""
    try:
        with open(os.path.join(tree, ".git", STATE), encoding="utf-8") as handle:
            return json.load(handle)
    except (OSError, ValueError):
        raise Failure(f"{tree} exists but was not made by scripts/tree: move it away first") from None


def write_state(tree, state):
    path = os.path.join(tree, ".git", STATE)
    with open(path + ".new", "w", encoding="utf-8") as handle:
        json.dump(state, handle, indent=1)
    os.replace(path + ".new", path)


def sources(series):
    """{path: digest} of the project's files that the tree is made from, as they were read for it."""
    digests = {}
    for topic, patches in series.items():
        if project.series_names(topic) == [patch.name for patch in patches]:
            name = os.path.join(project.PATCHES, topic, "series")
            digests[name] = project.digest(project.read_bytes(name))
        for patch in patches:
            digests.update({path: project.digest(content) for path, (content, _) in patch.files.items()})
    return digests


def git_of(tree):
    return Git(os.path.join(tree, ".git"), tree)


def in_progress(tree):
    """The name of an unfinished rebase, merge or the like, None if there is none."""
    return next((name for name in REBASES if os.path.exists(os.path.join(tree, ".git", name))), None)


def uncommitted(tree):
    """The first path that has changes, or is new, and is in no commit; None if all is committed."""
    git = git_of(tree)
    status = git.text("status", "--porcelain", "-z").split("\0")[0]
    return status[3:] if status else new_file(git, tree)


def new_file(git, tree):
    """A new file that git status does not show.

    Debian's .gitignore ends in a pattern that ignores everything, so look with
    the rest of it, and leave out what a folder's own .gitignore knows of.
    """
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as patterns:
        with open(os.path.join(tree, ".gitignore"), encoding="utf-8") as ignored:
            patterns.write("".join(line for line in ignored if line.strip() not in ("/*", "!/debian/")))
        patterns.flush()
        names = git.run("ls-files", "--others", "-z", "-X", patterns.name).stdout
    if not names:
        return None
    rows = git.run("check-ignore", "-v", "-n", "-z", "--stdin", data=names, check=False).stdout.decode().split("\0")
    return next((path for pattern, path in zip(rows[2::4], rows[3::4]) if pattern in ("", "/*")), None)
