/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Values as SQL, see sql-literal.h. Pure. */
#include "tools/terminal/sql-literal.h"

#include <float.h>
#include <math.h>

#include "tools/terminal/format.h"

void sql_literal_quoted(Sink *sink, const char *text, size_t size, char quote) {
        sink_char(sink, quote);
        while (size > 0) {
                const char *end = memchr(text, quote, size);
                size_t n = end ? (size_t) (end - text) + 1 : size;

                sink_write(sink, text, n);
                if (end)
                        sink_char(sink, quote);
                text += n;
                size -= n;
        }
        sink_char(sink, quote);
}

void sql_literal_cast_text(Sink *sink, const char *text, size_t size) {
        sink_string(sink, "CAST(x'");
        sink_hex(sink, text, size);
        sink_string(sink, "' AS TEXT)");
}

/* ---- Text without line ends --------------------------------------------------------------------------------------- */

enum { MARKS_MAX = 100 };

/* The text that replaces a character in `text`; it does not occur there otherwise, so replace() finds nothing else. */
typedef struct Mark {
        char text[24];
        bool used;
} Mark;

/* Chooses the first of `choice`, `other` and "(choice0)", "(choice1)" ... that is not in `text`, as sqlite3 does. False if
 * the first MARKS_MAX are all in it: a text that was made for this purpose could otherwise take hours. */
static bool choose_mark(Mark *mark, const char *text, size_t size, const char *choice, const char *other) {
        g_snprintf(mark->text, sizeof mark->text, "%s", choice);
        if (!mark->used || !memmem(text, size, mark->text, strlen(mark->text)))
                return true;
        g_snprintf(mark->text, sizeof mark->text, "%s", other);
        for (unsigned i = 0; memmem(text, size, mark->text, strlen(mark->text)); i++) {
                if (i == MARKS_MAX)
                        return false;
                g_snprintf(mark->text, sizeof mark->text, "(%s%u)", choice, i);
        }
        return true;
}

static void end_replace(Sink *sink, const Mark *mark, const char *with) {
        if (!mark->used)
                return;
        sink_string(sink, ",'");
        sink_string(sink, mark->text);
        sink_string(sink, "',");
        sink_string(sink, with);
        sink_char(sink, ')');
}

static void write_replaced(Sink *sink, const char *text, size_t size, bool newline, bool carriage_return) {
        Mark lf = { .used = newline }, cr = { .used = carriage_return };
        const char stops[] = { '\'', newline ? '\n' : '\'', carriage_return ? '\r' : '\'' };

        if (!choose_mark(&lf, text, size, "\\n", "\\012") || !choose_mark(&cr, text, size, "\\r", "\\015")) {
                sql_literal_cast_text(sink, text, size);
                return;
        }
        sink_string(sink, newline && carriage_return ? "replace(replace('" : "replace('");
        for (size_t done = 0; done < size;) {
                size_t n = done;

                while (n < size && text[n] != stops[0] && text[n] != stops[1] && text[n] != stops[2])
                        n++;
                sink_write(sink, text + done, n - done);
                if (n < size)
                        sink_string(sink, text[n] == '\'' ? "''" : text[n] == '\n' ? lf.text : cr.text);
                done = n + 1;
        }
        sink_char(sink, '\'');
        end_replace(sink, &cr, "char(13)");
        end_replace(sink, &lf, "char(10)");
}

/* ---- Values ------------------------------------------------------------------------------------------------------- */

static void write_text(Sink *sink, const char *text, size_t size, SqlLiteralFlags flags) {
        bool newline = (flags & SQL_LITERAL_ONE_LINE) && memchr(text, '\n', size);
        bool carriage_return = memchr(text, '\r', size);

        if (!g_utf8_validate_len(text, size, NULL)) /* this function accepts no NUL */
                sql_literal_cast_text(sink, text, size);
        else if (newline || carriage_return)
                write_replaced(sink, text, size, newline, carriage_return);
        else
                sql_literal_quoted(sink, text, size, '\'');
}

/* SQLite 3.40 reads some smaller numbers with a wrong last bit, whatever the number of digits. */
#define SMALLEST_THAT_IS_READ 1e-280

void sql_literal_real(Sink *sink, double value) {
        char *number = sink_reserve(sink, FORMAT_NUMBER_SIZE);

        if (isnan(value)) /* SQLite has no NaN, but a stream might */
                sink_string(sink, "NULL");
        else if (isinf(value) || value == 0 || fabs(value) == DBL_MAX) /* SQLite 3.46 reads its 19 digits as infinite */
                sink_advance(sink, format_double_exact(number, value));
        else if (fabs(value) >= SMALLEST_THAT_IS_READ)
                sink_advance(sink, format_double(number, value, FORMAT_DIGITS_EXACT));
        else {
                sink_advance(sink, format_double(number, ldexp(value, 1074), FORMAT_DIGITS_EXACT));
                sink_string(sink, "*5e-324"); /* 2^-1074 */
        }
}

void sql_literal_write(Sink *sink, const Value *value, SqlLiteralFlags flags) {
        switch (value->type) {
        case SQLIPC_INTEGER:
                sink_advance(sink, format_integer(sink_reserve(sink, FORMAT_NUMBER_SIZE), value->integer));
                return;
        case SQLIPC_REAL:
                sql_literal_real(sink, value->real);
                return;
        case SQLIPC_TEXT:
                write_text(sink, value->bytes, value->size, flags);
                return;
        case SQLIPC_BLOB:
                sink_string(sink, "X'");
                sink_hex(sink, value->bytes, value->size);
                sink_char(sink, '\'');
                return;
        case SQLIPC_NULL:
                break;
        }
        sink_string(sink, "NULL");
}
