// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Measure how fast the emulator is while its PMU is idle, and while it counts
 *
 * usage: pmu-cost WAY...
 *
 * A way is "idle" (no event), "counts" (events that count) or "samples" (an
 * event that samples).  For each way, the program repeats two pieces of work:
 * "computes" and "system_calls".  The program prints the shortest time that
 * each piece of work took, in nanoseconds of the guest's clock.  The ways take
 * turns, so that other load on the host slows down all of them.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TURNS 60
#define EVENTS 4

#ifdef __powerpc64__
#define TAKEN_BRANCHES 0x200fa
#else
#define TAKEN_BRANCHES 0xc4
#endif

enum way { IDLE, COUNTS, SAMPLES, WAYS };

static int events[WAYS][EVENTS];
static bool wanted[WAYS];

static int open_event(uint32_t type, uint64_t config, uint64_t period)
{
    struct perf_event_attr attr = {
        .type = type, .size = sizeof(attr), .config = config, .disabled = 1,
        .sample_period = period, .sample_type = PERF_SAMPLE_IP,
    };
    int fd;

#ifndef __powerpc64__
    if (period) {
        attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
        attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER |
                                  PERF_SAMPLE_BRANCH_KERNEL;
    }
#endif
    fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
    if (fd < 0) {
        printf("type %u, config %llx: %s\n", type, (unsigned long long)config, strerror(errno));
    }
    return fd;
}

static void switch_events(enum way way, unsigned long request)
{
    for (int i = 0; i < EVENTS; i++) {
        if (events[way][i] > 0) {
            ioctl(events[way][i], request, 0);
        }
    }
}

static uint64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static volatile uint64_t table[1024];

static void __attribute__((noinline)) computes(void)
{
    for (uint64_t i = 0, x = 1; i < 100000; i++) {
        x = x * 6364136223846793005ULL + 1442695040888963407ULL;
        if (x >> 63) {
            table[x >> 54] += x;
        }
    }
}

static void __attribute__((noinline)) system_calls(void)
{
    for (int i = 0; i < 1000; i++) {
        syscall(SYS_getppid);
    }
}

static void (*const works[])(void) = { computes, system_calls };
static const char *const work_names[] = { "computes", "system_calls" };
static const char *const way_names[] = { "idle", "counts", "samples" };

static void open_events(void)
{
    if (wanted[COUNTS]) {
        events[COUNTS][0] = open_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 0);
        events[COUNTS][1] = open_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 0);
#ifdef __powerpc64__
        events[COUNTS][2] = open_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, 0);
#endif
    }
    if (wanted[SAMPLES]) {
        events[SAMPLES][0] = open_event(PERF_TYPE_RAW, TAKEN_BRANCHES, 20011);
    }
}

int main(int argc, char **argv)
{
    uint64_t best[WAYS][2];

    for (int i = 1; i < argc; i++) {
        for (enum way way = 0; way < WAYS; way++) {
            wanted[way] |= !strcmp(argv[i], way_names[way]);
        }
    }
    memset(best, -1, sizeof(best));
    open_events();

    for (int turn = 0; turn < TURNS; turn++) {
        for (enum way way = 0; way < WAYS; way++) {
            if (!wanted[way]) {
                continue;
            }
            switch_events(way, PERF_EVENT_IOC_ENABLE);
            for (int i = 0; i < 2; i++) {
                uint64_t start = now(), took;

                works[i]();
                took = now() - start;
                best[way][i] = took < best[way][i] ? took : best[way][i];
            }
            switch_events(way, PERF_EVENT_IOC_DISABLE);
        }
    }
    for (enum way way = 0; way < WAYS; way++) {
        for (int i = 0; wanted[way] && i < 2; i++) {
            printf("%s %s %llu\n", way_names[way], work_names[i], (unsigned long long)best[way][i]);
        }
    }
    return 0;
}
