/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Event-based branches: what belongs to a thread (Power ISA v2.07, Book II,
 * chapter 7; Book III-S, section 6.2.11 for FSCR).
 *
 * FSCR[EBB] is the one mark of a thread that uses the facility.  It is off
 * until the first use, and while it is off the thread's EBBHR, EBBRR and
 * BESCR are zero.
 */
#ifndef _ASM_POWERPC_EBB_H
#define _ASM_POWERPC_EBB_H

#include <linux/sched.h>
#include <asm/reg.h>

#if defined(CONFIG_PPC_BOOK3S_64) && defined(CONFIG_PPC_PERF_CTRS)

static inline bool ebb_in_use(const struct thread_struct *t)
{
	return t->fscr & FSCR_EBB;
}

bool ebb_first_use(void);
void ebb_context_switch(struct thread_struct *prev,
			const struct thread_struct *next);
void ebb_save_registers(struct thread_struct *t);
void ebb_reload_registers(void);
void ebb_init_thread(struct thread_struct *t);
void ebb_flush_thread(void);
void ebb_sync_thread(struct task_struct *task);

#else

static inline bool ebb_in_use(const struct thread_struct *t) { return false; }
static inline bool ebb_first_use(void) { return false; }
static inline void ebb_context_switch(struct thread_struct *prev,
				      const struct thread_struct *next) { }
static inline void ebb_save_registers(struct thread_struct *t) { }
static inline void ebb_reload_registers(void) { }
static inline void ebb_init_thread(struct thread_struct *t) { }
static inline void ebb_flush_thread(void) { }
static inline void ebb_sync_thread(struct task_struct *task) { }

#endif

#endif /* _ASM_POWERPC_EBB_H */
