/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads csv and tsv, see delimited.h. */
#include "tools/cli/import/delimited.h"

#include <errno.h>
#include <string.h>

void delimited_begin(Delimited *reader, char separator, char newline, uint64_t line) {
        *reader = (Delimited) {
                .line = line,
                .separator = separator,
                .newline = newline,
                .fields = g_array_new(false, false, sizeof(Value)),
                .unquoted = g_string_chunk_new(4096),
        };
}

void delimited_done(Delimited *reader) {
        g_array_unref(reader->fields);
        g_string_chunk_free(reader->unquoted);
        *reader = (Delimited) {};
}

void delimited_feed(Delimited *reader, const char *text, size_t size, bool is_last) {
        reader->text = text;
        reader->size = size;
        reader->position = 0;
        reader->is_last = is_last;
}

/* The place of the next newline, or the end of the part. */
static const char *find_newline(const Delimited *reader) {
        const char *at = reader->text + reader->position;
        size_t rest = reader->size - reader->position;

        return (rest > 0 ? memchr(at, reader->newline, rest) : NULL) ?: at + rest;
}

static bool at_end_of_line(const Delimited *reader) {
        const char *at = reader->text + reader->position;
        size_t rest = reader->size - reader->position;

        return rest == 0 || *at == reader->newline || (rest > 1 && at[0] == '\r' && at[1] == reader->newline);
}

/* Goes past the newline, if there is one. */
static void pass_newline(Delimited *reader) {
        if (reader->position < reader->size && reader->text[reader->position] != reader->newline)
                reader->position++;
        if (reader->position < reader->size)
                reader->position++;
}

static void add(Delimited *reader, const char *bytes, size_t size, bool quoted) {
        const Value value = { .type = size > 0 || quoted ? SQLIPC_TEXT : SQLIPC_NULL, .bytes = bytes, .size = size };

        g_array_append_val(reader->fields, value);
}

/* Fields are short, so a loop is faster than memchr(). */
static void take_bare(Delimited *reader) {
        const char *begin = reader->text + reader->position, *end = reader->text + reader->size, *p = begin;
        const char separator = reader->separator, newline = reader->newline;

        while (p < end && *p != separator && *p != newline)
                p++;
        if (p < end && *p == '\n' && p > begin && p[-1] == '\r')
                p--;
        add(reader, begin, (size_t) (p - begin), false);
        reader->position = (size_t) (p - reader->text);
}

/* Copies the text with one quote for each two. */
static void add_unquoted(Delimited *reader, const char *bytes, size_t size) {
        g_autoptr(GString) copy = g_string_sized_new(size);

        for (size_t i = 0; i < size; i++) {
                g_string_append_c(copy, bytes[i]);
                i += bytes[i] == '"';
        }
        add(reader, g_string_chunk_insert_len(reader->unquoted, copy->str, (gssize) copy->len), copy->len, true);
}

/* The position is at the opening quote. Returns what is wrong; NULL: nothing. */
static const char *take_quoted(Delimited *reader) {
        const char *begin = reader->text + reader->position + 1, *end = reader->text + reader->size, *quote = begin;
        bool doubled = false;

        while ((quote = memchr(quote, '"', (size_t) (end - quote))) && quote + 1 < end && quote[1] == '"') {
                doubled = true;
                quote += 2;
        }
        if (!quote) {
                reader->position = reader->size;
                return "a quote is opened and never closed";
        }
        reader->position = (size_t) (quote + 1 - reader->text);
        if (!at_end_of_line(reader) && *(quote + 1) != reader->separator)
                return "there is text after a closing quote";
        if (doubled)
                add_unquoted(reader, begin, (size_t) (quote - begin));
        else
                add(reader, begin, (size_t) (quote - begin), true);
        return NULL;
}

/* Takes all fields of a row, up to its newline. Returns what is wrong; NULL: nothing. */
static const char *take_fields(Delimited *reader) {
        for (;;) {
                const char *fault = NULL;

                if (reader->position < reader->size && reader->text[reader->position] == '"')
                        fault = take_quoted(reader);
                else
                        take_bare(reader);
                if (fault || at_end_of_line(reader))
                        return fault;
                reader->position++; /* the separator */
        }
}

static uint64_t count_newlines(const Delimited *reader, const char *text, size_t size) {
        const char *end = text + size;
        uint64_t n = 0;

        while ((text = memchr(text, reader->newline, (size_t) (end - text)))) {
                text++;
                n++;
        }
        return n;
}

static void skip_empty_lines(Delimited *reader) {
        while (reader->position < reader->size && at_end_of_line(reader) && !reader->keeps_empty) {
                pass_newline(reader);
                reader->line++;
        }
}

/* Looks at eight bytes at a time. */
static bool is_ascii(const char *text, size_t size) {
        const char *end = text + size;
        uint64_t eight, all = 0;

        for (; (size_t) (end - text) >= sizeof eight; text += sizeof eight) {
                memcpy(&eight, text, sizeof eight);
                all |= eight;
        }
        for (; text < end; text++)
                all |= (unsigned char) *text;
        return (all & UINT64_C(0x8080808080808080)) == 0;
}

static const char *find_bad_text(const char *text, size_t size) {
        if (memchr(text, 0, size))
                return "it has a NUL byte";
        return is_ascii(text, size) || g_utf8_validate_len(text, size, NULL) ? NULL : "it is not UTF-8 text";
}

int delimited_next(Delimited *reader, uint64_t *ret_line, const char **ret_fault) {
        const char *fault;
        size_t begin;

        skip_empty_lines(reader);
        begin = reader->position;
        *ret_line = reader->line;
        if (begin == reader->size)
                return reader->is_last ? 0 : -EAGAIN;
        g_array_set_size(reader->fields, 0);
        g_string_chunk_clear(reader->unquoted);
        fault = take_fields(reader);
        if (fault)
                reader->position = (size_t) (find_newline(reader) - reader->text);
        if (reader->position == reader->size && !reader->is_last) {
                reader->position = begin;
                return -EAGAIN;
        }
        if (!fault)
                fault = find_bad_text(reader->text + begin, reader->position - begin);
        pass_newline(reader);
        reader->line += count_newlines(reader, reader->text + begin, reader->position - begin);
        *ret_fault = fault;
        return fault ? -EBADMSG : 1;
}
