// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Execute msgsndp in a partition while HFSCR makes it unavailable, and look at HSRR0.
 *
 * The machine has no terminal and no firmware: the result is a line of text at address
 * 0, and attn ends the emulator.  A POWER8 starts in a partition's state, and enters
 * hypervisor state by a hypercall.
 */

#include "bare.h"

#define HID0_ATTN (1ULL << 32)

enum { SPR_HFSCR = 190, SPR_HSRR0 = 314, SPR_LPCR = 318, SPR_HID0 = 1008 };

char stack[4096] __attribute__((aligned(16)));

asm(".section .head,\"ax\"\n"
    ".globl _start\n"
    "_start: lis 1,stack@ha; addi 1,1,stack@l; addi 1,1,4096-64\n"
    "    lis 2,.TOC.@ha; addi 2,2,.TOC.@l\n"
    "    bl main\n"
    "partition: nop; nop; msgsndp 3; b .\n"
    /* set_vectors() copies this to each interrupt vector, with its number in "li 3,0". */
    "vector: nop; li 3,0; ba interrupted\n"
    "interrupted: b interrupt\n"
    ".previous");
extern char partition[];

static char *output;

static void put(const char *s)
{
    while (*s) {
        asm volatile("stb %0,0(%1)" : : "r" (*s++), "b" (output++) : "memory");
    }
}

void interrupt(uint64_t vector_number)
{
    uint64_t offset = mfspr(SPR_HSRR0) - (uintptr_t)partition;

    if (vector_number == 0xc00) {
        mtspr(SPR_LPCR, 0);
        mtspr(SPR_HFSCR, 0);
        mtspr(26, partition);
        mtspr(27, MSR_SF | MSR_RI);
        asm volatile("rfid");
    }
    put(vector_number == 0xf80 && offset == 8 ? "ok" : "BAD");
    put(": offset of the instruction in HSRR0 is 0x");
    put((char []){ "0123456789abcdef"[offset & 15], 0 });
    put(vector_number != 0xf80 ? ", after another interrupt\n" : offset != 8 ? ", expected 0x8\n" : "\n");
    mtspr(SPR_HID0, HID0_ATTN);
    asm volatile(".long 0x200");        /* attn */
}

void main(void)
{
    set_vectors(0x1000);
    asm volatile(".long 0x44000022");   /* sc 1 */
}
