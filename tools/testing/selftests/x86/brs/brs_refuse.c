// SPDX-License-Identifier: GPL-2.0
/*
 * Rows B3 and B4: what is refused at open and by ioctl, and with which error;
 * and, beside each refusal, what is let through.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <unistd.h>
#include <sys/ioctl.h>

#include "brs_test.h"

/* Opens for this task and closes again; returns 0 or a negative error number. */
static int try_open(struct perf_event_attr *attr)
{
	int fd = brs_try(attr, 0, -1, -1);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

FIXTURE(attribute)
{
};

FIXTURE_VARIANT(attribute)
{
	uint64_t period;
	uint64_t freq, precise;
	uint64_t branches;		/* more PERF_SAMPLE_BRANCH_* */
	uint64_t exclude_user, exclude_kernel, exclude_hv;
	uint64_t inherit, pinned, exclusive;
	int expected;
};

FIXTURE_SETUP(attribute)
{
	REQUIRE_BRS();
}

FIXTURE_TEARDOWN(attribute)
{
}

#define CASE(_name, _expected, ...)						\
	FIXTURE_VARIANT_ADD(attribute, _name) {					\
		.expected = _expected, ##__VA_ARGS__				\
	}

CASE(plain, 0, .period = 10007);
CASE(period_0, -EINVAL, .period = 0);
CASE(period_1, -EINVAL, .period = 1);
CASE(period_16, -EINVAL, .period = 16);
CASE(period_17, 0, .period = 17);
CASE(period_2_to_47, 0, .period = 1ULL << 47);
CASE(period_2_to_63_less_1, 0, .period = (1ULL << 63) - 1);
CASE(period_2_to_63, -EINVAL, .period = 1ULL << 63);
CASE(frequency, -EINVAL, .period = 1000, .freq = 1);
CASE(precise_3, -EOPNOTSUPP, .period = 10007, .precise = 3);
CASE(call_stack, -EOPNOTSUPP, .period = 10007, .branches = PERF_SAMPLE_BRANCH_CALL_STACK);
CASE(in_tx, -EOPNOTSUPP, .period = 10007, .branches = PERF_SAMPLE_BRANCH_IN_TX);
CASE(no_tx, -EOPNOTSUPP, .period = 10007, .branches = PERF_SAMPLE_BRANCH_NO_TX);
CASE(abort_tx, -EOPNOTSUPP, .period = 10007, .branches = PERF_SAMPLE_BRANCH_ABORT_TX);
CASE(only_user, 0, .period = 10007, .exclude_kernel = 1);
CASE(only_kernel, 0, .period = 10007, .exclude_user = 1);
CASE(neither_user_nor_kernel, -EOPNOTSUPP, .period = 10007, .exclude_user = 1, .exclude_kernel = 1);
CASE(no_hypervisor, 0, .period = 10007, .exclude_hv = 1);
CASE(user_branches, 0, .period = 10007, .branches = PERF_SAMPLE_BRANCH_USER);
CASE(kernel_branches, 0, .period = 10007, .branches = PERF_SAMPLE_BRANCH_KERNEL);
CASE(no_flags, 0, .period = 10007, .branches = PERF_SAMPLE_BRANCH_NO_FLAGS);
CASE(no_cycles, 0, .period = 10007, .branches = PERF_SAMPLE_BRANCH_NO_CYCLES);
CASE(inherited, 0, .period = 10007, .inherit = 1);
CASE(pinned, 0, .period = 10007, .pinned = 1);
CASE(exclusive, 0, .period = 10007, .exclusive = 1);

static struct perf_event_attr attr_of(const FIXTURE_VARIANT(attribute) *variant)
{
	struct perf_event_attr attr = brs_attr(variant->period);

	attr.freq = variant->freq;
	attr.precise_ip = variant->precise;
	attr.branch_sample_type |= variant->branches;
	if (variant->branches == PERF_SAMPLE_BRANCH_CALL_STACK)
		attr.branch_sample_type |= PERF_SAMPLE_BRANCH_USER;
	attr.exclude_user = variant->exclude_user;
	attr.exclude_kernel = variant->exclude_kernel;
	attr.exclude_hv = variant->exclude_hv;
	attr.inherit = variant->inherit;
	attr.pinned = variant->pinned;
	attr.exclusive = variant->exclusive;
	return attr;
}

TEST_F(attribute, b3_open_for_a_task)
{
	struct perf_event_attr attr = attr_of(variant);

	EXPECT_EQ(variant->expected, try_open(&attr));
}

TEST_F(attribute, b3_open_for_a_cpu)
{
	struct perf_event_attr attr = attr_of(variant);
	int fd;

	REQUIRE_ROOT();
	fd = brs_try(&attr, -1, 0, -1);
	EXPECT_EQ(variant->expected, fd < 0 ? fd : 0);
	if (fd >= 0)
		close(fd);
}

/* Without a branch stack none of the rules of BRS hold for the same event. */
TEST(b3_no_rule_without_a_stack)
{
	static const uint64_t periods[] = { 0, 1, 16, 17 };
	struct perf_event_attr attr;
	size_t i;

	REQUIRE_BRS();
	for (i = 0; i < ARRAY_LEN(periods); i++) {
		attr = brs_attr(periods[i]);
		attr.sample_type &= ~PERF_SAMPLE_BRANCH_STACK;
		attr.branch_sample_type = 0;
		EXPECT_EQ(0, try_open(&attr));
	}
	attr.freq = 1;
	attr.sample_freq = 1000;
	EXPECT_EQ(0, try_open(&attr));
}

static int change_period(int fd, uint64_t period)
{
	return ioctl(fd, PERF_EVENT_IOC_PERIOD, &period) ? -errno : 0;
}

TEST(b3_period_change_is_held_to_the_rule)
{
	struct perf_event_attr attr = brs_attr(10007);
	int fd;

	REQUIRE_BRS();
	fd = brs_try(&attr, 0, -1, -1);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(-EINVAL, change_period(fd, 0));
	EXPECT_EQ(-EINVAL, change_period(fd, 1));
	EXPECT_EQ(-EINVAL, change_period(fd, 16));
	EXPECT_EQ(-EINVAL, change_period(fd, 1ULL << 63));
	EXPECT_EQ(0, change_period(fd, 17));
	EXPECT_EQ(0, change_period(fd, 20011));
	close(fd);
}

TEST(b3_period_change_of_a_running_event)
{
	struct perf_event_attr attr = brs_attr(20011);
	unsigned int before = 0, after = 0;
	struct brs_sample s;
	struct brs_event e;

	REQUIRE_BRS();
	attr.exclude_kernel = 1;
	ASSERT_EQ(0, brs_open(&e, &attr, 0, -1, 512));
	brs_start(&e);
	brs_mix(100000);
	EXPECT_EQ(-EINVAL, change_period(e.fd, 16));
	EXPECT_EQ(0, change_period(e.fd, 2003));
	brs_mix(100000);
	brs_stop(&e);
	while (brs_next(&e, &s)) {
		before += s.period == 20011;
		after += s.period == 2003;
	}
	/* 800000 branches each */
	EXPECT_GE(before, 37);
	EXPECT_LE(before, 42);
	EXPECT_GE(after, 390);
	EXPECT_LE(after, 405);
	brs_close(&e);
}

TEST(b4_two_events_in_one_group_are_refused)
{
	struct perf_event_attr attr = brs_attr(10007);
	int leader, fd;

	REQUIRE_BRS();
	leader = brs_try(&attr, 0, -1, -1);
	ASSERT_GE(leader, 0);
	attr.disabled = 0;
	fd = brs_try(&attr, 0, -1, leader);
	EXPECT_EQ(-EINVAL, fd);
	if (fd >= 0)
		close(fd);
	close(leader);
}

TEST(b4_group_with_others_is_fine)
{
	struct perf_event_attr attr = brs_attr(10007);
	struct perf_event_attr other = {
		.type = PERF_TYPE_RAW, .size = sizeof(other), .config = BRS_EVENT,
	};
	int leader, member[5], i;

	REQUIRE_BRS();
	leader = brs_try(&attr, 0, -1, -1);
	ASSERT_GE(leader, 0);
	/* six counters: five are left, whatever they count */
	for (i = 0; i < 5; i++) {
		member[i] = brs_try(&other, 0, -1, leader);
		EXPECT_GE(member[i], 0);
	}
	EXPECT_EQ(-EINVAL, brs_try(&other, 0, -1, leader));
	for (i = 0; i < 5; i++)
		close(member[i]);
	close(leader);
}

/* Floating point operations: more than 15 a cycle, so that two counters count */
#define FLOPS	0x003

TEST(b4_event_of_two_counters_is_tied_too)
{
	struct perf_event_attr pair = brs_attr(10007);
	struct perf_event_attr attr = brs_attr(10007);
	int leader, fd;

	REQUIRE_BRS();
	pair.config = FLOPS | 0xff00;
	leader = brs_try(&pair, 0, -1, -1);
	ASSERT_GE(leader, 0);
	attr.disabled = 0;
	fd = brs_try(&attr, 0, -1, leader);
	EXPECT_EQ(-EINVAL, fd);
	if (fd >= 0)
		close(fd);
	close(leader);
}

TEST(b4_task_and_cpu_events_open_side_by_side)
{
	struct perf_event_attr attr = brs_attr(10007);
	int task, cpu;

	REQUIRE_BRS();
	REQUIRE_ROOT();
	task = brs_try(&attr, 0, -1, -1);
	cpu = brs_try(&attr, -1, 0, -1);
	EXPECT_GE(task, 0);
	EXPECT_GE(cpu, 0);
	if (task >= 0)
		close(task);
	if (cpu >= 0)
		close(cpu);
}

TEST_HARNESS_MAIN
