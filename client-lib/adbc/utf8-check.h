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

#endif
