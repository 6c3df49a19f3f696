/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The basis of the transports that sqlipc-bench compares: the study's pages, the shared ring, the line through points. */
#include <errno.h>
#include <math.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/test.h"
#include "tools/bench/core/line-fit.h"
#include "tools/bench/core/shared-ring.h"
#include "tools/bench/core/study-page.h"

#define TEXT(string) { .text = (string), .size = sizeof(string) - 1 }

/* ---- Pages -------------------------------------------------------------------------------------------------------- */

enum { ROW_SIZE = 8 + 2 * 4 + 2 + 4 }; /* of the row below */

static const StudyText row[] = { TEXT("1"), TEXT("abc") };

/* The bytes as they were published. */
static void test_page_bytes(void) {
        static const uint8_t expected[] = {
                100, 0, 0, 0,   2, 0, 0, 0,   9, 0, 0, 0,   13, 0, 0, 0,   '1', 0, 'a', 'b', 'c', 0, /* a row */
                101, 0, 0, 0,                                                                       /* the end */
                0xFF,                                                                               /* room is left */
        };
        uint8_t bytes[64];
        StudyPage page = { .bytes = bytes, .size = sizeof bytes };

        CHECK_INT(study_page_add_row(&page, row, 2), 1);
        CHECK_INT(study_page_add_end(&page, STUDY_DONE), 1);
        study_page_finish(&page);
        CHECK_INT(page.used, sizeof expected);
        CHECK(memcmp(bytes, expected, sizeof expected) == 0);
}

static void check_row(StudyPage *page) {
        StudyText values[2];

        CHECK_INT(study_page_next_row(page, values, 2), STUDY_ROW);
        CHECK_INT(values[0].size, 1);
        CHECK_STRING(values[0].text, "1");
        CHECK_INT(values[1].size, 3);
        CHECK_STRING(values[1].text, "abc");
}

/* A page that is full to its last byte has no mark; neither has the one whose last row is its end. */
static void test_page_exactly_full(void) {
        uint8_t bytes[2 * ROW_SIZE];
        StudyPage page = { .bytes = bytes, .size = sizeof bytes };
        StudyText values[2];

        CHECK_INT(study_page_add_row(&page, row, 2), 1);
        CHECK_INT(study_page_add_row(&page, row, 2), 1);
        CHECK_INT(page.used, sizeof bytes);
        CHECK_INT(study_page_add_row(&page, row, 2), 0);
        CHECK_INT(study_page_add_end(&page, STUDY_DONE), 0);
        study_page_finish(&page);
        CHECK_INT(page.used, sizeof bytes);

        page.used = 0;
        check_row(&page);
        check_row(&page);
        CHECK_INT(study_page_next_row(&page, values, 2), STUDY_NO_MORE);
}

/* One byte less than the second row takes. */
static void test_page_with_room_left(void) {
        uint8_t bytes[2 * ROW_SIZE - 1];
        StudyPage page = { .bytes = bytes, .size = sizeof bytes };
        StudyText values[2];

        CHECK_INT(study_page_add_row(&page, row, 2), 1);
        CHECK_INT(study_page_add_row(&page, row, 2), 0);
        study_page_finish(&page);
        page.used = 0;
        check_row(&page);
        CHECK_INT(study_page_next_row(&page, values, 2), STUDY_NO_MORE);
        CHECK_INT(study_page_next_row(&page, values, 2), STUDY_NO_MORE);
}

static void test_row_larger_than_a_page(void) {
        uint8_t bytes[ROW_SIZE];
        StudyPage page = { .bytes = bytes, .size = sizeof bytes - 1 };

        CHECK_INT(study_page_add_row(&page, row, 2), -EMSGSIZE);
        CHECK_INT(page.used, 0);
        page.size = sizeof bytes;
        CHECK_INT(study_page_add_row(&page, row, 2), 1);
}

static void test_ends(void) {
        uint8_t bytes[4];
        StudyPage page = { .bytes = bytes, .size = sizeof bytes };
        StudyText values[2];

        CHECK_INT(study_page_add_end(&page, 11), 1); /* SQLITE_CORRUPT */
        page.used = 0;
        CHECK_INT(study_page_next_row(&page, values, 2), 11);
}

/* No byte of a page makes a value lie outside of it. */
static void test_hostile_pages(void) {
        uint8_t good[ROW_SIZE], bytes[ROW_SIZE];
        StudyPage page = { .bytes = good, .size = sizeof good };
        unsigned n_refused = 0;
        StudyText values[2];

        CHECK_INT(study_page_add_row(&page, row, 2), 1);
        for (size_t i = 0; i < 16; i++)
                for (unsigned value = 0; value < 256; value++) {
                        int r;

                        memcpy(bytes, good, sizeof bytes);
                        bytes[i] = (uint8_t) value;
                        page = (StudyPage) { .bytes = bytes, .size = sizeof bytes };
                        r = study_page_next_row(&page, values, 2);
                        n_refused += r < 0;
                        CHECK(r <= STUDY_NO_MORE);
                        CHECK(page.used <= sizeof bytes);
                        for (size_t k = 0; r == STUDY_ROW && k < 2; k++) {
                                CHECK((const uint8_t *) values[k].text >= bytes + 16);
                                CHECK((const uint8_t *) values[k].text + values[k].size < bytes + sizeof bytes);
                        }
                }
        CHECK(n_refused > 3000); /* of 4096 */

        for (size_t size = 1; size < ROW_SIZE; size++) {
                page = (StudyPage) { .bytes = good, .size = size };
                CHECK_INT(study_page_next_row(&page, values, 2), -EBADMSG);
        }
        page = (StudyPage) { .bytes = good, .size = sizeof good };
        CHECK_INT(study_page_next_row(&page, values, 1), -EBADMSG);
}

/* ---- Ring --------------------------------------------------------------------------------------------------------- */

enum { SLOTS = 4, SLOT_SIZE = 4096, ROUNDS = 20000 };

/* Both sides start there, as if so many slots had gone through. */
static void start_at(SharedRing *ring, uint32_t position) {
        ring->position = position;
        ring->head->written = position;
        ring->head->read = position;
}

static int write_rounds(SharedRing *ring) {
        for (uint32_t i = 0; i < ROUNDS; i++) {
                uint8_t *slot;
                int r;

                r = shared_ring_begin_write(ring, &slot);
                if (r < 0)
                        return r;
                memcpy(slot, &i, sizeof i);
                memcpy(slot + SLOT_SIZE - sizeof i, &i, sizeof i);
                shared_ring_written(ring);
        }
        return 0;
}

static void check_rounds(SharedRing *ring) {
        for (uint32_t i = 0, first, last; i < ROUNDS; i++) {
                const uint8_t *slot;

                CHECK_INT(shared_ring_begin_read(ring, &slot), 0);
                memcpy(&first, slot, sizeof first);
                memcpy(&last, slot + SLOT_SIZE - sizeof last, sizeof last);
                CHECK_INT(first, i);
                CHECK_INT(last, i);
                shared_ring_read(ring);
        }
}

/* Past the end of the ring, and of the counts; who is ahead sleeps. */
static void test_ring_between_processes(void) {
        SharedRing ring;
        const uint8_t *slot;
        int fds[2], status;
        pid_t pid;

        CHECK_INT(shared_ring_new(SLOT_SIZE, SLOTS, &ring), 0);
        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
        start_at(&ring, UINT32_MAX - ROUNDS / 2);
        pid = fork();
        if (pid == 0) {
                close(fds[0]);
                ring.peer = fds[1];
                _exit(write_rounds(&ring) < 0);
        }
        close(fds[1]);
        ring.peer = fds[0];
        check_rounds(&ring);
        CHECK_INT(waitpid(pid, &status, 0), pid);
        CHECK_INT(status, 0);
        /* It is empty, and the writer gone. */
        CHECK_INT(shared_ring_begin_read(&ring, &slot), -ECONNRESET);
        shared_ring_done(&ring);
        close(fds[0]);
}

/* The ring is full at the last of its slots, not before and not behind; a reader that left ends the wait. */
static void test_ring_full(void) {
        SharedRing ring;
        uint8_t *slot;
        int fds[2];

        CHECK_INT(shared_ring_new(SLOT_SIZE, SLOTS, &ring), 0);
        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
        close(fds[1]);
        ring.peer = fds[0];
        for (int i = 0; i < SLOTS; i++) {
                CHECK_INT(shared_ring_begin_write(&ring, &slot), 0);
                CHECK(slot == ring.slots + (size_t) i * SLOT_SIZE);
                shared_ring_written(&ring);
        }
        CHECK_INT(shared_ring_begin_write(&ring, &slot), -ECONNRESET);
        ring.head->read = SLOTS / 2;
        CHECK_INT(shared_ring_begin_write(&ring, &slot), 0);
        CHECK(slot == ring.slots);
        shared_ring_done(&ring);
        close(fds[0]);
}

/* Any message of the other side leads to a slot of the ring, or an error. */
static void test_ring_hostile_counts(void) {
        static const uint32_t read[] = { 1, SLOTS, UINT32_MAX - SLOTS, UINT32_MAX / 2 };
        static const uint32_t written[] = { SLOTS + 1, UINT32_MAX, UINT32_MAX / 2 };
        SharedRing ring;
        const uint8_t *slot;
        uint8_t *place;

        CHECK_INT(shared_ring_new(SLOT_SIZE, SLOTS, &ring), 0);
        for (size_t i = 0; i < N_ELEMENTS(read); i++) {
                ring.head->read = read[i]; /* nothing was written yet */
                CHECK_INT(shared_ring_begin_write(&ring, &place), -EBADMSG);
        }
        for (size_t i = 0; i < N_ELEMENTS(written); i++) {
                ring.head->written = written[i];
                CHECK_INT(shared_ring_begin_read(&ring, &slot), -EBADMSG);
        }
        ring.head->written = SLOTS;
        CHECK_INT(shared_ring_begin_read(&ring, &slot), 0);
        shared_ring_done(&ring);
}

/* The size is sealed: neither side can take memory away below the other. */
static void test_ring_sealed(void) {
        SharedRing ring;

        CHECK_INT(shared_ring_new(SLOT_SIZE, SLOTS, &ring), 0);
        CHECK_INT(ftruncate(ring.memory, 0), -1);
        CHECK_INT(errno, EPERM);
        CHECK_INT(ftruncate(ring.memory, 1024 * 1024), -1);
        CHECK_INT(errno, EPERM);
        shared_ring_done(&ring);
}

/* ---- Line --------------------------------------------------------------------------------------------------------- */

static void check_near(double got, double expected) {
        CHECK(fabs(got - expected) < 1e-9);
}

static void test_line(void) {
        static const double x[] = { 1, 2, 3, 4 }, on_line[] = { 5, 7, 9, 11 }, beside[] = { 6, 5, 7, 10 };
        LineFit fit = line_fit(x, on_line, 4);

        check_near(fit.slope, 2);
        check_near(fit.intercept, 3);
        check_near(fit.r_squared, 1);

        /* the textbook's example: 3.5 + 1.4 x, of 14 that y varies by 9.8 explained */
        fit = line_fit(x, beside, 4);
        check_near(fit.slope, 1.4);
        check_near(fit.intercept, 3.5);
        check_near(fit.r_squared, 0.7);
}

int main(void) {
        static const Test tests[] = {
                TEST(test_page_bytes),
                TEST(test_page_exactly_full),
                TEST(test_page_with_room_left),
                TEST(test_row_larger_than_a_page),
                TEST(test_ends),
                TEST(test_hostile_pages),
                TEST(test_ring_between_processes),
                TEST(test_ring_full),
                TEST(test_ring_hostile_counts),
                TEST(test_ring_sealed),
                TEST(test_line),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
