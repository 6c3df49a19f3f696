/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See recorder.h. The functions of the C library that are defined here are also those that libsqlite3 calls. Tests only. */
#include "tests/reliability/power/recorder.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *const disk_suffixes[DISK_N_NAMES] = { "", "-journal", "-wal" };

static char *database, *folder; /* NULL: nothing is recorded */
static GArray *events, *sent;
static bool exists[DISK_N_NAMES];
static int socket_fd = -1;

static void add(DiskEvent event) {
        g_array_append_val(events, event);
}

/* SQLite opens a file before it changes it, and the folder is only asked for files when something changes. */
static void note_created(void) {
        for (DiskName name = 0; name < DISK_N_NAMES; name++) {
                g_autofree char *path = g_strconcat(database, disk_suffixes[name], NULL);

                if (exists[name] || access(path, F_OK) < 0)
                        continue;
                exists[name] = true;
                add((DiskEvent) { .action = DISK_CREATE, .name = name });
        }
}

static bool find_path(int fd, char ret[static PATH_MAX]) {
        char link[32];
        ssize_t n;

        if (!database)
                return false;
        (void) snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        n = readlink(link, ret, PATH_MAX - 1);
        if (n < 0)
                return false;
        ret[n] = 0;
        return true;
}

/* False: the descriptor is not that of a file of the database, or of one that was deleted. */
static bool find_name(int fd, DiskName *ret) {
        char path[PATH_MAX];

        if (!find_path(fd, path) || !g_str_has_prefix(path, database))
                return false;
        note_created();
        for (*ret = 0; *ret < DISK_N_NAMES; (*ret)++)
                if (strcmp(path + strlen(database), disk_suffixes[*ret]) == 0)
                        return true;
        return false;
}

/* ---- the calls ---- */

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset) {
        ssize_t n = syscall(SYS_pwrite64, fd, bytes, size, offset);
        DiskName name;

        if (n > 0 && find_name(fd, &name))
                add((DiskEvent) {
                        .action = DISK_WRITE, .name = name, .offset = (uint64_t) offset,
                        .bytes = g_bytes_new(bytes, (gsize) n),
                });
        return n;
}

int ftruncate64(int fd, off64_t size) {
        int r = (int) syscall(SYS_ftruncate, fd, size);
        DiskName name;

        if (r == 0 && find_name(fd, &name))
                add((DiskEvent) { .action = DISK_TRUNCATE, .name = name, .offset = (uint64_t) size });
        return r;
}

int fdatasync(int fd) {
        char path[PATH_MAX];
        DiskName name;

        if (find_name(fd, &name))
                add((DiskEvent) { .action = DISK_SYNC, .name = name });
        else if (find_path(fd, path) && strcmp(path, folder) == 0) {
                note_created();
                add((DiskEvent) { .action = DISK_SYNC_FOLDER });
        }
        return 0;
}

int fsync(int fd) {
        return fdatasync(fd);
}

int unlinkat(int folder_fd, const char *file, int flags) {
        g_autofree char *base = database ? g_path_get_basename(database) : NULL;
        int r;

        if (database)
                note_created();
        r = (int) syscall(SYS_unlinkat, folder_fd, file, flags);
        for (DiskName name = 0; database && r == 0 && name < DISK_N_NAMES; name++)
                if (g_str_has_prefix(file, base) && strcmp(file + strlen(base), disk_suffixes[name]) == 0) {
                        exists[name] = false;
                        add((DiskEvent) { .action = DISK_DELETE, .name = name });
                }
        return r;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
        ssize_t n = syscall(SYS_sendmsg, fd, message, flags);
        uint64_t n_events = events ? events->len : 0;

        if (n >= 0 && fd == socket_fd)
                g_array_append_val(sent, n_events);
        return n;
}

/* ---- the record ---- */

static void event_done(void *event) {
        g_bytes_unref(((DiskEvent *) event)->bytes);
}

void recorder_start(const char *path) {
        database = realpath(path, NULL);
        g_assert_nonnull(database);
        folder = g_path_get_dirname(database);
        events = g_array_new(false, false, sizeof(DiskEvent));
        g_array_set_clear_func(events, event_done);
        sent = g_array_new(false, false, sizeof(uint64_t));
        memset(exists, 0, sizeof exists);
        exists[DISK_DATABASE] = true;
}

void recorder_set_socket(int fd) {
        socket_fd = fd;
}

void recorder_stop(void) {
        free(database);
        g_free(folder);
        database = folder = NULL;
        socket_fd = -1;
}

const GArray *recorder_events(void) {
        return events;
}

const GArray *recorder_sent(void) {
        return sent;
}

void recorder_done(void) {
        g_array_unref(events);
        g_array_unref(sent);
        events = sent = NULL;
}
