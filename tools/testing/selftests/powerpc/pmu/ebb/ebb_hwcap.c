// SPDX-License-Identifier: GPL-2.0-or-later
/* What AT_HWCAP2 says about event based branches is so, whatever the PMU. */
#include "kselftest_harness.h"
#include "ebb_test.h"

static void log_pmu(struct __test_metadata *_metadata)
{
	FILE *f = fopen("/sys/bus/event_source/devices/cpu/caps/pmu_name", "r");
	char name[64];

	if (!f)
		return;
	if (fgets(name, sizeof(name), f))
		TH_LOG("PMU driver: %s", name);
	fclose(f);
}

TEST(e17_hwcap2_bit_is_there_only_if_ebbs_are)
{
	int fd;

	log_pmu(_metadata);
	catch_ill();
	if (!ebb_available()) {
		/* Nothing promised, nothing to be had. */
		fd = ebb_open(event_on(1), 0, -1);
		EXPECT_LT(fd, 0);
		return;
	}
	fd = begin(1);
	ASSERT_GE(fd, 0)
		TH_LOG("promised, but opening an EBB event says %s",
		       strerror(errno));
	EXPECT_TRUE(work_until(10));
	ebb_disable();
	close(fd);
}

TEST_HARNESS_MAIN
