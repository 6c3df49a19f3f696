/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes integers into a D-Bus message and reads them from it, without sending it: as a whole array and one by one with
 * sd-bus, and with GDBus. Each function does this once, and is meant for a Repeat (repeat.h).
 */
#ifndef SQLIPC_TOOLS_BENCH_WORKLOADS_MARSHAL_PARTS_H
#define SQLIPC_TOOLS_BENCH_WORKLOADS_MARSHAL_PARTS_H

#include <glib.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

typedef struct MarshalParts {
        sd_bus *bus;             /* borrowed; a message needs a bus */
        const int32_t *integers; /* borrowed */
        int32_t n;
        int32_t *copied;         /* borrowed: room for n */
        sd_bus_message *message; /* sealed */
        guchar *blob;            /* of GDBus */
        gsize blob_size;
} MarshalParts;

/** Uses the first `n` of `integers`, and creates the messages that the unmarshal functions read. */
int marshal_parts_init(MarshalParts *parts, sd_bus *bus, const int32_t *integers, int32_t n, int32_t *copied);
void marshal_parts_done(MarshalParts *parts);

/* They create a new message from the integers; `userdata` is a MarshalParts. */
int marshal_array(void *userdata);
int marshal_each(void *userdata);
int marshal_gdbus(void *userdata);
/* They copy the integers of the message to `copied`. -EPROTO: the message has another number of integers. */
int unmarshal_array(void *userdata);
int unmarshal_each(void *userdata);
int unmarshal_gdbus(void *userdata);

#endif
