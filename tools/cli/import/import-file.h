/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rows of a file that is imported, as values for the columns of a table. A file is read twice: first to find all its
 * faults and the types of its columns, then for its rows.
 */
#ifndef SQLIPC_TOOLS_CLI_IMPORT_IMPORT_FILE_H
#define SQLIPC_TOOLS_CLI_IMPORT_IMPORT_FILE_H

#include <glib.h>
#include <stdbool.h>

#include "tools/cli/import/column-type.h"
#include "tools/cli/import/import-input.h"

typedef enum ImportFormat {
        IMPORT_CSV,
        IMPORT_TSV,
        IMPORT_JSONL,
} ImportFormat;

typedef struct ImportColumn {
        char *name;         /* owned */
        char affinity;      /* as of column_affinity(); 0: not known yet */
        bool reads_numbers; /* texts of csv and tsv are read as numbers */
        bool not_null;      /* of a table that exists */
        bool generated;     /* the same; no file can have it */
        ColumnTypes types;  /* that the values in the file have; of a new table */
} ImportColumn;

typedef struct ImportFile {
        ImportFormat format;
        bool has_header;     /* csv and tsv: the first line may name the columns */
        uint64_t n_skipped;  /* lines to skip at the beginning */
        const GArray *table; /* borrowed; of ImportColumn: those of the table; NULL: it is made for the file */
        ImportInput input;   /* owned */

        GArray *columns;     /* of ImportColumn: those of the file; known after the check */
        const Value *values; /* of the last row, one for each column, until the next call */
        uint64_t line;       /* on which the last row, or fault, begins */
        GString *fault;      /* what is wrong with the last row */
        struct ImportReader *reader; /* owned */
} ImportFile;

/** Takes ownership of the input. The caller may then set the other members of the first part. */
ImportFile *import_file_new(ImportFormat format, const ImportInput *input);
/** NULL is allowed. Returns NULL. */
ImportFile *import_file_free(ImportFile *file);

/** An array of ImportColumn. */
GArray *import_columns_new(void);

/** Begins the check: finds the columns of csv and tsv. If the first line names no column of the table at all, it is a row,
 * and the columns are those of the table in their order. Returns 0; -EBADMSG: `file->fault`; or the error of reading. */
int import_file_begin(ImportFile *file);
/** Checks a row. Returns 1; 0: the end; -EBADMSG: `file->fault` says what is wrong with it; or the error of reading. */
int import_file_check(ImportFile *file);

/** Begins again, after a check without faults. Returns 0, or the error of reading. */
int import_file_rewind(ImportFile *file);
/** Reads a row. Returns 1; 0: the end; -EBADMSG: the file has changed since the check; or the error of reading. */
int import_file_next(ImportFile *file);
/** The part of the file that has been read, from 0 to 1. */
double import_file_done(const ImportFile *file);

/** The CREATE TABLE statement for the columns of the file, after the check; the caller frees it. */
char *import_file_create_sql(const ImportFile *file, const char *table);
/** The INSERT statement; the caller frees it. */
char *import_file_insert_sql(const ImportFile *file, const char *table);

#endif
