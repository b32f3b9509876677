// SPDX-License-Identifier: GPL-2.0-or-later
/* Set and clear bits of BESCR by BESCRS, BESCRSU, BESCRR and BESCRRU. */

#include "report.h"

void main(void)
{
    set_up();

    mtspr(SPR_BESCRS, BESCR_GE);
    check("BESCR after GE was written to BESCRS", mfspr(SPR_BESCR), BESCR_GE);

    mtspr(SPR_BESCR, BESCR_GE);
    mtspr(SPR_BESCRSU, BESCR_PME >> 32);
    check("BESCR after PME was written to BESCRSU", mfspr(SPR_BESCR), BESCR_GE | BESCR_PME);

    mtspr(SPR_BESCR, BESCR_GE | BESCR_PME);
    mtspr(SPR_BESCRR, BESCR_GE);
    check("BESCR after GE was written to BESCRR", mfspr(SPR_BESCR), BESCR_PME);
    check("BESCRRU, which reads as the upper half of BESCR,", mfspr(SPR_BESCRRU), BESCR_PME >> 32);
    power_off();
}
