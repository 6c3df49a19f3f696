#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The bus on which libsqlipc, the shell and all bindings find a database, by the rule of sqlipc_open(3)."""
import contextlib
import os
import signal
import socket
import sqlite3
import sys
import threading

from client import MANAGER_PATH, NAME, SECONDS, Text, connect, own
from extension import Extension
from gi.repository import Gio, GLib
from harness import (
    BUILD_ROOT,
    CLI,
    CTL,
    UID_A,
    Service,
    main,
    needs_root,
    python_package,
    sqlalchemy_python,
    test_unsanitized,
)
from library import NOTHING, Library
from tap import Skip, equal, test, true

CONNREFUSED, NOENT, TIMEDOUT = 111, 2, 110


def add(service, name, text):
    """Publishes a database with one row, the name of its bus."""
    path = service.data / f"{name}.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(f"CREATE TABLE place(name); INSERT INTO place VALUES ('{text}')")
    service.database(name, Path=path)
    service.driver.manager("Reload")


MANAGER_XML = """<node><interface name="org.sqlipc1.Manager"><method name="ListDatabases">
    <arg type="a{sv}" direction="in"/><arg type="a(soa{sv})" direction="out"/><arg type="a{sv}" direction="out"/>
</method></interface></node>"""


@contextlib.contextmanager
def refuser(address, error):
    """A service in place of ours, which refuses to list its databases. It runs in a thread of its own."""
    context = GLib.MainContext.new()
    loop, ready = GLib.MainLoop.new(context, False), threading.Event()

    def refuse(*call):
        call[-1].return_dbus_error(error, "Refused.")

    def run():
        context.push_thread_default()
        connection = connect(address)
        connection.register_object(MANAGER_PATH, Gio.DBusNodeInfo.new_for_xml(MANAGER_XML).interfaces[0], refuse, None, None)
        own(connection, NAME)
        ready.set()
        loop.run()
        connection.close_sync(None)
        context.pop_thread_default()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    true(ready.wait(SECONDS), "the name is ours")
    yield
    loop.quit()
    thread.join()


@contextlib.contextmanager
def two_buses():
    """A user's service and the system's, and the environment of a program that sees both."""
    with Service() as user, Service() as system:
        for service, text in ((user, "user"), (system, "system")):
            add(service, text + "s", text)
            add(service, "both", text)
        yield user, system, {"DBUS_SESSION_BUS_ADDRESS": user.address, "DBUS_SYSTEM_BUS_ADDRESS": system.address}


def place(service, environment, name, bus=""):
    """Opens a database, and returns the bus, after a look at the row."""
    with Library(service, opening=f"find {name} {bus}", environment=environment) as library:
        bus_name = library.ask("bus-name")[1].removeprefix("bus ")
        library.ok(f"query {name} SELECT name FROM place")
        equal(library.ask("rows 0")[0][0][0], Text(bus_name.encode()), "the row")
        return bus_name


def failure(service, environment, name, bus=""):
    """Returns errno, name and message of an attempt to open a database that must fail."""
    with started(service, environment) as library:
        return library.failure(f"find {name} {bus}")


def started(service, environment):
    """Returns a library-client that has opened nothing."""
    return Library(service, opening=NOTHING, environment=environment)


@test
def looked_up():
    """A name is looked up on the user's bus, and then on the system's; the connection keeps the service that it found"""
    with two_buses() as (user, system, both):
        equal(place(user, both, "users"), "user", "only the user has it")
        equal(place(user, both, "systems"), "system", "only the system has it")
        equal(place(user, both, "both"), "user", "both have it")
        error, name, message = failure(user, both, "nowhere")
        equal((error, name), (NOENT, "UnknownDatabase"), message)
        true("neither" in message and "nowhere" in message, message)
        with Library(user, opening="find systems", environment=both) as library:
            add(user, "systems", "user")
            system.kill()
            system.start()
            library.ok("query systems SELECT name FROM place")
            equal(library.ask("rows 0")[0], [[Text(b"system")]], "the same service after a restart")


@test
def without_a_bus_of_the_user():
    """Without a user's bus, or without the service on it, the system's bus is asked; that is no error"""
    with two_buses() as (user, _, both):
        none = both | {"DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere/bus"}
        equal(place(user, none, "both"), "system", "without a bus")
        user.kill()
        equal(place(user, both, "both"), "system", "without the service")
        error, name, message = failure(user, both, "nowhere")
        equal((error, name), (NOENT, "UnknownDatabase"), message)


@test
def errors_do_not_lead_on():
    """If the user's service cannot be asked, or its database is broken, that is an error, which names the other bus"""
    with two_buses() as (user, _, both), socket.socket(socket.AF_UNIX) as closed:
        closed.bind(str(user.folder / "closed"))
        error, _, _ = failure(user, both | {"DBUS_SESSION_BUS_ADDRESS": f"unix:path={user.folder}/closed"}, "both")
        equal(error, CONNREFUSED, "a bus that refuses")
        user.database("both", Path="relative")
        user.driver.manager("Reload")
        error, name, message = failure(user, both, "both")
        equal((error, name), (NOENT, "UnknownDatabase"), message)
        true("configuration" in message and "SQLIPC_BUS=system" in message, message)
        equal(place(user, both | {"SQLIPC_BUS": "system"}, "both"), "system", "as the message says")


@test
def chosen():
    """The argument and SQLIPC_BUS choose one bus; if another one has the database, the error says so"""
    with two_buses() as (user, system, both):
        for environment, bus, advice in ((both, "{}", 'choose "{}" as the bus, in place of'),
                                         (both | {"SQLIPC_BUS": "{}"}, "", "SQLIPC_BUS={}")):  # fmt: skip
            for which, other in (("user", "system"), ("system", "user")):
                variable = {key: value.format(which) for key, value in environment.items()}
                equal(place(user, variable, "both", bus.format(which)), which, f"{which}, {bus}")
                error, name, message = failure(user, variable, other + "s", bus.format(which))
                equal((error, name), (NOENT, "UnknownDatabase"), message)
                true(f"on the {which} bus" in message and advice.format(other) in message, message)
                equal("SQLIPC_BUS" in message, not bus, "the variable, which an argument overrides")
        with Library(user, opening="find both", environment=both | {"SQLIPC_BUS": system.address}) as library:
            library.ok("query both SELECT name FROM place")
            equal(library.ask("rows 0")[0], [[Text(b"system")]], "an address")
        equal(failure(user, both | {"SQLIPC_BUS": "sytem"}, "both")[0], 22, "a typing error")


@test
def shell():
    """The shell follows the rule: for its argument, .open, --list, SQLIPC_BUS and a choice that is wrong"""

    def ask(*arguments, code=0, **more):
        done = user.run(CLI, "--mode=csv", *arguments, environment=both | more)
        equal(done.returncode, code, done.stderr)
        return done.stdout.decode(), done.stderr.decode()

    with two_buses() as (user, _, both):
        row = "SELECT name FROM place"
        for name, found in (("users", "user"), ("systems", "system"), ("both", "user")):
            equal(ask(name, row)[0].split()[-1], found, name)
        equal(ask("both", row, SQLIPC_BUS="system")[0].split()[-1], "system", "SQLIPC_BUS")
        equal(ask("--system", "both", row)[0].split()[-1], "system", "--system")
        out, _ = ask("users", row, ".open systems", row, ".open both", row)
        equal([line for line in out.split() if line != "name"], ["user", "system", "user"], ".open")
        _, err = ask("nowhere", row, code=1)
        true("neither on the user's bus" in err, err)
        _, err = ask("--user", "systems", row, code=1)
        true("the system bus has a database systems" in err and "--system" in err, err)
        out, err = ask("--list")
        listed = [tuple(line.split(",")[i] for i in (0, -1)) for line in out.splitlines()[1:]]
        equal(listed, [("both", "user"), ("users", "user"), ("both", "system"), ("systems", "system")], out)
        true("both is on both buses" in err, err)
        out, err = ask("--list", "--system")
        equal(("users" in out, "systems" in out, err), (False, True, ""), "the list of one bus")


@test
def python():
    """Python follows the rule, also in an event loop, and keeps the service"""
    program = """
import asyncio, re, sqlipc, sqlipc.aio
for name in ("users", "systems", "both"):
    print(name, sqlipc.connect(name).execute("SELECT name FROM place").fetchone()[0])
async def ask(name):
    async with sqlipc.aio.connect(name) as db, db.execute("SELECT name FROM place") as cursor:
        return (await cursor.fetchone())[0]
for name in ("users", "systems", "both"):
    print(name, asyncio.run(ask(name)))
def refused(open, *arguments, **keywords):
    try:
        open(*arguments, **keywords)
    except sqlipc.OperationalError as error:
        print(error.sqlite_errorname, error.service_error, *re.findall("SQLIPC_BUS|choose.*", str(error)))
refused(sqlipc.connect, "nowhere")
async def chosen():
    await sqlipc.aio.connect("users", bus="system")
refused(sqlipc.connect, "users", bus="system")
refused(sqlipc.connect, "sqlipc://user/systems", uri=True)
refused(asyncio.run, chosen())
for bus in ("user", "system"):
    print(bus, sqlipc.connect("both", bus=bus).execute("SELECT name FROM place").fetchone()[0])
"""
    if not (BUILD_ROOT / "client-lib/python/sqlipc/_native.abi3.so").exists():
        raise Skip("the Python package is not built")
    with two_buses() as (user, _, both):
        done = user.run(sys.executable, "-c", program, environment=both | python_package())
        lines = ["users user", "systems system", "both user"] * 2
        missing = "SQLITE_CANTOPEN org.sqlipc1.Error.UnknownDatabase"
        advice = missing + ' choose "{}" as the bus, in place of "{}".'
        lines += [missing, *(advice.format(*pair) for pair in (("user", "system"), ("system", "user"), ("user", "system")))]
        lines += ["user user", "system system"]
        equal((done.stdout.decode().splitlines(), done.stderr), (lines, b""), "output")


@test_unsanitized
def sqlalchemy():
    """SQLAlchemy's dialect follows the rule; the host or the option `bus` of a URL chooses one bus"""
    program = """
import sqlalchemy as sa

for url in ("/users", "/systems", "/both", "user/both", "system/both", "/both?bus=system", "/nowhere", "system/users",
            "user/systems", "/systems?bus=user"):
    try:
        with sa.create_engine("sqlipc://" + url).connect() as connection:
            print(url, connection.execute(sa.text("SELECT name FROM place")).scalar_one())
    except sa.exc.OperationalError as error:
        print(url, error.orig.service_error, error.orig)
"""
    if not (BUILD_ROOT / "client-lib/python/sqlipc/_native.abi3.so").exists():
        raise Skip("the Python package is not built")
    interpreter = sqlalchemy_python()
    with two_buses() as (user, _, both):

        def ask(**more):
            done = user.run(interpreter, "-c", program, environment=both | python_package() | more)
            equal(done.stderr, b"", "errors")
            return dict(line.split(" ", 1) for line in done.stdout.decode().splitlines())

        said = ask()
        for url, found in (("/users", "user"), ("/systems", "system"), ("/both", "user"), ("user/both", "user"),
                           ("system/both", "system"), ("/both?bus=system", "system")):  # fmt: skip
            equal(said[url], found, url)
        for url, words in (("/nowhere", "neither on the user's bus"), ("system/users", 'choose "user" as the bus'),
                           ("user/systems", 'choose "system" as the bus'),
                           ("/systems?bus=user", 'choose "system" as the bus')):  # fmt: skip
            true(said[url].startswith("org.sqlipc1.Error.UnknownDatabase ") and words in said[url], said[url])
        said = ask(SQLIPC_BUS="system")
        for url, found in (("/both", "system"), ("/systems", "system"), ("user/both", "user")):
            equal(said[url], found, f"{url} with SQLIPC_BUS")
        true("SQLIPC_BUS=user" in said["/users"], said["/users"])


@test
def adbc():
    """The ADBC driver follows the rule; if the chosen bus has no such database, the error names the bus that does"""
    program = BUILD_ROOT / "tests/adbc/adbc-client"
    if not program.exists():
        raise Skip("the driver is not built")
    with two_buses() as (user, _, both):

        def ask(bus, case):
            done = user.run(program, bus, case, environment=both)
            equal(done.returncode, 0, done.stderr)
            return done.stdout.decode().strip()

        for bus, name, found in (("", "users", "user"), ("", "systems", "system"), ("", "both", "user"),
                                 ("user", "both", "user"), ("system", "both", "system")):
            equal(ask(bus, f"place:{name}"), found, f"{name} on {bus}")
        true("neither on the user's bus" in ask("", "missing:nowhere"), "on neither")
        true('choose "system" as the bus' in ask("user", "missing:systems"), "where else")
        true('choose "user" as the bus' in ask("system", "missing:users"), "where else")


@test
def glib():
    """libsqlipc-glib follows the rule, also without waiting, and keeps the bus"""
    program = BUILD_ROOT / "tests/glib/glib-client"
    if not program.exists():
        raise Skip("libsqlipc-glib is not built")
    with two_buses() as (user, _, both):
        for way in ("sync", "async"):

            def ask(name, bus, way=way, **more):
                done = user.run(program, "find", name, bus, way, environment=both | more)
                equal(done.returncode, 0, done.stderr)
                return done.stdout.decode().strip()

            for bus, name, found in (("found", "users", "user"), ("found", "systems", "system"), ("found", "both", "user"),
                                     ("user", "both", "user"), ("system", "both", "system")):
                equal(ask(name, bus), f"{found} {found} 2", f"{name} on {bus}, {way}")
            equal(ask("both", "found", SQLIPC_BUS="system"), "system system 2", "SQLIPC_BUS")
            for name, bus, words in (("nowhere", "found", "neither on the user's bus"),
                                     ("users", "system", 'choose "user" as the bus'),
                                     ("systems", "user", 'choose "system" as the bus')):
                answer = ask(name, bus)
                true(answer.startswith("org.sqlipc1.Error.UnknownDatabase ") and words in answer, answer)


@test
def extension():
    """The extension of SQLite follows the rule; if the chosen bus has no such database, the error names the bus that does"""
    with two_buses() as (user, _, both), Extension(user, environment=both) as sqlite:

        def create(name, bus=""):
            return f"CREATE VIRTUAL TABLE t USING sqlipc({name}, place{bus})"

        for bus, name, found in (("", "users", "user"), ("", "systems", "system"), ("", "both", "user"),
                                 (", user", "both", "user"), (", system", "both", "system")):
            sqlite.ok(create(name, bus))
            equal(sqlite.ok("SELECT name FROM t"), [[Text(found.encode())]], f"{name}{bus}")
            sqlite.ok("DROP TABLE t")
        for name, bus, words in (("nowhere", "", "neither on the user's bus"), ("users", ", system", "write user"),
                                 ("systems", ", user", "write system")):
            _, message = sqlite.failure(create(name, bus))
            true(words in message, message)


@test
def no_answer():
    """A service of the user that does not answer, or answers with an error, leads to no other bus"""
    with two_buses() as (user, _, both):
        errors = ("org.freedesktop.DBus.Error.Timeout", "org.freedesktop.DBus.Error.TimedOut",
                  "org.freedesktop.DBus.Error.NoReply", "org.freedesktop.DBus.Error.AccessDenied",
                  "org.sqlipc1.Error.LimitsExceeded", "org.sqlipc1.Error.Internal")
        with Service(start=False) as bus, started(user, both) as waiting:
            pid = user.pid()
            os.kill(pid, signal.SIGSTOP)
            try:
                waiting.say("find both")
                for error in errors:
                    with refuser(bus.address, error):
                        _, _, message = failure(user, both | {"DBUS_SESSION_BUS_ADDRESS": bus.address}, "both")
                    true("SQLIPC_BUS=system" in message, f"{error}: {message}")
                answer = waiting.hear()
            finally:
                os.kill(pid, signal.SIGCONT)
            equal(answer.split()[:2], ["error", str(TIMEDOUT)], answer)
            true("SQLIPC_BUS=system" in answer, answer)


@needs_root
def of_another_user():
    """A program with a changed uid does not use the bus of another user, which the environment still names"""
    with two_buses() as (user, _, both):
        address = user.folder / "theirs"
        with socket.socket(socket.AF_UNIX) as theirs:
            theirs.bind(str(address))
            ready, tell = os.pipe()
            pid = os.fork()
            if pid == 0:  # the process that listens is the owner
                os.setresuid(UID_A, UID_A, UID_A)
                theirs.listen()
                os.write(tell, b"x")
                signal.pause()
            try:
                os.read(ready, 1)
                sudo = both | {"DBUS_SESSION_BUS_ADDRESS": f"unix:path={address}"}
                equal(place(user, sudo, "both"), "system", "the bus")
                equal(failure(user, sudo, "both", "user")[0], 1, "EPERM if it is chosen")
                done = user.run(CTL, "--user", "list", environment=sudo)
                true(done.returncode != 0 and b"belongs to another user" in done.stderr, done)
            finally:
                os.kill(pid, 9)
                os.waitpid(pid, 0)
                os.close(ready)
                os.close(tell)


main()
