// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Check that the counts of the emulated POWER PMU are exact
 *
 * The program runs on Linux, and needs only perf_event_open() for events of its
 * own thread in user mode.  Each test executes, between two reads of a counter, a
 * sequence of instructions that is counted by hand.  The counter has to advance
 * by exactly this number: instructions of the kernel must not be counted.
 *
 * The counters are read by mfspr: an event-based branch event gives the program
 * access to the PMU's registers, and the kernel does not change the counters.
 * The CPU property pmu-cpi has to be 10 at most, or the cycle counter overflows.
 */

#define _GNU_SOURCE
#include <sys/mman.h>
#include "pmu.h"

#define PM_INST_CMPL_PMC1 0x10002
#define PM_CYC_PMC2 0x2001e

/*
 * Count the instructions in body.  Between the two reads of PMC1, the first mfspr
 * is counted, too, because it completes after it has read PMC1; the result is
 * without this mfspr.
 */
#define MEASURE(body, ...) ({                                           \
    uint64_t before_, after_;                                           \
    asm volatile("mfspr %0,771\n" body "\nmfspr %1,771\n"               \
                 : "=&r" (before_), "=&r" (after_) : : "memory", "cc",  \
                   "ctr", "lr", "r0", "r3", "r4", "r5", "r6", "r7",     \
                   "r8", "r9", "r10", "r11", "r12", ##__VA_ARGS__);     \
    (uint32_t)after_ - (uint32_t)before_ - 1; })

#define EXPECT(name, n, got) do {                                       \
    uint64_t got_ = (got);                                              \
    if (got_ != (n)) {                                                  \
        ktap_note("%llu instructions, not %llu",                        \
                  (unsigned long long)got_, (unsigned long long)(n));   \
    }                                                                   \
    ktap_result(got_ == (n), name);                                     \
} while (0)

static int ebb_wrong;

/* Check that an EBB comes right after the n-th instruction, which overflows PMC1. */
static void expect_ebb(unsigned n)
{
    extern char ebb_start[];
    bool ok;

    expect_branch();
    mtspr(771, 0x80000000 - n);
    mtspr(772, 0);
    asm volatile("mtspr 779,%0\n"
                 "ebb_start:\n"
                 ".rept 40; nop; .endr"
                 : : "r" (MMCR0_PMAE) : "memory");
    ok = ebb_count == 1 && ebb_where == (uintptr_t)ebb_start + 4 * n &&
         ebb_siar == ebb_where - 4;
    if (!ok) {
        ktap_note("after %u instructions: %llu branches, from start + 0x%llx,"
                  " SIAR 0x%llx", n, (unsigned long long)ebb_count,
                  (unsigned long long)(ebb_where - (uintptr_t)ebb_start),
                  (unsigned long long)(ebb_siar - (uintptr_t)ebb_start));
        ebb_wrong++;
    }
}

int main(void)
{
    char *page;
    int leader;

    ktap_start();
    leader = open_ebb_event(PM_INST_CMPL_PMC1, -1);
    open_ebb_event(PM_CYC_PMC2, leader);
    start_events(leader);

    EXPECT("nothing", 0, MEASURE(""));
    EXPECT("straight", 5, MEASURE("nop; nop; nop; nop; nop"));
    EXPECT("long_block", 600, MEASURE(".rept 600; addi 3,3,1; .endr"));
    EXPECT("loop_ctr", 1 + 1 + 3 * 1000,
           MEASURE("li 3,1000; mtctr 3; 1: nop; nop; bdnz 1b"));
    EXPECT("branch_taken", 2, MEASURE("b 1f; nop; nop; 1: nop"));
    EXPECT("branch_not_taken", 4,
           MEASURE("cmpdi 1,0; beq 1f; nop; nop; 1:"));
    EXPECT("call_and_return", 5,
           MEASURE("bl 1f; b 2f; 1: nop; nop; blr; 2:"));
    EXPECT("indirect_jump", 6,
           MEASURE("bl 1f; 1: mflr 3; addi 3,3,20; mtctr 3; bctr; nop; nop"));
    EXPECT("load_store", 5,
           MEASURE("std 3,-8(1); ld 4,-8(1); stw 3,-8(1); lwz 4,-8(1); lbz 4,-8(1)"));
    EXPECT("atomic_add", 1 + 5,
           MEASURE("addi 5,1,-16; 1: ldarx 3,0,5; addi 3,3,1; stdcx. 3,0,5; bne- 1b; nop"));
    /* The kernel's instructions do not count; sc itself does. */
    EXPECT("system_call", 2, MEASURE("li 0,20; sc"));
    EXPECT("many_system_calls", 1 + 5 * 100,
           MEASURE("li 14,100; 1: li 0,20; sc; addi 14,14,-1; cmpdi 14,0;"
                   "bne 1b", "r14"));
    /* A read of a counter is counted like other instructions. */
    EXPECT("counter_read_within", 3, MEASURE("nop; mfspr 3,771; nop"));

    page = mmap(NULL, 65536, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    {
        /* The store that faults is executed again and counts once. */
        register char *p asm("r14") = page;
        uint64_t before, after;

        asm volatile("mfspr %0,771; nop; nop; std 3,0(%2); nop; mfspr %1,771"
                     : "=&r" (before), "=&r" (after) : "r" (p) : "memory");
        EXPECT("page_fault", 4, (uint32_t)after - (uint32_t)before - 1);
    }

    /* An instruction takes as many cycles as the CPU property pmu-cpi says. */
    {
        uint64_t c0, i0, i1, c1, cycles, insns;

        asm volatile("mfspr %0,772; mfspr %1,771; nop; nop; nop; nop; nop;"
                     "mfspr %2,771; mfspr %3,772"
                     : "=&r" (c0), "=&r" (i0), "=&r" (i1), "=&r" (c1));
        cycles = (uint32_t)c1 - (uint32_t)c0;
        insns = (uint32_t)i1 - (uint32_t)i0;
        ktap_note("%llu cycles for 8 instructions", (unsigned long long)cycles);
        ktap_result(insns == 6 && cycles && cycles % 8 == 0, "cycles");
    }

    /* Frozen counters do not advance. */
    {
        uint64_t before, after;

        mtspr(779, MMCR0_FC);
        before = mfspr(771);
        for (volatile int i = 0; i < 1000; i++) {
        }
        after = mfspr(771);
        mtspr(779, 0);
        ktap_result(before == after, "frozen");
    }

    /* Timer interrupts and other programs while the loop runs are not counted. */
    EXPECT("long_loop", 1 + 1 + 1 + 2ULL * 100000000,
           MEASURE("lis 3,1525; ori 3,3,57600; mtctr 3; 1: nop; bdnz 1b"));

    for (unsigned n = 1; n <= 32; n++) {
        expect_ebb(n);
    }
    ktap_result(ebb_wrong == 0, "branch_right_after_overflow");

    return ktap_finish();
}
