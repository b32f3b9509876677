// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the behaviours B4, B13 to B16 and B19: BRS with several events, several
 * tasks and several CPUs, with idle CPUs, with CPUs that go offline, and with a task
 * that has a CPU for itself.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "brs_test.h"

BRS_LIMITS("100000")

#define SIBLING_CPU	1
#define ONLINE		"/sys/devices/system/cpu/cpu1/online"

/* The result of read() on an event with TIMES as read_format */
struct times {
	__u64 count, enabled, running;
};

#define TIMES	(PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)

static struct times read_times(int fd)
{
	struct times t = {};

	if (read(fd, &t, sizeof(t)) != sizeof(t))
		memset(&t, 0, sizeof(t));
	return t;
}

/* Read the samples that were recorded since the last call. */
static struct brs_tally drain(struct brs_event *e)
{
	struct brs_tally t = {};

	brs_drain(e, &t);
	return t;
}

TEST(b4_two_events_take_turns)
{
	struct perf_event_attr attr1 = brs_attr(10007), attr2 = brs_attr(20011);
	struct brs_tally all1 = {}, all2 = {};
	struct times t1, t2;
	struct brs_event e1, e2;
	int round;

	REQUIRE_BRS();
	attr1.exclude_kernel = 1;
	attr2.exclude_kernel = 1;
	attr1.read_format = TIMES;
	attr2.read_format = TIMES;
	ASSERT_EQ(0, brs_open(&e1, &attr1, 0, -1, 256));
	ASSERT_EQ(0, brs_open(&e2, &attr2, 0, -1, 256));
	brs_start(&e1);
	brs_start(&e2);
	/* work until each of the two events has taken 100 exact stacks */
	for (round = 0; round < 400 && (all1.exact < 100 || all2.exact < 100); round++) {
		brs_mix(50000);
		brs_drain(&e1, &all1);
		brs_drain(&e2, &all2);
	}
	/* stop e2 before e1, so that e2 was enabled only while e1 was enabled */
	brs_stop(&e2);
	brs_stop(&e1);
	t1 = read_times(e1.fd);
	t2 = read_times(e2.fd);
	TH_LOG("%lu and %lu samples, %lu and %lu exact, %lu and %lu wrong",
	       all1.samples, all2.samples, all1.exact, all2.exact, all1.wrong, all2.wrong);
	EXPECT_GE(all1.exact, 100);
	EXPECT_GE(all2.exact, 100);
	EXPECT_EQ(0, all1.wrong);
	EXPECT_EQ(0, all2.wrong);
	/* check that e1 and e2 never ran at the same time */
	EXPECT_LE(t1.running + t2.running, t1.enabled + t1.enabled / 50);
	EXPECT_LT(t1.running, t1.enabled);
	EXPECT_LT(t2.running, t2.enabled);
	brs_close(&e1);
	brs_close(&e2);
}

TEST(b4_two_sessions_on_two_cpus)
{
	struct perf_event_attr attr = brs_attr(10007);
	struct brs_event e[2];
	struct brs_tally t;
	int cpu;

	REQUIRE_BRS();
	REQUIRE_ROOT();
	REQUIRE_CPUS(2);
	attr.exclude_kernel = 1;
	for (cpu = 0; cpu < 2; cpu++) {
		ASSERT_EQ(0, brs_open(&e[cpu], &attr, -1, cpu, 256));
		brs_start(&e[cpu]);
	}
	for (cpu = 0; cpu < 2; cpu++) {
		pid_t child = fork();

		if (!child) {
			brs_pin(cpu);
			brs_mix(500000);
			_exit(0);
		}
		ASSERT_GT(child, 0);
	}
	while (wait(NULL) > 0)
		;
	for (cpu = 0; cpu < 2; cpu++) {
		brs_stop(&e[cpu]);
		t = drain(&e[cpu]);
		TH_LOG("CPU %d: %lu samples, %lu exact, %lu wrong",
		       cpu, t.samples, t.exact, t.wrong);
		EXPECT_GE(t.exact, 300);
		EXPECT_EQ(0, t.wrong);
		brs_close(&e[cpu]);
	}
}

TEST(b13_no_stack_crosses_idle)
{
	struct perf_event_attr attr = brs_attr(337);
	unsigned int samples = 0, across = 0, cpu;
	struct brs_event e[2];
	struct brs_sample s;

	REQUIRE_BRS();
	REQUIRE_ROOT();
	REQUIRE_CPUS(2);
	if (!brs_symbols_load())
		SKIP(return, "/proc/kallsyms has no addresses");
	for (cpu = 0; cpu < 2; cpu++) {
		ASSERT_EQ(0, brs_open(&e[cpu], &attr, -1, cpu, 4096));
		brs_start(&e[cpu]);
	}
	EXPECT_TRUE(brs_ping_pong(0, 1, 400));
	for (cpu = 0; cpu < 2; cpu++) {
		brs_stop(&e[cpu]);
		while (brs_next(&e[cpu], &s)) {
			samples++;
			across += brs_crosses_idle(&s);
		}
		brs_close(&e[cpu]);
	}
	TH_LOG("%u of %u stacks cross an idle state", across, samples);
	EXPECT_GT(samples, 500);
	EXPECT_EQ(0, across);
}

TEST(b13_stacks_are_full_beside_idle)
{
	struct perf_event_attr attr = brs_attr(1009);
	unsigned int samples = 0, full = 0, cpu;
	struct brs_event e[2];
	struct brs_sample s;

	REQUIRE_BRS();
	REQUIRE_ROOT();
	REQUIRE_CPUS(2);
	for (cpu = 0; cpu < 2; cpu++) {
		ASSERT_EQ(0, brs_open(&e[cpu], &attr, -1, cpu, 1024));
		brs_start(&e[cpu]);
	}
	EXPECT_TRUE(brs_ping_pong(0, 1, 400));
	for (cpu = 0; cpu < 2; cpu++) {
		brs_stop(&e[cpu]);
		while (brs_next(&e[cpu], &s)) {
			samples++;
			full += s.nr == BRS_DEPTH;
		}
		brs_close(&e[cpu]);
	}
	TH_LOG("%u samples, %u full", samples, full);
	EXPECT_GT(samples, 500);
	EXPECT_GE(full * 100, samples * 99);
}

struct places {
	unsigned int samples, a, b;
};

static void place(const struct brs_sample *s, struct places *p)
{
	bool a = false, b = false;
	__u64 i;

	for (i = 0; i < s->nr; i++) {
		a |= brs_within(s->branch[i].from, brs_body_a_start, brs_body_a_end);
		b |= brs_within(s->branch[i].from, brs_body_b_start, brs_body_b_end);
	}
	p->samples++;
	p->a += a;
	p->b += b;
}

/*
 * Let two tasks share CPU 0 and yield it to each other all the time: the caller
 * runs brs_body_a(), and its child runs brs_body_b().  Return the child's pid.
 */
static pid_t take_turns(struct __test_metadata *_metadata, long rounds)
{
	pid_t child;
	long i;

	brs_pin(0);
	child = fork();
	if (!child) {
		for (i = 0; i < rounds; i++) {
			brs_body_b(1 + i % 5);
			sched_yield();
		}
		_exit(0);
	}
	EXPECT_GT(child, 0);
	for (i = 0; i < rounds; i++) {
		brs_body_a(1 + i % 7);
		sched_yield();
	}
	waitpid(child, NULL, 0);
	return child;
}

TEST(b14_task_event_has_no_entry_of_another_task)
{
	struct perf_event_attr attr = brs_attr(101);
	struct places p = {};
	struct brs_sample s;
	struct brs_event e;

	REQUIRE_BRS();
	attr.exclude_kernel = 1;
	ASSERT_EQ(0, brs_open(&e, &attr, 0, -1, 1024));
	brs_start(&e);
	take_turns(_metadata, 10000);
	brs_stop(&e);
	while (brs_next(&e, &s))
		place(&s, &p);
	brs_close(&e);
	TH_LOG("%u samples, %u with this task's code, %u with the other's", p.samples, p.a, p.b);
	EXPECT_GT(p.a, 500);
	EXPECT_EQ(0, p.b);
}

TEST(b14_task_event_of_both_privileges)
{
	struct perf_event_attr attr = brs_attr(211);
	struct places p = {};
	struct brs_sample s;
	struct brs_event e;

	REQUIRE_BRS();
	REQUIRE_ROOT();
	ASSERT_EQ(0, brs_open(&e, &attr, 0, -1, 4096));
	brs_start(&e);
	take_turns(_metadata, 3000);
	brs_stop(&e);
	while (brs_next(&e, &s))
		place(&s, &p);
	brs_close(&e);
	TH_LOG("%u samples, %u with this task's code, %u with the other's", p.samples, p.a, p.b);
	EXPECT_GT(p.a, 100);
	EXPECT_EQ(0, p.b);
}

TEST(b14_cpu_event_names_the_task_of_the_entries)
{
	struct perf_event_attr attr = brs_attr(101);
	unsigned int wrong = 0, right = 0;
	pid_t self = getpid(), other;
	struct brs_sample s;
	struct brs_event e;

	REQUIRE_BRS();
	REQUIRE_ROOT();
	attr.exclude_kernel = 1;
	ASSERT_EQ(0, brs_open(&e, &attr, -1, 0, 4096));
	brs_start(&e);
	other = take_turns(_metadata, 10000);
	brs_stop(&e);
	while (brs_next(&e, &s)) {
		struct places p = {};

		place(&s, &p);
		if (!p.a && !p.b)
			continue;
		if ((p.a && s.pid != (__u32)self) || (p.b && s.pid != (__u32)other))
			wrong++;
		else
			right++;
	}
	brs_close(&e);
	TH_LOG("%u samples with their own task's code, %u with another's", right, wrong);
	EXPECT_GT(right, 500);
	EXPECT_EQ(0, wrong);
}

TEST(b14_cpu_and_task_events_together)
{
	struct perf_event_attr attr = brs_attr(1009);
	struct brs_tally of_cpu = {}, of_task = {};
	struct brs_event task, cpu;
	int i;

	REQUIRE_BRS();
	REQUIRE_ROOT();
	brs_pin(0);
	attr.exclude_kernel = 1;
	ASSERT_EQ(0, brs_open(&task, &attr, 0, -1, 256));
	ASSERT_EQ(0, brs_open(&cpu, &attr, -1, 0, 256));
	brs_start(&cpu);
	brs_start(&task);
	/*
	 * The CPU's event gets the counter first.  When that event is stopped, the
	 * task's event gets the counter at the next tick or context switch.
	 */
	for (i = 0; i < 100 && of_cpu.exact < 500; i++) {
		brs_mix(100000);
		brs_drain(&cpu, &of_cpu);
	}
	brs_stop(&cpu);
	for (i = 0; i < 100 && of_task.exact < 700; i++) {
		brs_mix(100000);
		brs_drain(&task, &of_task);
	}
	brs_stop(&task);
	EXPECT_GE(of_cpu.exact, 500);
	EXPECT_EQ(0, of_cpu.wrong);
	EXPECT_GE(of_task.exact, 700);
	EXPECT_EQ(0, of_task.wrong);
	brs_close(&cpu);
	brs_close(&task);
}

FIXTURE(hotplug)
{
	bool there;
};

FIXTURE_SETUP(hotplug)
{
	self->there = false;
	REQUIRE_BRS();
	REQUIRE_ROOT();
	if (!brs_write_file(ONLINE, "1"))
		SKIP(return, "needs a second CPU that can be taken offline");
	self->there = true;
}

FIXTURE_TEARDOWN(hotplug)
{
	if (self->there)
		brs_write_file(ONLINE, "1");
}

TEST_F(hotplug, b15_task_goes_on_when_its_cpu_goes)
{
	struct perf_event_attr attr = brs_attr(10007);
	struct brs_event e;
	struct brs_tally t;
	int round;

	attr.exclude_kernel = 1;
	ASSERT_EQ(0, brs_open(&e, &attr, 0, -1, 256));
	brs_start(&e);
	for (round = 0; round < 3; round++) {
		brs_pin(SIBLING_CPU);
		brs_mix(200000);
		t = drain(&e);
		EXPECT_GE(t.exact, 140);
		EXPECT_EQ(0, t.wrong);

		/* take the task's CPU offline, which moves the task to another CPU */
		ASSERT_TRUE(brs_write_file(ONLINE, "0"));
		brs_mix(200000);
		t = drain(&e);
		TH_LOG("%lu samples after the CPU went offline, %lu exact, %lu wrong",
		       t.samples, t.exact, t.wrong);
		EXPECT_GE(t.exact, 140);
		EXPECT_EQ(0, t.wrong);
		ASSERT_TRUE(brs_write_file(ONLINE, "1"));
	}
	brs_stop(&e);
	brs_close(&e);
}

TEST_F(hotplug, b15_cpu_event_ends_with_its_cpu)
{
	struct perf_event_attr attr = brs_attr(10007);
	struct brs_event before, after;
	struct brs_tally t;

	attr.exclude_kernel = 1;
	ASSERT_EQ(0, brs_open(&before, &attr, -1, SIBLING_CPU, 256));
	brs_start(&before);
	brs_pin(SIBLING_CPU);
	brs_mix(200000);
	t = drain(&before);
	EXPECT_GE(t.exact, 140);
	ASSERT_TRUE(brs_write_file(ONLINE, "0"));
	ASSERT_TRUE(brs_write_file(ONLINE, "1"));

	/* a new event on CPU 1 does not share the counter, and starts from 0 */
	ASSERT_EQ(0, brs_open(&after, &attr, -1, SIBLING_CPU, 256));
	brs_start(&after);
	brs_pin(SIBLING_CPU);
	brs_mix(200000);
	brs_stop(&after);
	t = drain(&after);
	EXPECT_GE(t.exact, 140);
	EXPECT_EQ(0, t.wrong);
	brs_close(&after);
	brs_close(&before);
}

TEST_F(hotplug, b15_going_while_both_cpus_record)
{
	struct perf_event_attr attr = brs_attr(337);
	struct brs_event e[2];
	struct brs_tally t;
	int cpu, round;

	for (cpu = 0; cpu < 2; cpu++) {
		ASSERT_EQ(0, brs_open(&e[cpu], &attr, -1, cpu, 1024));
		brs_start(&e[cpu]);
	}
	brs_pin(0);
	for (round = 0; round < 4; round++) {
		ASSERT_TRUE(brs_write_file(ONLINE, "0"));
		brs_mix(10000);
		ASSERT_TRUE(brs_write_file(ONLINE, "1"));
		brs_mix(10000);
	}
	brs_stop(&e[0]);
	t = drain(&e[0]);
	TH_LOG("%lu samples, %lu full", t.samples, t.full);
	EXPECT_GE(t.samples, 500);
	EXPECT_GE(t.full * 100, t.samples * 99);
	brs_close(&e[0]);
	brs_close(&e[1]);
}

TEST(b16_pinned_event_has_the_counter)
{
	struct perf_event_attr attr = brs_attr(10007);
	struct brs_event pinned, other;
	struct times t;

	REQUIRE_BRS();
	attr.exclude_kernel = 1;
	attr.read_format = TIMES;
	ASSERT_EQ(0, brs_open(&other, &attr, 0, -1, 256));
	attr.pinned = 1;
	ASSERT_EQ(0, brs_open(&pinned, &attr, 0, -1, 256));
	brs_start(&pinned);
	brs_start(&other);
	brs_mix(300000);
	brs_stop(&other);
	brs_stop(&pinned);
	t = read_times(pinned.fd);
	EXPECT_GT(t.running, 0);
	EXPECT_EQ(t.enabled, t.running);
	EXPECT_GE(drain(&pinned).exact, 200);
	t = read_times(other.fd);
	EXPECT_EQ(0, t.running);
	EXPECT_EQ(0, drain(&other).samples);
	brs_close(&pinned);
	brs_close(&other);
}

TEST(b16_exclusive_event_is_alone)
{
	struct perf_event_attr attr = brs_attr(10007);
	struct brs_event e;

	REQUIRE_BRS();
	attr.exclude_kernel = 1;
	attr.exclusive = 1;
	ASSERT_EQ(0, brs_open(&e, &attr, 0, -1, 256));
	brs_start(&e);
	brs_mix(200000);
	brs_stop(&e);
	EXPECT_GE(drain(&e).exact, 140);
	brs_close(&e);
}

TEST(b16_group_counts_beside_the_stacks)
{
	struct perf_event_attr attr = brs_attr(10007);
	struct perf_event_attr member = {
		.type = PERF_TYPE_RAW, .size = sizeof(member), .config = BRS_EVENT,
		.exclude_kernel = 1,
	};
	struct brs_event e;
	__u64 count;
	int fd;

	REQUIRE_BRS();
	attr.exclude_kernel = 1;
	ASSERT_EQ(0, brs_open(&e, &attr, 0, -1, 256));
	fd = brs_try(&member, 0, -1, e.fd);
	ASSERT_GE(fd, 0);
	brs_start(&e);
	brs_mix(200000);
	brs_stop(&e);
	EXPECT_GE(drain(&e).exact, 140);
	/*
	 * brs_mix() takes 1599999 branches; some more are taken before and
	 * after brs_mix()
	 */
	count = brs_count(fd);
	EXPECT_GE(count, 1599999);
	EXPECT_LE(count, 1602000);
	close(fd);
	brs_close(&e);
}

/*
 * Check that the group's other sampling event can read the count of the BRS event
 * with each of its samples, sometimes in an interrupt that has just taken a branch
 * stack.
 */
TEST(b16_count_is_read_by_samples_of_the_group)
{
	struct perf_event_attr attr = brs_attr(1009);
	struct perf_event_attr member = {
		.type = PERF_TYPE_HARDWARE, .size = sizeof(member),
		.config = PERF_COUNT_HW_INSTRUCTIONS, .sample_period = 5003,
		.sample_type = PERF_SAMPLE_READ, .read_format = PERF_FORMAT_GROUP,
		.exclude_kernel = 1,
	};
	struct perf_event_attr kernel = brs_plain_attr(0);
	size_t size = 2 * getpagesize();
	struct brs_limits limits;
	__u64 count, in_kernel;
	struct brs_tally t;
	struct brs_event e;
	int fd, kernel_fd;
	void *ring;

	REQUIRE_BRS();
	REQUIRE_ROOT();
	ASSERT_EQ(0, brs_open(&e, &attr, 0, -1, 1024));
	fd = brs_try(&member, 0, -1, e.fd);
	ASSERT_GE(fd, 0);
	/* count the kernel's branches, whose number depends on the load of the host */
	kernel.exclude_user = 1;
	kernel.disabled = 0;
	kernel_fd = brs_try(&kernel, 0, -1, e.fd);
	ASSERT_GE(kernel_fd, 0);
	/* map the ring buffer read-only, so that the kernel overwrites old records */
	ring = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, ring);

	/* keep the kernel from throttling the group: a throttled group does not count */
	ASSERT_TRUE(brs_limits_lift(&limits));
	brs_start(&e);
	brs_mix(200000);
	brs_stop(&e);
	brs_limits_restore(&limits);
	count = brs_count(e.fd);
	in_kernel = brs_count(kernel_fd);
	t = drain(&e);
	TH_LOG("%llu branches, at most %llu of the kernel, %lu samples",
	       (unsigned long long)count, (unsigned long long)in_kernel, t.samples);
	EXPECT_NE(0, ((struct perf_event_mmap_page *)ring)->data_head);
	/*
	 * brs_mix() takes 1600000 branches, and the kernel takes some more. Only the
	 * other event counts the kernel's branches in NMIs.
	 */
	EXPECT_GE(count, 1584000);
	EXPECT_LE(count, 1616000 + in_kernel);
	EXPECT_GE(t.samples, 100);
	munmap(ring, size);
	close(kernel_fd);
	close(fd);
	brs_close(&e);
}

TEST(b16_inherited_by_children)
{
	struct perf_event_attr attr = brs_attr(10007);
	struct brs_event e;
	pid_t child;
	int i;

	REQUIRE_BRS();
	brs_pin(0);
	attr.exclude_kernel = 1;
	attr.inherit = 1;
	/* an inherited event can have a ring buffer only if the event is bound to a CPU */
	ASSERT_EQ(0, brs_open(&e, &attr, 0, 0, 256));
	brs_start(&e);
	for (i = 0; i < 4; i++) {
		child = fork();
		if (!child) {
			brs_mix(100000);
			_exit(0);
		}
		ASSERT_GT(child, 0);
		waitpid(child, NULL, 0);
	}
	brs_stop(&e);
	EXPECT_GE(drain(&e).exact, 4 * 70);
	brs_close(&e);
}

#define SLOW_RATE	2000
#define SLOW_ROUNDS	20
/* Time in s after which a test of throttling gives up */
#define PATIENCE	60

FIXTURE(slow_rate)
{
	struct brs_limits limits;
};

FIXTURE_SETUP(slow_rate)
{
	char rate[16];

	memset(&self->limits, 0, sizeof(self->limits));
	REQUIRE_BRS();
	REQUIRE_ROOT();
	snprintf(rate, sizeof(rate), "%d", SLOW_RATE);
	ASSERT_TRUE(brs_limits_rate(&self->limits, rate));
}

FIXTURE_TEARDOWN(slow_rate)
{
	brs_limits_restore(&self->limits);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

TEST_F(slow_rate, b16_throttled_and_let_go_again)
{
	struct perf_event_attr attr = brs_attr(101), all = brs_plain_attr(0);
	struct brs_tally t = {};
	struct brs_event e;
	__u64 branches;
	double took;
	int fd;

	attr.exclude_kernel = 1;
	ASSERT_EQ(0, brs_open(&e, &attr, 0, -1, 1024));
	/* a plain event counts all branches, even while the BRS event is throttled */
	all.exclude_kernel = 1;
	all.disabled = 0;
	fd = brs_try(&all, 0, -1, -1);
	ASSERT_GE(fd, 0);

	branches = brs_count(fd);
	took = seconds();
	brs_start(&e);
	while (e.unthrottled < SLOW_ROUNDS && seconds() - took < PATIENCE) {
		brs_mix(20000);
		brs_drain(&e, &t);
	}
	brs_stop(&e);
	took = seconds() - took;
	branches = brs_count(fd) - branches;
	brs_drain(&e, &t);
	TH_LOG("%lu samples, %lu exact, %lu of other code", t.samples, t.exact, t.other);
	TH_LOG("%llu periods in %.0f ms; throttled %u times",
	       branches / 101, took * 1000, (unsigned int)e.throttled);
	EXPECT_GE(e.throttled, SLOW_ROUNDS);
	EXPECT_GE(e.unthrottled, SLOW_ROUNDS);
	EXPECT_LE(e.unthrottled, e.throttled);

	/*
	 * the rate allows a number of samples in each tick, rounded up; allow
	 * one tick more
	 */
	EXPECT_LE(t.samples, (took + 0.01) * SLOW_RATE * 1.1);
	EXPECT_GE(t.samples, e.throttled);
	EXPECT_LE(t.samples * 5, branches / 101);

	/*
	 * After each tick, the event takes some samples in direct succession.
	 * They show the code that the tick interrupted, which can be
	 * brs_drain().  The first stack after a tick can contain kernel branches
	 * from the end of the tick; filtering them out makes the stack shorter.
	 */
	EXPECT_EQ(0, t.wrong);
	EXPECT_GE(t.exact * 2, t.samples);
	EXPECT_GE(t.exact + t.other + e.throttled + 2, t.samples);
	close(fd);
	brs_close(&e);
}

TEST_F(slow_rate, b16_throttled_by_a_member_of_its_group)
{
	struct perf_event_attr attr = brs_attr(1009), member = brs_plain_attr(101), all;
	__u64 branches, counted;
	struct brs_tally t = {};
	struct brs_event e;
	double started;
	int fd, own;

	attr.exclude_kernel = 1;
	ASSERT_EQ(0, brs_open(&e, &attr, 0, -1, 1024));
	/* a group member without branch stacks, whose interrupts are throttled in each tick */
	member.exclude_kernel = 1;
	member.disabled = 0;
	fd = brs_try(&member, 0, -1, e.fd);
	ASSERT_GE(fd, 0);
	/* a plain event counts all branches, even while the group is throttled */
	all = member;
	all.sample_period = 0;
	own = brs_try(&all, 0, -1, -1);
	ASSERT_GE(own, 0);

	branches = brs_count(own);
	started = seconds();
	brs_start(&e);
	while (t.samples < 50 && seconds() - started < PATIENCE) {
		brs_mix(20000);
		brs_drain(&e, &t);
	}
	brs_stop(&e);
	branches = brs_count(own) - branches;
	counted = brs_count(fd);
	TH_LOG("%lu samples, %lu exact; %llu of %llu branches counted; throttled %u times",
	       t.samples, t.exact, counted, branches, (unsigned int)e.throttled);
	EXPECT_LE(counted * 5, branches);

	/* the kernel can throttle the whole group, and then must restart all its events */
	EXPECT_GE(t.samples, 50);
	EXPECT_EQ(0, t.wrong);
	/* a stack with kernel branches of the tick that restarts the group is not full */
	EXPECT_GE(t.full * 2, t.samples);
	close(own);
	close(fd);
	brs_close(&e);
}

FIXTURE(cgroup)
{
	char top[64], group[96];
	bool mounted;
};

FIXTURE_SETUP(cgroup)
{
	memset(self, 0, sizeof(*self));
	REQUIRE_BRS();
	REQUIRE_ROOT();
	snprintf(self->top, sizeof(self->top), "/tmp/brs-cgroup-XXXXXX");
	ASSERT_NE(NULL, mkdtemp(self->top));
	/*
	 * Try cgroup v1 first: perf_event is in cgroup2 on a system without v1, but
	 * can be missing from cgroup2 on a system with both versions.
	 */
	self->mounted = !mount("none", self->top, "cgroup", 0, "perf_event") ||
			!mount("none", self->top, "cgroup2", 0, NULL);
	if (!self->mounted)
		SKIP(return, "no cgroups");
	snprintf(self->group, sizeof(self->group), "%s/recorded", self->top);
	ASSERT_EQ(0, mkdir(self->group, 0755));
}

FIXTURE_TEARDOWN(cgroup)
{
	if (self->group[0])
		rmdir(self->group);
	if (self->mounted)
		umount(self->top);
	if (self->top[0])
		rmdir(self->top);
}

TEST_F(cgroup, b16_cgroup_event_has_its_own_tasks_only)
{
	struct perf_event_attr attr = brs_attr(1009);
	char path[128];
	struct places p = {};
	struct brs_sample s;
	struct brs_event e;
	int dir, fd, i;
	__u64 count;
	pid_t child;
	void *map;

	attr.exclude_kernel = 1;
	dir = open(self->group, O_RDONLY);
	ASSERT_GE(dir, 0);
	fd = syscall(SYS_perf_event_open, &attr, dir, 0, -1, PERF_FLAG_PID_CGROUP);
	ASSERT_GE(fd, 0) TH_LOG("%s", strerror(errno));
	memset(&e, 0, sizeof(e));
	e.size = 257 * getpagesize();
	map = mmap(NULL, e.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	e.fd = fd;
	e.page = map;
	e.sample_type = attr.sample_type;

	brs_pin(0);
	brs_start(&e);
	child = fork();
	if (!child) {
		snprintf(path, sizeof(path), "%s/cgroup.procs", self->group);
		if (!brs_write_file(path, "0"))
			_exit(1);
		for (i = 0; i < 2000; i++) {
			brs_body_a(50);
			sched_yield();
		}
		_exit(0);
	}
	ASSERT_GT(child, 0);
	for (i = 0; i < 2000; i++) {
		brs_body_b(50);
		sched_yield();
	}
	waitpid(child, &i, 0);
	EXPECT_EQ(0, i);
	brs_stop(&e);
	count = brs_count(e.fd);
	while (brs_next(&e, &s))
		place(&s, &p);
	TH_LOG("%u samples, %llu branches", p.samples, count);
	/* perf at times counts only a part of the child's branches, with any driver */
	EXPECT_GT(p.a, 100);
	EXPECT_GE(p.samples, count / attr.sample_period - 1);
	EXPECT_EQ(0, p.b);
	brs_close(&e);
	close(dir);
}

/*
 * Check that a processor that loses interrupts (see scripts/tests/brs-knobs) does
 * not stop the event for good. No other task runs long enough to make the kernel
 * restart the event that often.
 */
TEST(b19_event_of_a_busy_task_goes_on)
{
	struct perf_event_attr attr = brs_attr(10007);
	struct brs_tally t = {};
	struct brs_event e;
	int round;

	REQUIRE_BRS();
	attr.exclude_kernel = 1;
	ASSERT_EQ(0, brs_open(&e, &attr, 0, -1, 256));
	brs_start(&e);
	/*
	 * each round takes about one period; after a lost interrupt, samples are
	 * missing for the periods of about 10 ms
	 */
	for (round = 0; round < 40000 && t.samples < 1000; round++) {
		brs_mix(1250);
		brs_drain(&e, &t);
	}
	brs_stop(&e);
	TH_LOG("%lu samples in %d periods, %lu exact, %lu wrong", t.samples, round, t.exact,
	       t.wrong);
	EXPECT_GE(t.samples, 1000);
	EXPECT_GE(t.exact * 100, t.samples * 90);
	EXPECT_EQ(0, t.wrong);
	brs_close(&e);
}

TEST_HARNESS_MAIN
