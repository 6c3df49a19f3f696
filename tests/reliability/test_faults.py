#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every call of ours that can fail does so once, in supervisor and worker, while clients use everything that there is.

A site is a call in the source (faults/inject.h), a case a site with one of its errors. Scenarios (fault_runs.py,
fault_channels.py, fault_writes.py, fault_watches.py, fault_administration.py) are run once without faults to see which of
them reach a site; then each case has a live service that is armed, a scenario, the results of its client, a new query, and
the four counters of settled.py.
Several services are tried side by side, since most of a case is waiting. A site that no scenario reaches fails the test,
unless UNREACHED has it with the reason.

Of the cases of start and end some are tried (--seed=), as many as sizes.py says; of the others all, under sanitizers a
tenth; of those of the library all.

Sizes that a client decides, in the supervisor (a worker has no GLib: whatever it allocates can fail, and is a site):

    SQL of a statement, a run      1,000,000 bytes  try_bytes(): OutOfMemory
    parameters of a run            1 MiB            malloc() and realloc() (parameters.c): OutOfMemory
    input that a channel keeps     4 MiB            try_bytes(): the channel closes
    rows in a reply                max-bytes        libsystemd's message: an error, never an abort
    calls that are held            as they came     references to libsystemd's messages
    names of peers and objects     64, 255 bytes    g_strdup(): of a database only if it may be one
    sentences of refusals          a few KiB        g_strdup_vprintf(): a client's words are cut at 50 or 100 bytes
    SQL in the log                 an excerpt       g_strndup(): SQL_EXCERPT_LENGTH characters
    groups of a peer               65,536 ids       g_memdup2(): the kernel's list; an administrator's, not a client's
    objects, queues, hash tables   one entry each   g_new(): as many as limits.conf lets a user have

These calls are no sites:

    g_malloc(), g_strdup() and the like     end the process by design; no client can make one take more than 64 KiB
    free(), close(), munmap(), ..._unref()  their errors leave nothing to do
    sd_event_source_set_time() and others   of a timer: change only memory that exists
    waitpid()                               of a child that was killed; there is no handler that could interrupt it
    sqlite3_...() except its allocators   fail by SQLite's own means, see test_sqlite_faults.py

    tests/reliability/test_faults.py                        one scenario for each case
    tests/reliability/test_faults.py --every                each case in each scenario, at its first and its last call
    tests/reliability/test_faults.py --loop=5000            so many in each program, and what they cost in memory
    tests/reliability/test_faults.py --list                 all sites, with the scenarios that reach them
    tests/reliability/test_faults.py --seed=N --only=TEXT   another choice of scenarios; sites whose description has TEXT
"""
import argparse
import concurrent.futures
import contextlib
import errno
import functools
import itertools
import os
import random
import sqlite3
import subprocess
import sys
import tempfile

import fault_imports
import settled
from fault_lives import reach_lives, try_lives
from fault_stage import ENDLESS, TRACKS, USUAL, refused, tracks, until_still
from fault_trial import PROGRAMS, SUPERVISOR, WORKER, Trial, reach_all, side_by_side, try_share
from faults import describe, sites_of
from fake_polkit import FakePolkit
from harness import CHINOOK, SANITIZED, UID_A, Service, fds, main, wait_for
from sizes import size
from tap import at_most, cases, diagnose, equal, test, true

CLIENT = PROGRAMS / "library-client-faults"
SHARE = 0.1 if SANITIZED else 1.0
LIFE_SHARE = size("share of faults at start and end")
LEAKED = {"database_new"}  # functions whose fault once leaked: sanitizers see that, but only some cases run with them
WARM = 50  # cases until memory is looked at
GROWTH_MAX = 4 << 20  # of one service, whatever --loop=


def read_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--loop", type=int, default=0)
    arguments, rest = parser.parse_known_args()
    sys.argv[1:] = rest
    return arguments


ARGUMENTS = read_arguments()

# The match compared arg2, so the body was parsed, and reading a string of it takes no memory: sd-bus returns a pointer to
# it. Nothing else tells which client left.
CANNOT_FAIL = [
    ("sd_bus_message_read", "on_name_vanished"),
    ("epoll_ctl", "forget_channel"),  # EPOLL_CTL_DEL of a watched descriptor takes nothing
    ("epoll_ctl", "unwatch"),
]

# Sites of which no scenario makes use: (call, function): why.
TIMER = "its source is a timer or a turn, which costs nothing to enable"
OTHER_SIDE = "the other side decodes that"
MAKES_MEMORY = "only the supervisor makes memory"
MAKES_FILE = "only the library makes files of SQL and parameters"
READS_FILE = "only the supervisor and a worker read files of SQL and parameters"
NO_NUMBERS = "commits have no number only if the service had no memory for the page of them when it started"
TABLES = "no job asks for the tables of its statement: tests/unit/test-worker-sqlite-engine.c does"
SERVERS = "no database here is that of a server: tests/unit/test-worker-process.c, tests/bus/test_engine.py"
UNREACHED = {
    ("read", "read_pipe"): SERVERS,
    ("pipe2", "give_pipe"): SERVERS,
    ("open", "read_file"): SERVERS,
    ("fstat", "read_file"): SERVERS,
    ("read", "read_file"): SERVERS,
    ("sd_event_add_time", "start_engine"): SERVERS,
    ("sd_event_add_io", "start_engine"): SERVERS,
    ("setsockopt", "engine_report_expect"): SERVERS,
    ("write", "hear"): SERVERS,
    ("write", "wake_writer"): "called only if a client sleeps sooner than the worker reads: tests/bus/test_channel.py",
    ("epoll_ctl", "await"): SERVERS,
    ("poll", "job_is_answered"): SERVERS,
    ("fclose", "late_libraries_load"): SERVERS,
    ("seccomp_rule_add_array", "add_network"): SERVERS,
    ("sd_event_source_set_enabled", "on_turn"): TIMER,
    ("sd_event_source_set_enabled", "arm"): TIMER,
    ("sd_event_source_set_enabled", "await_turn"): TIMER,
    ("sd_event_source_set_enabled", "send_soon"): TIMER,
    ("sd_event_source_set_enabled", "group_staff"): TIMER,
    ("sd_event_source_set_enabled", "on_prepare"): TIMER,
    ("sd_event_source_set_enabled", "start_rest"): TIMER,
    ("sd_event_source_set_enabled", "start_slow_rest"): TIMER,
    ("sd_event_source_set_enabled", "set"): TIMER,
    ("sd_event_source_set_enabled", "set_timer"): TIMER,
    ("sd_event_source_set_enabled", "watch_idle"): TIMER,
    ("sd_event_source_set_enabled", "watch"): TIMER,
    ("sd_event_source_set_enabled", "on_stop_timeout"): TIMER,
    ("sd_event_source_set_enabled", "ask_later"): TIMER,
    ("sd_event_source_set_enabled", "peer_serve_read_ahead"): TIMER,
    ("sd_event_source_set_enabled", "take_turn"): TIMER,
    ("sd_event_source_set_enabled", "group_jobs_send"):
        "the socket to the workers holds all jobs that the limits here allow",
    ("ioctl", "pipe_has_bytes"): "asked of a user with all statements: tests/unit/test-released.c",
    ("sd_event_add_time_relative", "ask_later"): "what is done when a question could not be sent",
    ("sd_bus_reply_method_errorf", "bus_error_reply"): "what is said when the first answer failed, too",
    ("sd_bus_reply_method_errorf", "bus_error_reply_refusal"): "the bus daemon passes no handle without its descriptor on",
    ("sd_bus_message_append", "reply_list"): "4,096 entries make a list end early",
    ("sd_bus_message_skip", "parse_credential"): "the bus daemon tells no more than is read",
    ("realloc", "grow"): OTHER_SIDE,
    ("sd_bus_enqueue_for_read", "put_back"): "whether a call is put aside depends on time: tests/unit/test-pacing.c",
    ("faccessat", "access_file"): "SQLite asks with access() for the folder of temporary files only",
    ("poll", "channel_has_unread"): "called only if a channel that moves has bytes on both sides",
    ("pread", "channel_memory_has_requests"): "called only if a worker is stuck, or StatementIdleSec= has passed",
    ("send", "wake"): "called only if a reader sleeps sooner than the supervisor writes: tests/bus/test_channel.py",
    ("open", "open_named"): "called only on a file system that has no O_TMPFILE",
    ("getrandom", "open_named"): "called only on a file system that has no O_TMPFILE",
    ("sd_bus_message_read_basic", "measure"): "a call with a descriptor has to wait: tests/bus/test_polkit.py",
    ("memfd_create", "call_arguments_new"): MAKES_FILE,
    ("posix_fallocate", "allocate"): MAKES_FILE,
    ("mmap", "call_arguments_new"): MAKES_FILE,
    ("fcntl", "call_arguments_seal"): MAKES_FILE,
    ("lseek", "call_arguments_map"): "only a worker maps a file of SQL and parameters, which is a case",
    ("mmap", "call_arguments_map"): "only a worker maps a file of SQL and parameters, which is a case",
    ("memfd_create", "channel_memory_new"): MAKES_MEMORY,
    ("ftruncate", "set_up"): MAKES_MEMORY,
    ("fcntl", "set_up"): MAKES_MEMORY,
    ("pwrite", "set_up"): MAKES_MEMORY,
    ("reallocarray", "engine_tables_add"): TABLES,
    ("strdup", "engine_tables_add"): TABLES,
    ("poll", "report_send"): "256 KiB of reports wait only for a supervisor that is stopped",
    ("sd_bus_reply_method_return", "reply_transaction_ended"): NO_NUMBERS,
    ("sd_event_source_set_enabled", "lease_new"): TIMER,
    ("sd_event_source_set_enabled", "pass_on"): TIMER,
    ("sd_event_source_set_enabled", "make_due"): TIMER,
    ("sd_event_source_set_enabled", "linger"): TIMER,
    ("sd_event_source_set_enabled", "changes_add"): TIMER,
    ("sd_event_source_set_enabled", "changes_on_known"): TIMER,
}


# The same of the library: (call, function): why.
OLD_SERVICE = "an older service has to answer: tests/unit/test-library-cursor.c"
WITH_MEMORY = "called only if channels have no memory: tests/unit/test-library-channel.c"
LIBRARY_UNREACHED = {
    ("sd_bus_message_append", "call_file_append_sql"): "the client loads no rows: tests/unit/test-library-load.c",
    ("fcntl", "call_arguments_check"): READS_FILE,
    ("fstatfs", "call_arguments_check"): READS_FILE,
    ("fstat", "call_arguments_check"): READS_FILE,
    ("mmap", "call_arguments_map"): READS_FILE,
    ("lseek", "call_arguments_map"): READS_FILE,
    ("sd_bus_message_rewind", "query_call_without_describe"): OLD_SERVICE,
    ("sd_bus_message_copy", "query_call_without_describe"): OLD_SERVICE,
    ("memfd_create", "channel_memory_new"): MAKES_MEMORY,
    ("ftruncate", "set_up"): MAKES_MEMORY,
    ("fcntl", "set_up"): MAKES_MEMORY,
    ("pwrite", "set_up"): MAKES_MEMORY,
    ("pread", "channel_memory_has_requests"): "only the supervisor looks without mapping the memory",
    ("sd_bus_message_new_method_errorf", "new_refusal"): "the bus has to refuse a connection: tests/bus/test_library.py",
    ("sd_bus_message_seal", "new_refusal"): "the bus has to refuse a connection: tests/bus/test_library.py",
    ("calloc", "start_not_kept"): "the service has to refuse a statement: tests/unit/test-library-rows.c",
    ("sd_bus_message_rewind", "append_sql"): "the service has to die under a run: test_kills.py",
    ("sd_bus_message_copy", "append_sql"): "the service has to die under a run: test_kills.py",
    ("sd_bus_message_append", "append_options"): "only AUTO opens channels to be cached: tests/unit/test-library-channel.c",
    ("sd_bus_message_append", "append_sql"): "the service has to die under a run: test_kills.py",
    ("strndup", "append_sql"): "the service has to die under a run: test_kills.py",
    ("sd_bus_message_rewind", "query_call_copy"): "the service has to die under a run: test_kills.py",
    ("sd_bus_message_copy", "query_call_copy"): "the service has to die under a run: test_kills.py",
    ("sd_bus_message_read", "read_if_it_reads"): "the service has to die under a run: test_kills.py",
    ("sd_bus_message_new_method_call", "ask_if_service_lives"): "the service has to die under a run: test_kills.py",
    ("sd_bus_message_append", "ask_if_service_lives"): "the service has to die under a run: test_kills.py",
    ("malloc", "row_memory_resize"): "called if the file cannot grow, which is a case",
    ("ftruncate", "resize_file"): "its failure is passed over: what stays allocated goes with the file",
    ("sd_bus_message_rewind", "on_query_reply"): "where what came before could not be read, which is a case",
    ("sd_bus_message_rewind", "on_begin_reply"): "where what came before could not be read, which is a case",
    ("sd_bus_message_rewind", "on_prepare_reply"): "where what came before could not be read, which is a case",
    ("sd_bus_message_rewind", "on_watch_reply"): "where what came before could not be read, which is a case",
    ("send", "channel_bytes_send"): WITH_MEMORY,
    ("recv", "channel_bytes_look"): WITH_MEMORY,
    ("strdup", "lose_reader"): "the channel has to break under a run: test_kills.py",
    ("vmsplice", "pipe_read"): "called only if preadv2() does not know pipes, which is a case",
    ("poll", "read_if_ready"): "called only if both calls that never wait are missing",
    ("fcntl", "read_if_ready"): "called only if both calls that never wait are missing",
    ("readv", "read_if_ready"): "called only if both calls that never wait are missing",
    ("epoll_ctl", "remove_bus"): "takes out a bus that was lost; the kernel does so, too",
    ("sd_bus_message_append", "call_append_foreign_keys"): "after a PRAGMA only: tests/python/test_keys.py",
    ("sd_bus_message_read", "read_info"): "after a PRAGMA only: tests/python/test_keys.py",
    ("sd_bus_message_read", "query_call_undo"): "reached if the reply to Query crosses the end of the client's cursor",
    ("sd_bus_message_read", "undo_begin"): "reached if the reply to Begin crosses the Cancel of the client",
}
if sqlite3.sqlite_version_info >= (3, 41):
    UNREACHED[("strdup", "see_affinity")] = "SQLite tells the affinity of a view's expression as its declared type"


def check_reasons(never, reasons):
    """Sites that nothing reached are listed, each with a reason."""
    for site in never:
        diagnose(f"not reached: {describe(site)}: {reasons.get((site.call, site.function), '?')}")
    equal([describe(site) for site in never if (site.call, site.function) not in reasons], [], "not reached, for no reason")


# ---- Which cases ----


@functools.cache
def reached():
    """The sites that scenarios reach in the supervisor, and in a worker."""
    return reach_all("sqlipcd", "sqlipc-worker")


@functools.cache
def lived():
    return reach_lives()


def plan(reaching, turn):
    """Cases: (site, error, [(scenario, skip), ...]), the ones behind the first for when that does not come there again."""
    choice = random.Random(ARGUMENTS.seed + turn)
    for site, places in reaching.items():
        if ARGUMENTS.only not in describe(site) or (site.call, site.function) in CANNOT_FAIL:
            continue
        for error in site.errors if places else ():
            if ARGUMENTS.every:
                for name, n in places:
                    for skip in sorted({0, n - 1}):
                        yield site, error, [(name, skip)]
            elif choice.random() < SHARE:
                some = choice.sample(places, len(places))
                first = [(name, choice.randrange(min(n, 4))) for name, n in some]
                yield site, error, first + [(name, 0) for name, _ in some]


def turns(reaching):
    """One plan, or as many as --loop= takes."""
    if not ARGUMENTS.loop:
        return list(plan(reaching, 0))
    endless = itertools.chain.from_iterable(plan(reaching, turn) for turn in itertools.count())
    return list(itertools.islice(endless, ARGUMENTS.loop))


# ---- What they cost in memory ----


def slope(memory):
    """Bytes for each case, by least squares."""
    mean_x, mean_y = (len(memory) - 1) / 2, sum(memory) / len(memory)
    covariance = sum((x - mean_x) * (y - mean_y) for x, y in enumerate(memory))
    return covariance / sum((x - mean_x) ** 2 for x in range(len(memory)))


def check_memory(services):
    """Private memory after each case, a list for each service."""
    for memory in services:
        warm = memory[WARM:]
        if len(warm) < WARM or SANITIZED:
            continue
        diagnose(f"private memory of a service: {warm[0]} bytes after {WARM} cases, {warm[-1]} after {len(memory)}, "
                 f"{slope(warm):+.1f} bytes a case")  # fmt: skip
        at_most(warm[-1] - warm[0], GROWTH_MAX, "private memory that the faults cost")


# ---- Tests ----


def try_all(name, kind, reaching):
    if ARGUMENTS.list:
        for site, places in reaching.items():
            diagnose(f"{describe(site)}: {', '.join(name for name, _ in places) or 'UNREACHED'}")
    shares = side_by_side(try_share, turns(reaching), name)
    n = sum(share.n for share in shares)
    diagnose(f"{len(reaching)} sites, {n} cases, seed {ARGUMENTS.seed}")
    cases(f"faults {kind}", n, "one call of ours fails once, with one of its errors, in a live service")
    equal([problem for share in shares for problem in share.problems], [], "cases that went wrong")
    if not ARGUMENTS.every:
        # A race may have reached a site of UNREACHED once.
        missed = [case for share in shares for case in share.missed if (case[0].call, case[0].function) not in UNREACHED]
        equal([describe(*case) for case in missed], [], "cases that no scenario came to again")
    check_memory([memory for share in shares for memory in share.memory])
    check_reasons([site for site, places in reaching.items() if not places and site not in lived()], UNREACHED)


@test
def lives():
    """Each call of the supervisor fails once, while it starts, stops, and is idle"""
    choice = random.Random(ARGUMENTS.seed)
    some = [
        (site, error, number) for site, number in lived().items() for error in site.errors
        if ARGUMENTS.only in describe(site) and (choice.random() < LIFE_SHARE or site.function in LEAKED)
    ]  # fmt: skip
    outcomes = side_by_side(try_lives, some)
    n = sum(n for n, _ in outcomes)
    cases("faults start", n, "one call of ours fails once, while the service starts, stops or exits")
    equal([problem for _, problems in outcomes for problem in problems], [], "cases that went wrong")


@test
def supervisor():
    """Each call of the supervisor fails once, while it serves"""
    try_all("sqlipcd", "supervisor", reached()[0])


@test
def worker():
    """Each call of a worker fails once"""
    try_all("sqlipc-worker", "worker", reached()[1])


@contextlib.contextmanager
def serving(name):
    """A service for one case by hand, whose program of that name fails on demand."""
    with contextlib.closing(Trial(name)) as trial:
        trial.set_up()
        yield trial


@test
def cancel_is_told_again():
    """A CANCEL that could not be sent is sent later, and costs other runs of that worker nothing"""
    with serving("sqlipcd") as trial:
        service = trial.stage.service
        client = service.client()
        # There would be two if the first one is slow to take its next job.
        service.limits(**USUAL, WorkersMax=1, ParkTimeoutRollbackSec=60)
        client.manager("Reload")
        run = client.query("chinook", ENDLESS)
        until_still(trial.stage)
        other = client.query("chinook", ENDLESS)
        until_still(trial.stage)
        workers = service.workers()
        equal(len(workers), 1, "workers of two runs that are parked")
        trial.faults.arm(trial.faults.site("datagram_send", "sendmsg"), errno.ENOBUFS)
        run.cancel()
        equal(refused(run.read).name, "org.sqlipc1.Error.Cancelled", "how the run ended")
        true(trial.faults.fired(), "the CANCEL was not sent at first")
        for _ in range(10):
            other.frame()
        equal(service.workers(), workers, "workers")
        other.cancel()
        client.close()


@test
def report_to_nobody():
    """A worker whose report meets a broken socket ends: calls that wait for the report get an answer"""
    with serving("sqlipc-worker") as trial:
        send = trial.faults.site("datagram_send", "sendmsg")
        for n in range(4):
            true(trial.case(send, errno.EPIPE, "leaves", n), f"report {n + 1} was not sent")


@test
def tells_nobody():
    """A worker that lives is not left without what it waits for, such as the lease, if its socket seems to be broken"""
    with serving("sqlipcd") as trial:
        send = trial.faults.site("datagram_send", "sendmsg")
        equal([n for n in range(4) if not trial.case(send, errno.EPIPE, "write_rows", n)], [], "messages that were not sent")


@test
def pipe_that_would_block():
    """If the service's end of a load's pipe cannot be made non-blocking, the load is refused, and the service goes on"""
    with serving("sqlipcd") as trial:
        site = trial.faults.site("open_pipe", "fcntl")
        equal([n for n in range(4) if not trial.case(site, errno.EMFILE, "load", n)], [], "pipes that were not made")


@test
def unwatched_pipe_counts():
    """A pipe whose reader keeps its end counts until it is closed, even if it could not be watched at first"""
    with serving("sqlipcd") as trial:
        service = trial.stage.service
        client = service.client()
        statement = client.prepare("chinook", "SELECT 1")
        pipe = os.readlink(f"/proc/self/fd/{statement.pipe}")
        trial.faults.arm(trial.faults.site("watch", "sd_event_add_io"), errno.ENOMEM, times=3)
        client.finalize("chinook", statement.number)
        wait_for(lambda: trial.faults.fired() == 3, "the pipe could not be watched, thrice")
        true(pipe in fds(service.pid()).values(), "its writing end is there")
        equal(service.log_text().count("cannot be watched"), 1, "what the log has of it")
        client.drop(statement.pipe)
        wait_for(lambda: pipe not in fds(service.pid()).values(), "it goes with its reader")


@test
def pipe_without_memory():
    """A run parks if the kernel has no memory for its pipe, and continues when it has"""
    with serving("sqlipc-worker") as trial:
        service = trial.stage.service
        client = service.client()
        write = min((s for s in trial.faults.sites if (s.function, s.call) == ("write_some", "write")), key=lambda s: s.line)
        trial.faults.arm(write, errno.ENOMEM, times=1000000)
        run = client.query("chinook", TRACKS)
        wait_for(lambda: service.states() == ["parked"], "the run is parked")
        at_most(trial.faults.fired(), 10000, "how often its worker tried until then")
        trial.faults.stop()
        equal(run.read().rows, tracks(), "rows")
        client.close()


@test
def polkit_is_asked_again():
    """A question that cannot be sent to polkit is tried again, and logged once"""
    with serving("sqlipcd") as trial:
        service = trial.stage.service
        with contextlib.closing(FakePolkit(service.address, {"asked": "yes"})):
            trial.faults.arm(trial.faults.site("question_send", "sd_bus_call_async"), errno.ENOMEM, times=4)
            equal(service.client(UID_A).query_rows("asked", "SELECT 1")[1], [[1]], "rows")
        equal(trial.faults.fired(), 4, "questions that could not be sent")
        equal(service.log_text().count("polkit cannot be asked"), 1, "what the log has of it")


@test
def held_call_that_is_not_copied():
    """Without memory to hold a call, permitted users get the reason, and others a missing database"""
    with serving("sqlipcd") as trial:
        service = trial.stage.service
        copy = trial.faults.site("waiting_call_copy", "sd_bus_message_copy")
        for answer, error in (("no", "UnknownDatabase"), ("yes", "OutOfMemory")):
            with contextlib.closing(FakePolkit(service.address, {"asked": answer})):
                stranger = service.client(UID_A)
                trial.faults.arm(copy, errno.ENOMEM)
                failure = refused(stranger.manager, "GetDatabase", "(sa{sv})", "asked")
                equal(failure.name, f"org.sqlipc1.Error.{error}", f"who may {answer} hears")
                equal(trial.faults.fired(), 1, "calls that were not copied")


@test
def announced_without_turns():
    """Changes by a reload are announced even if there is no timer for turns"""
    with serving("sqlipcd") as trial:
        service = trial.stage.service
        client = service.client()
        client.manager("ListDatabases")
        heard = client.signals()
        trial.faults.arm(trial.faults.site("announcements_add", "sd_event_add_time_relative"), errno.ENOMEM)
        service.database("extra", Path=CHINOOK)
        client.manager("Reload")
        wait_for(lambda: "DatabaseAdded" in [name for name, *_ in heard()], "it is announced")
        equal(trial.faults.fired(), 1, "timers that could not be had")


@test
def imports():
    """Calls that can fail and are not in inject.h are listed, with the reason"""
    programs = [SUPERVISOR, WORKER, CLIENT]
    equal(fault_imports.missing(programs), [], "functions that neither inject.h nor fault_imports.py has")


def make_odd(path):
    """A table with a name that no D-Bus string carries."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute('CREATE TABLE odd_names("a\ufdd0b" "c\ufdd0d")')
        db.execute("INSERT INTO odd_names VALUES(1)")


def live_over(transport, service, folder):
    """Every case of the library over one transport: (how many, indices of the sites)."""
    names = ("DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS")
    environment = os.environ | dict.fromkeys(names, service.address) | {"PATH": folder}
    program = subprocess.run([CLIENT, service.address, transport], env=environment, capture_output=True, timeout=600)
    output = program.stdout.decode()
    true(program.returncode == 0, f"{transport}: {output[-600:]}{program.stderr.decode()[-2000:]}")
    *tried, n = map(int, output.split())
    return n, tried


@test
def library():
    """Each call of the library fails once, in a client that uses each transport"""
    with contextlib.ExitStack() as stack:
        service = stack.enter_context(Service({"chinook": CHINOOK}, limits=settled.QUICK | USUAL, start=False))
        make_odd(service.data / "odd.sqlite")
        service.database("odd", Path=service.data / "odd.sqlite")
        service.database("broken", Path=CHINOOK, Expsoe="Genre")
        with contextlib.closing(sqlite3.connect(service.data / "notes.sqlite")) as db:
            db.executescript("PRAGMA journal_mode = WAL; CREATE TABLE note(number INTEGER, text)")
            db.execute("CREATE INDEX i ON note(number)")
        service.database("notes", Path=service.data / "notes.sqlite", Mode="read-write")
        service.start()
        before = settled.settle(service)
        transports = ["pipe", "channel", "dbus"]
        nothing = stack.enter_context(tempfile.TemporaryDirectory(prefix="sqlipc-faults-"))  # no ssh
        threads = stack.enter_context(concurrent.futures.ThreadPoolExecutor())
        outcomes = list(threads.map(live_over, transports, [service] * len(transports), [nothing] * len(transports)))
        cases("faults library", sum(n for n, _ in outcomes),
              "one call of the library fails once, with one of its errors, in a client")  # fmt: skip
        settled.as_before(service, before)
    sites = sites_of(CLIENT)
    tried = {(sites[i].call, sites[i].file, sites[i].line) for _, indices in outcomes for i in indices}
    check_reasons([s for s in sites if (s.call, s.file, s.line) not in tried], LIBRARY_UNREACHED)


if __name__ == "__main__":
    main()
