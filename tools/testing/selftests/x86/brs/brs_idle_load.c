// SPDX-License-Identifier: GPL-2.0
/*
 * Row B13, work for a machine that tells whether an interrupt was held while a
 * CPU was halted: sample all CPUs while two tasks on two CPUs wait for each
 * other, and let the period end everywhere around the CPUs' ways to idle.
 *
 * usage: brs_idle_load [ROUNDS]
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/wait.h>

#include "brs.h"

#define MAX_CPUS	8

/* primes, so that no round of the loop keeps in step */
static const uint64_t periods[] = { 1009, 337, 101 };

static void pass(int from, int to, long rounds, bool first, int cpu)
{
	char byte = 0;
	long i;

	brs_pin(cpu);
	if (first && write(to, &byte, 1) != 1)
		_exit(1);
	for (i = 0; i < rounds; i++) {
		if (read(from, &byte, 1) != 1)
			break;
		brs_mix(1 + i % 11);
		if (write(to, &byte, 1) != 1)
			break;
	}
}

static void ping_pong(long rounds, int cpus)
{
	int to[2], back[2];
	pid_t child;

	if (pipe(to) || pipe(back))
		exit(1);
	child = fork();
	if (!child) {
		close(to[1]);
		close(back[0]);
		pass(to[0], back[1], rounds, false, cpus - 1);
		_exit(0);
	}
	close(to[0]);
	close(back[1]);
	pass(back[0], to[1], rounds - 1, true, 0);
	close(to[1]);
	close(back[0]);
	waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 4000;
	int cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct brs_event e[MAX_CPUS];
	struct brs_sample s;
	size_t i;
	int cpu;

	if (cpus > MAX_CPUS)
		cpus = MAX_CPUS;
	for (i = 0; i < ARRAY_LEN(periods); i++) {
		unsigned int samples = 0, full = 0;

		for (cpu = 0; cpu < cpus; cpu++) {
			struct perf_event_attr attr = brs_attr(periods[i]);
			int err = brs_open(&e[cpu], &attr, -1, cpu, 1024);

			if (err) {
				fprintf(stderr, "brs_idle_load: %s\n", strerror(-err));
				return 1;
			}
			brs_start(&e[cpu]);
		}
		ping_pong(rounds, cpus);
		for (cpu = 0; cpu < cpus; cpu++) {
			brs_stop(&e[cpu]);
			while (brs_next(&e[cpu], &s)) {
				samples++;
				full += s.nr == BRS_DEPTH;
			}
			brs_close(&e[cpu]);
		}
		printf("period %llu: %u stacks, %u of them full\n",
		       (unsigned long long)periods[i], samples, full);
	}
	return 0;
}
