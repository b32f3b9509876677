# SPDX-License-Identifier: GPL-2.0
"""For scripts/test and scripts/check: run programs that print KTAP, and count their results."""
import fnmatch
import os
import subprocess
import sys
import time

import gitrepo
import ktap
import prepare
from project import BASE, BUILD, LINUX, TOP


class Runner:
    """The programs of one directory, whose output is kept in build/NAME/."""

    def __init__(self, name, folder):
        self.name = name
        self.folder = os.path.join(TOP, "scripts", folder)
        self.logs = os.path.join(BUILD, name)

    def path(self, program):
        return os.path.join(self.folder, program)

    def is_long(self, program):
        with open(self.path(program), encoding="utf-8") as f:
            return "# LONG=1\n" in [f.readline() for _ in range(4)]

    def choose(self, patterns, left_out="-"):
        """Return the names of the programs that match one of the patterns.  Without patterns, return
        all programs except those that match left_out and, without LONG=1, the long programs."""
        names = sorted(n for n in os.listdir(self.folder)
                       if os.access(self.path(n), os.X_OK) and os.path.isfile(self.path(n)))
        if patterns:
            wrong = [p for p in patterns if not fnmatch.filter(names, p)]
            if wrong:
                print(f"{self.name}: no program in {os.path.relpath(self.folder, TOP)}/ is called "
                      f"{' or '.join(wrong)}; see scripts/{self.name} --help", file=sys.stderr)
                sys.exit(2)
            return [n for n in names if any(fnmatch.fnmatch(n, p) for p in patterns)]
        names = [n for n in names if not fnmatch.fnmatch(n, left_out)]
        if not os.environ.get("LONG"):
            for name in filter(self.is_long, names):
                print(f"== {name}: only with LONG=1")
            names = [n for n in names if not self.is_long(n)]
        return names

    def run_all(self, names):
        """Build the parts of build/ that the programs need, run the programs, and return the exit status."""
        os.makedirs(self.logs, exist_ok=True)
        absent = [name for name in names if not prepare.topics_of(self.path(name)) <= set(LINUX.topics())]
        names = [name for name in names if name not in absent]
        for name in absent:
            topics = ", ".join(sorted(prepare.topics_of(self.path(name))))
            print(f"== {name}\n   skipped: {name}: it tests {topics}, which is not there for Linux {BASE}")
        if not names:
            print(f"0 passed, 0 failed, {len(absent)} skipped")
            return 1
        try:
            with gitrepo.lock(self.logs + ".lock", os.path.relpath(self.logs, TOP)):
                prepare.prepare(need for name in names for need in prepare.needs_of(self.path(name)))
                counts = [self.run(name) for name in names]
        except subprocess.CalledProcessError as error:
            sys.exit(f"{self.name}: nothing was run: {os.path.basename(error.cmd[0])} failed")
        except KeyboardInterrupt:
            sys.exit(f"{self.name}: interrupted")
        passed, failed, skipped = (sum(column) for column in zip(*counts))
        print(f"{passed} passed, {failed} failed, {skipped + len(absent)} skipped")
        return 0 if passed and not failed else 1

    def run(self, name):
        """Run one program; return the numbers of its passed, failed and skipped tests."""
        seen = {"pass": [], "FAIL": [], "skip": []}
        started = time.monotonic()
        print(f"== {name}", flush=True)
        log_name = os.path.join(self.logs, name + ".log")
        with open(log_name, "w", errors="replace", encoding="utf-8") as log:
            with subprocess.Popen([self.path(name)], cwd=TOP, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, errors="replace") as process:
                for line in process.stdout:
                    log.write(line)
                    log.flush()
                    self.tell(line.rstrip("\n"), seen)
                status = process.wait()
        if status and not seen["FAIL"]:
            seen["FAIL"].append(name)
            print(f"   FAILED: {name} ended with status {status}", flush=True)
        elif not any(seen.values()):
            seen["FAIL"].append(name)
            print(f"   FAILED: {name} ran no test", flush=True)
        if seen["FAIL"]:
            print(f"   see {os.path.relpath(log_name, TOP)}", flush=True)
        passed, failed, skipped = (len(names) for names in seen.values())
        print(f"   {passed} passed, {failed} failed, {skipped} skipped in {time.monotonic() - started:.0f} s",
              flush=True)
        return passed, failed, skipped

    @staticmethod
    def tell(line, seen):
        """Count the result in a line of a program's output; print failures, skips and tables.

        Ignore indented results, which tests print as the output of programs in a guest.
        """
        found = ktap.parse(line)
        if found and found.depth:
            return
        if not found:
            if line.startswith(("# ", "| ")):
                print("   " + line, flush=True)
            return
        seen[found.verdict].append(found.name)
        if found.verdict == "FAIL":
            print(f"   FAILED: {found.name}", flush=True)
        elif found.verdict == "skip":
            print(f"   skipped: {found.name}: {found.reason or 'no reason given'}", flush=True)
