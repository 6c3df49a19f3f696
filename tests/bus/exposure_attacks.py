# SPDX-License-Identifier: LGPL-2.1-or-later
"""Attacks on Expose=, as data: a database that exposes only a part, and SQL that tries to read the rest.

The service has refused an attack if its answer for a hidden table equals the answer for a table that never existed: the same
error, text, code and offset, or the same rows. In addition, no answer may contain a byte of the secret, or a hidden name
that was not in the query.
"""

SECRET = "s3cret-bytes-of-the-test"

SCHEMA = f"""
CREATE TABLE shown(id INTEGER PRIMARY KEY, name TEXT, owner INT);
INSERT INTO shown VALUES(1, 'one', 1), (2, 'two', 2), (3, 'three', NULL);
CREATE TABLE secret(id INTEGER PRIMARY KEY AUTOINCREMENT, password TEXT, salt BLOB);
INSERT INTO secret VALUES(1, '{SECRET}', CAST('{SECRET}' AS BLOB)), (2, '{SECRET}', NULL);
CREATE INDEX secret_password ON secret(password);
CREATE TRIGGER secret_trigger AFTER INSERT ON shown BEGIN UPDATE secret SET password = '{SECRET}'; END;
CREATE VIEW public AS
    SELECT shown.id, name, password IS NOT NULL AS has_password FROM shown LEFT JOIN secret ON owner = secret.id;
CREATE VIEW hidden_view AS SELECT password FROM secret;
CREATE TABLE other(secret_id INTEGER REFERENCES secret(id), note TEXT CHECK(note <> '{SECRET}'));
CREATE VIRTUAL TABLE notes USING fts5(body);
INSERT INTO notes VALUES('{SECRET}');
CREATE VIRTUAL TABLE pages USING fts5(body);
INSERT INTO pages VALUES('words that are shown');
PRAGMA user_version = 424242;
PRAGMA application_id = 434343;
ANALYZE;
"""

EXPOSED = ("shown", "public", "pages")

# Words that no answer may contain, unless the query contains them.
HIDDEN_WORDS = (
    "secret", "password", "salt", "hidden_view", "other", "note", "secret_trigger", "owner = ", "notes", "424242", "434343",
    "pages_data", "sqlite_autoindex", "sqlite_sequence", "sqlite_stat1",
)

# (the attempt, SQL with {x}, a hidden name, a name of the same length that never existed)
TABLE = ("secret", "absent")
VIEW = ("hidden_view", "absent_view")
INDEX = ("secret_password", "absent_password")
SHADOW = ("pages_content", "pages_kontent")
STAT = ("sqlite_stat1", "sqlite_stat9")
SEQUENCE = ("sqlite_sequence", "sqlite_zequence")

NAMED_ATTACKS = [(sql, *TABLE) for sql in (
    "SELECT * FROM {x}",
    "SELECT password FROM {x}",
    'SELECT "password" FROM "{x}"',
    "SELECT * FROM [{x}]",
    "SELECT * FROM `{x}`",
    "SELECT * FROM main.{x}",
    "SELECT * FROM temp.{x}",
    "SELECT * FROM main.{x} AS shown",
    "SELECT {x}.password FROM shown",
    "SELECT shown.{x} FROM shown",
    "SELECT main.{x}.password FROM shown",
    "SELECT (SELECT password FROM {x})",
    "SELECT * FROM shown WHERE EXISTS(SELECT 1 FROM {x} WHERE {x}.id = shown.id)",
    "SELECT * FROM shown WHERE name IN (SELECT password FROM {x})",
    "SELECT * FROM shown WHERE name IN {x}",
    "SELECT 1 IN {x}",
    "SELECT * FROM shown JOIN {x}",
    "SELECT * FROM shown NATURAL JOIN {x}",
    "SELECT * FROM shown JOIN {x} USING(id)",
    "SELECT * FROM shown LEFT JOIN {x} ON {x}.id = owner",
    "SELECT * FROM shown RIGHT JOIN {x} ON {x}.id = owner",
    "SELECT * FROM shown FULL JOIN {x} ON {x}.id = owner",
    # a view's context forged by a CTE of its name, and a column that an authorizer denies and USING reads: both pass one
    "WITH public AS (SELECT password FROM {x}) SELECT * FROM public",
    "WITH g(password) AS (VALUES(NULL)) SELECT password FROM g FULL JOIN {x} USING(password)",
    "WITH v AS (SELECT password FROM {x}) SELECT * FROM v",
    "WITH RECURSIVE r(p) AS (SELECT password FROM {x} UNION ALL SELECT p FROM r) SELECT * FROM r LIMIT 1",
    "WITH {x} AS (SELECT * FROM {x}) SELECT * FROM {x}",
    "WITH {x} AS MATERIALIZED (SELECT * FROM main.{x}) SELECT * FROM {x}",
    "SELECT name FROM shown UNION SELECT password FROM {x}",
    "SELECT name FROM shown EXCEPT SELECT password FROM {x}",
    "VALUES(1), ((SELECT password FROM {x}))",
    "SELECT max(password) OVER (ORDER BY id) FROM {x}",
    "SELECT count(*) FILTER (WHERE id > 1) FROM {x}",
    "SELECT count(*) FROM {x}",
    "SELECT rowid FROM {x}",
    "SELECT * FROM {x} INDEXED BY secret_password",
    "SELECT * FROM {x} NOT INDEXED",
    "SELECT * FROM shown INDEXED BY {x}",
    "SELECT * FROM {x}(1)",
    "SELECT * FROM shown ORDER BY (SELECT password FROM {x})",
    "SELECT * FROM shown LIMIT (SELECT id FROM {x})",
    "SELECT CASE WHEN 0 THEN (SELECT 1 FROM {x}) END",
    "SELECT 1 WHERE 0 AND EXISTS(SELECT 1 FROM {x})",
    "SELECT * FROM pragma_table_info('{x}')",
    "SELECT * FROM pragma_table_xinfo('{x}')",
    "SELECT * FROM pragma_table_list('{x}')",
    "SELECT * FROM pragma_table_list WHERE name = '{x}'",
    "SELECT * FROM pragma_index_list('{x}')",
    "SELECT * FROM pragma_foreign_key_list('{x}')",
    "SELECT * FROM pragma_foreign_key_check('{x}')",
    "PRAGMA table_info({x})",
    "PRAGMA table_xinfo({x})",
    "PRAGMA table_list({x})",
    "PRAGMA index_list({x})",
    "PRAGMA foreign_key_list({x})",
    "PRAGMA foreign_key_check({x})",
    "PRAGMA integrity_check({x})",
    "PRAGMA quick_check({x})",
    "PRAGMA {x}.table_info(shown)",
    "SELECT * FROM sqlite_schema WHERE name = '{x}'",
    "SELECT * FROM sqlite_master WHERE tbl_name = '{x}'",
    "SELECT rtreecheck('main', '{x}')",
    "EXPLAIN SELECT * FROM {x}",
    "EXPLAIN QUERY PLAN SELECT * FROM {x}",
    "INSERT INTO {x} DEFAULT VALUES",
    "UPDATE {x} SET password = 1",
    "DELETE FROM {x}",
    "DROP TABLE {x}",
    "ALTER TABLE {x} RENAME TO y",
    "CREATE TABLE {x}(a)",
    "CREATE TEMP VIEW t AS SELECT * FROM {x}",
    "CREATE TEMP TRIGGER t AFTER INSERT ON {x} BEGIN SELECT 1; END",
    "CREATE INDEX i ON {x}(id)",
    "CREATE VIRTUAL TABLE temp.{x} USING exposed",
    "REINDEX {x}",
    "ANALYZE {x}",
    "ATTACH '{x}' AS a",
)] + [(sql, *names) for names in (VIEW, SHADOW, STAT, SEQUENCE, INDEX) for sql in (
    "SELECT * FROM {x}",
    "SELECT * FROM main.{x} LIMIT 1",
    "SELECT count(*) FROM {x}",
    "PRAGMA table_info({x})",
    "PRAGMA index_info({x})",
    "SELECT * FROM pragma_index_xinfo('{x}')",
)] + [
    ("SELECT {x} FROM shown", "password", "passw0rd"),
    ("SELECT {x} FROM public", "password", "passw0rd"),
    ("SELECT {x} FROM public", "owner", "ovner"),
    ("SELECT * FROM public WHERE {x} = 1", "password", "passw0rd"),
    ("SELECT * FROM public ORDER BY {x}", "password", "passw0rd"),
    ("SELECT {x}.id FROM public", "secret", "absent"),
    ("SELECT * FROM public JOIN shown USING({x})", "password", "passw0rd"),
    ("SELECT * FROM {x} WHERE {x} MATCH 'x'", "notes", "nodes"),
    ("SELECT * FROM {x}('x')", "notes", "nodes"),
    ("SELECT body FROM pages WHERE pages MATCH '{x}'", "password", "passw0rd"),
    ("SELECT body FROM pages WHERE pages MATCH '{x} : x'", "password", "passw0rd"),
]

# Queries that list objects without naming one: their answers must contain none of the words above.
UNNAMED_ATTACKS = (
    "SELECT * FROM sqlite_schema",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM sqlite_temp_schema",
    "SELECT * FROM main.sqlite_schema",
    "SELECT rowid, * FROM sqlite_schema",
    "PRAGMA table_list",
    "SELECT * FROM pragma_table_list",
    "PRAGMA table_info(sqlite_schema)",
    "PRAGMA database_list",
    "SELECT * FROM pragma_database_list",
    "PRAGMA user_version",
    "PRAGMA application_id",
    "PRAGMA integrity_check",
    "PRAGMA foreign_key_check",
    "SELECT * FROM pragma_function_list",
    "SELECT * FROM pragma_module_list",
    "SELECT * FROM pragma_collation_list",
    "SELECT * FROM dbstat",
    "SELECT * FROM sqlite_stmt",
    "SELECT * FROM sqlite_dbpage",
    "SELECT * FROM sqlite_dbdata",
    "SELECT * FROM bytecode('SELECT * FROM public')",
    "SELECT * FROM tables_used('SELECT * FROM public')",
    "SELECT * FROM fts5vocab",
    "SELECT * FROM fts5vocab('main', 'notes', 'row')",
    "SELECT * FROM exposed",
    "SELECT * FROM exposed('secret')",
    "SELECT * FROM exposed_collation",
    "SELECT * FROM json_each('[1]')",
    "SELECT load_extension('x')",
    "SELECT readfile('/etc/passwd')",
    "SELECT fts3_tokenizer('simple')",
    "SELECT sqlite_offset(name) FROM shown",
    "SELECT * FROM public, pages WHERE has_password MATCH 'x'",
    "SELECT * FROM public",
    "SELECT * FROM public WHERE has_password > 'x' || abs(-9223372036854775808)",
    "SELECT rowid FROM public",
    "SELECT * FROM public WHERE rowid = 1 OR name = 'one'",
    "SELECT * FROM pages WHERE pages MATCH '\"'",
    "SELECT rank, pages FROM pages WHERE pages MATCH 'words'",
    "EXPLAIN SELECT * FROM public",
    "EXPLAIN QUERY PLAN SELECT * FROM public",
    "ATTACH 'file:memdb' AS a",
    "BEGIN",
    "PRAGMA writable_schema = 1",
    "PRAGMA schema_version = 7",
)


def text_of(outcome):
    """Returns the whole answer as text."""
    return repr(outcome)


def check_named(ask, sql, hidden, absent):
    """Raises AssertionError if the answers for the hidden and the absent name differ. `ask` takes SQL and returns the answer
    as plain values: ("rows", ...) or ("error", ...)."""
    answers = [text_of(ask(sql.replace("{x}", name))).replace(name, "{x}") for name in (hidden, absent)]
    if answers[0] != answers[1]:
        raise AssertionError(f"{sql}: {hidden} brings {answers[0]}, {absent} brings {answers[1]}")
    check_words(sql, answers[0])


def check_unnamed(ask, sql):
    check_words(sql, text_of(ask(sql)))


def check_words(sql, answer):
    if SECRET in answer:
        raise AssertionError(f"{sql} brings the secret: {answer}")
    found = [word for word in HIDDEN_WORDS if word in answer.replace("has_password", "") and word not in sql]
    if found:
        raise AssertionError(f"{sql} brings {found}: {answer}")
