/*
 * CPU properties that change how the AMD performance counters behave
 *
 * No manual settles every detail of Branch Sampling, so that the emulation
 * has to choose.  A driver that has only been tested with one behaviour may
 * fail with hardware that behaves differently.  Each property changes one
 * detail of the behaviour; docs/system/i386/amd-pmu.rst describes them.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/util.h"
#include "qapi/visitor.h"
#include "qemu/cutils.h"
#include "system/tcg.h"
#include "cpu.h"

#define OPTION(member) \
    (offsetof(X86CPU, amd_pmu_options) + offsetof(AMDPMUOptions, member))

/* A CPU property whose value is a number, one of several names, or a bool */
typedef struct Option {
    const char *name;
    size_t offset;
    uint32_t max;               /* greatest value of a numeric property */
    uint32_t min;               /* least nonzero value of a numeric property */
    const QEnumLookup *names;   /* names that are valid values */
    bool on;                    /* default value of a bool property */
} Option;

static const QEnumLookup start_names = {
    .array = (const char *const[]) {
        [AMD_BRS_START_OVERFLOW] = "overflow",
        [AMD_BRS_START_DELIVERABLE] = "deliverable",
    },
    .size = 2,
};

static const QEnumLookup release_names = {
    .array = (const char *const[]) {
        [AMD_BRS_RELEASE_NOW] = "now",
        [AMD_BRS_RELEASE_LATE] = "late",
        [AMD_BRS_RELEASE_DROP] = "drop",
    },
    .size = 3,
};

static const QEnumLookup full_names = {
    .array = (const char *const[]) {
        [AMD_BRS_FULL_DEFAULT] = "default",
        [AMD_BRS_FULL_MSROFF_15] = "msroff-15",
        [AMD_BRS_FULL_BRSMEN_1] = "brsmen-1",
        [AMD_BRS_FULL_VB_0] = "vb-0",
    },
    .size = 4,
};

static const Option numbers[] = {
    { "x-brs-start-skid", OPTION(start_skid), 65535 },
    { "x-brs-start-skid-random", OPTION(start_skid_random), 65535 },
    { "x-brs-pmi-late", OPTION(pmi_late), 65535 },
    { "x-brs-to-bits", OPTION(to_bits), 61, 48 },
    { "x-brs-nmi", OPTION(nmi), UINT32_MAX },
    { "x-pmu-pmi-delay", OPTION(pmi_delay), 1000000 },
    { "x-pmu-pmi-lose", OPTION(pmi_lose), UINT32_MAX },
};

static const Option choices[] = {
    { "x-brs-start", OPTION(start), .names = &start_names },
    { "x-brs-full", OPTION(full), .names = &full_names },
    { "x-brs-release", OPTION(release), .names = &release_names },
};

static const Option switches[] = {
    { "x-brs-ctl-cancels", OPTION(ctl_cancels) },
    { "x-brs-msroff-ro", OPTION(msroff_ro) },
    { "x-brs-no-exceptions", OPTION(no_exceptions) },
    { "x-brs-fused-from", OPTION(fused_from) },
    { "x-brs-hold-all", OPTION(hold_all) },
    { "x-brs-record-vm", OPTION(record_vm), .on = true },
    { "x-brs-cfg-lax", OPTION(cfg_lax) },
    { "x-pmu-count-exceptions", OPTION(count_exceptions) },
};

static void *option_value(Object *obj, const Option *option)
{
    return (char *)X86_CPU(obj) + option->offset;
}

/* Reject a change of a PMU property after the CPU has been realized. */
static bool can_set(Object *obj, const char *name, Error **errp)
{
    if (DEVICE(obj)->realized) {
        error_setg(errp, "Property '%s.%s' can not be changed after creation",
                   object_get_typename(obj), name);
        return false;
    }
    return true;
}

static void get_number(Object *obj, Visitor *v, const char *name,
                       void *opaque, Error **errp)
{
    visit_type_uint32(v, name, option_value(obj, opaque), errp);
}

static void set_number(Object *obj, Visitor *v, const char *name,
                       void *opaque, Error **errp)
{
    const Option *option = opaque;
    uint32_t value;

    if (!can_set(obj, name, errp) ||
        !visit_type_uint32(v, name, &value, errp)) {
        return;
    }
    if (value > option->max || (value && value < option->min)) {
        error_setg(errp, "Property %s.%s doesn't take value %" PRIu32
                   " (minimum: %" PRIu32 ", maximum: %" PRIu32 ")",
                   object_get_typename(obj), name, value, option->min,
                   option->max);
        return;
    }
    *(uint32_t *)option_value(obj, option) = value;
}

static void get_choice(Object *obj, Visitor *v, const char *name,
                       void *opaque, Error **errp)
{
    const Option *option = opaque;

    visit_type_enum(v, name, option_value(obj, option), option->names, errp);
}

static void set_choice(Object *obj, Visitor *v, const char *name,
                       void *opaque, Error **errp)
{
    const Option *option = opaque;

    if (can_set(obj, name, errp)) {
        visit_type_enum(v, name, option_value(obj, option), option->names,
                        errp);
    }
}

static void get_switch(Object *obj, Visitor *v, const char *name,
                       void *opaque, Error **errp)
{
    visit_type_bool(v, name, option_value(obj, opaque), errp);
}

static void set_switch(Object *obj, Visitor *v, const char *name,
                       void *opaque, Error **errp)
{
    if (can_set(obj, name, errp)) {
        visit_type_bool(v, name, option_value(obj, opaque), errp);
    }
}

/*
 * Check that the CPU has what a property changes that does not have its default
 * value: Branch Sampling for a property x-brs-*, the counters for a property
 * x-pmu-*.  Both exist with TCG only.
 */
static bool check_changed(X86CPU *cpu, const Option *option, Error **errp)
{
    const uint64_t *features = cpu->env.features;
    const char *missing = NULL;

    if (!tcg_enabled()) {
        missing = "accelerator tcg";
    } else if (strstart(option->name, "x-brs-", NULL)) {
        if (!(features[FEAT_8000_0008_EBX] & CPUID_8000_0008_EBX_BRS)) {
            missing = "CPU feature brs";
        }
    } else if (!(features[FEAT_8000_0001_ECX] & CPUID_EXT3_PERFCORE)) {
        missing = "CPU feature perfctr-core";
    }
    if (missing) {
        error_setg(errp, "Property '%s.%s' needs the %s",
                   object_get_typename(OBJECT(cpu)), option->name, missing);
    }
    return !missing;
}

/*
 * Reject properties that would have no effect.  The features of the CPU have to
 * be final.
 */
bool amd_pmu_check_properties(X86CPU *cpu, Error **errp)
{
    Object *obj = OBJECT(cpu);

    for (int i = 0; i < ARRAY_SIZE(numbers); i++) {
        if (*(uint32_t *)option_value(obj, &numbers[i]) &&
            !check_changed(cpu, &numbers[i], errp)) {
            return false;
        }
    }
    for (int i = 0; i < ARRAY_SIZE(choices); i++) {
        if (*(int *)option_value(obj, &choices[i]) &&
            !check_changed(cpu, &choices[i], errp)) {
            return false;
        }
    }
    for (int i = 0; i < ARRAY_SIZE(switches); i++) {
        if (*(bool *)option_value(obj, &switches[i]) != switches[i].on &&
            !check_changed(cpu, &switches[i], errp)) {
            return false;
        }
    }
    return true;
}

void amd_pmu_add_properties(ObjectClass *oc)
{
    for (int i = 0; i < ARRAY_SIZE(numbers); i++) {
        object_class_property_add(oc, numbers[i].name, "uint32", get_number,
                                  set_number, NULL, (void *)&numbers[i]);
    }
    for (int i = 0; i < ARRAY_SIZE(choices); i++) {
        object_class_property_add(oc, choices[i].name, "str", get_choice,
                                  set_choice, NULL, (void *)&choices[i]);
    }
    for (int i = 0; i < ARRAY_SIZE(switches); i++) {
        ObjectProperty *prop =
            object_class_property_add(oc, switches[i].name, "bool", get_switch,
                                      set_switch, NULL, (void *)&switches[i]);

        object_property_set_default_bool(prop, switches[i].on);
    }
}
