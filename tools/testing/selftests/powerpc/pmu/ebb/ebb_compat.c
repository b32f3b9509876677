// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tests for each element of the EBB interface that programs can rely on. The
 * results are the same on every kernel that supports EBB.
 */
#include "kselftest_harness.h"
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include "ebb_test.h"

#ifndef PPC_FEATURE2_HTM
#define PPC_FEATURE2_HTM	0x40000000
#endif

/* Variables for the test that a program can read and clear the BHRB in its EBB handler */
static unsigned long bhrb[EBB_BHRB_ENTRIES];
static unsigned long bhrb_turns;
static unsigned long bhrb_of_work;
static unsigned long bhrb_left;

static void clear_bhrb(void)
{
	asm volatile(".machine push; .machine power8\n"
		     "	clrbhrb\n"
		     "	.machine pop\n" : : : "memory");
}

/* Read and clear the BHRB, which does not record the handler: MMCR0[PMAE] is clear. */
static void use_bhrb(struct ebb_regs *regs)
{
	int i;

	(void)regs;
	ebb_read_bhrb(bhrb);
	bhrb_turns++;
	if ((bhrb[0] & ~3ul) - code_address(work) < 64)
		bhrb_of_work++;
	clear_bhrb();
	ebb_read_bhrb(bhrb);
	for (i = 0; i < EBB_BHRB_ENTRIES; i++)
		bhrb_left += !!bhrb[i];
}

FIXTURE(bhrb)
{
};

FIXTURE_VARIANT(bhrb)
{
	unsigned long bits;
	bool records;
};

/* Before ISA v3.1, the BHRB records branches even without bit 62 in the code. */
FIXTURE_VARIANT_ADD(bhrb, not_asked_for) { .bits = 0 };
FIXTURE_VARIANT_ADD(bhrb, all_branches) {
	.bits = EBB_EVENT_BHRB | EBB_EVENT_IFM(0), .records = true
};

FIXTURE_VARIANT_ADD(bhrb, calls) { .bits = EBB_EVENT_BHRB | EBB_EVENT_IFM(1) };
FIXTURE_VARIANT_ADD(bhrb, indirect_branches) {
	.bits = EBB_EVENT_BHRB | EBB_EVENT_IFM(2)
};

FIXTURE_VARIANT_ADD(bhrb, conditional_branches) {
	.bits = EBB_EVENT_BHRB | EBB_EVENT_IFM(3), .records = true
};

FIXTURE_SETUP(bhrb)
{
	REQUIRE_EBB();
}

FIXTURE_TEARDOWN(bhrb)
{
}

TEST_F(bhrb, e28_buffer_is_read_and_cleared_in_the_handler)
{
	bool records = variant->records || (!variant->bits && !cpu_is_v31());
	int fd;

	fd = ebb_open(event_on(1) | variant->bits, 0, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, ebb_start(fd));
	arm_with_hook(1u << 1, PERIOD, use_bhrb);
	work(50 * PERIOD);
	ebb_disable();
	EXPECT_LE(at_least(90), bhrb_turns);
	EXPECT_EQ(0, tally.ill);
	EXPECT_EQ(0, bhrb_left);
	if (records) {
		EXPECT_LE(bhrb_turns - 2, bhrb_of_work);
	} else if (variant->bits) {
		EXPECT_EQ(0, bhrb_of_work);
	}
	close(fd);
}

TEST_F(bhrb, e28_buffer_is_read_and_cleared_in_the_program)
{
	int fd;

	fd = ebb_open(event_on(1) | variant->bits, 0, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, ebb_start(fd));
	work(1000);
	ebb_mtspr(EBB_SPR_MMCR0, EBB_MMCR0_FC);
	ebb_read_bhrb(bhrb);
	clear_bhrb();
	EXPECT_EQ(0, tally.ill);
	ebb_read_bhrb(bhrb);
	EXPECT_EQ(0, bhrb[0] | bhrb[1] | bhrb[EBB_BHRB_ENTRIES - 1]);
	close(fd);
}

/* Groups of one to six events; each group has its leader on another PMC than the other groups */
FIXTURE(group)
{
};

FIXTURE_VARIANT(group)
{
	int pmcs[MAX_PMC + 1];	/* the group's PMCs, the leader's PMC first; 0 ends the list */
};

FIXTURE_VARIANT_ADD(group, of_1) { .pmcs = { 1 } };
FIXTURE_VARIANT_ADD(group, of_2) { .pmcs = { 1, 2 } };
FIXTURE_VARIANT_ADD(group, of_3) { .pmcs = { 1, 2, 3 } };
FIXTURE_VARIANT_ADD(group, of_4) { .pmcs = { 1, 2, 3, 4 } };
FIXTURE_VARIANT_ADD(group, of_5) { .pmcs = { 1, 2, 3, 4, 5 } };
FIXTURE_VARIANT_ADD(group, of_6) { .pmcs = { 1, 2, 3, 4, 5, 6 } };
FIXTURE_VARIANT_ADD(group, of_6_backwards) { .pmcs = { 6, 5, 4, 3, 2, 1 } };
FIXTURE_VARIANT_ADD(group, of_5_alone) { .pmcs = { 5 } };
FIXTURE_VARIANT_ADD(group, of_6_alone) { .pmcs = { 6 } };
FIXTURE_VARIANT_ADD(group, of_5_and_6) { .pmcs = { 5, 6 } };
FIXTURE_VARIANT_ADD(group, of_6_and_1) { .pmcs = { 6, 1 } };

FIXTURE_SETUP(group)
{
	REQUIRE_EBB();
}

FIXTURE_TEARDOWN(group)
{
}

TEST_F(group, e28_each_counter_makes_ebbs)
{
	uint64_t values[2 + 2 * MAX_PMC];
	int fds[MAX_PMC], i, n;
	unsigned int pmcs = 0;

	for (n = 0; variant->pmcs[n]; n++) {
		struct perf_event_attr attr;

		ebb_attr(&attr, event_on(variant->pmcs[n]));
		attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
		attr.disabled = !n;
		attr.pinned = !n;
		attr.exclusive = !n;
		fds[n] = perf_open(&attr, 0, -1, n ? fds[0] : -1);
		ASSERT_GE(fds[n], 0) TH_LOG("PMC%d", variant->pmcs[n]);
		pmcs |= 1u << variant->pmcs[n];
	}
	ASSERT_EQ(0, ioctl(fds[0], PERF_EVENT_IOC_ENABLE, 0));
	/* Check the number of events, then the value and the ID of each event */
	ASSERT_EQ((1 + 2 * n) * sizeof(uint64_t), read(fds[0], values, sizeof(values)));
	EXPECT_EQ(n, values[0]);
	arm(pmcs, PERIOD);
	work(20 * PERIOD);
	for (i = 0; i < n; i++) {
		EXPECT_LE(10, tally.overflows[variant->pmcs[i]])
			TH_LOG("PMC%d", variant->pmcs[i]);
	}
	EXPECT_EQ(0, tally.spurious);
	EXPECT_EQ(0, tally.ill);

	/* Let one PMC at a time overflow, with the other PMCs far from overflow. */
	for (i = 0; i < n; i++) {
		ebb_disable();
		ebb_mtspr(EBB_SPR_MMCR0, EBB_MMCR0_FC);
		arm(pmcs, 0x40000000);
		ebb_set_period(variant->pmcs[i], PERIOD);
		work(PERIOD);
		EXPECT_EQ(1, tally.count) TH_LOG("PMC%d", variant->pmcs[i]);
		EXPECT_EQ(1, tally.overflows[variant->pmcs[i]]);
	}
	ebb_disable();
	while (n--)
		close(fds[n]);
}

/* Events that exclude user mode, the kernel, the hypervisor or the idle task */
FIXTURE(exclude)
{
	int fd;
};

FIXTURE_VARIANT(exclude)
{
	bool user;
	bool kernel;
	bool hv;
	bool idle;
};

FIXTURE_VARIANT_ADD(exclude, nothing) { .user = false };
FIXTURE_VARIANT_ADD(exclude, user) { .user = true };
FIXTURE_VARIANT_ADD(exclude, kernel) { .kernel = true };
FIXTURE_VARIANT_ADD(exclude, hv) { .hv = true };
FIXTURE_VARIANT_ADD(exclude, idle) { .idle = true };
FIXTURE_VARIANT_ADD(exclude, user_and_hv) { .user = true, .hv = true };
FIXTURE_VARIANT_ADD(exclude, kernel_and_hv) { .kernel = true, .hv = true };
FIXTURE_VARIANT_ADD(exclude, user_and_kernel) { .user = true, .kernel = true };
FIXTURE_VARIANT_ADD(exclude, everything) {
	.user = true, .kernel = true, .hv = true, .idle = true
};

FIXTURE_SETUP(exclude)
{
	struct perf_event_attr attr;

	REQUIRE_EBB();
	ebb_attr(&attr, event_on(1));
	attr.exclude_user = variant->user;
	attr.exclude_kernel = variant->kernel;
	attr.exclude_hv = variant->hv;
	attr.exclude_idle = variant->idle;
	self->fd = perf_open(&attr, 0, -1, -1);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, ebb_start(self->fd));
}

FIXTURE_TEARDOWN(exclude)
{
	close(self->fd);
}

static void call_the_kernel(int n)
{
	while (n--)
		syscall(SYS_getppid);
}

TEST_F(exclude, e28_counts_what_is_not_excluded)
{
	unsigned long before, worked, called;

	ebb_write_pmc(1, 0);
	before = ebb_read_pmc(1);
	call_the_kernel(1000);
	called = ebb_read_pmc(1) - before;
	before = ebb_read_pmc(1);
	work(1000000);
	worked = ebb_read_pmc(1) - before;
	if (variant->user) {
		/*
		 * The event can count the kernel's interrupts, but must not
		 * count work().
		 */
		EXPECT_GT(1000000, worked);
	} else {
		EXPECT_LE(2000000, worked);
	}
	if (variant->kernel && variant->user) {
		EXPECT_EQ(0, called);
		EXPECT_EQ(0, worked);
	} else if (variant->kernel) {
		EXPECT_GT(100000, called);
	} else {
		EXPECT_LE(100000, called);
	}
}

/*
 * Return the greatest of some counts of @pmc while the task calls the kernel and its
 * event on the PMC @event_pmc excludes the kernel. A task switch clears a counter
 * that has no event. Return -1 if there is no such event.
 */
static long count_in_calls(int event_pmc, int pmc)
{
	struct perf_event_attr attr;
	long count, most = -1;
	int i, fd;

	ebb_attr(&attr, event_on(event_pmc));
	attr.exclude_kernel = 1;
	attr.exclude_hv = 1;
	fd = perf_open(&attr, 0, -1, -1);
	if (fd < 0)
		return -1;
	for (i = 0; i < 5 && !ebb_start(fd); i++) {
		ebb_write_pmc(pmc, 0);
		call_the_kernel(1000);
		count = ebb_read_pmc(pmc);
		if (count > most)
			most = count;
	}
	close(fd);
	return most;
}

static void count_beside(struct __test_metadata *_metadata, int event_pmc, int pmc)
{
	long own, beside;

	REQUIRE_EBB();
	own = count_in_calls(pmc, pmc);
	ASSERT_LE(0, own);
	beside = count_in_calls(event_pmc, pmc);
	ASSERT_LE(0, beside);
	TH_LOG("PMC%d: %ld with an event of its own, %ld beside PMC%d", pmc, own, beside,
	       event_pmc);
	EXPECT_LE(beside, 2 * own + 1000);
}

TEST(e32_pmc5_excludes_what_the_event_of_pmc6_excludes)
{
	count_beside(_metadata, 6, 5);
}

TEST(e32_pmc6_excludes_what_the_event_of_pmc5_excludes)
{
	count_beside(_metadata, 5, 6);
}

TEST_F(exclude, e28_ebbs_come_from_what_is_not_excluded)
{
	int i;

	arm(1u << 1, PERIOD);
	for (i = 0; i < 100; i++) {
		call_the_kernel(100);
		work(PERIOD);
	}
	ebb_disable();
	EXPECT_EQ(tally.count, tally.overflows[1]);
	EXPECT_EQ(0, tally.ill);
	if (variant->user && variant->kernel) {
		EXPECT_EQ(0, tally.count);
	} else {
		EXPECT_LE(at_least(50), tally.count);
	}
}

/* Enable EBBs before the event is opened. */
TEST(e28_handler_is_set_up_before_the_event)
{
	int fd;

	REQUIRE_EBB();
	memset(&tally, 0, sizeof(tally));
	tally.pmcs = 1u << 1;
	tally.period = PERIOD;
	ebb_enable(tally_handler);
	ebb_mtspr(EBB_SPR_BESCRS, EBB_BESCR_PME);
	fd = ebb_open(event_on(1), 0, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, ebb_start(fd));
	ebb_set_period(1, PERIOD);
	EXPECT_TRUE(work_until(10));
	EXPECT_EQ(0, tally.spurious);
	ebb_disable();
	close(fd);
}

/* Re-arm by one write to MMCR0, which changes only FC, PMAE and PMAO, and then BESCR. */
static void rearm_by_parts(struct ebb_regs *regs)
{
	unsigned long mmcr0;

	(void)regs;
	tally.count++;
	ebb_set_period(1, PERIOD);
	mmcr0 = ebb_mfspr(EBB_SPR_MMCR0);
	mmcr0 &= ~(EBB_MMCR0_PMAO | EBB_MMCR0_FC);
	ebb_mtspr(EBB_SPR_MMCR0, mmcr0 | EBB_MMCR0_PMAE);
	ebb_mtspr(EBB_SPR_BESCRR, EBB_BESCR_PMEO);
	ebb_mtspr(EBB_SPR_BESCRS, EBB_BESCR_PME);
}

TEST(e28_rearmed_in_another_order)
{
	unsigned long least = 100 * PERIOD / PERIOD * 2;
	int fd;

	REQUIRE_EBB();
	fd = begin(1);
	ASSERT_GE(fd, 0);
	tally.count = 0;
	ebb_handler = rearm_by_parts;
	work(100 * PERIOD);
	ebb_disable();
	EXPECT_LE(at_least(least), tally.count);
	EXPECT_GE(least + least / 10 + 2, tally.count);
	EXPECT_EQ(0, tally.ill);
	close(fd);
}

TEST(e28_event_is_reset_and_its_page_mapped)
{
	struct perf_event_mmap_page *page;
	int fd;

	REQUIRE_EBB();
	fd = begin(1);
	ASSERT_GE(fd, 0);
	page = mmap(NULL, getpagesize(), PROT_READ, MAP_SHARED, fd, 0);
	EXPECT_NE(MAP_FAILED, page);
	EXPECT_TRUE(work_until(5));
	EXPECT_EQ(0, ioctl(fd, PERF_EVENT_IOC_RESET, 0));
	tally.count = 0;
	EXPECT_TRUE(work_until(5));
	EXPECT_EQ(0, tally.spurious);
	ebb_disable();
	close(fd);
}

static int fd_of_handler;

static void close_event(struct ebb_regs *regs)
{
	(void)regs;
	close(fd_of_handler);
}

TEST(e28_event_is_closed_in_the_handler)
{
	REQUIRE_EBB();
	fd_of_handler = begin(1);
	ASSERT_GE(fd_of_handler, 0);
	tally.hook = close_event;
	work(50 * PERIOD);
	asm volatile("" : : : "memory");
	EXPECT_EQ(1, tally.count);
	EXPECT_FALSE(pmc_writable());
	ebb_disable();
}

/* Variables for tests of signals in the EBB handler, and of EBBs in signal handlers */
static unsigned long signals[2];
static unsigned long nested;
static unsigned long enough_for_one;
static bool inner;

static void take_an_ebb_inside(int sig)
{
	unsigned long ebbrr = ebb_mfspr(EBB_SPR_EBBRR);
	unsigned long count = tally.count;
	int error = errno;

	(void)sig;
	signals[1]++;
	/* Take an inner EBB, which overwrites EBBRR: the end of this function restores EBBRR. */
	inner = true;
	ebb_set_period(1, PERIOD / 10);
	ebb_rearm();
	ebb_mtspr(EBB_SPR_BESCRS, EBB_BESCR_GE);
	work(enough_for_one);
	asm volatile("" : : : "memory");
	nested += tally.count - count;
	ebb_mtspr(EBB_SPR_BESCRR, EBB_BESCR_GE);
	ebb_mtspr(EBB_SPR_MMCR0, EBB_MMCR0_FC);
	inner = false;
	ebb_mtspr(EBB_SPR_EBBRR, ebbrr);
	ebb_set_period(1, PERIOD);
	errno = error;
}

static void raise_the_second(int sig)
{
	(void)sig;
	signals[0]++;
	raise(SIGUSR2);
}

static void raise_the_first(struct ebb_regs *regs)
{
	(void)regs;
	/* Raise no signal in the inner EBB, so that the nesting ends. */
	if (inner) {
		ebb_set_period(1, 0x40000000);
		return;
	}
	raise(SIGUSR1);
}

TEST(e28_signals_and_ebbs_nest)
{
	int fd;

	REQUIRE_EBB();
	signal(SIGUSR1, raise_the_second);
	signal(SIGUSR2, take_an_ebb_inside);
	fd = ebb_open(event_on(1), 0, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, ebb_start(fd));
	enough_for_one = PERIOD / 10 + lateness();
	arm_with_hook(1u << 1, PERIOD, raise_the_first);
	EXPECT_TRUE(work_until(200));
	ebb_disable();
	EXPECT_EQ(signals[0], signals[1]);
	EXPECT_EQ(signals[0], nested);
	EXPECT_EQ(tally.count, signals[0] + nested);
	EXPECT_EQ(0, tally.ill);
	close(fd);
}

static void count_on_other_stack(int sig)
{
	(void)sig;
	signals[0]++;
	work(PERIOD);
}

static void raise_only(struct ebb_regs *regs)
{
	(void)regs;
	raise(SIGUSR1);
}

TEST(e28_signal_in_the_handler_on_another_stack)
{
	struct sigaction action = {
		.sa_handler = count_on_other_stack,
		.sa_flags = SA_ONSTACK,
	};
	static char memory[65536];
	stack_t stack = { .ss_sp = memory, .ss_size = sizeof(memory) };
	int fd;

	REQUIRE_EBB();
	ASSERT_EQ(0, sigaltstack(&stack, NULL));
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	fd = ebb_open(event_on(1), 0, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, ebb_start(fd));
	arm_with_hook(1u << 1, PERIOD, raise_only);
	EXPECT_TRUE(work_until(100));
	ebb_disable();
	EXPECT_EQ(tally.count, signals[0]);
	EXPECT_EQ(0, tally.spurious);
	close(fd);
}

static sigjmp_buf way_out;

static void leave_by_jump(int sig)
{
	(void)sig;
	signals[0]++;
	siglongjmp(way_out, 1);
}

TEST(e28_signal_jumps_out_of_the_handler)
{
	volatile int turn;
	int fd;

	REQUIRE_EBB();
	signal(SIGUSR1, leave_by_jump);
	fd = ebb_open(event_on(1), 0, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, ebb_start(fd));
	for (turn = 0; turn < 50; turn++) {
		if (!sigsetjmp(way_out, 1)) {
			arm_with_hook(1u << 1, PERIOD, raise_only);
			work(PERIOD);
		}
		/* BESCR[GE] is clear, because the handler did not return with rfebb. */
		EXPECT_EQ(0, ebb_mfspr(EBB_SPR_BESCR) & EBB_BESCR_GE);
	}
	EXPECT_EQ(50, signals[0]);
	ebb_disable();
	close(fd);
}

TEST(e28_transactions_beside_ebbs)
{
	unsigned long done = 0, failed = 0;
	int fd, i;

	REQUIRE_EBB();
	if (!(getauxval(AT_HWCAP2) & PPC_FEATURE2_HTM))
		SKIP(return, "no transactional memory on this machine");
	fd = begin(1);
	ASSERT_GE(fd, 0);
	for (i = 0; i < 10000; i++) {
		unsigned long ok;

		/* Run a transaction: it fails if an EBB comes during the transaction. */
		asm volatile(".machine push; .machine power8\n"
			     "	li %0,0\n"
			     "	tbegin.\n"
			     "	beq 1f\n"
			     "	.rept 50\n"
			     "	nop\n"
			     "	.endr\n"
			     "	li %0,1\n"
			     "	tend.\n"
			     "1:	.machine pop\n"
			     : "=&r" (ok) : : "cr0", "memory");
		done += ok;
		failed += !ok;
	}
	work(20 * PERIOD);
	ebb_disable();
	EXPECT_LT(0, done);
	EXPECT_LE(40, tally.count);
	EXPECT_EQ(0, tally.spurious);
	EXPECT_EQ(0, tally.ill);
	TH_LOG("%lu transactions done, %lu failed, %lu EBBs", done, failed, tally.count);
	close(fd);
}

/* Registers that the EBB handler reads just before it causes a core dump */
struct seen {
	struct user_state state;
	bool dumped;
};

static struct seen *seen;

static void crash(struct ebb_regs *regs)
{
	(void)regs;
	read_state(&seen->state);
	seen->dumped = true;
	raise(SIGABRT);
}

static int crash_in_the_handler(struct parent *parent, void *arg)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	(void)parent;
	seen = arg;
	if (setrlimit(RLIMIT_CORE, &limit))
		return 1;
	signal(SIGABRT, SIG_DFL);
	if (begin(1) < 0)
		return 2;
	tally.hook = crash;
	work(10 * PERIOD);
	return 3;
}

/* Read up to @size bytes of a note in the core file. Return the number of bytes, or -1. */
static int read_note(int fd, unsigned int type, void *data, size_t size)
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	off_t at, end;
	int i;

	if (pread(fd, &header, sizeof(header), 0) != sizeof(header) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_type != ET_CORE)
		return -1;
	for (i = 0; i < header.e_phnum; i++) {
		at = header.e_phoff + i * sizeof(segment);
		if (pread(fd, &segment, sizeof(segment), at) != sizeof(segment))
			return -1;
		if (segment.p_type != PT_NOTE)
			continue;
		at = segment.p_offset;
		for (end = at + segment.p_filesz; at < end;) {
			Elf64_Nhdr note;

			if (pread(fd, &note, sizeof(note), at) != sizeof(note))
				return -1;
			at += sizeof(note) + ((note.n_namesz + 3) & ~3u);
			if (note.n_type == type) {
				if (size > note.n_descsz)
					size = note.n_descsz;
				return pread(fd, data, size, at);
			}
			at += (note.n_descsz + 3) & ~3u;
		}
	}
	return -1;
}

#define CORE_PATTERN	"/proc/sys/kernel/core_pattern"

FIXTURE(core)
{
	struct seen *seen;
	int fd;
};

FIXTURE_SETUP(core)
{
	struct child child;
	char path[64], old[256];
	int started, end = -1;

	self->fd = -1;
	REQUIRE_EBB();
	if (getuid())
		SKIP(return, "needs root");
	self->seen = shared_memory(sizeof(*self->seen));
	ASSERT_NE(NULL, self->seen);
	ASSERT_TRUE(read_file(CORE_PATTERN, old, sizeof(old)));
	ASSERT_TRUE(write_file(CORE_PATTERN, "/tmp/ebb-core-%p"));
	started = child_start(&child, crash_in_the_handler, self->seen);
	if (!started)
		end = child_end(&child);
	/* restore the pattern before an assertion can end the test */
	write_file(CORE_PATTERN, old);
	ASSERT_EQ(0, started);
	snprintf(path, sizeof(path), "/tmp/ebb-core-%d", child.pid);
	ASSERT_EQ(128 + SIGABRT, end);
	ASSERT_TRUE(self->seen->dumped);
	self->fd = open(path, O_RDONLY);
	ASSERT_GE(self->fd, 0);
	unlink(path);
}

FIXTURE_TEARDOWN(core)
{
	if (self->fd >= 0)
		close(self->fd);
}

TEST_F(core, e28_dump_in_the_handler_has_the_register_sets)
{
	unsigned long set[5];

	EXPECT_EQ(3 * sizeof(long), read_note(self->fd, NT_PPC_EBB, set, sizeof(set)));
	EXPECT_EQ(5 * sizeof(long), read_note(self->fd, NT_PPC_PMU, set, sizeof(set)));
}

TEST_F(core, e14_dump_in_the_handler_has_the_ebb_registers)
{
	const struct user_state *state = &self->seen->state;
	unsigned long set[3];

	ASSERT_EQ(sizeof(set), read_note(self->fd, NT_PPC_EBB, set, sizeof(set)));
	EXPECT_EQ(state->ebbrr, set[0]);
	EXPECT_EQ(state->ebbhr, set[1]);
	EXPECT_EQ(state->bescr, set[2]);
}

TEST_F(core, e14_dump_in_the_handler_has_the_pmu_registers)
{
	const struct user_state *state = &self->seen->state;
	unsigned long set[5];

	ASSERT_EQ(sizeof(set), read_note(self->fd, NT_PPC_PMU, set, sizeof(set)));
	EXPECT_EQ(state->siar, set[0]);
	EXPECT_EQ(state->sdar, set[1]);
	EXPECT_EQ(state->sier, set[2] & SIER_USER);
	EXPECT_EQ(state->mmcr2, set[3] & MMCR2_USER);
	EXPECT_EQ(state->mmcr0, set[4] & EBB_MMCR0_USER);
}

TEST_HARNESS_MAIN
