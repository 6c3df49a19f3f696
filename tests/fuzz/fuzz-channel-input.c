/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any bytes as the input of a channel's client, and as the state of a channel that rested: the worker survives them, and the
 * requests that it finds do not depend on the pieces in which they come, nor on the moment when the channel moves.
 *
 * The corpus is requests as a client would send them, and with one thing wrong under a name that says what; one that broke
 * something joins them. channel-mutator.c keeps the engine's mutations well-formed requests.
 *
 * About: daemon/worker/core/channel-input.c daemon/worker/core/channel-state.c daemon/worker/core/channel-statements.c
 */
#include <errno.h>
#include <stdlib.h>

#include "daemon/worker/core/channel-state.h"
#include "tests/fuzz/replay.h"

#define PAYLOAD_MAX ((size_t) 4096)

/* A sum over all that was found; FNV-1a. */
static void add(uint64_t *sum, const void *bytes, size_t size) {
        for (size_t i = 0; i < size; i++)
                *sum = (*sum ^ ((const uint8_t *) bytes)[i]) * UINT64_C(0x100000001b3);
}

/* Everything but whether it was cancelled in time, which depends on when it came. */
static int take_all(ChannelInput *in, ChannelStatements *statements, uint64_t *sum) {
        ChannelRequest q;
        int r;

        while ((r = channel_input_take(in, &q)) > 0) {
                SqlError error = SQL_ERROR_INIT;

                demand(q.size <= PAYLOAD_MAX && (!q.too_large || q.size == 0));
                demand(q.kind == REQUEST_FINALIZE || q.kind == REQUEST_FOREIGN_KEYS || q.kind == REQUEST_TIME_ZONE ||
                       q.kind == REQUEST_LOCK_WAIT || q.number == in->taken_number);
                demand(q.kind != REQUEST_TIME_ZONE || time_zone_is_valid((const char *) q.payload, q.size));
                add(sum, &q.kind, sizeof q.kind);
                add(sum, &q.number, sizeof q.number);
                add(sum, q.payload, q.size);
                if (q.kind == REQUEST_PREPARE)
                        (void) channel_statements_add(statements, q.number, q.payload, q.size, &error);
                else if (q.kind == REQUEST_FINALIZE)
                        channel_statements_remove(statements, q.number);
                sql_error_done(&error);
                channel_input_done(in);
        }
        return r;
}

/* To another worker: the same in, the same out. */
static void move(ChannelInput *in, ChannelStatements *statements) {
        ChannelStatements moved = { .n_max = statements->n_max };
        const ChannelSettings settings = { FOREIGN_KEYS_ON, true, "Europe/Berlin", 5000 };
        ChannelSettings moved_settings;
        ChannelInput to;
        uint8_t *bytes;
        size_t size;

        demand(channel_state_pack(in, statements, &settings, &bytes, &size) == 0);
        demand(channel_input_init(&to, PAYLOAD_MAX) == 0);
        demand(channel_state_unpack((Bytes) { .data = (char *) bytes, .size = size }, &to, &moved, &moved_settings) == 0);
        demand(moved_settings.foreign_keys == settings.foreign_keys && moved_settings.keeps == settings.keeps);
        demand(strcmp(moved_settings.time_zone, settings.time_zone) == 0 && moved.n == statements->n);
        demand(moved_settings.lock_wait_usec == settings.lock_wait_usec);
        demand(to.fill - to.start == in->fill - in->start && to.discard == in->discard);
        free(bytes);
        channel_input_free(in);
        channel_statements_free(statements);
        *in = to;
        *statements = moved;
}

static int decode(const uint8_t *bytes, size_t size, size_t chunk, bool moves, uint64_t *ret_sum) {
        ChannelStatements statements = { .n_max = 4 };
        uint64_t sum = UINT64_C(0xcbf29ce484222325);
        ChannelInput in;
        int r = 0;

        demand(channel_input_init(&in, PAYLOAD_MAX) == 0);
        while (r == 0 && size > 0) {
                uint8_t *room;
                size_t n;

                demand(channel_input_reserve(&in, &room, &n) == 0 && n > 0);
                n = n > chunk ? chunk : n;
                n = n > size ? size : n;
                memcpy(room, bytes, n);
                channel_input_commit(&in, n);
                bytes += n;
                size -= n;
                if (moves && !in.invalid)
                        move(&in, &statements);
                r = take_all(&in, &statements, &sum);
                demand(in.capacity <= 8 * CHANNEL_AHEAD_SIZE);
        }
        channel_input_free(&in);
        channel_statements_free(&statements);
        *ret_sum = sum;
        return r;
}

static void check_state(const uint8_t *bytes, size_t size) {
        ChannelStatements statements = { .n_max = 4 };
        /* a copy of exactly its size, so that AddressSanitizer sees a look behind it */
        uint8_t *copy = malloc(size + 1);
        uint64_t sum = 0;
        ChannelSettings settings;
        ChannelInput in;

        demand(copy && channel_input_init(&in, PAYLOAD_MAX) == 0);
        if (size > 0)
                memcpy(copy + 1, bytes, size);
        if (channel_state_unpack((Bytes) { .data = (char *) copy + 1, .size = size }, &in, &statements, &settings) == 0)
                (void) take_all(&in, &statements, &sum);
        channel_input_free(&in);
        channel_statements_free(&statements);
        free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
        const size_t chunks[] = { 1, 29, 4096 };
        uint64_t whole_sum, sum;
        int r = decode(bytes, size, SIZE_MAX, false, &whole_sum);

        demand(r == 0 || r == -EBADMSG);
        for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
                demand(decode(bytes, size, chunks[i], false, &sum) == r && sum == whole_sum);
                /* each move copies what is there */
                demand(decode(bytes, size, chunks[i] + size / 64, true, &sum) == r && sum == whole_sum);
        }
        check_state(bytes, size);
        return 0;
}
