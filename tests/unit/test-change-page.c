/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The memory in which workers see the change sequences: numbers arrive, and the descriptor can only be read. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/supervisor/base/change-page.h"
#include "tests/unit/test.h"

#define SIZE (CHANGE_PAGE_N_SLOTS * sizeof(uint64_t))

static void test_numbers(void) {
        ChangePage page;

        change_page_init(&page);
        CHECK(page.fd >= 0);
        const uint64_t *seen = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, page.fd, 0);
        CHECK(seen != MAP_FAILED);
        uint32_t one = change_page_take_slot(&page), other = change_page_take_slot(&page);
        CHECK(one != 0 && other != 0 && one != other);
        change_page_set(&page, one, 7);
        change_page_set(&page, other, UINT64_MAX);
        change_page_set(&page, 0, 9); /* a database without a slot */
        CHECK(seen[one] == 7 && seen[other] == UINT64_MAX && seen[0] == 0);
        change_page_count_order(&page);
        CHECK(seen[one] == 7 && seen[0] == 1);
        CHECK_INT(munmap((void *) seen, SIZE), 0);
        change_page_done(&page);
}

/* A slot that was taken has memory: otherwise the first write to it could raise SIGBUS. */
static void test_allocated(void) {
        const unsigned n_per_page = 4096 / sizeof(uint64_t);
        struct stat st;
        ChangePage page;

        change_page_init(&page);
        for (unsigned n = 0; n < 2 * n_per_page; n++) /* slot 0 is no database's: the last one is in the third page */
                CHECK(change_page_take_slot(&page) != 0);
        CHECK_INT(fstat(page.fd, &st), 0);
        CHECK(st.st_blocks * 512 >= 3 * 4096);
        change_page_done(&page);
}

/* A worker can neither write nor change the size, nor take the seals away. */
static void test_sealed(void) {
        ChangePage page;
        uint64_t number = 1;

        change_page_init(&page);
        uint32_t slot = change_page_take_slot(&page);
        change_page_set(&page, slot, 7);
        CHECK(mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, page.fd, 0) == MAP_FAILED && errno == EPERM);
        void *seen = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, page.fd, 0);
        CHECK(seen != MAP_FAILED);
        CHECK(mprotect(seen, SIZE, PROT_READ | PROT_WRITE) < 0);
        CHECK(pwrite(page.fd, &number, sizeof number, slot * sizeof number) < 0 && errno == EPERM);
        CHECK(ftruncate(page.fd, 0) < 0 && ftruncate(page.fd, 2 * SIZE) < 0);
        CHECK(fallocate(page.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, SIZE) < 0);
        CHECK(fcntl(page.fd, F_ADD_SEALS, F_SEAL_WRITE) < 0 && errno == EPERM);
        CHECK(((const uint64_t *) seen)[slot] == 7);
        CHECK_INT(munmap(seen, SIZE), 0);
        change_page_done(&page);
}

/* Databases that were never seen before get none when all slots are taken; then their results have no number. */
static void test_all_slots(void) {
        ChangePage page;

        change_page_init(&page);
        for (uint32_t i = 1; i < CHANGE_PAGE_N_SLOTS; i++)
                CHECK(change_page_take_slot(&page) != 0);
        CHECK_INT(change_page_take_slot(&page), 0);
        CHECK_INT(change_page_take_slot(&page), 0);
        change_page_done(&page);
        CHECK_INT(change_page_take_slot(&page), 0); /* as if it could not be made */
}

int main(void) {
        static const Test tests[] = { TEST(test_numbers), TEST(test_allocated), TEST(test_sealed), TEST(test_all_slots) };

        return test_main(tests, N_ELEMENTS(tests));
}
