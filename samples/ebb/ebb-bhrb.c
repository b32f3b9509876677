// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ebb-bhrb: a program that shows which branches it took before each event.
 *
 * When a counter overflows, the processor's branch history buffer (BHRB) contains
 * the last branches of the program. The EBB handler stores the BHRB, and at the
 * end the program prints the branches as a tree with the number of events for each
 * branch: the last branch before the event, below it the branch before that branch,
 * and so on.
 *
 * The profiled function run() spends nearly all of its time in leaf(), which it
 * calls three times through often() and once through rarely(). So the right tree
 * is known beforehand.
 */
#include <err.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "ebb.h"

/* The number of branches before an event that the tree shows */
#define DEPTH		4
#define MAX_NODES	1000
#define MAX_SAMPLES	20000
/* The tree leaves out branches that are in fewer than 1 in SHOWN samples. */
#define SHOWN		50

/* An event that counts instructions (0x02) on PMC1, and a prime number as period */
#define EVENT		(EBB_EVENT_PMC(1) | 0x02)
#define PERIOD		9973

/*
 * The addresses that the handler stores for an event. The handler does not look up
 * the names of the addresses, because it can call only functions that are safe in
 * a signal handler.
 */
struct sample {
	unsigned long where;
	unsigned long entries[EBB_BHRB_ENTRIES];
};

static struct sample samples[MAX_SAMPLES];
static unsigned int nr_samples;

static void keep_sample(struct ebb_regs *regs)
{
	if (nr_samples < MAX_SAMPLES) {
		struct sample *sample = &samples[nr_samples++];

		/*
		 * SIAR is the exact address if it is valid; EBBRR can be a
		 * later address.
		 */
		sample->where = regs->nip;
		if (ebb_mfspr(EBB_SPR_SIER) & EBB_SIER_SIAR_VALID)
			sample->where = ebb_mfspr(EBB_SPR_SIAR);
		ebb_read_bhrb(sample->entries);
	}
	ebb_set_period(1, PERIOD);
	ebb_rearm();
}

/* Functions that find names of addresses in the symbol table of this program */

static const Elf64_Sym *symbols;
static size_t nr_symbols;
static const char *names;
static unsigned long load_bias;

int main(int argc, char **argv);

static void read_symbols(void)
{
	const Elf64_Shdr *sections;
	const Elf64_Ehdr *header;
	struct stat file;
	int fd, i;

	fd = open("/proc/self/exe", O_RDONLY);
	if (fd < 0 || fstat(fd, &file))
		err(1, "/proc/self/exe");
	header = mmap(NULL, file.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (header == MAP_FAILED)
		err(1, "/proc/self/exe");
	close(fd);

	sections = (const void *)((const char *)header + header->e_shoff);
	for (i = 0; i < header->e_shnum; i++) {
		if (sections[i].sh_type != SHT_SYMTAB)
			continue;
		symbols = (const void *)((const char *)header + sections[i].sh_offset);
		nr_symbols = sections[i].sh_size / sizeof(*symbols);
		names = (const char *)header + sections[sections[i].sh_link].sh_offset;
	}
	if (!nr_symbols)
		errx(1, "this program was stripped of its symbols");

	/* A position-independent program is not loaded at its symbols' addresses. */
	for (i = 0; i < (int)nr_symbols; i++) {
		if (!strcmp(names + symbols[i].st_name, "main"))
			load_bias = (unsigned long)main - symbols[i].st_value;
	}
}

static void print_address(unsigned long address)
{
	size_t i;

	for (i = 0; i < nr_symbols; i++) {
		unsigned long offset = address - load_bias - symbols[i].st_value;

		if (ELF64_ST_TYPE(symbols[i].st_info) != STT_FUNC || offset >= symbols[i].st_size)
			continue;
		printf("%s", names + symbols[i].st_name);
		if (offset)
			printf("+0x%lx", offset);
		return;
	}
	if ((long)address < 0)
		printf("kernel");
	else
		printf("0x%lx", address);
}

/*
 * Functions that convert the BHRB entries of a sample to branches, the latest
 * branch first
 */

struct branch {
	unsigned long from;
	unsigned long to;	/* the branch's target; 0: not known */
};

/*
 * Return the target of the branch instruction at @from, or 0 if the target is in
 * a register instead of the instruction.
 */
static unsigned long decoded_target(unsigned long from)
{
	unsigned int insn;
	long offset;

	/* The program cannot read a branch instruction of the kernel. */
	if ((long)from < 0)
		return 0;
	insn = *(const unsigned int *)from;
	switch (insn >> 26) {
	case 18:	/* b, bl */
		offset = (int)(insn << 6) >> 6;
		break;
	case 16:	/* bc */
		offset = (short)insn;
		break;
	default:
		return 0;
	}
	offset &= ~3l;
	return insn & 2 ? (unsigned long)offset : from + offset;
}

static int read_branches(const struct sample *sample, struct branch *branches)
{
	unsigned long target = 0;
	int i, nr = 0;

	for (i = 0; i < EBB_BHRB_ENTRIES && nr < DEPTH && sample->entries[i]; i++) {
		unsigned long address = sample->entries[i] & ~3ul;

		if (sample->entries[i] & EBB_BHRB_TARGET) {
			target = address;
			continue;
		}
		branches[nr].from = address;
		branches[nr].to = target ? target : decoded_target(address);
		target = 0;
		nr++;
	}
	return nr;
}

/* The tree of branches: below each branch are the branches taken before it */

struct node {
	struct branch branch;
	unsigned int count;
	struct node *before;	/* first child: the branches before this branch */
	struct node *sibling;
};

static struct node nodes[MAX_NODES];
static unsigned int nr_nodes;

static struct node *child_of(struct node *parent, const struct branch *branch)
{
	struct node **at = &parent->before;
	struct node *node;

	for (; *at; at = &(*at)->sibling) {
		if ((*at)->branch.from == branch->from && (*at)->branch.to == branch->to)
			return *at;
	}
	if (nr_nodes == MAX_NODES)
		return NULL;
	node = &nodes[nr_nodes++];
	node->branch = *branch;
	*at = node;
	return node;
}

static void add_sample(struct node *root, const struct sample *sample)
{
	struct branch branches[DEPTH];
	struct node *node = root;
	int i, nr;

	nr = read_branches(sample, branches);
	root->count++;
	for (i = 0; i < nr; i++) {
		node = child_of(node, &branches[i]);
		if (!node)
			return;
		node->count++;
	}
}

/* Sort nodes by their count, the highest count first */
static int by_count(const void *a, const void *b)
{
	const struct node *const *left = a, *const *right = b;

	return (*left)->count < (*right)->count ? 1 : -((*left)->count > (*right)->count);
}

static void print_tree(const struct node *parent, int depth, unsigned int all)
{
	struct node *sorted[MAX_NODES];
	unsigned int i, nr = 0;
	struct node *node;

	for (node = parent->before; node; node = node->sibling)
		sorted[nr++] = node;
	qsort(sorted, nr, sizeof(*sorted), by_count);

	for (i = 0; i < nr; i++) {
		if (sorted[i]->count < all / SHOWN)
			break;
		printf("%5.1f%% %*s", 100.0 * sorted[i]->count / all, 2 * depth, "");
		print_address(sorted[i]->branch.from);
		printf(" -> ");
		if (sorted[i]->branch.to)
			print_address(sorted[i]->branch.to);
		else
			printf("?");
		putchar('\n');
		print_tree(sorted[i], depth + 1, all);
	}
}

/* The functions that the program profiles */

#define NOINLINE	__attribute__((noinline))

/* Work without a branch, so that the BHRB contains the calls of leaf() */
static NOINLINE unsigned long leaf(unsigned long seed)
{
	asm volatile(".rept 500; mulld %0,%0,%0; addi %0,%0,13; .endr" : "+b" (seed));
	return seed;
}

static NOINLINE unsigned long often(unsigned long seed)
{
	return leaf(seed) + 1;
}

static NOINLINE unsigned long rarely(unsigned long seed)
{
	return leaf(seed) + 2;
}

static NOINLINE unsigned long run(unsigned long rounds)
{
	unsigned long seed = 1;

	while (rounds--) {
		seed = often(seed);
		seed = often(seed);
		seed = rarely(seed);
		seed = often(seed);
	}
	return seed;
}

/* Return the share of events whose last branch was a call of leaf() by @caller */
static double part_of(const struct node *root, unsigned long (*caller)(unsigned long))
{
	unsigned long start = 0, size = 0;
	unsigned int found = 0, all = 0;
	const struct node *node;
	size_t i;

	for (i = 0; i < nr_symbols; i++) {
		if (symbols[i].st_value + load_bias == (unsigned long)caller &&
		    ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC) {
			start = (unsigned long)caller;
			size = symbols[i].st_size;
		}
	}
	for (node = root->before; node; node = node->sibling) {
		all += node->count;
		if (node->branch.from - start < size)
			found += node->count;
	}
	return all ? (double)found / all : 0;
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 5000;
	struct node root = { };
	volatile unsigned long result;
	double part;
	unsigned int i;
	int fd;

	if (!ebb_available())
		errx(1, "no event-based branches on this machine");
	read_symbols();

	/* POWER10 fills the BHRB only with EBB_EVENT_BHRB; IFM 0 records all branches. */
	fd = ebb_open(EVENT | EBB_EVENT_BHRB | EBB_EVENT_IFM(0), 0, -1);
	if (fd < 0)
		err(1, "the event was refused");
	if (ebb_start(fd))
		err(1, "the event did not get the PMU");
	ebb_enable(keep_sample);
	ebb_set_period(1, PERIOD);
	ebb_rearm();
	result = run(rounds);
	(void)result;
	ebb_disable();
	close(fd);

	for (i = 0; i < nr_samples; i++)
		add_sample(&root, &samples[i]);
	printf("%u events, and the %d branches before them, the latest first\n", nr_samples, DEPTH);
	print_tree(&root, 0, nr_samples);

	part = part_of(&root, often);
	printf("often() led to %.1f%% of the events, rarely() to %.1f%%\n",
	       100 * part, 100 * part_of(&root, rarely));
	if (nr_samples < 100 || part < 0.70 || part > 0.80)
		errx(1, "the shares should be 75%% and 25%%, of at least 100 events");
	return 0;
}
