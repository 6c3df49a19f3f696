/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads csv (RFC 4180) and tsv. Pure.
 *
 * A field in quotes may contain separators, newlines, and quotes that are doubled; blanks around it are not allowed.
 * In a field without quotes, a quote is a character like others. A line ends with LF or CR LF, or with CR in a file of such
 * lines. Empty lines are skipped, unless they are the rows of a table of one column.
 *
 * An empty field is NULL if it is not quoted, else an empty text.
 */
#ifndef SQLIPC_TOOLS_CLI_IMPORT_DELIMITED_H
#define SQLIPC_TOOLS_CLI_IMPORT_DELIMITED_H

#include <glib.h>
#include <stdbool.h>

#include "tools/terminal/value.h"

typedef struct Delimited {
        const char *text;      /* borrowed; a part of a file */
        size_t size, position; /* of .text */
        bool is_last;          /* the part ends with the file */
        uint64_t line;         /* of .position, from 1 */
        char separator, newline;
        bool keeps_empty;      /* an empty line is a row */
        GArray *fields;        /* of Value: the last row, TEXT or NULL; they point into .text or .unquoted */
        GStringChunk *unquoted;
} Delimited;

/** `line`: the number of the first line. */
void delimited_begin(Delimited *reader, char separator, char newline, uint64_t line);
void delimited_done(Delimited *reader);

/** Sets the part of the file in which the next row begins. */
void delimited_feed(Delimited *reader, const char *text, size_t size, bool is_last);

/** Reads the next row. Returns 1: `reader->fields` has it until the next call; 0: the end; -EAGAIN: the part has no more
 * whole row, and feed one that begins at .position; -EBADMSG: `*ret_fault`, a static text, says what is wrong with the row,
 * which was skipped. `*ret_line`: the line on which it begins. */
int delimited_next(Delimited *reader, uint64_t *ret_line, const char **ret_fault);

#endif
