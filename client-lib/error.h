/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A failure with its details, and the ways it comes about: by our own hand, as a D-Bus error, as an ERROR frame. Library.
 *
 * Failures live in statements and cursors, which repeat them, and are copied to the connection when a public function
 * returns them. The strings have fixed room: telling of a failure must not fail.
 */
#ifndef SQLIPC_LIBRARY_ERROR_H
#define SQLIPC_LIBRARY_ERROR_H

#include "page-decoder.h"
#include "sqlipc-errors.h"
#include "sqlipc.h"
#include "util.h"

typedef struct Error {
        int result;             /* negative errno that the public function returns; 0: no failure */
        uint32_t number;        /* row of sqlipc-errors.h, ERROR_NONE: not the service's */
        int extended_code;      /* SQLite's, 0: none */
        int sql_offset;         /* -1: none */
        char name[256];         /* D-Bus error name, "": none; D-Bus allows 255 bytes */
        char message[SQLIPC_MESSAGE_SIZE_MAX + 1];
} Error;

/* A failure of the table, with our own sentence. Returns its negative errno. */
int error_set(Error *e, ErrorNumber number, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A failure that no row of the table stands for: `r` is a negative errno; without `format` the sentence is strerror's.
 * Returns `r`. */
int error_set_errno(Error *e, int r, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* What the error `reply` says, ours or the bus's. Returns its negative errno. */
int error_set_reply(Error *e, sd_bus_message *reply);

/* What the ERROR frame under `d` says. Returns its negative errno. */
int error_set_frame(Error *e, const PageDecoder *d);

/* The same failure in `connection`. Returns its negative errno. */
int connection_fail(sqlipc_connection *connection, const Error *e);

/* error_set_errno() in `connection` (NULL: nowhere). */
int connection_fail_errno(sqlipc_connection *connection, int r);

/* A call could not be put together or sent: a lost bus is DAEMON_LOST, too much in it LIMITS_EXCEEDED. */
int error_set_send(Error *e, int r);
int connection_fail_send(sqlipc_connection *connection, int r);

/* The bus passes no descriptors, and what was asked for needs one. */
int error_set_no_descriptors(Error *e);

/* connection_wait() failed: -ETIMEDOUT gets its sentence. */
int connection_fail_wait(sqlipc_connection *connection, int r);

#endif
