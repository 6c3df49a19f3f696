/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Encodes and decodes messages by the tables of message-layout.h. Pure. The writer grows a buffer and remembers its first
 * failure. The reader never reads past `end`, and remembers its first failure, too.
 */
#include "daemon/protocol/protocol.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/protocol/message-layout.h"
#include "dbus-interfaces/wire/page-payload.h"

#define STRING_ABSENT UINT32_MAX

/* ---- Writing ------------------------------------------------------------------------------------------------------ */

typedef struct Writer {
        uint8_t *bytes;
        size_t size, capacity, size_max;
        int error;
} Writer;

static uint8_t *put(Writer *w, size_t size) {
        uint8_t *at;

        if (w->error < 0)
                return NULL;
        if (size > w->size_max - w->size) {
                w->error = -E2BIG;
                return NULL;
        }
        if (size > w->capacity - w->size) {
                size_t capacity = w->capacity < 256 ? 256 : w->capacity;
                uint8_t *bytes;

                while (capacity < w->size + size)
                        capacity *= 2;
                bytes = realloc(w->bytes, capacity);
                if (!bytes) {
                        w->error = -ENOMEM;
                        return NULL;
                }
                w->bytes = bytes;
                w->capacity = capacity;
        }
        at = w->bytes + w->size;
        w->size += size;
        return at;
}

static void put_u32(Writer *w, uint32_t value) {
        uint8_t *at = put(w, 4);
        if (at)
                store_le32(at, value);
}

static void put_u64(Writer *w, uint64_t value) {
        uint8_t *at = put(w, 8);
        if (at)
                store_le64(at, value);
}

static void put_string(Writer *w, const void *data, size_t size, bool required) {
        uint8_t *at;

        if (!data && !required) {
                put_u32(w, STRING_ABSENT);
                return;
        }
        size = data ? size : 0;
        put_u32(w, (uint32_t) size);
        at = size < SIZE_MAX ? put(w, size + 1) : NULL;
        if (!at)
                return;
        memcpy(at, data ?: "", size);
        at[size] = 0;
}

static const void *pointer_at(const void *at) {
        const void *pointer;

        memcpy(&pointer, at, sizeof pointer);
        return pointer;
}

static void put_field(Writer *w, const Message *m, const Field *field) {
        const uint8_t *base = (const uint8_t *) m, *at = base + field->offset, *size = base + field->size_offset;
        const void *data;

        switch (field->kind) {
        case FIELD_U32:
                put_u32(w, *(const uint32_t *) at);
                break;
        case FIELD_U64:
                put_u64(w, *(const uint64_t *) at);
                break;
        case FIELD_BOOL:
                put_u32(w, *(const bool *) at);
                break;
        case FIELD_STRING:
                data = pointer_at(at);
                put_string(w, data, data ? strlen(data) : 0, field->required);
                break;
        case FIELD_BYTES:
                put_string(w, pointer_at(at), *(const size_t *) size, field->required);
                break;
        case FIELD_LIST: {
                const Bytes *list = pointer_at(at);

                for (size_t i = 0; i < (size_t) field->factor * *(const uint32_t *) size; i++)
                        put_string(w, list[i].data, list[i].size, false);
                break;
        }
        case FIELD_END:
                break;
        }
}

int message_encode(const Message *m, uint8_t **ret_bytes, size_t *ret_size) {
        uint32_t size_max = message_layout(m->kind)->size_max;
        Writer w = { .size_max = size_max > MESSAGE_MEMFD_SIZE_MAX ? size_max : MESSAGE_MEMFD_SIZE_MAX };

        put_u32(&w, m->kind);
        for (const Field *field = message_layout(m->kind)->fields; field->kind != FIELD_END; field++)
                put_field(&w, m, field);
        if (w.error < 0) {
                free(w.bytes);
                return w.error;
        }
        *ret_bytes = w.bytes;
        *ret_size = w.size;
        return 0;
}

/* ---- Reading ------------------------------------------------------------------------------------------------------ */

typedef struct Reader {
        const uint8_t *at, *end;
        int error;
} Reader;

static void refuse(Reader *r) {
        if (r->error == 0)
                r->error = -EBADMSG;
}

static const uint8_t *get(Reader *r, size_t size) {
        const uint8_t *at = r->at;

        if (r->error < 0 || size > (size_t) (r->end - at)) {
                refuse(r);
                return NULL;
        }
        r->at += size;
        return at;
}

static uint32_t get_u32(Reader *r) {
        const uint8_t *at = get(r, 4);
        return at ? load_le32(at) : 0;
}

static uint64_t get_u64(Reader *r) {
        const uint8_t *at = get(r, 8);
        return at ? load_le64(at) : 0;
}

static Bytes get_bytes(Reader *r) {
        uint32_t size = get_u32(r);
        const uint8_t *at;

        if (r->error < 0 || size == STRING_ABSENT)
                return (Bytes) {};
        at = get(r, (size_t) size + 1);
        if (at && at[size] != 0) {
                refuse(r);
                at = NULL;
        }
        return at ? (Bytes) { .data = (const char *) at, .size = size } : (Bytes) {};
}

static void set_pointer(void *at, const void *pointer) {
        memcpy(at, &pointer, sizeof pointer);
}

/* Reads `n` strings into an array that `m` owns. Each string takes at least the four bytes of its size, so no array is
 * larger than the message can fill. */
static const Bytes *get_array(Reader *r, size_t n, ReceivedMessage *m) {
        Bytes *array;

        if (n > (size_t) (r->end - r->at) / 4)
                refuse(r);
        if (r->error < 0 || n == 0)
                return NULL;
        array = calloc(n, sizeof *array);
        if (!array) {
                r->error = -ENOMEM;
                return NULL;
        }
        m->arrays[m->arrays[0] ? 1 : 0] = array;
        for (size_t i = 0; i < n; i++)
                array[i] = get_bytes(r);
        return array;
}

static bool string_is_valid(const Field *field, Bytes string) {
        if (!string.data)
                return !field->required;
        return (field->max == 0 || string.size <= field->max) &&
               (field->kind == FIELD_BYTES || strlen(string.data) == string.size);
}

static void get_field(Reader *r, ReceivedMessage *m, const Field *field) {
        uint8_t *base = (uint8_t *) &m->message, *at = base + field->offset, *size = base + field->size_offset;
        uint32_t value;
        Bytes string;

        switch (field->kind) {
        case FIELD_U32:
                value = get_u32(r);
                if (field->max > 0 && value > field->max)
                        refuse(r);
                *(uint32_t *) at = value;
                break;
        case FIELD_U64:
                *(uint64_t *) at = get_u64(r);
                break;
        case FIELD_BOOL:
                value = get_u32(r);
                if (value > 1)
                        refuse(r);
                *(bool *) at = value == 1;
                break;
        case FIELD_STRING:
        case FIELD_BYTES:
                string = get_bytes(r);
                if (!string_is_valid(field, string))
                        refuse(r);
                set_pointer(at, string.data);
                if (field->kind == FIELD_BYTES)
                        *(size_t *) size = string.size;
                break;
        case FIELD_LIST:
                set_pointer(at, get_array(r, (size_t) field->factor * *(const uint32_t *) size, m));
                break;
        case FIELD_END:
                break;
        }
}

int message_decode(uint8_t *bytes, size_t size, ReceivedMessage *ret) {
        Reader r = { .at = bytes, .end = bytes + size };
        ReceivedMessage m = { .message.kind = get_u32(&r), .size = size, .pipe_fd = -1, .memory_fd = -1,
                              .bytes = bytes };
        const Layout *layout = message_layout(m.message.kind);

        if (!layout || size > layout->size_max)
                return -EBADMSG;
        for (const Field *field = layout->fields; field->kind != FIELD_END; field++)
                get_field(&r, &m, field);
        if (r.at != r.end || (r.error == 0 && layout->is_valid && !layout->is_valid(&m.message)))
                refuse(&r);
        if (r.error == 0)
                *ret = m;
        else
                for (size_t i = 0; i < sizeof m.arrays / sizeof *m.arrays; i++)
                        free(m.arrays[i]);
        return r.error;
}

/* ---- Rules that others apply, too --------------------------------------------------------------------------------- */

bool job_parameters_are_valid(const JobSpec *j) {
        size_t n = (size_t) j->n_positional + 2 * (size_t) j->n_named, size;

        if (j->n_positional > SQLIPC_N_COLUMNS_MAX || j->n_named > SQLIPC_N_COLUMNS_MAX)
                return false;
        if (n == 0)
                return j->parameters_size == 0;
        if (page_check_row(j->parameters, j->parameters_size, (unsigned) n, &size) < 0 || size != j->parameters_size)
                return false;
        for (size_t i = j->n_positional; i < n; i += 2)
                if (j->parameters[i] != VALUE_TEXT)
                        return false;
        return true;
}

size_t started_size(const Started *s) {
        size_t size = 0;

        for (size_t i = 0; i < (size_t) 2 * s->n_columns; i++)
                size += s->columns[i].size + 5; /* its offset in COLUMNS and its NUL */
        for (size_t i = 0; i < s->n_parameters; i++)
                size += s->parameters[i].size;
        return size;
}
