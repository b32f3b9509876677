// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Test that the EBB bit of AT_HWCAP2 agrees with the PMU driver: event-based
 * branches (EBB) work with the bit, and EBB events are rejected without the bit.
 */
#include "kselftest_harness.h"
#include "ebb_test.h"

static void log_pmu(struct __test_metadata *_metadata)
{
	char name[64];

	if (read_file("/sys/bus/event_source/devices/cpu/caps/pmu_name", name, sizeof(name)))
		TH_LOG("PMU driver: %s", name);
}

TEST(e17_hwcap2_bit_is_there_only_if_ebbs_are)
{
	int fd;

	log_pmu(_metadata);
	catch_ill();
	if (!ebb_available()) {
		/*
		 * Check that without the EBB bit in AT_HWCAP2, no EBB event can
		 * be opened.
		 */
		fd = ebb_open(event_on(1), 0, -1);
		EXPECT_LT(fd, 0);
		return;
	}
	fd = begin(1);
	ASSERT_GE(fd, 0)
		TH_LOG("AT_HWCAP2 promises EBB, but opening an EBB event fails: %s",
		       strerror(errno));
	EXPECT_TRUE(work_until(10));
	ebb_disable();
	close(fd);
}

/*
 * Report the MMCR3 that the first EBB event of this second task finds, which must
 * not be the MMCR3 of the first task. Then write a value of the second task.
 */
static int use_mmcr3(struct parent *parent, void *arg)
{
	unsigned long *found = arg;

	if (parent_tell(parent) || parent_wait(parent))
		return 2;
	if (begin(1) < 0)
		return 3;
	*found = ebb_mfspr(EBB_SPR_MMCR3);
	ebb_mtspr(EBB_SPR_MMCR3, 0x5555555555555555ul);
	return 0;
}

/* Check that a kernel which offers EBB on ISA v3.1 switches MMCR3 between tasks. */
TEST(e17_promise_includes_what_v31_adds)
{
	unsigned long fresh, mine, *found;
	struct child child;
	int fd;

	log_pmu(_metadata);
	catch_ill();
	if (!ebb_available())
		return;		/* no EBB bit in AT_HWCAP2: there is nothing to test */
	if (!cpu_is_v31())
		SKIP(return, "needs ISA v3.1");
	found = shared_memory(sizeof(*found));
	ASSERT_NE(NULL, found);
	ASSERT_EQ(0, bind_to(nth_cpu(0)));
	ASSERT_EQ(0, child_start(&child, use_mmcr3, found));
	ASSERT_EQ(0, child_heard(&child));
	fd = begin(1);
	ASSERT_GE(fd, 0);
	fresh = ebb_mfspr(EBB_SPR_MMCR3);
	ebb_mtspr(EBB_SPR_MMCR3, 0x3333333333333333ul);
	mine = ebb_mfspr(EBB_SPR_MMCR3);
	ASSERT_NE(fresh, mine);
	ASSERT_EQ(0, child_go(&child));
	EXPECT_EQ(0, child_end(&child));
	EXPECT_EQ(fresh, *found);
	EXPECT_EQ(mine, ebb_mfspr(EBB_SPR_MMCR3));
	ebb_disable();
	close(fd);
}

/*
 * Read the sysfs file of the event code's field @part, which lists the bits of
 * the field, into @bits; return false if there is no file
 */
static bool read_format(const char *part, char *bits, int size)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/cpu/format/%s", part);
	f = fopen(path, "r");
	if (!f)
		return false;
	if (!fgets(bits, size, f))
		bits[0] = '\0';
	fclose(f);
	bits[strcspn(bits, "\n")] = '\0';
	return true;
}

TEST(e29_format_names_the_bits_of_ebb)
{
	static const struct {
		const char *part;
		const char *bits;
	} parts[] = {
		{ "ebb", "config:63" },
		{ "bhrb", "config:62" },
		{ "bhrb_filter", "config:60-61" },
		{ "pmc", "config:16-19" },
	};
	char bits[64];
	size_t i;

	if (!ebb_available())
		SKIP(return, "no event-based branches on this machine");
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		ASSERT_TRUE(read_format(parts[i].part, bits, sizeof(bits)))
			TH_LOG("format/ has no %s", parts[i].part);
		EXPECT_STREQ(parts[i].bits, bits);
	}
}

TEST(e29_format_offers_no_ebb_that_is_not_there)
{
	char bits[64];

	if (ebb_available())
		SKIP(return, "this machine has event-based branches");
	EXPECT_FALSE(read_format("ebb", bits, sizeof(bits)));
	EXPECT_FALSE(read_format("bhrb", bits, sizeof(bits)));
	EXPECT_FALSE(read_format("bhrb_filter", bits, sizeof(bits)));
}

TEST_HARNESS_MAIN
