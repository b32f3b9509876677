// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tests that each overflow of a counter causes exactly one EBB, in the task that
 * owns the event, even if another action comes between the overflow and the EBB:
 * the task is switched out, moved, stopped, gets a signal, freezes the counters,
 * disables and enables the event, forks, or executes a new program.
 *
 * Each test lets the counter overflow after a number of instructions, and calls
 * a do_fn, such as yield(). The test repeats this with increasing numbers, so that
 * the overflow comes before the call, at many places during the call, and after
 * the call, in work(). No test depends on how long the kernel takes, nor on when
 * the processor reports an overflow.
 */
#include "kselftest_harness.h"
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include "ebb_test.h"

/* A period so long that the counter does not overflow again during a test */
#define NEVER		0x40000000

/*
 * Number of periods to try, and the difference between two periods, for overflows
 * in user mode only (USER), and for overflows in user mode and the kernel (KERNEL)
 */
#define USER_STEPS	120
#define USER_STRIDE	1
#define KERNEL_STEPS	150
#define KERNEL_STRIDE	61

static void one_more(unsigned int period)
{
	tally.count = 0;
	tally.spurious = 0;
	tally.ill = 0;
	asm volatile("" : : : "memory");
	ebb_set_period(1, period);
}

/*
 * Work until an EBB comes, and then check that no second EBB comes. With @off, the
 * event was disabled for a time, and an exception could call the handler during
 * that time. The handler then got SIGILL and could not write the counter, so that
 * a second EBB comes when the event is enabled again.
 */
static bool one_ebb(unsigned int period, bool off)
{
	int i;

	asm volatile("" : : : "memory");
	for (i = 0; i < 1000 && !tally.count; i++)
		work(1000);
	work(5000);
	asm volatile("" : : : "memory");
	if (tally.count == 1 && !tally.spurious && !tally.ill)
		return true;
	if (off && tally.count == 2 && tally.spurious < 2 && tally.ill)
		return true;
	fprintf(stderr, "# period %u: %lu EBBs, %lu of them spurious, %lu SIGILLs\n",
		period, tally.count, tally.spurious, tally.ill);
	fprintf(stderr, "# MMCR0 %lx BESCR %lx PMC1 %lx\n", ebb_mfspr(EBB_SPR_MMCR0),
		ebb_mfspr(EBB_SPR_BESCR), ebb_read_pmc(1));
	return false;
}

static bool exactly_one(unsigned int period)
{
	return one_ebb(period, false);
}

static int open_event(bool in_kernel)
{
	struct perf_event_attr attr;
	int fd;

	catch_ill();
	ebb_attr(&attr, event_on(1));
	attr.exclude_kernel = !in_kernel;
	fd = perf_open(&attr, 0, -1, -1);
	if (fd >= 0 && ebb_start(fd)) {
		close(fd);
		return -1;
	}
	if (fd >= 0)
		arm(1u << 1, NEVER);
	return fd;
}

/*
 * Arguments for the functions of type do_fn, each of which runs one action between
 * an overflow and its EBB
 */
struct happening {
	int fd;
	struct child other;
	bool alerts_wait;
	int turn;
	int cpus[2];
};

typedef int do_fn(struct happening *h);

static int yield(struct happening *h)
{
	(void)h;
	return sched_yield();
}

/* Let the process @h->other run on this CPU, and wait for its answer. */
static int take_turns(struct happening *h)
{
	return child_go(&h->other) || child_heard(&h->other);
}

static int move(struct happening *h)
{
	return bind_to(h->cpus[h->turn++ % 2]);
}

/*
 * Freeze the counters by MMCR0. Writing MMCR0 cancels an alert that has not become
 * an exception yet. On a processor that does not alert again for a negative
 * counter, set PMAO to raise the alert again.
 */
static int freeze_by_mmcr0(struct happening *h)
{
	(void)h;
	ebb_mtspr(EBB_SPR_MMCR0, EBB_MMCR0_FC);
	asm volatile("nop; nop; nop; nop" : : : "memory");
	/* Clear GE, so that no EBB comes between the check of PMAO and setting PMAO. */
	ebb_mtspr(EBB_SPR_BESCRR, EBB_BESCR_GE);
	ebb_mtspr(EBB_SPR_MMCR0, EBB_MMCR0_PMAE);
	if ((ebb_read_pmc(1) & EBB_NEGATIVE) &&
	    !(ebb_mfspr(EBB_SPR_MMCR0) & EBB_MMCR0_PMAO))
		ebb_mtspr(EBB_SPR_MMCR0, EBB_MMCR0_FC | EBB_MMCR0_PMAO);
	ebb_mtspr(EBB_SPR_BESCRS, EBB_BESCR_GE);
	return 0;
}

static int freeze_by_mmcr2(struct happening *h)
{
	(void)h;
	ebb_mtspr(EBB_SPR_MMCR2, MMCR2_USER);
	asm volatile("nop; nop; nop; nop" : : : "memory");
	ebb_mtspr(EBB_SPR_MMCR2, 0);
	return 0;
}

static int freeze_over_a_switch(struct happening *h)
{
	int error;

	ebb_mtspr(EBB_SPR_MMCR2, MMCR2_USER);
	error = take_turns(h);
	ebb_mtspr(EBB_SPR_MMCR2, 0);
	return error;
}

static int mask_by_ge(struct happening *h)
{
	(void)h;
	ebb_mtspr(EBB_SPR_BESCRR, EBB_BESCR_GE);
	sched_yield();
	ebb_mtspr(EBB_SPR_BESCRS, EBB_BESCR_GE);
	return 0;
}

/* Clear BESCR[PME], so that the alert stays pending in MMCR0[PMAO]. */
static int mask_by_pme(struct happening *h)
{
	int error;

	ebb_mtspr(EBB_SPR_BESCRR, EBB_BESCR_PME);
	error = take_turns(h);
	if (h->alerts_wait)
		ebb_mtspr(EBB_SPR_BESCRS, EBB_BESCR_PME);
	else
		set_pme_for_alerts();
	return error;
}

static int raise_signal(struct happening *h)
{
	(void)h;
	return raise(SIGUSR1);
}

static int fork_child(struct happening *h)
{
	int status;
	pid_t pid;

	(void)h;
	pid = fork();
	if (!pid) {
		/* Check that a pending EBB of the parent does not reach the child. */
		work(100);
		asm volatile("" : : : "memory");
		_exit(ebb_mfspr(EBB_SPR_BESCR) || ebb_mfspr(EBB_SPR_EBBHR));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

static int open_another(struct happening *h)
{
	int fd = open_plain(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false);

	(void)h;
	return fd < 0 ? -1 : close(fd);
}

static int disable_and_enable(struct happening *h)
{
	return ioctl(h->fd, PERF_EVENT_IOC_DISABLE, 0) ||
	       ioctl(h->fd, PERF_EVENT_IOC_ENABLE, 0);
}

static int disable_by_prctl(struct happening *h)
{
	(void)h;
	return prctl(PR_TASK_PERF_EVENTS_DISABLE) ||
	       prctl(PR_TASK_PERF_EVENTS_ENABLE);
}

static int read_event(struct happening *h)
{
	unsigned long value;

	return read(h->fd, &value, sizeof(value)) != sizeof(value);
}

static int touch_new_page(struct happening *h)
{
	char *p = shared_memory(getpagesize());

	(void)h;
	if (!p)
		return -1;
	*(volatile char *)p = 1;
	return munmap(p, getpagesize());
}

/*
 * The process that take_turns() lets run, with or without an EBB event. It has
 * enabled EBBs, but must not take an EBB of the tested task.
 */
static int other_task(struct parent *parent, void *arg)
{
	bool has_event = arg;

	memset(&tally, 0, sizeof(tally));
	if (has_event && open_event(false) < 0)
		return 2;
	if (!has_event) {
		ebb_enable(tally_handler);
		ebb_mtspr(EBB_SPR_BESCRS, EBB_BESCR_PME);
	}
	/* parent_wait() fails when the parent has closed its end of the pipe */
	while (!parent_wait(parent)) {
		work(10);
		if (parent_tell(parent))
			return 3;
	}
	asm volatile("" : : : "memory");
	return tally.count != 0;
}

static void count_signal(int sig)
{
	(void)sig;
	work(20);
}

FIXTURE(meanwhile)
{
	struct happening h;
	bool has_other;
};

FIXTURE_VARIANT(meanwhile)
{
	do_fn *fn;
	bool other_has_event;
	bool needs_cpus;
	bool off;	/* true if @fn disables the event and enables it again */
};

FIXTURE_VARIANT_ADD(meanwhile, yields) { .fn = yield };
FIXTURE_VARIANT_ADD(meanwhile, is_switched_out_for_an_ebb_task) {
	.fn = take_turns, .other_has_event = true
};

FIXTURE_VARIANT_ADD(meanwhile, is_switched_out_for_a_plain_task) {
	.fn = take_turns
};

FIXTURE_VARIANT_ADD(meanwhile, moves) { .fn = move, .needs_cpus = true };
FIXTURE_VARIANT_ADD(meanwhile, freezes_in_mmcr0) { .fn = freeze_by_mmcr0 };
FIXTURE_VARIANT_ADD(meanwhile, freezes_in_mmcr2) { .fn = freeze_by_mmcr2 };
FIXTURE_VARIANT_ADD(meanwhile, freezes_and_is_switched_out) {
	.fn = freeze_over_a_switch, .other_has_event = true
};

FIXTURE_VARIANT_ADD(meanwhile, holds_back_by_ge) { .fn = mask_by_ge };
FIXTURE_VARIANT_ADD(meanwhile, holds_back_by_pme) {
	.fn = mask_by_pme, .other_has_event = true
};

FIXTURE_VARIANT_ADD(meanwhile, gets_a_signal) { .fn = raise_signal };
FIXTURE_VARIANT_ADD(meanwhile, forks) { .fn = fork_child };
FIXTURE_VARIANT_ADD(meanwhile, opens_another_event) { .fn = open_another };
FIXTURE_VARIANT_ADD(meanwhile, turns_the_event_off_and_on) {
	.fn = disable_and_enable, .off = true
};

FIXTURE_VARIANT_ADD(meanwhile, turns_all_events_off_and_on) {
	.fn = disable_by_prctl, .off = true
};

FIXTURE_VARIANT_ADD(meanwhile, reads_the_event) { .fn = read_event };
FIXTURE_VARIANT_ADD(meanwhile, faults) { .fn = touch_new_page };

FIXTURE_SETUP(meanwhile)
{
	if (!ebb_available())
		SKIP(return, "no event-based branches on this machine");
	if (variant->needs_cpus && nr_cpus() < 2)
		SKIP(return, "needs 2 CPUs");
	signal(SIGUSR1, count_signal);
	self->h.cpus[0] = nth_cpu(0);
	self->h.cpus[1] = nth_cpu(1);
	ASSERT_EQ(0, bind_to(self->h.cpus[0]));
	ASSERT_EQ(0, child_start(&self->h.other, other_task,
				 (void *)(long)variant->other_has_event));
	self->has_other = true;
}

FIXTURE_TEARDOWN(meanwhile)
{
	if (self->has_other) {
		EXPECT_EQ(0, child_end(&self->h.other));
	}
}

static void try_all(struct __test_metadata *_metadata, struct happening *h,
		    do_fn *fn, bool in_kernel, bool off)
{
	unsigned int steps = in_kernel ? KERNEL_STEPS : USER_STEPS;
	unsigned int stride = in_kernel ? KERNEL_STRIDE : USER_STRIDE;
	unsigned int i;

	h->fd = open_event(in_kernel);
	ASSERT_GE(h->fd, 0);
	h->alerts_wait = alerts_wait_for_pme();
	arm(1u << 1, NEVER);
	for (i = 1; i <= steps; i++) {
		one_more(i * stride);
		ASSERT_EQ(0, fn(h));
		ASSERT_TRUE(one_ebb(i * stride, off));
	}
	ebb_disable();
	close(h->fd);
}

TEST_F(meanwhile, e21_overflow_in_user_mode_makes_one_ebb)
{
	try_all(_metadata, &self->h, variant->fn, false, variant->off);
}

TEST_F(meanwhile, e21_overflow_anywhere_makes_one_ebb)
{
	try_all(_metadata, &self->h, variant->fn, true, variant->off);
}

/* Check that a pending exception causes at most one EBB after the event is closed. */
TEST(e21_closed_with_an_overflow_near)
{
	unsigned int i;
	int fd;

	REQUIRE_EBB();
	for (i = 1; i <= 200; i++) {
		fd = open_event(true);
		ASSERT_GE(fd, 0);
		one_more(i * KERNEL_STRIDE);
		close(fd);
		work(5000);
		asm volatile("" : : : "memory");
		ASSERT_GE(1, tally.count);
		ebb_disable();

		/*
		 * Check that the overflow of a closed event causes no EBB for
		 * the next event.
		 */
		fd = open_event(true);
		ASSERT_GE(fd, 0);
		work(100);
		asm volatile("" : : : "memory");
		ASSERT_EQ(0, tally.count) TH_LOG("period %u", i * KERNEL_STRIDE);
		one_more(1000);
		ASSERT_TRUE(exactly_one(1000));
		ebb_disable();
		close(fd);
	}
}

/* Execute a new program near an overflow; the new program must get no EBB for it */
static int execute_near_overflow(struct parent *parent, void *arg)
{
	char *argv[] = { "ebb_pending", "--new-program", NULL };
	struct perf_event_attr attr;
	int fd;

	(void)parent;
	catch_ill();
	ebb_attr(&attr, event_on(1));
	attr.exclude_kernel = 0;
	fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	if (fd < 0 || ebb_start(fd))
		return 2;
	arm(1u << 1, NEVER);
	one_more((unsigned long)arg);
	execv("/proc/self/exe", argv);
	return 3;
}

static int new_program(void)
{
	tally.pmcs = 1u << 1;
	tally.period = NEVER;
	ebb_handler = tally_handler;
	work(10000);
	/* Check that enabling EBBs causes no EBB for an exception of the old program. */
	ebb_enable(tally_handler);
	ebb_mtspr(EBB_SPR_BESCRS, EBB_BESCR_PME);
	work(10000);
	asm volatile("" : : : "memory");
	return tally.count != 0;
}

TEST(e21_executed_with_an_overflow_near)
{
	struct child child;
	unsigned long i;

	REQUIRE_EBB();
	for (i = 1; i <= 60; i++) {
		unsigned long period = i < 20 ? 10 * i : 10000 * (i - 19);

		ASSERT_EQ(0, child_start(&child, execute_near_overflow, (void *)period));
		ASSERT_EQ(0, child_end(&child)) TH_LOG("period %lu", period);
	}
}

/* How many times a tracer stops the task, at any instruction */
#define STOPS	200

struct traced {
	bool enough;		/* set when the tracer has stopped the task STOPS times */
	bool done;		/* set when the child shall stop sending signals */
};

static int try_while_traced(struct parent *parent, void *arg)
{
	struct traced *traced = arg;
	unsigned int i;

	if (open_event(true) < 0 || parent_tell(parent))
		return 2;
	for (i = 1; !__atomic_load_n(&traced->enough, __ATOMIC_ACQUIRE); i = i % 3000 + 1) {
		one_more(i);
		work(50);
		if (!exactly_one(i))
			return 1;
	}
	ebb_disable();
	return 0;
}

TEST(e21_stopped_with_an_overflow_near)
{
	struct traced *traced = shared_memory(sizeof(*traced));
	struct child child;
	int status, stops;

	REQUIRE_EBB();
	ASSERT_NE(NULL, traced);
	ASSERT_EQ(0, child_start(&child, try_while_traced, traced));
	ASSERT_EQ(0, child_heard(&child));
	ASSERT_EQ(0, ptrace(PTRACE_SEIZE, child.pid, NULL, NULL));
	for (stops = 0; stops < STOPS; stops++) {
		ASSERT_EQ(0, ptrace(PTRACE_INTERRUPT, child.pid, NULL, NULL));
		ASSERT_EQ(child.pid, waitpid(child.pid, &status, __WALL));
		/* check that the task has not ended early because it lost an exception */
		ASSERT_TRUE(WIFSTOPPED(status));
		ASSERT_EQ(0, ptrace(PTRACE_CONT, child.pid, NULL, NULL));
	}
	__atomic_store_n(&traced->enough, true, __ATOMIC_RELEASE);
	EXPECT_EQ(0, child_end(&child));
}

/* Run overflows in a task that its tracer single-steps */
static int overflow_in_steps(struct parent *parent, void *arg)
{
	unsigned int i;

	(void)arg;
	if (open_event(false) < 0 || parent_tell(parent) || parent_wait(parent))
		return 2;
	for (i = 1; i <= 60; i += 7) {
		one_more(i);
		work(40);
		if (!exactly_one(i))
			return 1;
	}
	ebb_disable();
	return 0;
}

TEST(e21_single_stepped_through_overflows)
{
	unsigned long steps = 0;
	struct child child;
	int status;

	REQUIRE_EBB();
	ASSERT_EQ(0, child_start(&child, overflow_in_steps, NULL));
	ASSERT_EQ(0, child_heard(&child));
	ASSERT_EQ(0, ptrace(PTRACE_SEIZE, child.pid, NULL, NULL));
	ASSERT_EQ(0, ptrace(PTRACE_INTERRUPT, child.pid, NULL, NULL));
	ASSERT_EQ(child.pid, waitpid(child.pid, &status, __WALL));
	ASSERT_EQ(0, child_go(&child));
	for (; steps < 6000; steps++) {
		ASSERT_EQ(0, ptrace(PTRACE_SINGLESTEP, child.pid, NULL, NULL));
		ASSERT_EQ(child.pid, waitpid(child.pid, &status, __WALL));
		if (!WIFSTOPPED(status))
			break;
	}
	ASSERT_TRUE(WIFSTOPPED(status)) TH_LOG("status %x after %lu steps", status, steps);
	ASSERT_EQ(0, ptrace(PTRACE_DETACH, child.pid, NULL, NULL));
	EXPECT_EQ(0, child_end(&child));
}

/* Run a process that sends signals to its parent, at any instruction */
static int send_signals(struct parent *parent, void *arg)
{
	const struct traced *shared = arg;

	if (parent_wait(parent))
		return 2;
	while (!__atomic_load_n(&shared->done, __ATOMIC_ACQUIRE)) {
		if (kill(getppid(), SIGUSR1))
			return 1;
		sched_yield();
	}
	return 0;
}

TEST(e21_signalled_with_an_overflow_near)
{
	struct traced *shared = shared_memory(sizeof(*shared));
	struct child child;
	unsigned int i;
	int fd;

	REQUIRE_EBB();
	ASSERT_NE(NULL, shared);
	signal(SIGUSR1, count_signal);
	ASSERT_EQ(0, child_start(&child, send_signals, shared));
	fd = open_event(true);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, child_go(&child));
	for (i = 1; i <= 1000; i++) {
		one_more(i);
		work(50);
		EXPECT_TRUE(exactly_one(i));
	}
	ebb_disable();
	__atomic_store_n(&shared->done, true, __ATOMIC_RELEASE);
	close(fd);
	EXPECT_EQ(0, child_end(&child));
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--new-program"))
		return new_program();
	return test_harness_run(argc, argv);
}
