/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Text as JSON writes it: always valid JSON in UTF-8, whatever the bytes were. A NUL is \u0000, a byte that is not UTF-8 is
 * U+FFFD, and characters that could drive a terminal or reorder a line are escaped like \u009b. Pure.
 */
#ifndef SQLIPC_TOOLS_TERMINAL_JSON_H
#define SQLIPC_TOOLS_TERMINAL_JSON_H

#include <glib.h>

#include "tools/terminal/sink.h"

/** Writes a string with its quotes. */
void json_write_string(Sink *sink, const char *text, size_t size);

/** The same, appended. */
void json_append_string(GString *output, const char *text, size_t size);

#endif
