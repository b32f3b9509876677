// SPDX-License-Identifier: GPL-2.0-or-later
/* Count performance monitor interrupts while MMCR0[EBE] is 1. */

#include "report.h"

void main(void)
{
    set_up();

    mtspr(SPR_MMCR0, MMCR0_FC | MMCR0_EBE | MMCR0_PMAO);
    interrupts_on();
    check("number of interrupts after MMCR0[PMAO] was written", pmis, 0);

    pmis = 0;
    calm();
    mtspr(SPR_PMC5, 0x80000000 - 500);
    mtspr(SPR_MMCR0, MMCR0_EBE | MMCR0_PMAE | MMCR0_PMCJCE);
    count(1000);
    interrupts_on();
    check("number of interrupts after PMC5 became negative", pmis, 0);
    power_off();
}
