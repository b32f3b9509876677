# SPDX-License-Identifier: GPL-2.0
"""Make a guest's initramfs and the emulator's command line, for scripts/boot and scripts/shell."""

import os
import re
import shlex
import shutil
import socket
import stat
import subprocess
import sys

from project import BUILD, QEMU_BUILD, TOP


class Arch:
    """The differences between the guests of the two architectures."""

    def __init__(self, emulator, kernel, console, cpu, machine, append):
        self.emulator = emulator
        self.kernel = kernel
        self.console = console
        self.cpu = cpu
        self.machine = machine
        self.append = append


# Frequency of the x86 CPUs' time stamp counters
TSC_KHZ = 1000000
ARCHES = {
    "powerpc": Arch(
        "qemu-system-ppc64", "vmlinux", "hvc0", "power9",
        ["-machine", "pseries,x-vof=on,cap-cfpc=broken,cap-sbbc=broken,"
         "cap-ibs=broken,cap-ccf-assist=off"],
        ""),
    "x86": Arch(
        "qemu-system-x86_64", "bzImage", "ttyS0", "EPYC-Milan,+brs",
        ["-machine", "q35,usb=off,vmport=off", "-global", f"x86_64-cpu.tsc-frequency={TSC_KHZ}000"],
        # skip the kernel's calibration of one clock by another, which fails on a busy host
        f"tsc=reliable no_timer_check tsc_early_khz={TSC_KHZ}"),
}


class GuestError(Exception):
    """The failure of a guest's start, whose text is a sentence for the user."""


def run(*command, **kwargs):
    return subprocess.run(command, check=True, **kwargs)


def busybox(arch):
    if arch == "x86":
        return "/bin/busybox"
    fetch = os.path.join(TOP, "scripts", "fetch")
    out = run(fetch, "--print", "busybox-powerpc", stdout=subprocess.PIPE, text=True).stdout
    return os.path.join(out.strip(), "usr", "bin", "busybox")


def cpio_entry(name, mode, content):
    """Return the entry of a file in an initramfs archive, without owner, time and inode number."""
    name = os.fsencode(name) + b"\0"
    numbers = (0, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0)
    head = b"070701" + b"".join(b"%08x" % n for n in numbers) + name
    return head + b"\0" * (-len(head) % 4) + content + b"\0" * (-len(content) % 4)


def pack(archive, root, prefix):
    """Append a directory's contents to the initramfs, below prefix.  The same contents
    always give the same archive, which deterministic runs need."""
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in ["", *sorted(files + [f for f in folders if os.path.islink(os.path.join(folder, f))])]:
            path = os.path.normpath(os.path.join(folder, name))
            mode = os.lstat(path).st_mode
            content = b""
            if stat.S_ISLNK(mode):
                content = os.fsencode(os.readlink(path))
            elif stat.S_ISREG(mode):
                with open(path, "rb") as f:
                    content = f.read()
            archive.write(cpio_entry(os.path.normpath(os.path.join(prefix, os.path.relpath(path, root))),
                                     mode, content))
    archive.write(cpio_entry("TRAILER!!!", 0, b""))


def initramfs(arch, path, add, command, listening=False):
    """Write the initramfs of a guest: busybox, the contents of the directory add, and the command.  With
    listening, the guest waits for a message from the host before it powers off."""
    work = path + ".d"
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(os.path.join(work, "bin"))
    shutil.copy2(busybox(arch), os.path.join(work, "bin", "busybox"))
    shutil.copy2(os.path.join(TOP, "scripts", "lib", "guest-init"), os.path.join(work, "init"))
    os.symlink("bin/busybox", os.path.join(work, "linuxrc"))
    if listening:
        with open(os.path.join(work, "listening"), "w"):
            pass
    if command:
        with open(os.path.join(work, "command"), "w") as f:
            f.write("exec " + " ".join(shlex.quote(word) for word in command) + "\n")
    with open(path, "wb") as archive:
        pack(archive, work, ".")
        if add:
            if not os.path.isdir(add):
                raise GuestError(f"--add {add}: no such folder")
            pack(archive, add, "add")
    shutil.rmtree(work)


def take_tool(name, root):
    """Copy a program of the host and its libraries to bin/ and lib/ of root, a directory for a guest."""
    path = os.path.realpath(shutil.which(name))
    shutil.copy2(path, os.path.join(root, "bin", name))
    said = subprocess.run(["ldd", path], stdout=subprocess.PIPE, text=True, check=False).stdout
    for library in re.findall(r"(/\S+) \(0x", said):
        # in the guest, the loader is in /lib64 and libraries are in /lib, not in /usr/lib
        place = os.path.join(root, library.replace("/usr/lib", "/lib").lstrip("/"))
        os.makedirs(os.path.dirname(place), exist_ok=True)
        shutil.copy2(library, place)


def free_port():
    """Return the number of a free TCP port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def show(args, command):
    """Print the emulator's command as a shell command, if --show was given."""
    if args.show:
        print(shlex.join(command), file=sys.stderr)


def existing(path, made_by):
    if not os.path.isfile(path):
        raise GuestError(f"{os.path.relpath(path)} is not there; {made_by}")
    return path


def kernel_image(arch, flavour="", stock=False):
    """Return the path of a kernel that scripts/build-kernel makes."""
    return os.path.join(BUILD, *(["stock"] if stock else []), *([flavour] if flavour else []), arch,
                        ARCHES[arch].kernel)


def emulator_start(arch, emulator=None):
    """Return the start of an emulator's command line: the emulator, the firmware's directories, and the machine."""
    return [emulator or os.path.join(QEMU_BUILD, "emulators", ARCHES[arch].emulator),
            "-L", "/usr/share/qemu", "-L", "/usr/share/seabios", *ARCHES[arch].machine]


def emulator_command(args, initrd):
    """Return the emulator's command line, without the options for the console and the ports."""
    arch = ARCHES[args.arch]
    kernel = args.kernel or kernel_image(args.arch, stock=args.stock)
    start = emulator_start(args.arch, args.emulator)
    existing(kernel, "make " + ("stock" if args.stock else "kernels"))
    existing(start[0], "make emulators")
    # panic=-1: the kernel resets the machine after a panic, and -no-reboot ends the emulator
    append = f"console={arch.console} panic=-1 {arch.append} {args.append}"
    debugger = []
    if args.gdb:
        port = free_port()
        debugger = ["-S", "-gdb", f"tcp:127.0.0.1:{port}"]
        append += " nokaslr"
        # the debugger reads symbols from vmlinux, as the bzImage of x86 has none
        symbols = os.path.join(BUILD, *(["stock"] if args.stock else []), "linux", f".{args.arch}", "vmlinux")
        print("waiting for: gdb-multiarch " + shlex.join([symbols if not args.kernel else args.kernel, "-ex",
                                                          f"target remote 127.0.0.1:{port}"]), file=sys.stderr)
    return [*start, *debugger, "-accel", "tcg", "-cpu", args.cpu or arch.cpu,
            "-smp", str(args.smp), "-m", "1G", "-nodefaults", "-no-user-config",
            "-display", "none", "-no-reboot",
            "-kernel", kernel, *(["-initrd", initrd] if initrd else []), "-append", append.strip(),
            *shlex.split(os.environ.get("QEMU_ARGS", ""))]


def add_guest_options(parser):
    parser.add_argument("arch", choices=ARCHES, metavar="ARCH", help="powerpc or x86")
    parser.add_argument("--stock", action="store_true", help="boot the stock kernel instead of ours")
    parser.add_argument("--cpu", metavar="MODEL", help="emulated processor")
    parser.add_argument("--smp", type=int, default=1, metavar="N", help="number of CPUs (default: 1)")
    parser.add_argument("--add", metavar="DIR", help="copy the contents of DIR to /add in the guest")
    parser.add_argument("--kernel", metavar="FILE", help="boot this kernel image")
    parser.add_argument("--emulator", metavar="FILE", help="run this emulator")
    parser.add_argument("--gdb", action="store_true", help="wait for a debugger, and print the debugger's command")
    parser.add_argument("--show", action="store_true", help="print the emulator's command")
    parser.add_argument("--append", default="", metavar="ARGS", help="more kernel arguments")


def fail(status, sentence):
    print(f"{os.path.basename(sys.argv[0])}: {sentence}", file=sys.stderr)
    sys.exit(status)
