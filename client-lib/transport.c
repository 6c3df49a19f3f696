/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Choice between pipe, channel and replies (transport.h). Library. */
#include "client-lib/channel-link.h"
#include "client-lib/connection-bus.h"
#include "client-lib/connection.h"
#include "client-lib/error.h"
#include "client-lib/parameter-row.h"
#include "client-lib/transport.h"

/* A result is small if it is at most this large and took at most so long. */
#define SMALL_SIZE_MAX ((uint64_t) 256 * 1024)
#define SMALL_USEC_MAX 20000u

/* A query that comes within this time after a small result on the connection is expected to be one of several. Opening a
 * channel costs one round trip and less processor time than a query over the bus, so it pays from the next query on. */
#define SUCCESSION_USEC USEC_PER_SEC

/* After so many small results in a row a statement is no longer taken for a large one. */
#define N_SMALL_MIN 4u

/* A channel whose answers have not advanced for this long is busy. */
#define BUSY_USEC 10000u

/* True if a new request would wait for another that may take long: in a blocking program, a result that it has not read;
 * otherwise, an answer that is late. Requests that were cancelled and forgotten do not count, because they end soon. */
static bool is_busy(const ChannelLink *ch) {
        if (!channel_link_has_reader(ch))
                return false;
        return ch->connection->blocking || now_usec() - ch->moved_usec > BUSY_USEC;
}

/* True if a channel is likely to save more than it costs: small results come in quick succession. */
static bool is_worth_it(const ChannelLink *ch) {
        uint64_t now = now_usec();

        return !ch->unsupported && now >= ch->not_before_usec && ch->connection->small_usec > 0 &&
               now - ch->connection->small_usec <= SUCCESSION_USEC;
}

/* Opens the channel. False: there is no room for it, because the others are in use: taking turns would cost more than it
 * saves. Or it cannot be opened. */
static bool open_freely(ChannelLink *ch) {
        if (!channel_link_make_room(ch->connection, SUCCESSION_USEC))
                return false;
        if (channel_link_open(ch) >= 0)
                return true;
        channel_link_back_off(ch);
        return false;
}

static Way choose_freely(ChannelLink *ch, bool large, Attempt *attempt) {
        if (large)
                return WAY_BUS;
        if (ch->state == CHANNEL_LINK_CLOSED && *attempt == ATTEMPT_ANY && is_worth_it(ch) && open_freely(ch))
                *attempt = ATTEMPT_OPENED;
        if (ch->state == CHANNEL_LINK_OPENING)
                return WAY_WAIT;
        return ch->state == CHANNEL_LINK_OPEN && !is_busy(ch) ? WAY_CHANNEL : WAY_BUS;
}

bool transport_needs_channel(const ChannelLink *ch, size_t parameters_size) {
        sqlipc_transport transport = ch->connection->transport;

        return transport == SQLIPC_TRANSPORT_CHANNEL ||
               (transport == SQLIPC_TRANSPORT_AUTO && parameters_size > BUS_PARAMETERS_SIZE_MAX);
}

static bool needs_descriptors(sqlipc_transport transport) {
        return transport == SQLIPC_TRANSPORT_PIPE || transport == SQLIPC_TRANSPORT_CHANNEL;
}

static Way choose_without_descriptors(ChannelLink *ch) {
        if (!needs_descriptors(ch->connection->transport))
                return WAY_ROWS;
        (void) error_set_no_descriptors(&ch->error);
        return WAY_NONE;
}

Way transport_choose(ChannelLink *ch, bool large, Attempt *attempt, size_t parameters_size) {
        bool only_channel = ch->connection->transport == SQLIPC_TRANSPORT_CHANNEL;
        int r;

        switch (connection_bus_descriptors(ch->connection)) {
        case DESCRIPTORS_UNKNOWN:
                return WAY_WAIT;
        case DESCRIPTORS_NONE:
                return choose_without_descriptors(ch);
        case DESCRIPTORS_PASS:
                break;
        }
        if (ch->connection->transport == SQLIPC_TRANSPORT_DBUS)
                return WAY_ROWS;
        if (ch->connection->transport == SQLIPC_TRANSPORT_PIPE || *attempt == ATTEMPT_BUS ||
            parameters_size > PARAMETER_ROW_SIZE_MAX) /* no request on a channel is as large, but a file is */
                return WAY_BUS;
        if (!transport_needs_channel(ch, parameters_size))
                return choose_freely(ch, large, attempt);
        switch (ch->state) {
        case CHANNEL_LINK_OPEN:
                return WAY_CHANNEL;
        case CHANNEL_LINK_OPENING:
                *attempt = ATTEMPT_OPENED;
                return WAY_WAIT;
        case CHANNEL_LINK_CLOSED:
        case CHANNEL_LINK_STATE_MAX:
                break;
        }
        if (*attempt != ATTEMPT_OPENED) {
                *attempt = ATTEMPT_OPENED;
                (void) channel_link_make_room(ch->connection, 0); /* if all have requests in progress, there is one more */
                r = channel_link_open(ch);
                if (r >= 0)
                        return WAY_WAIT;
                (void) error_set_send(&ch->error, r);
        }
        return only_channel ? WAY_NONE : WAY_BUS;
}

uint32_t transport_sql_sum(const char *sql) {
        uint32_t sum = 0x811c9dc5; /* FNV-1a */

        while (*sql)
                sum = (sum ^ (uint8_t) *sql++) * 0x01000193;
        return sum ? sum : 1; /* 0 means none */
}

static uint32_t *find_large_query(ChannelLink *ch, uint32_t sum) {
        for (size_t i = 0; i < sizeof ch->large_queries / sizeof ch->large_queries[0]; i++)
                if (ch->large_queries[i] == sum)
                        return &ch->large_queries[i];
        return NULL;
}

bool transport_is_large(const ChannelLink *ch, const Habit *habit, uint32_t sql_sum) {
        if (habit)
                return habit->large;
        return find_large_query((ChannelLink *) ch, sql_sum) != NULL;
}

static void note_query(ChannelLink *ch, uint32_t sum, bool small) {
        uint32_t *found = find_large_query(ch, sum);

        if (found && small)
                *found = 0;
        else if (!found && !small) {
                ch->large_queries[ch->next_large_query] = sum;
                ch->next_large_query = (ch->next_large_query + 1) % (sizeof ch->large_queries / sizeof ch->large_queries[0]);
        }
}

/* A statement that gives large results now and then stays with its pipe, because changing costs more than it saves. */
static void note_statement(Habit *habit, bool small) {
        habit->n_small = small ? habit->n_small + 1 : 0;
        if (!small)
                habit->large = true;
        else if (habit->n_small >= N_SMALL_MIN)
                habit->large = false;
}

void transport_on_result(ChannelLink *ch, Habit *habit, uint32_t sql_sum, uint64_t n_bytes, uint64_t usec) {
        bool small = n_bytes <= SMALL_SIZE_MAX && usec <= SMALL_USEC_MAX;

        if (habit)
                note_statement(habit, small);
        else
                note_query(ch, sql_sum, small);
        if (small)
                ch->connection->small_usec = now_usec();
}

_public_ int sqlipc_set_transport(sqlipc_connection *connection, sqlipc_transport transport) {
        int r = connection_check(connection);

        if (r < 0)
                return r;
        if (transport != SQLIPC_TRANSPORT_AUTO && transport != SQLIPC_TRANSPORT_DBUS && !needs_descriptors(transport))
                return connection_fail_errno(connection, -EINVAL);
        if (needs_descriptors(transport) && connection_bus_descriptors(connection) == DESCRIPTORS_NONE)
                return error_set_no_descriptors(&connection->error);
        connection->transport = transport;
        return 0;
}
