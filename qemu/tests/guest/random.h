/*
 * Pseudo-random numbers, and values that are nonsense for most registers
 *
 * For programs with and without an operating system.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RANDOM_H
#define RANDOM_H

#include <stdint.h>

/* State of the random number generator, never zero.  A program can set it to seed the sequence. */
static uint64_t rnd_state = 88172645463325252ULL;

/* Return the next pseudo-random number, by Marsaglia's xorshift. */
static inline uint64_t rnd(void)
{
    rnd_state ^= rnd_state << 13;
    rnd_state ^= rnd_state >> 7;
    rnd_state ^= rnd_state << 17;
    return rnd_state;
}

/* Return a random value: no bit, all bits, one bit, a value near 2^31, or any value. */
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
