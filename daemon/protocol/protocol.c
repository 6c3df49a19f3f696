/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Encodes and decodes the messages between supervisor and worker, which protocol.h describes. Pure. A message is a u32 kind,
 * then the fields of its struct in their order, little-endian. A string is a u32 size (STRING_ABSENT: NULL), its bytes and a
 * NUL. Both ends are from the same build, so there is no version; but they do not trust each other, so everything is
 * checked.
 *
 * The writer grows a buffer and remembers its first failure. The reader never reads past `end`, and remembers its first
 * failure, too.
 */
#include "daemon/protocol/protocol.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dbus-interfaces/sqlipc-errors.h"
#include "dbus-interfaces/wire/page-payload.h"

#define STRING_ABSENT UINT32_MAX

/* ---- writing ---- */

typedef struct Writer {
        uint8_t *bytes;
        size_t size, capacity;
        int error;
} Writer;

static uint8_t *put(Writer *w, size_t size) {
        uint8_t *at;

        if (w->error < 0)
                return NULL;
        if (size > MESSAGE_MEMFD_SIZE_MAX - w->size) {
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

static void put_bytes(Writer *w, const void *data, size_t size) {
        uint8_t *at;

        if (!data) {
                put_u32(w, STRING_ABSENT);
                return;
        }
        put_u32(w, (uint32_t) size);
        at = size < SIZE_MAX ? put(w, size + 1) : NULL;
        if (!at)
                return;
        memcpy(at, data, size);
        at[size] = 0;
}

static void put_string(Writer *w, const char *s) {
        put_bytes(w, s, s ? strlen(s) : 0);
}

static void put_list(Writer *w, const Bytes *list, size_t n) {
        for (size_t i = 0; i < n; i++)
                put_bytes(w, list[i].data, list[i].size);
}

static void put_setup(Writer *w, const Setup *s) {
        put_string(w, s->path);
        put_u32(w, s->immutable);
        put_u64(w, s->heap_size_max);
        put_u64(w, s->temp_size_max);
        put_u64(w, s->park_usec);
        put_u64(w, s->park_rollback_usec);
        put_u64(w, s->busy_usec);
        put_u64(w, s->drain_usec);
        put_u32(w, s->sql_size_max);
        put_u32(w, s->expression_depth_max);
        put_u32(w, s->compound_selects_max);
        put_u32(w, s->vdbe_ops_max);
        put_u32(w, s->variables_max);
        put_u32(w, s->security_barrier);
        put_u32(w, s->n_exposed);
        put_list(w, s->exposed, s->n_exposed);
}

static void put_job(Writer *w, const JobSpec *j) {
        put_u64(w, j->number);
        /* Empty SQL must not become absent SQL, but an empty GBytes has no data. */
        put_bytes(w, j->sql_size > 0 ? j->sql : "", j->sql_size);
        put_u32(w, j->describe);
        put_u32(w, j->page_size);
        put_u64(w, j->deadline_usec);
        put_u64(w, j->row_size_max);
        put_u64(w, j->result_rows_max);
        put_u64(w, j->result_size_max);
        put_u32(w, j->n_positional);
        put_u32(w, j->n_named);
        put_bytes(w, j->parameters, j->parameters_size);
}

static void put_started(Writer *w, const Started *s) {
        put_u64(w, s->number);
        put_u32(w, s->described);
        put_u32(w, s->read_only);
        put_u32(w, s->n_columns);
        put_list(w, s->columns, (size_t) 2 * s->n_columns);
        put_u32(w, s->n_parameters);
        put_list(w, s->parameters, s->n_parameters);
}

static void put_ended(Writer *w, const Ended *e) {
        put_u64(w, e->number);
        put_u32(w, e->failure.error);
        put_u32(w, (uint32_t) e->failure.extended_code);
        put_u32(w, (uint32_t) e->failure.sql_offset);
        put_string(w, e->failure.message);
        put_u64(w, e->n_rows);
        put_u64(w, e->n_bytes);
        put_u64(w, e->usec);
        put_u32(w, e->drained);
}

static void put_channel_setup(Writer *w, const ChannelSetup *c) {
        put_u64(w, c->number);
        put_u32(w, c->page_size);
        put_u32(w, c->statements_max);
        put_u64(w, c->run_timeout_usec);
        put_u64(w, c->prepare_timeout_usec);
        put_u64(w, c->row_size_max);
        put_u64(w, c->result_rows_max);
        put_u64(w, c->result_size_max);
        put_bytes(w, c->state.data, c->state.size);
}

static void put_channel_progress(Writer *w, const ChannelProgress *p) {
        put_u64(w, p->number);
        put_u64(w, p->n_runs);
        put_u64(w, p->n_rows);
        put_u64(w, p->n_bytes);
        put_u32(w, p->running);
        put_u32(w, p->parked);
        put_u32(w, p->draining);
        put_u64(w, p->usec);
        put_u32(w, p->n_statements);
        put_bytes(w, p->sql.data, p->sql.size);
}

static void put_channel_end(Writer *w, const ChannelEnd *e) {
        put_channel_progress(w, &e->progress);
        put_u32(w, e->waiting);
        put_bytes(w, e->state.data, e->state.size);
        put_bytes(w, e->unread.data, e->unread.size);
}

int message_encode(const Message *m, uint8_t **ret_bytes, size_t *ret_size) {
        Writer w = {};

        put_u32(&w, m->kind);
        switch (m->kind) {
        case MESSAGE_SETUP:
                put_setup(&w, &m->setup);
                break;
        case MESSAGE_PREPARE:
        case MESSAGE_RUN:
                put_job(&w, &m->job);
                break;
        case MESSAGE_CANCEL:
                put_u64(&w, m->cancel.number);
                put_u32(&w, m->cancel.error);
                put_string(&w, m->cancel.message);
                break;
        case MESSAGE_STARTED:
                put_started(&w, &m->started);
                break;
        case MESSAGE_PARKED:
                put_u64(&w, m->parked.number);
                put_u32(&w, m->parked.parked);
                break;
        case MESSAGE_ENDED:
                put_ended(&w, &m->ended);
                break;
        case MESSAGE_PROGRESS:
                put_u64(&w, m->progress.number);
                put_u64(&w, m->progress.n_rows);
                put_u64(&w, m->progress.n_bytes);
                break;
        case MESSAGE_CHANNEL:
                put_channel_setup(&w, &m->channel);
                break;
        case MESSAGE_CHANNEL_CLOSE:
                put_u64(&w, m->channel_close.number);
                put_u32(&w, m->channel_close.drain);
                break;
        case MESSAGE_CHANNEL_PROGRESS:
                put_channel_progress(&w, &m->channel_progress);
                break;
        case MESSAGE_CHANNEL_RESTED:
        case MESSAGE_CHANNEL_CLOSED:
                put_channel_end(&w, &m->channel_end);
                break;
        case MESSAGE_DRAINED:
                put_u64(&w, m->drained.number);
                put_bytes(&w, m->drained.unread.data, m->drained.unread.size);
                break;
        case MESSAGE_TAKEN:
        case MESSAGE_FILLING:
        case MESSAGE_PING:
        case MESSAGE_PONG:
        case MESSAGE_GIVE_WAY:
                put_u64(&w, m->number);
                break;
        case MESSAGE_EXIT:
        case MESSAGE_RETIRE:
        case MESSAGE_STAY:
                break;
        }
        if (w.error < 0) {
                free(w.bytes);
                return w.error;
        }
        *ret_bytes = w.bytes;
        *ret_size = w.size;
        return 0;
}

/* ---- reading ---- */

typedef struct Reader {
        const uint8_t *at, *end;
        int error;
} Reader;

static const uint8_t *get(Reader *r, size_t size) {
        const uint8_t *at = r->at;

        if (r->error < 0 || size > (size_t) (r->end - at)) {
                r->error = r->error < 0 ? r->error : -EBADMSG;
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

static bool get_bool(Reader *r) {
        uint32_t value = get_u32(r);

        if (value > 1 && r->error == 0)
                r->error = -EBADMSG;
        return value == 1;
}

static Bytes get_bytes(Reader *r) {
        uint32_t size = get_u32(r);
        const uint8_t *at;

        if (r->error < 0 || size == STRING_ABSENT)
                return (Bytes) {};
        at = get(r, (size_t) size + 1);
        if (at && at[size] != 0) {
                r->error = -EBADMSG;
                at = NULL;
        }
        return at ? (Bytes) { .data = (const char *) at, .size = size } : (Bytes) {};
}

/* A C string; NULL if it is absent. */
static const char *get_string(Reader *r) {
        Bytes b = get_bytes(r);

        if (b.data && strlen(b.data) != b.size)
                r->error = -EBADMSG;
        return b.data;
}

/* Reads a list of `n` strings, which the caller frees; NULL on failure. Each string takes at least the four bytes of its
 * size, so no array is larger than the message can fill. */
static Bytes *get_list(Reader *r, size_t n) {
        Bytes *list;

        if (r->error < 0 || n > (size_t) (r->end - r->at) / 4) {
                r->error = r->error < 0 ? r->error : -EBADMSG;
                return NULL;
        }
        list = calloc(n > 0 ? n : 1, sizeof *list);
        if (!list)
                r->error = -ENOMEM;
        for (size_t i = 0; list && i < n; i++)
                list[i] = get_bytes(r);
        return list;
}

/* Returns the list of strings, which the caller frees. */
static Bytes *get_setup(Reader *r, Setup *s) {
        s->path = get_string(r);
        s->immutable = get_bool(r);
        s->heap_size_max = get_u64(r);
        s->temp_size_max = get_u64(r);
        s->park_usec = get_u64(r);
        s->park_rollback_usec = get_u64(r);
        s->busy_usec = get_u64(r);
        s->drain_usec = get_u64(r);
        s->sql_size_max = get_u32(r);
        s->expression_depth_max = get_u32(r);
        s->compound_selects_max = get_u32(r);
        s->vdbe_ops_max = get_u32(r);
        s->variables_max = get_u32(r);
        s->security_barrier = get_bool(r);
        s->n_exposed = get_u32(r);
        s->exposed = get_list(r, s->n_exposed);
        if (!s->path)
                r->error = -EBADMSG;
        for (size_t i = 0; r->error == 0 && i < s->n_exposed; i++)
                if (!s->exposed[i].data || strlen(s->exposed[i].data) != s->exposed[i].size)
                        r->error = -EBADMSG;
        return s->exposed;
}

static bool page_size_is_valid(uint32_t size) {
        return size >= SQLIPC_PAGE_SIZE_MIN && size <= SQLIPC_PAGE_SIZE_MAX && (size & (size - 1)) == 0;
}

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

static void get_job(Reader *r, MessageKind kind, JobSpec *j) {
        Bytes sql, parameters;

        j->number = get_u64(r);
        sql = get_bytes(r);
        j->sql = sql.data;
        j->sql_size = sql.size;
        j->describe = get_bool(r);
        j->page_size = get_u32(r);
        j->deadline_usec = get_u64(r);
        j->row_size_max = get_u64(r);
        j->result_rows_max = get_u64(r);
        j->result_size_max = get_u64(r);
        j->n_positional = get_u32(r);
        j->n_named = get_u32(r);
        parameters = get_bytes(r);
        j->parameters = (const uint8_t *) parameters.data;
        j->parameters_size = parameters.size;
        if (r->error == 0 &&
            (!j->sql || !job_parameters_are_valid(j) || (kind == MESSAGE_RUN && !page_size_is_valid(j->page_size))))
                r->error = -EBADMSG;
}

size_t started_size(const Started *s) {
        size_t size = 0;

        for (size_t i = 0; i < (size_t) 2 * s->n_columns; i++)
                size += s->columns[i].size + 5; /* its offset in COLUMNS and its NUL */
        for (size_t i = 0; i < s->n_parameters; i++)
                size += s->parameters[i].size;
        return size;
}

/* Returns the array that columns and parameters share; the caller frees it. */
static Bytes *get_started(Reader *r, Started *s) {
        const uint8_t *before;
        Bytes *list;
        size_t n;

        s->number = get_u64(r);
        s->described = get_bool(r);
        s->read_only = get_bool(r);
        s->n_columns = get_u32(r);
        if (s->n_columns > SQLIPC_N_COLUMNS_MAX) { /* twice as many must fit a size_t, even one of 32 bits */
                r->error = -EBADMSG;
                return NULL;
        }
        before = r->at;
        /* skip the columns to learn how many parameters follow, then read both lists into one array */
        for (size_t i = 0; i < (size_t) 2 * s->n_columns && r->error == 0; i++)
                (void) get_bytes(r);
        s->n_parameters = get_u32(r);
        n = (size_t) 2 * s->n_columns + s->n_parameters;
        /* each string takes at least the four bytes of its size, so no array is larger than the message can fill */
        if (r->error < 0 || s->n_parameters > PARAMETERS_MAX || s->n_parameters > (size_t) (r->end - r->at) / 4) {
                r->error = r->error < 0 ? r->error : -EBADMSG;
                return NULL;
        }
        list = calloc(n > 0 ? n : 1, sizeof *list);
        if (!list) {
                r->error = -ENOMEM;
                return NULL;
        }
        r->at = before;
        for (size_t i = 0; i < (size_t) 2 * s->n_columns; i++)
                list[i] = get_bytes(r);
        (void) get_u32(r);
        for (size_t i = (size_t) 2 * s->n_columns; i < n; i++)
                list[i] = get_bytes(r);
        s->columns = list;
        s->parameters = list + (size_t) 2 * s->n_columns;
        for (size_t i = 0; i < s->n_columns && r->error == 0; i++)
                if (!s->columns[2 * i].data)
                        r->error = -EBADMSG;
        if (r->error == 0 && started_size(s) > SQLIPC_COLUMNS_SIZE_MAX)
                r->error = -EBADMSG;
        return list;
}

static void get_ended(Reader *r, Ended *e) {
        e->number = get_u64(r);
        e->failure.error = get_u32(r);
        e->failure.extended_code = (int32_t) get_u32(r);
        e->failure.sql_offset = (int32_t) get_u32(r);
        e->failure.message = get_string(r);
        e->n_rows = get_u64(r);
        e->n_bytes = get_u64(r);
        e->usec = get_u64(r);
        e->drained = get_bool(r);
        if (e->failure.error >= ERROR_NUMBER_MAX || (e->failure.error != ERROR_NONE && !e->failure.message) ||
            (e->failure.message && strlen(e->failure.message) > SQLIPC_MESSAGE_SIZE_MAX))
                r->error = -EBADMSG;
}

static void get_channel_setup(Reader *r, ChannelSetup *c) {
        c->number = get_u64(r);
        c->page_size = get_u32(r);
        c->statements_max = get_u32(r);
        c->run_timeout_usec = get_u64(r);
        c->prepare_timeout_usec = get_u64(r);
        c->row_size_max = get_u64(r);
        c->result_rows_max = get_u64(r);
        c->result_size_max = get_u64(r);
        c->state = get_bytes(r);
        if (!page_size_is_valid(c->page_size))
                r->error = -EBADMSG;
}

static void get_channel_progress(Reader *r, ChannelProgress *p) {
        p->number = get_u64(r);
        p->n_runs = get_u64(r);
        p->n_rows = get_u64(r);
        p->n_bytes = get_u64(r);
        p->running = get_bool(r);
        p->parked = get_bool(r);
        p->draining = get_bool(r);
        p->usec = get_u64(r);
        p->n_statements = get_u32(r);
        p->sql = get_bytes(r);
}

static void get_channel_end(Reader *r, ChannelEnd *e) {
        get_channel_progress(r, &e->progress);
        e->waiting = get_bool(r);
        e->state = get_bytes(r);
        e->unread = get_bytes(r);
        if (e->state.size > CHANNEL_STATE_SIZE_MAX || e->unread.size > UNREAD_SIZE_MAX)
                r->error = -EBADMSG;
}

/* The largest size of a message of this kind. */
static size_t size_max_of(MessageKind kind) {
        switch (kind) {
        case MESSAGE_SETUP:
        case MESSAGE_PREPARE:
        case MESSAGE_RUN: return MESSAGE_MEMFD_SIZE_MAX;
        case MESSAGE_STARTED: return SQLIPC_COLUMNS_SIZE_MAX + 5 * (size_t) PARAMETERS_MAX + 64; /* see started_size() */
        case MESSAGE_CHANNEL: return CHANNEL_STATE_SIZE_MAX + MESSAGE_SIZE_MAX;
        case MESSAGE_CHANNEL_RESTED: return CHANNEL_STATE_SIZE_MAX + UNREAD_SIZE_MAX + MESSAGE_SIZE_MAX;
        case MESSAGE_DRAINED:
        case MESSAGE_CHANNEL_CLOSED: return UNREAD_SIZE_MAX + MESSAGE_SIZE_MAX;
        case MESSAGE_CANCEL:
        case MESSAGE_EXIT:
        case MESSAGE_TAKEN:
        case MESSAGE_PARKED:
        case MESSAGE_FILLING:
        case MESSAGE_ENDED:
        case MESSAGE_PROGRESS:
        case MESSAGE_CHANNEL_CLOSE:
        case MESSAGE_CHANNEL_PROGRESS:
        case MESSAGE_PING:
        case MESSAGE_PONG:
        case MESSAGE_RETIRE:
        case MESSAGE_GIVE_WAY:
        case MESSAGE_STAY: break;
        }
        return MESSAGE_SIZE_MAX;
}

int message_decode(uint8_t *bytes, size_t size, ReceivedMessage *ret) {
        Reader r = { .at = bytes, .end = bytes + size };
        Message m = { .kind = get_u32(&r) };
        void *arrays = NULL;

        if (size > size_max_of(m.kind))
                return -EBADMSG;
        switch (m.kind) {
        case MESSAGE_SETUP:
                arrays = get_setup(&r, &m.setup);
                break;
        case MESSAGE_PREPARE:
        case MESSAGE_RUN:
                get_job(&r, m.kind, &m.job);
                break;
        case MESSAGE_CANCEL:
                m.cancel.number = get_u64(&r);
                m.cancel.error = get_u32(&r);
                m.cancel.message = get_string(&r);
                if (m.cancel.error == ERROR_NONE || m.cancel.error >= ERROR_NUMBER_MAX || !m.cancel.message)
                        r.error = -EBADMSG;
                break;
        case MESSAGE_STARTED:
                arrays = get_started(&r, &m.started);
                break;
        case MESSAGE_PARKED:
                m.parked.number = get_u64(&r);
                m.parked.parked = get_bool(&r);
                break;
        case MESSAGE_ENDED:
                get_ended(&r, &m.ended);
                break;
        case MESSAGE_PROGRESS:
                m.progress.number = get_u64(&r);
                m.progress.n_rows = get_u64(&r);
                m.progress.n_bytes = get_u64(&r);
                break;
        case MESSAGE_CHANNEL:
                get_channel_setup(&r, &m.channel);
                break;
        case MESSAGE_CHANNEL_CLOSE:
                m.channel_close.number = get_u64(&r);
                m.channel_close.drain = get_bool(&r);
                break;
        case MESSAGE_CHANNEL_PROGRESS:
                get_channel_progress(&r, &m.channel_progress);
                break;
        case MESSAGE_CHANNEL_RESTED:
        case MESSAGE_CHANNEL_CLOSED:
                get_channel_end(&r, &m.channel_end);
                break;
        case MESSAGE_DRAINED:
                m.drained.number = get_u64(&r);
                m.drained.unread = get_bytes(&r);
                if (m.drained.unread.size > UNREAD_SIZE_MAX)
                        r.error = -EBADMSG;
                break;
        case MESSAGE_TAKEN:
        case MESSAGE_FILLING:
        case MESSAGE_PING:
        case MESSAGE_PONG:
        case MESSAGE_GIVE_WAY:
                m.number = get_u64(&r);
                break;
        case MESSAGE_EXIT:
        case MESSAGE_RETIRE:
        case MESSAGE_STAY:
                break;
        default:
                r.error = -EBADMSG;
        }
        if (r.error == 0 && r.at != r.end)
                r.error = -EBADMSG;
        if (r.error < 0) {
                free(arrays);
                return r.error;
        }
        *ret = (ReceivedMessage) { .message = m, .size = size, .pipe_fd = -1, .bytes = bytes, .arrays = arrays };
        return 0;
}
