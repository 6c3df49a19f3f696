/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/ctl/call-failure: the calls that sqlipcctl sends again, and its messages about errors of the bus. */
#include <errno.h>
#include <string.h>

#include "dbus-interfaces/never-began.h"
#include "tests/unit/test.h"
#include "tools/ctl/call-failure.h"

#define BUS "org.freedesktop.DBus.Error."

/* How often a call is sent that ends with this error each time. */
static unsigned n_sent(bool may_start, bool changes_nothing, const char *name) {
        CallRepeats repeats = { .may_start = may_start, .changes_nothing = changes_nothing };
        unsigned n = 1;

        while (n < 100 && call_repeats_take(&repeats, name))
                n++;
        return n;
}

static void test_never_began(void) {
        static const char *const names[] = { BUS "NameHasNoOwner", BUS "Spawn.ChildSignaled",
                                             "org.sqlipc1.Error.ShuttingDown" };

        for (size_t i = 0; i < N_ELEMENTS(names); i++)
                for (int changes_nothing = 0; changes_nothing < 2; changes_nothing++)
                        CHECK_INT(n_sent(true, changes_nothing, names[i]), 1 + NEVER_BEGAN_REPEATS_MAX);
        /* a call that starts no service: its absence is the answer */
        CHECK_INT(n_sent(false, true, BUS "NameHasNoOwner"), 1);
        CHECK_INT(n_sent(false, false, BUS "NameHasNoOwner"), 1);
        CHECK_INT(n_sent(false, false, "org.sqlipc1.Error.ShuttingDown"), 1 + NEVER_BEGAN_REPEATS_MAX);
}

static void test_lost(void) {
        CallRepeats repeats = { .may_start = true, .changes_nothing = true };

        CHECK_INT(n_sent(true, true, BUS "NoReply"), 2);
        CHECK_INT(n_sent(true, false, BUS "NoReply"), 1);
        /* a loss does not use up the repeats of a call that never began */
        CHECK(call_repeats_take(&repeats, BUS "NoReply"));
        CHECK(call_repeats_take(&repeats, BUS "NameHasNoOwner"));
        CHECK(!call_repeats_take(&repeats, BUS "NoReply"));
}

static void test_answered(void) {
        static const char *const names[] = {
                BUS "ServiceUnknown", BUS "AccessDenied", BUS "Timeout", BUS "TimedOut", BUS "Spawn.Failed",
                BUS "UnknownMethod", "org.sqlipc1.Error.SQL", "org.sqlipc1.Error.Busy", "System.Error.ECONNRESET",
                CALL_FAILURE_REPLY_TYPE, "x.y",
        };

        for (size_t i = 0; i < N_ELEMENTS(names); i++)
                CHECK_INT(n_sent(true, true, names[i]), 1);
}

static void check_sentence(const char *name, const char *reason, int r, bool can_start, const char *expected) {
        g_autofree char *sentence = call_failure_sentence(name, reason, r, can_start, "try this");

        CHECK_STRING(sentence, expected);
}

static void test_sentences(void) {
        check_sentence(BUS "ServiceUnknown", "The name org.sqlipc1 was not provided", -EHOSTUNREACH, false,
                       "The service does not run, and the bus cannot start it: try this.");
        check_sentence(BUS "NameHasNoOwner", "Could not activate remote peer.", -ENXIO, false,
                       "The service does not run, and the bus cannot start it: try this.");
        check_sentence(BUS "NameHasNoOwner", "Could not activate remote peer.", -ENXIO, true,
                       "The service has ended, or was killed while it started: try this.");
        check_sentence(BUS "Spawn.ChildSignaled", "Process org.sqlipc1 received signal 9", -EIO, true,
                       "The service was killed while it started: try this.");
        check_sentence(BUS "Spawn.ExecFailed", "Failed to execute.", -EIO, true,
                       "The bus could not start the service (Failed to execute): try this.");
        check_sentence("org.freedesktop.systemd1.UnitMasked", "Unit is masked.", -EIO, true,
                       "systemd could not start the service (Unit is masked): try this.");
        check_sentence(BUS "NoReply", "Message recipient disconnected from message bus without replying", -ENOTCONN, true,
                       "The service ended before it answered: try this.");
        check_sentence(BUS "UnknownMethod", "", -EBADR, true,
                       "The service does not know this call: install the same version of sqlipcd and sqlipcctl.");
        check_sentence(BUS "Unheard", "It says so.", -EIO, true, "The bus refused the call (It says so).");
        check_sentence("org.sqlipc1.Error.AccessDenied", "It is not yours.", -EACCES, true, "It is not yours.");
        check_sentence("System.Error.ECONNRESET", "Connection reset by peer", -ECONNRESET, true,
                       "The connection to the bus was lost: try again.");
        check_sentence(NULL, NULL, -ETIMEDOUT, true, "The service does not answer: try this.");
}

/* No message has the name of an error of the bus. */
static void test_every_error(void) {
        static const char *const names[] = {
                "ServiceUnknown", "NameHasNoOwner", "Spawn.ChildSignaled", "Spawn.ChildExited", "Spawn.", "NoReply",
                "TimedOut", "Timeout", "Disconnected", "AccessDenied", "AuthFailed", "NoMemory", "LimitsExceeded",
                "UnknownObject", "UnknownMethod", "UnknownInterface", "UnknownProperty", "InvalidArgs", "Failed",
                "NotSupported", "", "IOError",
        };
        static const char *const reasons[] = { NULL, "", "..." };

        for (size_t i = 0; i < N_ELEMENTS(names); i++)
                for (size_t k = 0; k < N_ELEMENTS(reasons); k++) {
                        g_autofree char *name = g_strconcat(BUS, names[i], NULL);
                        g_autofree char *sentence = call_failure_sentence(name, reasons[k], -EIO, true, "try this");

                        CHECK(sentence[strlen(sentence) - 1] == '.');
                        CHECK(!strstr(sentence, "org.freedesktop") && !strstr(sentence, "()"));
                }
}

int main(void) {
        static const Test tests[] = {
                TEST(test_never_began), TEST(test_lost), TEST(test_answered), TEST(test_sentences), TEST(test_every_error),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
