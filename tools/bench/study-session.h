/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The requests of the 2010 study's protocol, and the flow of its pages; what carries the pages is the caller's.
 *
 *      Prepare  0x50, u32 size of the query, the query; answered by an i32 return code (SQLITE_OK...)
 *      Fetch    0x46; answered by pages (study-page.h), the last of which ends the result
 */
#ifndef BENCH_STUDY_SESSION_H
#define BENCH_STUDY_SESSION_H

#include "transport-source.h"
#include "transport.h"

enum {
        STUDY_PREPARE = 0x50,
        STUDY_FETCH = 0x46,
};

/* Where a server puts its pages. A negative return ends the server. */
typedef struct StudySink {
        /** Memory for the next page; it waits until there is some. */
        int (*begin)(struct StudySink *sink, uint8_t **ret_bytes);
        /** The page is whole. */
        int (*send)(struct StudySink *sink, const uint8_t *bytes);
        /** The last page was sent. NULL: that is nothing special. */
        int (*finish)(struct StudySink *sink);
        size_t page_size;
        void *userdata;
} StudySink;

/** Steps through what is prepared in `source`, and sends it all. */
int study_send_result(Source *source, StudySink *sink);

/** Serves requests on `fd` until the other side closes it. */
int study_serve(int fd, const char *file, StudySink *sink);

/** A sink whose pages go to `fd` (of a socket or a pipe), built in one buffer. */
int study_sink_begin_buffer(StudySink *sink, uint8_t **ret_bytes);
int study_sink_send(StudySink *sink, const uint8_t *bytes);
typedef struct StudyOutput {
        uint8_t *buffer;
        int fd;
} StudyOutput;

/** A client's Prepare and Fetch: the pages come next. */
int study_request(Transport *transport, const char *sql);

/** Copies the rows of a page. 1: the result goes on in the next page; 0: it ended, complete; negative: said on stderr. */
int study_copy_page(Transport *transport, const uint8_t *bytes, Copy *copy);

/** Reads pages from `fd` until the result ends; `buffer` has room for one. */
int study_copy_pages(Transport *transport, int fd, uint8_t *buffer, Copy *copy);

#endif
