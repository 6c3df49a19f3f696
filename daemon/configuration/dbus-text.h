/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tells which bytes can be sent as a D-Bus string. Pure.
 *
 * sd-bus accepts UTF-8 without NUL, without surrogates, and (stricter than D-Bus itself) without the noncharacters
 * U+FDD0..U+FDEF and U+xxFFFE/U+xxFFFF. A message with anything else cannot be built, so we check first.
 */
#ifndef SQLIPC_DAEMON_CONFIGURATION_DBUS_TEXT_H
#define SQLIPC_DAEMON_CONFIGURATION_DBUS_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* True if sd_bus_message_append_basic(m, 's', ...) accepts `text`. */
bool dbus_text_is_valid(const char *text, size_t size);

/* Returns a copy, NUL-terminated, with U+FFFD in place of each byte or character that is not valid. NULL: no memory. The
 * caller frees it with free(). */
char *dbus_text_replace(const char *text, size_t size);

#endif
