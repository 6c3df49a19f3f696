/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why something was refused or ended: a row of the error table and a sentence that a user can act on. Pure.
 *
 * It is to the supervisor what sd_bus_error is to a bus method: a function that may refuse takes a `Refusal *` and returns
 *
 *      return refuse(refusal, ERROR_BUSY, "The statement's last run has not ended.");
 *
 * which is the row's errno, negated. A negative result without a refusal set is an unexpected errno. The bus edge
 * (bus-error.h) turns either into a reply.
 */
#ifndef SQLIPC_REFUSAL_H
#define SQLIPC_REFUSAL_H

#include "protocol.h"
#include "sqlipc-errors.h"

typedef struct Refusal {
        ErrorNumber error;     /* ERROR_NONE: nothing is refused */
        int32_t extended_code; /* SQLite's; 0: none */
        int32_t sql_offset;    /* -1: none */
        char *message;         /* owned; set where error is */
} Refusal;

#define REFUSAL_INIT ((Refusal) { .sql_offset = -1 })

/* Sets the refusal (the first one stays) and returns its errno, negated. */
int refuse(Refusal *refusal, ErrorNumber error, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Borrows: valid as long as the refusal. */
Failure refusal_as_failure(const Refusal *refusal);

/* Frees the sentence and starts over. */
void refusal_done(Refusal *refusal);

/* The errno of a row, positive; EBADE for a number that is no row. */
int error_to_errno(uint32_t number);

/* "org.sqlipc1.Error.NAME"; that of Internal for a number that is no row. */
const char *error_to_name(uint32_t number);

#endif
