/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes a file completely or not at all, see target-file.h. */
#include "tools/terminal/target-file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *name_of(const char *path) {
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

static void forget(TargetFile *target) {
        if (target->fd >= 0)
                (void) close(target->fd);
        if (target->folder >= 0)
                (void) close(target->folder);
        target->fd = target->folder = -1;
        g_clear_pointer(&target->path, g_free);
        g_clear_pointer(&target->temporary, g_free);
}

/* Finds the path to replace: if `path` is a link, its target, so that the link stays. */
static int find(const char *path, bool replace, char **ret) {
        struct stat found;
        char *real;

        if (stat(path, &found) < 0) {
                *ret = g_strdup(path);
                return errno == ENOENT ? 0 : -errno;
        }
        if (!S_ISREG(found.st_mode))
                return -EINVAL;
        if (!replace)
                return -EEXIST;
        real = realpath(path, NULL);
        if (!real)
                return -errno;
        *ret = g_strdup(real);
        free(real);
        return 0;
}

/* Sets the permissions that open() would have set. */
static int give_rights(int fd) {
        mode_t mask = umask(0);

        (void) umask(mask);
        return fchmod(fd, 0666 & ~mask) < 0 ? -errno : 0;
}

/* Creates `temporary` in the folder of `path`, readable by the caller only. */
static int create(TargetFile *target, const char *path, bool replace) {
        g_autofree char *folder = g_path_get_dirname(path), *temporary = NULL;

        *target = (TargetFile) { .folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), .fd = -1, .replace = replace };
        if (target->folder < 0)
                return -errno;
        do {
                g_free(temporary);
                temporary = g_strdup_printf("%s.%06x", path, g_random_int() & 0xffffff);
                target->fd = openat(target->folder, name_of(temporary), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                    0600);
        } while (target->fd < 0 && errno == EEXIST);
        if (target->fd < 0) {
                int r = -errno;

                forget(target);
                return r;
        }
        target->path = g_strdup(path);
        target->temporary = g_steal_pointer(&temporary);
        return 0;
}

int target_file_begin(TargetFile *target, const char *path, bool replace) {
        g_autofree char *real = NULL;
        int r;

        *target = (TargetFile) { .folder = -1, .fd = -1 };
        r = find(path, replace, &real);
        if (r >= 0)
                r = create(target, real, replace);
        if (r < 0)
                return r;
        r = give_rights(target->fd);
        if (r < 0)
                target_file_drop(target);
        return r;
}

int target_file_begin_private(TargetFile *target, const char *path, bool replace) {
        struct stat found;
        int r;

        r = create(target, path, replace);
        if (r < 0)
                return r;
        if (fstatat(target->folder, name_of(path), &found, AT_SYMLINK_NOFOLLOW) < 0)
                r = errno == ENOENT ? 0 : -errno;
        else
                r = !S_ISREG(found.st_mode) ? -EINVAL : replace ? 0 : -EEXIST;
        if (r < 0)
                target_file_drop(target);
        return r;
}

void target_file_drop(TargetFile *target) {
        if (target->temporary)
                (void) unlinkat(target->folder, name_of(target->temporary), 0);
        forget(target);
}

/* Moves the file in place; replaces a file that was created meanwhile only if `replace` is set. */
static int put_in_place(const TargetFile *target) {
        const char *temporary = name_of(target->temporary), *name = name_of(target->path);
        int folder = target->folder;

        if (target->replace)
                return renameat(folder, temporary, folder, name) < 0 ? -errno : 0;
        if (renameat2(folder, temporary, folder, name, RENAME_NOREPLACE) == 0)
                return 0;
        if (errno != EINVAL && errno != ENOSYS)
                return -errno;
        if (linkat(folder, temporary, folder, name, 0) < 0) /* the file system does not support that flag */
                return -errno;
        (void) unlinkat(folder, temporary, 0);
        return 0;
}

int target_file_keep(TargetFile *target) {
        int r = fsync(target->fd) < 0 ? -errno : 0;

        if (r >= 0)
                r = put_in_place(target);
        if (r < 0) {
                target_file_drop(target);
                return r;
        }
        /* a new name is on disk only after that */
        if (fsync(target->folder) < 0 && errno != EINVAL) /* the file system cannot sync folders */
                r = -errno;
        forget(target);
        return r;
}
