#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""sqlipcctl migrate and check --queries, from SQLite to SQLite: exact copies, interruptions, changing sources, refusals."""
import contextlib
import fcntl
import itertools
import json
import os
import pathlib
import pty
import pwd
import re
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time

import broken_schema
from harness import CHINOOK, CTL, PATIENCE, PATIENT, UID_A, Service, main, needs_root, wait_for
from library import Library
from tap import equal, test, true

OK, FAILED, USAGE = 0, 1, 2
USER = pwd.getpwuid(os.geteuid()).pw_name
STATE = "sqlipc_migration"

# All that a schema can have, and values that are easily lost.
HARD = """
PRAGMA foreign_keys = OFF;
CREATE TABLE "odd ""name" (a, "b c" TEXT COLLATE NOCASE, d AS (a || 'x'), e DEFAULT (1 + 1) CHECK (e <> 7));
INSERT INTO "odd ""name" (rowid, a, "b c") VALUES
    (-9223372036854775808, NULL, 'first'), (5, 9e999, CAST(x'610062' AS TEXT)), (7, -0.0, CAST(x'ff80' AS TEXT)),
    (9223372036854775807, 9223372036854775807, x''), (8, 0.1, ''), (9, -9223372036854775808, x'00ff');
CREATE TABLE counted(id INTEGER PRIMARY KEY AUTOINCREMENT, name VARCHAR(9) NOT NULL UNIQUE);
INSERT INTO counted VALUES (1, 'one'), (90, 'last');
DELETE FROM counted WHERE id = 90;
CREATE TABLE pair(x TEXT, y INT, PRIMARY KEY (y, x)) WITHOUT ROWID;
INSERT INTO pair VALUES ('b', 1), ('a', 2), ('', 3);
CREATE TABLE child(of REFERENCES counted(id), more INTEGER GENERATED ALWAYS AS (of + 1) STORED);
INSERT INTO child VALUES (1), (17);
CREATE TABLE strict_one(n INTEGER, t ANY) STRICT;
INSERT INTO strict_one VALUES (1, '1');
CREATE TABLE empty(x);
CREATE INDEX by_name ON counted(name COLLATE NOCASE DESC) WHERE id > 3;
CREATE UNIQUE INDEX by_length ON pair(length(x), y);
CREATE VIEW names AS SELECT name FROM counted;
CREATE VIEW more_names AS SELECT name || '!' AS loud FROM names;
CREATE VIEW broken AS SELECT * FROM not_there;
CREATE TRIGGER instead INSTEAD OF INSERT ON names BEGIN INSERT INTO counted(name) VALUES (new.name); END;
CREATE TRIGGER after_it AFTER INSERT ON counted BEGIN INSERT INTO empty VALUES (new.id); END;
CREATE VIRTUAL TABLE words USING fts5(word);
PRAGMA user_version = 41;
PRAGMA application_id = 42;
"""
# Tables in which the service keeps nothing of ours.
OBJECTS = f"SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE 'words%' AND name NOT LIKE '%{STATE}%'"


@contextlib.contextmanager
def connected(path):
    with contextlib.closing(sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)) as db:
        db.text_factory = bytes
        yield db


def make(path, sql, journal="wal"):
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA journal_mode = {journal}")
        db.executescript(sql)
    return path


def contents(path):
    """All objects and rows of a database, with rowids and storage classes."""
    with connected(path) as db:
        objects = sorted(db.execute(OBJECTS).fetchall(), key=str)
        rows = {}
        for kind, name, _, sql in objects:
            if kind == b"table":
                quoted = '"' + name.decode().replace('"', '""') + '"'
                rowid = "" if b"WITHOUT ROWID" in sql else "rowid, "
                columns = [row[0].decode() for row in db.execute("SELECT name FROM pragma_table_xinfo(?)", (name.decode(),))]
                types = ", ".join(f'typeof("{c}"), "{c}"' for c in columns)
                rows[name] = sorted(map(repr, db.execute(f"SELECT {rowid}{types} FROM {quoted}")))
        header = [db.execute(f"PRAGMA {pragma}").fetchone() for pragma in ("user_version", "application_id")]
        has_sequence = db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'").fetchone()
        sequences = db.execute("SELECT * FROM sqlite_sequence ORDER BY 1").fetchall() if has_sequence else []
    return objects, rows, header, sequences


def tables(path):
    with connected(path) as db:
        return [name.decode() for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]


class Migrating(Service):
    """A service that publishes a database as `old`, and the file of a configuration for the new one."""

    def __init__(self, source, **keys):
        super().__init__({}, limits=PATIENT)
        self.owned = self.folder / "owned"
        self.owned.mkdir()
        self.old = source if os.path.isabs(source) else make(self.owned / "old.sqlite", source)
        self.new, self.conf = self.owned / "new.sqlite", self.folder / "new.conf"
        self.conf.write_text(f"[Database]\nPath={self.new}\nAllowUsers=*\nMode=read-write\nWriteUsers=*\n")
        self.database("old", **({"Path": self.old} | keys))
        self.driver.manager("Reload")

    def command(self, *arguments, verb="migrate"):
        more = [f"--service-user={USER}"] if verb == "migrate" else []
        return [CTL, f"--address={self.address}", f"--config-dir={self.config_dir}", verb, *arguments, *more]

    def migrate(self, *arguments, code=OK, **keywords):
        """Returns what it printed, and its messages."""
        done = self.run(*self.command("old", f"--to={self.conf}", *arguments), **keywords)
        out, err = done.stdout.decode(), done.stderr.decode()
        equal(done.returncode, code, f"exit code of migrate {arguments}, which said {err!r} and printed {out!r}")
        return out, err

    def is_clean(self):
        """Nothing of the temporary publication is left."""
        left = [path.name for path in (self.config_dir / "databases.d").iterdir() if "-migration" in path.name]
        equal([name for name in left if not name.endswith(".before-migration")], [], "files left")
        equal([name for name, _, _ in self.driver.manager("ListDatabases")[0]], ["old"], "databases")


@test
def whole_chinook():
    """chinook: types are shown and confirmed, the copy is exact, the next call copies nothing, the switch is one reload"""
    with Migrating(CHINOOK) as service:
        out, err = service.migrate(code=FAILED)
        true("BillingState" in out and "210 text, 202 null" in out, out)
        true("with --yes" in err and tables(service.new) == [], err)
        told = json.loads(service.migrate("--yes", "--json")[0])
        equal(sum(table["rows"] for table in told["tables"]), told["copied"], "rows")
        equal((len(told["tables"]), told["switched"], told["omitted"], told["refused"]), (11, False, [], []), "outcome")
        equal(contents(service.new), contents(CHINOOK), "the copy")
        service.is_clean()
        again = json.loads(service.migrate("--yes", "--json", "--switch")[0])
        equal((again["copied"], again["tables"], again["switched"]), (0, told["tables"], True), "the second call")
        service.is_clean()
        true(STATE not in tables(service.new), "the state is left in the new database")
        equal((service.config_dir / "databases.d/old.conf").read_text(), service.conf.read_text(), "configuration")
        kept = service.config_dir / "databases.d/old.conf.before-migration"
        true(f"Path={CHINOOK}" in kept.read_text(), "the old configuration")
        true("uses the new database" in service.migrate("--yes")[0], "a call after the switch")


@test
def hard_schema():
    """Rowids, generated columns, AUTOINCREMENT, views, triggers and all values are copied; virtual ones are named"""
    with Migrating(HARD) as service:
        told = json.loads(service.migrate("--yes", "--json")[0])
        equal(contents(service.new), contents(service.old), "the copy")
        true(any("words" in line for line in told["omitted"]), told["omitted"])
        columns = {(c["table"], c["column"]): c["found"] for c in told["columns"]}
        equal(columns['odd "name', "a"], "2 integer, 3 real, 1 null", "found")
        # Each table is made again when it was changed, with all that belongs to it.
        with connected(service.old) as db:
            db.execute("DROP TRIGGER after_it")
            db.execute("UPDATE counted SET name = 'two' WHERE id = 1")
        err = service.migrate("--yes")[1]
        true("schema or the types have changed" in err, err)
        equal(contents(service.new), contents(service.old), "the copy of the new schema")
        with connected(service.old) as db:
            db.execute("INSERT INTO counted(name) VALUES ('new')")
        err = service.migrate("--yes")[1]
        true("counted was changed since it was copied" in err and "pair" not in err, err)
        equal(contents(service.new), contents(service.old), "the copy of the new rows")


def numbers(n_tables, n_rows):
    """Tables with a rowid as key, and without one, in turn."""
    keys = ("INTEGER PRIMARY KEY, x)", "TEXT PRIMARY KEY, x) WITHOUT ROWID")
    return "".join(
        f"CREATE TABLE t{i}(id {keys[i % 2]};"
        f"INSERT INTO t{i} WITH n(v) AS (VALUES (1) UNION ALL SELECT v + 1 FROM n WHERE v < {n_rows}) "
        f"SELECT v, v * {i + 1} FROM n; CREATE INDEX i{i} ON t{i}(x);"
        for i in range(n_tables)
    )


def entries(path):
    """The progress that the target tells: entries and the rows of its last table."""
    with contextlib.suppress(sqlite3.Error), connected(path) as db:
        (count,) = db.execute(f"SELECT count(*) + sum(state = 'copied') FROM {STATE}").fetchone()
        return count or 0
    return 0


def kill_at_each_step(n_tables):
    """Returns how often: on a busy machine a migration goes on for several steps before it can be killed."""
    reached, kills = 0, 0
    with Migrating(numbers(n_tables, 60000)) as service:
        while True:
            process = subprocess.Popen(
                list(map(str, service.command("old", f"--to={service.conf}", "--yes"))),
                env=service.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            wait_for(lambda: process.poll() is not None or entries(service.new) > reached, "the migration goes on")
            if process.poll() is not None:
                break
            process.kill()
            process.wait()
            now = entries(service.new)
            true(now >= reached, f"progress was lost: {reached} to {now}")
            reached, kills = now, kills + 1
        equal(process.returncode, 0, "exit code at the end")
        equal(contents(service.new), contents(service.old), "the copy")
        service.is_clean()
    return kills


@test
def killed():
    """SIGKILL at each step: the next call continues, copies no complete table again, and the copy is exact"""
    n_tables = kills = 4
    while kills > 0:
        kills -= kill_at_each_step(n_tables)


@test
def killed_while_writing():
    """What a call has left that was killed while it wrote its configuration is removed by the next one"""
    with Migrating("SELECT 1") as service:
        folder = service.config_dir / "databases.d"
        (folder / "old-migration.conf.d").mkdir()
        nobody = int(pathlib.Path("/proc/sys/kernel/pid_max").read_text()) + 1
        for name in ("old-migration.conf.d/.override.conf", ".old-migration.conf"):
            (folder / f"{name}.{nobody}.new").write_text("[Data")
        living = folder / f".old-migration.conf.{os.getpid()}.new"
        living.write_text("[Data")
        service.migrate("--yes")
        true(living.exists(), "what a running call writes is gone")
        living.unlink()
        service.is_clean()


@test
def interrupted():
    """SIGINT ends it in good order: nothing is left published, and the next call continues"""
    with Migrating(numbers(2, 100000)) as service:
        process = subprocess.Popen(
            list(map(str, service.command("old", f"--to={service.conf}", "--yes"))),
            env=service.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        wait_for(lambda: entries(service.new) > 1, "a table is being copied")
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=PATIENCE)[1].decode()
        true(process.returncode in (OK, FAILED), f"it ended with {process.returncode}")
        true(process.returncode == OK or "interrupted" in err, err)
        service.is_clean()
        service.migrate("--yes")
        equal(contents(service.new), contents(service.old), "the copy")


@test
def damaged_source():
    """A source that is damaged after the question: the error says so, and the damaged table does not count as copied"""
    with Migrating("SELECT 1") as service:
        make(service.old, re.sub("CREATE INDEX [^;]*;", "", numbers(2, 40000)), journal="delete")
        whole = service.old.read_bytes()
        terminal, theirs = pty.openpty()
        process = subprocess.Popen(
            list(map(str, service.command("old", f"--to={service.conf}", "--switch"))),
            env=service.environment, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
        )  # fmt: skip
        asked = b""
        while b"[y/N]" not in asked:
            asked += process.stdout.read(4096) or b"[y/N] at its end"
        counter = int.from_bytes(whole[24:28], "big") + 1  # so that pages in memory are not used
        with open(service.old, "r+b") as file:
            file.write(whole[:24] + counter.to_bytes(4, "big") + whole[28 : len(whole) * 3 // 4])
            file.write(b"\xff" * (len(whole) - file.tell()))
        os.write(terminal, b"y\n")
        err = process.communicate(timeout=PATIENCE)[1].decode()
        os.close(terminal)
        os.close(theirs)
        equal(process.returncode, FAILED, err)
        true("Copying t1: " in err and "malformed" in err and "Run the same command again" in err, err)
        with connected(service.new) as db:
            state = dict(db.execute(f"SELECT entry, state FROM {STATE} WHERE entry LIKE 'table%'"))
        equal(state, {b"table t0": b"copied", b"table t1": b"copying"}, "what the target tells")
        service.is_clean()
        true("malformed" in service.migrate("--yes", code=FAILED)[1], "a call that finds the damage at once")
        service.old.write_bytes(whole)
        told = json.loads(service.migrate("--yes", "--switch", "--json")[0])
        true(told["switched"], told)
        equal(contents(service.new), contents(service.old), "the copy")


@test
def source_changes():
    """Changes during the comparison are noticed, of other programs, too; after that only the changed table is copied"""
    with Migrating(numbers(2, 100), Mode="read-write", WriteUsers="*") as service:
        service.migrate("--yes")
        stop, n = threading.Event(), 0

        def write():
            nonlocal n
            with contextlib.closing(sqlite3.connect(service.old, timeout=PATIENCE, isolation_level=None)) as db:
                while not stop.is_set():
                    db.execute("UPDATE t1 SET x = x + 1 WHERE id = '1'")
                    n += 1

        writer = threading.Thread(target=write)
        writer.start()
        wait_for(lambda: n > 0, "the writer writes")
        try:
            done = service.run(*service.command("old", f"--to={service.conf}", "--yes"))
        finally:
            stop.set()
            writer.join()
        err = done.stderr.decode()  # If the writer pauses for long enough, the call succeeds.
        true("t1 was changed since it was copied" in err, err)
        equal("write to old all the time" in err, done.returncode == FAILED, err)
        service.is_clean()
        told = json.loads(service.migrate("--yes", "--switch", "--json")[0])
        true(told["switched"] and told["copied"] in (0, 100), told)
        equal(contents(service.new), contents(service.old), "the copy")


@test
def running_clients():
    """A result that is being read during the switch is that of the old database; the next one has the new rows"""
    with Migrating(numbers(1, 200000)) as service:
        service.migrate("--yes")
        client = service.client()
        run = client.query("old", "SELECT id, x, 'old' FROM t0")
        service.migrate("--yes", "--switch")
        with connected(service.new) as db:
            db.execute("UPDATE t0 SET x = -1")
        equal(client.query("old", "SELECT sum(x) FROM t0").read().rows, [[-200000]], "the new database")
        equal(sum(x for _, x, _ in run.read().rows), 200000 * 200001 // 2, "sum of the old database")


def write_numbers(service, transport, first, acknowledged, stop):
    """Writes numbers one by one, and notes those that were acknowledged."""
    with Library(service, transport=transport) as library:
        for n in itertools.count(first):
            if stop.is_set():
                break
            _, answer = library.ask(f"exec old INSERT INTO log(n) VALUES ({n})")
            if not answer.startswith("error"):
                acknowledged.append(n)
            time.sleep(0.02)


@test
def writing_clients():
    """Each write that was acknowledged before, during or after the switch is in the new database"""
    with Migrating("CREATE TABLE log(n INTEGER PRIMARY KEY)", Mode="read-write", WriteUsers="*") as service:
        stop, writers, all_numbers = threading.Event(), [], []
        for i, transport in enumerate(("channel", "channel", "pipe", "dbus")):
            all_numbers.append([])
            arguments = (service, transport, i * 1000000, all_numbers[-1], stop)
            writers.append(threading.Thread(target=write_numbers, args=arguments))
            writers[-1].start()
        wait_for(lambda: all(all_numbers), "all writers write")
        try:
            service.migrate("--yes", "--switch")
        finally:
            stop.set()
            for writer in writers:
                writer.join()
        with connected(service.new) as db:
            there = {n for (n,) in db.execute("SELECT n FROM log")}
        lost = [n for numbers in all_numbers for n in numbers if n not in there]
        equal(lost, [], "writes that were acknowledged, and are lost")


@test
def refusals():
    """Wrong or missing files, a target that is not empty, the source itself, drop-ins, Expose=, and unknown types"""
    with Migrating(CHINOOK) as service:
        good = service.conf.read_text()
        equal(service.run(*service.command("old")).returncode, USAGE, "without --to")
        equal(service.run(*service.command("nosuch", f"--to={service.conf}")).returncode, FAILED, "no such database")
        for text, why in (
            ("[Database]\nPath=relative\n", "not absolute"),
            ("", "no section"),
            (f"[Database]\nPath={CHINOOK}\n", "is the database itself"),
            (f"[Database]\nPath={service.folder}/nowhere/\n", ""),
        ):
            service.conf.write_text(text)
            true(why in service.migrate("--yes", code=FAILED)[1], why)
        service.conf.unlink()
        true("cannot be read" in service.migrate("--yes", code=FAILED)[1], "no file")
        service.conf.write_text(good)
        true("is not TABLE.COLUMN=TYPE" in service.migrate("--type=Track.Name=frob", code=USAGE)[1], "type")
        true("for a target with" in service.migrate("--dates", code=USAGE)[1], "an option that would have no effect")
        make(service.new, "CREATE TABLE theirs(x)")
        true("is not empty" in service.migrate("--yes", code=FAILED)[1], "not empty")
        equal(tables(service.new), ["theirs"], "tables after the refusal")
        service.new.unlink()
        drop_in = service.config_dir / "databases.d/old.conf.d/10-more.conf"
        drop_in.parent.mkdir()
        drop_in.write_text("[Database]\nDescription=more\n")
        true("has drop-ins" in service.migrate("--yes", "--switch", code=FAILED)[1], "drop-ins")
        drop_in.unlink()
        drop_in.parent.rmdir()
        other = service.database("old-migration", Path=CHINOOK)
        true("is there already" in service.migrate("--yes", code=FAILED)[1], "a database of that name")
        other.unlink()
        with open(service.conf, encoding="utf-8") as locked:
            fcntl.flock(locked, fcntl.LOCK_EX)
            true("in use by another" in service.migrate("--yes", code=FAILED)[1], "lock")
        service.database("old", Path=CHINOOK, Expose="Track")
        true("by Expose=" in service.migrate("--yes", code=FAILED)[1], "exposed")
        service.database("old", Path=CHINOOK)
        service.driver.manager("Reload")
        service.migrate("--yes")
        service.database("other", Path=make(service.owned / "other.sqlite", "CREATE TABLE t(x)"))
        service.driver.manager("Reload")
        done = service.run(*service.command("other", f"--to={service.conf}", "--yes"))
        true(done.returncode == FAILED and b"migration of another database" in done.stderr, done.stderr)


@needs_root
def no_rights():
    """A user who may read the database, but may not reload the service or write its configuration, changes nothing"""
    with Migrating(CHINOOK) as service:
        for why in (b"Only root", b"cannot be written"):
            done = service.run(
                *service.command("old", f"--to={service.conf}", "--yes"), user=UID_A, group=UID_A, extra_groups=[]
            )
            true(done.returncode == FAILED and why in done.stderr, done.stderr)
            service.is_clean()
            make(service.new, "")


@test
def queries():
    """check --queries: distinct statements that are not accepted, with count, error and offset; nothing is run"""
    with Migrating(CHINOOK) as service:
        service.migrate("--yes")
        log = service.folder / "log.sql"
        log.write_text(
            "SELECT * FROM Track WHERE TrackId = ?1;\n-- a comment; and more\nSELECT Nome FROM Track;\n"
            "SELECT\n  count(*)\nFROM Track;\nselect Nome from Track; SELECT Nome FROM Track;\n.mode csv\n"
            "BEGIN;\nDELETE FROM Track;\nCOMMIT;\nSELECT frob(1)"
        )

        def check(*arguments, code=OK):
            done = service.run(*service.command(*arguments, verb="check"))
            equal(done.returncode, code, f"exit code of check {arguments}, which said {done.stderr.decode()!r}")
            return done.stdout.decode()

        told = json.loads(check("old", f"--queries={log}", f"--to={service.conf}", "--json", code=FAILED))
        equal((told["statements"], told["distinct"]), (9, 8), "numbers")
        equal([(r["count"], r["offset"], r["sql"]) for r in told["rejected"]],
              [(2, 7, "SELECT Nome FROM Track"), (1, 7, "select Nome from Track"), (1, 7, "SELECT frob(1)")],
              "rejected")  # fmt: skip
        equal(contents(service.new)[1], contents(CHINOOK)[1], "rows")
        true("DELETE" in check("old", f"--queries={log}", code=FAILED), "a statement that writes, on a read-only database")
        log.write_text("SELECT 1\nSELECT 2\n\nSELECT 1\n")
        true("All 3 statements" in check("old", f"--queries={log}"), "a statement in each line")
        equal(service.run(*service.command("--queries=x", verb="check")).returncode, USAGE, "no name")
        check("old", "--queries=/nonexistent", code=FAILED)
        service.is_clean()


@test
def beside_broken_objects():
    """A table that cannot be asked for over D-Bus, or made in the new database, is named; the old one stays as it is"""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        named = {True: "Scanning t\\xff\\xfe\\xc3: ", False: 'CREATE TABLE "nonZqZ"(a DEFAULT \'default '}
        for odd_names, words in named.items():
            path = broken_schema.make(pathlib.Path(folder, f"{odd_names}.sqlite"), odd_names=odd_names)
            before = path.read_bytes()
            with Migrating(str(path)) as service:
                err = service.migrate("--yes", code=FAILED)[1]
                true(words in err and "noncharacter" in err, err)
            equal(path.read_bytes(), before, "the old file")


main()
