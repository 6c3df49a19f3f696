/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SQLite for a rival's server, see transport-source.h. */
#include "tools/bench/workloads/transport-source.h"

#include <errno.h>
#include <glib.h>
#include <sqlite3.h>
#include <stdio.h>

int source_open(const char *file, Source *ret) {
        Source source = {};

        if (sqlite3_open_v2(file, &source.db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
                fprintf(stderr, "sqlipc-bench: %s: %s\n", file, sqlite3_errmsg(source.db));
                source_close(&source);
                return -EIO;
        }
        *ret = source;
        return 0;
}

void source_close(Source *source) {
        (void) sqlite3_finalize(source->statement);
        (void) sqlite3_close(source->db);
        g_free(source->values);
        *source = (Source) {};
}

int source_prepare(Source *source, const char *sql) {
        int code;

        (void) sqlite3_finalize(source->statement);
        code = sqlite3_prepare_v2(source->db, sql, -1, &source->statement, NULL);
        if (code != SQLITE_OK)
                return code & 0xff;
        source->n_values = (uint32_t) sqlite3_column_count(source->statement);
        g_free(source->values);
        source->values = g_new(StudyText, source->n_values);
        return SQLITE_OK;
}

int source_next(Source *source) {
        int code = sqlite3_step(source->statement);

        if (code != SQLITE_ROW)
                return code & 0xff;
        for (uint32_t i = 0; i < source->n_values; i++) {
                sqlite3_value *value = sqlite3_column_value(source->statement, (int) i);
                const unsigned char *text = sqlite3_value_text(value);

                source->values[i] = (StudyText) {
                        .text = text ? (const char *) text : "",
                        .size = (uint32_t) sqlite3_value_bytes(value),
                };
        }
        return SQLITE_ROW;
}
