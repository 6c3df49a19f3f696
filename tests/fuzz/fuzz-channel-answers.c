/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The memory of a channel while the service is hostile: it writes anything anywhere into it, between any two calls of the
 * library's side. The library gets bytes, waits, or drops the channel; no call gives more bytes than there is room for, or
 * goes on for ever.
 *
 * About: client-lib/channel-bytes.c client-lib/channel-read.c dbus-interfaces/wire/channel-ring.c
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client-lib/channel-bytes.h"
#include "client-lib/channel-link.h"
#include "client-lib/channel-read.h"
#include "dbus-interfaces/wire/channel-memory.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/replay.h"

enum { STEPS_MAX = 300 };

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

static void write_anywhere(ChannelMemory *memory, Input *in) {
        size_t at = input_number(in, 3) % sizeof *memory, size, room;
        const uint8_t *bytes = input_bytes(in, input_byte(in), &size);

        room = sizeof *memory - at;
        if (size > 0)
                memcpy((uint8_t *) memory + at, bytes, size < room ? size : room);
}

/* A whole frame that answers the request. */
static void answer(ChannelSide *worker, Input *in, uint64_t number) {
        uint8_t frame[512] = {};
        size_t size = input_byte(in) % 200;

        store_le32(frame, (uint32_t) size);
        frame[4] = input_byte(in) % 8;
        frame[5] = SQLIPC_PAGE_VERSION;
        store_le64(frame + 8, number);
        (void) channel_ring_write(&worker->out, frame, FRAME_HEADER_SIZE + frame_padded(size));
}

static void play(Input *in, ChannelLink *ch, ChannelMemory *memory, int fd) {
        ChannelReader readers[2] = { { .source.connection = ch->connection }, { .source.connection = ch->connection } };
        ChannelSide worker = channel_side_of_worker(memory);
        uint8_t room[300];
        uint64_t number = 0;

        for (unsigned i = 0; i < STEPS_MAX && in->size > 0 && ch->state == CHANNEL_LINK_OPEN; i++) {
                uint8_t op = input_byte(in), *payload;
                ChannelReader *reader = &readers[op / 16 % 2];
                ssize_t n;

                switch (op % 8) {
                case 0: write_index(memory, in); break;
                case 1: write_anywhere(memory, in); break;
                case 2: answer(&worker, in, number > 0 ? 1 + input_byte(in) % number : 1); break;
                case 3: (void) !send(fd, room, 1 + op, MSG_NOSIGNAL); break;
                case 4:
                        if (ch->n_requests >= 20)
                                break;
                        payload = channel_link_request(ch, reader, REQUEST_QUERY, input_number(in, 2), &number);
                        demand(payload);
                        break;
                case 5: channel_link_flush(ch); break;
                case 6: channel_read_forgotten(ch); break;
                case 7:
                        if (channel_link_count(ch, reader) == 0)
                                break;
                        n = channel_read(ch, reader, room, sizeof room);
                        demand(n <= (ssize_t) sizeof room && n != 0);
                        break;
                }
        }
        channel_link_drop(ch);
        buffer_done(&readers[0].backlog);
        buffer_done(&readers[1].backlog);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
        sqlipc_connection connection = {
                .blocking = true,
                .wake_fd = -1,
                .loop_set = { .epoll_fd = -1, .fd = -1 },
                .bus_set = { .epoll_fd = -1, .fd = -1 },
                .n_turns = 1,
        };
        ChannelLink ch = { .connection = &connection, .page_size = SQLIPC_PAGE_SIZE_MIN };
        Input in = { bytes, size };
        ChannelMemory *memory = NULL;
        int fds[2], memory_fd = channel_memory_new();

        demand(memory_fd >= 0 && channel_memory_map(memory_fd, &memory) == 0);
        demand(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
        demand(channel_bytes_map(&ch, memory_fd) == 0);
        ch.fd = fds[0];
        ch.state = CHANNEL_LINK_OPEN;
        play(&in, &ch, memory, fds[1]);
        client_zone_done(&connection.zone);
        close(fds[1]);
        close(memory_fd);
        (void) channel_memory_unmap(memory);
        free(ch.requests);
        return 0;
}
