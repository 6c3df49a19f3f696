/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/supervisor/run-log, log: a client cannot fill the log. Lines are counted on a standard error that is a file. */
#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/runs/run-log.h"
#include "tests/unit/test.h"

#define N_RUNS 500u

/* The clock stands still unless a test moves it. */
static struct timespec now = { .tv_sec = 1000 };

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret) {
        CHECK_INT(clock, CLOCK_MONOTONIC);
        *ret = now;
        return 0;
}

/* The bytes written to standard error until test_end(). */
static char path[] = "/tmp/test-run-log-XXXXXX";
static int stderr_before;

static void capture(void) {
        int fd = mkstemp(path);

        stderr_before = dup(STDERR_FILENO);
        CHECK(fd >= 0 && stderr_before >= 0 && dup2(fd, STDERR_FILENO) == STDERR_FILENO);
        close(fd);
}

static char *captured(void) {
        char *text = NULL;

        (void) fflush(stderr);
        CHECK(g_file_get_contents(path, &text, NULL, NULL));
        return text;
}

static unsigned captured_lines(void) {
        g_autofree char *text = captured();
        unsigned n = 0;

        for (const char *c = text; *c; c++)
                n += *c == '\n';
        return n;
}

static void end_runs(uid_t uid, const char *database, uint64_t usec) {
        const RunLogFacts facts = { .fields = { .database = database, .uid = &uid, .run = 7 }, .slow_usec = 1000 };

        for (unsigned i = 0; i < N_RUNS; i++)
                run_log_end(&facts, &(Ended) { .usec = usec, .n_rows = i });
}

/* One line for each uid and database. */
static void test_slow_runs(void) {
        static const struct {
                uid_t uid;
                const char *database;
        } cases[] = { { 1000, "one" }, { 1001, "one" }, { 1000, "two" } };

        capture();
        for (unsigned i = 0; i < N_ELEMENTS(cases); i++) {
                end_runs(cases[i].uid, cases[i].database, 1000);
                CHECK_INT(captured_lines(), i);
                end_runs(cases[i].uid, cases[i].database, 1001);
                CHECK_INT(captured_lines(), i + 1);
        }
}

/* Time that a run waited for its reader does not make it slow, and compiling is not a run. */
static void test_not_slow(void) {
        const uid_t uid = 1002;
        RunLogFacts facts = { .fields = { .database = "one", .uid = &uid }, .waited_usec = 5000, .slow_usec = 1000 };
        unsigned before = captured_lines();

        run_log_end(&facts, &(Ended) { .usec = 6000 });
        facts.waited_usec = 0;
        facts.is_prepare = true;
        run_log_end(&facts, &(Ended) { .usec = 6000 });
        CHECK_INT(captured_lines(), before);
        facts.is_prepare = false;
        run_log_end(&facts, &(Ended) { .usec = 6000 });
        CHECK_INT(captured_lines(), before + 1);
}

/* The service's own trouble, which clients can cause. */
static void test_warnings(void) {
        unsigned before = captured_lines();
        const uid_t uids[] = { 1000, 1001 };

        for (unsigned i = 0; i < N_RUNS; i++) {
                log_warning_limited("Something lacks: %u", i);
                log_full_limited(LOG_WARNING, &(LogFields) { .uid = &uids[i % 2] }, "A user lacks: %u", i);
        }
        CHECK_INT(captured_lines(), before + 3);
}

static void log_same_event(unsigned n) {
        for (unsigned i = 0; i < n; i++)
                log_event_limited(LOG_EVENT_POLKIT_ABSENT, NULL, &(LogFields) {}, "polkit is not there.");
}

/* One line a minute, which tells how many were left out. */
static void test_minute(void) {
        unsigned before = captured_lines();

        log_same_event(3);
        now.tv_sec += 59;
        log_same_event(1);
        CHECK_INT(captured_lines(), before + 1);
        now.tv_sec += 1;
        log_same_event(2);
        CHECK_INT(captured_lines(), before + 2);
        now.tv_sec += 60;
        log_same_event(1);
        CHECK_INT(captured_lines(), before + 3);

        g_autofree char *text = captured();
        CHECK(strstr(text, "polkit is not there. (3 like this were not logged.)\n"));
        CHECK(g_str_has_suffix(text, "polkit is not there. (1 like this were not logged.)\n"));
}

static void test_end(void) {
        CHECK(dup2(stderr_before, STDERR_FILENO) == STDERR_FILENO);
        CHECK_INT(unlink(path), 0);
}

int main(void) {
        static const Test tests[] = { TEST(test_slow_runs), TEST(test_not_slow), TEST(test_warnings),
                                      TEST(test_minute), TEST(test_end) };

        log_set_target(LOG_TARGET_CONSOLE);
        return test_main(tests, N_ELEMENTS(tests));
}
