/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See server-error.h.
 */
#include "daemon/worker/rqlite/server-error.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

static bool starts_with(const char *s, const char *prefix) {
        return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* Sentences of SQLite (vdbeaux.c, vdbe.c, main.c, resolve.c, build.c), by their beginning. A sentence that is not here is
 * about wrong SQL: that has no sentences of its own. */
static const struct {
        const char *prefix;
        int code;
        ErrorNumber error;
} sentences[] = {
        { "UNIQUE constraint failed: ", SQLITE_CONSTRAINT_UNIQUE, ERROR_SQL },
        { "NOT NULL constraint failed: ", SQLITE_CONSTRAINT_NOTNULL, ERROR_SQL },
        { "CHECK constraint failed: ", SQLITE_CONSTRAINT_CHECK, ERROR_SQL },
        { "FOREIGN KEY constraint failed", SQLITE_CONSTRAINT_FOREIGNKEY, ERROR_SQL },
        { "constraint failed", SQLITE_CONSTRAINT, ERROR_SQL },
        { "cannot store ", SQLITE_CONSTRAINT_DATATYPE, ERROR_SQL },
        { "datatype mismatch", SQLITE_MISMATCH, ERROR_SQL },
        { "string or blob too big", SQLITE_TOOBIG, ERROR_LIMITS_EXCEEDED },
        { "database or disk is full", SQLITE_FULL, ERROR_NO_SPACE },
        { "disk I/O error", SQLITE_IOERR, ERROR_INPUT_OUTPUT },
        { "database disk image is malformed", SQLITE_CORRUPT, ERROR_CORRUPT },
        { "out of memory", SQLITE_NOMEM, ERROR_OUT_OF_MEMORY },
        { "attempt to write a readonly database", SQLITE_READONLY, ERROR_READ_ONLY },
        { "not authorized", SQLITE_AUTH, ERROR_NOT_ALLOWED },
        { "database is locked", SQLITE_BUSY, ERROR_BUSY },
        { "interrupted", SQLITE_INTERRUPT, ERROR_TIMED_OUT },
        { "query timeout", SQLITE_INTERRUPT, ERROR_TIMED_OUT },
        { "no such function: ", SQLITE_ERROR, ERROR_MISSING_FUNCTION },
        { "no such module: ", SQLITE_ERROR, ERROR_MISSING_MODULE },
        { "no such collation sequence: ", SQLITE_ERROR_MISSING_COLLSEQ, ERROR_MISSING_COLLATION },
};

/* SQLite has one sentence for three codes. */
static int code_of_unique(const char *columns, ShadowSchema *shadow) {
        const char *dot = strchr(columns, '.');

        if (dot && strcmp(dot, ".rowid") == 0)
                return SQLITE_CONSTRAINT_ROWID;
        return shadow && shadow_schema_is_primary_key(shadow, columns) ? SQLITE_CONSTRAINT_PRIMARYKEY
                                                                      : SQLITE_CONSTRAINT_UNIQUE;
}

bool server_error_set(SqlError *error, const char *message, ShadowSchema *shadow) {
        ErrorNumber number = ERROR_SQL;
        int code = SQLITE_ERROR;

        for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++)
                if (starts_with(message, sentences[i].prefix)) {
                        number = sentences[i].error;
                        code = sentences[i].code;
                        break;
                }
        if (code == SQLITE_CONSTRAINT_UNIQUE)
                code = code_of_unique(message + strlen("UNIQUE constraint failed: "), shadow);
        (void) sql_error_set(error, number, "%s", message);
        error->extended_code = code;
        return false;
}

bool server_error_is_no_leader(const char *message) {
        static const char *const sentences_about_leaders[] = { "leader not found", "not leader", "no leader",
                                                               "node is not the leader",
                                                               "store not ready" /* just elected */ };

        for (size_t i = 0; i < sizeof sentences_about_leaders / sizeof *sentences_about_leaders; i++)
                if (starts_with(message, sentences_about_leaders[i]))
                        return true;
        return false;
}

bool server_error_retry(SqlError *error, ServerTrouble trouble, const char *reason) {
        (void) sql_error_set(error, ERROR_BUSY, "%s", reason);
        error->extended_code = trouble;
        return false;
}

void server_error_give_up(SqlError *error) {
        char *reason = strdup(sql_error_as_failure(error).message);

        switch ((ServerTrouble) error->extended_code) {
        case SERVER_TROUBLE_NO_LEADER:
                (void) sql_error_set(error, ERROR_BUSY,
                                     "the cluster has no leader (BusyTimeoutSec= passed): try again later");
                break;
        case SERVER_TROUBLE_UNREACHABLE:
                (void) sql_error_set(error, ERROR_SERVER_UNREACHABLE,
                                     "no node of the cluster can be reached (BusyTimeoutSec= passed): %s", reason ?: "");
                break;
        case SERVER_TROUBLE_CONNECTIONS:
                (void) sql_error_set(
                        error, ERROR_BUSY,
                        "all connections to the cluster that ConnectionsMax= allows are in use: try again later");
                break;
        case SERVER_TROUBLE_SCHEMA:
                (void) sql_error_set(error, ERROR_BUSY, "other programs keep changing the schema: try again later");
                break;
        default:
                (void) sql_error_set(error, ERROR_BUSY, "the server was busy (BusyTimeoutSec= passed): %s", reason ?: "");
                error->extended_code = SQLITE_BUSY;
        }
        free(reason);
}
