/*
 * The sampled instruction: SIAR, SDAR and SIER
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "cpu.h"
#include "exec/cpu-all.h"
#include "power8-pmu.h"

#if defined(TARGET_PPC64) && !defined(CONFIG_USER_ONLY)

/* The extended opcodes of the indexed loads and stores below opcode 31 */
static const struct {
    uint16_t xo;
    bool store;
    bool update;
} indexed[] = {
    /* integer */
    { 23 }, { 87 }, { 279 }, { 343 }, { 341 }, { 21 },
    { 55, false, true }, { 119, false, true }, { 311, false, true },
    { 375, false, true }, { 373, false, true }, { 53, false, true },
    { 151, true }, { 215, true }, { 407, true }, { 149, true },
    { 183, true, true }, { 247, true, true }, { 439, true, true },
    { 181, true, true },
    /* byte-reversed */
    { 534 }, { 790 }, { 532 }, { 662, true }, { 918, true }, { 660, true },
    /* reservations */
    { 20 }, { 84 }, { 52 }, { 116 }, { 276 },
    { 150, true }, { 214, true }, { 694, true }, { 726, true }, { 182, true },
    /* floating point */
    { 535 }, { 599 }, { 663, true }, { 727, true },
    { 567, false, true }, { 631, false, true },
    { 695, true, true }, { 759, true, true },
    /* vectors */
    { 103 }, { 359 }, { 231, true }, { 487, true },
    { 844 }, { 780 }, { 588 }, { 268 }, { 972, true }, { 908, true },
    { 716, true }, { 396, true },
};

/*
 * A load or store that has been executed just now: find the effective
 * address of its storage operand.  That can not be found if the instruction
 * has overwritten a register that is part of the address.
 */
static bool storage_operand(CPUPPCState *env, uint32_t insn, target_ulong *ea,
                            bool *store)
{
    int op = extract32(insn, 26, 6);
    int rt = extract32(insn, 21, 5);
    int ra = extract32(insn, 16, 5);
    int rb = extract32(insn, 11, 5);
    target_long disp = (int16_t)insn;
    bool update = false;
    /* the general purpose registers that a load writes: rt to rt_last */
    int rt_last = rt;

    switch (op) {
    case 31:
        for (size_t i = 0; i < ARRAY_SIZE(indexed); i++) {
            if (extract32(insn, 1, 10) == indexed[i].xo) {
                bool to_gpr = indexed[i].xo < 512 ? indexed[i].xo != 103 &&
                                                    indexed[i].xo != 359 &&
                                                    indexed[i].xo != 268
                                                  : indexed[i].xo == 534 ||
                                                    indexed[i].xo == 790 ||
                                                    indexed[i].xo == 532;

                *store = indexed[i].store;
                if (indexed[i].update) {
                    *ea = env->gpr[ra];
                    return true;
                }
                if (!*store && to_gpr && ((ra && rt == ra) || rt == rb)) {
                    return false;
                }
                *ea = (ra ? env->gpr[ra] : 0) + env->gpr[rb];
                return true;
            }
        }
        return false;
    case 32 ... 35:             /* lwz to lbzu */
    case 40 ... 43:             /* lhz to lhau */
        *store = false;
        update = op & 1;
        break;
    case 46:                    /* lmw */
        *store = false;
        rt_last = 31;
        break;
    case 36 ... 39:             /* stw to stbu */
    case 44 ... 45:             /* sth, sthu */
    case 52 ... 55:             /* stfs to stfdu */
        *store = true;
        update = op & 1;
        break;
    case 47:                    /* stmw */
        *store = true;
        break;
    case 48 ... 51:             /* lfs to lfdu */
        *store = false;
        update = op & 1;
        rt = rt_last = -1;
        break;
    case 56:                    /* lq */
        *store = false;
        rt_last = rt + 1;
        disp &= ~15;
        break;
    case 57:                    /* lfdp, lxsd, lxssp */
        *store = false;
        rt = rt_last = -1;
        disp &= ~3;
        break;
    case 58:                    /* ld, ldu, lwa */
        *store = false;
        update = (insn & 3) == 1;
        disp &= ~3;
        break;
    case 61:                    /* stfdp, stxsd, stxssp, lxv, stxv */
        *store = (insn & 7) != 1;
        rt = rt_last = -1;
        disp &= (insn & 3) == 1 ? ~15 : ~3;
        break;
    case 62:                    /* std, stdu, stq */
        *store = true;
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
    if (!*store && ra && ra >= rt && ra <= rt_last) {
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

/**
 * pmu_sample: set SIAR, SDAR and SIER at a performance monitor alert
 * @env: the CPU
 * @nia: address of the instruction that has caused the alert, executed last
 * @msr: MSR at that time
 *
 * Power ISA 2.07 and later, Book III, "Sampled Instruction Address
 * Register" and the two after it.
 */
void pmu_sample(CPUPPCState *env, target_ulong nia, target_ulong msr)
{
    target_ulong sier = SIER_SIAR_VALID;
    target_ulong ea;
    uint8_t buf[4];
    bool store;

    env->spr[SPR_POWER_SIAR] = nia;

    if (msr & (1ull << MSR_PR)) {
        sier |= SIER_SIPR;
    }
    if (msr & MSR_HVB) {
        sier |= SIER_SIHV;
    }

    if (cpu_memory_rw_debug(env_cpu(env), nia, buf, sizeof(buf), false) == 0) {
        uint32_t insn = msr & (1ull << MSR_LE) ? ldl_le_p(buf) : ldl_be_p(buf);

        if (storage_operand(env, insn, &ea, &store)) {
            if (!msr_is_64bit(env, msr)) {
                ea = (uint32_t)ea;
            }
            env->spr[SPR_POWER_SDAR] = ea;
            sier |= SIER_SDAR_VALID;
            sier |= store ? SIER_TYPE_STORE : SIER_TYPE_LOAD;
        } else if (is_branch(insn)) {
            sier |= SIER_TYPE_BRANCH;
        }
    }
    env->spr[SPR_POWER_SIER] = sier;
}

#endif
