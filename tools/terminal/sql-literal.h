/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Values as SQL that gives the same value back, bit by bit, when sqlite3's shell reads it. Pure.
 *
 *      INTEGER  -12
 *      REAL     1.5  0.10000000000000000555  1e999  -0.0   20 digits, as sqlite3's shell has it
 *               22517998136852480.0*5e-324                 below 1e-280, where SQLite 3.40 misreads some decimals
 *      TEXT     'it''s'
 *               CAST(x'610062' AS TEXT)                    with a NUL, or if it is not UTF-8
 *               replace('one\ntwo','\n',char(10))          characters that a script loses: the shell strips CR at line ends
 *      BLOB     X'00ff'
 *      NULL     NULL
 */
#ifndef SQLIPC_TOOLS_TERMINAL_SQL_LITERAL_H
#define SQLIPC_TOOLS_TERMINAL_SQL_LITERAL_H

#include "tools/terminal/sink.h"
#include "tools/terminal/value.h"

typedef enum SqlLiteralFlags {
        SQL_LITERAL_ONE_LINE = 1 << 0, /* write no newline, like sqlite3's .dump; otherwise only CR is replaced */
} SqlLiteralFlags;

/** Writes any value. */
void sql_literal_write(Sink *sink, const Value *value, SqlLiteralFlags flags);

/** Writes a text between `quote` characters ('), and doubles each of them in the text. */
void sql_literal_quoted(Sink *sink, const char *text, size_t size, char quote);

/** Writes CAST(x'...' AS TEXT). */
void sql_literal_cast_text(Sink *sink, const char *text, size_t size);

/** Writes REAL as SQLite's shell does (see above). */
void sql_literal_real(Sink *sink, double value);

#endif
