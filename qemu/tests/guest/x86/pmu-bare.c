/*
 * Check that the counts and branch records of the emulated Zen PMU are exact at CPL 0
 *
 * Under an operating system, nobody knows how many instructions the kernel executes.
 * This program runs without a kernel, so that the counts at CPL 0 can be worked out
 * by hand: of interrupts, exceptions and system calls, and of the instructions that
 * return from them.  The program also puts BRS into states that no driver puts it into.
 *
 * bare.h tells how to build and run the program.  It prints the results on the first
 * serial port and switches the machine off.
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

/*
 * Bodies for measure().  The comments name the instructions that have to be counted,
 * one round of a .rept; an exception or interrupt counts as a branch only.
 */
BODY(nothing, "");
BODY(straight, ".rept 50\n nop\n .endr");
/* n = 1000 rounds: 1 + 2n instructions, n branches, of which n - 1 are taken */
BODY(loop, "mov $1000, %ecx\n 1: dec %ecx\n jnz 1b");
/* instructions: int, iretq */
BODY(soft_interrupts, ".rept 10\n int $0x40\n .endr");
/* #UD; instructions of the handler: addq, iretq */
BODY(undefined, ".rept 10\n ud2\n .endr");
/* #PF; instructions of the handler: add, addq, iretq */
BODY(page_faults, ".rept 10\n mov (%rdi), %al\n .endr");
/* instructions: mov, mov; rdpmc raises #GP; incl, add, addq, iretq in the handler */
BODY(general_faults, "mov $0x7fffffff, %ecx\n mov $0, %eax\n rdpmc");
/*
 * An interrupt from the APIC is pending when sti enables interrupts.  Instructions:
 * movl, sti, nop, nop, cli, and 6 instructions in the handler
 */
BODY(interrupts, ".rept 10\n movl $0x40041, (%rsi)\n sti\n nop\n nop\n"
     "cli\n .endr");
/* instructions: movl, sti, hlt, 6 instructions in the interrupt's handler, cli */
BODY(halts, ".rept 10\n movl $0x40041, (%rsi)\n sti\n hlt\n cli\n .endr");
/* instructions: movl, incl and iretq in the NMI's handler, nop */
BODY(nmi, ".rept 10\n movl $0x40400, (%rsi)\n nop\n .endr");
/* far return, far jump and far call: 18 instructions with 5 taken branches a round */
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
 * The counts at CPL 0 of a body that goes to user mode by IN_USER(), where @calls
 * SYSCALLs return to user mode and another SYSCALL ends it.  Instructions: lea, mov,
 * 5 push, iretq; for each SYSCALL that returns: test, jz (not taken), dec, sysretq; at
 * the end: test, jz (taken), jmp *, mov.
 */
#define IN_USER_KERNEL(calls)                           \
    { 8 + 4 * (calls) + 4, 1 + 2 * (calls) + 2, 1 + (calls) + 2 }

/* instructions in user mode: mov, 10 nop, mov, syscall */
BODY(user, IN_USER("mov $7, %ebp\n .rept 10\n nop\n .endr\n"
                   "mov $0, %eax\n syscall"));
/* instructions in user mode: mov, 3 syscalls that return, 1 syscall that ends */
BODY(user_calls, IN_USER("mov $3, %eax\n syscall\n syscall\n syscall\n"
                         "syscall"));
/* int, ud2 (#UD) and a page fault in user mode */
BODY(user_traps, IN_USER(".rept 10\n int $0x40\n ud2\n mov (%rdi), %al\n"
                         ".endr\n mov $0, %eax\n syscall"));

/*
 * Bodies for the events "conditional branches" and "mispredicted branches".  The
 * prediction is that backward branches are taken and forward branches are not.
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
/* Unconditional branches of all kinds are always predicted correctly. */
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
    expect("mispredicted branches in user mode", rdmsr(PERF_CTR(0)), 0);
    end(name);
}

static void check_prediction(void)
{
    check_branches("predicted_loop", loop, 1000, 1);
    check_branches("predicted_loop_instructions", loops, 10, 1);
    /* mispredicted: two forward branches that are taken, two backward ones that are not */
    check_branches("predicted_jumps", jumps_forward, 5, 4);
    check_branches("predicted_unconditional_branches", jumps_always, 0, 0);
}

/*
 * The checks of kvm-unit-tests for an AMD PMU: a loop of ten instructions is counted
 * within bounds, by each counter alone and by all counters at once; a counter overflows
 * with and without interrupt; a counter is written to while it counts; and a counter
 * with a counter mask counts.
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

    /* Every second counter has its overflow interrupt enabled. */
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
    expect("count with a mask is below the minimum", value < bounds[1].min, 1);
    end("kvm_unit_tests_counter_mask");

    begin();
    wrmsr(PERF_CTL(0), bound_event(1) | CTL_EN);
    run_rounds();
    wrmsr(PERF_CTR(0), 0);
    wrmsr(PERF_CTL(0), 0);
    expect("count after the write is small", rdmsr(PERF_CTR(0)) < bounds[1].min, 1);
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
    /* CPL 0, each round: iretq of int; #UD, addq, iretq; #PF, add, addq, iretq */
    check("traps_from_user_mode", user_traps,
          (struct counts){ 12 + 60, 3 + 50, 3 + 50 },
          (struct counts){ 12, 11, 11 });
}

/* Write an MSR, and return the number of #GP exceptions that the write raised. */
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

    /* Check that a counter without INT overflows without an interrupt. */
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
/* Code: three jumps, then clear BRSMEN, which releases the held interrupt */
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
/* Code: a jump, a software interrupt, an invalid instruction, then chain() */
BODY(run_mixed,
     "jmp 1f\n"
     "1: int $0x40\n"
     "2: ud2\n"
     "3: jmp chain");
/* Code: HLT, ended by an IPI, while the counter's interrupt is held, then chain() */
BODY(run_halted,
     "jmp 1f\n"
     "1: jmp 2f\n"
     "2: movl $0x40041, (%rsi)\n"
     "sti\n"
     "hlt\n"
     "jmp chain");

/* Code: an SMI while branches are recorded, then chain() */
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
     * The first two taken branches are the call of the body and the jump to chain().
     * The fifth taken branch, jump 2 of chain(), makes the counter overflow, and jumps
     * 3 to 18 are recorded.  The counter continues to count: jumps 3 to 39 and the
     * ret, the interrupt and its IRET.
     */
    begin();
    sample(taken, 5, CFG_EN, run_chain);
    expect_jumps(0, 16, 3);
    expect_sample(0, true, false, 1);
    expect("counter", rdmsr(PERF_CTR(0)), JUMPS - 3 + 1 + 2);
    end("sixteen_branches_after_the_overflow");

    /* call, sti, jmp, nop: the counter overflows at the instruction before jump 0 */
    begin();
    sample(insns, 4, CFG_EN, run_chain);
    expect_jumps(0, 16, 0);
    expect_sample(0, true, false, 1);
    end("overflow_by_an_instruction_before_a_branch");

    begin();
    sample(insns, 5, CFG_EN, run_chain);
    expect_jumps(0, 16, 1);
    end("overflow_by_a_branch_instruction");

    /* a loop: the emulator executes the same translated block for each branch */
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
    /*
     * The call and two jumps make the counter overflow, the third jump is recorded, and
     * WRMSR releases the interrupt.
     */
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

    /* After a capture, BRSMEN is 0: another overflow does not change the buffer. */
    begin();
    sample(taken, 5, CFG_EN, run_chain);
    measure(taken | CTL_OS | CTL_INT | CTL_EN, run_loop);
    asm volatile("cli");
    expect_jumps(0, 16, 3);
    end("one_pass");

    /* BRS is enabled for counter 1: the interrupt of counter 0 is not held. */
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
     * Counter 0 overflows at its fifth branch, jump 2 of chain(), and its interrupt is
     * held.  Counter 1 overflows at its ninth branch, jump 7.  The interrupt of counter
     * 1 is not held; the interrupt and its IRET are recorded as branches.
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

    /* SAMP_BR_FROM has a canonical address, SAMP_BR_TO only the low 48 bits. */
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

    /* An SMI, which the firmware handles, and RSM are recorded as branches. */
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

    /* While interrupts are off (cli), the PMU's interrupt waits in the APIC. */
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
 * STI and MOV SS hold off interrupts, and NMIs as well, until the next instruction is
 * complete (the "shadow").  In these bodies STI or MOV SS makes the counter overflow,
 * and the NMI has to wait for the end of the shadow.  If HLT is the next instruction,
 * the NMI and the pending interrupt both end HLT.
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
/* instructions that the CPU counts in this body: call, sti, nop, nop */
BODY(shadow_sti, "sti\n nop\n behind_sti: nop");
/* instructions that the CPU counts in this body: call, mov, mov, nop, nop */
BODY(shadow_mov_ss, "mov %ss, %eax\n mov %eax, %ss\n nop\n"
     "behind_mov_ss: nop");
/* instructions that the CPU counts in this body: call, movl, sti, hlt, nop */
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
        /* An NMI that does not wait for the end of the shadow leaves the CPU in HLT. */
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
