// SPDX-License-Identifier: GPL-2.0-or-later
/* Test which EBB events can be opened: each rule alone, then all combinations. */
#include "kselftest_harness.h"
#include "ebb_test.h"

#define OPEN_CLOSE(attr, pid, cpu, group)				\
({									\
	int fd_ = perf_open(attr, pid, cpu, group);			\
	int error_ = fd_ < 0 ? errno : 0;				\
									\
	if (fd_ >= 0)							\
		close(fd_);						\
	error_;								\
})

FIXTURE(refused)
{
	struct perf_event_attr attr;
};

/* Set up attributes that the kernel accepts, for each test to change. */
FIXTURE_SETUP(refused)
{
	if (!ebb_available())
		SKIP(return, "no event-based branches on this machine");
	ebb_attr(&self->attr, event_on(1));
	ASSERT_EQ(0, OPEN_CLOSE(&self->attr, 0, -1, -1));
}

FIXTURE_TEARDOWN(refused)
{
}

TEST_F(refused, e2_leader_not_pinned)
{
	self->attr.pinned = 0;
	EXPECT_EQ(EINVAL, OPEN_CLOSE(&self->attr, 0, -1, -1));
}

TEST_F(refused, e2_leader_not_exclusive)
{
	self->attr.exclusive = 0;
	EXPECT_EQ(EINVAL, OPEN_CLOSE(&self->attr, 0, -1, -1));
}

TEST_F(refused, e2_inherit)
{
	self->attr.inherit = 1;
	EXPECT_EQ(EINVAL, OPEN_CLOSE(&self->attr, 0, -1, -1));
}

TEST_F(refused, e2_sample_period)
{
	self->attr.sample_period = 100000;
	EXPECT_EQ(EINVAL, OPEN_CLOSE(&self->attr, 0, -1, -1));
}

TEST_F(refused, e2_freq)
{
	self->attr.freq = 1;
	EXPECT_EQ(EINVAL, OPEN_CLOSE(&self->attr, 0, -1, -1));
}

TEST_F(refused, e2_enable_on_exec)
{
	self->attr.enable_on_exec = 1;
	EXPECT_EQ(EINVAL, OPEN_CLOSE(&self->attr, 0, -1, -1));
}

TEST_F(refused, e2_sample_type)
{
	self->attr.sample_type = PERF_SAMPLE_IP;
	EXPECT_EQ(EINVAL, OPEN_CLOSE(&self->attr, 0, -1, -1));
}

TEST_F(refused, e2_not_attached_to_a_task)
{
	EXPECT_EQ(EINVAL, OPEN_CLOSE(&self->attr, -1, 0, -1));
}

TEST_F(refused, e2_no_pmc_in_the_code)
{
	self->attr.config = EBB_EVENT_EBB | CYCLES;
	EXPECT_EQ(EINVAL, OPEN_CLOSE(&self->attr, 0, -1, -1));
}

TEST_F(refused, e2_bhrb_without_ebb)
{
	self->attr.config &= ~EBB_EVENT_EBB;
	EXPECT_EQ(0, OPEN_CLOSE(&self->attr, 0, -1, -1));
	self->attr.config |= EBB_EVENT_BHRB;
	EXPECT_EQ(EINVAL, OPEN_CLOSE(&self->attr, 0, -1, -1));
}

TEST_F(refused, e2_bound_to_a_cpu_is_fine)
{
	EXPECT_EQ(0, OPEN_CLOSE(&self->attr, 0, nth_cpu(0), -1));
}

TEST_F(refused, e18_bhrb_with_ebb_is_fine)
{
	unsigned int mode;

	for (mode = 0; mode < 4; mode++) {
		self->attr.config = event_on(1) | EBB_EVENT_EBB |
				    EBB_EVENT_BHRB | EBB_EVENT_IFM(mode);
		EXPECT_EQ(0, OPEN_CLOSE(&self->attr, 0, -1, -1));
	}
}

TEST_F(refused, e15_hardware_type)
{
	self->attr.type = PERF_TYPE_HARDWARE;
	self->attr.config = PERF_COUNT_HW_CPU_CYCLES;
	EXPECT_EQ(0, OPEN_CLOSE(&self->attr, 0, -1, -1));
	self->attr.config |= EBB_EVENT_EBB;
	EXPECT_NE(0, OPEN_CLOSE(&self->attr, 0, -1, -1));
}

TEST_F(refused, e15_hardware_type_not_pinned)
{
	self->attr.type = PERF_TYPE_HARDWARE;
	self->attr.config = PERF_COUNT_HW_CPU_CYCLES | EBB_EVENT_EBB;
	self->attr.pinned = 0;
	self->attr.exclusive = 0;
	EXPECT_NE(0, OPEN_CLOSE(&self->attr, 0, -1, -1));
}

TEST_F(refused, e15_hw_cache_type)
{
	self->attr.type = PERF_TYPE_HW_CACHE;
	self->attr.config = PERF_COUNT_HW_CACHE_L1D |
			    (PERF_COUNT_HW_CACHE_OP_READ << 8) |
			    (PERF_COUNT_HW_CACHE_RESULT_MISS << 16);
	EXPECT_EQ(0, OPEN_CLOSE(&self->attr, 0, -1, -1));
	self->attr.config |= EBB_EVENT_EBB;
	EXPECT_NE(0, OPEN_CLOSE(&self->attr, 0, -1, -1));
}

FIXTURE(group)
{
	struct perf_event_attr attr;
	int leader;
};

/* Set up the attributes of a pinned and exclusive group leader, which each test opens. */
FIXTURE_SETUP(group)
{
	if (!ebb_available())
		SKIP(return, "no event-based branches on this machine");
	ebb_attr(&self->attr, event_on(1));
	self->leader = -1;
}

FIXTURE_TEARDOWN(group)
{
	close(self->leader);
}

static void become_member(struct perf_event_attr *attr, unsigned long config)
{
	attr->config = config;
	attr->pinned = 0;
	attr->exclusive = 0;
	attr->disabled = 0;
}

TEST_F(group, e3_ebb_member_of_an_ebb_group_opens)
{
	self->leader = perf_open(&self->attr, 0, -1, -1);
	ASSERT_GE(self->leader, 0);
	become_member(&self->attr, event_on(2) | EBB_EVENT_EBB);
	EXPECT_EQ(0, OPEN_CLOSE(&self->attr, 0, -1, self->leader));
}

TEST_F(group, e3_plain_member_of_an_ebb_group)
{
	self->leader = perf_open(&self->attr, 0, -1, -1);
	ASSERT_GE(self->leader, 0);
	become_member(&self->attr, event_on(2));
	EXPECT_EQ(EINVAL, OPEN_CLOSE(&self->attr, 0, -1, self->leader));
}

TEST_F(group, e3_ebb_member_of_a_plain_group)
{
	/* The leader is pinned and exclusive, so that only its event code breaks a rule. */
	self->attr.config &= ~EBB_EVENT_EBB;
	self->leader = perf_open(&self->attr, 0, -1, -1);
	ASSERT_GE(self->leader, 0);
	become_member(&self->attr, event_on(2));
	EXPECT_EQ(0, OPEN_CLOSE(&self->attr, 0, -1, self->leader));
	self->attr.config |= EBB_EVENT_EBB;
	EXPECT_EQ(EINVAL, OPEN_CLOSE(&self->attr, 0, -1, self->leader));
}

TEST_F(group, e3_pinned_member)
{
	self->leader = perf_open(&self->attr, 0, -1, -1);
	ASSERT_GE(self->leader, 0);
	become_member(&self->attr, event_on(2) | EBB_EVENT_EBB);
	self->attr.pinned = 1;
	EXPECT_EQ(EINVAL, OPEN_CLOSE(&self->attr, 0, -1, self->leader));
}

TEST_F(group, e3_exclusive_member)
{
	self->leader = perf_open(&self->attr, 0, -1, -1);
	ASSERT_GE(self->leader, 0);
	become_member(&self->attr, event_on(2) | EBB_EVENT_EBB);
	self->attr.exclusive = 1;
	EXPECT_EQ(EINVAL, OPEN_CLOSE(&self->attr, 0, -1, self->leader));
}

TEST_F(group, e3_two_members_on_one_pmc)
{
	self->leader = perf_open(&self->attr, 0, -1, -1);
	ASSERT_GE(self->leader, 0);
	become_member(&self->attr, event_on(1) | EBB_EVENT_EBB);
	EXPECT_EQ(EINVAL, OPEN_CLOSE(&self->attr, 0, -1, self->leader));
}

/*
 * Software events and tracepoints do not need the PMU: check that they can be
 * group members, and count while the group leader is on the PMU.
 */
TEST_F(group, e24_software_member_counts)
{
	struct perf_event_attr software = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
			       PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	struct count before, after;
	int member;

	self->leader = perf_open(&self->attr, 0, -1, -1);
	ASSERT_GE(self->leader, 0);
	member = perf_open(&software, 0, -1, self->leader);
	ASSERT_GE(member, 0);
	ASSERT_EQ(0, ebb_start(self->leader));
	arm(1u << 1, PERIOD);
	ASSERT_EQ(sizeof(before), read_count(member, &before));
	EXPECT_TRUE(work_until(5));
	ASSERT_EQ(sizeof(after), read_count(member, &after));
	EXPECT_LT(before.value, after.value);
	ebb_disable();
	close(member);
}

TEST_F(group, e24_tracepoint_member_opens)
{
	struct perf_event_attr tracepoint = { .type = PERF_TYPE_TRACEPOINT };
	int id = sched_switch_id();

	if (id < 0)
		SKIP(return, "no tracepoint sched:sched_switch");
	tracepoint.config = id;
	self->leader = perf_open(&self->attr, 0, -1, -1);
	ASSERT_GE(self->leader, 0);
	EXPECT_EQ(0, OPEN_CLOSE(&tracepoint, 0, -1, self->leader));
}

TEST_F(group, e24_software_leader)
{
	struct perf_event_attr software = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.disabled = 1,
		.pinned = 1,
		.exclusive = 1,
	};

	self->leader = perf_open(&software, 0, -1, -1);
	ASSERT_GE(self->leader, 0);
	become_member(&self->attr, event_on(1) | EBB_EVENT_EBB);
	EXPECT_EQ(EINVAL, OPEN_CLOSE(&self->attr, 0, -1, self->leader));
}

/*
 * Bits for all combinations of the attributes to which the rules of EBB apply. A
 * combination that breaks a rule must fail with EINVAL. For all other
 * combinations, the event can be opened, enabled and read.
 */
#define WALK_EBB		0x001
#define WALK_BHRB		0x002
#define WALK_PMC		0x004
#define WALK_PINNED		0x008
#define WALK_EXCLUSIVE		0x010
#define WALK_INHERIT		0x020
#define WALK_PERIOD		0x040
#define WALK_FREQ		0x080
#define WALK_ON_EXEC		0x100
#define WALK_SAMPLE		0x200
#define WALK_TASK		0x400
#define WALK_MEMBER		0x800
#define WALK_END		0x1000

static bool walk_opens(unsigned int bits)
{
	unsigned int never = WALK_INHERIT | WALK_PERIOD | WALK_FREQ |
			     WALK_ON_EXEC | WALK_SAMPLE;
	unsigned int always = WALK_PMC | WALK_TASK;
	unsigned int alone = WALK_PINNED | WALK_EXCLUSIVE;

	/*
	 * With WALK_MEMBER, the event joins a group whose leader is an EBB
	 * event of this task.
	 */
	if (bits & WALK_MEMBER)
		never |= alone;
	else
		always |= alone;
	if (bits & WALK_EBB)
		return !(bits & never) && (bits & always) == always;
	return !(bits & WALK_MEMBER) && !(bits & WALK_BHRB);
}

static void walk_attr(struct perf_event_attr *attr, unsigned int bits)
{
	memset(attr, 0, sizeof(*attr));
	attr->type = PERF_TYPE_RAW;
	attr->disabled = 1;
	attr->exclude_kernel = 1;
	attr->exclude_hv = 1;
	attr->exclude_idle = 1;
	attr->config = CYCLES;
	if (bits & WALK_EBB)
		attr->config |= EBB_EVENT_EBB;
	if (bits & WALK_BHRB)
		attr->config |= EBB_EVENT_BHRB;
	if (bits & WALK_PMC)
		attr->config |= EBB_EVENT_PMC(2);
	attr->pinned = !!(bits & WALK_PINNED);
	attr->exclusive = !!(bits & WALK_EXCLUSIVE);
	attr->inherit = !!(bits & WALK_INHERIT);
	attr->freq = !!(bits & WALK_FREQ);
	attr->enable_on_exec = !!(bits & WALK_ON_EXEC);
	/* On a slow machine, perf allows only low frequencies, but always 1 Hz. */
	if (bits & WALK_PERIOD)
		attr->sample_period = bits & WALK_FREQ ? 1 : 1000;
	if (bits & WALK_SAMPLE)
		attr->sample_type = PERF_SAMPLE_TIME;
}

TEST(e2_every_combination_is_refused_or_works)
{
	struct perf_event_attr attr;
	int leader, fd, error;
	unsigned int bits;
	uint64_t value;

	REQUIRE_EBB();
	leader = ebb_open(event_on(1), 0, -1);
	ASSERT_GE(leader, 0);
	for (bits = 0; bits < WALK_END; bits++) {
		bool task = bits & WALK_TASK;

		/* Since Linux 6.14, perf rejects a frequency of 0 for every PMU. */
		if ((bits & WALK_FREQ) && !(bits & WALK_PERIOD) &&
		    !(bits & WALK_EBB))
			continue;
		walk_attr(&attr, bits);
		fd = perf_open(&attr, task ? 0 : -1, task ? -1 : nth_cpu(0),
			       bits & WALK_MEMBER ? leader : -1);
		error = fd < 0 ? errno : 0;
		EXPECT_EQ(walk_opens(bits) ? 0 : EINVAL, error)
			TH_LOG("combination 0x%03x", bits);
		if (fd < 0)
			continue;
		EXPECT_EQ(0, ioctl(bits & WALK_MEMBER ? leader : fd,
				   PERF_EVENT_IOC_ENABLE, 0));
		EXPECT_EQ(sizeof(value), read(fd, &value, sizeof(value)))
			TH_LOG("combination 0x%03x", bits);
		EXPECT_EQ(0, ioctl(bits & WALK_MEMBER ? leader : fd,
				   PERF_EVENT_IOC_DISABLE, 0));
		close(fd);
	}
	close(leader);
}

TEST_HARNESS_MAIN
