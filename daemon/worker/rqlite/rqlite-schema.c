/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See rqlite-schema.h.
 */
#include "daemon/worker/rqlite/rqlite-schema.h"

#include <stdio.h>

#include "daemon/worker/core/monotonic.h"

#define SCHEMA_SIZE_MAX (UINT64_C(32) << 20)
#define SCHEMA_TOO_LARGE "the schema of the database has more than 32 MiB"
#define PATIENCE_USEC (30 * USEC_PER_SEC)

/* The rows of sqlite_schema in the order in which they were made, typed as in statement-text.h. */
#define SCHEMA_OBJECTS "[\"SELECT 't'||name, 't'||sql FROM sqlite_schema ORDER BY rowid\"]"

/* The reading of a schema. */
typedef struct SchemaReading {
        const Setup *setup;
        Answer answer;
        bool only_version;
        bool has_version;
        int64_t version;
        ShadowSchema *shadow; /* owned; NULL: the version did not come yet */
        SqlError error;       /* of the shadow */
} SchemaReading;

bool rqlite_schema_version_of(const JsonValue *values, size_t n, int64_t *ret) {
        return n == 1 && values[0].kind == JSON_NUMBER && json_number_int64(values[0].bytes, ret);
}

static bool fail(SchemaReading *r, AnswerTrouble trouble) {
        r->answer.trouble = trouble;
        return false;
}

static bool take_version(SchemaReading *r, const JsonValue *values, size_t n) {
        if (r->has_version || !rqlite_schema_version_of(values, n, &r->version))
                return fail(r, ANSWER_INVALID);
        r->has_version = true;
        return r->only_version || shadow_schema_new(r->setup, r->version, &r->shadow, &r->error) ||
               fail(r, ANSWER_NO_MEMORY);
}

static bool take_object(SchemaReading *r, const JsonValue *values, size_t n) {
        const char *sql = n == 2 && values[1].kind == JSON_STRING && values[1].bytes[0] == 't' ? values[1].bytes + 1 : NULL;

        if (!r->shadow || n != 2 || values[0].kind != JSON_STRING || values[0].bytes[0] != 't' ||
            (!sql && values[1].kind != JSON_NULL))
                return fail(r, ANSWER_INVALID);
        return shadow_schema_add(r->shadow, values[0].bytes + 1, sql, &r->error) || fail(r, ANSWER_NO_MEMORY);
}

static bool on_row(void *userdata, unsigned item, const JsonValue *values, size_t n) {
        SchemaReading *r = userdata;

        return item == 0 ? take_version(r, values, n) : take_object(r, values, n);
}

static bool on_item(void *userdata, const ResponseItem *item) {
        SchemaReading *r = userdata;

        return !item->error || answer_set_error(&r->answer, item->error);
}

static HttpSinkResult take(void *userdata, const char *bytes, size_t size) {
        SchemaReading *r = userdata;

        return answer_take(&r->answer, bytes, size);
}

static void restart(void *userdata) {
        SchemaReading *r = userdata;

        answer_restart(&r->answer);
        r->shadow = shadow_schema_unref(r->shadow);
        r->has_version = false;
}

static bool finish(SchemaReading *r, SqlError *error) {
        answer_end(&r->answer);
        if (r->answer.trouble == ANSWER_ERROR)
                return sql_error_set(error, ERROR_INPUT_OUTPUT, "the schema cannot be read: %s", r->answer.message);
        return answer_finish(&r->answer, SCHEMA_TOO_LARGE, r->only_version ? 1 : 2, error) &&
               (r->has_version || answer_set_invalid(error));
}

/* `node`: only this one, which answers for itself; CLUSTER_ANY_NODE. */
static bool read_schema(RqliteConnection *c, int node, SchemaReading *r, SqlError *error) {
        const ResponseHandler handler = { .row = on_row, .item = on_item, .userdata = r };
        const ClusterReader reader = { .sink = { take, r }, .restart = restart, .userdata = r };
        const char *level = node >= 0 ? "none" : rqlite_pool_level(c->pool);
        TextBuffer body = {};
        char target[96];
        bool ok;

        r->setup = c->pool->setup;
        r->error = SQL_ERROR_INIT;
        answer_init(&r->answer, &handler, SCHEMA_SIZE_MAX);
        (void) snprintf(target, sizeof target, "/db/query?transaction&level=%s", level);
        text_buffer_printf(&body, "[%s%s]", RQLITE_SCHEMA_VERSION, r->only_version ? "" : "," SCHEMA_OBJECTS);
        ok = body.state == TEXT_GOOD || sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
        ok = ok && cluster_begin(&c->exchange, &(ClusterRequest) {
                .target = target,
                .body = &body,
                .by_leader = node < 0 && c->pool->setup->consistency != CONSISTENCY_NONE,
                .node = node,
                .patience_usec = PATIENCE_USEC,
        }, &reader, error) && finish(r, error);
        cluster_abort(&c->exchange);
        text_buffer_done(&body);
        answer_done(&r->answer);
        sql_error_done(&r->error);
        if (!ok)
                r->shadow = shadow_schema_unref(r->shadow);
        return ok;
}

bool rqlite_schema_load(RqliteConnection *c, SqlError *error) {
        SchemaReading r = {};

        if (!read_schema(c, CLUSTER_ANY_NODE, &r, error))
                return false;
        (void) shadow_schema_unref(c->pool->shadow);
        c->pool->shadow = r.shadow;
        return true;
}

bool rqlite_schema_refresh(RqliteConnection *c, SqlError *error) {
        SchemaReading r = { .only_version = true };

        if (!read_schema(c, CLUSTER_ANY_NODE, &r, error))
                return false;
        return r.version == c->pool->shadow->version || rqlite_schema_load(c, error);
}

bool rqlite_schema_version(RqliteConnection *c, int node, int64_t *ret) {
        SchemaReading r = { .only_version = true };
        SqlError error = SQL_ERROR_INIT;
        bool ok = read_schema(c, node, &r, &error);

        sql_error_done(&error);
        if (ok)
                *ret = r.version;
        return ok;
}
