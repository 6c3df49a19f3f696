/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One SQL text of a connection, and its prepared statement (native.h). */
#include "client-lib/python/native/native.h"

static PyObject *sql_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
        static const char *const names[] = { "link", "text", "names", NULL };
        PyObject *text, *parameters;
        Link *link;
        Sql *sql;

        if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O!UO!:Sql", (char **) names, link_type, &link, &text,
                                         &PyTuple_Type, &parameters))
                return NULL;
        sql = (Sql *) ((allocfunc) PyType_GetSlot(type, Py_tp_alloc))(type, 0);
        if (!sql)
                return NULL;
        Py_INCREF(OBJECT(link));
        Py_INCREF(text);
        Py_INCREF(parameters);
        sql->link = link;
        sql->text = text;
        sql->names = parameters;
        return (PyObject *) sql;
}

static void sql_dealloc(Sql *sql) {
        PyTypeObject *type = Py_TYPE(OBJECT(sql));

        if (sql->link)
                link_bury(sql->link, GRAVE_STATEMENT, sql->statement);
        Py_CLEAR(sql->link);
        Py_CLEAR(sql->text);
        Py_CLEAR(sql->names);
        ((freefunc) PyType_GetSlot(type, Py_tp_free))(sql);
        Py_DECREF(OBJECT(type));
}

static PyObject *get_text(Sql *sql, void *unused) {
        Py_INCREF(sql->text);
        return sql->text;
}

static PyGetSetDef properties[] = {
        { "text", (getter) get_text, NULL, "The SQL.", NULL },
        { NULL, NULL, NULL, NULL, NULL },
};

PyDoc_STRVAR(sql_doc, "Sql(link, text, names)\n\nOne statement. names: of its parameters, None for one without a name.");

static PyType_Slot sql_slots[] = {
        { Py_tp_doc, (void *) sql_doc },
        { Py_tp_new, (void *) sql_new },
        { Py_tp_dealloc, (void *) sql_dealloc },
        { Py_tp_getset, properties },
        { 0, NULL },
};

PyType_Spec sql_spec = { "sqlipc._native.Sql", sizeof(Sql), 0, Py_TPFLAGS_DEFAULT, sql_slots };
