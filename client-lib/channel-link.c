/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The socket between a connection and a database's worker (channel-link.h). Library. */
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "client-lib/buffer.h"
#include "client-lib/call.h"
#include "client-lib/channel-bytes.h"
#include "client-lib/channel-link.h"
#include "client-lib/channel-read.h"
#include "client-lib/connection-bus.h"
#include "client-lib/connection.h"
#include "client-lib/dictionary.h"
#include "client-lib/error.h"
#include "client-lib/event-loop.h"

/* How long a cancelled run may take to end. */
#define CANCEL_TIMEOUT_USEC USEC_PER_SEC

#define REQUESTS_MIN 16u

/* How long a channel that failed is not opened again. */
#define BACKOFF_MIN_USEC (USEC_PER_SEC / 10)
#define BACKOFF_MAX_USEC (30 * USEC_PER_SEC)

static const MemberOperations member_operations;

static ChannelLink **find_place(sqlipc_connection *c, const char *path) {
        uint32_t sum = 0;

        while (*path)
                sum = 31 * sum + (uint8_t) *path++;
        return &c->channel_table[sum % (sizeof c->channel_table / sizeof *c->channel_table)];
}

static ChannelLink *find(ChannelLink *ch, const char *path) {
        while (ch && strcmp(ch->path, path) != 0)
                ch = ch->next_in_table;
        return ch;
}

ForeignKeys channel_link_foreign_keys(sqlipc_connection *c, const char *path) {
        const ChannelLink *ch = find(*find_place(c, path), path);

        return ch ? ch->foreign_keys : FOREIGN_KEYS_CONFIGURED;
}

ChannelLink *channel_link_get(sqlipc_connection *c, const char *path) {
        ChannelLink **place = find_place(c, path), *ch = find(*place, path);

        if (ch)
                return ch;
        ch = malloc(sizeof *ch);
        if (!ch)
                return NULL;
        *ch = (ChannelLink) { .member.operations = &member_operations, .connection = c, .path = strdup(path), .fd = -1,
                              .error = { .sql_offset = -1 } };
        if (!ch->path) {
                free(ch);
                return NULL;
        }
        ch->next_in_table = *place;
        *place = ch;
        TAILQ_INSERT_HEAD(&c->channels, &ch->member, link);
        return ch;
}

/* ---- Opening and closing ------------------------------------------------------------------------------------------ */

typedef struct ChannelInfo {
        uint32_t page_size, page_version;
        uint32_t n_left; /* channels that the user may open besides */
        bool tells_left, read_only, knows_zone, knows_lock_wait;
        int memory_fd;   /* the reply's; -1: none */
} ChannelInfo;

static int read_info(sd_bus_message *reply, const char *key, const char *type, void *userdata) {
        ChannelInfo *info = userdata;

        if (strcmp(key, "page-size") == 0 && strcmp(type, "u") == 0)
                return sd_bus_message_read(reply, "v", "u", &info->page_size);
        if (strcmp(key, "page-version") == 0 && strcmp(type, "u") == 0)
                return sd_bus_message_read(reply, "v", "u", &info->page_version);
        if (strcmp(key, "channels-left") == 0 && strcmp(type, "u") == 0) {
                info->tells_left = true;
                return sd_bus_message_read(reply, "v", "u", &info->n_left);
        }
        if (strcmp(key, "readonly") == 0 && strcmp(type, "b") == 0)
                return dictionary_read_bool(reply, &info->read_only);
        if (strcmp(key, "time-zone") == 0 && strcmp(type, "b") == 0)
                return dictionary_read_bool(reply, &info->knows_zone);
        if (strcmp(key, "lock-wait") == 0 && strcmp(type, "b") == 0)
                return dictionary_read_bool(reply, &info->knows_lock_wait);
        if (strcmp(key, "memory") == 0 && strcmp(type, "h") == 0)
                return sd_bus_message_read(reply, "v", "h", &info->memory_fd);
        return 0;
}

static bool is_socket_option(int fd, int option, int value) {
        socklen_t size = sizeof value;
        int got;

        return getsockopt(fd, SOL_SOCKET, option, &got, &size) >= 0 && got == value;
}

static bool is_stream_socket(int fd) {
        return is_socket_option(fd, SO_DOMAIN, AF_UNIX) && is_socket_option(fd, SO_TYPE, SOCK_STREAM) &&
               is_socket_option(fd, SO_ACCEPTCONN, 0);
}

static unsigned count_open(const sqlipc_connection *c) {
        unsigned n = 0;
        Member *member;

        TAILQ_FOREACH(member, &c->channels, link)
                n += ((const ChannelLink *) member)->state != CHANNEL_LINK_CLOSED;
        return n;
}

static void set_channels_max(sqlipc_connection *c, uint32_t n_left) {
        uint64_t n = (uint64_t) count_open(c) + n_left / 3;

        c->n_channels_max = n < CHANNELS_KEPT_MAX ? (unsigned) n : CHANNELS_KEPT_MAX;
}

static int take_socket(ChannelLink *ch, sd_bus_message *reply) {
        const char *sender = sd_bus_message_get_sender(reply);
        _cleanup_free_ char *owner = NULL;
        ChannelInfo info = { .page_version = 1, .memory_fd = -1 };
        int fd, copy, r;

        r = sd_bus_message_read(reply, "h", &fd);
        if (r < 0)
                return r;
        r = dictionary_read(reply, read_info, &info);
        if (r < 0)
                return r;
        r = call_check_page_version(info.page_version);
        if (r < 0)
                return r;
        if (info.page_size < SQLIPC_PAGE_SIZE_MIN || info.page_size > SQLIPC_PAGE_SIZE_MAX)
                return -EBADMSG;
        if (sender && !(owner = strdup(sender)))
                return -ENOMEM;
        if (!is_stream_socket(fd))
                return -EBADMSG;
        copy = fcntl(fd, F_DUPFD_CLOEXEC, 3); /* closing the message closes its own descriptor */
        if (copy < 0)
                return -errno;
        r = info.memory_fd >= 0 ? channel_bytes_map(ch, info.memory_fd) : 0;
        if (r < 0) {
                (void) safe_close(copy);
                return r;
        }
        free(ch->owner);
        ch->owner = steal(owner);
        ch->page_size = info.page_size;
        ch->read_only = info.read_only;
        ch->n_written = ch->n_sent = 0;
        ch->fd = copy;
        ch->generation++;
        ch->last_number = 0;
        ch->told = FOREIGN_KEYS_CONFIGURED;
        ch->knows_zone = info.knows_zone;
        ch->knows_lock_wait = info.knows_lock_wait;
        ch->told_lock_wait_usec = UINT64_MAX;
        ch->told_zone[0] = 1; /* no zone */
        ch->told_zone[1] = 0;
        ch->frame_left = 0;
        ch->used_usec = now_usec();
        ch->answered = ch->corked = ch->at_end = false;
        channel_link_life_move(&ch->state, CHANNEL_LINK_OPEN);
        if (info.tells_left)
                set_channels_max(ch->connection, info.n_left);
        return 0;
}

void channel_link_back_off(ChannelLink *ch) {
        ch->unsupported = ch->error.result == -EOPNOTSUPP || ch->error.result == -EBADMSG;
        ch->backoff_usec = ch->backoff_usec > 0 ? 2 * ch->backoff_usec : BACKOFF_MIN_USEC;
        if (ch->backoff_usec > BACKOFF_MAX_USEC)
                ch->backoff_usec = BACKOFF_MAX_USEC;
        ch->not_before_usec = now_usec() + ch->backoff_usec;
}

/* Asks once more, with fewer options: the service is older than the last one, or this process can map no memory. */
static bool open_with_less(ChannelLink *ch, int r) {
        if (ch->error.number == ERROR_UNKNOWN_OPTION && ch->asks_cached)
                ch->connection->without_cached = true;
        else if (!ch->connection->without_memory &&
                 (ch->error.number == ERROR_UNKNOWN_OPTION || r == -ENOMEM || r == -EPERM))
                ch->connection->without_memory = true;
        else
                return false;
        return channel_link_open(ch) == 0;
}

static void on_open_reply(sd_bus_message *reply, void *userdata) {
        ChannelLink *ch = userdata;
        int r = 0;

        ch->call = call_free(ch->call);
        ch->error.result = 0;
        ch->error.number = ERROR_NONE;
        if (sd_bus_message_get_error(reply))
                (void) error_set_reply(&ch->error, reply);
        else {
                r = take_socket(ch, reply);
                if (r < 0)
                        (void) error_set_errno(&ch->error, r, "The service opened no channel: %s.", strerrordesc_np(-r));
        }
        if (ch->error.result < 0) {
                channel_link_life_move(&ch->state, CHANNEL_LINK_CLOSED);
                if (!open_with_less(ch, r))
                        channel_link_back_off(ch);
        }
}

bool channel_link_make_room(sqlipc_connection *c, uint64_t idle_usec) {
        ChannelLink *ch, *oldest = NULL;
        Member *member;

        TAILQ_FOREACH(member, &c->channels, link) {
                ch = (ChannelLink *) member;
                if (ch->state == CHANNEL_LINK_OPEN && ch->n_requests == 0 && (!oldest || ch->used_usec < oldest->used_usec))
                        oldest = ch;
        }
        if (count_open(c) < (c->n_channels_max > 0 ? c->n_channels_max : CHANNELS_KEPT_MIN))
                return true;
        if (!oldest || now_usec() - oldest->used_usec < idle_usec)
                return false;
        channel_link_flush(oldest);
        oldest->answered = true; /* the library closes it: not a failure of the service */
        channel_link_drop(oldest);
        return true;
}

static int append_options(const ChannelLink *ch, sd_bus_message *m) {
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        if (r >= 0)
                r = sd_bus_message_append(m, "{sv}{sv}", "page-size", "u", (uint32_t) CHANNEL_READ_SIZE, "page-version", "u",
                                          (uint32_t) SQLIPC_PAGE_VERSION);
        if (r >= 0 && !ch->connection->without_memory)
                r = sd_bus_message_append(m, "{sv}", "memory", "b", true);
        if (r >= 0 && ch->asks_cached)
                r = sd_bus_message_append(m, "{sv}", "cached", "b", true);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

int channel_link_open(ChannelLink *ch) {
        _cleanup_message_ sd_bus_message *m = NULL;
        int r;

        if (ch->state != CHANNEL_LINK_CLOSED)
                return 0;
        r = connection_bus_ensure(ch->connection);
        if (r < 0)
                return r;
        r = connection_bus_new_call(ch->connection, &m, NULL, ch->path, "OpenChannel");
        if (r < 0)
                return r;
        ch->asks_cached = ch->connection->transport == SQLIPC_TRANSPORT_AUTO && !ch->connection->without_cached;
        r = append_options(ch, m);
        if (r < 0)
                return r;
        r = call_new(&ch->call, ch->connection, m, on_open_reply, NULL, ch, UINT64_MAX);
        if (r < 0)
                return r;
        channel_link_life_move(&ch->state, CHANNEL_LINK_OPENING);
        return 0;
}

/* `owner` was the daemon instance; without memory for its name the daemon is not asked if it lives. */
static void lose_reader(ChannelReader *reader, const char *owner, bool never_sent) {
        reader->lost = true;
        reader->source.never_sent = never_sent;
        free(reader->source.owner);
        reader->source.owner = owner ? strdup(owner) : NULL;
}

void channel_link_drop(ChannelLink *ch) {
        ch->call = call_free(ch->call);
        ch->n_sent -= channel_bytes_unmap(ch);
        for (unsigned i = 0; i < ch->n_requests; i++) {
                Request *request = channel_link_request_at(ch, i);

                if (request->reader)
                        lose_reader(request->reader, ch->owner, request->end > ch->n_sent);
        }
        ch->n_requests = 0;
        if (ch->fd >= 0) {
                event_loop_disarm(ch->connection, ch->fd);
                ch->fd = safe_close(ch->fd);
                event_loop_wake(ch->connection); /* the waiters for this descriptor must look again */
                if (!ch->answered)
                        channel_link_back_off(ch);
        }
        buffer_done(&ch->in);
        buffer_done(&ch->out);
        if (ch->state != CHANNEL_LINK_CLOSED)
                channel_link_life_move(&ch->state, CHANNEL_LINK_CLOSED);
}

/* ---- Asking ------------------------------------------------------------------------------------------------------- */

static int reserve_request(ChannelLink *ch) {
        unsigned capacity = ch->requests_capacity > 0 ? 2 * ch->requests_capacity : REQUESTS_MIN;
        Request *requests;

        if (ch->n_requests < ch->requests_capacity)
                return 0;
        requests = calloc(capacity, sizeof *requests);
        if (!requests)
                return -ENOMEM;
        for (unsigned i = 0; i < ch->n_requests; i++)
                requests[i] = *channel_link_request_at(ch, i);
        free(ch->requests);
        ch->requests = requests;
        ch->requests_capacity = capacity;
        ch->first_request = 0;
        return 0;
}

static void write_header(uint8_t *header, RequestKind kind, size_t size, uint64_t number) {
        store_le32(header, (uint32_t) size);
        header[4] = (uint8_t) kind;
        header[5] = SQLIPC_PAGE_VERSION;
        store_le16(header + 6, 0);
        store_le64(header + 8, number);
        memset(header + FRAME_HEADER_SIZE + size, 0, frame_padded(size) - size);
}

/* False: no memory. */
static bool tell_zone(ChannelLink *ch) {
        const char *zone = client_zone_get(&ch->connection->zone);
        uint64_t none = 0;
        uint8_t *payload;

        if (!ch->knows_zone || strcmp(zone, ch->told_zone) == 0)
                return true;
        payload = channel_link_request(ch, NULL, REQUEST_TIME_ZONE, strlen(zone), &none);
        if (!payload)
                return false;
        memcpy(payload, zone, strlen(zone));
        strcpy(ch->told_zone, zone);
        return true;
}

/* The same. */
static bool tell_setting(ChannelLink *ch) {
        uint64_t setting = ch->foreign_keys;

        if (ch->told != ch->foreign_keys && !channel_link_request(ch, NULL, REQUEST_FOREIGN_KEYS, 0, &setting))
                return false;
        ch->told = ch->foreign_keys;
        return true;
}

/* The same. */
static bool tell_lock_wait(ChannelLink *ch) {
        uint64_t usec = ch->connection->lock_wait_usec;

        if (ch->knows_lock_wait && ch->told_lock_wait_usec != usec &&
            !channel_link_request(ch, NULL, REQUEST_LOCK_WAIT, 0, &usec))
                return false;
        ch->told_lock_wait_usec = usec;
        return true;
}

uint8_t *channel_link_request(ChannelLink *ch, ChannelReader *reader, RequestKind kind, size_t size, uint64_t *number) {
        uint8_t *frame;

        if (reader && (!tell_setting(ch) || !tell_zone(ch) || !tell_lock_wait(ch) || reserve_request(ch) < 0))
                return NULL;
        frame = buffer_extend(&ch->out, FRAME_HEADER_SIZE + frame_padded(size));
        if (!frame)
                return NULL;
        ch->n_written += FRAME_HEADER_SIZE + frame_padded(size);
        if (reader) {
                *number = ++ch->last_number;
                ch->used_usec = now_usec();
                if (ch->n_requests == 0)
                        ch->moved_usec = ch->used_usec;
                *channel_link_request_at(ch, ch->n_requests++) = (Request) {
                        .number = *number, .kind = kind, .reader = reader, .end = ch->n_written, .deadline = UINT64_MAX,
                };
        }
        write_header(frame, kind, size, *number);
        if (!ch->connection->blocking && !ch->corked) { /* otherwise nothing would flush `out` before the program waits */
                ch->corked = true;
                event_loop_wake(ch->connection);
        }
        return frame + FRAME_HEADER_SIZE;
}

void channel_link_flush(ChannelLink *ch) {
        bool sent = false;
        int r = 0;

        ch->corked = false;
        if (ch->fd < 0 || connection_is_foreign(ch->connection))
                return;
        while (buffer_size(&ch->out) > 0) {
                ssize_t n = channel_bytes_send(ch, ch->out.bytes + ch->out.start, buffer_size(&ch->out));

                if (n >= 0) {
                        buffer_drop(&ch->out, (size_t) n);
                        ch->n_sent += (uint64_t) n;
                        sent = true;
                } else if (errno == EAGAIN)
                        break;
                else if (errno != EINTR) { /* closed; unread answers are lost and their requests repeated */
                        channel_link_drop(ch);
                        return;
                }
        }
        if (sent)
                r = channel_bytes_wake_worker(ch);
        ch->woke_worker = r > 0;
        if (r < 0)
                channel_link_drop(ch);
}

void channel_link_finalize(ChannelLink *ch, uint64_t statement) {
        if (ch->state != CHANNEL_LINK_OPEN || !channel_link_request(ch, NULL, REQUEST_FINALIZE, 0, &statement))
                return; /* without memory the statement stays until the channel closes */
        channel_link_flush(ch);
}

ChannelReader *channel_link_first_reader(const ChannelLink *ch) {
        return ch->n_requests > 0 ? channel_link_request_at(ch, 0)->reader : NULL;
}

bool channel_link_has_reader(const ChannelLink *ch) {
        for (unsigned i = 0; i < ch->n_requests; i++)
                if (channel_link_request_at(ch, i)->reader)
                        return true;
        return false;
}

unsigned channel_link_count(const ChannelLink *ch, const ChannelReader *reader) {
        unsigned n = 0;

        for (unsigned i = 0; i < ch->n_requests; i++)
                n += channel_link_request_at(ch, i)->reader == reader;
        return n;
}

void channel_link_limit_cancel(ChannelLink *ch) {
        Request *first = ch->n_requests > 0 ? channel_link_request_at(ch, 0) : NULL;

        if (first && first->cancelled && first->deadline == UINT64_MAX)
                first->deadline = now_usec() + CANCEL_TIMEOUT_USEC;
}

/* ---- Ending ------------------------------------------------------------------------------------------------------- */

static bool is_overdue(const ChannelLink *ch) {
        uint64_t until = ch->n_requests > 0 ? channel_link_request_at(ch, 0)->deadline : UINT64_MAX;

        return until != UINT64_MAX && now_usec() >= until;
}

void channel_link_cancel(ChannelLink *ch, ChannelReader *reader) {
        for (unsigned i = 0; i < ch->n_requests; i++) {
                Request *request = channel_link_request_at(ch, i);

                if (request->reader != reader || request->cancelled)
                        continue;
                request->cancelled = true;
                (void) channel_link_request(ch, NULL, REQUEST_CANCEL, 0, &request->number);
        }
        channel_link_limit_cancel(ch);
        channel_link_flush(ch);
}

void channel_link_forget(ChannelLink *ch, ChannelReader *reader) {
        for (unsigned i = 0; i < ch->n_requests; i++)
                if (channel_link_request_at(ch, i)->reader == reader)
                        channel_link_request_at(ch, i)->reader = NULL;
}

struct pollfd channel_link_pollfd(const ChannelLink *ch) {
        bool for_room = buffer_size(&ch->out) > 0 && !ch->side.memory;

        return (struct pollfd) { .fd = ch->fd, .events = POLLIN | (for_room ? POLLOUT : 0) };
}

/* ---- As a member of the connection -------------------------------------------------------------------------------- */

static void advance(Member *member) {
        ChannelLink *ch = (ChannelLink *) member;

        channel_link_flush(ch);
        if (is_overdue(ch))
                channel_read_forgotten(ch); /* the end may have come since, but was not read yet */
        if (is_overdue(ch)) /* the service does not obey a cancel */
                channel_link_drop(ch);
}

static uint64_t deadline(const Member *member) {
        const ChannelLink *ch = (const ChannelLink *) member;

        return ch->n_requests > 0 ? channel_link_request_at(ch, 0)->deadline : UINT64_MAX;
}

static void on_connection_closed(Member *member) {
        channel_link_drop((ChannelLink *) member);
}

static void free_member(Member *member) {
        ChannelLink *ch = (ChannelLink *) member;

        free(ch->requests);
        free(ch->owner);
        free(ch->path);
        free(ch);
}

static const MemberOperations member_operations = {
        .advance = advance,
        .close = on_connection_closed,
        .deadline = deadline,
        .free = free_member,
};
