/*
 * Check that the emulator survives random values in the registers of the Zen PMU
 *
 * usage: msr-fuzz [WRITES [SEED [DEVICE]]]
 *
 * Runs under Linux, as root, with the msr driver (DEVICE is /dev/cpu/0/msr by default).
 * The program first checks that the registers keep and refuse the same bits as on
 * hardware.  Then it writes random values to random registers: the guest and the
 * emulator have to survive.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "../ktap.h"
#include "../random.h"

#define DBG_EXTN_CFG 0xc000010f
#define PERF_CTL0    0xc0010200
#define PERF_CTR0    0xc0010201
#define SAMP_BR_FROM 0xc0010300

static int fd;

static bool write_msr(uint32_t msr, uint64_t val)
{
    return pwrite(fd, &val, sizeof(val), msr) == sizeof(val);
}

static bool read_msr(uint32_t msr, uint64_t *val)
{
    return pread(fd, val, sizeof(*val), msr) == sizeof(*val);
}

static bool reads(uint32_t msr, uint64_t want)
{
    uint64_t val;

    if (!read_msr(msr, &val)) {
        ktap_note("%#x cannot be read", msr);
        return false;
    }
    if (val != want) {
        ktap_note("%#x is %#llx instead of %#llx", msr,
                  (unsigned long long)val, (unsigned long long)want);
        return false;
    }
    return true;
}

/* Stop and clear all counters, and switch BRS off, which releases a held interrupt. */
static void quiet(bool brs)
{
    for (int i = 0; i < 6; i++) {
        write_msr(PERF_CTL0 + 2 * i, 0);
        write_msr(PERF_CTR0 + 2 * i, 0);
    }
    if (brs) {
        write_msr(DBG_EXTN_CFG, 3 << 3);
    }
}

static uint32_t random_msr(bool brs)
{
    switch (rnd() % (brs ? 5 : 3)) {
    case 0:
        return 0xc0010000 + rnd() % 8;
    case 1:
    case 2:
        return PERF_CTL0 + rnd() % 16;
    case 3:
        return DBG_EXTN_CFG;
    default:
        return SAMP_BR_FROM + rnd() % 36;
    }
}

/* Return a random value, in four of five cases a value that a driver could write. */
static uint64_t random_value(void)
{
    static const uint64_t events[] = { 0xc0, 0xc2, 0xc4, 0x76 };

    switch (rnd() % 5) {
    case 0:
        return rnd();
    case 1:
        return -(rnd() % 100000);
    case 2:
        return (3 << 3) | (rnd() & 0x070f0024);
    default:
        /* A value of PERF_CTL without INT, as the kernel expects no counter interrupts */
        return events[rnd() % 4] | (rnd() & 0x30000ff0000ULL);
    }
}

int main(int argc, char **argv)
{
    unsigned long writes = argc > 1 ? strtoul(argv[1], NULL, 0) : 100000;
    unsigned long faults = 0;
    uint64_t val;
    bool ok, brs;

    ktap_start();
    fd = open(argc > 3 ? argv[3] : "/dev/cpu/0/msr", O_RDWR);
    if (fd < 0) {
        ktap_skip_all("no /dev/cpu/0/msr");
    }
    if (argc > 2) {
        rnd_state = strtoull(argv[2], NULL, 0) ?: 1;
    }

    /* With Branch Sampling, bits 3 and 4 of DBG_EXTN_CFG are always 1; without it, 0. */
    brs = read_msr(DBG_EXTN_CFG, &val) && val;
    ktap_note("%s", brs ? "with branch sampling" : "no branch sampling");
    quiet(brs);

    write_msr(PERF_CTL0, -1ULL & ~(1ULL << 22));
    ktap_result(reads(PERF_CTL0, 0x70fff9fffffULL | (1ULL << 19)) ||
                !read_msr(PERF_CTL0, &val), "reserved_bits_of_perf_ctl");
    quiet(brs);

    ok = write_msr(PERF_CTR0 + 2, 0xabcdef0123456789ULL) &&
         reads(PERF_CTR0 + 2, 0xef0123456789ULL) &&
         reads(0xc0010005, 0xef0123456789ULL);
    ktap_result(ok, "counter_has_48_bits_and_an_alias");
    quiet(brs);

    if (brs) {
        ktap_result(reads(DBG_EXTN_CFG, 3 << 3), "config_fixed_ones");
        ok = true;
        for (int bit = 0; bit < 64; bit++) {
            bool valid = (0x070f0024ULL >> bit) & 1;

            if (bit == 3 || bit == 4) {
                continue;
            }
            if (write_msr(DBG_EXTN_CFG, (3 << 3) | (1ULL << bit)) != valid) {
                ktap_note("bit %d", bit);
                ok = false;
            }
        }
        ktap_result(ok, "config_reserved_bits_fault");
        ktap_result(!write_msr(DBG_EXTN_CFG, 0), "config_fixed_ones_fault");
        quiet(brs);
    }

    for (unsigned long i = 0; i < writes; i++) {
        faults += !write_msr(random_msr(brs), random_value());
        if (rnd() % 8 == 0) {
            read_msr(random_msr(brs), &val);
        }
    }
    quiet(brs);
    ktap_note("%lu of %lu writes faulted", faults, writes);
    ktap_result(true, "alive");
    return ktap_finish();
}
