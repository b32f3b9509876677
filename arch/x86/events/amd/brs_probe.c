// SPDX-License-Identifier: GPL-2.0
/*
 * Ask the processor how Branch Sampling (BRS) behaves
 *
 * The manual leaves some behaviour of BRS open, see
 * Documentation/admin-guide/perf/amd-brs.rst. Reading
 * /sys/kernel/debug/amd_brs_probe runs experiments that answer these questions,
 * and shows a line for each question that a program in user mode cannot ask. The
 * selftest brs_silicon asks the other questions.
 *
 * Two pinned events on one CPU reserve counter 0, which BRS uses, and another
 * counter. Both events are then stopped through the PMU driver, the PMU of the
 * CPU is disabled, and the registers of the two counters and of BRS are used
 * directly, with interrupts disabled, for some milliseconds. NMIs of other sources
 * do no harm: a question is asked up to PROBE_TRIES times until the answer comes.
 *
 * Only the event that reserves counter 0 depends on the BRS driver.
 */
#define pr_fmt(fmt) "amd_brs_probe: " fmt

#include <linux/bitfield.h>
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/perf_event.h>
#include <linux/seq_file.h>
#include <linux/smp.h>
#include <linux/string_choices.h>

#include <asm/msr.h>
#include <asm/nmi.h>
#include <asm/perf_event.h>

#define PROBE_DEPTH		16

#define PROBE_CFG_BRSMEN	BIT_ULL(2)
#define PROBE_CFG_VB		BIT_ULL(5)
#define PROBE_CFG_MSROFF	GENMASK_ULL(19, 16)
#define PROBE_CFG_OFF		GENMASK_ULL(4, 3)
/* Value of DBG_EXTN_CFG that arms BRS to record after an overflow of counter 0 */
#define PROBE_CFG_ARMED		(PROBE_CFG_OFF | PROBE_CFG_BRSMEN)

#define PROBE_FROM(i)		(MSR_AMD_SAMP_BR_FROM + 2 * (i))
#define PROBE_TO(i)		(PROBE_FROM(i) + 1)

/* Event select of retired taken branches in the kernel */
#define PROBE_CTL		(0xc4 | ARCH_PERFMON_EVENTSEL_OS | ARCH_PERFMON_EVENTSEL_INT)
#define PROBE_CTL_ON		(PROBE_CTL | ARCH_PERFMON_EVENTSEL_ENABLE)
#define PROBE_CTR_MASK		GENMASK_ULL(47, 0)

/* Number of jumps in probe_row() before and after the instruction that writes a register */
#define PROBE_BEFORE		16
#define PROBE_AFTER		240
#define PROBE_JUMP		2	/* size in bytes of a jump instruction */

/* Number of branches to an overflow, so that BRS records after the write in probe_row() */
#define PROBE_LATE		40
/* Number of branches to an overflow, so that probe_row() writes a register while BRS records */
#define PROBE_EARLY		4

#define PROBE_TRIES		4
/* Loop rounds for which to wait for an interrupt */
#define PROBE_WAIT		20000
/* The greatest number of branches from an NMI handler to the end of the NMI */
#define PROBE_EXIT		3000

/**
 * struct probe - state of the experiments on one CPU
 * @cpu:	the CPU that is examined
 * @error:	why no question could be asked, 0 if all were asked
 * @event:	reserves counter 0 and BRS
 * @other:	reserves another counter
 * @m:		file to which the answers are written
 * @first:	address of the first jump in the row
 * @second:	address of the first jump after the register write in the row
 * @active:	probe_nmi() handles the NMIs of @cpu
 * @nmis:	number of NMIs since probe_begin()
 * @then:	called in the next NMI, after the registers have been read
 * @distance:	branches from the call of @then to the overflow
 * @ip:		instruction that the last NMI has interrupted
 * @resumed:	instruction that the NMI which called @then has interrupted
 * @recorded:	@then has filled an entry of the buffer in the NMI
 * @cfg:	DBG_EXTN_CFG at the last NMI
 * @from:	sources of the branches at the last NMI, 0 for an empty entry
 * @to:		targets of the branches at the last NMI
 */
struct probe {
	int			cpu;
	int			error;
	struct perf_event	*event;
	struct perf_event	*other;
	struct seq_file		*m;
	unsigned long		first;
	unsigned long		second;
	bool			active;
	unsigned int		nmis;
	void			(*then)(struct probe *p);
	unsigned int		distance;
	unsigned long		ip;
	unsigned long		resumed;
	bool			recorded;
	u64			cfg;
	u64			from[PROBE_DEPTH];
	u64			to[PROBE_DEPTH];
};

static struct probe probe;
static DEFINE_MUTEX(probe_mutex);

static void probe_wrmsr(u32 msr, u64 val)
{
	native_wrmsr(msr, (u32)val, (u32)(val >> 32));
}

static void probe_stop(struct probe *p)
{
	probe_wrmsr(p->event->hw.config_base, PROBE_CTL);
	probe_wrmsr(p->other->hw.config_base, PROBE_CTL);
	probe_wrmsr(MSR_AMD_DBG_EXTN_CFG, PROBE_CFG_OFF);
}

static void probe_set_counter(struct perf_event *event, unsigned int distance)
{
	probe_wrmsr(event->hw.event_base, -(u64)distance & PROBE_CTR_MASK);
}

/*
 * Start counter 0, and execute a row of jumps, each to the next instruction.
 * After PROBE_BEFORE of the jumps, write @val to the register @msr. There is no
 * other branch between the start of the counter and the end of the row.
 */
static noinline __noclone void probe_row(struct probe *p, u32 msr, u32 val)
{
	unsigned long first, second;
	u32 ecx = p->event->hw.config_base, eax = PROBE_CTL_ON, edx = 0;

	asm volatile("lea	1f(%%rip), %[first]\n\t"
		     "lea	2f(%%rip), %[second]\n\t"
		     "wrmsr\n"
		     "1:\n\t"
		     ".rept	%c[before]\n\t"
		     ".byte	0xeb, 0x00\n\t"
		     ".endr\n\t"
		     "mov	%[msr], %%ecx\n\t"
		     "mov	%[val], %%eax\n\t"
		     "xor	%%edx, %%edx\n\t"
		     "wrmsr\n"
		     "2:\n\t"
		     ".rept	%c[after]\n\t"
		     ".byte	0xeb, 0x00\n\t"
		     ".endr"
		     : [first] "=&r" (first), [second] "=&r" (second),
		       "+&c" (ecx), "+&a" (eax), "+&d" (edx)
		     : [msr] "r" (msr), [val] "r" (val),
		       [before] "i" (PROBE_BEFORE), [after] "i" (PROBE_AFTER)
		     : "memory", "cc");

	p->first = first;
	p->second = second;
}

/* Execute the row of jumps with a register write that changes nothing */
static void probe_jumps(struct probe *p)
{
	probe_row(p, p->event->hw.config_base, PROBE_CTL_ON);
}

/*
 * Return the index in the row of the jump at @address, -1 if @address is not in
 * the row
 */
static int probe_jump(struct probe *p, unsigned long address)
{
	if (address < p->first || address > p->second + PROBE_JUMP * PROBE_AFTER)
		return -1;
	if (address < p->second)
		return min_t(int, (address - p->first) / PROBE_JUMP, PROBE_BEFORE);

	return PROBE_BEFORE + (address - p->second) / PROBE_JUMP;
}

static int probe_nmi(unsigned int type, struct pt_regs *regs)
{
	struct probe *p = &probe;
	void (*then)(struct probe *p);
	int i;

	if (!READ_ONCE(p->active) || raw_smp_processor_id() != p->cpu)
		return NMI_DONE;

	p->cfg = __rdmsr(MSR_AMD_DBG_EXTN_CFG);
	probe_stop(p);
	for (i = 0; i < PROBE_DEPTH; i++) {
		p->to[i] = __rdmsr(PROBE_TO(i));
		/*
		 * probe_begin() has cleared the targets: an entry without a
		 * target is empty
		 */
		p->from[i] = p->to[i] ? __rdmsr(PROBE_FROM(i)) : 0;
	}
	p->ip = regs->ip;

	then = p->then;
	p->then = NULL;
	if (then)
		then(p);
	WRITE_ONCE(p->nmis, p->nmis + 1);

	return NMI_HANDLED;
}

static void probe_wait(struct probe *p, unsigned int nmis)
{
	unsigned int i;

	for (i = 0; i < PROBE_WAIT && READ_ONCE(p->nmis) < nmis; i++)
		barrier();
}

/* Stop the counters and BRS, and wait until pending NMIs have come */
static void probe_settle(struct probe *p)
{
	probe_stop(p);
	probe_wait(p, UINT_MAX);
}

/* Empty the buffer, and set counter 0 to overflow after @distance branches */
static void probe_begin(struct probe *p, unsigned int distance)
{
	int i;

	for (i = 0; i < PROBE_DEPTH; i++)
		probe_wrmsr(PROBE_TO(i), 0);
	p->nmis = 0;
	p->then = NULL;
	probe_set_counter(p->event, distance);
}

/* Record the branches of the row, and wait for the interrupt */
static void probe_record(struct probe *p, unsigned int distance, u32 msr, u32 val)
{
	probe_begin(p, distance);
	probe_wrmsr(MSR_AMD_DBG_EXTN_CFG, PROBE_CFG_ARMED);
	probe_row(p, msr, val);
	probe_wait(p, 1);
}

/*
 * Fill the buffer. A capture that was ended before the buffer was full leaves MSROFF
 * at an entry in the middle, and if MSROFF cannot be written, the next capture begins
 * there. After a full buffer it begins at the first entry.
 */
static void probe_fill(struct probe *p)
{
	probe_record(p, PROBE_LATE, p->event->hw.config_base, PROBE_CTL_ON);
	probe_settle(p);
}

static void probe_full_buffer(struct probe *p)
{
	int try;

	for (try = 0; try < PROBE_TRIES; try++) {
		probe_fill(p);
		if (p->nmis == 1 && probe_jump(p, p->from[0]) >= 0 &&
		    probe_jump(p, p->from[PROBE_DEPTH - 1]) >= 0)
			break;
	}

	seq_puts(p->m, "DBG_EXTN_CFG of a full buffer: ");
	if (try == PROBE_TRIES) {
		seq_printf(p->m, "not seen, %u interrupts\n", p->nmis);
		return;
	}
	seq_printf(p->m, "BRSMEN %d, VB %d, MSROFF %d (%#llx)\n",
		   !!(p->cfg & PROBE_CFG_BRSMEN), !!(p->cfg & PROBE_CFG_VB),
		   (int)FIELD_GET(PROBE_CFG_MSROFF, p->cfg), p->cfg);
	seq_printf(p->m, "width of SAMP_BR_TO: %d bits\n", fls64(p->to[0]));
}

static void probe_writable(struct probe *p)
{
	u64 mask = PROBE_CFG_VB | PROBE_CFG_MSROFF, set, clear;
	bool failed;

	failed = wrmsr_safe(MSR_AMD_DBG_EXTN_CFG, PROBE_CFG_OFF | mask, 0);
	set = __rdmsr(MSR_AMD_DBG_EXTN_CFG);
	failed |= wrmsr_safe(MSR_AMD_DBG_EXTN_CFG, PROBE_CFG_OFF, 0);
	clear = __rdmsr(MSR_AMD_DBG_EXTN_CFG);

	seq_printf(p->m, "MSROFF and VB can be written: %s\n",
		   failed ? "no, the write faults" :
		   str_yes_no((set & mask) == mask && !(clear & mask)));
}

/* Ask what happens to an interrupt held by BRS when @val is written to @msr */
static void probe_held(struct probe *p, const char *question, u32 msr, u32 val)
{
	int try, i, later = -1, entries = 0;
	bool came = false;

	for (try = 0; try < PROBE_TRIES && later < 0; try++) {
		probe_fill(p);
		probe_record(p, PROBE_EARLY, msr, val);
		if (p->nmis) {
			later = probe_jump(p, p->ip) - PROBE_BEFORE;
			for (i = 0, entries = 0; i < PROBE_DEPTH; i++)
				entries += !!p->from[i];
		}
		probe_settle(p);
		came |= p->nmis;
	}

	seq_printf(p->m, "%s while it holds an interrupt: ", question);
	if (!came)
		seq_puts(p->m, "the interrupt never comes\n");
	else if (later < 0)
		seq_puts(p->m, "the interrupt comes after the row\n");
	else
		seq_printf(p->m, "the interrupt comes %d branches later, with %d entries\n",
			   later, entries);
}

/* Extend a value of SAMP_BR_TO, which can lack the upper bits of an address */
static unsigned long probe_target(u64 to)
{
	return to & BIT_ULL(47) ? to | GENMASK_ULL(63, 48) : to;
}

/*
 * Check that the buffer begins with branches of the row of jumps and continues
 * with branches of other code, or with @into_row, that it begins with branches of
 * other code and continues with branches of the row. Set @at to the entry of the
 * branch that leads from the one to the other, -1 if that branch was not recorded.
 */
static bool probe_crosses(struct probe *p, bool into_row, int *at)
{
	int i;

	if (!p->from[0] || (probe_jump(p, p->from[0]) < 0) != into_row)
		return false;

	for (i = 0; i < PROBE_DEPTH - 1 && p->from[i + 1]; i++) {
		if ((probe_jump(p, probe_target(p->to[i])) < 0) != into_row) {
			*at = i;
			return true;
		}
		if ((probe_jump(p, p->from[i + 1]) < 0) != into_row) {
			*at = -1;
			return true;
		}
	}

	return false;
}

static void probe_say_crossing(struct probe *p, bool seen, int at, u64 found, u64 exact)
{
	seq_puts(p->m, !seen ? "not seen\n" : at < 0 ? "no\n" :
		 found == exact ? "yes, at the exact address\n" : "yes\n");
}

/* Let @p->other overflow while BRS holds the interrupt of counter 0 */
static void probe_nmi_entry(struct probe *p)
{
	int try, at, came = -1;
	u64 found = 0, exact = 0;
	bool seen = false;

	for (try = 0; try < PROBE_TRIES && !seen; try++) {
		probe_fill(p);
		probe_begin(p, PROBE_LATE);
		probe_wrmsr(MSR_AMD_DBG_EXTN_CFG, PROBE_CFG_ARMED);
		probe_set_counter(p->other, PROBE_LATE + PROBE_DEPTH / 2);
		probe_wrmsr(p->other->hw.config_base, PROBE_CTL_ON);
		probe_jumps(p);
		probe_wait(p, 1);
		if (p->nmis) {
			came = probe_jump(p, p->ip);
			seen = probe_crosses(p, false, &at);
			found = seen && at >= 0 ? p->from[at] : 0;
			exact = p->ip;
		}
		probe_settle(p);
	}

	seq_printf(p->m, "the interrupt of another counter while one is held: %s\n",
		   came < 0 ? "not seen" :
		   came < PROBE_LATE + PROBE_DEPTH ? "comes at once" : "is held, too");
	seq_puts(p->m, "the entry of an NMI is recorded: ");
	probe_say_crossing(p, seen, at, found, exact);
}

/* In an NMI, arm BRS and let counter 0 overflow as the NMI returns or after it */
static void probe_arm_in_nmi(struct probe *p)
{
	p->resumed = p->ip;
	probe_set_counter(p->event, p->distance);
	probe_wrmsr(MSR_AMD_DBG_EXTN_CFG, PROBE_CFG_ARMED);
	probe_wrmsr(p->event->hw.config_base, PROBE_CTL_ON);
}

/* In an NMI, let counter 0 overflow, and take enough branches to fill the buffer */
static void probe_overflow_in_nmi(struct probe *p)
{
	probe_set_counter(p->event, PROBE_EARLY);
	probe_wrmsr(MSR_AMD_DBG_EXTN_CFG, PROBE_CFG_ARMED);
	probe_jumps(p);
	p->recorded = __rdmsr(PROBE_TO(0));
}

/*
 * Let counter 0 overflow in the row without BRS. The NMI calls @then, which
 * makes counter 0 overflow once more.
 * Return: the number of NMIs, 2 if both overflows have interrupted.
 */
static unsigned int probe_in_nmi(struct probe *p, void (*then)(struct probe *p))
{
	probe_begin(p, PROBE_LATE);
	p->then = then;
	probe_jumps(p);
	probe_wait(p, 2);
	return p->nmis;
}

static void probe_nmi_return(struct probe *p)
{
	bool seen = false;
	u64 found = 0;
	int at;

	/* The number of branches to the end of an NMI varies: try each distance */
	for (p->distance = 1; p->distance < PROBE_EXIT && !seen;
	     p->distance += PROBE_DEPTH / 2) {
		probe_fill(p);
		if (probe_in_nmi(p, probe_arm_in_nmi) == 2) {
			seen = probe_crosses(p, true, &at);
			found = seen && at >= 0 ? probe_target(p->to[at]) : 0;
		}
		probe_stop(p);
	}
	probe_settle(p);

	seq_puts(p->m, "the return from an NMI is recorded: ");
	probe_say_crossing(p, seen, at, found, p->resumed);
}

static void probe_blocked(struct probe *p)
{
	int try, at = -1;

	for (try = 0; try < PROBE_TRIES && at < 0; try++) {
		probe_fill(p);
		if (probe_in_nmi(p, probe_overflow_in_nmi) == 2)
			at = probe_jump(p, p->from[0]);
		probe_settle(p);
	}

	seq_printf(p->m, "an overflow in an NMI starts the recording: %s\n",
		   at < 0 ? "not seen" : p->recorded ? "in the NMI" : "after the NMI");
}

/* Ask all questions, on the CPU of the two events, with interrupts disabled */
static void probe_ask(void *data)
{
	struct probe *p = data;
	struct pmu *pmu = p->event->pmu;
	u64 cfg;

	if (p->event->state != PERF_EVENT_STATE_ACTIVE ||
	    p->other->state != PERF_EVENT_STATE_ACTIVE || p->event->hw.idx) {
		p->error = -EBUSY;
		return;
	}

	pmu->pmu_disable(pmu);
	pmu->stop(p->event, 0);
	pmu->stop(p->other, 0);
	cfg = __rdmsr(MSR_AMD_DBG_EXTN_CFG);
	p->active = true;
	barrier();

	probe_full_buffer(p);
	probe_writable(p);
	probe_held(p, "clearing BRSMEN", MSR_AMD_DBG_EXTN_CFG, PROBE_CFG_OFF);
	probe_held(p, "stopping the counter", p->event->hw.config_base, PROBE_CTL);
	probe_nmi_entry(p);
	probe_nmi_return(p);
	probe_blocked(p);

	barrier();
	p->active = false;
	probe_wrmsr(MSR_AMD_DBG_EXTN_CFG, cfg);
	pmu->pmu_enable(pmu);
}

static void probe_overflow(struct perf_event *event, struct perf_sample_data *data,
			   struct pt_regs *regs)
{
}

static struct perf_event *probe_reserve(int cpu, u64 branch_sample_type)
{
	struct perf_event_attr attr = {
		.type			= PERF_TYPE_RAW,
		.size			= sizeof(attr),
		.config			= 0xc4,
		.sample_period		= S32_MAX,
		.sample_type		= branch_sample_type ? PERF_SAMPLE_BRANCH_STACK : 0,
		.branch_sample_type	= branch_sample_type,
		.pinned			= 1,
	};

	return perf_event_create_kernel_counter(&attr, cpu, NULL, probe_overflow, NULL);
}

static int probe_show(struct seq_file *m, void *unused)
{
	struct probe *p = &probe;

	guard(mutex)(&probe_mutex);
	memset(p, 0, sizeof(*p));
	p->m = m;
	p->cpu = raw_smp_processor_id();
	p->event = probe_reserve(p->cpu, PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER |
				 PERF_SAMPLE_BRANCH_KERNEL);
	if (IS_ERR(p->event))
		return PTR_ERR(p->event);

	p->other = probe_reserve(p->cpu, 0);
	if (IS_ERR(p->other)) {
		p->error = PTR_ERR(p->other);
	} else {
		if (smp_call_function_single(p->cpu, probe_ask, p, 1))
			p->error = -ENXIO;
		perf_event_release_kernel(p->other);
	}
	perf_event_release_kernel(p->event);

	return p->error;
}
DEFINE_SHOW_ATTRIBUTE(probe);

static struct dentry *probe_file;

static int __init probe_init(void)
{
	int ret;

	if (boot_cpu_data.x86 != 0x19 || !boot_cpu_has(X86_FEATURE_BRS))
		return -ENODEV;

	/* Other NMI handlers change the registers: probe_nmi() must be the first handler */
	ret = register_nmi_handler(NMI_LOCAL, probe_nmi, NMI_FLAG_FIRST, "amd_brs_probe");
	if (ret)
		return ret;

	probe_file = debugfs_create_file("amd_brs_probe", 0400, NULL, NULL, &probe_fops);
	return 0;
}
module_init(probe_init);

static void __exit probe_exit(void)
{
	debugfs_remove(probe_file);
	unregister_nmi_handler(NMI_LOCAL, "amd_brs_probe");
}
module_exit(probe_exit);

MODULE_DESCRIPTION("Asks AMD processors how their branch sampling behaves");
MODULE_LICENSE("GPL");
