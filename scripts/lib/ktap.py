# SPDX-License-Identifier: GPL-2.0
"""KTAP, read and written."""
import re
import typing

LINE = re.compile(r"^( *)(not )?ok \d+(?: -)?\s*(.*?)(?:\s*# SKIP\s*(.*))?\s*$")


class Result(typing.NamedTuple):
    depth: int      # how far the line is indented
    verdict: str    # pass, FAIL or skip
    name: str
    reason: str     # of a skip


def parse(line):
    """Returns the result in a line of output, None if the line has no result."""
    found = LINE.match(line)
    if not found:
        return None
    indent, failed, name, reason = found.groups()
    verdict = "FAIL" if failed else "skip" if reason is not None else "pass"
    return Result(len(indent), verdict, name, reason or "")


def leaves(text):
    """Yields the results without nested results, in order."""
    below = 0
    for result in filter(None, map(parse, text.splitlines())):
        if result.depth >= below:
            yield result
        below = result.depth


class Writer:
    """Prints results as they come."""

    def __init__(self):
        self.number = 0
        self.failed = 0

    def say(self, verdict, name):
        """verdict: pass, FAIL, or why the test cannot be made."""
        self.number += 1
        skipped = "" if verdict in ("pass", "FAIL") else f" # SKIP {verdict}"
        self.failed += verdict == "FAIL"
        print(f"{'not ' if verdict == 'FAIL' else ''}ok {self.number} - {name}{skipped}", flush=True)

    def check(self, name, passed):
        self.say("pass" if passed else "FAIL", name)

    def end(self):
        """Returns the exit status."""
        print(f"1..{self.number}")
        return 1 if self.failed else 0
