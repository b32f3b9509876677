// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Check that the PMU's state and a pending event-based exception survive saving and
 * loading of the machine
 *
 * usage: pmu-pending [PORT]
 *
 * The program makes an event-based exception pending while event-based branches are
 * off (BESCR[GE] = 0).  It then counts the events in a loop of known length,
 * repeatedly until a byte comes through PORT.  After it has printed "running", the
 * host can save and load the machine.  All counts have to be right, and at the end
 * the event-based branch has to come as soon as BESCR[GE] is set.
 */

#define _GNU_SOURCE
#include "pmu.h"
#include "../until-told.h"

#define ROUNDS 20000000

#define PM_BRU_FIN 0x10068
#define PM_ST_FIN 0x200f0

/* Return whether exactly one branch and one store are counted in each round of the loop. */
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
    mtspr(773, 0x80000000);                     /* make PMC3 negative */
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
