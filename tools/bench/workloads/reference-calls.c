/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The cost of each system call, see reference-calls.h. */
#include "tools/bench/workloads/reference-calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tools/bench/core/measure.h"
#include "tools/bench/core/random.h"
#include "tools/bench/workloads/reference-ways.h"

enum {
        SEND_ALL, RECEIVE_ALL, SEND_FD, RECEIVE_FD, CLOSE_PASSED,
        MAKE_FILE, WRITE_FILE, READ_FILE, CLOSE_FILE,
        MAKE_MEMFD, WRITE_MEMFD, READ_MEMFD, MAP_MEMFD, UNMAP_MEMFD, CLOSE_MEMFD,
        LOCK, UNLOCK, COPY, GZIP, GUNZIP,
        N_CALLS,
};

static const char *const names[N_CALLS] = {
        [SEND_ALL] = "sendmsg(), 112,192 bytes, 2 descriptors",
        [RECEIVE_ALL] = "recvmsg(), 112,192 bytes, 2 descriptors",
        [SEND_FD] = "sendmsg(), no bytes, 3 descriptors",
        [RECEIVE_FD] = "recvmsg(), no bytes, 3 descriptors",
        [CLOSE_PASSED] = "close() of a descriptor that has a copy elsewhere",
        [MAKE_FILE] = "open() and unlink() of a temporary file",
        [WRITE_FILE] = "write() to a temporary file, 112,192 bytes",
        [READ_FILE] = "pread() from it, 112,192 bytes",
        [CLOSE_FILE] = "close() of a temporary file, the last",
        [MAKE_MEMFD] = "memfd_create()",
        [WRITE_MEMFD] = "write() to a memfd, 112,192 bytes",
        [READ_MEMFD] = "pread() from a memfd, 112,192 bytes",
        [MAP_MEMFD] = "mmap() of a memfd, populated",
        [UNMAP_MEMFD] = "munmap()",
        [CLOSE_MEMFD] = "close() of a memfd, the last",
        [LOCK] = "fcntl(F_SETLKW), a lock",
        [UNLOCK] = "fcntl(F_SETLKW), its end",
        [COPY] = "(no call) memcpy(), 112,192 bytes",
        [GZIP] = "(no call) gzip, 112,192 bytes",
        [GUNZIP] = "(no call) gunzip to 112,192 bytes",
};

enum { GZIP_EVERY = 50 }; /* only for every 50th message, because one takes milliseconds */

typedef struct Bench {
        const char *folder;
        int sockets[2];
        Queue queue;
        uint8_t *payload, *buffer, *packed;
        double clock_nsec;         /* cost of reading the clock */
        double mark;               /* start of the next call */
        double nsec[N_CALLS], counts[N_CALLS];
} Bench;

static double now_nsec(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double) now.tv_sec * 1e9 + (double) now.tv_nsec;
}

/* Adds the time since the clock was last read to `call`. */
static void lap(Bench *bench, unsigned call) {
        bench->nsec[call] += now_nsec() - bench->mark - bench->clock_nsec;
        bench->counts[call]++;
        bench->mark = now_nsec();
}

static void skip(Bench *bench) {
        bench->mark = now_nsec();
}

static void measure_clock(Bench *bench) {
        enum { N = 1000 };
        double start = now_nsec();

        for (unsigned i = 0; i < N; i++)
                (void) now_nsec();
        bench->clock_nsec = (now_nsec() - start) / N;
}

static int message(Bench *bench, size_t size, const int *fds, size_t n_fds, unsigned send, unsigned receive) {
        int received[PASSING_FDS_MAX], r;
        size_t n_received;
        ssize_t n;

        skip(bench);
        r = passing_send(bench->sockets[0], bench->payload, size, fds, n_fds);
        lap(bench, send);
        if (r < 0)
                return r;
        n = passing_receive(bench->sockets[1], bench->buffer, REFERENCE_SIZE, received, &n_received);
        lap(bench, receive);
        for (size_t i = 0; i < n_received; i++) {
                close(received[i]);
                lap(bench, CLOSE_PASSED);
        }
        return n < 0 ? (int) n : n == (ssize_t) size && n_received == n_fds ? 0 : -EPROTO;
}

static int write_and_read(Bench *bench, int fd, unsigned writing, unsigned reading) {
        ssize_t n;
        int r;

        r = passing_write_all(fd, bench->payload, REFERENCE_SIZE);
        lap(bench, writing);
        if (r < 0)
                return r;
        n = pread(fd, bench->buffer, REFERENCE_SIZE, 0);
        lap(bench, reading);
        return n < 0 ? -errno : n == (ssize_t) REFERENCE_SIZE ? 0 : -EPROTO;
}

static int temporary_file(Bench *bench) {
        int fd, r;

        skip(bench);
        fd = reference_temporary_file(bench->folder);
        lap(bench, MAKE_FILE);
        if (fd < 0)
                return fd;
        r = write_and_read(bench, fd, WRITE_FILE, READ_FILE);
        close(fd);
        lap(bench, CLOSE_FILE);
        return r;
}

static int memfd(Bench *bench) {
        void *mapped;
        int fd, r;

        skip(bench);
        fd = memfd_create("sqlipc-bench", MFD_CLOEXEC);
        lap(bench, MAKE_MEMFD);
        if (fd < 0)
                return -errno;
        r = write_and_read(bench, fd, WRITE_MEMFD, READ_MEMFD);
        mapped = mmap(NULL, REFERENCE_SIZE, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
        lap(bench, MAP_MEMFD);
        if (mapped == MAP_FAILED)
                r = -errno;
        else
                munmap(mapped, REFERENCE_SIZE);
        lap(bench, UNMAP_MEMFD);
        close(fd);
        lap(bench, CLOSE_MEMFD);
        return r;
}

static int lock_and_copy(Bench *bench) {
        int r;

        skip(bench);
        r = queue_lock(&bench->queue);
        lap(bench, LOCK);
        if (r >= 0)
                r = queue_unlock(&bench->queue);
        lap(bench, UNLOCK);
        memcpy(bench->buffer, bench->payload, REFERENCE_SIZE);
        lap(bench, COPY);
        return r;
}

static int compress_and_back(Bench *bench) {
        ssize_t n;

        skip(bench);
        n = reference_gzip(bench->payload, REFERENCE_SIZE, bench->packed, REFERENCE_SIZE);
        lap(bench, GZIP);
        if (n < 0)
                return (int) n;
        n = reference_gunzip(bench->packed, (size_t) n, bench->buffer, REFERENCE_SIZE);
        lap(bench, GUNZIP);
        return n < 0 ? (int) n : memcmp(bench->buffer, bench->payload, REFERENCE_SIZE) == 0 ? 0 : -EBADMSG;
}

static int run_round(Bench *bench, unsigned n) {
        const int fds[] = { bench->sockets[0], bench->sockets[1], bench->queue.fd };
        int r = 0;

        memset(bench->nsec, 0, sizeof bench->nsec);
        memset(bench->counts, 0, sizeof bench->counts);
        measure_clock(bench);
        for (unsigned i = 0; r >= 0 && i < n; i++) {
                r = message(bench, REFERENCE_SIZE, fds, REFERENCE_N_FDS, SEND_ALL, RECEIVE_ALL);
                if (r >= 0)
                        r = message(bench, 0, fds, REFERENCE_N_FDS + 1, SEND_FD, RECEIVE_FD);
                if (r >= 0)
                        r = temporary_file(bench);
                if (r >= 0)
                        r = memfd(bench);
                if (r >= 0)
                        r = lock_and_copy(bench);
                if (r >= 0 && i % GZIP_EVERY == 0)
                        r = compress_and_back(bench);
        }
        return r;
}

static void fill(const Bench *bench, GArray *values[N_CALLS]) {
        for (unsigned i = 0; i < N_CALLS; i++) {
                double nsec = bench->nsec[i] / bench->counts[i];

                g_array_append_val(values[i], nsec);
        }
}

static void report_calls(Report *report, GArray *values[N_CALLS]) {
        ReportTable *table = report_table(report, "system-calls", "What each call costs, with nobody else waiting", "call");

        (void) report_table_column(table, "time", "ns");
        for (unsigned i = 0; i < N_CALLS; i++) {
                report_table_row(table, names[i], false);
                report_table_values(table, 0, values[i]);
        }
}

static int open_bench(Bench *bench) {
        Random random;

        bench->payload = g_malloc(REFERENCE_SIZE);
        bench->buffer = g_malloc0(REFERENCE_SIZE);
        bench->packed = g_malloc0(REFERENCE_SIZE);
        random_init(&random, 1);
        random_letters(&random, (char *) bench->payload, REFERENCE_SIZE);
        if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, bench->sockets) < 0)
                return -errno;
        return queue_open(&bench->queue, 1, REFERENCE_SIZE);
}

static void close_bench(Bench *bench) {
        for (unsigned i = 0; i < G_N_ELEMENTS(bench->sockets); i++)
                if (bench->sockets[i] >= 0)
                        close(bench->sockets[i]);
        queue_close(&bench->queue);
        g_free(bench->payload);
        g_free(bench->buffer);
        g_free(bench->packed);
}

int reference_calls(const char *folder, unsigned n, int n_rounds, Report *report) {
        Bench bench = { .folder = folder, .sockets = { -1, -1 }, .queue = QUEUE_INIT };
        GArray *values[N_CALLS];
        int r;

        for (unsigned i = 0; i < N_CALLS; i++)
                values[i] = g_array_new(FALSE, FALSE, sizeof(double));
        r = open_bench(&bench);
        for (int round = 0; r >= 0 && round <= n_rounds; round++) { /* round 0 is the warm-up */
                measure_progress("system calls", (unsigned) round, (unsigned) n_rounds + 1);
                r = run_round(&bench, n);
                if (r >= 0 && round > 0)
                        fill(&bench, values);
        }
        measure_progress("system calls", 1, 1);
        if (r >= 0)
                report_calls(report, values);
        else
                fprintf(stderr, "sqlipc-bench: system calls: %s\n", g_strerror(-r));
        for (unsigned i = 0; i < N_CALLS; i++)
                g_array_unref(values[i]);
        close_bench(&bench);
        return r;
}
