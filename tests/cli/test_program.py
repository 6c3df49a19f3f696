#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""ipcq-cli as a program that scripts run: its arguments, exit codes, the position of errors in SQL, Ctrl-C, and constant
memory. test_modes.py tests the format of rows.
"""
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bus"))
from harness import CHINOOK, CLI, PATIENT, SANITIZED, Service, main, wait_for  # noqa: E402
from tap import at_most, diagnose, equal, test, true  # noqa: E402

OK, QUERY, USAGE, UNREACHABLE, LOST, OUTPUT, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130
ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT "
STREAM = ENDLESS + "x, 'some text to fill the pages' FROM n"
SCAN = ENDLESS + "count(*) FROM n"

service = Service({"chinook": {"Path": CHINOOK, "Description": "A store"}})


def start(*arguments, on=service, **keywords):
    command = [CLI, f"--address={on.address}", *arguments]
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | keywords
    return subprocess.Popen(list(map(str, command)), env=on.environment, text=True, **streams)


def ask(*arguments, code=OK, given=None, **keywords):
    """Runs the shell; returns the output of both streams. It must end with `code`, and report a failure."""
    if given is not None:
        keywords["stdin"] = subprocess.PIPE
    process = start(*arguments, **keywords)
    out, err = process.communicate(given, timeout=120)
    equal(process.returncode, code, f"exit code of {arguments}, which said {err!r}")
    equal(bool(err), code != OK, f"whether {arguments} said something, which was {err!r}")
    return out, err


@test
def rows_and_lists():
    """0: rows, and the list of databases"""
    equal(ask("--mode=csv", "chinook", "SELECT 1 AS a, NULL AS b, 'x' AS c")[0], "a,b,c\n1,,x\n", "rows")
    equal(ask("--mode=csv", "--list")[0], 'name,description,mode,open\nchinook,"A store",read-only,""\n', "list")
    equal(ask("--mode=csv", "--null=-", "chinook", "SELECT NULL AS b")[0], "b\n-\n", "NULL")
    true(ask("--version")[0].startswith("ipcq-cli "), "--version")
    true("--mode" in ask("--help")[0], "--help")


@test
def what_cannot_be_read():
    """1, with file and line: bytes that are not UTF-8 are skipped; a folder in place of a script stops the rest"""
    script = service.folder / "bytes.sql"
    script.write_bytes(b"SELECT 3;\nSELECT '\xff';\nSELECT 4")
    out, err = ask("--mode=list", "--headers=off", "-f", script, "chinook", code=QUERY)
    equal((out, err), ("3\n4\n", f"ipcq-cli: {script}:2: what is read here is no UTF-8 text\n"), "bytes")
    out, err = ask("-f", service.folder, "-c", ".print behind", code=QUERY)
    equal((out, err), ("", f"ipcq-cli: {service.folder}:1: Is a directory\n"), "a folder")


@test
def what_to_run():
    """Arguments, -c, -f and standard input run in their order, with several statements and commands in each"""
    script = service.folder / "script.sql"
    script.write_text("SELECT 3;\n.print from the file\nSELECT 4")
    quiet = ("--mode=list", "--headers=off")
    equal(ask(*quiet, "chinook", "SELECT 1; SELECT 2", ".print three")[0], "1\n2\nthree\n", "words")
    out = ask(*quiet, "-c", "SELECT 2", "-f", script, "-c", "SELECT 5;", "chinook", "SELECT 6")[0]
    equal(out, "2\n3\nfrom the file\n4\n5\n6\n", "options")
    equal(ask(*quiet, "chinook", given="SELECT 1;\nSELECT\n2;\n.print three\n")[0], "1\n2\nthree\n", "standard input")
    equal(ask(*quiet, "-f", "-", "chinook", given="SELECT 7;")[0], "7\n", "-f -")
    equal(ask("chinook", given="")[0], "", "nothing")
    equal(ask(*quiet, "-o", service.folder / "out", "chinook", "SELECT 8")[0], "", "what -o leaves")
    equal((service.folder / "out").read_text(), "8\n", "what -o wrote")


@test
def failures_of_several():
    """A failure stops the rest only with --bail; the exit code is that of the first failure, reported with file and line"""
    script = service.folder / "script.sql"
    script.write_text("SELECT 1;\n\nSELECT\n  wrong;\n.nonsense\nSELECT 2;\n")
    quiet = ("--mode=list", "--headers=off", "chinook", "-f", script)
    out, err = ask(*quiet, code=QUERY)
    equal(out, "1\n2\n", "output")
    lines = err.splitlines()
    true(lines[0].startswith(f"ipcq-cli: {script}:4: ") and "wrong" in lines[0], err)
    equal(lines[1][lines[2].index("^") :].split()[0], "wrong", "what the caret points to")
    true(any(line.startswith(f"ipcq-cli: {script}:5: ") for line in lines), err)
    out, err = ask("--bail", *quiet, code=QUERY)
    equal(out, "1\n", "output with --bail")
    true("nonsense" not in err, err)


@test
def nothing_but_data():
    """Without a terminal there are no colours, no footers, no progress line, and the user's configuration is not read"""
    home = service.folder / "home"
    (home / ".config/ipcq").mkdir(parents=True)
    (home / ".config/ipcq/config").write_text("[ipcq]\nmode=json\n")
    (home / ".config/ipcq/init.sql").write_text("SELECT 'init';\n")
    command = [CLI, f"--address={service.address}", "--mode=csv", "chinook", "SELECT 1 AS a"]
    everything = service.environment | {"HOME": str(home), "TERM": "xterm-256color"}
    done = subprocess.run(command, env=everything, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    equal((done.returncode, done.stdout, done.stderr), (0, b"a\n1\n", b""), "what it says")
    command[2:3] = []
    done = subprocess.run(command, env=everything, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    equal(done.stdout, b"+---+\n| a |\n+---+\n| 1 |\n+---+\n", "what it says without a mode")


@test
def parameters():
    """-p sets parameters by name, with and without prefix, and by position, in each type"""
    given = ["-p", "a=12", "-p", ":b=1.5", "-p", "3=x'00ff'", "-p", "d=null", "-p", "5='12'"]
    out, _ = ask("--mode=jsonl", *given, "chinook", "SELECT :a AS a, :b AS b, ?3 AS c, @d AS d, ?5 AS e")
    equal(out, '{"a":12,"b":1.5,"c":{"base64":"AP8="},"d":null,"e":"12"}\n', "row")


@test
def wrong_queries():
    """1: the service's errors, by name; wrong SQL with its line and a caret"""
    true("no database of this name" in ask("nosuch", "SELECT 1", code=QUERY)[1], "sentence")
    true("(org.sqlipc1.Error.ReadOnly)" in ask("chinook", "DELETE FROM Genre", code=QUERY)[1], "name")
    out, err = ask("chinook", "SELECT Name,\n       'ü', sise\n  FROM Track", code=QUERY)
    equal(out, "", "output")
    message, line, caret = err.splitlines()
    true("sise" in message and "(org.sqlipc1.Error.Sql)" in message, message)
    equal(line.rstrip()[caret.index("^") :], "sise", f"what the caret of {err!r} points to")


@test
def the_other_bus():
    """The exit code tells a missing database from a missing service; a bus without the database is never suggested"""
    with Service({}, start=False) as empty:
        for address, arguments, code in (
            (service.address, ("nosuch", "SELECT 1"), QUERY),
            (empty.address, ("--list",), UNREACHABLE),
            ("unix:path=/nonexistent", ("--list",), UNREACHABLE),
        ):
            environment = {"DBUS_SESSION_BUS_ADDRESS": address, "DBUS_SYSTEM_BUS_ADDRESS": address}
            for choice in ((), ("--user",), ("--system",)):
                command = [CLI, *choice, *arguments]
                everything = service.environment | environment
                done = subprocess.run(command, env=everything, capture_output=True, text=True, check=False)
                equal(done.returncode, code, f"exit code of {arguments}, which said {done.stderr!r}")
                equal("asks there" in done.stderr, False, f"advice with {choice} in {done.stderr!r}")


@test
def wrong_usage():
    """2: the command line"""
    for arguments in (
        ("--mode=xml", "chinook", "SELECT 1"),
        ("--user", "chinook", "SELECT 1"),  # together with the --address of all tests here
        ("-p", "novalue", "chinook", "SELECT 1"),
        ("--list", "chinook"),
        ("--list", "-p", "a=1"),
        ("--frobnicate", "chinook", "SELECT 1"),
        ("--host=somewhere", "chinook", "SELECT 1"),
        ("--host=", "chinook", "SELECT 1"),
        ("-p", "nobody=1", "chinook", "SELECT 1"),  # no statement has this parameter
        ("--timeout=soon", "chinook", "SELECT 1"),
        ("--transport=pigeon", "chinook", "SELECT 1"),
        ("-c",),
        ("--file=/nonexistent", "chinook"),
    ):
        ask(*arguments, code=USAGE)


@test
def nobody_there():
    """3: no bus, and a bus without the service"""
    with Service(start=False) as empty:
        ask("chinook", "SELECT 1", code=UNREACHABLE, on=empty)
        ask("--list", code=UNREACHABLE, on=empty)
        empty.bus.kill()
        empty.bus.wait()
        ask("chinook", "SELECT 1", code=UNREACHABLE, on=empty)


@test
def lost_in_the_middle():
    """4: the daemon dies during a result"""
    with Service({"chinook": CHINOOK}, limits=PATIENT) as mortal:
        process = start("--mode=csv", "chinook", STREAM, on=mortal)
        for _ in range(100):
            process.stdout.readline()
        mortal.kill()
        _, err = process.communicate(timeout=120)
        equal(process.returncode, LOST, f"exit code, having said {err!r}")
        true(err, "it said nothing")


@test
def output_that_cannot_be_written():
    """5: a full disk is reported; a closed pipe changes only the exit code, and ends the run in the service"""
    with open("/dev/full", "w", encoding="ascii") as full:
        true("space" in ask("--mode=csv", "chinook", "SELECT * FROM Track", code=OUTPUT, stdout=full)[1].lower(), "reason")
    process = start("--mode=csv", "chinook", STREAM)
    process.stdout.readline()
    process.stdout.close()
    equal(process.wait(120), OUTPUT, "exit code")
    equal(process.stderr.read(), "", "what it said")
    process.stderr.close()
    wait_for(lambda: service.counters()["NRuns"] == 0, "the run is over")


@test
def closed_output():
    """5: if its standard streams are closed, no other file gets their descriptor numbers and the rows"""
    command = [CLI, f"--address={service.address}", "--mode=csv", "chinook", "SELECT 'some text'"]
    for closed in (">&-", "<&- >&-"):
        closing = ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", *map(str, command)]
        process = subprocess.run(
            closing, env=service.environment, stderr=subprocess.PIPE, text=True, timeout=120, check=False
        )
        equal(process.returncode, OUTPUT, f"exit code, having said {process.stderr!r}")
        true("Bad file descriptor" in process.stderr, process.stderr)


@test
def interrupted():
    """130: Ctrl-C cancels the query in the service, while it computes and while it streams"""
    for sql in (SCAN, STREAM):
        with open(os.devnull, "w", encoding="ascii") as nowhere:
            process = start("--mode=csv", "chinook", sql, stdout=nowhere)
            wait_for(lambda: service.counters()["NRuns"] == 1, "the run is under way")
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=120)
        equal(process.returncode, INTERRUPTED, f"exit code for {sql}")
        wait_for(lambda: service.counters()["NRuns"] == 0, "the run is over")
    # The shell cancelled the run and waited for its end, so no worker had to be killed.
    true("killed" not in service.log_text(), "a worker was killed")


@test
def ended_in_a_line():
    """143: SIGTERM in the middle of a line from a pipe; the incomplete line does not run"""
    made = service.folder / "made"
    process = start("chinook", stdin=subprocess.PIPE)
    process.stdin.write(f".print ready\n.shell touch {made}")
    process.stdin.flush()
    equal(process.stdout.readline(), "ready\n", "the line before")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    equal((process.returncode, made.exists()), (128 + signal.SIGTERM, False), "exit code, and whether the half line ran")


def peak_memory(process):
    """Returns the largest size of the process in memory until now, in bytes."""
    for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("it has ended")


def constant_memory():
    """After 10 MB of rows the shell has no more memory than after the first MB, in every mode"""
    for mode in ("table", "csv", "json", "jsonl", "line", "tabs"):
        process = start(f"--mode={mode}", "chinook", STREAM)
        process.stdout.read(1000000)
        before = peak_memory(process)
        process.stdout.read(10000000)
        grown = peak_memory(process) - before
        diagnose(f"{mode}: {before >> 10} KiB, and then {grown >> 10} KiB more")
        process.kill()
        process.communicate()
        at_most(grown, 1024 * 1024, f"bytes more in mode {mode}")


if not SANITIZED:  # AddressSanitizer keeps freed memory.
    test(constant_memory)


main(service)
