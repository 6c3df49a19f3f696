/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads a file through a window, so that memory depends on its longest row, not on its size. A byte order mark at the
 * beginning is skipped.
 */
#ifndef SQLIPC_TOOLS_CLI_IMPORT_IMPORT_INPUT_H
#define SQLIPC_TOOLS_CLI_IMPORT_IMPORT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ImportInput {
        int fd;          /* owned; a regular file */
        size_t chunk;    /* the least size of the window */
        size_t max;      /* the largest size of the window */
        char *text;      /* owned: the window, */
        size_t size;     /* of this size */
        bool is_last;    /* the window reaches to the end of the file */
        size_t allocated;
        uint64_t passed; /* bytes of the file before the window */
        uint64_t total;  /* bytes of the file */
        char newline;    /* ends a line: LF, or CR in a file of such lines */
} ImportInput;

/** `fd` is closed by import_input_done(), also after an error. Returns 0 or -errno. */
int import_input_init(ImportInput *input, int fd, size_t chunk, size_t max);
void import_input_done(ImportInput *input);

/** Sets `input->newline`: CR if the file has one, and no LF. `has_quotes`: those within quotes do not count. Returns 0 or
 * -errno. */
int import_input_find_newline(ImportInput *input, bool has_quotes);

/** Moves the window by `used` bytes, and enlarges it towards the end of the file. Returns 0; -EFBIG: the window would become
 * larger than `max`; or the error of reading. */
int import_input_more(ImportInput *input, size_t used);

/** Goes back to the beginning, and skips so many lines. Returns as import_input_more() does. */
int import_input_rewind(ImportInput *input, uint64_t n_lines);

#endif
