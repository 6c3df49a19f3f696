/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Types of columns and values for .import. Pure.
 *
 * A text is a number only if nothing of it would be lost, which is found out by writing the number back:
 *
 *      in csv and tsv  the same text: 007, +1, 1.10, 1e3, -0, 0.12345678901234567 and integers past 64 bits stay texts
 *      in JSON         the same number: 1.10 and 1e3 are numbers, and integers past 64 bits and 1e-400 become texts
 */
#ifndef SQLIPC_TOOLS_CLI_IMPORT_COLUMN_TYPE_H
#define SQLIPC_TOOLS_CLI_IMPORT_COLUMN_TYPE_H

#include <stdbool.h>

#include "tools/terminal/value.h"

/* The types of values that were seen in a column of a file, a bit for each. */
typedef unsigned ColumnTypes;
#define COLUMN_TYPE(type) (1u << (type))
/* One of them is a REAL without a fraction. */
#define COLUMN_WHOLE_REAL (1u << 31)

typedef enum ColumnKeeps {
        COLUMN_KEEPS_TEXT,   /* the shell writes the number like the text, in csv and tsv */
        COLUMN_KEEPS_NUMBER, /* the digits are those of the number: in JSON, and in a column for numbers */
} ColumnKeeps;

/** Returns true if the text is a number that keeps what `keeps` says; `*ret` is the number. */
bool column_read_number(const char *text, size_t size, ColumnKeeps keeps, Value *ret);

/** The types of one value. */
ColumnTypes column_types_of(const Value *value);

/** The type of a new column that holds values of these types, and leaves numbers as they are; "" if no type does. `of_text`:
 * the types were seen in texts, which may be texts instead. */
const char *column_type_for(ColumnTypes types, bool of_text);

/** The affinity that SQLite derives from the declared type of a column: 'I' INTEGER, 'R' REAL, 'N' NUMERIC, 'T' TEXT,
 * 'B' BLOB or none. NULL: none was declared. */
char column_affinity(const char *declared);

bool column_is_for_numbers(char affinity);

/** Returns true if the value belongs in a column of the affinity: a text belongs in one for INTEGER or REAL only if
 * SQLite stores it as a number there, such as "007". */
bool column_takes(char affinity, const Value *value);

#endif
