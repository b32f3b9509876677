// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tests of ptrace: reading and writing the register sets NT_PPC_EBB and
 * NT_PPC_PMU, and stopping a task while it takes EBBs.
 */
#include "kselftest_harness.h"
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include "ebb_test.h"

struct ebb_set {
	unsigned long ebbrr;
	unsigned long ebbhr;
	unsigned long bescr;
};

struct pmu_set {
	unsigned long siar;
	unsigned long sdar;
	unsigned long sier;
	unsigned long mmcr2;
	unsigned long mmcr0;
};

static int get_set(pid_t pid, int type, void *set, size_t size)
{
	struct iovec iov = { set, size };

	return ptrace(PTRACE_GETREGSET, pid, (void *)(long)type, &iov) ?
		errno : 0;
}

static int set_set(pid_t pid, int type, void *set, size_t size)
{
	struct iovec iov = { set, size };

	return ptrace(PTRACE_SETREGSET, pid, (void *)(long)type, &iov) ?
		errno : 0;
}

#define GET(child, type, set)	get_set((child).pid, type, &(set), sizeof(set))
#define SET(child, type, set)	set_set((child).pid, type, &(set), sizeof(set))

/*
 * The actions of a traced child, and the values that the child has read, in shared
 * memory. The child stops twice: after reading @before, and after reading @after.
 */
struct script {
	bool uses_ebb;
	bool flows;
	bool touches;
	struct user_state before;
	struct user_state after;
	bool ran;
	bool writable;
	unsigned long ebbs;
};

static int traced(struct parent *parent, void *arg)
{
	struct script *script = arg;

	(void)parent;
	catch_ill();
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		return 2;
	if (script->uses_ebb) {
		if (begin(1) < 0 || !work_until(3))
			return 3;
		if (!script->flows) {
			ebb_disable();
			ebb_mtspr(EBB_SPR_MMCR0, EBB_MMCR0_FC);
			ebb_mtspr(EBB_SPR_EBBRR, 0x12345678);
			read_state(&script->before);
		}
	}
	raise(SIGSTOP);
	if (script->touches)
		ebb_mfspr(EBB_SPR_EBBHR);
	if (script->uses_ebb && !script->flows)
		read_state(&script->after);
	if (script->flows) {
		tally.count = 0;
		work_until(10);
		script->ebbs = tally.count;
	}
	script->writable = pmc_writable();
	script->ran = true;
	raise(SIGSTOP);
	return 0;
}

FIXTURE(ptrace)
{
	struct script *script;
	struct child child;
};

FIXTURE_SETUP(ptrace)
{
	if (!ebb_available())
		SKIP(return, "no event-based branches on this machine");
	self->script = shared_memory(sizeof(*self->script));
	ASSERT_NE(NULL, self->script);
}

FIXTURE_TEARDOWN(ptrace)
{
	if (self->child.pid > 0) {
		kill(self->child.pid, SIGKILL);
		child_end(&self->child);
	}
}

/* Wait until the child stops; return false if it did not stop by its own SIGSTOP. */
static bool stopped(struct child *child)
{
	int status;

	return waitpid(child->pid, &status, 0) == child->pid &&
	       WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP;
}

/*
 * Let the child run until its next SIGSTOP. Before that, the child can cause
 * SIGILL, which also stops the child, and which is passed on to the child.
 */
static bool go_on(struct child *child)
{
	unsigned long sig = 0;
	int status;

	do {
		if (ptrace(PTRACE_CONT, child->pid, NULL, sig) ||
		    waitpid(child->pid, &status, 0) != child->pid ||
		    !WIFSTOPPED(status))
			return false;
		sig = WSTOPSIG(status);
	} while (sig == SIGILL);
	return sig == SIGSTOP;
}

static bool start_traced(struct child *child, struct script *script)
{
	return !child_start(child, traced, script) && stopped(child);
}

/* Check that ptrace shows no EBB registers until the task uses the EBB facility. */
TEST_F(ptrace, e12_facility_is_on_from_its_first_use)
{
	struct ebb_set set;

	self->script->touches = true;
	ASSERT_TRUE(start_traced(&self->child, self->script));
	EXPECT_EQ(ENODATA, GET(self->child, NT_PPC_EBB, set));
	ASSERT_TRUE(go_on(&self->child));
	ASSERT_EQ(0, GET(self->child, NT_PPC_EBB, set));
	EXPECT_EQ(0, set.ebbrr | set.ebbhr | set.bescr);
}

TEST_F(ptrace, e14_ebb_set_is_what_the_task_has)
{
	struct ebb_set set;

	self->script->uses_ebb = true;
	ASSERT_TRUE(start_traced(&self->child, self->script));
	ASSERT_EQ(0, GET(self->child, NT_PPC_EBB, set));
	EXPECT_EQ(self->script->before.ebbrr, set.ebbrr);
	EXPECT_EQ(self->script->before.ebbhr, set.ebbhr);
	EXPECT_EQ(self->script->before.bescr, set.bescr);
}

TEST_F(ptrace, e14_writing_the_ebb_set_takes_effect)
{
	struct ebb_set set, again;

	self->script->uses_ebb = true;
	ASSERT_TRUE(start_traced(&self->child, self->script));
	ASSERT_EQ(0, GET(self->child, NT_PPC_EBB, set));
	set.ebbrr = 0x1000;
	set.ebbhr = 0x2000;
	set.bescr ^= EBB_BESCR_PME;
	EXPECT_EQ(0, SET(self->child, NT_PPC_EBB, set));
	ASSERT_EQ(0, GET(self->child, NT_PPC_EBB, again));
	EXPECT_EQ(0, memcmp(&set, &again, sizeof(set)));
	ASSERT_TRUE(go_on(&self->child));
	EXPECT_EQ(set.ebbrr, self->script->after.ebbrr);
	EXPECT_EQ(set.ebbhr, self->script->after.ebbhr);
	EXPECT_EQ(set.bescr, self->script->after.bescr);
}

TEST_F(ptrace, e14_get_and_set_agree_for_a_task_without_ebb)
{
	struct ebb_set set = { 0 };
	struct pmu_set pmu = { 0 };

	ASSERT_TRUE(start_traced(&self->child, self->script));
	EXPECT_EQ(ENODATA, GET(self->child, NT_PPC_EBB, set));
	EXPECT_EQ(ENODATA, SET(self->child, NT_PPC_EBB, set));
	EXPECT_EQ(GET(self->child, NT_PPC_PMU, pmu),
		  SET(self->child, NT_PPC_PMU, pmu));
	ASSERT_TRUE(go_on(&self->child));
	EXPECT_FALSE(self->script->writable);
}

TEST_F(ptrace, e14_pmu_set_is_what_the_task_sees)
{
	struct pmu_set set;

	self->script->uses_ebb = true;
	ASSERT_TRUE(start_traced(&self->child, self->script));
	ASSERT_EQ(0, GET(self->child, NT_PPC_PMU, set));
	EXPECT_EQ(self->script->before.siar, set.siar);
	EXPECT_EQ(self->script->before.sdar, set.sdar);
	EXPECT_EQ(self->script->before.mmcr2, set.mmcr2 & MMCR2_USER);
	EXPECT_EQ(self->script->before.mmcr0, set.mmcr0 & EBB_MMCR0_USER);
}

TEST_F(ptrace, e9_sier_is_saved_as_the_task_sees_it)
{
	struct pmu_set set;

	self->script->uses_ebb = true;
	ASSERT_TRUE(start_traced(&self->child, self->script));
	ASSERT_EQ(0, GET(self->child, NT_PPC_PMU, set));
	EXPECT_EQ(0, set.sier & ~SIER_USER);
	EXPECT_EQ(self->script->before.sier, set.sier);
}

TEST_F(ptrace, e14_write_of_mmcr0_reaches_user_bits_only)
{
	struct pmu_set set, again;

	self->script->uses_ebb = true;
	ASSERT_TRUE(start_traced(&self->child, self->script));
	ASSERT_EQ(0, GET(self->child, NT_PPC_PMU, set));
	/* Set all bits except PMAO, which would cause an exception. */
	set.mmcr0 = ~EBB_MMCR0_PMAO;
	/* The kernel may reject the whole value instead of ignoring the kernel's bits. */
	if (SET(self->child, NT_PPC_PMU, set))
		return;
	ASSERT_EQ(0, GET(self->child, NT_PPC_PMU, again));
	EXPECT_EQ(0, again.mmcr0 & ~EBB_MMCR0_USER);
	ASSERT_TRUE(go_on(&self->child));
	EXPECT_TRUE(self->script->writable);
}

TEST_F(ptrace, e14_write_of_mmcr2_reaches_user_bits_only)
{
	struct pmu_set set, again;

	self->script->uses_ebb = true;
	ASSERT_TRUE(start_traced(&self->child, self->script));
	ASSERT_EQ(0, GET(self->child, NT_PPC_PMU, set));
	set.mmcr2 = ~0ul;
	if (SET(self->child, NT_PPC_PMU, set))
		return;
	ASSERT_EQ(0, GET(self->child, NT_PPC_PMU, again));
	EXPECT_EQ(0, again.mmcr2 & ~MMCR2_USER);
	ASSERT_TRUE(go_on(&self->child));
	EXPECT_TRUE(self->script->writable);
}

TEST_F(ptrace, e14_write_of_mmcr0_takes_effect)
{
	struct pmu_set set;

	self->script->uses_ebb = true;
	ASSERT_TRUE(start_traced(&self->child, self->script));
	ASSERT_EQ(0, GET(self->child, NT_PPC_PMU, set));
	ASSERT_EQ(EBB_MMCR0_FC, set.mmcr0 & EBB_MMCR0_USER);
	set.mmcr0 = EBB_MMCR0_FC | EBB_MMCR0_PMAE;
	ASSERT_EQ(0, SET(self->child, NT_PPC_PMU, set));
	ASSERT_TRUE(go_on(&self->child));
	EXPECT_EQ(EBB_MMCR0_FC | EBB_MMCR0_PMAE, self->script->after.mmcr0);
}

TEST_F(ptrace, e23_write_of_mmcr0_leaves_a_user_a_user)
{
	struct pmu_set set;
	struct ebb_set ebb;

	self->script->uses_ebb = true;
	ASSERT_TRUE(start_traced(&self->child, self->script));
	ASSERT_EQ(0, GET(self->child, NT_PPC_PMU, set));
	set.mmcr0 &= EBB_MMCR0_USER;
	ASSERT_EQ(0, SET(self->child, NT_PPC_PMU, set));
	EXPECT_EQ(0, GET(self->child, NT_PPC_EBB, ebb));
	EXPECT_EQ(0, GET(self->child, NT_PPC_PMU, set));
	ASSERT_TRUE(go_on(&self->child));
	EXPECT_TRUE(self->script->writable);
}

TEST_F(ptrace, e23_write_of_mmcr0_makes_nobody_a_user)
{
	struct pmu_set set = { .mmcr0 = ~0ul };
	struct ebb_set ebb;

	ASSERT_TRUE(start_traced(&self->child, self->script));
	SET(self->child, NT_PPC_PMU, set);
	EXPECT_EQ(ENODATA, GET(self->child, NT_PPC_EBB, ebb));
	ASSERT_TRUE(go_on(&self->child));
	EXPECT_FALSE(self->script->writable);
}

TEST_F(ptrace, e23_short_write_leaves_the_rest_alone)
{
	struct pmu_set set = { 0 }, before, after;

	self->script->uses_ebb = true;
	ASSERT_TRUE(start_traced(&self->child, self->script));
	ASSERT_EQ(0, GET(self->child, NT_PPC_PMU, before));
	set.mmcr2 = ~before.mmcr2 & MMCR2_USER;
	ASSERT_EQ(0, set_set(self->child.pid, NT_PPC_PMU, &set,
			     offsetof(struct pmu_set, mmcr0)));
	ASSERT_EQ(0, GET(self->child, NT_PPC_PMU, after));
	EXPECT_EQ(set.mmcr2, after.mmcr2);
	EXPECT_EQ(before.mmcr0, after.mmcr0);
	ASSERT_TRUE(go_on(&self->child));
	EXPECT_EQ(set.mmcr2, self->script->after.mmcr2);
	EXPECT_EQ(self->script->before.mmcr0, self->script->after.mmcr0);
}

/*
 * Check that ptrace, like user mode, can read SIAR, SDAR and SIER, but cannot
 * write them.
 */
TEST_F(ptrace, e14_write_does_not_reach_siar_sdar_sier)
{
	struct pmu_set set;

	self->script->uses_ebb = true;
	ASSERT_TRUE(start_traced(&self->child, self->script));
	ASSERT_EQ(0, GET(self->child, NT_PPC_PMU, set));
	set.siar = ~set.siar;
	set.sdar = ~set.sdar;
	set.sier = ~set.sier;
	SET(self->child, NT_PPC_PMU, set);
	ASSERT_TRUE(go_on(&self->child));
	EXPECT_EQ(self->script->before.siar, self->script->after.siar);
	EXPECT_EQ(self->script->before.sdar, self->script->after.sdar);
	EXPECT_EQ(self->script->before.sier, self->script->after.sier);
}

TEST_F(ptrace, e21_ebbs_flow_on_after_registers_were_read)
{
	struct ebb_set ebb;
	struct pmu_set pmu;

	self->script->uses_ebb = true;
	self->script->flows = true;
	ASSERT_TRUE(start_traced(&self->child, self->script));
	EXPECT_EQ(0, GET(self->child, NT_PPC_EBB, ebb));
	EXPECT_EQ(0, GET(self->child, NT_PPC_PMU, pmu));
	ASSERT_TRUE(go_on(&self->child));
	EXPECT_LE(10, self->script->ebbs);
}

TEST_F(ptrace, e21_ebbs_flow_on_after_registers_were_written_back)
{
	struct ebb_set ebb;
	struct pmu_set pmu;

	self->script->uses_ebb = true;
	self->script->flows = true;
	ASSERT_TRUE(start_traced(&self->child, self->script));
	ASSERT_EQ(0, GET(self->child, NT_PPC_EBB, ebb));
	ASSERT_EQ(0, GET(self->child, NT_PPC_PMU, pmu));
	EXPECT_EQ(0, SET(self->child, NT_PPC_EBB, ebb));
	EXPECT_EQ(0, SET(self->child, NT_PPC_PMU, pmu));
	ASSERT_TRUE(go_on(&self->child));
	EXPECT_LE(10, self->script->ebbs);
}

/* Memory shared by a parent, which stops its child, and the child, which takes EBBs */
struct flow {
	bool stop;
	unsigned long turns;
};

static int flow_until_told(struct parent *parent, void *arg)
{
	struct flow *flow = arg;
	unsigned long loops = 0;

	catch_ill();
	if (begin(1) < 0 || parent_tell(parent))
		return 2;
	while (!__atomic_load_n(&flow->stop, __ATOMIC_ACQUIRE)) {
		work(PERIOD);
		loops += PERIOD;
		__atomic_fetch_add(&flow->turns, 1, __ATOMIC_RELEASE);
	}
	ebb_disable();
	return !tally_fits(loops);
}

TEST(e21_stops_lose_none)
{
	struct flow *flow = shared_memory(sizeof(*flow));
	struct child child;
	int i, status;

	REQUIRE_EBB();
	lateness();	/* measure the lateness now: a traced process cannot measure it */
	ASSERT_NE(NULL, flow);
	ASSERT_EQ(0, child_start(&child, flow_until_told, flow));
	ASSERT_EQ(0, child_heard(&child));
	ASSERT_EQ(0, ptrace(PTRACE_SEIZE, child.pid, NULL, NULL));
	for (i = 0; i < 50; i++) {
		unsigned long turns = __atomic_load_n(&flow->turns,
						      __ATOMIC_ACQUIRE);

		ASSERT_EQ(0, ptrace(PTRACE_INTERRUPT, child.pid, NULL, NULL));
		ASSERT_EQ(child.pid, waitpid(child.pid, &status, __WALL));
		ASSERT_TRUE(WIFSTOPPED(status));
		ASSERT_EQ(0, ptrace(PTRACE_CONT, child.pid, NULL, NULL));
		while (__atomic_load_n(&flow->turns, __ATOMIC_ACQUIRE) <=
		       turns + 1)
			sched_yield();
	}
	__atomic_store_n(&flow->stop, true, __ATOMIC_RELEASE);
	EXPECT_EQ(0, child_end(&child));
}

TEST(e21_single_steps_lose_none)
{
	struct flow *flow = shared_memory(sizeof(*flow));
	struct child child;
	int i, status;

	REQUIRE_EBB();
	lateness();	/* measure the lateness now: a traced process cannot measure it */
	ASSERT_NE(NULL, flow);
	ASSERT_EQ(0, child_start(&child, flow_until_told, flow));
	ASSERT_EQ(0, child_heard(&child));
	ASSERT_EQ(0, ptrace(PTRACE_SEIZE, child.pid, NULL, NULL));
	ASSERT_EQ(0, ptrace(PTRACE_INTERRUPT, child.pid, NULL, NULL));
	ASSERT_EQ(child.pid, waitpid(child.pid, &status, __WALL));
	for (i = 0; i < 3 * PERIOD / 10; i++) {
		ASSERT_EQ(0, ptrace(PTRACE_SINGLESTEP, child.pid, NULL, NULL));
		ASSERT_EQ(child.pid, waitpid(child.pid, &status, __WALL));
		ASSERT_TRUE(WIFSTOPPED(status));
	}
	ASSERT_EQ(0, ptrace(PTRACE_CONT, child.pid, NULL, NULL));
	__atomic_store_n(&flow->stop, true, __ATOMIC_RELEASE);
	EXPECT_EQ(0, child_end(&child));
}

TEST_HARNESS_MAIN
