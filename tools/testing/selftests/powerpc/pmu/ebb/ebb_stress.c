// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A stress test that opens, enables and closes EBB events and regular events at
 * random, with fork and exec, on all CPUs. It checks that the result of each call
 * is allowed by the rules of EBB, and that the kernel does not crash.
 *
 * usage: ebb_stress [COUNT [SEED]]
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "ebb_test.h"
#include "kselftest.h"

#define DEFAULT_COUNT	4000
#define MAX_FDS		12
#define MAX_WORKERS	4

/* The state of pick(), which gives the same random numbers with every C library */
static unsigned long seed;

static unsigned int pick(unsigned int n)
{
	seed = seed * 6364136223846793005ul + 1442695040888963407ul;
	return (seed >> 33) % n;
}

struct event {
	int fd;
	bool ebb;
};

static struct event events[MAX_FDS];
static unsigned int nr_events;
static int cpus;

static int failed(const char *what)
{
	printf("# %s: %s\n", what, strerror(errno));
	return 1;
}

static void add_event(int fd, bool ebb)
{
	if (fd < 0)
		return;
	events[nr_events].fd = fd;
	events[nr_events++].ebb = ebb;
}

static void drop_event(unsigned int n)
{
	close(events[n].fd);
	events[n] = events[--nr_events];
}

static int open_ebb(void)
{
	const struct event *leader = NULL;
	unsigned long code;
	int fd;

	if (nr_events && !pick(3))
		leader = &events[pick(nr_events)];
	code = event_on(1 + pick(MAX_PMC));
	if (!pick(4))
		code |= EBB_EVENT_BHRB;
	fd = ebb_open(code, 0, leader ? leader->fd : -1);
	if (fd >= 0) {
		add_event(fd, true);
		if (!leader || leader->ebb)
			return 0;
		puts("# an EBB event is in the group of a regular event");
		return 1;
	}
	if (leader && errno == EINVAL)
		return 0;
	/*
	 * perf can have swapped an inherited leader with the leader's copy in a child.
	 * When the child has ended, the open fails with ENODEV.
	 */
	if (leader && !leader->ebb && errno == ENODEV)
		return 0;
	return failed("open of an EBB event");
}

static int open_regular(void)
{
	struct perf_event_attr attr = {
		.type = pick(3) ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE,
		.config = pick(2),
		.pinned = !pick(3),
		.exclusive = !pick(5),
		.inherit = !pick(4),
		.exclude_kernel = pick(2),
		.exclude_hv = 1,
		.sample_period = pick(3) ? 0 : 100000 + pick(1000000),
	};
	bool on_cpu = !pick(8);
	int fd;

	fd = perf_open(&attr, on_cpu ? -1 : 0, on_cpu ? (int)pick(cpus) : -1,
		       -1);
	if (fd < 0 && errno != EACCES && errno != ENODEV)
		return failed("open of a regular event");
	add_event(fd, false);
	return 0;
}

/* Open an event with random attributes, which the kernel can accept or reject. */
static int open_anything(void)
{
	struct perf_event_attr attr;
	unsigned int bits = pick(1 << 9);
	int fd;

	ebb_attr(&attr, event_on(1 + pick(MAX_PMC)));
	attr.pinned = bits & 1;
	attr.exclusive = !!(bits & 2);
	attr.inherit = !!(bits & 4);
	attr.freq = !!(bits & 8);
	attr.enable_on_exec = !!(bits & 16);
	attr.disabled = !!(bits & 32);
	if (bits & 64)
		attr.config ^= 1ul << pick(64);
	if (bits & 128)
		attr.sample_type = 1u << pick(20);
	fd = perf_open(&attr, bits & 256 ? 0 : -1, bits & 256 ? -1 : 0, -1);
	if (fd < 0) {
		if (errno == EINVAL || errno == EOPNOTSUPP || errno == ENOENT ||
		    errno == EACCES)
			return 0;
		return failed("open with random attributes");
	}
	close(fd);
	return 0;
}

static int toggle(void)
{
	static const unsigned long requests[] = {
		PERF_EVENT_IOC_ENABLE, PERF_EVENT_IOC_ENABLE,
		PERF_EVENT_IOC_DISABLE, PERF_EVENT_IOC_RESET,
	};
	unsigned int n;

	if (!nr_events)
		return 0;
	n = pick(nr_events);
	if (ioctl(events[n].fd, requests[pick(4)], pick(2)))
		return failed("ioctl");
	return 0;
}

static int read_one(void)
{
	uint64_t value;
	ssize_t n;

	if (!nr_events)
		return 0;
	n = read(events[pick(nr_events)].fd, &value, sizeof(value));
	if (n != 0 && n != sizeof(value))
		return failed("read");
	return 0;
}

/* Enable EBBs, and work. Without an EBB event, writing the PMCs causes SIGILL. */
static int take_ebbs(void)
{
	/* arm all PMCs, as a PMC that stays negative would cause endless EBBs */
	arm(0x7e, 2000 + pick(20000));
	work(500 + pick(20000));
	if (pick(2))
		ebb_disable();
	return 0;
}

static int leave_registers_odd(void)
{
	catch_ill();
	ebb_disable();
	ebb_mtspr(EBB_SPR_MMCR0, pick(2) ? EBB_MMCR0_FC : EBB_MMCR0_USER);
	ebb_mtspr(EBB_SPR_MMCR2, seed & MMCR2_USER);
	ebb_write_pmc(1 + pick(MAX_PMC), seed);
	ebb_mtspr(EBB_SPR_EBBRR, seed & ~3ul);
	if (pick(2))
		ebb_mtspr(EBB_SPR_BESCRR, EBB_BESCR_PMEO);
	return 0;
}

static int run_child(bool execute)
{
	char *argv[] = { "ebb_stress", "--nothing", NULL };
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return failed("fork");
	if (!pid) {
		if (ebb_mfspr(EBB_SPR_EBBHR) || ebb_mfspr(EBB_SPR_EBBRR) ||
		    ebb_mfspr(EBB_SPR_BESCR))
			_exit(1);
		if (pick(2)) {
			open_ebb();
			toggle();
			take_ebbs();
		}
		if (execute) {
			execv("/proc/self/exe", argv);
			_exit(2);
		}
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid)
		return failed("wait");
	if (status) {
		printf("# a child ended with status 0x%x\n", status);
		return 1;
	}
	return 0;
}

static int step(void)
{
	if (nr_events == MAX_FDS || (nr_events && !pick(4)))
		drop_event(pick(nr_events));
	switch (pick(16)) {
	case 0 ... 2:
		return open_ebb();
	case 3 ... 4:
		return open_regular();
	case 5:
		return open_anything();
	case 6 ... 8:
		return toggle();
	case 9:
		return read_one();
	case 10 ... 11:
		return take_ebbs();
	case 12:
		return leave_registers_odd();
	case 13:
		bind_to(pick(cpus));
		return 0;
	case 14:
		return run_child(false);
	default:
		return run_child(true);
	}
}

static int stress(struct parent *parent, void *arg)
{
	unsigned long count = *(unsigned long *)arg;
	int failures = 0;

	(void)parent;
	while (count-- && !failures)
		failures += step();
	ebb_disable();
	while (nr_events)
		drop_event(0);
	/* Check that user mode cannot access the PMU when no EBB event is left. */
	if (!failures && pmc_writable()) {
		puts("# the PMU is still open after the last close");
		failures++;
	}
	fflush(stdout);
	return failures != 0;
}

int main(int argc, char **argv)
{
	unsigned long count = DEFAULT_COUNT, first = 1;
	struct child children[MAX_WORKERS];
	unsigned int workers, i;
	int result = 0;

	if (argc == 2 && !strcmp(argv[1], "--nothing")) {
		work(1000);
		return 0;
	}
	if (argc > 1)
		count = strtoul(argv[1], NULL, 0);
	if (argc > 2)
		first = strtoul(argv[2], NULL, 0);
	ksft_print_header();
	ksft_set_plan(1);
	if (!ebb_available()) {
		ksft_test_result_skip("stress_of_random_operations, no EBB here\n");
		ksft_finished();
	}
	if (!count)
		ksft_exit_fail_msg("usage: ebb_stress [COUNT [SEED]]\n");
	catch_ill();
	cpus = nr_cpus();
	workers = cpus < MAX_WORKERS ? cpus : MAX_WORKERS;
	if (workers < 2)
		workers = 2;
	count = (count + workers - 1) / workers;
	ksft_print_msg("%lu operations in each of %u processes, seed %lu\n",
		       count, workers, first);
	fflush(stdout);
	for (i = 0; i < workers; i++) {
		seed = first + i;
		if (child_start(&children[i], stress, &count))
			ksft_exit_fail_msg("cannot fork\n");
	}
	for (i = 0; i < workers; i++)
		result |= child_end(&children[i]);
	ksft_test_result(!result, "stress_of_random_operations\n");
	ksft_finished();
}
