// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Check that the CPU properties of the emulated POWER PMU have the effects that
 * docs/system/ppc/pmu.rst describes
 *
 * The emulator's option -append "NAME=VALUE ..." tells the program which
 * properties the CPU has.  A NAME is the name of a property without "x-pmu-"; a
 * property that is missing there has its default value.  Every run checks all
 * behaviours, so that it fails if a property changes more than it should.
 *
 * With -append "rounds=N ...", the program only makes an alert N times, and
 * waits for the interrupt, which has to come as late as the properties say.
 * After the program has printed "running", the host can save and load the
 * machine.
 */

#include "pseries.h"

#define MMCR0_FCECE (1ULL << 25)
#define MMCR0_PMCJCE (1ULL << 14)
#define MMCR0_TRIGGER (1ULL << 13)

/* Number of nop instructions in a row, in which set_and_run() expects the interrupt */
#define ROW 700
/* Number of instructions after which the counter becomes negative */
#define START 10

#define PMC1_INSTRUCTIONS (0x02ULL << 24)
#define PMC2_CYCLES (0x1eULL << 16)

static struct {
    const char *name;
    uint64_t value;
} expected[] = {
    { "delay", 0 },
    { "siar-skid", 0 },
    { "pmc-edge", 0 },
    { "ebb-edge", 0 },
    { "fcece-pmae", 0 },
    { "cpi", 1 },
    { "cpi-jitter", 0 },
    /* not a property, but the number of rounds in alerts_last() */
    { "rounds", 0 },
};
enum { DELAY, SKID, PMC_EDGE, EBB_EDGE, FCECE_PMAE, CPI, JITTER, ROUNDS };
#define EXPECTED(n) (expected[n].value)

static void read_arguments(void)
{
    const char *s = boot_arguments();

    while (*s) {
        const char *end = s;
        bool known = false;

        while (*end && *end != '=') {
            end++;
        }
        for (unsigned i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
            const char *a = s, *b = expected[i].name;

            while (a < end && *a == *b) {
                a++;
                b++;
            }
            if (a == end && !*b && *end) {
                known = true;
                expected[i].value = 0;
                for (s = end + 1; *s >= '0' && *s <= '9'; s++) {
                    expected[i].value = expected[i].value * 10 + *s - '0';
                }
                break;
            }
        }
        if (!known) {
            result(false, "knows_its_arguments");
            finish();
        }
        while (*s == ' ') {
            s++;
        }
    }
}

/*
 * set_and_run(mmcr0, end) writes mmcr0 to MMCR0, executes ROW nop instructions and
 * writes end to MMCR0.  After an interrupt, execution continues in the row.
 */
asm(".text\n"
    "set_and_run: mtspr 795,3\n"
    "row: .rept 700; nop; .endr\n"
    "    mtspr 795,4\n"
    "    blr\n"
    "user_row: .rept 700; nop; .endr\n"
    "    sc");
void set_and_run(uint64_t mmcr0, uint64_t end);
void user_row(uint64_t unused);
extern char row[];

static void with_interrupts(uint64_t mmcr0)
{
    asm volatile("mtmsrd %0,1" : : "r" (MSR_EE | MSR_RI) : "memory");
    set_and_run(mmcr0, MMCR0_FC);
    asm volatile("mtmsrd %0,1" : : "r" (MSR_RI) : "memory");
}

static uint64_t index_of(uint64_t address, char *base)
{
    return (address - (uintptr_t)base) / 4;
}

/* Execute so many instructions that an overflow, its alert and its exception have come. */
static void wait(void)
{
    for (uint64_t n = START + EXPECTED(SKID) + EXPECTED(DELAY); n; n--) {
        asm volatile("nop" : : : "memory");
    }
}

static void prepare(uint64_t pmc1)
{
    calm();
    mtspr(SPR_MMCR1, PMC1_INSTRUCTIONS);
    mtspr(SPR_PMC1, pmc1);
}

/* Return the number of instructions from a counter's overflow until FCECE freezes it. */
static uint64_t until_frozen(void)
{
    return EXPECTED(FCECE_PMAE) ? EXPECTED(SKID) : 0;
}

/* Write MMCR0, wait until an alert has come, and return the new value of MMCR0. */
static uint64_t mmcr0_after(uint64_t mmcr0)
{
    mtspr(SPR_MMCR0, mmcr0);
    wait();
    return mfspr(SPR_MMCR0);
}

static void interrupts(void)
{
    uint64_t at = START + EXPECTED(SKID);
    unsigned before = pmis;
    bool ok;

    prepare(0x80000000 - START);
    with_interrupts(MMCR0_PMAE | MMCR0_PMC1CE);
    ok = is("interrupts", pmis - before, 1);
    ok &= is("taken after", index_of(pmi_srr0, row), at + EXPECTED(DELAY));
    ok &= is("SIAR, as the number of an instruction", index_of(pmi_siar, row), at - 1);
    ok &= is("MMCR0[PMAE]", pmi_mmcr0 & MMCR0_PMAE, 0);
    ok &= is("MMCR0[PMAO]", pmi_mmcr0 & MMCR0_PMAO, MMCR0_PMAO);
    result(ok, "overflow_interrupts_in_time");

    /* Setting MMCR0[PMAO] by mtspr is an alert as well, but does not set SIAR. */
    before = pmis;
    prepare(0);
    with_interrupts(MMCR0_FC | MMCR0_PMAO);
    ok = is("interrupts", pmis - before, 1);
    ok &= is("taken after", index_of(pmi_srr0, row), EXPECTED(DELAY));
    result(ok, "written_alert_interrupts_in_time");

    /* If MMCR0[PMAO] is cleared before the interrupt, no interrupt comes. */
    before = pmis;
    prepare(0);
    asm volatile("mtmsrd %0,1; mtspr 795,%1; mtspr 795,%2; mtmsrd %3,1"
                 : : "r" (MSR_EE | MSR_RI), "r" (MMCR0_FC | MMCR0_PMAO), "r" (MMCR0_FC),
                   "r" (MSR_RI) : "memory");
    wait();
    interrupts_on();
    result(is("interrupts", pmis - before, !EXPECTED(DELAY)), "exception_in_time_only");
}

/* An alert changes MMCR0 and SIAR even while MSR[EE] = 0 holds the interrupt back. */
static void alert(void)
{
    uint64_t at = START + EXPECTED(SKID), mmcr0;
    bool ok;

    prepare(0x80000000 - START);
    set_and_run(MMCR0_PMAE | MMCR0_PMC1CE | MMCR0_FCECE, 0);
    /* set_and_run() has overwritten MMCR0 at the end: only SIAR tells of the alert. */
    ok = is("SIAR, as the number of an instruction", index_of(mfspr(SPR_SIAR), row), at - 1);

    prepare(0x80000000 - START);
    mmcr0 = mmcr0_after(MMCR0_PMAE | MMCR0_PMC1CE | MMCR0_FCECE);
    ok &= is("MMCR0", mmcr0 & (MMCR0_FC | MMCR0_PMAE | MMCR0_PMAO), MMCR0_FC | MMCR0_PMAO);
    ok &= is("PMC1", mfspr(SPR_PMC1), 0x80000000 + until_frozen());
    result(ok, "overflow_alerts");
}

static void negative_counter(void)
{
    uint64_t mmcr0 = MMCR0_FC | MMCR0_PMAE | MMCR0_PMC1CE;
    uint64_t want = EXPECTED(PMC_EDGE) ? 0 : MMCR0_PMAO;
    bool ok;

    prepare(0x80000000);
    ok = is("alert", mmcr0_after(mmcr0) & MMCR0_PMAO, want);

    /* PMC1 is made negative by mtspr, after MMCR0[PMAE] was set. */
    prepare(0);
    mtspr(SPR_MMCR0, mmcr0);
    mtspr(SPR_PMC1, 0x80000000);
    wait();
    ok &= is("alert for a write", mfspr(SPR_MMCR0) & MMCR0_PMAO, want);

    /* PMC1 becomes negative by counting, before MMCR0[PMAE] is set. */
    prepare(0x80000000 - START);
    set_and_run(MMCR0_PMC1CE, MMCR0_FC);
    ok &= is("no alert without PMAE", mfspr(SPR_MMCR0) & MMCR0_PMAO, 0);
    ok &= is("alert later", mmcr0_after(mmcr0) & MMCR0_PMAO, want);
    result(ok, "negative_counter_alerts");
}

/* Check that a program in problem state takes the event-based branch at the right place. */
static void event_based_branches(void)
{
    uint64_t at = START + EXPECTED(SKID) + EXPECTED(DELAY);
    bool ok;

    mtspr(SPR_EBBHR, ebb_handler);
    prepare(0x80000000 - START);
    mtspr(SPR_EBBRR, 0);
    mtspr(SPR_BESCR, BESCR_GE | BESCR_PME);
    mtspr(SPR_MMCR0, MMCR0_FCS | MMCR0_EBE | MMCR0_PMAE | MMCR0_PMC1CE);
    guarded_now = true;
    guarded(user_row, 0, KERNEL_MSR | MSR_EE | MSR_PR);
    guarded_now = false;
    ok = is("branches after", index_of(mfspr(SPR_EBBRR), (char *)user_row), at);
    ok &= is("SIAR, as the number of an instruction",
             index_of(mfspr(SPR_SIAR), (char *)user_row), START + EXPECTED(SKID) - 1);
    result(ok, "overflow_branches_in_time");
}

static bool pending_after(uint64_t mmcr0, uint64_t bescr)
{
    mtspr(SPR_BESCR, bescr);
    mtspr(SPR_MMCR0, mmcr0);
    wait();
    return mfspr(SPR_BESCR) & BESCR_PMEO;
}

static void event_based_exceptions(void)
{
    bool later = !EXPECTED(EBB_EDGE), ok;

    calm();
    ok = is("with all set", pending_after(MMCR0_FC | MMCR0_EBE | MMCR0_PMAO, BESCR_PME), true);
    result(ok, "exception_sets_pmeo");

    calm();
    ok = is("without PME", pending_after(MMCR0_FC | MMCR0_EBE | MMCR0_PMAO, 0), false);
    ok &= is("with PME later", pending_after(MMCR0_FC | MMCR0_EBE | MMCR0_PMAO, BESCR_PME), later);
    result(ok, "pme_later");

    calm();
    ok = is("without EBE", pending_after(MMCR0_FC | MMCR0_PMAO, BESCR_PME), false);
    ok &= is("with EBE later", pending_after(MMCR0_FC | MMCR0_EBE | MMCR0_PMAO, BESCR_PME), later);
    /* A new alert sets BESCR[PMEO] with or without x-pmu-ebb-edge. */
    mtspr(SPR_MMCR0, MMCR0_FC | MMCR0_EBE);
    ok &= is("with another alert", pending_after(MMCR0_FC | MMCR0_EBE | MMCR0_PMAO, BESCR_PME), true);
    result(ok, "ebe_later");
    calm();
}

static void freeze(void)
{
    bool ok;

    prepare(0x80000000 - START);
    ok = is("frozen without PMAE", mmcr0_after(MMCR0_FCECE | MMCR0_PMC1CE) & MMCR0_FC,
            EXPECTED(FCECE_PMAE) ? 0 : MMCR0_FC);
    prepare(0x80000000 - START);
    ok &= is("frozen with PMAE",
             mmcr0_after(MMCR0_FCECE | MMCR0_PMC1CE | MMCR0_PMAE) & MMCR0_FC, MMCR0_FC);
    result(ok, "fcece_freezes");
}

/* Run a row with MMCR0[TRIGGER] set; return the number of instructions that PMC5 counts. */
static uint64_t counted_after_trigger(uint64_t pmc1)
{
    prepare(pmc1);
    set_and_run(MMCR0_TRIGGER, MMCR0_FC);
    return mfspr(SPR_PMC5);
}

/* While MMCR0[TRIGGER] is 1, PMC2 to PMC6 are frozen.  A negative PMC1 clears MMCR0[TRIGGER]. */
static void trigger(void)
{
    /* PMC5 counts the mtspr that stops it, too. */
    bool ok = is("PMC1 becomes negative", counted_after_trigger(0x80000000 - START), ROW + 1 - START);

    ok &= is("PMC1 is not negative", counted_after_trigger(0), 0);
    ok &= is("PMC1 is negative already", counted_after_trigger(0x80000000), ROW + 1);
    result(ok, "negative_pmc1_ends_trigger");
    calm();
}

static void cycles(void)
{
    uint64_t least = EXPECTED(CPI) - EXPECTED(JITTER), most = EXPECTED(CPI) + EXPECTED(JITTER);
    static uint32_t at[257];
    uint64_t lowest = -1, highest = 0, negative;
    uint32_t *to = at;
    bool ok;

    calm();
    mtspr(SPR_MMCR1, PMC2_CYCLES);
    mtspr(SPR_MMCR0, 0);
    asm volatile("mtctr %1\n"
                 "1: mfspr 0,788; stw 0,0(%0); addi %0,%0,4; bdnz 1b"
                 : "+b" (to) : "r" (257L) : "ctr", "r0", "memory");
    mtspr(SPR_MMCR0, MMCR0_FC);
    for (int i = 0; i < 256; i++) {
        uint64_t four = at[i + 1] - at[i];

        lowest = four < lowest ? four : lowest;
        highest = four > highest ? four : highest;
    }
    ok = lowest >= 4 * least && highest <= 4 * most && (lowest != highest) == (EXPECTED(JITTER) > 0);
    if (!ok) {
        note("least of four instructions", lowest);
        note("most of four instructions", highest);
    }
    ok &= is("cycles of 1024 instructions", at[256] - at[0], 1024 * EXPECTED(CPI));
    result(ok, "instructions_take_cycles");

    /* The alert has to come right after the instruction that makes PMC2 negative. */
    calm();
    mtspr(SPR_MMCR1, PMC2_CYCLES);
    mtspr(SPR_PMC2, 0x80000000 - 100 * EXPECTED(CPI) + 1);
    set_and_run(MMCR0_PMCJCE | MMCR0_FCECE | MMCR0_PMAE, MMCR0_FC);
    negative = mfspr(SPR_PMC2) - 0x80000000;
    ok = negative < (1 + until_frozen()) * most;
    if (!ok) {
        note("cycles after the overflow", negative);
    }
    result(ok, "cycles_overflow_in_time");
    calm();
}

/* Write MMCR0 and PMC1, and return the number of loop iterations until the interrupt. */
static uint64_t turns_until_interrupt(uint64_t mmcr0, uint64_t pmc1)
{
    uint64_t turns;

    prepare(pmc1);
    asm volatile("mtctr %3; li %0,0\n"
                 "mtspr 795,%1; mtmsrd %2,1\n"
                 "1: lwz 0,0(%4); cmpw 0,%5; bne 2f; addi %0,%0,1; bdnz 1b\n"
                 "2: mtmsrd %6,1"
                 : "=&b" (turns)
                 : "r" (mmcr0), "r" (MSR_EE | MSR_RI), "r" (10000000L), "b" (&pmis), "r" (pmis),
                   "r" (MSR_RI)
                 : "ctr", "cc", "r0", "memory");
    mtspr(SPR_MMCR0, MMCR0_FC);
    return turns;
}

static void alerts_last(void)
{
    /* An iteration has five instructions; the code around the loop has a few more. */
    uint64_t turns = (EXPECTED(SKID) + EXPECTED(DELAY)) / 5, exact = 0;

    put("# running\n");
    for (uint64_t round = 0; round < EXPECTED(ROUNDS); round++) {
        uint64_t mmcr0 = round & 1 ? MMCR0_PMAO : MMCR0_PMAE | MMCR0_PMC1CE;
        uint64_t got;

        /* Prevent decrementer interrupts: the instructions of their handler would count. */
        mtspr(SPR_DEC, 0x7fffffff);
        got = turns_until_interrupt(MMCR0_FC | mmcr0, 0x80000000);
        if (round & 1) {
            exact += got - EXPECTED(DELAY) / 5 + 1 <= 1;
        } else {
            exact += got - turns + 1 <= 1;
        }
    }
    result(is("interrupts in time", exact, EXPECTED(ROUNDS)), "alerts_last");
    finish();
}

void main(void)
{
    put("KTAP version 1\n");
    set_vectors(0x3100);
    mtspr(SPR_DEC, 0x7fffffff);
    mtspr(SPR_FSCR, FSCR_EBB);
    read_arguments();

    if (EXPECTED(ROUNDS)) {
        alerts_last();
    }
    result(map_program(), "maps_program");
    interrupts();
    alert();
    negative_counter();
    event_based_branches();
    event_based_exceptions();
    freeze();
    trigger();
    cycles();
    finish();
}
