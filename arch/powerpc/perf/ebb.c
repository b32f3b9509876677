// SPDX-License-Identifier: GPL-2.0
/*
 * Event-based branches (EBB), Power ISA v2.07 and later.
 *
 * With MMCR0[EBE] set a performance monitor exception interrupts no kernel:
 * the processor branches to the address in EBBHR, in problem state, with the
 * return address in EBBRR.  Two sets of registers are then a thread's own:
 *
 *   EBBHR, EBBRR, BESCR       there once the thread has used the facility,
 *                             which FSCR[EBB] tells; switched with the thread
 *   user's part of the PMU    there while an EBB event is on the PMU; kept in
 *                             thread_struct whenever the PMU stops
 *
 *       MMCR0   FC       PMAE(PMXE)   PMAO      the user's bits
 *               freeze   arm          alert has occurred
 *       MMCR2   FC1P .. FC6P                    freeze one PMC in user mode
 *       SIAR, SDAR, SIER                        what was sampled
 *       MMCR3, SIER2, SIER3                     from ISA v3.1 on
 *
 * The two sets have lives of their own: an event can be opened on a thread that
 * never asks for EBB, and a thread may set up EBB before there is an event.
 *
 * Everything here runs on the thread that it concerns: a task's events are on
 * the PMU only while the task is running, so that "current" owns the PMU
 * whenever an EBB event is on it.
 */

#define pr_fmt(fmt)	"ebb: " fmt

#include <linux/export.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <asm/cputable.h>
#include <asm/ebb.h>
#include <asm/ppc-opcode.h>
#include <asm/switch_to.h>

#include "ebb.h"
#include "isa207-common.h"

/* The PMU that gives EBB; NULL where none does */
static struct pmu *ebb_pmu __ro_after_init;

/* It is one of ISA v3.1 */
static bool ebb_pmu_is_v31 __ro_after_init;

/*
 * The thread's registers
 */

static void clear_registers(struct thread_struct *t)
{
	t->ebbhr = 0;
	t->ebbrr = 0;
	t->bescr = 0;
}

static void clear_pmu(struct thread_struct *t)
{
	t->mmcr0 = 0;
	t->mmcr2 = 0;
	t->mmcr3 = 0;
	t->siar = 0;
	t->sdar = 0;
	t->sier = 0;
	t->sier2 = 0;
	t->sier3 = 0;
}

/**
 * ebb_reload_registers() - write the current thread's EBB registers again
 *
 * For KVM, where a guest has left its own in them.
 *
 * Context: preemption disabled, after ebb_save_registers() of the thread.
 */
void ebb_reload_registers(void)
{
	if (cpu_has_feature(CPU_FTR_ARCH_207S))
		ebb_load_registers(&current->thread);
}
EXPORT_SYMBOL_GPL(ebb_reload_registers);

/**
 * ebb_first_use() - turn the facility on for the current thread
 *
 * Called for a facility unavailable interrupt with FSCR[IC] = 7 in problem
 * state.  The instruction is to be executed again.
 *
 * Context: process context, interrupts may be enabled.
 * Return: true if the thread has the facility now, false if the processor has
 * none.
 */
bool ebb_first_use(void)
{
	struct thread_struct *t = &current->thread;

	if (!cpu_has_feature(CPU_FTR_ARCH_207S))
		return false;

	preempt_disable();
	ebb_load_registers(t);
	t->fscr = mfspr(SPRN_FSCR) | FSCR_EBB;
	mtspr(SPRN_FSCR, t->fscr);
	preempt_enable();

	return true;
}

/**
 * ebb_init_thread() - a new thread starts without EBB
 * @t: a copy of its parent's thread_struct
 *
 * Nothing of the parent's state is inherited: neither its handler nor its
 * events.
 *
 * Context: copy_thread(), before the thread can run.
 */
void ebb_init_thread(struct thread_struct *t)
{
	t->fscr &= ~FSCR_EBB;
	clear_registers(t);
	clear_pmu(t);
}

/**
 * ebb_flush_thread() - a new program starts without EBB
 *
 * An EBB event whose file descriptor survives the exec stays on the PMU.  It
 * is disarmed: the new program has to ask for the facility, name a handler and
 * arm the PMU before anything reaches it.
 *
 * Context: flush_thread(), in the kernel on behalf of the current task.  No
 * EBB can occur before the return to problem state.
 */
void ebb_flush_thread(void)
{
	struct thread_struct *t = &current->thread;
	bool on_pmu;
	unsigned long flags;

	if (!cpu_has_feature(CPU_FTR_ARCH_207S))
		return;

	local_irq_save(flags);

	/* Stopping the PMU moves the user's part to the thread_struct */
	on_pmu = ebb_pmu && (mfspr(SPRN_MMCR0) & MMCR0_EBE);
	if (on_pmu) {
		perf_pmu_disable(ebb_pmu);
		ebb_clear_pmcs();
	}

	clear_pmu(t);
	clear_registers(t);
	if (ebb_in_use(t)) {
		ebb_load_registers(t);
		t->fscr = mfspr(SPRN_FSCR) & ~FSCR_EBB;
		mtspr(SPRN_FSCR, t->fscr);
	}

	if (on_pmu)
		perf_pmu_enable(ebb_pmu);

	local_irq_restore(flags);
}

/**
 * ebb_sync_thread() - bring thread_struct up to date for a reader
 * @task: a stopped task, or the current one, which is dumping core
 *
 * Context: process context.
 */
void ebb_sync_thread(struct task_struct *task)
{
	unsigned long flags;

	if (task != current)
		return;		/* saved when it was switched out */

	local_irq_save(flags);
	if (ebb_in_use(&task->thread))
		ebb_save_registers(&task->thread);

	if (ebb_pmu && (mfspr(SPRN_MMCR0) & MMCR0_EBE)) {
		perf_pmu_disable(ebb_pmu);
		perf_pmu_enable(ebb_pmu);
	}
	local_irq_restore(flags);
}

/*
 * Which events may be
 */

static bool asks_for_ebb(const struct perf_event *event)
{
	return event->attr.type == PERF_TYPE_RAW &&
	       (event->attr.config & EVENT_WANTS_EBB);
}

static bool asks_for_bhrb(const struct perf_event *event)
{
	return event->attr.type == PERF_TYPE_RAW &&
	       (event->attr.config & EVENT_WANTS_BHRB);
}

static bool has_no_driver(const struct perf_event *event, u32 ppmu_flags)
{
	return !(ppmu_flags & PPMU_EBB);
}

/* A member has what its leader was opened with: so ask the leader */
static bool is_not_pinned(const struct perf_event *event, u32 ppmu_flags)
{
	return !event->group_leader->attr.pinned;
}

static bool is_not_exclusive(const struct perf_event *event, u32 ppmu_flags)
{
	return !event->group_leader->attr.exclusive;
}

static bool is_inherited(const struct perf_event *event, u32 ppmu_flags)
{
	return event->attr.inherit;
}

static bool has_frequency(const struct perf_event *event, u32 ppmu_flags)
{
	return event->attr.freq;
}

static bool has_period(const struct perf_event *event, u32 ppmu_flags)
{
	return event->attr.sample_period;
}

static bool has_sample_type(const struct perf_event *event, u32 ppmu_flags)
{
	return event->attr.sample_type;
}

static bool starts_on_exec(const struct perf_event *event, u32 ppmu_flags)
{
	return event->attr.enable_on_exec;
}

static bool has_no_task(const struct perf_event *event, u32 ppmu_flags)
{
	return !(event->attach_state & PERF_ATTACH_TASK);
}

static bool has_no_pmc(const struct perf_event *event, u32 ppmu_flags)
{
	return !((event->attr.config >> EVENT_PMC_SHIFT) & EVENT_PMC_MASK);
}

static bool disagrees_with_group(const struct perf_event *event, u32 ppmu_flags)
{
	return asks_for_ebb(event) != asks_for_ebb(event->group_leader);
}

static bool has_bhrb(const struct perf_event *event, u32 ppmu_flags)
{
	return asks_for_bhrb(event);
}

/* In the order in which they are looked at; one broken rule is enough */
static const struct ebb_rule {
	bool		ebb;		/* for EBB events, or for the others */
	const char	*name;		/* as the documentation has it */
	bool		(*broken)(const struct perf_event *event, u32 ppmu_flags);
} ebb_rules[] = {
	{ true,  "the PMU driver gives no EBB",		has_no_driver },
	{ true,  "the group leader is not pinned",	is_not_pinned },
	{ true,  "the group leader is not exclusive",	is_not_exclusive },
	{ true,  "inherit is set",			is_inherited },
	{ true,  "freq is set",				has_frequency },
	{ true,  "sample_period is set",		has_period },
	{ true,  "sample_type is set",			has_sample_type },
	{ true,  "enable_on_exec is set",		starts_on_exec },
	{ true,  "the event is not attached to a task",	has_no_task },
	{ true,  "the event code names no PMC",		has_no_pmc },
	{ true,  "the group does not ask for EBB",	disagrees_with_group },
	{ false, "the group asks for EBB",		disagrees_with_group },
	{ false, "BHRB is asked for without EBB",	has_bhrb },
};

/**
 * ebb_refusal() - which rule of EBB an event breaks
 * @event: an event of a PMU of ISA v2.07 or later, or a software event
 * @ppmu_flags: PPMU_* of the running PMU driver
 *
 * Return: what is wrong, in words, or NULL if nothing is.
 */
const char *ebb_refusal(const struct perf_event *event, u32 ppmu_flags)
{
	bool ebb = asks_for_ebb(event);
	int i;

	for (i = 0; i < ARRAY_SIZE(ebb_rules); i++) {
		if (ebb_rules[i].ebb == ebb &&
		    ebb_rules[i].broken(event, ppmu_flags))
			return ebb_rules[i].name;
	}

	return NULL;
}

/**
 * ebb_check_event() - may this event be opened?
 * @event: as for ebb_refusal()
 * @ppmu_flags: PPMU_* of the running PMU driver
 *
 * An EBB event that may is marked as one.  Why another may not is said through
 * dynamic debug.
 *
 * Return: 0, or -EINVAL.
 */
int ebb_check_event(struct perf_event *event, u32 ppmu_flags)
{
	const char *why = ebb_refusal(event, ppmu_flags);

	if (!why) {
		if (asks_for_ebb(event))
			event->hw.flags |= EBB_EVENT;
		if (asks_for_ebb(event) && event == event->group_leader)
			event->hw.flags |= EBB_LEADER;
		if (asks_for_bhrb(event))
			event->hw.flags |= EBB_BHRB;
		return 0;
	}

	pr_debug("%s[%d]: event type %u config %#llx refused: %s\n",
		 current->comm, task_pid_nr(current), event->attr.type,
		 event->attr.config, why);
	return -EINVAL;
}

/* Software events would join the group without ebb_check_event() being asked */
static int ebb_check_sibling(struct perf_event *leader, struct perf_event *event)
{
	return event_is_ebb(leader) ? ebb_check_event(event, PPMU_EBB) : 0;
}

/* See ebb_check_set() */
int __ebb_check_set(struct perf_event *const *events, int n)
{
	const struct perf_event *leader = events[0]->group_leader;
	bool ebb = event_is_ebb(events[0]);
	int i;

	for (i = 1; i < n; i++) {
		if (event_is_ebb(events[i]) != ebb ||
		    (ebb && events[i]->group_leader != leader))
			return -EAGAIN;
	}

	return !ebb || (leader->hw.flags & EBB_LEADER) ? 0 : -EAGAIN;
}

/*
 * The PMU
 */

/**
 * ebb_merge_mmcr0() - put the two parts of MMCR0 together
 * @kernel: what the kernel asks for
 * @user: what the user has written, or hardware on his behalf
 *
 * The user can freeze the counters, but not those that the kernel has frozen.
 * He can disarm the PMU (PMXE, the ISA's PMAE), and arm it only where the
 * kernel does.  PMAO, the alert, is his.
 *
 * Return: the value for MMCR0.
 */
unsigned long ebb_merge_mmcr0(unsigned long kernel, unsigned long user)
{
	return (kernel & (user | ~MMCR0_PMXE)) | (user & (MMCR0_FC | MMCR0_PMAO));
}

/*
 * A new group starts armed, whatever the thread did to the PMU and to BESCR
 * when it had an earlier one.  Whether EBBs are wanted at all (BESCR[GE] and
 * [PME]) stays the thread's business.
 */
static void arm(struct perf_event *leader)
{
	struct thread_struct *t = &current->thread;

	clear_pmu(t);
	t->mmcr0 = MMCR0_PMXE;
	if (ebb_in_use(t))
		mtspr(SPRN_BESCR, mfspr(SPRN_BESCR) & ~BESCR_PMEO);

	leader->hw.flags |= EBB_ARMED;
}

/*
 * Give the PMU to the current thread.  The BHRB becomes readable if an event
 * asks for it, and is then cleared of what others have left in it.
 */
static void grant(struct mmcr_regs *kernel, struct perf_event *const *events, int n)
{
	int i, flags = events[0]->hw.flags;

	kernel->mmcr0 |= MMCR0_EBE | MMCR0_PMCC_U6;

	for (i = 1; i < n; i++)
		flags |= events[i]->hw.flags;

	if (flags & EBB_BHRB) {
		kernel->mmcr0 |= MMCR0_BHRBA;
		asm volatile(PPC_CLRBHRB);
	}
}

/*
 * See ebb_suspend().  What the kernel has set in MMCR2 is not the user's, and
 * what it has not set there the user can write.  In MMCR0 the kernel sets FC
 * only together with clearing EBE.
 */
void __ebb_suspend(unsigned long mmcr0, const struct mmcr_regs *kernel)
{
	struct thread_struct *t = &current->thread;

	t->mmcr0 = mmcr0 & MMCR0_USER_MASK;
	t->mmcr2 = mfspr(SPRN_MMCR2) & ~kernel->mmcr2;
	mtspr(SPRN_MMCR2, 0);
	t->siar = mfspr(SPRN_SIAR);
	t->sdar = mfspr(SPRN_SDAR);
	t->sier = mfspr(SPRN_SIER) & SIER_USER_MASK;
	mtspr(SPRN_SIER, 0);
	if (ebb_pmu_is_v31) {
		/*
		 * The event codes decide about MMCR3.  Only the bits that
		 * differ from them are the thread's own.
		 */
		t->mmcr3 = mfspr(SPRN_MMCR3) ^ kernel->mmcr3;
		t->sier2 = mfspr(SPRN_SIER2);
		t->sier3 = mfspr(SPRN_SIER3);
		mtspr(SPRN_SIER2, 0);
		mtspr(SPRN_SIER3, 0);
	}
}

/**
 * ebb_resume() - give the PMU to the current thread, with its part put back
 * @kernel: the PMU's settings
 * @events: all events on the PMU, EBB events, the leader first
 * @n: how many, at least one
 *
 * A group that lost its leader loses the PMU: nothing would keep other events
 * away from it any more.
 *
 * Context: the PMU is stopped, interrupts disabled.
 * Return: the value to start the PMU with, for MMCR0.
 */
unsigned long ebb_resume(struct mmcr_regs *kernel, struct perf_event *const *events,
			 int n)
{
	const struct thread_struct *t = &current->thread;

	/* Only leaders are ever armed */
	if (unlikely(!(events[0]->hw.flags & EBB_ARMED))) {
		if (!(events[0]->hw.flags & EBB_LEADER)) {
			kernel->mmcr0 &= ~(EBB_MMCR0 | MMCR0_PMXE);
			kernel->mmcr0 |= MMCR0_FC;
			return kernel->mmcr0;
		}
		arm(events[0]);
	}

	/* Computed for these events just now */
	if (!(kernel->mmcr0 & MMCR0_EBE))
		grant(kernel, events, n);

	/* All of the user's bits freeze.  A PMC counts if neither of the two objects. */
	mtspr(SPRN_MMCR2, kernel->mmcr2 | t->mmcr2);
	mtspr(SPRN_SIAR, t->siar);
	mtspr(SPRN_SDAR, t->sdar);
	mtspr(SPRN_SIER, t->sier);
	if (ebb_pmu_is_v31) {
		mtspr(SPRN_MMCR3, kernel->mmcr3 ^ t->mmcr3);
		mtspr(SPRN_SIER2, t->sier2);
		mtspr(SPRN_SIER3, t->sier3);
	}

	return ebb_merge_mmcr0(kernel->mmcr0, t->mmcr0);
}

/* See ebb_exception_unlatched().  A leader that has not been armed yet has none. */
bool __ebb_exception_unlatched(const struct perf_event *leader)
{
	return (leader->hw.flags & EBB_ARMED) &&
	       (current->thread.mmcr0 & MMCR0_PMAO) &&
	       !(mfspr(SPRN_BESCR) & BESCR_PMEO);
}

/**
 * ebb_register() - a PMU driver has come up
 * @pmu: the PMU
 * @ppmu_flags: its PPMU_* flags
 *
 * Programs are told of EBB (AT_HWCAP2) where the driver gives it.
 */
void __init ebb_register(struct pmu *pmu, u32 ppmu_flags)
{
	if (!(ppmu_flags & PPMU_EBB))
		return;

	ebb_pmu = pmu;
	ebb_pmu_is_v31 = ppmu_flags & PPMU_ARCH_31;
	pmu->check_sibling = ebb_check_sibling;
	cur_cpu_spec->cpu_user_features2 |= PPC_FEATURE2_EBB;
}
