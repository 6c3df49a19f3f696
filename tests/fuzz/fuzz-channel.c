/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any bytes as the input of a channel's client, through the worker's whole side of a channel: socket, requests, statements,
 * pool, SQLite, pages, and the answers decoded again. Each request is answered once, in its order, by a STATEMENT, a run or
 * ERROR, whether all comes at once or in pieces to a client that reads little, and the channel rests and moves in between;
 * through the socket, and through memory.
 *
 * The worker's own parser, which fuzz-channel-input tests, finds the requests; channel-mutator.c keeps requests
 * well-formed. Time is bound by opcodes, so that an input is the same each time.
 *
 * About: daemon/worker/core/served-channel.c daemon/worker/core/channel-input.c daemon/worker/core/channel-state.c
 * About: daemon/worker/core/channel-statements.c daemon/worker/core/channel-report.c daemon/worker/sqlite/bind.c
 * About: daemon/worker/core/statement-frames.c daemon/worker/core/job*.c
 * About: daemon/worker/core/page-writer.c daemon/worker/sqlite/pool.c
 * About: daemon/worker/sqlite/sqlite-engine.c daemon/worker/sqlite/sqlite-rows.c daemon/worker/sqlite/sqlite-statement.c
 * About: daemon/worker/sqlite/statement-cache.c
 */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/worker/core/channel-report.h"
#include "daemon/worker/core/channel-request.h"
#include "daemon/worker/core/channel-turn.h"
#include "daemon/worker/core/job-slice.h"
#include "daemon/worker/sqlite/sqlite-engine.h"
#include "dbus-interfaces/wire/channel-memory.h"
#include "dbus-interfaces/wire/page-decoder.h"
#include "tests/fuzz/replay.h"
#include "tests/rigs/worker-side.h"

enum { PROGRESS_MAX = 20, RETRIES_MAX = 3, TURNS_MAX = 100000, N_ANSWERS_MAX = 4096 };
#define HOUR UINT64_C(3600000000)

static char path[128];
static Setup setup;
static JobContext context = { .setup = &setup, .engine = &sqlite_engine };
static int reports_fd; /* the supervisor's end */
static ServedChannel *stepping;
static unsigned n_progress;

/* How the client behaves. */
typedef struct Manner {
        size_t at_once; /* sends and reads so much */
        bool moves;     /* the channel goes to another worker if it can */
        bool memory;    /* bytes go through memory */
} Manner;

typedef struct Client {
        Manner manner;
        const uint8_t *bytes; /* still to be sent */
        size_t size;
        int fd, memory_fd;
        ChannelSide side;
        PageDecoder decoder;
        bool end_of_file;
        size_t n;             /* answers */
        uint64_t numbers[N_ANSWERS_MAX];
} Client;

static Client client;
static uint64_t expected[N_ANSWERS_MAX];

/* As the worker's loop does, with a clock that goes by opcodes. */
static int on_progress(void *userdata) {
        (void) userdata;
        return stepping ? job_on_progress(&stepping->job, ++n_progress > PROGRESS_MAX ? UINT64_MAX : 0, true) : 0;
}

static void make_database(void) {
        sqlite3 *db;

        demand(sqlite3_open(path, &db) == SQLITE_OK);
        demand(sqlite3_exec(db,
                            "CREATE TABLE t(a INTEGER PRIMARY KEY, b);"
                            "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM c LIMIT 40)"
                            "INSERT INTO t SELECT x, printf('%.*c', x * 9, 'b') FROM c",
                            NULL, NULL, NULL) == SQLITE_OK);
        demand(sqlite3_close(db) == SQLITE_OK);
}

static void init(void) {
        int fds[2];

        snprintf(path, sizeof path, "%s/channel.sqlite", worker_side_init());
        setup = worker_side_setup(path);
        make_database();
        demand(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
        context.control_fd = fds[0];
        reports_fd = fds[1];
        demand(sqlite_engine.start(&setup, on_progress, NULL, &context.pool) == 0);
}

/* ---- what must be answered ---- */

static size_t find_requests(const uint8_t *bytes, size_t size, size_t payload_max) {
        ChannelInput in;
        ChannelRequest q;
        size_t n = 0, n_room;
        uint8_t *room;
        int r = 0;

        demand(channel_input_init(&in, payload_max) == 0);
        for (;;) {
                while (n < N_ANSWERS_MAX && (r = channel_input_take(&in, &q)) > 0) {
                        if (q.kind != REQUEST_FINALIZE && q.kind != REQUEST_FOREIGN_KEYS && q.kind != REQUEST_TIME_ZONE &&
                            q.kind != REQUEST_LOCK_WAIT)
                                expected[n++] = q.number;
                        channel_input_done(&in);
                }
                if (r < 0 || size == 0 || n == N_ANSWERS_MAX)
                        break;
                demand(channel_input_reserve(&in, &room, &n_room) == 0 && n_room > 0);
                n_room = n_room < size ? n_room : size;
                memcpy(room, bytes, n_room);
                channel_input_commit(&in, n_room);
                bytes += n_room;
                size -= n_room;
        }
        if (r < 0) /* it is told that this is none, by the number that it said */
                expected[n++] = load_le64(in.bytes + in.scanned + 8);
        channel_input_free(&in);
        return n;
}

/* ---- the client ---- */

static void take_answer(int event) {
        const PageDecoder *d = &client.decoder;

        if (event == PAGE_ROW)
                for (unsigned i = 0; i < d->n_columns; i++) {
                        PageValue v = page_decoder_value(d, i);

                        demand(v.type != VALUE_TEXT || v.bytes[v.size] == 0);
                }
        if (event != PAGE_STATEMENT && event != PAGE_END && event != PAGE_ERROR)
                return;
        demand(client.n < N_ANSWERS_MAX);
        client.numbers[client.n++] = d->run;
}

static ssize_t receive_some(uint8_t *room, size_t size) {
        bool withdrawn;
        ssize_t n;

        if (!client.manner.memory)
                return recv(client.fd, room, size, 0);
        n = channel_ring_read(&client.side.in, room, size);
        if (n > 0)
                (void) channel_ring_wake_writer(&client.side.in, &withdrawn);
        if (n != 0)
                return n;
        while ((n = recv(client.fd, room, size, 0)) > 0) /* they only wake */
                ;
        return n < 0 ? n : channel_ring_read(&client.side.in, room, size);
}

static ssize_t send_some(size_t size) {
        ssize_t n;

        if (size == 0 || !client.manner.memory)
                return size > 0 ? send(client.fd, client.bytes, size, MSG_NOSIGNAL) : 0;
        n = channel_ring_write(&client.side.out, client.bytes, size);
        if (n == 0)
                errno = EAGAIN;
        return n > 0 ? n : -1;
}

static void receive(void) {
        size_t left = client.manner.at_once;

        while (left > 0 && !client.end_of_file) {
                uint8_t *room;
                size_t size;
                ssize_t n;
                int event;

                demand(page_decoder_reserve(&client.decoder, &room, &size) == 0);
                n = receive_some(room, size < left ? size : left);
                if (n < 0 && errno == EAGAIN)
                        return;
                client.end_of_file = n <= 0;
                if (n <= 0)
                        return;
                left -= (size_t) n;
                page_decoder_commit(&client.decoder, (size_t) n);
                while ((event = page_decoder_next(&client.decoder)) > 0)
                        take_answer(event);
                demand(event == PAGE_MORE);
        }
}

/* Returns what epoll would say to the worker. */
static uint32_t transmit(void) {
        size_t size = client.size < client.manner.at_once ? client.size : client.manner.at_once;
        ssize_t n = send_some(size);

        if (n < 0) { /* full, or the channel was closed */
                client.size = errno == EAGAIN ? client.size : 0;
                return 0;
        }
        client.bytes += n;
        client.size -= (size_t) n;
        if (client.size > 0)
                return EPOLLIN;
        (void) shutdown(client.fd, SHUT_WR);
        return EPOLLIN | EPOLLRDHUP;
}

/* ---- the worker ---- */

static ServedChannel *open_channel(int fd, Bytes state) {
        ReceivedMessage received = RECEIVED_MESSAGE_INIT;
        Message m = { .kind = MESSAGE_CHANNEL, .channel = {
                .number = 1, .page_size = SQLIPC_PAGE_SIZE_MIN, .statements_max = 4, .run_timeout_usec = HOUR,
                .prepare_timeout_usec = HOUR, .row_size_max = 65536, .result_rows_max = 500, .result_size_max = 200000,
                .state = state, .memory = client.manner.memory,
        } };
        uint8_t *bytes;
        size_t size;
        ServedChannel *c;

        demand(message_encode(&m, &bytes, &size) == 0 && message_decode(bytes, size, &received) == 0);
        received.pipe_fd = fd;
        received.memory_fd = client.manner.memory ? dup(client.memory_fd) : -1;
        demand(served_channel_new(&context, &channel_request_owner, &received, &c) == 0);
        return c;
}

/* The messages to the supervisor; a channel that rests is opened again, with `fd`. */
static ServedChannel *take_reports(int fd) {
        ServedChannel *again = NULL;

        for (;;) {
                ReceivedMessage m = RECEIVED_MESSAGE_INIT;
                int r = message_receive(reports_fd, &m);

                if (r == -EAGAIN)
                        return again;
                demand(r == 1 && context.report_error == 0);
                if (m.message.kind == MESSAGE_CHANNEL_RESTED) {
                        demand(fd >= 0 && !again);
                        again = open_channel(fd, m.message.channel_end.state);
                } else
                        demand(m.message.kind == MESSAGE_CHANNEL_PROGRESS);
                received_message_done(&m);
        }
}

/* To another worker, which has the same database. */
static ServedChannel *move(ServedChannel *c) {
        ServedChannel *moved;
        int fd = dup(c->fd);

        demand(fd >= 0 && channel_report_rested(c, false, (Bytes) {}) == 0);
        (void) served_channel_free(c);
        moved = take_reports(fd);
        demand(moved);
        return moved;
}

static ChannelState turn(ServedChannel *c) {
        ChannelState state;

        n_progress = 0;
        stepping = c;
        (void) served_channel_set_state(c, CHANNEL_READY);
        state = channel_turn(c);
        stepping = NULL;
        return state;
}

/* Until the channel is over. */
static void serve(ServedChannel *c) {
        unsigned n_turns = 0, n_retries = 0;
        ChannelState state;

        while ((state = turn(c)) != CHANNEL_OVER) {
                uint32_t events = 0;

                demand(++n_turns < TURNS_MAX);
                if (client.manner.moves && served_channel_can_move(c))
                        c = move(c);
                receive();
                if (served_channel_waits_for_room(c))
                        events |= EPOLLOUT;
                if (c->job.state == JOB_RETRY && ++n_retries > RETRIES_MAX)
                        channel_turn_cancel(c, ERROR_BUSY, "busy");
                if (client.size > 0 || state == CHANNEL_IDLE)
                        events |= transmit();
                (void) served_channel_on_events(c, events);
                demand(!take_reports(-1));
        }
        (void) served_channel_free(c);
        demand(!take_reports(-1));
}

static void give_memory(void) {
        ChannelMemory *memory = NULL;

        client.memory_fd = channel_memory_new();
        demand(client.memory_fd >= 0 && channel_memory_map(client.memory_fd, &memory) == 0);
        client.side = channel_side_of_client(memory);
}

static void check(const uint8_t *bytes, size_t size, Manner manner) {
        int fds[2], room = 4096;
        ServedChannel *c;
        size_t n;

        demand(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
        if (manner.moves)
                (void) setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
        client.manner = manner;
        client.bytes = bytes;
        client.size = size;
        client.fd = fds[0];
        client.n = 0;
        client.end_of_file = false;
        page_decoder_init(&client.decoder, SQLIPC_PAGE_SIZE_MIN, SQLIPC_ROW_SIZE_MAX);
        page_decoder_allow_statements(&client.decoder);
        if (manner.memory)
                give_memory();
        c = open_channel(fds[1], (Bytes) {});
        n = find_requests(bytes, size, c->input.payload_max);
        (void) transmit();
        serve(c);
        client.manner.at_once = SIZE_MAX;
        receive();
        demand(client.end_of_file && page_decoder_end_of_file(&client.decoder) == 0);
        demand(client.n == n && memcmp(client.numbers, expected, n * sizeof *expected) == 0);
        page_decoder_done(&client.decoder);
        close(client.fd);
        if (manner.memory) {
                (void) channel_memory_unmap(client.side.memory);
                close(client.memory_fd);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
        if (!*path)
                init();
        if (size > 32768)
                return 0;
        check(bytes, size, (Manner) { .at_once = SIZE_MAX });
        check(bytes, size, (Manner) { .at_once = 29 + size / 64, .moves = true });
        check(bytes, size, (Manner) { .at_once = 29 + size / 64, .moves = true, .memory = true });
        sqlite_engine.stop(context.pool);
        job_context_trim(&context);
        demand(sqlite_engine.start(&setup, on_progress, NULL, &context.pool) == 0);
        return 0;
}
