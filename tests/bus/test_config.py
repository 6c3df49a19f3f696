#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Configuration: a broken file is reported with line and key, and only its database is left out; reload keeps the rest."""
import os
import shutil
import signal
import sqlite3

from harness import CHINOOK, PATIENT, SQLIPCD, Service, expect, main, wait_for
from tap import equal, test, true

service = Service({"chinook": CHINOOK})
client = service.client()


def reload():
    (info,) = client.manager("Reload")
    return info["broken"]


def published():
    return [name for name, _, _ in client.manager("ListDatabases")[0]]


@test
def broken_files():
    """Each broken file is reported with line and key and is not published; all others are"""
    cases = [
        ("syntax", "[Database]\nPath=/x\nthis is no key\n", ["syntax.conf", ":3"]),
        ("nosection", "Path=/x\n", ["nosection.conf", ":1"]),
        ("nopath", "[Database]\nDescription=x\n", ["nopath.conf", "Path"]),
        ("relative", "[Database]\n# comment\nPath=x.sqlite\n", ["relative.conf", ":3", "Path"]),
        ("badmode", f"[Database]\nPath={CHINOOK}\n\nMode=write-everything\n", ["badmode.conf", ":4", "Mode"]),
        ("badbool", f"[Database]\nPath={CHINOOK}\nImmutable=perhaps\n", ["badbool.conf", ":3", "Immutable"]),
        ("bad name", f"[Database]\nPath={CHINOOK}\n", ["bad name"]),
        ("x" * 65, f"[Database]\nPath={CHINOOK}\n", ["xxx"]),
    ]
    files = [service.database(name, text=text) for name, text, _ in cases]
    binary = service.config_dir / "databases.d/binary.conf"
    binary.write_bytes(b"[Database]\nPath=/\xff\xfe\0\n")
    # A text or file name that no D-Bus message can carry must not make the list unusable for all users.
    noncharacter = service.database("noncharacter", Path=CHINOOK, Description="\ufffe")
    odd_name = service.config_dir / "databases.d/odd\udcff\ufdd0.conf"
    odd_name.write_text("[Database]\n")
    broken = reload()
    equal(
        sorted(broken),
        sorted([name for name, _, _ in cases] + ["binary", "noncharacter", "odd\ufffd\ufffd"]),
        "broken databases",
    )
    for name, _, words in cases:
        for word in words:
            true(word in broken[name], f"{word!r} is not in {broken[name]!r}")
    equal(published(), ["chinook"], "published")
    client.point()
    log = service.log_text()
    true("relative.conf" in log and "Path" in log, "nothing in the log")
    for file in [*files, binary, noncharacter, odd_name]:
        file.unlink()
    equal(reload(), {}, "broken databases")


@test
def unknown_keys():
    """An unknown key withholds its database, also one that is published, or in a drop-in, except with the prefix X-"""
    service.database("odd", text=f"[Database]\nPath={CHINOOK}\nX-Frobnicate=yes\nExpose=Genre\n")
    equal(reload(), {}, "broken databases")
    equal(published(), ["chinook", "odd"], "published")
    client.point("odd")
    file = service.database("odd", text=f"[Database]\nPath={CHINOOK}\nExpsoe=Genre\n")
    equal(reload(), {"odd": f"{file}:3: key Expsoe= is not known: perhaps Expose= is meant"}, "broken databases")
    equal(published(), ["chinook"], "published")
    expect("org.freedesktop.DBus.Error.UnknownObject", client.point, "odd")
    true(f"{file}:3: key Expsoe=" in service.log_text(), "nothing in the log")
    service.database("odd", text=f"[Database]\nPath={CHINOOK}\nExpose=Genre\n")
    drop_in = service.config_dir / "databases.d/odd.conf.d/10.conf"
    drop_in.parent.mkdir()
    drop_in.write_text("[Database]\nWriteTable=Genre\n")
    true("10.conf:2: key WriteTable= is not known: perhaps WriteTables=" in reload()["odd"], "a drop-in")
    equal(published(), ["chinook"], "published")
    shutil.rmtree(drop_in.parent)
    file.unlink()
    equal(reload(), {}, "broken databases")


@test
def misspelt_limits():
    """A reload with an unknown key in sqlipcd.conf keeps all of its settings, and publishes databases"""
    service.limits(StatementsMax=2)
    reload()
    service.limits(StatementMax=2)
    (message,) = reload().values()
    true("sqlipcd.conf:2: key StatementMax= is not known: perhaps StatementsMax= is meant" in message, message)
    true("stay as they were" in message, message)
    equal(published(), ["chinook"], "published")
    statements = [client.prepare("chinook", "SELECT 1") for _ in range(2)]
    expect("LimitsExceeded", client.prepare, "chinook", "SELECT 1")
    service.limits()
    equal(reload(), {}, "broken files")
    statements.append(client.prepare("chinook", "SELECT 1"))
    for statement in statements:
        statement.close()


@test
def broken_limits():
    """A bad value in sqlipcd.conf is reported, and the settings of before stay in force"""
    service.limits(StatementsMax="many", ParkTimeoutSec="0.5", HeapMax="-1")
    broken = reload()
    equal(len(broken), 1, "broken files")
    (message,) = broken.values()
    for key, line in (("StatementsMax", 2), ("HeapMax", 4)):
        true(f"sqlipcd.conf:{line}: {key}=" in message, message)
    statements = [client.prepare("chinook", "SELECT 1") for _ in range(5)]
    for statement in statements:
        statement.close()
    service.limits()
    equal(reload(), {}, "broken files")


@test
def limits_by_reload():
    """A limit that a reload changes applies to new objects, and does not end existing ones"""
    statements = [client.prepare("chinook", "SELECT 1") for _ in range(3)]
    service.limits(StatementsMax=2)
    reload()
    expect("LimitsExceeded", client.prepare, "chinook", "SELECT 1")
    for statement in statements:
        equal(statement.fetch().read().rows, [[1]], "rows of a statement that was there")
        statement.close()
    client.prepare("chinook", "SELECT 1").close()
    service.limits()
    reload()


@test
def descriptions():
    """Description, also with odd characters, is what clients see"""
    service.database("described", Path=CHINOOK, Description="Música – “all of it”; a = b")
    reload()
    more = {name: more for name, _, more in client.manager("ListDatabases")[0]}["described"]
    equal((more["description"], more["mode"]), ("Música – “all of it”; a = b", "read-only"), "more")
    service.database("described", Path=CHINOOK, Description="other")
    reload()
    equal(
        client.properties("org.sqlipc1.Database", "/org/sqlipc1/database/described")["Description"], "other", "Description"
    )
    (service.config_dir / "databases.d/described.conf").unlink()
    reload()


@test
def directories():
    """The first directory wins, drop-ins of all add up, an empty file or a link to /dev/null masks"""
    with Service({"chinook": CHINOOK}, start=False) as several:
        vendor = several.folder / "vendor"
        for name, text in {
            "databases.d/chinook.conf": "[Database]\nPath=/nonexistent\n",
            "databases.d/chinook.conf.d/10.conf": "[Database]\nDescription=vendor's\n",
            "databases.d/chinook.conf.d/20.conf": "[Database]\nDescription=last\n",
            "databases.d/empty.conf": f"[Database]\nPath={CHINOOK}\n",
            "databases.d/linked.conf": f"[Database]\nPath={CHINOOK}\n",
            "databases.d/vendor.conf": f"[Database]\nPath={CHINOOK}\n",
            "sqlipcd.conf": "[Limits]\nStatementsMax=1\n",
        }.items():
            (vendor / name).parent.mkdir(parents=True, exist_ok=True)
            (vendor / name).write_text(text)
        several.database("empty", text="")
        (several.config_dir / "databases.d/linked.conf").symlink_to("/dev/null")
        drop_ins = several.config_dir / "databases.d/chinook.conf.d"
        drop_ins.mkdir()
        (drop_ins / "20.conf").symlink_to("/dev/null")
        several.arguments = (f"--config-dir={vendor}",)
        several.start()
        user = several.client()
        databases = {name: more["description"] for name, _, more in user.manager("ListDatabases")[0]}
        equal(databases, {"chinook": "vendor's", "vendor": ""}, "databases and their descriptions")
        for name in databases:
            user.point(name)
        statements = [user.prepare("chinook", "SELECT 1") for _ in range(2)]
        (several.config_dir / "sqlipcd.conf").unlink()
        user.manager("Reload")
        expect("LimitsExceeded", user.prepare, "chinook", "SELECT 1")
        for statement in statements:
            statement.close()


@test
def twice():
    """A repeated key is reported with both lines, in the log and in the reply"""
    service.database("odd", text=f"[Database]\nPath=/x\nPath={CHINOOK}\n")
    (info,) = client.manager("Reload")
    file = service.config_dir / "databases.d/odd.conf"
    equal(info["warnings"], [f"{file}:3: key Path= is on line 2 already; this one counts"], "warnings")
    true(info["warnings"][0] in service.log_text(), "nothing in the log")
    client.point("odd")
    file.unlink()
    equal(client.manager("Reload")[0]["warnings"], [], "warnings")


@test
def not_for_files():
    """A FIFO, a directory and a dangling link among the files are reported, and other databases are published"""
    folder = service.config_dir / "databases.d"
    os.mkfifo(folder / "fifo.conf")
    (folder / "folder.conf").mkdir()
    (folder / "nowhere.conf").symlink_to("/nonexistent")
    os.mkfifo(service.config_dir / "pipe")
    (service.config_dir / "sqlipcd.conf").unlink()
    (service.config_dir / "sqlipcd.conf").symlink_to("pipe")
    broken = reload()
    equal(sorted(broken), ["fifo", "folder", "nowhere", "sqlipcd.conf"], "broken files")
    client.point()
    for name in ("fifo.conf", "nowhere.conf"):
        (folder / name).unlink()
    (folder / "folder.conf").rmdir()
    (service.config_dir / "sqlipcd.conf").unlink()
    service.limits()
    equal(reload(), {}, "broken files")


@test
def reload_keeps():
    """Reload keeps what did not change, with its workers; removed databases finish their runs"""
    # No worker, and no run without a reader, ends by itself.
    with Service({"chinook": CHINOOK}, limits={**PATIENT, "WorkerIdleSec": 600}) as lasting:
        keep_through_reload(lasting, lasting.client())


def keep_through_reload(service, client):
    path = service.data / "going.sqlite"
    db = sqlite3.connect(path)
    db.execute(
        "CREATE TABLE t AS "
        "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n LIMIT 100000) SELECT x, 'text' FROM n"
    )
    db.commit()
    db.close()
    service.database("going", Path=path)
    client.manager("Reload")
    kept = client.prepare("chinook", "SELECT 1")
    going = client.prepare("going", "SELECT * FROM t")
    run = going.fetch()
    run.frame()
    workers = service.workers()
    (service.config_dir / "databases.d/going.conf").unlink()
    client.manager("Reload")
    equal(set(workers) - set(service.workers()), set(), "workers that ended")
    expect("org.freedesktop.DBus.Error.UnknownObject", client.query, "going", "SELECT 1")
    equal(kept.fetch().read().rows, [[1]], "rows of the database that stayed")
    equal(run.counted()[1], 100000, "rows of a run on the removed database")
    wait_for(lambda: going.number not in [s[0] for s in client.manager("ListStatements")[0]], "its statement ends")
    kept.close()


@test
def reload_changes():
    """A changed Path= is another database, at once"""
    for n in (1, 2):
        path = service.data / f"version{n}.sqlite"
        db = sqlite3.connect(path)
        db.execute("CREATE TABLE v(n)")
        db.execute("INSERT INTO v VALUES(?)", (n,))
        db.commit()
        db.close()
        service.database("versioned", Path=path)
        reload()
        equal(client.query("versioned", "SELECT n FROM v").read().rows, [[n]], "rows")


@test
def sighup():
    """SIGHUP reloads"""
    service.database("late", Path=CHINOOK)
    true("late" not in published(), "published before it was asked to")
    os.kill(service.pid(), signal.SIGHUP)
    wait_for(lambda: "late" in published(), "SIGHUP reloads")


@test
def what_is_logged():
    """SQL is logged only at debug, and an invalid level is reported"""
    for level, there in (("info", False), ("debug", True), ("7", True), ("loud", False)):
        with Service({"chinook": CHINOOK}, environment={"SQLIPC_LOG_LEVEL": level}) as logging:
            logging.client().query("chinook", "SELECT 'a secret'").read()
            equal("a secret" in logging.log_text(), there, f"whether SQL is logged at {level}")
            equal("no log level" in logging.log_text(), level == "loud", f"whether {level} is refused")


@test
def command_line():
    """--help and --version print their texts; unknown options are refused with exit code 2"""
    done = service.run(SQLIPCD, "--version")
    equal(done.returncode, 0, "exit code")
    true(
        client.properties("org.sqlipc1.Manager")["DaemonVersion"].encode() in done.stdout, f"--version printed {done.stdout}"
    )
    done = service.run(SQLIPCD, "--help")
    equal(done.returncode, 0, "exit code")
    for option in ("--system", "--user", "--address", "--config-dir", "--help", "--version"):
        true(option.encode() in done.stdout, f"{option} is not in --help")
    for wrong in (["--frobnicate"], ["--system", "--user"], ["argument"]):
        done = service.run(SQLIPCD, *wrong)
        equal(done.returncode, 2, f"exit code of {wrong}")
        true(done.stderr, f"nothing said about {wrong}")


@test
def second_daemon():
    """A second daemon on the same bus exits with a message"""
    done = service.run(SQLIPCD, f"--address={service.address}", f"--config-dir={service.config_dir}")
    true(done.returncode not in (0, 2), f"exit code {done.returncode}")
    true(b"org.sqlipc1" in done.stderr, f"said {done.stderr}")
    client.point()


@test
def without_configuration():
    """Without any configuration the list is empty, and nothing fails"""
    with Service() as bare:
        equal(bare.client().manager("ListDatabases"), [[], {"broken": {}}], "databases")
        shutil.rmtree(bare.config_dir)
        bare.driver.manager("Reload")
        equal(bare.client().manager("ListDatabases")[0], [], "databases")


main(service)
