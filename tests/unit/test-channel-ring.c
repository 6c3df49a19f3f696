/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * dbus-interfaces/wire/channel-ring.h and channel-memory.h: the rings of a channel against a queue, impossible indices, all
 * interleavings of two sides that sleep and wake each other, a client that takes back requests while the worker reads, two
 * threads, and descriptors of other kinds.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dbus-interfaces/wire/channel-memory.h"
#include "tests/unit/test.h"

static ChannelMemory memory;

static void start(void) {
        memset(&memory, 0, sizeof memory);
}

static uint8_t byte_at(uint32_t i) {
        return (uint8_t) (i * 167 + i / 251);
}

/* ---- a queue ---- */

static uint32_t random_state;

static uint32_t random_below(uint32_t n) {
        random_state = random_state * 1664525 + 1013904223;
        return (random_state >> 8) % n;
}

/* Pieces of any size go in and out, around the end of the ring and of the numbers. */
static void check_queue(uint32_t first) {
        static uint8_t bytes[2 * CHANNEL_RING_SIZE];
        ChannelSide client, worker;
        uint32_t in = 0, out = 0;

        start();
        memory.requests.written = memory.requests.read = first;
        client = channel_side_of_client(&memory);
        worker = channel_side_of_worker(&memory);
        while (out < 5 * CHANNEL_RING_SIZE) {
                uint32_t size = random_below(2) ? random_below(100) : random_below(sizeof bytes);
                ssize_t n;

                for (uint32_t i = 0; i < size; i++)
                        bytes[i] = byte_at(in + i);
                n = channel_ring_write(&client.out, bytes, size);
                CHECK_INT(n, size < CHANNEL_RING_SIZE - (in - out) ? size : CHANNEL_RING_SIZE - (in - out));
                in += (uint32_t) n;
                CHECK_INT(channel_ring_fill(&worker.in), in - out);
                CHECK_INT(channel_ring_has_room(&client.out), in - out < CHANNEL_RING_SIZE);
                size = random_below(sizeof bytes);
                n = channel_ring_read(&worker.in, bytes, size);
                CHECK_INT(n, size < in - out ? size : in - out);
                for (uint32_t i = 0; i < n; i++)
                        CHECK_INT(bytes[i], byte_at(out + i));
                out += (uint32_t) n;
                if (random_below(10) == 0) /* another worker goes on */
                        worker = channel_side_of_worker(&memory);
        }
}

static void test_queue(void) {
        check_queue(0);
        check_queue(1000);
        check_queue((uint32_t) -3);
        check_queue((uint32_t) -(int) CHANNEL_RING_SIZE);
}

/* ---- a hostile side ---- */

/* No index of the other side leads out of the ring, and an impossible one is found. */
static void test_impossible_indices(void) {
        static uint8_t bytes[CHANNEL_RING_SIZE + 16];
        static const uint32_t owns[] = { 0, 1, 65535, 65536, 0x7fffffff, 0xffffffff };
        const uint32_t size = (uint32_t) CHANNEL_RING_SIZE;

        for (size_t i = 0; i < N_ELEMENTS(owns); i++)
                for (unsigned k = 0; k < 64; k++) {
                        const uint32_t distances[] = {
                                size + 1 + k, UINT32_MAX - k, 1u << (k % 32), size << (k % 16), size - k, k,
                        };

                        for (size_t d = 0; d < N_ELEMENTS(distances); d++) {
                                uint32_t distance = distances[d];
                                ChannelSide client, worker;
                                bool possible = distance <= size;

                                start();
                                memory.requests.read = memory.answers.read = owns[i];
                                client = channel_side_of_client(&memory);
                                worker = channel_side_of_worker(&memory);
                                memory.requests.written = memory.answers.written = owns[i] + distance;
                                CHECK_INT(channel_ring_fill(&worker.in), possible ? (ssize_t) distance : -EBADMSG);
                                CHECK_INT(channel_ring_fill(&client.in), possible ? (ssize_t) distance : -EBADMSG);
                                CHECK_INT(channel_ring_read(&worker.in, bytes, sizeof bytes),
                                          possible ? (ssize_t) distance : -EBADMSG);
                                CHECK_INT(worker.in.own, owns[i] + (possible ? distance : 0));

                                client.out.own = worker.out.own = owns[i] + distance;
                                memory.requests.read = memory.answers.read = owns[i];
                                CHECK_INT(channel_ring_has_room(&client.out), distance != size);
                                CHECK_INT(channel_ring_write(&client.out, bytes, sizeof bytes),
                                          possible ? (ssize_t) (size - distance) : -EBADMSG);
                                CHECK_INT(channel_ring_write(&worker.out, bytes, 0), possible ? 0 : -EBADMSG);
                                CHECK_INT(channel_ring_withdraw(&worker.out), possible ? distance : 0);
                        }
                }
}

/* ---- all interleavings ---- */

typedef enum Step { STEP_MOVE, STEP_WAKE, STEP_SEND, STEP_EMPTY, STEP_SET, STEP_LOOK, STEP_WAIT, STEP_OVER } Step;

/* One side: it moves messages, and sleeps when there is none, or no room. */
typedef struct Mover {
        uint32_t own;
        uint32_t left; /* bytes to move */
        Step step;
} Mover;

typedef struct World {
        ChannelRingHead head;
        Mover sides[2];      /* the reader, the writer */
        unsigned n_bytes[2]; /* on their way to it */
} World;

enum { READER, WRITER };
#define PIECE ((uint32_t) CHANNEL_RING_SIZE / 2)
#define WORLDS_MAX 20000

static World seen[WORLDS_MAX];
static unsigned n_seen, n_ends;

static bool is_new(const World *w) {
        for (unsigned i = 0; i < n_seen; i++)
                if (memcmp(&seen[i], w, sizeof *w) == 0)
                        return false;
        CHECK(n_seen < WORLDS_MAX);
        memcpy(&seen[n_seen++], w, sizeof *w);
        return true;
}

static ChannelRing ring_of(World *w, unsigned side) {
        return (ChannelRing) { .head = &w->head, .bytes = memory.request_bytes, .own = w->sides[side].own };
}

static bool move(World *w, unsigned side) {
        static uint8_t bytes[PIECE];
        ChannelRing ring = ring_of(w, side);
        ssize_t n = side == READER ? channel_ring_read(&ring, bytes, PIECE) : channel_ring_write(&ring, bytes, PIECE);

        CHECK(n == 0 || n == PIECE);
        w->sides[side].own = ring.own;
        w->sides[side].left -= (uint32_t) n;
        return n > 0;
}

/* The next step of a side. False: it sleeps, or is over. */
static bool step(World *w, unsigned side) {
        Mover *m = &w->sides[side];
        ChannelRing ring = ring_of(w, side);
        bool withdrawn;

        switch (m->step) {
        case STEP_MOVE:
        case STEP_LOOK:
                if (move(w, side))
                        m->step = STEP_WAKE;
                else
                        m->step = m->step == STEP_LOOK ? STEP_WAIT : STEP_EMPTY;
                return true;
        case STEP_WAKE:
                if (side == READER ? channel_ring_wake_writer(&ring, &withdrawn) : channel_ring_wake_reader(&ring))
                        m->step = STEP_SEND;
                else
                        m->step = m->left > 0 ? STEP_MOVE : STEP_OVER;
                return true;
        case STEP_SEND:
                w->n_bytes[!side]++;
                m->step = m->left > 0 ? STEP_MOVE : STEP_OVER;
                return true;
        case STEP_EMPTY:
                w->n_bytes[side] = 0;
                m->step = STEP_SET;
                return true;
        case STEP_SET:
                if (side == READER)
                        channel_ring_reader_sleeps(&ring);
                else
                        channel_ring_writer_sleeps(&ring);
                m->step = STEP_LOOK;
                return true;
        case STEP_WAIT:
                if (w->n_bytes[side] == 0)
                        return false;
                m->step = STEP_MOVE;
                return true;
        case STEP_OVER:
                return false;
        }
        return false;
}

/* A sleeper has its flag set, or a byte is there or about to be sent. */
static void check_sleepers(World *w) {
        const _Atomic uint32_t *flags[] = { &w->head.reader_sleeps, &w->head.writer_sleeps };

        for (unsigned side = READER; side <= WRITER; side++)
                if (w->sides[side].step == STEP_WAIT)
                        CHECK(*flags[side] || w->n_bytes[side] > 0 || w->sides[!side].step == STEP_SEND);
}

static void explore(const World *from) {
        bool stuck = true;

        for (unsigned side = READER; side <= WRITER; side++) {
                World w;

                memcpy(&w, from, sizeof w);
                if (!step(&w, side))
                        continue;
                stuck = false;
                check_sleepers(&w);
                if (is_new(&w))
                        explore(&w);
        }
        if (!stuck)
                return;
        n_ends++;
        for (unsigned side = READER; side <= WRITER; side++)
                CHECK(from->sides[side].step == STEP_OVER && from->sides[side].left == 0);
}

/* In each order of their steps no message is left, and neither side sleeps for ever. The ring holds two messages. */
static void test_sleepers_are_woken(void) {
        World first;

        for (unsigned asleep = 0; asleep < 2; asleep++) {
                memset(&first, 0, sizeof first);
                first.head.reader_sleeps = asleep;
                first.sides[READER] = (Mover) { .left = 5 * PIECE, .step = asleep ? STEP_WAIT : STEP_MOVE };
                first.sides[WRITER] = (Mover) { .left = 5 * PIECE, .step = STEP_MOVE };
                n_seen = n_ends = 0;
                explore(&first);
                CHECK(n_seen > 100 && n_ends > 0);
        }
}

/* The client takes back what the worker has not read, while that reads: none is lost, and none is used twice. */
static void test_withdrawn(void) {
        for (unsigned order = 0; order < 3; order++)
                for (unsigned at = 0; at <= 2; at++) { /* the worker's step before which the client acts */
                        ChannelSide client, worker;
                        uint8_t bytes[8] = {};
                        bool withdrawn = false;
                        size_t taken_back = 0;
                        ssize_t n = 0;

                        start();
                        client = channel_side_of_client(&memory);
                        worker = channel_side_of_worker(&memory);
                        CHECK_INT(channel_ring_write(&client.out, bytes, sizeof bytes), sizeof bytes);
                        for (unsigned i = 0; i <= 2; i++) {
                                if (i == at)
                                        memory.requests.withdrawn = 1;
                                if (i == (at + order < 2 ? at + order : 2))
                                        taken_back = channel_ring_withdraw(&client.out);
                                if (i == 0)
                                        n = channel_ring_read(&worker.in, bytes, sizeof bytes);
                                else if (i == 1)
                                        (void) channel_ring_wake_writer(&worker.in, &withdrawn);
                        }
                        CHECK_INT(n, sizeof bytes);
                        CHECK(taken_back == 0 || withdrawn);
                        CHECK(taken_back == 0 || taken_back == sizeof bytes);
                }
}

/* ---- two threads ---- */

#define THREAD_SIZE (UINT32_C(8) << 20)
static int sockets[2];

static void sleep_on(int fd, bool (*can_go_on)(const ChannelRing *ring), void (*set)(ChannelRing *ring), ChannelRing *ring) {
        char bytes[64];

        while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
                ;
        set(ring);
        if (!can_go_on(ring))
                CHECK(recv(fd, bytes, sizeof bytes, 0) > 0);
}

static bool has_bytes(const ChannelRing *ring) {
        return channel_ring_fill(ring) > 0;
}

static void *write_all(void *userdata) {
        ChannelSide client = channel_side_of_client(&memory);
        static uint8_t bytes[100000];

        for (uint32_t done = 0; done < THREAD_SIZE;) {
                uint32_t size = 1 + done % 70001;
                ssize_t n;

                size = size < THREAD_SIZE - done ? size : THREAD_SIZE - done;
                for (uint32_t i = 0; i < size; i++)
                        bytes[i] = byte_at(done + i);
                n = channel_ring_write(&client.out, bytes, size);
                CHECK(n >= 0);
                done += (uint32_t) n;
                if (channel_ring_wake_reader(&client.out))
                        CHECK_INT(send(sockets[0], "", 1, 0), 1);
                if (n == 0)
                        sleep_on(sockets[0], channel_ring_has_room, channel_ring_writer_sleeps, &client.out);
        }
        return userdata;
}

static void test_threads(void) {
        ChannelSide worker;
        static uint8_t bytes[50000];
        pthread_t thread;
        bool withdrawn;

        start();
        worker = channel_side_of_worker(&memory);
        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
        CHECK_INT(pthread_create(&thread, NULL, write_all, NULL), 0);
        for (uint32_t done = 0; done < THREAD_SIZE;) {
                ssize_t n = channel_ring_read(&worker.in, bytes, 1 + done % sizeof bytes);

                CHECK(n >= 0);
                for (uint32_t i = 0; i < n; i++)
                        CHECK_INT(bytes[i], byte_at(done + i));
                done += (uint32_t) n;
                if (n > 0 && channel_ring_wake_writer(&worker.in, &withdrawn))
                        CHECK_INT(send(sockets[1], "", 1, 0), 1);
                if (n == 0)
                        sleep_on(sockets[1], has_bytes, channel_ring_reader_sleeps, &worker.in);
        }
        CHECK_INT(pthread_join(thread, NULL), 0);
        close(sockets[0]);
        close(sockets[1]);
}

/* ---- the descriptor ---- */

static int make_memory(size_t size, int seals) {
        int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        CHECK(fd >= 0);
        CHECK_INT(ftruncate(fd, (off_t) size), 0);
        CHECK_INT(fcntl(fd, F_ADD_SEALS, seals), 0);
        return fd;
}

static void check_refused(int fd) {
        ChannelMemory *mapped;

        CHECK_INT(channel_memory_map(fd, &mapped), -EBADMSG);
        close(fd);
}

static void test_descriptor(void) {
        const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
        int fd = channel_memory_new(), fds[2];
        ChannelMemory *mapped;

        CHECK(fd >= 0);
        CHECK(ftruncate(fd, 0) < 0 && errno == EPERM);
        CHECK(ftruncate(fd, 2 * (off_t) CHANNEL_MEMORY_SIZE) < 0 && errno == EPERM);
        CHECK_INT(channel_memory_map(fd, &mapped), 0);
        CHECK(mapped->requests.reader_sleeps && mapped->answers.reader_sleeps);
        CHECK(!channel_memory_has_requests(fd));
        mapped->requests.written = 1;
        CHECK(channel_memory_has_requests(fd));
        /* a hole is zeros, and no signal */
        CHECK_INT(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, CHANNEL_MEMORY_SIZE), 0);
        CHECK_INT(mapped->requests.written, 0);
        CHECK(!channel_memory_unmap(mapped));
        CHECK(!channel_memory_unmap(NULL));
        close(fd);

        check_refused(make_memory(CHANNEL_MEMORY_SIZE, F_SEAL_GROW | F_SEAL_SEAL));
        check_refused(make_memory(CHANNEL_MEMORY_SIZE, F_SEAL_SHRINK | F_SEAL_SEAL));
        check_refused(make_memory(CHANNEL_MEMORY_SIZE, F_SEAL_SHRINK | F_SEAL_GROW));
        check_refused(make_memory(CHANNEL_MEMORY_SIZE - 4096, all));
        check_refused(make_memory(CHANNEL_MEMORY_SIZE + 4096, all));
        check_refused(make_memory(0, all));
        fd = make_memory(CHANNEL_MEMORY_SIZE, all | F_SEAL_WRITE); /* it cannot be written */
        CHECK_INT(channel_memory_map(fd, &mapped), -EPERM);
        close(fd);
        CHECK_INT(pipe2(fds, O_CLOEXEC), 0);
        check_refused(fds[0]);
        check_refused(fds[1]);
        check_refused(open("/dev/zero", O_RDWR | O_CLOEXEC));
        check_refused(-1);
}

int main(void) {
        static const Test tests[] = {
                TEST(test_queue),
                TEST(test_impossible_indices),
                TEST(test_sleepers_are_woken),
                TEST(test_withdrawn),
                TEST(test_threads),
                TEST(test_descriptor),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
