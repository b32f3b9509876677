// SPDX-License-Identifier: GPL-2.0
/*
 * Row B15: sample a task and a CPU, suspend to RAM, and see whether both go on
 * recording afterwards.  Somebody else has to wake the machine up.
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
 * Of brs_mix(100000), 800000 branches: there are 792 samples, a few of which an
 * interrupt makes short.  Others come from this program's own code.
 */
#define EXACT	750

static void say(const char *when, const char *who, __u64 count, const struct brs_tally *t)
{
	printf("%s, the %s event | %llu | %lu | %lu\n", when, who,
	       (unsigned long long)count, t->samples, t->exact);
}

/* Samples of 800000 branches, for both kinds of events one after the other */
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
		/* the task's turn is over: one counter is all there is */
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
	/* the CPU that stays online */
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

	/* asleep with the CPU's event running */
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
