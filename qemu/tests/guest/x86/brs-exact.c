/*
 * Check that Branch Sampling of the emulated Zen 3 records the right branches
 *
 * usage: brs-exact [PORT]
 *
 * Runs under Linux with any driver that has "branch-brs" events (0xc4 with a branch
 * stack).  The program samples a loop whose branches have labels.  Each branch stack
 * must be a sequence of consecutive branches of the loop, and the number of samples
 * must be the number of taken branches divided by the period.
 *
 * With PORT, the program prints "running" and repeats the sampling until a byte
 * comes through PORT.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../ktap.h"
#include "../until-told.h"

#define DEPTH 16
#define PERIOD 100003
#define ITERATIONS 2000000

/*
 * The branches of a round of chain(), in the order in which they are taken: a forward
 * jump, a direct call, an indirect jump, the return, an indirect call, its return, and
 * the jump back.  The conditional branch "js" is never taken.
 */
void chain(long iterations);
extern const char b_jmp[], t_jmp[], b_call[], t_call[], b_ind[], t_ind[];
extern const char b_ret[], t_ret[], b_icall[], t_icall[], b_ret2[], t_ret2[];
extern const char b_loop[], t_loop[];
asm(".pushsection .text\n"
    "chain: lea t_ind(%rip), %rdx\n"
    "lea t_icall(%rip), %rsi\n"
    "t_loop: test %edi, %edi\n"
    "js b_jmp\n"
    "nop\n"
    "b_jmp: jmp t_jmp\n"
    "ud2\n"
    "t_jmp: nop\n"
    "b_call: call t_call\n"
    "t_ret: nop\n"
    "b_icall: call *%rsi\n"
    "t_ret2: dec %rdi\n"
    "b_loop: jnz t_loop\n"
    "ret\n"
    "t_call: nop\n"
    "b_ind: jmp *%rdx\n"
    "ud2\n"
    "t_ind: nop\n"
    "b_ret: ret\n"
    "t_icall: nop\n"
    "b_ret2: ret\n"
    ".popsection\n");

#define TAKEN_BRANCHES 7

static const struct {
    const char *from;
    const char *to;
} order[TAKEN_BRANCHES] = {
    { b_jmp, t_jmp },
    { b_call, t_call },
    { b_ind, t_ind },
    { b_ret, t_ret },
    { b_icall, t_icall },
    { b_ret2, t_ret2 },
    { b_loop, t_loop },
};

struct sample {
    struct perf_event_header header;
    uint64_t ip;
    uint64_t nr;
    struct perf_branch_entry stack[];
};

static int find(uint64_t from, uint64_t to)
{
    for (int i = 0; i < TAKEN_BRANCHES; i++) {
        if (from == (uintptr_t)order[i].from &&
            to == (uintptr_t)order[i].to) {
            return i;
        }
    }
    return -1;
}

static bool in_user(uint64_t address)
{
    return !(address >> 63);
}

static struct {
    int samples, deep, right, strange, lost;
} seen;

/*
 * Check the branch stack of a sample.  The newest branch is the first entry, and each
 * entry must be the branch of chain() that is taken before the branch of the previous
 * entry.  A branch outside chain(), from the timer interrupt or the system call at the
 * end, interrupts the sequence; a sample with such a branch is counted as strange.
 */
static void look_at(const struct sample *s)
{
    bool right = true, strange = false;
    int next = -1;

    seen.samples++;
    seen.deep += s->nr == DEPTH;
    for (uint64_t i = 0; i < s->nr; i++) {
        int now = find(s->stack[i].from, s->stack[i].to);

        if (now < 0) {
            strange = true;
            if (in_user(s->stack[i].from) && in_user(s->stack[i].to)) {
                right = false;
            }
        } else if (next >= 0 &&
                   now != (next + TAKEN_BRANCHES - 1) % TAKEN_BRANCHES) {
            right = false;
        }
        next = now;
    }
    if (!right) {
        ktap_note("sample %d:", seen.samples);
        for (uint64_t i = 0; i < s->nr; i++) {
            ktap_note("  %llx -> %llx", (unsigned long long)s->stack[i].from,
                      (unsigned long long)s->stack[i].to);
        }
    }
    seen.right += right;
    seen.strange += strange;
}

static bool run(bool kernel)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_RAW,
        .size = sizeof(attr),
        .config = 0xc4,
        .sample_period = PERIOD,
        .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_BRANCH_STACK,
        .branch_sample_type = PERF_SAMPLE_BRANCH_ANY |
                              PERF_SAMPLE_BRANCH_USER,
        .disabled = 1,
        .exclude_kernel = !kernel,
        .exclude_hv = 1,
        .exclude_guest = 1,
    };
    const size_t pages = 512, page = 4096;
    struct perf_event_mmap_page *meta;
    const char *data;
    uint64_t head;
    int fd;

    if (kernel) {
        attr.branch_sample_type |= PERF_SAMPLE_BRANCH_KERNEL;
    }
    fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
    if (fd < 0) {
        return false;
    }
    meta = mmap(NULL, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED,
                fd, 0);
    if (meta == MAP_FAILED) {
        close(fd);
        return false;
    }
    data = (const char *)meta + page;

    memset(&seen, 0, sizeof(seen));
    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
    chain(ITERATIONS);
    ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);

    head = __atomic_load_n(&meta->data_head, __ATOMIC_ACQUIRE);
    for (uint64_t tail = 0; tail < head; ) {
        static char copy[4096];
        struct perf_event_header header;

        for (size_t i = 0; i < sizeof(header); i++) {
            ((char *)&header)[i] = data[(tail + i) % (pages * page)];
        }
        for (size_t i = 0; i < header.size && i < sizeof(copy); i++) {
            copy[i] = data[(tail + i) % (pages * page)];
        }
        if (header.type == PERF_RECORD_SAMPLE) {
            look_at((const struct sample *)copy);
        } else {
            ktap_note("record of type %u", header.type);
            seen.lost++;
        }
        tail += header.size;
    }
    munmap(meta, (pages + 1) * page);
    close(fd);
    return true;
}

/*
 * Write a sysctl.  The kernel would lower its sample rate because the emulator's
 * interrupts take long.  perf_cpu_time_max_percent must be written last: when it is 0,
 * perf_event_max_sample_rate cannot be written any more.
 */
static void set_sysctl(const char *path, const char *value)
{
    FILE *f = fopen(path, "w");

    if (!f || fputs(value, f) < 0 || fclose(f)) {
        ktap_note("%s: %s", path, strerror(errno));
    }
}

int main(int argc, char **argv)
{
    const int want = (int)((uint64_t)TAKEN_BRANCHES * ITERATIONS / PERIOD);
    bool number = true, deep = true, right = true, few = true;
    int cut;

    ktap_start();
    set_sysctl("/proc/sys/kernel/perf_event_max_sample_rate", "100000");
    set_sysctl("/proc/sys/kernel/perf_cpu_time_max_percent", "0");
    ktap_note("running");
    do {
        if (!run(false)) {
            ktap_skip_all("no branch sampling");
        }
        ktap_note("%d samples, %d deep, %d right, %d with other branches",
                  seen.samples, seen.deep, seen.right, seen.strange);
        number &= seen.samples == want && !seen.lost;
        /*
         * A sample can have fewer than 16 entries if an interrupt comes while its
         * branches are recorded.  Most such samples are strange.  If the driver has
         * filtered out all branches of the interrupt, the sample is not strange, but
         * cut.  In a long run, a few samples are cut.
         */
        cut = seen.samples - seen.deep - seen.strange;
        deep &= seen.samples && cut <= (argc > 1 ? seen.samples / 20 : 0);
        right &= seen.samples && seen.right == seen.samples;
        few &= seen.samples > 4 * seen.strange;
    } while (!told_to_stop(argv[1]));
    ktap_result(number, "number_of_samples");
    ktap_result(deep, "sixteen_deep");
    ktap_result(right, "branches_in_order");
    ktap_result(few, "few_interrupted_stacks");

    if (run(true)) {
        ktap_note("with kernel: %d samples, %d deep, %d right, %d with others",
                  seen.samples, seen.deep, seen.right, seen.strange);
        ktap_result(seen.samples >= want && seen.right == seen.samples,
                    "branches_in_order_with_kernel");
    } else {
        ktap_note("%s", strerror(errno));
        ktap_result(false, "branches_in_order_with_kernel");
    }
    return ktap_finish();
}
