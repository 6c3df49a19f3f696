/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Errors as D-Bus replies. Supervisor. */
#include <errno.h>
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/configuration/dbus-text.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/base/sd-autoptr.h"
#include "daemon/supervisor/calls/bus-error.h"
#include "daemon/supervisor/calls/reply.h"

static int reply_with(sd_bus_message *call, const Failure *failure, bool details) {
        g_autoptr(sd_bus_message) reply = NULL;
        const char *message = failure->message ?: "";

        /* A sentence of SQLite may quote any bytes of the database. */
        char *text = dbus_text_replace(message, strlen(message));
        if (!text)
                return -ENOMEM;
        int r = sd_bus_message_new_method_error(call, &reply, &SD_BUS_ERROR_MAKE_CONST(error_to_name(failure->error), text));
        free(text);
        if (r < 0)
                return r;
        if (details)
                r = sd_bus_message_append(reply, "ii", failure->extended_code, failure->sql_offset);
        if (r < 0)
                return r;
        r = sd_bus_send(NULL, reply, NULL);
        return r < 0 ? r : 1;
}

/* Every caller must get an answer: if there is not enough memory for the real error, that is the error. */
int bus_error_reply(sd_bus_message *call, const Failure *failure, bool details) {
        int r = reply_with(call, failure, details);

        if (r >= 0)
                return r;
        log_error_limited("An error could not be sent (%s): %s", strerror(-r), failure->message ?: "");
        return sd_bus_reply_method_errorf(call, SD_BUS_ERROR_NO_MEMORY, "The service is out of memory; try again later.");
}

int bus_error_reply_refusal(sd_bus_message *call, int r, Refusal *refusal) {
        if (refusal->error == ERROR_NONE && r == -EBADMSG)
                /* sd-bus checks a value only when it is read. So this is the caller's mistake, for example a handle without
                 * descriptors. */
                return sd_bus_reply_method_errorf(call, SD_BUS_ERROR_INVALID_ARGS,
                                                  "The message holds a value that cannot be read: send it well-formed.");
        if (refusal->error == ERROR_NONE && r == -ENOMEM)
                (void) refuse(refusal, ERROR_OUT_OF_MEMORY, "The service is out of memory; try again later.");
        else if (refusal->error == ERROR_NONE && (r == -EMFILE || r == -ENFILE))
                (void) refuse(refusal, ERROR_LIMITS_EXCEEDED, "The service has no descriptor left; try again later.");
        else if (refusal->error == ERROR_NONE && r == -EMSGSIZE)
                (void) refuse(refusal, ERROR_LIMITS_EXCEEDED, "The reply would take more than %zu MiB.",
                              REPLY_SIZE_MAX >> 20);
        else if (refusal->error == ERROR_NONE) {
                log_error_limited("%s failed: %s", sd_bus_message_get_member(call), strerror(-r));
                (void) refuse(refusal, ERROR_INTERNAL, "The service failed (%s); its log says more.", strerror(-r));
        }
        Failure failure = refusal_as_failure(refusal);
        r = bus_error_reply(call, &failure, refusal->details && refusal->extended_code != 0);
        refusal_done(refusal);
        return r;
}
