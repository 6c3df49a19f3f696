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
 * can be trusted. A request with a valid header but wrong content is answered by ERROR alone.
 *
 * If a client shuts its socket down for writing, the requests that it had sent are answered, and then the channel ends. If
 * it closes its socket, or shuts it down in both directions, the request under way ends at once. Descriptors have no meaning
 * here, and are closed.
 *
 * End-of-file between two answers means that the service closed the channel (it was reloaded, or stops, or the channel was
 * idle for StatementIdleSec=, or no worker was free): open another channel. Only a call over the bus tells why no worker was
 * free. End-of-file inside an answer means that the worker was lost.
 */
#ifndef SQLIPC_DBUS_INTERFACES_WIRE_SQLIPC_CHANNEL_H
#define SQLIPC_DBUS_INTERFACES_WIRE_SQLIPC_CHANNEL_H

#include "dbus-interfaces/wire/sqlipc-page.h"

typedef enum RequestKind {
        REQUEST_CANCEL = 0x43,
        REQUEST_FETCH = 0x46,
        REQUEST_PREPARE = 0x50,
        REQUEST_QUERY = 0x51,
        REQUEST_FINALIZE = 0x58,
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
