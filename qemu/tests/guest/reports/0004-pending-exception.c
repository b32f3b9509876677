// SPDX-License-Identifier: GPL-2.0-or-later
/* Let performance monitor event-based exceptions wait until they can be taken. */

#include "report.h"

static void nothing(uint64_t unused)
{
    asm volatile("sc" : : : "memory");
}

/* Return whether an event-based branch is taken as soon as problem state is entered. */
static bool is_taken(void)
{
    mtspr(SPR_EBBRR, 0);
    in_problem_state(nothing);
    return mfspr(SPR_EBBRR) == (uintptr_t)nothing;
}

/* Make PMC5 negative, with these bits of MMCR0 and BESCR. */
static void alert(uint64_t mmcr0, uint64_t bescr)
{
    calm();
    mtspr(SPR_BESCR, bescr);
    mtspr(SPR_PMC5, 0x80000000 - 500);
    mtspr(SPR_MMCR0, MMCR0_EBE | MMCR0_PMCJCE | mmcr0);
    count(1000);
    mtspr(SPR_MMCR0, mfspr(SPR_MMCR0) | MMCR0_FC);
}

void main(void)
{
    set_up();
    mtspr(SPR_EBBHR, ebb_handler);

    mtspr(SPR_BESCR, BESCR_PME);
    mtspr(SPR_MMCR0, MMCR0_FC | MMCR0_EBE | MMCR0_PMAO);
    check("BESCR after MMCR0[PMAO] was written while PME is 1", mfspr(SPR_BESCR), BESCR_PMEO);

    alert(MMCR0_PMAE, 0);
    mtspr(SPR_BESCR, BESCR_PME);
    check("BESCR after PME was written when the alert had occurred", mfspr(SPR_BESCR), BESCR_PMEO);

    alert(MMCR0_PMAE, BESCR_PME);
    mtspr(SPR_BESCR, mfspr(SPR_BESCR) | BESCR_GE);
    check("number of branches when GE is set after the alert", is_taken(), 1);

    alert(0, BESCR_GE | BESCR_PME);
    check("number of branches while MMCR0[PMAE] is 0", is_taken(), 0);

    /* PMC6 counts cycles: the alert comes when a timer in QEMU's main loop says so */
    calm();
    mtspr(SPR_FSCR, 0);
    mtspr(SPR_BESCR, BESCR_GE | BESCR_PME);
    mtspr(SPR_PMC6, 0x80000000 - 1000);
    mtspr(SPR_MMCR0, MMCR0_EBE | MMCR0_PMAE | MMCR0_PMCJCE);
    while (mfspr(SPR_PMC6) < 0x80000000) {
    }
    count(10000000);
    check("number of branches while FSCR[EBB] is 0", is_taken(), 0);
    mtspr(SPR_FSCR, FSCR_EBB);
    check("number of branches when FSCR[EBB] is set", is_taken(), 1);
    power_off();
}
