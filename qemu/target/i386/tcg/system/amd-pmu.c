/*
 * Core performance counters and Branch Sampling of AMD Zen processors
 *
 * There are six counters with PERF_CTL and PERF_CTR registers of their own
 * (CPUID Fn8000_0001 ECX[23], PerfCtrExtCore); the registers of the first
 * four counters have the MSR addresses of the K7 as well.  There is Branch
 * Sampling (BRS, CPUID Fn8000_0008 EBX[31]) of family 19h models 00h to 0Fh.
 *
 * Events: cycles not in halt (076h), retired instructions (0C0h), branches
 * (0C2h), mispredicted branches (0C3h), taken branches (0C4h) and conditional
 * branches (0D1h).  Every instruction takes one cycle.  A conditional branch
 * is predicted to be taken if it leads backwards and not to be taken if it
 * leads forwards; branches of other kinds are always predicted correctly.
 * Exceptions and interrupts are taken branches.  An instruction counts at
 * the privilege level that it starts at; an exception or interrupt, which
 * is not an instruction of the program, counts at the level that it enters.
 * Other events, the edge detector and the inversion of the counter mask are
 * not implemented: a counter that is set up for any of these stands still.
 *
 * While BRS is enabled, an overflow of the counter that is selected in
 * DBG_EXTN_CFG does not raise its interrupt at once.  The interrupt is held
 * while the next taken branches are recorded, and raised when the buffer is
 * full or software disables BRS.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "cpu.h"
#include "exec/helper-proto.h"
#include "hw/i386/apic.h"
#include "migration/cpu.h"
#include "system/pmu-stats.h"
#include "tcg/helper-tcg.h"
#include "trace/trace-target_i386.h"

#define CTL_EVENT(ctl)          (((ctl) & 0xff) | (((ctl) >> 24) & 0xf00))
#define CTL_USR                 BIT_ULL(16)
#define CTL_OS                  BIT_ULL(17)
#define CTL_EDGE                BIT_ULL(18)
#define CTL_INT                 BIT_ULL(20)
#define CTL_EN                  BIT_ULL(22)
#define CTL_INV                 BIT_ULL(23)
#define CTL_CMASK(ctl)          extract64(ctl, 24, 8)
#define CTL_GUEST_ONLY          BIT_ULL(40)
#define CTL_HOST_ONLY           BIT_ULL(41)

/*
 * The bits of PERF_CTL that can be written.  A write of PERF_CTL never
 * faults; reserved bits read as zero, except for bits 19 and 42, which Zen 3
 * keeps.
 */
#define CTL_VALID               (MAKE_64BIT_MASK(0, 21) | \
                                 MAKE_64BIT_MASK(22, 14) | \
                                 MAKE_64BIT_MASK(40, 3))

#define EVENT_CYCLES            0x076
#define EVENT_INSNS             0x0c0
#define EVENT_BRANCHES          0x0c2
#define EVENT_MISPREDICTED      0x0c3
#define EVENT_TAKEN             0x0c4
#define EVENT_CONDITIONAL       0x0d1

#define CTR_BITS                48
#define CTR_RANGE               BIT_ULL(CTR_BITS)
#define CTR_MASK                (CTR_RANGE - 1)

#define CFG_BRSMEN              BIT_ULL(2)
#define CFG_ONES                (3ULL << 3)
#define CFG_VB                  BIT_ULL(5)
#define CFG_MSROFF_SHIFT        16
#define CFG_MSROFF_BITS         4
#define CFG_MSROFF_MASK         MAKE_64BIT_MASK(CFG_MSROFF_SHIFT, \
                                                CFG_MSROFF_BITS)
#define CFG_PMC(cfg)            extract64(cfg, 24, 3)
#define CFG_VALID               (CFG_BRSMEN | CFG_ONES | CFG_VB | \
                                 CFG_MSROFF_MASK | MAKE_64BIT_MASK(24, 3))

#define NAMES(what)                                             \
    [AMD_PMU_MODE_KERNEL] = what "_kernel",                     \
    [AMD_PMU_MODE_USER] = what "_user",                         \
    [AMD_PMU_MODE_HOST_KERNEL] = what "_host_kernel",           \
    [AMD_PMU_MODE_HOST_USER] = what "_host_user",               \
    [AMD_PMU_MODE_GUEST_KERNEL] = what "_guest_kernel",         \
    [AMD_PMU_MODE_GUEST_USER] = what "_guest_user"

static const struct {
    const char *event[AMD_PMU_KINDS][AMD_PMU_MODES];
    const char *stat[AMD_PMU_STATS];
} amd_pmu_names = {
    .event = {
        [AMD_PMU_INSNS] = { NAMES("insns") },
        [AMD_PMU_TAKEN] = { NAMES("taken") },
        [AMD_PMU_NOT_TAKEN] = { NAMES("not_taken") },
        [AMD_PMU_TAKEN_COND] = { NAMES("taken_cond") },
        [AMD_PMU_MISPREDICTED] = { NAMES("mispredicted") },
    },
    .stat = {
        [AMD_PMU_STAT_HOLD_BEGIN] = "hold_begin",
        [AMD_PMU_STAT_HOLD_END_FULL] = "hold_end_full",
        [AMD_PMU_STAT_HOLD_END_RELEASED] = "hold_end_released",
        [AMD_PMU_STAT_HOLD_END_DROPPED] = "hold_end_dropped",
        [AMD_PMU_STAT_HOLD_HALTED] = "hold_halted",
        [AMD_PMU_STAT_HOLD_LONGEST_NS] = "hold_longest_ns",
        [AMD_PMU_STAT_RECORDS] = "records",
        [AMD_PMU_STAT_OVERFLOW_HELD] = "overflow_held",
        [AMD_PMU_STAT_OVERFLOW_UNHELD] = "overflow_unheld",
        [AMD_PMU_STAT_PMI_RAISED] = "pmi_raised",
        [AMD_PMU_STAT_PMI_LOST] = "pmi_lost",
        [AMD_PMU_STAT_PMI_MASKED] = "pmi_masked",
        [AMD_PMU_STAT_PMI_MERGED] = "pmi_merged",
        [AMD_PMU_STAT_PMI_DELIVERED] = "pmi_delivered",
        [AMD_PMU_STAT_RDMSR_PERF_CTL] = "rdmsr_perf_ctl",
        [AMD_PMU_STAT_WRMSR_PERF_CTL] = "wrmsr_perf_ctl",
        [AMD_PMU_STAT_RDMSR_PERF_CTR] = "rdmsr_perf_ctr",
        [AMD_PMU_STAT_WRMSR_PERF_CTR] = "wrmsr_perf_ctr",
        [AMD_PMU_STAT_RDMSR_DBG_EXTN_CFG] = "rdmsr_dbg_extn_cfg",
        [AMD_PMU_STAT_WRMSR_DBG_EXTN_CFG] = "wrmsr_dbg_extn_cfg",
        [AMD_PMU_STAT_RDMSR_SAMP_BR] = "rdmsr_samp_br",
        [AMD_PMU_STAT_WRMSR_SAMP_BR] = "wrmsr_samp_br",
        [AMD_PMU_STAT_RDPMC] = "rdpmc",
        [AMD_PMU_STAT_LAPIC_READ] = "lapic_read",
        [AMD_PMU_STAT_LAPIC_WRITE] = "lapic_write",
        [AMD_PMU_STAT_HLT] = "hlt",
        [AMD_PMU_STAT_MWAIT] = "mwait",
    },
};

QEMU_BUILD_BUG_ON(sizeof(amd_pmu_names) / sizeof(char *) !=
                  sizeof(AMDPMUTotals) / sizeof(uint64_t));

#define RANDOM_SEED             0x9e3779b97f4a7c15ULL

/* A counter's increment for each kind of event, and the modes it counts in */
typedef struct Growth {
    uint8_t by[AMD_PMU_KINDS];
    uint8_t modes;
} Growth;

static bool has_pmu(CPUX86State *env)
{
    return env->features[FEAT_8000_0001_ECX] & CPUID_EXT3_PERFCORE;
}

static bool has_brs(CPUX86State *env)
{
    return env->features[FEAT_8000_0008_EBX] & CPUID_8000_0008_EBX_BRS;
}

static void count_stat(CPUX86State *env, int stat)
{
    env->amd_pmu_totals.stat[stat]++;
}

static const AMDPMUOptions *options(CPUX86State *env)
{
    return &env_archcpu(env)->amd_pmu_options;
}

static int cpu_number(CPUX86State *env)
{
    return env_cpu(env)->cpu_index;
}

/*
 * Return the guest's time, for trace events and statistics.  With icount,
 * the time is exact only at the last instruction of a block, and QEMU allows
 * reading the time only there (can_do_io).  This function reads the time at
 * any instruction.
 */
static int64_t guest_ns(CPUX86State *env)
{
    CPUState *cs = env_cpu(env);
    bool can_do_io = cs->neg.can_do_io;
    int64_t ns;

    cs->neg.can_do_io = true;
    ns = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    cs->neg.can_do_io = can_do_io;
    return ns;
}

static void get_growth(uint64_t ctl, Growth *g)
{
    static const uint8_t kernel = BIT(AMD_PMU_MODE_KERNEL) |
                                  BIT(AMD_PMU_MODE_HOST_KERNEL) |
                                  BIT(AMD_PMU_MODE_GUEST_KERNEL);
    static const uint8_t guest = BIT(AMD_PMU_MODE_GUEST_KERNEL) |
                                 BIT(AMD_PMU_MODE_GUEST_USER);
    static const uint8_t host = BIT(AMD_PMU_MODE_HOST_KERNEL) |
                                BIT(AMD_PMU_MODE_HOST_USER);

    memset(g, 0, sizeof(*g));

    /* A cycle has at most one event: a counter mask above 1 never matches. */
    if (!(ctl & CTL_EN) || (ctl & (CTL_EDGE | CTL_INV)) ||
        CTL_CMASK(ctl) > 1) {
        return;
    }

    switch (CTL_EVENT(ctl)) {
    case EVENT_CYCLES:
    case EVENT_INSNS:
        g->by[AMD_PMU_INSNS] = 1;
        break;
    case EVENT_BRANCHES:
        g->by[AMD_PMU_TAKEN] = 1;
        g->by[AMD_PMU_NOT_TAKEN] = 1;
        break;
    case EVENT_TAKEN:
        g->by[AMD_PMU_TAKEN] = 1;
        break;
    case EVENT_MISPREDICTED:
        g->by[AMD_PMU_MISPREDICTED] = 1;
        break;
    case EVENT_CONDITIONAL:
        g->by[AMD_PMU_TAKEN_COND] = 1;
        g->by[AMD_PMU_NOT_TAKEN] = 1;
        break;
    default:
        return;
    }

    if (ctl & CTL_OS) {
        g->modes |= kernel;
    }
    if (ctl & CTL_USR) {
        g->modes |= kernel << 1;
    }
    switch (ctl & (CTL_GUEST_ONLY | CTL_HOST_ONLY)) {
    case CTL_GUEST_ONLY:
        g->modes &= guest;
        break;
    case CTL_HOST_ONLY:
        /* While EFER.SVME is clear, the CPU is in no host mode. */
        g->modes &= host;
        break;
    }
}

/*
 * Return the number of events of a kind in a mode so far, including
 * instructions that the running block has retired but not yet counted
 */
static uint64_t events_so_far(CPUX86State *env, int kind, int mode)
{
    uint64_t n = env->amd_pmu_totals.event[kind][mode];

    if (kind == AMD_PMU_INSNS && mode == amd_pmu_mode(env->hflags)) {
        n += env->amd_pmu.pending;
    }
    return n;
}

/* Return the number of events so far for a counter with the increments @g */
static uint64_t count_events(CPUX86State *env, const Growth *g)
{
    uint64_t n = 0;

    for (int mode = 0; mode < AMD_PMU_MODES; mode++) {
        if (g->modes & BIT(mode)) {
            for (int kind = 0; kind < AMD_PMU_KINDS; kind++) {
                n += events_so_far(env, kind, mode) * g->by[kind];
            }
        }
    }
    return n;
}

/* Return the value of a counter, which can exceed 48 bits */
static uint64_t counter_value(CPUX86State *env, int i)
{
    Growth g;

    get_growth(env->amd_pmu.ctl[i], &g);
    return env->amd_pmu.base[i] + count_events(env, &g);
}

static void set_counter(CPUX86State *env, int i, uint64_t value)
{
    Growth g;

    get_growth(env->amd_pmu.ctl[i], &g);
    env->amd_pmu.base[i] = (value & CTR_MASK) - count_events(env, &g);
}

/*
 * Set the limit of the current mode from its budget, and the limits of all
 * other modes to zero.  If the CPU changes its mode without a call of this
 * function, as VMRUN and #VMEXIT do, the limit of the new mode is zero and
 * overflows are checked at the next branch.
 */
static void enter_mode(CPUX86State *env)
{
    AMDPMUState *pmu = &env->amd_pmu;
    int mode = amd_pmu_mode(env->hflags);

    memset(pmu->limit, 0, sizeof(pmu->limit));
    pmu->start = events_so_far(env, AMD_PMU_INSNS, mode);
    pmu->limit[mode] = pmu->start + pmu->budget[mode];
}

static uint64_t all_insns(CPUX86State *env)
{
    uint64_t n = 0;

    for (int mode = 0; mode < AMD_PMU_MODES; mode++) {
        n += events_so_far(env, AMD_PMU_INSNS, mode);
    }
    return n;
}

static uint64_t insns_until_due(CPUX86State *env)
{
    uint64_t now = all_insns(env);

    return env->amd_pmu.due > now ? env->amd_pmu.due - now : 0;
}

/*
 * Compute how many instructions translated code can execute before it must
 * check for an overflow or a delayed interrupt.
 */
static void update_limits(CPUX86State *env)
{
    AMDPMUState *pmu = &env->amd_pmu;

    for (int mode = 0; mode < AMD_PMU_MODES; mode++) {
        pmu->budget[mode] = pmu->hold || pmu->late ? 0 : CTR_RANGE;
        if (pmu->due) {
            pmu->budget[mode] = MIN(pmu->budget[mode], insns_until_due(env));
        }
    }

    for (int i = 0; i < AMD_PMU_COUNTERS; i++) {
        uint64_t left;
        Growth g;

        if (!(pmu->ctl[i] & CTL_INT)) {
            continue;
        }
        get_growth(pmu->ctl[i], &g);

        /* An instruction makes the counter grow by one event at most. */
        left = CTR_RANGE - (pmu->base[i] + count_events(env, &g));
        for (int mode = 0; mode < AMD_PMU_MODES; mode++) {
            if (g.modes & BIT(mode)) {
                pmu->budget[mode] = MIN(pmu->budget[mode], left);
            }
        }
    }
    enter_mode(env);
}

/* Have translated code count events only while the counts are needed. */
static void update_hflags(CPUX86State *env)
{
    bool active = pmu_stats_want_insns() || env->amd_pmu.hold ||
                  env->amd_pmu.late || env->amd_pmu.due;

    for (int i = 0; i < AMD_PMU_COUNTERS && !active; i++) {
        Growth g;

        get_growth(env->amd_pmu.ctl[i], &g);
        active = g.modes;
    }

    if (active && has_pmu(env)) {
        env->hflags |= HF_PMU_MASK;
    } else {
        env->hflags &= ~HF_PMU_MASK;
    }
}

static void deliver_pmi(CPUX86State *env)
{
    AMDPMUState *pmu = &env->amd_pmu;
    CPUState *cs = env_cpu(env);
    X86CPU *cpu = env_archcpu(env);
    bool can_do_io = cs->neg.can_do_io;
    bool locked = bql_locked();
    int vector;

    if (!cpu->apic_state) {
        return;
    }

    if (!locked) {
        bql_lock();
    }
    /* With icount, let an interrupt be raised in the middle of a block. */
    cs->neg.can_do_io = true;
    vector = apic_deliver_perf(cpu->apic_state);
    cs->neg.can_do_io = can_do_io;
    if (!locked) {
        bql_unlock();
    }

    trace_amd_pmu_raise(cpu_number(env), guest_ns(env), vector);
    if (vector < 0) {
        count_stat(env, AMD_PMU_STAT_PMI_MASKED);
    } else if (pmu->pmi_vector >= 0) {
        count_stat(env, AMD_PMU_STAT_PMI_MERGED);
    } else {
        pmu->pmi_vector = vector;
    }
}

static void raise_pmi(CPUX86State *env)
{
    AMDPMUState *pmu = &env->amd_pmu;
    const AMDPMUOptions *opt = options(env);

    count_stat(env, AMD_PMU_STAT_PMI_RAISED);
    if (opt->pmi_lose) {
        pmu->pmis++;
        if (pmu->pmis >= opt->pmi_lose) {
            pmu->pmis = 0;
            count_stat(env, AMD_PMU_STAT_PMI_LOST);
            return;
        }
    }
    if (!opt->pmi_delay) {
        deliver_pmi(env);
    } else if (!pmu->due) {
        pmu->due = all_insns(env) + opt->pmi_delay;
    } else {
        /* The new interrupt is merged with the delayed interrupt. */
        count_stat(env, AMD_PMU_STAT_PMI_MERGED);
    }
}

/* Raise an interrupt after @late more taken branches, at once if @late is 0. */
static void raise_pmi_late(CPUX86State *env, uint32_t late)
{
    AMDPMUState *pmu = &env->amd_pmu;

    /* Only one interrupt can wait for branches: raise the earlier one now. */
    if (pmu->late || !late) {
        raise_pmi(env);
    }
    pmu->late = late;
}

/* Return a pseudo-random number from 0 to @max, by xorshift. */
static uint32_t get_random(AMDPMUState *pmu, uint32_t max)
{
    pmu->random ^= pmu->random << 13;
    pmu->random ^= pmu->random >> 7;
    pmu->random ^= pmu->random << 17;
    return pmu->random % ((uint64_t)max + 1);
}

static bool nmis_blocked(CPUX86State *env)
{
    return env->hflags2 & HF2_NMI_MASK;
}

static void hold_begin(CPUX86State *env, int counter)
{
    AMDPMUState *pmu = &env->amd_pmu;
    const AMDPMUOptions *opt = options(env);

    if (pmu->hold) {
        return;
    }
    pmu->hold = true;
    pmu->blocked = opt->start == AMD_BRS_START_DELIVERABLE &&
                   nmis_blocked(env);
    pmu->skid = opt->start_skid;
    if (opt->start_skid_random) {
        pmu->skid += get_random(pmu, opt->start_skid_random);
    }
    pmu->hold_ns = guest_ns(env);
    count_stat(env, AMD_PMU_STAT_HOLD_BEGIN);
    trace_amd_brs_hold_begin(cpu_number(env), pmu->hold_ns, counter);
}

typedef enum HoldEnd { FULL, RELEASED, DROPPED } HoldEnd;

static void hold_end(CPUX86State *env, HoldEnd how)
{
    static const char *const names[] = { "full", "released", "dropped" };
    AMDPMUState *pmu = &env->amd_pmu;
    const AMDPMUOptions *opt = options(env);
    uint64_t *stat = env->amd_pmu_totals.stat;
    int64_t now = guest_ns(env);
    bool others_held = pmu->others_held;

    pmu->hold = false;
    pmu->others_held = false;
    count_stat(env, AMD_PMU_STAT_HOLD_END_FULL + how);
    stat[AMD_PMU_STAT_HOLD_LONGEST_NS] =
        MAX(stat[AMD_PMU_STAT_HOLD_LONGEST_NS], now - pmu->hold_ns);
    trace_amd_brs_hold_end(cpu_number(env), now,
                           names[how], now - pmu->hold_ns);
    switch (how) {
    case FULL:
        raise_pmi_late(env, opt->pmi_late);
        break;
    case RELEASED:
        raise_pmi_late(env, opt->release == AMD_BRS_RELEASE_LATE ?
                            AMD_BRS_DEPTH : 0);
        break;
    case DROPPED:
        if (others_held) {
            raise_pmi(env);
        }
        break;
    }
}

/* Return whether a branch is recorded while an interrupt is held. */
static bool is_recorded(CPUX86State *env, AMDPMUBranch branch)
{
    AMDPMUState *pmu = &env->amd_pmu;
    const AMDPMUOptions *opt = options(env);

    if (pmu->blocked) {
        /* The IRET that unblocks NMIs is the last unrecorded branch. */
        pmu->blocked = nmis_blocked(env);
        return false;
    }
    if (pmu->skid) {
        pmu->skid--;
        return false;
    }
    if (branch == AMD_PMU_BRANCH_EVENT && opt->no_exceptions) {
        return false;
    }
    return opt->record_vm || (branch != AMD_PMU_BRANCH_SMM &&
                              !(env->hflags & (HF_SMM_MASK | HF_GUEST_MASK)));
}

/* End a recording after the last entry of the branch buffer was written. */
static void buffer_full(CPUX86State *env)
{
    uint64_t *cfg = &env->amd_pmu.dbg_extn_cfg;

    switch (options(env)->full) {
    case AMD_BRS_FULL_DEFAULT:
        *cfg &= ~CFG_BRSMEN;
        break;
    case AMD_BRS_FULL_MSROFF_15:
        *cfg &= ~CFG_BRSMEN;
        *cfg |= CFG_MSROFF_MASK;
        break;
    case AMD_BRS_FULL_BRSMEN_1:
        break;
    case AMD_BRS_FULL_VB_0:
        *cfg &= ~(CFG_BRSMEN | CFG_VB);
        break;
    }
    hold_end(env, FULL);
}

/* Raise an NMI that does not come from a counter. */
static void raise_foreign_nmi(CPUX86State *env)
{
    bool locked = bql_locked();

    if (!locked) {
        bql_lock();
    }
    cpu_interrupt(env_cpu(env), CPU_INTERRUPT_NMI);
    if (!locked) {
        bql_unlock();
    }
}

static void record_branch(CPUX86State *env, uint64_t from, uint64_t to)
{
    AMDPMUState *pmu = &env->amd_pmu;
    bool la57 = env->features[FEAT_7_0_ECX] & CPUID_7_0_ECX_LA57;
    int to_bits = options(env)->to_bits ?: la57 ? 57 : 48;
    unsigned int i = (pmu->dbg_extn_cfg & CFG_MSROFF_MASK) >> CFG_MSROFF_SHIFT;

    pmu->samp_br_from[i] = from;
    /* SAMP_BR_TO has no sign bits: software has to extend the sign. */
    pmu->samp_br_to[i] = to & MAKE_64BIT_MASK(0, to_bits);
    count_stat(env, AMD_PMU_STAT_RECORDS);
    if (trace_event_get_state_backends(TRACE_AMD_BRS_RECORD)) {
        trace_amd_brs_record(cpu_number(env), guest_ns(env), i, from, to);
    }
    if (options(env)->nmi && ++pmu->unhit >= options(env)->nmi) {
        pmu->unhit = 0;
        raise_foreign_nmi(env);
    }

    i = (i + 1) % AMD_BRS_DEPTH;
    pmu->dbg_extn_cfg = deposit64(pmu->dbg_extn_cfg, CFG_MSROFF_SHIFT,
                                  CFG_MSROFF_BITS, i) | CFG_VB;
    if (i == 0) {
        buffer_full(env);
    }
}

static void counter_overflow(CPUX86State *env, int i)
{
    AMDPMUState *pmu = &env->amd_pmu;
    bool held = (pmu->dbg_extn_cfg & CFG_BRSMEN) &&
                CFG_PMC(pmu->dbg_extn_cfg) == i;

    trace_amd_pmu_overflow(cpu_number(env), guest_ns(env), i, held);
    if (held) {
        count_stat(env, AMD_PMU_STAT_OVERFLOW_HELD);
        hold_begin(env, i);
    } else if (pmu->hold && options(env)->hold_all) {
        count_stat(env, AMD_PMU_STAT_OVERFLOW_HELD);
        pmu->others_held = true;
    } else {
        count_stat(env, AMD_PMU_STAT_OVERFLOW_UNHELD);
        raise_pmi(env);
    }
}

/*
 * Handle the counters that have overflowed, and a delayed interrupt that is
 * due.  If @branch is not zero, a taken branch has just been counted in
 * @mode, and @branch has a bit for each kind of event that the branch is.
 * Overflows that this branch has caused are then left for a later call.
 */
static void check_overflows(CPUX86State *env, int mode, uint32_t branch)
{
    AMDPMUState *pmu = &env->amd_pmu;

    if (pmu->due && !insns_until_due(env)) {
        pmu->due = 0;
        deliver_pmi(env);
    }
    for (int i = 0; i < AMD_PMU_COUNTERS; i++) {
        uint64_t value;
        Growth g;

        if (!(pmu->ctl[i] & CTL_INT)) {
            continue;
        }
        get_growth(pmu->ctl[i], &g);
        value = pmu->base[i] + count_events(env, &g);
        if (branch && (g.modes & BIT(mode))) {
            for (int kind = 0; kind < AMD_PMU_KINDS; kind++) {
                value -= extract32(branch, kind, 1) * g.by[kind];
            }
        }
        if (value >= CTR_RANGE) {
            pmu->base[i] -= CTR_RANGE;
            counter_overflow(env, i);
        }
    }
}

/*
 * A taken branch has been counted.  If a counter has overflowed before this
 * branch, recording begins with this branch.  If this branch makes a counter
 * overflow, recording begins with the next taken branch.
 */
static void branch_taken(CPUX86State *env, int mode, uint32_t events,
                         AMDPMUBranch branch, uint64_t from, uint64_t to)
{
    AMDPMUState *pmu = &env->amd_pmu;

    check_overflows(env, mode, events);
    if (pmu->late) {
        pmu->late--;
        if (!pmu->late) {
            raise_pmi(env);
        }
    }
    if (pmu->hold && is_recorded(env, branch)) {
        record_branch(env, from, to);
    }
    check_overflows(env, mode, 0);
    update_limits(env);
}

/*
 * Like branch_taken(), for a transfer that can have changed the mode from
 * @old.  Subtract the instructions since the last call of enter_mode(), and
 * the transfer, from the budget of every mode.  For most modes, this
 * subtracts too much, but it is faster than update_limits(), and harmless: if
 * the budget of the old or the new mode is used up, branch_taken() is called.
 */
static void far_branch_taken(CPUX86State *env, int old, int mode,
                             uint32_t events, AMDPMUBranch branch,
                             uint64_t from, uint64_t to)
{
    AMDPMUState *pmu = &env->amd_pmu;
    int now = amd_pmu_mode(env->hflags);
    uint64_t used;

    used = env->amd_pmu_totals.event[AMD_PMU_INSNS][old] - pmu->start + 1;
    if (!pmu->limit[old] ||
        used >= pmu->budget[old] || used >= pmu->budget[now]) {
        branch_taken(env, mode, events, branch, from, to);
        return;
    }
    for (int i = 0; i < AMD_PMU_MODES; i++) {
        pmu->budget[i] -= MIN(pmu->budget[i], used);
    }
    enter_mode(env);
}

uint64_t amd_pmu_linear_eip(CPUX86State *env, uint64_t eip)
{
    if (env->hflags & HF_CS64_MASK) {
        return eip;
    }
    return (uint32_t)(env->segs[R_CS].base + eip);
}

void helper_pmu_exit(CPUX86State *env, target_ulong from, target_ulong to,
                     uint32_t how)
{
    int mode = amd_pmu_mode(env->hflags);

    if (how & AMD_PMU_EXIT(AMD_PMU_TAKEN)) {
        if (options(env)->fused_from) {
            from -= how >> AMD_PMU_EXIT_FUSED_SHIFT;
        }
        branch_taken(env, mode, how, AMD_PMU_BRANCH_PLAIN,
                     amd_pmu_linear_eip(env, from),
                     amd_pmu_linear_eip(env, to));
    } else {
        check_overflows(env, mode, 0);
        update_limits(env);
    }
}

void helper_pmu_far(CPUX86State *env, uint32_t insns, uint32_t mode,
                    uint32_t branch)
{
    env->amd_pmu.pending = 0;
    env->amd_pmu_totals.event[AMD_PMU_INSNS][mode] += insns;
    env->amd_pmu_totals.event[AMD_PMU_TAKEN][mode]++;
    far_branch_taken(env, mode, mode, AMD_PMU_EXIT_TAKEN, branch,
                     env->amd_pmu.from,
                     amd_pmu_linear_eip(env, env->eip));
}

/* Count the instructions that a block has retired before it was left. */
void amd_pmu_fold(CPUX86State *env, uint32_t hflags)
{
    int mode = amd_pmu_mode(hflags);

    env->amd_pmu_totals.event[AMD_PMU_INSNS][mode] += env->amd_pmu.pending;
    env->amd_pmu.pending = 0;
}

/*
 * Count an instruction, like HLT, that leaves its block without gen_pmu_exit().
 */
void amd_pmu_retire(CPUX86State *env)
{
    int mode = amd_pmu_mode(env->hflags);

    env->amd_pmu.pending++;
    amd_pmu_fold(env, env->hflags);
    check_overflows(env, mode, 0);
    update_limits(env);
}

/*
 * Count a transfer from the address @from and from the mode of @old_hflags,
 * as a taken branch and, if @is_insn, as an instruction.  An instruction
 * counts in the mode that it leaves; an exception, interrupt or SMI counts
 * in the mode that it enters.
 */
static void count_event(CPUX86State *env, uint32_t old_hflags, uint64_t from,
                        bool is_insn, AMDPMUBranch branch)
{
    int old = amd_pmu_mode(old_hflags);
    int mode;

    if (!(old_hflags & HF_PMU_MASK)) {
        return;
    }
    is_insn |= options(env)->count_exceptions;
    mode = is_insn ? old : amd_pmu_mode(env->hflags);

    env->amd_pmu_totals.event[AMD_PMU_INSNS][mode] += is_insn;
    env->amd_pmu_totals.event[AMD_PMU_TAKEN][mode]++;
    far_branch_taken(env, old, mode,
                     is_insn ? AMD_PMU_EXIT_TAKEN : AMD_PMU_EXIT(AMD_PMU_TAKEN),
                     branch, from, amd_pmu_linear_eip(env, env->eip));
}

/*
 * An exception or interrupt has been delivered.  It is an instruction only
 * if it comes from INTn, INT3 or INTO (@is_int).
 */
void amd_pmu_interrupt(CPUX86State *env, uint32_t old_hflags, uint64_t from,
                       int intno, bool is_int, bool is_hw)
{
    AMDPMUState *pmu = &env->amd_pmu;

    if (is_hw && intno == pmu->pmi_vector) {
        pmu->pmi_vector = -1;
        count_stat(env, AMD_PMU_STAT_PMI_DELIVERED);
    }
    count_event(env, old_hflags, from, is_int,
                is_int ? AMD_PMU_BRANCH_PLAIN : AMD_PMU_BRANCH_EVENT);
}

void amd_pmu_smi(CPUX86State *env, uint32_t old_hflags, uint64_t from)
{
    count_event(env, old_hflags, from, false, AMD_PMU_BRANCH_SMM);
}

void amd_pmu_halt(CPUX86State *env, bool mwait)
{
    AMDPMUState *pmu = &env->amd_pmu;

    count_stat(env, mwait ? AMD_PMU_STAT_MWAIT : AMD_PMU_STAT_HLT);
    if (pmu->hold) {
        count_stat(env, AMD_PMU_STAT_HOLD_HALTED);
        trace_amd_brs_halted(cpu_number(env), guest_ns(env));
    }
    if (pmu->late || pmu->due) {
        /* Do not let an interrupt wait for more branches or instructions. */
        if (pmu->late) {
            pmu->late = 0;
            raise_pmi(env);
        }
        if (pmu->due) {
            pmu->due = 0;
            deliver_pmi(env);
        }
        update_limits(env);
    }
}

enum { REG_NONE, REG_CTL, REG_CTR, REG_CFG, REG_FROM, REG_TO };

static int find_register(CPUX86State *env, uint32_t msr, int *i)
{
    switch (msr) {
    case MSR_K7_EVNTSEL0 ... MSR_K7_EVNTSEL3:
        *i = msr - MSR_K7_EVNTSEL0;
        return has_pmu(env) ? REG_CTL : REG_NONE;
    case MSR_K7_PERFCTR0 ... MSR_K7_PERFCTR3:
        *i = msr - MSR_K7_PERFCTR0;
        return has_pmu(env) ? REG_CTR : REG_NONE;
    case MSR_F15H_PERF_CTL0 ... MSR_F15H_PERF_CTR5:
        *i = (msr - MSR_F15H_PERF_CTL0) / 2;
        if (!has_pmu(env)) {
            return REG_NONE;
        }
        return (msr - MSR_F15H_PERF_CTL0) % 2 ? REG_CTR : REG_CTL;
    case MSR_AMD_DBG_EXTN_CFG:
        return has_brs(env) ? REG_CFG : REG_NONE;
    case MSR_AMD_SAMP_BR_FROM0 ... MSR_AMD_SAMP_BR_TO15:
        *i = (msr - MSR_AMD_SAMP_BR_FROM0) / 2;
        if (!has_brs(env)) {
            return REG_NONE;
        }
        return (msr - MSR_AMD_SAMP_BR_FROM0) % 2 ? REG_TO : REG_FROM;
    default:
        return REG_NONE;
    }
}

bool amd_pmu_rdmsr(CPUX86State *env, uint32_t msr, uint64_t *val)
{
    AMDPMUState *pmu = &env->amd_pmu;
    int i;

    switch (find_register(env, msr, &i)) {
    case REG_CTL:
        count_stat(env, AMD_PMU_STAT_RDMSR_PERF_CTL);
        *val = pmu->ctl[i];
        break;
    case REG_CTR:
        count_stat(env, AMD_PMU_STAT_RDMSR_PERF_CTR);
        *val = counter_value(env, i) & CTR_MASK;
        break;
    case REG_CFG:
        count_stat(env, AMD_PMU_STAT_RDMSR_DBG_EXTN_CFG);
        *val = pmu->dbg_extn_cfg;
        break;
    case REG_FROM:
        count_stat(env, AMD_PMU_STAT_RDMSR_SAMP_BR);
        *val = pmu->samp_br_from[i];
        break;
    case REG_TO:
        count_stat(env, AMD_PMU_STAT_RDMSR_SAMP_BR);
        *val = pmu->samp_br_to[i];
        break;
    default:
        return false;
    }

    if (trace_event_get_state_backends(TRACE_AMD_PMU_RDMSR)) {
        trace_amd_pmu_rdmsr(cpu_number(env), guest_ns(env), msr, *val);
    }
    return true;
}

static void write_config(CPUX86State *env, uint64_t val)
{
    AMDPMUState *pmu = &env->amd_pmu;
    const AMDPMUOptions *opt = options(env);
    uint64_t read_only = opt->msroff_ro ? CFG_MSROFF_MASK | CFG_VB : 0;

    pmu->dbg_extn_cfg = (val & CFG_VALID & ~read_only) |
                        (pmu->dbg_extn_cfg & read_only);
    if (pmu->hold && !(val & CFG_BRSMEN)) {
        hold_end(env, opt->release == AMD_BRS_RELEASE_DROP ? DROPPED
                                                           : RELEASED);
    }
}

bool amd_pmu_wrmsr(CPUX86State *env, uint32_t msr, uint64_t val, bool *fault)
{
    AMDPMUState *pmu = &env->amd_pmu;
    uint32_t pending = pmu->pending;
    uint64_t ctr;
    int reg, i;

    reg = find_register(env, msr, &i);
    if (reg == REG_NONE) {
        return false;
    }
    if (trace_event_get_state_backends(TRACE_AMD_PMU_WRMSR)) {
        trace_amd_pmu_wrmsr(cpu_number(env), guest_ns(env), msr, val);
    }

    /* Find overflows by earlier instructions of the running block. */
    check_overflows(env, amd_pmu_mode(env->hflags), 0);

    /*
     * A counter counts neither the WRMSR that starts it nor the WRMSR that
     * stops it: the old state of the PMU ends before the instruction, and
     * the new state begins after the instruction.
     */
    switch (reg) {
    case REG_CTL:
        count_stat(env, AMD_PMU_STAT_WRMSR_PERF_CTL);
        ctr = counter_value(env, i);
        pmu->ctl[i] = val & CTL_VALID;
        pmu->pending += !!(env->hflags & HF_PMU_MASK);
        set_counter(env, i, ctr);
        if (options(env)->ctl_cancels && pmu->hold && !(val & CTL_EN) &&
            CFG_PMC(pmu->dbg_extn_cfg) == i) {
            hold_end(env, DROPPED);
        }
        break;
    case REG_CTR:
        count_stat(env, AMD_PMU_STAT_WRMSR_PERF_CTR);
        pmu->pending += !!(env->hflags & HF_PMU_MASK);
        set_counter(env, i, val);
        break;
    case REG_CFG:
        count_stat(env, AMD_PMU_STAT_WRMSR_DBG_EXTN_CFG);
        if (!options(env)->cfg_lax &&
            ((val & ~CFG_VALID) || (val & CFG_ONES) != CFG_ONES)) {
            *fault = true;
            break;
        }
        write_config(env, val);
        break;
    case REG_FROM:
        count_stat(env, AMD_PMU_STAT_WRMSR_SAMP_BR);
        pmu->samp_br_from[i] = val;
        break;
    case REG_TO:
        count_stat(env, AMD_PMU_STAT_WRMSR_SAMP_BR);
        pmu->samp_br_to[i] = val;
        break;
    }

    update_limits(env);
    pmu->pending = pending;
    update_hflags(env);
    return true;
}

bool amd_pmu_rdpmc(CPUX86State *env, uint32_t index, uint64_t *val,
                   bool *fault)
{
    if (!has_pmu(env)) {
        return false;
    }
    count_stat(env, AMD_PMU_STAT_RDPMC);
    if (index >= AMD_PMU_COUNTERS) {
        *fault = true;
        return true;
    }
    *val = counter_value(env, index) & CTR_MASK;
    return true;
}

void amd_pmu_realize(X86CPU *cpu)
{
    if (has_pmu(&cpu->env)) {
        pmu_stats_register(CPU(cpu), (const char *const *)&amd_pmu_names,
                           (const uint64_t *)&cpu->env.amd_pmu_totals,
                           sizeof(amd_pmu_names) / sizeof(char *));
    }
}

void amd_pmu_unrealize(X86CPU *cpu)
{
    if (has_pmu(&cpu->env)) {
        pmu_stats_unregister(CPU(cpu));
    }
}

static uint64_t reset_config(CPUX86State *env)
{
    return options(env)->cfg_lax ? 0 : CFG_ONES;
}

/* Reset the PMU.  The caller has cleared AMDPMUState. */
void amd_pmu_reset(CPUX86State *env)
{
    env->amd_pmu.random = RANDOM_SEED;
    env->amd_pmu.dbg_extn_cfg = reset_config(env);
    env->amd_pmu.pmi_vector = -1;
    update_limits(env);
    update_hflags(env);
}

/* Called after INIT has reset the CPU, but not the PMU's registers. */
void amd_pmu_post_init(CPUX86State *env)
{
    env->amd_pmu.pmi_vector = -1;
    update_limits(env);
    update_hflags(env);
}

static bool amd_pmu_needed(void *opaque)
{
    X86CPU *cpu = opaque;
    AMDPMUState *pmu = &cpu->env.amd_pmu;

    /* There are counters to save only with TCG. */
    if (!tcg_enabled() || !has_pmu(&cpu->env)) {
        return false;
    }
    for (int i = 0; i < AMD_PMU_COUNTERS; i++) {
        if (pmu->ctl[i] || counter_value(&cpu->env, i)) {
            return true;
        }
    }
    for (int i = 0; i < AMD_BRS_DEPTH; i++) {
        if (pmu->samp_br_from[i] || pmu->samp_br_to[i]) {
            return true;
        }
    }
    return pmu->dbg_extn_cfg != reset_config(&cpu->env);
}

static int amd_pmu_pre_save(void *opaque)
{
    X86CPU *cpu = opaque;

    for (int i = 0; i < AMD_PMU_COUNTERS; i++) {
        cpu->env.amd_pmu.ctr_vmstate[i] =
            counter_value(&cpu->env, i) & CTR_MASK;
    }
    return 0;
}

static int amd_pmu_post_load(void *opaque, int version_id)
{
    X86CPU *cpu = opaque;
    AMDPMUState *pmu = &cpu->env.amd_pmu;

    if ((pmu->dbg_extn_cfg & ~CFG_VALID) ||
        (pmu->hold && !(pmu->dbg_extn_cfg & CFG_BRSMEN))) {
        return -EINVAL;
    }
    for (int i = 0; i < AMD_PMU_COUNTERS; i++) {
        pmu->ctl[i] &= CTL_VALID;
        set_counter(&cpu->env, i, pmu->ctr_vmstate[i]);
    }
    update_limits(&cpu->env);
    update_hflags(&cpu->env);
    return 0;
}

static bool amd_pmu_options_needed(void *opaque)
{
    X86CPU *cpu = opaque;
    AMDPMUState *pmu = &cpu->env.amd_pmu;

    return pmu->blocked || pmu->skid || pmu->late || pmu->others_held ||
           pmu->pmis || pmu->unhit || pmu->due || pmu->random != RANDOM_SEED;
}

static int amd_pmu_options_pre_save(void *opaque)
{
    X86CPU *cpu = opaque;
    AMDPMUState *pmu = &cpu->env.amd_pmu;

    pmu->due_vmstate = pmu->due ? MAX(insns_until_due(&cpu->env), 1) : 0;
    return 0;
}

static int amd_pmu_options_post_load(void *opaque, int version_id)
{
    X86CPU *cpu = opaque;
    AMDPMUState *pmu = &cpu->env.amd_pmu;

    pmu->due = pmu->due_vmstate ? all_insns(&cpu->env) + pmu->due_vmstate : 0;
    return pmu->random ? 0 : -EINVAL;
}

/* State that is zero or unused unless a CPU property is not at its default */
static const VMStateDescription vmstate_amd_pmu_options = {
    .name = "cpu/amd_pmu/options",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = amd_pmu_options_needed,
    .pre_save = amd_pmu_options_pre_save,
    .post_load = amd_pmu_options_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_BOOL(env.amd_pmu.blocked, X86CPU),
        VMSTATE_UINT32(env.amd_pmu.skid, X86CPU),
        VMSTATE_UINT32(env.amd_pmu.late, X86CPU),
        VMSTATE_UINT64(env.amd_pmu.random, X86CPU),
        VMSTATE_BOOL(env.amd_pmu.others_held, X86CPU),
        VMSTATE_UINT32(env.amd_pmu.pmis, X86CPU),
        VMSTATE_UINT32(env.amd_pmu.unhit, X86CPU),
        VMSTATE_UINT64(env.amd_pmu.due_vmstate, X86CPU),
        VMSTATE_END_OF_LIST()
    }
};

const VMStateDescription vmstate_amd_pmu = {
    .name = "cpu/amd_pmu",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = amd_pmu_needed,
    .pre_save = amd_pmu_pre_save,
    .post_load = amd_pmu_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64_ARRAY(env.amd_pmu.ctl, X86CPU, AMD_PMU_COUNTERS),
        VMSTATE_UINT64_ARRAY(env.amd_pmu.ctr_vmstate, X86CPU,
                             AMD_PMU_COUNTERS),
        VMSTATE_UINT64(env.amd_pmu.dbg_extn_cfg, X86CPU),
        VMSTATE_UINT64_ARRAY(env.amd_pmu.samp_br_from, X86CPU, AMD_BRS_DEPTH),
        VMSTATE_UINT64_ARRAY(env.amd_pmu.samp_br_to, X86CPU, AMD_BRS_DEPTH),
        VMSTATE_BOOL(env.amd_pmu.hold, X86CPU),
        VMSTATE_INT64(env.amd_pmu.hold_ns, X86CPU),
        VMSTATE_END_OF_LIST()
    },
    .subsections = (const VMStateDescription * const []) {
        &vmstate_amd_pmu_options,
        NULL
    }
};
