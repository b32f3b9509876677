/*
 * Two instructions, one of them a taken branch, for ever
 *
 * Whoever looks at the emulator's counters at two moments finds two
 * instructions for each branch between them, if the looks are consistent.
 *
 * bare.h tells how it is built and run.  It has to be killed.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "bare.h"

void __attribute__((used)) main(void)
{
    put("running\n");
    asm volatile("1: inc %%eax\n"
                 "jmp 1b" : : : "eax", "cc");
}
