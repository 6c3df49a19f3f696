/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See access.h. For a user who may only read, the authorizer does *not* refuse statements that write;
 * access_only_reads() does so after the compile. Virtual tables (rtree) compile their own INSERTs when they connect, and the
 * caller gets the clearer error ReadOnly. The connection itself is opened read-only, so safety does not depend on this file
 * alone.
 *
 * The target of a statement that writes is the first table that SQLite asks about. For changes by foreign keys SQLite asks
 * in the same way, but later; for those by triggers and views it also gives their names.
 */
#include "daemon/worker/sqlite/access.h"

#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/worker/sqlite/pragma.h"
#include "daemon/worker/sqlite/trusted-schema.h"

#define ONLY_READS "databases are shared for reading, one SELECT at a time"
#define NEEDS_WRITE_SCHEMA "WriteSchema= of this database does not allow it"
/* "temp" is always open on a pin (pool.c). */
#define LIST_OF_PIN                                                                                                  \
        "SELECT seq, name, '' AS file FROM pragma_database_list "                                                    \
        "WHERE seq != 1 OR EXISTS (SELECT 1 FROM temp.sqlite_schema)"
#define ONE_FILE "a statement can only use this database"

/* If SQLite compiles while a client's statement runs, it compiles the SQL of a module. When it compiles the statement itself
 * again, that does not run. */
static bool is_of_client(const Access *access) {
        return access->of_client || (access->running && (access->no_modules || !sqlite3_stmt_busy(access->running)));
}

/* `reason` is for a user who may write. */
static int refuse(Access *access, const char *what, const char *which, const char *reason) {
        sqlite3_snprintf(sizeof access->refused, access->refused, "%s%s%s", what, which ? " " : "", which ? which : "");
        access->reason = access->rights ? reason : ONLY_READS;
        return SQLITE_DENY;
}

/* The temporary database of VACUUM has no file name. */
static bool is_attached(const Access *access, const char *schema) {
        const char *file = NULL;

        if (access->is_pin && schema && sqlite3_stricmp(schema, "main") != 0 && sqlite3_stricmp(schema, "temp") != 0)
                file = sqlite3_db_filename(access->db, schema);
        return file && *file;
}

static int refuse_attached(Access *access, const char *schema) {
        (void) refuse(access, "a change of the attached database", schema, NULL);
        access->reason = "attached databases are only read: connect to this one to change it";
        return SQLITE_DENY;
}

/* ---- PRAGMAs ---- */

static int refuse_pragma(Access *access, const char *name, const char *reason) {
        sqlite3_snprintf(sizeof access->refused, access->refused, "%s %s",
                         access->pragma.argument ? "setting PRAGMA" : "PRAGMA", name);
        access->reason = reason;
        return SQLITE_DENY;
}

/* SQLite then compiles a program that does nothing. */
static int replace_pragma(Access *access, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        sqlite3_vsnprintf(sizeof access->pragma.answer, access->pragma.answer, format, arguments);
        va_end(arguments);
        access->pragma.replaced = true;
        return SQLITE_IGNORE;
}

static int ignore_pragma(Access *access) {
        return replace_pragma(access, "%s", "");
}

static int ignore_if(Access *access, bool holds, const PragmaRule *rule) {
        return holds ? ignore_pragma(access) : refuse_pragma(access, rule->name, rule->reason);
}

static int read_instead(Access *access, const char *name, const char *schema) {
        return replace_pragma(access, "PRAGMA %s%s%s", schema ? schema : "", schema ? "." : "", name);
}

static int set_number(Access *access, const char *name, const char *schema) {
        if (is_attached(access, schema))
                return refuse_attached(access, schema);
        if (!access->rights)
                return refuse_pragma(access, name, ONLY_READS);
        if (!access->rights->write_schema)
                return refuse_pragma(access, name, NEEDS_WRITE_SCHEMA);
        access->changes = true;
        return SQLITE_OK;
}

/* The commit then checks foreign keys, instead of each statement. With OFF in its transaction SQLite forgets the violations
 * so far, so only clients may set it that may turn keys off. Without a transaction OFF holds. */
static int defer_foreign_keys(Access *access, const PragmaRule *rule, const char *argument) {
        bool is_on = pragma_is_on(argument);

        if (access->rights && access->savepoints && (is_on || engine_may_enforce(access->rights, false)))
                return SQLITE_OK;
        if (!is_on && access->savepoints)
                return refuse_pragma(access, rule->name, "SQLite would forget the violations so far: end the transaction");
        return ignore_if(access, !is_on && !access->savepoints, rule);
}

/* In a transaction SQLite ignores the setting, too. For a user who may only read it has no effect. */
static int set_foreign_keys(Access *access, const PragmaRule *rule, const char *argument) {
        bool on = pragma_is_on(argument), acts = !access->in_transaction && access->rights;

        if (acts && !engine_may_enforce(access->rights, on))
                return refuse_pragma(access, rule->name, rule->reason);
        if (acts && !access->keeps_settings && on != engine_enforces(access->setup, access->foreign_keys))
                return refuse_pragma(access, rule->name,
                                     "ForeignKeys= of this database sets it for programs that cannot keep a setting: use a "
                                     "newer library, or the option foreign-keys of org.sqlipc1(5)");
        if (!access->in_transaction)
                access->pragma.foreign_keys = on ? FOREIGN_KEYS_ON : FOREIGN_KEYS_OFF;
        return ignore_pragma(access);
}

static int busy_timeout(Access *access, const char *argument) {
        int timeout = argument ? pragma_integer(argument) : (int) (access->setup->busy_usec / 1000);

        return replace_pragma(access, "SELECT %d AS timeout", timeout > 0 ? timeout : 0);
}

static int secure_delete(Access *access, const PragmaRule *rule, const char *argument, const char *schema) {
        bool asks = pragma_is_on(argument) || strcasecmp(argument, "fast") == 0;

        return asks && access->rights && !sqlite3_compileoption_used("SECURE_DELETE")
                       ? refuse_pragma(access, rule->name, rule->reason)
                       : read_instead(access, rule->name, schema);
}

/* Other engines compile SQL for a server, and a connection with exposed tables has no schema of the client. */
static bool may_need_pin(const Access *access) {
        return !access->is_shadow && access->setup->n_exposed == 0;
}

/* SQLite sets it when it compiles the PRAGMA. As functions these take no argument. */
static int set_on_pin(Access *access, const PragmaRule *rule, bool holds) {
        if (access->is_pin)
                return SQLITE_OK;
        access->needs_pin = !holds && may_need_pin(access);
        return ignore_if(access, holds, rule);
}

static int authorize_use(Access *access, PragmaUse use, const PragmaRule *rule, const char *argument, const char *schema) {
        switch (use) {
        case PRAGMA_RUNS:
                return SQLITE_OK;
        case PRAGMA_READS:
                return read_instead(access, rule->name, schema);
        case PRAGMA_ANSWERS:
                return replace_pragma(access, "%s", rule->answer);
        case PRAGMA_DATABASE_LIST:
                if (!access->of_client)
                        return SQLITE_OK;
                return replace_pragma(access, "%s", access->is_pin ? LIST_OF_PIN : rule->answer);
        case PRAGMA_IGNORED:
                return ignore_pragma(access);
        case PRAGMA_REFUSED:
                return refuse_pragma(access, rule->name, rule->reason);
        case PRAGMA_NEEDS_OFF:
                return ignore_if(access, !pragma_is_on(argument), rule);
        case PRAGMA_PIN_UNLESS_OFF:
        case PRAGMA_PIN_UNLESS_ON:
                return set_on_pin(access, rule, pragma_is_on(argument) == (use == PRAGMA_PIN_UNLESS_ON));
        case PRAGMA_NUMBER:
                return set_number(access, rule->name, schema);
        case PRAGMA_BUSY_TIMEOUT:
                return busy_timeout(access, argument);
        case PRAGMA_DEFER_FOREIGN_KEYS:
                return defer_foreign_keys(access, rule, argument);
        case PRAGMA_FOREIGN_KEYS:
                return argument ? set_foreign_keys(access, rule, argument)
                                : replace_pragma(access, "SELECT %d AS foreign_keys",
                                                 engine_enforces(access->setup, access->foreign_keys));
        case PRAGMA_QUERY_ONLY:
                return ignore_if(access, !access->rights || !pragma_is_on(argument), rule);
        case PRAGMA_SECURE_DELETE:
                return secure_delete(access, rule, argument, schema);
        case PRAGMA_WRITABLE_SCHEMA: /* a dump sets it; dumped-table.h takes its rows without it */
                return ignore_if(access, !pragma_is_on(argument) || (access->rights && access->rights->write_schema), rule);
        case PRAGMA_SYNCHRONOUS: /* that of commits, see sqlite-connection.c */
                return replace_pragma(access, "SELECT %d AS synchronous", access->setup->sync_full ? 3 : 1);
        }
        return SQLITE_DENY;
}

static bool reaches_sqlite(const Access *access, PragmaUse use) {
        return use == PRAGMA_RUNS || use == PRAGMA_NUMBER || use == PRAGMA_DEFER_FOREIGN_KEYS ||
                (use == PRAGMA_DATABASE_LIST && access->running && strcmp(sqlite3_sql(access->running), LIST_OF_PIN) == 0);
}

/* Only the statement of a client itself can be replaced, not a PRAGMA that a table-valued function runs. */
static int authorize_pragma(Access *access, const char *name, const char *argument, const char *schema) {
        const PragmaRule *rule = pragma_find(name);
        PragmaUse use = !rule ? PRAGMA_IGNORED : argument ? rule->with : rule->without;

        access->pragma.argument = argument != NULL;
        if (access->is_shadow && !reaches_sqlite(access, use))
                return refuse_pragma(access, name, "the service chooses the settings of its connections");
        if (!access->of_client && !reaches_sqlite(access, use))
                return refuse_pragma(access, name, "as a function it reads only what SQLite itself knows");
        return authorize_use(access, use, rule, argument, schema);
}

/* ---- changes ---- */

static bool is_listed(const Setup *rights, const char *table) {
        for (uint32_t i = 0; i < rights->n_write_tables; i++)
                if (rights->write_tables[i].size == strlen(table) &&
                    sqlite3_stricmp(rights->write_tables[i].data, table) == 0)
                        return true;
        return rights->n_write_tables == 0;
}

static bool is_system_table(const char *table) {
        return sqlite3_strnicmp(table, "sqlite_", 7) == 0;
}

/* A virtual table in "temp" could run SQL of its module that this file takes for the worker's. For CREATE TRIGGER temp.x ON
 * main.t SQLite asks as for a trigger of "main", and then to insert a row into the table of the schema "temp". */
static int authorize_temporary(Access *access, int action) {
        if (action == SQLITE_CREATE_VTABLE)
                return refuse(access, "a TEMP virtual table", NULL, "create an ordinary TEMP table");
        if (action == SQLITE_CREATE_TEMP_TRIGGER || (action == SQLITE_INSERT && access->creates_trigger))
                return refuse(access, "a TEMP trigger", NULL, "its changes would be taken for those of the database");
        if (access->is_pin)
                return SQLITE_OK;
        access->needs_pin = may_need_pin(access);
        return refuse(access, "a TEMP table or view", NULL, "connections are shared by statements");
}

static int refuse_schema(Access *access) {
        return refuse(access, "a change of the schema", NULL, NEEDS_WRITE_SCHEMA);
}

/* SQLite asks before it finds that the object exists (IF NOT EXISTS), so access_may_change() refuses the client's statement.
 * One that SQLite compiles again is about to run. */
static int authorize_schema(Access *access) {
        access->changes_schema = true;
        if (access->rights->write_schema || (access->of_client && !access->is_shadow))
                return SQLITE_OK;
        return refuse_schema(access);
}

/* For a statement like CREATE, SQLite also asks to change the schema's table, often first. */
static int authorize_rows(Access *access, const char *table) {
        if (!access->has_target) {
                access->has_target = true;
                sqlite3_snprintf(sizeof access->target, access->target, "%s", table);
                access->target_is_listed = is_listed(access->rights, table);
        }
        access->changes_system = access->changes_system || is_system_table(table);
        return SQLITE_OK;
}

/* For CREATE TABLE temp.t SQLite asks as for other tables. ALTER TABLE of any table updates the schema of "temp". */
static bool is_temporary(int action, const char *schema) {
        if (action != SQLITE_UPDATE && schema && sqlite3_stricmp(schema, "temp") == 0)
                return true;
        return action == SQLITE_CREATE_TEMP_INDEX || action == SQLITE_CREATE_TEMP_TABLE ||
                action == SQLITE_CREATE_TEMP_TRIGGER || action == SQLITE_CREATE_TEMP_VIEW ||
                action == SQLITE_DROP_TEMP_INDEX || action == SQLITE_DROP_TEMP_TABLE ||
                action == SQLITE_DROP_TEMP_TRIGGER || action == SQLITE_DROP_TEMP_VIEW;
}

static bool is_change(int action) {
        switch (action) {
        case SQLITE_INSERT:
        case SQLITE_UPDATE:
        case SQLITE_DELETE:
        case SQLITE_CREATE_INDEX:
        case SQLITE_CREATE_TABLE:
        case SQLITE_CREATE_TRIGGER:
        case SQLITE_CREATE_VIEW:
        case SQLITE_CREATE_VTABLE:
        case SQLITE_DROP_INDEX:
        case SQLITE_DROP_TABLE:
        case SQLITE_DROP_TRIGGER:
        case SQLITE_DROP_VIEW:
        case SQLITE_DROP_VTABLE:
        case SQLITE_ALTER_TABLE:
        case SQLITE_REINDEX:
        case SQLITE_ANALYZE:
                return true;
        default:
                return is_temporary(action, NULL);
        }
}

static void note_created(Access *access, const char *table, const char *module) {
        AccessCreated *created = &access->created;

        if (created->name && strcmp(created->name, table) == 0)
                sqlite3_snprintf(sizeof created->module, created->module, "%s", module);
}

/* Of ALTER TABLE, SQLite gives the schema in the place of the table. */
static const char *schema_of(int action, const char *table, const char *schema) {
        return action == SQLITE_ALTER_TABLE ? table : schema;
}

static bool is_of_temp(int action, const char *table, const char *schema) {
        const char *its = schema_of(action, table, schema);

        return its && sqlite3_stricmp(its, "temp") == 0;
}

/* ALTER TABLE of any table updates the schema of "temp", too. */
static void note_schema(Access *access, int action, const char *table, const char *schema) {
        if (!is_of_temp(action, table, schema)) {
                access->changes_main = true;
                return;
        }
        access->changes_temp = true;
        access->changes_temp_schema |= action != SQLITE_INSERT && action != SQLITE_UPDATE && action != SQLITE_DELETE;
}

/* `module` is that of a virtual table; `within`: the trigger or view that does it. */
static int authorize_change(Access *access, int action, const char *table, const char *module, const char *schema,
                            const char *within) {
        if (!is_change(action))
                return SQLITE_OK;
        access->changes = true;
        if (is_attached(access, schema_of(action, table, schema)))
                return refuse_attached(access, schema_of(action, table, schema));
        access->creates_trigger |= action == SQLITE_CREATE_TRIGGER;
        note_schema(access, action, table, schema);
        if (within || !is_of_client(access))
                return SQLITE_OK;
        if (is_temporary(action, schema) && (access->rights || may_need_pin(access)))
                return authorize_temporary(access, action);
        if (!access->rights)
                return SQLITE_OK;
        if (is_of_temp(action, table, schema)) /* rows of a TEMP table, or ALTER TABLE */
                return SQLITE_OK;
        if (action == SQLITE_INSERT || action == SQLITE_UPDATE || action == SQLITE_DELETE)
                return authorize_rows(access, table);
        if (action == SQLITE_CREATE_VTABLE)
                note_created(access, table, module);
        if (action == SQLITE_ALTER_TABLE && access->keeps_names)
                return refuse(access, "ALTER TABLE", NULL, "the transaction loads virtual tables of a dump");
        return authorize_schema(access);
}

bool access_is_unsure(const Access *access) {
        return access->has_target && (access->rights->n_write_tables > 0 || access->changes_system);
}

bool access_may_change(Access *access) {
        if (access->changes_schema && !access->rights->write_schema)
                (void) refuse_schema(access);
        else if (!access->has_target || access->changes_schema)
                return true;
        else if (is_system_table(access->target) && !access->rights->write_schema)
                (void) refuse(access, "writing to", access->target, NEEDS_WRITE_SCHEMA);
        else if (!access->target_is_listed)
                (void) refuse(access, "writing to", access->target, "WriteTables= of this database does not list it");
        return !access->refused[0];
}

/* ---- the authorizer ---- */

/* The temporary database of VACUUM has no name. While VACUUM runs, SQLite compiles no SQL of a client, and of the texts in
 * the schema only those that begin like CREATE and INSERT. */
static int authorize_attach(Access *access, const char *file) {
        bool is_of_vacuum = access->may_attach && !is_of_client(access) && file && !*file;

        access->may_attach = false;
        if (is_of_vacuum)
                return SQLITE_OK;
        if (!is_of_client(access) || !may_need_pin(access))
                return refuse(access, "ATTACH", NULL, ONE_FILE);
        access->attaches = true;
        if (access->is_pin)
                return SQLITE_OK;
        access->needs_pin = true;
        return refuse(access, "ATTACH", NULL, ONE_FILE);
}

/* Without a pin SQLite says that there is no such database. */
static int authorize_detach(Access *access) {
        if (!is_of_client(access) || !may_need_pin(access))
                return refuse(access, "DETACH", NULL, ONE_FILE);
        access->attaches = true;
        return SQLITE_OK;
}

/* Any other request means that the statement is not only the PRAGMA. */
static void note_request(Access *access, int action, const char *a, const char *b) {
        access->reads_journal_mode = !access->asked && action == SQLITE_PRAGMA && !b && strcasecmp(a, "journal_mode") == 0;
        access->asked = true;
}

/* Of the file: only its owner knows of a TEMP table, and an attached database has watches of its own. */
static void note_table(AccessTables *tables, int action, const char *name, const char *schema) {
        int r = 0;

        if (schema && sqlite3_stricmp(schema, "main") != 0)
                return;
        if (action == SQLITE_READ)
                r = engine_tables_add(&tables->read, name);
        else if (action == SQLITE_INSERT || action == SQLITE_UPDATE || action == SQLITE_DELETE)
                r = engine_tables_add(&tables->written, name);
        tables->failed = tables->failed || r < 0;
}

static const char *savepoint_command(const char *operation) {
        if (strcmp(operation, "BEGIN") == 0)
                return "SAVEPOINT";
        return strcmp(operation, "ROLLBACK") == 0 ? "ROLLBACK TO" : operation;
}

static int authorize_savepoint(Access *access, const char *operation) {
        access->asks_savepoint = true;
        return access->savepoints ? SQLITE_OK
                                  : refuse(access, savepoint_command(operation), NULL,
                                           "savepoints need a transaction");
}

/* `within`: the view, trigger or common table expression that calls it. */
static int authorize_function(Access *access, const char *name, const char *within) {
        const char *reason;

        if (strcasecmp(name, "load_extension") == 0 || strcasecmp(name, "fts3_tokenizer") == 0)
                /* both are off in any case, and are refused here in case another setting enables them */
                reason = "it could run code of other programs";
        else if (strcasecmp(name, "optimize") == 0) /* of FTS3 and FTS4; inside an INSERT it would end with SQLITE_BUSY */
                reason = "it writes; INSERT INTO t(t) VALUES('optimize') does the same";
        else
                return SQLITE_OK;
        (void) refuse(access, "function", name, reason);
        if (within)
                sqlite3_snprintf(sizeof access->refused, access->refused, "function %s, which \"%s\" calls,", name, within);
        return SQLITE_DENY;
}

static int authorize(void *userdata, int action, const char *a, const char *b, const char *schema, const char *within) {
        static const char transactions[] = "the service runs each statement in a transaction";
        Access *access = userdata;

        note_request(access, action, a, b);
        if (access->tables)
                note_table(access->tables, action, a, schema);
        switch (action) {
        case SQLITE_PRAGMA:
                return authorize_pragma(access, a, b, schema);
        case SQLITE_ATTACH:
                return authorize_attach(access, a);
        case SQLITE_DETACH:
                return authorize_detach(access);
        case SQLITE_TRANSACTION:
                return is_of_client(access) ? refuse(access, a, NULL, transactions) : SQLITE_OK;
        case SQLITE_SAVEPOINT: /* "BEGIN", "RELEASE" or "ROLLBACK", and its name */
                return is_of_client(access) ? authorize_savepoint(access, a) : SQLITE_OK;
        case SQLITE_FUNCTION:
                access->asks_changes = access->asks_changes || strcasecmp(b, "changes") == 0;
                return authorize_function(access, b, within);
        default:
                if (a && access->of_client && strcasecmp(a, ACCESS_COUNTS_TABLE) == 0)
                        return refuse(access, "table", a, "it is for the service");
                return authorize_change(access, action, a, b, schema, within);
        }
}

void access_forget(Access *access) {
        access->refused[0] = access->target[0] = 0;
        access->pragma = (AccessPragma) {};
        access->asked = access->reads_journal_mode = access->changes = access->has_target = false;
        access->changes_schema = access->changes_system = access->asks_savepoint = access->asks_changes = false;
        access->changes_temp = access->changes_temp_schema = access->changes_main = access->needs_pin = false;
        access->creates_trigger = access->attaches = false;
}

int access_step(Access *access, sqlite3_stmt *stmt) {
        int rc;

        access->refused[0] = 0; /* of a module that went on without it; otherwise the last step has failed */
        access->running = stmt;
        rc = sqlite3_step(stmt);
        access->running = NULL;
        return rc;
}

int access_reset(Access *access, sqlite3_stmt *stmt) {
        int rc;

        access->running = stmt;
        rc = sqlite3_reset(stmt);
        access->running = NULL;
        return rc;
}

bool access_only_changes_temp(const Access *access) {
        return access->is_pin && access->changes_temp && !access->changes_main;
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
        const struct {
                int option, value;
        } settings[] = {
                { SQLITE_DBCONFIG_DEFENSIVE, 1 },
                { SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0 },
                { SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0 },
                { SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0 },
                { SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1 },
                { SQLITE_DBCONFIG_ENABLE_TRIGGER, 1 },
                { SQLITE_DBCONFIG_ENABLE_FKEY, 0 }, /* sqlite_write_begin() sets what holds for the client */
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
        int rc = trusted_schema_set_up(db); /* which compiles, so the limits come after it */

        for (size_t i = 0; rc == SQLITE_OK && i < sizeof settings / sizeof *settings; i++)
                rc = sqlite3_db_config(db, settings[i].option, settings[i].value, NULL);
        if (rc != SQLITE_OK)
                return rc;
        for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
                (void) sqlite3_limit(db, limits[i].limit, limits[i].value);
        access_widen(db);
        access_forget(access);
        access->db = db;
        access->setup = setup;
        access->rights = setup->writes && setup->n_exposed == 0 ? setup : NULL;
        return sqlite3_set_authorizer(db, authorize, access);
}

void access_pause(sqlite3 *db, Access *access, bool pause) {
        (void) sqlite3_set_authorizer(db, pause ? NULL : authorize, access);
}
