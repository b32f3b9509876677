// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Startup code, interrupt handlers, output and address translation for programs
 * that run without an operating system on a pseries machine
 *
 * The interrupt handler steps over an instruction of the program that faults.
 * When an instruction outside the program faults, guarded() returns.
 */

#include "pseries.h"

unsigned pmis, faults, strays, system_calls;
volatile bool guarded_now;
uint64_t first_fault, pmi_srr0, pmi_siar, pmi_mmcr0;
static int tests;

/* Code that access_register() writes: mtspr and mfspr with a given SPR number */
static uint32_t code[16] __attribute__((aligned(64)));

uint64_t frame[40];     /* registers of the code that an exception interrupted */
uint64_t saved[24];     /* registers of the caller of guarded() */
char stack[16384] __attribute__((aligned(16)));
char exception_stack[16384] __attribute__((aligned(16)));

/*
 * The firmware starts the program in 32-bit mode, big endian, at _start.
 *
 * guarded(function, argument, msr) calls a function with the given MSR, and
 * returns when the function makes a system call or when an instruction outside the
 * program faults.
 */
asm(".section .head,\"ax\"\n"
    ".globl _start\n"
    "_start: mfmsr 3; li 4,1; sldi 4,4,63; or 3,3,4; mtmsrd 3\n"
    "    lis 1,stack@ha; addi 1,1,stack@l; addi 1,1,16384-64\n"
    "    lis 2,.TOC.@ha; addi 2,2,.TOC.@l\n"
    "    bl main\n"
    "    b .\n"
    ".globl guarded\n"
    "guarded: mflr 0\n"
    "    lis 6,saved@ha; addi 6,6,saved@l\n"
    "    std 0,0(6); std 1,8(6)\n"
    "    .set i,14; .rept 18; std i,(i-12)*8(6); .set i,i+1; .endr\n"
    "    mtspr 26,3; mtspr 27,5; mr 12,3; mr 3,4\n"
    "    rfid\n"
    ".globl come_back\n"
    "come_back: lis 6,saved@ha; addi 6,6,saved@l\n"
    "    lis 2,.TOC.@ha; addi 2,2,.TOC.@l\n"
    "    ld 0,0(6); ld 1,8(6)\n"
    "    .set i,14; .rept 18; ld i,(i-12)*8(6); .set i,i+1; .endr\n"
    "    mtlr 0; blr\n"
    /* set_vectors() copies this to each interrupt vector, with its number in "li 3,0". */
    ".globl vector\n"
    "vector: mtspr 273,3; li 3,0; ba exception\n"
    "exception: mtspr 274,4\n"
    "    lis 4,frame@ha; addi 4,4,frame@l\n"
    "    std 0,0(4); std 1,8(4); std 2,16(4)\n"
    "    mfspr 0,273; std 0,24(4); mfspr 0,274; std 0,32(4)\n"
    "    .set i,5; .rept 27; std i,i*8(4); .set i,i+1; .endr\n"
    "    mflr 0; std 0,256(4); mfctr 0; std 0,264(4)\n"
    "    mfcr 0; std 0,272(4); mfxer 0; std 0,280(4)\n"
    "    lis 1,exception_stack@ha; addi 1,1,exception_stack@l; addi 1,1,16384-64\n"
    "    lis 2,.TOC.@ha; addi 2,2,.TOC.@l\n"
    "    bl handle\n"
    "    lis 4,frame@ha; addi 4,4,frame@l\n"
    "    ld 0,280(4); mtxer 0; ld 0,272(4); mtcr 0\n"
    "    ld 0,264(4); mtctr 0; ld 0,256(4); mtlr 0\n"
    "    .set i,5; .rept 27; ld i,i*8(4); .set i,i+1; .endr\n"
    "    ld 0,0(4); ld 1,8(4); ld 2,16(4); ld 3,24(4); ld 4,32(4)\n"
    "    rfid\n"
    ".globl ebb_handler\n"
    /* rfebb faults while BESCR[TS] is invalid: clear all of BESCR, try again */
    "ebb_handler: std 3,-600(1)\n"
    "    li 3,3; mtspr 802,3; ld 3,-600(1); .long 0x4c000924\n"
    "    li 3,-1; mtspr 802,3; ld 3,-600(1); .long 0x4c000924\n"
    "    sc\n"
    ".previous");
extern char come_back[], exception[];
void handle(uint64_t vector_number);

static long hcall(uint64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    register uint64_t r3 asm("r3") = number;
    register uint64_t r4 asm("r4") = a;
    register uint64_t r5 asm("r5") = b;
    register uint64_t r6 asm("r6") = c;
    register uint64_t r7 asm("r7") = d;

    asm volatile(".long 0x44000022"     /* sc 1 */
                 : "+r" (r3), "+r" (r4), "+r" (r5), "+r" (r6), "+r" (r7)
                 : : "r0", "r8", "r9", "r10", "r11", "r12", "ctr", "lr",
                   "xer", "cc", "memory");
    return r3;
}

void put(const char *s)
{
    for (; *s; s++) {
        hcall(0x58, 0, 1, (uint64_t)(uint8_t)*s << 56, 0);     /* H_PUT_TERM_CHAR */
    }
}

void put_number(uint64_t n)
{
    char digits[24], *p = digits + sizeof(digits);

    *--p = 0;
    do {
        *--p = '0' + n % 10;
        n /= 10;
    } while (n);
    put(p);
}

void note(const char *what, uint64_t n)
{
    put("# ");
    put(what);
    put(": ");
    put_number(n);
    put("\n");
}

void result(bool ok, const char *name)
{
    put(ok ? "ok " : "not ok ");
    put_number(++tests);
    put(" - ");
    put(name);
    put("\n");
}

/* Return whether @got is @want.  If not, print both values. */
bool is(const char *what, uint64_t got, uint64_t want)
{
    if (got != want) {
        note(what, got);
        note("  wanted", want);
    }
    return got == want;
}

/* Call a run-time service of the firmware, with up to five arguments. */
void rtas(uint32_t token, uint32_t count, const uint32_t *arguments)
{
    static volatile uint32_t call[9];

    call[0] = token;
    call[1] = count;
    call[2] = 1;
    for (uint32_t i = 0; i < count; i++) {
        call[3 + i] = arguments[i];
    }
    hcall(0xf000, (uintptr_t)call, 0, 0, 0);
}

void power_off(void)
{
    rtas(0x2003, 2, (uint32_t [2]){});
    for (;;) {
    }
}

void reset(void)
{
    rtas(0x2004, 0, NULL);
    for (;;) {
    }
}

static void leave(void)
{
    mtspr(SPR_SRR0, come_back);
    mtspr(SPR_SRR1, KERNEL_MSR);
}

void handle(uint64_t vector_number)
{
    uint64_t at = mfspr(SPR_SRR0);

    switch (vector_number) {
    case 0xf00:
        pmis++;
        pmi_srr0 = at;
        pmi_siar = mfspr(SPR_SIAR);
        pmi_mmcr0 = mfspr(SPR_MMCR0);
        mtspr(SPR_MMCR0, mfspr(SPR_MMCR0) & ~(MMCR0_PMAO | MMCR0_PMAE));
        return;
    case 0x500:
        return;
    case 0x900:
        mtspr(SPR_DEC, 0x7fffffff);
        return;
    case 0xc00:
        system_calls++;
        leave();
        return;
    }
    faults++;
    first_fault = first_fault ? first_fault : at;
    if ((at >= (uintptr_t)text_start && at < (uintptr_t)text_end) ||
        (at >= (uintptr_t)code && at < (uintptr_t)(code + 16))) {
        mtspr(SPR_SRR0, at + 4);
        return;
    }
    strays++;
    if (!guarded_now) {
        put("not ok 0 - exception outside the program\n");
        power_off();
    }
    leave();
}

/* Write @value to SPR @n if @write is true.  Read the SPR and return its value. */
uint64_t access_register(unsigned n, uint64_t value, bool write)
{
    register uint64_t r3 asm("r3") = value;
    uint32_t field = (n & 31) << 16 | n >> 5 << 11;

    code[0] = write ? 31 << 26 | 3 << 21 | field | 467 << 1 : 0x60000000;
    code[1] = 31 << 26 | 3 << 21 | field | 339 << 1;
    code[2] = 0x4e800020;       /* blr */
    asm volatile("dcbst 0,%1; sync; icbi 0,%1; isync; mtctr %1; bctrl"
                 : "+r" (r3) : "r" (code) : "ctr", "lr", "memory");
    return r3;
}

/* Set the PMU's counters and control registers and BESCR to their reset values. */
void calm(void)
{
    mtspr(SPR_MMCR0, MMCR0_FC);
    mtspr(SPR_MMCR1, 0);
    mtspr(SPR_MMCR2, 0);
    mtspr(SPR_MMCRA, 0);
    mtspr(SPR_BESCR, 0);
    mtspr(SPR_CTRL, 1);
    mtspr(SPR_PMC1, 0);
    mtspr(SPR_PMC2, 0);
    mtspr(SPR_PMC3, 0);
    mtspr(SPR_PMC4, 0);
    mtspr(SPR_PMC5, 0);
    mtspr(SPR_PMC6, 0);
}

void interrupts_on(void)
{
    asm volatile("mtmsrd %0,1; nop; nop; mtmsrd %1,1" : : "r" (MSR_EE), "r" (0L) : "memory");
}

/*
 * Map the program, because address translation is on in problem state.  Each page
 * of the program is entered into the hash table of the partition with its real
 * address as its effective address.  The segment of 256 MB that contains the
 * program gets the virtual segment number 1.
 */
bool map_program(void)
{
    for (uint64_t page = (uintptr_t)text_start >> 12;
         page <= (uintptr_t)program_end >> 12; page++) {
        uint64_t group = (1 ^ page) & 0x7ff;

        /*
         * H_ENTER: the page table entry has the abbreviated virtual page number
         * and the bits for valid, referenced, changed, coherent, and writable in
         * all states.
         */
        if (hcall(8, 0, group * 8, 1ULL << 28 >> 23 << 7 | 1, page << 12 | 0x192)) {
            return false;
        }
    }
    asm volatile("slbmte %0,%1; isync" : : "r" (1ULL << 12), "r" (1ULL << 27));
    return true;
}

/* Call a client service of the firmware, with up to four arguments; return its result. */
static uint32_t firmware(const char *service, unsigned count, uint32_t a, uint32_t b,
                         uint32_t c, uint32_t d)
{
    static volatile uint32_t call[13];

    call[0] = (uintptr_t)service;
    call[1] = count;
    call[2] = 1;
    call[3] = a;
    call[4] = b;
    call[5] = c;
    call[6] = d;
    call[3 + count] = -1;
    hcall(0xf005, (uintptr_t)call, 0, 0, 0);    /* H_VOF_CLIENT */
    return call[3 + count];
}

/* Return the argument of the emulator's option -append. */
const char *boot_arguments(void)
{
    static char arguments[256];
    uint32_t chosen = firmware("finddevice", 1, (uintptr_t)"/chosen", 0, 0, 0);

    firmware("getprop", 4, chosen, (uintptr_t)"bootargs", (uintptr_t)arguments,
             sizeof(arguments) - 1);
    return arguments;
}

/* Print the number of tests, and switch the machine off. */
void finish(void)
{
    put("1..");
    put_number(tests);
    put("\n");
    power_off();
}
