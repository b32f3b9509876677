// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Functions for test programs that use the PMU's registers directly
 *
 * An event-based branch event gives a program access to the registers, and the
 * kernel does not change the counters while the event is on the PMU.  A handler
 * of event-based branches notes where the program was interrupted.
 *
 * SPR numbers in problem state: PMC1 to PMC6 are 771 to 776, MMCR0 is 779, SIAR
 * 780, SDAR 781, BESCRS 800, BESCRR 802, EBBHR 804, EBBRR 805.
 */
#ifndef PMU_H
#define PMU_H

#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "../ktap.h"

#define EVENT_EBB (1ULL << 63)

#define MMCR0_FC   0x80000000UL
#define MMCR0_PMAE 0x04000000UL

#define mfspr(n) ({ uint64_t v_; asm volatile("mfspr %0," #n : "=r" (v_)); v_; })
#define mtspr(n, v) asm volatile("mtspr " #n ",%0" : : "r" ((uint64_t)(v)) : "memory")

/*
 * The handler of event-based branches notes where the program was interrupted,
 * freezes the counters and returns with event-based branches off (rfebb 0).  It
 * saves registers in the memory below the stack's red zone.  It addresses
 * variables by lis, so that the program has to be linked below 2 GB.
 */
uint64_t ebb_where, ebb_siar, ebb_sdar, ebb_count;

asm(".pushsection .text\n"
    "ebb_handler:\n"
    "    std 3,-600(1)\n"
    "    std 4,-608(1)\n"
    "    mfspr 3,805\n"                    /* EBBRR */
    "    lis 4,ebb_where@ha\n"
    "    std 3,ebb_where@l(4)\n"
    "    mfspr 3,780\n"                    /* SIAR */
    "    lis 4,ebb_siar@ha\n"
    "    std 3,ebb_siar@l(4)\n"
    "    mfspr 3,781\n"                    /* SDAR */
    "    lis 4,ebb_sdar@ha\n"
    "    std 3,ebb_sdar@l(4)\n"
    "    lis 4,ebb_count@ha\n"
    "    ld 3,ebb_count@l(4)\n"
    "    addi 3,3,1\n"
    "    std 3,ebb_count@l(4)\n"
    "    lis 3,-32768\n"
    "    mtspr 779,3\n"                    /* MMCR0 = FC */
    "    li 3,1\n"
    "    mtspr 802,3\n"                    /* BESCRR: PMEO */
    "    ld 3,-600(1)\n"
    "    ld 4,-608(1)\n"
    "    .long 0x4c000124\n"               /* rfebb 0 */
    ".popsection");
extern char ebb_handler[];

/* Freeze the counters, and enable event-based branches (BESCR[GE], BESCR[PME]). */
static inline void expect_branch(void)
{
    ebb_where = ebb_siar = ebb_sdar = ebb_count = 0;
    mtspr(779, MMCR0_FC);
    mtspr(804, ebb_handler);
    mtspr(802, 1);
    mtspr(800, 1ULL << 63 | 1ULL << 32);    /* BESCRS: GE, PME */
}

/* Open an event-based branch event for the calling thread, in user mode. */
static inline int open_ebb_event(uint64_t config, int group)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_RAW,
        .size = sizeof(attr),
        .config = EVENT_EBB | config,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .exclude_idle = 1,
        .pinned = group < 0,
        .exclusive = group < 0,
        .disabled = group < 0,
    };
    int fd = syscall(SYS_perf_event_open, &attr, 0, -1, group, 0);

    if (fd < 0) {
        ktap_note("event 0x%llx: %s", (unsigned long long)config, strerror(errno));
        ktap_result(false, "opens_events");
        exit(ktap_finish());
    }
    return fd;
}

/* Put the leader's group of events on the PMU, and set all counters to zero. */
static inline void start_events(int leader)
{
    uint64_t count;

    /* The first read makes sure that the events are on the PMU. */
    if (ioctl(leader, PERF_EVENT_IOC_ENABLE, 0) ||
        read(leader, &count, sizeof(count)) != sizeof(count)) {
        ktap_note("the events are not on the PMU: it is in use");
        ktap_result(false, "opens_events");
        exit(ktap_finish());
    }
    /* Set unused counters to zero as well: old values in them could overflow. */
    mtspr(771, 0);
    mtspr(772, 0);
    mtspr(773, 0);
    mtspr(774, 0);
    mtspr(775, 0);
    mtspr(776, 0);
    mtspr(779, 0);
}

#endif
