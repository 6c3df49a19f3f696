/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads csv and tsv, see delimited.h. */
#include "tools/cli/import/delimited.h"

#include <errno.h>
#include <string.h>

void delimited_begin(Delimited *reader, const char *text, size_t size, char separator) {
        static const char mark[] = "\357\273\277";

        *reader = (Delimited) {
                .text = text,
                .size = size,
                .line = 1,
                .separator = separator,
                .fields = g_array_new(false, false, sizeof(Value)),
                .unquoted = g_string_chunk_new(4096),
        };
        if (size >= strlen(mark) && memcmp(text, mark, strlen(mark)) == 0)
                reader->position = strlen(mark);
}

void delimited_done(Delimited *reader) {
        g_array_unref(reader->fields);
        g_string_chunk_free(reader->unquoted);
        *reader = (Delimited) {};
}

static bool at_end_of_line(const Delimited *reader) {
        const char *at = reader->text + reader->position;
        size_t rest = reader->size - reader->position;

        return rest == 0 || *at == '\n' || (rest > 1 && at[0] == '\r' && at[1] == '\n');
}

/* Goes to the end of the line. */
static void skip_line(Delimited *reader) {
        const char *at = reader->text + reader->position;
        const char *newline = memchr(at, '\n', reader->size - reader->position);

        reader->position = newline ? (size_t) (newline - reader->text) : reader->size;
}

/* Goes past the newline, if there is one. */
static void pass_newline(Delimited *reader) {
        if (reader->position < reader->size && reader->text[reader->position] == '\r')
                reader->position++;
        if (reader->position < reader->size)
                reader->position++;
}

static void add(Delimited *reader, const char *bytes, size_t size, bool quoted) {
        const Value value = { .type = size > 0 || quoted ? SQLIPC_TEXT : SQLIPC_NULL, .bytes = bytes, .size = size };

        g_array_append_val(reader->fields, value);
}

static void take_bare(Delimited *reader) {
        size_t begin = reader->position;

        while (!at_end_of_line(reader) && reader->text[reader->position] != reader->separator)
                reader->position++;
        add(reader, reader->text + begin, reader->position - begin, false);
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

                if (!at_end_of_line(reader) && reader->text[reader->position] == '"')
                        fault = take_quoted(reader);
                else
                        take_bare(reader);
                if (fault || at_end_of_line(reader))
                        return fault;
                reader->position++; /* the separator */
        }
}

static uint64_t count_newlines(const char *text, size_t size) {
        const char *end = text + size;
        uint64_t n = 0;

        while ((text = memchr(text, '\n', (size_t) (end - text)))) {
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

int delimited_next(Delimited *reader, uint64_t *ret_line, const char **ret_fault) {
        const char *fault;
        size_t begin;

        skip_empty_lines(reader);
        begin = reader->position;
        *ret_line = reader->line;
        if (begin == reader->size)
                return 0;
        g_array_set_size(reader->fields, 0);
        g_string_chunk_clear(reader->unquoted);
        fault = take_fields(reader);
        if (fault)
                skip_line(reader);
        else if (!g_utf8_validate_len(reader->text + begin, reader->position - begin, NULL))
                fault = "it is not UTF-8 text";
        pass_newline(reader);
        reader->line += count_newlines(reader->text + begin, reader->position - begin);
        *ret_fault = fault;
        return fault ? -EBADMSG : 1;
}
