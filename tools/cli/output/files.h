/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Helpers for files. */
#ifndef SQLIPC_TOOLS_CLI_OUTPUT_FILES_H
#define SQLIPC_TOOLS_CLI_OUTPUT_FILES_H

#include <stddef.h>

/** Writes all bytes. Returns 0 or -errno. */
int write_all(int fd, const char *bytes, size_t size);

/** Opens a file without a name in $TMPDIR, else /tmp, for reading and writing. Returns its descriptor, or -errno. */
int open_scratch(void);

#endif
