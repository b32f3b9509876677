// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Do the PMU's state and a pending exception last?
 *
 * usage: pmu-pending [PORT]
 *
 * An event-based exception is made pending while event-based branches are
 * off, and a loop of known length is counted, again and again until something
 * comes through PORT.  Meanwhile ("running" is said before) the machine may be
 * saved and loaded.  All counts have to be right, and the exception has to
 * come at the end, as soon as it may.
 */

#define _GNU_SOURCE
#include "pmu.h"
#include "../until-told.h"

#define ROUNDS 20000000

#define PM_BRU_FIN 0x10068
#define PM_ST_FIN 0x200f0

/* Are a branch and a store counted in each round? */
static bool counts(uint64_t rounds)
{
    uint64_t branches, stores, stored;

    mtspr(771, 0);
    mtspr(772, 0);
    asm volatile("mtspr 779,%2; mtctr %1; 1: std %1,%0; bdnz 1b; mtspr 779,%3"
                 : "=m" (stored) : "r" (rounds), "r" (0L), "r" (MMCR0_FC) : "ctr", "memory");
    branches = (uint32_t)mfspr(771);
    stores = (uint32_t)mfspr(772);
    if (branches != rounds || stores != rounds) {
        ktap_note("%llu branches and %llu stores in %llu rounds", (unsigned long long)branches,
                  (unsigned long long)stores, (unsigned long long)rounds);
    }
    return branches == rounds && stores == rounds;
}

int main(int argc, char **argv)
{
    extern char pending_here[];
    unsigned turns = 0;
    bool right = true;
    int leader;

    ktap_start();
    leader = open_ebb_event(PM_BRU_FIN, -1);
    open_ebb_event(PM_ST_FIN, leader);
    start_events(leader);

    expect_branch();
    mtspr(802, 1ULL << 63);                     /* BESCRR: GE */
    mtspr(773, 0x80000000);                     /* PMC3 is negative */
    mtspr(779, MMCR0_FC | MMCR0_PMAE);
    ktap_result((mfspr(806) & ((1ULL << 63) + 1)) == 1, "exception_is_pending");
    mtspr(773, 0);

    ktap_note("running");
    do {
        right &= counts(ROUNDS);
        turns++;
    } while (!told_to_stop(argv[1]));
    ktap_note("%u times %u rounds", turns, ROUNDS);
    ktap_result(right, "counts_are_right");

    ktap_result(!ebb_count && (mfspr(806) & 1), "exception_is_still_pending");
    asm volatile("mtspr 800,%0; pending_here: nop" : : "r" (1ULL << 63) : "memory");
    if (ebb_count != 1 || ebb_where != (uintptr_t)pending_here) {
        ktap_note("%llu event-based branches, the last one %lld bytes after the right place",
                  (unsigned long long)ebb_count, (long long)(ebb_where - (uintptr_t)pending_here));
    }
    ktap_result(ebb_count == 1 && ebb_where == (uintptr_t)pending_here, "exception_comes");
    return ktap_finish();
}
