/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See served-channel.h. From top to bottom: states, creation and destruction, input, facts.
 */
#include "daemon/worker/core/served-channel.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/worker/core/channel-state.h"
#include "daemon/worker/core/monotonic.h"
#include "dbus-interfaces/wire/channel-memory.h"

#define READS_MIN 64u    /* a channel that has read more often than this since it wrote, */
#define COMMITS_MIN 64u  /* while the worker has committed so often, should move */
#define QUIET_USEC (10 * USEC_PER_SEC)   /* after this time without requests the channel goes back to the supervisor */

/* ---- states ---- */

bool served_channel_state_may_follow(ChannelState from, ChannelState to) {
        static const unsigned may[_CHANNEL_STATE_MAX] = {
                [CHANNEL_IDLE] = 1 << CHANNEL_READY | 1 << CHANNEL_OVER,
                [CHANNEL_READY] = 1 << CHANNEL_IDLE | 1 << CHANNEL_WAITING | 1 << CHANNEL_DRAINING | 1 << CHANNEL_OVER,
                [CHANNEL_WAITING] = 1 << CHANNEL_READY | 1 << CHANNEL_SLOW,
                [CHANNEL_DRAINING] = 1 << CHANNEL_READY | 1 << CHANNEL_SLOW | 1 << CHANNEL_OVER,
        };

        return from < _CHANNEL_STATE_MAX && to < _CHANNEL_STATE_MAX && may[from] & 1u << to;
}

ChannelState served_channel_set_state(ServedChannel *c, ChannelState state) {
        assert(state == c->state || served_channel_state_may_follow(c->state, state));
        return c->state = state;
}

void served_channel_restrict(ServedChannel *c, ChannelIntake intake) {
        if (intake > c->intake)
                c->intake = intake;
}

/* ---- creation and destruction ---- */

/* The largest payload of a request: SQL, a row, and the largest head. */
static size_t payload_max(const JobContext *context, const ChannelSetup *setup) {
        uint64_t row = setup->row_size_max < CHANNEL_REQUEST_SIZE_MAX ? setup->row_size_max : CHANNEL_REQUEST_SIZE_MAX;

        return (size_t) row + context->setup->sql_size_max + CHANNEL_QUERY_HEAD_SIZE;
}

static int map_memory(ServedChannel *c, int fd) {
        ChannelMemory *memory;
        int r = channel_memory_map(fd, &memory);

        if (r < 0)
                return r;
        c->side = channel_side_of_worker(memory);
        c->job.writer.ring = &c->side.out;
        return 0;
}

static int set_up(ServedChannel *c, const JobOwner *owner, JobContext *context, const ReceivedMessage *received) {
        const ChannelSetup *setup = &received->message.channel;
        int r;

        r = job_init(&c->job, &c->task, owner, context, received->pipe_fd, setup->page_size);
        if (r == 0)
                r = channel_input_init(&c->input, payload_max(context, setup));
        if (r == 0 && setup->state.size > 0)
                r = channel_state_unpack(setup->state, &c->input, &c->statements, &c->settings);
        if (r == 0 && setup->memory)
                r = map_memory(c, received->memory_fd);
        if (r == 0 && !(fcntl(received->pipe_fd, F_GETFL) & O_NONBLOCK))
                r = -EBADMSG; /* a blocking socket would block the worker */
        return r;
}

int served_channel_new(JobContext *context, const JobOwner *owner, ReceivedMessage *received, ServedChannel **ret) {
        ServedChannel *c = calloc(1, sizeof *c);
        int r;

        if (!c)
                return -ENOMEM;
        c->setup = received->message.channel;
        c->settings.lock_wait_usec = UINT64_MAX;
        c->task = (Task) { .job = &c->job, .number = c->setup.number, .client = c->setup.client };
        c->state = CHANNEL_READY;
        c->fd = -1;
        c->statements.n_max = c->setup.statements_max;
        c->progress.number = c->setup.number;
        c->used_usec = now_coarse_usec();
        c->reads = c->setup.reads;
        c->n_commits = context->n_commits;
        c->readable = true; /* the supervisor hands a channel over when its socket is readable */
        r = set_up(c, owner, context, received);
        c->setup.state = (Bytes) {};
        c->setup.path = NULL;
        if (r < 0) {
                (void) served_channel_free(c);
                return r;
        }
        c->fd = received->pipe_fd;
        received->pipe_fd = -1;
        received_message_done(received);
        *ret = c;
        return 0;
}

ServedChannel *served_channel_free(ServedChannel *c) {
        if (!c)
                return NULL;
        job_done(&c->job);
        channel_input_free(&c->input);
        channel_statements_free(&c->statements);
        free(c->sql);
        (void) channel_memory_unmap(c->side.memory);
        if (c->fd >= 0)
                (void) close(c->fd);
        free(c);
        return NULL;
}

/* ---- input: the memory ---- */

/* The bytes that were in the ring before the turn began are read by themselves: only their requests had been sent by
 * then. */
static void note_sent(ServedChannel *c, size_t size) {
        if (c->n_sent > 0) {
                c->batch = c->input.scanned_number;
                c->next_was_sent = channel_input_is_partial(&c->input);
                c->input.passed = false;
        }
        c->n_sent -= c->n_sent < size ? c->n_sent : size;
        c->reported = c->n_sent > 0;
}

static void wake_writer(ServedChannel *c) {
        bool withdrawn, slept = channel_ring_wake_writer(&c->side.in, &withdrawn);
        ssize_t n = 1;

        if (withdrawn) /* the client may have sent these requests to another worker */
                c->client_left = true;
        else if (slept)
                do
                        n = write(c->fd, "", 1);
                while (n == 0 || (n < 0 && errno == EINTR));
        if (n < 0 && errno != EAGAIN)
                c->client_left = true;
}

static bool read_memory(ServedChannel *c) {
        uint8_t *room;
        size_t size;
        ssize_t n;

        if (c->client_left)
                return false;
        if (channel_input_reserve(&c->input, &room, &size) < 0) {
                c->client_left = true;
                return false;
        }
        if (size == 0)
                return false;
        n = channel_ring_read(&c->side.in, room, c->n_sent > 0 && c->n_sent < size ? c->n_sent : size);
        if (n == 0 && c->half_closed)
                served_channel_restrict(c, CHANNEL_ENDED);
        c->client_left = n < 0;
        if (n <= 0)
                return false;
        wake_writer(c);
        if (c->client_left)
                return false;
        channel_input_commit(&c->input, (size_t) n);
        note_sent(c, (size_t) n);
        return true;
}

bool served_channel_look(ServedChannel *c) {
        bool busy = served_channel_is_busy(c);

        if (busy)
                (void) read_memory(c);
        if (c->client_left || (busy && c->input.cancelled && !job_is_ending(&c->job)))
                return true;
        if (c->state == CHANNEL_IDLE)
                return served_channel_has_input(c);
        return served_channel_waits_for_room(c) && channel_ring_has_room(&c->side.out);
}

void served_channel_fall_asleep(ServedChannel *c) {
        uint8_t bytes[512];

        if (!c->side.memory)
                return;
        /* descriptors that come, too, are dropped by the kernel */
        if (c->woken && read(c->fd, bytes, sizeof bytes) < (ssize_t) sizeof bytes)
                c->woken = false;
        channel_ring_reader_sleeps(&c->side.in);
        if (served_channel_waits_for_room(c))
                channel_ring_writer_sleeps(&c->side.out);
}

/* ---- input: the socket ---- */

/* Works like read(). *ret_more: more bytes may be left, without another event for them. This is so after a message with
 * descriptors, which are not expected and dropped: the kernel does not join it with other bytes. It is also so for the
 * end-of-file of a half-closed socket. */
static ssize_t read_some(ServedChannel *c, uint8_t *room, size_t size, bool *ret_more) {
        struct iovec part = { .iov_base = room, .iov_len = size };
        struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };
        ssize_t n = recvmsg(c->fd, &m, 0);

        *ret_more = n > 0 && ((size_t) n == size || m.msg_flags & MSG_CTRUNC || c->half_closed);
        return n;
}

static bool read_socket(ServedChannel *c) {
        while (c->readable && !c->client_left) {
                uint8_t *room;
                size_t size;
                ssize_t n;
                bool more;

                if (channel_input_reserve(&c->input, &room, &size) < 0) {
                        c->client_left = true; /* without memory no request is served: the client opens another */
                        return false;
                }
                if (size == 0)
                        return false;
                n = read_some(c, room, size, &more);
                if (n < 0 && errno == EINTR)
                        continue;
                c->reported = false;
                c->readable = more; /* otherwise the socket is empty, and epoll reports new bytes */
                if (n > 0) {
                        channel_input_commit(&c->input, (size_t) n);
                        return true;
                }
                if (n == 0)
                        served_channel_restrict(c, CHANNEL_ENDED);
                c->client_left = n < 0 && errno != EAGAIN;
        }
        return false;
}

bool served_channel_read(ServedChannel *c) {
        return c->side.memory ? read_memory(c) : read_socket(c);
}

bool served_channel_on_events(ServedChannel *c, uint32_t events) {
        bool busy = served_channel_is_busy(c);

        if (events & (EPOLLHUP | EPOLLERR))
                c->client_left = true;
        if (events & EPOLLRDHUP)
                c->half_closed = true;
        if (c->side.memory) {
                c->woken = c->woken || events & EPOLLIN;
                return served_channel_look(c);
        }
        if (events & EPOLLIN)
                c->readable = c->reported = true;
        if (busy)
                (void) served_channel_read(c);
        if (c->client_left || (busy && c->input.cancelled))
                return true;
        return c->state == CHANNEL_IDLE ? c->readable : served_channel_waits_for_room(c) && events & EPOLLOUT;
}

/* ---- facts ---- */

bool served_channel_has_input(const ServedChannel *c) {
        bool unread = c->side.memory ? c->half_closed || channel_ring_fill(&c->side.in) != 0 : c->readable;

        return unread || c->intake != CHANNEL_OPEN || channel_input_waits(&c->input);
}

void served_channel_note_end(ServedChannel *c, bool wrote) {
        uint64_t n_commits = c->job.context->n_commits;

        if (wrote) {
                c->reads = false;
                c->n_reads = 0;
                c->n_commits = n_commits;
        } else if (c->n_reads < READS_MIN)
                c->n_reads++;
        else if (n_commits - c->n_commits >= COMMITS_MIN)
                c->reads = true;
}

bool served_channel_is_answered(const ServedChannel *c) {
        return !served_channel_is_busy(c) && page_writer_is_idle(&c->job.writer) && page_encoder_is_empty(&c->job.encoder);
}

bool served_channel_can_go_on(const ServedChannel *c) {
        return c->intake < CHANNEL_CLOSING && !c->client_left && !c->input.invalid &&
               channel_state_size(&c->input, &c->statements, &c->settings) <= CHANNEL_STATE_SIZE_MAX;
}

bool served_channel_can_move(const ServedChannel *c) {
        return served_channel_is_answered(c) && served_channel_can_go_on(c);
}

bool served_channel_waits_for_room(const ServedChannel *c) {
        return c->state == CHANNEL_DRAINING ||
               (c->state == CHANNEL_WAITING && (c->job.state == JOB_PARKED || c->job.state == JOB_DRAINING));
}

uint64_t served_channel_quiet_until(const ServedChannel *c) {
        uint64_t park_usec = c->job.context->setup->park_usec;

        if (c->intake >= CHANNEL_CLOSING && served_channel_waits_for_room(c) && c->job.state != JOB_PARKED)
                return c->used_usec + park_usec;
        if (c->state != CHANNEL_IDLE)
                return UINT64_MAX;
        return c->used_usec + (channel_input_is_partial(&c->input) ? park_usec : QUIET_USEC);
}
