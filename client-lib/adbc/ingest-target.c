/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Bulk ingest (ingest-target.h). ADBC driver. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client-lib/adbc/adbc-error.h"
#include "client-lib/adbc/cleanup.h"
#include "client-lib/adbc/ingest-target.h"
#include "client-lib/adbc/sql-builder.h"

#define MODE_PREFIX "adbc.ingest.mode."

static const char *const modes[] = { "create", "append", "replace", "create_append" };

void ingest_target_done(IngestTarget *target) {
        free(target->table);
        free(target->catalog);
        *target = (IngestTarget) { .mode = INGEST_CREATE };
}

/* ---- Options ------------------------------------------------------------------------------------------------------- */

bool ingest_target_has(const char *key) { return strncmp(key, "adbc.ingest.", strlen("adbc.ingest.")) == 0; }

static AdbcStatusCode replace(char **string, const char *value, struct AdbcError *error) {
        char *copy = strdup(value);

        if (!copy)
                return adbc_error_memory(error);
        free(*string);
        *string = copy;
        return ADBC_STATUS_OK;
}

static AdbcStatusCode set_mode(IngestTarget *target, const char *value, struct AdbcError *error) {
        if (strncmp(value, MODE_PREFIX, strlen(MODE_PREFIX)) == 0)
                for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
                        if (strcmp(value + strlen(MODE_PREFIX), modes[i]) == 0) {
                                target->mode = (IngestMode) i;
                                return ADBC_STATUS_OK;
                        }
        return adbc_error_set(error, ADBC_STATUS_INVALID_ARGUMENT, "HY024", "There is no mode \"%s\" of an ingest", value);
}

AdbcStatusCode ingest_target_set(IngestTarget *target, const char *key, const char *value, struct AdbcError *error) {
        if (strcmp(key, "adbc.ingest.target_table") == 0)
                return replace(&target->table, value, error);
        if (strcmp(key, "adbc.ingest.target_catalog") == 0)
                return replace(&target->catalog, value, error);
        if (strcmp(key, "adbc.ingest.mode") == 0)
                return set_mode(target, value, error);
        if (strcmp(key, "adbc.ingest.target_db_schema") == 0 && *value == 0)
                return ADBC_STATUS_OK;
        if (strcmp(key, "adbc.ingest.temporary") == 0 && strcmp(value, "false") == 0)
                return ADBC_STATUS_OK;
        if (strcmp(key, "adbc.ingest.target_db_schema") == 0)
                return adbc_error_set(error, ADBC_STATUS_NOT_IMPLEMENTED, "3F000",
                                      "A database has no schema but \"\": name it as adbc.ingest.target_catalog");
        if (strcmp(key, "adbc.ingest.temporary") == 0)
                return adbc_error_set(error, ADBC_STATUS_NOT_IMPLEMENTED, "0A000",
                                      "An ingest makes no temporary table: use CREATE TEMP TABLE, and insert rows by SQL");
        return driver_settings_unknown(key, error);
}

AdbcStatusCode ingest_target_get(const IngestTarget *target, const char *key, char **ret_value, struct AdbcError *error) {
        if (strcmp(key, "adbc.ingest.target_table") == 0 && target->table)
                return driver_settings_copy(target->table, ret_value, error);
        if (strcmp(key, "adbc.ingest.target_catalog") == 0 && target->catalog)
                return driver_settings_copy(target->catalog, ret_value, error);
        if (strcmp(key, "adbc.ingest.target_db_schema") == 0)
                return driver_settings_copy("", ret_value, error);
        if (strcmp(key, "adbc.ingest.temporary") == 0)
                return driver_settings_copy("false", ret_value, error);
        if (strcmp(key, "adbc.ingest.mode") == 0) {
                if (asprintf(ret_value, MODE_PREFIX "%s", modes[target->mode]) < 0)
                        return adbc_error_memory(error);
                return ADBC_STATUS_OK;
        }
        return driver_settings_not_found(key, error);
}

/* ---- The table ----------------------------------------------------------------------------------------------------- */

static AdbcStatusCode exec(DriverConnection *c, const char *catalog, const char *sql, struct AdbcError *error) {
        int r = sql ? sqlipc_exec(c->connection, catalog, sql, NULL) : -ENOMEM;

        if (!sql)
                return adbc_error_memory(error);
        return r < 0 ? adbc_error_connection(error, c->connection, r) : ADBC_STATUS_OK;
}

/* The part of SQL before the name of the table: one that is named with its catalog is no TEMP table. */
static const char *schema_of(const IngestTarget *target) { return target->catalog ? "main." : ""; }

/* Looks which columns the table has: `has` gets true for each bound column that it has. `*ret_exists` tells if it exists. */
static AdbcStatusCode look(const IngestTarget *target, DriverConnection *c, const char *catalog, const BoundRows *rows,
                           bool *has, bool *ret_exists, struct AdbcError *error) {
        const char *sql = target->catalog ? "SELECT name FROM pragma_table_info(?, 'main')"
                                          : "SELECT name FROM pragma_table_info(?)";
        _cleanup_(sqlipc_cursor_closep) sqlipc_cursor *cursor = NULL;
        int r;

        *ret_exists = false;
        r = sqlipc_query(c->connection, catalog, sql, &cursor, "s", target->table);
        if (r < 0)
                return adbc_error_connection(error, c->connection, r);
        while ((r = sqlipc_cursor_next(cursor)) > 0) {
                *ret_exists = true;
                for (size_t i = 0; i < bound_rows_n_columns(rows); i++)
                        has[i] |= strcasecmp(sqlipc_column_text(cursor, 0, NULL), bound_rows_name(rows, i)) == 0;
        }
        return r < 0 ? adbc_error_cursor(error, cursor, r) : ADBC_STATUS_OK;
}

/* An ingest into a TEMP table must not wait for others, nor keep them from the file. */
static AdbcStatusCode find_effect(const IngestTarget *target, DriverConnection *c, const char *catalog,
                                  StatementEffect *ret_effect, struct AdbcError *error) {
        _cleanup_(sqlipc_cursor_closep) sqlipc_cursor *cursor = NULL;
        AdbcStatusCode status;
        int r;

        *ret_effect = STATEMENT_WRITES;
        if (target->catalog || c->transaction || !driver_connection_has_pin(c, catalog))
                return ADBC_STATUS_OK;
        status = driver_connection_check_turn(c, catalog, error);
        if (status != ADBC_STATUS_OK)
                return status;
        r = sqlipc_query(c->connection, catalog, "SELECT 1 FROM pragma_table_info(?, 'temp') LIMIT 1", &cursor, "s",
                         target->table);
        if (r < 0)
                return adbc_error_connection(error, c->connection, r);
        r = sqlipc_cursor_next(cursor);
        if (r < 0)
                return adbc_error_cursor(error, cursor, r);
        if (r > 0 && (target->mode == INGEST_APPEND || target->mode == INGEST_CREATE_APPEND))
                *ret_effect = STATEMENT_WRITES_TEMP;
        return ADBC_STATUS_OK;
}

static AdbcStatusCode create(const IngestTarget *target, DriverConnection *c, const char *catalog, const BoundRows *rows,
                             struct AdbcError *error) {
        _cleanup_free_ char *sql = NULL;
        size_t n = bound_rows_n_columns(rows);
        SqlBuilder text;

        if (sql_builder_begin(&text, "CREATE TABLE ") < 0)
                return adbc_error_memory(error);
        sql_builder_add(&text, schema_of(target));
        sql_builder_name(&text, target->table);
        for (size_t i = 0; i < n; i++) {
                sql_builder_add(&text, i == 0 ? " (" : ", ");
                sql_builder_name(&text, bound_rows_name(rows, i));
                sql_builder_add(&text, " ");
                sql_builder_add(&text, bound_rows_declaration(rows, i));
        }
        sql_builder_add(&text, ")");
        sql = sql_builder_end(&text);
        return exec(c, catalog, sql, error);
}

static AdbcStatusCode drop(const IngestTarget *target, DriverConnection *c, const char *catalog, struct AdbcError *error) {
        _cleanup_free_ char *sql = NULL;
        SqlBuilder text;

        if (sql_builder_begin(&text, "DROP TABLE ") < 0)
                return adbc_error_memory(error);
        sql_builder_add(&text, schema_of(target));
        sql_builder_name(&text, target->table);
        sql = sql_builder_end(&text);
        return exec(c, catalog, sql, error);
}

/* Makes the table as the mode says, or checks that it has the columns. */
static AdbcStatusCode make_table(const IngestTarget *target, DriverConnection *c, const char *catalog, const BoundRows *rows,
                                 struct AdbcError *error) {
        _cleanup_free_ bool *has = calloc(bound_rows_n_columns(rows), sizeof *has);
        AdbcStatusCode status;
        bool exists;

        if (!has)
                return adbc_error_memory(error);
        status = look(target, c, catalog, rows, has, &exists, error);
        if (status != ADBC_STATUS_OK)
                return status;
        if (exists && target->mode == INGEST_CREATE)
                return adbc_error_set(error, ADBC_STATUS_ALREADY_EXISTS, "42S01", "The table \"%s\" exists already",
                                      target->table);
        if (!exists && target->mode == INGEST_APPEND)
                return adbc_error_set(error, ADBC_STATUS_NOT_FOUND, "42S02", "There is no table \"%s\"", target->table);
        if (exists && target->mode == INGEST_REPLACE) {
                status = drop(target, c, catalog, error);
                exists = false;
        }
        if (status == ADBC_STATUS_OK && !exists)
                return create(target, c, catalog, rows, error);
        for (size_t i = 0; status == ADBC_STATUS_OK && i < bound_rows_n_columns(rows); i++)
                if (!has[i])
                        status = adbc_error_set(error, ADBC_STATUS_ALREADY_EXISTS, "42S22",
                                                "The table \"%s\" exists, and has no column \"%s\"", target->table,
                                                bound_rows_name(rows, i));
        return status;
}

/* ---- Rows ---------------------------------------------------------------------------------------------------------- */

static char *insert_sql(const IngestTarget *target, const BoundRows *rows) {
        size_t n = bound_rows_n_columns(rows);
        SqlBuilder text;

        if (sql_builder_begin(&text, "INSERT INTO ") < 0)
                return NULL;
        sql_builder_add(&text, schema_of(target));
        sql_builder_name(&text, target->table);
        for (size_t i = 0; i < n; i++) {
                sql_builder_add(&text, i == 0 ? " (" : ", ");
                sql_builder_name(&text, bound_rows_name(rows, i));
        }
        for (size_t i = 0; i < n; i++)
                sql_builder_add(&text, i == 0 ? ") VALUES (?" : ", ?");
        sql_builder_add(&text, ")");
        return sql_builder_end(&text);
}

/* Gets the next row without the connection's mutex, because the stream may belong to the same connection. */
static AdbcStatusCode next_row(DriverConnection *c, BoundRows *rows, const sqlipc_parameter **ret, struct AdbcError *error) {
        AdbcStatusCode status;

        driver_connection_unlock(c);
        status = bound_rows_next(rows, ret, error);
        driver_connection_lock(c);
        return status;
}

static AdbcStatusCode load_rows(DriverConnection *c, sqlipc_load *load, BoundRows *rows, const size_t *order,
                                sqlipc_parameter *ordered, struct AdbcError *error) {
        size_t n = bound_rows_n_columns(rows);
        const sqlipc_parameter *values;
        AdbcStatusCode status;
        int r;

        while ((status = next_row(c, rows, &values, error)) == ADBC_STATUS_OK && values) {
                for (size_t i = 0; order && i < n; i++) {
                        ordered[order[i]] = values[i];
                        ordered[order[i]].name = NULL;
                }
                r = sqlipc_load_row(load, order ? ordered : values, n);
                if (r < 0)
                        return adbc_error_connection(error, c->connection, r);
        }
        return status;
}

AdbcStatusCode ingest_target_load(DriverConnection *c, const char *catalog, const char *sql, BoundRows *rows,
                                  const size_t *order, bool *ret_refused, int64_t *ret_changes, struct AdbcError *error) {
        _cleanup_(sqlipc_load_closep) sqlipc_load *load = NULL;
        _cleanup_free_ sqlipc_parameter *ordered = calloc(bound_rows_n_columns(rows) + 1, sizeof *ordered);
        AdbcStatusCode status;
        int r;

        if (!ordered)
                return adbc_error_memory(error);
        r = sqlipc_load_open(c->connection, catalog, sql, &load);
        *ret_refused = r == -EOPNOTSUPP || (r == -EPERM && sqlipc_error_code(c->connection) == SQLIPC_ERROR_NOT_ALLOWED);
        if (r < 0)
                return adbc_error_connection(error, c->connection, r);
        status = load_rows(c, load, rows, order, ordered, error);
        if (status != ADBC_STATUS_OK)
                return status;
        r = sqlipc_load_finish(load, ret_changes);
        if (r < 0 && sqlipc_error_code(c->connection) == SQLIPC_ERROR_OUTCOME_UNKNOWN)
                return driver_connection_take_back(c, load, ret_changes, error);
        return r < 0 ? adbc_error_connection(error, c->connection, r) : ADBC_STATUS_OK;
}

AdbcStatusCode ingest_target_run(const IngestTarget *target, DriverConnection *c, BoundRows *rows, int64_t *ret_changes,
                                 struct AdbcError *error) {
        const char *catalog = target->catalog ? target->catalog : c->catalog;
        _cleanup_free_ char *sql = NULL;
        AdbcStatusCode status;
        StatementEffect effect;
        bool began, refused;

        if (bound_rows_n_columns(rows) == 0)
                return adbc_error_set(error, ADBC_STATUS_INVALID_ARGUMENT, "HY000", "The bound data has no columns");
        sql = insert_sql(target, rows);
        if (!sql)
                return adbc_error_memory(error);
        status = find_effect(target, c, catalog, &effect, error);
        if (status != ADBC_STATUS_OK)
                return status;
        status = driver_connection_begin_several(c, catalog, effect, &began, error);
        if (status != ADBC_STATUS_OK)
                return status;
        status = make_table(target, c, catalog, rows, error);
        if (status == ADBC_STATUS_OK)
                status = ingest_target_load(c, catalog, sql, rows, NULL, &refused, ret_changes, error);
        return driver_connection_finish(c, began, status, error);
}
