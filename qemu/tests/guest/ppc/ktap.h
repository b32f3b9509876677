/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The little that the programs in this directory need to report in KTAP */
#ifndef KTAP_H
#define KTAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static int ktap_tests, ktap_failures;

static inline void ktap_plan(int tests)
{
    printf("KTAP version 1\n1..%d\n", tests);
}

/* One result, and what was seen if that is not what was wanted */
__attribute__((format(printf, 3, 4)))
static inline void ktap_result(bool ok, const char *name, const char *fmt, ...)
{
    va_list ap;

    if (!ok) {
        printf("# ");
        va_start(ap, fmt);
        vprintf(fmt, ap);
        va_end(ap);
        printf("\n");
        ktap_failures++;
    }
    printf("%sok %d - %s\n", ok ? "" : "not ", ++ktap_tests, name);
    fflush(stdout);
}

#endif
