/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See engine.h. Here is the part that all engines share.
 */
#include "daemon/worker/core/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/worker/core/monotonic.h"

/* Between two commits of other programs the lock is free for some ten microseconds. A writer gets it by trying often. */
#define RIVALS_PAUSE_USEC USEC_PER_MSEC

int engine_tables_add(EngineTables *tables, const char *name) {
        char **names, *copy;

        for (size_t i = 0; i < tables->n; i++)
                if (strcmp(tables->names[i], name) == 0)
                        return 0;
        names = reallocarray(tables->names, tables->n + 1, sizeof *names);
        if (!names)
                return -ENOMEM;
        tables->names = names;
        copy = strdup(name);
        if (!copy)
                return -ENOMEM;
        names[tables->n++] = copy;
        return 0;
}

void engine_tables_done(EngineTables *tables) {
        for (size_t i = 0; i < tables->n; i++)
                free(tables->names[i]);
        free(tables->names);
        *tables = (EngineTables) {};
}

void engine_written_done(EngineWritten *written) {
        engine_tables_done(&written->tables);
        *written = (EngineWritten) {};
}

uint64_t engine_begin_pause(const Engine *engine, const EnginePool *pool, uint64_t last) {
        return engine->others_commit && engine->others_commit(pool) ? RIVALS_PAUSE_USEC : retry_pause(last);
}

bool engine_enforces(const Setup *setup, ForeignKeys foreign_keys) {
        return foreign_keys == FOREIGN_KEYS_CONFIGURED ? setup->foreign_keys : foreign_keys == FOREIGN_KEYS_ON;
}

/* Keys that are enforced may delete rows of tables that WriteTables= does not list. */
bool engine_may_enforce(const Setup *setup, bool on) {
        return on == setup->foreign_keys || setup->write_schema || (on && setup->n_write_tables == 0);
}

bool engine_check_foreign_keys(const Engine *engine, const Setup *setup, ForeignKeys foreign_keys, SqlError *error) {
        bool on = engine_enforces(setup, foreign_keys);

        if (foreign_keys == FOREIGN_KEYS_CONFIGURED || (engine->set_client && engine_may_enforce(setup, on)))
                return true;
        return sql_error_set(error, ERROR_NOT_ALLOWED, "foreign keys cannot be %s: %s", on ? "ON" : "OFF",
                             engine->set_client ? ENGINE_NO_FOREIGN_KEYS : "this is a setting of SQLite, not of servers");
}

bool engine_met_lock(const Engine *engine, const SqlError *error) {
        enum { CODE_BUSY = 5 }; /* SQLITE_BUSY */

        return error->error == ERROR_BUSY && (error->extended_code & 0xff) == CODE_BUSY && !engine->state_is_remote;
}

void engine_set_locked(const Engine *engine, SqlError *error, const char *message) {
        int32_t code;

        (void) sql_error_set(error, ERROR_BUSY, "locked");
        engine->give_up(error);
        code = error->extended_code;
        (void) sql_error_set(error, ERROR_BUSY, "%s", message);
        error->extended_code = code;
}

bool engine_check_sql_size(const Setup *setup, size_t sql_size, SqlError *error) {
        if (sql_size <= setup->sql_size_max)
                return true;
        return sql_error_set(error, ERROR_LIMITS_EXCEEDED,
                             "this SQL has %zu bytes, and SQLSizeMax= allows %u: pass values as parameters",
                             sql_size, setup->sql_size_max);
}
