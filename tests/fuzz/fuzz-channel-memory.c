/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The memory of a channel while its client is hostile: it writes anything anywhere into it, between any two steps of the
 * worker's side. The channel ends or goes on, and no step reads or writes outside of the rings, waits, or goes on for ever.
 *
 * About: dbus-interfaces/wire/channel-ring.c dbus-interfaces/wire/channel-memory.c daemon/worker/core/served-channel.c
 * About: daemon/worker/core/page-writer.c
 */
#include <errno.h>
#include <sqlite3.h>
#include <stddef.h>
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
#include "tests/fuzz/input.h"
#include "tests/fuzz/replay.h"
#include "tests/rigs/worker-side.h"

enum { PROGRESS_MAX = 5, STEPS_MAX = 300 };
#define HOUR UINT64_C(3600000000)

static char path[128];
static Setup setup;
static JobContext context = { .setup = &setup, .engine = &sqlite_engine };
static int reports_fd;
static ServedChannel *stepping;
static unsigned n_progress;

static int on_progress(void *userdata) {
        (void) userdata;
        return stepping ? job_on_progress(&stepping->job, ++n_progress > PROGRESS_MAX ? UINT64_MAX : 0, true) : 0;
}

static void init(void) {
        sqlite3 *db;
        int fds[2];

        snprintf(path, sizeof path, "%s/memory.sqlite", worker_side_init());
        setup = worker_side_setup(path);
        demand(sqlite3_open(path, &db) == SQLITE_OK);
        demand(sqlite3_exec(db, "CREATE TABLE t(a)", NULL, NULL, NULL) == SQLITE_OK);
        demand(sqlite3_close(db) == SQLITE_OK);
        demand(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
        context.control_fd = fds[0];
        reports_fd = fds[1];
        demand(sqlite_engine.start(&setup, on_progress, NULL, &context.pool) == 0);
}

static ServedChannel *open_channel(int fd, int memory_fd, Bytes state) {
        ReceivedMessage received = RECEIVED_MESSAGE_INIT;
        Message m = { .kind = MESSAGE_CHANNEL, .channel = {
                .number = 1, .page_size = SQLIPC_PAGE_SIZE_MIN, .statements_max = 4, .run_timeout_usec = HOUR,
                .prepare_timeout_usec = HOUR, .row_size_max = 65536, .result_rows_max = 500, .result_size_max = 200000,
                .state = state, .memory = true,
        } };
        uint8_t *bytes;
        size_t size;
        ServedChannel *c;

        demand(message_encode(&m, &bytes, &size) == 0 && message_decode(bytes, size, &received) == 0);
        received.pipe_fd = fd;
        received.memory_fd = dup(memory_fd);
        demand(served_channel_new(&context, &channel_request_owner, &received, &c) == 0);
        return c;
}

static ServedChannel *take_reports(int fd, int memory_fd) {
        ServedChannel *again = NULL;
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;

        while (message_receive(reports_fd, &m) == 1) {
                if (m.message.kind == MESSAGE_CHANNEL_RESTED)
                        again = open_channel(fd, memory_fd, m.message.channel_end.state);
                received_message_done(&m);
        }
        demand(context.report_error == 0);
        return again;
}

static ServedChannel *move(ServedChannel *c, int memory_fd) {
        int fd = dup(c->fd);

        served_channel_fall_asleep(c);
        demand(fd >= 0 && channel_report_rested(c, served_channel_has_input(c), (Bytes) {}) == 0);
        (void) served_channel_free(c);
        c = take_reports(fd, memory_fd);
        demand(c);
        return c;
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

/* ---- the client ---- */

static void write_index(ChannelMemory *memory, Input *in) {
        _Atomic uint32_t *indices[] = {
                &memory->requests.written, &memory->requests.read, &memory->requests.writer_sleeps,
                &memory->requests.reader_sleeps, &memory->requests.withdrawn, &memory->answers.written,
                &memory->answers.read, &memory->answers.writer_sleeps, &memory->answers.reader_sleeps,
                &memory->answers.withdrawn,
        };
        _Atomic uint32_t *index = indices[input_byte(in) % (sizeof indices / sizeof *indices)];
        uint8_t how = input_byte(in);

        if (how < 128)
                *index += how < 64 ? how : (uint32_t) CHANNEL_RING_SIZE + how - 96;
        else
                *index = (uint32_t) input_number(in, 4);
}

static void send_query(ChannelSide *client, Input *in, uint64_t number) {
        static const char *const texts[] = { "SELECT 1", "SELECT zeroblob(30000)", "nonsense", "SELECT count(*) FROM t" };
        const char *sql = texts[input_byte(in) % 4];
        uint8_t frame[256] = {};
        size_t size = strlen(sql), payload = CHANNEL_QUERY_HEAD_SIZE + size;

        store_le32(frame, (uint32_t) payload);
        frame[4] = REQUEST_QUERY;
        frame[5] = SQLIPC_PAGE_VERSION;
        store_le64(frame + 8, number);
        store_le32(frame + FRAME_HEADER_SIZE + 16, (uint32_t) size);
        memcpy(frame + FRAME_HEADER_SIZE + CHANNEL_QUERY_HEAD_SIZE, sql, size);
        (void) channel_ring_write(&client->out, frame, FRAME_HEADER_SIZE + frame_padded(payload));
}

static void write_anywhere(ChannelMemory *memory, Input *in) {
        size_t at = input_number(in, 3) % sizeof *memory, size, room;
        const uint8_t *bytes = input_bytes(in, input_byte(in), &size);

        room = sizeof *memory - at;
        if (size > 0)
                memcpy((uint8_t *) memory + at, bytes, size < room ? size : room);
}

static void play(Input *in, int fd, int worker_fd, int memory_fd, ChannelMemory *memory) {
        ServedChannel *c = open_channel(worker_fd, memory_fd, (Bytes) {});
        ChannelSide client = channel_side_of_client(memory);
        uint8_t bytes[1000];
        uint64_t number = 0;

        for (unsigned i = 0; i < STEPS_MAX && in->size > 0 && c->state != CHANNEL_OVER; i++) {
                uint8_t op = input_byte(in);

                switch (op % 9) {
                case 0: write_index(memory, in); break;
                case 1: write_anywhere(memory, in); break;
                case 2: send_query(&client, in, ++number); break;
                case 3: (void) channel_ring_read(&client.in, bytes, sizeof bytes); break;
                case 4: (void) !send(fd, bytes, 1 + op, MSG_NOSIGNAL); break;
                case 5: served_channel_fall_asleep(c); break;
                case 6:
                        if (served_channel_on_events(c, op & 16 ? EPOLLIN | EPOLLRDHUP : EPOLLIN))
                                (void) turn(c);
                        break;
                case 7: (void) turn(c); break;
                case 8:
                        if (served_channel_can_move(c))
                                c = move(c, memory_fd);
                        break;
                }
                demand(channel_ring_fill(&c->side.in) <= (ssize_t) CHANNEL_RING_SIZE);
                demand(!take_reports(-1, -1));
                (void) channel_memory_has_requests(memory_fd);
        }
        (void) served_channel_free(c);
        demand(!take_reports(-1, -1));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
        Input in = { bytes, size };
        int fds[2], memory_fd;
        ChannelMemory *memory = NULL;

        if (!*path)
                init();
        memory_fd = channel_memory_new();
        demand(memory_fd >= 0 && channel_memory_map(memory_fd, &memory) == 0);
        demand(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
        play(&in, fds[0], fds[1], memory_fd, memory);
        close(fds[0]);
        close(memory_fd);
        (void) channel_memory_unmap(memory);
        return 0;
}
