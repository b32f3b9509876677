// SPDX-License-Identifier: GPL-2.0
/*
 * AMD Branch Sampling (BRS): branch stacks on Zen3.
 *
 * Documentation/admin-guide/perf/amd-brs.rst describes BRS and its limits.
 */
#include <limits.h>
#include <string.h>
#include <unistd.h>
#include <linux/bits.h>
#include <linux/kernel.h>
#include "util/cloexec.h"
#include "util/debug.h"
#include "util/env.h"
#include "util/evlist.h"
#include "util/evsel.h"
#include "util/parse-events.h"
#include "util/pmu.h"
#include "util/pmus.h"
#include "util/record.h"
#include "util/sample-loss.h"
#include "perf-sys.h"
#include "amd-brs.h"
#include "cpuid.h"

#define BRS_EVENT		"branch-brs"
#define BRS_EVENT_CODE		0xc4
#define BRS_DEPTH		16

/*
 * The default period is a prime number, so that it is not a multiple of the number
 * of branches in a loop.  On a busy CPU with 10^9 taken branches a second, this
 * period gives about as many samples as perf's default frequency of 4000 Hz.
 */
#define BRS_DEFAULT_PERIOD	250007

/* CPUID bits: BRS is in Fn8000_0008_EBX, LBRv2 is in Fn8000_0022_EAX */
#define CPUID_FEATURES		0x80000008
#define CPUID_FEATURES_BRS	BIT(31)
#define CPUID_PERFMON		0x80000022
#define CPUID_PERFMON_LBR_V2	BIT(1)

/* Check for the event branch-brs of the kernel, which only the BRS driver adds. */
bool amd_brs__usable(void)
{
	struct perf_pmu *pmu = x86__is_amd_cpu() ? perf_pmus__find("cpu") : NULL;

	return pmu && perf_pmu__have_event(pmu, BRS_EVENT);
}

static unsigned int cpuid_max_extended(void)
{
	unsigned int eax, ebx, ecx = 0, edx;

	cpuid(0x80000000, 0, &eax, &ebx, &ecx, &edx);
	return eax;
}

static bool cpu_has_brs(void)
{
	unsigned int eax, ebx = 0, ecx, edx;

	if (cpuid_max_extended() >= CPUID_FEATURES)
		cpuid(CPUID_FEATURES, 0, &eax, &ebx, &ecx, &edx);
	return ebx & CPUID_FEATURES_BRS;
}

static bool cpu_has_lbr_v2(void)
{
	unsigned int eax = 0, ebx, ecx, edx;

	if (cpuid_max_extended() >= CPUID_PERFMON)
		cpuid(CPUID_PERFMON, 0, &eax, &ebx, &ecx, &edx);
	return eax & CPUID_PERFMON_LBR_V2;
}

/**
 * amd_brs__missing_strerror - explain why BRS is not available on this machine
 * @msg: buffer for the message
 * @size: size of the buffer in bytes
 *
 * Return: the length of the message, 0 if BRS is available.
 */
int amd_brs__missing_strerror(char *msg, size_t size)
{
	if (amd_brs__usable())
		return 0;
	if (!x86__is_amd_cpu())
		return scnprintf(msg, size,
	"branch-brs is an event of AMD Zen3 only. 'perf record -b' takes the default event.");
	if (cpu_has_lbr_v2())
		return scnprintf(msg, size,
	"This CPU records branches by LBRv2, not BRS, and with any event. Leave out branch-brs and use 'perf record -b'.");
	if (cpu_has_brs())
		return scnprintf(msg, size,
	"This CPU has Branch Sampling (BRS), but its kernel does not. Use one that is built with CONFIG_PERF_EVENTS_AMD_BRS.");
	return scnprintf(msg, size,
	"This CPU records no branches: AMD CPUs do so from Zen3 (BRS) and Zen4 (LBRv2) on, and virtual machines mostly hide it. Leave out branch-brs and the branch options.");
}

char *arch_parse_events__missing_event(const char *name)
{
	char msg[256];

	if (strcasecmp(name, BRS_EVENT) || !amd_brs__missing_strerror(msg, sizeof(msg)))
		return NULL;
	return strdup(msg);
}

/*
 * perf's default event, cycles, is sampled at a frequency, which BRS cannot do.
 * If the user asks for a frequency with -F, the kernel rejects the event, and
 * amd_brs__open_strerror() explains why.
 */
const char *arch_record__branch_event(struct record_opts *opts, bool user_only)
{
	if (!opts->branch_stack || opts->user_freq != UINT_MAX || !amd_brs__usable())
		return NULL;

	if (opts->user_interval == ULLONG_MAX) {
		opts->user_interval = BRS_DEFAULT_PERIOD;
		pr_info("Branch sampling (BRS) needs a fixed period: recording " BRS_EVENT
			" every %d taken branches. Choose another period with -c.\n",
			BRS_DEFAULT_PERIOD);
	} else {
		pr_info("Branch sampling (BRS): recording " BRS_EVENT ".\n");
	}
	return user_only ? BRS_EVENT ":u" : BRS_EVENT;
}

static bool has_branch_stack(const struct evsel *evsel)
{
	return evsel->core.attr.sample_type & PERF_SAMPLE_BRANCH_STACK;
}

/**
 * amd_brs__config - complete the attributes of an event with branch stacks
 * @attr: the attributes
 *
 * All events with branch stacks share one counter.  Ask the kernel how long an
 * event was enabled, and how long it had the counter.
 */
void amd_brs__config(struct perf_event_attr *attr)
{
	if (attr->sample_type & PERF_SAMPLE_BRANCH_STACK && amd_brs__usable())
		attr->read_format |= PERF_FORMAT_TOTAL_TIME_ENABLED |
				     PERF_FORMAT_TOTAL_TIME_RUNNING;
}

const char *arch_evsel__sharing_hint(struct evsel *evsel)
{
	if (!has_branch_stack(evsel) || !amd_brs__usable())
		return NULL;
	return "Branch sampling (BRS) has one counter, and events of CPUs (-a, -C) come first.\n"
	       "Record one event with branches at a time.";
}

static bool other_member_has_stack(struct evsel *evsel)
{
	struct evsel *member;

	for_each_group_evsel(member, evsel__leader(evsel)) {
		if (member != evsel && has_branch_stack(member))
			return true;
	}
	return false;
}

/* Check that perf_event_open() accepts a disabled event of this process. */
static bool kernel_takes(struct perf_event_attr attr)
{
	int fd;

	attr.disabled = 1;
	attr.enable_on_exec = 0;
	fd = sys_perf_event_open(&attr, 0, -1, -1, perf_event_open_cloexec_flag());
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/* The least attributes of an event of the core PMU that samples in user mode only. */
static struct perf_event_attr plain_event(u32 type, u64 config)
{
	return (struct perf_event_attr) {
		.size		= sizeof(struct perf_event_attr),
		.type		= type,
		.config		= config,
		.sample_period	= BRS_DEFAULT_PERIOD,
		.exclude_kernel	= 1,
		.exclude_hv	= 1,
	};
}

static bool kernel_records(struct perf_event_attr attr, u64 kind)
{
	attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_USER | kind;
	return kernel_takes(attr);
}

/* Explain the attributes of a single event that every kernel with BRS rejects. */
static int refused_by_rule(struct evsel *evsel, char *msg, size_t size)
{
	const u64 no_such_filter = PERF_SAMPLE_BRANCH_ABORT_TX | PERF_SAMPLE_BRANCH_IN_TX |
				   PERF_SAMPLE_BRANCH_NO_TX | PERF_SAMPLE_BRANCH_COUNTERS;
	struct perf_event_attr *attr = &evsel->core.attr;
	u64 levels = attr->branch_sample_type & PERF_SAMPLE_BRANCH_PLM_ALL;
	struct perf_pmu *pmu = evsel__find_pmu(evsel);
	const char *name = evsel__name(evsel);
	bool is_brs = strstr(name, BRS_EVENT);

	if (attr->precise_ip && !evsel->precise_max)
		return scnprintf(msg, size,
	"%s: Branch sampling (BRS) cannot be combined with a precise event. Drop the 'p' modifier%s.",
				 name, attr->freq ? ", and give a fixed period with -c" : "");
	if (pmu && !pmu->is_core)
		return scnprintf(msg, size,
	"%s: Only events of the CPU's core PMU can have branch stacks. Use '-e " BRS_EVENT "'.",
				 name);
	if (attr->branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK)
		return scnprintf(msg, size,
	"%s: Branch sampling (BRS) cannot record call stacks. Use '--call-graph fp' or '--call-graph dwarf'.",
				 name);
	if (attr->branch_sample_type & no_such_filter)
		return scnprintf(msg, size,
	"%s: Branch sampling (BRS) knows no transactions and no event counts of branches. Drop in_tx, no_tx, abort_tx and counter from the branch filter.",
				 name);
	if (levels == PERF_SAMPLE_BRANCH_HV)
		return scnprintf(msg, size,
	"%s: Branch sampling (BRS) records branches of user and kernel, not of a hypervisor. Use u or k instead of hv in the branch filter.",
				 name);
	if (!levels && attr->exclude_user && attr->exclude_kernel)
		return scnprintf(msg, size,
	"%s: Branch sampling (BRS) records branches of user and kernel, not of a hypervisor. Use the modifier u or k.",
				 name);
	if (attr->freq)
		return scnprintf(msg, size,
	"%s: Branch sampling (BRS) needs a fixed period, not a frequency. Use '%s-c %d'.",
				 name, is_brs ? "" : "-e " BRS_EVENT " ", BRS_DEFAULT_PERIOD);
	if (!attr->sample_period)
		return scnprintf(msg, size,
	"%s: Branch sampling (BRS) needs an event that samples, and this one counts only. Give it a period with -c, or take the branch options away from it.",
				 name);
	if (attr->sample_period <= BRS_DEPTH)
		return scnprintf(msg, size,
	"%s: The period %llu is too short for branch sampling (BRS), which records %d branches a sample. Use '-c %d' or more.",
				 name, attr->sample_period, BRS_DEPTH, BRS_DEPTH + 1);
	if (attr->sample_period >> 63)
		return scnprintf(msg, size,
	"%s: The period %llu has more than 63 bits. Use a smaller count with -c.",
				 name, attr->sample_period);
	return 0;
}

/*
 * Explain attributes that some kernels reject and other kernels accept.  The BRS
 * driver that came with Linux 5.19 accepts one event only and no branch types.  Try
 * these attributes on the running kernel instead of guessing its version.
 */
static int refused_by_this_kernel(struct evsel *evsel, char *msg, size_t size)
{
	const u64 not_a_kind = PERF_SAMPLE_BRANCH_PLM_ALL | PERF_SAMPLE_BRANCH_ANY;
	struct perf_event_attr *attr = &evsel->core.attr;
	struct perf_event_attr brs = plain_event(PERF_TYPE_RAW, BRS_EVENT_CODE);
	struct perf_event_attr other = plain_event(attr->type, attr->config);
	u64 kind = attr->branch_sample_type & ~not_a_kind;

	if (!kernel_records(brs, PERF_SAMPLE_BRANCH_ANY))
		return 0;
	if (kind && !kernel_records(brs, kind))
		return scnprintf(msg, size,
	"%s: This kernel does not select branches by type. Use 'any', alone or with u or k, as branch filter.",
				 evsel__name(evsel));
	if (kernel_takes(other) && !kernel_records(other, PERF_SAMPLE_BRANCH_ANY))
		return scnprintf(msg, size,
	"%s: This kernel records branches with one event only. Use '-e " BRS_EVENT "'.",
				 evsel__name(evsel));
	return 0;
}

/* Explain groups that the kernel rejects because BRS works with counter 0 alone. */
static int refused_in_group(struct evsel *evsel, char *msg, size_t size)
{
	bool other_has_stack = other_member_has_stack(evsel);

	if (evsel__leader(evsel)->core.nr_members < 2 ||
	    !(has_branch_stack(evsel) || other_has_stack))
		return 0;
	if (has_branch_stack(evsel) && other_has_stack)
		return scnprintf(msg, size,
	"%s: Branch sampling (BRS) has one counter. Take the events with branch stacks out of the group, or let one of them lead and the others count ('{...}:S').",
				 evsel__name(evsel));
	if (kernel_takes(evsel->core.attr))
		return scnprintf(msg, size,
	"%s: There are not enough counters for this group, whose event with branch stacks takes the one counter of branch sampling (BRS). Take events out of the group.",
				 evsel__name(evsel));
	return 0;
}

/**
 * amd_brs__open_strerror - explain why the kernel rejected a branch stack
 * @evsel: the event that the kernel rejected with EINVAL, EOPNOTSUPP or, on a CPU with IBS, ENOENT
 * @msg: buffer for the message
 * @size: size of the buffer in bytes
 *
 * Return: the length of the message, 0 if BRS is not the reason or the reason is
 * not known.
 */
int amd_brs__open_strerror(struct evsel *evsel, char *msg, size_t size)
{
	int ret = 0;

	if (!amd_brs__usable()) {
		if (!has_branch_stack(evsel) || cpu_has_lbr_v2())
			return 0;
		return amd_brs__missing_strerror(msg, size);
	}

	if (has_branch_stack(evsel))
		ret = refused_by_rule(evsel, msg, size);
	if (!ret)
		ret = refused_in_group(evsel, msg, size);
	if (!ret && has_branch_stack(evsel))
		ret = refused_by_this_kernel(evsel, msg, size);
	return ret;
}
