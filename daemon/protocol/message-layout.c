/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The tables of fields, and the rules of whole messages (message-layout.h). */
#include "daemon/protocol/message-layout.h"

#include <stddef.h>
#include <string.h>

#include "dbus-interfaces/sqlipc-errors.h"
#include "dbus-interfaces/wire/time-zone.h"

/* The kind of a member follows from its type, so that a table cannot disagree with the struct. */
#define KIND_OF(member)                                                                                              \
        _Generic(((Message *) NULL)->member, uint32_t: FIELD_U32, int32_t: FIELD_U32, uint64_t: FIELD_U64,           \
                 int64_t: FIELD_U64, bool: FIELD_BOOL, const char *: FIELD_STRING, Bytes: FIELD_BYTES)
#define SIZE_OF(member)                                                                                              \
        _Generic(((Message *) NULL)->member, Bytes: offsetof(Message, member) + offsetof(Bytes, size), default: 0)
/* Other members of Field may follow. */
#define FIELD(member, ...)                                                                                           \
        { .kind = KIND_OF(member), .offset = offsetof(Message, member), .size_offset = SIZE_OF(member), __VA_ARGS__ }
#define FIELD_SPAN(data, size, ...)                                                                                  \
        { .kind = FIELD_BYTES, .offset = offsetof(Message, data), .size_offset = offsetof(Message, size), __VA_ARGS__ }
#define FIELD_ARRAY(list, n, times)                                                                                  \
        { .kind = FIELD_LIST, .offset = offsetof(Message, list), .size_offset = offsetof(Message, n), .factor = (times) }

/* ---- Fields ------------------------------------------------------------------------------------------------------- */

static const Field nothing[] = { {} };
static const Field number[] = { FIELD(number), {} };

static const Field setup[] = {
        FIELD(setup.path, .required = true),
        FIELD(setup.engine),
        FIELD(setup.connection),
        FIELD(setup.replica_connection),
        FIELD(setup.password),
        FIELD(setup.connections_max),
        FIELD(setup.consistency),
        FIELD(setup.immutable),
        FIELD(setup.change_slot),
        FIELD(setup.observes),
        FIELD(setup.heap_size_max),
        FIELD(setup.temp_size_max),
        FIELD(setup.park_usec),
        FIELD(setup.park_rollback_usec),
        FIELD(setup.wal_size_max),
        FIELD(setup.busy_usec),
        FIELD(setup.drain_usec),
        FIELD(setup.sql_size_max),
        FIELD(setup.expression_depth_max),
        FIELD(setup.compound_selects_max),
        FIELD(setup.vdbe_ops_max),
        FIELD(setup.variables_max),
        FIELD(setup.security_barrier),
        FIELD(setup.n_exposed),
        FIELD_ARRAY(setup.exposed, setup.n_exposed, 1),
        FIELD(setup.sync_full),
        FIELD(setup.foreign_keys),
        FIELD(setup.writes),
        FIELD(setup.write_schema),
        FIELD(setup.database_size_max),
        FIELD(setup.n_write_tables),
        FIELD_ARRAY(setup.write_tables, setup.n_write_tables, 1),
        {},
};

/* message_withdraw_job() reads the number at its place. */
static const Field job[] = {
        FIELD(job.number),
        FIELD_SPAN(job.sql, job.sql_size, .required = true),
        FIELD(job.names),
        FIELD(job.transaction),
        FIELD(job.pin),
        FIELD(job.counts.slot, .max = COUNTS_N_SLOTS - 1),
        FIELD(job.counts.client),
        FIELD(job.foreign_keys, .max = FOREIGN_KEYS_MAX_ - 1),
        FIELD(job.time_zone, .max = TIME_ZONE_SIZE_MAX),
        FIELD(job.lock_wait_usec),
        FIELD(job.describe),
        FIELD(job.page_size),
        FIELD(job.deadline_usec),
        FIELD(job.idle_usec),
        FIELD(job.row_size_max),
        FIELD(job.result_rows_max),
        FIELD(job.result_size_max),
        FIELD(job.n_positional, .max = SQLIPC_N_COLUMNS_MAX),
        FIELD(job.n_named, .max = SQLIPC_N_COLUMNS_MAX),
        FIELD_SPAN(job.parameters, job.parameters_size),
        FIELD(job.in_file),
        FIELD(job.parameters_size_max),
        {},
};

/* The numbers of these two have the same place as that of a job. */
static const Field job_batch[] = {
        FIELD(job.number),
        FIELD(job.transaction),
        FIELD(job.pin),
        FIELD(job.counts.slot, .max = COUNTS_N_SLOTS - 1),
        FIELD(job.counts.client),
        FIELD(job.foreign_keys, .max = FOREIGN_KEYS_MAX_ - 1),
        FIELD(job.time_zone, .max = TIME_ZONE_SIZE_MAX),
        FIELD(job.lock_wait_usec),
        FIELD(job.deadline_usec),
        FIELD(job.n_statements, .max = STATEMENT_LIST_N_MAX),
        FIELD_SPAN(job.statements, job.statements_size, .required = true, .max = STATEMENT_LIST_SIZE_MAX),
        FIELD(job.in_file),
        FIELD(job.parameters_size_max),
        {},
};

static const Field begin[] = {
        FIELD(begin.number),
        FIELD(begin.writes),
        FIELD(begin.deferred),
        FIELD(begin.deadline_usec),
        FIELD(begin.idle_usec),
        FIELD(begin.lock_wait_usec),
        FIELD(begin.foreign_keys, .max = FOREIGN_KEYS_MAX_ - 1),
        FIELD(begin.is_pin),
        FIELD(begin.transaction),
        FIELD(begin.pin),
        {},
};

static const Field cancel[] = {
        FIELD(cancel.number),
        FIELD(cancel.error, .max = ERROR_NUMBER_MAX - 1),
        FIELD(cancel.message, .required = true),
        {},
};

static const Field started[] = {
        FIELD(started.number),
        FIELD(started.described),
        FIELD(started.read_only),
        FIELD(started.n_columns, .max = SQLIPC_N_COLUMNS_MAX),
        FIELD_ARRAY(started.columns, started.n_columns, 2),
        FIELD(started.n_parameters, .max = PARAMETERS_MAX),
        FIELD_ARRAY(started.parameters, started.n_parameters, 1),
        {},
};

static const Field parked[] = { FIELD(parked.number), FIELD(parked.parked), {} };

static const Field ended[] = {
        FIELD(ended.number),
        FIELD(ended.failure.error, .max = ERROR_NUMBER_MAX - 1),
        FIELD(ended.failure.extended_code),
        FIELD(ended.failure.sql_offset),
        FIELD(ended.failure.message, .max = SQLIPC_MESSAGE_SIZE_MAX),
        FIELD(ended.n_rows),
        FIELD(ended.n_bytes),
        FIELD(ended.usec),
        FIELD(ended.drained),
        FIELD(ended.wrote),
        FIELD(ended.n_changes),
        FIELD(ended.last_rowid),
        FIELD(ended.sequence),
        FIELD(ended.foreign_keys, .max = FOREIGN_KEYS_MAX_ - 1),
        FIELD(ended.changes, .max = STATEMENT_LIST_N_MAX * sizeof(int64_t)),
        FIELD(ended.tables, .max = TABLES_SIZE_MAX),
        FIELD(ended.names, .max = TABLES_SIZE_MAX),
        {},
};

#define STATE_FIELDS(state)                                                                                          \
        FIELD(state.kind, .max = FILE_STATE_SERVER), FIELD(state.counter), FIELD(state.epoch), FIELD(state.size),    \
                FIELD(state.content)

static const Field committed[] = {
        FIELD(committed.sequence),
        FIELD(committed.answers),
        FIELD(committed.any),
        FIELD(committed.schema),
        STATE_FIELDS(committed.before),
        STATE_FIELDS(committed.after),
        FIELD(committed.tables, .max = TABLES_SIZE_MAX),
        {},
};

static const Field observed[] = {
        STATE_FIELDS(observed.state),
        FIELD(observed.busy),
        FIELD(observed.polls),
        FIELD(observed.device),
        FIELD(observed.inode),
        FIELD(observed.schema),
        FIELD(observed.name, .required = true, .max = 255),
        {},
};

static const Field attach_wanted[] = {
        FIELD(attach.number),
        FIELD(attach.name, .required = true, .max = ATTACH_NAME_SIZE_MAX),
        {},
};

static const Field attach[] = {
        FIELD(attach.number),
        FIELD(attach.name, .required = true, .max = ATTACH_NAME_SIZE_MAX),
        FIELD(attach.path),
        FIELD(attach.immutable),
        FIELD(attach.error, .max = ERROR_NUMBER_MAX - 1),
        FIELD(attach.message),
        {},
};

static const Field committing[] = { FIELD(committing.numbers, .max = COMMITTING_SIZE_MAX), {} };
static const Field drained[] = { FIELD(drained.number), FIELD(drained.unread, .max = UNREAD_SIZE_MAX), {} };
static const Field progress[] = { FIELD(progress.number), FIELD(progress.n_rows), FIELD(progress.n_bytes), {} };

static const Field channel[] = {
        FIELD(channel.number),
        FIELD(channel.client),
        FIELD(channel.page_size),
        FIELD(channel.statements_max),
        FIELD(channel.run_timeout_usec),
        FIELD(channel.prepare_timeout_usec),
        FIELD(channel.row_size_max),
        FIELD(channel.result_rows_max),
        FIELD(channel.result_size_max),
        FIELD(channel.reads),
        FIELD(channel.path),
        FIELD(channel.immutable),
        FIELD(channel.change_slot),
        FIELD(channel.counts.slot, .max = COUNTS_N_SLOTS - 1),
        FIELD(channel.counts.client),
        FIELD(channel.state),
        FIELD(channel.memory),
        {},
};

#define CHANNEL_PROGRESS_FIELDS(progress)                                                                            \
        FIELD(progress.number), FIELD(progress.n_runs), FIELD(progress.n_rows), FIELD(progress.n_bytes),             \
                FIELD(progress.running), FIELD(progress.parked), FIELD(progress.draining), FIELD(progress.usec),     \
                FIELD(progress.n_statements), FIELD(progress.sql)

static const Field channel_progress[] = { CHANNEL_PROGRESS_FIELDS(channel_progress), {} };
static const Field channel_close[] = { FIELD(channel_close.number), FIELD(channel_close.drain), {} };
static const Field channel_end[] = {
        CHANNEL_PROGRESS_FIELDS(channel_end.progress),
        FIELD(channel_end.waiting),
        FIELD(channel_end.reads),
        FIELD(channel_end.state, .max = CHANNEL_STATE_SIZE_MAX),
        FIELD(channel_end.unread, .max = UNREAD_SIZE_MAX),
        {},
};

/* ---- Rules of whole messages -------------------------------------------------------------------------------------- */

static bool page_size_is_valid(uint32_t size) {
        return size >= SQLIPC_PAGE_SIZE_MIN && size <= SQLIPC_PAGE_SIZE_MAX && (size & (size - 1)) == 0;
}

static bool are_names(const Bytes *names, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (!names[i].data || strlen(names[i].data) != names[i].size)
                        return false;
        return true;
}

static bool setup_is_valid(const Message *m) {
        return m->setup.engine < ENGINE_KIND_MAX_ && m->setup.consistency < CONSISTENCY_MAX_ &&
               are_names(m->setup.exposed, m->setup.n_exposed) && are_names(m->setup.write_tables, m->setup.n_write_tables);
}

static bool prepare_is_valid(const Message *m) {
        return job_parameters_are_valid(&m->job);
}

static bool run_is_valid(const Message *m) {
        return page_size_is_valid(m->job.page_size) && job_parameters_are_valid(&m->job);
}

static bool batch_is_valid(const Message *m) {
        return m->job.in_file ? m->job.n_statements == 0 && m->job.statements_size == 0
                              : job_statements_are_valid(&m->job) && m->job.statements_size <= STATEMENT_LIST_SIZE_MAX;
}

static bool cancel_is_valid(const Message *m) {
        return m->cancel.error != ERROR_NONE;
}

static bool started_is_valid(const Message *m) {
        for (size_t i = 0; i < m->started.n_columns; i++)
                if (!m->started.columns[2 * i].data)
                        return false;
        return started_size(&m->started) <= SQLIPC_COLUMNS_SIZE_MAX;
}

static bool is_list_of_names(Bytes list) {
        return list.size == 0 || list.data[list.size - 1] == 0;
}

static bool ended_is_valid(const Message *m) {
        return (m->ended.failure.error == ERROR_NONE || m->ended.failure.message) &&
               m->ended.changes.size % sizeof(int64_t) == 0 && is_list_of_names(m->ended.tables) &&
               is_list_of_names(m->ended.names);
}

static bool tables_is_valid(const Message *m) {
        return job_parameters_are_valid(&m->job) &&
               (!m->job.names || (m->job.sql_size > 0 && is_list_of_names((Bytes) { m->job.sql, m->job.sql_size })));
}

static bool committed_is_valid(const Message *m) {
        return is_list_of_names(m->committed.tables);
}

static bool committing_is_valid(const Message *m) {
        return m->committing.numbers.size > 0 && m->committing.numbers.size % sizeof(uint64_t) == 0;
}

static bool attach_is_valid(const Message *m) {
        return !m->attach.path == (m->attach.error != ERROR_NONE) && !m->attach.path == (m->attach.message != NULL);
}

static bool channel_is_valid(const Message *m) {
        return page_size_is_valid(m->channel.page_size);
}

/* ---- Messages ----------------------------------------------------------------------------------------------------- */

static const Layout layouts[] = {
        [MESSAGE_SETUP] = { setup, MESSAGE_MEMFD_SIZE_MAX, setup_is_valid },
        [MESSAGE_PREPARE] = { job, MESSAGE_JOB_SIZE_MAX, prepare_is_valid },
        [MESSAGE_RUN] = { job, MESSAGE_JOB_SIZE_MAX, run_is_valid },
        [MESSAGE_CANCEL] = { cancel, MESSAGE_SIZE_MAX, cancel_is_valid },
        [MESSAGE_EXIT] = { nothing, MESSAGE_SIZE_MAX },
        [MESSAGE_TAKEN] = { number, MESSAGE_SIZE_MAX },
        [MESSAGE_STARTED] = { started, SQLIPC_COLUMNS_SIZE_MAX + 5 * PARAMETERS_MAX + 64, started_is_valid },
        [MESSAGE_PARKED] = { parked, MESSAGE_SIZE_MAX },
        [MESSAGE_FILLING] = { number, MESSAGE_SIZE_MAX },
        [MESSAGE_ENDED] = { ended, MESSAGE_SIZE_MAX, ended_is_valid },
        [MESSAGE_DRAINED] = { drained, UNREAD_SIZE_MAX + MESSAGE_SIZE_MAX },
        [MESSAGE_PROGRESS] = { progress, MESSAGE_SIZE_MAX },
        [MESSAGE_CHANNEL] = { channel, CHANNEL_STATE_SIZE_MAX + MESSAGE_SIZE_MAX, channel_is_valid },
        [MESSAGE_CHANNEL_CLOSE] = { channel_close, MESSAGE_SIZE_MAX },
        [MESSAGE_CHANNEL_PROGRESS] = { channel_progress, MESSAGE_SIZE_MAX },
        [MESSAGE_CHANNEL_RESTED] = { channel_end, CHANNEL_STATE_SIZE_MAX + UNREAD_SIZE_MAX + MESSAGE_SIZE_MAX },
        [MESSAGE_CHANNEL_CLOSED] = { channel_end, UNREAD_SIZE_MAX + MESSAGE_SIZE_MAX },
        [MESSAGE_PING] = { number, MESSAGE_SIZE_MAX },
        [MESSAGE_PONG] = { number, MESSAGE_SIZE_MAX },
        [MESSAGE_RETIRE] = { nothing, MESSAGE_SIZE_MAX },
        [MESSAGE_GIVE_WAY] = { number, MESSAGE_SIZE_MAX },
        [MESSAGE_STAY] = { nothing, MESSAGE_SIZE_MAX },
        [MESSAGE_EXECUTE] = { job, MESSAGE_JOB_SIZE_MAX, prepare_is_valid },
        [MESSAGE_LEASE_WANTED] = { nothing, MESSAGE_SIZE_MAX },
        [MESSAGE_LEASE] = { number, MESSAGE_SIZE_MAX },
        [MESSAGE_LEASE_ASKED] = { nothing, MESSAGE_SIZE_MAX },
        [MESSAGE_LEASE_RETURNED] = { nothing, MESSAGE_SIZE_MAX },
        [MESSAGE_COMMITTING] = { committing, MESSAGE_SIZE_MAX, committing_is_valid },
        [MESSAGE_BEGIN] = { begin, MESSAGE_SIZE_MAX },
        [MESSAGE_COMMIT] = { number, MESSAGE_SIZE_MAX },
        [MESSAGE_LOAD] = { job, MESSAGE_JOB_SIZE_MAX, run_is_valid },
        [MESSAGE_EXECUTE_BATCH] = { job_batch, MESSAGE_MEMFD_SIZE_MAX, batch_is_valid },
        [MESSAGE_TABLES] = { job, MESSAGE_JOB_SIZE_MAX, tables_is_valid },
        [MESSAGE_WATCH] = { number, MESSAGE_SIZE_MAX },
        [MESSAGE_COMMITTED] = { committed, MESSAGE_SIZE_MAX, committed_is_valid },
        [MESSAGE_OBSERVE] = { number, MESSAGE_SIZE_MAX },
        [MESSAGE_OBSERVED] = { observed, MESSAGE_SIZE_MAX },
        [MESSAGE_NOTIFIER] = { number, MESSAGE_SIZE_MAX },
        [MESSAGE_CONNECTION_WANTED] = { nothing, MESSAGE_SIZE_MAX },
        [MESSAGE_CONNECTION] = { nothing, MESSAGE_SIZE_MAX },
        [MESSAGE_CONNECTION_ASKED] = { nothing, MESSAGE_SIZE_MAX },
        [MESSAGE_CONNECTION_RETURNED] = { nothing, MESSAGE_SIZE_MAX },
        [MESSAGE_LEASE_KEPT] = { nothing, MESSAGE_SIZE_MAX },
        [MESSAGE_LEASE_TAKEN] = { nothing, MESSAGE_SIZE_MAX },
        [MESSAGE_TRY_COMMIT] = { number, MESSAGE_SIZE_MAX },
        [MESSAGE_COMMIT_REFUSED] = { ended, MESSAGE_SIZE_MAX, ended_is_valid },
        [MESSAGE_ATTACH_WANTED] = { attach_wanted, MESSAGE_SIZE_MAX },
        [MESSAGE_ATTACH] = { attach, MESSAGE_SIZE_MAX, attach_is_valid },
};

const Layout *message_layout(uint32_t kind) {
        return kind < sizeof layouts / sizeof *layouts && layouts[kind].fields ? &layouts[kind] : NULL;
}
