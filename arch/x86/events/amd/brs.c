// SPDX-License-Identifier: GPL-2.0
/*
 * AMD Family 19h Branch Sampling (BRS)
 *
 * See section "Branch Sampling" of the Processor Programming Reference (PPR)
 * for AMD Family 19h Model 01h. BRS is a property of Zen3, not of the
 * architecture.
 *
 * While it is armed, the overflow of one performance counter does not interrupt
 * at once. The interrupt is held until the processor has written the source and
 * the target of the next 16 taken branches into MSRs:
 *
 *   overflow      16 taken branches      interrupt
 *  ----|--b0--b1--b2-- ... --b14--b15-------|--------->
 *       \____________ BRS ___________/
 *
 * The buffer is written once: afterwards BRS is off. Branches of all kinds and
 * of all privilege levels are recorded; the counter counts all along.
 *
 *  DBG_EXTN_CFG, MSR C000_010F:
 *
 *      31    27 26  24 23    20 19    16 15       6  5   4  3   2   1 0
 *     +--------+------+--------+--------+----------+----+-----+---+-----+
 *     |        | PMC  |        | MSROFF |          | VB | 1 1 | E |     |
 *     +--------+------+--------+--------+----------+----+-----+---+-----+
 *       PMC    counter whose overflow starts the recording
 *       MSROFF entry that will be written next
 *       VB     the buffer has valid branches
 *       E      BRSMEN: armed. Drops by itself once the buffer is full; when
 *              software clears it, a held interrupt is let go at once
 *
 *  SAMP_BR_FROM, MSR C001_0300 + 2 * i, SAMP_BR_TO, MSR C001_0301 + 2 * i:
 *  source and target of the i-th branch, oldest first.
 *
 * Rules that the code below keeps:
 *
 * - The counter is stopped before BRS and started after it. So it cannot
 *   overflow while BRS is off, which would be an interrupt without branches.
 *   Only one that has just overflowed, and is as far from the next time as it
 *   can be, is left running until it is set anew.
 *
 * - A capture counts only if it is complete and has nothing of an NMI's own
 *   way in or out. Otherwise it is taken again: the counter is set to overflow
 *   soon, and what it has counted still belongs to the period. So the kernel's
 *   own doings neither show up in the stacks nor make them short.
 *
 * - The interrupted code makes progress. While the counter may be running, NMIs
 *   stop it (brs_cpu.on), and it is started again together with BRS only: the
 *   next interrupt comes 16 branches past the overflow, of which some are behind
 *   the end of the NMI. Whatever breaks this in spite of all, interrupts without
 *   a sample count for throttling as well, so that the CPU does not get lost in
 *   NMIs.
 */
#define pr_fmt(fmt) "amd_brs: " fmt

#include <linux/bitfield.h>
#include <linux/perf_event.h>
#include <linux/perf_idle.h>
#include <linux/sched/task_stack.h>
#include <linux/static_call.h>

#include <asm/apic.h>
#include <asm/cpu_entry_area.h>
#include <asm/idtentry.h>
#include <asm/irqflags.h>
#include <asm/msr.h>
#include <asm/perf_event.h>
#include <asm/sections.h>

#include "../perf_event.h"
#include "brs.h"

#if IS_ENABLED(CONFIG_PERF_EVENTS_AMD_BRS_KUNIT_TEST)
#include <kunit/static_stub.h>
#else
#define KUNIT_STATIC_STUB_REDIRECT(...)	do { } while (0)
#endif

#define BRS_DEPTH		16

/* The counter that BRS events are tied to */
#define BRS_PMC			0
#define BRS_PMC_CTL		(MSR_F15H_PERF_CTL + 2 * BRS_PMC)
#define BRS_PMC_CTR		(MSR_F15H_PERF_CTR + 2 * BRS_PMC)

#define BRS_CFG_BRSMEN		BIT_ULL(2)
#define BRS_CFG_MB1		GENMASK_ULL(4, 3)	/* must be 11b */
#define BRS_CFG_VB		BIT_ULL(5)
#define BRS_CFG_MSROFF		GENMASK_ULL(19, 16)
#define BRS_CFG_PMC		GENMASK_ULL(26, 24)

#define BRS_CFG_OFF		BRS_CFG_MB1
#define BRS_CFG_ARMED		(BRS_CFG_MB1 | BRS_CFG_BRSMEN |	\
				 FIELD_PREP_CONST(BRS_CFG_PMC, BRS_PMC))

/* Event select of the taken branches, the event that counts what BRS records */
#define BRS_EVENT_TAKEN		0xc4

/* In the filter of an event, beside the X86_BR_* flags: save the privilege too */
#define BRS_SEL_PRIV_SAVE	BIT_ULL(32)

/*
 * No way out of an NMI has more branches, and no other interrupt so few: one
 * that waited for the end of the NMI returns to the same place.
 */
#define BRS_MAX_EXIT		24

/* Upper limit of what a kernel event is kept away from the end of an NMI */
#define BRS_MAX_GUARD		2048

/*
 * Events to let pass before a capture is taken again. When it was given up BRS
 * has let go of an interrupt, which is taken as soon as the NMI ends. The
 * branches into that must not be what starts the next capture: it would be
 * given up as well, and so forth.
 */
#define BRS_RETAKE_DISTANCE	16

/* How often in a row to take a capture again that may be no better next time */
#define BRS_MAX_RETAKES		4

/*
 * Where an NMI returns to. The two ways out differ in length, and each is
 * always the same.
 */
enum brs_exit {
	BRS_EXIT_KERNEL,
	BRS_EXIT_USER,
	BRS_NR_EXITS
};

/**
 * struct brs_cpu - BRS on one CPU
 * @on:		BRS and the counter may be on, and have to be turned off in NMIs
 * @armed:	BRS and the counter are on, but for an NMI or a low power state
 * @nmi:	off because an NMI is being handled, whose exit turns them on
 * @full:	the buffer was full when that NMI came
 * @idle:	off because the CPU is in a low power state
 * @pair:	the event counts on two counters
 * @start_msr:	the register by which the end of the NMI starts the counter: its
 *		control, or the counter itself if it was not stopped
 * @start_val:	what is written there
 * @ctl:	what starts the counter, for its control register
 * @task:	the task that was running when BRS was armed
 * @distance:	events from the last time the counter was set to its overflow
 * @uncount:	branches in @distance which are an NMI's way out
 * @resume_ip:	where the last NMI has returned to, 0: armed outside of an NMI
 * @resume:	which way out it was
 * @exit_len:	taken branches from amd_brs_nmi_exit() to the end of an NMI, for
 *		each way out; 0 as long as none was seen
 * @guard:	the same for events other than taken branches, a lower limit
 * @retakes:	captures given up since the last sample
 * @user_regs:	room for brs_user_regs(): on the stack it would be cleared, where
 *		the kernel does that, in each NMI
 *
 * Belongs to its CPU. Written with interrupts disabled and by NMIs.
 */
struct brs_cpu {
	bool			on;
	bool			armed;
	bool			nmi;
	bool			full;
	bool			idle;
	bool			pair;
	u32			start_msr;
	u64			start_val;
	u64			ctl;
	struct task_struct	*task;
	s64			distance;
	s64			uncount;
	unsigned long		resume_ip;
	enum brs_exit		resume;
	s64			exit_len[BRS_NR_EXITS];
	s64			guard[BRS_NR_EXITS];
	unsigned int		retakes;
	struct pt_regs		user_regs;
};

static DEFINE_PER_CPU(struct brs_cpu, brs_cpu);

DEFINE_STATIC_KEY_FALSE(amd_brs_key);

DEFINE_STATIC_CALL_NULL(x86_pmu_nmi_enter, void (void));
DEFINE_STATIC_CALL_NULL(x86_pmu_nmi_exit, void (void));
DEFINE_STATIC_CALL_NULL(x86_pmu_resume, void (void));

static struct event_constraint brs_constraint __ro_after_init =
	EVENT_CONSTRAINT(0, BIT(BRS_PMC), 0);

/* Large increment events need the next counter as well */
static struct event_constraint brs_pair_constraint __ro_after_init =
	__EVENT_CONSTRAINT(0, BIT(BRS_PMC), 0, 1, 0, PERF_X86_EVENT_PAIR);

/* 32 of these make a stack, in an NMI: not the place for rdmsrl()'s tracepoint */
static u64 brs_rdmsr(u32 msr)
{
	KUNIT_STATIC_STUB_REDIRECT(brs_rdmsr, msr);

	return __rdmsr(msr);
}

static void brs_wrmsr(u32 msr, u64 val)
{
	KUNIT_STATIC_STUB_REDIRECT(brs_wrmsr, msr, val);

	wrmsrl(msr, val);
}

/* Does @cfg tell that BRS has filled the buffer, and is off therefore? */
static __always_inline bool brs_cfg_full(u64 cfg)
{
	return !(cfg & (BRS_CFG_BRSMEN | BRS_CFG_MSROFF)) && (cfg & BRS_CFG_VB);
}

static u64 brs_sign_extend(u64 ip)
{
	return sign_extend64(ip, boot_cpu_data.x86_virt_bits - 1);
}

/* Read the full buffer, newest branch first */
static void brs_read(struct perf_branch_entry *br)
{
	u32 msr = MSR_AMD_SAMP_BR_FROM + 2 * (BRS_DEPTH - 1);
	int i;

	for (i = 0; i < BRS_DEPTH; i++, msr -= 2, br++) {
		*br = (struct perf_branch_entry) {
			.from	= brs_rdmsr(msr),
			.to	= brs_sign_extend(brs_rdmsr(msr + 1)),
		};
	}
}

/* Does the privilege filter @sel let @br pass? Both ends have to. */
static bool brs_privilege_ok(const struct perf_branch_entry *br, u64 sel)
{
	bool from_kernel = kernel_ip(br->from);
	bool to_kernel = kernel_ip(br->to);

	if ((from_kernel || to_kernel) && !(sel & X86_BR_KERNEL))
		return false;

	return (from_kernel && to_kernel) || (sel & X86_BR_USER);
}

/*
 * Keep only those of the @nr entries at @br that @sel asks for.
 * Return: how many are left.
 */
static unsigned int brs_filter(struct perf_branch_entry *br, unsigned int nr,
			       u64 sel)
{
	bool all = (sel & X86_BR_ANY) == X86_BR_ANY;
	unsigned int i, out = 0;
	int type;

	/* The usual case of an event for user and kernel: nothing to look for */
	if (all && (sel & X86_BR_PLM) == X86_BR_PLM &&
	    !(sel & (X86_BR_TYPE_SAVE | BRS_SEL_PRIV_SAVE)))
		return nr;

	for (i = 0; i < nr; i++) {
		if (!brs_privilege_ok(&br[i], sel))
			continue;

		/* Decoding is expensive: only where something depends on it */
		if (!all || (sel & X86_BR_TYPE_SAVE)) {
			type = branch_type(br[i].from, br[i].to, 0);
			if (!all && !(sel & type & X86_BR_ANY))
				continue;
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

/* Does @event count nothing but the branches that BRS records? */
static bool brs_counts_branches(struct perf_event *event)
{
	return (event->hw.config & AMD64_RAW_EVENT_MASK) == BRS_EVENT_TAKEN;
}

static bool brs_counts_kernel(struct perf_event *event)
{
	return event->hw.config & ARCH_PERFMON_EVENTSEL_OS;
}

/* The BRS event that runs on this CPU, NULL if there is none */
static struct perf_event *brs_event(struct cpu_hw_events *cpuc)
{
	struct perf_event *event = cpuc->events[BRS_PMC];

	if (!event || !test_bit(BRS_PMC, cpuc->active_mask) ||
	    !has_branch_stack(event))
		return NULL;

	return event;
}

/*
 * How many events there are to go until the counter has to overflow, when the
 * period ends in @left: the interrupt comes 16 branches later.
 */
static s64 brs_distance(s64 left)
{
	return clamp(left - BRS_DEPTH, 1, (s64)x86_pmu.max_period - BRS_MAX_GUARD);
}

/*
 * Is the counter left running in this NMI, to be set at its end? Not any more
 * if the event was stopped meanwhile.
 */
static bool brs_runs_on(const struct brs_cpu *brs)
{
	return brs->nmi && brs->armed && brs->start_msr == BRS_PMC_CTR;
}

/* Let the counter of @event overflow after @distance events */
static void brs_write_counter(struct brs_cpu *brs, struct perf_event *event,
			      s64 distance)
{
	struct hw_perf_event *hwc = &event->hw;

	this_cpu_write(pmc_prev_left[hwc->idx], distance);
	local64_set(&hwc->prev_count, (u64)-distance);

	if (brs_runs_on(brs)) {
		brs->start_val = (u64)-distance & x86_pmu.cntval_mask;
		return;
	}

	brs_wrmsr(hwc->event_base, (u64)-distance & x86_pmu.cntval_mask);
	if (is_counter_pair(hwc))
		brs_wrmsr(x86_pmu_event_addr(hwc->idx + 1), 0xffff);
}

/*
 * Let the counter overflow @distance events from here.
 *
 * In an NMI, @resume is the way that it will return by. An event that counts
 * in the kernel counts there as well, so it must not overflow before. The
 * length of that way is known to the branch once it was seen, see
 * brs_learn_exit(), and is then added on top and taken off the count again, as
 * if the NMI had not been. For events other than taken branches the best that
 * can be done is to start some distance off.
 */
static void brs_set_counter(struct brs_cpu *brs, struct perf_event *event,
			    s64 distance, enum brs_exit resume)
{
	brs->uncount = 0;

	if (resume < BRS_NR_EXITS && brs_counts_kernel(event)) {
		if (brs_counts_branches(event)) {
			brs->uncount = brs->exit_len[resume];
			distance += brs->uncount;
		} else {
			distance = max(distance, brs->guard[resume]);
		}
	}

	brs->distance = distance;
	brs_write_counter(brs, event, distance);
	perf_event_update_userpage(event);
}

/* Take @n off what @event has counted, and off what its period has advanced */
static void brs_uncount(struct perf_event *event, s64 n)
{
	local64_sub(n, &event->count);
	local64_add(n, &event->hw.period_left);
}

/*
 * Set the period when an event is started. A remainder below zero means that
 * the event was stopped before the sample at the end of a period could be
 * taken, which is thus due.
 */
static int brs_set_period(struct perf_event *event)
{
	struct hw_perf_event *hwc = &event->hw;
	s64 left = local64_read(&hwc->period_left);

	if (!has_branch_stack(event))
		return x86_perf_event_set_period(event);

	if (!left || left <= -(s64)hwc->sample_period) {
		left = hwc->sample_period;
		local64_set(&hwc->period_left, left);
		hwc->last_period = left;
	}

	brs_set_counter(this_cpu_ptr(&brs_cpu), event, brs_distance(left),
			BRS_NR_EXITS);
	return 0;
}

/*
 * Bring the count of @event up to date. What a counter that runs on has counted
 * since the NMI began does not belong to it.
 * Return: the value of the counter, when the NMI began if it runs on.
 */
static u64 brs_update(struct brs_cpu *brs, struct perf_event *event)
{
	u64 val = x86_perf_event_update(event);

	if (!brs_runs_on(brs))
		return val;

	brs_uncount(event, sign_extend64(val - brs->start_val,
					 x86_pmu.cntval_bits - 1));
	local64_set(&event->hw.prev_count, brs->start_val);
	return brs->start_val;
}

/*
 * Other events' samples may read the BRS event's count within an NMI, and so
 * may a BPF program with its own sample.
 */
static u64 brs_event_update(struct perf_event *event)
{
	if (!has_branch_stack(event))
		return x86_perf_event_update(event);

	return brs_update(this_cpu_ptr(&brs_cpu), event);
}

/*
 * The period of @event has ended: begin the next one. What was counted beyond
 * the end, or not yet counted up to it, is made up for.
 * Return: the events that are left in the new period.
 */
static s64 brs_next_period(struct perf_event *event)
{
	struct hw_perf_event *hwc = &event->hw;
	s64 left = local64_read(&hwc->period_left) + hwc->sample_period;

	if (left <= 0)
		left = hwc->sample_period;

	local64_set(&hwc->period_left, left);
	hwc->last_period = hwc->sample_period;
	return left;
}

/*
 * Has another NMI hit the capture? Then its end is the way into the NMI, all of
 * it in the kernel.
 */
static bool brs_saw_nmi(const struct perf_branch_entry *br)
{
	int i;

	for (i = 0; i < BRS_DEPTH; i++) {
		if (br[i].to == (unsigned long)asm_exc_nmi)
			return true;
		if (!kernel_ip(br[i].from))
			break;
	}

	return false;
}

static bool brs_is_iret(unsigned long ip)
{
	static const u8 iretq[] = { 0x48, 0xcf };

	return ip >= (unsigned long)__entry_text_start &&
	       ip <= (unsigned long)__entry_text_end - sizeof(iretq) &&
	       !memcmp((void *)ip, iretq, sizeof(iretq));
}

/*
 * Does the filter @sel ask for all branches at the levels that @event counts
 * at? Then only a change of the level right after the overflow makes a stack
 * empty, and another one is likely to have something to tell.
 */
static bool brs_filter_fits(struct perf_event *event, u64 sel)
{
	u64 config = event->hw.config;

	return (sel & X86_BR_ANY) == X86_BR_ANY &&
	       (!(config & ARCH_PERFMON_EVENTSEL_USR) || (sel & X86_BR_USER)) &&
	       (!(config & ARCH_PERFMON_EVENTSEL_OS) || (sel & X86_BR_KERNEL));
}

/*
 * How many of the branches, from the oldest on, are the way out of the last
 * NMI: all up to and including its return, which has to be there as no way out
 * has more than BRS_DEPTH branches behind the point where the counter starts.
 * When the overflow was further from there than any way out is long, it is
 * another interrupt that has returned to the same place.
 */
static unsigned int brs_exit_branches(const struct brs_cpu *brs,
				      struct perf_event *event,
				      const struct perf_branch_entry *br)
{
	s64 longest = brs_counts_branches(event) ? BRS_MAX_EXIT :
						   BRS_MAX_GUARD / 2;
	int i;

	if (!brs->resume_ip || brs->distance > longest)
		return 0;

	for (i = BRS_DEPTH - 1; i >= 0 && kernel_ip(br[i].from); i--) {
		if (br[i].to == brs->resume_ip && brs_is_iret(br[i].from))
			return BRS_DEPTH - i;
	}

	return 0;
}

/*
 * The capture has begun @exit branches ahead of the end of an NMI. This tells
 * how long its way out is, see brs_set_counter().
 */
static void brs_learn_exit(struct brs_cpu *brs, struct perf_event *event,
			   unsigned int exit)
{
	s64 len = brs->distance + exit;

	if (!brs_counts_branches(event)) {
		brs->guard[brs->resume] = clamp_t(s64, 2 * brs->distance,
						  BRS_DEPTH, BRS_MAX_GUARD);
	} else if (len <= BRS_MAX_EXIT) {
		brs->exit_len[brs->resume] = len;
		brs->uncount = len;
	}
}

/* How many of the branches in the buffer has @event, one of the kernel, counted? */
static unsigned int brs_counted(struct perf_event *event,
				const struct perf_branch_entry *br)
{
	unsigned int i, n = 0;

	if (event->hw.config & ARCH_PERFMON_EVENTSEL_USR)
		return BRS_DEPTH;

	for (i = 0; i < BRS_DEPTH; i++)
		n += kernel_ip(br[i].from);

	return n;
}

/*
 * Are the registers at the top of the task's stack those that user space had
 * when it entered the kernel? They are not as long as they are being saved.
 */
static bool brs_user_regs_saved(const struct pt_regs *regs,
				const struct pt_regs *user)
{
	const struct entry_stack *entry = cpu_entry_stack(smp_processor_id());

	if (!kernel_ip(regs->sp))
		return false;

	if (regs->sp >= (unsigned long)entry &&
	    regs->sp <= (unsigned long)(entry + 1))
		return false;

	return regs->sp <= (unsigned long)user ||
	       regs->sp > (unsigned long)(user + 1);
}

/*
 * By the time of the interrupt the program may have entered the kernel, which
 * is where @regs point to then. With 16 branches to go that is the rule rather
 * than an exception. No event that is limited to user space may tell any of it:
 * the sample is attributed to the place where user space was left.
 *
 * Return: registers to sample, @copy being room for them; NULL if there are
 *	   none, as there is no user space.
 */
static struct pt_regs *brs_user_regs(struct pt_regs *regs, struct pt_regs *copy,
				     const struct perf_branch_entry *br)
{
	struct pt_regs *user = task_pt_regs(current);
	int i;

	if ((current->flags & PF_KTHREAD) || !current->mm)
		return NULL;

	if (brs_user_regs_saved(regs, user) && user_mode(user)) {
		*copy = *user;
		return copy;
	}

	/* Too early for that, but then the way in is among the branches */
	for (i = 0; i < BRS_DEPTH; i++) {
		if (kernel_ip(br[i].to) && !kernel_ip(br[i].from))
			break;
	}
	if (i == BRS_DEPTH)
		return NULL;

	memset(copy, 0, sizeof(*copy));
	copy->ip = br[i].from;
	copy->cs = test_thread_flag(TIF_ADDR32) ? __USER32_CS : __USER_CS;
	copy->ss = __USER_DS;
	copy->flags = X86_EFLAGS_FIXED | X86_EFLAGS_IF;
	return copy;
}

/*
 * @event has had its share of interrupts: stop it until the next tick. From
 * then on there are @distance events to the overflow, and no NMI in between.
 */
static void brs_throttle(struct brs_cpu *brs, struct perf_event *event,
			 s64 distance)
{
	x86_pmu_stop(event, 0);
	brs_set_counter(brs, event, distance, BRS_NR_EXITS);
}

/*
 * Take what is due again, and soon, @resume being as for
 * brs_set_counter(). Nothing is counted off the period; it only must not look
 * like one that has just begun.
 */
static void brs_retake(struct brs_cpu *brs, struct perf_event *event,
		       enum brs_exit resume)
{
	/* In a loop, not at the same place time and again */
	s64 distance = BRS_RETAKE_DISTANCE + brs->retakes;
	struct hw_perf_event *hwc = &event->hw;

	if (!local64_read(&hwc->period_left))
		local64_set(&hwc->period_left, -1);

	brs_set_counter(brs, event, distance, resume);

	/* It is an interrupt, with a sample or not */
	if (perf_event_account_interrupt(event))
		brs_throttle(brs, event, distance);
}

/*
 * The counter of @event has overflowed, and counted @over events since. If the
 * buffer is full, it has what came after the overflow. There is room for a
 * sample at @data.
 */
static void brs_overflow(struct brs_cpu *brs, struct perf_event *event,
			 struct perf_sample_data *data, struct pt_regs *regs,
			 u64 over, enum brs_exit resume)
{
	struct cpu_hw_events *cpuc = this_cpu_ptr(&cpu_hw_events);
	struct perf_branch_entry *br = cpuc->lbr_entries;
	u64 sel = event->hw.branch_reg.config;
	unsigned int nr = BRS_DEPTH, exit;
	int throttle;
	s64 left;

	/* A period longer than what the counter can hold? */
	left = local64_read(&event->hw.period_left);
	if (left > BRS_DEPTH) {
		brs_set_counter(brs, event, brs_distance(left), resume);
		return;
	}

	/*
	 * The buffer is not full when BRS was stopped halfway, because the PMU
	 * was, or because an NMI came that is not the one for this overflow.
	 */
	if (!brs->full || brs->task != current) {
		brs_uncount(event, brs->uncount);
		goto retake;
	}

	brs_read(br);

	exit = brs_exit_branches(brs, event, br);
	if (exit)
		brs_learn_exit(brs, event, exit);

	/*
	 * What was counted beyond the captured branches is the way from there
	 * to the handler, unless the kernel is not counted anyway.
	 */
	if (brs_counts_kernel(event) && brs_counts_branches(event))
		brs_uncount(event, max_t(s64, over - brs_counted(event, br), 0));
	brs_uncount(event, brs->uncount);

	if (brs_saw_nmi(br))
		goto retake;

	if (exit) {
		if (brs->retakes++ < BRS_MAX_RETAKES)
			goto retake;
		nr -= exit;
	}

	if (event->attr.exclude_kernel && !user_mode(regs))
		regs = brs_user_regs(regs, &brs->user_regs, br);

	nr = brs_filter(br, nr, sel);

	if (!nr && brs_filter_fits(event, sel) &&
	    brs->retakes++ < BRS_MAX_RETAKES)
		goto retake;

	brs->retakes = 0;
	cpuc->lbr_stack.nr = nr;
	cpuc->lbr_stack.hw_idx = -1ULL;

	left = brs_next_period(event);
	brs_set_counter(brs, event, brs_distance(left), resume);

	if (regs) {
		perf_sample_data_init(data, 0, event->hw.last_period);
		perf_sample_save_brstack(data, event, &cpuc->lbr_stack, NULL);
		throttle = perf_event_overflow(event, data, regs);
	} else {
		throttle = perf_event_account_interrupt(event);
	}

	if (throttle)
		brs_throttle(brs, event, brs_distance(left));

	return;

retake:
	brs_retake(brs, event, resume);
}

/*
 * An NMI has come that is not about the BRS event, whose counter stands at
 * @val. Should it be about to overflow, see to it that it does not on the way
 * out.
 */
static void brs_keep_distance(struct brs_cpu *brs, struct perf_event *event,
			      u64 val, enum brs_exit resume)
{
	s64 distance = -sign_extend64(val, x86_pmu.cntval_bits - 1);
	s64 uncount = brs->uncount;

	if (resume == BRS_NR_EXITS || !brs_counts_kernel(event) ||
	    distance > max(brs->guard[resume], BRS_MAX_EXIT))
		return;

	brs_set_counter(brs, event, distance, resume);
	brs->uncount += uncount;
}

/**
 * amd_brs_handle_irq - handle the PMU interrupt while a BRS event is active
 * @regs: registers at the time of the interrupt
 *
 * Handles all counters, like x86_pmu_handle_irq(). From amd_brs_nmi_enter() to
 * amd_brs_nmi_exit() the counter of the BRS event stands still, or its value at
 * the beginning is the one that counts.
 *
 * Context: NMI.
 * Return: the number of counters that have overflowed.
 */
int amd_brs_handle_irq(struct pt_regs *regs)
{
	struct cpu_hw_events *cpuc = this_cpu_ptr(&cpu_hw_events);
	struct brs_cpu *brs = this_cpu_ptr(&brs_cpu);
	struct perf_event *brs_ev = brs_event(cpuc);
	enum brs_exit resume = BRS_NR_EXITS;
	struct perf_sample_data data;
	struct perf_event *event;
	int idx, handled = 0;
	u64 val;

	/* Not if the event is about to be stopped, or the CPU to sleep */
	if (brs->nmi && brs->armed && !brs->idle)
		resume = user_mode(regs) ? BRS_EXIT_USER : BRS_EXIT_KERNEL;

	/* What BRS had to let go of has come without it */
	brs->full &= brs->nmi;

	apic_write(APIC_LVTPC, APIC_DM_NMI);

	for_each_set_bit(idx, x86_pmu.cntr_mask, X86_PMC_IDX_MAX) {
		if (!test_bit(idx, cpuc->active_mask))
			continue;

		event = cpuc->events[idx];
		val = event == brs_ev ? brs_update(brs, event) :
					x86_perf_event_update(event);

		if (val & BIT_ULL(x86_pmu.cntval_bits - 1)) {
			if (event == brs_ev)
				brs_keep_distance(brs, event, val, resume);
			continue;
		}

		handled++;

		if (event == brs_ev) {
			brs_overflow(brs, event, &data, regs, val, resume);
			continue;
		}

		if (!x86_perf_event_set_period(event))
			continue;

		perf_sample_data_init(&data, 0, event->hw.last_period);
		if (perf_event_overflow(event, &data, regs))
			x86_pmu_stop(event, 0);
	}

	if (handled)
		inc_irq_stat(apic_perf_irqs);

	brs->task = current;
	brs->resume = resume;
	brs->resume_ip = resume < BRS_NR_EXITS ? regs->ip : 0;

	/* Should the NMI be handled once more, this was all there is to tell */
	brs->full = false;

	return handled;
}

/* For the places where nothing may be traced */
static __always_inline void brs_wrmsr_noinstr(u32 msr, u64 val)
{
	__wrmsr(msr, (u32)val, (u32)(val >> 32));
}

static __always_inline u64 brs_rdpmc_noinstr(void)
{
	u32 low, high;

	asm volatile("rdpmc" : "=a" (low), "=d" (high) : "c" (BRS_PMC));
	return low | (u64)high << 32;
}

/*
 * Does the counter have to be stopped and started in the kernel? One that does
 * not count there stands still anyway.
 */
static __always_inline bool brs_has_to_stop(const struct brs_cpu *brs)
{
	return brs->ctl & ARCH_PERFMON_EVENTSEL_OS;
}

/* Stop the counter and BRS, in this order. Return: whether the buffer is full */
static __always_inline bool brs_stop_noinstr(struct brs_cpu *brs)
{
	u64 cfg;

	if (brs_has_to_stop(brs))
		brs_wrmsr_noinstr(BRS_PMC_CTL,
				  brs->ctl & ~ARCH_PERFMON_EVENTSEL_ENABLE);

	cfg = __rdmsr(MSR_AMD_DBG_EXTN_CFG);
	if (cfg & BRS_CFG_BRSMEN)
		brs_wrmsr_noinstr(MSR_AMD_DBG_EXTN_CFG, BRS_CFG_OFF);

	return brs_cfg_full(cfg);
}

/*
 * Start BRS and its counter, in this order. An NMI that comes meanwhile may stop
 * the event, which is to be stopped then.
 */
static __always_inline void brs_start_noinstr(struct brs_cpu *brs, u32 msr,
					      u64 val)
{
	brs_wrmsr_noinstr(MSR_AMD_DBG_EXTN_CFG, BRS_CFG_ARMED);
	if (brs_has_to_stop(brs))
		brs_wrmsr_noinstr(msr, val);

	barrier();
	if (!brs->armed)
		brs_stop_noinstr(brs);
}

/*
 * Called at the very beginning of an NMI, any NMI. Few of its branches are ever
 * counted, and not more can get into the buffer. In particular, it cannot be
 * filled by a capture that has begun in the NMI.
 *
 * If the buffer is full, BRS is off by itself and the counter has overflowed a
 * moment ago. The usual NMI is this one: to stop the counter, and to start it
 * at the end, is then spared. Its value is to be set there instead.
 */
static noinstr void amd_brs_nmi_enter(void)
{
	struct brs_cpu *brs = raw_cpu_ptr(&brs_cpu);

	/*
	 * An NMI that takes a fault lets others in on its way out: one that comes
	 * before amd_brs_nmi_exit() is through goes on with what was begun.
	 */
	if (!brs->on || brs->nmi)
		return;

	brs->start_msr = BRS_PMC_CTL;
	brs->start_val = brs->ctl;
	brs->full = brs_cfg_full(__rdmsr(MSR_AMD_DBG_EXTN_CFG));

	if (!brs->full || !brs->armed || brs->idle || brs->pair) {
		brs->full = brs_stop_noinstr(brs);
	} else if (brs_has_to_stop(brs)) {
		brs->start_msr = BRS_PMC_CTR;
		brs->start_val = brs_rdpmc_noinstr();
	}
	brs->nmi = true;
}

/* Called at the very end of an NMI */
static noinstr void amd_brs_nmi_exit(void)
{
	struct brs_cpu *brs = raw_cpu_ptr(&brs_cpu);

	if (!brs->nmi)
		return;

	/* Unless the event was stopped, that is throttled, or is just about to */
	if (brs->armed && !brs->idle)
		brs_start_noinstr(brs, brs->start_msr, brs->start_val);

	barrier();
	brs->nmi = false;
}

/*
 * A processor in a low power state must not have BRS on. The counter has to
 * stand still too: the interrupt that ends the state comes before BRS is back.
 * An interrupt that is being held when BRS goes off comes here and now, and
 * finds @idle set.
 */
static noinstr void amd_brs_idle(bool enter)
{
	struct brs_cpu *brs = raw_cpu_ptr(&brs_cpu);
	unsigned long flags;

	if (enter) {
		if (!brs->armed)
			return;

		brs->idle = true;
		barrier();

		/* An NMI has just stopped the event. Those to come clear @idle. */
		if (!brs->armed) {
			brs->idle = false;
			return;
		}

		brs_stop_noinstr(brs);
		return;
	}

	if (!brs->idle)
		return;

	/* An interrupt may come in between, and do the same */
	flags = native_local_irq_save();
	if (brs->idle) {
		brs->resume_ip = 0;
		brs->idle = false;
		barrier();
		brs_start_noinstr(brs, BRS_PMC_CTL, brs->ctl);
	}
	native_local_irq_restore(flags);
}

/**
 * __amd_brs_active - is there a BRS event running on this CPU?
 *
 * Context: any, with preemption disabled.
 */
bool __amd_brs_active(void)
{
	return brs_event(this_cpu_ptr(&cpu_hw_events));
}

/**
 * amd_brs_enable - turn on BRS for an event whose counter is about to start
 * @event: a BRS event, assigned to its counter
 *
 * Does nothing while the PMU is disabled as a whole.
 *
 * Context: interrupts disabled.
 */
void amd_brs_enable(struct perf_event *event)
{
	struct cpu_hw_events *cpuc = this_cpu_ptr(&cpu_hw_events);
	struct brs_cpu *brs = this_cpu_ptr(&brs_cpu);
	u64 ctl;

	if (!cpuc->enabled)
		return;

	ctl = (event->hw.config | ARCH_PERFMON_EVENTSEL_ENABLE) &
	      ~cpuc->perf_ctr_virt_mask;
	if (brs->ctl != ctl)
		memset(brs->guard, 0, sizeof(brs->guard));

	brs->ctl = ctl;
	brs->pair = is_counter_pair(&event->hw);
	brs->task = current;
	brs->resume_ip = 0;
	brs->idle = false;
	brs->on = true;

	/*
	 * From here on NMIs stop BRS and start it. One that comes just now
	 * starts it, and the counter, a little early. The other way round it
	 * would leave BRS off behind our back.
	 */
	barrier();
	brs->armed = true;
	barrier();
	brs_wrmsr(MSR_AMD_DBG_EXTN_CFG, BRS_CFG_ARMED);
}

/**
 * __amd_brs_disarm - announce that the counter is about to be stopped
 *
 * NMIs do not start it again.
 *
 * Context: interrupts disabled, or NMI.
 */
void __amd_brs_disarm(void)
{
	struct brs_cpu *brs = this_cpu_ptr(&brs_cpu);

	brs->armed = false;
	brs->idle = false;
	barrier();
}

/**
 * __amd_brs_disable - turn off BRS
 *
 * Goes after amd_brs_disarm() and stopping the counter. An interrupt that is
 * being held comes at once; it does no harm.
 *
 * Context: interrupts disabled, or NMI.
 */
void __amd_brs_disable(void)
{
	struct brs_cpu *brs = this_cpu_ptr(&brs_cpu);

	if (!brs->on)
		return;

	brs->on = false;
	brs_wrmsr(MSR_AMD_DBG_EXTN_CFG, BRS_CFG_OFF);
}

/**
 * amd_brs_reset - put BRS of this CPU into its initial state
 *
 * For a CPU that comes up, with whatever its MSRs hold.
 */
void amd_brs_reset(void)
{
	memset(this_cpu_ptr(&brs_cpu), 0, sizeof(struct brs_cpu));
	brs_wrmsr(MSR_AMD_DBG_EXTN_CFG, BRS_CFG_OFF);
}

/*
 * Coming back from suspend or hibernation. What was counted since the counter
 * was last written is gone; without this it would count up from zero and not
 * overflow in years. It is set here and started by the next context switch, see
 * amd_brs_add(). By then the local APIC is back too, which would lose the
 * interrupt of an overflow now.
 */
static void amd_brs_resume(void)
{
	struct cpu_hw_events *cpuc = this_cpu_ptr(&cpu_hw_events);
	struct brs_cpu *brs = this_cpu_ptr(&brs_cpu);
	struct perf_event *event = brs_event(cpuc);
	s64 left;

	__amd_brs_disarm();
	brs_wrmsr(MSR_AMD_DBG_EXTN_CFG, BRS_CFG_OFF);
	if (!event)
		return;

	left = local64_read(&event->hw.period_left);
	brs_set_counter(brs, event, brs_distance(left), BRS_NR_EXITS);
}

/**
 * amd_brs_add - a BRS event is put on this CPU
 * @event: the event
 *
 * Asks for a call at each context switch. For this the PMU is disabled and
 * enabled, which ends a capture, and so no capture spans two tasks.
 */
void amd_brs_add(struct perf_event *event)
{
	perf_sched_cb_inc(event->pmu);
}

/**
 * amd_brs_del - the opposite of amd_brs_add()
 * @event: the event
 */
void amd_brs_del(struct perf_event *event)
{
	perf_sched_cb_dec(event->pmu);
}

/**
 * amd_brs_constraint - which counters a BRS event may use
 * @event: the event
 *
 * There is one, so that two BRS events take turns.
 */
struct event_constraint *amd_brs_constraint(struct perf_event *event)
{
	return is_counter_pair(&event->hw) ? &brs_pair_constraint :
					     &brs_constraint;
}

/* What may be asked for, and which X86_BR_* flags it stands for */
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
 * Translate PERF_SAMPLE_BRANCH_* into what brs_filter() takes.
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

/* Can @event have a sample every @period? */
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
 * @event: the event, already set up otherwise
 *
 * Return: 0; -EINVAL: not a fixed period above the depth of the buffer;
 *	   -EOPNOTSUPP: branch types or data that BRS cannot tell.
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

/**
 * amd_brs_init - look for BRS and get ready for it
 *
 * Return: 0 if the processor has BRS, -EOPNOTSUPP if it does not.
 */
int __init amd_brs_init(void)
{
	if (!brs_has(&boot_cpu_data))
		return -EOPNOTSUPP;

	x86_pmu.lbr_nr = BRS_DEPTH;
	x86_pmu.set_period = brs_set_period;
	x86_pmu.update = brs_event_update;
	x86_pmu.check_period = brs_check_period;

	static_branch_enable(&amd_brs_key);
	static_call_update(x86_pmu_nmi_exit, amd_brs_nmi_exit);
	static_call_update(x86_pmu_nmi_enter, amd_brs_nmi_enter);
	static_call_update(x86_pmu_resume, amd_brs_resume);
	perf_idle_register(amd_brs_idle);

	pr_cont("%d-deep BRS, ", x86_pmu.lbr_nr);
	return 0;
}

#if IS_ENABLED(CONFIG_PERF_EVENTS_AMD_BRS_KUNIT_TEST)
#include "brs_test.c"
#endif
