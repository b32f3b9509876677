// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests for event-based branches: the rules for opening an event, the
 * merging of MMCR0 and MMCR3, and the registers of the PMU and of a thread.
 */

#include <kunit/test.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <asm/cputable.h>
#include <asm/ebb.h>

#include "ebb.h"
#include "isa207-common.h"

#define CYCLES_ON_PMC1	(0x1001eULL | EVENT_WANTS_EBB)
#define CYCLES		0x1001eULL
#define ALL_ONES	(~0UL)

static void skip_without_ebb(struct kunit *test)
{
	if (!(cur_cpu_spec->cpu_user_features2 & PPC_FEATURE2_EBB))
		kunit_skip(test, "the running PMU driver gives no EBB");
}

static void skip_before_isa207(struct kunit *test)
{
	if (!cpu_has_feature(CPU_FTR_ARCH_207S))
		kunit_skip(test, "the processor has no EBB");
}

/* Make an event that leads its own group, as perf_event_open() does */
static struct perf_event *new_event(struct kunit *test, u64 config)
{
	struct perf_event *event = kunit_kzalloc(test, sizeof(*event), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, event);
	event->attr.type = PERF_TYPE_RAW;
	event->attr.config = config;
	event->attach_state = PERF_ATTACH_TASK;
	event->group_leader = event;
	INIT_LIST_HEAD(&event->sibling_list);

	return event;
}

/* Make an EBB event that leads a group and breaks no rule */
static struct perf_event *new_leader(struct kunit *test)
{
	struct perf_event *event = new_event(test, CYCLES_ON_PMC1);

	event->attr.pinned = 1;
	event->attr.exclusive = 1;

	return event;
}

static struct perf_event *new_member(struct kunit *test, struct perf_event *leader,
				     u64 config)
{
	struct perf_event *event = new_event(test, config);

	event->group_leader = leader;

	return event;
}

/* Check an event as power_pmu_event_init() does */
static struct perf_event *opened(struct kunit *test, struct perf_event *event)
{
	KUNIT_ASSERT_EQ(test, ebb_check_event(event, PPMU_EBB), 0);

	return event;
}

static struct thread_struct *new_thread(struct kunit *test)
{
	struct thread_struct *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	return t;
}

/* Tests of the rules for opening an EBB event */

static void break_pinned(struct perf_event *event)
{
	event->attr.pinned = 0;
}

static void break_exclusive(struct perf_event *event)
{
	event->attr.exclusive = 0;
}

static void break_inherit(struct perf_event *event)
{
	event->attr.inherit = 1;
}

static void break_freq(struct perf_event *event)
{
	event->attr.freq = 1;
}

static void break_period(struct perf_event *event)
{
	event->attr.sample_period = 1;
}

static void break_sample_type(struct perf_event *event)
{
	event->attr.sample_type = PERF_SAMPLE_IP;
}

static void break_enable_on_exec(struct perf_event *event)
{
	event->attr.enable_on_exec = 1;
}

static void break_task(struct perf_event *event)
{
	event->attach_state = 0;
}

static void break_pmc(struct perf_event *event)
{
	event->attr.config &= ~(EVENT_PMC_MASK << EVENT_PMC_SHIFT);
}

static void break_bhrb(struct perf_event *event)
{
	event->attr.config = CYCLES | EVENT_WANTS_BHRB;
}

static const struct rule_case {
	const char	*why;
	void		(*break_it)(struct perf_event *event);
} rule_cases[] = {
	{ "the group leader is not pinned",		break_pinned },
	{ "the group leader is not exclusive",		break_exclusive },
	{ "inherit is set",				break_inherit },
	{ "freq is set",				break_freq },
	{ "sample_period is set",			break_period },
	{ "sample_type is set",				break_sample_type },
	{ "enable_on_exec is set",			break_enable_on_exec },
	{ "the event is not attached to a task",	break_task },
	{ "the event code names no PMC",		break_pmc },
	{ "BHRB is asked for without EBB",		break_bhrb },
};

static void rule_case_desc(const struct rule_case *c, char *desc)
{
	strscpy(desc, c->why, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(rule, rule_cases, rule_case_desc);

static void e2_each_rule_refuses_alone(struct kunit *test)
{
	const struct rule_case *c = test->param_value;
	struct perf_event *event = new_leader(test);

	KUNIT_ASSERT_NULL(test, ebb_refusal(event, PPMU_EBB));
	c->break_it(event);
	KUNIT_EXPECT_STREQ(test, ebb_refusal(event, PPMU_EBB), c->why);
	KUNIT_EXPECT_EQ(test, ebb_check_event(event, PPMU_EBB), -EINVAL);
}

static void e1_plain_event_needs_nothing(struct kunit *test)
{
	struct perf_event *event = new_event(test, CYCLES);

	event->attr.inherit = 1;
	event->attr.sample_period = 1000;
	event->attr.sample_type = PERF_SAMPLE_IP;
	event->attach_state = 0;
	KUNIT_EXPECT_EQ(test, ebb_check_event(event, 0), 0);
	KUNIT_EXPECT_EQ(test, ebb_check_event(event, PPMU_EBB), 0);
}

static void e3_member_needs_neither_pinned_nor_exclusive(struct kunit *test)
{
	struct perf_event *leader = new_leader(test);

	KUNIT_EXPECT_EQ(test, 0,
			ebb_check_event(new_member(test, leader, CYCLES_ON_PMC1), PPMU_EBB));
}

static void e3_plain_member_of_ebb_group_is_refused(struct kunit *test)
{
	struct perf_event *event = new_member(test, new_leader(test), CYCLES);

	KUNIT_EXPECT_STREQ(test, ebb_refusal(event, PPMU_EBB), "the group asks for EBB");
}

static void e3_ebb_member_of_plain_group_is_refused(struct kunit *test)
{
	struct perf_event *leader = new_leader(test);
	struct perf_event *event;

	leader->attr.config = CYCLES;
	event = new_member(test, leader, CYCLES_ON_PMC1);
	KUNIT_EXPECT_STREQ(test, ebb_refusal(event, PPMU_EBB), "the group does not ask for EBB");
}

static void e3_member_of_orphaned_group_is_refused(struct kunit *test)
{
	struct perf_event *orphan = new_event(test, CYCLES_ON_PMC1);
	struct perf_event *event = new_member(test, orphan, CYCLES_ON_PMC1);

	KUNIT_EXPECT_STREQ(test, ebb_refusal(event, PPMU_EBB), "the group leader is not pinned");
}

static void e15_bit_63_of_other_types_is_not_ebb(struct kunit *test)
{
	struct perf_event *event = new_leader(test);

	event->attr.type = PERF_TYPE_HARDWARE;
	KUNIT_EXPECT_FALSE(test, ebb_is_event(opened(test, event)));
	event->attr.type = PERF_TYPE_HW_CACHE;
	KUNIT_EXPECT_FALSE(test, ebb_is_event(opened(test, event)));
	event->attr.type = PERF_TYPE_RAW;
	KUNIT_EXPECT_TRUE(test, ebb_is_event(opened(test, event)));
}

static void e17_driver_without_ebb_refuses(struct kunit *test)
{
	KUNIT_EXPECT_STREQ(test, ebb_refusal(new_leader(test), PPMU_ARCH_207S),
			   "the PMU driver gives no EBB");
}

static void e18_bhrb_with_ebb_is_granted(struct kunit *test)
{
	struct perf_event *event = new_leader(test);

	event->attr.config |= EVENT_WANTS_BHRB;
	KUNIT_EXPECT_EQ(test, ebb_check_event(event, PPMU_EBB), 0);
}

/* Check that a software event as group leader does not ask for EBB, whatever its config */
static void e24_software_leader_does_not_ask_for_ebb(struct kunit *test)
{
	struct perf_event *leader = new_leader(test);
	struct perf_event *event;

	leader->attr.type = PERF_TYPE_SOFTWARE;
	event = new_member(test, leader, CYCLES_ON_PMC1);
	KUNIT_EXPECT_STREQ(test, ebb_refusal(event, PPMU_EBB), "the group does not ask for EBB");
}

static void e25_only_members_need_their_leader(struct kunit *test)
{
	struct perf_event *leader = opened(test, new_leader(test));
	struct perf_event *member = opened(test, new_member(test, leader, CYCLES_ON_PMC1));
	struct perf_event *plain_leader = opened(test, new_event(test, CYCLES));
	struct perf_event *plain = opened(test, new_member(test, plain_leader, CYCLES));

	KUNIT_EXPECT_TRUE(test, member->event_caps & PERF_EV_CAP_SIBLING);
	KUNIT_EXPECT_FALSE(test, leader->event_caps & PERF_EV_CAP_SIBLING);
	KUNIT_EXPECT_FALSE(test, plain->event_caps & PERF_EV_CAP_SIBLING);
}

/* Tests of the events that can be on the PMU together */

static void e4_group_is_alone_on_the_pmu(struct kunit *test)
{
	struct perf_event *leader = opened(test, new_leader(test));
	struct perf_event *member = opened(test, new_member(test, leader, CYCLES_ON_PMC1));
	struct perf_event *plain = opened(test, new_event(test, CYCLES));
	struct perf_event *set[2] = { leader, member };
	struct perf_event *none[1] = { NULL };

	KUNIT_EXPECT_EQ(test, ebb_check_set(none, 0), 0);
	KUNIT_EXPECT_EQ(test, ebb_check_set(set, 1), 0);
	KUNIT_EXPECT_EQ(test, ebb_check_set(set, 2), 0);
	set[1] = plain;
	KUNIT_EXPECT_EQ(test, ebb_check_set(set, 2), -EAGAIN);
	set[0] = plain;
	KUNIT_EXPECT_EQ(test, ebb_check_set(set, 2), 0);
	set[1] = leader;
	KUNIT_EXPECT_EQ(test, ebb_check_set(set, 2), -EAGAIN);
}

/*
 * Tests of the values for MMCR0 and MMCR3
 */

#define USER_ARMED	MMCR0_PMXE
#define USER_ALERTED	(MMCR0_FC | MMCR0_PMAO)
#define KERNEL_ON	(EBB_MMCR0 | MMCR0_PMXE | MMCR0_FCECE | MMCR0_PMC1CE)

static const struct merge_case {
	const char	*name;
	unsigned long	kernel, user, merged;
} mmcr0_cases[] = {
	{ "armed",		    KERNEL_ON, USER_ARMED, KERNEL_ON },
	{ "disarmed",		    KERNEL_ON, 0, KERNEL_ON & ~MMCR0_PMXE },
	{ "frozen by the user",	    KERNEL_ON, MMCR0_FC | MMCR0_PMXE, KERNEL_ON | MMCR0_FC },
	{ "frozen by the kernel",   KERNEL_ON | MMCR0_FC, USER_ARMED, KERNEL_ON | MMCR0_FC },
	{ "alerted",		    KERNEL_ON, USER_ALERTED,
	  (KERNEL_ON & ~MMCR0_PMXE) | USER_ALERTED },
	{ "no exceptions at all",   EBB_MMCR0, USER_ARMED, EBB_MMCR0 },
	{ "other bits are not the user's", KERNEL_ON, ALL_ONES,
	  KERNEL_ON | MMCR0_FC | MMCR0_PMAO },
};

static void merge_case_desc(const struct merge_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(mmcr0, mmcr0_cases, merge_case_desc);

static void e9_mmcr0_merge(struct kunit *test)
{
	const struct merge_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, ebb_merge_mmcr0(c->kernel, c->user), c->merged);
}

/* Check that the user's bits are unchanged in the merged MMCR0 */
static void e9_mmcr0_round_trip(struct kunit *test)
{
	const unsigned long bits[] = { MMCR0_FC, MMCR0_PMXE, MMCR0_PMAO };
	unsigned long kernel, user, live;
	int i, mask;

	for (mask = 0; mask < 8; mask++) {
		for (user = 0, i = 0; i < 3; i++)
			user |= mask & (1 << i) ? bits[i] : 0;
		kernel = KERNEL_ON;
		live = ebb_merge_mmcr0(kernel, user);
		KUNIT_EXPECT_EQ(test, live & MMCR0_USER_MASK, user);
	}
}

#define MMCR3_FIELD(pmc, value)	((unsigned long)(value) << MMCR3_SHIFT(pmc))

/*
 * Check that a field of MMCR3 keeps the value that the user has written, and that
 * the other fields follow the event codes.
 */
static void e9_mmcr3_has_what_the_user_wrote(struct kunit *test)
{
	unsigned long kernel = MMCR3_FIELD(1, 0x1234) | MMCR3_FIELD(2, 0x7fff);
	unsigned long wrote = MMCR3_FIELD(1, 0x1234) | MMCR3_FIELD(4, 0x0ff);
	unsigned long mask = ebb_mmcr3_mask(kernel, wrote);

	KUNIT_EXPECT_EQ(test, ebb_mmcr3_mask(kernel, kernel), 0);
	KUNIT_EXPECT_EQ(test, ebb_merge_mmcr3(kernel, 0, 0), kernel);
	KUNIT_EXPECT_EQ(test, ebb_merge_mmcr3(kernel, wrote, mask), wrote);

	/*
	 * Check MMCR3's fields of PMC2 and PMC3, which are both 0. The user has written
	 * the 0 for PMC2, so the merge keeps this 0. The field of PMC3 follows the new
	 * event codes.
	 */
	kernel = MMCR3_FIELD(1, 1) | MMCR3_FIELD(2, 2) | MMCR3_FIELD(3, 3) | MMCR3_FIELD(4, 4);
	KUNIT_EXPECT_EQ(test, ebb_merge_mmcr3(kernel, wrote, mask),
			MMCR3_FIELD(1, 1) | MMCR3_FIELD(3, 3) | MMCR3_FIELD(4, 0x0ff));
}

/* Check that the five fields of MMCR3 do not overlap and together cover all bits */
static void e9_mmcr3_fields_are_all_bits(struct kunit *test)
{
	unsigned long mask, all = 0;
	int bit;

	for (bit = 0; bit < 64; bit++) {
		mask = ebb_mmcr3_mask(0, BIT(bit));
		KUNIT_EXPECT_NE(test, mask & BIT(bit), 0);
		KUNIT_EXPECT_EQ(test, hweight64(mask), bit < 4 ? 4 : 15);
		all |= mask;
	}
	KUNIT_EXPECT_EQ(test, all, ALL_ONES);
}

/*
 * Tests of the PMU of the current thread.  KUnit runs in a kernel thread, which
 * has no EBB state to lose.  No other event may use the PMU during the tests.
 */

static unsigned long read_counters(void)
{
	return mfspr(SPRN_PMC1) | mfspr(SPRN_PMC2) | mfspr(SPRN_PMC3) |
	       mfspr(SPRN_PMC4) | mfspr(SPRN_PMC5) | mfspr(SPRN_PMC6);
}

static void write_counters(unsigned long value)
{
	mtspr(SPRN_PMC1, value);
	mtspr(SPRN_PMC2, value);
	mtspr(SPRN_PMC3, value);
	mtspr(SPRN_PMC4, value);
	mtspr(SPRN_PMC5, value);
	mtspr(SPRN_PMC6, value);
}

/* Clear the PMU registers after a test, so that no counter stays negative. */
static void clear_user_registers(void)
{
	write_counters(0);
	mtspr(SPRN_MMCR2, 0);
	mtspr(SPRN_SIAR, 0);
	mtspr(SPRN_SDAR, 0);
	mtspr(SPRN_SIER, 0);
	ebb_init_thread(&current->thread);
}

static void e27_grant_shows_nothing_of_others(struct kunit *test)
{
	struct perf_event *leader = opened(test, new_leader(test));
	struct mmcr_regs kernel = { .mmcr0 = MMCR0_PMC1CE };
	unsigned long flags, counters, own, mmcr2, sampled;

	skip_without_ebb(test);

	leader->hw.idx = 1;
	local_irq_save(flags);
	write_counters(0xdead);
	mtspr(SPRN_MMCR2, MMCR2_USER_MASK);
	mtspr(SPRN_SIAR, PAGE_OFFSET);
	mtspr(SPRN_SDAR, PAGE_OFFSET);
	mtspr(SPRN_SIER, ALL_ONES);
	ebb_prepare(leader, false);
	ebb_resume(&kernel, &leader, 1);
	own = mfspr(SPRN_PMC1);
	mtspr(SPRN_PMC1, 0);
	counters = read_counters();
	mmcr2 = mfspr(SPRN_MMCR2);
	sampled = mfspr(SPRN_SIAR) | mfspr(SPRN_SDAR) | mfspr(SPRN_SIER);
	clear_user_registers();
	local_irq_restore(flags);

	/*
	 * Check that the event's counter, which the PMU driver has written, is
	 * not cleared.
	 */
	KUNIT_EXPECT_EQ(test, own, 0xdead);
	KUNIT_EXPECT_EQ(test, counters, 0);
	KUNIT_EXPECT_EQ(test, mmcr2, 0);
	KUNIT_EXPECT_EQ(test, sampled, 0);
}

/* Check that counters keep their values when the PMU is stopped and started. */
static void e9_stop_of_the_pmu_leaves_the_counters(struct kunit *test)
{
	struct perf_event *leader = opened(test, new_leader(test));
	struct mmcr_regs kernel = { .mmcr0 = KERNEL_ON };
	unsigned long flags, counter;

	skip_without_ebb(test);

	leader->hw.idx = 1;
	leader->hw.flags |= EBB_ARMED;
	local_irq_save(flags);
	write_counters(0x1234);
	ebb_prepare(leader, false);
	ebb_resume(&kernel, &leader, 1);
	counter = mfspr(SPRN_PMC6);
	clear_user_registers();
	local_irq_restore(flags);

	KUNIT_EXPECT_EQ(test, counter, 0x1234);
}

static void e18_every_ebb_event_has_the_bhrb(struct kunit *test)
{
	struct perf_event *leader = opened(test, new_leader(test));
	struct mmcr_regs kernel = { .mmcr0 = MMCR0_PMC1CE };
	unsigned long flags, mmcr0;

	skip_without_ebb(test);

	local_irq_save(flags);
	ebb_prepare(leader, false);
	mmcr0 = ebb_resume(&kernel, &leader, 1);
	clear_user_registers();
	local_irq_restore(flags);

	KUNIT_EXPECT_EQ(test, mmcr0 & EBB_MMCR0, MMCR0_EBE | MMCR0_BHRBA | MMCR0_PMCC_U6);
}

static void e11_counter_of_the_old_program_is_not_kept(struct kunit *test)
{
	struct perf_event *event = opened(test, new_leader(test));
	unsigned long before, after;

	skip_before_isa207(test);

	ebb_save_count(event, 0x80000001);
	before = ebb_saved_count(event);
	ebb_flush_thread();
	after = ebb_saved_count(event);

	KUNIT_EXPECT_EQ(test, before, 0x80000001);
	KUNIT_EXPECT_EQ(test, after, 0);
}

static void e13_new_group_starts_armed_once(struct kunit *test)
{
	struct thread_struct *t = &current->thread;
	struct perf_event *leader = opened(test, new_leader(test));
	unsigned long flags, first, later, mmcr2, sdar;

	skip_without_ebb(test);

	local_irq_save(flags);
	t->mmcr0 = MMCR0_FC | MMCR0_PMAO;
	t->mmcr2 = MMCR2_USER_MASK;
	t->sdar = 0x1000;
	ebb_prepare(leader, false);
	first = t->mmcr0;
	mmcr2 = t->mmcr2;
	sdar = t->sdar;
	t->mmcr0 = MMCR0_FC;
	ebb_prepare(leader, false);
	later = t->mmcr0;
	ebb_init_thread(t);
	local_irq_restore(flags);

	KUNIT_EXPECT_EQ(test, first, MMCR0_PMXE);
	KUNIT_EXPECT_EQ(test, mmcr2, 0);
	KUNIT_EXPECT_EQ(test, sdar, 0);
	KUNIT_EXPECT_EQ(test, later, MMCR0_FC);
}

/*
 * The steps from an overflow to an exception, any of which can be the last step
 * before the PMU was stopped.  Each case has MMCR0 and BESCR of the thread at
 * that time, whether a counter had overflowed, and the MMCR0 and BESCR that
 * ebb_prepare() has to compute.
 */
static const struct step_case {
	const char	*name;
	unsigned long	mmcr0, bescr;
	bool		overflown;
	unsigned long	mmcr0_then, bescr_then;
} step_cases[] = {
	{ "no overflow", MMCR0_PMXE, BESCR_PME, false, MMCR0_PMXE, BESCR_PME },
	{ "counter overflown", MMCR0_PMXE, BESCR_PME, true,
	  MMCR0_FC | MMCR0_PMAO, BESCR_PMEO },
	{ "counter overflown while disarmed", 0, BESCR_PME, true, 0, BESCR_PME },
	{ "alert, no exception yet", MMCR0_FC | MMCR0_PMAO, BESCR_GE | BESCR_PME, true,
	  MMCR0_FC | MMCR0_PMAO, BESCR_GE | BESCR_PMEO },
	{ "alert, exceptions off", MMCR0_FC | MMCR0_PMAO, BESCR_GE, true,
	  MMCR0_FC | MMCR0_PMAO, BESCR_GE },
	{ "exception", MMCR0_FC | MMCR0_PMAO, BESCR_PMEO, true,
	  MMCR0_FC | MMCR0_PMAO, BESCR_PMEO },
	{ "exception, and another enabled", MMCR0_FC | MMCR0_PMAO, BESCR_PMEO | BESCR_PME, true,
	  MMCR0_FC | MMCR0_PMAO, BESCR_PMEO | BESCR_PME },
};

static void step_case_desc(const struct step_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(step, step_cases, step_case_desc);

static void e21_stopped_pmu_loses_no_exception(struct kunit *test)
{
	const struct step_case *c = test->param_value;
	struct thread_struct *t = &current->thread;
	struct perf_event *leader = opened(test, new_leader(test));
	unsigned long flags, fscr, mmcr0, bescr, kept;

	skip_without_ebb(test);

	leader->hw.flags |= EBB_ARMED;

	local_irq_save(flags);
	fscr = t->fscr;
	t->fscr |= FSCR_EBB;
	t->mmcr0 = c->mmcr0;
	mtspr(SPRN_BESCR, c->bescr);
	t->bescr = c->bescr;
	ebb_prepare(leader, c->overflown);
	mmcr0 = t->mmcr0;
	bescr = mfspr(SPRN_BESCR);
	kept = t->bescr;
	mtspr(SPRN_BESCR, 0);
	ebb_init_thread(t);
	t->fscr = fscr;
	local_irq_restore(flags);

	KUNIT_EXPECT_EQ(test, mmcr0, c->mmcr0_then);
	KUNIT_EXPECT_EQ(test, bescr, c->bescr_then);
	/* Check thread.bescr, from which KVM loads BESCR after a guest has run. */
	KUNIT_EXPECT_EQ(test, kept, c->bescr_then);
}

/* Check that a new group clears BESCR[PMEO] of an earlier group, also in thread_struct. */
static void e13_new_group_has_no_exception(struct kunit *test)
{
	struct thread_struct *t = &current->thread;
	struct perf_event *leader = opened(test, new_leader(test));
	unsigned long flags, fscr, bescr, kept;

	skip_without_ebb(test);

	local_irq_save(flags);
	fscr = t->fscr;
	t->fscr |= FSCR_EBB;
	mtspr(SPRN_BESCR, BESCR_PME | BESCR_PMEO);
	t->bescr = BESCR_PME | BESCR_PMEO;
	ebb_prepare(leader, false);
	bescr = mfspr(SPRN_BESCR);
	kept = t->bescr;
	mtspr(SPRN_BESCR, 0);
	ebb_init_thread(t);
	t->fscr = fscr;
	local_irq_restore(flags);

	KUNIT_EXPECT_EQ(test, bescr, BESCR_PME);
	KUNIT_EXPECT_EQ(test, kept, BESCR_PME);
}

static void e9_pmu_state_survives_suspend_and_resume(struct kunit *test)
{
	struct mmcr_regs kernel = { .mmcr0 = KERNEL_ON, .mmcr2 = MMCR2_FCS(1) | MMCR2_FCP(1) };
	struct thread_struct *t = &current->thread;
	struct thread_struct *seen = new_thread(test);
	struct perf_event *leader = opened(test, new_leader(test));
	unsigned long flags, mmcr0, mmcr2, left;

	skip_without_ebb(test);

	leader->hw.flags |= EBB_ARMED;

	local_irq_save(flags);
	t->mmcr0 = USER_ALERTED;
	t->mmcr2 = MMCR2_FCP(2);
	t->siar = 0x10002000;
	t->sdar = 0x10003000;
	t->sier = ALL_ONES;
	ebb_prepare(leader, false);
	mmcr0 = ebb_resume(&kernel, &leader, 1);
	mmcr2 = mfspr(SPRN_MMCR2);
	t->mmcr0 = 0;
	t->mmcr2 = 0;
	t->siar = 0;
	t->sdar = 0;
	t->sier = 0;
	ebb_suspend(mmcr0, &kernel);
	*seen = *t;
	left = mfspr(SPRN_MMCR2) | mfspr(SPRN_SIER);
	clear_user_registers();
	local_irq_restore(flags);

	KUNIT_EXPECT_EQ(test, mmcr0, (KERNEL_ON & ~MMCR0_PMXE) | USER_ALERTED);
	KUNIT_EXPECT_EQ(test, mmcr2, MMCR2_FCS(1) | MMCR2_FCP(1) | MMCR2_FCP(2));
	KUNIT_EXPECT_EQ(test, seen->mmcr0, USER_ALERTED);
	KUNIT_EXPECT_EQ(test, seen->mmcr2, MMCR2_FCP(2));
	KUNIT_EXPECT_EQ(test, seen->siar, 0x10002000);
	KUNIT_EXPECT_EQ(test, seen->sdar, 0x10003000);
	KUNIT_EXPECT_EQ(test, seen->sier & ~SIER_USER_MASK, 0);
	KUNIT_EXPECT_EQ(test, left, 0);
}

/*
 * Tests of the EBB registers of a thread
 */

static void e9_switch_saves_one_thread_and_loads_the_other(struct kunit *test)
{
	struct thread_struct *first = new_thread(test);
	struct thread_struct *second = new_thread(test);
	struct thread_struct *without = new_thread(test);
	unsigned long ebbhr, ebbrr, bescr, left, flags;

	skip_before_isa207(test);

	first->fscr = FSCR_EBB;
	first->ebbhr = 0x1000;
	first->ebbrr = 0x2000;
	first->bescr = BESCR_PME;
	second->fscr = FSCR_EBB;
	second->ebbhr = 0x3000;

	local_irq_save(flags);
	ebb_context_switch(without, first);
	ebbhr = mfspr(SPRN_EBBHR);
	ebbrr = mfspr(SPRN_EBBRR);
	bescr = mfspr(SPRN_BESCR);
	mtspr(SPRN_EBBRR, 0x2004);
	ebb_context_switch(first, second);
	ebb_context_switch(second, without);
	left = mfspr(SPRN_EBBHR) | mfspr(SPRN_EBBRR) | mfspr(SPRN_BESCR);
	local_irq_restore(flags);

	KUNIT_EXPECT_EQ(test, ebbhr, 0x1000);
	KUNIT_EXPECT_EQ(test, ebbrr, 0x2000);
	KUNIT_EXPECT_EQ(test, bescr, BESCR_PME);
	KUNIT_EXPECT_EQ(test, first->ebbrr, 0x2004);
	KUNIT_EXPECT_EQ(test, first->bescr, BESCR_PME);
	KUNIT_EXPECT_EQ(test, second->ebbhr, 0x3000);
	KUNIT_EXPECT_EQ(test, second->ebbrr, 0);
	KUNIT_EXPECT_EQ(test, second->bescr, 0);
	KUNIT_EXPECT_EQ(test, left, 0);
}

static void e10_new_thread_starts_with_zero(struct kunit *test)
{
	struct thread_struct *t = new_thread(test);

	t->fscr = FSCR_EBB | FSCR_TAR;
	t->ebbhr = ALL_ONES;
	t->ebbrr = ALL_ONES;
	t->bescr = ALL_ONES;
	t->mmcr0 = ALL_ONES;
	t->mmcr2 = ALL_ONES;
	t->mmcr3 = ALL_ONES;
	t->mmcr3_mask = ALL_ONES;
	t->siar = ALL_ONES;
	t->sdar = ALL_ONES;
	t->sier = ALL_ONES;
	t->sier2 = ALL_ONES;
	t->sier3 = ALL_ONES;
	t->tar = ALL_ONES;
	ebb_init_thread(t);

	KUNIT_EXPECT_EQ(test, t->fscr, FSCR_TAR);
	KUNIT_EXPECT_FALSE(test, ebb_in_use(t));
	KUNIT_EXPECT_EQ(test, 0, t->ebbhr | t->ebbrr | t->bescr);
	KUNIT_EXPECT_EQ(test, 0, t->mmcr0 | t->mmcr2 | t->mmcr3 | t->mmcr3_mask);
	KUNIT_EXPECT_EQ(test, 0, t->siar | t->sdar | t->sier | t->sier2 | t->sier3);
	KUNIT_EXPECT_EQ(test, t->tar, ALL_ONES);
}

/*
 * Check that the first use of EBB does not keep FSCR[IC], the cause of the facility
 * unavailable interrupt, because a task switch compares the whole of FSCR.
 */
static void e12_first_use_keeps_no_cause(struct kunit *test)
{
	struct thread_struct *t = &current->thread;
	unsigned long flags, before, kept, fscr, after;
	bool used;

	skip_before_isa207(test);

	local_irq_save(flags);
	before = mfspr(SPRN_FSCR);
	mtspr(SPRN_FSCR, before | (unsigned long)FSCR_EBB_LG << 56);
	used = ebb_first_use();
	kept = t->fscr;
	fscr = mfspr(SPRN_FSCR);
	ebb_flush_thread();
	after = t->fscr | mfspr(SPRN_FSCR);
	local_irq_restore(flags);

	KUNIT_EXPECT_TRUE(test, used);
	KUNIT_EXPECT_EQ(test, kept & (FSCR_INTR_CAUSE | FSCR_EBB), FSCR_EBB);
	KUNIT_EXPECT_EQ(test, fscr & (FSCR_INTR_CAUSE | FSCR_EBB), FSCR_EBB);
	KUNIT_EXPECT_EQ(test, after & (FSCR_INTR_CAUSE | FSCR_EBB), 0);
}

static struct kunit_case ebb_cases[] = {
	KUNIT_CASE(e1_plain_event_needs_nothing),
	KUNIT_CASE_PARAM(e2_each_rule_refuses_alone, rule_gen_params),
	KUNIT_CASE(e3_member_needs_neither_pinned_nor_exclusive),
	KUNIT_CASE(e3_plain_member_of_ebb_group_is_refused),
	KUNIT_CASE(e3_ebb_member_of_plain_group_is_refused),
	KUNIT_CASE(e3_member_of_orphaned_group_is_refused),
	KUNIT_CASE(e4_group_is_alone_on_the_pmu),
	KUNIT_CASE_PARAM(e9_mmcr0_merge, mmcr0_gen_params),
	KUNIT_CASE(e9_mmcr0_round_trip),
	KUNIT_CASE(e9_mmcr3_has_what_the_user_wrote),
	KUNIT_CASE(e9_mmcr3_fields_are_all_bits),
	KUNIT_CASE(e9_pmu_state_survives_suspend_and_resume),
	KUNIT_CASE(e9_stop_of_the_pmu_leaves_the_counters),
	KUNIT_CASE(e9_switch_saves_one_thread_and_loads_the_other),
	KUNIT_CASE(e10_new_thread_starts_with_zero),
	KUNIT_CASE(e11_counter_of_the_old_program_is_not_kept),
	KUNIT_CASE(e12_first_use_keeps_no_cause),
	KUNIT_CASE(e13_new_group_starts_armed_once),
	KUNIT_CASE(e13_new_group_has_no_exception),
	KUNIT_CASE(e15_bit_63_of_other_types_is_not_ebb),
	KUNIT_CASE(e17_driver_without_ebb_refuses),
	KUNIT_CASE(e18_bhrb_with_ebb_is_granted),
	KUNIT_CASE(e18_every_ebb_event_has_the_bhrb),
	KUNIT_CASE_PARAM(e21_stopped_pmu_loses_no_exception, step_gen_params),
	KUNIT_CASE(e24_software_leader_does_not_ask_for_ebb),
	KUNIT_CASE(e25_only_members_need_their_leader),
	KUNIT_CASE(e27_grant_shows_nothing_of_others),
	{}
};

static struct kunit_suite ebb_suite = {
	.name = "powerpc-ebb",
	.test_cases = ebb_cases,
};

kunit_test_suite(ebb_suite);

MODULE_LICENSE("GPL");
