/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads an a{sv}, entry by entry: the details of the service's results, of which the library reads those that it knows.
 * Library.
 */
#ifndef SQLIPC_CLIENT_LIB_DICTIONARY_H
#define SQLIPC_CLIENT_LIB_DICTIONARY_H

#include <stdbool.h>
#include <systemd/sd-bus.h>

/* Handles one entry; `m` is positioned before its value, a `v` that holds `type`. 1: the value was read; 0: it was not;
 * or negative. */
typedef int (*DictionaryEntry)(sd_bus_message *m, const char *key, const char *type, void *userdata);

/* For a DictionaryEntry: reads a value of type "b". 1, or a negative errno. */
int dictionary_read_bool(sd_bus_message *m, bool *ret);

/* Reads the a{sv} at which `m` is positioned, and skips the values that `entry` does not read. 0, or a negative errno. */
int dictionary_read(sd_bus_message *m, DictionaryEntry entry, void *userdata);

#endif
