/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The reason why something was refused or ended: a row of the error table, and a sentence that a user can act on. Pure.
 *
 * It is used in the supervisor as sd_bus_error is in bus methods: a function that may refuse takes a `Refusal *` and returns
 *
 *      return refuse(refusal, ERROR_BUSY, "The statement's last run has not ended.");
 *
 * which is the row's errno, negated. A negative result without a refusal is an unexpected errno. bus-error.h turns either
 * into a reply.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_BASE_REFUSAL_H
#define SQLIPC_DAEMON_SUPERVISOR_BASE_REFUSAL_H

#include "daemon/protocol/protocol.h"
#include "dbus-interfaces/sqlipc-errors.h"

typedef struct Refusal {
        ErrorNumber error;     /* ERROR_NONE: nothing is refused */
        bool details;          /* the caller wants the next two with an error (option "error-details") */
        int32_t extended_code; /* SQLite's; 0: none */
        int32_t sql_offset;    /* -1: none */
        char *message;         /* owned; set if `error` is */
} Refusal;

#define REFUSAL_INIT ((Refusal) { .sql_offset = -1 })

/* Sets the refusal, unless one is set already, and returns its errno, negated. */
int refuse(Refusal *refusal, ErrorNumber error, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Refuses with LIMITS_EXCEEDED and SQLITE_BUSY, because there is room again when other work has ended: programs repeat what
 * has met a lock. */
int refuse_for_now(Refusal *refusal, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Borrows from the refusal, so it is valid as long as the refusal is. */
Failure refusal_as_failure(const Refusal *refusal);

/* Frees the sentence and resets the refusal. */
void refusal_done(Refusal *refusal);

/* Returns the positive errno of a row; EBADE for a number that is not in the table. */
int error_to_errno(uint32_t number);

/* Returns "org.sqlipc1.Error.NAME"; the name of Internal for a number that is not in the table. */
const char *error_to_name(uint32_t number);

#endif
