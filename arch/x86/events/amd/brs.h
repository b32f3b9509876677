/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _AMD_BRS_H
#define _AMD_BRS_H

struct event_constraint;
struct perf_event;
struct pt_regs;

/* Defined in core.c, the PMU driver */
void amd_pmu_expect_nmi(void);

#ifdef CONFIG_PERF_EVENTS_AMD_BRS

#include <linux/jump_label.h>

extern const struct attribute_group amd_brs_events_group;

/* Enabled on a machine with BRS: on other machines no code of the BRS driver runs */
DECLARE_STATIC_KEY_FALSE(amd_brs_key);

int amd_brs_init(void);
int amd_brs_hw_config(struct perf_event *event);
struct event_constraint *amd_brs_constraint(struct perf_event *event);
void amd_brs_reset(void);
void amd_brs_add(struct perf_event *event);
void amd_brs_del(struct perf_event *event);
bool __amd_brs_enable(struct perf_event *event);
void __amd_brs_disarm(void);
void __amd_brs_disable(void);
bool __amd_brs_active(void);
int amd_brs_handle_irq(struct pt_regs *regs);

/* amd_brs_enable() and the functions below are also called for PMUs without BRS */
static inline bool amd_brs_enable(struct perf_event *event)
{
	return !static_branch_unlikely(&amd_brs_key) || __amd_brs_enable(event);
}

static inline void amd_brs_disarm(void)
{
	if (static_branch_unlikely(&amd_brs_key))
		__amd_brs_disarm();
}

static inline void amd_brs_disable(void)
{
	if (static_branch_unlikely(&amd_brs_key))
		__amd_brs_disable();
}

static inline bool amd_brs_active(void)
{
	return static_branch_unlikely(&amd_brs_key) && __amd_brs_active();
}

#else

static inline int amd_brs_init(void)
{
	return -EOPNOTSUPP;
}

static inline int amd_brs_hw_config(struct perf_event *event)
{
	return -EOPNOTSUPP;
}

static inline struct event_constraint *
amd_brs_constraint(struct perf_event *event)
{
	return NULL;
}

static inline bool amd_brs_enable(struct perf_event *event)
{
	return true;
}

static inline bool amd_brs_active(void)
{
	return false;
}

static inline int amd_brs_handle_irq(struct pt_regs *regs)
{
	return 0;
}

static inline void amd_brs_reset(void) { }
static inline void amd_brs_add(struct perf_event *event) { }
static inline void amd_brs_del(struct perf_event *event) { }
static inline void amd_brs_disarm(void) { }
static inline void amd_brs_disable(void) { }

#endif /* CONFIG_PERF_EVENTS_AMD_BRS */

#endif /* _AMD_BRS_H */
