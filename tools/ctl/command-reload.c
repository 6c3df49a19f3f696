/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sqlipcctl reload: makes the service read its configuration again. */
#include "tools/ctl/reload.h"

static int run(Context *c, char **words) {
        g_autoptr(GVariant) info = NULL;
        int r = reload_service(c, &info);

        if (r != CTL_OK)
                return r;
        return reload_print(c, info);
}

const Verb verb_reload = { "reload", "", "Have the service read its configuration again", 0, 0, false, NULL, NULL, run };
