# SPDX-License-Identifier: LGPL-2.1-or-later
"""The library functions that our programs call and that are not sites of faults/inject.h, each with the reason.

A name may end in *. "64" in a name is the C library's (pread64, preadv64v2) if inject.h has the name without it.
"""
import pathlib
import re
import subprocess

INJECT = pathlib.Path(__file__).parent / "faults/inject.h"

PURE = "reads or changes memory that is there"
GIVES_BACK = "releases a resource; its errors leave nothing to do"
ABORTS = "ends the process if there is no memory; test_faults.py has how much a client may make it ask for"
SQLITE = "fails by SQLite's own means: test_sqlite_faults.py"
SERVERS = "only for databases of servers: tests/unit/test-worker-process.c and test-worker-sandbox.c"
ZONE = "fails without memory only, and then the run does, as of any other shortage of a worker"
IGNORED = "its failure is ignored on purpose, or it cannot fail with these arguments"

NO_SITES = {
    PURE: """_ITM_* __* _exit abort exit getenv secure_getenv geteuid getpid getpriority fmax fmin log2 mem* qsort
        stpcpy str* sigaddset sigemptyset siglongjmp snprintf vsnprintf sysconf sched_yield sd_bus_can_send
        sd_bus_error_set_const sd_bus_get_current_message sd_bus_get_fd sd_bus_get_n_queued_read sd_bus_is_*
        sd_bus_message_get_* sd_bus_message_has_signature sd_bus_message_is_* sd_bus_message_ref
        sd_bus_message_set_allow_interactive_authorization
        sd_bus_message_set_auto_start sd_bus_object_vtable_format sd_bus_ref sd_event_exit sd_event_source_get_*
        sd_event_source_set_floating sd_event_source_set_time sd_event_source_set_time_relative
        sd_event_source_set_userdata sd_bus_slot_get_bus sd_bus_slot_set_destroy_callback posix_spawnattr_set*
        clock_gettime stdout stderr
        explicit_bzero gnu_dev_makedev tolower toupper""",
    GIVES_BACK: """free close closedir munmap posix_spawn_file_actions_destroy posix_spawnattr_destroy seccomp_release
        sd_bus_close_unref sd_bus_flush_close_unref sd_bus_slot_unref sd_bus_unref sd_bus_message_unref
        sd_event_source_disable_unref sd_event_source_unref sd_event_unref shutdown""",
    ABORTS: "g_*",
    SQLITE: "sqlite3_*",
    SERVERS: "connect socket seccomp_rule_add",
    IGNORED: """access alarm clock_getcpuclockid dlopen fgets fopen kill malloc_trim mallopt nanosleep printf fprintf
        puts putc putchar fwrite fflush raise realpath setpriority setvbuf setitimer signal tzset unlink waitpid""",
    ZONE: "putenv setenv unsetenv",
}
# Of the sanitizers, of inject.c, and of the client that has the library (library-client-faults.c).
TEST_BUILD = "__asan_* __ubsan_* __sanitizer_* __lsan_* asprintf opendir readdir sd_bus_wait"


def injected():
    return set(re.findall(r"^#define (\w+)\(", INJECT.read_text(), re.MULTILINE))


def imports(program):
    listing = subprocess.run(["nm", "-D", "--undefined-only", program], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in listing.splitlines()}


def missing(programs):
    """Names that some program imports, that are no sites, and for which this file has no reason."""
    known = [name for names in (*NO_SITES.values(), TEST_BUILD) for name in names.split()]
    exact = injected() | {name for name in known if not name.endswith("*")}
    beginnings = tuple(name[:-1] for name in known if name.endswith("*"))
    names = set().union(*map(imports, programs))
    return sorted(n for n in names if not {n, re.sub("64v?", "", n)} & exact and not n.startswith(beginnings))
