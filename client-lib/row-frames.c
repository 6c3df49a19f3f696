/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Converts D-Bus values to frames (row-frames.h). Library. */
#include "client-lib/buffer.h"
#include "client-lib/description.h"
#include "client-lib/dictionary.h"
#include "client-lib/row-frames.h"
#include "dbus-interfaces/wire/sqlipc-page.h"

#define PAYLOAD_SIZE_MAX (SQLIPC_PAGE_SIZE_MAX - FRAME_HEADER_SIZE)

static void buffer_donep(Buffer *b) {
        buffer_done(b);
}

/* ---- Frames ------------------------------------------------------------------------------------------------------- */

static int append_frame(Buffer *frames, FrameKind kind, uint16_t flags, const uint8_t *payload, size_t size) {
        uint8_t *frame = buffer_extend(frames, FRAME_HEADER_SIZE + frame_padded(size));

        if (!frame)
                return -ENOMEM;
        store_le32(frame, (uint32_t) size);
        frame[4] = (uint8_t) kind;
        frame[5] = SQLIPC_PAGE_VERSION;
        store_le16(frame + 6, flags);
        store_le64(frame + 8, 0); /* the frames do not need the run's number, which is known */
        if (size > 0)
                memcpy(frame + FRAME_HEADER_SIZE, payload, size);
        memset(frame + FRAME_HEADER_SIZE + size, 0, frame_padded(size) - size);
        return 0;
}

/* Appends a payload in as many frames as it needs. */
static int append_payload(Buffer *frames, FrameKind kind, const Buffer *payload) {
        const uint8_t *at = payload->bytes + payload->start;
        size_t left = buffer_size(payload);
        int r;

        while (left > PAYLOAD_SIZE_MAX) {
                r = append_frame(frames, kind, FRAME_MORE, at, PAYLOAD_SIZE_MAX);
                if (r < 0)
                        return r;
                at += PAYLOAD_SIZE_MAX;
                left -= PAYLOAD_SIZE_MAX;
        }
        return append_frame(frames, kind, 0, at, left);
}

static int append_end(Buffer *frames, const EndCounters *end) {
        uint8_t payload[FRAME_END_SETTING_SIZE] = { 0 };

        store_le64(payload, end->n_rows);
        store_le64(payload + 8, end->n_bytes);
        store_le64(payload + 16, end->usec);
        store_le64(payload + FRAME_END_SIZE, end->wrote ? (uint64_t) end->n_changes : UINT64_MAX);
        store_le64(payload + FRAME_END_SIZE + 8, (uint64_t) end->last_rowid);
        store_le64(payload + FRAME_END_WROTE_SIZE, end->sequence);
        store_le64(payload + FRAME_END_SEQUENCE_SIZE, end->foreign_keys);
        return append_frame(frames, FRAME_END, 0, payload, sizeof payload);
}

/* Appends `size` bytes and, if `terminated`, a NUL. */
static int append_bytes(Buffer *b, const void *bytes, size_t size, bool terminated) {
        uint8_t *room = buffer_extend(b, size + terminated);

        if (!room)
                return -ENOMEM;
        if (size > 0)
                memcpy(room, bytes, size);
        if (terminated)
                room[size] = 0;
        return 0;
}

/* ---- Columns ------------------------------------------------------------------------------------------------------ */

static int append_string(Buffer *payload, const char *string, size_t end_at, size_t strings_at) {
        int r = string ? append_bytes(payload, string, strlen(string), true) : 0;

        if (r >= 0)
                store_le32(payload->bytes + end_at, (uint32_t) (buffer_size(payload) - strings_at));
        return r;
}

static int append_columns(Buffer *frames, const Description *d) {
        _cleanup_(buffer_donep) Buffer payload = { .capacity = 0 };
        size_t ends_at = 8, strings_at = ends_at + 8 * (size_t) d->n_columns;
        uint8_t *head = buffer_extend(&payload, strings_at);
        int r;

        if (!head)
                return -ENOMEM;
        store_le32(head, d->n_columns);
        store_le32(head + 4, (uint32_t) SQLIPC_PAGE_SIZE_MAX);
        for (unsigned i = 0; i < d->n_columns; i++) {
                r = append_string(&payload, d->columns[i].name, ends_at + 8 * (size_t) i, strings_at);
                if (r < 0)
                        return r;
                r = append_string(&payload, d->columns[i].declared_type, ends_at + 8 * (size_t) i + 4, strings_at);
                if (r < 0)
                        return r;
        }
        return append_payload(frames, FRAME_COLUMNS, &payload);
}

/* ---- Values ------------------------------------------------------------------------------------------------------- */

static int append_array(Buffer *row, sd_bus_message *m, bool text) {
        const void *bytes;
        size_t size;
        int r;

        r = sd_bus_message_read_array(m, 'y', &bytes, &size);
        return r < 0 ? r : append_bytes(row, bytes, size, text);
}

/* The value that an a{sv} encodes. */
typedef struct Special {
        Buffer *row;
        ValueType type;
} Special;

/* Reads an entry of a special value: {"text": ay} is TEXT that a D-Bus string cannot carry; {} is NULL. */
static int read_special(sd_bus_message *m, const char *key, const char *type, void *userdata) {
        Special *special = userdata;
        int r;

        if (strcmp(key, "text") != 0 || strcmp(type, "ay") != 0 || special->type == VALUE_TEXT)
                return -EBADMSG;
        special->type = VALUE_TEXT;
        r = sd_bus_message_enter_container(m, 'v', "ay");
        if (r < 0)
                return r;
        r = append_array(special->row, m, true);
        if (r < 0)
                return r;
        r = sd_bus_message_exit_container(m);
        return r < 0 ? r : 1;
}

/* Appends a number; `type` is 'x' or 'd', for both of which sd-bus writes eight bytes. */
static int append_number(Buffer *row, sd_bus_message *m, char type) {
        uint8_t bytes[8];
        uint64_t bits;
        int r;

        r = sd_bus_message_read_basic(m, type, &bits);
        if (r < 0)
                return r;
        store_le64(bytes, bits);
        return append_bytes(row, bytes, sizeof bytes, false);
}

static int append_text(Buffer *row, sd_bus_message *m) {
        const char *value;
        int r;

        r = sd_bus_message_read_basic(m, 's', &value);
        return r < 0 ? r : append_bytes(row, value, strlen(value), true);
}

/* Appends the value in a variant of `type` to `row`. */
static int append_value(Buffer *row, sd_bus_message *m, const char *type, ValueType *ret) {
        Special special = { .row = row, .type = VALUE_NULL };
        int r;

        if (strcmp(type, "x") == 0) {
                *ret = VALUE_INTEGER;
                return append_number(row, m, 'x');
        }
        if (strcmp(type, "d") == 0) {
                *ret = VALUE_REAL;
                return append_number(row, m, 'd');
        }
        if (strcmp(type, "s") == 0) {
                *ret = VALUE_TEXT;
                return append_text(row, m);
        }
        if (strcmp(type, "ay") == 0) {
                *ret = VALUE_BLOB;
                return append_array(row, m, false);
        }
        if (strcmp(type, "a{sv}") != 0)
                return -EBADMSG;
        r = dictionary_read(m, read_special, &special);
        *ret = special.type;
        return r;
}

/* Appends column `i` to the current row: the bytes of its variant, its type and its end. */
static int append_column(Buffer *row, sd_bus_message *m, unsigned i, unsigned n_columns) {
        const char *type;
        ValueType kind;
        int r;

        r = sd_bus_message_peek_type(m, NULL, &type);
        if (r <= 0)
                return r < 0 ? r : -EBADMSG;
        r = sd_bus_message_enter_container(m, 'v', type);
        if (r < 0)
                return r;
        r = append_value(row, m, type, &kind);
        if (r < 0)
                return r;
        row->bytes[i] = (uint8_t) kind;
        store_le32(row->bytes + n_columns + 4 * (size_t) i, (uint32_t) (row->fill - ROW_HEAD_SIZE(n_columns)));
        return sd_bus_message_exit_container(m);
}

/* Appends the row in which `m` is positioned. `row` is the buffer in which it is built; its content is discarded first. */
static int append_row(Buffer *frames, Buffer *row, sd_bus_message *m, unsigned n_columns) {
        int r;

        row->start = row->fill = 0;
        if (!buffer_extend(row, ROW_HEAD_SIZE(n_columns)))
                return -ENOMEM;
        for (unsigned i = 0; i < n_columns; i++) {
                r = append_column(row, m, i, n_columns);
                if (r < 0)
                        return r;
        }
        return append_payload(frames, FRAME_BIG_ROW, row);
}

static int append_rows(Buffer *frames, sd_bus_message *m, unsigned n_columns) {
        _cleanup_(buffer_donep) Buffer row = { .capacity = 0 };
        int r;

        r = sd_bus_message_enter_container(m, 'a', "av");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'a', "v")) > 0) {
                r = append_row(frames, &row, m, n_columns);
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(m); /* -EBUSY: there are more values than columns */
                if (r < 0)
                        return r == -EBUSY ? -EBADMSG : r;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* ---- Replies ------------------------------------------------------------------------------------------------------ */

typedef struct Info {
        Description description;
        bool has_columns; /* the reply described the columns; there may be none */
        EndCounters end;
} Info;

static void info_done(Info *info) {
        description_done(&info->description);
}

static int read_info(sd_bus_message *m, const char *key, const char *type, void *userdata) {
        Info *info = userdata;

        if (strcmp(key, "columns") == 0 && strcmp(type, "a(ssa{sv})") == 0 && !info->has_columns) {
                info->has_columns = true;
                return description_read_columns(&info->description, m);
        }
        if (strcmp(key, "changes") == 0 && strcmp(type, "x") == 0) {
                info->end.wrote = true;
                return sd_bus_message_read(m, "v", "x", &info->end.n_changes);
        }
        if (strcmp(key, "last-rowid") == 0 && strcmp(type, "x") == 0)
                return sd_bus_message_read(m, "v", "x", &info->end.last_rowid);
        if (strcmp(key, "foreign-keys") == 0 && strcmp(type, "b") == 0) {
                int on, r = sd_bus_message_read(m, "v", "b", &on);

                info->end.foreign_keys = on ? FOREIGN_KEYS_ON : FOREIGN_KEYS_OFF;
                return r;
        }
        if (strcmp(type, "t") != 0)
                return 0;
        if (strcmp(key, "rows") == 0)
                return sd_bus_message_read(m, "v", "t", &info->end.n_rows);
        if (strcmp(key, "bytes") == 0)
                return sd_bus_message_read(m, "v", "t", &info->end.n_bytes);
        if (strcmp(key, "usec") == 0)
                return sd_bus_message_read(m, "v", "t", &info->end.usec);
        if (strcmp(key, "sequence") == 0)
                return sd_bus_message_read(m, "v", "t", &info->end.sequence);
        return 0;
}

/* Reads the part after the rows. */
static int read_tail(sd_bus_message *m, Info *info, bool *ret_more) {
        int more, r;

        r = sd_bus_message_read(m, "b", &more);
        if (r < 0)
                return r;
        *ret_more = more;
        return dictionary_read(m, read_info, info);
}

/* Appends COLUMNS from the first reply, which has the columns after the rows. A result without columns has only this
 * reply. */
static int begin(Buffer *frames, sd_bus_message *m, unsigned *n_columns) {
        _cleanup_(info_done) Info info = { .end = { 0 } };
        bool more;
        int r;

        r = sd_bus_message_skip(m, "aav");
        if (r < 0)
                return r;
        r = read_tail(m, &info, &more);
        if (r < 0)
                return r;
        if (!info.has_columns)
                return -EBADMSG;
        *n_columns = info.description.n_columns;
        r = append_columns(frames, &info.description);
        return r < 0 ? r : sd_bus_message_rewind(m, true);
}

static int append_reply(Buffer *frames, sd_bus_message *reply, unsigned *n_columns, bool *ret_more) {
        _cleanup_(info_done) Info info = { .end = { 0 } };
        int r;

        if (*n_columns == 0) {
                r = begin(frames, reply, n_columns);
                if (r < 0)
                        return r;
        }
        r = append_rows(frames, reply, *n_columns);
        if (r < 0)
                return r;
        r = read_tail(reply, &info, ret_more);
        if (r < 0)
                return r;
        return *ret_more ? 0 : append_end(frames, &info.end);
}

int row_frames_append(Buffer *frames, sd_bus_message *reply, unsigned *n_columns, bool *ret_more) {
        size_t before = buffer_size(frames);
        int r = append_reply(frames, reply, n_columns, ret_more);

        if (r < 0)
                frames->fill = frames->start + before;
        return r;
}
