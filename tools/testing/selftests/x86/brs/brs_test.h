/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Macros for the test programs of AMD Branch Sampling (BRS).  Programs that only
 * create load for a test include brs.h alone.
 */
#ifndef BRS_TEST_H
#define BRS_TEST_H

#include <unistd.h>

#include "brs.h"
#include "kselftest_harness.h"

/* Timeout of a test in seconds: an emulated machine is slow, above all on a busy host. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 300

/*
 * REQUIRE_*() skip the test that uses them, or in FIXTURE_SETUP() all tests of
 * the fixture, on a machine without BRS, without root, or with too few CPUs.
 */
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
 * Set the highest rate of samples while the test program runs, if it runs as
 * root, and let the kernel keep that rate.  By default, the kernel lowers the rate
 * when PMU interrupts take long, as they do on an emulated machine.
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

/* Set a rate of samples so high that the kernel throttles no event. */
#define BRS_WITHOUT_LIMITS	BRS_LIMITS("100000000")

#endif /* BRS_TEST_H */
