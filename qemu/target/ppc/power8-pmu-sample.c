/*
 * Which instructions load and store, for the performance monitor, and the
 * registers that describe a sampled instruction (SIAR, SDAR and SIER)
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "cpu.h"
#include "power8-pmu.h"

#if defined(TARGET_PPC64) && !defined(CONFIG_USER_ONLY)

/*
 * The indexed loads and stores of primary opcode 31.  The index of the table
 * is the extended opcode, and a value consists of these bits.
 */
#define LOAD   BIT(0)   /* loads other registers than GPRs */
#define STORE  BIT(1)
#define TO_GPR BIT(2)   /* loads to RT */
#define TO_ALL BIT(3)   /* loads to RT and to registers after RT */
#define UPDATE BIT(4)   /* writes the effective address to RA */
#define NO_RB  BIT(5)   /* the effective address is RA; RB is no part of it */

static const uint8_t indexed[1024] = {
    /* integer loads and stores */
    [23]  = TO_GPR, [87]  = TO_GPR, [279] = TO_GPR, [343] = TO_GPR,
    [341] = TO_GPR, [21]  = TO_GPR,
    [55]  = TO_GPR | UPDATE, [119] = TO_GPR | UPDATE, [311] = TO_GPR | UPDATE,
    [375] = TO_GPR | UPDATE, [373] = TO_GPR | UPDATE, [53]  = TO_GPR | UPDATE,
    [151] = STORE, [215] = STORE, [407] = STORE, [149] = STORE,
    [183] = STORE | UPDATE, [247] = STORE | UPDATE,
    [439] = STORE | UPDATE, [181] = STORE | UPDATE,
    /* move assist: lswx, lswi, stswx, stswi */
    [533] = TO_ALL, [597] = TO_ALL | NO_RB,
    [661] = STORE, [725] = STORE | NO_RB,
    /* byte-reversed loads and stores */
    [534] = TO_GPR, [790] = TO_GPR, [532] = TO_GPR,
    [662] = STORE, [918] = STORE, [660] = STORE,
    /* caching-inhibited loads and stores */
    [789] = TO_GPR, [821] = TO_GPR, [853] = TO_GPR, [885] = TO_GPR,
    [917] = STORE, [949] = STORE, [981] = STORE, [1013] = STORE,
    /* load and reserve, store conditional */
    [52]  = TO_GPR, [116] = TO_GPR, [20]  = TO_GPR, [84]  = TO_GPR,
    [276] = TO_ALL,
    [694] = STORE, [726] = STORE, [150] = STORE, [214] = STORE, [182] = STORE,
    /* atomic memory operations */
    [582] = TO_ALL | NO_RB, [614] = TO_ALL | NO_RB,
    [710] = STORE | NO_RB, [742] = STORE | NO_RB,
    /* floating-point loads and stores */
    [535] = LOAD, [599] = LOAD, [791] = LOAD, [855] = LOAD, [887] = LOAD,
    [567] = LOAD | UPDATE, [631] = LOAD | UPDATE,
    [663] = STORE, [727] = STORE, [919] = STORE, [983] = STORE,
    [695] = STORE | UPDATE, [759] = STORE | UPDATE,
    /* vector (VMX) loads and stores */
    [7]   = LOAD, [39]  = LOAD, [71]  = LOAD, [103] = LOAD, [359] = LOAD,
    [135] = STORE, [167] = STORE, [199] = STORE, [231] = STORE, [487] = STORE,
    /* vector-scalar (VSX) loads and stores */
    [12]  = LOAD, [76]  = LOAD, [524] = LOAD, [588] = LOAD, [781] = LOAD,
    [813] = LOAD, [13]  = LOAD, [45]  = LOAD, [77]  = LOAD, [109] = LOAD,
    [268] = LOAD, [300] = LOAD, [332] = LOAD, [333] = LOAD, [364] = LOAD,
    [780] = LOAD, [812] = LOAD, [844] = LOAD, [876] = LOAD,
    [269] = LOAD | NO_RB, [301] = LOAD | NO_RB,
    [140] = STORE, [652] = STORE, [716] = STORE, [909] = STORE, [941] = STORE,
    [141] = STORE, [173] = STORE, [205] = STORE, [237] = STORE,
    [396] = STORE, [461] = STORE,
    [908] = STORE, [940] = STORE, [972] = STORE, [1004] = STORE,
    [397] = STORE | NO_RB, [429] = STORE | NO_RB,
};

/*
 * Return whether an instruction is hashst, hashstp, hashchk or hashchkp,
 * which have a storage operand at RA + displacement.  Set @store to whether
 * the instruction stores.
 */
static bool hash_operand(uint32_t insn, bool *store)
{
    switch (extract32(insn, 1, 10)) {
    case 722:
    case 658:
        *store = true;
        return true;
    case 754:
    case 690:
        *store = false;
        return true;
    default:
        return false;
    }
}

/**
 * pmu_insn_type: find out whether an instruction loads or stores
 * @prefix: prefix of the instruction, 0 for an instruction without prefix
 * @insn: the instruction, or the suffix of a prefixed instruction
 *
 * An instruction that loads and stores, such as an atomic memory operation,
 * is a load.  Cache management and copy-paste instructions do neither.
 *
 * Returns: SIER_TYPE_LOAD, SIER_TYPE_STORE, or 0
 */
uint64_t pmu_insn_type(uint32_t prefix, uint32_t insn)
{
    int op = extract32(insn, 26, 6);
    bool store;
    uint8_t flags;

    if (prefix) {
        switch (extract32(prefix, 24, 2)) {
        case 0:                 /* 8-byte load or store */
            switch (op) {
            case 41 ... 43:     /* plwa, plxsd, plxssp */
            case 50 ... 51:     /* plxv */
            case 56 ... 58:     /* plq, pld, plxvp */
                return SIER_TYPE_LOAD;
            case 46 ... 47:     /* pstxsd, pstxssp */
            case 54 ... 55:     /* pstxv */
            case 60 ... 62:     /* pstq, pstd, pstxvp */
                return SIER_TYPE_STORE;
            default:
                return 0;
            }
        case 2:                 /* modified load or store */
            break;
        default:
            return 0;
        }
    }

    switch (op) {
    case 6:                     /* lxvp, stxvp */
        return extract32(insn, 0, 4) == 0 ? SIER_TYPE_LOAD :
               extract32(insn, 0, 4) == 1 ? SIER_TYPE_STORE : 0;
    case 31:
        if (hash_operand(insn, &store)) {
            return store ? SIER_TYPE_STORE : SIER_TYPE_LOAD;
        }
        flags = indexed[extract32(insn, 1, 10)];
        return !flags ? 0 : flags & STORE ? SIER_TYPE_STORE : SIER_TYPE_LOAD;
    case 32 ... 35:             /* lwz to lbzu */
    case 40 ... 43:             /* lhz to lhau */
    case 46:                    /* lmw */
    case 48 ... 51:             /* lfs to lfdu */
    case 56:                    /* lq */
    case 57:                    /* lfdp, lxsd, lxssp */
    case 58:                    /* ld, ldu, lwa */
        return SIER_TYPE_LOAD;
    case 36 ... 39:             /* stw to stbu */
    case 44 ... 45:             /* sth, sthu */
    case 47:                    /* stmw */
    case 52 ... 55:             /* stfs to stfdu */
    case 62:                    /* std, stdu, stq */
        return SIER_TYPE_STORE;
    case 61:                    /* stfdp, stxsd, stxssp, lxv, stxv */
        return extract32(insn, 0, 3) == 1 ? SIER_TYPE_LOAD : SIER_TYPE_STORE;
    default:
        return 0;
    }
}

/*
 * Find the effective address of the storage operand of @insn, a load or store
 * without prefix that has just been executed.  Return false if the
 * instruction has overwritten a register that is part of the address.
 */
static bool storage_operand(CPUPPCState *env, uint32_t insn, target_ulong *ea)
{
    int op = extract32(insn, 26, 6);
    int rt = extract32(insn, 21, 5);
    int ra = extract32(insn, 16, 5);
    int rb = extract32(insn, 11, 5);
    target_long disp = (int16_t)insn;
    /* a load writes the general purpose registers rt to rt_last */
    int rt_last = -1;
    bool update = false;
    bool store;

    switch (op) {
    case 6:                     /* lxvp, stxvp */
        disp &= ~15;
        break;
    case 31:
    {
        uint8_t flags = indexed[extract32(insn, 1, 10)];

        if (hash_operand(insn, &store)) {
            *ea = env->gpr[ra] +
                  (-512 + 8 * (rt | (target_long)(insn & 1) << 5));
            return true;
        }
        if (flags & UPDATE) {
            *ea = env->gpr[ra];
            return true;
        }
        if (flags & TO_ALL) {
            /* The instruction alone does not tell which GPRs are loaded. */
            return false;
        }
        if ((flags & TO_GPR) && ((ra && rt == ra) || rt == rb)) {
            return false;
        }
        *ea = (ra ? env->gpr[ra] : 0) + (flags & NO_RB ? 0 : env->gpr[rb]);
        return true;
    }
    case 32 ... 35:             /* lwz to lbzu */
    case 40 ... 43:             /* lhz to lhau */
        rt_last = rt;
        update = op & 1;
        break;
    case 36 ... 39:             /* stw to stbu */
    case 44 ... 45:             /* sth, sthu */
    case 48 ... 55:             /* lfs to stfdu */
        update = op & 1;
        break;
    case 46:                    /* lmw */
        rt_last = 31;
        break;
    case 47:                    /* stmw */
        break;
    case 56:                    /* lq */
        rt_last = rt + 1;
        disp &= ~15;
        break;
    case 57:                    /* lfdp, lxsd, lxssp */
        disp &= ~3;
        break;
    case 58:                    /* ld, ldu, lwa */
        rt_last = rt;
        update = (insn & 3) == 1;
        disp &= ~3;
        break;
    case 61:                    /* stfdp, stxsd, stxssp, lxv, stxv */
        disp &= (insn & 3) == 1 ? ~15 : ~3;
        break;
    case 62:                    /* std, stdu, stq */
        update = (insn & 3) == 1;
        disp &= ~3;
        break;
    default:
        return false;
    }

    if (update) {
        *ea = env->gpr[ra];
        return true;
    }
    if (ra && ra >= rt && ra <= rt_last) {
        return false;
    }
    *ea = (ra ? env->gpr[ra] : 0) + disp;
    return true;
}

static bool is_branch(uint32_t insn)
{
    int op = extract32(insn, 26, 6);
    int xo = extract32(insn, 1, 10);

    return op == 16 || op == 18 ||
           (op == 19 && (xo == 16 || xo == 528 || xo == 560));
}

static bool fetch(CPUPPCState *env, target_ulong nia, target_ulong msr,
                  uint32_t *insn)
{
    uint8_t buf[4];

    if (cpu_memory_rw_debug(env_cpu(env), nia, buf, sizeof(buf), false)) {
        return false;
    }
    *insn = msr & (1ull << MSR_LE) ? ldl_le_p(buf) : ldl_be_p(buf);
    return true;
}

/**
 * pmu_sample: set SIAR, SDAR and SIER at a performance monitor alert
 * @env: the CPU
 * @nia: address of the instruction to sample, which has been executed last
 * @msr: MSR when that instruction was executed
 *
 * Power ISA 2.07 and later, Book III: "Sampled Instruction Address
 * Register", "Sampled Data Address Register", "Sampled Instruction Event
 * Register".
 */
void pmu_sample(CPUPPCState *env, target_ulong nia, target_ulong msr)
{
    target_ulong sier = SIER_SIAR_VALID;
    uint32_t insn, prefix = 0;
    target_ulong ea;
    uint64_t type;

    env->spr[SPR_POWER_SIAR] = nia;

    if (msr & (1ull << MSR_PR)) {
        sier |= SIER_SIPR;
    }
    if (msr & MSR_HVB) {
        sier |= SIER_SIHV;
    }

    if (fetch(env, nia, msr, &insn)) {
        if ((env->insns_flags2 & PPC2_ISA310) && insn >> 26 == 1) {
            prefix = insn;
            if (!fetch(env, nia + 4, msr, &insn)) {
                prefix = insn = 0;
            }
        }
        type = pmu_insn_type(prefix, insn);
        if (!prefix && is_branch(insn)) {
            type = SIER_TYPE_BRANCH;
        } else if (type && !prefix && storage_operand(env, insn, &ea)) {
            if (!msr_is_64bit(env, msr)) {
                ea = (uint32_t)ea;
            }
            env->spr[SPR_POWER_SDAR] = ea;
            sier |= SIER_SDAR_VALID;
        }
        sier |= type;
    }
    env->spr[SPR_POWER_SIER] = sier;
}

#endif
