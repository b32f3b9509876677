/* SPDX-License-Identifier: GPL-2.0 */
/* For programs that test; brs.h has what other programs share with them. */
#ifndef BRS_TEST_H
#define BRS_TEST_H

#include <unistd.h>

#include "brs.h"
#include "kselftest_harness.h"

/* An emulated machine takes its time, the more so on a busy host. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 300

/* Skip the test, or all tests of a fixture, on a machine that lacks this */
#define REQUIRE_BRS()							\
do {									\
	if (!brs_present())						\
		SKIP(return, "no BRS on this machine");			\
} while (0)

#define REQUIRE_ROOT()							\
do {									\
	if (geteuid())							\
		SKIP(return, "needs root");				\
} while (0)

#define REQUIRE_CPUS(n)							\
do {									\
	if (sysconf(_SC_NPROCESSORS_ONLN) < (n))			\
		SKIP(return, "needs %d CPUs", (n));			\
} while (0)

/*
 * How often may be sampled, from here to the end of the program, if it runs as
 * root: the default is lowered when interrupts take long, as emulated ones do.
 */
#define BRS_LIMITS(_rate)						\
static struct brs_limits brs_limits;					\
									\
static void __attribute__((constructor)) set_limits(void)		\
{									\
	brs_limits_rate(&brs_limits, _rate);				\
}									\
									\
static void __attribute__((destructor)) restore_limits(void)		\
{									\
	brs_limits_restore(&brs_limits);				\
}

/* For tests that are about something else than throttling */
#define BRS_WITHOUT_LIMITS	BRS_LIMITS("100000000")

#endif /* BRS_TEST_H */
