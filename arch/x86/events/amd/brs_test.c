// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests for AMD Family 19h Branch Sampling, included by brs.c
 *
 * The tests use modelled registers instead of the processor's registers, so that
 * they run on any processor.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

/* The IRET instruction of the entry code, for a test that decodes an IRET */
extern u8 native_irq_return_iret[];

#define USER_IP		0x401000UL
#define KERNEL_IP	0xffffffff81000000UL

struct brs_model {
	u64			cfg;
	u64			from[BRS_DEPTH];
	u64			to[BRS_DEPTH];
	unsigned int		next;
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

	if (msr == MSR_F15H_PERF_CTR)
		return m->ctr;

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
	case BRS_TO(0) ... BRS_TO(BRS_DEPTH - 1):
		m->to[(msr - BRS_TO(0)) / 2] = val;
		break;
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

/* Record a branch in the modelled buffer as the hardware does, unless it is full */
static void model_branch(struct brs_model *m, u64 from, u64 to)
{
	if (m->next == BRS_DEPTH)
		return;

	/*
	 * SAMP_BR_TO contains only the implemented bits of a virtual address:
	 * no sign extension
	 */
	m->from[m->next] = from;
	m->to[m->next] = to & GENMASK_ULL(boot_cpu_data.x86_virt_bits - 1, 0);
	m->next++;
}

/* Record @n branches, all at different addresses */
static void model_chain(struct brs_model *m, u64 base, int n)
{
	int i;

	for (i = 0; i < n; i++)
		model_branch(m, base + 0x20 * i, base + 0x20 * i + 0x10);
}

/* Arm the modelled BRS as brs_arm() does: the buffer keeps entries of earlier captures */
static void model_arm(struct brs_model *m)
{
	int i = m->brs.failed < BRS_FALLBACK ? BRS_DEPTH - 1 : 1;

	m->to[0] = BRS_TO_EMPTY;
	for (; i < BRS_DEPTH; i++)
		m->to[i] = BRS_TO_EMPTY;
	m->next = 0;
}

/* Make a full stack of branches near @base, newest first as brs_read() does */
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

/* Tests of reading the branch buffer */

static void b5_stack_is_newest_first(struct kunit *test)
{
	struct brs_model *m = test->priv;
	int i;

	model_arm(m);
	model_chain(m, USER_IP, BRS_DEPTH);
	KUNIT_EXPECT_EQ(test, brs_read(&m->brs, m->br), BRS_DEPTH);

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
	model_arm(m);
	model_chain(m, USER_IP, BRS_DEPTH);
	KUNIT_EXPECT_EQ(test, brs_read(&m->brs, br), BRS_DEPTH);

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
	brs_read(&m->brs, m->br);

	KUNIT_EXPECT_EQ(test, m->br[BRS_DEPTH - 1].from, KERNEL_IP);
	KUNIT_EXPECT_EQ(test, m->br[BRS_DEPTH - 1].to, KERNEL_IP + 0x10);
}

static void b5_nothing_is_told_of_a_buffer_that_is_not_full(struct kunit *test)
{
	struct brs_model *m = test->priv;
	int n;

	/* Record 16 branches, then 15, and so on: all other entries are from earlier captures */
	for (n = BRS_DEPTH; n >= 0; n--) {
		model_arm(m);
		model_chain(m, USER_IP, n);
		KUNIT_EXPECT_EQ_MSG(test, brs_read(&m->brs, m->br),
				    n == BRS_DEPTH ? BRS_DEPTH : 0, "%d branches", n);
	}
}

/* Check that nothing is told of entries from before the switch to another task */
static void b14_capture_that_goes_on_is_not_full(struct kunit *test)
{
	struct brs_model *m = test->priv;
	int n;

	for (n = 1; n < BRS_DEPTH; n++) {
		model_arm(m);
		model_chain(m, USER_IP, n);
		model_arm(m);
		/* The hardware ignores that MSROFF is written as 0 */
		m->next = n;
		model_chain(m, USER_IP, BRS_DEPTH);
		KUNIT_EXPECT_LT_MSG(test, brs_read(&m->brs, m->br), BRS_DEPTH, "%d branches", n);
	}
}

static void b19_fallback_tells_what_was_recorded(struct kunit *test)
{
	struct brs_model *m = test->priv;
	int n;

	m->brs.failed = BRS_FALLBACK;
	for (n = BRS_DEPTH; n >= 0; n--) {
		model_arm(m);
		model_chain(m, USER_IP, n);
		KUNIT_EXPECT_EQ(test, brs_read(&m->brs, m->br), n);
		if (n)
			KUNIT_EXPECT_EQ(test, m->br[0].from, USER_IP + 0x20 * (n - 1));
	}
}

static void b10_branches_of_an_nmi_are_seen(struct kunit *test)
{
	u64 entry = (unsigned long)asm_exc_nmi;
	struct brs_model *m = test->priv;
	struct {
		u64	from, to;
		bool	nmi;
	} jumps[] = {
		{ USER_IP, entry, true },
		{ KERNEL_IP, entry, true },
		{ entry + 4, KERNEL_IP, true },
		{ KERNEL_IP, (unsigned long)asm_exc_nmi_end - 2, true },
		{ KERNEL_IP, (unsigned long)asm_exc_nmi_end, false },
		{ KERNEL_IP, USER_IP + 1, true },	/* return of an NMI to user_ip */
		{ KERNEL_IP, USER_IP + 2, false },
		{ USER_IP, USER_IP + 1, false },
	};
	int i, n, after;

	m->brs.user_ip = USER_IP + 1;
	for (i = 0; i < ARRAY_SIZE(jumps); i++) {
		model_arm(m);
		model_chain(m, KERNEL_IP, 5);
		model_branch(m, jumps[i].from, jumps[i].to);
		model_chain(m, KERNEL_IP, BRS_DEPTH);
		KUNIT_EXPECT_EQ_MSG(test, brs_read(&m->brs, m->br),
				    jumps[i].nmi ? 0 : BRS_DEPTH, "case %d", i);
	}

	/* In fallback, brs_read() returns all branches before the NMI, however few */
	m->brs.failed = BRS_FALLBACK;
	for (i = 0; i < ARRAY_SIZE(jumps); i++) {
		for (after = 3; after <= BRS_DEPTH; after += BRS_DEPTH - 3) {
			model_arm(m);
			model_chain(m, KERNEL_IP, 5);
			model_branch(m, jumps[i].from, jumps[i].to);
			model_chain(m, KERNEL_IP, after);
			n = brs_read(&m->brs, m->br);
			KUNIT_EXPECT_EQ_MSG(test, n, jumps[i].nmi ? 5 :
					    min(6 + after, BRS_DEPTH), "case %d", i);
		}
	}
}

/* Tests of the filters for privilege levels and for types of branches */

struct brs_privilege_case {
	const char	*name;
	u64		from, to;
	bool		user, kernel;
};

static const struct brs_privilege_case brs_privilege_cases[] = {
	{ "user to user", USER_IP, USER_IP + 8, true, false },
	{ "kernel to kernel", KERNEL_IP, KERNEL_IP + 8, false, true },
	{ "user to kernel", USER_IP, KERNEL_IP, false, true },
	{ "kernel to user", KERNEL_IP, USER_IP, false, false },
};

KUNIT_ARRAY_PARAM_DESC(brs_privilege, brs_privilege_cases, name);

static void b7_target_decides_and_user_events_see_no_kernel(struct kunit *test)
{
	const struct brs_privilege_case *c = test->param_value;
	struct perf_branch_entry br = { .from = c->from, .to = c->to };

	KUNIT_EXPECT_EQ(test, brs_filter(&br, 1, X86_BR_ANY | X86_BR_USER),
			c->user);
	KUNIT_EXPECT_EQ(test, brs_filter(&br, 1, X86_BR_ANY | X86_BR_KERNEL),
			c->kernel);
	KUNIT_EXPECT_EQ(test, brs_filter(&br, 1, X86_BR_ANY | X86_BR_PLM), 1);
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
	/* The address of this branch is in data and contains no branch instruction */
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

/* Tests of the rules for opening a BRS event */

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

	/* PERF_EVENT_IOC_PERIOD calls brs_check_period() */
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

/* Tests of the sampling period */

/* Return the number of events until the modelled counter overflows */
static u64 model_to_go(struct brs_model *m)
{
	return -m->ctr & x86_pmu.cntval_mask;
}

static void b6_counter_is_set_to_the_period_less_16(struct kunit *test)
{
	static const struct {
		s64	left, min, distance;
	} cases[] = {
		{ 17, 1, 1 }, { 18, 1, 2 }, { 100, 1, 84 }, { 100, 64, 84 },
		{ 100003, 1, 99987 }, { 1LL << 40, 64, (1LL << 40) - 16 },
		/* the distance to the overflow must be at least min */
		{ 16, 1, 1 }, { -1000, 1, 1 }, { 70, 64, 64 }, { -1000, 64, 64 },
	};
	struct brs_model *m = test->priv;
	struct hw_perf_event *hwc = &m->event->hw;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		local64_set(&hwc->period_left, cases[i].left);
		brs_set_counter(m->event, cases[i].min);
		KUNIT_EXPECT_EQ(test, model_to_go(m), cases[i].distance);
		KUNIT_EXPECT_EQ(test, local64_read(&hwc->prev_count), -cases[i].distance);
	}

	local64_set(&hwc->period_left, S64_MAX);
	brs_set_counter(m->event, 1);
	KUNIT_EXPECT_LE(test, model_to_go(m), x86_pmu.max_period);
}

static void b6_start_resumes_the_period(struct kunit *test)
{
	struct brs_model *m = test->priv;
	struct hw_perf_event *hwc = &m->event->hw;

	local64_set(&hwc->period_left, 500);
	brs_set_period(m->event);
	KUNIT_EXPECT_EQ(test, model_to_go(m), 484);

	/* PERF_EVENT_IOC_PERIOD sets period_left to 0: a new period begins */
	local64_set(&hwc->period_left, 0);
	brs_set_period(m->event);
	KUNIT_EXPECT_EQ(test, model_to_go(m), 984);
	KUNIT_EXPECT_EQ(test, local64_read(&hwc->period_left), 1000);
}

static void b6_pairs_get_the_upper_half_set(struct kunit *test)
{
	struct brs_model *m = test->priv;

	m->event->hw.flags |= PERF_X86_EVENT_PAIR;
	brs_set_counter(m->event, 1);
	KUNIT_EXPECT_EQ(test, m->ctr_high, 0xffff);
}

/* Tests of captures that are given up */

static void b11_sample_stays_due(struct kunit *test)
{
	struct brs_model *m = test->priv;
	struct hw_perf_event *hwc = &m->event->hw;

	local64_set(&hwc->period_left, 7);
	brs_give_up(&m->brs, m->event);
	KUNIT_EXPECT_EQ(test, model_to_go(m), BRS_NMI_BRANCHES);
	KUNIT_EXPECT_EQ(test, local64_read(&hwc->period_left), 7);

	/* If period_left stayed 0, brs_set_period() would begin a new period */
	local64_set(&hwc->period_left, 0);
	brs_give_up(&m->brs, m->event);
	brs_set_period(m->event);
	KUNIT_EXPECT_EQ(test, model_to_go(m), 1);
	KUNIT_EXPECT_EQ(test, m->brs.given_up, 2);
}

static void b11_failures_in_a_row_move_apart(struct kunit *test)
{
	struct brs_model *m = test->priv;
	u64 last = 0;

	local64_set(&m->event->hw.period_left, 7);
	for (m->brs.failed = 0; m->brs.failed <= 8; m->brs.failed++) {
		brs_give_up(&m->brs, m->event);
		KUNIT_EXPECT_GT(test, model_to_go(m), last);
		last = model_to_go(m);
	}

	m->brs.failed = BRS_FALLBACK;
	brs_give_up(&m->brs, m->event);
	KUNIT_EXPECT_EQ(test, model_to_go(m), last);
}

static void b9_counted_are_branches_that_start_in_the_mode(struct kunit *test)
{
	struct brs_model *m = test->priv;
	int i;

	fill(m->br, USER_IP);
	for (i = 0; i < 5; i++)
		m->br[i].from = KERNEL_IP;
	KUNIT_EXPECT_EQ(test, brs_counted(m->event, m->br, BRS_DEPTH), BRS_DEPTH);

	m->event->hw.config &= ~ARCH_PERFMON_EVENTSEL_USR;
	KUNIT_EXPECT_EQ(test, brs_counted(m->event, m->br, BRS_DEPTH), 5);
}

/* Check that an overflow is found while its interrupt is still to come */
static void b19_lost_interrupt_is_found(struct kunit *test)
{
	struct brs_model *m = test->priv;

	local64_set(&m->event->hw.period_left, 1000);
	brs_set_counter(m->event, 1);
	KUNIT_EXPECT_FALSE(test, brs_overflow_pending(m->event));

	m->ctr = x86_pmu.cntval_mask;
	KUNIT_EXPECT_FALSE(test, brs_overflow_pending(m->event));

	m->ctr = 0;
	KUNIT_EXPECT_TRUE(test, brs_overflow_pending(m->event));

	/* Let the counter continue to count for a long time after the overflow */
	m->ctr = 1000000000;
	KUNIT_EXPECT_TRUE(test, brs_overflow_pending(m->event));

	brs_give_up(&m->brs, m->event);
	KUNIT_EXPECT_FALSE(test, brs_overflow_pending(m->event));
}

/* Check that closing one event does not patch the whole kernel's code at once */
static void b13_last_close_leaves_the_hooks_for_a_while(struct kunit *test)
{
	perf_idle_get();
	KUNIT_EXPECT_TRUE(test, static_key_enabled(&perf_idle_key));
	perf_idle_put();
	/* A worker that has nothing to wait for runs within this time */
	msleep(100);
	KUNIT_EXPECT_TRUE(test, static_key_enabled(&perf_idle_key));
}

/* Check that a CPU turns BRS off when it comes online: a crashed kernel can leave BRS on */
static void b15_cpu_starts_with_brs_off(struct kunit *test)
{
	struct brs_model *m = test->priv;

	m->cfg = BRS_CFG_ARMED;
	preempt_disable();
	amd_brs_reset();
	preempt_enable();
	KUNIT_EXPECT_EQ(test, m->cfg, BRS_CFG_OFF);
}

/* Tests of the user registers in samples */

static void b8_saved_user_registers_are_told(struct kunit *test)
{
	struct pt_regs *user = task_pt_regs(current);
	struct pt_regs regs = { .cs = __KERNEL_CS };

	/* Let the stack pointer be that of kernel code that runs after the entry code */
	regs.sp = (unsigned long)user - 256;
	KUNIT_EXPECT_TRUE(test, brs_user_regs_saved(&regs, user));

	/* Let the entry code be still pushing the user's registers */
	regs.sp = (unsigned long)&user->orig_ax;
	KUNIT_EXPECT_FALSE(test, brs_user_regs_saved(&regs, user));
	regs.sp = (unsigned long)(user + 1);
	KUNIT_EXPECT_FALSE(test, brs_user_regs_saved(&regs, user));

	/* Let the entry code not have switched to the kernel's stack yet */
	regs.sp = USER_IP;
	KUNIT_EXPECT_FALSE(test, brs_user_regs_saved(&regs, user));

	/* Let kernel code run on another stack, such as the interrupt stack */
	regs.sp = (unsigned long)(user + 1) + 65536;
	KUNIT_EXPECT_TRUE(test, brs_user_regs_saved(&regs, user));
}

static void b8_kernel_threads_have_no_user_registers(struct kunit *test)
{
	struct pt_regs regs = { .cs = __KERNEL_CS };

	if (!(current->flags & PF_KTHREAD))
		kunit_skip(test, "not run by a kernel thread");

	KUNIT_EXPECT_PTR_EQ(test, brs_user_regs(&regs), NULL);
}

/* Include brs.h as for a kernel without the driver, with other function names */
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
	KUNIT_EXPECT_TRUE(test, off_enable(m->event));
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
	KUNIT_CASE(b5_nothing_is_told_of_a_buffer_that_is_not_full),
	KUNIT_CASE(b6_start_resumes_the_period),
	KUNIT_CASE(b6_pairs_get_the_upper_half_set),
	KUNIT_CASE(b6_counter_is_set_to_the_period_less_16),
	KUNIT_CASE_PARAM(b7_target_decides_and_user_events_see_no_kernel,
			 brs_privilege_gen_params),
	KUNIT_CASE(b7_filter_keeps_the_order),
	KUNIT_CASE(b7_privilege_is_saved_on_request),
	KUNIT_CASE(b8_saved_user_registers_are_told),
	KUNIT_CASE(b8_kernel_threads_have_no_user_registers),
	KUNIT_CASE(b9_counted_are_branches_that_start_in_the_mode),
	KUNIT_CASE(b10_branches_of_an_nmi_are_seen),
	KUNIT_CASE(b11_sample_stays_due),
	KUNIT_CASE(b11_failures_in_a_row_move_apart),
	KUNIT_CASE(b12_types_are_decoded),
	KUNIT_CASE(b12_what_cannot_be_decoded_is_no_certain_type),
	KUNIT_CASE_PARAM(b12_types_that_may_be_asked_for, brs_type_gen_params),
	KUNIT_CASE(b12_some_privilege_level_has_to_be_asked_for),
	KUNIT_CASE(b13_last_close_leaves_the_hooks_for_a_while),
	KUNIT_CASE(b15_cpu_starts_with_brs_off),
	KUNIT_CASE(b14_capture_that_goes_on_is_not_full),
	KUNIT_CASE(b19_fallback_tells_what_was_recorded),
	KUNIT_CASE(b19_lost_interrupt_is_found),
	{}
};

static struct kunit_suite brs_test_suite = {
	.name		= "amd_brs",
	.init		= brs_test_init,
	.test_cases	= brs_test_cases,
};

kunit_test_suite(brs_test_suite);
