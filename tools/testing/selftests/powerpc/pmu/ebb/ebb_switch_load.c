// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Let two tasks take turns on one CPU, so that scripts can measure the cost of a
 * context switch, in time or from the statistics of an emulator.
 *
 * usage: ebb_switch_load plain|ebb|mixed|idle|descendant COUNT
 *
 * Each task switches to the other task COUNT times.
 *
 * plain: neither task uses EBB
 * ebb: both tasks have an EBB event
 * mixed: a task with an EBB event, and a plain task
 * idle: both tasks have used the EBB facility, but have no event
 * descendant: a plain task whose parent has used the EBB facility, and a plain
 *	task whose parent had not used it
 */
#define _GNU_SOURCE
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "ebb_test.h"

static unsigned long count;

static void become_user(bool event)
{
	if (event) {
		/* Freeze the counters of the new event, so that the task takes no EBB. */
		if (begin(1) < 0)
			err(1, "no EBB event");
		ebb_mtspr(EBB_SPR_MMCR0, EBB_MMCR0_FC);
	}
	ebb_mtspr(EBB_SPR_EBBRR, 0x1000);
	ebb_mtspr(EBB_SPR_BESCRS, EBB_BESCR_PME);
}

static int answer(struct parent *parent, void *arg)
{
	const char *kind = arg;
	unsigned long i;

	if (strcmp(kind, "plain") && strcmp(kind, "descendant"))
		become_user(strcmp(kind, "idle"));
	if (parent_tell(parent))
		return 1;
	for (i = 0; i < count; i++) {
		if (parent_wait(parent) || parent_tell(parent))
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long i, rounds;
	struct child child;
	int status = 0;
	pid_t pid = 0;
	char *end;

	if (argc != 3)
		errx(2, "usage: ebb_switch_load plain|ebb|mixed|idle|descendant COUNT");
	if (strcmp(argv[1], "plain") && strcmp(argv[1], "ebb") &&
	    strcmp(argv[1], "mixed") && strcmp(argv[1], "idle") &&
	    strcmp(argv[1], "descendant"))
		errx(2, "\"%s\" is not a kind of load", argv[1]);
	count = strtoul(argv[2], &end, 0);
	rounds = count;
	if (end == argv[2] || *end)
		errx(2, "\"%s\" is not a count", argv[2]);
	if (strcmp(argv[1], "plain") && !ebb_available())
		errx(4, "no event-based branches on this machine");

	if (bind_to(nth_cpu(0)))
		err(1, "cannot stay on one CPU");
	if (child_start(&child, answer, argv[1]))
		err(1, "cannot fork");
	if (!strcmp(argv[1], "ebb") || !strcmp(argv[1], "idle"))
		become_user(!strcmp(argv[1], "ebb"));
	if (child_heard(&child))
		errx(1, "the other task failed");
	if (!strcmp(argv[1], "descendant")) {
		ebb_mfspr(EBB_SPR_EBBHR);
		pid = fork();
		if (pid < 0)
			err(1, "cannot fork");
		if (pid) {
			if (waitpid(pid, &status, 0) != pid || status)
				errx(1, "the descendant failed");
			rounds = 0;
		}
	}
	for (i = 0; i < rounds; i++) {
		if (child_go(&child) || child_heard(&child))
			errx(1, "the other task failed");
	}
	if (!pid && !strcmp(argv[1], "descendant"))
		_exit(0);
	if (child_end(&child))
		errx(1, "the other task failed");
	printf("%lu switches each way\n", count);
	return 0;
}
