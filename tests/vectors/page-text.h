/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a decoder found, as lines of text that tests compare. Tests only; pure but for the stream that it prints to.
 *
 *      run NUMBER PAGE_SIZE          PAGE_SIZE is "-" where the run failed before its COLUMNS
 *      column STRING STRING          name and declared type; "-" for an absent one
 *      columns-item TAG STRING       an item of the extension of COLUMNS, in decimal and by its bytes
 *      row VALUE...                  i:DECIMAL, r:16 hex digits of the bits, t:HEX, b:HEX, n
 *      end DECIMAL...                the seven counters, in the order of the frame; then changes and rowid, if it wrote
 *      error-item TAG STRING         the same of the ERROR in the next line
 *      error NUMBER CODE OFFSET STRING
 *
 * A STRING is x and its bytes in hex, so that no byte needs quoting.
 */
#ifndef SQLIPC_TESTS_VECTORS_PAGE_TEXT_H
#define SQLIPC_TESTS_VECTORS_PAGE_TEXT_H

#include <stdio.h>

#include "dbus-interfaces/wire/page-decoder.h"

/* Prints `event`, which page_decoder_next() just answered. `*in_run`: whether "run" was printed for the run under way; false
 * before the first event. */
void page_text_event(FILE *out, const PageDecoder *d, int event, bool *in_run);

/* Decodes `size` bytes, fed in pieces of at most `chunk`, and prints every event. Returns what ended it: 0, or a negative
 * errno of the decoder, page_decoder_end_of_file() included. */
int page_text_decode(FILE *out, PageDecoder *d, const uint8_t *bytes, size_t size, size_t chunk);

#endif
