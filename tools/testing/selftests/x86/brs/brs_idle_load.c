// SPDX-License-Identifier: GPL-2.0
/*
 * Load for the behaviour B13: no PMU interrupt is held while its CPU is halted.
 * For an emulator that counts held interrupts.  Samples all CPUs while two tasks on
 * two CPUs wait for each other, so that periods end everywhere in the code with
 * which CPUs enter and leave idle.
 *
 * usage: brs_idle_load [ROUNDS [offline]]
 *
 * With "offline", CPU 1 goes offline and online again five times for each period,
 * while all CPUs are sampled.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "brs.h"

#define MAX_CPUS	8
#define TOGGLES		5
#define ONLINE		"/sys/devices/system/cpu/cpu1/online"

/* prime numbers as periods, so that samples do not always hit the same branch */
static const __u64 periods[] = { 1009, 337, 101 };

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 4000;
	bool offline = argc > 2 && !strcmp(argv[2], "offline");
	int cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct brs_event e[MAX_CPUS];
	size_t i;
	int cpu, n;

	if (cpus > MAX_CPUS)
		cpus = MAX_CPUS;
	for (i = 0; i < ARRAY_LEN(periods); i++) {
		struct brs_tally t = {};

		for (cpu = 0; cpu < cpus; cpu++) {
			struct perf_event_attr attr = brs_attr(periods[i]);
			int err = brs_open(&e[cpu], &attr, -1, cpu, 1024);

			if (err) {
				fprintf(stderr, "brs_idle_load: %s\n", strerror(-err));
				return 1;
			}
			brs_start(&e[cpu]);
		}
		if (!brs_ping_pong(0, cpus - 1, rounds))
			return 1;
		for (n = 0; offline && n < TOGGLES; n++) {
			if (!brs_write_file(ONLINE, "0") || !brs_write_file(ONLINE, "1")) {
				fprintf(stderr, "brs_idle_load: %s\n", ONLINE);
				return 1;
			}
			if (!brs_ping_pong(0, cpus - 1, rounds / TOGGLES))
				return 1;
		}
		for (cpu = 0; cpu < cpus; cpu++) {
			brs_stop(&e[cpu]);
			brs_drain(&e[cpu], &t);
			brs_close(&e[cpu]);
		}
		printf("period %llu: %lu stacks, %lu of them full\n",
		       periods[i], t.samples, t.full);
	}
	return 0;
}
