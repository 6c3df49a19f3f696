/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads objects of JSON, see json-lines.h. */
#include "tools/cli/import/json-lines.h"

#include <errno.h>
#include <sqlite3.h>
#include <string.h>

#include "tools/cli/import/column-type.h"

struct JsonLines {
        const char *part;     /* borrowed; of a file */
        size_t size, position;
        char newline;
        bool is_last;         /* the part ends with the file */
        uint64_t line;        /* of .position */
        sqlite3 *db;          /* in memory, empty */
        sqlite3_stmt *check;
        GString *name, *text; /* owned: the member's */
};

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql) {
        sqlite3_stmt *stmt;
        int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

        g_assert(rc == SQLITE_OK); /* the SQL is constant, and memory is never missing in programs of GLib */
        return stmt;
}

JsonLines *json_lines_new(char newline, uint64_t line) {
        JsonLines *reader = g_new0(JsonLines, 1);
        int rc = sqlite3_open(":memory:", &reader->db);

        g_assert(rc == SQLITE_OK);
        reader->newline = newline;
        reader->line = line;
        reader->name = g_string_new(NULL);
        reader->text = g_string_new(NULL);
        reader->check = prepare(reader->db, "SELECT json_valid(?)");
        return reader;
}

JsonLines *json_lines_free(JsonLines *reader) {
        if (!reader)
                return NULL;
        (void) sqlite3_finalize(reader->check);
        (void) sqlite3_close(reader->db);
        g_string_free(reader->name, TRUE);
        g_string_free(reader->text, TRUE);
        g_free(reader);
        return NULL;
}

void json_lines_feed(JsonLines *reader, const char *text, size_t size, bool is_last) {
        reader->part = text;
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

static const char *skip_blanks(const char *p) {
        return p + strspn(p, " \t\n\r");
}

/* Returns what keeps the line from being an object; NULL: it is one. */
static const char *check(JsonLines *reader, const char *line, size_t size) {
        bool is_valid;

        if (!g_utf8_validate_len(line, size, NULL))
                return "it is not UTF-8 text";
        (void) sqlite3_bind_text64(reader->check, 1, line, size, SQLITE_STATIC, SQLITE_UTF8);
        is_valid = sqlite3_step(reader->check) == SQLITE_ROW && sqlite3_column_int(reader->check, 0);
        (void) sqlite3_reset(reader->check);
        if (!is_valid)
                return "it is not JSON";
        return *skip_blanks(line) == '{' ? NULL : "it is not an object";
}

/* ---- Members. The line is valid JSON, and an object, so each scan ends at the "}" of the line at the latest. ------- */

/* `p` is at the opening quote; returns the place after the closing one. */
static const char *end_of_string(const char *p) {
        for (p++; *p != '"'; p++)
                p += *p == '\\';
        return p + 1;
}

static const char *end_of_value(const char *p) {
        unsigned depth = 0;

        do
                if (*p == '"')
                        p = end_of_string(p);
                else if (*p == '{' || *p == '[') {
                        depth++;
                        p++;
                } else if (*p == '}' || *p == ']') {
                        depth--;
                        p++;
                } else
                        p += depth > 0 ? 1 : strcspn(p, ",]} \t\n\r");
        while (depth > 0);
        return p;
}

/* Reads the four digits of an escape. */
static unsigned read_code(const char *p) {
        unsigned code = 0;

        for (int i = 0; i < 4; i++)
                code = code << 4 | (unsigned) g_ascii_xdigit_value(p[i]);
        return code;
}

/* Appends the character of an escape, which begins after the backslash, and returns the place after it. NULL: it is one of
 * the two surrogates of a character, alone. */
static const char *append_escape(GString *out, const char *p) {
        static const char letters[] = "bfnrt", characters[] = "\b\f\n\r\t";
        const char *letter = strchr(letters, *p);
        unsigned code, low;

        if (*p != 'u') {
                g_string_append_c(out, letter ? characters[letter - letters] : *p);
                return p + 1;
        }
        code = read_code(p + 1);
        p += 5;
        low = p[0] == '\\' && p[1] == 'u' ? read_code(p + 2) : 0;
        if (code >= 0xd800 && code < 0xdc00 && low >= 0xdc00 && low < 0xe000) {
                code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                p += 6;
        }
        if (code >= 0xd800 && code < 0xe000)
                return NULL;
        if (code == 0)
                g_string_append_c(out, 0);
        else
                g_string_append_unichar(out, code);
        return p;
}

/* Reads the string that begins at the quote. False: it has a surrogate alone, for which UTF-8 has no bytes. */
static bool read_string(const char *p, GString *out) {
        g_string_truncate(out, 0);
        for (p++; p && *p != '"';) {
                size_t n = strcspn(p, "\"\\");

                g_string_append_len(out, p, (gssize) n);
                p += n;
                if (*p == '\\')
                        p = append_escape(out, p + 1);
        }
        return p != NULL;
}

/* Copies an array or object without the blanks between its parts, as SQLite's json() does. */
static void read_json(const char *p, const char *end, GString *out) {
        g_string_truncate(out, 0);
        while ((p = skip_blanks(p)) < end) {
                const char *next = *p == '"' ? end_of_string(p) : p + 1;

                g_string_append_len(out, p, next - p);
                p = next;
        }
}

/* Returns the bytes of base64 without blanks, or NULL. */
static guchar *decode(const char *base64, size_t *ret_size) {
        g_autofree guchar *bytes = g_base64_decode(base64, ret_size);
        g_autofree char *again = g_base64_encode(bytes, *ret_size);

        return g_str_equal(again, base64) ? g_steal_pointer(&bytes) : NULL;
}

/* Returns the bytes of the object if it has base64, and nothing else; else NULL. */
static guchar *read_blob(const char *object, size_t *ret_size) {
        static const char member[] = "\"base64\"";
        const char *p = skip_blanks(object + 1), *text;
        g_autoptr(GString) base64 = g_string_new(NULL);

        if (*object != '{' || !g_str_has_prefix(p, member))
                return NULL;
        p = skip_blanks(p + strlen(member));
        text = skip_blanks(p + 1); /* after the colon */
        if (*text != '"' || *skip_blanks(end_of_string(text)) != '}' || !read_string(text, base64))
                return NULL;
        return strlen(base64->str) == base64->len ? decode(base64->str, ret_size) : NULL;
}

/* Reads a value that is neither an array nor an object. Returns what is wrong with it; NULL: nothing. */
static const char *read_scalar(JsonLines *reader, const char *p, const char *end, Value *ret) {
        size_t size = (size_t) (end - p);

        if (*p == '"') {
                if (!read_string(p, reader->text))
                        return "it has one of two surrogates (\\ud800 to \\udfff) without the other, which is no character";
                *ret = (Value) { .type = SQLIPC_TEXT, .bytes = reader->text->str, .size = reader->text->len };
        } else if (*p == 't' || *p == 'f')
                *ret = (Value) { .type = SQLIPC_INTEGER, .integer = *p == 't' };
        else if (*p == 'n')
                *ret = (Value) { .type = SQLIPC_NULL };
        else {
                if (!column_read_number(p, size, COLUMN_KEEPS_NUMBER, ret))
                        *ret = (Value) { .type = SQLIPC_TEXT };
                ret->bytes = p;
                ret->size = size;
        }
        return NULL;
}

static const char *take_member(JsonLines *reader, const char *p, const char *end, JsonMember member, void *userdata) {
        g_autofree guchar *blob = NULL;
        const char *fault = NULL;
        Value value;

        if (*p == '{' || *p == '[') {
                size_t size = 0;

                blob = read_blob(p, &size);
                if (!blob)
                        read_json(p, end, reader->text);
                value = blob ? (Value) { .type = SQLIPC_BLOB, .bytes = (const char *) blob, .size = size }
                             : (Value) { .type = SQLIPC_TEXT, .bytes = reader->text->str, .size = reader->text->len };
        } else
                fault = read_scalar(reader, p, end, &value);
        return fault ?: member(reader->name->str, &value, userdata);
}

static const char *take_members(JsonLines *reader, const char *line, JsonMember member, void *userdata) {
        const char *p = skip_blanks(skip_blanks(line) + 1), *end, *fault;

        while (*p != '}') {
                if (!read_string(p, reader->name) || strlen(reader->name->str) != reader->name->len)
                        return "the name of a member has a NUL, or one of two surrogates without the other";
                p = skip_blanks(skip_blanks(end_of_string(p)) + 1); /* after the colon */
                end = end_of_value(p);
                fault = take_member(reader, p, end, member, userdata);
                if (fault)
                        return fault;
                p = skip_blanks(end);
                p = *p == ',' ? skip_blanks(p + 1) : p;
        }
        return NULL;
}

/* ---- Lines -------------------------------------------------------------------------------------------------------- */

/* Takes a line without its newline. Returns 1; 0: there is none; -EAGAIN: there is no whole one. */
static int take_line(JsonLines *reader, const char **ret, size_t *ret_size) {
        const char *line = reader->part + reader->position, *newline;
        size_t rest = reader->size - reader->position;

        newline = rest > 0 ? memchr(line, reader->newline, rest) : NULL;
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
                *ret_fault = take_members(reader, line, member, userdata);
        return *ret_fault ? -EBADMSG : 1;
}
