/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A result as a list that keeps itself current. GLib library.
 *
 * The list is cut into segments, ranges of the order. Without windows there is one, which has all rows. With windows the
 * model counts the rows by reading their keys once, in order, and keeps the first key of every WINDOW rows. A segment gets
 * its rows when the program asks for one of them, and drops them when others were asked for since and the program holds none
 * of them. An unloaded segment costs its first key only.
 *
 *      IDLE ─▶ WHOLE ───────────────────────────────────▶ IDLE     without windows
 *      IDLE ─▶ FIRST ─▶ SCAN ─▶ WINDOW ─▶ ... ─▶ WINDOW ─▶ IDLE    FIRST: while one segment has all; it may be the last step
 *      IDLE ─▶ WINDOW                                              a segment was asked for
 *
 * Each step is one statement. Its rows are read at most ROWS_PER_TURN in a turn of the main loop, by a source of low
 * priority, so that input and drawing come first. A change during the steps leads to another round after them. A row keeps
 * its object as long as the program or the model holds it: `known` finds objects by their keys.
 *
 * The rows of a step may be newer than the counts of the scan before it. That lasts until the change is reported, which
 * leads to another round.
 *
 * The file is long because g-ir-scanner reads the documentation beside the functions. Segments, statements and differences
 * are modules of their own.
 */
#include "client-lib/glib/glib-connection.h"
#include "client-lib/glib/glib-cursor.h"
#include "client-lib/glib/glib-error.h"
#include "client-lib/glib/glib-parameters.h"
#include "client-lib/glib/glib-query.h"
#include "client-lib/glib/glib-row.h"
#include "client-lib/glib/key-bytes.h"
#include "client-lib/glib/list-difference.h"
#include "client-lib/glib/live-segment.h"
#include "client-lib/glib/live-sql.h"

/* Rows of a segment when it is made, and the number at which it is divided. */
#define WINDOW 256u
#define WINDOW_MAX (4 * WINDOW)
#define ROWS_PER_TURN 512u
/* Segments that keep rows although the program holds none of them. */
#define SEGMENTS_LOADED_MAX 8u
/* Pauses after a round: at least as long as the round took, so that a busy writer does not keep the service at work. */
#define PAUSE_MAX_MSEC 1000u
#define RETRY_MSEC 200u

typedef enum Step { STEP_IDLE, STEP_WHOLE, STEP_FIRST, STEP_SCAN, STEP_WINDOW } Step;

/**
 * SqlipcLiveModel:
 *
 * A query as a [iface@Gio.ListModel] that keeps itself current when any process changes the data.
 *
 * The items are [class@Sqlipc.Row]s. A row with the same key stays the same object as long as the program holds it or the
 * model has it loaded: if its values change, the object gets the new ones and notifies [property@Sqlipc.Row:version]. Rows
 * that come, go or move are reported by the least ranges of [signal@Gio.ListModel::items-changed], so that selection and
 * scrolling survive.
 *
 * A model from [ctor@Sqlipc.LiveModel.new] holds the whole result, in the order of its statement. A model from
 * [ctor@Sqlipc.LiveModel.new_windowed] holds only the rows around those that were asked for last, so that a result of any
 * size can be scrolled in constant memory. Its order is that of the given columns and the key. An index on them makes this
 * fast. An item that is not loaded yet is a row without values, which gets them soon: see [property@Sqlipc.Row:loaded].
 *
 * If the service restarts, the model keeps its rows and continues when the service is back.
 */
struct _SqlipcLiveModel {
        GObject parent;
        SqlipcConnection *connection;
        char *database, *sql;
        GVariant *parameters;  /* NULL: none */
        GStrv key, order;
        gboolean windowed;
        GArray *terms;         /* of LiveTerm: order and key */
        GError *error;         /* of the last round; NULL: it succeeded */
        gboolean settled;
        SqlipcWatch *watch;    /* NULL: it has failed, and the next round makes another */
        guint64 sequence;      /* the least change sequence of the statements of this round; 0: unknown */
        bool sure;             /* the watch was there before a round, so no change is missed */

        Columns *columns;      /* NULL: no run has succeeded yet */
        GArray *key_columns;   /* of guint; empty: all columns are the key */
        GArray *term_columns;
        GPtrArray *segments;   /* at least one */
        GHashTable *known;     /* KeyBytes of a row → the row, which is not referenced */
        guint n_items;
        guint stamp;           /* of the last comparison of lists */
        guint64 use;           /* counts what was asked for */

        Step step;
        bool again;            /* something changed since the round began */
        guint round;           /* the number of this round; an answer of another is dropped */
        gint64 round_began;
        GCancellable *cancellable; /* of the statement of this step */
        SqlipcCursor *cursor;
        GSource *turn;         /* the next turn of this step */
        GSource *pause;        /* the next round */
        bool grows;            /* the first round: rows are shown as they come */
        GPtrArray *fresh;      /* rows of this step; references */
        GHashTable *copies;    /* how often a key came in this round: without a key */
        Segment *segment;      /* of this step */
        SegmentScan *scan;
        KeyBuffer buffer;
};

enum { PROPERTY_0, PROPERTY_SETTLED, PROPERTY_ERROR, PROPERTY_ITEM_TYPE, PROPERTY_N_ITEMS, N_PROPERTIES };

static GParamSpec *properties[N_PROPERTIES];

static void list_model_init(GListModelInterface *iface);
static void begin_round(SqlipcLiveModel *self);
static void next_step(SqlipcLiveModel *self);

G_DEFINE_FINAL_TYPE_WITH_CODE(SqlipcLiveModel, sqlipc_glib_live_model, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(G_TYPE_LIST_MODEL, list_model_init))

/* ---- Rows and their keys ------------------------------------------------------------------------------------------ */

/* The row is being freed. */
static void on_row_gone(gpointer data, GObject *row) {
        SqlipcLiveModel *self = data;

        (void) g_hash_table_remove(self->known, row_identity((SqlipcRow *) (void *) row)->key);
}

static void know_row(SqlipcLiveModel *self, SqlipcRow *row, const KeyBytes *key) {
        RowIdentity *identity = row_identity(row);

        identity->key = key_bytes_copy(key);
        (void) g_hash_table_insert(self->known, identity->key, row);
        g_object_weak_ref(G_OBJECT(row), on_row_gone, self);
}

/* How many rows with this key came in this round before. Only if all columns are the key, which rows may have in common. */
static guint count_copy(SqlipcLiveModel *self, const KeyBytes *key) {
        gpointer count = NULL;

        if (!self->copies)
                self->copies = g_hash_table_new_full(key_bytes_hash, key_bytes_equal, g_free, NULL);
        (void) g_hash_table_lookup_extended(self->copies, key, NULL, &count);
        (void) g_hash_table_insert(self->copies, key_bytes_copy(key), GUINT_TO_POINTER(GPOINTER_TO_UINT(count) + 1));
        return GPOINTER_TO_UINT(count);
}

static const KeyBytes *make_key(SqlipcLiveModel *self, const sqlipc_value *values, guint number) {
        const guint *columns = self->key_columns->len > 0 ? &g_array_index(self->key_columns, guint, 0) : NULL;

        return key_bytes_make(&self->buffer, values, columns, columns ? self->key_columns->len : self->columns->n, number);
}

/* The object of a row of this step; a reference. `spare`: a row that is not loaded yet and may become this one; may be
 * NULL. */
static SqlipcRow *take_row(SqlipcLiveModel *self, const sqlipc_value *values, SqlipcRow *spare) {
        const KeyBytes *key = make_key(self, values, 0);
        SqlipcRow *row;
        guint number = 0;

        if (self->key_columns->len == 0) {
                number = count_copy(self, key);
                if (number > 0)
                        key = make_key(self, values, number);
        }
        row = g_hash_table_lookup(self->known, key);
        /* A key that is not unique: each further row with it is another object. */
        while (row && self->step != STEP_WINDOW && row_identity(row)->run == self->round) {
                key = make_key(self, values, ++number);
                row = g_hash_table_lookup(self->known, key);
        }
        if (row) {
                g_object_ref(row);
        } else {
                row = spare && !row_identity(spare)->key ? g_object_ref(spare) : row_new(NULL, NULL);
                know_row(self, row, key);
        }
        row_identity(row)->run = self->round;
        (void) row_set(row, self->columns, values);
        return row;
}

/* ---- The list ----------------------------------------------------------------------------------------------------- */

static Segment *segment_at(SqlipcLiveModel *self, guint i) { return g_ptr_array_index(self->segments, i); }

static guint segment_index(SqlipcLiveModel *self, const Segment *segment) {
        guint i = 0;

        return g_ptr_array_find(self->segments, segment, &i) ? i : 0;
}

static guint segment_offset(SqlipcLiveModel *self, guint index) {
        guint offset = 0;

        for (guint i = 0; i < index; i++)
                offset += segment_at(self, i)->n;
        return offset;
}

/* The segment of a position, which becomes the position in it. NULL: there is none. */
static Segment *find_segment(SqlipcLiveModel *self, guint *position) {
        for (guint i = 0; i < self->segments->len; i++) {
                Segment *segment = segment_at(self, i);

                if (*position < segment->n)
                        return segment;
                *position -= segment->n;
        }
        return NULL;
}

static void items_changed(SqlipcLiveModel *self, guint position, guint n_removed, guint n_added) {
        if (n_removed == 0 && n_added == 0)
                return;
        self->n_items += n_added - n_removed;
        g_list_model_items_changed(G_LIST_MODEL(self), position, n_removed, n_added);
        if (n_removed != n_added)
                g_object_notify_by_pspec(G_OBJECT(self), properties[PROPERTY_N_ITEMS]);
}

/* Makes the rows of the segment those of `fresh`, by the least ranges. */
static void reconcile(SqlipcLiveModel *self, Segment *segment, const GPtrArray *fresh) {
        g_autofree guint *matches = g_new(guint, fresh->len + 1);
        g_autoptr(GArray) ranges = NULL;
        const guint offset = segment_offset(self, segment_index(self, segment));

        self->stamp++;
        for (guint i = 0; i < segment->rows->len; i++) {
                RowIdentity *identity = row_identity(g_ptr_array_index(segment->rows, i));

                identity->stamp = self->stamp;
                identity->position = i;
        }
        for (guint i = 0; i < fresh->len; i++) {
                RowIdentity *identity = row_identity(g_ptr_array_index(fresh, i));
                bool matched = identity->stamp == self->stamp;

                matches[i] = matched ? identity->position : LIST_NO_MATCH;
                if (matched)
                        identity->stamp = 0; /* once */
        }
        ranges = list_difference(segment->rows->len, matches, fresh->len);
        for (guint i = 0; i < ranges->len; i++) {
                const ListRange *range = &g_array_index(ranges, ListRange, i);
                /* kept until the list has told that they are gone */
                G_GNUC_UNUSED g_autoptr(GPtrArray) removed = segment_splice(segment, range->position, range->n_removed,
                                                                            fresh, range->after, range->n_added);

                items_changed(self, offset + range->position, range->n_removed, range->n_added);
        }
}

/* ---- Loading and dropping segments -------------------------------------------------------------------------------- */

static guint n_loaded(SqlipcLiveModel *self) {
        guint n = 0;

        for (guint i = 0; i < self->segments->len; i++)
                n += segment_at(self, i)->rows != NULL;
        return n;
}

/* Drops rows that were asked for least recently and that the program does not hold. */
static void drop_segments(SqlipcLiveModel *self) {
        for (guint n = n_loaded(self); n > SEGMENTS_LOADED_MAX; n--) {
                Segment *oldest = NULL;

                for (guint i = 0; i < self->segments->len; i++) {
                        Segment *segment = segment_at(self, i);

                        if (segment->rows && segment != self->segment && (!oldest || segment->use < oldest->use) &&
                            !segment_is_held(segment))
                                oldest = segment;
                }
                if (!oldest)
                        return;
                segment_unload(oldest);
        }
}

static void set_settled(SqlipcLiveModel *self, bool settled) {
        if (self->settled == settled)
                return;
        self->settled = settled;
        g_object_notify_by_pspec(G_OBJECT(self), properties[PROPERTY_SETTLED]);
}

static void want_segment(SqlipcLiveModel *self, Segment *segment) {
        segment_load_empty(segment);
        segment->stale = true;
        drop_segments(self);
        if (self->step == STEP_IDLE)
                next_step(self);
}

/* ---- Turns -------------------------------------------------------------------------------------------------------- */

static void stop(GSource **source) {
        if (*source)
                g_source_destroy(*source);
        g_clear_pointer(source, g_source_unref);
}

static void set_source(SqlipcLiveModel *self, GSource **source, GSource *new, GSourceFunc function) {
        stop(source);
        *source = new;
        g_source_set_priority(new, G_PRIORITY_DEFAULT_IDLE);
        g_source_set_callback(new, function, self, NULL);
        (void) g_source_attach(new, connection_context(self->connection));
}

/* The model that an answer is for. It is not referenced, so that a model ends while a statement runs. */
typedef struct AnswerTo {
        GWeakRef model;
        guint round;
        Step step;
} AnswerTo;

static AnswerTo *call_new(SqlipcLiveModel *self) {
        AnswerTo *call = g_new(AnswerTo, 1);

        g_weak_ref_init(&call->model, self);
        call->round = self->round;
        call->step = self->step;
        return call;
}

/* The model, if it still waits for this answer. */
static SqlipcLiveModel *call_end(AnswerTo *call) {
        SqlipcLiveModel *self = g_weak_ref_get(&call->model);

        if (self && (self->round != call->round || self->step != call->step))
                g_clear_object(&self);
        g_weak_ref_clear(&call->model);
        g_free(call);
        return self;
}

/* ---- Steps -------------------------------------------------------------------------------------------------------- */

static void end_statement(SqlipcLiveModel *self) {
        stop(&self->turn);
        g_cancellable_cancel(self->cancellable);
        g_clear_object(&self->cancellable);
        g_clear_object(&self->cursor);
        g_clear_pointer(&self->fresh, g_ptr_array_unref);
        g_clear_pointer(&self->scan, segment_scan_free);
        self->segment = NULL;
}

static gboolean on_pause_over(gpointer data) {
        g_autoptr(SqlipcLiveModel) self = g_object_ref(data);

        stop(&self->pause);
        if (self->step == STEP_IDLE)
                begin_round(self);
        else
                self->again = true;
        return G_SOURCE_REMOVE;
}

static guint pause_msec(SqlipcLiveModel *self) {
        return (guint) CLAMP((g_get_monotonic_time() - self->round_began) / 1000, 1, PAUSE_MAX_MSEC);
}

static void set_error(SqlipcLiveModel *self, GError *error) {
        bool had = self->error;

        g_clear_error(&self->error);
        self->error = error;
        if (had || error)
                g_object_notify_by_pspec(G_OBJECT(self), properties[PROPERTY_ERROR]);
}

/* The reason may pass by itself: the service was lost, or is busy. */
static bool may_retry(const GError *error) {
        if (error->domain == G_IO_ERROR)
                return error->code == G_IO_ERROR_CONNECTION_CLOSED || error->code == G_IO_ERROR_TIMED_OUT ||
                       error->code == G_IO_ERROR_HOST_UNREACHABLE;
        switch (error->domain == SQLIPC_GLIB_ERROR ? error->code : 0) {
        case SQLIPC_GLIB_ERROR_LIMITS_EXCEEDED:
        case SQLIPC_GLIB_ERROR_BUSY:
        case SQLIPC_GLIB_ERROR_TIMED_OUT:
        case SQLIPC_GLIB_ERROR_READER_TOO_SLOW:
        case SQLIPC_GLIB_ERROR_CANCELLED:
        case SQLIPC_GLIB_ERROR_WORKER_LOST:
        case SQLIPC_GLIB_ERROR_DAEMON_LOST:
        case SQLIPC_GLIB_ERROR_SHUTTING_DOWN:
                return true;
        default:
                return false;
        }
}

/* Ends the round with this error (taken). The list stays as it is. */
static void fail_round(SqlipcLiveModel *self, GError *error) {
        bool again = self->again || may_retry(error);

        end_statement(self);
        self->step = STEP_IDLE;
        if (again)
                set_source(self, &self->pause, g_timeout_source_new(RETRY_MSEC), on_pause_over);
        set_error(self, error);
        set_settled(self, !again);
}

/* A round that began before the watch may have missed a change. */
static void check_watch(SqlipcLiveModel *self) {
        guint64 watched = self->watch ? sqlipc_glib_watch_get_sequence(self->watch) : 0;

        if (self->sure || !self->watch)
                return;
        self->sure = watched > 0 && watched <= self->sequence;
        self->again = self->again || !self->sure;
}

static void end_round(SqlipcLiveModel *self) {
        end_statement(self);
        check_watch(self);
        g_clear_pointer(&self->copies, g_hash_table_unref);
        self->step = STEP_IDLE;
        self->grows = false;
        if (self->again && !self->pause)
                set_source(self, &self->pause, g_timeout_source_new(pause_msec(self)), on_pause_over);
        set_error(self, NULL);
        set_settled(self, !self->pause);
}

/* The position of each name among the columns. */
static GArray *resolve(SqlipcLiveModel *self, const char *const *names, GError **error) {
        g_autoptr(GArray) columns = g_array_new(FALSE, FALSE, sizeof(guint));

        for (gsize i = 0; names && names[i]; i++) {
                guint column = 0;

                while (column < self->columns->n && !g_str_equal(self->columns->names[column], names[i]))
                        column++;
                if (column == self->columns->n) {
                        error_set_invalid(error, "The result has no column \"%s\".", names[i]);
                        return NULL;
                }
                g_array_append_val(columns, column);
        }
        return g_steal_pointer(&columns);
}

static GArray *resolve_terms(SqlipcLiveModel *self, GError **error) {
        g_autoptr(GPtrArray) names = g_ptr_array_new();

        for (guint i = 0; i < self->terms->len; i++)
                g_ptr_array_add(names, g_array_index(self->terms, LiveTerm, i).column);
        g_ptr_array_add(names, NULL);
        return resolve(self, (const char *const *) names->pdata, error);
}

/* Other columns make other rows: none keeps its object. */
static bool use_columns(SqlipcLiveModel *self, Columns *columns, guint n, GError **error) {
        GArray *key_columns, *term_columns;

        bool same = self->columns && self->columns->n == n && self->term_columns;

        for (guint i = 0; same && i < n; i++)
                same = g_str_equal(self->columns->names[i], columns->names[i]);
        if (same)
                return true;
        g_clear_pointer(&self->columns, columns_unref);
        self->columns = columns_new_prefix(columns, n);
        key_columns = resolve(self, (const char *const *) self->key, error);
        term_columns = key_columns ? resolve_terms(self, error) : NULL;
        g_clear_pointer(&self->key_columns, g_array_unref);
        g_clear_pointer(&self->term_columns, g_array_unref);
        self->key_columns = key_columns;
        self->term_columns = term_columns;
        return term_columns;
}

/* The values of the terms in a row; the caller frees the array, whose bytes are the row's. */
static sqlipc_value *term_values(SqlipcLiveModel *self, const sqlipc_value *values) {
        sqlipc_value *terms = g_new(sqlipc_value, self->term_columns->len);

        for (guint i = 0; i < self->term_columns->len; i++)
                terms[i] = values[g_array_index(self->term_columns, guint, i)];
        return terms;
}

/* The key that the segment begins with, from its row. */
static void set_start(SqlipcLiveModel *self, Segment *segment, const sqlipc_value *values) {
        g_autofree sqlipc_value *terms = term_values(self, values);

        g_free(segment->start);
        segment->start = values_copy(terms, self->term_columns->len);
}

/* More rows came than the segment may have: the rest is another one, which the next round counts. */
static void cut_rest(SqlipcLiveModel *self, const sqlipc_value *values) {
        Segment *rest = segment_new();

        set_start(self, rest, values);
        g_ptr_array_insert(self->segments, (int) segment_index(self, self->segment) + 1, rest);
        self->again = true;
}

/* A loaded segment that has become long is divided; its rows stay loaded. */
static void divide(SqlipcLiveModel *self, Segment *segment) {
        guint index = segment_index(self, segment);

        while (segment->rows->len > WINDOW_MAX) {
                Segment *rest = segment_divide(segment, 2 * WINDOW);

                set_start(self, rest, row_values(g_ptr_array_index(rest->rows, 0)));
                g_ptr_array_insert(self->segments, (int) ++index, rest);
                segment = rest;
        }
}

/* Takes one row. False: the step needs no more. */
static bool take(SqlipcLiveModel *self, const sqlipc_value *values, guint n_columns) {
        SqlipcRow *spare = NULL;

        switch (self->step) {
        case STEP_SCAN:
                segment_scan_row(self->scan, values);
                return true;
        case STEP_FIRST:
        case STEP_WINDOW:
                /* The column after the row's own: it is past the end of the segment. */
                if (n_columns > self->columns->n && values[self->columns->n].as.integer != 0)
                        return false;
                if (self->step == STEP_WINDOW && self->fresh->len == 2 * WINDOW_MAX) {
                        cut_rest(self, values);
                        return false;
                }
                if (self->step == STEP_WINDOW && self->fresh->len < self->segment->rows->len)
                        spare = g_ptr_array_index(self->segment->rows, self->fresh->len);
                break;
        case STEP_WHOLE:
        case STEP_IDLE:
                break;
        }
        g_ptr_array_add(self->fresh, take_row(self, values, spare));
        return true;
}

static void apply_scan(SqlipcLiveModel *self);

/* The step has all its rows. */
static void end_step(SqlipcLiveModel *self) {
        g_autoptr(GPtrArray) fresh = g_steal_pointer(&self->fresh);
        Segment *segment = self->segment;
        Step step = self->step;

        if (self->cursor) {
                self->sequence = MIN(self->sequence, sqlipc_glib_cursor_get_sequence(self->cursor));
                sqlipc_glib_cursor_close(self->cursor);
        }
        g_clear_object(&self->cursor);
        if (step == STEP_SCAN) {
                apply_scan(self);
        } else {
                bool more = step == STEP_FIRST && fresh->len > WINDOW_MAX;

                if (more)
                        g_ptr_array_set_size(fresh, (int) WINDOW);
                segment->stale = false;
                reconcile(self, segment, fresh);
                if (step == STEP_WINDOW)
                        divide(self, segment);
                if (more) {
                        self->segment = NULL;
                        self->step = STEP_SCAN;
                }
        }
        self->segment = NULL;
        if (self->step != STEP_SCAN || step == STEP_SCAN)
                self->step = STEP_IDLE;
        next_step(self);
}

static void on_rows(GObject *source, GAsyncResult *result, gpointer data);

static gboolean read_on(gpointer data) {
        SqlipcLiveModel *self = data;

        stop(&self->turn);
        sqlipc_glib_cursor_next_rows_async(self->cursor, ROWS_PER_TURN, self->cancellable, on_rows, call_new(self));
        return G_SOURCE_REMOVE;
}

/* Shows the rows that have come. With windows only the first ones: if there are too many for one segment, it keeps these. */
static void grow(SqlipcLiveModel *self) {
        const guint n = self->segment->n;
        const guint n_new = (self->windowed ? MIN(self->fresh->len, WINDOW) : self->fresh->len) - n;

        g_ptr_array_unref(segment_splice(self->segment, n, 0, self->fresh, n, n_new));
        items_changed(self, n, 0, n_new);
}

static void on_rows(GObject *source, GAsyncResult *result, gpointer data) {
        GError *error = NULL;
        g_autoptr(SqlipcRows) rows = sqlipc_glib_cursor_next_rows_finish(SQLIPC_CURSOR(source), result, &error);
        g_autoptr(SqlipcLiveModel) self = call_end(data);
        bool wants_more = rows != NULL;

        if (!self) {
                g_clear_error(&error);
                return;
        }
        if (error) {
                fail_round(self, error);
                return;
        }
        for (guint i = 0; wants_more && i < sqlipc_glib_rows_get_n_rows(rows); i++)
                wants_more = take(self, rows_values(rows, i), sqlipc_glib_rows_get_n_columns(rows));
        if (self->grows && (self->step == STEP_WHOLE || self->step == STEP_FIRST))
                grow(self);
        if (wants_more)
                set_source(self, &self->turn, g_idle_source_new(), read_on);
        else
                end_step(self);
}

static void on_query(GObject *source, GAsyncResult *result, gpointer data) {
        GError *error = NULL;
        g_autoptr(SqlipcCursor) cursor = query_finish(SQLIPC_CONNECTION(source), result, &error);
        g_autoptr(SqlipcLiveModel) self = call_end(data);
        guint n;

        if (!self) {
                g_clear_error(&error);
                return;
        }
        if (!error && self->step != STEP_SCAN) {
                n = sqlipc_glib_cursor_get_n_columns(cursor);
                if (self->segment && self->segment->bounded)
                        n--;
                (void) use_columns(self, cursor_columns(cursor), n, &error);
        }
        if (error) {
                fail_round(self, error);
                return;
        }
        self->cursor = g_steal_pointer(&cursor);
        (void) read_on(self);
}

/* Runs the statement of this step. `more`: values for windows, of sqlipc_parameter; may be NULL. */
static void run(SqlipcLiveModel *self, const char *sql, const GArray *more) {
        g_auto(VariantParameters) parameters = { .values = NULL };
        GError *error = NULL;

        if (!parameters_init(&parameters, self->parameters, &error)) {
                fail_round(self, error);
                return;
        }
        if (more)
                g_array_append_vals(parameters.values, more->data, more->len);
        g_clear_object(&self->cancellable);
        self->cancellable = g_cancellable_new();
        query_start(self->connection, self->database, sql, parameters_values(&parameters), parameters.values->len,
                    self->cancellable, on_query, call_new(self));
}

static void run_window(SqlipcLiveModel *self, Segment *segment, guint limit) {
        g_autoptr(GArray) parameters = g_array_new(FALSE, FALSE, sizeof(sqlipc_parameter));
        guint index = segment_index(self, segment);
        Segment *next = index + 1 < self->segments->len ? segment_at(self, index + 1) : NULL;
        g_autofree char *sql = NULL;

        self->segment = segment;
        self->fresh = g_ptr_array_new_with_free_func(g_object_unref);
        segment->bounded = next != NULL;
        sql = live_sql_window(self->sql, self->terms, segment->start, next ? next->start : NULL, limit, parameters);
        run(self, sql, parameters);
}

static void run_scan(SqlipcLiveModel *self) {
        g_autofree char *sql = live_sql_scan(self->sql, self->terms);

        self->scan = segment_scan_new(self->segments, self->terms->len, 2 * WINDOW, WINDOW_MAX);
        run(self, sql, NULL);
}

/* The segment that was asked for last among those whose rows must be read. */
static Segment *find_stale(SqlipcLiveModel *self) {
        Segment *found = NULL;

        for (guint i = 0; i < self->segments->len; i++) {
                Segment *segment = segment_at(self, i);

                if (segment->rows && segment->stale && (!found || segment->use > found->use))
                        found = segment;
        }
        return found;
}

static void next_step(SqlipcLiveModel *self) {
        Segment *segment;

        if (self->step == STEP_SCAN) {
                run_scan(self);
                return;
        }
        segment = self->windowed ? find_stale(self) : NULL;
        if (!segment || !self->term_columns) {
                end_round(self);
                return;
        }
        set_settled(self, false);
        self->step = STEP_WINDOW;
        run_window(self, segment, 2 * WINDOW_MAX + 2);
}

/* Applies the counts of a scan, from the last group of segments to the first. */
static void apply_scan(SqlipcLiveModel *self) {
        g_autoptr(SegmentScan) scan = g_steal_pointer(&self->scan);
        SegmentGroup group;

        while (segment_scan_pop(scan, &group)) {
                SegmentChange change = segment_group_apply(self->segments, &group, segment_offset(self, group.first),
                                                           2 * WINDOW_MAX);

                items_changed(self, change.position, change.n_removed, change.n_added);
                g_clear_pointer(&change.dropped, g_ptr_array_unref);
        }
        drop_segments(self);
}

static void stop_watch(SqlipcLiveModel *self) {
        if (self->watch) {
                g_signal_handlers_disconnect_by_data(self->watch, self);
                sqlipc_glib_watch_close(self->watch);
        }
        g_clear_object(&self->watch);
        self->sure = false;
}

static void on_changed(SqlipcWatch *watch, gpointer data) {
        (void) watch;
        sqlipc_glib_live_model_refresh(data);
}

/* The database or the rights have changed, perhaps not for ever. */
static void on_watch_failed(SqlipcWatch *watch, const GError *error, gpointer data) {
        SqlipcLiveModel *self = data;

        (void) watch;
        stop_watch(self);
        set_source(self, &self->pause, g_timeout_source_new(PAUSE_MAX_MSEC), on_pause_over);
        set_error(self, g_error_copy(error));
}

static void start_watch(SqlipcLiveModel *self) {
        self->watch = sqlipc_glib_connection_watch_statement(self->connection, self->database, self->sql, NULL);
        if (!self->watch) /* the statements of the round fail with the same error */
                return;
        (void) g_signal_connect(self->watch, "changed", G_CALLBACK(on_changed), self);
        (void) g_signal_connect(self->watch, "failed", G_CALLBACK(on_watch_failed), self);
        sqlipc_glib_watch_start(self->watch);
}

static void begin_round(SqlipcLiveModel *self) {
        self->again = false;
        stop(&self->pause);
        self->grows = !self->columns;
        self->round++;
        self->sequence = G_MAXUINT64;
        if (!self->watch)
                start_watch(self);
        self->round_began = g_get_monotonic_time();
        set_settled(self, false);
        if (!self->windowed) {
                self->step = STEP_WHOLE;
                self->segment = segment_at(self, 0);
                self->segment->bounded = false;
                self->fresh = g_ptr_array_new_with_free_func(g_object_unref);
                run(self, self->sql, NULL);
        } else if (self->segments->len == 1) {
                self->step = STEP_FIRST;
                run_window(self, segment_at(self, 0), WINDOW_MAX + 1);
        } else {
                self->step = STEP_SCAN;
                run_scan(self);
        }
}

/* Gives up the present round, and begins another one with the new settings. */
static void restart(SqlipcLiveModel *self) {
        end_statement(self);
        stop(&self->turn);
        stop(&self->pause);
        g_clear_pointer(&self->copies, g_hash_table_unref);
        self->step = STEP_IDLE;
        if (self->segments->len > 1) { /* they are of another order */
                guint n = self->n_items;
                G_GNUC_UNUSED g_autoptr(GPtrArray) old = g_steal_pointer(&self->segments);

                self->segments = segments_new();
                items_changed(self, 0, n, 0);
        }
        begin_round(self);
}

/* ---- GListModel --------------------------------------------------------------------------------------------------- */

static GType get_item_type(GListModel *model) {
        (void) model;
        return SQLIPC_TYPE_ROW;
}

static guint get_n_items(GListModel *model) { return SQLIPC_LIVE_MODEL(model)->n_items; }

static gpointer get_item(GListModel *model, guint position) {
        SqlipcLiveModel *self = SQLIPC_LIVE_MODEL(model);
        Segment *segment = find_segment(self, &position);
        gpointer row;

        if (!segment)
                return NULL;
        segment->use = ++self->use;
        if (segment->rows)
                return g_object_ref(g_ptr_array_index(segment->rows, position));
        segment_load_empty(segment);
        row = g_object_ref(g_ptr_array_index(segment->rows, position));
        want_segment(self, segment);
        return row;
}

static void list_model_init(GListModelInterface *iface) {
        iface->get_item_type = get_item_type;
        iface->get_n_items = get_n_items;
        iface->get_item = get_item;
}

/* ---- What programs call ------------------------------------------------------------------------------------------- */

static SqlipcLiveModel *model_new(SqlipcConnection *connection, const char *database, const char *sql, GVariant *parameters,
                                  const char *const *key, const char *const *order, bool windowed) {
        SqlipcLiveModel *self = g_object_new(SQLIPC_TYPE_LIVE_MODEL, NULL);

        self->connection = g_object_ref(connection);
        self->database = g_strdup(database);
        self->sql = g_strdup(sql);
        self->parameters = parameters ? g_variant_ref_sink(parameters) : NULL;
        self->key = g_strdupv((char **) key);
        self->order = g_strdupv((char **) order);
        self->windowed = windowed;
        self->terms = live_sql_terms(windowed ? key : NULL, windowed ? order : NULL);
        begin_round(self);
        return self;
}

/**
 * sqlipc_glib_live_model_new: (constructor)
 * @connection: a connection
 * @database: the name of a database
 * @sql: one statement that only reads
 * @parameters: (nullable): see [method@Sqlipc.Connection.query]; consumed if it is floating
 * @key: (nullable) (array zero-terminated=1): the names of the columns that identify a row; %NULL: all columns
 *
 * Creates a model of the whole result, in the order of the statement.
 *
 * Returns: (transfer full): the model, which is empty at first
 */
SqlipcLiveModel *sqlipc_glib_live_model_new(SqlipcConnection *connection, const char *database, const char *sql,
                                            GVariant *parameters, const char *const *key) {
        g_return_val_if_fail(SQLIPC_IS_CONNECTION(connection) && database && sql, NULL);
        return model_new(connection, database, sql, parameters, key, NULL, false);
}

/**
 * sqlipc_glib_live_model_new_windowed: (constructor)
 * @connection: a connection
 * @database: the name of a database
 * @sql: one SELECT; an ORDER BY in it has no effect
 * @parameters: (nullable): see [method@Sqlipc.Connection.query]; consumed if it is floating
 * @key: (array zero-terminated=1): the names of the columns that identify a row
 * @order: (nullable) (array zero-terminated=1): the columns to sort by before the key, each with ` DESC` after its name if
 *   wanted
 *
 * Creates a model that loads the rows which are asked for, and those around them.
 *
 * After each change the service reads the keys of the whole result, in their order, so an index on @order and @key matters
 * for large results.
 *
 * Returns: (transfer full): the model, which is empty at first
 */
SqlipcLiveModel *sqlipc_glib_live_model_new_windowed(SqlipcConnection *connection, const char *database, const char *sql,
                                                     GVariant *parameters, const char *const *key,
                                                     const char *const *order) {
        g_return_val_if_fail(SQLIPC_IS_CONNECTION(connection) && database && sql && key && *key, NULL);
        return model_new(connection, database, sql, parameters, key, order, true);
}

/**
 * sqlipc_glib_live_model_set_query:
 * @self: a model
 * @sql: (nullable): one statement; %NULL: the same as before
 * @parameters: (nullable): its parameters, see [method@Sqlipc.Connection.query]; consumed if it is floating
 *
 * Shows another result, such as that of a search. Rows whose keys are in both results stay the same objects.
 */
void sqlipc_glib_live_model_set_query(SqlipcLiveModel *self, const char *sql, GVariant *parameters) {
        GVariant *old;

        g_return_if_fail(SQLIPC_IS_LIVE_MODEL(self));
        old = self->parameters;
        self->parameters = parameters ? g_variant_ref_sink(parameters) : NULL;
        g_clear_pointer(&old, g_variant_unref);
        if (sql) {
                char *copy = g_strdup(sql);

                g_free(self->sql);
                self->sql = copy;
                stop_watch(self);
        }
        restart(self);
}

/**
 * sqlipc_glib_live_model_set_order:
 * @self: a model with windows
 * @order: (nullable) (array zero-terminated=1): see [ctor@Sqlipc.LiveModel.new_windowed]
 *
 * Sorts by other columns. The service does that.
 */
void sqlipc_glib_live_model_set_order(SqlipcLiveModel *self, const char *const *order) {
        GStrv copy;

        g_return_if_fail(SQLIPC_IS_LIVE_MODEL(self) && self->windowed);
        copy = g_strdupv((char **) order);
        g_strfreev(self->order);
        self->order = copy;
        g_array_unref(self->terms);
        self->terms = live_sql_terms((const char *const *) self->key, (const char *const *) self->order);
        g_clear_pointer(&self->term_columns, g_array_unref);
        restart(self);
}

/**
 * sqlipc_glib_live_model_refresh:
 * @self: a model
 *
 * Reads the result again. Programs need this only if the result depends on something else than tables, such as the time.
 */
void sqlipc_glib_live_model_refresh(SqlipcLiveModel *self) {
        g_return_if_fail(SQLIPC_IS_LIVE_MODEL(self));
        if (self->step == STEP_IDLE && !self->pause)
                begin_round(self);
        else
                self->again = true;
}

/**
 * sqlipc_glib_live_model_is_settled: (get-property settled)
 * @self: a model
 *
 * Returns: whether the list equals the result, as far as the model knows, and all rows that were asked for are loaded
 */
gboolean sqlipc_glib_live_model_is_settled(SqlipcLiveModel *self) {
        g_return_val_if_fail(SQLIPC_IS_LIVE_MODEL(self), FALSE);
        return self->settled;
}

/**
 * sqlipc_glib_live_model_get_error: (get-property error)
 * @self: a model
 *
 * Gets the reason for which the result could not be read. The list then stays as it was. If the reason may pass by itself,
 * the model tries again; in any case it does after the next change.
 *
 * Returns: (nullable) (transfer none): the error; %NULL if the result was read
 */
const GError *sqlipc_glib_live_model_get_error(SqlipcLiveModel *self) {
        g_return_val_if_fail(SQLIPC_IS_LIVE_MODEL(self), NULL);
        return self->error;
}

/**
 * sqlipc_glib_live_model_find:
 * @self: a model
 * @row: a row
 *
 * Finds a row among those that are loaded.
 *
 * Returns: its position; -1 if it is not there
 */
int sqlipc_glib_live_model_find(SqlipcLiveModel *self, SqlipcRow *row) {
        guint offset = 0, position;

        g_return_val_if_fail(SQLIPC_IS_LIVE_MODEL(self) && SQLIPC_IS_ROW(row), -1);
        for (guint i = 0; i < self->segments->len; i++) {
                Segment *segment = segment_at(self, i);

                if (segment->rows && g_ptr_array_find(segment->rows, row, &position))
                        return (int) (offset + position);
                offset += segment->n;
        }
        return -1;
}

/**
 * sqlipc_glib_live_model_dup_column_names:
 * @self: a model
 *
 * Returns: (array zero-terminated=1) (transfer full): the names of the columns; empty before the first rows came
 */
char **sqlipc_glib_live_model_dup_column_names(SqlipcLiveModel *self) {
        g_return_val_if_fail(SQLIPC_IS_LIVE_MODEL(self), NULL);
        return self->columns ? g_strdupv(self->columns->names) : g_new0(char *, 1);
}

/* ---- The class ---------------------------------------------------------------------------------------------------- */

static void get_property(GObject *object, guint id, GValue *value, GParamSpec *pspec) {
        SqlipcLiveModel *self = SQLIPC_LIVE_MODEL(object);

        switch (id) {
        case PROPERTY_SETTLED:
                g_value_set_boolean(value, self->settled);
                return;
        case PROPERTY_ERROR:
                g_value_set_boxed(value, self->error);
                return;
        case PROPERTY_ITEM_TYPE:
                g_value_set_gtype(value, SQLIPC_TYPE_ROW);
                return;
        case PROPERTY_N_ITEMS:
                g_value_set_uint(value, self->n_items);
                return;
        default:
                G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, pspec);
        }
}

static void dispose(GObject *object) {
        SqlipcLiveModel *self = SQLIPC_LIVE_MODEL(object);

        end_statement(self);
        stop(&self->turn);
        stop(&self->pause);
        stop_watch(self);
        G_OBJECT_CLASS(sqlipc_glib_live_model_parent_class)->dispose(object);
}

static void finalize(GObject *object) {
        SqlipcLiveModel *self = SQLIPC_LIVE_MODEL(object);
        GHashTableIter iter;
        gpointer row;

        /* Rows that the program holds outlive the model. */
        g_hash_table_iter_init(&iter, self->known);
        while (g_hash_table_iter_next(&iter, NULL, &row)) {
                g_object_weak_unref(row, on_row_gone, self);
                g_hash_table_iter_remove(&iter);
        }
        g_ptr_array_unref(self->segments);
        g_hash_table_unref(self->known);
        g_clear_pointer(&self->copies, g_hash_table_unref);
        g_clear_pointer(&self->columns, columns_unref);
        g_clear_pointer(&self->key_columns, g_array_unref);
        g_clear_pointer(&self->term_columns, g_array_unref);
        g_clear_pointer(&self->terms, g_array_unref);
        g_clear_pointer(&self->parameters, g_variant_unref);
        g_clear_error(&self->error);
        g_clear_object(&self->connection);
        key_buffer_done(&self->buffer);
        g_strfreev(self->key);
        g_strfreev(self->order);
        g_free(self->database);
        g_free(self->sql);
        G_OBJECT_CLASS(sqlipc_glib_live_model_parent_class)->finalize(object);
}

static void sqlipc_glib_live_model_init(SqlipcLiveModel *self) {
        self->segments = segments_new();
        self->known = g_hash_table_new(key_bytes_hash, key_bytes_equal);
}

static void sqlipc_glib_live_model_class_init(SqlipcLiveModelClass *class) {
        const GParamFlags flags = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS;
        GObjectClass *object_class = G_OBJECT_CLASS(class);

        object_class->get_property = get_property;
        object_class->dispose = dispose;
        object_class->finalize = finalize;

        /**
         * SqlipcLiveModel:settled: (getter is_settled)
         *
         * Whether the list equals the result, as far as the model knows.
         */
        properties[PROPERTY_SETTLED] = g_param_spec_boolean("settled", NULL, NULL, FALSE, flags);
        /**
         * SqlipcLiveModel:error: (getter get_error)
         *
         * The reason for which the result could not be read; %NULL: it was read.
         */
        properties[PROPERTY_ERROR] = g_param_spec_boxed("error", NULL, NULL, G_TYPE_ERROR, flags);
        /**
         * SqlipcLiveModel:item-type:
         *
         * The type of the items, [class@Sqlipc.Row].
         */
        properties[PROPERTY_ITEM_TYPE] = g_param_spec_gtype("item-type", NULL, NULL, G_TYPE_OBJECT, flags);
        /**
         * SqlipcLiveModel:n-items:
         *
         * The number of rows.
         */
        properties[PROPERTY_N_ITEMS] = g_param_spec_uint("n-items", NULL, NULL, 0, G_MAXUINT, 0, flags);
        g_object_class_install_properties(object_class, N_PROPERTIES, properties);
}
