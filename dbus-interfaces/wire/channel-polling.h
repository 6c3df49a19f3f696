/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Decides if a side of a channel polls for a moment before it sleeps: the client for an answer, the worker for the next
 * request. Pure.
 *
 * To be woken costs more than a point query. So a side polls, and yields the CPU between two polls. The time in which
 * other processes run costs nothing, so only the rest is counted, and limited to CHANNEL_POLLING_USEC. With many clients
 * on few CPUs neither side sleeps then, and no system call is needed but the yields.
 *
 * On an idle virtual machine it takes 50 us and more until a process that is woken runs. If each side gave up sooner,
 * both would sleep after one late answer, and each would wake the other too late for its poll, for hundreds of queries.
 * So a side that has just woken the other polls for CHANNEL_POLLING_WOKEN_USEC, if waits follow each other quickly.
 *
 * A poll fails if it finds nothing, or finds it so late that a sleeper would have been woken sooner. The more polls fail
 * in a row, the more waits begin without one. So a client that pauses between its queries costs next to nothing, and
 * neither side waits for programs that compute. For measurements see docs/performance.md, "One answer at a time".
 */
#ifndef SQLIPC_DBUS_INTERFACES_WIRE_CHANNEL_POLLING_H
#define SQLIPC_DBUS_INTERFACES_WIRE_CHANNEL_POLLING_H

#include <stdbool.h>
#include <stdint.h>

#define CHANNEL_POLLING_USEC 30u
#define CHANNEL_POLLING_WOKEN_USEC 100u
#define CHANNEL_POLLING_QUICK_USEC 300u  /* between two waits that follow each other quickly */
#define CHANNEL_POLLING_LATE_USEC 1000u  /* a poll that takes longer than this fails */
#define CHANNEL_POLLING_SHARED_USEC 4u   /* if a yield takes longer, another process had the CPU */
#define CHANNEL_POLLING_FAILED_MAX 6u    /* after this many failed polls, a side polls at one wait of 64 */

/* Zeroed: the next wait begins with a poll. */
typedef struct ChannelPolling {
        unsigned n_failed;    /* polls in a row */
        unsigned n_to_skip;   /* waits that begin without a poll */
        uint64_t waited_usec; /* when the last wait began */
        uint64_t begun_usec, looked_usec; /* of the poll under way */
        unsigned limit_usec;  /* the same */
        unsigned own_usec;    /* the part of it in which no other process ran */
} ChannelPolling;

/* A wait begins. `woke`: this side may just have woken the other. True: the side must yield the CPU, look, and call
 * channel_polling_looked(), until that returns false. */
bool channel_polling_begins(ChannelPolling *polling, bool woke, uint64_t now);

/* It has looked, and `found` something or not. Returns true if it must yield and look again. */
bool channel_polling_looked(ChannelPolling *polling, bool found, uint64_t now);

#endif
