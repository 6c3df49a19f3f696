/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * See postgres-rig.h.
 */
#include "tests/rigs/postgres-rig.h"

#include <errno.h>
#include <glob.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SERVER_USER "postgres"

static char *find_programs(void) {
        g_autofree char *path = g_find_program_in_path("initdb");
        glob_t found = {};
        char *folder = NULL;

        if (path)
                return g_path_get_dirname(path);
        if (glob("/usr/lib/postgresql/*/bin/initdb", 0, NULL, &found) == 0)
                folder = g_path_get_dirname(found.gl_pathv[found.gl_pathc - 1]);
        globfree(&found);
        return folder;
}

/* In the child: it becomes the server's user, and ends with the test. */
static void become_server(gpointer userdata) {
        const struct passwd *user = userdata;

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (user && (initgroups(user->pw_name, user->pw_gid) < 0 || setgid(user->pw_gid) < 0 || setuid(user->pw_uid) < 0))
                _exit(127);
        if (user)
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of the user has cleared it */
}

static struct passwd *server_user(void) {
        return geteuid() == 0 ? getpwnam(SERVER_USER) : NULL;
}

static bool make_cluster(PostgresRig *rig) {
        g_autofree char *program = g_build_filename(rig->programs, "initdb", NULL);
        g_autofree char *data = g_build_filename(rig->folder, "data", NULL);
        const char *argv[] = { program, "-D", data, "-U", "postgres", "-A", "trust", "-N", "-E", "UTF8", "--no-locale",
                               NULL };
        int status = 0;

        return g_spawn_sync(rig->folder, (char **) argv, NULL, G_SPAWN_STDOUT_TO_DEV_NULL | G_SPAWN_STDERR_TO_DEV_NULL,
                            become_server, server_user(), NULL, NULL, &status, NULL) &&
               status == 0;
}

static void ignore_notice(void *userdata, const char *message) {
        (void) userdata;
        (void) message;
}

static void await_answer(PostgresRig *rig) {
        g_autofree char *connection = postgres_rig_connection(rig, "postgres");

        for (unsigned i = 0; i < 3000; i++) {
                rig->connection = PQconnectdb(connection);
                if (PQstatus(rig->connection) == CONNECTION_OK) {
                        (void) PQsetNoticeProcessor(rig->connection, ignore_notice, NULL);
                        return;
                }
                PQfinish(rig->connection);
                rig->connection = NULL;
                g_usleep(20000);
        }
        g_error("the server does not answer");
}

void postgres_rig_start(PostgresRig *rig) {
        g_autofree char *program = g_build_filename(rig->programs, "postgres", NULL);
        g_autofree char *data = g_build_filename(rig->folder, "data", NULL), *port = g_strdup_printf("%u", rig->port);
        const char *argv[] = { program, "-D", data, "-k", rig->folder, "-p", port, "-F", "-c", "listen_addresses=", "-c",
                         "log_min_messages=panic", "-c", "shared_buffers=16MB", "-c", "max_connections=40", NULL };

        g_assert_true(g_spawn_async(rig->folder, (char **) argv, NULL,
                                    G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_STDOUT_TO_DEV_NULL | G_SPAWN_STDERR_TO_DEV_NULL,
                                    become_server, server_user(), &rig->pid, NULL));
        await_answer(rig);
}

/* SIGQUIT: the server ends its processes at once, without a checkpoint. */
void postgres_rig_kill(PostgresRig *rig) {
        PQfinish(rig->connection);
        rig->connection = NULL;
        if (rig->pid == 0)
                return;
        (void) kill(rig->pid, SIGQUIT);
        while (waitpid(rig->pid, NULL, 0) < 0 && errno == EINTR)
                ;
        rig->pid = 0;
}

bool postgres_rig_init(PostgresRig *rig) {
        const struct passwd *user = server_user();

        *rig = (PostgresRig) { .programs = find_programs(), .port = 5432 };
        if (!rig->programs || (geteuid() == 0 && !user)) {
                g_free(rig->programs);
                return false;
        }
        rig->folder = g_dir_make_tmp("sqlipc-postgres-XXXXXX", NULL);
        if (user)
                g_assert_cmpint(chown(rig->folder, user->pw_uid, user->pw_gid), ==, 0);
        g_assert_true(make_cluster(rig));
        postgres_rig_start(rig);
        return true;
}

void postgres_rig_done(PostgresRig *rig) {
        const char *argv[] = { "rm", "-rf", "--", rig->folder, NULL };

        postgres_rig_kill(rig);
        (void) g_spawn_sync(NULL, (char **) argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL, NULL);
        g_free(rig->folder);
        g_free(rig->programs);
}

char *postgres_rig_connection(const PostgresRig *rig, const char *user) {
        return g_strdup_printf("host=%s port=%u user=%s dbname=postgres", rig->folder, rig->port, user);
}

static PGresult *execute(PostgresRig *rig, const char *sql) {
        PGresult *result = PQexec(rig->connection, sql);
        ExecStatusType status = PQresultStatus(result);

        if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
                g_error("%.200s: %s", sql, PQerrorMessage(rig->connection));
        return result;
}

void postgres_rig_exec(PostgresRig *rig, const char *sql) {
        PQclear(execute(rig, sql));
}

char *postgres_rig_value(PostgresRig *rig, const char *sql) {
        PGresult *result = execute(rig, sql);
        bool has = PQntuples(result) > 0 && !PQgetisnull(result, 0, 0);
        char *value = has ? g_strdup(PQgetvalue(result, 0, 0)) : NULL;

        PQclear(result);
        return value;
}

void postgres_rig_lock(PostgresRig *rig, const char *role, const char *password) {
        g_autofree char *path = g_build_filename(rig->folder, "data", "pg_hba.conf", NULL), *text = NULL, *rules = NULL;
        g_autofree char *sql = g_strdup_printf("CREATE ROLE %s LOGIN PASSWORD '%s'", role, password);

        g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
        rules = g_strdup_printf("local all %s scram-sha-256\n%s", role, text);
        g_assert_true(g_file_set_contents_full(path, rules, -1, G_FILE_SET_CONTENTS_NONE, 0644, NULL));
        postgres_rig_exec(rig, sql);
        postgres_rig_kill(rig);
        postgres_rig_start(rig);
}
