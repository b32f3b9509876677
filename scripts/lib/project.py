# SPDX-License-Identifier: GPL-2.0
"""The files of the project: patches and whole files for the kernel and for QEMU."""
import glob
import hashlib
import os
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "linux-ebb-brs")
DEFAULT_BASE = "6.12"
BASE = os.environ.get("BASE") or DEFAULT_BASE
BUILD = os.path.join(TOP, "build", *([BASE] if BASE != DEFAULT_BASE else []))
# the version of QEMU's source, which is independent of the kernel's, and the directory for its builds
DEFAULT_QEMU = "10.0"
QEMU_BASE = os.environ.get("QEMU_BASE") or DEFAULT_QEMU
QEMU_BUILD = os.path.join(TOP, "build", *([f"qemu-{QEMU_BASE}"] if QEMU_BASE != DEFAULT_QEMU else []))
# directories at the top of a kernel source in which the project can have whole files
KERNEL_DIRS = ("Documentation", "arch", "block", "certs", "crypto", "drivers", "fs", "include", "init",
               "io_uring", "ipc", "kernel", "lib", "mm", "net", "rust", "samples", "security", "sound",
               "tools", "usr", "virt")


class Failure(Exception):
    """An error whose text is a sentence for the user."""


def digest(data):
    """Return the object name that git gives to a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def read_bytes(path):
    """Return the content of a file of the project, or None if there is no such file."""
    try:
        with open(os.path.join(TOP, path), "rb") as f:
            return f.read()
    except (FileNotFoundError, NotADirectoryError):
        return None


def write_bytes(path, data):
    full = os.path.join(TOP, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full + ".new", "wb") as f:
        f.write(data)
    if os.path.exists(full):
        os.chmod(full + ".new", os.stat(full).st_mode & 0o777)
    os.replace(full + ".new", full)


def lines_of(path):
    """Return a list file's lines without comments; raise Failure if there is no such file."""
    data = read_bytes(path)
    if data is None:
        raise Failure(f"{path} is missing")
    lines = (line.split("#")[0].strip() for line in data.decode().splitlines())
    return [line for line in lines if line]


class Source:
    """The kernel or QEMU: the directories of its patches, of its whole files and of its tree."""

    def __init__(self, name, patches, tree, prefix, dirs, marks):
        self.name, self.patches, self.tree = name, patches, tree
        self.prefix = prefix        # the directory of the project that has the whole files
        self.dirs = dirs            # the directories in which whole files can be, or None for all directories
        self.marks = marks          # files by which a source of this kind is recognized

    def __str__(self):
        return {"linux": "kernel", "qemu": "QEMU"}[self.name]

    def whole(self, path):
        """Return a whole file's path in the project; path is the file's path in the tree."""
        return os.path.join(self.prefix, path)

    def topics(self):
        """Return the topics in order."""
        return lines_of(os.path.join(self.patches, "topics"))

    @property
    def base(self):
        """Return the version of the kernel or QEMU that the patches are for."""
        return self.patches.rpartition("-")[2]

    def fixes(self):
        """Return the topics with fixes for Linux' own code, which apply to the kernel as it is shipped."""
        path = os.path.join(self.patches, "fixes")
        return lines_of(path) if os.path.exists(os.path.join(TOP, path)) else []

    def other_bases(self):
        """Return the Sources of the other bases: the same kernel or QEMU with another directory of patches."""
        lists = glob.glob(os.path.join(glob.escape(os.path.join(TOP, "patches")), self.name + "-*", "topics"))
        names = sorted(os.path.relpath(os.path.dirname(path), TOP) for path in lists)
        return [Source(self.name, name, self.tree, self.prefix, self.dirs, self.marks)
                for name in names if name != self.patches]

    def series_file(self, topic):
        return os.path.join(self.patches, topic, "series")

    def series(self, topic):
        """Return the paths of a topic's patch files.  A name with a slash in the series file is
        a path from the top of the project, for a patch that is kept in another base's directory."""
        folder = os.path.join(self.patches, topic)
        return [line if "/" in line else os.path.join(folder, line) for line in lines_of(self.series_file(topic))]

    def backports(self):
        """Return the paths of the patch files that adapt whole files to this base."""
        folder = os.path.join(self.patches, "backport")
        return self.series("backport") if os.path.exists(os.path.join(TOP, folder, "series")) else []

    def whole_files(self):
        """Return the whole files, as paths in the tree; in a git repository, only files that git tracks."""
        dirs = [self.whole(d) for d in self.dirs or [""] if os.path.isdir(os.path.join(TOP, self.whole(d)))]
        if not dirs:
            return []
        listed = None
        if os.path.exists(os.path.join(TOP, ".git")):
            listed = subprocess.run(["git", "-C", TOP, "ls-files", "-z", "--", *dirs], capture_output=True, check=False)
        if listed and listed.returncode == 0:
            names = [n for n in listed.stdout.decode().split("\0") if n and os.path.exists(os.path.join(TOP, n))]
        else:
            names = sorted(os.path.relpath(os.path.join(folder, name), TOP)
                           for d in dirs for folder, _, names in os.walk(os.path.join(TOP, d)) for name in names)
        paths = [os.path.relpath(name, self.prefix or ".") for name in names]
        return [path for path in paths if not path.startswith(NO_PART)]


# the directory with programs for guests, which are not part of QEMU
NO_PART = "tests/guest/"
LINUX = Source("linux", f"patches/linux-{BASE}", os.path.join(BUILD, "linux"), "", KERNEL_DIRS,
               ("MAINTAINERS", "arch", "include", "kernel", "tools/perf", "scripts"))
QEMU = Source("qemu", f"patches/qemu-{QEMU_BASE}", os.path.join(QEMU_BUILD, "qemu"), "qemu", None,
              ("VERSION", "meson.build", "target/ppc", "target/i386"))
SOURCES = {source.name: source for source in (LINUX, QEMU)}


def warn(sentence):
    print(f"warning: {sentence}", file=sys.stderr)


def run(main, advice="; run it again"):
    """Run the main function of a script; turn an error into a sentence for the user."""
    name = os.path.basename(sys.argv[0])
    try:
        main()
    except (Failure, OSError, subprocess.SubprocessError) as error:
        sys.exit(f"{name}: {error}")
    except KeyboardInterrupt:
        sys.exit(f"{name}: interrupted{advice}")
