/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions for test programs that run without an operating system
 *
 * Startup code that enters long mode, exception handlers, output of results on the
 * first serial port, a function that counts, and a chain of branches for Branch
 * Sampling to record.
 *
 * Build:
 *     cc -O2 -ffreestanding -fno-pic -fno-stack-protector -mno-red-zone \
 *        -mgeneral-regs-only -fcf-protection=none -static -nostdlib \
 *        -Wl,-n,--build-id=none,-e,start \
 *        -Wl,--section-start=.boot=0x100000,-Ttext=0x101000 \
 *        -o PROGRAM.elf PROGRAM.c
 *     objcopy -O binary PROGRAM.elf PROGRAM
 * Run:
 *     qemu-system-x86_64 -M q35 -cpu EPYC-Milan,+brs -kernel PROGRAM ...
 *
 * main() is called with the address of the Multiboot information.
 */

#ifndef BARE_H
#define BARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Multiboot starts the program in 32-bit mode; the code switches to long mode. */
asm(".section .boot, \"ax\"\n"
    ".balign 8\n"
    "header: .long 0x1badb002\n"
    ".long 0x00010000\n"                /* flag: the header has valid addresses */
    ".long -(0x1badb002 + 0x00010000)\n"
    ".long header\n"
    ".long header\n"
    ".long 0\n"                         /* load_end_addr: load the whole file */
    ".long _end\n"
    ".long start\n"
    ".code32\n"
    ".globl start\n"
    "start: cli\n"
    "mov $stack_top, %esp\n"
    /* Map the first 512 GB in 1 GB pages, at address 0 and at UPPER_HALF. */
    "mov $pml4, %eax\n"
    "movl $pdpt + 3 + 4, (%eax)\n"
    "movl $pdpt + 3 + 4, 2048(%eax)\n"
    "mov $pdpt, %edi\n"
    "mov $0x87, %eax\n"                 /* large page, user, writable, present */
    "xor %edx, %edx\n"
    "1: mov %eax, (%edi)\n"
    "mov %edx, 4(%edi)\n"
    "add $0x40000000, %eax\n"
    "adc $0, %edx\n"
    "add $8, %edi\n"
    "cmp $pdpt + 4096 - 8, %edi\n"      /* the last page, NOT_MAPPED, is left out */
    "jb 1b\n"
    "mov $pml4, %eax\n"
    "mov %eax, %cr3\n"
    "mov $0x20, %eax\n"                 /* CR4: PAE */
    "mov %eax, %cr4\n"
    "mov $0xc0000080, %ecx\n"           /* EFER: LME, SCE */
    "mov $0x101, %eax\n"
    "xor %edx, %edx\n"
    "wrmsr\n"
    "mov $0x80000011, %eax\n"
    "mov %eax, %cr0\n"
    "lgdt gdt_pointer\n"
    "ljmp $0x08, $2f\n"
    ".code64\n"
    "2: mov $0x10, %eax\n"
    "mov %eax, %ss\n"
    "mov %eax, %ds\n"
    "mov %eax, %es\n"
    "mov %ebx, %edi\n"
    "call main\n"
    "hlt\n"
    ".balign 8\n"
    "gdt: .quad 0\n"
    ".quad 0x00af9a000000ffff\n"        /* selector 0x08: kernel code */
    ".quad 0x00cf92000000ffff\n"        /* selector 0x10: kernel data */
    ".quad 0\n"                         /* selector 0x18: base for SYSRET */
    ".quad 0x00cff2000000ffff\n"        /* selector 0x20: user data */
    ".quad 0x00affa000000ffff\n"        /* selector 0x28: user code */
    "gdt_tss: .quad 0, 0\n"             /* selector 0x30: TSS */
    "gdt_end:\n"
    "gdt_pointer: .word gdt_end - gdt - 1\n"
    ".long gdt, 0\n"
    ".section .bss\n"
    ".balign 4096\n"
    "pml4: .skip 4096\n"
    "pdpt: .skip 4096\n"
    ".skip 8192\n"
    "stack_top:\n"
    ".skip 4096\n"
    "trap_stack_top:\n"
    ".skip 4096\n"
    "user_stack_top:\n"
    ".text\n");

#define KERNEL_CS  0x08
#define USER_CS    0x2b
#define USER_DS    0x23
#define UPPER_HALF 0xffff800000000000ULL
#define NOT_MAPPED 0x7fc0000000ULL

#define VECTOR_SOFT 0x40
#define VECTOR_IPI  0x41
#define VECTOR_PMI  0x42

#define APIC(reg)     (*(volatile uint32_t *)(0xfee00000UL + (reg)))
#define APIC_SVR      0x0f0
#define APIC_ICR      0x300
#define APIC_LVTPC    0x340
#define APIC_MASKED   0x10000
#define APIC_MODE_NMI 0x400
#define APIC_TO_SELF  0x40000

#define PERF_CTL(n)   (0xc0010200 + 2 * (n))
#define PERF_CTR(n)   (0xc0010201 + 2 * (n))
#define DBG_EXTN_CFG  0xc000010f
#define BR_FROM(n)    (0xc0010300 + 2 * (n))
#define BR_TO(n)      (0xc0010301 + 2 * (n))

#define CTL_USR    (1ULL << 16)
#define CTL_OS     (1ULL << 17)
#define CTL_INT    (1ULL << 20)
#define CTL_EN     (1ULL << 22)
#define CFG_EN     (1ULL << 2)
#define CFG_ONES   (3ULL << 3)
#define CFG_VB     (1ULL << 5)
#define CFG_OFF(n) ((uint64_t)(n) << 16)
#define CFG_PMC(n) ((uint64_t)(n) << 24)

enum { INSNS, BRANCHES, TAKEN, CYCLES, CONDITIONAL, MISPREDICTED, EVENTS };

static const struct {
    const char *name;
    uint64_t select;
} events[EVENTS] = {
    [INSNS] = { "instructions", 0xc0 },
    [BRANCHES] = { "branches", 0xc2 },
    [TAKEN] = { "taken branches", 0xc4 },
    [CYCLES] = { "cycles", 0x76 },
    [CONDITIONAL] = { "conditional branches", 0xd1 },
    [MISPREDICTED] = { "mispredicted branches", 0xc3 },
};

/* Numbers of interrupts and #GP exceptions, counted by the handlers below */
extern volatile uint32_t ipis, pmis, nmis, gps;

/*
 * Exception and interrupt handlers.  The number of instructions of each handler
 * stands beside it: tests that count instructions depend on these numbers.
 */
asm(".pushsection .text\n"
    "handle_soft: iretq\n"                      /* interrupt handler of 1 instruction */
    "handle_ipi: push %rax\n"                   /* interrupt handler of 6 instructions */
    "incl ipis(%rip)\n"
    "mov $0xfee000b0, %eax\n"
    "movl $0, (%rax)\n"
    "pop %rax\n"
    "iretq\n"
    "handle_pmi: push %rax\n"                   /* interrupt handler of 6 instructions */
    "incl pmis(%rip)\n"
    "mov $0xfee000b0, %eax\n"
    "movl $0, (%rax)\n"
    "pop %rax\n"
    "iretq\n"
    "handle_nmi: incl nmis(%rip)\n"             /* interrupt handler of 2 instructions */
    "iretq\n"
    "handle_ud: addq $2, (%rsp)\n"              /* #UD handler of 2 instructions, steps over UD2 */
    "iretq\n"
    "handle_gp: incl gps(%rip)\n"               /* #GP handler of 4, steps over 2-byte code */
    "add $8, %rsp\n"
    "addq $2, (%rsp)\n"
    "iretq\n"
    "handle_pf: add $8, %rsp\n"                 /* #PF handler of 3, steps over mov (%rdi), %al */
    "addq $2, (%rsp)\n"
    "iretq\n"
    "handle_other: cld\n"
    "call unexpected\n"
    /*
     * SYSCALL: with eax = 0 it ends the code in user mode (3 instructions); otherwise
     * eax is decremented, and execution continues in user mode (4 instructions).
     */
    "handle_syscall: test %eax, %eax\n"
    "jz 1f\n"
    "dec %eax\n"
    "sysretq\n"
    "1: jmp *%rbx\n"
    ".popsection\n"
    ".pushsection .bss\n"
    "ipis: .skip 4\n"
    "pmis: .skip 4\n"
    "nmis: .skip 4\n"
    "gps: .skip 4\n"
    ".popsection\n");

extern const char handle_soft[], handle_ipi[], handle_pmi[], handle_nmi[];
extern const char handle_ud[], handle_gp[], handle_pf[], handle_other[];
extern const char handle_syscall[];

static inline void outb(uint16_t port, uint8_t val)
{
    asm volatile("outb %0, %1" : : "a"(val), "Nd"(port));
}

static inline void outw(uint16_t port, uint16_t val)
{
    asm volatile("outw %0, %1" : : "a"(val), "Nd"(port));
}

static inline uint64_t rdmsr(uint32_t msr)
{
    uint32_t lo, hi;

    asm volatile("rdmsr" : "=a"(lo), "=d"(hi) : "c"(msr));
    return lo | (uint64_t)hi << 32;
}

static inline void wrmsr(uint32_t msr, uint64_t val)
{
    asm volatile("wrmsr" : : "a"((uint32_t)val),
                 "d"((uint32_t)(val >> 32)), "c"(msr) : "memory");
}

static inline void put(const char *s)
{
    while (*s) {
        outb(0x3f8, *s++);
    }
}

static inline void put_number(uint64_t n)
{
    char buf[21];
    char *p = buf + 20;

    *p = 0;
    do {
        *--p = '0' + n % 10;
        n /= 10;
    } while (n);
    put(p);
}

static inline void put_hex(uint64_t n)
{
    put("0x");
    for (int shift = 60; shift >= 0; shift -= 4) {
        outb(0x3f8, "0123456789abcdef"[(n >> shift) & 15]);
    }
}

static int tests;
static bool all_right;

static inline void begin(void)
{
    all_right = true;
}

static inline void end(const char *name)
{
    put(all_right ? "ok " : "not ok ");
    put_number(++tests);
    put(" - ");
    put(name);
    put("\n");
}

static inline void __attribute__((noreturn)) power_off(void)
{
    put("1..");
    put_number(tests);
    put("\n");
    outw(0x604, 0x2000);
    for (;;) {
        asm volatile("cli\n hlt");
    }
}

void __attribute__((noreturn, used)) unexpected(void)
{
    put("Bail out! unexpected exception\n");
    power_off();
}

static inline void expect(const char *what, uint64_t got, uint64_t want)
{
    if (got != want) {
        put("# ");
        put(what);
        put(": ");
        put_hex(got);
        put(" instead of ");
        put_hex(want);
        put("\n");
        all_right = false;
    }
}

/* The interrupt descriptor table */
static struct {
    uint16_t offset_low, selector;
    uint8_t ist, type;
    uint16_t offset_mid;
    uint32_t offset_high, zero;
} idt[256] __attribute__((aligned(16)));

static uint32_t tss[26];

static inline void set_gate(int vector, const char *handler)
{
    uintptr_t p = (uintptr_t)handler;

    idt[vector].offset_low = p;
    idt[vector].selector = KERNEL_CS;
    idt[vector].type = 0xee;            /* interrupt gate, DPL 3 */
    idt[vector].offset_mid = p >> 16;
    idt[vector].offset_high = p >> 32;
}

static inline void set_up(void)
{
    extern uint64_t gdt_tss[2];
    extern char trap_stack_top[];
    struct __attribute__((packed)) {
        uint16_t limit;
        uint64_t base;
    } idtr = { sizeof(idt) - 1, (uintptr_t)idt };
    uint64_t base = (uintptr_t)tss;

    for (int i = 0; i < 256; i++) {
        set_gate(i, handle_other);
    }
    set_gate(2, handle_nmi);
    set_gate(6, handle_ud);
    set_gate(13, handle_gp);
    set_gate(14, handle_pf);
    set_gate(VECTOR_SOFT, handle_soft);
    set_gate(VECTOR_IPI, handle_ipi);
    set_gate(VECTOR_PMI, handle_pmi);
    asm volatile("lidt %0" : : "m"(idtr));

    tss[1] = (uintptr_t)trap_stack_top; /* RSP0 */
    gdt_tss[0] = (sizeof(tss) - 1) | (base & 0xffffff) << 16 |
                 0x89ULL << 40 | (base >> 24 & 0xff) << 56;
    gdt_tss[1] = base >> 32;
    asm volatile("ltr %w0" : : "r"(0x30));

    wrmsr(0xc0000081, 0x0018000800000000ULL);   /* STAR */
    wrmsr(0xc0000082, (uintptr_t)handle_syscall);
    wrmsr(0xc0000084, 0);                       /* SFMASK */

    /* Mask the interrupts of the PIC, and enable the APIC. */
    outb(0x21, 0xff);
    outb(0xa1, 0xff);
    APIC(APIC_SVR) = 0x1ff;
    APIC(APIC_LVTPC) = VECTOR_PMI;
}

/*
 * measure() lets counter 0 count while it calls the function @body.  That function
 * gets the address NOT_MAPPED in rdi and the address of the APIC's ICR in rsi, and
 * may change all registers except rsp, r14 and r15.  The instructions of measure()
 * that are counted, too, are the call of the body and three moves after it.  The
 * WRMSR that starts the counter and the WRMSR that stops it are not counted.
 */
#define AROUND_INSNS    5       /* call, ret, and 3 mov around the body */
#define AROUND_BRANCHES 2
#define AROUND_TAKEN    2

typedef void body_fn(void);

void measure(uint64_t ctl, body_fn *body);
asm(".pushsection .text\n"
    "measure: push %rbx\n push %rbp\n push %r12\n"
    "push %r13\n push %r14\n push %r15\n"
    "mov %rsi, %r15\n"
    "mov %rdi, %rax\n"
    "mov %rdi, %rdx\n"
    "shr $32, %rdx\n"
    "mov $0x7fc0000000, %rdi\n"
    "mov $0xfee00300, %esi\n"
    "mov $0xc0010200, %ecx\n"
    "wrmsr\n"
    "call *%r15\n"
    "mov $0xc0010200, %ecx\n"
    "mov $0, %eax\n"
    "mov $0, %edx\n"
    "wrmsr\n"
    "pop %r15\n pop %r14\n pop %r13\n"
    "pop %r12\n pop %rbp\n pop %rbx\n"
    "ret\n"
    ".popsection\n");

#define BODY(name, code)                                \
    body_fn name;                                       \
    asm(".pushsection .text\n"                          \
        #name ":\n"                                     \
        code "\n"                                       \
        "ret\n"                                         \
        ".popsection\n")

/*
 * A chain of branches for Branch Sampling to record: chain() has 40 jumps in a row,
 * and all of them are taken.  Jump n is at chain_jumps + 4 * n and leads to jump
 * n + 1.  A jump is two bytes long, and two bytes of UD2 follow it.
 */
void chain(void);
extern const char chain_jumps[];
asm(".pushsection .text\n"
    "chain: nop\n"
    "chain_jumps:\n"
    ".rept 40\n"
    "jmp .+4\n"
    "ud2\n"
    ".endr\n"
    "ret\n"
    ".popsection\n");

#define JUMPS 40

static inline uint64_t jump(int n)
{
    return (uintptr_t)chain_jumps + 4 * n;
}

/*
 * Check that the BRS entries @first to @last - 1 have recorded jumps of chain() in
 * sequence, from jump @n on.
 */
static inline void expect_jumps(int first, int last, int n)
{
    for (int i = first; i < last; i++, n++) {
        expect("from", rdmsr(BR_FROM(i)), jump(n));
        expect("to", rdmsr(BR_TO(i)), jump(n + 1));
    }
}

/*
 * Take a sample as a driver does: clear the BRS buffer, write DBG_EXTN_CFG, and let
 * counter 0 run while body is called, with an overflow after @distance events.
 */
static inline void sample(uint64_t event, uint64_t distance, uint64_t cfg,
                          body_fn *body)
{
    for (int i = 0; i < 16; i++) {
        wrmsr(BR_FROM(i), 0);
        wrmsr(BR_TO(i), 0);
    }
    asm volatile("sti\n nop\n nop\n cli" : : : "memory");
    pmis = 0;
    nmis = 0;
    wrmsr(DBG_EXTN_CFG, cfg | CFG_ONES);
    wrmsr(PERF_CTR(0), -distance);
    measure(event | CTL_OS | CTL_INT | CTL_EN, body);
    asm volatile("cli");
}

BODY(run_chain, "sti\n jmp chain");
/* Code: start counter 1, too (taken branches at CPL 0, with interrupt), then chain() */
BODY(run_second,
     "mov $0xc0010202, %ecx\n"
     "mov $0x5200c4, %eax\n"
     "xor %edx, %edx\n"
     "wrmsr\n"
     "sti\n"
     "jmp chain");
/*
 * Code: jump to the upper half of the address space, where the program is also mapped,
 * and back, then chain()
 */
BODY(run_high,
     "lea 1f(%rip), %rax\n"
     "movabs $0xffff800000000000, %rdx\n"
     "or %rdx, %rax\n"
     "jmp *%rax\n"
     "1: jmp 2f\n"
     "2: lea 3f(%rip), %rax\n"
     "not %rdx\n"
     "and %rdx, %rax\n"
     "jmp *%rax\n"
     "3: jmp chain");

/*
 * Code for a body of measure(): run the given code in user mode, from label 8 on.
 * SYSCALL with eax = 0 ends the user mode.
 */
#define IN_USER(code)                                   \
    "lea 9f(%rip), %rbx\n"                              \
    "mov %rsp, %r12\n"                                  \
    "push $0x23\n"                                      \
    "push $user_stack_top\n"                            \
    "push $0x2\n"                                       \
    "push $0x2b\n"                                      \
    "push $8f\n"                                        \
    "iretq\n"                                           \
    "8:\n"                                              \
    code "\n"                                           \
    "9: mov %r12, %rsp"

/*
 * An SVM guest that executes two jumps and VMMCALL.  It has the page tables and the
 * general purpose registers of its host, except rax and rsp.  run_guest, a body for
 * measure(), runs the guest and then chain().
 */
extern char vmcb[], vm_host_state[];
extern const char guest_start[];
asm(".pushsection .text\n"
    "guest_start: jmp 1f\n"
    "1: jmp 2f\n"
    "2: vmmcall\n"
    ".popsection\n"
    ".pushsection .bss\n"
    ".balign 4096\n"
    "vmcb: .skip 4096\n"
    "vm_host_state: .skip 4096\n"
    "guest_stack: .skip 4096\n"
    "guest_stack_top:\n"
    ".popsection\n");
BODY(run_guest,
     "mov $vmcb, %eax\n"
     "vmrun\n"
     "stgi\n"
     "jmp chain");

#define VMCB(type, offset) (*(type *)(vmcb + (offset)))

static inline void set_guest_segment(int offset, uint16_t selector,
                                     uint16_t attributes)
{
    VMCB(uint16_t, offset) = selector;
    VMCB(uint16_t, offset + 2) = attributes;
    VMCB(uint32_t, offset + 4) = 0xffffffff;
}

static inline void set_up_guest(void)
{
    extern char guest_stack_top[];
    uint64_t cr0, cr3, cr4;

    wrmsr(0xc0000080, rdmsr(0xc0000080) | 1 << 12);     /* EFER.SVME */
    wrmsr(0xc0010117, (uintptr_t)vm_host_state);        /* VM_HSAVE_PA */
    asm volatile("mov %%cr0, %0\n mov %%cr3, %1\n mov %%cr4, %2"
                 : "=r"(cr0), "=r"(cr3), "=r"(cr4));

    VMCB(uint32_t, 0x010) = 3;                  /* intercept VMRUN, VMMCALL */
    VMCB(uint32_t, 0x058) = 1;                  /* ASID */
    set_guest_segment(0x400, 0x10, 0xc93);      /* ES */
    set_guest_segment(0x410, KERNEL_CS, 0xa9b);
    set_guest_segment(0x420, 0x10, 0xc93);      /* SS */
    set_guest_segment(0x430, 0x10, 0xc93);      /* DS */
    VMCB(uint64_t, 0x4d0) = rdmsr(0xc0000080);
    VMCB(uint64_t, 0x548) = cr4;
    VMCB(uint64_t, 0x550) = cr3;
    VMCB(uint64_t, 0x558) = cr0;
    VMCB(uint64_t, 0x570) = 2;                  /* RFLAGS */
    VMCB(uint64_t, 0x578) = (uintptr_t)guest_start;
    VMCB(uint64_t, 0x5d8) = (uintptr_t)guest_stack_top;
}

/* The #VMEXIT code of the SVM guest; 81h stands for VMMCALL. */
static inline uint64_t guest_exit_code(void)
{
    return VMCB(uint64_t, 0x070);
}

#endif
