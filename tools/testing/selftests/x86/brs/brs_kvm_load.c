// SPDX-License-Identifier: GPL-2.0
/*
 * Run a KVM guest while BRS samples the CPU of the guest, and print how many branch
 * stacks and sample addresses belong to the guest.  For scripts.  The guest is a
 * loop of branches in real mode.
 *
 * usage: brs_kvm_load PERIOD RUNS [exclude_guest] [exclude_host]
 *
 * Exits with 4 on a machine without BRS or KVM.
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/kvm.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "brs.h"

#define GUEST_SIZE	0x10000
#define GUEST_CODE	0x1000
#define GUEST_LOOPS	30000

/* Machine code of 16 bits with three taken branches in each loop */
static const unsigned char guest_code[] = {
	0x66, 0xb9, GUEST_LOOPS & 0xff, GUEST_LOOPS >> 8, 0, 0,	/* mov $GUEST_LOOPS, %ecx */
	0xeb, 0x00,		/* 1: jmp 2f */
	0xeb, 0x00,		/* 2: jmp 3f */
	0x66, 0x49,		/* 3: dec %ecx */
	0x75, 0xf8,		/* jnz 1b */
	0xf4,			/* hlt */
};

static bool of_the_guest(__u64 address)
{
	return address >= GUEST_CODE && address < GUEST_CODE + sizeof(guest_code);
}

struct guest {
	int vcpu;
	struct kvm_run *run;
	struct kvm_sregs sregs;
};

static void make_guest(struct guest *g, int kvm)
{
	struct kvm_userspace_memory_region region = { .memory_size = GUEST_SIZE };
	int vm = ioctl(kvm, KVM_CREATE_VM, 0);
	unsigned char *memory;

	memory = mmap(NULL, GUEST_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (vm < 0 || memory == MAP_FAILED)
		err(1, "no virtual machine");
	memcpy(memory + GUEST_CODE, guest_code, sizeof(guest_code));
	region.userspace_addr = (uintptr_t)memory;
	if (ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region))
		err(1, "no memory for the guest");

	g->vcpu = ioctl(vm, KVM_CREATE_VCPU, 0);
	if (g->vcpu < 0)
		err(1, "no virtual CPU");
	g->run = mmap(NULL, ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0), PROT_READ | PROT_WRITE,
		      MAP_SHARED, g->vcpu, 0);
	if (g->run == MAP_FAILED || ioctl(g->vcpu, KVM_GET_SREGS, &g->sregs))
		err(1, "no state of the virtual CPU");
	g->sregs.cs.base = 0;
	g->sregs.cs.selector = 0;
	if (ioctl(g->vcpu, KVM_SET_SREGS, &g->sregs))
		err(1, "KVM_SET_SREGS");
}

/* Run the guest from the start of its code to HLT; return false if it ended otherwise */
static bool run_guest(struct guest *g)
{
	struct kvm_regs regs = { .rip = GUEST_CODE, .rflags = 2 };

	if (ioctl(g->vcpu, KVM_SET_REGS, &regs))
		err(1, "KVM_SET_REGS");
	if (ioctl(g->vcpu, KVM_RUN, 0))
		err(1, "KVM_RUN");
	if (g->run->exit_reason == KVM_EXIT_HLT && !ioctl(g->vcpu, KVM_GET_REGS, &regs) &&
	    !regs.rcx)
		return true;
	warnx("exit reason %u, rip %llx rcx %llx", g->run->exit_reason, regs.rip, regs.rcx);
	return false;
}

int main(int argc, char **argv)
{
	unsigned long stacks = 0, full = 0, mixed = 0, guest_only = 0, guest_ips = 0;
	struct perf_event_attr attr;
	struct brs_limits limits;
	struct brs_event e;
	struct brs_sample s;
	struct guest g;
	int kvm, i, runs;

	if (argc < 3)
		return 2;
	kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (!brs_present() || kvm < 0)
		return 4;

	attr = brs_attr(strtoull(argv[1], NULL, 0));
	runs = atoi(argv[2]);
	for (i = 3; i < argc; i++) {
		attr.exclude_guest |= !strcmp(argv[i], "exclude_guest");
		attr.exclude_host |= !strcmp(argv[i], "exclude_host");
	}
	brs_pin(0);
	make_guest(&g, kvm);
	if (brs_open(&e, &attr, -1, 0, 1024))
		return 1;

	brs_limits_lift(&limits);
	brs_start(&e);
	for (i = 0; i < runs && run_guest(&g); i++)
		brs_mix(1000);
	brs_stop(&e);
	brs_limits_restore(&limits);

	while (brs_next(&e, &s)) {
		unsigned int in_guest = 0;
		__u64 j;

		for (j = 0; j < s.nr; j++)
			in_guest += of_the_guest(s.branch[j].from) || of_the_guest(s.branch[j].to);
		stacks++;
		full += s.nr == BRS_DEPTH;
		guest_only += in_guest == BRS_DEPTH;
		mixed += in_guest && in_guest < s.nr;
		guest_ips += of_the_guest(s.ip);
	}
	printf("runs %d stacks %lu full %lu ", i, stacks, full);
	printf("of_the_guest %lu mixed %lu ips_of_the_guest %lu ", guest_only, mixed, guest_ips);
	printf("lost %llu throttled %llu\n", e.lost, e.throttled);
	return i < runs;
}
