# SPDX-License-Identifier: GPL-2.0
"""For scripts/fdo: compare the ways to optimize samples/brs/fdo-demo.c by a profile.

The program is built without a profile, with profiles of branch samples (AutoFDO,
pseudo-probes, BOLT) and with profiles of instrumented programs; the instructions
and taken branches of each build are counted.  The quality of a profile of samples
is the share of its edges that agrees with the edges that BOLT's instrumentation
has counted.
"""

import os
import re
import subprocess

LLVM = "/usr/lib/llvm-19/bin/"
# The argument of fdo-demo: the number of rounds, which take 55 million branches
ROUNDS = 12000
PERIODS = (100003, 10007)
OVERLAP_PERIODS = (1000003, 100003, 10007)
DEBUG = ["-g", "-fdebug-info-for-profiling"]
PROBES = ["-g", "-fpseudo-probe-for-profiling"]
# Compiler options for BOLT, which leaves functions alone if it does not understand their jump tables
RELOCS = ["-fno-jump-tables", "-Wl,--emit-relocs"]
LAYOUT = ["-reorder-blocks=ext-tsp", "-reorder-functions=cdsort", "-split-functions"]
BAR = 50


class Failure(Exception):
    """The failure of a step, whose text is a sentence for the user."""


class Builder:
    """Builds of fdo-demo in one directory, which run on a processor with BRS."""

    def __init__(self, folder, source, perf, on_brs):
        self.folder = folder
        self.source = source
        self.perf = perf
        self.on_brs = on_brs
        self.built = ["program"]

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *command, **environment):
        """Run a command on this machine, and write its output to the file log."""
        env = {**os.environ, "PATH": os.path.dirname(self.perf) + os.pathsep + os.environ["PATH"], **environment}
        with open(self.path("log"), "w", encoding="utf-8") as log:
            done = subprocess.run(command, cwd=self.folder, env=env, stdout=log, stderr=subprocess.STDOUT, check=False)
        if done.returncode:
            raise Failure(f"{os.path.basename(command[0])} failed, see {self.path('log')}")

    def compile(self, name, *flags):
        self.run(f"{LLVM}clang", "-O2", *flags, self.source, "-o", name)

    def record(self, *recordings):
        """Record programs; each recording is (program, period, file)."""
        script = "set -e\n" + "".join(
            f"perf record -b -e branch-brs:u -c {period} -o {data} -- ./{name} {ROUNDS} > said\n"
            for name, period, data in recordings)
        self.guest(script)

    def guest(self, script):
        with open(self.path("script"), "w", encoding="utf-8") as f:
            f.write(script)
        done = subprocess.run([*self.on_brs, "sh", "script"], cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        if done.returncode:
            raise Failure(f"the guest says: {done.stdout}")

    def profile(self, program, data, profile):
        self.run(f"{LLVM}llvm-profgen", f"--binary={program}", f"--perfdata={data}", f"--output={profile}")

    def bolt(self, program, data, out):
        self.run(f"{LLVM}perf2bolt", "-p", data, "-o", f"{out}.fdata", program)
        self.run(f"{LLVM}llvm-bolt", program, "-o", out, f"-data={out}.fdata", *LAYOUT)
        self.built.append(out)

    def optimized(self, name, *flags):
        self.compile(name, *flags)
        self.built.append(name)

    def instrumented(self):
        """Make a profile by clang's instrumentation, and count the true edges by BOLT's instrumentation."""
        self.compile("program.instr", "-fprofile-instr-generate")
        self.run("./program.instr", str(ROUNDS), LLVM_PROFILE_FILE="instr.profraw")
        self.run(f"{LLVM}llvm-profdata", "merge", "instr.profraw", "-o", "instr.profdata")
        self.run(f"{LLVM}llvm-bolt", "program.relocs", "-o", "relocs.instr", "-instrument",
                 f"--instrumentation-file={self.path('true.fdata')}")
        self.run("./relocs.instr", str(ROUNDS))

    def build(self):
        """Build fdo-demo in each way, and list the names of the builds in self.built."""
        self.compile("program", *DEBUG)
        self.compile("program.gmlt", "-gmlt")
        self.compile("program.probes", *PROBES)
        self.compile("program.relocs", *DEBUG, *RELOCS)
        self.instrumented()
        self.record(*[("program", period, f"{period}.data") for period in PERIODS],
                    *[("program.relocs", period, f"relocs.{period}.data") for period in OVERLAP_PERIODS],
                    ("program.gmlt", PERIODS[0], "gmlt.data"), ("program.probes", PERIODS[0], "probes.data"))

        for period in PERIODS:
            self.profile("program", f"{period}.data", f"{period}.prof")
            self.optimized(f"autofdo.{period}", *DEBUG, f"-fprofile-sample-use={period}.prof")
        self.bolt("program.relocs", f"relocs.{PERIODS[1]}.data", "bolt")
        self.compile("autofdo.relocs", *DEBUG, *RELOCS, f"-fprofile-sample-use={PERIODS[1]}.prof")
        self.record(("autofdo.relocs", PERIODS[1], "autofdo.relocs.data"))
        self.bolt("autofdo.relocs", "autofdo.relocs.data", "autofdo.bolt")
        self.profile("program.probes", "probes.data", "probes.prof")
        self.optimized("probes", *PROBES, "-fprofile-sample-use=probes.prof")
        self.optimized("instrumented", "-fprofile-instr-use=instr.profdata")
        self.profile("program.gmlt", "gmlt.data", "gmlt.prof")
        self.optimized("gmlt", "-gmlt", "-fprofile-sample-use=gmlt.prof")

    def count(self):
        """Return {build: (instructions, taken branches)}; raise Failure if the builds do not print the same."""
        self.guest("for p in %s\ndo\n"
                   "\tperf stat -x, -o $p.count -e instructions:u,branch-brs:u -- ./$p %d > $p.out || exit\n"
                   "done\n" % (" ".join(self.built), ROUNDS))
        counts = {}
        for name in self.built:
            with open(self.path(f"{name}.out"), encoding="utf-8") as out, \
                    open(self.path("program.out"), encoding="utf-8") as wanted:
                if out.read() != wanted.read():
                    raise Failure(f"{name} prints something else than program")
            with open(self.path(f"{name}.count"), encoding="utf-8") as f:
                counts[name] = tuple(int(n) for n in re.findall(r"^(\d+),", f.read(), re.M))
            if len(counts[name]) != 2:
                raise Failure(f"{name} was not counted")
        return counts


def edges(path):
    """Read a profile of BOLT; return {(from, to): count} of its edges."""
    found = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            words = line.split()
            # a line of BOLT's profile: kind, function and offset of both ends of an edge, mispredictions, count
            if len(words) == 8:
                edge = (*words[1:3], *words[4:6])
                found[edge] = found.get(edge, 0) + int(words[7])
    return found


def overlap(true, seen):
    """Return the part of a profile that is right: 1 if each edge has the same share as in the true counts."""
    all_true = sum(true.values())
    all_seen = sum(seen.get(edge, 0) for edge in true)
    if not all_seen:
        return 0
    return sum(min(count / all_true, seen.get(edge, 0) / all_seen) for edge, count in true.items())


def overlaps(builder):
    """Return [(period, number of samples, part of the profile that is right)]."""
    true = edges(builder.path("true.fdata"))
    found = []
    for period in OVERLAP_PERIODS:
        data = f"relocs.{period}.data"
        builder.run(f"{LLVM}perf2bolt", "-p", data, "-o", f"{data}.fdata", "program.relocs")
        builder.run(builder.perf, "script", "-i", data, "-F", "brstack")
        with open(builder.path("log"), encoding="utf-8") as f:
            samples = sum("0x" in line for line in f)
        found.append((period, samples, overlap(true, edges(builder.path(f"{data}.fdata")))))
    return found


def titles():
    return {"program": "-O2", **{f"autofdo.{period}": f"AutoFDO, period {period}" for period in PERIODS},
            "bolt": f"BOLT, period {PERIODS[1]}", "autofdo.bolt": f"AutoFDO and BOLT, period {PERIODS[1]}",
            "probes": f"pseudo-probes, period {PERIODS[0]}", "instrumented": "instrumented, no samples",
            "gmlt": f"AutoFDO with -gmlt alone, period {PERIODS[0]}"}


def text(counts, quality):
    """Return lines of text: the counts of each build, the quality of the profiles, and the counts as a bar chart."""
    names = titles()
    width = max(map(len, names.values()))
    base = counts["program"]
    lines = [f"# Instructions and taken branches of each build, {ROUNDS} rounds",
             f"| {'build':{width}} | instructions | taken branches |",
             f"|{'-' * (width + 2)}|-------------:|---------------:|"]
    lines += [f"| {names[name]:{width}} | {count[0]:12} | {count[1]:14} |" for name, count in counts.items()]
    lines += ["", "Taken branches:"]
    for name, (_, taken) in counts.items():
        change = f" {100 * (taken / base[1] - 1):+.1f} %" if name != "program" else ""
        lines.append(f"{names[name]:{width}} {'#' * round(BAR * taken / base[1])}{change}")
    lines += ["", "# The share of each profile that agrees with BOLT's instrumentation",
              "| period  | samples | edges right |", "|--------:|--------:|------------:|"]
    lines += [f"| {period:7} | {samples:7} | {100 * part:9.1f} % |" for period, samples, part in quality]
    return lines
