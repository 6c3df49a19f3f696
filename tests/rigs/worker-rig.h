/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The real worker program between two sockets, as the supervisor holds it, on a real database file. The page decoder reads
 * what arrives in a pipe; the worker's reports are checked message by message. No bus. Tests only.
 */
#ifndef SQLIPC_TESTS_RIGS_WORKER_RIG_H
#define SQLIPC_TESTS_RIGS_WORKER_RIG_H

#include <glib.h>
#include <sys/types.h>

#include "daemon/protocol/protocol.h"
#include "dbus-interfaces/sqlipc-errors.h"
#include "dbus-interfaces/wire/page-decoder.h"

#define NOBODY ((uid_t) 65534)
#define LATER UINT64_C(3600000000) /* a limit of time that no test comes to */
#define ENDLESS "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
#define MANY "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x, 'row ' || x FROM c"

typedef struct Rig {
        char *folder, *database; /* the database does not exist until a test makes it */
        uid_t uid;               /* of the worker */
        pid_t pid;
        int job_fd, control_fd;
        uint64_t next_number;
        uint64_t row_size_max, result_rows_max, result_size_max, deadline_in_usec;
        uint32_t page_size;
        bool describe;
        struct {
                bool parked, filling;
                Progress progress;
                unsigned n_progress;
        } seen; /* what passed by while something else was waited for */
} Rig;

/* How a run ended. */
typedef struct Outcome {
        ErrorNumber error; /* of ENDED before STARTED, or of the ERROR frame */
        bool in_stream;    /* the latter */
        uint64_t n_rows;
        int32_t sql_offset, extended_code;
        char message[512];
} Outcome;

/* SETUP with room for everything; a test narrows what it is about. */
extern const Setup wide;

uint64_t now_usec(void);

/* Runs SQL on a file in this process, as a foreign program. */
void exec_sql(const char *path, const char *sql);

/* A folder, a database with the table `t` of two rows in it, and a worker on it. */
void rig_init(Rig *rig, Setup setup);

/* The same in two steps: the folder, for the test to put what it wants there; then the worker, as rig->uid. */
void rig_init_folder(Rig *rig);
void rig_start(Rig *rig, Setup setup);

/* True if a worker can be started as another user, because we are root. Skips the test otherwise. */
bool rig_can_change_uid(void);

/* Tells the worker to go, and sees that it goes in order; or only the latter. */
void rig_stop(Rig *rig);
void rig_gone(Rig *rig);
void rig_done_folder(Rig *rig);
void rig_done(Rig *rig);

/* Until `fd` can be read. */
void wait_for(int fd);

/* CPU time that the worker has used. Until it has used a little more than at `before_usec`: what it was given then, and is
 * endless, is under way. */
uint64_t rig_cpu_usec(const Rig *rig);
void rig_wait_computing(const Rig *rig, uint64_t before_usec);

/* The next report of `number`, which must be of `kind`; PARKED, FILLING and PROGRESS pass by into rig->seen unless asked
 * for. */
ReceivedMessage next_report(Rig *rig, uint64_t number, MessageKind kind);
void expect_number(Rig *rig, uint64_t number, MessageKind kind);
void expect_started(Rig *rig, uint64_t number);

/* ENDED and, where ENDED was not drained, DRAINED behind it. */
void expect_ended(Rig *rig, uint64_t number, ErrorNumber error);

/* Sends PREPARE without waiting. False: the job socket is full. */
bool send_prepare(Rig *rig, const char *sql, uint64_t *ret_number);

/* Sends a RUN without parameters, with `write_fd` (borrowed) as its pipe; returns its number. */
uint64_t send_run_into(Rig *rig, const char *sql, int write_fd);

/* The same with a fresh pipe; returns the read end. */
int send_run(Rig *rig, const char *sql, uint64_t *ret_number);
void send_cancel(Rig *rig, uint64_t number);

/* The next event of a stream. */
int next_event(PageDecoder *d, int fd);

/* Reads a stream to its end. */
Outcome read_stream(int fd, uint64_t number);

/* Runs `sql` to its end, whatever that is. */
Outcome run(Rig *rig, const char *sql);

/* The program has the argument --memory: channels have memory. */
extern bool rig_has_memory;

/* g_test_init(), and the path of the worker. */
void rig_main_init(int *argc, char ***argv);

#endif
