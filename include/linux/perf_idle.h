/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a PMU has to do around the low power states of a CPU.
 *
 * A header of its own, because the places that put a CPU to sleep are low level
 * ones, which cannot include <linux/perf_event.h>.
 */
#ifndef _LINUX_PERF_IDLE_H
#define _LINUX_PERF_IDLE_H

#include <linux/types.h>

#ifdef CONFIG_PERF_IDLE_HOOKS

#include <linux/jump_label.h>

#include <asm/perf_idle.h>

/*
 * Called with @enter set ahead of a low power state and clear behind it, on the
 * CPU in question and where RCU may not be watching: has to be noinstr.
 */
typedef void (perf_idle_fn_t)(bool enter);

DECLARE_STATIC_KEY_FALSE(perf_idle_key);

/*
 * For arch_perf_idle(), which is to call this in the way that costs the code
 * around a hook least as long as the hook is a NOP.
 */
void perf_idle(bool enter);

/**
 * perf_idle_enter - this CPU is about to stop executing instructions
 *
 * Goes ahead of the instruction that starts a low power state, and ahead of what
 * clears CPU buffers for that state.  Called with interrupts disabled.  A NOP
 * unless an event is open that needs it.
 */
static __always_inline void perf_idle_enter(void)
{
	if (static_branch_unlikely(&perf_idle_key))
		arch_perf_idle(true);
}

/**
 * perf_idle_exit - this CPU executes instructions again
 *
 * Goes behind a low power state.  Interrupts may be enabled or disabled.
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
