/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: library. See module.h.
 */
#include "client-lib/extension/module.h"

#include <errno.h>
#include <sqlite3ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client-lib/extension/remote-search.h"
#include "client-lib/extension/row-numbers.h"

SQLITE_EXTENSION_INIT3

#define CHANGED_ADVICE "open the database again, or drop the virtual table and create it again"

typedef enum Bus {
        BUS_USER,
        BUS_SYSTEM,
        BUS_FOUND, /* the one that has the database; of the connections, that to an address in $SQLIPC_BUS */
        BUS_MAX,
} Bus;

/* State that all virtual tables of one SQLite connection share. */
typedef struct Module {
        sqlipc_connection *buses[BUS_MAX]; /* owned; NULL: no table has used this bus */
} Module;

typedef struct SharedTable {
        sqlite3_vtab base;
        SearchedTable searched;
} SharedTable;

typedef struct SharedCursor {
        sqlite3_vtab_cursor base;
        const char *text;     /* borrowed; the idxStr for `search`, unchanged while the statement runs */
        RemoteSearch *search; /* owned; NULL: none yet */
        bool ended;
        RowNumbers numbers; /* of rows without a rowid */
        bool numbered;      /* `rowid` is that of the current row */
        sqlite3_int64 rowid;
} SharedCursor;

/* ---- errors ---- */

static int sqlite_code(int r) {
        switch (r) {
        case -EINTR:
        case -ECANCELED:
                return SQLITE_INTERRUPT;
        case -ENOMEM:
                return SQLITE_NOMEM;
        case -EBUSY:
                return SQLITE_BUSY;
        case -EACCES:
                return SQLITE_PERM;
        default:
                return SQLITE_ERROR;
        }
}

/* Makes the message for a failure: the table and the service's sentence. */
static char *message_of(const RemoteTable *t, int r) {
        const char *sentence = sqlipc_error_message(t->connection);

        return sqlite3_mprintf("cannot read \"%w\" in %s: %s", t->name, t->database, sentence[0] ? sentence : strerror(-r));
}

/* The same for a table whose columns are known, and may have changed. */
static char *message_with_advice(const RemoteTable *t, int r) {
        char *message = NULL, *longer;

        if (r == -ESTALE)
                return sqlite3_mprintf("the columns of \"%w\" in %s have changed: " CHANGED_ADVICE, t->name, t->database);
        message = message_of(t, r);
        if (!message || sqlipc_error_code(t->connection) != SQLIPC_ERROR_SQL)
                return message;
        longer = sqlite3_mprintf("%s; if the table has changed, " CHANGED_ADVICE, message);
        sqlite3_free(message);
        return longer;
}

static int fail(sqlite3_vtab *base, int r) {
        const RemoteTable *t = &((SharedTable *) base)->searched.remote;

        sqlite3_free(base->zErrMsg);
        base->zErrMsg = r == -EINTR ? NULL : message_with_advice(t, r);
        return sqlite_code(r);
}

/* ---- tables ---- */

/* Returns an argument of the module without its quotes; the caller frees it. NULL: no memory. */
static char *unquote(const char *argument) {
        const char close = argument[0] == '[' ? ']' : argument[0];
        char *text = strdup(argument), *to = text;

        if (!text || !strchr("'\"`[", argument[0]))
                return text;
        for (const char *from = argument + 1; *from && (*from != close || (close != ']' && from[1] == close)); from++) {
                *to++ = *from;
                if (*from == close)
                        from++;
        }
        *to = 0;
        return text;
}

/* Finds the bus by the rule of sqlipc_open(3). All tables of a bus share one connection. */
static int find_bus(Module *m, const char *database, sqlipc_connection **ret, char **error) {
        sqlipc_connection *connection = NULL;
        const char *name;
        int r = sqlipc_open(database, NULL, &connection);
        Bus bus;

        if (r < 0) {
                *error = sqlite3_mprintf("cannot open %s: %s", database,
                                         connection ? sqlipc_error_message(connection) : strerror(-r));
                sqlipc_close(connection);
                return r;
        }
        name = sqlipc_get_bus_name(connection);
        bus = !name ? BUS_FOUND : strcmp(name, "system") == 0 ? BUS_SYSTEM : BUS_USER;
        if (m->buses[bus])
                sqlipc_close(connection);
        else
                m->buses[bus] = connection;
        *ret = m->buses[bus];
        return 0;
}

static int open_bus(Module *m, Bus bus, const char *database, sqlipc_connection **ret, char **error) {
        int r = 0;

        if (bus == BUS_FOUND)
                return find_bus(m, database, ret, error);
        if (!m->buses[bus])
                r = bus == BUS_SYSTEM ? sqlipc_open_system(&m->buses[bus]) : sqlipc_open_user(&m->buses[bus]);
        if (r < 0)
                *error = sqlite3_mprintf("cannot reach the %s bus: %s", bus == BUS_SYSTEM ? "system" : "user", strerror(-r));
        *ret = m->buses[bus];
        return r;
}

/* Reads the arguments after the module, the schema and the table: database, table and bus. */
static int read_arguments(int argc, const char *const *argv, char **ret_database, char **ret_name, Bus *ret_bus,
                          char **error) {
        char *bus = NULL;
        int rc = SQLITE_OK;

        if (argc < 5 || argc > 6) {
                *error = sqlite3_mprintf(
                        "write sqlipc(DATABASE, TABLE), or sqlipc(DATABASE, TABLE, BUS) with BUS user or system");
                return SQLITE_ERROR;
        }
        *ret_database = unquote(argv[3]);
        *ret_name = unquote(argv[4]);
        if (argc > 5)
                bus = unquote(argv[5]);
        if (!*ret_database || !*ret_name || (argc > 5 && !bus))
                rc = SQLITE_NOMEM;
        else if (!bus)
                *ret_bus = BUS_FOUND;
        else if (strcmp(bus, "user") == 0 || strcmp(bus, "system") == 0)
                *ret_bus = strcmp(bus, "system") == 0 ? BUS_SYSTEM : BUS_USER;
        else {
                *error = sqlite3_mprintf("there is no bus \"%w\": write user or system", bus);
                rc = SQLITE_ERROR;
        }
        free(bus);
        return rc;
}

/* Text is ordered by its bytes, which depend on the encoding. */
static bool is_utf8(sqlite3 *db) {
        sqlite3_stmt *stmt = NULL;
        bool utf8 = false;

        if (sqlite3_prepare_v2(db, "PRAGMA encoding", -1, &stmt, NULL) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW) {
                const char *encoding = (const char *) sqlite3_column_text(stmt, 0);

                utf8 = encoding && strcmp(encoding, "UTF-8") == 0;
        }
        (void) sqlite3_finalize(stmt);
        return utf8;
}

static int declare(sqlite3 *db, const RemoteTable *t) {
        char *sql = remote_table_declaration(t);
        int rc = sql ? sqlite3_declare_vtab(db, sql) : SQLITE_NOMEM;

        sqlite3_free(sql);
        /* no view or trigger of a file from elsewhere may ask the service for anything */
        return rc == SQLITE_OK ? sqlite3_vtab_config(db, SQLITE_VTAB_DIRECTONLY) : rc;
}

static int disconnect_table(sqlite3_vtab *base) {
        searched_table_done(&((SharedTable *) base)->searched);
        free(base);
        return SQLITE_OK;
}

/* The message if the service of the chosen bus has no such database. */
static char *message_of_missing(const RemoteTable *t, Bus bus, int r) {
        const char *other = bus == BUS_SYSTEM ? "user" : "system";
        char *message = message_of(t, r), *longer = NULL;
        sqlipc_connection *asked = NULL;

        if (message && bus != BUS_FOUND && sqlipc_open(t->database, other, &asked) >= 0)
                longer = sqlite3_mprintf("%s The %s bus has a database of this name: write %s", message, other, other);
        sqlipc_close(asked);
        if (!longer)
                return message;
        sqlite3_free(message);
        return longer;
}

static int open_table(sqlite3 *db, Module *m, Bus bus, const char *database, const char *name, sqlite3_vtab **ret,
                      char **error) {
        sqlipc_connection *connection = NULL;
        SharedTable *t;
        int r, rc;

        if (open_bus(m, bus, database, &connection, error) < 0)
                return SQLITE_ERROR;
        t = calloc(1, sizeof *t);
        if (!t)
                return SQLITE_NOMEM;
        t->searched.db = db;
        r = remote_table_read(&t->searched.remote, connection, database, name);
        t->searched.remote.compares_as_utf8 = t->searched.remote.compares_as_utf8 && is_utf8(db);
        if (r < 0 && sqlipc_error_code(connection) == SQLIPC_ERROR_UNKNOWN_DATABASE)
                *error = message_of_missing(&t->searched.remote, bus, r);
        else if (r < 0)
                *error = message_of(&t->searched.remote, r);
        rc = r < 0 ? sqlite_code(r) : declare(db, &t->searched.remote);
        if (rc != SQLITE_OK) {
                (void) disconnect_table(&t->base);
                return rc;
        }
        *ret = &t->base;
        return SQLITE_OK;
}

static int connect_table(sqlite3 *db, void *userdata, int argc, const char *const *argv, sqlite3_vtab **ret, char **error) {
        char *database = NULL, *name = NULL;
        Bus bus = BUS_USER;
        int rc = read_arguments(argc, argv, &database, &name, &bus, error);

        if (rc == SQLITE_OK)
                rc = open_table(db, userdata, bus, database, name, ret, error);
        free(database);
        free(name);
        return rc;
}

/* Must differ from connect_table: otherwise the module itself would be a table of its own name. */
static int create_table(sqlite3 *db, void *userdata, int argc, const char *const *argv, sqlite3_vtab **ret, char **error) {
        return connect_table(db, userdata, argc, argv, ret, error);
}

static int choose_plan(sqlite3_vtab *base, sqlite3_index_info *info) {
        return remote_plan_choose(&((SharedTable *) base)->searched.remote, info);
}

/* ---- cursors ---- */

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **ret) {
        SharedCursor *c = calloc(1, sizeof *c);

        (void) base;
        if (!c)
                return SQLITE_NOMEM;
        c->ended = true;
        *ret = &c->base;
        return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base) {
        SharedCursor *c = (SharedCursor *) base;

        remote_search_keep(&((SharedTable *) base->pVtab)->searched, c->search);
        row_numbers_done(&c->numbers);
        free(c);
        return SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *base) {
        SharedCursor *c = (SharedCursor *) base;
        int r = remote_search_next(&((SharedTable *) base->pVtab)->searched, c->search);

        c->numbered = false;
        c->ended = r <= 0;
        return r < 0 ? fail(base->pVtab, r) : SQLITE_OK;
}

static int filter(sqlite3_vtab_cursor *base, int number, const char *text, int n_values, sqlite3_value **values) {
        SearchedTable *t = &((SharedTable *) base->pVtab)->searched;
        SharedCursor *c = (SharedCursor *) base;
        bool same = c->search && c->text == text; /* usually: in a join, for each row of the other table */
        RemotePlan parsed;
        const RemotePlan *plan = same ? &c->search->plan : &parsed;
        RemoteUses uses;
        int r = 0;

        (void) number;
        (void) n_values;
        c->ended = true;
        row_numbers_done(&c->numbers);
        if (!same)
                remote_plan_parse(text, &parsed);
        if (!remote_plan_use(&t->remote, plan, values, uses))
                return SQLITE_OK;
        if (!same || strcmp(c->search->uses, uses) != 0) {
                RemotePlan copy = *plan; /* the search that has it may be freed */

                remote_search_keep(t, c->search);
                c->search = NULL;
                c->text = text;
                r = remote_search_take(t, text, &copy, uses, &c->search);
        }
        if (r >= 0)
                r = remote_search_run(t, c->search, values);
        return r < 0 ? fail(base->pVtab, r) : next_row(base);
}

static int has_ended(sqlite3_vtab_cursor *base) { return ((SharedCursor *) base)->ended; }

static int give_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int i) {
        const sqlipc_value *value = remote_search_value(((SharedCursor *) base)->search, i);

        if (!value) /* SQLite had said that it would not read this column */
                return SQLITE_INTERNAL;
        switch (value->type) {
        case SQLIPC_INTEGER:
                sqlite3_result_int64(context, value->as.integer);
                break;
        case SQLIPC_REAL:
                sqlite3_result_double(context, value->as.real);
                break;
        case SQLIPC_TEXT:
                sqlite3_result_text64(context, value->as.text, value->size, SQLITE_TRANSIENT, SQLITE_UTF8);
                break;
        case SQLIPC_BLOB:
                sqlite3_result_blob64(context, value->as.blob, value->size, SQLITE_TRANSIENT);
                break;
        case SQLIPC_NULL:
                break;
        }
        return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret) {
        const RemoteTable *t = &((SharedTable *) base->pVtab)->searched.remote;
        SharedCursor *c = (SharedCursor *) base;
        const RemoteSearch *s = c->search;
        const sqlipc_value *row = &s->values[s->row * s->n_columns];

        if (t->rowid)
                c->rowid = row[0].as.integer;
        else if (!c->numbered) {
                int64_t rowid;

                if (row_numbers_next(&c->numbers, row, s->n_columns, &rowid) < 0)
                        return SQLITE_NOMEM;
                c->rowid = rowid;
                c->numbered = true;
        }
        *ret = c->rowid;
        return SQLITE_OK;
}

/* ---- the module ---- */

static void module_free(void *userdata) {
        Module *m = userdata;

        for (int bus = 0; bus < BUS_MAX; bus++)
                sqlipc_connection_unref(m->buses[bus]);
        free(m);
}

static const sqlite3_module module = {
        .xCreate = create_table,
        .xConnect = connect_table,
        .xBestIndex = choose_plan,
        .xDisconnect = disconnect_table,
        .xDestroy = disconnect_table,
        .xOpen = open_cursor,
        .xClose = close_cursor,
        .xFilter = filter,
        .xNext = next_row,
        .xEof = has_ended,
        .xColumn = give_column,
        .xRowid = give_rowid,
};

int module_register(sqlite3 *db) {
        Module *m = calloc(1, sizeof *m);

        /* frees `m` if it fails */
        return m ? sqlite3_create_module_v2(db, "sqlipc", &module, m, module_free) : SQLITE_NOMEM;
}
