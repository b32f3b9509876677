/* SPDX-License-Identifier: GPL-2.0 */
/* Event-based branches: the functions that the PMU driver calls, defined in ebb.c. */
#ifndef _POWERPC_PERF_EBB_H
#define _POWERPC_PERF_EBB_H

#include <linux/perf_event.h>
#include <asm/reg.h>

#ifdef CONFIG_PPC64

/* Bits of MMCR0 that give a thread EBBs, access to the BHRB and all PMCs */
#define EBB_MMCR0	(MMCR0_EBE | MMCR0_BHRBA | MMCR0_PMCC_U6)

/* Flags in hw_perf_event.flags */
#define EBB_EVENT	0x1	/* set for every EBB event */
#define EBB_ARMED	0x2	/* set for a group leader that has been on the PMU */

/**
 * ebb_is_event() - check whether an event is an EBB event
 * @event: an event of power_pmu, after ebb_check_event(); other PMUs use
 *	hw.flags for something else
 *
 * Return: true if @event is an EBB event.
 */
static inline bool ebb_is_event(const struct perf_event *event)
{
	return event->hw.flags & EBB_EVENT;
}

/**
 * ebb_check_set() - check whether events can be on the PMU together
 * @events: all events that are to be on the PMU
 * @n: the number of events; 0 if all hardware members of a group are disabled
 *
 * An EBB event and its group must be alone on the PMU.  Perf ensures this among
 * the events of one context.  But a pinned event of the CPU, which is in another
 * context, can already be on the PMU when a task with EBB events is switched in.
 *
 * Return: 0, or -EAGAIN if EBB events and plain events would be together.
 */
static inline int ebb_check_set(struct perf_event *const *events, int n)
{
	int i;

	for (i = 1; i < n; i++) {
		if (ebb_is_event(events[i]) != ebb_is_event(events[0]))
			return -EAGAIN;
	}

	return 0;
}

const char *ebb_refusal(const struct perf_event *event, u32 ppmu_flags);
int ebb_check_event(struct perf_event *event, u32 ppmu_flags);

void ebb_save_count(struct perf_event *event, unsigned long count);
unsigned long ebb_saved_count(const struct perf_event *event);

void __ebb_suspend(unsigned long mmcr0, const struct mmcr_regs *kernel);

/**
 * ebb_suspend() - save the current thread's part of the PMU while it is stopped
 * @mmcr0: MMCR0 before the PMU was stopped
 * @kernel: the PMU settings that the kernel has computed
 *
 * Clears the saved registers, except SIAR and SDAR, which power_pmu_disable()
 * clears in any case.  The counters are cleared when their events are removed
 * from the PMU.  Does nothing if the PMU did not belong to the current thread.
 *
 * Context: the PMU has just been stopped, interrupts disabled.
 */
static inline void ebb_suspend(unsigned long mmcr0, const struct mmcr_regs *kernel)
{
	/* A KVM guest may have left MMCR0[EBE] set: ask the kernel's settings, too */
	if (unlikely((mmcr0 & MMCR0_EBE) && (kernel->mmcr0 & MMCR0_EBE)))
		__ebb_suspend(mmcr0, kernel);
}

bool ebb_prepare(const struct perf_event *event, bool overflown);
unsigned long ebb_resume(struct mmcr_regs *kernel, struct perf_event *const *events,
			 int n);

unsigned long ebb_merge_mmcr0(unsigned long kernel, unsigned long user);
unsigned long ebb_mmcr3_mask(unsigned long kernel, unsigned long mmcr3);
unsigned long ebb_merge_mmcr3(unsigned long kernel, unsigned long user,
			      unsigned long mask);

extern const struct attribute_group ebb_format_group;

void __init ebb_register(struct pmu *pmu, u32 ppmu_flags);

#else /* 32-bit processors have no EBB: there, bit 63 of an event code has other meanings */

#define EBB_MMCR0	0
static inline bool ebb_is_event(const struct perf_event *event) { return false; }
static inline int ebb_check_set(struct perf_event *const *ev, int n) { return 0; }
static inline int ebb_check_event(struct perf_event *event, u32 flags) { return 0; }
static inline void ebb_save_count(struct perf_event *event, unsigned long count) { }
static inline unsigned long ebb_saved_count(const struct perf_event *event) { return 0; }
static inline void ebb_suspend(unsigned long mmcr0, const struct mmcr_regs *k) { }
static inline bool ebb_prepare(const struct perf_event *event, bool o) { return false; }
static inline unsigned long ebb_resume(struct mmcr_regs *k, struct perf_event *const *ev,
				       int n) { return k->mmcr0; }
static inline void ebb_register(struct pmu *pmu, u32 flags) { }

#endif

#endif /* _POWERPC_PERF_EBB_H */
