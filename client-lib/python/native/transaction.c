/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Transactions (native.h). */
#include <errno.h>
#include <stdlib.h>

#include "client-lib/python/native/native.h"

typedef struct TransactionObject {
        PyObject_HEAD Link *link;
        sqlipc_transaction *transaction; /* NULL: over */
} TransactionObject;

PyObject *transaction_begin(Link *link, int mode) {
        TransactionObject *t =
                (TransactionObject *) ((allocfunc) PyType_GetSlot(transaction_type, Py_tp_alloc))(transaction_type, 0);
        LinkFailure failure;
        int r;

        if (!t || !link_check_loss(link) || !link_enter(link)) {
                Py_XDECREF(OBJECT(t));
                return NULL;
        }
        r = sqlipc_begin(link->connection, link->database, (sqlipc_transaction_mode) mode, &t->transaction);
        if (r < 0)
                failure = link_failure(link, r);
        else {
                Py_INCREF(OBJECT(link));
                t->link = link;
                link->in_transaction = true;
        }
        link_leave(link);
        if (r >= 0)
                return (PyObject *) t;
        Py_DECREF(OBJECT(t));
        return link_raise(&failure);
}

static void close_transaction(TransactionObject *t) {
        if (!t->link || !t->transaction)
                return;
        t->link->in_transaction = false;
        link_bury(t->link, GRAVE_TRANSACTION, t->transaction);
        t->transaction = NULL;
}

/* 0: not yet; see sqlipc_transaction_is_open(). */
static int is_open(sqlipc_transaction *transaction) {
        int r = sqlipc_transaction_is_open(transaction);

        return r == 0 ? -EAGAIN : r;
}

/* Calls `step` until it returns something else than -EAGAIN, or until the time. 1: done; 0: the time has passed; -1: an
 * exception. */
static int repeat(TransactionObject *t, int (*step)(sqlipc_transaction *), uint64_t until) {
        LinkFailure failure;
        int r, k;

        for (;;) {
                if (!t->transaction) {
                        native_raise("ProgrammingError", "The transaction is over.");
                        return -1;
                }
                if (!link_enter(t->link))
                        return -1;
                r = step(t->transaction);
                if (r < 0 && r != -EAGAIN)
                        failure = link_failure(t->link, r);
                link_leave(t->link);
                if (r >= 0)
                        return 1;
                if (r != -EAGAIN) {
                        link_raise(&failure);
                        return -1;
                }
                k = link_wait(t->link, until);
                if (k <= 0)
                        return k;
        }
}

PyDoc_STRVAR(wait_doc, "wait(seconds) -> bool\n\nWait until the transaction has begun. False: the time has passed.");

static PyObject *wait_open(TransactionObject *t, PyObject *seconds) {
        double value = PyFloat_AsDouble(seconds);
        int r;

        if (value == -1 && PyErr_Occurred())
                return NULL;
        r = repeat(t, is_open, value < 0 || value > 1e9 ? UINT64_MAX : link_now_usec() + (uint64_t) (value * 1e6));
        return r < 0 ? NULL : PyBool_FromLong(r);
}

/* After a failure the transaction stays: Python's caller asks `open` if it is over. */
static PyObject *end(TransactionObject *t, int (*step)(sqlipc_transaction *)) {
        if (repeat(t, step, UINT64_MAX) < 0)
                return NULL;
        close_transaction(t);
        Py_RETURN_NONE;
}

PyDoc_STRVAR(commit_doc, "commit()\n\nCommit, and wait until the changes are durable.");

static PyObject *commit(TransactionObject *t, PyObject *unused) { return end(t, sqlipc_commit); }

PyDoc_STRVAR(rollback_doc, "rollback()\n\nRoll back.");

static PyObject *rollback(TransactionObject *t, PyObject *unused) { return end(t, sqlipc_rollback); }

PyDoc_STRVAR(close_doc, "close()\n\nFree the transaction, and roll it back if it is open, without waiting.");

static PyObject *transaction_close(TransactionObject *t, PyObject *unused) {
        close_transaction(t);
        Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
        { "wait", (PyCFunction) wait_open, METH_O, wait_doc },
        { "commit", (PyCFunction) commit, METH_NOARGS, commit_doc },
        { "rollback", (PyCFunction) rollback, METH_NOARGS, rollback_doc },
        { "close", (PyCFunction) transaction_close, METH_NOARGS, close_doc },
        { NULL, NULL, 0, NULL },
};

/* True as long as the transaction is not known to have ended by itself. */
static PyObject *get_open(TransactionObject *t, void *unused) {
        int r;

        if (!t->transaction || !t->link->connection)
                Py_RETURN_FALSE;
        if (!link_enter(t->link))
                return NULL;
        r = sqlipc_transaction_is_open(t->transaction);
        link_leave(t->link);
        return PyBool_FromLong(r >= 0);
}

static PyGetSetDef properties[] = {
        { "open", (getter) get_open, NULL, "False once the transaction is known to be over.", NULL },
        { NULL, NULL, NULL, NULL, NULL },
};

static void transaction_dealloc(TransactionObject *t) {
        PyTypeObject *type = Py_TYPE(OBJECT(t));

        close_transaction(t);
        Py_CLEAR(t->link);
        ((freefunc) PyType_GetSlot(type, Py_tp_free))(t);
        Py_DECREF(OBJECT(type));
}

PyDoc_STRVAR(transaction_doc, "A transaction. Link.begin() makes it.");

static PyType_Slot transaction_slots[] = {
        { Py_tp_doc, (void *) transaction_doc },
        { Py_tp_dealloc, (void *) transaction_dealloc },
        { Py_tp_methods, methods },
        { Py_tp_getset, properties },
        { 0, NULL },
};

PyType_Spec transaction_spec = {
        "sqlipc._native.Transaction",
        sizeof(TransactionObject),
        0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        transaction_slots,
};
