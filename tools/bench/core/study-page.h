/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The pages of the 2010 study's protocol, as it was published: fixed-size buffers of rows. Pure.
 *
 *      a row    i32 return code (SQLITE_ROW), u32 number of columns, for each column u32 the index of its trailing NUL,
 *               counted from the end of the number of columns; then the texts one after the other, each with its NUL
 *      the end  only an i32 return code: SQLITE_DONE or SQLite's error
 *      0xFF     in place of a row: the page ends here, although it has room left
 *
 * All integers are little-endian. The report does not say how wide they are; here they have 32 bits. All values are text,
 * and a row that is larger than a page cannot be sent. These two limits do not affect what is measured, so they were kept.
 */
#ifndef SQLIPC_TOOLS_BENCH_CORE_STUDY_PAGE_H
#define SQLIPC_TOOLS_BENCH_CORE_STUDY_PAGE_H

#include <stddef.h>
#include <stdint.h>

/* SQLite's own numbers (SQLITE_ROW...). */
enum {
        STUDY_ROW = 100,
        STUDY_DONE = 101,
        STUDY_NO_MORE = 0xFF,
};

typedef struct StudyText {
        const char *text; /* followed by a NUL */
        uint32_t size;    /* without the NUL */
} StudyText;

/* A page that is being filled or read. The caller owns `bytes`. */
typedef struct StudyPage {
        uint8_t *bytes;
        size_t size, used;
} StudyPage;

/** Returns 1 if the row was added; 0 if the page is full: send it and add the row to the next; -EMSGSIZE: too large. */
int study_page_add_row(StudyPage *page, const StudyText *values, uint32_t n_values);

/** Ends the result with SQLite's return code. Returns 1 or 0, as study_page_add_row(). */
int study_page_add_end(StudyPage *page, int code);

/** Marks the end of a page that has room left. Call it before the page is sent. */
void study_page_finish(StudyPage *page);

/** Reads the next row, of exactly `n_values` values, in place. Returns STUDY_ROW for a row, STUDY_NO_MORE if the result
 * continues in the next page, otherwise the return code that ends the result. -EBADMSG: the page is not valid. Another
 * process may share the page and change it meanwhile; every value is within the page nevertheless. */
int study_page_next_row(StudyPage *page, StudyText *ret_values, uint32_t n_values);

#endif
