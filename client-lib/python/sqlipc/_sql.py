# SPDX-License-Identifier: LGPL-2.1-or-later
"""Looks at SQL without compiling it: its verb, its parameters, and the ends of its statements.

Each function does so by the rules of a dialect. SQLITE: those of SQLite, and of rqlite. POSTGRESQL: those of PostgreSQL,
with the placeholders that the service replaces (sqlipc-postgresql(7)); it sets standard_conforming_strings.
"""

import re
from collections import namedtuple

SQLITE, POSTGRESQL = "sqlite", "postgresql"
# The first and the other letters of a name, without a range up to \U0010ffff, which takes 100 ms to compile.
_LETTER = r"[^\x00-@\[-^`{-\x7f]"
_IN_NAME = r"[^\x00-/:-@\[-^`{-\x7f]"
_NAME = rf"{_LETTER}(?:{_IN_NAME}|\$)*"
_TOKEN = re.compile(
    rf"""(?P<space> [ \t\n\f\r]+ | --[^\n]* | /\*.*?(?:\*/|\Z) )
      | (?P<quoted> '(?:[^']|'')*(?:'|\Z) | "(?:[^"]|"")*(?:"|\Z) | `(?:[^`]|``)*(?:`|\Z) | \[[^\]]*(?:\]|\Z) )
      | (?P<parameter> \?[0-9]* | [:@$][\w$]+(?:::[\w$]+)*(?:\([^)\s]*\))? )
      | (?P<word> {_NAME} )
      | (?P<number> [0-9][\w.]* )
      | (?P<end> ; )
      | (?P<other> . )""",
    re.X | re.S,
)
_POSTGRESQL_TOKEN = re.compile(
    rf"""(?P<space> [ \t\n\v\f\r]+ | --[^\n\r]* )
      | (?P<comment> /\* )
      | (?P<escaped> [eE]'(?:[^'\\]|''|\\.)*(?:'|\\?\Z) )
      | (?P<quoted> '(?:[^']|'')*(?:'|\Z) | "(?:[^"]|"")*(?:"|\Z)
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
_ESCAPED = re.compile(r"'(?:[^'\\]|''|\\.)*(?:'|\\?\Z)", re.S)
WRITES = frozenset(("INSERT", "UPDATE", "DELETE", "REPLACE"))
_VERBS = WRITES | {"SELECT", "VALUES"}
_WITHIN = WRITES - {"REPLACE"}  # which is also a function
_READS = frozenset(("SELECT", "VALUES", "EXPLAIN", "PRAGMA", ""))
_NUMBERS = frozenset(("USER_VERSION", "APPLICATION_ID"))  # which a PRAGMA may set in the file


_Token = namedtuple("_Token", "kind text end")


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
        self.words, self.state = [], _START

    def take(self, token):
        """Returns True if the statement ends with this token."""
        word = token.text.upper() if token.kind == "word" else token.text
        if token.kind == "end":
            self.state = _NEXT[self.state][0]
            return self.state == _START
        self.state = _NEXT[self.state][_CLASSES.get(word, 1) if token.kind == "word" else 1]
        if len(self.words) < 5:
            self.words.append(word)
        return False


class _PostgresqlEnd:
    """The same. There are semicolons in the body of a function, BEGIN ATOMIC statement; ... END, and in parentheses."""

    def __init__(self):
        self.words, self.previous = [], ""
        self.depth, self.in_body = 0, False

    def take(self, token):
        word = token.text.upper() if token.kind == "word" else token.text
        previous, self.previous = self.previous, word
        if token.kind == "end":
            return self.depth == 0 and not self.in_body
        if len(self.words) < 5:
            self.words.append(word)
        if word == "(":
            self.depth += 1
        elif word == ")":
            self.depth = max(self.depth - 1, 0)
        if self.in_body:
            if word == "END" and previous in (";", "ATOMIC"):
                self.in_body = False
        elif word == "ATOMIC" and previous == "BEGIN" and self.words[0] == "CREATE":
            self.in_body = True
        return False


def _end_finder(dialect):
    return _SqliteEnd() if dialect == SQLITE else _PostgresqlEnd()


class Analysis(namedtuple("Analysis", "words verb names returns has_more writes_within")):
    """The properties of one statement.

    words: its first five words, in upper case; verb: the first word, or after WITH that of the statement itself; names: for
    each parameter its name without prefix, or None; returns: it has a RETURNING clause; has_more: another statement follows;
    writes_within: it has a part in parentheses that writes, as PostgreSQL permits after WITH.
    """

    __slots__ = ()

    @property
    def is_dml(self):
        """It begins with INSERT, UPDATE, DELETE or REPLACE: sqlite3 begins a transaction before it."""
        return bool(self.words) and self.words[0] in WRITES

    @property
    def writes_rows(self):
        """It is INSERT, UPDATE, DELETE or REPLACE, also after WITH."""
        return self.verb in WRITES

    @property
    def sets_pragma(self):
        """It is a PRAGMA with a value."""
        return self.verb == "PRAGMA" and len(self.words) > (4 if "." in self.words[2:3] else 2)

    @property
    def reads(self):
        """It changes nothing."""
        if self.sets_pragma:
            return _NUMBERS.isdisjoint(self.words)
        return self.verb in _READS and not self.writes_within


class _Parameters:
    """Numbers parameters as SQLite does."""

    def __init__(self, dialect):
        self.dialect = dialect
        self.names, self.numbers = [], {}

    def add(self, text):
        if text == "?":
            self.names.append(None)
            return
        is_number = text[0] == "?" or (self.dialect == POSTGRESQL and text[1:].isdecimal())
        number = int(text[1:]) if is_number else self.numbers.setdefault(text, len(self.names) + 1)
        if number > 32766:  # SQLite's limit, which the service reports
            return
        self.names += [None] * (number - len(self.names))
        if number > 0:
            self.names[number - 1] = text[1:]


def analyse(sql, dialect):
    """Returns the Analysis of the first statement in `sql`."""
    end, parameters, verb = _end_finder(dialect), _Parameters(dialect), ""
    depth, previous = 0, ""
    returns = has_more = is_over = writes_within = False
    for token in _tokens(sql, dialect):
        kind, text, _ = token
        if kind == "end":
            is_over = is_over or (end.take(token) and bool(end.words))
            previous = text
            continue
        if is_over:
            has_more = True
            break
        end.take(token)
        if kind == "word":
            word = text.upper()
            if depth == 0 and (not verb or (verb == "WITH" and word in _VERBS)) and previous != ".":
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
    return Analysis(tuple(end.words), verb, tuple(parameters.names), returns, has_more, writes_within)


def split(script, dialect):
    """Returns the statements of a script, each with its semicolon."""
    statements, begin, end = [], 0, _end_finder(dialect)
    for token in _tokens(script, dialect):
        if not end.take(token):
            continue
        if end.words:
            statements.append(script[begin : token.end])
        begin, end = token.end, _end_finder(dialect)
    if end.words:
        statements.append(script[begin:])
    return statements


def complete_statement(statement):
    """Return True if the string contains one or more complete SQL statements: a semicolon ends it, outside of a trigger."""
    # A quote that does not end goes to the end of the text, so the last token is no semicolon.
    end, is_complete = _SqliteEnd(), False
    for token in _tokens(statement, SQLITE):
        is_complete = end.take(token)
    *_, last = "", *(found[0] for found in _TOKEN.finditer(statement))
    is_open = last[:2] == "/*" and (len(last) < 4 or last[-2:] != "*/")
    return is_complete and not is_open
