/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ways of sending a large message with descriptors to another process over a datagram socket: in it, or beside it, as what
 * the message refers to. Each message carries REFERENCE_N_FDS descriptors of its own, whatever the way.
 */
#ifndef BENCH_REFERENCE_WAYS_H
#define BENCH_REFERENCE_WAYS_H

#include "child.h"
#include "passing.h"
#include "reference-queue.h"

#define REFERENCE_SIZE ((size_t) 112192)
enum { REFERENCE_N_FDS = 2, REFERENCE_SLOTS = 16, REFERENCE_BATCH = 8 };

typedef struct Reference Reference;

typedef struct ReferenceWay {
        const char *name;
        unsigned group; /* messages that `send` sends */
        /** At the sender. */
        int (*send)(Reference *reference);
        /** At the receiver, for each message: `packet` came with `fds`, of which REFERENCE_N_FDS are the message's own.
         * Leaves the large message at `reference->got`. */
        int (*receive)(Reference *reference, size_t packet_size, const int *fds, size_t n_fds);
        unsigned divisor; /* it is so much slower that this part of the messages will do */
} ReferenceWay;

/* One way, at both of its ends: the receiver has a copy. */
struct Reference {
        const ReferenceWay *way;
        Child child;
        int socket;
        const char *folder;     /* for temporary files */
        uint8_t *payload;
        int carried[REFERENCE_N_FDS];
        uint8_t *packet, *got;  /* as received; unpacked */
        uint8_t *buffer;        /* room for a message */
        Queue queue;
        unsigned credits;       /* the sender's: messages that are sure to fit in */
        unsigned ahead, taken;  /* the receiver's: out of the queue, but not yet told of; since it gave credits last */
};

typedef struct CpuTimes {
        double user_usec, system_usec;
} CpuTimes;

/** Of this process, so far. */
CpuTimes reference_cpu_times(void);

/* What the receiver tells at the end of a run. */
typedef struct ReferenceTotals {
        uint64_t n_messages;
        uint64_t check;               /* of the last message */
        CpuTimes cpu;                 /* of the run */
} ReferenceTotals;

extern const ReferenceWay reference_ways[];
extern const unsigned n_reference_ways;

/** Makes the message, the same for each way, and starts the receiver. */
int reference_open(Reference *reference, const ReferenceWay *way, const char *folder);
/** Has the receiver end. For one that is zeroed, too. -EIO: it did not end well. */
int reference_close(Reference *reference);
/** Sends `n` messages, rounded up to whole groups, and waits until the last has been received. */
int reference_send(Reference *reference, unsigned n, ReferenceTotals *ret);

/** Makes a file without a name in `folder`, open for both. */
int reference_temporary_file(const char *folder);
/* gzip of a message and back. Return the bytes, or -EMSGSIZE where there is no room, -EBADMSG. */
ssize_t reference_gzip(const void *bytes, size_t size, void *ret_packed, size_t room);
ssize_t reference_gunzip(const void *packed, size_t size, void *ret_bytes, size_t room);

#endif
