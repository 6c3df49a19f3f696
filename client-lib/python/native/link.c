/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A connection to the service and one of its databases (native.h). */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client-lib/python/native/native.h"

struct Grave {
        Grave *next;
        GraveKind kind;
        void *object;
};

/* ---- Forks -------------------------------------------------------------------------------------------------------- */

/* Greater by one in a child of fork() than in its parent. To ask for the number of the process would be a system call, and
 * each query checks it several times. */
static unsigned n_forks;

static void on_fork(void) { n_forks++; }

__attribute__((constructor)) static void count_forks(void) { (void) pthread_atfork(NULL, NULL, on_fork); }

/* True in a child of the process that opened the link. The child may only close it. */
static bool is_foreign(const Link *link) { return link->forks != n_forks; }

/* ---- The lock ----------------------------------------------------------------------------------------------------- */

static void close_object(GraveKind kind, void *object) {
        switch (kind) {
        case GRAVE_CURSOR:
                sqlipc_cursor_close(object);
                break;
        case GRAVE_STATEMENT:
                sqlipc_finalize(object);
                break;
        case GRAVE_TRANSACTION:
                sqlipc_transaction_close(object);
                break;
        case GRAVE_LOAD:
                sqlipc_load_close(object);
                break;
        case GRAVE_WATCH:
                sqlipc_watch_close(object);
                break;
        case GRAVE_LIVE:
                sqlipc_live_close(object);
                break;
        }
}

static void bury_all(Link *link) {
        Grave *grave;

        while ((grave = link->graves)) {
                link->graves = grave->next;
                close_object(grave->kind, grave->object);
                free(grave);
        }
}

void link_bury(Link *link, GraveKind kind, void *object) {
        bool foreign = is_foreign(link); /* its threads did not come along, so nothing else uses the copies */
        Grave *grave;

        if (!object)
                return;
        if (foreign || PyThread_acquire_lock(link->lock, NOWAIT_LOCK)) {
                close_object(kind, object);
                if (!foreign)
                        link_leave(link);
                return;
        }
        grave = malloc(sizeof *grave);
        if (!grave)
                return; /* it stays open until the connection closes */
        *grave = (Grave){ link->graves, kind, object };
        link->graves = grave;
}

bool link_check_thread(const Link *link) {
        if (link->thread == 0 || link->thread == PyThread_get_thread_ident())
                return true;
        native_raise("ProgrammingError",
                     "SQLite objects created in a thread can only be used in that same thread. "
                     "The object was created in thread id %lu and this is thread id %lu.",
                     link->thread, PyThread_get_thread_ident());
        return false;
}

bool link_check(const Link *link) {
        if (!link->connection)
                native_raise("ProgrammingError", "Cannot operate on a closed database.");
        else if (is_foreign(link))
                native_raise("ProgrammingError", "The connection belongs to the parent of this process: open another one.");
        else
                return link_check_thread(link);
        return false;
}

bool link_enter(Link *link) {
        if (!link_check(link))
                return false;
        if (!PyThread_acquire_lock(link->lock, NOWAIT_LOCK)) {
                Py_BEGIN_ALLOW_THREADS PyThread_acquire_lock(link->lock, WAIT_LOCK);
                Py_END_ALLOW_THREADS
        }
        if (link->connection) /* it may have been closed meanwhile */
                return true;
        link_leave(link);
        return link_check(link);
}

void link_leave(Link *link) {
        bury_all(link);
        PyThread_release_lock(link->lock);
}

/* ---- Failures ----------------------------------------------------------------------------------------------------- */

static char *copy(const char *text) { return text ? strdup(text) : NULL; }

static LinkFailure failure_of(sqlipc_connection *connection, int r) {
        return (LinkFailure){
                .r = r,
                .code = (int) sqlipc_error_code(connection),
                .sqlite_code = sqlipc_error_sqlite_extended_code(connection),
                .sql_offset = sqlipc_error_sql_offset(connection),
                .name = copy(sqlipc_error_name(connection)),
                .message = copy(sqlipc_error_message(connection)),
        };
}

LinkFailure link_failure(Link *link, int r) { return failure_of(link->connection, r); }

void link_failure_done(LinkFailure *f) {
        free(f->name);
        free(f->message);
        *f = (LinkFailure) {};
}

PyObject *link_raise(LinkFailure *f) {
        PyObject *make = native_error_class("make_error"), *error = NULL;

        if (make)
                error = PyObject_CallFunction(make, "iizziis", f->r, f->code, f->name, f->message, f->sqlite_code,
                                              f->sql_offset, strerror(-f->r));
        if (error)
                PyErr_SetObject((PyObject *) Py_TYPE(error), error);
        Py_XDECREF(error);
        Py_XDECREF(make);
        link_failure_done(f);
        return NULL;
}

bool link_check_loss(Link *link) {
        LinkFailure untold = link->untold;

        if (untold.r == 0)
                return true;
        link->untold = (LinkFailure) {};
        link_raise(&untold);
        return false;
}

/* ---- Waiting ------------------------------------------------------------------------------------------------------ */

uint64_t link_now_usec(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * 1000000 + (uint64_t) t.tv_nsec / 1000;
}

/* The lock is held, and the GIL is not. */
static int poll_once(sqlipc_connection *connection, uint64_t until) {
        struct pollfd fd = { .fd = sqlipc_get_fd(connection), .events = (short) sqlipc_get_events(connection) };
        uint64_t now = link_now_usec(), wake = 0;
        int r = sqlipc_get_timeout(connection, &wake);

        wake = wake < now + SLICE_USEC ? wake : now + SLICE_USEC;
        wake = wake < until ? wake : until;
        if (r >= 0 && fd.fd >= 0)
                r = poll(&fd, 1, wake > now ? (int) ((wake - now + 999) / 1000) : 0);
        if (r < 0 && errno != EINTR)
                return -errno;
        r = sqlipc_process(connection);
        return r < 0 ? r : 0;
}

int link_wait(Link *link, uint64_t until) {
        LinkFailure failure;
        int r;

        if (!link->waits) {
                PyErr_SetNone(PyExc_BlockingIOError);
                return -1;
        }
        if (until != UINT64_MAX && link_now_usec() >= until)
                return 0;
        if (!link_enter(link))
                return -1;
        Py_BEGIN_ALLOW_THREADS r = poll_once(link->connection, until);
        Py_END_ALLOW_THREADS if (r < 0) failure = link_failure(link, r);
        link_leave(link);
        if (r < 0) {
                link_raise(&failure);
                return -1;
        }
        return PyErr_CheckSignals() < 0 ? -1 : 1;
}

/* ---- The type ----------------------------------------------------------------------------------------------------- */

static int open_bus(const char *bus, const char *host, sqlipc_connection **ret) {
        bool is_system = strcmp(bus, "system") == 0, is_user = strcmp(bus, "user") == 0;

        if (host)
                return is_system ? sqlipc_open_system_remote(host, ret) : sqlipc_open_user_remote(host, ret);
        if (is_system || is_user)
                return is_system ? sqlipc_open_system(ret) : sqlipc_open_user(ret);
        return sqlipc_open_address(bus, ret);
}

PyObject *link_find_bus(PyObject *module, PyObject *arguments) {
        const char *name, *chosen, *bus = NULL;
        sqlipc_connection *connection = NULL;
        LinkFailure failure;
        int r;

        if (!PyArg_ParseTuple(arguments, "sz:find_bus", &name, &chosen))
                return NULL;
        Py_BEGIN_ALLOW_THREADS r = sqlipc_open(name, chosen, &connection);
        if (r < 0 && connection)
                failure = failure_of(connection, r);
        else if (r >= 0)
                bus = sqlipc_get_bus_name(connection);
        sqlipc_close(connection);
        Py_END_ALLOW_THREADS if (r >= 0) return PyUnicode_FromString(bus ? bus : getenv("SQLIPC_BUS"));
        if (connection)
                return link_raise(&failure);
        if (chosen)
                return native_raise("OperationalError", "Cannot connect to the bus %s: %s", chosen, strerror(-r));
        return native_raise("OperationalError", "Cannot connect to a bus that has the database \"%s\": %s", name,
                            strerror(-r));
}

static PyObject *link_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
        static const char *const names[] = { "database", "bus", "host", "waits", "one_thread", NULL };
        const char *database, *bus, *host;
        int waits, one_thread, r;
        Link *link;

        if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "sszpp:Link", (char **) names, &database, &bus, &host, &waits,
                                         &one_thread))
                return NULL;
        link = (Link *) ((allocfunc) PyType_GetSlot(type, Py_tp_alloc))(type, 0);
        if (!link)
                return NULL;
        link->waits = waits;
        link->forks = n_forks;
        link->thread = one_thread ? PyThread_get_thread_ident() : 0;
        link->database = strdup(database);
        link->lock = PyThread_allocate_lock();
        if (!link->database || !link->lock) {
                Py_DECREF(OBJECT(link));
                return PyErr_NoMemory();
        }
        r = open_bus(bus, host, &link->connection);
        if (r < 0) {
                native_raise("OperationalError", "Cannot connect to the bus %s: %s", host ? host : bus, strerror(-r));
                Py_DECREF(OBJECT(link));
                return NULL;
        }
        (void) sqlipc_set_blocking(link->connection, 0);
        (void) sqlipc_set_timeout(link->connection, SLICE_USEC);
        return (PyObject *) link;
}

static void link_dealloc(Link *link) {
        PyTypeObject *type = Py_TYPE(OBJECT(link));

        bury_all(link); /* what was left by objects that have no reference to it any more */
        sqlipc_connection_unref(link->connection);
        link_failure_done(&link->untold);
        if (link->lock)
                PyThread_free_lock(link->lock);
        free(link->database);
        ((freefunc) PyType_GetSlot(type, Py_tp_free))(link);
        Py_DECREF(OBJECT(type));
}

PyDoc_STRVAR(close_doc, "close()\n\nClose the connection at once. Runs, transactions and loads of it end.");

static PyObject *link_close(Link *link, PyObject *unused) {
        sqlipc_connection *connection;

        if (!link->connection)
                Py_RETURN_NONE;
        if (is_foreign(link)) {
                link->connection = sqlipc_close(link->connection);
                Py_RETURN_NONE;
        }
        if (!link_check(link)) /* of another thread: its runs must go on */
                return NULL;
        (void) sqlipc_interrupt(link->connection); /* another thread may wait in a call */
        if (!link_enter(link))
                return NULL;
        connection = link->connection;
        link->connection = NULL;
        sqlipc_close(connection);
        link_leave(link);
        Py_RETURN_NONE;
}

PyDoc_STRVAR(check_doc, "check()\n\nRaise if the link is closed, or belongs to another thread or process.");

static PyObject *check(Link *link, PyObject *unused) {
        if (!link_check(link))
                return NULL;
        Py_RETURN_NONE;
}

PyDoc_STRVAR(check_thread_doc, "check_thread()\n\nRaise if the link belongs to another thread.");

static PyObject *check_thread(Link *link, PyObject *unused) {
        if (!link_check_thread(link))
                return NULL;
        Py_RETURN_NONE;
}

PyDoc_STRVAR(interrupt_doc, "interrupt()\n\nEnd everything in progress. May be called from any thread.");

static PyObject *link_interrupt(Link *link, PyObject *unused) {
        if (!link->connection)
                return native_raise("ProgrammingError", "Cannot operate on a closed database.");
        link->n_interrupts++;
        (void) sqlipc_interrupt(link->connection);
        Py_RETURN_NONE;
}

PyDoc_STRVAR(fileno_doc, "fileno() -> int\n\nThe descriptor to poll for input before process().");

static PyObject *link_fileno(Link *link, PyObject *unused) {
        int fd;

        if (!link_enter(link))
                return NULL;
        fd = sqlipc_get_fd(link->connection);
        link_leave(link);
        return PyLong_FromLong(fd);
}

PyDoc_STRVAR(delay_doc,
             "delay() -> float | None\n\nSeconds until process() should be called at the latest; None: no limit.");

static PyObject *link_delay(Link *link, PyObject *unused) {
        uint64_t until = UINT64_MAX, now = link_now_usec();

        if (!link_enter(link))
                return NULL;
        (void) sqlipc_get_timeout(link->connection, &until);
        link_leave(link);
        if (until == UINT64_MAX)
                Py_RETURN_NONE;
        return PyFloat_FromDouble(until > now ? (double) (until - now) / 1e6 : 0);
}

PyDoc_STRVAR(process_doc, "process()\n\nDo what can be done without waiting.");

static PyObject *link_process(Link *link, PyObject *unused) {
        LinkFailure failure;
        int r;

        if (!link_enter(link))
                return NULL;
        r = sqlipc_process(link->connection);
        if (r < 0)
                failure = link_failure(link, r);
        link_leave(link);
        if (r < 0)
                return link_raise(&failure);
        Py_RETURN_NONE;
}

PyDoc_STRVAR(start_doc, "start(sql, parameters) -> Run\n\nStart a run, without waiting for it.");

static PyObject *link_start(Link *link, PyObject *const *arguments, Py_ssize_t n) {
        if (n == 2 && PyObject_TypeCheck(arguments[0], sql_type))
                return run_start(link, (Sql *) arguments[0], arguments[1]);
        PyErr_SetString(PyExc_TypeError, "A run needs a Sql and its parameters.");
        return NULL;
}

PyDoc_STRVAR(execute_doc, "execute(sql, parameters) -> Run\n\nStart a run, and wait for its first row or its end.");

static PyObject *link_execute(Link *link, PyObject *const *arguments, Py_ssize_t n) {
        PyObject *run = link_start(link, arguments, n);

        if (run && run_advance((RunObject *) run) < 0)
                Py_CLEAR(run);
        return run;
}

PyDoc_STRVAR(begin_doc,
             "begin(mode) -> Transaction\n\nBegin a transaction, READ, WRITE or DEFERRED, without waiting for it.");

static PyObject *link_begin(Link *link, PyObject *mode) {
        long value = PyLong_AsLong(mode);

        return value == -1 && PyErr_Occurred() ? NULL : transaction_begin(link, (int) value);
}

PyDoc_STRVAR(load_doc, "load(sql) -> Load\n\nBegin a load.");

static PyObject *link_load(Link *link, PyObject *sql) {
        if (!PyObject_TypeCheck(sql, sql_type)) {
                PyErr_SetString(PyExc_TypeError, "load() takes a Sql.");
                return NULL;
        }
        return load_begin(link, (Sql *) sql);
}

PyDoc_STRVAR(watch_doc, "watch(tables) -> Watch\n\nBegin to watch tables, a tuple of names; empty: all.");

static PyObject *link_watch(Link *link, PyObject *tables) {
        if (PyTuple_Check(tables))
                return watch_open(link, tables);
        PyErr_SetString(PyExc_TypeError, "watch() takes a tuple.");
        return NULL;
}

PyDoc_STRVAR(live_doc, "live(sql, parameters, columns, debounce) -> Live\n\nOpen a live query.");

static PyObject *link_live(Link *link, PyObject *arguments) {
        PyObject *parameters, *columns;
        double debounce;
        Sql *sql;

        if (!PyArg_ParseTuple(arguments, "O!OO!d:live", sql_type, &sql, &parameters, &PyTuple_Type, &columns, &debounce))
                return NULL;
        return live_open(link, sql, parameters, columns, debounce);
}

PyDoc_STRVAR(drain_doc, "drain()\n\nRead the rows of all open runs into memory.");

static PyObject *link_drain(Link *link, PyObject *unused) {
        if (link->runs && run_drain_all(link) < 0)
                return NULL;
        Py_RETURN_NONE;
}

/* The visitor has the GIL only while it makes Python objects. It runs with the lock, and no Python code. */
static int add_database(const sqlipc_database *database, void *userdata) {
        PyGILState_STATE state = PyGILState_Ensure();
        PyObject *entry = Py_BuildValue("(sss)", sqlipc_database_name(database), sqlipc_database_description(database),
                                        sqlipc_database_mode(database));
        int r = entry ? PyList_Append(userdata, entry) : -1;

        Py_XDECREF(entry);
        PyGILState_Release(state);
        return r;
}

PyDoc_STRVAR(databases_doc, "databases() -> list of (name, description, mode)\n\nThe databases that the user may use.");

static PyObject *link_databases(Link *link, PyObject *unused) {
        PyObject *list = PyList_New(0);
        LinkFailure failure;
        int r;

        if (!list || !link_enter(link)) {
                Py_XDECREF(list);
                return NULL;
        }
        Py_BEGIN_ALLOW_THREADS(void) sqlipc_set_timeout(link->connection, 25 * 1000000);
        r = sqlipc_list_databases(link->connection, add_database, list);
        (void) sqlipc_set_timeout(link->connection, SLICE_USEC);
        Py_END_ALLOW_THREADS if (r < 0 && !PyErr_Occurred()) failure = link_failure(link, r);
        link_leave(link);
        if (r < 0) {
                Py_DECREF(list);
                return PyErr_Occurred() ? NULL : link_raise(&failure);
        }
        return list;
}

PyDoc_STRVAR(set_doc, "set(name, value)\n\nSet run_timeout (seconds, 0: the service's), lock_wait (seconds, -1: the"
                      " service's), row_memory_max (bytes), transport (0 automatic, 1 pipe, 2 channel, 3 D-Bus).");

static PyObject *link_set(Link *link, PyObject *arguments) {
        const char *name;
        double value;
        LinkFailure failure;
        int r = -EINVAL;

        if (!PyArg_ParseTuple(arguments, "sd:set", &name, &value) || !link_enter(link))
                return NULL;
        if (strcmp(name, "run_timeout") == 0)
                r = sqlipc_set_run_timeout(link->connection, value > 0 ? (uint64_t) (value * 1e6) : UINT64_MAX);
        else if (strcmp(name, "lock_wait") == 0)
                r = sqlipc_set_lock_wait(link->connection,
                                         value >= 0 && value <= 1e9 ? (uint64_t) (value * 1e6) : UINT64_MAX);
        else if (strcmp(name, "row_memory_max") == 0)
                r = sqlipc_set_row_memory_max(link->connection, (size_t) value);
        else if (strcmp(name, "transport") == 0)
                r = sqlipc_set_transport(link->connection, (sqlipc_transport) value);
        if (r < 0)
                failure = link_failure(link, r);
        link_leave(link);
        if (r < 0)
                return link_raise(&failure);
        Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
        { "close", (PyCFunction) link_close, METH_NOARGS, close_doc },
        { "check", (PyCFunction) check, METH_NOARGS, check_doc },
        { "check_thread", (PyCFunction) check_thread, METH_NOARGS, check_thread_doc },
        { "interrupt", (PyCFunction) link_interrupt, METH_NOARGS, interrupt_doc },
        { "fileno", (PyCFunction) link_fileno, METH_NOARGS, fileno_doc },
        { "delay", (PyCFunction) link_delay, METH_NOARGS, delay_doc },
        { "process", (PyCFunction) link_process, METH_NOARGS, process_doc },
        { "start", (PyCFunction) (void (*)(void)) link_start, METH_FASTCALL, start_doc },
        { "execute", (PyCFunction) (void (*)(void)) link_execute, METH_FASTCALL, execute_doc },
        { "begin", (PyCFunction) link_begin, METH_O, begin_doc },
        { "load", (PyCFunction) link_load, METH_O, load_doc },
        { "watch", (PyCFunction) link_watch, METH_O, watch_doc },
        { "live", (PyCFunction) link_live, METH_VARARGS, live_doc },
        { "drain", (PyCFunction) link_drain, METH_NOARGS, drain_doc },
        { "databases", (PyCFunction) link_databases, METH_NOARGS, databases_doc },
        { "set", (PyCFunction) link_set, METH_VARARGS, set_doc },
        { NULL, NULL, 0, NULL },
};

static PyObject *link_is_closed(Link *link, void *unused) { return PyBool_FromLong(!link->connection); }

static PyObject *link_n_interrupts(Link *link, void *unused) { return PyLong_FromUnsignedLong(link->n_interrupts); }

static PyGetSetDef properties[] = {
        { "closed", (getter) link_is_closed, NULL, "True after close().", NULL },
        { "n_interrupts", (getter) link_n_interrupts, NULL, "How often interrupt() was called.", NULL },
        { NULL, NULL, NULL, NULL, NULL },
};

PyDoc_STRVAR(link_doc,
             "Link(database, bus, host, waits, one_thread)\n\nA connection to the service and one database of it.");

static PyType_Slot link_slots[] = {
        { Py_tp_doc, (void *) link_doc }, { Py_tp_new, (void *) link_new }, { Py_tp_dealloc, (void *) link_dealloc },
        { Py_tp_methods, methods },       { Py_tp_getset, properties },     { 0, NULL },
};

PyType_Spec link_spec = { "sqlipc._native.Link", sizeof(Link), 0, Py_TPFLAGS_DEFAULT, link_slots };
