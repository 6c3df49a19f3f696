/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/cli/output/spool: a queue of bytes in a file without a name. */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/output/spool.h"

static void opened(Spool *spool, uint64_t max) {
        g_assert_cmpint(spool_open(spool, max), ==, 0);
}

static char *peek(const Spool *spool, uint64_t offset, size_t size) {
        g_autofree char *buffer = g_malloc(size);
        ssize_t n = spool_peek(spool, offset, buffer, size);

        g_assert_cmpint(n, >=, 0);
        return g_strndup(buffer, (size_t) n);
}

static void test_order(void) {
        Spool spool;

        opened(&spool, 100);
        g_assert_cmpint(spool_write(&spool, "one ", 4), ==, 0);
        g_assert_cmpint(spool_write(&spool, "two", 3), ==, 0);
        g_autofree char *first = peek(&spool, spool.read, 6);
        g_assert_cmpstr(first, ==, "one tw");
        spool_advance(&spool, 4);
        g_autofree char *rest = peek(&spool, spool.read, 50);
        g_assert_cmpstr(rest, ==, "two");
        spool_advance(&spool, 3);
        g_autofree char *none = peek(&spool, spool.read, 50);
        g_assert_cmpstr(none, ==, "");
        g_autofree char *again = peek(&spool, 0, 50);
        g_assert_cmpstr(again, ==, "one two");
        spool_close(&spool);
}

/* Waiting bytes are bounded; the sum of all bytes is not. */
static void test_max(void) {
        Spool spool;

        opened(&spool, 10);
        g_assert_cmpint(spool_write(&spool, "0123456789", 10), ==, 0);
        g_assert_cmpint(spool_write(&spool, "x", 1), ==, -EFBIG);
        g_assert_cmpuint(spool.written, ==, 10);
        spool_advance(&spool, 3);
        g_assert_cmpint(spool_write(&spool, "abcd", 4), ==, -EFBIG);
        g_assert_cmpint(spool_write(&spool, "abc", 3), ==, 0);
        g_autofree char *rest = peek(&spool, spool.read, 50);
        g_assert_cmpstr(rest, ==, "3456789abc");
        spool_close(&spool);
}

static bool can_punch(int fd) {
        return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1 << 20, 1 << 20) >= 0;
}

/* 64 MiB pass, the file has a few of them at a time, and at the end the first one still. */
static void test_disk(void) {
        g_autofree char *block = g_malloc(65536);
        uint64_t most = 0;
        struct stat st;
        Spool spool;

        opened(&spool, 1 << 20);
        if (!can_punch(spool.fd)) {
                g_test_skip("the file system of temporary files cannot give back parts of one");
                spool_close(&spool);
                return;
        }
        for (int i = 0; i < 1024; i++) {
                memset(block, 'a' + i % 26, 65536);
                g_assert_cmpint(spool_write(&spool, block, 65536), ==, 0);
                g_assert_cmpint(spool_peek(&spool, spool.read, block, 65536), ==, 65536);
                g_assert_cmpint(block[65535], ==, 'a' + i % 26);
                spool_advance(&spool, 65536);
                g_assert_cmpint(fstat(spool.fd, &st), ==, 0);
                most = MAX(most, (uint64_t) st.st_blocks * 512);
        }
        g_assert_cmpuint(most, <=, 12 << 20);
        for (uint64_t offset = 0; offset < SPOOL_KEPT; offset += 65536) {
                g_assert_cmpint(spool_peek(&spool, offset, block, 65536), ==, 65536);
                g_assert_cmpint(block[0], ==, 'a' + (int) (offset / 65536) % 26);
        }
        spool_close(&spool);
}

/* It has no name, others cannot open it, and children do not get it. */
static void test_hidden(void) {
        struct stat st;
        Spool spool;

        opened(&spool, 10);
        g_assert_cmpint(fstat(spool.fd, &st), ==, 0);
        g_assert_cmpuint(st.st_nlink, ==, 0);
        g_assert_cmpuint(st.st_mode & 0777, ==, 0600);
        g_assert_true(fcntl(spool.fd, F_GETFD) & FD_CLOEXEC);
        spool_close(&spool);
        g_assert_cmpint(spool.fd, ==, -1);
        spool_close(&spool);
}

static void test_nowhere(void) {
        if (g_test_subprocess()) {
                Spool spool;

                g_setenv("TMPDIR", "/nonexistent", TRUE);
                g_assert_cmpint(spool_open(&spool, 10), ==, -ENOENT);
                return;
        }
        g_test_trap_subprocess(NULL, 0, 0); /* GLib looks TMPDIR up once */
        g_test_trap_assert_passed();
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/spool/order", test_order);
        g_test_add_func("/spool/max", test_max);
        g_test_add_func("/spool/disk", test_disk);
        g_test_add_func("/spool/hidden", test_hidden);
        g_test_add_func("/spool/nowhere", test_nowhere);
        return g_test_run();
}
