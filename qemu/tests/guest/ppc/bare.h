/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Macros and interrupt vectors for programs that run without an operating system */

#ifndef BARE_H
#define BARE_H

#include <stdint.h>

#define MSR_SF (1ULL << 63)
#define MSR_RI (1ULL << 1)
#define MMCR0_FC (1ULL << 31)
#define MMCR0_FCS (1ULL << 30)
#define MMCR0_PMAE (1ULL << 26)
#define MMCR0_FCH (1ULL << 0)

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

/*
 * Clear the branch history (BHRB), take branches with this value of MMCR0, and
 * return the newest entry of the BHRB.
 */
static inline uint64_t last_branch(uint64_t mmcr0)
{
    uint64_t entry;

    mtspr(795, MMCR0_FC);
    asm volatile(".long 0x7c00035c" : : : "memory");                    /* clrbhrb */
    mtspr(795, mmcr0);
    asm volatile("mtctr %0; 1: bdnz 1b" : : "r" (4L) : "ctr", "memory");
    mtspr(795, MMCR0_FC);
    asm volatile(".long 0x7c60025c; mr %0,3" : "=r" (entry) : : "r3");  /* mfbhrbe 3,0 */
    return entry;
}

#endif
