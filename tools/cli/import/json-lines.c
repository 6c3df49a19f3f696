/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads objects of JSON, see json-lines.h. */
#include "tools/cli/import/json-lines.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <string.h>

struct JsonLines {
        const char *text; /* borrowed */
        size_t size, position;
        uint64_t line;    /* of .position */
        sqlite3 *db;      /* in memory, empty */
        sqlite3_stmt *check, *members;
};

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql) {
        sqlite3_stmt *stmt;
        int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

        g_assert(rc == SQLITE_OK); /* the SQL is constant, and memory is never missing in programs of GLib */
        return stmt;
}

JsonLines *json_lines_new(const char *text, size_t size) {
        JsonLines *reader = g_new0(JsonLines, 1);
        int rc = sqlite3_open(":memory:", &reader->db);

        g_assert(rc == SQLITE_OK);
        reader->text = text;
        reader->size = size;
        reader->line = 1;
        reader->check = prepare(reader->db, "SELECT CASE WHEN NOT json_valid(?1) THEN 0 "
                                            "WHEN json_type(?1) <> 'object' THEN 1 ELSE 2 END");
        reader->members = prepare(reader->db, "SELECT key, value, CASE type WHEN 'object' "
                                              "THEN json_extract(value, '$.base64') END FROM json_each(?1)");
        return reader;
}

JsonLines *json_lines_free(JsonLines *reader) {
        if (!reader)
                return NULL;
        (void) sqlite3_finalize(reader->check);
        (void) sqlite3_finalize(reader->members);
        (void) sqlite3_close(reader->db);
        g_free(reader);
        return NULL;
}

size_t json_lines_position(const JsonLines *reader) {
        return reader->position;
}

static bool is_blank(const char *text, size_t size) {
        while (size > 0 && g_ascii_isspace(*text)) {
                text++;
                size--;
        }
        return size == 0;
}

/* Returns what keeps the line from being an object; NULL: it is one. */
static const char *check(JsonLines *reader, const char *line, size_t size) {
        static const char *const faults[] = { "it is not JSON", "it is not an object", NULL };
        int result;

        if (!g_utf8_validate_len(line, size, NULL))
                return "it is not UTF-8 text";
        if (g_strstr_len(line, (gssize) size, "\\u0000"))
                return "it has a NUL (\\u0000), which SQLite's JSON functions cut off";
        (void) sqlite3_bind_text64(reader->check, 1, line, size, SQLITE_STATIC, SQLITE_UTF8);
        result = sqlite3_step(reader->check) == SQLITE_ROW ? sqlite3_column_int(reader->check, 0) : 0;
        (void) sqlite3_reset(reader->check);
        return faults[result];
}

static Value value_of(sqlite3_stmt *stmt, int column) {
        Value value = { .type = (sqlipc_type) sqlite3_column_type(stmt, column) };

        value.integer = value.type == SQLIPC_INTEGER ? sqlite3_column_int64(stmt, column) : 0;
        value.real = value.type == SQLIPC_REAL ? sqlite3_column_double(stmt, column) : 0;
        if (value.type == SQLIPC_TEXT) {
                value.bytes = (const char *) sqlite3_column_text(stmt, column);
                value.size = (size_t) sqlite3_column_bytes(stmt, column);
        }
        return value;
}

static const char *take_member(sqlite3_stmt *stmt, JsonMember member, void *userdata) {
        const char *name = (const char *) sqlite3_column_text(stmt, 0);
        const char *base64 = (const char *) sqlite3_column_text(stmt, 2);
        g_autofree guchar *blob = NULL;
        Value value = value_of(stmt, 1);

        if (base64) {
                blob = g_base64_decode(base64, &value.size);
                value.type = SQLIPC_BLOB;
                value.bytes = (const char *) blob;
        }
        return member(name ?: "", &value, userdata);
}

static const char *take_members(JsonLines *reader, const char *line, size_t size, JsonMember member, void *userdata) {
        const char *fault = NULL;

        (void) sqlite3_bind_text64(reader->members, 1, line, size, SQLITE_STATIC, SQLITE_UTF8);
        while (!fault && sqlite3_step(reader->members) == SQLITE_ROW)
                fault = take_member(reader->members, member, userdata);
        (void) sqlite3_reset(reader->members);
        return fault;
}

int json_lines_next(JsonLines *reader, JsonMember member, void *userdata, uint64_t *ret_line, const char **ret_fault) {
        while (reader->position < reader->size) {
                const char *line = reader->text + reader->position;
                const char *newline = memchr(line, '\n', reader->size - reader->position);
                size_t size = newline ? (size_t) (newline - line) : reader->size - reader->position;

                reader->position += size + (newline != NULL);
                *ret_line = reader->line++;
                if (*ret_line == 1 && size >= 3 && memcmp(line, "\357\273\277", 3) == 0) {
                        line += 3;
                        size -= 3;
                }
                if (is_blank(line, size))
                        continue;
                *ret_fault = check(reader, line, size);
                if (!*ret_fault)
                        *ret_fault = take_members(reader, line, size, member, userdata);
                return *ret_fault ? -EBADMSG : 1;
        }
        return 0;
}
