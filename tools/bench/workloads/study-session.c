/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Requests and pages of the 2010 study, see study-session.h. */
#include "tools/bench/workloads/study-session.h"

#include <endian.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

#include "tools/bench/core/passing.h"

#define SQL_SIZE_MAX ((uint32_t) 1048576)

/* ---- Server ------------------------------------------------------------------------------------------------------- */

int study_sink_begin_buffer(StudySink *sink, uint8_t **ret_bytes) {
        const StudyOutput *output = sink->userdata;

        *ret_bytes = output->buffer;
        return 0;
}

int study_sink_send(StudySink *sink, const uint8_t *bytes) {
        const StudyOutput *output = sink->userdata;

        return passing_write_all(output->fd, bytes, sink->page_size);
}

static int begin_page(StudySink *sink, StudyPage *ret) {
        *ret = (StudyPage) { .size = sink->page_size };
        return sink->begin(sink, &ret->bytes);
}

static int send_page(StudySink *sink, StudyPage *page) {
        study_page_finish(page);
        return sink->send(sink, page->bytes);
}

/* Adds the current row, or the end. A row that no page can hold ends the result with SQLITE_TOOBIG. */
static int add(StudyPage *page, const Source *source, int *code) {
        int r;

        if (*code != SQLITE_ROW)
                return study_page_add_end(page, *code);
        r = study_page_add_row(page, source->values, source->n_values);
        if (r != -EMSGSIZE)
                return r;
        *code = SQLITE_TOOBIG;
        return study_page_add_end(page, *code);
}

int study_send_result(Source *source, StudySink *sink) {
        StudyPage page;
        int r, code;

        r = begin_page(sink, &page);
        if (r < 0)
                return r;
        do {
                code = source_next(source);
                while ((r = add(&page, source, &code)) == 0) {
                        r = send_page(sink, &page);
                        if (r >= 0)
                                r = begin_page(sink, &page);
                        if (r < 0)
                                return r;
                }
        } while (code == SQLITE_ROW);
        r = send_page(sink, &page);
        return r >= 0 && sink->finish ? sink->finish(sink) : r;
}

static int serve_prepare(int fd, Source *source) {
        g_autofree char *sql = NULL;
        uint32_t size, code;
        int r;

        r = passing_read_all(fd, &size, sizeof size);
        if (r < 0)
                return r;
        size = le32toh(size);
        if (size > SQL_SIZE_MAX)
                return -EMSGSIZE;
        sql = g_malloc(size + 1);
        sql[size] = '\0';
        r = passing_read_all(fd, sql, size);
        if (r < 0)
                return r;
        code = htole32((uint32_t) source_prepare(source, sql));
        return passing_write_all(fd, &code, sizeof code);
}

static int serve_requests(int fd, Source *source, StudySink *sink) {
        for (;;) {
                ssize_t n;
                uint8_t request;
                int r;

                n = TEMP_FAILURE_RETRY(read(fd, &request, sizeof request));
                if (n <= 0)
                        return n < 0 ? -errno : 0;
                if (request == STUDY_PREPARE)
                        r = serve_prepare(fd, source);
                else if (request == STUDY_FETCH && source->statement)
                        r = study_send_result(source, sink);
                else
                        r = -EBADMSG;
                if (r < 0)
                        return r;
        }
}

int study_serve(int fd, const char *file, StudySink *sink) {
        Source source = {};
        int r;

        r = source_open(file, &source);
        if (r >= 0)
                r = serve_requests(fd, &source, sink);
        source_close(&source);
        return r;
}

/* ---- Client ------------------------------------------------------------------------------------------------------- */

int study_request(Transport *transport, const char *sql) {
        static const uint8_t prepare = STUDY_PREPARE, fetch = STUDY_FETCH;
        g_autoptr(GByteArray) request = g_byte_array_new();
        uint32_t size = (uint32_t) strlen(sql), stored = htole32(size), code;
        int r, fd = transport->child.fd;

        g_byte_array_append(request, &prepare, sizeof prepare);
        g_byte_array_append(request, (const uint8_t *) &stored, sizeof stored);
        g_byte_array_append(request, (const uint8_t *) sql, size);
        r = passing_write_all(fd, request->data, request->len);
        if (r >= 0)
                r = passing_read_all(fd, &code, sizeof code);
        if (r >= 0 && le32toh(code) != SQLITE_OK)
                return transport_failed(transport, -EIO, sqlite3_errstr((int) le32toh(code)));
        if (r >= 0)
                r = passing_write_all(fd, &fetch, sizeof fetch);
        return r < 0 ? transport_failed(transport, r, "request") : 0;
}

int study_copy_page(Transport *transport, const uint8_t *bytes, Copy *copy) {
        StudyPage page = { .bytes = (uint8_t *) bytes, .size = transport->buffer_size };
        int r;

        while ((r = study_page_next_row(&page, transport->values, transport->setup->n_columns)) == STUDY_ROW) {
                r = transport_copy_text(transport, copy);
                if (r < 0)
                        return transport_failed(transport, r, "a value");
        }
        transport->bytes_moved += transport->buffer_size;
        if (r < 0)
                return transport_failed(transport, r, "a page");
        if (r != STUDY_DONE && r != STUDY_NO_MORE)
                return transport_failed(transport, -EIO, sqlite3_errstr(r));
        return r == STUDY_NO_MORE;
}

int study_copy_pages(Transport *transport, int fd, uint8_t *buffer, Copy *copy) {
        int r;

        do {
                r = passing_read_all(fd, buffer, transport->buffer_size);
                if (r < 0)
                        return transport_failed(transport, r, "its pages");
                r = study_copy_page(transport, buffer, copy);
        } while (r > 0);
        return r;
}
