// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ebb-profile: a program that profiles itself with event-based branches (EBB).
 *
 * The program asks the kernel for an EBB event. The processor then branches to
 * the program's handler once in a fixed number of instructions or cycles, without
 * a signal, an interrupt or a system call. The handler counts samples for the
 * function that was running. The functions repeat the same work, each a known
 * number of times, so that the right profile is known beforehand.
 */
#include <err.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "ebb.h"

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

/* Event codes from the processor's manual, without the number of a PMC */
struct cpu_events {
	const char *platform;
	const char *name;
	unsigned long cycles;
	unsigned long instructions;
};

static const struct cpu_events cpus[] = {
	{ "power8",  "POWER8",  0x1e, 0x02 },
	{ "power9",  "POWER9",  0x1e, 0x02 },
	{ "power10", "POWER10", 0x1e, 0x02 },
	{ "power11", "POWER11", 0x1e, 0x02 },
	{ "power12", "Power12", 0x1e, 0x02 },
};

/*
 * Each profiled function is in a section of its own, so that the linker defines
 * symbols for the start and the end of the function. The empty asm prevents the
 * compiler from removing the loop, because nothing uses the result.
 */
#define PROFILED(name)							\
extern const char __start_code_##name[], __stop_code_##name[];		\
__attribute__((section("code_" #name), noinline))			\
static unsigned long name(unsigned long seed, unsigned long rounds)	\
{									\
	while (rounds--) {						\
		seed = seed * 6364136223846793005 + 1442695040888963407; \
		asm volatile("" : "+r" (seed));				\
	}								\
	return seed;							\
}

PROFILED(light)
PROFILED(medium)
PROFILED(heavy)

#define FUNCTION(name, weight)						\
	{ #name, name, weight, __start_code_##name, __stop_code_##name }

static const struct function {
	const char *name;
	unsigned long (*run)(unsigned long seed, unsigned long rounds);
	unsigned int weight;
	const char *start;
	const char *stop;
} functions[] = {
	FUNCTION(light, 1),
	FUNCTION(medium, 3),
	FUNCTION(heavy, 6),
};

#define NR_FUNCTIONS	ARRAY_SIZE(functions)

static int pmc = 1;
static unsigned int period = 20000;

/* Sample counts that the handler increments; read them after ebb_disable(). */
static unsigned int hits[NR_FUNCTIONS];
static unsigned int elsewhere;

/* Return the address of the instruction at which the counter overflowed */
static unsigned long sampled_address(const struct ebb_regs *regs)
{
	if (ebb_mfspr(EBB_SPR_SIER) & EBB_SIER_SIAR_VALID)
		return ebb_mfspr(EBB_SPR_SIAR);
	return regs->nip;
}

static void count_sample(struct ebb_regs *regs)
{
	const char *address = (const char *)sampled_address(regs);
	unsigned int i;

	for (i = 0; i < NR_FUNCTIONS; i++) {
		if (address >= functions[i].start &&
		    address < functions[i].stop)
			break;
	}
	if (i < NR_FUNCTIONS)
		hits[i]++;
	else
		elsewhere++;

	ebb_set_period(pmc, period);
	ebb_rearm();
}

static const struct cpu_events *this_cpu(void)
{
	unsigned long auxv = getauxval(AT_BASE_PLATFORM);
	const char *platform;
	size_t i;

	if (!auxv)
		auxv = getauxval(AT_PLATFORM);
	platform = auxv ? (const char *)auxv : "unknown";
	for (i = 0; i < ARRAY_SIZE(cpus); i++) {
		if (!strcmp(cpus[i].platform, platform))
			return &cpus[i];
	}
	errx(1, "no event codes known for the processor \"%s\"", platform);
}

static void open_failed(unsigned long code)
{
	switch (errno) {
	case EACCES:
	case EPERM:
		err(1, "not allowed to use the PMU, see /proc/sys/kernel/perf_event_paranoid");
	case ENOSYS:
		errx(1, "this kernel was built without CONFIG_PERF_EVENTS");
	case ENOENT:
	case ENXIO:
	case ENODEV:
	case EOPNOTSUPP:
		err(1, "the kernel has no driver for this processor's PMU");
	default:
		err(1, "the kernel rejected EBB event 0x%lx",
		    (code | EBB_EVENT_EBB));
	}
}

static void print_row(const char *name, double expected, double seen,
		      unsigned int samples)
{
	int i;

	printf("%-10s %7.1f%% %7.1f%% %8u  ", name, expected, seen, samples);
	for (i = 0; i < (int)(seen / 2 + 0.5); i++)
		putchar('#');
	putchar('\n');
}

/*
 * Print the profile. Return true if each function's share is within two percent of
 * its weight: sampling noise and interrupts change the shares by less.
 */
static bool report(unsigned int total_weight)
{
	unsigned int total = elsewhere;
	bool right = true;
	unsigned int i;

	for (i = 0; i < NR_FUNCTIONS; i++)
		total += hits[i];
	if (total < 500) {
		warnx("only %u samples came, which are too few for a profile", total);
		return false;
	}

	puts("function   expected     seen  samples");
	for (i = 0; i < NR_FUNCTIONS; i++) {
		double expected = 100.0 * functions[i].weight / total_weight;
		double seen = 100.0 * hits[i] / total;

		print_row(functions[i].name, expected, seen, hits[i]);
		if (seen < expected - 2 || seen > expected + 2)
			right = false;
	}
	print_row("elsewhere", 0, 100.0 * elsewhere / total, elsewhere);
	if (elsewhere > total / 50)
		right = false;
	return right;
}

static void help(void)
{
	fprintf(stderr,
		"usage: ebb-profile [-c] [-m PMC] [-p PERIOD] [-r ROUNDS]\n"
		"  -c         count cycles (default: instructions)\n"
		"  -m PMC     count on PMC1, 2, 3 or 4 (default: %d)\n"
		"  -p PERIOD  instructions or cycles for each sample (default: %u)\n"
		"  -r ROUNDS  rounds of the loop for weight 1 (default: 2000000)\n",
		pmc, period);
	exit(2);
}

static unsigned long number(const char *text, unsigned long min,
			    unsigned long max)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 0);
	if (errno || end == text || *end || value < min || value > max) {
		warnx("\"%s\" is not in the range from %lu to %lu", text, min, max);
		help();
	}
	return value;
}

int main(int argc, char **argv)
{
	unsigned long rounds = 2000000;
	const struct cpu_events *cpu;
	unsigned int total_weight = 0;
	unsigned long seed = 1;
	bool cycles = false;
	unsigned long code;
	unsigned int i, turn;
	int fd, opt;

	while ((opt = getopt(argc, argv, "cm:p:r:")) != -1) {
		switch (opt) {
		case 'c':
			cycles = true;
			break;
		case 'm':
			pmc = number(optarg, 1, 4);
			break;
		case 'p':
			period = number(optarg, 1000, EBB_NEGATIVE - 1);
			break;
		case 'r':
			rounds = number(optarg, 1, 1ul << 40);
			break;
		default:
			help();
		}
	}
	if (optind != argc)
		help();

	if (!ebb_available())
		errx(1, "no event-based branches: they need POWER8 or later and its PMU driver");
	cpu = this_cpu();
	code = EBB_EVENT_PMC(pmc) | (cycles ? cpu->cycles : cpu->instructions);

	fd = ebb_open(code, 0, -1);
	if (fd < 0)
		open_failed(code);
	if (ebb_start(fd)) {
		if (errno == EBUSY)
			errx(1, "the PMU is held by another pinned event");
		err(1, "cannot enable the event");
	}

	printf("%s: an EBB every %u %s, counted on PMC%d (event 0x%lx)\n",
	       cpu->name, period, cycles ? "cycles" : "instructions", pmc,
	       (code | EBB_EVENT_EBB));
	fflush(stdout);

	ebb_enable(count_sample);
	ebb_set_period(pmc, period);
	ebb_rearm();
	for (turn = 0; turn < 10; turn++) {
		for (i = 0; i < NR_FUNCTIONS; i++)
			seed = functions[i].run(seed, functions[i].weight *
						      (rounds / 10));
	}
	ebb_disable();
	close(fd);

	for (i = 0; i < NR_FUNCTIONS; i++)
		total_weight += functions[i].weight;
	if (!report(total_weight))
		errx(1, "the profile does not fit the weights of the functions");
	return 0;
}
