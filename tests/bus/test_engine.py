#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Databases of servers: their workers are engine processes, which the supervisor reaches by a connection only.

The engine of most of these tests reads a file, so they need no server.
"""
import concurrent.futures
import contextlib
import os
import pathlib
import shutil
import signal
import sqlite3
import tempfile

from client import Broken, Failure
from engine_unit import ENGINE, FILE_ENGINE, EngineUnit
from harness import CHINOOK, UID_A, UID_B, UID_DAEMON, Service, executable, expect, main, needs_root, reachable, wait_for
from tap import equal, test, true
from watching import Watch

SLOW = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
SECRET = "secret"


def keys_of(path, **keys):
    return {"Engine": "postgresql", "Connection": path} | keys


def served(unit, path=CHINOOK, limits=None, uid=None, **keys):
    return Service({"chinook": keys_of(path, **keys)}, environment=unit.environment, limits=limits, uid=uid)


def count(client, database="chinook"):
    return client.query(database, "SELECT count(*) FROM artist").read().rows


def ends_early(run):
    """Reads a run whose worker has died: its stream breaks, or says so."""
    try:
        run.read()
    except (Broken, Failure) as failure:
        true(isinstance(failure, Broken) or failure.name.endswith("WorkerLost"), f"the reader learns: {failure}")
    else:
        raise AssertionError("the run has ended well")


@contextlib.contextmanager
def both(path=CHINOOK, limits=None, **keys):
    with EngineUnit() as unit, served(unit, path, limits, **keys) as service:
        yield unit, service


@test
def test_query():
    """a query reaches an engine process, and no child of the service"""
    with both() as (unit, service):
        equal(count(service.client()), [[275]])
        equal(len(unit.workers()), 1)
        equal(service.workers(), [])


@test
def test_pid():
    """the service knows the pid of the worker, not that of its keeper"""
    with both(limits={"ParkTimeoutSec": 600}) as (unit, service):
        client = service.client()
        run = client.query("chinook", ENDLESS)
        more = wait_for(lambda: service.driver.manager("ListRuns")[0], "the run is listed")[0][3]
        equal([more["worker-pid"]], unit.workers())
        run.close()


@test
def test_idle():
    """an idle engine process ends by itself"""
    with both(limits={"WorkerIdleSec": 0}) as (unit, service):
        equal(count(service.client()), [[275]])
        wait_for(lambda: not unit.keepers(), "the engine process ends")


@test
def test_death():
    """if an engine process dies its run fails, and the next one has another process"""
    with both() as (unit, service):
        client = service.client()
        run = client.query("chinook", ENDLESS)
        old = wait_for(unit.workers, "an engine process runs")
        os.kill(old[0], signal.SIGKILL)
        ends_early(run)
        equal(count(client), [[275]])
        true(old != unit.workers(), "another process has answered")
        wait_for(lambda: "died of signal 9" in service.log_text(), "the log has the signal")


@test
def test_death_of_keeper():
    """if a keeper dies its worker dies, too"""
    with both() as (unit, service):
        client = service.client()
        run = client.query("chinook", ENDLESS)
        keepers, workers = unit.keepers(), unit.workers()
        os.kill(keepers[0], signal.SIGKILL)
        ends_early(run)
        wait_for(lambda: executable(workers[0]) != str(unit.program), "the worker dies")
        equal(count(client), [[275]])


@test
def test_kill():
    """a worker that does not react is killed by its keeper"""
    with both() as (unit, service):
        client = service.client()
        equal(count(client), [[275]])
        workers = unit.workers()
        run = client.query("chinook", ENDLESS)
        os.kill(workers[0], signal.SIGSTOP)
        run.cancel()
        wait_for(lambda: executable(workers[0]) != str(unit.program), "the stopped worker is killed")
        run.close()
        equal(count(client), [[275]])


@test
def test_end_of_service():
    """no engine process outlives the service, also one that is stopped"""
    with EngineUnit() as unit, served(unit) as service:
        run = service.client().query("chinook", ENDLESS)
        os.kill(wait_for(unit.workers, "an engine process runs")[0], signal.SIGSTOP)
        run.close()
        service.kill()
        wait_for(lambda: not unit.keepers() and not unit.workers(), "the engine processes end")
        service.start()
        equal(count(service.client()), [[275]])


@test
def test_no_unit():
    """without the unit, the error says what to install"""
    with Service({"chinook": keys_of(CHINOOK)}, environment={"SQLIPC_ENGINE_SOCKET": "/nonexistent"}) as service:
        failure = expect("CannotOpen", lambda: count(service.client()))
        true("sqlipc-engine.socket" in failure.message, failure.message)


@test
def test_no_engine():
    """a program without the engine is no cause for trying again and again"""
    with EngineUnit() as unit, Service(
        {"chinook": {"Engine": "rqlite", "Connection": "http://localhost:1"}}, environment=unit.environment
    ) as service:
        failure = expect("WorkerLost", lambda: count(service.client()))
        true("without the engine" in failure.message, failure.message)


@test
def test_refused():
    """a unit that ends its processes at once, as with MaxConnections=, is a named error"""
    with EngineUnit(program="/bin/true") as unit, served(unit) as service:
        failure = expect("WorkerLost", lambda: count(service.client()))
        true("MaxConnections=" in failure.message, failure.message)


@test
def test_refused_beside_another():
    """when no more processes can be started, jobs wait for those that there are"""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        once = pathlib.Path(folder) / "once"
        once.write_text(
            f"#!/bin/sh\nmkdir {folder}/begun 2>/dev/null && exec {reachable(FILE_ENGINE)}\necho >>{folder}/refused\n"
        )
        once.chmod(0o755)
        with EngineUnit(program=once) as unit, served(unit) as service, concurrent.futures.ThreadPoolExecutor(1) as pool:
            slow = service.client().query("chinook", SLOW)
            waits = pool.submit(count, service.client())
            refused = pathlib.Path(folder) / "refused"
            wait_for(lambda: refused.exists() and len(refused.read_bytes()) > 2, "processes are refused")
            slow.cancel()
            slow.close()
            equal(waits.result(), [[275]])


@test
def test_password():
    """the password comes from the file, and appears nowhere"""
    with both() as (unit, service):
        file = service.data / "password"
        service.database("chinook", **keys_of(CHINOOK, PasswordFile=file))
        service.driver.manager("Reload")
        client = service.client()
        os.mkfifo(file)
        failure = expect("CannotOpen", lambda: count(client))
        true("PasswordFile=" in failure.message and str(file) not in failure.message, failure.message)
        true(f"{file} cannot be used: it is no regular file" in service.log_text(), "the log names the file and the reason")
        file.unlink()
        file.write_text(f"{SECRET}\nmore\n")
        equal(count(client), [[275]])
        true(SECRET not in service.log_text() + str(client.databases()), "the password is in no log or list")


@test
def test_credential():
    """a name without a slash is a credential of the service"""
    with EngineUnit() as unit:
        folder = unit.folder / "credentials"
        folder.mkdir()
        (folder / "db").write_text(SECRET)
        environment = unit.environment | {"CREDENTIALS_DIRECTORY": str(folder)}
        with Service({"chinook": keys_of(CHINOOK, PasswordFile="db")}, environment=environment) as service:
            equal(count(service.client()), [[275]])


@test
def test_writes():
    """writes, their lease and their watch work with engine processes"""
    with EngineUnit() as unit:
        path = unit.folder / "own.sqlite"
        shutil.copy(CHINOOK, path)
        os.chmod(path, 0o644)
        with served(unit, path, Mode="read-write", WriteUsers="*") as service:
            client, other = service.client(), service.client()
            watch = Watch(other, "artist", database="chinook")
            client.execute("chinook", "INSERT INTO artist (name) VALUES ('new')")
            true(watch.next() is not None, "the commit is told")
            equal(count(other), [[276]])
            with sqlite3.connect(path) as db:
                db.execute("INSERT INTO artist (name) VALUES ('foreign')")
            true(watch.next() is not None, "a foreign commit is told")


@test
def test_reload():
    """a new connection, or another password file, ends the workers of the old one"""
    with both() as (unit, service):
        client = service.client()
        equal(count(client), [[275]])
        old = unit.workers()
        (service.data / "password").write_text(SECRET)
        service.database("chinook", **keys_of(CHINOOK, PasswordFile=service.data / "password"))
        service.driver.manager("Reload")
        equal(count(client), [[275]])
        wait_for(lambda: not set(old) & set(unit.workers()), "the old worker ends")


@test
def test_connections_max():
    """a user has no more workers than connections"""
    with both(ConnectionsMax="2", limits={"WorkersMax": 8}) as (unit, service):
        clients = [service.client() for _ in range(6)]
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            calls = [pool.submit(c.query, "chinook", SLOW, options={}) for c in clients]
            wait_for(lambda: len(unit.workers()) == 2, "there are two workers")
            for client in clients:
                client.close()
            service.clients.clear()
            true(len(unit.workers()) <= 2, "there are no more")
            for call in calls:
                with contextlib.suppress(Exception):
                    call.result()


@needs_root
def test_two_users():
    """each user has an engine process of its own, whose user is not that of the service"""
    with EngineUnit(uid=UID_B, supervisor_uid=UID_DAEMON) as unit, served(unit, uid=UID_DAEMON) as service:
        for uid in (UID_A, 0):
            equal(count(service.client(uid)), [[275]])
        equal(len(unit.workers()), 2)
        for pid in unit.workers():
            equal(os.stat(f"/proc/{pid}").st_uid in (0, UID_B), True)  # those that cannot be dumped belong to root
        run = service.client(UID_A).query("chinook", ENDLESS)
        for pid in unit.workers():
            os.kill(pid, signal.SIGSTOP)
        run.cancel()
        wait_for(lambda: len(unit.workers()) < 2, "the service ends a process that it may not signal")
        run.close()
        for pid in unit.workers():
            os.kill(pid, signal.SIGCONT)


@test
def test_real_program():
    """the program itself ends with the connection, and without an engine it says so"""
    with EngineUnit(program=ENGINE) as unit, Service(
        {"none": {"Engine": "postgresql", "Connection": "host=/nonexistent"}}, environment=unit.environment
    ) as service:
        for _ in range(2):
            with contextlib.suppress(Exception):
                service.client().query("none", "SELECT 1").read()


main()
