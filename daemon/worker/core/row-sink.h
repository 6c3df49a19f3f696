/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. An engine puts rows into a sink: the page of a job, with the rules that say when the page is sent. The
 * functions here are inline, because fill() of an engine calls them for each row:
 *
 *      while there is a row: row_sink_begin(), page_encoder_add_...() for each value, row_sink_end(); step
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_ROW_SINK_H
#define SQLIPC_DAEMON_WORKER_CORE_ROW_SINK_H

#include "daemon/worker/core/engine.h"
#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/core/page-writer.h"
#include "dbus-interfaces/wire/page-encoder.h"

#define ROW_SINK_WAIT_USEC (2 * USEC_PER_MSEC)    /* a row waits at most so long for its page to fill */
#define ROW_SINK_FIRST_SIZE ((size_t) 16 * 1024)  /* of the first page: the reader has rows while the next page fills */

struct RowSink {
        PageEncoder *encoder;     /* borrowed */
        const PageWriter *writer; /* borrowed: sends the page; EngineProgress may begin that in the middle of a step */
        uint64_t start_bytes;     /* of the writer's bytes, those before this job */
        uint64_t row_size_max, n_rows_max;
        bool may_await;           /* ENGINE_AWAITS is allowed */

        unsigned n_columns;       /* 0: before the first step */
        bool row_waits;           /* the engine is at a row that is not in a page yet */
        size_t row_size;          /* of the last row that was encoded */
        uint64_t n_rows;          /* that were encoded */
        uint64_t first_row_usec;  /* since when the page has a row, by the coarse clock */
};

/* Begins to encode the row that waits. ENGINE_ROW: its values can be added; otherwise the result of fill(). */
static inline EngineResult row_sink_begin(RowSink *sink) {
        if (sink->n_rows >= sink->n_rows_max)
                return ENGINE_TOO_MANY_ROWS;
        if (!page_writer_is_idle(sink->writer)) /* the page must not change until it is sent */
                return ENGINE_PAGE_FULL;
        return page_encoder_begin_row(sink->encoder, sink->n_columns) ? ENGINE_ROW : ENGINE_NO_ROOM;
}

/* Counts the row that was put into a page. True: the page must be sent now. */
static inline bool row_sink_count(RowSink *sink) {
        PageEncoder *e = sink->encoder;

        sink->row_waits = false;
        sink->n_rows++;
        if (e->n_rows == 1 && e->frame == 0)
                sink->first_row_usec = now_coarse_usec();
        return (sink->writer->total <= sink->start_bytes && e->fill >= ROW_SINK_FIRST_SIZE) ||
               now_coarse_usec() - sink->first_row_usec >= ROW_SINK_WAIT_USEC;
}

/* Completes the row; all values were added. ENGINE_ROW: go on with the next step; otherwise the result of fill(). */
static inline EngineResult row_sink_end(RowSink *sink) {
        PageEncoder *e = sink->encoder;

        sink->row_size = e->values.next ? (size_t) (e->values.next - e->row) : 0;
        if (sink->row_size > sink->row_size_max) {
                page_encoder_abort_row(e);
                return ENGINE_ROW_TOO_LARGE;
        }
        if (!page_encoder_end_row(e))
                return ENGINE_NO_ROOM;
        return row_sink_count(sink) ? ENGINE_PAGE_FULL : ENGINE_ROW;
}

#endif
