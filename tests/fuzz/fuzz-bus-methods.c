/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls of all methods and properties of the supervisor's live objects, by several peers of several users, with arguments
 * of the declared signature and of any other, in any order; what workers say and do meanwhile, what polkit answers, what
 * clients do with their descriptors, and time.
 *
 * An input is a series of decisions (input.h): who the peers are, then what happens, one after the other. Any bytes are an
 * input, so the engine's own mutations do.
 *
 * In all cases each call is answered exactly once. When the peers have left and the workers have ended, nothing is held: no
 * descriptor, no pipe page, no question.
 *
 * About: daemon/supervisor/access/held-call.c daemon/supervisor/access/pacing.c daemon/supervisor/access/peer.c
 * About: daemon/supervisor/access/policy.c daemon/supervisor/access/polkit.c daemon/supervisor/base/quota.c
 * About: daemon/supervisor/bus/clients-bus.c daemon/supervisor/bus/database-bus.c daemon/supervisor/bus/limits-bus.c
 * About: daemon/supervisor/bus/lists-bus.c daemon/supervisor/bus/log-control.c daemon/supervisor/bus/manager-bus.c
 * About: daemon/supervisor/calls/[a-z]*.c daemon/supervisor/runs/[a-z]*.c daemon/supervisor/workers/group.c
 * About: daemon/supervisor/runs/placement.c daemon/supervisor/workers/worker.c
 * About: daemon/supervisor/runs/worker-channels.c
 */
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dbus-interfaces/sqlipc-names.h"
#include "dbus-interfaces/wire/call-arguments.h"
#include "tests/fuzz/replay.h"
#include "tests/rigs/bus-rig.h"
#include "tests/rigs/stub-worker.h"

#define N_ACTS_MAX 100u
#define DEPTH_MAX 4u
#define PICK(table, in) ((table)[input_byte(in) % G_N_ELEMENTS(table)])

/* Manager, Database, and the interfaces that sd-bus itself answers. */
static const struct {
        const char *interface, *member, *signature;
} methods[] = {
        { SQLIPC_DATABASE_INTERFACE, "Prepare", "sa{sv}" },
        { SQLIPC_DATABASE_INTERFACE, "Fetch", "tava{sv}a{sv}" },
        { SQLIPC_DATABASE_INTERFACE, "Query", "sava{sv}a{sv}" },
        { SQLIPC_DATABASE_INTERFACE, "QueryRows", "sava{sv}a{sv}" },
        { SQLIPC_DATABASE_INTERFACE, "OpenRows", "sava{sv}a{sv}" },
        { SQLIPC_DATABASE_INTERFACE, "NextRows", "ta{sv}" },
        { SQLIPC_DATABASE_INTERFACE, "Execute", "sava{sv}a{sv}" },
        { SQLIPC_DATABASE_INTERFACE, "Load", "sa{sv}" },
        { SQLIPC_DATABASE_INTERFACE, "Wait", "ta{sv}" },
        { SQLIPC_DATABASE_INTERFACE, "Begin", "a{sv}" },
        { SQLIPC_DATABASE_INTERFACE, "Commit", "ta{sv}" },
        { SQLIPC_DATABASE_INTERFACE, "Rollback", "ta{sv}" },
        { SQLIPC_DATABASE_INTERFACE, "ExecuteBatch", "a(sava{sv})a{sv}" },
        { SQLIPC_DATABASE_INTERFACE, "Cancel", "ta{sv}" },
        { SQLIPC_DATABASE_INTERFACE, "Finalize", "ta{sv}" },
        { SQLIPC_DATABASE_INTERFACE, "OpenChannel", "a{sv}" },
        { SQLIPC_DATABASE_INTERFACE, "Watch", "asa{sv}" },
        { SQLIPC_DATABASE_INTERFACE, "Unwatch", "ta{sv}" },
        { SQLIPC_DATABASE_INTERFACE, "WaitChange", "asta{sv}" },
        { SQLIPC_MANAGER_INTERFACE, "ListDatabases", "a{sv}" },
        { SQLIPC_MANAGER_INTERFACE, "GetDatabase", "sa{sv}" },
        { SQLIPC_MANAGER_INTERFACE, "ListStatements", "a{sv}" },
        { SQLIPC_MANAGER_INTERFACE, "ListRuns", "a{sv}" },
        { SQLIPC_MANAGER_INTERFACE, "ListTransactions", "a{sv}" },
        { SQLIPC_MANAGER_INTERFACE, "ListWatches", "a{sv}" },
        { SQLIPC_MANAGER_INTERFACE, "ListChannels", "a{sv}" },
        { SQLIPC_MANAGER_INTERFACE, "ListClients", "a{sv}" },
        { SQLIPC_MANAGER_INTERFACE, "CancelRun", "ta{sv}" },
        { SQLIPC_MANAGER_INTERFACE, "Reload", "a{sv}" },
        { "org.freedesktop.DBus.Properties", "Get", "ss" },
        { "org.freedesktop.DBus.Properties", "GetAll", "s" },
        { "org.freedesktop.DBus.Properties", "Set", "ssv" },
        { "org.freedesktop.DBus.Introspectable", "Introspect", "" },
        { "org.freedesktop.DBus.Peer", "Ping", "" },
        { "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", "" },
        { NULL, "Query", "sava{sv}a{sv}" },
        { SQLIPC_DATABASE_INTERFACE, "Nothing", "" },
};

static const char *const paths[] = {
        SQLIPC_DATABASE_PATH "/open", SQLIPC_MANAGER_PATH, SQLIPC_DATABASE_PATH "/small", SQLIPC_DATABASE_PATH "/ask",
        SQLIPC_DATABASE_PATH "/closed", SQLIPC_DATABASE_PATH "/open", SQLIPC_DATABASE_PATH "/missing", SQLIPC_DATABASE_PATH,
        "/org/freedesktop/LogControl1", "/", SQLIPC_DATABASE_PATH "/open/more",
};

static const char *const texts[] = {
        "SELECT 1", "", "open", "small", "ask", "closed", "LogLevel", "LogTarget", "debug", "null", "Limits", "Name",
        "NRuns", SQLIPC_DATABASE_INTERFACE, SQLIPC_MANAGER_INTERFACE, "org.freedesktop.LogControl1", ":a", "a", "?1",
        "text", "\xc3\xa5", "SyslogIdentifier", "Features",
};

static const char *const keys[] = {
        "page-size", "max-bytes", "error-details", "timeout-usec", "x-any", ":a", "@b", "$c", "c", "text", "nothing", "",
        "1", "arguments",
};

static const char *const variants[] = {
        "u", "s", "t", "x", "d", "b", "y", "n", "q", "i", "ay", "g", "o", "h", "a{sv}", "as", "av", "v", "(su)", "aay",
        "aav", "a{sv}", "at", "a(ss)", "ay",
};

static const char *const signatures[] = {
        "", "s", "sav", "ssa{sv}", "ta{sv}h", "v", "h", "aav", "(s)", "a{sv}a{sv}", "t", "ay", "ssh",
};

static const uint64_t numbers[] = {
        0, 1, 4096, 8192, 65536, 1048576, 262144, UINT64_MAX, INT64_MAX, 100, 1000000, UINT32_MAX, 5000,
};

/* ---- values ---- */

static void append_type(sd_bus_message *m, const char *type, Input *in, unsigned depth);

static uint64_t choose_number(Input *in) {
        uint8_t how = input_byte(in);

        if (how < 128 && rig.n_numbers > 0)
                return rig.numbers[how % (rig.n_numbers < RIG_N_NUMBERS ? rig.n_numbers : RIG_N_NUMBERS)] + (how >= 120);
        return how < 240 ? numbers[how % G_N_ELEMENTS(numbers)] : input_number(in, 8);
}

/* sd-bus takes no text that is not UTF-8: such is made harmless. */
static char *choose_text(Input *in) {
        uint8_t how = input_byte(in);
        size_t size;
        const uint8_t *bytes;

        if (how < 200)
                return g_strdup(texts[how % G_N_ELEMENTS(texts)]);
        if (how < 210)
                return g_strnfill((gsize) how * 10 - 1999, 'x'); /* around SQLSizeMax= and far below */
        bytes = input_bytes(in, how - 210, &size);
        return g_utf8_make_valid(size > 0 ? (const char *) bytes : "", (gssize) size);
}

/* A file that is taken for SQL and parameters. */
static int open_arguments(Input *in) {
        const uint64_t size = CALL_ARGUMENTS_HEAD_SIZE + 1 + input_byte(in);
        uint8_t *bytes;
        int fd;

        demand(call_arguments_new(size, &fd, &bytes) == 0);
        call_arguments_write_head(bytes, size - CALL_ARGUMENTS_HEAD_SIZE - 1, 0, 0, 0);
        memset(bytes + CALL_ARGUMENTS_HEAD_SIZE, input_byte(in), size - CALL_ARGUMENTS_HEAD_SIZE);
        demand(call_arguments_seal(fd, bytes, size) == 0);
        return fd;
}

static int open_any(Input *in) {
        int fds[2];

        switch (input_byte(in) % 7) {
        case 5:
        case 6:
                return open_arguments(in);
        case 0: return open("/dev/null", O_RDWR | O_CLOEXEC);
        case 1: return memfd_create("fuzz", MFD_CLOEXEC);
        case 2: return open("/", O_PATH | O_CLOEXEC);
        case 3: return eventfd(0, EFD_CLOEXEC);
        default:
                demand(pipe2(fds, O_CLOEXEC) == 0);
                close(fds[0]);
                return fds[1];
        }
}

static size_t length_of(const char *type) {
        size_t n = 1;

        if (*type == 'a')
                return 1 + length_of(type + 1);
        if (*type != '(' && *type != '{')
                return 1;
        while (type[n] != ')' && type[n] != '}')
                n += length_of(type + n);
        return n + 1;
}

static void append_all(sd_bus_message *m, const char *types, Input *in, unsigned depth) {
        for (size_t n; *types; types += n) {
                g_autofree char *type = g_strndup(types, n = length_of(types));

                append_type(m, type, in, depth);
        }
}

static void append_container(sd_bus_message *m, char type, const char *contents, Input *in, unsigned depth) {
        unsigned n = type != 'a' ? 1 : depth < DEPTH_MAX ? input_byte(in) % 6 : 0;

        demand(sd_bus_message_open_container(m, type, contents) >= 0);
        while (n-- > 0)
                append_all(m, contents, in, depth + 1);
        demand(sd_bus_message_close_container(m) >= 0);
}

static void append_entry(sd_bus_message *m, const char *contents, Input *in, unsigned depth) {
        const char *key = PICK(keys, in);

        demand(sd_bus_message_open_container(m, 'e', contents) >= 0);
        demand(sd_bus_message_append_basic(m, 's', key) >= 0);
        append_all(m, contents + 1, in, depth + 1);
        demand(sd_bus_message_close_container(m) >= 0);
}

static void append_bytes(sd_bus_message *m, Input *in) {
        size_t size;
        const uint8_t *bytes = input_bytes(in, input_byte(in), &size);

        demand(sd_bus_message_append_array(m, 'y', bytes, size) >= 0);
}

static void append_fd(sd_bus_message *m, Input *in) {
        int fd = open_any(in);

        demand(fd >= 0 && sd_bus_message_append_basic(m, 'h', &fd) >= 0);
        close(fd);
}

static void append_type(sd_bus_message *m, const char *type, Input *in, unsigned depth) {
        g_autofree char *text = NULL, *contents = NULL;
        uint64_t number;
        double real;
        int boolean;

        switch (*type) {
        case 's':
                text = choose_text(in);
                demand(sd_bus_message_append_basic(m, 's', text) >= 0);
                return;
        case 'o':
                demand(sd_bus_message_append_basic(m, 'o', PICK(paths, in)) >= 0);
                return;
        case 'g':
                demand(sd_bus_message_append_basic(m, 'g', PICK(signatures, in)) >= 0);
                return;
        case 'h':
                append_fd(m, in);
                return;
        case 'd':
                number = input_number(in, 8);
                memcpy(&real, &number, sizeof real);
                demand(sd_bus_message_append_basic(m, 'd', &real) >= 0);
                return;
        case 'b':
                boolean = input_byte(in) & 1;
                demand(sd_bus_message_append_basic(m, 'b', &boolean) >= 0);
                return;
        case 'v':
                append_container(m, 'v', depth < DEPTH_MAX ? PICK(variants, in) : "u", in, depth);
                return;
        case 'a':
                if (strcmp(type, "ay") == 0)
                        append_bytes(m, in);
                else
                        append_container(m, 'a', type + 1, in, depth);
                return;
        case '(':
        case '{':
                contents = g_strndup(type + 1, strlen(type) - 2);
                if (*type == '(')
                        append_container(m, 'r', contents, in, depth);
                else
                        append_entry(m, contents, in, depth);
                return;
        default:
                number = GUINT64_TO_LE(choose_number(in));
                demand(sd_bus_message_append_basic(m, *type, &number) >= 0);
        }
}

/* ---- what happens ---- */

static void call(Input *in) {
        const unsigned peer = input_byte(in) % RIG_N_PEERS;
        const size_t which = input_byte(in) % G_N_ELEMENTS(methods);
        const uint8_t how = input_byte(in);
        const char *signature = how % 16 == 1 ? PICK(signatures, in) : methods[which].signature;
        const char *path = g_strcmp0(methods[which].interface, SQLIPC_DATABASE_INTERFACE) == 0 ? paths[how / 16 % 3 * 2]
                           : g_strcmp0(methods[which].interface, SQLIPC_MANAGER_INTERFACE) == 0 ? SQLIPC_MANAGER_PATH
                                                                                                : PICK(paths, in);
        sd_bus_message *m;

        if (how % 16 == 2)
                path = PICK(paths, in);
        else if (how % 16 == 3)
                path = SQLIPC_DATABASE_PATH "/ask";
        else if (how % 16 == 5)
                path = SQLIPC_DATABASE_PATH "/other";
        m = rig_new_call(peer, path, methods[which].interface, methods[which].member);
        demand(m);
        if (how & 128)
                demand(sd_bus_message_set_allow_interactive_authorization(m, true) >= 0);
        append_all(m, signature, in, 0);
        rig_send_call(peer, m, how % 16 != 4);
}

/* A signal that only others may send, or an unexpected reply. */
static void mislead(Input *in) {
        const unsigned peer = input_byte(in) % RIG_N_PEERS;
        const bool of_driver = input_byte(in) & 1;
        sd_bus_message *m = NULL;

        demand(sd_bus_message_new_signal(rig.driver, &m, of_driver ? "/org/freedesktop/DBus"
                                                                   : "/org/freedesktop/PolicyKit1/Authority",
                                         of_driver ? "org.freedesktop.DBus" : "org.freedesktop.PolicyKit1.Authority",
                                         of_driver ? "NameOwnerChanged" : "Changed") >= 0);
        demand(sd_bus_message_set_sender(m, input_byte(in) & 1 ? rig_peer_name(peer) : ":1.2") >= 0);
        if (of_driver)
                demand(sd_bus_message_append(m, "sss", rig_peer_name((peer + 1) % RIG_N_PEERS), rig_peer_name(peer),
                                             "") >= 0);
        demand(sd_bus_send(rig.driver, m, NULL) >= 0);
        sd_bus_message_unref(m);
}

/* A client's use of the descriptors that it was given. */
static void use_fd(Input *in) {
        size_t i = input_byte(in), size;
        uint8_t bytes[4096];
        const uint8_t *given;

        if (rig.n_fds == 0)
                return;
        i %= rig.n_fds;
        switch (input_byte(in) % 5) {
        case 0:
                close(rig.fds[i]);
                rig.fds[i] = rig.fds[--rig.n_fds];
                break;
        case 1:
                demand(fcntl(rig.fds[i], F_SETFL, O_NONBLOCK) >= 0);
                (void) !read(rig.fds[i], bytes, sizeof bytes);
                break;
        case 2: /* not a pipe's read end: a channel */
                given = input_bytes(in, input_byte(in), &size);
                (void) send(rig.fds[i], given, size, MSG_DONTWAIT | MSG_NOSIGNAL);
                break;
        case 3:
                (void) shutdown(rig.fds[i], input_byte(in) % 3);
                break;
        case 4:
                (void) fcntl(rig.fds[i], F_SETPIPE_SZ, 65536 << input_byte(in) % 5);
                break;
        }
}

static void act(Input *in) {
        static const uint64_t times[] = { 1000, 21000, 101000, 1000000, 6000000, 11000000, 31000000, 700000000 };

        switch (input_byte(in) % 16) {
        default: /* most of all */
                call(in);
                break;
        case 9:
        case 10:
                stub_worker_act(in);
                break;
        case 11:
                (void) stub_workers_be_honest();
                break;
        case 12:
                use_fd(in);
                break;
        case 13:
                rig_pass_time(PICK(times, in));
                break;
        case 14:
                rig_answer_polkit(in);
                break;
        case 15:
                if (input_byte(in) % 4 == 0)
                        rig_leave(input_byte(in) % RIG_N_PEERS);
                else
                        mislead(in);
                break;
        }
        if (input_byte(in) % 4 != 3) /* else it lies in the queue together with the next */
                rig_pump();
}

static void introduce(Input *in) {
        static const uid_t uids[] = { 1000, 1001, 0, 1000, 65534, 1002, (uid_t) -1, 1000 };

        for (unsigned i = 0; i < RIG_N_PEERS; i++) {
                uint8_t who = input_byte(in);

                rig.peers[i] = (RigPeer) {
                        .uid = uids[who % 8],
                        .credentials = who < 200 ? CREDENTIALS_WHOLE : (RigCredentials) (who % 4),
                };
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
        Input in = { .bytes = bytes, .size = size };

        if (!rig.manager)
                rig_init();
        rig_begin();
        introduce(&in);
        for (unsigned i = 0; i < N_ACTS_MAX && in.size > 0; i++)
                act(&in);
        if (size % 4 != 3) /* else they leave in the middle */
                rig_check_calls();
        rig_check_nothing_left();
        return 0;
}
