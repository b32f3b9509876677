// SPDX-License-Identifier: GPL-2.0
/*
 * Event-based branches (EBB), Power ISA v2.07 and later.
 *
 * With MMCR0[EBE] set, a performance monitor exception does not interrupt the
 * kernel: the processor branches to the address in EBBHR, in problem state, and
 * puts the return address into EBBRR.  Two sets of registers then belong to a
 * thread:
 *
 *   EBBHR, EBBRR, BESCR       from the thread's first use of the facility on,
 *                             which is when FSCR[EBB] is set; switched with the
 *                             thread
 *   user's part of the PMU    while an EBB event is on the PMU; kept in
 *                             thread_struct whenever the PMU is stopped
 *
 *       MMCR0   FC       PMAE(PMXE)   PMAO      the user's bits
 *               freeze   arm          alert has occurred
 *       MMCR2   FC1P .. FC6P                    freeze one PMC in user mode
 *       SIAR, SDAR, SIER                        what was sampled
 *       MMCR3, SIER2, SIER3                     from ISA v3.1 on
 *
 * Neither set depends on the other: an event can be opened on a thread that
 * never uses the facility, and a thread can use the facility before it has an
 * event.
 *
 * All functions here run on the thread that they are about: the events of a
 * task are on the PMU only while the task is running, so that "current" owns
 * the PMU whenever an EBB event is on it.
 */

#define pr_fmt(fmt)	"ebb: " fmt

#include <linux/export.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <asm/cputable.h>
#include <asm/ebb.h>
#include <asm/ppc-opcode.h>
#include <asm/switch_to.h>

#include "ebb.h"
#include "isa207-common.h"

/* The PMU that delivers EBBs, or NULL if the running driver delivers none */
static struct pmu *ebb_pmu __ro_after_init;

/* ebb_pmu has the registers of ISA v3.1: MMCR3, SIER2 and SIER3 */
static bool ebb_pmu_is_v31 __ro_after_init;

/*
 * The thread's registers
 */

static void ebb_forget_registers(struct thread_struct *t)
{
	t->ebbhr = 0;
	t->ebbrr = 0;
	t->bescr = 0;
}

static void ebb_forget_pmu(struct thread_struct *t)
{
	t->mmcr0 = 0;
	t->mmcr2 = 0;
	t->mmcr3 = 0;
	t->mmcr3_mask = 0;
	t->siar = 0;
	t->sdar = 0;
	t->sier = 0;
	t->sier2 = 0;
	t->sier3 = 0;
}

/* BESCR of the current thread, and the copy that KVM loads after a guest */
static void ebb_write_bescr(struct thread_struct *t, unsigned long bescr)
{
	t->bescr = bescr;
	mtspr(SPRN_BESCR, bescr);
}

/*
 * Is an EBB event on the PMU?  It is then an event of the current task.  Looks at
 * the register only for a task that has events at all: in a guest of KVM that does
 * not use the PMU, reading MMCR0 is an exit to the hypervisor.
 */
static bool ebb_on_pmu(void)
{
	return ebb_pmu && current->perf_event_ctxp &&
	       (mfspr(SPRN_MMCR0) & MMCR0_EBE);
}

/*
 * Clear what a user of EBB can read and the thread_struct does not keep: the
 * BHRB and the counters, but for those in @keep, of which bit n is PMCn.
 */
static void ebb_clear_unsaved(unsigned int keep)
{
	if (!(keep & BIT(1)))
		mtspr(SPRN_PMC1, 0);
	if (!(keep & BIT(2)))
		mtspr(SPRN_PMC2, 0);
	if (!(keep & BIT(3)))
		mtspr(SPRN_PMC3, 0);
	if (!(keep & BIT(4)))
		mtspr(SPRN_PMC4, 0);
	if (!(keep & BIT(5)))
		mtspr(SPRN_PMC5, 0);
	if (!(keep & BIT(6)))
		mtspr(SPRN_PMC6, 0);
	asm volatile(PPC_CLRBHRB);
}

/**
 * ebb_reload_registers() - write the current thread's EBB registers again
 *
 * For KVM, after a guest has used the registers.
 *
 * Context: preemption disabled.  If the thread uses EBB, its registers must have
 * been saved; the copies of any other thread are zero.
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
	/* FSCR holds the cause of this interrupt, too: do not keep that field. */
	t->fscr = (t->fscr & ~FSCR_INTR_CAUSE) | FSCR_EBB;
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
	ebb_forget_registers(t);
	ebb_forget_pmu(t);
}

/**
 * ebb_flush_thread() - a new program starts without EBB
 *
 * An EBB event whose file descriptor survives the exec stays on the PMU, but
 * is disarmed and has nothing of the old program in it.  An event that has not
 * been on the PMU yet is armed when it comes there.  In either case no EBB
 * occurs before the new program has used the facility and named a handler.
 * The counter of an event that is off the PMU at the moment is dealt with when
 * the event returns, see ebb_saved_count().
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

	/* Stopping the PMU copies the user's part of its registers to thread_struct. */
	on_pmu = ebb_on_pmu();
	if (on_pmu) {
		perf_pmu_disable(ebb_pmu);
		ebb_clear_unsaved(0);
	}

	t->ebb_program++;
	ebb_forget_pmu(t);
	ebb_forget_registers(t);
	if (ebb_in_use(t)) {
		ebb_load_registers(t);
		t->fscr &= ~(FSCR_INTR_CAUSE | FSCR_EBB);
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
		return;		/* the registers of a task were saved when it was switched out */

	local_irq_save(flags);
	if (ebb_in_use(&task->thread))
		ebb_save_registers(&task->thread);

	if (ebb_on_pmu()) {
		perf_pmu_disable(ebb_pmu);
		perf_pmu_enable(ebb_pmu);
	}
	local_irq_restore(flags);
}

/*
 * The events
 */

static bool ebb_wanted(const struct perf_event *event)
{
	return event->attr.type == PERF_TYPE_RAW &&
	       (event->attr.config & EVENT_WANTS_EBB);
}

/**
 * ebb_refusal() - which rule of EBB an event breaks
 * @event: an event of a PMU of ISA v2.07 or later
 * @ppmu_flags: PPMU_* of the running PMU driver
 *
 * Documentation/arch/powerpc/pmu-ebb.rst has the rules in the same words and
 * gives a reason for each.
 *
 * Return: the rule, or NULL if the event breaks none.
 */
const char *ebb_refusal(const struct perf_event *event, u32 ppmu_flags)
{
	const struct perf_event *leader = event->group_leader;
	const struct perf_event_attr *attr = &event->attr;

	if (ebb_wanted(event)) {
		if (!(ppmu_flags & PPMU_EBB))
			return "the PMU driver gives no EBB";
		if (!leader->attr.pinned)
			return "the group leader is not pinned";
		if (!leader->attr.exclusive)
			return "the group leader is not exclusive";
		if (attr->inherit)
			return "inherit is set";
		if (attr->freq)
			return "freq is set";
		if (attr->sample_period)
			return "sample_period is set";
		if (attr->sample_type)
			return "sample_type is set";
		if (attr->enable_on_exec)
			return "enable_on_exec is set";
		if (!(event->attach_state & PERF_ATTACH_TASK))
			return "the event is not attached to a task";
		if (!((attr->config >> EVENT_PMC_SHIFT) & EVENT_PMC_MASK))
			return "the event code names no PMC";
		if (!ebb_wanted(leader))
			return "the group does not ask for EBB";
	} else {
		if (ebb_wanted(leader))
			return "the group asks for EBB";
		if (attr->type == PERF_TYPE_RAW && (attr->config & EVENT_WANTS_BHRB))
			return "BHRB is asked for without EBB";
	}

	return NULL;
}

/**
 * ebb_check_event() - check an event that is being opened
 * @event: as for ebb_refusal()
 * @ppmu_flags: PPMU_* of the running PMU driver
 *
 * Marks an EBB event as such.  Dynamic debug tells why an event was refused.
 *
 * A member without its leader is neither pinned nor exclusive, so that nothing
 * would keep other events off the PMU: perf puts the member into error state
 * when the leader is closed.
 *
 * Context: ->event_init().
 * Return: 0, or -EINVAL.
 */
int ebb_check_event(struct perf_event *event, u32 ppmu_flags)
{
	const char *rule = ebb_refusal(event, ppmu_flags);

	if (rule) {
		pr_debug("%s[%d]: event type %u config %#llx refused: %s\n",
			 current->comm, task_pid_nr(current), event->attr.type,
			 event->attr.config, rule);
		return -EINVAL;
	}

	if (ebb_wanted(event)) {
		event->hw.flags |= EBB_EVENT;
		if (event != event->group_leader)
			event->event_caps |= PERF_EV_CAP_SIBLING;
	}

	return 0;
}

/**
 * ebb_save_count() - keep the counter of an EBB event
 * @event: an EBB event of the current task
 * @count: the value of its counter
 *
 * The count of the event itself is not changed: the task sets the counter as
 * it likes, so that there is nothing to count.
 *
 * Context: on the event's CPU, interrupts disabled.
 */
void ebb_save_count(struct perf_event *event, unsigned long count)
{
	local64_set(&event->hw.prev_count, count);
	event->hw.last_tag = current->thread.ebb_program;
}

/**
 * ebb_saved_count() - the counter of an EBB event that comes to the PMU
 * @event: an EBB event of the current task
 *
 * Return: what ebb_save_count() has kept, or 0 if that was not done since the
 * last ebb_flush_thread(): the counter of the old program is not shown to the new
 * program.
 */
unsigned long ebb_saved_count(const struct perf_event *event)
{
	if (event->hw.last_tag != current->thread.ebb_program)
		return 0;
	return local64_read(&event->hw.prev_count);
}

/*
 * Names of the bits of an event code that ask for EBB, for sysfs. They are the bits
 * of EVENT_WANTS_EBB, EVENT_WANTS_BHRB and EVENT_IFM_SHIFT.
 */
PMU_FORMAT_ATTR(ebb,		"config:63");
PMU_FORMAT_ATTR(bhrb,		"config:62");
PMU_FORMAT_ATTR(bhrb_filter,	"config:60-61");

static struct attribute *ebb_format_attrs[] = {
	&format_attr_ebb.attr,
	&format_attr_bhrb.attr,
	&format_attr_bhrb_filter.attr,
	NULL
};

static umode_t ebb_format_is_visible(struct kobject *kobj, struct attribute *attr, int n)
{
	return ebb_pmu ? attr->mode : 0;
}

/* Adds its files to the folder "format" that the PMU driver has made in sysfs */
const struct attribute_group ebb_format_group = {
	.name = "format",
	.attrs = ebb_format_attrs,
	.is_visible = ebb_format_is_visible,
};

/*
 * The PMU
 */

/**
 * ebb_merge_mmcr0() - put the kernel's and the user's part of MMCR0 together
 * @kernel: what the kernel asks for
 * @user: what the user, or hardware on the user's behalf, has written
 *
 * The user can freeze the counters, and cannot start what the kernel has
 * frozen.  The user can disarm the PMU (PMXE, the ISA's PMAE), and can arm it
 * only where the kernel does.  PMAO, the alert, is the user's.
 *
 * Return: the value for MMCR0.
 */
unsigned long ebb_merge_mmcr0(unsigned long kernel, unsigned long user)
{
	return (kernel & (user | ~MMCR0_PMXE)) | (user & (MMCR0_FC | MMCR0_PMAO));
}

/**
 * ebb_mmcr3_mask() - which fields of MMCR3 the user has changed
 * @kernel: what the event codes ask for
 * @mmcr3: MMCR3
 *
 * MMCR3 has a field of 15 bits for each of PMC1 to PMC4, with which the event
 * code selects a source for the counter.  An event code can hold any value in
 * it, so that a user gains nothing by writing to MMCR3 and may write all of it.
 * A processor that does not let problem state write to MMCR3 never has a field
 * that differs.
 *
 * A field that the user has changed stays as the user has written it.  The
 * others are what the event codes say, also when the events of the group
 * change.  The reserved bits are treated as one more field.
 *
 * Return: a mask of whole fields.
 */
unsigned long ebb_mmcr3_mask(unsigned long kernel, unsigned long mmcr3)
{
	unsigned long reserved = BIT(MMCR3_SHIFT(4)) - 1;
	unsigned long changed = mmcr3 ^ kernel;
	unsigned long field, mask = 0;
	int pmc;

	for (pmc = 1; pmc <= 4; pmc++) {
		field = p10_EVENT_MMCR3_MASK << MMCR3_SHIFT(pmc);
		if (changed & field)
			mask |= field;
	}
	if (changed & reserved)
		mask |= reserved;

	return mask;
}

/**
 * ebb_merge_mmcr3() - put the kernel's and the user's part of MMCR3 together
 * @kernel: what the event codes ask for
 * @user: what the user has written
 * @mask: ebb_mmcr3_mask() of both at the time when the user's part was kept
 *
 * Return: the value for MMCR3.
 */
unsigned long ebb_merge_mmcr3(unsigned long kernel, unsigned long user,
			      unsigned long mask)
{
	return (kernel & ~mask) | (user & mask);
}

/* See ebb_suspend() */
void __ebb_suspend(unsigned long mmcr0, const struct mmcr_regs *kernel)
{
	struct thread_struct *t = &current->thread;

	t->mmcr0 = mmcr0 & MMCR0_USER_MASK;
	t->mmcr2 = mfspr(SPRN_MMCR2) & MMCR2_USER_MASK & ~kernel->mmcr2;
	mtspr(SPRN_MMCR2, 0);
	t->siar = mfspr(SPRN_SIAR);
	t->sdar = mfspr(SPRN_SDAR);
	t->sier = mfspr(SPRN_SIER) & SIER_USER_MASK;
	mtspr(SPRN_SIER, 0);
	if (ebb_pmu_is_v31) {
		t->mmcr3 = mfspr(SPRN_MMCR3);
		t->mmcr3_mask = ebb_mmcr3_mask(kernel->mmcr3, t->mmcr3);
		mtspr(SPRN_MMCR3, 0);
		t->sier2 = mfspr(SPRN_SIER2);
		t->sier3 = mfspr(SPRN_SIER3);
		mtspr(SPRN_SIER2, 0);
		mtspr(SPRN_SIER3, 0);
	}
}

/**
 * ebb_prepare() - bring the current thread's part of the PMU up to date
 * @event: one of the group that is on the PMU
 * @overflown: whether a counter of the group is negative
 *
 * A group that comes to the PMU for the first time starts armed, whatever the
 * thread did to the PMU and to BESCR when it had an earlier group.  BESCR[GE]
 * and [PME] stay as the thread has set them.
 *
 * An overflow goes through three registers: the counter becomes negative, then
 * MMCR0 has PMAO set and PMXE clear, then BESCR has PMEO set and PME clear.
 * When the PMU was stopped between two of the steps, the next ones are made
 * here.  The processor would make them when the registers are written again
 * if it goes by the levels of PMXE and PMAO, as the ISA defines them, but might
 * not if it goes by a change of them.
 *
 * Context: the PMU is stopped, interrupts disabled, before ebb_resume().
 * Return: true if an alert waits in MMCR0[PMAO] for the thread to set BESCR[PME]
 * or to clear BESCR[PMEO], on a processor that then needs
 * pmao_restore_workaround().
 */
bool ebb_prepare(const struct perf_event *event, bool overflown)
{
	struct perf_event *leader = event->group_leader;
	struct thread_struct *t = &current->thread;
	unsigned long bescr;

	if (!(leader->hw.flags & EBB_ARMED)) {
		leader->hw.flags |= EBB_ARMED;
		ebb_forget_pmu(t);
		t->mmcr0 = MMCR0_PMXE;
		if (ebb_in_use(t))
			ebb_write_bescr(t, mfspr(SPRN_BESCR) & ~BESCR_PMEO);
	}

	if (overflown && (t->mmcr0 & MMCR0_PMXE))
		t->mmcr0 = MMCR0_FC | MMCR0_PMAO;

	if (!(t->mmcr0 & MMCR0_PMAO))
		return false;

	if (ebb_in_use(t)) {
		bescr = mfspr(SPRN_BESCR);
		if ((bescr & (BESCR_PME | BESCR_PMEO)) == BESCR_PME) {
			ebb_write_bescr(t, (bescr & ~BESCR_PME) | BESCR_PMEO);
			return false;
		}
	}

	return cpu_has_feature(CPU_FTR_PMAO_BUG);
}

/**
 * ebb_resume() - give the PMU to the current thread, with its part put back
 * @kernel: the PMU's settings
 * @events: all events on the PMU, which are EBB events
 * @n: how many events, at least one
 *
 * If the settings were computed anew, the PMU may have been somebody else's:
 * a plain event's, a KVM guest's, or another partition's.  Nothing that the
 * thread can read is left as it was found then.  A counter that the thread
 * had left negative would be worse than seen, the next owner of the PMU would
 * get one EBB after the other for it.
 *
 * Context: the PMU is stopped, interrupts disabled.
 * Return: the value to start the PMU with, for MMCR0.
 */
unsigned long ebb_resume(struct mmcr_regs *kernel, struct perf_event *const *events,
			 int n)
{
	const struct thread_struct *t = &current->thread;
	unsigned int counters = 0;
	int i;

	if (!(kernel->mmcr0 & MMCR0_EBE)) {
		kernel->mmcr0 |= EBB_MMCR0;
		for (i = 0; i < n; i++)
			counters |= BIT(events[i]->hw.idx);
		ebb_clear_unsaved(counters);
	}

	/* A PMC is frozen if the kernel or the user has set its bit. */
	mtspr(SPRN_MMCR2, kernel->mmcr2 | t->mmcr2);
	mtspr(SPRN_SIAR, t->siar);
	mtspr(SPRN_SDAR, t->sdar);
	mtspr(SPRN_SIER, t->sier);
	if (ebb_pmu_is_v31) {
		mtspr(SPRN_MMCR3, ebb_merge_mmcr3(kernel->mmcr3, t->mmcr3, t->mmcr3_mask));
		mtspr(SPRN_SIER2, t->sier2);
		mtspr(SPRN_SIER3, t->sier3);
	}

	return ebb_merge_mmcr0(kernel->mmcr0, t->mmcr0);
}

/**
 * ebb_register() - a PMU driver has come up
 * @pmu: the PMU
 * @ppmu_flags: PPMU_* of the driver
 *
 * AT_HWCAP2 tells programs of EBB if the driver gives EBB.
 */
void __init ebb_register(struct pmu *pmu, u32 ppmu_flags)
{
	if (!(ppmu_flags & PPMU_EBB))
		return;

	ebb_pmu = pmu;
	ebb_pmu_is_v31 = ppmu_flags & PPMU_ARCH_31;
	cur_cpu_spec->cpu_user_features2 |= PPC_FEATURE2_EBB;
}
