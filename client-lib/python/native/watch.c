/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Watches and live queries (native.h). */
#include <errno.h>
#include <stdlib.h>

#include "client-lib/python/native/native.h"

typedef struct WatchObject {
        PyObject_HEAD Link *link;
        sqlipc_watch *watch; /* NULL: closed */
} WatchObject;

typedef struct LiveObject {
        PyObject_HEAD Link *link;
        sqlipc_live *live; /* NULL: closed */
        bool is_busy;      /* a change is being read */
} LiveObject;

static bool read_until(PyObject *seconds, uint64_t *ret) {
        double value = seconds == Py_None ? -1 : PyFloat_AsDouble(seconds);

        *ret = value < 0 || value > 1e9 ? UINT64_MAX : link_now_usec() + (uint64_t) (value * 1e6);
        return !PyErr_Occurred();
}

/* link_wait(), which interrupt() ends: to the library, a call that never waits is not under way. */
static int wait_for_news(Link *link, uint64_t until, unsigned n_interrupts) {
        int r = link_wait(link, until);

        if (r >= 0 && link->n_interrupts != n_interrupts) {
                LinkFailure failure = { .r = -ECANCELED, .sql_offset = -1 };

                link_raise(&failure);
                return -1;
        }
        return r;
}

static PyObject *raise_closed(void) {
        return native_raise("ProgrammingError", "Cannot operate on a closed watch or live query.");
}

/* ---- Watches ------------------------------------------------------------------------------------------------------ */

/* The names belong to `tables`. NULL with an exception. */
static const char **read_names(PyObject *tables) {
        Py_ssize_t n = PyTuple_Size(tables);
        const char **names = n < 0 ? NULL : calloc((size_t) n + 1, sizeof *names);

        for (Py_ssize_t i = 0; names && i < n; i++) {
                names[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(tables, i), NULL);
                if (!names[i]) {
                        free(names);
                        return NULL;
                }
        }
        if (!names)
                PyErr_NoMemory();
        return names;
}

PyObject *watch_open(Link *link, PyObject *tables) {
        WatchObject *watch = (WatchObject *) ((allocfunc) PyType_GetSlot(watch_type, Py_tp_alloc))(watch_type, 0);
        const char **names = read_names(tables);
        LinkFailure failure;
        int r = -1;

        if (watch && names && link_enter(link)) {
                r = sqlipc_watch_open(link->connection, link->database, names, &watch->watch);
                if (r < 0)
                        failure = link_failure(link, r);
                link_leave(link);
                if (r < 0)
                        link_raise(&failure);
        }
        free(names);
        if (r < 0) {
                Py_XDECREF(OBJECT(watch));
                return NULL;
        }
        Py_INCREF(OBJECT(link));
        watch->link = link;
        return (PyObject *) watch;
}

PyDoc_STRVAR(watch_next_doc, "next(seconds) -> bool\n\nWait for a change. False: the time has passed.");

static PyObject *watch_next(WatchObject *watch, PyObject *seconds) {
        unsigned n_interrupts = watch->link->n_interrupts;
        LinkFailure failure;
        uint64_t until;
        int r;

        if (!read_until(seconds, &until))
                return NULL;
        for (;;) {
                if (!watch->watch)
                        return raise_closed();
                if (!link_enter(watch->link))
                        return NULL;
                r = sqlipc_watch_next(watch->watch, 0);
                if (r < 0 && r != -EAGAIN)
                        failure = link_failure(watch->link, r);
                link_leave(watch->link);
                if (r > 0)
                        Py_RETURN_TRUE;
                if (r < 0 && r != -EAGAIN)
                        return link_raise(&failure);
                r = wait_for_news(watch->link, until, n_interrupts);
                if (r <= 0)
                        return r < 0 ? NULL : PyBool_FromLong(0);
        }
}

PyDoc_STRVAR(watch_close_doc, "close()\n\nEnd the watch.");

static PyObject *watch_close(WatchObject *watch, PyObject *unused) {
        if (!link_check_thread(watch->link))
                return NULL;
        if (watch->watch)
                link_bury(watch->link, GRAVE_WATCH, watch->watch);
        watch->watch = NULL;
        Py_RETURN_NONE;
}

static void watch_dealloc(WatchObject *watch) {
        PyTypeObject *type = Py_TYPE(OBJECT(watch));

        if (watch->watch)
                link_bury(watch->link, GRAVE_WATCH, watch->watch);
        Py_CLEAR(watch->link);
        ((freefunc) PyType_GetSlot(type, Py_tp_free))(watch);
        Py_DECREF(OBJECT(type));
}

static PyObject *watch_get_sequence(WatchObject *watch, void *unused) {
        uint64_t sequence = 0;

        if (!watch->watch)
                return raise_closed();
        if (!link_enter(watch->link))
                return NULL;
        sequence = sqlipc_watch_sequence(watch->watch);
        link_leave(watch->link);
        return PyLong_FromUnsignedLongLong(sequence);
}

static PyMethodDef watch_methods[] = {
        { "next", (PyCFunction) watch_next, METH_O, watch_next_doc },
        { "close", (PyCFunction) watch_close, METH_NOARGS, watch_close_doc },
        { NULL, NULL, 0, NULL },
};

static PyGetSetDef watch_properties[] = {
        { "sequence", (getter) watch_get_sequence, NULL, "The change sequence of the database at the last change.", NULL },
        { NULL, NULL, NULL, NULL, NULL },
};

PyDoc_STRVAR(watch_doc, "A watch. Link.watch() makes it.");

static PyType_Slot watch_slots[] = {
        { Py_tp_doc, (void *) watch_doc },
        { Py_tp_dealloc, (void *) watch_dealloc },
        { Py_tp_methods, watch_methods },
        { Py_tp_getset, watch_properties },
        { 0, NULL },
};

PyType_Spec watch_spec = {
        "sqlipc._native.Watch", sizeof(WatchObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, watch_slots,
};

/* ---- Live queries ------------------------------------------------------------------------------------------------- */

static int open_live(Link *link, const char *sql, const ParameterValues *p, const unsigned *keys, size_t n_keys,
                     uint64_t debounce_usec, sqlipc_live **ret) {
        const sqlipc_live_options options = {
                .struct_size = sizeof options,
                .key_columns = keys,
                .n_key_columns = n_keys,
                .debounce_usec = debounce_usec,
        };

        return sqlipc_live_open(link->connection, link->database, sql, p->values, p->n, &options, ret);
}

/* NULL with an exception. */
static unsigned *read_keys(PyObject *columns) {
        Py_ssize_t n = PyTuple_Size(columns);
        unsigned *keys = n < 0 ? NULL : calloc((size_t) n + 1, sizeof *keys);

        if (!keys)
                PyErr_NoMemory();
        for (Py_ssize_t i = 0; keys && i < n; i++) {
                unsigned long key = PyLong_AsUnsignedLong(PyTuple_GetItem(columns, i));

                if (PyErr_Occurred()) {
                        free(keys);
                        return NULL;
                }
                keys[i] = key < UINT32_MAX ? (unsigned) key : UINT32_MAX;
        }
        return keys;
}

PyObject *live_open(Link *link, Sql *sql, PyObject *source, PyObject *columns, double debounce) {
        LiveObject *live = (LiveObject *) ((allocfunc) PyType_GetSlot(live_type, Py_tp_alloc))(live_type, 0);
        const char *text = PyUnicode_AsUTF8AndSize(sql->text, NULL);
        unsigned *keys = live && text ? read_keys(columns) : NULL;
        ParameterValues parameters = {};
        LinkFailure failure;
        int r = -1;

        if (keys && parameters_read(&parameters, sql, source) && link_enter(link)) {
                r = open_live(link, text, &parameters, keys, (size_t) PyTuple_Size(columns), (uint64_t) (debounce * 1e6),
                              &live->live);
                if (r < 0)
                        failure = link_failure(link, r);
                link_leave(link);
                if (r < 0)
                        link_raise(&failure);
        }
        parameters_done(&parameters);
        free(keys);
        if (r < 0) {
                Py_XDECREF(OBJECT(live));
                return NULL;
        }
        Py_INCREF(OBJECT(link));
        live->link = link;
        return (PyObject *) live;
}

static PyObject *new_row(const sqlipc_value *values, unsigned n) {
        PyObject *row;

        if (!values)
                Py_RETURN_NONE;
        row = PyTuple_New(n);
        for (unsigned i = 0; row && i < n; i++) {
                PyObject *value = value_to_object(&values[i]);

                if (value)
                        PyTuple_SetItem(row, i, value);
                else
                        Py_CLEAR(row);
        }
        return row;
}

static PyObject *new_change(const sqlipc_live_change *change, unsigned n) {
        PyObject *row = new_row(change->values, n), *old = row ? new_row(change->old_values, n) : NULL, *result = NULL;

        if (row && old)
                result = Py_BuildValue("(innOO)", (int) change->kind, (Py_ssize_t) change->position,
                                       (Py_ssize_t) change->new_position, row, old);
        Py_XDECREF(row);
        Py_XDECREF(old);
        return result;
}

/* 1: `*ret` is a change; 0: nothing yet; -1: an exception. The values stay until the next call, and the object is busy. */
static int take_change(LiveObject *live, PyObject **ret) {
        const sqlipc_live_change *change;
        LinkFailure failure;
        unsigned n;
        int r;

        if (!link_enter(live->link))
                return -1;
        r = sqlipc_live_next(live->live, 0, &change);
        n = sqlipc_live_column_count(live->live);
        if (r < 0 && r != -EAGAIN)
                failure = link_failure(live->link, r);
        link_leave(live->link);
        if (r == -EAGAIN)
                return 0;
        if (r < 0) {
                link_raise(&failure);
                return -1;
        }
        if (r > 0)
                *ret = new_change(change, n);
        return r > 0 && !*ret ? -1 : r;
}

PyDoc_STRVAR(live_next_doc,
             "next(seconds) -> tuple | None\n\nWait for a change: (kind, position, new position, row, old row).");

static PyObject *live_next(LiveObject *live, PyObject *seconds) {
        unsigned n_interrupts = live->link->n_interrupts;
        PyObject *change = NULL;
        uint64_t until;
        int r;

        if (!read_until(seconds, &until))
                return NULL;
        do {
                if (!live->live)
                        return raise_closed();
                if (live->is_busy)
                        return native_raise("ProgrammingError", "Recursive use of cursors not allowed.");
                live->is_busy = true;
                r = take_change(live, &change);
                live->is_busy = false;
        } while (r == 0 && (r = wait_for_news(live->link, until, n_interrupts)) > 0 && !change);
        if (r < 0 || change)
                return change;
        Py_RETURN_NONE;
}

PyDoc_STRVAR(live_close_doc, "close()\n\nEnd the live query.");

static PyObject *live_close(LiveObject *live, PyObject *unused) {
        if (!link_check_thread(live->link))
                return NULL;
        if (live->is_busy)
                return native_raise("ProgrammingError", "Recursive use of cursors not allowed.");
        if (live->live)
                link_bury(live->link, GRAVE_LIVE, live->live);
        live->live = NULL;
        Py_RETURN_NONE;
}

static void live_dealloc(LiveObject *live) {
        PyTypeObject *type = Py_TYPE(OBJECT(live));

        if (live->live)
                link_bury(live->link, GRAVE_LIVE, live->live);
        Py_CLEAR(live->link);
        ((freefunc) PyType_GetSlot(type, Py_tp_free))(live);
        Py_DECREF(OBJECT(type));
}

static PyObject *live_get_columns(LiveObject *live, void *unused) {
        PyObject *names;

        if (!live->live)
                return raise_closed();
        /* The strings stay until the next change is taken, which needs the GIL first. */
        names = PyTuple_New(sqlipc_live_column_count(live->live));
        for (unsigned i = 0; names && i < PyTuple_Size(names); i++) {
                PyObject *name = PyUnicode_FromString(sqlipc_live_column_name(live->live, i));

                if (name)
                        PyTuple_SetItem(names, i, name);
                else
                        Py_CLEAR(names);
        }
        return names;
}

static PyMethodDef live_methods[] = {
        { "next", (PyCFunction) live_next, METH_O, live_next_doc },
        { "close", (PyCFunction) live_close, METH_NOARGS, live_close_doc },
        { NULL, NULL, 0, NULL },
};

static PyGetSetDef live_properties[] = {
        { "columns", (getter) live_get_columns, NULL, "The names of the columns, after the first change.", NULL },
        { NULL, NULL, NULL, NULL, NULL },
};

PyDoc_STRVAR(live_doc, "A live query. Link.live() makes it.");

static PyType_Slot live_slots[] = {
        { Py_tp_doc, (void *) live_doc },
        { Py_tp_dealloc, (void *) live_dealloc },
        { Py_tp_methods, live_methods },
        { Py_tp_getset, live_properties },
        { 0, NULL },
};

PyType_Spec live_spec = {
        "sqlipc._native.Live", sizeof(LiveObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, live_slots,
};
