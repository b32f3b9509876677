// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Check that the emulated POWER PMU survives random values in all of its registers
 *
 * The program runs without an operating system.  It writes random values to the
 * registers that only a kernel can write and to those of problem state, in
 * privileged state and in problem state, with interrupts on.  An instruction
 * that faults is stepped over; when an event-based branch leaves the program,
 * the interrupt handler returns to it.  Between the writes and at the end, the
 * counters have to be exact to the instruction, and interrupts have to come in
 * time.
 *
 * Results are KTAP on the terminal of the partition.
 */

#include "../random.h"
#include "pseries.h"

#define ROUNDS 4000
#define WRITES 40       /* register writes in each round */

/* The SPR numbers of the PMU and of event-based branches */
static const uint16_t registers[] = {
    736, 737, 738, 768, 769, 770, 771, 772, 773, 774, 775, 776, 779, 780, 781,
    782, 752, 753, 754, 784, 785, 786, 787, 788, 789, 790, 791, 792, 795, 796,
    797, 798, 800, 801, 802, 803, 804, 805, 806, 152, 153, 851, 892, 893, 894,
    /* registers with control bits are listed again, to be written more often */
    795, 795, 795, 798, 785, 787, 806, 800, 153,
};

static void __attribute__((noinline)) fuzz(uint64_t writes)
{
    for (uint64_t i = 0; i < writes; i++) {
        unsigned n = registers[rnd() % (sizeof(registers) / sizeof(*registers))];
        uint64_t value = nonsense();

        if (n == SPR_EBBHR && rnd() % 16) {
            value = (uintptr_t)ebb_handler;
        } else if (n == SPR_EBBHR || n == SPR_EBBRR) {
            value |= 1ULL << 59;        /* an address without memory */
        }
        access_register(n, value, rnd() % 8);
        if (rnd() % 16 == 0) {
            asm volatile(".long 0x7c00035c" : : : "memory");           /* clrbhrb */
            asm volatile(".long 0x7c60025c" : : : "r3", "memory");     /* mfbhrbe 3,0 */
        }
    }
    asm volatile("sc" : : : "memory");
}

/* 3 + 2 * 1000 instructions between the register writes, 1000 branches */
static void __attribute__((noinline)) counted_loop(uint64_t on, uint64_t off)
{
    asm volatile("li 3,1000; mtspr 795,%0; mtctr 3; nop; 1: nop; bdnz 1b; mtspr 795,%1"
                 : : "r" (on), "r" (off) : "r3", "ctr", "memory");
}

/* Check that the PMU counts, freezes counters and raises interrupts correctly. */
static bool works(void)
{
    unsigned before;
    bool ok;

    calm();
    /* PM_BRU_FIN on PMC1, PM_INST_CMPL on PMC2 */
    mtspr(SPR_MMCR1, 0x68ULL << 24 | 0x02ULL << 16);
    counted_loop(0, MMCR0_FC);
    ok = is("branches", mfspr(SPR_PMC1), 1000);
    /* PMC2 counts the mtspr that stops it, but not the mtspr that starts it. */
    ok &= is("instructions", mfspr(SPR_PMC2), 2 + 2000 + 1);
    ok &= is("PMC5", mfspr(SPR_PMC5), 2 + 2000 + 1);

    calm();
    counted_loop(MMCR0_FCS, MMCR0_FC);
    ok &= is("PMC5 frozen in privileged state", mfspr(SPR_PMC5), 0);

    calm();
    before = pmis;
    mtspr(SPR_MMCR1, 0x68ULL << 24);
    mtspr(SPR_PMC1, 0x80000000 - 500);
    counted_loop(MMCR0_PMAE | MMCR0_PMC1CE | MMCR0_FC56, MMCR0_FC | MMCR0_PMAO);
    ok &= is("interrupts while MSR[EE] is 0", pmis - before, 0);
    interrupts_on();
    ok &= is("interrupts", pmis - before, 1);
    interrupts_on();
    ok &= is("interrupts when MSR[EE] is set again", pmis - before, 1);

    /* While MMCR0[EBE] is 1, an alert raises no interrupt. */
    mtspr(SPR_MMCR0, MMCR0_FC | MMCR0_EBE | MMCR0_PMAO);
    interrupts_on();
    ok &= is("interrupts with EBE", pmis - before, 1);
    calm();
    return ok;
}

/* Write @value to register @n, and check that the register reads as @want. */
static bool keeps(unsigned n, uint64_t value, uint64_t want)
{
    access_register(n, value, true);
    return is("register", access_register(n, 0, false), want);
}

static void reserved_bits(int model)
{
    unsigned before;
    bool ok = true;

    calm();
    /* Counters are 32 bits wide. */
    for (unsigned n = SPR_PMC1; n <= SPR_PMC6; n++) {
        ok &= keeps(n, ~0ULL, 0xffffffff);
        ok &= keeps(n, 0x1234567800000000, 0);
    }
    result(ok, "counters_have_32_bits");

    /* SIER2, SIER3 and MMCR3 keep all bits on v3.1, and do not exist before v3.1. */
    ok = true;
    before = faults;
    for (unsigned n = SPR_SIER2; n <= SPR_MMCR3; n++) {
        if (model >= 10) {
            ok &= keeps(n, 0x0123456789abcdef, 0x0123456789abcdef);
            ok &= keeps(n, 0, 0);
        } else {
            access_register(n, ~0ULL, true);
        }
    }
    if (model < 10) {
        /* mtspr and mfspr of three SPRs that do not exist: none or all fault */
        ok &= faults == before || faults == before + 6;
    }
    result(ok, "registers_of_v3.1");
    calm();
}

static void bescr_numbers(void)
{
    bool ok;

    calm();
    mtspr(SPR_BESCRS, BESCR_GE | BESCR_PMEO);
    mtspr(SPR_BESCRSU, BESCR_PME >> 32);
    ok = is("set", mfspr(SPR_BESCR), BESCR_GE | BESCR_PME | BESCR_PMEO);
    ok &= is("read by BESCRS", mfspr(SPR_BESCRS), BESCR_GE | BESCR_PME | BESCR_PMEO);
    ok &= is("read by BESCRRU", mfspr(SPR_BESCRRU), (BESCR_GE | BESCR_PME) >> 32);
    mtspr(SPR_BESCRRU, BESCR_PME >> 32);
    mtspr(SPR_BESCRR, BESCR_PMEO);
    ok &= is("reset", mfspr(SPR_BESCR), BESCR_GE);
    result(ok, "bescr_is_set_and_reset");
}

static bool exception_is_pending(void)
{
    return mfspr(SPR_BESCR) & BESCR_PMEO;
}

/* Return whether an alert with these bits of MMCR0 and BESCR becomes an exception. */
static bool raises(uint64_t mmcr0, uint64_t bescr)
{
    calm();
    mtspr(SPR_BESCR, bescr);
    mtspr(SPR_PMC1, 0x80000000);
    mtspr(SPR_MMCR0, MMCR0_FC | MMCR0_EBE | MMCR0_PMC1CE | mmcr0);
    return exception_is_pending();
}

static void __attribute__((noinline)) do_nothing(uint64_t unused)
{
    asm volatile("sc" : : : "memory");
}

/* Return whether a pending exception is taken as soon as problem state is entered. */
static bool is_taken(void)
{
    mtspr(SPR_EBBRR, 0);
    guarded_now = true;
    guarded(do_nothing, 0, KERNEL_MSR | MSR_EE | MSR_PR);
    guarded_now = false;
    return mfspr(SPR_EBBRR) == (uintptr_t)do_nothing;
}

/* Return by how much PMC5 advances during a visit to problem state. */
static uint64_t counted(uint64_t mmcr0)
{
    calm();
    mtspr(SPR_MMCR0, mmcr0);
    guarded_now = true;
    guarded(do_nothing, 0, KERNEL_MSR | MSR_EE | MSR_PR);
    guarded_now = false;
    mtspr(SPR_MMCR0, MMCR0_FC);
    return mfspr(SPR_PMC5);
}

/*
 * This program runs in problem state without a hypervisor (MSR[HV] = 0).  With
 * MMCR0[FCPC] = 1, counters are frozen there if MMCR0[FCP] = 0, and count there if
 * MMCR0[FCP] = 1.
 */
static void problem_state_freezes(void)
{
    bool ok;

    ok = is("with FCP", counted(MMCR0_FCS | MMCR0_FCP), 0);
    ok &= is("with FCPC", counted(MMCR0_FCS | MMCR0_FCPC), 0);
    /* PMC5 counts sc, and at most two instructions of do_nothing() before sc. */
    ok &= is("with FCP and FCPC", counted(MMCR0_FCS | MMCR0_FCPC | MMCR0_FCP) - 1 <= 2, true);
    result(ok, "fcpc_chooses_the_problem_state");

    ok = is("with FCM0", counted(MMCR0_FCM0), 0);
    ok &= is("with FCM0, FCP and FCPC", counted(MMCR0_FCM0 | MMCR0_FCPC | MMCR0_FCP), 0);
    calm();
    result(ok, "fcpc_leaves_fcm0_alone");
}

/*
 * This program is not in hypervisor state, so that MMCR0[FCS] freezes the BHRB in
 * privileged state, and MMCR0[FCH] does not.  Since v3.1, the BHRB only records in
 * problem state.
 */
static void bhrb_freezes(int model)
{
    bool ok = is("records", last_branch(MMCR0_PMAE) != 0, model < 10);

    ok &= is("records with FCH", last_branch(MMCR0_PMAE | MMCR0_FCH) != 0, model < 10);
    ok &= is("records with FCP", last_branch(MMCR0_PMAE | MMCR0_FCP) != 0, model < 10);
    ok &= is("records with FCS", last_branch(MMCR0_PMAE | MMCR0_FCS) != 0, false);
    calm();
    result(ok, "fcs_freezes_bhrb");
}

static void __attribute__((noinline)) write_mmcra(uint64_t value)
{
    access_register(SPR_UMMCRA, value, true);
    asm volatile("sc" : : : "memory");
}

/* Write MMCRA in problem state, and return the new value of MMCRA. */
static uint64_t mmcra_after(uint64_t pmcc, uint64_t value)
{
    calm();
    mtspr(SPR_MMCR0, MMCR0_FC | MMCR0_PMCC(pmcc));
    guarded_now = true;
    guarded(write_mmcra, value, KERNEL_MSR | MSR_EE | MSR_PR);
    guarded_now = false;
    return mfspr(SPR_MMCRA);
}

/* MMCR0[PMCC] = 0b10 or 0b11 lets problem state write MMCRA.  Other values let mtspr fault. */
static void mmcra_in_problem_state(void)
{
    const uint64_t value = 3ULL << 30;
    unsigned before = faults;
    bool ok;

    ok = is("with PMCC = 0b10", mmcra_after(2, value), value);
    ok &= is("with PMCC = 0b11", mmcra_after(3, value), value);
    ok &= is("faults", faults - before, 0);
    ok &= is("with PMCC = 0b00", mmcra_after(0, value), 0);
    ok &= is("faults of mtspr", faults - before, 1);
    ok &= is("with PMCC = 0b01", mmcra_after(1, value), 0);
    ok &= is("faults of mtspr, and of mtspr and mfspr", faults - before, 3);
    calm();
    result(ok, "pmcc_lets_problem_state_write_mmcra");
}

static void event_based_exceptions(void)
{
    unsigned before = pmis;
    bool ok;

    ok = is("with PMAE and PME", raises(MMCR0_PMAE, BESCR_PME), true);
    ok &= is("without PMAE", raises(0, BESCR_PME), false);
    ok &= is("with PMAO as it is written", raises(MMCR0_PMAO, BESCR_PME), true);
    ok &= is("without PME", raises(MMCR0_PMAE, 0), false);
    mtspr(SPR_BESCRS, BESCR_PME);
    ok &= is("with PME later", exception_is_pending(), true);
    interrupts_on();
    ok &= is("interrupts", pmis - before, 0);
    result(ok, "alert_becomes_an_exception");

    mtspr(SPR_EBBHR, ebb_handler);
    ok = is("raised", raises(MMCR0_PMAE, BESCR_PME), true);
    ok &= is("taken while GE is 0", is_taken(), false);
    mtspr(SPR_BESCRS, BESCR_GE);
    mtspr(SPR_FSCR, 0);
    ok &= is("taken while the facility is off", is_taken(), false);
    ok &= is("pending then", exception_is_pending(), true);
    mtspr(SPR_FSCR, FSCR_EBB);
    ok &= is("taken when it is on", is_taken(), true);
    ok &= is("pending afterwards", exception_is_pending(), false);
    ok &= is("taken again", is_taken(), false);
    ok &= is("interrupts", pmis - before, 0);
    result(ok, "exception_waits_until_it_may_be_taken");
    calm();
}

void main(void)
{
    uint32_t version = mfspr(SPR_PVR) >> 16;
    int model = version == 0x80 ? 10 : version == 0x4e ? 9 : 8;
    bool ok = true;

    put("KTAP version 1\n");
    note("a POWER", model);
    set_vectors(0x3100);
    mtspr(SPR_DEC, 0x7fffffff);
    mtspr(SPR_FSCR, FSCR_EBB);

    result(map_program(), "maps_program");
    result(works(), "counts_before");
    reserved_bits(model);
    bescr_numbers();
    event_based_exceptions();
    problem_state_freezes();
    bhrb_freezes(model);
    mmcra_in_problem_state();

    for (int round = 0; round < ROUNDS; round++) {
        mtspr(SPR_EBBHR, ebb_handler);
        guarded_now = true;
        guarded(fuzz, WRITES, KERNEL_MSR | MSR_EE | (round & 1 ? MSR_PR : 0));
        guarded_now = false;
        if (round % 64 == 63) {
            ok &= works();
        }
    }
    note("performance monitor interrupts", pmis);
    note("faults", faults);
    note("interrupts outside the program", strays);
    note("system calls", system_calls);
    result(system_calls > ROUNDS / 2, "goes_through_most_of_the_nonsense");
    result(ok, "counts_between");
    result(works(), "counts_after");
    finish();
}
