/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The pages of the 2010 study's protocol, as it was published: fixed-size buffers of rows. Pure.
 *
 *      a row    i32 return code (SQLITE_ROW), u32 number of columns, for each column u32 the index of its trailing NUL,
 *               counted from behind the number of columns; then the texts, one behind the other, each with its NUL
 *      the end  i32 return code alone: SQLITE_DONE, or what SQLite came upon
 *      0xFF     where a row would start: the page has room left, and nothing more in it
 *
 * Little-endian; the report does not say how wide its integers are: 32 bits here. Values are text and nothing else, and a
 * row that is larger than a page cannot be sent. Neither belongs to what is measured, so neither was mended.
 */
#ifndef BENCH_STUDY_PAGE_H
#define BENCH_STUDY_PAGE_H

#include <stddef.h>
#include <stdint.h>

/* SQLite's own numbers (SQLITE_ROW...). */
enum {
        STUDY_ROW = 100,
        STUDY_DONE = 101,
        STUDY_NO_MORE = 0xFF,
};

typedef struct StudyText {
        const char *text; /* a NUL behind it */
        uint32_t size;    /* without that NUL */
} StudyText;

/* A page that is filled, or read: `bytes` are the caller's. */
typedef struct StudyPage {
        uint8_t *bytes;
        size_t size, used;
} StudyPage;

/** 1: the row is in; 0: no room left, send the page and add it to the next; -EMSGSIZE: no page has room for it. */
int study_page_add_row(StudyPage *page, const StudyText *values, uint32_t n_values);

/** Ends the result with what SQLite returned. 1 or 0, as above. */
int study_page_add_end(StudyPage *page, int code);

/** Marks the end of a page that has room left: it may be sent. */
void study_page_finish(StudyPage *page);

/** Reads the next row of exactly `n_values`, in place. STUDY_ROW; STUDY_NO_MORE: the next page goes on; anything else is the
 * end, by its return code. The page may be another process' memory, which changes while it is read: a value lies within the
 * page all the same. -EBADMSG: it is no such page. */
int study_page_next_row(StudyPage *page, StudyText *ret_values, uint32_t n_values);

#endif
