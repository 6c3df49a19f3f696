/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Python values as parameters of a statement (native.h). */
#include <stdlib.h>

#include "client-lib/python/native/native.h"

void parameters_clear(ParameterValues *p) {
        for (size_t i = 0; i < p->n_buffers; i++)
                PyBuffer_Release(&p->buffers[i]);
        p->n = p->n_buffers = 0;
        Py_CLEAR(p->kept);
}

void parameters_done(ParameterValues *p) {
        parameters_clear(p);
        free(p->values);
        free(p->buffers);
        *p = (ParameterValues){};
}

static bool reserve(ParameterValues *p, size_t n) {
        sqlipc_parameter *values;

        if (n <= p->capacity)
                return true;
        values = reallocarray(p->values, n, sizeof *values);
        if (!values) {
                PyErr_NoMemory();
                return false;
        }
        p->values = values;
        p->capacity = n;
        return true;
}

/* Keeps a reference to an object that the caller does not hold. Steals it. */
static bool keep(ParameterValues *p, PyObject *object) {
        bool is_kept;

        if (!p->kept)
                p->kept = PyList_New(0);
        is_kept = p->kept && PyList_Append(p->kept, object) == 0;
        Py_DECREF(object);
        return is_kept;
}

static bool set_integer(sqlipc_parameter *value, PyObject *object) {
        int overflow = 0;
        long long integer = PyLong_AsLongLongAndOverflow(object, &overflow);

        if (overflow) {
                PyErr_SetString(PyExc_OverflowError, "Python int too large to convert to SQLite INTEGER");
                return false;
        }
        value->type = SQLIPC_INTEGER;
        value->integer = integer;
        return integer != -1 || !PyErr_Occurred();
}

static bool set_text(sqlipc_parameter *value, PyObject *object) {
        Py_ssize_t size;
        const char *text = PyUnicode_AsUTF8AndSize(object, &size);

        if (!text)
                return false;
        value->type = SQLIPC_TEXT;
        value->bytes = text;
        value->size = (size_t) size;
        return true;
}

/* The buffer stays exported until parameters_clear(), so that its owner cannot move the bytes. */
static bool set_buffer(ParameterValues *p, sqlipc_parameter *value, PyObject *object) {
        Py_buffer *buffers = reallocarray(p->buffers, p->n_buffers + 1, sizeof *buffers);

        if (!buffers) {
                PyErr_NoMemory();
                return false;
        }
        p->buffers = buffers;
        if (PyObject_GetBuffer(object, &buffers[p->n_buffers], PyBUF_SIMPLE) < 0)
                return false;
        value->type = SQLIPC_BLOB;
        value->bytes = buffers[p->n_buffers].buf ? buffers[p->n_buffers].buf : "";
        value->size = (size_t) buffers[p->n_buffers++].len;
        return true;
}

static void raise_unsupported(const ParameterValues *p, PyObject *object) {
        PyObject *name = PyType_GetName(Py_TYPE(object));

        if (name)
                native_raise("ProgrammingError", "Error binding parameter %zu: type '%U' is not supported", p->n + 1, name);
        Py_XDECREF(name);
}

/* Sets a value of a type that SQLite has, or of a subclass. */
static bool set_adapted(ParameterValues *p, sqlipc_parameter *value, PyObject *object) {
        if (object == Py_None) {
                value->type = SQLIPC_NULL;
                return true;
        }
        if (PyLong_Check(object))
                return set_integer(value, object);
        if (PyFloat_Check(object)) {
                value->type = SQLIPC_REAL;
                value->real = PyFloat_AsDouble(object);
                return value->real != -1 || !PyErr_Occurred();
        }
        if (PyUnicode_Check(object))
                return set_text(value, object);
        if (PyObject_CheckBuffer(object))
                return set_buffer(p, value, object);
        raise_unsupported(p, object);
        return false;
}

static bool are_base_types_adapted;

PyObject *parameters_adapt_base_types(PyObject *module, PyObject *unused) {
        are_base_types_adapted = true;
        Py_RETURN_NONE;
}

/* Of these types few programs adapt values, so their adapters are looked for only after one was registered. */
static bool is_base_type(PyObject *object) {
        PyTypeObject *type = Py_TYPE(object);

        return type == &PyUnicode_Type || type == &PyLong_Type || type == &PyFloat_Type || object == Py_None ||
               type == &PyByteArray_Type;
}

/* Adds one value. */
static bool add(ParameterValues *p, PyObject *object) {
        sqlipc_parameter *value = &p->values[p->n];
        bool is_set;

        *value = (sqlipc_parameter){ .struct_size = sizeof *value };
        if (!are_base_types_adapted && is_base_type(object))
                is_set = set_adapted(p, value, object);
        else {
                PyObject *adapted = native_adapt(object);

                is_set = adapted && set_adapted(p, value, adapted);
                if (adapted && !keep(p, adapted))
                        is_set = false;
        }
        p->n += is_set;
        return is_set;
}

/* ---- Sequences and mappings --------------------------------------------------------------------------------------- */

static bool check_count(size_t wanted, Py_ssize_t given) {
        if (given >= 0 && (size_t) given != wanted)
                native_raise("ProgrammingError",
                             "Incorrect number of bindings supplied. The current statement uses %zu, and "
                             "there are %zd supplied.",
                             wanted, given);
        return given >= 0 && (size_t) given == wanted;
}

static bool read_sequence(ParameterValues *p, size_t n, PyObject *source) {
        bool is_tuple = PyTuple_Check(source), is_list = PyList_Check(source), is_added = true;
        Py_ssize_t given = is_tuple ? PyTuple_Size(source) : PySequence_Size(source);

        if (!check_count(n, given))
                return false;
        for (size_t i = 0; i < n && is_added; i++) {
                /* The items of a tuple stay; those of a list may be replaced by an adapter. */
                PyObject *item = is_tuple  ? PyTuple_GetItem(source, (Py_ssize_t) i)
                                 : is_list ? PyList_GetItem(source, (Py_ssize_t) i)
                                           : PySequence_GetItem(source, (Py_ssize_t) i);

                if (!item)
                        return false;
                if (is_list)
                        Py_INCREF(item);
                if (!is_tuple && !keep(p, item))
                        return false;
                is_added = add(p, item);
        }
        return is_added;
}

static bool read_mapping(ParameterValues *p, const Sql *sql, size_t n, PyObject *source) {
        for (size_t i = 0; i < n; i++) {
                PyObject *name = PyTuple_GetItem(sql->names, (Py_ssize_t) i), *item;

                if (name == Py_None) {
                        native_raise("ProgrammingError",
                                     "Binding %zu has no name, but you supplied a dictionary (which has only "
                                     "names).",
                                     i + 1);
                        return false;
                }
                item = PyObject_GetItem(source, name);
                if (!item && PyErr_ExceptionMatches(PyExc_LookupError)) {
                        PyErr_Clear();
                        native_raise("ProgrammingError", "You did not supply a value for binding parameter :%U.", name);
                }
                if (!item || !keep(p, item) || !add(p, item))
                        return false;
        }
        return true;
}

bool parameters_read(ParameterValues *p, const Sql *sql, PyObject *source) {
        Py_ssize_t n = PyTuple_Size(sql->names);
        bool is_list = PyTuple_Check(source) || PyList_Check(source);

        if (n < 0 || !reserve(p, (size_t) n))
                return false;
        if (is_list || (!PyDict_Check(source) && PySequence_Check(source)))
                return read_sequence(p, (size_t) n, source);
        if (PyMapping_Check(source))
                return read_mapping(p, sql, (size_t) n, source);
        native_raise("ProgrammingError", "parameters are of unsupported type");
        return false;
}
