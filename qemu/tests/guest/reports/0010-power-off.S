/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ask the machine to power off, and go on if the CPU goes on.  A text at RESULT, which the
 * host can read when the machine is off, says whether it did.
 */

#define RESULT 0x200000

	.text
	.long	0x1badb002, 0, -0x1badb002	/* Multiboot: start in 32-bit mode */

	.globl	start
start:	mov	$0x80000, %esp
	mov	$ok, %esi
	call	write				/* now the code of write is translated */

	mov	$bad, %esi
	mov	$0x604, %edx			/* the power management register of a Q35 */
	mov	$0x2000, %eax
	out	%ax, %dx
	call	write
1:	jmp	1b

write:	mov	$RESULT, %edi
	mov	$bad - ok, %ecx
	rep movsb
	ret

ok:	.ascii	"ok: the CPU has stopped\n"
bad:	.ascii	"BAD: the CPU goes on   \n"
