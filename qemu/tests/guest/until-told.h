/*
 * Go on until the host says that it is enough
 *
 * So that what happens to the machine meanwhile happens while a program is at
 * work, however fast the host is.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef UNTIL_TOLD_H
#define UNTIL_TOLD_H

#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

/*
 * Has the host sent something through this port, a device of virtio-serial?
 * It need not have been there from the start, nor does this wait for anything
 * else.  Without a port, one time is enough.
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
