#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Databases on a cluster of rqlite (rqlite.py), through the program that is installed, with its filter of system calls."""
import contextlib
import subprocess
import tempfile
import threading
import time

from client import Failure, GLib, Text
from engine_unit import ENGINE, EngineUnit
from harness import Service, expect, main, needs_root, processor_time, rss_anon, wait_for
from rqlite import RQLITED, Cluster
from tap import at_most, equal, test, true
from watching import Watch

cluster = Cluster()
unit = EngineUnit(program=ENGINE)
service = Service(environment=unit.environment)


def publish(name, password="sesame", connection=cluster.connection, at=service, **keys):
    file = at.data / f"{name}.password"
    file.write_text(password + "\n")
    file.chmod(0o600)
    keys = {"Mode": "read-write", "WriteUsers": "*", "WriteSchema": "yes"} | keys
    at.database(name, Engine="rqlite", Connection=connection, PasswordFile=file, **keys)
    at.driver.manager("Reload")


def computes(pid):
    """True if the process computes while this one does, for as long as the machine needs to give this one 0.3 s of a CPU."""
    before, end = processor_time(pid), time.process_time() + 0.3
    while time.process_time() < end:
        pass
    return processor_time(pid) - before >= 0.05


def only_rqlited(mark=test):
    """Marks a test that would show nothing with the imitation."""
    return mark if RQLITED else lambda function: function


@test
def test_rows():
    """what is written is read, with the types of its values"""
    publish("music")
    client = service.client()
    client.execute("music", "CREATE TABLE track (id INTEGER PRIMARY KEY, name, length REAL)")
    client.execute("music", "INSERT INTO track VALUES (1, 'first', 2.0), (2, x'00ff', 3.5)")
    equal(client.query("music", "SELECT * FROM track").read().rows, [[1, Text(b"first"), 2.0], [2, b"\x00\xff", 3.5]])
    equal(client.query("music", "SELECT name FROM track WHERE id = :id", (), {"id": 1}).read().rows, [[Text(b"first")]])


@test
def test_large():
    """a table of many windows arrives as a whole"""
    client = service.client()
    client.execute("music", "CREATE TABLE large (id INTEGER PRIMARY KEY, x)")
    client.execute("music", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
                            "INSERT INTO large SELECT i, 'row ' || i FROM n")
    rows = client.query("music", "SELECT * FROM large").read().rows
    equal((len(rows), rows[0], rows[-1]), (20000, [1, Text(b"row 1")], [20000, Text(b"row 20000")]))


@test
def test_no_transactions():
    """transactions and TEMP tables are refused by name"""
    client = service.client()
    for mode in ("read", "write", "pin"):
        expect("NotAllowed", client.database, "music", "Begin", "(a{sv})", {"mode": GLib.Variant("s", mode)})
    for ask in (client.execute, client.query):
        expect("NotAllowed", ask, "music", "CREATE TEMP TABLE t(a)")


@test
def test_watch():
    """commits of this service and of other programs are noticed"""
    client = service.client()
    watch = Watch(client, "track", database="music")
    client.execute("music", "INSERT INTO track VALUES (10, 'own', 1.0)")
    true(watch.next() is not None, "the own commit is told")
    publish("same")
    client.execute("same", "INSERT INTO track VALUES (11, 'foreign', 1.0)")
    true(watch.next() is not None, "the foreign commit is told")


@test
def test_wrong_password():
    """a wrong password is a named error, which does not repeat it"""
    publish("wrong", "not this")
    failure = expect("LoginFailed", lambda: service.client().query("wrong", "SELECT 1").read())
    true("not this" not in failure.message + service.log_text() + unit.log_text(), "the password is told nowhere")


class Writer(threading.Thread):
    """Inserts one row after the other, and writes down what became of each."""

    def __init__(self, number):
        super().__init__(daemon=True)
        self.number, self.stop = number, False
        self.outcomes = {}  # id -> name of the error, or None: it is acknowledged
        self.calls = []  # when each began and ended
        self.start()

    def n_written(self):
        return sum(1 for outcome in list(self.outcomes.values()) if outcome is None)

    def run(self):
        client, i = service.client(), self.number << 32
        while not self.stop:
            i, began, outcome = i + 1, time.monotonic(), None
            try:
                client.execute("music", "INSERT INTO written VALUES (?)", [i])
            except Failure as failure:
                outcome = failure.name
            self.outcomes[i] = outcome
            self.calls.append((began, time.monotonic()))


@only_rqlited()
def test_killed_leader():
    """no acknowledged write is lost if the leader is killed under the writes of eight clients, and then all nodes at once"""
    service.client().execute("music", "CREATE TABLE written (id INTEGER PRIMARY KEY)")
    writers = [Writer(i) for i in range(8)]
    wait_for(lambda: all(writer.n_written() >= 20 for writer in writers), "all write")
    leader = cluster.leader()
    cluster.kill(leader)
    killed = time.monotonic()
    before = [writer.n_written() for writer in writers]
    wait_for(lambda: all(w.n_written() >= n + 20 for w, n in zip(writers, before)), "all write to the next leader")
    for writer in writers:
        writer.stop = True
    for writer in writers:
        writer.join()
    true(any(began < killed < ended for writer in writers for began, ended in writer.calls), "a write was under way")
    cluster.restart(leader)
    for i in {0, 1, 2} - {leader}:
        cluster.kill(i)
        cluster.restart(i)
    cluster.wait_until_ready()
    found = cluster.ask("/db/query?level=linearizable&q=SELECT+id+FROM+written")["results"][0].get("values", [])
    found = {row[0] for row in found}
    outcomes = {i: outcome for writer in writers for i, outcome in writer.outcomes.items()}
    wrong = [i for i, outcome in outcomes.items() if outcome is None and i not in found]
    equal(wrong, [], "writes that were acknowledged and are lost")
    unknown = "org.sqlipc1.Error.OutcomeUnknown"
    equal([i for i, outcome in outcomes.items() if outcome not in (None, unknown) and i in found], [], "refused and written")
    equal(found - set(outcomes), set(), "rows of no writer")
    print(f"# {len(outcomes)} writes, {sum(o is not None for o in outcomes.values())} with an error")


@only_rqlited()
def test_memory():
    """the memory of a worker does not grow with a result that is read in windows, of 100 MB"""
    client = service.client()
    client.execute("music", "CREATE TABLE huge (id INTEGER PRIMARY KEY, x)")
    for _ in range(5):
        client.execute("music", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
                                "INSERT INTO huge (x) SELECT printf('%01000d', i) FROM n")
    client.query("music", "SELECT * FROM huge LIMIT 4000").read()
    before, peak, size = max(map(rss_anon, unit.workers())), 0, 0
    run = client.query("music", "SELECT * FROM huge")
    for _, _, frame in run.frames():
        if (size + len(frame)) >> 24 > size >> 24:
            peak = max(peak, *map(rss_anon, unit.workers()))
        size += len(frame)
    run.close()
    true(size > 100_000_000, f"bytes of the result: {size}")
    at_most(peak - before, 16 << 20, "bytes more than before")


@only_rqlited()
def test_deadline():
    """a node stops a query whose time is over"""
    client = service.client()
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    leader = cluster.nodes[cluster.leader()].pid
    options = {"timeout-usec": GLib.Variant("t", 200_000)}
    expect("TimedOut", lambda: client.query("music", endless, options=options).read())
    wait_for(lambda: not computes(leader), "the node has stopped the query")


@only_rqlited(needs_root)
def test_certificates():
    """https: a node whose certificate is not trusted is a named error, and one whose is trusted answers with the password"""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        key, certificate = f"{folder}/key.pem", f"{folder}/certificate.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
             "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
            check=True, capture_output=True,
        )  # fmt: skip
        node = stack.enter_context(Cluster(1, options=["-http-cert", certificate, "-http-key", key], scheme="https"))
        publish("untrusted", connection=node.connection)
        failure = expect("LoginFailed", lambda: service.client().query("untrusted", "SELECT 1").read())
        true("certificate" in failure.message, failure)
        script = 'mount --bind "$0" /etc/ssl/certs/ca-certificates.crt && exec "$@"'
        within = ["unshare", "--mount", "sh", "-c", script, certificate]
        own_unit = stack.enter_context(EngineUnit(program=ENGINE, within=within))
        own = stack.enter_context(Service(environment=own_unit.environment))
        publish("trusted", connection=node.connection, at=own)
        publish("stranger", "not this", connection=node.connection, at=own)
        equal(own.client().query("trusted", "SELECT 1").read().rows, [[1]])
        expect("LoginFailed", lambda: own.client().query("stranger", "SELECT 1").read())


@test
def test_end():
    """nothing is left"""
    service.close()
    unit.close()
    cluster.close()


main()
