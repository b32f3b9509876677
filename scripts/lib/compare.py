# SPDX-License-Identifier: GPL-2.0
"""Run test programs on our kernel and on the stock kernel; compare the results by the rows of BEHAVIOURS.md."""

import itertools
import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
import typing

import guest
import ktap

# A line that a test prints by TH_LOG(), except the report of a failed expectation
LOGGED = re.compile(r"^# \S+\.[ch]:\d+:\w+:(?!Expected )(.*)$")
# The report of a failed expectation, such as EXPECT_EQ(), with its text
EXPECTED = re.compile(r"^# \S+\.[ch]:\d+:\w+:Expected (.*)$")
ROW = re.compile(r"^(?:.*\.)?([a-z]\d+)_")
# Arguments that make the emulator deterministic: the guest's clock counts instructions, so that two boots are the same
REPEATABLE = "-icount shift=0,sleep=off -seed 1 -rtc base=2026-01-01,clock=vm"
# Numbers of the guests of a test, which name their directories build/boot/TEST/N
BOOTS = itertools.count(1)


def programs(which):
    """Return the directory with the programs that `scripts/build-programs WHICH` makes."""
    return os.path.join(guest.BUILD, "programs", which)


def read(path):
    """Return the content of a file, or an empty string if there is no such file."""
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def show(text):
    """Print the output of a guest or a program with an indent, as results in it are not the test's own."""
    print(textwrap.indent(text.rstrip("\n"), "  "), flush=True)


class Ran(typing.NamedTuple):
    """A command that has run in a guest."""

    status: int    # the exit status of scripts/boot
    output: str    # the command's standard output
    console: str   # the guest's console
    cpus: list     # the emulator's counters, a dictionary for each CPU

    @property
    def sums(self):
        """Return the emulator's counters, summed over all CPUs."""
        return {name: sum(cpu[name] for cpu in self.cpus) for name in (self.cpus or [{}])[0] if name != "cpu"}


def commands(text):
    """Return the commands in a text of the documentation, each with the lines of output that the text shows."""
    found = re.finditer(r"^( +)\$ ((?:.*\\\n)*.*)\n((?:\1(?! *\$ ).*\n)*)", text, re.M)
    return [(command[2], [line.strip() for line in command[3].splitlines()]) for command in found]


def check_debug_kernel(arch, checkers, report):
    """Report for each checker whether the configuration of our debug kernel has it."""
    config = read(os.path.join(guest.BUILD, "linux", f".debug-{arch}", ".config"))
    for checker in checkers:
        report.check(f"debug_kernel_has_{checker.lower()}", f"CONFIG_{checker}=y\n" in config)


def boot(arch, *command, stock=False, options=(), emulator="", insns=False):
    """Run a command in a guest, with options for scripts/boot and arguments for the emulator.  If insns is set,
    the emulator counts instructions, which slows it down.  Keep the N-th guest's files in build/boot/TEST/N."""
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
    """Run programs one after the other in one guest, each for at most limit seconds.  Return a Ran, and
    {program: (lines, exit status)}; the exit status is 137 if the program was killed after limit seconds,
    and None if the guest ended before the program did."""
    script = "cd /add; for p in \"$@\"; do echo \"@ $p\"; timeout -s KILL %d ./$p 2>&1; echo \"@ $p $?\"; done" % limit
    done = boot(arch, "sh", "-c", script, "run", *names,
                options=["--add", folder, "--timeout", str(timeout), *options], **more)
    ran = {name: ([], None) for name in names}
    lines = []
    for line in done.output.splitlines():
        words = line.split()
        if words[:1] == ["@"]:
            lines = [] if len(words) == 2 else lines
            ran[words[1]] = (lines, int(words[2]) if len(words) == 3 else None)
            continue
        lines.append(line)
        print(f"  {line}")
    for name, (_, status) in ran.items():
        if status == 137:
            print(f"  {name} did not end within {limit} s")
        elif status is None:
            print(f"  {name} did not end: the guest's status was {done.status}")
    return done, ran


def run(arch, folder, names, figures=None, **options):
    """Run programs as run_and_count() does; return {test name: result} only."""
    return run_and_count(arch, folder, names, figures, **options)[0]


def run_and_count(arch, folder, names, figures=None, unmet=None, where=None, **options):
    """Run programs that print KTAP in a guest, by in_guest().  Return {test name: pass, FAIL or skip} and
    the emulator's counters.  Add the lines that each test logged to the dictionary figures, its failed
    expectations to the dictionary unmet, and its program to the dictionary where, by the test's name."""
    done, ran = in_guest(arch, folder, names, **options)
    results = {}
    for program, (lines, ended) in ran.items():
        logged, expected = [], []
        for line in lines:
            logged += LOGGED.findall(line)
            expected += EXPECTED.findall(line)
            found = ktap.parse(line)
            if not found:
                continue
            name = found.name.removeprefix("global.")
            results[name] = found.verdict
            if where is not None:
                where[name] = program
            if logged and figures is not None:
                figures[name] = "; ".join(logged)
            if expected and unmet is not None:
                unmet[name] = expected
            logged, expected = [], []
        if ended == ktap.SKIPPED:
            results[program] = "skip"
        elif ended not in (0, 1) or not any(map(ktap.parse, lines)):
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
    """A writer of KTAP: results on our kernel, and a test for each row that the stock kernel gets wrong."""

    def __init__(self, title):
        super().__init__()
        self.title = title

    def compare(self, machine, ours, stock):
        """Print both kernels' results as a table, ours also as KTAP; return rows with a test that only stock fails."""
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
        """Print a table of the lines that tests have logged on both kernels."""
        print("# Figures that the tests have logged")
        print("| row | test | stock | ours |")
        for name in sorted(set(ours) | set(stock), key=row_key):
            print(f"| {row_of(name):4} | {name} | {stock.get(name, '-')} | {ours.get(name, '-')} |")

    def all_pass(self, name, cells, results, enough):
        """Print a table row with passed, skipped and failed tests; report whether enough passed and none failed."""
        count = list(results.values()).count
        failed = sorted(test for test, verdict in results.items() if verdict == "FAIL")
        print(f"| {' | '.join(cells)} | {count('pass')} | {count('skip')} | {', '.join(failed) or '-'} |", flush=True)
        self.check(name, count("pass") > enough and not failed)

    def expect_bugs(self, bugs, seen):
        """Report for each row in bugs whether a test of that row failed on the stock kernel."""
        for row in bugs:
            self.check(f"{row.lower()}_stock_fails_where_ours_passes", row in seen)
