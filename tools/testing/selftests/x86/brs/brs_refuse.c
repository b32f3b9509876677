// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the behaviours B3 and B4: the BRS events that perf_event_open() and
 * PERF_EVENT_IOC_PERIOD reject, the error for each, and similar events that the
 * kernel accepts.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <unistd.h>
#include <sys/ioctl.h>

#include "brs_test.h"

BRS_WITHOUT_LIMITS

/*
 * Open an event on this task and close the event again.  Return 0 or a negative
 * error number.
 */
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
	struct perf_event_attr attr;
};

FIXTURE_VARIANT(attribute)
{
	__u64 period;
	__u64 freq, precise;
	__u64 branches;		/* PERF_SAMPLE_BRANCH_* flags, besides ANY */
	__u64 exclude_user, exclude_kernel, exclude_hv;
	__u64 inherit, pinned, exclusive;
	int expected;
};

FIXTURE_SETUP(attribute)
{
	REQUIRE_BRS();

	self->attr = brs_attr(variant->period);
	self->attr.freq = variant->freq;
	self->attr.precise_ip = variant->precise;
	self->attr.branch_sample_type |= variant->branches;
	if (variant->branches == PERF_SAMPLE_BRANCH_CALL_STACK)
		self->attr.branch_sample_type |= PERF_SAMPLE_BRANCH_USER;
	self->attr.exclude_user = variant->exclude_user;
	self->attr.exclude_kernel = variant->exclude_kernel;
	self->attr.exclude_hv = variant->exclude_hv;
	self->attr.inherit = variant->inherit;
	self->attr.pinned = variant->pinned;
	self->attr.exclusive = variant->exclusive;
}

FIXTURE_TEARDOWN(attribute)
{
}

FIXTURE_VARIANT_ADD(attribute, plain) {
	.period = 10007, .expected = 0,
};

FIXTURE_VARIANT_ADD(attribute, period_0) {
	.period = 0, .expected = -EINVAL,
};

FIXTURE_VARIANT_ADD(attribute, period_1) {
	.period = 1, .expected = -EINVAL,
};

FIXTURE_VARIANT_ADD(attribute, period_16) {
	.period = 16, .expected = -EINVAL,
};

FIXTURE_VARIANT_ADD(attribute, period_17) {
	.period = 17, .expected = 0,
};

FIXTURE_VARIANT_ADD(attribute, period_2_to_47) {
	.period = 1ULL << 47, .expected = 0,
};

FIXTURE_VARIANT_ADD(attribute, period_2_to_63_less_1) {
	.period = (1ULL << 63) - 1, .expected = 0,
};

FIXTURE_VARIANT_ADD(attribute, period_2_to_63) {
	.period = 1ULL << 63, .expected = -EINVAL,
};

FIXTURE_VARIANT_ADD(attribute, frequency) {
	.period = 1000, .freq = 1, .expected = -EINVAL,
};

FIXTURE_VARIANT_ADD(attribute, precise_3) {
	.period = 10007, .precise = 3, .expected = -EOPNOTSUPP,
};

FIXTURE_VARIANT_ADD(attribute, call_stack) {
	.period = 10007, .branches = PERF_SAMPLE_BRANCH_CALL_STACK, .expected = -EOPNOTSUPP,
};

FIXTURE_VARIANT_ADD(attribute, in_tx) {
	.period = 10007, .branches = PERF_SAMPLE_BRANCH_IN_TX, .expected = -EOPNOTSUPP,
};

FIXTURE_VARIANT_ADD(attribute, no_tx) {
	.period = 10007, .branches = PERF_SAMPLE_BRANCH_NO_TX, .expected = -EOPNOTSUPP,
};

FIXTURE_VARIANT_ADD(attribute, abort_tx) {
	.period = 10007, .branches = PERF_SAMPLE_BRANCH_ABORT_TX, .expected = -EOPNOTSUPP,
};

FIXTURE_VARIANT_ADD(attribute, only_user) {
	.period = 10007, .exclude_kernel = 1, .expected = 0,
};

FIXTURE_VARIANT_ADD(attribute, only_kernel) {
	.period = 10007, .exclude_user = 1, .expected = 0,
};

FIXTURE_VARIANT_ADD(attribute, neither_user_nor_kernel) {
	.period = 10007, .exclude_user = 1, .exclude_kernel = 1, .expected = -EOPNOTSUPP,
};

FIXTURE_VARIANT_ADD(attribute, no_hypervisor) {
	.period = 10007, .exclude_hv = 1, .expected = 0,
};

FIXTURE_VARIANT_ADD(attribute, user_branches) {
	.period = 10007, .branches = PERF_SAMPLE_BRANCH_USER, .expected = 0,
};

FIXTURE_VARIANT_ADD(attribute, kernel_branches) {
	.period = 10007, .branches = PERF_SAMPLE_BRANCH_KERNEL, .expected = 0,
};

FIXTURE_VARIANT_ADD(attribute, no_flags) {
	.period = 10007, .branches = PERF_SAMPLE_BRANCH_NO_FLAGS, .expected = 0,
};

FIXTURE_VARIANT_ADD(attribute, no_cycles) {
	.period = 10007, .branches = PERF_SAMPLE_BRANCH_NO_CYCLES, .expected = 0,
};

FIXTURE_VARIANT_ADD(attribute, inherited) {
	.period = 10007, .inherit = 1, .expected = 0,
};

FIXTURE_VARIANT_ADD(attribute, pinned) {
	.period = 10007, .pinned = 1, .expected = 0,
};

FIXTURE_VARIANT_ADD(attribute, exclusive) {
	.period = 10007, .exclusive = 1, .expected = 0,
};

TEST_F(attribute, b3_open_for_a_task)
{
	EXPECT_EQ(variant->expected, try_open(&self->attr));
}

TEST_F(attribute, b3_open_for_a_cpu)
{
	int fd;

	REQUIRE_ROOT();
	fd = brs_try(&self->attr, -1, 0, -1);
	EXPECT_EQ(variant->expected, fd < 0 ? fd : 0);
	if (fd >= 0)
		close(fd);
}

/*
 * The attributes that decide whether a BRS event can be opened, for the test of
 * all their combinations.  If a combination breaks two rules with different
 * errors, either error is correct.
 */
struct combination {
	__u64 period;
	bool freq;
	int precise;
	bool exclude_user, exclude_kernel, exclude_hv;
	enum { FOR_TASK, FOR_CHILDREN, FOR_CPU, WAYS } way;
	__u64 branches;
};

#define PLM	(PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_KERNEL | PERF_SAMPLE_BRANCH_HV)

static const __u64 all_periods[] = {
	0, 1, 16, 17, (1ULL << 63) - 1, 1ULL << 63,
};

static const struct {
	__u64 type;
	int expected;
} all_branches[] = {
	{ PERF_SAMPLE_BRANCH_ANY, 0 },
	{ PERF_SAMPLE_BRANCH_ANY_CALL, 0 },
	{ PERF_SAMPLE_BRANCH_ANY_RETURN, 0 },
	{ PERF_SAMPLE_BRANCH_IND_CALL, 0 },
	{ PERF_SAMPLE_BRANCH_IND_JUMP, 0 },
	{ PERF_SAMPLE_BRANCH_CALL, 0 },
	{ PERF_SAMPLE_BRANCH_COND, 0 },
	{ PERF_SAMPLE_BRANCH_TYPE_SAVE, 0 },
	{ PERF_SAMPLE_BRANCH_PRIV_SAVE, 0 },
	{ PERF_SAMPLE_BRANCH_NO_FLAGS, 0 },
	{ PERF_SAMPLE_BRANCH_NO_CYCLES, 0 },
	{ PERF_SAMPLE_BRANCH_HW_INDEX, 0 },
	{ PERF_SAMPLE_BRANCH_ABORT_TX, -EOPNOTSUPP },
	{ PERF_SAMPLE_BRANCH_IN_TX, -EOPNOTSUPP },
	{ PERF_SAMPLE_BRANCH_NO_TX, -EOPNOTSUPP },
	{ PERF_SAMPLE_BRANCH_CALL_STACK, -EOPNOTSUPP },
	{ 1ULL << 19, -EOPNOTSUPP },		/* BRANCH_COUNTERS, since Linux 6.8 */
	{ 1ULL << 40, -EINVAL },		/* a bit that is not a PERF_SAMPLE_BRANCH_* flag */
	{ 0, -EINVAL },				/* no branch type at all */
};

static const __u64 all_levels[] = {
	0, PERF_SAMPLE_BRANCH_USER, PERF_SAMPLE_BRANCH_KERNEL, PERF_SAMPLE_BRANCH_HV,
};

static size_t take(size_t *n, size_t choices)
{
	size_t choice = *n % choices;

	*n /= choices;
	return choice;
}

/*
 * Make the combination number @n, and set @type_expected to the error for its branch
 * types.  Return false if there is no such combination.
 */
static bool nth_combination(size_t n, struct combination *c, int *type_expected)
{
	size_t type;

	c->freq = take(&n, 2);
	c->precise = take(&n, 4);
	c->exclude_user = take(&n, 2);
	c->exclude_kernel = take(&n, 2);
	c->exclude_hv = take(&n, 2);
	c->way = take(&n, WAYS);
	c->period = all_periods[take(&n, ARRAY_LEN(all_periods))];
	type = take(&n, ARRAY_LEN(all_branches));
	c->branches = all_branches[type].type | all_levels[take(&n, ARRAY_LEN(all_levels))];
	*type_expected = all_branches[type].expected;
	return !n;
}

/* Return whether @err is a correct result of opening the combination @c */
static bool fits(const struct combination *c, int type_expected, int err)
{
	bool invalid = false, unsupported = false;
	__u64 level = c->branches & PLM;

	/* without a PERF_SAMPLE_BRANCH_* level, exclude_user and exclude_kernel decide */
	if (!level)
		level = (c->exclude_user ? 0 : PERF_SAMPLE_BRANCH_USER) |
			(c->exclude_kernel ? 0 : PERF_SAMPLE_BRANCH_KERNEL);

	invalid |= c->freq || c->period <= BRS_DEPTH || c->period >> 63;
	invalid |= type_expected == -EINVAL;
	unsupported |= type_expected == -EOPNOTSUPP || c->precise;
	unsupported |= !(level & (PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_KERNEL));

	if (!invalid && !unsupported)
		return !err;
	/* on a processor with IBS, precise events are for IBS, which does not have this event */
	if (err == -ENOENT && c->precise && c->precise < 3)
		return true;
	return (invalid && err == -EINVAL) || (unsupported && err == -EOPNOTSUPP);
}

static int try_combination(const struct combination *c)
{
	struct perf_event_attr attr = brs_attr(c->period);
	int fd;

	attr.freq = c->freq;
	attr.precise_ip = c->precise;
	attr.exclude_user = c->exclude_user;
	attr.exclude_kernel = c->exclude_kernel;
	attr.exclude_hv = c->exclude_hv;
	attr.inherit = c->way == FOR_CHILDREN;
	attr.branch_sample_type = c->branches;
	fd = c->way == FOR_CPU ? brs_try(&attr, -1, 0, -1) : brs_try(&attr, 0, -1, -1);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

TEST(b3_every_combination)
{
	unsigned int tried, opened = 0, wrong = 0;

	REQUIRE_BRS();
	REQUIRE_ROOT();
	for (tried = 0;; tried++) {
		int type_expected, err;
		struct combination c;

		if (!nth_combination(tried, &c, &type_expected))
			break;
		err = try_combination(&c);
		opened += !err;
		/* log only the first five wrong results */
		if (!fits(&c, type_expected, err) && wrong++ < 5)
			TH_LOG("combination %u, period %llu branches 0x%llx: error %d",
			       tried, c.period, c.branches, err);
	}
	TH_LOG("%u combinations, %u opened, %u with the wrong result", tried, opened, wrong);
	EXPECT_GT(opened, 100);
	EXPECT_EQ(0, wrong);
}

/* Check that branch-brs without a branch stack can have any period or a frequency. */
TEST(b3_no_rule_without_a_stack)
{
	static const __u64 periods[] = { 0, 1, 16, 17 };
	struct perf_event_attr attr;
	size_t i;

	REQUIRE_BRS();
	for (i = 0; i < ARRAY_LEN(periods); i++) {
		attr = brs_plain_attr(periods[i]);
		EXPECT_EQ(0, try_open(&attr));
	}
	attr.freq = 1;
	attr.sample_freq = 1000;
	EXPECT_EQ(0, try_open(&attr));
}

static int change_period(int fd, __u64 period)
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
	/* brs_mix() takes 800000 branches with each of the two periods */
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
	/* there are six counters: five events fit in a group with a BRS event */
	for (i = 0; i < 5; i++) {
		member[i] = brs_try(&other, 0, -1, leader);
		EXPECT_GE(member[i], 0);
	}
	EXPECT_EQ(-EINVAL, brs_try(&other, 0, -1, leader));
	for (i = 0; i < 5; i++)
		close(member[i]);
	close(leader);
}

/*
 * The event of floating point operations.  It uses two counters, because it can
 * count more than 15 operations in a cycle.
 */
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
