/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A channel into the worker of worker-rig.h, with both ends held here, as a client and the supervisor hold them: requests
 * made by hand, right or wrong, and checks of the answers. Tests only.
 */
#ifndef SQLIPC_TESTS_RIGS_CHANNEL_RIG_H
#define SQLIPC_TESTS_RIGS_CHANNEL_RIG_H

#include "dbus-interfaces/wire/sqlipc-channel.h"
#include "tests/rigs/worker-rig.h"

#define LATER UINT64_C(3600000000) /* a limit of time that no test comes to */

typedef struct Client {
        uint64_t number;    /* of the channel */
        int fd;             /* the client's end */
        int kept_fd;        /* the worker's end, as the supervisor keeps it */
        GByteArray *output; /* requests that are not sent yet */
        uint64_t request;   /* number of the last */
        PageDecoder decoder;
        ChannelSetup setup; /* what the channel was opened with, or will be */
} Client;

/* The answer to a request. */
typedef struct Answer {
        uint64_t number;
        bool statement;            /* STATEMENT */
        uint32_t n_columns, n_parameters;
        ErrorNumber error;         /* of ERROR; none: END or STATEMENT */
        char message[512];
        uint64_t n_rows;
        int64_t integer;           /* first value of the last row, if it was INTEGER */
        EndCounters counters;
} Answer;

/* A channel in `rig`'s worker. client_init() alone lets the test change `setup` first. */
void client_init(Rig *rig, Client *c);
void client_open(Rig *rig, Client *c);
void client_start(Rig *rig, Client *c); /* both */

/* The client goes: its end is closed. client_done() also frees, and accepts one that left. */
void client_leave(Client *c);
void client_done(Client *c);

/* A frame of any kind into `output`. */
void client_add_frame(Client *c, unsigned kind, unsigned flags, uint64_t number, const void *payload, size_t size);

/* Requests into `output`; they return their number. `values`: INTEGER parameters. */
uint64_t client_add_prepare(Client *c, const char *sql);
uint64_t client_add_fetch(Client *c, uint64_t statement, unsigned n_values, const int64_t *values);
uint64_t client_add_query(Client *c, const char *sql, unsigned n_values, const int64_t *values);
void client_add_cancel(Client *c, uint64_t number);
void client_add_finalize(Client *c, uint64_t statement);

/* Sends `output`; it must fit. */
void client_send(Client *c);

/* Bytes for the decoder. False: end of file. */
bool client_read(Client *c);

/* The next answer. False: end of file, and nothing of one before it. */
bool client_receive(Client *c, Answer *ret);

/* The next answer, which must be there, to `number`, and end so. */
Answer client_expect(Client *c, uint64_t number, ErrorNumber error);

/* Sends a QUERY, and returns its result. */
Answer client_query(Client *c, const char *sql);

/* The next report, which must be CHANNEL_PROGRESS; its SQL is gone. */
ChannelProgress client_next_progress(Rig *rig);

/* The worker gives the channel back, CHANNEL_CLOSED or CHANNEL_RESTED; progress passes by, its sums into `sums` (NULL:
 * nowhere). To be freed. */
ReceivedMessage client_expect_end(Rig *rig, Client *c, MessageKind kind, ChannelProgress *sums);

/* Takes up again what rested. */
void client_take_up(Rig *rig, Client *c, const ReceivedMessage *rested);

#endif
