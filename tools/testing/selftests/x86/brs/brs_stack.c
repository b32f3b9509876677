// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the behaviours B2, B5 and B6: the events that can have a branch stack,
 * the branches in a stack, and the number of stacks.
 */
#define _GNU_SOURCE
#include <unistd.h>

#include "brs_test.h"

BRS_WITHOUT_LIMITS

/* Codes of events that can have branch stacks, besides branch-brs */
#define CYCLES		0x76
#define INSTRUCTIONS	0xc0
#define BRANCHES	0xc2

static void no_user(struct perf_event_attr *attr)
{
	attr->exclude_user = 1;
}

static void no_kernel(struct perf_event_attr *attr)
{
	attr->exclude_kernel = 1;
}

/* Check that samples of brs_mix() by the event @config contain exact branch stacks. */
static void records_mix(struct __test_metadata *_metadata, __u64 config)
{
	struct perf_event_attr attr = brs_attr(20011);
	unsigned int samples = 0, inside = 0;
	struct brs_sample s;
	struct brs_event e;

	attr.config = config;
	no_kernel(&attr);
	ASSERT_EQ(0, brs_open(&e, &attr, 0, -1, 512));
	brs_start(&e);
	brs_mix(500000);
	brs_stop(&e);

	while (brs_next(&e, &s)) {
		int breaks = brs_mix_breaks(&s);

		samples++;
		EXPECT_LE(breaks, 0);
		inside += !breaks && s.nr == BRS_DEPTH;
	}
	brs_close(&e);
	EXPECT_GT(samples, 50);
	EXPECT_GE(inside * 100, samples * 90);
}

TEST(b2_cycles_may_have_a_stack)
{
	REQUIRE_BRS();
	records_mix(_metadata, CYCLES);
}

TEST(b2_instructions_may_have_a_stack)
{
	REQUIRE_BRS();
	records_mix(_metadata, INSTRUCTIONS);
}

TEST(b2_branches_may_have_a_stack)
{
	REQUIRE_BRS();
	records_mix(_metadata, BRANCHES);
}

TEST(b2_generic_event_may_have_a_stack)
{
	struct perf_event_attr attr = brs_attr(20011);
	int fd;

	REQUIRE_BRS();
	attr.type = PERF_TYPE_HARDWARE;
	attr.config = PERF_COUNT_HW_INSTRUCTIONS;
	fd = brs_try(&attr, 0, -1, -1);
	EXPECT_GE(fd, 0);
	if (fd >= 0)
		close(fd);
}

TEST(b5_newest_first_and_exact)
{
	struct perf_event_attr attr = brs_attr(1009);
	unsigned int samples = 0, inside = 0;
	struct brs_sample s;
	struct brs_event e;

	REQUIRE_BRS();
	no_kernel(&attr);
	ASSERT_EQ(0, brs_open(&e, &attr, 0, -1, 512));
	brs_start(&e);
	brs_mix(200000);
	brs_stop(&e);

	while (brs_next(&e, &s)) {
		int breaks = brs_mix_breaks(&s);

		samples++;
		EXPECT_LE(breaks, 0);
		inside += s.nr && !breaks;
	}
	brs_close(&e);
	EXPECT_GT(samples, 1500);
	EXPECT_GE(inside * 100, samples * 98);
}

TEST(b5_newest_entry_is_where_the_sample_is)
{
	struct perf_event_attr attr = brs_attr(1009);
	unsigned int samples = 0, near = 0;
	struct brs_sample s;
	struct brs_event e;

	REQUIRE_BRS();
	no_kernel(&attr);
	ASSERT_EQ(0, brs_open(&e, &attr, 0, -1, 512));
	brs_start(&e);
	brs_chain(200);
	brs_stop(&e);

	while (brs_next(&e, &s)) {
		if (!s.nr || !brs_within(s.branch[0].from, brs_chain_start, brs_chain_end))
			continue;
		samples++;
		/*
		 * the sample's IP can be some instructions, here 64 bytes,
		 * after the branch's target
		 */
		near += s.ip - s.branch[0].to < 64;
	}
	brs_close(&e);
	EXPECT_GT(samples, 500);
	EXPECT_GE(near * 100, samples * 95);
}

TEST(b5_sixteen_deep_in_user_code)
{
	struct perf_event_attr attr = brs_attr(1009);
	unsigned int samples = 0, full = 0;
	struct brs_sample s;
	struct brs_event e;

	REQUIRE_BRS();
	no_kernel(&attr);
	ASSERT_EQ(0, brs_open(&e, &attr, 0, -1, 512));
	brs_start(&e);
	brs_mix(200000);
	brs_stop(&e);

	while (brs_next(&e, &s)) {
		samples++;
		EXPECT_LE(s.nr, BRS_DEPTH);
		full += s.nr == BRS_DEPTH;
	}
	brs_close(&e);
	TH_LOG("%u samples, %u full", samples, full);
	/* branches of a timer interrupt are filtered out, and the stack is then not full */
	EXPECT_GT(samples, 1500);
	EXPECT_GE(full * 100, samples * 95);
}

TEST(b5_sixteen_deep_unfiltered)
{
	struct perf_event_attr attr = brs_attr(10007);
	unsigned int samples = 0, full = 0;
	struct brs_sample s;
	struct brs_event e;

	REQUIRE_BRS();
	ASSERT_EQ(0, brs_open(&e, &attr, 0, -1, 512));
	brs_start(&e);
	brs_mixed_calls(50000);
	brs_stop(&e);

	while (brs_next(&e, &s)) {
		samples++;
		EXPECT_LE(s.nr, BRS_DEPTH);
		full += s.nr == BRS_DEPTH;
	}
	brs_close(&e);
	TH_LOG("%u samples, %u full", samples, full);
	EXPECT_GT(samples, 100);
	EXPECT_GE(full * 100, samples * 99);
}

TEST(b5_flags_are_zero)
{
	struct perf_event_attr attr = brs_attr(1009);
	unsigned int entries = 0;
	struct brs_sample s;
	struct brs_event e;
	__u64 i, flags;

	REQUIRE_BRS();
	no_kernel(&attr);
	ASSERT_EQ(0, brs_open(&e, &attr, 0, -1, 256));
	brs_start(&e);
	brs_mix(50000);
	brs_stop(&e);

	while (brs_next(&e, &s)) {
		for (i = 0; i < s.nr; i++) {
			/* the flags in struct perf_branch_entry are at offset 16 */
			memcpy(&flags, (char *)&s.branch[i] + 16, sizeof(flags));
			EXPECT_EQ(0, flags);
			entries++;
		}
	}
	brs_close(&e);
	EXPECT_GT(entries, 1000);
}

TEST(b5_no_entry_outlives_a_stop)
{
	struct perf_event_attr attr = brs_attr(101);
	unsigned int samples = 0, mixed = 0;
	struct brs_sample s;
	struct brs_event e;
	__u64 i;
	long n;

	REQUIRE_BRS();
	no_kernel(&attr);
	ASSERT_EQ(0, brs_open(&e, &attr, 0, -1, 1024));
	/*
	 * Stop the event between brs_body_a() and brs_body_b(), at many distances
	 * from an overflow.  No stack may contain branches of both functions.
	 */
	for (n = 1; n <= 1500; n++) {
		brs_start(&e);
		brs_body_a(1 + n % 23);
		brs_stop(&e);
		brs_start(&e);
		brs_body_b(1 + n % 19);
		brs_stop(&e);
	}
	while (brs_next(&e, &s)) {
		bool a = false, b = false;

		for (i = 0; i < s.nr; i++) {
			a |= brs_within(s.branch[i].from, brs_body_a_start, brs_body_a_end);
			b |= brs_within(s.branch[i].from, brs_body_b_start, brs_body_b_end);
		}
		samples++;
		mixed += a && b;
	}
	brs_close(&e);
	EXPECT_GT(samples, 1000);
	EXPECT_EQ(0, mixed);
}

FIXTURE(period)
{
};

FIXTURE_VARIANT(period)
{
	__u64 period;
	long rounds;		/* the number of rounds for brs_chain() */
};

FIXTURE_VARIANT_ADD(period, of_17) { .period = 17, .rounds = 25 };
FIXTURE_VARIANT_ADD(period, of_18) { .period = 18, .rounds = 25 };
FIXTURE_VARIANT_ADD(period, of_50) { .period = 50, .rounds = 50 };
FIXTURE_VARIANT_ADD(period, of_100) { .period = 100, .rounds = 100 };
FIXTURE_VARIANT_ADD(period, of_1009) { .period = 1009, .rounds = 250 };
FIXTURE_VARIANT_ADD(period, of_10007) { .period = 10007, .rounds = 500 };
FIXTURE_VARIANT_ADD(period, of_100003) { .period = 100003, .rounds = 2500 };
FIXTURE_VARIANT_ADD(period, of_1000003) { .period = 1000003, .rounds = 10000 };
FIXTURE_VARIANT_ADD(period, of_10000019) { .period = 10000019, .rounds = 30000 };

FIXTURE_SETUP(period)
{
	REQUIRE_BRS();
	REQUIRE_ROOT();
}

FIXTURE_TEARDOWN(period)
{
}

/* Return whether two numbers of samples differ by at most 1 %, or by one sample */
static bool about(__u64 found, __u64 expected)
{
	__u64 distance = found > expected ? found - expected : expected - found;

	return distance <= 1 || distance * 100 <= expected;
}

TEST_F(period, b6_samples_are_branches_by_period)
{
	struct perf_event_attr attr = brs_attr(variant->period);
	__u64 taken = (__u64)variant->rounds * BRS_CHAIN;
	__u64 samples = 0;
	struct brs_sample s;
	struct brs_event e;

	no_kernel(&attr);
	ASSERT_EQ(0, brs_open(&e, &attr, 0, -1, 4096));
	brs_start(&e);
	brs_chain(variant->rounds);
	brs_stop(&e);

	while (brs_next(&e, &s)) {
		EXPECT_EQ(variant->period, s.period);
		samples++;
	}
	samples += e.lost;
	TH_LOG("period %llu: %llu samples of %llu branches",
	       variant->period, samples,
	       taken);
	EXPECT_TRUE(about(samples, taken / variant->period));
	brs_close(&e);
}

/*
 * Periods for the test of the addresses at which samples are taken.  Periods below
 * 100 are left out: they are close to the fewest events to which the kernel can set
 * the counter.
 */
FIXTURE(phase)
{
};

FIXTURE_VARIANT(phase)
{
	__u64 period;
	long rounds;
};

FIXTURE_VARIANT_ADD(phase, of_100) { .period = 100, .rounds = 100 };
FIXTURE_VARIANT_ADD(phase, of_1009) { .period = 1009, .rounds = 250 };
FIXTURE_VARIANT_ADD(phase, of_10007) { .period = 10007, .rounds = 500 };
FIXTURE_VARIANT_ADD(phase, of_100003) { .period = 100003, .rounds = 2500 };
FIXTURE_VARIANT_ADD(phase, of_1000003) { .period = 1000003, .rounds = 10000 };

FIXTURE_SETUP(phase)
{
	REQUIRE_BRS();
	REQUIRE_ROOT();
}

FIXTURE_TEARDOWN(phase)
{
}

TEST_F(phase, b6_sample_stands_at_its_period)
{
	struct perf_event_attr attr = brs_attr(variant->period);
	__u64 samples = 0, at_period = 0, in_step = 0, first = 0;
	struct brs_sample s;
	struct brs_event e;

	attr.sample_type |= PERF_SAMPLE_READ;
	no_kernel(&attr);
	ASSERT_EQ(0, brs_open(&e, &attr, 0, -1, 4096));
	brs_start(&e);
	brs_chain(variant->rounds);
	brs_stop(&e);

	/*
	 * The counter continues to count while 16 branches are recorded.  To
	 * compensate, the kernel lets the counter overflow 16 events early, so that the
	 * event's count at a sample is a multiple of the period, and not 16 more.
	 * Each address in brs_chain() stands for a number of branches, so that the
	 * address of the newest entry must match the event's count.
	 */
	while (brs_next(&e, &s)) {
		__u64 number, offset;

		at_period += s.count % variant->period < BRS_DEPTH;
		if (!s.nr || !brs_within(s.branch[0].from, brs_chain_start, brs_chain_end)) {
			samples++;
			continue;
		}
		number = (s.branch[0].from - (uintptr_t)brs_chain_start) / 2;
		if (number >= BRS_CHAIN)
			number = BRS_CHAIN - 1;
		offset = (number + BRS_CHAIN - s.count % BRS_CHAIN) % BRS_CHAIN;
		if (!in_step)
			first = offset;
		in_step += offset == first;
		samples++;
	}
	brs_close(&e);
	ASSERT_GT(samples, 5);
	EXPECT_GE(at_period * 100, samples * 95);
	EXPECT_GE(in_step * 100, samples * 95);
}

/*
 * Compare the number of samples with the event's own count divided by the period.
 * For events that count in the kernel, only the event itself knows the number.
 */
static void counts_agree(struct __test_metadata *_metadata,
			 void (*restrict_to)(struct perf_event_attr *attr), long loops)
{
	struct perf_event_attr attr = brs_attr(10007);
	__u64 samples = 0, count;
	struct brs_sample s;
	struct brs_event e;

	if (restrict_to)
		restrict_to(&attr);
	ASSERT_EQ(0, brs_open(&e, &attr, 0, -1, 1024));
	brs_start(&e);
	brs_mixed_calls(loops);
	brs_stop(&e);

	while (brs_next(&e, &s))
		samples++;
	samples += e.lost;
	count = brs_count(e.fd);
	brs_close(&e);
	TH_LOG("%llu samples of %llu branches",
	       samples, count);
	EXPECT_GT(count, 100 * attr.sample_period);
	EXPECT_TRUE(about(samples, count / attr.sample_period));
}

TEST(b6_kernel_samples_are_branches_by_period)
{
	REQUIRE_BRS();
	counts_agree(_metadata, no_user, 75000);
}

TEST(b6_all_samples_are_branches_by_period)
{
	REQUIRE_BRS();
	counts_agree(_metadata, NULL, 50000);
}

TEST_HARNESS_MAIN
