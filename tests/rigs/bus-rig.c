/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See bus-rig.h. Tests only. */
#include "tests/rigs/bus-rig.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/supervisor/base/database.h"
#include "daemon/supervisor/base/log.h"
#include "dbus-interfaces/sqlipc-names.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/descriptors.h"
#include "tests/rigs/stub-worker.h"

#define DRIVER "org.freedesktop.DBus"
#define AUTHORITY ":1.2"             /* polkit's unique name */
#define TURNS_MAX 100000             /* of a loop that should come to rest */
#define N_TIMERS_MAX 128
#define MINUTE_USEC (UINT64_C(60) * 1000000)
#define LONG_USEC (UINT64_C(4) * 3600 * 1000000) /* longer than anything is kept */

Rig rig = { .n_peers = RIG_N_PEERS, .questions = G_QUEUE_INIT };

static int manager_end;              /* of the socketpair */
static uint64_t last_cookie;         /* of the supervisor's messages */
static unsigned n_descriptors;

/* ---- time ---- */

typedef struct Timer {
        sd_event_source *source;     /* a reference */
        sd_event_time_handler_t handler;
        void *userdata;
} Timer;

static Timer timers[N_TIMERS_MAX];
static uint64_t virtual_usec = UINT64_C(1) << 50; /* past any real time since boot: no timer fires by itself */

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_sd_event_add_time(sd_event *e, sd_event_source **ret, clockid_t clock, uint64_t usec, uint64_t accuracy,
                             sd_event_time_handler_t handler, void *userdata);
int __real_sd_event_add_time(sd_event *e, sd_event_source **ret, clockid_t clock, uint64_t usec, uint64_t accuracy,
                             sd_event_time_handler_t handler, void *userdata);
int __wrap_sd_event_add_time_relative(sd_event *e, sd_event_source **ret, clockid_t clock, uint64_t usec, uint64_t accuracy,
                                      sd_event_time_handler_t handler, void *userdata);
int __wrap_sd_event_source_set_time_relative(sd_event_source *s, uint64_t usec);
sd_event_source *__wrap_sd_event_source_disable_unref(sd_event_source *s);
sd_event_source *__real_sd_event_source_disable_unref(sd_event_source *s);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret) {
        if (clock != CLOCK_MONOTONIC)
                return __real_clock_gettime(clock, ret);
        ret->tv_sec = (time_t) (virtual_usec / 1000000);
        ret->tv_nsec = (long) (virtual_usec % 1000000 * 1000);
        return 0;
}

int __wrap_sd_event_add_time(sd_event *e, sd_event_source **ret, clockid_t clock, uint64_t usec, uint64_t accuracy,
                             sd_event_time_handler_t handler, void *userdata) {
        int r = __real_sd_event_add_time(e, ret, clock, usec > 0 ? usec : virtual_usec, accuracy, handler, userdata);

        for (size_t i = 0; r >= 0; i++) {
                demand(i < N_TIMERS_MAX);
                if (timers[i].source)
                        continue;
                timers[i] = (Timer) { .source = sd_event_source_ref(*ret), .handler = handler, .userdata = userdata };
                break;
        }
        return r;
}

int __wrap_sd_event_add_time_relative(sd_event *e, sd_event_source **ret, clockid_t clock, uint64_t usec, uint64_t accuracy,
                                      sd_event_time_handler_t handler, void *userdata) {
        return __wrap_sd_event_add_time(e, ret, clock, virtual_usec + usec, accuracy, handler, userdata);
}

int __wrap_sd_event_source_set_time_relative(sd_event_source *s, uint64_t usec) {
        return sd_event_source_set_time(s, virtual_usec + usec);
}

sd_event_source *__wrap_sd_event_source_disable_unref(sd_event_source *s) {
        for (size_t i = 0; s && i < N_TIMERS_MAX; i++)
                if (timers[i].source == s)
                        timers[i].source = sd_event_source_unref(s);
        return __real_sd_event_source_disable_unref(s);
}

/* The first timer that is due by then; NULL: none. */
static Timer *find_due(uint64_t until, uint64_t *ret_due) {
        Timer *found = NULL;

        *ret_due = until;
        for (size_t i = 0; i < N_TIMERS_MAX; i++) {
                uint64_t due;

                if (!timers[i].source || sd_event_source_get_enabled(timers[i].source, NULL) <= 0)
                        continue;
                demand(sd_event_source_get_time(timers[i].source, &due) >= 0);
                if (due > *ret_due || (found && due == *ret_due))
                        continue;
                found = &timers[i];
                *ret_due = due;
        }
        return found;
}

/* As sd-event does: a timer is one shot. */
static void fire(const Timer *t, uint64_t due) {
        sd_event_source *s = sd_event_source_ref(t->source);

        demand(sd_event_source_set_enabled(s, SD_EVENT_OFF) >= 0);
        rig.n_timers++;
        (void) t->handler(s, due, t->userdata);
        (void) sd_event_source_unref(s);
}

void rig_pass_time(uint64_t usec) {
        const uint64_t until = virtual_usec + usec;
        const Timer *t;
        uint64_t due;

        rig_pump();
        for (unsigned n = 0; (t = find_due(until, &due)); n++) {
                demand(n < TURNS_MAX);
                if (due > virtual_usec)
                        virtual_usec = due;
                fire(t, due);
                rig_pump();
        }
        virtual_usec = until;
}

/* ---- the bus ---- */

int __wrap_sd_bus_set_address(sd_bus *bus, const char *address);
int __wrap_sd_bus_call(sd_bus *bus, sd_bus_message *call, uint64_t usec, sd_bus_error *error, sd_bus_message **reply);
int __real_sd_bus_call(sd_bus *bus, sd_bus_message *call, uint64_t usec, sd_bus_error *error, sd_bus_message **reply);
int __wrap_sd_bus_reply_method_return(sd_bus_message *call, const char *types, ...);
int __wrap_sd_bus_message_new_method_return(sd_bus_message *call, sd_bus_message **m);
int __real_sd_bus_message_new_method_return(sd_bus_message *call, sd_bus_message **m);

int __wrap_sd_bus_reply_method_return(sd_bus_message *call, const char *types, ...) {
        va_list values;
        int r;

        if (rig.out_of_memory)
                return -ENOMEM;
        va_start(values, types);
        r = sd_bus_reply_method_returnv(call, types, values);
        va_end(values);
        return r;
}

int __wrap_sd_bus_message_new_method_return(sd_bus_message *call, sd_bus_message **m) {
        return rig.out_of_memory ? -ENOMEM : __real_sd_bus_message_new_method_return(call, m);
}

const char *rig_peer_name(unsigned peer) {
        static const char *const names[RIG_N_PEERS_MAX] = {
                ":1.100", ":1.101", ":1.102", ":1.103", ":1.104", ":1.105", ":1.106", ":1.107",
        };

        return names[peer];
}

int __wrap_sd_bus_set_address(sd_bus *bus, const char *address) {
        (void) address;
        return sd_bus_set_fd(bus, manager_end, manager_end);
}

static void send_and_drop(sd_bus_message *m) {
        demand(sd_bus_send(rig.driver, m, NULL) >= 0);
        sd_bus_message_unref(m);
}

static sd_bus_message *reply_of_driver(sd_bus_message *call, const char *sender) {
        sd_bus_message *reply = NULL;

        demand(sd_bus_message_new_method_return(call, &reply) >= 0);
        demand(sd_bus_message_set_sender(reply, sender) >= 0);
        return reply;
}

static void append_credentials(sd_bus_message *reply, const RigPeer *p) {
        const uint32_t groups[] = { 100, 1000 };

        demand(sd_bus_message_open_container(reply, 'a', "{sv}") >= 0);
        demand(sd_bus_message_append(reply, "{sv}", "LinuxSecurityLabel", "ay", 2, 'x', 0) >= 0);
        if (p->credentials == CREDENTIALS_ODD)
                demand(sd_bus_message_append(reply, "{sv}", "UnixUserID", "s", "root") >= 0);
        else if (p->credentials != CREDENTIALS_NO_UID)
                demand(sd_bus_message_append(reply, "{sv}", "UnixUserID", "u", (uint32_t) p->uid) >= 0);
        demand(sd_bus_message_append(reply, "{sv}", "ProcessID", "u", 4711) >= 0);
        demand(sd_bus_message_append(reply, "{sv}", "UnixGroupIDs", "au", 2, groups[0], groups[1]) >= 0);
        demand(sd_bus_message_close_container(reply) >= 0);
}

/* The driver's answer is in the socket before the call that waits for it is sent, so no other thread is needed. */
int __wrap_sd_bus_call(sd_bus *bus, sd_bus_message *call, uint64_t usec, sd_bus_error *error, sd_bus_message **ret) {
        const RigPeer *p = NULL;
        sd_bus_message *reply;
        const char *name;

        while (sd_bus_process(rig.driver, NULL) > 0)
                ;
        last_cookie += 1024; /* more than the calls on their way */
        demand(sd_bus_message_seal(call, last_cookie, usec) >= 0);
        demand(sd_bus_message_read(call, "s", &name) >= 0 && sd_bus_message_rewind(call, true) >= 0);
        for (unsigned i = 0; i < rig.n_peers; i++)
                if (strcmp(name, rig_peer_name(i)) == 0)
                        p = &rig.peers[i];
        if (!p || p->left || p->credentials == CREDENTIALS_NO_OWNER) {
                demand(sd_bus_message_new_method_errorf(call, &reply, SD_BUS_ERROR_NAME_HAS_NO_OWNER, "no owner") >= 0);
                demand(sd_bus_message_set_sender(reply, DRIVER) >= 0);
        } else {
                reply = reply_of_driver(call, DRIVER);
                append_credentials(reply, p);
        }
        send_and_drop(reply);
        return __real_sd_bus_call(bus, call, usec, error, ret);
}

/* ---- what the supervisor sends ---- */

static void answer_driver_call(sd_bus_message *m) {
        const char *member = sd_bus_message_get_member(m);
        sd_bus_message *reply;

        if (strcmp(member, "GetConnectionCredentials") == 0) /* was answered */
                return;
        reply = reply_of_driver(m, DRIVER);
        if (strcmp(member, "Hello") == 0)
                demand(sd_bus_message_append(reply, "s", ":1.1") >= 0);
        else if (strcmp(member, "RequestName") == 0 || strcmp(member, "ReleaseName") == 0)
                demand(sd_bus_message_append(reply, "u", 1) >= 0);
        send_and_drop(reply);
}

static void keep_fd(int fd) {
        fd = rig.n_fds < RIG_N_FDS_MAX ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
        if (fd >= 0)
                rig.fds[rig.n_fds++] = fd;
}

static bool look_into_changes(sd_bus_message *reply, RigCall *call) {
        const void *changes;
        size_t size;

        if (sd_bus_message_read_array(reply, 'x', &changes, &size) <= 0)
                return false;
        if (size > 0)
                call->n_changes = ((const int64_t *) changes)[size / sizeof(int64_t) - 1];
        return true;
}

/* The values that a client would take out of a reply. */
static void look_into(sd_bus_message *reply, RigCall *call) {
        char type;
        const char *contents;

        for (unsigned i = 0; i < 2 && sd_bus_message_peek_type(reply, &type, &contents) > 0; i++) {
                uint64_t number;
                int fd;

                if (type == 'x' && sd_bus_message_read_basic(reply, 'x', &call->n_changes) > 0)
                        continue;
                if (type == 'a' && strcmp(contents, "x") == 0 && look_into_changes(reply, call))
                        continue;
                if (type == 't' && sd_bus_message_read_basic(reply, 't', &number) > 0)
                        rig.numbers[rig.n_numbers++ % RIG_N_NUMBERS] = number;
                else if (type == 'h' && sd_bus_message_read_basic(reply, 'h', &fd) > 0)
                        keep_fd(fd);
                else
                        return;
        }
}

static void keep_error(RigCall *call, sd_bus_message *reply) {
        const sd_bus_error *e = sd_bus_message_get_error(reply);

        if (!e)
                return;
        (void) snprintf(call->error, sizeof call->error, "%s", e->name);
        (void) snprintf(call->sentence, sizeof call->sentence, "%s", e->message ?: "");
        if (sd_bus_message_has_signature(reply, "sii"))
                demand(sd_bus_message_read(reply, "sii", NULL, &call->extended_code, NULL) > 0);
}

static void take_reply(sd_bus_message *reply) {
        uint64_t cookie;

        demand(sd_bus_message_get_reply_cookie(reply, &cookie) >= 0);
        for (size_t i = 0; i < rig.n_calls; i++)
                if (rig.calls[i].cookie == cookie) {
                        demand(rig.calls[i].wants_reply && ++rig.calls[i].n_replies == 1);
                        demand(strcmp(sd_bus_message_get_destination(reply), rig_peer_name(rig.calls[i].peer)) == 0);
                        keep_error(&rig.calls[i], reply);
                        look_into(reply, &rig.calls[i]);
                        return;
                }
        demand(false); /* nobody asked */
}

static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *destination = sd_bus_message_get_destination(m);
        uint64_t cookie = 0;
        uint8_t type;

        (void) userdata;
        (void) error;
        demand(sd_bus_message_get_type(m, &type) >= 0 && sd_bus_message_get_cookie(m, &cookie) >= 0);
        if (cookie > last_cookie)
                last_cookie = cookie;
        if (type == SD_BUS_MESSAGE_METHOD_RETURN || type == SD_BUS_MESSAGE_METHOD_ERROR)
                take_reply(m);
        else if (type == SD_BUS_MESSAGE_METHOD_CALL && g_strcmp0(destination, DRIVER) == 0)
                answer_driver_call(m);
        else if (type == SD_BUS_MESSAGE_METHOD_CALL && sd_bus_message_is_method_call(m, NULL, "CheckAuthorization"))
                g_queue_push_tail(&rig.questions, sd_bus_message_ref(m));
        return 1;
}

void rig_pump(void) {
        for (unsigned n = 0;; n++) {
                int r = sd_bus_process(rig.driver, NULL);

                demand(r >= 0 && n < TURNS_MAX);
                if (r > 0)
                        continue;
                r = sd_event_run(rig.manager->context.event, 0);
                demand(r >= 0);
                if (r == 0 && !stub_workers_reap())
                        return;
        }
}

/* ---- peers ---- */

sd_bus_message *rig_new_call(unsigned peer, const char *path, const char *interface, const char *member) {
        sd_bus_message *m = NULL;

        if (sd_bus_message_new_method_call(rig.driver, &m, SQLIPC_BUS_NAME, path, interface, member) < 0)
                return NULL;
        demand(sd_bus_message_set_sender(m, rig_peer_name(peer)) >= 0);
        return m;
}

void rig_send_call(unsigned peer, sd_bus_message *m, bool wants_reply) {
        RigCall *c = &rig.calls[rig.n_calls];

        demand(sd_bus_message_set_expect_reply(m, wants_reply) >= 0);
        if (rig.n_calls < RIG_N_CALLS_MAX && !rig.peers[peer].left) {
                *c = (RigCall) {
                        .peer = peer,
                        .wants_reply = wants_reply,
                        .may_wait = strcmp(sd_bus_message_get_member(m), "WaitChange") == 0,
                };
                demand(sd_bus_send(rig.driver, m, wants_reply ? &c->cookie : NULL) >= 0);
                if (!wants_reply)
                        demand(sd_bus_message_get_cookie(m, &c->cookie) >= 0);
                rig.n_calls++;
        }
        sd_bus_message_unref(m);
}

void rig_query(unsigned peer, const char *database) {
        g_autofree char *path = g_strconcat(SQLIPC_DATABASE_PATH, "/", database, NULL);
        sd_bus_message *m = rig_new_call(peer, path, SQLIPC_DATABASE_INTERFACE, "Query");

        demand(sd_bus_message_append(m, "sava{sv}a{sv}", "SELECT 1", 0, 0, 0) >= 0);
        rig_send_call(peer, m, true);
}

void rig_leave(unsigned peer) {
        sd_bus_message *m = NULL;

        if (rig.peers[peer].left)
                return;
        rig.peers[peer].left = true;
        demand(sd_bus_message_new_signal(rig.driver, &m, "/org/freedesktop/DBus", DRIVER, "NameOwnerChanged") >= 0);
        demand(sd_bus_message_set_sender(m, DRIVER) >= 0);
        demand(sd_bus_message_append(m, "sss", rig_peer_name(peer), rig_peer_name(peer), "") >= 0);
        send_and_drop(m);
}

void rig_answer_polkit(Input *in) {
        sd_bus_message *question = g_queue_pop_head(&rig.questions), *reply = NULL;
        uint8_t answer = input_byte(in);

        if (!question)
                return;
        if (answer % 5 == 4) {
                demand(sd_bus_message_new_method_errorf(question, &reply, SD_BUS_ERROR_SERVICE_UNKNOWN, "none") >= 0);
                demand(sd_bus_message_set_sender(reply, DRIVER) >= 0);
        } else {
                reply = reply_of_driver(question, AUTHORITY);
                if (answer % 5 == 3)
                        demand(sd_bus_message_append(reply, "s", "odd") >= 0);
                else
                        demand(sd_bus_message_append(reply, "(bba{ss})", answer % 5 == 0, answer % 5 == 1, 0) >= 0);
        }
        send_and_drop(reply);
        sd_bus_message_unref(question);
}

void rig_set_mode(const char *database, const char *mode) {
        DatabaseConfig *c = database_find(&rig.manager->context, database)->config;

        g_free(c->mode);
        c->mode = g_strdup(mode);
        c->write_everybody = true;
}

void rig_check_calls(void) {
        Input none = {};

        for (unsigned n = 0; n < 4; n++) {
                do {
                        while (rig.questions.head)
                                rig_answer_polkit(&none);
                        rig_pump();
                } while (stub_workers_be_honest() || rig.questions.head);
                rig_pass_time(LONG_USEC / 4);
        }
        for (size_t i = 0; i < rig.n_calls; i++) {
                const RigCall *c = &rig.calls[i];

                demand(!c->wants_reply || c->n_replies == 1 || c->may_wait || rig.peers[c->peer].left ||
                       rig.peers[c->peer].credentials == CREDENTIALS_NO_OWNER);
        }
}

void rig_begin(void) {
        n_descriptors = count_descriptors(); /* each time: the engine's symbolizer takes some */
}

void rig_begin_users(void) {
        if (!rig.manager)
                rig_init();
        rig_begin();
        for (unsigned i = 0; i < rig.n_peers; i++)
                rig.peers[i] = (RigPeer) { .uid = 1000 + i };
}

static void close_fds(void) {
        while (rig.n_fds > 0)
                close(rig.fds[--rig.n_fds]);
}

void rig_check_nothing_left(void) {
        const Context *context = &rig.manager->context;
        void *question;

        rig.out_of_memory = false;
        stub_workers_ignore_kill(false);
        for (unsigned i = 0; i < rig.n_peers; i++)
                rig_leave(i);
        rig_pump();
        demand(g_hash_table_size(context->peers) == 0 && g_hash_table_size(context->sessions) == 0);
        demand(g_hash_table_size(context->statements) == 0 && context->n_held_calls == 0);
        close_fds();
        while ((question = g_queue_pop_head(&rig.questions)))
                sd_bus_message_unref(question);
        do
                rig_pump();
        while (stub_workers_be_honest());
        rig_pass_time(LONG_USEC);
        while (stub_workers_be_honest())
                rig_pump();
        rig_pump();
        close_fds(); /* of replies to clients that had left, which a bus drops */
        rig_pass_time(MINUTE_USEC); /* pipes of loads are checked at intervals */
        demand(g_hash_table_size(context->runs) == 0 && g_hash_table_size(context->channels) == 0);
        demand(context->workers.length == 0 && stub_workers_count() == 0);
        demand(g_hash_table_size(context->leases) == 0);
        demand(g_hash_table_size(context->users) == 0);
        demand(context->pipes->resting.length == 0 && context->pipes->kept.length == 0);
        demand(context->pipes->budget.granted == 0);
        demand(context->polkit->n_asked == 0 && context->polkit->n_interactive == 0 && context->polkit->waiting.length == 0);
        demand(count_descriptors() == n_descriptors);
        rig.n_calls = rig.n_numbers = 0;
        log_set_target(LOG_TARGET_NULL);
}

/* ---- birth ---- */

static void write_file(const char *folder, const char *name, const char *text) {
        char path[256];
        FILE *file;

        snprintf(path, sizeof path, "%s/%s", folder, name);
        file = fopen(path, "we");
        demand(file && fputs(text, file) >= 0);
        demand(fclose(file) == 0);
}

static char folder[64];

static void remove_folder(void) {
        char command[128];

        snprintf(command, sizeof command, "rm -rf '%s'", folder);
        (void) !system(command);
}

static void write_configuration(void) {
        static const char *const more[] = { "second.conf", "third.conf", "fourth.conf" };
        char databases[128];

        strcpy(folder, "/tmp/sqlipc-fuzz-XXXXXX");
        demand(mkdtemp(folder) && atexit(remove_folder) == 0);
        snprintf(databases, sizeof databases, "%s/databases.d", folder);
        demand(mkdir(databases, 0755) == 0);
        write_file(folder, "sqlipcd.conf",
                   "[Limits]\nStatementsMax=6\nRunsMax=5\nChannelsMax=3\nWorkersMax=2\nWorkersTotalMax=4\nPipePagesMax=64\n"
                   "SQLSizeMax=1000\n");
        write_file(databases, "open.conf", "[Database]\nPath=/open.db\nAllowUsers=*\nDescription=for all\n");
        write_file(databases, "other.conf", "[Database]\nPath=/other.db\nAllowUsers=*\nImmutable=yes\n");
        write_file(databases, "closed.conf", "[Database]\nPath=/closed.db\nMode=read-write\n");
        write_file(databases, "small.conf",
                   "[Database]\nPath=/small.db\nAllowUsers=*\nExpose=t u\n[Limits]\nStatementsMax=2\nRunsMax=1\n"
                   "ChannelsMax=1\nWorkersMax=1\nRunTimeoutSec=2\n");
        for (unsigned i = 0; i < 3; i++)
                write_file(databases, more[i],
                           "[Database]\nPath=/more.db\nAllowUsers=*\nMode=read-write\nWriteUsers=*\n");
        write_file(databases, "ask.conf", "[Database]\nPath=/ask.db\nPolkit=yes\nMode=read-write\nWriteUsers=*\n");
        write_file(databases, "broken.conf", "[Database]\nPath=relative\n");
}

static atomic_bool connected;

/* The supervisor's start waits for answers; only there another thread must give them. */
static void *drive(void *unused) {
        while (!connected) {
                if (sd_bus_process(rig.driver, NULL) == 0)
                        (void) sd_bus_wait(rig.driver, 1000);
        }
        return unused;
}

void rig_init(void) {
        char *directories[] = { folder, NULL };
        pthread_t thread;
        sd_id128_t id;
        int fds[2];

        (void) signal(SIGPIPE, SIG_IGN);
        demand(setenv("SQLIPC_WORKER_PATH", "/bin/true", 1) == 0); /* opened, and never run */
        write_configuration();
        log_set_target(LOG_TARGET_NULL);
        demand(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
        manager_end = fds[1];
        demand(sd_id128_randomize(&id) >= 0 && sd_bus_new(&rig.driver) >= 0);
        demand(sd_bus_set_fd(rig.driver, fds[0], fds[0]) >= 0 && sd_bus_set_server(rig.driver, true, id) >= 0);
        demand(sd_bus_negotiate_fds(rig.driver, true) >= 0 && sd_bus_start(rig.driver) >= 0);
        demand(sd_bus_add_filter(rig.driver, NULL, on_message, NULL) >= 0);
        demand(manager_new(BUS_ADDRESS, directories, &rig.manager) >= 0 && reload_first(&rig.manager->reload, false) >= 0);
        demand(pthread_create(&thread, NULL, drive, NULL) == 0);
        demand(manager_connect(rig.manager, BUS_ADDRESS, "") >= 0);
        connected = true;
        demand(pthread_join(thread, NULL) == 0);
        rig.manager->context.n_cpus = 2; /* the same on each machine */
        rig_pump();
}
