# SPDX-License-Identifier: GPL-2.0
"""An emulator with a guest in it, from power-on to the end: what scripts/boot runs."""

import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import time

import guest

# The files that a run leaves: the console, the PMU statistics, and the emulator's messages
KEPT = ("console.log", "pmu.json", "emulator.log")

# Seconds in which the guest has to power off, or to answer when it is asked for a sign of life
GRACE = 15

# Messages of a kernel that is in trouble.
# A warning of the kernel starts its line; "Spectre V2 : WARNING: ..." is a note on
# a mitigation.  "general protection fault ip:..." is about a program.
TROUBLE = re.compile(
    rb"^.*(?:\bOops\b|Kernel panic|\bBUG: |BUG at |INFO: .*(?:detected|stall|hung|blocked)"
    rb"|(?:^|\] ?)WARNING: (?!nvram )"
    rb"|Unable to handle kernel|general protection fault(?! ip:)|KASAN: |UBSAN: |suspicious RCU usage"
    rb"|unreferenced object|possible .* detected|Bad page state|sleeping function called).*$",
    re.M)


class Guest:
    """The emulator and the three ports through which the guest speaks."""

    def __init__(self, args, folder):
        self.console, self.stats, self.words = (os.path.join(folder, name) for name in KEPT)
        initrd = os.path.join(folder, "initramfs.cpio")
        command = guest.emulator_command(args, initrd)
        # in deterministic mode nothing may come from outside, at a time of its own
        self.listening = "-icount" not in command
        guest.initramfs(args.arch, initrd, args.add, args.command, self.listening)
        if self.has_statistics(command[0]):
            command += ["-object", f"pmu-stats,id=pmu-stats,path={self.stats.replace(',', ',,')}"]
        # without ioeventfd the CPU's own thread serves the ports, which deterministic mode needs
        ports = "virtio-serial-pci" + (",ioeventfd=off" if "-icount" in command else "")
        command += ["-chardev", f"file,id=console,path={self.console.replace(',', ',,')}",
                    "-serial", "chardev:console", "-device", ports]
        self.ports, theirs = {}, []
        for number, name in enumerate(("stdout", "stderr", "control"), 1):
            ours, other = socket.socketpair()
            self.ports[name] = ours
            theirs.append(other)
            command += ["-chardev", f"socket,id={name},fd={other.fileno()}",
                        "-device", f"virtserialport,nr={number},chardev={name},name={name}"]
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
        """End the emulator, by SIGTERM first: it then writes its statistics."""
        for how in (signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is None:
                self.process.send_signal(how)
                try:
                    self.process.wait(GRACE)
                except subprocess.TimeoutExpired:
                    pass

    def trouble(self):
        """Returns the first line of the console that tells of trouble in the kernel, else None."""
        try:
            with open(self.console, "rb") as f:
                found = TROUBLE.search(f.read())
        except OSError:
            return None
        return found.group().decode(errors="replace").strip() if found else None


class Run:
    """One guest from power-on to its end.

    A command's last output may still be in the guest when the command has ended.
    So the guest tells how many bytes there are in all, and powers off when it is
    told that they have arrived.  A guest in deterministic mode powers off at once,
    and what is missing then is an error.
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

    def hear(self, data):
        """Take a message of the guest from the control port."""
        self.said += data
        while b"\n" in self.said:
            line, self.said = self.said.split(b"\n", 1)
            words = line.decode(errors="replace").split()
            if words == ["ready"]:
                if self.ready:
                    # a second kernel in the same guest counts its own bytes
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

    def pass_on(self, name, drain=False):
        """Write what has arrived of an output, all of it if told to drain; False at its end."""
        while True:
            try:
                data = self.machine.ports[name].recv(65536, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return True
            began = time.monotonic()
            self.outputs[name].write(data)
            self.outputs[name].flush()
            # a slow reader takes its own time, not the command's
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
                    if key.data != "control":
                        more = self.pass_on(key.data)
                    else:
                        data = key.fileobj.recv(65536)
                        self.hear(data)
                        more = bool(data)
                    if not more:
                        selector.unregister(key.fileobj)
                if self.alive and self.status is None:
                    return
                if self.machine.listening and self.complete() and not self.dismissed:
                    self.dismissed = True
                    self.machine.ports["control"].sendall(b"off\n")
                    self.deadline = time.monotonic() + GRACE

    def complete(self):
        """Whether the command has ended and all its output has been passed on."""
        return self.status is not None and all(self.arrived[name] >= self.announced[name] for name in self.outputs)

    def time_up(self):
        """Time is up: ask for a sign of life; False if there is nothing to wait for."""
        if self.asked or not self.ready or self.status is not None:
            return False
        self.asked = True
        self.deadline = time.monotonic() + GRACE
        self.machine.ports["control"].sendall(b"alive\n")
        return True

    def verdict(self, timeout):
        """Exit status and, if it is not the command's own, the reason."""
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
            return 125, f"output was lost: {self.arrived} of {self.announced} bytes arrived"
        if self.machine.process.returncode is None:
            return 125, "the guest did not power off"
        return self.status, None
