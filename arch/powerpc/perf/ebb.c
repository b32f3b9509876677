// SPDX-License-Identifier: GPL-2.0
/*
 * Event-based branches (EBB), Power ISA v2.07 and later.
 *
 * With MMCR0[EBE] set, a performance monitor exception does not interrupt the
 * kernel: the processor branches to the address in EBBHR, in problem state, and
 * puts the return address into EBBRR.  Two sets of registers then belong to a
 * thread:
 *
 *   EBBHR, EBBRR, BESCR       from the thread's first use of EBB on, which sets
 *                             FSCR[EBB]; switched with the thread
 *
 *   user's part of the PMU    while an EBB event is on the PMU; saved in
 *                             thread_struct whenever the PMU is stopped
 *
 *       MMCR0   FC       PMAE(PMXE)   PMAO      the user's bits
 *               freeze   arm          alert has occurred
 *       MMCR2   FC1P .. FC6P                    freeze one PMC in user mode
 *       SIAR, SDAR, SIER                        data about the sampled instruction
 *       MMCR3, SIER2, SIER3                     from ISA v3.1 on
 *
 * The two sets are independent: an EBB event can be opened on a thread that
 * never uses EBB, and a thread can use EBB before it has an event.
 *
 * Every function here runs on the thread whose registers it handles: the events
 * of a task are on the PMU only while the task is running, so that "current"
 * owns the PMU whenever an EBB event is on the PMU.
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

/* ebb_pmu implements the registers of ISA v3.1: MMCR3, SIER2 and SIER3 */
static bool ebb_pmu_is_v31 __ro_after_init;

/* Functions that save, load and clear the EBB registers of a thread */

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

/* Set BESCR of the current thread, also in thread_struct, from which KVM loads it */
static void ebb_write_bescr(struct thread_struct *t, unsigned long bescr)
{
	t->bescr = bescr;
	mtspr(SPRN_BESCR, bescr);
}

/*
 * Is an EBB event of the current task on the PMU?  MMCR0 is read only for a task
 * with events: in a KVM guest that does not use the PMU, reading MMCR0 is an exit
 * to the hypervisor.
 */
static bool ebb_on_pmu(void)
{
	return ebb_pmu && current->perf_event_ctxp &&
	       (mfspr(SPRN_MMCR0) & MMCR0_EBE);
}

/*
 * Clear the registers that a user of EBB can read and that are not saved in
 * thread_struct: the BHRB and the counters, except the counters in @keep, in
 * which bit n stands for PMCn.
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
 * KVM calls this function after a guest has used the registers.
 *
 * Context: preemption disabled.  If the thread uses EBB, its registers must have
 * been saved in thread_struct, which is zero for a thread that does not use EBB.
 */
void ebb_reload_registers(void)
{
	if (cpu_has_feature(CPU_FTR_ARCH_207S))
		ebb_load_registers(&current->thread);
}
EXPORT_SYMBOL_GPL(ebb_reload_registers);

/**
 * ebb_first_use() - enable the EBB facility for the current thread
 *
 * Called for a facility unavailable interrupt with FSCR[IC] = 7 in problem
 * state.  The caller lets the thread execute the instruction again.
 *
 * Context: process context, interrupts may be enabled.
 * Return: true if EBB is now enabled for the thread, false if the processor does
 * not implement EBB.
 */
bool ebb_first_use(void)
{
	struct thread_struct *t = &current->thread;

	if (!cpu_has_feature(CPU_FTR_ARCH_207S))
		return false;

	preempt_disable();
	ebb_load_registers(t);
	/* FSCR[IC] holds the cause of the facility unavailable interrupt: do not save it. */
	t->fscr = (t->fscr & ~FSCR_INTR_CAUSE) | FSCR_EBB;
	mtspr(SPRN_FSCR, t->fscr);
	preempt_enable();

	return true;
}

/**
 * ebb_init_thread() - let a new thread start without EBB
 * @t: the new thread's thread_struct, a copy of the parent's
 *
 * The new thread inherits neither the parent's handler nor its EBB events.
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
 * ebb_flush_thread() - let a new program start without EBB
 *
 * An EBB event whose file descriptor survives the exec stays on the PMU, but
 * is disarmed, and its registers are cleared.  An event that has never been on
 * the PMU is armed when it is put on the PMU.  In either case no EBB occurs
 * before the new program has used EBB and set a handler.  For an event that is
 * off the PMU during the exec, ebb_saved_count() later clears the counter.
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

	/* Disable the PMU, which saves the user's part of the PMU registers in thread_struct. */
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
 * ebb_sync_thread() - save the current EBB and PMU registers in thread_struct
 * @task: a stopped task, or the current task while it dumps core
 *
 * For functions that then read the registers from thread_struct.
 *
 * Context: process context.
 */
void ebb_sync_thread(struct task_struct *task)
{
	unsigned long flags;

	if (task != current)
		return;		/* a stopped task's registers are already in thread_struct */

	local_irq_save(flags);
	if (ebb_in_use(&task->thread))
		ebb_save_registers(&task->thread);

	if (ebb_on_pmu()) {
		perf_pmu_disable(ebb_pmu);
		perf_pmu_enable(ebb_pmu);
	}
	local_irq_restore(flags);
}

/* EBB events */

static bool ebb_wanted(const struct perf_event *event)
{
	return event->attr.type == PERF_TYPE_RAW &&
	       (event->attr.config & EVENT_WANTS_EBB);
}

/**
 * ebb_refusal() - find the rule of EBB that an event breaks
 * @event: an event of a PMU of ISA v2.07 or later
 * @ppmu_flags: PPMU_* of the running PMU driver
 *
 * Documentation/arch/powerpc/pmu-ebb.rst lists the rules in the same words, with
 * the reason for each rule.
 *
 * Return: the text of the rule, or NULL if the event breaks no rule.
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
 * @event: an event of a PMU of ISA v2.07 or later
 * @ppmu_flags: PPMU_* of the running PMU driver
 *
 * Sets EBB_EVENT in the flags of an EBB event.  If the event is rejected, dynamic
 * debug prints the reason.
 *
 * Without its leader, a group member would be neither pinned nor exclusive, and
 * other events could share the PMU with the member.  So when the leader is
 * closed, perf puts the member into error state.
 *
 * Context: ->event_init().
 * Return: 0, or -EINVAL if the event breaks a rule of EBB.
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
 * ebb_save_count() - save the counter of an EBB event
 * @event: an EBB event of the current task
 * @count: the value of the event's counter
 *
 * Does not add to the event's count: the task writes any value to the counter, so
 * that differences between values mean nothing.
 *
 * Context: on the event's CPU, interrupts disabled.
 */
void ebb_save_count(struct perf_event *event, unsigned long count)
{
	local64_set(&event->hw.prev_count, count);
	event->hw.last_tag = current->thread.ebb_program;
}

/**
 * ebb_saved_count() - get the counter value for an EBB event put on the PMU
 * @event: an EBB event of the current task
 *
 * Return: the value that ebb_save_count() saved, or 0 if no value was saved since
 * the last ebb_flush_thread(): the new program must not see the counter of the
 * old program.
 */
unsigned long ebb_saved_count(const struct perf_event *event)
{
	if (event->hw.last_tag != current->thread.ebb_program)
		return 0;
	return local64_read(&event->hw.prev_count);
}

/*
 * Names in sysfs for the bits of an event code that ask for EBB: the bits of
 * EVENT_WANTS_EBB, EVENT_WANTS_BHRB and EVENT_IFM_SHIFT.
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

/* Add the EBB files to the directory "format" of the PMU driver in sysfs */
const struct attribute_group ebb_format_group = {
	.name = "format",
	.attrs = ebb_format_attrs,
	.is_visible = ebb_format_is_visible,
};

/* Functions that save, merge and restore the registers of the PMU */

/**
 * ebb_merge_mmcr0() - combine the kernel's and the user's part of MMCR0
 * @kernel: the value that the kernel has computed for MMCR0
 * @user: the bits that the user, or hardware on the user's behalf, has written
 *
 * The user can freeze the counters, but cannot start counters that the kernel has
 * frozen.  The user can disarm the PMU (PMXE, the ISA's PMAE), but can arm the PMU
 * only if the kernel also arms it.  PMAO, the alert, is taken from @user.
 *
 * Return: the value for MMCR0.
 */
unsigned long ebb_merge_mmcr0(unsigned long kernel, unsigned long user)
{
	return (kernel & (user | ~MMCR0_PMXE)) | (user & (MMCR0_FC | MMCR0_PMAO));
}

/**
 * ebb_mmcr3_mask() - find the fields of MMCR3 that the user has changed
 * @kernel: MMCR3 according to the event codes
 * @mmcr3: the current value of MMCR3
 *
 * MMCR3 has a field of 15 bits for each of PMC1 to PMC4, with which the event
 * code selects a source for the counter.  As an event code can hold any value for
 * the field, a user gains nothing by writing to MMCR3, and so all of MMCR3 may be
 * written.  On a processor that does not let problem state write to MMCR3, no
 * field ever differs.
 *
 * A field that the user has changed keeps the user's value.  All other fields
 * follow the event codes, also when the events of the group change.  The reserved
 * bits are treated as one more field.
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
 * ebb_merge_mmcr3() - combine the kernel's and the user's part of MMCR3
 * @kernel: MMCR3 according to the event codes
 * @user: MMCR3 when the PMU was taken from the user
 * @mask: ebb_mmcr3_mask() when the PMU was taken from the user
 *
 * Return: the value for MMCR3.
 */
unsigned long ebb_merge_mmcr3(unsigned long kernel, unsigned long user,
			      unsigned long mask)
{
	return (kernel & ~mask) | (user & mask);
}

/* The out-of-line part of ebb_suspend() */
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
 * ebb_prepare() - bring the current thread's saved PMU registers up to date
 * @event: an event of the group that is on the PMU
 * @overflown: whether a counter of the group is negative
 *
 * A group that is put on the PMU for the first time starts armed, whatever the
 * thread did to the PMU and to BESCR with an earlier group.  BESCR[GE] and
 * BESCR[PME] keep the thread's values.
 *
 * An overflow passes through three registers: the counter becomes negative, then
 * MMCR0 has PMAO set and PMXE clear, then BESCR has PMEO set and PME clear.
 * If the PMU was stopped between two of these steps, this function makes the
 * remaining steps.  A processor that acts on the levels of PMXE and PMAO, as the
 * ISA defines them, would make the steps when the registers are written again,
 * but a processor that acts on changes of PMXE and PMAO might not.
 *
 * Context: the PMU is stopped, interrupts disabled, before ebb_resume().
 * Return: true if an alert is pending in MMCR0[PMAO] until the thread sets
 * BESCR[PME] or clears BESCR[PMEO], and the processor needs
 * pmao_restore_workaround() for such an alert.
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
 * ebb_resume() - restore the current thread's part of the PMU
 * @kernel: the PMU settings that the kernel has computed
 * @events: all events on the PMU, which are EBB events
 * @n: the number of events, at least one
 *
 * If @kernel was computed anew, the last user of the PMU may have been a plain
 * event, a KVM guest or another partition.  Every register that the thread can
 * read is then set or cleared.  Otherwise a counter that an earlier thread left
 * negative would not only be readable, but would also raise one EBB after the
 * other for the current thread.
 *
 * Context: the PMU is stopped, interrupts disabled.
 * Return: the value for MMCR0 that starts the PMU.
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

	/*
	 * A PMC is frozen in user mode if the kernel or the user has set its
	 * bit in MMCR2.
	 */
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
 * ebb_register() - tell the EBB code about the running PMU driver
 * @pmu: the PMU
 * @ppmu_flags: PPMU_* of the driver
 *
 * If the driver supports EBB, AT_HWCAP2 reports EBB to programs.
 */
void __init ebb_register(struct pmu *pmu, u32 ppmu_flags)
{
	if (!(ppmu_flags & PPMU_EBB))
		return;

	ebb_pmu = pmu;
	ebb_pmu_is_v31 = ppmu_flags & PPMU_ARCH_31;
	cur_cpu_spec->cpu_user_features2 |= PPC_FEATURE2_EBB;
}
