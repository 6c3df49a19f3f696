/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The engine for rqlite with servers that break the protocol: a named error, and no more memory than the limits allow. */
#include <string.h>

#include "daemon/worker/core/row-sink.h"
#include "daemon/worker/rqlite/rqlite-engine.h"
#include "tests/rigs/rqlite-rig.h"

#define PATIENCE 150u                      /* calls of the progress function */
#define MEMORY_MAX (UINT64_C(200) << 20)   /* more than at the beginning */

static uint64_t memory_now(void) {
        g_autofree char *status = NULL;
        const char *at;

        g_assert_true(g_file_get_contents("/proc/self/status", &status, NULL, NULL));
        at = strstr(status, "VmRSS:");
        return g_ascii_strtoull(at + strlen("VmRSS:"), NULL, 10) * 1024;
}

/* Reads all rows, and keeps none. */
static EngineResult read_and_drop(EngineStatement *statement, RowSink *sink, SqlError *error) {
        EngineResult result = rqlite_engine.step(statement, sink, error);

        while (result == ENGINE_ROW || result == ENGINE_PAGE_FULL || result == ENGINE_NO_ROOM) {
                if (result == ENGINE_NO_ROOM && page_encoder_is_empty(sink->encoder))
                        return ENGINE_ROW_TOO_LARGE;
                page_encoder_clear(sink->encoder);
                result = rqlite_engine.fill(statement, sink, error);
        }
        return result;
}

static ErrorNumber query(RqliteRig *rig) {
        static const char sql[] = "SELECT a FROM t ORDER BY a";
        static const PageWriter writer = { .fd = -1 };
        static uint8_t memory[65536];
        PageEncoder encoder;
        RowSink sink = { .encoder = &encoder, .writer = &writer, .row_size_max = 1 << 20, .n_rows_max = UINT64_MAX };
        EngineConnection *connection;
        EngineStatement *statement;
        const JobSpec spec = {};

        page_encoder_init(&encoder, memory, sizeof memory, 1);
        if (!rqlite_engine.connect(rig->pool, "", 0, NULL, &connection, &rig->error))
                return rig->error.error;
        if (rqlite_engine.compile(connection, sql, strlen(sql), false, NULL, &statement, &rig->error)) {
                g_assert_true(rqlite_engine.bind(statement, &spec, &rig->error));
                if (read_and_drop(statement, &sink, &rig->error) == ENGINE_ROW_TOO_LARGE)
                        (void) sql_error_set(&rig->error, ERROR_ROW_TOO_LARGE, "row too large");
                rqlite_engine.release(statement);
        }
        rqlite_engine.disconnect(rig->pool, connection);
        return rig->error.error;
}

typedef struct Attack {
        const char *mode;
        ErrorNumber read, write; /* ERROR_NONE: it is no attack on that */
} Attack;

static const Attack attacks[] = {
        { "garbage", ERROR_INPUT_OUTPUT, ERROR_OUTCOME_UNKNOWN },
        { "empty", ERROR_INPUT_OUTPUT, ERROR_OUTCOME_UNKNOWN },
        { "cut-json", ERROR_INPUT_OUTPUT, ERROR_OUTCOME_UNKNOWN },
        { "types", ERROR_INPUT_OUTPUT, ERROR_OUTCOME_UNKNOWN },
        { "columns", ERROR_INPUT_OUTPUT, ERROR_OUTCOME_UNKNOWN },
        { "tags", ERROR_INPUT_OUTPUT, ERROR_OUTCOME_UNKNOWN },
        { "no-items", ERROR_INPUT_OUTPUT, ERROR_OUTCOME_UNKNOWN },
        { "one-item", ERROR_INPUT_OUTPUT, ERROR_OUTCOME_UNKNOWN },
        { "more-items", ERROR_INPUT_OUTPUT, ERROR_OUTCOME_UNKNOWN },
        { "other-schema", ERROR_BUSY, ERROR_OUTCOME_UNKNOWN },
        { "error", ERROR_INPUT_OUTPUT, ERROR_OUTCOME_UNKNOWN },
        { "latin1", ERROR_INPUT_OUTPUT, ERROR_OUTCOME_UNKNOWN },
        { "endless", ERROR_LIMITS_EXCEEDED, ERROR_OUTCOME_UNKNOWN },
        { "endless-row", ERROR_LIMITS_EXCEEDED, ERROR_OUTCOME_UNKNOWN },
        { "endless-nulls", ERROR_INPUT_OUTPUT, ERROR_OUTCOME_UNKNOWN },
        { "endless-items", ERROR_INPUT_OUTPUT, ERROR_OUTCOME_UNKNOWN },
        { "endless-depth", ERROR_INPUT_OUTPUT, ERROR_OUTCOME_UNKNOWN },
        { "endless-space", ERROR_LIMITS_EXCEEDED, ERROR_OUTCOME_UNKNOWN },
        { "endless-error", ERROR_BUSY, ERROR_OUTCOME_UNKNOWN },
        { "endless-headers", ERROR_BUSY, ERROR_OUTCOME_UNKNOWN },
        { "truncated", ERROR_BUSY, ERROR_OUTCOME_UNKNOWN },
        { "close", ERROR_BUSY, ERROR_OUTCOME_UNKNOWN },
        { "silent", ERROR_TIMED_OUT, ERROR_OUTCOME_UNKNOWN },
        { "slow", ERROR_TIMED_OUT, ERROR_OUTCOME_UNKNOWN },
        { "loop", ERROR_INPUT_OUTPUT, ERROR_INPUT_OUTPUT },
        { "away", ERROR_INPUT_OUTPUT, ERROR_INPUT_OUTPUT },
        { "file", ERROR_INPUT_OUTPUT, ERROR_INPUT_OUTPUT },
        { "401 Unauthorized", ERROR_LOGIN_FAILED, ERROR_LOGIN_FAILED },
        { "404 Not Found", ERROR_INPUT_OUTPUT, ERROR_INPUT_OUTPUT },
        { "500 Internal Server Error", ERROR_INPUT_OUTPUT, ERROR_OUTCOME_UNKNOWN },
        { "502 Bad Gateway", ERROR_INPUT_OUTPUT, ERROR_OUTCOME_UNKNOWN },
        { "503 Service Unavailable", ERROR_BUSY, ERROR_OUTCOME_UNKNOWN },
};

static void begin(RqliteNodes *nodes, RqliteRig *rig, const char *mode) {
        rqlite_nodes_start_hostile(nodes, mode);
        rqlite_rig_begin(rig, rqlite_nodes_urls(nodes, NULL));
        rig->setup.busy_usec = 0;
        rig->interrupt_at = PATIENCE;
}

static void end(RqliteNodes *nodes, RqliteRig *rig) {
        rqlite_rig_end(rig);
        rqlite_nodes_stop(nodes);
}

static void check(const RqliteRig *rig, const char *mode, ErrorNumber expected, uint64_t before) {
        if (rig->error.error != expected)
                g_error("%s: error %d, not %d: %s", mode, rig->error.error, expected, rig->error.message ?: "");
        g_assert_nonnull(rig->error.message);
        g_assert_cmpuint(memory_now(), <, before + MEMORY_MAX);
}

static void test_reads(void) {
        uint64_t before = memory_now();

        for (size_t i = 0; i < G_N_ELEMENTS(attacks); i++) {
                RqliteNodes nodes;
                RqliteRig rig;

                begin(&nodes, &rig, attacks[i].mode);
                rig.interrupt_at = strncmp(attacks[i].mode, "endless", 7) == 0 ? 0 : PATIENCE;
                (void) query(&rig);
                check(&rig, attacks[i].mode, attacks[i].read, before);
                end(&nodes, &rig);
        }
}

/* Endless answers take long to read, so most of them are for one test only. */
static bool takes_long(const Attack *a) {
        return g_str_has_prefix(a->mode, "endless") && strcmp(a->mode, "endless-space") != 0;
}

/* A write that may have happened is never reported as one that has not. */
static void test_writes(void) {
        uint64_t before = memory_now();

        for (size_t i = 0; i < G_N_ELEMENTS(attacks); i++) {
                RqliteNodes nodes;
                RqliteRig rig;

                if (takes_long(&attacks[i]))
                        continue;
                begin(&nodes, &rig, attacks[i].mode);
                rig.interrupt_at = strncmp(attacks[i].mode, "endless", 7) == 0 ? 0 : PATIENCE;
                g_assert_false(rqlite_rig_execute(&rig, "INSERT INTO t(a) VALUES(1)"));
                check(&rig, attacks[i].mode, attacks[i].write, before);
                end(&nodes, &rig);
        }
}

static void test_schema(void) {
        uint64_t before = memory_now();

        for (size_t i = 0; i < G_N_ELEMENTS(attacks); i++) {
                g_autofree char *mode = g_strconcat("schema:", attacks[i].mode, NULL);
                RqliteNodes nodes;
                RqliteRig rig;

                if (takes_long(&attacks[i]))
                        continue;
                begin(&nodes, &rig, mode);
                rig.interrupt_at = strncmp(attacks[i].mode, "endless", 7) == 0 ? 0 : PATIENCE;
                g_assert_cmpint(query(&rig), !=, ERROR_NONE);
                g_assert_nonnull(rig.error.message);
                g_assert_cmpuint(memory_now(), <, before + MEMORY_MAX);
                end(&nodes, &rig);
        }
}

/* A certificate that no authority has signed, and a server that does not speak TLS. */
static void test_certificate(void) {
        g_autofree char *openssl = g_find_program_in_path("openssl");
        RqliteNodes nodes;
        RqliteRig rig;

        if (!openssl) {
                g_test_skip("openssl is not installed");
                return;
        }
        rqlite_nodes_start_hostile(&nodes, "tls");
        rqlite_rig_begin(&rig, g_strdup_printf("https://127.0.0.1:%d", nodes.ports[0]));
        rig.setup.busy_usec = 0;
        g_assert_cmpint(query(&rig), ==, ERROR_LOGIN_FAILED);
        end(&nodes, &rig);
        rqlite_nodes_start_hostile(&nodes, "empty");
        rqlite_rig_begin(&rig, g_strdup_printf("https://127.0.0.1:%d", nodes.ports[0]));
        g_assert_cmpint(query(&rig), ==, ERROR_BUSY);
        end(&nodes, &rig);
}

static void test_observers(void) {
        static const char *const modes[] = { "garbage", "close", "500 Internal Server Error", "401 Unauthorized", "loop",
                                             "endless-space" };

        for (size_t i = 0; i < G_N_ELEMENTS(modes); i++) {
                RqliteNodes nodes;
                RqliteRig rig;
                Observed observed;

                begin(&nodes, &rig, modes[i]);
                rig.interrupt_at = 0;
                rqlite_engine.observe(rig.pool, -1, &observed);
                g_assert_cmpint(observed.state.kind, ==, FILE_STATE_UNKNOWN);
                end(&nodes, &rig);
        }
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/rqlite/hostile/reads", test_reads);
        g_test_add_func("/rqlite/hostile/writes", test_writes);
        g_test_add_func("/rqlite/hostile/schema", test_schema);
        g_test_add_func("/rqlite/hostile/certificate", test_certificate);
        g_test_add_func("/rqlite/hostile/observers", test_observers);
        return g_test_run();
}
