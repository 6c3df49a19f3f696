/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the rows of a run from a pipe, see page-read.h. */
#include "tools/bench/core/page-read.h"

#include <errno.h>
#include <unistd.h>

static void copy_row(const PageDecoder *decoder, Copy *copy) {
        for (unsigned i = 0; i < decoder->n_columns; i++) {
                PageValue value = page_decoder_value(decoder, i);

                switch (value.type) {
                case VALUE_INTEGER:
                        copy_integer(copy, (int64_t) load_le64(value.bytes));
                        break;
                case VALUE_REAL:
                        copy_real(copy, load_le_double(value.bytes));
                        break;
                case VALUE_TEXT:
                case VALUE_BLOB:
                        copy_bytes(copy, (sqlipc_type) value.type, value.bytes, value.size);
                        break;
                case VALUE_NULL:
                        copy_null(copy);
                        break;
                }
        }
        copy->n_rows++;
}

/* Does one read() into the decoder. */
static int fill(PageDecoder *decoder, int fd) {
        uint8_t *room;
        size_t size;
        ssize_t n;
        int r = page_decoder_reserve(decoder, &room, &size);

        if (r < 0)
                return r;
        n = TEMP_FAILURE_RETRY(read(fd, room, size));
        if (n <= 0)
                return n < 0 ? -errno : -ECONNRESET;
        page_decoder_commit(decoder, (size_t) n);
        return 0;
}

int page_read_run(PageDecoder *decoder, int fd, Copy *copy) {
        int r;

        do {
                r = page_decoder_next(decoder);
                if (r == PAGE_ROW)
                        copy_row(decoder, copy);
                else if (r == PAGE_MORE)
                        r = fill(decoder, fd);
        } while (r >= 0 && r != PAGE_END && r != PAGE_ERROR);
        return r == PAGE_ERROR ? -EIO : r < 0 ? r : 0;
}
