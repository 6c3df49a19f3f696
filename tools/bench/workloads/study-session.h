/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The requests of the 2010 study's protocol and the flow of its pages. The caller transports the pages.
 *
 *      Prepare  0x50, u32 size of the query, the query; answered by an i32 return code (SQLITE_OK...)
 *      Fetch    0x46; answered by pages (study-page.h), the last of which ends the result
 */
#ifndef SQLIPC_TOOLS_BENCH_WORKLOADS_STUDY_SESSION_H
#define SQLIPC_TOOLS_BENCH_WORKLOADS_STUDY_SESSION_H

#include "tools/bench/workloads/transport-source.h"
#include "tools/bench/workloads/transport.h"

enum {
        STUDY_PREPARE = 0x50,
        STUDY_FETCH = 0x46,
};

/* The destination of a server's pages. If a function returns a negative value, the server ends. */
typedef struct StudySink {
        /** Returns memory for the next page; waits until there is some. */
        int (*begin)(struct StudySink *sink, uint8_t **ret_bytes);
        /** Called when the page is complete. */
        int (*send)(struct StudySink *sink, const uint8_t *bytes);
        /** Called after the last page was sent. May be NULL. */
        int (*finish)(struct StudySink *sink);
        size_t page_size;
        void *userdata;
} StudySink;

/** Steps through the statement of `source` and sends the whole result. */
int study_send_result(Source *source, StudySink *sink);

/** Serves requests on `fd` until the other side closes it. */
int study_serve(int fd, const char *file, StudySink *sink);

/** Functions of a sink that builds pages in one buffer and writes them to `fd`, a socket or a pipe. */
int study_sink_begin_buffer(StudySink *sink, uint8_t **ret_bytes);
int study_sink_send(StudySink *sink, const uint8_t *bytes);
typedef struct StudyOutput {
        uint8_t *buffer;
        int fd;
} StudyOutput;

/** Sends a client's Prepare and Fetch. The pages follow. */
int study_request(Transport *transport, const char *sql);

/** Copies the rows of a page. Returns 1 if the result continues in the next page, 0 if it is complete, negative on error. */
int study_copy_page(Transport *transport, const uint8_t *bytes, Copy *copy);

/** Reads pages from `fd` until the result ends. `buffer` has room for one page. */
int study_copy_pages(Transport *transport, int fd, uint8_t *buffer, Copy *copy);

#endif
