# SPDX-License-Identifier: GPL-2.0
"""Run the stock kernel's own EBB programs, built from its unmodified source (programs/stock-ebb)."""
import os
import re

import compare

# The number of cycles that the emulator counts for each instruction.  The programs'
# periods are meant for processors that run a thousand times as many cycles a second.
CPI = 32
VERDICT = re.compile(r"^(success|failure|skip): (\w+)")
# Programs that cannot end on an emulator, and the reasons
ENDLESS = {
    "lost_exception_test":
        "two processes take turns by sched_yield, which recent schedulers do not promise: ends on no recent kernel",
    "instruction_count_test":
        "2 * 10^11 loops, which take hours on an emulator",
}


def run(cpu, options=(), stock=False, folder=None):
    """Run the stock kernel's EBB programs in one guest; return {program: pass, FAIL or skip}."""
    folder = folder or compare.programs("stock-ebb")
    names = sorted(n for n in os.listdir(folder)
                   if n not in ENDLESS and os.access(os.path.join(folder, n), os.X_OK)
                   and os.path.isfile(os.path.join(folder, n)))
    done, ran = compare.in_guest("powerpc", folder, names, stock=stock,
                                 options=["--cpu", f"{cpu},pmu-cpi={CPI}", *options])
    results = {}
    for name, (lines, ended) in ran.items():
        said = [found[1] for found in map(VERDICT.match, lines) if found]
        # a program that skips exits with 0 or 4; without EBB all programs skip, so a skip is not a pass
        results[name] = {"success": "pass", "skip": "skip"}.get(said[-1] if said else "", "FAIL")
        if ended not in (0, 4):
            results[name] = "FAIL"
    if done.status == 125:
        results["kernel log"] = "FAIL"
    return results
