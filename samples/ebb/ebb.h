/* SPDX-License-Identifier: GPL-2.0-or-later WITH Linux-syscall-note */
/*
 * Event-based branches (EBB) of the PowerPC PMU, for programs in C and C++.
 *
 * A program needs only this header and ebb_entry.S to handle EBBs in a function.
 * Copy both files. They work for 64-bit programs of either byte order (ELFv1 and
 * ELFv2) on POWER8 and later. ebb-example.c shows how to use them, ebb-threads.cc
 * shows C++ and threads, and ebb-bhrb.c shows how to read the branch history.
 * Documentation/arch/powerpc/pmu-ebb.rst explains the kernel's side.
 */
#ifndef EBB_H
#define EBB_H

/*
 * The stack below the interrupted stack pointer, as ebb_entry lays it out, from
 * low to high addresses: a minimal frame for the C handler, struct ebb_regs, and
 * the area that the interrupted function can use below its stack pointer (r1):
 * 288 bytes for the function, and 224 bytes that the ABI reserves for system code.
 */
#define EBB_RED_ZONE	512
#define EBB_C_FRAME	112	/* bytes of a minimal frame for ELFv1 and ELFv2 */

/* Offsets of the fields of struct ebb_regs, in bytes */
#define EBB_REG_GPR	0
#define EBB_REG_NIP	104
#define EBB_REG_LR	112
#define EBB_REG_CTR	120
#define EBB_REG_XER	128
#define EBB_REG_CR	136
#define EBB_REG_FPSCR	144
#define EBB_REG_VSCR	160
#define EBB_REG_VSR	176
#define EBB_REGS_SIZE	1008

/* Numbers of the special purpose registers (SPRs) for programs in user mode */
#define EBB_SPR_SIER2	736
#define EBB_SPR_SIER3	737
#define EBB_SPR_MMCR3	738
#define EBB_SPR_SIER	768
#define EBB_SPR_MMCR2	769
#define EBB_SPR_MMCRA	770
#define EBB_SPR_PMC(n)	(770 + (n))	/* PMC1 to PMC6: n is 1 to 6 */
#define EBB_SPR_MMCR0	779
#define EBB_SPR_SIAR	780
#define EBB_SPR_SDAR	781
#define EBB_SPR_BESCRS	800	/* write ones to set bits of BESCR */
#define EBB_SPR_BESCRSU	801	/* ones in bits 31 to 0 set BESCR bits 63 to 32 */
#define EBB_SPR_BESCRR	802	/* write ones to clear bits of BESCR */
#define EBB_SPR_BESCRRU	803
#define EBB_SPR_EBBHR	804
#define EBB_SPR_EBBRR	805
#define EBB_SPR_BESCR	806

#ifndef __ASSEMBLER__

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/perf_event.h>

/* Before C11, <assert.h> defines static_assert() only with _GNU_SOURCE */
#if !defined(__cplusplus) && !defined(static_assert)
#define static_assert	_Static_assert
#endif

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct ebb_regs - the registers of the interrupted program, for the handler
 * @gpr: r0 to r12; r1 is the interrupted stack pointer. r13 and the
 *	non-volatile r14 to r31 are not saved here: the compiler preserves them.
 * @nip: the address at which the program resumes, from EBBRR. Read only.
 * @lr: link register
 * @ctr: count register
 * @xer: fixed-point exception register
 * @cr: condition register
 * @fpscr: floating-point status and control register
 * @pad: keeps the next fields on 16-byte boundaries; ebb_entry writes to it
 * @vscr: vector status and control register
 * @vsr: vs0 to vs31, of which f0 to f31 are the first halves, and vs32 to
 *	vs51, which are v0 to v19; doublewords as stxvd2x stores them
 *
 * The program resumes with the values that the handler writes here, except @nip
 * and r1.
 */
struct ebb_regs {
	unsigned long gpr[13];
	unsigned long nip;
	unsigned long lr;
	unsigned long ctr;
	unsigned long xer;
	unsigned long cr;
	unsigned long fpscr;
	unsigned long pad;
	unsigned long vscr[2];
	unsigned long vsr[52][2];
};

static_assert(offsetof(struct ebb_regs, nip) == EBB_REG_NIP, "nip");
static_assert(offsetof(struct ebb_regs, lr) == EBB_REG_LR, "lr");
static_assert(offsetof(struct ebb_regs, cr) == EBB_REG_CR, "cr");
static_assert(offsetof(struct ebb_regs, vscr) == EBB_REG_VSCR, "vscr");
static_assert(offsetof(struct ebb_regs, vsr) == EBB_REG_VSR, "vsr");
static_assert(sizeof(struct ebb_regs) == EBB_REGS_SIZE, "size");

/*
 * A handler of EBBs. It can run between any two instructions, like a signal
 * handler: it must call only functions that are safe in a signal handler, and must
 * preserve errno. EBBs are disabled while the handler runs. Each thread sets its
 * own handler; in the handler, thread-local variables are those of the interrupted
 * thread.
 */
typedef void ebb_handler_t(struct ebb_regs *regs);
extern __thread ebb_handler_t *ebb_handler;

/* The code to which an EBB branches; EBBHR holds its address. Do not call ebb_entry(). */
void ebb_entry(void);

#define ebb_mfspr(spr)						\
({								\
	unsigned long ebb_value;					\
	asm volatile("mfspr %0,%1"				\
		     : "=r" (ebb_value) : "i" (spr) : "memory");	\
	ebb_value;						\
})

#define ebb_mtspr(spr, value)					\
({								\
	asm volatile("mtspr %0,%1" : : "i" (spr),		\
		     "r" ((unsigned long)(value)) : "memory");	\
})

/* Bits of the register BESCR */
#define EBB_BESCR_GE	0x8000000000000000ul	/* set to enable EBBs */
#define EBB_BESCR_PME	0x100000000ul	/* set to enable EBBs by PMU exceptions */
#define EBB_BESCR_PMEO	0x1ul	/* set when a PMU exception has occurred */

/* The bits of MMCR0 that user mode can read and write */
#define EBB_MMCR0_FC	0x80000000ul	/* set to freeze all counters */
#define EBB_MMCR0_PMAE	0x4000000ul	/* set to let negative counters raise alerts */
#define EBB_MMCR0_PMAO	0x80ul	/* set when an alert has occurred */
#define EBB_MMCR0_USER	(EBB_MMCR0_FC | EBB_MMCR0_PMAE | EBB_MMCR0_PMAO)

/* Bit of SIER that is set if SIAR contains a valid address */
#define EBB_SIER_SIAR_VALID	0x400000ul

/* Bits that Linux adds to the event codes of the processor's manual */
#define EBB_EVENT_EBB		0x8000000000000000ul
#define EBB_EVENT_BHRB		0x4000000000000000ul
#define EBB_EVENT_IFM(mode)	((unsigned long)(mode) << 60)
#define EBB_EVENT_PMC(n)	((unsigned long)(n) << 16)

/* A counter with this value or a higher value is negative and causes an exception. */
#define EBB_NEGATIVE		0x80000000u

#ifndef PPC_FEATURE2_EBB
#define PPC_FEATURE2_EBB	0x10000000
#endif

/* Return whether the processor and the kernel offer EBBs to programs */
static inline int ebb_available(void)
{
	return !!(getauxval(AT_HWCAP2) & PPC_FEATURE2_EBB);
}

static inline unsigned long ebb_read_pmc(int pmc)
{
	switch (pmc) {
	case 1:
		return ebb_mfspr(EBB_SPR_PMC(1));
	case 2:
		return ebb_mfspr(EBB_SPR_PMC(2));
	case 3:
		return ebb_mfspr(EBB_SPR_PMC(3));
	case 4:
		return ebb_mfspr(EBB_SPR_PMC(4));
	case 5:
		return ebb_mfspr(EBB_SPR_PMC(5));
	default:
		return ebb_mfspr(EBB_SPR_PMC(6));
	}
}

static inline void ebb_write_pmc(int pmc, unsigned int value)
{
	switch (pmc) {
	case 1:
		ebb_mtspr(EBB_SPR_PMC(1), value);
		break;
	case 2:
		ebb_mtspr(EBB_SPR_PMC(2), value);
		break;
	case 3:
		ebb_mtspr(EBB_SPR_PMC(3), value);
		break;
	case 4:
		ebb_mtspr(EBB_SPR_PMC(4), value);
		break;
	case 5:
		ebb_mtspr(EBB_SPR_PMC(5), value);
		break;
	default:
		ebb_mtspr(EBB_SPR_PMC(6), value);
		break;
	}
}

/* Set the counter @pmc so that its next exception comes after @period events. */
static inline void ebb_set_period(int pmc, unsigned int period)
{
	ebb_write_pmc(pmc, EBB_NEGATIVE - period);
}

/* Size of the branch history buffer (BHRB), and flags of its entries */
#define EBB_BHRB_ENTRIES	32
#define EBB_BHRB_TARGET		2ul	/* set in an entry that is a branch's target */
#define EBB_BHRB_MISPREDICTED	1ul

/*
 * Read the BHRB, the latest entry first. An entry is the address of a taken
 * branch. If the branch instruction does not contain the target, the entry before
 * that entry is the target, marked with EBB_BHRB_TARGET. If the buffer is not
 * full, a zero follows the last entry. Recording stops when the handler is
 * entered, and resumes with ebb_rearm().
 */
static inline void ebb_read_bhrb(unsigned long entries[EBB_BHRB_ENTRIES])
{
	asm volatile(".machine push; .machine power8\n"
		     "	.set .Lentry%=, 0\n"
		     "	.rept %1\n"
		     "	mfbhrbe 0, .Lentry%=\n"
		     "	std 0, 8 * .Lentry%=(%0)\n"
		     "	.set .Lentry%=, .Lentry%= + 1\n"
		     "	.endr\n"
		     "	.machine pop\n"
		     : : "b" (entries), "i" (EBB_BHRB_ENTRIES) : "r0", "memory");
}

/*
 * Enable the next EBB and let the counters count again. Call this function after
 * writing a new value to every counter that was negative.
 *
 * An exception clears PMAE, sets PMAO and PMEO, clears PME and freezes the
 * counters. This function clears PMAO first, while the counters are frozen, so
 * that PMAO cannot set PMEO again. It clears PMEO before the counters run, so that
 * a new exception is not cleared.
 */
static inline void ebb_rearm(void)
{
	ebb_mtspr(EBB_SPR_MMCR0, EBB_MMCR0_FC);
	ebb_mtspr(EBB_SPR_BESCRR, EBB_BESCR_PMEO);
	/*
	 * set PME before PMAE: an alert while PME is clear might never cause an
	 * exception
	 */
	ebb_mtspr(EBB_SPR_BESCRS, EBB_BESCR_PME);
	ebb_mtspr(EBB_SPR_MMCR0, EBB_MMCR0_PMAE);
}

/* Enable EBBs in this thread, with @handler as their handler. */
static inline void ebb_enable(ebb_handler_t *handler)
{
	unsigned long entry = (unsigned long)ebb_entry;

#if !defined(_CALL_ELF) || _CALL_ELF != 2
	/*
	 * On ELFv1, a function pointer points to a descriptor that contains the
	 * code's address.
	 */
	entry = *(const unsigned long *)entry;
#endif
	ebb_handler = handler;
	ebb_mtspr(EBB_SPR_EBBHR, entry);
	ebb_mtspr(EBB_SPR_BESCRS, EBB_BESCR_GE);
}

/* Disable EBBs in this thread; a later exception stays pending. */
static inline void ebb_disable(void)
{
	ebb_mtspr(EBB_SPR_BESCRR, EBB_BESCR_GE);
}

/* Set the attributes of an EBB event that the kernel accepts as a group leader. */
static inline void ebb_attr(struct perf_event_attr *attr, unsigned long code)
{
	memset(attr, 0, sizeof(*attr));
	attr->type = PERF_TYPE_RAW;
	attr->size = sizeof(*attr);
	attr->config = code | EBB_EVENT_EBB;
	attr->disabled = 1;
	attr->pinned = 1;
	attr->exclusive = 1;
	attr->exclude_kernel = 1;
	attr->exclude_hv = 1;
	attr->exclude_idle = 1;
}

/*
 * Open an EBB event on the thread @pid (0: the current thread), as the leader of a
 * new group if @group is -1, otherwise in the group of the file descriptor @group.
 * @code must name a PMC. Return a file descriptor, or -1 with errno set.
 */
static inline int ebb_open(unsigned long code, pid_t pid, int group)
{
	struct perf_event_attr attr;

	ebb_attr(&attr, code);
	if (group != -1) {
		attr.disabled = 0;
		attr.pinned = 0;
		attr.exclusive = 0;
	}
	return syscall(SYS_perf_event_open, &attr, pid, -1, group,
		       PERF_FLAG_FD_CLOEXEC);
}

/*
 * Enable the group of @fd and check that the group got the PMU, which a successful
 * ioctl() does not guarantee. Return 0, or -1 with errno set; EBUSY means that
 * another pinned event has the PMU.
 */
static inline int ebb_start(int fd)
{
	unsigned long value;
	ssize_t n;

	if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		return -1;
	n = read(fd, &value, sizeof(value));
	if (n == sizeof(value))
		return 0;
	if (n >= 0)
		errno = EBUSY;
	return -1;
}

#ifdef __cplusplus
}
#endif

#endif /* __ASSEMBLER__ */
#endif /* EBB_H */
