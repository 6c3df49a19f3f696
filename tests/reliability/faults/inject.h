/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Faults in our own calls, for test builds of supervisor, worker and library. The compiler reads this file before each of
 * their files (-include). Each call that can fail thereby becomes a site, and inject.c makes it fail on demand.
 *
 * A site is a place in the source. It is data in a section of the program, so the program itself can list all of its sites,
 * also those in code that no test reaches. tests/reliability/test_faults.py lists what is *not* a site, and why.
 *
 * Functions are grouped by how they fail. The list after each has its errors, each of which is a case. The headers come
 * first, because below, a name that is followed by a parenthesis is a call.
 */
#ifndef SQLIPC_TESTS_RELIABILITY_FAULTS_INJECT_H
#define SQLIPC_TESTS_RELIABILITY_FAULTS_INJECT_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <malloc.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each program sees what it is built with: the worker has no GLib, the supervisor no SQLite. */
#if __has_include(<glib.h>)
#include <glib.h>
#endif
#if __has_include(<seccomp.h>)
#include <seccomp.h>
#endif
#if __has_include(<sqlite3.h>)
#include <sqlite3.h>
#endif
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <systemd/sd-journal.h>

#include "tests/reliability/faults/site.h"

#define bind fault_bind /* the library has one of its own, and does not see <sys/socket.h> there */

#define FAULT_LIST(...) __VA_ARGS__
#define FAULT(name, error_list)                                                                                       \
        __extension__({                                                                                               \
                static const FaultSite fault_site_ __attribute__((section("fault_sites"), aligned(64))) = {           \
                        name, __FILE__, __func__, __LINE__, { FAULT_LIST error_list }                                 \
                };                                                                                                    \
                fault_now(&fault_site_);                                                                              \
        })

static inline int fault_set_errno(int error) {
        if (error != 0)
                errno = error;
        return error;
}

static inline size_t fault_less(size_t size) {
        return size > 1 ? size / 2 : size;
}

/* ---- How they fail ---- */

#define FAULT_NULL(f, ...) (fault_set_errno(FAULT(#f, (ENOMEM))) ? NULL : f(__VA_ARGS__))
#define FAULT_ERRNO(f, errors, ...) (fault_set_errno(FAULT(#f, errors)) ? -1 : f(__VA_ARGS__))
#define FAULT_POSITIVE(f, errors, ...) (FAULT(#f, errors) ?: f(__VA_ARGS__))
#define FAULT_NEGATIVE(f, errors, ...) (-FAULT(#f, errors) ?: f(__VA_ARGS__))
#define FAULT_SIZED(f, errors, fd, bytes, size, ...)                                                                  \
        __extension__({                                                                                               \
                int fault_ = FAULT(#f, errors);                                                                       \
                fault_ == FAULT_SHORT ? f(fd, bytes, fault_less(size), ##__VA_ARGS__)                                 \
                        : fault_set_errno(fault_) ? (ssize_t) -1                                                      \
                                                  : f(fd, bytes, size, ##__VA_ARGS__);                                \
        })

/* ---- Memory ---- */

#define malloc(...) FAULT_NULL(malloc, __VA_ARGS__)
#define calloc(...) FAULT_NULL(calloc, __VA_ARGS__)
#define realloc(...) FAULT_NULL(realloc, __VA_ARGS__)
#define reallocarray(...) FAULT_NULL(reallocarray, __VA_ARGS__)
#define strdup(...) FAULT_NULL(strdup, __VA_ARGS__)
#define strndup(...) FAULT_NULL(strndup, __VA_ARGS__)
#define open_memstream(...) FAULT_NULL(open_memstream, __VA_ARGS__)
/* Of a stream of memory, which is gone then. */
#define fclose(...) (fclose(__VA_ARGS__) != 0 || fault_set_errno(FAULT("fclose", (ENOMEM))) != 0 ? EOF : 0)
#define asprintf(...) FAULT_ERRNO(asprintf, (ENOMEM), __VA_ARGS__)
#define vasprintf(...) FAULT_ERRNO(vasprintf, (ENOMEM), __VA_ARGS__)
#define mmap(...) (fault_set_errno(FAULT("mmap", (ENOMEM))) ? MAP_FAILED : mmap(__VA_ARGS__))
#define mremap(...) (fault_set_errno(FAULT("mremap", (ENOMEM))) ? MAP_FAILED : mremap(__VA_ARGS__))
#define sqlite3_malloc(...) FAULT_NULL(sqlite3_malloc, __VA_ARGS__)
#define sqlite3_malloc64(...) FAULT_NULL(sqlite3_malloc64, __VA_ARGS__)
#define sqlite3_mprintf(...) FAULT_NULL(sqlite3_mprintf, __VA_ARGS__)
#define g_try_malloc(...) FAULT_NULL(g_try_malloc, __VA_ARGS__)
#define g_try_malloc_n(...) FAULT_NULL(g_try_malloc_n, __VA_ARGS__)
#define g_try_realloc(...) FAULT_NULL(g_try_realloc, __VA_ARGS__)

/* As when memory ends while it grows: what was written is gone. */
#define sqlite3_str_finish(string)                                                                                    \
        __extension__({                                                                                               \
                char *finished_ = sqlite3_str_finish(string);                                                         \
                if (FAULT("sqlite3_str_finish", (ENOMEM))) {                                                          \
                        sqlite3_free(finished_);                                                                      \
                        finished_ = NULL;                                                                             \
                }                                                                                                     \
                finished_;                                                                                            \
        })

/* ---- Descriptors ---- */

#define pipe2(...) FAULT_ERRNO(pipe2, (EMFILE), __VA_ARGS__)
#define socketpair(...) FAULT_ERRNO(socketpair, (EMFILE, ENOBUFS), __VA_ARGS__)
#define eventfd(...) FAULT_ERRNO(eventfd, (EMFILE), __VA_ARGS__)
#define timerfd_create(...) FAULT_ERRNO(timerfd_create, (EMFILE), __VA_ARGS__)
#define timerfd_settime(...) FAULT_ERRNO(timerfd_settime, (ENOMEM), __VA_ARGS__)
#define epoll_create1(...) FAULT_ERRNO(epoll_create1, (EMFILE), __VA_ARGS__)
#define memfd_create(...) FAULT_ERRNO(memfd_create, (EMFILE, ENOMEM), __VA_ARGS__)
#define open(...) FAULT_ERRNO(open, (EMFILE, EACCES, ENOENT), __VA_ARGS__)
#define openat(...) FAULT_ERRNO(openat, (EMFILE, EACCES, ENOENT), __VA_ARGS__)
#define inotify_init1(...) FAULT_ERRNO(inotify_init1, (EMFILE, ENOMEM), __VA_ARGS__)
#define inotify_add_watch(...) FAULT_ERRNO(inotify_add_watch, (ENOMEM, ENOSPC), __VA_ARGS__)
#define fcntl(...) FAULT_ERRNO(fcntl, (EMFILE, EPERM), __VA_ARGS__)

/* ---- Reading, writing, waiting ---- */

#define read(...) FAULT_SIZED(read, (FAULT_SHORT, EINTR, EIO), __VA_ARGS__)
#define readv(...) FAULT_ERRNO(readv, (EINTR, EIO), __VA_ARGS__)
#define pread(...) FAULT_SIZED(pread, (FAULT_SHORT, EINTR, EIO), __VA_ARGS__)
#define pwrite(...) FAULT_SIZED(pwrite, (FAULT_SHORT, EINTR, ENOMEM), __VA_ARGS__)
#define preadv2(...) FAULT_ERRNO(preadv2, (EINTR, EIO, EOPNOTSUPP), __VA_ARGS__)
#define vmsplice(...) FAULT_ERRNO(vmsplice, (EINTR, ENOMEM, EPERM), __VA_ARGS__)
#define write(...) FAULT_SIZED(write, (FAULT_SHORT, EINTR, ENOMEM), __VA_ARGS__)
#define recv(...) FAULT_SIZED(recv, (FAULT_SHORT, EINTR, ECONNRESET, ENOMEM), __VA_ARGS__)
#define send(...) FAULT_SIZED(send, (FAULT_SHORT, EINTR, EPIPE, ENOBUFS), __VA_ARGS__)
#define writev(...) FAULT_ERRNO(writev, (EINTR, ENOMEM), __VA_ARGS__)
#define recvmsg(...) FAULT_ERRNO(recvmsg, (EINTR, ECONNRESET, ENOMEM), __VA_ARGS__)
#define sendmsg(...) FAULT_ERRNO(sendmsg, (EINTR, EAGAIN, EPIPE, ENOBUFS), __VA_ARGS__)
#define epoll_ctl(...) FAULT_ERRNO(epoll_ctl, (ENOMEM, ENOSPC), __VA_ARGS__)
#define epoll_wait(...) FAULT_ERRNO(epoll_wait, (EINTR), __VA_ARGS__)
#define ioctl(...) FAULT_ERRNO(ioctl, (EINVAL), __VA_ARGS__)
#define poll(...) FAULT_ERRNO(poll, (EINTR, ENOMEM), __VA_ARGS__)
#define ppoll(...) FAULT_ERRNO(ppoll, (EINTR, ENOMEM), __VA_ARGS__)

/* ---- Processes, files, the rest of the kernel ---- */

#define posix_spawn(...) FAULT_POSITIVE(posix_spawn, (EAGAIN, ENOMEM, ENOENT), __VA_ARGS__)
#define posix_spawn_file_actions_init(...) FAULT_POSITIVE(posix_spawn_file_actions_init, (ENOMEM), __VA_ARGS__)
#define posix_spawn_file_actions_adddup2(...) FAULT_POSITIVE(posix_spawn_file_actions_adddup2, (ENOMEM), __VA_ARGS__)
#define posix_spawnattr_init(...) FAULT_POSITIVE(posix_spawnattr_init, (ENOMEM), __VA_ARGS__)
#define fstat(...) FAULT_ERRNO(fstat, (EIO), __VA_ARGS__)
#define lstat(...) FAULT_ERRNO(lstat, (EIO), __VA_ARGS__)
#define fstatat(...) FAULT_ERRNO(fstatat, (EIO, ENOMEM), __VA_ARGS__)
#define fstatfs(...) FAULT_ERRNO(fstatfs, (EIO), __VA_ARGS__)
#define readlinkat(...) FAULT_ERRNO(readlinkat, (EIO, ENOMEM), __VA_ARGS__)
#define fchdir(...) FAULT_ERRNO(fchdir, (EACCES), __VA_ARGS__)
#define faccessat(...) FAULT_ERRNO(faccessat, (EIO, EACCES), __VA_ARGS__)
#define unlinkat(...) FAULT_ERRNO(unlinkat, (EIO, EACCES), __VA_ARGS__)
#define ftruncate(...) FAULT_ERRNO(ftruncate, (EFBIG), __VA_ARGS__)
#define fallocate(...) FAULT_ERRNO(fallocate, (ENOSPC, EINTR), __VA_ARGS__)
#define posix_fallocate(...) FAULT_POSITIVE(posix_fallocate, (ENOSPC), __VA_ARGS__)
#define lseek(...) FAULT_ERRNO(lseek, (EINVAL), __VA_ARGS__)
#define madvise(...) FAULT_ERRNO(madvise, (EAGAIN), __VA_ARGS__)
#define prctl(...) FAULT_ERRNO(prctl, (EPERM), __VA_ARGS__)
#define setrlimit(...) FAULT_ERRNO(setrlimit, (EPERM), __VA_ARGS__)
#define getrlimit(...) FAULT_ERRNO(getrlimit, (EPERM), __VA_ARGS__)
#define setsockopt(...) FAULT_ERRNO(setsockopt, (ENOMEM), __VA_ARGS__)
#define getsockopt(...) FAULT_ERRNO(getsockopt, (ENOBUFS), __VA_ARGS__)
#define getrandom(...) FAULT_ERRNO(getrandom, (EINTR, ENOSYS), __VA_ARGS__)
#define sched_getaffinity(...) FAULT_ERRNO(sched_getaffinity, (EINVAL), __VA_ARGS__)
#define sigprocmask(...) FAULT_ERRNO(sigprocmask, (EINVAL), __VA_ARGS__)
#define sigaction(...) FAULT_ERRNO(sigaction, (EINVAL), __VA_ARGS__)
#define getpwnam(...) (fault_set_errno(FAULT("getpwnam", (EIO, EMFILE))) ? NULL : getpwnam(__VA_ARGS__))
#define getgrnam(...) (fault_set_errno(FAULT("getgrnam", (EIO, EMFILE))) ? NULL : getgrnam(__VA_ARGS__))
#define seccomp_init(...) FAULT_NULL(seccomp_init, __VA_ARGS__)
#define seccomp_rule_add_array(...) FAULT_NEGATIVE(seccomp_rule_add_array, (ENOMEM), __VA_ARGS__)
#define seccomp_load(...) FAULT_NEGATIVE(seccomp_load, (EINVAL), __VA_ARGS__)

/* ---- GLib's that report ---- */

#define FAULT_G(error, f)                                                                                             \
        __extension__({                                                                                               \
                int fault_ = FAULT(f, (EMFILE, EIO));                                                                 \
                if (fault_)                                                                                           \
                        g_set_error(error, G_FILE_ERROR, (int) g_file_error_from_errno(fault_), "a fault: %s", f);    \
                fault_;                                                                                               \
        })
#define g_file_get_contents(path, text, size, error)                                                                  \
        (FAULT_G(error, "g_file_get_contents") ? FALSE : g_file_get_contents(path, text, size, error))
#define g_dir_open(path, flags, error) (FAULT_G(error, "g_dir_open") ? NULL : g_dir_open(path, flags, error))

/* ---- libsystemd: the bus ---- */

#define sd_bus_new(...) FAULT_NEGATIVE(sd_bus_new, (ENOMEM), __VA_ARGS__)
#define sd_bus_start(...) FAULT_NEGATIVE(sd_bus_start, (ENOMEM, EMFILE), __VA_ARGS__)
#define sd_bus_set_address(...) FAULT_NEGATIVE(sd_bus_set_address, (ENOMEM), __VA_ARGS__)
#define sd_bus_set_bus_client(...) FAULT_NEGATIVE(sd_bus_set_bus_client, (EPERM), __VA_ARGS__)
#define sd_bus_negotiate_fds(...) FAULT_NEGATIVE(sd_bus_negotiate_fds, (EPERM), __VA_ARGS__)
#define sd_bus_open_system(...) FAULT_NEGATIVE(sd_bus_open_system, (EMFILE), __VA_ARGS__)
#define sd_bus_open_user(...) FAULT_NEGATIVE(sd_bus_open_user, (EMFILE), __VA_ARGS__)
#define sd_bus_open_system_with_description(...) FAULT_NEGATIVE(sd_bus_open_system_with_description, (EMFILE), __VA_ARGS__)
#define sd_bus_open_user_with_description(...) FAULT_NEGATIVE(sd_bus_open_user_with_description, (EMFILE), __VA_ARGS__)
#define sd_bus_attach_event(...) FAULT_NEGATIVE(sd_bus_attach_event, (ENOMEM), __VA_ARGS__)
#define sd_bus_request_name(...) FAULT_NEGATIVE(sd_bus_request_name, (ENOMEM), __VA_ARGS__)
#define sd_bus_request_name_async(...) FAULT_NEGATIVE(sd_bus_request_name_async, (ENOMEM), __VA_ARGS__)
#define sd_bus_release_name_async(...) FAULT_NEGATIVE(sd_bus_release_name_async, (ENOMEM), __VA_ARGS__)
#define sd_bus_add_match(...) FAULT_NEGATIVE(sd_bus_add_match, (ENOMEM), __VA_ARGS__)
#define sd_bus_match_signal(...) FAULT_NEGATIVE(sd_bus_match_signal, (ENOMEM), __VA_ARGS__)
#define sd_bus_add_filter(...) FAULT_NEGATIVE(sd_bus_add_filter, (ENOMEM), __VA_ARGS__)
#define sd_bus_add_object_vtable(...) FAULT_NEGATIVE(sd_bus_add_object_vtable, (ENOMEM), __VA_ARGS__)
#define sd_bus_add_fallback_vtable(...) FAULT_NEGATIVE(sd_bus_add_fallback_vtable, (ENOMEM), __VA_ARGS__)
#define sd_bus_add_object(...) FAULT_NEGATIVE(sd_bus_add_object, (ENOMEM), __VA_ARGS__)
#define sd_bus_add_node_enumerator(...) FAULT_NEGATIVE(sd_bus_add_node_enumerator, (ENOMEM), __VA_ARGS__)
#define sd_bus_call(...) FAULT_NEGATIVE(sd_bus_call, (ENOMEM, ETIMEDOUT), __VA_ARGS__)
#define sd_bus_call_async(...) FAULT_NEGATIVE(sd_bus_call_async, (ENOMEM, ENOBUFS), __VA_ARGS__)
#define sd_bus_send(...) FAULT_NEGATIVE(sd_bus_send, (ENOMEM, ENOBUFS), __VA_ARGS__)
#define sd_bus_process(...) FAULT_NEGATIVE(sd_bus_process, (ENOMEM), __VA_ARGS__)
#define sd_bus_get_address(...) FAULT_NEGATIVE(sd_bus_get_address, (ENODATA), __VA_ARGS__)
#define sd_bus_get_events(...) FAULT_NEGATIVE(sd_bus_get_events, (ENOTCONN), __VA_ARGS__)
#define sd_bus_get_timeout(...) FAULT_NEGATIVE(sd_bus_get_timeout, (ENOTCONN), __VA_ARGS__)
#define sd_bus_get_n_queued_write(...) FAULT_NEGATIVE(sd_bus_get_n_queued_write, (ENOTCONN), __VA_ARGS__)
#define sd_bus_enqueue_for_read(...) FAULT_NEGATIVE(sd_bus_enqueue_for_read, (ENOMEM), __VA_ARGS__)
#define sd_bus_path_encode(...) FAULT_NEGATIVE(sd_bus_path_encode, (ENOMEM), __VA_ARGS__)
#define sd_bus_path_decode(...) FAULT_NEGATIVE(sd_bus_path_decode, (ENOMEM), __VA_ARGS__)
#define sd_bus_reply_method_return(...) FAULT_NEGATIVE(sd_bus_reply_method_return, (ENOMEM, ENOBUFS), __VA_ARGS__)
#define sd_bus_reply_method_errorf(...) FAULT_NEGATIVE(sd_bus_reply_method_errorf, (ENOMEM, ENOBUFS), __VA_ARGS__)
#define sd_bus_slot_set_floating(...) FAULT_NEGATIVE(sd_bus_slot_set_floating, (ENOMEM), __VA_ARGS__)

/* These set an error and return its number, or that of "no memory". */
#define FAULT_BUS_ERROR(f, error, ...)                                                                                \
        __extension__({                                                                                               \
                sd_bus_error *fault_error_ = (error);                                                                 \
                FAULT(#f, (ENOMEM)) ? sd_bus_error_set_const(fault_error_, SD_BUS_ERROR_NO_MEMORY, "Out of memory")   \
                                    : f(fault_error_, __VA_ARGS__);                                                   \
        })
#define sd_bus_error_set(...) FAULT_BUS_ERROR(sd_bus_error_set, __VA_ARGS__)
#define sd_bus_error_setf(...) FAULT_BUS_ERROR(sd_bus_error_setf, __VA_ARGS__)

/* ---- libsystemd: messages ---- */

#define sd_bus_message_new_method_call(...) FAULT_NEGATIVE(sd_bus_message_new_method_call, (ENOMEM), __VA_ARGS__)
#define sd_bus_message_new_method_return(...) FAULT_NEGATIVE(sd_bus_message_new_method_return, (ENOMEM), __VA_ARGS__)
#define sd_bus_message_new_method_errorf(...) FAULT_NEGATIVE(sd_bus_message_new_method_errorf, (ENOMEM), __VA_ARGS__)
#define sd_bus_message_new_method_error(...) FAULT_NEGATIVE(sd_bus_message_new_method_error, (ENOMEM), __VA_ARGS__)
#define sd_bus_message_new_signal(...) FAULT_NEGATIVE(sd_bus_message_new_signal, (ENOMEM), __VA_ARGS__)
#define sd_bus_message_append(...) FAULT_NEGATIVE(sd_bus_message_append, (ENOMEM, EMFILE), __VA_ARGS__)
#define sd_bus_message_append_array(...) FAULT_NEGATIVE(sd_bus_message_append_array, (ENOMEM), __VA_ARGS__)
#define sd_bus_message_append_basic(...) FAULT_NEGATIVE(sd_bus_message_append_basic, (ENOMEM), __VA_ARGS__)
#define sd_bus_message_append_string_space(...) FAULT_NEGATIVE(sd_bus_message_append_string_space, (ENOMEM), __VA_ARGS__)
#define sd_bus_message_append_strv(...) FAULT_NEGATIVE(sd_bus_message_append_strv, (ENOMEM), __VA_ARGS__)
#define sd_bus_message_open_container(...) FAULT_NEGATIVE(sd_bus_message_open_container, (ENOMEM), __VA_ARGS__)
#define sd_bus_message_close_container(...) FAULT_NEGATIVE(sd_bus_message_close_container, (ENOMEM), __VA_ARGS__)
#define sd_bus_message_seal(...) FAULT_NEGATIVE(sd_bus_message_seal, (ENOMEM), __VA_ARGS__)
#define sd_bus_message_copy(...) FAULT_NEGATIVE(sd_bus_message_copy, (ENOMEM), __VA_ARGS__)
#define sd_bus_message_rewind(...) FAULT_NEGATIVE(sd_bus_message_rewind, (EBADMSG), __VA_ARGS__)
#define sd_bus_message_read(...) FAULT_NEGATIVE(sd_bus_message_read, (ENOMEM), __VA_ARGS__)
#define sd_bus_message_read_array(...) FAULT_NEGATIVE(sd_bus_message_read_array, (ENOMEM), __VA_ARGS__)
#define sd_bus_message_read_basic(...) FAULT_NEGATIVE(sd_bus_message_read_basic, (EBADMSG), __VA_ARGS__)
#define sd_bus_message_read_strv(...) FAULT_NEGATIVE(sd_bus_message_read_strv, (ENOMEM), __VA_ARGS__)
#define sd_bus_message_skip(...) FAULT_NEGATIVE(sd_bus_message_skip, (ENOMEM), __VA_ARGS__)
#define sd_bus_message_peek_type(...) FAULT_NEGATIVE(sd_bus_message_peek_type, (EBADMSG), __VA_ARGS__)
#define sd_bus_message_at_end(...) FAULT_NEGATIVE(sd_bus_message_at_end, (EBADMSG), __VA_ARGS__)
#define sd_bus_message_enter_container(...) FAULT_NEGATIVE(sd_bus_message_enter_container, (ENOMEM), __VA_ARGS__)
#define sd_bus_message_exit_container(...) FAULT_NEGATIVE(sd_bus_message_exit_container, (EBADMSG), __VA_ARGS__)
#define sd_bus_message_set_destination(...) FAULT_NEGATIVE(sd_bus_message_set_destination, (ENOMEM), __VA_ARGS__)
#define sd_bus_message_set_expect_reply(...) FAULT_NEGATIVE(sd_bus_message_set_expect_reply, (EPERM), __VA_ARGS__)
#define sd_bus_message_set_sender(...) FAULT_NEGATIVE(sd_bus_message_set_sender, (ENOMEM), __VA_ARGS__)

/* ---- libsystemd: the loop ---- */

#define sd_event_new(...) FAULT_NEGATIVE(sd_event_new, (EMFILE), __VA_ARGS__)
#define sd_event_add_io(...) FAULT_NEGATIVE(sd_event_add_io, (ENOMEM, ENOSPC), __VA_ARGS__)
#define sd_event_add_time(...) FAULT_NEGATIVE(sd_event_add_time, (ENOMEM), __VA_ARGS__)
#define sd_event_add_time_relative(...) FAULT_NEGATIVE(sd_event_add_time_relative, (ENOMEM), __VA_ARGS__)
#define sd_event_add_child(...) FAULT_NEGATIVE(sd_event_add_child, (ENOMEM, EMFILE), __VA_ARGS__)
#define sd_event_add_signal(...) FAULT_NEGATIVE(sd_event_add_signal, (EMFILE), __VA_ARGS__)
#define sd_event_add_defer(...) FAULT_NEGATIVE(sd_event_add_defer, (ENOMEM), __VA_ARGS__)
#define sd_event_source_set_prepare(...) FAULT_NEGATIVE(sd_event_source_set_prepare, (ENOMEM), __VA_ARGS__)
#define sd_event_source_set_priority(...) FAULT_NEGATIVE(sd_event_source_set_priority, (ENOMEM), __VA_ARGS__)
#define sd_event_source_set_io_events(...) FAULT_NEGATIVE(sd_event_source_set_io_events, (ENOMEM), __VA_ARGS__)
#define sd_event_set_watchdog(...) FAULT_NEGATIVE(sd_event_set_watchdog, (EMFILE), __VA_ARGS__)
#define sd_event_loop(...) FAULT_NEGATIVE(sd_event_loop, (ENOMEM), __VA_ARGS__)
#define sd_event_run(...) FAULT_NEGATIVE(sd_event_run, (ENOMEM), __VA_ARGS__)

/* A descriptor that is watched again costs the kernel memory; a timer, or to look no longer, costs nothing. */
#define sd_event_source_set_enabled(source, enabled)                                                                  \
        __extension__({                                                                                               \
                sd_event_source *source_ = (source);                                                                  \
                int enabled_ = (enabled);                                                                             \
                enabled_ != SD_EVENT_OFF &&                                                                           \
                        (sd_event_source_get_io_fd(source_) >= 0 ||                                                   \
                         sd_event_source_get_child_pid(source_, &(pid_t) { 0 }) >= 0)                                 \
                        ? FAULT_NEGATIVE(sd_event_source_set_enabled, (ENOMEM), source_, enabled_)                    \
                        : sd_event_source_set_enabled(source_, enabled_);                                             \
        })

#define sd_notify(...) FAULT_NEGATIVE(sd_notify, (ENOBUFS), __VA_ARGS__)
#define sd_notifyf(...) FAULT_NEGATIVE(sd_notifyf, (ENOBUFS), __VA_ARGS__)
#define sd_journal_sendv(...) FAULT_NEGATIVE(sd_journal_sendv, (ENOBUFS), __VA_ARGS__)

#endif
