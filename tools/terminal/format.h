/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Values as text. Pure: bytes in, bytes out; the locale (LC_CTYPE, a UTF-8 one) decides widths only.
 *
 * Two families:
 *   - exact: the same bytes as sqlite3's shell writes (numbers);
 *   - shown: text that is safe on a terminal. The output of format_shown_*() cannot move a cursor, change a colour,
 *     reorder a line or end one, whatever the bytes were: controls, invalid UTF-8 and bidirectional overrides are written
 *     as \n, \x1b, \u202e.
 */
#ifndef SQLIPC_TOOLS_TERMINAL_FORMAT_H
#define SQLIPC_TOOLS_TERMINAL_FORMAT_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "tools/terminal/value.h"

/* Room for any double or int64, with its NUL. */
#define FORMAT_NUMBER_SIZE 64

/* Significant digits of REAL: sqlite3 shows 15, and writes 20 into JSON, so that they read back as the same double. */
enum { FORMAT_DIGITS_SHORT = 15, FORMAT_DIGITS_EXACT = 20 };

/* Marks a place where text was cut. */
#define FORMAT_ELLIPSIS "\342\200\246"

/* A longer BLOB is cut after this number of bytes, and its length is shown. */
enum { FORMAT_BLOB_SHOWN_MAX = 32 };

/** Writes `value` as SQLite's printf("%!.*g") does, "1.0e+300", "0.3", "-Inf". Returns the length. */
size_t format_double(char ret_buffer[static FORMAT_NUMBER_SIZE], double value, int digits);

/** Writes an integer in decimal. Returns the length. */
size_t format_integer(char ret_buffer[static FORMAT_NUMBER_SIZE], int64_t value);

/** Writes `value` with the fewest digits, FORMAT_DIGITS_SHORT or more, that both strtod() and SQLite read as the same double
 * (below 1e-290 only strtod(), since SQLite has no such digits there), laid out as format_double() does; an infinity as
 * 1e999 or -1e999, and nothing for NaN. Returns the length. */
size_t format_double_exact(char ret_buffer[static FORMAT_NUMBER_SIZE], double value);

/** Writes INTEGER or REAL in decimal, REAL with FORMAT_DIGITS_SHORT. Returns the length. */
size_t format_number(char ret_buffer[static FORMAT_NUMBER_SIZE], const Value *value);

/** Appends text in a form that is safe to show. Stops before the first character that would take the output past `max` bytes
 * (SIZE_MAX: no limit). Returns the bytes of `text` that were shown. */
size_t format_shown_text(GString *output, const char *text, size_t size, size_t max);

/** The same, but newlines and tabs stay as they are, and CR LF is a newline. */
size_t format_shown_lines(GString *output, const char *text, size_t size, size_t max);

/** Appends x'0123', or x'0123' with an ellipsis and its length if it is longer than FORMAT_BLOB_SHOWN_MAX. */
void format_shown_blob(GString *output, const void *blob, size_t size);

/** Appends any value in a form that is safe to show; `null` is written for NULL. A text that takes more than `max` bytes is
 * cut, and its size is shown. */
void format_shown_value(GString *output, const Value *value, const char *null, size_t max);

/** Columns that shown text takes on a terminal. */
size_t format_shown_width(const char *text, size_t size);

/** Bytes of printable ASCII at the beginning of the text, each of which is a cluster of one column. */
size_t format_plain_clusters(const char *text, size_t size);

/** The first grapheme cluster of shown text, which has at least one byte: a character with its marks, a flag, an emoji with
 * everything that is joined to it. Returns the number of its bytes; `*ret_width`: its columns, 0 for a character that cannot
 * be printed. */
size_t format_next_cluster(const char *text, size_t size, size_t *ret_width);

/** Decodes the first character of `text`, which has at least one byte. False if it is not valid; NUL counts as valid. */
bool format_next_character(const char *text, size_t size, gunichar *ret_character, size_t *ret_size);

/** True if the character is not seen, but acts on a terminal or on the order of the characters beside it. */
bool format_is_harmful(gunichar c);

#endif
