/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The Python module sqlipc._native (native.h): its types and functions. */
#include <stdarg.h>

#include "client-lib/python/native/native.h"

PyTypeObject *link_type, *sql_type, *run_type, *transaction_type, *load_type, *watch_type, *live_type;
static PyTypeObject *row_type;
static PyObject *errors, *adapters;

PyObject *native_error_class(const char *name) { return PyObject_GetAttrString(errors, name); }

PyObject *native_adapt(PyObject *value) { return PyObject_CallMethod(adapters, "adapt_parameter", "(O)", value); }

PyObject *native_raise(const char *class_name, const char *format, ...) {
        PyObject *class = native_error_class(class_name);
        va_list arguments;

        if (!class)
                return NULL;
        va_start(arguments, format);
        PyErr_FormatV(class, format, arguments);
        va_end(arguments);
        Py_DECREF(class);
        return NULL;
}

PyDoc_STRVAR(library_version_doc, "library_version() -> str\n\nThe version of the libsqlipc that is loaded.");

static PyObject *library_version(PyObject *module, PyObject *unused) { return PyUnicode_FromString(sqlipc_version()); }

PyDoc_STRVAR(find_bus_doc, "find_bus(database, bus) -> str\n\nThe bus that has a database. Waits for the services.");

PyDoc_STRVAR(trace_doc, "trace(callback, sql, is_shown)\n\nCall a trace callback. An error of it ends no statement, as in "
                        "sqlite3; is_shown: it goes to sys.unraisablehook.");

static PyObject *trace(PyObject *module, PyObject *arguments) {
        PyObject *callback, *sql, *result;
        int is_shown;

        if (!PyArg_ParseTuple(arguments, "OOp:trace", &callback, &sql, &is_shown))
                return NULL;
        result = PyObject_CallFunctionObjArgs(callback, sql, NULL);
        if (!result && !PyErr_ExceptionMatches(PyExc_Exception)) /* such as KeyboardInterrupt */
                return NULL;
        if (!result && is_shown)
                PyErr_WriteUnraisable(callback);
        PyErr_Clear();
        Py_XDECREF(result);
        Py_RETURN_NONE;
}

PyDoc_STRVAR(adapt_base_types_doc, "adapt_base_types()\n\nLook for adapters of int, float, str, bytearray and None, too.");

static PyMethodDef functions[] = {
        { "adapt_base_types", parameters_adapt_base_types, METH_NOARGS, adapt_base_types_doc },
        { "find_bus", link_find_bus, METH_VARARGS, find_bus_doc },
        { "trace", trace, METH_VARARGS, trace_doc },
        { "library_version", library_version, METH_NOARGS, library_version_doc },
        { NULL, NULL, 0, NULL },
};

static int add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **type) {
        if (!*type) /* the module may be executed again */
                *type = (PyTypeObject *) PyType_FromSpec(spec);
        return *type ? PyModule_AddType(module, *type) : -1;
}

/* The types are static variables, so that a row costs no search for the state of the module; so only one interpreter may
 * have them. */
static int exec(PyObject *module) {
        if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
                PyErr_SetString(PyExc_ImportError, "sqlipc does not work in a subinterpreter: use the main interpreter, or "
                                                   "a process of its own.");
                return -1;
        }
        if (!errors)
                errors = PyImport_ImportModule("sqlipc._errors");
        if (errors && !adapters)
                adapters = PyImport_ImportModule("sqlipc._adapters");
        if (!errors || !adapters)
                return -1;
        if (add_type(module, &link_spec, &link_type) < 0 || add_type(module, &sql_spec, &sql_type) < 0 ||
            add_type(module, &run_spec, &run_type) < 0 || add_type(module, &transaction_spec, &transaction_type) < 0 ||
            add_type(module, &load_spec, &load_type) < 0 || add_type(module, &row_spec, &row_type) < 0 ||
            add_type(module, &watch_spec, &watch_type) < 0 || add_type(module, &live_spec, &live_type) < 0)
                return -1;
        return PyModule_AddIntConstant(module, "READ", SQLIPC_TRANSACTION_READ) < 0 ||
                               PyModule_AddIntConstant(module, "CANCEL_SECONDS", SQLIPC_CANCEL_WAIT_USEC / 1000000) < 0 ||
                               PyModule_AddIntConstant(module, "WRITE", SQLIPC_TRANSACTION_WRITE) < 0 ||
                               PyModule_AddIntConstant(module, "DEFERRED", SQLIPC_TRANSACTION_DEFERRED) < 0
                       ? -1
                       : 0;
}

static PyModuleDef_Slot slots[] = {
        { Py_mod_exec, (void *) exec },
        { 0, NULL },
};

PyDoc_STRVAR(module_doc, "The C part of the package: connections to the service, runs and rows. Use the package itself.");

static PyModuleDef definition = {
        .m_base = PyModuleDef_HEAD_INIT,
        .m_name = "sqlipc._native",
        .m_doc = module_doc,
        .m_methods = functions,
        .m_slots = slots,
};

PyMODINIT_FUNC PyInit__native(void);
PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&definition); }
