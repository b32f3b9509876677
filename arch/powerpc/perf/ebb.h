/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Event-based branches: what the PMU driver calls, see ebb.c.
 */
#ifndef _POWERPC_PERF_EBB_H
#define _POWERPC_PERF_EBB_H

#include <linux/perf_event.h>
#include <asm/cpu_has_feature.h>
#include <asm/reg.h>

#ifdef CONFIG_PPC64

/* What a thread with EBB can have of MMCR0: delivery, all six PMCs, the BHRB */
#define EBB_MMCR0	(MMCR0_EBE | MMCR0_PMCC_U6 | MMCR0_BHRBA)

/* In hw_perf_event.flags */
#define EBB_EVENT	0x1	/* the event was opened as an EBB event */
#define EBB_LEADER	0x2	/* it was opened as the leader of a group of such */
#define EBB_ARMED	0x4	/* a leader's: its EBBs have been armed once */
#define EBB_BHRB	0x8	/* the event asked for the BHRB, too */

/**
 * event_is_ebb() - is this an EBB event that the PMU delivers?
 * @event: an event of power_pmu, after ebb_check_event(); others use the same
 *	bytes for something else
 *
 * Return: true if it is.
 */
static inline bool event_is_ebb(const struct perf_event *event)
{
	return event->hw.flags & EBB_EVENT;
}

void __init ebb_register(struct pmu *pmu, u32 ppmu_flags);

const char *ebb_refusal(const struct perf_event *event, u32 ppmu_flags);
int ebb_check_event(struct perf_event *event, u32 ppmu_flags);
int __ebb_check_set(struct perf_event *const *events, int n);

/**
 * ebb_check_set() - may these events be on the PMU together?
 * @events: all that are to be on the PMU
 * @n: how many; none where all members of a software event's group are off
 *
 * EBB events share the PMU with nobody but their own group.  Members whose
 * leader was closed are groups of their own, neither pinned nor exclusive any
 * more, and stay off.
 *
 * Return: 0, or -EAGAIN: not now.
 */
static inline int ebb_check_set(struct perf_event *const *events, int n)
{
	if (n > 1)
		return __ebb_check_set(events, n);

	if (n && (events[0]->hw.flags & (EBB_EVENT | EBB_LEADER)) == EBB_EVENT)
		return -EAGAIN;
	return 0;
}

/**
 * ebb_clear_pmcs() - leave nothing in the counters for whom they belong to next
 *
 * An EBB user has all six of them, whichever his events are on.
 *
 * Context: the PMU is stopped, interrupts disabled.
 */
static inline void ebb_clear_pmcs(void)
{
	mtspr(SPRN_PMC1, 0);
	mtspr(SPRN_PMC2, 0);
	mtspr(SPRN_PMC3, 0);
	mtspr(SPRN_PMC4, 0);
	mtspr(SPRN_PMC5, 0);
	mtspr(SPRN_PMC6, 0);
}

void __ebb_suspend(unsigned long mmcr0, const struct mmcr_regs *kernel);
unsigned long ebb_resume(struct mmcr_regs *kernel, struct perf_event *const *events,
			 int n);
bool __ebb_exception_unlatched(const struct perf_event *leader);

/**
 * ebb_exception_unlatched() - is there an alert that the processor will forget?
 * @leader: the first event on the PMU
 *
 * An alert that has reached BESCR[PMEO] is delivered from there and moves with
 * BESCR.  One that is in MMCR0[PMAO] only depends on the PMU making the
 * exception again, which POWER8E cannot do by itself.
 *
 * Context: the PMU is stopped, interrupts disabled, before ebb_resume().
 * Return: true if there is one.
 */
static inline bool ebb_exception_unlatched(const struct perf_event *leader)
{
	return cpu_has_feature(CPU_FTR_PMAO_BUG) && __ebb_exception_unlatched(leader);
}

/**
 * ebb_suspend() - take the PMU back and keep the user's part while it is stopped
 * @mmcr0: what MMCR0 held before the PMU was stopped
 * @kernel: the PMU's settings
 *
 * Nothing of the user's part stays in the registers.  SIAR and SDAR are cleared
 * whenever the PMU stops, the counters when the last event leaves it.  Does
 * nothing if the PMU was not the current thread's.
 *
 * Context: the PMU has just been stopped, interrupts disabled.
 */
static inline void ebb_suspend(unsigned long mmcr0, const struct mmcr_regs *kernel)
{
	if (unlikely(mmcr0 & MMCR0_EBE))
		__ebb_suspend(mmcr0, kernel);
}

unsigned long ebb_merge_mmcr0(unsigned long kernel, unsigned long user);

#else /* 32-bit: bit 63 is the driver's own, nothing is ever an EBB event */

#define EBB_MMCR0	0
static inline void ebb_register(struct pmu *pmu, u32 flags) { }
static inline bool event_is_ebb(const struct perf_event *event) { return false; }
static inline int ebb_check_event(struct perf_event *event, u32 flags) { return 0; }
static inline int ebb_check_set(struct perf_event *const *ev, int n) { return 0; }
static inline void ebb_clear_pmcs(void) { }
static inline void ebb_suspend(unsigned long mmcr0, const struct mmcr_regs *k) { }
static inline unsigned long ebb_resume(struct mmcr_regs *k, struct perf_event *const *ev,
				       int n) { return k->mmcr0; }
static inline bool ebb_exception_unlatched(const struct perf_event *leader) { return false; }

#endif

#endif /* _POWERPC_PERF_EBB_H */
