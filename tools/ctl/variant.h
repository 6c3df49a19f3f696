/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Documents: what a reply held, and what a verb prints as JSON, are GVariants. */
#ifndef CTL_VARIANT_H
#define CTL_VARIANT_H

#include <glib.h>
#include <systemd/sd-bus.h>

/** The body of `m`, a tuple; caller unrefs. -EBADMSG: it holds descriptors, which no document can. */
int variant_from_message(sd_bus_message *m, GVariant **ret);

enum { JSON_IN_A_LINE = -1 };

/** Appends `value` as JSON: a dictionary is an object, any other container an array, an absent `maybe` null. `depth`: of the
 * containers around it, for a line and an indentation for each element, or JSON_IN_A_LINE. */
void json_append_variant(GString *output, GVariant *value, int depth);

/** Adds an entry to a dictionary (a{sv}) that is being built; takes a floating `value`. */
void entry(GVariantBuilder *dictionary, const char *key, GVariant *value);

/** Adds all entries of `from`, a dictionary (a{sv}). */
void entries_of(GVariantBuilder *dictionary, GVariant *from);

/** Adds properties of the bus (a{sv}), under keys in the style of all others: NRuns as "n-runs". */
void properties_of(GVariantBuilder *dictionary, GVariant *from);

/** Numbers of a dictionary (a{sv}), of whichever integer type; 0 where there is none. */
guint64 lookup_number(GVariant *dictionary, const char *key);
/** Text of a dictionary, borrowed from it; `otherwise` where there is none. */
const char *lookup_text(GVariant *dictionary, const char *key, const char *otherwise);

#endif
