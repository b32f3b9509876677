/*
 * A loop whose branches are known, for tests of perf record
 *
 * usage: pmu-loop [ROUNDS]
 *
 * Without ROUNDS, the program prints the addresses of the taken branches of a round,
 * each with its target.  A round has nine instructions, four of which are branches;
 * three of the branches are taken.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <stdio.h>
#include <stdlib.h>

extern const char from1[], to1[], from2[], to2[], from3[], to3[];
void rounds(long n);
asm(".pushsection .text\n"
    "rounds:\n"
    "to3: nop\n"
    "test %rdi, %rdi\n"
    "js to3\n"
    "from1: call to1\n"
    "to2: nop\n"
    "dec %rdi\n"
    "from3: jnz to3\n"
    "ret\n"
    "to1: nop\n"
    "from2: ret\n"
    ".popsection");

int main(int argc, char **argv)
{
    if (argc > 1) {
        rounds(atol(argv[1]));
        return 0;
    }
    printf("%p %p\n%p %p\n%p %p\n", from1, to1, from2, to2, from3, to3);
    return 0;
}
