# SPDX-License-Identifier: GPL-2.0
"""Build kernels, programs and emulators for tests, by calling scripts/build-*.

A test names the parts of build/ that it needs in lines at its head:

  # Needs: x86 stock/x86 emulators/x86_64 programs/x86
  # Needs with LONG=1: no-brs/x86
"""
import os
import re
import subprocess

from project import TOP

LINE = re.compile(r"^# Needs( with LONG=1)?: (.*)$", re.M)


def needs_of(path):
    """Return the parts of build/ that a test needs, in order."""
    with open(path, encoding="utf-8") as f:
        head = f.read(2000)
    return [word for only_long, words in LINE.findall(head) if not only_long or os.environ.get("LONG")
            for word in words.split()]


def topics_of(path):
    """Return the topics without which a test is skipped, by lines such as '# Topic: perf-tools' at its head."""
    with open(path, encoding="utf-8") as f:
        return set(re.findall(r"^# Topic: (.*)$", f.read(2000), re.M))


def command_for(need):
    """Return the command that builds a part of build/: a script and its arguments."""
    first, *rest = need.split("/")
    last = rest[-1] if rest else first
    if first == "emulators":
        return ["build-emulators", last]
    if first == "emulators-base":
        return ["build-emulators", "--base"]
    if first == "programs":
        return ["build-programs", last]
    if "perf" in need.split("/"):
        return ["build-perf", last, *(["--stock"] if first == "stock" else [])]
    if first in ("linux", "qemu"):
        return ["tree", first]
    return ["build-kernel", last, *(f"--{word}" for word in need.split("/")[:-1])]


def prepare(needs):
    """Build each of these parts of build/ once; raise CalledProcessError if a build fails."""
    for need in dict.fromkeys(needs):
        script, *args = command_for(need)
        subprocess.run([os.path.join(TOP, "scripts", script), *args], check=True)
