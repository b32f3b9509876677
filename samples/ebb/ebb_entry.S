/* SPDX-License-Identifier: GPL-2.0-or-later WITH Linux-syscall-note */
/*
 * ebb_entry: the code to which an event-based branch (EBB) branches. It saves the
 * registers that a C function can change, calls the handler, restores the
 * registers and returns.
 *
 * An EBB can come between any two instructions, so every register is live.
 * ebb_entry saves the registers that the ABI lets a called function change: r0, r2
 * to r12, CR, LR, CTR, XER, FPSCR, VSCR, f0 to f13, v0 to v19, and all of vs0 to
 * vs31, because the second halves of vs14 to vs31 are volatile although f14 to f31
 * are not. Saving the vector registers takes most of the time here. A handler
 * built with -msoft-float -mno-altivec -mno-vsx does not need them saved.
 */
#include "ebb.h"

#define FRAME	(EBB_RED_ZONE + EBB_REGS_SIZE + EBB_C_FRAME)
#define REGS	EBB_C_FRAME

	.machine power8
#if defined(_CALL_ELF) && _CALL_ELF == 2
	.abiversion 2
#endif

	/*
	 * The thread-local variable ebb_handler. r13, the thread pointer, is
	 * valid in all code.
	 */
	.section .tbss, "awT", @nobits
	.globl	ebb_handler
	.type	ebb_handler, @object
	.size	ebb_handler, 8
	.p2align 3
ebb_handler:
	.zero	8

	.text
	.p2align 4
	.globl	ebb_entry
	.type	ebb_entry, @function
#if defined(_CALL_ELF) && _CALL_ELF == 2
ebb_entry:
	.set	.Lentry, ebb_entry
#else
	.section ".opd", "aw"
	.p2align 3
ebb_entry:
	.quad	.Lentry, .TOC.@tocbase, 0
	.previous
.Lentry:
#endif
	stdu	%r1, -FRAME(%r1)
	std	%r0, (REGS + EBB_REG_GPR)(%r1)
	.irp	n, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
	std	%r\n, (REGS + EBB_REG_GPR + 8 * \n)(%r1)
	.endr
	addi	%r0, %r1, FRAME
	std	%r0, (REGS + EBB_REG_GPR + 8)(%r1)
	mfspr	%r3, EBB_SPR_EBBRR
	mflr	%r4
	mfctr	%r5
	mfxer	%r6
	mfcr	%r7
	std	%r3, (REGS + EBB_REG_NIP)(%r1)
	std	%r4, (REGS + EBB_REG_LR)(%r1)
	std	%r5, (REGS + EBB_REG_CTR)(%r1)
	std	%r6, (REGS + EBB_REG_XER)(%r1)
	std	%r7, (REGS + EBB_REG_CR)(%r1)

	addi	%r3, %r1, REGS + EBB_REG_VSR
	.set	n, 0
	.rept	52
	stxvd2x	n, 0, %r3
	addi	%r3, %r3, 16
	.set	n, n + 1
	.endr
	mffs	%f0
	stfd	%f0, (REGS + EBB_REG_FPSCR)(%r1)
	mfvscr	%v0
	addi	%r3, %r1, REGS + EBB_REG_VSCR
	stxvd2x	32, 0, %r3

	/*
	 * r2 can be the TOC pointer of any library or stub: compute the TOC pointer of
	 * this program. This form of bcl does not change the processor's stack of
	 * predicted return addresses.
	 */
	bcl	20, 31, .Lhere
.Lhere:
	mflr	%r2
	addis	%r2, %r2, (.TOC. - .Lhere)@ha
	addi	%r2, %r2, (.TOC. - .Lhere)@l
	addis	%r12, %r2, ebb_handler@got@tprel@ha
	ld	%r12, ebb_handler@got@tprel@l(%r12)
	ldx	%r12, %r12, ebb_handler@tls
#if !defined(_CALL_ELF) || _CALL_ELF != 2
	ld	%r2, 8(%r12)
	ld	%r12, 0(%r12)
#endif
	mtctr	%r12
	addi	%r3, %r1, REGS
	bctrl

	/*
	 * Clear the reservation, as the kernel does after a signal: one that the
	 * handler has left must not let a stwcx. of the program succeed.
	 */
	addi	%r3, %r1, REGS + EBB_REG_FPSCR + 8
	stdcx.	%r3, 0, %r3

	addi	%r3, %r1, REGS + EBB_REG_VSCR
	lxvd2x	32, 0, %r3
	mtvscr	%v0
	lfd	%f0, (REGS + EBB_REG_FPSCR)(%r1)
	mtfsf	255, %f0, 1, 0
	addi	%r3, %r1, REGS + EBB_REG_VSR
	.set	n, 0
	.rept	52
	lxvd2x	n, 0, %r3
	addi	%r3, %r3, 16
	.set	n, n + 1
	.endr

	ld	%r4, (REGS + EBB_REG_LR)(%r1)
	ld	%r5, (REGS + EBB_REG_CTR)(%r1)
	ld	%r6, (REGS + EBB_REG_XER)(%r1)
	ld	%r7, (REGS + EBB_REG_CR)(%r1)
	mtlr	%r4
	mtctr	%r5
	mtxer	%r6
	mtcr	%r7
	ld	%r0, (REGS + EBB_REG_GPR)(%r1)
	.irp	n, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
	ld	%r\n, (REGS + EBB_REG_GPR + 8 * \n)(%r1)
	.endr
	addi	%r1, %r1, FRAME
	rfebb	1
	.size	ebb_entry, . - .Lentry

	.section .note.GNU-stack, "", @progbits
