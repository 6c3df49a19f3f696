#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Channels as a client sees them: their limits, answers, entries in lists, and the reasons for which they close.

test_channel_workers.py tests their workers, and channels whose worker is stuck or dies.
"""
import contextlib
import os
import signal
import sqlite3
import time

import channel_memory
from channel import Channel
from client import DATABASE, NAME, Broken, Gio, GLib, Text, object_path, reference, same_rows
from clocks import Clocks
from fake_polkit import FakePolkit
from harness import CHINOOK, PATIENT, UID_A, UID_B, UID_DAEMON, Service, expect, fds, main, needs_root, wait_for
from idle_service import Idle
from results import QUERIES
from tap import equal, test, true

ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT "
STREAM = ENDLESS + "x, 'some text to fill the pages' FROM n"
SCAN = ENDLESS + "count(*) FROM n"

service = Service({"chinook": CHINOOK, "other": CHINOOK}, limits=PATIENT)
client = service.client()


@contextlib.contextmanager
def opened(of=None, database="chinook", **options):
    channel = Channel(of or client, database, options)
    try:
        yield channel
    finally:
        channel.close()


def channels(asker=None, of=None):
    return {number: more for number, _, _, more in (asker or (of or service).driver).manager("ListChannels")[0]}


def only(of=None):
    """Returns the only channel."""
    (more,) = channels(of=of).values()
    return more


def none_left(of=None):
    wait_for(lambda: (of or service).counters()["NChannels"] == 0, "channels that closed are forgotten")


@test
def answers():
    """Prepared and direct queries return the same as SQLite, with parameters and columns"""
    with opened() as channel:
        for name, (sql, positional) in QUERIES.items():
            names, rows = reference(CHINOOK, sql, positional)
            number = channel.prepare(sql)
            described = channel.statement(number)
            equal([column.decode() for column, _ in described.columns], names, f"columns of {name}")
            true(described.read_only, f"{name} is not read-only")
            for ask in (lambda: channel.fetch(number, *positional), lambda: channel.query(sql, *positional)):
                same_rows(channel.read(ask()).rows, rows)
            channel.finalize(number)
        number = channel.prepare("SELECT :a + ?2, @b")
        equal(channel.statement(number).parameters, [b":a", b"?2", b"@b"], "parameters")
        equal(channel.read(channel.fetch(number, named={"a": 1, "?2": 2, "@b": "x"})).rows, [[3, Text(b"x")]], "rows")
    none_left()


@test
def pipelined():
    """Many requests in one write are answered in their order, errors among them"""
    with opened() as channel:
        statement = channel.prepare("SELECT ? * 2")
        numbers = []
        for n in range(300):
            numbers.append(channel.fetch(statement, n) if n % 10 else channel.query("SELECT nonsense"))
        channel.statement(statement)
        for n, number in enumerate(numbers):
            if n % 10:
                equal(channel.read(number).rows, [[2 * n]], "rows")
            else:
                expect("Sql", channel.read, number)


def with_memory(of=None, **options):
    return Channel(of or client, "chinook", {"memory": True, **options})


@test
def memory():
    """A channel has memory if the client wants it; a user gets memory for 248 channels, and others go without"""
    true("channel-memory" in service.counters()["Features"], "Features")
    with opened(memory=False) as channel:
        equal(channel.memory, None, "memory that was not asked for")
        equal(channel.ask("SELECT 1"), [[1]], "rows")
    held = [with_memory() for _ in range(250)]
    equal([channel.memory is not None for channel in held], 248 * [True] + 2 * [False], "channels with memory")
    for channel in held[::25] + held[-2:]:
        equal(channel.ask("SELECT ?", "x" * 200000), [[Text(b"x" * 200000)]], "rows")
    held.pop(0).close()
    wait_for(lambda: service.counters()["NChannels"] == len(held), "one is closed")
    held.append(with_memory())
    true(held[-1].memory, "memory that another channel had")
    for channel in held:
        channel.close()
    none_left()


@test
def impossible_memory():
    """A client that writes nonsense into its memory, awake or resting, loses its channel; others go on"""
    with opened() as other:
        for field in (channel_memory.REQUESTS + channel_memory.WRITTEN, channel_memory.ANSWERS + channel_memory.READ):
            for offset in (0x10001, 0x80000000, 0xFFFEFFFF):  # impossible for any fill from 0 to 0x10000
                channel = with_memory()
                equal(channel.ask("SELECT 1"), [[1]], "rows")
                channel.query("SELECT zeroblob(300000)")
                channel.memory.set(field, channel.memory.get(field) + offset)
                channel.socket.send(b"\0")  # and does not read from the memory, which would mend the index
                wait_for(lambda memory=channel.memory: memory.empty_socket() or memory.at_end, "the channel is closed")
                channel.close()
                equal(other.ask("SELECT 2"), [[2]], "rows of another channel")
    none_left()


@test
def taken_back():
    """Requests that no worker read are in the memory when the channel has ended, and can be taken back"""
    with Service({"chinook": CHINOOK}, limits={"WorkersMax": 1}) as one:
        channel = with_memory(one.client())
        equal(channel.ask("SELECT 1"), [[1]], "rows")
        (pid,) = one.workers()
        os.kill(pid, signal.SIGSTOP)
        channel.query("SELECT 2")
        os.kill(pid, signal.SIGKILL)
        true(channel.is_closed(), "the channel of a dead worker is open")
        channel.memory.set(channel_memory.REQUESTS + channel_memory.WITHDRAWN, 1)
        true(channel.memory.written > channel.memory.get(channel_memory.REQUESTS + channel_memory.READ), "it was read")
        channel.close()


@test
def options():
    """The options are those of the XML; a call without a reply opens no channel"""
    failure = expect("UnknownOption", Channel, client, "chinook", {"timeout-usec": 5})
    true("timeout-usec" in failure.message, failure.message)
    expect("InvalidOption", Channel, client, "chinook", {"page-size": 5000})
    expect("org.freedesktop.DBus.Error.UnknownObject", Channel, client, "nosuch")
    expect("InvalidOption", Channel, client, "chinook", {"page-version": 0})
    with opened(**{"page-size": 4096, "page-version": 9}) as channel:
        left = channel.info.pop("channels-left")
        info = {"page-size": 4096, "page-version": 1, "readonly": True, "time-zone": True, "lock-wait": True}
        equal(channel.info, info, "info")
        true(0 < left < 1024, f"channels that may be opened besides: {left}")
        number = channel.query("SELECT * FROM Track")
        rows = 0
        while True:
            _, kind, _, data = channel.frame()
            true(len(data) <= 4096, f"a frame of {len(data)} bytes")
            rows += int.from_bytes(data[16:20], "little") if kind == 2 else 0
            if kind == 4:
                break
        equal((rows, number), (3503, 1), "rows of the run")
    none_left()
    message = Gio.DBusMessage.new_method_call(NAME, object_path("chinook"), DATABASE, "OpenChannel")
    message.set_body(GLib.Variant("(a{sv})", ({},)))
    message.set_flags(Gio.DBusMessageFlags.NO_REPLY_EXPECTED)
    client.connection.send_message(message, Gio.DBusSendMessageFlags.NONE)
    client.manager("ListDatabases")
    equal(service.counters()["NChannels"], 0, "channels")
    true("channel" in service.counters()["Features"], "Features")


@test
def counts():
    """Work on a channel appears once in the list of channels, in that of clients, and in the sums of the service"""
    before = service.counters()
    asker = service.client()
    with opened(asker) as channel:
        true(only()["state"] in ("idle", "resting"), "a new channel is at a worker if there is one")
        sizes = rows = 0
        for sql in ("SELECT * FROM Track", "SELECT 1", "SELECT * FROM Album"):
            number = channel.query(sql)
            while True:
                _, kind, _, data = channel.frame()
                sizes += len(data)
                if kind == 4:
                    rows += int.from_bytes(data[16:24], "little")
                    break
        channel.prepare("SELECT 2")
        sizes += len(channel.frame()[3])
        more = wait_for(lambda: (only()["total-runs"] == 3 and only()["statements"] == 1) and only(), "the worker tells")
        equal((more["rows"], more["bytes"], more["state"]), (rows, sizes, "idle"), f"{number} requests")
        equal(more["uid"], os.geteuid(), "uid")
        of = dict(service.driver.manager("ListClients")[0])[asker.name()]
        equal((of["channels"], of["runs"], of["total-runs"], of["rows"], of["bytes"]), (1, 0, 3, rows, sizes), "of a client")
        now = service.counters()
        equal(now["NChannels"], 1, "NChannels")
        equal([now[key] - before[key] for key in ("TotalRuns", "TotalRows", "TotalBytes")], [3, rows, sizes], "sums")
    none_left()
    asker.close()


@test
def runs_are_listed_and_cancelled():
    """A long run is in the list of runs under its channel's number, and CancelRun ends only this run"""
    with opened() as channel:
        statement = channel.prepare("SELECT 1")
        channel.statement(statement)
        for sql, state in ((SCAN, "running"), (STREAM, "parked")):
            run = channel.query(sql)
            listed = wait_for(
                lambda: [r for r in service.driver.manager("ListRuns")[0] if r[3]["state"] == state], f"the run is {state}"
            )
            ((number, path, owner, more),) = listed
            equal((path, owner, more["sql"]), (object_path("chinook"), client.name(), sql[:200]), "the run")
            true(number in channels() and channels()[number]["state"] == state, "its channel")
            equal(service.counters()["NRuns"], 1, "NRuns")
            pid = channels()[number]["worker-pid"]  # of other workers some may end meanwhile, which are idle
            service.driver.manager("CancelRun", "(ta{sv})", number)
            expect("Cancelled", channel.read, run)
            equal(channel.read(channel.fetch(statement)).rows, [[1]], "rows after a cancelled run")
            wait_for(lambda: service.counters()["NRuns"] == 0, "the run is over")
            expect("UnknownRun", service.driver.manager, "CancelRun", "(ta{sv})", number)
            true(pid in service.workers(), "its worker was killed")
    none_left()


@test
def ended_and_not_read():
    """An ended run whose end is not read drains; its channel closes after StatementIdleSec= and ParkTimeoutSec="""
    with opened() as channel:
        run = channel.query(STREAM)
        wait_for(lambda: service.states() == ["parked"], "the run parks")
        channel.cancel(run)
        # After 20 ms its worker hands its end over, so "draining" need not be seen.
        wait_for(lambda: service.states() != ["parked"], "the run that was cancelled ends")
        equal(service.counters()["NParked"], 0, "NParked")
        wait_for(lambda: (service.states(), only()["state"]) == ([], "resting"), "its worker gives the channel back")
    none_left()
    with Clocks() as clocks, Service({"chinook": CHINOOK}, environment=clocks.environment) as slow:
        with opened(slow.client()) as channel:
            run = channel.query(STREAM)
            wait_for(lambda: slow.states() == ["parked"], "the run parks")
            channel.cancel(run)
            wait_for(lambda: only(slow)["state"] == "resting", "its worker gives the channel back")
            clocks.go_on(7200)
            none_left(slow)


@test
def drains_at_its_worker():
    """A parked run that is cancelled while its worker computes drains at this worker, which hands its end over later"""
    with Service({"chinook": CHINOOK}, limits=PATIENT | {"WorkersMax": 1}) as one, opened(one.client()) as channel:
        run = channel.query(STREAM)
        wait_for(lambda: one.states() == ["parked"], "the run parks")
        scan = one.client().query("chinook", SCAN)
        wait_for(lambda: one.states() == ["parked", "running"], "another run computes")
        (number,) = channels(of=one)
        one.driver.manager("CancelRun", "(ta{sv})", number)
        wait_for(lambda: one.states() == ["draining", "running"], "the run that was cancelled drains")
        equal((only(one)["state"], one.counters()["NParked"]), ("draining", 0), "its channel, and NParked")
        scan.cancel()
        wait_for(lambda: only(one)["state"] == "resting", "the worker hands the end over")
        expect("Cancelled", channel.read, run)
        equal(channel.ask("SELECT 1"), [[1]], "rows after that")


@needs_root
def own_alone():
    """Users see their own channels, and root sees all; only root can end a run on a channel of another user"""
    one, two = service.client(UID_A), service.client(UID_B)
    with opened(one), opened(two), opened(two):
        equal([len(channels(asker)) for asker in (one, two, service.driver)], [1, 2, 3], "channels seen")
        equal({more["uid"] for more in channels(two).values()}, {UID_B}, "whose")
        with opened() as channel:
            channel.ask("SELECT 1")
            pids = [more["worker-pid"] for more in channels().values() if "worker-pid" in more]
            equal(pids, [pid for pid in service.workers() if pid in pids], "workers of channels")
        true(not any("worker-pid" in more for more in channels(one).values()), "a user sees a pid")
    with opened(one) as channel:
        run = channel.query(STREAM)
        wait_for(lambda: service.states() == ["parked"], "the run parks")
        ((number, _, owner, _),) = one.manager("ListRuns")[0]
        equal((owner, list(channels(one))), (one.name(), [number]), "the run, for its own user")
        equal((two.manager("ListRuns")[0], channels(two)), ([], {}), "and for another")
        expect("AccessDenied", two.manager, "CancelRun", "(ta{sv})", number)
        expect("UnknownRun", two.database, "chinook", "Cancel", "(ta{sv})", number, {})
        equal(service.states(), ["parked"], "the run")
        one.manager("CancelRun", "(ta{sv})", number)
        expect("Cancelled", channel.read, run)
    one.close()
    two.close()
    none_left()


# ---- limits ----


@test
def channels_max():
    """ChannelsMax= bounds the channels of a uid, over all its connections, and one that closed makes room"""
    with Service({"chinook": CHINOOK}, limits={"ChannelsMax": 3}) as limited:
        ours = [limited.client() for _ in range(2)]
        held = [Channel(ours[n % 2]) for n in range(3)]
        for one in ours:
            failure = expect("LimitsExceeded", Channel, one)
            true("ChannelsMax=" in failure.message, failure.message)
        true("ChannelsMax=" in limited.log_text(), "the log says nothing")
        held.pop().close()
        wait_for(lambda: limited.counters()["NChannels"] == 2, "the channel is closed")
        held.append(Channel(ours[0]))
        equal(held[-1].ask("SELECT 1"), [[1]], "rows")
        for channel in held:
            channel.close()


@needs_root
def channels_of_a_database():
    """ChannelsMax= in NAME.conf counts for all users together, and says nothing of the others; ExemptRoot= lifts both"""
    text = f"[Database]\nPath={CHINOOK}\nAllowUsers=*\n[Limits]\nChannelsMax=2\n"
    with Service({"other": CHINOOK}, limits={"ExemptRoot": "yes"}, start=False) as limited:
        limited.database("chinook", text)
        limited.start()
        one, two = limited.client(UID_A), limited.client(UID_B)
        with opened(one), opened(two):
            failure = expect("LimitsExceeded", Channel, two)
            true("database" in failure.message and "ChannelsMax=" in failure.message, failure.message)
            with opened(two, "other"), opened(limited.driver) as root:
                equal(root.ask("SELECT 1"), [[1]], "rows")


@test
def limits_of_runs():
    """StatementsMax=, RowSizeMax=, ResultRowsMax=, SQLSizeMax= and RunTimeoutSec= hold on a channel as over the bus"""
    limits = {"StatementsMax": 2, "RowSizeMax": 1000, "ResultRowsMax": 5, "SQLSizeMax": 100}
    with Service({"chinook": CHINOOK}, limits=limits) as limited:
        with opened(limited.client()) as channel:
            held = [channel.prepare("SELECT 1") for _ in range(2)]
            for number in held:
                channel.statement(number)
            expect("LimitsExceeded", channel.statement, channel.prepare("SELECT 3"))
            channel.finalize(held.pop())
            channel.statement(channel.prepare("SELECT 4"))
            expect("RowTooLarge", channel.ask, "SELECT zeroblob(2000)")
            expect("LimitsExceeded", channel.ask, "SELECT 1 FROM Track")
            expect("LimitsExceeded", channel.ask, "SELECT 1".ljust(101))
            equal(channel.read(channel.fetch(held[0])).rows, [[1]], "rows after all that")
    with Service({"chinook": CHINOOK}, limits={"RunTimeoutSec": "0.5"}) as limited:
        with opened(limited.client()) as channel:
            expect("TimedOut", channel.ask, SCAN)


@test
def slow_runs_are_logged():
    """A run past SlowQuerySec= is a line in the log; one whose reader is slow is not"""
    limits = dict.fromkeys((*PATIENT, "RunTimeoutSec"), 86400)
    with Clocks() as clocks, Service(
        {"chinook": CHINOOK}, limits=limits, service={"SlowQuerySec": 1800}, environment=clocks.environment
    ) as slow:
        with opened(slow.client()) as channel:
            run = channel.query(STREAM)
            wait_for(lambda: slow.states() == ["parked"], "the run parks")
            clocks.go_on(3600)
            channel.cancel(run)
            expect("Cancelled", channel.read, run)
            run = channel.query(SCAN.replace("SELECT count", "SELECT 'swordfish', count"))
            wait_for(lambda: slow.states() == ["running"], "the other run computes")
            clocks.go_on(3600)
            channel.cancel(run)
            expect("Cancelled", channel.read, run)
            (said,) = wait_for(
                lambda: [line for line in slow.log_text().splitlines() if "SlowQuerySec=" in line], "a line in the log"
            )
            true("on channel" in said and "swordfish" not in said, said)


@test
def short_runs_are_logged():
    """A run past a short SlowQuerySec= is logged although it ended before the service checked the time"""
    with Service({"chinook": CHINOOK}, service={"SlowQuerySec": "0.001"}) as slow:
        with opened(slow.client()) as channel:
            equal(channel.ask(f"SELECT count(*) FROM ({ENDLESS} x FROM n LIMIT 200000)"), [[200000]], "rows")
            wait_for(lambda: "SlowQuerySec=" in slow.log_text(), "a line in the log")


# ---- the end ----


@test
def locked_database():
    """A channel's query that waits for a lock is answered when the lock goes; without time to wait it is Busy"""
    limits = {"WorkerIdleSec": 0, "ParkTimeoutRollbackSec": 60, "BusyTimeoutSec": 60}
    with Service(limits=limits) as own, contextlib.ExitStack() as ends:
        path = own.data / "chinook.sqlite"
        path.write_bytes(CHINOOK.read_bytes())
        own.database("chinook", Path=path)
        own.driver.manager("Reload")
        writer = ends.enter_context(contextlib.closing(sqlite3.connect(path, isolation_level=None)))
        channel = ends.enter_context(contextlib.closing(Channel(own.client())))
        writer.execute("BEGIN EXCLUSIVE")
        number = channel.query("SELECT count(*) FROM Genre")
        wait_for(lambda: only(own)["state"] == "running", "the query waits")
        writer.execute("ROLLBACK")
        equal(channel.read(number).rows, [[25]], "rows")
        writer.execute("BEGIN EXCLUSIVE")
        expect("TimedOut", channel.ask, "SELECT count(*) FROM Genre", timeout_usec=100000)
        own.limits(**limits | {"BusyTimeoutSec": "0.1"})
        own.driver.manager("Reload")
        again = ends.enter_context(contextlib.closing(Channel(own.client())))
        expect("Busy", again.ask, "SELECT count(*) FROM Genre")
        writer.execute("ROLLBACK")


@test
def idle():
    """StatementIdleSec= closes a channel without requests for this time, and no channel in use"""
    with Clocks() as clocks, Service({"chinook": CHINOOK}, environment=clocks.environment) as short:
        one = short.client()
        with opened(one) as unused, opened(one) as once, opened(one) as used:
            once.ask("SELECT 1")
            for _ in range(3):
                clocks.go_on(2000)  # the limit is an hour
                equal(used.ask("SELECT 1"), [[1]], "rows of a channel in use")
            wait_for(lambda: short.counters()["NChannels"] == 1, "the others are closed")
            true(unused.is_closed() and once.is_closed(), "what was closed did not end between answers")
            equal(used.ask("SELECT 1"), [[1]], "rows of a channel in use")


@test
def clients_that_go():
    """A channel closes when its socket or the client's connection to the bus closes"""
    first, second = service.client(), service.client()
    for how in ("socket", "bus"):
        for sql in (None, "SELECT 1", SCAN, STREAM):
            channel = Channel(first if how == "socket" else second)
            if sql == "SELECT 1":
                channel.ask(sql)
            elif sql:
                channel.query(sql)
                wait_for(lambda: service.counters()["NRuns"] == 1, "the run is under way")
            if how == "socket":
                channel.close()
            else:
                second.close()
                second = service.client()
                wait_for(lambda: service.counters()["NChannels"] == 0, "the channel is closed")
                channel.close()
            none_left()
            equal(service.counters()["NRuns"], 0, "runs")
    equal(client.query("chinook", "SELECT 1").read().rows, [[1]], "rows over the bus")


@test
def reload():
    """A reload that changes the database closes its channels after their runs; others stay, with their statements"""
    with Service({"chinook": CHINOOK, "other": CHINOOK}, limits=PATIENT) as changing:
        one = changing.client()
        with opened(one) as resting, opened(one) as used, opened(one) as busy, opened(one, "other") as other:
            used.ask("SELECT 1")
            statement = other.prepare("SELECT 1")
            other.statement(statement)
            run = busy.query(ENDLESS + "x FROM n LIMIT 30000000")
            wait_for(lambda: changing.states() == ["parked"], "the run parks")
            changing.database("chinook", Path=CHINOOK, Description="another")
            one.manager("Reload")
            true(resting.is_closed() and used.is_closed(), "what was closed did not end between answers")
            busy.cancel(run)
            expect("Cancelled", busy.read, run)
            true(busy.is_closed(), "the channel outlived its run")
            equal(other.read(other.fetch(statement)).rows, [[1]], "rows of another database")
            with opened(one) as again:
                equal(again.ask("SELECT 1"), [[1]], "rows of the changed database")
            changing.limits(ResultRowsMax=2)
            one.manager("Reload")
            expect("LimitsExceeded", other.ask, "SELECT 1 FROM Track")
            equal(other.read(other.fetch(statement)).rows, [[1]], "rows under new limits")
            (changing.config_dir / "databases.d/other.conf").unlink()
            one.manager("Reload")
            true(other.is_closed(), "the channel of a database that is gone")


@test
def takes_no_more():
    """A request that began before a reload withdrew the database is answered; requests after it do not begin"""
    with Service({"chinook": CHINOOK}, limits=PATIENT | {"WorkersMax": 1}) as changing:
        one = changing.client()
        with opened(one) as other, opened(one) as busy:
            other.query(STREAM)
            run = busy.query(STREAM)
            wait_for(lambda: changing.states() == ["parked", "parked"], "the runs park")
            (changing.config_dir / "databases.d/chinook.conf").unlink()
            one.manager("Reload")
            for _ in range(3):
                busy.query("SELECT 'swordfish'")
            busy.cancel(run)
            expect("Cancelled", busy.read, run)
            true(busy.is_closed(), "it goes on")


@test
def answers_that_nobody_reads():
    """A channel of a removed database waits at most ParkTimeoutSec= for a reader that does not read"""
    with Service({"chinook": CHINOOK}, limits={"ParkTimeoutSec": 1, "ParkTimeoutRollbackSec": 1}) as changing:
        one = changing.client()
        with opened(one) as parked, opened(one) as ended:
            ended.query("SELECT zeroblob(1000000)")
            parked.query(STREAM)
            # it stays parked for a second, and drains as long as the database is there
            wait_for(lambda: {"parked", "draining"} & set(changing.states()), "a run parks")
            (changing.config_dir / "databases.d/chinook.conf").unlink()
            one.manager("Reload")
            none_left(changing)


@test
def reload_of_limits():
    """New limits close channels after their runs, which end under the old limits, as do their workers"""
    with Service({"chinook": CHINOOK}, limits=PATIENT | {"WorkersMax": 1}) as changing:
        one = changing.client()
        with opened(one) as busy, opened(one) as used:
            used.ask("SELECT 1")
            run = busy.query(STREAM)
            wait_for(lambda: changing.states() == ["parked"], "the run parks")
            (pid,) = changing.workers()
            changing.limits(WorkersMax=1, RowSizeMax=5000, SQLSizeMax=100)
            one.manager("Reload")
            true(used.is_closed(), "what was closed did not end between answers")
            with opened(one) as between:
                between.ask("SELECT 1")
                changing.limits(WorkersMax=1, RowSizeMax=1000, SQLSizeMax=100)
                one.manager("Reload")
                true(between.is_closed(), "one reload changed limits, and a second did not")
            with opened(one) as again:
                statement = again.prepare("SELECT 40 + 2")
                again.statement(statement)
                expect("RowTooLarge", again.ask, "SELECT zeroblob(2000)")
                equal(changing.workers(), [pid], "workers: there may be one")
                busy.cancel(run)
                expect("Cancelled", busy.read, run)
                true(busy.is_closed(), "the channel outlived its run")
                wait_for(lambda: pid not in changing.workers(), "the worker with the limits of before ends")
                expect("LimitsExceeded", again.ask, "SELECT 1".ljust(101))
                equal(again.read(again.fetch(statement)).rows, [[42]], "rows of a statement that went along")


@test
def stop():
    """The service stops with channels in every state: each client reads end-of-file, and each run ends by ERROR or breaks"""
    with Service({"chinook": CHINOOK}, limits=PATIENT) as ending:
        one = ending.client()
        with opened(one) as resting, opened(one) as used, opened(one) as scanning, opened(one) as parked:
            used.ask("SELECT 1")
            run = scanning.query(SCAN)
            parked.query(STREAM)
            wait_for(lambda: ending.states() == ["parked", "running"], "both run")
            ending.stop()
            true(resting.is_closed() and used.is_closed(), "what was closed did not end between answers")
            try:
                expect("ShuttingDown", scanning.read, run)
            except (Broken, AssertionError):
                pass  # best effort
        ending.start()


@test
def idle_exit():
    """An open channel prevents the idle exit, which follows after the channel is closed"""
    with Idle() as service:
        with opened(service.client()) as channel:
            service.make_impatient()
            for _ in range(2):
                time.sleep(0.2)  # two hundred times IdleExitSec=
                equal(channel.ask("SELECT 1"), [[1]], "rows")
        service.wait_for_exit()


@needs_root
def polkit_takes_back():
    """A client that only polkit admitted must be authorized again after polkit's rules changed"""
    databases = {"asked": {"Path": CHINOOK, "AllowUsers": "root", "Polkit": "yes"}, "open": CHINOOK}
    with Service(databases, limits=PATIENT, uid=UID_DAEMON) as guarded:
        fake = FakePolkit(guarded.address, {"asked": "yes"})
        try:
            one = guarded.client(UID_A)
            with opened(one, "asked") as asked, opened(one, "open") as free, opened(guarded.driver, "asked") as roots:
                for channel in (asked, free, roots):
                    equal(channel.ask("SELECT 1"), [[1]], "rows")
                run = asked.query(STREAM)
                wait_for(lambda: guarded.states() == ["parked"], "the run parks")
                fake.rules["asked"] = "no"
                fake.changed()
                guarded.driver.manager("ListDatabases")  # it has heard of that
                asked.query("SELECT 'swordfish'")
                asked.cancel(run)
                expect("Cancelled", asked.read, run)
                true(asked.is_closed(), "the channel outlived the right to it")
                for channel in (free, roots):
                    equal(channel.ask("SELECT 1"), [[1]], "rows of a user who needs no polkit")
                expect("org.freedesktop.DBus.Error.UnknownObject", Channel, one, "asked")
        finally:
            fake.close()


@test
def descriptors():
    """A hundred channels in different uses leave nothing behind"""
    def held():
        return sorted(target.split("[")[0] for target in fds(service.pid()).values() if "socket" in target)

    none_left()
    before = held()
    for n in range(100):
        with opened(database=("chinook", "other")[n % 2]) as channel:
            if n % 3:
                channel.ask("SELECT 1")
            if n % 5 == 0:
                channel.query(STREAM)
    none_left()
    equal(service.counters()["NStatements"], 0, "statements")
    wait_for(lambda: len(held()) <= len(before) + 4, "descriptors are given back")  # two more a group of workers


main(service)
