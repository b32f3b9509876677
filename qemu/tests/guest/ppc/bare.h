/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Macros and interrupt vectors for programs that run without an operating system */

#ifndef BARE_H
#define BARE_H

#include <stdint.h>

#define MSR_SF (1ULL << 63)
#define MSR_RI (1ULL << 1)
#define MMCR0_FC (1ULL << 31)

#define mfspr(n) ({ uint64_t v_; asm volatile("mfspr %0,%1" : "=r" (v_) : "i" (n)); v_; })
#define mtspr(n, v) asm volatile("mtspr %0,%1" : : "i" (n), "r" ((uint64_t)(v)) : "memory")

/*
 * Three instructions that set_vectors() copies to each interrupt vector.  The
 * second instruction loads the vector's number.
 */
extern const uint32_t vector[];

/* Copy the instructions of vector[] to all interrupt vectors below @end. */
static inline void set_vectors(unsigned end)
{
    for (unsigned at = 0x100; at < end; at += 0x20) {
        uint32_t *to = (uint32_t *)(uintptr_t)at;
        asm volatile("" : "+r" (to));
        to[0] = vector[0];
        to[1] = vector[1] | at;
        to[2] = vector[2];
        asm volatile("dcbst 0,%0; sync; icbi 0,%0; isync" : : "r" (to) : "memory");
    }
}

#endif
