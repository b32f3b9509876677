// SPDX-License-Identifier: GPL-2.0-or-later
/* Take an event-based branch.  The emulator is to be run with -d int. */

#include "report.h"

static void loop(uint64_t unused)
{
    count(1000);
    asm volatile("sc" : : : "memory");
}

void main(void)
{
    set_up();

    mtspr(SPR_EBBHR, ebb_handler);
    mtspr(SPR_EBBRR, 0);
    mtspr(SPR_BESCR, BESCR_GE | BESCR_PME);
    mtspr(SPR_PMC5, 0x80000000 - 500);
    mtspr(SPR_MMCR0, MMCR0_EBE | MMCR0_PMAE | MMCR0_PMCJCE);
    in_problem_state(loop);
    check("number of event-based branches", mfspr(SPR_EBBRR) != 0, 1);
    power_off();
}
