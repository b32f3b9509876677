// SPDX-License-Identifier: GPL-2.0
/*
 * Test the rows of perf report --sort addr_from,addr_to for given branch stacks.
 *
 * The threads, files and functions are those of hists_common.c, plus one
 * process that runs the program "perf" loaded at another address.
 */
#include <string.h>
#include "util/addr_location.h"
#include "util/branch.h"
#include "util/debug.h"
#include "util/event.h"
#include "util/evlist.h"
#include "util/evsel.h"
#include "util/hist.h"
#include "util/machine.h"
#include "util/parse-events.h"
#include "util/sort.h"
#include "util/thread.h"
#include "tests/tests.h"
#include "tests/hists_common.h"
#include <linux/kernel.h>

#define MOVED_PID	400
#define MOVED_MAP	0x7000000
#define NO_MAP		0x12345000

struct branch {
	u64 from;
	u64 to;
};

struct sampled {
	u32 pid;
	struct branch newest;
	struct branch older;
};

static const struct sampled samples[] = {
	/* branches of one loop in main() of three processes; one has main() at another address */
	{ FAKE_PID_PERF1,
	  { FAKE_IP_PERF_MAIN + 0x20, FAKE_IP_PERF_MAIN + 4 },
	  { FAKE_IP_PERF_MAIN + 0x20, FAKE_IP_PERF_MAIN + 4 } },
	{ FAKE_PID_PERF2,
	  { FAKE_IP_PERF_MAIN + 0x20, FAKE_IP_PERF_MAIN + 4 },
	  { FAKE_IP_PERF_MAIN + 0x20, FAKE_IP_PERF_MAIN + 4 } },
	{ MOVED_PID,
	  { MOVED_MAP + FAKE_SYM_OFFSET1 + 0x20, MOVED_MAP + FAKE_SYM_OFFSET1 + 4 },
	  { MOVED_MAP + FAKE_SYM_OFFSET1 + 0x20, MOVED_MAP + FAKE_SYM_OFFSET1 + 4 } },
	/* a branch of a second loop in main(), and a call of free() */
	{ FAKE_PID_PERF1,
	  { FAKE_IP_PERF_MAIN + 0x22, FAKE_IP_PERF_MAIN + 4 },
	  { FAKE_IP_PERF_MAIN + 8, FAKE_IP_LIBC_FREE } },
	/* a branch in another program at the same offsets, and a branch outside all maps */
	{ FAKE_PID_BASH,
	  { FAKE_IP_BASH_MAIN + 0x20, FAKE_IP_BASH_MAIN + 4 },
	  { NO_MAP + 0x10, NO_MAP } },
};

static int add_branches(struct machine *machine, struct evsel *evsel)
{
	struct addr_location al;
	size_t i;
	int ret = 0;

	addr_location__init(&al);
	for (i = 0; i < ARRAY_SIZE(samples) && !ret; i++) {
		const struct sampled *s = &samples[i];
		u64 stack[1 + 2 * sizeof(struct branch_entry) / sizeof(u64)] = { 2 };
		struct branch_entry *entry = (struct branch_entry *)&stack[1];
		struct perf_sample sample = {
			.evsel		= evsel,
			.period		= 1,
			.cpumode	= PERF_RECORD_MISC_USER,
			.pid		= s->pid,
			.tid		= s->pid,
			.ip		= s->newest.to,
			.no_hw_idx	= true,
			.branch_stack	= (struct branch_stack *)stack,
		};
		struct hist_entry_iter iter = {
			.sample		= &sample,
			.ops		= &hist_iter_branch,
		};

		entry[0].from = s->newest.from;
		entry[0].to = s->newest.to;
		entry[1].from = s->older.from;
		entry[1].to = s->older.to;

		ret = machine__resolve(machine, &al, &sample);
		if (!ret)
			ret = hist_entry_iter__add(&iter, &al, 0, NULL);
	}
	addr_location__exit(&al);
	return ret;
}

/* Print the two address columns of @he as the report shows them, each @width wide. */
static void print_row(struct hists *hists, struct hist_entry *he, int width,
		      char *row, size_t size)
{
	struct perf_hpp hpp = { .buf = row, .size = size };
	int len, saved_verbose = verbose;
	struct perf_hpp_fmt *fmt;

	verbose = 0;
	hists__for_each_sort_list(hists, fmt) {
		if (!perf_hpp__is_sort_entry(fmt))
			continue;
		fmt->user_len = width;
		len = fmt->entry(fmt, &hpp, he);
		hpp.buf += len;
		hpp.size -= len;
		len = scnprintf(hpp.buf, hpp.size, "|");
		hpp.buf += len;
		hpp.size -= len;
	}
	verbose = saved_verbose;
}

/*
 * Return the number of branches in the row @expected (the maximum if several rows
 * have this text)
 */
static unsigned int row_count(struct hists *hists, int width, const char *expected)
{
	struct rb_node *nd;
	unsigned int found = 0;
	char row[256];

	for (nd = rb_first_cached(&hists->entries); nd; nd = rb_next(nd)) {
		struct hist_entry *he = rb_entry(nd, struct hist_entry, rb_node);

		print_row(hists, he, width, row, sizeof(row));
		pr_debug2("%3u  %s\n", he->stat.nr_events, row);
		if (!strcmp(row, expected))
			found = max(found, he->stat.nr_events);
	}
	return found;
}

static int check_rows(struct hists *hists)
{
	const unsigned int hex = BITS_PER_LONG / 4 + 2;
	char nowhere[2 * (BITS_PER_LONG / 4 + 8)];

	TEST_ASSERT_EQUAL("one row for each branch", (int)hists->nr_entries, 5);

	TEST_ASSERT_EQUAL("one branch in three processes",
			  row_count(hists, 0, "[.] main+0x20|[.] main+0x4|"), 6);
	TEST_ASSERT_EQUAL("another branch of that function",
			  row_count(hists, 0, "[.] main+0x22|[.] main+0x4|"), 1);
	TEST_ASSERT_EQUAL("a call shows the start of a function",
			  row_count(hists, 0, "[.] main+0x8|[.] free+0x0|"), 1);

	scnprintf(nowhere, sizeof(nowhere), "[H] %#0*x|[H] %#0*x|",
		  hex, NO_MAP + 0x10, hex, NO_MAP);
	TEST_ASSERT_EQUAL("an address without a function", row_count(hists, 0, nowhere), 1);

	/* in a column that is too narrow, the name is cut but not the offset */
	TEST_ASSERT_EQUAL("narrow columns",
			  row_count(hists, 11, "[.] ma+0x20|[.] mai+0x4|"), 6);
	TEST_ASSERT_EQUAL("no room for any name",
			  row_count(hists, 3, "[.] +0x20|[.] +0x4|"), 6);

	/* the widest entry of each column is an address without a function */
	TEST_ASSERT_EQUAL("width", (int)hists__col_len(hists, HISTC_ADDR_FROM), (int)hex + 4);
	return TEST_OK;
}

static int map_moved_program(struct machine *machine)
{
	struct perf_sample sample = { .cpumode = PERF_RECORD_MISC_USER, };
	union perf_event event = {
		.mmap = {
			.pid = MOVED_PID, .tid = MOVED_PID,
			.start = MOVED_MAP, .len = FAKE_MAP_LENGTH,
			.filename = "perf",
		},
	};

	return machine__process_mmap_event(machine, &event, &sample);
}

static int test__hists_branch(struct test_suite *test __maybe_unused,
			      int subtest __maybe_unused)
{
	enum sort_mode saved_mode = sort__mode;
	const char *saved_order = sort_order;
	struct evlist *evlist = evlist__new();
	struct machines machines = { 0 };
	struct machine *machine;
	struct evsel *evsel;
	int saved_verbose = verbose, err = TEST_FAIL;

	TEST_ASSERT_VAL("No memory", evlist);
	if (parse_event(evlist, "cpu-clock"))
		goto out;

	if (machines__init(&machines))
		goto out;

	machine = setup_fake_machine(&machines);
	if (!machine || map_moved_program(machine))
		goto out;

	sort__mode = SORT_MODE__BRANCH;
	sort_order = "addr_from,addr_to";
	if (setup_sorting(/*evlist=*/NULL, machine->env) < 0)
		goto out;

	evsel = evlist__first(evlist);
	if (add_branches(machine, evsel))
		goto out_reset;

	hists__collapse_resort(evsel__hists(evsel), NULL);

	/* a verbose report also shows the address beside the function */
	verbose = 0;
	evsel__output_resort(evsel, NULL);
	verbose = saved_verbose;
	err = check_rows(evsel__hists(evsel));

	hists__delete_entries(evsel__hists(evsel));
out_reset:
	reset_output_field();
out:
	sort_order = saved_order;
	sort__mode = saved_mode;
	evlist__put(evlist);
	machines__exit(&machines);
	return err;
}

DEFINE_SUITE("Sort branches by address", hists_branch);
