#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Databases on a cluster of rqlite (rqlite.py), through the program that is installed, with its filter of system calls."""
from client import GLib, Text
from engine_unit import ENGINE, EngineUnit
from harness import Service, expect, main
from rqlite import Cluster
from tap import equal, test, true
from watching import Watch

cluster = Cluster()
unit = EngineUnit(program=ENGINE)
service = Service(environment=unit.environment)


def publish(name, password="sesame", **keys):
    file = service.data / f"{name}.password"
    file.write_text(password + "\n")
    file.chmod(0o600)
    keys = {"Mode": "read-write", "WriteUsers": "*", "WriteSchema": "yes"} | keys
    service.database(name, Engine="rqlite", Connection=cluster.connection, PasswordFile=file, **keys)
    service.driver.manager("Reload")


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
    """transactions are refused by name"""
    client = service.client()
    for mode in ("read", "write"):
        expect("NotAllowed", client.database, "music", "Begin", "(a{sv})", {"mode": GLib.Variant("s", mode)})


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


@test
def test_end():
    """nothing is left"""
    service.close()
    unit.close()
    cluster.close()


main()
