/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/supervisor/run-log, log: a client cannot fill the log. Lines are counted on a standard error that is a file. */
#include <fcntl.h>
#include <glib.h>
#include <unistd.h>

#include "daemon/supervisor/context.h"
#include "daemon/supervisor/log.h"
#include "daemon/supervisor/run-log.h"
#include "tests/unit/test.h"

#define N_RUNS 500u

typedef struct Rig {
        Context context;
        Config *config;
        DatabaseConfig database_config;
        Database database;
        User user;
        Run run;
} Rig;

static void rig_init(Rig *rig, uid_t uid, const char *name) {
        *rig = (Rig) {
                .config = config_new(),
                .database_config = { .name = (char *) name },
                .user = { .uid = uid },
                .run = { .kind = RUN_QUERY, .number = 7 },
        };
        rig->config->service.slow_query_usec = 1000;
        rig->context.config = rig->config;
        rig->database.config = &rig->database_config;
        rig->run.context = &rig->context;
        rig->run.database = &rig->database;
        rig->run.user = &rig->user;
}

/* What is written to standard error until the end of captured(). */
static char path[] = "/tmp/test-run-log-XXXXXX";
static int stderr_before;

static void capture(void) {
        int fd = mkstemp(path);

        stderr_before = dup(STDERR_FILENO);
        CHECK(fd >= 0 && stderr_before >= 0 && dup2(fd, STDERR_FILENO) == STDERR_FILENO);
        close(fd);
}

static unsigned captured_lines(void) {
        g_autofree char *text = NULL;
        unsigned n = 0;

        (void) fflush(stderr);
        CHECK(g_file_get_contents(path, &text, NULL, NULL));
        for (const char *c = text; *c; c++)
                n += *c == '\n';
        return n;
}

static void end_runs(Rig *rig, uint64_t usec) {
        for (unsigned i = 0; i < N_RUNS; i++)
                run_log_end(&rig->run, &(Ended) { .usec = usec, .n_rows = i });
}

/* One line for each uid and database. */
static void test_slow_runs(void) {
        static Rig rigs[3];

        rig_init(&rigs[0], 1000, "one");
        rig_init(&rigs[1], 1001, "one");
        rig_init(&rigs[2], 1000, "two");
        capture();
        for (unsigned i = 0; i < N_ELEMENTS(rigs); i++) {
                end_runs(&rigs[i], 1000);
                CHECK_INT(captured_lines(), i);
                end_runs(&rigs[i], 1001);
                CHECK_INT(captured_lines(), i + 1);
                rigs[i].config = config_free(rigs[i].config);
        }
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
        CHECK(dup2(stderr_before, STDERR_FILENO) == STDERR_FILENO);
        CHECK_INT(unlink(path), 0);
}

int main(void) {
        static const Test tests[] = { TEST(test_slow_runs), TEST(test_warnings) };

        log_set_target(LOG_TARGET_CONSOLE);
        return test_main(tests, N_ELEMENTS(tests));
}
