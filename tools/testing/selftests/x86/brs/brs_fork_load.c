// SPDX-License-Identifier: GPL-2.0
/*
 * Load for a debug kernel: programs fork and exec on all CPUs while BRS events
 * sample user and kernel.  There is an event on each CPU, and one event that
 * child processes inherit.  CPU 1 goes offline at times.
 *
 * usage: brs_fork_load SECONDS
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <sys/wait.h>

#include "brs.h"

#define MAX_CPUS	8
#define ONLINE		"/sys/devices/system/cpu/cpu1/online"

/* prime numbers as periods, so that samples do not always hit the same branch */
static const __u64 periods[] = { 10007, 1009, 337, 20011 };

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/*
 * Start three children: the first child only runs, the second child executes a
 * program, and the third child starts a child of its own.
 */
static bool fork_some(char *self)
{
	int i, status;
	bool good = true;

	for (i = 0; i < 3; i++) {
		pid_t child = fork();

		if (child < 0)
			return false;
		if (child)
			continue;
		if (i == 1)
			execl(self, self, "0", (char *)NULL);
		if (i == 2 && !fork()) {
			brs_mix(500);
			_exit(0);
		}
		brs_mixed_calls(200);
		if (i == 2)
			wait(NULL);
		_exit(i == 1);
	}
	while (wait(&status) > 0)
		good &= !status;
	return good;
}

int main(int argc, char **argv)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN), cpu, err;
	struct brs_event e[MAX_CPUS], inherited;
	unsigned long rounds = 0;
	struct brs_tally sums = {};
	long end;

	if (argc != 2) {
		fprintf(stderr, "usage: brs_fork_load SECONDS\n");
		return 2;
	}
	if (!atol(argv[1]))
		return 0;	/* a child has executed this program with 0 SECONDS: end */
	end = now() + atol(argv[1]);
	if (cpus > MAX_CPUS)
		cpus = MAX_CPUS;

	while (now() < end) {
		struct perf_event_attr attr = brs_attr(periods[rounds % ARRAY_LEN(periods)]);
		int i;

		for (cpu = 0; cpu < cpus; cpu++) {
			err = brs_open(&e[cpu], &attr, -1, cpu, 256);
			if (err)
				goto failed;
			brs_start(&e[cpu]);
		}
		attr.inherit = 1;
		err = brs_open(&inherited, &attr, 0, 0, 256);
		if (err)
			goto failed;
		brs_start(&inherited);
		for (i = 0; i < 20; i++) {
			if (!fork_some(argv[0])) {
				fprintf(stderr, "brs_fork_load: a child process failed\n");
				return 1;
			}
			/*
			 * when the event of CPU 0 is stopped, the task's event
			 * gets the counter
			 */
			if (i % 4 == 3) {
				brs_stop(&e[0]);
				brs_mix(1000);
				brs_start(&e[0]);
			}
			for (cpu = 0; cpu < cpus; cpu++)
				brs_drain(&e[cpu], &sums);
			brs_drain(&inherited, &sums);
		}
		if (rounds % 5 == 4)
			brs_write_file(ONLINE, "0");
		brs_close(&inherited);
		for (cpu = 0; cpu < cpus; cpu++)
			brs_close(&e[cpu]);
		if (rounds % 5 == 4)
			brs_write_file(ONLINE, "1");
		rounds++;
	}
	printf("rounds %lu stacks %lu full %lu empty %lu\n",
	       rounds, sums.samples, sums.full, sums.empty);
	return 0;
failed:
	fprintf(stderr, "brs_fork_load: %s\n", strerror(-err));
	return 1;
}
