/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads objects of JSON, see json-lines.h. */
#include "tools/cli/import/json-lines.h"

#include <errno.h>
#include <sqlite3.h>
#include <string.h>

struct JsonLines {
        const char *text; /* borrowed; a part of a file */
        size_t size, position;
        bool is_last;     /* the part ends with the file */
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

JsonLines *json_lines_new(uint64_t line) {
        JsonLines *reader = g_new0(JsonLines, 1);
        int rc = sqlite3_open(":memory:", &reader->db);

        g_assert(rc == SQLITE_OK);
        reader->line = line;
        reader->check = prepare(reader->db, "SELECT CASE WHEN NOT json_valid(?1) THEN 0 "
                                            "WHEN json_type(?1) <> 'object' THEN 1 ELSE 2 END");
        reader->members = prepare(reader->db, "SELECT key, value, CASE WHEN type = 'object' "
                                              "AND json_type(value, '$.base64') = 'text' "
                                              "AND (SELECT count(*) FROM json_each(j.value)) = 1 "
                                              "THEN json_extract(value, '$.base64') END FROM json_each(?1) AS j");
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

void json_lines_feed(JsonLines *reader, const char *text, size_t size, bool is_last) {
        reader->text = text;
        reader->size = size;
        reader->position = 0;
        reader->is_last = is_last;
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

/* Returns true if the text has \\u0000, and the backslash is not itself escaped. */
static bool has_nul(const char *text, size_t size) {
        static const char nul[] = "\\u0000";
        const char *at = text, *end = text + size;

        for (; (at = memmem(at, (size_t) (end - at), nul, strlen(nul))); at += strlen(nul)) {
                const char *first = at;

                while (first > text && first[-1] == '\\')
                        first--;
                if ((at - first) % 2 == 0)
                        return true;
        }
        return false;
}

/* Returns what keeps the line from being an object; NULL: it is one. */
static const char *check(JsonLines *reader, const char *line, size_t size) {
        static const char *const faults[] = { "it is not JSON", "it is not an object", NULL };
        int result;

        if (!g_utf8_validate_len(line, size, NULL))
                return "it is not UTF-8 text";
        if (has_nul(line, size))
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

/* Returns the bytes of base64 without blanks, or NULL. */
static guchar *decode(const char *base64, size_t *ret_size) {
        g_autofree guchar *bytes = g_base64_decode(base64, ret_size);
        g_autofree char *again = g_base64_encode(bytes, *ret_size);

        return g_str_equal(again, base64) ? g_steal_pointer(&bytes) : NULL;
}

static const char *take_member(sqlite3_stmt *stmt, JsonMember member, void *userdata) {
        const char *name = (const char *) sqlite3_column_text(stmt, 0);
        const char *base64 = (const char *) sqlite3_column_text(stmt, 2);
        size_t size = 0;
        g_autofree guchar *blob = base64 ? decode(base64, &size) : NULL;
        Value value = value_of(stmt, 1);

        if (blob)
                value = (Value) { .type = SQLIPC_BLOB, .bytes = (const char *) blob, .size = size };
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

/* Takes a line without its newline. Returns 1; 0: there is none; -EAGAIN: there is no whole one. */
static int take_line(JsonLines *reader, const char **ret, size_t *ret_size) {
        const char *line = reader->text + reader->position, *newline;
        size_t rest = reader->size - reader->position;

        newline = rest > 0 ? memchr(line, '\n', rest) : NULL;
        if (!newline && !reader->is_last)
                return -EAGAIN;
        if (rest == 0)
                return 0;
        *ret = line;
        *ret_size = newline ? (size_t) (newline - line) : rest;
        reader->position += *ret_size + (newline != NULL);
        reader->line++;
        return 1;
}

int json_lines_next(JsonLines *reader, JsonMember member, void *userdata, uint64_t *ret_line, const char **ret_fault) {
        const char *line;
        size_t size;
        int r;

        do {
                *ret_line = reader->line;
                r = take_line(reader, &line, &size);
                if (r <= 0)
                        return r;
        } while (is_blank(line, size));
        *ret_fault = check(reader, line, size);
        if (!*ret_fault)
                *ret_fault = take_members(reader, line, size, member, userdata);
        return *ret_fault ? -EBADMSG : 1;
}
