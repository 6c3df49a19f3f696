/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Loads: one run of a statement for each row that Python gives (native.h). */
#include <errno.h>
#include <stdlib.h>

#include "client-lib/python/native/native.h"

typedef struct LoadObject {
        PyObject_HEAD Link *link;
        Sql *sql;
        sqlipc_load *load; /* NULL: over */
        ParameterValues parameters;
        bool is_busy;
} LoadObject;

PyObject *load_begin(Link *link, Sql *sql) {
        LoadObject *load = (LoadObject *) ((allocfunc) PyType_GetSlot(load_type, Py_tp_alloc))(load_type, 0);
        const char *text = PyUnicode_AsUTF8AndSize(sql->text, NULL);
        LinkFailure failure;
        int r;

        if (!load || !text || !link_check_loss(link) || !link_enter(link)) {
                Py_XDECREF(OBJECT(load));
                return NULL;
        }
        r = sqlipc_load_open(link->connection, link->database, text, &load->load);
        if (r < 0)
                failure = link_failure(link, r);
        else {
                Py_INCREF(OBJECT(link));
                Py_INCREF(OBJECT(sql));
                load->link = link;
                load->sql = sql;
        }
        link_leave(link);
        if (r >= 0)
                return (PyObject *) load;
        Py_DECREF(OBJECT(load));
        return link_raise(&failure);
}

/* Gives the row that is in load->parameters. First without waiting and with the GIL, because most rows fit into the pipe.
 * 0: given; -1: an exception. */
static int give(LoadObject *load) {
        LinkFailure failure;
        int r;

        for (;;) {
                if (!load->load) {
                        native_raise("ProgrammingError", "The load is over.");
                        return -1;
                }
                if (!link_enter(load->link))
                        return -1;
                r = sqlipc_load_row(load->load, load->parameters.values, load->parameters.n);
                if (r < 0 && r != -EAGAIN)
                        failure = link_failure(load->link, r);
                link_leave(load->link);
                if (r >= 0)
                        return 0;
                if (r != -EAGAIN) {
                        link_raise(&failure);
                        return -1;
                }
                if (link_wait(load->link, UINT64_MAX) < 0)
                        return -1;
        }
}

static bool enter(LoadObject *load) {
        if (load->is_busy) {
                native_raise("ProgrammingError", "Recursive use of cursors not allowed.");
                return false;
        }
        return load->is_busy = true;
}

PyDoc_STRVAR(rows_doc, "rows(iterator)\n\nGive the rows of an iterator until its end.");

static PyObject *give_rows(LoadObject *load, PyObject *iterator) {
        PyObject *item;
        bool is_given = true;

        if (!enter(load))
                return NULL;
        while (is_given && (item = PyIter_Next(iterator))) {
                is_given = parameters_read(&load->parameters, load->sql, item) && give(load) == 0;
                parameters_clear(&load->parameters);
                Py_DECREF(item);
        }
        load->is_busy = false;
        if (!is_given || PyErr_Occurred())
                return NULL;
        Py_RETURN_NONE;
}

PyDoc_STRVAR(row_doc, "row(parameters)\n\nGive one row.");

static PyObject *give_row(LoadObject *load, PyObject *item) {
        bool is_given;

        if (!enter(load))
                return NULL;
        is_given = parameters_read(&load->parameters, load->sql, item) && give(load) == 0;
        parameters_clear(&load->parameters);
        load->is_busy = false;
        if (!is_given)
                return NULL;
        Py_RETURN_NONE;
}

static void close_load(LoadObject *load) {
        if (load->load)
                link_bury(load->link, GRAVE_LOAD, load->load);
        load->load = NULL;
}

PyDoc_STRVAR(finish_doc, "finish(seconds) -> int\n\nWait until all rows are written; the number of rows that were changed. "
                         "Less than 0: without a limit.");

static PyObject *finish(LoadObject *load, PyObject *seconds) {
        double value = PyFloat_AsDouble(seconds);
        uint64_t until = value < 0 ? UINT64_MAX : link_now_usec() + (uint64_t) (value * 1e6);
        int64_t n_changes = 0;
        LinkFailure failure;
        int r;

        if (value == -1 && PyErr_Occurred())
                return NULL;
        for (;;) {
                if (!load->load)
                        return native_raise("ProgrammingError", "The load is over.");
                if (!link_enter(load->link))
                        return NULL;
                r = sqlipc_load_finish(load->load, &n_changes);
                if (r < 0 && r != -EAGAIN)
                        failure = link_failure(load->link, r);
                link_leave(load->link);
                if (r >= 0)
                        break;
                if (r != -EAGAIN)
                        return link_raise(&failure);
                r = link_wait(load->link, until);
                if (r == 0)
                        PyErr_SetNone(PyExc_TimeoutError);
                if (r <= 0)
                        return NULL;
        }
        close_load(load);
        return PyLong_FromLongLong(n_changes);
}

PyDoc_STRVAR(cancel_doc, "cancel()\n\nHave the service cancel the load: finish() then tells how it ended.");

static PyObject *load_cancel(LoadObject *load, PyObject *unused) {
        if (!link_enter(load->link))
                return NULL;
        if (load->load)
                (void) sqlipc_load_cancel(load->load);
        link_leave(load->link);
        Py_RETURN_NONE;
}

PyDoc_STRVAR(close_doc, "close()\n\nEnd the load. Nothing of it is written unless it was finished.");

static PyObject *load_close(LoadObject *load, PyObject *unused) {
        close_load(load);
        Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
        { "rows", (PyCFunction) give_rows, METH_O, rows_doc },
        { "row", (PyCFunction) give_row, METH_O, row_doc },
        { "finish", (PyCFunction) finish, METH_O, finish_doc },
        { "cancel", (PyCFunction) load_cancel, METH_NOARGS, cancel_doc },
        { "close", (PyCFunction) load_close, METH_NOARGS, close_doc },
        { NULL, NULL, 0, NULL },
};

static void load_dealloc(LoadObject *load) {
        PyTypeObject *type = Py_TYPE(OBJECT(load));

        if (load->link)
                close_load(load);
        parameters_done(&load->parameters);
        Py_CLEAR(load->sql);
        Py_CLEAR(load->link);
        ((freefunc) PyType_GetSlot(type, Py_tp_free))(load);
        Py_DECREF(OBJECT(type));
}

PyDoc_STRVAR(load_doc, "A load. Link.load() makes it.");

static PyType_Slot load_slots[] = {
        { Py_tp_doc, (void *) load_doc },
        { Py_tp_dealloc, (void *) load_dealloc },
        { Py_tp_methods, methods },
        { 0, NULL },
};

PyType_Spec load_spec = {
        "sqlipc._native.Load", sizeof(LoadObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, load_slots,
};
