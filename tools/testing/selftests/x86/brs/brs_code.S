/* SPDX-License-Identifier: GPL-2.0 */
/* Code with known taken branches, and a table of the branches of brs_mix() */

/* Branch types: the PERF_BR_* values of linux/perf_event.h */
#define COND		1
#define UNCOND		2
#define IND		3
#define CALL		4
#define IND_CALL	5
#define RET		6

	.text

/*
 * void brs_mix(long loops): eight taken branches in each loop, of all types that
 * user code can contain except system calls.  A stack of 16 branches covers two
 * loops.
 */
	.globl	brs_mix
	.type	brs_mix, @function
brs_mix:
	leaq	mix_callee(%rip), %rax
	leaq	mix_to_5(%rip), %rdx
	xorl	%esi, %esi
mix_loop:
mix_from_0:
	call	mix_f
mix_to_1:
	nop
mix_from_2:
	call	*%rax
mix_to_3:
	nop
mix_from_4:
	jmp	mix_to_4
	ud2
mix_to_4:
	nop
mix_from_5:
	jmp	*%rdx
	ud2
mix_to_5:
	testl	%esi, %esi
	jnz	mix_never
mix_from_6:
	jz	mix_to_6
mix_never:
	ud2
mix_to_6:
	decq	%rdi
mix_from_7:
	jnz	mix_loop
	ret
mix_f:
	nop
mix_from_1:
	ret
mix_callee:
	nop
mix_from_3:
	ret
	.size	brs_mix, . - brs_mix

	.section .data.rel.ro, "aw"
	.balign	8
	.globl	brs_mix_branches
	.type	brs_mix_branches, @object
brs_mix_branches:
	.quad	mix_from_0, mix_f, CALL
	.quad	mix_from_1, mix_to_1, RET
	.quad	mix_from_2, mix_callee, IND_CALL
	.quad	mix_from_3, mix_to_3, RET
	.quad	mix_from_4, mix_to_4, UNCOND
	.quad	mix_from_5, mix_to_5, IND
	.quad	mix_from_6, mix_to_6, COND
	.quad	mix_from_7, mix_loop, COND
	.size	brs_mix_branches, . - brs_mix_branches

	.text

/*
 * void brs_chain(long rounds): 4096 jumps of two bytes, each to the next jump,
 * and a branch back to the first jump.
 */
	.globl	brs_chain
	.type	brs_chain, @function
brs_chain:
	.globl	brs_chain_start
brs_chain_start:
	.rept	4096
	.byte	0xeb, 0x00
	.endr
	decq	%rdi
	jnz	brs_chain_start
	.globl	brs_chain_end
brs_chain_end:
	ret
	.size	brs_chain, . - brs_chain

/* void brs_getpid(long loops): a system call, getpid(), in each loop */
	.globl	brs_getpid
	.type	brs_getpid, @function
brs_getpid:
1:	movl	$39, %eax
	syscall
	decq	%rdi
	jnz	1b
	ret
	.size	brs_getpid, . - brs_getpid

/* void brs_mixed_calls(long loops): user branches and a system call in each loop */
	.globl	brs_mixed_calls
	.type	brs_mixed_calls, @function
brs_mixed_calls:
	pushq	%rbx
	movq	%rdi, %rbx
1:	movl	$3, %edi
	call	brs_mix
	movl	$1, %edi
	call	brs_getpid
	decq	%rbx
	jnz	1b
	popq	%rbx
	ret
	.size	brs_mixed_calls, . - brs_mixed_calls

/* brs_body_a(long loops), brs_body_b(long loops): the same code at two addresses */
	.macro	body name
	.globl	\name, \name\()_start, \name\()_end
	.type	\name, @function
\name:
\name\()_start:
	.rept	15
	.byte	0xeb, 0x00
	.endr
	decq	%rdi
	jnz	\name\()_start
\name\()_end:
	ret
	.size	\name, . - \name
	.endm

	body	brs_body_a
	.balign	4096
	body	brs_body_b

	.section .note.GNU-stack, "", @progbits
