/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See channel-state.h.
 */
#include "daemon/worker/core/channel-state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_SIZE ((size_t) 48)
#define STATEMENT_HEAD_SIZE ((size_t) 12)

size_t channel_state_size(const ChannelInput *in, const ChannelStatements *statements, const ChannelSettings *settings) {
        return HEAD_SIZE + strlen(settings->time_zone) + statements->n * STATEMENT_HEAD_SIZE + statements->sql_size +
               (in->fill - in->start);
}

int channel_state_pack(const ChannelInput *in, const ChannelStatements *statements, const ChannelSettings *settings,
                       uint8_t **ret, size_t *ret_size) {
        size_t size = channel_state_size(in, statements, settings), zone_size = strlen(settings->time_zone);
        size_t input_size = in->fill - in->start;
        uint8_t *bytes, *at;

        if (size > CHANNEL_STATE_SIZE_MAX)
                return -E2BIG;
        at = bytes = malloc(size);
        if (!bytes)
                return -ENOMEM;
        store_le64(at, in->taken_number);
        store_le64(at + 8, in->discard);
        store_le32(at + 16, (uint32_t) statements->n);
        store_le32(at + 20, (uint32_t) input_size);
        store_le32(at + 24, settings->foreign_keys);
        store_le32(at + 28, settings->keeps);
        store_le64(at + 32, zone_size);
        store_le64(at + 40, settings->lock_wait_usec);
        at = mempcpy(at + HEAD_SIZE, settings->time_zone, zone_size);
        for (size_t i = 0; i < statements->n; i++) {
                const ChannelStatement *s = statements->list[i];

                store_le64(at, s->number);
                store_le32(at + 8, (uint32_t) s->sql_size);
                memcpy(at + STATEMENT_HEAD_SIZE, s->sql, s->sql_size);
                at += STATEMENT_HEAD_SIZE + s->sql_size;
        }
        if (input_size > 0)
                memcpy(at, in->bytes + in->start, input_size);
        *ret = bytes;
        *ret_size = size;
        return 0;
}

/* Unpacks one statement. Returns the address after it; NULL: it is invalid. */
static const uint8_t *unpack_statement(const uint8_t *at, const uint8_t *end, uint64_t above, uint64_t last,
                                       ChannelStatements *statements) {
        SqlError error = SQL_ERROR_INIT;
        uint64_t number;
        size_t size;

        if ((size_t) (end - at) < STATEMENT_HEAD_SIZE)
                return NULL;
        number = load_le64(at);
        size = load_le32(at + 8);
        at += STATEMENT_HEAD_SIZE;
        if (number <= above || number > last || (size_t) (end - at) < size ||
            !channel_statements_add(statements, number, at, size, &error)) {
                sql_error_done(&error);
                return NULL;
        }
        return at + size;
}

int channel_state_unpack(Bytes state, ChannelInput *in, ChannelStatements *statements, ChannelSettings *ret_settings) {
        const uint8_t *at = (const uint8_t *) state.data, *end;
        uint64_t taken, discard, foreign_keys, zone_size, number = 0;
        ChannelSettings settings = {};
        size_t n, input_size;

        if (state.size < HEAD_SIZE)
                return -EBADMSG;
        end = at + state.size;
        taken = load_le64(at);
        discard = load_le64(at + 8);
        n = load_le32(at + 16);
        input_size = load_le32(at + 20);
        foreign_keys = load_le32(at + 24);
        settings.keeps = load_le32(at + 28) != 0;
        zone_size = load_le64(at + 32);
        settings.lock_wait_usec = load_le64(at + 40);
        at += HEAD_SIZE;
        if (foreign_keys >= FOREIGN_KEYS_MAX_ || (size_t) (end - at) < zone_size ||
            !time_zone_is_valid((const char *) at, zone_size))
                return -EBADMSG;
        settings.foreign_keys = (ForeignKeys) foreign_keys;
        memcpy(settings.time_zone, at, zone_size);
        at += zone_size;
        for (size_t i = 0; i < n; i++) {
                at = unpack_statement(at, end, number, taken, statements);
                if (!at)
                        return -EBADMSG;
                number = statements->list[i]->number;
        }
        if ((size_t) (end - at) != input_size)
                return -EBADMSG;
        *ret_settings = settings;
        return channel_input_restore(in, at, input_size, taken, discard);
}
