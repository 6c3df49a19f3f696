/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sqlipcctl top: shows the activity of each client, and updates it regularly. On a terminal it redraws the screen, otherwise
 * it writes one table or JSON line after the other. A rate is the difference of two samples divided by the measured time
 * between them.
 */
#include <stdio.h>
#include <string.h>

#include "tools/ctl/client-list.h"
#include "tools/ctl/listing.h"
#include "tools/ctl/rates.h"
#include "tools/ctl/terminal-screen.h"

static double arg_delay = 1;
static int arg_count;
static char *arg_sort;

static const GOptionEntry options[] = {
        { "delay", 'd', 0, G_OPTION_ARG_DOUBLE, &arg_delay, "Seconds between two looks (default: 1)", "SEC" },
        { "count", 'n', 0, G_OPTION_ARG_INT, &arg_count, "End after so many", "N" },
        { "sort", 's', 0, G_OPTION_ARG_STRING, &arg_sort,
          "Sort key: bytes (a second), rows, runs, parked, queued, statements, channels, total", "KEY" },
        {},
};

static const struct {
        const char *name, *key;
} sort_keys[] = {
        { "bytes", "bytes-per-second" }, { "rows", "rows-per-second" }, { "runs", "runs" },   { "parked", "parked" },
        { "queued", "queued" },          { "statements", "statements" }, { "channels", "channels" },
        { "total", "bytes" },
};

static const Column columns[] = {
        { "client", "CLIENT", SHOWN_TEXT, .rank = 2 },
        { "process", "PROCESS", SHOWN_TEXT },
        { "uid", "USER", SHOWN_USER },
        { "pid", "PID", SHOWN_NUMBER },
        { "statements", "STATEMENTS", SHOWN_NUMBER, .rank = 3 },
        { "channels", "CHANNELS", SHOWN_NUMBER, .rank = 4 },
        { "runs", "RUNS", SHOWN_NUMBER },
        { "parked", "PARKED", SHOWN_NUMBER },
        { "queued", "QUEUED", SHOWN_NUMBER, .rank = 1 },
        { "rows-per-second", "ROWS/S", SHOWN_NUMBER },
        { "bytes-per-second", "BYTES/S", SHOWN_SIZE },
        { "rows", "ROWS", SHOWN_NUMBER, .rank = 6 },
        { "bytes", "BYTES", SHOWN_SIZE, .rank = 5 },
};

typedef struct Top {
        Context *context;
        const char *sort_key;
        Screen screen;
        GVariant *clients;   /* of the last sample; NULL: there was none, or no service */
        gint64 looked_usec;
        GVariant *rows;
        guint64 elapsed_usec;
} Top;

static void top_done(Top *top) {
        screen_done(&top->screen);
        g_clear_pointer(&top->clients, g_variant_unref);
        g_clear_pointer(&top->rows, g_variant_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Top, top_done)

/* ---- Samples ------------------------------------------------------------------------------------------------------ */

static int look(Top *top) {
        g_autoptr(GVariant) before = g_steal_pointer(&top->clients), rows = NULL;
        gint64 now;
        int r = client_list_read(top->context, !before, &top->clients);

        if (r != CTL_OK)
                return r;
        now = g_get_monotonic_time();
        top->elapsed_usec = before ? (guint64) (now - top->looked_usec) : 0;
        top->looked_usec = now;
        g_clear_pointer(&top->rows, g_variant_unref);
        rows = rates_of(before, top->clients, top->elapsed_usec, top->sort_key);
        top->rows = process_names_add(top->context, rows);
        return CTL_OK;
}

/* ---- Display ------------------------------------------------------------------------------------------------------ */

static void append_summary(GString *text, GVariant *rows) {
        g_autoptr(GVariant) bytes = g_variant_ref_sink(g_variant_new_uint64(rates_sum(rows, "bytes-per-second")));

        g_autofree char *clients = counted(g_variant_n_children(rows), "client");
        g_autofree char *runs = counted(rates_sum(rows, "runs"), "run");

        g_string_append_printf(text,
                               "%s, %s, %" G_GUINT64_FORMAT " parked, %" G_GUINT64_FORMAT " queued; %" G_GUINT64_FORMAT
                               " rows/s, ",
                               clients, runs, rates_sum(rows, "parked"), rates_sum(rows, "queued"),
                               rates_sum(rows, "rows-per-second"));
        shown_append(text, bytes, SHOWN_SIZE);
        g_string_append(text, "/s\n\n");
}

static void show_table(Top *top) {
        g_autoptr(GString) text = g_string_new(NULL);
        bool legend = !top->context->no_legend;

        if (legend)
                append_summary(text, top->rows);
        if (g_variant_n_children(top->rows) > 0) {
                g_autofree char *table = listing_to_text(top->rows, columns, G_N_ELEMENTS(columns), legend,
                                                         top->screen.width);
                g_string_append(text, table);
        }
        if (!top->screen.draws && legend)
                g_string_append_c(text, '\n');
        screen_draw(&top->screen, text->str);
}

static void show_json(const Top *top) {
        g_auto(GVariantBuilder) document = {};

        g_variant_builder_init(&document, G_VARIANT_TYPE_VARDICT);
        entry(&document, "time-usec", g_variant_new_uint64((guint64) g_get_real_time()));
        entry(&document, "interval-usec", g_variant_new_uint64(top->elapsed_usec));
        entry(&document, "clients", top->rows);
        document_print(top->context, g_variant_builder_end(&document));
        (void) fflush(stdout);
}

static void show(Top *top) {
        if (top->context->json)
                show_json(top);
        else
                show_table(top);
}

/* ---- The verb ----------------------------------------------------------------------------------------------------- */

/* Waits for the time of the next sample. False: the program must end. */
static bool wait_for_time(Top *top, gint64 until_usec) {
        for (;;) {
                char key = 0;

                switch (screen_wait(&top->screen, until_usec, &key)) {
                case SCREEN_RESIZE:
                        show(top);
                        break;
                case SCREEN_KEY:
                        if (key == 'q' || key == 'Q')
                                return false;
                        break;
                case SCREEN_END:
                        return false;
                case SCREEN_TIME:
                        if (g_get_monotonic_time() >= until_usec)
                                return !ferror(stdout);
                        break;
                }
        }
}

static int watch(Top *top) {
        for (int n = 1;; n++) {
                int r = look(top);

                if (r != CTL_OK)
                        return r;
                show(top);
                if ((arg_count > 0 && n >= arg_count) ||
                    !wait_for_time(top, top->looked_usec + (gint64) (arg_delay * G_USEC_PER_SEC)))
                        return CTL_OK;
        }
}

static const char *find_sort_key(const char *name) {
        for (size_t i = 0; i < G_N_ELEMENTS(sort_keys); i++)
                if (g_str_equal(sort_keys[i].name, name))
                        return sort_keys[i].key;
        return NULL;
}

static int run(Context *c, char **words) {
        g_auto(Top) top = { .context = c, .screen = { .signal_fd = -1 }, .sort_key = find_sort_key(arg_sort ?: "bytes") };
        int r;

        if (!top.sort_key)
                return complain_usage("--sort=%s is not known: 'sqlipcctl top --help' shows what is.", arg_sort);
        if (!(arg_delay >= 0.1 && arg_delay <= 86400) || arg_count < 0)
                return complain_usage("--delay= is 0.1 to 86400 seconds, --count= no less than 0.");
        c->no_pager = true; /* top draws the screen itself */
        if (bus_open(c) < 0)
                return CTL_FAILED;
        r = screen_init(&top.screen, !c->json);
        if (r < 0) {
                complain("The terminal cannot be used: %s", g_strerror(-r));
                return CTL_FAILED;
        }
        return watch(&top);
}

const Verb verb_top = {
        "top", "", "Show what clients do, again and again", 0, 0, false, options,
        "Shows the clients of your own user, for root all. On a terminal the key q ends it.\n", run,
};
