/*
 * Statistics of emulated performance monitors, for the object pmu-stats
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef SYSTEM_PMU_STATS_H
#define SYSTEM_PMU_STATS_H

#include "hw/core/cpu.h"

#define TYPE_PMU_STATS "pmu-stats"

/**
 * pmu_stats_register: make the counters of one CPU known to pmu-stats
 * @cs: the CPU
 * @names: @n names, in the order of @values; the names become JSON keys and
 *         must stay valid until QEMU ends
 * @values: @n counters, which the caller goes on incrementing
 * @n: number of counters
 *
 * To be called once, when a CPU with a PMU model is realized.  The counters
 * are plain memory that only the CPU's own thread writes.  They are read by
 * that thread, or when the CPU does not run: when the pmu-stats object is
 * deleted, QEMU ends, or pmu_stats_unregister() is called.
 *
 * Context: big QEMU lock held.
 */
void pmu_stats_register(CPUState *cs, const char *const *names,
                        const uint64_t *values, size_t n);

/**
 * pmu_stats_set_refresh: set the function that updates a CPU's counters
 * @cs: a CPU that pmu_stats_register() has been called for
 * @refresh: a function that brings the counters of @cs up to date
 *
 * For a PMU model that does not keep all its counters current.  @refresh is
 * called each time before the counters of @cs are read, by the CPU's own
 * thread or while the CPU does not run.
 *
 * Context: big QEMU lock held, also when @refresh is called.
 */
void pmu_stats_set_refresh(CPUState *cs, void (*refresh)(CPUState *cs));

/**
 * pmu_stats_unregister: keep the last counters of a CPU that is unplugged
 * @cs: the CPU
 *
 * To be called when a CPU that pmu_stats_register() was called for is
 * unrealized.  The output of pmu-stats contains the values at that moment.
 *
 * Context: big QEMU lock held.
 */
void pmu_stats_unregister(CPUState *cs);

/**
 * pmu_stats_want_insns: return whether to count executed instructions
 *
 * Counting all executed instructions slows the guest down, so a PMU model
 * can leave these counters at zero while this function returns false.  The
 * user asks for them by the property "insns" of the pmu-stats object.  The
 * answer does not change after the first CPU has been created, unless a
 * pmu-stats object is added or deleted by a monitor command.
 */
bool pmu_stats_want_insns(void);

#endif
