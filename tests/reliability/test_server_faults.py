#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A PostgreSQL server, or the network to it, fails: each failure is a named error within its deadline, leaves nothing
behind, and delays no other client.

usage: test_server_faults.py [--all] [TEST]...

With --all every message of the server is spoiled in every way, which takes minutes; otherwise each in a few of them.
"""
import contextlib
import ctypes
import functools
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bus"))
import postgres_proxy  # noqa: E402
from client import Broken, Failure  # noqa: E402
from engine_unit import ENGINE, EngineUnit  # noqa: E402
from harness import (  # noqa: E402
    CHINOOK, PATIENT, SANITIZED, Service, expect, fds, free_ports, main, test_unsanitized, wait_for,
)  # fmt: skip
from postgres import for_tests  # noqa: E402
from postgres_proxy import Proxy  # noqa: E402
from tap import Skip, cases, equal, test, true  # noqa: E402

EVERY = 1 if "--all" in sys.argv else 4
sys.argv = [argument for argument in sys.argv if argument != "--all"]
N_ROWS = 50
SCHEMA = f"""
    CREATE ROLE app LOGIN;
    CREATE ROLE hasty LOGIN;
    ALTER ROLE hasty SET statement_timeout = '1s';
    CREATE TABLE t(id int PRIMARY KEY, text text);
    INSERT INTO t SELECT i, 'row ' || i FROM generate_series(1, {N_ROWS}) i;
    CREATE TABLE written(n int PRIMARY KEY);
    GRANT SELECT ON t TO app, hasty;
    GRANT SELECT, INSERT ON written TO app;
"""
ROWS = "SELECT id, text FROM t ORDER BY id"
ALL = [[i, f"row {i}"] for i in range(1, N_ROWS + 1)]
HASTE = {"timeout-usec": 150_000}
N_SETTINGS = 14  # so many messages begin a session: the login, and settings of the server
# The names that a server's failure may have.
NAMED = {"ServerUnreachable", "LoginFailed", "TimedOut", "OutOfMemory", "Sql", "LimitsExceeded", "TransactionEnded"}

server = for_tests(SCHEMA, port=free_ports(1)[0], listen_addresses="127.0.0.1",
                   access="local all all trust\nhostssl all all 127.0.0.1/32 trust\n")  # fmt: skip


@contextlib.contextmanager
def relay(limits=None, environment=None, **databases):
    """A service with these databases of servers, and `file`, which is one of SQLite; service.engines starts its engines."""
    with EngineUnit(ENGINE) as unit:
        databases = {name: {"Engine": "postgresql"} | keys for name, keys in databases.items()} | {"file": CHINOOK}
        with Service(databases, limits=limits, environment=unit.environment | (environment or {})) as service:
            service.engines = unit
            yield service
            service.forget()
    wait_for(lambda: not server.clients(), "no connection to the server is left")


def text_rows(result):
    return [[number, bytes(text).decode()] for number, text in result.rows]


def outcome(call):
    """Returns the result, or the name of the error."""
    try:
        return call()
    except Failure as failure:
        return failure.name.rsplit(".", 1)[1]
    except Broken:
        return "Broken"


def counts(service):
    """Returns what must not grow."""
    return len(fds(service.pid())) if os.geteuid() == 0 else 0


def settle(service):
    wait_for(lambda: not service.engines.keepers(), "engine processes end")
    wait_for(service.is_idle, "the service has forgotten all runs")


# ---- the protocol ----

# A worker that has just failed pauses before it connects again, so each trial has a new one.
SHORT_LIVES = {"WorkerIdleSec": 0}


def haste(how):
    """Returns the options of a call that would otherwise wait for long. A connection that has ended needs none."""
    return None if how in (postgres_proxy.ends, postgres_proxy.cut) else HASTE


def n_messages(service, proxy, call):
    """Returns how many messages the server sends for a call that works."""
    true(not isinstance(call(), str), "the call works")
    n = proxy.n_messages
    settle(service)
    return n


@test
def broken_protocol():
    """A server that breaks the protocol at each of its messages, in each way: a named error, and nothing is left"""
    with Proxy(server) as proxy, relay(SHORT_LIVES, db={"Connection": proxy.connection("app")}) as service:
        client, seen, bad = service.client(), {}, []

        def ask(options=None):
            return text_rows(client.query("db", ROWS, options=options).read())

        n = n_messages(service, proxy, lambda: outcome(ask))
        true(n > N_ROWS, f"{n} messages")
        settle(service)
        n_trials, before = 0, counts(service)
        numbers = [0, 1, *range(N_SETTINGS, n - N_ROWS - 4), n - N_ROWS // 2, *range(n - 6, n)]  # not each row
        for index, how in enumerate(postgres_proxy.HONEST + postgres_proxy.LIES):
            for number in numbers[index % EVERY :: EVERY]:
                settle(service)
                proxy.spoil(number, how)
                got = outcome(lambda: ask(haste(how)))
                at = f"{how.__name__} at message {number}"
                n_trials += 1
                if isinstance(got, str):
                    seen.setdefault(got, set()).add(how.__name__)
                if got not in NAMED if isinstance(got, str) else how in postgres_proxy.HONEST and got != ALL:
                    bad.append(f"{at}: {str(got):.100}")
        proxy.spoil(None, None)
        equal(bad, [], "wrong answers")
        settle(service)
        equal(ask(), ALL, "rows of the same service afterwards")
        settle(service)
        wait_for(lambda: counts(service) <= before, "no descriptor of the service is left")
        print(f"# {seen}")
        cases("a broken protocol", n_trials, "a message of the server spoiled, each with its own connection")


@test
def broken_writes():
    """The connection breaks at each message of a write: what is acknowledged is written, what has failed is not"""
    keys = {"Mode": "read-write", "WriteUsers": "*"}
    with Proxy(server) as proxy, relay(SHORT_LIVES, db={"Connection": proxy.connection("app")} | keys) as service:
        client, numbers = service.client(), iter(range(1, 1_000_000))
        results = {"written": [], "unknown": [], "failed": []}

        def write(options=None):
            number = next(numbers)
            got = outcome(lambda: client.execute("db", "INSERT INTO written VALUES (?)", [number], options=options)[0])
            results["written" if got == 1 else "unknown" if got == "OutcomeUnknown" else "failed"].append(number)
            return got

        n = n_messages(service, proxy, write)
        bad = []
        for index, how in enumerate(postgres_proxy.HONEST):
            for number in range(N_SETTINGS + index % EVERY, n, EVERY):
                settle(service)
                proxy.spoil(number, how)
                got = write(haste(how))
                if got != 1 and got not in NAMED | {"OutcomeUnknown"}:
                    bad.append(f"{how.__name__} at message {number}: {got}")
        proxy.spoil(None, None)
        equal(bad, [], "wrong answers")
        settle(service)
        equal(write(), 1, "a write afterwards")
        wait_for(lambda: len(server.clients()) <= 1, "the server has ended what was in flight")
        there = {int(line) for line in server.sql("SELECT n FROM written")}
        equal(sorted(set(results["written"]) - there), [], "acknowledged writes that are not there")
        equal(sorted(set(results["failed"]) & there), [], "writes that have failed, and are there")
        true(results["unknown"], "some outcomes are unknown")
        print("# " + ", ".join(f"{len(v)} {k}" for k, v in results.items()))
        cases("a broken write", sum(map(len, results.values())), "a connection that breaks during a write")


# ---- the network ----


def others_are_served(service, pending, n=50):
    """Other clients, of a file and of the server itself, get n answers each while a call has none."""
    other = service.client()
    for _ in range(n):
        equal(other.query_rows("file", "SELECT count(*) FROM artist")[1], [[275]], "a file's rows")
        equal(other.query_rows("direct", "SELECT count(*) FROM t")[1], [[N_ROWS]], "the server's rows")
    true(not pending.is_done(), "the call still waits")


def pending_query(client, sql=ROWS, options=None):
    return client.begin("/org/sqlipc1/database/db", "org.sqlipc1.Database", "QueryRows", "(sava{sv}a{sv})", sql, [], {},
                        client._options(options))  # fmt: skip


@test
def cut_network():
    """No byte gets through: the call ends at its deadline, others are served meanwhile, and the next query succeeds"""
    with Proxy(server) as proxy:
        databases = {"db": {"Connection": proxy.connection("app", connect_timeout=600)},
                     "direct": {"Connection": server.connection("app")}}  # fmt: skip
        for connected in (True, False):
            with relay(PATIENT | {"PrepareTimeoutSec": 600}, **databases) as service:
                client = service.client()
                if connected:
                    equal(text_rows(client.query("db", ROWS).read()), ALL, "rows")
                proxy.hold()
                pending = pending_query(client)
                others_are_served(service, pending)
                equal(outcome(lambda: client.query("db", ROWS, options=HASTE).read()), "TimedOut", "another call's deadline")
                true(not pending.is_done(), "the first call still waits")
                proxy.let_go()
                equal(pending.result()[1].n_children(), N_ROWS, "rows of the call that waited")
                wait_for(lambda: not isinstance(outcome(lambda: client.query("db", ROWS).read()), str), "the next query")


@test
def silent_server():
    """The error of a call whose SQL the server does not compile in time names the server"""
    short = {"PrepareTimeoutSec": "200ms"}
    with Proxy(server) as proxy, relay(short, db={"Connection": proxy.connection("app")}) as service:
        client = service.client()
        proxy.hold()
        failure = expect("TimedOut", lambda: client.query("db", ROWS).read())
        true("server did not answer" in failure.message, failure)


@test
def reset_network():
    """Connections that are reset: a run in the middle of its rows fails, and the next query succeeds at once"""
    with Proxy(server) as proxy, relay(PATIENT, db={"Connection": proxy.connection("app")}) as service:
        client = service.client()
        for _ in range(5):
            run = client.query("db", "SELECT generate_series(1, 10000000), repeat('x', 1000)")
            run.frame()
            proxy.reset()
            equal(outcome(run.counted), "ServerUnreachable", "the run's end")
            equal(text_rows(client.query("db", ROWS).read()), ALL, "the next query")


@test
def slow_server():
    """A server whose bytes come one by one: the rows are right, and other clients are served meanwhile"""
    with Proxy(server) as proxy:
        databases = {"db": {"Connection": proxy.connection("app")}, "direct": {"Connection": server.connection("app")}}
        with relay(PATIENT, **databases) as service:
            client = service.client()
            proxy.piece = 1
            equal(text_rows(client.query("db", ROWS).read()), ALL, "rows")
            pending = pending_query(client, "SELECT pg_sleep(1000)")
            others_are_served(service, pending)
            equal(text_rows(service.client().query("db", ROWS).read()), ALL, "another client's rows of the same database")
            true(not pending.is_done(), "the slow statement still runs")


@test
def ended_by_the_server():
    """Backends that an administrator ends, and a server that restarts: the next query succeeds"""
    with relay(PATIENT, db={"Connection": server.connection("app")}) as service:
        client = service.client()
        for _ in range(3):
            equal(text_rows(client.query("db", ROWS).read()), ALL, "rows")
            run = client.query("db", "SELECT generate_series(1, 10000000), repeat('x', 1000)")
            run.frame()
            server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sqlipc'")
            equal(outcome(run.counted), "ServerUnreachable", "a run")
            equal(text_rows(client.query("db", ROWS).read()), ALL, "the next query")
        server.stop()
        equal(outcome(lambda: client.query("db", ROWS).read()), "ServerUnreachable", "without the server")
        server.start()
        wait_for(lambda: not isinstance(outcome(lambda: client.query("db", ROWS).read()), str), "with it again")


# ---- certificates ----


def openssl(*arguments):
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, check=False)
    equal(done.returncode, 0, f"openssl: {done.stderr.decode(errors='replace')}")


def certificate(folder, name, host):
    """Makes a certificate that is signed by itself; returns it and its key."""
    files = folder / f"{name}.crt", folder / f"{name}.key"
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
            f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}", "-keyout", files[1], "-out", files[0])  # fmt: skip
    files[0].chmod(0o644)
    return files


@functools.cache
def begin_tls():
    """Gives the server a certificate, for localhost, and returns that."""
    try:
        subprocess.run(["openssl", "version"], capture_output=True, check=True)
    except FileNotFoundError:
        raise Skip("openssl is not installed") from None
    ours, key = certificate(server.folder, "ours", "localhost")
    server.write("server.crt", ours.read_text())
    server.write("server.key", key.read_text())
    server.sql("ALTER SYSTEM SET ssl = on")
    server.reload()
    return ours


@test
def certificates():
    """sslmode=verify-full: the server's certificate must be that of its name, and signed by an authority of ours"""
    ours = begin_tls()
    other, _ = certificate(server.folder, "other", "localhost")
    tcp = {"host": "localhost", "hostaddr": "127.0.0.1", "sslmode": "verify-full"}

    def keys(**more):
        return {"Connection": server.connection("app", **(tcp | more))}

    with relay(
        right=keys(sslrootcert=ours),
        other=keys(sslrootcert=other),
        name=keys(sslrootcert=ours, host="elsewhere.example"),
        absent=keys(sslrootcert=server.folder / "none.crt"),
        plain=keys(sslmode="disable"),
    ) as service:
        client = service.client()
        wait_for(lambda: not isinstance(outcome(lambda: client.query("right", ROWS).read()), str), "TLS works")
        of_app = "SELECT pid FROM pg_stat_activity WHERE usename = 'app'"
        equal(server.sql(f"SELECT DISTINCT ssl FROM pg_stat_ssl WHERE pid IN ({of_app})"), ["t"], "TLS is used")
        for name in ("other", "name", "absent", "plain"):
            failure = expect("LoginFailed", client.query_rows, name, "SELECT 1")
            print(f"# {name}: {failure}")
        equal(text_rows(client.query("right", ROWS).read()), ALL, "rows")


@test
def encrypted_cancel():
    """A request to cancel is encrypted if its connection is and libpq can do that, from version 17"""
    begin_tls()
    wait_for(lambda: server.sql("SHOW ssl") == ["on"], "the server uses TLS")
    with Proxy(server, tls=True) as proxy, relay(db={"Connection": proxy.connection("app", sslmode="require")}) as service:
        run = service.client().query("db", "SELECT pg_sleep(1000)")
        sleeps = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
        wait_for(lambda: server.sql(sleeps) == ["1"], "the statement runs")
        run.cancel()
        expect("Cancelled", run.read)
        wait_for(lambda: server.sql(sleeps) == ["0"], "the server has ended it")
        can = ctypes.CDLL("libpq.so.5").PQlibVersion() >= 170000
        equal((proxy.n_connections, proxy.n_cancels), (2, 0 if can else 1), "connections, and requests that can be read")


# ---- the server's limits ----


@test
def full_disk():
    """The server's disk is full: NoSpace, and rows that were written before are there"""
    folder = server.folder / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4M", "none", folder]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        raise Skip("a small file system cannot be mounted here")
    try:
        if server.user:
            os.chown(folder, server.user["user"], server.user["group"])
        server.sql(f"CREATE TABLESPACE small LOCATION '{folder}'")
        server.sql("CREATE TABLE filled(n int, text text) TABLESPACE small; GRANT SELECT, INSERT ON filled TO app")
        keys = {"Connection": server.connection("app"), "Mode": "read-write", "WriteUsers": "*"}
        with relay(db=keys) as service:
            client, n, got = service.client(), 0, 1000
            while got == 1000:
                fill = f"INSERT INTO filled SELECT {n}, repeat('x', 1000) FROM generate_series(1, 1000)"
                got = outcome(lambda sql=fill: client.execute("db", sql)[0])
                n += got == 1000
                true(n < 100, "the disk is full at last")
            equal(got, "NoSpace", "the error")
            equal(client.query_rows("db", "SELECT count(*) FROM filled")[1], [[1000 * n]], "rows")
            equal(client.execute("db", "INSERT INTO written VALUES (-1)")[0], 1, "a write elsewhere")
        server.sql("DROP TABLE filled; DELETE FROM written WHERE n = -1")
        server.sql("DROP TABLESPACE small")
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@test
def limits_of_the_role():
    """statement_timeout and temp_file_limit of the role hold, and are named errors"""
    server.sql("ALTER ROLE app SET temp_file_limit = '64kB'; ALTER ROLE app SET work_mem = '64kB'")
    try:
        databases = {"hasty": {"Connection": server.connection("hasty")}, "db": {"Connection": server.connection("app")}}
        with relay(PATIENT, **databases) as service:
            client = service.client()
            for _ in range(2):
                failure = expect("TimedOut", client.query_rows, "hasty", "SELECT pg_sleep(1000)")
                true("statement timeout" in failure.message, failure.message)
                # a second is long, unless the machine stalls
                count = lambda: client.query_rows("hasty", "SELECT count(*) FROM t")[1]  # noqa: E731
                wait_for(lambda: outcome(count) == [[N_ROWS]], "rows")
            sort = "SELECT count(*) FROM (SELECT i FROM generate_series(1, 100000) i ORDER BY -i, i OFFSET 1) s"
            failure = expect("LimitsExceeded", client.query_rows, "db", sort)
            true("temp_file_limit" in failure.message, failure.message)
    finally:
        server.sql("ALTER ROLE app RESET ALL")


@test_unsanitized  # a sanitizer needs terabytes of address space, so there is no limit
def too_large_row():
    """A row that does not fit into a worker's memory is OutOfMemory, and its connection, with the buffer, is closed"""
    with relay(PATIENT | {"HeapMax": "1M"}, db={"Connection": server.connection("app")}) as service:
        client = service.client()
        before = client.query_rows("db", "SELECT pg_backend_pid()")[1]
        failure = expect("OutOfMemory", client.query_rows, "db", f"SELECT repeat('{'x' * 1000}', 300000)")
        true("HeapMax=" in failure.message, failure.message)
        true(client.query_rows("db", "SELECT pg_backend_pid()")[1] != before, "another connection")


@test
def few_connections():
    """Many clients on few connections of the server: no error, and no more connections than ConnectionsMax="""
    n_clients, most = (20 if SANITIZED else 100), 3
    keys = {"Connection": server.connection("app"), "ConnectionsMax": most}
    with relay({"QueueTimeoutSec": 600}, db=keys) as service:
        clients, peak = [service.client() for _ in range(n_clients)], 0
        for _ in range(2):
            calls = [pending_query(client, "SELECT pg_sleep(0.002)") for client in clients]
            # A process of the server that has not noticed yet that its client has left counts, too.
            wait_for(lambda: len(server.clients()) <= most, "few connections")
            peak = max(peak, len(server.clients()))
            for call in calls:
                call.result()
        true(peak >= 1, "connections")


@test
def no_connection_left():
    """A server without a free connection: Busy, and an answer when there is one"""
    server.sql("ALTER ROLE hasty CONNECTION LIMIT 0")
    try:
        with relay({"BusyTimeoutSec": 0.05}, db={"Connection": server.connection("hasty")}) as service:
            client = service.client()
            equal(outcome(lambda: client.query_rows("db", ROWS)), "Busy", "the error")
            server.sql("ALTER ROLE hasty CONNECTION LIMIT -1")
            wait_for(lambda: not isinstance(outcome(lambda: client.query_rows("db", ROWS)), str), "an answer")
    finally:
        server.sql("ALTER ROLE hasty CONNECTION LIMIT -1")


main(server)
