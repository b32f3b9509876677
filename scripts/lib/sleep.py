# SPDX-License-Identifier: GPL-2.0
"""A recording by AMD's Branch Sampling with a suspend to RAM in the middle.

The emulator's monitor reports that the guest is suspended, and wakes it up.  The
monitor also ends the emulator: a q35 guest that has slept cannot power off.
"""
import contextlib
import os
import subprocess
import tempfile

import guest
import qmp

# The start of the last line that brs_sleep_load prints
GOOD = "recording went on: "
PATIENCE = 180


def run(folder, options):
    """Run brs_sleep_load in a guest with these options of scripts/boot; return whether recording
    continued after suspend, and the program's other output."""
    lines, good = [], False
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "monitor")
        command = [os.path.join(guest.TOP, "scripts", "boot"), "x86", *options,
                   "--smp", "2", "--timeout", str(PATIENCE), "--add", folder, "--", "/add/brs_sleep_load"]
        with subprocess.Popen(command, env={**os.environ, "QEMU_ARGS": f"-qmp unix:{path},server=on,wait=off"},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as boot:
            try:
                monitor = qmp.Monitor(path, PATIENCE)
                monitor.wait_for("SUSPEND")
                monitor.ask("system_wakeup")
            except (OSError, EOFError) as error:
                print(f"  {error}")
            for line in boot.stdout:
                if line.startswith(GOOD):
                    good = line.removeprefix(GOOD).strip() == "yes"
                    with contextlib.suppress(OSError, EOFError):
                        monitor.ask("quit")
                else:
                    lines.append(line.rstrip("\n"))
            words = boot.stderr.read()
    if "the kernel said" in words or not lines:
        print(words)
        good = False
    return good, lines
