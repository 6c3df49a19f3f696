/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sqlipc.Row: a row whose values also have names (native.h). It keeps the tuple and the cursor's description. */
#include "client-lib/python/native/native.h"

typedef struct Row {
        PyObject_HEAD PyObject *values; /* tuple */
        PyObject *description;          /* tuple of tuples that begin with a name; or None */
} Row;

static PyObject *row_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
        PyObject *cursor, *values, *description;
        Row *row;

        if (keywords && PyDict_Size(keywords) > 0) {
                PyErr_SetString(PyExc_TypeError, "Row() takes no keyword arguments");
                return NULL;
        }
        if (!PyArg_ParseTuple(arguments, "OO!:Row", &cursor, &PyTuple_Type, &values))
                return NULL;
        description = PyObject_GetAttrString(cursor, "description");
        if (!description) {
                if (PyErr_ExceptionMatches(PyExc_AttributeError))
                        PyErr_SetString(PyExc_TypeError, "Row() argument 1 must be a cursor");
                return NULL;
        }
        row = (Row *) ((allocfunc) PyType_GetSlot(type, Py_tp_alloc))(type, 0);
        if (!row) {
                Py_DECREF(description);
                return NULL;
        }
        Py_INCREF(values);
        row->values = values;
        row->description = description;
        return (PyObject *) row;
}

static int traverse(Row *row, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(OBJECT(row)));
        Py_VISIT(row->values);
        Py_VISIT(row->description);
        return 0;
}

static int clear(Row *row) {
        Py_CLEAR(row->values);
        Py_CLEAR(row->description);
        return 0;
}

static void row_dealloc(Row *row) {
        PyTypeObject *type = Py_TYPE(OBJECT(row));

        PyObject_GC_UnTrack(row);
        (void) clear(row);
        ((freefunc) PyType_GetSlot(type, Py_tp_free))(row);
        Py_DECREF(OBJECT(type));
}

static Py_ssize_t n_names(const Row *row) { return row->description == Py_None ? 0 : PyTuple_Size(row->description); }

/* Borrowed; NULL with an exception. */
static PyObject *name_of(const Row *row, Py_ssize_t i) {
        PyObject *column = PyTuple_GetItem(row->description, i);

        return column ? PyTuple_GetItem(column, 0) : NULL;
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char) (c + ('a' - 'A')) : c; }

/* Names of columns differ in more than the case of ASCII letters, as in SQLite. */
static bool is_same_name(const char *a, const char *b) {
        for (; *a && lower(*a) == lower(*b); a++, b++)
                ;
        return *a == '\0' && *b == '\0';
}

static PyObject *by_name(Row *row, PyObject *key) {
        const char *wanted = PyUnicode_AsUTF8AndSize(key, NULL);

        for (Py_ssize_t i = 0; wanted && i < n_names(row); i++) {
                PyObject *name = name_of(row, i);
                const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;

                if (!text)
                        return NULL;
                if (is_same_name(text, wanted)) {
                        PyObject *value = PyTuple_GetItem(row->values, i);

                        Py_XINCREF(value);
                        return value;
                }
        }
        if (wanted)
                PyErr_SetString(PyExc_IndexError, "No item with that key");
        return NULL;
}

static PyObject *subscript(Row *row, PyObject *key) {
        if (PyUnicode_Check(key))
                return by_name(row, key);
        if (PyLong_Check(key) || PySlice_Check(key))
                return PyObject_GetItem(row->values, key);
        PyErr_SetString(PyExc_IndexError, "Index must be int or string");
        return NULL;
}

static Py_ssize_t length(Row *row) { return PyTuple_Size(row->values); }

static PyObject *item(Row *row, Py_ssize_t i) {
        PyObject *value = PyTuple_GetItem(row->values, i);

        Py_XINCREF(value);
        return value;
}

static PyObject *iterate(Row *row) { return PyObject_GetIter(row->values); }

PyDoc_STRVAR(keys_doc, "keys() -> list\n\nThe names of the columns.");

static PyObject *keys(Row *row, PyObject *unused) {
        PyObject *list = PyList_New(0);

        for (Py_ssize_t i = 0; list && i < n_names(row); i++) {
                PyObject *name = name_of(row, i);

                if (!name || PyList_Append(list, name) < 0)
                        Py_CLEAR(list);
        }
        return list;
}

static Py_hash_t hash(Row *row) {
        Py_hash_t a = PyObject_Hash(row->description), b = a == -1 ? -1 : PyObject_Hash(row->values);

        return b == -1 ? -1 : (a ^ b) == -1 ? -2 : a ^ b;
}

static PyObject *compare(Row *row, PyObject *other, int operation) {
        int is_equal;

        if ((operation != Py_EQ && operation != Py_NE) || Py_TYPE(other) != Py_TYPE(OBJECT(row)))
                Py_RETURN_NOTIMPLEMENTED;
        is_equal = PyObject_RichCompareBool(row->description, ((Row *) other)->description, Py_EQ);
        if (is_equal > 0)
                is_equal = PyObject_RichCompareBool(row->values, ((Row *) other)->values, Py_EQ);
        return is_equal < 0 ? NULL : PyBool_FromLong(operation == Py_EQ ? is_equal : !is_equal);
}

static PyObject *repr(Row *row) { return PyUnicode_FromFormat("<sqlipc.Row object at %p>", (void *) row); }

static PyMethodDef methods[] = {
        { "keys", (PyCFunction) keys, METH_NOARGS, keys_doc },
        { NULL, NULL, 0, NULL },
};

PyDoc_STRVAR(row_doc,
             "Row(cursor, values)\n\nA row whose values can be had by number, slice and name of the column; names are "
             "not case-sensitive. For the attribute row_factory of connections and cursors.");

static PyType_Slot row_slots[] = {
        { Py_tp_doc, (void *) row_doc },
        { Py_tp_new, (void *) row_new },
        { Py_tp_dealloc, (void *) row_dealloc },
        { Py_tp_traverse, (void *) traverse },
        { Py_tp_clear, (void *) clear },
        { Py_tp_methods, methods },
        { Py_tp_hash, (void *) hash },
        { Py_tp_richcompare, (void *) compare },
        { Py_tp_iter, (void *) iterate },
        { Py_tp_repr, (void *) repr },
        { Py_mp_subscript, (void *) subscript },
        { Py_mp_length, (void *) length },
        { Py_sq_item, (void *) item },
        { Py_sq_length, (void *) length },
        { 0, NULL },
};

PyType_Spec row_spec = {
        "sqlipc.Row", sizeof(Row), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, row_slots,
};
