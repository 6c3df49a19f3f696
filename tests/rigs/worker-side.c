/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See worker-side.h. Tests only. */
#include "tests/rigs/worker-side.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/worker/core/job-end.h"
#include "daemon/worker/core/job-slice.h"
#include "daemon/worker/core/supervisor-job.h"
#include "daemon/worker/sqlite/file-names.h"
#include "daemon/worker/sqlite/sqlite-engine.h"
#include "dbus-interfaces/wire/page-decoder.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/descriptors.h"

#define PROGRESS_MAX 100   /* calls of the progress handler, of 1,000 opcodes each, before a run is out of time */
#define LENGTH_MAX 40000   /* of a value: keeps single functions, which nothing interrupts, to milliseconds */
#define RETRIES_MAX 3
#define DEADLINE_USEC (UINT64_MAX - 1)

static char folder[64];
static JobContext context;
static int reports_fd; /* our end of the control socket */
static Job *current;
static unsigned n_progress, n_descriptors;
static const char *forbidden;

/* ---- what may be opened ---- */

static bool ends_in(const char *path, const char *suffix) {
        size_t size = strlen(path), n = strlen(suffix);

        return size >= n && strcmp(path + size - n, suffix) == 0;
}

/* The worker's, which is in place of the unix VFS's. */
static int (*inner_open)(const char *path, int flags, int mode);

static void demand_in_folder(int fd) {
        char link[32], target[PATH_MAX];
        ssize_t size;

        (void) snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        size = readlink(link, target, sizeof target);
        demand(size > (ssize_t) strlen(folder) && strncmp(target, folder, strlen(folder)) == 0);
}

/* Around the worker's open(). Ours alone call it: databases are made before the guard is set. */
static int guarded_open(const char *path, int flags, int mode) {
        bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC));
        const FilePlace *place = file_place_find(path);
        int fd;

        if (place) {
                demand(!(flags & O_TRUNC));
                demand(!writes || ends_in(path, "-shm") || (ends_in(path, "-wal") && place->own));
        } else if (strstr(path, "/etilqs_"))
                demand((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL));
        else
                demand(strcmp(path, "/dev/urandom") == 0 && !writes);
        fd = inner_open(path, flags | O_CLOEXEC, mode);
        demand(!place || !writes || place->own || fd < 0); /* SQLite tries to write to a "-shm" first */
        if (place && fd >= 0)
                demand_in_folder(fd);
        return fd;
}

/* SQLite unlinks a temporary file by name as soon as it is open. */
static int guarded_unlink(const char *path) {
        demand(strstr(path, "/etilqs_") != NULL);
        return unlink(path);
}

static int limit_length(sqlite3 *db) {
        (void) sqlite3_limit(db, SQLITE_LIMIT_LENGTH, LENGTH_MAX);
        return SQLITE_OK;
}

static void guard(void) {
        sqlite3_vfs *vfs = sqlite3_vfs_find("unix");

        demand(vfs && vfs->iVersion >= 3);
        inner_open = (int (*)(const char *, int, int)) vfs->xGetSystemCall(vfs, "open");
        demand(vfs->xSetSystemCall(vfs, "open", (sqlite3_syscall_ptr) guarded_open) == SQLITE_OK);
        demand(vfs->xSetSystemCall(vfs, "unlink", (sqlite3_syscall_ptr) guarded_unlink) == SQLITE_OK);
        demand(sqlite3_auto_extension((void (*)(void)) limit_length) == SQLITE_OK);
}

/* ---- birth and death ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *level) {
        (void) st;
        (void) type;
        (void) level;
        return remove(path);
}

static void remove_folder(void) {
        (void) nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

Setup worker_side_setup(const char *path) {
        return (Setup) {
                .path = path,
                .heap_size_max = UINT64_C(32) << 20,
                .temp_size_max = UINT64_C(4) << 20,
                .park_usec = 30000000,
                .park_rollback_usec = 30000000,
                .drain_usec = 30000000,
                .sql_size_max = 16384,
                .expression_depth_max = 100,
                .compound_selects_max = 20,
                .vdbe_ops_max = 25000,
                .variables_max = 100,
        };
}

const char *worker_side_init(void) {
        const char *memory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
        Setup setup = worker_side_setup("");
        int fds[2];

        snprintf(folder, sizeof folder, "%s/sqlipc-fuzz-XXXXXX", memory);
        demand(mkdtemp(folder) && atexit(remove_folder) == 0);
        demand(chmod(folder, 0755) == 0);
        (void) signal(SIGPIPE, SIG_IGN); /* as the worker */
        demand(sqlite_engine.init(&setup) == 0);
        demand(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
        context.control_fd = fds[0];
        reports_fd = fds[1];
        return folder;
}

/* As the worker's loop does, with a clock that goes by opcodes. */
static int on_progress(void *userdata) {
        (void) userdata;
        if (!current)
                return 0;
        return job_on_progress(current, ++n_progress > PROGRESS_MAX ? UINT64_MAX : 0, true);
}

void worker_side_open(const Setup *setup) {
        static bool guarded;

        if (!guarded)
                guard();
        guarded = true;
        context.setup = setup;
        context.engine = &sqlite_engine;
        demand(sqlite_engine.start(setup, on_progress, NULL, &context.pool) == 0);
        n_descriptors = count_descriptors();
}

void worker_side_forbid(const char *text) {
        forbidden = text;
}

void worker_side_close(void) {
        sqlite_engine.stop(context.pool);
        job_context_trim(&context);
        demand(context.report_error == 0);
        demand(count_descriptors() == n_descriptors);
}

/* ---- what is reported ---- */

typedef struct Reports {
        bool started, ended, drained;
        Failure failure;
        uint64_t n_rows, n_bytes;
} Reports;

static void take_report(Reports *reports, const Message *m, uint64_t number) {
        switch (m->kind) {
        case MESSAGE_STARTED:
                demand(m->started.number == number && !reports->started && !reports->ended);
                reports->started = true;
                return;
        case MESSAGE_PARKED:
                demand(m->parked.number == number && reports->started);
                return;
        case MESSAGE_FILLING:
                demand(m->number == number && reports->started && !reports->ended);
                return;
        case MESSAGE_PROGRESS:
                demand(m->progress.number == number);
                return;
        case MESSAGE_ENDED:
                demand(m->ended.number == number && !reports->ended);
                reports->ended = true;
                reports->drained = m->ended.drained;
                reports->failure = m->ended.failure;
                reports->failure.message = NULL;
                demand(m->ended.failure.error == ERROR_NONE || m->ended.failure.message[0] != 0);
                reports->n_rows = m->ended.n_rows;
                reports->n_bytes = m->ended.n_bytes;
                return;
        case MESSAGE_DRAINED:
                demand(m->drained.number == number && reports->ended && !reports->drained);
                reports->drained = true;
                return;
        default:
                abort();
        }
}

static void take_reports(Reports *reports, uint64_t number) {
        for (;;) {
                ReceivedMessage m = RECEIVED_MESSAGE_INIT;
                int r = message_receive(reports_fd, &m);

                if (r == -EAGAIN)
                        return;
                demand(r == 1);
                take_report(reports, &m.message, number);
                received_message_done(&m);
        }
}

/* ---- what comes down the pipe ---- */

typedef struct Stream {
        PageDecoder decoder;
        int fd;       /* -1: the reader left */
        bool over, failed;
        uint64_t n_rows, n_bytes, sum;
} Stream;

static void add(uint64_t *sum, const void *bytes, size_t size) {
        for (size_t i = 0; i < size; i++)
                *sum = (*sum ^ ((const uint8_t *) bytes)[i]) * UINT64_C(0x100000001b3);
}

/* Byte by byte: memmem() would tell the engine what to write into its inputs. */
static void check_allowed(const void *bytes, size_t size) {
        const uint8_t *at = bytes;

        for (size_t i = 0; forbidden && i < size; i++) {
                size_t k = 0;

                while (forbidden[k] && i + k < size && at[i + k] == (uint8_t) forbidden[k])
                        k++;
                demand(forbidden[k] != 0);
        }
}

static void take_row(Stream *s) {
        for (unsigned i = 0; i < s->decoder.n_columns; i++) {
                PageValue v = page_decoder_value(&s->decoder, i);

                demand(v.type != VALUE_TEXT || v.bytes[v.size] == 0);
                check_allowed(v.bytes, v.size);
                add(&s->sum, &v.type, sizeof v.type);
                add(&s->sum, v.bytes, v.size);
        }
        s->n_rows++;
}

static void take_columns(Stream *s) {
        for (unsigned i = 0; i < s->decoder.n_columns; i++) {
                const char *name, *declared_type;
                size_t size;

                page_decoder_column(&s->decoder, i, &name, &declared_type);
                page_decoder_column_name(&s->decoder, i, &name, &size);
                add(&s->sum, name, size + 1);
        }
}

static void decode(Stream *s, uint64_t number) {
        int event;

        while ((event = page_decoder_next(&s->decoder)) > 0) {
                demand(!s->over && s->decoder.run == number);
                if (event == PAGE_COLUMNS)
                        take_columns(s);
                else if (event == PAGE_ROW)
                        take_row(s);
                else {
                        demand(event == PAGE_END || event == PAGE_ERROR);
                        s->over = true;
                        s->failed = event == PAGE_ERROR;
                        if (s->failed)
                                check_allowed(s->decoder.error_message, s->decoder.error_message_size);
                }
        }
        demand(event == PAGE_MORE);
}

/* Up to `size` bytes, as far as there are. */
static void read_stream(Stream *s, size_t size, uint64_t number) {
        while (size > 0 && s->fd >= 0) {
                uint8_t *room;
                size_t n_room;
                ssize_t n;

                demand(page_decoder_reserve(&s->decoder, &room, &n_room) == 0);
                n = read(s->fd, room, n_room < size ? n_room : size);
                if (n <= 0) {
                        demand(n == 0 || errno == EAGAIN);
                        return;
                }
                page_decoder_commit(&s->decoder, (size_t) n);
                s->n_bytes += (uint64_t) n;
                size -= (size_t) n;
                decode(s, number);
        }
}

static void leave(Stream *s) {
        if (s->fd >= 0)
                close(s->fd);
        s->fd = -1;
}

static void on_full(Stream *s, const WorkerSideReader *reader, uint64_t number) {
        read_stream(s, reader->at_once > 0 ? reader->at_once : SIZE_MAX, number);
        if (reader->leaves_after > 0 && s->n_bytes >= reader->leaves_after)
                leave(s);
}

/* ---- a job ---- */

/* Through the protocol's bytes, as it would come. */
static SupervisorJob *receive_job(const JobSpec *spec, bool is_prepare, int pipe_fd) {
        Message m = { .kind = is_prepare ? MESSAGE_PREPARE : MESSAGE_RUN, .job = *spec };
        ReceivedMessage received = RECEIVED_MESSAGE_INIT;
        uint8_t *bytes;
        size_t size;
        SupervisorJob *job;

        m.job.number = 1;
        m.job.deadline_usec = DEADLINE_USEC;
        m.job.lock_wait_usec = UINT64_MAX;
        demand(message_encode(&m, &bytes, &size) == 0 && message_decode(bytes, size, &received) == 0);
        received.pipe_fd = pipe_fd;
        demand(supervisor_job_new(&context, &received, &job) == 0);
        return job;
}

static void cancel(Job *job) {
        (void) job_end(job, ERROR_CANCELLED, "cancelled");
}

/* As the worker's loop takes turns, until it is over. */
static void turn_until_over(SupervisorJob *owner, Stream *stream, const WorkerSideReader *reader) {
        unsigned n_turns = 0, n_retries = 0;
        Job *job = &owner->job;

        n_progress = 0;
        while (job->state != JOB_OVER) {
                current = job;
                (void) job_slice(job);
                current = NULL;
                if (reader && reader->cancel_after > 0 && ++n_turns == reader->cancel_after && job->state != JOB_OVER)
                        cancel(job);
                if (job->state == JOB_RETRY && ++n_retries > RETRIES_MAX)
                        cancel(job);
                if (job->state == JOB_PARKED || job->state == JOB_DRAINING)
                        on_full(stream, reader, job->spec->number);
        }
        (void) supervisor_job_free(owner);
}

WorkerSideOutcome worker_side_prepare(const JobSpec *spec) {
        SupervisorJob *job = receive_job(spec, true, -1);
        Reports reports = {};

        turn_until_over(job, NULL, NULL);
        take_reports(&reports, 1);
        /* a statement that compiles is started, and no more; else it ended, and did not start */
        demand(reports.started != reports.ended);
        demand(!reports.ended || (reports.drained && reports.failure.error != ERROR_NONE));
        return (WorkerSideOutcome) { .error = (ErrorNumber) reports.failure.error };
}

static void check_stream(const Stream *s, const Reports *r, bool left) {
        if (!r->started) {
                demand(r->failure.error != ERROR_NONE && s->n_bytes == 0 && !s->over);
                return;
        }
        if (left)
                return;
        demand(s->over && page_decoder_end_of_file(&s->decoder) == 0);
        demand(s->failed == (r->failure.error != ERROR_NONE) && s->n_rows <= r->n_rows);
        if (s->failed)
                demand(s->decoder.error_number == r->failure.error &&
                       s->decoder.error_extended_code == r->failure.extended_code);
        else
                demand(s->n_rows == r->n_rows && s->decoder.end_counters.n_rows == s->n_rows);
}

WorkerSideOutcome worker_side_run(const JobSpec *spec, const WorkerSideReader *reader) {
        Stream stream = { .sum = UINT64_C(0xcbf29ce484222325) };
        Reports reports = {};
        bool left;
        int fds[2];

        demand(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
        if (reader->pipe_size > 0)
                (void) fcntl(fds[1], F_SETPIPE_SZ, (int) reader->pipe_size);
        stream.fd = fds[0];
        page_decoder_init(&stream.decoder, spec->page_size, spec->row_size_max + (1 << 20));
        turn_until_over(receive_job(spec, false, fds[1]), &stream, reader);
        left = stream.fd < 0;
        read_stream(&stream, SIZE_MAX, 1);
        leave(&stream);
        take_reports(&reports, 1);
        demand(reports.ended && reports.drained);
        check_stream(&stream, &reports, left);
        demand(spec->result_rows_max >= stream.n_rows);
        page_decoder_done(&stream.decoder);
        return (WorkerSideOutcome) {
                .error = (ErrorNumber) reports.failure.error,
                .n_rows = stream.n_rows,
                .n_bytes = stream.n_bytes,
                .sum = stream.sum,
        };
}
