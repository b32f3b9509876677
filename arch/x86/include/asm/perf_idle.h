/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_X86_PERF_IDLE_H
#define _ASM_X86_PERF_IDLE_H

#include <asm/asm.h>

void perf_idle_thunk(void);

/*
 * Call perf_idle() through a thunk that preserves all registers. The operands of
 * MWAIT are in registers: around an ordinary C call, the compiler would save and
 * restore these registers even while the call is patched to a NOP.
 */
static __always_inline void arch_perf_idle(bool enter)
{
	asm volatile("call perf_idle_thunk"
		     : ASM_CALL_CONSTRAINT
		     : "D" ((unsigned long)enter)
		     : "memory");
}

#endif /* _ASM_X86_PERF_IDLE_H */
