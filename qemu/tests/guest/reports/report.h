/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What all programs for a pseries machine need, besides the functions in pseries.c */

#ifndef REPORT_H
#define REPORT_H

#include "pseries.h"

#define MSR_SE       (1ULL << 10)
#define MMCR0_PMCC_1 (1ULL << 18)       /* MMCR0[PMCC] = 0b01 */
#define MMCR0_PMCJCE (1ULL << 14)

/* The MSR of a program in problem state */
#define PROBLEM_STATE (KERNEL_MSR | MSR_EE | MSR_PR)

/* Write the interrupt vectors, map the program for problem state, make event-based branches available. */
static inline void set_up(void)
{
    set_vectors(0x3100);
    mtspr(SPR_DEC, 0x7fffffff);
    mtspr(SPR_FSCR, FSCR_EBB);
    map_program();
    calm();
}

static inline void put_hex(uint64_t n)
{
    char digits[20], *p = digits + sizeof(digits);

    *--p = 0;
    do {
        *--p = "0123456789abcdef"[n % 16];
        n /= 16;
    } while (n);
    put("0x");
    put(p);
}

/* Print whether a value is as expected. */
static inline void check(const char *what, uint64_t got, uint64_t want)
{
    put(got == want ? "ok: " : "BAD: ");
    put(what);
    put(" is ");
    put_hex(got);
    if (got != want) {
        put(", expected ");
        put_hex(want);
    }
    put("\n");
}

/* Go round a loop of two instructions. */
static inline void count(uint64_t rounds)
{
    asm volatile("mtctr %0; 1: nop; bdnz 1b" : : "r" (rounds) : "ctr", "memory");
}

/* Run a function in problem state until it makes a system call. */
static inline void in_problem_state(void (*function)(uint64_t))
{
    guarded_now = true;
    guarded(function, 0, PROBLEM_STATE);
    guarded_now = false;
}

#endif
