/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sqlipcctl status: shows the state of the service, or of one database. */
#include <stdio.h>

#include "tools/ctl/listing.h"
#include "tools/ctl/status-document.h"
#include "tools/ctl/stdout-pager.h"

#define NUMBER "%" G_GUINT64_FORMAT

static char *shown_number(GVariant *document, const char *key, Shown as) {
        g_autoptr(GVariant) value = g_variant_ref_sink(g_variant_new_uint64(lookup_number(document, key)));
        GString *text = g_string_new(NULL);

        shown_append(text, value, as);
        return g_string_free(text, FALSE);
}

/* ---- The service -------------------------------------------------------------------------------------------------- */

static void print_since(GVariant *document) {
        guint64 since = lookup_number(document, "since");
        g_autoptr(GDateTime) time = since > 0 ? g_date_time_new_from_unix_local((gint64) since) : NULL;
        g_autofree char *text = time ? g_date_time_format(time, "%a %Y-%m-%d %H:%M:%S %Z") : NULL;

        if (text)
                field_print("Since", "%s", text);
}

static void print_broken(GVariant *document) {
        g_autoptr(GVariant) broken = g_variant_lookup_value(document, "broken", G_VARIANT_TYPE("a{ss}"));
        const char *name, *problem;
        GVariantIter i;

        if (!broken)
                return;
        g_variant_iter_init(&i, broken);
        while (g_variant_iter_loop(&i, "{&s&s}", &name, &problem))
                field_print("Broken", "%s: %s", name, problem);
}

static void print_service(GVariant *document) {
        g_autofree char *bytes = shown_number(document, "total-bytes", SHOWN_SIZE);
        g_autofree char *user = user_name((uid_t) lookup_number(document, "uid"));
        gboolean running = false;

        (void) g_variant_lookup(document, "running", "b", &running);
        field_print("State", "%s", running ? "running" : "not running; the bus starts it on the first call");
        field_print("Bus", "%s", lookup_text(document, "bus", ""));
        if (!running)
                return;
        field_print("Version", "%s", lookup_text(document, "daemon-version", ""));
        field_print("Process", NUMBER ", of the user %s", lookup_number(document, "pid"), user);
        print_since(document);
        field_print("Databases", NUMBER, lookup_number(document, "databases"));
        field_print("Clients", NUMBER, lookup_number(document, "clients"));
        field_print("Statements", NUMBER, lookup_number(document, "n-statements"));
        field_print("Channels", NUMBER, lookup_number(document, "n-channels"));
        field_print("Runs", NUMBER ", " NUMBER " of them parked", lookup_number(document, "n-runs"),
                    lookup_number(document, "n-parked"));
        field_print("Workers", NUMBER, lookup_number(document, "n-workers"));
        field_print("Total", NUMBER " runs, " NUMBER " rows, %s", lookup_number(document, "total-runs"),
                    lookup_number(document, "total-rows"), bytes);
        print_broken(document);
}

/* ---- One database ------------------------------------------------------------------------------------------------- */

/* Prints a list of the configuration; prints nothing if it is empty. */
static void print_list(GVariant *document, const char *key, const char *title) {
        g_autofree const char **words = NULL;

        if (g_variant_lookup(document, key, "^a&s", &words) && words[0]) {
                g_autofree char *text = g_strjoinv(", ", (char **) words);

                field_print(title, "%s", text);
        }
}

static void print_count(GVariant *document, const char *key, const char *title) {
        g_autoptr(GVariant) list = g_variant_lookup_value(document, key, G_VARIANT_TYPE("aa{sv}"));

        if (list)
                field_print(title, "%" G_GSIZE_FORMAT, g_variant_n_children(list));
}

static void print_text(GVariant *document, const char *key, const char *title) {
        const char *text = lookup_text(document, key, NULL);

        if (text)
                field_print(title, "%s", text);
}

static void print_database(GVariant *document) {
        const char *authorization = lookup_text(document, "authorization", NULL);
        const char *path = lookup_text(document, "path", NULL);
        gboolean polkit = false, immutable = false, barrier = false;

        (void) g_variant_lookup(document, "polkit", "b", &polkit);
        (void) g_variant_lookup(document, "immutable", "b", &immutable);
        (void) g_variant_lookup(document, "security-barrier", "b", &barrier);
        field_print("Database", "%s", lookup_text(document, "name", ""));
        if (*lookup_text(document, "description", ""))
                field_print("Description", "%s", lookup_text(document, "description", ""));
        field_print("Mode", "%s%s", lookup_text(document, "mode", ""), immutable ? ", immutable" : "");
        if (!g_str_equal(lookup_text(document, "engine", "sqlite"), "sqlite"))
                print_text(document, "engine", "Engine");
        field_print("Object", "%s", lookup_text(document, "object", ""));
        if (authorization)
                field_print("You", "%s", authorization);
        if (path)
                field_print("Path", "%s", path);
        print_text(document, "connection", "Connection");
        print_text(document, "replica-connection", "Replicas");
        print_text(document, "password-file", "Password");
        print_text(document, "consistency", "Consistency");
        print_list(document, "allow-users", "Users");
        print_list(document, "allow-groups", "Groups");
        if (polkit)
                field_print("Polkit", "asked about all other users");
        print_list(document, "write-users", "Writers");
        print_list(document, "write-groups", "Write groups");
        print_list(document, "write-tables", "Write tables");
        print_list(document, "expose", "Exposed");
        if (barrier)
                field_print("Barrier", "searches stay above exposed views");
        print_count(document, "statements", "Statements");
        print_count(document, "channels", "Channels");
        print_count(document, "runs", "Runs");
}

static int run(Context *c, char **words) {
        g_autoptr(GVariant) document = NULL;
        int r = words[0] ? status_of_database(c, words[0], &document) : status_of_service(c, &document);

        if (r != CTL_OK)
                return r;
        stdout_pager_open(!c->no_pager);
        if (c->json)
                document_print(c, document);
        else if (words[0])
                print_database(document);
        else
                print_service(document);
        return CTL_OK;
}

const Verb verb_status = {
        "status", "[DATABASE]", "Show how the service is, or one database", 0, 1, false, NULL, NULL, run,
};
