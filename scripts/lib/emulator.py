# SPDX-License-Identifier: GPL-2.0
"""Start emulators for tests that talk to the emulator's monitor."""

import argparse
import contextlib
import os
import socket
import subprocess
import tempfile

import guest
import qmp


def command(arch):
    """Return the command line of an emulator without a guest, a display and default devices."""
    return [*guest.emulator_start(arch), "-nodefaults", "-display", "none"]


@contextlib.contextmanager
def bare(folder, cpu, *options, arch="x86"):
    """Start an emulator of a machine without a kernel; yield the emulator's monitor."""
    path = os.path.join(folder, "qmp")
    line = [*command(arch), "-cpu", cpu, "-no-user-config", "-qmp", f"unix:{path},server=on,wait=off", *options]
    with subprocess.Popen(line, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield qmp.Monitor(path)
        finally:
            process.kill()


class Machine:
    """An emulator with a guest, whose ports write to files in a directory."""

    def __init__(self, arch, cpu, programs, command, folder, incoming=()):
        args = argparse.Namespace(arch=arch, stock=False, cpu=cpu, smp=2, kernel=None, emulator=None, append="",
                                  gdb=False, show=False)
        initrd = os.path.join(folder, "initramfs.cpio")
        if not incoming:
            guest.initramfs(arch, initrd, programs, command)
        self.name = "loaded" if incoming else "first"
        self.folder = folder
        line = guest.emulator_command(args, initrd) + [
            "-chardev", f"file,id=console,path={self.file('console')}", "-serial", "chardev:console",
            "-device", "virtio-serial-pci", "-qmp", f"unix:{self.file('qmp')},server=on,wait=off", *incoming]
        for number, name in enumerate(("stdout", "stderr", "control", "enough"), 1):
            chardev = "socket,server=on,wait=off" if name == "enough" else "file"
            line += ["-chardev", f"{chardev},id={name},path={self.file(name)}",
                     "-device", f"virtserialport,nr={number},chardev={name},name={name}"]
        with open(self.file("words"), "wb") as words:
            self.process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=words, stderr=words)
        self.monitor = qmp.Monitor(self.file("qmp"))
        self.enough = socket.socket(socket.AF_UNIX)

    def file(self, name):
        return os.path.join(self.folder, f"{self.name}.{name}")

    def said(self, name="stdout"):
        with open(self.file(name), errors="replace") as f:
            return f.read()

    def wait_for(self, words, times=1):
        while self.said().count(words) < times:
            if self.process.poll() is not None:
                raise EOFError("the emulator has ended")
            self.monitor.be_patient()

    def say_enough(self):
        # leave the socket open: closing it would lose data that the guest has not read
        self.enough.connect(self.file("enough"))
        self.enough.sendall(b"\n")

    def end(self):
        """Wait until the guest powers off; return its command's exit status, or None if the guest did not end well."""
        try:
            self.process.wait(qmp.Monitor.PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None
        told = [line for line in self.said("control").splitlines() if line.startswith("exit ")]
        return int(told[-1].split()[1]) if told and self.process.returncode == 0 else None

    def stop(self):
        self.enough.close()
        self.process.kill()
        self.process.wait()


def attempt(report, name, function, *args):
    """Call function(*args, folder) with a temporary directory, and report the result as the test of this name."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            good = function(*args, folder)
        except (OSError, EOFError, RuntimeError, subprocess.SubprocessError) as error:
            print(f"  {error}")
            good = False
    report.check(name, good)
