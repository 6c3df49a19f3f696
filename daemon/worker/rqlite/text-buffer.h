/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Text of SQL or JSON that grows at its end, up to a limit. Pure except for malloc(). Errors are sticky: after
 * the first one nothing is added, so callers check once.
 */
#ifndef SQLIPC_DAEMON_WORKER_RQLITE_TEXT_BUFFER_H
#define SQLIPC_DAEMON_WORKER_RQLITE_TEXT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum TextState {
        TEXT_GOOD,
        TEXT_TOO_LARGE, /* it would be over size_max */
        TEXT_NO_MEMORY,
} TextState;

typedef struct TextBuffer {
        char *bytes;      /* owned; a NUL follows the text; NULL: nothing was added */
        size_t size, capacity;
        size_t size_max;  /* 0: none */
        TextState state;
} TextBuffer;

/* Frees the text. Only the limit stays. */
void text_buffer_done(TextBuffer *t);

/* Forgets everything after `size`, and an error. */
void text_buffer_cut(TextBuffer *t, size_t size);

void text_buffer_add(TextBuffer *t, const void *bytes, size_t size);
void text_buffer_puts(TextBuffer *t, const char *text);
void text_buffer_printf(TextBuffer *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds bytes as hexadecimal digits. */
void text_buffer_add_hex(TextBuffer *t, const uint8_t *bytes, size_t size);

/* Adds a JSON string. The bytes must be valid UTF-8 (text_is_utf8()); they may contain NULs. */
void text_buffer_add_json_string(TextBuffer *t, const char *bytes, size_t size);

/* Adds a finite number so that a parser of JSON gets the same double, and never an integer: 1.0, not 1. */
void text_buffer_add_json_double(TextBuffer *t, double value);

/* Adds a string literal of SQL. The bytes must have no NUL. */
void text_buffer_add_sql_string(TextBuffer *t, const char *bytes, size_t size);

/* Adds a name in double quotes. */
void text_buffer_add_sql_name(TextBuffer *t, const char *name);

/* True if the bytes are UTF-8 as RFC 3629 has it: shortest forms, no surrogates. */
bool text_is_utf8(const char *bytes, size_t size);

#endif
