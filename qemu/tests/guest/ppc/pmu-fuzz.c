// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Check that the emulator survives random values in the registers of PMU and EBB
 *
 * usage: pmu-fuzz [WRITES [SEED]]
 *
 * Child processes write random values, in random order, to all PMU and EBB
 * registers that have an SPR number in problem state.  Every second process has
 * opened an event-based branch event, which gives it access to these registers.
 * A write that is refused raises SIGILL, and the signal handler steps over the
 * instruction.  An event-based branch to a random address can end a child
 * process, which is no failure.  The test is that the guest and the emulator
 * survive, and that counting works afterwards.
 */

#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include "../ktap.h"
#include "../random.h"

#define REGISTERS(X)                                                    \
    X(736) X(737) X(738)                    /* SIER2, SIER3, MMCR3 */   \
    X(768) X(769) X(770)                    /* SIER, MMCR2, MMCRA */    \
    X(771) X(772) X(773) X(774) X(775) X(776)   /* PMC1 to PMC6 */      \
    X(779) X(780) X(781) X(782)     /* MMCR0, SIAR, SDAR, MMCR1 */      \
    X(800) X(801) X(802) X(803)     /* BESCRS(U), BESCRR(U) */          \
    X(804) X(805) X(806)            /* EBBHR, EBBRR, BESCR */

static void access_register(unsigned which, uint64_t value)
{
    uint64_t old;

    switch (which) {
#define CASE(n)                                                         \
    case n:                                                             \
        asm volatile("mfspr %0," #n : "=r" (old));                      \
        asm volatile("mtspr " #n ",%0" : : "r" (value) : "memory");     \
        break;
    REGISTERS(CASE)
#undef CASE
    }
    (void)old;
}

static const unsigned numbers[] = {
#define NUMBER(n) n,
    REGISTERS(NUMBER)
#undef NUMBER
};

/* Signal handler: continue after the instruction that was refused. */
static void step_over(int sig, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;

    uc->uc_mcontext.gp_regs[32] += 4;
}

/*
 * The handler of event-based branches: return at once.  While BESCR[TS] is not
 * zero, rfebb is refused and step_over() continues after it; then all bits of
 * BESCR are cleared and rfebb is tried again.
 */
asm(".pushsection .text\n"
    "fuzz_handler:\n"
    "    std 3,-600(1)\n"
    "    li 3,3\n"
    "    mtspr 802,3\n"             /* BESCRR: EEO, PMEO */
    "    ld 3,-600(1)\n"
    "    .long 0x4c000924\n"        /* rfebb 1 */
    "    li 3,-1\n"
    "    mtspr 802,3\n"
    "    ld 3,-600(1)\n"
    "    .long 0x4c000924\n"
    ".popsection");
extern char fuzz_handler[];

static int open_event(uint64_t config)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_RAW,
        .size = sizeof(attr),
        .config = config,
        .pinned = 1,
        .exclusive = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };

    return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static void fuzz(long writes, bool with_event)
{
    struct sigaction act = { .sa_sigaction = step_over, .sa_flags = SA_SIGINFO };

    sigaction(SIGILL, &act, NULL);
    alarm(20);
    if (with_event) {
        open_event(1ULL << 63 | 0x1001e);
    }
    access_register(804, (uintptr_t)fuzz_handler);
    for (long i = 0; i < writes; i++) {
        unsigned n = numbers[rnd() % (sizeof(numbers) / sizeof(*numbers))];
        uint64_t value = nonsense();

        /* Write the handler's address to EBBHR nearly always. */
        if (n == 804 && rnd() % 256) {
            value = (uintptr_t)fuzz_handler;
        }
        access_register(n, value);
    }
    _exit(0);
}

/* Check that an event still counts instructions after all writes. */
static bool counts(void)
{
    int fd = open_event(0x10002);
    uint64_t before, after;

    if (fd < 0 || read(fd, &before, sizeof(before)) != sizeof(before)) {
        return false;
    }
    for (volatile int i = 0; i < 1000000; i++) {
    }
    return read(fd, &after, sizeof(after)) == sizeof(after) &&
           after - before > 1000000;
}

int main(int argc, char **argv)
{
    long writes = argc > 1 ? atol(argv[1]) : 20000;
    int ended_by_signal = 0;

    rnd_state = argc > 2 ? strtoull(argv[2], NULL, 0) : 0x9e3779b97f4a7c15;
    if (!rnd_state) {
        rnd_state = 1;
    }
    ktap_start();

    for (int round = 0; round < 16; round++) {
        pid_t pid;
        int status;

        rnd();
        pid = fork();
        if (pid == 0) {
            fuzz(writes / 16, round & 1);
        }
        waitpid(pid, &status, 0);
        ended_by_signal += WIFSIGNALED(status);
    }
    ktap_note("%d of 16 processes were ended by a signal", ended_by_signal);
    ktap_result(true, "survives");
    ktap_result(counts(), "counts_afterwards");
    return ktap_finish();
}
