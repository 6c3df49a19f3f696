/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Commands that copy data, or compare it: .dump, .export, .backup, .sha3sum. */
#include <errno.h>
#include <string.h>

#include "tools/cli/commands/commands.h"
#include "tools/cli/dump/backup.h"
#include "tools/cli/dump/checksum.h"
#include "tools/cli/dump/dump-text.h"
#include "tools/cli/render/human.h"
#include "tools/cli/shell/answer.h"
#include "tools/cli/shell/options.h"
#include "tools/cli/shell/query-print.h"
#include "tools/terminal/target-file.h"

/* ---- .dump -------------------------------------------------------------------------------------------------------- */

/* Warns that a copy lacks what is not exposed, because a reader cannot tell this from missing data. Returns 1, 0, or an
 * error, which has been reported. */
static int say_exposed(Shell *shell) {
        int r = schema_is_exposed(shell);

        if (r > 0)
                shell_complain(shell, "only parts of %s are exposed; these are all that is copied", shell->session.database);
        return r;
}

static int run_dump(Shell *shell, const Command *command, char **arguments) {
        DumpOptions options = {};
        FILE *file;
        int r;

        for (char **argument = arguments + 1; *argument; argument++)
                if (g_str_equal(*argument, "--preserve-rowids"))
                        options.with_rowids = true;
                else if (**argument == '-' || options.pattern)
                        return command_misuse(shell, command);
                else
                        options.pattern = *argument;
        r = say_exposed(shell);
        if (r >= 0)
                r = answer_begin(shell, &file);
        if (r < 0)
                return r;
        return answer_end(shell, dump_text(shell, &options, file, output_is_terminal(shell->output)));
}

/* ---- Files -------------------------------------------------------------------------------------------------------- */

static int tell_unwritten(Shell *shell, const char *path, int r) {
        shell_complain(shell, "cannot write %s: %s", path, g_strerror(-r));
        shell_note_failure(shell, EXIT_OUTPUT);
        return r;
}

static int begin_file(Shell *shell, TargetFile *target, const char *path, bool force) {
        int r = target_file_begin(target, path, force);

        if (r != -EEXIST && r != -EINVAL)
                return r < 0 ? tell_unwritten(shell, path, r) : 0;
        if (r == -EEXIST)
                shell_complain(shell, "%s is there already; --force replaces it", path);
        else
                shell_complain(shell, "%s is no regular file; .once writes there", path);
        shell_note_failure(shell, EXIT_OUTPUT);
        return r;
}

/* Keeps the file, or drops it if `r` is an error of writing it. */
static int end_file(Shell *shell, TargetFile *target, const char *path, int r) {
        if (r < 0) {
                target_file_drop(target);
                return r;
        }
        r = target_file_keep(target);
        return r < 0 ? tell_unwritten(shell, path, r) : 0;
}

static int begin_stream(Shell *shell, TargetFile *target, const char *path, bool force, FILE **ret) {
        int r = begin_file(shell, target, path, force);

        if (r < 0)
                return r;
        *ret = fopen(target->temporary, "we");
        if (*ret)
                return 0;
        r = -errno;
        target_file_drop(target);
        return tell_unwritten(shell, path, r);
}

/* Closes the stream and ends the file. `r`: the result of writing, which has been reported if it is an error. */
static int end_stream(Shell *shell, TargetFile *target, const char *path, FILE *file, int r) {
        int w = ferror(file) ? -EIO : 0;

        if (fclose(file) != 0)
                w = -errno;
        if (w < 0 && r >= 0)
                r = tell_unwritten(shell, path, w);
        return end_file(shell, target, path, r);
}

/* ---- .backup ------------------------------------------------------------------------------------------------------ */

static int write_database(Shell *shell, const char *path, bool force, const DumpOptions *options) {
        TargetFile target;
        int r = begin_file(shell, &target, path, force);

        if (r < 0)
                return r;
        return end_file(shell, &target, path, backup_write(shell, options, target.temporary));
}

static int run_backup(Shell *shell, const Command *command, char **arguments) {
        const DumpOptions options = { .with_rowids = true };
        bool force = g_str_equal(arguments[1], "--force");
        const char *path = arguments[force ? 2 : 1];
        int r;

        if (!path || *path == '-' || (!force && arguments[2]))
                return command_misuse(shell, command);
        r = schema_is_exposed(shell);
        if (r > 0) {
                shell_complain(shell, "only parts of %s are exposed, which is no backup; .export sqlite copies these",
                               shell->session.database);
                return -EPERM;
        }
        return r < 0 ? r : write_database(shell, path, force, &options);
}

/* ---- .export ------------------------------------------------------------------------------------------------------ */

typedef struct Export {
        char *format, *path, *table; /* owned; table NULL: none was named */
        char *sql;                   /* owned; NULL: a table, or everything */
        bool force;
} Export;

static void export_done(Export *export) {
        g_free(export->format);
        g_free(export->path);
        g_free(export->table);
        g_free(export->sql);
}

/* Reads the source: one word names a table; more words are SQL. */
static int read_source(Export *export, const char *rest) {
        const char *after = rest;
        int r = command_take_word(&after, &export->table);

        if (r <= 0)
                return r;
        while (g_ascii_isspace(*after))
                after++;
        if (*after) {
                g_clear_pointer(&export->table, g_free);
                export->sql = g_strdup(rest);
        }
        return 0;
}

static int read_export(Export *export, const char *rest) {
        int r = command_take_word(&rest, &export->format);

        if (r > 0 && g_str_equal(export->format, "--force")) {
                export->force = true;
                g_clear_pointer(&export->format, g_free);
                r = command_take_word(&rest, &export->format);
        }
        if (r > 0)
                r = command_take_word(&rest, &export->path);
        return r <= 0 || *export->path == '-' ? -EINVAL : read_source(export, rest);
}

static char *make_pattern(const char *table) {
        g_autoptr(GString) pattern = g_string_new(NULL);

        for (const char *p = table; *p; p++) {
                if (strchr("%_\\", *p))
                        g_string_append_c(pattern, '\\');
                g_string_append_c(pattern, *p);
        }
        return g_string_free(g_steal_pointer(&pattern), FALSE);
}

static int export_dump(Shell *shell, const Export *export, bool as_database) {
        g_autofree char *pattern = export->table ? make_pattern(export->table) : NULL;
        const DumpOptions options = { .pattern = pattern, .with_rowids = as_database };
        TargetFile target;
        FILE *file;
        int r = say_exposed(shell);

        if (r < 0)
                return r;
        if (as_database)
                return write_database(shell, export->path, export->force, &options);
        r = begin_stream(shell, &target, export->path, export->force, &file);
        return r < 0 ? r : end_stream(shell, &target, export->path, file, dump_text(shell, &options, file, false));
}

static void tell_export(const Shell *shell, uint64_t n_rows, const char *path) {
        g_autofree char *rows = human_rows(n_rows);

        shell_say(shell, "%s to %s", rows, path);
}

static int export_rows(Shell *shell, const Export *export, RenderMode mode, const char *sql) {
        RenderOptions options = { .table_name = export->table };
        QueryTotals totals = {};
        TargetFile target;
        int r = begin_stream(shell, &target, export->path, export->force, &options.output);

        if (r < 0)
                return r;
        r = query_write(shell, sql, mode, &options, &totals);
        r = end_stream(shell, &target, export->path, options.output, r);
        if (r >= 0)
                tell_export(shell, totals.n_rows, export->path);
        return r;
}

static const char *const formats[] = {
        "--force", "csv",   "tsv",   "json",   "jsonl", "html",     "markdown", "insert", "list",
        "line",    "quote", "table", "column", "box",   "vertical", "ascii",    "tcl",    "qbox",  "sql",
        "sqlite", NULL,
};

static int export_query(Shell *shell, const Export *export) {
        RenderMode mode = render_mode_from_string(export->format);
        g_autoptr(GString) sql = g_string_new(NULL);

        if (mode < 0) {
                g_autofree char *known = g_strjoinv(", ", (char **) formats + 1); /* without --force */

                return command_fail(shell, -EINVAL, "format %s: it is one of %s", export->format, known);
        }
        if (export->table) {
                g_string_append(sql, "SELECT * FROM ");
                schema_append_quoted(sql, export->table);
        } else if (export->sql || shell->statement)
                g_string_append(sql, export->sql ?: shell->statement);
        else
                return command_fail(shell, -EINVAL, "no statement ran yet: say which TABLE, or SQL");
        return export_rows(shell, export, mode, sql->str);
}

static int run_export(Shell *shell, const Command *command, char **arguments) {
        __attribute__((cleanup(export_done))) Export export = {};
        bool as_database;

        if (read_export(&export, arguments[1]) < 0)
                return command_misuse(shell, command);
        as_database = g_str_equal(export.format, "sqlite");
        if (!as_database && !g_str_equal(export.format, "sql"))
                return export_query(shell, &export);
        if (export.sql)
                return command_fail(shell, -EINVAL, "format %s: it takes a TABLE or everything; SQL needs another one",
                                    export.format);
        return export_dump(shell, &export, as_database);
}

/* ---- .sha3sum ----------------------------------------------------------------------------------------------------- */

static bool read_checksum_option(ChecksumOptions *options, const char *argument) {
        static const unsigned sizes[] = { 224, 256, 384, 512 };
        char option[16];

        for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
                g_snprintf(option, sizeof option, "--sha3-%u", sizes[i]);
                if (g_str_equal(argument, option)) {
                        options->bits = sizes[i];
                        return true;
                }
        }
        options->with_schema = options->with_schema || g_str_equal(argument, "--schema");
        return g_str_equal(argument, "--schema");
}

static int run_sha3sum(Shell *shell, const Command *command, char **arguments) {
        ChecksumOptions options = { .bits = 224 };
        g_autoptr(GString) text = g_string_new(NULL);
        int r;

        for (char **argument = arguments + 1; *argument; argument++)
                if (**argument != '-' && !options.pattern)
                        options.pattern = *argument;
                else if (!read_checksum_option(&options, *argument))
                        return command_misuse(shell, command);
        r = schema_is_exposed(shell);
        if (r > 0)
                shell_complain(shell, "only parts of %s are exposed; only these are hashed", shell->session.database);
        if (r >= 0)
                r = checksum_append(shell, &options, text);
        return r < 0 ? r : answer_text(shell, text->str);
}

static const char *const checksum_words[] = {
        "--schema", "--sha3-224", "--sha3-256", "--sha3-384", "--sha3-512", NULL,
};

const Command commands_export[] = {
        { .name = "backup",
          .arguments = "[--force] FILE",
          .summary = "Copy the database into an SQLite file",
          .details = "The file holds the tables, values and rowids of one moment of the database, in pages of its own. It "
                     "appears when it is complete. An existing file is replaced with --force only. A database of which only "
                     "parts are exposed is refused.",
          .n_min = 1, .n_max = 2, .kinds = { ARGUMENT_FILE, ARGUMENT_FILE }, .run = run_backup },
        { .name = "dump",
          .arguments = "[--preserve-rowids] [TABLE]",
          .summary = "Write the database, or a table, as SQL that sqlite3 reads back",
          .details = "TABLE may have % and _, as LIKE takes them (\\ before one that stands for itself): these tables, "
                     "their indexes and triggers. The dump shows one moment; if the service's limits do not allow that, "
                     "an error says so. Every value is restored bit by bit, rowids that are no column only with "
                     "--preserve-rowids. A dump that breaks off ends with ROLLBACK.",
          .n_min = 0, .n_max = 2, .kinds = { ARGUMENT_TABLE, ARGUMENT_TABLE }, .run = run_dump },
        { .name = "export",
          .arguments = "[--force] FORMAT FILE [TABLE|SQL]",
          .summary = "Write a table or a result into a file",
          .details = "FORMAT is a mode (.help mode), sql as of .dump, or sqlite for a database of its own; these two take "
                     "a table or, without one, everything. The others write the last statement's result if neither a table "
                     "nor SQL is given. The file appears when it is complete. An existing file is replaced with --force "
                     "only.",
          .n_min = 1, .n_max = 1, .takes_rest = true,
          .kinds = { ARGUMENT_WORDS, ARGUMENT_FILE, ARGUMENT_TABLE_OR_SQL }, .words = formats, .run = run_export },
        { .name = "sha3sum",
          .arguments = "[--schema] [--sha3-224|256|384|512] [TABLE]",
          .summary = "Compute a checksum of the tables' content, as sqlite3 does",
          .details = "Equal databases have equal checksums, wherever their pages are. SHA3 of 224 bits by default. TABLE is "
                     "a pattern of LIKE: a checksum for each of these tables. --schema adds the tables of SQLite itself, "
                     "with the CREATE statements. All is of one moment: if the service's limits do not allow that, it is "
                     "said.",
          .n_max = -1, .kinds = { ARGUMENT_WORDS, ARGUMENT_TABLE, ARGUMENT_TABLE }, .words = checksum_words,
          .run = run_sha3sum },
        {},
};
