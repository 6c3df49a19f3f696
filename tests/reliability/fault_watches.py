# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenarios of test_faults.py: watches.

A watch is told of each change, or ends: its client sees the number, or end-of-file. Silence is wrong. A number without a
change is not: an observer that fails may have missed one.
"""
import contextlib
import os
import sqlite3
import time

from fault_stage import check_failure, refused, scenario, told
from fault_writes import BOTH, INSERT, Transaction, all_right, write

from client import DATABASE, Failure, object_path
from harness import PATIENCE, descendants
from tap import equal, true
from watching import Watch, variants, wait_change

SELECT = "SELECT text FROM note WHERE id > 1"


def until_end(watch):
    """Reads what was told before the watch ended."""
    data = b"none yet"
    while data:
        true(watch.is_readable(PATIENCE), "a watch that ended has no end-of-file")
        data = os.read(watch.fd, 4096)


def commit(stage, client, database):
    """Through the service."""
    all_right([write(stage, database, lambda number: client.execute(database, INSERT, [number, "text"])[0])])


def commit_past(stage, database):
    """By a program that does not know the service."""
    number = stage.new_number()
    with contextlib.closing(sqlite3.connect(stage.written[database], isolation_level=None)) as db:
        db.execute(INSERT, (number, "text"))
    stage.expect(database, number, 1)


def until_quiet(stage):
    """Until the process that looks at the file has ended; one that a fault leaves without inotify stays."""
    end = time.monotonic() + (1 if stage.armed else PATIENCE)
    while descendants(stage.service.pid()) and time.monotonic() < end:
        time.sleep(0.02)
    true(stage.armed or time.monotonic() < end, "an observer has nothing to do, and stays")


def begin_wait(client, database, since, *tables, **options):
    values = (list(tables), since, variants(options))
    return client.begin(object_path(database), DATABASE, "WaitChange", "(asta{sv})", *values)


@scenario
def watch_tables(stage, client):
    """A watch of a table, told of a commit of the service, of one of another program, and of none after Unwatch"""
    for database in BOTH:
        watch = Watch(client, "note", database=database)
        for _ in range(2):
            commit(stage, client, database)
            told(stage, watch)
        commit_past(stage, database)
        told(stage, watch)
        watch.end()
        until_end(watch)
        commit(stage, client, database)
        equal(os.read(watch.fd, 4096), b"", "what comes after Unwatch")
        refused(watch.end)
        watch.close()


@scenario
def watch_quiet(stage, client):
    """A watch whose file another program changes when the process that looks at it has ended"""
    for database in BOTH:
        watch = Watch(client, database=database)
        for _ in range(2):
            until_quiet(stage)
            commit_past(stage, database)
            told(stage, watch)
        watch.close()


@scenario
def watch_transaction(stage, client):
    """A transaction is told when it is committed"""

    def fill(number):
        t = Transaction(client, "log", "write")
        t.execute(INSERT, number, "text")
        true(stage.armed or not watch.is_readable(), "a watch was told before the commit")
        t.end("Commit")

    watch = Watch(client, "note", database="log")
    all_right([write(stage, "log", fill)])
    told(stage, watch)
    watch.close()


@scenario
def watch_statements(stage, client):
    """Watches of the tables of SQL, of those of a statement, and of those below an exposed view"""
    statement = client.prepare("log", SELECT)
    watches = [
        Watch(client, database="log", sql=SELECT), Watch(client, database="log", statement=statement.number),
        Watch(client, database="log", sql="SELECT 1 /* " + "x" * 200000 + " */ FROM note"),
    ]  # fmt: skip
    equal(watches[0].info["tables"], ["note"], "tables of the statement")
    commit(stage, client, "log")
    for watch in watches:
        told(stage, watch)
    with contextlib.closing(sqlite3.connect(stage.hidden, isolation_level=None)) as db:
        exposed = [Watch(client, "priced", database="hidden"), Watch(client, database="hidden", sql="SELECT * FROM author")]
        db.execute("INSERT INTO book VALUES('Flow-Matic', 2, 1)")
        db.execute("DELETE FROM book WHERE title = 'Flow-Matic'")
        for watch in exposed:
            told(stage, watch)
    refused(Watch, client, "secret", database="hidden")


@scenario
def watch_refused(stage, client):
    """Watches that are refused"""
    refused(Watch, client, "", database="log")
    refused(Watch, client, "nowhere", database="log")
    refused(Watch, client, "note", database="log", sql=SELECT)
    refused(Watch, client, database="log", sql="DELETE FROM note")
    refused(Watch, client, database="log", statement=17)
    refused(client.database, "log", "Unwatch", "(ta{sv})", 17, {})


@scenario
def watch_unread(stage, client):
    """A change while the number of another one is not read; then the client closes its end"""
    watch = Watch(client, "note", database="log")
    commit(stage, client, "log")
    true(watch.is_readable(PATIENCE), "a watch was not told of a change")
    commit(stage, client, "log")
    first = told(stage, watch)
    true(told(stage, watch) > first, "the second change has a larger number")
    watch.close()


def no_change(stage, client, database, since):
    """Waits for a change that does not come."""
    try:
        wait_change(client, since, "note", database=database, **{"timeout-usec": 20000})
    except Failure as failure:
        check_failure(failure)
    else:
        true(stage.armed, "a change of no program")


def change_until_answered(stage, client, database, call):
    """For a call that waits for changes from now on: when that is, only the service knows, which checks the tables first."""
    end = time.monotonic() + PATIENCE
    while not call.is_done():
        true(time.monotonic() < end, "a call is not answered")
        commit(stage, client, database)
    return call.result()[0].get_uint64()


@scenario
def waits_for_change(stage, client):
    """WaitChange that is answered at once, by a timeout, and by a change"""
    for database in BOTH:
        now = wait_change(client, 1, "note", database=database)
        no_change(stage, client, database, now)
        by_sql = begin_wait(client, database, now, sql=SELECT)
        by_name = begin_wait(client, database, 0, "note", **{"timeout-usec": 600000000})
        any_table = begin_wait(client, database, now)
        client.manager("ListWatches")  # behind them, so all were read
        time.sleep(0.02)  # so that most of them wait by then, on which the result does not depend
        commit(stage, client, database)
        commit_past(stage, database)
        numbers = [call.result()[0].get_uint64() for call in (by_sql, any_table)]
        true(min(numbers) > now, "numbers of changes")
        true(change_until_answered(stage, client, database, by_name) > now, "the number of a change")


@scenario
def watches_listed(stage, client):
    """What is known of watches"""
    watch = Watch(client, "note", database="log")
    begin_wait(client, "log", watch.info["sequence"], "note")
    for one in (client, stage.service.driver):
        listed = one.manager("ListWatches")[0]
        true(any(entry[0] == watch.number for entry in listed), f"watches: {listed}")
    watch.close()
