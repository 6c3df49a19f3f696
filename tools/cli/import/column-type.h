/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Types of columns and values for .import. Pure.
 *
 * A text is a number only if the number is written back like it, apart from zeros after the point: "007", "+1", "1e" and an
 * integer of 20 digits are texts, so that no digit is lost.
 */
#ifndef SQLIPC_TOOLS_CLI_IMPORT_COLUMN_TYPE_H
#define SQLIPC_TOOLS_CLI_IMPORT_COLUMN_TYPE_H

#include <stdbool.h>

#include "tools/terminal/value.h"

/* The types of values that were seen in a column of a file, a bit for each. */
typedef unsigned ColumnTypes;
#define COLUMN_TYPE(type) (1u << (type))

/** Returns true if the text is a number, which `*ret` then is. */
bool column_read_number(const char *text, size_t size, Value *ret);

/** The type of a new column that holds values of these types; "" if no type would leave them as they are. `of_text`: the
 * types were seen in texts, which may be texts instead. */
const char *column_type_for(ColumnTypes types, bool of_text);

/** The affinity that SQLite derives from the declared type of a column: 'I' INTEGER, 'R' REAL, 'N' NUMERIC, 'T' TEXT,
 * 'B' BLOB or none. NULL: none was declared. */
char column_affinity(const char *declared);

bool column_is_for_numbers(char affinity);

/** Returns true if the value belongs in a column of the affinity: a text belongs in one for INTEGER or REAL only if
 * SQLite stores it as a number there, such as "007". */
bool column_takes(char affinity, const Value *value);

#endif
