/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A channel into the worker of worker-rig.h, with both ends held here, as a client and the supervisor hold them: requests
 * made by hand, right or wrong, and checks of the answers. Channels have memory if the test program has the argument
 * --memory. Tests only.
 */
#ifndef SQLIPC_TESTS_RIGS_CHANNEL_RIG_H
#define SQLIPC_TESTS_RIGS_CHANNEL_RIG_H

#include "dbus-interfaces/wire/channel-memory.h"
#include "dbus-interfaces/wire/sqlipc-channel.h"
#include "tests/rigs/worker-rig.h"

typedef struct Client {
        uint64_t number;    /* of the channel */
        int fd;             /* the client's end */
        int kept_fd;        /* the worker's end, as the supervisor keeps it */
        int memory_fd;      /* -1: no memory */
        ChannelSide side;
        uint32_t withheld;  /* with memory: so many bytes fewer than it has read the client admits to */
        bool at_end;        /* with memory: the worker has closed its end */
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

/* From now on memory takes so many bytes of answers. */
void client_narrow(Client *c, uint32_t room);

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
void client_send_bytes(Client *c, const void *bytes, size_t size);

/* Until the client can read; or true if it can within that time. */
void client_wait(Client *c);
bool client_can_read(Client *c, int msec);

/* The worker's next message, a CHANNEL with the client's descriptors, for an end in this process. */
ReceivedMessage client_setup_message(const Client *c);

/* Writes answers as the supervisor does for a worker. Returns how many bytes fitted. */
size_t client_write_unread(Client *c, const uint8_t *bytes, size_t size);

/* The size of the answers that have come and were not read. */
size_t client_n_unread(const Client *c);

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
