/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any bytes as the file of SQL and parameters of a client: the worker refuses them, or each statement that it would run is
 * whole, lies in the file and is within the limits.
 *
 * The first byte of the input chooses the job.
 *
 * About: daemon/worker/core/supervisor-job.c, dbus-interfaces/wire/call-arguments.c, daemon/protocol/statement-list.c
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/protocol/statement-list.h"
#include "daemon/worker/core/supervisor-job.h"
#include "dbus-interfaces/wire/call-arguments.h"
#include "tests/fuzz/replay.h"

#define SQL_SIZE_MAX 200
#define ROW_SIZE_MAX ((uint64_t) 300)
#define SQL "SELECT ?"

static int file_with(const uint8_t *bytes, size_t size) {
        uint8_t *mapped;
        int fd;

        demand(call_arguments_new(size, &fd, &mapped) == 0);
        memcpy(mapped, bytes, size);
        demand(call_arguments_seal(fd, mapped, size) == 0);
        return fd;
}

static void check_statement(const SupervisorJob *j, const JobSpec *s, bool has_sql) {
        const uint8_t *end = j->arguments + j->arguments_size;

        demand(s->sql_size <= SQL_SIZE_MAX && s->parameters_size <= ROW_SIZE_MAX);
        demand(s->sql[s->sql_size] == 0 && job_parameters_are_valid(s));
        if (has_sql)
                demand(strcmp(s->sql, SQL) == 0);
        else
                demand((const uint8_t *) s->sql >= j->arguments && (const uint8_t *) s->sql + s->sql_size < end);
        if (s->parameters_size > 0)
                demand(s->parameters >= j->arguments && s->parameters + s->parameters_size <= end);
}

static void check_list(const SupervisorJob *j) {
        const JobSpec *spec = j->job.spec;
        const uint8_t *at = spec->statements, *end = at + spec->statements_size;
        JobSpec one = {};
        uint32_t n = 0;

        for (; statement_list_next(&at, end, &one); n++)
                check_statement(j, &one, false);
        demand(at == end && n == spec->n_statements && n > 0 && n <= STATEMENT_LIST_N_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
        const Setup setup = { .sql_size_max = SQL_SIZE_MAX };
        const Engine engine = {};
        JobContext context = { .setup = &setup, .engine = &engine };
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;
        bool is_batch, has_sql;
        SupervisorJob *j;

        if (size <= 1 + CALL_ARGUMENTS_HEAD_SIZE) /* the supervisor refuses it */
                return 0;
        is_batch = bytes[0] & 1;
        has_sql = !is_batch && bytes[0] & 2;
        m.message.kind = is_batch ? MESSAGE_EXECUTE_BATCH : MESSAGE_EXECUTE;
        m.message.job = (JobSpec) { .number = 1, .sql = has_sql ? SQL : "", .sql_size = has_sql ? strlen(SQL) : 0,
                                    .deadline_usec = UINT64_MAX, .in_file = true, .parameters_size_max = ROW_SIZE_MAX };
        m.memory_fd = file_with(bytes + 1, size - 1);
        demand(supervisor_job_new(&context, &m, &j) == 0);
        demand(j->received.memory_fd < 0);
        if (j->job.error.error != ERROR_NONE)
                demand(j->job.error.error == ERROR_INVALID_REQUEST || j->job.error.error == ERROR_LIMITS_EXCEEDED);
        else if (is_batch)
                check_list(j);
        else
                check_statement(j, j->job.spec, has_sql);
        (void) supervisor_job_free(j);
        return 0;
}
