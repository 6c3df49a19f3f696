/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes a dump as SQL, see dump-text.h. */
#include "tools/cli/dump/dump-text.h"

#include <errno.h>
#include <inttypes.h>

#include "tools/terminal/sql-literal.h"

#define BUFFER_SIZE ((size_t) 64 * 1024)

typedef struct DumpText {
        Sink sink;
        const SnapshotTable *table; /* the table of `insert` */
        GString *insert;            /* "INSERT INTO name VALUES(" */
        bool begun, in_row;
} DumpText;

static int failure(const DumpText *text) {
        return ferror(text->sink.stream) ? -EIO : 0;
}

static void write_pragma(DumpText *text, const char *name, int64_t value) {
        char line[128];

        if (value != 0) {
                g_snprintf(line, sizeof line, "PRAGMA %s=%" PRId64 ";\n", name, value);
                sink_string(&text->sink, line);
        }
}

static int begin(void *userdata, const DumpHeader *header) {
        DumpText *text = userdata;

        text->begun = true;
        if (!g_str_equal(header->encoding, "UTF-8")) {
                sink_string(&text->sink, "PRAGMA encoding='");
                sink_string(&text->sink, header->encoding);
                sink_string(&text->sink, "';\n");
        }
        sink_string(&text->sink, "PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n");
        write_pragma(text, "application_id", header->application_id);
        write_pragma(text, "user_version", header->user_version);
        return failure(text);
}

static int statement(void *userdata, const char *sql) {
        DumpText *text = userdata;

        sink_string(&text->sink, sql);
        sink_string(&text->sink, ";\n");
        return failure(text);
}

static void make_insert(DumpText *text, const SnapshotTable *table) {
        g_string_assign(text->insert, "INSERT INTO ");
        schema_append_name(text->insert, table->object->name);
        if (table->with_rowid) {
                g_string_append_printf(text->insert, "(%s", table->object->rowid);
                for (guint i = 0; i < table->columns->len; i++) {
                        g_string_append_c(text->insert, ',');
                        schema_append_name(text->insert, g_ptr_array_index(table->columns, i));
                }
                g_string_append_c(text->insert, ')');
        }
        g_string_append(text->insert, " VALUES(");
        text->table = table;
}

static int values(void *userdata, const SnapshotTable *table, const Value *values, size_t first, size_t n) {
        DumpText *text = userdata;

        if (text->table != table)
                make_insert(text, table);
        if (first == 0)
                sink_write(&text->sink, text->insert->str, text->insert->len);
        for (size_t i = 0; i < n; i++) {
                if (first + i > 0)
                        sink_char(&text->sink, ',');
                sql_literal_write(&text->sink, &values[i], SQL_LITERAL_ONE_LINE);
        }
        text->in_row = first + n < table->n_values;
        if (!text->in_row)
                sink_string(&text->sink, ");\n");
        return failure(text);
}

/* Ends the dump. If it broke off within a row, it ends the statement first, which makes that one invalid. */
static void end(DumpText *text, int r) {
        if (r >= 0)
                sink_string(&text->sink, "COMMIT;\n");
        else if (text->begun) {
                sink_string(&text->sink, text->in_row ? "\n;\n" : "");
                sink_string(&text->sink, "/**** ERROR: the dump broke off ****/\nROLLBACK; -- due to errors\n");
        }
        sink_finish(&text->sink);
}

int dump_text(Shell *shell, const DumpOptions *options, FILE *stream, bool harmless) {
        static const DumpSink sink = { .begin = begin, .statement = statement, .values = values };
        g_autofree char *buffer = g_malloc(BUFFER_SIZE);
        g_autoptr(GString) insert = g_string_new(NULL);
        DumpText text = {
                .sink = { .stream = stream, .buffer = buffer, .size = BUFFER_SIZE, .harmless = harmless },
                .insert = insert,
        };
        int r = dump_run(shell, options, &sink, &text);

        end(&text, r);
        return ferror(stream) ? 0 : r;
}
