/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Commands that write the content of files into the database: .import, .restore. */
#include <errno.h>
#include <string.h>

#include "tools/cli/commands/commands.h"
#include "tools/cli/dump/restore.h"
#include "tools/cli/import/import.h"

typedef struct ImportWords {
        const char *names[2];  /* file and table */
        const char *format;    /* NULL: the suffix of the file */
        guint n_names;
} ImportWords;

/* Returns the index of the format; -1: none of this name. */
static int find_format(const char *name) {
        static const char *const names[] = { "csv", "tsv", "jsonl", "tab", "ndjson" };
        static const ImportFormat formats[] = { IMPORT_CSV, IMPORT_TSV, IMPORT_JSONL, IMPORT_TSV, IMPORT_JSONL };

        for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
                if (g_ascii_strcasecmp(names[i], name) == 0)
                        return (int) formats[i];
        return -1;
}

/* Takes an option; sqlite3 allows one dash or two. Returns the number of words that it has; 0: it is none. */
static int take_option(ImportOptions *options, ImportWords *words, char **arguments) {
        const char *name = *arguments + 1 + (arguments[0][1] == '-');
        char *end;

        if (g_str_equal(name, "csv") || g_str_equal(name, "tsv") || g_str_equal(name, "jsonl")) {
                words->format = name;
                return 1;
        }
        if (g_str_equal(name, "no-header")) {
                options->no_header = true;
                return 1;
        }
        if (!g_str_equal(name, "skip") || !arguments[1] || !g_ascii_isdigit(*arguments[1]))
                return 0;
        options->n_skipped = g_ascii_strtoull(arguments[1], &end, 10);
        return *end ? 0 : 2;
}

static int take_words(ImportOptions *options, ImportWords *words, char **arguments) {
        while (*arguments) {
                bool is_option = **arguments == '-' && arguments[0][1];
                int n = is_option ? take_option(options, words, arguments) : 1;

                if (n == 0 || (!is_option && words->n_names == G_N_ELEMENTS(words->names)))
                        return -EINVAL;
                if (!is_option)
                        words->names[words->n_names++] = *arguments;
                arguments += n;
        }
        return words->n_names == G_N_ELEMENTS(words->names) ? 0 : -EINVAL;
}

static int run_import(Shell *shell, const Command *command, char **arguments) {
        ImportOptions options = {};
        ImportWords words = {};
        const char *suffix;
        int format;

        if (take_words(&options, &words, arguments + 1) < 0)
                return command_misuse(shell, command);
        options.path = words.names[0];
        options.table = words.names[1];
        suffix = strrchr(options.path, '.');
        format = find_format(words.format ?: suffix ? suffix + 1 : "");
        if (format < 0)
                return command_fail(shell, -EINVAL, "%s: its suffix names no format; say --csv, --tsv or --jsonl",
                                    options.path);
        options.format = (ImportFormat) format;
        if (g_str_equal(options.path, "-") && (shell->interactive || shell->stdin_is_script))
                return command_fail(shell, -EINVAL, "standard input is the script itself; name a FILE");
        return import_run(shell, &options);
}

static int run_restore(Shell *shell, const Command *command, char **arguments) {
        bool force = g_str_equal(arguments[1], "--force");
        const char *path = arguments[force ? 2 : 1];

        if (!path || *path == '-' || (!force && arguments[2]))
                return command_misuse(shell, command);
        return restore_run(shell, path, force);
}

const Command commands_import[] = {
        { .name = "import",
          .arguments = "[--csv|--tsv|--jsonl] [--skip N] [--no-header] FILE TABLE",
          .summary = "Write the rows of a file into a table: all of them, or none",
          .details = "The suffix of FILE (.csv, .tsv, .tab, .jsonl, .ndjson) is the format if none is given; - is standard "
                     "input. A TABLE that does not exist is made. Columns are found by the names in the first line, or by "
                     "the members of JSON objects; if the first line names no column of the TABLE, or with --no-header, it "
                     "is a row. --skip N skips the first N lines. Every bad line is named.",
          .n_min = 2, .n_max = -1, .kinds = { ARGUMENT_FILE, ARGUMENT_TABLE, ARGUMENT_TABLE }, .run = run_import },
        { .name = "restore",
          .arguments = "[--force] FILE",
          .summary = "Replace the content of the database by that of an SQLite file",
          .details = "All is replaced in one transaction, or nothing: tables with their rows and rowids, indexes, views, "
                     "triggers and user_version. A database that is not empty is replaced with --force only. A file with "
                     "virtual tables is refused.",
          .n_min = 1, .n_max = 2, .kinds = { ARGUMENT_FILE, ARGUMENT_FILE }, .run = run_restore },
        {},
};
