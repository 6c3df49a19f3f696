/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ways of sending a large message with descriptors, see reference-ways.h. */
#include "tools/bench/workloads/reference-ways.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include "tools/bench/core/random.h"

/* Messages without descriptors that the sender sends. */
enum { TELL_TOTALS = 't', QUIT = 'q' };

enum { PATIENCE_SEC = 60 }; /* of the sender, because a datagram socket does not show that the receiver died */

/* ---- In the datagram ---------------------------------------------------------------------------------------------- */

static int send_datagram(Reference *reference) {
        return passing_send(reference->socket, reference->payload, REFERENCE_SIZE, reference->carried, REFERENCE_N_FDS);
}

/* Swaps the buffers, so that the next packet does not overwrite the message. */
static int receive_datagram(Reference *reference, size_t packet_size, const int *fds, size_t n_fds) {
        (void) fds;
        reference->got = reference->packet;
        reference->packet = reference->buffer;
        reference->buffer = reference->got;
        return packet_size == REFERENCE_SIZE && n_fds == REFERENCE_N_FDS ? 0 : -EPROTO;
}

/* ---- In a file that is passed ------------------------------------------------------------------------------------- */

int reference_temporary_file(const char *folder) {
        g_autofree char *path = g_build_filename(folder, "sqlipc-bench.XXXXXX", NULL);
        int fd = mkostemp(path, O_CLOEXEC);

        if (fd < 0)
                return -errno;
        (void) unlink(path);
        return fd;
}

/* Closes the file. */
static int send_file(Reference *reference, int fd) {
        int fds[REFERENCE_N_FDS + 1] = { reference->carried[0], reference->carried[1], fd }, r;

        if (fd < 0)
                return fd;
        r = passing_write_all(fd, reference->payload, REFERENCE_SIZE);
        if (r >= 0)
                r = passing_send(reference->socket, NULL, 0, fds, G_N_ELEMENTS(fds));
        close(fd);
        return r;
}

static int send_temporary_file(Reference *reference) {
        return send_file(reference, reference_temporary_file(reference->folder));
}

static int send_memfd(Reference *reference) {
        int fd = memfd_create("sqlipc-bench", MFD_CLOEXEC);

        return send_file(reference, fd < 0 ? -errno : fd);
}

static int receive_file(Reference *reference, size_t packet_size, const int *fds, size_t n_fds) {
        ssize_t n;

        if (packet_size != 0 || n_fds != REFERENCE_N_FDS + 1)
                return -EPROTO;
        n = pread(fds[REFERENCE_N_FDS], reference->buffer, REFERENCE_SIZE, 0); /* the sender's offset is at the end */
        reference->got = reference->buffer;
        return n < 0 ? -errno : n == (ssize_t) REFERENCE_SIZE ? 0 : -EPROTO;
}

/* ---- In a queue --------------------------------------------------------------------------------------------------- */

/* Waits until the queue has room for a group, so that no process waits with the lock, or spins. */
static int wait_for_credits(Reference *reference) {
        int fds[PASSING_FDS_MAX];
        size_t n_fds;
        uint8_t more;

        while (reference->credits < reference->way->group) {
                ssize_t n = passing_receive(reference->socket, &more, sizeof more, fds, &n_fds);

                if (n != sizeof more)
                        return n < 0 ? (int) n : -EPROTO;
                reference->credits += more;
        }
        reference->credits -= reference->way->group;
        return 0;
}

static int send_queued(Reference *reference) {
        unsigned group = reference->way->group;
        int r;

        r = wait_for_credits(reference);
        if (r >= 0)
                r = queue_lock(&reference->queue);
        for (unsigned i = 0; r >= 0 && i < group; i++)
                r = queue_put(&reference->queue, reference->payload, REFERENCE_SIZE);
        if (r >= 0)
                r = queue_unlock(&reference->queue);
        for (unsigned i = 0; r >= 0 && i < group; i++)
                r = passing_send(reference->socket, NULL, 0, reference->carried, REFERENCE_N_FDS);
        return r;
}

/* Takes as many messages as the sender puts in under one lock, if they are there. */
static int take_group(Reference *reference) {
        ssize_t n = 0;
        int r;

        r = queue_lock(&reference->queue);
        if (r < 0)
                return r;
        while (reference->ahead < reference->way->group) {
                n = queue_take(&reference->queue, reference->buffer, REFERENCE_SIZE);
                if (n < 0)
                        break;
                reference->ahead++;
                reference->taken++;
        }
        r = queue_unlock(&reference->queue);
        return r < 0 ? r : reference->ahead > 0 ? 0 : (int) n;
}

static int receive_queued(Reference *reference, size_t packet_size, const int *fds, size_t n_fds) {
        uint8_t credits = REFERENCE_SLOTS / 2;
        int r = 0;

        (void) fds;
        if (packet_size != 0 || n_fds != REFERENCE_N_FDS)
                return -EPROTO;
        if (reference->ahead == 0)
                r = take_group(reference);
        if (r < 0)
                return r;
        reference->ahead--;
        reference->got = reference->buffer;
        if (reference->taken < credits)
                return 0;
        reference->taken -= credits;
        return passing_send(reference->socket, &credits, sizeof credits, NULL, 0);
}

/* ---- Compressed --------------------------------------------------------------------------------------------------- */

enum { GZIP_WINDOW = MAX_WBITS + 16 }; /* zlib.h: 16 more for gzip's header */

ssize_t reference_gzip(const void *bytes, size_t size, void *ret_packed, size_t room) {
        z_stream stream = {
                .next_in = (void *) bytes, .avail_in = (uInt) size, .next_out = ret_packed, .avail_out = (uInt) room
        };
        int r;

        if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
                return -ENOMEM;
        r = deflate(&stream, Z_FINISH);
        (void) deflateEnd(&stream);
        return r == Z_STREAM_END ? (ssize_t) stream.total_out : -EMSGSIZE;
}

ssize_t reference_gunzip(const void *packed, size_t size, void *ret_bytes, size_t room) {
        z_stream stream = {
                .next_in = (void *) packed, .avail_in = (uInt) size, .next_out = ret_bytes, .avail_out = (uInt) room
        };
        int r;

        if (inflateInit2(&stream, GZIP_WINDOW) != Z_OK)
                return -ENOMEM;
        r = inflate(&stream, Z_FINISH);
        (void) inflateEnd(&stream);
        return r == Z_STREAM_END ? (ssize_t) stream.total_out : r == Z_BUF_ERROR ? -EMSGSIZE : -EBADMSG;
}

static int send_gzip(Reference *reference) {
        ssize_t n = reference_gzip(reference->payload, REFERENCE_SIZE, reference->packet, REFERENCE_SIZE);

        if (n < 0)
                return (int) n;
        return passing_send(reference->socket, reference->packet, (size_t) n, reference->carried, REFERENCE_N_FDS);
}

static int receive_gzip(Reference *reference, size_t packet_size, const int *fds, size_t n_fds) {
        ssize_t n = reference_gunzip(reference->packet, packet_size, reference->buffer, REFERENCE_SIZE);

        (void) fds;
        reference->got = reference->buffer;
        return n == (ssize_t) REFERENCE_SIZE && n_fds == REFERENCE_N_FDS ? 0 : -EPROTO;
}

const ReferenceWay reference_ways[] = {
        { .name = "in the datagram", .group = 1, .send = send_datagram, .receive = receive_datagram, .divisor = 1 },
        { .name = "unlinked temporary file", .group = 1, .send = send_temporary_file, .receive = receive_file,
          .divisor = 1 },
        { .name = "memfd", .group = 1, .send = send_memfd, .receive = receive_file, .divisor = 1 },
        { .name = "mmap queue, a lock each message", .group = 1, .send = send_queued, .receive = receive_queued,
          .divisor = 1 },
        { .name = "mmap queue, a lock each 8 messages", .group = REFERENCE_BATCH, .send = send_queued,
          .receive = receive_queued, .divisor = 1 },
        { .name = "in the datagram, gzip", .group = 1, .send = send_gzip, .receive = receive_gzip, .divisor = 50 },
};
const unsigned n_reference_ways = G_N_ELEMENTS(reference_ways);

/* ---- The receiver ------------------------------------------------------------------------------------------------- */

CpuTimes reference_cpu_times(void) {
        struct rusage usage;

        (void) getrusage(RUSAGE_SELF, &usage);
        return (CpuTimes) {
                .user_usec = (double) usage.ru_utime.tv_sec * 1e6 + (double) usage.ru_utime.tv_usec,
                .system_usec = (double) usage.ru_stime.tv_sec * 1e6 + (double) usage.ru_stime.tv_usec,
        };
}

static int tell_totals(Reference *reference, uint64_t n_messages, const CpuTimes *start) {
        CpuTimes now = reference_cpu_times();
        ReferenceTotals totals = {
                .n_messages = n_messages,
                .cpu = {
                        .user_usec = now.user_usec - start->user_usec,
                        .system_usec = now.system_usec - start->system_usec,
                },
        };

        if (reference->got) /* after the times were read */
                totals.check = crc32_z(0, reference->got, REFERENCE_SIZE);
        return passing_send(reference->socket, &totals, sizeof totals, NULL, 0);
}

/* Receives until the sender sends QUIT, because a datagram socket has no end-of-file. */
static int receive_all(int fd, void *userdata) {
        Reference *reference = userdata;
        CpuTimes start = reference_cpu_times();
        uint64_t n_messages = 0;
        int fds[PASSING_FDS_MAX], r = 0;
        size_t n_fds;

        reference->socket = fd;
        while (r >= 0) {
                ssize_t n = passing_receive(fd, reference->packet, REFERENCE_SIZE, fds, &n_fds);

                if (n < 0)
                        return (int) n;
                if (n_fds > 0) {
                        r = reference->way->receive(reference, (size_t) n, fds, n_fds);
                        n_messages++;
                } else if (n == 1 && reference->packet[0] == TELL_TOTALS) {
                        r = tell_totals(reference, n_messages, &start);
                        n_messages = 0;
                        start = reference_cpu_times();
                } else
                        return n == 1 && reference->packet[0] == QUIT ? 0 : -EPROTO;
                for (size_t i = 0; i < n_fds; i++)
                        close(fds[i]);
        }
        return r;
}

/* ---- The sender --------------------------------------------------------------------------------------------------- */

int reference_open(Reference *reference, const ReferenceWay *way, const char *folder) {
        const struct timeval patience = { .tv_sec = PATIENCE_SEC };
        Random random;
        int r = 0;

        *reference = (Reference) {
                .way = way, .child = CHILD_INIT, .folder = folder, .carried = { -1, -1 }, .queue = QUEUE_INIT,
                .payload = g_malloc(REFERENCE_SIZE), .packet = g_malloc0(REFERENCE_SIZE),
                .buffer = g_malloc0(REFERENCE_SIZE), .credits = REFERENCE_SLOTS,
        };
        random_init(&random, 1);
        random_letters(&random, (char *) reference->payload, REFERENCE_SIZE);
        for (unsigned i = 0; r >= 0 && i < REFERENCE_N_FDS; i++) {
                reference->carried[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
                r = reference->carried[i] < 0 ? -errno : 0;
        }
        if (r >= 0)
                r = queue_open(&reference->queue, REFERENCE_SLOTS, REFERENCE_SIZE);
        if (r >= 0)
                r = child_start(SOCK_DGRAM, receive_all, reference, &reference->child);
        reference->socket = reference->child.fd;
        if (r >= 0 && setsockopt(reference->socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0)
                r = -errno;
        return r;
}

int reference_close(Reference *reference) {
        char quit = QUIT;
        int r = 0;

        if (!reference->way)
                return 0;
        if (reference->child.pid > 0) {
                (void) passing_send(reference->socket, &quit, sizeof quit, NULL, 0);
                r = child_stop(&reference->child);
        }
        queue_close(&reference->queue);
        for (unsigned i = 0; i < REFERENCE_N_FDS; i++)
                if (reference->carried[i] >= 0)
                        close(reference->carried[i]);
        g_free(reference->payload);
        g_free(reference->packet);
        g_free(reference->buffer);
        *reference = (Reference) {};
        return r;
}

/* Credits may come before the totals. */
static int receive_totals(Reference *reference, ReferenceTotals *ret) {
        char question = TELL_TOTALS;
        int fds[PASSING_FDS_MAX], r;
        size_t n_fds;
        ssize_t n;

        r = passing_send(reference->socket, &question, sizeof question, NULL, 0);
        if (r < 0)
                return r;
        while ((n = passing_receive(reference->socket, reference->packet, REFERENCE_SIZE, fds, &n_fds)) == 1)
                reference->credits += reference->packet[0];
        if (n != sizeof *ret)
                return n < 0 ? (int) n : -EPROTO;
        memcpy(ret, reference->packet, sizeof *ret);
        return 0;
}

int reference_send(Reference *reference, unsigned n, ReferenceTotals *ret) {
        unsigned group = reference->way->group, n_groups = (n + group - 1) / group;
        int r = 0;

        for (unsigned i = 0; r >= 0 && i < n_groups; i++)
                r = reference->way->send(reference);
        if (r >= 0)
                r = receive_totals(reference, ret);
        return r < 0 ? r : ret->n_messages == (uint64_t) n_groups * group ? 0 : -EPROTO;
}
