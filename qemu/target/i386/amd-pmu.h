/*
 * Core performance counters and Branch Sampling of AMD Zen processors
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef I386_AMD_PMU_H
#define I386_AMD_PMU_H

#include "cpu-qom.h"

#define AMD_PMU_COUNTERS        6
#define AMD_BRS_DEPTH           16

/*
 * The modes of the CPU that counters can tell apart.  A counter can be told
 * to count at CPL 0, at CPL > 0 or at both, and in SVM guests, in SVM hosts
 * or in both.  Bit 0 of a mode's number is set for CPL > 0.
 */
enum {
    AMD_PMU_MODE_KERNEL,        /* modes while EFER.SVME is clear */
    AMD_PMU_MODE_USER,
    AMD_PMU_MODE_HOST_KERNEL,   /* modes while EFER.SVME is set */
    AMD_PMU_MODE_HOST_USER,
    AMD_PMU_MODE_GUEST_KERNEL,
    AMD_PMU_MODE_GUEST_USER,
    AMD_PMU_MODES
};

/* The kinds of events that translated code counts */
enum {
    AMD_PMU_INSNS,              /* retired instructions */
    AMD_PMU_TAKEN,              /* taken branches, exceptions, interrupts */
    AMD_PMU_NOT_TAKEN,          /* branches not taken, all conditional */
    AMD_PMU_TAKEN_COND,         /* conditional branches that are taken */
    AMD_PMU_MISPREDICTED,       /* mispredicted branches, taken or not */
    AMD_PMU_KINDS
};

/*
 * How translated code leaves a block, the argument @how of gen_pmu_exit()
 * and helper_pmu_exit(): a bit for each kind of event that the last
 * instruction is.  From bit AMD_PMU_EXIT_FUSED_SHIFT on there is the length
 * of the CMP or TEST that a conditional jump is fused with.
 */
#define AMD_PMU_EXIT(kind)      BIT(kind)
/* The last instruction is not complete, or AMDPMUState::pending includes it. */
#define AMD_PMU_EXIT_RESUME     0
#define AMD_PMU_EXIT_RETIRE     AMD_PMU_EXIT(AMD_PMU_INSNS)
#define AMD_PMU_EXIT_NOT_TAKEN  (AMD_PMU_EXIT_RETIRE | \
                                 AMD_PMU_EXIT(AMD_PMU_NOT_TAKEN))
#define AMD_PMU_EXIT_TAKEN      (AMD_PMU_EXIT_RETIRE | \
                                 AMD_PMU_EXIT(AMD_PMU_TAKEN))
#define AMD_PMU_EXIT_TAKEN_COND (AMD_PMU_EXIT_TAKEN | \
                                 AMD_PMU_EXIT(AMD_PMU_TAKEN_COND))
#define AMD_PMU_EXIT_FUSED_SHIFT 8

/* Counters that -object pmu-stats lists after AMDPMUTotals::event */
enum {
    AMD_PMU_STAT_HOLD_BEGIN,
    AMD_PMU_STAT_HOLD_END_FULL,
    AMD_PMU_STAT_HOLD_END_RELEASED,
    AMD_PMU_STAT_HOLD_END_DROPPED,
    AMD_PMU_STAT_HOLD_HALTED,
    AMD_PMU_STAT_HOLD_LONGEST_NS,
    AMD_PMU_STAT_RECORDS,
    AMD_PMU_STAT_OVERFLOW_HELD,
    AMD_PMU_STAT_OVERFLOW_UNHELD,
    AMD_PMU_STAT_PMI_RAISED,
    AMD_PMU_STAT_PMI_LOST,
    AMD_PMU_STAT_PMI_MASKED,
    AMD_PMU_STAT_PMI_MERGED,
    AMD_PMU_STAT_PMI_DELIVERED,
    AMD_PMU_STAT_RDMSR_PERF_CTL,
    AMD_PMU_STAT_WRMSR_PERF_CTL,
    AMD_PMU_STAT_RDMSR_PERF_CTR,
    AMD_PMU_STAT_WRMSR_PERF_CTR,
    AMD_PMU_STAT_RDMSR_DBG_EXTN_CFG,
    AMD_PMU_STAT_WRMSR_DBG_EXTN_CFG,
    AMD_PMU_STAT_RDMSR_SAMP_BR,
    AMD_PMU_STAT_WRMSR_SAMP_BR,
    AMD_PMU_STAT_RDPMC,
    AMD_PMU_STAT_LAPIC_READ,
    AMD_PMU_STAT_LAPIC_WRITE,
    AMD_PMU_STAT_HLT,
    AMD_PMU_STAT_MWAIT,
    AMD_PMU_STATS
};

/*
 * Numbers of events since the CPU was created.  A reset does not change
 * these numbers, and they are not migrated.
 */
typedef struct AMDPMUTotals {
    uint64_t event[AMD_PMU_KINDS][AMD_PMU_MODES];
    uint64_t stat[AMD_PMU_STATS];
} AMDPMUTotals;

/* Kinds of taken branches, which CPU properties can exclude from recording */
typedef enum AMDPMUBranch {
    AMD_PMU_BRANCH_PLAIN = 1,   /* taken branch, neither EVENT nor SMM */
    AMD_PMU_BRANCH_EVENT,       /* exception, interrupt, IRET */
    AMD_PMU_BRANCH_SMM,         /* SMI, RSM */
} AMDPMUBranch;

enum { AMD_BRS_START_OVERFLOW, AMD_BRS_START_DELIVERABLE };
enum { AMD_BRS_RELEASE_NOW, AMD_BRS_RELEASE_LATE, AMD_BRS_RELEASE_DROP };
enum { AMD_BRS_FULL_DEFAULT, AMD_BRS_FULL_MSROFF_15, AMD_BRS_FULL_BRSMEN_1,
       AMD_BRS_FULL_VB_0 };

/*
 * CPU properties for behaviour that AMD's manuals leave open.  By default,
 * @record_vm is true and all other properties are zero.  The properties are
 * described in docs/system/i386/amd-pmu.rst.
 */
typedef struct AMDPMUOptions {
    uint32_t start_skid;
    uint32_t start_skid_random;
    uint32_t pmi_late;
    uint32_t to_bits;
    uint32_t pmi_delay;
    uint32_t pmi_lose;
    uint32_t nmi;
    int start;
    int full;
    int release;
    bool ctl_cancels;
    bool msroff_ro;
    bool no_exceptions;
    bool fused_from;
    bool hold_all;
    bool record_vm;
    bool cfg_lax;
    bool count_exceptions;
} AMDPMUOptions;

/* The PMU's registers and the state derived from them.  INIT preserves them. */
typedef struct AMDPMUState {
    uint64_t ctl[AMD_PMU_COUNTERS];
    /* Value of a counter minus the events in AMDPMUTotals that it counts */
    uint64_t base[AMD_PMU_COUNTERS];
    uint64_t dbg_extn_cfg;
    uint64_t samp_br_from[AMD_BRS_DEPTH];
    uint64_t samp_br_to[AMD_BRS_DEPTH];

    /* Since time hold_ns, an interrupt is held and branches are recorded. */
    bool hold;
    int64_t hold_ns;
    /* Recording waits until NMIs are not blocked (x-brs-start=deliverable). */
    bool blocked;
    /* Number of branches to skip before recording begins */
    uint32_t skid;
    /* Number of branches until a late interrupt is raised, or zero */
    uint32_t late;
    /* State of a generator of pseudo-random numbers; never zero */
    uint64_t random;
    /* An interrupt of another counter is held, too (x-brs-hold-all). */
    bool others_held;
    /* Number of interrupts since the last lost interrupt (x-pmu-pmi-lose) */
    uint32_t pmis;
    /* Branches recorded since the last NMI of x-brs-nmi */
    uint32_t unhit;
    /*
     * Value of all_insns() at which a delayed interrupt is to be delivered
     * (x-pmu-pmi-delay); zero if no interrupt is delayed
     */
    uint64_t due;
    /* For migration: instructions until the delayed interrupt, or zero */
    uint64_t due_vmstate;

    /*
     * For each mode: the number of instructions after the CPU's entry to the
     * mode until overflows must be checked.  No counter can overflow
     * earlier.  Zero if overflows must be checked at every taken branch.
     */
    uint64_t budget[AMD_PMU_MODES];
    /* AMDPMUTotals::event[AMD_PMU_INSNS] when the current mode was entered */
    uint64_t start;
    /*
     * Value of AMDPMUTotals::event[AMD_PMU_INSNS] at which overflows must be
     * checked in the current mode; zero for all other modes
     */
    uint64_t limit[AMD_PMU_MODES];
    /* Instructions that the running block has retired but not yet counted */
    uint32_t pending;
    /* Linear address of the far transfer being executed */
    uint64_t from;

    /* Vector of an interrupt that the CPU has not yet taken, or negative */
    int pmi_vector;

    /* For migration: the values of the counters */
    uint64_t ctr_vmstate[AMD_PMU_COUNTERS];
} AMDPMUState;

/*
 * How counting works: translation blocks with HF_PMU_MASK count instructions
 * when they retire, so that an instruction that faults or is executed again
 * is not counted twice.  After each instruction within a block, a constant
 * is stored to AMDPMUState::pending.  At the end of a block, the translated
 * code adds the block's events to AMDPMUTotals::event and compares the number
 * of instructions with AMDPMUState::limit.  If the limit has been reached,
 * it calls helper_pmu_exit(), which finds out whether a counter has
 * overflowed and records the branch if branches are being recorded.
 *
 * When a block is left before its end, amd_pmu_fold() adds the pending
 * instructions.
 */

#ifndef CONFIG_USER_ONLY

void amd_pmu_add_properties(ObjectClass *oc);
bool amd_pmu_check_properties(X86CPU *cpu, Error **errp);
void amd_pmu_realize(X86CPU *cpu);
void amd_pmu_unrealize(X86CPU *cpu);
void amd_pmu_reset(CPUArchState *env);
void amd_pmu_post_init(CPUArchState *env);

bool amd_pmu_rdmsr(CPUArchState *env, uint32_t msr, uint64_t *val);
bool amd_pmu_wrmsr(CPUArchState *env, uint32_t msr, uint64_t val, bool *fault);
bool amd_pmu_rdpmc(CPUArchState *env, uint32_t index, uint64_t *val,
                   bool *fault);

void amd_pmu_fold(CPUArchState *env, uint32_t hflags);
void amd_pmu_retire(CPUArchState *env);
void amd_pmu_interrupt(CPUArchState *env, uint32_t old_hflags, uint64_t from,
                       int intno, bool is_int, bool is_hw);
void amd_pmu_smi(CPUArchState *env, uint32_t old_hflags, uint64_t from);
void amd_pmu_halt(CPUArchState *env, bool mwait);
uint64_t amd_pmu_linear_eip(CPUArchState *env, uint64_t eip);

extern const VMStateDescription vmstate_amd_pmu;

#else

static inline void amd_pmu_fold(CPUArchState *env, uint32_t hflags)
{
}

static inline void amd_pmu_retire(CPUArchState *env)
{
}

static inline void amd_pmu_interrupt(CPUArchState *env, uint32_t old_hflags,
                                     uint64_t from, int intno, bool is_int,
                                     bool is_hw)
{
}

#endif /* CONFIG_USER_ONLY */

#endif
