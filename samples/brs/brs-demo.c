// SPDX-License-Identifier: GPL-2.0
/*
 * A program to look at with perf record -b: a loop that calls two functions,
 * one of them by way of a pointer, and takes one of two ways through.
 *
 * Five taken branches a loop, six in one of four: the calls, the returns, the
 * jump back, and the way that is taken rarely.
 */
#include <stdio.h>
#include <stdlib.h>

#define LOOPS	2000000

static unsigned long even, odd;

static __attribute__((noipa)) void count_rare(void)
{
	odd++;
}

static __attribute__((noipa)) void count_common(void)
{
	even++;
}

static __attribute__((noipa)) void step(unsigned long i, void (*count)(void))
{
	if (i % 4 == 0)
		count_rare();
	else
		count();
	asm volatile("" ::: "memory");	/* no tail calls: they would be jumps */
}

int main(int argc, char **argv)
{
	unsigned long loops = argc > 1 ? strtoul(argv[1], NULL, 0) : LOOPS;
	unsigned long i;

	for (i = 0; i < loops; i++)
		step(i, count_common);
	printf("%lu common, %lu rare\n", even, odd);
	return 0;
}
