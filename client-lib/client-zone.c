/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The time zone of this process (client-zone.h). Library. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/client-zone.h"
#include "client-lib/util.h"

#define FOLDER "/zoneinfo/"

/* The C library takes UTC if there is no such file. */
static const char *name_of_file(const char *path, char **ret_memory) {
        char *found, *file = *ret_memory = realpath(path, NULL);

        if (!file)
                return errno == ENOENT || errno == ENOTDIR ? "UTC" : "";
        found = strstr(file, FOLDER);
        return found ? found + strlen(FOLDER) : "";
}

/* The C library takes UTC for text that is no zone. */
static void find(ClientZone *z, const char *variable) {
        _cleanup_free_ char *memory = NULL;
        const char *name = variable ? variable + (*variable == ':') : "/etc/localtime";

        if (*name == '/')
                name = name_of_file(name, &memory);
        else if (*name == 0 || !time_zone_is_valid(name, strlen(name)))
                name = strstr(name, "..") ? "" : "UTC";
        if (!time_zone_is_valid(name, strlen(name)))
                name = "";
        strcpy(z->name, name);
}

const char *client_zone_get(ClientZone *z) {
        const char *variable = getenv("TZ");

        if (z->variable && z->was_set == (variable != NULL) && strcmp(z->variable, variable ? variable : "") == 0)
                return z->name;
        find(z, variable);
        free(z->variable);
        z->variable = strdup(variable ? variable : ""); /* without memory it is found again next time */
        z->was_set = variable;
        return z->name;
}

void client_zone_done(ClientZone *z) {
        free(z->variable);
        *z = (ClientZone) {};
}
