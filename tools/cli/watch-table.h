/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What .watch shows of a result, and what is different from the one before. Pure.
 *
 * Rows are known again by their first column, where it is different in each row of both results and there are other
 * columns; else by their position. Of a long result the first rows are held, WATCH_BYTES_MAX of them; then only the
 * number of rows is compared.
 */
#ifndef CLI_WATCH_TABLE_H
#define CLI_WATCH_TABLE_H

#include <stdbool.h>

#include "value.h"

#define WATCH_ROWS_MAX ((size_t) 1000)
#define WATCH_BYTES_MAX ((size_t) 1024 * 1024)
/* Of a value so much is shown. */
#define WATCH_VALUE_MAX ((size_t) 200)

typedef struct WatchTable WatchTable;

typedef struct WatchChanges {
        uint64_t n_new, n_gone; /* rows */
        uint64_t n_changed;     /* cells of rows that stayed; 0 where the result is not held whole */
} WatchChanges;

/** `null` stands for NULL. Names and it are copied. */
WatchTable *watch_table_new(const char *const *names, size_t n_columns, const char *null);
/** NULL is allowed. Returns NULL. */
WatchTable *watch_table_free(WatchTable *table);
void watch_table_freep(WatchTable **table);

/** Takes a row: counts it, and holds it while there is room. */
void watch_table_add(WatchTable *table, const Value *values);
uint64_t watch_table_count(const WatchTable *table);

/** Marks what is not as it was in `before`; NULL, or other columns: nothing. */
WatchChanges watch_table_compare(WatchTable *table, const WatchTable *before);

/** Lines of at most `width` columns, `height` of them, each with its newline: names, and as many rows as there is
 * room for. What changed is shown in reverse, without `colors` with a * behind it. To be freed. */
char *watch_table_draw(const WatchTable *table, size_t width, size_t height, bool colors);

#endif
