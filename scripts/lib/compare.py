# SPDX-License-Identifier: GPL-2.0
"""Run the same test programs on our kernel and on the stock kernel, and put
the results side by side, row by row of the behaviours that they prove."""

import itertools
import json
import os
import re
import shlex
import subprocess
import sys
import typing

import guest
import ktap

# A line that a test prints by TH_LOG(), but not the report of a failed expectation
LOGGED = re.compile(r"^# \S+\.[ch]:\d+:\w+:(?!Expected )(.*)$")
ROW = re.compile(r"^(?:.*\.)?([a-z]\d+)_")
# Arguments that make the emulator deterministic: the guest's clock follows the number
# of instructions, so that two boots are the same however busy the host is
REPEATABLE = "-icount shift=0,sleep=off -seed 1 -rtc base=2026-01-01,clock=vm"
# Numbers the guests of the test that imports this module
BOOTS = itertools.count(1)


def programs(which):
    """Returns the folder of a set of programs, see scripts/build-programs."""
    return os.path.join(guest.BUILD, "programs", which)


def read(path):
    """Returns the content of a file, or an empty string if there is no such file."""
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except FileNotFoundError:
        return ""


class Ran(typing.NamedTuple):
    """A command that has run in a guest."""

    status: int    # that of scripts/boot
    output: str    # what the command said on its standard output
    console: str   # what the kernel said
    cpus: list     # the emulator's counters, a dictionary for each CPU

    @property
    def sums(self):
        """The counters of all CPUs together."""
        return {name: sum(cpu[name] for cpu in self.cpus) for name in (self.cpus or [{}])[0] if name != "cpu"}


def check_debug_kernel(arch, checkers, report):
    """Reports whether our debug kernel has these checkers."""
    config = read(os.path.join(guest.BUILD, "linux", f".debug-{arch}", ".config"))
    for checker in checkers:
        report.check(f"debug_kernel_has_{checker.lower()}", f"CONFIG_{checker}=y\n" in config)


def boot(arch, *command, stock=False, options=(), emulator="", insns=False):
    """Run a command in a guest, with options of scripts/boot and arguments of
    the emulator; insns has it count instructions, which slows it down.
    build/boot/TEST/N keeps what the test's N-th guest leaves."""
    kept = os.path.join(guest.BUILD, "boot", os.path.basename(sys.argv[0]), str(next(BOOTS)))
    if insns:
        # all pmu-stats objects count instructions if one of them does
        path = os.path.join(kept, "insns.json").replace(",", ",,")
        emulator += " -object " + shlex.quote(f"pmu-stats,id=insns,path={path},insns=on")
    env = {**os.environ, "BOOT_DIR": kept, "QEMU_ARGS": f"{os.environ.get('QEMU_ARGS', '')} {emulator}"}
    done = subprocess.run([os.path.join(guest.TOP, "scripts", "boot"), arch, *(["--stock"] if stock else []), *options,
                           "--", *command], env=env, stdout=subprocess.PIPE, text=True, errors="replace", check=False)
    counters = read(os.path.join(kept, "pmu.json"))
    return Ran(done.returncode, done.stdout, read(os.path.join(kept, "console.log")),
               json.loads(counters)["cpus"] if counters else [])


def in_guest(arch, folder, names, options=(), limit=300, timeout=1800, **more):
    """Run the programs one after the other in one guest, each within limit
    seconds.  Returns what boot() does and {program: (lines, exit status)};
    the exit status is 137 if the program was killed after limit seconds, None if
    the guest ended before the program did."""
    script = "cd /add; for p in \"$@\"; do echo \"@ $p\"; timeout -s KILL %d ./$p 2>&1; echo \"@ $p $?\"; done" % limit
    done = boot(arch, "sh", "-c", script, "run", *names,
                options=["--add", folder, "--timeout", str(timeout), *options], **more)
    ran = {name: ([], None) for name in names}
    lines = []
    for line in done.output.splitlines():
        words = line.split()
        if words[:1] == ["@"]:
            if len(words) == 2:
                lines = []
            ran[words[1]] = (lines, int(words[2]) if len(words) == 3 else None)
            continue
        lines.append(line)
        print(f"  {line}")
    for name, (_, status) in ran.items():
        if status == 137:
            print(f"  {name} did not end within {limit} s")
        elif status is None:
            print(f"  {name} did not end: the guest's status was {done.status}")
    sys.stdout.flush()
    return done, ran


def run(arch, folder, names, figures=None, **options):
    """As run_and_count(), but returns the results alone."""
    return run_and_count(arch, folder, names, figures, **options)[0]


def run_and_count(arch, folder, names, figures=None, **options):
    """Run programs that print KTAP, see in_guest(); returns {test name: pass,
    FAIL or skip} and the emulator's counters, and puts what the tests logged
    into figures, by name."""
    done, ran = in_guest(arch, folder, names, **options)
    results = {}
    for program, (lines, ended) in ran.items():
        logged = []
        for line in lines:
            logged += LOGGED.findall(line)
            found = ktap.parse(line)
            if not found:
                continue
            name = found.name.removeprefix("global.")
            results[name] = found.verdict
            if logged and figures is not None:
                figures[name] = "; ".join(logged)
            logged = []
        if ended in (None, 137):
            results[program] = "FAIL"
    if done.status == 125:
        results["kernel_log_is_clean"] = "FAIL"
    return results, done.sums


def row_of(name):
    found = ROW.match(name)
    return found[1].upper() if found else "-"


def row_key(name):
    row = row_of(name)
    return (row[0], int(row[1:]) if row[1:] else 0, name)


class Report(ktap.Writer):
    """KTAP output: the results on our kernel, then one test for each row that the stock kernel gets wrong."""

    def __init__(self, title):
        super().__init__()
        self.title = title

    def compare(self, machine, ours, stock):
        """Print both kernels' results as a table and ours as KTAP; returns the rows that fail on stock alone."""
        names = sorted(set(ours) | set(stock), key=row_key)
        width = max(map(len, names), default=4)
        print(f"# {self.title}: {machine}")
        print(f"| {'row':4} | {'test':{width}} | stock | ours |")
        for name in names:
            print(f"| {row_of(name):4} | {name:{width}} | {stock.get(name, '-'):5} | {ours.get(name, '-'):4} |")
        for name in sorted(ours, key=row_key):
            verdict = ours[name]
            self.say("not possible on this machine" if verdict == "skip" else verdict, f"{name} ({machine})")
        return {row_of(n) for n in names if stock.get(n) == "FAIL" and ours.get(n) == "pass"}

    @staticmethod
    def show_figures(ours, stock):
        """Print what the tests measured on both kernels, for tests that logged something."""
        print("# What they measured")
        print("| row | test | stock | ours |")
        for name in sorted(set(ours) | set(stock), key=row_key):
            print(f"| {row_of(name):4} | {name} | {stock.get(name, '-')} | {ours.get(name, '-')} |")

    def expect_bugs(self, bugs, seen):
        """Report for each row in bugs whether a test of that row failed on the stock kernel."""
        for row in bugs:
            self.check(f"{row.lower()}_stock_fails_where_ours_passes", row in seen)
