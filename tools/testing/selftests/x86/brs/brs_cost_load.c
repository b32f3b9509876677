// SPDX-License-Identifier: GPL-2.0
/*
 * Load for an emulator that counts the kernel's instructions: sample a loop of
 * user branches and system calls, user and kernel together.  Prints the number of
 * stacks, of full stacks, and of full stacks without a branch of the PMU's own
 * interrupt.  With PERIOD 0 the loop runs without sampling.
 *
 * usage: brs_cost_load PERIOD LOOPS
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "brs.h"

int main(int argc, char **argv)
{
	unsigned int samples = 0, full = 0, clean = 0;
	struct perf_event_attr attr;
	struct brs_limits saved;
	struct brs_sample s;
	struct brs_event e;
	__u64 period;
	long loops;
	size_t at;
	int err;

	if (argc != 3) {
		fprintf(stderr, "usage: brs_cost_load PERIOD LOOPS\n");
		return 2;
	}
	period = strtoull(argv[1], NULL, 0);
	loops = atol(argv[2]);

	if (!brs_limits_lift(&saved)) {
		fprintf(stderr, "brs_cost_load: needs root\n");
		return 1;
	}
	if (!brs_symbols_load()) {
		fprintf(stderr, "brs_cost_load: /proc/kallsyms has no addresses\n");
		return 1;
	}
	attr = brs_attr(period ? period : 100003);
	err = brs_open(&e, &attr, 0, -1, 4096);
	if (err) {
		fprintf(stderr, "brs_cost_load: %s\n", strerror(-err));
		brs_limits_restore(&saved);
		return 1;
	}
	/* touch the ring buffer's pages now, to prevent page faults during sampling */
	for (at = 0; at < e.size; at += getpagesize())
		(void)*((volatile char *)e.page + at);
	if (period)
		brs_start(&e);
	brs_mixed_calls(loops);
	if (period)
		brs_stop(&e);
	while (brs_next(&e, &s)) {
		samples++;
		full += s.nr == BRS_DEPTH;
		clean += s.nr == BRS_DEPTH && !brs_nmi_function(&s);
	}
	brs_close(&e);
	brs_limits_restore(&saved);
	printf("stacks %u full %u clean %u lost %llu\n", samples, full, clean, e.lost);
	return 0;
}
