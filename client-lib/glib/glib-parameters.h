/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parameters of statements, and rows of loads, from GVariant and GValue. GLib library. */
#ifndef SQLIPC_CLIENT_LIB_GLIB_GLIB_PARAMETERS_H
#define SQLIPC_CLIENT_LIB_GLIB_GLIB_PARAMETERS_H

#include <gio/gio.h>
#include <stdbool.h>

#include "client-lib/sqlipc.h"

typedef struct VariantParameters {
        GArray *values;  /* of sqlipc_parameter; their bytes belong to `kept` */
        GPtrArray *kept; /* GVariants */
} VariantParameters;

/* Reads a tuple or an array of values, positional; or a dictionary a{sv}, by name; NULL: none. The caller frees `ret` with
 * parameters_done(), also after a failure. */
bool parameters_init(VariantParameters *ret, GVariant *variant, GError **error);

/* One value. The GVariants that its bytes belong to are added to `kept`. */
bool parameters_read_one(GVariant *variant, sqlipc_parameter *ret, GPtrArray *kept, GError **error);

void parameters_done(VariantParameters *p);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(VariantParameters, parameters_done)

static inline const sqlipc_parameter *parameters_values(const VariantParameters *p) {
        return (const sqlipc_parameter *) (const void *) p->values->data;
}

/* A GVariant of a GValue, for sqlipc_glib_statement_bind_value(); NULL with an error if there is none. */
GVariant *parameters_from_value(const GValue *value, GError **error);

#endif
