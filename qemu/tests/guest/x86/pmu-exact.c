/*
 * Check that the counters of the emulated Zen PMU count exactly
 *
 * usage: pmu-exact [PORT]
 *
 * Runs under Linux.  Each test is a piece of assembler code between the system call
 * that starts a group of counters and the system call that stops the group.  The
 * numbers that the counters must have are worked out by hand beside the code.
 *
 * The counters count in user mode only.  The SYSCALL that starts the counters is not
 * counted; the SYSCALL that stops them is counted as an instruction and as a taken
 * branch.
 *
 * With PORT, the program prints "running" and repeats the longest test until a byte
 * comes through PORT.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../ktap.h"
#include "../until-told.h"

enum { INSNS, BRANCHES, TAKEN, CYCLES, NEVENTS };

static const struct {
    const char *name;
    uint64_t config;
} events[NEVENTS] = {
    [INSNS] = { "instructions", 0xc0 },
    [BRANCHES] = { "branches", 0xc2 },
    [TAKEN] = { "taken branches", 0xc4 },
    [CYCLES] = { "cycles", 0x76 },
};

typedef void body_fn(long fd, void *arg);

/*
 * BODY() defines a function name(fd, arg) that starts the group of counters that fd
 * leads, runs the code, and stops the group.  The code gets arg in rbx and may change
 * all registers except rsp and r12.
 */
#define BODY(name, code)                                        \
    body_fn name;                                               \
    asm(".pushsection .text\n"                                  \
        ".globl " #name "\n"                                    \
        #name ":\n"                                             \
        "push %rbx\n push %rbp\n push %r12\n"                   \
        "push %r13\n push %r14\n push %r15\n"                   \
        "mov %rdi, %r12\n"                                      \
        "mov %rsi, %rbx\n"                                      \
        "mov $16, %eax\n"        /* ioctl(fd, ENABLE, GROUP) */ \
        "mov $0x2400, %esi\n"                                   \
        "mov $1, %edx\n"                                        \
        "syscall\n"                                             \
        code "\n"                                               \
        "mov $16, %eax\n"        /* ioctl(fd, DISABLE, GROUP) */\
        "mov %r12, %rdi\n"                                      \
        "mov $0x2401, %esi\n"                                   \
        "mov $1, %edx\n"                                        \
        "syscall\n"                                             \
        "pop %r15\n pop %r14\n pop %r13\n"                      \
        "pop %r12\n pop %rbp\n pop %rbx\n"                      \
        "ret\n"                                                 \
        ".popsection\n")

/* The instructions and branches that stop the counters, which are counted, too */
#define END_INSNS    5
#define END_BRANCHES 1
#define END_TAKEN    1

BODY(nothing, "");

BODY(straight, ".rept 100\n nop\n .endr");

/* n = 100000 rounds: 1 + 2n instructions, n branches, of which n - 1 are taken */
BODY(loop,
     "mov $100000, %ecx\n"
     "1: dec %ecx\n"
     "jnz 1b");

/* A loop that takes so long that some timer interrupts come */
BODY(long_loop,
     "mov $100000000, %ecx\n"
     "1: dec %ecx\n"
     "jnz 1b");

/* Every second jz is taken: a round has 6 instructions if so, otherwise 7 */
BODY(alternate,
     "mov $1000, %ecx\n"
     "1: test $1, %cl\n"
     "jz 2f\n"
     "nop\n"
     "2: lea 1(%rax), %rax\n"
     "lea 1(%rdx), %rdx\n"
     "dec %ecx\n"
     "jnz 1b");

/* call, ret, dec, jnz: 4 instructions with 3 taken branches in a round */
BODY(calls,
     "mov $1000, %ecx\n"
     "1: call 2f\n"
     "dec %ecx\n"
     "jnz 1b\n"
     "jmp 3f\n"
     "2: ret\n"
     "3:");

/* Direct jumps within a page and to other pages */
BODY(jumps,
     "mov $1000, %ecx\n"
     "1: jmp 2f\n"
     ".balign 4096\n"
     "2: jmp 3f\n"
     ".skip 5000, 0xcc\n"
     "3: dec %ecx\n"
     "jnz 1b");

/* An instruction that crosses a page border: the emulator ends a block there */
BODY(page_border,
     "jmp 2f\n"
     ".balign 4096\n"
     ".skip 4096 - 7\n"
     "2: nop\n"
     "nop\n"
     "movabs $0x1122334455667788, %rax\n"
     "nop");

/* Indirect jumps and calls through registers and memory, and ret imm16 */
BODY(indirect,
     "mov $1000, %ebp\n"
     "lea 4f(%rip), %rdx\n"
     "push %rdx\n"
     "1: lea 2f(%rip), %rax\n"
     "jmp *%rax\n"
     "nop\n"
     "2: lea 3f(%rip), %rax\n"
     "push %rdx\n"
     "call *%rax\n"
     "call *(%rsp)\n"
     "dec %ebp\n"
     "jnz 1b\n"
     "jmp 5f\n"
     "3: ret $8\n"
     "4: ret\n"
     "5: pop %rdx");

/* The instructions loop, loope, loopne and jrcxz; main() has the expected counts */
BODY(loop_insns,
     "mov $1000, %ecx\n"
     "1: loop 1b\n"
     "mov $1000, %ecx\n"
     "xor %eax, %eax\n"
     "2: loope 2b\n"
     "mov $1000, %ecx\n"
     "xor %eax, %eax\n"
     "3: loopne 3b\n"
     "jrcxz 4f\n"
     "mov $0, %ecx\n"
     "4: jrcxz 5f\n"
     "nop\n"
     "5:");

/*
 * A REP instruction counts once, however often it iterates and faults, and once as
 * well if its count is zero.
 */
BODY(rep_faults,
     "mov %rbx, %rdi\n"
     "mov $0x100000, %ecx\n"
     "mov $0x55, %eax\n"
     "rep stosb\n"
     "mov %rbx, %rsi\n"
     "lea 0x100000(%rbx), %rdi\n"
     "mov $0x20000, %ecx\n"
     "rep movsq\n"
     "xor %ecx, %ecx\n"
     "rep movsb\n"
     "mov %rbx, %rdi\n"
     "mov $0x100000, %ecx\n"
     "repe scasb\n"
     "mov %rbx, %rdi\n"
     "lea 0x100000(%rbx), %rsi\n"
     "mov $0x100000, %ecx\n"
     "repe cmpsb");

/* 256 stores, each of which faults because its page is not mapped yet: 3 + 4 * 256 instructions */
BODY(page_faults,
     "mov %rbx, %rdi\n"
     "mov $256, %ecx\n"
     "xor %eax, %eax\n"
     "1: mov %al, (%rdi)\n"
     "add $4096, %rdi\n"
     "dec %ecx\n"
     "jnz 1b");

/* 100 system calls (39 is getpid): 1 + 4 * 100 instructions */
BODY(system_calls,
     "mov $100, %ebp\n"
     "1: mov $39, %eax\n"
     "syscall\n"
     "dec %ebp\n"
     "jnz 1b");

/* Instructions for which the emulator leaves its translated code or its main loop */
BODY(special,
     "mov %rbx, %r13\n"
     ".rept 10\n"
     "pause\n"
     "xor %eax, %eax\n"
     "cpuid\n"
     "rdtsc\n"
     "lfence\n"
     "mfence\n"
     "lock incl -4(%rsp)\n"
     "xor %eax, %eax\n"
     "xchg %eax, -4(%rsp)\n"
     "fninit\n"
     "fld1\n"
     "fsqrt\n"
     "fstp %st(0)\n"
     ".endr\n"
     "lock cmpxchg16b (%r13)");


/*
 * Signal handlers for instructions that fault.  fault_handler gets the ucontext in rdx
 * and steps over the two bytes of the instruction that raised #UD or #DE;
 * trap_handler, for INT3, only returns.  An instruction that faults does not retire;
 * INT3 retires and is a taken branch.
 */
asm(".pushsection .text\n"
    "fault_handler: addq $2, 168(%rdx)\n"  /* RIP in the ucontext */
    "ret\n"
    "trap_handler: ret\n"
    "restorer: mov $15, %eax\n"            /* rt_sigreturn */
    "syscall\n"
    ".popsection\n");

/* For each ud2, these instructions are counted: addq, ret, mov, syscall. */
BODY(undefined, ".rept 10\n ud2\n .endr");

BODY(divide,
     "mov $10, %ebp\n"
     "1: xor %eax, %eax\n"
     "xor %edx, %edx\n"
     "xor %ecx, %ecx\n"
     "div %ecx\n"
     "dec %ebp\n"
     "jnz 1b");

/* For each int3, these instructions are counted: int3, ret, mov, syscall. */
BODY(breakpoints, ".rept 10\n int3\n .endr");

struct kernel_sigaction {
    void *handler;
    unsigned long flags;
    void *restorer;
    uint64_t mask;
};

static void handle(int sig, void *handler)
{
    extern char restorer[];
    struct kernel_sigaction act = {
        .handler = handler,
        .flags = 0x04000000 | SA_SIGINFO | SA_NODEFER,
        .restorer = restorer,
    };

    syscall(SYS_rt_sigaction, sig, &act, NULL, 8);
}

/* Open an event for the calling thread in user mode; leader is -1 for a group leader. */
static int open_event(uint32_t type, uint64_t config, int leader)
{
    struct perf_event_attr attr = {
        .type = type,
        .size = sizeof(attr),
        .config = config,
        .disabled = leader < 0,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .exclude_guest = 1,
    };

    return syscall(SYS_perf_event_open, &attr, 0, -1, leader, 0);
}

static int open_group(int fd[NEVENTS])
{
    for (int i = 0; i < NEVENTS; i++) {
        fd[i] = open_event(PERF_TYPE_RAW, events[i].config,
                           i ? fd[0] : -1);
        if (fd[i] < 0) {
            return -1;
        }
    }
    return 0;
}

static void check(const char *name, body_fn *body, uint64_t insns,
                  uint64_t branches, uint64_t taken)
{
    const uint64_t want[NEVENTS] = {
        [INSNS] = insns + END_INSNS,
        [BRANCHES] = branches + END_BRANCHES,
        [TAKEN] = taken + END_TAKEN,
        [CYCLES] = insns + END_INSNS,
    };
    size_t size = 4 << 20;
    bool ok = true;

    /* In the second run, the code is mapped already; the data is mapped anew for each run. */
    for (int run = 0; run < 2; run++) {
        int fd[NEVENTS];
        void *mem;

        mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mem == MAP_FAILED || open_group(fd)) {
            ktap_note("%s", strerror(errno));
            ktap_result(false, name);
            return;
        }
        body(fd[0], mem);
        for (int i = 0; i < NEVENTS; i++) {
            uint64_t got = 0;

            if (read(fd[i], &got, sizeof(got)) != sizeof(got) ||
                got != want[i]) {
                ktap_note("%s, run %d: %llu instead of %llu",
                          events[i].name, run, (unsigned long long)got,
                          (unsigned long long)want[i]);
                ok = false;
            }
            close(fd[i]);
        }
        munmap(mem, size);
    }
    ktap_result(ok, name);
}

/*
 * The events that "perf stat" counts by default.  Every instruction takes one cycle, so
 * that no cycle is stalled.  The only mispredicted branch is the end of the loop.
 */
static void check_perf_stat(void)
{
    static const struct {
        const char *name;
        uint64_t config, want;
    } defaults[] = {
        { "cycles", PERF_COUNT_HW_CPU_CYCLES, 200001 + END_INSNS },
        { "stalled-cycles-frontend", PERF_COUNT_HW_STALLED_CYCLES_FRONTEND,
          0 },
        { "instructions", PERF_COUNT_HW_INSTRUCTIONS, 200001 + END_INSNS },
        { "branches", PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
          100000 + END_BRANCHES },
        { "branch-misses", PERF_COUNT_HW_BRANCH_MISSES, 1 },
    };
    const int n = sizeof(defaults) / sizeof(defaults[0]);
    bool ok = true;
    int fd[n];

    for (int i = 0; i < n; i++) {
        fd[i] = open_event(PERF_TYPE_HARDWARE, defaults[i].config,
                           i ? fd[0] : -1);
    }
    loop(fd[0], NULL);
    for (int i = 0; i < n; i++) {
        uint64_t got = ~0ULL;

        if (read(fd[i], &got, sizeof(got)) != sizeof(got) ||
            got != defaults[i].want) {
            ktap_note("%s: %lld instead of %llu", defaults[i].name,
                      (long long)got, (unsigned long long)defaults[i].want);
            ok = false;
        }
        close(fd[i]);
    }
    ktap_result(ok, "perf_stat_default_events");
}

/* Check that RDPMC in user mode reads a running counter. */
static void check_rdpmc(void)
{
    struct perf_event_mmap_page *page;
    uint32_t lo, hi, lo2, hi2, index;
    int fd[NEVENTS];

    if (open_group(fd)) {
        ktap_result(false, "rdpmc");
        return;
    }
    page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd[0], 0);
    ioctl(fd[0], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
    index = page->index;
    if (!page->cap_user_rdpmc || !index) {
        ktap_note("no user rdpmc");
        ktap_result(false, "rdpmc");
        return;
    }
    /* counted between the reads: the first rdpmc, 2 mov, 10 nop, mov */
    asm volatile("rdpmc\n"
                 "mov %%eax, %0\n"
                 "mov %%edx, %1\n"
                 ".rept 10\n nop\n .endr\n"
                 "mov %4, %%ecx\n"
                 "rdpmc\n"
                 : "=&r"(lo), "=&r"(hi), "=&a"(lo2), "=&d"(hi2)
                 : "r"(index - 1), "c"(index - 1));
    ktap_note("%u instructions between two rdpmc", lo2 - lo);
    ktap_result(lo2 - lo == 14 && hi2 == hi, "rdpmc");
}

int main(int argc, char **argv)
{
    extern char fault_handler[], trap_handler[];
    int fd[NEVENTS];

    ktap_start();
    if (open_group(fd)) {
        ktap_skip_all("no hardware counters");
    }
    for (int i = 0; i < NEVENTS; i++) {
        close(fd[i]);
    }

    handle(SIGILL, fault_handler);
    handle(SIGFPE, fault_handler);
    handle(SIGTRAP, trap_handler);

    check("nothing", nothing, 0, 0, 0);
    check("straight", straight, 100, 0, 0);
    check("loop", loop, 1 + 2 * 100000, 100000, 99999);
    /* instructions: 1000 times test, jz, 2 lea, dec, jnz; 500 times nop */
    check("taken_and_not_taken", alternate, 1 + 6 * 1000 + 500, 2000,
          500 + 999);
    check("calls_and_returns", calls, 1 + 4 * 1000 + 1, 3 * 1000 + 1,
          2 * 1000 + 999 + 1);
    check("jumps", jumps, 1 + 4 * 1000, 3000, 2999);
    check("page_border", page_border, 5, 1, 1);
    /* instructions of a round: lea, jmp, lea, push, call, ret 8, call, ret, dec, jnz */
    check("indirect_jumps", indirect, 3 + 10 * 1000 + 2, 6 * 1000 + 1,
          5 * 1000 + 999 + 1);
    /* loop and loope are not taken when rcx is 0; loopne ends at once, as xor sets ZF */
    check("loop_instructions", loop_insns,
          (1 + 1000) + (2 + 1000) + (2 + 1) + 1 + 1 + 1,
          1000 + 1000 + 1 + 1 + 1, 999 + 999 + 0 + 0 + 1);
    check("rep_over_faulting_pages", rep_faults, 17, 0, 0);
    check("page_faults", page_faults, 3 + 4 * 256, 256, 255);
    check("system_calls", system_calls, 1 + 4 * 100, 200, 199);
    check("special_instructions", special, 13 * 10 + 2, 0, 0);
    check("undefined_instructions", undefined, 4 * 10, 2 * 10, 2 * 10);
    check("divide_errors", divide, 1 + 5 * 10 + 4 * 10, 10 + 2 * 10,
          9 + 2 * 10);
    check("breakpoints", breakpoints, 4 * 10, 3 * 10, 3 * 10);
    ktap_note("running");
    do {
        check("timer_interrupts", long_loop, 1 + 2 * 100000000ULL, 100000000,
              99999999);
    } while (!told_to_stop(argv[1]));
    check_perf_stat();
    check_rdpmc();
    return ktap_finish();
}
