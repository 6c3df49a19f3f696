/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The channel: a private SOCK_STREAM socket between a client and a worker, for many small queries. Pure. This header is
 * normative, together with sqlipc-page.h, whose frames it uses; docs/man/sqlipc-channel.5.rst renders it.
 *
 * Both directions carry frames with the header, alignment and byte order of sqlipc-page.h; each direction has its own kinds.
 * The number in the header's `run` is the request's, chosen by the client: not 0, and larger than that of every PREPARE,
 * FETCH and QUERY before it on this channel. All frames of the answer carry it.
 *
 *   client -> worker
 *     PREPARE  0x50   the SQL, without NUL.                                   Answer: STATEMENT, or ERROR.
 *     FETCH    0x46   u64 statement (the number of the request that prepared it), u64 timeout_usec (0: only the
 *                     service's), u32 n_positional, u32 n_named, then the parameters as one row of
 *                     n_positional + 2*n_named values: the positional ones, then name (TEXT, without or with its prefix)
 *                     and value in turn. Without parameters there is no row.   Answer: a run, as down a pipe.
 *     QUERY    0x51   u64 timeout_usec, u32 n_positional, u32 n_named, u32 sql_size, u32 zero, the SQL, the row as above.
 *                                                                             Answer: a run.
 *     CANCEL   0x43   `run` is the number of the request to end; no payload.  No answer of its own: that request ends in
 *                     ERROR (Cancelled), unless it has ended already, which is no error.
 *     FINALIZE 0x58   `run` is the number of the statement; no payload.       No answer. An unknown number is ignored.
 *     FOREIGN_KEYS    `run` is a ForeignKeys (sqlipc-page.h), which holds for the requests after this one; no payload. END
 *              0x4b   tells the value. Manager.Features has "foreign-keys".   No answer.
 *     TIME_ZONE 0x5a  `run` is 0; the payload is a zone (time-zone.h), without NUL, which holds for the requests after this
 *                     one; no payload: the service's own. Only if `info` of OpenChannel has `time-zone`.   No answer.
 *     LOCK_WAIT 0x4c  `run` is for how many microseconds each of the requests after this one waits for the lock of a
 *                     transaction; UINT64_MAX: only the service's limits hold. No payload. Only if `info` of OpenChannel has
 *                     `lock-wait`.                                            No answer.
 *
 *   worker -> client
 *     the frames of sqlipc-page.h, and
 *     STATEMENT  6    u32 n_columns, u32 n_parameters, u32 flags (STATEMENT_READ_ONLY), u32 reserved, then u32 end offsets
 *                     for 2 x n_columns + n_parameters strings (name and declared type of each column in turn, then the
 *                     parameters' names with their prefix), counted from the end of the offsets, then the strings, each
 *                     followed by a NUL, then the extension. An absent string (no declared type, a nameless parameter) takes
 *                     no bytes at all. A writer sets other flags and the reserved field to 0; a reader ignores them.
 *                     May be continued (FRAME_MORE), like COLUMNS.
 *
 * Requests may be sent without waiting for answers (pipelined). They are answered one after the other, in their order. If a
 * client does not read its answers, its requests are no longer read once socket and worker hold CHANNEL_AHEAD_SIZE of
 * requests beyond the one under way. A CANCEL after so many bytes waits, too, but closing the socket always ends the request
 * under way.
 *
 * A request is answered by ERROR (InvalidRequest) and the end of the channel if its header has a size of more than
 * CHANNEL_REQUEST_SIZE_MAX, an unknown kind or version, a flag, or a number out of order, since nothing after such a header
 * can be trusted. The same holds for a TIME_ZONE without a valid zone, because it has no answer. A request with a valid
 * header but wrong content is answered by ERROR alone.
 *
 * MEMORY. If `info` of OpenChannel has `memory`, both directions go through this memfd instead of the socket, as two streams
 * of bytes with the same frames (channel-ring.h has the code of both sides). It has CHANNEL_MEMORY_SIZE bytes and the seals
 * SHRINK, GROW and SEAL; check both before you map it. All numbers are u32 in little-endian, aligned, and count bytes
 * modulo 2^32.
 *
 *        offset       REQUESTS  ANSWERS
 *        written             0      128   bytes that were written; only the writer stores it, with release
 *        writer_sleeps       4      132   1: the writer wants a byte in the socket when there is room
 *        withdrawn           8      136   1: bytes that were not read must not be read any more
 *        read               64      192   bytes that were read; only the reader stores it, with release
 *        reader_sleeps      68      196   1: the reader wants a byte in the socket when there are bytes
 *        the bytes        4096    69632   65536 of them: byte i of the stream is at i modulo 65536
 *
 * The rest is zero, and is reserved. The first `written` and `read` are 0, and both `reader_sleeps` are 1. A writer copies
 * bytes in, then stores `written`; a reader copies them out, then stores `read`. Each side keeps its own number privately,
 * loads the other side's with acquire, once, and ends the channel if `written` - `read` would be more than 65536. It decodes
 * only copies, since the other side may change the memory at any time.
 *
 * A socket byte has any value, and only wakes. After a store of its number, a side makes a full barrier, and if the other
 * side's flag is 1 exchanges it for 0 and, if it was still 1, sends one byte. If the socket is full, bytes wait there,
 * which is enough. To sleep, a side empties the socket, stores 1 in its flag, makes a full barrier, looks at the memory
 * again, and waits for the socket only if it can do nothing. When the wait ends it does all this again: a byte may be
 * late.
 *
 * The end of the socket is that of the channel. Answers that were written before are still there. To take back requests that
 * no worker read, a client stores 1 in `withdrawn`, makes a full barrier and loads `read`: these bytes were never used. The
 * worker stores `read`, makes a full barrier, and uses what it copied only if `withdrawn` is 0.
 *
 * If a client shuts its socket down for writing, the requests that it had sent are answered, and then the channel ends. If
 * it closes its socket, or shuts it down in both directions, the request under way ends at once. Descriptors have no meaning
 * here, and are closed.
 *
 * End-of-file between two answers means that the service closed the channel (it was reloaded, or stops, or the channel was
 * idle for StatementIdleSec=, or made room for another one because it was opened with the option `cached`, or no worker
 * was free): open another channel. Only a call over the bus tells why no worker was free. End-of-file inside an answer
 * means that the worker was lost.
 */
#ifndef SQLIPC_DBUS_INTERFACES_WIRE_SQLIPC_CHANNEL_H
#define SQLIPC_DBUS_INTERFACES_WIRE_SQLIPC_CHANNEL_H

#include "dbus-interfaces/wire/sqlipc-page.h"

typedef enum RequestKind {
        REQUEST_CANCEL = 0x43,
        REQUEST_FETCH = 0x46,
        REQUEST_FOREIGN_KEYS = 0x4b,
        REQUEST_LOCK_WAIT = 0x4c,
        REQUEST_PREPARE = 0x50,
        REQUEST_QUERY = 0x51,
        REQUEST_FINALIZE = 0x58,
        REQUEST_TIME_ZONE = 0x5a,
} RequestKind;

enum { FRAME_STATEMENT = 6 }; /* a FrameKind that is used on channels only */
enum { STATEMENT_READ_ONLY = 1 << 0 };

#define CHANNEL_REQUEST_SIZE_MAX ((size_t) 128 * 1024 * 1024) /* payload; RowSizeMax= and SQLSizeMax= bound it further */
#define CHANNEL_AHEAD_SIZE ((size_t) 64 * 1024)
#define CHANNEL_FETCH_HEAD_SIZE ((size_t) 24)                 /* payload before the row */
#define CHANNEL_QUERY_HEAD_SIZE ((size_t) 24)                 /* payload before the SQL */
#define CHANNEL_STATEMENT_HEAD_SIZE ((size_t) 16)
#define CHANNEL_STATEMENTS_SIZE_MAX ((size_t) 1024 * 1024)    /* SQL of a channel's statements: LimitsExceeded past it */

#endif
