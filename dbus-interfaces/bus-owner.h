/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The owner of a bus, which the library and sqlipcctl check before they use the user's bus.
 *
 * The environment may name the bus of another user: sudo and su may keep it, and a program may change its uid. The bus would
 * let root in.
 */
#ifndef SQLIPC_DBUS_INTERFACES_BUS_OWNER_H
#define SQLIPC_DBUS_INTERFACES_BUS_OWNER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

/* True if the process at the other end of the socket `fd` runs as another user. */
static inline bool bus_owner_is_another_user(int fd) {
        struct ucred owner;
        socklen_t size = sizeof owner;

        return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &size) >= 0 && owner.pid != 0 &&
               owner.uid != geteuid();
}

#endif
