/*
 * An endless loop of two instructions, one of which is a taken branch
 *
 * For a test that reads the statistics of the emulator twice while the guest runs.
 * Between the two reads, the number of instructions has to grow twice as much as the
 * number of branches; otherwise a read was not consistent.
 *
 * bare.h tells how to build and run the program.  It does not end by itself.
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
