#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The live objects agree with dbus-interfaces/*.xml, and can be enumerated."""
import xml.etree.ElementTree as ElementTree

from client import DATABASE, MANAGER, MANAGER_PATH, object_path
from harness import CHINOOK, SOURCE_ROOT, Service, expect, main
from tap import equal, test, true

service = Service({"chinook": CHINOOK, "with-dash": CHINOOK})
client = service.client()


def shape(interface):
    """An interface as comparable data; the order of members does not matter, that of arguments does."""

    def annotations(element):
        """All but those for a generator of code, which sd-bus cannot tell."""
        found = {a.get("name"): a.get("value") for a in element.findall("annotation")}
        return {name: value for name, value in found.items() if not name.startswith("org.qtproject.QtDBus.")}

    return {
        "methods": {
            m.get("name"): ([(a.get("name"), a.get("type"), a.get("direction")) for a in m.findall("arg")], annotations(m))
            for m in interface.findall("method")
        },
        "signals": {
            s.get("name"): [(a.get("name"), a.get("type")) for a in s.findall("arg")] for s in interface.findall("signal")
        },
        "properties": {
            p.get("name"): (p.get("type"), p.get("access"), annotations(p)) for p in interface.findall("property")
        },
    }


def compare(name, path):
    written = ElementTree.parse(SOURCE_ROOT / "dbus-interfaces" / f"{name}.xml").getroot().find(f"interface[@name='{name}']")
    live = ElementTree.fromstring(client.introspect(path)).find(f"interface[@name='{name}']")
    true(live is not None, f"{path} has no {name}")
    for part, expected in shape(written).items():
        for member in sorted(expected.keys() | shape(live)[part].keys()):
            equal(shape(live)[part].get(member), expected.get(member), f"{name}.{member}")


def nodes(path):
    return sorted(n.get("name") for n in ElementTree.fromstring(client.introspect(path)).findall("node"))


@test
def manager_equals_xml():
    """Manager: introspection equals the XML"""
    compare(MANAGER, MANAGER_PATH)


@test
def database_equals_xml():
    """Database: introspection equals the XML"""
    compare(DATABASE, f"{MANAGER_PATH}/database/chinook")


@test
def tree_enumerates():
    """busctl tree lists the databases"""
    done = service.run("busctl", f"--address={service.address}", "tree", "--list", "org.sqlipc1")
    equal(done.returncode, 0, "busctl's exit code")
    paths = done.stdout.decode().split()
    listed = [path for _, path, _ in client.manager("ListDatabases")[0]]
    equal(len(listed), 2, "databases listed")
    for path in [MANAGER_PATH, *listed]:
        true(path in paths, f"{path} is not in {paths}")


@test
def dbus_send():
    """dbus-send, which has no empty a{sv}, reads the paths of the databases, and counters"""

    def get(interface, name, path=MANAGER_PATH):
        done = service.run("dbus-send", f"--bus={service.address}", "--print-reply=literal", "--dest=org.sqlipc1", path,
                           "org.freedesktop.DBus.Properties.Get", f"string:{interface}", f"string:{name}")
        equal((done.returncode, done.stderr), (0, b""), f"dbus-send of {name}")
        return done.stdout.decode().split()

    paths = [word for word in get(MANAGER, "Databases") if word.startswith("/")]
    equal(paths, [object_path("chinook"), object_path("with-dash")], "Databases")
    true("0" in get(MANAGER, "NRuns"), "NRuns")
    true("with-dash" in get(DATABASE, "Name", paths[1]), "Name")
    true("Databases" not in client.properties(MANAGER), "GetAll has the list")


@test
def objects_that_are_not_there():
    """A missing object is UnknownObject, in calls, properties and introspection"""
    expect("org.freedesktop.DBus.Error.UnknownObject", client.query, "nosuch", "SELECT 1")
    expect("org.freedesktop.DBus.Error.UnknownObject", client.properties, DATABASE, f"{MANAGER_PATH}/database/nosuch")
    true("nosuch" not in nodes(f"{MANAGER_PATH}/database"), "a database appears by being asked for")
    expect("org.freedesktop.DBus.Error.UnknownObject", client.introspect, f"{MANAGER_PATH}/database/nosuch")


@test
def properties_read():
    """Properties have the declared types, and Name is the name of the configuration"""
    manager = client.properties(MANAGER)
    features = ["channel", "write", "batch", "transaction", "load", "describe", "channel-memory", "watch",
                "deferred", "cancel-call", "lock-wait", "foreign-keys", "time-zone", "pin",
                "lock-wait-of-runs"]
    equal(manager["Features"], features, "Features")
    true(manager["DaemonVersion"], "DaemonVersion is empty")
    equal(client.properties(DATABASE, f"{MANAGER_PATH}/database/chinook")["Name"], "chinook", "Name")
    path, _ = client.manager("GetDatabase", "(sa{sv})", "with-dash")
    equal(client.properties(DATABASE, path)["Name"], "with-dash", "Name of an escaped path")
    equal(client.properties(DATABASE, path)["Mode"], "read-only", "Mode")
    equal(client.properties(DATABASE, path)["Engine"], "sqlite", "Engine")


@test
def limits_told():
    """Limits says what holds for the caller: sqlipcd.conf, what a database has in its place, and shared counts"""
    with Service(
        {"chinook": CHINOOK, "narrow": {"Path": CHINOOK}}, limits={"RunTimeoutSec": 90, "RunsMax": 7, "RowSizeMax": "2M"}
    ) as service:
        path = service.config_dir / "databases.d/narrow.conf"
        path.write_text(path.read_text() + "[Limits]\nRunTimeoutSec=2\nRunsMax=3\nResultRowsMax=10\n")
        service.driver.manager("Reload")
        wide, narrow = (service.client().properties(DATABASE, object_path(name))["Limits"] for name in ("chinook", "narrow"))
        equal((wide["run-timeout-usec"], wide["runs-max"], wide["row-size-max"]), (90000000, 7, 2097152), "of sqlipcd.conf")
        equal(wide["result-rows-max"], 2**64 - 1, "none")
        equal((narrow["run-timeout-usec"], narrow["runs-max"], narrow["result-rows-max"]), (2000000, 3, 10), "of NAME.conf")
        equal(narrow["row-size-max"], 2097152, "what NAME.conf does not say")
        equal(wide.keys(), narrow.keys(), "keys")


main(service)
