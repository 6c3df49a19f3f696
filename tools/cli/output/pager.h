/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A pager that reads from a spool, so that the writer never waits for it, however long it stays open.
 *
 *      pager_start ──> pager_write ... pager_pump (if pager_pollfd() is ready) ... ──> pager_end ──> pager_free
 */
#ifndef SQLIPC_TOOLS_CLI_OUTPUT_PAGER_H
#define SQLIPC_TOOLS_CLI_OUTPUT_PAGER_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct Pager Pager;

/** The pager to use: `setting`, or if that is NULL $PAGER, or less -SR. NULL: none. */
const char *pager_command(const char *setting);

/** Starts `command`. At most `ahead_max` bytes may wait for it. Returns -errno of starting it, or of creating the temporary
 * file. */
int pager_start(const char *command, uint64_t ahead_max, Pager **ret);
/** Frees it, even without pager_end(). NULL is allowed. Returns NULL. */
Pager *pager_free(Pager *pager);

/** Takes bytes. Returns -EPIPE: the user quit it, or too much data waits, which its last line says; -ENOEXEC: it could not
 * be started, and has read nothing; else the error of writing to the spool. */
int pager_write(Pager *pager, const char *bytes, size_t size);
struct pollfd pager_pollfd(const Pager *pager);
/** Passes on the bytes that the pager accepts now. Returns -EPIPE or -ENOEXEC as pager_write() does. */
int pager_pump(Pager *pager);
/** Passes on the rest, waits until the user quits the pager, then restores the terminal. Returns -EPIPE: it was quit before
 * it had read everything; -ENOEXEC; 0. */
int pager_end(Pager *pager);

/** After -ENOEXEC: reads back the bytes that were written, as spool_peek() does. */
ssize_t pager_read_back(const Pager *pager, uint64_t offset, char *buffer, size_t size);

#endif
