/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See channel-rig.h. Tests only. */
#include "tests/rigs/channel-rig.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

void client_init(Rig *rig, Client *c) {
        int fds[2];

        g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), ==, 0);
        g_assert_cmpint(fcntl(fds[1], F_SETFL, O_NONBLOCK), ==, 0);
        *c = (Client) {
                .number = ++rig->next_number,
                .fd = fds[0],
                .kept_fd = fds[1],
                .memory_fd = rig_has_memory ? channel_memory_new() : -1,
                .output = g_byte_array_new(),
                .setup = {
                        .page_size = SQLIPC_PAGE_SIZE_DEFAULT,
                        .statements_max = 256,
                        .run_timeout_usec = LATER,
                        .prepare_timeout_usec = LATER,
                        .row_size_max = rig->row_size_max,
                        .result_rows_max = rig->result_rows_max,
                        .result_size_max = rig->result_size_max,
                },
        };
        if (rig_has_memory) {
                ChannelMemory *memory;

                g_assert_cmpint(channel_memory_map(c->memory_fd, &memory), ==, 0);
                c->side = channel_side_of_client(memory);
                c->setup.memory = true;
        }
        c->setup.number = c->number;
        page_decoder_init(&c->decoder, SQLIPC_PAGE_SIZE_MAX, SQLIPC_ROW_SIZE_MAX);
}

void client_open(Rig *rig, Client *c) {
        Message m = { .kind = MESSAGE_CHANNEL, .channel = c->setup };

        g_assert_cmpint(message_send_with(rig->control_fd, &m, c->kept_fd, c->memory_fd), ==, 0);
}

ReceivedMessage client_setup_message(const Client *c) {
        ReceivedMessage received = RECEIVED_MESSAGE_INIT;
        uint8_t *bytes;
        size_t size;

        g_assert_cmpint(message_encode(&(Message) { .kind = MESSAGE_CHANNEL, .channel = c->setup }, &bytes, &size), ==, 0);
        g_assert_cmpint(message_decode(bytes, size, &received), ==, 0);
        received.pipe_fd = dup(c->kept_fd);
        received.memory_fd = c->memory_fd >= 0 ? dup(c->memory_fd) : -1;
        return received;
}

void client_start(Rig *rig, Client *c) {
        client_init(rig, c);
        client_open(rig, c);
}

void client_leave(Client *c) {
        if (c->fd >= 0)
                close(c->fd);
        c->fd = -1;
}

void client_done(Client *c) {
        client_leave(c);
        if (c->kept_fd >= 0)
                close(c->kept_fd);
        if (c->memory_fd >= 0)
                close(c->memory_fd);
        (void) channel_memory_unmap(c->side.memory);
        g_byte_array_unref(c->output);
        page_decoder_done(&c->decoder);
}

void client_add_frame(Client *c, unsigned kind, unsigned flags, uint64_t number, const void *payload, size_t size) {
        static const uint8_t padding[FRAME_ALIGN];
        uint8_t header[FRAME_HEADER_SIZE];

        store_le32(header, (uint32_t) size);
        header[4] = (uint8_t) kind;
        header[5] = SQLIPC_PAGE_VERSION;
        store_le16(header + 6, (uint16_t) flags);
        store_le64(header + 8, number);
        g_byte_array_append(c->output, header, sizeof header);
        if (size > 0)
                g_byte_array_append(c->output, payload, (guint) size);
        g_byte_array_append(c->output, padding, (guint) (frame_padded(size) - size));
}

/* The row of parameters behind `payload`. */
static void append_values(GByteArray *payload, unsigned n, const int64_t *values) {
        guint at = payload->len;

        g_byte_array_set_size(payload, at + n * (5 + 8));
        for (unsigned i = 0; i < n; i++) {
                payload->data[at + i] = VALUE_INTEGER;
                store_le32(payload->data + at + n + 4 * i, 8 * (i + 1));
                store_le64(payload->data + at + 5 * n + 8 * i, (uint64_t) values[i]);
        }
}

uint64_t client_add_prepare(Client *c, const char *sql) {
        client_add_frame(c, REQUEST_PREPARE, 0, ++c->request, sql, strlen(sql));
        return c->request;
}

uint64_t client_add_fetch(Client *c, uint64_t statement, unsigned n_values, const int64_t *values) {
        g_autoptr(GByteArray) payload = g_byte_array_new();

        g_byte_array_set_size(payload, CHANNEL_FETCH_HEAD_SIZE);
        store_le64(payload->data, statement);
        store_le64(payload->data + 8, 0);
        store_le32(payload->data + 16, n_values);
        store_le32(payload->data + 20, 0);
        append_values(payload, n_values, values);
        client_add_frame(c, REQUEST_FETCH, 0, ++c->request, payload->data, payload->len);
        return c->request;
}

uint64_t client_add_query(Client *c, const char *sql, unsigned n_values, const int64_t *values) {
        g_autoptr(GByteArray) payload = g_byte_array_new();

        g_byte_array_set_size(payload, CHANNEL_QUERY_HEAD_SIZE);
        store_le64(payload->data, 0);
        store_le32(payload->data + 8, n_values);
        store_le32(payload->data + 12, 0);
        store_le32(payload->data + 16, (uint32_t) strlen(sql));
        store_le32(payload->data + 20, 0);
        g_byte_array_append(payload, (const uint8_t *) sql, (guint) strlen(sql));
        append_values(payload, n_values, values);
        client_add_frame(c, REQUEST_QUERY, 0, ++c->request, payload->data, payload->len);
        return c->request;
}

void client_add_cancel(Client *c, uint64_t number) {
        client_add_frame(c, REQUEST_CANCEL, 0, number, NULL, 0);
}

void client_add_finalize(Client *c, uint64_t statement) {
        client_add_frame(c, REQUEST_FINALIZE, 0, statement, NULL, 0);
}

/* ---- bytes ---- */

static void wake(Client *c) {
        g_assert_true(send(c->fd, "", 1, MSG_NOSIGNAL) == 1 || errno == EPIPE);
}

static void empty_socket(Client *c) {
        char bytes[64];
        ssize_t n = recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);

        c->at_end = n == 0 || (n < 0 && errno != EAGAIN);
}

/* Says that it sleeps. True: it need not. */
static bool falls_asleep(Client *c) {
        empty_socket(c);
        channel_ring_reader_sleeps(&c->side.in);
        return channel_ring_fill(&c->side.in) != 0 || c->at_end;
}

void client_wait(Client *c) {
        if (!c->side.memory)
                wait_for(c->fd);
        else
                while (channel_ring_fill(&c->side.in) == 0 && !falls_asleep(c))
                        wait_for(c->fd);
}

bool client_can_read(Client *c, int msec) {
        struct pollfd p = { .fd = c->fd, .events = POLLIN };

        if (!c->side.memory)
                return poll(&p, 1, msec) > 0;
        for (int left = msec;; left--) {
                if (channel_ring_fill(&c->side.in) != 0 || falls_asleep(c))
                        return true;
                if (left == 0)
                        return false;
                (void) poll(&p, 1, 1);
        }
}

static void withhold(Client *c) {
        atomic_store(&c->side.in.head->read, c->side.in.own - c->withheld);
}

/* The worker must never see how much was read. */
static ssize_t read_withholding(Client *c, uint8_t *room, size_t size) {
        ChannelRingHead shown = { .written = atomic_load(&c->side.in.head->written) };
        ChannelRing ring = { .head = &shown, .bytes = c->side.in.bytes, .own = c->side.in.own };
        ssize_t n = channel_ring_read(&ring, room, size);

        c->side.in.own = ring.own;
        withhold(c);
        return n;
}

void client_narrow(Client *c, uint32_t room) {
        if (!c->side.memory)
                return;
        c->withheld = CHANNEL_RING_SIZE - room;
        withhold(c);
}

static size_t write_memory(Client *c, const void *bytes, size_t size) {
        ssize_t n = channel_ring_write(&c->side.out, bytes, size);

        if (n == 0) {
                empty_socket(c);
                channel_ring_writer_sleeps(&c->side.out);
                n = channel_ring_write(&c->side.out, bytes, size);
        }
        if (n == 0)
                wait_for(c->fd);
        g_assert_cmpint(n, >=, 0);
        if (channel_ring_wake_reader(&c->side.out))
                wake(c);
        return (size_t) n;
}

void client_send_bytes(Client *c, const void *bytes, size_t size) {
        for (size_t done = 0; done < size;) {
                const uint8_t *from = (const uint8_t *) bytes + done;
                ssize_t n = c->side.memory ? (ssize_t) write_memory(c, from, size - done)
                                           : send(c->fd, from, size - done, MSG_NOSIGNAL);

                g_assert_cmpint(n, >=, 0);
                done += (size_t) n;
        }
}

void client_send(Client *c) {
        client_send_bytes(c, c->output->data, c->output->len);
        g_byte_array_set_size(c->output, 0);
}

static ssize_t read_memory(Client *c, uint8_t *room, size_t size) {
        bool withdrawn;
        ssize_t n = c->withheld > 0 ? read_withholding(c, room, size) : channel_ring_read(&c->side.in, room, size);

        if (n > 0 && channel_ring_wake_writer(&c->side.in, &withdrawn))
                wake(c);
        return n;
}

bool client_read(Client *c) {
        uint8_t *room;
        size_t size;
        ssize_t n;

        g_assert_cmpint(page_decoder_reserve(&c->decoder, &room, &size), ==, 0);
        client_wait(c);
        n = c->side.memory ? read_memory(c, room, size) : read(c->fd, room, size);
        g_assert_true(n >= 0 || errno == ECONNRESET);
        if (n <= 0)
                return false;
        page_decoder_commit(&c->decoder, (size_t) n);
        return true;
}

size_t client_write_unread(Client *c, const uint8_t *bytes, size_t size) {
        ChannelSide worker;
        ssize_t n;

        if (c->side.memory) {
                worker = channel_side_of_worker(c->side.memory);
                n = channel_ring_write(&worker.out, bytes, size);
        } else
                n = write(c->kept_fd, bytes, size);
        return n > 0 ? (size_t) n : 0;
}

size_t client_n_unread(const Client *c) {
        int n;

        if (c->side.memory)
                return (size_t) channel_ring_fill(&c->side.in);
        g_assert_cmpint(ioctl(c->fd, FIONREAD, &n), ==, 0);
        return (size_t) n;
}

/* ---- answers ---- */

/* STATEMENT, which is no frame that the decoder of runs knows: it is taken out before that sees it. */
static bool statement_is_next(const PageDecoder *d) {
        return d->rows_left == 0 && d->fill - d->start >= FRAME_HEADER_SIZE && d->buffer[d->start + 4] == FRAME_STATEMENT;
}

/* Of one in parts the first tells. True: this was the last. */
static bool take_statement(Client *c, Answer *ret) {
        PageDecoder *d = &c->decoder;
        const uint8_t *at = d->buffer + d->start;
        size_t size = load_le32(at);

        while (d->fill - d->start < FRAME_HEADER_SIZE + frame_padded(size))
                g_assert_true(client_read(c));
        at = d->buffer + d->start;
        if (!ret->statement)
                *ret = (Answer) {
                        .number = load_le64(at + 8),
                        .statement = true,
                        .n_columns = load_le32(at + FRAME_HEADER_SIZE),
                        .n_parameters = load_le32(at + FRAME_HEADER_SIZE + 4),
                };
        d->start += FRAME_HEADER_SIZE + frame_padded(size);
        return !(load_le16(at + 6) & FRAME_MORE);
}

bool client_receive(Client *c, Answer *ret) {
        PageDecoder *d = &c->decoder;

        *ret = (Answer) {};
        for (;;) {
                int r;

                while (statement_is_next(d))
                        if (take_statement(c, ret))
                                return true;
                r = page_decoder_next(d);
                g_assert_cmpint(r, >=, 0);
                if (r == PAGE_MORE && d->fill - d->start < FRAME_HEADER_SIZE) {
                        if (!client_read(c)) {
                                g_assert_cmpuint(ret->n_rows, ==, 0);
                                return false;
                        }
                        continue;
                }
                ret->number = d->run;
                if (r == PAGE_MORE && !client_read(c))
                        return false;
                if (r == PAGE_ROW) {
                        PageValue v = page_decoder_value(d, 0);

                        ret->n_rows++;
                        if (v.type == VALUE_INTEGER)
                                ret->integer = (int64_t) load_le64(v.bytes);
                }
                if (r == PAGE_COLUMNS)
                        ret->n_columns = d->n_columns;
                if (r == PAGE_ERROR) {
                        ret->error = d->error_number;
                        g_strlcpy(ret->message, d->error_message, sizeof ret->message);
                        return true;
                }
                if (r == PAGE_END) {
                        ret->counters = d->end_counters;
                        g_assert_cmpuint(ret->counters.n_rows, ==, ret->n_rows);
                        return true;
                }
        }
}

Answer client_expect(Client *c, uint64_t number, ErrorNumber error) {
        Answer a;

        g_assert_true(client_receive(c, &a));
        if (a.error != error)
                g_test_message("request %" G_GUINT64_FORMAT ": %s", number, a.message);
        g_assert_cmpuint(a.number, ==, number);
        g_assert_cmpint(a.error, ==, error);
        return a;
}

Answer client_query(Client *c, const char *sql) {
        uint64_t number = client_add_query(c, sql, 0, NULL);
        Answer a;

        client_send(c);
        g_assert_true(client_receive(c, &a));
        g_assert_cmpuint(a.number, ==, number);
        return a;
}

static void add(ChannelProgress *sums, const ChannelProgress *p) {
        if (!sums)
                return;
        sums->n_runs += p->n_runs;
        sums->n_rows += p->n_rows;
        sums->n_bytes += p->n_bytes;
        sums->n_statements = p->n_statements;
}

ChannelProgress client_next_progress(Rig *rig) {
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;
        ChannelProgress p;

        wait_for(rig->control_fd);
        g_assert_cmpint(message_receive(rig->control_fd, &m), ==, 1);
        g_assert_cmpint(m.message.kind, ==, MESSAGE_CHANNEL_PROGRESS);
        p = m.message.channel_progress;
        received_message_done(&m);
        return p;
}

ReceivedMessage client_expect_end(Rig *rig, Client *c, MessageKind kind, ChannelProgress *sums) {
        for (;;) {
                ReceivedMessage m = RECEIVED_MESSAGE_INIT;

                wait_for(rig->control_fd);
                g_assert_cmpint(message_receive(rig->control_fd, &m), ==, 1);
                if (m.message.kind == MESSAGE_CHANNEL_PROGRESS) {
                        if (m.message.channel_progress.number == c->number)
                                add(sums, &m.message.channel_progress);
                        received_message_done(&m);
                        continue;
                }
                g_assert_cmpint(m.message.kind, ==, kind);
                g_assert_cmpuint(m.message.channel_end.progress.number, ==, c->number);
                add(sums, &m.message.channel_end.progress);
                return m;
        }
}

void client_take_up(Rig *rig, Client *c, const ReceivedMessage *rested) {
        c->setup.state = rested->message.channel_end.state;
        client_open(rig, c);
        c->setup.state = (Bytes) {};
}
