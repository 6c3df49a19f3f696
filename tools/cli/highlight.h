/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Colours for what is typed. The line editor draws it plain; this draws the same characters over it in colours, and only
 * where it is certain where they stand. Pure.
 */
#ifndef CLI_HIGHLIGHT_H
#define CLI_HIGHLIGHT_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

/* Text as it stands on the screen: prompt, then text, on rows of so many columns. */
typedef struct HighlightText {
        const char *text;
        size_t size, cursor;  /* bytes */
        const char *open;     /* what begins the string, name or comment that the lines before end within: "'"; NULL: none */
        bool started;         /* a statement is under way: "." begins no command */
        size_t prompt_width;
        size_t columns, rows; /* of the screen */
} HighlightText;

/** Appends what paints `text` while the terminal's cursor stands at `.cursor`, and puts it back there. False, and nothing
 * appended, where it is not certain what stands where (controls, characters without width, more rows than the screen
 * has). */
bool highlight_paint(const HighlightText *text, GString *output);

#endif
