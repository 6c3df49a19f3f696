/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The reading end of a run whose rows are sent as D-Bus values. Supervisor. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "daemon/supervisor/access/pacing.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/base/sd-autoptr.h"
#include "daemon/supervisor/base/user.h"
#include "daemon/supervisor/calls/bus-error.h"
#include "daemon/supervisor/calls/rows.h"
#include "daemon/supervisor/calls/waiting-call.h"
#include "daemon/supervisor/runs/row-reader.h"

/* Bytes that are read in one turn of the loop (I1). */
#define READ_SIZE_MAX ((size_t) 256 * 1024)

static const char out_of_memory[] = "The service is out of memory; try again later.";

static int on_readable(sd_event_source *s, int fd, uint32_t revents, void *userdata);

int row_reader_new(const RowReaderSpec *spec, RowReader **ret) {
        RowReader *r = g_new(RowReader, 1);

        *r = (RowReader) { .spec = *spec, .pending = PAGE_MORE };
        page_decoder_init(&r->decoder, ROW_READER_PAGE_SIZE, ROW_READER_ROW_SIZE_MAX);
        int k = fcntl(spec->fd, F_SETFL, O_RDONLY | O_NONBLOCK) < 0 ? -errno : 0;
        if (k >= 0)
                k = sd_event_add_io(spec->event, &r->io, spec->fd, EPOLLIN, on_readable, r);
        if (k >= 0)
                k = sd_event_source_set_enabled(r->io, SD_EVENT_OFF);
        if (k < 0) {
                row_reader_free(r);
                return k;
        }
        *ret = r;
        return 0;
}

/* Counts the memory of a joined row for the user: it can be 16 MiB for each run. False: the user would have too much. */
static bool count_joined(RowReader *r) {
        User *u = r->spec.user;
        size_t size = r->decoder.joined_capacity;
        bool more = size > r->joined_size;

        u->joined_size = u->joined_size - r->joined_size + size;
        r->joined_size = size;
        return !more || u->joined_size <= JOINED_SIZE_MAX;
}

RowReader *row_reader_free(RowReader *r) {
        if (!r)
                return NULL;
        r->spec.user->joined_size -= r->joined_size;
        r->io = sd_event_source_disable_unref(r->io);
        close(r->spec.fd);
        page_decoder_done(&r->decoder);
        reply_done(&r->reply);
        (void) sd_bus_message_unref(r->call);
        g_free(r);
        return NULL;
}

/* The call is answered: reads nothing until the next call. */
static void rest(RowReader *r) {
        r->call = sd_bus_message_unref(r->call);
        reply_done(&r->reply);
        (void) sd_event_source_set_enabled(r->io, SD_EVENT_OFF);
        if (r->pending == PAGE_MORE) /* otherwise the next reply begins with a row that may be in that memory */
                page_decoder_trim(&r->decoder);
        (void) count_joined(r);
}

void row_reader_fail(RowReader *r, const Failure *failure) {
        if (r->call)
                (void) bus_error_reply(r->call, failure, r->spec.error_details);
        row_reader_free(r);
}

static void over(RowReader *r, RowReaderEnd end) {
        const RowReaderSpec spec = r->spec;

        row_reader_free(r);
        spec.events->over(spec.run, end);
}

/* Rows that cannot be put into a reply do not mean that nothing was written. */
static void fail(RowReader *r, ErrorNumber error, const char *sentence, RowReaderEnd end) {
        Failure failure = { .error = error, .sql_offset = -1, .message = sentence };

        if (r->spec.events->writes(r->spec.run)) {
                failure.error = ERROR_OUTCOME_UNKNOWN;
                failure.message = "The rows that the statement returned could not be read: it is unknown whether the "
                                  "statement took effect.";
        }
        if (r->call)
                (void) bus_error_reply(r->call, &failure, r->spec.error_details);
        over(r, end);
}

/* ---- Replies ---- */

static int begin_reply(RowReader *r) {
        int k = reply_new(r->call, &r->reply);

        if (k >= 0 && r->spec.one_shot)
                k = rows_append_columns_of_run(&r->reply, &r->decoder);
        return k < 0 ? k : sd_bus_message_open_container(r->reply.message, 'a', "av");
}

/* Appends the columns of the run. They may differ from those of the compiled statement, because the schema may have
 * changed. */
static int append_columns(RowReader *r) {
        int k = sd_bus_message_open_container(r->reply.message, 'e', "sv");

        if (k >= 0)
                k = sd_bus_message_append(r->reply.message, "s", "columns");
        if (k >= 0)
                k = sd_bus_message_open_container(r->reply.message, 'v', "a(ssa{sv})");
        if (k >= 0)
                k = rows_append_columns_of_run(&r->reply, &r->decoder);
        for (int i = 0; i < 2 && k >= 0; i++)
                k = sd_bus_message_close_container(r->reply.message);
        r->columns_told = true;
        return k;
}

/* The change sequence; and the setting that the run has made, or the fields of one that wrote, and so is committed. Known
 * once END was read. */
static int append_changes(RowReader *r) {
        const EndCounters *end = &r->decoder.end_counters;

        if (end->sequence > 0) {
                int k = sd_bus_message_append(r->reply.message, "{sv}", "sequence", "t", end->sequence);
                if (k < 0)
                        return k;
        }
        if (end->foreign_keys != FOREIGN_KEYS_CONFIGURED)
                return sd_bus_message_append(r->reply.message, "{sv}", "foreign-keys", "b",
                                             end->foreign_keys == FOREIGN_KEYS_ON);
        if (!end->wrote)
                return 0;
        return sd_bus_message_append(r->reply.message, "{sv}{sv}", "changes", "x", end->n_changes, "last-rowid", "x",
                                     end->last_rowid);
}

static int append_totals(RowReader *r) {
        const EndCounters *end = &r->decoder.end_counters;
        int k = sd_bus_message_append(r->reply.message, "{sv}", "rows", "t", end->n_rows);

        if (k >= 0)
                k = sd_bus_message_append(r->reply.message, "{sv}", "bytes", "t", end->n_bytes);
        if (k >= 0)
                k = sd_bus_message_append(r->reply.message, "{sv}", "usec", "t", end->usec);
        return k < 0 ? k : append_changes(r);
}

/* Appends the fields of NextRows that follow the rows. */
static int append_more(RowReader *r, bool more) {
        int k = sd_bus_message_append(r->reply.message, "b", more);

        if (k >= 0)
                k = sd_bus_message_open_container(r->reply.message, 'a', "{sv}");
        if (k >= 0 && !r->columns_told)
                k = append_columns(r);
        if (k >= 0 && !more)
                k = append_totals(r);
        return k < 0 ? k : sd_bus_message_close_container(r->reply.message);
}

/* Appends the field of QueryRows that follows the rows. */
static int append_one_shot(RowReader *r, bool more) {
        int k = sd_bus_message_open_container(r->reply.message, 'a', "{sv}");

        if (k >= 0)
                k = sd_bus_message_append(r->reply.message, "{sv}{sv}", "truncated", "b", more, "rows", "t", r->n_rows);
        if (k >= 0)
                k = append_changes(r);
        return k < 0 ? k : sd_bus_message_close_container(r->reply.message);
}

static int finish_reply(RowReader *r, bool more) {
        int k = sd_bus_message_close_container(r->reply.message);

        if (k >= 0 && r->spec.one_shot)
                k = append_one_shot(r, more);
        else if (k >= 0)
                k = append_more(r, more);
        pacing_charge(r->spec.user, r->reply.size);
        return k < 0 ? k : reply_send(&r->reply);
}

/* The reply cannot be made, because of the errno `k`. */
static void fail_reply(RowReader *r, int k) {
        if (k == -EMSGSIZE) { /* a reply of many rows has 1 MiB at most, so this is a single row */
                fail(r, ERROR_ROW_TOO_LARGE,
                     "A row takes more than 16 MiB, its columns' names included: fetch it through a pipe (Query).",
                     ROW_READER_LEFT);
                return;
        }
        if (k == -ENOMEM) {
                fail(r, ERROR_OUT_OF_MEMORY, out_of_memory, ROW_READER_LEFT);
                return;
        }
        log_warning_limited("A reply with rows could not be sent: %s", strerror(-k));
        fail(r, ERROR_INTERNAL, "The rows could not be put into a reply; ask for fewer of them.",
             ROW_READER_LEFT);
}

/* Sends the reply. Frees the reader if the run is over for it. */
static void send_reply(RowReader *r, bool more) {
        int k = finish_reply(r, more);

        if (k < 0) {
                fail_reply(r, k);
                return;
        }
        if (!more || r->spec.one_shot)
                over(r, more ? ROW_READER_LEFT : ROW_READER_ENDED);
        else
                rest(r);
}

/* ---- Pages ---- */

/* These return true if the call needs more data. False: it was answered, and the reader may have been freed. */

static bool on_row(RowReader *r) {
        size_t size = rows_row_size(&r->decoder);

        if (r->n_rows > 0 && (r->used >= r->max_bytes || size > r->max_bytes - r->used)) {
                r->pending = PAGE_ROW; /* stays valid, because the decoder is not used until the next call */
                send_reply(r, true);
                return false;
        }
        int k = rows_append_row(&r->reply, &r->decoder, size);
        if (k < 0) {
                fail_reply(r, k);
                return false;
        }
        r->used += size;
        r->n_rows++;
        return true;
}

static void on_error_frame(RowReader *r) {
        if (!r->spec.one_shot && r->n_rows > 0) { /* first send the rows that came before it */
                r->pending = PAGE_ERROR;
                send_reply(r, true);
                return;
        }
        const PageDecoder *d = &r->decoder;
        (void) bus_error_reply(r->call, &(Failure) { .error = d->error_number, .extended_code = d->error_extended_code,
                                                     .sql_offset = d->error_sql_offset, .message = d->error_message },
                               r->spec.error_details);
        over(r, ROW_READER_ENDED);
}

static void on_broken_stream(RowReader *r, int k) {
        if (k == -EMSGSIZE) {
                fail_reply(r, k);
                return;
        }
        if (k == -ENOMEM) {
                fail(r, ERROR_OUT_OF_MEMORY, out_of_memory, ROW_READER_LEFT);
                return;
        }
        const Refusal *error = r->spec.events->error(r->spec.run);
        if (error->error != ERROR_NONE) { /* it was lost, or killed for a reason that says more than the frame */
                Failure failure = refusal_as_failure(error);
                (void) bus_error_reply(r->call, &failure, r->spec.error_details);
                over(r, ROW_READER_ENDED);
                return;
        }
        fail(r, ERROR_WORKER_LOST, "The worker process that ran the query broke; run it again.", ROW_READER_BROKEN);
}

/* 1: bytes were read; 0: none are available. */
static int read_some(RowReader *r, size_t *budget) {
        uint8_t *room;
        size_t size;
        int k = page_decoder_reserve(&r->decoder, &room, &size);

        if (k < 0)
                return k;
        ssize_t n = read(r->spec.fd, room, size);
        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        if (n == 0)
                return -ECONNRESET;
        page_decoder_commit(&r->decoder, (size_t) n);
        *budget -= (size_t) n < *budget ? (size_t) n : *budget;
        return 1;
}

static bool on_page_more(RowReader *r, size_t *budget) {
        int k = *budget > 0 ? read_some(r, budget) : 0;

        if (k < 0)
                on_broken_stream(r, k);
        if (k == 0 && *budget > 0 && !r->spec.one_shot && r->n_rows > 0)
                send_reply(r, true);
        return k > 0;
}

static bool ensure_reply(RowReader *r) {
        if (r->reply.message)
                return true;
        int k = begin_reply(r);
        if (k < 0)
                fail_reply(r, k);
        return k >= 0;
}

static void process(RowReader *r) {
        size_t budget = READ_SIZE_MAX;

        for (bool go_on = true; go_on;) {
                int event = r->pending != PAGE_MORE ? r->pending : page_decoder_next(&r->decoder);

                r->pending = PAGE_MORE;
                if (!count_joined(r)) {
                        fail(r, ERROR_LIMITS_EXCEEDED,
                             "Large rows of yours are under way in several runs: ask for one after the other, or through "
                             "pipes (Query).", ROW_READER_LEFT);
                        return;
                }
                if (event < 0) {
                        on_broken_stream(r, event);
                        return;
                }
                /* The reply of QueryRows begins with the columns, which an ERROR frame without COLUMNS does not have. */
                if ((event == PAGE_COLUMNS || event == PAGE_ROW || event == PAGE_END) && !ensure_reply(r))
                        return;
                switch (event) {
                case PAGE_MORE: go_on = on_page_more(r, &budget); break;
                case PAGE_COLUMNS: break;
                case PAGE_ROW: go_on = on_row(r); break;
                case PAGE_END: send_reply(r, false); return;
                case PAGE_ERROR: on_error_frame(r); return;
                }
        }
}

static int on_readable(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        process(userdata);
        return 0;
}

int row_reader_wait(RowReader *r, sd_bus_message *call, size_t max_bytes) {
        assert(!r->call);
        int k = waiting_call_new(call, &r->call);
        if (k < 0)
                return k;
        k = sd_event_source_set_enabled(r->io, SD_EVENT_ON);
        if (k < 0) {
                r->call = sd_bus_message_unref(r->call);
                return k;
        }
        r->max_bytes = max_bytes;
        r->used = 0;
        r->n_rows = 0;
        return 0;
}

int row_reader_serve(RowReader *r, sd_bus_message *call, size_t max_bytes) {
        int k = row_reader_wait(r, call, max_bytes);

        if (k >= 0)
                process(r);
        return k;
}
