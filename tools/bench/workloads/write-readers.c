/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Point queries of one client beside writers, and without them, see write-readers.h. */
#include "tools/bench/workloads/write-readers.h"

#include <errno.h>
#include <stdio.h>

#include "tools/bench/core/library.h"
#include "tools/bench/core/measure.h"
#include "tools/bench/core/sampler.h"

enum { N_WRITERS = 8, N_IDS = 8 }; /* the rows that are read exist before the clock starts */

typedef enum When { WHEN_QUIET, WHEN_BESIDE, _WHEN_MAX } When;

static const char *const names[_WHEN_MAX] = { "without writers", "beside 8 writers" };

typedef struct Reader {
        const WriteTarget *target;
        double usec;    /* how long it reads */
        GArray *times;  /* of double: us, of each query */
} Reader;

static int read_row(sqlipc_statement *statement, int64_t id) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        int r = sqlipc_bind_int64(statement, 1, id);

        if (r >= 0)
                r = sqlipc_execute(statement, &cursor);
        while (r >= 0 && (r = sqlipc_cursor_next(cursor)) > 0)
                ;
        return r;
}

static int read_rows(sqlipc_statement *statement, const Reader *reader) {
        double now = sampler_now_usec(), end = now + reader->usec;
        int r = 0;

        for (int64_t i = 0; r >= 0 && now < end; i++) {
                double start = now, usec;

                r = read_row(statement, 1 + i % N_IDS);
                now = sampler_now_usec();
                usec = now - start;
                g_array_append_val(reader->times, usec);
        }
        return r;
}

/* Called by write_run_beside(), when the writers write. */
static int live(void *userdata) {
        Reader *reader = userdata;
        g_autofree char *sql = g_strdup_printf("SELECT * FROM %s WHERE id = ?1", reader->target->table);
        sqlipc_statement *statement = NULL;
        sqlipc_connection *connection;
        int r = library_open(reader->target->options, SQLIPC_TRANSPORT_CHANNEL, &connection);

        if (r < 0)
                return r;
        r = sqlipc_prepare(connection, reader->target->table, sql, &statement);
        if (r >= 0)
                r = read_rows(statement, reader);
        if (r < 0)
                library_failed(connection, r, sql);
        sqlipc_finalize(statement);
        sqlipc_close(connection);
        return r;
}

static int measure_once(const WriterKind *writers, double usec, When when, GArray *p50, GArray *p99) {
        /* without what connecting takes, so that the writers do not end before it */
        Reader reader = { writers->target, usec * 0.8, g_array_new(FALSE, FALSE, sizeof(double)) };
        WriteFindings findings;
        int r;

        r = when == WHEN_QUIET ? live(&reader) : write_run_beside(writers, N_WRITERS, usec, live, &reader, &findings);
        if (r >= 0 && when == WHEN_BESIDE)
                write_findings_done(&findings);
        if (r >= 0) {
                double values[] = { report_quantile(reader.times, 0.5), report_quantile(reader.times, 0.99) };

                g_array_append_val(p50, values[0]);
                g_array_append_val(p99, values[1]);
        }
        g_array_unref(reader.times);
        return r < 0 ? r : 0;
}

static void report_readers(Report *report, GArray *const p50[_WHEN_MAX], GArray *const p99[_WHEN_MAX]) {
        ReportTable *table = report_table(report, "write-readers", "Point queries on a channel, WAL", "when");

        report_table_column(table, "p50", "us");
        report_table_column(table, "p99", "us");
        report_table_column(table, "p99 / quiet", "");
        for (When when = 0; when < _WHEN_MAX; when++) {
                g_autoptr(GArray) ratios = measure_ratios(p99[when], p99[WHEN_QUIET]);

                report_table_row(table, names[when], false);
                report_table_values(table, 0, p50[when]);
                report_table_values(table, 1, p99[when]);
                report_table_values(table, 2, ratios);
        }
}

int write_readers(const WriterKind *writers, double usec, int n_rounds, Report *report) {
        GArray *p50[_WHEN_MAX], *p99[_WHEN_MAX];
        int r = 0;

        for (When when = 0; when < _WHEN_MAX; when++) {
                p50[when] = g_array_new(FALSE, FALSE, sizeof(double));
                p99[when] = g_array_new(FALSE, FALSE, sizeof(double));
        }
        /* the writers leave the rows that are read without them */
        for (int round = 0; r >= 0 && round < n_rounds; round++)
                for (int i = _WHEN_MAX - 1; r >= 0 && i >= 0; i--)
                        r = measure_once(writers, usec, (When) i, p50[i], p99[i]);
        if (r >= 0)
                report_readers(report, p50, p99);
        for (When when = 0; when < _WHEN_MAX; when++) {
                g_array_unref(p50[when]);
                g_array_unref(p99[when]);
        }
        return r;
}
