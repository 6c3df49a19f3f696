#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""sqlipcctl as a program: the output of each verb for each user, its error messages, and its exit codes."""
import codecs
import fcntl
import grp
import json
import os
import pathlib
import pty
import pwd
import re
import select
import shutil
import signal
import sqlite3
import struct
import subprocess
import tempfile
import termios
import time

import broken_schema
from channel import Channel
from harness import (
    CHINOOK, CTL, PATIENCE, PATIENT, SOURCE_ROOT, UID_A, UID_B, UID_DAEMON, Service, expect, main, wait_for,
)  # fmt: skip
from relay import BRIDGE, need_bridge
from tap import Skip, equal, test, true

OK, FAILED, USAGE = 0, 1, 2
ME = pwd.getpwuid(os.geteuid()).pw_name
ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT x, 'some text to fill pages' FROM n"
SCAN = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
# A sequence that would clear the screen and set a title if it reached the terminal.
HARMFUL = "A store\\n\x1b[2J\x1b]0;title\x07"
SHOWN = "A store\\n\\x1b[2J\\x1b]0;title\\a"

service = Service({"chinook": {"Path": CHINOOK, "Description": HARMFUL}, "other": {"Path": CHINOOK}}, limits=PATIENT)


def command(*arguments, on=service):
    return [CTL, f"--address={on.address}", f"--config-dir={on.config_dir}", *arguments]


def ask(*arguments, code=OK, on=service, **keywords):
    """Runs sqlipcctl; returns the output of both streams. It must end with `code`."""
    done = on.run(*command(*arguments, on=on), **keywords)
    out, err = done.stdout.decode(), done.stderr.decode()
    equal(done.returncode, code, f"exit code of {arguments}, which said {err!r} and printed {out!r}")
    true("\x1b" not in out + err, f"{arguments} let an escape through: {out + err!r}")
    return out, err


def ask_json(*arguments, **keywords):
    return json.loads(ask("--json", *arguments, **keywords)[0])


def fields(text):
    """The output of `status` and `security`, by title."""
    found = {}
    for line in text.splitlines():
        title, colon, value = line.partition(": ")
        if colon:
            found.setdefault(title.strip(), []).append(value)
    return found


def need_root(what):
    if os.geteuid() != 0:
        raise Skip(f"only root {what}")


def as_uid(uid):
    """Returns keywords that run a program as another user."""
    need_root("can become another user")
    return {"user": uid, "group": uid, "extra_groups": []}


# ---- what there is ----


@test
def databases():
    """list: names and descriptions, safe to show, and whole as JSON"""
    out, err = ask("list")
    lines = out.splitlines()
    equal(lines[0].split(), ["NAME", "MODE", "DESCRIPTION"], "head")
    equal(lines[1].split(None, 2), ["chinook", "read-only", SHOWN], "row")
    equal(lines[-1], "2 databases listed.", "summary")
    equal(err, "", "what it said")
    equal([line.split()[0] for line in ask("list", "--no-legend")[0].splitlines()], ["chinook", "other"], "without legend")
    first = ask_json("list")[0]
    equal(first["name"], "chinook", "name")
    equal(first["description"], HARMFUL.replace("\\n", "\n"), "description")
    equal(first["object"], "/org/sqlipc1/database/chinook", "object")


@test
def status_of_the_service():
    """status: the properties of the manager, the process, and errors of the configuration"""
    bad = service.database("bad", text="[Database]\nPath=relative\n")
    try:
        true("Path=" in ask("reload", code=FAILED)[1], "reload tells what is broken")
        told = ask_json("status")
        equal(told["running"], True, "running")
        equal(told["pid"], service.pid(), "pid")
        equal(told["databases"], 2, "databases")
        true(abs(told["since"] - time.time()) < 3600, f"since {told['since']}")
        counters = service.counters()
        equal(told["total-runs"], counters["TotalRuns"], "runs")
        equal(told["daemon-version"], counters["DaemonVersion"], "version")
        true("bad.conf" in told["broken"]["bad"], f"broken {told['broken']}")
        shown = fields(ask("status")[0])
        equal(shown["State"], ["running"], "state")
        equal(shown["Databases"], ["2"], "databases")
        true("bad.conf" in shown["Broken"][0], f"broken {shown['Broken']}")
        true("1 entries" in ask("list")[1], "list says that something is wrong")
    finally:
        bad.unlink()
    equal(ask("reload"), ("Published: 2 databases.\n", ""), "reload")


@test
def reload_says_what_is_odd():
    """reload: warnings are printed, and are no failure; errors are printed, and are a failure"""
    odd = service.database("odd", text=f"[Database]\nPath={CHINOOK}\nPath={CHINOOK}\n")
    try:
        out, err = ask("reload")
        equal(out, "Published: 3 databases.\n", "what it printed")
        true(err.startswith("sqlipcctl: warning: ") and "odd.conf:3" in err and "Path=" in err, err)
        odd.write_text("[Database]\n")
        true("sqlipcctl: error: odd: " in ask("reload", code=FAILED)[1], "error")
        equal(list(ask_json("reload", code=FAILED)["broken"]), ["odd"], "document")
    finally:
        odd.unlink()
        ask("reload")


@test
def status_of_a_database():
    """status DATABASE: its state in the service, its files, its runs"""
    client = service.client()
    run = client.query("chinook", ENDLESS)
    told = ask_json("status", "chinook")
    equal((told["name"], told["path"], told["allow-users"]), ("chinook", str(CHINOOK), ["*"]), "name, path, users")
    equal([entry["run"] for entry in told["runs"]], [run.number], "runs")
    equal(ask_json("status", "other")["runs"], [], "runs on another")
    shown = fields(ask("status", "chinook")[0])
    equal((shown["Path"], shown["Runs"], shown["Description"]), ([str(CHINOOK)], ["1"], [SHOWN]), "path, runs, description")
    true("no database" in ask("status", "nosuch", code=FAILED)[1], "what it says of one that is not there")
    service.forget()


@test
def database_that_is_not_published():
    """status, security DATABASE: the reason if it is not published: a broken file, or a file that was not read yet"""
    added = service.database("added", Path=CHINOOK)
    try:
        true("has not read" in ask("status", "added", code=FAILED)[1], "before the reload")
        added.write_text("[Database]\nPath=relative\n")
        ask("reload", code=FAILED)
        for verb in ("status", "security"):
            err = ask(verb, "added", code=FAILED)[1]
            true("added.conf:2: Path=relative" in err, f"{verb} says {err!r}")
    finally:
        added.unlink()
        ask("reload")


@test
def statements_and_runs():
    """statements, runs: numbers, owners and states; cancel ends them by either number"""
    need_root("cancels by the manager")
    client = service.client()
    statement = client.prepare("chinook", ENDLESS)
    run = statement.fetch()
    scan = client.query("other", SCAN)
    wait_for(lambda: "parked" in service.states(), "the reader that does not read is parked")
    listed = {entry["run"]: entry for entry in ask_json("runs")}
    equal(set(listed), {run.number, scan.number}, "runs")
    equal(listed[run.number]["statement"], statement.number, "statement")
    equal(listed[run.number]["state"], "parked", "state")
    equal((listed[scan.number]["database"], listed[scan.number]["client"]), ("other", client.name()), "database, client")
    (entry,) = ask_json("statements")
    equal((entry["statement"], entry["running"]), (statement.number, run.number), "statement and run")
    true(any(line.split()[:2] == [str(run.number), "chinook"] for line in ask("runs")[0].splitlines()), "row")

    equal(ask_json("cancel", str(statement.number), str(scan.number)), {"cancelled": [run.number, scan.number]}, "cancelled")
    wait_for(lambda: "running" not in service.states() and "parked" not in service.states(), "the runs end")
    err = ask("cancel", str(scan.number), "7", code=FAILED)[1]
    true("There is no run 7" in err, err)
    service.forget()
    equal(ask("runs"), ("0 runs listed.\n", ""), "no runs")
    equal(ask("watches"), ("0 watches listed.\n", ""), "no watches")
    equal(ask_json("statements"), [], "no statements")


@test
def channels():
    """channels: numbers, owners and states, also in status and top; cancel ends the run of one"""
    need_root("cancels by the manager")
    client = service.client()
    idle, busy = Channel(client, "chinook"), Channel(client, "other")
    run = busy.query(SCAN)
    wait_for(lambda: "running" in service.states(), "the run is under way")
    listed = {entry["database"]: entry for entry in ask_json("channels")}
    equal(listed["other"]["state"], "running", "state of the channel with a query")
    true(listed["chinook"]["state"] in ("resting", "idle"), f"state of the other channel: {listed['chinook']}")
    equal({entry["client"] for entry in listed.values()}, {client.name()}, "client")
    number = listed["other"]["channel"]
    true(any(line.split()[:2] == [str(number), "other"] for line in ask("channels")[0].splitlines()), "row")
    equal([entry["channel"] for entry in ask_json("status", "other")["channels"]], [number], "channels of a database")
    equal((fields(ask("status")[0])["Channels"], ask_json("status")["n-channels"]), (["2"], 2), "channels in all")
    equal([entry["channels"] for entry in top_rows() if entry["client"] == client.name()], [2], "channels in top")
    equal(ask_json("cancel", str(number)), {"cancelled": [number]}, "cancelled")
    failure = expect("Cancelled", busy.read, run)
    true("cancelled" in failure.message, failure.message)
    for channel in (idle, busy):
        channel.close()
    service.forget()
    equal(ask("channels"), ("0 channels listed.\n", ""), "no channels")


@test
def others():
    """A user who is not root sees and cancels the runs of that user alone"""
    who = as_uid(UID_B)
    mine, theirs = service.client(uid=UID_A), service.client(uid=UID_B)
    foreign, own = mine.query("chinook", ENDLESS), theirs.query("chinook", ENDLESS)
    equal([entry["run"] for entry in ask_json("runs", **who)], [own.number], "runs")
    equal({entry["run"] for entry in ask_json("runs")}, {own.number, foreign.number}, "root's")
    for verb in (("cancel", str(foreign.number)), ("reload",)):
        err = ask(*verb, code=FAILED, **who)[1]
        true("Only root" in err and "org.sqlipc1.Error" not in err, f"{verb}: {err!r}")
    equal(ask_json("cancel", str(own.number), **who), {"cancelled": [own.number]}, "cancelled")
    expect("Cancelled", own.read)
    own = theirs.query("chinook", ENDLESS)
    equal({entry["uid"] for entry in top_rows(**who)}, {UID_B}, "uids in top")
    true({UID_A, UID_B} <= {entry["uid"] for entry in top_rows()}, "uids in root's top")
    service.forget()


# ---- top ----


def top_rows(**keywords):
    return json.loads(ask("--json", "top", "--count=1", **keywords)[0])["clients"]


@test
def top_lines():
    """top --json: an object a line; rates are differences over the time between"""
    equal(len(ask("--json", "top", "--count=2", "--delay=0.1")[0].splitlines()), 2, "lines")
    client = service.client()
    run = client.query("chinook", "SELECT 1")
    run.read()
    process = subprocess.Popen(
        list(map(str, command("--json", "top", "--delay=0.2"))),
        env=service.environment,
        stdout=subprocess.PIPE,
        text=True,
    )

    def look():
        line = json.loads(process.stdout.readline())
        return line, next(row for row in line["clients"] if row["client"] == client.name())

    _, first = look()
    true("rows-per-second" not in first, "the first look has rates")
    bulk = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n LIMIT 1000) SELECT x FROM n"
    client.query("chinook", bulk).read()
    before = after = first
    while after["rows"] < first["rows"] + 1000:  # the query may come between any two looks, or end behind several
        before = after
        line, after = look()
        expected = (after["rows"] - before["rows"]) * 1000000 // line["interval-usec"]
        true(abs(after["rows-per-second"] - expected) <= 1, f"{after['rows-per-second']} rows/s instead of {expected}")
    equal(after["rows"] - first["rows"], 1000, "rows between")
    true(after["bytes-per-second"] > after["rows-per-second"] > 0, "bytes")
    process.terminate()
    equal(process.wait(PATIENCE), OK, "exit code")
    process.stdout.close()
    service.forget()


@test
def top_order():
    """top --sort: the largest first, in a table without a terminal"""
    idle, busy = service.client(), service.client()
    idle.query("chinook", "SELECT 1").read()
    runs = [busy.query("chinook", ENDLESS) for _ in range(3)]
    equal(len(runs), 3, "runs")
    lines = ask("top", "--count=1", "--sort=runs")[0].splitlines()
    true(re.match(rf"{len(top_rows())} clients?, ", lines[0]) and " 3 runs, " in lines[0], lines[0])
    equal(lines[2].split()[:2], ["CLIENT", "PROCESS"], "head")
    equal(lines[3].split()[0], busy.name(), "first")
    service.forget()


class Screen:
    """A verb on a terminal of its own."""

    def __init__(self, *arguments, rows=24, columns=120, verb="top", environment=None):
        self.master, slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.process = subprocess.Popen(
            list(map(str, command(verb, *arguments))),
            env=service.environment | {"TERM": "xterm"} | (environment or {}),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        self.seen, self.decoder = "", codecs.getincrementaldecoder("utf-8")()

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self):
        if select.select([self.master], [], [], 0.1)[0]:
            self.seen += self.decoder.decode(os.read(self.master, 65536))

    def wait_for(self, text):
        """Reads until `text` is shown; forgets what was up to there."""
        end = time.monotonic() + PATIENCE
        while text not in self.seen:
            true(time.monotonic() < end, f"{text!r} did not come; what came: {self.seen!r}")
            self.read()
        before, _, self.seen = self.seen.partition(text)
        return before

    def rest(self):
        """All that it shows, once it has ended well."""
        equal(self.end(close=False), OK, "exit code")
        while select.select([self.master], [], [], 0)[0]:
            self.read()
        os.close(self.master)
        os.close(self.slave)
        return self.seen

    def end(self, close=True):
        """Waits for the end; returns the exit code. The terminal must be restored."""
        wait_for(lambda: self.read() or self.process.poll() is not None, "top ends")  # read: a full terminal would stop it
        code = self.process.returncode
        equal(termios.tcgetattr(self.slave), self.before, "settings of the terminal")
        if close:
            os.close(self.master)
            os.close(self.slave)
        return code


@test
def narrow_terminals():
    """list, runs, top: columns that do not fit into 80 are left out, but never the process; wide terminals show all"""
    client = service.client()
    run = client.query("chinook", ENDLESS)
    wait_for(lambda: "parked" in service.states(), "the run is parked")
    for verb, wide in (("top", "CHANNELS"), ("runs", "CLIENT")):
        for columns in (80, 200):
            screen = Screen("--no-pager", *(["--count=1"] if verb == "top" else []), columns=columns, verb=verb)
            shown = screen.rest()
            lines = [re.sub(r"\x1b\[[A-Z]", "", line) for line in shown.splitlines()]
            true(max(map(len, lines)) <= columns, f"{verb} on {columns} columns: {lines}")
            true("PROCESS" in shown and "python3" in shown, f"{verb} names no process: {lines}")
            equal(wide in shown, columns == 200, f"whether {verb} shows {wide} on {columns} columns")
    equal([entry["process"] for entry in ask_json("runs")], ["python3"], "process of a run")
    equal(run.number, ask_json("runs")[0]["run"], "run")
    service.forget()


@test
def pager():
    """A terminal's output goes through $SYSTEMD_PAGER, not with --no-pager and not from a pipe"""
    paged = {"SYSTEMD_PAGER": "sed s/^/paged:/"}
    true("paged:chinook" in Screen(verb="list", environment=paged).rest(), "list on a terminal")
    true("paged:" not in Screen("--no-pager", verb="list", environment=paged).rest(), "--no-pager")
    true("paged:" not in service.run("env", "SYSTEMD_PAGER=sed s/^/paged:/", *command("list")).stdout.decode(), "a pipe")


@test
def clients():
    """clients: bus name, process and user of each"""
    client = service.client()
    client.point()
    (row,) = [row for row in ask_json("clients") if row["client"] == client.name()]
    equal((row["process"], row["uid"], row["pid"]), ("python3", os.geteuid(), os.getpid()), "process, user, number")
    true(any(line.split()[:2] == [client.name(), "python3"] for line in ask("clients")[0].splitlines()), "row")
    service.forget()


@test
def json_for_people():
    """--json=pretty has the same values in lines, --json=off is the table; keys are of one style"""
    short, pretty = (ask(f"--json={how}", "status")[0] for how in ("short", "pretty"))
    equal(json.loads(pretty).keys(), json.loads(short).keys(), "keys")
    true(len(short.splitlines()) == 1 and '\n  "running": true' in pretty, pretty)
    equal(ask("--json=off", "list"), ask("list"), "off")
    equal(ask("--json"), ask("--json", "list"), "no verb")
    odd = [key for key in json.loads(short) if not re.fullmatch(r"[a-z]+(-[a-z]+)*", key)]
    equal(odd, [], "keys of another style")


@test
def mistyped_verbs():
    """A misspelt verb gets a suggestion; an unknown word does not"""
    for wrong, right in (("staus", "status"), ("statemens", "statements"), ("relaod", "reload")):
        err = ask(wrong, code=USAGE)[1]
        true(f'did you mean "{right}"?' in err, f"no suggestion in {err!r}")
    true("did you mean" not in ask("frobnicate", code=USAGE)[1], "a suggestion for a word that is like none")


@test
def other_hosts():
    """--host: over ssh, with uids as numbers; --machine: a sentence if there is none; neither for verbs of files"""
    need_bridge()
    folder = service.folder / "ssh"
    folder.mkdir()
    script = f"#!/bin/sh\nprintf '%s ' \"$@\" >{folder}/arguments\nexec {BRIDGE} --bus-path='{service.address}'\n"
    (folder / "ssh").write_text(script)
    (folder / "ssh").chmod(0o755)
    client = service.client()
    client.point()

    def remote(*arguments):
        return service.run("env", f"PATH={folder}:{os.environ['PATH']}", CTL, *arguments)

    listed = remote("-H", "me@there", "list")
    true(b"chinook" in listed.stdout, listed)
    true("me@there" in (folder / "arguments").read_text(), (folder / "arguments").read_text())
    rows = json.loads(remote("--host=there", "--json", "clients").stdout)
    (row,) = [row for row in rows if row["client"] == client.name()]
    true("process" not in row, f"a process of another host: {row}")
    equal(remote("--host=there", "cat", "chinook").returncode, USAGE, "cat of another host")
    done = service.run(CTL, "--machine=no-such-container", "list")
    equal(done.returncode, FAILED, "exit code of a container that is not there")
    true(b"container's bus cannot be reached" in done.stderr, done.stderr)
    service.forget()


@test
def top_on_a_terminal():
    """top on a terminal: redraws, follows the window's size, ends by q and by a signal, and restores the terminal"""
    client = service.client()
    client.query("chinook", "SELECT 1").read()
    screen = Screen("--delay=3600", rows=24, columns=120)
    screen.wait_for("CLIENT")
    screen.wait_for(client.name())
    screen.wait_for("\x1b[J")
    screen.resize(3, 60)
    drawn = screen.wait_for("\x1b[J")
    equal(drawn.count("\n"), 2, f"lines of a terminal of three, which were {drawn!r}")
    os.write(screen.master, b"xq")
    equal(screen.end(), OK, "exit code by q")

    screen = Screen("--delay=0.1")
    for _ in range(3):  # each look begins at home
        screen.wait_for("\x1b[H")
    os.kill(screen.process.pid, signal.SIGTERM)
    equal(screen.end(), OK, "exit code by a signal")
    service.forget()


@test
def top_outlives_the_service():
    """top continues after the service ends and starts again"""
    with Service({"chinook": CHINOOK}) as mortal:
        mortal.client().point()
        process = subprocess.Popen(
            list(map(str, command("--json", "top", "--delay=0.1", on=mortal))),
            env=mortal.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        true(json.loads(process.stdout.readline())["clients"], "no client before")
        mortal.stop()
        while json.loads(process.stdout.readline())["clients"]:
            pass
        mortal.start()
        mortal.client().point()
        while not json.loads(process.stdout.readline())["clients"]:
            pass
        process.terminate()
        _, err = process.communicate(timeout=PATIENCE)
        equal((process.returncode, err), (OK, ""), "exit code and messages")


# ---- the configuration ----


def check(folder, *arguments, code=OK, bus=f"--address={service.address}"):
    # Units that this machine's own service manager knows do not belong here.
    alone = ["env", "DBUS_SYSTEM_BUS_ADDRESS=unix:path=/nonexistent"]
    done = service.run(*alone, CTL, "check", bus, f"--config-dir={folder}", f"--service-user={ME}", *arguments)
    equal(done.returncode, code, f"exit code; it said {done.stderr!r} and printed {done.stdout!r}")
    return done.stdout.decode()


def scratch(name, **files):
    """A folder of a configuration, `files` by their names in databases.d."""
    folder = service.folder / name
    (folder / "databases.d").mkdir(parents=True)
    for file, text in files.items():
        (folder / "databases.d" / f"{file}.conf").write_text(text)
    return folder


@test
def check_everything():
    """check: errors, warnings and good files, by exit code, lines and JSON"""
    need_root("makes links of others")
    link, fifo, text, wal = (service.data / name for name in ("link", "fifo", "text", "wal.sqlite"))
    link.symlink_to(CHINOOK)
    os.lchown(link, UID_A, UID_A)
    os.mkfifo(fifo)
    text.write_text("no database " * 20)
    with sqlite3.connect(wal) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE t(x)")
    connection.close()
    os.chown(wal, UID_A, UID_A)
    everybody = "AllowUsers=*\n"
    folder = scratch(
        "check",
        good=f"[Database]\nPath={CHINOOK}\n{everybody}",
        nobody=f"[Database]\nPath={CHINOOK}\n",
        unknown=f"[Database]\nPath={CHINOOK}\nAllowUsers=nosuchuser root\nMode=read-only\nMode=read-only\n",
        misspelt=f"[Database]\nPath={CHINOOK}\n{everybody}Expsoe=Genre\n",
        link=f"[Database]\nPath={link}\n{everybody}",
        fifo=f"[Database]\nPath={fifo}\n{everybody}",
        text=f"[Database]\nPath={text}\n{everybody}",
        wal=f"[Database]\nPath={wal}\n{everybody}",
        absent=f"[Database]\nPath=/nonexistent/x\n{everybody}",
        hidden=f"[Database]\nPath={CHINOOK}\nExpose=sqlite_schema\n{everybody}",
        pathless="[Database]\n",
    )
    (folder / "sqlipcd.conf").write_text("[Limits]\nRunsMax=none\n")
    told = json.loads(check(folder, "--json", code=FAILED))
    found = {(finding["severity"], finding["subject"]): finding["text"] for finding in told["findings"]}
    for subject, words in {
        "link": "symbolic link",
        "fifo": "FIFO",
        "text": "no SQLite database",
        "absent": "not there",
        "hidden": "sqlite_schema",
        "pathless": "Path=",
        "misspelt": "misspelt.conf:4: key Expsoe= is not known: perhaps Expose= is meant",
        "sqlipcd.conf": "RunsMax=",
    }.items():
        true(words in found.get(("error", subject), ""), f"error of {subject} in {found}")
    true("only root" in found["warning", "nobody"], f"warning of nobody in {found}")
    true("-wal is not there" in found["warning", "wal"], f"warning of wal in {found}")
    warnings = [finding["text"] for finding in told["findings"] if finding["subject"] == "configuration"]
    true(any("unknown.conf:3" in text and "nosuchuser" in text for text in warnings), f"warnings {warnings}")
    true(any("unknown.conf:5" in text and "Mode=" in text for text in warnings), f"warnings {warnings}")
    equal(told["errors"], 8, "errors")
    lines = check(folder, "--verbose", code=FAILED).splitlines()
    true(any(line.startswith("ok: good: ") for line in lines), f"what is right in {lines}")
    equal(lines[-1], f"{told['databases']} databases, 8 errors, {told['warnings']} warnings.", "summary")
    true("ok: " not in check(folder, code=FAILED), "what is right without --verbose")


@test
def check_exit_codes():
    """check: 0 for warnings, 1 with --strict; 1 for errors"""
    folder = scratch("strict", nobody=f"[Database]\nPath={CHINOOK}\n")
    true("warning: nobody: " in check(folder, bus="--system"), "warning")
    check(folder, "--strict", code=FAILED, bus="--system")
    good = scratch("good", good=f"[Database]\nPath={CHINOOK}\nAllowUsers=root\n")
    equal(check(good, "--strict"), "1 database, 0 errors, 0 warnings.\n", "what it prints")
    equal(check(service.folder / "nothing"), "0 databases, 0 errors, 0 warnings.\n", "what it prints of nothing")


@test
def check_one_file():
    """check FILE: its kind is recognised by its name, its folder or its content"""
    folder = scratch("files", main=f"[Database]\nPath={CHINOOK}\nAllowUsers=*\n")
    drop_in = folder / "databases.d/main.conf.d/10-more.conf"
    drop_in.parent.mkdir()
    drop_in.write_text("[Database]\nAllowUser=1\n")
    loose, limits = folder / "loose.conf", folder / "limits.conf"
    loose.write_text("[Database]\nPath=x\n")
    limits.write_text("[Limits]\nRunsMax=-1\n")
    check(folder, folder / "databases.d/main.conf", "--strict")
    found = check(folder, drop_in, code=FAILED)
    true("10-more.conf:2: key AllowUser= is not known: perhaps AllowUsers= is meant" in found, found)
    true("loose.conf:2" in check(folder, loose, code=FAILED), "database elsewhere")
    true("limits.conf:2" in check(folder, limits, code=FAILED), "limits elsewhere")
    true("RunsMax" in check(folder, limits, code=FAILED), "key")
    for file, words in ((folder, "regular"), (folder / "absent.conf", "No such file")):
        done = service.run(CTL, "check", "--service-user=root", file)
        equal(done.returncode, FAILED, f"exit code of {file}")
        true(words in done.stderr.decode(), done.stderr)


@test
def check_several_folders():
    """--config-dir: repeated for more folders, before and after the verb; the first one wins"""
    first = scratch("first", one=f"[Database]\nPath={CHINOOK}\nAllowUsers=*\n")
    second = scratch("second", one="[Database]\n", two=f"[Database]\nPath={CHINOOK}\nAllowUsers=*\n")
    arguments = [f"--config-dir={first}", "check", f"--config-dir={second}", f"--config-dir={service.folder}/none"]
    done = service.run(CTL, *arguments, "--service-user=root", f"--address={service.address}")
    equal((done.returncode, done.stdout), (OK, b"2 databases, 0 errors, 0 warnings.\n"), "exit code and output")


@test
def check_as_the_service():
    """check --service-user: a file that this user may not read is an error"""
    need_root("makes files that others may not read")
    closed = service.data / "closed.sqlite"
    closed.write_bytes(CHINOOK.read_bytes())
    closed.chmod(0o600)
    folder = scratch("closed", closed=f"[Database]\nPath={closed}\nAllowUsers=*\n")
    equal(check(folder).splitlines()[-1], "1 database, 0 errors, 0 warnings.", "as root")
    name = pwd.getpwuid(UID_A).pw_name
    done = service.run(CTL, "check", f"--config-dir={folder}", f"--service-user={name}", f"--address={service.address}")
    equal(done.returncode, FAILED, "exit code")
    true(f"the user {name} may not read {closed}" in done.stdout.decode(), done.stdout)
    done = service.run(CTL, "check", "--service-user=nosuchuser")
    equal(done.returncode, FAILED, "exit code with the user nobody")
    true("nosuchuser" in done.stderr.decode(), done.stderr)


# The objects of broken_schema that fail: the words by which check names them, and a word of SQLite's error.
BROKEN = {f'the view "{name}"': word for name, word in broken_schema.UNREADABLE.items() if name not in ("computed",)} | {
    'the virtual table "no module"': "no such module: absent",
    'the virtual table "no tokenizer"': "no such tokenizer: absent",
    'the table "computed" cannot be read': "absent",
    'the table "stored" cannot be inserted into': "no such function: absent",
    'the column "a" of the table "sorted"': "no such collation sequence: absent",
    'the index "no function in it" fails, and so does writing to the table "indexed"': "absent",
    'the trigger "no table in it" of "fired" fails, and so does each INSERT': "no such table: gone",
    'the trigger "no function in it, either" of "fired" fails, and so does each UPDATE': "no such function: absent",
    'the trigger "instead" of "good_view" fails, and so does each INSERT': "no such table: gone",
}
for name in broken_schema.VIRTUAL:
    del BROKEN[f'the view "{name}"']


def told_of(folder, subject, **keywords):
    findings = json.loads(check(folder, "--json", **keywords))["findings"]
    return [(finding["severity"], finding["text"]) for finding in findings if finding["subject"] == subject]


@test
def check_schemas():
    """check: each object that fails in a worker has one warning, which names it, and no other object has any"""
    for journal in ("wal", "delete"):
        path = broken_schema.make(service.data / f"schema-{journal}.sqlite", journal)
        before = path.read_bytes(), sorted(entry.name for entry in path.parent.iterdir())
        folder = scratch(f"schema-{journal}", broken=f"[Database]\nPath={path}\nAllowUsers=*\n")
        told = told_of(folder, "broken")
        equal({severity for severity, _ in told}, {"warning"}, "severities")
        texts = [text for _, text in told]
        for name, word in BROKEN.items():
            found = [text for text in texts if name in text]
            true(len(found) == 1 and word in found[0] and ": " in found[0].split(word)[1], f"{name} in {found}, of {texts}")
        equal(len(texts), len(BROKEN), f"findings: {texts}")
        equal((path.read_bytes(), sorted(entry.name for entry in path.parent.iterdir())), before, "the files afterwards")
        with sqlite3.connect(path) as program:  # which has it open, with a log
            program.execute("INSERT INTO log VALUES (1)")
            program.commit()
            equal([text for _, text in told_of(folder, "broken")], texts, "while a program has it open")
        program.close()
    check(folder, "--strict", code=FAILED)


@test
def check_schema_of_modules():
    """check: JSON, full-text search and R-Tree in all places of a schema work in a worker, so nothing is said of them"""
    path = service.data / "modules.sqlite"
    with sqlite3.connect(path) as db:
        db.executescript(
            """PRAGMA journal_mode = WAL;
               CREATE TABLE g(id INTEGER PRIMARY KEY, j TEXT CHECK (json_valid(j)) DEFAULT (json_array(1)),
                              k AS (json_extract(j, '$.k')), l AS (j ->> 'l') STORED, "odd ""name" COLLATE NOCASE UNIQUE);
               CREATE INDEX i ON g(json_type(j)) WHERE j -> 'k' IS NOT NULL;
               CREATE VIRTUAL TABLE f USING fts5(j, content = g, content_rowid = id);
               CREATE VIRTUAL TABLE f4 USING fts4(j);
               CREATE VIRTUAL TABLE r USING rtree(id, x0, x1);
               CREATE VIEW v AS SELECT g.id, e.value FROM g, json_each(g.j) AS e;
               CREATE TRIGGER kept AFTER UPDATE OF j, "odd ""name" ON g WHEN json_valid(new.j) BEGIN
                   INSERT INTO f(f, rowid, j) VALUES ('delete', old.id, old.j);
                   INSERT INTO f(rowid, j) VALUES (new.id, new.j);
                   INSERT OR REPLACE INTO r VALUES (new.id, 0, 1); END;
               CREATE TRIGGER instead INSTEAD OF UPDATE OF value ON v BEGIN DELETE FROM f4 WHERE f4 MATCH new.value; END;
               CREATE TABLE w(a, b, PRIMARY KEY (a, b)) WITHOUT ROWID;
               CREATE TABLE s(a INT REFERENCES g(id) ON DELETE CASCADE, b ANY) STRICT;"""
        )
    db.close()
    folder = scratch("modules", modules=f"[Database]\nPath={path}\nAllowUsers=*\n")
    equal(check(folder, "--strict"), "1 database, 0 errors, 0 warnings.\n", "what it prints")


@test
def check_triggers_of_triggers():
    """check: a trigger that fires a broken one is not blamed; one that no trigger of its own explains is"""
    path = service.data / "triggers.sqlite"
    with sqlite3.connect(path) as db:
        db.executescript(
            """CREATE TABLE a(x); CREATE TABLE b(x); CREATE TABLE c(x, y, UNIQUE (x)); CREATE TABLE d(x REFERENCES c(y));
               CREATE TRIGGER first AFTER INSERT ON a BEGIN INSERT INTO b VALUES (new.x); END;
               CREATE TRIGGER second AFTER INSERT ON b BEGIN INSERT INTO gone VALUES (new.x); END;
               CREATE TRIGGER unsafe BEFORE DELETE ON a BEGIN SELECT rtreecheck('x'); END;"""
        )
    db.close()
    folder = scratch("triggers", triggers=f"[Database]\nPath={path}\nAllowUsers=*\nMode=read-write\n")
    texts = [text for severity, text in told_of(folder, "triggers") if "rollback" not in text]
    equal(len(texts), 4, f"findings {texts}")
    for words in (
        'the trigger "second" of "b" fails', 'each DELETE of "a" fails in one of its triggers ("first", "unsafe") (un',
        'the table "c" cannot be deleted from (foreign', 'the table "d" cannot be inserted into (foreign',
    ):  # fmt: skip
        true(any(words in text for text in texts), f"{words} in {texts}")


@test
def check_exposed_schema():
    """check: with Expose= only exposed objects count, and a name that is not there is told"""
    path = broken_schema.make(service.data / "exposed.sqlite")
    folder = scratch("exposed", some=f"[Database]\nPath={path}\nAllowUsers=*\nExpose=good good_view 'no table' nosuch\n")
    texts = [text for _, text in told_of(folder, "some")]
    equal(len(texts), 2, f"findings {texts}")
    true('the view "no table"' in texts[0] and "Expose=nosuch" in texts[1], texts)


@test
def check_malformed_schema():
    """check: a schema that SQLite cannot read is an error that names the object"""
    path = service.data / "malformed.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE good(a)")
        db.execute("PRAGMA writable_schema = ON")
        row = ("view", "odd one", "odd one", 0, "CREATE VIEW [odd one] AS SELECT FROM")
        db.execute("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", row)
    db.close()
    folder = scratch("malformed", bad=f"[Database]\nPath={path}\nAllowUsers=*\n")
    ((severity, text),) = told_of(folder, "bad", code=FAILED)
    true(severity == "error" and "malformed database schema (odd one)" in text, text)


@test
def check_large_schema():
    """check: of thousands of objects, a few that fail are each told, and of thousands that fail, how many more do"""
    path = service.data / "large.sqlite"
    tables = "".join(
        f"CREATE TABLE t{i}(a, b); CREATE INDEX i{i} ON t{i}(a); CREATE VIEW v{i} AS SELECT a FROM t{i};"
        for i in range(1500)
    )
    with sqlite3.connect(path) as db:
        db.executescript(f"BEGIN; {tables} CREATE VIEW last AS SELECT * FROM gone; COMMIT;")
    folder = scratch("large", large=f"[Database]\nPath={path}\nAllowUsers=*\n")
    ((_, text),) = told_of(folder, "large")
    true('"last"' in text, text)
    with db:
        views = "".join(f"CREATE VIEW broken{i} AS SELECT * FROM gone;" for i in range(2000))
        db.executescript(f"BEGIN; {views} COMMIT;")
    db.close()
    texts = [text for _, text in told_of(folder, "large")]
    equal((len(texts), texts[-1]), (101, "1901 more objects fail"), "findings")


@test
def check_writers():
    """check: writers that may not read, and files that the service's user does not own"""
    reader, writer = (pwd.getpwuid(uid).pw_name for uid in (UID_A, UID_B))
    path = service.data / "written.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    head = f"[Database]\nPath={path}\nMode=read-write\n"

    folder = scratch("written", written=head)

    def warns(lines, user=ME, code=OK):
        (folder / "databases.d/written.conf").write_text(head + lines)
        return check(folder, f"--service-user={user}", code=code).splitlines()[:-1]

    (warning,) = warns(f"AllowUsers={reader}\nWriteUsers={reader} {writer} root\n")
    true(f"WriteUsers={writer}, but that user may not read" in warning, warning)
    for rest in ("AllowUsers=*\n", "AllowGroups=daemon\n", "Polkit=yes\n"):  # they may let the user read
        lines = [line for line in warns(f"{rest}WriteUsers={writer}\n") if "olkit" not in line]
        equal(lines, [], f"warnings with {rest}")
    both = f"AllowUsers={reader}\nWriteUsers={reader}\nWriteTables=track\n"
    equal(warns(both), [], "WriteTables= without WriteSchema=")
    (warning,) = warns(f"{both}WriteSchema=yes\n")
    true("WriteTables= protects nothing" in warning, warning)
    true("WritePolkit= may not read" in "".join(warns("WritePolkit=yes\n")), "polkit decides who writes, and none reads")
    true("WriteUsers=* may not read" in "".join(warns("WriteUsers=*\n")), "all write and none reads")
    if os.geteuid() == 0:
        lines = warns("AllowUsers=*\n", user=reader, code=FAILED)
        true(any(f"{path} belongs to root: the service writes only to files" in line for line in lines), lines)


@test
def check_what_the_unit_protects():
    """check --system: the unit lets the service write only below its own folder"""
    folder = scratch("protected", far="[Database]\nPath=/srv/x.sqlite\nMode=read-write\nAllowUsers=*\n",
                     near="[Database]\nPath=/var/lib/sqlipc/x.sqlite\nMode=read-write\nAllowUsers=*\n",
                     reads="[Database]\nPath=/srv/x.sqlite\nAllowUsers=*\n")
    lines = [line for line in check(folder, code=FAILED, bus="--system").splitlines() if "ProtectSystem=" in line]
    equal([line.split(": ")[1] for line in lines], ["far"], "databases that the service cannot write to")


@test
def check_what_the_unit_hides():
    """check --system: paths that the unit's sandbox hides; --user: questions that polkit cannot be asked"""
    if not str(service.data).startswith("/tmp/"):
        raise Skip("temporary files are not in /tmp")
    path = service.data / "hidden.sqlite"
    path.write_bytes(CHINOOK.read_bytes())
    folder = scratch("hidden", hidden=f"[Database]\nPath={path}\nPolkit=yes\nMode=read-write\nWritePolkit=yes\n")
    true("PrivateTmp=" in check(folder, bus="--system"), "warning for the system's service")
    out = check(folder, bus="--user")
    true("PrivateTmp=" not in out and "polkit is on the system bus" in out, f"warning for a user's: {out}")
    true("WritePolkit=yes lets no other user write here" in out, f"warning for a user's: {out}")
    (folder / "databases.d/hidden.conf").write_text(f"[Database]\nPath={path}\nAllowUsers=*\nWritePolkit=yes\n")
    true("key WritePolkit= does nothing without Mode=read-write" in check(folder, bus="--user"), "without Mode=")


@test
def check_passwords_on_a_network():
    """check: a password that goes over a network without TLS is a warning, for PostgreSQL and rqlite"""
    password = service.data / "network.password"
    password.write_text("hush\n")
    password.chmod(0o600)

    def keys(engine, connection, more="", file=f"PasswordFile={password}\n"):
        return f"[Database]\nEngine={engine}\nConnection={connection}\nAllowUsers=*\n{file}{more}"

    weak = {
        "disable": keys("postgresql", "host=db.example user=a sslmode=disable"),
        "prefer": keys("postgresql", "host = 'db.example'  sslmode = 'prefer'"),
        "address": keys("postgresql", "host=/run/postgresql hostaddr=192.0.2.1 sslmode=allow"),
        "second": keys("postgresql", "host=/run/postgresql,db.example sslmode=prefer"),
        "uri": keys("postgresql", "postgresql://a@[2001:db8::1]:5432,localhost/b?connect_timeout=3&sslmode=%64isable"),
        "replica": keys("postgresql", "host=db.example", "ReplicaConnection=host=db2.example sslmode=disable\n"),
        "node": keys("rqlite", "https://a@db1.example:4001 http://a@db2.example:4001"),
    }
    right = {
        "default": keys("postgresql", "host=db.example user=a"),
        "full": keys("postgresql", "host=db.example sslmode=disable sslmode=verify-full"),
        "encrypted": keys("postgresql", "postgres://a@db.example/b?sslmode=require"),
        "socket": keys("postgresql", "host=/run/postgresql sslmode=disable"),
        "none": keys("postgresql", "dbname=a sslmode=disable"),
        "escaped": keys("postgresql", "postgres://%2Frun%2Fpostgresql/b?sslmode=disable"),
        "loopback": keys("postgresql", "host=localhost hostaddr=127.0.0.2,::1 sslmode=disable"),
        "public": keys("postgresql", "host=db.example sslmode=disable", file=""),
        "https": keys("rqlite", "https://a@db.example:4001"),
        "near": keys("rqlite", "http://a@127.0.0.1:4001 http://a@[::1]:4001"),
    }
    folder = scratch("network", **weak, **right)
    lines = [line for line in check(folder).splitlines() if "without TLS" in line]
    equal(sorted(line.split(": ")[1] for line in lines), sorted(weak), "databases with the warning")
    true("hush" not in "".join(lines), "the password is not shown")


# ---- add ----


@test
def add():
    """add: writes a file that the service then publishes; only --force replaces a file or writes one with an error"""
    with Service({}) as fresh:
        user = "--service-user=root"
        path = fresh.data / "a file.sqlite"
        path.write_bytes(CHINOOK.read_bytes())
        file = fresh.config_dir / "databases.d/new.conf"
        description = " odd \\ text\nin two lines"
        out, err = ask("add", "new", path, "--allow-user=*", f"--description={description}", user, "--reload", on=fresh)
        equal(out, f"Wrote {file}.\nPublished: 1 database.\n", "what it printed")
        equal(err, "", "what it said")
        equal(file.stat().st_mode & 0o777, 0o644, "mode")
        equal([p.name for p in file.parent.iterdir()], ["new.conf"], "files")
        equal(ask_json("list", on=fresh)[0]["description"], description, "description")
        fresh.client().point("new")

        text = file.read_text()
        true("there already" in ask("add", "new", path, user, code=FAILED, on=fresh)[1], "over another")
        equal(file.read_text(), text, "file")
        told = ask_json("add", "new", path, user, "--force", "--allow-group=daemon", "--expose=Album", on=fresh)
        equal((told["file"], told["findings"]), (str(file), []), "document")
        true("AllowGroups=daemon\nExpose=Album\n" in file.read_text(), file.read_text())

        for bad, words in ((fresh.data, "folder"), (fresh.data / "absent", "not there"), ("/etc/passwd", "no SQLite")):
            true(words in ask("add", "bad", bad, user, code=FAILED, on=fresh)[1], f"what it says of {bad}")
        equal([p.name for p in file.parent.iterdir()], ["new.conf"], "files after refusals")
        ask("add", "later", fresh.data / "absent", "--allow-user=*", "--force", user, on=fresh)
        true((file.parent / "later.conf").exists(), "forced")
        for name in ("../escape", "", "a" * 65, "a.b"):
            ask("add", name, path, user, code=USAGE, on=fresh)
        odd = ask("add", "odd", path, "--expose=sqlite_schema", "--force", user, code=FAILED, on=fresh)[1]
        true("sqlite_" in odd, odd)
        told = ask("add", "closed", path, user, on=fresh)[1]
        equal("only root" in told, os.geteuid() == 0, "warning that only root may use it")

        (file.parent / "broken.conf").write_text("nothing")
        out, err = ask("--json", "add", "last", path, user, "--reload", code=FAILED, on=fresh)
        equal(list(json.loads(out)["reload"]["broken"]), ["broken"], "what is broken beside it")
        true("error: broken: " in err, err)


@test
def add_of_a_relative_path():
    """add: a relative path starts at the current folder; the umask does not close the file"""
    with Service({}) as fresh:
        done = subprocess.run(
            [CTL, f"--config-dir={fresh.folder}/fresh", "add", "--service-user=root", "x", f"./{CHINOOK.name}"],
            cwd=CHINOOK.parent,
            umask=0o077,
            capture_output=True,
            check=False,
        )
        equal(done.returncode, OK, f"exit code; it said {done.stderr!r}")
        file = fresh.folder / "fresh/databases.d/x.conf"
        true(f"Path={CHINOOK}\n" in file.read_text(), file.read_text())
        modes = [0o750, 0o640] if os.geteuid() == 0 else [0o755, 0o644]
        equal([p.stat().st_mode & 0o777 for p in (file.parent, file)], modes, "modes")


@test
def closed_folders():
    """add, edit: what they write is closed to users who may not read its folder, and has the folder's group"""
    need_root("gives files to a group")
    with Service({}) as fresh:
        folder = fresh.config_dir / "databases.d"
        folder.mkdir(exist_ok=True)
        os.chown(folder, 0, 4321)
        folder.chmod(0o750)

        for force in ((), ("--force",)):
            ask("add", "new", CHINOOK, "--allow-user=root", "--service-user=root", *force, on=fresh)
            equal(owner(folder / "new.conf"), (0, 4321, 0o640), "owner, group and mode of the file")
        done = fresh.run(
            CTL, f"--config-dir={fresh.config_dir}", "edit", "new",
            environment={"SYSTEMD_EDITOR": "sh -c 'echo Polkit=no >>\"$0\"'"},
        )  # fmt: skip
        equal(done.returncode, OK, done.stderr)
        equal(owner(folder / "new.conf.d"), (0, 4321, 0o750), "owner, group and mode of the folder of drop-ins")
        equal(owner(folder / "new.conf.d/override.conf"), (0, 4321, 0o640), "owner, group and mode of the drop-in")


def owner(path):
    stat = path.stat()
    return stat.st_uid, stat.st_gid, stat.st_mode & 0o777


@test
def makes_a_closed_folder():
    """add, create, edit: a folder databases.d that they make is closed, except to the group of the service"""
    need_root("gives folders to a group")
    someone = pwd.getpwuid(UID_A)
    with Service({}) as fresh:
        folder = fresh.config_dir / "databases.d"

        def closed(group, *words, **environment):
            shutil.rmtree(folder)
            done = fresh.run(CTL, f"--config-dir={fresh.config_dir}", *words, environment=environment)
            equal(done.returncode, OK, done.stderr)
            equal(owner(folder), (0, group, 0o750), f"the folder that {words} made")
            for path in folder.rglob("*"):
                equal(owner(path), (0, group, 0o750 if path.is_dir() else 0o640), f"what is in it: {path}")

        os.chown(fresh.data, UID_A, someone.pw_gid)
        who = ("--system", f"--service-user={someone.pw_name}", "--allow-user=root")
        closed(someone.pw_gid, "add", "new", CHINOOK, *who)
        closed(someone.pw_gid, "create", "made", fresh.data / "made.sqlite", *who)
        closed(os.getgid(), "--user", "add", "new", CHINOOK, "--allow-user=root")
        vendor = fresh.folder / "vendor/databases.d"
        vendor.mkdir(parents=True)
        (vendor / "new.conf").write_text(f"[Database]\nPath={CHINOOK}\nAllowUsers=root\n")
        closed(os.getgid(), f"--config-dir={vendor.parent}", "--user", "edit", "new",
               SYSTEMD_EDITOR="sh -c 'echo [Database] >>\"$0\"; echo Polkit=no >>\"$0\"'")


@test
def closed_by_tmpfiles():
    """The rules for systemd-tmpfiles close databases.d: a new one, one of an older installation, and one in /run"""
    need_root("gives folders to a group")
    if not shutil.which("systemd-tmpfiles"):
        raise Skip("needs systemd-tmpfiles")
    rules = SOURCE_ROOT / "systemd-units/sqlipc-tmpfiles.conf"
    for older in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            files = {
                "etc/passwd": "root:x:0:0::/root:/bin/sh\nsqlipc:x:4320:4321::/:/bin/false\n",
                "etc/group": "root:x:0:\nsqlipc:x:4321:\n",
            }
            if older:
                places = [f"{place}/sqlipc/databases.d/secret.conf" for place in ("etc", "run")]
                files |= dict.fromkeys(places, "[Database]\nAllowUsers=alice\n")
            for path, text in files.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            done = subprocess.run(
                ["systemd-tmpfiles", "--create", f"--root={root}", rules], capture_output=True, text=True, check=False
            )
            equal(done.returncode, 0, done.stderr)
            equal(owner(root / "etc/sqlipc/databases.d"), (0, 4321, 0o750), f"in /etc, {older=}")
            if older:
                equal(owner(root / "run/sqlipc/databases.d"), (0, 4321, 0o750), "in /run")
                true((root / "etc/sqlipc/databases.d/secret.conf").exists(), "the file is gone")
            else:
                true(not (root / "run").exists(), "a folder that is made only when it is needed")


@test
def add_writable():
    """add --mode=read-write: names those who may write; refuses a file that is not the service's, and Expose="""
    with Service({}) as fresh:
        path = fresh.data / "mine.sqlite"
        path.write_bytes(CHINOOK.read_bytes())
        command_line = ("add", "mine", path, f"--service-user={ME}", "--mode=read-write")
        err = ask(*command_line, "--expose=Album", code=FAILED, on=fresh)[1]
        true("Expose=" in err and "reading only" in err and "Nothing was written" in err, err)
        err = ask(*command_line, "--allow-user=*", "--write-user=daemon", "--write-group=bin", "--write-polkit", on=fresh)[1]
        true("rollback mode" in err, err)
        text = (fresh.config_dir / "databases.d/mine.conf").read_text()
        true("Mode=read-write\nAllowUsers=*\nWriteUsers=daemon\nWriteGroups=bin\nWritePolkit=yes\n" in text, text)
        true("ForeignKeys=no\n" in text, text)
        ask(*command_line, "--force", "--foreign-keys", on=fresh)
        true("ForeignKeys=yes\n" in (fresh.config_dir / "databases.d/mine.conf").read_text(), "--foreign-keys")
        ask("add", "read", path, f"--service-user={ME}", on=fresh)
        create(fresh, "strict", fresh.data / "strict.sqlite", "--foreign-keys")
        true("ForeignKeys=yes\n" in (fresh.config_dir / "databases.d/strict.conf").read_text(), "create --foreign-keys")
        true("ForeignKeys=" not in (fresh.config_dir / "databases.d/read.conf").read_text(), "a database that is only read")
        if os.geteuid() == 0:
            err = ask(*command_line, "--force", f"--service-user={pwd.getpwuid(UID_A).pw_name}", code=OK, on=fresh)[1]
            true(f"{path} belongs to root" in err and f"the folder {fresh.data} belongs to root" in err, err)


# ---- create ----

SCHEMA = """PRAGMA page_size=8192;
-- a comment; with a semicolon
CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT NOT NULL);
INSERT INTO note(text) VALUES('one;'),('two');
"""


def create(fresh, *arguments, **keywords):
    return ask("create", *arguments, f"--service-user={ME}", on=fresh, **keywords)


@test
def create_publishes():
    """create: a database in WAL mode with the schema, published for writing; neither file nor name is replaced"""
    with Service({}) as fresh:
        path, schema = fresh.data / "notes.sqlite", fresh.folder / "notes.sql"
        file = fresh.config_dir / "databases.d/notes.conf"
        schema.write_text(SCHEMA)
        out, err = create(fresh, "notes", path, f"--schema={schema}", "--allow-user=*", "--write-group=bin", "--reload")
        equal(out, f"Created {path}.\nWrote {file}.\nPublished: 1 database.\n", "what it printed")
        equal(err, "", "what it said")
        equal(path.stat().st_mode & 0o777, 0o600, "mode")
        equal([p.name for p in fresh.data.iterdir()], ["notes.sqlite"], "files")
        true("Mode=read-write\nAllowUsers=*\nWriteGroups=bin\nForeignKeys=no\n" in file.read_text(), file.read_text())
        equal(ask_json("list", on=fresh)[0]["mode"], "read-write", "mode of the database")
        told = ask_json("status", "notes", on=fresh)
        equal((told["write-groups"], told["synchronous"], told["wal-size-max"]), (["bin"], "full", 64 << 20), "status")
        equal(check(fresh.config_dir, f"--service-user={ME}", "--strict"),
              "1 database, 0 errors, 0 warnings.\n", "check")
        before = path.read_bytes(), file.read_bytes()
        true("notes.conf is there already" in create(fresh, "notes", fresh.data / "x", code=FAILED)[1], "the same name")
        err = create(fresh, "other", path, code=FAILED)[1]
        true(f"{path} is there already" in err, err)
        equal((path.read_bytes(), file.read_bytes()), before, "the files")
        equal([p.name for p in file.parent.iterdir()], ["notes.conf"], "configuration")
        equal([p.name for p in fresh.data.iterdir()], ["notes.sqlite"], "files after refusals")


@test
def create_beside_a_file_of_another():
    """create: a file of another program with the temporary name is neither used nor removed"""
    with Service({}) as fresh:
        path = fresh.data / "a.sqlite"
        command = (
            f'echo $$ >{fresh.folder}/pid; : >"{path}.$$.new"; exec {CTL} --config-dir={fresh.config_dir} '
            f"--address={fresh.address} create a {path} --service-user={ME}"
        )
        done = fresh.run("sh", "-c", command)
        foreign = pathlib.Path(f"{path}.{(fresh.folder / 'pid').read_text().strip()}.new")
        equal((done.returncode, f"{foreign} cannot be made" in done.stderr.decode()), (FAILED, True), done.stderr)
        equal(list(fresh.data.iterdir()), [foreign], "files")
        equal(foreign.read_bytes(), b"", "the file of the other program")


@test
def create_interrupted():
    """create: Ctrl-C in the middle of the schema leaves no file"""
    with Service({}) as fresh:
        schema = fresh.folder / "endless.sql"
        schema.write_text("CREATE TABLE t(a); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                          "INSERT INTO t SELECT i FROM n WHERE i < 0;")
        program = subprocess.Popen(
            [CTL, f"--config-dir={fresh.config_dir}", f"--address={fresh.address}", "create", "a", fresh.data / "a.sqlite",
             f"--schema={schema}", f"--service-user={ME}"], stderr=subprocess.PIPE, start_new_session=True)  # fmt: skip
        wait_for(lambda: list(fresh.data.iterdir()), "the file that is being written")
        program.send_signal(signal.SIGINT)
        err = program.communicate(timeout=PATIENCE)[1].decode()
        equal(program.returncode, FAILED, err)
        equal(list(fresh.data.iterdir()), [], "files")


@test
def create_all_or_nothing():
    """create: an error in the schema or the configuration leaves no file, and is named with its line"""
    with Service({}) as fresh:
        path, schema = fresh.data / "a.sqlite", fresh.folder / "a.sql"
        for text, words in {
            SCHEMA + "\nCREATE TABEL x;\n": f"{schema}:6: near \"TABEL\": syntax error",
            SCHEMA + "INSERT INTO note\nVALUES(1, 'again');\n": f"{schema}:5: UNIQUE constraint failed: note.id",
            SCHEMA + "BEGIN;\n": "does not end it",
            "CREATE TABLE t(x);\0": "NUL bytes",
        }.items():
            schema.write_text(text)
            err = create(fresh, "a", path, f"--schema={schema}", code=FAILED)[1]
            true(words in err, f"{words!r} in {err!r}")
        schema.write_text(SCHEMA)
        err = create(fresh, "a", path, f"--schema={schema}", "--write-user=", code=FAILED)[1]
        true("Nothing was created" in err, err)
        true("cannot be made" in create(fresh, "a", fresh.data / "absent/a.sqlite", code=FAILED)[1], "no folder")
        true("cannot be read" in create(fresh, "a", path, "--schema=/nonexistent", code=FAILED)[1], "no schema")
        (fresh.config_dir / "databases.d").rmdir()
        (fresh.config_dir / "databases.d").write_text("a file")
        true("Nothing was created" in create(fresh, "a", path, code=FAILED)[1], "no place for the configuration")
        (fresh.config_dir / "databases.d").unlink()
        (fresh.config_dir / "databases.d").mkdir()
        equal(list(fresh.data.iterdir()) + list((fresh.config_dir / "databases.d").iterdir()), [], "files")
        create(fresh, "../escape", code=USAGE)


@test
def create_as_the_service():
    """create: the file is made by the service's user, so it is that user's, and a schema has no rights of root"""
    need_root("can become the service's user")
    with Service({}) as fresh:
        user = pwd.getpwuid(UID_A)
        folder, schema, forbidden = fresh.folder / "owned", fresh.folder / "b.sql", fresh.folder / "forbidden"
        folder.mkdir()
        os.chown(folder, UID_A, user.pw_gid)
        schema.write_text(f"ATTACH '{forbidden}' AS f; CREATE TABLE f.t(x);")
        schema.chmod(0o600)
        arguments = ("create", "b", folder / "b.sqlite", f"--service-user={user.pw_name}", "--allow-user=*")
        err = ask(*arguments, f"--schema={schema}", code=FAILED, on=fresh)[1]
        true("b.sql:1: unable to open database" in err, err)
        equal((forbidden.exists(), list(folder.iterdir())), (False, []), "files")
        schema.write_text(SCHEMA)
        ask(*arguments, f"--schema={schema}", on=fresh)
        stat = (folder / "b.sqlite").stat()
        equal((stat.st_uid, stat.st_gid, stat.st_mode & 0o777), (UID_A, user.pw_gid, 0o600), "owner and mode")
        with sqlite3.connect(folder / "b.sqlite") as connection:
            pragmas = [connection.execute(f"PRAGMA {p}").fetchone()[0] for p in ("journal_mode", "page_size")]
            equal(pragmas, ["wal", 8192], "mode and page size")
            equal(connection.execute("SELECT * FROM note").fetchall(), [(1, "one;"), (2, "two")], "rows")
        connection.close()
        err = ask("create", "c", fresh.data / "c.sqlite", f"--service-user={user.pw_name}", code=FAILED, on=fresh)[1]
        true("cannot be made: Permission denied" in err, f"in a folder of root: {err}")
        err = ask("create", "d", folder / "d.sqlite", "--service-user=root", code=FAILED, on=fresh, **as_uid(UID_A))[1]
        true("Only root" in err, f"as another user: {err}")


@test
def create_for_writers():
    """create: named users write to it, others read; a reload changes who may write, and which tables"""
    need_root("acts as several users")
    writer, reader = (pwd.getpwuid(uid).pw_name for uid in (UID_A, UID_B))
    with Service({}, uid=UID_DAEMON) as fresh:
        folder, schema = fresh.folder / "owned", fresh.folder / "c.sql"
        folder.mkdir()
        os.chown(folder, UID_DAEMON, UID_DAEMON)
        schema.write_text(SCHEMA)
        user = f"--service-user={pwd.getpwuid(UID_DAEMON).pw_name}"
        ask("create", "c", folder / "c.sqlite", user, f"--schema={schema}", f"--allow-user={writer}",
            f"--allow-user={reader}", f"--write-user={writer}", "--reload", on=fresh)
        a, b = fresh.client(UID_A), fresh.client(UID_B)

        def insert(client):
            return client.query_rows("c", "INSERT INTO note(text) VALUES('new') RETURNING id")[1]

        equal(insert(a), [[3]], "row of the writer")
        expect("ReadOnly", insert, b)
        equal(b.query_rows("c", "SELECT count(*) FROM note")[1], [[3]], "rows for the reader")
        expect("NotAllowed", a.query_rows, "c", "CREATE TABLE more(x)")
        for lines, a_may, b_may in (
            (f"WriteUsers=\nWriteUsers={reader}\n", "ReadOnly", None),
            ("WriteUsers=*\n", None, None),
            ("WriteUsers=*\nWriteTables=other\n", "NotAllowed", "NotAllowed"),
            ("WriteUsers=*\nMode=read-only\n", "ReadOnly", "ReadOnly"),
        ):
            drop_in = fresh.config_dir / "databases.d/c.conf.d/x.conf"
            drop_in.parent.mkdir(exist_ok=True)
            drop_in.write_text(f"[Database]\n{lines}")
            ask("reload", on=fresh)
            for client, error in ((a, a_may), (b, b_may)):
                if error:
                    expect(error, insert, client)
                else:
                    insert(client)
        equal(a.query_rows("c", "SELECT count(*) FROM note")[1], [[6]], "rows in the end")


@test
def create_for_a_user():
    """create --user: by default the file is in the user's data folder"""
    with Service({}) as fresh:
        data = fresh.folder / "share"
        words = ("--user", f"--config-dir={fresh.config_dir}", "create", "mine")
        done = fresh.run("env", f"XDG_DATA_HOME={data}", CTL, *words)
        equal(done.returncode, OK, f"exit code; it said {done.stderr!r}")
        equal(sorted(str(p.relative_to(data)) for p in data.rglob("*")), ["sqlipc", "sqlipc/mine.sqlite"], "files")
        equal((data / "sqlipc").stat().st_mode & 0o777, 0o700, "mode of the folder")


# ---- security ----


@test
def security():
    """security: users, groups with their members, and the tables that they see"""
    group = next(g for g in grp.getgrall() if g.gr_gid == pwd.getpwuid(UID_A).pw_gid)
    keys = {"Path": CHINOOK, "AllowUsers": f"root {UID_B}", "AllowGroups": group.gr_name, "Expose": "Album Genre"}
    with Service({"open": CHINOOK, "closed": keys}) as fresh:
        closed, opened = ask_json("security", on=fresh)
        equal((closed["database"], opened["database"]), ("closed", "open"), "databases")
        equal((closed["everybody"], opened["everybody"]), (False, True), "everybody")
        equal([user["name"] for user in closed["users"]], ["root", pwd.getpwuid(UID_B).pw_name], "users")
        (entry,) = closed["groups"]
        equal((entry["name"], entry["gid"]), (group.gr_name, group.gr_gid), "group")
        true(pwd.getpwuid(UID_A).pw_name in entry["members"], f"members {entry['members']}")
        equal((closed["restricted"], opened["restricted"]), (True, False), "restricted")
        equal([o["name"] for o in closed["objects"]], ["Album", "Genre"], "objects")
        equal(closed["objects"][0]["columns"], ["AlbumId", "Title", "ArtistId"], "columns")
        kinds = {o["name"]: o.get("kind") for o in opened["objects"]}
        equal(kinds["Track"], "table", f"kind in {kinds}")
        shown = fields(ask("security", "closed", on=fresh)[0])
        true(shown["Shows"][0].startswith("Album (AlbumId, "), f"shown {shown}")
        true("no database" in ask("security", "nosuch", code=FAILED, on=fresh)[1], "what it says of one that is not there")
        for file in (fresh.config_dir / "databases.d").iterdir():
            file.unlink()
        true("No database is published" in ask("security", on=fresh)[0], "output without a database")
        equal(ask("security", "--no-legend", on=fresh)[0], "", "the same for a program")


@test
def security_of_broken_objects():
    """security: lists an object that does not compile, or whose name no SQL over D-Bus can have, with the reason"""
    path = broken_schema.make(service.data / "told.sqlite")
    with Service({"broken": path}) as fresh:
        (told,) = ask_json("security", on=fresh)
        objects = {entry["name"]: entry for entry in told["objects"]}
        equal(objects["good_view"]["columns"], ["id", "upper"], "columns")
        for name, word in broken_schema.UNREADABLE.items():
            true(word in objects[name]["problem"], f"problem of {objects[name]}")
        for name in (broken_schema.ODD_TABLE, broken_schema.ODD_VIEW, f"non{broken_schema.NONCHARACTER}".encode()):
            entry = objects[name.decode(errors="replace")]
            true("rename it" in entry["problem"] and "columns" not in entry, f"problem of {entry}")


@test
def security_of_writing():
    """security: users who may write, and the tables that they may change"""
    group = next(g for g in grp.getgrall() if g.gr_gid == pwd.getpwuid(UID_A).pw_gid)
    writers = {"Mode": "read-write", "AllowUsers": "*", "WriteUsers": f"root {UID_B}", "WriteGroups": group.gr_name,
               "WritePolkit": "yes"}
    keys = {
        "some": {"Path": CHINOOK, **writers, "WriteTables": "Album Genre", "WriteSchema": "yes"},
        "every": {"Path": CHINOOK, "Mode": "read-write", "AllowUsers": "*", "WriteUsers": "*"},
        "none": {"Path": CHINOOK, "AllowUsers": "*"},
    }
    with Service(keys) as fresh:
        every, none, some = ask_json("security", on=fresh)
        equal((every["writable"], every["write-all"], every["write-tables"]), (True, True, []), "all users")
        equal((none["writable"], "write-all" in none), (False, False), "read-only")
        equal([user["uid"] for user in some["write-users"]], [0, UID_B], "users")
        equal([(g["gid"], g["members"]) for g in some["write-groups"]], [(group.gr_gid, some["write-groups"][0]["members"])],
              "groups")
        true(pwd.getpwuid(UID_A).pw_name in some["write-groups"][0]["members"], f"members {some['write-groups']}")
        equal((some["write-polkit"], every["write-polkit"]), (True, False), "whether polkit is asked")
        equal((some["write-tables"], some["write-schema"]), (["Album", "Genre"], True), "tables")
        shown = fields(ask("security", "some", on=fresh)[0])
        equal(shown["Writer"], ["root", pwd.getpwuid(UID_B).pw_name], "users that are shown")
        equal(shown["They write"], ["Album, Genre, and the schema"], "tables that are shown")
        equal(shown["Write polkit"], ["asked about all other users who may read"], "what is shown of polkit")
        shown = fields(ask("security", "every", on=fresh)[0])
        equal((shown["Writers"], shown["They write"]),
              (["root, and the service's own user; all users who may read"], ["all tables"]), "all that is shown")
        equal(fields(ask("security", "none", on=fresh)[0])["Writers"], ["none: the database is read-only"], "none")


# ---- the service is not there ----


@test
def not_running_but_startable():
    """Verbs that only show files start no service; the others do"""
    with Service({"chinook": CHINOOK}, activation=True) as sleeping:
        equal(ask_json("status", on=sleeping), {"running": False, "bus": sleeping.address}, "status")
        true("not running" in ask("status", on=sleeping)[0], "status")
        equal(ask_json("runs", on=sleeping), [], "runs")
        equal(ask_json("statements", on=sleeping), [], "statements")
        equal(json.loads(ask("--json", "top", "--count=1", on=sleeping)[0])["clients"], [], "top")
        equal(ask_json("reload", on=sleeping), {"running": False}, "reload")
        true(not sleeping.has_owner(), "looking started the service")
        equal([entry["name"] for entry in ask_json("list", on=sleeping)], ["chinook"], "list")
        true(sleeping.has_owner(), "list did not start it")


@test
def nobody_there():
    """No service that can be started, or no bus: exit code 1, with advice"""
    with Service(start=False) as empty:
        for verb in ("list", "status", "runs", "statements", "top", "reload"):
            true("start sqlipcd" in ask(verb, code=FAILED, on=empty)[1], f"advice of {verb}")
        empty.bus.kill()
        empty.bus.wait()
        for verb in ("list", "status", "top"):
            true("--address=" in ask(verb, code=FAILED, on=empty)[1], f"advice of {verb}")


@test
def wrong_usage():
    """Errors of the command line have exit code 2"""
    for arguments in (
        ("frobnicate",),
        ("--json=long", "list"),
        ("--host=x", "--machine=y", "list"),
        ("list", "chinook"),
        ("cancel",),
        ("cancel", "x"),
        ("cancel", "-5"),
        ("add", "name"),
        ("top", "--sort=beauty"),
        ("top", "--delay=0"),
        ("list", "--force"),
        ("--user", "list"),  # together with the --address of all tests here
        ("status", "a", "b"),
    ):
        err = ask(*arguments, code=USAGE)[1]
        true("--help" in err, f"{arguments} said {err!r}")


@test
def help_and_version():
    """--help, --version: on stdout, of each verb"""
    true(ask("--version")[0].startswith("sqlipcctl "), "version")
    out = ask("--help")[0]
    verbs = [line.split()[0] for line in out.split("Verbs:\n")[1].split("\n\n")[0].splitlines()]
    true(len(verbs) >= 10, f"verbs {verbs}")
    manual = (pathlib.Path(__file__).resolve().parents[2] / "docs/man/sqlipcctl.1.rst").read_text()
    for verb in verbs:
        help_text = ask(verb, "--help")[0]
        true(f"sqlipcctl [OPTION…] {verb}" in help_text, help_text)
        true(f"\n{verb}" in manual, f"{verb} is not in the manual")
        for option in (word for word in help_text.split() if word.startswith("--")):
            true(option.rstrip(".,").split("=")[0] in manual, f"{option} of {verb} is not in the manual")


@test
def output_that_cannot_be_written():
    """A full disk is reported with exit code 1; a closed pipe is not reported"""
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run(
            list(map(str, command("list"))), env=service.environment, stdout=full, stderr=subprocess.PIPE, check=False
        )
    equal(done.returncode, FAILED, "exit code")
    true(b"cannot be written" in done.stderr, done.stderr)


main(service)
