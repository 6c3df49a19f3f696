#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Large numbers: 1,000 runs of several users at once, most of whose readers have stopped; 10,000 statements that are never
run; 100 users who ask at the same moment.

The test prints what each of them costs, for docs/performance.md: meson test -C build reliability-masses --verbose
With SQLIPC_TEST_LONG=1 the 100 users get two processors, and 100 programs that open the file are measured beside them.
"""
import contextlib
import os
import pwd
import resource
import shutil
import sqlite3
import time

import settled
from client import Failure, rows_from_variant
from harness import CHINOOK, SANITIZED, Service, children, expect, fds, main, needs_root, rss_anon, wait_for
from sizes import LONG, size
from tap import Skip, at_most, cases, diagnose, equal, true

USERS = (1, 2, 3, 4)
OTHER = 5  # who has nothing to do with it
WORKERS_MAX, WORKERS_TOTAL_MAX = 8, 40
N_RUNS, N_STALLED = (200, 180) if SANITIZED else (1000, 900)
N_STATEMENTS = 1000 if SANITIZED else 10000
N_CLIENTS = 10  # of each user
# Together they may hold nearly all pipes. Few users may not, because others must get theirs.
MANY_USERS = [entry.pw_uid for entry in pwd.getpwall() if entry.pw_uid not in (0, OTHER)][:16]
N_POINTS = 200
ROWS = 20000
KIB = 1024
# The memory of 1,000 stalled runs; docs/ARCHITECTURE.md (I4) lists the parts of one. Other figures are only printed.
RUN_MAX, STATEMENT_MAX = 512 * KIB, 4 * KIB

soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

LIMITS = {
    **settled.QUICK,
    "RunsMax": N_RUNS,
    "StatementsMax": N_STATEMENTS,
    "WorkersMax": WORKERS_MAX,
    "WorkersTotalMax": WORKERS_TOTAL_MAX,
    "PipePagesMax": 1000000,
    "ParkTimeoutSec": 600,
    "ParkTimeoutRollbackSec": 600,
}


def start_with_few_descriptors(service, n):
    program, wrapper = service.sqlipcd, service.folder / "with-few-descriptors"
    wrapper.write_text(f'#!/bin/sh\nulimit -n {n}\nexec {program} "$@"\n')
    wrapper.chmod(0o755)
    service.sqlipcd = wrapper
    try:
        service.start()
    finally:
        service.sqlipcd = program


def start(n_descriptors=None):
    service = Service(limits=LIMITS, start=n_descriptors is None)
    if n_descriptors is not None:
        start_with_few_descriptors(service, n_descriptors)
    path = service.data / "db.sqlite"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, text)")
    db.execute(
        f"WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n LIMIT {ROWS}) "
        "INSERT INTO t SELECT x, hex(randomblob(50)) FROM n"
    )
    db.commit()
    db.close()
    service.database("db", Path=path)
    service.database("chinook", Path=CHINOOK)
    service.driver.manager("Reload")
    settled.works(service)  # what the supervisor has from its first clients on
    return service, path


def crowd(service, users=USERS):
    """Clients of each user in turn."""
    clients = [service.client(uid) for _ in range(N_CLIENTS) for uid in users]
    return lambda i: clients[i % len(clients)]


def of_supervisor(service):
    return rss_anon(service.pid())


def of_workers(service):
    """Of those that have something to do; one that is idle may end while it is looked at."""
    total = 0
    for pid in service.workers():
        with contextlib.suppress(AssertionError, FileNotFoundError, ProcessLookupError):
            total += rss_anon(pid)
    return total


def look_at_workers(service):
    """No user has more than its limit, so all together do not."""
    at_most(len(service.workers()), WORKERS_MAX * (len(USERS) + 1), "workers")
    at_most(service.counters()["NWorkers"], WORKERS_TOTAL_MAX, "workers that the service counts")


def leave(service, before):
    """All clients go. Each of their pipes counts until the service has seen that its read end is closed."""
    service.forget()
    wait_for(lambda: len(fds(service.pid())) <= before["descriptors"], "the service sees that the pipes have no readers")


@needs_root
def a_thousand_runs():
    """1,000 runs at once, 900 of them stalled: other users are answered, and readers get all rows, also after a pause"""
    service, path = start()
    with service:
        before = settled.settle(service, [path])
        memory = of_supervisor(service)
        client = crowd(service)
        stalled = [client(i).query("db", "SELECT * FROM t") for i in range(N_STALLED)]
        wait_for(lambda: service.counters()["NParked"] == N_STALLED, "all readers that stopped are parked")
        each = (of_supervisor(service) - memory) / N_STALLED, of_workers(service) / N_STALLED
        diagnose(
            f"{N_STALLED} stalled runs of {len(USERS)} users in {len(service.workers())} workers: {each[0] / KIB:.2f} KiB "
            f"of the supervisor's and {each[1] / KIB:.1f} KiB of the workers' private memory each"
        )
        look_at_workers(service)
        running = [client(i).query("db", "SELECT * FROM t") for i in range(N_RUNS - N_STALLED)]
        equal(service.counters()["NRuns"], N_RUNS, "runs at once")
        other = service.client(OTHER)
        for _ in range(N_POINTS):
            other.point("db")
        for run in running:
            equal(run.counted()[1], ROWS, "rows of a reader that reads")
        for run in stalled[:: N_STALLED // 30]:
            equal(run.counted()[1], ROWS, "rows of a reader that woke up")
        look_at_workers(service)
        if not SANITIZED:
            at_most(sum(each), RUN_MAX, "bytes for each stalled run")
        leave(service, before)
        settled.as_before(service, before, [path])
        cases("masses", N_RUNS, "a run beside all others at once, nine in ten stalled")
        cases("masses", N_POINTS, "a point query of another user beside them")


@needs_root
def pages_for_others():
    """Runs of several users that fill the pages of all pipes leave pages to others; a user without a share is told so"""
    service, path = start(n_descriptors=512)  # of which it takes 5/8 for pages: 320
    with service:
        before = settled.settle(service, [path])
        client = crowd(service)
        runs = [client(i).query("db", "SELECT * FROM t") for i in range(27)]  # of 64 KiB each they would be 432 pages
        service.client(OTHER).point("db")
        more = lambda: [runs.append(client(i).query("db", "SELECT * FROM t")) for i in range(256)]  # noqa: E731
        refused = expect("LimitsExceeded", more)
        true("all users together" in refused.message, refused.message)
        equal(runs[0].counted()[1], ROWS, "rows of a reader that woke up")
        for uid in (OTHER, 0):
            service.client(uid).point("db")
        leave(service, before)
        settled.as_before(service, before, [path])
        cases("masses", len(USERS), "a user whose pipes fill what all have together")


N_ASKING = 100
FIRST_ASKING = 20000  # their uids
COUNT = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n LIMIT {}) SELECT count(*) FROM n"


def rows_for(seconds):
    """The rows that COUNT counts in so much processor time here."""
    n, took = 200000, []
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        for _ in range(10):
            began = time.process_time()
            db.execute(COUNT.format(n)).fetchall()
            took.append(time.process_time() - began)
    return int(n * seconds / min(took))


@contextlib.contextmanager
def processors(n):
    """Only `n` processors for this test and its processes; the service counts them when it starts."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:n])
    yield
    os.sched_setaffinity(0, before)


@contextlib.contextmanager
def measured(what):
    """Prints the processor time of the processes that ended meanwhile. The caller appends the time of each answer."""
    before, times = resource.getrusage(resource.RUSAGE_CHILDREN), []
    yield times
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    equal(len(times), N_ASKING, f"answers of {what}")
    diagnose(f"{what}: the slowest took {max(times):.2f} s; {used:.2f} s of processor time together")


def ask_service(path, n):
    """The users' queries, all sent before one is answered. A failure of any is one of the test."""
    with measured("100 users of the service") as times, Service(
        {"db": path}, limits={"QueueTimeoutSec": 10}, broker=True
    ) as service:
        clients = [service.client(FIRST_ASKING + i) for i in range(N_ASKING)]
        began = time.monotonic()
        call = ("/org/sqlipc1/database/db", "org.sqlipc1.Database", "QueryRows", "(sava{sv}a{sv})")
        asked = [client.begin(*call, COUNT.format(n), [], {}, {}) for client in clients]
        while asked:
            answered = [one for one in asked if one.is_done()]
            for one in answered:
                equal(rows_from_variant(one.result()[1]), [[n]], "the count")
                times.append(time.monotonic() - began)
            asked = [one for one in asked if one not in answered]
            time.sleep(0.01)


def ask_file(path, n):
    """The same queries in 100 programs that open the file."""
    with measured("100 programs that open the file") as times:
        began = time.monotonic()
        for _ in range(N_ASKING):
            if os.fork() == 0:
                with contextlib.closing(sqlite3.connect(path)) as db:
                    os._exit(0 if db.execute(COUNT.format(n)).fetchall() == [(n,)] else 1)
        for _ in range(N_ASKING):
            equal(os.wait()[1], 0, "the status of a program")
            times.append(time.monotonic() - began)


@needs_root
def a_hundred_users():
    """100 users who query at the same moment, for longer than QueueTimeoutSec= together, all get their rows"""
    if not shutil.which("dbus-broker"):
        raise Skip("needs dbus-broker, because dbus-daemon knows only users of this machine")
    n = rows_for(size("seconds of a query of masses"))
    with processors(2 if LONG else 1):  # with one, the last user waits for longer than the time limit on every machine
        ask_service(CHINOOK, n)
        if LONG:
            ask_file(CHINOOK, n)
    cases("masses", N_ASKING, "a user who asks at the same moment as all others")


@needs_root
def ten_thousand_statements():
    """10,000 idle statements: no worker, one descriptor and little memory each, and each still works"""
    if hard < N_STATEMENTS * 2:
        raise Skip(f"needs {N_STATEMENTS * 2} descriptors, and {hard} are allowed here")
    service, path = start()
    with service:
        before = settled.settle(service, [path])
        memory, descriptors = of_supervisor(service), len(fds(service.pid()))
        client = crowd(service, MANY_USERS)
        statements = [client(i).prepare("db", "SELECT text FROM t WHERE id = ?") for i in range(N_STATEMENTS)]
        wait_for(lambda: not children(service.pid()), "workers end while statements stay")
        equal(service.counters()["NStatements"], N_STATEMENTS, "statements")
        each = (of_supervisor(service) - memory) / N_STATEMENTS
        more = len(fds(service.pid())) - descriptors
        diagnose(
            f"{N_STATEMENTS} idle statements: {each:.0f} bytes of the supervisor's private memory, "
            f"{more / N_STATEMENTS:.3f} descriptors and no process each"
        )
        # one for the counts of each user's clients
        equal(more, N_STATEMENTS + len(MANY_USERS), "descriptors of the supervisor")
        for i in range(0, N_STATEMENTS, N_STATEMENTS // 100):
            equal(len(statements[i].fetch(1 + i).read().rows[0][0]), 100, "bytes of the text of a row")
        if not SANITIZED:
            at_most(each, STATEMENT_MAX, "bytes for each statement")
        peak = of_supervisor(service)
        leave(service, before)
        # malloc keeps what they had for the next ones: those must not need more.
        client = crowd(service, MANY_USERS)
        for i in range(N_STATEMENTS // 4):
            client(i).prepare("db", "SELECT text FROM t WHERE id = ?")
        if not SANITIZED:
            at_most(of_supervisor(service), peak, "bytes of the supervisor with a quarter of the statements once more")
        leave(service, before)
        settled.as_before(service, before, [path])
        cases("masses", N_STATEMENTS, "an idle statement beside all others")


@needs_root
def keepers_of_read_ends():
    """Two and ten users that finalize statements and keep the read ends are refused; another user and root are served"""
    for n in (2, 10):
        service, path = start(n_descriptors=512)
        with service:
            before = settled.settle(service, [path])
            keepers = [service.client(uid) for uid in MANY_USERS[:n]]
            while keepers:
                keepers = [keeper for keeper in keepers if keeps_another(keeper)]
            for uid in (OTHER, 0):
                client = service.client(uid)
                statements = [client.prepare("db", "SELECT 1") for _ in range(10)]
                client.point("db")
                equal([statement.fetch().read().rows for statement in statements], [[[1]]] * 10, "rows of statements")
            leave(service, before)
            settled.as_before(service, before, [path])
        cases("masses", n, "a user that keeps the read ends of finalized statements")


def keeps_another(client):
    """False: it keeps so many that it was refused one more."""
    try:
        client.finalize("db", client.prepare("db", "SELECT 1").number)
        return True
    except Failure as failure:
        true("keep their read ends open" in failure.message, str(failure))
        return False


if __name__ == "__main__":
    main()
