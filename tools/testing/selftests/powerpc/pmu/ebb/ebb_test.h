/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the tests of event-based branches (EBB): events, a handler that
 * counts EBBs, loops of a known number of instructions, and child processes that
 * wait for their parent.
 *
 * The entry routine and the register definitions are in samples/ebb.
 */
#ifndef EBB_TEST_H
#define EBB_TEST_H

#include <stdbool.h>
#include <stdint.h>

#include "ebb.h"

#ifndef NT_PPC_EBB
#define NT_PPC_EBB	0x106
#endif
#ifndef NT_PPC_PMU
#define NT_PPC_PMU	0x107
#endif

/* PMCxSEL values that POWER8 to POWER11 support on each of PMC1 to PMC4 */
#define CYCLES		0x1e
#define INSTRUCTIONS	0x02

/* Timeout of a test in seconds: an emulated machine with a debug kernel is slow. */
#ifdef TEST_TIMEOUT_DEFAULT
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	300
#endif

/* Number of events from one EBB to the next in most tests */
#define PERIOD		20000

/* The bits of MMCR2 that user mode can write: freeze PMC1 to PMC6 in user mode */
#define MMCR2_USER	0x4020100804020000ul

/* The bits of SIER that user mode can read */
#define SIER_USER	0x7ffffful

#define MAX_PMC		6

/**
 * struct tally - numbers of EBBs that tally_handler() has counted in this thread
 * @count: EBBs taken
 * @spurious: EBBs taken while no counter was negative
 * @ill: accesses without permission, which caused SIGILL
 * @nip: the address at which the last EBB interrupted the program
 * @overflows: for each PMC, EBBs in which the handler found the PMC negative
 * @pmcs: bit n set: the handler checks PMCn for an overflow
 * @period: events between two EBBs of a PMC
 * @hook: function that the handler calls first, or NULL
 */
struct tally {
	unsigned long count;
	unsigned long spurious;
	unsigned long ill;
	unsigned long nip;
	unsigned long overflows[MAX_PMC + 1];
	unsigned int pmcs;
	unsigned int period;
	void (*hook)(struct ebb_regs *regs);
};

extern __thread struct tally tally;

/*
 * struct user_state - the EBB and PMU registers that the kernel saves for a
 * task
 *
 * MMCR3, SIER2 and SIER3 exist from ISA v3.1 on. The fields are 0 before v3.1.
 */
struct user_state {
	unsigned long bescr;
	unsigned long ebbhr;
	unsigned long ebbrr;
	unsigned long mmcr0;
	unsigned long mmcr2;
	unsigned long siar;
	unsigned long sdar;
	unsigned long sier;
	unsigned long pmc[MAX_PMC + 1];
	unsigned long mmcr3;
	unsigned long sier2;
	unsigned long sier3;
};

bool cpu_is_v31(void);
void read_state(struct user_state *state);
const char *state_difference(const struct user_state *a,
			     const struct user_state *b);

unsigned long event_on(int pmc);
void catch_ill(void);
void tally_handler(struct ebb_regs *regs);
void arm(unsigned int pmcs, unsigned int period);
void arm_with_hook(unsigned int pmcs, unsigned int period, void (*hook)(struct ebb_regs *regs));
int begin(int pmc);
unsigned long code_address(void (*fn)(unsigned long));
bool pmc_writable(void);
bool group_b_readable(void);

/* Run loops of two instructions, none of which is a load, a store or a call. */
__attribute__((noinline)) void work(unsigned long loops);
bool work_until(unsigned long count);
bool tally_fits(unsigned long loops);

/* Processor behaviour for alerts and exceptions that the ISA leaves open */
unsigned long lateness(void);
unsigned long at_least(unsigned long ebbs);
bool alerts_wait_for_pme(void);
void set_pme_for_alerts(void);

/* The result of read() on an event that open_plain() has opened */
struct count {
	uint64_t value;
	uint64_t enabled;
	uint64_t running;
};

int perf_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group);
int open_plain(unsigned int type, unsigned long config, bool pinned);
int read_count(int fd, struct count *count);
int sched_switch_id(void);

/* Files of /proc and /sys */
bool read_file(const char *path, char *text, size_t size);
bool write_file(const char *path, const char *text);

/* Find CPUs, and bind a task to a CPU */
int nth_cpu(unsigned int n);
unsigned int nr_cpus(void);
int bind_to(int cpu);

/**
 * struct child - a process that runs one function and exits with its result
 * @pid: the process
 * @to: the end of a pipe to which the parent writes; the child reads from it
 * @from: the end of a pipe from which the parent reads; the child writes to it
 */
struct child {
	pid_t pid;
	int to;
	int from;
};

/* The ends of the pipes of struct child that belong to the child process */
struct parent {
	int to;
	int from;
};

typedef int child_fn(struct parent *parent, void *arg);

int child_start(struct child *child, child_fn *fn, void *arg);
int child_go(struct child *child);
int child_heard(struct child *child);
int child_end(struct child *child);
int parent_tell(struct parent *parent);
int parent_wait(struct parent *parent);
void *shared_memory(size_t size);

#define REQUIRE_EBB()							\
do {									\
	if (!ebb_available())						\
		SKIP(return, "no event-based branches on this machine");	\
	catch_ill();							\
} while (0)

#define REQUIRE_CPUS(n)							\
do {									\
	if (nr_cpus() < (n))						\
		SKIP(return, "needs %d CPUs", (n));			\
} while (0)

#endif /* EBB_TEST_H */
