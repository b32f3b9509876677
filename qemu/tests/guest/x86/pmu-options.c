/*
 * Check that the CPU properties of the emulated Zen PMU have the effects that
 * docs/system/i386/amd-pmu.rst describes
 *
 * The first word after the program's name on the command line is the property that the
 * CPU has been given, such as "x-brs-start-skid=5".  The program checks the effects of
 * this property.  On a CPU without the property the result is "not ok".
 *
 * bare.h tells how to build and run the program:
 *     qemu-system-x86_64 -M q35 -cpu EPYC-Milan,+brs,x-brs-start-skid=5 \
 *        -kernel pmu-options -append x-brs-start-skid=5 ...
 * With "-append 'x-brs-start-skid-random=7 until-told'", the program repeats the check
 * until a byte comes through the serial port.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "bare.h"

#define TAKEN_EVENT 0xc4

/* The value of the CPU property under test: a number, or a name */
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

/* Whether the command line has a second word: then repeat the check until input comes. */
static bool until_told;

static inline uint8_t inb(uint16_t port)
{
    uint8_t val;

    asm volatile("inb %1, %0" : "=a"(val) : "Nd"(port));
    return val;
}

static bool told_to_stop(void)
{
    return !until_told || (inb(0x3fd) & 1);
}

/*
 * The handler of the PMU's interrupt notes the address that it has interrupted.  The
 * handler of NMIs begins with two jumps, which BRS can record.
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

/* Code: an IPI, an invalid instruction and INT, each with IRET, then chain() */
BODY(run_mixed,
     "sti\n"
     "jmp 1f\n"
     "1: movl $0x40041, (%rsi)\n"
     "nop\n"
     "ud2\n"
     "int $0x40\n"
     "jmp chain");
/* Code: an NMI, then chain() */
BODY(run_nmi, "movl $0x40400, (%rsi)\n nop\n jmp chain");
/* Code: an SMI, then chain() */
BODY(run_smi, "movl $0x40200, (%rsi)\n nop\n jmp chain");
/* Code: three jumps, then clear BRSMEN in DBG_EXTN_CFG, then chain() */
BODY(run_release,
     "sti\n"
     "jmp 1f\n"
     "1: jmp 2f\n"
     "2: jmp 3f\n"
     "3: mov $0xc000010f, %ecx\n"
     "rdmsr\n"
     "and $~4, %eax\n"
     "wrmsr\n"
     "nop\n"
     "mov pmis(%rip), %eax\n"
     "mov %eax, pmis_after(%rip)\n"
     "jmp chain\n"
     ".pushsection .bss\n"
     "pmis_after: .skip 4\n"
     ".popsection");
extern volatile uint32_t pmis_after;
BODY(run_jumps, "jmp 1f\n 1: jmp 2f\n 2: jmp 3f\n 3:");
/* Code: conditional jumps after CMP, after NOP (not fused), and after TEST, then chain() */
BODY(run_fused,
     "fused_cmp: cmp %ecx, %ecx\n"
     "je 1f\n"
     "ud2\n"
     "1: nop\n"
     "fused_not: je 1f\n"
     "ud2\n"
     "1: or $1, %eax\n"
     "fused_test: testl $1, %eax\n"
     "jnz 1f\n"
     "ud2\n"
     "1: jmp chain");
extern const char fused_cmp[], fused_not[], fused_test[];
BODY(run_and_halt, "sti\n jmp 1f\n 1: jmp 2f\n 2: hlt\n after_halt: nop");
extern const char after_halt[];
/* Code: #UD, whose handler has two instructions, ten times */
BODY(undefined, ".rept 10\n ud2\n .endr");
/* Code: #UD in user mode, ten times, then mov and syscall */
BODY(undefined_user, IN_USER(".rept 10\n ud2\n .endr\n"
                             "mov $0, %eax\n syscall"));

/* Sample chain(): counter 0 overflows at jump 2, so that jump 3 can be recorded first. */
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

/*
 * The number of skipped branches is random, from the same generator as in the emulator:
 * each number is known in advance, even if the machine is saved and loaded meanwhile.
 */
static void check_start_skid_random(void)
{
    uint64_t random = 0x9e3779b97f4a7c15ULL;
    uint64_t seen = 0;

    put("# running\n");
    for (int i = 0; all_right && (i < 200 || !told_to_stop()); i++) {
        uint64_t n;

        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        n = random % (number + 1);
        sample_chain(CFG_EN);
        expect_jumps(0, 16, 3 + n);
        expect("interrupts", pmis, 1);
        seen |= 1ULL << n;
    }
    expect("skids seen", seen, (2ULL << number) - 1);
}

static void check_start(void)
{
    /* taken branches: call, NMI, and the first jump of the handler, which overflows */
    sample(TAKEN_EVENT, 3, CFG_EN, run_nmi);
    expect("NMIs", nmis, 1);
    if (name_is("deliverable")) {
        /* After the IRET of the NMI, the first branch is the jump to chain(). */
        expect("to", rdmsr(BR_TO(0)), (uintptr_t)chain);
        expect_jumps(1, 16, 0);
    } else {
        expect("to", rdmsr(BR_TO(2)), (uintptr_t)chain);
        expect_jumps(3, 16, 0);
    }
    expect("config", config(), CFG_FULL);

    /* While NMIs are not blocked, x-brs-start=deliverable has no effect. */
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

/* Exceptions, interrupts and IRET are not recorded, but count as taken branches. */
static void check_no_exceptions(void)
{
    sample(TAKEN_EVENT, 1, CFG_EN, run_mixed);
    /* recorded: the first jump, INT, and the jump to chain() */
    expect("to", rdmsr(BR_TO(1)), (uintptr_t)handle_soft);
    expect("to", rdmsr(BR_TO(2)), (uintptr_t)chain);
    expect_jumps(3, 16, 0);
    /* counted: jmp, 6 for three handlers, jmp, 40 jumps of chain() and its ret, PMI and IRET */
    expect("counter", rdmsr(PERF_CTR(0)), 1 + 6 + 1 + JUMPS + 1 + 2);
}

static void check_release(void)
{
    /* The counter overflows at the third taken branch: the third jump is recorded first. */
    sample(TAKEN_EVENT, 3, CFG_EN, run_release);
    expect("config", config(), CFG_FULL | CFG_OFF(1));
    expect("entry 1", rdmsr(BR_FROM(1)), 0);
    if (name_is("late")) {
        expect("interrupts before the chain", pmis_after, 0);
        expect("interrupts", pmis, 1);
        /* The interrupt is 16 branches late: the jump to chain(), and jumps 0 to 14. */
        expect("interrupted at", interrupted, jump(15));
    } else {
        expect("interrupts", pmis, name_is("drop") ? 0 : 1);
    }

    /* The release of an interrupt has no effect on the next capture. */
    sample_chain(CFG_EN);
    expect_jumps(0, 16, 3);
    expect("interrupts", pmis, 1);
}

static void check_ctl_cancels(void)
{
    /* The last jump and RET are recorded; then measure() stops the counter. */
    sample(TAKEN_EVENT, 3, CFG_EN, run_jumps);
    asm volatile("sti\n call chain\n cli" : : : "memory", "cc");
    expect("config", config(), CFG_FULL | CFG_EN | CFG_OFF(2));
    expect("entry 2", rdmsr(BR_FROM(2)), 0);
    expect("interrupts", pmis, 0);

    sample_chain(CFG_EN);
    expect_jumps(0, 16, 3);
    expect("interrupts", pmis, 1);
}

static void check_msroff_ro(void)
{
    wrmsr(DBG_EXTN_CFG, CFG_FULL | CFG_OFF(12));
    expect("config", config(), CFG_ONES);
    sample_chain(CFG_EN | CFG_OFF(5));
    expect_jumps(0, 16, 3);
    expect("config", config(), CFG_FULL);
    wrmsr(DBG_EXTN_CFG, CFG_ONES);
    expect("config", config(), CFG_FULL);

    /* VB and MSROFF keep their values, and the next capture begins at MSROFF. */
    sample(TAKEN_EVENT, 1000, CFG_EN, run_jumps);
    expect("config", config(), CFG_FULL | CFG_EN);
    sample(TAKEN_EVENT, 3, CFG_EN, run_release);
    expect("config", config(), CFG_FULL | CFG_OFF(1));
    sample_chain(CFG_EN);
    expect("entry 0", rdmsr(BR_FROM(0)), 0);
    expect_jumps(1, 16, 3);
    expect("config", config(), CFG_FULL);
}

static void check_fused_from(void)
{
    sample(TAKEN_EVENT, 1, CFG_EN, run_fused);
    expect("from", rdmsr(BR_FROM(0)), (uintptr_t)fused_cmp);
    expect("from", rdmsr(BR_FROM(1)), (uintptr_t)fused_not);
    expect("from", rdmsr(BR_FROM(2)), (uintptr_t)fused_test);
    expect_jumps(4, 16, 0);
}

static void check_to_bits(void)
{
    uint64_t from;

    sample(TAKEN_EVENT, 1, CFG_EN, run_high);
    from = rdmsr(BR_FROM(1));
    expect("from", from & UPPER_HALF, UPPER_HALF);
    expect("to", rdmsr(BR_TO(0)), from & ((1ULL << number) - 1));
}

static void check_pmi_delay(void)
{
    /* The counter overflows at jump 2; each jump of chain() is one instruction. */
    sample_chain(0);
    expect("interrupts", pmis, 1);
    expect("interrupted at", interrupted, jump(3 + number));

    /* A delayed interrupt ends HLT.  If it came too early above, HLT would never end. */
    if (!all_right) {
        return;
    }
    sample(TAKEN_EVENT, 3, 0, run_and_halt);
    expect("interrupts", pmis, 1);
    expect("interrupted at", interrupted, (uintptr_t)after_halt);
}

static void check_pmi_lose(void)
{
    for (int i = 1; i <= 4 * number; i++) {
        sample_chain(i % 2 ? CFG_EN : 0);
        expect("interrupts", pmis, i % number != 0);
    }
}

static void check_hold_all(void)
{
    /* Counter 0 overflows at jump 2, counter 1 at jump 7. */
    wrmsr(PERF_CTR(1), -9);
    sample(TAKEN_EVENT, 5, CFG_EN, run_second);
    wrmsr(PERF_CTL(1), 0);
    expect_jumps(0, 16, 3);
    expect("interrupts", pmis, 1);
    expect("interrupted at", interrupted, jump(3 + 16));
    expect("overflows", rdmsr(PERF_CTR(1)) < 1000, 1);
    wrmsr(PERF_CTR(1), 0);

    /* While BRS is off, each counter raises its own interrupt. */
    wrmsr(PERF_CTR(1), -9);
    sample(TAKEN_EVENT, 5, 0, run_second);
    wrmsr(PERF_CTL(1), 0);
    expect("interrupts", pmis, 2);
}

static uint64_t count(uint64_t ctl, body_fn *body)
{
    wrmsr(PERF_CTR(0), 0);
    measure(ctl | CTL_EN, body);
    return rdmsr(PERF_CTR(0));
}

static void check_count_exceptions(void)
{
    expect("instructions", count(0xc0 | CTL_OS, undefined),
           AROUND_INSNS + 10 * (1 + 2));
    expect("taken branches", count(TAKEN_EVENT | CTL_OS, undefined),
           AROUND_TAKEN + 10 * 2);
    /* Exceptions at CPL 3 count at CPL 3, the level that they leave. */
    expect("instructions", count(0xc0 | CTL_USR, undefined_user), 10 + 2);
    expect("taken branches", count(TAKEN_EVENT | CTL_USR, undefined_user),
           10 + 1);
}

static void check_record_vm(void)
{
    uint64_t smis = rdmsr(0x34);

    sample(TAKEN_EVENT, 1, CFG_EN, run_smi);
    expect("SMIs", rdmsr(0x34) - smis, 1);
    expect("to", rdmsr(BR_TO(0)), (uintptr_t)chain);
    expect_jumps(1, 16, 0);

    set_up_guest();
    sample(TAKEN_EVENT, 1, CFG_EN, run_guest);
    expect("exit code", guest_exit_code(), 0x81);
    expect("to", rdmsr(BR_TO(0)), (uintptr_t)chain);
    expect_jumps(1, 16, 0);
}

/*
 * N is 8: after the first 8 entries and after the last 8 entries there is an NMI.  Four
 * of the last entries are the first NMI's: its beginning, two jumps, and its IRET.
 */
static void check_nmi(void)
{
    sample_chain(CFG_EN);
    expect_jumps(0, number, 3);
    expect("to", rdmsr(BR_TO(number)), (uintptr_t)handle_nmi_with_jumps);
    expect("to", rdmsr(BR_TO(number + 3)), jump(3 + number));
    expect_jumps(number + 4, 2 * number, 3 + number);
    expect("NMIs", nmis, 2);
    expect("interrupts", pmis, 1);
}

static void check_cfg_lax(void)
{
    const uint64_t valid = 0x070f003c;
    uint32_t before = gps;

    expect("reset", config(), 0);
    wrmsr(DBG_EXTN_CFG, ~0ULL);
    expect("config", config(), valid);
    wrmsr(DBG_EXTN_CFG, 0);
    expect("config", config(), 0);
    expect("faults", gps - before, 0);

    sample_chain(CFG_EN);
    expect_jumps(0, 16, 3);
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
    { "x-brs-release", check_release },
    { "x-brs-ctl-cancels", check_ctl_cancels },
    { "x-brs-msroff-ro", check_msroff_ro },
    { "x-brs-fused-from", check_fused_from },
    { "x-brs-to-bits", check_to_bits },
    { "x-brs-hold-all", check_hold_all },
    { "x-brs-record-vm", check_record_vm },
    { "x-brs-nmi", check_nmi },
    { "x-brs-cfg-lax", check_cfg_lax },
    { "x-pmu-pmi-delay", check_pmi_delay },
    { "x-pmu-pmi-lose", check_pmi_lose },
    { "x-pmu-count-exceptions", check_count_exceptions },
};

/* Find the check for the property in "program property=value", and read the value. */
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
            until_told = *q == ' ';
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
        expect("property on the command line is known", 0, 1);
    }
    end("does_what_it_says");
    power_off();
}
