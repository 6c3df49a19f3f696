/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Documents: the body of a reply, and the data that a verb prints as JSON, are GVariants. */
#ifndef SQLIPC_TOOLS_CTL_VARIANT_H
#define SQLIPC_TOOLS_CTL_VARIANT_H

#include <glib.h>
#include <systemd/sd-bus.h>

/** The body of `m`, a tuple; the caller unrefs it. -EBADMSG: it has descriptors, which a document cannot contain. */
int variant_from_message(sd_bus_message *m, GVariant **ret);

enum { JSON_IN_A_LINE = -1 };

/** Appends `value` as JSON: a dictionary is an object, any other container an array, an absent `maybe` null. `depth`: the
 * number of containers around it, to write each element on an indented line; or JSON_IN_A_LINE. */
void json_append_variant(GString *output, GVariant *value, int depth);

/** Adds an entry to a dictionary (a{sv}) that is being built; takes ownership of a floating `value`. */
void entry(GVariantBuilder *dictionary, const char *key, GVariant *value);

/** Adds all entries of `from`, a dictionary (a{sv}). */
void entries_of(GVariantBuilder *dictionary, GVariant *from);

/** Adds D-Bus properties (a{sv}), with their names in the style of all other keys: NRuns as "n-runs". */
void properties_of(GVariantBuilder *dictionary, GVariant *from);

/** A number of a dictionary (a{sv}), of any integer type; 0 if there is none. */
guint64 lookup_number(GVariant *dictionary, const char *key);
/** A text of a dictionary, borrowed from it; `otherwise` if there is none. */
const char *lookup_text(GVariant *dictionary, const char *key, const char *otherwise);

#endif
