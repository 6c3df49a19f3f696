# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writing as ordinary users, in the sandbox of the real unit: to a database of "sqlipcctl create" in the state directory,
and to one in another folder, for which the unit needs ReadWritePaths=."""
import pathlib
import shutil
import sqlite3

from machine import (
    DATABASES, STATE, UNIT, command, done, dropped, equal, published, query, refused, reload, stop, test, true, written,
)

INSERT = "INSERT INTO note(t) VALUES('by {}') RETURNING id"
WRITERS = ("AllowUsers=*", "Mode=read-write", "WriteUsers=sqlipc-member")


@test
def created_in_the_state_directory():
    """create: the named user writes, others read and cannot write; the rows are there after a restart"""
    with written("/run/schema.sql", "CREATE TABLE note(id INTEGER PRIMARY KEY, t TEXT);"):
        options = ("--allow-user=*", "--write-user=sqlipc-member")
        done("sqlipcctl", "create", "notes", "--schema=/run/schema.sql", *options)
    reload()
    try:
        equal(query(INSERT.format("member"), "notes", "sqlipc-member"), "1\n", "the member's id")
        equal(query(INSERT.format("root"), "notes", "root"), "2\n", "root's id")
        for user in ("sqlipc-reader", "sqlipc-other"):
            said = query(INSERT.format(user), "notes", user, run=refused)
            true("read" in said, f"{user} is told: {said}")
        done("systemctl", "restart", UNIT)
        equal(query("SELECT t FROM note", "notes"), '"by member"\n"by root"\n', "rows that a reader sees")
        equal(pathlib.Path(STATE / "databases").owner(), "sqlipc", "owner of the folder")
        equal([line for line in command("sqlipcctl", "check").stdout.splitlines() if line.split(": ")[1:2] == ["notes"]], [],
              "findings of check")  # fmt: skip
    finally:
        (DATABASES / "notes.conf").unlink()
        reload()
        shutil.rmtree(STATE / "databases")


@test
def in_another_folder():
    """A folder of the service's user elsewhere is read-only until a drop-in gives the unit ReadWritePaths="""
    folder = pathlib.Path("/srv/notes")
    folder.mkdir(mode=0o755)
    path = folder / "notes.sqlite"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE note(id INTEGER PRIMARY KEY, t TEXT)")
    db.close()
    for one in (folder, path):
        shutil.chown(one, "sqlipc", "sqlipc")
    with published("notes", path, *WRITERS):
        stop()
        found = command("sqlipcctl", "check").stdout
        true("ReadWritePaths=" in found, f"check says: {found}")
        _ = query(INSERT.format("member"), "notes", "sqlipc-member", run=refused)
        equal(query("SELECT count(*) FROM note", "notes", "sqlipc-member"), "0\n", "rows")
        with dropped(f"[Service]\nReadWritePaths={folder}\n"):
            equal(query(INSERT.format("member"), "notes", "sqlipc-member"), "1\n", "the member's id")
            true("ReadWritePaths=" not in command("sqlipcctl", "check").stdout, "check finds nothing")
    shutil.rmtree(folder)
