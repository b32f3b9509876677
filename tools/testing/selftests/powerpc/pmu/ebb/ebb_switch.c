// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tests that EBBs and the EBB state of each task survive the scheduler: context
 * switches between processes and threads, migration, CPU hotplug and signals.
 */
#include "kselftest_harness.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include "ebb_test.h"

#define ROUNDS		100
#define LOOPS		(200 * PERIOD)
#define MANY		8

/*
 * Fill the registers with values that depend on @seed: an exception sets some
 * registers, and this function writes the rest. Then freeze the counters, so that
 * no register changes. Because each PMC has an event, the task owns all PMCs.
 */
static int take_seed(unsigned int seed, struct user_state *state)
{
	static const unsigned long mmcr2[] = {
		0x4000000000000000ul, 0x0020000000000000ul,
		0x0000100000000000ul, 0x0000000804020000ul,
	};
	int leader, pmc;

	leader = ebb_open(event_on(1), 0, -1);
	for (pmc = 2; pmc <= MAX_PMC; pmc++) {
		if (ebb_open(event_on(pmc), 0, leader) < 0)
			return -1;
	}
	if (ebb_start(leader))
		return -1;
	arm(1u << 1, PERIOD);
	if (!work_until(3))
		return -1;
	ebb_disable();
	ebb_mtspr(EBB_SPR_MMCR0, EBB_MMCR0_FC);
	ebb_mtspr(EBB_SPR_MMCR2, mmcr2[seed % 4]);
	for (pmc = 1; pmc <= MAX_PMC; pmc++)
		ebb_write_pmc(pmc, 0x1000 * seed + pmc);
	ebb_mtspr(EBB_SPR_EBBHR, 0x10000000ul * (seed + 1));
	ebb_mtspr(EBB_SPR_EBBRR, 0x10000ul * (seed + 1));
	ebb_mtspr(EBB_SPR_BESCRS, seed % 2 ? EBB_BESCR_PME : EBB_BESCR_GE);
	ebb_mtspr(EBB_SPR_BESCRR, seed % 2 ? EBB_BESCR_GE : EBB_BESCR_PME);
	read_state(state);
	return 0;
}

static int same_state(const struct user_state *state)
{
	const char *difference;
	struct user_state now;

	read_state(&now);
	difference = state_difference(state, &now);
	if (!difference)
		return 0;
	fprintf(stderr, "# %s changed\n", difference);
	return 1;
}

/*
 * Run a process whose registers must not change while its parent or another process
 * runs. The process lets its parent run in each round.
 */
static int keep_state(struct parent *parent, void *arg)
{
	struct user_state state;
	int i;

	if (take_seed((unsigned long)arg, &state))
		return 2;
	for (i = 0; i < ROUNDS; i++) {
		if (parent_tell(parent) || parent_wait(parent))
			return 3;
		if (same_state(&state))
			return 1;
	}
	return 0;
}

TEST(e9_two_processes_keep_their_registers)
{
	struct child children[2];
	int i, n;

	REQUIRE_EBB();
	ASSERT_EQ(0, bind_to(nth_cpu(0)));
	for (n = 0; n < 2; n++) {
		ASSERT_EQ(0, child_start(&children[n], keep_state,
					 (void *)(unsigned long)(n + 1)));
	}
	for (i = 0; i < ROUNDS; i++) {
		for (n = 0; n < 2; n++) {
			ASSERT_EQ(0, child_heard(&children[n]));
			ASSERT_EQ(0, child_go(&children[n]));
		}
	}
	for (n = 0; n < 2; n++) {
		EXPECT_EQ(0, child_end(&children[n]));
	}
}

TEST(e9_registers_stay_when_a_plain_task_runs_between)
{
	struct child child;
	int i;

	REQUIRE_EBB();
	ASSERT_EQ(0, bind_to(nth_cpu(0)));
	ASSERT_EQ(0, child_start(&child, keep_state, (void *)3));
	for (i = 0; i < ROUNDS; i++) {
		ASSERT_EQ(0, child_heard(&child));
		work(100);
		ASSERT_EQ(0, child_go(&child));
	}
	EXPECT_EQ(0, child_end(&child));
}

TEST(e9_plain_task_sees_nothing_of_others)
{
	struct child child;
	int i;

	REQUIRE_EBB();
	ASSERT_EQ(0, bind_to(nth_cpu(0)));
	ASSERT_EQ(0, child_start(&child, keep_state, (void *)4));
	for (i = 0; i < ROUNDS; i++) {
		ASSERT_EQ(0, child_heard(&child));
		EXPECT_EQ(0, ebb_mfspr(EBB_SPR_BESCR));
		EXPECT_EQ(0, ebb_mfspr(EBB_SPR_EBBHR));
		EXPECT_EQ(0, ebb_mfspr(EBB_SPR_EBBRR));
		EXPECT_FALSE(pmc_writable());
		ASSERT_EQ(0, child_go(&child));
	}
	EXPECT_EQ(0, child_end(&child));
}

TEST(e9_registers_move_between_cpus)
{
	struct user_state state;
	int i, cpus[2];

	REQUIRE_EBB();
	REQUIRE_CPUS(2);
	cpus[0] = nth_cpu(0);
	cpus[1] = nth_cpu(1);
	ASSERT_EQ(0, bind_to(cpus[0]));
	ASSERT_EQ(0, take_seed(5, &state));
	for (i = 1; i <= ROUNDS; i++) {
		ASSERT_EQ(0, bind_to(cpus[i % 2]));
		ASSERT_EQ(0, same_state(&state));
	}
}

/*
 * Read the registers that must not change while the handler runs. PMC2 to PMC6
 * have no event, so that they can change.
 */
static void read_handler_state(struct user_state *state)
{
	int pmc;

	read_state(state);
	for (pmc = 2; pmc <= MAX_PMC; pmc++)
		state->pmc[pmc] = 0;
}

/* Leave a PMC negative: an EBB user can also write PMCs without an event. */
static int leave_a_counter_negative(struct parent *parent, void *arg)
{
	(void)arg;
	if (begin(1) < 0)
		return 2;
	ebb_write_pmc(2, EBB_NEGATIVE);
	if (parent_tell(parent) || parent_wait(parent))
		return 3;
	return 0;
}

static void end_the_storm(struct ebb_regs *regs)
{
	(void)regs;
	if (tally.spurious > 100)
		ebb_write_pmc(2, 0);
}

TEST(e21_counter_of_another_task_makes_no_ebb)
{
	struct child child;
	int fd;

	REQUIRE_EBB();
	ASSERT_EQ(0, bind_to(nth_cpu(0)));
	ASSERT_EQ(0, child_start(&child, leave_a_counter_negative, NULL));
	ASSERT_EQ(0, child_heard(&child));
	fd = ebb_open(event_on(3), 0, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, ebb_start(fd));
	EXPECT_EQ(0, ebb_read_pmc(2));
	arm_with_hook(1u << 3, PERIOD, end_the_storm);
	work(LOOPS);
	EXPECT_TRUE(tally_fits(LOOPS));
	close(fd);
	ASSERT_EQ(0, child_go(&child));
	EXPECT_EQ(0, child_end(&child));
}

TEST(e13_counter_of_the_event_before_makes_no_ebb)
{
	int fd;

	REQUIRE_EBB();
	fd = begin(1);
	ASSERT_GE(fd, 0);
	ebb_write_pmc(2, EBB_NEGATIVE);
	ebb_disable();
	close(fd);
	fd = ebb_open(event_on(3), 0, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, ebb_start(fd));
	arm_with_hook(1u << 3, PERIOD, end_the_storm);
	work(LOOPS);
	EXPECT_TRUE(tally_fits(LOOPS));
	close(fd);
}

/*
 * Count with a plain event on PMC5, during which PMC6 also counts. PMC6 keeps its
 * value when the event is closed.
 */
static int count_on_pmc5(struct parent *parent, void *arg)
{
	struct count count;
	int fd;

	(void)arg;
	fd = open_plain(PERF_TYPE_RAW, 0x500fa, false);
	if (fd < 0)
		return 2;
	work(LOOPS);
	if (read_count(fd, &count) != sizeof(count) || !count.running)
		return 3;
	close(fd);
	/* User mode can read PMC6 here: check that PMC6 has counted. */
	if (!ebb_read_pmc(6))
		return 4;
	return parent_tell(parent) || parent_wait(parent);
}

TEST(e27_counters_of_a_plain_event_before_are_not_seen)
{
	struct child child;
	int fd, pmc;

	REQUIRE_EBB();
	ASSERT_EQ(0, bind_to(nth_cpu(0)));
	ASSERT_EQ(0, child_start(&child, count_on_pmc5, NULL));
	ASSERT_EQ(0, child_heard(&child));
	fd = ebb_open(event_on(1), 0, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, ebb_start(fd));
	for (pmc = 2; pmc <= MAX_PMC; pmc++) {
		EXPECT_EQ(0, ebb_read_pmc(pmc))
			TH_LOG("PMC%d", pmc);
	}
	close(fd);
	ASSERT_EQ(0, child_go(&child));
	EXPECT_EQ(0, child_end(&child));
}

/* Variables of switch_in_handler(), an EBB handler that lets another process run */
static struct parent *handler_parent;
static unsigned long handler_changes;

static void switch_in_handler(struct ebb_regs *regs)
{
	struct user_state before, after;
	int error = errno;

	(void)regs;
	read_handler_state(&before);
	if (parent_tell(handler_parent) || parent_wait(handler_parent))
		handler_changes++;
	read_handler_state(&after);
	if (state_difference(&before, &after) && !handler_changes++)
		fprintf(stderr, "# %s changed in the handler\n",
			state_difference(&before, &after));
	errno = error;
}

static int be_switched_in_handler(struct parent *parent, void *arg)
{
	(void)arg;
	handler_parent = parent;
	if (begin(1) < 0)
		return 2;
	tally.hook = switch_in_handler;
	if (!work_until(ROUNDS))
		return 3;
	ebb_disable();
	if (tally.spurious || tally.ill)
		return 4;
	return handler_changes ? 1 : 0;
}

TEST(e9_switched_out_in_the_handler)
{
	struct child children[2];
	int i, n;

	REQUIRE_EBB();
	ASSERT_EQ(0, bind_to(nth_cpu(0)));
	for (n = 0; n < 2; n++) {
		ASSERT_EQ(0, child_start(&children[n], be_switched_in_handler,
					 NULL));
	}
	for (i = 0; i < ROUNDS; i++) {
		for (n = 0; n < 2; n++) {
			ASSERT_EQ(0, child_heard(&children[n]));
			ASSERT_EQ(0, child_go(&children[n]));
		}
	}
	for (n = 0; n < 2; n++) {
		EXPECT_EQ(0, child_end(&children[n]));
	}
}

static int moves;
static int move_cpus[2];

static void move_in_handler(struct ebb_regs *regs)
{
	struct user_state before, after;

	(void)regs;
	read_handler_state(&before);
	if (bind_to(move_cpus[++moves % 2]))
		handler_changes++;
	read_handler_state(&after);
	if (state_difference(&before, &after))
		handler_changes++;
}

TEST(e9_moved_to_another_cpu_in_the_handler)
{
	int fd;

	REQUIRE_EBB();
	REQUIRE_CPUS(2);
	move_cpus[0] = nth_cpu(0);
	move_cpus[1] = nth_cpu(1);
	fd = begin(1);
	ASSERT_GE(fd, 0);
	tally.hook = move_in_handler;
	EXPECT_TRUE(work_until(ROUNDS));
	ebb_disable();
	EXPECT_EQ(0, handler_changes);
	EXPECT_EQ(0, tally.spurious);
	EXPECT_EQ(0, tally.ill);
	close(fd);
}

/* Run a process that checks the number of EBBs for a fixed amount of work() */
static int do_counted_work(struct parent *parent, void *arg)
{
	unsigned long loops = 0;

	if (arg && bind_to((unsigned long)arg - 1))
		return 2;
	if (parent_tell(parent) || parent_wait(parent))
		return 3;
	if (begin(1) < 0)
		return 4;
	for (; loops < LOOPS; loops += LOOPS / 20) {
		work(LOOPS / 20);
		sched_yield();
	}
	ebb_disable();
	return !tally_fits(loops);
}

static int run_many(unsigned int n, child_fn *fn, bool one_cpu)
{
	struct child children[MANY];
	void *cpu = one_cpu ? (void *)(nth_cpu(0) + 1ul) : NULL;
	int failed = 0;
	unsigned int i;

	for (i = 0; i < n; i++)
		failed |= child_start(&children[i], fn, cpu);
	for (i = 0; i < n; i++)
		failed |= child_heard(&children[i]);
	for (i = 0; i < n; i++)
		failed |= child_go(&children[i]);
	for (i = 0; i < n; i++)
		failed |= child_end(&children[i]);
	return failed;
}

TEST(e21_one_process_loses_none)
{
	REQUIRE_EBB();
	EXPECT_EQ(0, run_many(1, do_counted_work, true));
}

TEST(e21_two_processes_on_one_cpu_lose_none)
{
	REQUIRE_EBB();
	EXPECT_EQ(0, run_many(2, do_counted_work, true));
}

TEST(e21_many_processes_on_one_cpu_lose_none)
{
	REQUIRE_EBB();
	EXPECT_EQ(0, run_many(MANY, do_counted_work, true));
}

TEST(e21_many_processes_on_all_cpus_lose_none)
{
	REQUIRE_EBB();
	EXPECT_EQ(0, run_many(MANY, do_counted_work, false));
}

/* Run a process that has enabled EBBs, but has no event: check that no EBB comes. */
static int expect_none(struct parent *parent, void *arg)
{
	int i;

	if (bind_to((unsigned long)arg - 1))
		return 2;
	memset(&tally, 0, sizeof(tally));
	ebb_enable(tally_handler);
	ebb_mtspr(EBB_SPR_BESCRS, EBB_BESCR_PME);
	if (parent_tell(parent) || parent_wait(parent))
		return 3;
	for (i = 0; i < 200; i++) {
		work(PERIOD);
		sched_yield();
	}
	asm volatile("" : : : "memory");
	return tally.count != 0;
}

TEST(e21_none_is_delivered_to_another_task)
{
	struct child busy[2], idle[2];
	void *cpu = (void *)(nth_cpu(0) + 1ul);
	int i;

	REQUIRE_EBB();
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, child_start(&busy[i], do_counted_work, cpu));
		ASSERT_EQ(0, child_start(&idle[i], expect_none, cpu));
	}
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, child_heard(&busy[i]));
		ASSERT_EQ(0, child_heard(&idle[i]));
	}
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, child_go(&busy[i]));
		ASSERT_EQ(0, child_go(&idle[i]));
	}
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(0, child_end(&busy[i]));
		EXPECT_EQ(0, child_end(&idle[i]));
	}
}

/*
 * Cause an exception while BESCR[GE] is clear, let the parent run, which has
 * enabled EBBs, and set GE. The EBB must come only to this task.
 */
static int keep_pending(struct parent *parent, void *arg)
{
	int i;

	(void)arg;
	if (begin(1) < 0)
		return 2;
	for (i = 0; i < ROUNDS; i++) {
		ebb_disable();
		tally.count = 0;
		work(PERIOD);
		if (parent_tell(parent) || parent_wait(parent))
			return 3;
		if (tally.count)
			return 4;
		ebb_mtspr(EBB_SPR_BESCRS, EBB_BESCR_GE);
		work(10);
		asm volatile("" : : : "memory");
		if (tally.count != 1 || tally.spurious)
			return 1;
	}
	return 0;
}

TEST(e21_pending_exception_stays_with_its_task)
{
	struct child child;
	int i;

	REQUIRE_EBB();
	ASSERT_EQ(0, bind_to(nth_cpu(0)));
	ASSERT_EQ(0, child_start(&child, keep_pending, NULL));
	memset(&tally, 0, sizeof(tally));
	ebb_enable(tally_handler);
	ebb_mtspr(EBB_SPR_BESCRS, EBB_BESCR_PME);
	for (i = 0; i < ROUNDS; i++) {
		ASSERT_EQ(0, child_heard(&child));
		work(1000);
		ASSERT_EQ(0, child_go(&child));
	}
	EXPECT_EQ(0, child_end(&child));
	EXPECT_EQ(0, tally.count);
	ebb_disable();
}

/* Run @keep in a child, which is switched out once in each of its rounds. */
static void switch_each_round(struct __test_metadata *_metadata,
			      int (*keep)(struct parent *parent, void *arg))
{
	struct child child;
	int i;

	REQUIRE_EBB();
	ASSERT_EQ(0, bind_to(nth_cpu(0)));
	ASSERT_EQ(0, child_start(&child, keep, NULL));
	for (i = 0; i < ROUNDS; i++) {
		ASSERT_EQ(0, child_heard(&child)) {
			TH_LOG("round %d: the child ended with status %d",
			       i, child_end(&child));
		}
		ASSERT_EQ(0, child_go(&child));
	}
	EXPECT_EQ(0, child_end(&child));
}

/*
 * Check that the kernel restores the pending exception that a POWER8E loses
 * with the PMU.
 */
TEST(e20_pending_exception_survives_a_switch)
{
	switch_each_round(_metadata, keep_pending);
}

/*
 * Keep an alert pending with BESCR[PME] clear: then it is pending only in
 * MMCR0[PMAO], and not in BESCR[PMEO]. POWER8E loses such an alert when the PMU
 * stops.
 */
static int keep_alert(struct parent *parent, void *arg)
{
	unsigned long bescr, mmcr0, late = lateness();
	bool wait;
	int i;

	(void)arg;
	if (begin(1) < 0)
		return 2;
	wait = alerts_wait_for_pme();
	arm(1u << 1, PERIOD);
	for (i = 0; i < ROUNDS; i++) {
		ebb_mtspr(EBB_SPR_BESCRR, EBB_BESCR_PME);
		tally.count = 0;
		work(PERIOD);
		bescr = ebb_mfspr(EBB_SPR_BESCR);
		mmcr0 = ebb_mfspr(EBB_SPR_MMCR0);
		if ((bescr & EBB_BESCR_PMEO) || !(mmcr0 & EBB_MMCR0_PMAO))
			return 5;
		if (parent_tell(parent) || parent_wait(parent))
			return 3;
		if (tally.count)
			return 4;
		if (wait)
			ebb_mtspr(EBB_SPR_BESCRS, EBB_BESCR_PME);
		else
			set_pme_for_alerts();
		/* a switch restores the alert, from when on its exception can be late */
		work(10 + late);
		asm volatile("" : : : "memory");
		if (tally.count != 1 || tally.spurious)
			return 1;
	}
	return 0;
}

TEST(e20_alert_in_mmcr0_survives_a_switch)
{
	switch_each_round(_metadata, keep_alert);
}

static void *thread_work(void *arg)
{
	pthread_barrier_t *barrier = arg;
	bool right;
	int fd;

	fd = begin(1);
	pthread_barrier_wait(barrier);
	if (fd < 0)
		return (void *)1;
	tally.count = 0;
	ebb_set_period(1, PERIOD);
	work(LOOPS);
	ebb_disable();
	right = tally_fits(LOOPS);
	close(fd);
	return (void *)(unsigned long)!right;
}

TEST(e21_threads_have_their_own_ebbs)
{
	pthread_barrier_t barrier;
	pthread_t threads[MANY];
	void *result;
	int i;

	REQUIRE_EBB();
	/* measure before there are threads: lateness() keeps its result for tally_fits() */
	lateness();
	ASSERT_EQ(0, pthread_barrier_init(&barrier, NULL, MANY));
	for (i = 0; i < MANY; i++) {
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, thread_work,
					    &barrier));
	}
	for (i = 0; i < MANY; i++) {
		ASSERT_EQ(0, pthread_join(threads[i], &result));
		EXPECT_EQ(NULL, result);
	}
}

static void *thread_without(void *arg)
{
	(void)arg;
	memset(&tally, 0, sizeof(tally));
	work(50 * PERIOD);
	asm volatile("" : : : "memory");
	return (void *)tally.count;
}

TEST(e21_thread_without_an_event_gets_none)
{
	pthread_t thread;
	void *result;
	int fd;

	REQUIRE_EBB();
	fd = begin(1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, thread_without, NULL));
	work(50 * PERIOD);
	ASSERT_EQ(0, pthread_join(thread, &result));
	EXPECT_EQ(NULL, result);
	EXPECT_LE(at_least(95), tally.count);
	ebb_disable();
	close(fd);
}

static volatile sig_atomic_t signals;

static void count_signal(int sig)
{
	(void)sig;
	signals++;
	/* Work so long that EBBs also come in the signal handler. */
	work(PERIOD);
}

TEST(e21_signals_lose_none)
{
	unsigned long loops = 0;
	int fd;

	REQUIRE_EBB();
	signal(SIGUSR1, count_signal);
	fd = begin(1);
	ASSERT_GE(fd, 0);
	while (loops < LOOPS) {
		raise(SIGUSR1);
		work(PERIOD);
		loops += 2 * PERIOD;
	}
	ebb_disable();
	EXPECT_EQ(LOOPS / PERIOD / 2, signals);
	EXPECT_TRUE(tally_fits(loops));
	close(fd);
}

static void raise_in_handler(struct ebb_regs *regs)
{
	(void)regs;
	raise(SIGUSR1);
}

TEST(e21_signals_in_the_handler)
{
	int fd;

	REQUIRE_EBB();
	signal(SIGUSR1, count_signal);
	fd = begin(1);
	ASSERT_GE(fd, 0);
	tally.hook = raise_in_handler;
	EXPECT_TRUE(work_until(ROUNDS));
	ebb_disable();
	EXPECT_EQ(tally.count, signals);
	EXPECT_EQ(0, tally.spurious);
	EXPECT_EQ(0, tally.ill);
	close(fd);
}

/* Send signals to the parent, and wait for its answer to each signal. */
static int signal_the_parent(struct parent *parent, void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < 200; i++) {
		if (parent_wait(parent))
			return 2;
		if (kill(getppid(), SIGUSR1))
			return 1;
	}
	return 0;
}

static int signal_reply;

static void answer_signal(int sig)
{
	int error = errno;

	(void)sig;
	signals++;
	if (signals < 200 && write(signal_reply, "", 1) != 1)
		signals = -1000000;
	errno = error;
}

TEST(e21_signals_of_another_process_lose_none)
{
	unsigned long loops = 0;
	struct child child;
	int fd;

	REQUIRE_EBB();
	signal(SIGUSR1, answer_signal);
	ASSERT_EQ(0, child_start(&child, signal_the_parent, NULL));
	signal_reply = child.to;
	fd = begin(1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, child_go(&child));
	/* Work until all signals have come; a negative number of signals is an error. */
	while (signals >= 0 && signals < 200) {
		work(PERIOD);
		loops += PERIOD;
	}
	ebb_disable();
	EXPECT_EQ(200, signals);
	EXPECT_EQ(0, tally.spurious);
	EXPECT_EQ(0, tally.ill);
	EXPECT_LE(at_least(2 * loops / PERIOD), tally.count);
	close(fd);
	EXPECT_EQ(0, child_end(&child));
}

/* Memory shared by a parent and its children, which take EBBs until @stop is set */
struct flow {
	bool stop;
	unsigned long ebbs;
};

static int flow_until_told(struct parent *parent, void *arg)
{
	struct flow *flow = arg;
	unsigned long loops = 0;

	if (begin(1) < 0)
		return 2;
	if (parent_tell(parent))
		return 3;
	while (!__atomic_load_n(&flow->stop, __ATOMIC_ACQUIRE)) {
		work(PERIOD);
		loops += PERIOD;
		__atomic_fetch_add(&flow->ebbs, 2, __ATOMIC_RELEASE);
	}
	ebb_disable();
	return !tally_fits(loops);
}

/* Wait until the children have done the work for @ebbs more EBBs. */
static void wait_for_flow(struct flow *flow, unsigned long ebbs)
{
	ebbs += __atomic_load_n(&flow->ebbs, __ATOMIC_ACQUIRE);
	while (__atomic_load_n(&flow->ebbs, __ATOMIC_ACQUIRE) < ebbs)
		sched_yield();
}

TEST(e21_migration_loses_none)
{
	struct flow *flow = shared_memory(sizeof(*flow));
	struct child child;
	cpu_set_t set;
	int i;

	REQUIRE_EBB();
	REQUIRE_CPUS(2);
	ASSERT_NE(NULL, flow);
	ASSERT_EQ(0, child_start(&child, flow_until_told, flow));
	ASSERT_EQ(0, child_heard(&child));
	for (i = 0; i < ROUNDS; i++) {
		CPU_ZERO(&set);
		CPU_SET(nth_cpu(i % 2), &set);
		ASSERT_EQ(0, sched_setaffinity(child.pid, sizeof(set), &set));
		wait_for_flow(flow, 4);
	}
	__atomic_store_n(&flow->stop, true, __ATOMIC_RELEASE);
	EXPECT_EQ(0, child_end(&child));
}

static int set_online(int cpu, bool online)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online",
		 cpu);
	return write_file(path, online ? "1" : "0") ? 0 : -1;
}

TEST(e21_cpu_hotplug_loses_none)
{
	struct flow *flow = shared_memory(sizeof(*flow));
	struct child children[4];
	unsigned int i, n;
	int cpu;

	REQUIRE_EBB();
	REQUIRE_CPUS(2);
	ASSERT_NE(NULL, flow);
	cpu = nth_cpu(nr_cpus() - 1);
	if (access("/sys/devices/system/cpu/online", R_OK) ||
	    set_online(cpu, true))
		SKIP(return, "cannot take CPU %d off", cpu);
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, child_start(&children[i], flow_until_told, flow));
		ASSERT_EQ(0, child_heard(&children[i]));
	}
	for (n = 0; n < 10; n++) {
		EXPECT_EQ(0, set_online(cpu, false));
		wait_for_flow(flow, 40);
		EXPECT_EQ(0, set_online(cpu, true));
		wait_for_flow(flow, 40);
	}
	__atomic_store_n(&flow->stop, true, __ATOMIC_RELEASE);
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(0, child_end(&children[i]));
	}
}

TEST_HARNESS_MAIN
