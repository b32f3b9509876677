// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Check that HFSCR keeps the PMU and event-based branches from a partition
 *
 * This program is alone on a machine without firmware (qemu-system-ppc64
 * -machine none -cpu power8 -m 16M -device loader,file=pmu-hypervisor,cpu-num=0).  It
 * executes instructions in the privileged state of a partition, with address
 * translation off.  That needs a POWER8: later processors cannot run a partition
 * without translation tables in memory.
 *
 * The machine has no terminal.  The results, KTAP, are written to memory from
 * address 64 KiB on, and the host reads them there.
 */

#include <stdbool.h>
#include <stdint.h>

#include "bare.h"

#define OUTPUT 0x10000

#define GUEST_MSR (MSR_SF | MSR_RI)

#define SYSTEM_CALL 0xc00
#define HYPERVISOR_FACILITY_UNAVAILABLE 0xf80

enum { SPR_HFSCR = 190, SPR_HSRR0 = 314, SPR_LPCR = 318, SPR_MMCR0 = 795, SPR_BESCR = 806 };

#define MFSPR(n) (31u << 26 | 3 << 21 | ((n) & 31) << 16 | (n) >> 5 << 11 | 339 << 1)
#define MTSPR(n) (31u << 26 | 3 << 21 | ((n) & 31) << 16 | (n) >> 5 << 11 | 467 << 1)
#define MFBHRBE 0x7c60025c      /* mfbhrbe 3,0 */
#define CLRBHRB 0x7c00035c
#define HYPERCALL 0x44000022    /* sc 1 */

/* The facilities of HFSCR.  @bit is the bit number in HFSCR and the interruption cause. */
static const struct facility {
    const char *name;
    unsigned bit;
    uint32_t instructions[32];
} facilities[] = {
    { "hfscr_pm", 3, {
        MFSPR(795), MTSPR(795), MFSPR(798), MTSPR(798), MFSPR(785), MTSPR(785),
        MFSPR(786), MTSPR(786), MFSPR(784), MTSPR(784), MFSPR(796), MTSPR(796),
        MFSPR(797), MTSPR(797), MFSPR(787), MTSPR(787), MFSPR(792), MTSPR(792),
        /* MMCR0, PMC1, SIER and SIAR by their SPR numbers in problem state */
        MFSPR(779), MFSPR(771), MFSPR(768), MFSPR(780) } },
    { "hfscr_bhrb", 4, { MFBHRBE, CLRBHRB } },
    { "hfscr_ebb", 7, {
        MFSPR(804), MTSPR(804), MFSPR(805), MTSPR(805), MFSPR(806), MTSPR(806),
        MFSPR(800), MTSPR(800), MFSPR(802), MTSPR(802) } },
};

static uint32_t code[2] __attribute__((aligned(64)));
static char *output = (char *)OUTPUT;
static int tests;
uint64_t saved[24];
char stack[16384] __attribute__((aligned(16)));

/*
 * in_partition(code, msr) executes code in the partition's state that msr
 * describes, and returns the number of the interrupt that ends the code.
 */
asm(".section .head,\"ax\"\n"
    ".globl _start\n"
    "_start: lis 1,stack@ha; addi 1,1,stack@l; addi 1,1,16384-64\n"
    "    lis 2,.TOC.@ha; addi 2,2,.TOC.@l\n"
    "    bl main\n"
    "    b .\n"
    "in_partition: mflr 0\n"
    "    lis 6,saved@ha; addi 6,6,saved@l\n"
    "    std 0,0(6); std 1,8(6)\n"
    "    .set i,14; .rept 18; std i,(i-12)*8(6); .set i,i+1; .endr\n"
    "    mtspr 26,3; mtspr 27,4; li 3,0\n"
    "    rfid\n"
    /* set_vectors() copies this to each interrupt vector, with its number in "li 3,0". */
    "vector: nop; li 3,0; ba interrupted\n"
    "interrupted: lis 6,saved@ha; addi 6,6,saved@l\n"
    "    lis 2,.TOC.@ha; addi 2,2,.TOC.@l\n"
    "    ld 0,0(6); ld 1,8(6)\n"
    "    .set i,14; .rept 18; ld i,(i-12)*8(6); .set i,i+1; .endr\n"
    "    mtlr 0; blr\n"
    ".previous");
uint64_t in_partition(const uint32_t *code, uint64_t msr);

static void put(const char *s)
{
    while (*s) {
        *output++ = *s++;
    }
}

static void put_hex(uint64_t n)
{
    for (int shift = 60; shift >= 0; shift -= 4) {
        *output++ = "0123456789abcdef"[n >> shift & 15];
    }
}

static void note(const char *what, uint64_t n)
{
    put("# ");
    put(what);
    put(": ");
    put_hex(n);
    put("\n");
}

static void result(bool ok, const char *prefix, const char *name)
{
    put(ok ? "ok " : "not ok ");
    *output++ = '0' + ++tests;
    put(" - ");
    put(prefix);
    put(name);
    put("\n");
}

static uint64_t execute(uint32_t instruction)
{
    code[0] = instruction;
    code[1] = HYPERCALL;
    asm volatile("dcbst 0,%0; sync; icbi 0,%0; isync" : : "r" (code) : "memory");
    return in_partition(code, GUEST_MSR);
}

/*
 * While the facility's bit in HFSCR is 1, each of its instructions has to be
 * executed.  While the bit is 0, each has to raise a hypervisor facility
 * unavailable interrupt with the facility's number as the cause.
 */
static void check(const struct facility *facility)
{
    bool with = true, without = true;

    for (const uint32_t *i = facility->instructions; *i; i++) {
        uint64_t interrupt;

        mtspr(SPR_HFSCR, ~0ULL >> 8);
        interrupt = execute(*i);
        if (interrupt != SYSTEM_CALL) {
            note("instruction", *i);
            note("  with the facility ends in", interrupt);
            with = false;
        }

        mtspr(SPR_HFSCR, ~0ULL >> 8 & ~(1ULL << facility->bit));
        interrupt = execute(*i);
        if (interrupt != HYPERVISOR_FACILITY_UNAVAILABLE ||
            mfspr(SPR_HFSCR) >> 56 != facility->bit || mfspr(SPR_HSRR0) != (uintptr_t)code) {
            note("instruction", *i);
            note("  without the facility ends in", interrupt);
            note("  HFSCR", mfspr(SPR_HFSCR));
            note("  HSRR0", mfspr(SPR_HSRR0));
            without = false;
        }
    }
    result(with, facility->name, "_makes_available");
    result(without, facility->name, "_makes_unavailable");
}

void main(void)
{
    put("KTAP version 1\n");
    set_vectors(0x1000);
    /* The machine starts in a partition's state: enter hypervisor state by a hypercall. */
    execute(HYPERCALL);
    mtspr(SPR_LPCR, 0);

    for (unsigned i = 0; i < sizeof(facilities) / sizeof(*facilities); i++) {
        check(&facilities[i]);
    }
    /* HFSCR does not restrict the hypervisor itself. */
    mtspr(SPR_HFSCR, 0);
    mtspr(SPR_BESCR, 1);
    mtspr(SPR_MMCR0, MMCR0_FC);
    result(mfspr(SPR_BESCR) == 1 && mfspr(SPR_MMCR0) == MMCR0_FC, "hypervisor", "_needs_no_facility");
    /* MMCR0[FCH] is for hypervisor state, MMCR0[FCS] for the privileged state of partitions. */
    result(last_branch(MMCR0_PMAE) && last_branch(MMCR0_PMAE | MMCR0_FCS) &&
           !last_branch(MMCR0_PMAE | MMCR0_FCH), "hypervisor", "_bhrb_is_frozen_by_fch");
    put("1..");
    *output++ = '0' + tests;
    put("\n");
}
