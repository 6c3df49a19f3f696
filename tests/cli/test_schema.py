#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Commands about databases and the service: .tables, .schema and .indexes as sqlite3 prints them, .describe, .databases,
.open, .connect, .status, .limit, .explain.
"""
import hashlib
import json
import os
import pathlib
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bus"))
import broken_schema  # noqa: E402
from harness import CHINOOK, CLI, Service, UID_A, main, needs_root  # noqa: E402
from tap import equal, test, true  # noqa: E402

OK, QUERY, USAGE, UNREACHABLE = 0, 1, 2, 3

folder = tempfile.TemporaryDirectory(prefix="sqlipc-schema-")
os.chmod(folder.name, 0o755)

ODD = r"""
CREATE TABLE "we""ird 'name"("sel ect" TEXT DEFAULT 'it''s, (', [b, c] INT, x /* a , in ( a comment */,
   "group" REAL CHECK (x IN (1, 2)));
CREATE TABLE "select"(a);
CREATE TABLE größe(maß, "日本" DEFAULT 'wide');
CREATE TABLE long(first INTEGER PRIMARY KEY AUTOINCREMENT, second TEXT NOT NULL DEFAULT 'a, b', -- the second, one
   third NUMERIC(10, 2) CHECK (third > 0 AND third < (100 * 2)), `fo,urth` AS (first * 2),
   fifth GENERATED ALWAYS AS (first + 1) STORED,
   FOREIGN KEY (second, third) REFERENCES other(a, b) ON DELETE CASCADE ON UPDATE SET NULL, UNIQUE (second, third));
CREATE TABLE other(a TEXT, b NUMERIC, PRIMARY KEY (b, a)) WITHOUT ROWID;
CREATE TABLE strict(a INT, b ANY) STRICT;
CREATE TABLE ended(a) -- a comment to the end
;
CREATE VIEW "a view"(one, "two words") AS SELECT a, b FROM other WHERE a > 'a long condition
   that goes on and on, past the end of lines' -- comment
;
CREATE VIEW broken AS SELECT * FROM gone;
CREATE VIRTUAL TABLE words USING fts5(title, "the body");
CREATE INDEX "index of it" ON long(second COLLATE NOCASE DESC, length(third)) WHERE first > 10 AND second IS NOT NULL
   AND third <> 5;
CREATE TRIGGER changed AFTER INSERT ON other BEGIN
   INSERT INTO "select" VALUES (';'); DELETE FROM größe WHERE maß = new.a; END;
DROP TABLE IF EXISTS gone;
"""

CONTROLS = 'CREATE TABLE "new\nline\x1b[2J"("\x1b]0;title\x07" "\u202e");'


def make(name, script):
    path = pathlib.Path(folder.name, name)
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()
    return path


MANY = "".join(f"CREATE TABLE a_table_of_some_length_{i}(a);" for i in range(500))
databases = {
    "chinook": CHINOOK,
    "odd": make("odd.sqlite", ODD),
    "empty": make("empty.sqlite", ""),
    "many": make("many.sqlite", MANY),
    "controls": make("controls.sqlite", CONTROLS),
    "broken": broken_schema.make(pathlib.Path(folder.name, "broken.sqlite")),
}
service = Service(
    {name: {"Path": path, "Description": f"What is {name}"} for name, path in databases.items()}
    | {"part": {"Path": CHINOOK, "Expose": "Album Artist"}},
    limits={"RowSizeMax": "3M", "RunTimeoutSec": "90", "ResultRowsMax": "infinity"},
)


def ask(*arguments, code=OK, says="", on=service):
    """Runs the shell; returns its output. It must end with `code`, with `says` on stderr, or with nothing there."""
    done = on.run(CLI, f"--address={on.address}", *arguments)
    out, err = done.stdout.decode(), done.stderr.decode()
    equal(done.returncode, code, f"exit code of {arguments}, which said {err!r}")
    if says:
        true(says in err, f"{arguments} said {err!r}, expected {says!r}")
    else:
        equal(err, "", f"what {arguments} said")
    return out


def as_sqlite3(database, command):
    reference = subprocess.run(["sqlite3", databases[database], command], capture_output=True, text=True, check=True).stdout
    equal(ask(database, command), reference, f"{command} of {database}")
    return reference


@test
def lists_of_names():
    """.tables and .indexes equal sqlite3's byte for byte"""
    for database in ("chinook", "empty", "many"):
        as_sqlite3(database, ".tables")
        as_sqlite3(database, ".indexes")
    true(as_sqlite3("chinook", ".tables 'A%'"), "some")
    true(as_sqlite3("chinook", ".indexes Track"), "some")
    equal(ask("odd", ".tables größ%").split(), ["größe"], "a pattern beyond ASCII")
    equal(ask("odd", ".views").split("  "), ["a view", "broken\n"], "views")
    equal(ask("chinook", "\\dt A%"), ask("chinook", ".tables A%"), "its alias")
    equal(ask("--mode=json", "chinook", ".tables 'A%'"), '[{"name":"Album"},\n{"name":"Artist"}]\n', "in a mode")
    equal(ask("--mode=csv", "chinook", ".indexes Album"), "name\nIFK_AlbumArtistId\n", "indexes in a mode")
    equal(ask("odd", ".mode list", ".views *view"), "name\na view\n", "views in a mode")
    equal(ask("chinook", "\\dt a*").split(), ["Album", "Artist"], "a pattern as psql has it")
    equal(ask("chinook", ".indexes Albu?").split(), ["IFK_AlbumArtistId"], "indexes, by such a pattern")
    equal(ask("odd", ".views *view").split("  "), ["a view\n"], "views, by such a pattern")


@test
def schemas():
    """.schema, whole, by name, by pattern and with --indent, equals sqlite3's byte for byte"""
    for database in ("chinook", "odd", "empty", "many"):
        for command in (".schema", ".schema --indent"):
            as_sqlite3(database, command)
    for name in ("Album", "album", "Playlist%", "nosuch"):
        as_sqlite3("chinook", f".schema {name}")
        as_sqlite3("chinook", f".schema {name} --indent")
    true("CREATE TABLE [Album]" in ask("chinook", ".schema Alb*"), "a pattern of GLOB")
    for name in ("long", "words", "'a view'", '"select"', "ended", "größe"):
        true(as_sqlite3("odd", f".schema {name}"), "some")
    equal(ask("part", ".schema").count("CREATE VIRTUAL TABLE"), 2, "what is exposed")


@test
def temp_objects():
    """TEMP tables and views are listed as sqlite3 lists them; .describe shows the table that a statement would use"""
    make_them = [
        "CREATE TEMP TABLE Album(a, b UNIQUE)", "CREATE TEMP TABLE mine(x)", "CREATE INDEX temp.my_index ON mine(x)",
        "CREATE TEMP VIEW seen AS SELECT * FROM mine",
    ]  # fmt: skip
    for command in (".tables", ".tables A%", ".tables mi%", ".tables temp.mine", ".indexes", ".indexes Album", ".schema",
                    ".schema --indent", ".schema album", ".schema temp.Album", ".schema main.Album", ".schema mine",
                    ".schema temp.*", ".fullschema"):  # fmt: skip
        reference = subprocess.run(["sqlite3", databases["chinook"], *make_them, command], capture_output=True, text=True)
        equal(ask("chinook", *make_them, command), reference.stdout, command)
        true(reference.stdout or command.endswith("temp.mine"), f"what sqlite3 says to {command}")
    equal(ask("chinook", *make_them, ".views"), "temp.seen\n", "views")
    listed = ask("--mode=list", "chinook", *make_them, ".describe").split("\n")
    true({"temp.Album|table|2|", "Album|table|3|", "temp.seen|view|1|"} <= set(listed), listed)
    text = ask("--mode=table", "chinook", *make_them, ".describe album")
    true("Table temp.Album" in text and "sqlite_autoindex_Album_1 (b), UNIQUE" in text, text)
    true("Title" not in text and "IFK_" not in text and "Track" not in text, text)
    text = ask("--mode=list", "chinook", *make_them, "\\d+ album")
    equal(text.splitlines()[-1], "CREATE TABLE Album(a, b UNIQUE);", "its SQL")


@test
def beside_broken_objects():
    """Objects that do not compile are listed, and all others are described; a name may have any bytes"""
    names = subprocess.run(
        ["sqlite3", databases["broken"], "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')"],
        capture_output=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    shown = ["".join(chr(c) if c < 128 else f"\\x{c:02x}" for c in name) for name in names if b"\xff" in name]
    listed = service.run(CLI, f"--address={service.address}", "broken", ".mode list", ".tables").stdout.splitlines()
    equal(sorted(listed[1:]), sorted(names), ".tables")
    for command in (".schema", ".indexes"):
        reference = subprocess.run(["sqlite3", databases["broken"], command], capture_output=True, check=True).stdout
        equal(service.run(CLI, f"--address={service.address}", "broken", command).stdout, reference, command)
    text = ask("broken", ".describe")
    for name in ("good_view", "no table", "no module", "sorted", *shown):
        true(name in text, f"{name} in {text}")
    for name, column in (("sorted", "b"), ("computed", "computed"), (f"non{broken_schema.NONCHARACTER}", "'default")):
        true(column in ask("broken", f'.describe "{name}"'), f"columns of {name}")
    for name, word in broken_schema.UNREADABLE.items():
        if name != "computed":
            ask("broken", f'.describe "{name}"', code=QUERY, says=word)


@test
def described():
    """.describe shows columns, defaults, keys, indexes and triggers; modes for programs show only the columns"""
    text = ask("odd", ".describe LONG")
    for wanted in (
        "Table long\n",
        "NUMERIC(10, 2)",
        "not null",
        "'a, b'",
        "primary key",
        "computed",
        "stored",
        "index of it (second DESC NOCASE, an expression), partial",
        "(second, third), UNIQUE",
        "(second, third) refers to other (a, b), on update set null, on delete cascade",
    ):
        true(wanted in text, f"{wanted!r} in {text}")
    text = ask("odd", ".describe other")
    for wanted in ("primary key 2", "(b, a), primary key", "Referred to by:\n  long (second, third)\n", "Triggers:\n  ch"):
        true(wanted in text, f"{wanted!r} in {text}")
    text = ask("odd", "\\d 'a view'")
    for wanted in ("View a view\n", "two words", "Definition:\n  CREATE VIEW"):
        true(wanted in text, f"{wanted!r} in {text}")
    rows = json.loads(ask("--mode=json", "odd", '.describe "we""ird \'name"'))
    equal([row["column"] for row in rows], ["sel ect", "b, c", "x", "group"], "columns as JSON")
    equal(rows[0]["default"], "'it''s, ('", "default")
    for table in ("Invoice", "Genre"):
        head = ask("chinook", f".describe {table}").splitlines()[2]
        equal(head.replace("|", "").split(), ["column", "type", "null", "key"], f"what columns of {table} have")
    equal(len(json.loads(ask("--mode=json", "chinook", ".describe Genre"))[0]), 6, "names in JSON, whatever they have")
    true("Album" in ask("part", ".describe Album"), "one that is exposed")
    ask("odd", ".describe nosuch", code=QUERY, says="there is no table or view nosuch")
    rows = json.loads(ask("--mode=json", "chinook", ".describe"))
    equal({row["name"]: row["type"] for row in rows}["Album"], "table", "the list")


@test
def controls():
    """Names with control sequences are escaped in lists, for a terminal and for other output"""
    for command in (".tables", r'.describe "new\nline\033[2J"'):
        out = ask("controls", command)
        true("\x1b" not in out and "\u202e" not in out and "\x07" not in out, f"{command}: {out!r}")
        true("new\\nline\\x1b[2J" in out, f"{command}: {out!r}")


@test
def databases_listed():
    """.databases lists all databases that we may use, with their descriptions, and marks the open one"""
    rows = json.loads(ask("--mode=json", "odd", ".databases"))
    equal([row["name"] for row in rows], sorted([*databases, "part"]), "names")
    equal([row["name"] for row in rows if row["open"] == "*"], ["odd"], "the open one")
    details = [(row["description"], row["mode"]) for row in rows if row["name"] == "many"]
    equal(details, [("What is many", "read-only")], "details")
    equal(len(json.loads(ask("--mode=json", "-c", "\\l"))), len(rows), "without any open")


@test
def opened():
    """.open switches to another database; if that does not exist, the old one stays open"""
    equal(ask("chinook", ".open empty", ".tables", "\\c chinook", ".tables Genre"), "Genre\n", "tables of each")
    out = ask("chinook", ".open nosuch", ".tables Genre", code=QUERY, says="there is no database nosuch")
    equal(out, "Genre\n", "tables of the open database")
    ask("-c", ".tables", code=QUERY, says="no database is open")


@test
def connected():
    """.connect switches to another bus, and keeps a database that exists there; if no bus answers, it changes nothing"""
    with Service({"chinook": databases["empty"]}) as other, Service({}) as bare, Service(start=False) as dead:
        there, back = (f".connect --address={one.address}" for one in (other, service))
        out = ask("chinook", there, ".tables", back, ".tables Genre")
        equal(out, "Genre\n", "tables of each")
        ask("chinook", f".connect --address={bare.address}", ".tables", code=QUERY, says="no database is open")
        for nobody in (dead.address, "unix:path=/nonexistent"):
            words = ("chinook", f".connect --address={nobody}", ".tables Genre")
            done = service.run(CLI, f"--address={service.address}", *words)
            equal((done.returncode, done.stdout), (UNREACHABLE, b"Genre\n"), f"after {done.stderr!r}")
    equal(ask("chinook", ".connect", ".tables Genre"), "Genre\n", "connecting again")
    for wrong in ("--system --user", "--host=", "--nosuch", "--address=unix:path=/x --host=y"):
        ask("chinook", f".connect {wrong}", code=USAGE, says="usage: .connect")


def status(*arguments, on=service):
    lines = ask(*arguments, on=on).splitlines()
    return {line[:12].strip(): line[13:] for line in lines if not line.startswith(" ")}, lines


@test
def own_status():
    """.status: versions, bus, user, readable databases; our statements and runs, also those of other programs"""
    told, _ = status("chinook", ".status")
    true(told["Client"].startswith("ipcq-cli ") and told["Service"].startswith("sqlipcd "), "versions")
    true(service.address in told["Bus"] and ", as :1." in told["Bus"], told["Bus"])
    true(told["User"].startswith(f"{os.geteuid()} "), told["User"])
    equal((told["Database"], told["May read"], told["Mode"]), ("chinook", "all of it", "read-only"), "database")
    equal(status("part", ".status")[0]["May read"], "Album, Artist", "what is exposed")
    equal(status("-c", ".status")[0]["Databases"], ", ".join(sorted([*databases, "part"])), "databases")

    client = service.client()
    client.database("chinook", "Prepare", "(sa{sv})", "SELECT 'of another' FROM Album", {})
    told, lines = status("chinook", ".status")
    equal(told["Statements"], "1", "statements")
    true(any("on chinook, of :1." in line and line.endswith("SELECT 'of another' FROM Album") for line in lines), f"{lines}")
    service.forget()


@needs_root
def statements_of_others():
    """root may see the objects of all users, but .status shows only our own"""
    client = service.client(UID_A)
    client.database("chinook", "Prepare", "(sa{sv})", "SELECT 1", {})
    equal(status("chinook", ".status")[0]["Statements"], "0", "statements")
    service.forget()


@test
def limits():
    """.limit shows our limits, with sizes as in the configuration; .limit rows cuts results"""
    told = dict(line.split(maxsplit=1) for line in ask("chinook", ".limit").splitlines())
    equal((told["row-size-max"], told["run-timeout"], told["result-rows-max"]), ("3M", "1:30 min", "no limit"), "limits")
    out = ask("--mode=csv", "chinook", ".limit rows 2", "SELECT AlbumId FROM Album ORDER BY 1", says="first 2 rows")
    equal(out, "AlbumId\n1\n2\n", "rows")
    ask("chinook", ".limit rows 1", "SELECT AlbumId FROM Album", says="this is the first row;")
    out = ask("--mode=csv", "chinook", ".limit rows 2", ".limit rows off", "SELECT AlbumId FROM Album ORDER BY 1")
    equal(out.count("\n"), 348, "all rows")
    for wrong in ("rows", "cols 5"):
        ask("chinook", f".limit {wrong}", code=USAGE, says="usage: .limit")
    ask("chinook", ".limit rows many", code=USAGE, says="many")


@test
def full_schemas():
    """.fullschema writes the same as sqlite3's, with the tables of ANALYZE if there are any"""
    path = service.folder / "analyzed.sqlite"
    with sqlite3.connect(path) as db:
        db.executescript("CREATE TABLE a(x, y); INSERT INTO a VALUES(1, 2), (3, 4); CREATE INDEX i ON a(x);"
                         "CREATE VIEW v AS SELECT x FROM a; ANALYZE")
    db.close()
    with Service({"analyzed": path, "plain": CHINOOK}) as own:
        for name, file in (("plain", CHINOOK), ("analyzed", path)):
            for command in (".fullschema", ".fullschema --indent"):
                reference = subprocess.run(["sqlite3", file, command], capture_output=True, text=True, check=True).stdout
                equal(ask(name, command, on=own), reference, f"{command} of {name}")
        ask("plain", ".fullschema Genre", on=own, code=USAGE, says="usage: .fullschema")


CHECKSUMMED = """
CREATE TABLE B(x, generated AS (x || 'more'));
INSERT INTO B(x) VALUES (1), (-2.5), (NULL), ('größe'), (x'00ff'), (''), (x'');
CREATE TABLE "a ""quoted" (y PRIMARY KEY, z) WITHOUT ROWID; INSERT INTO "a ""quoted" VALUES (3, 9223372036854775807);
CREATE TABLE numbered(i INTEGER PRIMARY KEY AUTOINCREMENT, v); INSERT INTO numbered(v) VALUES (1e300), (-1);
CREATE INDEX indexed ON numbered(v); CREATE VIEW viewed AS SELECT 1; CREATE VIRTUAL TABLE words USING fts5(body);
CREATE TABLE sqlitelike(a); INSERT INTO words VALUES ('some words'); ANALYZE;
"""


@test
def checksums():
    """.sha3sum prints the same checksums as sqlite3's: of all tables, of some, and of the schema"""
    path = make("checksummed.sqlite", CHECKSUMMED)
    wide = make("wide.sqlite", "PRAGMA encoding = 'UTF-16le';" + CHECKSUMMED)
    arguments = ["", "--sha3-256", "--sha3-384", "--sha3-512", "--sha3-224 --schema", "b", "%", "NUM%", "sqlite_%", "a%"]
    arguments += ["--schema --sha3-512 %"]
    with Service({"plain": path, "wide": wide, "part": {"Path": path, "Expose": "numbered"}}) as own:
        for name, file in (("plain", path), ("wide", wide)):
            for argument in arguments:
                command = f".sha3sum {argument}".rstrip()
                done = subprocess.run(["sqlite3", file, command], capture_output=True, text=True, check=False)
                reference = done.stdout  # that of 3.46 fails after the sum of sqlite_%
                true(reference, f"sqlite3 has no {command}")
                equal(ask(name, command, on=own), reference, f"{command} of {name}")
        whole = ask("plain", ".sha3sum numbered", on=own)
        equal(ask("part", ".sha3sum numbered", on=own, says="only parts of part are exposed"), whole, "an exposed table")
        ask("plain", ".sha3sum --sha3-128", on=own, code=USAGE, says="usage: .sha3sum")
    for limits in ({"CompoundSelectsMax": 3}, {"VdbeOpsMax": 1000}, {"SQLSizeMax": 700}):
        with Service({"limited": path}, limits=limits) as own:
            reference = subprocess.run(["sqlite3", path, ".sha3sum"], capture_output=True, text=True, check=True).stdout
            equal(ask("limited", ".sha3sum", on=own, says="not one moment"), reference, f"with {limits}")


@test
def checksums_of_one_moment():
    """.sha3sum while another process commits: a commit is in all checksums, or in none"""
    script = "CREATE TABLE first(x); CREATE TABLE last(x); INSERT INTO first VALUES (0); INSERT INTO last VALUES (0);"
    path = make("moment.sqlite", "PRAGMA journal_mode = WAL;" + script)
    done = threading.Event()

    def write():
        connection = sqlite3.connect(path)
        while not done.is_set():
            connection.executescript("BEGIN; UPDATE first SET x = x + 1; UPDATE last SET x = x + 1; COMMIT;")
        written.append(connection.execute("SELECT x FROM first").fetchone()[0])
        connection.close()

    def digest(table, value):
        select = f'SELECT * FROM "{table}" NOT INDEXED;'.encode()
        return hashlib.sha3_224(b"S%d:%sRI%s" % (len(select), select, struct.pack(">q", value))).hexdigest()

    written, writer = [], threading.Thread(target=write)
    with Service({"moment": path}) as own:
        writer.start()
        try:
            out = ask("moment", *["-c", ".sha3sum %"] * 200, on=own)
        finally:
            done.set()
            writer.join()
    pairs = {digest("first", x): digest("last", x) for x in range(written[0] + 1)}
    lines = [line.split("|") for line in out.splitlines()]
    equal([name for _, name in lines], ["first", "last"] * 200, "tables")
    for (first, _), (last, _) in zip(lines[::2], lines[1::2], strict=True):
        equal(last, pairs[first], "the checksum of the other table")


@test
def helped_as_in_psql():
    r"""\\d+ adds the CREATE statements, \\df lists functions, \\h shows the forms of statements"""
    plain, more = ask("chinook", "\\d Genre"), ask("chinook", "\\d+ Genre")
    true(more.startswith(plain) and "CREATE TABLE" in more[len(plain):] and "CREATE" not in plain, f"\\d+ shows {more!r}")
    equal(ask("--mode=csv", "--headers=off", "chinook", "\\df lower"), "lower,scalar,1\n", "\\df")
    true("lower" in ask("chinook", "\\df low*"), "\\df with a pattern of GLOB")
    true("LIMIT" in ask("chinook", "\\h") and ask("chinook", "\\h values").startswith("VALUES ("), "\\h")
    ask("chinook", "\\h INSERT", code=USAGE, says="INSERT")


@test
def explained():
    """.explain draws the plan as a tree like sqlite3, and does not run the statement"""
    sql = "SELECT * FROM Track JOIN Album USING (AlbumId) WHERE Track.Name LIKE 'A%' ORDER BY Title"
    command = ["sqlite3", CHINOOK, f"EXPLAIN QUERY PLAN {sql}"]
    reference = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    equal(ask("chinook", f".explain {sql}"), reference, "plan")
    ask("chinook", ".explain SELECT * FROM nosuch", code=QUERY, says="no such table: nosuch")
    ask("chinook", ".explain", code=USAGE, says="usage: .explain")


@test
def unknown_commands():
    """An unknown command gets the nearest as a suggestion, and exit code 2; later commands run"""
    out = ask("chinook", ".tabels", ".tables Genre", code=USAGE, says="there is no command .tabels; did you mean .tables?")
    equal(out, "Genre\n", "what followed")
    ask("chinook", ".s", code=USAGE, says=".s could be any of ")
    ask("chinook", "\\dt+", code=USAGE, says="there is no command \\dt+; did you mean \\dt?")
    ask("chinook", "\\dz", code=USAGE, says="there is no command \\dz")


main(service)
