/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One compiled SELECT: the daemon's description of it, its bindings, its pipe. Library.
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

#include "client-lib/bindings.h"
#include "client-lib/connection.h"
#include "client-lib/description.h"
#include "client-lib/error.h"
#include "client-lib/fetch.h"
#include "client-lib/prepared-life.h"
#include "client-lib/transport.h"

struct sqlipc_statement {
        Member member;
        sqlipc_connection *connection; /* a reference */
        StatementState state;
        char *sql;
        uint64_t number;        /* the daemon's, 0: none */
        uint64_t channel_number, channel_generation; /* valid while that channel is open; 0: none */
        Call *prepare;          /* PREPARING over the bus */
        sqlipc_transaction *pin; /* PREPARING: a reference on the pin on which it will be compiled, or NULL */
        uint64_t pin_id;        /* of the pin that the last Prepare has named; 0: none */
        bool asks_cached;       /* PREPARING over the bus: with the option `cached` */
        bool described;         /* it was compiled before: parameters and columns are known */
        Attempt attempt;        /* PREPARING */
        unsigned retries_left;  /* PREPARING: on other channels, if the program does not want the bus */
        unsigned n_interrupts;  /* PREPARING: of the connection, when it began */
        Habit habit;
        Description description;
        Bindings *bindings;     /* NULL: nothing bound */
        Fetch fetch;
        sqlipc_statement_callback on_ready; /* NULL: none */
        void *on_ready_userdata;
        sqlipc_cursor *cursor;  /* the current one; the caller closes it */
        Error error;            /* FAILED */
        Error reported;         /* of the last call on it that failed */
};

/* Asks the daemon to compile the statement (again), and gives back what the daemon held for it. Negative: the request
 * could not be sent, and nothing is in progress. */
int prepared_prepare(sqlipc_statement *s);

/* Gives back the statement in a reply to Prepare. */
void prepared_undo(sd_bus_message *reply, const char *path);

/* PREPARING: gives up; the statement fails as cancelled. */
void prepared_interrupt(sqlipc_statement *s);

/* True if the statement is compiled on the channel, in its current opening. */
bool prepared_is_on_channel(const sqlipc_statement *s);

/* Gives back what the daemon holds for the statement over the bus: its number and pipe. */
void prepared_leave_bus(sqlipc_statement *s);

/* For the result `r` of a public function: if it failed, copies the details from the connection to the statement. Returns
 * `r`. */
int prepared_report(sqlipc_statement *s, int r);

/* It could not be compiled, because of the error that was set. True: it needs a pin, and is compiled again when that is
 * open. Otherwise the error may be another one then. */
bool prepared_take_pin(sqlipc_statement *s);

/* The statement fails, with the error that was set. */
void prepared_fail(sqlipc_statement *s);

/* Gives back the compiled statement, which is gone or useless: the next execution compiles it again. */
void prepared_lose(sqlipc_statement *s);

/* The index of a name, with or without its prefix; 0: none, or several. For bindings_resolve(). */
unsigned prepared_look_up(void *statement, const char *name);

#endif
