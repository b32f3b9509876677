// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Check that ordinary perf events on the emulated POWER PMU count and sample correctly
 *
 * The kernel's driver samples with the performance monitor interrupt; no
 * event-based branches are used.  A loop executes a known number of instructions,
 * branches, loads and stores.  Events have to count exactly these numbers.
 * Sampling has to give one sample for each period, in the loop, and if one
 * instruction alone makes the event occur, at the address of this instruction.
 */

#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include "pmu.h"

#define BUFFER_PAGES 64

/* n rounds of 8 instructions: 2 loads, 1 store, 2 branches; the last branch is taken */
static void __attribute__((noinline)) loop(long n)
{
    static long area[2];

    asm volatile("mtctr %0\n"
                 ".globl loop_start\n"
                 "loop_start:\n"
                 "ld 7,0(%1); ld 8,8(%1); add 7,7,8; std 7,0(%1)\n"
                 "cmpdi 1,0; beq loop_end; nop\n"
                 ".globl loop_branch\n"
                 "loop_branch:\n"
                 "bdnz loop_start\n"
                 "loop_end:\n"
                 : : "r" (n), "b" (area) : "ctr", "cc", "memory", "r7", "r8");
}
extern char loop_start[], loop_branch[];

static int open_event(uint32_t type, uint64_t config, uint64_t period)
{
    struct perf_event_attr attr = {
        .type = type,
        .size = sizeof(attr),
        .config = config,
        .sample_period = period,
        .sample_type = PERF_SAMPLE_IP,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .disabled = 1,
    };
    int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);

    if (fd < 0) {
        ktap_note("type %u, config 0x%llx: %s", type,
                  (unsigned long long)config, strerror(errno));
    }
    return fd;
}

static uint64_t count(int fd, long n)
{
    uint64_t value = 0;

    ioctl(fd, PERF_EVENT_IOC_RESET, 0);
    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
    loop(n);
    ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
    if (read(fd, &value, sizeof(value)) != sizeof(value)) {
        ktap_note("read: %s", strerror(errno));
    }
    return value;
}

/*
 * Check that the event counts @each events in each round.  The code around the
 * loop is counted as well: count n rounds, count 2 * n rounds, and take the
 * difference.
 */
static void expect_count(const char *name, uint32_t type, uint64_t config,
                         uint64_t each)
{
    const long n = 1000000;
    int fd = open_event(type, config, 0);
    uint64_t once, twice;

    if (fd < 0) {
        ktap_result(false, name);
        return;
    }
    once = count(fd, n);
    twice = count(fd, 2 * n);
    close(fd);
    if (twice - once != each * n) {
        ktap_note("%llu in %ld rounds, %llu in twice as many",
                  (unsigned long long)once, n, (unsigned long long)twice);
    }
    ktap_result(twice - once == each * n, name);
}

/*
 * Sample an event that occurs @each times in each round of the loop.  Check the
 * number of samples, and that all of them are at the address @place or, if @place
 * is NULL, anywhere in the loop.
 */
static void expect_samples(const char *name, uint32_t type, uint64_t config,
                           uint64_t each, char *place)
{
    const uint64_t period = 100003;
    const long n = 3000000;
    long page = sysconf(_SC_PAGESIZE);
    uint64_t size = BUFFER_PAGES * page, samples = 0, elsewhere = 0, other = 0;
    int fd = open_event(type, config, period);
    struct perf_event_mmap_page *head;
    uint64_t want = each * n / period;
    char *data;

    head = fd < 0 ? MAP_FAILED : mmap(NULL, size + page, PROT_READ | PROT_WRITE,
                                      MAP_SHARED, fd, 0);
    if (head == MAP_FAILED) {
        ktap_note("%s", strerror(errno));
        ktap_result(false, name);
        return;
    }
    data = (char *)head + page;
    count(fd, n);
    for (uint64_t at = 0; at < head->data_head; ) {
        struct {
            struct perf_event_header header;
            uint64_t ip;
        } *record = (void *)(data + at);

        if (record->header.type == PERF_RECORD_SAMPLE) {
            bool inside = place ? record->ip == (uintptr_t)place
                                : record->ip >= (uintptr_t)loop_start &&
                                  record->ip <= (uintptr_t)loop_branch;
            samples++;
            if (!inside && !elsewhere++) {
                ktap_note("a sample at start + 0x%llx",
                          (unsigned long long)(record->ip - (uintptr_t)loop_start));
            }
        } else {
            other++;
        }
        at += record->header.size;
    }
    munmap(head, size + page);
    close(fd);
    /* One sample can come from the code right before or after the loop. */
    if (samples - want > 1 || elsewhere > 1 || other) {
        ktap_note("%llu samples, not %llu; %llu elsewhere, %llu other records",
                  (unsigned long long)samples, (unsigned long long)want,
                  (unsigned long long)elsewhere, (unsigned long long)other);
    }
    ktap_result(samples - want <= 1 && elsewhere <= 1 && !other, name);
}

#define L1D(op, result) (PERF_COUNT_HW_CACHE_L1D |                      \
                         PERF_COUNT_HW_CACHE_OP_##op << 8 |             \
                         PERF_COUNT_HW_CACHE_RESULT_##result << 16)

static void set_limit(const char *path, const char *value)
{
    int fd = open(path, O_WRONLY);

    if (fd < 0 || write(fd, value, strlen(value)) < 0) {
        ktap_note("%s: %s", path, strerror(errno));
    }
    close(fd);
}

int main(void)
{
    ktap_start();
    /* Emulated interrupts take long: keep the kernel from sampling less often. */
    set_limit("/proc/sys/kernel/perf_event_max_sample_rate", "1000000");
    set_limit("/proc/sys/kernel/perf_cpu_time_max_percent", "0");
    expect_count("counts_instructions", PERF_TYPE_HARDWARE,
                 PERF_COUNT_HW_INSTRUCTIONS, 8);
    expect_count("counts_branches", PERF_TYPE_HARDWARE,
                 PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 2);
    expect_count("counts_l1_references", PERF_TYPE_HARDWARE,
                 PERF_COUNT_HW_CACHE_REFERENCES, 2);
    expect_count("counts_l1_loads", PERF_TYPE_HW_CACHE, L1D(READ, ACCESS), 2);
    expect_count("counts_stores", PERF_TYPE_RAW, 0x200f0, 1);
    /* There is no miss: the emulator has no branch prediction and no caches. */
    expect_count("counts_branch_misses", PERF_TYPE_HARDWARE,
                 PERF_COUNT_HW_BRANCH_MISSES, 0);
    expect_count("counts_l1_load_misses", PERF_TYPE_HW_CACHE, L1D(READ, MISS), 0);

    expect_samples("samples_instructions", PERF_TYPE_HARDWARE,
                   PERF_COUNT_HW_INSTRUCTIONS, 8, NULL);
    expect_samples("samples_branches", PERF_TYPE_HARDWARE,
                   PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 2, NULL);
    expect_samples("samples_taken_branches", PERF_TYPE_RAW, 0x200fa, 1, loop_branch);
    expect_samples("samples_loads", PERF_TYPE_HW_CACHE, L1D(READ, ACCESS), 2, NULL);
    expect_samples("samples_stores", PERF_TYPE_RAW, 0x200f0, 1, loop_start + 12);
    return ktap_finish();
}
