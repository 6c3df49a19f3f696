/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A failure with its details. It comes from the library itself, from a D-Bus error or from an ERROR frame. Library.
 *
 * Statements and cursors keep their failures and repeat them; public functions copy them to the connection when they return
 * them. The strings are arrays, because reporting a failure must not fail for lack of memory.
 */
#ifndef SQLIPC_CLIENT_LIB_ERROR_H
#define SQLIPC_CLIENT_LIB_ERROR_H

#include "client-lib/sqlipc.h"
#include "client-lib/util.h"
#include "dbus-interfaces/sqlipc-errors.h"
#include "dbus-interfaces/wire/page-decoder.h"

typedef struct Error {
        int result;             /* negative errno that the public function returns; 0: no failure */
        uint32_t number;        /* row of sqlipc-errors.h; ERROR_NONE: not from the service */
        int extended_code;      /* SQLite's, 0: none */
        int sql_offset;         /* -1: none */
        uint64_t lost_pin;      /* the pin (transact.h) that the program knows to be lost when it gets this; 0: none */
        char name[256];         /* D-Bus error name, "": none; D-Bus allows 255 bytes */
        char message[SQLIPC_MESSAGE_SIZE_MAX + 1];
} Error;

/* Sets a failure of the table, with the library's own sentence. Returns its negative errno. */
int error_set(Error *e, ErrorNumber number, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Sets a failure that is not in the table: `r` is a negative errno. Without `format` the sentence is that of strerror().
 * Returns `r`. */
int error_set_errno(Error *e, int r, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Sets the failure in the error `reply`, of the service or the bus. Returns its negative errno. */
int error_set_reply(Error *e, sd_bus_message *reply);

/* Sets the failure of the calls that were in progress when the bus connection closed. Returns its negative errno. */
int error_set_bus_lost(Error *e, sd_bus *bus);

/* Sets the failure of the calls that were never sent, because the bus answered Hello with the error `r`. Returns its
 * negative errno. */
int error_set_bus_refusal(Error *e, int r);

/* Sets the failure in the decoder's ERROR frame. Returns its negative errno. */
int error_set_frame(Error *e, const PageDecoder *d);

/* Sets the failure of a call that could not be built or sent: DAEMON_LOST for a lost bus, LIMITS_EXCEEDED for a call that
 * is too large. Returns its negative errno. */
int error_set_send(Error *e, int r);

/* Sets the failure of a request that needs a descriptor, on a bus that passes none. Returns its negative errno. */
int error_set_no_descriptors(Error *e);

#endif
