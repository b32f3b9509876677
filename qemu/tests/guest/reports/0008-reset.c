// SPDX-License-Identifier: GPL-2.0-or-later
/* Start the counters, reset the machine, and look whether they count. */

#include "report.h"

/* A place in memory that a reset does not change */
#define BEFORE_RESET (*(volatile uint64_t *)0x8000000)

void main(void)
{
    uint64_t before;

    if (!BEFORE_RESET) {
        BEFORE_RESET = 1;
        mtspr(SPR_MMCR0, 0);
        reset();
    }
    check("MMCR0 after the reset", mfspr(SPR_MMCR0), MMCR0_FC);
    before = mfspr(SPR_PMC5);
    count(1000);
    check("number of instructions that PMC5 counts while MMCR0[FC] is 1", mfspr(SPR_PMC5) - before, 0);
    power_off();
}
