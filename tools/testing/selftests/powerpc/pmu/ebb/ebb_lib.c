// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "ebb_test.h"
#include "kselftest.h"

#ifndef PPC_FEATURE2_ARCH_3_1
#define PPC_FEATURE2_ARCH_3_1	0x00040000
#endif

#define PT_NIP_INDEX	32

__thread struct tally tally;

bool cpu_is_v31(void)
{
	return getauxval(AT_HWCAP2) & PPC_FEATURE2_ARCH_3_1;
}

/* Read the EBB and PMU registers, while an EBB event of this task is on the PMU. */
void read_state(struct user_state *state)
{
	int pmc;

	memset(state, 0, sizeof(*state));
	state->bescr = ebb_mfspr(EBB_SPR_BESCR);
	state->ebbhr = ebb_mfspr(EBB_SPR_EBBHR);
	state->ebbrr = ebb_mfspr(EBB_SPR_EBBRR);
	state->mmcr0 = ebb_mfspr(EBB_SPR_MMCR0);
	state->mmcr2 = ebb_mfspr(EBB_SPR_MMCR2) & MMCR2_USER;
	state->siar = ebb_mfspr(EBB_SPR_SIAR);
	state->sdar = ebb_mfspr(EBB_SPR_SDAR);
	state->sier = ebb_mfspr(EBB_SPR_SIER) & SIER_USER;
	for (pmc = 1; pmc <= MAX_PMC; pmc++)
		state->pmc[pmc] = ebb_read_pmc(pmc);
	if (cpu_is_v31()) {
		state->mmcr3 = ebb_mfspr(EBB_SPR_MMCR3);
		state->sier2 = ebb_mfspr(EBB_SPR_SIER2);
		state->sier3 = ebb_mfspr(EBB_SPR_SIER3);
	}
}

/* Return the name of the first register in which @a and @b differ, or NULL */
const char *state_difference(const struct user_state *a,
			     const struct user_state *b)
{
	static const struct {
		const char *name;
		size_t offset;
	} registers[] = {
#define REGISTER(name, field)	{ name, offsetof(struct user_state, field) }
		REGISTER("BESCR", bescr),
		REGISTER("EBBHR", ebbhr),
		REGISTER("EBBRR", ebbrr),
		REGISTER("MMCR0", mmcr0),
		REGISTER("MMCR2", mmcr2),
		REGISTER("SIAR", siar),
		REGISTER("SDAR", sdar),
		REGISTER("SIER", sier),
		REGISTER("PMC1", pmc[1]),
		REGISTER("PMC2", pmc[2]),
		REGISTER("PMC3", pmc[3]),
		REGISTER("PMC4", pmc[4]),
		REGISTER("PMC5", pmc[5]),
		REGISTER("PMC6", pmc[6]),
		REGISTER("MMCR3", mmcr3),
		REGISTER("SIER2", sier2),
		REGISTER("SIER3", sier3),
#undef REGISTER
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(registers); i++) {
		if (memcmp((const char *)a + registers[i].offset,
			   (const char *)b + registers[i].offset,
			   sizeof(unsigned long)))
			return registers[i].name;
	}
	return NULL;
}

/* Return the code of an event that counts all the time on @pmc */
unsigned long event_on(int pmc)
{
	switch (pmc) {
	case 5:
		return 0x500fa;		/* event code for run instructions */
	case 6:
		return 0x600f4;		/* event code for run cycles */
	default:
		return EBB_EVENT_PMC(pmc) | INSTRUCTIONS;
	}
}

static void skip_instruction(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)sig;
	(void)info;
	tally.ill++;
	uc->uc_mcontext.gp_regs[PT_NIP_INDEX] += 4;
}

/*
 * Count the instructions that cause SIGILL, and skip them. EBB handlers also need
 * this function, because a handler can run once more after the event was closed.
 */
void catch_ill(void)
{
	struct sigaction action = {
		.sa_sigaction = skip_instruction,
		.sa_flags = SA_SIGINFO,
	};

	sigaction(SIGILL, &action, NULL);
}

void tally_handler(struct ebb_regs *regs)
{
	struct tally *t = &tally;
	bool negative = false;
	int pmc;

	t->count++;
	t->nip = regs->nip;
	if (t->hook)
		t->hook(regs);
	for (pmc = 1; pmc <= MAX_PMC; pmc++) {
		if (!(t->pmcs & (1u << pmc)) ||
		    !(ebb_read_pmc(pmc) & EBB_NEGATIVE))
			continue;
		negative = true;
		t->overflows[pmc]++;
		ebb_set_period(pmc, t->period);
	}
	if (!negative)
		t->spurious++;
	ebb_rearm();
}

/*
 * Clear the tally and enable EBBs, with tally_handler(), from the PMCs in the mask
 * @pmcs. The handler calls @hook.
 */
void arm_with_hook(unsigned int pmcs, unsigned int period, void (*hook)(struct ebb_regs *regs))
{
	int pmc;

	memset(&tally, 0, sizeof(tally));
	tally.pmcs = pmcs;
	tally.period = period;
	tally.hook = hook;
	for (pmc = 1; pmc <= MAX_PMC; pmc++) {
		if (pmcs & (1u << pmc))
			ebb_set_period(pmc, period);
	}
	ebb_enable(tally_handler);
	ebb_rearm();
}

void arm(unsigned int pmcs, unsigned int period)
{
	arm_with_hook(pmcs, period, NULL);
}

/*
 * Open and start an EBB event on @pmc for this thread, and enable EBBs. Return the
 * file descriptor, or -1.
 */
int begin(int pmc)
{
	int fd = ebb_open(event_on(pmc), 0, -1);

	if (fd < 0)
		return -1;
	if (ebb_start(fd)) {
		close(fd);
		return -1;
	}
	arm(1u << pmc, PERIOD);
	return fd;
}

/*
 * Return the address of a function's code. On ELFv1, a function pointer points to
 * a descriptor that contains the address.
 */
unsigned long code_address(void (*fn)(unsigned long))
{
#if !defined(_CALL_ELF) || _CALL_ELF != 2
	return *(const unsigned long *)fn;
#else
	return (unsigned long)fn;
#endif
}

bool pmc_writable(void)
{
	unsigned long before = tally.ill;

	catch_ill();
	/* write PMC3, because no test that calls this function uses PMC3 */
	ebb_write_pmc(3, 0);
	return tally.ill == before;
}

/*
 * Return whether user mode can read the group B registers SIER, SIAR and SDAR.
 * Before ISA v3.1, user mode could always read them.
 */
bool group_b_readable(void)
{
	unsigned long before = tally.ill;

	catch_ill();
	ebb_mfspr(EBB_SPR_SIER);
	ebb_mfspr(EBB_SPR_SIAR);
	ebb_mfspr(EBB_SPR_SDAR);
	return tally.ill == before;
}

void work(unsigned long loops)
{
	asm volatile("mtctr %0\n"
		     "1:	nop\n"
		     "	bdnz 1b\n"
		     : : "r" (loops) : "ctr", "memory");
}

/*
 * Work until the tally contains @count EBBs. Give up after twenty times the work
 * that should be enough, because a lost EBB never comes.
 */
bool work_until(unsigned long count)
{
	unsigned long chunk = 1000;
	unsigned long left = 20 * (count + 1) * (PERIOD / 2 / chunk + 1);

	asm volatile("" : : : "memory");
	while (tally.count < count && left--)
		work(chunk);
	asm volatile("" : : : "memory");
	return tally.count >= count;
}

/*
 * Return whether the tally contains the correct number of EBBs for @loops loops of
 * work(), whose instructions one PMC has counted. A few more EBBs are also
 * correct: the PMC also counts instructions in the handler after re-arming and
 * around work().
 */
bool tally_fits(unsigned long loops)
{
	unsigned long least = 2 * loops / PERIOD;
	unsigned long count;

	asm volatile("" : : : "memory");
	count = tally.count;
	if (!tally.spurious && !tally.ill && count <= least + least / 10 + 2 &&
	    (count >= least || count >= at_least(least)))
		return true;
	fprintf(stderr,
		"# %lu EBBs (%lu spurious), %lu SIGILLs in %lu loops, expected %lu\n",
		count, tally.spurious, tally.ill, loops, least);
	return false;
}

/* The greatest number of loops of work() between two EBBs */
static unsigned long *between_ebbs;

static void note_loops(struct ebb_regs *regs)
{
	static unsigned long before;

	if (regs->nip - code_address(work) >= 64)
		return;
	if (before > regs->ctr && before - regs->ctr > *between_ebbs)
		*between_ebbs = before - regs->ctr;
	before = regs->ctr;
}

static int take_some_ebbs(struct parent *parent, void *arg)
{
	int fd = ebb_open(event_on(1), 0, -1);

	(void)parent;
	(void)arg;
	if (fd < 0 || ebb_start(fd))
		return 1;
	arm_with_hook(1u << 1, PERIOD, note_loops);
	work(20 * PERIOD);
	ebb_disable();
	return 0;
}

/*
 * Return how many instructions after an overflow the processor raises the
 * exception, at most. The counter does not count these instructions. The number is
 * measured once, in a separate process, so that no state of the caller changes.
 */
unsigned long lateness(void)
{
	static unsigned long late;
	struct child child;

	if (between_ebbs)
		return late;
	between_ebbs = shared_memory(sizeof(*between_ebbs));
	if (!between_ebbs || child_start(&child, take_some_ebbs, NULL) || child_end(&child))
		return 0;
	if (2 * *between_ebbs > PERIOD)
		late = 2 * *between_ebbs - PERIOD;
	return late;
}

/* Return how many of @ebbs EBBs come at least, if each exception is raised late */
unsigned long at_least(unsigned long ebbs)
{
	return ebbs * PERIOD / (PERIOD + lateness());
}

/*
 * Return whether an alert that comes while BESCR[PME] is clear causes an exception
 * when PME is set, as the ISA defines it. Call this function with an armed event
 * on PMC1.
 */
bool alerts_wait_for_pme(void)
{
	int tries, waited = 0;

	/*
	 * A switch between tasks can clear the alert or, where exceptions are late,
	 * make it come after PME is set: let the majority of the tries decide.
	 */
	for (tries = 0; tries < 5; tries++) {
		ebb_mtspr(EBB_SPR_BESCRR, EBB_BESCR_PME);
		tally.count = 0;
		ebb_set_period(1, 10);
		work(PERIOD);
		ebb_mtspr(EBB_SPR_BESCRS, EBB_BESCR_PME);
		work(10);
		asm volatile("" : : : "memory");
		if (tally.count)
			waited++;
		else
			set_pme_for_alerts();
	}
	return waited > 2;
}

/*
 * Set BESCR[PME] on a processor on which alerts do not wait for PME, and turn an
 * alert that has already come into an exception. GE is clear meanwhile, so that no
 * EBB comes between the check for an alert and the setting of PMEO.
 */
void set_pme_for_alerts(void)
{
	ebb_mtspr(EBB_SPR_BESCRR, EBB_BESCR_GE);
	ebb_mtspr(EBB_SPR_BESCRS, EBB_BESCR_PME);
	if (ebb_mfspr(EBB_SPR_MMCR0) & EBB_MMCR0_PMAO) {
		ebb_mtspr(EBB_SPR_BESCRR, EBB_BESCR_PME);
		ebb_mtspr(EBB_SPR_BESCRS, EBB_BESCR_PMEO);
	}
	ebb_mtspr(EBB_SPR_BESCRS, EBB_BESCR_GE);
}

int perf_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group)
{
	attr->size = sizeof(*attr);
	return syscall(SYS_perf_event_open, attr, pid, cpu, group,
		       PERF_FLAG_FD_CLOEXEC);
}

/* Open an enabled event of this thread without EBB, for read_count(). */
int open_plain(unsigned int type, unsigned long config, bool pinned)
{
	struct perf_event_attr attr = {
		.type = type,
		.config = config,
		.pinned = pinned,
		.exclude_kernel = type != PERF_TYPE_SOFTWARE &&
				  type != PERF_TYPE_TRACEPOINT,
		.exclude_hv = 1,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
			       PERF_FORMAT_TOTAL_TIME_RUNNING,
	};

	return perf_open(&attr, 0, -1, -1);
}

/*
 * Read an event. Return the result of read(): the size of struct count, 0 if the
 * event is in error state, or a negative number.
 */
int read_count(int fd, struct count *count)
{
	memset(count, 0, sizeof(*count));
	return read(fd, count, sizeof(*count));
}

/* Return the ID of the tracepoint sched:sched_switch for perf_event_open(), or -1 */
int sched_switch_id(void)
{
	static const char * const paths[] = {
		"/sys/kernel/tracing/events/sched/sched_switch/id",
		"/sys/kernel/debug/tracing/events/sched/sched_switch/id",
	};
	int id = -1;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(paths) && id < 0; i++) {
		FILE *f = fopen(paths[i], "r");

		if (!f)
			continue;
		if (fscanf(f, "%d", &id) != 1)
			id = -1;
		fclose(f);
	}
	return id;
}

/* Read a file of at most @size - 1 bytes into @text */
bool read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = -1;

	if (fd >= 0) {
		n = read(fd, text, size - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

unsigned int nr_cpus(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 1;
	return CPU_COUNT(&set);
}

/* Return the CPU number @n, from 0, of the CPUs that this thread can use, or -1 */
int nth_cpu(unsigned int n)
{
	cpu_set_t set;
	int cpu;

	if (sched_getaffinity(0, sizeof(set), &set))
		return -1;
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &set) && !n--)
			return cpu;
	}
	return -1;
}

int bind_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

int child_start(struct child *child, child_fn *fn, void *arg)
{
	struct parent parent;
	int down[2], up[2];

	if (pipe(down))
		return -1;
	if (pipe(up)) {
		close(down[0]);
		close(down[1]);
		return -1;
	}
	fflush(NULL);
	child->pid = fork();
	if (child->pid < 0)
		return -1;
	if (!child->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(down[1]);
		close(up[0]);
		parent.from = down[0];
		parent.to = up[1];
		_exit(fn(&parent, arg));
	}
	close(down[0]);
	close(up[1]);
	child->to = down[1];
	child->from = up[0];
	return 0;
}

static int tell(int fd)
{
	return write(fd, "", 1) == 1 ? 0 : -1;
}

static int hear(int fd)
{
	ssize_t n;
	char c;

	do
		n = read(fd, &c, 1);
	while (n < 0 && errno == EINTR);
	return n == 1 ? 0 : -1;
}

/* Tell the child, which is in parent_wait(), to continue. */
int child_go(struct child *child)
{
	return tell(child->to);
}

/* Wait until the child calls parent_tell(); return -1 if the child ended before. */
int child_heard(struct child *child)
{
	return hear(child->from);
}

/*
 * Wait until the child ends. Return its exit status, 128 + signal if a signal
 * killed it, or -1 on an error.
 */
int child_end(struct child *child)
{
	int status;
	pid_t pid;

	close(child->to);
	do
		pid = waitpid(child->pid, &status, 0);
	while (pid < 0 && errno == EINTR);
	close(child->from);
	if (pid < 0)
		return -1;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	return 128 + WTERMSIG(status);
}

int parent_tell(struct parent *parent)
{
	return tell(parent->to);
}

int parent_wait(struct parent *parent)
{
	return hear(parent->from);
}

void *shared_memory(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}
