/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The rows of a file that is imported, see import-file.h. */
#include "tools/cli/import/import-file.h"

#include <errno.h>
#include <string.h>

#include "tools/cli/import/delimited.h"
#include "tools/cli/import/json-lines.h"
#include "tools/cli/sql/sql-name.h"

/* SQLite's limit. A file with other names in each line would otherwise need much memory. */
enum { COLUMNS_MAX = 2000 };

typedef struct ImportReader {
        Delimited delimited;
        JsonLines *json;
        bool is_over;        /* the rest of the file cannot be read */
        bool is_checked;     /* the columns are known */
        bool has_lines;      /* the check has met a row, good or bad */
        GArray *values;      /* of Value: those of the row */
        GHashTable *places;  /* of JSON: owned name -> index in columns + 1 */
        GStringChunk *chunk; /* of JSON: the bytes of the row */
        GArray *is_set;      /* of JSON: bool, if the row has the column */
} ImportReader;

static void clear_column(void *data) {
        g_free(((ImportColumn *) data)->name);
}

GArray *import_columns_new(void) {
        GArray *columns = g_array_new(false, true, sizeof(ImportColumn));

        g_array_set_clear_func(columns, clear_column);
        return columns;
}

static ImportColumn *column_at(const GArray *columns, guint i) {
        return &g_array_index(columns, ImportColumn, i);
}

ImportFile *import_file_new(ImportFormat format, const ImportInput *input) {
        ImportFile *file = g_new0(ImportFile, 1);
        ImportReader *reader = g_new0(ImportReader, 1);

        *reader = (ImportReader) {
                .values = g_array_new(false, true, sizeof(Value)),
                .places = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                .chunk = g_string_chunk_new(4096),
                .is_set = g_array_new(false, true, sizeof(bool)),
        };
        *file = (ImportFile) {
                .format = format,
                .has_header = true,
                .input = *input,
                .columns = import_columns_new(),
                .fault = g_string_new(NULL),
                .reader = reader,
        };
        return file;
}

static void end_reading(ImportReader *reader) {
        if (reader->delimited.fields)
                delimited_done(&reader->delimited);
        reader->json = json_lines_free(reader->json);
}

ImportFile *import_file_free(ImportFile *file) {
        if (!file)
                return NULL;
        end_reading(file->reader);
        g_array_unref(file->reader->values);
        g_hash_table_unref(file->reader->places);
        g_string_chunk_free(file->reader->chunk);
        g_array_unref(file->reader->is_set);
        g_free(file->reader);
        g_array_unref(file->columns);
        g_string_free(file->fault, TRUE);
        import_input_done(&file->input);
        g_free(file);
        return NULL;
}

/* ---- The file ----------------------------------------------------------------------------------------------------- */

G_GNUC_PRINTF(2, 3) static int fail(ImportFile *file, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        g_string_vprintf(file->fault, format, arguments);
        va_end(arguments);
        return -EBADMSG;
}

/* The parser continues in the window that the file has now. */
static void feed(ImportFile *file) {
        ImportReader *reader = file->reader;

        if (reader->json)
                json_lines_feed(reader->json, file->input.text, file->input.size, file->input.is_last);
        else
                delimited_feed(&reader->delimited, file->input.text, file->input.size, file->input.is_last);
}

static size_t position(const ImportReader *reader) {
        return reader->json ? json_lines_position(reader->json) : reader->delimited.position;
}

double import_file_done(const ImportFile *file) {
        uint64_t done = file->input.passed + position(file->reader);

        return file->input.total > 0 ? MIN((double) done / (double) file->input.total, 1) : 1;
}

static int begin_reading(ImportFile *file) {
        ImportReader *reader = file->reader;
        int r;

        end_reading(reader);
        reader->is_over = false;
        if (file->format == IMPORT_JSONL)
                reader->json = json_lines_new(file->input.newline, file->n_skipped + 1);
        else
                delimited_begin(&reader->delimited, file->format == IMPORT_TSV ? '\t' : ',', file->input.newline,
                                file->n_skipped + 1);
        r = import_input_rewind(&file->input, file->n_skipped);
        feed(file);
        return r;
}

static int read_more(ImportFile *file) {
        int r = import_input_more(&file->input, position(file->reader));

        feed(file);
        if (r != -EFBIG)
                return r;
        file->reader->is_over = true;
        return fail(file, "it is longer than %zu bytes, so the rest of the file was not read; is a quote never closed?",
                    file->input.max);
}

/* ---- Columns ------------------------------------------------------------------------------------------------------ */

/* Returns the column of this name, as SQLite compares names; NULL: none. */
static const ImportColumn *find_column(const GArray *columns, const char *name) {
        for (guint i = 0; i < columns->len; i++)
                if (g_ascii_strcasecmp(column_at(columns, i)->name, name) == 0)
                        return column_at(columns, i);
        return NULL;
}

/* Adds a column of the file. */
static int add_column(ImportFile *file, const char *name) {
        const ImportColumn *there = file->table ? find_column(file->table, name) : NULL;
        ImportColumn column = {};

        if (file->reader->is_checked)
                return fail(file, "the file has changed since it was checked");
        if (!*name)
                return fail(file, "a column has no name");
        if (find_column(file->columns, name))
                return fail(file, "two columns have the name %s", name);
        if (file->table && !there)
                return fail(file, "the table has no column %s%s", name,
                            file->format == IMPORT_JSONL ? "" : "; --no-header takes the line as a row");
        if (there && there->generated)
                return fail(file, "the column %s is generated by the table, so leave it out", there->name);
        if (file->columns->len == COLUMNS_MAX)
                return fail(file, "there are more than %d columns", COLUMNS_MAX);
        column.name = g_strdup(name);
        if (there) {
                column.affinity = there->affinity;
                column.reads_numbers = column_is_for_numbers(there->affinity);
                column.not_null = there->not_null;
        }
        g_array_append_val(file->columns, column);
        return 0;
}

/* ---- Rows of csv and tsv ------------------------------------------------------------------------------------------ */

static int next_delimited(ImportFile *file) {
        const char *fault = NULL;
        int r;

        while ((r = delimited_next(&file->reader->delimited, &file->line, &fault)) == -EAGAIN) {
                r = read_more(file);
                if (r < 0)
                        return r;
        }
        return r < 0 ? fail(file, "%s", fault) : r;
}

/* SQLite users do not quote empty texts. */
static void fill_not_null(ImportFile *file, GArray *fields) {
        for (guint i = 0; i < file->columns->len; i++) {
                const ImportColumn *column = column_at(file->columns, i);
                Value *value = &g_array_index(fields, Value, i);

                if (column->not_null && column->affinity == 'T' && value->type == SQLIPC_NULL)
                        *value = (Value) { .type = SQLIPC_TEXT, .bytes = "" };
        }
}

/* In columns for INTEGER and REAL of a table that exists, SQLite would do the same, while other writers wait. */
static void read_numbers(ImportFile *file, GArray *fields) {
        const ColumnKeeps keeps = file->table ? COLUMN_KEEPS_NUMBER : COLUMN_KEEPS_TEXT;

        for (guint i = 0; i < file->columns->len; i++) {
                Value *value = &g_array_index(fields, Value, i), number;

                if (value->type == SQLIPC_TEXT && column_at(file->columns, i)->reads_numbers &&
                    column_read_number(value->bytes, value->size, keeps, &number))
                        *value = number;
        }
}

static int next_fields(ImportFile *file) {
        GArray *fields = file->reader->delimited.fields;
        int r = next_delimited(file);

        if (r <= 0)
                return r;
        if (fields->len != file->columns->len)
                return fail(file, "it has %u %s, and there %s %u %s", fields->len, fields->len == 1 ? "field" : "fields",
                            file->columns->len == 1 ? "is" : "are", file->columns->len,
                            file->columns->len == 1 ? "column" : "columns");
        if (file->table)
                fill_not_null(file, fields);
        if (file->reader->is_checked)
                read_numbers(file, fields);
        file->values = (const Value *) (const void *) fields->data;
        return 1;
}

/* ---- Rows of JSON ------------------------------------------------------------------------------------------------- */

/* Returns the index of the column; makes it in the check. */
static int place_of(ImportFile *file, const char *name) {
        ImportReader *reader = file->reader;
        int place = GPOINTER_TO_INT(g_hash_table_lookup(reader->places, name));
        const ImportColumn *column;

        if (place > 0)
                return place - 1;
        column = find_column(file->columns, name);
        if (!column) {
                int r = add_column(file, name);

                if (r < 0)
                        return r;
                column = column_at(file->columns, file->columns->len - 1);
                g_array_set_size(reader->values, file->columns->len);
                g_array_set_size(reader->is_set, file->columns->len);
                g_array_index(reader->values, Value, file->columns->len - 1).type = SQLIPC_NULL;
        }
        place = (int) (column - column_at(file->columns, 0));
        if (g_hash_table_size(reader->places) < 2 * COLUMNS_MAX) /* names differ in their case, too */
                (void) g_hash_table_insert(reader->places, g_strdup(name), GINT_TO_POINTER(place + 1));
        return place;
}

static const char *on_member(const char *name, const Value *value, void *userdata) {
        ImportFile *file = userdata;
        ImportReader *reader = file->reader;
        int place = place_of(file, name);
        Value copy = *value;

        if (place < 0)
                return file->fault->str;
        if (g_array_index(reader->is_set, bool, place))
                return "a member occurs twice";
        if (column_at(file->columns, (guint) place)->affinity == 'T' && value->bytes && value->type != SQLIPC_BLOB)
                copy.type = SQLIPC_TEXT; /* SQLite would write a number with 15 digits */
        if (copy.type == SQLIPC_TEXT || copy.type == SQLIPC_BLOB)
                copy.bytes = g_string_chunk_insert_len(reader->chunk, value->bytes, (gssize) value->size);
        g_array_index(reader->values, Value, place) = copy;
        g_array_index(reader->is_set, bool, place) = true;
        return NULL;
}

static void clear_values(ImportFile *file) {
        ImportReader *reader = file->reader;

        g_string_chunk_clear(reader->chunk);
        g_array_set_size(reader->values, file->columns->len);
        g_array_set_size(reader->is_set, file->columns->len);
        for (guint i = 0; i < file->columns->len; i++) {
                g_array_index(reader->values, Value, i) = (Value) { .type = SQLIPC_NULL };
                g_array_index(reader->is_set, bool, i) = false;
        }
}

static int next_members(ImportFile *file) {
        ImportReader *reader = file->reader;
        const char *fault = NULL;
        int r;

        clear_values(file);
        while ((r = json_lines_next(reader->json, on_member, file, &file->line, &fault)) == -EAGAIN) {
                r = read_more(file);
                if (r < 0)
                        return r;
        }
        file->values = (const Value *) (const void *) reader->values->data;
        if (r < 0 && fault != file->fault->str)
                return fail(file, "%s", fault);
        return r;
}

int import_file_next(ImportFile *file) {
        if (file->reader->is_over)
                return 0;
        return file->format == IMPORT_JSONL ? next_members(file) : next_fields(file);
}

/* ---- The check ---------------------------------------------------------------------------------------------------- */

/* The first text of csv makes its column one for texts; the others need not be looked at. */
static void note_type(const ImportFile *file, ImportColumn *column, const Value *value) {
        bool of_text = file->format != IMPORT_JSONL && value->type == SQLIPC_TEXT;
        Value number;

        if (of_text && !(column->types & COLUMN_TYPE(SQLIPC_TEXT)) &&
            column_read_number(value->bytes, value->size, COLUMN_KEEPS_TEXT, &number))
                column->types |= column_types_of(&number);
        else
                column->types |= column_types_of(value);
}

int import_file_check(ImportFile *file) {
        int r = import_file_next(file);

        if (r == 0 && file->columns->len == 0 && !file->reader->has_lines) {
                file->reader->has_lines = true;
                return fail(file, "no line has a value, so there are no columns");
        }
        file->reader->has_lines |= r < 0 || file->columns->len > 0;
        for (guint i = 0; r > 0 && i < file->columns->len; i++) {
                ImportColumn *column = column_at(file->columns, i);
                const Value *value = &file->values[i];

                if (!column_takes(column->affinity, value))
                        return fail(file, "column %s is for numbers, and this is a text: %.*s", column->name,
                                    (int) MIN(value->size, 40), value->bytes);
                if (!file->table)
                        note_type(file, column, value);
        }
        return r;
}

static bool names_column(const ImportFile *file, const GArray *fields) {
        for (guint i = 0; i < fields->len; i++) {
                const Value *value = &g_array_index(fields, Value, i);
                g_autofree char *name = g_strndup(value->bytes, value->size);

                if (find_column(file->table, name))
                        return true;
        }
        return false;
}

/* Makes the columns from the first line. */
static int take_header(ImportFile *file) {
        const GArray *fields = file->reader->delimited.fields;
        int r = 0;

        for (guint i = 0; i < fields->len && r >= 0; i++) {
                const Value *value = &g_array_index(fields, Value, i);
                g_autofree char *name = g_strndup(value->bytes, value->size);

                r = add_column(file, name);
        }
        return r;
}

/* Finds out if the first line names columns; the columns are then known. */
static int read_header(ImportFile *file) {
        int r = next_delimited(file);

        if (r == 0)
                return fail(file, "the file is empty");
        if (file->table && (r == -EBADMSG || (r > 0 && !names_column(file, file->reader->delimited.fields)))) {
                file->has_header = false;
                return begin_reading(file);
        }
        return r < 0 ? r : take_header(file);
}

int import_file_begin(ImportFile *file) {
        int r = import_input_find_newline(&file->input, file->format != IMPORT_JSONL);

        if (r < 0)
                return r;
        r = begin_reading(file);
        file->line = file->n_skipped + 1;
        if (r < 0 || file->format == IMPORT_JSONL)
                return r;
        if (!file->has_header && !file->table)
                return fail(file, "a new table takes the names of its columns from this line");
        if (file->has_header)
                r = read_header(file);
        for (guint i = 0; r >= 0 && !file->has_header && i < file->table->len; i++)
                if (!column_at(file->table, i)->generated)
                        r = add_column(file, column_at(file->table, i)->name);
        file->reader->delimited.keeps_empty = file->columns->len == 1;
        return r;
}

int import_file_rewind(ImportFile *file) {
        int r = begin_reading(file);

        for (guint i = 0; !file->table && i < file->columns->len; i++) {
                ImportColumn *column = column_at(file->columns, i);

                column->affinity = column_affinity(column_type_for(column->types, file->format != IMPORT_JSONL));
                column->reads_numbers = column->affinity != 'T';
        }
        file->reader->is_checked = true;
        if (r >= 0 && file->format != IMPORT_JSONL && file->has_header)
                r = next_delimited(file);
        file->reader->delimited.keeps_empty = file->columns->len == 1;
        return r < 0 ? r : 0;
}

/* ---- SQL ---------------------------------------------------------------------------------------------------------- */

char *import_file_create_sql(const ImportFile *file, const char *table) {
        GString *sql = g_string_new("CREATE TABLE ");

        sql_name_append_quoted(sql, table, '"');
        for (guint i = 0; i < file->columns->len; i++) {
                const ImportColumn *column = column_at(file->columns, i);
                const char *type = column_type_for(column->types, file->format != IMPORT_JSONL);

                g_string_append(sql, i == 0 ? "(" : ", ");
                sql_name_append_quoted(sql, column->name, '"');
                g_string_append_printf(sql, "%s%s", *type ? " " : "", type);
        }
        return g_string_free(g_string_append_c(sql, ')'), FALSE);
}

char *import_file_insert_sql(const ImportFile *file, const char *table) {
        GString *sql = g_string_new("INSERT INTO ");

        sql_name_append_quoted(sql, table, '"');
        for (guint i = 0; i < file->columns->len; i++) {
                g_string_append_c(sql, i == 0 ? '(' : ',');
                sql_name_append_quoted(sql, column_at(file->columns, i)->name, '"');
        }
        g_string_append(sql, ")VALUES(");
        for (guint i = 0; i < file->columns->len; i++)
                g_string_append(sql, i > 0 ? ",?" : "?");
        return g_string_free(g_string_append_c(sql, ')'), FALSE);
}
