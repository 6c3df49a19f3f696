#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""sqlipcctl migrate and check --queries from SQLite to PostgreSQL. Skipped if PostgreSQL is not installed.

SQLIPC_SEEDS=100-200: the seeds of the generated schemas, instead of a few."""
import contextlib
import json
import os
import pwd
import random
import sqlite3
import subprocess
import tempfile

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


NULL_IN_KEY = """
CREATE TABLE parent(name TEXT PRIMARY KEY); INSERT INTO parent VALUES (NULL), (NULL), ('a');
CREATE TABLE child(name TEXT REFERENCES parent); INSERT INTO child VALUES ('a');
CREATE TABLE other(a INT, b INT NOT NULL, PRIMARY KEY (a, b)); INSERT INTO other VALUES (1, 2);
CREATE TABLE strict(a INT NOT NULL PRIMARY KEY); CREATE TABLE rowid(a INTEGER PRIMARY KEY);
CREATE TABLE clustered(a TEXT PRIMARY KEY) WITHOUT ROWID;
"""


@test
def null_in_key():
    """A PRIMARY KEY with NULL in it becomes UNIQUE, also for foreign keys; if there is none yet, the new error is told"""
    with migrating(NULL_IN_KEY) as service:
        equal(types(service)[1]["omitted"], ["NULL in the PRIMARY KEY of other: it becomes an error"], "omitted")
        kinds = service.sql("SELECT conrelid::regclass, contype FROM pg_constraint"
                            " WHERE connamespace = 'public'::regnamespace AND contype <> 'c'")  # fmt: skip
        equal(sorted(kinds), ["child|f", "clustered|p", "other|p", "parent|u", "rowid|p", "sqlipc_migration|p", "strict|p"],
              "kinds")  # fmt: skip


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


def kill_at_each_step():
    """Returns how often: on a busy machine a migration goes on for several steps before it can be killed."""
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
        for i in range(3):
            equal(service.sql(f"SELECT count(*), sum(x) FROM t{i}"), ["60000|1800030000"], f"rows of t{i}")
        equal(service.sql("SELECT count(*) FROM pg_indexes WHERE indexname LIKE 'i_'"), ["3"], "indexes")
    return kills


@test
def killed():
    """SIGKILL at each step: the next call continues, and the copy is equal"""
    kills = 3
    while kills > 0:
        kills -= kill_at_each_step()


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


# ---- generated schemas ----

VALUES = {  # of a declared type: two that are often equal, and others
    "INTEGER": [1, 2, 3, -7, 9223372036854775807],
    "UNSIGNED BIG INT": [1, 2, 3, 0],
    "BOOLEAN": [0, 1],
    "TEXT": ["a", "A", "a ", "b", "", "5", "1.50", "\u00e4", "\u00c4", "it's"],
    "VARCHAR(3)": ["a", "A", "a  ", "longer than 3"],
    "DATE": ["2024-02-29", "2024-03-01"],
    "REAL": [0.5, 2.0, 1e300, -0.25],
    "DECIMAL(10, 2)": [0.5, 2, 7, 12345678901.25],
    "BLOB": [b"", b"a", b"\0\xff"],
    "": ["a", "A", "x"],
}
NATURAL = {"INTEGER": "bigint", "UNSIGNED BIG INT": "bigint", "BOOLEAN": "bigint", "TEXT": "text", "VARCHAR(3)": "text",
           "DATE": "text", "REAL": "double precision", "DECIMAL(10, 2)": "numeric", "BLOB": "bytea", "": "text"}  # fmt: skip
DEFAULTS = (
    "5", "-7", "+3", "'5'", "'it''s'", '"double"', "1e3", "0x10", "NULL", "TRUE", "FALSE", "CURRENT_DATE", "(1 + 1)",
    "x'00ff'", "''", "-0.0", "9223372036854775807", "9223372036854775808", "'now'", ".5", "5.", "'NaN'", "1e999",
    "(random())", "('a' || 'b')", "(  7 )", "'2024-02-29'", "'1.50'", "' 5 '", "abc", "current_timestamp",
    "(datetime('now'))", "'\\'", "(NULL)", "007", "1.0",
)  # fmt: skip
NAMES = (
    "{}", "Table {}", 'quo"te {}', "it's {}", "\u00e4{}", "\u00c4{}", "select{}", "MiXed{}", "x.y{}", "{} \\ ", "%s{}",
    "[{}]", "long" + "g" * 57 + "{}",
)  # fmt: skip
COLLATIONS = ("", "", "", " COLLATE NOCASE", " COLLATE RTRIM", " COLLATE BINARY")
CONFLICTS = ("",) * 6 + (" ON CONFLICT IGNORE", " ON CONFLICT REPLACE", " ON CONFLICT ABORT", " ON CONFLICT FAIL")


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def literal(value):
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


class Table:
    """A table at random, with names that SQLite tells apart also without capitals."""

    def __init__(self, rng, number, parents):
        self.name = rng.choice(NAMES).format(f"t{number}")
        self.key, self.parent_key, self.columns, self.types, self.references = None, None, [], {}, None
        definitions, constraints = [], []
        kind = rng.choice(("rowid", "rowid", "text", "pair", "clustered", "none"))
        for i in range(rng.randint(2, 5)):
            name = rng.choice(NAMES).format(f"c{i}")
            declared = "INTEGER" if kind == "rowid" and i == 0 else rng.choice(list(VALUES))
            self.columns.append(name)
            self.types[name] = declared
            definition = f"{quoted(name)} {declared}"
            if i == 0 and kind in ("rowid", "text", "clustered"):
                self.parent_key = name
                self.key = name if declared == "INTEGER" else None
            if i == 0 and kind == "rowid":
                definition += " PRIMARY KEY" + rng.choice(("", " AUTOINCREMENT"))
            else:
                definition += self.constraints(rng, name, kind in ("text", "clustered") and i == 0, parents)
            definitions.append(definition)
        if kind == "pair":
            constraints.append(f"PRIMARY KEY ({quoted(self.columns[1])}, {quoted(self.columns[0])}){rng.choice(CONFLICTS)}")
        if rng.random() < 0.3:
            constraints.append(f"UNIQUE ({quoted(self.columns[0])}, {quoted(self.columns[-1])}){rng.choice(CONFLICTS)}")
        self.sql = f"CREATE TABLE {quoted(self.name)} (" + ", ".join(definitions + constraints) + ")"
        self.sql += " WITHOUT ROWID;" if kind == "clustered" else ";"
        for i in range(rng.choice((0, 0, 1, 2))):
            column = rng.choice(self.columns)
            self.sql += f"CREATE {rng.choice(('', 'UNIQUE '))}INDEX {quoted(f'{self.name[-9:]} i{i}')} "
            self.sql += f"ON {quoted(self.name)} "
            self.sql += f"({quoted(column)}{rng.choice(COLLATIONS)}{rng.choice(('', ' DESC'))})"
            self.sql += rng.choice(("", "", "", f" WHERE {quoted(column)} IS NOT NULL")) + ";"

    def constraints(self, rng, name, is_key, parents):
        said = rng.choice(COLLATIONS)
        if is_key:
            said += " PRIMARY KEY" + rng.choice(CONFLICTS)
        elif rng.random() < 0.25:
            said += " UNIQUE" + rng.choice(CONFLICTS)
        if rng.random() < 0.25:
            said += " NOT NULL" + rng.choice(CONFLICTS)
        if rng.random() < 0.5:
            said += " DEFAULT " + rng.choice(DEFAULTS)
        if rng.random() < 0.1:
            said += f" CHECK ({quoted(name)} <> {literal(VALUES[self.types[name]][0])})"
        elif self.types[name] in ("INTEGER", "TEXT") and rng.random() < 0.7:
            parents = [p for p in parents if p.types[p.parent_key] == self.types[name]]
            if not parents:
                return said
            self.references = rng.choice(parents)
            said += f" REFERENCES {quoted(self.references.name)}"
            said += rng.choice(("", f"({quoted(self.references.parent_key)})"))
            said += rng.choice(("", " ON DELETE CASCADE", " ON DELETE SET NULL"))
            said += rng.choice(("", " DEFERRABLE INITIALLY DEFERRED", " NOT DEFERRABLE INITIALLY DEFERRED"))
        return said

    def insert(self, rng):
        """Returns the columns that an INSERT gives, and its SQL for SQLite and for PostgreSQL."""
        given = [c for c in self.columns if c == self.key or rng.random() < 0.75]
        values = [rng.choice((*VALUES[self.types[c]], *((None,) if c != self.key else ()))) for c in given]
        fresh = {"INTEGER": int, "UNSIGNED BIG INT": int, "TEXT": str, "DATE": str, "": str, "REAL": float}
        for i, c in enumerate(given):  # values that the column does not have yet
            if self.types[c] in fresh and rng.random() < 0.6:
                values[i] = fresh[self.types[c]](rng.randint(10, 1 << 30))
        if not given:
            return given, *(f"INSERT INTO {name(self.name)} DEFAULT VALUES" for name in (quoted, folded))
        theirs = ", ".join(map(folded, given))
        sql = f"INSERT INTO {quoted(self.name)} ({', '.join(map(quoted, given))}) VALUES ({', '.join(map(literal, values))})"
        texts = [f"'\\x{v.hex()}'" if isinstance(v, bytes) else literal(str(v)) if v is not None else "NULL" for v in values]
        return given, sql, f"INSERT INTO {folded(self.name)} ({theirs}) VALUES ({', '.join(texts)})"


def folded(name):
    return quoted("".join(a.lower() if a.isascii() else a for a in name))


# Tries an INSERT and undoes it: the row as texts, or the kind of error and when it came.
PROBE = """
CREATE FUNCTION probe(statement text) RETURNS text LANGUAGE plpgsql AS $f$
DECLARE stage text := 'at once'; made text;
BEGIN
  BEGIN
    EXECUTE statement INTO made;
    stage := 'at the end';
    SET CONSTRAINTS ALL IMMEDIATE;
    RAISE EXCEPTION USING ERRCODE = 'P9999', MESSAGE = made;
  EXCEPTION WHEN SQLSTATE 'P9999' THEN RETURN SQLERRM;
  WHEN others THEN RETURN '"' || SQLSTATE || ' ' || stage || '"';
  END;
END $f$;
"""
KINDS = {"23502": "NOT NULL", "23505": "UNIQUE", "23514": "CHECK", "23503": "FOREIGN KEY"}


def probe_sqlite(db, table, sql):
    db.execute("SAVEPOINT probe")
    try:
        before = db.total_changes
        db.execute(sql)
        if db.total_changes == before:
            return "ignored"
        if db.execute(f"PRAGMA foreign_key_check({quoted(table.name)})").fetchone():
            return "FOREIGN KEY at the end"
        rowid = " rowid = last_insert_rowid()" if "WITHOUT ROWID" not in table.sql else None
        if not rowid:
            return "accepted"
        return list(db.execute(f"SELECT * FROM {quoted(table.name)} WHERE {rowid}").fetchone())
    except sqlite3.IntegrityError as e:
        return str(e).split(" constraint")[0] + " at once"
    finally:
        db.execute("ROLLBACK TO probe")
        db.execute("RELEASE probe")


def same(ours, theirs):
    """True if the text that PostgreSQL gives is that of the value."""
    if ours is None or theirs is None:
        return ours is theirs
    if isinstance(ours, bytes):
        return theirs == "\\x" + ours.hex() or theirs == "\\x" + ours.decode("latin-1").encode().hex()
    if theirs.startswith("\\x"):
        return bytes.fromhex(theirs[2:]) == str(ours).encode()
    if isinstance(ours, str):
        return ours == theirs or (len(ours) > 9 and ours[:2] == theirs[:2] == "20" and len(ours) == len(theirs))
    return float(theirs) == float(ours)


def differs(table, given, ours, theirs, told):
    """Says what is different and was not told; None: nothing."""
    omitted = [o for o in told["omitted"] if table.name in o or f"index {table.name[-9:]} i" in o]
    notes = {c["column"]: c.get("note", "") for c in told["columns"] if c["table"] == table.name}
    kinds = {c["column"]: c["type"] for c in told["columns"] if c["table"] == table.name}
    named = "\n".join(omitted + list(notes.values()))
    defaults = [o for o in omitted if o.startswith("DEFAULT")]
    left_out = [c for c in table.columns if any(o.endswith(f" of {table.name}.{c}") for o in defaults)]
    if not set(left_out) <= set(given):
        return None  # The rows have different values.
    if isinstance(theirs, str) and theirs.startswith("22") and any(kinds[c] != NATURAL[table.types[c]] for c in given):
        return None  # The values of the source have decided for another type.
    if isinstance(theirs, str):
        kind, stage = KINDS.get(theirs[:5], theirs[:5]), theirs[6:]
        if ours == f"{kind} {stage}" or "ON CONFLICT" in named:
            return None
        if isinstance(ours, str) and ours.split(" at")[0] in KINDS.values() and kind in KINDS.values():
            return None  # Both refuse it, for one of several reasons.
        if {"NOT NULL": "PRIMARY KEY", "UNIQUE": "mixed"}.get(kind, "\n\n") in named:
            return None
        return f"PostgreSQL refuses it: {theirs}, SQLite: {ours}"
    if isinstance(ours, str) and ours != "accepted":
        kind = ours.split(" at ")[0]
        if {"CHECK": "CHECK", "UNIQUE": "COLLATE"}.get(kind, "\n\n") in named or "ON CONFLICT" in named:
            return None
        return None if kind == "UNIQUE" and "index" in named else f"SQLite refuses it: {ours}, PostgreSQL makes {theirs}"
    if isinstance(ours, list):
        for name, one, other in zip(table.columns, ours, theirs, strict=True):
            if not same(one, other):
                return f"{name}: SQLite makes {one!r}, PostgreSQL {other!r}"
    return None


def compare(seed):
    rng = random.Random(seed)
    tables = []
    for i in range(10):
        tables.append(Table(rng, i, [t for t in tables if t.parent_key]))
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.execute("PRAGMA foreign_keys = ON")
        for table in tables:
            db.executescript(table.sql)
            for _ in range(4):
                with contextlib.suppress(sqlite3.IntegrityError):
                    db.execute(table.insert(rng)[1])
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            path = f"{folder}/old.sqlite"
            with contextlib.closing(sqlite3.connect(path)) as file:
                db.backup(file)
            compare_file(rng, db, tables, path, f"seed {seed}")


def compare_file(rng, db, tables, path, what):
    with migrating(path) as service:
        told = types(service)[1]
        probes = [(t, *t.insert(rng)) for t in tables for _ in range(12)]
        script = PROBE + "".join(
            "SELECT probe({});\n".format(literal(f"{theirs} RETURNING to_json(ARRAY[{row}])"))
            for t, _, _, theirs in probes
            for row in [", ".join(f"{folded(c)}::text" for c in t.columns)]
        )
        answers = [json.loads(a) for a in service.sql(script) if a != "CREATE FUNCTION"]
        equal(len(answers), len(probes), "answers")
        n_taken = sum(isinstance(a, list) for a in answers)
        true(20 < n_taken < len(answers) - 20, f"{n_taken} rows of {len(answers)} are taken: the values must be other ones")
        wrong = []
        for (table, given, sql, _), theirs in zip(probes, answers, strict=True):
            ours = probe_sqlite(db, table, sql)
            said = differs(table, given, ours, theirs, told)
            if said:
                wrong.append(f"{table.sql}\n  {sql}\n  {said}\n")
        for table in tables:
            (n,) = db.execute(f"SELECT count(*) FROM {quoted(table.name)}").fetchone()
            equal(service.sql(f"SELECT count(*) FROM {folded(table.name)}"), [str(n)], f"rows of {table.sql}")
        equal(wrong, [], f"{what}: differences that were not told:\n" + "\n".join(wrong) + "\n".join(told["omitted"]))


@test
def generated():
    """Schemas at random: the copy has the rows and takes the same new ones, with the same defaults, or says what not"""
    first, last = map(int, os.environ.get("SQLIPC_SEEDS", "16-19").split("-"))
    for seed in range(first, last + 1):
        compare(seed)


@test
def teardown():
    """The server ends"""
    server().close()


main()
