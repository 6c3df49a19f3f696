/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Publishes a database, for the verbs add and create: checks its configuration, writes its file, and reloads. */
#ifndef SQLIPC_TOOLS_CTL_PUBLISH_H
#define SQLIPC_TOOLS_CTL_PUBLISH_H

#include "tools/ctl/context.h"
#include "tools/ctl/service-user.h"

/** The options of both verbs. */
typedef struct PublishOptions {
        char **allow_users, **allow_groups, **write_users, **write_groups, *description, *service_user;
        gboolean polkit, write_polkit, foreign_keys, reload;
} PublishOptions;

extern PublishOptions publish_options;

#define PUBLISH_OPTIONS \
        { "allow-user", 0, 0, G_OPTION_ARG_STRING_ARRAY, &publish_options.allow_users, \
          "Let a user use it (again for more; * is all)", "USER" }, \
        { "allow-group", 0, 0, G_OPTION_ARG_STRING_ARRAY, &publish_options.allow_groups, \
          "Let a group use it (again for more)", "GROUP" }, \
        { "polkit", 0, 0, G_OPTION_ARG_NONE, &publish_options.polkit, "Ask polkit about all other users", NULL }, \
        { "write-user", 0, 0, G_OPTION_ARG_STRING_ARRAY, &publish_options.write_users, \
          "Let a user who may use it also write (again for more; * is all)", "USER" }, \
        { "write-group", 0, 0, G_OPTION_ARG_STRING_ARRAY, &publish_options.write_groups, \
          "Let a group that may use it also write (again for more)", "GROUP" }, \
        { "write-polkit", 0, 0, G_OPTION_ARG_NONE, &publish_options.write_polkit, \
          "Ask polkit about all other users who may use it", NULL }, \
        { "foreign-keys", 0, 0, G_OPTION_ARG_NONE, &publish_options.foreign_keys, \
          "Enforce foreign keys for programs that do not turn them on, too", NULL }, \
        { "description", 0, 0, G_OPTION_ARG_STRING, &publish_options.description, "A line about it", "TEXT" }, \
        { "reload", 0, 0, G_OPTION_ARG_NONE, &publish_options.reload, "Have the service read it, too", NULL }, \
        { "service-user", 0, 0, G_OPTION_ARG_STRING, &publish_options.service_user, \
          "The user that the service runs as", "USER" }

/** Reads `text` as the service will, and prints errors and warnings. `*ret_taken`: the service would accept it as it is.
 * Returns the findings; the caller unrefs. */
GPtrArray *publish_check(const Context *c, const char *name, const char *text, const ServiceUser *user,
                         const ServiceUnit *unit, bool *ret_taken);

/** Writes the file, and returns an exit code. It prints the error, also that the file exists and `replace` is false. */
int publish_write(const Context *c, const char *name, const char *text, const ServiceUser *user, bool replace);

/** After that: has the service read the file if this is asked for, and prints the outcome. `made`: the path of the database
 * if it was created; NULL. Returns an exit code. */
int publish_finish(Context *c, const char *name, const char *made, const GPtrArray *findings);

#endif
