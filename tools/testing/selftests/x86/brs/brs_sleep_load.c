// SPDX-License-Identifier: GPL-2.0
/*
 * Load for the behaviour B15: recording continues after suspend to RAM.  Samples a
 * task and a CPU, suspends, and checks that both events record branches afterwards.
 * The machine must be woken up from outside.
 *
 * usage: brs_sleep_load
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "brs.h"

#define STATE	"/sys/power/state"

/*
 * The minimum number of samples with an exact stack for brs_mix(100000).  Its
 * 800000 branches are 792 periods; an interrupt shortens a few stacks.
 */
#define EXACT	750

static void say(const char *when, const char *who, __u64 count, const struct brs_tally *t)
{
	printf("%s, the %s event | %llu | %lu | %lu\n", when, who,
	       (unsigned long long)count, t->samples, t->exact);
}

/* Sample brs_mix() by the task's event, and then again by the CPU's event. */
static bool record(struct brs_event e[2], const char *when)
{
	static const char *const who[] = { "task's", "CPU's" };
	bool good = true;
	int i;

	for (i = 0; i < 2; i++) {
		__u64 before = brs_count(e[i].fd), count;
		struct brs_tally t = {};

		brs_mix(100000);
		count = brs_count(e[i].fd) - before;
		brs_drain(&e[i], &t);
		say(when, who[i], count, &t);
		good &= t.exact >= EXACT && !t.wrong && count >= 799999;
		/*
		 * the task's and the CPU's event need the same counter: stop
		 * the task's event
		 */
		if (!i) {
			brs_stop(&e[0]);
			brs_start(&e[1]);
		}
	}
	return good;
}

int main(void)
{
	struct perf_event_attr attr = brs_attr(1009);
	struct brs_limits saved;
	struct brs_event e[2];
	struct brs_tally before = {}, t = {};
	__u64 count;
	bool good;
	int i;

	if (!brs_limits_lift(&saved)) {
		fprintf(stderr, "brs_sleep_load: needs root\n");
		return 1;
	}
	/* use CPU 0, which stays online during suspend */
	brs_pin(0);
	attr.exclude_kernel = 1;
	for (i = 0; i < 2; i++) {
		int err = brs_open(&e[i], &attr, i ? -1 : 0, i ? 0 : -1, 256);

		if (err) {
			fprintf(stderr, "brs_sleep_load: %s\n", strerror(-err));
			return 1;
		}
	}
	brs_start(&e[0]);
	good = record(e, "before");

	/* suspend the machine while the CPU's event is running */
	if (!brs_write_file(STATE, "mem")) {
		fprintf(stderr, "brs_sleep_load: %s: %s\n", STATE, strerror(errno));
		return 3;
	}
	brs_pin(0);
	brs_drain(&e[1], &before);
	count = brs_count(e[1].fd);
	brs_mix(100000);
	brs_drain(&e[1], &t);
	say("after, not started anew", "CPU's", brs_count(e[1].fd) - count, &t);
	good &= t.exact >= EXACT && !t.wrong;

	brs_stop(&e[1]);
	brs_start(&e[0]);
	good &= record(e, "after");
	brs_limits_restore(&saved);
	printf("recording went on: %s\n", good ? "yes" : "no");
	return !good;
}
