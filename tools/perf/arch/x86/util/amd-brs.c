// SPDX-License-Identifier: GPL-2.0
/*
 * AMD Branch Sampling (BRS): branch stacks on Zen3.
 *
 * See Documentation/admin-guide/perf/amd-brs.rst for what it can do.
 */
#include <limits.h>
#include <string.h>
#include <linux/bits.h>
#include <linux/kernel.h>
#include "util/debug.h"
#include "util/evlist.h"
#include "util/evsel.h"
#include "util/parse-events.h"
#include "util/pmu.h"
#include "util/pmus.h"
#include "util/record.h"
#include "amd-brs.h"
#include "cpuid.h"
#include "env.h"

#define BRS_EVENT		"branch-brs"
#define BRS_DEPTH		16

/*
 * A prime, so that no loop keeps in step with it.  At the 10^9 taken branches
 * a second of a busy CPU it makes about as many samples as perf's usual
 * frequency of 4000 Hz.
 */
#define BRS_DEFAULT_PERIOD	250007

/* CPUID Fn8000_0008_EBX: BRS; Fn8000_0022_EAX: LBRv2 */
#define CPUID_FEATURES		0x80000008
#define CPUID_FEATURES_BRS	BIT(31)
#define CPUID_PERFMON		0x80000022
#define CPUID_PERFMON_LBR_V2	BIT(1)

/* Whether the kernel has the event that only its BRS driver brings. */
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
 * amd_brs__missing_strerror - say why there is no BRS on this machine
 * @msg: where the message goes
 * @size: its room
 *
 * Returns the length of the message, 0 if BRS is there.
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
 * cycles, the usual event, is sampled at a frequency, which BRS cannot do.  An
 * -F of the user's is left to fail, and explained then.
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

static bool other_member_has_stack(struct evsel *evsel)
{
	struct evsel *member;

	for_each_group_evsel(member, evsel__leader(evsel)) {
		if (member != evsel &&
		    member->core.attr.sample_type & PERF_SAMPLE_BRANCH_STACK)
			return true;
	}
	return false;
}

/**
 * amd_brs__open_strerror - say why the kernel refused a branch stack
 * @evsel: the event that it refused with EINVAL or EOPNOTSUPP
 * @msg: where the message goes
 * @size: its room
 *
 * Returns the length of the message, 0 if BRS had no part in it.
 */
int amd_brs__open_strerror(struct evsel *evsel, char *msg, size_t size)
{
	const u64 no_such_filter = PERF_SAMPLE_BRANCH_ABORT_TX | PERF_SAMPLE_BRANCH_IN_TX |
				   PERF_SAMPLE_BRANCH_NO_TX | PERF_SAMPLE_BRANCH_COUNTERS;
	const u64 not_a_filter = PERF_SAMPLE_BRANCH_PLM_ALL | PERF_SAMPLE_BRANCH_ANY;
	struct perf_event_attr *attr = &evsel->core.attr;
	struct perf_pmu *pmu = evsel__find_pmu(evsel);
	const char *name = evsel__name(evsel);

	if (!(attr->sample_type & PERF_SAMPLE_BRANCH_STACK))
		return 0;
	if (!amd_brs__usable())
		return cpu_has_lbr_v2() ? 0 : amd_brs__missing_strerror(msg, size);

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
	if (attr->freq)
		return scnprintf(msg, size,
	"%s: Branch sampling (BRS) needs a fixed period, not a frequency. Use a count, like '-c %d', instead of -F.",
				 name, BRS_DEFAULT_PERIOD);
	if (!attr->sample_period)
		return scnprintf(msg, size,
	"%s: Branch sampling (BRS) needs an event that samples. Give it a period with -c.",
				 name);
	if (attr->sample_period <= BRS_DEPTH)
		return scnprintf(msg, size,
	"%s: The period %llu is too short for branch sampling (BRS), which records %d branches a sample. Use '-c %d' or more.",
				 name, attr->sample_period, BRS_DEPTH, BRS_DEPTH + 1);
	if (attr->sample_period >> 63)
		return scnprintf(msg, size,
	"%s: The period %llu has more than 63 bits. Use a smaller count with -c.",
				 name, attr->sample_period);
	if (attr->precise_ip && !evsel->precise_max)
		return scnprintf(msg, size,
	"%s: Branch sampling (BRS) cannot be combined with a precise event. Drop the 'p' modifier.",
				 name);
	if (other_member_has_stack(evsel))
		return scnprintf(msg, size,
	"%s: Branch sampling (BRS) has one counter. Take the events with branch stacks out of the group.",
				 name);
	if (attr->branch_sample_type & ~not_a_filter)
		return scnprintf(msg, size,
	"%s: This kernel does not select branches by type. Use 'any', alone or with u or k, as branch filter.",
				 name);
	if (!strstr(name, BRS_EVENT))
		return scnprintf(msg, size,
	"%s: This kernel records branches with one event only. Use '-e " BRS_EVENT "'.",
				 name);
	return 0;
}
