#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes a database of the packages installed on this Debian machine, from dpkg's own files: a real one to try queries on.

    packages-database.py FILE

    package     name, version, architecture, section, priority, installed_size (KiB), maintainer, homepage, summary,
                description
    dependency  package, depends_on, version_constraint (NULL: any), kind (Depends, Pre-Depends, Recommends ...),
                alternative (of several that do, from 0)
    file        package, path

FILE must not exist. Only what is installed is in it; dpkg is not called.
"""

import os
import pathlib
import re
import sqlite3
import sys

DPKG = pathlib.Path("/var/lib/dpkg")
KINDS = ("Pre-Depends", "Depends", "Recommends", "Suggests", "Enhances", "Breaks", "Conflicts", "Replaces", "Provides")

SCHEMA = """
CREATE TABLE package (
    name TEXT NOT NULL, version TEXT NOT NULL, architecture TEXT NOT NULL, section TEXT, priority TEXT,
    installed_size INTEGER, maintainer TEXT, homepage TEXT, summary TEXT, description TEXT,
    PRIMARY KEY (name, architecture)
);
CREATE TABLE dependency (
    package TEXT NOT NULL, depends_on TEXT NOT NULL, version_constraint TEXT, kind TEXT NOT NULL,
    alternative INTEGER NOT NULL
);
CREATE TABLE file (package TEXT NOT NULL, path TEXT NOT NULL);
"""

INDICES = """
CREATE INDEX dependency_package ON dependency (package);
CREATE INDEX dependency_depends_on ON dependency (depends_on);
CREATE INDEX file_package ON file (package);
CREATE INDEX file_path ON file (path);
"""


def stanzas(text):
    """Yields a dict of fields for each package of a control file; lines of a folded field keep their breaks."""
    for block in re.split(r"\n\n+", text.strip("\n")):
        fields, name = {}, None
        for line in block.split("\n"):
            if line[:1] in (" ", "\t") and name:
                fields[name] += "\n" + line[1:]
            elif ":" in line:
                name, _, value = line.partition(":")
                fields[name] = value.strip()
        if fields:
            yield fields


def installed():
    text = (DPKG / "status").read_text(encoding="utf-8", errors="surrogateescape")
    return [fields for fields in stanzas(text) if fields.get("Status", "").endswith(" installed")]


def package_row(fields):
    summary, _, description = fields.get("Description", "").partition("\n")
    size = fields.get("Installed-Size")
    # A line with a dot alone is dpkg's way to write an empty one.
    description = re.sub(r"^\.$", "", description, flags=re.MULTILINE)
    return (
        fields["Package"], fields["Version"], fields["Architecture"], fields.get("Section"), fields.get("Priority"),
        int(size) if size else None, fields.get("Maintainer"), fields.get("Homepage"), summary or None, description or None,
    )


def dependency_rows(fields):
    """`a (>= 1) | b:any, c` is three rows: a and b are alternatives 0 and 1, c stands alone."""
    for kind in KINDS:
        for group in filter(None, re.split(r",\s*", fields.get(kind, "").replace("\n", " ").strip())):
            for alternative, term in enumerate(group.split("|")):
                match = re.match(r"\s*([^\s(:\[]+)(?::\S+)?\s*(?:\(\s*([^)]*?)\s*\))?", term)
                if match:
                    yield fields["Package"], match[1], match[2], kind, alternative


def file_rows(fields):
    info, name = DPKG / "info", fields["Package"]
    for path in (info / f"{name}:{fields['Architecture']}.list", info / f"{name}.list"):
        if path.exists():
            with open(path, encoding="utf-8", errors="surrogateescape") as lines:
                return [(name, line.rstrip("\n")) for line in lines if line != "/.\n"]
    return []


def text_of(row):
    """A path may be any bytes; those that are no UTF-8 are shown, as nothing else can be stored as text."""

    def clean(value):
        if not isinstance(value, str):
            return value
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")

    return tuple(map(clean, row))


def fill(database):
    database.executescript(SCHEMA)
    packages = installed()
    for fields in packages:
        database.execute(f"INSERT INTO package VALUES ({', '.join('?' * 10)})", text_of(package_row(fields)))
        database.executemany("INSERT INTO dependency VALUES (?, ?, ?, ?, ?)", map(text_of, dependency_rows(fields)))
        database.executemany("INSERT INTO file VALUES (?, ?)", map(text_of, file_rows(fields)))
    database.executescript(INDICES)
    database.execute("ANALYZE")
    database.commit()


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    if os.path.exists(sys.argv[1]):
        sys.exit(f"packages-database.py: {sys.argv[1]} exists")
    database = sqlite3.connect(sys.argv[1])
    fill(database)
    count = lambda table: database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    print(f"{count('package')} packages, {count('dependency')} dependencies, {count('file')} files")
    database.close()


if __name__ == "__main__":
    main()
