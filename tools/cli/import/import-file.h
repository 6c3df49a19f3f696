/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rows of a file that is imported, as values for the columns of a table. Pure. A file is read twice: first to find all
 * its faults and the types of its columns, then for its rows.
 */
#ifndef SQLIPC_TOOLS_CLI_IMPORT_IMPORT_FILE_H
#define SQLIPC_TOOLS_CLI_IMPORT_IMPORT_FILE_H

#include <glib.h>
#include <stdbool.h>

#include "tools/cli/import/column-type.h"

typedef enum ImportFormat {
        IMPORT_CSV,
        IMPORT_TSV,
        IMPORT_JSONL,
} ImportFormat;

typedef struct ImportColumn {
        char *name;        /* owned */
        char affinity;     /* of a table that exists, as of column_affinity(); 0: new */
        bool not_null;     /* of a table that exists */
        ColumnTypes types; /* that the values in the file have */
} ImportColumn;

typedef struct ImportFile {
        ImportFormat format;
        GArray *columns;   /* of ImportColumn: those of the file; known after the check */
        uint64_t n_rows;   /* known after the check */
        struct ImportReader *reader; /* owned */
} ImportFile;

/** Called for each fault, in the order of the lines. */
typedef void (*ImportFault)(uint64_t line, const char *fault, void *userdata);

/** The text is borrowed. `has_header`: the first line of csv and tsv names the columns; otherwise they are those of `table`
 * in their order. */
ImportFile *import_file_new(ImportFormat format, const char *text, size_t size, bool has_header);
/** NULL is allowed. Returns NULL. */
ImportFile *import_file_free(ImportFile *file);

/** An array of ImportColumn. */
GArray *import_columns_new(void);

/** Reads the file to its end. `table`: the columns of the table; NULL: it is made for the file. Returns the number of
 * faults. */
uint64_t import_file_check(ImportFile *file, const GArray *table, ImportFault fault, void *userdata);

/** Begins again, after a check without faults. */
void import_file_rewind(ImportFile *file);
/** Returns 1: `*ret_values` has a value for each column, valid until the next call; 0: the end. */
int import_file_next(ImportFile *file, const Value **ret_values, uint64_t *ret_line);
/** The part of the file that has been read, from 0 to 1. */
double import_file_done(const ImportFile *file);

/** The CREATE TABLE statement for the columns of the file, after the check; the caller frees it. */
char *import_file_create_sql(const ImportFile *file, const char *table);
/** The INSERT statement for so many rows; the caller frees it. */
char *import_file_insert_sql(const ImportFile *file, const char *table, size_t n_rows);

#endif
