/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads objects of JSON, one on a line; SQLite checks their syntax. true and false are 1 and 0, a number that would lose
 * something is a text, arrays and objects are texts of JSON, except {"base64": "..."}, which is a BLOB, as the shell
 * writes it.
 */
#ifndef SQLIPC_TOOLS_CLI_IMPORT_JSON_LINES_H
#define SQLIPC_TOOLS_CLI_IMPORT_JSON_LINES_H

#include <glib.h>
#include <stdbool.h>

#include "tools/terminal/value.h"

typedef struct JsonLines JsonLines;

/** Called for each member of an object; the strings are valid until it returns. A number also has its text. Returns NULL, or
 * a text that says what is wrong. */
typedef const char *(*JsonMember)(const char *name, const Value *value, void *userdata);

/** `newline`: the character that ends a line; `line`: the number of the first one. */
JsonLines *json_lines_new(char newline, uint64_t line);
/** NULL is allowed. Returns NULL. */
JsonLines *json_lines_free(JsonLines *reader);

/** Sets the part of the file in which the next line begins; borrowed. `is_last`: the part ends with the file. */
void json_lines_feed(JsonLines *reader, const char *text, size_t size, bool is_last);

/** Reads the next line that is not empty. Returns 1; 0: the end; -EAGAIN: the part has no more whole line, and feed one that
 * begins at json_lines_position(); -EBADMSG: `*ret_fault`, a text of this module or of `member`, says what is wrong with the
 * line. `*ret_line` is its number, from 1. */
int json_lines_next(JsonLines *reader, JsonMember member, void *userdata, uint64_t *ret_line, const char **ret_fault);

/** The number of bytes of the part that have been read. */
size_t json_lines_position(const JsonLines *reader);

#endif
