// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Test that the kernel can explain every rejected EBB event: with dynamic debug
 * enabled, the log names the rule that the event breaks, in the words of
 * Documentation/arch/powerpc/pmu-ebb.rst.
 */
#include "kselftest_harness.h"
#include <fcntl.h>
#include "ebb_test.h"

enum group {
	ALONE,
	EBB_GROUP,
	PLAIN_GROUP,
};

FIXTURE(rule)
{
	struct perf_event_attr attr;
	int kmsg;
	int leader;
};

/* A change to valid attributes that breaks a rule of EBB, and the rule in the log */
FIXTURE_VARIANT(rule)
{
	const char *words;
	void (*change)(struct perf_event_attr *attr);
	enum group group;
	bool on_cpu;
	bool no_driver;
};

static void no_pin(struct perf_event_attr *attr)
{
	attr->pinned = 0;
}

static void no_exclusion(struct perf_event_attr *attr)
{
	attr->exclusive = 0;
}

static void inheritance(struct perf_event_attr *attr)
{
	attr->inherit = 1;
}

static void frequency(struct perf_event_attr *attr)
{
	attr->freq = 1;
}

static void period(struct perf_event_attr *attr)
{
	attr->sample_period = 100000;
}

static void sample(struct perf_event_attr *attr)
{
	attr->sample_type = PERF_SAMPLE_IP;
}

static void on_exec(struct perf_event_attr *attr)
{
	attr->enable_on_exec = 1;
}

static void no_pmc(struct perf_event_attr *attr)
{
	attr->config = EBB_EVENT_EBB | CYCLES;
}

static void bhrb_alone(struct perf_event_attr *attr)
{
	attr->config = event_on(1) | EBB_EVENT_BHRB;
}

static void member(struct perf_event_attr *attr)
{
	attr->config = event_on(2) | EBB_EVENT_EBB;
	attr->pinned = 0;
	attr->exclusive = 0;
}

static void plain_member(struct perf_event_attr *attr)
{
	member(attr);
	attr->config &= ~EBB_EVENT_EBB;
}

/* This variant runs only on a machine whose PMU driver does not support EBB. */
FIXTURE_VARIANT_ADD(rule, driver) {
	.words = "the PMU driver gives no EBB", .no_driver = true,
};

FIXTURE_VARIANT_ADD(rule, pinned) {
	.words = "the group leader is not pinned", .change = no_pin,
};

FIXTURE_VARIANT_ADD(rule, exclusive) {
	.words = "the group leader is not exclusive", .change = no_exclusion,
};

FIXTURE_VARIANT_ADD(rule, inherit) {
	.words = "inherit is set", .change = inheritance,
};

FIXTURE_VARIANT_ADD(rule, freq) {
	.words = "freq is set", .change = frequency,
};

FIXTURE_VARIANT_ADD(rule, sample_period) {
	.words = "sample_period is set", .change = period,
};

FIXTURE_VARIANT_ADD(rule, sample_type) {
	.words = "sample_type is set", .change = sample,
};

FIXTURE_VARIANT_ADD(rule, enable_on_exec) {
	.words = "enable_on_exec is set", .change = on_exec,
};

FIXTURE_VARIANT_ADD(rule, task) {
	.words = "the event is not attached to a task", .on_cpu = true,
};

FIXTURE_VARIANT_ADD(rule, pmc) {
	.words = "the event code names no PMC", .change = no_pmc,
};

FIXTURE_VARIANT_ADD(rule, ebb_member) {
	.words = "the group does not ask for EBB", .change = member,
	.group = PLAIN_GROUP,
};

FIXTURE_VARIANT_ADD(rule, plain_member) {
	.words = "the group asks for EBB", .change = plain_member,
	.group = EBB_GROUP,
};

FIXTURE_VARIANT_ADD(rule, bhrb) {
	.words = "BHRB is asked for without EBB", .change = bhrb_alone,
};

/*
 * Write @query to the control file of dynamic debug. Return 1 on success, 0 if the
 * kernel rejected the query, and -1 without dynamic debug.
 */
static int control(const char *query)
{
	int fd, n;

	fd = open("/proc/dynamic_debug/control", O_WRONLY);
	if (fd < 0)
		fd = open("/sys/kernel/debug/dynamic_debug/control", O_WRONLY);
	if (fd < 0)
		return -1;
	n = write(fd, query, strlen(query));
	close(fd);
	return n > 0;
}

FIXTURE_SETUP(rule)
{
	struct perf_event_attr leader;

	self->kmsg = -1;
	self->leader = -1;
	if (variant->no_driver && ebb_available())
		SKIP(return, "this machine has event-based branches");
	if (!variant->no_driver && !ebb_available())
		SKIP(return, "no event-based branches on this machine");
	if (control("file arch/powerpc/perf/ebb.c +p\n") < 0)
		SKIP(return, "no dynamic debug");
	self->kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
	if (self->kmsg < 0)
		SKIP(return, "the kernel log cannot be read");
	ebb_attr(&self->attr, event_on(1));
	if (variant->group == ALONE)
		return;
	leader = self->attr;
	if (variant->group == PLAIN_GROUP)
		leader.config &= ~EBB_EVENT_EBB;
	self->leader = perf_open(&leader, 0, -1, -1);
	ASSERT_GE(self->leader, 0);
}

FIXTURE_TEARDOWN(rule)
{
	control("file arch/powerpc/perf/ebb.c -p\n");
	close(self->leader);
	close(self->kmsg);
}

static bool logged(int kmsg, const char *words)
{
	char record[8192];
	ssize_t n;

	for (;;) {
		n = read(kmsg, record, sizeof(record) - 1);
		if (n < 0 && (errno == EPIPE || errno == EINTR))
			continue;
		if (n <= 0)
			return false;
		record[n] = '\0';
		if (strstr(record, words))
			return true;
	}
}

TEST_F(rule, e16_refusal_is_explained)
{
	int fd;

	if (variant->change)
		variant->change(&self->attr);
	lseek(self->kmsg, 0, SEEK_END);
	fd = perf_open(&self->attr, variant->on_cpu ? -1 : 0,
		       variant->on_cpu ? nth_cpu(0) : -1, self->leader);
	EXPECT_LT(fd, 0);
	EXPECT_EQ(EINVAL, errno);
	EXPECT_TRUE(logged(self->kmsg, variant->words))
		TH_LOG("expected in the log: \"%s\"", variant->words);
}

TEST_HARNESS_MAIN
