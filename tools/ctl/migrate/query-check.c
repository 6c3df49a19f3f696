/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds statements that a database does not accept, see query-check.h. */
#include "tools/ctl/migrate/query-check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/sql/sql-control.h"
#include "tools/cli/sql/sql-scan.h"
#include "tools/ctl/bus.h"
#include "tools/ctl/listing.h"
#include "tools/ctl/migrate/publication.h"
#include "tools/ctl/migrate/side.h"

/* ---- Reading the log ---------------------------------------------------------------------------------------------- */

typedef struct Log {
        GHashTable *counts; /* statement -> how often it occurs */
        GPtrArray *order;   /* borrowed: the statements in the order of their first occurrence */
        guint n;            /* statements */
        SqlDialect dialect; /* of the database for which they were written */
} Log;

/* The size of the blanks and comments before a statement. */
static size_t size_of_start(SqlDialect dialect, const char *text, size_t size) {
        size_t position = 0;
        SqlToken token;

        while (sql_scan_next(dialect, text, size, &position, &token))
                if (token.type != SQL_SPACE && token.type != SQL_COMMENT)
                        return token.start;
        return size;
}

static void take_statement(Log *log, const char *text, size_t size) {
        size_t start = size_of_start(log->dialect, text, size);
        g_autofree char *sql = g_strchomp(g_strndup(text + start, size - start));
        guint count;

        if (g_str_has_suffix(sql, ";"))
                sql[strlen(sql) - 1] = 0;
        if (!*sql)
                return;
        log->n++;
        count = GPOINTER_TO_UINT(g_hash_table_lookup(log->counts, sql));
        if (count == 0)
                g_ptr_array_add(log->order, sql);
        g_hash_table_insert(log->counts, g_steal_pointer(&sql), GUINT_TO_POINTER(count + 1)); /* keeps the first text */
}

/* Takes the complete statements at the start of the text, and removes them from it. */
static void take_complete(Log *log, GString *text, SqlSplit *split) {
        for (;;) {
                size_t size;
                SqlExtent extent = sql_split(split, text->str, text->len, &size);

                if (extent != SQL_EXTENT_COMPLETE && extent != SQL_EXTENT_COMMAND)
                        return;
                if (extent == SQL_EXTENT_COMPLETE)
                        take_statement(log, text->str, size);
                else { /* a command of a shell: its line is no SQL */
                        const char *end = memchr(text->str + size, '\n', text->len - size);

                        size = end ? (size_t) (end - text->str) + 1 : text->len;
                }
                g_string_erase(text, 0, (gssize) size);
                *split = (SqlSplit) { .dialect = log->dialect };
        }
}

static void take_rest(Log *log, const char *text) {
        g_auto(GStrv) lines = NULL;

        if (log->n > 0) {
                take_statement(log, text, strlen(text));
                return;
        }
        lines = g_strsplit(text, "\n", -1);
        for (char **line = lines; *line; line++)
                take_statement(log, *line, strlen(*line));
}

static int read_log(Log *log, const char *path) {
        g_autoptr(GString) text = g_string_new(NULL);
        FILE *stream = g_str_equal(path, "-") ? stdin : fopen(path, "re");
        g_autofree char *line = NULL;
        SqlSplit split = { .dialect = log->dialect };
        size_t size = 0;
        ssize_t n;
        int r = 0;

        if (!stream) {
                complain("%s cannot be read: %s", path, g_strerror(errno));
                return -errno;
        }
        while ((n = getline(&line, &size, stream)) > 0) {
                g_string_append_len(text, line, n);
                take_complete(log, text, &split);
        }
        if (ferror(stream)) {
                complain("%s cannot be read: %s", path, g_strerror(errno));
                r = -EIO;
        }
        if (stream != stdin)
                (void) fclose(stream);
        take_rest(log, text->str);
        return r;
}

/* ---- Asking the database ------------------------------------------------------------------------------------------ */

static int try_transaction(const Side *side, sqlipc_transaction_mode mode) {
        __attribute__((cleanup(sqlipc_transaction_closep))) sqlipc_transaction *transaction = NULL;

        return sqlipc_begin(side->connection, side->database, mode, &transaction);
}

/* Transactions are calls of the library, so their statements cannot be prepared. */
static int try_statement(const Side *side, SqlDialect dialect, const char *sql) {
        __attribute__((cleanup(sqlipc_finalizep))) sqlipc_statement *statement = NULL;
        g_autofree char *name = NULL;

        switch (sql_control_of(dialect, sql, &name)) {
        case SQL_CONTROL_NONE:
                return sqlipc_prepare(side->connection, side->database, sql, &statement);
        case SQL_CONTROL_BEGIN:
        case SQL_CONTROL_BEGIN_READ:
                return try_transaction(side, SQLIPC_TRANSACTION_READ);
        case SQL_CONTROL_BEGIN_WRITE:
                return try_transaction(side, SQLIPC_TRANSACTION_WRITE);
        case SQL_CONTROL_COMMIT:
        case SQL_CONTROL_ROLLBACK:
        case SQL_CONTROL_SAVEPOINT:
        case SQL_CONTROL_RELEASE:
        case SQL_CONTROL_ROLLBACK_TO:
                break;
        }
        return 0;
}

/* True if the failure is about the statement, rather than about the service or the server. */
static bool is_about_statement(int r) {
        return r == -EINVAL || r == -EPERM || r == -EROFS || r == -EOPNOTSUPP || r == -EDQUOT || r == -ETIMEDOUT;
}

static void add_rejected(GVariantBuilder *rows, const Side *side, const Log *log, const char *sql, int r) {
        g_autofree char *shown = g_utf8_make_valid(sql, -1), *message = g_utf8_make_valid(side_message(side, r), -1);
        int offset = sqlipc_error_sql_offset(side->connection);

        g_variant_builder_open(rows, G_VARIANT_TYPE_VARDICT);
        entry(rows, "count", g_variant_new_uint32(GPOINTER_TO_UINT(g_hash_table_lookup(log->counts, sql))));
        if (offset >= 0)
                entry(rows, "offset", g_variant_new_uint32((guint32) offset));
        entry(rows, "error", g_variant_new_string(message));
        entry(rows, "sql", g_variant_new_string(shown));
        g_variant_builder_close(rows);
}

/* Returns the statements that are not accepted, aa{sv}; NULL after a failure, which has been printed. */
static GVariant *find_rejected(const Side *side, const Log *log) {
        g_auto(GVariantBuilder) rows = {};

        g_variant_builder_init(&rows, G_VARIANT_TYPE("aa{sv}"));
        for (guint i = 0; i < log->order->len; i++) {
                const char *sql = log->order->pdata[i];
                int r = try_statement(side, log->dialect, sql);

                if (r < 0 && !is_about_statement(r)) {
                        (void) side_fail(side, sql, r);
                        return NULL;
                }
                if (r < 0)
                        add_rejected(&rows, side, log, sql, r);
        }
        return g_variant_ref_sink(g_variant_builder_end(&rows));
}

/* ---- Output ------------------------------------------------------------------------------------------------------- */

static int print(const Context *c, const Log *log, GVariant *rows) {
        static const Column columns[] = {
                { .key = "count", .title = "count", .as = SHOWN_NUMBER },
                { .key = "offset", .title = "offset", .as = SHOWN_NUMBER, .optional = true },
                { .key = "error", .title = "error" },
                { .key = "sql", .title = "sql", .gives_way = true },
        };
        g_auto(GVariantBuilder) document = {};
        gsize n = g_variant_n_children(rows);

        if (c->json) {
                g_variant_builder_init(&document, G_VARIANT_TYPE_VARDICT);
                entry(&document, "statements", g_variant_new_uint32(log->n));
                entry(&document, "distinct", g_variant_new_uint32(log->order->len));
                entry(&document, "rejected", rows);
                document_print(c, g_variant_builder_end(&document));
        } else if (n > 0)
                listing_print(c, rows, columns, G_N_ELEMENTS(columns), "rejected statement");
        else
                printf("All %u statements are accepted, of which %u are distinct.\n", log->n, log->order->len);
        return n > 0 ? CTL_FAILED : CTL_OK;
}

static int check(Context *c, const Side *side, SqlDialect dialect, const char *path) {
        g_autoptr(GHashTable) counts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        g_autoptr(GPtrArray) order = g_ptr_array_new();
        g_autoptr(GVariant) rows = NULL;
        Log log = { .counts = counts, .order = order, .dialect = dialect };

        if (read_log(&log, path) < 0)
                return CTL_FAILED;
        rows = find_rejected(side, &log);
        return rows ? print(c, &log, rows) : CTL_FAILED;
}

/* The programs that wrote the log use the database that is published under this name now. */
static int find_dialect(const Side *side, SqlDialect *ret) {
        int64_t is_postgresql;
        int r = side_number(side, "SELECT CASE WHEN 1 = '1' THEN 1 ELSE 0 END", 0, &is_postgresql);

        if (r >= 0)
                *ret = is_postgresql ? SQL_DIALECT_POSTGRESQL : SQL_DIALECT_SQLITE;
        return r;
}

int query_check(Context *c, const char *database, const char *log, const char *to) {
        __attribute__((cleanup(sqlipc_connection_unrefp))) sqlipc_connection *connection = NULL;
        g_auto(Publication) target = { .fd = -1 };
        int r = bus_open(c);

        if (r < 0 || (to && publication_open(c, database, to, &target) < 0))
                return CTL_FAILED;
        r = sqlipc_open_bus(c->bus, &connection);
        if (r < 0) {
                complain("The bus cannot be used: %s", g_strerror(-r));
                return CTL_FAILED;
        }
        if (to && publication_begin(&target) < 0)
                return CTL_FAILED;
        const Side now = { connection, database }, side = { connection, to ? target.name : database };
        SqlDialect dialect;

        if (side_check(&side, to ? target.file : database) < 0 || find_dialect(&now, &dialect) < 0)
                return CTL_FAILED;
        return check(c, &side, dialect, log);
}
