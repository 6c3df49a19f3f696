#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The boundaries between rooms (docs/ARCHITECTURE.md): includes, circles, names, and the libraries that programs link.

usage: test_rooms.py BUILD-ROOT
"""
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/bus"))
from tap import equal, run, test, true  # noqa: E402

BUILD = pathlib.Path(sys.argv.pop(1))
SQLIPCD, WORKER, LIBRARY = (
    BUILD / path for path in ("daemon/supervisor/sqlipcd", "daemon/worker/sqlipc-worker", "client-lib/libsqlipc.so")
)
RULES = tomllib.loads((ROOT / "tests/lint/rooms.toml").read_text())
PARTS = ["dbus-interfaces", "daemon/protocol", "daemon/configuration", "daemon/supervisor", "daemon/worker", "client-lib"]
PARTS += ["tools/terminal", "tools/cli", "tools/ctl", "tools/bench"]
LIBRARIES = {
    "glib": r"(glib|gio|glib-unix)[/.]",
    "systemd": r"systemd/",
    "sqlite": r"sqlite3",
    "seccomp": r"seccomp",
    "smartcols": r"libsmartcols",
    "readline": r"readline/",
    "gcrypt": r"gcrypt",
    "pq": r"libpq|pg_",
    "mariadb": r"mysql|mariadb",
    "zlib": r"zlib",
    "python": r"Python\.h",
    "curl": r"curl/",
    "yajl": r"yajl/",
}


def sources(*rooms):
    for room in rooms:
        yield from sorted((ROOT / room).rglob("*.[ch]"))


def includes(path):
    return re.findall(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', path.read_text(), re.M)


def room_of(name):
    """The innermost room that a path from the root is in."""
    return max((room for room in RULES["rooms"] if name.startswith(room + "/")), key=len, default=None)


def may_include(room, name):
    """True if files of the room may include that file of ours."""
    return name == "config.h" or room_of(name) == room or bool({name, room_of(name)} & set(RULES["rooms"][room]["includes"]))


def library_of(name):
    """The library that a header in angle brackets belongs to; None is libc."""
    return next((library for library, pattern in LIBRARIES.items() if re.match(pattern, name)), None)


def may_use(path, name):
    """True if the file may include that header of a library."""
    room, library = room_of(path), library_of(name)
    if library is None:
        return bool(re.match(r"[a-z0-9_/-]+\.h$", name))
    files = RULES["only"].get(room, {}).get(library)
    return library in RULES["rooms"][room]["libraries"] and (files is None or path in files)


def violations(paths):
    found = []
    for path in paths:
        relative = str(path.relative_to(ROOT))
        for kind, name in includes(path):
            if not (may_include(room_of(relative), name) if kind == '"' else may_use(relative, name)):
                found.append(f"{relative} includes {name}")
    return found


def modules(part):
    """The modules of a part, each with the modules of it that it includes. A module is a .c file, its header, or both."""
    graph = {}
    for path in sources(part):
        module = str(path.relative_to(ROOT).with_suffix(""))
        theirs = {name.removesuffix(".h") for kind, name in includes(path) if kind == '"' and name.startswith(part + "/")}
        graph.setdefault(module, set()).update(theirs - {module})
    return graph


def circles(graph):
    """Groups of modules that include each other in a circle, the largest first (Tarjan's algorithm)."""
    number, lowest, stack, found = {}, {}, [], []

    def visit(module):
        number[module] = lowest[module] = len(number)
        stack.append(module)
        for other in sorted(graph.get(module, ())):
            if other not in number:
                visit(other)
            if other in stack:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == number[module]:
            start = stack.index(module)
            found.append(sorted(stack[start:]))
            del stack[start:]

    for module in sorted(graph):
        if module not in number:
            visit(module)
    return sorted((group for group in found if len(group) > 1), key=len, reverse=True)


@test
def rooms_include_what_they_may():
    """Every file includes only what rooms.toml allows its room"""
    paths = list(sources(*PARTS))
    true(len(paths) > 500, f"only {len(paths)} files found")
    equal([str(path) for path in paths if room_of(str(path.relative_to(ROOT))) is None], [], "files without a room")
    equal(violations(paths), [], "violations")


@test
def rules_are_in_use():
    """rooms.toml allows nothing that no file uses"""
    used = {(room_of(str(p.relative_to(ROOT))), name if kind == '"' else library_of(name))
            for p in sources(*PARTS) for kind, name in includes(p)}
    used |= {(room, room_of(name)) for room, name in used if name}
    unused = [f"{room}: {name}" for room, rule in RULES["rooms"].items() for name in rule["includes"] + rule["libraries"]
              if (room, name) not in used]
    equal(unused, [], "unused rules")


@test
def paths_from_the_root():
    """Quoted includes name paths from the root, and the guard of a header is its path"""
    wrong = []
    for path in sources(*PARTS, "tests"):
        name = str(path.relative_to(ROOT))
        wrong += [f"{name} includes {other}" for kind, other in includes(path)
                  if kind == '"' and other != "config.h" and not (ROOT / other).is_file()]
        guard = re.sub(r"\W", "_", name.upper())
        guarded = f"#ifndef SQLIPC_{guard}\n#define SQLIPC_{guard}\n" in path.read_text()
        if path.suffix == ".h" and name != "client-lib/sqlipc.h" and not guarded:
            wrong.append(f"{name} has another guard")
    equal(wrong, [], "violations")


def more_than_once(names):
    return sorted({name for name in names if names.count(name) > 1})


@test
def one_name_for_one_thing():
    """No two headers have the same name, in the tools nor in the service and the library; there no two structs either"""
    product = list(sources("dbus-interfaces", "daemon", "client-lib"))
    structs = [name for path in product
               for name in set(re.findall(r"^(?:typedef )?struct ([A-Z]\w+) \{", path.read_text(), re.M))]
    equal(more_than_once([path.name for path in product if path.suffix == ".h"]), RULES["twice"]["headers"], "headers")
    equal(more_than_once(structs), RULES["twice"]["structs"], "structs")
    equal(more_than_once([path.name for path in sources("tools") if path.suffix == ".h"]), [], "headers of the tools")


@test
def circles_only_shrink():
    """No part has a larger circle of modules that include each other than rooms.toml says"""
    largest = {part: len(found[0]) for part in PARTS if (found := circles(modules(part))) and len(found[0]) > 2}
    equal(largest, RULES["circles"], "largest circles (if one is smaller now, lower its number)")


@test
def folders_of_tools_have_an_order():
    """The folders of a tool include each other in one direction only"""
    graph = {
        room: {name if name in RULES["rooms"] else room_of(name) for name in rule["includes"]} - {None}
        for room, rule in RULES["rooms"].items()
        if room.startswith("tools/")
    }
    true(len(graph) > 12, f"only {sorted(graph)}")
    equal(circles(graph), [], "circles")


@test
def circles_are_found():
    """The test of circles finds a circle, and none in a chain"""
    equal(circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()}), [["a", "b", "c"]], "circles")
    equal(circles({"a": {"b"}, "b": {"c"}, "c": set()}), [], "circles of a chain")


@test
def shell_knows_the_pragmas():
    """The shell completes those PRAGMAs that the worker has SQLite run"""
    completed = re.search(r"pragmas\[\] = \{(.*?)\n +\};", (ROOT / "tools/cli/sql/sql-keyword.c").read_text(), re.S)[1]
    names = re.findall(r'\{ "(\w+)", PRAGMA_RUNS,', (ROOT / "daemon/worker/sqlite/pragma.c").read_text())
    true(len(names) > 20, f"only {names} are found")
    equal(re.findall(r'"(\w+)"', completed), names, "PRAGMAs of the shell")


@test
def nss_in_a_child():
    """Only `sqlipcd --resolve` calls functions that ask NSS and may block"""
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
    resolve = (ROOT / "daemon/supervisor/service/resolve.c").read_text()
    body = re.search(r"\nint resolve_serve\(void\) \{.*?\n\}", resolve, re.S)
    true("names_resolve(" in body[0], "names_resolve() is called elsewhere in resolve.c")


def is_pure(path):
    """The model comment of the file, or of its header, says so."""
    header = path.with_suffix(".h")
    text = (header if header.exists() else path).read_text()
    comment = re.search(r"/\*\n(.*?)\*/", text, re.S)
    return bool(comment and re.search(r"\bPure[.:]", comment.group(1)))


@test
def pure_modules_do_no_io():
    """Pure modules include no header for files, sockets, loops or SQLite"""
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
    found = [f"{path.name} includes {name}" for path in named for _, name in includes(path) if name in dirty]
    equal(found, [], "violations")


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
