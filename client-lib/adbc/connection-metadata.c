/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tells about tables, and about the service and the driver (connection-metadata.h). ADBC driver. */
#include <stdlib.h>
#include <string.h>

#include "client-lib/adbc/adbc-error.h"
#include "client-lib/adbc/arrow-struct.h"
#include "client-lib/adbc/arrow-tree.h"
#include "client-lib/adbc/cleanup.h"
#include "client-lib/adbc/connection-metadata.h"
#include "client-lib/adbc/driver-connection.h"
#include "client-lib/adbc/metadata-stream.h"
#include "client-lib/adbc/result-stream.h"
#include "client-lib/adbc/sql-builder.h"
#include "config.h"

static void tree_freep(Tree **tree) { *tree = arrow_tree_free(*tree); }

/* ---- GetInfo ------------------------------------------------------------------------------------------------------- */

static const TreeField int32_items[] = { { "item", "i", false, NULL }, { NULL } };
static const TreeField text_items[] = { { "item", "u", false, NULL }, { NULL } };
static const TreeField map_members[] = { { "key", "i", true, NULL }, { "value", "+l", false, int32_items }, { NULL } };
static const TreeField map_entries[] = { { "entries", "+s", true, map_members }, { NULL } };
static const TreeField info_values[] = {
        { "string_value", "u", false, NULL },
        { "bool_value", "b", false, NULL },
        { "int64_value", "l", false, NULL },
        { "int32_bitmask", "i", false, NULL },
        { "string_list", "+l", false, text_items },
        { "int32_to_int32_list_map", "+m", false, map_entries },
        { NULL },
};
static const TreeField info_members[] = {
        { "info_name", "I", true, NULL },
        { "info_value", "+ud:0,1,2,3,4,5", false, info_values },
        { NULL },
};
static const TreeField info_root = { "", "+s", true, info_members };

/* Codes of the members above. */
enum { INFO_STRING, INFO_BOOL, INFO_INT64 };

static bool wanted(uint32_t code, const uint32_t *codes, size_t n_codes) {
        for (size_t i = 0; codes && i < n_codes; i++)
                if (codes[i] == code)
                        return true;
        return !codes;
}

static Tree *begin_info(Tree *root, uint32_t code, unsigned kind) {
        arrow_tree_integer(arrow_tree_child(root, 0), code);
        return arrow_tree_choose(arrow_tree_child(root, 1), kind);
}

static void add_text(Tree *root, uint32_t code, const char *value) {
        arrow_tree_text(begin_info(root, code, INFO_STRING), value);
        arrow_tree_end(root);
}

static void add_number(Tree *root, uint32_t code, unsigned kind, int64_t value) {
        arrow_tree_integer(begin_info(root, code, kind), value);
        arrow_tree_end(root);
}

/* Adds the version of the service's SQLite, for which it is asked. Without a current catalog, the row is left out. */
static AdbcStatusCode add_vendor_version(Tree *root, DriverConnection *c, struct AdbcError *error) {
        _cleanup_(sqlipc_cursor_closep) sqlipc_cursor *cursor = NULL;
        AdbcStatusCode status;
        int r;

        if (!c->catalog)
                return ADBC_STATUS_OK;
        status = driver_connection_check_turn(c, c->catalog, error);
        if (status != ADBC_STATUS_OK)
                return status;
        r = sqlipc_query(c->connection, c->catalog, "SELECT sqlite_version()", &cursor, NULL);
        if (r < 0)
                return adbc_error_connection(error, c->connection, r);
        r = sqlipc_cursor_next(cursor);
        if (r < 0)
                return adbc_error_cursor(error, cursor, r);
        add_text(root, ADBC_INFO_VENDOR_VERSION, sqlipc_column_text(cursor, 0, NULL));
        return ADBC_STATUS_OK;
}

AdbcStatusCode connection_metadata_info(struct AdbcConnection *connection, const uint32_t *codes, size_t n_codes,
                                        struct ArrowArrayStream *ret_stream, struct AdbcError *error) {
        _cleanup_(tree_freep) Tree *root = arrow_tree_new(&info_root);
        DriverConnection *c = connection->private_data;
        AdbcStatusCode status;
        unsigned n_cancels;

        if (!root)
                return adbc_error_memory(error);
        status = driver_connection_check(c, false, error);
        if (status != ADBC_STATUS_OK)
                return status;
        n_cancels = driver_connection_cancels(c);
        atomic_fetch_add(&c->n_busy, 1);
        if (wanted(ADBC_INFO_VENDOR_NAME, codes, n_codes))
                add_text(root, ADBC_INFO_VENDOR_NAME, "SQLite"); /* by which programs choose a dialect of SQL */
        if (wanted(ADBC_INFO_VENDOR_VERSION, codes, n_codes)) {
                driver_connection_lock(c);
                status = add_vendor_version(root, c, error);
                driver_connection_unlock(c);
        }
        if (wanted(ADBC_INFO_VENDOR_SQL, codes, n_codes))
                add_number(root, ADBC_INFO_VENDOR_SQL, INFO_BOOL, true);
        if (wanted(ADBC_INFO_VENDOR_SUBSTRAIT, codes, n_codes))
                add_number(root, ADBC_INFO_VENDOR_SUBSTRAIT, INFO_BOOL, false);
        if (wanted(ADBC_INFO_DRIVER_NAME, codes, n_codes))
                add_text(root, ADBC_INFO_DRIVER_NAME, "sqlipc ADBC driver");
        if (wanted(ADBC_INFO_DRIVER_VERSION, codes, n_codes))
                add_text(root, ADBC_INFO_DRIVER_VERSION, SQLIPC_VERSION);
        if (wanted(ADBC_INFO_DRIVER_ADBC_VERSION, codes, n_codes))
                add_number(root, ADBC_INFO_DRIVER_ADBC_VERSION, INFO_INT64, ADBC_VERSION_1_1_0);
        if (status == ADBC_STATUS_OK)
                status = metadata_stream_new(c, n_cancels, root, ret_stream, error);
        atomic_fetch_sub(&c->n_busy, 1);
        return status;
}

/* ---- GetTableTypes ------------------------------------------------------------------------------------------------- */

static const TreeField type_members[] = { { "table_type", "u", true, NULL }, { NULL } };
static const TreeField type_root = { "", "+s", true, type_members };

AdbcStatusCode connection_metadata_table_types(struct AdbcConnection *connection, struct ArrowArrayStream *ret_stream,
                                               struct AdbcError *error) {
        _cleanup_(tree_freep) Tree *root = arrow_tree_new(&type_root);
        DriverConnection *c = connection->private_data;
        AdbcStatusCode status = driver_connection_check(c, false, error);

        if (status != ADBC_STATUS_OK)
                return status;
        if (!root)
                return adbc_error_memory(error);
        for (unsigned i = 0; i < 2; i++) {
                arrow_tree_text(arrow_tree_child(root, 0), i == 0 ? "table" : "view");
                arrow_tree_end(root);
        }
        return metadata_stream_new(c, driver_connection_cancels(c), root, ret_stream, error);
}

/* ---- GetTableSchema ------------------------------------------------------------------------------------------------ */

/* A query of one run, for a ResultStream. */
typedef struct OneQuery {
        DriverConnection *connection;
        const char *catalog;
        char *sql;
        bool ran;
} OneQuery;

static AdbcStatusCode run_once(void *userdata, sqlipc_cursor **ret_cursor, struct AdbcError *error) {
        OneQuery *query = userdata;
        int r = 0;

        *ret_cursor = NULL;
        if (!query->ran)
                r = sqlipc_query(query->connection->connection, query->catalog, query->sql, ret_cursor, NULL);
        query->ran = true;
        return r < 0 ? adbc_error_connection(error, query->connection->connection, r) : ADBC_STATUS_OK;
}

/* `named`: by its catalog, so it is none of the TEMP tables, of which a name alone means one as in SQL. */
static AdbcStatusCode check_table(DriverConnection *c, const char *catalog, bool named, const char *table,
                                  struct AdbcError *error) {
        const char *sql = named ? "SELECT 1 FROM pragma_table_info(?, 'main') LIMIT 1"
                                : "SELECT 1 FROM pragma_table_info(?) LIMIT 1";
        _cleanup_(sqlipc_cursor_closep) sqlipc_cursor *cursor = NULL;
        AdbcStatusCode status;
        int r;

        status = driver_connection_check_turn(c, catalog, error);
        if (status != ADBC_STATUS_OK)
                return status;
        r = sqlipc_query(c->connection, catalog, sql, &cursor, "s", table);
        if (r < 0)
                return adbc_error_connection(error, c->connection, r);
        r = sqlipc_cursor_next(cursor);
        if (r < 0)
                return adbc_error_cursor(error, cursor, r);
        return r > 0 ? ADBC_STATUS_OK
                     : adbc_error_set(error, ADBC_STATUS_NOT_FOUND, "42S02", "There is no table \"%s\"", table);
}

/* The types are those that SELECT * would have: they depend on the first rows, too. */
static AdbcStatusCode table_schema(DriverConnection *c, const char *catalog, bool named, const char *table,
                                   struct ArrowSchema *ret_schema, struct AdbcError *error) {
        _cleanup_(arrow_struct_release_stream) struct ArrowArrayStream stream = { .release = NULL };
        OneQuery query = { .connection = c, .catalog = catalog };
        const ResultOwner owner = { .run = run_once, .userdata = &query };
        _cleanup_free_ char *sql = NULL;
        AdbcStatusCode status;
        int64_t changes;
        SqlBuilder text;

        status = check_table(c, catalog, named, table, error);
        if (status != ADBC_STATUS_OK)
                return status;
        if (sql_builder_begin(&text, named ? "SELECT * FROM main." : "SELECT * FROM ") < 0)
                return adbc_error_memory(error);
        sql_builder_name(&text, table);
        query.sql = sql = sql_builder_end(&text);
        if (!sql)
                return adbc_error_memory(error);
        status = result_stream_new(c, &c->settings, &owner, &stream, &changes, error);
        if (status != ADBC_STATUS_OK)
                return status;
        return stream.get_schema(&stream, ret_schema) == 0 ? status : adbc_error_memory(error);
}

AdbcStatusCode connection_metadata_table_schema(struct AdbcConnection *connection, const char *catalog,
                                                const char *db_schema, const char *table, struct ArrowSchema *ret_schema,
                                                struct AdbcError *error) {
        DriverConnection *c = connection->private_data;
        AdbcStatusCode status;

        status = driver_connection_check(c, !catalog, error);
        if (status != ADBC_STATUS_OK)
                return status;
        if (db_schema && *db_schema)
                return adbc_error_set(error, ADBC_STATUS_NOT_FOUND, "3F000", "A database has no schema but \"\"");
        driver_connection_lock(c);
        status = table_schema(c, catalog ? catalog : c->catalog, catalog, table, ret_schema, error);
        driver_connection_unlock(c);
        return status;
}

/* ---- What the service has not -------------------------------------------------------------------------------------- */

AdbcStatusCode connection_metadata_statistics(struct AdbcConnection *connection, const char *catalog, const char *db_schema,
                                              const char *table, char approximate, struct ArrowArrayStream *ret_stream,
                                              struct AdbcError *error) {
        return adbc_error_set(error, ADBC_STATUS_NOT_IMPLEMENTED, "0A000",
                              "SQLite keeps no statistics that are true at any time: select count(*), or read sqlite_stat1");
}

AdbcStatusCode connection_metadata_statistic_names(struct AdbcConnection *connection, struct ArrowArrayStream *ret_stream,
                                                   struct AdbcError *error) {
        return connection_metadata_statistics(connection, NULL, NULL, NULL, 0, ret_stream, error);
}

AdbcStatusCode connection_metadata_read_partition(struct AdbcConnection *connection, const uint8_t *partition, size_t size,
                                                  struct ArrowArrayStream *ret_stream, struct AdbcError *error) {
        return adbc_error_set(error, ADBC_STATUS_NOT_IMPLEMENTED, "0A000", "Results have no partitions");
}
