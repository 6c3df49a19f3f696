/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * client-lib/row-memory: bytes stay unchanged when they move from memory to a file and back, bytes in the file do not count
 * as the process's own memory, and memory is used if no file is available. Library.
 */
#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "client-lib/row-memory.h"
#include "daemon/worker/sandbox/sanitized.h"

#define MIB ((size_t) 1024 * 1024)
/* Memory that the allocator keeps, and some pages. */
#define SLACK (MIB / 2)

static size_t own_memory(void) {
        g_autofree char *status = NULL;

        g_assert_true(g_file_get_contents("/proc/self/status", &status, NULL, NULL));
        return (size_t) g_ascii_strtoull(strstr(status, "RssAnon:") + strlen("RssAnon:"), NULL, 10) * 1024;
}

static uint8_t byte_at(size_t i) {
        return (uint8_t) (i * 7 + i / 4096);
}

/* Resizes, and looks whether what was there still is; fills what is new. */
static uint8_t *resize(RowMemory *memory, uint8_t *bytes, size_t size, size_t new_size) {
        bytes = row_memory_resize(memory, bytes, size, new_size);
        g_assert_nonnull(bytes);
        for (size_t i = 0; i < MIN(size, new_size); i++)
                g_assert_cmpuint(bytes[i], ==, byte_at(i));
        for (size_t i = size; i < new_size; i++)
                bytes[i] = byte_at(i);
        return bytes;
}

static void release(RowMemory *memory, uint8_t *bytes, size_t size) {
        g_assert_null(row_memory_resize(memory, bytes, size, 0));
        g_assert_cmpint(memory->fd, ==, -1);
}

static void test_file(void) {
        RowMemory memory = { .max = MIB, .fd = -1 };
        size_t before = own_memory();
        uint8_t *bytes;

        bytes = resize(&memory, NULL, 0, MIB / 2);
        bytes = resize(&memory, bytes, MIB / 2, MIB);
        g_assert_cmpint(memory.fd, ==, -1);
        bytes = resize(&memory, bytes, MIB, 2 * MIB);
        g_assert_cmpint(memory.fd, >=, 0);
        bytes = resize(&memory, bytes, 2 * MIB, 32 * MIB);
        if (!SANITIZED)
                g_assert_cmpuint(own_memory(), <, before + SLACK);
        bytes = resize(&memory, bytes, 32 * MIB, 3 * MIB + 5);
        bytes = resize(&memory, bytes, 3 * MIB + 5, 6 * MIB);
        release(&memory, bytes, 6 * MIB);
        bytes = resize(&memory, NULL, 0, 2 * MIB); /* the next row begins anew */
        g_assert_cmpint(memory.fd, >=, 0);
        release(&memory, bytes, 2 * MIB);
}

static void test_unbounded(void) {
        RowMemory memory = ROW_MEMORY_UNBOUNDED;
        uint8_t *bytes = resize(&memory, NULL, 0, 8 * MIB);

        g_assert_cmpint(memory.fd, ==, -1);
        release(&memory, bytes, 8 * MIB);
}

static void test_no_folder(void) {
        RowMemory memory = { .max = MIB, .fd = -1 };
        uint8_t *bytes;

        g_setenv("TMPDIR", "/nonexistent", TRUE);
        bytes = resize(&memory, NULL, 0, MIB);
        bytes = resize(&memory, bytes, MIB, 4 * MIB);
        g_assert_cmpint(memory.fd, ==, -1);
        release(&memory, bytes, 4 * MIB);
        g_unsetenv("TMPDIR");
}

/* A file that may not grow stands for a disk that is full. */
static void test_full(void) {
        struct rlimit before, limit;
        RowMemory memory = { .max = MIB, .fd = -1 };
        uint8_t *bytes;

        g_assert_cmpint(getrlimit(RLIMIT_FSIZE, &before), ==, 0);
        limit = (struct rlimit) { .rlim_cur = 4 * MIB, .rlim_max = before.rlim_max };
        g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &limit), ==, 0);
        bytes = resize(&memory, NULL, 0, 4 * MIB);
        g_assert_cmpint(memory.fd, >=, 0);
        bytes = resize(&memory, bytes, 4 * MIB, 8 * MIB);
        g_assert_cmpint(memory.fd, ==, -1);
        release(&memory, bytes, 8 * MIB);
        bytes = resize(&memory, NULL, 0, 8 * MIB); /* from the start */
        g_assert_cmpint(memory.fd, ==, -1);
        release(&memory, bytes, 8 * MIB);
        g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &before), ==, 0);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/row-memory/file", test_file);
        g_test_add_func("/row-memory/unbounded", test_unbounded);
        g_test_add_func("/row-memory/no-folder", test_no_folder);
        g_test_add_func("/row-memory/full", test_full);
        return g_test_run();
}
