#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""sqlipc-bench beside real database servers, if they are installed, and its interface for tools that observe it.

The program itself checks that all sides return the same rows, and fails if one does not.
"""
import contextlib
import json
import os
import pwd
import shutil
import signal
import sqlite3
import subprocess
import time

from harness import BUILD_ROOT, Service, main
from postgres import Postgres, Relay
from tap import Skip, equal, test, true

BENCH = BUILD_ROOT / "tools/bench/sqlipc-bench"
PATIENCE = 240

service = Service()
sets = service.data / "sets"
POINT = "SELECT * FROM point WHERE id = ?1"


def start(*arguments, **options):
    return subprocess.Popen(list(map(str, [BENCH, *arguments])), env=service.environment, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def bench(*arguments, code=0):
    process = start(*arguments)
    output, errors = process.communicate(timeout=300)
    equal(process.returncode, code, f"exit code of {arguments}, which said {errors!r}")
    equal(bool(errors), code != 0, f"whether {arguments} said something: {errors!r}")
    return output


def make_kinds(path):
    """A table of `bulk` with each kind of value that the servers get, among them such that a text could change."""
    numbers = [0, -1, 2**63 - 1, -2**63, None]
    reals = [0.5, 0.1, 1 / 3, -1.7976931348623157e308, 2.2250738585072014e-308, 1e23, None]
    texts = ["", "letters", "\u00e4\u20ac", "x" * 1000, None]
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE study (id INTEGER PRIMARY KEY, n INTEGER, r REAL, t TEXT)")
        database.executemany("INSERT INTO study (n, r, t) VALUES (?, ?, ?)",
                             [(n, r, t) for n in numbers for r in reals for t in texts])


def publish():
    if not sets.exists():
        bench("dataset", "--all", sets, "--size=tiny")
        make_kinds(sets / "kinds.sqlite")
        for name in ("kinds", "narrow", "point", "relay", "study"):
            service.database(name, Path=sets / f"{name}.sqlite")
        for name in ("write_rollback", "write_wal"):
            service.database(name, Path=sets / f"{name}.sqlite", Mode="read-write")
        service.driver.manager("Reload")
    return [f"--address={service.address}", f"--folder={sets}", "--size=tiny"]


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=PATIENCE)
    equal(done.returncode, 0, f"exit code of {command}, which said {done.stderr!r}")
    return done.stdout


def owned_by(user, folder):
    """The words that run a command as `user`, who owns the new `folder`; root's servers refuse to run as root."""
    folder.mkdir()
    if os.geteuid() != 0:
        return []
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise Skip(f"there is no user {user}") from None
    os.chown(folder, entry.pw_uid, entry.pw_gid)
    for parent in folder.parents:
        if parent.is_relative_to(service.data):
            parent.chmod(parent.stat().st_mode | 0o111)
    return ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]


def wait_for(answers, what, process):
    """Until a server answers, which it must at all."""
    end = time.monotonic() + PATIENCE
    while not answers():
        true(process.poll() is None and time.monotonic() < end, f"{what} does not start")
        time.sleep(0.1)


@contextlib.contextmanager
def postgres():
    """A PostgreSQL server of our own: what --postgres= says, and a function that asks it."""
    with Postgres() as server:
        server.sql("CREATE ROLE bench LOGIN SUPERUSER")
        yield f"--postgres={server.connection('bench')}", lambda sql: "\n".join(server.sql(sql))


@contextlib.contextmanager
def mariadb():
    """The same of MariaDB."""
    if not shutil.which("mariadbd") or not shutil.which("mariadb"):
        raise Skip("MariaDB is not installed")
    folder = service.data / "mariadb"
    user = owned_by("daemon", folder)  # the package of the service makes the user mysql, and is not needed here
    socket = folder / "socket"
    run(*user, "mariadb-install-db", "--no-defaults", f"--datadir={folder}/data", "--auth-root-authentication-method=normal")
    process = subprocess.Popen([*user, "mariadbd", "--no-defaults", f"--datadir={folder}/data", f"--socket={socket}",
                                "--skip-networking"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    client = ["mariadb", "--no-defaults", "-u", "root", "-S", socket, "-NBe"]

    def ask(sql, database="bench"):
        return run(*client, sql, database)

    try:
        ping = [*client, "SELECT 1"]  # a socket is there before it listens
        wait_for(lambda: subprocess.run(ping, capture_output=True, check=False).returncode == 0, "MariaDB", process)
        ask("CREATE DATABASE bench", "mysql")
        yield f"--mariadb=root@{socket}/bench", ask
    finally:
        process.terminate()
        process.wait(PATIENCE)


def built_with(server):
    done = start("relay", *publish(), f"--{server}=")
    errors = done.communicate(timeout=PATIENCE)[1]
    if "built without" in errors:
        raise Skip(f"sqlipc-bench was built without the library of {server}")


def rows_of(table):
    return {row["name"] for row in table["rows"] if not row["published"]}


VERBS = ("bulk", "relay", "small", "write")
ALONE = ["bulk-pages", "bulk-writes", "bulk-rows", "small-bounds", "write-readers"]  # they compare no ways


def check_cpu(table, name):
    """A table with the processor time of both sides has all of it for the service and `name`, and no server in process.
    Returns the time of the server `name`, which may be 0: a run of a tiny table is over before the kernel charges it."""
    columns = [column["name"] for column in table["columns"]]
    ratio = next(column for column in columns if column.startswith("CPU / in process"))
    rows = {row["name"]: dict(zip(columns, row["cells"])) for row in table["rows"] if not row["published"]}
    own = next(row for row in rows if row.startswith(("libsqlipc", "channel")))
    reference = rows[ratio.removeprefix("CPU / ")]
    for cells in (rows[own], rows[name]):
        true(all(cells[column]["median"] > 0 for column in ["client CPU", "CPU of both", ratio]), f"{table['id']}: {cells}")
    equal((reference["server CPU"], reference[ratio]["median"]), (None, 1), f"in process in {table['id']}")
    equal(reference["CPU of both"], reference["client CPU"], f"in process in {table['id']}")
    return rows[name]["server CPU"]["median"]


def count_tables(ask):
    return ask("SELECT count(*) FROM information_schema.tables WHERE table_name LIKE 'sqlipc_bench%'").strip()


def beside(server, name, option, ask):
    """bulk, relay, small and write measure the server, too, and leave no table there."""
    times = []
    for verb in VERBS:
        report = json.loads(bench(verb, "--json", *publish(), option))
        for table in report["tables"]:
            if table["id"] not in ALONE:
                true(name in rows_of(table), f"no {name} in {table['id']}: {rows_of(table)}")
            if any(column["name"] == "CPU of both" for column in table["columns"]):
                times.append(check_cpu(table, name))
    true(len(times) > 3 and max(times) > 0, f"processor time of {server}, in tables of small and bulk: {times}")
    equal(count_tables(ask), "0", f"tables that were left in {server}")
    all_kinds(name, option)
    interrupted(option, ask)


def all_kinds(name, option):
    """bulk: each kind of value is the same on all sides"""
    arguments = [f"--address={service.address}", "--size=tiny", "--database=kinds", f"--file={sets / 'kinds.sqlite'}"]
    report = json.loads(bench("bulk", "--json", *arguments, option))
    true(report["facts"]["result"].startswith("175 rows"), report["facts"])
    true(any(name in rows_of(table) for table in report["tables"]), f"no {name}")


def interrupted(option, ask):
    """A signal ends bulk, and it leaves no table"""
    process = start("bulk", *publish(), option, "--rounds=1000000")
    wait_for(lambda: count_tables(ask) == "1", "bulk", process)
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=PATIENCE)
    equal((process.returncode, output), (1, ""), "exit code and output")
    true("interrupted" in errors, errors)
    equal(count_tables(ask), "0", "tables that were left after a signal")


@test
def postgresql():
    """bulk, relay, small and write beside PostgreSQL: the same rows, and no table left"""
    built_with("postgres")
    with postgres() as (option, ask):
        beside("postgres", "PostgreSQL", option, ask)


@test
def by_engine():
    """bulk, relay and small with --engine: the rows of the server by sqlipc are those of all other sides"""
    built_with("postgres")
    publish()
    with Postgres() as server:
        server.sql("CREATE ROLE bench LOGIN SUPERUSER")
        served = {"Connection": server.connection("bench"), "Mode": "read-write", "WriteSchema": "yes"}
        names = ("narrow", "point", "relay", "study")
        files = {name: {"Engine": "sqlite", "Path": sets / f"{name}.sqlite"} for name in names}
        with Relay({"served": served} | files) as other:
            where = [f"--address={other.address}", f"--folder={sets}", "--size=tiny", "--engine=served"]
            for verb in ("bulk", "relay", "small"):
                tables = json.loads(bench(verb, "--json", *where, f"--postgres={server.connection('bench')}"))["tables"]
                both = [rows_of(table) for table in tables if "PostgreSQL by sqlipc" in rows_of(table)]
                true(both and all("PostgreSQL" in rows for rows in both), f"{verb}: {[rows_of(table) for table in tables]}")
        equal(server.sql("SELECT count(*) FROM information_schema.tables WHERE table_name LIKE 'sqlipc_bench%'"), ["0"])


@test
def listen():
    """watch beside PostgreSQL's LISTEN: each commit is told, and no table is left"""
    built_with("postgres")
    with postgres() as (option, ask):
        latency = json.loads(bench("watch", "--json", *publish(), option))["tables"][-1]
        true("PostgreSQL" in rows_of(latency), f"ways: {rows_of(latency)}")
        equal(count_tables(ask), "0", "tables that were left")


@test
def maria():
    """bulk, relay, small and write beside MariaDB: the same rows, and no table left"""
    built_with("mariadb")
    with mariadb() as (option, ask):
        beside("mariadb", "MariaDB", option, ask)


@test
def no_server():
    """A server that does not answer is an error, and no table appears without it"""
    built_with("postgres")
    for verb in VERBS:
        equal(bench(verb, *publish(), f"--postgres=host={service.data}/nowhere", code=1), "", f"output of {verb}")


@test
def query_for_servers():
    """bulk --sql is refused beside a server, which has only the table"""
    for server in ("postgres", "mariadb"):
        equal(bench("bulk", *publish(), "--sql=SELECT 1", f"--{server}=nowhere", code=2), "", "output")


@test
def another_file():
    """If the service shares another file than ours, relay and small report this and show nothing"""
    where = publish()
    for verb, kind in (("relay", "relay"), ("small", "point")):
        bench("dataset", f"--kind={kind}", "--size=tiny", "--seed=2", service.data / verb)
        equal(bench(verb, *where, f"--file={service.data / verb}", code=1), "", f"output of {verb}")


@test
def ask_waits():
    """ask: reports when it is warm, runs and ends on request, reports its work"""
    publish()
    for transport in ("auto", "pipe", "channel"):
        for options in ([], ["--query"]):
            arguments = ["ask", f"--address={service.address}", f"--transport={transport}", "--times=250", "--keys=100"]
            process = start(*arguments, *options, "point", POINT)
            equal(process.stdout.readline(), f"ready {process.pid}\n", "first line")
            process.stdin.write("\n")
            process.stdin.flush()
            # an INTEGER, an INTEGER, a REAL, 32 letters
            equal(process.stdout.readline(), f"done 250 times, 250 rows, {250 * (8 + 8 + 8 + 32)} bytes\n", "second line")
            equal(process.poll(), None, "end before the second line of input")
            output, errors = process.communicate("\n", timeout=PATIENCE)
            equal((process.returncode, output, errors), (0, "", ""), "end")


@test
def ask_fails():
    """ask: errors are reported"""
    address = f"--address={service.address}"
    publish()
    bench("ask", address, "point", code=2)
    bench("ask", address, "--transport=pigeon", "point", "SELECT 1", code=2)
    bench("ask", address, "--times=0", "point", "SELECT 1", code=2)
    bench("ask", address, "point", "SELECT nothing", code=1)
    bench("ask", address, "nowhere", "SELECT 1", code=1)


main(service)
