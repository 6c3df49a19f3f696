/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writers: processes (crowd.h) that insert one row after the other, each in a transaction of its own, for a fixed time.
 * There is a kind of writer for each way that is compared. All insert the same row, into a table with one index.
 *
 * The indexed value of a row is different in each row of a run, and in no order. After a run it shows that each row that was
 * acknowledged exists, and none twice.
 */
#ifndef SQLIPC_TOOLS_BENCH_WORKLOADS_WRITE_H
#define SQLIPC_TOOLS_BENCH_WORKLOADS_WRITE_H

#include <glib.h>

#include "tools/bench/core/bench-options.h"
#include "tools/bench/core/database-server.h"

/* The values of a row, beside its key and its number. */
#define WRITE_VALUES "0.5, 'abcdefghijklmnopqrstuvwxyzabcdef'"

/* The table of write_server(), by database_server_table(): the journal of SQLite makes no difference to servers. */
#define WRITE_SERVER_TABLE "write"

/* The table that is written, and where. It must outlive the writers. */
typedef struct WriteTarget {
        const BenchOptions *options;
        const char *table;           /* in SQLite; the name of the dataset, too */
        const char *file;            /* for write_direct() */
        DatabaseServerChoice server; /* for write_server() */
} WriteTarget;

typedef struct WriteCount {
        int64_t n_rows, n_different;
} WriteCount;

/* How a kind of writer works. Except write(), functions report errors on stderr and return a negative value. */
typedef struct WriterKind {
        const char *name;
        /** Empties the table; creates it if necessary. */
        int (*clear)(const WriteTarget *target);
        /** Counts all rows and the different numbers in them. */
        int (*count)(const WriteTarget *target, WriteCount *ret);
        /** Connects and prepares, in the writer's process. */
        int (*open)(const WriteTarget *target, void **ret_writer);
        /** Inserts a row and waits until it is durable. If it fails, stores a message that is valid until the next call. */
        int (*write)(void *writer, int64_t number, const char **ret_message);
        void (*close)(void *writer);
        const WriteTarget *target;
        /* A process that counts, with its children, as the server. 0: none. */
        pid_t server;
} WriterKind;

/* Each function fills all members but `server`. */
WriterKind write_direct(const WriteTarget *target);  /* each process opens the file; busy timeout 10 s, synchronous FULL */
WriterKind write_library(const WriteTarget *target); /* libsqlipc, a prepared statement on a channel */
WriterKind write_server(const WriteTarget *target);  /* a database server, a prepared statement on a connection */

/** Returns the reason why the service does not let this user write the table, as text that the caller frees; NULL: none. */
char *write_library_obstacle(const WriteTarget *target);
/** Returns the server's settings that decide when a commit is durable, as text that the caller frees; NULL: not known. */
char *write_server_durability(const WriteTarget *target);
/** Drops the table of write_server(). */
void write_server_drop(const WriteTarget *target);
/** Removes the file of write_direct(). */
void write_direct_remove(const WriteTarget *target);

typedef struct WriteFindings {
        double per_second;    /* rows that were acknowledged in time */
        GArray *usec;         /* of double: the time of each write, also of those that failed */
        double client_cpu_usec, server_cpu_usec; /* for each row that was acknowledged */
        uint64_t n_failed;
        char *failure;        /* the message of one of them; NULL: none */
} WriteFindings;

/** Runs `n` writers for `usec`. Each writes a few rows before the clock starts. The caller frees the findings with
 * write_findings_done(). -EBADMSG: a row that was acknowledged is missing, or one exists twice. */
int write_run(const WriterKind *kind, unsigned n, double usec, WriteFindings *ret);
/** The same, and calls meanwhile() once, in this process, when the clock has started. If it fails, the run fails. */
int write_run_beside(const WriterKind *kind, unsigned n, double usec, int (*meanwhile)(void *userdata), void *userdata,
                     WriteFindings *ret);
void write_findings_done(WriteFindings *findings);

#endif
