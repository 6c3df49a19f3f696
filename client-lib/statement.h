/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One compiled SELECT: what the daemon told of it, what is bound, its pipe. Library.
 *
 *      PREPARING --reply--> READY --worker, daemon or bus lost--> LOST --execute--> PREPARING
 *          \--error reply--> FAILED --execute--> PREPARING
 *
 * It is compiled either by the daemon, which then holds a pipe for it (`number`), or on the database's channel
 * (`channel_number`); each execution may change sides (transport.h). What was compiled before is compiled again on a channel
 * in one go with the run: READY and LOST are the same there. With rows in replies (rows.h) each run compiles it itself.
 *
 * A statement has at most one cursor that is current; executing again ends the earlier one.
 */
#ifndef SQLIPC_STATEMENT_H
#define SQLIPC_STATEMENT_H

#include <sys/queue.h>

#include "error.h"
#include "parameters.h"
#include "run.h"
#include "transport.h"

typedef enum StatementState {
        STATEMENT_PREPARING,
        STATEMENT_READY,
        STATEMENT_FAILED,
        STATEMENT_LOST,
} StatementState;

typedef struct Column {
        char *name;
        char *declared_type; /* NULL: none */
} Column;

/* What a Prepare or Query reply tells beside its numbers. */
typedef struct Description {
        unsigned n_columns, n_parameters;
        Column *columns;
        char **parameters;   /* NULL: nameless */
        uint32_t page_size;
        bool read_only;      /* it changes nothing */
} Description;

struct sqlipc_statement {
        sqlipc_connection *connection; /* a reference */
        LIST_ENTRY(sqlipc_statement) link;
        StatementState state;
        char *sql;
        uint64_t number;        /* the daemon's, 0: none */
        uint64_t channel_number, channel_generation; /* the channel's, as long as that is open; 0: none */
        Call *prepare;          /* PREPARING over the bus */
        bool described;         /* it was compiled before: parameters and columns are known */
        bool bus_only, opened;  /* PREPARING: not on a channel any more; a channel was opened for it */
        unsigned retries_left;  /* PREPARING: on other channels, where the bus is not wanted */
        unsigned n_interrupts;  /* PREPARING: of the connection, when it began */
        Habit habit;
        Description description;
        Bindings *bindings;     /* NULL: nothing bound */
        Run run;
        Waiting waiting;
        sqlipc_statement_callback on_ready; /* NULL: none */
        void *on_ready_userdata;
        sqlipc_cursor *cursor;  /* the current one; the caller's to close */
        Error error;            /* FAILED */
        Error reported;         /* of the last call on it that failed */
};

/* Asks the daemon to compile it (again), giving back what it had before. Negative: it could not be asked, nothing is under
 * way. */
int statement_prepare(sqlipc_statement *s);

/* Has it compiled on the channel, or over the bus, as transport.h says. As above. */
int statement_prepare_anywhere(sqlipc_statement *s);

/* PREPARING on a channel, or until one is open: goes on as far as that goes without waiting. */
void statement_advance(sqlipc_statement *s);

/* PREPARING, and nobody is to wait for it any more: it fails as cancelled. */
void statement_interrupt(sqlipc_statement *s);

/* PREPARING: what to wait for beside the bus. */
struct pollfd statement_pollfd(const sqlipc_statement *s);

/* Asks the channel, which is open, to compile it, without waiting: run_enter_channel() came before. -ENOMEM. */
int statement_send_prepare(sqlipc_statement *s);

/* It is compiled on the channel as that is open now. */
bool statement_is_on_channel(const sqlipc_statement *s);

/* Gives back what the daemon holds for it over the bus: its number and pipe. */
void statement_leave_bus(sqlipc_statement *s);

/* What a public function returns: if it failed, the statement has the details too, which the connection has. Returns `r`. */
int statement_report(sqlipc_statement *s, int r);

/* STATEMENT was read. -ENOMEM. */
int statement_read_description(sqlipc_statement *s);

/* What the daemon knew of it is gone, or of no use: the next execution compiles it again. */
void statement_lose(sqlipc_statement *s);

/* The connection is being closed: the statement gives back what the service holds for it, and fails with -ENOTCONN. */
void statement_close_connection(sqlipc_statement *s);

/* Every statement of a bus that is gone. */
void statements_on_bus_lost(sqlipc_connection *c);

/* The index of a name, with or without its prefix; 0: none, or several. For bindings_resolve(). */
unsigned statement_look_up(void *statement, const char *name);

/* Reads (a(ssa{sv}) columns, a{sv} info). */
int description_read(Description *ret, sd_bus_message *reply);
/* Reads a variant of columns into `d`, which has none yet. 1, or what is wrong with it. */
int description_read_columns(Description *d, sd_bus_message *reply);
/* Copies what stands in the STATEMENT under `decoder`. */
int description_copy(Description *ret, const PageDecoder *decoder);
void description_done(Description *d);

/* Whether `sql` can travel. 0, or a failure in `e` that points at the offending byte. */
int check_sql(Error *e, const char *sql);

/* The object of `database`; the caller frees it. */
int database_path(const char *database, char **ret);

#endif
