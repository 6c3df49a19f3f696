/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Integers into a D-Bus message and out of it, without sending it: as an array at once and one by one, by sd-bus and by
 * GDBus. Each function does it once, and is a Repeat's.
 */
#ifndef BENCH_MARSHAL_PARTS_H
#define BENCH_MARSHAL_PARTS_H

#include <glib.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

typedef struct MarshalParts {
        sd_bus *bus;             /* borrowed: a message belongs to one */
        const int32_t *integers; /* borrowed */
        int32_t n;
        int32_t *copied;         /* borrowed: room for n */
        sd_bus_message *message; /* sealed */
        guchar *blob;            /* of GDBus */
        gsize blob_size;
} MarshalParts;

/** Takes the first `n` of `integers`, and makes the messages that are taken apart. */
int marshal_parts_init(MarshalParts *parts, sd_bus *bus, const int32_t *integers, int32_t n, int32_t *copied);
void marshal_parts_done(MarshalParts *parts);

/* They make a new message of the integers; `userdata` is MarshalParts. */
int marshal_array(void *userdata);
int marshal_each(void *userdata);
int marshal_gdbus(void *userdata);
/* They copy the integers of the message to `copied`. -EPROTO: it has another number of them. */
int unmarshal_array(void *userdata);
int unmarshal_each(void *userdata);
int unmarshal_gdbus(void *userdata);

#endif
