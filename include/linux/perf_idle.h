/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hooks that tell the PMU driver when a CPU enters and leaves a low power state.
 *
 * The hooks are not in <linux/perf_event.h>, because headers with functions
 * that put a CPU to sleep, such as <asm/irqflags.h>, cannot include
 * <linux/perf_event.h>.
 */
#ifndef _LINUX_PERF_IDLE_H
#define _LINUX_PERF_IDLE_H

#include <linux/types.h>

#ifdef CONFIG_PERF_IDLE_HOOKS

#include <linux/jump_label.h>

#include <asm/perf_idle.h>

/*
 * Type of the function that a PMU driver registers. @enter is true before a low
 * power state and false after the low power state. The function runs on the CPU
 * that enters or leaves the state, possibly while RCU is not watching, and so must
 * be noinstr.
 */
typedef void (perf_idle_fn_t)(bool enter);

DECLARE_STATIC_KEY_FALSE(perf_idle_key);

/*
 * perf_idle() is called by arch_perf_idle() alone. Each architecture implements
 * the call so that code around a hook costs least while the hook is a NOP.
 */
void perf_idle(bool enter);

/**
 * perf_idle_enter - this CPU is about to stop executing instructions
 *
 * Call this hook before the instruction that starts a low power state, and before
 * the instructions that clear CPU buffers for that state, with interrupts
 * disabled.  The hook is a NOP unless an event that needs it is open.
 */
static __always_inline void perf_idle_enter(void)
{
	if (static_branch_unlikely(&perf_idle_key))
		arch_perf_idle(true);
}

/**
 * perf_idle_exit - this CPU executes instructions again
 *
 * Call this hook after the end of a low power state.  Interrupts may be enabled or
 * disabled.
 */
static __always_inline void perf_idle_exit(void)
{
	if (static_branch_unlikely(&perf_idle_key))
		arch_perf_idle(false);
}

void perf_idle_register(perf_idle_fn_t *fn);
void perf_idle_get(void);
void perf_idle_put(void);

#else /* CONFIG_PERF_IDLE_HOOKS */

static __always_inline void perf_idle_enter(void) { }
static __always_inline void perf_idle_exit(void) { }

#endif /* CONFIG_PERF_IDLE_HOOKS */

#endif /* _LINUX_PERF_IDLE_H */
