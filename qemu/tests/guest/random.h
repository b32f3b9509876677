/*
 * Random numbers, and nonsense for registers; needs no operating system
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RANDOM_H
#define RANDOM_H

#include <stdint.h>

/* Where the sequence stands: whoever wants another one sets it, not to zero. */
static uint64_t rnd_state = 88172645463325252ULL;

/* Marsaglia's xorshift */
static inline uint64_t rnd(void)
{
    rnd_state ^= rnd_state << 13;
    rnd_state ^= rnd_state >> 7;
    rnd_state ^= rnd_state << 17;
    return rnd_state;
}

/* A value with few, many or boundary bits */
static inline uint64_t nonsense(void)
{
    switch (rnd() % 6) {
    case 0:
        return 0;
    case 1:
        return ~0ULL;
    case 2:
        return 1ULL << (rnd() % 64);
    case 3:
        return 0x80000000ULL - rnd() % 64;
    case 4:
        return rnd() & rnd() & rnd();
    default:
        return rnd();
    }
}

#endif
