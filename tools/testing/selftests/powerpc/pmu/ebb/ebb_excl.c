// SPDX-License-Identifier: GPL-2.0-or-later
/* Test which event gets the PMU: EBB events beside regular events of all kinds. */

#include "kselftest_harness.h"
#include <time.h>
#include "ebb_test.h"

/* Time in ms between two attempts of perf's timer to schedule a waiting event */
#define TURN		4

/* Time in ms after which a waiting event has missed its turns, even on a busy machine */
#define TOO_LONG	5000

struct kind {
	const char *name;
	unsigned int type;
	unsigned long config;
	bool hardware;
};

static const struct kind kinds[] = {
	{ "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, true },
	{ "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, true },
	{ "raw", PERF_TYPE_RAW, INSTRUCTIONS, true },
	{ "raw on PMC2", PERF_TYPE_RAW, EBB_EVENT_PMC(2) | CYCLES, true },
	{ "cache", PERF_TYPE_HW_CACHE,
	  PERF_COUNT_HW_CACHE_L1D | PERF_COUNT_HW_CACHE_OP_READ << 8 |
	  PERF_COUNT_HW_CACHE_RESULT_MISS << 16, true },
	{ "cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, false },
	{ "task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, false },
	{ "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, false },
	{ "switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES,
	  false },
	{ "dummy", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, false },
	{ "tracepoint", PERF_TYPE_TRACEPOINT, 0, false },
};

FIXTURE(regular)
{
	int fd;
};

FIXTURE_VARIANT(regular)
{
	bool pinned;
	bool sampling;
};

FIXTURE_VARIANT_ADD(regular, counting) {
	.pinned = false, .sampling = false,
};

FIXTURE_VARIANT_ADD(regular, counting_pinned) {
	.pinned = true, .sampling = false,
};

FIXTURE_VARIANT_ADD(regular, sampling) {
	.pinned = false, .sampling = true,
};

FIXTURE_VARIANT_ADD(regular, sampling_pinned) {
	.pinned = true, .sampling = true,
};

FIXTURE_SETUP(regular)
{
	if (!ebb_available())
		SKIP(return, "no event-based branches on this machine");
	catch_ill();
	self->fd = -1;
}

FIXTURE_TEARDOWN(regular)
{
}

static unsigned long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Work for a time in ms; return the number of loops of work(). */
static unsigned long work_for(unsigned long time)
{
	unsigned long start = now_ms();
	unsigned long loops = 0;

	do {
		work(PERIOD);
		loops += PERIOD;
	} while (now_ms() - start < time);
	return loops;
}

/* Work until a waiting event is on the PMU; return false if that takes too long. */
static bool runs_again(int fd, const struct count *before)
{
	unsigned long start = now_ms();
	struct count now;

	do {
		work(PERIOD);
		if (read_count(fd, &now) == sizeof(now) &&
		    now.running > before->running)
			return true;
	} while (now_ms() - start < TOO_LONG);
	return false;
}

/* Open an enabled regular event; return -1 if this machine does not support it. */
static int open_kind(const struct kind *kind,
		     const FIXTURE_VARIANT(regular) *variant)
{
	struct perf_event_attr attr = {
		.type = kind->type,
		.config = kind->config,
		.pinned = variant->pinned,
		.exclude_hv = 1,
		.exclude_kernel = kind->hardware,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
			       PERF_FORMAT_TOTAL_TIME_RUNNING,
	};

	if (kind->type == PERF_TYPE_TRACEPOINT) {
		int id = sched_switch_id();

		if (id < 0)
			return -1;
		attr.config = id;
	}
	if (variant->sampling)
		attr.sample_period = kind->hardware ? 50000 : 1000000;
	return perf_open(&attr, 0, -1, -1);
}

TEST_F(regular, e4_event_opened_before)
{
	struct count first, second;
	size_t i;
	int ebb;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		bool wins = kinds[i].hardware && variant->pinned;
		int fd = open_kind(&kinds[i], variant);

		if (fd < 0)
			continue;
		work(PERIOD);
		ebb = begin(1);
		if (wins) {
			EXPECT_LT(ebb, 0) TH_LOG("%s", kinds[i].name);
			EXPECT_EQ(EBUSY, errno);
			EXPECT_FALSE(pmc_writable());
		} else {
			ASSERT_GE(ebb, 0) TH_LOG("%s", kinds[i].name);
		}
		ASSERT_EQ(sizeof(first), read_count(fd, &first));
		if (wins) {
			work(20 * PERIOD);
		} else {
			EXPECT_TRUE(work_until(40)) TH_LOG("%s", kinds[i].name);
		}
		ASSERT_EQ(sizeof(second), read_count(fd, &second));
		EXPECT_LT(first.enabled, second.enabled);
		if (kinds[i].hardware && !wins) {
			EXPECT_EQ(first.running, second.running)
				TH_LOG("%s", kinds[i].name);
		} else {
			EXPECT_LT(first.running, second.running)
				TH_LOG("%s", kinds[i].name);
		}
		if (ebb >= 0) {
			EXPECT_EQ(0, tally.spurious);
			ebb_disable();
			close(ebb);
		}
		EXPECT_TRUE(runs_again(fd, &second)) TH_LOG("%s", kinds[i].name);
		close(fd);
	}
}

/*
 * When an event is enabled, perf takes all pinned events of the task off the PMU,
 * and puts them back in the order in which they were opened.
 */
TEST(e4_pinned_event_that_was_opened_first_wins)
{
	struct count count;
	int plain, ebb;

	REQUIRE_EBB();
	plain = open_plain(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, true);
	ASSERT_GE(plain, 0);
	ASSERT_EQ(0, ioctl(plain, PERF_EVENT_IOC_DISABLE, 0));
	ebb = begin(1);
	ASSERT_GE(ebb, 0);
	EXPECT_TRUE(work_until(5));
	ebb_disable();
	ASSERT_EQ(0, ioctl(plain, PERF_EVENT_IOC_ENABLE, 0));
	EXPECT_EQ(sizeof(count), read_count(plain, &count));
	EXPECT_EQ(0, read_count(ebb, &count));
	EXPECT_FALSE(pmc_writable());
	close(plain);
	close(ebb);

	ebb = ebb_open(event_on(1), 0, -1);
	ASSERT_GE(ebb, 0);
	plain = open_plain(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, true);
	ASSERT_GE(plain, 0);
	work(PERIOD);
	EXPECT_EQ(sizeof(count), read_count(plain, &count));
	EXPECT_EQ(0, ebb_start(ebb));
	EXPECT_EQ(0, read_count(plain, &count));
	EXPECT_TRUE(pmc_writable());
	close(plain);
	close(ebb);
}

TEST_F(regular, e4_event_opened_meanwhile)
{
	struct count count;
	size_t i;
	int ebb;

	ebb = begin(1);
	ASSERT_GE(ebb, 0);
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		int fd = open_kind(&kinds[i], variant);

		if (fd < 0)
			continue;
		tally.count = 0;
		EXPECT_TRUE(work_until(20)) TH_LOG("%s", kinds[i].name);
		if (kinds[i].hardware && variant->pinned) {
			EXPECT_EQ(0, read_count(fd, &count))
				TH_LOG("%s", kinds[i].name);
		} else {
			ASSERT_EQ(sizeof(count), read_count(fd, &count));
			EXPECT_EQ(kinds[i].hardware, !count.running)
				TH_LOG("%s", kinds[i].name);
		}
		close(fd);
		tally.count = 0;
		EXPECT_TRUE(work_until(5)) TH_LOG("%s", kinds[i].name);
	}
	EXPECT_EQ(0, tally.spurious);
	EXPECT_EQ(0, tally.ill);
	ebb_disable();
	close(ebb);
}

TEST_F(regular, e4_event_opened_afterwards)
{
	struct count count;
	size_t i;
	int ebb;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		int fd;

		ebb = begin(1);
		ASSERT_GE(ebb, 0);
		EXPECT_TRUE(work_until(5));
		ebb_disable();
		close(ebb);
		fd = open_kind(&kinds[i], variant);
		if (fd < 0)
			continue;
		work(20 * PERIOD);
		ASSERT_EQ(sizeof(count), read_count(fd, &count));
		EXPECT_LT(0, count.running) TH_LOG("%s", kinds[i].name);
		/*
		 * The kernel can throttle a sampling event, so that its count
		 * is unknown.
		 */
		if (kinds[i].config == PERF_COUNT_HW_INSTRUCTIONS &&
		    kinds[i].type == PERF_TYPE_HARDWARE && !variant->sampling) {
			EXPECT_LT(40 * PERIOD, count.value)
				TH_LOG("%s", kinds[i].name);
		}
		EXPECT_FALSE(pmc_writable());
		close(fd);
	}
}

/* Open an event that counts the instructions of user mode on a CPU. */
static int open_on_cpu(bool pinned)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.pinned = pinned,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
			       PERF_FORMAT_TOTAL_TIME_RUNNING,
	};

	return perf_open(&attr, -1, nth_cpu(0), -1);
}

TEST(e4_event_of_the_cpu_makes_room)
{
	struct count before, after;
	int fd, ebb;

	REQUIRE_EBB();
	ASSERT_EQ(0, bind_to(nth_cpu(0)));
	fd = open_on_cpu(false);
	ASSERT_GE(fd, 0);
	ebb = begin(1);
	ASSERT_GE(ebb, 0);
	ASSERT_EQ(sizeof(before), read_count(fd, &before));
	EXPECT_TRUE(work_until(40));
	ASSERT_EQ(sizeof(after), read_count(fd, &after));
	/*
	 * The CPU's event runs only while this task does not run. How long it runs
	 * depends on other tasks, but the event must not count work of this task.
	 */
	EXPECT_LT(after.running - before.running,
		  after.enabled - before.enabled);
	EXPECT_LT(after.value - before.value, 40 * PERIOD / 2);
	ebb_disable();
	close(ebb);
	EXPECT_TRUE(runs_again(fd, &after));
	close(fd);
}

TEST(e4_pinned_event_of_the_cpu_stays)
{
	struct count count;
	int fd, ebb;

	REQUIRE_EBB();
	ASSERT_EQ(0, bind_to(nth_cpu(0)));
	fd = open_on_cpu(true);
	ASSERT_GE(fd, 0);
	ebb = ebb_open(event_on(1), 0, -1);
	ASSERT_GE(ebb, 0);
	EXPECT_EQ(-1, ebb_start(ebb));
	EXPECT_EQ(EBUSY, errno);
	EXPECT_FALSE(pmc_writable());
	work(10 * PERIOD);
	EXPECT_EQ(sizeof(count), read_count(fd, &count));
	EXPECT_EQ(count.enabled, count.running);
	close(ebb);
	close(fd);
}

/*
 * Disable the hardware member of a group, so that the group runs without a PMC.
 * Check that the kernel schedules a group in which no event uses the PMU.
 */
TEST(e4_group_without_a_running_hardware_member)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.disabled = 1,
	};
	int cpus[2] = { nth_cpu(0), nth_cpu(nr_cpus() - 1) };
	int leader, member, ebb, i;
	uint64_t value;

	REQUIRE_EBB();
	leader = perf_open(&attr, 0, -1, -1);
	ASSERT_GE(leader, 0);
	attr.type = PERF_TYPE_RAW;
	attr.config = event_on(1);
	attr.config &= ~EBB_EVENT_EBB;
	attr.exclude_kernel = 1;
	member = perf_open(&attr, 0, -1, leader);
	ASSERT_GE(member, 0);
	ASSERT_EQ(0, ioctl(leader, PERF_EVENT_IOC_ENABLE, 0));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, bind_to(cpus[i]));
		work(PERIOD);
	}
	EXPECT_EQ(sizeof(value), read(leader, &value, sizeof(value)));
	EXPECT_NE(0, value);
	ebb = begin(1);
	ASSERT_GE(ebb, 0);
	EXPECT_TRUE(work_until(10));
	ebb_disable();
	close(ebb);
	close(member);
	close(leader);
}

TEST(e4_second_ebb_event_of_a_task_goes_to_error_state)
{
	int first, second;

	REQUIRE_EBB();
	first = begin(1);
	ASSERT_GE(first, 0);
	second = ebb_open(event_on(2), 0, -1);
	ASSERT_GE(second, 0);
	EXPECT_EQ(-1, ebb_start(second));
	EXPECT_EQ(EBUSY, errno);
	EXPECT_TRUE(work_until(10));
	ebb_disable();
	close(second);
	close(first);
}

TEST(e4_event_in_error_state_can_be_enabled_again)
{
	struct count count;
	int pinned, ebb;

	REQUIRE_EBB();
	pinned = open_plain(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, true);
	ASSERT_GE(pinned, 0);
	ASSERT_EQ(sizeof(count), read_count(pinned, &count));
	ebb = ebb_open(event_on(1), 0, -1);
	ASSERT_GE(ebb, 0);
	ASSERT_EQ(-1, ebb_start(ebb));
	close(pinned);
	ASSERT_EQ(0, ebb_start(ebb));
	arm(1u << 1, PERIOD);
	EXPECT_TRUE(work_until(10));
	ebb_disable();
	close(ebb);
}

#define MUX_INTERVAL	"/sys/bus/event_source/devices/cpu/perf_event_mux_interval_ms"

static char mux_interval[16];

/*
 * While this program runs, as root, set the timer with which perf tries waiting
 * events to its shortest interval.
 */
static void __attribute__((constructor)) hurry_the_mux_timer(void)
{
	if (read_file(MUX_INTERVAL, mux_interval, sizeof(mux_interval)))
		write_file(MUX_INTERVAL, "1");
}

static void __attribute__((destructor)) restore_the_mux_timer(void)
{
	if (mux_interval[0])
		write_file(MUX_INTERVAL, mux_interval);
}

static int open_waiting(void)
{
	struct count count;
	int fd;

	fd = open_plain(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false);
	if (fd >= 0 && (read_count(fd, &count) != sizeof(count) ||
			count.running)) {
		close(fd);
		return -1;
	}
	return fd;
}

TEST(e22_ebbs_flow_while_an_event_waits)
{
	unsigned long loops;
	int ebb, waiting;

	REQUIRE_EBB();
	ebb = begin(1);
	ASSERT_GE(ebb, 0);
	waiting = open_waiting();
	ASSERT_GE(waiting, 0);
	tally.count = 0;
	ebb_set_period(1, PERIOD);
	loops = work_for(25 * TURN);
	ebb_disable();
	EXPECT_TRUE(tally_fits(loops));
	close(waiting);
	close(ebb);
}

TEST(e22_overflown_counter_is_left_alone_while_an_event_waits)
{
	unsigned long mmcr0, pmc;
	int ebb, waiting;

	REQUIRE_EBB();
	ebb = begin(1);
	ASSERT_GE(ebb, 0);
	waiting = open_waiting();
	ASSERT_GE(waiting, 0);
	ebb_disable();
	work(PERIOD);
	mmcr0 = ebb_mfspr(EBB_SPR_MMCR0);
	pmc = ebb_read_pmc(1);
	ASSERT_LE(EBB_NEGATIVE, pmc);

	work_for(25 * TURN);
	EXPECT_EQ(pmc, ebb_read_pmc(1));
	EXPECT_EQ(mmcr0, ebb_mfspr(EBB_SPR_MMCR0));
	EXPECT_TRUE(pmc_writable());
	tally.count = 0;
	ebb_mtspr(EBB_SPR_BESCRS, EBB_BESCR_GE);
	EXPECT_TRUE(work_until(20));
	EXPECT_EQ(0, tally.spurious);
	EXPECT_EQ(0, tally.ill);
	ebb_disable();
	close(waiting);
	close(ebb);
}

/*
 * While BESCR[GE] is clear, an exception stays pending. Check that the exception
 * also stays pending when another event is opened, for which the kernel stops and
 * starts the PMU.
 */
TEST(e22_pending_exception_survives_the_opening_of_another_event)
{
	unsigned int turn;
	int fd, other;

	REQUIRE_EBB();
	fd = begin(1);
	ASSERT_GE(fd, 0);
	for (turn = 0; turn < 10; turn++) {
		ebb_disable();
		tally.count = 0;
		work(PERIOD);
		asm volatile("" : : : "memory");
		ASSERT_EQ(0, tally.count);
		ASSERT_LE(EBB_NEGATIVE, ebb_read_pmc(1));
		other = open_plain(PERF_TYPE_HARDWARE,
				   PERF_COUNT_HW_CPU_CYCLES, false);
		ASSERT_GE(other, 0);
		close(other);
		ASSERT_EQ(0, tally.count);
		ASSERT_LE(EBB_NEGATIVE, ebb_read_pmc(1));

		ebb_mtspr(EBB_SPR_BESCRS, EBB_BESCR_GE);
		work(10);
		asm volatile("" : : : "memory");
		EXPECT_EQ(1, tally.count);
		EXPECT_EQ(0, tally.spurious);
		EXPECT_TRUE(work_until(3));
	}
	ebb_disable();
	close(fd);
}

static unsigned long handler_disturbed;

static void linger(struct ebb_regs *regs)
{
	unsigned long mmcr0 = ebb_mfspr(EBB_SPR_MMCR0);
	unsigned long pmc = ebb_read_pmc(1);

	(void)regs;
	work_for(2 * TURN);
	if (ebb_mfspr(EBB_SPR_MMCR0) != mmcr0 || ebb_read_pmc(1) != pmc)
		handler_disturbed++;
}

TEST(e22_handler_is_left_alone_while_an_event_waits)
{
	int ebb, waiting;

	REQUIRE_EBB();
	ebb = begin(1);
	ASSERT_GE(ebb, 0);
	waiting = open_waiting();
	ASSERT_GE(waiting, 0);
	memset(&tally.overflows, 0, sizeof(tally.overflows));
	tally.count = 0;
	tally.hook = linger;
	EXPECT_TRUE(work_until(20));
	EXPECT_EQ(0, handler_disturbed);
	EXPECT_EQ(0, tally.spurious);
	EXPECT_EQ(0, tally.ill);
	ebb_disable();
	close(waiting);
	close(ebb);
}

static int open_member(int leader)
{
	struct perf_event_attr attr;

	ebb_attr(&attr, event_on(2));
	attr.pinned = 0;
	attr.exclusive = 0;
	attr.disabled = 0;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
			   PERF_FORMAT_TOTAL_TIME_RUNNING;
	return perf_open(&attr, 0, -1, leader);
}

/*
 * The leader of an EBB group is pinned and exclusive, its members are not. When
 * the leader is closed, other events could share the PMU with the members. Check
 * that the members then lose the PMU, and that user mode cannot access the PMCs.
 */
TEST(e25_leader_closed_first_takes_the_pmu_back)
{
	int leader, member;

	REQUIRE_EBB();
	leader = ebb_open(event_on(1), 0, -1);
	ASSERT_GE(leader, 0);
	member = open_member(leader);
	ASSERT_GE(member, 0);
	ASSERT_EQ(0, ebb_start(leader));
	arm(1u << 2, PERIOD);
	ASSERT_TRUE(work_until(5));
	ebb_disable();
	close(leader);
	EXPECT_FALSE(pmc_writable());
	close(member);
	EXPECT_FALSE(pmc_writable());
}

TEST(e25_member_without_its_leader_is_in_error_state)
{
	struct count count;
	int leader, member;

	REQUIRE_EBB();
	leader = ebb_open(event_on(1), 0, -1);
	ASSERT_GE(leader, 0);
	member = open_member(leader);
	ASSERT_GE(member, 0);
	ASSERT_EQ(0, ebb_start(leader));
	EXPECT_EQ(sizeof(count), read_count(member, &count));
	close(leader);
	EXPECT_EQ(0, read_count(member, &count));

	/* Check that enabling the group member does not end its error state. */
	EXPECT_EQ(0, ioctl(member, PERF_EVENT_IOC_ENABLE, 0));
	EXPECT_EQ(0, read_count(member, &count));
	EXPECT_FALSE(pmc_writable());
	close(member);
}

TEST(e25_no_access_while_a_waiting_event_has_its_turn)
{
	struct count plain_before, plain_after, member_before, member_after;
	unsigned int turns = 0;
	unsigned long start;
	int leader, member, plain;
	bool writable;

	REQUIRE_EBB();
	ASSERT_EQ(0, bind_to(nth_cpu(0)));
	leader = ebb_open(event_on(1), 0, -1);
	ASSERT_GE(leader, 0);
	member = open_member(leader);
	ASSERT_GE(member, 0);
	ASSERT_EQ(0, ebb_start(leader));
	arm(1u << 2, PERIOD);
	ASSERT_TRUE(work_until(5));
	ebb_disable();
	plain = open_waiting();
	ASSERT_GE(plain, 0);
	close(leader);

	start = now_ms();
	while (turns < 10 && now_ms() - start < TOO_LONG) {
		work(PERIOD);
		read_count(plain, &plain_before);
		read_count(member, &member_before);
		writable = pmc_writable();
		read_count(plain, &plain_after);
		read_count(member, &member_after);
		if (member_before.running != member_after.running)
			continue;
		/*
		 * The member was off the PMU for both reads: check that user
		 * mode had no access to PMCs.
		 */
		turns += plain_after.running != plain_before.running;
		EXPECT_FALSE(writable);
		if (writable)
			break;
	}
	EXPECT_EQ(10, turns);
	close(plain);
	close(member);
	EXPECT_FALSE(pmc_writable());
}

TEST(e25_no_access_while_a_pinned_event_is_on)
{
	int leader, member, plain;
	struct count count;

	REQUIRE_EBB();
	leader = ebb_open(event_on(1), 0, -1);
	ASSERT_GE(leader, 0);
	member = open_member(leader);
	ASSERT_GE(member, 0);
	ASSERT_EQ(0, ebb_start(leader));
	arm(1u << 2, PERIOD);
	ASSERT_TRUE(work_until(5));
	close(leader);

	plain = open_plain(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, true);
	ASSERT_GE(plain, 0);
	work(20 * PERIOD);
	/* Check that user mode cannot access the PMCs while a regular event counts. */
	if (read_count(plain, &count) == sizeof(count) && count.running) {
		EXPECT_FALSE(pmc_writable());
	}
	ebb_disable();
	close(plain);
	close(member);
	EXPECT_FALSE(pmc_writable());
}

TEST_HARNESS_MAIN
