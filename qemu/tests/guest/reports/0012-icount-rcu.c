// SPDX-License-Identifier: GPL-2.0-or-later
/* Change the memory map while two CPUs execute, and print how far the second CPU comes. */

#include "report.h"

/* The PCI host bridge of the machine, and a device on it */
#define BRIDGE_HIGH 0x8000000
#define BRIDGE_LOW  0x20000000
#define DEVICE      (1 << 11)

volatile uint64_t rounds;

/* The second CPU starts here, in 32-bit mode. */
asm("second: lis 4,rounds@ha; li 3,0\n"
    "1: addi 3,3,1; std 3,rounds@l(4); b 1b");
extern char second[];

/* Write a 32-bit register in the device's configuration space. */
static void configure(uint32_t reg, uint32_t value)
{
    rtas(0x2017, 5, (uint32_t []){ DEVICE | reg, BRIDGE_HIGH, BRIDGE_LOW, 4, value });
}

void main(void)
{
    rtas(0x2006, 3, (uint32_t []){ 1, (uintptr_t)second, 0 });      /* start the second CPU */
    configure(0x20, 0x80000000);
    for (int i = 0; i < 100; i++) {
        configure(4, i & 1 ? 2 : 0);        /* turn the device's memory on and off */
        count(100000);
    }
    put_hex(rounds);
    put("\n");
    power_off();
}
