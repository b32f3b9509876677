// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tests that a new program after exec sees no EBB state of the old program. The
 * tests execute this program again: with --report, it writes the state that it
 * sees to a pipe.
 */
#include "kselftest_harness.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include "ebb_test.h"

enum what {
	REGISTERS,	/* report BESCR, EBBHR, EBBRR */
	PMU_STATE,	/* open an EBB event and report the PMU's registers */
	DELIVERY,	/* report EBBs that come although the new program has opened no event */
	NOTHING,
};

struct report {
	struct user_state state;
	unsigned long ebbs;
	unsigned long work_done;
	bool writable;
	uid_t euid;
};

/* Make a report in the new program and write it to @out. */
static int report_what(int out, enum what what)
{
	struct report report;
	int fd;

	memset(&report, 0, sizeof(report));
	report.euid = geteuid();
	catch_ill();
	switch (what) {
	case REGISTERS:
		report.state.bescr = ebb_mfspr(EBB_SPR_BESCR);
		report.state.ebbhr = ebb_mfspr(EBB_SPR_EBBHR);
		report.state.ebbrr = ebb_mfspr(EBB_SPR_EBBRR);
		break;
	case PMU_STATE:
		fd = ebb_open(event_on(1), 0, -1);
		if (fd < 0 || ebb_start(fd))
			return 1;
		read_state(&report.state);
		break;
	case DELIVERY:
		/* Count the EBBs that the old program's event causes in this program, if any. */
		tally.pmcs = 1u << 1;
		tally.period = PERIOD;
		ebb_handler = tally_handler;
		work(200 * PERIOD);
		asm volatile("" : : : "memory");
		report.ebbs = tally.count;
		report.work_done = 200 * PERIOD;
		report.writable = pmc_writable();
		break;
	case NOTHING:
		break;
	}
	return write(out, &report, sizeof(report)) != sizeof(report);
}

static void execute(const char *path, int out, enum what what)
{
	char number[2][12];
	char *argv[] = { "ebb_exec", "--report", number[0], number[1], NULL };

	snprintf(number[0], sizeof(number[0]), "%d", out);
	snprintf(number[1], sizeof(number[1]), "%d", what);
	execv(path, argv);
}

/*
 * Open an event and take EBBs in the old program. If @fresh is not NULL, then set
 * every register to a value that differs from @fresh; the event is closed on exec.
 * If @fresh is NULL, EBBs stay enabled, and the event stays open over exec.
 */
static int live_a_full_life(const struct user_state *fresh)
{
	struct perf_event_attr attr;
	int fd;

	ebb_attr(&attr, event_on(1));
	fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1,
		     fresh ? PERF_FLAG_FD_CLOEXEC : 0);
	if (fd < 0 || ebb_start(fd))
		return -1;
	arm(1u << 1, PERIOD);
	if (!work_until(3))
		return -1;
	if (!fresh)
		return fd;
	ebb_disable();
	ebb_mtspr(EBB_SPR_MMCR0, fresh->mmcr0 ^ (EBB_MMCR0_FC | EBB_MMCR0_PMAE));
	ebb_mtspr(EBB_SPR_MMCR2, ~fresh->mmcr2 & MMCR2_USER);
	ebb_mtspr(EBB_SPR_EBBHR, 0x10);
	ebb_mtspr(EBB_SPR_EBBRR, 0x20);
	return fd;
}

struct life {
	const struct user_state *fresh;
	const char *path;
	enum what what;
	bool full;
	uid_t uid;
	int out;
};

static int live_and_execute(struct parent *parent, void *arg)
{
	struct life *life = arg;

	(void)parent;
	catch_ill();
	if (life->uid && setuid(life->uid))
		return 3;
	if (life->full && live_a_full_life(life->fresh) < 0)
		return 2;
	execute(life->path, life->out, life->what);
	return 127;
}

/* Run an old and a new program in a child; return whether the new program has reported. */
static bool run_life(struct life *life, struct report *report)
{
	struct child child;
	int fds[2];
	ssize_t n;
	int status;

	if (pipe(fds))
		return false;
	life->out = fds[1];
	if (child_start(&child, live_and_execute, life))
		return false;
	close(fds[1]);
	n = read(fds[0], report, sizeof(*report));
	close(fds[0]);
	status = child_end(&child);
	if (status)
		fprintf(stderr, "# the new program ended with %d\n", status);
	return !status && n == sizeof(*report);
}

TEST(e11_exec_starts_with_zero)
{
	struct user_state fresh = { .mmcr0 = 0 };
	struct life life = {
		.fresh = &fresh,
		.path = "/proc/self/exe",
		.what = REGISTERS,
		.full = true,
	};
	struct report report;

	REQUIRE_EBB();
	ASSERT_TRUE(run_life(&life, &report));
	EXPECT_EQ(0, report.state.bescr);
	EXPECT_EQ(0, report.state.ebbhr);
	EXPECT_EQ(0, report.state.ebbrr);
}

TEST(e11_exec_starts_with_a_fresh_pmu_state)
{
	struct life life = { .path = "/proc/self/exe", .what = PMU_STATE };
	struct report fresh, used;

	REQUIRE_EBB();
	ASSERT_TRUE(run_life(&life, &fresh));
	life.full = true;
	life.fresh = &fresh.state;
	ASSERT_TRUE(run_life(&life, &used));
	EXPECT_EQ(fresh.state.mmcr0, used.state.mmcr0);
	EXPECT_EQ(fresh.state.mmcr2, used.state.mmcr2);
	EXPECT_EQ(fresh.state.siar, used.state.siar);
	EXPECT_EQ(fresh.state.sdar, used.state.sdar);
	EXPECT_EQ(fresh.state.sier, used.state.sier);
	EXPECT_EQ(fresh.state.mmcr3, used.state.mmcr3);
}

TEST(e11_armed_event_does_not_hit_the_new_program)
{
	struct life life = {
		.path = "/proc/self/exe",
		.what = DELIVERY,
		.full = true,
	};
	struct report report;

	REQUIRE_EBB();
	ASSERT_TRUE(run_life(&life, &report));
	EXPECT_EQ(200 * PERIOD, report.work_done);
	EXPECT_EQ(0, report.ebbs);
}

#define PARANOID	"/proc/sys/kernel/perf_event_paranoid"
#define NOBODY		65534

/* Make a copy of this program in /tmp that is set-user-ID root. */
static bool make_setuid_copy(char *path, size_t size)
{
	char buffer[65536];
	int from, to;
	ssize_t n;

	snprintf(path, size, "/tmp/ebb-setuid-XXXXXX");
	to = mkstemp(path);
	from = open("/proc/self/exe", O_RDONLY);
	if (to < 0 || from < 0)
		return false;
	while ((n = read(from, buffer, sizeof(buffer))) > 0) {
		if (write(to, buffer, n) != n)
			return false;
	}
	n = fchown(to, 0, 0) || fchmod(to, 04755);
	close(from);
	close(to);
	return !n;
}

/* A user without privileges who may open events, and a set-user-ID program */
FIXTURE(set_user_id)
{
	char paranoid[16];
	char path[64];
};

FIXTURE_SETUP(set_user_id)
{
	struct statvfs mount;

	memset(self, 0, sizeof(*self));
	REQUIRE_EBB();
	if (getuid())
		SKIP(return, "needs root");
	ASSERT_EQ(0, statvfs("/tmp", &mount));
	if (mount.f_flag & ST_NOSUID)
		SKIP(return, "/tmp ignores the set-user-ID bit");
	ASSERT_TRUE(make_setuid_copy(self->path, sizeof(self->path)));
	ASSERT_TRUE(read_file(PARANOID, self->paranoid, sizeof(self->paranoid)));
	ASSERT_TRUE(write_file(PARANOID, "2"));
}

FIXTURE_TEARDOWN_PARENT(set_user_id)
{
	unlink(self->path);
	if (self->paranoid[0])
		write_file(PARANOID, self->paranoid);
}

TEST_F(set_user_id, e11_set_user_id_program_starts_with_zero)
{
	struct user_state fresh = { .mmcr0 = 0 };
	struct life life = {
		.path = self->path,
		.fresh = &fresh,
		.what = REGISTERS,
		.full = true,
		.uid = NOBODY,
	};
	struct report report;

	ASSERT_TRUE(run_life(&life, &report));
	ASSERT_EQ(0, report.euid);
	EXPECT_EQ(0, report.state.bescr);
	EXPECT_EQ(0, report.state.ebbhr);
	EXPECT_EQ(0, report.state.ebbrr);
}

TEST_F(set_user_id, e11_armed_event_does_not_hit_a_set_user_id_program)
{
	struct life life = {
		.path = self->path,
		.what = DELIVERY,
		.full = true,
		.uid = NOBODY,
	};
	struct report report;

	ASSERT_TRUE(run_life(&life, &report));
	ASSERT_EQ(0, report.euid);
	EXPECT_EQ(0, report.ebbs);
	/* check that the event of the unprivileged user was closed at the set-user-ID exec */
	EXPECT_FALSE(report.writable);
}

static void *execute_in_thread(void *arg)
{
	struct life *life = arg;

	if (live_a_full_life(life->fresh) < 0)
		return NULL;
	execute(life->path, life->out, life->what);
	return NULL;
}

static int execute_from_a_thread(struct parent *parent, void *arg)
{
	pthread_t thread;

	(void)parent;
	catch_ill();
	if (begin(1) < 0)
		return 2;
	if (pthread_create(&thread, NULL, execute_in_thread, arg))
		return 3;
	pthread_join(thread, NULL);
	return 4;
}

TEST(e11_exec_from_a_thread_starts_with_zero)
{
	struct user_state fresh = { .mmcr0 = 0 };
	struct life life = {
		.fresh = &fresh,
		.path = "/proc/self/exe",
		.what = REGISTERS,
	};
	struct report report;
	struct child child;
	int fds[2];

	REQUIRE_EBB();
	ASSERT_EQ(0, pipe(fds));
	life.out = fds[1];
	ASSERT_EQ(0, child_start(&child, execute_from_a_thread, &life));
	close(fds[1]);
	ASSERT_EQ(sizeof(report), read(fds[0], &report, sizeof(report)));
	close(fds[0]);
	EXPECT_EQ(0, child_end(&child));
	EXPECT_EQ(0, report.state.bescr);
	EXPECT_EQ(0, report.state.ebbhr);
	EXPECT_EQ(0, report.state.ebbrr);
}

static int execute_under_trace(struct parent *parent, void *arg)
{
	struct life *life = arg;

	(void)parent;
	catch_ill();
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		return 3;
	if (live_a_full_life(life->fresh) < 0)
		return 2;
	execute(life->path, life->out, life->what);
	return 127;
}

/* Check by ptrace that a new program starts with the EBB facility disabled. */
TEST(e11_facility_is_off_after_exec)
{
	struct user_state fresh = { .mmcr0 = 0 };
	struct life life = {
		.fresh = &fresh,
		.path = "/proc/self/exe",
		.what = NOTHING,
		.out = -1,
	};
	unsigned long registers[3] = { 0 };
	struct iovec iov = { registers, sizeof(registers) };
	struct child child;
	int status;

	REQUIRE_EBB();
	ASSERT_EQ(0, child_start(&child, execute_under_trace, &life));
	ASSERT_EQ(child.pid, waitpid(child.pid, &status, 0));
	/* Check that the child has stopped at the first instruction of the new program. */
	ASSERT_TRUE(WIFSTOPPED(status));
	ASSERT_EQ(SIGTRAP, WSTOPSIG(status));
	EXPECT_EQ(-1, ptrace(PTRACE_GETREGSET, child.pid,
			     (void *)NT_PPC_EBB, &iov));
	EXPECT_EQ(ENODATA, errno);
	kill(child.pid, SIGKILL);
	child_end(&child);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "--report"))
		return report_what(atoi(argv[2]), atoi(argv[3]));
	return test_harness_run(argc, argv);
}
