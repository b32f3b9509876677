# SPDX-License-Identifier: GPL-2.0
"""For scripts/boot: start an emulator with a guest, pass on the guest's output, and judge how the guest ended."""

import contextlib
import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import time

import guest

# The files that a run of a guest leaves: the console, the PMU statistics, and the emulator's messages
KEPT = ("console.log", "pmu.json", "emulator.log")

# Seconds that the guest has to power off, or to give a sign of life when the host asks for one
GRACE = 15

# Messages of a kernel that is in trouble.  "WARNING:" counts only at the start of a
# line: "Spectre V2 : WARNING: ..." is a note on a mitigation.  "general protection
# fault ip:..." is about a program, not about the kernel.
TROUBLE = re.compile(
    rb"^.*(?:\bOops\b|Kernel panic|\bBUG: |BUG at |[Hh]ard LOCKUP|INFO: .*(?:detected|stall|hung|blocked)"
    rb"|(?:^|\] ?)WARNING: (?!nvram )"
    rb"|Unable to handle kernel|general protection fault(?! ip:)|KASAN: |UBSAN: |suspicious RCU usage|unchecked MSR"
    rb"|unreferenced object|possible .* detected|Bad page state|sleeping function called).*$",
    re.M)


class Guest:
    """A running emulator, and the three ports for the guest's output and control messages."""

    def __init__(self, args, folder):
        self.console, self.stats, self.words = (os.path.join(folder, name) for name in KEPT)
        initrd = os.path.join(folder, "initramfs.cpio")
        command = guest.emulator_command(args, initrd)
        # in deterministic mode, the host must send nothing, as its messages would come at random times
        self.listening = "-icount" not in command
        guest.initramfs(args.arch, initrd, args.add, args.command, self.listening)
        if self.has_statistics(command[0]):
            command += ["-object", f"pmu-stats,id=pmu-stats,path={self.stats.replace(',', ',,')}"]
        # deterministic mode needs ioeventfd=off, with which the CPU's own thread serves the ports
        ports = "virtio-serial-pci" + (",ioeventfd=off" if "-icount" in command else "")
        command += ["-chardev", f"file,id=console,path={self.console.replace(',', ',,')}",
                    "-serial", "chardev:console", "-device", ports]
        self.ports, theirs = {}, []
        for number, name in enumerate(("stdout", "stderr", "control"), 1):
            ours, other = socket.socketpair()
            self.ports[name] = ours
            theirs.append(other)
            command += ["-chardev", f"socket,id={name},fd={other.fileno()}",
                        "-device", f"virtserialport,nr={number},chardev={name},name={name},id={name}"]
        guest.show(args, command)
        with open(self.words, "wb") as words:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=words, stderr=words,
                pass_fds=[s.fileno() for s in theirs], start_new_session=True)
        for s in theirs:
            s.close()

    @staticmethod
    def has_statistics(emulator):
        out = subprocess.run([emulator, "-object", "help"], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, check=False)
        return b"pmu-stats" in out.stdout

    def stop(self):
        """End the emulator: first by SIGTERM, on which it writes its statistics, then by SIGKILL."""
        for how in (signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is None:
                self.process.send_signal(how)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(GRACE)

    def trouble(self):
        """Return the console's first line that shows trouble in the kernel, or None."""
        try:
            with open(self.console, "rb") as f:
                found = TROUBLE.search(f.read())
        except OSError:
            return None
        return found.group().decode(errors="replace").strip() if found else None


class Run:
    """A guest's run, from power-on to its end.

    A command's last output can still be in the guest when the command has ended.
    So the guest reports how many bytes of output there are, and powers off when
    the host says that all bytes have arrived.  A guest in deterministic mode
    powers off at once; missing bytes are then an error.
    """

    def __init__(self, machine, timeout):
        self.machine = machine
        self.deadline = time.monotonic() + timeout
        self.said = b""
        self.ready = False
        self.status = None
        self.asked = self.alive = self.dismissed = False
        self.outputs = {"stdout": sys.stdout.buffer, "stderr": sys.stderr.buffer}
        self.arrived = dict.fromkeys(self.outputs, 0)
        self.announced = {}

    def hear(self):
        """Handle data that the guest has sent by the control port; return False at the port's end."""
        data = self.machine.ports["control"].recv(65536)
        self.said += data
        while b"\n" in self.said:
            line, self.said = self.said.split(b"\n", 1)
            words = line.decode(errors="replace").split()
            if words == ["ready"]:
                if self.ready:
                    # after kexec, a second kernel starts to count bytes of output from 0
                    for name in self.outputs:
                        self.pass_on(name, drain=True)
                    self.arrived = dict.fromkeys(self.outputs, 0)
                self.ready = True
            elif words == ["alive"]:
                self.alive = True
            elif words[:1] == ["exit"] and len(words) == 4:
                self.status = int(words[1])
                self.announced = dict(zip(self.outputs, map(int, words[2:])))
                self.deadline = time.monotonic() + GRACE
        return bool(data)

    def pass_on(self, name, drain=False):
        """Write output that has arrived, one piece or, with drain, all of it; return False at the output's end."""
        while True:
            try:
                data = self.machine.ports[name].recv(65536, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return True
            began = time.monotonic()
            self.outputs[name].write(data)
            self.outputs[name].flush()
            # the time that a slow reader takes does not count as the command's time
            self.deadline += time.monotonic() - began
            self.arrived[name] += len(data)
            if not data or not drain:
                return bool(data)

    def follow(self):
        """Pass on the guest's output until the guest ends or time is up."""
        with selectors.DefaultSelector() as selector:
            for name, port in self.machine.ports.items():
                selector.register(port, selectors.EVENT_READ, name)
            while selector.get_map():
                left = self.deadline - time.monotonic()
                if left <= 0 and not self.time_up():
                    return
                for key, _ in selector.select(None if left == float("inf") else max(left, 0.1)):
                    if not (self.hear() if key.data == "control" else self.pass_on(key.data)):
                        selector.unregister(key.fileobj)
                if self.alive and self.status is None:
                    return
                if self.machine.listening and self.complete() and not self.dismissed:
                    self.dismissed = True
                    self.tell(b"off\n")
                    self.deadline = time.monotonic() + GRACE

    def complete(self):
        """Return whether the command has ended and all its output has been passed on."""
        return self.status is not None and all(self.arrived[name] >= self.announced[name] for name in self.outputs)

    def time_up(self):
        """Ask the guest for a sign of life when time is up; return False if it was asked before or cannot answer."""
        if self.asked or not self.ready or self.status is not None:
            return False
        self.asked = True
        self.deadline = time.monotonic() + GRACE
        self.tell(b"alive\n")
        return True

    def tell(self, line):
        """Send a line to the guest, unless the emulator has ended."""
        with contextlib.suppress(BrokenPipeError):
            self.machine.ports["control"].sendall(line)

    def verdict(self, timeout):
        """Return the exit status for scripts/boot, and a reason unless the status is that of the command."""
        trouble = self.machine.trouble()
        if trouble:
            return 125, f"the kernel said: {trouble}"
        if not self.ready:
            return 125, "the guest never came up"
        if self.alive:
            return 124, f"the command did not end within {timeout} s"
        if self.asked:
            return 125, "the guest hung: it gave no sign of life"
        if self.status is None:
            return 125, "the guest ended before the command did"
        if not self.complete():
            return 125, f"output was lost: {self.arrived} bytes arrived of {self.announced}"
        if self.machine.process.returncode is None:
            return 125, "the guest did not power off"
        return self.status, None
