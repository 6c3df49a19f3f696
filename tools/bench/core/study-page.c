/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pages of the 2010 study, see study-page.h. Pure. */
#include "tools/bench/core/study-page.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define INTEGER_SIZE sizeof(uint32_t)

static void store(uint8_t *place, uint32_t value) {
        value = htole32(value);
        memcpy(place, &value, sizeof value);
}

/* Loads the value only once, so that the checked value is used even if the other side writes meanwhile. */
static uint32_t load(const uint8_t *place) {
        uint32_t value;

        memcpy(&value, place, sizeof value);
        __asm__ volatile("" : "+r"(value));
        return le32toh(value);
}

int study_page_add_row(StudyPage *page, const StudyText *values, uint32_t n_values) {
        size_t texts = (size_t) n_values * INTEGER_SIZE, end = texts, needed;
        uint8_t *row = page->bytes + page->used, *indices = row + 2 * INTEGER_SIZE;

        for (uint32_t i = 0; i < n_values; i++)
                end += (size_t) values[i].size + 1;
        needed = 2 * INTEGER_SIZE + end;
        if (needed > page->size || end > UINT32_MAX)
                return -EMSGSIZE;
        if (needed > page->size - page->used)
                return 0;

        store(row, STUDY_ROW);
        store(row + INTEGER_SIZE, n_values);
        for (uint32_t i = 0; i < n_values; i++) {
                memcpy(indices + texts, values[i].text, values[i].size);
                texts += values[i].size;
                indices[texts] = '\0';
                store(indices + (size_t) i * INTEGER_SIZE, (uint32_t) texts++);
        }
        page->used += needed;
        return 1;
}

int study_page_add_end(StudyPage *page, int code) {
        if (page->size - page->used < INTEGER_SIZE)
                return 0;
        store(page->bytes + page->used, (uint32_t) code);
        page->used += INTEGER_SIZE;
        return 1;
}

void study_page_finish(StudyPage *page) {
        if (page->used < page->size)
                page->bytes[page->used++] = STUDY_NO_MORE;
}

int study_page_next_row(StudyPage *page, StudyText *ret_values, uint32_t n_values) {
        const uint8_t *row = page->bytes + page->used, *indices = row + 2 * INTEGER_SIZE;
        size_t left = page->size - page->used, start = (size_t) n_values * INTEGER_SIZE;
        uint32_t code;

        if (left == 0 || *row == STUDY_NO_MORE)
                return STUDY_NO_MORE;
        if (left < INTEGER_SIZE)
                return -EBADMSG;
        code = load(row);
        if (code != STUDY_ROW)
                return code < STUDY_NO_MORE ? (int) code : -EBADMSG;
        if (left < 2 * INTEGER_SIZE + start || load(row + INTEGER_SIZE) != n_values)
                return -EBADMSG;

        left -= 2 * INTEGER_SIZE;
        for (uint32_t i = 0; i < n_values; i++) {
                uint32_t end = load(indices + (size_t) i * INTEGER_SIZE);

                if (end < start || end >= left)
                        return -EBADMSG;
                ret_values[i] = (StudyText) { .text = (const char *) indices + start, .size = end - (uint32_t) start };
                start = (size_t) end + 1;
        }
        page->used += 2 * INTEGER_SIZE + start;
        return STUDY_ROW;
}
