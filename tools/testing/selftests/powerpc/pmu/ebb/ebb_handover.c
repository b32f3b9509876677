// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tests of the PMU registers that a task can read when its EBB event gets the PMU:
 * they must contain the task's own values or zero, and never values of the task or
 * event that had the PMU before.
 *
 * In this file, the task or event that had the PMU before is the previous user,
 * and the task whose EBB event gets the PMU is the new owner. The previous user
 * fills the registers with a pattern. The table lists the registers that the new
 * owner can read in problem state, how the previous user fills each register, and
 * in the line below, the value that the new owner must read:
 *
 *   register            filled by an EBB task   filled by a plain event
 *     value read by the new owner
 *   ------------------  ----------------------  --------------------------
 *   PMC1 to PMC6        mtspr                   PMC5 counts beside an event
 *                                               on PMC6, PMC6 beside PMC5
 *     zero; PMCs with an event count since the new owner got the PMU
 *   MMCR0 FC,PMAE,PMAO  mtspr                   -
 *     PMAE set, FC and PMAO clear; all clear if the event was kept over exec
 *   MMCR2 FCnP          mtspr                   -
 *     zero
 *   MMCR3 (v3.1)        mtspr                   -
 *     zero, as the event codes of this test ask for zero
 *   MMCR1, MMCRA        event codes, BHRB mode, event codes, branch stacks
 *                       MMCRA by mtspr, too
 *     the same value that the first EBB event after boot would read
 *   SIAR, SDAR, SIER,   overflows in            samples of the kernel
 *   SIER2, SIER3        planted_code()
 *     zero
 *   BHRB                branches in             branches in planted_code()
 *                       planted_code()          and in the kernel
 *     no branch of planted_code()
 *   EBBHR, EBBRR,       mtspr                   -
 *   BESCR
 *     zero; the new owner's values after close() and after migration
 *   TAR                 mtspr                   mtspr
 *     the value that the new owner has written
 *
 * MMCR3, SIER2 and SIER3 exist since ISA v3.1. Before v3.1, the BHRB also records
 * the kernel's branches. When the new owner gets the PMU and the PMU is armed,
 * branches on the way back to user mode replace the old entries, so that an old
 * entry can be read only while the PMU is not armed. Before v3.1, entries of the
 * kernel are not checked.
 *
 * Each variant of the fixture is a way in which a task becomes the new owner.
 * The patterns contain harmful values: negative counters, all ones, and addresses
 * of the kernel.
 */
#include "kselftest_harness.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include "ebb_test.h"

#define SPR_MMCR1	782
#define SPR_TAR		815

/* MMCRA with another filter of the BHRB, and with random sampling */
#define MMCRA_PATTERN	0x80000001ul

#define ADDRESS		(~3ul)	/* mask for the address in a BHRB entry */

/* The greatest count of the new owner's events when it reads the PMCs */
#define OWN_COUNT	0x100000ul

/*
 * The greatest count of the new owner's events when it reads the PMCs after
 * execve(). The patterns of previous users with an EBB event are close to 2^31 or
 * greater.
 */
#define OWN_EXEC_COUNT	0x40000000ul

/* Values of the new owner's registers before the new owner migrates */
#define OWN_TAR		0x0123456789abcdeful
#define OWN_EBBHR	0x10203040ul
#define OWN_EBBRR	0x50607080ul
#define OWN_MMCR2	0x0020000000000000ul
#define OWN_PMC(n)	(0x1000ul * (n))

struct pattern {
	const char *name;
	unsigned int pmcs;	/* bit n set: an EBB task has an event on PMCn */
	unsigned int pmc;	/* PMCn gets this value plus n */
	unsigned long mmcr0;
	unsigned long address;	/* the value for EBBHR, EBBRR and TAR */
	unsigned long bescr;
	int plain_pmc;		/* the plain event's PMC; 0: sampling events on PMC1 to PMC4 */
	unsigned long nops;	/* stop executing nops when the plain event has this count */
};

static const struct pattern patterns[] = {
	{
		.name = "negative counters",
		.pmcs = 1u << 1,
		.pmc = 0x80000000,
		.mmcr0 = EBB_MMCR0_FC,
		.address = 0x7fff12345678ul,
		.bescr = EBB_BESCR_PME,
		/* At the end, PMC5 is about a million instructions before its overflow. */
		.plain_pmc = 6,
		.nops = 0x7ff00000,
	}, {
		.name = "all ones",
		.pmcs = 0x7e,
		.pmc = 0xfffffff0,
		.mmcr0 = EBB_MMCR0_FC | EBB_MMCR0_PMAO,
		.address = ~3ul,
		.bescr = EBB_BESCR_PMEO,
		.plain_pmc = 5,
		.nops = 0x1200000,
	}, {
		.name = "addresses of the kernel",
		.pmcs = 1u << 1 | 1u << 6,
		.pmc = 0x7fffff00,
		.mmcr0 = EBB_MMCR0_FC,
		.address = 0xc000000000008000ul,
		.bescr = EBB_BESCR_GE,
		.plain_pmc = 0,
		.nops = 0x100000,
	},
};

/* The values that the new owner of the PMU has read from the registers and the BHRB */
struct sight {
	unsigned long bhrb[EBB_BHRB_ENTRIES];
	unsigned long pmc[MAX_PMC + 1];
	unsigned long mmcr0;
	unsigned long mmcr1;
	unsigned long mmcr2;
	unsigned long mmcra;
	unsigned long siar;
	unsigned long sdar;
	unsigned long sier;
	unsigned long mmcr3;
	unsigned long sier2;
	unsigned long sier3;
	unsigned long ebbhr;
	unsigned long ebbrr;
	unsigned long bescr;
	unsigned long tar;
	unsigned long first_tar;	/* TAR before the new owner of the PMU writes it */
	unsigned long ill;
	unsigned long ebbs;	/* EBBs that came without an overflow of the new owner's PMCs */
};

/**
 * struct scene - one handover of the PMU, in memory shared by all its processes
 * @pattern: the values that the previous user leaves in the registers
 * @pmcs: bit n set: the new owner has an event on PMCn
 * @armed: the new owner enables EBBs, and counts them, instead of reading registers
 * @cpu: the CPU on which the new owner gets the PMU
 * @before: the CPU from which the new owner migrates, if it does
 * @kept: the file descriptor of an event that stays open over exec, or -1
 * @sight: the values that the new owner has read
 */
struct scene {
	const struct pattern *pattern;
	unsigned int pmcs;
	bool armed;
	int cpu;
	int before;
	int kept;
	struct sight sight;
};

/*
 * Take branches that only the previous user of the PMU takes. An EBB task calls
 * planted_code_and_freeze(), which freezes the PMU before any other branch.
 */
static __attribute__((noinline)) void planted_code(unsigned long loops)
{
	asm volatile("mtctr %0\n"
		     "1:	nop\n"
		     "	bdnz 1b\n"
		     : : "r" (loops) : "ctr", "memory");
}

static __attribute__((noinline)) void planted_code_and_freeze(unsigned long loops)
{
	asm volatile("mtctr %0\n"
		     "1:	nop\n"
		     "	bdnz 1b\n"
		     "	mtspr %1,%2\n"
		     : : "r" (loops), "i" (EBB_SPR_MMCR0), "r" (EBB_MMCR0_FC)
		     : "ctr", "memory");
}

static bool is_planted(unsigned long entry)
{
	entry &= ADDRESS;
	return entry - code_address(planted_code) < 32 ||
	       entry - code_address(planted_code_and_freeze) < 32;
}

static void run_nops(unsigned long n)
{
	asm volatile("mtctr %0\n"
		     "1:	.rept 1000\n"
		     "	nop\n"
		     "	.endr\n"
		     "	bdnz 1b\n"
		     : : "r" (n / 1001 + 1) : "ctr", "memory");
}

/* Enable an event and then read the BHRB, without taking a branch. */
static long enable_and_read_bhrb(int fd, unsigned long *entries)
{
	register unsigned long r0 asm("r0") = SYS_ioctl;
	register unsigned long r3 asm("r3") = fd;
	register unsigned long r4 asm("r4") = PERF_EVENT_IOC_ENABLE;
	register unsigned long r5 asm("r5") = 0;
	long error;

	asm volatile("sc\n"
		     "	bns+ 1f\n"
		     "	neg 3,3\n"
		     "1:\n"
		     : "+r" (r0), "+r" (r3), "+r" (r4), "+r" (r5)
		     : : "r6", "r7", "r8", "r9", "r10", "r11", "r12", "ctr",
		       "xer", "cr0", "memory");
	error = r3;
	ebb_read_bhrb(entries);
	return error;
}

static void read_sight(struct sight *s)
{
	int pmc;

	/* Read the PMCs first, because they are counting. */
	for (pmc = 1; pmc <= MAX_PMC; pmc++)
		s->pmc[pmc] = ebb_read_pmc(pmc);
	s->mmcr0 = ebb_mfspr(EBB_SPR_MMCR0);
	s->mmcr1 = ebb_mfspr(SPR_MMCR1);
	s->mmcr2 = ebb_mfspr(EBB_SPR_MMCR2);
	s->mmcra = ebb_mfspr(EBB_SPR_MMCRA);
	s->siar = ebb_mfspr(EBB_SPR_SIAR);
	s->sdar = ebb_mfspr(EBB_SPR_SDAR);
	s->sier = ebb_mfspr(EBB_SPR_SIER);
	if (cpu_is_v31()) {
		s->mmcr3 = ebb_mfspr(EBB_SPR_MMCR3);
		s->sier2 = ebb_mfspr(EBB_SPR_SIER2);
		s->sier3 = ebb_mfspr(EBB_SPR_SIER3);
	}
	s->bescr = ebb_mfspr(EBB_SPR_BESCR);
	s->ebbhr = ebb_mfspr(EBB_SPR_EBBHR);
	s->ebbrr = ebb_mfspr(EBB_SPR_EBBRR);
	s->tar = ebb_mfspr(SPR_TAR);
	s->ill = tally.ill;
}

/* Clear all PMCs after 100 EBBs: a PMC that stays negative causes endless EBBs. */
static void end_the_storm(struct ebb_regs *regs)
{
	int pmc;

	(void)regs;
	for (pmc = 1; pmc <= MAX_PMC && tally.count > 100; pmc++)
		ebb_write_pmc(pmc, 0);
}

/*
 * Count EBBs while no PMC of this task is near an overflow, so that each EBB is
 * caused by a value that another task has left in a register.
 */
static void count_uninvited(struct sight *s)
{
	memset(&tally, 0, sizeof(tally));
	tally.hook = end_the_storm;
	ebb_enable(tally_handler);
	ebb_mtspr(EBB_SPR_BESCRS, EBB_BESCR_PME);
	work(1000);
	ebb_rearm();
	work(OWN_COUNT);
	ebb_disable();
	asm volatile("" : : : "memory");
	s->ebbs = tally.count;
}

static int open_group(unsigned int pmcs, unsigned long flags, int *fds)
{
	int leader = -1, pmc;

	for (pmc = 1; pmc <= MAX_PMC; pmc++) {
		if (!(pmcs & (1u << pmc)))
			continue;
		fds[pmc] = ebb_open(event_on(pmc) | flags, 0, leader);
		if (fds[pmc] < 0)
			return -1;
		if (leader < 0)
			leader = fds[pmc];
	}
	return leader;
}

static bool is_on_the_pmu(int fd)
{
	unsigned long value;

	return read(fd, &value, sizeof(value)) == sizeof(value);
}

/* Write a value to TAR by which the new owner of the PMU can recognize its own TAR. */
static void write_own_tar(struct sight *s)
{
	s->first_tar = ebb_mfspr(SPR_TAR);
	ebb_mtspr(SPR_TAR, OWN_TAR);
}

/* Open and enable events as the new owner of the PMU, and read the registers. */
static int take_and_look(struct scene *scene)
{
	int fds[MAX_PMC + 1], leader = scene->kept;

	catch_ill();
	tally.ill = 0;
	write_own_tar(&scene->sight);
	if (leader < 0)
		leader = open_group(scene->pmcs, 0, fds);
	if (leader < 0)
		return 10;
	if (scene->kept >= 0)
		ebb_read_bhrb(scene->sight.bhrb);
	else if (enable_and_read_bhrb(leader, scene->sight.bhrb))
		return 11;
	if (scene->armed)
		count_uninvited(&scene->sight);
	else
		read_sight(&scene->sight);
	return is_on_the_pmu(leader) ? 0 : 12;
}

static int be_the_owner(struct parent *parent, void *arg)
{
	(void)parent;
	return take_and_look(arg);
}

/*
 * As the previous user of the PMU, with EBB events: write the pattern to all
 * registers, including PMCs without an event, while the counters are frozen.
 * Return 0 on success. The events stay open, with their file descriptors
 * in @fds.
 */
static int plant_ebb(const struct pattern *pattern, int *fds)
{
	unsigned long entries[EBB_BHRB_ENTRIES];
	struct user_state state;
	int leader, pmc, tries;
	unsigned long ill;

	catch_ill();
	memset(fds, -1, (MAX_PMC + 1) * sizeof(*fds));
	/* Let the BHRB record only conditional branches, as in planted_code(). */
	leader = open_group(pattern->pmcs, EBB_EVENT_BHRB | EBB_EVENT_IFM(3), fds);
	if (leader < 0 || ebb_start(leader))
		return 20;
	/*
	 * Values left in the PMCs by an earlier test can cause endless EBBs: let
	 * end_the_storm() clear the PMCs.
	 */
	arm_with_hook(1u << 1, PERIOD, end_the_storm);
	planted_code(2 * PERIOD);
	ebb_disable();
	if (tally.count < 3)
		return 21;
	/* Keep the counter far from an alert while the registers are filled. */
	ebb_set_period(1, 0x40000000);
	/* Try again if an interrupt has overwritten the entries of the BHRB. */
	for (tries = 0; tries < 100; tries++) {
		ebb_rearm();
		planted_code_and_freeze(100);
		ebb_read_bhrb(entries);
		if (is_planted(entries[0]) && is_planted(entries[EBB_BHRB_ENTRIES - 1]))
			break;
	}
	if (tries == 100)
		return 22;

	ebb_mtspr(EBB_SPR_BESCRR, EBB_BESCR_GE | EBB_BESCR_PME | EBB_BESCR_PMEO);
	for (pmc = 1; pmc <= MAX_PMC; pmc++)
		ebb_write_pmc(pmc, pattern->pmc + pmc);
	ebb_mtspr(EBB_SPR_MMCR2, MMCR2_USER);
	if (cpu_is_v31())
		ebb_mtspr(EBB_SPR_MMCR3, ~0ul);
	/* Where user mode cannot write MMCRA, catch_ill() skips this: count no SIGILL for it. */
	ill = tally.ill;
	ebb_mtspr(EBB_SPR_MMCRA, MMCRA_PATTERN);
	tally.ill = ill;
	ebb_mtspr(EBB_SPR_MMCR0, pattern->mmcr0);
	ebb_mtspr(EBB_SPR_EBBHR, pattern->address);
	ebb_mtspr(EBB_SPR_EBBRR, pattern->address);
	ebb_mtspr(EBB_SPR_BESCRS, pattern->bescr);
	ebb_mtspr(SPR_TAR, pattern->address);

	read_state(&state);
	/* The kernel can change a PMC without an event, so write the PMCs again. */
	for (pmc = 1; pmc <= MAX_PMC; pmc++) {
		if ((pattern->pmcs & (1u << pmc)) && state.pmc[pmc] != pattern->pmc + pmc)
			return 23;
		ebb_write_pmc(pmc, pattern->pmc + pmc);
	}
	if (state.mmcr0 != pattern->mmcr0 || state.mmcr2 != MMCR2_USER ||
	    state.ebbhr != pattern->address || state.ebbrr != pattern->address ||
	    !(state.bescr & pattern->bescr) || !state.siar || !state.sier)
		return 24;
	if (cpu_is_v31() && !state.mmcr3)
		return 25;
	return tally.ill ? 26 : 0;
}

static void close_all(const int *fds)
{
	int pmc;

	for (pmc = MAX_PMC; pmc; pmc--) {
		if (fds[pmc] >= 0)
			close(fds[pmc]);
	}
}

/* As the previous user of the PMU, with plain events: fill the registers */
static int plant_plain(const struct scene *scene, bool of_the_cpu)
{
	const struct pattern *pattern = scene->pattern;
	struct perf_event_attr attr = {
		.type = PERF_TYPE_RAW,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
			       PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	int last = pattern->plain_pmc, pmc = last, fd = -1;
	struct count count;
	unsigned long left;

	if (!pmc) {
		attr.sample_period = 1000;
		attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_BRANCH_STACK;
		attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY |
			PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_KERNEL;
		pmc = 1;
		last = 4;
	}
	for (; pmc <= last; pmc++) {
		attr.config = event_on(pmc);
		fd = perf_open(&attr, of_the_cpu ? -1 : 0,
			       of_the_cpu ? scene->cpu : -1, -1);
		if (fd < 0)
			return 30;
	}
	ebb_mtspr(SPR_TAR, pattern->address);
	/*
	 * PMC5 and PMC6 run together, so that the PMC without an event counts
	 * about as much as the event. For sampling events, run the nops only
	 * once, because the kernel can throttle the events.
	 */
	do {
		if (read_count(fd, &count) != sizeof(count) || !count.enabled ||
		    count.running != count.enabled)
			return 31;
		left = pattern->nops > count.value ? pattern->nops - count.value : 0;
		run_nops(left < 0x4000000 ? left : 0x4000000);
	} while (left && pattern->plain_pmc);
	planted_code(1000);
	return 0;
}

/*
 * The next functions are previous users of the PMU in a separate process: they
 * leave the pattern in the registers, tell the parent, and most of them wait until
 * the parent lets them end.
 */
static int plant_and_wait(struct parent *parent, void *arg)
{
	struct scene *scene = arg;
	int fds[MAX_PMC + 1], error;

	if (bind_to(scene->cpu))
		return 1;
	error = plant_ebb(scene->pattern, fds);
	if (error)
		return error;
	return parent_tell(parent) || parent_wait(parent) ? 2 : 0;
}

static int plant_close_and_wait(struct parent *parent, void *arg)
{
	struct scene *scene = arg;
	int fds[MAX_PMC + 1], error;

	error = plant_ebb(scene->pattern, fds);
	if (error)
		return error;
	close_all(fds);
	return parent_tell(parent) || parent_wait(parent) ? 2 : 0;
}

static int plant_and_exit(struct parent *parent, void *arg)
{
	struct scene *scene = arg;
	int fds[MAX_PMC + 1], error;

	error = plant_ebb(scene->pattern, fds);
	if (error)
		return error;
	/* Tell the parent, which then waits for the end of this process. */
	return parent_tell(parent) ? 2 : 0;
}

static int count_and_wait(struct parent *parent, void *arg)
{
	struct scene *scene = arg;
	int error;

	if (bind_to(scene->cpu))
		return 1;
	error = plant_plain(scene, false);
	if (error)
		return error;
	return parent_tell(parent) || parent_wait(parent) ? 2 : 0;
}

static int count_cpu_and_wait(struct parent *parent, void *arg)
{
	struct scene *scene = arg;
	int error;

	error = plant_plain(scene, true);
	if (error)
		return error;
	return parent_tell(parent) || parent_wait(parent) ? 2 : 0;
}

/* Run @plant, the previous user of the PMU, in a process, and then start the new owner. */
static int after_another(struct scene *scene, child_fn *plant)
{
	struct child planter, owner;
	bool waits = plant != plant_and_exit;
	int error, end;

	if (child_start(&planter, plant, scene))
		return 40;
	if (child_heard(&planter))
		return child_end(&planter);
	if (!waits) {
		error = child_end(&planter);
		if (error)
			return error;
	}
	if (child_start(&owner, be_the_owner, scene))
		return 41;
	error = child_end(&owner);
	if (waits) {
		child_go(&planter);
		end = child_end(&planter);
		error = error ? error : end;
	}
	return error;
}

static int after_plain_task(struct scene *scene)
{
	return after_another(scene, count_and_wait);
}

static int after_plain_cpu(struct scene *scene)
{
	return after_another(scene, count_cpu_and_wait);
}

static int after_sleeping(struct scene *scene)
{
	return after_another(scene, plant_and_wait);
}

static int after_closed(struct scene *scene)
{
	return after_another(scene, plant_close_and_wait);
}

static int after_exited(struct scene *scene)
{
	return after_another(scene, plant_and_exit);
}

/*
 * In the next functions, the new owner of the PMU is the previous user's process,
 * child or thread.
 */
static int plant_and_fork(struct parent *parent, void *arg)
{
	struct scene *scene = arg;
	int fds[MAX_PMC + 1], error, status;
	pid_t pid;

	(void)parent;
	error = plant_ebb(scene->pattern, fds);
	if (error)
		return error;
	pid = fork();
	if (pid < 0)
		return 50;
	if (!pid)
		_exit(take_and_look(scene));
	if (waitpid(pid, &status, 0) != pid)
		return 51;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 52;
}

static void *look_in_thread(void *arg)
{
	return (void *)(long)take_and_look(arg);
}

static int plant_and_clone(struct parent *parent, void *arg)
{
	struct scene *scene = arg;
	int fds[MAX_PMC + 1], error;
	pthread_t thread;
	void *result;

	(void)parent;
	error = plant_ebb(scene->pattern, fds);
	if (error)
		return error;
	if (pthread_create(&thread, NULL, look_in_thread, scene) ||
	    pthread_join(thread, &result))
		return 53;
	return (long)result;
}

static int plant_and_reopen(struct parent *parent, void *arg)
{
	struct scene *scene = arg;
	int fds[MAX_PMC + 1], error;

	(void)parent;
	error = plant_ebb(scene->pattern, fds);
	if (error)
		return error;
	close_all(fds);
	return take_and_look(scene);
}

static int alone(struct scene *scene, child_fn *fn)
{
	struct child child;

	if (child_start(&child, fn, scene))
		return 42;
	return child_end(&child);
}

static int forked(struct scene *scene)
{
	return alone(scene, plant_and_fork);
}

static int cloned(struct scene *scene)
{
	return alone(scene, plant_and_clone);
}

static int reopened(struct scene *scene)
{
	return alone(scene, plant_and_reopen);
}

/* Execute this program again with --look, which makes it the new owner of the PMU. */
static int execute(const struct scene *scene, int out)
{
	char numbers[4][12];
	char *argv[] = { "ebb_handover", "--look", numbers[0], numbers[1],
			 numbers[2], numbers[3], NULL };
	int values[4] = { out, scene->pmcs, scene->armed, scene->kept };
	int i;

	for (i = 0; i < 4; i++)
		snprintf(numbers[i], sizeof(numbers[i]), "%d", values[i]);
	execv("/proc/self/exe", argv);
	return 60;
}

static int exec_pipe[2];

static int plant_and_execute(struct parent *parent, void *arg)
{
	struct scene *scene = arg;
	int fds[MAX_PMC + 1], error, pmc;

	(void)parent;
	error = plant_ebb(scene->pattern, fds);
	if (error)
		return error;
	for (pmc = 1; pmc <= MAX_PMC && scene->kept >= 0; pmc++) {
		if (fds[pmc] >= 0 && fcntl(fds[pmc], F_SETFD, 0))
			return 61;
		scene->kept = fds[1];
	}
	return execute(scene, exec_pipe[1]);
}

static int look_and_report(char **argv)
{
	struct scene scene = {
		.pmcs = atoi(argv[1]),
		.armed = atoi(argv[2]),
		.kept = atoi(argv[3]),
	};
	int error = take_and_look(&scene);

	if (error)
		return error;
	return write(atoi(argv[0]), &scene.sight, sizeof(scene.sight)) !=
	       sizeof(scene.sight);
}

static int executed(struct scene *scene)
{
	struct child child;
	ssize_t n;
	int error;

	if (pipe(exec_pipe) || child_start(&child, plant_and_execute, scene))
		return 62;
	close(exec_pipe[1]);
	n = read(exec_pipe[0], &scene->sight, sizeof(scene->sight));
	close(exec_pipe[0]);
	error = child_end(&child);
	if (!error && n != sizeof(scene->sight))
		error = 63;
	return error;
}

static int executed_with_the_event(struct scene *scene)
{
	scene->kept = 0;
	return executed(scene);
}

/* Run a new owner of the PMU that migrates with values in its registers */
static int migrate_and_look(struct parent *parent, void *arg)
{
	struct scene *scene = arg;
	int fds[MAX_PMC + 1], leader, pmc;

	catch_ill();
	tally.ill = 0;
	write_own_tar(&scene->sight);
	if (bind_to(scene->before))
		return 1;
	leader = open_group(scene->pmcs, 0, fds);
	if (leader < 0 || ebb_start(leader))
		return 70;
	ebb_mtspr(EBB_SPR_MMCR0, EBB_MMCR0_FC);
	for (pmc = 1; pmc <= MAX_PMC; pmc++)
		ebb_write_pmc(pmc, OWN_PMC(pmc));
	ebb_mtspr(EBB_SPR_MMCR2, OWN_MMCR2);
	ebb_mtspr(EBB_SPR_EBBHR, OWN_EBBHR);
	ebb_mtspr(EBB_SPR_EBBRR, OWN_EBBRR);
	ebb_mtspr(EBB_SPR_BESCR, EBB_BESCR_PME);
	if (parent_tell(parent) || parent_wait(parent))
		return 2;
	if (bind_to(scene->cpu))
		return 3;
	ebb_read_bhrb(scene->sight.bhrb);
	if (scene->armed)
		count_uninvited(&scene->sight);
	else
		read_sight(&scene->sight);
	return is_on_the_pmu(leader) ? 0 : 12;
}

static int migrated_to(struct scene *scene, child_fn *plant)
{
	struct child planter, owner;
	int error, end;

	if (child_start(&owner, migrate_and_look, scene))
		return 71;
	if (child_heard(&owner))
		return child_end(&owner);
	if (child_start(&planter, plant, scene))
		return 72;
	if (child_heard(&planter))
		return child_end(&planter);
	child_go(&owner);
	error = child_end(&owner);
	child_go(&planter);
	end = child_end(&planter);
	return error ? error : end;
}

static int migrated_to_ebb(struct scene *scene)
{
	return migrated_to(scene, plant_and_wait);
}

static int migrated_to_plain(struct scene *scene)
{
	return migrated_to(scene, count_and_wait);
}

FIXTURE(handover)
{
	struct scene *scene;
};

FIXTURE_VARIANT(handover)
{
	int (*way)(struct scene *scene);
	/* true if the new owner is the previous user's process, child or thread */
	bool same_process;
	/* true if the new owner has used EBBs before and reads its own EBB registers */
	bool same_task;
	/* true if MMCR0[PMAE] has to be clear when the new owner gets the PMU */
	bool disarmed;
	/* true if the new owner has had the PMU before and reads its own PMCs */
	bool migrates;
	bool needs_root;
};

FIXTURE_VARIANT_ADD(handover, after_a_plain_event_of_a_task) {
	.way = after_plain_task,
};

FIXTURE_VARIANT_ADD(handover, after_a_plain_event_of_the_cpu) {
	.way = after_plain_cpu,
	.needs_root = true,
};

FIXTURE_VARIANT_ADD(handover, after_an_ebb_task_that_sleeps) {
	.way = after_sleeping,
};

FIXTURE_VARIANT_ADD(handover, after_an_ebb_task_that_closed_its_events) {
	.way = after_closed,
};

FIXTURE_VARIANT_ADD(handover, after_an_ebb_task_that_exited) {
	.way = after_exited,
};

FIXTURE_VARIANT_ADD(handover, in_a_child_after_fork) {
	.way = forked,
	.same_process = true,
};

FIXTURE_VARIANT_ADD(handover, in_a_thread_after_clone) {
	.way = cloned,
	.same_process = true,
};

FIXTURE_VARIANT_ADD(handover, after_exec_that_closed_the_event) {
	.way = executed,
	.same_process = true,
};

FIXTURE_VARIANT_ADD(handover, after_exec_that_kept_the_event) {
	.way = executed_with_the_event,
	.same_process = true,
	.disarmed = true,
};

FIXTURE_VARIANT_ADD(handover, after_close_and_open) {
	.way = reopened,
	.same_process = true,
	.same_task = true,
};

FIXTURE_VARIANT_ADD(handover, after_migration_to_an_ebb_task) {
	.way = migrated_to_ebb,
	.same_task = true,
	.disarmed = true,
	.migrates = true,
};

FIXTURE_VARIANT_ADD(handover, after_migration_to_a_plain_event) {
	.way = migrated_to_plain,
	.same_task = true,
	.disarmed = true,
	.migrates = true,
};

FIXTURE_SETUP(handover)
{
	if (!ebb_available())
		SKIP(return, "no event-based branches on this machine");
	if (variant->needs_root && getuid())
		SKIP(return, "an event of a CPU needs root");
	if (variant->migrates && nr_cpus() < 2)
		SKIP(return, "needs 2 CPUs");
	self->scene = shared_memory(sizeof(*self->scene));
	ASSERT_NE(NULL, self->scene);
	self->scene->cpu = nth_cpu(0);
	self->scene->before = nth_cpu(1);
	if (!variant->migrates) {
		ASSERT_EQ(0, bind_to(self->scene->cpu));
	}
}

FIXTURE_TEARDOWN(handover)
{
}

/* Run one handover of the PMU; return 0, or the error code of the step that failed. */
static int play(struct scene *scene, int (*way)(struct scene *scene),
		const struct pattern *pattern, unsigned int pmcs, bool armed)
{
	int error;

	scene->pattern = pattern;
	scene->pmcs = pmcs;
	scene->armed = armed;
	scene->kept = -1;
	memset(&scene->sight, 0, sizeof(scene->sight));
	error = way(scene);
	/* Events that were kept over exec use the PMCs of the PMU's previous user. */
	if (scene->kept >= 0)
		scene->pmcs = pattern->pmcs;
	return error;
}

static int first_grant(struct scene *scene)
{
	return alone(scene, be_the_owner);
}

#define FOR_EACH_PATTERN(p)						\
	for (p = patterns; p < patterns + ARRAY_SIZE(patterns); p++)

/* Sets of PMCs with an event: PMC1 alone, PMC5 alone, PMC6 alone, all PMCs */
static const unsigned int groups[] = { 1u << 1, 1u << 5, 1u << 6, 0x7e };

static void check_counters(struct __test_metadata *_metadata,
			   const struct scene *scene, bool migrates)
{
	const struct sight *s = &scene->sight;
	/* PMC5 and PMC6 run together, even if only one of them has an event. */
	unsigned int pmcs = scene->pmcs & 0x60 ? scene->pmcs | 0x60 : scene->pmcs;
	unsigned long own = scene->kept < 0 ? OWN_COUNT : OWN_EXEC_COUNT;
	int pmc;

	for (pmc = 1; pmc <= MAX_PMC; pmc++) {
		const char *name = scene->pattern->name;
		unsigned long seen = s->pmc[pmc];

		if (migrates && (scene->pmcs & (1u << pmc))) {
			EXPECT_EQ(OWN_PMC(pmc), seen) TH_LOG("PMC%d, %s", pmc, name);
		} else if (migrates) {
			EXPECT_TRUE(!seen || seen == OWN_PMC(pmc))
				TH_LOG("PMC%d, %s: %lx", pmc, name, seen);
		} else if (pmcs & (1u << pmc)) {
			EXPECT_GT(own, seen) TH_LOG("PMC%d, %s", pmc, name);
		} else {
			EXPECT_EQ(0, seen) TH_LOG("PMC%d, %s", pmc, name);
		}
	}
}

TEST_F(handover, e27_counters)
{
	const struct pattern *pattern;
	size_t i;

	FOR_EACH_PATTERN(pattern) {
		for (i = 0; i < ARRAY_SIZE(groups); i++) {
			ASSERT_EQ(0, play(self->scene, variant->way, pattern, groups[i], false));
			check_counters(_metadata, self->scene, variant->migrates);
		}
	}
}

TEST_F(handover, e27_control_registers)
{
	const struct sight *s = &self->scene->sight;
	const struct pattern *pattern;
	unsigned long own;

	own = variant->migrates ? EBB_MMCR0_FC : variant->disarmed ? 0 : EBB_MMCR0_PMAE;
	FOR_EACH_PATTERN(pattern) {
		ASSERT_EQ(0, play(self->scene, variant->way, pattern, 1u << 1, false));
		EXPECT_EQ(own, s->mmcr0) TH_LOG("%s", pattern->name);
		EXPECT_EQ(variant->migrates ? OWN_MMCR2 : 0, s->mmcr2)
			TH_LOG("%s", pattern->name);
		EXPECT_EQ(0, s->mmcr3) TH_LOG("%s", pattern->name);
	}
}

TEST_F(handover, e27_event_codes)
{
	const struct sight *s = &self->scene->sight;
	const struct pattern *pattern;
	struct sight first;

	ASSERT_EQ(0, play(self->scene, first_grant, patterns, 1u << 1, false));
	first = *s;
	FOR_EACH_PATTERN(pattern) {
		ASSERT_EQ(0, play(self->scene, variant->way, pattern, 1u << 1, false));
		/* An event that was kept over exec has the old program's event code. */
		if (self->scene->kept >= 0)
			SKIP(return, "the event that exec keeps has its own code");
		EXPECT_EQ(first.mmcr1, s->mmcr1) TH_LOG("%s", pattern->name);
		EXPECT_EQ(first.mmcra, s->mmcra) TH_LOG("%s", pattern->name);
	}
}

TEST_F(handover, e27_sampled_addresses)
{
	const struct sight *s = &self->scene->sight;
	const struct pattern *pattern;

	FOR_EACH_PATTERN(pattern) {
		ASSERT_EQ(0, play(self->scene, variant->way, pattern, 1u << 1, false));
		EXPECT_EQ(0, s->siar) TH_LOG("%s", pattern->name);
		EXPECT_EQ(0, s->sdar) TH_LOG("%s", pattern->name);
		EXPECT_EQ(0, s->sier) TH_LOG("%s", pattern->name);
		EXPECT_EQ(0, s->sier2) TH_LOG("%s", pattern->name);
		EXPECT_EQ(0, s->sier3) TH_LOG("%s", pattern->name);
	}
}

TEST_F(handover, e27_branch_history)
{
	const struct sight *s = &self->scene->sight;
	const struct pattern *pattern;
	int i, planted, kernel;

	FOR_EACH_PATTERN(pattern) {
		ASSERT_EQ(0, play(self->scene, variant->way, pattern, 1u << 1, false));
		/* Check that reading the BHRB has not caused SIGILL. */
		EXPECT_EQ(0, s->ill) TH_LOG("%s", pattern->name);
		for (i = planted = kernel = 0; i < EBB_BHRB_ENTRIES; i++) {
			planted += is_planted(s->bhrb[i]);
			kernel += s->bhrb[i] >> 60 == 0xc;
		}
		EXPECT_EQ(0, planted) TH_LOG("%s", pattern->name);
		if (cpu_is_v31()) {
			EXPECT_EQ(0, kernel) TH_LOG("%s", pattern->name);
		}
	}
}

TEST_F(handover, e27_ebb_registers)
{
	const struct sight *s = &self->scene->sight;
	unsigned long ebbhr, ebbrr, bescr;
	const struct pattern *pattern;

	FOR_EACH_PATTERN(pattern) {
		ASSERT_EQ(0, play(self->scene, variant->way, pattern, 1u << 1, false));
		ebbhr = 0;
		ebbrr = 0;
		bescr = 0;
		if (variant->migrates) {
			ebbhr = OWN_EBBHR;
			ebbrr = OWN_EBBRR;
			bescr = EBB_BESCR_PME;
		} else if (variant->same_task) {
			ebbhr = pattern->address;
			ebbrr = pattern->address;
			/*
			 * Check that the kernel has cleared the pending
			 * exception of the closed events.
			 */
			bescr = pattern->bescr & ~EBB_BESCR_PMEO;
		}
		EXPECT_EQ(ebbhr, s->ebbhr) TH_LOG("%s", pattern->name);
		EXPECT_EQ(ebbrr, s->ebbrr) TH_LOG("%s", pattern->name);
		EXPECT_EQ(bescr, s->bescr) TH_LOG("%s", pattern->name);
	}
}

TEST_F(handover, e27_tar)
{
	const struct sight *s = &self->scene->sight;
	const struct pattern *pattern;

	FOR_EACH_PATTERN(pattern) {
		ASSERT_EQ(0, play(self->scene, variant->way, pattern, 1u << 1, false));
		EXPECT_EQ(OWN_TAR, s->tar) TH_LOG("%s", pattern->name);
		/* A child, a thread or a new program inherits TAR from its process. */
		if (!variant->same_process) {
			EXPECT_NE(pattern->address, s->first_tar)
				TH_LOG("%s", pattern->name);
		}
	}
}

TEST_F(handover, e27_no_uninvited_ebb)
{
	const struct pattern *pattern;
	size_t i;

	FOR_EACH_PATTERN(pattern) {
		for (i = 0; i < ARRAY_SIZE(groups); i++) {
			ASSERT_EQ(0, play(self->scene, variant->way, pattern, groups[i], true));
			EXPECT_EQ(0, self->scene->sight.ebbs)
				TH_LOG("%s, events %x", pattern->name, groups[i]);
		}
	}
}

int main(int argc, char **argv)
{
	if (argc == 6 && !strcmp(argv[1], "--look"))
		return look_and_report(argv + 2);
	return test_harness_run(argc, argv);
}
