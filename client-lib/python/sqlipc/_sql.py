# SPDX-License-Identifier: LGPL-2.1-or-later
"""Looks at SQL without compiling it: its verb, its parameters, and the ends of its statements."""

import re
from collections import namedtuple

_TOKEN = re.compile(
    r"""(?P<space> \s+ | --[^\n]* | /\*.*?(?:\*/|\Z) )
      | (?P<quoted> '(?:[^']|'')*(?:'|\Z) | "(?:[^"]|"")*(?:"|\Z) | `(?:[^`]|``)*(?:`|\Z) | \[[^\]]*(?:\]|\Z) )
      | (?P<parameter> \?\d* | [:@$][\w$]+(?:::[\w$]+)*(?:\([^)\s]*\))? )
      | (?P<word> [^\W\d][\w$]* )
      | (?P<number> \d[\w.]* )
      | (?P<end> ; )
      | (?P<other> . )""",
    re.X | re.S,
)
WRITES = frozenset(("INSERT", "UPDATE", "DELETE", "REPLACE"))
_VERBS = WRITES | {"SELECT", "VALUES"}
_READS = frozenset(("SELECT", "VALUES", "EXPLAIN", "PRAGMA", ""))


class Analysis(namedtuple("Analysis", "words verb names returns has_more")):
    """The properties of one statement.

    words: its first four words, in upper case; verb: the first word, or after WITH that of the statement itself; names: for
    each parameter its name without prefix, or None; returns: it has a RETURNING clause; has_more: another statement follows.
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
    def reads(self):
        """It changes nothing."""
        return self.verb in _READS


class _Parameters:
    """Numbers parameters as SQLite does."""

    def __init__(self):
        self.names, self.numbers = [], {}

    def add(self, text):
        if text == "?":
            self.names.append(None)
            return
        number = int(text[1:]) if text[0] == "?" else self.numbers.setdefault(text, len(self.names) + 1)
        if number > 32766:  # SQLite's limit, which the service reports
            return
        self.names += [None] * (number - len(self.names))
        if number > 0:
            self.names[number - 1] = text[1:]


def analyse(sql):
    """Returns the Analysis of the first statement in `sql`."""
    words, parameters, verb = [], _Parameters(), ""
    depth, previous = 0, ""
    returns = has_more = is_over = False
    for token in _TOKEN.finditer(sql):
        kind, text = token.lastgroup, token[0]
        if kind == "space":
            continue
        if kind == "end":
            is_over = bool(words) and (not _is_trigger(words[:3]) or previous.upper() == "END")
            previous = text
            continue
        if is_over:
            has_more = True
            break
        if kind == "word":
            word = text.upper()
            if len(words) < 4:
                words.append(word)
            if depth == 0 and (not verb or (verb == "WITH" and word in _VERBS)) and previous != ".":
                verb = word
            returns = returns or (depth == 0 and word == "RETURNING" and verb in WRITES)
        elif kind == "parameter":
            parameters.add(text)
        elif text == "(":
            depth += 1
        elif text == ")":
            depth -= 1
        elif not words and len(words) < 4:
            words.append(text)
        previous = text
    return Analysis(tuple(words), verb, tuple(parameters.names), returns, has_more)


def split(script):
    """Yields the statements of a script, each with its semicolon. A trigger has semicolons within it."""
    begin, words, last = 0, [], ""
    for token in _TOKEN.finditer(script):
        kind = token.lastgroup
        if kind == "space":
            continue
        if kind != "end":
            if kind == "word" and len(words) < 3:
                words.append(token[0].upper())
            elif not words:
                words.append(token[0])
            last = token[0].upper() if kind == "word" else (";" if last == ";" else "")
            continue
        if _is_trigger(words) and last != "END":
            last = ";"
            continue
        if words:
            yield script[begin : token.end()]
        begin, words, last = token.end(), [], ""
    if words:
        yield script[begin:]


def _is_trigger(words):
    if words[:1] == ["EXPLAIN"]:
        words = words[1:]
    return words[:2] == ["CREATE", "TRIGGER"] or (
        words[:1] == ["CREATE"] and words[1:3] in (["TEMP", "TRIGGER"], ["TEMPORARY", "TRIGGER"])
    )


def complete_statement(statement):
    """Return True if the string contains one or more complete SQL statements: a semicolon ends it, outside of a trigger."""
    last, is_complete = None, False
    for last in split(statement):
        pass
    if last is None:
        return any(token.lastgroup == "end" for token in _TOKEN.finditer(statement))
    tokens = [token for token in _TOKEN.finditer(last) if token.lastgroup != "space"]
    is_complete = tokens[-1].lastgroup == "end"
    words = [token[0].upper() for token in tokens[:3]]
    if is_complete and _is_trigger(words):
        is_complete = len(tokens) > 1 and tokens[-2][0].upper() == "END"
    # A quote or a comment that does not end goes to the end of the text, so the last token is no semicolon.
    return is_complete
