/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See commit-notes.h.
 */
#include "daemon/worker/core/commit-notes.h"

#include <string.h>

#include "daemon/worker/core/change-numbers.h"
#include "daemon/worker/core/report.h"

uint64_t commit_notes_now(const JobContext *context) {
        uint64_t known = change_number(context->setup->change_slot);

        return known > 0 && context->notes.last > known ? context->notes.last : known;
}

/* The next number. The supervisor gives numbers from `known` + CHANGE_STEP on to commits of other programs; if it is late
 * with reading ours, several of them share one, which only causes needless notices. */
static uint64_t next_number(const JobContext *context) {
        uint64_t known = change_number(context->setup->change_slot), now = commit_notes_now(context);

        if (known == 0)
                return 0;
        return now + 1 < known + CHANGE_STEP ? now + 1 : now;
}

/* The state of a server costs a round trip, and only those who watch need it. */
static void read_state(JobContext *context, EngineConnection *connection, FileState *ret) {
        *ret = (FileState) {};
        if (context->notes.watched || !context->engine->state_is_remote)
                context->engine->state(connection, ret);
}

void commit_notes_begin(JobContext *context, EngineConnection *connection) {
        read_state(context, connection, &context->notes.begun);
}

/* A list that is too long for a message means any table. */
static size_t write_names(const EngineWritten *written, char buffer[static TABLES_SIZE_MAX]) {
        size_t size = 0;

        if (written->any)
                return 0;
        for (size_t i = 0; i < written->tables.n; i++) {
                size_t n = strlen(written->tables.names[i]) + 1;

                if (n > TABLES_SIZE_MAX - size)
                        return 0;
                memcpy(buffer + size, written->tables.names[i], n);
                size += n;
        }
        return size;
}

static void report_committed(JobContext *context, const EngineWritten *written, bool answers) {
        CommitNotes *n = &context->notes;
        char names[TABLES_SIZE_MAX];
        int r = report_send(context->control_fd, &(Message) {
                .kind = MESSAGE_COMMITTED,
                .committed = {
                        .sequence = n->last,
                        .answers = answers,
                        .any = n->any,
                        .schema = n->schema,
                        .before = n->before,
                        .after = n->after,
                        .tables = { .data = names, .size = written ? write_names(written, names) : 0 },
                },
        });

        n->any = n->schema = false;
        if (r < 0)
                context->report_error = r;
}

void commit_notes_tell(JobContext *context, bool answers) {
        if (context->notes.any || answers)
                report_committed(context, NULL, answers);
}

void commit_notes_set_watched(JobContext *context, bool watched) {
        context->notes.watched = watched;
}

/* True if nothing was changed. */
static bool is_empty(const CommitNotes *n, const FileState *after) {
        if (after->kind == FILE_STATE_SERVER)
                return file_state_same(&n->begun, after);
        return after->kind != FILE_STATE_UNKNOWN && after->kind == n->begun.kind && after->counter == n->begun.counter;
}

static void note(CommitNotes *n, const FileState *after, bool schema) {
        if (!n->any)
                n->before = n->begun;
        n->after = *after;
        /* another program has committed since: what is in the file now is not known to be ours. Of a server, the engine
         * knows that */
        if (after->kind != n->begun.kind || (after->kind != FILE_STATE_SERVER && after->counter != n->begun.counter + 1))
                n->after = (FileState) {};
        n->any = true;
        n->schema = n->schema || schema;
}

/* Nothing is known about the commit but that it may have happened. */
static void note_unknown(JobContext *context) {
        CommitNotes *n = &context->notes;

        n->last = next_number(context);
        note(n, &(FileState) {}, true);
        if (n->watched)
                report_committed(context, NULL, false);
}

bool commit_notes_commit(JobContext *context, EngineConnection *connection, const EngineWritten *written,
                         uint64_t *ret_sequence, SqlError *error) {
        CommitNotes *n = &context->notes;
        FileState after = {};

        if (!context->engine->commit(connection, error)) {
                if (error->error == ERROR_OUTCOME_UNKNOWN)
                        note_unknown(context);
                return false;
        }
        read_state(context, connection, &after);
        if (!is_empty(n, &after)) {
                n->last = next_number(context);
                note(n, &after, written->schema);
                if (n->watched)
                        report_committed(context, written, false);
        }
        *ret_sequence = commit_notes_now(context);
        return true;
}
