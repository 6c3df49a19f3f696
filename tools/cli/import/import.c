/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* .import, see import.h. */
#include "tools/cli/import/import.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/import/bulk-load.h"
#include "tools/cli/output/files.h"
#include "tools/cli/output/interrupt.h"
#include "tools/cli/render/human.h"
#include "tools/cli/shell/answer.h"
#include "tools/cli/shell/options.h"
#include "tools/cli/shell/query-failure.h"
#include "tools/cli/shell/query-run.h"
#include "tools/cli/shell/service.h"
#include "tools/cli/shell/transaction.h"
#include "tools/cli/shell/wait.h"

#define CHUNK ((size_t) 256 * 1024)
#define ROW_SIZE ((uint64_t) 64 * 1024 * 1024) /* if the service does not say its limit */
/* A savepoint in the user's transaction. */
#define SAVEPOINT "\"ipcq-cli import\""

enum {
        BAD_LINES_SHOWN = 20,
        ROWS_UNWATCHED = 256, /* between two looks at Ctrl-C and the progress */
};

typedef struct Import {
        Shell *shell;
        const ImportOptions *options;
        GArray *table;    /* owned; NULL: it is new */
        bool is_temp;
        ImportFile *file; /* owned */
        BulkLoad bulk;
        uint64_t n_bad;
} Import;

/* ---- Messages ----------------------------------------------------------------------------------------------------- */

static int fail(Import *import, int r, const char *message) {
        bulk_load_erase(&import->bulk);
        shell_complain(import->shell, "%s: %s", import->options->path, message);
        shell_note_failure(import->shell, EXIT_QUERY);
        return r;
}

static int fail_reading(Import *import, int r) {
        if (r == -ECANCELED) {
                bulk_load_erase(&import->bulk);
                answer_cancelled(import->shell);
                return r;
        }
        return fail(import, r, r == -EBADMSG ? "the file has changed since it was checked; nothing was written"
                                             : g_strerror(-r));
}

static void tell_bad_line(Import *import, uint64_t line, const char *fault) {
        bulk_load_erase(&import->bulk);
        if (import->n_bad++ < BAD_LINES_SHOWN)
                shell_complain(import->shell, "%s:%" PRIu64 ": %s", import->options->path, line, fault);
}

static int fail_bad_lines(Import *import, const char *more) {
        g_autofree char *message = NULL, *rest = NULL;

        if (import->n_bad > BAD_LINES_SHOWN)
                rest = g_strdup_printf("and %" PRIu64 " more bad lines; ", import->n_bad - BAD_LINES_SHOWN);
        message = g_strconcat(rest ?: "", more, "nothing was written", NULL);
        return fail(import, -EINVAL, message);
}

/* ---- The table ---------------------------------------------------------------------------------------------------- */

static int take_column(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        Import *import = userdata;
        ImportColumn column = {};

        if (!is_row)
                return 0;
        column.name = g_strdup(sqlipc_column_text(cursor, 0, NULL) ?: "");
        column.affinity = column_affinity(sqlipc_column_text(cursor, 1, NULL));
        column.not_null = sqlipc_column_int64(cursor, 2) != 0;
        column.generated = sqlipc_column_int64(cursor, 3) != 0;
        import->is_temp = sqlipc_column_int64(cursor, 4) != 0;
        g_array_append_val(import->table, column);
        return 0;
}

static int read_columns(Import *import) {
        const char *table = import->options->table;
        const sqlipc_parameter parameter = { .struct_size = sizeof parameter, .type = SQLIPC_TEXT,
                                             .bytes = table, .size = strlen(table) };
        int r;

        import->table = import_columns_new();
        r = query_run(import->shell, "SELECT name, type, \"notnull\", hidden, EXISTS ("
                      "SELECT 1 FROM temp.sqlite_schema WHERE name = ?1 COLLATE NOCASE AND type IN ('table', 'view')) "
                      "FROM pragma_table_xinfo(?1) WHERE hidden <> 1 ORDER BY cid",
                      &parameter, 1, take_column, import, NULL);
        if (r >= 0 && import->table->len == 0)
                g_clear_pointer(&import->table, g_array_unref);
        return r;
}

/* ---- The file ----------------------------------------------------------------------------------------------------- */

/* Copies what can be read only once into a file without a name. */
static int copy(int from, int to) {
        char buffer[16 * 1024];
        ssize_t n;
        int r;

        do {
                struct pollfd fds[2] = { { .fd = from, .events = POLLIN }, { .fd = interrupt_fd(), .events = POLLIN } };

                (void) poll(fds, G_N_ELEMENTS(fds), -1);
                r = wait_check_cancelled();
                if (r < 0)
                        return r;
                n = fds[0].revents ? read(from, buffer, sizeof buffer) : -1;
                if (n < 0 && fds[0].revents && errno != EINTR)
                        return -errno;
                r = n > 0 ? write_all(to, buffer, (size_t) n) : 0;
        } while (n != 0 && r >= 0);
        return r;
}

/* Returns a descriptor of a regular file, or -errno. */
static int open_file(const char *path) {
        bool is_stdin = g_str_equal(path, "-");
        int fd = is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC), scratch, r;
        struct stat status;

        if (fd < 0)
                return -errno;
        if (fstat(fd, &status) >= 0 && S_ISREG(status.st_mode) && !is_stdin)
                return fd;
        scratch = open_scratch();
        r = scratch < 0 ? scratch : copy(fd, scratch);
        (void) close(fd);
        if (r < 0 && scratch >= 0)
                (void) close(scratch);
        return r < 0 ? r : scratch;
}

static int begin_file(Import *import) {
        const ImportOptions *options = import->options;
        /* In JSON a row may need more bytes than in the service. */
        size_t max = 2 * (size_t) service_limit(import->shell, "row-size-max", ROW_SIZE) + CHUNK;
        ImportInput input;
        int r = open_file(options->path);

        if (r < 0)
                return fail_reading(import, r);
        r = import_input_init(&input, r, CHUNK, max);
        import->file = import_file_new(options->format, &input);
        import->file->has_header = !options->no_header;
        import->file->n_skipped = options->n_skipped;
        import->file->table = import->table;
        return r < 0 ? fail_reading(import, r) : 0;
}

/* Called for each row. */
static int look_around(Import *import, uint64_t n_rows) {
        BulkLoad *bulk = &import->bulk;

        if (n_rows % ROWS_UNWATCHED != 0)
                return 0;
        bulk->n_rows = n_rows;
        bulk->done = import_file_done(import->file);
        return bulk_load_look_around(bulk);
}

/* Names all bad lines. */
static int check(Import *import) {
        ImportFile *file = import->file;
        uint64_t n = 0;
        int r = import_file_begin(file);

        import->bulk.action = "checking";
        if (r == -EBADMSG)
                tell_bad_line(import, file->line, file->fault->str);
        while (r >= 0 && (r = import_file_check(file)) != 0) {
                if (r == -EBADMSG)
                        tell_bad_line(import, file->line, file->fault->str);
                if (r > 0 || r == -EBADMSG)
                        r = look_around(import, ++n);
        }
        if (import->n_bad > 0 && (r >= 0 || r == -EBADMSG))
                return fail_bad_lines(import, "");
        return r < 0 ? fail_reading(import, r) : 0;
}

/* ---- Rows --------------------------------------------------------------------------------------------------------- */

/* Loads the rows from `first` to the one before `end`, counted from 1. Returns an error of the library; or of the file, and
 * `*ret_of_file` is true. */
static int load_rows(Import *import, uint64_t first, uint64_t end, int64_t *ret_changes, bool *ret_of_file) {
        g_autofree char *sql = import_file_insert_sql(import->file, import->options->table);
        uint64_t n = 1;
        int r = bulk_load_open(&import->bulk, sql, import->file->columns->len);

        *ret_of_file = false;
        if (r < 0)
                return r;
        r = import_file_rewind(import->file);
        for (; r >= 0 && n < end; n++) {
                r = import_file_next(import->file);
                if (r <= 0)
                        break;
                if (n >= first)
                        r = bulk_load_row(&import->bulk, import->file->values);
                if (r >= 0)
                        r = look_around(import, n);
                if (r < 0)
                        return r;
        }
        *ret_of_file = r < 0;
        return r < 0 ? r : bulk_load_finish(&import->bulk, ret_changes);
}

/* Returns the row of a load that the service has refused, from 1, and the reason; 0: the failure is another one. */
static uint64_t refused_row(Import *import, char **ret_reason) {
        sqlipc_connection *connection = import->shell->session.connection;
        const char *message = sqlipc_error_message(connection);
        sqlipc_error code = sqlipc_error_code(connection);
        uint64_t row = 0;
        int n = 0;

        if (code != SQLIPC_ERROR_SQL && code != SQLIPC_ERROR_ROW_TOO_LARGE)
                return 0;
        if (sscanf(message, "row %" SCNu64 "%n", &row, &n) != 1)
                return 0;
        *ret_reason = g_strdup(message + n + strspn(message + n, ": "));
        return row;
}

/* Returns the line of a row. */
static uint64_t line_of(Import *import, uint64_t row) {
        int r = import_file_rewind(import->file);

        for (uint64_t n = 0; r >= 0 && n < row; n++)
                r = import_file_next(import->file) > 0 ? 0 : -EBADMSG;
        return import->file->line;
}

static int fail_loading(Import *import, int r, bool of_file) {
        bulk_load_erase(&import->bulk);
        if (of_file || r == -ECANCELED)
                return fail_reading(import, r);
        query_complain(import->shell, r, NULL);
        shell_note_failure(import->shell, query_exit_code(import->shell, r));
        return r;
}

/* Loads all rows. After a refused row the rows before it are loaded again, and then those after it. */
static int load(Import *import, int64_t *ret_changes) {
        uint64_t first = 1, row;
        bool of_file;
        int r;

        import->bulk.action = "writing";
        while ((r = load_rows(import, first, UINT64_MAX, ret_changes, &of_file)) < 0) {
                g_autofree char *reason = NULL;

                row = of_file || r == -ECANCELED ? 0 : refused_row(import, &reason);
                bulk_load_close(&import->bulk);
                if (row == 0)
                        break;
                tell_bad_line(import, line_of(import, first + row - 1), reason);
                if (import->n_bad == BAD_LINES_SHOWN)
                        return fail_bad_lines(import, "the lines after it were not tried; ");
                r = row > 1 ? load_rows(import, first, first + row - 1, ret_changes, &of_file) : 0;
                if (r < 0)
                        break;
                first += row;
        }
        bulk_load_close(&import->bulk);
        if (r < 0)
                return fail_loading(import, r, of_file);
        return import->n_bad > 0 ? fail_bad_lines(import, "") : 0;
}

/* ---- The transaction ---------------------------------------------------------------------------------------------- */

static int ignore_row(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        (void) cursor, (void) is_row, (void) userdata;
        return 0;
}

static int run(Import *import, const char *sql) {
        return query_run(import->shell, sql, NULL, 0, ignore_row, NULL, NULL);
}

static int make_table(Import *import) {
        g_autofree char *sql = import_file_create_sql(import->file, import->options->table);

        return run(import, sql);
}

/* Takes everything back, without messages. */
static void roll_back(Import *import, bool own) {
        Session *session = &import->shell->session;

        if (own)
                session_forget_transaction(session);
        else if (sqlipc_transaction_is_open(session->transaction.object) > 0 && run(import, "ROLLBACK TO " SAVEPOINT) >= 0)
                (void) run(import, "RELEASE " SAVEPOINT);
}

/* TEMP tables are written without the right to write, and without a turn to write. */
static int begin(Import *import) {
        return transaction_begin(import->shell, import->is_temp ? SQLIPC_TRANSACTION_DEFERRED : SQLIPC_TRANSACTION_WRITE);
}

static int write_rows(Import *import, int64_t *ret_changes) {
        Shell *shell = import->shell;
        bool own = !shell->session.transaction.object;
        int r = own ? begin(import) : run(import, "SAVEPOINT " SAVEPOINT);

        if (r < 0)
                return r;
        shell->session.transaction.of_script |= own;
        if (!import->table)
                r = make_table(import);
        if (r >= 0)
                r = load(import, ret_changes);
        if (r >= 0)
                return own ? transaction_commit(shell) : run(import, "RELEASE " SAVEPOINT);
        roll_back(import, own);
        return r;
}

static void tell_rows(Import *import, int64_t n_changes) {
        Session *session = &import->shell->session;
        g_autofree char *rows = human_rows((uint64_t) n_changes);

        session->n_changes = n_changes;
        session->n_total_changes += n_changes;
        bulk_load_erase(&import->bulk);
        shell_say(import->shell, "%s into %s", rows, import->options->table);
}

int import_run(Shell *shell, const ImportOptions *options) {
        Import import = { .shell = shell, .options = options };
        int64_t n_changes = 0;
        int r;

        bulk_load_init(&import.bulk, shell);
        r = read_columns(&import);
        if (r >= 0)
                r = begin_file(&import);
        if (r >= 0)
                r = check(&import);
        if (r >= 0)
                r = write_rows(&import, &n_changes);
        if (r >= 0)
                tell_rows(&import, n_changes);
        bulk_load_done(&import.bulk);
        (void) import_file_free(import.file);
        if (import.table)
                g_array_unref(import.table);
        return r;
}
