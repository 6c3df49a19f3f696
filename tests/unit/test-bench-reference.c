/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The transports that sqlipc-bench uses to send by reference: the queue in shared memory, messages with descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/test.h"
#include "tools/bench/core/passing.h"
#include "tools/bench/workloads/reference-queue.h"

enum { N_SLOTS = 3, SLOT_SIZE = 13 };

/* ---- The queue ---------------------------------------------------------------------------------------------------- */

static void put(Queue *queue, char letter, size_t size) {
        char bytes[SLOT_SIZE + 1];

        memset(bytes, letter, sizeof bytes);
        CHECK_INT(queue_put(queue, bytes, size), 0);
}

static void take(Queue *queue, char letter, size_t size) {
        char bytes[SLOT_SIZE + 1] = "";

        CHECK_INT(queue_take(queue, bytes, SLOT_SIZE), size);
        for (size_t i = 0; i < sizeof bytes; i++)
                CHECK_INT(bytes[i], i < size ? letter : '\0');
}

/* Places are used again, and no message touches its neighbour. */
static void test_queue_wraps(void) {
        Queue queue = QUEUE_INIT;

        CHECK_INT(queue_open(&queue, N_SLOTS, SLOT_SIZE), 0);
        put(&queue, 'a', SLOT_SIZE);
        put(&queue, 'b', 1);
        for (unsigned i = 0; i < 5 * N_SLOTS; i++) {
                put(&queue, (char) ('c' + i), 1 + i % SLOT_SIZE);
                take(&queue, (char) ('a' + i), i == 0 ? SLOT_SIZE : i == 1 ? 1 : 1 + (i - 2) % SLOT_SIZE);
        }
        queue_close(&queue);
}

static void test_queue_is_full_and_empty(void) {
        Queue queue = QUEUE_INIT;
        char bytes[SLOT_SIZE];

        CHECK_INT(queue_open(&queue, N_SLOTS, SLOT_SIZE), 0);
        CHECK_INT(queue_take(&queue, bytes, sizeof bytes), -EAGAIN);
        for (unsigned i = 0; i < N_SLOTS; i++)
                put(&queue, 'x', 2);
        CHECK_INT(queue_put(&queue, "", 0), -EAGAIN);
        take(&queue, 'x', 2);
        put(&queue, 'y', 2);
        CHECK_INT(queue_put(&queue, "", 0), -EAGAIN);
        for (unsigned i = 0; i < N_SLOTS; i++)
                take(&queue, i < N_SLOTS - 1 ? 'x' : 'y', 2);
        CHECK_INT(queue_take(&queue, bytes, sizeof bytes), -EAGAIN);
        queue_close(&queue);
}

/* A message that does not fit changes nothing. */
static void test_queue_sizes(void) {
        Queue queue = QUEUE_INIT;
        char bytes[SLOT_SIZE + 1] = "";

        CHECK_INT(queue_open(&queue, N_SLOTS, SLOT_SIZE), 0);
        CHECK_INT(queue_put(&queue, bytes, SLOT_SIZE + 1), -EMSGSIZE);
        CHECK_INT(queue_take(&queue, bytes, sizeof bytes), -EAGAIN);
        put(&queue, 'x', SLOT_SIZE);
        CHECK_INT(queue_take(&queue, bytes, SLOT_SIZE - 1), -EMSGSIZE);
        take(&queue, 'x', SLOT_SIZE);
        queue_close(&queue);
}

/* True if another process gets the lock without waiting. */
static bool other_process_locks(const Queue *queue) {
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
        pid_t pid = fork();
        int status;

        CHECK(pid >= 0);
        if (pid == 0)
                _exit(fcntl(queue->fd, F_SETLK, &lock) == 0 ? 0 : errno == EAGAIN || errno == EACCES ? 1 : 2);
        CHECK_INT(waitpid(pid, &status, 0), pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
        return WEXITSTATUS(status) == 0;
}

static void test_queue_lock(void) {
        Queue queue = QUEUE_INIT;

        CHECK_INT(queue_open(&queue, N_SLOTS, SLOT_SIZE), 0);
        CHECK(other_process_locks(&queue));
        CHECK_INT(queue_lock(&queue), 0);
        CHECK(!other_process_locks(&queue));
        CHECK_INT(queue_unlock(&queue), 0);
        CHECK(other_process_locks(&queue));
        queue_close(&queue);
}

/* Messages of another process arrive. */
static void test_queue_is_shared(void) {
        Queue queue = QUEUE_INIT;
        int status;
        pid_t pid;

        CHECK_INT(queue_open(&queue, N_SLOTS, SLOT_SIZE), 0);
        pid = fork();
        CHECK(pid >= 0);
        if (pid == 0)
                _exit(queue_lock(&queue) < 0 || queue_put(&queue, "zz", 2) < 0);
        CHECK_INT(waitpid(pid, &status, 0), pid);
        CHECK_INT(status, 0);
        CHECK_INT(queue_lock(&queue), 0); /* the lock went with its process */
        take(&queue, 'z', 2);
        queue_close(&queue);
}

/* ---- Messages with descriptors ------------------------------------------------------------------------------------ */

static bool is_same_file(int a, int b) {
        struct stat first, second;

        CHECK(fstat(a, &first) == 0 && fstat(b, &second) == 0);
        return first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

/* Over a datagram socket a message without bytes is one, too, and carries descriptors. */
static void test_passing(void) {
        int sockets[2], pipes[2], received[PASSING_FDS_MAX];
        char buffer[8];
        size_t n = 7;

        CHECK_INT(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, sockets), 0);
        CHECK_INT(pipe2(pipes, O_CLOEXEC), 0);
        CHECK_INT(passing_send(sockets[0], NULL, 0, pipes, 2), 0);
        CHECK_INT(passing_send(sockets[0], "abc", 3, NULL, 0), 0);
        CHECK_INT(passing_receive(sockets[1], buffer, sizeof buffer, received, &n), 0);
        CHECK_INT(n, 2);
        for (unsigned i = 0; i < 2; i++) {
                CHECK(is_same_file(received[i], pipes[i]));
                CHECK(fcntl(received[i], F_GETFD) & FD_CLOEXEC);
                close(received[i]);
        }
        CHECK_INT(passing_receive(sockets[1], buffer, sizeof buffer, received, &n), 3);
        CHECK_INT(n, 0);
        CHECK(memcmp(buffer, "abc", 3) == 0);
        CHECK_INT(passing_send(sockets[0], "123456789", 9, NULL, 0), 0);
        CHECK_INT(passing_receive(sockets[1], buffer, sizeof buffer, received, &n), -EPROTO);
        CHECK_INT(passing_send(sockets[0], "", 1, received, PASSING_FDS_MAX + 1), -EINVAL);
        for (unsigned i = 0; i < 2; i++) {
                close(sockets[i]);
                close(pipes[i]);
        }
}

static void test_read_all(void) {
        int fds[2];
        char buffer[4];

        CHECK_INT(pipe2(fds, O_CLOEXEC), 0);
        CHECK_INT(passing_write_all(fds[1], "abcdef", 6), 0);
        CHECK_INT(passing_read_all(fds[0], buffer, 4), 0);
        CHECK(memcmp(buffer, "abcd", 4) == 0);
        close(fds[1]);
        CHECK_INT(passing_read_all(fds[0], buffer, 4), -ENODATA); /* two are left */
        close(fds[0]);
}

int main(void) {
        static const Test tests[] = {
                TEST(test_queue_wraps),
                TEST(test_queue_is_full_and_empty),
                TEST(test_queue_sizes),
                TEST(test_queue_lock),
                TEST(test_queue_is_shared),
                TEST(test_passing),
                TEST(test_read_all),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
