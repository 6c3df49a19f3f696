/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Colours the line that is being typed, see highlight.h. Pure. */
#include "tools/cli/prompt/highlight.h"

#include <string.h>
#include <wchar.h>


typedef enum Color {
        COLOR_PLAIN,
        COLOR_KEYWORD,
        COLOR_STRING,
        COLOR_NUMBER,
        COLOR_QUOTED,
        COLOR_PARAMETER,
        COLOR_COMMENT,
        COLOR_COMMAND,
        COLOR_OPEN, /* a string or name that is not closed yet, and characters that SQL does not use */
} Color;

/* Each sequence begins with a reset. */
static const char *const sequences[] = {
        [COLOR_PLAIN] = "\033[0m",     [COLOR_KEYWORD] = "\033[0;1;34m", [COLOR_STRING] = "\033[0;32m",
        [COLOR_NUMBER] = "\033[0;35m", [COLOR_QUOTED] = "\033[0;33m",    [COLOR_PARAMETER] = "\033[0;36m",
        [COLOR_COMMENT] = "\033[0;90m",  [COLOR_COMMAND] = "\033[0;1;36m", [COLOR_OPEN] = "\033[0;31m",
};

static Color color_of(const SqlToken *token) {
        static const uint8_t colors[] = {
                [SQL_COMMENT] = COLOR_COMMENT, [SQL_KEYWORD] = COLOR_KEYWORD, [SQL_QUOTED] = COLOR_QUOTED,
                [SQL_STRING] = COLOR_STRING,   [SQL_BLOB] = COLOR_STRING,     [SQL_NUMBER] = COLOR_NUMBER,
                [SQL_PARAMETER] = COLOR_PARAMETER, [SQL_BACKSLASH] = COLOR_COMMAND, [SQL_OTHER] = COLOR_OPEN,
        };

        if (token->open && token->type != SQL_COMMENT)
                return COLOR_OPEN;
        return token->type < G_N_ELEMENTS(colors) ? colors[token->type] : COLOR_PLAIN;
}

/* ---- The colour of each byte -------------------------------------------------------------------------------------- */

static size_t end_of_word(const char *text, size_t size, size_t position) {
        while (position < size && !g_ascii_isspace(text[position]))
                position++;
        return position;
}

static size_t end_of_line(const char *text, size_t size, size_t position) {
        const char *newline = memchr(text + position, '\n', size - position);

        return newline ? (size_t) (newline - text) : size;
}

/* Colours a dot-command or a backslash command: its name, and the rest of the line plain. Returns the end of the line. */
static size_t color_command(const char *text, size_t size, size_t start, uint8_t *colors) {
        size_t word = end_of_word(text, size, start), end = end_of_line(text, size, start);

        memset(colors + start, COLOR_COMMAND, word - start);
        memset(colors + word, COLOR_PLAIN, end - word);
        return end;
}

/* Colours each byte. `text` begins with the start of the open string, name or comment. */
static void color_bytes(SqlDialect dialect, const char *text, size_t size, bool started, uint8_t *colors) {
        size_t position = 0;
        SqlToken token;

        while (sql_scan_next(dialect, text, size, &position, &token)) {
                if (token.type == SQL_BACKSLASH || (!started && token.type == SQL_OPERATOR && text[token.start] == '.')) {
                        position = color_command(text, size, token.start, colors);
                        started = false;
                        continue;
                }
                memset(colors + token.start, (int) color_of(&token), token.size);
                if (token.type == SQL_SEMICOLON)
                        started = false;
                else if (token.type != SQL_SPACE && token.type != SQL_COMMENT)
                        started = true;
        }
}

/* ---- Positions on the screen -------------------------------------------------------------------------------------- */

typedef struct Place {
        size_t row, column;
} Place;

typedef struct Painter {
        const HighlightText *text;
        GString *output;
        Place place;   /* of the next character, as the line editor placed it */
        Place drawn;   /* position of the terminal's cursor */
        Place cursor;  /* place of text->cursor, once that is reached */
        bool wrapped;  /* the previous row is full */
        Color color;
} Painter;

static void next_row(Painter *painter, bool wrapped) {
        painter->place = (Place) { .row = painter->place.row + 1 };
        painter->wrapped = wrapped;
}

/* Moves the terminal's cursor down to the row of the next character. That row exists already, so that nothing scrolls. */
static void follow(Painter *painter) {
        for (; painter->drawn.row < painter->place.row; painter->drawn = (Place) { .row = painter->drawn.row + 1 })
                g_string_append(painter->output, "\r\n");
}

static void draw(Painter *painter, const char *bytes, size_t size, size_t width, Color color) {
        follow(painter);
        if (color != painter->color)
                g_string_append(painter->output, sequences[color]);
        painter->color = color;
        g_string_append_len(painter->output, bytes, (gssize) size);
        painter->wrapped = false;
        painter->place.column += width;
        painter->drawn.column = painter->place.column;
        if (painter->place.column >= painter->text->columns)
                next_row(painter, true);
}

static void draw_tab(Painter *painter) {
        for (size_t n = 8 - painter->place.column % 8; n > 0; n--)
                draw(painter, " ", 1, 1, COLOR_PLAIN);
}

/* Paints one character, and returns its bytes. Returns 0 if its effect on the screen is not certain. */
static size_t paint_character(Painter *painter, const char *bytes, size_t size, Color color) {
        gunichar c = g_utf8_get_char_validated(bytes, (gssize) size);
        size_t taken;
        int width;

        if (c == '\t') {
                draw_tab(painter);
                return 1;
        }
        if (c == '\n') {
                if (painter->wrapped)
                        return 0; /* terminals differ in their handling of a newline after a full row */
                next_row(painter, false);
                return 1;
        }
        if (c == (gunichar) -1 || c == (gunichar) -2)
                return 0;
        width = wcwidth((wchar_t) c);
        taken = (size_t) g_unichar_to_utf8(c, NULL);
        if (width < 1 || painter->place.column + (size_t) width > painter->text->columns)
                return 0;
        draw(painter, bytes, taken, (size_t) width, color);
        return taken;
}

static bool paint_characters(Painter *painter, const uint8_t *colors) {
        const HighlightText *text = painter->text;
        size_t done = 0, taken;

        for (; done < text->size; done += taken) {
                if (done == text->cursor)
                        painter->cursor = painter->place;
                taken = paint_character(painter, text->text + done, text->size - done, colors[done]);
                if (taken == 0 || painter->place.row >= text->rows)
                        return false;
        }
        if (text->cursor >= text->size)
                painter->cursor = painter->place;
        return true;
}

/* Moves from the end of the characters to the cursor. */
static void go_back(Painter *painter) {
        size_t down = painter->drawn.row, wanted = painter->cursor.row;

        g_string_append(painter->output, sequences[COLOR_PLAIN]);
        g_string_append_c(painter->output, '\r');
        for (; down < wanted; down++)
                g_string_append_c(painter->output, '\n');
        if (down > wanted)
                g_string_append_printf(painter->output, "\033[%zuA", down - wanted);
        if (painter->cursor.column > 0)
                g_string_append_printf(painter->output, "\033[%zuC", painter->cursor.column);
}

bool highlight_paint(const HighlightText *text, GString *output) {
        g_autofree char *all = g_strconcat(text->open ?: "", text->text, NULL);
        size_t n_open = text->open ? strlen(text->open) : 0;
        g_autofree uint8_t *colors = NULL;
        g_autoptr(GString) body = g_string_new(NULL);
        Place start = { .column = text->prompt_width };
        Painter painter = { .text = text, .output = body, .place = start, .drawn = start, .color = COLOR_PLAIN };

        if (text->prompt_width >= text->columns || text->size > text->columns * text->rows * 4)
                return false;
        colors = g_malloc0(n_open + text->size + 1);
        color_bytes(text->dialect, all, n_open + text->size, text->started, colors);
        if (!paint_characters(&painter, colors + n_open))
                return false;
        go_back(&painter);

        if (painter.cursor.row > 0)
                g_string_append_printf(output, "\033[%zuA", painter.cursor.row);
        g_string_append_c(output, '\r');
        if (text->prompt_width > 0)
                g_string_append_printf(output, "\033[%zuC", text->prompt_width);
        g_string_append_len(output, body->str, (gssize) body->len);
        return true;
}
