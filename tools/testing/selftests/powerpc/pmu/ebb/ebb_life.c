// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tests of the life of EBB events in one program: enable an event, take EBBs, read
 * the event, close the event, and open it again.
 */
#include "kselftest_harness.h"
#include <sys/prctl.h>
#include "ebb_test.h"

TEST(e1_bit_63_asks_for_ebb)
{
	struct perf_event_attr attr;
	int fd;

	REQUIRE_EBB();
	ebb_attr(&attr, event_on(1));
	attr.config &= ~EBB_EVENT_EBB;
	fd = perf_open(&attr, 0, -1, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, ebb_start(fd));
	EXPECT_FALSE(pmc_writable());
	close(fd);

	attr.config |= EBB_EVENT_EBB;
	fd = perf_open(&attr, 0, -1, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, ebb_start(fd));
	EXPECT_TRUE(pmc_writable());
	close(fd);
}

TEST(e5_enabled_by_ioctl)
{
	int fd;

	REQUIRE_EBB();
	fd = ebb_open(event_on(1), 0, -1);
	ASSERT_GE(fd, 0);
	ASSERT_FALSE(pmc_writable());
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	ASSERT_TRUE(pmc_writable());
	arm(1u << 1, PERIOD);
	EXPECT_TRUE(work_until(10));
	ebb_disable();
	close(fd);
}

TEST(e5_enabled_by_prctl)
{
	int fd;

	REQUIRE_EBB();
	fd = ebb_open(event_on(1), 0, -1);
	ASSERT_GE(fd, 0);
	ASSERT_FALSE(pmc_writable());
	ASSERT_EQ(0, prctl(PR_TASK_PERF_EVENTS_ENABLE));
	ASSERT_TRUE(pmc_writable());
	arm(1u << 1, PERIOD);
	EXPECT_TRUE(work_until(10));

	ASSERT_EQ(0, prctl(PR_TASK_PERF_EVENTS_DISABLE));
	EXPECT_FALSE(pmc_writable());
	ebb_disable();
	close(fd);
}

TEST(e5_disabled_and_enabled_again)
{
	unsigned int turn;
	int fd;

	REQUIRE_EBB();
	fd = begin(1);
	ASSERT_GE(fd, 0);
	for (turn = 0; turn < 20; turn++) {
		tally.count = 0;
		ASSERT_TRUE(work_until(2));
		ebb_disable();
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
		ASSERT_FALSE(pmc_writable());
		ASSERT_EQ(0, ebb_start(fd));
		arm(1u << 1, PERIOD);
	}
	ebb_disable();
	close(fd);
}

TEST(e6_read_of_a_scheduled_event_succeeds)
{
	uint64_t value;
	int fd;

	REQUIRE_EBB();
	fd = begin(1);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(sizeof(value), read(fd, &value, sizeof(value)));
	EXPECT_TRUE(work_until(5));
	EXPECT_EQ(sizeof(value), read(fd, &value, sizeof(value)));
	EXPECT_TRUE(work_until(10));
	ebb_disable();
	close(fd);
}

static int read_fd;
static ssize_t read_size;

static void read_event(struct ebb_regs *regs)
{
	uint64_t value;

	(void)regs;
	read_size = read(read_fd, &value, sizeof(value));
}

TEST(e6_read_in_the_handler_succeeds)
{
	REQUIRE_EBB();
	read_fd = begin(1);
	ASSERT_GE(read_fd, 0);
	tally.hook = read_event;
	EXPECT_TRUE(work_until(10));
	EXPECT_EQ(sizeof(uint64_t), read_size);
	ebb_disable();
	close(read_fd);
}

TEST(e7_close_takes_the_pmu_back)
{
	int fd;

	REQUIRE_EBB();
	fd = begin(1);
	ASSERT_GE(fd, 0);
	ASSERT_TRUE(work_until(5));
	close(fd);

	EXPECT_FALSE(pmc_writable());
	tally.ill = 0;
	ebb_mtspr(EBB_SPR_MMCR0, EBB_MMCR0_PMAE);
	EXPECT_EQ(1, tally.ill);
	ebb_disable();
}

TEST(e7_no_ebb_after_close)
{
	unsigned long last;
	int fd;

	REQUIRE_EBB();
	fd = begin(1);
	ASSERT_GE(fd, 0);
	ASSERT_TRUE(work_until(5));
	close(fd);

	/* An EBB that was pending before close() can still come. */
	work(PERIOD);
	last = tally.count;
	work(20 * PERIOD);
	asm volatile("" : : : "memory");
	EXPECT_EQ(last, tally.count);
	ebb_disable();
}

TEST(e7_last_close_of_a_group_takes_the_pmu_back)
{
	int leader, member;

	REQUIRE_EBB();
	leader = ebb_open(event_on(1), 0, -1);
	ASSERT_GE(leader, 0);
	member = ebb_open(event_on(2), 0, leader);
	ASSERT_GE(member, 0);
	ASSERT_EQ(0, ebb_start(leader));
	arm(1u << 1, PERIOD);
	ASSERT_TRUE(work_until(3));
	close(member);
	EXPECT_TRUE(pmc_writable());
	tally.count = 0;
	EXPECT_TRUE(work_until(3));
	close(leader);
	EXPECT_FALSE(pmc_writable());
	ebb_disable();
}

TEST(e7_exit_with_an_armed_event)
{
	pid_t pid;
	int fd;

	REQUIRE_EBB();
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(begin(1) < 0 || !work_until(3));
	ASSERT_EQ(pid, waitpid(pid, &fd, 0));
	EXPECT_EQ(0, fd);
	/* Check that the next EBB event inherits nothing from the child's event. */
	EXPECT_FALSE(pmc_writable());
	fd = begin(1);
	ASSERT_GE(fd, 0);
	EXPECT_TRUE(work_until(3));
	EXPECT_EQ(0, tally.spurious);
	ebb_disable();
	close(fd);
}

TEST(e13_reopened_after_pmae_was_left_clear)
{
	int fd;

	REQUIRE_EBB();
	fd = begin(1);
	ASSERT_GE(fd, 0);
	ASSERT_TRUE(work_until(3));
	ebb_disable();
	ebb_mtspr(EBB_SPR_MMCR0, EBB_MMCR0_FC);
	close(fd);

	/* The kernel arms the new event in MMCR0; the program does not. */
	fd = ebb_open(event_on(1), 0, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, ebb_start(fd));
	memset(&tally, 0, sizeof(tally));
	tally.pmcs = 1u << 1;
	tally.period = PERIOD;
	ebb_set_period(1, PERIOD);
	ebb_mtspr(EBB_SPR_BESCRS, EBB_BESCR_GE | EBB_BESCR_PME);
	EXPECT_TRUE(work_until(10));
	ebb_disable();
	close(fd);
}

TEST(e13_reopened_after_pmeo_was_left_set)
{
	int fd;

	REQUIRE_EBB();
	fd = begin(1);
	ASSERT_GE(fd, 0);
	/* Leave an exception for which no EBB is taken: PMAE clear, PMAO and PMEO set */
	ebb_disable();
	work(PERIOD);
	ASSERT_EQ(EBB_BESCR_PMEO, ebb_mfspr(EBB_SPR_BESCR) & EBB_BESCR_PMEO);
	close(fd);

	fd = ebb_open(event_on(1), 0, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, ebb_start(fd));
	memset(&tally, 0, sizeof(tally));
	tally.pmcs = 1u << 1;
	tally.period = PERIOD;
	ebb_set_period(1, PERIOD);
	ebb_mtspr(EBB_SPR_BESCRS, EBB_BESCR_GE | EBB_BESCR_PME);
	EXPECT_TRUE(work_until(10));
	/* Check that the exception of the closed event has caused no EBB. */
	EXPECT_EQ(0, tally.spurious);
	ebb_disable();
	close(fd);
}

TEST(e13_reopened_many_times)
{
	unsigned int turn;
	int fd;

	REQUIRE_EBB();
	for (turn = 0; turn < 50; turn++) {
		fd = begin(1 + turn % 4);
		ASSERT_GE(fd, 0);
		ASSERT_TRUE(work_until(2));
		EXPECT_EQ(0, tally.spurious);
		ebb_disable();
		close(fd);
		ASSERT_FALSE(pmc_writable());
	}
}

FIXTURE(pmc)
{
};

FIXTURE_VARIANT(pmc)
{
	int pmc;
};

FIXTURE_VARIANT_ADD(pmc, 1) { .pmc = 1 };
FIXTURE_VARIANT_ADD(pmc, 2) { .pmc = 2 };
FIXTURE_VARIANT_ADD(pmc, 3) { .pmc = 3 };
FIXTURE_VARIANT_ADD(pmc, 4) { .pmc = 4 };
FIXTURE_VARIANT_ADD(pmc, 5) { .pmc = 5 };
FIXTURE_VARIANT_ADD(pmc, 6) { .pmc = 6 };

FIXTURE_SETUP(pmc)
{
	if (!ebb_available())
		SKIP(return, "no event-based branches on this machine");
	catch_ill();
}

FIXTURE_TEARDOWN(pmc)
{
}

TEST_F(pmc, e3_event_is_on_the_pmc_it_names)
{
	int fd = begin(variant->pmc);

	ASSERT_GE(fd, 0);
	EXPECT_TRUE(work_until(10));
	EXPECT_EQ(tally.count, tally.overflows[variant->pmc]);
	ebb_disable();
	close(fd);
}

TEST(e3_group_of_all_six_pmcs)
{
	int fds[MAX_PMC + 1];
	int pmc;

	REQUIRE_EBB();
	fds[1] = ebb_open(event_on(1), 0, -1);
	ASSERT_GE(fds[1], 0);
	for (pmc = 2; pmc <= MAX_PMC; pmc++) {
		fds[pmc] = ebb_open(event_on(pmc), 0, fds[1]);
		ASSERT_GE(fds[pmc], 0) TH_LOG("PMC%d", pmc);
	}
	ASSERT_EQ(0, ebb_start(fds[1]));
	arm(0x7e, PERIOD);
	work(20 * PERIOD);
	for (pmc = 1; pmc <= MAX_PMC; pmc++) {
		EXPECT_LE(10, tally.overflows[pmc]) TH_LOG("PMC%d", pmc);
	}
	EXPECT_EQ(0, tally.spurious);
	ebb_disable();
	for (pmc = MAX_PMC; pmc; pmc--)
		close(fds[pmc]);
}

TEST(e3_group_of_given_pmcs)
{
	int leader, member;

	REQUIRE_EBB();
	leader = ebb_open(event_on(4), 0, -1);
	ASSERT_GE(leader, 0);
	member = ebb_open(event_on(2), 0, leader);
	ASSERT_GE(member, 0);
	ASSERT_EQ(0, ebb_start(leader));
	arm(1u << 2 | 1u << 4, PERIOD);
	ebb_set_period(2, 3 * PERIOD);
	EXPECT_TRUE(work_until(20));
	EXPECT_LE(5, tally.overflows[2]);
	EXPECT_LE(5, tally.overflows[4]);
	EXPECT_EQ(0, tally.spurious);
	ebb_disable();
	close(member);
	close(leader);
}

TEST(e4_number_of_ebbs_follows_from_the_period)
{
	unsigned long loops = 100 * PERIOD;
	int fd;

	REQUIRE_EBB();
	fd = begin(1);
	ASSERT_GE(fd, 0);
	work(loops);
	ebb_disable();
	EXPECT_TRUE(tally_fits(loops));
	close(fd);
}

static unsigned long branch_seen;
static unsigned long branches_read;

static void read_bhrb(struct ebb_regs *regs)
{
	unsigned long first, second;

	(void)regs;
	/* The BHRB does not record the handler's branches, because PMAE is clear. */
	asm volatile(".machine push; .machine power8\n"
		     "	mfbhrbe %0,0\n"
		     "	mfbhrbe %1,1\n"
		     "	.machine pop\n"
		     : "=r" (first), "=r" (second) : : "memory");
	branches_read++;
	if ((first & ~3ul) - code_address(work) < 64 ||
	    (second & ~3ul) - code_address(work) < 64)
		branch_seen++;
}

TEST(e18_bhrb_is_read_in_the_handler)
{
	int fd;

	REQUIRE_EBB();
	fd = ebb_open(event_on(1) | EBB_EVENT_BHRB, 0, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, ebb_start(fd));
	arm(1u << 1, PERIOD);
	tally.hook = read_bhrb;
	work(50 * PERIOD);
	ebb_disable();
	EXPECT_LE(at_least(90), branches_read);
	EXPECT_LE(branches_read - 2, branch_seen);
	EXPECT_EQ(0, tally.ill);
	close(fd);
}

/*
 * Check that a program with any EBB event can read the BHRB. Bit 62 of the event
 * code asks for a filter; since POWER10, the BHRB records branches only with bit
 * 62.
 */
TEST(e18_bhrb_is_read_without_being_asked_for)
{
	int fd;

	REQUIRE_EBB();
	fd = begin(1);
	ASSERT_GE(fd, 0);
	tally.hook = read_bhrb;
	work(10 * PERIOD);
	EXPECT_LE(at_least(18), branches_read);
	if (!cpu_is_v31()) {
		EXPECT_LE(branches_read - 2, branch_seen);
	}
	asm volatile(".machine push; .machine power8\n"
		     "	clrbhrb\n"
		     "	.machine pop\n" : : : "memory");
	EXPECT_EQ(0, tally.ill);
	ebb_disable();
	close(fd);
}

TEST(e18_bhrb_is_out_of_reach_without_an_event)
{
	unsigned long entry;

	REQUIRE_EBB();
	asm volatile(".machine push; .machine power8\n"
		     "	mfbhrbe %0,0\n"
		     "	.machine pop\n"
		     : "=r" (entry) : : "memory");
	EXPECT_EQ(1, tally.ill);
}

TEST(e19_group_b_is_out_of_reach_without_an_event)
{
	int fd;

	REQUIRE_EBB();
	if (!cpu_is_v31())
		SKIP(return, "needs POWER10");
	EXPECT_FALSE(group_b_readable());
	fd = begin(1);
	ASSERT_GE(fd, 0);
	EXPECT_TRUE(group_b_readable());
	EXPECT_TRUE(work_until(3));
	ebb_disable();
	close(fd);
	EXPECT_FALSE(group_b_readable());
}

/* Check that an event without EBB does not let user mode read the group B registers. */
TEST(e19_group_b_is_out_of_reach_with_a_plain_event)
{
	struct count count;
	int fd;

	REQUIRE_EBB();
	if (!cpu_is_v31())
		SKIP(return, "needs POWER10");
	fd = open_plain(PERF_TYPE_RAW, event_on(1), false);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(sizeof(count), read_count(fd, &count));
	EXPECT_FALSE(group_b_readable());
	close(fd);
}

TEST_HARNESS_MAIN
