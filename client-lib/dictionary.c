/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Entries of an a{sv} (dictionary.h). Library. */
#include "client-lib/dictionary.h"

static int read_entry(sd_bus_message *m, DictionaryEntry entry, void *userdata) {
        const char *key, *type;
        int r;

        r = sd_bus_message_read(m, "s", &key);
        if (r < 0)
                return r;
        r = sd_bus_message_peek_type(m, NULL, &type);
        if (r < 0)
                return r;
        r = entry(m, key, type, userdata);
        if (r == 0)
                r = sd_bus_message_skip(m, "v");
        return r;
}

int dictionary_read_bool(sd_bus_message *m, bool *ret) {
        int value, r;

        r = sd_bus_message_read(m, "v", "b", &value);
        if (r >= 0)
                *ret = value != 0;
        return r;
}

int dictionary_read(sd_bus_message *m, DictionaryEntry entry, void *userdata) {
        int r;

        r = sd_bus_message_enter_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = read_entry(m, entry, userdata);
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;
        r = sd_bus_message_exit_container(m);
        return r < 0 ? r : 0;
}
