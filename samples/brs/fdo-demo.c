// SPDX-License-Identifier: GPL-2.0
/*
 * A program for feedback directed optimization.  A compiler arranges its code badly
 * unless a profile shows which branches are taken often: rare cases come first in
 * the source, and the important functions are called from many places.
 *
 * The program runs a small language of arithmetic expressions: it splits each
 * line into words, looks up the variables, translates the line and runs it.
 *
 * The program prints a checksum of all results, which shows whether a build works.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS		2000
#define STACK		64
#define NAMES		64
#define CODE		256

enum word { END, NUMBER, NAME, OPERATOR, OPEN, CLOSE, STRANGE };
enum operation { PUSH, LOAD, ADD, SUB, MUL, DIV, MOD, AND, OR, XOR, SHL, SHR, NEG, HALT };

struct insn {
	enum operation op;
	unsigned int arg;
};

struct variable {
	char name[12];
	unsigned int value;
};

static struct variable variables[NAMES];
static unsigned int nr_variables, errors, overflows, divisions_by_zero;
static unsigned int checksum = 2166136261u;

static void note(unsigned int value)
{
	checksum = (checksum ^ value) * 16777619u;
}

/* Functions that split a line into words */

struct scanner {
	const char *at;
	enum word word;
	unsigned int value;
	char name[12];
};

static void scan(struct scanner *s)
{
	const char *at = s->at;
	unsigned int length = 0;

	while (*at == ' ')
		at++;

	switch (*at) {
	case '\0':
		s->word = END;
		break;
	case '(':
		s->word = OPEN;
		at++;
		break;
	case ')':
		s->word = CLOSE;
		at++;
		break;
	case '+': case '-': case '*': case '/': case '%':
	case '&': case '|': case '^': case '<': case '>':
		s->word = OPERATOR;
		s->value = *at++;
		break;
	default:
		if (*at >= '0' && *at <= '9') {
			s->word = NUMBER;
			s->value = 0;
			while (*at >= '0' && *at <= '9') {
				if (s->value > 400000000) {
					overflows++;
					s->value = 0;
				}
				s->value = s->value * 10 + (*at++ - '0');
			}
		} else if ((*at >= 'a' && *at <= 'z') || *at == '_') {
			s->word = NAME;
			while ((*at >= 'a' && *at <= 'z') || *at == '_') {
				if (length >= sizeof(s->name) - 1) {
					errors++;
					at++;
					continue;
				}
				s->name[length++] = *at++;
			}
			s->name[length] = '\0';
		} else {
			s->word = STRANGE;
			at++;
		}
	}
	s->at = at;
}

/* Functions that look up variables, in the order in which the program first named them */

static struct variable *find(const char *name)
{
	unsigned int i;

	for (i = 0; i < nr_variables; i++) {
		const char *a = variables[i].name, *b = name;

		while (*a == *b) {
			if (!*a)
				return &variables[i];
			a++;
			b++;
		}
	}
	if (nr_variables == NAMES) {
		errors++;
		return &variables[0];
	}
	memcpy(variables[nr_variables].name, name, sizeof(variables[0].name));
	variables[nr_variables].value = nr_variables * 7919;
	return &variables[nr_variables++];
}

/* Functions that translate a line into instructions for run() */

struct translator {
	struct scanner scanner;
	struct insn *code;
	unsigned int nr;
};

static void emit(struct translator *t, enum operation op, unsigned int arg)
{
	if (t->nr >= CODE - 1) {
		errors++;
		return;
	}
	t->code[t->nr].op = op;
	t->code[t->nr].arg = arg;
	t->nr++;
}

static int strength(unsigned int operator)
{
	switch (operator) {
	case '|':
		return 1;
	case '^':
		return 2;
	case '&':
		return 3;
	case '<': case '>':
		return 4;
	case '+': case '-':
		return 5;
	default:
		return 6;
	}
}

static void translate(struct translator *t, int least);

static void translate_one(struct translator *t)
{
	struct scanner *s = &t->scanner;

	if (s->word == STRANGE || s->word == CLOSE || s->word == END) {
		errors++;
		emit(t, PUSH, 0);
		if (s->word != END)
			scan(s);
	} else if (s->word == OPERATOR) {
		scan(s);
		translate_one(t);
		emit(t, NEG, 0);
	} else if (s->word == OPEN) {
		scan(s);
		translate(t, 0);
		if (s->word != CLOSE)
			errors++;
		else
			scan(s);
	} else if (s->word == NAME) {
		emit(t, LOAD, find(s->name) - variables);
		scan(s);
	} else {
		emit(t, PUSH, s->value);
		scan(s);
	}
}

static void translate(struct translator *t, int least)
{
	struct scanner *s = &t->scanner;

	translate_one(t);
	while (s->word == OPERATOR && strength(s->value) > least) {
		unsigned int operator = s->value;

		scan(s);
		translate(t, strength(operator));
		switch (operator) {
		case '%':
			emit(t, MOD, 0);
			break;
		case '/':
			emit(t, DIV, 0);
			break;
		case '<':
			emit(t, SHL, 0);
			break;
		case '>':
			emit(t, SHR, 0);
			break;
		case '|':
			emit(t, OR, 0);
			break;
		case '&':
			emit(t, AND, 0);
			break;
		case '^':
			emit(t, XOR, 0);
			break;
		case '*':
			emit(t, MUL, 0);
			break;
		case '-':
			emit(t, SUB, 0);
			break;
		default:
			emit(t, ADD, 0);
			break;
		}
	}
}

/* The virtual machine that runs the instructions */

static unsigned int run(const struct insn *insn)
{
	unsigned int stack[STACK], *top = stack;

	for (;; insn++) {
		if (top < stack || top >= stack + STACK - 1) {
			errors++;
			return 0;
		}
		if (insn->op == HALT)
			return *top;

		if (insn->op == DIV || insn->op == MOD) {
			if (!*top) {
				divisions_by_zero++;
				*top = 1;
			}
			top--;
			if (insn->op == DIV)
				*top /= top[1];
			else
				*top %= top[1];
		} else if (insn->op == NEG) {
			*top = -*top;
		} else if (insn->op == SHL) {
			top--;
			*top <<= top[1] & 31;
		} else if (insn->op == SHR) {
			top--;
			*top >>= top[1] & 31;
		} else if (insn->op == OR) {
			top--;
			*top |= top[1];
		} else if (insn->op == AND) {
			top--;
			*top &= top[1];
		} else if (insn->op == XOR) {
			top--;
			*top ^= top[1];
		} else if (insn->op == MUL) {
			top--;
			*top *= top[1];
		} else if (insn->op == SUB) {
			top--;
			*top -= top[1];
		} else if (insn->op == ADD) {
			top--;
			*top += top[1];
		} else if (insn->op == LOAD) {
			*++top = variables[insn->arg].value;
		} else {
			*++top = insn->arg;
		}
	}
}

static void line(const char *text)
{
	struct insn code[CODE];
	struct translator t = { .code = code };
	struct variable *result = NULL;
	const char *is = strchr(text, '=');
	unsigned int value;

	if (is) {
		t.scanner.at = text;
		scan(&t.scanner);
		if (t.scanner.word != NAME)
			errors++;
		else
			result = find(t.scanner.name);
		text = is + 1;
	}

	t.scanner.at = text;
	scan(&t.scanner);
	translate(&t, 0);
	if (t.scanner.word != END)
		errors++;
	t.code[t.nr].op = HALT;

	value = run(code);
	if (result)
		result->value = value;
	note(value);
}

static const char *const program[] = {
	"alpha = alpha + 12345 + beta + gamma",
	"beta = beta + (alpha + 17) + (delta + 3)",
	"gamma = 1 + 2 + 3 + alpha + 4 + 5 + beta",
	"delta = (alpha + beta) + (beta + gamma) - (gamma + delta)",
	"epsilon = alpha * 31 + beta + gamma + delta",
	"zeta = epsilon + eta + theta + iota + kappa",
	"eta = eta + 1 + alpha + beta - 2",
	"theta = (theta + (eta + (zeta + 1)) + 1) + 9",
	"iota = iota + theta + theta + eta",
	"kappa = kappa ^ (iota + 77) + 1",
	"lambda = alpha + beta + gamma + delta + epsilon + zeta + eta + theta",
	"mu = lambda + 100 + 200 + 300 + 400 + kappa",
	"alpha = mu & 65535 + beta",
	"beta = (mu > 3) + lambda + 12",
	"mu + lambda + kappa + iota + 5 + 6",
	"alpha / (beta & 15) + 3 % 2",
	NULL
};

int main(int argc, char **argv)
{
	unsigned int rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : ROUNDS;
	unsigned int i, j;

	for (i = 0; i < rounds; i++) {
		for (j = 0; program[j]; j++)
			line(program[j]);
		if (i % 64 == 63)
			line("omega = $ + (alpha");
	}
	printf("%08x, %u variables, %u errors, %u overflows, %u divisions by zero\n",
	       checksum, nr_variables, errors, overflows, divisions_by_zero);
	return 0;
}
