#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A PostgreSQL server and its replica: the server dies under load, and the replica takes its place. Work that ran fails with
a named error, each write that was acknowledged is there, and the next query succeeds. Also reading from a replica.
"""
import concurrent.futures
import contextlib
import pathlib
import signal
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bus"))
from client import Broken, Failure  # noqa: E402
from gi.repository import GLib  # noqa: E402
from harness import PATIENT, UID_A, UID_B, expect, main, needs_root, wait_for  # noqa: E402
from postgres import Postgres, Relay, for_tests  # noqa: E402
from tap import at_most, cases, equal, test, true  # noqa: E402

SCHEMA = """
    CREATE ROLE app LOGIN;
    CREATE TABLE log(id bigint PRIMARY KEY, writer int);
    GRANT SELECT, INSERT ON log TO app;
"""
PAUSE = 0.01  # of each client between two calls
N_READERS, N_WRITERS, N_EACH = 2, 2, 20
CONNECTIONS_MAX = 6
INSERT = "INSERT INTO log VALUES (?1, ?2)"
COUNT = "SELECT count(*) FROM log"
# After these errors the write has not been done.
NOT_WRITTEN = {"ServerUnreachable", "LoginFailed", "TransactionEnded", "Busy"}

primary = for_tests(SCHEMA, fsync="on")


@contextlib.contextmanager
def replica_of(source, waits=True):
    """A replica that has caught up. If it `waits`, the source acknowledges no commit that the replica does not have."""
    with Postgres(source=source) as replica:
        streams = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"
        wait_for(lambda: source.sql(streams) == ["1"], "the replica has caught up")
        if waits:
            source.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
            source.reload()
            state = "SELECT sync_state FROM pg_stat_replication"
            wait_for(lambda: source.sql(state) == ["sync"], "commits wait for the replica")
        yield replica


def name_of(error):
    return "Broken" if isinstance(error, Broken) else error.name.rsplit(".", 1)[1]


class Load:
    """Clients that read and write until they are told to stop; what they were told about each write is noted."""

    def __init__(self, service):
        self.service, self.ends = service, threading.Event()
        self.acknowledged, self.unknown, self.refused, self.reads, self.errors = [], [], [], [], set()
        self.clients = [service.client() for _ in range(N_READERS + N_WRITERS)]
        self.pool = concurrent.futures.ThreadPoolExecutor(N_READERS + N_WRITERS)
        self.work = [self.pool.submit(self.write, n, self.clients[n]) for n in range(N_WRITERS)]
        self.work += [self.pool.submit(self.read, c) for c in self.clients[N_WRITERS:]]

    def write(self, writer, client):
        number = writer * 1_000_000
        while not self.ends.is_set():
            number += 1
            try:
                client.execute("db", INSERT, [number, writer])
                self.acknowledged.append(number)
                self.ends.wait(PAUSE)
            except Failure as failure:
                self.errors.add(name_of(failure))
                (self.unknown if name_of(failure) == "OutcomeUnknown" else self.refused).append(number)
                self.ends.wait(PAUSE)

    def read(self, client):
        while not self.ends.is_set():
            try:
                self.reads.append(client.query("db", COUNT).read().rows[0][0])
                self.ends.wait(PAUSE)
            except (Failure, Broken) as failure:
                self.errors.add(name_of(failure))
                self.ends.wait(PAUSE)

    def has(self, n):
        """True if each kind of client has had n answers."""
        return len(self.acknowledged) >= n and len(self.reads) >= n

    def stop(self):
        self.ends.set()
        for work in self.work:
            work.result()
        self.pool.shutdown()


def begin(client):
    values, _ = client.database("db", "Begin", "(a{sv})", {"mode": GLib.Variant("s", "write")})
    return values[0].get_uint64()


def end_of(call):
    """Returns the name of the error that ends the work."""
    try:
        call()
    except (Failure, Broken) as failure:
        return name_of(failure)
    return None


def told(client, sql):
    return client.query_rows("db", sql)[1][0][0]


@needs_root
def replica_reads():
    """ReplicaConnection=: readers read from the replica; a writer sees its own write at once, however late the replica is"""
    where = "SELECT pg_is_in_recovery()"
    with replica_of(primary, waits=False) as replica:
        keys = {"Connection": primary.connection("app"), "ReplicaConnection": replica.connection("app"),
                "Mode": "read-write", "WriteUsers": UID_B}  # fmt: skip
        with Relay({"db": keys}) as service:
            reader, writer = service.client(UID_A), service.client(UID_B)
            equal((told(reader, where), told(writer, where)), (1, 0), "the reader is at the replica, the writer is not")
            replica.sql("SELECT pg_wal_replay_pause()")
            wait_for(lambda: replica.sql("SELECT pg_get_wal_replay_pause_state()") == ["paused"], "the replica is late")
            for n in range(1, 6):
                writer.execute("db", INSERT, [-n, 0])
                equal(told(writer, COUNT), n, "rows for the one that wrote them")
                equal(writer.query("db", COUNT).read().rows, [[n]], "rows by a pipe")
            equal(told(reader, COUNT), 0, "rows for the reader of the late replica")
            expect("ReadOnly", reader.execute, "db", INSERT, [-100, 0])
            replica.sql("SELECT pg_wal_replay_resume()")
            wait_for(lambda: told(reader, COUNT) == 5, "the replica has caught up")
            replica.kill()
            equal(told(reader, where), 0, "without a replica the reader is at the primary")
            equal(told(reader, COUNT), 5, "rows there")
    primary.sql("DELETE FROM log")


@test
def failover():
    """The server dies under load, and its replica is promoted: no acknowledged write is lost, and everything goes on"""
    with replica_of(primary) as replica:
        hosts = {"host": f"{primary.folder},{replica.folder}", "target_session_attrs": "read-write", "connect_timeout": 5}
        keys = {"Connection": primary.connection("app", **hosts), "Mode": "read-write", "WriteUsers": "*",
                "ConnectionsMax": CONNECTIONS_MAX}  # fmt: skip
        with Relay({"db": keys}, limits=PATIENT | {"WorkersMax": CONNECTIONS_MAX // 2}) as service:
            idle, long, open_one, flying = (service.client() for _ in range(4))
            equal(idle.query("db", COUNT).read().rows, [[0]], "rows")
            load = Load(service)
            wait_for(lambda: load.has(N_EACH), "all clients work")
            at_most(len(primary.clients()), CONNECTIONS_MAX, "connections to the server")
            running = long.query("db", "SELECT generate_series(1, 100000000), repeat('x', 1000)")
            running.frame()
            transaction = {"transaction": GLib.Variant("t", begin(open_one))}
            open_one.execute("db", INSERT, [9_000_000, 9], options=transaction)
            # A writer waits for its turn behind the transaction: end it, and let the replica not answer a commit.
            open_one.database("db", "Rollback", "(ta{sv})", transaction["transaction"].get_uint64(), {})
            primary.signal_child("walsender", signal.SIGSTOP)
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
            wait_for(lambda: primary.sql(waiting) != ["0"], "a commit is in flight")
            call = flying.begin("/org/sqlipc1/database/db", "org.sqlipc1.Database", "Execute", "(sava{sv}a{sv})",
                                "INSERT INTO log VALUES (8000000, 8)", [], {}, {})  # fmt: skip
            acknowledged = len(load.acknowledged)
            primary.kill()
            ends = end_of(lambda: running.counted())
            true(ends in ("ServerUnreachable", "Broken"), f"the long result ends with {ends}")
            wait_for(lambda: load.unknown, "the commit in flight has an unknown outcome")
            equal(len(load.acknowledged), acknowledged, "acknowledged writes without a server")
            replica.promote()
            mark = len(load.acknowledged), len(load.reads)
            wait_for(lambda: len(load.acknowledged) > mark[0] + N_EACH and len(load.reads) > mark[1] + N_EACH, "all goes on")
            true(end_of(lambda: call.result()) in NOT_WRITTEN | {None, "OutcomeUnknown"}, "a write that waited has an end")
            equal(idle.query("db", "SELECT pg_is_in_recovery()").read().rows, [[0]], "the next query of an idle client")
            load.stop()
            at_most(len(replica.clients()), CONNECTIONS_MAX, "connections to the new server")
            there = {int(line) for line in replica.sql("SELECT id FROM log")}
            equal(sorted(set(load.acknowledged) - there), [], "acknowledged writes that are lost")
            equal(sorted(there & set(load.refused)), [], "writes that are there although they had failed")
            true(load.errors <= NOT_WRITTEN | {"OutcomeUnknown", "Broken"}, f"errors of the load: {load.errors}")
            print(f"# {len(load.unknown)} outcomes are unknown, {len(load.refused)} writes have failed: {load.errors}")
            cases("a failover", len(load.acknowledged), "acknowledged writes, none of them lost")
        wait_for(lambda: not replica.clients(), "connections end with the service")


main(primary)
