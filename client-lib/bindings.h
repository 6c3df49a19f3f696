/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The values that are bound to a statement's parameters. Library.
 *
 * A statement shares its set of bindings with the cursor that waits to be sent with it. Binding again while such a cursor
 * waits changes a copy, so a run has the values that were bound when it was requested.
 */
#ifndef SQLIPC_CLIENT_LIB_BINDINGS_H
#define SQLIPC_CLIENT_LIB_BINDINGS_H

#include "client-lib/parameter.h"

typedef struct Bindings {
        unsigned n_ref;
        unsigned n_values;
        Parameter *values; /* by index - 1; names are NULL, bytes owned */
        unsigned n_named;
        Parameter *named;  /* bound by name before the names were known; names and bytes owned */
} Bindings;

Bindings *bindings_ref(Bindings *b);
/* Accepts NULL. Returns NULL. */
Bindings *bindings_unref(Bindings *b);
void bindings_unrefp(Bindings **b);

/* Binds a copy of `value` in `*b` to its name, or to `index` if the name is NULL. If `*b` is NULL it is created first; if
 * it is shared it is replaced by a copy first. 0; -ENOMEM; -ERANGE: there are too many names. */
int bindings_set(Bindings **b, unsigned index, const Parameter *value);

/* Assigns values that were bound by name to indexes, now that the names are known: `look_up` returns the index of a name,
 * 0 for none. Returns 0, or -ENXIO and sets `*ret_unknown` (borrowed) to the name that does not exist. */
typedef unsigned (*NameLookUp)(void *userdata, const char *name);
int bindings_resolve(Bindings *b, NameLookUp look_up, void *userdata, const char **ret_unknown);

#endif
