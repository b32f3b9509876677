/* SPDX-License-Identifier: GPL-2.0 */
/*
 * perf_idle_thunk() calls perf_idle() and preserves all registers, for callers
 * such as MWAIT that have their operands in registers, see <asm/perf_idle.h>.
 */
#include <linux/export.h>
#include <linux/linkage.h>
#include <asm/asm.h>
#include "calling.h"

.section .noinstr.text, "ax"

THUNK perf_idle_thunk, perf_idle
EXPORT_SYMBOL_GPL(perf_idle_thunk)
