# SPDX-License-Identifier: GPL-2.0
"""A recording by AMD's Branch Sampling with a suspend to RAM in the middle.

The emulator's monitor reports that the guest is suspended, and wakes it up.  The
monitor also ends the emulator: a q35 guest that has slept cannot power off.  The
program's output comes by a serial port, as the virtio ports of Linux 7.3 pass on
nothing after a suspend.
"""
import os
import socket
import subprocess
import tempfile

import guest
import qmp

# The start of the last line that brs_sleep_load prints
GOOD = "recording went on: "
PATIENCE = 900


def run(folder, options):
    """Run brs_sleep_load in a guest with these options of scripts/boot; return whether recording
    continued after suspend, None if the program did not say so, and the program's other output."""
    lines, good = [], None
    with tempfile.TemporaryDirectory() as place, socket.socket(socket.AF_UNIX) as port:
        path, port_path = (os.path.join(place, name) for name in ("monitor", "port"))
        port.bind(port_path)
        port.listen()
        port.settimeout(PATIENCE)
        command = [os.path.join(guest.TOP, "scripts", "boot"), "x86", *options, "--smp", "2",
                   "--timeout", str(PATIENCE), "--add", folder, "--", "sh", "-c", "/add/brs_sleep_load > /dev/ttyS1"]
        devices = (f"-qmp unix:{path},server=on,wait=off "
                   f"-chardev socket,id=said,path={port_path} -device isa-serial,chardev=said,index=1")
        with subprocess.Popen(command, env={**os.environ, "QEMU_ARGS": devices},
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as boot:
            try:
                said = port.accept()[0].makefile(encoding="utf-8", errors="replace")
                monitor = qmp.Monitor(path, PATIENCE)
                monitor.wait_for("SUSPEND")
                monitor.ask("system_wakeup")
                for line in said:
                    if line.startswith(GOOD):
                        good = line.removeprefix(GOOD).strip() == "yes"
                        monitor.ask("quit")
                        break
                    lines.append(line.strip())
            except (OSError, EOFError) as error:
                print(f"  {error}")
            words = boot.stderr.read()
    if "the kernel said" in words or not lines:
        print(words)
        good = None
    return good, lines
