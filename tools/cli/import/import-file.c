/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The rows of a file that is imported, see import-file.h. */
#include "tools/cli/import/import-file.h"

#include <errno.h>
#include <string.h>

#include "tools/cli/import/delimited.h"
#include "tools/cli/import/json-lines.h"
#include "tools/cli/sql/sql-name.h"

typedef struct ImportReader {
        const char *text; /* borrowed */
        size_t size;
        bool has_header;
        const GArray *table; /* borrowed; of the check */
        Delimited delimited;
        JsonLines *json;
        GArray *values;   /* of Value: those of the row */
        GHashTable *places; /* of JSON: name -> index in columns + 1; the names are those of the columns */
        GStringChunk *chunk; /* of JSON: the bytes of the row */
        GArray *is_set;   /* of JSON: bool, if the row has the column */
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

ImportFile *import_file_new(ImportFormat format, const char *text, size_t size, bool has_header) {
        ImportFile *file = g_new0(ImportFile, 1);
        ImportReader *reader = g_new0(ImportReader, 1);

        *reader = (ImportReader) {
                .text = text,
                .size = size,
                .has_header = has_header,
                .values = g_array_new(false, true, sizeof(Value)),
                .places = g_hash_table_new(g_str_hash, g_str_equal),
                .chunk = g_string_chunk_new(4096),
                .is_set = g_array_new(false, true, sizeof(bool)),
        };
        *file = (ImportFile) { .format = format, .columns = import_columns_new(), .reader = reader };
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
        g_free(file);
        return NULL;
}

static void begin_reading(ImportFile *file) {
        ImportReader *reader = file->reader;

        end_reading(reader);
        if (file->format == IMPORT_JSONL)
                reader->json = json_lines_new(reader->text, reader->size);
        else
                delimited_begin(&reader->delimited, reader->text, reader->size, file->format == IMPORT_TSV ? '\t' : ',');
}

double import_file_done(const ImportFile *file) {
        const ImportReader *reader = file->reader;
        size_t position = reader->json ? json_lines_position(reader->json) : reader->delimited.position;

        return reader->size > 0 ? (double) position / (double) reader->size : 1;
}

/* ---- Columns ------------------------------------------------------------------------------------------------------ */

/* Returns the column of this name, as SQLite compares names; NULL: none. */
static const ImportColumn *find_column(const GArray *columns, const char *name) {
        for (guint i = 0; i < columns->len; i++)
                if (g_ascii_strcasecmp(column_at(columns, i)->name, name) == 0)
                        return column_at(columns, i);
        return NULL;
}

/* Adds a column of the file. Returns what is wrong; NULL: nothing. */
static const char *add_column(ImportFile *file, const GArray *table, const char *name, size_t size) {
        ImportColumn column = { .name = g_strndup(name, size) };
        const ImportColumn *there = table ? find_column(table, column.name) : NULL;
        const char *fault = NULL;

        if (size == 0)
                fault = "a column has no name";
        else if (find_column(file->columns, column.name))
                fault = "two columns have the same name";
        else if (table && !there)
                fault = file->format == IMPORT_JSONL ? "the table has no column for one of its members"
                                                     : "the table has no column of a name in this line (--no-header takes "
                                                       "it as a row)";
        if (fault) {
                g_free(column.name);
                return fault;
        }
        if (there) {
                column.affinity = there->affinity;
                column.not_null = there->not_null;
        }
        g_array_append_val(file->columns, column);
        return NULL;
}

/* The columns of the table, in their order. */
static void take_columns_of_table(ImportFile *file, const GArray *table) {
        for (guint i = 0; i < table->len; i++)
                (void) add_column(file, table, column_at(table, i)->name, strlen(column_at(table, i)->name));
}

/* Reads the first line. */
static const char *read_header(ImportFile *file, const GArray *table, uint64_t *ret_line) {
        const char *fault = NULL;
        int r = delimited_next(&file->reader->delimited, ret_line, &fault);
        const GArray *fields = file->reader->delimited.fields;

        if (r == 0)
                return "the file is empty";
        for (guint i = 0; i < fields->len && !fault; i++) {
                const Value *name = &g_array_index(fields, Value, i);

                fault = add_column(file, table, name->bytes, name->size);
        }
        return fault;
}

/* ---- Rows --------------------------------------------------------------------------------------------------------- */

static int next_delimited(ImportFile *file, uint64_t *ret_line, const char **ret_fault) {
        Delimited *delimited = &file->reader->delimited;
        int r = delimited_next(delimited, ret_line, ret_fault);

        if (r <= 0)
                return r;
        if (delimited->fields->len != file->columns->len) {
                *ret_fault = delimited->fields->len < file->columns->len ? "it has fewer fields than there are columns"
                                                                         : "it has more fields than there are columns";
                return -EBADMSG;
        }
        g_array_set_size(file->reader->values, 0);
        g_array_append_vals(file->reader->values, delimited->fields->data, delimited->fields->len);
        return 1;
}

/* Returns the index of the column; makes it in the check. -1: `*ret_fault`. */
static int place_of(ImportFile *file, const char *name, const char **ret_fault) {
        ImportReader *reader = file->reader;
        int place = GPOINTER_TO_INT(g_hash_table_lookup(reader->places, name));

        if (place > 0)
                return place - 1;
        *ret_fault = add_column(file, reader->table, name, strlen(name));
        if (*ret_fault)
                return -1;
        place = (int) file->columns->len;
        (void) g_hash_table_insert(reader->places, column_at(file->columns, (guint) place - 1)->name,
                                   GINT_TO_POINTER(place));
        g_array_set_size(reader->values, file->columns->len);
        g_array_set_size(reader->is_set, file->columns->len);
        g_array_index(reader->values, Value, place - 1).type = SQLIPC_NULL;
        return place - 1;
}

static const char *on_member(const char *name, const Value *value, void *userdata) {
        ImportFile *file = userdata;
        ImportReader *reader = file->reader;
        const char *fault = NULL;
        int place = place_of(file, name, &fault);
        Value copy = *value;

        if (place < 0)
                return fault;
        if (g_array_index(reader->is_set, bool, place))
                return "a member occurs twice";
        if (value->bytes)
                copy.bytes = g_string_chunk_insert_len(reader->chunk, value->bytes, (gssize) value->size);
        g_array_index(reader->values, Value, place) = copy;
        g_array_index(reader->is_set, bool, place) = true;
        return NULL;
}

static int next_json(ImportFile *file, uint64_t *ret_line, const char **ret_fault) {
        ImportReader *reader = file->reader;

        g_string_chunk_clear(reader->chunk);
        g_array_set_size(reader->values, file->columns->len);
        g_array_set_size(reader->is_set, file->columns->len);
        for (guint i = 0; i < file->columns->len; i++) {
                g_array_index(reader->values, Value, i) = (Value) { .type = SQLIPC_NULL };
                g_array_index(reader->is_set, bool, i) = false;
        }
        return json_lines_next(reader->json, on_member, file, ret_line, ret_fault);
}

/* SQLite users do not quote empty texts. */
static void fill_not_null(ImportFile *file) {
        for (guint i = 0; i < file->columns->len; i++) {
                const ImportColumn *column = column_at(file->columns, i);
                Value *value = &g_array_index(file->reader->values, Value, i);

                if (column->not_null && column->affinity == 'T' && value->type == SQLIPC_NULL)
                        *value = (Value) { .type = SQLIPC_TEXT, .bytes = "" };
        }
}

static int next_row(ImportFile *file, uint64_t *ret_line, const char **ret_fault) {
        int r = file->format == IMPORT_JSONL ? next_json(file, ret_line, ret_fault)
                                             : next_delimited(file, ret_line, ret_fault);

        if (r > 0 && file->format != IMPORT_JSONL)
                fill_not_null(file);
        return r;
}

/* ---- The check ---------------------------------------------------------------------------------------------------- */

/* Notes the types of a row. Returns what is wrong, which the caller frees; NULL: nothing. */
static char *check_row(ImportFile *file) {
        for (guint i = 0; i < file->columns->len; i++) {
                ImportColumn *column = column_at(file->columns, i);
                const Value *value = &g_array_index(file->reader->values, Value, i);
                bool of_text = file->format != IMPORT_JSONL && value->type == SQLIPC_TEXT;

                if (!column_takes(column->affinity, value))
                        return g_strdup_printf("column %s is for numbers, and this is a text: %.*s", column->name,
                                               (int) MIN(value->size, 40), value->bytes);
                column->types |= COLUMN_TYPE(of_text ? column_type_of_text(value->bytes, value->size) : value->type);
        }
        return NULL;
}

/* Makes the columns. Returns what is wrong; NULL: nothing. */
static const char *begin_columns(ImportFile *file, const GArray *table, uint64_t *ret_line) {
        const char *fault = NULL;

        *ret_line = 1;
        if (file->format == IMPORT_JSONL)
                return NULL;
        if (file->reader->has_header)
                fault = read_header(file, table, ret_line);
        else if (table)
                take_columns_of_table(file, table);
        else
                fault = "without a line of names there must be a table";
        file->reader->delimited.keeps_empty = file->columns->len == 1;
        return fault;
}

uint64_t import_file_check(ImportFile *file, const GArray *table, ImportFault on_fault, void *userdata) {
        uint64_t n_faults = 0, line;
        const char *fault;
        int r;

        begin_reading(file);
        file->reader->table = table;
        fault = begin_columns(file, table, &line);
        if (fault) {
                on_fault(line, fault, userdata);
                return 1;
        }
        while ((r = next_row(file, &line, &fault)) != 0) {
                g_autofree char *unfit = r > 0 ? check_row(file) : NULL;

                file->n_rows++;
                if (r > 0 && !unfit)
                        continue;
                on_fault(line, unfit ?: fault, userdata);
                n_faults++;
        }
        if (n_faults == 0 && file->columns->len == 0) {
                on_fault(1, "the file is empty", userdata);
                n_faults++;
        }
        return n_faults;
}

void import_file_rewind(ImportFile *file) {
        const char *fault;
        uint64_t line;

        begin_reading(file);
        if (file->format != IMPORT_JSONL && file->reader->has_header)
                (void) delimited_next(&file->reader->delimited, &line, &fault);
        file->reader->delimited.keeps_empty = file->columns->len == 1;
}

int import_file_next(ImportFile *file, const Value **ret_values, uint64_t *ret_line) {
        const char *fault;
        int r = next_row(file, ret_line, &fault);

        *ret_values = (const Value *) (const void *) file->reader->values->data;
        return r;
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

char *import_file_insert_sql(const ImportFile *file, const char *table, size_t n_rows) {
        GString *sql = g_string_new("INSERT INTO ");

        sql_name_append_quoted(sql, table, '"');
        for (guint i = 0; i < file->columns->len; i++) {
                g_string_append_c(sql, i == 0 ? '(' : ',');
                sql_name_append_quoted(sql, column_at(file->columns, i)->name, '"');
        }
        g_string_append(sql, ")VALUES");
        for (size_t row = 0; row < n_rows; row++) {
                g_string_append(sql, row > 0 ? ",(" : "(");
                for (guint i = 0; i < file->columns->len; i++)
                        g_string_append(sql, i > 0 ? ",?" : "?");
                g_string_append_c(sql, ')');
        }
        return g_string_free(sql, FALSE);
}
