/*
 * Properties of the emulated Zen PMU that make it be otherwise
 *
 * The word that follows the program's name on the command line is the
 * property that the CPU has been given, in the same words, such as
 * "x-brs-start-skid=5".  The program checks what the documentation promises
 * for it, docs/system/i386/amd-pmu.rst.  On a CPU without the property the
 * result is "not ok".
 *
 * bare.h tells how it is built and run:
 *     qemu-system-x86_64 -M q35 -cpu EPYC-Milan,+brs,x-brs-start-skid=5 \
 *        -kernel pmu-options -append x-brs-start-skid=5 ...
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "bare.h"

#define TAKEN_EVENT 0xc4

/* What the property is set to: a number, or a name */
static uint64_t number;
static const char *name;

static bool name_is(const char *s)
{
    const char *p = name;

    while (*s && *s == *p) {
        s++;
        p++;
    }
    return *s == *p;
}

/*
 * The interrupt handler of this program: where did it come?  An NMI does
 * the same with two jumps before.
 */
extern volatile uint64_t interrupted;
extern const char handle_and_tell[], handle_nmi_with_jumps[];
asm(".pushsection .text\n"
    "handle_and_tell: push %rax\n"
    "incl pmis(%rip)\n"
    "mov 8(%rsp), %rax\n"
    "mov %rax, interrupted(%rip)\n"
    "mov $0xfee000b0, %eax\n"
    "movl $0, (%rax)\n"
    "pop %rax\n"
    "iretq\n"
    "handle_nmi_with_jumps: jmp 1f\n"
    "1: jmp 2f\n"
    "2: incl nmis(%rip)\n"
    "iretq\n"
    ".popsection\n"
    ".pushsection .bss\n"
    "interrupted: .skip 8\n"
    ".popsection\n");

BODY(run_chain, "sti\n jmp chain");
/* An interrupt and an exception on the way, and what returns from them */
BODY(run_mixed,
     "sti\n"
     "jmp 1f\n"
     "1: movl $0x40041, (%rsi)\n"
     "nop\n"
     "ud2\n"
     "int $0x40\n"
     "jmp chain");
/* An NMI on the way */
BODY(run_nmi, "movl $0x40400, (%rsi)\n nop\n jmp chain");

/* Counter 0 overflows at jump 2; all jumps from 3 on could be recorded. */
static void sample_chain(uint64_t cfg)
{
    sample(TAKEN_EVENT, 5, cfg, run_chain);
}

static uint64_t config(void)
{
    return rdmsr(DBG_EXTN_CFG);
}

#define CFG_FULL (CFG_ONES | CFG_VB)

static void check_start_skid(void)
{
    sample_chain(CFG_EN);
    expect_jumps(0, 16, 3 + number);
    expect("config", config(), CFG_FULL);
    expect("interrupts", pmis, 1);
}

/* Nothing but the distance is random, and it reaches both ends. */
static void check_start_skid_random(void)
{
    uint64_t seen = 0;

    for (int i = 0; i < 200; i++) {
        uint64_t n;

        sample_chain(CFG_EN);
        n = (rdmsr(BR_FROM(0)) - jump(3)) / 4;
        if (n > number) {
            expect("skid", n, number);
            return;
        }
        expect_jumps(0, 16, 3 + n);
        expect("interrupts", pmis, 1);
        seen |= 1ULL << n;
    }
    expect("skids seen", seen, (2ULL << number) - 1);
}

static void check_start(void)
{
    /* call, NMI, the first jump, which overflows */
    sample(TAKEN_EVENT, 3, CFG_EN, run_nmi);
    expect("NMIs", nmis, 1);
    if (name_is("deliverable")) {
        /* The jump to the chain is the first after the handler's IRET. */
        expect("to", rdmsr(BR_TO(0)), (uintptr_t)chain);
        expect_jumps(1, 16, 0);
    } else {
        expect("to", rdmsr(BR_TO(2)), (uintptr_t)chain);
        expect_jumps(3, 16, 0);
    }
    expect("config", config(), CFG_FULL);

    /* NMIs are not blocked: no difference */
    sample_chain(CFG_EN);
    expect_jumps(0, 16, 3);
    expect("interrupts", pmis, 1);
}

static void check_pmi_late(void)
{
    sample_chain(CFG_EN);
    expect_jumps(0, 16, 3);
    expect("config", config(), CFG_FULL);
    expect("interrupts", pmis, 1);
    expect("interrupted at", interrupted, jump(3 + 16 + number));
}

static void check_full(void)
{
    sample_chain(CFG_EN);
    expect_jumps(0, 16, 3);
    expect("config", config(),
           name_is("msroff-15") ? CFG_FULL | CFG_OFF(15) :
           name_is("brsmen-1") ? CFG_FULL | CFG_EN :
           name_is("vb-0") ? CFG_ONES : CFG_FULL);
    expect("interrupts", pmis, 1);
}

/* All of them count. */
static void check_no_exceptions(void)
{
    sample(TAKEN_EVENT, 1, CFG_EN, run_mixed);
    /* The jump, INT, and the jump to the chain */
    expect("to", rdmsr(BR_TO(1)), (uintptr_t)handle_soft);
    expect("to", rdmsr(BR_TO(2)), (uintptr_t)chain);
    expect_jumps(3, 16, 0);
    /* jmp, 6 for three handlers, jmp, the chain and its ret, PMI and IRET */
    expect("counter", rdmsr(PERF_CTR(0)), 1 + 6 + 1 + JUMPS + 1 + 2);
}

static const struct {
    const char *property;
    void (*check)(void);
} checks[] = {
    { "x-brs-start-skid", check_start_skid },
    { "x-brs-start-skid-random", check_start_skid_random },
    { "x-brs-start", check_start },
    { "x-brs-pmi-late", check_pmi_late },
    { "x-brs-full", check_full },
    { "x-brs-no-exceptions", check_no_exceptions },
};

/* Find the property in "program property=value", and read its value. */
static void (*find_check(const char *line))(void)
{
    while (*line && *line != ' ') {
        line++;
    }
    while (*line == ' ') {
        line++;
    }
    for (int i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        const char *p = checks[i].property, *q = line;

        while (*p && *p == *q) {
            p++;
            q++;
        }
        if (!*p && *q == '=') {
            name = ++q;
            while (*q >= '0' && *q <= '9') {
                number = number * 10 + *q++ - '0';
            }
            return checks[i].check;
        }
    }
    return NULL;
}

void __attribute__((used)) main(const uint32_t *multiboot)
{
    void (*check)(void) = find_check((const char *)(uintptr_t)multiboot[4]);

    put("TAP version 13\n");
    set_up();
    set_gate(2, handle_nmi_with_jumps);
    set_gate(VECTOR_PMI, handle_and_tell);
    begin();
    if (check) {
        check();
    } else {
        expect("a known property", 0, 1);
    }
    end("does_what_it_says");
    power_off();
}
