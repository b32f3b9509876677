// SPDX-License-Identifier: GPL-2.0
/*
 * Hooks for PMUs that cannot be left running while their CPU sleeps.
 */
#include <linux/export.h>
#include <linux/perf_idle.h>
#include <linux/static_call.h>

DEFINE_STATIC_KEY_FALSE(perf_idle_key);
EXPORT_SYMBOL_GPL(perf_idle_key);

DEFINE_STATIC_CALL_NULL(perf_idle, perf_idle_fn_t);

/* Out of line, so that modules which put a CPU to sleep need just one symbol */
noinstr void __perf_idle(bool enter)
{
	static_call_cond(perf_idle)(enter);
}
EXPORT_SYMBOL_GPL(__perf_idle);

/**
 * perf_idle_register - say what is to be done around low power states
 * @fn: the function to call
 *
 * There is one such function: no system has two CPU PMUs that need one.  It is
 * called only between perf_idle_get() and perf_idle_put().
 *
 * Context: process context, may sleep.
 */
void __init perf_idle_register(perf_idle_fn_t *fn)
{
	static_call_update(perf_idle, fn);
}

/**
 * perf_idle_get - an event exists that has to know about low power states
 *
 * Context: process context, may sleep.
 */
void perf_idle_get(void)
{
	static_branch_inc(&perf_idle_key);
}

/**
 * perf_idle_put - the opposite of perf_idle_get()
 *
 * Context: process context, may sleep.
 */
void perf_idle_put(void)
{
	static_branch_dec(&perf_idle_key);
}
