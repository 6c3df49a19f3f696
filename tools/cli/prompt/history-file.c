/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads and writes the history file, see history-file.h. */
#include "tools/cli/prompt/history-file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/output/files.h"

#define _cleanup_close_ __attribute__((cleanup(close_p)))

static void close_p(const int *fd) {
        if (*fd >= 0)
                (void) close(*fd);
}

/* ---- Lines -------------------------------------------------------------------------------------------------------- */

static void append_encoded(GString *output, const char *entry) {
        for (; *entry; entry++)
                if (*entry == '\n')
                        g_string_append(output, "\\n");
                else if (*entry == '\\')
                        g_string_append(output, "\\\\");
                else
                        g_string_append_c(output, *entry);
        g_string_append_c(output, '\n');
}

/* Decodes a line. Returns NULL if we cannot have written it. */
static char *decode(const char *line, size_t size) {
        g_autoptr(GString) entry = g_string_sized_new(size);

        if (size == 0 || !g_utf8_validate_len(line, size, NULL))
                return NULL;
        for (size_t i = 0; i < size; i++) {
                if (line[i] != '\\') {
                        g_string_append_c(entry, line[i]);
                        continue;
                }
                i++;
                if (i >= size || (line[i] != 'n' && line[i] != '\\'))
                        return NULL;
                g_string_append_c(entry, line[i] == 'n' ? '\n' : '\\');
        }
        return g_string_free(g_steal_pointer(&entry), false);
}

/* ---- The file ----------------------------------------------------------------------------------------------------- */

/* Returns 1: `fd` is the file at `path`; 0: another shell has replaced it meanwhile. */
static int is_current(int fd, const char *path) {
        struct stat ours, there;

        if (fstat(fd, &ours) < 0)
                return -errno;
        if (!S_ISREG(ours.st_mode))
                return -EINVAL;
        if (lstat(path, &there) < 0)
                return errno == ENOENT ? 0 : -errno;
        if (ours.st_dev != there.st_dev || ours.st_ino != there.st_ino)
                return 0;
        if ((ours.st_mode & 077) != 0 && fchmod(fd, 0600) < 0)
                return -errno;
        return 1;
}

/* Flags for opening whatever file is there: no link is followed, and a FIFO does not block. */
enum { SAFELY = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY };

/* Opens the file and locks it; the lock is held until the file is closed. */
static int open_locked(const char *path, int flags) {
        for (;;) {
                _cleanup_close_ int fd = open(path, flags | O_RDWR | O_APPEND | SAFELY, 0600);
                int r;

                if (fd < 0)
                        return -errno;
                if (flock(fd, LOCK_EX) < 0) {
                        if (errno == EINTR)
                                continue;
                        return -errno;
                }
                r = is_current(fd, path);
                if (r < 0)
                        return r;
                if (r > 0) {
                        r = fd;
                        fd = -1;
                        return r;
                }
        }
}

static int read_all(int fd, GString *ret) {
        char buffer[65536];
        ssize_t n;

        while ((n = read(fd, buffer, sizeof buffer)) != 0) {
                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n > 0)
                        g_string_append_len(ret, buffer, n);
        }
        return 0;
}

/* ---- Reading ------------------------------------------------------------------------------------------------------ */

/* Returns the last entries; of equal ones only the last. `*ret_lines`: the number of lines in the file. */
static char **last_entries(const GString *file, size_t max, size_t *ret_lines) {
        g_autoptr(GPtrArray) entries = g_ptr_array_new_with_free_func(g_free);
        g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
        size_t end = file->len, n_lines = 0;

        while (end > 0) { /* from the end; a last line without newline is incomplete, and ignored */
                size_t start = --end;

                while (start > 0 && file->str[start - 1] != '\n')
                        start--;
                g_autofree char *entry = file->str[end] == '\n' ? decode(file->str + start, end - start) : NULL;
                if (entry && entries->len < max && !g_hash_table_contains(seen, entry)) {
                        g_hash_table_add(seen, entry);
                        g_ptr_array_add(entries, g_steal_pointer(&entry));
                }
                n_lines++;
                end = start;
        }
        *ret_lines = n_lines;
        for (size_t i = 0; i < entries->len / 2; i++) {
                void *other = entries->pdata[i];

                entries->pdata[i] = entries->pdata[entries->len - 1 - i];
                entries->pdata[entries->len - 1 - i] = other;
        }
        g_ptr_array_add(entries, NULL);
        return (char **) g_ptr_array_free(g_steal_pointer(&entries), false);
}

/* Replaces the file, whose lock we hold. */
static int write_anew(const char *path, char **entries) {
        g_autofree char *temporary = g_strconcat(path, ".XXXXXX", NULL);
        g_autoptr(GString) text = g_string_new(NULL);
        _cleanup_close_ int fd = mkostemp(temporary, O_CLOEXEC);
        int r;

        if (fd < 0)
                return -errno;
        for (char **entry = entries; *entry; entry++)
                append_encoded(text, *entry);
        r = write_all(fd, text->str, text->len);
        if (r >= 0 && rename(temporary, path) < 0)
                r = -errno;
        if (r < 0)
                (void) unlink(temporary);
        return r;
}

int history_file_read(const char *path, size_t max, char ***ret) {
        g_autoptr(GString) file = g_string_new(NULL);
        g_auto(GStrv) entries = NULL;
        _cleanup_close_ int fd = open_locked(path, 0);
        size_t n_lines;
        int r;

        if (fd < 0 && fd != -ENOENT)
                return fd;
        if (fd >= 0) {
                r = read_all(fd, file);
                if (r < 0)
                        return r;
        }
        entries = last_entries(file, max, &n_lines);
        if (n_lines > 2 * max) {
                r = write_anew(path, entries);
                if (r < 0)
                        return r;
        }
        *ret = g_steal_pointer(&entries);
        return 0;
}

int history_file_append(const char *path, const char *entry) {
        g_autofree char *folder = g_path_get_dirname(path);
        g_autoptr(GString) line = g_string_new(NULL);
        _cleanup_close_ int fd = -1;

        if (g_mkdir_with_parents(folder, 0700) < 0)
                return -errno;
        fd = open_locked(path, O_CREAT);
        if (fd < 0)
                return fd;
        append_encoded(line, entry);
        return write_all(fd, line->str, line->len);
}
