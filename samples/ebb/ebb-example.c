// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A small program that takes event-based branches (EBB): when a counter of the PMU
 * overflows, the processor branches to handler().
 */
#include <err.h>
#include <stdio.h>

#include "ebb.h"

/* The code of an event that counts instructions (0x02) on PMC1 */
#define EVENT	(EBB_EVENT_PMC(1) | 0x02)
#define PERIOD	100000

static unsigned long ebbs;

static void handler(struct ebb_regs *regs)
{
	(void)regs;
	ebbs++;
	ebb_set_period(1, PERIOD);
	ebb_rearm();
}

int main(void)
{
	unsigned long i, sum = 0;
	int fd;

	if (!ebb_available())
		errx(1, "no event-based branches on this machine");

	fd = ebb_open(EVENT, 0, -1);
	if (fd < 0)
		err(1, "the event was refused");
	if (ebb_start(fd))
		err(1, "the event did not get the PMU");

	ebb_enable(handler);
	ebb_set_period(1, PERIOD);
	ebb_rearm();

	for (i = 0; i < 10000000; i++)
		sum += i ^ sum << 1;

	ebb_disable();
	close(fd);

	printf("%lu event based branches (sum %lu)\n", ebbs, sum);
	return ebbs ? 0 : 1;
}
