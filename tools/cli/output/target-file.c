/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes a file completely or not at all, see target-file.h. */
#include "tools/cli/output/target-file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

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

int target_file_begin(TargetFile *target, const char *path, bool replace) {
        g_autofree char *real = NULL, *temporary = NULL;
        int r, fd;

        *target = (TargetFile) { .fd = -1, .replace = replace };
        r = find(path, replace, &real);
        if (r < 0)
                return r;
        temporary = g_strconcat(real, ".XXXXXX", NULL);
        fd = mkostemp(temporary, O_CLOEXEC);
        if (fd < 0)
                return -errno;
        target->path = g_steal_pointer(&real);
        target->temporary = g_steal_pointer(&temporary);
        target->fd = fd;
        r = give_rights(fd);
        if (r < 0)
                target_file_drop(target);
        return r;
}

static void forget(TargetFile *target) {
        if (target->fd >= 0)
                (void) close(target->fd);
        target->fd = -1;
        g_clear_pointer(&target->path, g_free);
        g_clear_pointer(&target->temporary, g_free);
}

void target_file_drop(TargetFile *target) {
        if (target->temporary)
                (void) unlink(target->temporary);
        forget(target);
}

/* Syncs the folder, because a new name is on disk only after that. */
static int sync_folder(const char *path) {
        g_autofree char *folder = g_path_get_dirname(path);
        int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;

        if (fd < 0)
                return -errno;
        if (fsync(fd) < 0 && errno != EINVAL) /* the file system cannot sync folders */
                r = -errno;
        (void) close(fd);
        return r;
}

/* Moves the file in place; replaces a file that was created meanwhile only if `replace` is set. */
static int put_in_place(const TargetFile *target) {
        if (target->replace)
                return rename(target->temporary, target->path) < 0 ? -errno : 0;
        if (renameat2(AT_FDCWD, target->temporary, AT_FDCWD, target->path, RENAME_NOREPLACE) == 0)
                return 0;
        if (errno != EINVAL && errno != ENOSYS)
                return -errno;
        if (link(target->temporary, target->path) < 0) /* the file system does not support that flag */
                return -errno;
        (void) unlink(target->temporary);
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
        r = sync_folder(target->path);
        forget(target);
        return r;
}
