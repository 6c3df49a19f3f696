/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See change-numbers.h.
 */
#include "daemon/worker/core/change-numbers.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>

static const uint64_t *numbers;
static size_t n_numbers;

void change_numbers_open(int fd) {
        struct stat st;
        void *mapped;

        if (fstat(fd, &st) < 0 || st.st_size <= 0)
                return;
        mapped = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (mapped == MAP_FAILED)
                return;
        numbers = mapped;
        n_numbers = (size_t) st.st_size / sizeof *numbers;
}

uint64_t change_number(uint32_t slot) {
        return slot > 0 && slot < n_numbers ? __atomic_load_n(&numbers[slot], __ATOMIC_ACQUIRE) : 0;
}

uint64_t change_numbers_orders(void) {
        return n_numbers > 0 ? __atomic_load_n(&numbers[0], __ATOMIC_ACQUIRE) : 0;
}
