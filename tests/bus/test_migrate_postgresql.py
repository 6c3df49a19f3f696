#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""sqlipcctl migrate and check --queries from SQLite to PostgreSQL. Skipped if PostgreSQL is not installed."""
import contextlib
import json
import os
import pwd
import sqlite3
import subprocess

from engine_unit import ENGINE, EngineUnit
from harness import CHINOOK, CTL, PATIENCE, PATIENT, Service, main, wait_for
from postgres import Postgres
from tap import Skip, equal, test, true

OK, FAILED = 0, 1
USER = pwd.getpwuid(os.geteuid()).pw_name
shared = None


def server():
    """One server serves all tests, each of which has a database of its own."""
    global shared
    if not ENGINE.exists():
        raise Skip("built without PostgreSQL")
    if not shared:
        shared = Postgres(access="local all postgres trust\nlocal all all scram-sha-256\n")
        shared.sql("CREATE ROLE app LOGIN PASSWORD 'open'; CREATE ROLE reader LOGIN PASSWORD 'open'")
    return shared


@contextlib.contextmanager
def migrating(source, user="app"):
    """A service that publishes a file as `old`; `service.migrate` copies it to a new database of the server."""
    server().sql("DROP DATABASE IF EXISTS new WITH (FORCE)")
    server().sql("CREATE DATABASE new OWNER app TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'")
    with EngineUnit(ENGINE) as unit, Service({}, environment=unit.environment, limits=PATIENT) as service:
        path = source if os.path.isabs(source) else service.data / "old.sqlite"
        if not os.path.isabs(source):
            with contextlib.closing(sqlite3.connect(path)) as db:
                db.executescript(source)
        service.old, service.conf = path, service.folder / "new.conf"
        password = service.folder / "password"
        password.write_text("open\n")
        password.chmod(0o600)
        service.conf.write_text(
            f"[Database]\nEngine=postgresql\nConnection={server().connection(user, database='new')}\n"
            f"PasswordFile={password}\n"
            "AllowUsers=*\nMode=read-write\nWriteUsers=*\n"
        )
        service.database("old", Path=path)
        service.driver.manager("Reload")
        service.sql = lambda text: server().sql(text, "new")
        yield service


def command(service, verb, *arguments):
    user = [f"--service-user={USER}"] if verb == "migrate" else []
    return [CTL, f"--address={service.address}", f"--config-dir={service.config_dir}", verb, "old",
            f"--to={service.conf}", *user, *arguments]  # fmt: skip


def run(service, verb, *arguments, code=OK):
    done = service.run(*command(service, verb, *arguments))
    out, err = done.stdout.decode(), done.stderr.decode()
    equal(done.returncode, code, f"exit code of {verb} {arguments}, which said {err!r} and printed {out!r}")
    return out, err


def migrate(service, *arguments, code=OK):
    return run(service, "migrate", "--yes", *arguments, code=code)


def types(service):
    told = json.loads(migrate(service, "--json")[0])
    return {f"{c['table']}.{c['column']}": c["type"] for c in told["columns"]}, told


@test
def whole_chinook():
    """chinook: types, rows, keys and foreign keys; programs that do not quote names find them; the switch"""
    with migrating(CHINOOK) as service:
        kinds, told = types(service)
        equal((kinds["Track.TrackId"], kinds["Track.UnitPrice"], kinds["Invoice.InvoiceDate"]),
              ("bigint", "numeric", "text"), "types")  # fmt: skip
        equal((told["copied"], len(told["tables"]), told["omitted"], told["refused"]), (15607, 11, [], []), "outcome")
        with contextlib.closing(sqlite3.connect(CHINOOK)) as db:
            for table in told["tables"]:
                (n,) = db.execute(f"SELECT count(*) FROM {table['table']}").fetchone()
                equal((table["rows"], service.sql(f"SELECT count(*) FROM {table['table']}")), (n, [str(n)]), table["table"])
            (total,) = db.execute("SELECT printf('%.2f', sum(Total)) FROM Invoice").fetchone()
        equal(service.sql("SELECT sum(total) FROM invoice"), [total], "sum")
        equal(service.sql("SELECT count(*) FROM pg_constraint WHERE contype = 'f'"), ["11"], "foreign keys")
        keys = "SELECT count(*) FROM pg_constraint WHERE contype = 'p' AND connamespace = 'public'::regnamespace"
        equal(service.sql(keys), ["12"], "primary keys, one of them of the state")
        again = json.loads(migrate(service, "--json", "--switch")[0])
        equal((again["copied"], again["tables"], again["switched"]), (0, told["tables"], True), "the second call")
        columns, rows, _ = service.client().query_rows("old", "SELECT Name, UnitPrice FROM Track WHERE TrackId = ?1", [1])
        equal(rows[0][0].decode(), "For Those About To Rock (We Salute You)", "a row of the new database")
        equal(service.sql("SELECT to_regclass('sqlipc_migration') IS NULL"), ["t"], "the state is removed")
        service.client().execute("old", "INSERT INTO Genre(Name) VALUES ('new')")
        equal(service.sql("SELECT GenreId FROM Genre WHERE Name = 'new'"), ["26"], "the next number")


MIXED = """
CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, i INTEGER DEFAULT 7, mixed INTEGER, x REAL NOT NULL DEFAULT 0.5,
    n DECIMAL(9, 3), s VARCHAR(9) COLLATE NOCASE DEFAULT 'a''b', b BLOB, day DATE, at DATETIME DEFAULT CURRENT_TIMESTAMP,
    twice AS (i * 2), odd DEFAULT (random()), CHECK (i < 100));
INSERT INTO t(id, i, mixed, x, n, s, b, day, at, odd) VALUES
    (1, 1, 5, 0.1, 0.1, 'eins', x'00ff', '2024-02-29', '2024-02-29 23:59:59', NULL),
    (2, NULL, 'five', 1e300, 12345678901.25, '', x'', '1999-12-31', NULL, 3),
    (9, -9223372036854775807 - 1, 2.5, 0.30000000000000004, 7, NULL, NULL, NULL, NULL, NULL),
    (77, 1, 1, 1, 1, '', NULL, NULL, NULL, NULL);
DELETE FROM t WHERE id = 77;
CREATE TABLE child(t INTEGER REFERENCES t ON DELETE CASCADE, name TEXT UNIQUE, "Order" INT);
INSERT INTO child VALUES (1, 'a', 1), (2, 'b', 2), (NULL, NULL, NULL);
CREATE INDEX by_order ON child("Order" DESC, name);
CREATE INDEX some ON child(name) WHERE t > 1;
CREATE VIEW fine AS SELECT s FROM t WHERE i = 1;
CREATE VIEW only_here AS SELECT ifnull(s, 1) FROM t;
CREATE TRIGGER gone AFTER INSERT ON t BEGIN SELECT 1; END;
CREATE TABLE "empty one"(x, y REAL, z BLOB);
"""


@test
def mixed():
    """Types by declaration and values, defaults, sequences, indexes; everything that is not copied is named"""
    with migrating(MIXED) as service:
        kinds, told = types(service)
        equal(kinds, {
            "t.id": "bigint", "t.i": "bigint", "t.mixed": "text", "t.x": "double precision", "t.n": "numeric", "t.s": "text",
            "t.b": "bytea", "t.day": "text", "t.at": "text", "t.twice": "double precision", "t.odd": "bigint",
            "child.t": "bigint", "child.name": "text", "child.Order": "bigint", "empty one.x": "text",
            "empty one.y": "double precision", "empty one.z": "bytea",
        }, "types")  # fmt: skip
        notes = {c["column"]: c.get("note", "") for c in told["columns"]}
        true("mixed" in notes["mixed"] and "NOCASE" in notes["s"] and "computed" in notes["twice"], notes)
        omitted = "\n".join(told["omitted"])
        for word in ("random()", "CHECK constraints of t", "index some", "trigger gone"):
            true(word in omitted, f"{word} in {omitted}")
        true(len(told["refused"]) == 1 and "only_here" in told["refused"][0], told["refused"])
        equal(service.sql("SELECT mixed, x, n, encode(b, 'hex') FROM t ORDER BY id"),
              ["5|0.1|0.1|00ff", "five|1e+300|12345678901.25|", "2.5|0.30000000000000004|7|"], "rows")  # fmt: skip
        equal(service.sql("INSERT INTO t DEFAULT VALUES RETURNING id, i, x, s, length(at)"),
              ["78|7|0.5|a'b|19"], "defaults, and the number after the largest ever used")  # fmt: skip
        service.sql("DELETE FROM t WHERE id IN (1, 78)")
        equal(service.sql("SELECT count(*) FROM child"), ["2"], "the foreign key acts")
        true("by_order" in "".join(service.sql("SELECT indexdef FROM pg_indexes WHERE tablename = 'child'")), "index")


MEANINGS = """
PRAGMA user_version = 3;
CREATE TABLE parent(id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE UNIQUE, code TEXT UNIQUE COLLATE RTRIM,
    other TEXT COLLATE "nocase" COLLATE binary UNIQUE, any COLLATE NOCASE UNIQUE, s TEXT);
CREATE UNIQUE INDEX by_s ON parent(s COLLATE NOCASE, id);
INSERT INTO parent VALUES (1, 'Ä a', 'x', 'a', 5, 'a'), (2, 'ä A', ' x', 'A', 'x', 'b');
CREATE TABLE named(name TEXT PRIMARY KEY COLLATE NOCASE) WITHOUT ROWID;
CREATE TABLE child(
    one INT REFERENCES parent(id) DEFERRABLE INITIALLY DEFERRED, -- REFERENCES
    two INT REFERENCES parent ON DELETE CASCADE NOT DEFERRABLE INITIALLY DEFERRED,
    three INT REFERENCES parent DEFERRABLE,
    four INT, five TEXT COLLATE RTRIM REFERENCES parent(name),
    FOREIGN KEY (four) REFERENCES parent(id) ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE other(a INT UNIQUE ON CONFLICT REPLACE, b TEXT NOT NULL ON CONFLICT ABORT);
CREATE TABLE quiet(a INT, "ON CONFLICT IGNORE" TEXT, UNIQUE (a) ON CONFLICT IGNORE);
"""


@test
def meanings():
    """Collations of unique columns, deferred foreign keys: copied with their meaning; ON CONFLICT and the like are named"""
    with migrating(MEANINGS) as service:
        told = types(service)[1]
        omitted = "\n".join(told["omitted"])
        for words in ("ON CONFLICT REPLACE of other", "ON CONFLICT IGNORE of quiet", "user_version = 3",
                      "UNIQUE COLLATE NOCASE of parent.any"):  # fmt: skip
            true(words in omitted, f"{words} in {omitted}")
        equal(len(told["omitted"]), 5, omitted)  # and NOCASE of parent.any, which has another note
        notes = {(c["table"], c["column"]): c.get("note", "") for c in told["columns"]}
        true("NOCASE" in notes["parent", "name"] and "RTRIM" in notes["child", "five"], notes)
        equal(notes["parent", "other"], "", "the last COLLATE counts")
        deferred = service.sql(
            "SELECT a.attname, c.condeferred, c.condeferrable FROM pg_constraint AS c JOIN pg_attribute AS a"
            " ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1] WHERE contype = 'f' ORDER BY 1"
        )
        equal(deferred, ["five|f|f", "four|t|t", "one|t|t", "three|f|f", "two|f|f"], "foreign keys")
        insert = "INSERT INTO parent(id, name, code, other, s) VALUES "
        for values, is_accepted in (
            ("(3, 'Ä A', 'y', 'b', 'c')", False),  # ASCII letters are equal, as for SQLite
            ("(3, 'c', 'x  ', 'b', 'c')", False),
            ("(1, 'c', 'y', 'b', 'A')", False),
            ("(3, 'c', 'X', 'B', 'A')", True),
        ):
            answer = service.sql(f"WITH x AS ({insert}{values} ON CONFLICT DO NOTHING RETURNING 1) SELECT count(*) FROM x")
            equal(answer, [str(int(is_accepted))], values)
        service.sql("INSERT INTO named VALUES ('a')")
        service.sql("INSERT INTO named VALUES ('A') ON CONFLICT DO NOTHING")
        equal(service.sql("SELECT count(*) FROM named"), ["1"], "rows with a PRIMARY KEY that ignores case")


@test
def refused_names():
    """Names that PostgreSQL would cut off, or that its tables have already, are an error before anything is written"""
    long = "x" * 64
    for schema, word in (
        (f"CREATE TABLE {long}(a); CREATE TABLE {long}y(a);", f"the table {long}"),
        (f"CREATE TABLE t({long} INT, {long}y INT);", f"the column t.{long}"),
        (f"CREATE TABLE t(a); CREATE INDEX {long} ON t(a); CREATE INDEX {long}y ON t(a);", f"the index {long}"),
        (f"CREATE TABLE t(a); CREATE VIEW {long} AS SELECT 1;", f"the view {long}"),
        ("CREATE TABLE t(a, Xmin INT);", "the column t.Xmin"),
        ("CREATE TABLE t(ctid TEXT);", "the column t.ctid"),
    ):
        with migrating(schema) as service:
            err = migrate(service, code=FAILED)[1]
            true(word in err and "rename" in err, err)
            equal(service.sql("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"), [], "relations")


@test
def options():
    """--dates, --type and --keep-case; other types than before make the tables anew"""
    with migrating(MIXED) as service:
        migrate(service)
        err = migrate(service, "--dates", "--keep-case", "--type=t.i=text")[1]
        true("schema or the types have changed" in err, err)
        wanted = "SELECT data_type FROM information_schema.columns WHERE table_name = 't' AND column_name IN "
        wanted += "('i', 'day', 'at')"
        equal(sorted(service.sql(wanted)), ["date", "text", "timestamp without time zone"], "types")
        equal(service.sql('SELECT "Order" FROM child WHERE t = 2'), ["2"], "a name with a capital")
        equal(service.sql("SELECT at FROM t WHERE id = 1"), ["2024-02-29 23:59:59"], "a time")


@test
def texts_that_cannot_be_stored():
    """NUL characters and bytes that are not UTF-8 are named with table and column before anything is copied"""
    source = "CREATE TABLE bad(a TEXT, b TEXT, c BLOB); INSERT INTO bad VALUES (CAST(x'610062' AS TEXT), 'ok', x'00')," \
             "('ok', CAST(x'ff' AS TEXT), NULL);"  # fmt: skip
    with migrating(source) as service:
        err = migrate(service, code=FAILED)[1]
        true("bad.a: PostgreSQL cannot keep texts with NUL" in err and "--type=bad.b=bytea" in err, err)
        equal(service.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"), ["0"], "tables")
        migrate(service, "--type=bad.a=bytea", "--type=bad.b=bytea")
        equal(service.sql("SELECT encode(a, 'hex') FROM bad ORDER BY a"), ["610062", "6f6b"], "as bytes")


@test
def rows_that_break_constraints():
    """Rows that SQLite has tolerated, but the foreign key does not, are an error, and nothing is switched"""
    source = "CREATE TABLE p(id INTEGER PRIMARY KEY); CREATE TABLE c(p REFERENCES p(id)); INSERT INTO c VALUES (5);"
    with migrating(source) as service:
        err = migrate(service, "--switch", code=FAILED)[1]
        true("FOREIGN KEY" in err, err)
        equal((service.config_dir / "databases.d/old.conf").read_text().count("Path="), 1, "configuration")
        with contextlib.closing(sqlite3.connect(service.old)) as db:
            db.executescript("INSERT INTO p VALUES (5)")
        told = json.loads(migrate(service, "--switch", "--json")[0])
        equal((told["switched"], told["copied"]), (True, 1), "after the row was added")


@test
def killed():
    """SIGKILL at each step: the next call continues, and the copy is equal"""
    source = "".join(
        f"CREATE TABLE t{i}(id {'INTEGER' if i % 2 else 'TEXT'} PRIMARY KEY, x); CREATE INDEX i{i} ON t{i}(x);"
        f"INSERT INTO t{i} WITH n(v) AS (VALUES (1) UNION ALL SELECT v + 1 FROM n WHERE v < 60000) SELECT v, v FROM n;"
        for i in range(3)
    )
    with migrating(source) as service:

        def entries():
            with contextlib.suppress(AssertionError):  # There is no such table yet.
                count = "SELECT count(*) + count(*) FILTER (WHERE state = 'copied') FROM sqlipc_migration"
                return int(service.sql(count)[0])
            return 0

        reached, kills = 0, 0
        while True:
            process = subprocess.Popen(
                list(map(str, command(service, "migrate", "--yes"))),
                env=service.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            wait_for(lambda: process.poll() is not None or entries() > reached, "the migration goes on")
            if process.poll() is not None:
                break
            process.kill()
            process.wait()
            now = entries()
            true(now >= reached, f"progress was lost: {reached} to {now}")
            reached, kills = now, kills + 1
        equal(process.returncode, 0, "exit code at the end")
        true(kills >= 3, f"it was killed {kills} times only")
        for i in range(3):
            equal(service.sql(f"SELECT count(*), sum(x) FROM t{i}"), ["60000|1800030000"], f"rows of t{i}")
        equal(service.sql("SELECT count(*) FROM pg_indexes WHERE indexname LIKE 'i_'"), ["3"], "indexes")


TWO_TABLES = "".join(
    f"CREATE TABLE {t}(id INTEGER PRIMARY KEY, x TEXT); CREATE INDEX {t}x ON {t}(x);"
    f"INSERT INTO {t} WITH n(v) AS (VALUES (1) UNION ALL SELECT v + 1 FROM n WHERE v < 5000)"
    " SELECT v, printf('%0200d', v) FROM n;"
    for t in ("a", "b")
)


def fails(service, *words):
    """Fails unless the migration ends with an error that has the words, and says how to go on."""
    err = migrate(service, "--switch", code=FAILED)[1]
    for word in (*words, "Run the same command again"):
        true(word in err, f"{word} in {err}")
    true("Path=" in (service.config_dir / "databases.d/old.conf").read_text(), "nothing is switched")


@test
def full_disk():
    """The server's disk is full: the error says so, and with more room the same command continues"""
    folder = server().folder / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2M", "none", folder]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        raise Skip("a small file system cannot be mounted here")
    try:
        if server().user:
            os.chown(folder, server().user["user"], server().user["group"])
        server().sql(f"CREATE TABLESPACE small LOCATION '{folder}'")
        server().sql("GRANT CREATE ON TABLESPACE small TO app; ALTER ROLE app SET default_tablespace = small")
        with migrating(TWO_TABLES) as service:
            fails(service, "Copying b: ", "No space left on device")
            state = "SELECT entry, state FROM sqlipc_migration WHERE entry LIKE 'table%' ORDER BY entry"
            equal(service.sql(state), ["table a|copied", "table b|copying"], "what the target tells")
            subprocess.run(["mount", "-o", "remount,size=32M", folder], check=True)
            told = json.loads(migrate(service, "--switch", "--json")[0])
            equal((told["switched"], told["copied"]), (True, 5000), "rows of the other table")
        server().sql("DROP DATABASE new WITH (FORCE)")
        server().sql("DROP TABLESPACE small; ALTER ROLE app RESET ALL")
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@test
def statement_timeout():
    """statement_timeout ends an index: the index is made by the next call, and not left out"""
    with migrating(TWO_TABLES) as service:
        service.sql(
            "CREATE FUNCTION time_out() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN"
            " RAISE 'canceling statement due to statement timeout' USING ERRCODE = 'query_canceled'; END$$;"
            "CREATE EVENT TRIGGER slow ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION time_out()"
        )
        fails(service, "statement timeout")
        service.sql("DROP EVENT TRIGGER slow")
        told = json.loads(migrate(service, "--switch", "--json")[0])
        equal((told["switched"], told["refused"]), (True, []), "the outcome")
        equal(service.sql("SELECT indexname FROM pg_indexes WHERE indexname LIKE '_x' ORDER BY 1"), ["ax", "bx"], "indexes")


@test
def other_values():
    """A target that changes values: the second copy differs as the first one did, which is an error"""
    with migrating("CREATE TABLE t(x TEXT); INSERT INTO t VALUES ('one'), ('two');") as service:
        service.sql(
            "CREATE FUNCTION upper_x() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.x = upper(NEW.x); RETURN NEW; END';"
            "CREATE FUNCTION add_trigger() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN"
            " IF to_regclass('t') IS NOT NULL THEN"
            "  CREATE OR REPLACE TRIGGER upper_x BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION upper_x(); END IF; END$$;"
            "CREATE EVENT TRIGGER add ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION add_trigger()"
        )
        err = migrate(service, "--switch", code=FAILED)[1]
        equal(err.count("is copied again"), 1, err)
        true("The copy of t has other values than the source" in err, err)


@test
def refusals():
    """A target that is not empty, a role without rights; no server or a wrong password is told before anything is read"""
    with migrating(CHINOOK) as service:
        service.sql("CREATE TABLE theirs()")
        true("is not empty" in migrate(service, code=FAILED)[1], "not empty")
    with migrating(CHINOOK, user="reader") as service:
        out, err = migrate(service, code=FAILED)
        true(out == "" and "permission denied" in err, f"no rights: {out!r}, {err!r}")
        good, wrong = service.conf.read_text(), service.folder / "wrong-password"
        wrong.write_text("sesame\n")
        wrong.chmod(0o600)
        for bad in (good.replace(f"port={server().port}", "port=1"), good.replace("/password", "/wrong-password")):
            service.conf.write_text(bad)
            for verb, more in (("migrate", "--yes"), ("check", "--queries=/nonexistent")):
                out, err = run(service, verb, more, code=FAILED)
                true(out == "" and f"{service.conf} cannot be used: " in err, f"{verb} reads first: {out!r}, {err!r}")


@test
def queries():
    """check --queries: statements in SQLite's dialect that PostgreSQL does not accept, with the offset of the error"""
    with migrating(CHINOOK) as service:
        migrate(service)
        log = service.folder / "log.sql"
        log.write_text(
            "SELECT Name FROM Track WHERE TrackId = ?1;\nSELECT ifnull(Name, 1) FROM Track;\nDELETE FROM Genre;\n"
            "SELECT Name FROM Track WHERE Nome = :x;\nINSERT OR REPLACE INTO Genre VALUES (1, 'x');\n"
            "SELECT ifnull(Name, 1) FROM Track;\nBEGIN;\nCOMMIT;\nPRAGMA table_info(Track);\n"
        )
        told = json.loads(run(service, "check", f"--queries={log}", "--json", code=FAILED)[0])
        equal((told["statements"], told["distinct"]), (9, 8), "numbers")
        rejected = {r["sql"]: r for r in told["rejected"]}
        equal(sorted(rejected), sorted([
            "SELECT ifnull(Name, 1) FROM Track", "SELECT Name FROM Track WHERE Nome = :x",
            "INSERT OR REPLACE INTO Genre VALUES (1, 'x')", "PRAGMA table_info(Track)",
        ]), "rejected")  # fmt: skip
        equal(rejected["SELECT ifnull(Name, 1) FROM Track"]["count"], 2, "count")
        equal(rejected["SELECT ifnull(Name, 1) FROM Track"]["offset"], 7, "offset")
        equal(rejected["SELECT Name FROM Track WHERE Nome = :x"]["offset"], 29, "offset after a parameter")
        equal(service.sql("SELECT count(*) FROM genre"), ["25"], "nothing was run")


@test
def teardown():
    """The server ends"""
    server().close()


main()
