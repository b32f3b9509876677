// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the behaviour B12: the kernel decodes branches to find their types,
 * filters branch stacks by type, and saves the types with the samples.
 */
#define _GNU_SOURCE
#include <unistd.h>

#include "brs_test.h"

BRS_WITHOUT_LIMITS

#define TYPE(t)	(1U << PERF_BR_##t)

FIXTURE(filter)
{
};

FIXTURE_VARIANT(filter)
{
	__u64 branches;		/* the filter: PERF_SAMPLE_BRANCH_* flags */
	unsigned int types;	/* bit mask of the branch types that the filter keeps */
	unsigned int entries;	/* how many of 16 branches of brs_mix() the filter keeps */
};

FIXTURE_VARIANT_ADD(filter, any_call) {
	.branches = PERF_SAMPLE_BRANCH_ANY_CALL, .types = TYPE(CALL) | TYPE(IND_CALL), .entries = 4,
};

FIXTURE_VARIANT_ADD(filter, call) {
	.branches = PERF_SAMPLE_BRANCH_CALL, .types = TYPE(CALL), .entries = 2,
};

FIXTURE_VARIANT_ADD(filter, ind_call) {
	.branches = PERF_SAMPLE_BRANCH_IND_CALL, .types = TYPE(IND_CALL), .entries = 2,
};

FIXTURE_VARIANT_ADD(filter, any_ret) {
	.branches = PERF_SAMPLE_BRANCH_ANY_RETURN, .types = TYPE(RET), .entries = 4,
};

FIXTURE_VARIANT_ADD(filter, cond) {
	.branches = PERF_SAMPLE_BRANCH_COND, .types = TYPE(COND), .entries = 4,
};

FIXTURE_VARIANT_ADD(filter, ind_jmp) {
	.branches = PERF_SAMPLE_BRANCH_IND_JUMP, .types = TYPE(IND), .entries = 2,
};

FIXTURE_VARIANT_ADD(filter, call_and_cond) {
	.branches = PERF_SAMPLE_BRANCH_CALL | PERF_SAMPLE_BRANCH_COND,
	.types = TYPE(CALL) | TYPE(COND), .entries = 6,
};

FIXTURE_VARIANT_ADD(filter, any) {
	.branches = PERF_SAMPLE_BRANCH_ANY,
	.types = TYPE(COND) | TYPE(UNCOND) | TYPE(IND) | TYPE(CALL) | TYPE(IND_CALL) | TYPE(RET),
	.entries = 16,
};

FIXTURE_SETUP(filter)
{
	REQUIRE_BRS();
}

FIXTURE_TEARDOWN(filter)
{
}

TEST_F(filter, b12_selects_by_type)
{
	struct perf_event_attr attr = brs_attr(2003);
	unsigned int samples = 0, complete = 0;
	struct brs_sample s;
	struct brs_event e;
	__u64 i;

	attr.exclude_kernel = 1;
	attr.branch_sample_type = variant->branches;
	ASSERT_EQ(0, brs_open(&e, &attr, 0, -1, 256));
	brs_start(&e);
	brs_mix(100000);
	brs_stop(&e);

	while (brs_next(&e, &s)) {
		for (i = 0; i < s.nr; i++) {
			int n = brs_mix_index(s.branch[i].from);

			if (n < 0)
				continue;
			EXPECT_TRUE(variant->types & 1U << brs_mix_branches[n].type);
			EXPECT_EQ(brs_mix_branches[n].to, s.branch[i].to);
		}
		samples++;
		complete += s.nr == variant->entries;
	}
	brs_close(&e);
	EXPECT_GT(samples, 350);
	EXPECT_GE(complete * 100, samples * 95);
}

TEST_F(filter, b12_saves_the_type)
{
	struct perf_event_attr attr = brs_attr(2003);
	unsigned int entries = 0;
	struct brs_sample s;
	struct brs_event e;
	__u64 i;

	attr.exclude_kernel = 1;
	attr.branch_sample_type = variant->branches | PERF_SAMPLE_BRANCH_TYPE_SAVE;
	ASSERT_EQ(0, brs_open(&e, &attr, 0, -1, 256));
	brs_start(&e);
	brs_mix(100000);
	brs_stop(&e);

	while (brs_next(&e, &s)) {
		for (i = 0; i < s.nr; i++) {
			int n = brs_mix_index(s.branch[i].from);

			if (n < 0)
				continue;
			EXPECT_EQ(brs_mix_branches[n].type, (__u64)s.branch[i].type);
			entries++;
		}
	}
	brs_close(&e);
	EXPECT_GE(entries, 350 * variant->entries);
}

/* Sample a loop of system calls, and count the saved types of branches in @types. */
static void count_types(struct __test_metadata *_metadata, __u64 branches,
			unsigned int *types)
{
	struct perf_event_attr attr = brs_attr(1009);
	struct brs_sample s;
	struct brs_event e;
	__u64 i;

	memset(types, 0, 16 * sizeof(*types));
	attr.branch_sample_type = branches | PERF_SAMPLE_BRANCH_TYPE_SAVE;
	ASSERT_EQ(0, brs_open(&e, &attr, 0, -1, 1024));
	brs_start(&e);
	brs_mixed_calls(20000);
	brs_stop(&e);
	while (brs_next(&e, &s)) {
		for (i = 0; i < s.nr; i++)
			types[s.branch[i].type]++;
	}
	brs_close(&e);
}

TEST(b12_system_calls_and_their_returns)
{
	unsigned int types[16];

	REQUIRE_BRS();
	REQUIRE_ROOT();
	count_types(_metadata, PERF_SAMPLE_BRANCH_ANY, types);
	EXPECT_GT(types[PERF_BR_SYSCALL], 10);
	EXPECT_GT(types[PERF_BR_SYSRET], 10);
	EXPECT_GT(types[PERF_BR_COND], 100);
	EXPECT_GT(types[PERF_BR_CALL], 100);
	EXPECT_GT(types[PERF_BR_RET], 100);
}

TEST(b12_any_call_has_system_calls_and_no_returns)
{
	unsigned int types[16];

	REQUIRE_BRS();
	REQUIRE_ROOT();
	count_types(_metadata, PERF_SAMPLE_BRANCH_ANY_CALL, types);
	EXPECT_GT(types[PERF_BR_SYSCALL], 10);
	EXPECT_EQ(0, types[PERF_BR_SYSRET]);
	EXPECT_EQ(0, types[PERF_BR_RET]);
	EXPECT_EQ(0, types[PERF_BR_COND]);
}

TEST(b12_any_return_has_system_returns_and_no_calls)
{
	unsigned int types[16];

	REQUIRE_BRS();
	REQUIRE_ROOT();
	count_types(_metadata, PERF_SAMPLE_BRANCH_ANY_RETURN, types);
	EXPECT_GT(types[PERF_BR_SYSRET], 10);
	EXPECT_GT(types[PERF_BR_RET], 100);
	EXPECT_EQ(0, types[PERF_BR_SYSCALL]);
	EXPECT_EQ(0, types[PERF_BR_CALL]);
}

TEST_HARNESS_MAIN
