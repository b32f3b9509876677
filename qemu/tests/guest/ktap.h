/*
 * Results in the Kernel Test Anything Protocol
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef KTAP_H
#define KTAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static int ktap_tests, ktap_failures;

static inline void ktap_start(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("KTAP version 1\n");
}

/* Print a comment line about the next result. */
static inline void __attribute__((format(printf, 1, 2)))
ktap_note(const char *format, ...)
{
    va_list ap;

    printf("# ");
    va_start(ap, format);
    vprintf(format, ap);
    va_end(ap);
    printf("\n");
}

static inline void ktap_result(bool ok, const char *name)
{
    ktap_failures += !ok;
    printf("%sok %d - %s\n", ok ? "" : "not ", ++ktap_tests, name);
}

static inline void ktap_skip_all(const char *why)
{
    printf("1..0 # SKIP %s\n", why);
    exit(4);
}

static inline int ktap_finish(void)
{
    printf("1..%d\n", ktap_tests);
    return ktap_failures ? 1 : 0;
}

#endif
