/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Errors: every row of the table by its D-Bus name and by its number, errors of the bus in place of the service, details,
 * and messages of any length.
 */
#include <errno.h>
#include <sys/socket.h>

#include "client-lib/error.h"
#include "client-lib/parameter.h"
#include "client-lib/sqlipc.h"
#include "config.h"
#include "tests/unit/test.h"

typedef struct Row {
        uint32_t number;
        const char *name;
        int error;
} Row;

static const Row rows[] = {
#define X(number_, symbol, name_, error_) { number_, "org.sqlipc1.Error." #name_, error_ },
        SQLIPC_ERROR_TABLE(X)
#undef X
};

static sd_bus *bus;

/* A reply that tells of a failure, as it would arrive; `details` puts (s, 266, 12) in its body. `sender`: NULL for none. */
static sd_bus_message *new_reply_from(const char *name, const char *message, bool details, const char *sender) {
        sd_bus_error error = { .name = name, .message = message };
        sd_bus_message *call = NULL, *reply = NULL;

        CHECK(sd_bus_message_new_method_call(bus, &call, "a.b", "/", "a.b", "C") >= 0);
        CHECK(sd_bus_message_seal(call, 1, 0) >= 0);
        CHECK(sd_bus_message_new_method_error(call, &reply, &error) >= 0);
        if (details)
                CHECK(sd_bus_message_append(reply, "ii", 266, 12) >= 0);
        if (sender)
                CHECK(sd_bus_message_set_sender(reply, sender) >= 0);
        CHECK(sd_bus_message_seal(reply, 2, 0) >= 0);
        sd_bus_message_unref(call);
        return reply;
}

static sd_bus_message *new_reply(const char *name, const char *message, bool details) {
        return new_reply_from(name, message, details, NULL);
}

static void test_table_by_name(void) {
        for (size_t i = 0; i < N_ELEMENTS(rows); i++) {
                sd_bus_message *reply = new_reply(rows[i].name, "a sentence", true);
                Error e;

                CHECK_INT(error_set_reply(&e, reply), -rows[i].error);
                CHECK_INT(e.result, -rows[i].error);
                CHECK_INT(e.number, rows[i].number);
                CHECK_STRING(e.name, rows[i].name);
                if (rows[i].number != ERROR_UNKNOWN_DATABASE)
                        CHECK_STRING(e.message, "a sentence");
                CHECK_INT(e.extended_code, 266);
                CHECK_INT(e.sql_offset, 12);
                sd_bus_message_unref(reply);
        }
}

static void test_table_by_number(void) {
        for (size_t i = 0; i < N_ELEMENTS(rows); i++) {
                PageDecoder d = {
                        .error_number = rows[i].number,
                        .error_extended_code = 266,
                        .error_sql_offset = -1,
                        .error_message = "a sentence",
                        .error_message_size = 10,
                };
                Error e;

                CHECK_INT(error_set_frame(&e, &d), -rows[i].error);
                CHECK_INT(e.number, rows[i].number);
                CHECK_STRING(e.name, rows[i].name);
                CHECK_STRING(e.message, "a sentence");
                CHECK_INT(e.extended_code, 266);
                CHECK_INT(e.sql_offset, -1);
        }
}

/* A message is valid UTF-8, and a string of D-Bus, also if it quotes bytes that are not. */
static void check_message(const char *message, const char *expected) {
        PageDecoder d = { .error_number = ERROR_SQL, .error_sql_offset = -1, .error_message = message,
                          .error_message_size = strlen(message) };
        Error e;

        (void) error_set_frame(&e, &d);
        CHECK_STRING(e.message, expected);
        (void) error_set(&e, ERROR_SQL, "%s", message);
        CHECK_STRING(e.message, expected);
}

static void test_valid_messages(void) {
        char longest[2 * SQLIPC_MESSAGE_SIZE_MAX], *end = longest + sizeof longest - 1;
        PageDecoder d = { .error_number = ERROR_SQL, .error_message = longest, .error_message_size = sizeof longest - 1 };
        Error e;

        check_message("no such table: größe", "no such table: größe");
        check_message("no such table: a\xff\xfez", "no such table: a\xef\xbf\xbd\xef\xbf\xbdz");
        check_message("cut \xe2\x82", "cut \xef\xbf\xbd\xef\xbf\xbd");
        check_message("noncharacter \xef\xb7\x90.", "noncharacter \xef\xbf\xbd.");
        check_message("\xf0\x9f\xbf\xbf", "\xef\xbf\xbd");
        for (char *c = longest; c < end; c++)
                *c = (char) 0xff;
        *end = 0;
        (void) error_set_frame(&e, &d);
        CHECK(strlen(e.message) % 3 == 0 && strlen(e.message) >= sizeof e.message - 4);
        for (size_t odd = 0; odd < 2; odd++) { /* characters of two bytes, cut between and within them */
                size_t bad;

                longest[0] = 'a';
                for (size_t i = odd; i + 1 < sizeof longest; i++)
                        longest[i] = (i - odd) % 2 == 0 ? (char) 0xc3 : (char) 0xb6;
                (void) error_set(&e, ERROR_SQL, "%s", longest);
                CHECK(parameter_is_bus_string(e.message, strlen(e.message), &bad));
                CHECK(strlen(e.message) >= sizeof e.message - 4);
        }
}

/* The sentence of the bus, which is for programmers, must not be all that the program is told. */
static void check_name(const char *name, int r, uint32_t number) {
        sd_bus_message *reply = new_reply(name, "a sentence", false);
        bool of_bus = strncmp(name, "org.freedesktop.", strlen("org.freedesktop.")) == 0;
        Error e;

        CHECK_INT(error_set_reply(&e, reply), r);
        CHECK_INT(e.number, number);
        CHECK_STRING(e.name, name);
        CHECK_INT(e.extended_code, 0);
        CHECK_INT(e.sql_offset, -1);
        if (of_bus) {
                CHECK(e.message[0] >= 'A' && strncmp(e.message, "a sentence", 10) != 0);
                CHECK(e.message[strlen(e.message) - 1] == '.' && !strstr(e.message, "org.freedesktop"));
        } else
                CHECK_STRING(e.message, "a sentence");
        sd_bus_message_unref(reply);
}

static void test_names_of_the_bus(void) {
        check_name("org.freedesktop.DBus.Error.ServiceUnknown", -EHOSTDOWN, ERROR_DAEMON_LOST);
        check_name("org.freedesktop.DBus.Error.NameHasNoOwner", -EHOSTDOWN, ERROR_DAEMON_LOST);
        check_name("org.freedesktop.DBus.Error.Spawn.ChildExited", -EHOSTDOWN, ERROR_DAEMON_LOST);
        check_name("org.freedesktop.systemd1.NoSuchUnit", -EHOSTDOWN, ERROR_DAEMON_LOST);
        check_name("org.freedesktop.DBus.Error.NoReply", -ECONNRESET, ERROR_DAEMON_LOST);
        check_name("org.freedesktop.DBus.Error.UnknownObject", -ENOENT, ERROR_UNKNOWN_DATABASE);
        check_name("org.freedesktop.DBus.Error.AccessDenied", -EACCES, ERROR_ACCESS_DENIED);
        check_name("org.freedesktop.DBus.Error.TimedOut", -ETIMEDOUT, ERROR_TIMED_OUT);
        check_name("org.freedesktop.DBus.Error.Disconnected", -ECONNRESET, ERROR_DAEMON_LOST);
        check_name("org.freedesktop.DBus.Error.AuthFailed", -EACCES, ERROR_ACCESS_DENIED);
        check_name("org.freedesktop.DBus.Error.NoMemory", -ENOMEM, ERROR_OUT_OF_MEMORY);
        check_name("org.freedesktop.DBus.Error.LimitsExceeded", -EDQUOT, ERROR_LIMITS_EXCEEDED);
        check_name("org.freedesktop.DBus.Error.Timeout", -ETIMEDOUT, ERROR_TIMED_OUT);
        check_name("org.freedesktop.DBus.Error.UnknownMethod", -EOPNOTSUPP, ERROR_NONE);
        check_name("org.freedesktop.DBus.Error.UnknownInterface", -EOPNOTSUPP, ERROR_NONE);
        check_name("org.freedesktop.DBus.Error.InvalidArgs", -EOPNOTSUPP, ERROR_NONE);
        check_name("org.freedesktop.DBus.Error.Spawn", -EREMOTEIO, ERROR_NONE); /* not of that family */
        check_name("org.freedesktop.DBus.Error.Failed", -EREMOTEIO, ERROR_NONE);
        check_name("org.sqlipc1.Error.FromTheFuture", -EREMOTEIO, ERROR_NONE);
        check_name("org.sqlipc1.Error.Sq", -EREMOTEIO, ERROR_NONE);
}

static void check_sentence(const char *name, const char *sentence, const char *sender, const char *expected) {
        sd_bus_message *reply = new_reply_from(name, sentence, false, sender);
        Error e;

        (void) error_set_reply(&e, reply);
        CHECK_STRING(e.message, expected);
        sd_bus_message_unref(reply);
}

#define BUS "org.freedesktop.DBus"
#define SERVICE ":1.7"

/* A sentence of the bus follows ours if it adds a fact. The service words its errors itself, except those of sd-bus. */
static void test_sentences_of_the_bus(void) {
        const char *unknown = "The service does not know this call: install a newer version of sqlipcd (Unknown method X).";

        check_sentence(BUS ".Error.Spawn.ChildExited", "Process org.sqlipc1 exited with status 1", BUS,
                       "The bus could not start the service: read its log, by journalctl -u sqlipcd (Process org.sqlipc1 "
                       "exited with status 1).");
        check_sentence(BUS ".Error.Spawn.ChildSignaled", "Process org.sqlipc1 received signal 9", BUS,
                       "The service was killed while it started: try again.");
        check_sentence(BUS ".Error.ServiceUnknown", "The name org.sqlipc1 was not provided by any .service files", BUS,
                       "The service does not run on this bus, and the bus cannot start it: install sqlipcd, or choose "
                       "another bus.");
        check_sentence(BUS ".Error.NoReply", "Message recipient disconnected from message bus without replying", BUS,
                       "The service ended before it answered.");
        check_sentence(BUS ".Error.UnknownObject", "Unknown object '/x'.", SERVICE,
                       "There is no database of this name, or it is not yours to use.");
        check_sentence(BUS ".Error.UnknownMethod", "Unknown method X.", SERVICE, unknown);
        check_sentence(BUS ".Error.UnknownMethod", "Unknown method X", NULL, unknown);
        check_sentence(BUS ".Error.NoMemory", "Not enough memory", BUS, "The bus is out of memory: try again later.");
        check_sentence(BUS ".Error.NoMemory", "The service is out of memory.", SERVICE, "The service is out of memory.");
        check_sentence(BUS ".Error.InteractiveAuthorizationRequired", "Start an agent.", SERVICE, "Start an agent.");
        check_sentence(BUS ".Error.Failed", "", BUS, "The bus refused the call.");
}

static void test_unknown_number(void) {
        PageDecoder d = {
                .error_number = 4000000000,
                .error_sql_offset = -7,
                .error_message = "new",
                .error_message_size = 3,
        };
        Error e;

        CHECK_INT(error_set_frame(&e, &d), -EREMOTEIO);
        CHECK_INT(e.number, ERROR_NONE);
        CHECK_STRING(e.name, "");
        CHECK_STRING(e.message, "new");
        CHECK_INT(e.sql_offset, -1);
}

/* A sentence is cut between characters, wherever those fall. */
static void test_long_message(void) {
        for (size_t skip = 0; skip < 3; skip++) {
                char text[2 * SQLIPC_MESSAGE_SIZE_MAX];
                sd_bus_message *reply;
                size_t size = skip;
                Error e;

                memset(text, 'x', skip);
                while (size + 4 <= sizeof text) {
                        memcpy(text + size, "\xe2\x82\xac", 3);
                        size += 3;
                }
                text[size] = 0;
                reply = new_reply("org.sqlipc1.Error.Sql", text, true);
                CHECK_INT(error_set_reply(&e, reply), -EINVAL);
                size = strlen(e.message);
                CHECK(size <= SQLIPC_MESSAGE_SIZE_MAX && size > SQLIPC_MESSAGE_SIZE_MAX - 3);
                CHECK_INT((size - skip) % 3, 0);
                CHECK_INT(e.sql_offset, 12);
                sd_bus_message_unref(reply);
        }
}

static void test_own(void) {
        Error e;

        CHECK_INT(error_set(&e, ERROR_WORKER_LOST, "%s %d", "worker", 7), -ECONNRESET);
        CHECK_STRING(e.name, "org.sqlipc1.Error.WorkerLost");
        CHECK_STRING(e.message, "worker 7");
        CHECK_INT(error_set_errno(&e, -ENOMEM, NULL), -ENOMEM);
        CHECK_STRING(e.message, strerror(ENOMEM));
        CHECK_STRING(e.name, "");
        CHECK_INT(error_set_send(&e, -ENOTCONN), -ECONNRESET);
        CHECK_INT(e.number, ERROR_DAEMON_LOST);
        CHECK_INT(error_set_send(&e, -E2BIG), -EDQUOT);
        CHECK_INT(e.number, ERROR_LIMITS_EXCEEDED);
}

/* Replies that sd-bus itself makes after the connection is gone. */
static void test_bus_lost(void) {
        sd_bus_message *reply;
        Error e;

        sd_bus_close(bus);
        reply = new_reply("org.freedesktop.DBus.Error.NoReply", "a sentence", false);
        CHECK_INT(error_set_reply(&e, reply), -ECONNRESET);
        CHECK_STRING(e.name, "org.sqlipc1.Error.DaemonLost");
        CHECK_STRING(e.message, "The connection to the bus was lost.");
        sd_bus_message_unref(reply);
}

static void test_version(void) {
        CHECK_STRING(sqlipc_version(), SQLIPC_VERSION);
}

int main(void) {
        static const Test tests[] = {
                TEST(test_table_by_name),
                TEST(test_table_by_number),
                TEST(test_names_of_the_bus),
                TEST(test_valid_messages),
                TEST(test_sentences_of_the_bus),
                TEST(test_unknown_number),
                TEST(test_long_message),
                TEST(test_own),
                TEST(test_version),
                TEST(test_bus_lost), /* the last */
        };
        int fds[2], r;

        /* Messages are made and read here, never sent: a bus whose other side says nothing is enough. */
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) >= 0);
        CHECK(sd_bus_new(&bus) >= 0);
        CHECK(sd_bus_set_fd(bus, fds[0], fds[0]) >= 0);
        CHECK(sd_bus_start(bus) >= 0);
        r = test_main(tests, N_ELEMENTS(tests));
        (void) close(fds[1]);
        return r;
}
