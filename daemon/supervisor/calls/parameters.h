/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parameters of a run: turns D-Bus av and a{sv} into the bytes of one row (daemon/protocol/protocol.h). Supervisor.
 *
 * Unpacking stops at the first value past PARAMETERS_MAX (protocol.h) or PARAMETERS_SIZE_MAX, so a client cannot make us
 * hold more.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_CALLS_PARAMETERS_H
#define SQLIPC_DAEMON_SUPERVISOR_CALLS_PARAMETERS_H

#include <systemd/sd-bus.h>

#include "daemon/supervisor/base/refusal.h"

#define PARAMETERS_SIZE_MAX ((size_t) 1024 * 1024)     /* size of the row in bytes, including its head */

typedef struct Parameters {
        uint32_t n_positional, n_named;
        uint8_t *row;  /* owned; n_positional + 2 * n_named values */
        size_t row_size;
} Parameters;

#define PARAMETERS_INIT ((Parameters) {})

/* Reads `av` and `a{sv}`, which are next in `m`. `*ret` is set only if this succeeds; free it with parameters_done().
 * LIMITS_EXCEEDED, PARAMETER_TYPE, UNKNOWN_PARAMETER; -EBADMSG: the message cannot be read; -ENOMEM. */
int parameters_read(sd_bus_message *m, Parameters *ret, Refusal *refusal);

void parameters_done(Parameters *p);

#endif
