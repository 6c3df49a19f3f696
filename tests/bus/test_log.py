#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The service's log, and its control at run time by org.freedesktop.LogControl1."""
import contextlib
import os
import signal
import sqlite3
import unicodedata

from gi.repository import GLib

from channel import Channel
from clocks import Clocks
from harness import CHINOOK, PATIENT, UID_A, UID_B, Service, expect, main, wait_for
from tap import equal, test, true

PATH, INTERFACE = "/org/freedesktop/LogControl1", "org.freedesktop.LogControl1"
SECRET = "SELECT 'swordfish', * FROM Track"
SCAN = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"


def set_property(client, name, value):
    client.raw(PATH, "org.freedesktop.DBus.Properties", "Set", "(ssv)", INTERFACE, name, GLib.Variant("s", value))


def lines(service, text):
    return [line for line in service.log_text().splitlines() if text in line]


@test
def properties():
    """All users can read level, target and identifier"""
    with Service({"chinook": CHINOOK}) as service:
        for uid in (None, UID_A):
            equal(
                service.client(uid).properties(INTERFACE, PATH),
                {"LogLevel": "info", "LogTarget": "auto", "SyslogIdentifier": "sqlipcd"},
                "properties",
            )


@test
def level():
    """SQL is logged only at debug, from the change of the level to the next change"""
    with Service({"chinook": CHINOOK}) as service:
        client = service.client()
        client.query("chinook", SECRET).counted()
        equal(lines(service, "swordfish"), [], "lines with SQL")
        set_property(client, "LogLevel", "debug")
        equal(client.properties(INTERFACE, PATH)["LogLevel"], "debug", "level")
        client.query("chinook", SECRET).counted()
        equal(len(lines(service, "swordfish")), 1, "lines with SQL")
        set_property(client, "LogLevel", "info")
        client.query("chinook", SECRET).counted()
        equal(len(lines(service, "swordfish")), 1, "lines with SQL")


@test
def values_of_parameters():
    """Values of parameters are in no log line, not even at debug"""
    with Service({"chinook": CHINOOK}) as service:
        client = service.client()
        set_property(client, "LogLevel", "debug")
        statement = client.prepare("chinook", "SELECT ?, 'seen'")
        for value in ("swordfish", b"swordfish"):
            statement.fetch(value).counted()
            client.query("chinook", "SELECT ?, 'seen'", [value]).counted()
            client.query_rows("chinook", "SELECT ?, 'seen'", [value])
        with contextlib.closing(Channel(client)) as channel:
            channel.ask("SELECT ?, 'seen'", "swordfish")
        true(lines(service, "'seen'"), "no line with SQL")
        equal(lines(service, "swordfish"), [], "lines with values")


@test
def forged_lines():
    """SQL and names in a database neither begin a log line on standard error nor drive a terminal"""
    forged = "\nsqlipcd: Database forged.\r\x1b[2J\x9b2J\x07"
    with Service({"chinook": CHINOOK}, start=False) as service:
        path = service.data / "odd.sqlite"
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute(f'CREATE TABLE "a{forged}"(x)')
            db.execute("PRAGMA writable_schema = 1")
            db.execute("UPDATE sqlite_schema SET sql = 'CREATE TABLE nothing that is one'")
            db.commit()
        service.database("odd", Path=path)
        service.start()
        client = service.client()
        set_property(client, "LogLevel", "debug")
        client.query("chinook", f"SELECT 1 AS \"{forged}\"").counted()
        expect("Corrupt", client.query_rows, "odd", "SELECT 1 FROM sqlite_schema")
        equal(len(lines(service, "Database forged.")), 2, "lines with SQL and with SQLite's words")
        equal([line for line in lines(service, "forged") if line.startswith("sqlipcd: Database")], [], "lines of others")
        text = service.log_text().replace("\n", "")
        equal([c for c in text if unicodedata.category(c) == "Cc"], [], "control characters")


@test
def priorities():
    """At each level lines of that priority appear, and those below do not"""
    with Service({"chinook": CHINOOK}) as service:
        client = service.client()
        service.database("odd", "[Database]\nPath=/nowhere\nMode=read-only\nMode=read-only\n")
        service.database("broken", "[Database]\n")
        for name, info, warning, error in (("info", 1, 1, 1), ("warning", 0, 1, 1), ("err", 0, 0, 1), ("crit", 0, 0, 0)):
            set_property(client, "LogLevel", name)
            before = len(service.log_text().splitlines())
            client.manager("Reload")
            text = "\n".join(service.log_text().splitlines()[before:])
            found = [int(word in text) for word in ("published", "Mode=", "Path=")]
            equal(found, [info, warning, error], f"lines at {name}: {text}")


@test
def target():
    """With the target null nothing is written; with console the lines are"""
    with Service({"chinook": CHINOOK}) as service:
        client = service.client()
        for name, expected in (("null", 0), ("console", 1), ("auto", 2), ("null", 2)):
            set_property(client, "LogTarget", name)
            equal(client.properties(INTERFACE, PATH)["LogTarget"], name, "target")
            client.manager("Reload")
            equal(len(lines(service, "Databases published")), expected, f"lines with target {name}")


@test
def nonsense():
    """An invalid level or target is refused, and changes nothing"""
    invalid = "org.freedesktop.DBus.Error.InvalidArgs"
    with Service({"chinook": CHINOOK}) as service:
        client = service.client()
        for value in ("", "loud", "8", "-1", "info ", "INFO", "debug\n"):
            expect(invalid, set_property, client, "LogLevel", value)
        for value in ("", "kmsg", "syslog", "0"):
            expect(invalid, set_property, client, "LogTarget", value)
        expect("org.freedesktop.DBus.Error.PropertyReadOnly", set_property, client, "SyslogIdentifier", "other")
        set_property(client, "LogLevel", "6")  # as syslog(3) numbers them
        equal(client.properties(INTERFACE, PATH)["LogLevel"], "info", "level")


@test
def administrators():
    """Only root and the service's own user may change it"""
    with Service({"chinook": CHINOOK}, uid=UID_B) as service:
        for uid in (None, UID_B):
            set_property(service.client(uid), "LogLevel", "debug")
        for name, value in (("LogLevel", "emerg"), ("LogTarget", "null")):
            expect("org.freedesktop.DBus.Error.AccessDenied", set_property, service.client(UID_A), name, value)
        equal(service.client().properties(INTERFACE, PATH)["LogLevel"], "debug", "level")


@test
def terse():
    """From start to stop the log has a line for each of start, reload and stop, whatever clients do in between"""
    with Service({"chinook": CHINOOK}) as service:
        client = service.client()
        client.point()
        expect("Sql", client.prepare, "chinook", "SELECT nothing")
        expect("UnknownDatabase", client.manager, "GetDatabase", "(sa{sv})", "nosuch")
        client.query("chinook", "SELECT * FROM Track, Album").close()
        client.manager("Reload")
        service.forget()
        service.stop()
        said = [line for line in service.log_text().splitlines() if line.startswith("sqlipcd:")]
        equal(len(said), 3, f"lines: {said}")
        true("is up" in said[0] and said[1].endswith("published: 1.") and "Stopping" in said[2], f"lines: {said}")


@test
def quota():
    """A quota that is hit is logged once for each user and limit, however often it is hit"""
    with Service({"chinook": CHINOOK}, limits={"StatementsMax": 1, "RunsMax": 1}) as service:
        for uid in (UID_A, UID_B):
            client = service.client(uid)
            client.prepare("chinook", "SELECT 1")
            for _ in range(20):
                expect("LimitsExceeded", client.prepare, "chinook", "SELECT 2")
            run = client.query("chinook", SCAN)
            for _ in range(20):
                expect("LimitsExceeded", client.query, "chinook", "SELECT 2")
            run.close()
        for uid in (UID_A, UID_B):
            said = lines(service, f"uid {uid} is refused more")
            equal(len(said), 2, f"lines of uid {uid}: {said}")
            true("StatementsMax=" in said[0] and "RunsMax=" in said[1], f"lines: {said}")
        equal(lines(service, "SELECT"), [], "lines with SQL")


@test
def databases():
    """A damaged or missing file is one line that names the database and the error"""
    with Service() as service:
        damaged = service.data / "damaged.sqlite"
        damaged.write_bytes(b"no database, but more than a header's worth of bytes" * 40)
        service.database("damaged", Path=damaged)
        service.database("absent", Path=service.data / "absent.sqlite")
        service.driver.manager("Reload")
        for client in (service.client(UID_A), service.client(UID_B)):
            for _ in range(5):
                expect("Corrupt", client.query, "damaged", "SELECT * FROM t")
                expect("FileMissing", client.query, "absent", "SELECT * FROM t")
        for name in ("damaged", "absent"):
            equal(len(lines(service, f"sqlipcd: {name}: ")), 1, f"lines about {name}")
        equal(lines(service, "SELECT"), [], "lines with SQL")


@test
def slow_query():
    """A run that computed past SlowQuerySec= is logged with number, user and rows; a run with a slow reader is not"""
    limits = dict.fromkeys((*PATIENT, "RunTimeoutSec"), 86400)
    with Clocks() as clocks, Service(
        {"chinook": CHINOOK}, limits=limits, service={"SlowQuerySec": 1800}, environment=clocks.environment
    ) as service:
        client = service.client(UID_A)
        slow = client.query("chinook", f"SELECT count(*), 'swordfish' FROM ({SCAN})")
        clocks.go_on(3600)
        slow.cancel()
        expect("Cancelled", slow.read)
        said = wait_for(lambda: lines(service, "SlowQuerySec="), "the slow query is logged")
        equal(len(said), 1, f"lines: {said}")
        true(f"Run {slow.number} of uid {UID_A}" in said[0] and said[0].endswith("rows: 0."), said[0])
        unread = client.query("chinook", " UNION ALL ".join(["SELECT * FROM Track"] * 4))
        wait_for(lambda: service.counters()["NParked"] == 1, "the run parks")
        before = service.counters()["TotalRuns"]
        clocks.go_on(3600)  # more than a minute after the line of before, so there could be another one
        unread.counted()
        wait_for(lambda: service.counters()["TotalRuns"] == before + 1, "the run is over")
        equal(len(lines(service, "SlowQuerySec=")), 1, "lines about slow queries")
        equal(lines(service, "swordfish"), [], "lines with SQL")


@test
def workers():
    """A worker killed from outside is logged with its process and its signal"""
    with Service({"chinook": CHINOOK}) as service:
        client = service.client()
        client.point()
        worker = service.workers()[0]
        os.kill(worker, signal.SIGKILL)
        wait_for(lambda: lines(service, f"chinook: Worker {worker} died of signal 9"), "the crash is logged")


@test
def level_of_the_environment():
    """SQLIPC_LOG_LEVEL= sets the initial level, and an invalid level is reported"""
    with Service({"chinook": CHINOOK}, environment={"SQLIPC_LOG_LEVEL": "err"}) as service:
        equal(service.client().properties(INTERFACE, PATH)["LogLevel"], "err", "level")
        equal(lines(service, "is up"), [], "lines at info")
    with Service({"chinook": CHINOOK}, environment={"SQLIPC_LOG_LEVEL": "loud"}) as service:
        equal(service.client().properties(INTERFACE, PATH)["LogLevel"], "info", "level")
        equal(len(lines(service, "SQLIPC_LOG_LEVEL=loud")), 1, "warnings")


main()
