/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One compiled SELECT: the daemon's description of it, its bindings, its pipe. Library.
 *
 *      PREPARING --reply--> READY --worker, daemon or bus lost--> LOST --execute--> PREPARING
 *          \--error reply--> FAILED --execute--> PREPARING
 *
 * A statement is compiled either by the daemon, which then holds a pipe for it (`number`), or on the database's channel
 * (`channel_number`); each execution may change from one to the other (transport.h). A statement that was compiled before is
 * compiled again on a channel together with the run, so READY and LOST make no difference there. With rows in replies
 * (source-rows.h) each run compiles it itself.
 *
 * A statement has at most one current cursor; executing again ends the earlier one.
 */
#ifndef SQLIPC_CLIENT_LIB_PREPARED_H
#define SQLIPC_CLIENT_LIB_PREPARED_H

#include <sys/queue.h>

#include "client-lib/connection.h"
#include "client-lib/error.h"
#include "client-lib/fetch.h"
#include "client-lib/parameter.h"
#include "client-lib/transport.h"

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

/* The part of a Prepare or Query reply that describes the statement. */
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
        uint64_t channel_number, channel_generation; /* valid while that channel is open; 0: none */
        Call *prepare;          /* PREPARING over the bus */
        bool described;         /* it was compiled before: parameters and columns are known */
        Attempt attempt;        /* PREPARING */
        unsigned retries_left;  /* PREPARING: on other channels, if the program does not want the bus */
        unsigned n_interrupts;  /* PREPARING: of the connection, when it began */
        Habit habit;
        Description description;
        Bindings *bindings;     /* NULL: nothing bound */
        Fetch fetch;
        Waiting waiting;
        sqlipc_statement_callback on_ready; /* NULL: none */
        void *on_ready_userdata;
        sqlipc_cursor *cursor;  /* the current one; the caller closes it */
        Error error;            /* FAILED */
        Error reported;         /* of the last call on it that failed */
};

/* Asks the daemon to compile the statement (again), and gives back what the daemon held for it. Negative: the request
 * could not be sent, and nothing is in progress. */
int prepared_prepare(sqlipc_statement *s);

/* Has the statement compiled on the channel or over the bus, as transport.h decides. Returns as prepared_prepare(). */
int prepared_prepare_anywhere(sqlipc_statement *s);

/* If the statement is PREPARING on a channel, or waits until one is open: continues as far as possible without waiting. */
void prepared_advance(sqlipc_statement *s);

/* PREPARING: gives up; the statement fails as cancelled. */
void prepared_interrupt(sqlipc_statement *s);

/* PREPARING: the descriptor to wait for beside the bus. */
struct pollfd prepared_pollfd(const sqlipc_statement *s);

/* Asks the channel, which must be open, to compile the statement, without waiting. Call fetch_use_channel() first.
 * -ENOMEM. */
int prepared_send_prepare(sqlipc_statement *s);

/* True if the statement is compiled on the channel, in its current opening. */
bool prepared_is_on_channel(const sqlipc_statement *s);

/* Gives back what the daemon holds for the statement over the bus: its number and pipe. */
void prepared_leave_bus(sqlipc_statement *s);

/* For the result `r` of a public function: if it failed, copies the details from the connection to the statement. Returns
 * `r`. */
int prepared_report(sqlipc_statement *s, int r);

/* Takes the description from the STATEMENT frame that was read. -ENOMEM. */
int prepared_read_description(sqlipc_statement *s);

/* Gives back the compiled statement, which is gone or useless: the next execution compiles it again. */
void prepared_lose(sqlipc_statement *s);

/* For a connection that is being closed: gives back what the service holds for the statement, which then fails with
 * -ENOTCONN. */
void prepared_close_connection(sqlipc_statement *s);

/* Marks every statement of a lost bus. */
void prepared_on_bus_lost(sqlipc_connection *c);

/* The index of a name, with or without its prefix; 0: none, or several. For bindings_resolve(). */
unsigned prepared_look_up(void *statement, const char *name);

/* Reads (a(ssa{sv}) columns, a{sv} info). */
int description_read(Description *ret, sd_bus_message *reply);
/* Reads a variant of columns into `d`, which must have none yet. 1, or a negative errno. */
int description_read_columns(Description *d, sd_bus_message *reply);
/* Copies the description from the decoder's STATEMENT frame. */
int description_copy(Description *ret, const PageDecoder *decoder);
void description_done(Description *d);

/* Checks that `sql` can be sent. 0, or a failure in `e` with the offset of the invalid byte. */
int check_sql(Error *e, const char *sql);

/* Gets the object path of `database`; the caller frees it. */
int database_path(const char *database, char **ret);

#endif
