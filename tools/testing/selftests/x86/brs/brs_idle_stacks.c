// SPDX-License-Identifier: GPL-2.0
/*
 * Load for the behaviour B13: no branch stack crosses HLT or MWAIT.  Samples all
 * CPUs, which go idle again and again, until there are STACKS branch stacks for
 * each PERIOD, and prints how many of the stacks cross HLT or MWAIT.
 *
 * usage: brs_idle_stacks STACKS PERIOD...
 *
 * With two CPUs, two tasks wait for each other; with one CPU, a task repeatedly
 * sleeps for a short time.  Fails if a period gives fewer stacks than STACKS.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "brs.h"

#define MAX_CPUS	8
#define ROUNDS		2000	/* rounds of idling before each reading of the ring buffers */
#define SLEEP		1000	/* nanoseconds */

static bool idle_often(int cpus)
{
	struct timespec sleep = { .tv_nsec = SLEEP };
	int i;

	if (cpus > 1)
		return brs_ping_pong(0, cpus - 1, ROUNDS);
	for (i = 0; i < ROUNDS; i++) {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &sleep, NULL);
		brs_mix(1 + i % 11);
	}
	return true;
}

/* Print the branches of a stack that crosses HLT or MWAIT, newest first. */
static void print_stack(const struct brs_sample *s)
{
	__u64 i;

	for (i = 0; i < s->nr; i++)
		fprintf(stderr, "%#llx %s -> %#llx %s\n",
			(unsigned long long)s->branch[i].from, brs_symbol(s->branch[i].from),
			(unsigned long long)s->branch[i].to, brs_symbol(s->branch[i].to));
}

static bool sample_idle(__u64 period, unsigned long wanted, int cpus)
{
	unsigned long stacks = 0, full = 0, across = 0, before, lost = 0;
	struct perf_event_attr attr = brs_attr(period);
	struct brs_event e[MAX_CPUS];
	struct brs_sample s;
	int cpu, err, opened;

	for (opened = 0; opened < cpus; opened++) {
		err = brs_open(&e[opened], &attr, -1, opened, 4096);
		if (err) {
			fprintf(stderr, "brs_idle_stacks: %s\n", strerror(-err));
			goto close;
		}
	}
	do {
		before = stacks;
		for (cpu = 0; cpu < cpus; cpu++)
			brs_start(&e[cpu]);
		err = !idle_often(cpus);
		for (cpu = 0; cpu < cpus; cpu++) {
			brs_stop(&e[cpu]);
			while (brs_next(&e[cpu], &s)) {
				stacks++;
				full += s.nr == BRS_DEPTH;
				if (brs_crosses_idle(&s)) {
					across++;
					print_stack(&s);
				}
			}
		}
	} while (!err && stacks > before && stacks < wanted);
	for (cpu = 0; cpu < cpus; cpu++)
		lost += e[cpu].lost;
	printf("period %llu: stacks %lu full %lu across_idle %lu lost %lu\n",
	       period, stacks, full, across, lost);
	fflush(stdout);
	err = err || stacks < wanted;
close:
	while (opened--)
		brs_close(&e[opened]);
	return !err;
}

int main(int argc, char **argv)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN), i;
	struct brs_limits limits;
	bool good = true;

	if (argc < 3) {
		fprintf(stderr, "usage: brs_idle_stacks STACKS PERIOD...\n");
		return 2;
	}
	if (cpus > MAX_CPUS)
		cpus = MAX_CPUS;
	if (!brs_symbols_load()) {
		fprintf(stderr, "brs_idle_stacks: /proc/kallsyms has no addresses\n");
		return 1;
	}
	brs_limits_lift(&limits);
	for (i = 2; i < argc; i++)
		good &= sample_idle(strtoull(argv[i], NULL, 0), strtoul(argv[1], NULL, 0), cpus);
	brs_limits_restore(&limits);
	return !good;
}
