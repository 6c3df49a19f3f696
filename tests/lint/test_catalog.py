#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each event of the log has an entry in the journal's catalog and the reverse, and no text names a field that is not set.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/bus"))
from tap import Skip, equal, run, test, true  # noqa: E402

SUPERVISOR = ROOT / "daemon/supervisor"
CATALOG = ROOT / "systemd-units/sqlipc.catalog"
SOURCES = {path: path.read_text() for path in SUPERVISOR.rglob("*.c")}
LOG = SOURCES.pop(SUPERVISOR / "base/log.c")
EVENTS = dict(re.findall(r'X\(([A-Z_]+), "(\w+)", LOG_[A-Z]+\)', (SUPERVISOR / "base/log-events.h").read_text()))


class Entry:
    def __init__(self, text):
        head, _, self.text = text.partition("\n\n")
        self.id, *lines = head.split("\n")
        self.head = dict(line.split(": ", 1) for line in lines)
        self.fields = set(re.findall(r"@(\w+)@", text))


ENTRIES = {entry.id: entry for entry in map(Entry, re.split(r"^-- ", CATALOG.read_text(), flags=re.M)[1:])}
# Member of LogFields -> field of the journal; SQLIPC_ROWS comes with the time.
MEMBERS = {member: field for field, member in re.findall(r'"(SQLIPC_\w+)=[^;]*?f->(\w+)', LOG)}


def initialised(text):
    """Members that an initializer or assignments in `text` set."""
    members = set(re.findall(r"\.(\w+) = ", text))
    return members - set(re.findall(r"\.(\w+) = NULL;", text))


def handed_over(header):
    """Members of LogFields that all users of a module set in the fields that they pass to it."""
    users = [source for source in SOURCES.values() if f'/{header}"' in source]
    found = [set(re.findall(r"\.(\w+) = ", fields)) for source in users
             for fields in re.findall(r"(?:\.fields|LogFields fields) = \{(.*?)\n\s*\}[,;]", source, re.S)]
    true(found, f"no user of {header} passes fields")
    return set.intersection(*found)


def members_of_call(path, position):
    """Members of LogFields that the call at `position` passes."""
    source = SOURCES[path]
    call = source[position : source.index(";", position)]
    if "&fields" not in call:
        return initialised(call)
    function = source[max(source.rfind("\n}\n", 0, position), 0) : position]
    if re.search(r"LogFields fields = (?:\*about|facts->fields);", function):
        emptied = set(re.findall(r"\.(\w+) = NULL;", function))
        return initialised(function) | handed_over(path.with_suffix(".h").name) - emptied
    if "fields_of(" in function:
        function = re.search(r"static LogFields fields_of\(.*?\n}\n", source, re.S).group() + function
    return initialised(function)


@test
def entries():
    """Every event has an entry in the catalog, every entry an event, under an id of its own"""
    true(len(EVENTS) > 10, f"only {len(EVENTS)} events found")
    equal(len(set(EVENTS.values())), len(EVENTS), "different ids")
    equal(sorted(ENTRIES), sorted(EVENTS.values()), "ids in the catalog")
    equal([i for i in ENTRIES if not re.fullmatch(r"[0-9a-f]{32}", i)], [], "ids that are none")


@test
def advice():
    """Every entry has a subject, its origin, a page of the manual that exists, and some sentences"""
    pages = {path.name.removesuffix(".rst") for path in (ROOT / "docs/man").glob("*.rst")} | {"polkit.8"}
    for entry in ENTRIES.values():
        equal(sorted(entry.head), ["Defined-By", "Documentation", "Subject"], f"lines of {entry.id}")
        equal(entry.head["Defined-By"], "sqlipc", "Defined-By")
        named = re.findall(r"man:([\w.-]+)\((\d)\)", entry.head["Documentation"])
        equal([f"{name}.{n}" for name, n in named if f"{name}.{n}" not in pages], [], "pages that are nowhere")
        true(named, f"{entry.id} names no page")
        true(len(re.findall(r"[.?]\s", entry.text)) >= 2, f"{entry.id} says too little: {entry.text!r}")


@test
def logged():
    """Every event is logged somewhere, with the fields that its entry names"""
    true(len(MEMBERS) > 6, f"only {len(MEMBERS)} fields found")
    for event, message_id in EVENTS.items():
        calls = [
            (path, match.start())
            for path, source in SOURCES.items()
            for match in re.finditer(rf"\bLOG_EVENT_{event}\b", source)
        ]
        true(calls, f"{event} is never logged")
        for path, position in calls:
            fields = {MEMBERS[m] for m in members_of_call(path, position) & MEMBERS.keys()}
            missing = ENTRIES[message_id].fields - fields
            equal(sorted(missing), [], f"fields of {event} that {path.name} does not set")


@test
def journalctl_takes_it():
    """journalctl compiles the catalog, and shows each entry"""
    if not shutil.which("journalctl"):
        raise Skip("there is no journalctl")
    with tempfile.TemporaryDirectory(prefix="sqlipc-catalog-") as folder:
        root = pathlib.Path(folder)
        (root / "usr/lib/systemd/catalog").mkdir(parents=True)
        (root / "var/lib/systemd/catalog").mkdir(parents=True)
        shutil.copy(CATALOG, root / "usr/lib/systemd/catalog")
        command = ["journalctl", f"--root={root}"]
        done = subprocess.run([*command, "--update-catalog"], capture_output=True, text=True, check=False)
        equal((done.returncode, done.stderr), (0, ""), "journalctl --update-catalog")
        shown = subprocess.run([*command, "--list-catalog"], capture_output=True, text=True, check=True).stdout
        equal(sorted(line.split()[0] for line in shown.splitlines()), sorted(EVENTS.values()), "entries")


sys.exit(run())
