// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Keep the emulated PMUs of all CPUs busy in many ways in parallel
 *
 * usage: pmu-load SECONDS
 *
 * For each CPU, the program starts processes that compute, compute while their
 * code is sampled, compute while their taken branches are sampled, count their
 * instructions while they make system calls, start processes, and sample a
 * whole CPU; on POWER also processes that take event-based branches, and on x86
 * processes that sample with branch stacks.
 *
 * At the end, the program prints for each kind the number of its samples,
 * events or rounds and a checksum of its samples.  It also prints the number of
 * performance monitor interrupts in /proc/interrupts, which a test can compare
 * with the emulator's statistics.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES 16

#ifdef __powerpc64__
#define TAKEN_BRANCHES 0x200fa
#define INTERRUPTS "PMI:"
#define mtspr(n, v) asm volatile("mtspr " #n ",%0" : : "r" ((uint64_t)(v)) : "memory")
#else
#define TAKEN_BRANCHES 0xc4
#define INTERRUPTS "NMI:"
#endif

enum kind { COMPUTES, SAMPLES_CODE, SAMPLES_BRANCHES, COUNTS, FORKS, SAMPLES_CPU, SPECIAL, KINDS };

static const char *const names[KINDS] = {
    "computes", "samples_code", "samples_branches", "counts", "forks", "samples_cpu",
#ifdef __powerpc64__
    "event_based_branches",
#else
    "branch_stacks",
#endif
};

/* Memory that all processes of this program share */
static volatile struct {
    bool stop;
    uint64_t got[KINDS];
    uint64_t sums[KINDS];
    char refused[KINDS][64];
} *shared;

/* A perf event and the ring buffer that it writes samples to */
struct event {
    int fd;
    struct perf_event_mmap_page *head;
    uint64_t size;
};

static bool open_event(enum kind kind, struct event *event, struct perf_event_attr *attr, int cpu)
{
    long page = sysconf(_SC_PAGESIZE);

    attr->size = sizeof(*attr);
    event->fd = syscall(SYS_perf_event_open, attr, cpu < 0 ? 0 : -1, cpu, -1, 0);
    event->size = PAGES * page;
    if (event->fd >= 0 && attr->sample_period) {
        event->head = mmap(NULL, event->size + page, PROT_READ | PROT_WRITE, MAP_SHARED,
                           event->fd, 0);
    }
    if (event->fd < 0 || event->head == MAP_FAILED) {
        snprintf((char *)shared->refused[kind], sizeof(shared->refused[kind]), "%s",
                 strerror(errno));
        return false;
    }
    return true;
}

/* Read all new records from the ring buffer, and count the samples. */
static void drain(enum kind kind, struct event *event)
{
    char *data = (char *)event->head + sysconf(_SC_PAGESIZE);
    uint64_t end = __atomic_load_n(&event->head->data_head, __ATOMIC_ACQUIRE);
    uint64_t samples = 0, sum = 0;

    for (uint64_t at = event->head->data_tail; at < end; ) {
        /* a record's size is a multiple of 8: its header does not wrap around */
        struct perf_event_header *header = (void *)(data + at % event->size);

        if (header->type == PERF_RECORD_SAMPLE) {
            samples++;
            for (uint64_t i = 0; i < header->size; i += 8) {
                sum = sum * 31 + *(uint64_t *)(data + (at + i) % event->size);
            }
        }
        at += header->size;
    }
    __atomic_store_n(&event->head->data_tail, end, __ATOMIC_RELEASE);
    __atomic_add_fetch(&shared->got[kind], samples, __ATOMIC_RELAXED);
    __atomic_add_fetch(&shared->sums[kind], sum, __ATOMIC_RELAXED);
}

static uint64_t __attribute__((noinline)) work(uint64_t rounds)
{
    uint64_t x = rounds;

    while (rounds--) {
        x = x & 1 ? 3 * x + 1 : x / 2;
        if (x < 2) {
            x = rounds;
        }
    }
    return x;
}

static void samples(enum kind kind, struct perf_event_attr *attr, int cpu)
{
    struct event event = { 0 };

    if (open_event(kind, &event, attr, cpu)) {
        while (!shared->stop) {
            if (cpu < 0) {
                work(20000);
                getppid();
            } else {
                usleep(20000);
            }
            drain(kind, &event);
        }
        close(event.fd);
        /* the buffer can hold new records since the last call of drain() */
        drain(kind, &event);
    }
}

static void counts(void)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_INSTRUCTIONS,
    };
    struct event event = { 0 };
    uint64_t value = 0;

    if (open_event(COUNTS, &event, &attr, -1)) {
        while (!shared->stop) {
            work(100);
            getppid();
            if (read(event.fd, &value, sizeof(value)) != sizeof(value)) {
                break;
            }
        }
        __atomic_add_fetch(&shared->got[COUNTS], value, __ATOMIC_RELAXED);
    }
}

static void forks(void)
{
    while (!shared->stop) {
        pid_t pid = fork();

        if (pid == 0) {
            work(1000);
            _exit(0);
        }
        waitpid(pid, NULL, 0);
        __atomic_add_fetch(&shared->got[FORKS], 1, __ATOMIC_RELAXED);
    }
}

#ifdef __powerpc64__
/*
 * The handler of event-based branches counts the branch, sets PMC1 for the next
 * overflow, and then allows performance monitor alerts (MMCR0[PMAE]) before
 * event-based exceptions (BESCR[PME]).  The write to MMCR0 clears MMCR0[PMAO];
 * if PME were set while PMAO is still 1, the same alert would branch again.
 */
uint64_t ebb_count;
asm(".pushsection .text\n"
    "load_handler:\n"
    "    std 3,-600(1); std 4,-608(1)\n"
    "    lis 4,ebb_count@ha\n"
    "    ld 3,ebb_count@l(4); addi 3,3,1; std 3,ebb_count@l(4)\n"
    "    lis 3,0x7fff; ori 3,3,0xe000; mtspr 771,3\n"       /* PMC1: overflow in 8192 */
    "    li 3,1; mtspr 802,3\n"                             /* BESCRR: PMEO */
    "    lis 3,0x0400; mtspr 779,3\n"                       /* MMCR0: PMAE */
    "    li 3,1; sldi 3,3,32; mtspr 800,3\n"                /* BESCRS: PME */
    "    ld 3,-600(1); ld 4,-608(1)\n"
    "    .long 0x4c000924\n"                                /* rfebb 1 */
    ".popsection");
extern char load_handler[];

static void special(void)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_RAW, .config = 1ULL << 63 | 0x10002, .pinned = 1, .exclusive = 1,
        .exclude_kernel = 1, .exclude_hv = 1,
    };
    struct event event = { 0 };
    uint64_t value;

    if (!open_event(SPECIAL, &event, &attr, -1)) {
        return;
    }
    if (read(event.fd, &value, sizeof(value)) == sizeof(value)) {
        mtspr(804, load_handler);
        mtspr(802, 1);
        mtspr(800, 1ULL << 63 | 1ULL << 32);    /* BESCRS: GE, PME */
        mtspr(771, 0x7fffe000);
        mtspr(779, 0x04000000);
        while (!shared->stop) {
            work(20000);
            getppid();
        }
        mtspr(779, 0x80000000);                 /* MMCR0: FC */
        mtspr(802, ~0ULL);
    }
    __atomic_add_fetch(&shared->got[SPECIAL], ebb_count, __ATOMIC_RELAXED);
}
#else
static void special(void)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_RAW, .config = TAKEN_BRANCHES, .sample_period = 5003,
        .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_BRANCH_STACK,
        .branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER |
                              PERF_SAMPLE_BRANCH_KERNEL,
    };

    samples(SPECIAL, &attr, -1);
}
#endif

static void run(enum kind kind, int cpu)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_HARDWARE, .sample_type = PERF_SAMPLE_IP, .sample_period = 20011,
    };

    switch (kind) {
    case COMPUTES:
        while (!shared->stop) {
            work(100000);
            __atomic_add_fetch(&shared->got[kind], 1, __ATOMIC_RELAXED);
        }
        break;
    case SAMPLES_CODE:
        attr.config = PERF_COUNT_HW_INSTRUCTIONS;
        samples(kind, &attr, -1);
        break;
    case SAMPLES_BRANCHES:
        attr.type = PERF_TYPE_RAW;
        attr.config = TAKEN_BRANCHES;
        attr.sample_period = 10007;
#ifdef __powerpc64__
        attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
        attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER;
        attr.exclude_kernel = 1;
#endif
        samples(kind, &attr, -1);
        break;
    case SAMPLES_CPU:
        attr.config = PERF_COUNT_HW_CPU_CYCLES;
        attr.sample_period = 100003;
        samples(kind, &attr, cpu);
        break;
    case COUNTS:
        counts();
        break;
    case FORKS:
        forks();
        break;
    case SPECIAL:
        special();
        break;
    default:
        break;
    }
}

static void set_limit(const char *name, const char *value)
{
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "/proc/sys/kernel/%s", name);
    fd = open(path, O_WRONLY);
    if (fd < 0 || write(fd, value, strlen(value)) < 0) {
        perror(path);
    }
    close(fd);
}

/* Return the number of interrupts in a line of /proc/interrupts, summed over all CPUs. */
static uint64_t interrupts(const char *name)
{
    FILE *f = fopen("/proc/interrupts", "r");
    char line[1024], *at;
    uint64_t sum = 0;

    while (f && fgets(line, sizeof(line), f)) {
        at = strstr(line, name);
        if (at && strspn(line, " ") == (size_t)(at - line)) {
            char *end;

            for (at += strlen(name); ; at = end) {
                uint64_t n = strtoull(at, &end, 10);

                if (end == at) {
                    break;
                }
                sum += n;
            }
        }
    }
    if (f) {
        fclose(f);
    }
    return sum;
}

int main(int argc, char **argv)
{
    int cpus = sysconf(_SC_NPROCESSORS_ONLN), ended_badly = 0, status;

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (argc != 2 || shared == MAP_FAILED) {
        fprintf(stderr, "usage: pmu-load SECONDS\n");
        return 2;
    }
    /* Emulated interrupts take long: keep the kernel from sampling less often. */
    set_limit("perf_event_max_sample_rate", "100000");
    set_limit("perf_cpu_time_max_percent", "0");

    for (int cpu = 0; cpu < cpus; cpu++) {
        for (enum kind kind = 0; kind < KINDS; kind++) {
            if (fork() == 0) {
                run(kind, cpu);
                _exit(0);
            }
        }
    }
    printf("running\n");
    fflush(stdout);
    usleep(1000000 * atof(argv[1]));
    shared->stop = true;
    while (wait(&status) > 0) {
        ended_badly += status != 0;
    }

    for (enum kind kind = 0; kind < KINDS; kind++) {
        printf("%s %llu %llx %s\n", names[kind], (unsigned long long)shared->got[kind],
               (unsigned long long)shared->sums[kind], (char *)shared->refused[kind]);
    }
    printf("interrupts %llu\n", (unsigned long long)interrupts(INTERRUPTS));
    printf("ended_badly %d\n", ended_badly);
    return 0;
}
