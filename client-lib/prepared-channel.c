/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Statements that are compiled on a channel (prepared.h). Library. */
#include <string.h>

#include "client-lib/channel-link.h"
#include "client-lib/connection-bus.h"
#include "client-lib/connection.h"
#include "client-lib/description.h"
#include "client-lib/error.h"
#include "client-lib/fetch.h"
#include "client-lib/prepared-channel.h"
#include "client-lib/prepared-life.h"
#include "client-lib/prepared.h"
#include "client-lib/repeat.h"
#include "client-lib/transact.h"
#include "client-lib/transport.h"

int prepared_channel_send(sqlipc_statement *s) {
        ChannelLink *ch = s->fetch.link;
        size_t size = strlen(s->sql);
        uint8_t *payload = channel_link_request(ch, &s->fetch.channel.reader, REQUEST_PREPARE, size, &s->channel_number);

        if (!payload) {
                s->channel_number = 0;
                return -ENOMEM;
        }
        memcpy(payload, s->sql, size);
        s->channel_generation = ch->generation;
        return 0;
}

int prepared_channel_read_description(sqlipc_statement *s) {
        Description description;
        int r;

        r = description_copy(&description, &s->fetch.decoder);
        if (r < 0)
                return r;
        description_done(&s->description);
        s->description = description;
        s->described = true;
        return 0;
}

static void fail(sqlipc_statement *s, int r) {
        s->channel_number = 0;
        (void) error_set_send(&s->error, r);
        prepared_fail(s);
}

/* Compiles the statement over the bus instead. */
static void fall_back(sqlipc_statement *s) {
        int r;

        s->attempt = ATTEMPT_BUS;
        r = prepared_prepare(s);
        if (r < 0)
                fail(s, r);
}

static void set_preparing(sqlipc_statement *s) {
        if (s->state != STATEMENT_PREPARING) /* it waited for the channel */
                prepared_life_move(&s->state, STATEMENT_PREPARING);
}

/* Asks the channel, waits for it, or uses the bus. Returns 0, or the error if it could not ask. */
static int choose(sqlipc_statement *s) {
        ChannelLink *ch = s->fetch.link;

        switch (transport_choose(ch, s->habit.large, &s->attempt, 0)) {
        case WAY_BUS:
                return prepared_prepare(s);
        case WAY_ROWS: /* Prepare replies with a pipe, so it needs a bus that passes descriptors */
                if (connection_bus_descriptors(s->connection) == DESCRIPTORS_PASS)
                        return prepared_prepare(s);
                (void) error_set_no_descriptors(&s->error);
                prepared_fail(s);
                return 0;
        case WAY_CHANNEL:
                fetch_use_channel(&s->fetch);
                set_preparing(s);
                return prepared_channel_send(s);
        case WAY_WAIT:
                set_preparing(s);
                return 0;
        case WAY_NONE:
                s->error = ch->error;
                prepared_fail(s);
                return 0;
        }
        return -EINVAL;
}

int prepared_channel_start(sqlipc_statement *s) {
        int r;

        s->retries_left = CHANNEL_RETRIES_MAX;
        s->n_interrupts = connection_interrupts(s->connection);
        s->pin_id = 0;
        prepared_lose(s);
        r = transact_check_pin(s->connection, s->fetch.path, &s->error);
        s->attempt = r > 0 ? ATTEMPT_BUS : ATTEMPT_ANY;
        if (r >= 0)
                return choose(s);
        prepared_fail(s);
        return 0;
}

/* The channel closed before it answered. It may have been closed for a long time, which only the next request finds out. */
static void ask_again(sqlipc_statement *s) {
        bool again = s->connection->transport == SQLIPC_TRANSPORT_CHANNEL && s->retries_left > 0;
        int r;

        s->channel_number = 0;
        s->attempt = again ? ATTEMPT_ANY : ATTEMPT_BUS;
        s->retries_left -= again;
        r = choose(s);
        if (r < 0)
                fail(s, r);
}

static void on_error_frame(sqlipc_statement *s) {
        if (repeat_fate_of_frame(s->fetch.decoder.error_number) == FATE_NOT_BEGUN) {
                ask_again(s);
                return;
        }
        (void) error_set_frame(&s->error, &s->fetch.decoder);
        s->channel_number = 0;
        if (prepared_take_pin(s))
                return;
        prepared_fail(s);
        /* the limits of statements on a channel and over the bus are separate */
        if (s->error.number == ERROR_LIMITS_EXCEEDED && s->connection->transport == SQLIPC_TRANSPORT_AUTO)
                fall_back(s);
}

/* Compiles the statement on the pin if that is open. */
static void start_on_pin(sqlipc_statement *s) {
        int r = transact_check(s->pin, &s->error);

        if (r > 0) {
                s->attempt = ATTEMPT_BUS;
                r = prepared_prepare(s);
                if (r < 0)
                        fail(s, r);
        } else if (r < 0) {
                prepared_lose(s);
                prepared_fail(s);
        }
}

void prepared_channel_advance(sqlipc_statement *s) {
        int r;

        if (s->state == STATEMENT_PREPARING && s->n_interrupts != connection_interrupts(s->connection))
                prepared_interrupt(s);
        if (s->state != STATEMENT_PREPARING || s->prepare)
                return;
        if (s->pin) {
                start_on_pin(s);
                return;
        }
        if (s->channel_number == 0) { /* waits for a channel to open */
                r = s->fetch.link->state == CHANNEL_LINK_OPENING ? 0 : choose(s);
                if (r < 0)
                        fail(s, r);
                if (s->channel_number == 0)
                        return;
        }
        r = fetch_next(&s->fetch);
        switch (r) {
        case -EAGAIN:
                return;
        case PAGE_STATEMENT:
                r = prepared_channel_read_description(s);
                if (r < 0)
                        fail(s, r);
                else
                        prepared_life_move(&s->state, STATEMENT_READY);
                return;
        case PAGE_ERROR:
                on_error_frame(s);
                return;
        case -ECONNRESET:
                ask_again(s);
                return;
        case -ENOBUFS:
                fall_back(s);
                return;
        default:
                fail(s, r < 0 ? r : -EBADMSG);
        }
}

struct pollfd prepared_channel_pollfd(const sqlipc_statement *s) {
        return s->state == STATEMENT_PREPARING && s->channel_number > 0 ? fetch_pollfd(&s->fetch) : CONNECTION_NO_DATA;
}
