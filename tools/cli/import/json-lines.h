/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads objects of JSON, one on a line, with SQLite's own JSON functions. Pure. true and false are 1 and 0, arrays and
 * objects are texts of JSON, but {"base64": "..."} is a BLOB, as the shell writes it.
 */
#ifndef SQLIPC_TOOLS_CLI_IMPORT_JSON_LINES_H
#define SQLIPC_TOOLS_CLI_IMPORT_JSON_LINES_H

#include <glib.h>

#include "tools/terminal/value.h"

typedef struct JsonLines JsonLines;

/** Called for each member of an object; the strings are valid until it returns. Returns NULL, or a static text that says
 * what is wrong. */
typedef const char *(*JsonMember)(const char *name, const Value *value, void *userdata);

/** The text is borrowed. */
JsonLines *json_lines_new(const char *text, size_t size);
/** NULL is allowed. Returns NULL. */
JsonLines *json_lines_free(JsonLines *reader);

/** Reads the next line that is not empty. Returns 1; 0: the end; -EBADMSG: `*ret_fault`, a static text, says what is wrong
 * with the line. `*ret_line` is its number, from 1. */
int json_lines_next(JsonLines *reader, JsonMember member, void *userdata, uint64_t *ret_line, const char **ret_fault);

/** The number of bytes that have been read. */
size_t json_lines_position(const JsonLines *reader);

#endif
