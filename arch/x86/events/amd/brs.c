// SPDX-License-Identifier: GPL-2.0
/*
 * AMD Family 19h Branch Sampling (BRS)
 *
 * See section "Branch Sampling" of the Processor Programming Reference (PPR)
 * for AMD Family 19h Model 01h. BRS is a feature of Zen3, not of the
 * architecture.
 *
 * While BRS is armed, the overflow of one performance counter does not interrupt
 * at once. The processor holds the interrupt until it has written the source and
 * the target of the next 16 taken branches into MSRs:
 *
 *   overflow      16 taken branches      interrupt
 *  ----|--b0--b1--b2-- ... --b14--b15-------|--------->
 *       \____________ BRS ___________/
 *
 * The buffer is filled once. Branches of all kinds and of all privilege levels
 * are recorded. The counter continues to count.
 *
 *  DBG_EXTN_CFG, MSR C000_010F:
 *
 *      31    27 26  24 23    20 19    16 15       6  5   4  3   2   1 0
 *     +--------+------+--------+--------+----------+----+-----+---+-----+
 *     |        | PMC  |        | MSROFF |          | VB | 1 1 | E |     |
 *     +--------+------+--------+--------+----------+----+-----+---+-----+
 *       PMC    counter whose overflow starts the recording
 *       MSROFF entry that will be written next
 *       VB     the buffer contains valid branches
 *       E      BRSMEN: armed. Clearing BRSMEN releases an interrupt that BRS
 *              is holding
 *
 *  SAMP_BR_FROM, MSR C001_0300 + 2 * i, SAMP_BR_TO, MSR C001_0301 + 2 * i:
 *  source and target of the i-th branch, oldest first.
 *
 * How the driver works:
 *
 * - Arming clears the targets of the first and the last entry. The buffer is full
 *   if hardware has written both since. No other bit of hardware state is
 *   consulted.
 *
 * - The counter is started after BRS and stopped before BRS, so that the counter
 *   does not overflow while BRS is off. Both are off during every NMI, and while
 *   the CPU is idle.
 *
 * - A stack is delivered if the buffer is full, the current task was also
 *   running when BRS was armed, and no branch belongs to the entry or the exit of
 *   an NMI. Otherwise the capture is given up: the sample stays due, and the
 *   counter is set to overflow again soon.
 *
 * - The next time that the PMU is enabled, the driver finds and sets again a
 *   counter that has overflowed without an interrupt, for whatever reason. The
 *   PMU is enabled when the next task is switched in, and when a timer has found
 *   such a counter.
 *
 * - If captures are given up time and again and no other counter is the cause,
 *   the hardware does not work as described here. The driver reports this once,
 *   and then delivers the part of the buffer that was written.
 */
#define pr_fmt(fmt) "amd_brs: " fmt

#include <linux/bitfield.h>
#include <linux/debugfs.h>
#include <linux/hrtimer.h>
#include <linux/perf_event.h>
#include <linux/perf_idle.h>
#include <linux/seq_file.h>
#include <linux/static_call.h>

#include <asm/apic.h>
#include <asm/cpu_entry_area.h>
#include <asm/hardirq.h>
#include <asm/idtentry.h>
#include <asm/irqflags.h>
#include <asm/msr.h>
#include <asm/perf_event.h>

#include "../perf_event.h"
#include "brs.h"

#if IS_ENABLED(CONFIG_PERF_EVENTS_AMD_BRS_KUNIT_TEST)
#include <kunit/static_stub.h>
#else
#define KUNIT_STATIC_STUB_REDIRECT(...)	do { } while (0)
#endif

#define BRS_DEPTH		16

/* The number of the counter that BRS events must use */
#define BRS_PMC			0
#define BRS_PMC_CTL		(MSR_F15H_PERF_CTL + 2 * BRS_PMC)

#define BRS_CFG_BRSMEN		BIT_ULL(2)
#define BRS_CFG_MB1		GENMASK_ULL(4, 3)	/* BRS requires the value 11b */
#define BRS_CFG_PMC		GENMASK_ULL(26, 24)

#define BRS_CFG_OFF		BRS_CFG_MB1
#define BRS_CFG_ARMED		(BRS_CFG_MB1 | BRS_CFG_BRSMEN |	\
				 FIELD_PREP_CONST(BRS_CFG_PMC, BRS_PMC))

#define BRS_FROM(i)		(MSR_AMD_SAMP_BR_FROM + 2 * (i))
#define BRS_TO(i)		(BRS_FROM(i) + 1)

/* Value of SAMP_BR_TO in an entry that hardware has not written */
#define BRS_TO_EMPTY		0

/* Event select of retired taken branches, which is what BRS records */
#define BRS_EVENT_TAKEN		0xc4

/* Flag in the branch filter of an event, beside X86_BR_*: also save the privilege level */
#define BRS_SEL_PRIV_SAVE	BIT_ULL(32)

/*
 * The least number of events from the end of an NMI to an overflow, for events
 * that count in the kernel, so that the capture does not begin before the kernel
 * has returned from the NMI. If the return takes more branches, another capture is
 * needed, but no stack is wrong: see brs_of_nmi().
 */
#define BRS_NMI_BRANCHES	64
#define BRS_NMI_EVENTS		1024

/*
 * Number of captures given up in a row after which the driver falls back to
 * delivering partial stacks. A capture that is given up because another counter
 * has interrupted does not count.
 */
#define BRS_FALLBACK		64

/* Time in ns between two checks for an overflow whose interrupt has been lost */
#define BRS_CHECK_INTERVAL	(10 * NSEC_PER_MSEC)

/**
 * enum brs_state - state that BRS and its counter are meant to be in on one CPU
 * @BRS_OFF:		both are off
 * @BRS_STOPPING:	both are about to be turned off, or are off
 * @BRS_ON:		both are on, except in an NMI or while the CPU is idle
 */
enum brs_state {
	BRS_OFF,
	BRS_STOPPING,
	BRS_ON,
};

/**
 * struct brs_cpu - BRS on one CPU
 * @state:	see enum brs_state
 * @idle:	the CPU is idle, which keeps BRS and the counter off
 * @timer:	see brs_check()
 * @ctl:	value of the counter's control register that starts the counter
 * @task:	the task that was running when BRS was armed
 * @user_ip:	address to which the last NMI returned in user mode, 0 if that
 *		NMI hit the kernel
 * @failed:	captures given up in a row for which no other counter is the cause
 * @cfg:	DBG_EXTN_CFG at the last NMI, saved while @failed is not zero
 * @stacks:	statistics: stacks delivered
 * @given_up:	statistics: captures given up
 * @partial:	statistics: stacks delivered that were not full
 *
 * Only the CPU itself uses its struct brs_cpu. The struct is written with
 * interrupts disabled and by NMIs.
 */
struct brs_cpu {
	enum brs_state		state;
	bool			idle;
	struct hrtimer		timer;
	u64			ctl;
	struct task_struct	*task;
	unsigned long		user_ip;
	unsigned int		failed;
	u64			cfg;
	u64			stacks;
	u64			given_up;
	u64			partial;
};

static DEFINE_PER_CPU(struct brs_cpu, brs_cpu);

DEFINE_STATIC_KEY_FALSE(amd_brs_key);

DEFINE_STATIC_CALL_NULL(x86_pmu_nmi_enter, void (void));
DEFINE_STATIC_CALL_NULL(x86_pmu_nmi_exit, void (void));

static struct event_constraint brs_constraint __ro_after_init =
	EVENT_CONSTRAINT(0, BIT(BRS_PMC), 0);

/* Constraint of an event with large increments, which uses a pair of counters */
static struct event_constraint brs_pair_constraint __ro_after_init =
	__EVENT_CONSTRAINT(0, BIT(BRS_PMC), 0, 1, 0, PERF_X86_EVENT_PAIR);

/* Read an MSR without rdmsrq()'s tracepoint: an NMI does 32 reads for each branch stack */
static u64 brs_rdmsr(u32 msr)
{
	KUNIT_STATIC_STUB_REDIRECT(brs_rdmsr, msr);

	return __rdmsr(msr);
}

static void brs_wrmsr(u32 msr, u64 val)
{
	KUNIT_STATIC_STUB_REDIRECT(brs_wrmsr, msr, val);

	wrmsrq(msr, val);
}

/* Write an MSR where tracing is forbidden (noinstr) */
static __always_inline void brs_wrmsr_noinstr(u32 msr, u64 val)
{
	__wrmsrq(msr, val);
}

/*
 * Stop the counter first, then BRS. An interrupt that BRS is holding comes now,
 * later or never, depending on the processor; none of these does any harm.
 */
static __always_inline void brs_stop(struct brs_cpu *brs)
{
	brs_wrmsr_noinstr(BRS_PMC_CTL, brs->ctl & ~ARCH_PERFMON_EVENTSEL_ENABLE);
	if (unlikely(brs->failed))
		brs->cfg = __rdmsr(MSR_AMD_DBG_EXTN_CFG);
	brs_wrmsr_noinstr(MSR_AMD_DBG_EXTN_CFG, BRS_CFG_OFF);
}

/*
 * Arm BRS. Clear the last buffer entry first, so that the buffer is not full, and
 * the first entry, which stays empty if hardware goes on where an earlier capture
 * was ended, although MSROFF is written as 0. To deliver partial stacks, after
 * BRS_FALLBACK failures, clear all entries.
 */
static __always_inline void brs_arm(struct brs_cpu *brs)
{
	int i = brs->failed < BRS_FALLBACK ? BRS_DEPTH - 1 : 1;

	brs_wrmsr_noinstr(BRS_TO(0), BRS_TO_EMPTY);
	for (; i < BRS_DEPTH; i++)
		brs_wrmsr_noinstr(BRS_TO(i), BRS_TO_EMPTY);
	brs->task = current;
	brs_wrmsr_noinstr(MSR_AMD_DBG_EXTN_CFG, BRS_CFG_ARMED);
}

/*
 * Start BRS first, then the counter. In the meantime, an NMI can have stopped the
 * event by throttling it. In that case, stop the counter and BRS again.
 */
static __always_inline void brs_start(struct brs_cpu *brs)
{
	brs_arm(brs);
	brs_wrmsr_noinstr(BRS_PMC_CTL, brs->ctl);
	barrier();
	if (brs->state != BRS_ON)
		brs_stop(brs);
}

/* Stop BRS at the beginning of every NMI, before any code that may be traced */
static noinstr void amd_brs_nmi_enter(void)
{
	struct brs_cpu *brs = raw_cpu_ptr(&brs_cpu);

	if (brs->state != BRS_OFF)
		brs_stop(brs);
}

/* Start BRS again at the end of every NMI, after all code that may be traced */
static noinstr void amd_brs_nmi_exit(void)
{
	struct brs_cpu *brs = raw_cpu_ptr(&brs_cpu);

	if (brs->state == BRS_ON && !brs->idle)
		brs_start(brs);
}

/*
 * Stop BRS when the CPU is about to go idle, with interrupts disabled, and start
 * BRS when the CPU leaves idle. A stopped CPU takes no branches, so BRS would hold
 * an interrupt for the whole idle time. The counter is stopped as well, because it
 * could overflow in the interrupt that ends the idle state.
 */
static noinstr void amd_brs_idle(bool enter)
{
	struct brs_cpu *brs = raw_cpu_ptr(&brs_cpu);
	unsigned long flags;

	if (enter) {
		/* Set @idle first: a later NMI must not start BRS and the counter again */
		brs->idle = true;
		barrier();
		if (brs->state == BRS_ON)
			brs_stop(brs);
		return;
	}

	flags = native_local_irq_save();
	if (brs->idle) {
		brs->idle = false;
		barrier();
		if (brs->state == BRS_ON)
			brs_start(brs);
	}
	native_local_irq_restore(flags);
}

/* Return the BRS event that runs on this CPU, NULL if there is none */
static struct perf_event *brs_event(struct cpu_hw_events *cpuc)
{
	struct perf_event *event = cpuc->events[BRS_PMC];

	if (!event || !test_bit(BRS_PMC, cpuc->active_mask) ||
	    !has_branch_stack(event))
		return NULL;

	return event;
}

static bool brs_counts_branches(struct perf_event *event)
{
	return (event->hw.config & AMD64_RAW_EVENT_MASK) == BRS_EVENT_TAKEN;
}

static bool brs_counts_user(struct perf_event *event)
{
	return event->hw.config & ARCH_PERFMON_EVENTSEL_USR;
}

static bool brs_counts_kernel(struct perf_event *event)
{
	return event->hw.config & ARCH_PERFMON_EVENTSEL_OS;
}

/* Return the least number of events from the end of an NMI to the next overflow */
static s64 brs_nmi_distance(struct perf_event *event)
{
	if (!brs_counts_kernel(event))
		return 1;

	return brs_counts_branches(event) ? BRS_NMI_BRANCHES : BRS_NMI_EVENTS;
}

/*
 * Set the counter to overflow 16 events before the end of the period, because the
 * interrupt comes 16 branches after the overflow, but not before @min events from
 * now. A sample that is due because its capture was given up comes after @min
 * events.
 */
static void brs_set_counter(struct perf_event *event, s64 min)
{
	struct hw_perf_event *hwc = &event->hw;
	s64 left = local64_read(&hwc->period_left);

	left = clamp(left - BRS_DEPTH, min, (s64)x86_pmu.max_period);
	this_cpu_write(pmc_prev_left[hwc->idx], left);
	local64_set(&hwc->prev_count, (u64)-left);
	brs_wrmsr(hwc->event_base, (u64)-left & x86_pmu.cntval_mask);
	if (is_counter_pair(hwc))
		brs_wrmsr(x86_pmu_event_addr(hwc->idx + 1), 0xffff);

	perf_event_update_userpage(event);
}

/* Start a period: period_left is 0 for a new period, negative if a sample is due */
static int brs_set_period(struct perf_event *event)
{
	struct hw_perf_event *hwc = &event->hw;

	if (!has_branch_stack(event))
		return x86_perf_event_set_period(event);

	if (!local64_read(&hwc->period_left)) {
		local64_set(&hwc->period_left, hwc->sample_period);
		hwc->last_period = hwc->sample_period;
	}

	brs_set_counter(event, 1);
	return 0;
}

/* Has a counter overflowed whose value was last read as @val? */
static bool brs_overflowed(u64 val)
{
	return !(val & BIT_ULL(x86_pmu.cntval_bits - 1));
}

/*
 * Give up a capture, so that its sample at the end of a period stays due. If
 * several captures fail in a row, the distance to the next capture grows.
 */
static void brs_give_up(struct brs_cpu *brs, struct perf_event *event)
{
	struct hw_perf_event *hwc = &event->hw;
	unsigned int shift = min(brs->failed, 8U);

	brs->given_up++;
	if (!local64_read(&hwc->period_left))
		local64_set(&hwc->period_left, -1);

	brs_set_counter(event, brs_nmi_distance(event) << shift);
}

static bool brs_in_nmi_entry(u64 ip)
{
	return ip >= (unsigned long)asm_exc_nmi &&
	       ip < (unsigned long)asm_exc_nmi_end;
}

/*
 * Does @br belong to the entry to or the exit from an NMI? Every entry starts in
 * asm_exc_nmi(), and an NMI that has hit the kernel also exits there. The exit to
 * user mode is shared with other interrupts: it is recognized by the address to
 * which the last NMI returned. If another interrupt returns to the same address,
 * a good stack is given up.
 */
static bool brs_of_nmi(const struct brs_cpu *brs,
		       const struct perf_branch_entry *br)
{
	return brs_in_nmi_entry(br->from) || brs_in_nmi_entry(br->to) ||
	       (brs->user_ip && br->to == brs->user_ip && kernel_ip(br->from));
}

/*
 * Read the branches that hardware has written to the buffer into @br, newest
 * first.
 * Return: the number of branches, 0 if a branch belongs to an NMI. After
 * BRS_FALLBACK failures, the branches before those of the NMI are returned.
 */
static unsigned int brs_read(const struct brs_cpu *brs,
			     struct perf_branch_entry *br)
{
	u64 to = brs_rdmsr(BRS_TO(BRS_DEPTH - 1));
	bool full = to != BRS_TO_EMPTY;
	int sign = boot_cpu_data.x86_virt_bits - 1;
	unsigned int nr = 0;
	int i;

	/*
	 * brs_arm() has cleared only the first and the last entry: other entries
	 * can be from earlier captures
	 */
	if (!full && brs->failed < BRS_FALLBACK)
		return 0;

	for (i = BRS_DEPTH - 1; i >= 0; i--) {
		if (i < BRS_DEPTH - 1)
			to = brs_rdmsr(BRS_TO(i));
		if (to == BRS_TO_EMPTY)
			continue;

		br[nr] = (struct perf_branch_entry) {
			.from	= sign_extend64(brs_rdmsr(BRS_FROM(i)), sign),
			.to	= sign_extend64(to, sign),
		};
		if (!brs_of_nmi(brs, &br[nr])) {
			nr++;
			continue;
		}

		if (full && brs->failed < BRS_FALLBACK)
			return 0;
		/* Branches recorded after this branch also belong to the NMI */
		nr = 0;
	}

	return nr;
}

/*
 * Does the privilege filter @sel let @br pass? The privilege level of the target
 * decides, as in perf_event_open(2). If the filter excludes the kernel, branches
 * from a kernel address are dropped, too.
 */
static bool brs_privilege_ok(const struct perf_branch_entry *br, u64 sel)
{
	if (kernel_ip(br->to))
		return sel & X86_BR_KERNEL;

	return (sel & X86_BR_USER) &&
	       ((sel & X86_BR_KERNEL) || !kernel_ip(br->from));
}

/*
 * Keep only the branches at @br that the filter @sel asks for.
 * Return: how many of the @nr branches are left.
 */
static unsigned int brs_filter(struct perf_branch_entry *br, unsigned int nr,
			       u64 sel)
{
	bool all = (sel & X86_BR_ANY) == X86_BR_ANY;
	unsigned int i, out = 0;
	int type, offset;

	/*
	 * Without a filter, the usual case of an event for user and kernel,
	 * keep all branches
	 */
	if (all && (sel & X86_BR_PLM) == X86_BR_PLM &&
	    !(sel & (X86_BR_TYPE_SAVE | BRS_SEL_PRIV_SAVE)))
		return nr;

	for (i = 0; i < nr; i++) {
		if (!brs_privilege_ok(&br[i], sel))
			continue;

		/*
		 * Decoding is expensive: decode a branch only if the filter
		 * needs its type
		 */
		if (!all || (sel & X86_BR_TYPE_SAVE)) {
			type = branch_type_fused(br[i].from, br[i].to, 0, &offset);
			/*
			 * Only a conditional jump is fused with the instruction
			 * before the jump
			 */
			if (offset && !(type & X86_BR_JCC)) {
				type = branch_type(br[i].from, br[i].to, 0);
				offset = 0;
			}
			if (!all && !(sel & type & X86_BR_ANY))
				continue;
			br[i].from += offset;
			if (sel & X86_BR_TYPE_SAVE)
				br[i].type = common_branch_type(type);
		}

		if (sel & BRS_SEL_PRIV_SAVE)
			br[i].priv = kernel_ip(br[i].to) ? PERF_BR_PRIV_KERNEL :
							   PERF_BR_PRIV_USER;
		if (out != i)
			br[out] = br[i];
		out++;
	}

	return out;
}

/*
 * Does @user contain the registers that user space had when it entered the kernel?
 * @regs are the registers of an interrupt in kernel mode. The answer is no while
 * the entry code is saving or restoring the registers.
 */
static bool brs_user_regs_saved(const struct pt_regs *regs,
				const struct pt_regs *user)
{
	unsigned long cea = (unsigned long)get_cpu_entry_area(smp_processor_id());

	/* Return false while the entry code runs with user space's stack pointer */
	if (!kernel_ip(regs->sp))
		return false;

	/* Return false on the entry stack: @user is not filled yet, or already restored */
	if (regs->sp >= cea && regs->sp < cea + CPU_ENTRY_AREA_SIZE)
		return false;

	/* Return false while the entry code pushes the registers to @user or pops them */
	return regs->sp <= (unsigned long)user ||
	       regs->sp > (unsigned long)(user + 1);
}

/*
 * Find the registers for a sample of an event that is limited to user space. The
 * interrupt comes 16 branches after the overflow. By then, the program has often
 * entered the kernel, and @regs contain kernel addresses, which the sample must
 * not reveal.
 *
 * Return: the registers that user space had when it entered the kernel, NULL if
 * they are not available or if there is no user space.
 */
static struct pt_regs *brs_user_regs(struct pt_regs *regs)
{
	struct pt_regs *user = task_pt_regs(current);

	if (user_mode(regs))
		return regs;

	if ((current->flags & PF_KTHREAD) || !current->mm ||
	    !brs_user_regs_saved(regs, user) || !user_mode(user))
		return NULL;

	return user;
}

/* Return how many of the @nr branches at @br the counter of @event has counted */
static unsigned int brs_counted(struct perf_event *event,
				const struct perf_branch_entry *br,
				unsigned int nr)
{
	unsigned int i, n = 0;

	for (i = 0; i < nr; i++)
		n += kernel_ip(br[i].from) ? brs_counts_kernel(event) :
					     brs_counts_user(event);
	return n;
}

/*
 * Deliver the branch stack of @event as a sample and start the next period, if
 * there is a stack. The counter of @event has overflowed, and its value is @val.
 * Return: false if the capture has to be given up.
 */
static bool brs_sample(struct brs_cpu *brs, struct perf_event *event,
		       struct pt_regs *regs, u64 val)
{
	struct cpu_hw_events *cpuc = this_cpu_ptr(&cpu_hw_events);
	struct perf_branch_entry *br = cpuc->lbr_entries;
	struct hw_perf_event *hwc = &event->hw;
	struct perf_sample_data data;
	unsigned int nr;
	s64 over, left;

	if (brs->task != current)
		return false;

	if (event->attr.exclude_kernel) {
		regs = brs_user_regs(regs);
		if (!regs)
			return false;
	}

	nr = brs_read(brs, br);
	if (nr < BRS_DEPTH && brs->failed < BRS_FALLBACK)
		return false;

	/*
	 * Branches counted since the last recorded branch were taken on the way into
	 * the NMI: subtract them from the count. Subtract nothing if there are more
	 * than BRS_NMI_BRANCHES: the interrupt was late, and the program continued.
	 */
	if (nr == BRS_DEPTH && brs_counts_kernel(event) && brs_counts_branches(event)) {
		over = val - brs_counted(event, br, nr);
		if (over > 0 && over <= BRS_NMI_BRANCHES) {
			local64_sub(over, &event->count);
			local64_add(over, &hwc->period_left);
		}
	}

	brs->stacks++;
	if (nr == BRS_DEPTH)
		brs->failed = 0;
	else
		brs->partial++;

	cpuc->lbr_stack.nr = brs_filter(br, nr, hwc->branch_reg.config);
	cpuc->lbr_stack.hw_idx = -1ULL;

	/* Drop the samples that are overdue: it is too late to take them */
	left = local64_read(&hwc->period_left) + hwc->sample_period;
	local64_set(&hwc->period_left, left > 0 ? left : hwc->sample_period);
	hwc->last_period = hwc->sample_period;
	brs_set_counter(event, brs_nmi_distance(event));

	perf_sample_data_init(&data, 0, hwc->last_period);
	perf_sample_save_brstack(&data, event, &cpuc->lbr_stack, NULL);
	/* Write the sample. If the event has to be throttled, perf also stops its group. */
	perf_event_overflow(event, &data, regs);

	return true;
}

/* Count a capture that was given up although no other counter has interrupted */
static void brs_count_failure(struct brs_cpu *brs)
{
	if (brs->state == BRS_ON && ++brs->failed == BRS_FALLBACK)
		pr_warn_once("hardware does not fill the buffer as expected (DBG_EXTN_CFG %#llx): stacks may be short\n",
			     brs->cfg);
}

/**
 * amd_brs_handle_irq - handle the PMU interrupt while a BRS event is active
 * @regs: registers at the time of the interrupt
 *
 * Handles all counters. BRS and the counter of the BRS event are stopped from
 * amd_brs_nmi_enter() to amd_brs_nmi_exit().
 *
 * Context: NMI.
 * Return: the number of counters that have overflowed.
 */
int amd_brs_handle_irq(struct pt_regs *regs)
{
	struct cpu_hw_events *cpuc = this_cpu_ptr(&cpu_hw_events);
	struct brs_cpu *brs = this_cpu_ptr(&brs_cpu);
	struct perf_event *event = brs_event(cpuc);
	bool overflowed, sampled = false;
	int handled = 0;
	s64 left, min;
	u64 val;

	val = x86_perf_event_update(event);
	left = local64_read(&event->hw.period_left);
	min = brs_nmi_distance(event);
	overflowed = brs_overflowed(val);

	if (!overflowed) {
		/*
		 * Another counter caused this NMI: do not let the counter of
		 * the BRS event overflow while the NMI returns
		 */
		if (-sign_extend64(val, x86_pmu.cntval_bits - 1) < min)
			brs_set_counter(event, min);
	} else if (left > BRS_DEPTH) {
		/* The period is longer than the counter's range: count the rest of the period */
		brs_set_counter(event, min);
	} else {
		sampled = brs_sample(brs, event, regs, val);
		if (!sampled)
			brs_give_up(brs, event);
	}

	/* Handle the other counters. Without any, only the local APIC is left to do. */
	if (*cpuc->active_mask & ~BIT_ULL(BRS_PMC))
		handled = x86_pmu_handle_irq(regs);
	else
		apic_write(APIC_LVTPC, APIC_DM_NMI);

	if (overflowed) {
		if (!sampled && !handled && left <= BRS_DEPTH)
			brs_count_failure(brs);

		/*
		 * Count this interrupt for throttling, as perf_event_overflow() does
		 * for an interrupt with a sample. Do not count it if the event was
		 * stopped in this NMI because another event of its group is throttled.
		 */
		if (!sampled && __amd_brs_active())
			perf_event_account_interrupt(event);

		if (!handled)
			inc_perf_irq_stat();
		handled++;
	}

	/*
	 * Only an event that counts in the kernel can start a capture on the
	 * way out of the NMI
	 */
	brs->user_ip = user_mode(regs) && (brs->ctl & ARCH_PERFMON_EVENTSEL_OS) ?
		       regs->ip : 0;
	return handled;
}

/* Has the counter of @event overflowed, with the interrupt still to come? */
static bool brs_overflow_pending(struct perf_event *event)
{
	return brs_overflowed(brs_rdmsr(event->hw.event_base));
}

/*
 * Look for an overflow whose interrupt has been lost: without an interrupt the
 * counter would count on for years. Restarting the PMU takes the sample again, see
 * __amd_brs_enable(). If the interrupt is not lost but held by BRS, the restart
 * costs a capture, but not the sample.
 *
 * The timer runs on the CPU that it was started on, with interrupts disabled, and
 * only while a BRS event is on that CPU and the CPU is not idle. NMIs do not
 * change the timer: after an NMI has throttled the event, the timer expires once
 * more and is not restarted.
 */
static enum hrtimer_restart brs_check(struct hrtimer *timer)
{
	struct perf_event *event = brs_event(this_cpu_ptr(&cpu_hw_events));

	/* A CPU that goes offline leaves a timer that is running to another CPU */
	if (!event || timer != this_cpu_ptr(&brs_cpu.timer))
		return HRTIMER_NORESTART;

	if (brs_overflow_pending(event)) {
		perf_pmu_disable(event->pmu);
		perf_pmu_enable(event->pmu);
	}

	hrtimer_forward_now(timer, BRS_CHECK_INTERVAL);
	return HRTIMER_RESTART;
}

/**
 * __amd_brs_active - check whether a BRS event is running on this CPU
 *
 * Context: any, with preemption disabled.
 * Return: true if a BRS event is running.
 */
bool __amd_brs_active(void)
{
	return brs_event(this_cpu_ptr(&cpu_hw_events));
}

/**
 * __amd_brs_enable - turn on BRS for an event whose counter is about to start
 * @event: a BRS event, assigned to its counter
 *
 * Does nothing while perf has disabled the whole PMU.
 *
 * Context: interrupts disabled.
 * Return: false if the counter must not be started now.
 */
bool __amd_brs_enable(struct perf_event *event)
{
	struct cpu_hw_events *cpuc = this_cpu_ptr(&cpu_hw_events);
	struct brs_cpu *brs = this_cpu_ptr(&brs_cpu);
	bool active;

	if (!cpuc->enabled)
		return true;

	/*
	 * Check for an overflow whose interrupt has been lost or dropped, is
	 * late, or was cut off by a suspend of the machine. An NMI that comes
	 * in the meantime must not set the period as well: NMIs leave an event
	 * alone that is not marked as active.
	 */
	if (brs_overflow_pending(event)) {
		amd_pmu_expect_nmi();
		active = __test_and_clear_bit(BRS_PMC, cpuc->active_mask);
		barrier();
		if (brs_overflowed(x86_perf_event_update(event)))
			brs_give_up(brs, event);
		barrier();
		if (active)
			__set_bit(BRS_PMC, cpuc->active_mask);
	}

	if (is_idle_task(current)) {
		/*
		 * Do not let the timer wake an idle CPU: the counter is stopped
		 * on an idle CPU, and cannot overflow
		 */
		hrtimer_try_to_cancel(&brs->timer);
	} else {
		/*
		 * @idle is still set if the idle hooks were disabled while the
		 * CPU was idle
		 */
		brs->idle = false;
		if (!hrtimer_active(&brs->timer))
			hrtimer_start(&brs->timer, BRS_CHECK_INTERVAL,
				      HRTIMER_MODE_REL_PINNED_HARD);
	}

	brs->ctl = (event->hw.config | ARCH_PERFMON_EVENTSEL_ENABLE) &
		   ~cpuc->perf_ctr_virt_mask;
	brs->user_ip = 0;

	/*
	 * Start the upper counter of a pair here: brs_start() starts only the
	 * lower counter
	 */
	if (is_counter_pair(&event->hw))
		brs_wrmsr(x86_pmu_config_addr(BRS_PMC + 1),
			  x86_pmu.perf_ctr_pair_en);

	/*
	 * From here on, every NMI stops BRS and the counter, and starts them again. An
	 * NMI that comes before brs_arm() starts them a little early.
	 */
	barrier();
	brs->state = BRS_ON;
	barrier();

	/* Give up if an NMI has meanwhile stopped the event by throttling it */
	if (!brs_event(cpuc)) {
		brs->state = BRS_OFF;
		return false;
	}

	if (brs->idle)
		return false;

	brs_arm(brs);
	return true;
}

/**
 * __amd_brs_disarm - announce that the counter is about to be stopped
 *
 * From now on, NMIs do not start the counter any more, but still stop it.
 *
 * Context: interrupts disabled, or NMI.
 */
void __amd_brs_disarm(void)
{
	struct brs_cpu *brs = this_cpu_ptr(&brs_cpu);

	if (brs->state == BRS_ON)
		brs->state = BRS_STOPPING;
	barrier();
}

/**
 * __amd_brs_disable - turn off BRS
 *
 * Call this function after amd_brs_disarm() and after stopping the counter. An
 * interrupt that BRS is holding can come at once, and does no harm.
 *
 * Context: interrupts disabled, or NMI.
 */
void __amd_brs_disable(void)
{
	struct brs_cpu *brs = this_cpu_ptr(&brs_cpu);

	if (brs->state == BRS_OFF)
		return;

	brs_wrmsr(MSR_AMD_DBG_EXTN_CFG, BRS_CFG_OFF);
	barrier();
	brs->state = BRS_OFF;
}

/**
 * amd_brs_reset - put BRS of this CPU into its initial state
 *
 * For a CPU that comes online, whatever values its MSRs hold.
 */
void amd_brs_reset(void)
{
	struct brs_cpu *brs = this_cpu_ptr(&brs_cpu);

	brs->state = BRS_OFF;
	brs->idle = false;
	brs->failed = 0;
	brs_wrmsr(MSR_AMD_DBG_EXTN_CFG, BRS_CFG_OFF);
}

/**
 * amd_brs_add - prepare this CPU for a BRS event
 * @event: the event
 *
 * Requests a callback at each context switch. For the callback, perf disables and
 * enables the PMU. This ends a capture, so that no capture spans two tasks.
 */
void amd_brs_add(struct perf_event *event)
{
	perf_sched_cb_inc(event->pmu);
}

/**
 * amd_brs_del - undo amd_brs_add() when a BRS event is removed from this CPU
 * @event: the event
 *
 * Also cancels the timer: when a CPU goes offline, its events are removed, and so
 * no timer is left on that CPU.
 */
void amd_brs_del(struct perf_event *event)
{
	hrtimer_try_to_cancel(this_cpu_ptr(&brs_cpu.timer));
	perf_sched_cb_dec(event->pmu);
}

/**
 * amd_brs_constraint - get the only counter, or pair of counters, for a BRS event
 * @event: the event
 *
 * Because all BRS events need the same counter, they take turns.
 */
struct event_constraint *amd_brs_constraint(struct perf_event *event)
{
	return is_counter_pair(&event->hw) ? &brs_pair_constraint :
					     &brs_constraint;
}

/* PERF_SAMPLE_BRANCH_* flags that BRS supports, with the matching X86_BR_* flags */
static const struct {
	u64	sample_type;
	u64	sel;
} brs_sample_types[] = {
	{ PERF_SAMPLE_BRANCH_USER,	 X86_BR_USER },
	{ PERF_SAMPLE_BRANCH_KERNEL,	 X86_BR_KERNEL },
	{ PERF_SAMPLE_BRANCH_HV,	 0 },
	{ PERF_SAMPLE_BRANCH_ANY,	 X86_BR_ANY },
	{ PERF_SAMPLE_BRANCH_ANY_CALL,	 X86_BR_ANY_CALL },
	{ PERF_SAMPLE_BRANCH_ANY_RETURN, X86_BR_RET | X86_BR_SYSRET |
					 X86_BR_IRET },
	{ PERF_SAMPLE_BRANCH_CALL,	 X86_BR_ZERO_CALL | X86_BR_CALL },
	{ PERF_SAMPLE_BRANCH_IND_CALL,	 X86_BR_IND_CALL },
	{ PERF_SAMPLE_BRANCH_IND_JUMP,	 X86_BR_IND_JMP },
	{ PERF_SAMPLE_BRANCH_COND,	 X86_BR_JCC },
	{ PERF_SAMPLE_BRANCH_TYPE_SAVE,	 X86_BR_TYPE_SAVE },
	{ PERF_SAMPLE_BRANCH_PRIV_SAVE,	 BRS_SEL_PRIV_SAVE },
	{ PERF_SAMPLE_BRANCH_HW_INDEX,	 0 },
	{ PERF_SAMPLE_BRANCH_NO_FLAGS,	 0 },
	{ PERF_SAMPLE_BRANCH_NO_CYCLES,	 0 },
};

/*
 * Translate PERF_SAMPLE_BRANCH_* flags into a filter for brs_filter().
 * Return: 0 or a negative error.
 */
static int brs_parse_sample_type(u64 sample_type, u64 *sel)
{
	int i;

	*sel = 0;
	for (i = 0; i < ARRAY_SIZE(brs_sample_types); i++) {
		if (sample_type & brs_sample_types[i].sample_type)
			*sel |= brs_sample_types[i].sel;
		sample_type &= ~brs_sample_types[i].sample_type;
	}

	if (sample_type) {
		pr_debug("no support for branch_sample_type 0x%llx\n",
			 sample_type);
		return -EOPNOTSUPP;
	}

	if (!(*sel & X86_BR_PLM)) {
		pr_debug("branches of neither user nor kernel mode asked for\n");
		return -EOPNOTSUPP;
	}

	return 0;
}

/* Check that @event can have a sample every @period events */
static int brs_check_period(struct perf_event *event, u64 period)
{
	if (!has_branch_stack(event))
		return 0;

	if (event->attr.freq) {
		pr_debug("frequency mode: needs a fixed period\n");
		return -EINVAL;
	}

	if (!period) {
		pr_debug("counting mode: needs a sampling period\n");
		return -EINVAL;
	}

	if (period <= BRS_DEPTH) {
		pr_debug("period %llu is not above %d\n", period, BRS_DEPTH);
		return -EINVAL;
	}

	return 0;
}

static void brs_event_destroy(struct perf_event *event)
{
	perf_idle_put();
	hw_perf_event_destroy(event);
}

/**
 * amd_brs_hw_config - check and set up an event with a branch stack
 * @event: the event, in which everything else is already set up
 *
 * Return: 0 on success;
 *	 -EINVAL if the period is not fixed, or not above the depth of the buffer;
 *	 -EOPNOTSUPP if BRS cannot provide the branch types or data asked for.
 */
int amd_brs_hw_config(struct perf_event *event)
{
	u64 sel;
	int ret;

	ret = brs_check_period(event, event->attr.sample_period);
	if (ret)
		return ret;

	ret = brs_parse_sample_type(event->attr.branch_sample_type, &sel);
	if (ret)
		return ret;

	event->hw.branch_reg.config = sel;
	event->attach_state |= PERF_ATTACH_SCHED_CB;

	perf_idle_get();
	event->destroy = brs_event_destroy;
	return 0;
}

EVENT_ATTR_STR(branch-brs, brs_branch_brs, "event=0xc4");

static struct attribute *brs_events_attrs[] = {
	&event_attr_brs_branch_brs.attr.attr,
	NULL,
};

static umode_t brs_events_is_visible(struct kobject *kobj,
				     struct attribute *attr, int i)
{
	return x86_pmu.set_period == brs_set_period ? attr->mode : 0;
}

const struct attribute_group amd_brs_events_group = {
	.name		= "events",
	.attrs		= brs_events_attrs,
	.is_visible	= brs_events_is_visible,
};

static bool brs_has(const struct cpuinfo_x86 *c)
{
	return c->x86 == 0x19 && cpu_has(c, X86_FEATURE_BRS);
}

/* Check that the last buffer entry can be cleared: brs_arm() relies on that */
static bool __init brs_can_empty(void)
{
	u32 msr = BRS_TO(BRS_DEPTH - 1);

	brs_wrmsr(msr, GENMASK_ULL(47, 0));
	if (brs_rdmsr(msr) == BRS_TO_EMPTY)
		return false;

	brs_wrmsr(msr, BRS_TO_EMPTY);
	return brs_rdmsr(msr) == BRS_TO_EMPTY;
}

/**
 * amd_brs_init - detect BRS and set up the driver
 *
 * Return: 0 if the processor has BRS, -EOPNOTSUPP if it does not.
 */
int __init amd_brs_init(void)
{
	int cpu;

	if (!brs_has(&boot_cpu_data))
		return -EOPNOTSUPP;

	if (!brs_can_empty()) {
		pr_warn("the branch buffer cannot be cleared: BRS is not used\n");
		return -EOPNOTSUPP;
	}

	for_each_possible_cpu(cpu)
		hrtimer_setup(per_cpu_ptr(&brs_cpu.timer, cpu), brs_check,
			      CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);

	x86_pmu.lbr_nr = BRS_DEPTH;
	x86_pmu.set_period = brs_set_period;
	x86_pmu.check_period = brs_check_period;

	static_branch_enable(&amd_brs_key);
	static_call_update(x86_pmu_nmi_exit, amd_brs_nmi_exit);
	static_call_update(x86_pmu_nmi_enter, amd_brs_nmi_enter);
	perf_idle_register(amd_brs_idle);

	pr_cont("%d-deep BRS, ", x86_pmu.lbr_nr);
	return 0;
}

static int brs_statistics_show(struct seq_file *m, void *unused)
{
	int cpu;

	seq_puts(m, "cpu stacks partial given_up\n");
	for_each_online_cpu(cpu) {
		const struct brs_cpu *brs = per_cpu_ptr(&brs_cpu, cpu);

		seq_printf(m, "%d %llu %llu %llu\n", cpu, brs->stacks,
			   brs->partial, brs->given_up);
	}

	return 0;
}
DEFINE_SHOW_ATTRIBUTE(brs_statistics);

/* A late initcall, because debugfs is not ready when the PMU is initialized */
static int __init brs_debugfs_init(void)
{
	if (static_key_enabled(&amd_brs_key))
		debugfs_create_file("amd_brs", 0444, NULL, NULL, &brs_statistics_fops);

	return 0;
}
late_initcall(brs_debugfs_init);

#if IS_ENABLED(CONFIG_PERF_EVENTS_AMD_BRS_KUNIT_TEST)
#include "brs_test.c"
#endif
