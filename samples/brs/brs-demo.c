// SPDX-License-Identifier: GPL-2.0
/*
 * A program to record with perf record -b: a loop that calls step(), which calls
 * count_rare() directly in one of four rounds, and count_common() through a
 * pointer in the other three.
 *
 * Each round takes five or six branches: two calls, two returns, the jump back,
 * and in one of four rounds the branch to the call of count_rare().
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
	asm volatile("" ::: "memory");	/* prevent tail calls by the compiler */
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
