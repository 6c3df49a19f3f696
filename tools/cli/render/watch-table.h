/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The part of a result that .watch shows, and its differences from the previous one. Pure.
 *
 * Rows are matched by their first column if that is unique in both results and there are other columns; else by their
 * position. Of a long result only the first rows are held, at most WATCH_ROWS_MAX and about WATCH_BYTES_MAX; then only the
 * number of rows is compared.
 */
#ifndef SQLIPC_TOOLS_CLI_RENDER_WATCH_TABLE_H
#define SQLIPC_TOOLS_CLI_RENDER_WATCH_TABLE_H

#include <stdbool.h>

#include "tools/terminal/value.h"

#define WATCH_ROWS_MAX ((size_t) 1000)
#define WATCH_BYTES_MAX ((size_t) 1024 * 1024)
/* The bytes of a value that are shown. */
#define WATCH_VALUE_MAX ((size_t) 200)

typedef struct WatchTable WatchTable;

typedef struct WatchChanges {
        uint64_t n_new, n_gone; /* rows */
        uint64_t n_changed;     /* cells of rows that are in both; 0 if a result is not held completely */
} WatchChanges;

/** `null` is the text for NULL. Copies it and the names. */
WatchTable *watch_table_new(const char *const *names, size_t n_columns, const char *null);
/** NULL is allowed. Returns NULL. */
WatchTable *watch_table_free(WatchTable *table);
void watch_table_freep(WatchTable **table);

/** Takes a row: counts it, and holds it if there is room. */
void watch_table_add(WatchTable *table, const Value *values);
uint64_t watch_table_count(const WatchTable *table);

/** Marks the cells that differ from `before`; none if that is NULL or has other columns. */
WatchChanges watch_table_compare(WatchTable *table, const WatchTable *before);

/** Draws at most `height` lines of at most `width` columns, each with its newline: the names, and as many rows as fit.
 * Changed cells are shown in reverse; without `colors`, with a * after them. The caller frees the text. */
char *watch_table_draw(const WatchTable *table, size_t width, size_t height, bool colors);

#endif
