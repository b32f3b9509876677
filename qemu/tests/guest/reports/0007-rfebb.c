// SPDX-License-Identifier: GPL-2.0-or-later
/* Execute rfebb 0 and rfebb 1 with other values in r0 and r1, and while FSCR[EBB] is 0. */

#include "report.h"

static void return_in_problem_state(uint64_t unused)
{
    asm volatile("rfebb 1; sc" : : : "memory");
}

void main(void)
{
    uint64_t stack;

    set_up();

    asm volatile("lis 9,1f@ha; addi 9,9,1f@l; mtspr 805,9; li 0,1; rfebb 0; 1:" : : : "r0", "r9", "memory");
    check("BESCR[GE] after rfebb 0 with 1 in r0", mfspr(SPR_BESCR) >> 63, 0);

    mtspr(SPR_BESCR, 0);
    asm volatile("mr %0,1; lis 9,1f@ha; addi 9,9,1f@l; mtspr 805,9; li 1,0; rfebb 1; 1: mr 1,%0"
                 : "=&r" (stack) : : "r9", "memory");
    check("BESCR[GE] after rfebb 1 with 0 in r1", mfspr(SPR_BESCR) >> 63, 1);

    mtspr(SPR_FSCR, 0);
    mtspr(SPR_EBBRR, (uintptr_t)return_in_problem_state + 4);
    in_problem_state(return_in_problem_state);
    check("number of interrupts by rfebb while FSCR[EBB] is 0", faults, 1);
    power_off();
}
