/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The supervisor's part of a channel's memory (shared-memory.h), whose client punches holes that the kernel cannot fill, at
 * any moment. Supervisor.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/runs/shared-memory.h"
#include "dbus-interfaces/wire/channel-memory.h"
#include "tests/unit/test.h"

/* In each mapping, an access to the bytes from `first_lost` on raises SIGBUS. */
static size_t first_lost = SIZE_MAX;
static int empty_fd;
void *__real_mmap64(void *address, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *address, size_t size, int protection, int flags, int fd, off_t offset);

void *__wrap_mmap64(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
        uint8_t *memory = __real_mmap64(address, size, protection, flags, fd, offset);

        CHECK(memory != MAP_FAILED);
        if (first_lost < size)
                CHECK(__real_mmap64(memory + first_lost, size - first_lost, protection, flags | MAP_FIXED, empty_fd, 0) !=
                      MAP_FAILED);
        return memory;
}

static Context context;
static User *user;
static SharedMemory *memory;
static int fds[2];

static void start(void) {
        context.users = g_hash_table_new(NULL, NULL);
        user = user_get(&context, 1000);
        memory = shared_memory_new(user);
        CHECK(memory);
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) >= 0);
        empty_fd = memfd_create("empty", MFD_CLOEXEC);
        CHECK(empty_fd >= 0);
        first_lost = SIZE_MAX;
}

static void finish(void) {
        CHECK(!shared_memory_free(memory));
        user = user_unref(user);
        g_hash_table_unref(context.users);
        close(fds[0]);
        close(fds[1]);
        close(empty_fd);
}

static ssize_t write_answer(size_t size) {
        static char bytes[CHANNEL_MEMORY_SIZE];

        return shared_memory_write(memory, (Bytes) { .data = bytes, .size = size }, fds[0]);
}

/* Each page may be the one that cannot be filled. The call says so, and the next one works. */
static void test_holes_that_stay(void) {
        const size_t page = (size_t) sysconf(_SC_PAGESIZE);
        unsigned n_failed = 0;

        for (size_t at = 0; at < CHANNEL_MEMORY_SIZE; at += page) {
                start();
                first_lost = at;
                ssize_t n = write_answer(60000);
                CHECK(n == -EFAULT || n == 60000);
                n_failed += n < 0;
                CHECK(shared_memory_rest(memory, fds[0]) == (at == 0));
                first_lost = SIZE_MAX;
                CHECK_INT(write_answer(10), 10);
                CHECK(!shared_memory_rest(memory, fds[0]));
                finish();
        }
        CHECK(n_failed > 10);
}

/* Holes that the kernel fills are zeros. */
static void test_holes(void) {
        start();
        CHECK_INT(write_answer(10), 10);
        CHECK(fallocate(shared_memory_fd(memory), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, CHANNEL_MEMORY_SIZE) >= 0);
        CHECK_INT(write_answer(10), 10);
        CHECK(!shared_memory_rest(memory, fds[0]));
        finish();
}

/* Other wrong accesses still end the process. */
static void test_errors_of_ours(void) {
        int status;
        pid_t pid;

        start();
        first_lost = 0;
        CHECK_INT(write_answer(10), -EFAULT);
        pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
                const struct rlimit none = { 0 };

                (void) setrlimit(RLIMIT_CORE, &none);
                (void) signal(SIGBUS, SIG_DFL); /* not a sanitizer's */
                *(volatile char *) mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, empty_fd, 0) = 1;
                _exit(0);
        }
        CHECK_INT(waitpid(pid, &status, 0), pid);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
        finish();
}

int main(void) {
        static const Test tests[] = {
                TEST(test_holes_that_stay),
                TEST(test_holes),
                TEST(test_errors_of_ours),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
