/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Load and Wait for a FakeService (fake-service.h): the service reads the pipe when Wait comes, checks the stream with the
 * decoder, and answers as the test tells it. Tests only.
 */
#ifndef SQLIPC_TESTS_RIGS_FAKE_LOAD_H
#define SQLIPC_TESTS_RIGS_FAKE_LOAD_H

#include "dbus-interfaces/wire/page-decoder.h"
#include "tests/rigs/fake-service.h"

#define FAKE_LOAD UINT64_C(91)

/* The answer of the service to Wait, after it has read. */
typedef enum FakeWait {
        FAKE_WAIT_ANSWERS,      /* with the number of rows after END, else with Cancelled */
        FAKE_WAIT_FAILS,        /* with `error`, of the load */
        FAKE_WAIT_REFUSED,      /* with `error`, of Wait itself */
        FAKE_WAIT_NEVER,        /* answers nothing, and the pipe stays open */
        FAKE_WAIT_DIES,
        FAKE_WAIT_LATE,         /* answers when `late` is no more */
} FakeWait;

typedef struct FakeLoad {
        FakeWait wait;
        const char *error;
        uint64_t n_rows_max;         /* reads no more than so many rows; UINT64_MAX: up to the end */
        atomic_bool paused;          /* reads nothing yet */
        atomic_bool late;            /* FAKE_WAIT_LATE: does not answer yet */
        const char *load_error;      /* answers Load with it; NULL: with a pipe */
        atomic_bool load_late;       /* answers Load when this is false again */
        bool load_never;
        bool gives_read_end;         /* a wrong descriptor */
        bool spliced;                /* has used splice() on the pipe, so that RWF_NOWAIT does not work there */
        uint32_t page_size;
        unsigned n_parameters;
        int read_fd, write_fd;       /* the ends of the pipe; write_fd -1: only the library has it */
        bool keeps_write_fd;
        uint64_t transaction;        /* that Load named, 0: none */
        atomic_int n_load, n_wait, n_farewell; /* farewell: a Wait that wants no reply */
        atomic_int n_unanswered;     /* the load has come, and FAKE_WAIT_NEVER */

        /* what came */
        void (*on_row)(const PageDecoder *d, uint64_t n);
        atomic_ullong n_rows;
        int event;                   /* PAGE_END, or the reason why the stream ended; PAGE_MORE: it is not over */
        unsigned n_columns;
} FakeLoad;

#define FAKE_LOAD_INIT(n)                                                                                             \
        { .n_rows_max = UINT64_MAX, .page_size = 262144, .n_parameters = (n), .read_fd = -1, .write_fd = -1 }

static inline void fake_load_close(FakeLoad *l) {
        if (l->read_fd >= 0)
                close(l->read_fd);
        if (l->write_fd >= 0)
                close(l->write_fd);
        l->read_fd = l->write_fd = -1;
}

/* Refuses a call: the error has no details. */
static inline int fake_load_refuse(sd_bus_message *m, const char *error) {
        char name[100];

        (void) snprintf(name, sizeof name, "org.sqlipc1.Error.%s", error);
        CHECK(fake_answered(sd_bus_reply_method_errorf(m, name, "It failed.")));
        return 1;
}

static inline int fake_load_fail(sd_bus_message *m, const char *error) {
        sd_bus_message *reply = NULL;
        char name[100];

        (void) snprintf(name, sizeof name, "org.sqlipc1.Error.%s", error);
        CHECK(sd_bus_message_new_method_error(m, &reply, &SD_BUS_ERROR_MAKE_CONST(name, "It failed.")) >= 0);
        CHECK(sd_bus_message_append(reply, "ii", 0, -1) >= 0);
        CHECK(fake_answered(sd_bus_send(NULL, reply, NULL)));
        sd_bus_message_unref(reply);
        return 1;
}

static inline void fake_load_read_options(FakeLoad *l, sd_bus_message *m) {
        const char *sql, *key;

        l->transaction = 0;
        CHECK(sd_bus_message_read(m, "s", &sql) > 0);
        CHECK(sd_bus_message_enter_container(m, 'a', "{sv}") > 0);
        while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
                CHECK(sd_bus_message_read(m, "s", &key) > 0);
                if (strcmp(key, "transaction") == 0)
                        CHECK(sd_bus_message_read(m, "v", "t", &l->transaction) > 0);
                else
                        CHECK(sd_bus_message_skip(m, "v") > 0);
                CHECK(sd_bus_message_exit_container(m) >= 0);
        }
}

/* Makes splice() forget that the pipe can be written without waiting. */
static inline void fake_load_splice(int read_fd, int write_fd) {
        int other[2];
        char byte = 0;

        CHECK(pipe2(other, O_CLOEXEC) >= 0);
        CHECK_INT(write(other[1], &byte, 1), 1);
        CHECK_INT(splice(other[0], NULL, write_fd, NULL, 1, 0), 1);
        CHECK_INT(read(read_fd, &byte, 1), 1);
        close(other[0]);
        close(other[1]);
}

static inline int fake_load_answer_load(FakeLoad *l, sd_bus_message *m) {
        sd_bus_message *reply = NULL;
        int fds[2];

        l->n_load++;
        fake_load_read_options(l, m);
        if (l->load_never)
                return 1;
        while (l->load_late)
                usleep(1000);
        if (l->load_error)
                return fake_load_fail(m, l->load_error);
        fake_load_close(l);
        CHECK(pipe2(fds, O_CLOEXEC) >= 0);
        if (l->spliced)
                fake_load_splice(fds[0], fds[1]);
        CHECK(sd_bus_message_new_method_return(m, &reply) >= 0);
        CHECK(sd_bus_message_append(reply, "th", FAKE_LOAD, l->gives_read_end ? fds[0] : fds[1]) >= 0);
        CHECK(sd_bus_message_open_container(reply, 'a', "{sv}") >= 0);
        CHECK(sd_bus_message_append(reply, "{sv}", "page-size", "u", l->page_size) >= 0);
        CHECK(sd_bus_message_open_container(reply, 'e', "sv") >= 0);
        CHECK(sd_bus_message_append(reply, "s", "parameters") >= 0);
        CHECK(sd_bus_message_open_container(reply, 'v', "as") >= 0);
        CHECK(sd_bus_message_open_container(reply, 'a', "s") >= 0);
        for (unsigned i = 0; i < l->n_parameters; i++)
                CHECK(sd_bus_message_append(reply, "s", "") >= 0);
        for (int i = 0; i < 4; i++)
                CHECK(sd_bus_message_close_container(reply) >= 0);
        CHECK(fake_answered(sd_bus_send(sd_bus_message_get_bus(m), reply, NULL)));
        sd_bus_message_unref(reply);
        l->read_fd = fds[0];
        l->write_fd = fds[1];
        if (!l->keeps_write_fd) {
                close(l->write_fd);
                l->write_fd = -1;
        }
        return 1;
}

/* Reads up to END, the end of the file, or `n_rows_max`. */
static inline void fake_load_read(FakeLoad *l) {
        PageDecoder d;

        page_decoder_init(&d, l->page_size, SQLIPC_ROW_SIZE_MAX);
        l->n_rows = 0;
        l->event = PAGE_MORE;
        while (l->n_rows < l->n_rows_max) {
                l->event = page_decoder_next(&d);
                if (l->event == PAGE_COLUMNS)
                        l->n_columns = d.n_columns;
                else if (l->event == PAGE_ROW) {
                        if (l->on_row)
                                l->on_row(&d, l->n_rows);
                        l->n_rows++;
                } else if (l->event == PAGE_MORE) {
                        uint8_t *room;
                        size_t size;
                        ssize_t n;

                        CHECK(page_decoder_reserve(&d, &room, &size) >= 0);
                        n = read(l->read_fd, room, size);
                        CHECK(n >= 0);
                        if (n == 0) {
                                l->event = -ECONNRESET;
                                break;
                        }
                        page_decoder_commit(&d, (size_t) n);
                } else {
                        CHECK_INT(l->event, PAGE_END); /* the stream is valid, always */
                        break;
                }
        }
        page_decoder_done(&d);
}

static inline int fake_load_answer_wait(FakeLoad *l, FakeService *f, sd_bus_message *m) {
        l->n_wait++;
        if (sd_bus_message_get_expect_reply(m) <= 0) {
                l->n_farewell++;
                return 1;
        }
        while (l->paused && !f->stop)
                usleep(1000);
        if (l->read_fd >= 0) /* the library sends a call again that met a service that is shutting down */
                fake_load_read(l);
        switch (l->wait) {
        case FAKE_WAIT_NEVER:
                l->n_unanswered++;
                return 1;
        case FAKE_WAIT_DIES:
                fake_load_close(l);
                f->stop = true;
                return 1;
        case FAKE_WAIT_FAILS:
                fake_load_close(l);
                return fake_load_fail(m, l->error);
        case FAKE_WAIT_REFUSED:
                fake_load_close(l);
                return fake_load_refuse(m, l->error);
        case FAKE_WAIT_LATE:
                while (l->late && !f->stop)
                        usleep(1000);
                break;
        case FAKE_WAIT_ANSWERS:
                break;
        }
        if (l->event == -ECONNRESET)
                return fake_load_fail(m, "Cancelled");
        CHECK(fake_answered(sd_bus_reply_method_return(m, "xa{sv}", (int64_t) l->n_rows, 1, "rows", "t",
                                                       (uint64_t) l->n_rows)));
        return 1;
}

/* 0: the call is neither Load nor Wait. */
static inline int fake_load_on_call(FakeLoad *l, FakeService *f, sd_bus_message *m, const char *member) {
        if (strcmp(member, "Load") == 0)
                return fake_load_answer_load(l, m);
        return strcmp(member, "Wait") == 0 ? fake_load_answer_wait(l, f, m) : 0;
}

#endif
