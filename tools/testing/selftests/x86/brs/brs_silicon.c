// SPDX-License-Identifier: GPL-2.0
/*
 * Ask the processor questions about branch sampling that no manual answers.  For
 * each question, the program prints a line "# question: answer", and runs a test
 * that passes if the question could be answered, whatever the answer is.
 *
 * The kernel module brs_probe, if it is loaded, asks the questions that a program
 * in user mode cannot ask.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "brs.h"
#include "kselftest.h"

#define PROBE		"/sys/kernel/debug/amd_brs_probe"

#define INSTRUCTIONS	0xc0

/* Number of jumps in ask_row(), and a period that ends only once in these jumps */
#define ROW		4000
#define PERIOD		2500
/* Number of samples for each question */
#define RUNS		64
#define PAGES		256

#define TEXT_OF(x)	#x
#define TEXT(x)		TEXT_OF(x)

/*
 * ask_row(fd, request): call ioctl() by an instruction that is followed by a row
 * of jumps, each to the next instruction.  ask_fused_row() has a comparison before
 * each jump.
 *
 * ask_touch(from, pages): write to each page.
 */
asm(".text\n"
	".macro	enable\n"
	"	mov	$16, %eax\n"
	"	xor	%edx, %edx\n"
	"	syscall\n"
	".endm\n"
	"ask_row:\n"
	"	enable\n"
	"ask_row_start:\n"
	"	.rept	" TEXT(ROW) "\n"
	"	.byte	0xeb, 0x00\n"
	"	.endr\n"
	"	ret\n"
	"	.balign	64\n"
	"ask_fused_row:\n"
	"	enable\n"
	"ask_fused_start:\n"
	"	.rept	" TEXT(ROW) "\n"
	"	.byte	0x39, 0xc0, 0x74, 0x00\n"	/* cmp %eax, %eax; je */
	"	.endr\n"
	"	ret\n"
	"ask_touch:\n"
	"1:	movb	$1, (%rdi)\n"
	"	add	$4096, %rdi\n"
	"	dec	%rsi\n"
	"	jnz	1b\n"
	"	ret\n");
void ask_row(int fd, unsigned long request);
void ask_fused_row(int fd, unsigned long request);
void ask_touch(char *from, unsigned long pages);
extern const char ask_row_start[], ask_fused_start[];

/* The values that were measured for one question */
struct values {
	long value[RUNS];
	unsigned int nr;
};

static void add(struct values *values, long value)
{
	values->value[values->nr++] = value;
}

__attribute__((format(printf, 2, 3)))
static void answer(const char *question, const char *format, ...)
{
	char text[200];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	ksft_print_msg("%s: %s\n", question, text);
	ksft_test_result_pass("asked: %s\n", question);
}

/* Answer a question by the range of values that were measured more than once */
static void answer_range(const char *question, const struct values *values)
{
	long min = LONG_MAX, max = LONG_MIN;
	unsigned int i, j, same;

	for (i = 0; i < values->nr; i++) {
		for (j = 0, same = 0; j < values->nr; j++)
			same += values->value[j] == values->value[i];
		/* An interrupt in the row causes a value that is not measured again */
		if (same == 1)
			continue;
		min = values->value[i] < min ? values->value[i] : min;
		max = values->value[i] > max ? values->value[i] : max;
	}

	if (min > max) {
		ksft_print_msg("%s: not seen\n", question);
		ksft_test_result_skip("asked: %s\n", question);
	} else if (min == max) {
		answer(question, "%ld", min);
	} else {
		answer(question, "%ld to %ld", min, max);
	}
}

/*
 * Run a row of jumps with a new event.
 * Return: 1 if there was a sample, with the first sample in @s; 0 if there was no
 * sample; a negative error number.
 */
static int sample(struct perf_event_attr *attr, void (*row)(int fd, unsigned long request),
		  struct brs_sample *s)
{
	struct brs_event e;
	int err = brs_open(&e, attr, 0, -1, 8);

	if (err)
		return err;
	row(e.fd, PERF_EVENT_IOC_ENABLE);
	brs_stop(&e);
	err = brs_next(&e, s);
	brs_close(&e);
	return err;
}

static struct perf_event_attr user_attr(bool stack)
{
	struct perf_event_attr attr = stack ? brs_attr(PERIOD) : brs_plain_attr(PERIOD);

	attr.exclude_kernel = 1;
	attr.exclude_hv = 1;
	return attr;
}

static long jumps(__u64 address)
{
	return ((long)address - (long)ask_row_start) / 2;
}

static void ask_recording(void)
{
	struct perf_event_attr attr = user_attr(true);
	struct values skid = { .nr = 0 }, late = { .nr = 0 };
	struct brs_sample s;
	int i;

	for (i = 0; i < RUNS; i++) {
		if (sample(&attr, ask_row, &s) <= 0 || s.nr != BRS_DEPTH)
			continue;
		/* If a branch is outside the row, an interrupt has hit the recording */
		if (jumps(s.branch[0].from) < 0 || jumps(s.branch[0].from) >= ROW ||
		    jumps(s.branch[BRS_DEPTH - 1].from) < 0)
			continue;
		add(&skid, jumps(s.branch[BRS_DEPTH - 1].from) - (PERIOD - BRS_DEPTH));
		if (jumps(s.ip) >= 0 && jumps(s.ip) <= ROW)
			add(&late, jumps(s.ip) - jumps(s.branch[0].to));
	}
	answer_range("branches from the overflow to the first that is recorded", &skid);
	answer_range("branches from the last that is recorded to the interrupt", &late);
}

static void ask_plain(void)
{
	struct perf_event_attr attr = user_attr(false);
	struct values delay = { .nr = 0 };
	struct brs_sample s;
	int i, lost = 0;

	for (i = 0; i < RUNS; i++) {
		if (sample(&attr, ask_row, &s) <= 0)
			lost++;
		else if (jumps(s.ip) >= 0 && jumps(s.ip) <= ROW)
			add(&delay, jumps(s.ip) - PERIOD);
	}
	answer_range("instructions from an overflow without BRS to the interrupt", &delay);
	answer("interrupts lost", "%d of %d", lost, RUNS);
}

static void ask_fused(void)
{
	static const char question[] = "source of a jump that is fused with a comparison";
	struct perf_event_attr attr = user_attr(true);
	unsigned int at[4] = { 0 }, i, j;
	struct brs_sample s;

	for (i = 0; i < RUNS / 4; i++) {
		if (sample(&attr, ask_fused_row, &s) <= 0)
			continue;
		for (j = 0; j < s.nr; j++) {
			unsigned long offset = s.branch[j].from - (unsigned long)ask_fused_start;

			if (offset < 4 * ROW)
				at[offset % 4]++;
		}
	}
	if (at[0] && at[2])
		answer(question, "the jump %u times, the comparison %u times", at[2], at[0]);
	else if (at[0] || at[2])
		answer(question, at[0] ? "the comparison" : "the jump");
	else
		ksft_test_result_skip("asked: %s\n", question);
}

/* Return the number of additional events counted while each page faults on first touch */
static long count_faults(__u64 config)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_RAW,
		.size		= sizeof(attr),
		.config		= config,
		.exclude_kernel	= 1,
		.disabled	= 1,
	};
	__u64 count[2];
	char *pages;
	int fd, i;

	fd = brs_try(&attr, 0, -1, -1);
	if (fd < 0)
		return fd;
	pages = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		     -1, 0);
	if (pages == MAP_FAILED) {
		close(fd);
		return -ENOMEM;
	}
	madvise(pages, PAGES * 4096, MADV_NOHUGEPAGE);
	for (i = 0; i < 2; i++) {
		ioctl(fd, PERF_EVENT_IOC_RESET, 0);
		ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
		ask_touch(pages, PAGES);
		ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
		count[i] = brs_count(fd);
	}
	munmap(pages, PAGES * 4096);
	close(fd);
	return count[0] - count[1];
}

static void ask_exceptions(void)
{
	static const struct {
		__u64 config;
		const char *question;
	} events[] = {
		{ INSTRUCTIONS, "user instructions counted for a page fault" },
		{ BRS_EVENT, "taken user branches counted for a page fault" },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(events); i++) {
		long more = count_faults(events[i].config);

		/* Divide by the number of pages, which rounds off the few events of interrupts */
		answer(events[i].question, "%ld", (more + PAGES / 2) / PAGES);
	}
}

/* Print the answers of brs_probe, a line for each answer; @text is overwritten */
static void tell(char *text)
{
	char *line, *colon;

	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		ksft_print_msg("%s\n", line);
		colon = strchr(line, ':');
		if (!colon)
			continue;
		*colon = 0;
		if (strstr(colon + 1, "not seen"))
			ksft_test_result_skip("asked: %s\n", line);
		else
			ksft_test_result_pass("asked: %s\n", line);
	}
}

/* Read the answers of brs_probe into @text; return their number, or a negative error */
static int ask_kernel(char *text, size_t size)
{
	FILE *file = fopen(PROBE, "r");
	size_t length;
	int n = 0;

	if (!file)
		return -errno;
	length = fread(text, 1, size - 1, file);
	if (!length && ferror(file))
		n = -errno;
	fclose(file);
	text[length] = 0;
	for (text = strchr(text, '\n'); text; text = strchr(text + 1, '\n'))
		n++;
	return n;
}

int main(void)
{
	struct brs_limits limits;
	char answers[4096];
	int n;

	ksft_print_header();
	if (!brs_present())
		ksft_exit_skip("this processor has no BRS, or this kernel no driver for BRS\n");

	brs_limits_lift(&limits);
	n = ask_kernel(answers, sizeof(answers));
	ksft_set_plan(7 + (n > 0 ? n : 1));
	ask_recording();
	ask_plain();
	ask_fused();
	ask_exceptions();
	if (n > 0)
		tell(answers);
	else
		ksft_test_result_skip("asked by the module brs_probe: %s: %s\n", PROBE,
				      strerror(-n));
	brs_limits_restore(&limits);
	ksft_finished();
}
