/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A pager that is fed from a spool: whoever writes never waits for it, however long it stays open.
 *
 *      pager_start ──> pager_write ... pager_pump (where pager_pollfd() says so) ... ──> pager_end ──> pager_free
 */
#ifndef CLI_PAGER_H
#define CLI_PAGER_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct Pager Pager;

/** The user's: `setting`, or where that is NULL $PAGER, or less -SR. NULL: none. */
const char *pager_command(const char *setting);

/** Starts `command`, behind which no more than `ahead_max` bytes wait. -errno of starting it, or of the temporary file. */
int pager_start(const char *command, uint64_t ahead_max, Pager **ret);
/** Frees it; ended or not. NULL is allowed. Returns NULL. */
Pager *pager_free(Pager *pager);

/** Takes bytes. -EPIPE: it was quit, or too much waits, which its last line says; -ENOEXEC: it could not be started, and
 * nothing was read; else what writing to the spool gave. */
int pager_write(Pager *pager, const char *bytes, size_t size);
struct pollfd pager_pollfd(const Pager *pager);
/** Hands on what it takes. -EPIPE, -ENOEXEC as pager_write(). */
int pager_pump(Pager *pager);
/** Hands on the rest, and waits until it is quit, then gives the terminal back as it was. -EPIPE: quit before it had all;
 * -ENOEXEC; 0. */
int pager_end(Pager *pager);

/** After -ENOEXEC: what was written, again. As spool_peek(). */
ssize_t pager_read_back(const Pager *pager, uint64_t offset, char *buffer, size_t size);

#endif
