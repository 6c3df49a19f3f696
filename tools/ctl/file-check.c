/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks if the service could use a file, see file-check.h. */
#include "tools/ctl/file-check.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tools/ctl/listing.h"

enum {
        LINKS_MAX = 40,
        HEADER_SIZE = 100,      /* of an SQLite database */
        HEADER_READ_VERSION = 19, /* 1: rollback mode; 2: WAL mode */
};

typedef struct Check {
        const ServiceUser *user;
        GPtrArray *findings;
        const char *subject;
} Check;

#define found(check, severity, ...) findings_add((check)->findings, severity, (check)->subject, __VA_ARGS__)

/* An access control list may allow more than the mode does; its entries are not examined. */
static bool has_acl(const char *path) {
        return getxattr(path, "system.posix_acl_access", NULL, 0) > 0;
}

static bool may(const Check *check, const char *path, const struct stat *st, int wanted) {
        return service_user_may(check->user, st, wanted) || has_acl(path);
}

/* ---- The path -------------------------------------------------------------------------------------------------- */

static void found_errno(const Check *check, const char *path, int error) {
        if (error == EACCES)
                found(check, FINDING_WARNING, "you may not look at %s, so the file was not checked", path);
        else if (error == ENOENT || error == ENOTDIR)
                found(check, FINDING_ERROR, "%s is not there", path);
        else
                found(check, FINDING_ERROR, "%s: %s", path, g_strerror(error));
}

/* True if only root and the service's user could change the target of the link. */
static bool is_trusted_link(const Check *check, const struct stat *link, const struct stat *folder) {
        bool owned = (link->st_uid == 0 || link->st_uid == check->user->uid) &&
                     (folder->st_uid == 0 || folder->st_uid == check->user->uid);

        return owned && ((folder->st_mode & (S_IWGRP | S_IWOTH)) == 0 || (folder->st_mode & S_ISVTX));
}

/* True if the service's user can search the folder `path`. */
static bool check_folder(const Check *check, const char *path, struct stat *ret) {
        if (stat(path, ret) < 0) {
                found_errno(check, path, errno);
                return false;
        }
        if (S_ISDIR(ret->st_mode) && !may(check, path, ret, X_OK)) {
                g_autofree char *owner = user_name(ret->st_uid);

                found(check, FINDING_ERROR,
                      "the user %s may not pass the folder %s, which belongs to %s (mode %04o): let him, or a group of the "
                      "service, search it (sqlipcd(8) says how it gets a group)",
                      check->user->name, path, owner, ret->st_mode & 07777);
                return false;
        }
        return true;
}

typedef struct Walk {
        GString *here;    /* the path walked so far, without links */
        char *rest;       /* the rest of the path */
        unsigned n_links;
} Walk;

static void walk_done(Walk *walk) {
        g_string_free(walk->here, TRUE);
        g_free(walk->rest);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Walk, walk_done)

/* Puts the target of the link `path` in front of the rest of the path. */
static bool follow(const Check *check, Walk *walk, const char *path, const struct stat *link, const struct stat *folder) {
        g_autofree char *target = g_file_read_link(path, NULL), *behind = walk->rest;

        walk->rest = g_strconcat(target ?: "", "/", behind, NULL);
        if (walk->rest[0] == '/')
                g_string_assign(walk->here, "/");
        if (++walk->n_links > LINKS_MAX) {
                found_errno(check, path, ELOOP);
                return false;
        }
        if (!is_trusted_link(check, link, folder)) {
                g_autofree char *owner = user_name(link->st_uid);

                found(check, FINDING_ERROR,
                      "%s is a symbolic link that others than root could point elsewhere (it belongs to %s), so the service "
                      "does not follow it: give the real path, or let root own link and folder", path, owner);
                return false;
        }
        return true;
}

/* Walks one component of the path, from the folder that was reached so far. */
static bool step(const Check *check, Walk *walk, const char *name) {
        g_autofree char *next = g_build_filename(walk->here->str, name, NULL);
        struct stat folder, st;

        if (!check_folder(check, walk->here->str, &folder))
                return false;
        if (g_str_equal(name, "."))
                return true;
        if (g_str_equal(name, "..")) {
                g_autofree char *parent = g_path_get_dirname(walk->here->str);

                g_string_assign(walk->here, parent);
                return true;
        }
        if (lstat(next, &st) < 0) {
                found_errno(check, next, errno);
                return false;
        }
        if (S_ISLNK(st.st_mode))
                return follow(check, walk, next, &st, &folder);
        g_string_assign(walk->here, next);
        return true;
}

/* The file that `path` leads to, as a path without links. NULL if there is none; then it has added the reason. */
static char *resolve(const Check *check, const char *path) {
        g_auto(Walk) walk = { .here = g_string_new("/"), .rest = g_strdup(path) };

        for (;;) {
                const char *start = walk.rest + strspn(walk.rest, "/");
                size_t n = strcspn(start, "/");
                g_autofree char *name = g_strndup(start, n), *rest = g_strdup(start + n);

                if (n == 0)
                        return g_strdup(walk.here->str);
                g_free(walk.rest);
                walk.rest = g_steal_pointer(&rest);
                if (!step(check, &walk, name))
                        return NULL;
        }
}

/* ---- The file ----------------------------------------------------------------------------------------------------- */

/* -ENODATA: the file is empty. -EBADMSG: it is not a database. */
static int read_header(const char *path, uint8_t ret_header[static HEADER_SIZE]) {
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        ssize_t n;

        if (fd < 0)
                return -errno;
        n = pread(fd, ret_header, HEADER_SIZE, 0);
        n = n < 0 ? -errno : n;
        (void) close(fd);
        if (n <= 0)
                return n < 0 ? (int) n : -ENODATA;
        return n == HEADER_SIZE && memcmp(ret_header, "SQLite format 3", 16) == 0 ? 0 : -EBADMSG;
}

static bool is_beside(const char *path, const char *suffix, char **ret_path, struct stat *ret) {
        *ret_path = g_strconcat(path, suffix, NULL);
        return stat(*ret_path, ret) == 0;
}

/* In WAL mode the service needs the files beside a database, and makes them only if it owns the database. */
static void check_wal(const Check *check, const char *path, const struct stat *st) {
        static const char *const suffixes[] = { "-wal", "-shm" };
        g_autofree char *folder = g_path_get_dirname(path);
        struct stat folder_st, beside;

        if (st->st_uid == check->user->uid && stat(folder, &folder_st) == 0 && may(check, folder, &folder_st, W_OK))
                return;
        for (size_t i = 0; i < G_N_ELEMENTS(suffixes); i++) {
                g_autofree char *name = NULL;
                bool there = is_beside(path, suffixes[i], &name, &beside);

                if (there && may(check, name, &beside, R_OK))
                        continue;
                found(check, FINDING_WARNING,
                      "%s is in WAL mode, and its %s %s: keep a program open that writes to it and let a group of the user "
                      "%s read it, or, if no program ever writes to it, set Immutable=yes", path, suffixes[i],
                      there ? "cannot be read by the service" : "is not there now", check->user->name);
                return;
        }
}

/* SQLite makes files beside a database that it writes to. Their owner is the service's user, so no other user's database may
 * be there: its owner could not open them. */
static void check_owners(const Check *check, const char *path, const struct stat *st) {
        g_autofree char *folder = g_path_get_dirname(path), *owner = user_name(st->st_uid);
        struct stat folder_st;

        if (st->st_uid != check->user->uid)
                found(check, FINDING_ERROR, "Mode=read-write, but %s belongs to %s: the service writes only to files that "
                      "its user %s owns; 'sqlipcctl create' makes one", path, owner, check->user->name);
        else if (!may(check, path, st, W_OK))
                found(check, FINDING_ERROR, "Mode=read-write, but the user %s may not write to %s (mode %04o)",
                      check->user->name, path, st->st_mode & 07777);
        if (stat(folder, &folder_st) < 0)
                found_errno(check, folder, errno);
        else if (folder_st.st_uid != check->user->uid || !may(check, folder, &folder_st, W_OK)) {
                g_autofree char *folder_owner = user_name(folder_st.st_uid);

                found(check, FINDING_ERROR, "Mode=read-write, but the folder %s belongs to %s (mode %04o): the user %s must "
                      "own it and must be able to write to it, since SQLite makes files beside the database",
                      folder, folder_owner, folder_st.st_mode & 07777, check->user->name);
        }
}

static void check_beside(const Check *check, const char *path, const struct stat *st, FileUse use, bool wal) {
        bool immutable = use == FILE_READ_IMMUTABLE;
        g_autofree char *journal = NULL, *log = NULL;
        struct stat beside;

        if (use == FILE_READ && wal)
                check_wal(check, path, st);
        if (immutable && is_beside(path, "-wal", &log, &beside) && beside.st_size > 0)
                found(check, FINDING_WARNING, "Immutable=yes, but %s holds changes: a program writes to it", log);
        if (use != FILE_WRITE && is_beside(path, "-journal", &journal, &beside) && beside.st_size > 0)
                found(check, FINDING_WARNING,
                      "%s is there: a writer is at work, or died and left the database to be opened once by a program that "
                      "may write to it", journal);
}

/* A program that has a database in WAL mode open keeps both files. An empty log alone was left, and reading it would leave a
 * -shm, too. A link to nothing is no missing log. */
static bool is_at_rest(const char *path) {
        g_autofree char *log = g_strconcat(path, "-wal", NULL), *index = g_strconcat(path, "-shm", NULL);
        struct stat st;

        if (lstat(log, &st) < 0)
                return errno == ENOENT;
        return S_ISREG(st.st_mode) && st.st_size == 0 && lstat(index, &st) < 0 && errno == ENOENT;
}

static FileContents check_contents(const Check *check, const char *path, const struct stat *st, FileUse use) {
        uint8_t header[HEADER_SIZE];
        int r = read_header(path, header);
        bool wal = r == 0 && header[HEADER_READ_VERSION] == 2;

        if (r == -EACCES)
                found(check, FINDING_WARNING, "you may not read %s, so what it holds was not checked", path);
        else if (r == -ENODATA)
                found(check, FINDING_WARNING, "%s is empty: a database without tables", path);
        else if (r == -EBADMSG)
                found(check, FINDING_ERROR, "%s is no SQLite database", path);
        else if (r < 0)
                found_errno(check, path, -r);
        else if (use == FILE_WRITE && header[HEADER_READ_VERSION] == 1)
                found(check, FINDING_WARNING,
                      "%s is in rollback mode, in which readers and writers wait for each other: "
                      "\"PRAGMA journal_mode=WAL\" makes writing faster", path);
        check_beside(check, path, st, use, wal);
        if (r < 0)
                return FILE_NO_DATABASE;
        return wal && is_at_rest(path) ? FILE_DATABASE_AT_REST : FILE_DATABASE;
}

static FileContents check_file(const Check *check, const char *path, const struct stat *st, FileUse use) {
        if (!may(check, path, st, R_OK)) {
                g_autofree char *owner = user_name(st->st_uid);

                found(check, FINDING_ERROR,
                      "the user %s may not read %s, which belongs to %s (mode %04o): let him, or a group of the service, "
                      "read it (sqlipcd(8) says how it gets a group)",
                      check->user->name, path, owner, st->st_mode & 07777);
        }
        if (use == FILE_WRITE)
                check_owners(check, path, st);
        return check_contents(check, path, st, use);
}

FileContents file_check(const char *path, FileUse use, const ServiceUser *user, GPtrArray *findings, const char *subject) {
        const Check check = { .user = user, .findings = findings, .subject = subject };
        g_autofree char *file = resolve(&check, path);
        struct stat st;

        if (!file)
                return FILE_NO_DATABASE;
        if (stat(file, &st) < 0)
                found_errno(&check, file, errno);
        else if (!S_ISREG(st.st_mode))
                found(&check, FINDING_ERROR, "%s is %s, no file", file,
                      S_ISDIR(st.st_mode)    ? "a folder"
                      : S_ISFIFO(st.st_mode) ? "a FIFO"
                                             : "a device or a socket");
        else
                return check_file(&check, file, &st, use);
        return FILE_NO_DATABASE;
}
