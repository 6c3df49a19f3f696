/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See access.h. The authorizer does *not* refuse statements that write; access_only_reads() does so after the
 * compile. Virtual tables (rtree) compile their own INSERTs when they connect, and the caller gets the clearer error
 * ReadOnly. The connection itself is opened read-only, so safety does not depend on this file alone.
 */
#include "daemon/worker/sqlite/access.h"

#include <sqlite3.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

/* PRAGMAs that only read. For some of them the argument names an object; for the others an argument would set a value. */
static const struct {
        const char *name;
        bool argument;
} pragmas[] = {
        { "application_id", false },
        { "collation_list", false },
        { "compile_options", false },
        { "data_version", false },
        { "encoding", false },
        { "foreign_key_check", true },
        { "foreign_key_list", true },
        { "freelist_count", false },
        { "function_list", false },
        { "index_info", true },
        { "index_list", true },
        { "index_xinfo", true },
        { "integrity_check", true },
        { "journal_mode", false },
        { "max_page_count", false },
        { "module_list", false },
        { "page_count", false },
        { "page_size", false },
        { "pragma_list", false },
        { "quick_check", true },
        { "schema_version", false },
        { "table_info", true },
        { "table_list", true },
        { "table_xinfo", true },
        { "user_version", false },
};

static int refuse(Access *access, const char *what, const char *which) {
        sqlite3_snprintf(sizeof access->refused, access->refused, "%s%s%s", what, which ? " " : "", which ? which : "");
        return SQLITE_DENY;
}

static int authorize_pragma(Access *access, const char *name, const char *argument) {
        for (size_t i = 0; i < sizeof pragmas / sizeof *pragmas; i++)
                if (strcasecmp(pragmas[i].name, name) == 0) {
                        if (argument && !pragmas[i].argument)
                                return refuse(access, "setting PRAGMA", name);
                        return SQLITE_OK;
                }
        return refuse(access, "PRAGMA", name);
}

/* Any other request means that the statement is not only the PRAGMA. */
static void note_request(Access *access, int action, const char *a, const char *b) {
        access->reads_journal_mode = !access->asked && action == SQLITE_PRAGMA && !b && strcasecmp(a, "journal_mode") == 0;
        access->asked = true;
}

static void note_table(AccessTables *tables, int action, const char *name) {
        int r = 0;

        if (action == SQLITE_READ)
                r = engine_tables_add(&tables->read, name);
        else if (action == SQLITE_INSERT || action == SQLITE_UPDATE || action == SQLITE_DELETE)
                r = engine_tables_add(&tables->written, name);
        tables->failed = tables->failed || r < 0;
}

static int authorize(void *userdata, int action, const char *a, const char *b, const char *schema, const char *trigger) {
        Access *access = userdata;

        (void) schema;
        (void) trigger;
        note_request(access, action, a, b);
        if (access->tables)
                note_table(access->tables, action, a);
        switch (action) {
        case SQLITE_PRAGMA:
                return authorize_pragma(access, a, b);
        case SQLITE_ATTACH:
                return refuse(access, "ATTACH", NULL);
        case SQLITE_DETACH:
                return refuse(access, "DETACH", NULL);
        case SQLITE_TRANSACTION:
                return access->ours ? SQLITE_OK : refuse(access, a, NULL);
        case SQLITE_SAVEPOINT:
                return refuse(access, a, NULL);
        case SQLITE_FUNCTION:
                /* both are off in any case, and are refused here in case another setting enables them */
                if (strcasecmp(b, "load_extension") == 0 || strcasecmp(b, "fts3_tokenizer") == 0)
                        return refuse(access, "function", b);
                return SQLITE_OK;
        default:
                return SQLITE_OK;
        }
}

void access_forget(Access *access) {
        access->refused[0] = 0;
        access->asked = access->reads_journal_mode = false;
}

bool access_only_reads(const Access *access, sqlite3_stmt *stmt) {
        return sqlite3_stmt_readonly(stmt) || access->reads_journal_mode;
}

void access_narrow(sqlite3 *db, const Setup *setup) {
        (void) sqlite3_limit(db, SQLITE_LIMIT_EXPR_DEPTH, (int) setup->expression_depth_max);
        (void) sqlite3_limit(db, SQLITE_LIMIT_COMPOUND_SELECT, (int) setup->compound_selects_max);
        (void) sqlite3_limit(db, SQLITE_LIMIT_VARIABLE_NUMBER, (int) setup->variables_max);
}

void access_widen(sqlite3 *db) {
        (void) sqlite3_limit(db, SQLITE_LIMIT_EXPR_DEPTH, 1000);
        (void) sqlite3_limit(db, SQLITE_LIMIT_COMPOUND_SELECT, 500);
        (void) sqlite3_limit(db, SQLITE_LIMIT_VARIABLE_NUMBER, 32766);
}

int access_install(sqlite3 *db, const Setup *setup, Access *access) {
        static const struct {
                int option, value;
        } settings[] = {
                { SQLITE_DBCONFIG_DEFENSIVE, 1 },
                { SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0 },
                { SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0 },
                { SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0 },
                { SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0 },
                { SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1 },
        };
        /* No SQLITE_LIMIT_LENGTH: it would also limit what is stored, down to the schema that SQLite reads for itself,
         * while RowSizeMax= limits what is sent (core/row-sink.h). Memory has its own limit. */
        const struct {
                int limit, value;
        } limits[] = {
                { SQLITE_LIMIT_ATTACHED, 0 },
                { SQLITE_LIMIT_WORKER_THREADS, 0 },
                /* A program of a million steps takes 24 MB. Nested CTEs that double at each level pass this limit within
                 * milliseconds; with the default they would compile for many seconds. */
                { SQLITE_LIMIT_VDBE_OP, (int) setup->vdbe_ops_max },
                { SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50000 },
        };

        for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
                int rc = sqlite3_db_config(db, settings[i].option, settings[i].value, NULL);
                if (rc != SQLITE_OK)
                        return rc;
        }
        for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
                (void) sqlite3_limit(db, limits[i].limit, limits[i].value);
        access_widen(db);
        access_forget(access);
        /* this module shows the statements of the connection with their SQL, including those of other sessions */
        (void) sqlite3_create_module_v2(db, "sqlite_stmt", NULL, NULL, NULL);
        return sqlite3_set_authorizer(db, authorize, access);
}
