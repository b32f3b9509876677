// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Ask the processor questions about event-based branches that the Power ISA leaves
 * open.  For each question, the program prints a line "# question: answer", and
 * runs a test that passes if the question could be answered, whatever the answer
 * is.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>

#include "ebb_test.h"
#include "kselftest.h"

/* Number of nops in ask_row(), and instructions until the counter becomes negative */
#define ROW	4000
#define START	1000
/* Number of times that a question is asked if its answer is a number */
#define RUNS	32

/*
 * ask_row(mmcr0, end): write @mmcr0 to MMCR0, execute instructions in a row, and
 * write @end to MMCR0.
 */
asm(".pushsection .text\n"
	"	.balign	64\n"
	"ask_row_code:\n"
	"	mtspr	779, 3\n"
	"ask_row_start:\n"
	"	.rept	4000\n"
	"	nop\n"
	"	.endr\n"
	"	mtspr	779, 4\n"
	"	blr\n"
	".popsection\n");
extern const char ask_row_code[], ask_row_start[];

static volatile unsigned int ebbs;
static volatile unsigned long nip, siar;

static void note(struct ebb_regs *regs)
{
	ebbs++;
	nip = regs->nip;
	siar = ebb_mfspr(EBB_SPR_SIAR);
	/* No more EBBs come, because the counters are frozen */
	ebb_mtspr(EBB_SPR_MMCR0, EBB_MMCR0_FC);
	ebb_mtspr(EBB_SPR_BESCRR, EBB_BESCR_PMEO);
}

static void row(unsigned long mmcr0)
{
	asm volatile("mr	3, %0\n"
		     "mr	4, %1\n"
		     "mtctr	%2\n"
		     "bctrl\n"
		     : : "r" (mmcr0), "r" (EBB_MMCR0_FC), "r" (ask_row_code)
		     : "r3", "r4", "ctr", "lr", "memory");
}

/* Freeze the counters, write @pmc1 to PMC1, and let an exception cause an EBB */
static void prepare(unsigned int pmc1)
{
	ebb_mtspr(EBB_SPR_MMCR0, EBB_MMCR0_FC);
	ebb_mtspr(EBB_SPR_BESCRR, EBB_BESCR_PMEO);
	ebb_mtspr(EBB_SPR_BESCRS, EBB_BESCR_PME);
	ebb_write_pmc(1, pmc1);
	ebbs = 0;
}

/* The values that were measured for one question */
struct values {
	long value[RUNS];
	unsigned int nr;
};

static void add(struct values *values, long value)
{
	values->value[values->nr++] = value;
}

static void answer(const char *question, const char *text)
{
	ksft_print_msg("%s: %s\n", question, text);
	ksft_test_result_pass("asked: %s\n", question);
}

/* Print, as the answer to @question, the range of the values that were measured more than once */
static void answer_range(const char *question, const struct values *values)
{
	long min = LONG_MAX, max = LONG_MIN;
	unsigned int i, j, same;
	char text[64];

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
		return;
	}
	if (min == max)
		snprintf(text, sizeof(text), "%ld", min);
	else
		snprintf(text, sizeof(text), "%ld to %ld", min, max);
	answer(question, text);
}

static void ask_delay(void)
{
	struct values alert = { .nr = 0 }, ebb = { .nr = 0 };
	int i;

	for (i = 0; i < RUNS; i++) {
		long index;

		prepare(EBB_NEGATIVE - START);
		row(EBB_MMCR0_PMAE);
		if (!ebbs)
			continue;
		index = ((long)nip - (long)ask_row_start) / 4;
		if (index >= 0 && index <= ROW)
			add(&ebb, index - START);
		index = ((long)siar - (long)ask_row_start) / 4;
		if (index >= 0 && index <= ROW)
			add(&alert, index - (START - 1));
	}
	answer_range("instructions from the overflow to the one in SIAR", &alert);
	answer_range("instructions from the overflow to the EBB", &ebb);
}

static void ask_negative(void)
{
	prepare(EBB_NEGATIVE);
	row(EBB_MMCR0_PMAE);
	answer("a counter that is negative when PMAE is set makes an EBB",
	       ebbs ? "yes" : "no");

	prepare(0);
	ebb_mtspr(EBB_SPR_MMCR0, EBB_MMCR0_PMAE);
	ebb_write_pmc(1, EBB_NEGATIVE);
	row(EBB_MMCR0_PMAE);
	answer("a counter that is written with a negative value makes an EBB",
	       ebbs ? "yes" : "no");
}

static void ask_level(void)
{
	static const char question[] = "an exception while PME is 0 becomes an EBB when PME is set";
	bool exception;

	prepare(EBB_NEGATIVE - START);
	ebb_mtspr(EBB_SPR_BESCRR, EBB_BESCR_PME);
	ebb_mtspr(EBB_SPR_MMCR0, EBB_MMCR0_PMAE);
	work(ROW);
	exception = ebb_mfspr(EBB_SPR_MMCR0) & EBB_MMCR0_PMAO;
	ebb_mtspr(EBB_SPR_BESCRS, EBB_BESCR_PME);
	work(ROW);
	if (exception)
		answer(question, ebbs ? "yes" : "no");
	else
		ksft_test_result_skip("asked: %s\n", question);
}

static void ask_freeze(void)
{
	bool frozen;

	prepare(EBB_NEGATIVE - START);
	ebb_mtspr(EBB_SPR_MMCR0, 0);
	work(ROW);
	frozen = ebb_mfspr(EBB_SPR_MMCR0) & EBB_MMCR0_FC;
	ebb_mtspr(EBB_SPR_MMCR0, EBB_MMCR0_FC);
	answer("an overflow while PMAE is 0 freezes the counters", frozen ? "yes" : "no");
}

static void ask_pmao(void)
{
	prepare(0);
	ebb_mtspr(EBB_SPR_MMCR0, EBB_MMCR0_FC | EBB_MMCR0_PMAO);
	work(ROW);
	answer("setting PMAO makes an EBB", ebbs ? "yes" : "no");
}

int main(void)
{
	int fd;

	ksft_print_header();
	if (!ebb_available())
		ksft_exit_skip("this processor or this kernel has no event-based branches\n");

	fd = ebb_open(event_on(1), 0, -1);
	if (fd < 0)
		ksft_exit_skip("EBB events cannot be opened: %s\n", strerror(errno));
	if (ebb_start(fd))
		ksft_exit_skip("the PMU is taken by another pinned event\n");
	ksft_set_plan(7);
	ebb_enable(note);
	ask_delay();
	ask_negative();
	ask_level();
	ask_freeze();
	ask_pmao();
	ebb_disable();
	close(fd);
	ksft_finished();
}
