/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See pg-cancel.h.
 */
#include "daemon/worker/postgresql/pg-cancel.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/worker/core/monotonic.h"

#define CANCELS_MAX 4                    /* at once: a network that drops everything holds each for up to tcp_user_timeout */
#define STACK_SIZE ((size_t) 256 * 1024)
#define LOOK_MSEC 2                      /* of pg_cancel_wait() */

#ifdef LIBPQ_HAS_ASYNC_CANCEL
typedef PGcancelConn Request;
#else
typedef PGcancel Request;
#endif

struct PgCancel {
        Request *request;       /* owned */
        atomic_bool is_over;
        atomic_uint n_owners;   /* the thread, and the worker */
};

static atomic_uint n_running;

static Request *make(PGconn *pq) {
#ifdef LIBPQ_HAS_ASYNC_CANCEL
        return PQcancelCreate(pq);
#else
        return PQgetCancel(pq);
#endif
}

/* With libpq 17 it is encrypted if the connection is. */
static void send(Request *request) {
#ifdef LIBPQ_HAS_ASYNC_CANCEL
        (void) PQcancelBlocking(request);
#else
        char message[256];

        (void) PQcancel(request, message, sizeof message);
#endif
}

static void discard(Request *request) {
#ifdef LIBPQ_HAS_ASYNC_CANCEL
        PQcancelFinish(request);
#else
        PQfreeCancel(request);
#endif
}

PgCancel *pg_cancel_free(PgCancel *c) {
        if (!c || atomic_fetch_sub(&c->n_owners, 1) > 1)
                return NULL;
        discard(c->request);
        free(c);
        return NULL;
}

static void *run(void *userdata) {
        PgCancel *c = userdata;

        send(c->request);
        atomic_store(&c->is_over, true);
        (void) pg_cancel_free(c);
        (void) atomic_fetch_sub(&n_running, 1);
        return NULL;
}

/* Signals are the worker's. */
static bool start_thread(PgCancel *c) {
        pthread_attr_t attributes;
        sigset_t all, before;
        pthread_t thread;
        bool ok;

        if (pthread_attr_init(&attributes) != 0)
                return false;
        (void) sigfillset(&all);
        (void) pthread_sigmask(SIG_SETMASK, &all, &before);
        ok = pthread_attr_setstacksize(&attributes, STACK_SIZE) == 0 &&
             pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0 &&
             pthread_create(&thread, &attributes, run, c) == 0;
        (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
        (void) pthread_attr_destroy(&attributes);
        return ok;
}

PgCancel *pg_cancel_start(PGconn *pq) {
        PgCancel *c = atomic_load(&n_running) < CANCELS_MAX ? malloc(sizeof *c) : NULL;

        if (!c)
                return NULL;
        *c = (PgCancel) { .request = make(pq), .n_owners = 2 };
        (void) atomic_fetch_add(&n_running, 1);
        if (c->request && start_thread(c))
                return c;
        (void) atomic_fetch_sub(&n_running, 1);
        discard(c->request);
        free(c);
        return NULL;
}

bool pg_cancel_is_over(const PgCancel *c) {
        return atomic_load(&c->is_over);
}

void pg_cancel_wait(uint64_t usec) {
        const struct timespec pause = { .tv_nsec = LOOK_MSEC * 1000000 };
        uint64_t until = now_usec() + usec;

        while (atomic_load(&n_running) > 0 && now_usec() < until)
                (void) nanosleep(&pause, NULL);
}
