/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The C part of the Python package: what its files share. Python module `sqlipc._native`, over sqlipc.h.
 *
 *      Link          one sqlipc_connection and one database
 *      Sql           one SQL text with the names of its parameters, and its prepared statement when it has been used twice
 *      Run           one sqlipc_cursor, as tuples
 *      Transaction   one sqlipc_transaction
 *      Load          one sqlipc_load
 *      Watch, Live   one sqlipc_watch, one sqlipc_live
 *      Row           a tuple with names, as sqlite3.Row
 *
 * Threads. A sqlipc_connection belongs to one thread at a time, so each Link has a lock. Rules, which exclude deadlocks:
 * the lock is waited for only without the GIL; while a thread has the lock, it runs no Python code. An object whose memory
 * is freed while another thread has the lock cannot wait for it: it leaves what it held in the link's `graves`, and the next
 * thread that releases the lock closes that.
 *
 * Waiting. The connection never blocks except in sqlipc_cursor_next_block() and sqlipc_load_row() of a link that waits.
 * These return after SLICE_USEC at the latest, so that Python's signal handlers run. With a link that does not wait, for
 * asyncio, a function that would have to wait raises BlockingIOError, and is called again after Link.process().
 */
#ifndef SQLIPC_CLIENT_LIB_PYTHON_NATIVE_NATIVE_H
#define SQLIPC_CLIENT_LIB_PYTHON_NATIVE_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "client-lib/sqlipc.h"

/* The limited API has functions in place of macros that take a pointer to any object. */
#define OBJECT(pointer) ((PyObject *) (pointer))

#define SLICE_USEC ((uint64_t) 100000)

typedef struct Grave Grave;
typedef struct RunObject RunObject;

/* A failure of the library, copied while the lock is held. */
typedef struct LinkFailure {
        int r;
        int code, sqlite_code, sql_offset;
        char *name, *message; /* owned */
} LinkFailure;

typedef struct Link {
        PyObject_HEAD sqlipc_connection *connection; /* NULL: closed */
        char *database;
        PyThread_type_lock lock; /* of the connection and all its objects */
        Grave *graves;           /* objects to close; belongs to the GIL */
        unsigned forks;          /* of this process before it was opened */
        unsigned long thread;    /* the only one that may use it; 0: all may */
        bool waits;
        bool in_transaction; /* sqlipc_begin() was called, and its transaction is not closed */
        unsigned n_interrupts;         /* calls of interrupt() */
        RunObject *runs;     /* borrowed: a list of those with a cursor */
        LinkFailure untold;  /* PinLost of a run that read ahead: its reader gets that, or else the next call; 0: none */
} Link;

typedef struct Sql {
        PyObject_HEAD Link *link;
        PyObject *text;              /* str */
        PyObject *names;             /* tuple: the name of each parameter without its prefix, or None */
        sqlipc_statement *statement; /* NULL: not prepared */
        RunObject *user;             /* borrowed: the run of the statement that is open, or NULL */
        unsigned n_uses;
} Sql;

struct RunObject {
        PyObject_HEAD Link *link;
        Sql *sql;
        sqlipc_cursor *cursor;      /* NULL: over */
        PyObject *columns;          /* tuple of the names; NULL: not known yet */
        PyObject *types;            /* tuple of the declared types */
        PyObject *converters;       /* NULL, or a list: a callable or None for each column */
        PyObject *text_factory;     /* NULL: str */
        const sqlipc_value *values; /* of the block that is being read */
        size_t n_rows, row;         /* of the block; the next one */
        unsigned n_columns;
        PyObject *ahead;    /* NULL, or a list of rows that were read before they were asked for */
        Py_ssize_t n_taken; /* of `ahead` */
        PyObject *failure;  /* the exception that comes after `ahead` */
        bool is_busy, has_ended, has_lost_pin;
        int64_t n_changes, last_rowid;
        RunObject *previous, *next; /* in link->runs */
};

typedef enum GraveKind { GRAVE_CURSOR, GRAVE_STATEMENT, GRAVE_TRANSACTION, GRAVE_LOAD, GRAVE_WATCH, GRAVE_LIVE } GraveKind;

/* The types, which main.c creates. */
extern PyTypeObject *link_type, *sql_type, *run_type, *transaction_type, *load_type, *watch_type, *live_type;
extern PyType_Spec link_spec, sql_spec, run_spec, transaction_spec, load_spec, row_spec, watch_spec, live_spec;

/* ---- main.c ------------------------------------------------------------------------------------------------------- */

/** Returns a new reference to an attribute of sqlipc._errors, or of sqlipc._adapters; NULL with an exception. */
PyObject *native_error_class(const char *name);
PyObject *native_adapt(PyObject *value);
/** Raises a class of sqlipc._errors with a message in the format of PyErr_Format(). Returns NULL. */
PyObject *native_raise(const char *class_name, const char *format, ...);

/* ---- link.c ------------------------------------------------------------------------------------------------------- */

/** Returns false, with an exception, if the link is closed, or belongs to another thread or process. */
bool link_check(const Link *link);
/** Returns false, with an exception, if the link belongs to another thread. */
bool link_check_thread(const Link *link);
/** Takes the lock. Returns false, with an exception, as link_check(). */
bool link_enter(Link *link);
/** Buries what waits for that, and releases the lock. */
void link_leave(Link *link);
/** Closes an object, now or as soon as the lock is free. Never waits, and keeps the current exception. */
void link_bury(Link *link, GraveKind kind, void *object);
/** find_bus(database, bus) -> "user", "system" or the address in $SQLIPC_BUS: by the rule of sqlipc_open(3), or the chosen
 * bus ("user", "system"; None: not chosen) if it has the database. Waits. */
PyObject *link_find_bus(PyObject *module, PyObject *arguments);
/** Copies the details of a failure; the lock is held. */
LinkFailure link_failure(Link *link, int r);
/** Raises it, and frees the copy. Returns NULL. */
PyObject *link_raise(LinkFailure *failure);
/** Frees the copy. */
void link_failure_done(LinkFailure *failure);
/** Returns false, with PinLost, if the library has told of the loss to a call that could not raise it. */
bool link_check_loss(Link *link);
/** Waits for news of the connection for one slice, without the lock and the GIL held before and after. With a link that does
 * not wait it raises BlockingIOError. `until`: CLOCK_MONOTONIC in microseconds, UINT64_MAX: no limit. Returns 1 if there may
 * be news, 0 after `until`, -1 with an exception. */
int link_wait(Link *link, uint64_t until);
uint64_t link_now_usec(void);

/* ---- parameters.c ------------------------------------------------------------------------------------------------- */

/* Values for the parameters of a statement. `kept` holds the Python objects that the bytes belong to. */
typedef struct ParameterValues {
        sqlipc_parameter *values;
        size_t n, capacity;
        PyObject *kept; /* list, or NULL */
        Py_buffer *buffers;
        size_t n_buffers;
} ParameterValues;

/** Reads `source`, a sequence or a mapping, as values for the parameters of `sql`. Returns false with an exception. May run
 * Python code. The bytes stay valid until parameters_clear(), as long as the caller keeps `source`. */
bool parameters_read(ParameterValues *p, const Sql *sql, PyObject *source);
/** adapt_base_types(): has parameters_read() look for adapters of int, float, str, bytearray and None from now on. */
PyObject *parameters_adapt_base_types(PyObject *module, PyObject *unused);
/** Releases the values, and keeps the memory for the next ones. */
void parameters_clear(ParameterValues *p);
void parameters_done(ParameterValues *p);

/* ---- run.c, transaction.c, load.c, watch.c
 * --------------------------------------------------------------------------------- */

/** Starts a run, without waiting. */
PyObject *run_start(Link *link, Sql *sql, PyObject *parameters);
/** Goes on until there is a row or the end; a run without columns goes to its end. 1: a row; 0: the end; -1: an exception.
 */
int run_advance(RunObject *run);
/** Reads all rows of all open runs into memory, so that the service can end them. A failure of a run is for its reader, but
 * PinLost is an exception, too. 0: done; -1: an exception. */
int run_drain_all(Link *link);
/** Begins a transaction, without waiting. */
PyObject *transaction_begin(Link *link, int mode);
/** Returns a value as a Python object. Raises UnicodeDecodeError for text that is not UTF-8. */
PyObject *value_to_object(const sqlipc_value *value);
/** Begins to watch tables, a tuple of names, without waiting. */
PyObject *watch_open(Link *link, PyObject *tables);
/** Opens a live query, without waiting. `columns`: a tuple of the numbers of its key columns. `debounce`: in seconds. */
PyObject *live_open(Link *link, Sql *sql, PyObject *source, PyObject *columns, double debounce);
/** Begins a load. */
PyObject *load_begin(Link *link, Sql *sql);

#endif
