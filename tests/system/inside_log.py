# SPDX-License-Identifier: LGPL-2.1-or-later
"""The administrator's view: the status line, the journal's fields, the catalog's advice, and the log level."""
import json
import re

from machine import (
    CHINOOK, HOME, STATE, command, done, equal, published, query, refused, stop, test, true, uid, unit, wait_for,
)

EVENTS = dict(re.findall(r'X\((\w+), "([0-9a-f]{32})"', (HOME / "daemon/supervisor/base/log-events.h").read_text()))


def journal(event, *options):
    """Returns the journal entries of an event, the newest last."""
    lines = done("journalctl", "--sync") or done(
        "journalctl", "--no-pager", "--unit=sqlipcd.service", f"MESSAGE_ID={EVENTS[event]}", "--output=json", *options
    )
    return [json.loads(line) for line in lines.splitlines()]


@test
def status_line():
    """systemctl status shows the number of each kind of object"""
    query("SELECT 1")
    said = wait_for(lambda: unit("StatusText"), "a status line")
    true(re.search(r"\bdatabases?\b", said), said)

    def shown():  # it changes by the second, as long as something ends
        return unit("StatusText") in done("systemctl", "status", "--no-pager", "sqlipcd.service")

    wait_for(shown, "systemctl status shows it")


@test
def log_level():
    """systemctl service-log-level reads and sets the log level; SQL is logged only at debug"""
    query("SELECT 'never told'")
    equal(done("systemctl", "service-log-level", "sqlipcd.service").strip(), "info", "level")
    done("systemctl", "service-log-level", "sqlipcd.service", "debug")
    query("SELECT 'told at debug'")
    done("journalctl", "--sync")
    text = done("journalctl", "--no-pager", "--unit=sqlipcd.service")
    true("told at debug" in text and "never told" not in text, "SQL in the journal")
    refused("systemctl", "service-log-level", "sqlipcd.service", "nonsense")
    done("systemctl", "service-log-level", "sqlipcd.service", "info")


@test
def every_event_has_advice():
    """The installed catalog has an entry for every event"""
    done("journalctl", "--update-catalog")
    for event, number in EVENTS.items():
        said = command("journalctl", "--dump-catalog", number).stdout
        true(len(said.splitlines()) > 3, f"{event}: {said!r}")


@test
def fields_and_advice():
    """A corrupt file is logged with fields for programs and advice for people"""
    file = STATE / "broken.sqlite"
    file.write_bytes(b"SQLite format 3\0" + b"x" * 4080)
    with published("broken", file, "AllowUsers=*"):
        query("SELECT * FROM t", "broken", run=refused)
    file.unlink()
    entry = journal("DATABASE_CORRUPT")[-1]
    for field, value in {
        "SQLIPC_DATABASE": "broken",
        "SQLIPC_ERROR": "org.sqlipc1.Error.Corrupt",
        "PRIORITY": "3",
        "SYSLOG_IDENTIFIER": "sqlipcd",
    }.items():
        equal(entry.get(field), value, field)
    advice = done("journalctl", "--no-pager", "--catalog", f"MESSAGE_ID={EVENTS['DATABASE_CORRUPT']}")
    true("Database broken is damaged" in advice and "restore a backup" in advice, advice)


@test
def refusal_is_logged():
    """A refused call is logged with fields for the user and the database"""
    with published("shut", CHINOOK):
        query("SELECT 1", "shut", run=refused)
    entry = journal("ACCESS_DENIED")[-1]
    equal((entry["SQLIPC_DATABASE"], entry["SQLIPC_UID"]), ("shut", str(uid("sqlipc-reader"))), "fields")


@test
def start_is_logged():
    """A start of the service writes one entry"""
    stop()
    before = len(journal("STARTED"))
    query("SELECT 1")
    equal(len(journal("STARTED")), before + 1, "entries")
