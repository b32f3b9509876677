/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Event-based branches: what the PMU driver calls, see ebb.c.
 */
#ifndef _POWERPC_PERF_EBB_H
#define _POWERPC_PERF_EBB_H

#include <linux/perf_event.h>

#ifdef CONFIG_PPC64

/* What a thread with EBB can have of MMCR0: delivery, all six PMCs, the BHRB */
#define EBB_MMCR0	(MMCR0_EBE | MMCR0_PMCC_U6 | MMCR0_BHRBA)

void __init ebb_register(struct pmu *pmu, u32 ppmu_flags);

bool event_is_ebb(const struct perf_event *event);
const char *ebb_refusal(const struct perf_event *event, u32 ppmu_flags);
int ebb_check_event(const struct perf_event *event, u32 ppmu_flags);
int ebb_check_set(struct perf_event *const *events, int n);

void ebb_grant(struct mmcr_regs *kernel, struct perf_event *const *events, int n);
void ebb_withdraw(struct mmcr_regs *kernel, u32 ppmu_flags);
void ebb_suspend(unsigned long mmcr0, const struct mmcr_regs *kernel, u32 ppmu_flags);
unsigned long ebb_resume(struct mmcr_regs *kernel, struct perf_event *const *events,
			 int n, u32 ppmu_flags);
bool ebb_exception_unlatched(void);

unsigned long ebb_user_mmcr0(unsigned long live, unsigned long kernel);
unsigned long ebb_user_mmcr2(unsigned long live, unsigned long kernel);
unsigned long ebb_merge_mmcr0(unsigned long kernel, unsigned long user);
unsigned long ebb_merge_mmcr2(unsigned long kernel, unsigned long user);

#else /* 32-bit: bit 63 is the driver's own, nothing is ever an EBB event */

#define EBB_MMCR0	0
static inline void ebb_register(struct pmu *pmu, u32 flags) { }
static inline bool event_is_ebb(const struct perf_event *event) { return false; }
static inline int ebb_check_event(const struct perf_event *event, u32 flags) { return 0; }
static inline int ebb_check_set(struct perf_event *const *ev, int n) { return 0; }
static inline void ebb_grant(struct mmcr_regs *k, struct perf_event *const *ev, int n) { }
static inline void ebb_withdraw(struct mmcr_regs *k, u32 flags) { }
static inline void ebb_suspend(unsigned long mmcr0, const struct mmcr_regs *k, u32 flags) { }
static inline unsigned long ebb_resume(struct mmcr_regs *k, struct perf_event *const *ev,
				       int n, u32 flags) { return k->mmcr0; }
static inline bool ebb_exception_unlatched(void) { return false; }

#endif

#endif /* _POWERPC_PERF_EBB_H */
