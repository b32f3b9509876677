/*
 * Let a test program run until the host tells it to stop
 *
 * The host can then save and load the machine and be sure that the program was
 * running meanwhile, however fast or slow the host is.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef UNTIL_TOLD_H
#define UNTIL_TOLD_H

#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

/*
 * Return whether the host has sent a byte through @port, a device file of
 * virtio-serial.  The function does not block, and the file can appear after
 * the program's start.  Without a port (NULL), always return true.
 */
static inline bool told_to_stop(const char *port)
{
    static int fd = -1;
    char byte;

    if (!port) {
        return true;
    }
    if (fd < 0) {
        fd = open(port, O_RDONLY | O_NONBLOCK);
    }
    return read(fd, &byte, 1) == 1;
}

#endif
