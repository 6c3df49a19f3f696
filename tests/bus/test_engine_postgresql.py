#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Databases of a PostgreSQL server of our own, through the program that is installed, with its filter of system calls."""
import contextlib
import itertools
import os
import signal
import socket
import subprocess
import sys

from channel import Channel
from client import DATABASE, Failure, Text, object_path
from engine_unit import ENGINE, EngineUnit
from gi.repository import GLib
from harness import CHINOOK, CLI, PATIENCE, UID_A, UID_B, Service, expect, main, needs_root, rss_anon
from harness import python_package, test_unsanitized, wait_for
from library import PROGRAM, Library
from postgres import for_tests
from postgres_proxy import Proxy
from tap import at_most, equal, test, true
from watching import Watch

server = for_tests(
    "CREATE TABLE track (id integer PRIMARY KEY, name text);"
    "INSERT INTO track SELECT i, 'track ' || i FROM generate_series(1, 1000) AS i;"
    "CREATE TABLE secret (id integer);"
    "CREATE TABLE slow (id integer);"
    "CREATE FUNCTION sleep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(600); RETURN NULL; END';"
    "CREATE CONSTRAINT TRIGGER sleep AFTER INSERT ON slow DEFERRABLE INITIALLY DEFERRED"
    " FOR EACH ROW EXECUTE FUNCTION sleep();"
    "CREATE ROLE reader LOGIN PASSWORD 'sesame'; GRANT SELECT ON track TO reader;"
    "CREATE ROLE writer LOGIN PASSWORD 'open'; GRANT SELECT, INSERT, UPDATE, DELETE ON track, secret, slow TO writer;",
    access="local all postgres trust\nlocal all all scram-sha-256\n",
)
unit = EngineUnit(program=ENGINE)
service = Service(environment=unit.environment, limits={"BusyTimeoutSec": 1})


def publish(name, connection, password=None, **keys):
    file = service.data / f"{name}.password"
    if password is not None:
        file.write_text(password + "\n")
        file.chmod(0o600)
        keys["PasswordFile"] = file
    service.database(name, Engine="postgresql", Connection=connection, **keys)
    service.driver.manager("Reload")


@test
def test_rows():
    """rows of a table arrive, and parameters are bound"""
    publish("reading", server.connection("reader"), "sesame")
    client = service.client()
    equal(client.query("reading", "SELECT count(*) FROM track").read().rows, [[1000]])
    equal(client.query("reading", "SELECT id FROM track WHERE id > $1 ORDER BY id", (998,)).read().rows, [[999], [1000]])


@test_unsanitized
def test_memory():
    """the memory of a worker does not grow with the result, of 160 MB in text form and in binary form"""
    publish("large", server.connection("reader"), "sesame")
    client = service.client()
    client.query("large", "SELECT 1").read()
    before = sum(map(rss_anon, unit.workers()))
    for value in ("repeat('x', 1000)", "convert_to(repeat('x', 1000), 'UTF8')"):
        peak = size = 0
        run = client.query("large", f"SELECT i, {value} FROM generate_series(1, 160000) AS i")
        for _, _, frame in run.frames():
            if (size + len(frame)) >> 24 > size >> 24:
                peak = max(peak, sum(map(rss_anon, unit.workers())))
            size += len(frame)
        run.close()
        true(size > 160_000_000, f"bytes of the result: {size}")
        at_most(peak - before, 4 << 20, f"bytes more than before, {value}")


@test
def test_round_trips():
    """a statement that reads takes one round trip to the server, one that writes takes two with its commit"""
    with Proxy(server) as proxy:
        publish("counted", proxy.connection("writer"), "open", Mode="read-write", ConnectionsMax=1)
        client = service.client()
        channel = Channel(client, "counted")
        statement = channel.prepare("SELECT name FROM track WHERE id = ?1")
        channel.statement(statement)

        unique = itertools.count()

        def trips(run):
            """Returns the round trips of twenty."""
            run(1)
            before = proxy.n_trips
            for i in range(20):
                run(i)
            return proxy.n_trips - before

        equal(trips(lambda i: channel.read(channel.fetch(statement, i))), 20, "round trips of statements that read")
        plain, calls = (
            trips(lambda i, sql=sql: channel.ask(sql.format(next(unique)))) for sql in ("SELECT {} + 1", "SELECT md5('{}')")
        )
        equal(calls, plain, "round trips of new statements, with a function of the server's that few call")
        update = "UPDATE track SET name = name WHERE id = ?1"
        equal(trips(lambda i: client.execute("counted", update, (i,))), 40, "round trips of statements that write")
        equal(proxy.n_connections, 1)
        channel.close()


@test
def test_wrong_password():
    """a wrong password is a named error, which does not repeat it, and a right one needs no reload"""
    publish("wrong", server.connection("reader"), "not this")
    client = service.client()
    failure = expect("LoginFailed", lambda: client.query("wrong", "SELECT 1").read())
    true("not this" not in failure.message + service.log_text() + unit.log_text(), "the password is told nowhere")
    (service.data / "wrong.password").write_text("sesame\n")
    end_workers()
    equal(client.query("wrong", "SELECT 1").read().rows, [[1]])


CONNECTIONS = 4
LARGE = "SELECT i, repeat('x', 1000) FROM generate_series(1, 10000) AS i"  # far more than pipe and socket hold
COMPUTES = "SELECT pg_sleep(600)"


def n_connections():
    return int(server.sql("SELECT count(*) FROM pg_stat_activity WHERE usename = 'reader'")[0])


def check_connections(n):
    """A process of the server ends a moment after its connection."""
    wait_for(lambda: n_connections() == n, f"there are {n} connections")


def end_workers():
    for pid in unit.workers():
        os.kill(pid, signal.SIGKILL)
    # With sanitizers, a keeper that ends has a child, which looks for leaks. If that is killed, the keeper never ends.
    wait_for(lambda: not unit.keepers(), "the workers end, and their keepers")
    wait_for(lambda: service.counters()["NWorkers"] == 0, "the service knows of all of them")


def begin_bounded():
    end_workers()
    check_connections(0)
    publish("bounded", server.connection("reader"), "sesame", ConnectionsMax=CONNECTIONS)
    return service.client()


def park(client):
    """Returns a run whose rows are not read."""
    run = client.query("bounded", LARGE)
    run.frame()
    return run


def check_answers(client):
    equal(client.query("bounded", "SELECT 1").read().rows, [[1]])


@test
def test_connections_max():
    """readers that stop leave all other connections to the user's next queries, in whichever worker they are"""
    client = begin_bounded()
    stopped = [park(client) for _ in range(CONNECTIONS - 1)]
    check_answers(client)
    check_connections(CONNECTIONS)
    stopped.append(park(client))
    failure = expect("Busy", lambda: client.query("bounded", "SELECT 1").read())
    true("ConnectionsMax=" in failure.message, failure.message)
    check_connections(CONNECTIONS)
    stopped.pop().counted()
    check_answers(client)
    for run in stopped:
        run.close()


@test
def test_idle_connections():
    """workers that compute give the connections that they do not use to another worker"""
    client = begin_bounded()
    for run in [park(client) for _ in range(CONNECTIONS)]:
        run.counted()
    check_connections(CONNECTIONS)
    computing = [client.query("bounded", COMPUTES) for _ in range(CONNECTIONS - 1)]
    check_answers(client)
    check_connections(CONNECTIONS)
    for run in computing:
        run.cancel()
        run.close()


@test
def test_fewer_connections():
    """after a reload with a smaller ConnectionsMax= none is opened before enough of the old ones are closed"""
    client = begin_bounded()
    stopped = [park(client) for _ in range(3)]
    publish("bounded", server.connection("reader"), "sesame", ConnectionsMax=2)
    expect("TimedOut", lambda: client.query("bounded", "SELECT 1", options={"timeout-usec": 300000}).read())
    check_connections(3)
    for run in stopped[1:]:
        run.close()
    check_answers(client)
    check_connections(2)
    stopped[0].close()


@needs_root
def test_two_roles():
    """two users with two roles see what their roles allow"""
    publish("reading", server.connection("reader"), "sesame", AllowUsers=UID_A)
    publish("writing", server.connection("writer"), "open", AllowUsers=UID_B, Mode="read-write", WriteUsers=UID_B)
    reader, writer = service.client(UID_A), service.client(UID_B)
    expect("org.freedesktop.DBus.Error.UnknownObject", lambda: reader.query("writing", "SELECT 1"))
    expect("NotAllowed", lambda: reader.query("reading", "SELECT * FROM secret").read())
    equal(writer.query("writing", "SELECT count(*) FROM secret").read().rows, [[0]])
    writer.execute("writing", "INSERT INTO track VALUES (1001, 'new')")
    equal(reader.query("reading", "SELECT count(*) FROM track").read().rows, [[1001]])
    equal(server.sql("SELECT count(*) FROM track"), ["1001"])
    expect("ReadOnly", lambda: reader.execute("reading", "DELETE FROM track"))


@test
def test_watch():
    """a commit past the service is noticed"""
    publish("watched", server.connection("reader"), "sesame")
    watch = Watch(service.client(), "track", database="watched")
    server.sql("INSERT INTO track VALUES (2000, 'foreign')")
    true(watch.next() is not None, "the foreign commit is told")
    true(len(unit.workers()) >= 1, "the observer is an engine process")
    service.forget()  # otherwise there would be an observer during the other tests


def sleeping():
    """Returns the pids of the server's processes that sleep for a client."""
    sleeps = "FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep%' AND usename = 'reader'"
    return [int(pid) for pid in server.sql(f"SELECT pid {sleeps}")]


@test
def test_cancel():
    """a statement whose client cancels it, is out of time or leaves ends on the server, and its connection is kept"""
    publish("cancelled", server.connection("reader"), "sesame", ConnectionsMax=1)
    client = service.client()

    def pid():
        return client.query("cancelled", "SELECT pg_backend_pid()").read().rows[0][0]

    def cancel():
        run = client.query("cancelled", "SELECT pg_sleep(600)")
        wait_for(sleeping, "the statement runs")
        run.cancel()
        expect("Cancelled", run.read)

    def run_out_of_time():
        run = client.query("cancelled", "SELECT pg_sleep(600)", options={"timeout-usec": 500_000})
        expect("TimedOut", run.read)

    def leave():
        other = service.client()
        other.query("cancelled", "SELECT pg_sleep(600)")
        wait_for(sleeping, "the statement runs")
        other.close()

    for how in (cancel, run_out_of_time, leave):
        for _ in range(10):  # A machine that is too slow for the answer has the connection closed instead.
            before = pid()
            how()
            wait_for(lambda: not sleeping(), "the server has ended the statement")
            if pid() == before:
                break
        else:
            raise AssertionError(f"{how.__name__}: the connection is never used again")


@test
def test_late_cancel():
    """a request to cancel that is late delays no query, and cancels nothing else"""
    with Proxy(server) as proxy:
        publish("late", proxy.connection("reader"), "sesame", ConnectionsMax=2)
        client = service.client()
        run = client.query("late", "SELECT pg_sleep(600)")
        wait_for(sleeping, "the statement runs")
        (asleep,) = sleeping()
        proxy.cancels.clear()
        run.cancel()
        expect("Cancelled", run.read)
        wait_for(lambda: proxy.n_cancels == 1, "the request is on its way")
        for _ in range(10):
            ((pid,),) = client.query("late", "SELECT pg_backend_pid()").read().rows
            true(pid != asleep, "the connection is not used meanwhile")
        proxy.cancels.set()
        for _ in range(100):
            equal(client.query("late", "SELECT 1").read().rows, [[1]])
        wait_for(lambda: not sleeping(), "the server has ended the statement")


def n_waiting():
    """Returns how many of the server's processes wait for the lock of locked()."""
    return int(server.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")[0])


@contextlib.contextmanager
def locked():
    """Statements with WAITS wait on the server until the function that this returns is called."""
    psql = [f"{server.programs}/psql", "-XAtq", "-h", server.folder, "-U", "postgres", "postgres"]
    with subprocess.Popen(psql, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        holder.stdin.write("SELECT pg_advisory_lock(7), 'locked';\n")
        holder.stdin.flush()
        equal(holder.stdout.readline(), "|locked\n")
        yield holder.stdin.close


@contextlib.contextmanager
def table_locked(table):
    """Statements about the table wait on the server until the function that this returns is called."""
    psql = [f"{server.programs}/psql", "-XAtq", "-h", server.folder, "-U", "postgres", "postgres"]
    with subprocess.Popen(psql, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        holder.stdin.write(f"BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE; SELECT 'locked';\n")
        holder.stdin.flush()
        equal(holder.stdout.readline(), "locked\n")
        yield holder.stdin.close


WRITE = "INSERT INTO secret VALUES (77)"
WRITES = {
    "Query": ("(sava{sv}a{sv})", WRITE, [], {}, {}),
    "OpenRows": ("(sava{sv}a{sv})", WRITE, [], {}, {}),
    "QueryRows": ("(sava{sv}a{sv})", WRITE, [], {}, {}),
    "Execute": ("(sava{sv}a{sv})", WRITE, [], {}, {}),
    "ExecuteBatch": ("(a(sava{sv})a{sv})", [(WRITE, [], {})], {}),
}


@test
def test_cancelled_writes():
    """a call that is cancelled before it is answered says that nothing was written, and nothing is"""
    publish("cancelled", server.connection("writer"), "open", Mode="read-write")
    for method, (signature, *arguments) in WRITES.items():
        client = service.client()
        with table_locked("secret") as unlock:
            call = client.begin(object_path("cancelled"), DATABASE, method, signature, *arguments)
            waits = "SELECT count(*) FROM pg_locks WHERE NOT granted"
            wait_for(lambda: server.sql(waits) == ["1"], "the statement waits for the lock")
            client.database("cancelled", "Cancel", "(ta{sv})", 0, {"call": GLib.Variant("u", call.serial)})
            expect("Cancelled", call.result)
            unlock()
        wait_for(lambda: server.sql("SELECT count(*) FROM pg_locks WHERE NOT granted") == ["0"], "no statement waits")
        client.execute("cancelled", "INSERT INTO secret VALUES (78)")  # after all that was under way
        equal(server.sql("SELECT count(*) FROM secret WHERE id = 77"), ["0"], method)
        unknown = {"call": GLib.Variant("u", call.serial)}
        expect("UnknownRun", client.database, "cancelled", "Cancel", "(ta{sv})", 0, unknown)
        client.close()


WAITS = "SELECT 7 FROM (SELECT pg_advisory_xact_lock_shared(7)) AS lock"


class BusVictim:
    """A transaction of a client of the bus. Each function returns the name of its error; "": none."""

    def __init__(self, name):
        self.name, self.client = name, service.client()

    def _call(self, method, signature, *arguments):
        try:
            self.values = self.client.database(self.name, method, signature, *arguments)[0]
        except Failure as failure:
            return failure.name.removeprefix("org.sqlipc1.Error.")
        return ""

    def begin(self):
        answer = self._call("Begin", "(a{sv})", {"mode": GLib.Variant("s", "write")})
        self.transaction = self.values[0].get_uint64()
        return answer

    def run(self, sql):
        return self._call("Execute", "(sava{sv}a{sv})", sql, [], {}, {"transaction": GLib.Variant("t", self.transaction)})

    def commit(self):
        return self._call("Commit", "(ta{sv})", self.transaction, {})

    def rollback(self):
        """A transaction that is over has nothing to roll back, and says so."""
        return self._call("Rollback", "(ta{sv})", self.transaction, {}).replace("TransactionEnded", "")

    def close(self):
        self.client.close()


class LibraryVictim:
    """The same by libsqlipc."""

    def __init__(self, name):
        self.name, self.library = name, Library(service)

    def _ask(self, line):
        answer = self.library.ask(line)[1]
        words = answer.split(" ", 6)
        if words[0] != "error":
            return ""
        return answer if words[5] == "-" else words[5].removeprefix("org.sqlipc1.Error.")

    def begin(self):
        return self._ask(f"begin write {self.name}")

    def run(self, sql):
        return self._ask(f"exec {self.name} {sql}")

    def commit(self):
        return self._ask("commit")

    def rollback(self):
        answer = self._ask("rollback")
        self.library.ok("drop")
        return answer

    def close(self):
        self.library.close()


class PythonVictim:
    """The same by the package for Python."""

    PROGRAM = """
import sys, sqlipc
db = sqlipc.connect(sys.argv[1], bus=sys.argv[2])
for line in sys.stdin:
    try:
        (getattr(db, line.strip(), None) or (lambda: db.execute(line)))()
        print("", flush=True)
    except sqlipc.OperationalError as error:
        print((error.service_error or str(error)).removeprefix("org.sqlipc1.Error."), flush=True)
"""

    def __init__(self, name):
        command = [sys.executable, "-c", self.PROGRAM, name, service.address]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=service.environment | python_package())  # fmt: skip

    def run(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        true(answer, "Python goes on")
        return answer.strip()

    def begin(self):
        return self.run("BEGIN IMMEDIATE")

    def commit(self):
        return self.run("commit")

    def rollback(self):
        return self.run("rollback")

    def close(self):
        self.process.stdin.close()
        equal(self.process.wait(PATIENCE), 0, "exit code of Python")
        self.process.stdout.close()


@contextlib.contextmanager
def rival():
    """A program of the server that holds track 2, and waits for track 1 when the function that this yields is called. It
    never finds the deadlock, so the service's transaction is the one that the server ends. After that it commits."""
    psql = [f"{server.programs}/psql", "-XAtq", "-h", server.folder, "-U", "postgres", "postgres"]
    with subprocess.Popen(psql, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def say(line):
            process.stdin.write(line + "\n")
            process.stdin.flush()

        def wait():
            say("UPDATE track SET name = 'rival' WHERE id = 1; SELECT 'both';")
            waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
            wait_for(lambda: server.sql(waiting) == ["1"], "the rival waits for the victim")

        say("BEGIN; SET deadlock_timeout = '1h'; UPDATE track SET name = 'rival' WHERE id = 2; SELECT 'one';")
        equal(process.stdout.readline(), "one\n")
        yield wait
        equal(process.stdout.readline(), "both\n", "the rival goes on")
        say("COMMIT; SELECT 'done';")
        equal(process.stdout.readline(), "done\n")


def names():
    return server.sql("SELECT name FROM track WHERE id IN (1, 2, 3) ORDER BY id")


def update(number):
    return f"UPDATE track SET name = 'victim' WHERE id = {number}"


def check_deadlock(victim, at_commit):
    server.sql("UPDATE track SET name = 'old' WHERE id IN (1, 2, 3)")
    equal(victim.begin(), "")
    equal(victim.run(update(1)), "")
    # This releases the savepoint of the first write. The rival would wait for it first, be woken by the release, and queue
    # again: if it took longer than the victim's deadlock_timeout, the deadlock would stay.
    equal(victim.run(update(3)), "")
    with rival() as wait:
        if at_commit:
            equal(victim.run("INSERT INTO touched VALUES (2)"), "")
        wait()
        if not at_commit:
            equal(victim.run(update(2)), "Busy", "the statement that closes the circle")
            equal(victim.run(update(3)), "TransactionEnded", "a later one")
        equal(victim.commit(), "Busy" if at_commit else "TransactionEnded", "the commit")
    equal(names(), ["rival", "rival", "old"], "nothing of it is written")
    equal(victim.rollback(), "", "the rollback")
    equal([victim.begin(), *(victim.run(update(i)) for i in (1, 2, 3)), victim.commit()], [""] * 5, "all of it again")
    equal(names(), ["victim"] * 3)


@test
def test_deadlock():
    """the victim of a deadlock, of the bus, libsqlipc or Python, commits nothing, by statement or commit; a repeat works"""
    server.sql(
        "ALTER ROLE writer SET deadlock_timeout = '10ms';"
        "CREATE TABLE touched (id integer); GRANT INSERT ON touched TO writer;"
        "CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS"
        " $$BEGIN UPDATE track SET name = 'touched' WHERE id = NEW.id; RETURN NULL; END$$;"
        "CREATE CONSTRAINT TRIGGER touch AFTER INSERT ON touched DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION touch()"
    )
    publish("deadlock", server.connection("writer"), "open", Mode="read-write")
    kinds = [BusVictim, PythonVictim]
    if PROGRAM.exists():  # not in a build without tests
        kinds.append(LibraryVictim)
    for kind in kinds:
        for at_commit in (False, True):
            victim = kind("deadlock")
            check_deadlock(victim, at_commit)
            victim.close()


@test
def test_side_by_side():
    """slow statements of a worker's channels run at once, and delay no other; clients cancel, run out of time, leave"""
    with Service(environment=unit.environment, limits={"WorkersMax": 1}) as one_worker, locked() as unlock:
        one_worker.database("shared", Engine="postgresql", Connection=server.connection("postgres"))
        one_worker.driver.manager("Reload")
        quick, *slow = [Channel(one_worker.client(), "shared") for _ in range(6)]
        equal([c.ask("SELECT 1") for c in (quick, *slow)], [[[1]]] * 6)
        runs = [c.query(WAITS) for c in slow[1:]]
        expect("TimedOut", lambda: slow[0].ask(WAITS, timeout_usec=500_000))
        wait_for(lambda: n_waiting() == 4, "the others wait")
        wait_for(lambda: one_worker.counters()["NRuns"] == 4, "the supervisor knows them, though others came just before")
        equal([c.ask("SELECT 2") for c in (quick, slow[0])], [[[2]]] * 2)
        slow[1].cancel(runs[0])
        expect("Cancelled", lambda: slow[1].read(runs[0]))
        slow[2].close()
        wait_for(lambda: n_waiting() == 2, "their statements end on the server")
        unlock()
        equal([c.read(run).rows for c, run in zip(slow[3:], runs[2:])], [[[7]]] * 2)


@test
def test_no_pins():
    """a connection of a client's own is refused, as sessions are reset"""
    client = service.client()
    failure = expect("NotAllowed", client.database, "reading", "Begin", "(a{sv})", {"mode": GLib.Variant("s", "pin")})
    true("TEMP" in failure.message, failure)
    equal(client.query("reading", "SELECT 1").read().rows, [[1]])


@test
def test_end_in_late_cancel():
    """a worker ends soon, and its clients are told, though the server does not answer to a request to cancel"""
    n_logged = len(service.log_text())
    with Proxy(server) as proxy:

        def begin(connections):
            """Begins two runs, and cancels one of them, but the request does not get through. Returns the other, and their
            workers."""
            others = set(unit.workers())
            publish("late", proxy.connection("reader"), "sesame", ConnectionsMax=connections)
            client = service.client()
            runs = [client.query("late", "SELECT pg_sleep(600)") for _ in range(2)]
            wait_for(lambda: len(sleeping()) == 2, "both statements run")
            proxy.cancels.clear()
            before = proxy.n_cancels
            runs[0].cancel()
            expect("Cancelled", runs[0].read)
            wait_for(lambda: proxy.n_cancels > before, "the request is on its way")
            return runs[1], set(unit.workers()) - others

        def check_end(workers):
            true(len(workers) > 0, "workers")
            wait_for(lambda: not workers & set(unit.workers()), "the workers end")
            log = service.log_text()[n_logged:]
            true("killed" not in log, log)
            proxy.cancels.set()
            wait_for(lambda: not sleeping(), "the server has ended the statements")

        run, workers = begin(3)
        publish("late", proxy.connection("reader"), "sesame", ConnectionsMax=2)
        run.cancel()
        expect("Cancelled", run.read)
        check_end(workers)

        run, workers = begin(2)
        service.stop()
        expect("ShuttingDown", run.read)
        check_end(workers)
        service.start()


def mode(name):
    return {"mode": GLib.Variant("s", name)}


@test
def test_slow_commit():
    """a commit that the server does not answer in time has an unknown outcome, and its worker lives"""
    end_workers()
    publish("slow", server.connection("writer"), "open", Mode="read-write", ConnectionsMax=1)
    client, insert = service.client(), "INSERT INTO slow VALUES (1)"
    equal(client.query("slow", "SELECT 1").read().rows, [[1]])
    workers = set(unit.workers())
    run = {"timeout-usec": GLib.Variant("t", 500_000)}
    failure = expect("OutcomeUnknown", client.execute, "slow", insert, options=run)
    true("not answered to the commit in time" in failure.message and "look before" in failure.message, failure.message)

    other = service.client()
    transaction = other.database("slow", "Begin", "(a{sv})", mode("write"))[0][0].get_uint64()
    other.execute("slow", insert, options={"transaction": GLib.Variant("t", transaction)})
    commits = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'writer' AND wait_event = 'PgSleep'"
    wait_for(lambda: server.sql(commits) == ["0"], "the first commit ends")
    other.begin(object_path("slow"), DATABASE, "Commit", "(ta{sv})", transaction, {})
    wait_for(lambda: server.sql(commits) == ["1"], "the commit is under way")
    other.close()
    wait_for(lambda: server.sql(commits) == ["0"], "the commit ends with its client")
    client.execute("slow", "INSERT INTO secret VALUES (1)")
    true(workers <= set(unit.workers()), "the worker lives")


@test
def test_slow_begin():
    """a transaction for which the server is not reached ends in time or with its client, and its worker lives"""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        to = f"host=127.0.0.1 port={listener.getsockname()[1]} user=writer sslmode=disable gssencmode=disable"
        publish("silent", to, Mode="read-write", ConnectionsMax=1)
        client, workers = service.client(), []

        def given_up(function):
            """Runs the function while the worker connects, and returns when the worker has closed that connection."""
            one, _ = listener.accept()
            with one:
                one.settimeout(PATIENCE)
                workers.append(sorted(unit.workers()))
                function()
                while one.recv(4096):
                    pass

        insert = "INSERT INTO secret VALUES (1)", [], {}, {"timeout-usec": GLib.Variant("t", 500_000)}
        call = client.begin(object_path("silent"), DATABASE, "Execute", "(sava{sv}a{sv})", *insert)
        given_up(lambda: expect("TimedOut", call.result))
        for name in ("write", "read"):
            other = service.client()
            other.begin(object_path("silent"), DATABASE, "Begin", "(a{sv})", mode(name))
            given_up(other.close)
        workers.append(sorted(unit.workers()))
        equal(workers, [workers[0]] * 4, "workers")


@test
def test_down():
    """without the server, the error says so; after its start the next query succeeds"""
    publish("reading", server.connection("reader"), "sesame")
    client = service.client()
    equal(client.query("reading", "SELECT 1").read().rows, [[1]])
    server.stop()
    expect("ServerUnreachable", lambda: client.query("reading", "SELECT 1").read())
    server.start()

    def answers():
        try:
            return client.query("reading", "SELECT 1").read().rows == [[1]]
        except Exception:  # noqa: BLE001 - it pauses between its attempts
            return False

    wait_for(answers, "a query succeeds again")


@test
def test_unreachable_in_the_log():
    """the error for a reader does not name the address of the server; the log of the engine does"""
    publish("lost", "host=/nowhere/secret port=5439 user=reader dbname=postgres")
    failure = expect("ServerUnreachable", service.client().query_rows, "lost", "SELECT 1")
    true("secret" not in failure.message and "5439" not in failure.message, failure.message)
    wait_for(lambda: "/nowhere/secret/.s.PGSQL.5439" in unit.log_text(), "the log has it")


@test
def test_functions_with_effect():
    """a query that calls pg_notify() or lo_from_bytea() takes effect, or is refused to a user who may only read"""
    publish("effects", server.connection("writer"), "open", Mode="read-write", ConnectionsMax=2)
    publish("without", server.connection("reader"), "sesame")
    client, makes = service.client(), "SELECT lo_from_bytea(0, 'x')"
    count = "SELECT count(*) FROM pg_largeobject_metadata"
    before = int(server.sql(count)[0])
    expect("ReadOnly", lambda: client.query("without", makes).read())
    equal(int(server.sql(count)[0]), before, "objects")
    client.query("effects", makes).read()
    equal(int(server.sql(count)[0]), before + 1, "objects after a query")
    client.query("effects", "SELECT pg_notify('heard', 'x')").read()


FUNCTIONS = """
CREATE TABLE job (id serial PRIMARY KEY, name text UNIQUE);
INSERT INTO job (name) VALUES ('old');
CREATE FUNCTION tell(x text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_notify('heard', x); RETURN 1; END $$;
CREATE FUNCTION tell_nested(x text) RETURNS int LANGUAGE sql AS $$ SELECT tell(x) $$;
CREATE FUNCTION enqueue(x text) RETURNS int LANGUAGE sql AS $$ INSERT INTO job (name) VALUES (x) RETURNING tell(x) $$;
CREATE FUNCTION get_or_create(x text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
    IF NOT EXISTS (SELECT FROM job WHERE name = x) THEN INSERT INTO job (name) VALUES (x); END IF; RETURN x; END $$;
CREATE FUNCTION replaced(x text) RETURNS int LANGUAGE sql AS $$ SELECT length(x) $$;
GRANT SELECT ON job TO reader; GRANT ALL ON job TO writer; GRANT ALL ON job_id_seq TO writer;
"""
DROP_FUNCTIONS = "DROP FUNCTION tell, tell_nested, enqueue, get_or_create, replaced; DROP TABLE job"
READ_ONLY = "SELECT CASE current_setting('transaction_read_only') WHEN 'on' THEN 7 END"


@contextlib.contextmanager
def functions():
    server.sql(FUNCTIONS)
    yield
    server.sql(DROP_FUNCTIONS)


@contextlib.contextmanager
def listening():
    """Returns a function that returns what was heard since its last call."""
    psql = [f"{server.programs}/psql", "-XAtq", "-h", server.folder, "-U", "postgres", "postgres"]
    with subprocess.Popen(psql, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as listener:

        def heard():
            listener.stdin.write("LISTEN heard; SELECT 'one'; SELECT 'end';\n")  # psql tells notices after a statement
            listener.stdin.flush()
            lines = iter(listener.stdout.readline, "end\n")
            return [line.split('payload "')[1].split('"')[0] for line in lines if "payload" in line]

        equal(heard(), [])
        yield heard
        listener.stdin.close()


@test
def test_functions_of_users():
    """a query whose function notifies or writes takes effect on every way, or is refused to a user who may only read"""
    publish("effects", server.connection("writer"), "open", Mode="read-write", ConnectionsMax=2)
    publish("without", server.connection("reader"), "sesame")
    client = service.client()
    program = """
import sys, sqlipc
for isolation_level in (None, ""):
    db = sqlipc.connect("effects", bus=sys.argv[1], isolation_level=isolation_level)
    print(db.execute("SELECT tell('Python')").fetchall())
    db.commit()
    db.close()
"""
    with functions(), listening() as heard:
        for sql in ("SELECT tell('x')", "SELECT tell_nested('x')"):
            expect("ReadOnly", lambda sql=sql: client.query("without", sql).read())
            equal(heard(), [])
            equal(client.query("effects", sql).read().rows, [[1]])
            expect("NotAllowed", lambda sql=sql: client.execute("effects", sql))  # it returns rows
            expect("NotAllowed", lambda sql=sql: client.execute_batch("effects", [sql]))
            statement = client.prepare("effects", sql)
            equal(statement.fetch().read().rows, [[1]])
            statement.close()
            equal(heard(), ["x"] * 2, sql)
        channel = Channel(client, "effects")
        number = channel.prepare("SELECT tell(?)")
        channel.statement(number)
        for i in range(3):
            equal(channel.read(channel.fetch(number, f"fetched {i}")).rows, [[1]])
        equal(heard(), ["fetched 0", "fetched 1", "fetched 2"])
        number = channel.prepare("SELECT replaced(?)")
        channel.statement(number)
        equal(channel.read(channel.fetch(number, "before")).rows, [[6]])
        server.sql("CREATE OR REPLACE FUNCTION replaced(x text) RETURNS int LANGUAGE sql AS $$ SELECT tell(x) $$")
        wait_for(lambda: channel.read(channel.fetch(number, "after")).rows == [[1]] and heard(), "the new function is heard")
        server.sql(f"CREATE OR REPLACE FUNCTION replaced(x text) RETURNS int LANGUAGE sql AS $$ {READ_ONLY} $$")
        wait_for(lambda: channel.read(channel.fetch(number, "at last")).rows == [[7]], "the statement only reads again")
        channel.close()
        shell = service.run(CLI, f"--address={service.address}", "--mode=csv", "effects", "-c", "SELECT tell('shell') AS n")
        equal((shell.returncode, shell.stdout.decode().split()), (0, ["n", "1"]))
        equal(heard(), ["shell"])
        done = service.run(sys.executable, "-c", program, service.address, environment=python_package())
        equal((done.returncode, done.stdout.decode().splitlines()), (0, ["[(1,)]"] * 2), done.stderr.decode())
        equal(heard(), ["Python"] * 2)
        equal(client.query("effects", "SELECT enqueue('new')").read().rows, [[1]])
        equal(server.sql("SELECT count(*) FROM job WHERE name = 'new'"), ["1"])
        equal(heard(), ["new"])
        expect("ReadOnly", lambda: client.query("without", "SELECT enqueue('no')").read())
        equal(client.query("without", "SELECT get_or_create('old')").read().rows, [[Text(b"old")]])
        expect("ReadOnly", lambda: client.query("without", "SELECT get_or_create('newer')").read())
        equal(client.query("effects", "SELECT get_or_create('newer')").read().rows, [[Text(b"newer")]])
        equal(server.sql("SELECT count(*) FROM job"), ["3"])


@test
def test_watched_functions():
    """watchers learn of the tables that a function writes, and a query that calls one cannot be watched"""
    publish("effects", server.connection("writer"), "open", Mode="read-write")
    client = service.client()
    with functions():
        watch = Watch(client, "job", database="effects")
        client.query("effects", "SELECT get_or_create('watched')").read()
        true(watch.next() is not None, "the commit is told")
        failure = expect("NotAllowed", lambda: Watch(client, database="effects", sql="SELECT get_or_create('old')"))
        true("cannot be watched" in failure.message, failure.message)
    service.forget()


@test
def test_shell_lists():
    """the shell's .tables, .views, .indexes, \\d show the server's; other commands say what to use"""
    server.sql(
        'CREATE SCHEMA hidden; CREATE TABLE hidden.away(); CREATE TABLE "Odd + name" (a text NOT NULL DEFAULT 7);'
        "CREATE VIEW recent AS SELECT * FROM track; CREATE INDEX by_name ON track(name);"
        'GRANT SELECT ON "Odd + name", recent TO reader'
    )
    publish("shown", server.connection("reader"), "sesame")

    def shell(*commands, code=0):
        done = service.run(CLI, f"--address={service.address}", "shown", *commands)
        equal(done.returncode, code, f"exit code of {commands}, which said {done.stderr.decode()!r}")
        return (done.stdout if code == 0 else done.stderr).decode()

    equal(shell(".tables").split(), ["Odd", "+", "name", "recent", "track"], "tables")
    equal(shell(".mode csv", ".tables 'odd + name'"), 'name\n"Odd + name"\n', "a pattern of LIKE, in a mode")
    equal(shell(".tables [q-t]*").split(), ["recent", "track"], "a pattern of GLOB")
    equal(shell(".views").split(), ["recent"], "views")
    equal(shell(".indexes track").split(), ["by_name", "track_pkey"], "indexes")
    equal(shell(".mode csv", "\\d 'odd + name'"), 'column,type,null,default\na,text,"not null",7\n', "columns")
    true("recent" in shell("\\d"), "everything")
    true("there is no table" in shell("\\d frob", code=1), "an unknown table")
    for command in (".schema", ".functions", ".dump", "SELECT * FROM sqlite_master"):
        message = shell(command, code=1)
        true("this is PostgreSQL" in message and "pg_dump" in message, f"{command}: {message}")


# 10 rows of "victim" go if a piece of a string, a comment or a body runs as a statement.
SCRIPT = """
CREATE FUNCTION one() RETURNS SETOF int LANGUAGE sql AS $$ SELECT 1; DELETE FROM victim; SELECT 2; $$;
CREATE FUNCTION two() RETURNS int LANGUAGE plpgsql AS $body$ BEGIN
    DELETE FROM victim; -- $$ ;
    RETURN 1; END; $body$;
CREATE PROCEDURE three() BEGIN ATOMIC
    DELETE FROM victim;
    INSERT INTO victim SELECT CASE WHEN true THEN 1 END;
END;
SELECT E'it\\'s; DELETE FROM victim; --', 'a\\'; /* /* */ ; DELETE FROM victim; */ SELECT 1::text;
SELECT E'it'
  '\\'; DELETE FROM victim; --';
SELECT U&"\\0061;DELETE FROM victim;" FROM (VALUES (1)) AS x(U&"\\0061;DELETE FROM victim;");
INSERT INTO done VALUES ('a;b'); -- \r INSERT INTO done VALUES ('c');
"""


def open_victim(name):
    server.sql(
        "DROP TABLE IF EXISTS victim, done CASCADE; CREATE TABLE victim (id integer); CREATE TABLE done (t text);"
        "INSERT INTO victim SELECT generate_series(1, 10);"
        "DROP FUNCTION IF EXISTS one, two; DROP PROCEDURE IF EXISTS three"
    )
    publish(name, server.connection("postgres"), Mode="read-write", WriteSchema="yes")


def check_victim():
    equal(server.sql("SELECT count(*) FROM victim"), ["10"], "rows of the victim")
    equal(server.sql("SELECT string_agg(t, ' ' ORDER BY t) FROM done"), ["a;b c"], "statements that the script has")
    equal(server.sql("SELECT count(*) FROM pg_proc WHERE proname IN ('one', 'two', 'three')"), ["3"], "functions")


@test
def test_shell_scripts():
    """the shell splits a script by PostgreSQL's rules: bodies, strings and comments are not run; casts are no parameters"""

    def shell(*arguments, stdin="", code=0):
        done = service.run(CLI, f"--address={service.address}", *arguments, input=stdin.encode())
        equal(done.returncode, code, f"exit code, of {done.stderr.decode()!r}")
        return (done.stdout if code == 0 else done.stderr).decode()

    open_victim("split")
    shell("split", stdin=SCRIPT)
    check_victim()
    open_victim("split")
    shell("split", "-c", SCRIPT)
    check_victim()
    open_victim("split")
    shell(stdin=".open split\n" + SCRIPT)
    check_victim()
    equal(shell("split", "-c", "SELECT 1::text AS a", "--mode=csv").split(), ["a", "1"], "a cast")
    rows = shell("split", "--mode=csv", "--param=1=7", "-c", "SELECT $1::int + 1 AS a, $$?$$ AS b").split()
    equal(rows, ["a,b", "8,?"], "a parameter by number")
    data = "COPY done FROM STDIN;\nINSERT INTO done VALUES ('data');\n\\.\nINSERT INTO done VALUES (1);"
    message = shell("split", stdin=data, code=1)
    true("COPY" in message and ".import" in message, message)
    check_victim()


@test
def test_python_scripts():
    """sqlipc for Python splits executescript() by PostgreSQL's rules; casts are no parameters"""
    program = """
import asyncio, sys, sqlipc, sqlipc.aio
address, script = sys.argv[1:]
db = sqlipc.connect("split", bus=address)
db.executescript(script)
print(db.execute("SELECT 1::text").fetchone())
print(db.execute("SELECT $1::int, ?::text, jsonb_build_object() ?? 'b'", (7, "x")).fetchone())
try:
    db.execute("SELECT '\\\\'; DELETE FROM victim; --'")
except sqlipc.ProgrammingError as error:
    print(error)
db.executemany("INSERT INTO victim VALUES (?::int)", [(1,), (2,)])
db.rollback()
async def later():
    async with sqlipc.aio.connect("split", bus=address) as other:
        async with other.execute("SELECT 2::text, E'\\\\' ?'") as cursor:
            print(await cursor.fetchone())
asyncio.run(later())
"""
    open_victim("split")
    done = service.run(sys.executable, "-c", program, service.address, SCRIPT, environment=python_package())
    equal((done.returncode, done.stderr.decode()), (0, ""), "exit code and errors")
    equal(done.stdout.decode().splitlines(), ["('1',)", "(7, 'x', 0)", "You can only execute one statement at a time.",
                                              "('2', \"' ?\")"], "lines that it printed")
    check_victim()


@test
def test_moved_scripts():
    """a shell and a Python connection that are open while a file is replaced by a server split by the server's rules then"""
    program = """
import sys, sqlipc
db = sqlipc.connect("split", bus=sys.argv[1])
db.executescript("SELECT 'a\\\\'; SELECT [x] FROM (SELECT 1 AS x)")
print("ready", flush=True)
db.executescript(sys.stdin.read())
"""
    for is_shell in (True, False):
        service.database("split", Path=CHINOOK)
        service.driver.manager("Reload")
        if is_shell:
            command, more = [CLI, f"--address={service.address}", "--mode=csv", "split"], {}
        else:
            command = [sys.executable, "-c", program, service.address]
            more = python_package()
        process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=service.environment | more)  # fmt: skip
        if is_shell:
            process.stdin.write(b"SELECT 'ready', 'a\\', [x] FROM (SELECT 1 AS x);\n")
            process.stdin.flush()
        true(b"ready" in process.stdout.readline(), "the first script")
        open_victim("split")
        err = process.communicate(SCRIPT.encode(), timeout=PATIENCE)[1].decode()
        equal((process.returncode, err), (0, ""), f"exit code, of {'the shell' if is_shell else 'Python'}")
        check_victim()


@test
def test_end():
    """nothing is left"""
    service.close()
    unit.close()
    rest = "SELECT count(*) FROM pg_stat_activity WHERE usename IN ('reader', 'writer')"
    wait_for(lambda: server.sql(rest) == ["0"], "the server's processes for sqlipc end")
    server.close()


main()
