/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One value of a row, as the types of C, GLib and GObject. GLib library. Pure. */
#ifndef SQLIPC_CLIENT_LIB_GLIB_VALUE_H
#define SQLIPC_CLIENT_LIB_GLIB_VALUE_H

#include <glib-object.h>

#include "client-lib/sqlipc.h"

gint64 value_int64(const sqlipc_value *value);
double value_double(const sqlipc_value *value);

/* For people. The caller frees it. */
char *value_dup_string(const sqlipc_value *value);

/* Floating references. */
GVariant *value_variant(const sqlipc_value *value);
GVariant *value_variants(const sqlipc_value *values, gsize n);

/* Initialises `ret`. */
void value_get(const sqlipc_value *value, GValue *ret);

#endif
