#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""AllowUsers= and AllowGroups=: they admit users, for all others a database does not exist, and a reload gives or withdraws
access. test_polkit.py tests Polkit=yes.
"""
import contextlib
import os
import pwd
import re
import signal
import sqlite3

from client import DATABASE, MANAGER, MANAGER_PATH, Failure, Gio, GLib, object_path
from harness import CHINOOK, PATIENT, SOURCE_ROOT, UID_A, UID_B, UID_DAEMON, Service, expect, fds, main, needs_root, wait_for
from tap import at_most, equal, true

NAME_A = pwd.getpwuid(UID_A).pw_name
GROUP = 60  # supplementary, no user here has it
UNKNOWN_OBJECT = "org.freedesktop.DBus.Error.UnknownObject"
PROPERTIES = "org.freedesktop.DBus.Properties"
STREAM = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT x, 'some text' FROM n"

service = None
if os.geteuid() == 0:
    keys = {
        "everybody": {"AllowUsers": "*"},
        "by-name": {"AllowUsers": NAME_A},
        "by-id": {"AllowUsers": f"{UID_DAEMON} {UID_A}"},
        "by-group": {"AllowGroups": f"{GROUP}"},
        "by-own-group": {"AllowGroups": f"{UID_B}"},
    }
    databases = {name: {"Path": CHINOOK, "AllowUsers": ""} | more for name, more in keys.items()}
    service = Service(databases, limits=PATIENT, uid=UID_DAEMON)  # runs stay through a reload
    service.database("nobody", text=f"[Database]\nPath={CHINOOK}\n")
    service.driver.manager("Reload")
    a, b, member = service.client(UID_A), service.client(UID_B), service.client(UID_B, groups=[GROUP])


def listed(client):
    return [name for name, _, _ in client.manager("ListDatabases")[0]]


def failure_of(function, *arguments):
    try:
        function(*arguments)
    except Failure as failure:
        return failure.name, failure.message
    raise AssertionError("no error")


def database_methods():
    """Each method of the interface with arguments that are well-formed, from its documentation."""
    values = {"s": "SELECT 1", "t": 7, "as": [], "av": [], "a{sv}": {}, "a(sava{sv})": [("SELECT 1", [], {})]}
    text = (SOURCE_ROOT / "dbus-interfaces/org.sqlipc1.Database.xml").read_text()
    for name, body in re.findall(r'<method name="(\w+)">(.*?)</method>', text, re.S):
        types = re.findall(r'<arg type="([^"]+)" name="\w+" direction="in"/>', body)
        yield DATABASE, name, f"({''.join(types)})", *(values[kind] for kind in types)


@needs_root
def who_may_use_what():
    """AllowUsers= and AllowGroups= admit names and ids, primary and supplementary groups; root and the service's user"""
    names = sorted(keys)
    for client, expected in (
        (a, ["by-id", "by-name", "everybody"]),
        (b, ["by-own-group", "everybody"]),
        (member, ["by-group", "by-own-group", "everybody"]),
        (service.client(), sorted([*names, "nobody"])),
        (service.client(UID_DAEMON), sorted([*names, "nobody"])),
    ):
        equal(listed(client), expected, "listed")
        equal(client.databases(), [object_path(name) for name in expected], "property Databases")
        tree = client.introspect(f"{MANAGER_PATH}/database")
        nodes = re.findall(r'<node name="(\w+)"', tree)
        equal(sorted(nodes), sorted(object_path(name).split("/")[-1] for name in expected), "introspection")
        for name in [*names, "nobody"]:
            if name in expected:
                client.point(name)
                equal(client.manager("GetDatabase", "(sa{sv})", name), [object_path(name), {}], "GetDatabase")
            else:
                expect(UNKNOWN_OBJECT, client.query, name, "SELECT 1")
                expect("UnknownDatabase", client.manager, "GetDatabase", "(sa{sv})", name)


@needs_root
def hidden_is_missing():
    """A forbidden database looks like one that never existed, in each method, property and introspection"""
    calls = [
        *database_methods(),
        (DATABASE, "Query", "(u)", 7),
        (DATABASE, "NoSuchMethod", None),
        (PROPERTIES, "Get", "(ss)", DATABASE, "Name"),
        (PROPERTIES, "Get", "(ss)", DATABASE, "NoSuchProperty"),
        (PROPERTIES, "GetAll", "(s)", DATABASE),
        (PROPERTIES, "GetAll", "(s)", ""),
        (PROPERTIES, "Set", "(ssv)", DATABASE, "Name", GLib.Variant("s", "x")),
        ("org.freedesktop.DBus.Introspectable", "Introspect", None),
        ("org.freedesktop.DBus.ObjectManager", "GetManagedObjects", None),
        ("no.such.Interface", "Method", None),
    ]
    true(len(calls) > 15, f"{len(calls)} calls")
    for call in calls:
        hidden = failure_of(b.raw, object_path("nobody"), *call)
        missing = failure_of(b.raw, object_path("nobodx"), *call)
        equal((hidden[0], hidden[1].replace("nobody", "nobodx")), missing, f"{call[1]}: error")
    for options in ({}, {"unknown": GLib.Variant("u", 1)}):
        call = (MANAGER_PATH, MANAGER, "GetDatabase", "(sa{sv})")
        hidden, missing = (failure_of(b.raw, *call, name, options) for name in ("nobody", "nobodx"))
        equal((hidden[0], hidden[1].replace("nobody", "nobodx")), missing, "GetDatabase: error")
    for path in (f"{object_path('nobody')}/below", f"{MANAGER_PATH}/database"):
        true("nobody" not in str(outcome(b, path)).replace(path, ""), f"{path} tells of it")


def outcome(client, path):
    try:
        return client.introspect(path)
    except Failure as failure:
        return failure


@needs_root
def withdrawn():
    """A reload that withdraws a database ends statements, not runs, and makes the name unknown"""
    with_access = service.database("lent", Path=CHINOOK, AllowUsers=NAME_A)
    service.driver.manager("Reload")
    statement, idle = a.prepare("lent", STREAM + " LIMIT 300000"), a.prepare("lent", "SELECT 1")
    run = statement.fetch()
    service.database("lent", Path=CHINOOK, AllowUsers=f"{UID_B}")
    service.driver.manager("Reload")
    equal(run.counted()[1], 300000, "rows of the run under way")
    for number in (statement.number, idle.number):
        expect(UNKNOWN_OBJECT, a.database, "lent", "Fetch", "(tava{sv}a{sv})", number, [], {}, {})
    wait_for(lambda: service.counters()["NStatements"] == 0, "the statements are gone")
    for held in (statement, idle):
        a.drop(held.pipe)
    b.point("lent")
    with_access.unlink()
    service.driver.manager("Reload")


# One call of each kind that needs a worker: the first of a database is sent to its idle worker, the others to all.
SELECT = "SELECT x FROM t"
WAITING = (
    ("Query", "(sava{sv}a{sv})", lambda _: (SELECT, [], {}, {})),
    ("Query", "(sava{sv}a{sv})", lambda _: (SELECT, [], {}, {})),
    ("QueryRows", "(sava{sv}a{sv})", lambda _: (SELECT, [], {}, {})),
    ("OpenRows", "(sava{sv}a{sv})", lambda _: (SELECT, [], {}, {})),
    ("Fetch", "(tava{sv}a{sv})", lambda statement: (statement.number, [], {}, {})),
    ("Prepare", "(sa{sv})", lambda _: (SELECT, {})),
)
# The database after a reload, and the answer to calls that wait; None: as if there had been no reload.
OF_A = {"AllowUsers": NAME_A}
CHANGES = {
    "removed": (None, "UnknownDatabase"),
    "another-user": ({"AllowUsers": f"{UID_B}"}, "UnknownDatabase"),
    "hidden-table": (OF_A | {"Expose": "other"}, "Busy"),
    "another-file": (OF_A | {"Path": CHINOOK}, "Busy"),
    "described": (OF_A | {"Description": "It is the same."}, None),
}


def error_of(pending):
    try:
        pending.result()
    except Failure as failure:
        return failure.name.removeprefix("org.sqlipc1.Error.")
    return None


def change(lender, name, keys):
    path = lender.data / f"{name}.sqlite"
    if keys is None:
        (lender.config_dir / f"databases.d/{name}.conf").unlink()
    else:
        lender.database(name, **{"Path": path} | keys)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript("CREATE TABLE IF NOT EXISTS t(x); CREATE TABLE IF NOT EXISTS other(y); INSERT INTO t VALUES('row')")


@needs_root
def withdrawn_from_calls_that_wait():
    """A call that no worker has begun fails at once if a reload changes its rights; with the same rights it succeeds"""
    patient = {"QueueTimeoutSec": 600, "PrepareTimeoutSec": 600, "WorkerIdleSec": 600, "WorkersMax": len(CHANGES)}
    with Service(limits=patient, uid=UID_DAEMON) as lender:
        for name in CHANGES:
            change(lender, name, OF_A)
        lender.driver.manager("Reload")
        client = lender.client(UID_A)
        statements = {name: client.prepare(name, SELECT) for name in CHANGES}
        workers = lender.workers()
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        try:
            calls = {name: [] for name in CHANGES}
            for method, types, values in WAITING:
                for name in CHANGES:
                    more = values(statements[name])
                    calls[name].append(client.begin(object_path(name), DATABASE, method, types, *more))
            n_runs = len(CHANGES) * (len(WAITING) - 1)  # a Prepare is none
            wait_for(lambda: lender.counters()["NRuns"] == n_runs, "all calls wait")
            for name, (keys, _) in CHANGES.items():
                change(lender, name, keys)
            lender.driver.manager("Reload")
            for name, (_, error) in CHANGES.items():
                if error:
                    equal([error_of(call) for call in calls[name]], [error] * len(WAITING), f"answers of {name}")
        finally:
            for pid in workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
        equal([error_of(call) for call in calls["described"]], [None] * len(WAITING), "answers with the same rights")
        lender.clients.remove(client)
        client.close()


@needs_root
def signals():
    """DatabaseAdded and DatabaseRemoved reach only clients that gain or lose the database"""
    stranger = service.client(UID_A)  # never called the service
    for client in (stranger, b):
        rule = GLib.Variant("(s)", ("interface='org.sqlipc1.Manager'",))
        client.message("/org/freedesktop/DBus", "org.freedesktop.DBus", "AddMatch", rule, destination="org.freedesktop.DBus")
    clients = {"a": a, "b": b, "member": member, "stranger": stranger}
    heard = {name: client.signals() for name, client in clients.items()}
    path = object_path("new")

    def reload_and_hear():
        before = {name: len(fetch()) for name, fetch in heard.items()}
        service.driver.manager("Reload")
        for _ in range(20):  # between two events one peer is told, so all have been
            for client in (a, b, member):
                client.manager("ListRuns")
        stranger.bus_call("NameHasOwner", "(s)", "org.sqlipc1")  # what was sent before has come
        return {name: fetch()[before[name] :] for name, fetch in heard.items()}

    added, removed = [("DatabaseAdded", "new", path)], [("DatabaseRemoved", "new", path)]
    file = service.database("new", Path=CHINOOK, AllowUsers=NAME_A)
    equal(reload_and_hear(), {"a": added, "b": [], "member": [], "stranger": []}, "published to a")
    equal(reload_and_hear(), {"a": [], "b": [], "member": [], "stranger": []}, "unchanged")
    service.database("new", Path=CHINOOK, AllowUsers=NAME_A, Description="changed")
    equal(reload_and_hear(), {"a": [], "b": [], "member": [], "stranger": []}, "a change, but not of users")
    service.database("new", Path=CHINOOK, AllowUsers="", AllowGroups=f"{GROUP}")
    equal(reload_and_hear(), {"a": removed, "b": [], "member": added, "stranger": []}, "from a user to a group")
    file.unlink()
    equal(reload_and_hear(), {"a": [], "b": [], "member": removed, "stranger": []}, "taken away")


@needs_root
def many_signals():
    """A reload is answered before its signals; each client then gets all of its signals, reload by reload"""
    names = {f"many{i}" for i in range(50)}
    clients = [service.client() for _ in range(20)]
    for client in clients:
        client.point("everybody")
    heard = [client.signals() for client in clients]
    order = []
    admin = clients[0]
    admin.connection.add_filter(lambda _c, message, incoming: (order.append(message.get_message_type()), message)[1])
    files = [service.database(name, Path=CHINOOK) for name in names]
    admin.manager("Reload")
    for file in files:
        file.unlink()
    admin.manager("Reload")
    for fetch in heard:
        wait_for(lambda f=fetch: len(f()) == 100, "all is told")
        for said, member in ((fetch()[:50], "DatabaseAdded"), (fetch()[50:], "DatabaseRemoved")):
            equal(({what for what, _, _ in said}, {name for _, name, _ in said}), ({member}, names), "heard of one reload")
    calls_and_signals = [kind for kind in order if kind != Gio.DBusMessageType.METHOD_CALL]
    equal(calls_and_signals[0], Gio.DBusMessageType.METHOD_RETURN, "what came first")


@needs_root
def descriptors_nobody_asked_for():
    """Descriptors that come with calls are closed: 1,000 calls with 16 each leave the daemon's number unchanged"""
    a.point("everybody")
    wait_for(lambda: service.counters()["NRuns"] == 0, "the run is over")
    before = len(fds(service.pid()))
    most = 0
    null = os.open("/dev/null", os.O_RDONLY)
    for i in range(1000):
        message = a.new_call(object_path("everybody"), DATABASE, "Cancel", GLib.Variant("(ta{sv})", (7, {})))
        message.set_unix_fd_list(Gio.UnixFDList.new_from_array([os.dup(null) for _ in range(16)]))
        reply, _ = a.connection.send_message_with_reply_sync(message, Gio.DBusSendMessageFlags.NONE, 60000, None)
        equal(reply.get_error_name(), "org.sqlipc1.Error.UnknownRun", "reply")
        if i % 50 == 0:
            most = max(most, len(fds(service.pid())))
    os.close(null)
    at_most(most, before + 16, "descriptors of the daemon meanwhile")
    wait_for(lambda: len(fds(service.pid())) <= before, "as many descriptors as before")


@needs_root
def flood_of_calls():
    """A user who floods the service with calls has a quota; other users are served meanwhile"""
    count = f"SELECT count(*) FROM ({STREAM} LIMIT 20000)"
    query = ("QueryRows", "(sava{sv}a{sv})", count, [], {}, {})
    crowd = [service.client(UID_A) for _ in range(20)]  # one alone is stopped by the bus, at 128 replies
    flood = [one.begin(object_path("everybody"), DATABASE, *query) for one in crowd for _ in range(100)]
    for _ in range(20):
        b.point("everybody")
    refused = 0
    for pending in flood:
        try:
            pending.result()
        except Failure as failure:
            # Busy, TimedOut: those let in, whose turn for a worker, or of their worker, did not come in time
            true(failure.name.split(".")[-1] in ("LimitsExceeded", "Busy", "TimedOut"), f"error {failure}")
            refused += 1
    true(0 < refused < 2000, f"{refused} of 2000 calls were refused")


main(service)
