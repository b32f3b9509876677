// SPDX-License-Identifier: GPL-2.0
/*
 * Load for the behaviour B15: BRS works after kexec and after a crash.  Starts
 * another kernel while BRS events sample all CPUs, user and kernel.  With "crash",
 * the running kernel crashes, and so does not stop the events first.
 *
 * usage: brs_kexec_load KERNEL INITRD ARGUMENTS [crash]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <linux/kexec.h>
#include <linux/reboot.h>
#include <sys/reboot.h>
#include <sys/syscall.h>

#include "brs.h"

#define MAX_CPUS	8

int main(int argc, char **argv)
{
	bool crash = argc == 5 && !strcmp(argv[4], "crash");
	int cpus = sysconf(_SC_NPROCESSORS_ONLN), cpu, fd[2], i;
	struct brs_event e[MAX_CPUS];
	struct brs_limits limits;
	struct brs_tally t = {};
	char said[80];

	if (argc != 4 && !crash) {
		fprintf(stderr, "usage: brs_kexec_load KERNEL INITRD ARGUMENTS [crash]\n");
		return 2;
	}
	for (i = 0; i < 2; i++) {
		fd[i] = open(argv[1 + i], O_RDONLY | O_CLOEXEC);
		if (fd[i] < 0) {
			perror(argv[1 + i]);
			return 1;
		}
	}
	if (syscall(SYS_kexec_file_load, fd[0], fd[1], strlen(argv[3]) + 1, argv[3],
		    crash ? KEXEC_FILE_ON_CRASH : 0UL)) {
		perror("brs_kexec_load: kexec_file_load");
		return 1;
	}

	if (cpus > MAX_CPUS)
		cpus = MAX_CPUS;
	/* Interrupts take long on a busy host: keep the kernel from throttling the events */
	brs_limits_lift(&limits);
	for (cpu = 0; cpu < cpus; cpu++) {
		struct perf_event_attr attr = brs_attr(1009);
		int err = brs_open(&e[cpu], &attr, -1, cpu, 256);

		if (err) {
			fprintf(stderr, "brs_kexec_load: %s\n", strerror(-err));
			return 1;
		}
		brs_start(&e[cpu]);
	}
	brs_mix(100000);
	for (cpu = 0; cpu < cpus; cpu++)
		brs_drain(&e[cpu], &t);
	/* Print to the kernel log, as standard output can be lost when this kernel ends */
	snprintf(said, sizeof(said), "brs_kexec_load: stacks %lu full %lu\n", t.samples, t.full);
	brs_write_file("/dev/kmsg", said);

	if (crash)
		brs_write_file("/proc/sysrq-trigger", "c");
	else
		reboot(LINUX_REBOOT_CMD_KEXEC);
	perror("brs_kexec_load");
	return 1;
}
