/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See looking.h. Pure.
 */
#include "daemon/worker/core/looking.h"

void looking_on_turn(Looking *l, uint64_t client) {
        if (client == 0 || client != l->client)
                l->n_turns = 0;
        else if (l->n_turns < LOOKING_TURNS_MIN)
                l->n_turns++;
        l->client = client;
}

bool looking_begins(Looking *l) {
        if (l->n_turns < LOOKING_TURNS_MIN)
                return false;
        if (l->n_to_skip > 0) {
                l->n_to_skip--;
                return false;
        }
        return true;
}

void looking_on_looked(Looking *l, bool found) {
        if (found)
                l->n_vain = 0;
        else if (l->n_vain < LOOKING_VAIN_MAX)
                l->n_vain++;
        l->n_to_skip = (1u << l->n_vain) - 1;
}
