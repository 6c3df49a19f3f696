/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The supervisor in this process, with all of its objects, on a socketpair: at the other end are the bus driver, polkit and
 * any number of peers, whose messages carry the sender that a bus would write. Workers are stubs (stub-worker.h), because
 * their behaviour comes from the input, too, and a process takes longer than thousands of calls. Time passes only when a
 * test says so. For fuzz-bus-methods.
 *
 * The linker (--wrap) replaces what lies outside: the clock and timers, the bus's address and the
 * one call that waits for the driver, starting, killing and reaping of processes. meson.build has the list.
 */
#ifndef SQLIPC_TESTS_RIGS_BUS_RIG_H
#define SQLIPC_TESTS_RIGS_BUS_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "daemon/supervisor/service/manager.h"
#include "tests/fuzz/input.h"

#define RIG_N_PEERS 4u
#define RIG_N_PEERS_MAX 8u
#define RIG_N_CALLS_MAX 256u
#define RIG_N_FDS_MAX 64u
#define RIG_N_NUMBERS 16u

/* How the driver answers who a peer is. */
typedef enum RigCredentials { CREDENTIALS_WHOLE, CREDENTIALS_NO_OWNER, CREDENTIALS_NO_UID, CREDENTIALS_ODD } RigCredentials;

typedef struct RigPeer {
        uid_t uid;
        RigCredentials credentials;
        bool left;
} RigPeer;

typedef struct RigCall {
        uint64_t cookie;
        unsigned peer;
        bool wants_reply;
        bool may_wait;                       /* WaitChange: its reply comes after a change, which may never come */
        unsigned n_replies;
        char error[64];                      /* the reply's; "": it is no error, or did not come yet */
        char sentence[512];
        int32_t extended_code;               /* of an error with details; 0: it has none */
        int64_t n_changes;                   /* of Execute; of ExecuteBatch that of its last statement */
} RigCall;

typedef struct Rig {
        Manager *manager;
        sd_bus *driver;                      /* the other end */
        RigPeer peers[RIG_N_PEERS_MAX];
        unsigned n_peers;                    /* a test may raise it from RIG_N_PEERS */
        RigCall calls[RIG_N_CALLS_MAX];      /* of this input */
        size_t n_calls;
        int fds[RIG_N_FDS_MAX];              /* that came with replies */
        size_t n_fds;
        uint64_t numbers[RIG_N_NUMBERS];     /* of statements, runs and channels, as replies told them */
        size_t n_numbers;
        bool out_of_memory;                  /* the supervisor cannot make replies */
        unsigned n_timers;                   /* that have fired */
        GQueue questions;                    /* of sd_bus_message: polkit was asked, and did not answer yet */
} Rig;

/* The one rig; made by rig_init(), once. */
extern Rig rig;
void rig_init(void);

/* Before each input. */
void rig_begin(void);

/* The same for a test, which the first one may call before rig_init(): each peer is of a user of its own. */
void rig_begin_users(void);

/* Everything that can happen now happens. */
void rig_pump(void);

/* So many microseconds go by: timers fire in their order. */
void rig_pass_time(uint64_t usec);

const char *rig_peer_name(unsigned peer);

/* A call as `peer` would send it; the caller fills it in. NULL: the name of the member is not allowed. */
sd_bus_message *rig_new_call(unsigned peer, const char *path, const char *interface, const char *member);

/* Sends it, and drops it. Its answer is counted. */
void rig_send_call(unsigned peer, sd_bus_message *m, bool wants_reply);

/* The peer asks for "SELECT 1" by Query. */
void rig_query(unsigned peer, const char *database);

/* Changes Mode= of a database under the service, for its later calls. Users who may use it may then write it. */
void rig_set_mode(const char *database, const char *mode);

/* The peer is gone from the bus. */
void rig_leave(unsigned peer);

/* polkit answers the first question that it was asked. */
void rig_answer_polkit(Input *in);

/* Each call that wants a reply is answered exactly once, and no other call is. */
void rig_check_calls(void);

/* Ends what the input did: all peers leave, workers end. Nothing may be left. */
void rig_check_nothing_left(void);

#endif
