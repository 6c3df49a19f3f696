/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What stands in the payloads of COLUMNS, STATEMENT and ROWS (sqlipc-page.h, sqlipc-channel.h): checked as a whole, so that
 * whoever looks something up in one that passed checks nothing. Pure. Every byte is hostile.
 */
#ifndef SQLIPC_PAGE_PAYLOAD_H
#define SQLIPC_PAGE_PAYLOAD_H

#include "sqlipc-channel.h"

#define COLUMNS_HEAD_SIZE ((size_t) 8) /* payload of COLUMNS before the offsets */

/* The end of a payload, with items that this version may not know. Borrowed. */
typedef struct Extension {
        const uint8_t *bytes;
        size_t size;
} Extension;

typedef struct Item {
        uint32_t tag;
        const uint8_t *bytes;
        size_t size;
} Item;

/* Takes the next item from `rest`. 1; 0: none is left; -EBADMSG: it exceeds the extension. */
int payload_next_item(Extension *rest, Item *ret);

/* Checks that an extension is whole items. -EBADMSG. */
int payload_check_extension(Extension extension);

/* Checks a joined payload of COLUMNS. -EBADMSG. */
int payload_check_columns(const uint8_t *payload, size_t size, size_t page_size_max, uint32_t *ret_n_columns,
                          uint32_t *ret_page_size, Extension *ret_extension);

/* Checks a joined payload of STATEMENT. -EBADMSG. */
int payload_check_statement(const uint8_t *payload, size_t size, uint32_t *ret_n_columns, uint32_t *ret_n_parameters,
                            uint32_t *ret_flags, Extension *ret_extension);

/* String `i` behind the `n` offsets at `ends` of one that was checked: its bytes, and its size with the NUL; 0 where it is
 * absent. */
const char *payload_string(const uint8_t *ends, size_t n, size_t i, size_t *ret_size);

/* Checks one row of `n_columns` values in `bytes`, as it stands in ROWS; `*ret_size` is what it takes, maybe less than
 * `size`. -EBADMSG. Used for parameters too (daemon/protocol.h): they travel as a row, of no values where there are none. */
int page_check_row(const uint8_t *bytes, size_t size, unsigned n_columns, size_t *ret_size);

#endif
