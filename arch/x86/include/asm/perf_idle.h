/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_X86_PERF_IDLE_H
#define _ASM_X86_PERF_IDLE_H

#include <asm/asm.h>

void perf_idle_thunk(void);

/*
 * Calls perf_idle(). MWAIT has its operands in registers, which an ordinary call
 * would have saved and restored even while it is a NOP. The thunk keeps them all.
 */
static __always_inline void arch_perf_idle(bool enter)
{
	asm volatile("call perf_idle_thunk"
		     : ASM_CALL_CONSTRAINT
		     : "D" ((unsigned long)enter)
		     : "memory");
}

#endif /* _ASM_X86_PERF_IDLE_H */
