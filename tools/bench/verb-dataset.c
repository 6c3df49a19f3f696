/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* dataset: creates one of the databases to measure, or with --all every one of them, NAME.sqlite, in a folder. */
#include <errno.h>
#include <glib/gstdio.h>
#include <stdio.h>

#include "tools/bench/core/dataset.h"
#include "tools/bench/core/measure.h"
#include "tools/bench/verb.h"
#include "tools/bench/workloads/workload.h"

#define BY_SIZE G_MININT64

typedef struct Request {
        char *kind, *size, *folder;
        gint64 n_rows, seed; /* n_rows BY_SIZE: depends on `size` */
        gboolean force, wal, quiet;
        char *path; /* NULL with `folder` */
} Request;

static const DatasetKind *find_kind(const char *name) {
        for (const DatasetKind *kind = dataset_kinds; kind->name; kind++)
                if (g_str_equal(kind->name, name))
                        return kind;
        return NULL;
}

static int parse(Request *request, int argc, char **argv) {
        const GOptionEntry entries[] = {
                { "all", 0, 0, G_OPTION_ARG_FILENAME, &request->folder, "Make all kinds, as FOLDER/KIND.sqlite", "FOLDER" },
                { "kind", 0, 0, G_OPTION_ARG_STRING, &request->kind,
                  "study (default), narrow, relay, point, wide, write_wal, write_rollback, write_study", "KIND" },
                { "size", 0, 0, G_OPTION_ARG_STRING, &request->size, "How many rows: tiny, normal, full (default)", "SIZE" },
                { "rows", 0, 0, G_OPTION_ARG_INT64, &request->n_rows, "How many rows, rather than by --size", "N" },
                { "seed", 0, 0, G_OPTION_ARG_INT64, &request->seed, "Which random values, 1", "N" },
                { "wal", 0, 0, G_OPTION_ARG_NONE, &request->wal, "Leave the file in WAL mode", NULL },
                { "force", 0, 0, G_OPTION_ARG_NONE, &request->force, "Replace a file that exists", NULL },
                { "quiet", 0, 0, G_OPTION_ARG_NONE, &request->quiet, "No progress, even on a terminal", NULL },
                {},
        };
        g_autoptr(GOptionContext) context = g_option_context_new("[FILE]");
        g_autoptr(GError) error = NULL;

        g_option_context_set_summary(context, "Makes the databases that are measured. What is in them depends on kind, "
                                              "rows and seed alone.");
        g_option_context_add_main_entries(context, entries, NULL);
        if (!g_option_context_parse(context, &argc, &argv, &error))
                fprintf(stderr, "sqlipc-bench: %s\n", error->message);
        else if (request->folder ? argc != 1 || request->kind || request->n_rows != BY_SIZE : argc != 2)
                fprintf(stderr, "sqlipc-bench: dataset takes one FILE, or --all=FOLDER without --kind and --rows.\n");
        else {
                request->path = g_strdup(argv[1]);
                return 0;
        }
        return -EINVAL;
}

static int make(const Request *request, const DatasetKind *kind, BenchSize size, const char *path) {
        const Dataset dataset = {
                .kind = kind,
                .n_rows = request->n_rows == BY_SIZE ? kind->n_rows[size] : request->n_rows,
                .seed = request->seed,
                .force = request->force,
                .wal = request->wal,
                .path = path,
        };

        return dataset_make(&dataset);
}

static int make_all(const Request *request, BenchSize size) {
        int r = 0;

        if (g_mkdir_with_parents(request->folder, 0777) < 0) {
                r = -errno;
                fprintf(stderr, "sqlipc-bench: cannot make %s: %s\n", request->folder, g_strerror(-r));
        }
        for (const DatasetKind *kind = dataset_kinds; r >= 0 && kind->name; kind++) {
                g_autofree char *path = g_strdup_printf("%s/%s.sqlite", request->folder, kind->name);

                r = make(request, kind, size, path);
        }
        return r;
}

static int run(const Request *request) {
        const DatasetKind *kind = find_kind(request->kind ?: "study");
        BenchSize size = BENCH_FULL;
        int r;

        if (!kind || (request->n_rows < 0 && request->n_rows != BY_SIZE) ||
            (request->size && bench_size_from_name(request->size, &size) < 0)) {
                fprintf(stderr, "sqlipc-bench: --kind is study, narrow, relay, point, wide, write_wal, write_rollback or "
                                "write_study, --size tiny, normal or full, and --rows 0 or more.\n");
                return BENCH_USAGE;
        }
        if (request->quiet)
                measure_be_quiet();
        r = request->folder ? make_all(request, size) : make(request, kind, size, request->path);
        return r < 0 ? BENCH_FAILED : BENCH_OK;
}

int verb_dataset(int argc, char **argv) {
        Request request = { .n_rows = BY_SIZE, .seed = 1 };
        int r = parse(&request, argc, argv) < 0 ? BENCH_USAGE : run(&request);

        g_free(request.kind);
        g_free(request.size);
        g_free(request.folder);
        g_free(request.path);
        return r;
}
