/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes files of the configuration, see configuration-write.h. */
#include "tools/ctl/configuration-write.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/ctl/service-unit.h"

/* Gives a new file or folder the group of `folder`, and lets those read it who may read `folder`: users without access to a
 * database must not learn from its file that it exists. */
static int close_like(int folder, int fd, bool is_folder) {
        struct stat st, own;

        if (fstat(folder, &st) < 0 || fstat(fd, &own) < 0)
                return -errno;
        if (st.st_gid != own.st_gid && fchown(fd, (uid_t) -1, st.st_gid) < 0)
                return -errno;
        return fchmod(fd, is_folder ? st.st_mode & 0755 : (st.st_mode & 0644) | 0600) < 0 ? -errno : 0;
}

int configuration_make_databases(const char *directory, gid_t group) {
        g_autofree char *parent = g_path_get_dirname(directory);
        bool closed = group != (gid_t) -1;
        int r = 0;

        (void) umask(0022); /* the service runs as another user */
        if (g_mkdir_with_parents(parent, 0755) < 0)
                return -errno;
        if (mkdir(directory, 0700) < 0)
                return errno == EEXIST ? 0 : -errno;
        if (closed && chown(directory, (uid_t) -1, group) < 0)
                closed = false; /* the caller is neither root nor in the group: the service must still be able to read it */
        if (chmod(directory, closed ? 0750 : 0755) < 0) {
                r = -errno;
                (void) rmdir(directory);
        }
        return r;
}

/* The primary group of the service's user, which alone reads the folder besides root; -1: there is no such user. */
static gid_t group_of_service(const Context *c) {
        g_autoptr(ServiceUnit) unit = NULL;
        const struct passwd *user;

        if (!context_is_system(c))
                return getegid();
        unit = context_is_unit(c) ? service_unit_new() : NULL;
        user = getpwnam(unit && *unit->user ? unit->user : SERVICE_USER);
        return user ? user->pw_gid : (gid_t) -1;
}

static int make_databases(const Context *c, const char *directory) {
        if (g_file_test(directory, G_FILE_TEST_IS_DIR))
                return 0; /* without asking systemd */
        return configuration_make_databases(directory, group_of_service(c));
}

/* A folder of drop-ins is as closed as the folder that it is in. */
static int make_folder(const Context *c, const char *directory) {
        g_autofree char *parent = g_path_get_dirname(directory), *name = g_path_get_basename(directory);
        int above, fd = -1, r;

        if (strcmp(name, DATABASES) == 0)
                return make_databases(c, directory);
        r = make_databases(c, parent);
        if (r < 0)
                return r;
        if (mkdir(directory, 0700) < 0)
                return errno == EEXIST ? 0 : -errno;
        above = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (above >= 0)
                fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        r = above < 0 || fd < 0 ? -errno : close_like(above, fd, true);
        if (above >= 0)
                (void) close(above);
        if (fd >= 0)
                (void) close(fd);
        return r;
}

static int write_text(int folder, const char *name, const char *text) {
        int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        size_t size = strlen(text);
        int r = 0;

        if (fd < 0)
                return -errno;
        r = close_like(folder, fd, false);
        for (size_t done = 0; r == 0 && done < size;) {
                ssize_t n = write(fd, text + done, size - done);

                if (n < 0)
                        r = -errno;
                else
                        done += (size_t) n;
        }
        if (r == 0 && fsync(fd) < 0)
                r = -errno;
        if (close(fd) < 0 && r == 0)
                r = -errno;
        return r;
}

/* Removes what writers of the file have left that were killed. */
static void remove_unfinished(int folder, const char *name) {
        g_autofree char *prefix = g_strdup_printf(".%s.", name);
        int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
        const struct dirent *entry;

        if (!dir) {
                if (fd >= 0)
                        (void) close(fd);
                return;
        }
        while ((entry = readdir(dir))) {
                const char *rest = entry->d_name + strlen(prefix);
                int pid, size = 0;

                if (g_str_has_prefix(entry->d_name, prefix) && sscanf(rest, "%d.new%n", &pid, &size) == 1 && size > 0 &&
                    !rest[size] && pid > 0 && kill(pid, 0) < 0 && errno == ESRCH)
                        (void) unlinkat(folder, entry->d_name, 0);
        }
        (void) closedir(dir);
}

/* A reader sees either the complete file or none: it is written under a name that no reader uses, and then renamed. */
int configuration_write(const Context *c, const char *directory, const char *name, const char *text, bool replace) {
        g_autofree char *temporary = g_strdup_printf(".%s.%d.new", name, (int) getpid());
        int folder, r;

        r = make_folder(c, directory);
        if (r < 0)
                return r;
        folder = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0)
                return -errno;
        remove_unfinished(folder, name);
        r = write_text(folder, temporary, text);
        if (r >= 0 && renameat2(folder, temporary, folder, name, replace ? 0 : RENAME_NOREPLACE) < 0)
                r = -errno;
        if (r >= 0 && fsync(folder) < 0)
                r = -errno;
        if (r < 0)
                (void) unlinkat(folder, temporary, 0);
        (void) close(folder);
        return r;
}

char *configuration_find(char **directories, const char *name) {
        g_autofree char *file_name = g_strconcat(name, ".conf", NULL);
        struct stat st;

        for (char **directory = directories; *directory; directory++) {
                g_autofree char *file = g_build_filename(*directory, DATABASES, file_name, NULL);

                if (lstat(file, &st) >= 0)
                        return g_steal_pointer(&file);
        }
        return NULL;
}
