/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Appends columns and rows as D-Bus values. Supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/configuration/dbus-text.h"
#include "daemon/supervisor/calls/rows.h"

/* Upper bounds for sizes in a reply, with signature, alignment and lengths. Those called OVERHEAD are added to the size of
 * the contents. */
#define ROW_OVERHEAD ((size_t) 8)
#define NUMBER_SIZE ((size_t) 24)
#define NULL_SIZE ((size_t) 24)
#define BYTES_OVERHEAD ((size_t) 16)
#define SPECIAL_TEXT_OVERHEAD ((size_t) 56)

/* Appends `text`, which is valid for D-Bus, as `s`. Avoids the check of each byte that sd-bus would repeat. */
static int append_valid_text(sd_bus_message *m, const char *text, size_t size) {
        char *at;
        int r = sd_bus_message_append_string_space(m, size, &at);

        if (r >= 0 && size > 0)
                memcpy(at, text, size);
        return r < 0 ? r : 0;
}

/* Appends `text` as `s`, with bad sequences replaced. *ret_clean: there were none. */
static int append_text(Reply *reply, const char *text, size_t size, bool *ret_clean) {
        *ret_clean = dbus_text_is_valid(text, size);
        char *copy = *ret_clean ? NULL : dbus_text_replace(text, size);
        if (!*ret_clean && !copy)
                return -ENOMEM;
        if (copy)
                size = strlen(copy);
        int r = reply_count(reply, REPLY_VALUE_OVERHEAD + size);
        if (r >= 0)
                r = append_valid_text(reply->message, copy ?: text, size);
        free(copy);
        return r;
}

static int append_bytes_entry(sd_bus_message *m, const char *key, const void *bytes, size_t size) {
        int r = sd_bus_message_open_container(m, 'e', "sv");

        if (r < 0)
                return r;
        r = sd_bus_message_append_basic(m, 's', key);
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(m, 'v', "ay");
        if (r < 0)
                return r;
        r = sd_bus_message_append_array(m, 'y', bytes, size);
        for (int i = 0; i < 2 && r >= 0; i++)
                r = sd_bus_message_close_container(m);
        return r;
}

/* Appends the original bytes of a text in which append_text() replaced some. */
static int append_original(Reply *reply, const char *key, Bytes text) {
        int r = reply_count(reply, REPLY_ENTRY_OVERHEAD + text.size);

        return r < 0 ? r : append_bytes_entry(reply->message, key, text.data, text.size);
}

static int append_column(Reply *reply, Bytes name, Bytes declared) {
        sd_bus_message *m = reply->message;
        bool name_clean, declared_clean;
        int r = reply_count(reply, REPLY_VALUE_OVERHEAD); /* for the struct and its final a{sv} */

        if (r >= 0)
                r = sd_bus_message_open_container(m, 'r', "ssa{sv}");
        if (r >= 0)
                r = append_text(reply, name.data ?: "", name.data ? name.size : 0, &name_clean);
        if (r >= 0)
                r = append_text(reply, declared.data ?: "", declared.data ? declared.size : 0, &declared_clean);
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r >= 0 && !name_clean)
                r = append_original(reply, "name-bytes", name);
        if (r >= 0 && (!declared_clean || (declared.data && declared.size == 0))) /* without it, "" would mean no type */
                r = append_original(reply, "declared-type-bytes", declared);
        for (int i = 0; i < 2 && r >= 0; i++)
                r = sd_bus_message_close_container(m);
        return r;
}

int rows_append_columns_of_statement(Reply *reply, const Started *started) {
        int r = sd_bus_message_open_container(reply->message, 'a', "(ssa{sv})");

        for (uint32_t i = 0; i < started->n_columns && r >= 0; i++)
                r = append_column(reply, started->columns[2 * i], started->columns[2 * i + 1]);
        return r < 0 ? r : sd_bus_message_close_container(reply->message);
}

int rows_append_columns_of_run(Reply *reply, const PageDecoder *d) {
        int r = sd_bus_message_open_container(reply->message, 'a', "(ssa{sv})");

        for (unsigned i = 0; i < d->n_columns && r >= 0; i++) {
                Bytes name, declared = { NULL };

                page_decoder_column_name(d, i, &name.data, &name.size);
                page_decoder_column(d, i, &(const char *) { NULL }, &declared.data);
                declared.size = declared.data ? strlen(declared.data) : 0;
                r = append_column(reply, name, declared);
        }
        return r < 0 ? r : sd_bus_message_close_container(reply->message);
}

int rows_append_parameters(Reply *reply, const Started *started) {
        sd_bus_message *m = reply->message;
        bool clean;
        int r = sd_bus_message_open_container(m, 'e', "sv");

        if (r >= 0)
                r = sd_bus_message_append_basic(m, 's', "parameters");
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'v', "as");
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "s");
        for (uint32_t i = 0; i < started->n_parameters && r >= 0; i++) {
                Bytes name = started->parameters[i];
                r = append_text(reply, name.data ?: "", name.data ? name.size : 0, &clean);
        }
        for (int i = 0; i < 3 && r >= 0; i++)
                r = sd_bus_message_close_container(m);
        return r;
}

static int append_special_text(sd_bus_message *m, PageValue v) {
        int r = sd_bus_message_open_container(m, 'v', "a{sv}");

        if (r < 0)
                return r;
        r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        r = append_bytes_entry(m, "text", v.bytes, v.size);
        for (int i = 0; i < 2 && r >= 0; i++)
                r = sd_bus_message_close_container(m);
        return r;
}

static int append_clean_text(sd_bus_message *m, PageValue v) {
        int r = sd_bus_message_open_container(m, 'v', "s");

        if (r >= 0)
                r = append_valid_text(m, (const char *) v.bytes, v.size);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_blob(sd_bus_message *m, PageValue v) {
        int r = sd_bus_message_open_container(m, 'v', "ay");

        if (r < 0)
                return r;
        r = sd_bus_message_append_array(m, 'y', v.bytes, v.size);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_value(sd_bus_message *m, PageValue v) {
        switch (v.type) {
        case VALUE_INTEGER: return sd_bus_message_append(m, "v", "x", (int64_t) load_le64(v.bytes));
        case VALUE_REAL: return sd_bus_message_append(m, "v", "d", load_le_double(v.bytes));
        case VALUE_TEXT:
                if (!dbus_text_is_valid((const char *) v.bytes, v.size))
                        return append_special_text(m, v);
                return append_clean_text(m, v);
        case VALUE_BLOB: return append_blob(m, v);
        case VALUE_NULL: return sd_bus_message_append(m, "v", "a{sv}", 0);
        }
        return -EBADMSG;
}

int rows_append_row(Reply *reply, const PageDecoder *d, size_t size) {
        int r = reply_count(reply, size);

        if (r >= 0)
                r = sd_bus_message_open_container(reply->message, 'a', "v");
        for (unsigned i = 0; i < d->n_columns && r >= 0; i++)
                r = append_value(reply->message, page_decoder_value(d, i));
        return r < 0 ? r : sd_bus_message_close_container(reply->message);
}

size_t rows_row_size(const PageDecoder *d) {
        size_t size = ROW_OVERHEAD;

        for (unsigned i = 0; i < d->n_columns; i++) {
                PageValue v = page_decoder_value(d, i);

                switch (v.type) {
                case VALUE_INTEGER:
                case VALUE_REAL: size += NUMBER_SIZE; break;
                case VALUE_NULL: size += NULL_SIZE; break;
                case VALUE_BLOB: size += BYTES_OVERHEAD + v.size; break;
                case VALUE_TEXT:
                        size += v.size;
                        size += dbus_text_is_valid((const char *) v.bytes, v.size) ? BYTES_OVERHEAD : SPECIAL_TEXT_OVERHEAD;
                        break;
                }
        }
        return size;
}
