/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * SQL and parameters in a file: if they are too large for a D-Bus message, they come as a memfd, in the option "arguments".
 * The receiver of the call passes it on to a worker, which maps it, so the bytes are not copied on their way.
 *
 * The file is one statement, or several for ExecuteBatch, one after the other. A statement is four u32, little-endian: the
 * sizes of its SQL and of its row of parameters, and the numbers of its positional and named values. Then come the SQL with
 * a NUL after it, which its size does not count, and the row (sqlipc-page.h): the positional values, then name (TEXT) and
 * value of each named one. Without values there is no row. The size of the SQL is 0 if the call has it or needs none.
 *
 * A receiver trusts none of this. The file must be a memfd with all seals of CALL_ARGUMENTS_SEALS, so that no process can
 * change it after it was checked, or truncate it while it is read. It has no holes: a page that is read in a hole would be
 * memory of the process that reads it, not of the one that made the file.
 */
#ifndef SQLIPC_DBUS_INTERFACES_WIRE_CALL_ARGUMENTS_H
#define SQLIPC_DBUS_INTERFACES_WIRE_CALL_ARGUMENTS_H

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>

#define CALL_ARGUMENTS_HEAD_SIZE ((size_t) 16)
#define CALL_ARGUMENTS_SIZE_MAX (UINT64_C(2) << 30)
#define CALL_ARGUMENTS_SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* Makes a file of `size` bytes, with memory for all of them, and maps it to be written. The caller owns both, until it calls
 * call_arguments_seal(). -E2BIG; -errno of memfd_create(), posix_fallocate() or mmap(). */
int call_arguments_new(uint64_t size, int *ret_fd, uint8_t **ret);

/* Unmaps what was written, and seals the file. -errno: the file is closed. */
int call_arguments_seal(int fd, uint8_t *bytes, uint64_t size);

/* Writes the head of a statement. */
void call_arguments_write_head(uint8_t *at, size_t sql_size, size_t row_size, uint32_t n_positional, uint32_t n_named);

/* Checks the descriptor, and no content. -EBADMSG: it is no such file; -E2BIG; -ENODATA: it has less memory than bytes. */
int call_arguments_check(int fd, uint64_t *ret_size);

/* Maps a checked file to be read. -ENODATA: it has holes; -errno of mmap(). */
int call_arguments_map(int fd, uint64_t size, uint8_t **ret);

/* Accepts NULL. */
void call_arguments_unmap(uint8_t *bytes, uint64_t size);

#endif
