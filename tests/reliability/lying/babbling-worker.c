/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A replacement for sqlipc-worker that sends whatever a seed selects: all kinds of message in all states, about runs and
 * channels of its own, of other workers and of none, with and without descriptors, cut, too long, forged in a memfd,
 * several times, or not at all. The seed is the number in the SQL of a job ("12 ..."), or in the first QUERY of a channel.
 *
 * It ends by _exit(), because exit() would start a sanitizer's search for leaks, which would be killed halfway.
 *
 * For a database whose path does not contain "lies", it runs the real worker, $SQLIPC_REAL_WORKER.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/protocol/protocol.h"
#include "dbus-interfaces/sqlipc-errors.h"
#include "dbus-interfaces/wire/page-encoder.h"
#include "dbus-interfaces/wire/sqlipc-channel.h"

#define MESSAGES_MAX 12
#define STRINGS_MAX 64
#define STUB_SIZE 12

static uint64_t chance;

static uint64_t any(void) {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        return chance;
}

static bool one_in(unsigned n) {
        return any() % n == 0;
}

/* Small, huge, or all bits. */
static uint64_t any_size(void) {
        switch (any() % 4) {
        case 0: return any() % 100;
        case 1: return UINT64_MAX - any() % 3;
        case 2: return UINT64_C(1) << any() % 64;
        default: return any();
        }
}

/* Its own number mostly, or one near it: of others, past or to come. */
static uint64_t any_number(uint64_t own) {
        switch (any() % 8) {
        case 0: return own - any() % 20;
        case 1: return own + any() % 20;
        case 2: return any_size();
        default: return own;
        }
}

static Bytes any_bytes(void) {
        static const char noise[300] = "\xff\xfe text \0 behind a NUL, \xed\xa0\x80 a surrogate, \x1b[31m an escape";

        return one_in(5) ? (Bytes) {} : (Bytes) { .data = noise, .size = any() % sizeof noise };
}

static Failure any_failure(void) {
        return (Failure) {
                .error = (uint32_t) (one_in(3) ? 0 : any() % 60),
                .extended_code = (int32_t) any(),
                .sql_offset = (int32_t) any(),
                .message = one_in(10) ? "\xff no UTF-8" : "so it is",
        };
}

static ChannelProgress any_progress(uint64_t number) {
        return (ChannelProgress) {
                .number = number,
                .n_runs = any_size(),
                .n_rows = any_size(),
                .n_bytes = any_size(),
                .running = one_in(2),
                .parked = one_in(2),
                .draining = one_in(2),
                .usec = any_size(),
                .n_statements = (uint32_t) any(),
                .sql = any_bytes(),
        };
}

static Started any_started(uint64_t number, Bytes *strings) {
        for (unsigned i = 0; i < STRINGS_MAX; i++)
                strings[i] = any_bytes();
        for (unsigned i = 0; i < STRINGS_MAX / 2; i += 2) /* a column has a name */
                strings[i].data = strings[i].data ?: "";
        return (Started) {
                .number = number,
                .described = !one_in(3),
                .read_only = one_in(2),
                .n_columns = (uint32_t) (any() % (STRINGS_MAX / 4)),
                .columns = strings,
                .n_parameters = (uint32_t) (any() % (STRINGS_MAX / 2)),
                .parameters = strings + STRINGS_MAX / 2,
        };
}

static FileState any_state(void) {
        return (FileState) { .kind = (uint32_t) (any() % 3), .counter = (uint32_t) (any() % 3), .size = (uint32_t) any() };
}

/* With a NUL at the end, or not. */
static Bytes any_tables(void) {
        return one_in(3) ? (Bytes) { "a\0b", 3 + any() % 2 } : (Bytes) {};
}

static Message any_message(uint64_t own, Bytes *strings) {
        uint64_t number = any_number(own);
        Message m = { .kind = (MessageKind) (1 + any() % MESSAGE_ATTACH) };

        switch (m.kind) {
        case MESSAGE_STARTED: m.started = any_started(number, strings); break;
        case MESSAGE_PARKED: m.parked = (Parked) { .number = number, .parked = one_in(2) }; break;
        case MESSAGE_ENDED:
                m.ended = (Ended) { .number = number, .failure = any_failure(), .n_rows = any_size(), .n_bytes = any_size(),
                                    .usec = any_size(), .drained = one_in(2), .wrote = one_in(4),
                                    .changes = { "12345678", one_in(4) ? 8 : 0 },
                                    .sequence = any_size(), .tables = any_tables(), .names = any_tables() };
                break;
        case MESSAGE_PROGRESS: m.progress = (Progress) { number, any_size(), any_size() }; break;
        case MESSAGE_CHANNEL_PROGRESS: m.channel_progress = any_progress(number); break;
        case MESSAGE_CHANNEL_RESTED:
        case MESSAGE_CHANNEL_CLOSED:
                m.channel_end.progress = any_progress(number);
                m.channel_end.waiting = one_in(3);
                m.channel_end.state = any_bytes();
                m.channel_end.state.data = m.channel_end.state.data ?: "";
                m.channel_end.unread = any_bytes();
                break;
        case MESSAGE_CANCEL: m.cancel = (Cancel) { .number = number, .error = 1, .message = "you" }; break;
        case MESSAGE_SETUP: m.setup = (Setup) { .path = "/", .exposed = strings }; break;
        case MESSAGE_PREPARE:
        case MESSAGE_EXECUTE:
        case MESSAGE_LOAD:
        case MESSAGE_TABLES:
        case MESSAGE_RUN: m.job = (JobSpec) { .number = number, .sql = "SELECT 1", .sql_size = 8 }; break;
        case MESSAGE_CHANNEL: m.channel = (ChannelSetup) { .number = number, .state = { .data = "" } }; break;
        case MESSAGE_CHANNEL_CLOSE: m.channel_close = (ChannelClose) { .number = number, .drain = one_in(2) }; break;
        case MESSAGE_DRAINED: m.drained = (Drained) { .number = number, .unread = any_bytes() }; break;
        case MESSAGE_EXECUTE_BATCH:
                m.job = (JobSpec) { .number = number, .n_statements = 1, .statements = (const uint8_t *) "any",
                                    .statements_size = 3 };
                break;
        case MESSAGE_ATTACH_WANTED:
        case MESSAGE_ATTACH:
                m.attach = (Attach) { .number = number, .name = one_in(2) ? "chinook" : "none", .path = "/",
                                      .immutable = one_in(2) };
                break;
        case MESSAGE_BEGIN: m.begin = (Begin) { .number = number, .writes = one_in(2) }; break;
        case MESSAGE_COMMIT_REFUSED: m.ended = (Ended) { .number = number, .failure = any_failure() }; break;
        case MESSAGE_COMMIT:
        case MESSAGE_TRY_COMMIT:
        case MESSAGE_TAKEN:
        case MESSAGE_FILLING:
        case MESSAGE_LEASE:
        case MESSAGE_WATCH:
        case MESSAGE_OBSERVE:
        case MESSAGE_NOTIFIER:
        case MESSAGE_PING:
        case MESSAGE_PONG: m.number = one_in(2) ? number : any() % 4; break;
        case MESSAGE_EXIT:
        case MESSAGE_RETIRE:
        case MESSAGE_GIVE_WAY:
        case MESSAGE_LEASE_ASKED:
        case MESSAGE_LEASE_WANTED:
        case MESSAGE_LEASE_RETURNED:
        case MESSAGE_LEASE_KEPT:
        case MESSAGE_LEASE_TAKEN:
        case MESSAGE_CONNECTION_WANTED:
        case MESSAGE_CONNECTION:
        case MESSAGE_CONNECTION_ASKED:
        case MESSAGE_CONNECTION_RETURNED:
        case MESSAGE_STAY: break;
        case MESSAGE_COMMITTING: m.committing.numbers = any_bytes(); break;
        case MESSAGE_COMMITTED:
                m.committed = (Committed) { .sequence = any_size(),
                                            .any = one_in(2), .answers = one_in(2), .schema = one_in(4),
                                            .before = any_state(), .after = any_state(), .tables = any_tables() };
                break;
        case MESSAGE_OBSERVED:
                m.observed = (Observed) { .state = any_state(), .busy = one_in(2), .polls = one_in(2), .device = any_size(),
                                          .inode = any_size(), .schema = (uint32_t) any(), .name = "file" };
                break;
        }
        return m;
}

/* Ignores the supervisor's reaction: it waits for a full socket, and ends when the socket is closed. */
static void send_bytes(const void *bytes, size_t size, const int *fds, size_t n_fds) {
        union {
                struct cmsghdr header;
                uint8_t space[CMSG_SPACE(3 * sizeof(int))];
        } control = { .header = { .cmsg_len = CMSG_LEN(n_fds * sizeof(int)), .cmsg_level = SOL_SOCKET,
                                  .cmsg_type = SCM_RIGHTS } };
        struct iovec part = { .iov_base = (void *) bytes, .iov_len = size };
        struct msghdr h = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = n_fds > 0 ? &control : NULL,
                            .msg_controllen = n_fds > 0 ? CMSG_SPACE(n_fds * sizeof(int)) : 0 };

        if (n_fds > 0)
                memcpy(CMSG_DATA(&control.header), fds, n_fds * sizeof(int));
        while (sendmsg(WORKER_CONTROL_FD, &h, MSG_NOSIGNAL) < 0) {
                if (errno != EAGAIN)
                        _exit(0);
                (void) poll(&(struct pollfd) { .fd = WORKER_CONTROL_FD, .events = POLLOUT }, 1, -1);
        }
}

/* Behind a stub that is true of it, or not: of another size, not sealed, or still to be made shorter. */
static void send_as_memfd(const uint8_t *bytes, size_t size) {
        uint8_t stub[STUB_SIZE];
        int fd = memfd_create("lie", MFD_ALLOW_SEALING);

        if (fd < 0 || write(fd, bytes, size) != (ssize_t) size)
                _exit(1);
        if (!one_in(4))
                (void) fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | (one_in(4) ? 0 : F_SEAL_GROW));
        store_le32(stub, one_in(8) ? (uint32_t) any() : UINT32_MAX);
        store_le64(stub + 4, one_in(4) ? any_size() : size);
        send_bytes(stub, one_in(8) ? any() % (STUB_SIZE + 1) : STUB_SIZE, &fd, one_in(8) ? 0 : 1);
        close(fd);
}

/* As it is, cut, longer, with a bit turned, with descriptors that belong to it or not. */
static void say(const Message *m) {
        int fds[3] = { STDERR_FILENO, STDERR_FILENO, STDERR_FILENO };
        uint8_t *bytes, more[64];
        size_t size;

        if (message_encode(m, &bytes, &size) < 0)
                return;
        if (one_in(8))
                size = any() % (size + 1);
        if (size > 0 && one_in(8))
                bytes[any() % size] ^= (uint8_t) (1u << any() % 8);
        memset(more, (int) any(), sizeof more);
        if (one_in(10))
                send_as_memfd(bytes, size);
        else if (one_in(20))
                send_bytes(more, 1 + any() % sizeof more, NULL, 0);
        else
                send_bytes(bytes, size, fds, one_in(10) ? any() % 4 : message_has_fd(m->kind));
        free(bytes);
}

/* The truth, or a possible lie. */
static void tell(const Message *m) {
        int r;

        while ((r = message_send(WORKER_CONTROL_FD, m, -1)) == -EAGAIN)
                (void) poll(&(struct pollfd) { .fd = WORKER_CONTROL_FD, .events = POLLOUT }, 1, -1);
        if (r < 0)
                _exit(0);
}

static void say_started(uint64_t number) {
        Bytes column[] = { { .data = "a", .size = 1 }, {} };

        tell(&(Message) { .kind = MESSAGE_STARTED,
                         .started = { .number = number, .described = true, .n_columns = 1, .columns = column } });
}

static void say_ended(uint64_t number) {
        tell(&(Message) { .kind = MESSAGE_ENDED,
                         .ended = { .number = number, .drained = true,
                                    .failure = { .error = ERROR_SQL, .sql_offset = -1, .message = "so it is" } } });
}

/* A life with one job or channel: some true messages, so that later states are reached, and random ones. */
static void babble(uint64_t seed, uint64_t own) {
        Bytes strings[STRINGS_MAX];

        chance = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
        if (one_in(2))
                say_started(own);
        for (uint64_t i = any() % MESSAGES_MAX; i > 0; i--) {
                Message m = any_message(own, strings);

                for (unsigned again = one_in(4) ? 3 : 1; again > 0; again--)
                        say(&m);
        }
        if (one_in(3))
                say_ended(own);
        if (!one_in(20)) /* else it falls silent, and goes on so */
                _exit(one_in(2));
}

/* Bytes for the reader of a pipe or channel, which the client's decoder must handle. */
static void write_noise(int fd) {
        static const char noise[5000];

        if (one_in(3))
                (void) !write(fd, noise, any() % sizeof noise);
}

static void work(const ReceivedMessage *m) {
        uint64_t seed;

        if (m->message.kind == MESSAGE_PREPARE || m->message.kind == MESSAGE_RUN) {
                seed = strtoull(m->message.job.sql, NULL, 10);
                write_noise(m->pipe_fd);
                babble(seed, m->message.job.number);
        } else if (m->message.kind == MESSAGE_CHANNEL) {
                char request[FRAME_HEADER_SIZE + CHANNEL_QUERY_HEAD_SIZE + 64] = "";

                (void) poll(&(struct pollfd) { .fd = m->pipe_fd, .events = POLLIN }, 1, -1);
                (void) !read(m->pipe_fd, request, sizeof request - 1);
                seed = strtoull(request + FRAME_HEADER_SIZE + CHANNEL_QUERY_HEAD_SIZE, NULL, 10);
                write_noise(m->pipe_fd);
                babble(seed, m->message.channel.number);
        } else if (m->message.kind == MESSAGE_EXIT)
                _exit(0);
}

static void take(int fd, bool is_job) {
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;

        if (message_receive(fd, &m) <= 0)
                _exit(0);
        if (is_job)
                tell(&(Message) { .kind = MESSAGE_TAKEN, .number = m.message.job.number });
        work(&m);
        received_message_done(&m);
}

/* True if SETUP, which is not consumed, names a database about which no lies are told. */
static bool is_honest(void) {
        static char setup[MESSAGE_SIZE_MAX];

        (void) poll(&(struct pollfd) { .fd = WORKER_CONTROL_FD, .events = POLLIN }, 1, -1);
        ssize_t n = recv(WORKER_CONTROL_FD, setup, sizeof setup, MSG_PEEK);
        return n > 0 && !memmem(setup, (size_t) n, "lies", 4);
}

int main(void) {
        struct pollfd fds[] = { { .fd = WORKER_JOB_FD, .events = POLLIN }, { .fd = WORKER_CONTROL_FD, .events = POLLIN } };
        ReceivedMessage setup = RECEIVED_MESSAGE_INIT;

        if (is_honest()) {
                const char *program = getenv("SQLIPC_REAL_WORKER") ?: "";
                (void) execl(program, "sqlipc-worker", NULL);
                return 1;
        }
        if (message_receive(WORKER_CONTROL_FD, &setup) <= 0)
                return 1;
        received_message_done(&setup);
        while (poll(fds, 2, -1) >= 0) {
                if (fds[1].revents)
                        take(WORKER_CONTROL_FD, false);
                else if (fds[0].revents)
                        take(WORKER_JOB_FD, true);
        }
        return 1;
}
