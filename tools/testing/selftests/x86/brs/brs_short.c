// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the behaviours B9, B10 and B11: BRS events for kernel and user with
 * short periods, in which the PMU's own interrupt takes as many branches as a
 * period, and BRS events beside another sampling event.
 */
#define _GNU_SOURCE
#include <unistd.h>

#include "brs_test.h"

/* The kernel's default limit in samples/s, at which events with a short period are throttled */
BRS_LIMITS("100000")

#define INSTRUCTIONS	0xc0

/* How many times b11_stopped_at_any_place stops the BRS event for each period */
#define STOPS		400

FIXTURE(period)
{
};

FIXTURE_VARIANT(period)
{
	__u64 period;
	long loops;
};

FIXTURE_VARIANT_ADD(period, of_17) { .period = 17, .loops = 400 };
FIXTURE_VARIANT_ADD(period, of_50) { .period = 50, .loops = 1000 };
FIXTURE_VARIANT_ADD(period, of_100) { .period = 100, .loops = 1500 };
FIXTURE_VARIANT_ADD(period, of_250) { .period = 250, .loops = 3000 };
FIXTURE_VARIANT_ADD(period, of_280) { .period = 280, .loops = 3000 };
FIXTURE_VARIANT_ADD(period, of_295) { .period = 295, .loops = 3000 };
FIXTURE_VARIANT_ADD(period, of_1009) { .period = 1009, .loops = 8000 };

FIXTURE_SETUP(period)
{
	REQUIRE_BRS();
	REQUIRE_ROOT();
}

FIXTURE_TEARDOWN(period)
{
}

TEST_F(period, b9_stacks_are_full)
{
	struct perf_event_attr attr = brs_attr(variant->period);
	struct brs_tally t = {};
	struct brs_event e;

	ASSERT_EQ(0, brs_open(&e, &attr, 0, -1, 4096));
	brs_start(&e);
	brs_mixed_calls(variant->loops);
	brs_stop(&e);

	brs_drain(&e, &t);
	brs_close(&e);
	TH_LOG("%lu samples, %lu empty, %lu full; throttled %u times",
	       t.samples, t.empty, t.full, (unsigned int)e.throttled);
	EXPECT_GT(t.samples, 50);
	EXPECT_EQ(0, t.empty);
	EXPECT_GE(t.full * 100, t.samples * 99);
}

TEST_F(period, b9_no_more_samples_than_periods)
{
	struct perf_event_attr attr = brs_attr(variant->period);
	struct brs_tally t = {};
	struct brs_event e;
	__u64 count;

	/* interrupts before the end of a period would cause too many samples */
	ASSERT_EQ(0, brs_open(&e, &attr, 0, -1, 4096));
	brs_start(&e);
	brs_mixed_calls(variant->loops);
	brs_stop(&e);

	brs_drain(&e, &t);
	t.samples += e.lost;
	count = brs_count(e.fd);
	brs_close(&e);
	TH_LOG("%lu samples of %llu branches", t.samples, count);
	EXPECT_GT(t.samples, 50);
	EXPECT_LE(t.samples, count / variant->period + 1);
}

TEST_F(period, b9_user_stacks_are_exact)
{
	struct perf_event_attr attr = brs_attr(variant->period);
	unsigned int samples = 0, exact = 0;
	struct brs_sample s;
	struct brs_event e;

	attr.branch_sample_type |= PERF_SAMPLE_BRANCH_USER;
	ASSERT_EQ(0, brs_open(&e, &attr, 0, -1, 4096));
	brs_start(&e);
	brs_mix(variant->period * 250);
	brs_stop(&e);

	while (brs_next(&e, &s)) {
		int breaks = brs_mix_breaks(&s);

		/*
		 * skip a stack that contained only kernel branches of an
		 * interrupt handler
		 */
		if (!s.nr && (__s64)s.ip < 0)
			continue;
		samples++;
		EXPECT_LE(breaks, 0);
		/*
		 * a stack contains fewer entries after its kernel branches are
		 * filtered out
		 */
		exact += !breaks && s.nr >= BRS_DEPTH / 2;
	}
	brs_close(&e);
	TH_LOG("%u samples, %u of them exact and at least half full", samples, exact);
	EXPECT_GT(samples, 100);
	EXPECT_GE(exact * 100, samples * 95);
}

TEST(b10_no_entry_of_the_interrupt)
{
	unsigned int samples = 0, own = 0;
	const char *example = NULL;
	struct brs_sample s;
	struct brs_event e;
	__u64 period;

	REQUIRE_BRS();
	REQUIRE_ROOT();
	if (!brs_symbols_load())
		SKIP(return, "/proc/kallsyms has no addresses");

	/* periods similar to the number of branches that the PMU's interrupt takes */
	for (period = 151; period <= 401; period += 10) {
		struct perf_event_attr attr = brs_attr(period);

		ASSERT_EQ(0, brs_open(&e, &attr, 0, -1, 1024));
		brs_start(&e);
		brs_mixed_calls(300);
		brs_stop(&e);

		while (brs_next(&e, &s)) {
			const char *name = brs_nmi_function(&s);

			samples++;
			own += !!name;
			example = name ?: example;
		}
		brs_close(&e);
	}
	TH_LOG("%u of %u stacks contain the interrupt%s%s", own, samples,
	       example ? ", as " : "", example ? example : "");
	EXPECT_GT(samples, 500);
	EXPECT_EQ(0, own);
}

FIXTURE(beside)
{
	struct brs_limits limits;
};

FIXTURE_VARIANT(beside)
{
	__u64 config;
	/*
	 * The other event's period: @period if the event excludes the kernel, and
	 * @kernel_period if it counts in the kernel.  There, the event also counts
	 * its own interrupt, and a short period would end in each interrupt, so
	 * that the program would make no progress.
	 */
	__u64 period;
	__u64 kernel_period;
};

FIXTURE_VARIANT_ADD(beside, instructions) {
	.config = INSTRUCTIONS, .period = 2003, .kernel_period = 20011,
};

FIXTURE_VARIANT_ADD(beside, branches) {
	.config = BRS_EVENT, .period = 401, .kernel_period = 4001,
};

FIXTURE_SETUP(beside)
{
	memset(&self->limits, 0, sizeof(self->limits));
	REQUIRE_BRS();
	REQUIRE_ROOT();
	ASSERT_TRUE(brs_limits_lift(&self->limits));
}

FIXTURE_TEARDOWN(beside)
{
	brs_limits_restore(&self->limits);
}

struct beside_tally {
	struct brs_tally brs;
	unsigned long others;
};

/* Open a BRS event @e and another sampling event @o, on another counter. */
static bool open_both(struct __test_metadata *_metadata, struct brs_event *e, struct brs_event *o,
		      struct perf_event_attr *attr, __u64 config, __u64 period)
{
	struct perf_event_attr other = brs_attr(period);
	int err;

	other.config = config;
	other.sample_type = PERF_SAMPLE_IP;
	other.branch_sample_type = 0;
	other.exclude_kernel = attr->exclude_kernel;

	err = brs_open(e, attr, 0, -1, 1024);
	EXPECT_EQ(0, err);
	if (err)
		return false;
	err = brs_open(o, &other, 0, -1, 1024);
	EXPECT_EQ(0, err);
	if (err)
		brs_close(e);
	return !err;
}

/* Sample @work by a BRS event and by another event; count the samples of both events. */
static struct beside_tally record_beside(struct __test_metadata *_metadata,
					 __u64 config, __u64 period, bool user_only,
					 void (*work)(long), long loops)
{
	struct perf_event_attr attr = brs_attr(1009);
	struct beside_tally t = {};
	struct brs_event e, o;
	struct brs_sample s;

	attr.exclude_kernel = user_only;
	if (!open_both(_metadata, &e, &o, &attr, config, period))
		return t;

	brs_start(&o);
	brs_start(&e);
	work(loops);
	brs_stop(&e);
	brs_stop(&o);

	brs_drain(&e, &t.brs);
	while (brs_next(&o, &s))
		t.others++;
	TH_LOG("%lu stacks, %lu full; %lu samples of the other",
	       t.brs.samples, t.brs.full, t.others);
	brs_close(&o);
	brs_close(&e);
	return t;
}

TEST_F(beside, b11_kernel_and_user_stacks_are_full)
{
	struct beside_tally t;

	t = record_beside(_metadata, variant->config, variant->kernel_period,
			  false, brs_mixed_calls, 30000);
	EXPECT_GT(t.brs.samples, 500);
	EXPECT_GT(t.others, 100);
	EXPECT_GE(t.brs.full * 100, t.brs.samples * 99);
}

TEST_F(beside, b11_user_stacks_are_exact)
{
	struct beside_tally t;

	t = record_beside(_metadata, variant->config, variant->period,
			  true, brs_mix, 100000);
	EXPECT_GT(t.brs.samples, 500);
	EXPECT_GT(t.others, 500);
	EXPECT_GE(t.brs.exact * 100, t.brs.samples * 98);
	EXPECT_GE(t.brs.full * 100, t.brs.samples * 95);
}

TEST_F(beside, b11_period_is_kept)
{
	struct beside_tally t;

	/* brs_mix() takes 800000 branches: 792 periods of 1009 */
	t = record_beside(_metadata, variant->config, variant->period,
			  true, brs_mix, 100000);
	EXPECT_GE(t.brs.samples, 785);
	EXPECT_LE(t.brs.samples, 800);
}

/*
 * Let the other event's interrupts come at each place of the code that stops the
 * BRS event.  If an interrupt caused the next interrupt, a storm of interrupts
 * would start, and end only when the event is throttled.  The number of interrupts
 * would show the storm.
 */
TEST_F(beside, b11_stopped_at_any_place)
{
	static const __u64 periods[] = { 17, 101, 337 };
	struct brs_limits limits;
	size_t i;

	ASSERT_TRUE(brs_limits_rate(&limits, "100000"));
	for (i = 0; i < ARRAY_LEN(periods); i++) {
		struct perf_event_attr attr = brs_attr(periods[i]);
		unsigned long before, interrupts, samples;
		struct brs_tally t = {};
		struct brs_event e, o;
		struct brs_sample s;
		int round;

		ASSERT_TRUE(open_both(_metadata, &e, &o, &attr, variant->config,
				      variant->kernel_period));
		before = brs_interrupts();
		brs_start(&o);
		for (round = 0; round < STOPS; round++) {
			brs_start(&e);
			brs_mix(50);
			brs_stop(&e);
		}
		brs_stop(&o);
		interrupts = brs_interrupts() - before;

		brs_drain(&e, &t);
		samples = t.samples + e.lost;
		while (brs_next(&o, &s))
			samples++;
		samples += o.lost;
		TH_LOG("period %llu: %lu interrupts for %lu samples",
		       periods[i], interrupts, samples);
		brs_close(&o);
		brs_close(&e);
		EXPECT_GT(t.samples, 50);
		/*
		 * Each sample needs an interrupt, and a second interrupt if its
		 * recording was ended early, by the interrupt of another sample or by
		 * a stop of the PMU, and then repeated.  Each round stops the PMU
		 * twice, and timer ticks also stop the PMU.
		 */
		EXPECT_LE(interrupts, 2 * samples + 4 * STOPS);
	}
}

TEST_HARNESS_MAIN
