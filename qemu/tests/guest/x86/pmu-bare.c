/*
 * The emulated Zen PMU and Branch Sampling without an operating system
 *
 * Under a kernel, nobody can say how many instructions the kernel executes.
 * This program is all that the machine runs, so that counts at CPL 0 can be
 * worked out by hand as well: of interrupts, exceptions, system calls and
 * what returns from them.  It also puts BRS into states that no driver puts
 * it into.
 *
 * bare.h tells how it is built and run.  Results go to the first serial
 * port; then the machine is switched off.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "bare.h"

struct counts {
    uint64_t insns, branches, taken;
};

static void check(const char *name, body_fn *body, struct counts kernel,
                  struct counts user)
{
    begin();
    for (int mode = 1; mode < 4; mode++) {
        struct counts want = { 0 };

        if (mode & 1) {
            want.insns += kernel.insns + AROUND_INSNS;
            want.branches += kernel.branches + AROUND_BRANCHES;
            want.taken += kernel.taken + AROUND_TAKEN;
        }
        if (mode & 2) {
            want.insns += user.insns;
            want.branches += user.branches;
            want.taken += user.taken;
        }
        for (int i = INSNS; i <= CYCLES; i++) {
            uint64_t ctl = events[i].select | CTL_EN;

            if (mode & 1) {
                ctl |= CTL_OS;
            }
            if (mode & 2) {
                ctl |= CTL_USR;
            }
            wrmsr(PERF_CTR(0), 0);
            measure(ctl, body);
            expect(events[i].name, rdmsr(PERF_CTR(0)),
                   i == BRANCHES ? want.branches :
                   i == TAKEN ? want.taken : want.insns);
        }
    }
    end(name);
}

BODY(nothing, "");
BODY(straight, ".rept 50\n nop\n .endr");
/* 1 + 2n, n, n - 1 */
BODY(loop, "mov $1000, %ecx\n 1: dec %ecx\n jnz 1b");
/* int and iretq */
BODY(soft_interrupts, ".rept 10\n int $0x40\n .endr");
/* The exception, addq, iretq */
BODY(undefined, ".rept 10\n ud2\n .endr");
/* The exception, add, addq, iretq */
BODY(page_faults, ".rept 10\n mov (%rdi), %al\n .endr");
/* mov, mov, mov, and rdmsr faults: the exception and 4 instructions */
BODY(general_faults, "mov $0x7fffffff, %ecx\n mov $0, %eax\n rdpmc");
/*
 * The APIC's interrupt is pending when it is enabled.  movl, sti, nop, nop,
 * cli, the interrupt, 6 in the handler
 */
BODY(interrupts, ".rept 10\n movl $0x40041, (%rsi)\n sti\n nop\n nop\n"
     "cli\n .endr");
/* movl, sti, hlt, the interrupt, the handler, cli */
BODY(halts, ".rept 10\n movl $0x40041, (%rsi)\n sti\n hlt\n cli\n .endr");
/* movl, the NMI, incl, iretq */
BODY(nmi, ".rept 10\n movl $0x40400, (%rsi)\n nop\n .endr");
/* lea, mov, push, lea, push, lretq, and back with ljmp *mem from the stack */
BODY(far_jumps,
     ".rept 10\n"
     "lea 1f(%rip), %rax\n"
     "push $8\n"
     "push %rax\n"
     "lretq\n"
     "1: lea 2f(%rip), %rax\n"
     "push $8\n"
     "push %rax\n"
     "rex.W ljmp *(%rsp)\n"
     "2: pop %rax\n"
     "pop %rax\n"
     "lea 3f(%rip), %rax\n"
     "push $8\n"
     "push %rax\n"
     "rex.W lcall *(%rsp)\n"
     "pop %rax\n"
     "pop %rax\n"
     "jmp 4f\n"
     "3: lretq\n"
     "4:\n"
     ".endr");
BODY(special, ".rept 10\n pause\n cli\n cld\n wbinvd\n mov %cr3, %rax\n"
     "mov %rax, %cr3\n invlpg (%rsp)\n mov %ss, %eax\n mov %eax, %ss\n"
     "nop\n lock incl ipis(%rip)\n .endr");

/*
 * To user mode and back.  Kernel: lea, mov, 5 push (the lea for rip among
 * them), iretq; then the SYSCALLs that return, test, jz (not taken), dec,
 * sysretq; at last test, jz (taken), jmp *, mov, and the end of the body.
 * User: the code below.
 */
#define IN_USER_KERNEL(calls)                           \
    { 8 + 4 * (calls) + 4, 1 + 2 * (calls) + 2, 1 + (calls) + 2 }

/* mov, 10 nop; mov, syscall */
BODY(user, IN_USER("mov $7, %ebp\n .rept 10\n nop\n .endr\n"
                   "mov $0, %eax\n syscall"));
/* mov and 3 syscalls that return with eax counted down, and the last one */
BODY(user_calls, IN_USER("mov $3, %eax\n syscall\n syscall\n syscall\n"
                         "syscall"));
/* int and ud2 in user mode */
BODY(user_traps, IN_USER(".rept 10\n int $0x40\n ud2\n mov (%rdi), %al\n"
                         ".endr\n mov $0, %eax\n syscall"));

/*
 * Which conditional branches there are, and which of them go against the
 * rule: backwards is taken, forwards is not.
 */
BODY(loops, "mov $10, %ecx\n 1: loop 1b");
BODY(jumps_forward,
     "xor %eax, %eax\n"                 /* ZF is set */
     "jnz 1f\n"
     "jz 1f\n"
     "ud2\n"
     "1: mov %eax, %ecx\n"
     "jrcxz 1f\n"
     "ud2\n"
     "1: inc %ecx\n"
     "jrcxz 1b\n"
     "1: jz 1b");
/* Whether an unconditional branch is taken and where it leads is foreseen. */
BODY(jumps_always,
     "call 1f\n"
     "lea 2f(%rip), %rax\n"
     "jmp *%rax\n"
     "1: ret\n"
     "2: int $0x40\n"
     "ud2");

static void check_branches(const char *name, body_fn *body,
                           uint64_t conditional, uint64_t mispredicted)
{
    begin();
    wrmsr(PERF_CTR(0), 0);
    measure(events[CONDITIONAL].select | CTL_OS | CTL_EN, body);
    expect(events[CONDITIONAL].name, rdmsr(PERF_CTR(0)), conditional);
    wrmsr(PERF_CTR(0), 0);
    measure(events[MISPREDICTED].select | CTL_OS | CTL_EN, body);
    expect(events[MISPREDICTED].name, rdmsr(PERF_CTR(0)), mispredicted);
    wrmsr(PERF_CTR(0), 0);
    measure(events[MISPREDICTED].select | CTL_USR | CTL_EN, body);
    expect("... of users", rdmsr(PERF_CTR(0)), 0);
    end(name);
}

static void check_prediction(void)
{
    check_branches("predicted_loop", loop, 1000, 1);
    check_branches("predicted_loop_instructions", loops, 10, 1);
    /* Two that are taken, and two backwards that are not */
    check_branches("predicted_jumps", jumps_forward, 5, 4);
    check_branches("predicted_unconditional_branches", jumps_always, 0, 0);
}

/*
 * What kvm-unit-tests expects of a PMU of AMD: a loop of ten instructions,
 * counted with a tolerance, by every counter and by all of them together;
 * the last value before the overflow; a counter that is written to while it
 * counts; and one with a counter mask.
 */
#define ROUNDS 100000

static const struct {
    int event;
    uint64_t min, max;
} bounds[] = {
    { CYCLES, ROUNDS, 50 * ROUNDS },
    { INSNS, 10 * ROUNDS, 102 * ROUNDS / 10 },
    { BRANCHES, ROUNDS, 11 * ROUNDS / 10 },
    { MISPREDICTED, 0, ROUNDS / 10 },
};

static uint64_t bound_event(int i)
{
    return events[bounds[i].event].select | CTL_OS | CTL_USR;
}

static void run_rounds(void)
{
    uint64_t n = ROUNDS;
    const volatile void *p = bounds;

    asm volatile("1: mov (%1), %%rax\n"
                 "add $0, %1\n"
                 "nop\n nop\n nop\n nop\n nop\n nop\n nop\n"
                 "loop 1b"
                 : "+c"(n), "+r"(p) : : "rax", "memory", "cc");
}

static void expect_within(uint64_t got, int i)
{
    if (got < bounds[i].min || got > bounds[i].max) {
        expect(events[bounds[i].event].name, got, bounds[i].min);
    }
}

static uint64_t count_rounds(int counter, uint64_t ctl, uint64_t start)
{
    wrmsr(PERF_CTR(counter), start);
    wrmsr(PERF_CTL(counter), ctl | CTL_EN);
    run_rounds();
    wrmsr(PERF_CTL(counter), ctl);
    return rdmsr(PERF_CTR(counter));
}

static void check_kvm_unit_tests(void)
{
    uint64_t preset, value;

    begin();
    for (int i = 0; i < 4; i++) {
        for (int counter = 0; counter < 6; counter++) {
            expect_within(count_rounds(counter, bound_event(i), 0), i);
        }
    }
    end("kvm_unit_tests_counters");

    begin();
    for (int counter = 0; counter < 6; counter++) {
        wrmsr(PERF_CTR(counter), 0);
        wrmsr(PERF_CTL(counter), bound_event(counter % 4) | CTL_EN);
    }
    run_rounds();
    for (int counter = 0; counter < 6; counter++) {
        wrmsr(PERF_CTL(counter), 0);
        expect_within(rdmsr(PERF_CTR(counter)), counter % 4);
    }
    end("kvm_unit_tests_all_counters");

    /* With an interrupt every other time */
    begin();
    preset = 1 - count_rounds(0, bound_event(1), 0);
    for (int counter = 0; counter < 6; counter++) {
        uint64_t irq = counter % 2 ? CTL_INT : 0;

        pmis = 0;
        value = count_rounds(counter, bound_event(1) | irq, preset);
        expect("value after overflow", value, 1);
        asm volatile("sti\n nop\n nop\n cli" : : : "memory");
        expect("interrupts", pmis, counter % 2);
    }
    end("kvm_unit_tests_overflow");

    begin();
    value = count_rounds(0, bound_event(1) | 2 << 24, 0);
    expect("less than without a mask", value < bounds[1].min, 1);
    end("kvm_unit_tests_counter_mask");

    begin();
    wrmsr(PERF_CTL(0), bound_event(1) | CTL_EN);
    run_rounds();
    wrmsr(PERF_CTR(0), 0);
    wrmsr(PERF_CTL(0), 0);
    expect("less than before", rdmsr(PERF_CTR(0)) < bounds[1].min, 1);
    end("kvm_unit_tests_write_while_counting");
    for (int counter = 0; counter < 6; counter++) {
        wrmsr(PERF_CTR(counter), 0);
    }
}

static void check_counts(void)
{
    const struct counts none = { 0 };

    check("nothing", nothing, none, none);
    check("straight", straight, (struct counts){ 50, 0, 0 }, none);
    check("loop", loop, (struct counts){ 2001, 1000, 999 }, none);
    check("soft_interrupts", soft_interrupts, (struct counts){ 20, 20, 20 },
          none);
    check("undefined_instructions", undefined,
          (struct counts){ 20, 20, 20 }, none);
    check("page_faults", page_faults, (struct counts){ 30, 20, 20 }, none);
    check("general_protection", general_faults,
          (struct counts){ 2 + 4, 2, 2 }, none);
    check("interrupts", interrupts, (struct counts){ 110, 20, 20 }, none);
    check("halts", halts, (struct counts){ 100, 20, 20 }, none);
    check("nmis", nmi, (struct counts){ 40, 20, 20 }, none);
    check("far_jumps", far_jumps, (struct counts){ 180, 50, 50 }, none);
    check("special_instructions", special, (struct counts){ 110, 0, 0 },
          none);
    check("user_mode", user, (struct counts)IN_USER_KERNEL(0),
          (struct counts){ 13, 1, 1 });
    check("system_calls", user_calls, (struct counts)IN_USER_KERNEL(3),
          (struct counts){ 5, 4, 4 });
    /* Each round: kernel iretq; #UD, addq, iretq; #PF, add, addq, iretq */
    check("traps_from_user_mode", user_traps,
          (struct counts){ 12 + 60, 3 + 50, 3 + 50 },
          (struct counts){ 12, 11, 11 });
}

/* Registers */

static uint64_t faults(uint32_t msr, uint64_t val)
{
    uint32_t before = gps;

    wrmsr(msr, val);
    return gps - before;
}

static void check_registers(void)
{
    uint32_t lo, hi, before;

    begin();
    expect("fault", faults(PERF_CTL(3), ~(1ULL << 22)), 0);
    expect("value", rdmsr(PERF_CTL(3)), 0x70fff9fffffULL);
    wrmsr(PERF_CTL(3), 0);
    end("perf_ctl_drops_reserved_bits");

    begin();
    expect("fault", faults(PERF_CTR(5), 0xabcdef0123456789ULL), 0);
    expect("value", rdmsr(PERF_CTR(5)), 0xef0123456789ULL);
    asm volatile("rdpmc" : "=a"(lo), "=d"(hi) : "c"(5));
    expect("rdpmc", lo | (uint64_t)hi << 32, 0xef0123456789ULL);
    before = gps;
    asm volatile("rdpmc" : "=a"(lo), "=d"(hi) : "c"(6));
    expect("faults", gps - before, 1);
    wrmsr(PERF_CTR(5), 0);
    end("rdpmc");

    begin();
    for (int i = 0; i < 4; i++) {
        wrmsr(PERF_CTR(i), i + 1);
        expect("counter", rdmsr(0xc0010004 + i), i + 1);
        wrmsr(0xc0010000 + i, i + 1);
        expect("control", rdmsr(PERF_CTL(i)), i + 1);
        wrmsr(PERF_CTL(i), 0);
        wrmsr(PERF_CTR(i), 0);
    }
    end("legacy_addresses");

    begin();
    expect("reset", rdmsr(DBG_EXTN_CFG), CFG_ONES);
    for (int bit = 0; bit < 64; bit++) {
        bool bad = !(0x070f003cULL >> bit & 1);

        if (bit != 3 && bit != 4) {
            expect("faults", faults(DBG_EXTN_CFG, CFG_ONES | 1ULL << bit),
                   bad);
        }
    }
    expect("faults", faults(DBG_EXTN_CFG, 0), 1);
    wrmsr(DBG_EXTN_CFG, CFG_ONES);
    end("config_reserved_bits");

    begin();
    for (int i = 0; i < 16; i++) {
        wrmsr(BR_FROM(i), ~(uint64_t)i);
        wrmsr(BR_TO(i), ~(uint64_t)i << 1);
    }
    for (int i = 0; i < 16; i++) {
        expect("from", rdmsr(BR_FROM(i)), ~(uint64_t)i);
        expect("to", rdmsr(BR_TO(i)), ~(uint64_t)i << 1);
    }
    end("samp_br_hold_64_bits");

    /* An overflow without an interrupt goes unnoticed. */
    begin();
    before = pmis;
    wrmsr(PERF_CTR(0), -10);
    asm volatile("sti");
    measure(events[TAKEN].select | CTL_OS | CTL_EN, loop);
    asm volatile("cli");
    expect("value", rdmsr(PERF_CTR(0)), 999 + AROUND_TAKEN - 10);
    expect("interrupts", pmis - before, 0);
    end("wrap_without_interrupt");
}

BODY(run_chain_cli, "jmp chain");
BODY(run_loop, "sti\n mov $1000, %ecx\n 1: dec %ecx\n jnz 1b");
/* Three jumps, then software ends it */
BODY(run_and_release,
     "sti\n"
     "jmp 1f\n"
     "1: jmp 2f\n"
     "2: jmp 3f\n"
     "3: mov $0xc000010f, %ecx\n"
     "rdmsr\n"
     "mov %eax, %ebp\n"
     "and $~4, %eax\n"
     "mov pmis(%rip), %r12d\n"
     "wrmsr\n"
     "nop\n"
     "mov pmis(%rip), %r13d\n"
     "mov %ebp, cfg_before(%rip)\n"
     "mov %r12d, pmis_before(%rip)\n"
     "mov %r13d, pmis_after(%rip)\n"
     ".pushsection .bss\n"
     "cfg_before: .skip 4\n"
     "pmis_before: .skip 4\n"
     "pmis_after: .skip 4\n"
     ".popsection");
extern volatile uint32_t cfg_before, pmis_before, pmis_after;
/* A software interrupt and a user mode visit on the way */
BODY(run_mixed,
     "jmp 1f\n"
     "1: int $0x40\n"
     "2: ud2\n"
     "3: jmp chain");
/* Halted by an interrupt from another source while one is held */
BODY(run_halted,
     "jmp 1f\n"
     "1: jmp 2f\n"
     "2: movl $0x40041, (%rsi)\n"
     "sti\n"
     "hlt\n"
     "jmp chain");

/* Recording starts before the SMI. */
BODY(run_smi, "movl $0x40200, (%rsi)\n smi_here: nop\n jmp chain");
extern const char smi_here[];

static void expect_sample(int off, bool vb, bool en, int interrupts)
{
    expect("config", rdmsr(DBG_EXTN_CFG), CFG_ONES | CFG_OFF(off) |
           (vb ? CFG_VB : 0) | (en ? CFG_EN : 0));
    expect("interrupts", pmis, interrupts);
}

static void check_sampling(void)
{
    const uint64_t taken = events[TAKEN].select;
    const uint64_t insns = events[INSNS].select;
    uint32_t before;

    /*
     * The call and the jump to the chain are the first two; the fifth
     * overflows, which is jump 2; 3 to 18 are recorded.  The counter goes
     * on: jumps 3 to 39 and the return, and the interrupt with its IRET.
     */
    begin();
    sample(taken, 5, CFG_EN, run_chain);
    expect_jumps(0, 16, 3);
    expect_sample(0, true, false, 1);
    expect("counter", rdmsr(PERF_CTR(0)), JUMPS - 3 + 1 + 2);
    end("sixteen_branches_after_the_overflow");

    /* call, sti, jmp, nop: the instruction before jump 0 overflows */
    begin();
    sample(insns, 4, CFG_EN, run_chain);
    expect_jumps(0, 16, 0);
    expect_sample(0, true, false, 1);
    end("overflow_by_an_instruction_before_a_branch");

    begin();
    sample(insns, 5, CFG_EN, run_chain);
    expect_jumps(0, 16, 1);
    end("overflow_by_a_branch_instruction");

    /* A loop, so that the same block is executed again and again */
    begin();
    sample(taken, 100, CFG_EN, run_loop);
    for (int i = 1; i < 16; i++) {
        expect("from", rdmsr(BR_FROM(i)), rdmsr(BR_FROM(0)));
        expect("to", rdmsr(BR_TO(i)), rdmsr(BR_TO(0)));
        expect("length", rdmsr(BR_FROM(i)) - rdmsr(BR_TO(i)), 2);
    }
    expect_sample(0, true, false, 1);
    end("loop");

    begin();
    sample(taken, 3, CFG_EN, run_and_release);
    /* The call, two jumps, one more is recorded; then WRMSR */
    expect("config before", cfg_before,
           CFG_ONES | CFG_EN | CFG_VB | CFG_OFF(1));
    expect("interrupts before", pmis_before, 0);
    expect("interrupts after", pmis_after, 1);
    expect_sample(1, true, false, 1);
    expect("entry 1", rdmsr(BR_FROM(1)), 0);
    end("release_by_software");

    begin();
    sample(taken, 4, CFG_EN, run_and_release);
    expect("interrupts before", pmis_before, 0);
    expect("interrupts after", pmis_after, 1);
    expect_sample(0, false, false, 1);
    expect("entry 0", rdmsr(BR_FROM(0)), 0);
    end("release_of_an_empty_buffer");

    begin();
    sample(taken, 5, CFG_EN | CFG_OFF(12), run_chain);
    expect_jumps(12, 16, 3);
    expect("entry 0", rdmsr(BR_FROM(0)), 0);
    expect_sample(0, true, false, 1);
    end("start_in_the_middle");

    /* No second pass: what comes later does not change the buffer. */
    begin();
    sample(taken, 5, CFG_EN, run_chain);
    measure(taken | CTL_OS | CTL_INT | CTL_EN, run_loop);
    asm volatile("cli");
    expect_jumps(0, 16, 3);
    end("one_pass");

    /* BRS is on, but for another counter. */
    begin();
    sample(taken, 5, CFG_EN | CFG_PMC(1), run_chain);
    expect("entry 0", rdmsr(BR_FROM(0)), 0);
    expect("interrupts", pmis, 1);
    expect("config", rdmsr(DBG_EXTN_CFG), CFG_ONES | CFG_EN | CFG_PMC(1));
    end("other_counter_is_not_held");

    begin();
    sample(taken, 5, 0, run_chain);
    expect("entry 0", rdmsr(BR_FROM(0)), 0);
    expect_sample(0, false, false, 1);
    end("not_held_when_off");

    /*
     * Jump 2 is the fifth branch of counter 0, and jump 7 the ninth of
     * counter 1, whose interrupt is not held: it and its IRET are recorded
     * like everything else.
     */
    begin();
    wrmsr(PERF_CTR(1), -9);
    sample(taken, 5, CFG_EN, run_second);
    wrmsr(PERF_CTL(1), 0);
    wrmsr(PERF_CTR(1), 0);
    expect_jumps(0, 5, 3);
    expect("from", rdmsr(BR_FROM(5)), jump(8));
    expect("to", rdmsr(BR_TO(5)), (uintptr_t)handle_pmi);
    expect("to", rdmsr(BR_TO(6)), jump(8));
    expect_jumps(7, 16, 8);
    expect_sample(0, true, false, 2);
    end("second_counter_does_not_disturb");

    /* FROM is canonical; in TO the sign is not extended. */
    begin();
    sample(taken, 1, CFG_EN, run_high);
    expect("from", rdmsr(BR_FROM(0)) & UPPER_HALF, 0);
    expect("to", rdmsr(BR_TO(0)) >> 32, 0x8000);
    expect("from", rdmsr(BR_FROM(1)) & UPPER_HALF, UPPER_HALF);
    expect("to", rdmsr(BR_TO(1)) >> 32, 0x8000);
    expect("from", rdmsr(BR_FROM(2)) & UPPER_HALF, UPPER_HALF);
    expect("to", rdmsr(BR_TO(2)) >> 32, 0);
    expect_jumps(4, 16, 0);
    end("upper_half");

    begin();
    sample(taken, 1, CFG_EN, run_mixed);
    expect("to", rdmsr(BR_TO(1)), (uintptr_t)handle_soft);
    expect("from", rdmsr(BR_FROM(1)), rdmsr(BR_TO(0)));
    expect("from", rdmsr(BR_FROM(2)), (uintptr_t)handle_soft);
    expect("to", rdmsr(BR_TO(2)), rdmsr(BR_FROM(1)) + 2);
    expect("from", rdmsr(BR_FROM(3)), rdmsr(BR_TO(2)));
    expect("to", rdmsr(BR_TO(3)), (uintptr_t)handle_ud);
    expect("to", rdmsr(BR_TO(4)), rdmsr(BR_FROM(3)) + 2);
    expect_jumps(6, 16, 0);
    end("exceptions_are_recorded");

    /* An SMI, here to the firmware's handler, is one as well, like RSM. */
    begin();
    sample(taken, 1, CFG_EN, run_smi);
    expect("from", rdmsr(BR_FROM(0)), (uintptr_t)smi_here);
    expect("to", rdmsr(BR_TO(0)) & 0xffff, 0x8000);
    expect("from the entry on", rdmsr(BR_FROM(1)) >= rdmsr(BR_TO(0)), 1);
    end("smi_is_recorded");

    begin();
    set_up_guest();
    sample(taken, 1, CFG_EN, run_guest);
    expect("exit code", guest_exit_code(), 0x81);
    expect("from", rdmsr(BR_FROM(0)), (uintptr_t)guest_start);
    expect("from", rdmsr(BR_FROM(1)), rdmsr(BR_TO(0)));
    expect("to", rdmsr(BR_TO(2)), (uintptr_t)chain);
    expect_jumps(3, 16, 0);
    end("guest_is_recorded");

    begin();
    before = ipis;
    sample(taken, 2, CFG_EN, run_halted);
    expect("interrupts", ipis - before, 1);
    expect("to", rdmsr(BR_TO(1)), (uintptr_t)handle_ipi);
    expect_jumps(4, 16, 0);
    expect_sample(0, true, false, 1);
    end("halted_while_held");

    /* With interrupts off, it waits in the APIC. */
    begin();
    sample(taken, 5, CFG_EN, run_chain_cli);
    expect("interrupts", pmis, 0);
    asm volatile("sti\n nop\n nop\n cli");
    expect("interrupts", pmis, 1);
    expect_jumps(0, 16, 3);
    end("delivered_when_enabled");

    begin();
    APIC(APIC_LVTPC) = APIC_MODE_NMI;
    sample(taken, 5, CFG_EN, run_chain_cli);
    expect("NMIs", nmis, 1);
    expect("interrupts", pmis, 0);
    expect_jumps(0, 16, 3);
    end("nmi");

    begin();
    APIC(APIC_LVTPC) = APIC_MASKED | VECTOR_PMI;
    sample(taken, 5, CFG_EN, run_chain);
    APIC(APIC_LVTPC) = VECTOR_PMI;
    asm volatile("sti\n nop\n nop\n cli");
    expect("interrupts", pmis, 0);
    expect_jumps(0, 16, 3);
    end("masked");
}

/*
 * In the shadow of STI and MOV SS, an NMI waits as interrupts do: HLT, if it
 * comes next, is ended by both.  The instruction that casts the shadow is
 * the one that overflows.
 */
extern volatile uint64_t nmi_at;
extern const char handle_nmi_and_tell[];
asm(".pushsection .text\n"
    "handle_nmi_and_tell: push %rax\n"
    "mov 8(%rsp), %rax\n"
    "mov %rax, nmi_at(%rip)\n"
    "incl nmis(%rip)\n"
    "pop %rax\n"
    "iretq\n"
    ".popsection\n"
    ".pushsection .bss\n"
    "nmi_at: .skip 8\n"
    ".popsection\n");
/* call, sti, nop, nop */
BODY(shadow_sti, "sti\n nop\n behind_sti: nop");
/* call, mov, mov, nop, nop */
BODY(shadow_mov_ss, "mov %ss, %eax\n mov %eax, %ss\n nop\n"
     "behind_mov_ss: nop");
/* call, movl, sti, hlt, nop */
BODY(shadow_hlt, "movl $0x40041, (%rsi)\n sti\n hlt\n behind_hlt: nop");
extern const char behind_sti[], behind_mov_ss[], behind_hlt[];

static void check_shadow(void)
{
    const uint64_t insns = events[INSNS].select;
    uint32_t before = ipis;

    set_gate(2, handle_nmi_and_tell);
    APIC(APIC_LVTPC) = APIC_MODE_NMI;
    begin();
    sample(insns, 2, 0, shadow_sti);
    expect("NMIs", nmis, 1);
    expect("NMI at", nmi_at, (uintptr_t)behind_sti);
    sample(insns, 3, 0, shadow_mov_ss);
    expect("NMIs", nmis, 1);
    expect("NMI at", nmi_at, (uintptr_t)behind_mov_ss);
    if (all_right) {
        /* Otherwise the CPU would sleep for ever. */
        sample(insns, 3, 0, shadow_hlt);
        expect("NMIs", nmis, 1);
        expect("NMI at", nmi_at, (uintptr_t)behind_hlt);
        expect("interrupts", ipis - before, 1);
    }
    end("nmi_waits_for_the_end_of_the_shadow");
    APIC(APIC_LVTPC) = VECTOR_PMI;
    set_gate(2, handle_nmi);
}

void __attribute__((used)) main(void)
{
    put("TAP version 13\n");
    set_up();
    check_counts();
    check_prediction();
    check_kvm_unit_tests();
    check_registers();
    check_sampling();
    check_shadow();
    power_off();
}
