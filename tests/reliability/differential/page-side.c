/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See page-side.h. */
#include "tests/reliability/differential/page-side.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dbus-interfaces/wire/page-decoder.h"
#include "dbus-interfaces/wire/sqlipc-channel.h"

#define PATIENCE_MSEC 120000
#define PATIENCE_USEC ((uint64_t) PATIENCE_MSEC * 1000)

int page_side_open(PageSide *side, const char *address) {
        int r;

        *side = (PageSide) { .bus = NULL };
        for (unsigned i = 0; i < N_PAGE_SIZES; i++)
                side->channels[i] = -1;
        r = sd_bus_new(&side->bus);
        if (r >= 0)
                r = sd_bus_set_address(side->bus, address);
        if (r >= 0)
                r = sd_bus_set_bus_client(side->bus, true);
        if (r >= 0)
                r = sd_bus_negotiate_fds(side->bus, true);
        return r >= 0 ? sd_bus_start(side->bus) : r;
}

static void close_channels(PageSide *side) {
        for (unsigned i = 0; i < N_PAGE_SIZES; i++) {
                if (side->channels[i] >= 0)
                        close(side->channels[i]);
                side->channels[i] = -1;
        }
}

void page_side_use(PageSide *side, const char *database) {
        close_channels(side);
        g_clear_pointer(&side->path, g_free);
        (void) sd_bus_path_encode("/org/sqlipc1/database", database, &side->path);
}

void page_side_close(PageSide *side) {
        close_channels(side);
        g_clear_pointer(&side->path, g_free);
        side->bus = sd_bus_flush_close_unref(side->bus);
}

/* ---- What came ---------------------------------------------------------------------------------------------------- */

static void take_columns(const PageDecoder *d, Result *result) {
        result->n_columns = d->n_columns;
        for (unsigned i = 0; i < d->n_columns; i++) {
                const char *name, *declared_type;

                page_decoder_column(d, i, &name, &declared_type);
                result_add_name(result, name);
                result_add_name(result, declared_type);
        }
}

static void take_row(const PageDecoder *d, Result *result) {
        result_begin_row(result);
        for (unsigned i = 0; i < d->n_columns; i++) {
                PageValue v = page_decoder_value(d, i);

                if (v.type == VALUE_INTEGER)
                        result_add_int64(result, (int64_t) load_le64(v.bytes));
                else if (v.type == VALUE_REAL)
                        result_add_double(result, load_le_double(v.bytes));
                else
                        result_add_value(result, (int) v.type, v.bytes, v.size);
        }
}

/* One read into the decoder. */
static int fill(PageDecoder *d, int fd) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        uint8_t *room;
        size_t size;
        ssize_t n;
        int r = page_decoder_reserve(d, &room, &size);

        if (r < 0)
                return r;
        if (poll(&p, 1, PATIENCE_MSEC) <= 0)
                return -ETIMEDOUT;
        n = read(fd, room, size);
        if (n <= 0)
                return n == 0 ? -ECONNRESET : errno == EAGAIN ? 0 : -errno;
        page_decoder_commit(d, (size_t) n);
        return 0;
}

/* Frames up to END or ERROR. */
static void take_run(int fd, uint32_t page_size, Result *result) {
        PageDecoder d;
        int r;

        page_decoder_init(&d, page_size, SQLIPC_ROW_SIZE_MAX);
        do {
                r = page_decoder_next(&d);
                if (r == PAGE_COLUMNS)
                        take_columns(&d, result);
                else if (r == PAGE_ROW)
                        take_row(&d, result);
                else if (r == PAGE_MORE)
                        r = fill(&d, fd);
        } while (r >= 0 && r != PAGE_END && r != PAGE_ERROR);
        result->has_columns = result->has_columns || r == PAGE_END;
        if (r == PAGE_ERROR) {
                result_fail(result, d.error_extended_code);
                if (d.error_extended_code == 0)
                        result_trouble(result, "error %u: %s", d.error_number, d.error_message);
        } else if (r < 0)
                result_trouble(result, "pages of %u bytes: %s", page_size, g_strerror(-r));
        else if (d.end_counters.n_rows != result->rows->len)
                result_trouble(result, "%u rows, and END says %" G_GUINT64_FORMAT, result->rows->len, d.end_counters.n_rows);
        page_decoder_done(&d);
}

/* ---- Over the bus -------------------------------------------------------------------------------------------------- */

/* TEXT always as bytes, which any text can be. */
static int append_value(sd_bus_message *m, const sqlipc_parameter *p) {
        int r;

        if (p->type == SQLIPC_INTEGER)
                return sd_bus_message_append(m, "v", "x", p->integer);
        if (p->type == SQLIPC_REAL)
                return sd_bus_message_append(m, "v", "d", p->real);
        if (p->type == SQLIPC_NULL)
                return sd_bus_message_append(m, "v", "a{sv}", 0);
        if (p->type == SQLIPC_TEXT) {
                r = sd_bus_message_open_container(m, 'v', "a{sv}");
                if (r >= 0)
                        r = sd_bus_message_open_container(m, 'a', "{sv}");
                if (r >= 0)
                        r = sd_bus_message_open_container(m, 'e', "sv");
                if (r >= 0)
                        r = sd_bus_message_append(m, "s", "text");
                if (r < 0)
                        return r;
        }
        r = sd_bus_message_open_container(m, 'v', "ay");
        if (r >= 0)
                r = sd_bus_message_append_array(m, 'y', p->bytes, p->size);
        for (int left = p->type == SQLIPC_TEXT ? 4 : 1; left > 0 && r >= 0; left--)
                r = sd_bus_message_close_container(m);
        return r;
}

static int append_parameters(sd_bus_message *m, const Query *q) {
        int r = sd_bus_message_open_container(m, 'a', "v");

        for (size_t i = 0; i < q->n_parameters && r >= 0; i++)
                if (!q->parameters[i].name)
                        r = append_value(m, &q->parameters[i]);
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "{sv}");
        for (size_t i = 0; i < q->n_parameters && r >= 0; i++) {
                if (!q->parameters[i].name)
                        continue;
                r = sd_bus_message_open_container(m, 'e', "sv");
                if (r >= 0)
                        r = sd_bus_message_append(m, "s", q->parameters[i].name);
                if (r >= 0)
                        r = append_value(m, &q->parameters[i]);
                if (r >= 0)
                        r = sd_bus_message_close_container(m);
        }
        return r >= 0 ? sd_bus_message_close_container(m) : r;
}

static int keep_reply(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        *(sd_bus_message **) userdata = sd_bus_message_ref(reply);
        return 1;
}

/* The body of an error with "error-details": message, extended code, offset. */
static void take_error(sd_bus_message *reply, Result *result) {
        const sd_bus_error *error = sd_bus_message_get_error(reply);
        const char *sentence;
        int32_t code = 0;

        if (sd_bus_message_read(reply, "sii", &sentence, &code, NULL) < 0)
                code = 0;
        result_fail(result, code);
        if (code == 0)
                result_trouble(result, "%s: %s", error->name, error->message);
}

/* The reply to a method, for the caller to unref; NULL if it is an error, which is in `result` then. sd_bus_call() would
 * drop an error's body. */
static sd_bus_message *call(PageSide *side, sd_bus_message *m, Result *result) {
        sd_bus_message *reply = NULL;
        int r;

        r = sd_bus_call_async(side->bus, NULL, m, keep_reply, &reply, PATIENCE_USEC);
        while (r >= 0 && !reply) {
                r = sd_bus_process(side->bus, NULL);
                if (r == 0)
                        r = sd_bus_wait(side->bus, UINT64_MAX);
        }
        if (r < 0)
                result_trouble(result, "%s: %s", sd_bus_message_get_member(m), g_strerror(-r));
        else if (sd_bus_message_get_error(reply)) {
                take_error(reply, result);
                reply = sd_bus_message_unref(reply);
        }
        return reply;
}

static sd_bus_message *new_call(PageSide *side, const char *method) {
        sd_bus_message *m = NULL;

        (void) sd_bus_message_new_method_call(side->bus, &m, "org.sqlipc1", side->path, "org.sqlipc1.Database", method);
        return m;
}

static void run_by_pipe(PageSide *side, const Query *q, uint32_t page_size, Result *result) {
        __attribute__((cleanup(sd_bus_message_unrefp))) sd_bus_message *m = new_call(side, "Query"), *reply = NULL;
        int r, fd;

        r = sd_bus_message_append(m, "s", q->sql);
        if (r >= 0)
                r = append_parameters(m, q);
        if (r >= 0)
                r = sd_bus_message_append(m, "a{sv}", 2, "page-size", "u", page_size, "error-details", "b", 1);
        if (r < 0) {
                result_trouble(result, "Query: %s", g_strerror(-r));
                return;
        }
        reply = call(side, m, result);
        if (!reply)
                return;
        if (sd_bus_message_read(reply, "th", NULL, &fd) < 0)
                result_trouble(result, "Query: an odd reply");
        else
                take_run(fd, page_size, result);
}

/* ---- On a channel -------------------------------------------------------------------------------------------------- */

static int open_channel(PageSide *side, uint32_t page_size, Result *result) {
        __attribute__((cleanup(sd_bus_message_unrefp))) sd_bus_message *m = new_call(side, "OpenChannel"), *reply = NULL;
        int fd;

        if (sd_bus_message_append(m, "a{sv}", 1, "page-size", "u", page_size) < 0)
                return -1;
        reply = call(side, m, result);
        if (!reply || sd_bus_message_read(reply, "h", &fd) < 0)
                return -1;
        return fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

static void append_u32(GByteArray *to, uint32_t value) {
        uint8_t bytes[4];

        store_le32(bytes, value);
        g_byte_array_append(to, bytes, sizeof bytes);
}

static void append_u64(GByteArray *to, uint64_t value) {
        append_u32(to, (uint32_t) value);
        append_u32(to, (uint32_t) (value >> 32));
}

/* One value of a row: its type, its end, its bytes. */
typedef struct RowParts {
        GByteArray *types, *ends, *data;
} RowParts;

static void add_bytes(RowParts *row, ValueType type, const void *bytes, size_t size) {
        uint8_t t = (uint8_t) type;

        g_byte_array_append(row->types, &t, 1);
        if (size > 0)
                g_byte_array_append(row->data, bytes, (guint) size);
        if (type == VALUE_TEXT)
                g_byte_array_append(row->data, (const uint8_t *) "", 1);
        append_u32(row->ends, row->data->len);
}

static void add_parameter(RowParts *row, const sqlipc_parameter *p) {
        uint8_t bytes[8];

        if (p->type == SQLIPC_INTEGER)
                store_le64(bytes, (uint64_t) p->integer);
        else if (p->type == SQLIPC_REAL)
                store_le_double(bytes, p->real);
        if (p->type == SQLIPC_INTEGER || p->type == SQLIPC_REAL)
                add_bytes(row, (ValueType) p->type, bytes, sizeof bytes);
        else
                add_bytes(row, (ValueType) p->type, p->bytes, p->size);
}

/* The positional ones, then name and value of the others. */
static void append_row(GByteArray *to, const Query *q) {
        RowParts row = { g_byte_array_new(), g_byte_array_new(), g_byte_array_new() };

        for (size_t i = 0; i < q->n_parameters; i++)
                if (!q->parameters[i].name)
                        add_parameter(&row, &q->parameters[i]);
        for (size_t i = 0; i < q->n_parameters; i++)
                if (q->parameters[i].name) {
                        add_bytes(&row, VALUE_TEXT, q->parameters[i].name, strlen(q->parameters[i].name));
                        add_parameter(&row, &q->parameters[i]);
                }
        g_byte_array_append(to, row.types->data, row.types->len);
        g_byte_array_append(to, row.ends->data, row.ends->len);
        g_byte_array_append(to, row.data->data, row.data->len);
        g_byte_array_unref(row.types);
        g_byte_array_unref(row.ends);
        g_byte_array_unref(row.data);
}

/* A QUERY frame. */
static GByteArray *new_request(const Query *q, uint64_t number) {
        GByteArray *frame = g_byte_array_new();
        uint32_t n_named = 0, size;

        for (size_t i = 0; i < q->n_parameters; i++)
                n_named += q->parameters[i].name != NULL;
        append_u32(frame, 0);
        append_u32(frame, REQUEST_QUERY | SQLIPC_PAGE_VERSION << 8);
        append_u64(frame, number);
        append_u64(frame, 0);
        append_u32(frame, (uint32_t) q->n_parameters - n_named);
        append_u32(frame, n_named);
        append_u32(frame, (uint32_t) strlen(q->sql));
        append_u32(frame, 0);
        g_byte_array_append(frame, (const uint8_t *) q->sql, (guint) strlen(q->sql));
        append_row(frame, q);
        size = frame->len - (uint32_t) FRAME_HEADER_SIZE;
        store_le32(frame->data, size);
        for (size_t n = size; n < frame_padded(size); n++)
                g_byte_array_append(frame, (const uint8_t *) "", 1);
        return frame;
}

/* All of it; a worker reads a request whole before it answers. */
static int send_all(int fd, const uint8_t *bytes, size_t size) {
        while (size > 0) {
                struct pollfd p = { .fd = fd, .events = POLLOUT };
                ssize_t n = send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);

                if (n < 0 && errno != EAGAIN)
                        return -errno;
                if (n < 0 && poll(&p, 1, PATIENCE_MSEC) <= 0)
                        return -ETIMEDOUT;
                if (n > 0) {
                        bytes += n;
                        size -= (size_t) n;
                }
        }
        return 0;
}

static void run_on_channel(PageSide *side, const Query *q, uint32_t page_size, Result *result) {
        unsigned i = (unsigned) __builtin_ctz(page_size) - (unsigned) __builtin_ctz((unsigned) SQLIPC_PAGE_SIZE_MIN);
        GByteArray *request;
        int r;

        if (side->channels[i] < 0)
                side->channels[i] = open_channel(side, page_size, result);
        if (side->channels[i] < 0) {
                result_trouble(result, "no channel");
                return;
        }
        request = new_request(q, ++side->n_requests);
        r = send_all(side->channels[i], request->data, request->len);
        g_byte_array_unref(request);
        if (r < 0)
                result_trouble(result, "the channel takes nothing: %s", g_strerror(-r));
        else
                take_run(side->channels[i], page_size, result);
        if (result->trouble) { /* the other bytes are ignored */
                close(side->channels[i]);
                side->channels[i] = -1;
        }
}

void page_side_run(PageSide *side, const Query *q, uint32_t page_size, bool on_channel, Result *result) {
        result_init(result);
        if (on_channel)
                run_on_channel(side, q, page_size, result);
        else
                run_by_pipe(side, q, page_size, result);
}
