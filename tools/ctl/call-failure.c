/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls that failed, see call-failure.h. */
#include "tools/ctl/call-failure.h"

#include <errno.h>
#include <string.h>

#include "dbus-interfaces/never-began.h"
#include "dbus-interfaces/sqlipc-names.h"

#define BUS_ERROR "org.freedesktop.DBus.Error."

bool call_repeats_take(CallRepeats *repeats, const char *name) {
        if (!repeats->may_start && g_str_equal(name, BUS_ERROR "NameHasNoOwner"))
                return false;
        if (never_began(name))
                return repeats->n_refused++ < NEVER_BEGAN_REPEATS_MAX;
        if (!repeats->changes_nothing || repeats->lost || !g_str_equal(name, BUS_ERROR "NoReply"))
                return false;
        repeats->lost = true;
        return true;
}

/* The addition to a sentence: the advice, the reason of the error in parentheses, or both. */
typedef enum Addition { NOTHING, ADVICE = 1 << 0, REASON = 1 << 1 } Addition;

/* An error that the bus sends instead of the service, or systemd, or sd-bus in either process. A name that ends in '.' is a
 * prefix; the first row that has the name counts. */
static const struct {
        const char *name, *sentence;
        Addition addition;
} rows[] = {
        { BUS_ERROR "ServiceUnknown", "The service does not run, and the bus cannot start it", ADVICE },
        { BUS_ERROR "NameHasNoOwner", "The service does not run, and the bus cannot start it", ADVICE },
        { BUS_ERROR "Spawn.ChildSignaled", "The service was killed while it started", ADVICE },
        { BUS_ERROR "Spawn.", "The bus could not start the service", REASON | ADVICE },
        { "org.freedesktop.systemd1.", "systemd could not start the service", REASON | ADVICE },
        { BUS_ERROR "NoReply", "The service ended before it answered", ADVICE },
        { BUS_ERROR "TimedOut", "The service did not start in time", ADVICE },
        { BUS_ERROR "Timeout", "The service does not answer", ADVICE },
        { BUS_ERROR "Disconnected", "The connection to the bus was lost: try again", NOTHING },
        { BUS_ERROR "AccessDenied", "The bus does not let you call the service: its policy forbids it, or AppArmor or "
          "SELinux; ask the administrator for access", NOTHING },
        { BUS_ERROR "AuthFailed", "The bus does not accept your authentication: ask the administrator for access",
          NOTHING },
        { BUS_ERROR "NoMemory", "The bus is out of memory: try again later", NOTHING },
        { BUS_ERROR "LimitsExceeded", "The bus refused the call, because a limit of the bus is reached: try again when "
          "other calls have ended, or have the limit raised", REASON },
        { BUS_ERROR "UnknownObject", "The service has no such object: the database is not published, or you may not use it, "
          "or another version of sqlipcd is installed", NOTHING },
        { BUS_ERROR "UnknownMethod", "The service does not know this call: install the same version of sqlipcd and "
          "sqlipcctl", REASON },
        { BUS_ERROR "UnknownInterface", "The service does not know this call: install the same version of sqlipcd and "
          "sqlipcctl", REASON },
        { BUS_ERROR "InvalidArgs", "The service does not accept this call: install the same version of sqlipcd and "
          "sqlipcctl", REASON },
        { BUS_ERROR, "The bus refused the call", REASON },
        { CALL_FAILURE_REPLY_TYPE, "The service's answer is not understood, maybe because another version is installed",
          REASON },
};

static bool row_has_name(const char *row, const char *name) {
        return g_str_has_suffix(row, ".") ? g_str_has_prefix(name, row) : g_str_equal(name, row);
}

/* True for the errors that the service words for users. */
static bool is_worded_by_service(const char *name) {
        return g_str_has_prefix(name, SQLIPC_ERROR_PREFIX) ||
               g_str_equal(name, BUS_ERROR "InteractiveAuthorizationRequired");
}

static char *sentence_of(const char *sentence, Addition addition, const char *reason, const char *advice) {
        g_autofree char *text = g_strdup(reason ?: "");

        for (size_t n = strlen(text); n > 0 && text[n - 1] == '.'; n--)
                text[n - 1] = '\0'; /* the error's own sentence may have a full stop */
        return g_strconcat(sentence, addition & REASON && text[0] ? " (" : "", addition & REASON ? text : "",
                           addition & REASON && text[0] ? ")" : "", addition & ADVICE ? ": " : "",
                           addition & ADVICE ? advice : "", ".", NULL);
}

static char *sentence_of_errno(int r, const char *advice) {
        switch (r) {
        case -ETIMEDOUT:
                return sentence_of("The service does not answer", ADVICE, NULL, advice);
        case -ECONNRESET:
        case -ENOTCONN:
        case -EPIPE:
        case -ESHUTDOWN:
                return sentence_of("The connection to the bus was lost: try again", NOTHING, NULL, advice);
        default:
                return sentence_of("The call could not be sent, or its answer not read", REASON, g_strerror(-r), advice);
        }
}

char *call_failure_sentence(const char *name, const char *reason, int r, bool can_start, const char *advice) {
        if (!name || g_str_has_prefix(name, "System.Error."))
                return sentence_of_errno(r, advice);
        if (is_worded_by_service(name) && reason && reason[0])
                return g_strdup(reason);
        if (can_start && g_str_equal(name, BUS_ERROR "NameHasNoOwner"))
                return sentence_of("The service has ended, or was killed while it started", ADVICE, NULL, advice);
        for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
                if (row_has_name(rows[i].name, name))
                        return sentence_of(rows[i].sentence, rows[i].addition, reason, advice);
        return sentence_of("The service answered with an error that is not understood, maybe because another version is "
                           "installed", REASON, reason && reason[0] ? reason : name, advice);
}
