/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* GetObjects (connection-objects.h). ADBC driver. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/adbc/adbc-error.h"
#include "client-lib/adbc/arrow-tree.h"
#include "client-lib/adbc/cleanup.h"
#include "client-lib/adbc/connection-objects.h"
#include "client-lib/adbc/driver-connection.h"
#include "client-lib/adbc/metadata-stream.h"

/* ---- The type ------------------------------------------------------------------------------------------------------ */

static const TreeField usage_members[] = {
        { "fk_catalog", "u", false, NULL },
        { "fk_db_schema", "u", false, NULL },
        { "fk_table", "u", true, NULL },
        { "fk_column_name", "u", true, NULL },
        { NULL },
};
static const TreeField usage_items[] = { { "item", "+s", false, usage_members }, { NULL } };
static const TreeField name_items[] = { { "item", "u", false, NULL }, { NULL } };
static const TreeField constraint_members[] = {
        { "constraint_name", "u", false, NULL },
        { "constraint_type", "u", true, NULL },
        { "constraint_column_names", "+l", true, name_items },
        { "constraint_column_usage", "+l", false, usage_items },
        { NULL },
};
static const TreeField constraint_items[] = { { "item", "+s", false, constraint_members }, { NULL } };
static const TreeField column_members[] = {
        { "column_name", "u", true, NULL },
        { "ordinal_position", "i", false, NULL },
        { "remarks", "u", false, NULL },
        { "xdbc_data_type", "s", false, NULL },
        { "xdbc_type_name", "u", false, NULL },
        { "xdbc_column_size", "i", false, NULL },
        { "xdbc_decimal_digits", "s", false, NULL },
        { "xdbc_num_prec_radix", "s", false, NULL },
        { "xdbc_nullable", "s", false, NULL },
        { "xdbc_column_def", "u", false, NULL },
        { "xdbc_sql_data_type", "s", false, NULL },
        { "xdbc_datetime_sub", "s", false, NULL },
        { "xdbc_char_octet_length", "i", false, NULL },
        { "xdbc_is_nullable", "u", false, NULL },
        { "xdbc_scope_catalog", "u", false, NULL },
        { "xdbc_scope_schema", "u", false, NULL },
        { "xdbc_scope_table", "u", false, NULL },
        { "xdbc_is_autoincrement", "b", false, NULL },
        { "xdbc_is_generatedcolumn", "b", false, NULL },
        { NULL },
};
static const TreeField column_items[] = { { "item", "+s", false, column_members }, { NULL } };
static const TreeField table_members[] = {
        { "table_name", "u", true, NULL },
        { "table_type", "u", true, NULL },
        { "table_columns", "+l", false, column_items },
        { "table_constraints", "+l", false, constraint_items },
        { NULL },
};
static const TreeField table_items[] = { { "item", "+s", false, table_members }, { NULL } };
static const TreeField schema_members[] = {
        { "db_schema_name", "u", false, NULL },
        { "db_schema_tables", "+l", false, table_items },
        { NULL },
};
static const TreeField schema_items[] = { { "item", "+s", false, schema_members }, { NULL } };
static const TreeField catalog_members[] = {
        { "catalog_name", "u", false, NULL },
        { "catalog_db_schemas", "+l", false, schema_items },
        { NULL },
};
static const TreeField root_field = { "", "+s", true, catalog_members };

/* Members of column_members. */
enum {
        COLUMN_NAME = 0,
        COLUMN_POSITION = 1,
        COLUMN_TYPE_NAME = 4,
        COLUMN_NULLABLE = 8,
        COLUMN_DEFAULT = 9,
        COLUMN_IS_NULLABLE = 13,
        COLUMN_IS_GENERATED = 18,
        N_COLUMN_MEMBERS = 19
};

/* ---- Queries ------------------------------------------------------------------------------------------------------- */

/* One call of GetObjects. Its queries name the schema main: TEMP tables are not listed, but may have the name of a table. */
typedef struct ObjectsCall {
        DriverConnection *connection;
        int depth;
        const char *catalog_pattern;
        const char *schema_pattern;
        const char *table_pattern;
        const char **table_types;
        const char *column_pattern;
        unsigned n_cancels; /* of the connection, at the begin */
        Tree *root;
        const char *catalog; /* the database that is looked at */
        struct AdbcError *error;
} ObjectsCall;

/* Takes one row of a query. */
typedef AdbcStatusCode (*RowTaker)(ObjectsCall *call, Tree *tree, sqlipc_cursor *cursor);

/* True if SQLite cannot tell the columns of an object: of a view that does not compile, or a table without its module. Only
 * that object is listed without them. */
static bool is_of_object(sqlipc_error code) {
        return code == SQLIPC_ERROR_SQL || code == SQLIPC_ERROR_MISSING_FUNCTION || code == SQLIPC_ERROR_MISSING_COLLATION ||
               code == SQLIPC_ERROR_MISSING_MODULE || code == SQLIPC_ERROR_NOT_ALLOWED ||
               code == SQLIPC_ERROR_LIMITS_EXCEEDED;
}

/* Calls `take` for each row; `name` is the parameter of the SQL. */
static AdbcStatusCode for_each_row(ObjectsCall *call, Tree *tree, const char *sql, const char *name, RowTaker take,
                                   bool *ret_unusable) {
        _cleanup_(sqlipc_cursor_closep) sqlipc_cursor *cursor = NULL;
        sqlipc_connection *connection = call->connection->connection;
        int r;

        r = sqlipc_query(connection, call->catalog, sql, &cursor, "s", name);
        *ret_unusable = r < 0 && is_of_object(sqlipc_error_code(connection));
        if (*ret_unusable)
                return ADBC_STATUS_OK;
        if (r < 0)
                return adbc_error_connection(call->error, connection, r);
        while ((r = sqlipc_cursor_next(cursor)) > 0) {
                AdbcStatusCode status = take(call, tree, cursor);

                if (status != ADBC_STATUS_OK)
                        return status;
        }
        *ret_unusable = r < 0 && is_of_object(sqlipc_cursor_error_code(cursor));
        return r < 0 && !*ret_unusable ? adbc_error_cursor(call->error, cursor, r) : ADBC_STATUS_OK;
}

/* Returns the text of a column, or NULL. */
static const char *text_of(sqlipc_cursor *cursor, unsigned column) { return sqlipc_column_text(cursor, column, NULL); }

bool connection_objects_match(const char *pattern, const char *name) {
        if (!pattern)
                return true;
        for (; *pattern; pattern++, name++) {
                if (*pattern == '%') {
                        while (*pattern == '%')
                                pattern++;
                        for (;; name++) {
                                if (connection_objects_match(pattern, name))
                                        return true;
                                if (!*name)
                                        return false;
                        }
                }
                if (!*name)
                        return false;
                if (*pattern == '_') {
                        while ((name[1] & 0xc0) == 0x80) /* to the last byte of the character */
                                name++;
                        continue;
                }
                if (*pattern != *name) {
                        bool letter = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z');

                        if (!letter || (*pattern ^ *name) != 0x20)
                                return false;
                }
        }
        return !*name;
}

/* Names that are collected before the first of them is asked about: a transaction that reads has one cursor at a time. */
typedef struct ObjectNames {
        const char *pattern;
        char **names;
        size_t n;
} ObjectNames;

static void object_names_done(ObjectNames *list) {
        for (size_t i = 0; i < list->n; i++)
                free(list->names[i]);
        free(list->names);
}

/* Adds a name that matches. Returns 0 or -ENOMEM. */
static int object_names_add(ObjectNames *list, const char *name) {
        char **names;

        if (!connection_objects_match(list->pattern, name))
                return 0;
        names = reallocarray(list->names, list->n + 1, sizeof *names);
        if (!names)
                return -ENOMEM;
        list->names = names;
        names[list->n] = strdup(name);
        return names[list->n] ? (list->n++, 0) : -ENOMEM;
}

/* ---- Columns ------------------------------------------------------------------------------------------------------- */

#define COLUMNS_SQL                                                                                                         \
        "SELECT name, cid, type, \"notnull\", dflt_value, hidden FROM pragma_table_xinfo(?, 'main') "                       \
        "WHERE hidden <> 1 ORDER BY cid"

static AdbcStatusCode take_column(ObjectsCall *call, Tree *columns, sqlipc_cursor *cursor) {
        Tree *column = arrow_tree_child(columns, 0);
        bool not_null = sqlipc_column_int64(cursor, 3) != 0;
        const char *name = text_of(cursor, 0), *type = text_of(cursor, 2);

        if (!connection_objects_match(call->column_pattern, name))
                return ADBC_STATUS_OK;
        for (unsigned i = 0; i < N_COLUMN_MEMBERS; i++) {
                Tree *member = arrow_tree_child(column, i);

                switch (i) {
                case COLUMN_NAME:
                        arrow_tree_text(member, name);
                        break;
                case COLUMN_POSITION:
                        arrow_tree_integer(member, sqlipc_column_int64(cursor, 1) + 1);
                        break;
                case COLUMN_TYPE_NAME:
                        arrow_tree_text(member, type && *type ? type : NULL);
                        break;
                case COLUMN_NULLABLE:
                        arrow_tree_integer(member, !not_null);
                        break;
                case COLUMN_DEFAULT:
                        arrow_tree_text(member, text_of(cursor, 4));
                        break;
                case COLUMN_IS_NULLABLE:
                        arrow_tree_text(member, not_null ? "NO" : "YES");
                        break;
                case COLUMN_IS_GENERATED:
                        arrow_tree_integer(member, sqlipc_column_int64(cursor, 5) >= 2);
                        break;
                default:
                        arrow_tree_null(member);
                        break;
                }
        }
        arrow_tree_end(column);
        return ADBC_STATUS_OK;
}

/* ---- Constraints --------------------------------------------------------------------------------------------------- */

/* A row for each column of a constraint: its number, type, column; and for a foreign key the table and the column that it
 * refers to, which is the primary key of that table if it is not told. Those of one constraint follow each other. */
#define CONSTRAINTS_SQL                                                                                                     \
        "SELECT -1 AS id, 'PRIMARY KEY' AS type, name, NULL AS \"table\", NULL AS \"to\", pk AS seq, NULL AS label "        \
        "FROM pragma_table_info(?1, 'main') WHERE pk > 0 "                                                                  \
        "UNION ALL SELECT i.seq, 'UNIQUE', c.name, NULL, NULL, c.seqno, i.name "                                            \
        "FROM pragma_index_list(?1, 'main') AS i, pragma_index_info(i.name, 'main') AS c WHERE i.origin = 'u' "             \
        "UNION ALL SELECT id, 'FOREIGN KEY', \"from\", \"table\", "                                                         \
        "coalesce(\"to\", (SELECT name FROM pragma_table_info(f.\"table\", 'main') WHERE pk = f.seq + 1), ''), seq, NULL "  \
        "FROM pragma_foreign_key_list(?1, 'main') AS f ORDER BY 2 DESC, 1, 6"

/* Ends the constraint whose columns have been collected. */
static void end_constraint(Tree *constraints, bool foreign) {
        Tree *constraint = arrow_tree_child(constraints, 0);

        arrow_tree_end(arrow_tree_child(constraint, 2));
        if (foreign)
                arrow_tree_end(arrow_tree_child(constraint, 3));
        else
                arrow_tree_null(arrow_tree_child(constraint, 3));
        arrow_tree_end(constraint);
}

static void add_usage(ObjectsCall *call, Tree *usages, const char *table, const char *column) {
        Tree *usage = arrow_tree_child(usages, 0);

        arrow_tree_text(arrow_tree_child(usage, 0), call->catalog);
        arrow_tree_text(arrow_tree_child(usage, 1), "");
        arrow_tree_text(arrow_tree_child(usage, 2), table);
        arrow_tree_text(arrow_tree_child(usage, 3), column);
        arrow_tree_end(usage);
}

static AdbcStatusCode add_constraints(ObjectsCall *call, Tree *constraints, const char *table, bool *ret_unusable) {
        _cleanup_(sqlipc_cursor_closep) sqlipc_cursor *cursor = NULL;
        sqlipc_connection *connection = call->connection->connection;
        Tree *constraint = arrow_tree_child(constraints, 0);
        int64_t last = INT64_MIN;
        char kind = 0;
        int r;

        r = sqlipc_query(connection, call->catalog, CONSTRAINTS_SQL, &cursor, "s", table);
        *ret_unusable = r < 0 && is_of_object(sqlipc_error_code(connection));
        if (*ret_unusable)
                return ADBC_STATUS_OK;
        if (r < 0)
                return adbc_error_connection(call->error, connection, r);
        while ((r = sqlipc_cursor_next(cursor)) > 0) {
                int64_t id = sqlipc_column_int64(cursor, 0);
                const char *type = text_of(cursor, 1);

                if (kind && (id != last || *type != kind))
                        end_constraint(constraints, kind == 'F');
                if (id != last || *type != kind) {
                        arrow_tree_text(arrow_tree_child(constraint, 0), text_of(cursor, 6));
                        arrow_tree_text(arrow_tree_child(constraint, 1), type);
                }
                arrow_tree_text(arrow_tree_child(arrow_tree_child(constraint, 2), 0), text_of(cursor, 2));
                if (*type == 'F')
                        add_usage(call, arrow_tree_child(constraint, 3), text_of(cursor, 3), text_of(cursor, 4));
                last = id;
                kind = *type;
        }
        *ret_unusable = r < 0 && is_of_object(sqlipc_cursor_error_code(cursor));
        if (r < 0 && !*ret_unusable)
                return adbc_error_cursor(call->error, cursor, r);
        if (kind)
                end_constraint(constraints, kind == 'F');
        return ADBC_STATUS_OK;
}

/* ---- Tables -------------------------------------------------------------------------------------------------------- */

#define TABLES_SQL                                                                                                          \
        "SELECT name FROM main.sqlite_schema WHERE type = ? AND name NOT LIKE 'sqlite^_%' ESCAPE '^' ORDER BY name"

static bool type_is_wanted(const ObjectsCall *call, const char *type) {
        for (const char **wanted = call->table_types; wanted && *wanted; wanted++)
                if (strcmp(*wanted, type) == 0)
                        return true;
        return !call->table_types;
}

/* Ends a list; one of an object that cannot be used has no items, since SQLite fails before the first row, and is null. */
static void end_list(Tree *list, bool unusable) {
        if (unusable)
                arrow_tree_null(list);
        else
                arrow_tree_end(list);
}

static AdbcStatusCode add_table(ObjectsCall *call, Tree *tables, const char *name, const char *type) {
        Tree *table = arrow_tree_child(tables, 0), *columns = arrow_tree_child(table, 2),
             *constraints = arrow_tree_child(table, 3);
        AdbcStatusCode status;
        bool unusable;

        arrow_tree_text(arrow_tree_child(table, 0), name);
        arrow_tree_text(arrow_tree_child(table, 1), type);
        if (call->depth == ADBC_OBJECT_DEPTH_TABLES) {
                arrow_tree_null(columns);
                arrow_tree_null(constraints);
        } else {
                status = for_each_row(call, columns, COLUMNS_SQL, name, take_column, &unusable);
                if (status == ADBC_STATUS_OK)
                        end_list(columns, unusable);
                if (status == ADBC_STATUS_OK && !unusable)
                        status = add_constraints(call, constraints, name, &unusable);
                if (status != ADBC_STATUS_OK)
                        return status;
                end_list(constraints, unusable);
        }
        arrow_tree_end(table);
        return ADBC_STATUS_OK;
}

static AdbcStatusCode list_tables(ObjectsCall *call, const char *type, ObjectNames *list) {
        _cleanup_(sqlipc_cursor_closep) sqlipc_cursor *cursor = NULL;
        sqlipc_connection *connection = call->connection->connection;
        int r;

        r = sqlipc_query(connection, call->catalog, TABLES_SQL, &cursor, "s", type);
        if (r < 0)
                return adbc_error_connection(call->error, connection, r);
        while ((r = sqlipc_cursor_next(cursor)) > 0)
                if (object_names_add(list, text_of(cursor, 0)) < 0)
                        return adbc_error_memory(call->error);
        return r < 0 ? adbc_error_cursor(call->error, cursor, r) : ADBC_STATUS_OK;
}

static AdbcStatusCode add_tables(ObjectsCall *call, Tree *tables, const char *type) {
        _cleanup_(object_names_done) ObjectNames list = { .pattern = call->table_pattern };
        AdbcStatusCode status = ADBC_STATUS_OK;

        if (!type_is_wanted(call, type))
                return status;
        status = list_tables(call, type, &list);
        for (size_t i = 0; i < list.n && status == ADBC_STATUS_OK; i++)
                status = add_table(call, tables, list.names[i], type);
        return status;
}

/* ---- Catalogs ------------------------------------------------------------------------------------------------------ */

/* Adds the one schema of the catalog to its list. */
static AdbcStatusCode add_schema(ObjectsCall *call, Tree *schemas) {
        Tree *schema = arrow_tree_child(schemas, 0), *tables = arrow_tree_child(schema, 1);
        AdbcStatusCode status;

        if (!connection_objects_match(call->schema_pattern, ""))
                return ADBC_STATUS_OK;
        if (call->depth == ADBC_OBJECT_DEPTH_DB_SCHEMAS) {
                arrow_tree_null(tables);
        } else {
                status = add_tables(call, tables, "table");
                if (status == ADBC_STATUS_OK)
                        status = add_tables(call, tables, "view");
                if (status != ADBC_STATUS_OK)
                        return status;
                arrow_tree_end(tables);
        }
        arrow_tree_text(arrow_tree_child(schema, 0), "");
        arrow_tree_end(schema);
        return ADBC_STATUS_OK;
}

/* True if the call is about this database alone, so that it must fail if the database cannot be read. */
static bool is_named(const ObjectsCall *call) {
        const char *pattern = call->catalog_pattern, *current = call->connection->catalog;

        return (pattern && !strchr(pattern, '%') && !strchr(pattern, '_')) ||
               (current && strcmp(current, call->catalog) == 0);
}

/* Tries if the database can be read before anything about it is in the tree. If TEMP tables are lost, this is the only call
 * that tells it. */
static AdbcStatusCode check_readable(ObjectsCall *call, bool *ret_readable) {
        _cleanup_(sqlipc_cursor_closep) sqlipc_cursor *cursor = NULL;
        sqlipc_connection *connection = call->connection->connection;
        int r = sqlipc_query(connection, call->catalog, "SELECT 1 FROM main.sqlite_schema", &cursor, NULL);

        if (r >= 0)
                r = sqlipc_cursor_next(cursor);
        *ret_readable = r >= 0;
        if (r < 0 && sqlipc_error_code(connection) == SQLIPC_ERROR_PIN_LOST)
                return adbc_error_connection(call->error, connection, r);
        return ADBC_STATUS_OK;
}

static AdbcStatusCode add_catalog(ObjectsCall *call, const char *name) {
        Tree *schemas = arrow_tree_child(call->root, 1);
        AdbcStatusCode status = ADBC_STATUS_OK;
        bool only_name = call->depth == ADBC_OBJECT_DEPTH_CATALOGS, is_readable = true;

        call->catalog = name;
        if (call->depth != ADBC_OBJECT_DEPTH_CATALOGS && call->depth != ADBC_OBJECT_DEPTH_DB_SCHEMAS)
                status = driver_connection_check_turn(call->connection, name, call->error);
        if (status == ADBC_STATUS_OK && !only_name && call->depth != ADBC_OBJECT_DEPTH_DB_SCHEMAS && !is_named(call))
                status = check_readable(call, &is_readable);
        if (status != ADBC_STATUS_OK)
                return status;
        if (only_name || !is_readable) {
                arrow_tree_null(schemas);
        } else {
                status = add_schema(call, schemas);
                if (status == ADBC_STATUS_OK)
                        arrow_tree_end(schemas);
        }
        arrow_tree_text(arrow_tree_child(call->root, 0), name);
        arrow_tree_end(call->root);
        return status;
}

static int take_name(const sqlipc_database *database, void *userdata) {
        return object_names_add(userdata, sqlipc_database_name(database));
}

static AdbcStatusCode add_catalogs(ObjectsCall *call) {
        _cleanup_(object_names_done) ObjectNames list = { .pattern = call->catalog_pattern };
        sqlipc_connection *connection = call->connection->connection;
        AdbcStatusCode status = ADBC_STATUS_OK;
        int r;

        r = sqlipc_list_databases(connection, take_name, &list);
        if (r == -ENOMEM)
                return adbc_error_memory(call->error);
        if (r < 0)
                return adbc_error_connection(call->error, connection, r);
        for (size_t i = 0; i < list.n && status == ADBC_STATUS_OK; i++) {
                if (driver_connection_cancels(call->connection) != call->n_cancels)
                        return driver_connection_cancelled(call->error);
                status = add_catalog(call, list.names[i]);
        }
        return status;
}

AdbcStatusCode connection_objects_get(struct AdbcConnection *connection, int depth, const char *catalog,
                                      const char *db_schema, const char *table, const char **table_types, const char *column,
                                      struct ArrowArrayStream *ret_stream, struct AdbcError *error) {
        ObjectsCall call = {
                .connection = connection->private_data,
                .depth = depth,
                .catalog_pattern = catalog,
                .schema_pattern = db_schema,
                .table_pattern = table,
                .table_types = table_types,
                .column_pattern = column,
                .error = error,
        };
        AdbcStatusCode status;

        status = driver_connection_check(call.connection, false, error);
        if (status != ADBC_STATUS_OK)
                return status;
        if (depth < ADBC_OBJECT_DEPTH_ALL || depth > ADBC_OBJECT_DEPTH_TABLES)
                return adbc_error_set(error, ADBC_STATUS_INVALID_ARGUMENT, "HY024", "There is no depth %d", depth);
        call.root = arrow_tree_new(&root_field);
        if (!call.root)
                return adbc_error_memory(error);
        call.n_cancels = driver_connection_cancels(call.connection);
        atomic_fetch_add(&call.connection->n_busy, 1); /* it can be cancelled also while it waits for another thread */
        driver_connection_lock(call.connection);
        status = add_catalogs(&call);
        driver_connection_unlock(call.connection);
        if (status == ADBC_STATUS_OK)
                status = metadata_stream_new(call.connection, call.n_cancels, call.root, ret_stream, error);
        atomic_fetch_sub(&call.connection->n_busy, 1);
        call.root = arrow_tree_free(call.root);
        return status;
}
