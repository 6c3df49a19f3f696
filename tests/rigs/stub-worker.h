/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stubs in the place of worker processes: two sockets each, at whose other ends an input decides the messages. By
 * turns honest, wrong, or dead. Tests only.
 */
#ifndef SQLIPC_TESTS_RIGS_STUB_WORKER_H
#define SQLIPC_TESTS_RIGS_STUB_WORKER_H

#include <stdbool.h>

#include "daemon/protocol/protocol.h"
#include "tests/fuzz/input.h"

/* The next thing that the worker chosen by the input does. */
void stub_worker_act(Input *in);

/* All of them do what they were told, to the end. True: something happened. */
bool stub_workers_be_honest(void);

/* The supervisor learns of those that died. True: there were some. */
bool stub_workers_reap(void);

unsigned stub_workers_count(void);

/* ---- For tests with a script: `worker` counts those that live, the oldest is 0. ---- */

/* The number of those that live. */
unsigned stub_workers_alive(void);

/* It takes the next job from its group's socket and sends TAKEN. False: no job is there. */
bool stub_worker_take(unsigned worker);

/* It reads all messages on its control socket, and reacts as stub_workers_be_honest() does. */
void stub_worker_hear(unsigned worker);

/* How often it was given the lease of its database, and was asked for it. Hears first. */
typedef struct StubLease {
        unsigned n_granted, n_asked, n_taken;
} StubLease;
StubLease stub_worker_lease(unsigned worker);

/* How often it was given a connection to its server, and was asked for one. Hears first. */
typedef struct StubConnections {
        unsigned n_granted, n_asked;
} StubConnections;
StubConnections stub_worker_connections(unsigned worker);

/* The job that it has taken before all others ends. */
void stub_worker_finish(unsigned worker);

/* How often it was told if clients watch the database, and the last of it; how often it was asked as an observer, which
 * counts among the workers, and was given inotify. Hears first. */
typedef struct StubWatch {
        unsigned n_told, n_looks, n_notifiers;
        bool on;
} StubWatch;
StubWatch stub_worker_watch(unsigned worker);

/* The answers to OBSERVE and TABLES. While `silent` is set, OBSERVE and WATCH get none. */
extern Observed stub_observed;
extern Bytes stub_tables;
extern bool stub_watch_silent;

/* The part of its SETUP about writing. Hears first. */
typedef struct StubSetup {
        bool writes, write_schema;
        uint32_t n_write_tables;
        uint64_t wal_size_max;
} StubSetup;
StubSetup stub_worker_setup(unsigned worker);

/* How many CANCELs it has got. Hears first. */
unsigned stub_worker_cancels(unsigned worker);

/* How many COMMITs it has got. Hears first. */
unsigned stub_worker_commits(unsigned worker);

/* The channel of this number that it has, as it was handed over; borrowed. NULL: it has none. Hears first. */
const ChannelSetup *stub_worker_channel(unsigned worker, uint64_t number);

/* It sends the message, whatever that is. */
void stub_worker_say(unsigned worker, const Message *m);

/* It dies with this `code` (CLD_EXITED, CLD_KILLED) and status. */
void stub_worker_die(unsigned worker, int code, int status);

/* While this is on, SIGKILL has no effect. */
void stub_workers_ignore_kill(bool on);

#endif
