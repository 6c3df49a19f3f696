/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A worker under an attacker's control, in the place of sqlipc-worker. The first word of the SQL selects its messages:
 *
 *   flood      the truth, and then STARTED of the largest size, N_FLOOD times, faster than it can be read
 *   nonsense   bytes that are no message
 *   early      the end of a run that it never started
 *   foreign    the end of runs that others have, if their numbers are near
 *   gone       the same at once, and then it dies while all of it is in the socket
 *   grow       STARTED, once, with so many invalid bytes that a reply with them would be larger than the bus allows
 *   long       the end of a run, with a sentence of 4 MiB
 *   pages      bytes that are no page, into the pipe
 *   else       a run that fails with "so it is"
 *
 * and of a channel, by the first QUERY on it:
 *
 *   foreign    that others are closed, if their numbers are near
 *   twice      that it rests, and again
 *   busy       that it rests, and something runs on it
 *   pong       an answer to what was never asked
 *   early      the end of a run under the channel's number
 *   else       that it rests, after seven runs, with SQL that is no text under way
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

#define N_COLUMNS 32767
#define N_FLOOD 200
#define LARGEST_NAME ((size_t) 11)  /* of so many columns, as a STARTED may have it */
#define TOO_LARGE_NAME ((size_t) 120) /* the message is just below the 8 MiB of a memfd */

static void await(int fd, short events) {
        (void) poll(&(struct pollfd) { .fd = fd, .events = events }, 1, -1);
}

static void say(const Message *m) {
        int r;

        while ((r = message_send(WORKER_CONTROL_FD, m, -1)) == -EAGAIN)
                await(WORKER_CONTROL_FD, POLLOUT);
        if (r < 0)
                exit(0); /* the supervisor is gone */
}

static void say_started(uint64_t number) {
        Bytes column[] = { { .data = "a", .size = 1 }, {} };

        say(&(Message) { .kind = MESSAGE_STARTED,
                         .started = { .number = number, .described = true, .n_columns = 1, .columns = column } });
}

/* The memfd of a STARTED with as many columns as there may be, and its stub (protocol-socket.c). */
static int new_large_started(uint64_t number, size_t name_size, uint8_t stub[12]) {
        static char name[TOO_LARGE_NAME];
        static Bytes columns[2 * N_COLUMNS];
        Message m = { .kind = MESSAGE_STARTED,
                      .started = { .number = number, .described = true, .n_columns = N_COLUMNS, .columns = columns } };
        uint8_t *bytes;
        size_t size;

        for (size_t i = 0; i < 2 * N_COLUMNS; i++)
                columns[i] = (Bytes) { .data = name, .size = name_size };
        int fd = memfd_create("lie", MFD_ALLOW_SEALING);
        if (message_encode(&m, &bytes, &size) < 0 || write(fd, bytes, size) != (ssize_t) size ||
            fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) < 0)
                exit(1);
        free(bytes);
        store_le32(stub, UINT32_MAX);
        store_le64(stub + 4, size);
        return fd;
}

/* STARTED, `times` times, faster than they can be read: as many as the socket takes wait there. */
static void flood(uint64_t number, size_t name_size, int times) {
        union {
                struct cmsghdr header;
                uint8_t space[CMSG_SPACE(sizeof(int))];
        } control = { .header = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
        uint8_t stub[12];
        struct iovec part = { .iov_base = stub, .iov_len = sizeof stub };
        struct msghdr h = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
        int fd = new_large_started(number, name_size, stub);

        memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
        for (int i = 0; i < times;) {
                if (sendmsg(WORKER_CONTROL_FD, &h, MSG_NOSIGNAL) >= 0)
                        i++;
                else if (errno == EAGAIN)
                        await(WORKER_CONTROL_FD, POLLOUT);
                else if (errno == ETOOMANYREFS)
                        (void) usleep(1000);
                else
                        exit(0);
        }
        close(fd);
}

static void say_ended(uint64_t number) {
        say(&(Message) { .kind = MESSAGE_ENDED,
                         .ended = { .number = number, .drained = true, .n_rows = UINT64_MAX, .n_bytes = UINT64_MAX,
                                    .failure = { .error = ERROR_SQL, .message = "so it is" } } });
}

static void say_long_end(uint64_t number) {
        static char sentence[4 * 1024 * 1024];

        memset(sentence, 0xff, sizeof sentence - 1);
        say(&(Message) { .kind = MESSAGE_ENDED,
                         .ended = { .number = number, .drained = true,
                                    .failure = { .error = ERROR_SQL, .message = sentence } } });
}

static void lie(const JobSpec *job, int pipe_fd) {
        static const char nothing[65536];
        const char *what = job->sql;

        if (strcmp(what, "early") == 0)
                say(&(Message) { .kind = MESSAGE_DRAINED, .drained.number = job->number });
        if (strcmp(what, "nonsense") == 0)
                (void) send(WORKER_CONTROL_FD, what, 5, MSG_NOSIGNAL);
        if (strcmp(what, "foreign") == 0)
                for (uint64_t n = job->number - 100; n < job->number; n++)
                        say_ended(n);
        if (strcmp(what, "pages") == 0)
                while (write(pipe_fd, nothing, sizeof nothing) > 0 || errno == EAGAIN)
                        await(pipe_fd, POLLOUT);
        if (strcmp(what, "flood") == 0 || strcmp(what, "gone") == 0)
                flood(job->number, LARGEST_NAME, N_FLOOD);
        if (strcmp(what, "grow") == 0)
                flood(job->number, TOO_LARGE_NAME, 1);
        if (strcmp(what, "long") == 0)
                say_long_end(job->number);
        if (strcmp(what, "gone") == 0)
                _exit(1);
}

static void say_rested(uint64_t number, bool running) {
        const ChannelProgress progress = { .number = number, .n_runs = 7, .running = true, .usec = UINT64_MAX,
                                           .sql = { .data = "\xff\0\xfe", .size = 3 } };
        const ChannelEnd end = { .progress = { .number = number, .running = running }, .state = { .data = "?", .size = 1 } };

        say(&(Message) { .kind = MESSAGE_CHANNEL_PROGRESS, .channel_progress = progress });
        say(&(Message) { .kind = MESSAGE_CHANNEL_RESTED, .channel_end = end });
}

static void lie_of_channel(uint64_t number, int fd) {
        char request[FRAME_HEADER_SIZE + CHANNEL_QUERY_HEAD_SIZE + 64] = "";

        await(fd, POLLIN);
        if (read(fd, request, sizeof request - 1) < 0)
                exit(1);
        const char *what = request + FRAME_HEADER_SIZE + CHANNEL_QUERY_HEAD_SIZE;
        if (strcmp(what, "foreign") == 0)
                for (uint64_t n = number - 100; n < number; n++)
                        say(&(Message) { .kind = MESSAGE_CHANNEL_CLOSED, .channel_end = { .progress = { .number = n } } });
        if (strcmp(what, "pong") == 0)
                say(&(Message) { .kind = MESSAGE_PONG, .number = 12345 });
        if (strcmp(what, "early") == 0)
                say_ended(number);
        if (strcmp(what, "twice") == 0)
                say_rested(number, false);
        say_rested(number, strcmp(what, "busy") == 0);
}

static void work(const ReceivedMessage *m) {
        if (strcmp(m->message.job.sql, "pages") == 0 || strcmp(m->message.job.sql, "flood") == 0)
                say_started(m->message.job.number);
        lie(&m->message.job, m->pipe_fd);
        say_ended(m->message.job.number);
}

static void take(ReceivedMessage *m) {
        if (message_receive(WORKER_JOB_FD, m) <= 0)
                return;
        say(&(Message) { .kind = MESSAGE_TAKEN, .number = m->message.job.number });
        work(m);
        received_message_done(m);
}

/* False: whatever else it is told is its end. */
static bool obey(const ReceivedMessage *m) {
        if (m->message.kind == MESSAGE_PING)
                say(&(Message) { .kind = MESSAGE_PONG, .number = m->message.number });
        else if (m->message.kind == MESSAGE_CHANNEL)
                lie_of_channel(m->message.channel.number, m->pipe_fd);
        else if (m->message.kind == MESSAGE_PREPARE || m->message.kind == MESSAGE_RUN)
                work(m);
        else
                return false;
        return true;
}

int main(void) {
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;
        struct pollfd fds[] = { { .fd = WORKER_JOB_FD, .events = POLLIN }, { .fd = WORKER_CONTROL_FD, .events = POLLIN } };

        await(WORKER_CONTROL_FD, POLLIN);
        if (message_receive(WORKER_CONTROL_FD, &m) <= 0)
                return 1;
        received_message_done(&m);
        while (poll(fds, 2, -1) >= 0) {
                if (fds[0].revents)
                        take(&m);
                if (!fds[1].revents)
                        continue;
                bool goes_on = message_receive(WORKER_CONTROL_FD, &m) > 0 && obey(&m);

                received_message_done(&m);
                if (!goes_on)
                        return 0;
        }
        return 1;
}
