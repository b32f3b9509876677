/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Event-based branches: the registers of a thread (Power ISA v2.07, Book II,
 * chapter 7; Book III-S, section 6.2.11 for FSCR).
 *
 * A thread uses the EBB facility if its FSCR[EBB] is set, which happens at the
 * thread's first use of the facility.  Until then EBBHR, EBBRR and BESCR in the
 * thread's thread_struct are zero.
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

/**
 * ebb_save_registers() - copy EBBHR, EBBRR and BESCR to thread_struct
 * @t: the running thread, with FSCR[EBB] set
 *
 * Context: preemption disabled.
 */
static inline void ebb_save_registers(struct thread_struct *t)
{
	t->ebbhr = mfspr(SPRN_EBBHR);
	t->ebbrr = mfspr(SPRN_EBBRR);
	t->bescr = mfspr(SPRN_BESCR);
}

/**
 * ebb_load_registers() - load EBBHR, EBBRR and BESCR from thread_struct
 * @t: the thread whose registers are loaded
 *
 * Context: preemption disabled.
 */
static inline void ebb_load_registers(const struct thread_struct *t)
{
	mtspr(SPRN_EBBHR, t->ebbhr);
	mtspr(SPRN_EBBRR, t->ebbrr);
	mtspr(SPRN_BESCR, t->bescr);
}

/**
 * ebb_context_switch() - switch EBBHR, EBBRR and BESCR to another thread
 * @prev: the thread whose values are in the registers, with its fscr up to date
 * @next: the thread that is switched in
 *
 * The caller checks that FSCR[EBB] is set for at least one of the two threads:
 * otherwise there is nothing to switch.
 *
 * A thread that does not use EBB gets the zeroes in its thread_struct: KVM
 * compares the registers with thread_struct, and no address of @prev may stay in
 * the registers.  If @prev does not use EBB, the registers are not read, because
 * deep idle states can have lost the zeroes.
 *
 * Context: __switch_to(), interrupts disabled.
 */
static inline void ebb_context_switch(struct thread_struct *prev,
				      const struct thread_struct *next)
{
	unsigned long ebbhr, ebbrr, bescr;

	if (!ebb_in_use(prev)) {
		ebb_load_registers(next);
		return;
	}

	ebbhr = mfspr(SPRN_EBBHR);
	ebbrr = mfspr(SPRN_EBBRR);
	bescr = mfspr(SPRN_BESCR);
	prev->ebbhr = ebbhr;
	prev->ebbrr = ebbrr;
	prev->bescr = bescr;
	if (ebbhr != next->ebbhr)
		mtspr(SPRN_EBBHR, next->ebbhr);
	if (ebbrr != next->ebbrr)
		mtspr(SPRN_EBBRR, next->ebbrr);
	if (bescr != next->bescr)
		mtspr(SPRN_BESCR, next->bescr);
}

bool ebb_first_use(void);
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
