/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs, and their rows as tuples (native.h). A tuple is made straight from the values of a block, which point into the page
 * that was received. While a block is read, the run is busy: nothing else may move it on.
 *
 * An open run keeps a read transaction at the service, which in some cases delays other statements of the same program for
 * ever: the rest of its rows is then read into memory ("ahead").
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/python/native/native.h"

enum { PEEK_ROWS_MAX = 64 };

/* ---- The list of open runs ---------------------------------------------------------------------------------------- */

static void enlist(RunObject *run) {
        run->next = run->link->runs;
        run->previous = NULL;
        if (run->next)
                run->next->previous = run;
        run->link->runs = run;
}

static void delist(RunObject *run) {
        if (run->previous)
                run->previous->next = run->next;
        else
                run->link->runs = run->next;
        if (run->next)
                run->next->previous = run->previous;
}

/* ---- Start -------------------------------------------------------------------------------------------------------- */

static int bind_all(sqlipc_statement *statement, const ParameterValues *p) {
        int r = 0;

        for (unsigned i = 0; r >= 0 && i < p->n; i++) {
                const sqlipc_parameter *value = &p->values[i];

                switch (value->type) {
                case SQLIPC_INTEGER:
                        r = sqlipc_bind_int64(statement, i + 1, value->integer);
                        break;
                case SQLIPC_REAL:
                        r = sqlipc_bind_double(statement, i + 1, value->real);
                        break;
                case SQLIPC_TEXT:
                        r = sqlipc_bind_text(statement, i + 1, value->bytes, value->size);
                        break;
                case SQLIPC_BLOB:
                        r = sqlipc_bind_blob(statement, i + 1, value->bytes, value->size);
                        break;
                case SQLIPC_NULL:
                        r = sqlipc_bind_null(statement, i + 1);
                        break;
                }
        }
        return r;
}

/* Sends the request; the lock is held. SQL that comes again is prepared. Within a transaction it is not, because statements
 * are prepared outside of it; nor while an earlier run of the same statement is open, which the new one would end. */
static int send(RunObject *run, const char *text, const ParameterValues *p) {
        Link *link = run->link;
        Sql *sql = run->sql;
        int r = 0;

        if (link->in_transaction || sql->user || sql->n_uses++ == 0)
                return sqlipc_query_with(link->connection, link->database, text, p->values, p->n, &run->cursor);
        if (!sql->statement)
                r = sqlipc_prepare(link->connection, link->database, text, &sql->statement);
        if (r == -EOPNOTSUPP)
                return sqlipc_query_with(link->connection, link->database, text, p->values, p->n, &run->cursor);
        if (r >= 0)
                r = bind_all(sql->statement, p);
        if (r >= 0)
                r = sqlipc_execute(sql->statement, &run->cursor);
        if (r >= 0)
                sql->user = run;
        return r;
}

static const char *check_text(PyObject *text) {
        Py_ssize_t size;
        const char *bytes = PyUnicode_AsUTF8AndSize(text, &size);

        if (!bytes || strlen(bytes) == (size_t) size)
                return bytes;
        native_raise("ProgrammingError", "the query contains a null character");
        return NULL;
}

PyObject *run_start(Link *link, Sql *sql, PyObject *source) {
        RunObject *run = (RunObject *) ((allocfunc) PyType_GetSlot(run_type, Py_tp_alloc))(run_type, 0);
        ParameterValues parameters = {};
        const char *text = NULL;
        LinkFailure failure;
        int r = -1;

        if (!run)
                return NULL;
        Py_INCREF(OBJECT(link));
        Py_INCREF(OBJECT(sql));
        run->link = link;
        run->sql = sql;
        text = check_text(sql->text);
        if (text && parameters_read(&parameters, sql, source) && link_check_loss(link) && link_enter(link)) {
                r = send(run, text, &parameters);
                if (r < 0)
                        failure = link_failure(link, r);
                link_leave(link);
                if (r < 0)
                        link_raise(&failure);
        }
        parameters_done(&parameters);
        if (r < 0)
                Py_CLEAR(run);
        else
                enlist(run);
        return (PyObject *) run;
}

/* ---- Blocks ------------------------------------------------------------------------------------------------------- */

static void close_cursor(RunObject *run) {
        if (!run->cursor)
                return;
        delist(run);
        if (run->sql && run->sql->user == run)
                run->sql->user = NULL;
        link_bury(run->link, GRAVE_CURSOR, run->cursor);
        run->cursor = NULL;
        run->values = NULL;
        run->n_rows = run->row = 0;
}

/* The lock is held. With `waits`, the GIL is not. */
static int next_block(RunObject *run, bool waits) {
        int r;

        if (waits)
                (void) sqlipc_set_blocking(run->link->connection, 1);
        r = sqlipc_cursor_next_block(run->cursor, 0, &run->values, &run->n_rows);
        if (waits)
                (void) sqlipc_set_blocking(run->link->connection, 0);
        if (r == 1 || r == 0)
                run->n_columns = sqlipc_column_count(run->cursor);
        if (r == 0) {
                run->n_changes = sqlipc_cursor_changes(run->cursor);
                run->last_rowid = sqlipc_cursor_last_rowid(run->cursor);
        }
        return r;
}

static bool is_slice_over(const LinkFailure *failure) {
        return failure->r == -EAGAIN || (failure->r == -ETIMEDOUT && failure->code == SQLIPC_ERROR_NONE);
}

static PyObject *new_text_or_none(const char *text) {
        if (text)
                return PyUnicode_DecodeUTF8(text, (Py_ssize_t) strlen(text), "replace");
        Py_INCREF(Py_None);
        return Py_None;
}

/* The strings are the cursor's, and stay until it is closed. */
static int read_columns(RunObject *run) {
        PyObject *names = PyTuple_New(run->n_columns), *types = PyTuple_New(run->n_columns);

        for (unsigned i = 0; names && types && i < run->n_columns; i++) {
                PyObject *name = new_text_or_none(sqlipc_column_name(run->cursor, i));
                PyObject *type = new_text_or_none(sqlipc_column_decltype(run->cursor, i));

                if (!name || !type) {
                        Py_XDECREF(name);
                        Py_XDECREF(OBJECT(type));
                        Py_CLEAR(names);
                        break;
                }
                PyTuple_SetItem(names, i, name);
                PyTuple_SetItem(types, i, type);
        }
        if (!names || !types) {
                Py_XDECREF(names);
                Py_XDECREF(types);
                return -1;
        }
        run->columns = names;
        run->types = types;
        return 0;
}

/* Gets the next block. 1: it has rows; 0: the end; -1: an exception. */
static int fetch(RunObject *run) {
        LinkFailure failure;
        int r;

        for (;;) {
                if (!run->cursor)
                        return 0;
                if (!link_enter(run->link))
                        return -1;
                run->row = run->n_rows = 0;
                if (run->link->waits) {
                        Py_BEGIN_ALLOW_THREADS r = next_block(run, true);
                        Py_END_ALLOW_THREADS
                } else
                        r = next_block(run, false);
                if (r < 0) {
                        failure = r == -EAGAIN ? (LinkFailure){ .r = r } : link_failure(run->link, r);
                        run->n_rows = 0;
                }
                link_leave(run->link);
                if (r >= 0)
                        break;
                if (!is_slice_over(&failure)) {
                        run->has_lost_pin = failure.code == SQLIPC_ERROR_PIN_LOST;
                        if (run->has_lost_pin)
                                link_failure_done(&run->link->untold);
                        close_cursor(run);
                        link_raise(&failure);
                        return -1;
                }
                link_failure_done(&failure);
                if (!run->link->waits) {
                        PyErr_SetNone(PyExc_BlockingIOError);
                        return -1;
                }
                if (PyErr_CheckSignals() < 0)
                        return -1; /* the run goes on: the outcome of a write is still to be told */
        }
        if (!run->columns && read_columns(run) < 0)
                return -1;
        if (r == 0) {
                run->has_ended = true;
                close_cursor(run);
        }
        return r;
}

/* The block is used up: takes what has arrived already. The end of a small result has arrived together with its rows, and
 * a run that has ended costs less to close. Failures are left to fetch(). */
static void peek(RunObject *run) {
        int r;

        if (run->n_rows >= PEEK_ROWS_MAX || !run->cursor || !link_enter(run->link)) {
                PyErr_Clear();
                return;
        }
        run->row = run->n_rows = 0;
        r = next_block(run, false);
        run->has_ended = r == 0;
        if (r < 0 && r != -EAGAIN && sqlipc_error_code(run->link->connection) == SQLIPC_ERROR_PIN_LOST &&
            run->link->untold.r == 0)
                run->link->untold = link_failure(run->link, r);
        link_leave(run->link);
        if (run->has_ended)
                close_cursor(run);
}

static bool enter(RunObject *run) {
        if (run->is_busy) {
                native_raise("ProgrammingError", "Recursive use of cursors not allowed.");
                return false;
        }
        return link_check(run->link) && (run->is_busy = true);
}

/* As fetch(), while there is a row left. The run is busy. */
static int more(RunObject *run) {
        if (run->row < run->n_rows)
                return 1;
        return fetch(run);
}

int run_advance(RunObject *run) {
        int r;

        if (!enter(run))
                return -1;
        do {
                r = more(run);
                if (r == 1 && run->n_columns == 0)
                        run->row = run->n_rows;
        } while (r == 1 && run->n_columns == 0);
        run->is_busy = false;
        return r;
}

/* ---- Values ------------------------------------------------------------------------------------------------------- */

static PyObject *raise_not_utf8(const RunObject *run, unsigned column, const sqlipc_value *value) {
        PyObject *text;

        PyErr_Clear();
        text = PyUnicode_DecodeUTF8(value->as.text, (Py_ssize_t) value->size, "replace");
        if (text)
                native_raise("OperationalError", "Could not decode to UTF-8 column '%U' with text '%U'",
                             PyTuple_GetItem(run->columns, column), text);
        Py_XDECREF(text);
        return NULL;
}

static PyObject *new_text(const RunObject *run, unsigned column, const sqlipc_value *value) {
        PyObject *factory = run->text_factory, *bytes, *text;

        if (!factory) {
                text = PyUnicode_FromStringAndSize(value->as.text, (Py_ssize_t) value->size);
                if (!text && PyErr_ExceptionMatches(PyExc_UnicodeDecodeError))
                        return raise_not_utf8(run, column, value);
                return text;
        }
        bytes = PyBytes_FromStringAndSize(value->as.text, (Py_ssize_t) value->size);
        if (!bytes || factory == (PyObject *) &PyBytes_Type)
                return bytes;
        Py_INCREF(factory); /* it may configure the run anew */
        text = PyObject_CallFunctionObjArgs(factory, bytes, NULL);
        Py_DECREF(factory);
        Py_DECREF(bytes);
        return text;
}

static PyObject *convert(PyObject *converter, const sqlipc_value *value) {
        PyObject *bytes, *result;

        switch (value->type) {
        case SQLIPC_NULL:
                Py_INCREF(Py_None);
                return Py_None;
        case SQLIPC_TEXT:
        case SQLIPC_BLOB:
                if (value->size == 0) { /* as sqlite3, for which SQLite has no pointer to it */
                        Py_INCREF(Py_None);
                        return Py_None;
                }
                bytes = PyBytes_FromStringAndSize(value->as.blob, (Py_ssize_t) value->size);
                break;
        case SQLIPC_INTEGER:
        case SQLIPC_REAL: /* as text, which is how SQLite hands it to a converter */
        default:
                bytes = value->type == SQLIPC_INTEGER ? PyLong_FromLongLong(value->as.integer)
                                                      : PyFloat_FromDouble(value->as.real);
                if (bytes) {
                        PyObject *text = PyObject_Str(bytes);

                        Py_DECREF(bytes);
                        bytes = text ? PyUnicode_AsUTF8String(text) : NULL;
                        Py_XDECREF(text);
                }
                break;
        }
        if (!bytes)
                return NULL;
        result = PyObject_CallFunctionObjArgs(converter, bytes, NULL);
        Py_DECREF(bytes);
        return result;
}

PyObject *value_to_object(const sqlipc_value *value) {
        switch (value->type) {
        case SQLIPC_TEXT:
                return PyUnicode_FromStringAndSize(value->as.text, (Py_ssize_t) value->size);
        case SQLIPC_INTEGER:
                return PyLong_FromLongLong(value->as.integer);
        case SQLIPC_REAL:
                return PyFloat_FromDouble(value->as.real);
        case SQLIPC_BLOB:
                return PyBytes_FromStringAndSize(value->as.blob, (Py_ssize_t) value->size);
        case SQLIPC_NULL:
                break;
        }
        Py_INCREF(Py_None);
        return Py_None;
}

static inline PyObject *new_value(const RunObject *run, unsigned column, const sqlipc_value *value) {
        return value->type == SQLIPC_TEXT ? new_text(run, column, value) : value_to_object(value);
}

/* Takes the next row of the block. The run is busy, and the block has the row. */
static PyObject *take_row(RunObject *run) {
        const sqlipc_value *values = run->values + run->row * run->n_columns;
        PyObject *row = PyTuple_New(run->n_columns);

        for (unsigned i = 0; row && i < run->n_columns; i++) {
                PyObject *converter = run->converters ? PyList_GetItem(run->converters, i) : Py_None;
                PyObject *value;

                if (!converter || converter == Py_None) {
                        PyErr_Clear(); /* more columns than converters */
                        value = new_value(run, i, &values[i]);
                } else {
                        Py_INCREF(converter);
                        value = convert(converter, &values[i]);
                        Py_DECREF(converter);
                }
                if (value)
                        PyTuple_SetItem(row, i, value);
                else
                        Py_CLEAR(row);
        }
        run->row++;
        return row;
}

/* ---- Rows --------------------------------------------------------------------------------------------------------- */

/* Raises the failure that was kept. */
static int fail(RunObject *run) {
        PyObject *failure = run->failure;

        run->failure = NULL;
        PyErr_SetObject((PyObject *) Py_TYPE(failure), failure);
        Py_DECREF(failure);
        return -1;
}

/* Returns the next row in `*ret`. 1: a row; 0: the end; -1: an exception. The run is busy. */
static int next_row(RunObject *run, PyObject **ret) {
        int r;

        if (run->ahead && run->n_taken < PyList_Size(run->ahead)) {
                *ret = PyList_GetItem(run->ahead, run->n_taken);
                Py_XINCREF(*ret);
                Py_INCREF(Py_None);
                (void) PyList_SetItem(run->ahead, run->n_taken++, Py_None);
                return *ret ? 1 : -1;
        }
        if (run->failure)
                return fail(run);
        r = more(run);
        if (r < 0 && !PyErr_ExceptionMatches(PyExc_BlockingIOError))
                close_cursor(run); /* a signal handler has raised an exception: this cancels the run */
        if (r > 0)
                *ret = take_row(run);
        if (r > 0 && *ret && run->row == run->n_rows)
                peek(run);
        return r > 0 && !*ret ? -1 : r;
}

/* Keeps the exception that is set for those that read the run. */
static void keep_exception(RunObject *run) {
        PyObject *type, *value, *trace;

        PyErr_Fetch(&type, &value, &trace);
        PyErr_NormalizeException(&type, &value, &trace);
        Py_XDECREF(OBJECT(type));
        Py_XDECREF(trace);
        Py_XDECREF(run->failure);
        run->failure = value;
}

/* A failure of the run is kept; other exceptions are raised. While an exception is set, Python may clear it when an
 * attribute is looked up. */
static int keep_failure(RunObject *run) {
        PyObject *class, *type, *value, *trace;
        bool kept;

        PyErr_Fetch(&type, &value, &trace);
        class = native_error_class("Error");
        kept = class && PyErr_GivenExceptionMatches(type, class);
        Py_XDECREF(class);
        PyErr_Restore(type, value, trace);
        if (kept)
                keep_exception(run);
        return kept ? 0 : -1;
}

/* If a value cannot be converted, the reader of its row learns that, and not the call that drains the run, which may have
 * written. Later rows are left out. */
static int drain(RunObject *run) {
        int r = 0;

        if (!run->ahead)
                run->ahead = PyList_New(0);
        while (run->ahead && (r = more(run)) > 0) {
                PyObject *row;

                if (run->failure) {
                        run->row = run->n_rows;
                        continue;
                }
                row = take_row(run);
                if (!row && PyErr_ExceptionMatches(PyExc_Exception)) {
                        keep_exception(run);
                        continue;
                }
                r = row ? PyList_Append(run->ahead, row) : -1;
                Py_XDECREF(row);
                if (r < 0)
                        break;
        }
        return run->ahead ? r : -1;
}

int run_drain_all(Link *link) {
        int r = 0;

        while (r >= 0 && link->runs) {
                RunObject *run = link->runs;

                while (run && run->is_busy) /* another thread reads it, or its own reader called us */
                        run = run->next;
                if (!run)
                        return 0;
                Py_INCREF(OBJECT(run));
                run->is_busy = true;
                r = drain(run);
                run->is_busy = false;
                if (r < 0 && !PyErr_ExceptionMatches(PyExc_BlockingIOError)) {
                        close_cursor(run);
                        r = keep_failure(run);
                        if (r == 0 && run->has_lost_pin) {
                                PyErr_SetObject((PyObject *) Py_TYPE(run->failure), run->failure);
                                r = -1;
                        }
                }
                Py_DECREF(OBJECT(run));
        }
        return r;
}

/* ---- The type ----------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(advance_doc, "advance() -> bool\n\nWait until there is a row (True) or the end (False).");

static PyObject *advance(RunObject *run, PyObject *unused) {
        int r = run_advance(run);

        return r < 0 ? NULL : PyBool_FromLong(r);
}

PyDoc_STRVAR(fetchone_doc, "fetchone() -> tuple | None\n\nThe next row; None at the end.");

static PyObject *fetchone(RunObject *run, PyObject *unused) {
        PyObject *row = NULL;
        int r;

        if (!enter(run))
                return NULL;
        r = next_row(run, &row);
        run->is_busy = false;
        if (r != 0)
                return row;
        Py_RETURN_NONE;
}

PyDoc_STRVAR(fetchmany_doc,
             "fetchmany(n, rows) -> list\n\nAppend at most n rows (-1: all) to the list rows, and return it.");

static PyObject *fetchmany(RunObject *run, PyObject *arguments) {
        PyObject *rows, *row = NULL;
        Py_ssize_t n;
        int r = 1;

        if (!PyArg_ParseTuple(arguments, "nO!:fetchmany", &n, &PyList_Type, &rows) || !enter(run))
                return NULL;
        while ((n < 0 || PyList_Size(rows) < n) && (r = next_row(run, &row)) > 0) {
                r = PyList_Append(rows, row);
                Py_CLEAR(row);
                if (r < 0)
                        break;
        }
        run->is_busy = false;
        if (r < 0)
                return NULL;
        Py_INCREF(rows);
        return rows;
}

PyDoc_STRVAR(cancel_doc, "cancel()\n\nHave the service end the run: advance() then tells how it ended.");

static PyObject *run_cancel(RunObject *run, PyObject *unused) {
        if (!enter(run))
                return NULL;
        if (run->cursor)
                (void) sqlipc_cursor_cancel(run->cursor);
        run->is_busy = false;
        Py_RETURN_NONE;
}

PyDoc_STRVAR(close_doc, "close()\n\nEnd the run.");

static PyObject *run_close(RunObject *run, PyObject *unused) {
        if (!enter(run))
                return NULL;
        close_cursor(run);
        Py_CLEAR(run->ahead);
        Py_CLEAR(run->failure);
        run->is_busy = false;
        Py_RETURN_NONE;
}

PyDoc_STRVAR(drain_doc, "drain()\n\nRead the rest of the rows into memory, so that the run ends at the service.");

static PyObject *drain_one(RunObject *run, PyObject *unused) {
        int r;

        if (!enter(run))
                return NULL;
        r = drain(run);
        run->is_busy = false;
        if (r < 0)
                return NULL;
        Py_RETURN_NONE;
}

PyDoc_STRVAR(configure_doc, "configure(converters, text_factory)\n\nSet how values become Python objects: a list with a "
                            "callable or None for each column, or None; and a callable for text, or None for str.");

/* Replaces a reference before it drops the old one: that may run Python code, which may come back here. */
static void replace(PyObject **reference, PyObject *value) {
        PyObject *old = *reference;

        if (value == Py_None)
                value = NULL;
        Py_XINCREF(value);
        *reference = value;
        Py_XDECREF(old);
}

static PyObject *configure(RunObject *run, PyObject *arguments) {
        PyObject *converters, *factory;

        if (!PyArg_ParseTuple(arguments, "OO:configure", &converters, &factory))
                return NULL;
        if (converters != Py_None && !PyList_Check(converters)) {
                PyErr_SetString(PyExc_TypeError, "converters must be a list or None.");
                return NULL;
        }
        replace(&run->converters, converters);
        replace(&run->text_factory, factory);
        Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
        { "advance", (PyCFunction) advance, METH_NOARGS, advance_doc },
        { "fetchone", (PyCFunction) fetchone, METH_NOARGS, fetchone_doc },
        { "fetchmany", (PyCFunction) fetchmany, METH_VARARGS, fetchmany_doc },
        { "cancel", (PyCFunction) run_cancel, METH_NOARGS, cancel_doc },
        { "close", (PyCFunction) run_close, METH_NOARGS, close_doc },
        { "drain", (PyCFunction) drain_one, METH_NOARGS, drain_doc },
        { "configure", (PyCFunction) configure, METH_VARARGS, configure_doc },
        { NULL, NULL, 0, NULL },
};

static PyObject *get_object(RunObject *run, void *offset) {
        PyObject *object = *(PyObject **) ((char *) run + (size_t) offset);

        object = object ? object : Py_None;
        Py_INCREF(object);
        return object;
}

static PyObject *get_changes(RunObject *run, void *unused) { return PyLong_FromLongLong(run->n_changes); }

static PyObject *get_last_rowid(RunObject *run, void *unused) { return PyLong_FromLongLong(run->last_rowid); }

static PyObject *get_ended(RunObject *run, void *unused) { return PyBool_FromLong(run->has_ended); }

static PyGetSetDef properties[] = {
        { "columns", (getter) get_object, NULL, "Names of the columns, once there was a row or the end.",
          (void *) offsetof(RunObject, columns) },
        { "types", (getter) get_object, NULL, "Declared types of the columns, or None.",
          (void *) offsetof(RunObject, types) },
        { "changes", (getter) get_changes, NULL, "The number of rows that were changed, after the end.", NULL },
        { "last_rowid", (getter) get_last_rowid, NULL, "The rowid of the last row that was inserted, after the end.", NULL },
        { "ended", (getter) get_ended, NULL, "True after the end of the result.", NULL },
        { NULL, NULL, NULL, NULL, NULL },
};

static int traverse(RunObject *run, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(OBJECT(run)));
        Py_VISIT(run->converters);
        Py_VISIT(run->text_factory);
        Py_VISIT(run->ahead);
        Py_VISIT(run->failure);
        return 0;
}

static int clear(RunObject *run) {
        Py_CLEAR(run->converters);
        Py_CLEAR(run->text_factory);
        Py_CLEAR(run->ahead);
        Py_CLEAR(run->failure);
        return 0;
}

static void run_dealloc(RunObject *run) {
        PyTypeObject *type = Py_TYPE(OBJECT(run));

        PyObject_GC_UnTrack(run);
        if (run->link)
                close_cursor(run);
        (void) clear(run);
        Py_CLEAR(run->columns);
        Py_CLEAR(run->types);
        Py_CLEAR(run->sql);
        Py_CLEAR(run->link);
        ((freefunc) PyType_GetSlot(type, Py_tp_free))(run);
        Py_DECREF(OBJECT(type));
}

PyDoc_STRVAR(run_doc, "A run of a statement. Link.start() makes it.");

static PyType_Slot run_slots[] = {
        { Py_tp_doc, (void *) run_doc },
        { Py_tp_dealloc, (void *) run_dealloc },
        { Py_tp_traverse, (void *) traverse },
        { Py_tp_clear, (void *) clear },
        { Py_tp_methods, methods },
        { Py_tp_getset, properties },
        { 0, NULL },
};

PyType_Spec run_spec = {
        "sqlipc._native.Run",
        sizeof(RunObject),
        0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        run_slots,
};
