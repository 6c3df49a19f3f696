#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Counts phrases that readers stumble over, in each room. The counts may only fall.

The test reads C comments, comments and docstrings of scripts, strings of several words, and all documents. If a room has
fewer phrases than NUMBERS says, the test fails, too: lower the number.

    test_phrases.py               the test
    test_phrases.py --list ROOM   the phrases of a room, with file and line
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/bus"))
from tap import diagnose, equal, run, test, true  # noqa: E402

BEFORE_WHO = "for by to of with from than as if and or but because after so".replace(" ", "|")
BEFORE_WHAT = "of for by to with from than as in at on behind beside after before but except and or".replace(" ", "|")
AFTER_WHERE = "there it that this they nothing none nobody no one neither not both all any the a an".replace(" ", "|")
AFTER_BEHIND = "comes? came lies? waits? follows? is are sent written put".replace(" ", "|")
# What to write instead, and the pattern.
PHRASES = {
    "name what does it, not a clause": r"(?:^|[.:;!] )(?:Who|Whoever|What|Whatever|Whether|Whom|Whose)\b[^?]*?[.;:]",
    "the process, the user or the peer, not who": rf"\b(?:{BEFORE_WHO}) who(?:m|ever)?\b|, who(?:m|ever) ",
    "a noun, not what": rf"\b(?:{BEFORE_WHAT}) what(?:ever)?\b",
    "if or when, not where": rf"\bwhere (?:{AFTER_WHERE})\b",
    "the process or the user, not nobody": r"\b(?:no|some|every|any)body\b",
    "is, not stands": r"\bstands?\b(?![- ](?:in|for|still)\b)",
    "after, not behind": rf"\b(?:{AFTER_BEHIND}) behind\b",
    "today's English": r"\b(?:oftener|seldom|lest|hither|thereof|whereof|wherein|hereby|came round|comes round|in vain)\b",
    "except, not but for": r"\b(?:but for|save for|all but|nothing but|none but)\b",
    "must or can, not is to be": r"\b(?:is|are|was|were) (?:not )?to be \w+ed\b|\b(?:is|are|was|were) to (?:be had|have)\b",
    "must, not shall": r"\bshall\b",
}

# Some are right as they are, such as "where" for a place; the others are not rewritten yet.
NUMBERS = {
    "daemon/supervisor": 3,
    "daemon/worker": 2,
    "client-lib": 1,
    "docs": 1,
    "docs/man": 7,
    "tools": 6,
    "tools/bench": 46,
    "tools/cli": 4,
    "tools/ctl": 1,
    "tests": 1,
    "tests/bus": 6,
    "tests/cli": 2,
    "tests/fuzz": 1,
    "tests/reliability": 7,
    "tests/system": 1,
    "tests/unit": 4,
}

ROOMS = {
    "daemon/configuration": ["daemon/configuration"],
    "daemon/supervisor": ["daemon/supervisor"],
    "daemon/worker": ["daemon/worker"],
    "daemon/protocol": ["daemon/protocol"],
    "client-lib": ["client-lib"],
    "dbus-interfaces": ["dbus-interfaces"],
    "systemd-units": ["systemd-units"],
    "docs": ["docs/*.md", "docs/design", "README.md", "NEWS"],
    "docs/man": ["docs/man", "docs/examples"],
    "tools": ["tools/*.*"],
    "tools/bench": ["tools/bench"],
    "tools/cli": ["tools/cli"],
    "tools/ctl": ["tools/ctl"],
    "tools/terminal": ["tools/terminal"],
    "tests": ["tests/*"],
    "tests/bus": ["tests/bus"],
    "tests/cli": ["tests/cli"],
    "tests/fuzz": ["tests/fuzz"],
    "tests/lint": ["tests/lint"],
    "tests/reliability": ["tests/reliability"],
    "tests/rigs": ["tests/rigs"],
    "tests/system": ["tests/system"],
    "tests/unit": ["tests/unit"],
}
DOCUMENTS = {".md", ".rst", ".xml", ""}
STRING = r'"(?:[^"\\\n]|\\.)*"'


def files_of(room):
    for pattern in ROOMS[room]:
        for path in sorted(ROOT.glob(pattern)):
            if path.is_dir() and pattern != "tests/*":
                yield from (p for p in sorted(path.rglob("*")) if p.is_file() and "__pycache__" not in p.parts)
            elif path.is_file():
                yield path


def pattern_of(path, text):
    """Where prose is in a file; None: it has none."""
    if path.suffix in {".c", ".h", ".sym", ".in"}:
        return rf"(?s:/\*.*?\*/)|(?:{STRING}\s*(?:PRI\w+\s*)?)+"
    if path.suffix in {".py", ".sh"} or text.startswith("#!"):
        return rf'(?s:""".*?""")|(?m:^\s*#.*(?:\n\s*#.*)*)|#.*|(?:{STRING}\s*)+'
    return r".+(?:\n.+)*" if path.suffix in DOCUMENTS else None


def prose_of(path):
    """(line, text) of each piece of prose."""
    text = path.read_text(errors="replace")
    pattern = pattern_of(path, text)
    for match in re.finditer(pattern, text) if pattern else ():
        yield text.count("\n", 0, match.start()) + 1, match[0]


def plain(piece):
    """The piece as one line, without the marks of a comment."""
    piece = re.sub(r'"\s*\n\s*"', "", piece)
    return re.sub(r"\s+", " ", re.sub(r"(?m)^\s*(?:/?\*+/?|#|>)\s?|\*/", " ", piece.strip('"'))).strip()


def found_in(room):
    for path in files_of(room):
        if path.name in ("test_phrases.py", "modules.md"):  # the index repeats sentences of the sources
            continue
        for line, piece in prose_of(path):
            text = plain(piece)
            if len(text.split()) < 3:
                continue
            for reason, pattern in PHRASES.items():
                for match in re.finditer(pattern, text):
                    yield path.relative_to(ROOT), line, reason, text[max(0, match.start() - 30) : match.end() + 30]


@test
def phrases():
    """The number of phrases that readers stumble over has not grown in any room"""
    counts = {room: sum(1 for _ in found_in(room)) for room in ROOMS}
    for room, number in counts.items():
        if number != NUMBERS.get(room, 0):
            diagnose(f"{room}: {number} phrases, NUMBERS has {NUMBERS.get(room, 0)}; --list {room} shows them")
    equal(counts, {room: NUMBERS.get(room, 0) for room in ROOMS}, "phrases")


@test
def examples():
    """The test finds typical phrases, and no phrase in plain sentences"""
    bad = (
        "Whether that was the SQL's fault its CPU time tells.",
        "What is wrong in a file leaves out its own database.",
        "a cursor that nobody asks wakes nobody",
        "looked at no oftener than every few milliseconds",
    )
    good = (
        "The worker keeps the channel until it is idle.",
        "What does it cost? See below.",
        "Users without access cannot tell that a database exists.",
    )
    for text in bad:
        true(any(re.search(pattern, text) for pattern in PHRASES.values()), f"not found: {text}")
    for text in good:
        true(not any(re.search(pattern, text) for pattern in PHRASES.values()), f"found: {text}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--list"]:
        for room in sys.argv[2:] or ROOMS:
            for path, line, reason, text in found_in(room):
                print(f"{path}:{line}: {reason}: {text}")
    else:
        run()
