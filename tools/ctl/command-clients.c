/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sqlipcctl clients: the programs that use the service: those of the caller's uid; for root, all. */
#include "tools/ctl/client-list.h"
#include "tools/ctl/listing.h"
#include "tools/ctl/rates.h"

static const Column columns[] = {
        { "client", "CLIENT", SHOWN_TEXT },
        { "process", "PROCESS", SHOWN_TEXT },
        { "uid", "USER", SHOWN_USER },
        { "pid", "PID", SHOWN_NUMBER },
        { "statements", "STATEMENTS", SHOWN_NUMBER },
        { "channels", "CHANNELS", SHOWN_NUMBER, .rank = 1 },
        { "runs", "RUNS", SHOWN_NUMBER },
        { "parked", "PARKED", SHOWN_NUMBER, .rank = 2 },
        { "queued", "QUEUED", SHOWN_NUMBER, .rank = 3 },
        { "rows", "ROWS", SHOWN_NUMBER, .rank = 4 },
        { "bytes", "BYTES", SHOWN_SIZE, .rank = 5 },
};

static int run(Context *c, char **words) {
        g_autoptr(GVariant) clients = NULL, rows = NULL, named = NULL;
        int r = client_list_read(c, true, &clients);

        if (r != CTL_OK)
                return r;
        rows = rates_of(NULL, clients, 0, "client");
        named = process_names_add(c, rows);
        listing_print(c, named, columns, G_N_ELEMENTS(columns), "client");
        return CTL_OK;
}

const Verb verb_clients = { "clients", "", "List clients: yours, or all for root", 0, 0, false, NULL, NULL, run };
