# SPDX-License-Identifier: GPL-2.0
"""Read and write KTAP, the kernel's format of test results."""
import re
import typing

# The exit status of a program that has skipped all its tests
SKIPPED = 4
LINE = re.compile(r"^( *)(not )?ok \d+(?: -)?\s*(.*?)(?:\s*# SKIP\s*(.*))?\s*$")


class Result(typing.NamedTuple):
    depth: int      # the indentation of the line
    verdict: str    # pass, FAIL or skip
    name: str
    reason: str     # why the test was skipped


def parse(line):
    """Return the result in a line of KTAP, or None if the line has no result."""
    found = LINE.match(line)
    if not found:
        return None
    indent, failed, name, reason = found.groups()
    verdict = "FAIL" if failed else "skip" if reason is not None else "pass"
    return Result(len(indent), verdict, name, reason or "")


def results(text):
    """Return the results in lines of KTAP."""
    return list(filter(None, map(parse, text.splitlines())))


def leaves(text):
    """Yield the results in order, except results that have nested results."""
    below = 0
    for result in results(text):
        if result.depth >= below:
            yield result
        below = result.depth


class Writer:
    """A writer of test results as KTAP."""

    def __init__(self):
        self.number = 0
        self.failed = 0

    def say(self, verdict, name):
        """Print a result; verdict is pass, FAIL, or the reason why the test is skipped."""
        self.number += 1
        skipped = "" if verdict in ("pass", "FAIL") else f" # SKIP {verdict}"
        self.failed += verdict == "FAIL"
        print(f"{'not ' if verdict == 'FAIL' else ''}ok {self.number} - {name}{skipped}", flush=True)

    def check(self, name, passed):
        self.say("pass" if passed else "FAIL", name)

    def end(self):
        """Print the number of results; return the exit status for the test program."""
        print(f"1..{self.number}")
        return 1 if self.failed else 0
