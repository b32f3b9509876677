// SPDX-License-Identifier: GPL-2.0
/*
 * Idle hooks for PMUs that have to be stopped while their CPU is in a low power
 * state.
 */
#include <linux/atomic.h>
#include <linux/cpu.h>
#include <linux/export.h>
#include <linux/init.h>
#include <linux/mutex.h>
#include <linux/perf_idle.h>
#include <linux/static_call.h>
#include <linux/workqueue.h>

DEFINE_STATIC_KEY_FALSE(perf_idle_key);
EXPORT_SYMBOL_GPL(perf_idle_key);

DEFINE_STATIC_CALL_NULL(perf_idle_fn, perf_idle_fn_t);

static atomic_t perf_idle_users;
static DEFINE_MUTEX(perf_idle_mutex);

/*
 * Called by arch_perf_idle(), on x86 through perf_idle_thunk(). Not inline, so that
 * modules which put a CPU to sleep need no symbol of the static call.
 */
noinstr void perf_idle(bool enter)
{
	static_call_cond(perf_idle_fn)(enter);
}

/**
 * perf_idle_register - set the function that runs around low power states
 * @fn: the function to call
 *
 * There is one function for the whole system: no system has two CPU PMUs that
 * need a function.  @fn is called from perf_idle_get() on, and until up to a
 * second after the last perf_idle_put().
 *
 * Context: process context, may sleep.
 */
void __init perf_idle_register(perf_idle_fn_t *fn)
{
	static_call_update(perf_idle_fn, fn);
}

static void perf_idle_update(void)
{
	guard(mutex)(&perf_idle_mutex);

	if (atomic_read(&perf_idle_users))
		static_branch_enable_cpuslocked(&perf_idle_key);
	else
		static_branch_disable_cpuslocked(&perf_idle_key);
}

static void perf_idle_work_fn(struct work_struct *work)
{
	cpus_read_lock();
	perf_idle_update();
	cpus_read_unlock();
}

static DECLARE_DELAYED_WORK(perf_idle_work, perf_idle_work_fn);

/**
 * perf_idle_get - enable the idle hooks for an event that needs them
 *
 * The hooks are enabled when the function returns, or shortly afterwards if a CPU
 * is going online or offline.
 *
 * Context: process context, may sleep.
 */
void perf_idle_get(void)
{
	atomic_inc(&perf_idle_users);

	/*
	 * Do not wait for the CPU hotplug lock: the caller can hold the mutex of a
	 * CPU's event context, which CPU hotplug takes inside that lock.
	 */
	if (!cpus_read_trylock()) {
		mod_delayed_work(system_percpu_wq, &perf_idle_work, 0);
		return;
	}

	perf_idle_update();
	cpus_read_unlock();
}

/**
 * perf_idle_put - undo perf_idle_get() when the event is destroyed
 *
 * The hooks are disabled one second after the last such event. Patching the
 * kernel's code disturbs all CPUs, and so opening and closing events in a loop
 * must not patch the code each time.
 *
 * Context: process context, may sleep.
 */
void perf_idle_put(void)
{
	if (atomic_dec_and_test(&perf_idle_users))
		mod_delayed_work(system_percpu_wq, &perf_idle_work, HZ);
}
