/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * SHA3 of the contents of tables, see checksum.h. The hashed bytes of each table have sqlite3's format:
 *
 *      S<size>:<SELECT>            the statement that reads it, with its semicolon
 *      R                           for each row, followed by its values:
 *          N                       NULL
 *          I<8 bytes>              an integer, big-endian
 *          F<8 bytes>              a real, big-endian
 *          T<size>:<bytes>         text, in UTF-8
 *          B<size>:<bytes>         a blob
 *
 * Each query is a read transaction of its own, so one query reads all tables, a UNION ALL of rows that begin with a number:
 *
 *      0, name, columns, NULL          the list of tables again, to check that it is still the one of the query
 *      1, the columns of the first table, NULL
 *      2, the columns of the second table
 */
#include "tools/cli/dump/checksum.h"

#include <endian.h>
#include <errno.h>
#include <gcrypt.h>
#include <string.h>

#include "tools/cli/dump/dump.h"
#include "tools/cli/dump/schema.h"
#include "tools/cli/shell/cursor-values.h"
#include "tools/cli/shell/query-run.h"
#include "tools/terminal/format.h"

#define SYSTEM_PREFIX "sqlite_"

enum {
        ATTEMPTS_MAX = 5, /* because the list of tables may change before they are read */
        WIDTH_MIN = 2,    /* columns of the list */
        WIDTH_MAX = 1999, /* SQLite's 2,000 columns, minus the number */
        /* Opcodes of SQLite's program, rounded up: for the list, for a term, for a column of a term. */
        OPS_OF_LIST = 512,
        OPS_OF_TERM = 32,
        OPS_OF_COLUMN = 2,
};

typedef struct Table {
        char *name, *select; /* owned; the SELECT is that of sqlite3, which is hashed */
        char *sql;           /* owned; the same, but a TEMP table of the name does not take its place */
        size_t n_columns;    /* columns of the SELECT */
} Table;

typedef struct Checksum {
        Shell *shell;
        gcry_md_hd_t hash;
        int algorithm;
        bool for_each;        /* one checksum for each table, not one for all */
        GPtrArray *tables;    /* of Table */
        guint n_begun;        /* tables that were begun */
        guint n_listed;       /* tables that the list of the query confirmed */
        GArray *values;       /* of Value; the current row */
        GString *text;        /* the result */
} Checksum;

static void free_table(void *data) {
        Table *table = data;

        g_free(table->name);
        g_free(table->select);
        g_free(table->sql);
        g_free(table);
}

static const Table *table_at(const Checksum *checksum, guint i) {
        return g_ptr_array_index(checksum->tables, i);
}

static void append_sized(gcry_md_hd_t hash, char type, const void *bytes, size_t size) {
        char header[32];
        int n = g_snprintf(header, sizeof header, "%c%zu:", type, size);

        gcry_md_write(hash, header, (size_t) n);
        gcry_md_write(hash, bytes, size);
}

static void append_number(gcry_md_hd_t hash, char type, uint64_t number) {
        number = htobe64(number);
        gcry_md_putc(hash, type);
        gcry_md_write(hash, &number, sizeof number);
}

static void append_value(gcry_md_hd_t hash, const Value *value) {
        uint64_t bits;

        switch (value->type) {
        case SQLIPC_INTEGER:
                append_number(hash, 'I', (uint64_t) value->integer);
                break;
        case SQLIPC_REAL:
                memcpy(&bits, &value->real, sizeof bits);
                append_number(hash, 'F', bits);
                break;
        case SQLIPC_TEXT:
                append_sized(hash, 'T', value->bytes, value->size);
                break;
        case SQLIPC_BLOB:
                append_sized(hash, 'B', value->bytes, value->size);
                break;
        default:
                gcry_md_putc(hash, 'N');
        }
}

static void append_row(const Checksum *checksum, guint first, size_t n) {
        gcry_md_putc(checksum->hash, 'R');
        for (size_t i = 0; i < n; i++)
                append_value(checksum->hash, &g_array_index(checksum->values, Value, first + i));
}

/* Appends the checksum of the bytes so far, and begins a new one. `name`: of the table, NULL: of all tables. */
static void append_line(const Checksum *checksum, const char *name) {
        const unsigned char *digest = gcry_md_read(checksum->hash, checksum->algorithm);

        for (unsigned i = 0; i < gcry_md_get_algo_dlen(checksum->algorithm); i++)
                g_string_append_printf(checksum->text, "%02x", digest[i]);
        g_string_append_printf(checksum->text, "%s%s\n", name ? "|" : "", name ?: "");
        gcry_md_reset(checksum->hash);
}

/* Begins all tables up to this number; those before it are then complete. */
static void begin_tables(Checksum *checksum, guint number) {
        while (checksum->n_begun < number) {
                const Table *table = table_at(checksum, checksum->n_begun);

                if (checksum->for_each && checksum->n_begun > 0)
                        append_line(checksum, table_at(checksum, checksum->n_begun - 1)->name);
                append_sized(checksum->hash, 'S', table->select, strlen(table->select));
                checksum->n_begun++;
        }
}

static void end_tables(Checksum *checksum) {
        begin_tables(checksum, checksum->tables->len);
        if (!checksum->for_each)
                append_line(checksum, NULL);
        else if (checksum->n_begun > 0)
                append_line(checksum, table_at(checksum, checksum->n_begun - 1)->name);
}

/* ---- The list ----------------------------------------------------------------------------------------------------- */

/* The SELECTs must be letter by letter those of sqlite3, because they are hashed, too. */
static const struct {
        const char *name, *sql;
        size_t n_columns; /* 0: those of the table */
} of_system[] = {
        { "sqlite_schema", "SELECT type,name,tbl_name,sql FROM sqlite_schema ORDER BY name;", 4 },
        { "sqlite_sequence", "SELECT name,seq FROM sqlite_sequence ORDER BY name;", 2 },
        { "sqlite_stat1", "SELECT tbl,idx,stat FROM sqlite_stat1 ORDER BY tbl,idx;", 3 },
        { "sqlite_stat4", "SELECT * FROM sqlite_stat4 ORDER BY tbl, idx, rowid;", 0 },
};

static char *in_main(const char *select) {
        const char *table = strstr(select, " FROM ") + strlen(" FROM ");

        return g_strdup_printf("%.*smain.%s", (int) (table - select), select, table);
}

static Table *make_table(const char *name, size_t n_columns) {
        g_autoptr(GString) sql = g_string_new("SELECT * FROM ");
        Table *table = g_new0(Table, 1);

        schema_append_quoted(sql, name);
        g_string_append(sql, " NOT INDEXED;");
        *table = (Table) { .name = g_strdup(name), .n_columns = n_columns };
        for (size_t i = 0; i < G_N_ELEMENTS(of_system) && !table->select; i++)
                if (g_str_equal(name, of_system[i].name)) {
                        table->select = g_strdup(of_system[i].sql);
                        table->n_columns = of_system[i].n_columns ? of_system[i].n_columns : n_columns;
                }
        if (!table->select)
                table->select = g_string_free(g_steal_pointer(&sql), FALSE);
        table->sql = in_main(table->select);
        return table;
}

static int take_table(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        Checksum *checksum = userdata;

        if (is_row)
                g_ptr_array_add(checksum->tables, make_table(sqlipc_column_text(cursor, 0, NULL) ?: "",
                                                             (size_t) sqlipc_column_int64(cursor, 1)));
        return 0;
}

/* Tables with their own pages, as sqlite3 lists them (the "_" of its pattern matches any letter); if the database is exposed
 * in part, all its tables. */
#define LIST                                                                                                          \
        "SELECT name, (SELECT count(*) FROM pragma_table_xinfo(t.name, 'main') WHERE hidden <> 1) "                   \
        "FROM (SELECT lower(name) AS name FROM sqlite_schema WHERE type = 'table' AND (rootpage > 1"                  \
        " OR EXISTS (SELECT 1 FROM pragma_module_list WHERE name = '" SCHEMA_EXPOSED_MODULE "'))"                     \
        " UNION ALL SELECT 'sqlite_schema') AS t "                                                                    \
        "WHERE (?1 IS NULL OR name LIKE ?1) AND (?2 OR name NOT LIKE 'sqlite_%') ORDER BY 1"

static int run_query(Checksum *checksum, const ChecksumOptions *options, const char *sql, QueryVisitor visit) {
        const char *pattern = options->pattern;
        bool is_system = pattern && g_ascii_strncasecmp(pattern, SYSTEM_PREFIX, strlen(SYSTEM_PREFIX)) == 0;
        const sqlipc_parameter parameters[] = {
                { .struct_size = sizeof *parameters, .type = pattern ? SQLIPC_TEXT : SQLIPC_NULL,
                  .bytes = pattern, .size = pattern ? strlen(pattern) : 0 },
                { .struct_size = sizeof *parameters, .type = SQLIPC_INTEGER, .integer = options->with_schema || is_system },
        };

        return query_run(checksum->shell, sql, parameters, G_N_ELEMENTS(parameters), visit, checksum, NULL);
}

/* ---- All tables in one query -------------------------------------------------------------------------------------- */

static void append_nulls(GString *sql, size_t n) {
        for (size_t i = 0; i < n; i++)
                g_string_append(sql, ",NULL");
}

/* Makes one query for all tables. Returns NULL if limits of the service do not allow it. The LIMIT keeps SQLite from
 * dropping the ORDER BY of a subquery. */
static char *make_query(const Checksum *checksum, const SnapshotLimits *limits) {
        g_autoptr(GString) sql = g_string_new("SELECT 0,*");
        size_t width = WIDTH_MIN, n_terms = checksum->tables->len + 1;

        for (guint i = 0; i < checksum->tables->len; i++)
                width = MAX(width, table_at(checksum, i)->n_columns);
        if (width > WIDTH_MAX || n_terms > limits->compound_selects ||
            OPS_OF_LIST + n_terms * (OPS_OF_TERM + OPS_OF_COLUMN * width) > limits->vdbe_ops / 2)
                return NULL;
        append_nulls(sql, width - WIDTH_MIN);
        g_string_append(sql, " FROM (" LIST " LIMIT -1)");
        for (guint i = 0; i < checksum->tables->len && sql->len <= limits->sql_size; i++) {
                const Table *table = table_at(checksum, i);

                g_string_append_printf(sql, " UNION ALL SELECT %u,*", i + 1);
                append_nulls(sql, width - table->n_columns);
                if (g_str_has_suffix(table->select, " NOT INDEXED;")) {
                        g_string_append(sql, " FROM main.");
                        schema_append_quoted(sql, table->name);
                        g_string_append(sql, " NOT INDEXED");
                } else
                        g_string_append_printf(sql, " FROM (%.*s LIMIT -1)", (int) strlen(table->sql) - 1, table->sql);
        }
        return sql->len <= limits->sql_size ? g_string_free(g_steal_pointer(&sql), FALSE) : NULL;
}

static int check_listed(Checksum *checksum, sqlipc_cursor *cursor) {
        const Table *table;

        if (checksum->n_listed >= checksum->tables->len)
                return -ESTALE;
        table = table_at(checksum, checksum->n_listed++);
        return g_strcmp0(sqlipc_column_text(cursor, 1, NULL), table->name) == 0 ? 0 : -ESTALE;
}

static int take_row(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        Checksum *checksum = userdata;
        int64_t number = is_row ? sqlipc_column_int64(cursor, 0) : 0;
        const Table *table;

        if (!is_row)
                return 0;
        if (number == 0)
                return check_listed(checksum, cursor);
        if (checksum->n_listed < checksum->tables->len)
                return -ESTALE;
        if (number < (int64_t) checksum->n_begun || number > (int64_t) checksum->tables->len)
                return -EBADMSG; /* not the requested order */
        begin_tables(checksum, (guint) number);
        table = table_at(checksum, (guint) number - 1);
        g_array_set_size(checksum->values, (guint) table->n_columns + 1);
        cursor_values(cursor, (Value *) checksum->values->data, checksum->values->len);
        append_row(checksum, 1, table->n_columns);
        return 0;
}

/* ---- Each table in a query of its own ----------------------------------------------------------------------------- */

static int take_row_of_one(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        Checksum *checksum = userdata;

        if (!is_row) {
                g_array_set_size(checksum->values, sqlipc_column_count(cursor));
                return 0;
        }
        cursor_values(cursor, (Value *) checksum->values->data, checksum->values->len);
        append_row(checksum, 0, checksum->values->len);
        return 0;
}

static int append_one_by_one(Checksum *checksum) {
        int r = 0;

        if (checksum->tables->len > 1)
                shell_complain(checksum->shell, "not one moment: the service's limits make it %u queries; what is written "
                               "meanwhile may be in one and not in another", checksum->tables->len);
        for (guint i = 0; i < checksum->tables->len && r >= 0; i++) {
                const Table *table = table_at(checksum, i);

                begin_tables(checksum, i + 1);
                r = query_run(checksum->shell, table->sql, NULL, 0, take_row_of_one, checksum, NULL);
        }
        return r;
}

/* ---- The result --------------------------------------------------------------------------------------------------- */

/* Names the first table that cannot be read, if that made the query of all fail, whose error has been printed. */
static void name_unreadable(const Checksum *checksum) {
        sqlipc_connection *connection;

        if (session_connect(&checksum->shell->session, &connection) < 0)
                return;
        for (guint i = 0; i < checksum->tables->len; i++) {
                const Table *table = table_at(checksum, i);
                sqlipc_statement *statement = NULL;
                g_autoptr(GString) shown = g_string_new(NULL);
                int r = sqlipc_prepare(connection, checksum->shell->session.database, table->sql, &statement);

                (void) sqlipc_finalize(statement);
                if (r >= 0)
                        continue;
                if (sqlipc_error_sqlite_code(connection) == 0)
                        return;
                format_shown_text(shown, table->name, strlen(table->name), SIZE_MAX);
                shell_complain(checksum->shell, "this is an error of the table %s; a pattern can leave it out", shown->str);
                return;
        }
}

static int attempt(Checksum *checksum, const ChecksumOptions *options, const SnapshotLimits *limits) {
        g_autofree char *sql = NULL;
        int r;

        g_ptr_array_set_size(checksum->tables, 0);
        checksum->n_listed = 0;
        r = run_query(checksum, options, LIST, take_table);
        if (r < 0)
                return r;
        for (guint i = 0; i < checksum->tables->len; i++)
                if (!schema_name_is_sendable(table_at(checksum, i)->name))
                        return schema_complain_of_name(checksum->shell, table_at(checksum, i)->name);
        sql = make_query(checksum, limits);
        if (!sql)
                return append_one_by_one(checksum);
        r = run_query(checksum, options, sql, take_row);
        if (r < 0 && r != -ESTALE && checksum->n_begun == 0)
                name_unreadable(checksum);
        return r >= 0 && checksum->n_listed < checksum->tables->len ? -ESTALE : r;
}

static int append_tables(Checksum *checksum, const ChecksumOptions *options) {
        const SnapshotLimits limits = dump_limits(checksum->shell);
        int r, n = 0;

        do
                r = attempt(checksum, options, &limits);
        while (r == -ESTALE && ++n < ATTEMPTS_MAX);
        if (r == -ESTALE)
                shell_complain(checksum->shell, "the schema changes while the database is read; try again");
        if (r == -EBADMSG)
                shell_complain(checksum->shell, "the service's rows are not what was asked for");
        if (r >= 0)
                end_tables(checksum);
        return r;
}

int checksum_append(Shell *shell, const ChecksumOptions *options, GString *text) {
        int algorithm = options->bits == 256   ? GCRY_MD_SHA3_256
                        : options->bits == 384 ? GCRY_MD_SHA3_384
                        : options->bits == 512 ? GCRY_MD_SHA3_512
                                               : GCRY_MD_SHA3_224;
        g_autoptr(GArray) values = g_array_new(FALSE, TRUE, sizeof(Value));
        g_autoptr(GPtrArray) tables = g_ptr_array_new_with_free_func(free_table);
        Checksum checksum = {
                .shell = shell,
                .algorithm = algorithm,
                .for_each = options->pattern != NULL,
                .tables = tables,
                .values = values,
                .text = text,
        };
        int r;

        gcry_check_version(NULL); /* initializes the library, unless libsystemd has done so */
        if (gcry_md_open(&checksum.hash, algorithm, 0) != 0) {
                shell_complain(shell, "libgcrypt does not have SHA3 of %u bits", options->bits);
                return -EOPNOTSUPP;
        }
        r = append_tables(&checksum, options);
        gcry_md_close(checksum.hash);
        return r;
}
