/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See late-libraries.h.
 */
#include "daemon/worker/sandbox/late-libraries.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* They stay loaded: libc finds a library that is loaded by its name. */
static void load_plugin(const char *word) {
        char name[64];

        (void) snprintf(name, sizeof name, "libnss_%s.so.2", word);
        (void) dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

/* "hosts: files resolve [!UNAVAIL=return] dns" */
static void load_plugins(char *services) {
        char *rest = services, *word;

        while ((word = strsep(&rest, " \t\n")))
                if (word[0] && strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(word))
                        load_plugin(word);
}

void late_libraries_load(void) {
        FILE *file = fopen("/etc/nsswitch.conf", "re");
        char line[1024];

        (void) dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
        while (file && fgets(line, sizeof line, file))
                if (strncmp(line, "hosts:", 6) == 0)
                        load_plugins(line + 6);
                else if (strncmp(line, "passwd:", 7) == 0)
                        load_plugins(line + 7);
        if (file)
                (void) fclose(file);
}
