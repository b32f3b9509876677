// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the behaviours B7 and B8: the branches that each filter for privilege
 * levels keeps, and that an event for user mode shows no kernel address.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <unistd.h>
#include <asm/perf_regs.h>

#include "brs_test.h"

BRS_WITHOUT_LIMITS

#define PARANOID	"/proc/sys/kernel/perf_event_paranoid"
#define NOBODY		1000

struct counts {
	unsigned int samples, entries;
	unsigned int kernel_from, kernel_to, user_from, user_to;
	unsigned int crossing, kernel_ip, kernel_chain, kernel_regs;
};

static void look(const struct brs_sample *s, struct counts *c)
{
	__u64 i;

	c->samples++;
	c->kernel_ip += brs_is_kernel(s->ip);
	for (i = 0; i < s->nr; i++) {
		c->entries++;
		c->kernel_from += brs_is_kernel(s->branch[i].from);
		c->kernel_to += brs_is_kernel(s->branch[i].to);
		c->user_from += !brs_is_kernel(s->branch[i].from);
		c->user_to += !brs_is_kernel(s->branch[i].to);
		c->crossing += brs_is_kernel(s->branch[i].from) !=
			       brs_is_kernel(s->branch[i].to);
	}
	for (i = 0; i < s->nr_chain; i++) {
		/*
		 * count PERF_CONTEXT_KERNEL, the mark of a kernel call chain, too:
		 * brs_is_kernel() is false for this value
		 */
		c->kernel_chain += brs_is_kernel(s->chain[i]) ||
				   s->chain[i] == PERF_CONTEXT_KERNEL;
	}
	for (i = 0; i < s->nr_regs; i++)
		c->kernel_regs += brs_is_kernel(s->regs[i]);
}

/* Sample a loop of system calls, which is in the kernel most of the time. */
static struct counts record(struct __test_metadata *_metadata, struct perf_event_attr *attr)
{
	struct counts c = {};
	struct brs_sample s;
	struct brs_event e;
	int err;

	/* 128 pages: as much memory as an unprivileged user can lock by default */
	err = brs_open(&e, attr, 0, -1, 128);
	EXPECT_EQ(0, err);
	if (err)
		return c;
	brs_start(&e);
	brs_mixed_calls(50000);
	brs_stop(&e);
	while (brs_next(&e, &s))
		look(&s, &c);
	brs_close(&e);
	TH_LOG("%u samples, %u in the kernel; %u entries, %u from and %u to kernel, %u and %u user",
	       c.samples, c.kernel_ip, c.entries, c.kernel_from, c.kernel_to,
	       c.user_from, c.user_to);
	return c;
}

TEST(b7_user_stack_has_no_kernel_address)
{
	struct perf_event_attr attr = brs_attr(1009);
	struct counts c;

	REQUIRE_BRS();
	attr.exclude_kernel = 1;
	c = record(_metadata, &attr);
	EXPECT_GT(c.entries, 100);
	EXPECT_EQ(0, c.kernel_from);
	EXPECT_EQ(0, c.kernel_to);
}

/*
 * A filter for kernel branches keeps a branch by its target.  The target of a
 * system call is in the kernel, so the branch stack shows the user address from
 * which the system call came.
 */
TEST(b7_kernel_stack_has_kernel_targets)
{
	struct perf_event_attr attr = brs_attr(1009);
	struct counts c;

	REQUIRE_BRS();
	attr.exclude_user = 1;
	c = record(_metadata, &attr);
	EXPECT_GT(c.entries, 100);
	EXPECT_EQ(0, c.user_to);
}

TEST(b7_user_branches_of_an_event_of_both)
{
	struct perf_event_attr attr = brs_attr(1009);
	struct counts c;

	REQUIRE_BRS();
	attr.branch_sample_type |= PERF_SAMPLE_BRANCH_USER;
	c = record(_metadata, &attr);
	EXPECT_GT(c.samples, 50);
	EXPECT_EQ(0, c.kernel_from);
	EXPECT_EQ(0, c.kernel_to);
}

TEST(b7_kernel_branches_of_an_event_of_both)
{
	struct perf_event_attr attr = brs_attr(1009);
	struct counts c;

	REQUIRE_BRS();
	attr.branch_sample_type |= PERF_SAMPLE_BRANCH_KERNEL;
	c = record(_metadata, &attr);
	EXPECT_GT(c.entries, 100);
	EXPECT_GT(c.user_from, 10);
	EXPECT_EQ(0, c.user_to);
}

TEST(b7_no_filter_keeps_both_and_what_joins_them)
{
	struct perf_event_attr attr = brs_attr(1009);
	struct counts c;

	REQUIRE_BRS();
	c = record(_metadata, &attr);
	EXPECT_GT(c.kernel_to, 100);
	EXPECT_GT(c.user_to, 10);
	EXPECT_GT(c.crossing, 10);
}

FIXTURE(unprivileged)
{
	char paranoid[16];
};

FIXTURE_SETUP(unprivileged)
{
	memset(self, 0, sizeof(*self));
	REQUIRE_BRS();
	REQUIRE_ROOT();
	ASSERT_TRUE(brs_read_file(PARANOID, self->paranoid, sizeof(self->paranoid)));
	ASSERT_TRUE(brs_write_file(PARANOID, "2"));
}

/*
 * Restore the sysctl in the parent, which is still root: the test process now
 * runs as nobody.
 */
FIXTURE_TEARDOWN_PARENT(unprivileged)
{
	if (self->paranoid[0])
		brs_write_file(PARANOID, self->paranoid);
}

static bool become_nobody(void)
{
	return !setgroups(0, NULL) && !setresgid(NOBODY, NOBODY, NOBODY) &&
	       !setresuid(NOBODY, NOBODY, NOBODY);
}

static struct perf_event_attr everything(void)
{
	struct perf_event_attr attr = brs_attr(1009);

	attr.exclude_kernel = 1;
	attr.exclude_hv = 1;
	attr.exclude_callchain_kernel = 1;
	attr.sample_type |= PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_INTR;
	attr.sample_regs_intr = BRS_REGS;
	return attr;
}

TEST_F(unprivileged, b7_kernel_event_is_refused)
{
	struct perf_event_attr attr = brs_attr(10007);

	ASSERT_TRUE(become_nobody());
	EXPECT_EQ(-EACCES, brs_try(&attr, 0, -1, -1));
}

TEST_F(unprivileged, b7_kernel_branches_are_refused)
{
	struct perf_event_attr attr = brs_attr(10007);

	ASSERT_TRUE(become_nobody());
	attr.exclude_kernel = 1;
	attr.exclude_hv = 1;
	attr.branch_sample_type |= PERF_SAMPLE_BRANCH_KERNEL;
	EXPECT_EQ(-EACCES, brs_try(&attr, 0, -1, -1));
}

TEST_F(unprivileged, b8_no_kernel_ip)
{
	struct perf_event_attr attr = everything();
	struct counts c;

	ASSERT_TRUE(become_nobody());
	c = record(_metadata, &attr);
	EXPECT_GT(c.samples, 50);
	EXPECT_EQ(0, c.kernel_ip);
}

TEST_F(unprivileged, b8_no_kernel_address_in_registers)
{
	struct perf_event_attr attr = everything();
	struct counts c;

	ASSERT_TRUE(become_nobody());
	c = record(_metadata, &attr);
	EXPECT_GT(c.samples, 50);
	EXPECT_EQ(0, c.kernel_regs);
}

TEST_F(unprivileged, b8_no_kernel_address_in_call_chain)
{
	struct perf_event_attr attr = everything();
	struct counts c;

	ASSERT_TRUE(become_nobody());
	c = record(_metadata, &attr);
	EXPECT_GT(c.samples, 50);
	EXPECT_EQ(0, c.kernel_chain);
}

/* A user without privileges has to exclude the kernel from call chains: run this test as root */
TEST(b8_no_kernel_address_in_call_chain_of_user_event)
{
	struct perf_event_attr attr = everything();
	struct counts c;

	REQUIRE_BRS();
	REQUIRE_ROOT();
	attr.exclude_callchain_kernel = 0;
	c = record(_metadata, &attr);
	EXPECT_GT(c.samples, 50);
	EXPECT_EQ(0, c.kernel_chain);
}

TEST_F(unprivileged, b8_no_kernel_address_in_stack)
{
	struct perf_event_attr attr = everything();
	struct counts c;

	ASSERT_TRUE(become_nobody());
	c = record(_metadata, &attr);
	EXPECT_GT(c.samples, 50);
	EXPECT_EQ(0, c.kernel_from);
	EXPECT_EQ(0, c.kernel_to);
}

TEST_HARNESS_MAIN
