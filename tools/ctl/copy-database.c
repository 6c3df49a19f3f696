/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copies a database, see copy-database.h.
 *
 * In WAL mode one read transaction holds the moment, and keeps no writer waiting. In rollback mode it would keep all of them
 * waiting, so each step reads in a transaction of its own. SQLite then begins again if the file was changed meanwhile.
 */
#include "tools/ctl/copy-database.h"

#include "tools/ctl/descriptor-vfs.h"
#include "tools/ctl/find-damage.h"
#include "tools/ctl/listing.h"
#include "tools/ctl/open-database.h"
#include "tools/terminal/progress.h"

enum {
        LOCK_SECONDS = 30,
        STEP_PAGES = 256,
        STEP_PAUSE_MS = 2,  /* in rollback mode, so that writers have their turn */
        RESTARTS_MAX = 100,
};

typedef struct Copy {
        const DatabaseConfig *d;
        sqlite3 *from, *to;
        sqlite3_backup *backup;
        bool held;              /* a transaction holds the moment */
        int64_t page_size;
        int n_restarts, n_done; /* pages */
        Progress progress;
} Copy;

static uint64_t now_usec(void) {
        return (uint64_t) g_get_monotonic_time();
}

static void show_progress(Copy *copy, int n_pages) {
        g_autoptr(GString) line = NULL;

        if (!progress_is_due(&copy->progress, now_usec()))
                return;
        line = g_string_new(NULL);
        shown_append(line, g_variant_new_uint64((uint64_t) (copy->n_done * copy->page_size)), SHOWN_SIZE);
        g_string_append(line, " of ");
        shown_append(line, g_variant_new_uint64((uint64_t) (n_pages * copy->page_size)), SHOWN_SIZE);
        if (line->len <= progress_width())
                progress_draw(&copy->progress, line->str);
}

/* One step; SQLITE_OK: there is more to do. */
static int step(Copy *copy) {
        int rc = sqlite3_backup_step(copy->backup, STEP_PAGES), n_pages, n_done;

        if (rc != SQLITE_OK)
                return rc;
        n_pages = sqlite3_backup_pagecount(copy->backup);
        n_done = n_pages - sqlite3_backup_remaining(copy->backup);
        copy->n_restarts += n_done <= copy->n_done;
        copy->n_done = n_done;
        show_progress(copy, n_pages);
        if (!copy->held)
                (void) sqlite3_sleep(STEP_PAUSE_MS);
        return open_database_interrupted() ? SQLITE_INTERRUPT : SQLITE_OK;
}

/* Prints why the copy was not made. */
static int complain_of_copy(const Copy *copy, int rc) {
        if (rc == SQLITE_OK)
                complain("%s was not backed up: it was changed %d times meanwhile. Try again when less is written, or put "
                         "it into WAL mode.", copy->d->name, copy->n_restarts);
        else
                return complain_of_sqlite(copy->d, "backed up", copy->to, rc);
        return CTL_FAILED;
}

static int copy_pages(Copy *copy) {
        int rc = SQLITE_OK, finished;

        copy->backup = sqlite3_backup_init(copy->to, "main", copy->from, "main");
        if (!copy->backup)
                return complain_of_copy(copy, sqlite3_errcode(copy->to));
        while (rc == SQLITE_OK && copy->n_restarts <= RESTARTS_MAX)
                rc = step(copy);
        progress_erase(&copy->progress);
        finished = sqlite3_backup_finish(copy->backup);
        if (rc == SQLITE_DONE && finished == SQLITE_OK)
                return CTL_OK;
        return complain_of_copy(copy, rc == SQLITE_DONE ? finished : rc);
}

static int hold_moment(Copy *copy) {
        copy->held = is_in_wal_mode(copy->from);
        return copy->held ? sqlite3_exec(copy->from, "BEGIN; SELECT 1 FROM sqlite_schema", NULL, NULL, NULL) : SQLITE_OK;
}

static int open_copy(int fd, sqlite3 **ret) {
        int rc = descriptor_vfs_add(fd);

        if (rc == SQLITE_OK)
                rc = sqlite3_open_v2(COPY_NAME, ret, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, DESCRIPTOR_VFS);
        if (rc == SQLITE_OK) /* the caller syncs the file */
                rc = sqlite3_exec(*ret, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF", NULL, NULL, NULL);
        return rc;
}

static int copy_moment(Copy *copy, int fd) {
        int rc = hold_moment(copy);

        copy->page_size = pragma_number(copy->from, "PRAGMA page_size");
        if (rc != SQLITE_OK)
                return complain_of_sqlite(copy->d, "backed up", copy->from, rc);
        rc = open_copy(fd, &copy->to);
        return rc == SQLITE_OK ? copy_pages(copy) : complain_of_copy(copy, rc);
}

/* Immutable, because a copy of a database in WAL mode is in WAL mode, but has no log. */
static int check_copy(const DatabaseConfig *d) {
        g_autoptr(GPtrArray) problems = g_ptr_array_new_with_free_func(g_free);
        sqlite3 *db = NULL;
        int rc, r = CTL_FAILED;

        rc = sqlite3_open_v2("file:" COPY_NAME "?immutable=1", &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI,
                             DESCRIPTOR_VFS);
        if (rc == SQLITE_OK)
                rc = find_damage(db, "quick_check", problems);
        if (rc != SQLITE_OK)
                (void) complain_of_sqlite(d, "backed up, since the copy cannot be read", db, rc);
        else if (problems->len > 0)
                complain("%s was not backed up, since it is damaged: %s. 'sqlipcctl integrity' finds all damage.", d->name,
                         (const char *) problems->pdata[0]);
        else
                r = CTL_OK;
        (void) sqlite3_close(db);
        return r;
}

int copy_database(const DatabaseConfig *d, int fd, bool progress) {
        Copy copy = { .d = d, .from = open_database(d, false, LOCK_SECONDS) };
        int r;

        if (!copy.from)
                return CTL_FAILED;
        progress_begin(&copy.progress, progress, now_usec());
        r = copy_moment(&copy, fd);
        (void) sqlite3_close(copy.to);
        (void) sqlite3_close(copy.from); /* ends its transaction before the check, so that the log can be reset */
        return r == CTL_OK ? check_copy(d) : r;
}
