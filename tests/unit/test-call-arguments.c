/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* dbus-interfaces/wire/call-arguments: files that are made, and files of hostile clients. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dbus-interfaces/wire/call-arguments.h"
#include "tests/unit/test.h"

#define SIZE 10000

static int sealed(unsigned flags, const void *bytes, size_t size, off_t length, int seals) {
        int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

        CHECK(fd >= 0);
        CHECK_INT(write(fd, bytes, size), (ssize_t) size);
        CHECK_INT(ftruncate(fd, length), 0);
        CHECK_INT(fcntl(fd, F_ADD_SEALS, seals), 0);
        return fd;
}

static void refused(int fd, int r) {
        uint64_t size;

        CHECK_INT(call_arguments_check(fd, &size), r);
        if (fd >= 0)
                close(fd);
}

static void test_round_trip(void) {
        uint8_t *written, *read;
        uint64_t size;
        int fd;

        CHECK_INT(call_arguments_new(SIZE, &fd, &written), 0);
        CHECK_INT(call_arguments_check(fd, &size), -EBADMSG); /* not sealed yet */
        call_arguments_write_head(written, 1, 2, 3, 4);
        memset(written + CALL_ARGUMENTS_HEAD_SIZE, 'x', SIZE - CALL_ARGUMENTS_HEAD_SIZE);
        CHECK_INT(call_arguments_seal(fd, written, SIZE), 0);
        CHECK_INT(call_arguments_check(fd, &size), 0);
        CHECK_INT(size, SIZE);
        CHECK_INT(call_arguments_map(fd, size, &read), 0);
        CHECK(memcmp(read, "\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0xx", 18) == 0);
        CHECK_INT(ftruncate(fd, 1), -1);
        CHECK_INT(pwrite(fd, "y", 1, 0), -1);
        close(fd);
        CHECK_INT(read[SIZE - 1], 'x');
        call_arguments_unmap(read, size);
        call_arguments_unmap(NULL, 0);
        CHECK_INT(call_arguments_new(CALL_ARGUMENTS_SIZE_MAX + 1, &fd, &written), -E2BIG);
}

static void test_hostile(void) {
        static const int seals[] = { F_SEAL_WRITE, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL };
        char bytes[SIZE] = {}, name[] = "/tmp/test-call-arguments-XXXXXX";
        int p[2], s[2], fd;

        for (size_t i = 0; i < sizeof seals / sizeof *seals; i++)
                refused(sealed(0, bytes, SIZE, SIZE, CALL_ARGUMENTS_SEALS & ~seals[i]), -EBADMSG);
        refused(sealed(0, bytes, CALL_ARGUMENTS_HEAD_SIZE, CALL_ARGUMENTS_HEAD_SIZE, CALL_ARGUMENTS_SEALS), -EBADMSG);
        refused(sealed(0, bytes, 0, 0, CALL_ARGUMENTS_SEALS), -EBADMSG);
        refused(sealed(0, bytes, SIZE, 1 << 20, CALL_ARGUMENTS_SEALS), -ENODATA);
        refused(sealed(0, bytes, SIZE, (off_t) CALL_ARGUMENTS_SIZE_MAX + 1, CALL_ARGUMENTS_SEALS), -E2BIG);
        refused(-1, -EBADMSG);
        CHECK_INT(pipe(p), 0);
        refused(p[0], -EBADMSG);
        refused(p[1], -EBADMSG);
        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
        refused(s[0], -EBADMSG);
        refused(s[1], -EBADMSG);
        refused(open("/dev/zero", O_RDONLY), -EBADMSG);
        refused(open("/tmp", O_PATH), -EBADMSG);
        fd = mkstemp(name);
        CHECK(fd >= 0);
        CHECK_INT(unlink(name), 0);
        CHECK_INT(write(fd, bytes, SIZE), SIZE);
        refused(fd, -EBADMSG);
}

/* Memory past the end makes up for that of a hole, but only in number. */
static void test_hidden_hole(void) {
        int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        uint8_t *bytes;
        uint64_t size;

        CHECK(fd >= 0);
        CHECK_INT(write(fd, "0123456789abcdefg", 17), 17);
        CHECK_INT(ftruncate(fd, 1 << 20), 0);
        CHECK_INT(fallocate(fd, FALLOC_FL_KEEP_SIZE, 1 << 20, 1 << 20), 0);
        CHECK_INT(fcntl(fd, F_ADD_SEALS, CALL_ARGUMENTS_SEALS), 0);
        CHECK_INT(call_arguments_check(fd, &size), 0);
        CHECK_INT(call_arguments_map(fd, size, &bytes), -ENODATA);
        close(fd);
}

/* Memory of huge pages has seals, too. */
static void test_huge_pages(void) {
        int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);

        if (fd < 0 || ftruncate(fd, 2 << 20) < 0 || fcntl(fd, F_ADD_SEALS, CALL_ARGUMENTS_SEALS) < 0) {
                if (fd >= 0)
                        close(fd);
                return; /* this kernel has none */
        }
        refused(fd, -EBADMSG);
}

int main(void) {
        static const Test tests[] = { TEST(test_round_trip), TEST(test_hostile), TEST(test_hidden_hole),
                TEST(test_huge_pages) };

        return test_main(tests, N_ELEMENTS(tests));
}
