// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the behaviour B1: /proc/cpuinfo, sysfs and the kernel's log report
 * Branch Sampling (BRS) on a machine that has it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "brs_test.h"

#define CPU_PMU	"/sys/bus/event_source/devices/cpu"

/* Return whether /proc/cpuinfo lists the CPU flag @word */
static bool cpu_flag(const char *word)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	static char line[65536];
	bool found = false;
	char *flag;

	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "flags", 5))
			continue;
		for (flag = strtok(line, " \t\n"); flag && !found; flag = strtok(NULL, " \t\n"))
			found = !strcmp(flag, word);
	}
	fclose(file);
	return found;
}

/*
 * Return 1 if the kernel's log contains a line with @text, 0 if the log since boot
 * does not, and -1 if the log has lost its first lines.
 */
static int logged(const char *text)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
	bool found = false, whole = false;
	char record[8192];
	ssize_t len;

	if (fd < 0)
		return 0;
	while (!found) {
		len = read(fd, record, sizeof(record) - 1);
		if (len < 0 && errno == EPIPE)
			continue;
		if (len <= 0)
			break;
		record[len] = 0;
		/* a record starts with its priority and its number, from 0 */
		whole |= strchr(record, ',') && atol(strchr(record, ',') + 1) == 0;
		found = strstr(record, text);
	}
	close(fd);
	return found || (whole ? 0 : -1);
}

TEST(b1_cpuinfo_has_brs)
{
	REQUIRE_BRS();
	EXPECT_TRUE(cpu_flag("brs"));
}

TEST(b1_flag_means_a_stack)
{
	struct perf_event_attr attr = brs_attr(10007);
	int fd = brs_try(&attr, 0, -1, -1);

	/*
	 * check on every machine: with the flag "brs", there are branch stacks
	 * and branch-brs
	 */
	if (cpu_flag("brs")) {
		EXPECT_GE(fd, 0);
		EXPECT_TRUE(brs_present());
	} else {
		EXPECT_FALSE(brs_present());
	}
	if (fd >= 0)
		close(fd);
}

TEST(b1_caps_has_the_depth)
{
	char text[64];

	REQUIRE_BRS();
	ASSERT_TRUE(brs_read_file(CPU_PMU "/caps/branches", text, sizeof(text)));
	EXPECT_STREQ("16", text);
}

TEST(b1_event_is_taken_branches)
{
	char text[64];

	REQUIRE_BRS();
	ASSERT_TRUE(brs_read_file(CPU_PMU "/events/branch-brs", text, sizeof(text)));
	EXPECT_STREQ("event=0xc4", text);
}

TEST(b1_log_has_the_depth)
{
	int found;

	REQUIRE_BRS();
	REQUIRE_ROOT();
	found = logged("16-deep BRS");
	if (found < 0)
		SKIP(return, "the kernel's log has lost its first lines");
	EXPECT_EQ(1, found);
}

TEST_HARNESS_MAIN
