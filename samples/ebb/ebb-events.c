// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ebb-events: find the event codes that EBB events can use on this machine.
 *
 * Takes the codes as arguments, or otherwise from standard input, and opens and
 * starts an EBB event for each code.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>

#include "ebb.h"

/* Return the number of the PMC that an event code names, 0 for any PMC */
static unsigned int pmc_of(unsigned long code)
{
	return code >> 16 & 0xf;
}

static int can_start(unsigned long code)
{
	int fd = ebb_open(code, 0, -1);
	int error = 0;

	if (fd < 0)
		return 0;
	if (ebb_start(fd))
		error = errno;
	close(fd);
	errno = error;
	return !error;
}

/* Print how an event code can be used; return true if an EBB event can use the code. */
static int try_code(unsigned long code)
{
	unsigned int pmc, nr = 0;
	int error = EINVAL;

	printf("0x%lx:", code);
	if (pmc_of(code)) {
		nr = can_start(code);
		if (nr)
			printf(" PMC%u\n", pmc_of(code));
		else
			printf(" refused: %s\n", strerror(errno));
		return nr;
	}
	for (pmc = 1; pmc <= 6; pmc++) {
		unsigned long with_pmc = code | EBB_EVENT_PMC(pmc);

		if (!can_start(with_pmc)) {
			/* a code without a PMC is invalid on most of them: keep another error */
			if (errno != EINVAL)
				error = errno;
			continue;
		}
		printf("%s 0x%lx", nr++ ? " or" : " any PMC, take", with_pmc);
	}
	if (!nr)
		printf(" refused: %s", strerror(error));
	putchar('\n');
	return nr;
}

int main(int argc, char **argv)
{
	unsigned int all = 0, good = 0;
	unsigned long code;
	char *end;

	if (!ebb_available())
		errx(1, "no event-based branches on this machine");

	if (argc > 1) {
		while (*++argv) {
			code = strtoul(*argv, &end, 16);
			if (*end || end == *argv)
				errx(1, "\"%s\" is not an event code", *argv);
			all++;
			good += !!try_code(code);
		}
	} else {
		while (scanf("%lx", &code) == 1) {
			all++;
			good += !!try_code(code);
		}
		if (!feof(stdin))
			errx(1, "standard input contains text that is not an event code");
	}
	printf("%u of %u event codes can be those of EBB events\n", good, all);
	return good != all;
}
