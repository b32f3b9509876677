# SPDX-License-Identifier: GPL-2.0
"""Run jobs in guests with a Debian root file system, whose disk debian_root.py makes.

A job is an archive on the disk; the guest writes an archive with the results there.
"""
import argparse
import contextlib
import glob
import io
import os
import shutil
import subprocess
import tarfile
import typing

import guest
import ktap
from guest import run
from machine import TROUBLE
from project import BUILD


class Debian(typing.NamedTuple):
    """The differences between the Debian guests of the two architectures."""

    name: str       # Debian's name of the architecture
    machine: str    # the name that uname -m prints
    package: str    # Debian's package of the kernel
    drivers: list   # kernel modules for the disk
    disk: list      # arguments of the emulator for the disk


DEBIAN = {
    "powerpc": Debian("ppc64el", "ppc64le", "linux-image-powerpc64le", ["ibmvscsi", "sd_mod", "ext4"],
                      ["-device", "spapr-vscsi,id=disks", "-device", "scsi-hd,drive=disk,bus=disks.0"]),
    "x86": Debian("amd64", "x86_64", "linux-image-amd64", ["ahci", "sd_mod", "ext4"],
                  ["-device", "ide-hd,drive=disk,bus=ide.0"]),
}


class Done(typing.NamedTuple):
    """A job that has run in a guest."""

    status: int     # the job's exit status, None if the guest ended before the job did
    output: str     # the job's output
    trouble: str    # the first line in which the kernel tells of trouble, or an empty string
    out: str        # a directory with the files that the job has put into /run/out


class Kernel(typing.NamedTuple):
    """A kernel image and its initramfs."""

    image: str
    initrd: str     # an empty string if the kernel needs none


def make_job(path, script, files):
    """Write the archive with a job's script and {name: file or directory of the host}."""
    with tarfile.open(path, "w") as archive:
        for name, source in files.items():
            archive.add(source, name)
        job = tarfile.TarInfo("job")
        job.size = len(script.encode())
        archive.addfile(job, io.BytesIO(script.encode()))


def disk_files(disk, *commands):
    """Change or read files on a disk that no guest uses, by commands of debugfs."""
    # replay the journal: debugfs does not write to a file system with a journal to replay
    subprocess.run(["/sbin/e2fsck", "-fy", disk], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    for command in commands:
        run("/sbin/debugfs", "-w", "-R", command, disk, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def boot(arch, disk, kernel, script, files=None, cpu=None, keep=False, smp=1, timeout=3600):
    """Run a shell script in a guest with a Debian disk; with keep, keep its changes to the disk."""
    work = os.path.join(os.path.dirname(disk), "job")
    shutil.rmtree(work, ignore_errors=True)
    out = os.path.join(work, "out")
    os.makedirs(out)
    job, answer, console, copy = (os.path.join(work, name) for name in ("in.tar", "out.tar", "console.log", "disk"))
    if not keep:
        run("cp", "--sparse=always", disk, copy)
        disk = copy
    make_job(job, script, files or {})
    disk_files(disk, "rm /job.tar", "rm /answer.tar", f'write "{job}" /job.tar')
    args = argparse.Namespace(arch=arch, stock=False, cpu=cpu, smp=smp, kernel=kernel.image, emulator=None, gdb=False,
                              append="root=/dev/sda rw init=/usr/local/sbin/debian-init")
    command = [*guest.emulator_command(args, kernel.initrd), "-m", "2G", *DEBIAN[arch].disk,
               "-drive", f"if=none,id=disk,file={disk.replace(',', ',,')},format=raw,cache=unsafe",
               "-serial", f"file:{console.replace(',', ',,')}"]
    try:
        with open(os.path.join(work, "emulator.log"), "wb") as words:
            run(*command, stdin=subprocess.DEVNULL, stdout=words, stderr=words, timeout=timeout)
    except subprocess.TimeoutExpired:
        print(f"# the guest did not end within {timeout} s: {os.path.relpath(console)}")
    with open(console, "rb") as f:
        found = TROUBLE.search(f.read())
    trouble = found[0].decode(errors="replace").strip() if found else ""
    disk_files(disk, f'dump /answer.tar "{answer}"')
    # a guest that died or was ended in time has left no archive, or not a whole one
    whole = os.path.exists(answer) and subprocess.run(["tar", "-xf", answer, "-C", out], check=False).returncode == 0
    for path in (job, answer, *([] if keep else [copy])):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    if not whole or not os.path.exists(os.path.join(out, "status")):
        return Done(None, "", trouble, out)
    with open(os.path.join(out, "output"), encoding="utf-8", errors="replace") as f:
        output = f.read()
    with open(os.path.join(out, "status"), encoding="utf-8") as f:
        status = int(f.read())
    return Done(status, output, trouble, out)


def packages(arch, pattern="linux-*.deb"):
    """Return the packages that scripts/build-deb has made."""
    return sorted(glob.glob(os.path.join(glob.escape(os.path.join(BUILD, "deb", arch)), pattern)))


def take_kernel(done, version, folder):
    """Keep the kernel and the initramfs that a job has copied from /boot."""
    kernel = Kernel(*(os.path.join(folder, f"{name}-{version}") for name in ("vmlinuz", "initrd.img")))
    image = glob.glob(os.path.join(glob.escape(done.out), f"vmlinu?-{version}"))[0]
    shutil.copy(image, kernel.image)
    shutil.copy(os.path.join(done.out, f"initrd.img-{version}"), kernel.initrd)
    return kernel


def fail(done, sentence):
    raise guest.GuestError(f"{sentence}: {done.trouble or done.output[-2000:]}")


def check_each(check):
    """Call check(report, arch) for each architecture; return the exit status for the test program."""
    report = ktap.Writer()
    for arch in DEBIAN:
        try:
            check(report, arch)
        except (guest.GuestError, subprocess.CalledProcessError) as error:
            print(f"# {error}")
            report.check(f"guest ({arch})", False)
    return report.end()
