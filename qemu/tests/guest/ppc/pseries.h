/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions for programs that run without an operating system on a pseries
 * machine.  The emulator starts such a program instead of a kernel
 * (qemu-system-ppc64 -machine pseries,x-vof=on -kernel pmu-bare).  Results are
 * KTAP on the terminal of the partition.
 */

#ifndef PSERIES_H
#define PSERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bare.h"

#define MSR_EE (1ULL << 15)
#define MSR_PR (1ULL << 14)
#define MSR_ME (1ULL << 12)
#define KERNEL_MSR (MSR_SF | MSR_ME | MSR_RI)

#define MMCR0_FCP    (1ULL << 29)
#define MMCR0_FCM0   (1ULL << 27)
#define MMCR0_EBE    (1ULL << 20)
#define MMCR0_PMCC(n) ((n) << 18)
#define MMCR0_PMC1CE (1ULL << 15)
#define MMCR0_FCPC   (1ULL << 12)
#define MMCR0_PMAO   (1ULL << 7)
#define MMCR0_FC56   (1ULL << 4)
#define FSCR_EBB     (1ULL << 7)
#define BESCR_GE     (1ULL << 63)
#define BESCR_PME    (1ULL << 32)
#define BESCR_PMEO   (1ULL << 0)

enum {
    SPR_DEC = 22, SPR_SRR0 = 26, SPR_SRR1 = 27, SPR_CTRL = 152, SPR_FSCR = 153,
    SPR_PVR = 287, SPR_SIER2 = 752, SPR_SIER3 = 753, SPR_MMCR3 = 754, SPR_UMMCRA = 770,
    SPR_SIER = 784, SPR_MMCR2 = 785, SPR_MMCRA = 786,
    SPR_PMC1 = 787, SPR_PMC2, SPR_PMC3, SPR_PMC4, SPR_PMC5, SPR_PMC6,
    SPR_MMCR0 = 795, SPR_SIAR, SPR_SDAR, SPR_MMCR1,
    SPR_BESCRS = 800, SPR_BESCRSU, SPR_BESCRR, SPR_BESCRRU,
    SPR_EBBHR, SPR_EBBRR, SPR_BESCR,
};

/*
 * Numbers of performance monitor interrupts, of faults, of interrupts at addresses
 * outside the program, and of system calls, counted by the interrupt handler
 */
extern unsigned pmis, faults, strays, system_calls;
/* SRR0 at the first fault since the program set it to 0 */
extern uint64_t first_fault;
/* SRR0, SIAR and MMCR0 at the last performance monitor interrupt */
extern uint64_t pmi_srr0, pmi_siar, pmi_mmcr0;
/*
 * While true, an exception at an address outside the program makes guarded()
 * return.  While false, such an exception ends the program.
 */
extern volatile bool guarded_now;

extern char text_start[], text_end[], program_end[], ebb_handler[];

void guarded(void (*function)(uint64_t), uint64_t argument, uint64_t msr);
uint64_t access_register(unsigned n, uint64_t value, bool write);
bool map_program(void);
void interrupts_on(void);
void calm(void);

const char *boot_arguments(void);
void put(const char *s);
void put_number(uint64_t n);
void note(const char *what, uint64_t n);
void result(bool ok, const char *name);
bool is(const char *what, uint64_t got, uint64_t want);
void finish(void) __attribute__((noreturn));
void rtas(uint32_t token, uint32_t count, const uint32_t *arguments);
void power_off(void) __attribute__((noreturn));
void reset(void) __attribute__((noreturn));

#endif
