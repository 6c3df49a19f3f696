/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See pg-copy.h. From top to bottom: the statement, values, errors.
 */
#include "daemon/worker/postgresql/pg-copy.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/worker/postgresql/pg-number.h"

/* ---- the statement ---- */

static void skip_space(const char **at) {
        *at += strspn(*at, " \t\n\r\f\v");
}

static bool take_char(const char **at, char c) {
        const char *after = *at;

        skip_space(&after);
        if (*after != c)
                return false;
        *at = after + 1;
        return true;
}

static bool is_name_part(char c) {
        return isalnum((unsigned char) c) || c == '_' || c == '$' || (unsigned char) c >= 0x80;
}

static bool take_word(const char **at, const char *word) {
        size_t size = strlen(word);

        skip_space(at);
        if (strncasecmp(*at, word, size) != 0 || is_name_part((*at)[size]))
                return false;
        *at += size;
        return true;
}

/* A name, quoted or not. */
static bool take_name(const char **at) {
        const char *start;

        skip_space(at);
        start = *at;
        if (*start == '"') {
                const char *end = strchr(start + 1, '"');

                if (!end || end[1] == '"') /* a quote in the name: rare enough */
                        return false;
                *at = end + 1;
                return true;
        }
        if (isdigit((unsigned char) *start))
                return false;
        while (is_name_part(**at))
                (*at)++;
        return *at > start && **at != '\'' && **at != '&'; /* U&"name" */
}

static bool take_table(const char **at) {
        bool ok = take_name(at);

        while (ok && take_char(at, '.'))
                ok = take_name(at);
        return ok;
}

static bool take_columns(const char **at) {
        if (!take_char(at, '('))
                return false;
        do
                if (!take_name(at))
                        return false;
        while (take_char(at, ','));
        return take_char(at, ')');
}

/* $1, $2, ..., each once and in order. */
static bool take_parameters(const char **at, unsigned n) {
        if (!take_char(at, '('))
                return false;
        for (unsigned i = 1; i <= n; i++) {
                char *end;

                if ((i > 1 && !take_char(at, ',')) || !take_char(at, '$') || strtoul(*at, &end, 10) != i)
                        return false;
                *at = end;
        }
        return take_char(at, ')');
}

/* The values of a row have the order of the client's parameters. */
static bool is_in_order(const PgText *text) {
        for (unsigned i = 0; i < text->n_names; i++)
                if (text->names[i].number != i + 1)
                        return false;
        return text->n_names > 0;
}

bool pg_copy_find(const PgText *text, PgCopy *ret) {
        const char *at = text->sql;
        PgCopy copy;

        if (!is_in_order(text) || !take_word(&at, "INSERT") || !take_word(&at, "INTO"))
                return false;
        skip_space(&at);
        copy.table = at;
        if (!take_table(&at))
                return false;
        copy.table_size = (size_t) (at - copy.table);
        skip_space(&at);
        copy.columns = at;
        if (!take_columns(&at))
                return false;
        copy.columns_size = (size_t) (at - copy.columns);
        if (!take_word(&at, "VALUES") || !take_parameters(&at, text->n_numbers))
                return false;
        while (take_char(&at, ';'))
                ;
        skip_space(&at);
        if (*at)
                return false;
        *ret = copy;
        return true;
}

/* ---- values ---- */

static char *reserve(PgCopyData *data, size_t size) {
        if (size > data->capacity - data->size) {
                size_t capacity = 2 * data->capacity + size;
                char *bytes = realloc(data->bytes, capacity);

                if (!bytes)
                        return NULL;
                data->bytes = bytes;
                data->capacity = capacity;
        }
        return data->bytes + data->size;
}

static char *put_text(char *to, const char *text, size_t size) {
        for (size_t i = 0; i < size; i++) {
                char c = text[i], escaped = c == '\\' ? '\\' : c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : 0;

                if (escaped)
                        *to++ = '\\';
                *to++ = escaped ? escaped : c;
        }
        return to;
}

/* "\x" as the input function of bytea reads it, with the backslash that COPY removes. */
static char *put_bytes(char *to, const uint8_t *bytes, size_t size) {
        static const char digits[] = "0123456789abcdef";

        to = stpcpy(to, "\\\\x");
        for (size_t i = 0; i < size; i++) {
                *to++ = digits[bytes[i] >> 4];
                *to++ = digits[bytes[i] & 15];
        }
        return to;
}

static bool is_integer(PgKind kind) {
        return kind == PG_KIND_INT2 || kind == PG_KIND_INT4 || kind == PG_KIND_INT8 || kind == PG_KIND_OID;
}

static char *put_value(char *to, PgKind kind, const PageValue *v) {
        double real;

        switch (v->type) {
        case VALUE_INTEGER:
                return to + sprintf(to, "%" PRId64, (int64_t) load_le64(v->bytes));
        case VALUE_REAL:
                real = load_le_double(v->bytes);
                if (is_integer(kind))
                        return to + sprintf(to, "%" PRId64, (int64_t) real);
                return to + pg_number_write(real, kind == PG_KIND_TEXT, to);
        case VALUE_TEXT:
                return put_text(to, (const char *) v->bytes, v->size);
        case VALUE_BLOB:
                return put_bytes(to, v->bytes, v->size);
        case VALUE_NULL:
                return stpcpy(to, "\\N");
        }
        return to;
}

bool pg_copy_add(PgCopyData *data, PgKind kind, const PageValue *value, bool is_last) {
        char *start = reserve(data, 2 * value->size + PG_NUMBER_SIZE), *at;

        if (!start)
                return false;
        at = put_value(start, kind, value);
        *at++ = is_last ? '\n' : '\t';
        data->size += (size_t) (at - start);
        return true;
}

/* ---- errors ---- */

uint64_t pg_copy_line(const char *context) {
        const char *line = context && strncmp(context, "COPY ", 5) == 0 ? strstr(context, ", line ") : NULL;

        return line ? strtoull(line + strlen(", line "), NULL, 10) : 0;
}
