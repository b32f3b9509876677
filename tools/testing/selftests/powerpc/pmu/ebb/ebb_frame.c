// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tests that the entry routine of samples/ebb restores every register, even if
 * the handler changes all registers, and preserves the data that the interrupted
 * function stores below its stack pointer.
 */
#include "kselftest_harness.h"
#include "ebb_test.h"

struct registers {
	unsigned long gpr[13];		/* r0 to r12; the field for r1 is not used */
	unsigned long ctr;
	unsigned long xer;
	unsigned long cr;		/* spin() changes cr0, a field of CR */
	unsigned long lr;
	unsigned long fpscr;
	unsigned long scratch;
	unsigned long vscr[2];
	unsigned long vsr[64][2];
};

#define OFFSET(field)	"i" (offsetof(struct registers, field))

#define ALL_VECTORS							\
	"vs0", "vs1", "vs2", "vs3", "vs4", "vs5", "vs6", "vs7", "vs8",	\
	"vs9", "vs10", "vs11", "vs12", "vs13", "vs14", "vs15", "vs16",	\
	"vs17", "vs18", "vs19", "vs20", "vs21", "vs22", "vs23", "vs24",	\
	"vs25", "vs26", "vs27", "vs28", "vs29", "vs30", "vs31", "vs32",	\
	"vs33", "vs34", "vs35", "vs36", "vs37", "vs38", "vs39", "vs40",	\
	"vs41", "vs42", "vs43", "vs44", "vs45", "vs46", "vs47", "vs48",	\
	"vs49", "vs50", "vs51", "vs52", "vs53", "vs54", "vs55", "vs56",	\
	"vs57", "vs58", "vs59", "vs60", "vs61", "vs62", "vs63"

/*
 * Load all registers from @from, run @loops loops that change only cr0 and r16,
 * which a C handler preserves, and store all registers to @to.
 */
static void spin(const struct registers *from, struct registers *to,
		 unsigned long loops)
{
	register const struct registers *source asm("r14") = from;
	register struct registers *target asm("r15") = to;
	register unsigned long rounds asm("r16") = loops;

	asm volatile(".machine push; .machine power8\n"
		     "	mr %%r17,%%r2\n"
		     "	mffs %%f0\n"
		     "	stfd %%f0,%[scratch](%%r15)\n"
		     "	ld %%r18,%[scratch](%%r15)\n"
		     "	ld %%r0,%[ctr](%%r14); mtctr %%r0\n"
		     "	ld %%r0,%[xer](%%r14); mtxer %%r0\n"
		     "	ld %%r0,%[lr](%%r14); mtlr %%r0\n"
		     "	ld %%r0,%[cr](%%r14); mtcr %%r0\n"
		     "	li %%r0,%[vscr]\n"
		     "	lxvd2x 32,%%r14,%%r0; mtvscr %%v0\n"
		     "	lfd %%f0,%[fpscr](%%r14)\n"
		     "	mtfsf 255,%%f0,1,0\n"
		     "	addi %%r4,%%r14,%[vsr]\n"
		     "	.set n,0\n"
		     "	.rept 64\n"
		     "	lxvd2x n,0,%%r4; addi %%r4,%%r4,16\n"
		     "	.set n,n+1\n"
		     "	.endr\n"
		     "	.irp n,0,2,3,4,5,6,7,8,9,10,11,12\n"
		     "	ld %%r\\n,8*\\n(%%r14)\n"
		     "	.endr\n"
		     "1:	addi %%r16,%%r16,-1\n"
		     "	cmpdi %%r16,0\n"
		     "	bne 1b\n"
		     "	.irp n,0,2,3,4,5,6,7,8,9,10,11,12\n"
		     "	std %%r\\n,8*\\n(%%r15)\n"
		     "	.endr\n"
		     "	mr %%r2,%%r17\n"
		     "	mfctr %%r0; std %%r0,%[ctr](%%r15)\n"
		     "	mfxer %%r0; std %%r0,%[xer](%%r15)\n"
		     "	mflr %%r0; std %%r0,%[lr](%%r15)\n"
		     "	mfcr %%r0; std %%r0,%[cr](%%r15)\n"
		     "	addi %%r4,%%r15,%[vsr]\n"
		     "	.set n,0\n"
		     "	.rept 64\n"
		     "	stxvd2x n,0,%%r4; addi %%r4,%%r4,16\n"
		     "	.set n,n+1\n"
		     "	.endr\n"
		     "	mffs %%f0; stfd %%f0,%[fpscr](%%r15)\n"
		     "	mfvscr %%v0; li %%r0,%[vscr]\n"
		     "	stxvd2x 32,%%r15,%%r0\n"
		     "	std %%r18,%[scratch](%%r15)\n"
		     "	lfd %%f0,%[scratch](%%r15)\n"
		     "	mtfsf 255,%%f0,1,0\n"
		     "	.machine pop\n"
		     : "+r" (source), "+r" (target), "+r" (rounds)
		     : [ctr] OFFSET(ctr), [xer] OFFSET(xer), [lr] OFFSET(lr),
		       [cr] OFFSET(cr), [vscr] OFFSET(vscr),
		       [fpscr] OFFSET(fpscr), [vsr] OFFSET(vsr),
		       [scratch] OFFSET(scratch)
		     : "memory", "r0", "r3", "r4", "r5", "r6", "r7", "r8",
		       "r9", "r10", "r11", "r12", "r17", "r18", "ctr", "lr",
		       "xer", "vscr", "cr0", "cr1", "cr2", "cr3", "cr4",
		       "cr5", "cr6", "cr7", ALL_VECTORS);
}

static void use_everything(struct ebb_regs *regs)
{
	(void)regs;
	asm volatile(".machine push; .machine power8\n"
		     "	.irp n,0,3,4,5,6,7,8,9,10,11,12\n"
		     "	li %%r\\n,-\\n-1\n"
		     "	.endr\n"
		     "	mtctr %%r3; mtxer %%r4; mtcr %%r5; mtlr %%r6\n"
		     "	.set n,0\n"
		     "	.rept 32\n"
		     "	.if n < 14\n"
		     "	xxlxor n,n,n\n"
		     "	.else\n"	/* change only the second half of vs14 to vs31 */
		     "	xxmrghd n,n,n\n"
		     "	.endif\n"
		     "	.set n,n+1\n"
		     "	.endr\n"
		     "	.rept 20\n"
		     "	xxlxor n,n,n\n"
		     "	.set n,n+1\n"
		     "	.endr\n"
		     "	mtvscr %%v0\n"
		     "	mtfsb1 31\n"	/* change the rounding mode */
		     "	.machine pop\n"
		     : : : "memory", "r0", "r3", "r4", "r5", "r6", "r7", "r8",
			   "r9", "r10", "r11", "r12", "ctr", "lr", "xer",
			   "vscr", "cr0", "cr1", "cr5", "cr6", "cr7");
}

static void fill(struct registers *registers)
{
	unsigned char *byte = (unsigned char *)registers;
	size_t i;

	for (i = 0; i < sizeof(*registers); i++)
		byte[i] = i * 37 + 11;
	registers->fpscr = 2;		/* FPSCR: round up, exceptions disabled */
	registers->vscr[0] = 0x1000000010000ul;		/* VSCR[NJ], in either byte order */
	registers->vscr[1] = 0x1000000010000ul;
	registers->cr &= 0xffffffff;
}

TEST(entry_gives_every_register_back)
{
	struct registers given, alone, interrupted;
	int fd;

	REQUIRE_EBB();
	fill(&given);
	memset(&alone, 0, sizeof(alone));
	memset(&interrupted, 0, sizeof(interrupted));
	fd = ebb_open(event_on(1), 0, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, ebb_start(fd));
	spin(&given, &alone, 100);

	arm(1u << 1, PERIOD);
	tally.hook = use_everything;
	spin(&given, &interrupted, 20 * PERIOD);
	ebb_disable();
	EXPECT_LE(at_least(50), tally.count);
	EXPECT_EQ(0, memcmp(alone.gpr, interrupted.gpr, sizeof(alone.gpr)));
	EXPECT_EQ(alone.ctr, interrupted.ctr);
	EXPECT_EQ(alone.xer, interrupted.xer);
	EXPECT_EQ(alone.lr, interrupted.lr);
	EXPECT_EQ(alone.cr, interrupted.cr);
	EXPECT_EQ(alone.fpscr, interrupted.fpscr);
	EXPECT_EQ(0, memcmp(alone.vscr, interrupted.vscr, sizeof(alone.vscr)));
	EXPECT_EQ(0, memcmp(alone.vsr, interrupted.vsr, sizeof(alone.vsr)));
	close(fd);
}

/*
 * Run a loop that stores its count below the stack pointer, in the area that the
 * handler must not use.
 */
TEST(entry_leaves_the_protected_area_alone)
{
	unsigned long rounds = 10 * PERIOD;
	unsigned long wrong = 0;
	int fd;

	REQUIRE_EBB();
	fd = begin(1);
	ASSERT_GE(fd, 0);
	asm volatile("	std %[rounds],-8(%%r1)\n"
		     "	std %[rounds],-288(%%r1)\n"
		     "	std %[rounds],-512(%%r1)\n"
		     "1:	ld %%r9,-8(%%r1)\n"
		     "	ld %%r10,-288(%%r1)\n"
		     "	xor %%r10,%%r10,%%r9\n"
		     "	or %[wrong],%[wrong],%%r10\n"
		     "	ld %%r10,-512(%%r1)\n"
		     "	xor %%r10,%%r10,%%r9\n"
		     "	or %[wrong],%[wrong],%%r10\n"
		     "	addi %%r9,%%r9,-1\n"
		     "	std %%r9,-512(%%r1)\n"
		     "	std %%r9,-288(%%r1)\n"
		     "	std %%r9,-8(%%r1)\n"
		     "	cmpdi %%r9,0\n"
		     "	bne 1b\n"
		     : [wrong] "+r" (wrong)
		     : [rounds] "r" (rounds)
		     : "memory", "r9", "r10", "cr0");
	ebb_disable();
	EXPECT_LE(at_least(80), tally.count);
	EXPECT_EQ(0, wrong);
	close(fd);
}

static unsigned long sum_seen;
static unsigned long nip_outside;

static void look_around(struct ebb_regs *regs)
{
	if (regs->nip - code_address(work) >= 64)
		nip_outside++;
	/* work() counts its loops down in CTR: sum up the values that the handler sees. */
	sum_seen += regs->ctr;
	if (regs->gpr[1] - (unsigned long)__builtin_frame_address(0) > 8192)
		nip_outside++;
}

TEST(entry_shows_the_handler_where_it_came_from)
{
	int fd;

	REQUIRE_EBB();
	fd = begin(1);
	ASSERT_GE(fd, 0);
	tally.hook = look_around;
	work(20 * PERIOD);
	ebb_disable();
	EXPECT_LE(at_least(35), tally.count);
	EXPECT_LE(nip_outside, 1);
	EXPECT_NE(0, sum_seen);
	close(fd);
}

static void skip_the_loop(struct ebb_regs *regs)
{
	/* The program resumes with the CTR that the handler writes here. */
	if (regs->nip - code_address(work) < 64)
		regs->ctr = 1;
}

TEST(entry_lets_the_handler_change_registers)
{
	int fd;

	REQUIRE_EBB();
	fd = begin(1);
	ASSERT_GE(fd, 0);
	tally.hook = skip_the_loop;
	work(1ul << 60);
	ebb_disable();
	EXPECT_LE(1, tally.count);
	close(fd);
}

TEST_HARNESS_MAIN
