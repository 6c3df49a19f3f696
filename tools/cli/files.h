/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What more than one place does with files. */
#ifndef CLI_FILES_H
#define CLI_FILES_H

#include <stddef.h>

/** Writes all of it. 0 or -errno. */
int write_all(int fd, const char *bytes, size_t size);

/** A file without a name, in $TMPDIR, else /tmp: its descriptor, to be read and written, or -errno. */
int open_scratch(void);

#endif
