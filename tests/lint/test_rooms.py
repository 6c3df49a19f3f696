#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Which room may include which, and what the programs link: the boundaries between rooms (docs/ARCHITECTURE.md).

usage: test_rooms.py BUILD-ROOT
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/bus"))
from tap import equal, run, test, true  # noqa: E402

BUILD = pathlib.Path(sys.argv.pop(1))
SQLIPCD, WORKER, LIBRARY = (
    BUILD / path for path in ("daemon/supervisor/sqlipcd", "daemon/worker/sqlipc-worker", "client-lib/libsqlipc.so")
)

CONTRACT = {p.name for p in (ROOT / "dbus-interfaces").glob("*.h")}
LIBC = re.compile(r"^(?!sqlite3|glib|gio|sqlipc|systemd/|seccomp|libsmartcols)[a-z0-9_/-]+\.h$")


def sources(*rooms):
    for room in rooms:
        for path in sorted((ROOT / room).rglob("*.[ch]")):
            yield path


def includes(path):
    return re.findall(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', path.read_text(), re.M)


def own(room):
    return {p.name for p in sources(room)}


def violations(paths, allowed):
    return [f"{p.relative_to(ROOT)} includes {name}" for p in paths for kind, name in includes(p) if not allowed(kind, name)]


def headers(*rooms):
    """Names of the headers in those rooms."""
    return {p.name for room in rooms for p in (ROOT / room).rglob("*.h")}


@test
def contract_includes_libc_alone():
    """The contract includes libc and itself"""
    equal(
        violations(sources("dbus-interfaces"), lambda kind, name: name in CONTRACT if kind == '"' else LIBC.match(name)),
        [],
        "violations",
    )


@test
def worker_knows_no_bus():
    """Worker files include neither sd-bus nor anything of the supervisor or the library"""
    foreign = headers("daemon/supervisor", "client-lib") - own("daemon/worker")

    def allowed(kind, name):
        return (
            not name.startswith(("systemd/", "gio/", "glib"))
            and not (kind == '"' and name in foreign)
            and "supervisor" not in name
        )

    paths = list(sources("daemon/worker"))
    true(paths, "no file found")
    equal(violations(paths, allowed), [], "violations")


@test
def shell_knows_the_pragmas():
    """The shell completes those PRAGMAs that the worker allows"""
    allowed = re.search(r"\} pragmas\[\] = \{(.*?)\n\};", (ROOT / "daemon/worker/access.c").read_text(), re.S)[1]
    completed = re.search(r"pragmas\[\] = \{(.*?)\n +\};", (ROOT / "tools/cli/sql-keyword.c").read_text(), re.S)[1]
    names = re.findall(r'"(\w+)"', allowed)
    true(len(names) > 20, f"only {names} are found")
    equal(re.findall(r'"(\w+)"', completed), names, "PRAGMAs of the shell")


@test
def supervisor_knows_no_sqlite():
    """Supervisor files include neither SQLite nor anything of the worker or the library"""
    foreign = headers("daemon/worker", "client-lib") - own("daemon/supervisor")

    def allowed(kind, name):
        return name != "sqlite3.h" and not (kind == '"' and name in foreign) and "worker/" not in name

    paths = list(sources("daemon/supervisor"))
    true(paths, "no file found")
    equal(violations(paths, allowed), [], "violations")


@test
def library_and_daemon_apart():
    """The library includes the contract, libsystemd, libc and itself"""
    mine = own("client-lib") | CONTRACT | {"config.h"}
    paths = list(sources("client-lib"))
    true(paths, "no file found")
    equal(
        violations(
            paths,
            lambda kind, name: name in mine
            if kind == '"'
            else LIBC.match(name) or name.startswith("systemd/sd-") or name == "sqlipc.h",
        ),
        [],
        "violations",
    )


@test
def tools_use_the_public_header():
    """Of ours, the tools include sqlipc.h and their own files; sqlipcctl the configuration and names, sqlipc-bench pages"""
    mine = own("tools") | {"config.h", "sqlipc.h"}
    others = headers("daemon", "client-lib", "dbus-interfaces") - mine
    more = {
        "ctl": headers("daemon/configuration") | {"sqlipc-names.h"},
        "bench": {"page-encoder.h", "page-decoder.h", "sqlipc-page.h"},  # to measure sizes that the library does not choose
    }
    for room in {path.parent for path in sources("tools")}:
        theirs = others - more.get(room.name, set())
        equal(violations(sources(room), lambda kind, name, theirs=theirs: name not in theirs), [], f"violations in {room}")


@test
def configuration_stands_alone():
    """The configuration's files know neither bus nor worker, for supervisor and sqlipcctl both read by them"""
    mine = own("daemon/configuration") | CONTRACT | {"config.h"}
    paths = list(sources("daemon/configuration"))
    true(paths, "no file found")
    equal(
        violations(paths, lambda kind, name: name in mine if kind == '"' else not name.startswith(("systemd/", "sqlite3"))),
        [],
        "violations",
    )


@test
def nss_in_a_child():
    """What may ask NSS, and block, is called by the code of `sqlipcd --resolve` alone"""
    asks = re.compile(r"\b(get(pw|gr|sp|host|serv|addrinfo)\w*|initgroups|names_resolve|g_get_(user|home|real)_\w+)\s*\(")
    calls = {
        (path.name, match[1])
        for path in sources("daemon")
        for match in asks.finditer(re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S))
    }
    equal(
        sorted(calls),
        [
            ("configuration-names.c", "getgrnam"),
            ("configuration-names.c", "getpwnam"),
            ("configuration-names.c", "names_resolve"),
            ("configuration-names.h", "names_resolve"),
            ("resolve.c", "names_resolve"),
        ],
        "calls",
    )
    body = re.search(r"\nint resolve_serve\(void\) \{.*?\n\}", (ROOT / "daemon/supervisor/resolve.c").read_text(), re.S)
    true("names_resolve(" in body[0], "names_resolve() is called elsewhere in resolve.c")


@test
def sqlite_in_worker_and_bench():
    """sqlite3.h appears in the worker, in bench's in-process baseline, and where ipcq-cli makes a file alone"""
    paths = [
        p
        for p in sources("dbus-interfaces", "daemon", "client-lib", "tools")
        if not any(p.is_relative_to(ROOT / place) for place in ("daemon/worker", "tools/bench", "tools/cli/backup.c"))
    ]
    equal(violations(paths, lambda kind, name: name != "sqlite3.h"), [], "violations")


def is_pure(path):
    """The model comment of the file, or of its header, says so."""
    header = path.with_suffix(".h")
    text = (header if header.exists() else path).read_text()
    comment = re.search(r"/\*\n(.*?)\*/", text, re.S)
    return bool(comment and re.search(r"\bPure[.:]", comment.group(1)))


@test
def pure_modules_do_no_io():
    """What calls itself pure includes no header for files, sockets, loops or SQLite"""
    dirty = (
        "unistd.h",
        "fcntl.h",
        "poll.h",
        "sqlite3.h",
        "sys/socket.h",
        "sys/epoll.h",
        "systemd/sd-event.h",
        "systemd/sd-daemon.h",
    )
    named = [p for p in sources("dbus-interfaces", "daemon", "client-lib", "tools") if is_pure(p)]
    stems = {p.stem for p in named}
    true({"page-encoder", "page-decoder", "configuration"} <= stems, f"only {sorted(stems)} call themselves pure")
    equal(violations(named, lambda kind, name: name not in dirty), [], "violations")


def needed(path):
    out = subprocess.run(["readelf", "-d", path], check=True, capture_output=True, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", out)


@test
def programs_link_what_they_may():
    """The supervisor links no SQLite, the worker no libsystemd or GLib, the library libsystemd and libc alone"""

    def linked(path, *stems):
        return [lib for lib in needed(path) if lib.startswith(stems)]

    true(linked(SQLIPCD, "libsystemd"), "the supervisor does not link libsystemd: wrong file?")
    equal(linked(SQLIPCD, "libsqlite3"), [], "SQLite in the supervisor")
    true(linked(WORKER, "libsqlite3"), "the worker does not link SQLite: wrong file?")
    equal(linked(WORKER, "libsystemd", "libglib", "libgio", "libdbus"), [], "libraries of the bus in the worker")
    sanitizers = ("libasan", "libubsan", "libclang_rt", "libgcc_s", "libm.so", "ld-linux")
    equal(
        [lib for lib in needed(LIBRARY) if not lib.startswith(("libsystemd.so", "libc.so") + sanitizers)],
        [],
        "libraries of libsqlipc",
    )


sys.exit(run())
