/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sqlipcctl cancel: ends runs, by their numbers or those of their statements. */
#include <errno.h>

#include "dbus-interfaces/sqlipc-names.h"
#include "tools/ctl/work.h"

static int parse_number(const char *word, guint64 *ret) {
        char *end;

        errno = 0;
        *ret = g_ascii_strtoull(word, &end, 10);
        return errno == 0 && g_ascii_isdigit(word[0]) && *end == 0 ? 0 : -EINVAL;
}

/* The run of the statement `number`; `number` itself if it is not a statement, or if the statement has no run. */
static guint64 run_of(GVariant *statements, guint64 number) {
        gsize n = g_variant_n_children(statements);

        for (gsize i = 0; i < n; i++) {
                g_autoptr(GVariant) statement = g_variant_get_child_value(statements, i);
                guint64 run = lookup_number(statement, "running");

                if (lookup_number(statement, "statement") == number && run > 0)
                        return run;
        }
        return number;
}

static int cancel(Context *c, guint64 run) {
        g_auto(sd_bus_error) error = SD_BUS_ERROR_NULL;
        g_autoptr(GVariant) reply = NULL;
        int r = bus_call(c, START_AUTHENTICATION, SQLIPC_MANAGER_PATH, SQLIPC_MANAGER_INTERFACE, "CancelRun",
                         REPLY_DICTIONARY, &error, &reply, "ta{sv}", run, 0);

        return r < 0 ? bus_failed(c, &error, r) : CTL_OK;
}

static int run(Context *c, char **words) {
        g_autoptr(GVariant) statements = NULL;
        g_auto(GVariantBuilder) cancelled = {};
        int r = CTL_OK;

        for (char **word = words; *word; word++) {
                guint64 number;

                if (parse_number(*word, &number) < 0)
                        return complain_usage("%s is no number of a run: 'sqlipcctl runs' shows them.", *word);
        }
        if (work_list(c, WORK_STATEMENTS, &statements) != CTL_OK)
                return CTL_FAILED;
        g_variant_builder_init(&cancelled, G_VARIANT_TYPE("at"));
        for (char **word = words; *word; word++) {
                guint64 number = run_of(statements, g_ascii_strtoull(*word, NULL, 10));

                if (cancel(c, number) == CTL_OK)
                        g_variant_builder_add(&cancelled, "t", number);
                else
                        r = CTL_FAILED;
        }
        if (c->json) {
                g_auto(GVariantBuilder) document = {};

                g_variant_builder_init(&document, G_VARIANT_TYPE_VARDICT);
                entry(&document, "cancelled", g_variant_builder_end(&cancelled));
                document_print(c, g_variant_builder_end(&document));
        }
        return r;
}

const Verb verb_cancel = { "cancel", "NUMBER...", "Cancel runs and transactions, by their numbers", 1,
                           G_MAXUINT, false, NULL, NULL, run };
