# SPDX-License-Identifier: GPL-2.0
"""Make disks with Debian, for debian.py.

build/debian/ARCH/ holds root.img, a disk with Debian 13, and Debian's own kernel.
debootstrap makes the disk.  Its second stage runs in the emulator or, if root runs
this on a machine of the same architecture, on the machine, which is quicker.  The
kernel is unpacked, with an initramfs for the modules that mount the disk, as
installing its package in the emulator takes a quarter of an hour.
"""
import glob
import os
import re
import shutil
import subprocess

import guest
from debian import DEBIAN, Kernel, boot, disk_files, fail, packages, run, take_kernel
from project import BUILD, CACHE, TOP

RELEASE = "trixie"
SIZE = "4G"
# The first process of the Debian guests: its path on the disk, and its source
INIT, INIT_SOURCE = "/usr/local/sbin/debian-init", os.path.join(TOP, "scripts", "lib", "debian-init")
# The first process of the initramfs with which Debian's kernel is booted
FIRST_INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /dev /proc /root
/bin/busybox mount -t devtmpfs devtmpfs /dev
for module in /modules/*; do /bin/busybox insmod $module; done
until /bin/busybox mount -t ext4 /dev/sda /root; do /bin/busybox usleep 100000; done
/bin/busybox umount /dev
exec /bin/busybox switch_root /root """ + INIT + "\n"


def unpack_kernel(arch, package, folder):
    """Unpack Debian's kernel from its package, and make an initramfs with the modules for the disk."""
    run("dpkg-deb", "-x", package, folder)
    image, = glob.glob(os.path.join(glob.escape(folder), "boot", "vmlinu*"))
    version = re.sub(r"^vmlinu.-", "", os.path.basename(image))
    tools = {**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}
    # depmod reads lib/modules, which a package for a merged /usr has in usr/lib/modules
    if not os.path.exists(os.path.join(folder, "lib")):
        os.symlink("usr/lib", os.path.join(folder, "lib"))
    run("depmod", "-b", folder, version, env=tools)
    tree = os.path.join(folder, "initramfs")
    os.makedirs(os.path.join(tree, "modules"))
    os.makedirs(os.path.join(tree, "bin"))
    shutil.copy2(guest.busybox(arch), os.path.join(tree, "bin", "busybox"))
    for driver in DEBIAN[arch].drivers:
        said = run("modprobe", "-d", folder, "-S", version, "--show-depends", driver, env=tools,
                   stdout=subprocess.PIPE, text=True).stdout
        for module in re.findall(r"^insmod (\S+)", said, re.M):
            name = os.path.basename(module).removesuffix(".xz")
            place = os.path.join(tree, "modules")
            if not any(other.endswith("-" + name) for other in os.listdir(place)):
                with open(os.path.join(place, f"{len(os.listdir(place)):02}-{name}"), "wb") as f:
                    run("xz" if module.endswith(".xz") else "cat", *(["-dc"] if module.endswith(".xz") else []), module,
                        stdout=f)
    with open(os.path.join(tree, "init"), "w", encoding="utf-8") as f:
        f.write(FIRST_INIT)
    os.chmod(os.path.join(tree, "init"), 0o755)
    initrd = os.path.join(folder, "initramfs.cpio")
    with open(initrd, "wb") as archive:
        guest.pack(archive, tree, ".")
    shutil.copy(image, os.path.join(folder, "kernel"))


def root(arch):
    """Return the disk with Debian, and Debian's kernel; make them if they are missing."""
    folder = os.path.join(BUILD, "debian", arch)
    disk = os.path.join(folder, "root.img")
    kernel = Kernel(os.path.join(folder, "first", "kernel"), os.path.join(folder, "first", "initramfs.cpio"))
    if not os.path.exists(disk):
        make_root(arch, folder, disk, kernel)
    # an old disk can contain another version of the first process
    disk_files(disk, f"rm {INIT}", f'write "{INIT_SOURCE}" {INIT}')
    return disk, kernel


def make_root(arch, folder, disk, kernel):
    """Make a disk with Debian by debootstrap; rename the disk to its final name when it is complete."""
    debian = DEBIAN[arch]
    print(f"# making a Debian root file system for {arch}: build/debian/{arch}", flush=True)
    run(os.path.join(TOP, "scripts", "install-packages"), "debian")
    shutil.rmtree(folder, ignore_errors=True)
    downloads = os.path.join(CACHE, "debootstrap")
    os.makedirs(downloads, exist_ok=True)
    os.makedirs(folder)
    site = run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages",
               stdout=subprocess.PIPE, text=True).stdout
    site = re.search(r"^\S*/debian/?$", site, re.M)
    native = os.geteuid() == 0 and os.uname().machine == debian.machine
    script = """set -e
        tree=$1/tree
        debootstrap --foreign --variant=minbase --arch="$2" --cache-dir="$3" \\
            --include=initramfs-tools,kmod,"$4" "$5" "$tree" "$6"
        install -D -m 755 "$7" "$tree/usr/local/sbin/debian-init"
        mkdir -p "$tree/etc/dpkg/dpkg.cfg.d" "$tree/etc/initramfs-tools/conf.d"
        echo force-unsafe-io > "$tree/etc/dpkg/dpkg.cfg.d/emulator"
        # include only the machine's drivers in the initramfs, which is quicker
        printf 'MODULES=list\nCOMPRESS=gzip\n' > "$tree/etc/initramfs-tools/conf.d/emulator"
        # do not install the kernel's package
        sed -i 's/linux-image-[^ ]*//g' "$tree/debootstrap/base"
        mv "$tree"/var/cache/apt/archives/linux-image-[0-9]*.deb "$1/"
        [ -z "$9" ] || chroot "$tree" /debootstrap/debootstrap --second-stage
        mkfs.ext4 -q -d "$tree" "$1/part.img" "$8"
        rm -rf --one-file-system "$tree"
    """
    with open(os.path.join(folder, "debootstrap.log"), "wb") as log:
        run(*([] if native else ["fakeroot"]), "sh", "-c", script, "sh", folder, debian.name, downloads, debian.package,
            RELEASE, site[0] if site else "http://deb.debian.org/debian",
            INIT_SOURCE, SIZE, "native" if native else "",
            stdout=log, stderr=log, env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"})
    package, = glob.glob(os.path.join(glob.escape(folder), "linux-image-*.deb"))
    unpacked = os.path.join(folder, "unpacked")
    unpack_kernel(arch, package, unpacked)
    os.makedirs(os.path.dirname(kernel.image))
    for path in kernel:
        os.rename(os.path.join(unpacked, os.path.basename(path)), path)
    shutil.rmtree(unpacked)
    os.unlink(package)
    part = os.path.join(folder, "part.img")
    second = "" if native else "/debootstrap/debootstrap --second-stage\n"
    done = boot(arch, part, kernel, keep=True, timeout=7200, script=f"set -e; {second} apt-get clean\n")
    if done.status != 0:
        fail(done, "the second stage of debootstrap failed")
    os.rename(part, disk)


def with_our_packages(arch):
    """Return a copy of the Debian disk with our packages installed, our kernel, and the kernel's version."""
    disk, distribution = root(arch)
    folder = os.path.join(BUILD, "debian", arch + "-ours")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    copy = os.path.join(folder, "root.img")
    run("cp", "--sparse=always", disk, copy)
    files = {os.path.basename(path): path for path in packages(arch) if "linux-libc-dev" not in path}
    done = boot(arch, copy, distribution, files=files, keep=True,
                script="set -e; dpkg -i ./linux-image-*.deb ./linux-perf-*.deb; cp /boot/*ebb-brs* /run/out/\n")
    if done.status != 0:
        fail(done, "the packages cannot be installed")
    version = next(name.removeprefix("initrd.img-") for name in os.listdir(done.out) if name.startswith("initrd"))
    return copy, take_kernel(done, version, folder), version
