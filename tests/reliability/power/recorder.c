/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See recorder.h. The functions of the C library that are defined here are also those that libsqlite3 calls. Tests only. */
#include "tests/reliability/power/recorder.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *const disk_suffixes[DISK_N_NAMES] = { "", "-journal", "-wal" };

static char *database, *folder; /* NULL: nothing is recorded */
static GArray *events, *sent;
static bool exists[DISK_N_NAMES];
static int socket_fd = -1;

#define N_KNOWN 1024

static struct {
        bool looked_up;
        char file;
} known[N_KNOWN];

static struct {
        char *database, *folder; /* NULL: no calls are counted */
        GArray *calls;
        uint64_t n;
        int error;
        CallManner manner;
        void (*on_failure)(void);
        bool half_done;          /* the call for the rest must fail */
} faults;

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

        if (!database || !find_path(fd, path) || !g_str_has_prefix(path, database))
                return false;
        note_created();
        for (*ret = 0; *ret < DISK_N_NAMES; (*ret)++)
                if (strcmp(path + strlen(database), disk_suffixes[*ret]) == 0)
                        return true;
        return false;
}

/* ---- calls that fail ---- */

static char file_of_path(const char *path) {
        static const struct {
                const char *suffix;
                char file;
        } files[] = { { "", 'd' }, { "-journal", 'j' }, { "-wal", 'l' }, { "-shm", 'i' } };

        if (strcmp(path, faults.folder) == 0)
                return 'f';
        if (!g_str_has_prefix(path, faults.database))
                return 0;
        for (size_t i = 0; i < G_N_ELEMENTS(files); i++)
                if (strcmp(path + strlen(faults.database), files[i].suffix) == 0)
                        return files[i].file;
        return 0;
}

/* A descriptor is looked up once until it is closed. */
static char file_of(int fd) {
        char path[PATH_MAX];

        if (!faults.database || fd < 0 || fd >= N_KNOWN)
                return 0;
        if (!known[fd].looked_up)
                known[fd] = (typeof(known[fd])) {
                        .looked_up = true,
                        .file = find_path(fd, path) ? file_of_path(path) : 0,
                };
        return known[fd].file;
}

/* Counts a call. True: it must fail. */
static bool must_fail(CallKind kind, char file, size_t size) {
        FileCall call = { .kind = kind, .file = file, .size = size };

        if (!file)
                return false;
        g_array_append_val(faults.calls, call);
        return faults.calls->len == faults.n;
}

static int fail(void) {
        if (faults.on_failure)
                faults.on_failure();
        errno = faults.error;
        return -1;
}

/* *ret: the result of the call. False: it does not fail. */
static bool write_fails(int fd, const void *bytes, size_t size, off64_t offset, ssize_t *ret) {
        if (faults.half_done) {
                faults.half_done = false;
                *ret = fail();
                return true;
        }
        if (!must_fail(CALL_WRITE, file_of(fd), size))
                return false;
        if (faults.manner == CALL_HALF && size > 1) {
                faults.half_done = true;
                *ret = syscall(SYS_pwrite64, fd, bytes, size / 2, offset);
                return true;
        }
        if (faults.manner == CALL_DONE)
                (void) syscall(SYS_pwrite64, fd, bytes, size, offset);
        *ret = fail();
        return true;
}

/* ---- the calls ---- */

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset) {
        DiskName name;
        ssize_t n;

        if (write_fails(fd, bytes, size, offset, &n))
                return n;
        n = syscall(SYS_pwrite64, fd, bytes, size, offset);
        if (n > 0 && find_name(fd, &name))
                add((DiskEvent) {
                        .action = DISK_WRITE, .name = name, .offset = (uint64_t) offset,
                        .bytes = g_bytes_new(bytes, (gsize) n),
                });
        return n;
}

int ftruncate64(int fd, off64_t size) {
        bool fails = must_fail(CALL_TRUNCATE, file_of(fd), 0);
        int r = fails && faults.manner != CALL_DONE ? 0 : (int) syscall(SYS_ftruncate, fd, size);
        DiskName name;

        if (fails)
                return fail();
        if (r == 0 && find_name(fd, &name))
                add((DiskEvent) { .action = DISK_TRUNCATE, .name = name, .offset = (uint64_t) size });
        return r;
}

int fdatasync(int fd) {
        char path[PATH_MAX];
        DiskName name;

        if (must_fail(CALL_SYNC, file_of(fd), 0))
                return fail();
        if (find_name(fd, &name))
                add((DiskEvent) { .action = DISK_SYNC, .name = name });
        else if (database && find_path(fd, path) && strcmp(path, folder) == 0) {
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
        g_autofree char *path = faults.database ? g_build_filename(faults.folder, file, NULL) : NULL;
        bool fails = path && must_fail(CALL_UNLINK, file_of_path(path), 0);
        int r;

        if (fails && faults.manner != CALL_DONE)
                return fail();
        if (database)
                note_created();
        r = (int) syscall(SYS_unlinkat, folder_fd, file, flags);
        if (fails)
                return fail();
        for (DiskName name = 0; database && r == 0 && name < DISK_N_NAMES; name++)
                if (g_str_has_prefix(file, base) && strcmp(file + strlen(base), disk_suffixes[name]) == 0) {
                        exists[name] = false;
                        add((DiskEvent) { .action = DISK_DELETE, .name = name });
                }
        return r;
}

void *mmap64(void *at, size_t size, int protection, int flags, int fd, off64_t offset) {
        if (fd >= 0 && must_fail(CALL_MAP, file_of(fd), 0)) {
                (void) fail();
                return MAP_FAILED;
        }
        return (void *) syscall(SYS_mmap, at, size, protection, flags, fd, offset);
}

int close(int fd) {
        if (fd >= 0 && fd < N_KNOWN)
                known[fd].looked_up = false;
        return (int) syscall(SYS_close, fd);
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

/* ---- calls that fail: the test's side ---- */

void recorder_fail(const char *path, uint64_t n, int error, CallManner manner, void (*on_failure)(void)) {
        recorder_fail_done();
        memset(known, 0, sizeof known);
        faults.database = realpath(path, NULL);
        g_assert_nonnull(faults.database);
        faults.folder = g_path_get_dirname(faults.database);
        faults.calls = g_array_new(false, false, sizeof(FileCall));
        faults.n = n;
        faults.error = error;
        faults.manner = manner;
        faults.on_failure = on_failure;
}

const GArray *recorder_calls(void) {
        return faults.calls;
}

void recorder_fail_stop(void) {
        g_free(faults.folder);
        free(faults.database);
        faults.database = faults.folder = NULL;
}

void recorder_fail_done(void) {
        recorder_fail_stop();
        if (faults.calls)
                g_array_unref(faults.calls);
        memset(&faults, 0, sizeof faults);
}
