# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenarios of test_faults.py: statements, runs and the files below them.
"""
import contextlib
import fcntl
import os
import pathlib
import re
import sqlite3
import time

from fault_stage import (
    ENDLESS, SCAN, SEVEN, TRACKS, VALUES, answers, begins, check_failure, refused, scenario, told, tracks, until_still,
)  # fmt: skip

from channel import Channel
from client import DATABASE, Broken, Failure, GLib, Text, object_path
from harness import CHINOOK, PATIENCE, fds, wait_for
from settled import stopped
from tap import equal, true
from watching import Watch

EXTRA = {"x-for-later": GLib.Variant("s", "is passed over")}


# ---- One query, in each way ----


@scenario
def prepare_fetch(stage, client):
    """A statement with values of all types, three times"""
    statement = client.prepare("chinook", SEVEN)
    for _ in range(3):
        equal(statement.fetch(*VALUES).read().rows, [VALUES], "rows")
    statement.close()


@scenario
def undescribed(stage, client):
    """Queries one soon after the other, so that the worker of one is idle for the next, which needs no description"""
    for _ in range(5):
        run = client.query("chinook", SEVEN, VALUES, options={"describe": False})
        equal(run.read().rows, [VALUES], "rows")
    refused(lambda: client.query("chinook", "SELECT * FROM nowhere", options={"describe": False}).read())


@scenario
def named(stage, client):
    """Parameters by name"""
    run = client.query("chinook", "SELECT :a, @b, $c", named={":a": 1, "@b": "two", "$c": None}, options=EXTRA)
    equal(run.read().rows, [[1, Text(b"two"), None]], "rows")
    name = "a_name_that_is_longer_than_what_takes_no_memory_" * 2
    many = ", ".join("?" for _ in range(80))
    equal(client.query("chinook", f"SELECT :{name}", named={name: 3}).read().rows, [[3]], "rows")
    equal(client.query("chinook", f"SELECT {many}", list(range(80))).read().rows, [list(range(80))], "rows")


@scenario
def bulk(stage, client):
    """Rows of many pages, read as they come"""
    equal(client.query("chinook", TRACKS, options={"page-size": 4096}).read().rows, tracks(), "rows")


@scenario
def slow_reader(stage, client):
    """A run that is parked until its reader goes on"""
    run = client.query("chinook", TRACKS + " UNION ALL " + TRACKS, options={"page-size": 4096})
    until_still(stage)
    equal(run.read().rows, tracks() * 2, "rows")


@scenario
def big_row(stage, client):
    """A row larger than its page, and columns larger than a page"""
    columns = ", ".join(f"{i} AS a_rather_long_name_of_a_column_{i}" for i in range(300))
    row = [bytes(100000), Text(b"x")]
    for sql, rows in (("SELECT zeroblob(100000), 'x'", [row]), (f"SELECT {columns}", [list(range(300))])):
        equal(client.query("chinook", sql, options={"page-size": 4096}).read().rows, rows, "rows")
    run = client.query("chinook", "SELECT zeroblob(900000)", options={"page-size": 1 << 18})
    until_still(stage)
    equal(run.read().rows, [[bytes(900000)]], "rows")


@scenario
def large_call(stage, client):
    """SQL of 200 kB, and a parameter of 400 kB: jobs that need a memory file"""
    sql = "SELECT length(?) /* " + "x" * 200000 + " */"
    equal(client.query("chinook", sql, (bytes(400000),)).read().rows, [[400000]], "rows")


@scenario
def query_rows(stage, client):
    """Rows as values of D-Bus"""
    _, rows, _ = client.query_rows("chinook", SEVEN, VALUES)
    equal(rows, [VALUES], "rows")
    _, rows, info = client.query_rows("chinook", TRACKS, options={"max-bytes": 8192})
    equal(rows, tracks()[: len(rows)], "rows")
    true(info.get("truncated"), "the rest is left out, and that is said")
    equal(client.query_rows("chinook", "SELECT zeroblob(2000000)")[1], [[bytes(2000000)]], "a large row")


@scenario
def rows_in_parts(stage, client):
    """OpenRows and NextRows, and one that is given up"""
    equal(client.all_rows("chinook", TRACKS, next_options={"max-bytes": 65536})[1], tracks(), "rows")
    run, _, _ = client.open_rows("chinook", ENDLESS)
    client.next_rows("chinook", run, {"max-bytes": 1000})
    client.cancel("chinook", run)
    refused(client.next_rows, "chinook", run)


@scenario
def waiting_rows(stage, client):
    """NextRows that waits for its row, cancelled; rows of a run that fails in the middle"""
    run, _, _ = client.open_rows("chinook", SCAN.replace("SELECT count", "SELECT 1 UNION ALL SELECT count"))
    first = client.next_rows("chinook", run)[0]
    call = client.begin(object_path("chinook"), DATABASE, "NextRows", "(ta{sv})", run, {})
    client.cancel("chinook", run)
    refused(call.result)
    equal(first, [[1]], "rows before")
    failing = "SELECT x / 1, abs(x) FROM (SELECT 1 AS x UNION ALL SELECT -9223372036854775808)"
    run, _, _ = client.open_rows("chinook", failing)
    rows, more = [], True
    with contextlib.suppress(Failure):
        while more:
            some, more, _ = client.next_rows("chinook", run)
            rows += some
        raise AssertionError("a run that failed ended as if it had not")
    equal(rows in ([], [[1, 1]]), True, "rows before the failure")


# ---- Errors, limits, cancels ----


@scenario
def wrong(stage, client):
    """Refused calls: SQL, options, numbers, parameters, objects"""
    for details in (False, True):
        refused(client.query, "chinook", "SELECT * FROM nowhere", options={"error-details": details})
        refused(client.prepare, "chinook", "SELECT 'unfinished", options={"error-details": details})
    refused(client.query, "chinook", "SELECT '\ufffd' FROM \"n\u00f6where\"")
    refused(client.prepare, "chinook", "SELECT 1", options={"no-such-option": GLib.Variant("b", True)})
    refused(client.prepare, "chinook", "SELECT 1", options={"page-size": GLib.Variant("h", 7)})
    refused(client.query, "chinook", "SELECT ?", (GLib.Variant("h", 7),))
    refused(client.query, "chinook", "DELETE FROM Artist")
    refused(client.query, "chinook", "SELECT ?", (1, 2))
    refused(client.query, "chinook", "SELECT :a", named={":b": 1})
    refused(client.cancel, "chinook", 17)
    refused(client.finalize, "chinook", 17)
    refused(client.next_rows, "chinook", 17)
    refused(client.query, "nowhere", "SELECT 1")
    refused(client.manager, "GetDatabase", "(sa{sv})", "nowhere")
    refused(client.manager, "CancelRun", "(ta{sv})", 17)


@scenario
def cancelled(stage, client):
    """A run whose reader stopped, cancelled; then the statement runs again"""
    statement = client.prepare("chinook", ENDLESS)
    for _ in range(2):
        run = statement.fetch()
        begins(run)
        run.cancel()
        refused(run.read)
    statement.close()


@scenario
def cancelled_computing(stage, client):
    """A run that computes, cancelled by its number, by root, and by a timeout of its own"""
    run = client.query("chinook", SCAN)
    run.cancel()
    refused(run.read)
    run = client.query("chinook", SCAN)
    stage.service.driver.manager("CancelRun", "(ta{sv})", run.number)
    refused(run.read)
    refused(client.query("chinook", SCAN, options={"timeout-usec": 30000}).read)


@scenario
def too_long_to_compile(stage, client):
    """A statement that is finalized while it is compiled; the worker does not heed that, and is killed"""
    deep = "SELECT 1 FROM " + ", ".join(f"(SELECT {i} AS x UNION SELECT 2 UNION SELECT 3)" for i in range(60))
    with contextlib.suppress(Failure):
        client.query("chinook", deep + " LIMIT 1", options={"timeout-usec": 50000}).read()


@scenario
def leaves(stage, client):
    """A client that leaves with a statement, a parked run, one that computes, a reader of rows and a channel"""
    client.prepare("chinook", "SELECT 1")
    client.query("chinook", ENDLESS).frame()
    client.query("chinook", SCAN)
    client.open_rows("chinook", ENDLESS)
    channel = Channel(client)
    channel.query(SCAN)
    client.close()
    channel.close()


@scenario
def closes_its_pipe(stage, client):
    """A reader that closes its pipe in the middle of a run"""
    run = client.query("chinook", ENDLESS)
    run.frame()
    run.close()
    wait_for(lambda: not stage.service.states(), "the run is over")


def is_watched(pid, link):
    """True if the loop of the process waits for the descriptor that leads there."""
    held = fds(pid)
    loops = [pathlib.Path(f"/proc/{pid}/fdinfo/{fd}").read_text() for fd, to in held.items() if "eventpoll" in to]
    return link in [held.get(int(fd)) for loop in loops for fd in re.findall(r"^tfd: +(\d+)", loop, re.M)]


@scenario
def keeps_its_pipe(stage, client):
    """A reader that keeps its end of a pipe when its statement is gone, for so long that the pipe is watched"""
    statement = client.prepare("chinook", "SELECT 1")
    client.finalize("chinook", statement.number)
    # The timer before that is one of a quarter of a second's accuracy; and to watch it may be what fails.
    end = time.monotonic() + (0.5 if stage.armed else PATIENCE)
    while not is_watched(stage.service.pid(), os.readlink(f"/proc/self/fd/{statement.pipe}")) and time.monotonic() < end:
        time.sleep(0.02)


@scenario
def pipe_that_grew(stage, client):
    """A reader that grows its end of the pipe at the service's cost"""
    # A run without rows: the service itself grows a pipe that is found full twice. 1 MiB is what every user may ask for.
    statement = client.prepare("chinook", SCAN)
    run = statement.fetch()
    client.query("chinook", "SELECT 1").read()  # now the run has begun, and its pipe has its size
    fcntl.fcntl(statement.pipe, fcntl.F_SETPIPE_SZ, 1 << 20)
    client.query("chinook", "SELECT 1").read()  # a new pipe has the service check the user's other pipes
    if not stage.armed:
        equal(refused(run.read).name, "org.sqlipc1.Error.LimitsExceeded", "what became of the run")


@scenario
def fast_reader(stage, client):
    """A run that keeps filling its pipe, which grows"""
    run = client.query("chinook", f"SELECT * FROM ({ENDLESS}) LIMIT 60000")
    equal(run.counted()[1], 60000, "rows")


@scenario
def quotas(stage, client):
    """More statements and runs than one may have"""
    statements = [client.prepare("chinook", "SELECT 1") for _ in range(8)]
    refused(client.prepare, "chinook", "SELECT 1")
    for statement in statements:
        statement.close()
    runs = [client.query("chinook", ENDLESS) for _ in range(8)]
    for run in runs:
        begins(run)
    try:
        client.query("chinook", "SELECT 1")
    except Failure as failure:
        check_failure(failure)
    else:
        true(stage.armed, "one run more than one may have")
        wait_for(lambda: len(stage.service.states()) < 8, "there was room, since runs were lost with their worker")
        raise Broken("runs were lost")
    for run in runs:
        run.cancel()
        refused(run.read)


@scenario
def many_at_once(stage, client):
    """Jobs of several runs that compute, for which siblings are started"""
    calls = [
        client.begin(
            object_path("chinook"), DATABASE, "QueryRows", "(sava{sv}a{sv})",
            f"SELECT count(*) FROM ({ENDLESS} LIMIT 40000)", [], {}, {},
        )
        for _ in range(6)
    ]  # fmt: skip
    answers(calls, [[40000]])


@scenario
def job_socket_full(stage, client):
    """More jobs than the socket to the workers holds, while the one that there is stopped"""
    client.query("chinook", "SELECT 1").read()
    with stopped(stage.service.workers()):
        sql = "SELECT 5 /* " + "x" * 60000 + " */"
        calls = [
            client.begin(object_path("chinook"), DATABASE, "QueryRows", "(sava{sv}a{sv})", sql, [], {}, {}) for _ in range(8)
        ]
        client.manager("ListRuns")  # behind them, so all were read
    answers(calls, [[5]])


# ---- Files ----


@scenario
def hidden_tables(stage, client):
    """Exposed tables and views, and hidden objects"""
    rows = client.query("hidden", "SELECT title, name, price FROM priced WHERE price > 1.7 ORDER BY 1").read().rows
    equal(rows, [[Text(b"COBOL"), Text(b"Grace"), 2.0]], "rows of a view")
    rows = client.query("hidden", "SELECT id FROM author JOIN book ON author = id WHERE name IN ('ada', 'x')").read().rows
    equal(rows, [[1]], "rows of a join")
    marked = "SELECT id FROM author WHERE name = char(65279) || 'x'"
    equal(client.query("hidden", marked).read().rows, [], "rows of a search for a byte order mark")
    refused(client.query, "hidden", "SELECT * FROM secret")
    refused(client.query, "hidden", "EXPLAIN SELECT 1")
    equal(client.query("hidden", "SELECT x FROM cast_view").read().rows, [[Text(b"1")], [Text(b"2")]], "rows of a cast")
    equal(client.query("hidden", "SELECT c1994 FROM wide").read().rows, [[7]], "rows of a wide table")
    refused(lambda: client.query("hidden", "SELECT rowid FROM priced").read())
    refused(lambda: client.query("hidden", "SELECT * FROM overflow").read())


@scenario
def watches(stage, client):
    """Watches of a table and of a query, of which one is told of the commit of a foreign program"""
    query = Watch(client, database="wal", sql="SELECT name FROM author")
    table = Watch(client, "author", database="wal")
    equal(query.info["tables"], ["author"], "tables of a query")
    stage.writer.execute("INSERT INTO author VALUES(5, 'Barbara')")
    try:
        told(stage, table)
        told(stage, query)
    finally:
        stage.writer.execute("DELETE FROM author WHERE id = 5")
        for watch in (query, table):
            watch.close()


@scenario
def wal_file(stage, client):
    """A file in WAL mode that a foreign program writes to"""
    statement = client.prepare("wal", "SELECT count(*), max(id) FROM author WHERE name <> 'nobody'")
    equal(statement.fetch().read().rows, [[3, 3]], "rows")
    stage.writer.execute("INSERT INTO author VALUES(4, 'Barbara')")
    try:
        equal(statement.fetch().read().rows, [[4, 4]], "rows")
    finally:
        stage.writer.execute("DELETE FROM author WHERE id = 4")


@scenario
def locked_file(stage, client):
    """A file that a writer locks for longer than a run waits, and then for less"""
    with contextlib.closing(sqlite3.connect(stage.rollback, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        failure = refused(lambda: client.query("rollback", "SELECT * FROM author").read())
        true(stage.armed or failure.name.endswith("Busy"), f"what a lock is: {failure}")
        call = client.begin(
            object_path("patient"), DATABASE, "QueryRows", "(sava{sv}a{sv})", "SELECT count(*) FROM author", [], {}, {}
        )
        writer.execute("ROLLBACK")
        equal(call.result()[1].unpack(), [[2]], "rows")


def has_workers(stage):
    """True if a worker still has one of the current runs."""
    return any("worker-pid" in more for *_, more in stage.service.driver.manager("ListRuns")[0])


@scenario
def reader_too_slow(stage, client):
    """A run that is parked for longer than a file in rollback mode allows"""
    run = client.query("rollback", ENDLESS.replace("FROM n", "FROM n CROSS JOIN author"))
    wait_for(lambda: set(stage.service.states()) <= {"draining"}, "the run is ended")
    wait_for(lambda: not has_workers(stage), "the supervisor has the last bytes")
    failure = refused(run.read)
    true(stage.armed or failure.name.endswith("ReaderTooSlow"), f"what became of the run: {failure}")


@scenario
def large_sort(stage, client):
    """A sort that needs temporary files, and more of them than it may"""
    sql = f"SELECT x, randomblob(100) AS y FROM ({ENDLESS} LIMIT 60000) ORDER BY y"
    failure = refused(lambda: client.query("chinook", sql).counted())
    true(stage.armed or failure.name.endswith("LimitsExceeded"), f"what became of the sort: {failure}")


@scenario
def missing_file(stage, client):
    """A file that is not there, one that is none, and one below a folder that is a link"""
    path = stage.service.data / "later.sqlite"
    stage.service.database("later", Path=path)
    client.manager("Reload")
    refused(client.query, "later", "SELECT 1 FROM sqlite_schema")
    path.symlink_to(CHINOOK)
    with contextlib.suppress(Failure):
        equal(client.query("later", "SELECT 1 FROM sqlite_schema LIMIT 1").read().rows, [[1]], "rows")
    path.unlink()
    refused(client.query, "asleep", "SELECT * FROM t")
