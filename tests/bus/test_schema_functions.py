#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Schemas that call functions and use virtual tables, from files that were made elsewhere: each function and each module of
the linked SQLite, in all places of a schema. The service gives what SQLite gives for a schema that it trusts,
or refuses the few that are listed here. A function or module that a newer SQLite brings, and that is neither, fails these
tests: read what it does, then list it here or in trusted-schema.c.
"""
import contextlib
import itertools
import random
import sqlite3

from client import Failure, Text
from harness import Service, main
from tap import cases, equal, test, true

# ---- functions ----

# trusted-schema.c and access.c take these away. In a CHECK they make SQLite call the whole file malformed, as SQLite does
# itself for a schema that it does not trust.
REFUSED = {"fts3_tokenizer", "load_extension", "optimize", "rtreecheck"}
# Values of other programs, of this moment or of chance: nothing to compare.
VOLATILE = {"random", "randomblob", "sqlite_source_id", "total_changes", "changes", "last_insert_rowid"}
ARGUMENTS = ("a", "'{\"a\":[1,2]}'", "'$.a'", "2", "'x'", "NULL", "x'0102'")
ROWS = ('{"a": [1, 2, 3]}', "plain", 4, 2.5, None, b"\x01\x02")
PLACES = {
    "view": "CREATE VIEW {n}_view AS SELECT {e} AS v FROM data",
    "trigger": "CREATE TABLE {n}_trigger(a); CREATE TABLE {n}_trigger_log(v);"
               "CREATE TRIGGER {n}_fired AFTER INSERT ON {n}_trigger BEGIN"
               " INSERT INTO {n}_trigger_log SELECT {e} FROM (SELECT new.a AS a); END",
    "check": "CREATE TABLE {n}_check(a, CHECK(coalesce({e}, 1) IS NOT NULL))",
    "default": "CREATE TABLE {n}_default(a, v DEFAULT ({c}))",
    "generated": "CREATE TABLE {n}_generated(a, v AS ({e}))",
    "index": "CREATE TABLE {n}_index(a); CREATE INDEX {n}_expression ON {n}_index({e});"
             "CREATE INDEX {n}_partial ON {n}_index(a) WHERE {e} IS NOT NULL",
}  # fmt: skip
READS = {
    "view": "SELECT v FROM {n}_view",
    "trigger": "SELECT v FROM {n}_trigger_log",
    "check": "SELECT a FROM {n}_check",
    "default": "SELECT a, v FROM {n}_default",
    "generated": "SELECT a, v FROM {n}_generated",
    "index": "SELECT a FROM {n}_index WHERE {e} IS NOT NULL ORDER BY {e}, a",
}


def linked_functions():
    """Of this SQLite: names, and the numbers of arguments that they take."""
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        found = db.execute("SELECT DISTINCT name, narg FROM pragma_function_list WHERE type IN ('s', 'a', 'w')").fetchall()
    return sorted(found)


def calls(name, n_arguments):
    """Expressions that call it: `e` with a column, `c` without."""
    counts = (n_arguments,) if n_arguments >= 0 else (1, 2, 3, 0)
    for n in counts:
        for arguments in itertools.product(ARGUMENTS, repeat=min(n, 3)):
            listed = ", ".join(arguments + ("1",) * (n - len(arguments)))
            if name in ("->", "->>", "match", "glob", "like", "regexp") and n == 2:
                operator = {"glob": "GLOB", "like": "LIKE", "regexp": "REGEXP", "match": "MATCH"}.get(name, name)
                yield f"(({arguments[0]}) {operator} ({arguments[1]}))"
            elif name.replace("_", "").isalnum():
                yield f"{name}({listed})"


def find_call(db, name, n_arguments):
    """An expression that this SQLite can compute for each row, with the column if possible."""
    for e in calls(name, n_arguments):
        try:
            db.execute(f"SELECT {e} FROM data").fetchall()
        except sqlite3.Error:
            continue
        return e
    return None


def make(db, number, e):
    """The objects that SQLite lets a schema have. Returns their places."""
    made = []
    for place, sql in PLACES.items():
        n, c = f"f{number}", e.replace("(a", "('{}'").replace(", a", ", '{}'")
        try:
            db.executescript(f"BEGIN; {sql.format(n=n, e=e, c=c)}; COMMIT")
            made.append(place)
        except sqlite3.Error:
            with contextlib.suppress(sqlite3.Error):
                db.execute("ROLLBACK")
    return made


def use(number, place, e, insert, read):
    """The results of writing and reading: rows, or that it failed."""
    results = []
    if place != "view":
        for row in ROWS:
            try:
                insert(f"INSERT INTO f{number}_{place}(a) VALUES(?)", row)
                results.append("written")
            except (Failure, sqlite3.Error):
                results.append("failed")
    try:
        results.append(read(READS[place].format(n=f"f{number}", e=e)))
    except (Failure, sqlite3.Error):
        results.append("failed")
    return results


def opened(path):
    db = sqlite3.connect(path, isolation_level=None)
    db.text_factory = Text
    return contextlib.closing(db)


def data_file(path):
    db = sqlite3.connect(path, isolation_level=None)
    db.text_factory = Text
    db.execute("CREATE TABLE data(a)")
    db.executemany("INSERT INTO data VALUES(?)", [(row,) for row in ROWS])
    return db


service = Service({}, start=False)


def publish(name):
    service.database(name, Path=service.data / f"{name}.sqlite", Mode="read-write", WriteSchema="yes")
    return service.data / f"{name}.sqlite"


def write_functions():
    """A file with all functions but those that are refused, of which each has its own. Returns what is in them."""
    written, alone = [], []
    with contextlib.closing(data_file(publish("functions"))) as db:
        for number, (name, n_arguments) in enumerate(linked_functions()):
            if name in REFUSED:
                alone.append((number, name, n_arguments))
                continue
            e = find_call(db, name, n_arguments)
            if e:
                written += [(number, name, e, place) for place in make(db, number, e)]
    return written, alone


def write_refused(alone):
    files = []
    for number, name, n_arguments in alone:
        e = f"{name}({', '.join(ARGUMENTS[: n_arguments if n_arguments > 0 else 1])})"
        for place in PLACES:
            file = f"refused{number}{place}"
            with contextlib.closing(data_file(publish(file))) as db:
                # SQLite makes no default, generated column or index of some, so it is written into the schema
                sql = PLACES[place].format(n="f0", e="abs(a)", c="abs(1)")
                db.executescript(sql)
                db.execute("PRAGMA writable_schema = ON")
                db.execute(
                    "UPDATE sqlite_schema SET sql = replace(replace(sql, 'abs(a)', ?), 'abs(1)', ?)",
                    (e, e.replace("(a", "(1")),
                )
            files.append((file, name, e, place))
    return files


written, alone = write_functions()
refused = write_refused(alone)

# ---- modules ----

# What a schema of a file, or a statement, may not use.
REFUSED_MODULES = {"sqlite_stmt", "bytecode", "tables_used", "sqlite_dbpage"}
# In views only, as in SQLite.
DIRECT_MODULES = {"dbstat"}
MODULES = {
    "dbstat": "SELECT name FROM dbstat",
    "fts3": "SELECT docid, x FROM made_fts3 WHERE made_fts3 MATCH 'one'",
    "fts3tokenize": "SELECT token FROM made_fts3tokenize WHERE input = 'one two'",
    "fts4": "SELECT docid, snippet(made_fts4) FROM made_fts4 WHERE x MATCH 'one'",
    "fts4aux": "SELECT term, documents FROM made_fts4aux",
    "fts5": "SELECT rowid, highlight(made_fts5, 0, '<', '>'), bm25(made_fts5) FROM made_fts5 WHERE x MATCH 'one'",
    "fts5vocab": "SELECT term, doc FROM made_fts5vocab",
    "geopoly": "SELECT rowid FROM made_geopoly",
    "json_each": "SELECT key, value FROM data, json_each(data.a) WHERE json_valid(data.a)",
    "json_tree": "SELECT path, atom FROM data, json_tree(data.a) WHERE json_valid(data.a)",
    "jsonb_each": "SELECT key, value FROM json_array(1, 2) AS j, jsonb_each(j)",
    "jsonb_tree": "SELECT path, atom FROM json_array(1, 2) AS j, jsonb_tree(j)",
    "pragma_function_list": "SELECT count(*) > 100 FROM pragma_function_list",
    "pragma_module_list": "SELECT name FROM pragma_module_list WHERE name = 'fts5'",
    "pragma_table_info": "SELECT name FROM pragma_table_info('data')",
    "rtree": "SELECT id, a FROM made_rtree WHERE a < 5",
    "rtree_i32": "SELECT id, a FROM made_rtree_i32 WHERE a < 5",
}
COLUMNS = {
    "fts4aux": "made_fts4", "fts5vocab": "made_fts5, 'row'", "fts3tokenize": "simple", "rtree": "id, a, b",
    "rtree_i32": "id, a, b", "geopoly": "x",
}  # fmt: skip
EPONYMOUS = {"dbstat", "json_each", "json_tree", "jsonb_each", "jsonb_tree"}


def linked_modules():
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        return {name for (name,) in db.execute("SELECT name FROM pragma_module_list")} | {"pragma_table_info"}


def write_modules(modules):
    with contextlib.closing(data_file(publish("modules"))) as db:
        for name in sorted(modules):
            if name not in EPONYMOUS and not name.startswith("pragma_"):
                db.execute(f"CREATE VIRTUAL TABLE made_{name} USING {name}({COLUMNS.get(name, 'x')})")
            if name.startswith("fts") and name in ("fts3", "fts4", "fts5"):
                db.executemany(f"INSERT INTO made_{name}(x) VALUES(?)", [("one two",), ("three",), ("one",)])
            if name.startswith("rtree"):
                db.executemany(f"INSERT INTO made_{name} VALUES(?, ?, ?)", [(1, 1, 2), (2, 3, 4), (3, 7, 9)])
        for name in sorted(modules):
            db.execute(f"CREATE VIEW view_{name} AS {MODULES[name]}")


known = (linked_modules() - REFUSED_MODULES) & set(MODULES)
write_modules(known)

# ---- whole schemas ----

# One text index that its triggers keep, of each kind, a table of areas, and views over these.
KEPT = """
CREATE TABLE note(id INTEGER PRIMARY KEY, title TEXT, body TEXT, x REAL, doc TEXT CHECK(json_valid(doc)),
        tag AS (doc ->> '$.tag') STORED, size INT AS (json_array_length(doc, '$.list')));
CREATE INDEX note_tag ON note(doc -> '$.tag') WHERE json_type(doc, '$.tag') = 'text';
CREATE VIRTUAL TABLE own3 USING fts3(title, body);
CREATE VIRTUAL TABLE text4 USING fts4(title, body, content='note');
CREATE VIRTUAL TABLE text5 USING fts5(title, body, content='note', content_rowid='id');
CREATE VIRTUAL TABLE area USING rtree(id, low, high);
CREATE TRIGGER added AFTER INSERT ON note BEGIN
        INSERT INTO own3(docid, title, body) VALUES(new.id, new.title, new.body);
        INSERT INTO text4(docid, title, body) VALUES(new.id, new.title, new.body);
        INSERT INTO text5(rowid, title, body) VALUES(new.id, new.title, new.body);
        INSERT INTO area VALUES(new.id, new.x, new.x + 1);
END;
CREATE TRIGGER before_removed BEFORE DELETE ON note BEGIN
        DELETE FROM text4 WHERE docid = old.id;
END;
CREATE TRIGGER removed AFTER DELETE ON note BEGIN
        DELETE FROM own3 WHERE docid = old.id;
        INSERT INTO text5(text5, rowid, title, body) VALUES('delete', old.id, old.title, old.body);
        DELETE FROM area WHERE id = old.id;
END;
CREATE TRIGGER before_changed BEFORE UPDATE ON note BEGIN
        DELETE FROM text4 WHERE docid = old.id;
END;
CREATE TRIGGER changed AFTER UPDATE ON note BEGIN
        UPDATE own3 SET title = new.title, body = new.body WHERE docid = old.id;
        INSERT INTO text4(docid, title, body) VALUES(new.id, new.title, new.body);
        INSERT INTO text5(text5, rowid, title, body) VALUES('delete', old.id, old.title, old.body);
        INSERT INTO text5(rowid, title, body) VALUES(new.id, new.title, new.body);
        UPDATE area SET low = new.x, high = new.x + 1 WHERE id = new.id;
END;
CREATE VIEW found AS SELECT n.id, snippet(text5, 0, '[', ']', '...', 5) AS part FROM text5 JOIN note n ON n.id = text5.rowid
        WHERE text5 MATCH 'apple OR pear';
CREATE VIEW near AS SELECT note.id, title FROM note JOIN area USING(id) WHERE low BETWEEN 2 AND 6;
CREATE VIEW items AS SELECT note.id, item.key, item.value FROM note, json_each(note.doc, '$.list') AS item;
CREATE VIEW columns AS SELECT m.name AS of, c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table';
"""
STATES = (
    "SELECT * FROM note ORDER BY id",
    "SELECT docid, title FROM own3 WHERE own3 MATCH 'apple' ORDER BY docid",
    "SELECT docid FROM text4 WHERE text4 MATCH 'apple' ORDER BY docid",
    "SELECT rowid FROM text5 WHERE text5 MATCH 'apple' ORDER BY rowid",
    "SELECT * FROM area ORDER BY id",
    "SELECT * FROM found ORDER BY id",
    "SELECT * FROM near ORDER BY id",
    "SELECT * FROM items ORDER BY id, key",
    "SELECT * FROM columns ORDER BY of, name",
    "SELECT id FROM note WHERE doc -> '$.tag' = '\"b\"' AND json_type(doc, '$.tag') = 'text' ORDER BY id",
    "SELECT tag, total(size) FROM note GROUP BY tag ORDER BY tag",
)  # fmt: skip


def some_change(choose, n):
    word = choose.choice(("apple", "pear", "apple pie", "plum", ""))
    doc = choose.choice(('{"tag": "a", "list": [1, "x", null]}', '{"tag": "b", "list": []}', "[1, 2]", "no JSON", None))
    row = (f"{word} {n}", f"{n} {word} body", choose.randrange(9), doc)
    kind = choose.randrange(10)
    if kind < 5:
        return "INSERT INTO note(title, body, x, doc) VALUES(?, ?, ?, ?)", row
    at = choose.randrange(1, 40)
    if kind < 8:
        return "UPDATE note SET title = ?, body = ?, x = ?, doc = ? WHERE id = ?", (*row, at)
    return "DELETE FROM note WHERE id = ?", (at,)


# The virtual table by which the service sets changes() (sqlite-counts.h).
COUNTS = "sqlipc-service-counts"
NAMES_IT = f"""
CREATE TABLE log(v);
CREATE TABLE source(v);
CREATE TABLE "{COUNTS}"(n);
CREATE TRIGGER of_it AFTER INSERT ON "{COUNTS}" BEGIN INSERT INTO log VALUES('counted'); END;
CREATE TRIGGER noted AFTER INSERT ON source BEGIN INSERT INTO log VALUES(changes()); END;
"""
# In a file in which no table has its name.
USES_IT = f"""
CREATE TABLE log(v);
CREATE TABLE source(v);
CREATE TABLE target(v);
CREATE TABLE made_of_it(n);
CREATE VIEW shows AS SELECT n FROM log;
CREATE TRIGGER writes AFTER INSERT ON target BEGIN INSERT INTO log VALUES(1); END;
CREATE TRIGGER noted AFTER INSERT ON source BEGIN INSERT INTO log VALUES(changes()); END;
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'log', '"{COUNTS}"') WHERE name IN ('shows', 'writes');
UPDATE sqlite_schema SET sql = 'CREATE VIRTUAL TABLE made_of_it USING "{COUNTS}"', rootpage = 0 WHERE name = 'made_of_it';
"""

for name, script in {"kept": KEPT, "copy": KEPT, "made": "", "names": NAMES_IT, "uses": USES_IT}.items():
    with contextlib.closing(sqlite3.connect(publish(name))) as db:
        db.executescript(script)

service.start()
client = service.client()


def ask(database):
    return (
        lambda sql, *values: client.execute(database, sql, values),
        lambda sql: [tuple(row) for row in client.query(database, sql).read().rows],
    )


@test
def each_function():
    """A schema may call each function that computes in a view, trigger, CHECK, DEFAULT, generated column and index"""
    names = {name for _, name, _, _ in written}
    true({"json_valid", "->", "->>", "json_extract", "abs"} <= names, f"only {sorted(names)}")
    insert, read = ask("functions")
    got = {entry: use(entry[0], entry[3], entry[2], insert, read) for entry in written}
    # afterwards, as SQLite would have done it with the same file before
    with contextlib.closing(data_file(":memory:")) as db:
        for number, e in {(number, e): None for number, _, e, _ in written}:
            make(db, number, e)
        for entry, results in got.items():
            number, name, e, place = entry
            if name not in VOLATILE:
                own = use(number, place, e, lambda sql, a: db.execute(sql, (a,)), lambda sql: db.execute(sql).fetchall())
                equal(results, own, f"{e} in a {place}")
            else:
                true("failed" not in results, f"{e} in a {place}: {results}")
    cases("schema functions", len(written), "a function in a place of a schema, as in SQLite")


@test
def no_other_function():
    """A function that reads files or tables by their names cannot be called by a schema; other files are not affected"""
    equal({name for _, name, _, _ in refused}, {name for name, _ in linked_functions()} & REFUSED, "tried")
    for file, name, e, place in refused:
        insert, read = ask(file)
        results = use(0, place, e, insert, read)
        true(
            all(r in ("failed", "written") or r == [] for r in results) and "failed" in results,
            f"{name} in a {place} had effect: {results}",
        )
        try:
            read(READS[place].format(n="f0", e=e))
        except Failure as failure:
            true(name in failure.message or "f0_" in failure.message, f"{name} in a {place}: {failure.message}")
    cases("schema functions", len(refused), "a function that is refused in a place of a schema")


@test
def each_module():
    """Statements and views read each virtual table of SQLite that is in the database, and no other"""
    unknown = linked_modules() - REFUSED_MODULES - set(MODULES)
    true(not unknown, f"this SQLite has modules that are in no list: {sorted(unknown)}")
    _, read = ask("modules")
    with opened(service.data / "modules.sqlite") as db:
        for name in sorted(known):
            expected = db.execute(MODULES[name]).fetchall()
            true(expected or name == "geopoly", f"{name}: nothing to compare")
            equal(read(MODULES[name]), expected, name)
            if name in DIRECT_MODULES:
                continue
            equal(read(f"SELECT * FROM view_{name}"), expected, f"view of {name}")
    for name in REFUSED_MODULES:
        try:
            true(False, f"{name}: {read(f'SELECT * FROM {name}')}")
        except Failure as failure:
            equal(failure.name.rpartition(".")[2], "Sql", name)


REACHES = (
    f'SELECT * FROM "{COUNTS}"', f'SELECT 1 FROM temp."{COUNTS}" AS t', f'INSERT INTO "{COUNTS}" VALUES(1)',
    f'INSERT INTO main."{COUNTS}" VALUES(1)', f'INSERT INTO temp."{COUNTS.upper()}" VALUES(1)', f'DELETE FROM "{COUNTS}"',
    f'UPDATE "{COUNTS}" SET n = 1', f'CREATE VIRTUAL TABLE mine USING "{COUNTS}"', f'CREATE TABLE "{COUNTS}"(a)',
    f'DROP TABLE "{COUNTS}"', f'ALTER TABLE source RENAME TO "{COUNTS}"',
    f'CREATE TRIGGER mine AFTER INSERT ON log BEGIN INSERT INTO "{COUNTS}" VALUES(1); END',
)  # fmt: skip
OF_SCHEMA = ("SELECT * FROM shows", "INSERT INTO target VALUES(1)", "SELECT * FROM made_of_it",
             "INSERT INTO made_of_it VALUES(1)", "DELETE FROM made_of_it")  # fmt: skip


def is_refused(database, sql):
    try:
        got = client.query(database, sql).read().rows if sql.startswith("SELECT") else client.execute(database, sql)
    except Failure as failure:
        equal(failure.name.rpartition(".")[2] in ("NotAllowed", "Sql", "MissingModule"), True, f"{sql}: {failure}")
        return True
    raise AssertionError(f"{database}: {sql}: {got}")


@test
def table_of_counts():
    """No client and no schema reaches the virtual table by which changes() is set, and it harms no table of its name"""
    for database in ("names", "uses"):
        insert, read = ask(database)
        others = service.client()
        for n in range(1, 4):  # the numbers are exact, by that table, between the attempts
            insert("INSERT INTO log VALUES" + ", ".join(["('x')"] * n))
            others.execute(database, "INSERT INTO log VALUES('a'), ('b'), ('c'), ('d'), ('e')")
            insert("INSERT INTO source VALUES('s')")
            equal(read("SELECT v FROM log WHERE typeof(v) = 'integer' ORDER BY rowid DESC LIMIT 1"), [(n,)], "changes()")
            for sql in REACHES:
                if sql.startswith("CREATE TRIGGER"):  # SQLite looks up the tables of its statements later
                    with contextlib.suppress(Failure):
                        client.execute(database, sql)
                        is_refused(database, "INSERT INTO log VALUES(1)")
                        client.execute(database, "DROP TRIGGER mine")
                    continue
                true(is_refused(database, sql), f"{database}: {sql}")
            for sql in OF_SCHEMA if database == "uses" else ():
                true(is_refused(database, sql), sql)
        others.close()
    with opened(service.data / "names.sqlite") as db:
        equal(db.execute(f'SELECT count(*) FROM "{COUNTS}"').fetchall(), [(0,)])
        equal(db.execute("SELECT count(*) FROM log WHERE v = 'counted'").fetchall(), [(0,)])


@test
def kept_by_triggers():
    """Triggers keep FTS3, FTS4, FTS5 and R-Tree tables, and JSON is checked, computed and indexed, as in SQLite"""
    choose = random.Random(1)
    insert, read = ask("kept")
    with opened(service.data / "copy.sqlite") as db:
        for n in range(200):
            sql, values = some_change(choose, n)
            try:
                expected = db.execute(sql, values).rowcount
            except sqlite3.Error as error:
                expected = str(error)
            try:
                got = insert(sql, *values)[0]
            except Failure as failure:
                got = failure.message
            equal(got, expected, f"{sql} {values}")
            if n % 20 == 19:
                for state in STATES:
                    equal(read(state), db.execute(state).fetchall(), f"after {n + 1} changes: {state}")
        true(all(db.execute(state).fetchall() for state in STATES), "nothing to compare")
    with contextlib.closing(sqlite3.connect(service.data / "kept.sqlite")) as db:
        for table in ("own3", "text4", "text5"):
            db.execute(f"INSERT INTO {table}({table}) VALUES('integrity-check')")
        equal(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        equal(db.execute("SELECT rtreecheck('area')").fetchall(), [("ok",)])


@test
def made_by_a_client():
    """A client makes such a schema itself, statement by statement"""
    statement, n = "", 0
    for line in KEPT.splitlines(True):
        statement += line
        if sqlite3.complete_statement(statement):
            client.execute("made", statement)
            statement, n = "", n + 1
    equal(n, 15)
    insert, read = ask("made")
    insert("INSERT INTO note(title, body, x, doc) VALUES('apple', 'b', 3, '{\"tag\": \"b\", \"list\": [1]}')")
    with opened(service.data / "made.sqlite") as db:
        for state in STATES:
            equal(read(state), db.execute(state).fetchall(), state)


if __name__ == "__main__":
    main(service)
