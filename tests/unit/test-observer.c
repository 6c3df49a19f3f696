/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How the supervisor notices commits of other programs: when it asks the observer of a file, starts one and lets it end.
 * Observers are stubs, inotify is a pipe into which the tests write events, and the test's clock does not advance by itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/database.h"
#include "daemon/supervisor/service/idle.h"
#include "daemon/supervisor/workers/changes.h"
#include "daemon/supervisor/workers/observer.h"
#include "dbus-interfaces/sqlipc-names.h"
#include "tests/rigs/bus-rig.h"
#include "tests/rigs/stub-worker.h"
#include "tests/unit/test.h"

#define MSEC UINT64_C(1000)
#define SECOND UINT64_C(1000000)
#define DAY (24 * 3600 * SECOND)
#define QUIET (6 * SECOND)   /* after which a process has ended */
#define N_PROCESSES 16u
#define N_FILES 20u

/* ---- inotify ---- */

static int inotify_error;    /* of inotify_init1() */
static int events_fds[64];   /* the write ends of all pipes, so that none is at its end */
static unsigned n_events_fds;

int __wrap_inotify_init1(int flags);

int __wrap_inotify_init1(int flags) {
        int fds[2];

        CHECK_INT(flags, IN_CLOEXEC | IN_NONBLOCK);
        if (inotify_error != 0) {
                errno = inotify_error;
                return -1;
        }
        CHECK(n_events_fds < N_ELEMENTS(events_fds) && pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
        events_fds[n_events_fds++] = fds[1];
        return fds[0];
}

static void forget_inotify(void) {
        while (n_events_fds > 0)
                close(events_fds[--n_events_fds]);
}

static void write_event(const void *event, size_t size) {
        CHECK(n_events_fds > 0 && write(events_fds[n_events_fds - 1], event, size) == (ssize_t) size);
}

/* "": an event of the file or its log itself. */
static void tell_event(uint32_t mask, const char *name) {
        struct inotify_event event = { .mask = mask, .len = name[0] ? 16 : 0 };
        char bytes[sizeof event + 16] = "";

        memcpy(bytes, &event, sizeof event);
        (void) snprintf(bytes + sizeof event, 16, "%s", name);
        write_event(bytes, sizeof event + event.len);
        rig_pump();
}

/* ---- a watched file ---- */

typedef struct File {
        ChangeListener listener;
        Changes *changes;
        unsigned n_ready, n_told;
} File;

static File file;
static Observed observed; /* what stubs find */

static void on_ready(ChangeListener *l) {
        ((File *) l)->n_ready++;
        changes_arm(l, l->changes->sequence);
}

static void on_change(ChangeListener *l, uint64_t sequence) {
        ((File *) l)->n_told++;
        changes_arm(l, sequence);
}

/* Observers answer, end if they were told to, and others start. */
static void settle(void) {
        do
                rig_pump();
        while (stub_workers_be_honest());
        rig_pump();
}

/* In small steps, in which observers answer. */
static void pass(uint64_t usec, uint64_t step) {
        for (uint64_t passed = 0; passed < usec; passed += step) {
                rig_pass_time(step);
                settle();
        }
}

static void find_counter(uint32_t counter) {
        observed.state = (FileState) { .kind = FILE_STATE_ROLLBACK, .counter = counter };
        stub_observed = observed;
}

static void watch_file(File *f, const char *path, bool immutable) {
        *f = (File) { .listener = { .on_ready = on_ready, .on_change = on_change } };
        f->changes = changes_of(&rig.manager->context, path, immutable);
        CHECK_INT(changes_add(f->changes, &f->listener, NULL, f->changes->n_schemas), 0);
}

static void begin_without_watch(void) {
        rig_begin_users();
        inotify_error = 0;
        stub_watch_silent = false;
        observed = (Observed) { .device = 1, .inode = 1, .name = "file", .schema = 1 };
        find_counter(7);
}

static unsigned n_files;

/* A watch of a file that was never watched before. */
static void begin(void) {
        char path[32];

        begin_without_watch();
        (void) snprintf(path, sizeof path, "/file%u", n_files++);
        watch_file(&file, path, false);
        settle();
        CHECK_INT(file.n_ready, 1);
        CHECK_INT(stub_workers_alive(), 1);
}

static void end(void) {
        inotify_error = 0;
        if (file.listener.changes)
                changes_remove(&file.listener);
        pass(100 * SECOND, SECOND);
        CHECK_INT(stub_workers_alive(), 0);
        forget_inotify();
        rig_check_nothing_left();
}

static unsigned n_looks(void) {
        return stub_worker_watch(0).n_looks;
}

/* The file has not changed: nothing is told in this time, and so many looks are made. */
static void expect_looks(unsigned n, uint64_t usec, uint64_t step) {
        unsigned n_before = n_looks(), n_told = file.n_told;

        pass(usec, step);
        CHECK_INT(n_looks() - n_before, n);
        CHECK_INT(file.n_told, n_told);
}

/* ---- with inotify ---- */

/* A quiet file has no process, and wakes the service never, whatever time passes. The next change starts a process. */
static void test_quiet(void) {
        begin();
        CHECK(observer_is_notified(file.changes->observer));
        CHECK_STRING(changes_foreign(file.changes), "inotify");
        CHECK_INT(stub_worker_watch(0).n_notifiers, 1);
        expect_looks(0, 4 * SECOND, SECOND);
        for (unsigned i = 1; i <= 3; i++) {
                pass(QUIET, SECOND);
                CHECK_INT(stub_workers_alive(), 0);
                unsigned n_timers = rig.n_timers;
                rig_pass_time(DAY);
                CHECK_INT(rig.n_timers - n_timers, 0);
                CHECK_INT(file.n_told, i - 1);
                find_counter(7 + i);
                tell_event(IN_MODIFY, "");
                CHECK_INT(stub_workers_alive(), 1);
                CHECK_INT(stub_worker_watch(0).n_notifiers, 1); /* the same descriptor, so that no event is lost */
                settle();
                CHECK_INT(file.n_told, i);
        }
        end();
}

/* An event while the process is ending is not lost. */
static void test_event_while_ending(void) {
        begin();
        rig_pass_time(QUIET); /* it was told to end, and did not yet */
        CHECK_INT(stub_workers_alive(), 1);
        find_counter(8);
        tell_event(IN_MODIFY, "");
        settle();
        CHECK_INT(file.n_told, 1);
        end();
}

static void test_events_that_matter(void) {
        static const struct {
                uint32_t mask;
                const char *name;
                bool matters;
        } events[] = {
                { IN_MODIFY, "", true }, { IN_IGNORED, "", false }, { IN_CREATE, "file", true },
                { IN_CREATE, "file-wal", true }, { IN_CREATE, "file-journal", false },
                { IN_DELETE, "file-shm", false }, { IN_MOVED_TO, "files", false }, { IN_CREATE, "fil", false },
                { IN_MOVED_FROM, "file", true }, { IN_DELETE_SELF, "", true }, { IN_MOVED_TO, "link", true },
                { IN_CREATE, "link-wal", false },
        };

        begin_without_watch();
        watch_file(&file, "/folder/link", false); /* to "file", as the observer says */
        settle();
        for (size_t i = 0; i < N_ELEMENTS(events); i++) {
                unsigned n = n_looks();

                tell_event(events[i].mask, events[i].name);
                CHECK_INT(n_looks() - n, events[i].matters);
                settle();
        }
        CHECK_INT(file.n_told, 0); /* the state is always the same: locks, touch, checkpoints */
        end();
}

/* However many events there are: the loop does something else between them, and none is left in the end. */
static void test_many_events(void) {
        begin();
        for (unsigned i = 0; i < 2000; i++)
                write_event(&(struct inotify_event) { .mask = IN_MODIFY }, sizeof(struct inotify_event));
        settle();
        unsigned n = n_looks();
        CHECK(n <= 10);
        pass(SECOND, SECOND);
        CHECK_INT(n_looks(), n);
        end();
}

/* A state that cannot be known: each event counts as a change, and so does the first state that is found. */
static void test_without_state(void) {
        begin();
        stub_observed.state = (FileState) {};
        tell_event(IN_MODIFY, "");
        settle();
        CHECK_INT(file.n_told, 1);
        expect_looks(0, 2 * SECOND, SECOND);
        tell_event(IN_MODIFY, "");
        settle();
        CHECK_INT(file.n_told, 2);
        find_counter(7);
        tell_event(IN_CREATE, "file-wal");
        settle();
        CHECK_INT(file.n_told, 3);
        tell_event(IN_MODIFY, "");
        settle();
        CHECK_INT(file.n_told, 3);
        end();
}

/* Another file, a missing one, and one whose log came and went while no process had it open. */
static void test_replaced(void) {
        begin();
        stub_observed.inode = 2;
        tell_event(IN_MOVED_TO, "file");
        settle();
        CHECK_INT(file.n_told, 1);
        stub_observed = (Observed) { .name = "file", .polls = true };
        tell_event(IN_DELETE, "file");
        settle();
        CHECK_INT(file.n_told, 2);
        pass(3 * SECOND, SECOND); /* it does not come back: that is told once */
        CHECK_INT(file.n_told, 2);
        stub_observed = observed;
        stub_observed.state = (FileState) { .kind = FILE_STATE_WAL, .counter = 3 };
        pass(2 * SECOND, SECOND);
        CHECK_INT(file.n_told, 3);
        pass(QUIET, SECOND);
        CHECK_INT(stub_workers_alive(), 0);
        tell_event(IN_DELETE, "file-wal");
        settle();
        CHECK_INT(file.n_told, 4);
        tell_event(IN_MODIFY, ""); /* the process has it open now */
        settle();
        CHECK_INT(file.n_told, 4);
        end();
}

/* While a writer is at work, its commit is not visible yet. */
static void test_busy(void) {
        begin();
        stub_observed.busy = true;
        tell_event(IN_MODIFY, "");
        settle();
        unsigned n = n_looks();
        pass(MSEC, 100); /* after 0.3 ms and 0.6 ms more */
        CHECK_INT(n_looks() - n, 2);
        n = n_looks();
        pass(10 * SECOND, MSEC); /* at most 50 ms apart, and the process stays */
        CHECK(n_looks() - n >= 180 && n_looks() - n <= 220);
        find_counter(8); /* it is not busy any more */
        pass(50 * MSEC, MSEC);
        CHECK_INT(file.n_told, 1);
        expect_looks(0, SECOND, SECOND);
        end();
}

/* A writer is changing the state at the moment of the look. That is no change yet; it is one if the state stays unknown. */
static void test_changing_state(void) {
        begin();
        stub_observed.busy = true;
        stub_observed.state = (FileState) {};
        tell_event(IN_MODIFY, "");
        settle();
        pass(MSEC, 100);
        CHECK_INT(file.n_told, 0);
        find_counter(7); /* it wrote back what was there, or was a checkpoint */
        pass(50 * MSEC, MSEC);
        CHECK_INT(file.n_told, 0);
        stub_observed.busy = true;
        stub_observed.state = (FileState) {};
        tell_event(IN_MODIFY, "");
        settle();
        find_counter(8);
        pass(50 * MSEC, MSEC);
        CHECK_INT(file.n_told, 1);
        stub_observed.busy = true;
        stub_observed.state = (FileState) {};
        tell_event(IN_MODIFY, "");
        settle();
        pass(SECOND, MSEC);
        CHECK_INT(file.n_told, 2);
        find_counter(8);
        pass(SECOND, MSEC);
        end();
}

/* A change of the schema by another program is a change of any table. */
static void test_schema(void) {
        begin();
        unsigned n = file.changes->n_schemas;
        stub_observed.schema = 2;
        stub_observed.state.counter = 8;
        tell_event(IN_MODIFY, "");
        settle();
        CHECK_INT(file.changes->n_schemas, n + 1);
        CHECK(file.n_told >= 1);
        end();
}

/* ---- without inotify ---- */

/* The limits of inotify, and those of descriptors: the file is looked at each second, until there is a descriptor. */
static void test_no_descriptor(void) {
        static const int errors[] = { EMFILE, ENFILE, ENOMEM, ENOSYS };

        for (size_t i = 0; i < N_ELEMENTS(errors); i++) {
                begin_without_watch();
                inotify_error = errors[i];
                watch_file(&file, "/no-descriptor", false);
                settle();
                CHECK_INT(file.n_ready, 1);
                CHECK_STRING(changes_foreign(file.changes), "polling");
                expect_looks(60, 60 * SECOND, SECOND);
                CHECK_INT(stub_worker_watch(0).n_notifiers, 0);
                find_counter(8 + (uint32_t) i);
                pass(SECOND, SECOND);
                CHECK_INT(file.n_told, 1);
                inotify_error = 0;
                pass(SECOND, SECOND);
                CHECK_STRING(changes_foreign(file.changes), "inotify");
                CHECK_INT(stub_worker_watch(0).n_notifiers, 1);
                pass(QUIET, SECOND);
                CHECK_INT(stub_workers_alive(), 0);
                end();
        }
}

/* The observer cannot use it: a network file system, a folder that may not be read, the limit of watches. */
static void test_polls(void) {
        begin();
        stub_observed.polls = observed.polls = true;
        tell_event(IN_MODIFY, "");
        settle();
        CHECK_STRING(changes_foreign(file.changes), "polling");
        expect_looks(60, 60 * SECOND, SECOND);
        for (unsigned i = 1; i <= 3; i++) {
                find_counter(7 + i);
                pass(SECOND, SECOND);
                CHECK_INT(file.n_told, i);
        }
        stub_observed.state = (FileState) {}; /* the file cannot be read now */
        expect_looks(5, 5 * SECOND, SECOND);
        find_counter(10); /* what was done meanwhile cannot be known */
        pass(SECOND, SECOND);
        CHECK_INT(file.n_told, 4);
        stub_observed.polls = false;
        pass(SECOND + QUIET, SECOND);
        CHECK_INT(stub_workers_alive(), 0);
        end();
}

/* ---- failures ---- */

/* Each failure may have hidden a change. The next process is started after a pause, which grows, up to a minute. */
static void test_failures(void) {
        uint64_t pause = SECOND;

        begin();
        for (unsigned i = 1; i <= 10; i++) {
                stub_worker_die(0, i % 2 ? CLD_EXITED : CLD_DUMPED, i % 2 ? 1 : SIGSEGV);
                rig_pump();
                CHECK_INT(file.n_told, i);
                rig_pass_time(pause - 1);
                CHECK_INT(stub_workers_alive(), 0);
                rig_pass_time(1);
                CHECK_INT(stub_workers_alive(), 1);
                pause = MIN(2 * pause, 60 * SECOND);
        }
        settle();
        pass(QUIET, SECOND);
        CHECK_INT(file.n_told, 11); /* what the process found after the last failure is not known to be old */
        tell_event(IN_MODIFY, "");
        settle();
        CHECK_INT(file.n_told, 11);
        stub_worker_die(0, CLD_EXITED, 1); /* after a success the pause is short again */
        rig_pump();
        rig_pass_time(SECOND);
        CHECK_INT(stub_workers_alive(), 1);
        settle();
        end();
}

/* A file at which each process dies: events start no more processes than time does, and each one counts as a change. */
static void test_events_after_failure(void) {
        begin();
        stub_worker_die(0, CLD_KILLED, SIGSEGV);
        rig_pump();
        for (unsigned i = 0; i < 5; i++) {
                tell_event(IN_MODIFY, "");
                CHECK_INT(stub_workers_alive(), 0);
                CHECK_INT(file.n_told, 2 + i);
        }
        rig_pass_time(SECOND);
        CHECK_INT(stub_workers_alive(), 1);
        settle();
        end();
}

/* A process that does not answer, leaves without an answer, or says what it may not. */
static void test_hostile(void) {
        begin();
        stub_watch_silent = true;
        tell_event(IN_MODIFY, "");
        rig_pass_time(59 * SECOND);
        CHECK_INT(stub_workers_alive(), 1);
        CHECK_INT(file.n_told, 0);
        rig_pass_time(2 * SECOND);
        CHECK(file.n_told >= 1);
        stub_watch_silent = false;
        pass(2 * SECOND, SECOND);
        CHECK_INT(stub_workers_alive(), 1);

        unsigned n_told = file.n_told;
        stub_worker_die(0, CLD_EXITED, 0); /* in order, but it was not told to */
        rig_pump();
        CHECK_INT(file.n_told, n_told + 1);
        CHECK_INT(stub_workers_alive(), 0);
        pass(2 * SECOND, SECOND);

        static const MessageKind kinds[] = { MESSAGE_OBSERVED, MESSAGE_NOTIFIER, MESSAGE_PONG, MESSAGE_LEASE_WANTED };
        for (size_t i = 0; i < N_ELEMENTS(kinds); i++) {
                n_told = file.n_told;
                CHECK_INT(stub_workers_alive(), 1);
                stub_worker_say(0, &(Message) { .kind = kinds[i], .observed.name = "" });
                rig_pump();
                CHECK_INT(stub_workers_alive(), 0);
                CHECK_INT(file.n_told, n_told + 1);
                pass(10 * SECOND, SECOND / 2);
                tell_event(IN_MODIFY, "");
                settle();
        }
        end();
}

/* A watch that begins while the process fails is told that it has begun. */
static void test_failure_at_first(void) {
        begin_without_watch();
        watch_file(&file, "/failure-at-first", false);
        rig_pump();
        CHECK_INT(file.n_ready, 0);
        stub_worker_die(0, CLD_EXITED, 1);
        rig_pump();
        CHECK_INT(file.n_ready, 1);
        rig_pass_time(SECOND);
        settle();
        end();
}

/* ---- many files ---- */

static void watch_many(File files[static N_FILES]) {
        begin_without_watch();
        file = (File) {};
        for (unsigned i = 0; i < N_FILES; i++) {
                char path[32];

                (void) snprintf(path, sizeof path, "/many%u", i);
                watch_file(&files[i], path, false);
                CHECK(stub_workers_alive() <= N_PROCESSES);
        }
        rig_pump();
        CHECK_INT(stub_workers_alive(), N_PROCESSES);
}

static void end_many(File files[static N_FILES]) {
        for (unsigned i = 0; i < N_FILES; i++)
                changes_remove(&files[i].listener);
        settle();
        end();
}

/* Never more than 16 processes; the others have their turn as soon as one has answered. */
static void test_many_files(void) {
        File files[N_FILES];

        watch_many(files);
        settle();
        for (unsigned i = 0; i < N_FILES; i++)
                CHECK_INT(files[i].n_ready, 1);
        pass(QUIET, SECOND);
        CHECK_INT(stub_workers_alive(), 0);
        end_many(files);
}

/* The same without inotify, and with files that are always being written: none is left out. */
static void test_many_files_that_keep_looking(void) {
        for (unsigned busy = 0; busy < 2; busy++) {
                File files[N_FILES];

                begin_without_watch();
                stub_observed.busy = busy;
                inotify_error = busy ? 0 : EMFILE;
                observed.busy = busy;
                file = (File) {};
                for (unsigned i = 0; i < N_FILES; i++) {
                        char path[32];

                        (void) snprintf(path, sizeof path, "/keep%u", i);
                        watch_file(&files[i], path, false);
                }
                pass(3 * SECOND, 100 * MSEC);
                CHECK(stub_workers_alive() <= N_PROCESSES);
                for (unsigned i = 0; i < N_FILES; i++) {
                        CHECK_INT(files[i].n_ready, 1);
                        CHECK_INT(files[i].n_told, 0);
                }
                find_counter(8 + busy);
                pass(3 * SECOND, 100 * MSEC);
                for (unsigned i = 0; i < N_FILES; i++)
                        CHECK_INT(files[i].n_told, 1);
                stub_observed.busy = observed.busy = false;
                inotify_error = 0;
                end_many(files);
        }
}

/* ---- files that are not observed ---- */

/* With Immutable= there is no process, not even for a moment. */
static void test_immutable(void) {
        begin_without_watch();
        watch_file(&file, "/immutable", true);
        rig_pump();
        CHECK_INT(stub_workers_alive(), 0);
        CHECK_INT(file.n_ready, 1);
        CHECK_STRING(changes_foreign(file.changes), "never");
        rig_pass_time(DAY);
        CHECK_INT(file.n_told, 0);
        end();
}

/* While own commits follow each other the observer is not asked; when they pause, it is, once. */
static void test_own_commits(void) {
        uint32_t counter = 7;

        begin_without_watch();
        rig_set_mode("open", "read-write");
        rig_query(0, "open");
        rig_pass_time(SECOND / 10);
        CHECK(stub_worker_take(0));
        rig_pump();
        stub_worker_say(0, &(Message) { .kind = MESSAGE_LEASE_WANTED });
        rig_pump();
        watch_file(&file, database_find(&rig.manager->context, "open")->config->path, false);
        for (unsigned i = 0; i < 4; i++) {
                rig_pump();
                for (unsigned n = 0; n < stub_workers_alive(); n++)
                        stub_worker_hear(n);
        }
        rig_pump();
        CHECK_INT(file.n_ready, 1);
        CHECK_INT(stub_workers_alive(), 2);
        unsigned n = stub_worker_watch(1).n_looks;
        for (unsigned i = 0; i < 100; i++) {
                const FileState before = { .kind = FILE_STATE_ROLLBACK, .counter = counter };

                find_counter(++counter);
                tell_event(IN_MODIFY, "");
                stub_worker_say(0, &(Message) {
                        .kind = MESSAGE_COMMITTED,
                        .committed = { .sequence = file.changes->sequence + 1, .any = true, .before = before,
                                       .after = observed.state, .tables = { "a", 2 } },
                });
                rig_pass_time(MSEC);
        }
        CHECK_INT(stub_worker_watch(1).n_looks, n);
        CHECK_INT(file.n_told, 100);
        rig_pass_time(SECOND);
        CHECK_INT(stub_worker_watch(1).n_looks, n + 1);
        rig_pump();
        CHECK_INT(file.n_told, 100);
        end();
}

/* ---- a client's watch ---- */

static void set_idle_exit(uint64_t usec) {
        rig.manager->context.config->service.idle_exit_usec = usec;
        idle_on_reload(&rig.manager->idle);
}

/* The service stays for a watch, without a process, and nothing wakes it. When the client has left it may go. */
static void test_idle_watch(void) {
        begin_without_watch();
        file = (File) {};
        uint64_t idle_exit_usec = rig.manager->context.config->service.idle_exit_usec;
        set_idle_exit(60 * SECOND);
        for (unsigned i = 0; i < 3; i++) {
                sd_bus_message *m = rig_new_call(0, SQLIPC_DATABASE_PATH "/open", SQLIPC_DATABASE_INTERFACE, "Watch");

                CHECK(sd_bus_message_append(m, "asa{sv}", 1, "a", 0) >= 0);
                rig_send_call(0, m, true);
        }
        pass(30 * 60 * SECOND, SECOND);
        CHECK_INT(rig.n_fds, 3);
        CHECK_INT(stub_workers_count(), 0);
        unsigned n_timers = rig.n_timers;
        rig_pass_time(DAY);
        CHECK_INT(rig.n_timers - n_timers, 0);
        CHECK_INT(rig.manager->idle.state, IDLE_SERVING);
        CHECK_INT(g_hash_table_size(rig.manager->context.watches), 3);
        rig_leave(0);
        rig_pump();
        uint64_t exit_usec = 0;
        CHECK(sd_event_source_get_time(rig.manager->idle.timer, &exit_usec) >= 0);
        CHECK_INT(exit_usec, clock_usec() + 60 * SECOND);
        set_idle_exit(idle_exit_usec);
        end();
}

int main(void) {
        static const Test tests[] = {
                TEST(test_quiet), TEST(test_event_while_ending), TEST(test_events_that_matter), TEST(test_many_events),
                TEST(test_without_state), TEST(test_replaced), TEST(test_busy), TEST(test_changing_state),
                TEST(test_schema), TEST(test_no_descriptor),
                TEST(test_polls), TEST(test_failures), TEST(test_events_after_failure), TEST(test_hostile),
                TEST(test_failure_at_first), TEST(test_many_files), TEST(test_many_files_that_keep_looking),
                TEST(test_immutable), TEST(test_own_commits), TEST(test_idle_watch),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
