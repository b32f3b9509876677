// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests for AMD Family 19h Branch Sampling, part of brs.c
 *
 * They run on a model of the registers, and on any processor.
 */
#include <kunit/test.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

/* A return from interrupt that brs_is_iret() knows, of the user entry code */
extern u8 native_irq_return_iret[];

#define USER_IP		0x401000UL
#define KERNEL_IP	0xffffffff81000000UL

/* What core perf sets hw_perf_event.interrupts to */
#define THROTTLED	(~0ULL)

struct brs_model {
	u64			cfg;
	u64			from[BRS_DEPTH];
	u64			to[BRS_DEPTH];
	u64			ctr;
	u64			ctr_high;
	unsigned int		cfg_writes;
	struct brs_cpu		brs;
	struct perf_event	*event;
	struct perf_branch_entry br[BRS_DEPTH];
};

static u64 model_rdmsr(u32 msr)
{
	struct kunit *test = kunit_get_current_test();
	struct brs_model *m = test->priv;
	u32 i = msr - MSR_AMD_SAMP_BR_FROM;

	if (msr == MSR_AMD_DBG_EXTN_CFG)
		return m->cfg;

	if (msr < MSR_AMD_SAMP_BR_FROM || i >= 2 * BRS_DEPTH) {
		KUNIT_FAIL(test, "read of MSR 0x%x", msr);
		return 0;
	}

	return i & 1 ? m->to[i / 2] : m->from[i / 2];
}

static void model_wrmsr(u32 msr, u64 val)
{
	struct kunit *test = kunit_get_current_test();
	struct brs_model *m = test->priv;

	switch (msr) {
	case MSR_AMD_DBG_EXTN_CFG:
		KUNIT_EXPECT_EQ_MSG(test, val & BRS_CFG_MB1, BRS_CFG_MB1,
				    "bits 4:3 must be written 11b");
		m->cfg = val;
		m->cfg_writes++;
		break;
	case MSR_F15H_PERF_CTR:
		m->ctr = val;
		break;
	case MSR_F15H_PERF_CTR + 2:
		m->ctr_high = val;
		break;
	default:
		KUNIT_FAIL(test, "write of MSR 0x%x", msr);
	}
}

/* The hardware records: one entry, and BRS goes off with the last */
static void model_branch(struct brs_model *m, u64 from, u64 to)
{
	u64 i = FIELD_GET(BRS_CFG_MSROFF, m->cfg);

	if (!(m->cfg & BRS_CFG_BRSMEN))
		return;

	/* Targets come without the bits above those of a virtual address */
	m->from[i] = from;
	m->to[i] = to & GENMASK_ULL(boot_cpu_data.x86_virt_bits - 1, 0);

	i = (i + 1) % BRS_DEPTH;
	m->cfg &= ~BRS_CFG_MSROFF;
	m->cfg |= FIELD_PREP(BRS_CFG_MSROFF, i) | BRS_CFG_VB;
	if (!i)
		m->cfg &= ~BRS_CFG_BRSMEN;
}

/* The @n-th branch of a chain in which each one is different */
static void model_chain(struct brs_model *m, u64 base, int n)
{
	int i;

	for (i = 0; i < n; i++)
		model_branch(m, base + 0x20 * i, base + 0x20 * i + 0x10);
}

static void model_arm(struct brs_model *m)
{
	brs_wrmsr(MSR_AMD_DBG_EXTN_CFG, BRS_CFG_ARMED);
}

/* Newest first, like what brs_read() returns: all within @base */
static void fill(struct perf_branch_entry *br, u64 base)
{
	int i;

	memset(br, 0, BRS_DEPTH * sizeof(*br));
	for (i = 0; i < BRS_DEPTH; i++) {
		br[i].from = base + 0x20 * (BRS_DEPTH - 1 - i);
		br[i].to = br[i].from + 0x10;
	}
}

static int brs_test_init(struct kunit *test)
{
	struct brs_model *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	struct perf_event *event;

	KUNIT_ASSERT_NOT_NULL(test, m);
	event = kunit_kzalloc(test, sizeof(*event), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, event);

	event->attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
	event->attr.sample_period = 1000;
	event->attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY |
					 PERF_SAMPLE_BRANCH_USER;
	event->hw.sample_period = 1000;
	event->hw.config = BRS_EVENT_TAKEN | ARCH_PERFMON_EVENTSEL_INT |
			   ARCH_PERFMON_EVENTSEL_USR |
			   ARCH_PERFMON_EVENTSEL_OS;
	event->hw.event_base = MSR_F15H_PERF_CTR;
	event->clock = ktime_get_mono_fast_ns;
	m->event = event;
	test->priv = m;

	kunit_activate_static_stub(test, brs_rdmsr, model_rdmsr);
	kunit_activate_static_stub(test, brs_wrmsr, model_wrmsr);
	return 0;
}

/* Reading the buffer */

static void b5_stack_is_newest_first(struct kunit *test)
{
	struct brs_model *m = test->priv;
	int i;

	model_arm(m);
	model_chain(m, USER_IP, BRS_DEPTH);
	KUNIT_EXPECT_TRUE(test, brs_cfg_full(m->cfg));
	brs_read(m->br);

	for (i = 0; i < BRS_DEPTH; i++) {
		u64 from = USER_IP + 0x20 * (BRS_DEPTH - 1 - i);

		KUNIT_EXPECT_EQ(test, m->br[i].from, from);
		KUNIT_EXPECT_EQ(test, m->br[i].to, from + 0x10);
	}
}

static void b5_flags_are_zero(struct kunit *test)
{
	struct brs_model *m = test->priv;
	struct perf_branch_entry *br = m->br;
	int i;

	memset(br, 0xff, sizeof(m->br));
	brs_read(br);

	for (i = 0; i < BRS_DEPTH; i++) {
		size_t len = sizeof(br[i]) - offsetofend(typeof(br[i]), to);

		KUNIT_EXPECT_NULL(test, memchr_inv(&br[i].to + 1, 0, len));
	}
}

static void b5_target_is_sign_extended(struct kunit *test)
{
	struct brs_model *m = test->priv;

	model_arm(m);
	model_chain(m, KERNEL_IP, BRS_DEPTH);
	KUNIT_EXPECT_LT(test, m->to[0], KERNEL_IP);
	brs_read(m->br);

	KUNIT_EXPECT_EQ(test, m->br[BRS_DEPTH - 1].from, KERNEL_IP);
	KUNIT_EXPECT_EQ(test, m->br[BRS_DEPTH - 1].to, KERNEL_IP + 0x10);
}

static void b5_full_buffer_is_complete(struct kunit *test)
{
	struct brs_model *m = test->priv;
	int n;

	for (n = 0; n <= BRS_DEPTH; n++) {
		model_arm(m);
		model_chain(m, USER_IP, n);
		KUNIT_EXPECT_EQ_MSG(test, brs_cfg_full(m->cfg), n == BRS_DEPTH,
				    "%d branches", n);
	}
}

static void b5_buffer_saturates(struct kunit *test)
{
	struct brs_model *m = test->priv;

	model_arm(m);
	model_chain(m, USER_IP, BRS_DEPTH + 3);
	KUNIT_EXPECT_TRUE(test, brs_cfg_full(m->cfg));
	brs_read(m->br);
	KUNIT_EXPECT_EQ(test, m->br[0].from, USER_IP + 0x20 * (BRS_DEPTH - 1));
}

static void b5_capture_is_told_only_once(struct kunit *test)
{
	struct brs_model *m = test->priv;

	model_arm(m);
	model_chain(m, USER_IP, BRS_DEPTH);
	KUNIT_EXPECT_TRUE(test, brs_cfg_full(m->cfg));

	/* What is in the MSRs then is old */
	model_arm(m);
	KUNIT_EXPECT_FALSE(test, brs_cfg_full(m->cfg));
}

static void b5_nothing_is_told_of_what_software_stopped(struct kunit *test)
{
	struct brs_model *m = test->priv;

	model_arm(m);
	model_chain(m, USER_IP, BRS_DEPTH - 1);
	brs_wrmsr(MSR_AMD_DBG_EXTN_CFG, BRS_CFG_OFF);
	KUNIT_EXPECT_FALSE(test, brs_cfg_full(m->cfg));
}

/* Privilege and branch type */

struct brs_privilege_case {
	const char	*name;
	u64		from, to;
	bool		user, kernel, both;
};

static const struct brs_privilege_case brs_privilege_cases[] = {
	{ "user to user", USER_IP, USER_IP + 8, true, false, true },
	{ "kernel to kernel", KERNEL_IP, KERNEL_IP + 8, false, true, true },
	{ "user to kernel", USER_IP, KERNEL_IP, false, false, true },
	{ "kernel to user", KERNEL_IP, USER_IP, false, false, true },
};

KUNIT_ARRAY_PARAM_DESC(brs_privilege, brs_privilege_cases, name);

static void b7_filter_looks_at_both_ends(struct kunit *test)
{
	const struct brs_privilege_case *c = test->param_value;
	struct perf_branch_entry br = { .from = c->from, .to = c->to };

	KUNIT_EXPECT_EQ(test, brs_filter(&br, 1, X86_BR_ANY | X86_BR_USER),
			c->user);
	KUNIT_EXPECT_EQ(test, brs_filter(&br, 1, X86_BR_ANY | X86_BR_KERNEL),
			c->kernel);
	KUNIT_EXPECT_EQ(test, brs_filter(&br, 1, X86_BR_ANY | X86_BR_PLM),
			c->both);
}

static void b7_filter_keeps_the_order(struct kunit *test)
{
	struct brs_model *m = test->priv;
	unsigned int i, nr;

	fill(m->br, USER_IP);
	for (i = 0; i < BRS_DEPTH; i += 2)
		m->br[i].to = KERNEL_IP;

	nr = brs_filter(m->br, BRS_DEPTH, X86_BR_ANY | X86_BR_USER);
	KUNIT_EXPECT_EQ(test, nr, BRS_DEPTH / 2);
	for (i = 1; i < nr; i++)
		KUNIT_EXPECT_LT(test, m->br[i].from, m->br[i - 1].from);
}

static void b7_privilege_is_saved_on_request(struct kunit *test)
{
	struct perf_branch_entry br[2] = {
		{ .from = USER_IP, .to = KERNEL_IP },
		{ .from = KERNEL_IP, .to = USER_IP },
	};

	brs_filter(br, 2, X86_BR_ANY | X86_BR_PLM);
	KUNIT_EXPECT_EQ(test, (int)br[0].priv, PERF_BR_PRIV_UNKNOWN);

	brs_filter(br, 2, X86_BR_ANY | X86_BR_PLM | BRS_SEL_PRIV_SAVE);
	KUNIT_EXPECT_EQ(test, (int)br[0].priv, PERF_BR_PRIV_KERNEL);
	KUNIT_EXPECT_EQ(test, (int)br[1].priv, PERF_BR_PRIV_USER);
}

static void b7_filter_of_the_same_levels_fits(struct kunit *test)
{
	struct brs_model *m = test->priv;
	u64 any = X86_BR_ANY;

	KUNIT_EXPECT_TRUE(test, brs_filter_fits(m->event, any | X86_BR_PLM));
	KUNIT_EXPECT_FALSE(test, brs_filter_fits(m->event, any | X86_BR_USER));
	KUNIT_EXPECT_FALSE(test, brs_filter_fits(m->event, X86_BR_JCC | X86_BR_PLM));

	m->event->hw.config &= ~ARCH_PERFMON_EVENTSEL_OS;
	KUNIT_EXPECT_TRUE(test, brs_filter_fits(m->event, any | X86_BR_USER));
	KUNIT_EXPECT_FALSE(test, brs_filter_fits(m->event, any | X86_BR_KERNEL));
}

static void b12_types_are_decoded(struct kunit *test)
{
	unsigned long iret = (unsigned long)native_irq_return_iret;
	struct perf_branch_entry br = { .from = iret, .to = KERNEL_IP };
	u64 ret;

	KUNIT_EXPECT_EQ(test, brs_filter(&br, 1, X86_BR_KERNEL | X86_BR_JCC), 0);
	KUNIT_EXPECT_EQ(test, brs_parse_sample_type(PERF_SAMPLE_BRANCH_KERNEL |
						    PERF_SAMPLE_BRANCH_ANY_RETURN |
						    PERF_SAMPLE_BRANCH_TYPE_SAVE,
						    &ret), 0);
	KUNIT_EXPECT_EQ(test, brs_filter(&br, 1, ret), 1);
	KUNIT_EXPECT_EQ(test, (int)br.type, PERF_BR_ERET);
}

static void b12_what_cannot_be_decoded_is_no_certain_type(struct kunit *test)
{
	/* Data, not code */
	struct perf_branch_entry br = {
		.from = (unsigned long)&brs_privilege_cases, .to = KERNEL_IP
	};

	KUNIT_EXPECT_EQ(test, brs_filter(&br, 1, X86_BR_KERNEL | X86_BR_JCC), 0);
	KUNIT_EXPECT_EQ(test, brs_filter(&br, 1, X86_BR_KERNEL | X86_BR_ANY |
					 X86_BR_TYPE_SAVE), 1);
	KUNIT_EXPECT_EQ(test, (int)br.type, PERF_BR_UNKNOWN);
}

struct brs_type_case {
	const char	*name;
	u64		type;
	int		ret;
};

#define BRS_TYPE(_type, _ret)	{ #_type, PERF_SAMPLE_BRANCH_##_type, _ret }

static const struct brs_type_case brs_type_cases[] = {
	BRS_TYPE(ANY, 0),
	BRS_TYPE(ANY_CALL, 0),
	BRS_TYPE(ANY_RETURN, 0),
	BRS_TYPE(CALL, 0),
	BRS_TYPE(IND_CALL, 0),
	BRS_TYPE(IND_JUMP, 0),
	BRS_TYPE(COND, 0),
	BRS_TYPE(TYPE_SAVE, 0),
	BRS_TYPE(PRIV_SAVE, 0),
	BRS_TYPE(HW_INDEX, 0),
	BRS_TYPE(NO_FLAGS, 0),
	BRS_TYPE(NO_CYCLES, 0),
	BRS_TYPE(ABORT_TX, -EOPNOTSUPP),
	BRS_TYPE(IN_TX, -EOPNOTSUPP),
	BRS_TYPE(NO_TX, -EOPNOTSUPP),
	BRS_TYPE(CALL_STACK, -EOPNOTSUPP),
	BRS_TYPE(COUNTERS, -EOPNOTSUPP),
};

KUNIT_ARRAY_PARAM_DESC(brs_type, brs_type_cases, name);

static void b12_types_that_may_be_asked_for(struct kunit *test)
{
	const struct brs_type_case *c = test->param_value;
	u64 sel;

	KUNIT_EXPECT_EQ(test, brs_parse_sample_type(c->type |
						    PERF_SAMPLE_BRANCH_USER,
						    &sel), c->ret);
	KUNIT_EXPECT_TRUE(test, sel & X86_BR_USER);
	KUNIT_EXPECT_FALSE(test, sel & X86_BR_KERNEL);
}

static void b12_some_privilege_level_has_to_be_asked_for(struct kunit *test)
{
	u64 sel;

	KUNIT_EXPECT_EQ(test, brs_parse_sample_type(PERF_SAMPLE_BRANCH_ANY |
						    PERF_SAMPLE_BRANCH_HV,
						    &sel), -EOPNOTSUPP);
}

/* Which events there can be */

struct brs_attr_case {
	const char	*name;
	u64		period;
	bool		freq;
	int		ret;
};

static const struct brs_attr_case brs_attr_cases[] = {
	{ "counting", 0, false, -EINVAL },
	{ "period 1", 1, false, -EINVAL },
	{ "period 16", 16, false, -EINVAL },
	{ "period 17", 17, false, 0 },
	{ "period 2^62", 1ULL << 62, false, 0 },
	{ "frequency", 4000, true, -EINVAL },
};

KUNIT_ARRAY_PARAM_DESC(brs_attr, brs_attr_cases, name);

static void b3_period_is_fixed_and_above_the_depth(struct kunit *test)
{
	const struct brs_attr_case *c = test->param_value;
	struct brs_model *m = test->priv;

	m->event->attr.sample_period = c->period;
	m->event->attr.freq = c->freq;
	KUNIT_EXPECT_EQ(test, amd_brs_hw_config(m->event), c->ret);
	if (!c->ret)
		perf_idle_put();

	/* PERF_EVENT_IOC_PERIOD */
	KUNIT_EXPECT_EQ(test, brs_check_period(m->event, c->period), c->ret);
}

static void b3_other_events_have_any_period(struct kunit *test)
{
	struct brs_model *m = test->priv;

	m->event->attr.sample_type = 0;
	KUNIT_EXPECT_EQ(test, brs_check_period(m->event, 1), 0);
	m->event->attr.freq = 1;
	KUNIT_EXPECT_EQ(test, brs_check_period(m->event, 4000), 0);
}

static void b3_refused_filter_refuses_the_event(struct kunit *test)
{
	struct brs_model *m = test->priv;

	m->event->attr.branch_sample_type |= PERF_SAMPLE_BRANCH_CALL_STACK;
	KUNIT_EXPECT_EQ(test, amd_brs_hw_config(m->event), -EOPNOTSUPP);
	KUNIT_EXPECT_PTR_EQ(test, m->event->destroy, NULL);
}

static void b2_any_event_may_have_a_stack(struct kunit *test)
{
	static const u64 events[] = { 0x76, 0xc0, 0xc2, 0xc4, 0x10f0000ffULL };
	struct brs_model *m = test->priv;
	int i;

	for (i = 0; i < ARRAY_SIZE(events); i++) {
		m->event->hw.config = events[i] | ARCH_PERFMON_EVENTSEL_USR;
		KUNIT_EXPECT_EQ(test, amd_brs_hw_config(m->event), 0);
		perf_idle_put();
	}
}

static void b4_events_are_tied_to_one_counter(struct kunit *test)
{
	struct brs_model *m = test->priv;
	struct event_constraint *c = amd_brs_constraint(m->event);

	KUNIT_EXPECT_EQ(test, c->idxmsk64, BIT(BRS_PMC));
	KUNIT_EXPECT_EQ(test, c->weight, 1);
	KUNIT_EXPECT_FALSE(test, c->flags & PERF_X86_EVENT_PAIR);

	m->event->hw.flags |= PERF_X86_EVENT_PAIR;
	c = amd_brs_constraint(m->event);
	KUNIT_EXPECT_EQ(test, c->idxmsk64, BIT(BRS_PMC));
	KUNIT_EXPECT_EQ(test, c->weight, 1);
	KUNIT_EXPECT_TRUE(test, c->flags & PERF_X86_EVENT_PAIR);
}

static void b1_only_family_19h_with_the_feature(struct kunit *test)
{
	struct cpuinfo_x86 *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, c);

	c->x86 = 0x19;
	KUNIT_EXPECT_FALSE(test, brs_has(c));

	set_cpu_cap(c, X86_FEATURE_BRS);
	KUNIT_EXPECT_TRUE(test, brs_has(c));

	c->x86 = 0x17;
	KUNIT_EXPECT_FALSE(test, brs_has(c));
}

/* Periods */

/* Counter value after which there are @n events to its overflow */
static u64 model_to_go(struct brs_model *m)
{
	return -m->ctr & x86_pmu.cntval_mask;
}

static void b6_counter_is_set_to_the_period_less_16(struct kunit *test)
{
	static const u64 periods[] = { 17, 18, 100, 100003, 1ULL << 40 };
	struct brs_model *m = test->priv;
	int i;

	for (i = 0; i < ARRAY_SIZE(periods); i++) {
		KUNIT_EXPECT_EQ(test, brs_distance(periods[i]), periods[i] - 16);

		brs_set_counter(&m->brs, m->event, brs_distance(periods[i]),
				BRS_NR_EXITS);
		KUNIT_EXPECT_EQ(test, model_to_go(m), periods[i] - 16);
		KUNIT_EXPECT_EQ(test, local64_read(&m->event->hw.prev_count),
				-(s64)(periods[i] - 16));
	}
}

static void b6_counter_always_has_some_way_to_go(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, brs_distance(16), 1);
	KUNIT_EXPECT_EQ(test, brs_distance(1), 1);
	KUNIT_EXPECT_EQ(test, brs_distance(-1000), 1);
	KUNIT_EXPECT_LE(test, brs_distance(S64_MAX), (s64)x86_pmu.max_period);
}

static void b6_remainder_goes_into_the_next_period(struct kunit *test)
{
	struct brs_model *m = test->priv;
	struct hw_perf_event *hwc = &m->event->hw;
	s64 left;

	/* 10 of the 16 captured branches were counted: 6 too few */
	local64_set(&hwc->period_left, 6);
	left = brs_next_period(m->event);
	KUNIT_EXPECT_EQ(test, left, 1006);
	KUNIT_EXPECT_EQ(test, local64_read(&hwc->period_left), 1006);
	KUNIT_EXPECT_EQ(test, hwc->last_period, 1000);

	/* 3 too many */
	local64_set(&hwc->period_left, -3);
	KUNIT_EXPECT_EQ(test, brs_next_period(m->event), 997);

	/* More than one period late */
	local64_set(&hwc->period_left, -5000);
	KUNIT_EXPECT_EQ(test, brs_next_period(m->event), 1000);
}

static void b6_start_resumes_the_period(struct kunit *test)
{
	struct brs_model *m = test->priv;
	struct hw_perf_event *hwc = &m->event->hw;

	local64_set(&hwc->period_left, 500);
	brs_set_period(m->event);
	KUNIT_EXPECT_EQ(test, model_to_go(m), 484);

	/* As PERF_EVENT_IOC_PERIOD leaves it */
	local64_set(&hwc->period_left, 0);
	brs_set_period(m->event);
	KUNIT_EXPECT_EQ(test, model_to_go(m), 984);
	KUNIT_EXPECT_EQ(test, local64_read(&hwc->period_left), 1000);
}

static void b6_pairs_get_the_upper_half_set(struct kunit *test)
{
	struct brs_model *m = test->priv;

	m->event->hw.flags |= PERF_X86_EVENT_PAIR;
	brs_set_counter(&m->brs, m->event, 1000, BRS_NR_EXITS);
	KUNIT_EXPECT_EQ(test, m->ctr_high, 0xffff);
}

/* Captures that are taken again */

static void b11_retake_is_due_soon(struct kunit *test)
{
	struct brs_model *m = test->priv;
	struct hw_perf_event *hwc = &m->event->hw;

	local64_set(&hwc->period_left, 7);
	brs_retake(&m->brs, m->event, BRS_NR_EXITS);
	KUNIT_EXPECT_EQ(test, model_to_go(m), BRS_RETAKE_DISTANCE);
	KUNIT_EXPECT_EQ(test, local64_read(&hwc->period_left), 7);
}

static void b11_retake_survives_a_restart(struct kunit *test)
{
	struct brs_model *m = test->priv;
	struct hw_perf_event *hwc = &m->event->hw;

	/* Would be taken for the start of a period if it stayed 0 */
	local64_set(&hwc->period_left, 0);
	brs_retake(&m->brs, m->event, BRS_NR_EXITS);
	brs_set_period(m->event);
	KUNIT_EXPECT_EQ(test, model_to_go(m), 1);
}

static void b11_retakes_count_for_throttling(struct kunit *test)
{
	struct brs_model *m = test->priv;
	struct hw_perf_event *hwc = &m->event->hw;
	u64 limit = sysctl_perf_event_sample_rate / HZ + 2, n;

	local64_set(&hwc->period_left, 7);

	/* All within one tick */
	scoped_guard(irqsave) {
		for (n = 0; n < limit && hwc->interrupts != THROTTLED; n++)
			brs_retake(&m->brs, m->event, BRS_EXIT_KERNEL);
	}

	KUNIT_EXPECT_EQ(test, hwc->interrupts, THROTTLED);

	/* Nothing is allowed for an NMI's way out when it is let go again */
	m->brs.exit_len[BRS_EXIT_KERNEL] = 9;
	brs_throttle(&m->brs, m->event, 20);
	KUNIT_EXPECT_EQ(test, model_to_go(m), 20);
	KUNIT_EXPECT_EQ(test, m->brs.uncount, 0);
}

static void b11_other_nmi_is_seen(struct kunit *test)
{
	struct brs_model *m = test->priv;

	fill(m->br, KERNEL_IP);
	KUNIT_EXPECT_FALSE(test, brs_saw_nmi(m->br));
	m->br[3].to = (unsigned long)asm_exc_nmi;
	KUNIT_EXPECT_TRUE(test, brs_saw_nmi(m->br));

	/* From user mode, too. What is older has been interrupted. */
	m->br[3].from = USER_IP;
	KUNIT_EXPECT_TRUE(test, brs_saw_nmi(m->br));
	m->br[2].from = USER_IP;
	KUNIT_EXPECT_FALSE(test, brs_saw_nmi(m->br));
}

/* An NMI that returns to USER_IP by @n branches, the oldest of the capture */
static void add_exit(struct brs_model *m, unsigned int n)
{
	unsigned int i;

	for (i = BRS_DEPTH - n; i < BRS_DEPTH; i++) {
		m->br[i].from = KERNEL_IP;
		m->br[i].to = KERNEL_IP;
	}
	m->br[BRS_DEPTH - n].from = (unsigned long)native_irq_return_iret;
	m->br[BRS_DEPTH - n].to = USER_IP;

	m->brs.resume = BRS_EXIT_USER;
	m->brs.resume_ip = USER_IP;
}

static void b10_way_out_of_the_nmi_is_seen(struct kunit *test)
{
	struct brs_model *m = test->priv;
	unsigned int n;

	for (n = 1; n <= BRS_DEPTH; n++) {
		fill(m->br, USER_IP);
		add_exit(m, n);
		KUNIT_EXPECT_EQ(test, brs_exit_branches(&m->brs, m->event, m->br), n);
	}
}

static void b10_other_returns_are_not_the_way_out(struct kunit *test)
{
	struct brs_model *m = test->priv;

	fill(m->br, USER_IP);
	KUNIT_EXPECT_EQ(test, brs_exit_branches(&m->brs, m->event, m->br), 0);

	/* To somewhere else */
	add_exit(m, 4);
	m->brs.resume_ip = USER_IP + 1;
	KUNIT_EXPECT_EQ(test, brs_exit_branches(&m->brs, m->event, m->br), 0);

	/* By a jump */
	m->brs.resume_ip = USER_IP;
	m->br[BRS_DEPTH - 4].from = KERNEL_IP;
	KUNIT_EXPECT_EQ(test, brs_exit_branches(&m->brs, m->event, m->br), 0);

	/* When user space was already running */
	fill(m->br, USER_IP);
	add_exit(m, 4);
	m->br[BRS_DEPTH - 1].from = USER_IP;
	KUNIT_EXPECT_EQ(test, brs_exit_branches(&m->brs, m->event, m->br), 0);

	/* Too far from the last NMI: another interrupt's */
	fill(m->br, USER_IP);
	add_exit(m, 4);
	m->brs.distance = BRS_MAX_EXIT + 1;
	KUNIT_EXPECT_EQ(test, brs_exit_branches(&m->brs, m->event, m->br), 0);
	m->brs.distance = 0;
	KUNIT_EXPECT_EQ(test, brs_exit_branches(&m->brs, m->event, m->br), 4);

	/* When BRS was not armed by an NMI */
	m->brs.resume_ip = 0;
	KUNIT_EXPECT_EQ(test, brs_exit_branches(&m->brs, m->event, m->br), 0);
}

static void b10_length_of_the_way_out_is_allowed_for(struct kunit *test)
{
	struct brs_model *m = test->priv;

	/* 2 branches to the overflow, 5 more of the way out recorded */
	brs_set_counter(&m->brs, m->event, 2, BRS_EXIT_USER);
	KUNIT_EXPECT_EQ(test, model_to_go(m), 2);
	m->brs.resume = BRS_EXIT_USER;
	brs_learn_exit(&m->brs, m->event, 5);
	KUNIT_EXPECT_EQ(test, m->brs.uncount, 7);

	brs_set_counter(&m->brs, m->event, 2, BRS_EXIT_USER);
	KUNIT_EXPECT_EQ(test, model_to_go(m), 9);
	KUNIT_EXPECT_EQ(test, m->brs.uncount, 7);

	/* Not on the other way, nor when there is none */
	brs_set_counter(&m->brs, m->event, 2, BRS_EXIT_KERNEL);
	KUNIT_EXPECT_EQ(test, model_to_go(m), 2);
	brs_set_counter(&m->brs, m->event, 2, BRS_NR_EXITS);
	KUNIT_EXPECT_EQ(test, model_to_go(m), 2);
	KUNIT_EXPECT_EQ(test, m->brs.uncount, 0);

	/* Nor for an event that does not count there */
	m->event->hw.config &= ~ARCH_PERFMON_EVENTSEL_OS;
	brs_set_counter(&m->brs, m->event, 2, BRS_EXIT_USER);
	KUNIT_EXPECT_EQ(test, model_to_go(m), 2);
}

static void b10_other_events_keep_away_from_the_way_out(struct kunit *test)
{
	struct brs_model *m = test->priv;
	int i;

	m->event->hw.config = 0x76 | ARCH_PERFMON_EVENTSEL_OS;
	m->brs.resume = BRS_EXIT_KERNEL;

	for (i = 0; i < 3; i++) {
		brs_set_counter(&m->brs, m->event, 20, BRS_EXIT_KERNEL);
		KUNIT_EXPECT_EQ(test, model_to_go(m), 20 << i);
		KUNIT_EXPECT_EQ(test, m->brs.uncount, 0);
		brs_learn_exit(&m->brs, m->event, 3);
	}

	/* It is a lower limit */
	brs_set_counter(&m->brs, m->event, 100000, BRS_EXIT_KERNEL);
	KUNIT_EXPECT_EQ(test, model_to_go(m), 100000);

	for (i = 0; i < 100; i++) {
		brs_set_counter(&m->brs, m->event, 1, BRS_EXIT_KERNEL);
		brs_learn_exit(&m->brs, m->event, 3);
	}
	KUNIT_EXPECT_EQ(test, model_to_go(m), BRS_MAX_GUARD);
}

static void b10_near_overflow_is_kept_away_from_the_way_out(struct kunit *test)
{
	struct brs_model *m = test->priv;

	m->brs.exit_len[BRS_EXIT_USER] = 7;

	brs_keep_distance(&m->brs, m->event, -3ULL & x86_pmu.cntval_mask,
			  BRS_EXIT_USER);
	KUNIT_EXPECT_EQ(test, model_to_go(m), 10);
	KUNIT_EXPECT_EQ(test, m->brs.uncount, 7);

	/* Twice in the same period */
	brs_keep_distance(&m->brs, m->event, -3ULL & x86_pmu.cntval_mask,
			  BRS_EXIT_USER);
	KUNIT_EXPECT_EQ(test, model_to_go(m), 10);
	KUNIT_EXPECT_EQ(test, m->brs.uncount, 14);

	m->ctr = 0;
	brs_keep_distance(&m->brs, m->event, -1000ULL & x86_pmu.cntval_mask,
			  BRS_EXIT_USER);
	KUNIT_EXPECT_EQ(test, m->ctr, 0);
}

static void b9_handler_is_not_counted(struct kunit *test)
{
	struct brs_model *m = test->priv;

	local64_set(&m->event->count, 1000);
	local64_set(&m->event->hw.period_left, -40);
	brs_uncount(m->event, 40);
	KUNIT_EXPECT_EQ(test, local64_read(&m->event->count), 960);
	KUNIT_EXPECT_EQ(test, local64_read(&m->event->hw.period_left), 0);
}

static void b9_running_counter_is_set_at_the_end_of_the_nmi(struct kunit *test)
{
	struct brs_model *m = test->priv;

	m->ctr = 5;
	m->brs.nmi = true;
	m->brs.armed = true;
	m->brs.start_msr = BRS_PMC_CTR;
	brs_set_counter(&m->brs, m->event, 100, BRS_NR_EXITS);
	KUNIT_EXPECT_EQ(test, m->ctr, 5);
	KUNIT_EXPECT_EQ(test, m->brs.start_val, -100ULL & x86_pmu.cntval_mask);
	KUNIT_EXPECT_EQ(test, local64_read(&m->event->hw.prev_count), -100);

	/* Not if the event has been stopped, or the counter has */
	m->brs.armed = false;
	brs_set_counter(&m->brs, m->event, 100, BRS_NR_EXITS);
	KUNIT_EXPECT_EQ(test, model_to_go(m), 100);

	m->brs.armed = true;
	m->brs.start_msr = BRS_PMC_CTL;
	brs_set_counter(&m->brs, m->event, 200, BRS_NR_EXITS);
	KUNIT_EXPECT_EQ(test, model_to_go(m), 200);
}

static void b9_counted_are_branches_that_start_in_the_mode(struct kunit *test)
{
	struct brs_model *m = test->priv;

	fill(m->br, USER_IP);
	add_exit(m, 5);
	KUNIT_EXPECT_EQ(test, brs_counted(m->event, m->br), BRS_DEPTH);

	m->event->hw.config &= ~ARCH_PERFMON_EVENTSEL_USR;
	KUNIT_EXPECT_EQ(test, brs_counted(m->event, m->br), 5);
}

/* CPUs that come up, with what firmware or a kernel that crashed has left */
static void b15_cpu_starts_with_brs_off(struct kunit *test)
{
	struct brs_model *m = test->priv;

	model_arm(m);
	model_chain(m, USER_IP, 3);
	preempt_disable();
	amd_brs_reset();
	preempt_enable();
	KUNIT_EXPECT_EQ(test, m->cfg, BRS_CFG_OFF);
}

/* Registers of samples */

static void b8_saved_user_registers_are_told(struct kunit *test)
{
	struct pt_regs *user = task_pt_regs(current);
	struct pt_regs regs = { .cs = __KERNEL_CS };

	/* Deeper in the kernel */
	regs.sp = (unsigned long)user - 256;
	KUNIT_EXPECT_TRUE(test, brs_user_regs_saved(&regs, user));

	/* While they are being pushed */
	regs.sp = (unsigned long)&user->orig_ax;
	KUNIT_EXPECT_FALSE(test, brs_user_regs_saved(&regs, user));
	regs.sp = (unsigned long)(user + 1);
	KUNIT_EXPECT_FALSE(test, brs_user_regs_saved(&regs, user));

	/* Before the stack is switched */
	regs.sp = USER_IP;
	KUNIT_EXPECT_FALSE(test, brs_user_regs_saved(&regs, user));

	/* On another stack of the kernel, like that of interrupts */
	regs.sp = (unsigned long)(user + 1) + 65536;
	KUNIT_EXPECT_TRUE(test, brs_user_regs_saved(&regs, user));
}

static void b8_kernel_threads_have_no_user_registers(struct kunit *test)
{
	struct pt_regs copy, regs = { .cs = __KERNEL_CS };
	struct brs_model *m = test->priv;

	if (!(current->flags & PF_KTHREAD))
		kunit_skip(test, "not run by a kernel thread");

	fill(m->br, USER_IP);
	KUNIT_EXPECT_PTR_EQ(test, brs_user_regs(&regs, &copy, m->br), NULL);
}

/* What there is when the driver is not built */
#undef CONFIG_PERF_EVENTS_AMD_BRS
#undef _AMD_BRS_H
#define amd_brs_init		off_init
#define amd_brs_hw_config	off_hw_config
#define amd_brs_constraint	off_constraint
#define amd_brs_reset		off_reset
#define amd_brs_add		off_add
#define amd_brs_del		off_del
#define amd_brs_enable		off_enable
#define amd_brs_disarm		off_disarm
#define amd_brs_disable		off_disable
#define amd_brs_active		off_active
#define amd_brs_handle_irq	off_handle_irq
#include "brs.h"

static void b1_nothing_is_active_without_the_driver(struct kunit *test)
{
	struct brs_model *m = test->priv;

	KUNIT_EXPECT_EQ(test, off_init(), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, off_hw_config(m->event), -EOPNOTSUPP);
	KUNIT_EXPECT_FALSE(test, off_active());
	KUNIT_EXPECT_EQ(test, off_handle_irq(NULL), 0);
	KUNIT_EXPECT_PTR_EQ(test, off_constraint(m->event), NULL);

	off_reset();
	off_add(m->event);
	off_del(m->event);
	off_enable(m->event);
	off_disarm();
	off_disable();
	KUNIT_EXPECT_EQ(test, m->cfg_writes, 0);
}

static struct kunit_case brs_test_cases[] = {
	KUNIT_CASE(b1_only_family_19h_with_the_feature),
	KUNIT_CASE(b1_nothing_is_active_without_the_driver),
	KUNIT_CASE(b2_any_event_may_have_a_stack),
	KUNIT_CASE_PARAM(b3_period_is_fixed_and_above_the_depth,
			 brs_attr_gen_params),
	KUNIT_CASE(b3_other_events_have_any_period),
	KUNIT_CASE(b3_refused_filter_refuses_the_event),
	KUNIT_CASE(b4_events_are_tied_to_one_counter),
	KUNIT_CASE(b5_stack_is_newest_first),
	KUNIT_CASE(b5_flags_are_zero),
	KUNIT_CASE(b5_target_is_sign_extended),
	KUNIT_CASE(b5_full_buffer_is_complete),
	KUNIT_CASE(b5_buffer_saturates),
	KUNIT_CASE(b5_capture_is_told_only_once),
	KUNIT_CASE(b5_nothing_is_told_of_what_software_stopped),
	KUNIT_CASE(b6_counter_is_set_to_the_period_less_16),
	KUNIT_CASE(b6_counter_always_has_some_way_to_go),
	KUNIT_CASE(b6_remainder_goes_into_the_next_period),
	KUNIT_CASE(b6_start_resumes_the_period),
	KUNIT_CASE(b6_pairs_get_the_upper_half_set),
	KUNIT_CASE_PARAM(b7_filter_looks_at_both_ends, brs_privilege_gen_params),
	KUNIT_CASE(b7_filter_keeps_the_order),
	KUNIT_CASE(b7_privilege_is_saved_on_request),
	KUNIT_CASE(b7_filter_of_the_same_levels_fits),
	KUNIT_CASE(b8_saved_user_registers_are_told),
	KUNIT_CASE(b8_kernel_threads_have_no_user_registers),
	KUNIT_CASE(b9_handler_is_not_counted),
	KUNIT_CASE(b9_running_counter_is_set_at_the_end_of_the_nmi),
	KUNIT_CASE(b9_counted_are_branches_that_start_in_the_mode),
	KUNIT_CASE(b10_way_out_of_the_nmi_is_seen),
	KUNIT_CASE(b10_other_returns_are_not_the_way_out),
	KUNIT_CASE(b10_length_of_the_way_out_is_allowed_for),
	KUNIT_CASE(b10_other_events_keep_away_from_the_way_out),
	KUNIT_CASE(b10_near_overflow_is_kept_away_from_the_way_out),
	KUNIT_CASE(b11_retake_is_due_soon),
	KUNIT_CASE(b11_retake_survives_a_restart),
	KUNIT_CASE(b11_retakes_count_for_throttling),
	KUNIT_CASE(b11_other_nmi_is_seen),
	KUNIT_CASE(b12_types_are_decoded),
	KUNIT_CASE(b12_what_cannot_be_decoded_is_no_certain_type),
	KUNIT_CASE_PARAM(b12_types_that_may_be_asked_for, brs_type_gen_params),
	KUNIT_CASE(b12_some_privilege_level_has_to_be_asked_for),
	KUNIT_CASE(b15_cpu_starts_with_brs_off),
	{}
};

static struct kunit_suite brs_test_suite = {
	.name		= "amd_brs",
	.init		= brs_test_init,
	.test_cases	= brs_test_cases,
};

kunit_test_suite(brs_test_suite);
