/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Watch, Unwatch and WaitChange for a FakeService (fake-service.h). A test signals a change with fake_watch_signal(), from
 * its own thread: the service's thread only answers calls. Tests only.
 */
#ifndef SQLIPC_TESTS_RIGS_FAKE_WATCH_H
#define SQLIPC_TESTS_RIGS_FAKE_WATCH_H

#include "tests/rigs/fake-service.h"

#define FAKE_WATCH UINT64_C(500)

typedef struct FakeWatch {
        const char *_Atomic error;   /* answers Watch and WaitChange with it, `n_errors` times; NULL: with a pipe */
        atomic_int n_errors;         /* left */
        atomic_bool refuses_sql;     /* the same for each that has the option sql */
        atomic_bool silent;          /* does not answer */
        atomic_bool gives_write_end; /* a wrong descriptor */
        atomic_bool writes_part;     /* of a number, before the answer */
        atomic_int write_fd;         /* of the last watch, -1: none */
        int old_fd;                  /* of the one before */
        atomic_ullong sequence;      /* the current one */
        sd_bus_message *waiting;     /* WaitChange that waits for a change; the service's thread answers it */
        atomic_int is_waiting;       /* 1: there is one */
        uint64_t since;              /* of `waiting` */
        char tables[100], sql[100];  /* of the last call: "a,b" */
        uint64_t watch_since;        /* the same of Watch, 0: none */
        atomic_int n_watch, n_wait, n_unwatch;
} FakeWatch;

#define FAKE_WATCH_INIT { .write_fd = -1, .old_fd = -1, .sequence = 1000 }

static inline void fake_watch_read(FakeWatch *w, sd_bus_message *m, bool waits) {
        const char *string, *key;

        w->tables[0] = w->sql[0] = 0;
        w->watch_since = 0;
        CHECK(sd_bus_message_enter_container(m, 'a', "s") > 0);
        while (sd_bus_message_read(m, "s", &string) > 0) {
                strcat(w->tables, w->tables[0] ? "," : "");
                strcat(w->tables, string);
        }
        CHECK(sd_bus_message_exit_container(m) >= 0);
        if (waits)
                CHECK(sd_bus_message_read(m, "t", &w->since) > 0);
        CHECK(sd_bus_message_enter_container(m, 'a', "{sv}") > 0);
        while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
                CHECK(sd_bus_message_read(m, "s", &key) > 0);
                if (strcmp(key, "sql") == 0) {
                        CHECK(sd_bus_message_read(m, "v", "s", &string) > 0);
                        (void) snprintf(w->sql, sizeof w->sql, "%s", string);
                } else if (strcmp(key, "since") == 0)
                        CHECK(sd_bus_message_read(m, "v", "t", &w->watch_since) > 0);
                else
                        CHECK(sd_bus_message_skip(m, "v") > 0);
                CHECK(sd_bus_message_exit_container(m) >= 0);
        }
}

static inline void fake_watch_close(FakeWatch *w) {
        int fd = atomic_exchange(&w->write_fd, -1);

        if (fd >= 0)
                close(fd);
}

/* True if the call was answered with an error, or not at all. */
static inline bool fake_watch_refuse(FakeWatch *w, sd_bus_message *m) {
        if (w->silent)
                return true;
        if (w->n_errors <= 0 && !(w->refuses_sql && w->sql[0]))
                return false;
        w->n_errors -= w->n_errors > 0;
        CHECK(fake_answered(sd_bus_reply_method_errorf(m, w->error, "It failed.")));
        return true;
}

static inline void fake_watch_write(FakeWatch *w) {
        uint8_t bytes[8];

        store_le64(bytes, w->sequence);
        CHECK_INT(write(w->write_fd, bytes, sizeof bytes), sizeof bytes);
}

static inline int fake_watch_answer(FakeWatch *w, sd_bus_message *m) {
        int fds[2];

        fake_watch_read(w, m, false);
        w->n_watch++;
        if (fake_watch_refuse(w, m))
                return 1;
        CHECK(pipe2(fds, O_CLOEXEC) >= 0);
        if (w->old_fd >= 0)
                close(w->old_fd);
        w->old_fd = w->write_fd;
        w->write_fd = fds[1]; /* first: the test goes on as soon as it has the answer */
        if (w->writes_part)
                CHECK_INT(write(fds[1], "abc", 3), 3);
        CHECK(fake_answered(sd_bus_reply_method_return(m, "tha{sv}", FAKE_WATCH + (uint64_t) w->n_watch,
                                                       w->gives_write_end ? fds[1] : fds[0], 2, "sequence", "t",
                                                       (uint64_t) w->sequence, "foreign", "s", "inotify")));
        close(fds[0]);
        if (w->watch_since > 0 && w->watch_since != w->sequence)
                fake_watch_write(w);
        return 1;
}

static inline void fake_watch_reply_change(FakeWatch *w) {
        w->is_waiting = 0; /* first: the test goes on as soon as it has the answer */
        CHECK(fake_answered(sd_bus_reply_method_return(w->waiting, "ta{sv}", (uint64_t) w->sequence, 0)));
        w->waiting = sd_bus_message_unref(w->waiting);
}

static inline int fake_watch_wait(FakeWatch *w, sd_bus_message *m) {
        fake_watch_read(w, m, true);
        w->n_wait++;
        if (fake_watch_refuse(w, m))
                return 1;
        sd_bus_message_unref(w->waiting);
        w->waiting = sd_bus_message_ref(m);
        if (w->since != w->sequence)
                fake_watch_reply_change(w);
        else
                w->is_waiting = 1;
        return 1;
}

/* To be called from the service's thread now and then, by way of any call: answers WaitChange if there was a change. */
static inline void fake_watch_turn(FakeWatch *w) {
        if (w->waiting && w->since != w->sequence)
                fake_watch_reply_change(w);
}

/* 0: the call is none of the three. */
static inline int fake_watch_on_call(FakeWatch *w, sd_bus_message *m, const char *member) {
        if (strcmp(member, "Watch") == 0)
                return fake_watch_answer(w, m);
        if (strcmp(member, "WaitChange") == 0)
                return fake_watch_wait(w, m);
        fake_watch_turn(w);
        if (strcmp(member, "Unwatch") != 0)
                return 0;
        CHECK(sd_bus_message_get_expect_reply(m) <= 0);
        w->n_unwatch++;
        return 1;
}

/* Writes the number of a change, which must fit. */
static inline void fake_watch_signal(FakeWatch *w) {
        w->sequence++;
        fake_watch_write(w);
}

static inline void fake_watch_done(FakeWatch *w) {
        fake_watch_close(w);
        if (w->old_fd >= 0)
                close(w->old_fd);
        w->waiting = sd_bus_message_unref(w->waiting);
}

#endif
