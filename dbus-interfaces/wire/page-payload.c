/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks payloads and finds items in them (page-payload.h). Pure. */
#include <errno.h>
#include <stdbool.h>

#include "dbus-interfaces/wire/page-payload.h"

/* The last byte of a string must be a NUL. Nothing else is required. */
static bool string_is_terminated(const uint8_t *strings, uint32_t start, uint32_t end) {
        return end > start && strings[end - 1] == 0;
}

int payload_next_item(Extension *rest, Item *ret) {
        size_t size;

        if (rest->size == 0)
                return 0;
        if (rest->size < ITEM_HEAD_SIZE)
                return -EBADMSG;
        size = load_le32(rest->bytes + 4);
        if (size > rest->size - ITEM_HEAD_SIZE)
                return -EBADMSG;
        *ret = (Item) { .tag = load_le32(rest->bytes), .bytes = rest->bytes + ITEM_HEAD_SIZE, .size = size };
        rest->bytes += ITEM_HEAD_SIZE + size;
        rest->size -= ITEM_HEAD_SIZE + size;
        return 1;
}

int payload_check_extension(Extension extension) {
        Item item;
        int r;

        do
                r = payload_next_item(&extension, &item);
        while (r > 0);
        return r;
}

/* Checks `ends` and `strings` of COLUMNS or STATEMENT: names and declared types in turn up to `n_columns_ends`, then names
 * of parameters. All except the names of columns may be absent. The extension follows the last string. */
static int check_strings(const uint8_t *ends, size_t n, size_t n_columns_ends, size_t size, Extension *ret_extension) {
        const uint8_t *strings = ends + 4 * n;
        uint32_t start = 0;

        for (size_t i = 0; i < n; i++) {
                uint32_t end = load_le32(ends + 4 * i);
                bool absent = (i % 2 == 1 || i >= n_columns_ends) && end == start;

                if (end > size || (!absent && !string_is_terminated(strings, start, end)))
                        return -EBADMSG;
                start = end;
        }
        *ret_extension = (Extension) { .bytes = strings + start, .size = size - start };
        return payload_check_extension(*ret_extension);
}

int payload_check_columns(const uint8_t *payload, size_t size, size_t page_size_max, uint32_t *ret_n_columns,
                          uint32_t *ret_page_size, Extension *ret_extension) {
        uint32_t n_columns, page_size;
        int r;

        if (size < COLUMNS_HEAD_SIZE)
                return -EBADMSG;
        n_columns = load_le32(payload);
        page_size = load_le32(payload + 4);
        if (n_columns > SQLIPC_N_COLUMNS_MAX)
                return -EBADMSG;
        if (page_size < SQLIPC_PAGE_SIZE_MIN || page_size > page_size_max || (page_size & (page_size - 1)) != 0)
                return -EBADMSG;
        if ((size - COLUMNS_HEAD_SIZE) / 8 < n_columns)
                return -EBADMSG;
        r = check_strings(payload + COLUMNS_HEAD_SIZE, (size_t) 2 * n_columns, (size_t) 2 * n_columns,
                          size - COLUMNS_HEAD_SIZE - (size_t) 8 * n_columns, ret_extension);
        if (r < 0)
                return r;

        *ret_n_columns = n_columns;
        *ret_page_size = page_size;
        return 0;
}

int payload_check_statement(const uint8_t *payload, size_t size, uint32_t *ret_n_columns, uint32_t *ret_n_parameters,
                            uint32_t *ret_flags, Extension *ret_extension) {
        uint32_t n_columns, n_parameters, flags;
        size_t n;
        int r;

        if (size < CHANNEL_STATEMENT_HEAD_SIZE)
                return -EBADMSG;
        n_columns = load_le32(payload);
        n_parameters = load_le32(payload + 4);
        flags = load_le32(payload + 8);
        if (n_columns > SQLIPC_N_COLUMNS_MAX || n_parameters > SQLIPC_N_COLUMNS_MAX)
                return -EBADMSG;
        n = (size_t) 2 * n_columns + n_parameters;
        if ((size - CHANNEL_STATEMENT_HEAD_SIZE) / 4 < n)
                return -EBADMSG;
        r = check_strings(payload + CHANNEL_STATEMENT_HEAD_SIZE, n, (size_t) 2 * n_columns,
                          size - CHANNEL_STATEMENT_HEAD_SIZE - 4 * n, ret_extension);
        if (r < 0)
                return r;

        *ret_n_columns = n_columns;
        *ret_n_parameters = n_parameters;
        *ret_flags = flags;
        return 0;
}

const char *payload_string(const uint8_t *ends, size_t n, size_t i, size_t *ret_size) {
        uint32_t start = i == 0 ? 0 : load_le32(ends + 4 * (i - 1));

        *ret_size = load_le32(ends + 4 * i) - start;
        return (const char *) ends + 4 * n + start;
}

int page_check_row(const uint8_t *bytes, size_t size, unsigned n_columns, size_t *ret_size) {
        const uint8_t *ends, *data;
        uint32_t start = 0;

        if (n_columns > size / ROW_HEAD_SIZE(1))
                return -EBADMSG;
        if (n_columns == 0) {
                *ret_size = 0;
                return 0;
        }
        ends = bytes + n_columns;
        data = bytes + ROW_HEAD_SIZE(n_columns);
        size -= ROW_HEAD_SIZE(n_columns);

        for (size_t i = 0; i < n_columns; i++) {
                uint32_t end = load_le32(ends + 4 * i);
                bool valid = false;

                if (end < start || end > size)
                        return -EBADMSG;

                switch ((ValueType) bytes[i]) {
                case VALUE_TEXT:
                        valid = end > start && data[end - 1] == 0;
                        break;
                case VALUE_INTEGER:
                case VALUE_REAL:
                        valid = end - start == 8;
                        break;
                case VALUE_BLOB:
                        valid = true;
                        break;
                case VALUE_NULL:
                        valid = end == start;
                        break;
                }
                if (!valid)
                        return -EBADMSG;
                start = end;
        }

        *ret_size = ROW_HEAD_SIZE(n_columns) + start;
        return 0;
}
