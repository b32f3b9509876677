// SPDX-License-Identifier: GPL-2.0
/*
 * A program to record with perf record -b: a loop that calls step(), which calls
 * one of two functions: count_rare() in one of four loops, directly, and
 * otherwise count_common(), by a pointer.
 *
 * Each loop takes five or six branches: two calls, two returns, the jump back,
 * and in one of four loops the branch to the call of count_rare().
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
	asm volatile("" ::: "memory");	/* keep the compiler from making tail calls */
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
