/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Colours for the line that is being typed. The line editor draws it without colours, and this module draws the same
 * characters over it in colours, but only if it is certain about their positions on the screen. Pure.
 */
#ifndef SQLIPC_TOOLS_CLI_PROMPT_HIGHLIGHT_H
#define SQLIPC_TOOLS_CLI_PROMPT_HIGHLIGHT_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

#include "tools/cli/sql/sql-scan.h"

/* Text on the screen: first the prompt, then the text, on rows of `columns` columns. */
typedef struct HighlightText {
        const char *text;
        size_t size, cursor;  /* bytes */
        SqlDialect dialect;
        const char *open;     /* start of the string, name or comment that earlier lines left open: "'"; NULL: none */
        bool started;         /* a statement has begun, so that "." begins no command */
        size_t prompt_width;
        size_t columns, rows; /* of the screen */
} HighlightText;

/** Appends the bytes that paint `text` if the terminal's cursor is at `.cursor`, and that move the cursor back there.
 * Returns false, and appends nothing, if the positions are not certain (controls, characters without width, more rows than
 * the screen has). */
bool highlight_paint(const HighlightText *text, GString *output);

#endif
