/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a fuzz target is without an engine: a program that replays its corpus, in TAP; its argument is the folder. Tests
 * only. With libFuzzer (docs/HACKING.md) the engine brings main() along.
 */
#ifndef SQLIPC_REPLAY_H
#define SQLIPC_REPLAY_H

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#ifndef WITH_FUZZING_ENGINE
static int replay(const char *folder, const char *name, unsigned number) {
        static uint8_t bytes[4 * 1048576];
        char path[4096];
        size_t size;
        FILE *file;

        snprintf(path, sizeof path, "%s/%s", folder, name);
        file = fopen(path, "re");
        if (!file)
                return -errno;
        size = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        LLVMFuzzerTestOneInput(bytes, size);
        printf("ok %u - %s\n", number, name);
        return 0;
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

                if (name[0] != '.' && replay(argv[1], name, ++number) < 0)
                        printf("not ok %u - %s cannot be read\n", number, name);
                free(entries[i]);
        }
        free(entries);
        printf("1..%u\n", number);
        return number > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
#endif

#endif
