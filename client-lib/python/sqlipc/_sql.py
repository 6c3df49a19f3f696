# SPDX-License-Identifier: LGPL-2.1-or-later
"""Looks at SQL without compiling it: its verb, its parameters, the ends of its statements, and those about transactions.

Each function does so by the rules of a dialect. SQLITE: those of SQLite, and of rqlite. POSTGRESQL: those of PostgreSQL,
with the placeholders that the service replaces (sqlipc-postgresql(7)); it sets standard_conforming_strings.
"""

import math
import re
from collections import namedtuple

SQLITE, POSTGRESQL = "sqlite", "postgresql"
# The first and the other letters of a name, without a range up to \U0010ffff, which takes 100 ms to compile.
_LETTER = r"[^\x00-@\[-^`{-\x7f]"
_IN_NAME = r"[^\x00-/:-@\[-^`{-\x7f]"
_IN_ID = r"[^\x00-#%-/:-@\[-^`{-\x7f]"  # and the dollar sign
_NAME = rf"{_LETTER}{_IN_ID}*"
_ID = rf"{_IN_ID}+"
# In SQLite a byte order mark is a blank, unless a name has begun before it. A quote that does not end is no name. Literals
# may be megabytes long: `(?:[^']|'')*` would remember a place to return to for each character.
_TOKEN = re.compile(
    rf"""(?P<space> [ \t\n\f\r\ufeff]+ | --[^\n]* | /\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/|\Z) )
      | (?P<quoted> '[^']*(?:''[^']*)*' | "[^"]*(?:""[^"]*)*" | `[^`]*(?:``[^`]*)*` | \[[^\]]*\] )
      | (?P<open> ['"`\[].* )
      | (?P<parameter> \?[0-9]* | [:@$](?:::)*{_ID}(?:::|{_ID})*(?:\([^) \t\n\v\f\r]*\))? )
      | (?P<word> {_NAME} )
      | (?P<number> [0-9](?:{_ID}|\.)* )
      | (?P<end> ; )
      | (?P<other> . )""",
    re.X | re.S,
)
_POSTGRESQL_TOKEN = re.compile(
    rf"""(?P<space> [ \t\n\v\f\r]+ | --[^\n\r]* )
      | (?P<comment> /\* )
      | (?P<escaped> [eE]'[^'\\]*(?:(?:''|\\.)[^'\\]*)*(?:'|\\?\Z) )
      | (?P<quoted> '[^']*(?:''[^']*)*(?:'|\Z) | "[^"]*(?:""[^"]*)*(?:"|\Z)
                  | \$(?P<tag>(?:{_LETTER}{_IN_NAME}*)?)\$.*?(?:\$(?P=tag)\$|\Z) )
      | (?P<operator> \?\? | :: )
      | (?P<parameter> \?[0-9]* | \$[0-9]+ | (?:[:$]|(?<![<@])@){_LETTER}{_IN_NAME}* )
      | (?P<word> {_NAME} )
      | (?P<number> [0-9][0-9A-Za-z_.]* )
      | (?P<end> ; )
      | (?P<other> . )""",
    re.X | re.S,
)
_BOUNDARY = re.compile(r"/\*|\*/")  # of comments, which PostgreSQL nests
_BLANKS = re.compile(r"(?:[ \t\n\v\f\r]+|--[^\n\r]*(?:[\n\r]|\Z))*")
_ESCAPED = re.compile(r"'[^'\\]*(?:(?:''|\\.)[^'\\]*)*(?:'|\\?\Z)", re.S)
WRITES = frozenset(("INSERT", "UPDATE", "DELETE", "REPLACE"))
_VERBS = WRITES | {"SELECT", "VALUES"}
_WITHIN = WRITES - {"REPLACE"}  # which is also a function
_READS = frozenset(("SELECT", "VALUES", "EXPLAIN", "PRAGMA", ""))
_PIN_SETTINGS = frozenset(
    "count_changes full_column_names legacy_alter_table recursive_triggers reverse_unordered_selects"
    " short_column_names".split()
)
_NUMBERS = frozenset(("user_version", "application_id"))  # which a PRAGMA may set in the file
# Words that name nothing in SQLite unless they are quoted.
_RESERVED = (
    "ADD ALL ALTER AND AS AUTOINCREMENT BETWEEN CASE CHECK COLLATE COMMIT CONSTRAINT CREATE DEFAULT DEFERRABLE DELETE"
    " DISTINCT DROP ELSE ESCAPE EXCEPT EXISTS FOREIGN FROM GROUP HAVING IN INDEX INSERT INTERSECT INTO IS ISNULL JOIN LIMIT"
    " NOT NOTHING NOTNULL NULL ON OR ORDER PRIMARY REFERENCES RETURNING SELECT SET TABLE THEN TO TRANSACTION UNION UNIQUE"
    " UPDATE USING VALUES WHEN WHERE"
)
_NAMED = rf"(?!(?:{_RESERVED.replace(' ', '|')});)[^;.]+;"
# Grammars of statements about transactions, for the texts that _shape_of() makes. SQLite takes SAVEPOINT as the optional
# word if it can, and as a name only after that. PostgreSQL has more forms than these.
_OPTIONAL = r"(?:SAVEPOINT;|(?!SAVEPOINT;))"
_CONTROL = {
    SQLITE: re.compile(
        rf"""(?: (?:BEGIN;(?:(?P<level>DEFERRED|IMMEDIATE|EXCLUSIVE);)? | COMMIT; | END; | ROLLBACK;)
                 (?:TRANSACTION;(?:{_NAMED})?)?
               | (?:SAVEPOINT; | RELEASE;{_OPTIONAL} | ROLLBACK;(?:TRANSACTION;(?:{_NAMED})?)?(?P<to>TO);{_OPTIONAL})
                 (?P<name>{_NAMED}) )\Z""",
        re.X,
    ),
    POSTGRESQL: re.compile(
        rf"""(?: SAVEPOINT; | RELEASE;{_OPTIONAL} | ROLLBACK;(?:(?:WORK|TRANSACTION);)?(?P<to>TO);{_OPTIONAL} )
               (?P<name>[^;.]+;)\Z
           | BEGIN;(?P<level>DEFERRED|IMMEDIATE|EXCLUSIVE)? | COMMIT; | END; | ROLLBACK;(?!(?:(?:WORK|TRANSACTION);)?TO;)""",
        re.X,
    ),
}
_HEAD_LENGTH = 7  # of the longest of them, ROLLBACK TRANSACTION name TO SAVEPOINT name, and one more

_Token = namedtuple("_Token", "kind text end")


def upper(text):
    """Returns text in upper case as SQL understands it, which knows the letters of ASCII."""
    return text.upper() if text.isascii() else re.sub("[a-z]+", lambda found: found[0].upper(), text)


def _end_of_comment(sql, end):
    depth = 1
    while depth > 0:
        found = _BOUNDARY.search(sql, end)
        if found is None:
            return len(sql)
        depth += 1 if found[0] == "/*" else -1
        end = found.end()
    return end


def _end_of_escaped(sql, end):
    """A string with escapes goes on after a new line, with escapes."""
    while True:
        blanks = _BLANKS.match(sql, end)
        if "\n" not in blanks[0] and "\r" not in blanks[0]:
            return end
        more = _ESCAPED.match(sql, blanks.end())
        if more is None:
            return end
        end = more.end()


def _tokens(sql, dialect):
    """Yields the tokens of `sql` except blanks and comments."""
    if dialect == SQLITE:
        for found in _TOKEN.finditer(sql):
            if found.lastgroup != "space":
                yield _Token(found.lastgroup, found[0], found.end())
        return
    begin = 0
    while begin < len(sql):
        found = _POSTGRESQL_TOKEN.match(sql, begin)
        kind, end = found.lastgroup, found.end()
        if kind == "comment":
            end = _end_of_comment(sql, end)
        elif kind == "escaped":
            kind, end = "quoted", _end_of_escaped(sql, end)
        if kind not in ("space", "comment"):
            yield _Token(kind, sql[begin:end], end)
        begin = end


def _word_of(token):
    return upper(token.text) if token.kind == "word" else token.text


def _unquoted(text):
    """Returns the name that a token is."""
    quote = text[-1]
    if quote == "]":
        return text[1:-1]
    return text[1:-1].replace(2 * quote, quote) if quote in "'\"`" else text


def _lower(text):
    return re.sub("[A-Z]+", lambda found: found[0].lower(), text)


def _shape_of(head):
    """Returns a text with a word for each token: itself, "'" for a text in quotes, "." for another token."""
    others = {"quoted": "'"}
    return "".join(f"{_word_of(token) if token.kind == 'word' else others.get(token.kind, '.')};" for token in head)


# The states of sqlite3_complete(), and the next one for: ; other EXPLAIN CREATE TEMP TRIGGER END
_START, _NORMAL, _EXPLAIN, _CREATE, _TRIGGER, _SEMICOLON, _END = range(7)
_CLASSES = {"EXPLAIN": 2, "CREATE": 3, "TEMP": 4, "TEMPORARY": 4, "TRIGGER": 5, "END": 6}
_NEXT = (
    (_START, _NORMAL, _EXPLAIN, _CREATE, _NORMAL, _NORMAL, _NORMAL),
    (_START, _NORMAL, _NORMAL, _NORMAL, _NORMAL, _NORMAL, _NORMAL),
    (_START, _EXPLAIN, _NORMAL, _CREATE, _NORMAL, _NORMAL, _NORMAL),
    (_START, _NORMAL, _NORMAL, _NORMAL, _CREATE, _TRIGGER, _NORMAL),
    (_SEMICOLON, _TRIGGER, _TRIGGER, _TRIGGER, _TRIGGER, _TRIGGER, _TRIGGER),
    (_SEMICOLON, _TRIGGER, _TRIGGER, _TRIGGER, _TRIGGER, _TRIGGER, _END),
    (_START, _TRIGGER, _TRIGGER, _TRIGGER, _TRIGGER, _TRIGGER, _TRIGGER),
)


class _SqliteEnd:
    """Finds the semicolon that ends a statement. A trigger has semicolons within it."""

    def __init__(self):
        self.head, self.state = [], _START

    def take(self, token):
        """Returns True if the statement ends with this token."""
        if token.kind == "end":
            self.state = _NEXT[self.state][0]
            return self.state == _START
        self.state = _NEXT[self.state][_CLASSES.get(upper(token.text), 1) if token.kind == "word" else 1]
        if len(self.head) < _HEAD_LENGTH:
            self.head.append(token)
        return False


class _PostgresqlEnd:
    """The same. There are semicolons in the body of a function, BEGIN ATOMIC statement; ... END, and in parentheses."""

    def __init__(self):
        self.head, self.previous = [], ""
        self.depth, self.in_body = 0, False

    def take(self, token):
        word = _word_of(token)
        previous, self.previous = self.previous, word
        if token.kind == "end":
            return self.depth == 0 and not self.in_body
        if len(self.head) < _HEAD_LENGTH:
            self.head.append(token)
        if word == "(":
            self.depth += 1
        elif word == ")":
            self.depth = max(self.depth - 1, 0)
        if self.in_body:
            if word == "END" and previous in (";", "ATOMIC"):
                self.in_body = False
        elif word == "ATOMIC" and previous == "BEGIN" and _word_of(self.head[0]) == "CREATE":
            self.in_body = True
        return False


def _end_finder(dialect):
    return _SqliteEnd() if dialect == SQLITE else _PostgresqlEnd()


class Control(namedtuple("Control", "verb level name key")):
    """A statement about transactions.

    verb: BEGIN, COMMIT, ROLLBACK, SAVEPOINT, RELEASE or TO, for ROLLBACK TO; level: of BEGIN, such as IMMEDIATE, or None;
    name: of the savepoint, or None; key: the same, but equal for names that are equal to the database.
    """

    __slots__ = ()

    @classmethod
    def of(cls, head, dialect):
        """Returns the Control that a statement with these tokens is. None: it is something else, or an error."""
        shape = _shape_of(head)
        found = _CONTROL[dialect].match(shape)
        if found is None:
            return None
        verb = found["to"] or shape.partition(";")[0].replace("END", "COMMIT")
        if found["name"] is None:
            return cls(verb, found["level"], None, None)
        token = head[shape.count(";", 0, found.start("name"))]
        name = _unquoted(token.text)
        return cls(verb, None, name, name if token.kind == "quoted" and dialect == POSTGRESQL else _lower(name))


class Pragma(namedtuple("Pragma", "name value")):
    """A PRAGMA. name: in lower case, without that of a database; value: the first token of its value, or None."""

    __slots__ = ()

    @classmethod
    def of(cls, head):
        """Returns the Pragma that a statement with these tokens is, or None."""
        if len(head) < 2 or _word_of(head[0]) != "PRAGMA":
            return None
        at = 3 if len(head) > 3 and head[2].text == "." else 1
        value = head[at + 2].text if len(head) > at + 2 else None
        if value in ("-", "+") and len(head) > at + 3:
            value += head[at + 3].text
        return cls(_lower(_unquoted(head[at].text)), value)


class Analysis(namedtuple("Analysis", "verb control pragma names text is_dml returns has_more writes_within needs_pin")):
    """The properties of one statement.

    verb: the first word, or after WITH that of the statement itself, None if there is nothing to run; control: its Control
    if it is about transactions, or None; pragma: its Pragma, or None; names: for each parameter its name without prefix, or
    None; text: the SQL without the part after its semicolon; is_dml: it begins with INSERT, UPDATE, DELETE or REPLACE, so
    that sqlite3 begins a transaction before it; returns: it has a RETURNING clause; has_more: another statement follows;
    writes_within: it has a part in parentheses that writes, as PostgreSQL permits after WITH; needs_pin: SQLite
    needs a connection for it that other programs do not share, because it creates something in its schema temp, or makes a
    setting.
    """

    __slots__ = ()

    @property
    def writes_rows(self):
        """It is INSERT, UPDATE, DELETE or REPLACE, also after WITH."""
        return self.verb in WRITES

    @property
    def reads(self):
        """It changes nothing."""
        if self.pragma is not None and self.pragma.value is not None:
            return self.pragma.name not in _NUMBERS
        return self.verb in _READS and not self.writes_within


# Of a parameter "?NNN" that is counted. VariablesMax= is lower, and the library or the service says so.
_NUMBER_MAX = 250_000


class _Parameters:
    """Numbers parameters as SQLite does."""

    def __init__(self, dialect):
        self.dialect = dialect
        self.names, self.numbers = [], {}

    def add(self, text):
        """Returns the parameter's number."""
        if text == "?":
            self.names.append(None)
            return len(self.names)
        is_number = text[0] == "?" or (self.dialect == POSTGRESQL and text[1:].isdecimal())
        number = int(text[1:]) if is_number else self.numbers.setdefault(text, len(self.names) + 1)
        if number > _NUMBER_MAX:
            return number
        self.names += [None] * (number - len(self.names))
        if number > 0 and self.names[number - 1] is None:  # the first name stays
            self.names[number - 1] = text[1:]
        return number


def _makes_temp_or_attaches(head):
    words = [_lower(_unquoted(token.text)) for token in head]
    if words[:1] == ["explain"]:
        del words[: 3 if words[1:3] == ["query", "plan"] else 1]
    if words[2:5] == ["if", "not", "exists"]:
        del words[2:5]
    makes_temp = words[:1] == ["create"] and (words[1:2] in (["temp"], ["temporary"]) or words[2:4] == ["temp", "."])
    return makes_temp or words[:1] == ["attach"]


def _needs_pin(head, pragma):
    sets = pragma is not None and pragma.value is not None and pragma.name in _PIN_SETTINGS
    return sets or _makes_temp_or_attaches(head)


def analyse(sql, dialect):
    """Returns the Analysis of the first statement in `sql`."""
    end, parameters, verb = _end_finder(dialect), _Parameters(dialect), ""
    depth, previous, text_size = 0, "", len(sql)
    returns = has_more = is_over = writes_within = False
    for token in _tokens(sql, dialect):
        kind, text, _ = token
        if is_over:
            has_more = True
            break
        if kind == "end":
            if end.take(token) and end.head:
                is_over, text_size = True, token.end
            previous = text
            continue
        end.take(token)
        if kind == "word":
            word = upper(text)
            if depth == 0 and (not verb or (verb == "WITH" and word in _VERBS)) and previous != ".":
                # In SQLite REPLACE may be a name of the WITH clause, after which the statement follows a parenthesis.
                if not verb or dialect == POSTGRESQL or previous == ")":
                    verb = word
            returns = returns or (depth == 0 and word == "RETURNING" and verb in WRITES)
            writes_within = writes_within or (previous == "(" and word in _WITHIN)
        elif kind == "parameter":
            parameters.add(text)
        elif text == "(":
            depth += 1
        elif text == ")":
            depth -= 1
        previous = text
    head = end.head
    pragma = Pragma.of(head)
    return Analysis(
        verb if head else None,
        Control.of(head, dialect),
        pragma,
        tuple(parameters.names),
        sql[:text_size],
        bool(head) and _word_of(head[0]) in WRITES,
        returns,
        has_more,
        writes_within,
        _needs_pin(head, pragma),
    )


def literal(value):
    """Returns a value as sqlite3_expanded_sql() writes it."""
    if value is None or value != value:
        return "NULL"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        if value in (math.inf, -math.inf):
            return "Inf" if value > 0 else "-Inf"
        mantissa, e, exponent = f"{value or 0.0:.15g}".partition("e")  # SQLite has no -0.0
        return mantissa + ("" if "." in mantissa else ".0") + e + exponent
    if isinstance(value, str):
        return "'" + value.partition("\0")[0].replace("'", "''") + "'"
    return f"x'{bytes(value).hex()}'"


def expand(sql, dialect, literals):
    """Returns SQL with literals in the place of its parameters."""
    parts, begin, parameters = [], 0, _Parameters(dialect)
    for kind, text, end in _tokens(sql, dialect):
        if kind == "parameter":
            parts += [sql[begin : end - len(text)], literals[parameters.add(text) - 1]]
            begin = end
    return "".join(parts) + sql[begin:]


def split(script, dialect):
    """Returns the statements of a script, each with its semicolon."""
    statements, begin, end = [], 0, _end_finder(dialect)
    for token in _tokens(script, dialect):
        if not end.take(token):
            continue
        if end.head:
            statements.append(script[begin : token.end])
        begin, end = token.end, _end_finder(dialect)
    if end.head:
        statements.append(script[begin:])
    return statements


# sqlite3_complete() has tokens of its own: it knows no parameters and no numbers, and of a quote that is doubled two texts.
_COMPLETE_TOKEN = re.compile(
    rf"""(?P<space> [ \t\n\f\r]+ | --[^\n]* | /\*.*?\*/ )
      | (?P<quoted> '[^']*' | "[^"]*" | `[^`]*` | \[[^\]]*\] )
      | (?P<open> ['"`\[] | /\* )
      | (?P<word> {_ID} )
      | (?P<end> ; )
      | (?P<other> . )""",
    re.X | re.S,
)


def complete_statement(statement):
    """Return True if the string contains one or more complete SQL statements: a semicolon ends it, outside of a trigger."""
    end, is_complete = _SqliteEnd(), False
    for found in _COMPLETE_TOKEN.finditer(statement):
        if found.lastgroup == "open":
            return False
        if found.lastgroup != "space":
            is_complete = end.take(_Token(found.lastgroup, found[0], found.end()))
    return is_complete
