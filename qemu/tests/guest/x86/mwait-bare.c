/*
 * Check that a write to the monitored line ends MWAIT
 *
 * Under an operating system, a lost wake-up goes unnoticed, because the next timer
 * interrupt wakes the CPU.  This program runs without a kernel.  The second CPU
 * sleeps in MWAIT with interrupts off, so that only the first CPU's write to the
 * monitored line can wake it.
 *
 * bare.h tells how to build and run the program:
 *     qemu-system-x86_64 -M q35 -smp 2 -cpu EPYC-Milan,x-tcg-mwait=on \
 *        -kernel mwait-bare ...
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "bare.h"

#define ROUNDS 20000
/* Time limit for a wake-up: 20 s, as the emulated TSC counts nanoseconds */
#define TOO_LONG 20000000000ULL
#define PAUSE 30000

#define AP_START 0x8000
#define APIC_INIT_OTHERS 0xc4500
#define APIC_START_OTHERS (0xc4600 | AP_START >> 12)

/* Startup code of the second CPU, which is copied to AP_START */
extern const char ap_begin[], ap_end[];
asm(".pushsection .rodata\n"
    ".code16\n"
    "ap_begin: cli\n"
    "lgdtl %cs:ap_gdt_pointer - ap_begin\n"
    "mov $0x20, %eax\n"
    "mov %eax, %cr4\n"
    "mov $pml4, %eax\n"
    "mov %eax, %cr3\n"
    "mov $0xc0000080, %ecx\n"
    "mov $0x101, %eax\n"
    "xor %edx, %edx\n"
    "wrmsr\n"
    "mov $0x80000011, %eax\n"
    "mov %eax, %cr0\n"
    "ljmpl $0x08, $ap_long\n"
    "ap_gdt_pointer: .word gdt_end - gdt - 1\n"
    ".long gdt\n"
    "ap_end:\n"
    ".code64\n"
    ".popsection\n"
    ".pushsection .text\n"
    "ap_long: mov $0x10, %eax\n"
    "mov %eax, %ss\n"
    "mov %eax, %ds\n"
    "mov %eax, %es\n"
    "mov $ap_stack_top, %esp\n"
    "call wait_for_writes\n"
    ".popsection\n"
    ".pushsection .bss\n"
    ".balign 16\n"
    ".skip 4096\n"
    "ap_stack_top:\n"
    ".popsection\n");

static volatile uint32_t line __attribute__((aligned(64)));
static volatile uint32_t seen __attribute__((aligned(64)));
static volatile uint32_t sleeps __attribute__((aligned(64)));

void __attribute__((used, noreturn)) wait_for_writes(void)
{
    uint32_t last = 0;

    for (;;) {
        while (line == last) {
            asm volatile("monitor" : : "a"(&line), "c"(0), "d"(0));
            if (line == last) {
                sleeps++;
                asm volatile("mwait" : : "a"(0), "c"(0) : "memory");
            }
        }
        last = line;
        seen = last;
    }
}

static uint64_t now(void)
{
    uint32_t lo, hi;

    asm volatile("rdtsc" : "=a"(lo), "=d"(hi));
    return lo | (uint64_t)hi << 32;
}

/* Write @n to the monitored line, and wait until the second CPU has seen it. */
static bool wake_up(uint32_t n)
{
    uint64_t start = now();

    while (now() - start < PAUSE) {
        asm volatile("pause");
    }
    line = n;
    start = now();
    while (seen != n) {
        if (now() - start > TOO_LONG) {
            return false;
        }
        asm volatile("pause");
    }
    return true;
}

void __attribute__((used)) main(void)
{
    char *to = (char *)AP_START;
    uint32_t n = 0;

    put("TAP version 13\n");
    set_up();
    asm volatile("" : "+r"(to));
    for (const char *from = ap_begin; from < ap_end; from++) {
        *to++ = *from;
    }
    APIC(APIC_ICR) = APIC_INIT_OTHERS;
    APIC(APIC_ICR) = APIC_START_OTHERS;

    begin();
    do {
        n++;
    } while (n < ROUNDS && wake_up(n));
    expect("rounds", n, ROUNDS);
    end("every_write_ends_mwait");
    put("# sleeps ");
    put_number(sleeps);
    put("\n");

    /* A CPU that does not sleep executes MWAIT thousands of times in each round. */
    begin();
    expect("about one sleep in each round", sleeps > ROUNDS / 2 && sleeps < 10 * ROUNDS, 1);
    end("mwait_sleeps");
    power_off();
}
