/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any bytes as the stream of a client that loads rows: the worker survives them, the rows that the engine gets and the error
 * do not depend on the pieces in which they come, and only END is a good end.
 *
 * About: daemon/worker/core/load.c
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/worker/core/load.h"
#include "tests/fuzz/replay.h"

#define PAGE_SIZE ((size_t) 8192)
#define ROW_SIZE_MAX ((uint64_t) 20000)

static uint64_t sum;

/* FNV-1a. */
static void add(const void *bytes, size_t size) {
        for (size_t i = 0; i < size; i++)
                sum = (sum ^ ((const uint8_t *) bytes)[i]) * UINT64_C(0x100000001b3);
}

/* Reads each value, as binding it does. */
static bool take_rows(EngineStatement *statement, RowSource *source, SqlError *error) {
        do
                for (unsigned i = 0; i < source->decoder.n_columns; i++) {
                        PageValue v = page_decoder_value(&source->decoder, i);

                        demand(v.size <= ROW_SIZE_MAX);
                        demand(v.type != VALUE_TEXT || v.bytes[v.size] == 0);
                        add(&v.type, sizeof v.type);
                        add(v.bytes, v.size);
                }
        while (row_source_next(source, 1));
        return true;
}

static void on_progress(Job *job) {
}

static const Engine engine = { .load = take_rows };
static const JobOwner owner = { .progress = on_progress };

/* Until the pipe is empty. False: it has failed. */
static bool go_on(Job *job) {
        Load *l = job->load;
        bool ok = true;

        l->waits = false;
        while (ok && !l->waits && !load_has_ended(l))
                ok = load_has_rows(l) ? load_run(job) : load_read(job);
        demand(ok == (job->error.error == ERROR_NONE));
        return ok;
}

/* Returns how it ended; ERROR_NONE: with END. */
static ErrorNumber load(const uint8_t *bytes, size_t size, size_t chunk) {
        JobContext context = { .engine = &engine };
        const JobSpec spec = {};
        Job job = { .context = &context, .owner = &owner, .spec = &spec, .error = SQL_ERROR_INIT };
        Load l;
        ErrorNumber error;
        bool ok = true;
        int fds[2];

        sum = UINT64_C(0xcbf29ce484222325);
        demand(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
        load_init(&l, fds[0], PAGE_SIZE, ROW_SIZE_MAX);
        job.load = &l;
        for (size_t done = 0; ok && done < size && !load_has_ended(&l);) {
                ssize_t n = write(fds[1], bytes + done, size - done < chunk ? size - done : chunk);

                demand(n > 0);
                done += (size_t) n;
                ok = go_on(&job);
        }
        close(fds[1]);
        ok = ok && go_on(&job);
        error = job.error.error;
        demand(ok == load_has_ended(&l) && ok == (error == ERROR_NONE));
        demand(l.source.n_rows == (uint64_t) l.source.n_changes);
        add(&l.source.n_rows, sizeof l.source.n_rows);
        load_done(&l);
        sql_error_done(&job.error);
        close(fds[0]);
        return error;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
        const size_t chunks[] = { 29, 4096, 65536 };
        ErrorNumber error = load(bytes, size, 1000);
        uint64_t first = sum;

        for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++)
                demand(load(bytes, size, chunks[i]) == error && sum == first);
        return 0;
}
