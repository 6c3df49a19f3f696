#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
""".import: csv, tsv and jsonl, into new tables and into those that exist; bad lines; and that it writes all or nothing."""
import contextlib
import sqlite3
import subprocess
import sys

from pty_shell import ENTER, Shell, control  # finds what follows

from harness import CHINOOK, CLI, PATIENCE, PATIENT, SANITIZED, Service, main
from tap import equal, test, true

OK, QUERY, USAGE = 0, 1, 2
MIB = 1024 * 1024
RSS_MAX = 32 * MIB

service = Service({"chinook": CHINOOK}, limits=PATIENT | {"RowSizeMax": "1M"})
TARGET = service.data / "target.sqlite"
# A row takes some milliseconds, so that a test has time to end an import.
SLOW = """CREATE TABLE slow(x INTEGER); CREATE TRIGGER waste AFTER INSERT ON slow BEGIN
    SELECT max(n) FROM (WITH RECURSIVE c(n) AS (VALUES(1) UNION ALL SELECT n + 1 FROM c WHERE n < 50000) SELECT n FROM c);
    END;"""


def direct(sql):
    with contextlib.closing(sqlite3.connect(TARGET, timeout=PATIENCE)) as db:
        found = db.executescript(sql) if sql.count(";") > 1 else db.execute(sql).fetchall()
        db.commit()
        return found


direct("PRAGMA journal_mode = WAL;" + SLOW)
service.database("target", Path=TARGET, Mode="read-write", WriteSchema="yes")
service.database("fixed", Path=TARGET, Mode="read-write")
service.database("reader", Path=TARGET, Mode="read-only")
service.driver.manager("Reload")


def file_of(name, content):
    path = service.folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def run(*arguments, code=OK, text=None, database="target"):
    command = [CLI, "--address", service.address, "--mode=list", "--headers=off", database, *map(str, arguments)]
    done = subprocess.run(command, input=text, capture_output=True, timeout=PATIENCE * 2)
    equal(done.returncode, code, f"exit code of {arguments}, which said {done.stderr!r}")
    return done.stdout.decode(), done.stderr.decode()


def imports(name, content, table, *options, code=OK, database="target"):
    """Imports a file, and returns the messages without its folder."""
    path = file_of(name, content)
    _, err = run(" ".join((".import", *options, str(path), table)), code=code, database=database)
    return err.replace(f"{path.parent}/", "")


def columns(table):
    return [(name, kind) for _, name, kind, *_ in direct(f'PRAGMA table_info("{table}")')]


def content(table):
    return direct(f'SELECT * FROM "{table}" ORDER BY rowid')


def refuses(name, text, table, *options, **keywords):
    """An import fails, and leaves the table as it was, or without existence. Returns the messages."""
    before = direct("SELECT sql FROM sqlite_schema"), content(table) if columns(table) else None
    err = imports(name, text, table, *options, code=QUERY, **keywords)
    equal((direct("SELECT sql FROM sqlite_schema"), content(table) if columns(table) else None), before, f"after {err!r}")
    return err


@test
def into_a_temp_table():
    """A TEMP table is filled without the right to write and beside a writer, also in a transaction; not a table beside it"""
    direct("CREATE TABLE hidden(a); CREATE TABLE beside(a);")
    path, bad = file_of("temp.csv", "1\n2\n"), file_of("bad.csv", "3\nx\n")
    create, ask = "CREATE TEMP TABLE hidden(a INTEGER CHECK (a < 9));", "SELECT group_concat(a) FROM temp.hidden;"
    imports_it = f".import --no-header {path} hidden"
    for database in ("reader", "target"):
        with contextlib.closing(sqlite3.connect(TARGET, isolation_level=None)) as writer:
            writer.execute("BEGIN IMMEDIATE")
            for script in (
                (create, imports_it, ask), (create, f".import --no-header {path} HIDDEN", ask),
                (create, "BEGIN;", imports_it, "COMMIT;", ask), ("BEGIN;", create, imports_it, ask, "ROLLBACK;"),
            ):  # fmt: skip
                equal(run(database=database, text="\n".join(script).encode()), ("1,2\n", ""), f"{script} on {database}")
            writer.execute("ROLLBACK")
    script = (create, imports_it, f".import --no-header {bad} hidden", ask, f".import --no-header {path} beside")
    out, err = run(database="target", text="\n".join(script).encode(), code=QUERY)
    equal(out, "1,2\n", f"rows after a bad line: {err}")
    equal((content("hidden"), content("beside")), ([], [("1",), ("2",)]), "rows of the file")
    _, err = run(database="reader", text="\n".join((create, f".import --no-header {path} beside")).encode(), code=QUERY)
    true("read" in err, err)


# ---- formats -----------------------------------------------------------------------------------------------------------


@test
def csv():
    """csv: quotes, newlines within them, CR LF, a byte order mark, no newline at the end; types of a new table"""
    text = '\ufeffid,name,price,note\r\n1,"a, ""b""\nc",1.5,\r\n2,x"y,2,""\r\n\r\n-3,é,-0.25,007'
    equal(imports("a.csv", text, "csv1"), "", "messages")
    equal(columns("csv1"), [("id", "INTEGER"), ("name", "TEXT"), ("price", "NUMERIC"), ("note", "TEXT")], "columns")
    equal(content("csv1"), [(1, 'a, "b"\nc', 1.5, None), (2, 'x"y', 2.0, ""), (-3, "é", -0.25, "007")], "rows")


@test
def tsv():
    """tsv, its other suffix, and odd names of table and columns"""
    imports("a.tab", 'a "b"\tselect\n1,5\t"x\ty"\n', '"two words"')
    imports("mac.csv", 'a,b\r1,"x\ny"\r2,z\r', "mac")
    equal(content("mac"), [(1, "x\ny"), (2, "z")], "rows that end with CR alone")
    equal(columns("two words"), [('a "b"', "TEXT"), ("select", "TEXT")], "columns")
    equal(content("two words"), [("1,5", "x\ty")], "rows")


@test
def jsonl():
    """jsonl: members in any order, NULL for those that miss, JSON for arrays and objects, BLOBs as the shell writes them"""
    text = '{"a":1,"b":"x\\ny"}\n\n{"b":null,"c":[1,{"d":2}],"a":true}\r\n{"c":{"base64":"AP8="},"e":2.5}\n'
    imports("a.jsonl", text, "json1")
    equal(columns("json1"), [("a", "INTEGER"), ("b", "TEXT"), ("c", ""), ("e", "REAL")], "columns")
    rows = [(1, "x\ny", None, None), (1, None, '[1,{"d":2}]', None), (None, None, b"\0\xff", 2.5)]
    equal(content("json1"), rows, "rows")
    out, _ = run("--mode=jsonl", "SELECT * FROM json1")
    equal(imports("again.ndjson", out, "json2"), "", "messages of its own output")
    equal(content("json2"), rows, "rows of its own output")
    odd = [("a\0b", -0.5, 1e300 * 1e10), ("\0", 5e-324, 2**63 - 1), ("\U0001f600\\u0000", 1 / 3, 1.5)]
    direct("CREATE TABLE odd(t TEXT, r REAL, n)")
    with contextlib.closing(sqlite3.connect(TARGET, timeout=PATIENCE)) as db:
        db.executemany("INSERT INTO odd VALUES (?, ?, ?)", odd)
        db.commit()
    imports("odd.jsonl", run("--mode=jsonl", "SELECT * FROM odd")[0], "odd2")
    equal(content("odd2"), odd, "a NUL in text, and numbers at the limits, of its own output")
    imports("lossy.jsonl", '{"n":18446744073709551617}\n{"n":1e-400}\n{"n":1.10}\n{"n":9007199254740993}\n', "lossy")
    equal(content("lossy"), [("18446744073709551617",), ("1e-400",), (1.1,), (2**53 + 1,)], "numbers of JSON")
    direct("CREATE TABLE texts(t TEXT, r REAL)")
    imports("texts.jsonl", '{"t":0.12345678901234568,"r":1e400}\n{"t":1.10,"r":18446744073709551617}\n', "texts")
    rows = [("0.12345678901234568", float("inf")), ("1.10", 2.0**64)]
    equal(content("texts"), rows, "columns of a table that exists")
    imports("object.jsonl", '{"a":{"base64":"AP8=","x":1}}\n{"a":{"base64":"?"}}\n{"a":"\\\\u0000"}', "json3")
    equal(content("json3"), [('{"base64":"AP8=","x":1}',), ('{"base64":"?"}',), ("\\u0000",)], "what is no BLOB")


@test
def kept():
    """A new table keeps the text of each field: no number is written back in another form"""
    columns_of = {
        "commit": (["557e90", "1234567"], "TEXT"), "tiny": (["1e-400", "0.5"], "TEXT"), "zero": (["-0", "1"], "TEXT"),
        "minus": (["-0.0", "0.0"], "TEXT"), "digits": (["0.1234567890123456789", "0.5"], "TEXT"),
        "version": (["1.10", "1.9"], "TEXT"), "large": (["9007199254740993", "1.5"], "NUMERIC"),
        "point": (["1.0", "1"], ""), "id": (["18446744073709551617", "1"], "TEXT"), "real": (["1.0e+20", "1.0"], "REAL"),
        "whole": (["-9223372036854775808", "9223372036854775807"], "INTEGER"),
    }  # fmt: skip
    text = "\n".join(",".join(row) for row in [columns_of, *zip(*(values for values, _ in columns_of.values()))]) + "\n"
    for name, content in (("kept.csv", text), ("kept.tsv", text.replace(",", "\t"))):
        imports(name, content, name.replace(".", "_"))
        equal(columns(name.replace(".", "_")), [(name, kind) for name, (_, kind) in columns_of.items()], "columns")
        out, _ = run(f"--mode={name[5:]}", "--headers=on", f"SELECT * FROM {name.replace('.', '_')}")
        equal(out, content, f"{name}, written back")


@test
def existing():
    """A table that exists: columns by name in any order, or by position; its types; defaults; generated columns"""
    direct("CREATE TABLE there(id INTEGER PRIMARY KEY, name TEXT NOT NULL, n NUMERIC DEFAULT 7, any, "
           "twice AS (id * 2), r REAL);")  # fmt: skip
    imports("names.csv", "Name,ID\nx,1\n,2\n", "there")
    imports("rows.csv", "3,y,4.0,5,1\n,z,,,\n", "there")
    imports("header.csv", "# export\nid,name,n,any,r\n7,a,b,c,\n", "there", "--skip", "1")
    imports("skipped.csv", "whatever,title\n8,b,,,\n", "THERE", "-csv", "-skip", "1")
    imports("members.jsonl", '{"id":9,"NAME":"j"}\n{"Id":10,"name":"k","any":"5"}\n', "there")
    equal(content("there"), [
        (1, "x", 7, None, 2, None), (2, "", 7, None, 4, None), (3, "y", 4, "5", 6, 1.0), (4, "z", None, None, 8, None),
        (7, "a", "b", "c", 14, None), (8, "b", None, None, 16, None), (9, "j", 7, None, 18, None),
        (10, "k", 7, "5", 20, None),
    ], "rows")  # fmt: skip


@test
def generated():
    """A generated column is named as such, in a header and in JSON; files with and without a header leave it out"""
    direct("CREATE TABLE derived(a INTEGER, twice AS (a * 2) STORED, b INTEGER, thrice AS (a * 3))")
    files = [("derived.csv", "a,Twice,b\n1,2,3\n"), ("alone.csv", "twice\n3\n"), ("thrice.jsonl", '{"thrice":3}\n')]
    for name, text in files:
        err = refuses(name, text, "derived")
        column = "thrice" if "thrice" in name else "twice"
        true(f"{name}:1: the column {column} is generated by the table, so leave it out" in err, err)
    imports("derived.csv", "b,a\n1,2\n", "derived")
    imports("derived.csv", "3,4\n", "derived", "--no-header")
    equal(content("derived"), [(2, 4, 1, 6), (3, 6, 4, 9)], "rows")


@test
def header_or_row():
    """A first line that names one column must name them all; --no-header makes it a row"""
    direct("CREATE TABLE pair(a TEXT, b TEXT)")
    err = refuses("pair.csv", "a,c\n1,2\n", "pair")
    true("pair.csv:1: the table has no column c; --no-header takes the line as a row" in err, err)
    imports("pair.csv", "a,c\n1,2\n", "pair", "--no-header")
    equal(content("pair"), [("a", "c"), ("1", "2")], "rows")
    true("new.csv:1: " in refuses("new.csv", "1,2\n", "pair2", "--no-header"), "a new table without names")


@test
def sources():
    """Standard input, a pipe, and an import of 2,000 columns"""
    text = b"a,b\n" + b"1,2\n" * 100000
    run(".import --csv - piped", text=text)
    equal(direct("SELECT count(*), sum(a) FROM piped"), [(100000, 100000)], "rows of standard input")
    run(".import --csv /dev/stdin piped", text=text)
    equal(direct("SELECT count(*), sum(a) FROM piped"), [(200000, 200000)], "rows of a pipe")
    _, err = run(text=b".import --csv - piped\n", code=USAGE)
    true("standard input is the script" in err, err)
    names = [f"c{n}" for n in range(2000)]
    imports("wide.csv", ",".join(names) + "\n" + ",".join(map(str, range(2000))) + "\n", "wide")
    equal(content("wide"), [tuple(range(2000))], "a wide row")


@test
def used_up():
    """A table whose AUTOINCREMENT has no rowid left: the message says so, and not that a disk is full"""
    direct("CREATE TABLE counted(id INTEGER PRIMARY KEY AUTOINCREMENT, x);"
           "INSERT INTO counted VALUES (9223372036854775807, 1);")  # fmt: skip
    err = refuses("counted.csv", "x\n2\n", "counted")
    true("AUTOINCREMENT has no rowid left" in err and "disk" not in err, err)
    imports("counted.csv", "id,x\n5,2\n", "counted")
    equal(content("counted"), [(5, "2"), (2**63 - 1, 1)], "rows with rowids of the file")


@test
def misuse():
    """Missing words, unknown options and formats, and files that cannot be read"""
    for line in (".import", ".import a.csv", ".import a.csv t u", ".import --skip x a.csv t", ".import --nonsense a.csv t"):
        true("usage: .import" in run(line, code=USAGE)[1], line)
    true("suffix" in run(".import /dev/null t", code=USAGE)[1], "no format")
    true("No such file" in run(".import /missing.csv t", code=QUERY)[1], "no file")
    true("directory" in run(".import --csv / t", code=QUERY)[1], "a folder")


# ---- bad lines ---------------------------------------------------------------------------------------------------------


@test
def bad_lines():
    """Every bad line is named, and nothing is written"""
    text = b'id,name\n1\n2,x\n3,y,z\n"4"x,y\n\xff,y\n5,\0\n"6\n7",ok\n8,"open\n9,y\n'
    equal(refuses("bad.csv", text, "bad").splitlines(), [
        "ipcq-cli: bad.csv:2: it has 1 field, and there are 2 columns",
        "ipcq-cli: bad.csv:4: it has 3 fields, and there are 2 columns",
        "ipcq-cli: bad.csv:5: there is text after a closing quote",
        "ipcq-cli: bad.csv:6: it is not UTF-8 text",
        "ipcq-cli: bad.csv:7: it has a NUL byte",
        "ipcq-cli: bad.csv:10: a quote is opened and never closed",
        "ipcq-cli: bad.csv: nothing was written",
    ], "messages of csv")  # fmt: skip
    text = b'{"a":1}\n[1]\n{"a":\n{"a":1,"a":2}\n{"a":"\xff"}\n{"a":"\\udc00"}\n'
    said = [line.split("bad.jsonl:")[1] for line in refuses("bad.jsonl", text, "bad").splitlines()]
    equal([line.split(":")[0] for line in said], ["2", "3", "4", "5", "6", " nothing was written"], "messages of jsonl")


@test
def many_bad_lines():
    """Twenty bad lines are named, the others are counted"""
    err = refuses("many.csv", "a,b\n" + "1\n" * 1000, "bad").splitlines()
    equal(len(err), 21, "messages")
    true("many.csv:21: " in err[19] and "and 980 more bad lines; nothing was written" in err[20], f"{err[19:]}")


@test
def empty():
    """An empty file is an error, a file with only names makes the table"""
    for name in ("empty.csv", "empty.jsonl"):
        true(f"{name}:1: " in refuses(name, "", "bad"), name)
    true("skipped.csv:4: the file is empty" in refuses("skipped.csv", "a\n", "bad", "--skip", "3"), "skipped")
    true("the file is empty" in refuses("skipped.csv", "a\n", "bad", "--skip", str(10**18)), "far more lines than there are")
    true("twice.csv:1: two columns have the name A" in refuses("twice.csv", "a,A\n1,2\n", "bad"), "the same name")
    imports("names.csv", "a,b\n", "only_names")
    equal(columns("only_names"), [("a", "TEXT"), ("b", "TEXT")], "columns")
    imports("one.csv", "a\n1\n\n2\n", "one")
    equal(content("one"), [(1,), (None,), (2,)], "a column with an empty line")


@test
def long_line():
    """A line that is longer than the service's limit is a bad line, and needs no more memory"""
    err = refuses("long.csv", b'a\n"' + b"x" * 20 * MIB, "bad")
    true("long.csv:2: it is longer than 2359296 bytes" in err, err)
    err = refuses("long.jsonl", b'{"a":1}\n{"a":"' + b"x" * MIB + b'"}\n', "bad")
    true("long.jsonl:2: is larger than RowSizeMax= allows" in err, err)


@test
def types():
    """Columns for numbers take no other texts"""
    direct("CREATE TABLE numbers(i INTEGER, r REAL)")
    err = refuses("numbers.csv", "i,r\n1,2\n007,1e3\nmany,1\n1,0x10\n", "numbers")
    true("numbers.csv:4: column i is for numbers, and this is a text: many" in err, err)
    true("numbers.csv:5: column r is for numbers, and this is a text: 0x10" in err, err)
    imports("numbers.csv", "i,r\n 007,-1e3\n,+2\n", "numbers")
    equal(content("numbers"), [(7, -1000.0), (None, 2.0)], "rows")


@test
def constraints():
    """Rows that the service refuses are named by their lines, each of them"""
    direct("CREATE TABLE checked(id INTEGER UNIQUE, n INTEGER CHECK (n < 10))")
    err = refuses("checked.csv", 'id,n\n1,1\n\n2,"1\n"\n2,2\n3,3\n4,11\n5,5\n', "checked")
    equal(err.splitlines(), [
        "ipcq-cli: checked.csv:6: UNIQUE constraint failed: checked.id",
        "ipcq-cli: checked.csv:8: CHECK constraint failed: n < 10",
        "ipcq-cli: checked.csv: nothing was written",
    ], "messages")  # fmt: skip
    err = refuses("checked.csv", "id,n\n" + "1,1\n" * 100, "checked").splitlines()
    true(len(err) == 21 and "the lines after it were not tried; nothing was written" in err[20], f"{err[19:]}")
    direct("CREATE TABLE child(id REFERENCES parent DEFERRABLE INITIALLY DEFERRED); CREATE TABLE parent(id PRIMARY KEY);")
    service.database("target", Path=TARGET, Mode="read-write", WriteSchema="yes", ForeignKeys="yes")
    service.driver.manager("Reload")
    true("FOREIGN KEY" in refuses("child.csv", "id\n1\n", "child"), "a constraint that is checked at the end")


# ---- all or nothing ----------------------------------------------------------------------------------------------------


@test
def rights():
    """Without a right to write, or to make tables, the service's message is shown"""
    err = imports("r.csv", "GenreId,Name\n77,x\n", "Genre", code=QUERY, database="chinook")
    true("No client may write this database" in err, err)
    true("WriteSchema" in refuses("r.csv", "a\n1\n", "bad", database="fixed"), "a new table")
    done = service.run(CLI, "--address", service.address, "-c", f".import {service.folder}/r.csv t")
    true(b"no database is open" in done.stderr, done.stderr)


@test
def within_a_transaction():
    """In a transaction of the user an import belongs to it; one that fails takes back only itself"""
    good, bad = file_of("good.csv", "a\n1\n2\n"), file_of("bad.csv", "id,n\n1,1\n1,1\n")
    out, _ = run("BEGIN", f".import {good} within", "SELECT sum(a) FROM within", "ROLLBACK")
    equal((out, columns("within")), ("3\n", []), "rolled back")
    _, err = run("BEGIN", f".import {good} within", f".import {bad} checked", "COMMIT", code=QUERY)
    true("UNIQUE" in err, err)
    equal((content("within"), content("checked")), ([(1,), (2,)], []), "committed")
    _, err = run("--single-transaction", f".import {good} within", f".import {bad} checked", code=QUERY)
    true("nothing was changed" in err, err)
    equal(content("within"), [(1,), (2,)], "a script that failed")
    out, _ = run(".changes on", f".import {good} within", "SELECT 1")
    true("total_changes: 2" in out, out)


def slow_import(shell):
    """Begins an import, and returns when the bar is shown."""
    path = file_of("slow.csv", "x\n" + "1\n" * 100000)
    shell.type(f".import {path} slow")
    shell.send(ENTER)
    shell.wait_for("writing, ")


@test
def bar_and_interrupt():
    """On a terminal there is a bar; Ctrl-C takes everything back, and the prompt comes back without the bar"""
    with Shell("--no-pager", "target", on=service) as shell:
        slow_import(shell)
        true("[" in shell.cursor_line() and "]" in shell.cursor_line() and " %" in shell.cursor_line(), shell.cursor_line())
        shell.send(control("c"))
        shell.wait_for("Cancelled.")
        shell.wait_prompt()
        true("writing" not in shell.text(), shell.text())
        shell.run("INSERT INTO one VALUES (3);")
        path = file_of("more.csv", "a\n4\n")
        equal(shell.run(f".import {path} one"), ["1 row into one"], "the next one")
    equal((content("slow"), content("one")[-2:]), ([], [(3,), (4,)]), "rows")


@test
def interrupted_input():
    """Ctrl-C ends the wait for standard input"""
    command = [CLI, "--address", service.address, "target", ".import --csv - late"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write(b"a\n" * 100000)
        process.stdin.flush()
        process.send_signal(2)
        equal(process.wait(PATIENCE), 130, "exit code")
    equal(columns("late"), [], "columns")


@test
def lost_service():
    """A service that is killed during an import: a message, and nothing was written"""
    with Shell("--no-pager", "target", on=service) as shell:
        slow_import(shell)
        service.kill()
        shell.wait_for("Error: The service was lost, and the transaction with it.")
        shell.wait_prompt()
        service.start()
        true("42" in "".join(shell.run("SELECT 40 + 2;")), "the next statement")
    equal(content("slow"), [], "rows")


@test
def memory():
    """An import of 64 MiB needs little memory"""
    path = service.folder / "large.csv"
    with path.open("wb") as file:
        file.write(b"a,b\n")
        for _ in range(64):
            file.write((b"1," + b"x" * 1021 + b"\n") * 1024)
    command = [CLI, "--address", service.address, "target", f".import {path} large"]
    with subprocess.Popen(command) as process:
        peak = 0
        while process.poll() is None:
            with contextlib.suppress(OSError, ValueError, IndexError):
                status = open(f"/proc/{process.pid}/status").read()
                peak = max(peak, int(status.split("VmHWM:")[1].split()[0]) * 1024)
        equal(process.wait(), 0, "exit code")
    equal(direct("SELECT count(*), sum(length(b)) FROM large"), [(65536, 65536 * 1021)], "rows")
    true(0 < peak < RSS_MAX or SANITIZED, f"it needed {peak // 1024} KiB")
    path.unlink()


if __name__ == "__main__":
    sys.exit(main(service))
