/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Columns and parameters of a statement, as Prepare, Query, Load and STATEMENT frames describe them. Library.
 */
#ifndef SQLIPC_CLIENT_LIB_DESCRIPTION_H
#define SQLIPC_CLIENT_LIB_DESCRIPTION_H

#include "client-lib/util.h"
#include "dbus-interfaces/wire/page-decoder.h"

typedef struct Column {
        char *name;
        char *declared_type; /* NULL: none */
} Column;

/* The part of a reply, or a STATEMENT frame, that describes the statement. */
typedef struct Description {
        unsigned n_columns, n_parameters;
        Column *columns;
        char **parameters;   /* NULL: nameless */
        uint32_t page_size;
        bool read_only;      /* it changes nothing */
        bool not_started;    /* the reply came before the run is known to have started */
} Description;

/* Reads (a(ssa{sv}) columns, a{sv} info). 0, or a negative errno. */
int description_read(Description *ret, sd_bus_message *reply);
/* The same for a reply with a{sv} info alone. */
int description_read_info(Description *ret, sd_bus_message *reply);
/* Reads a variant of columns into `d`, which must have none yet. 1, or a negative errno. */
int description_read_columns(Description *d, sd_bus_message *reply);
/* Copies the description from the decoder's STATEMENT frame. 0 or -ENOMEM. */
int description_copy(Description *ret, const PageDecoder *decoder);
/* Frees what is owned. */
void description_done(Description *d);

#endif
