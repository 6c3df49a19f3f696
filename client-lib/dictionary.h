/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An a{sv}, entry by entry: what the service says beside its results, of which we read what we know. Library.
 */
#ifndef SQLIPC_DICTIONARY_H
#define SQLIPC_DICTIONARY_H

#include <stdbool.h>
#include <systemd/sd-bus.h>

/* One entry; `m` stands before its value, a `v` that holds `type`. 1: the value was read; 0: it was left; or negative. */
typedef int (*DictionaryEntry)(sd_bus_message *m, const char *key, const char *type, void *userdata);

/* For a DictionaryEntry: reads a value of type "b". 1, or what went wrong. */
int dictionary_read_bool(sd_bus_message *m, bool *ret);

/* Reads the a{sv} that `m` stands before, and passes over the values that `entry` leaves. 0, or what went wrong. */
int dictionary_read(sd_bus_message *m, DictionaryEntry entry, void *userdata);

#endif
