/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the tests of AMD Branch Sampling (BRS): an event with its ring
 * buffer, code with known branches, and the symbols of the kernel.
 */
#ifndef BRS_H
#define BRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <linux/perf_event.h>

#define ARRAY_LEN(a)	(sizeof(a) / sizeof((a)[0]))

#define BRS_DEPTH	16
#define BRS_EVENT	0xc4	/* branch-brs: retired taken branches */

/* Mask for sample_regs_intr: PERF_REG_X86_* 0 to 23 except DS, ES, FS and GS */
#define BRS_REGS	0xff0fffULL

struct brs_sample {
	__u64 ip;
	__u32 pid, tid;
	__u64 count;		/* the event's count, read with PERF_SAMPLE_READ */
	__u64 period;
	__u64 nr_chain;
	__u64 chain[128];
	__u64 nr;
	struct perf_branch_entry branch[64];
	__u64 nr_regs;
	__u64 regs[64];
};

struct brs_event {
	int fd;
	__u64 sample_type;
	__u64 regs_mask;
	struct perf_event_mmap_page *page;
	size_t size;
	/* lost samples and throttling records that brs_next() has counted */
	__u64 lost, throttled, unthrottled;
};

bool brs_present(void);

/* Get attributes of branch-brs with branch stacks, for user and kernel, disabled */
struct perf_event_attr brs_attr(__u64 period);
/* Get attributes of branch-brs without branch stacks; an event with period 0 only counts */
struct perf_event_attr brs_plain_attr(__u64 period);
int brs_try(struct perf_event_attr *attr, pid_t pid, int cpu, int group);
int brs_open(struct brs_event *event, struct perf_event_attr *attr, pid_t pid, int cpu,
	     unsigned int pages);
void brs_close(struct brs_event *event);
void brs_start(struct brs_event *event);
void brs_stop(struct brs_event *event);
bool brs_next(struct brs_event *event, struct brs_sample *sample);
__u64 brs_count(int fd);

/*
 * Numbers of samples, by the contents of their branch stacks; brs_drain()
 * increments them
 */
struct brs_tally {
	unsigned long samples, empty, full;
	unsigned long exact;	/* full stacks of brs_mix() without an error */
	unsigned long wrong;	/* stacks of brs_mix() with an error */
	unsigned long other;	/* full stacks without a branch of brs_mix() */
};

void brs_drain(struct brs_event *event, struct brs_tally *tally);

/* A taken branch of the code in brs_code.S */
struct brs_known {
	__u64 from, to;
	__u64 type;		/* PERF_BR_* type of the branch */
};

#define BRS_MIX		8
extern const struct brs_known brs_mix_branches[BRS_MIX];
void brs_mix(long loops);
int brs_mix_index(__u64 from);
int brs_mix_breaks(const struct brs_sample *sample);

#define BRS_CHAIN	4097	/* taken branches in one round of brs_chain() */
extern const char brs_chain_start[], brs_chain_end[];
void brs_chain(long rounds);

void brs_getpid(long loops);
void brs_mixed_calls(long loops);

extern const char brs_body_a_start[], brs_body_a_end[];
extern const char brs_body_b_start[], brs_body_b_end[];
void brs_body_a(long loops);
void brs_body_b(long loops);

static inline bool brs_is_kernel(__u64 address)
{
	/*
	 * exclude the last page: it has no valid address, and a value in its
	 * range is a small negative number, such as PERF_CONTEXT_KERNEL
	 */
	return address >= 0xffff800000000000ULL && address < 0xfffffffffffff000ULL;
}

static inline bool brs_within(__u64 address, const char *start, const char *end)
{
	return address >= (uintptr_t)start && address < (uintptr_t)end;
}

/* Load the names of the kernel's functions from /proc/kallsyms, and find them by address */
bool brs_symbols_load(void);
const char *brs_symbol(__u64 address);
bool brs_symbol_has(__u64 address, const char *const *words);
const char *brs_nmi_function(const struct brs_sample *sample);
bool brs_crosses_idle(const struct brs_sample *sample);

/* Read and write files below /proc and /sys */
bool brs_read_file(const char *path, char *text, size_t size);
bool brs_write_file(const char *path, const char *text);
void brs_pin(int cpu);
bool brs_ping_pong(int cpu, int partner_cpu, long rounds);

/* Return the number of PMU interrupts since boot, summed over all CPUs. */
unsigned long brs_interrupts(void);

/* Saved values of the sysctls that limit the rate of samples, to be restored */
struct brs_limits {
	char rate[32], percent[32];
};

bool brs_limits_lift(struct brs_limits *saved);
bool brs_limits_rate(struct brs_limits *saved, const char *rate);
void brs_limits_restore(const struct brs_limits *saved);

#endif /* BRS_H */
