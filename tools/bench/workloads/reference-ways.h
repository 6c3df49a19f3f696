/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ways of sending a large message with descriptors to another process over a datagram socket: in the datagram itself, or
 * outside of it, with a reference in the datagram. In each way every message carries REFERENCE_N_FDS descriptors of its own.
 */
#ifndef SQLIPC_TOOLS_BENCH_WORKLOADS_REFERENCE_WAYS_H
#define SQLIPC_TOOLS_BENCH_WORKLOADS_REFERENCE_WAYS_H

#include "tools/bench/core/child.h"
#include "tools/bench/core/passing.h"
#include "tools/bench/workloads/reference-queue.h"

#define REFERENCE_SIZE ((size_t) 112192)
enum { REFERENCE_N_FDS = 2, REFERENCE_SLOTS = 16, REFERENCE_BATCH = 8 };

typedef struct Reference Reference;

typedef struct ReferenceWay {
        const char *name;
        unsigned group; /* number of messages that one call of `send` sends */
        /** Runs in the sender. */
        int (*send)(Reference *reference);
        /** Runs in the receiver, once per datagram, which is in `packet` and came with `fds`; REFERENCE_N_FDS of
         * these belong to the message. Puts the large message into `reference->got`. */
        int (*receive)(Reference *reference, size_t packet_size, const int *fds, size_t n_fds);
        unsigned divisor; /* a slow way sends only this fraction (1 / divisor) of the messages */
} ReferenceWay;

/* The state of one way, in both processes: the receiver has a copy. */
struct Reference {
        const ReferenceWay *way;
        Child child;
        int socket;
        const char *folder;     /* for temporary files */
        uint8_t *payload;
        int carried[REFERENCE_N_FDS];
        uint8_t *packet, *got;  /* the datagram as received; the large message */
        uint8_t *buffer;        /* scratch space for one message */
        Queue queue;
        unsigned credits;       /* of the sender: messages that are sure to fit into the queue */
        unsigned ahead, taken;  /* of the receiver: taken before their datagram; taken since it last gave credits */
};

typedef struct CpuTimes {
        double user_usec, system_usec;
} CpuTimes;

/** Returns the CPU times of this process so far. */
CpuTimes reference_cpu_times(void);

/* What the receiver reports at the end of a run. */
typedef struct ReferenceTotals {
        uint64_t n_messages;
        uint64_t check;               /* of the last message */
        CpuTimes cpu;                 /* of the run */
} ReferenceTotals;

extern const ReferenceWay reference_ways[];
extern const unsigned n_reference_ways;

/** Creates the message, which is the same for all ways, and starts the receiver. */
int reference_open(Reference *reference, const ReferenceWay *way, const char *folder);
/** Ends the receiver. `reference` may be zeroed memory. -EIO: the receiver failed. */
int reference_close(Reference *reference);
/** Sends `n` messages, rounded up to whole groups, and waits until the last has been received. */
int reference_send(Reference *reference, unsigned n, ReferenceTotals *ret);

/** Creates a file without a name in `folder`, open for reading and writing. */
int reference_temporary_file(const char *folder);
/* Compress and decompress a message. Return the resulting size; -EMSGSIZE: the room is too small; -EBADMSG. */
ssize_t reference_gzip(const void *bytes, size_t size, void *ret_packed, size_t room);
ssize_t reference_gunzip(const void *packed, size_t size, void *ret_bytes, size_t room);

#endif
