// SPDX-License-Identifier: GPL-2.0
/*
 * Work for a machine that counts what the kernel does: sample a program of user
 * branches and system calls, user and kernel together, and say how many stacks
 * of how many entries that has given.  With period 0 the same without sampling.
 * With "idle" instead of a period, sleep as often, without any event.
 *
 * usage: brs_cost_load PERIOD|idle LOOPS
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "brs.h"

int main(int argc, char **argv)
{
	unsigned int samples = 0, full = 0, lost = 0;
	struct perf_event_attr attr;
	struct brs_limits saved;
	struct brs_sample s;
	struct brs_event e;
	__u64 period;
	long loops;
	int err;

	if (argc != 3) {
		fprintf(stderr, "usage: brs_cost_load PERIOD|idle LOOPS\n");
		return 2;
	}
	if (!strcmp(argv[1], "idle")) {
		struct timespec shortly = { .tv_nsec = 2000000 };

		for (loops = atol(argv[2]); loops > 0; loops--)
			nanosleep(&shortly, NULL);
		printf("stacks 0 full 0 lost 0\n");
		return 0;
	}
	period = strtoull(argv[1], NULL, 0);
	loops = atol(argv[2]);

	if (!brs_limits_lift(&saved)) {
		fprintf(stderr, "brs_cost_load: needs root\n");
		return 1;
	}
	attr = brs_attr(period ? period : 100003);
	err = brs_open(&e, &attr, 0, -1, 4096);
	if (err) {
		fprintf(stderr, "brs_cost_load: %s\n", strerror(-err));
		brs_limits_restore(&saved);
		return 1;
	}
	if (period)
		brs_start(&e);
	brs_mixed_calls(loops);
	if (period)
		brs_stop(&e);
	while (brs_next(&e, &s)) {
		samples++;
		full += s.nr == BRS_DEPTH;
	}
	lost = e.lost;
	brs_close(&e);
	brs_limits_restore(&saved);
	printf("stacks %u full %u lost %u\n", samples, full, lost);
	return 0;
}
