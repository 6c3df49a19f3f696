/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes runs. Supervisor. */
#include "daemon/supervisor/access/pacing.h"
#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/quota.h"
#include "daemon/supervisor/base/sd-autoptr.h"
#include "daemon/supervisor/calls/waiting-call.h"
#include "daemon/supervisor/runs/group-jobs.h"
#include "daemon/supervisor/runs/run-spec.h"
#include "daemon/supervisor/runs/sql-text.h"
#include "daemon/supervisor/workers/group.h"
#include "daemon/supervisor/workers/worker.h"

static uint64_t smaller(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

static void set_limits(Run *run, const RunSpec *spec) {
        const Limits l = quota_limits(run->user, run->database);

        const Run *t = spec->transaction;
        bool is_long = spec->kind == RUN_TRANSACTION || spec->kind == RUN_LOAD;
        uint64_t max = is_long ? l.transaction_timeout_usec : l.run_timeout_usec;

        run->deadline_usec = smaller(run->asked_usec + smaller(spec->timeout_usec, max), t ? t->deadline_usec : UINT64_MAX);
        run->idle_usec = l.transaction_idle_usec;
        run->row_size_max = run->kind == RUN_ROWS ? smaller(l.row_size_max, ROW_READER_ROW_SIZE_MAX) : l.row_size_max;
        run->parameters_size_max = l.row_size_max;
        run->result_rows_max = l.result_rows_max;
        run->result_size_max = l.result_size_max;
}

/* The size of the data that is sent to a worker. */
static size_t job_size(const RunSpec *spec) {
        return (spec->sql ? g_bytes_get_size(spec->sql) : 0) + (spec->parameters ? spec->parameters->row_size : 0) +
               (spec->list ? spec->list->size : 0);
}

static size_t size_to_hold(const RunSpec *spec) {
        /* The SQL of a statement is counted already. */
        return spec->statement ? job_size(spec) - g_bytes_get_size(spec->sql) : job_size(spec);
}

/* The serial of a call, by which its sender may cancel it. */
static uint64_t cookie_of(sd_bus_message *call) {
        uint64_t cookie;

        return call && sd_bus_message_get_cookie(call, &cookie) >= 0 ? cookie : 0;
}

static const char *begin_excerpt(const RunSpec *spec) {
        return spec->is_pin ? "TEMP tables" : spec->writes && !spec->deferred ? "BEGIN IMMEDIATE" : "BEGIN";
}

static char *excerpt(const RunSpec *spec) {
        if (!spec->sql)
                return g_strdup(begin_excerpt(spec));
        if (g_bytes_get_size(spec->sql) == 0 && spec->file && spec->file->fd >= 0)
                return sql_text_excerpt_of_file(spec->file);
        return sql_text_excerpt(spec->sql);
}

/* Takes `group`, `call`, the parameters, the list and the file. */
static Run *make(Session *s, RunSpec *spec, Group *group, sd_bus_message *call) {
        Run *run = g_new(Run, 1);

        *run = (Run) {
                .context = s->context,
                .user = user_ref(s->user),
                .session = s,
                .statement = spec->statement,
                .group = group,
                .database = database_ref(spec->database),
                .pipe = spec->pipe ? pipe_ref(spec->pipe) : NULL,
                .number = spec->kind == RUN_PREPARE ? spec->statement->number : context_next_number(s->context),
                .kind = spec->kind,
                .call = call,
                .cookie = cookie_of(call),
                .on_started = spec->on_started,
                .on_ended = spec->on_ended,
                .writes = (spec->kind == RUN_EXECUTE && !spec->finds_tables) || spec->writes,
                .deferred = spec->deferred,
                .finds_tables = spec->finds_tables,
                .names = spec->names,
                .is_pin = spec->is_pin,
                .transaction = spec->transaction ? spec->transaction->number : 0,
                .pin = spec->pin ? spec->pin->number : 0,
                .counts = session_counts_place(s, spec->database),
                .sql = spec->sql ? g_bytes_ref(spec->sql) : NULL,
                .excerpt = excerpt(spec),
                .parameters = spec->parameters ? *spec->parameters : PARAMETERS_INIT,
                .list = spec->list ? *spec->list : STATEMENT_LIST_INIT,
                .file = spec->file ? *spec->file : ARGUMENT_FILE_INIT,
                .is_batch = spec->is_batch,
                .describe = spec->kind != RUN_FETCH && spec->kind != RUN_EXECUTE && spec->kind != RUN_TRANSACTION &&
                            !spec->answers_at_once,
                .answers_at_once = spec->answers_at_once,
                .page_size = spec->page_size,
                .lock_wait_usec = spec->lock_wait_usec,
                .foreign_keys = spec->foreign_keys,
                .time_zone = g_strdup(spec->time_zone),
                .error_details = spec->error_details,
                .held_size = size_to_hold(spec),
                .asked_usec = clock_usec(),
                .due_usec = UINT64_MAX,
                .end = REFUSAL_INIT,
                .session_link.data = run,
                .group_link.data = run,
                .worker_link.data = run,
        };
        if (spec->parameters)
                *spec->parameters = PARAMETERS_INIT;
        if (spec->list)
                *spec->list = STATEMENT_LIST_INIT;
        if (spec->file)
                *spec->file = ARGUMENT_FILE_INIT;
        if (run->pipe && !run->statement)
                run->pipe->number = run->number;
        set_limits(run, spec);
        return run;
}

/* The run whose worker must get this one: a transaction or pin is in one worker. */
static const Run *place_of(const RunSpec *spec) {
        return spec->transaction ?: spec->pin;
}

static int get_group(const Session *s, const RunSpec *spec, Group **ret) {
        const Run *place = place_of(spec);

        if (!place)
                return group_get(s->user, spec->database, session_may_write(s, spec->database), ret);
        *ret = group_ref(place->group);
        return 0;
}

static bool has_pin(const Worker *w) {
        for (GList *i = w->runs.head; i; i = i->next)
                if (((const Run *) i->data)->is_pin)
                        return true;
        return false;
}

/* True if no worker has taken a pin of the group yet, which one will keep. */
static bool has_waiting_pin(const Group *g) {
        const GQueue *const queues[] = { &g->waiting, &g->sent };

        for (size_t q = 0; g->n_pins > 0 && q < G_N_ELEMENTS(queues); q++)
                for (const GList *i = queues[q]->head; i; i = i->next)
                        if (((const Run *) i->data)->is_pin && ((const Run *) i->data)->transaction == 0)
                                return true;
        return false;
}

static void count_place(PinPlaces *places, const Group *g, const Group *of) {
        places->n_all++;
        places->n_of_user += g->user == of->user;
        places->n_on_database += g->database == of->database;
}

/* Those that pins keep, or will keep soon. `g` says which user and database. */
static PinPlaces count_places(const Group *g) {
        PinPlaces places = {};
        GHashTableIter users;
        void *u;

        for (GList *i = g->context->workers.head; i; i = i->next)
                if (has_pin(i->data))
                        count_place(&places, ((const Worker *) i->data)->group, g);
        g_hash_table_iter_init(&users, g->context->users);
        while (g_hash_table_iter_next(&users, NULL, &u))
                for (GList *i = ((const User *) u)->groups.head; i; i = i->next)
                        if (has_waiting_pin(i->data) && !group_jobs_find_pinned(i->data))
                                count_place(&places, i->data, g);
        return places;
}

/* Those of a group are in one worker, except for those that are made of transactions in others, and those that were begun
 * before a reload of settings. */
static int check_pin(const Session *s, const Group *g, const Run *transaction, Refusal *refusal) {
        bool keeps_no_other = transaction && transaction->worker ? has_pin(transaction->worker)
                                                                 : group_jobs_find_pinned(g) || has_waiting_pin(g);
        PinPlaces places = keeps_no_other ? (PinPlaces) {} : count_places(g);

        return quota_check_pin(s->user, g->database, keeps_no_other ? NULL : &places, refusal);
}

int run_spec_make(Session *s, RunSpec spec, Run **ret, Refusal *refusal) {
        g_autoptr(sd_bus_message) call = NULL;
        g_autoptr(Group) group = NULL;
        int r;

        if (place_of(&spec)) /* a reload has made a new object for the same database */
                spec.database = place_of(&spec)->database;
        r = run_kind_is_execution(spec.kind) ? quota_check_run(s->user, spec.database, refusal) : 0;
        pacing_charge(s->user, job_size(&spec));
        if (r < 0)
                return r;
        if (spec.call) {
                r = waiting_call_new(spec.call, &call);
                if (r < 0)
                        return r;
        }
        r = get_group(s, &spec, &group);
        if (r >= 0 && spec.is_pin)
                r = check_pin(s, group, spec.transaction, refusal);
        else if (r >= 0 && spec.kind == RUN_TRANSACTION)
                r = quota_check_transaction(s->user, transaction_takes_turns(spec.database, spec.writes, spec.deferred),
                                            group->n_writers, refusal);
        if (r < 0)
                return r;
        r = user_hold(s->user, size_to_hold(&spec), refusal);
        if (r < 0)
                return r;
        r = user_hold_file(s->user, spec.file ? spec.file->size : 0, refusal);
        if (r < 0) {
                user_release(s->user, size_to_hold(&spec));
                return r;
        }
        Run *run = make(s, &spec, g_steal_pointer(&group), g_steal_pointer(&call));
        run_count(run, 1);
        g_queue_push_tail_link(&s->runs, &run->session_link);
        g_hash_table_insert(s->context->runs, &run->number, run);
        if (run->statement)
                statement_run_begins(run->statement, run);
        *ret = run;
        return 0;
}
