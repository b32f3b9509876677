// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "brs.h"

#define CPU_PMU		"/sys/bus/event_source/devices/cpu"
#define SYSCTL_RATE	"/proc/sys/kernel/perf_event_max_sample_rate"
#define SYSCTL_PERCENT	"/proc/sys/kernel/perf_cpu_time_max_percent"

bool brs_present(void)
{
	return !access(CPU_PMU "/events/branch-brs", R_OK);
}

struct perf_event_attr brs_attr(__u64 period)
{
	struct perf_event_attr attr = {
		.type			= PERF_TYPE_RAW,
		.size			= sizeof(attr),
		.config			= BRS_EVENT,
		.sample_period		= period,
		.sample_type		= PERF_SAMPLE_IP | PERF_SAMPLE_TID |
					  PERF_SAMPLE_PERIOD | PERF_SAMPLE_BRANCH_STACK,
		.branch_sample_type	= PERF_SAMPLE_BRANCH_ANY,
		.disabled		= 1,
	};

	return attr;
}

struct perf_event_attr brs_plain_attr(__u64 period)
{
	struct perf_event_attr attr = brs_attr(period);

	attr.sample_type &= ~PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = 0;
	return attr;
}

/* Open an event; return its file descriptor or a negative error number. */
int brs_try(struct perf_event_attr *attr, pid_t pid, int cpu, int group)
{
	int fd = syscall(SYS_perf_event_open, attr, pid, cpu, group, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/*
 * Open an event with a ring buffer of @pages pages, a power of two.  Return 0 or a
 * negative error number.
 */
int brs_open(struct brs_event *event, struct perf_event_attr *attr, pid_t pid, int cpu,
	     unsigned int pages)
{
	size_t size = (size_t)(pages + 1) * getpagesize();
	void *map;

	memset(event, 0, sizeof(*event));
	event->fd = brs_try(attr, pid, cpu, -1);
	if (event->fd < 0)
		return event->fd;

	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, event->fd, 0);
	if (map == MAP_FAILED) {
		int err = -errno;

		close(event->fd);
		return err;
	}
	event->page = map;
	event->size = size;
	event->sample_type = attr->sample_type;
	event->regs_mask = attr->sample_regs_intr;
	return 0;
}

void brs_close(struct brs_event *event)
{
	munmap(event->page, event->size);
	close(event->fd);
}

void brs_start(struct brs_event *event)
{
	ioctl(event->fd, PERF_EVENT_IOC_ENABLE, 0);
}

void brs_stop(struct brs_event *event)
{
	ioctl(event->fd, PERF_EVENT_IOC_DISABLE, 0);
}

__u64 brs_count(int fd)
{
	__u64 count = 0;

	if (read(fd, &count, sizeof(count)) != sizeof(count))
		return 0;
	return count;
}

/* The 64-bit words of a copied record that are still to be decoded */
struct words {
	const __u64 *at, *end;
};

static __u64 take(struct words *w)
{
	return w->at < w->end ? *w->at++ : 0;
}

static void take_array(struct words *w, void *to, size_t room, __u64 nr, size_t words_each)
{
	__u64 n = nr * words_each;

	if (n > (__u64)(w->end - w->at))
		n = w->end - w->at;
	memcpy(to, w->at, (n * 8 < room) ? n * 8 : room);
	w->at += n;
}

/* Decode the fields of a PERF_RECORD_SAMPLE, in the order of perf_event.h. */
static void decode(const struct brs_event *event, struct words *w, struct brs_sample *s)
{
	__u64 type = event->sample_type, both;

	memset(s, 0, sizeof(*s));
	if (type & PERF_SAMPLE_IP)
		s->ip = take(w);
	if (type & PERF_SAMPLE_TID) {
		both = take(w);
		s->pid = both;
		s->tid = both >> 32;
	}
	if (type & PERF_SAMPLE_PERIOD)
		s->period = take(w);
	if (type & PERF_SAMPLE_READ)
		s->count = take(w);
	if (type & PERF_SAMPLE_CALLCHAIN) {
		s->nr_chain = take(w);
		take_array(w, s->chain, sizeof(s->chain), s->nr_chain, 1);
		if (s->nr_chain > ARRAY_LEN(s->chain))
			s->nr_chain = ARRAY_LEN(s->chain);
	}
	if (type & PERF_SAMPLE_BRANCH_STACK) {
		s->nr = take(w);
		take_array(w, s->branch, sizeof(s->branch), s->nr,
			   sizeof(struct perf_branch_entry) / 8);
		if (s->nr > ARRAY_LEN(s->branch))
			s->nr = ARRAY_LEN(s->branch);
	}
	if (type & PERF_SAMPLE_REGS_INTR && take(w) != PERF_SAMPLE_REGS_ABI_NONE) {
		s->nr_regs = __builtin_popcountll(event->regs_mask);
		take_array(w, s->regs, sizeof(s->regs), s->nr_regs, 1);
	}
}

/*
 * Read records up to the next sample; return false if no sample is left in the ring
 * buffer.  Count lost samples and throttling records in @event.
 */
bool brs_next(struct brs_event *event, struct brs_sample *sample)
{
	size_t room = event->size - getpagesize();
	const char *ring = (const char *)event->page + getpagesize();
	static __u64 record[8192];

	for (;;) {
		__u64 head = __atomic_load_n(&event->page->data_head, __ATOMIC_ACQUIRE);
		__u64 tail = event->page->data_tail;
		struct perf_event_header header;
		struct words w;
		size_t i;

		if (tail == head)
			return false;
		memcpy(&header, ring + tail % room, sizeof(header));
		for (i = 0; i < header.size / 8 && i < ARRAY_LEN(record); i++)
			memcpy(&record[i], ring + (tail + i * 8) % room, 8);
		__atomic_store_n(&event->page->data_tail, tail + header.size, __ATOMIC_RELEASE);

		w.at = record + 1;
		w.end = record + i;
		switch (header.type) {
		case PERF_RECORD_SAMPLE:
			decode(event, &w, sample);
			return true;
		case PERF_RECORD_LOST:
			take(&w);
			event->lost += take(&w);
			break;
		case PERF_RECORD_THROTTLE:
			event->throttled++;
			break;
		case PERF_RECORD_UNTHROTTLE:
			event->unthrottled++;
			break;
		}
	}
}

/* Return the index of the branch of brs_mix() at the address @from, or -1 */
int brs_mix_index(__u64 from)
{
	int i;

	for (i = 0; i < BRS_MIX; i++) {
		if (brs_mix_branches[i].from == from)
			return i;
	}
	return -1;
}

/*
 * Compare a branch stack with the branches that brs_mix() takes.  Return the
 * number of errors: an entry with the wrong target, or an entry whose next older
 * entry is not the previous branch of brs_mix().  Return -1 if the stack contains
 * a branch of other code.
 */
int brs_mix_breaks(const struct brs_sample *s)
{
	int breaks = 0;
	__u64 i;

	for (i = 0; i < s->nr; i++) {
		int this = brs_mix_index(s->branch[i].from);
		int older = i + 1 < s->nr ? brs_mix_index(s->branch[i + 1].from) : 0;

		if (this < 0 || older < 0)
			return -1;
		breaks += s->branch[i].to != brs_mix_branches[this].to;
		breaks += i + 1 < s->nr && this != (older + 1) % BRS_MIX;
	}
	return breaks;
}

static bool has_no_mix(const struct brs_sample *s)
{
	__u64 i;

	for (i = 0; i < s->nr; i++) {
		if (brs_mix_index(s->branch[i].from) >= 0)
			return false;
	}
	return true;
}

/* Read all samples in the ring buffer and add them to @tally. */
void brs_drain(struct brs_event *event, struct brs_tally *tally)
{
	struct brs_sample s;

	while (brs_next(event, &s)) {
		int breaks = brs_mix_breaks(&s);

		tally->samples++;
		tally->empty += !s.nr;
		tally->full += s.nr == BRS_DEPTH;
		tally->exact += !breaks && s.nr == BRS_DEPTH;
		tally->wrong += breaks > 0;
		tally->other += s.nr == BRS_DEPTH && has_no_mix(&s);
	}
}

static struct symbol {
	__u64 start;
	char *name;
} *symbols;
static size_t nr_symbols;

static int by_address(const void *a, const void *b)
{
	const struct symbol *l = a, *r = b;

	return l->start < r->start ? -1 : l->start > r->start;
}

/*
 * Read /proc/kallsyms for brs_symbol().  Return false if the kernel hides its
 * addresses or has no symbols.
 */
bool brs_symbols_load(void)
{
	FILE *file = fopen("/proc/kallsyms", "r");
	unsigned long long start;
	size_t room = 0;
	char type, name[256];

	if (!file)
		return false;
	nr_symbols = 0;
	while (fscanf(file, "%llx %c %255s%*[^\n]", &start, &type, name) == 3) {
		if (!start || !strchr("tTwW", type))
			continue;
		if (nr_symbols == room) {
			room = room ? 2 * room : 32768;
			symbols = realloc(symbols, room * sizeof(*symbols));
			if (!symbols)
				break;
		}
		symbols[nr_symbols].start = start;
		symbols[nr_symbols++].name = strdup(name);
	}
	fclose(file);
	if (nr_symbols)
		qsort(symbols, nr_symbols, sizeof(*symbols), by_address);
	return nr_symbols;
}

const char *brs_symbol(__u64 address)
{
	size_t low = 0, high = nr_symbols;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (symbols[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? symbols[low - 1].name : "";
}

/* Return whether @address is in a kernel function whose name contains one of @words */
bool brs_symbol_has(__u64 address, const char *const *words)
{
	const char *name;

	if (!brs_is_kernel(address))
		return false;
	for (name = brs_symbol(address); *words; words++) {
		if (strstr(name, *words))
			return true;
	}
	return false;
}

/*
 * Return the name of the first function in a branch stack that only an NMI runs:
 * its entry, its exit or the PMU's interrupt handler.  Return NULL if no branch
 * comes from such a function.
 */
const char *brs_nmi_function(const struct brs_sample *s)
{
	static const char *const words[] = {
		"nmi", "paranoid_entry", "paranoid_exit", "error_entry_nmi", "pmu_handle_irq",
		"perf_event_overflow", "perf_event_output", "perf_prepare_sample",
		"perf_output_sample", NULL
	};
	__u64 i;

	for (i = 0; i < s->nr; i++) {
		if (brs_symbol_has(s->branch[i].from, words))
			return brs_symbol(s->branch[i].from);
	}
	return NULL;
}

/*
 * Return whether a branch stack leads from an idle function to an interrupt's
 * entry, which shows that BRS was on in HLT or MWAIT.  Interrupts that come just
 * after another interrupt has returned, or just after perf's idle hook has
 * returned, are ignored: in these cases, HLT was already over.
 */
bool brs_crosses_idle(const struct brs_sample *s)
{
	static const char *const idle[] = {
		"safe_halt", "default_idle", "acpi_idle_do_entry", "acpi_safe_halt", "mwait_idle",
		"intel_idle", "acpi_idle_play_dead", "native_play_dead", "amd_e400_idle", NULL
	};
	static const char *const entries[] = {
		"asm_sysvec_", "asm_common_interrupt", "asm_exc_nmi", "irq_entries_start", NULL
	};
	static const char *const hooks[] = { "perf_idle", NULL };
	/* default_idle_call() enables interrupts after the idle function has returned. */
	static const char *const after[] = { "default_idle_call", NULL };
	__u64 i;

	for (i = 0; i + 1 < s->nr; i++) {
		if (brs_symbol_has(s->branch[i].from, idle) &&
		    !brs_symbol_has(s->branch[i].from, after) &&
		    brs_symbol_has(s->branch[i].to, entries) &&
		    s->branch[i].from != s->branch[i + 1].to &&
		    !brs_symbol_has(s->branch[i + 1].from, hooks))
			return true;
	}
	return false;
}

bool brs_read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = -1;

	if (fd >= 0) {
		len = read(fd, text, size - 1);
		close(fd);
	}
	text[len < 0 ? 0 : len] = 0;
	text[strcspn(text, "\n")] = 0;
	return len >= 0;
}

bool brs_write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = false;

	if (fd >= 0) {
		done = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
		close(fd);
	}
	return done;
}

void brs_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

unsigned long brs_interrupts(void)
{
	FILE *file = fopen("/proc/interrupts", "r");
	unsigned long sum = 0;
	char line[4096], *at, *end;

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		at = strstr(line, "PMI:");
		if (!at)
			continue;
		for (at += 4; ; at = end) {
			unsigned long n = strtoul(at, &end, 10);

			if (end == at)
				break;
			sum += n;
		}
	}
	fclose(file);
	return sum;
}

/*
 * Run one side of brs_ping_pong(): send a byte to the other task, wait until the
 * byte comes back, and run a few branches in each round.
 */
static bool pass_byte(int from, int to, bool first, long rounds)
{
	char byte = 0;
	long i;

	if (first && write(to, &byte, 1) != 1)
		return false;
	for (i = 0; i < rounds; i++) {
		if (read(from, &byte, 1) != 1)
			return false;
		brs_mix(1 + i % 11);
		if ((!first || i + 1 < rounds) && write(to, &byte, 1) != 1)
			return false;
	}
	return true;
}

/*
 * Run two tasks on two CPUs that wait for each other, so that each CPU goes idle in
 * each round.  Return false if a task could not be started or failed.
 */
bool brs_ping_pong(int cpu, int partner_cpu, long rounds)
{
	int to[2], back[2], status = -1;
	pid_t child;
	bool done;

	if (pipe(to) || pipe(back))
		return false;
	child = fork();
	if (!child) {
		close(to[1]);
		close(back[0]);
		brs_pin(partner_cpu);
		_exit(!pass_byte(to[0], back[1], false, rounds));
	}
	close(to[0]);
	close(back[1]);
	brs_pin(cpu);
	done = child > 0 && pass_byte(back[0], to[1], true, rounds);
	close(to[1]);
	close(back[0]);
	if (child > 0)
		waitpid(child, &status, 0);
	return done && !status;
}

/*
 * Set the highest rate of samples and store the old values in @saved.  The kernel
 * accepts no new rate while perf_cpu_time_max_percent is 0.  So set the percentage
 * to 25, then the rate, and then the percentage to 0, with which the kernel does
 * not lower the rate.
 */
bool brs_limits_rate(struct brs_limits *saved, const char *rate)
{
	memset(saved, 0, sizeof(*saved));
	return brs_read_file(SYSCTL_RATE, saved->rate, sizeof(saved->rate)) &&
	       brs_read_file(SYSCTL_PERCENT, saved->percent, sizeof(saved->percent)) &&
	       brs_write_file(SYSCTL_PERCENT, "25") &&
	       brs_write_file(SYSCTL_RATE, rate) &&
	       brs_write_file(SYSCTL_PERCENT, "0");
}

bool brs_limits_lift(struct brs_limits *saved)
{
	return brs_limits_rate(saved, "100000000");
}

void brs_limits_restore(const struct brs_limits *saved)
{
	if (!saved->rate[0])
		return;
	brs_write_file(SYSCTL_PERCENT, "25");
	brs_write_file(SYSCTL_RATE, saved->rate);
	brs_write_file(SYSCTL_PERCENT, saved->percent);
}
