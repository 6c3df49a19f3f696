/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Text as JSON writes it. Pure: bytes in, bytes out. */
#ifndef TERMINAL_JSON_H
#define TERMINAL_JSON_H

#include <glib.h>

/** Appends a string with its quotes: always valid JSON in UTF-8, whatever the bytes were. A NUL is \u0000, a byte that is no
 * UTF-8 U+FFFD. */
void json_append_string(GString *output, const char *text, size_t size);

#endif
