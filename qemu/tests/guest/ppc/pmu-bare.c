// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Nonsense in all registers of the emulated POWER PMU, from privileged state
 *
 * All that runs on the machine: the emulator starts this instead of a kernel
 * (qemu-system-ppc64 -machine pseries,x-vof=on -kernel pmu-bare).  Random
 * values go to the registers that only a kernel can write, and to those of
 * problem state, in both states, with interrupts on.  What faults is stepped
 * over, what jumps away is brought back.  Between and after, the counters have
 * to count to the instruction, and interrupts have to come when they should.
 *
 * Results are KTAP on the terminal of the partition.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../random.h"
#include "bare.h"

#define ROUNDS 4000
#define WRITES 40       /* in a round */

#define MSR_EE (1ULL << 15)
#define MSR_PR (1ULL << 14)
#define MSR_ME (1ULL << 12)
#define KERNEL_MSR (MSR_SF | MSR_ME | MSR_RI)

#define MMCR0_FCS    (1ULL << 30)
#define MMCR0_PMAE   (1ULL << 26)
#define MMCR0_EBE    (1ULL << 20)
#define MMCR0_PMC1CE (1ULL << 15)
#define MMCR0_PMAO   (1ULL << 7)
#define MMCR0_FC56   (1ULL << 4)
#define FSCR_EBB     (1ULL << 7)
#define BESCR_GE     (1ULL << 63)
#define BESCR_PME    (1ULL << 32)
#define BESCR_PMEO   (1ULL << 0)

enum {
    SPR_DEC = 22, SPR_SRR0 = 26, SPR_SRR1 = 27, SPR_CTRL = 152, SPR_FSCR = 153,
    SPR_PVR = 287, SPR_SIER2 = 752, SPR_SIER3 = 753, SPR_MMCR3 = 754,
    SPR_SIER = 784, SPR_MMCR2 = 785, SPR_MMCRA = 786,
    SPR_PMC1 = 787, SPR_PMC2, SPR_PMC3, SPR_PMC4, SPR_PMC5, SPR_PMC6,
    SPR_MMCR0 = 795, SPR_SIAR, SPR_SDAR, SPR_MMCR1,
    SPR_BESCRS = 800, SPR_BESCRSU, SPR_BESCRR, SPR_BESCRRU,
    SPR_EBBHR, SPR_EBBRR, SPR_BESCR,
};

/* Everything that belongs to the PMU and to event-based branches */
static const uint16_t registers[] = {
    736, 737, 738, 768, 769, 770, 771, 772, 773, 774, 775, 776, 779, 780, 781,
    782, 752, 753, 754, 784, 785, 786, 787, 788, 789, 790, 791, 792, 795, 796,
    797, 798, 800, 801, 802, 803, 804, 805, 806, 152, 153, 851, 892, 893, 894,
    /* the ones that decide are written more often */
    795, 795, 795, 798, 785, 787, 806, 800, 153,
};

static unsigned pmis, faults, strays, system_calls;
static volatile bool guarded_now;
static int tests;
static bool failed;

/* A page that gets the instructions with a register's number in them */
static uint32_t code[16] __attribute__((aligned(64)));

uint64_t frame[40];     /* of an exception */
uint64_t saved[24];     /* of who called guarded() */
char stack[16384] __attribute__((aligned(16)));
char exception_stack[16384] __attribute__((aligned(16)));

/*
 * Started by the firmware in 32-bit mode, big endian, at the first address.
 * guarded(function, argument, msr) calls a function in a given state and comes
 * back when it makes a system call or when it has gone astray.
 */
asm(".section .head,\"ax\"\n"
    ".globl _start\n"
    "_start: mfmsr 3; li 4,1; sldi 4,4,63; or 3,3,4; mtmsrd 3\n"
    "    lis 1,stack@ha; addi 1,1,stack@l; addi 1,1,16384-64\n"
    "    lis 2,.TOC.@ha; addi 2,2,.TOC.@l\n"
    "    bl main\n"
    "    b .\n"
    "guarded: mflr 0\n"
    "    lis 6,saved@ha; addi 6,6,saved@l\n"
    "    std 0,0(6); std 1,8(6)\n"
    "    .set i,14; .rept 18; std i,(i-12)*8(6); .set i,i+1; .endr\n"
    "    mtspr 26,3; mtspr 27,5; mr 12,3; mr 3,4\n"
    "    rfid\n"
    ".globl come_back\n"
    "come_back: lis 6,saved@ha; addi 6,6,saved@l\n"
    "    lis 2,.TOC.@ha; addi 2,2,.TOC.@l\n"
    "    ld 0,0(6); ld 1,8(6)\n"
    "    .set i,14; .rept 18; ld i,(i-12)*8(6); .set i,i+1; .endr\n"
    "    mtlr 0; blr\n"
    /* what is copied to each vector; the instruction in the middle differs */
    "vector: mtspr 273,3; li 3,0; ba exception\n"
    "exception: mtspr 274,4\n"
    "    lis 4,frame@ha; addi 4,4,frame@l\n"
    "    std 0,0(4); std 1,8(4); std 2,16(4)\n"
    "    mfspr 0,273; std 0,24(4); mfspr 0,274; std 0,32(4)\n"
    "    .set i,5; .rept 27; std i,i*8(4); .set i,i+1; .endr\n"
    "    mflr 0; std 0,256(4); mfctr 0; std 0,264(4)\n"
    "    mfcr 0; std 0,272(4); mfxer 0; std 0,280(4)\n"
    "    lis 1,exception_stack@ha; addi 1,1,exception_stack@l; addi 1,1,16384-64\n"
    "    lis 2,.TOC.@ha; addi 2,2,.TOC.@l\n"
    "    bl handle\n"
    "    lis 4,frame@ha; addi 4,4,frame@l\n"
    "    ld 0,280(4); mtxer 0; ld 0,272(4); mtcr 0\n"
    "    ld 0,264(4); mtctr 0; ld 0,256(4); mtlr 0\n"
    "    .set i,5; .rept 27; ld i,i*8(4); .set i,i+1; .endr\n"
    "    ld 0,0(4); ld 1,8(4); ld 2,16(4); ld 3,24(4); ld 4,32(4)\n"
    "    rfid\n"
    ".globl ebb_handler\n"
    /* rfebb 1 is refused while BESCR has strange bits, and then stepped over */
    "ebb_handler: std 3,-600(1)\n"
    "    li 3,3; mtspr 802,3; ld 3,-600(1); .long 0x4c000924\n"
    "    li 3,-1; mtspr 802,3; ld 3,-600(1); .long 0x4c000924\n"
    "    sc\n"
    ".previous");
void guarded(void (*function)(uint64_t), uint64_t argument, uint64_t msr);
extern char come_back[], exception[], ebb_handler[], text_start[], text_end[], program_end[];

static long hcall(uint64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    register uint64_t r3 asm("r3") = number;
    register uint64_t r4 asm("r4") = a;
    register uint64_t r5 asm("r5") = b;
    register uint64_t r6 asm("r6") = c;
    register uint64_t r7 asm("r7") = d;

    asm volatile(".long 0x44000022"     /* sc 1 */
                 : "+r" (r3), "+r" (r4), "+r" (r5), "+r" (r6), "+r" (r7)
                 : : "r0", "r8", "r9", "r10", "r11", "r12", "ctr", "lr",
                   "xer", "cc", "memory");
    return r3;
}

static void put(const char *s)
{
    for (; *s; s++) {
        hcall(0x58, 0, 1, (uint64_t)(uint8_t)*s << 56, 0);     /* H_PUT_TERM_CHAR */
    }
}

static void put_number(uint64_t n)
{
    char digits[24], *p = digits + sizeof(digits);

    *--p = 0;
    do {
        *--p = '0' + n % 10;
        n /= 10;
    } while (n);
    put(p);
}

static void note(const char *what, uint64_t n)
{
    put("# ");
    put(what);
    put(": ");
    put_number(n);
    put("\n");
}

static void result(bool ok, const char *name)
{
    put(ok ? "ok " : "not ok ");
    put_number(++tests);
    put(" - ");
    put(name);
    put("\n");
    failed |= !ok;
}

/* What was seen is told if it is not what was wanted. */
static bool is(const char *what, uint64_t got, uint64_t want)
{
    if (got != want) {
        note(what, got);
        note("  wanted", want);
    }
    return got == want;
}

static void power_off(void)
{
    static uint32_t rtas[6] = { 0x2003, 2, 1 };

    hcall(0xf000, (uintptr_t)rtas, 0, 0, 0);
    for (;;) {
    }
}

static void leave(void)
{
    mtspr(SPR_SRR0, come_back);
    mtspr(SPR_SRR1, KERNEL_MSR);
}

void handle(uint64_t vector_number)
{
    uint64_t at = mfspr(SPR_SRR0);

    switch (vector_number) {
    case 0xf00:
        pmis++;
        mtspr(SPR_MMCR0, mfspr(SPR_MMCR0) & ~(MMCR0_PMAO | MMCR0_PMAE));
        return;
    case 0x500:
        return;
    case 0x900:
        mtspr(SPR_DEC, 0x7fffffff);
        return;
    case 0xc00:
        system_calls++;
        leave();
        return;
    }
    faults++;
    if ((at >= (uintptr_t)text_start && at < (uintptr_t)text_end) ||
        (at >= (uintptr_t)code && at < (uintptr_t)(code + 16))) {
        mtspr(SPR_SRR0, at + 4);
        return;
    }
    strays++;
    if (!guarded_now) {
        put("not ok 0 - astray\n");
        power_off();
    }
    leave();
}

/* mtspr if it is a write, and mfspr */
static uint64_t access_register(unsigned n, uint64_t value, bool write)
{
    register uint64_t r3 asm("r3") = value;
    uint32_t field = (n & 31) << 16 | n >> 5 << 11;

    code[0] = write ? 31 << 26 | 3 << 21 | field | 467 << 1 : 0x60000000;
    code[1] = 31 << 26 | 3 << 21 | field | 339 << 1;
    code[2] = 0x4e800020;       /* blr */
    asm volatile("dcbst 0,%1; sync; icbi 0,%1; isync; mtctr %1; bctrl"
                 : "+r" (r3) : "r" (code) : "ctr", "lr", "memory");
    return r3;
}

static void __attribute__((noinline)) fuzz(uint64_t writes)
{
    for (uint64_t i = 0; i < writes; i++) {
        unsigned n = registers[rnd() % (sizeof(registers) / sizeof(*registers))];
        uint64_t value = nonsense();

        if (n == SPR_EBBHR && rnd() % 16) {
            value = (uintptr_t)ebb_handler;
        } else if (n == SPR_EBBHR || n == SPR_EBBRR) {
            value |= 1ULL << 59;        /* nothing is there */
        }
        access_register(n, value, rnd() % 8);
        if (rnd() % 16 == 0) {
            asm volatile(".long 0x7c00035c" : : : "memory");           /* clrbhrb */
            asm volatile(".long 0x7c60025c" : : : "r3", "memory");     /* mfbhrbe 3,0 */
        }
    }
    asm volatile("sc" : : : "memory");
}

/* All registers as after a reset */
static void calm(void)
{
    mtspr(SPR_MMCR0, MMCR0_FC);
    mtspr(SPR_MMCR1, 0);
    mtspr(SPR_MMCR2, 0);
    mtspr(SPR_MMCRA, 0);
    mtspr(SPR_BESCR, 0);
    mtspr(SPR_CTRL, 1);
    mtspr(SPR_PMC1, 0);
    mtspr(SPR_PMC2, 0);
    mtspr(SPR_PMC3, 0);
    mtspr(SPR_PMC4, 0);
    mtspr(SPR_PMC5, 0);
    mtspr(SPR_PMC6, 0);
}

/* 3 + 2 * 1000 instructions between the register writes, 1000 branches */
static void __attribute__((noinline)) counted_loop(uint64_t on, uint64_t off)
{
    asm volatile("li 3,1000; mtspr 795,%0; mtctr 3; nop; 1: nop; bdnz 1b; mtspr 795,%1"
                 : : "r" (on), "r" (off) : "r3", "ctr", "memory");
}

static void interrupts_on(void)
{
    asm volatile("mtmsrd %0,1; nop; nop; mtmsrd %1,1" : : "r" (MSR_EE), "r" (0L) : "memory");
}

/* Does it count, freeze and interrupt as it should? */
static bool works(void)
{
    unsigned before;
    bool ok;

    calm();
    /* PM_INST_CMPL and PM_BRU_FIN, which both PMC1 and another can count */
    mtspr(SPR_MMCR1, 0x68ULL << 24 | 0x02ULL << 16);
    counted_loop(0, MMCR0_FC);
    ok = is("branches", mfspr(SPR_PMC1), 1000);
    /* the write that starts it is not counted, the one that ends it is */
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
    ok &= is("interrupts while they are off", pmis - before, 0);
    interrupts_on();
    ok &= is("interrupts", pmis - before, 1);
    interrupts_on();
    ok &= is("interrupts after the one", pmis - before, 1);

    /* With MMCR0[EBE], there is none. */
    mtspr(SPR_MMCR0, MMCR0_FC | MMCR0_EBE | MMCR0_PMAO);
    interrupts_on();
    ok &= is("interrupts with EBE", pmis - before, 1);
    calm();
    return ok;
}

/* What a register is told, and what it tells then */
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

    /* What is new in v3.1 is storage there, and not there before. */
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
        /* An SPR that does not exist: no operation, or an interrupt */
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

/* Does an alert with these bits of MMCR0 and BESCR become an exception? */
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

/* Is the pending exception taken as soon as problem state is entered? */
static bool is_taken(void)
{
    mtspr(SPR_EBBRR, 0);
    guarded_now = true;
    guarded(do_nothing, 0, KERNEL_MSR | MSR_EE | MSR_PR);
    guarded_now = false;
    return mfspr(SPR_EBBRR) == (uintptr_t)do_nothing;
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

/*
 * Problem state implies address translation: the program's pages, one to one,
 * in the hash table that the machine has at the start, and a segment of 256 MB
 * with the number 1.
 */
static bool map_program(void)
{
    for (uint64_t page = (uintptr_t)text_start >> 12;
         page <= (uintptr_t)program_end >> 12; page++) {
        uint64_t group = (1 ^ page) & 0x7ff;

        /* H_ENTER: abbreviated virtual page number, valid; referenced,
           changed, coherent, writable for all */
        if (hcall(8, 0, group * 8, 1ULL << 28 >> 23 << 7 | 1, page << 12 | 0x192)) {
            return false;
        }
    }
    asm volatile("slbmte %0,%1; isync" : : "r" (1ULL << 12), "r" (1ULL << 27));
    return true;
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
    note("astray", strays);
    note("came back", system_calls);
    result(system_calls > ROUNDS / 2, "goes_through_most_of_the_nonsense");
    result(ok, "counts_between");
    result(works(), "counts_after");
    put("1..");
    put_number(tests);
    put("\n");
    power_off();
}
