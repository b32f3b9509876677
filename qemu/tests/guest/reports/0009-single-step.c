// SPDX-License-Identifier: GPL-2.0-or-later
/* Execute rfebb in problem state while MSR[SE] is 1, as a debugger does. */

#include "report.h"

static void step(uint64_t unused)
{
    asm volatile("rfebb 1; sc" : : : "memory");
}

void main(void)
{
    set_up();

    mtspr(SPR_EBBRR, (uintptr_t)step + 4);
    guarded_now = true;
    guarded(step, 0, PROBLEM_STATE | MSR_SE);
    guarded_now = false;
    check("number of system calls after rfebb", system_calls, 1);
    power_off();
}
