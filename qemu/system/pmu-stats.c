/*
 * Statistics of emulated performance monitors (PMU), the object pmu-stats
 *
 * A test of a guest's PMU driver wants to know what the PMU really did: how
 * many interrupts it raised, how often a register was read.  A trace event
 * tells of each single interrupt or access.
 * "-object pmu-stats,id=ID,path=FILE" writes the sums, CPU by CPU, to a file
 * when QEMU ends:
 *
 *     {"cpus": [{"cpu": 0, "pmi_raised": 12, ...}, ...]}
 *
 * The PMU model of the CPU decides which counters there are.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/notify.h"
#include "qemu/queue.h"
#include "qobject/json-writer.h"
#include "qom/object.h"
#include "qom/object_interfaces.h"
#include "system/pmu-stats.h"
#include "system/runstate.h"
#include "system/system.h"

OBJECT_DECLARE_SIMPLE_TYPE(PMUStats, PMU_STATS)

struct PMUStats {
    Object parent_obj;

    char *path;
    bool insns;
    bool active;
    Notifier exit;
};

/* The counters of one CPU, from pmu_stats_register() */
typedef struct PMUStatsCPU {
    CPUState *cs;           /* NULL after the CPU has been unplugged */
    int cpu_index;          /* index of an unplugged CPU */
    const char *const *names;
    const uint64_t *values;
    uint64_t *last_values;  /* copy of @values by pmu_stats_take() */
    size_t n;
    void (*refresh)(CPUState *cs);
    QTAILQ_ENTRY(PMUStatsCPU) next;
} PMUStatsCPU;

static QTAILQ_HEAD(, PMUStatsCPU) pmu_stats_cpus =
    QTAILQ_HEAD_INITIALIZER(pmu_stats_cpus);
static unsigned int pmu_stats_insns;

void pmu_stats_register(CPUState *cs, const char *const *names,
                        const uint64_t *values, size_t n)
{
    PMUStatsCPU *c = g_new0(PMUStatsCPU, 1);

    c->cs = cs;
    c->names = names;
    c->values = values;
    c->last_values = g_new(uint64_t, n);
    c->n = n;
    QTAILQ_INSERT_TAIL(&pmu_stats_cpus, c, next);
}

void pmu_stats_set_refresh(CPUState *cs, void (*refresh)(CPUState *cs))
{
    PMUStatsCPU *c;

    QTAILQ_FOREACH(c, &pmu_stats_cpus, next) {
        if (c->cs == cs) {
            c->refresh = refresh;
        }
    }
}

/*
 * Copy the counters of a CPU to last_values.  Call this in the CPU's own
 * thread, or while the CPU does not run.
 */
static void pmu_stats_take(CPUState *cs, run_on_cpu_data data)
{
    PMUStatsCPU *c = data.host_ptr;

    if (c->refresh) {
        c->refresh(cs);
    }
    memcpy(c->last_values, c->values, c->n * sizeof(*c->values));
}

void pmu_stats_unregister(CPUState *cs)
{
    PMUStatsCPU *c;

    QTAILQ_FOREACH(c, &pmu_stats_cpus, next) {
        if (c->cs == cs) {
            pmu_stats_take(cs, RUN_ON_CPU_HOST_PTR(c));
            c->cpu_index = cs->cpu_index;
            c->cs = NULL;
        }
    }
}

bool pmu_stats_want_insns(void)
{
    return pmu_stats_insns != 0;
}

/*
 * Write the output file; later calls do nothing.  While the machine runs, the
 * counters of a CPU are copied by the CPU's own thread, so that they are
 * consistent with each other.  When QEMU ends, the CPUs do not run, or their
 * threads cannot be asked any more, and the counters are copied here.
 */
static void pmu_stats_write(PMUStats *s, bool at_exit)
{
    g_autoptr(JSONWriter) json = NULL;
    g_autoptr(GError) err = NULL;
    const char *text;
    PMUStatsCPU *c;

    if (!s->active) {
        return;
    }
    s->active = false;
    pmu_stats_insns -= s->insns;
    qemu_remove_exit_notifier(&s->exit);

    json = json_writer_new(true);
    json_writer_start_object(json, NULL);
    json_writer_start_array(json, "cpus");
    QTAILQ_FOREACH(c, &pmu_stats_cpus, next) {
        if (c->cs && !at_exit && runstate_is_running()) {
            run_on_cpu(c->cs, pmu_stats_take, RUN_ON_CPU_HOST_PTR(c));
        } else if (c->cs) {
            pmu_stats_take(c->cs, RUN_ON_CPU_HOST_PTR(c));
        }
        json_writer_start_object(json, NULL);
        json_writer_int64(json, "cpu",
                          c->cs ? c->cs->cpu_index : c->cpu_index);
        for (size_t i = 0; i < c->n; i++) {
            json_writer_uint64(json, c->names[i], c->last_values[i]);
        }
        json_writer_end_object(json);
    }
    json_writer_end_array(json);
    json_writer_end_object(json);

    text = json_writer_get(json);
    if (!g_file_set_contents(s->path, text, -1, &err)) {
        error_report("pmu-stats: %s", err->message);
    }
}

static void pmu_stats_exit(Notifier *n, void *data)
{
    pmu_stats_write(container_of(n, PMUStats, exit), true);
}

static void pmu_stats_complete(UserCreatable *uc, Error **errp)
{
    PMUStats *s = PMU_STATS(uc);
    g_autoptr(GError) err = NULL;

    if (!s->path) {
        error_setg(errp, "Parameter 'path' is required");
        return;
    }

    /* Create the file now, to reject a path that cannot be written. */
    if (!g_file_set_contents(s->path, "", 0, &err)) {
        error_setg(errp, "%s", err->message);
        return;
    }

    s->active = true;
    pmu_stats_insns += s->insns;
    s->exit.notify = pmu_stats_exit;
    qemu_add_exit_notifier(&s->exit);
}

static char *pmu_stats_get_path(Object *obj, Error **errp)
{
    return g_strdup(PMU_STATS(obj)->path);
}

static void pmu_stats_set_path(Object *obj, const char *value, Error **errp)
{
    PMUStats *s = PMU_STATS(obj);

    if (s->active) {
        error_setg(errp, "Property 'path' can not be changed after creation");
        return;
    }
    g_free(s->path);
    s->path = g_strdup(value);
}

static bool pmu_stats_get_insns(Object *obj, Error **errp)
{
    return PMU_STATS(obj)->insns;
}

static void pmu_stats_set_insns(Object *obj, bool value, Error **errp)
{
    PMUStats *s = PMU_STATS(obj);

    if (s->active) {
        error_setg(errp, "Property 'insns' can not be changed after creation");
        return;
    }
    s->insns = value;
}

static void pmu_stats_finalize(Object *obj)
{
    PMUStats *s = PMU_STATS(obj);

    pmu_stats_write(s, false);
    g_free(s->path);
}

static void pmu_stats_class_init(ObjectClass *oc, const void *data)
{
    USER_CREATABLE_CLASS(oc)->complete = pmu_stats_complete;

    object_class_property_add_str(oc, "path", pmu_stats_get_path,
                                  pmu_stats_set_path);
    object_class_property_set_description(oc, "path",
        "File that gets the counters, as JSON, when QEMU ends");
    object_class_property_add_bool(oc, "insns", pmu_stats_get_insns,
                                   pmu_stats_set_insns);
    object_class_property_set_description(oc, "insns",
        "Count executed instructions, too, which slows the guest down");
}

static const TypeInfo pmu_stats_info = {
    .name = TYPE_PMU_STATS,
    .parent = TYPE_OBJECT,
    .instance_size = sizeof(PMUStats),
    .instance_finalize = pmu_stats_finalize,
    .class_init = pmu_stats_class_init,
    .interfaces = (const InterfaceInfo[]) {
        { TYPE_USER_CREATABLE },
        { }
    }
};

static void pmu_stats_register_types(void)
{
    type_register_static(&pmu_stats_info);
}

type_init(pmu_stats_register_types);
