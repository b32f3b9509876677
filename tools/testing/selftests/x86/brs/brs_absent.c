// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the behaviours B1 and B17: on a machine without Branch Sampling (BRS),
 * or with a kernel built without the BRS driver, there is no BRS event, and all
 * other events work as before.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/ioctl.h>

#include "brs_test.h"

BRS_WITHOUT_LIMITS

#define CAPS	"/sys/bus/event_source/devices/cpu/caps/branches"

/* AMD families that restrict the counters on which some events can count */
#define ZEN		0x17
#define BULLDOZER	0x15

/*
 * The event of floating point operations: it needs two counters on Zen, and counts
 * only on counter 3 on Bulldozer.
 */
#define FLOPS	0x003
#define MEMBERS	8

/* Return the family of an AMD processor with six counters, 0 on other machines */
static int amd_family(void)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	bool amd = false, core = false;
	static char line[65536];
	int family = 0;

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		char *value = strchr(line, ':');

		if (value && !strncmp(line, "cpu family", strlen("cpu family")))
			family = atoi(value + 1);
		amd |= !!strstr(line, "AuthenticAMD");
		core |= !!strstr(line, " perfctr_core");
	}
	fclose(file);
	return amd && core ? family : 0;
}

static struct perf_event_attr plain(__u64 config, __u64 period)
{
	struct perf_event_attr attr = brs_plain_attr(period);

	attr.config = config;
	attr.exclude_kernel = 1;
	return attr;
}

/*
 * Return how many events with the code @config fit into one group.  If @after is
 * not 0, check that an event with the code @after then fits into the group, too;
 * return the error if it does not fit.
 */
static int group_of(__u64 config, __u64 after)
{
	struct perf_event_attr attr = plain(config, 0);
	int fd[MEMBERS + 1], n, members;

	for (n = 0; n < MEMBERS; n++) {
		fd[n] = brs_try(&attr, 0, -1, n ? fd[0] : -1);
		if (fd[n] < 0)
			break;
		attr.disabled = 0;
	}
	members = n;
	if (after && n) {
		attr.config = after;
		fd[n] = brs_try(&attr, 0, -1, fd[0]);
		if (fd[n] < 0)
			members = fd[n];
		else
			n++;
	}
	while (n--)
		close(fd[n]);
	return members;
}

FIXTURE(absent)
{
};

FIXTURE_SETUP(absent)
{
	if (brs_present())
		SKIP(return, "there is BRS on this machine");
	if (!amd_family())
		SKIP(return, "no AMD processor with core performance counters");
}

FIXTURE_TEARDOWN(absent)
{
}

TEST_F(absent, b1_no_event_and_no_depth)
{
	char text[64];

	EXPECT_FALSE(brs_present());
	EXPECT_FALSE(brs_read_file(CAPS, text, sizeof(text)));
}

TEST_F(absent, b1_stack_is_refused)
{
	static const __u64 periods[] = { 0, 16, 10007 };
	struct perf_event_attr attr;
	size_t i;

	for (i = 0; i < ARRAY_LEN(periods); i++) {
		attr = brs_attr(periods[i]);
		EXPECT_EQ(-EOPNOTSUPP, brs_try(&attr, 0, -1, -1));
	}
	attr.freq = 1;
	attr.sample_freq = 1000;
	EXPECT_EQ(-EOPNOTSUPP, brs_try(&attr, 0, -1, -1));
}

TEST_F(absent, b1_plain_events_count)
{
	struct perf_event_attr attr = plain(BRS_EVENT, 0);
	int fd = brs_try(&attr, 0, -1, -1);
	struct brs_event e = { .fd = fd };
	__u64 count;

	ASSERT_GE(fd, 0);
	brs_start(&e);
	brs_mix(100000);
	brs_stop(&e);
	count = brs_count(fd);
	close(fd);
	/*
	 * brs_mix() takes 799999 branches; some more are taken before and after
	 * brs_mix()
	 */
	EXPECT_GE(count, 799999);
	EXPECT_LE(count, 801000);
}

TEST_F(absent, b1_plain_events_sample)
{
	struct perf_event_attr attr = plain(BRS_EVENT, 2003);
	unsigned int samples = 0;
	struct brs_sample s;
	struct brs_event e;

	ASSERT_EQ(0, brs_open(&e, &attr, 0, -1, 64));
	brs_start(&e);
	brs_mix(100000);
	brs_stop(&e);
	while (brs_next(&e, &s)) {
		EXPECT_EQ(2003, s.period);
		samples++;
	}
	brs_close(&e);
	EXPECT_GE(samples, 398);
	EXPECT_LE(samples, 400);
}

/* Events without a branch stack can have periods that BRS rejects. */
TEST_F(absent, b1_plain_events_have_any_period)
{
	static const __u64 periods[] = { 0, 1, 16, 17 };
	struct perf_event_attr attr;
	__u64 short_one = 16;
	size_t i;
	int fd;

	for (i = 0; i < ARRAY_LEN(periods); i++) {
		attr = plain(BRS_EVENT, periods[i]);
		fd = brs_try(&attr, 0, -1, -1);
		EXPECT_GE(fd, 0);
		if (periods[i])
			EXPECT_EQ(0, ioctl(fd, PERF_EVENT_IOC_PERIOD, &short_one));
		close(fd);
	}
	attr.freq = 1;
	attr.sample_freq = 1000;
	fd = brs_try(&attr, 0, -1, -1);
	EXPECT_GE(fd, 0);
	close(fd);
}

TEST_F(absent, b1_family_keeps_its_constraints)
{
	int family = amd_family();

	/* retired branches can be counted by each of the six counters */
	EXPECT_EQ(6, group_of(0xc2, 0));

	if (family >= ZEN) {
		/* each event uses an even counter and the next odd counter */
		EXPECT_EQ(3, group_of(FLOPS | 0xff00, 0));
	} else if (family == BULLDOZER) {
		EXPECT_EQ(1, group_of(FLOPS, 0xc2));
	}
	TH_LOG("family 0x%x: %d such events in a group", family,
	       group_of(FLOPS | 0xff00, 0));
}

TEST_HARNESS_MAIN
