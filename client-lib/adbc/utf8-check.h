/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Checks UTF-8: no overlong forms, no surrogates, nothing past U+10FFFF. NUL is a character like others. Pure. ADBC driver.
 */
#ifndef SQLIPC_CLIENT_LIB_ADBC_UTF8_CHECK_H
#define SQLIPC_CLIENT_LIB_ADBC_UTF8_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True if the bytes are valid UTF-8. ASCII is checked many bytes at a time. */
bool utf8_check(const uint8_t *bytes, size_t size);

/* A copy of the text in which U+FFFD is in the place of each byte that is not of a valid character, for names and messages,
 * which Arrow and ADBC have in UTF-8, while SQLite takes any bytes. NULL: there is no memory. */
char *utf8_make_valid(const char *text);

#endif
