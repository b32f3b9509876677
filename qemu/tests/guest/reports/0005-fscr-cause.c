// SPDX-License-Identifier: GPL-2.0-or-later
/* Read the cause in FSCR after two Facility Unavailable interrupts. */

#include "report.h"

static void read_bescr(uint64_t unused)
{
    asm volatile("mfspr 3,806; sc" : : : "r3", "memory");
}

static void read_pmc1(uint64_t unused)
{
    asm volatile("mfspr 3,771; sc" : : : "r3", "memory");
}

void main(void)
{
    set_up();
    mtspr(SPR_FSCR, 0);
    mtspr(SPR_MMCR0, MMCR0_FC | MMCR0_PMCC_1);

    in_problem_state(read_bescr);
    check("FSCR[IC] after an access to BESCR", mfspr(SPR_FSCR) >> 56, 7);
    in_problem_state(read_pmc1);
    check("FSCR[IC] after an access to PMC1", mfspr(SPR_FSCR) >> 56, 3);
    power_off();
}
