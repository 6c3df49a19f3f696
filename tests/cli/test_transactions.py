#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Transactions: BEGIN, COMMIT, ROLLBACK and savepoints at the prompt and in scripts, and --single-transaction."""
import contextlib
import sqlite3
import subprocess
import sys

from pty_shell import ENTER, Shell, control  # finds what follows

from harness import CHINOOK, CLI, PATIENCE, Service, main, wait_for
from tap import equal, test, true

OK, QUERY, USAGE = 0, 1, 2

service = Service({"chinook": CHINOOK})
NOTES = service.data / "notes.sqlite"


def make_notes():
    NOTES.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(NOTES)) as db:
        db.executescript("PRAGMA journal_mode = WAL; CREATE TABLE note(x INTEGER UNIQUE)")


make_notes()
service.database("notes", Path=NOTES, Mode="read-write", WriteSchema="yes")
service.driver.manager("Reload")


def rows():
    """Rows of the file, as another program reads them; then there are none."""
    with contextlib.closing(sqlite3.connect(NOTES, timeout=PATIENCE)) as db:
        found = [row[0] for row in db.execute("SELECT x FROM note ORDER BY x")]
        db.execute("DELETE FROM note")
        db.commit()
        return found


def run(*arguments, code=OK, text=None, database="notes"):
    command = [CLI, "--address", service.address, "--mode=list", "--headers=off", *arguments]
    if database:
        command.insert(5, database)
    done = subprocess.run(command, input=text, text=True, capture_output=True, timeout=PATIENCE * 2)
    equal(done.returncode, code, f"exit code of {arguments}, which said {done.stderr!r}")
    return done.stdout, done.stderr


def shell_of(database="notes"):
    return Shell("--no-pager", database, on=service)


def enter(shell, text):
    shell.type(text)
    shell.send(ENTER)


# ---- scripts -----------------------------------------------------------------------------------------------------------


@test
def commit_and_rollback():
    """COMMIT keeps all statements since BEGIN, ROLLBACK and the end of the script keep none"""
    out, _ = run("BEGIN; INSERT INTO note VALUES (1); SELECT count(*) FROM note; COMMIT")
    equal(out, "1\n", "what the transaction sees")
    run("begin immediate transaction; INSERT INTO note VALUES (2); SELECT 1; ROLLBACK; INSERT INTO note VALUES (3); BEGIN; "
        "INSERT INTO note VALUES (4)")
    equal(rows(), [1, 3], "rows")


@test
def begins_by_reading():
    """BEGIN and SAVEPOINT read until a statement writes, which fails if another program has written meanwhile"""
    ask = "SELECT 'rows: ' || count(*) FROM note;"
    for begin in ("BEGIN", "BEGIN DEFERRED", "SAVEPOINT a"):
        with shell_of() as shell:
            enter(shell, f"{begin}; {ask}")
            shell.wait_for("rows: 0")
            with contextlib.closing(sqlite3.connect(NOTES, timeout=0)) as db:  # it keeps no writer waiting
                db.execute("INSERT INTO note VALUES (1)")
                db.commit()
            enter(shell, "INSERT INTO note SELECT 2 + count(*) FROM note;")
            shell.wait_for("the database is locked")
            enter(shell, f"ROLLBACK; BEGIN; {ask}")
            shell.wait_for("rows: 1")
            enter(shell, f"INSERT INTO note SELECT 2 + count(*) FROM note; COMMIT; {ask}")
            shell.wait_for("rows: 2")
        equal(rows(), [1, 3], f"rows after {begin}")


@test
def lacks_commit():
    """A script that ends within a transaction is told that its changes are rolled back, unless it only reads"""
    for script in ("BEGIN; INSERT INTO note VALUES (1)", "SAVEPOINT a; INSERT INTO note VALUES (1)"):
        true("rolled back; COMMIT" in run(script)[1], script)
    equal(run("BEGIN READ ONLY; SELECT 1"), ("1\n", ""), "a transaction that reads")
    equal(run("BEGIN; INSERT INTO note VALUES (1); ROLLBACK; SELECT 1"), ("1\n", ""), "a transaction that was ended")
    equal(rows(), [], "rows")


@test
def a_failure_within():
    """A statement that fails takes back itself; the transaction goes on"""
    _, err = run("BEGIN; INSERT INTO note VALUES (1); INSERT INTO note VALUES (2), (1); INSERT INTO note VALUES (3); END",
                 code=QUERY)
    true("UNIQUE constraint failed" in err, f"message: {err!r}")
    equal(rows(), [1, 3], "rows")


@test
def savepoints():
    """ROLLBACK TO takes back a part; a SAVEPOINT outside of a transaction begins one, which its RELEASE commits"""
    run('BEGIN; INSERT INTO note VALUES (1); SAVEPOINT a; INSERT INTO note VALUES (2); ROLLBACK TO a; '
        'INSERT INTO note VALUES (3); RELEASE "A"; COMMIT')
    equal(rows(), [1, 3], "rows of a transaction")
    run("SAVEPOINT a; INSERT INTO note VALUES (1); SAVEPOINT a; INSERT INTO note VALUES (2); ROLLBACK TO a; RELEASE a; "
        "RELEASE a; INSERT INTO note VALUES (3)")
    equal(rows(), [1, 3], "rows of a savepoint")
    _, err = run("BEGIN; RELEASE b", code=QUERY)
    true("no such savepoint: b" in err, f"message: {err!r}")
    _, err = run("ROLLBACK TO b", code=QUERY)
    true("no transaction is open" in err, f"message: {err!r}")


@test
def misplaced():
    """A second BEGIN, and a COMMIT without BEGIN, are errors; a transaction stays with its database"""
    for script in ("COMMIT", "ROLLBACK"):
        true("no transaction is open" in run(script, code=QUERY)[1], script)
    true("a transaction is open" in run("BEGIN; BEGIN", code=QUERY)[1], "BEGIN twice")
    true("a transaction is open" in run("BEGIN", ".open chinook", code=QUERY)[1], ".open")
    true("a transaction is open" in run("BEGIN", ".connect", code=QUERY)[1], ".connect")
    equal(rows(), [], "rows")


@test
def reading():
    """BEGIN READ ONLY reads one snapshot; so does BEGIN if the user may only read"""
    _, err = run("BEGIN READ ONLY; SELECT 1; INSERT INTO note VALUES (1)", code=QUERY)
    true("ipcq-cli" in err, f"message: {err!r}")
    out, _ = run("BEGIN; SELECT count(*) FROM Genre; COMMIT", database="chinook")
    equal(out, "25\n", "a database to read")
    run("BEGIN IMMEDIATE", code=QUERY, database="chinook")
    equal(rows(), [], "rows")


# ---- --single-transaction ----------------------------------------------------------------------------------------------


@test
def single_transaction():
    """--single-transaction commits all of several scripts, or nothing; the first failure ends them"""
    script = service.data / "more.sql"
    script.write_text("INSERT INTO note VALUES (2);\n.print read\n")
    out, _ = run("--single-transaction", "-c", "INSERT INTO note VALUES (1)", "-f", str(script), "-c", f".read {script}",
                 code=QUERY)
    equal(out, "read\n", "output before the failure")
    equal(rows(), [], "rows after a failure")
    run("-1", "-c", "INSERT INTO note VALUES (1)", "-f", str(script))
    equal(rows(), [1, 2], "rows")
    _, err = run("-1", text="CREATE TABLE t(x);\nINSERT INTO note VALUES (1);\nNONSENSE;\nINSERT INTO note VALUES (2);\n",
                 code=QUERY)
    true("stdin:3: " in err and "nothing was changed" in err, f"messages: {err!r}")
    run("-1", text="CREATE TABLE t(x);\nSAVEPOINT a; INSERT INTO note VALUES (1); ROLLBACK TO a;\nDROP TABLE t;\n")
    equal(rows(), [], "rows of standard input")


@test
def single_transaction_is_one():
    """COMMIT and ROLLBACK cannot divide it, .quit with a code takes it back, and a database to read can be read"""
    for word in ("COMMIT", "ROLLBACK", "BEGIN", "SAVEPOINT a; COMMIT", "BEGIN; COMMIT; ROLLBACK"):
        _, err = run("-1", f"INSERT INTO note VALUES (1); {word}; INSERT INTO note VALUES (2)", code=QUERY)
        true("--single-transaction" in err, f"message of {word}: {err!r}")
    for words in ("BEGIN; BEGIN", "SAVEPOINT a; BEGIN"):
        _, err = run("-1", f"INSERT INTO note VALUES (1); {words}; COMMIT", code=QUERY)
        true("a transaction is open" in err, f"message of {words}: {err!r}")
    run("-1", "BEGIN; INSERT INTO note VALUES (1); SAVEPOINT a; COMMIT; BEGIN IMMEDIATE; INSERT INTO note VALUES (2); END")
    equal(rows(), [1, 2], "rows of two transactions within it")
    run("-1", "DELETE FROM note; BEGIN; INSERT INTO note VALUES (3); ROLLBACK")
    equal(rows(), [], "rows of one that was rolled back")
    run("-1", "INSERT INTO note VALUES (1)", ".quit 3", code=3)
    equal(rows(), [], "rows")
    run("-1", "INSERT INTO note VALUES (1)", ".quit", "INSERT INTO note VALUES (2)")
    equal(rows(), [1], "rows of .quit")
    equal(run("-1", "SELECT count(*) FROM Genre", database="chinook")[0], "25\n", "a database to read")
    run("-1", "--list", code=USAGE, database=None)


# ---- the prompt --------------------------------------------------------------------------------------------------------


@test
def prompt():
    """The prompt shows an open transaction, and leaving it asks first"""
    with shell_of() as shell:
        enter(shell, "BEGIN;")
        shell.wait_for(lambda: shell.cursor_line().rstrip() == "notes*>", "the transaction is shown")
        enter(shell, "INSERT INTO note VALUES (1);")
        shell.wait_for("1 row changed")
        enter(shell, ".quit 4")
        shell.wait_for("Leave? [y/N]")
        enter(shell, "n")
        shell.wait_for(lambda: shell.cursor_line().rstrip() == "notes*>", "the prompt is back")
        shell.send(control("d"))
        shell.wait_for(lambda: "Leave?" in shell.cursor_line(), "the second question")
        shell.send(ENTER)
        shell.wait_for(lambda: shell.cursor_line().rstrip() == "notes*>", "the prompt is back again")
        enter(shell, "COMMIT;")
        shell.wait_for(lambda: shell.cursor_line().rstrip() == "notes>", "the transaction has ended")
        enter(shell, "BEGIN; INSERT INTO note VALUES (2);")
        shell.wait_for(lambda: shell.cursor_line().rstrip() == "notes*>", "another transaction")
        shell.send(control("d"))
        shell.wait_for(lambda: "Leave?" in shell.cursor_line(), "the last question")
        enter(shell, "y")
        equal(shell.wait_exit(), 0, "exit code")
    equal(rows(), [1], "rows")


@test
def ended_by_the_service():
    """A transaction that the service has ended stays until ROLLBACK, and no statement runs outside of it"""
    with shell_of() as shell:
        enter(shell, "BEGIN; INSERT INTO note VALUES (1);")
        shell.wait_for("1 row changed")
        enter(shell, "INSERT OR ROLLBACK INTO note VALUES (1);")
        shell.wait_for("UNIQUE constraint failed")
        enter(shell, "INSERT INTO note VALUES (2);")
        shell.wait_for("the transaction has ended")
        shell.wait_for(lambda: shell.cursor_line().rstrip() == "notes!>", "the prompt tells")
        enter(shell, "INSERT INTO note VALUES (2); COMMIT;")
        shell.wait_for(lambda: shell.cursor_line().rstrip() == "notes>", "COMMIT reports the end")
        enter(shell, "BEGIN; INSERT INTO note VALUES (1); INSERT OR ROLLBACK INTO note VALUES (1); SELECT 1;")
        shell.wait_for(lambda: shell.cursor_line().rstrip() == "notes!>", "the prompt tells again")
        enter(shell, "ROLLBACK; INSERT INTO note VALUES (3);")
        shell.wait_for(lambda: shell.cursor_line().rstrip() == "notes>", "the transaction is left")
    equal(rows(), [3], "rows")


@test
def waiting():
    """Ctrl-C ends the wait for another writer, and the next BEGIN is a new transaction"""

    def queued():
        return [number for number, _, _, more in service.driver.manager("ListTransactions")[0] if more["state"] == "queued"]

    with shell_of() as first, shell_of() as second:
        enter(first, "BEGIN; INSERT INTO note VALUES (1);")
        first.wait_for("1 row changed")
        enter(second, "BEGIN IMMEDIATE;")
        wait_for(queued, "the second transaction waits")
        second.send(control("c"))
        second.wait_for("Cancelled.")
        second.wait_for(lambda: second.cursor_line().rstrip() == "notes>", "the prompt is back")
        wait_for(lambda: not queued(), "the service has given it up")
        enter(first, "COMMIT;")
        first.wait_for(lambda: first.cursor_line().rstrip() == "notes>", "the first has ended")
        enter(second, "BEGIN; INSERT INTO note VALUES (2); COMMIT;")
        second.wait_for("1 row changed")
        second.wait_for(lambda: second.cursor_line().rstrip() == "notes>", "the second has ended")
    equal(rows(), [1, 2], "rows")


@test
def temp_tables_stay():
    """Ctrl-C ends the wait of a BEGIN, and TEMP tables stay, so that no statement meets the file's tables instead"""

    def n_open():
        return len(service.driver.manager("ListTransactions")[0])

    with shell_of() as shell, contextlib.closing(sqlite3.connect(NOTES, isolation_level=None)) as writer:
        shell.run("CREATE TEMP TABLE note AS SELECT 'temp' AS x;")
        writer.execute("BEGIN IMMEDIATE")
        for _ in range(2):
            enter(shell, "BEGIN IMMEDIATE;")
            wait_for(lambda: n_open() == 2, "the transaction waits, beside the pin")
            shell.send(control("c"))
            shell.wait_for(lambda: "Cancelled." in shell.text() and shell.at_prompt(), "the prompt is back")
            wait_for(lambda: n_open() == 1, "the service has given it up")
            true("temp" in "\n".join(shell.run("SELECT x FROM note;")), shell.text())
            shell.send(control("l"))
            shell.wait_for(lambda: "Cancelled." not in shell.text(), "an empty screen")
        writer.execute("ROLLBACK")
        shell.run("BEGIN IMMEDIATE; INSERT INTO main.note VALUES (1); COMMIT;")
    equal(rows(), [1], "rows")


if __name__ == "__main__":
    sys.exit(main(service))
