/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _AMD_BRS_H
#define _AMD_BRS_H

struct event_constraint;
struct perf_event;
struct pt_regs;

#ifdef CONFIG_PERF_EVENTS_AMD_BRS

extern const struct attribute_group amd_brs_events_group;

int amd_brs_init(void);
int amd_brs_hw_config(struct perf_event *event);
struct event_constraint *amd_brs_constraint(struct perf_event *event);
void amd_brs_reset(void);
void amd_brs_add(struct perf_event *event);
void amd_brs_del(struct perf_event *event);
void amd_brs_enable(struct perf_event *event);
void amd_brs_disarm(void);
void amd_brs_disable(void);
bool amd_brs_active(void);
int amd_brs_handle_irq(struct pt_regs *regs);

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
static inline void amd_brs_enable(struct perf_event *event) { }
static inline void amd_brs_disarm(void) { }
static inline void amd_brs_disable(void) { }

#endif /* CONFIG_PERF_EVENTS_AMD_BRS */

#endif /* _AMD_BRS_H */
