/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A side that another program runs, see language-side.h. */
#include "tools/bench/workloads/language-side.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINE_SIZE_MAX = 512 };

/* Sends a line and reads the answer to it, without the newline. */
static int ask(LanguageSide *side, const char *line, char answer[static LINE_SIZE_MAX]) {
        if (line && (fprintf(side->to, "%s\n", line) < 0 || fflush(side->to) != 0))
                return -EIO;
        if (!fgets(answer, LINE_SIZE_MAX, side->from))
                return -EIO;
        g_strchomp(answer);
        return 0;
}

/* The address of the service's bus, as languages.py takes it. */
static const char *get_bus(const BenchOptions *options) {
        if (options->address)
                return options->address;
        if (options->system || options->user)
                return options->system ? "system" : "user";
        return geteuid() == 0 ? "system" : "user";
}

static int spawn(const BenchOptions *options, const char *name, LanguageSide *side) {
        const char *program = g_getenv("SQLIPC_BENCH_LANGUAGES"), *python = g_getenv("SQLIPC_BENCH_PYTHON");
        g_autofree char *amount = g_strdup_printf("%" PRId64, bench_amount(options, 1, 20, 100));
        const char *arguments[] = { python ? python : "python3", program ? program : SQLIPC_BENCH_LANGUAGES, name,
                                    get_bus(options), options->folder, amount, NULL };
        g_autoptr(GError) error = NULL;
        int in, out;

        if (!g_spawn_async_with_pipes(NULL, (char **) arguments, NULL,
                                      G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL, &side->pid, &in, &out,
                                      NULL, &error)) {
                fprintf(stderr, "sqlipc-bench: cannot start %s: %s\n", arguments[0], error->message);
                return -ECHILD;
        }
        side->to = fdopen(in, "w");
        side->from = fdopen(out, "r");
        return side->to && side->from ? 0 : -errno;
}

int language_side_start(const BenchOptions *options, const char *name, LanguageSide *ret, char **ret_missing) {
        char answer[LINE_SIZE_MAX];
        int r;

        *ret = (LanguageSide) {};
        r = spawn(options, name, ret);
        if (r < 0)
                return r;
        r = ask(ret, NULL, answer);
        if (r >= 0 && g_str_has_prefix(answer, "missing ")) {
                *ret_missing = g_strdup(answer + strlen("missing "));
                return 1;
        }
        if (r >= 0 && !g_str_equal(answer, "ready"))
                r = -EPROTO;
        if (r < 0)
                fprintf(stderr, "sqlipc-bench: %s of languages.py does not start.\n", name);
        return r;
}

int language_side_run(void *userdata) {
        char answer[LINE_SIZE_MAX];
        int r = ask(userdata, "run", answer);

        return r < 0 || g_str_equal(answer, "ran") ? r : -EPROTO;
}

uint64_t language_side_check(void *userdata) {
        char answer[LINE_SIZE_MAX];

        return ask(userdata, "check", answer) < 0 ? 0 : g_ascii_strtoull(answer, NULL, 16);
}

void language_side_stop(LanguageSide *side) {
        if (side->to)
                (void) fclose(side->to);
        if (side->from)
                (void) fclose(side->from);
        if (side->pid > 0)
                (void) waitpid(side->pid, NULL, 0);
        *side = (LanguageSide) {};
}
