#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""sqlipcctl migrate and check --queries from SQLite to rqlite: three nodes of it, or of its imitation (rqlite.py)."""
import contextlib
import json
import os
import pwd
import sqlite3
import tempfile

from engine_unit import ENGINE, EngineUnit
from harness import CHINOOK, CTL, PATIENT, Service, main
from rqlite import Cluster
from tap import equal, test, true

OK, FAILED = 0, 1
USER = pwd.getpwuid(os.geteuid()).pw_name


@contextlib.contextmanager
def migrating(path):
    """A service that publishes a file as `old`, and the configuration of an empty cluster."""
    with Cluster() as cluster, EngineUnit(program=ENGINE) as unit:
        with Service({"old": path}, environment=unit.environment, limits=PATIENT) as service:
            password = service.folder / "password"
            password.write_text("sesame\n")
            password.chmod(0o600)
            service.conf = service.folder / "new.conf"
            service.conf.write_text(
                f"[Database]\nEngine=rqlite\nConnection={cluster.connection}\nPasswordFile={password}\n"
                "AllowUsers=*\nMode=read-write\nWriteUsers=*\n"
            )
            yield service


def run(service, verb, *arguments, code=OK):
    user = [f"--service-user={USER}"] if verb == "migrate" else []
    done = service.run(CTL, f"--address={service.address}", f"--config-dir={service.config_dir}", verb, "old",
                       f"--to={service.conf}", "--json", *user, *arguments)  # fmt: skip
    equal(done.returncode, code, f"exit code of {verb} {arguments}, which said {done.stderr.decode()!r}")
    return json.loads(done.stdout) if done.stdout else done.stderr.decode()


@test
def whole_chinook():
    """chinook arrives exactly, the next call copies nothing, statements are checked, and the switch is one reload"""
    with migrating(CHINOOK) as service:
        told = run(service, "migrate", "--yes")
        equal((told["copied"], len(told["tables"]), told["omitted"], told["refused"]), (15607, 11, [], []), "outcome")
        log = service.folder / "log.sql"
        log.write_text("SELECT Name FROM Track WHERE TrackId = ?1;\nSELECT Nome FROM Track;\nBEGIN IMMEDIATE;\n")
        rejected = [r["sql"] for r in run(service, "check", f"--queries={log}", code=FAILED)["rejected"]]
        equal(rejected, ["SELECT Nome FROM Track", "BEGIN IMMEDIATE"], "statements that are not accepted")
        again = run(service, "migrate", "--yes", "--switch")
        equal((again["copied"], again["tables"], again["switched"]), (0, told["tables"], True), "the second call")
        rows = service.client().query("old", "SELECT count(*), sum(TrackId) FROM Track").read().rows
        equal(rows, [[3503, 3503 * 3504 // 2]], "rows of the new database")
        tables = service.client().query("old", "SELECT name FROM sqlite_schema WHERE name LIKE 'sqlipc%'").read().rows
        true(tables == [], f"left: {tables}")


@test
def changed_meanwhile():
    """A table that was changed after it was copied is copied again, with views and triggers; bad texts are named before"""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/old.sqlite"
        os.chmod(folder, 0o755)
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.executescript(
                "CREATE TABLE t(k TEXT PRIMARY KEY, x TEXT) WITHOUT ROWID; CREATE VIEW v AS SELECT x FROM t;"
                "CREATE TABLE u(x); CREATE TRIGGER r AFTER DELETE ON u BEGIN SELECT 1; END; CREATE INDEX i ON t(x);"
                "INSERT INTO t VALUES ('a', CAST(x'610062' AS TEXT)), ('b', CAST(x'00ff' AS TEXT));"
            )
            with migrating(path) as service:
                message = run(service, "migrate", "--yes", code=FAILED)
                true("t.x: rqlite cannot keep texts that are not UTF-8" in message, message)
                db.executescript("UPDATE t SET x = 'c' WHERE k = 'b'")
                equal(run(service, "migrate", "--yes")["copied"], 2, "rows")
                db.executescript("INSERT INTO t VALUES ('d', 'e')")
                told = run(service, "migrate", "--yes", "--switch")
                equal((told["copied"], told["switched"]), (3, True), "outcome")
                count = "SELECT count(*) FROM sqlite_schema WHERE name IN ('i', 'r', 't', 'v')"
                equal(service.client().query("old", count).read().rows, [[4]], "objects")


main()
