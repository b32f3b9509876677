/* SPDX-License-Identifier: GPL-2.0 */
/* For programs that test; brs.h has what other programs share with them. */
#ifndef BRS_TEST_H
#define BRS_TEST_H

#include <unistd.h>

#include "brs.h"
#include "kselftest_harness.h"

/* An emulated machine takes its time; a hang is ended by whoever runs this. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 240

#define REQUIRE_BRS()							\
	do {								\
		if (!brs_present())					\
			SKIP(return, "no BRS on this machine");		\
	} while (0)
#define REQUIRE_ROOT()							\
	do {								\
		if (geteuid())						\
			SKIP(return, "needs root");			\
	} while (0)

#endif /* BRS_TEST_H */
