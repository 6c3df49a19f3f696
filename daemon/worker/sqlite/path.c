/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See path.h.
 */
#include "daemon/worker/sqlite/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#define N_LINKS_MAX 40 /* as the kernel's */
#define AS_IT_IS (O_PATH | O_NOFOLLOW | O_CLOEXEC)

/* State of the walk. */
typedef struct Walk {
        int fd;              /* the file or directory that was reached; O_PATH, so it is not opened (I12) */
        int folder_fd;       /* the directory from which it was reached, by `name`; -1: not by a name */
        char name[NAME_MAX + 1];
        char *rest;          /* the rest of the path */
        unsigned n_links;
} Walk;

static void close_fd(int *fd) {
        if (*fd >= 0)
                (void) close(*fd);
        *fd = -1;
}

static void walk_done(Walk *w) {
        close_fd(&w->fd);
        close_fd(&w->folder_fd);
        free(w->rest);
}

bool path_fail(int error_number, SqlError *error) {
        switch (error_number) {
        case ENOENT:
        case ENOTDIR:
                return sql_error_set(error, ERROR_FILE_MISSING,
                                     "the file of this database is not there: put it back, mount what it is on, or correct "
                                     "Path= and reload");
        case EIO:
        case ENODEV:
        case ENXIO:
        case ENOTCONN:
        case ESTALE:
        case EHOSTDOWN:
        case ETIMEDOUT:
                return sql_error_set(error, ERROR_CANNOT_OPEN,
                                     "the file system that this database is on does not answer (%s): mount it again",
                                     strerror(error_number));
        case ELOOP:
                return sql_error_set(error, ERROR_CANNOT_OPEN,
                                     "Path= of this database leads through more than %d symbolic links: give the real path",
                                     N_LINKS_MAX);
        default:
                return sql_error_set(
                        error, ERROR_CANNOT_OPEN,
                        "the file of this database cannot be reached (%s): give the service's user access to its folder",
                        strerror(error_number));
        }
}

bool path_check_kind(const struct stat *st, SqlError *error) {
        if (S_ISREG(st->st_mode))
                return true;
        return sql_error_set(error, ERROR_CANNOT_OPEN,
                             "Path= of this database names no regular file: correct it and reload");
}

/* Refuses file systems that the kernel generates: their contents change, or have effects when they are read. */
static bool check_file_system(int fd, SqlError *error) {
        static const long kernels[] = { PROC_SUPER_MAGIC, SYSFS_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC, SECURITYFS_MAGIC,
                                        CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC };
        struct statfs fs;

        if (fstatfs(fd, &fs) < 0)
                return path_fail(errno, error);
        for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
                if ((long) fs.f_type == kernels[i])
                        return sql_error_set(error, ERROR_CANNOT_OPEN,
                                             "Path= of this database names a file of the kernel's: correct it and reload");
        return true;
}

/* ---- links ---- */

static bool is_trusted(uid_t uid) {
        return uid == 0 || uid == geteuid();
}

/* The error's sentence names no directory, because clients read it, and must not learn Path=. */
static bool check_link(const Walk *w, const struct stat *link, SqlError *error) {
        struct stat folder;

        if (fstat(w->fd, &folder) < 0)
                return path_fail(errno, error);
        if (!is_trusted(link->st_uid) || !is_trusted(folder.st_uid))
                return sql_error_set(error, ERROR_CANNOT_OPEN,
                                     "Path= of this database leads through a symbolic link that a user other than root can "
                                     "change: \"sqlipcctl check\" names it; give the real path, or let root own the link "
                                     "and its directory");
        if ((folder.st_mode & (S_IWGRP | S_IWOTH)) && !(folder.st_mode & S_ISVTX))
                return sql_error_set(error, ERROR_CANNOT_OPEN,
                                     "Path= of this database leads through a symbolic link in a directory that other users "
                                     "can write to: \"sqlipcctl check\" names it; give the real path, or close the "
                                     "directory to them");
        return true;
}

static int open_root(Walk *w) {
        int fd = open("/", AS_IT_IS | O_DIRECTORY);

        if (fd < 0)
                return -errno;
        close_fd(&w->fd);
        close_fd(&w->folder_fd);
        w->fd = fd;
        return 0;
}

/* Puts the target of a link before the rest of the path. */
static int follow(Walk *w, int link_fd) {
        char target[PATH_MAX], *rest;
        ssize_t size = readlinkat(link_fd, "", target, sizeof target - 1);

        if (size < 0)
                return -errno;
        if (++w->n_links > N_LINKS_MAX)
                return -ELOOP;
        target[size] = 0;
        if (asprintf(&rest, "%s/%s", target, w->rest) < 0)
                return -ENOMEM;
        free(w->rest);
        w->rest = rest;
        return target[0] == '/' ? open_root(w) : 0;
}

/* ---- the walk ---- */

/* Takes `fd`, to which `name` leads. */
static void reach(Walk *w, int fd, const char *name) {
        close_fd(&w->folder_fd);
        w->folder_fd = w->fd;
        w->fd = fd;
        (void) stpcpy(w->name, name);
}

static bool step(Walk *w, const char *name, SqlError *error) {
        struct stat st;
        /* tried as a directory first, because only that mounts an automounted file system */
        int r, fd = openat(w->fd, name, AS_IT_IS | O_DIRECTORY);

        if (fd < 0 && errno == ENOTDIR)
                fd = openat(w->fd, name, AS_IT_IS);
        if (fd < 0 || fstat(fd, &st) < 0) {
                r = -errno;
                if (fd >= 0)
                        (void) close(fd);
                return path_fail(-r, error);
        }
        if (!S_ISLNK(st.st_mode)) {
                reach(w, fd, name);
                return true;
        }
        if (!check_link(w, &st, error)) {
                (void) close(fd);
                return false;
        }
        r = follow(w, fd);
        (void) close(fd);
        return r < 0 ? path_fail(-r, error) : true;
}

static bool walk(Walk *w, SqlError *error) {
        for (;;) {
                size_t skipped = strspn(w->rest, "/"), size = strcspn(w->rest + skipped, "/");
                char name[NAME_MAX + 1];

                if (size == 0)
                        return true;
                if (size > NAME_MAX)
                        return path_fail(ENAMETOOLONG, error);
                memcpy(name, w->rest + skipped, size);
                name[size] = 0;
                memmove(w->rest, w->rest + skipped + size, strlen(w->rest + skipped + size) + 1);
                if (strcmp(name, ".") != 0 && !step(w, name, error))
                        return false;
        }
}

bool path_resolve(const char *path, FoundFile *ret, SqlError *error) {
        Walk w = { .fd = -1, .folder_fd = -1, .rest = strdup(path) };
        struct stat st;
        bool ok;
        int r;

        r = w.rest ? open_root(&w) : -ENOMEM;
        ok = r < 0 ? path_fail(-r, error) : walk(&w, error);
        if (ok && fstat(w.fd, &st) < 0)
                ok = path_fail(errno, error);
        ok = ok && path_check_kind(&st, error) && check_file_system(w.fd, error);
        if (ok) {
                *ret = (FoundFile) { .folder_fd = w.folder_fd, .st = st };
                (void) stpcpy(ret->name, w.name);
                w.folder_fd = -1;
        }
        walk_done(&w);
        return ok;
}

void found_file_done(FoundFile *file) {
        close_fd(&file->folder_fd);
}
