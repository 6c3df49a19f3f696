/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * SQL and parameters that a client sends in a file of its own (call-arguments.h). The supervisor checks that no process can
 * change the file any more, and hands its descriptor to a worker, which trusts its content as little. The memory is the
 * client's. Supervisor.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_CALLS_ARGUMENT_FILE_H
#define SQLIPC_DAEMON_SUPERVISOR_CALLS_ARGUMENT_FILE_H

#include <stdint.h>

#include "daemon/supervisor/base/refusal.h"

typedef struct ArgumentFile {
        int fd;        /* owned; -1: there is none */
        uint64_t size;
} ArgumentFile;

#define ARGUMENT_FILE_INIT ((ArgumentFile) { .fd = -1 })

/* Duplicates the descriptor, which is borrowed from the message, and checks it. -1: there is none. INVALID_OPTION,
 * LIMITS_EXCEEDED; -errno. */
int argument_file_take(int fd, ArgumentFile *ret, Refusal *refusal);

/* Reads the first `size` bytes of the SQL of the first statement, for lists. Returns how many there are; 0 if they cannot be
 * read. */
size_t argument_file_read_sql(const ArgumentFile *file, char *buffer, size_t size);

/* Closes the file. Accepts ARGUMENT_FILE_INIT. */
void argument_file_done(ArgumentFile *file);

#endif
