/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The bytes of an input as decisions: taken one after the other; past the end they are zeros. Pure. Tests only.
 */
#ifndef SQLIPC_TESTS_FUZZ_INPUT_H
#define SQLIPC_TESTS_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>

typedef struct Input {
        const uint8_t *bytes;
        size_t size;
} Input;

/* Big-endian, of up to 8 bytes. */
static inline uint64_t input_number(Input *in, unsigned n_bytes) {
        uint64_t value = 0;

        for (unsigned i = 0; i < n_bytes; i++) {
                value <<= 8;
                if (in->size == 0)
                        continue;
                value |= *in->bytes++;
                in->size--;
        }
        return value;
}

static inline uint8_t input_byte(Input *in) {
        return (uint8_t) input_number(in, 1);
}

/* Up to `size` bytes as they are; *ret_size is how many there were. */
static inline const uint8_t *input_bytes(Input *in, size_t size, size_t *ret_size) {
        const uint8_t *bytes = in->bytes;

        *ret_size = size < in->size ? size : in->size;
        if (*ret_size > 0) /* an empty input has no bytes to point to */
                in->bytes += *ret_size;
        in->size -= *ret_size;
        return bytes;
}

#endif
