/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sqlipcd: reads the options, sets up the service and runs the loop. Supervisor.
 *
 * Exit codes: 0 stopped as told, or idle; 1 could not start, or lost the bus; 2 the command line is wrong.
 */
#include <errno.h>
#include <glib.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "config.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/service/manager.h"
#include "daemon/supervisor/service/resolve.h"
#include "daemon/supervisor/service/service.h"
#include "dbus-interfaces/sqlipc-names.h"

enum { EXIT_USAGE = 2 };

#define MMAP_THRESHOLD (128 * 1024) /* glibc's initial value */

typedef struct Arguments {
        gboolean system, user, version, resolve;
        char *address, **config_directories;
} Arguments;

static void arguments_done(Arguments *a) {
        g_free(a->address);
        g_strfreev(a->config_directories);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Arguments, arguments_done)

static int usage(const char *message) {
        fprintf(stderr, "sqlipcd: %s\nTry sqlipcd --help.\n", message);
        return EXIT_USAGE;
}

static gboolean parse(Arguments *a, int *argc, char ***argv, GError **error) {
        const GOptionEntry entries[] = {
                { "system", 0, 0, G_OPTION_ARG_NONE, &a->system, "Serve the system bus (default for root)", NULL },
                { "user", 0, 0, G_OPTION_ARG_NONE, &a->user, "Serve the user's bus (default otherwise)", NULL },
                { "address", 0, 0, G_OPTION_ARG_STRING, &a->address, "Serve the bus at ADDRESS", "ADDRESS" },
                { "config-dir", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &a->config_directories,
                  "Read the configuration in DIR (again for more; the first wins)", "DIR" },
                { "resolve", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_NONE, &a->resolve,
                  "Look up the names on standard input (the service starts itself so)", NULL },
                { "version", 0, 0, G_OPTION_ARG_NONE, &a->version, "Show the version", NULL },
                { NULL },
        };
        GOptionContext *context = g_option_context_new("- share SQLite databases over D-Bus");

        g_option_context_add_main_entries(context, entries, NULL);
        g_option_context_set_description(context,
                                         "Exit codes: 0 stopped or idle, 1 failed to start or lost the bus, 2 wrong usage.\n"
                                         "See sqlipcd(8), sqlipcd.conf(5), sqlipc.databases(5).");
        gboolean ok = g_option_context_parse(context, argc, argv, error);
        g_option_context_free(context);
        return ok;
}

static BusType bus_type(const Arguments *a) {
        return a->user || (!a->system && geteuid() != 0) ? BUS_USER : BUS_SYSTEM;
}

static int fail(const char *what, int r) {
        log_last("%s: %s", what, strerror(-r));
        return EXIT_FAILURE;
}

/* A bus without a service manager may start this instance while another one, which was about to exit, takes the name back.
 * That one then also gets the call that this instance was started for. */
static int on_name_taken(void) {
        if (!getenv("DBUS_STARTER_ADDRESS"))
                return fail("Another service has the name " SQLIPC_BUS_NAME, -EEXIST);
        log_info("Another instance serves: exiting.");
        return EXIT_SUCCESS;
}

static void on_stop_signal(void *userdata) {
        manager_stop(userdata, EXIT_SUCCESS);
}

static void on_reload_signal(void *userdata) {
        Manager *m = userdata;

        reload_start(&m->reload, NULL, NULL);
}

static int serve(const Arguments *a) {
        g_autoptr(Manager) m = NULL;
        int r = manager_new(bus_type(a), a->config_directories, &m);

        if (r < 0)
                return fail("Cannot start", r);
        const ServiceSignals signals = { .stop = on_stop_signal, .reload = on_reload_signal, .userdata = m };
        r = service_watch_signals(m->context.event, &signals);
        if (r < 0)
                return fail("Cannot watch signals", r);
        r = reload_first(&m->reload, !a->address);
        if (r < 0)
                return fail("Cannot load the configuration", r);
        if (m->context.stopping) /* the service was told to stop while names were looked up */
                return m->exit_code;
        r = manager_connect(m, a->address ? BUS_ADDRESS : bus_type(a), a->address);
        if (r == -EEXIST)
                return on_name_taken();
        if (r == -EACCES || r == -EPERM)
                return fail("Cannot serve on the bus (its policy, " SQLIPC_BUS_NAME ".conf, says who may have the name)", r);
        if (r < 0)
                return fail("Cannot serve on the bus", r);
        service_ready();
        log_event(LOG_EVENT_STARTED, NULL, "Version " SQLIPC_VERSION " is up; databases published: %u.",
                  g_hash_table_size(m->context.databases));
        r = sd_event_loop(m->context.event);
        return r < 0 ? fail("The event loop failed", r) : r;
}

int main(int argc, char **argv) {
        g_auto(Arguments) a = {};
        g_autoptr(GError) error = NULL;

        /* Workers run as the same user: they must not get at /proc/PID/mem and fd/ of this process, or of a resolver. */
        (void) prctl(PR_SET_DUMPABLE, 0);
        /* A fixed threshold: by default it grows to the largest block that was freed, and the memory of clients' large calls
         * would not be returned to the system. */
        (void) mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD);
        log_setup();
        if (!parse(&a, &argc, &argv, &error))
                return usage(error->message);
        if (argc > 1)
                return usage("there are no arguments but options");
        if (a.version) {
                printf("sqlipcd %s\n", SQLIPC_VERSION);
                return EXIT_SUCCESS;
        }
        if (a.resolve)
                return resolve_serve();
        if (a.system && a.user)
                return usage("--system and --user exclude each other");
        return serve(&a);
}
