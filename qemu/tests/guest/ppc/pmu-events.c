// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Check that the emulated POWER PMU counts branches, loads and stores exactly
 *
 * The program runs sequences of instructions whose branches, loads and stores are
 * counted by hand, as pmu-exact.c does for all instructions.  It reads the
 * counters by mfspr, which is no branch, load or store.  Then it sets a counter to
 * overflow at the n-th branch, load or store, and checks that the event-based
 * branch comes right after that instruction.
 */

#define _GNU_SOURCE
#include <sys/auxv.h>
#include <sys/mman.h>
#include "pmu.h"

static char area[4096] __attribute__((aligned(4096)));
static int model;       /* number in the name of the POWER processor, such as 9 */

struct counts {
    uint32_t pmc1, pmc2, pmc4;
};

/*
 * Measure by how much PMC1, PMC2 and PMC4 advance while the instructions of
 * body are executed.  In body, r4 and r6 point to the area, and r5 is 0.
 */
#define COUNT(body) ({                                                  \
    uint64_t b1_, b2_, b4_, a1_, a2_, a4_;                              \
    register char *r4_ asm("r4") = area;                                \
    register char *r6_ asm("r6") = area;                                \
    register long r5_ asm("r5") = 0;                                    \
    asm volatile(".machine push; .machine power10\n"                    \
                 "mfspr %0,771; mfspr %1,772; mfspr %2,774\n" body      \
                 "\nmfspr %3,771; mfspr %4,772; mfspr %5,774\n"         \
                 ".machine pop"                                         \
                 : "=&r" (b1_), "=&r" (b2_), "=&r" (b4_), "=&r" (a1_),  \
                   "=&r" (a2_), "=&r" (a4_), "+r" (r4_), "+r" (r6_),    \
                   "+r" (r5_)                                           \
                 : : "memory", "cc", "ctr", "lr", "xer", "r0", "r3",    \
                   "r7", "r8", "r9", "r10", "r11", "r12", "r14", "fr1",  \
                   "v1", "v2", "v3");                               \
    (struct counts){ a1_ - b1_, a2_ - b2_, a4_ - b4_ }; })

static void expect(const char *what, const char *name, struct counts want,
                   struct counts got)
{
    bool ok = !memcmp(&want, &got, sizeof(want));
    char full[64];

    if (!ok) {
        ktap_note("PMC1 %u, not %u; PMC2 %u, not %u; PMC4 %u, not %u",
                  got.pmc1, want.pmc1, got.pmc2, want.pmc2, got.pmc4, want.pmc4);
    }
    snprintf(full, sizeof(full), "%s_%s", what, name);
    ktap_result(ok, full);
}

/* PMC1 and PMC4 count all branches, PMC2 counts the taken branches. */
static void expect_branches(const char *name, uint32_t all, uint32_t taken,
                            struct counts got)
{
    expect("branches", name, (struct counts){ all, taken, all }, got);
}

/* PMC1 and, except on POWER8, PMC4 count loads; PMC2 counts stores. */
static void expect_storage(const char *name, uint32_t loads, uint32_t stores,
                           struct counts got)
{
    expect("storage", name,
           (struct counts){ loads, stores, model > 8 ? loads : 0 }, got);
}

/*
 * For each n from 1 to 32, the counter overflows at the n-th event in body.  The
 * event-based branch has to come before the next instruction is executed, and
 * SIAR has to be the address of the instruction that made the counter overflow.
 */
#define WHERE(name, pmc, body, siar_of_n, next_of_n, sdar_of_n) do {    \
    int wrong_ = 0;                                                     \
    for (unsigned n = 1; n <= 32; n++) {                                \
        register char *r4_ asm("r4") = area;                            \
        uint64_t start_;                                                \
        expect_branch();                                                \
        mtspr(771, 0);                                                  \
        mtspr(772, 0);                                                  \
        mtspr(pmc, 0x80000000 - n);                                     \
        asm volatile("bl 1f; 1: mflr %1; addi %1,%1,20;"                \
                     "cmpdi 4,0; mtspr 779,%2; nop;" body "nop"         \
                     : "+r" (r4_), "=&b" (start_)                       \
                     : "r" (MMCR0_PMAE) : "memory", "lr", "cc", "r5");  \
        mtspr(779, MMCR0_FC);                                           \
        if (ebb_count != 1 || ebb_siar != start_ + (siar_of_n) ||       \
            ebb_where != start_ + (next_of_n) ||                        \
            ebb_sdar != (sdar_of_n)) {                                  \
            ktap_note("n = %u: %d, SIAR start + %#lx, EBBRR + %#lx, SDAR area + %#lx", \
                      n, (int)ebb_count, (long)(ebb_siar - start_),     \
                      (long)(ebb_where - start_),                       \
                      (long)(ebb_sdar - (uintptr_t)area));              \
            wrong_++;                                                   \
        }                                                               \
    }                                                                   \
    mtspr(779, 0);                                                      \
    ktap_result(!wrong_, name);                                         \
} while (0)

static void branches(void)
{
    expect_branches("straight", 0, 0, COUNT("nop; cror 0,1,2; isel 3,4,5,2; nop"));
    expect_branches("branch", 1, 1, COUNT("b 1f; nop; 1: nop"));
    expect_branches("branch_not_taken", 2, 0,
                    COUNT("cmpdi 4,0; beq 1f; blt 1f; nop; 1:"));
    expect_branches("branch_condition", 2, 1,
                    COUNT("cmpdi 4,0; beq 1f; bne 1f; nop; 1:"));
    expect_branches("loop", 1000, 999, COUNT("li 3,1000; mtctr 3; 1: nop; bdnz 1b"));
    expect_branches("call_and_return", 3, 3,
                    COUNT("bl 1f; b 2f; 1: nop; blr; 2:"));
    expect_branches("return_not_taken", 1, 0, COUNT("cmpdi 4,0; beqlr; nop"));
    expect_branches("jump_to_ctr", 2, 2,
                    COUNT("bl 1f; 1: mflr 3; addi 3,3,16; mtctr 3; bctr"));
    expect_branches("call_of_ctr", 2, 2,
                    COUNT("bl 1f; 1: mflr 3; addi 3,3,16; mtctr 3; bctrl"));
    expect_branches("jump_to_tar", 2, 2,
                    COUNT("bl 1f; 1: mflr 3; addi 3,3,16; mtspr 815,3; bctar 20,0,0"));
    expect_branches("count_down_and_return", 3, 2,
                    COUNT("li 3,2; mtctr 3; bl 1f; 1: mflr 3; addi 3,3,12; mtlr 3; bdnzlr; nop"));
    /* sc is no branch, and the kernel's branches are not counted. */
    expect_branches("system_call", 0, 0, COUNT("li 0,20; sc"));
    expect_branches("many_system_calls", 100, 99,
                    COUNT("li 14,100; 1: li 0,20; sc; addi 14,14,-1; cmpdi 14,0; bne 1b"));
    /* A loop so long that timer interrupts come while it runs */
    expect_branches("many_branches", 20000000, 19999999,
                    COUNT("lis 3,305; ori 3,3,11520; mtctr 3; 1: bdnz 1b"));

    WHERE("where_branch", 771, ".rept 32; b .+8; nop; .endr;",
          8 * (n - 1), 8 * n, ebb_sdar);
    WHERE("where_branch_not_taken", 771, ".rept 32; beq .+8; .endr;",
          4 * (n - 1), 4 * n, ebb_sdar);
    WHERE("where_taken_branch", 772, ".rept 32; beq .+8; b .+4; .endr;",
          8 * n - 4, 8 * n, ebb_sdar);
}

static void loads_and_stores(void)
{
    char *fresh = mmap(NULL, 131072, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    expect_storage("neither", 0, 0,
                   COUNT("la 3,8(4); lvsl 1,5,4; dcbt 0,4; dcbz 0,4; dcbst 0,4;"
                         "sync; lwsync; isync; icbi 0,4; b 1f; 1: nop"));
    expect_storage("integer_loads", 26, 0,
                   COUNT("lbz 3,1(4); lhz 3,2(4); lha 3,2(4); lwz 3,4(4); lwa 3,4(4); ld 3,8(4);"
                         "lbzx 3,5,4; lhzx 3,5,4; lhax 3,5,4; lwzx 3,5,4; lwax 3,5,4; ldx 3,5,4;"
                         "lbzu 3,8(6); lhzu 3,8(6); lhau 3,8(6); lwzu 3,8(6); ldu 3,8(6);"
                         "lbzux 3,6,5; lhzux 3,6,5; lhaux 3,6,5; lwzux 3,6,5; lwaux 3,6,5; ldux 3,6,5;"
                         "lhbrx 3,5,4; lwbrx 3,5,4; ldbrx 3,5,4"));
    expect_storage("integer_stores", 0, 19,
                   COUNT("stb 3,1(4); sth 3,2(4); stw 3,4(4); std 3,8(4);"
                         "stbx 3,5,4; sthx 3,5,4; stwx 3,5,4; stdx 3,5,4;"
                         "stbu 3,8(6); sthu 3,8(6); stwu 3,8(6); stdu 3,8(6);"
                         "stbux 3,6,5; sthux 3,6,5; stwux 3,6,5; stdux 3,6,5;"
                         "sthbrx 3,5,4; stwbrx 3,5,4; stdbrx 3,5,4"));
    expect_storage("floating_point", 10, 9,
                   COUNT("lfs 1,0(4); lfd 1,0(4); lfsx 1,5,4; lfdx 1,5,4; lfsu 1,8(6); lfdu 1,8(6);"
                         "lfsux 1,6,5; lfdux 1,6,5; lfiwax 1,5,4; lfiwzx 1,5,4;"
                         "stfs 1,0(4); stfd 1,0(4); stfsx 1,5,4; stfdx 1,5,4; stfsu 1,8(6);"
                         "stfdu 1,8(6); stfsux 1,6,5; stfdux 1,6,5; stfiwx 1,5,4"));
    expect_storage("vectors", 12, 10,
                   COUNT("lvx 1,5,4; lvxl 1,5,4; lvebx 1,5,4; lvehx 1,5,4; lvewx 1,5,4;"
                         "lxsdx 34,5,4; lxvd2x 34,5,4; lxvw4x 34,5,4; lxvdsx 34,5,4;"
                         "lxsiwax 34,5,4; lxsiwzx 34,5,4; lxsspx 34,5,4;"
                         "stvx 1,5,4; stvxl 1,5,4; stvebx 1,5,4; stvehx 1,5,4; stvewx 1,5,4;"
                         "stxsdx 34,5,4; stxvd2x 34,5,4; stxvw4x 34,5,4; stxsiwx 34,5,4; stxsspx 34,5,4"));
    /* A store conditional counts even if it stores nothing, without a reservation. */
    expect_storage("reservations", 5, 10,
                   COUNT("lbarx 8,0,4; stbcx. 8,0,4; stbcx. 8,0,4;"
                         "lharx 8,0,4; sthcx. 8,0,4; sthcx. 8,0,4;"
                         "lwarx 8,0,4; stwcx. 8,0,4; stwcx. 8,0,4;"
                         "ldarx 8,0,4; stdcx. 8,0,4; stdcx. 8,0,4;"
                         "lqarx 8,0,4; stqcx. 8,0,4; stqcx. 8,0,4"));
    expect_storage("quadwords", 1, 1, COUNT("lq 8,0(4); stq 8,0(4)"));
    if (model >= 9) {
        expect_storage("power9", 15, 9,
                       COUNT("lxv 34,0(4); lxvx 34,5,4; lxsd 2,0(4); lxssp 2,0(4); lxvh8x 34,5,4;"
                             "lxvb16x 34,5,4; lxvwsx 34,5,4; lxsibzx 34,5,4; lxsihzx 34,5,4;"
                             "li 3,16; sldi 3,3,56; lxvl 34,4,3; lxvll 34,4,3;"
                             "stxv 34,0(4); stxvx 34,5,4; stxsd 2,0(4); stxssp 2,0(4); stxvh8x 34,5,4;"
                             "stxvb16x 34,5,4; stxsibx 34,5,4; stxvl 34,4,3; stxvll 34,4,3;"
                             "ldat 8,4,0; lwat 8,4,0; ldat 8,4,1; lwat 8,4,1"));
    }
    if (model >= 10) {
        expect_storage("power10", 8, 7,
                       COUNT("pld 3,8(4); plwz 3,8(4); plbz 3,8(4); plfd 1,8(4); plxv 34,16(4);"
                             "lxvp 34,0(4); lxvrbx 34,5,4; lxvrdx 34,5,4;"
                             "pstd 3,8(4); pstw 3,8(4); pstfd 1,8(4); pstxv 34,16(4);"
                             "stxvp 34,0(4); stxvrbx 34,5,4; stxvrdx 34,5,4; paddi 3,4,8; nop"));
    }
    {
        /* A load or store that faults is executed again, and counts once. */
        register char *r14 asm("r14") = fresh;
        uint64_t l0, l1, s0, s1;

        asm volatile("mfspr %0,771; mfspr %1,772; nop; ld 0,0(%4); nop;"
                     "std 0,0(%4); addis %4,%4,1; std 0,0(%4); nop; ld 0,0(%4);"
                     "mfspr %2,771; mfspr %3,772"
                     : "=&r" (l0), "=&r" (s0), "=&r" (l1), "=&r" (s1), "+r" (r14)
                     : : "memory", "r0");
        expect_storage("page_faults", 2, 2,
                       (struct counts){ l1 - l0, s1 - s0, model > 8 ? 2 : 0 });
    }
    expect_storage("many", 2000000, 1000000,
                   COUNT("lis 3,15; ori 3,3,16960; mtctr 3;"
                         "1: ld 7,0(4); std 7,8(4); ld 7,8(4); bdnz 1b"));

    WHERE("where_load", 771, ".rept 32; ldu 5,8(4); nop; .endr;",
          8 * (n - 1), 8 * n - 4, (uintptr_t)area + 8 * n);
    WHERE("where_load_among_loads", 771, ".rept 32; ldu 5,8(4); .endr;",
          4 * (n - 1), 4 * n, (uintptr_t)area + 8 * n);
    WHERE("where_store", 772, ".rept 32; stdu 5,8(4); ld 5,0(4); .endr;",
          8 * (n - 1), 8 * n - 4, (uintptr_t)area + 8 * n);
}

static void measure(uint64_t pmc1, uint64_t pmc2, uint64_t pmc4, void (*cases)(void))
{
    int leader = open_ebb_event(pmc1, -1);
    int second = open_ebb_event(pmc2, leader);
    int third = pmc4 ? open_ebb_event(pmc4, leader) : -1;

    start_events(leader);
    cases();
    close(third);
    close(second);
    close(leader);
}

int main(void)
{
    const char *platform = (const char *)getauxval(AT_PLATFORM);

    model = platform ? atoi(platform + strlen("power")) : 0;
    ktap_start();
    ktap_note("a POWER%d", model);
    memset(area, 0, sizeof(area));

    /* events PM_BRU_FIN, PM_BR_TAKEN_CMPL and PM_BR_CMPL */
    measure(0x10068, 0x200fa, model > 8 ? 0x4d05e : 0x40060, branches);
    /* events PM_LD_REF_L1 (POWER8) or PM_LD_CMPL, PM_ST_FIN, and PM_LD_CMPL */
    measure(model > 8 ? 0x100fc : 0x1002e, 0x200f0, model > 8 ? 0x4003e : 0,
            loads_and_stores);
    return ktap_finish();
}
