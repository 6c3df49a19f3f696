/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A run of writers, see write.h. They store their results in shared memory. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "tools/bench/core/crowd.h"
#include "tools/bench/core/measure.h"
#include "tools/bench/core/sampler.h"
#include "tools/bench/workloads/write.h"

enum {
        WARM_UP = 2,             /* rows of each writer before the clock starts; they start the service's worker */
        ROWS_PER_SECOND = 50000, /* of one writer: more than any can write */
        MESSAGE_SIZE = 200,
        NUMBER_BITS = 63,        /* of a row's number, which is never negative */
        SEQUENCE_BITS = 40,      /* of it, for the rows of one writer */
};

/* The results of a writer. */
typedef struct Writer {
        uint64_t n_acknowledged, n_failed; /* all, those of the warm-up included */
        uint64_t n_in_time;                /* acknowledged before the time was over */
        double cpu_usec;
        char message[MESSAGE_SIZE];        /* of the first failure */
        uint32_t n_usec;
        double usec[];                     /* the times that are reported */
} Writer;

typedef struct Run {
        const WriterKind *kind;
        unsigned n;
        double usec;
        uint32_t n_usec_max;
        size_t writer_size;
        uint8_t *shared;
        int (*meanwhile)(void *userdata); /* NULL: nothing happens beside it */
        void *userdata;
} Run;

static Writer *get_writer(const Run *run, unsigned i) {
        return (Writer *) (void *) (run->shared + i * run->writer_size);
}

/* ---- The writer's process ----------------------------------------------------------------------------------------- */

/* Spreads numbers over the whole range: a multiplication by an odd number is one-to-one. */
static int64_t scatter(unsigned writer, uint64_t sequence) {
        uint64_t number = ((uint64_t) writer << SEQUENCE_BITS | sequence) * UINT64_C(0x9e3779b97f4a7c15);

        return (int64_t) (number & ((UINT64_C(1) << NUMBER_BITS) - 1));
}

/* Returns true if the row was acknowledged. */
static bool write_row(const Run *run, void *client, unsigned number, Writer *writer) {
        const char *message = "no message";
        int64_t row = scatter(number, writer->n_acknowledged + writer->n_failed);

        if (run->kind->write(client, row, &message) >= 0) {
                writer->n_acknowledged++;
                return true;
        }
        if (writer->n_failed++ == 0)
                g_strlcpy(writer->message, message, sizeof writer->message);
        return false;
}

static void measure(const Run *run, void *client, unsigned number, Writer *writer) {
        double begin = sampler_now_usec(), end = begin + run->usec, now = begin;
        Usage before, after;

        sampler_read_own(&before);
        while (now < end && writer->n_usec < run->n_usec_max) {
                double start = now;
                bool acknowledged = write_row(run, client, number, writer);

                now = sampler_now_usec();
                writer->usec[writer->n_usec++] = now - start;
                writer->n_in_time += acknowledged && now <= end;
        }
        sampler_read_own(&after);
        writer->cpu_usec = after.cpu_usec - before.cpu_usec;
}

static int live(const Crowd *crowd, unsigned number, void *userdata) {
        const Run *run = userdata;
        Writer *writer = get_writer(run, number);
        void *client = NULL;
        int r;

        r = run->kind->open(run->kind->target, &client);
        if (r < 0)
                return r;
        for (unsigned i = 0; i < WARM_UP; i++)
                (void) write_row(run, client, number, writer);
        r = crowd_wait_at(crowd, CROWD_START);
        if (r >= 0) {
                measure(run, client, number, writer);
                r = crowd_wait_at(crowd, CROWD_END);
        }
        run->kind->close(client);
        return r;
}

/* ---- The parent's ------------------------------------------------------------------------------------------------- */

static double server_cpu_usec(const WriterKind *kind) {
        Usage usage = {};

        if (kind->server != 0)
                sampler_read_tree(kind->server, &usage);
        return usage.cpu_usec;
}

static int supervise(Run *run, Crowd *crowd, double *ret_server_cpu_usec) {
        double before;
        int r;

        r = crowd_start(crowd, live, run);
        if (r >= 0)
                r = crowd_wait_for_all(crowd);
        if (r < 0)
                return r;
        before = server_cpu_usec(run->kind);
        crowd_pass(crowd, CROWD_START);
        r = run->meanwhile ? run->meanwhile(run->userdata) : 0;
        if (r >= 0)
                r = crowd_wait_for_all(crowd);
        *ret_server_cpu_usec = server_cpu_usec(run->kind) - before;
        return r;
}

/* Checks the table. A row whose write failed may exist: its outcome can be unknown. */
static int check(const Run *run, uint64_t n_acknowledged, uint64_t n_failed) {
        WriteCount count;
        int r = run->kind->count(run->kind->target, &count);

        if (r < 0)
                return r;
        if ((uint64_t) count.n_rows >= n_acknowledged && (uint64_t) count.n_rows <= n_acknowledged + n_failed &&
            count.n_different == count.n_rows)
                return 0;
        fprintf(stderr, "sqlipc-bench: %s: %" PRIu64 " rows were acknowledged and %" PRIu64 " failed, but there are %" PRId64
                        ", of which %" PRId64 " are different.\n",
                run->kind->name, n_acknowledged, n_failed, count.n_rows, count.n_different);
        return -EBADMSG;
}

static int gather(const Run *run, double cpu_usec, WriteFindings *ret) {
        uint64_t n_acknowledged = 0, n_measured = 0, n_in_time = 0;

        for (unsigned i = 0; i < run->n; i++) {
                const Writer *writer = get_writer(run, i);

                n_acknowledged += writer->n_acknowledged;
                n_measured += writer->n_usec;
                n_in_time += writer->n_in_time;
                ret->n_failed += writer->n_failed;
                ret->client_cpu_usec += writer->cpu_usec;
                g_array_append_vals(ret->usec, writer->usec, writer->n_usec);
                if (writer->n_failed > 0 && !ret->failure)
                        ret->failure = g_strdup(writer->message);
        }
        ret->per_second = (double) n_in_time / run->usec * 1e6;
        ret->client_cpu_usec /= (double) MAX(n_measured, 1);
        ret->server_cpu_usec = cpu_usec / (double) MAX(n_measured, 1);
        return check(run, n_acknowledged, ret->n_failed);
}

/* Does the run, with run->shared in place. */
static int run_mapped(Run *run, WriteFindings *ret) {
        Crowd *crowd = NULL;
        double cpu_usec = 0;
        int r, ended;

        r = run->kind->clear(run->kind->target);
        if (r >= 0)
                r = crowd_new(run->n, &crowd);
        if (r >= 0)
                r = supervise(run, crowd, &cpu_usec);
        ended = crowd_end(crowd);
        r = r < 0 ? r : ended;
        return r < 0 ? r : gather(run, cpu_usec, ret);
}

int write_run(const WriterKind *kind, unsigned n, double usec, WriteFindings *ret) {
        return write_run_beside(kind, n, usec, NULL, NULL, ret);
}

int write_run_beside(const WriterKind *kind, unsigned n, double usec, int (*meanwhile)(void *userdata), void *userdata,
                     WriteFindings *ret) {
        Run run = {
                .kind = kind, .n = n, .usec = usec, .n_usec_max = (uint32_t) (usec / 1e6 * ROWS_PER_SECOND),
                .meanwhile = meanwhile, .userdata = userdata,
        };
        WriteFindings findings = { .usec = NULL };
        int r = measure_interrupted();

        if (r < 0)
                return r;
        findings.usec = g_array_new(FALSE, FALSE, sizeof(double));
        run.writer_size = sizeof(Writer) + run.n_usec_max * sizeof(double);
        run.shared = mmap(NULL, n * run.writer_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                          0);
        if (run.shared == MAP_FAILED)
                g_error("out of memory for %zu bytes", n * run.writer_size);
        r = run_mapped(&run, &findings);
        (void) munmap(run.shared, n * run.writer_size);
        if (r < 0) {
                fprintf(stderr, "sqlipc-bench: %s: %u writers failed: %s\n", kind->name, n, g_strerror(-r));
                write_findings_done(&findings);
                return r;
        }
        *ret = findings;
        return 0;
}

void write_findings_done(WriteFindings *findings) {
        g_clear_pointer(&findings->usec, g_array_unref);
        g_clear_pointer(&findings->failure, g_free);
}
