/*
 * Counters of what an emulated performance monitor did
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef SYSTEM_PMU_STATS_H
#define SYSTEM_PMU_STATS_H

#include "hw/core/cpu.h"

#define TYPE_PMU_STATS "pmu-stats"

/**
 * pmu_stats_register: make the counters of one CPU known
 * @cs: the CPU
 * @names: @n names, in the order of @values; they become JSON keys and
 *         must stay valid until QEMU ends
 * @values: @n counters, which the caller goes on incrementing
 * @n: how many
 *
 * To be called once, when a CPU with a PMU model is realized.  The counters
 * are plain memory that only the CPU's own thread writes.  They are read by
 * that thread, or when the CPU does not run: when the object is deleted,
 * QEMU ends, or pmu_stats_unregister() is called.
 *
 * Context: big QEMU lock held.
 */
void pmu_stats_register(CPUState *cs, const char *const *names,
                        const uint64_t *values, size_t n);

/**
 * pmu_stats_set_refresh: have a CPU's counters brought up to date
 * @cs: a CPU that has been registered
 * @refresh: called before the counters are read for the last time
 *
 * For a model that does not keep all its counters current.
 *
 * Context: big QEMU lock held; so when @refresh is called, by the CPU's own
 * thread or while the CPU does not run.
 */
void pmu_stats_set_refresh(CPUState *cs, void (*refresh)(CPUState *cs));

/**
 * pmu_stats_unregister: keep the last values of a CPU that goes away
 * @cs: the CPU
 *
 * To be called when a CPU that was registered is unrealized.  The values of
 * that moment appear in the output.
 *
 * Context: big QEMU lock held.
 */
void pmu_stats_unregister(CPUState *cs);

/**
 * pmu_stats_want_insns: are executed instructions to be counted?
 *
 * For counters of all that is executed, which are not free: a model may leave
 * them at zero while this is false.  They are asked for by the object's
 * property "insns".  The answer is settled before the first CPU is created,
 * unless an object is added by a monitor command.
 */
bool pmu_stats_want_insns(void);

#endif
