/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Without an engine, a fuzz target is a program that replays its corpus, in TAP; its argument is the folder. Tests
 * only. With libFuzzer (tools/fuzz.sh) the engine has main().
 */
#ifndef SQLIPC_TESTS_FUZZ_REPLAY_H
#define SQLIPC_TESTS_FUZZ_REPLAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/demand.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#ifdef WITH_FUZZING_ENGINE
/* Of the engine: changes `bytes` in place, at most to `size_max`; returns their size. */
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t size_max);
/* Of a target that has one: the same, so that what comes out still means something. `seed` is all the randomness. */
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t size_max, unsigned seed);
#else
#include <dirent.h>
#include <errno.h>
#include <string.h>

/* A copy of exactly its size, so that AddressSanitizer sees a look behind it. */
static int replay(const char *folder, const char *name) {
        char path[4096];
        uint8_t *bytes;
        FILE *file;
        long size;

        snprintf(path, sizeof path, "%s/%s", folder, name);
        file = fopen(path, "re");
        if (!file)
                return -errno;
        size = fseek(file, 0, SEEK_END) < 0 ? -1 : ftell(file);
        bytes = size < 0 ? NULL : malloc((size_t) size);
        rewind(file);
        if (size < 0 || (size > 0 && (!bytes || fread(bytes, 1, (size_t) size, file) != (size_t) size))) {
                fclose(file);
                free(bytes);
                return -EIO;
        }
        fclose(file);
        LLVMFuzzerTestOneInput(bytes, (size_t) size);
        free(bytes);
        return 0;
}

/* "fuzz-NAME" -> "NAME" */
static const char *target_of(const char *program) {
        const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;

        return strncmp(name, "fuzz-", 5) == 0 ? name + 5 : name;
}

int main(int argc, char **argv) {
        struct dirent **entries;
        unsigned number = 0;
        int n;

        n = argc == 2 ? scandir(argv[1], &entries, NULL, alphasort) : -1;
        if (n < 0) {
                fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
                return EXIT_FAILURE;
        }
        setvbuf(stdout, NULL, _IOLBF, 0);
        for (int i = 0; i < n; i++) {
                const char *name = entries[i]->d_name;

                if (name[0] != '.') {
                        number++;
                        printf("%s %u - %s\n", replay(argv[1], name) < 0 ? "not ok" : "ok", number, name);
                }
                free(entries[i]);
        }
        free(entries);
        printf("# cases: fuzz %s: %u: inputs of the corpus\n1..%u\n", target_of(argv[0]), number, number);
        return number > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
#endif

#endif
