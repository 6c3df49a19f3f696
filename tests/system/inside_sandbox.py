# SPDX-License-Identifier: LGPL-2.1-or-later
"""The effects of the sandbox. probe.py makes forbidden attempts in the service's sandbox, and as the same user without a
sandbox, which shows attempts that could never succeed. Other tests show that databases are served from the sandbox."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess

from machine import (
    HOME, STATE, copy_of_chinook, done, dropped, equal, main_pid, published, query, refused, sanitized, status, stop,
    test, true, uid, unit, wait_for, workers,
)

PROBE = HOME / "tests/system/probe.py"
SYSTEM_UNIT = next(p for p in map(pathlib.Path, ("/usr/lib/systemd/system", "/lib/systemd/system")) if p.is_dir())
HOME_DROP_IN = HOME / "docs/examples/home.conf"


def exposure(unit_file, limit):
    """Fails if systemd's exposure level is above `limit`, in tenths."""
    done("systemd-analyze", "security", "--offline=yes", "--no-pager", f"--threshold={limit}", unit_file)


@test
def exposure_by_systemd():
    """systemd-analyze security rates the unit 0.3 or less, and 0.5 or less with the drop-in for home directories"""
    exposure("sqlipcd.service", 3)
    with dropped(HOME_DROP_IN.read_text()):
        exposure("sqlipcd.service", 5)


@contextlib.contextmanager
def bait():
    """Creates the targets of the probe, all of which are open to every user."""
    home, shared = pathlib.Path("/home/sqlipc-probe"), pathlib.Path("/srv/sqlipc-probe")
    program = pathlib.Path("/usr/lib/sqlipc-test/setuid-id")
    home.mkdir(mode=0o755)
    (home / "open").write_text("open")
    shared.mkdir()
    shared.chmod(0o777)
    shutil.copy("/usr/bin/id", program)
    program.chmod(0o4755)
    pathlib.Path("/tmp/sqlipc-probe").write_text("open")
    os.symlink("null", "/dev/sqlipc-probe")
    try:
        yield
    finally:
        shutil.rmtree(home)
        shutil.rmtree(shared)
        for path in (program, "/tmp/sqlipc-probe", "/dev/sqlipc-probe"):
            os.unlink(path)


def probe_inside():
    """Runs the probe in the service's sandbox; returns its findings. The sandbox must allow Python to be executed, too."""
    python = os.path.realpath("/usr/bin/python3")
    with dropped(f"[Service]\nExecPaths={python}\nExecStartPre={python} -B {PROBE} {STATE}/probe.json\n"):
        done("systemctl", "start", "sqlipcd.service")
        return json.loads((STATE / "probe.json").read_text())


@test
def sandbox_holds():
    """Inside the sandbox every forbidden attempt fails that succeeds outside, and all that the service needs works"""
    with bait():
        inside = probe_inside()
        done("/usr/bin/python3", "-B", PROBE, f"{STATE}/probe-outside.json", user="sqlipc")
    outside = json.loads((STATE / "probe-outside.json").read_text())
    everything = inside["attempts"] | inside["anywhere"]
    equal({name for name, said in everything.items() if said == "allowed"}, set(), "what the sandbox lets through")
    equal({name: said for name, said in outside["attempts"].items() if said != "allowed"}, {}, "what fails outside, too")
    equal({name: said for name, said in inside["needed"].items() if said != "allowed"}, {}, "what the service lacks")
    for key, value in {"CapBnd": "0" * 16, "CapEff": "0" * 16, "NoNewPrivs": "1", "Seccomp": "2"}.items():
        equal(inside["status"][key].strip(), value, key)
    filters = [int(place["status"]["Seccomp_filters"]) for place in (outside, inside)]
    true(filters[0] < filters[1], f"filters of system calls outside and inside: {filters}")


@test
def nothing_else_is_executed():
    """As installed, not even a shell can be started in the service's place"""
    with dropped("[Service]\nExecStartPre=/bin/sh -c true\n"):
        refused("systemctl", "start", "sqlipcd.service")
        equal(unit("Result"), "exit-code", "result")


@test
def processes_are_confined():
    """Supervisor and workers run as the service's user without rights; workers under one more filter of their own"""
    query("SELECT 1")
    pid = main_pid()
    helpers = workers(pid)
    true(helpers, "no worker")
    for process in [pid, *helpers]:
        equal(status(process, "Uid").split(), [str(uid("sqlipc"))] * 4, "uid")
        equal(status(process, "Groups").split(), [str(uid("sqlipc"))], "groups")
        equal(status(process, "CapEff"), "0" * 16, "rights")
        equal(status(process, "NoNewPrivs"), "1", "no new rights")
        equal(status(process, "Umask"), "0077", "umask")
    own_filters = 0 if sanitized else 1
    for helper in helpers:
        more = int(status(helper, "Seccomp_filters")) - int(status(pid, "Seccomp_filters"))
        equal(more, own_filters, "filters that a worker has more")


@test
def priorities():
    """A worker that computes for long runs at a lower priority; when idle it restores it, or ends if that is forbidden"""
    endless = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
    query("SELECT 1")
    pid = main_pid()
    normal = os.getpriority(os.PRIO_PROCESS, pid)  # not 0 if the whole test is run at a lower priority

    def lowered():
        found = []
        for worker in workers(pid):
            with contextlib.suppress(ProcessLookupError):  # The worker has just ended.
                if os.getpriority(os.PRIO_PROCESS, worker) == normal + 10:
                    found.append(worker)
        return found

    asks = ["ipcq-cli", "--system", "chinook", endless]
    with subprocess.Popen(asks, user="sqlipc-reader", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as computing:
        try:
            (worker,) = wait_for(lowered, "a worker has a lower priority")
            limits = pathlib.Path(f"/proc/{worker}/limits").read_text()
        finally:
            computing.terminate()
    # LimitNICE= of the unit, if the maker of this container had the right to grant it
    allowed = int(re.search(r"^Max nice priority +(\d+)", limits, re.M)[1]) >= 20 - normal
    wait_for(lambda: not lowered(), "none has a lower priority")
    equal(worker in workers(pid), allowed, "whether the worker went on")


@test
def state_directory():
    """A database in the service's own folder is served, also one in WAL mode that no other process has open"""
    query("SELECT 1")
    for mode in ("delete", "wal"):
        path = copy_of_chinook(STATE / f"{mode}.sqlite")
        database = sqlite3.connect(path)
        database.execute(f"PRAGMA journal_mode={mode}")
        database.close()
        shutil.chown(path, "sqlipc", "sqlipc")
        with published("own", path, "AllowUsers=*"):
            equal(query("SELECT count(*) FROM Genre", "own"), "25\n", mode)
    stop()
    for path in STATE.glob("*.sqlite*"):
        path.unlink()


@test
def group_by_drop_in():
    """A drop-in with SupplementaryGroups= serves a database of a group, in WAL mode while its owner has it open"""
    folder = pathlib.Path("/srv/staff")
    folder.mkdir()
    shutil.chown(folder, "sqlipc-member", "accounting")
    folder.chmod(0o2750)
    path = copy_of_chinook(folder / "staff.sqlite")
    shutil.chown(path, "sqlipc-member", "accounting")
    path.chmod(0o640)
    owner = sqlite3.connect(path, isolation_level=None)
    owner.execute("PRAGMA journal_mode=wal")
    owner.execute("INSERT INTO Genre(Name) VALUES('Ours')")
    for name in ("staff.sqlite-wal", "staff.sqlite-shm"):
        shutil.chown(folder / name, "sqlipc-member", "accounting")
    with published("staff", path, "AllowUsers=*"):
        query("SELECT 1", "staff", run=refused)
        with dropped("[Service]\nSupplementaryGroups=accounting\n"):
            equal(query("SELECT Name FROM Genre ORDER BY GenreId DESC LIMIT 1", "staff"), "Ours\n", "its newest row")
    owner.close()
    shutil.rmtree(folder)


@test
def home_by_drop_in():
    """A database in a home directory is unreachable until a documented drop-in opens all homes or its folder"""
    home = pathlib.Path("/home/sqlipc-reader")
    home.mkdir(mode=0o755)
    path = copy_of_chinook(home / "mine.sqlite", "sqlipc-reader")
    with published("mine", path, "AllowUsers=*"):
        query("SELECT 1", "mine", run=refused)
        for drop_in in (HOME_DROP_IN.read_text(), f"[Service]\nProtectHome=tmpfs\nBindReadOnlyPaths={home}\n"):
            with dropped(drop_in):
                equal(query("SELECT count(*) FROM Genre", "mine"), "25\n", drop_in)
    shutil.rmtree(home)
