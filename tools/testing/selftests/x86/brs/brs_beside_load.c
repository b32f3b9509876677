// SPDX-License-Identifier: GPL-2.0
/*
 * Sample a loop of system calls by a BRS event and by another event at the same
 * time, and print the numbers of interrupts, of branch stacks, and of samples of
 * the other event.  For scripts that compare kernels.
 *
 * usage: brs_beside_load CONFIG PERIOD LOOPS [user]
 *
 * CONFIG and PERIOD are the code and the period of the other event; with PERIOD
 * 0 there is no other event.  With "user" both events exclude the kernel.  Exits
 * with 4 on a machine without BRS.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "brs.h"

#define BRS_PERIOD	5003

int main(int argc, char **argv)
{
	struct perf_event_attr attr = brs_attr(BRS_PERIOD), other = brs_attr(BRS_PERIOD);
	struct brs_tally t = {};
	unsigned long before, others = 0;
	struct brs_event e, o;
	struct brs_sample s;

	if (argc < 4)
		return 2;
	if (!brs_present())
		return 4;

	other.config = strtoull(argv[1], NULL, 0);
	other.sample_period = strtoull(argv[2], NULL, 0);
	other.sample_type = PERF_SAMPLE_IP;
	other.branch_sample_type = 0;
	attr.exclude_kernel = argc > 4 && !strcmp(argv[4], "user");
	other.exclude_kernel = attr.exclude_kernel;

	if (brs_open(&e, &attr, 0, -1, 4096))
		return 1;
	if (other.sample_period && brs_open(&o, &other, 0, -1, 4096))
		return 1;

	before = brs_interrupts();
	if (other.sample_period)
		brs_start(&o);
	brs_start(&e);
	brs_mixed_calls(atol(argv[3]));
	brs_stop(&e);
	if (other.sample_period)
		brs_stop(&o);
	before = brs_interrupts() - before;

	brs_drain(&e, &t);
	while (other.sample_period && brs_next(&o, &s))
		others++;
	printf("interrupts %lu stacks %lu full %lu others %lu\n",
	       before, t.samples, t.full, others);
	return 0;
}
