// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tests that child processes and threads inherit no EBB state, and tests of EBB
 * events that a process opens on another process.
 */
#include "kselftest_harness.h"
#include <pthread.h>
#include <sys/prctl.h>
#include "ebb_test.h"

/* Return whether BESCR, EBBHR and EBBRR, which user mode can write, are all 0 */
static int registers_are_zero(void)
{
	unsigned long bescr = ebb_mfspr(EBB_SPR_BESCR);
	unsigned long ebbhr = ebb_mfspr(EBB_SPR_EBBHR);
	unsigned long ebbrr = ebb_mfspr(EBB_SPR_EBBRR);

	if (!bescr && !ebbhr && !ebbrr)
		return 1;
	fprintf(stderr, "# BESCR %lx EBBHR %lx EBBRR %lx\n", bescr, ebbhr,
		ebbrr);
	return 0;
}

static int start_busy_parent(void)
{
	int fd = begin(1);

	if (fd >= 0 && !work_until(3))
		return -1;
	return fd;
}

TEST(e10_fork_starts_with_zero)
{
	int status, fd;
	pid_t pid;

	REQUIRE_EBB();
	fd = start_busy_parent();
	ASSERT_GE(fd, 0);
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(!registers_are_zero());
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	/* Check that the parent keeps its EBB state and its event after fork. */
	tally.count = 0;
	EXPECT_TRUE(work_until(5));
	ebb_disable();
	close(fd);
}

TEST(e10_vfork_starts_with_zero)
{
	int status, fd;
	pid_t pid;

	REQUIRE_EBB();
	fd = start_busy_parent();
	ASSERT_GE(fd, 0);
	pid = vfork();
	if (!pid)
		_exit(ebb_mfspr(EBB_SPR_BESCR) || ebb_mfspr(EBB_SPR_EBBHR) ||
		      ebb_mfspr(EBB_SPR_EBBRR));
	ASSERT_GE(pid, 0);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	ebb_disable();
	close(fd);
}

static void *check_thread(void *arg)
{
	(void)arg;
	return (void *)(unsigned long)!registers_are_zero();
}

TEST(e10_thread_starts_with_zero)
{
	pthread_t thread;
	void *result;
	int fd;

	REQUIRE_EBB();
	fd = start_busy_parent();
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, check_thread, NULL));
	ASSERT_EQ(0, pthread_join(thread, &result));
	EXPECT_EQ(NULL, result);
	ebb_disable();
	close(fd);
}

TEST(e10_child_has_no_event)
{
	int status, fd;
	pid_t pid;

	REQUIRE_EBB();
	fd = start_busy_parent();
	ASSERT_GE(fd, 0);
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		memset(&tally, 0, sizeof(tally));
		if (pmc_writable())
			_exit(1);
		ebb_enable(tally_handler);
		ebb_mtspr(EBB_SPR_BESCRS, EBB_BESCR_PME);
		work(50 * PERIOD);
		asm volatile("" : : : "memory");
		_exit(tally.count ? 2 : 0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	ebb_disable();
	close(fd);
}

TEST(e10_child_opens_its_own_event)
{
	int status, fd;
	pid_t pid;

	REQUIRE_EBB();
	fd = start_busy_parent();
	ASSERT_GE(fd, 0);
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		close(fd);
		if (begin(2) < 0)
			_exit(1);
		_exit(!work_until(10) || tally.spurious || tally.ill);
	}
	tally.count = 0;
	EXPECT_TRUE(work_until(10));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	ebb_disable();
	close(fd);
}

/* Read the PMU's registers in a process that has just enabled its first EBB event. */
static int first_sight(struct parent *parent, void *arg)
{
	struct user_state *state = arg;
	int fd;

	(void)parent;
	catch_ill();
	fd = ebb_open(event_on(1), 0, -1);
	if (fd < 0 || ebb_start(fd))
		return 1;
	read_state(state);
	return 0;
}

static int do_nothing(struct parent *parent, void *arg)
{
	(void)parent;
	(void)arg;
	return 0;
}

static void cold_and_warm(struct __test_metadata *_metadata,
			  struct user_state *cold, struct user_state *warm,
			  struct user_state *mine)
{
	struct child child;
	int fd;

	/* First, test the child of a process that has never used EBBs */
	ASSERT_EQ(0, child_start(&child, first_sight, cold));
	ASSERT_EQ(0, child_end(&child));

	/* Then, test the child of a process that has used EBBs and changed all registers */
	fd = ebb_open(event_on(1), 0, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, ebb_start(fd));
	arm(1u << 1, PERIOD);
	ASSERT_TRUE(work_until(3));
	ebb_disable();
	ebb_mtspr(EBB_SPR_MMCR0, (cold->mmcr0 ^
				  (EBB_MMCR0_FC | EBB_MMCR0_PMAE)));
	ebb_mtspr(EBB_SPR_MMCR2, ~cold->mmcr2 & MMCR2_USER);
	if (cpu_is_v31())
		ebb_mtspr(EBB_SPR_MMCR3, ~cold->mmcr3);
	read_state(mine);
	/*
	 * Sleep, so that the kernel saves the registers: fork could copy the
	 * saved values.
	 */
	ASSERT_EQ(0, child_start(&child, do_nothing, NULL));
	ASSERT_EQ(0, child_end(&child));
	ASSERT_EQ(0, child_start(&child, first_sight, warm));
	ASSERT_EQ(0, child_end(&child));
	close(fd);
}

TEST(e10_fork_starts_with_a_fresh_pmu_state)
{
	struct user_state *states, mine;

	REQUIRE_EBB();
	states = shared_memory(2 * sizeof(*states));
	ASSERT_NE(NULL, states);
	cold_and_warm(_metadata, &states[0], &states[1], &mine);
	EXPECT_EQ(states[0].mmcr0, states[1].mmcr0);
	EXPECT_EQ(states[0].mmcr2, states[1].mmcr2);
	EXPECT_EQ(states[0].siar, states[1].siar);
	EXPECT_EQ(states[0].sdar, states[1].sdar);
	EXPECT_EQ(states[0].sier, states[1].sier);
}

TEST(e10_fork_does_not_copy_mmcr3_sier2_sier3)
{
	struct user_state *states, mine;

	REQUIRE_EBB();
	if (!cpu_is_v31())
		SKIP(return, "needs POWER10");
	states = shared_memory(2 * sizeof(*states));
	ASSERT_NE(NULL, states);
	cold_and_warm(_metadata, &states[0], &states[1], &mine);
	/*
	 * Check first that the parent's MMCR3, SIER2 and SIER3 differ from the
	 * default of 0.
	 */
	EXPECT_NE(0, mine.mmcr3 | mine.sier2 | mine.sier3);
	EXPECT_EQ(states[0].mmcr3, states[1].mmcr3);
	EXPECT_EQ(states[0].sier2, states[1].sier2);
	EXPECT_EQ(states[0].sier3, states[1].sier3);
}

/* Numbers counted by a process that has EBBs of an event opened by its parent */
struct target {
	unsigned long ebbs;
	unsigned long ill;
};

static int willing(struct parent *parent, void *arg)
{
	struct target *target = arg;

	catch_ill();
	memset(&tally, 0, sizeof(tally));
	tally.pmcs = 1u << 1;
	tally.period = PERIOD;
	ebb_enable(tally_handler);
	ebb_mtspr(EBB_SPR_BESCRS, EBB_BESCR_PME);
	if (parent_tell(parent) || parent_wait(parent))
		return 2;
	/* EBBs were enabled before the parent opened the event on this process. */
	ebb_set_period(1, PERIOD);
	work_until(10);
	target->ebbs = tally.count;
	target->ill = tally.ill;
	return 0;
}

TEST(e8_event_on_a_willing_process)
{
	struct target *target = shared_memory(sizeof(*target));
	struct child child;
	uint64_t value;
	int fd;

	REQUIRE_EBB();
	ASSERT_NE(NULL, target);
	ASSERT_EQ(0, child_start(&child, willing, target));
	ASSERT_EQ(0, child_heard(&child));
	fd = ebb_open(event_on(1), child.pid, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	/* The child sleeps: check that its event is off the PMU, but not in error state. */
	EXPECT_EQ(sizeof(value), read(fd, &value, sizeof(value)));
	EXPECT_FALSE(pmc_writable());
	ASSERT_EQ(0, child_go(&child));
	EXPECT_EQ(0, child_end(&child));
	EXPECT_LE(10, target->ebbs);
	EXPECT_EQ(0, target->ill);
	close(fd);
}

/* Run a process that enables EBBs only after its parent has opened the event */
static int willing_and_armed(struct parent *parent, void *arg)
{
	struct target *target = arg;

	catch_ill();
	if (parent_tell(parent) || parent_wait(parent))
		return 2;
	arm(1u << 1, PERIOD);
	work_until(10);
	target->ebbs = tally.count;
	target->ill = tally.ill;
	return 0;
}

TEST(e8_willing_process_arms_the_event_itself)
{
	struct target *target = shared_memory(sizeof(*target));
	struct child child;
	int fd;

	REQUIRE_EBB();
	ASSERT_NE(NULL, target);
	ASSERT_EQ(0, child_start(&child, willing_and_armed, target));
	ASSERT_EQ(0, child_heard(&child));
	fd = ebb_open(event_on(1), child.pid, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	ASSERT_EQ(0, child_go(&child));
	EXPECT_EQ(0, child_end(&child));
	EXPECT_LE(10, target->ebbs);
	EXPECT_EQ(0, target->ill);
	close(fd);
}

static int unwilling(struct parent *parent, void *arg)
{
	struct target *target = arg;

	memset(&tally, 0, sizeof(tally));
	if (parent_tell(parent) || parent_wait(parent))
		return 2;
	work(100 * PERIOD);
	asm volatile("" : : : "memory");
	target->ebbs = tally.count;
	return !registers_are_zero();
}

TEST(e8_unwilling_process_gets_no_ebb)
{
	struct target *target = shared_memory(sizeof(*target));
	struct child child;
	int fd;

	REQUIRE_EBB();
	ASSERT_NE(NULL, target);
	ASSERT_EQ(0, child_start(&child, unwilling, target));
	ASSERT_EQ(0, child_heard(&child));
	fd = ebb_open(event_on(1), child.pid, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	ASSERT_EQ(0, child_go(&child));
	EXPECT_EQ(0, child_end(&child));
	EXPECT_EQ(0, target->ebbs);
	close(fd);
}

/* Run a process whose event is closed by its parent while EBBs come */
static int flow_until_taken(struct parent *parent, void *arg)
{
	struct target *target = arg;

	catch_ill();
	if (parent_tell(parent) || parent_wait(parent))
		return 2;
	arm(1u << 1, PERIOD);
	if (!work_until(10))
		return 3;
	if (parent_tell(parent) || parent_wait(parent))
		return 4;
	work(2 * PERIOD);
	target->ebbs = tally.count;
	work(50 * PERIOD);
	asm volatile("" : : : "memory");
	return tally.count != target->ebbs || pmc_writable();
}

TEST(e8_event_taken_from_a_running_process)
{
	struct target *target = shared_memory(sizeof(*target));
	struct child child;
	int fd;

	REQUIRE_EBB();
	ASSERT_NE(NULL, target);
	ASSERT_EQ(0, child_start(&child, flow_until_taken, target));
	ASSERT_EQ(0, child_heard(&child));
	fd = ebb_open(event_on(1), child.pid, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	ASSERT_EQ(0, child_go(&child));
	ASSERT_EQ(0, child_heard(&child));
	close(fd);
	ASSERT_EQ(0, child_go(&child));
	EXPECT_EQ(0, child_end(&child));
}

static int try_to_attach(struct parent *parent, void *arg)
{
	pid_t target = (long)arg;
	int fd;

	if (setgid(65534) || setuid(65534))
		return 2;
	fd = ebb_open(event_on(1), target, -1);
	if (fd >= 0)
		return 1;
	(void)parent;
	return errno != EACCES && errno != EPERM;
}

TEST(e8_permission_is_checked)
{
	struct child child;

	REQUIRE_EBB();
	if (getuid())
		SKIP(return, "needs root");
	ASSERT_EQ(0, child_start(&child, try_to_attach,
				 (void *)(long)getpid()));
	EXPECT_EQ(0, child_end(&child));
}

TEST_HARNESS_MAIN
