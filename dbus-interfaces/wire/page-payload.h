/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The payloads of COLUMNS, STATEMENT and ROWS (sqlipc-page.h, sqlipc-channel.h). A payload is checked as a whole, so that
 * lookups in it need no checks of their own. Pure. Every byte is hostile.
 */
#ifndef SQLIPC_DBUS_INTERFACES_WIRE_PAGE_PAYLOAD_H
#define SQLIPC_DBUS_INTERFACES_WIRE_PAGE_PAYLOAD_H

#include "dbus-interfaces/wire/sqlipc-channel.h"

#define COLUMNS_HEAD_SIZE ((size_t) 8) /* payload of COLUMNS before the offsets */

/* The end of a payload, whose items this version may not know. Borrowed. */
typedef struct Extension {
        const uint8_t *bytes;
        size_t size;
} Extension;

typedef struct Item {
        uint32_t tag;
        const uint8_t *bytes;
        size_t size;
} Item;

/* Takes the next item from `rest`. 1; 0: no item is left; -EBADMSG: the item exceeds the extension. */
int payload_next_item(Extension *rest, Item *ret);

/* Checks that an extension consists of whole items. -EBADMSG. */
int payload_check_extension(Extension extension);

/* Checks a joined payload of COLUMNS. -EBADMSG. */
int payload_check_columns(const uint8_t *payload, size_t size, size_t page_size_max, uint32_t *ret_n_columns,
                          uint32_t *ret_page_size, Extension *ret_extension);

/* Checks a joined payload of STATEMENT. -EBADMSG. */
int payload_check_statement(const uint8_t *payload, size_t size, uint32_t *ret_n_columns, uint32_t *ret_n_parameters,
                            uint32_t *ret_flags, Extension *ret_extension);

/* Returns string `i` of a payload that was checked; the strings follow the `n` offsets at `ends`. `*ret_size` includes the
 * NUL; it is 0 if the string is absent. */
const char *payload_string(const uint8_t *ends, size_t n, size_t i, size_t *ret_size);

/* Checks one row of `n_columns` values in `bytes`, in the form that it has in ROWS. `*ret_size` is the size of the row,
 * possibly less than `size`. -EBADMSG. Also used for parameters (daemon/protocol/protocol.h): they are sent as a row, which
 * has no values if there are no parameters. */
int page_check_row(const uint8_t *bytes, size_t size, unsigned n_columns, size_t *ret_size);

#endif
