#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The shell on a bus that passes no descriptors, as over ssh: the differences, and all that works the same."""
import os
import pathlib
import shutil
import subprocess
import tempfile

from pty_shell import ENTER, Shell, control  # finds what follows

from harness import CHINOOK, CLI, Service, main
from tap import Skip, equal, test, true

QUERY, UNREACHABLE, LOST = 1, 3, 4
service = Service({"chinook": CHINOOK})


def relayed():
    """Connects to the service's bus through a relay that carries only bytes."""
    bridge = shutil.which("systemd-stdio-bridge")
    if not bridge:
        raise Skip("systemd-stdio-bridge is not there")
    escaped = "".join(c if c.isalnum() or c in "-_/.*" else f"%{ord(c):02x}" for c in service.address)
    return f"unixexec:path={bridge},argv1=--bus-path={escaped}"


def ask(*arguments, address, code=0):
    command = [CLI, f"--address={address}", "--mode=csv", *arguments]
    done = subprocess.run(command, env=service.environment, capture_output=True, text=True, timeout=120)
    equal(done.returncode, code, f"exit code of {arguments}, which said {done.stderr!r}")
    return done.stdout, done.stderr


@test
def transports():
    """auto selects dbus; transports with descriptors are refused on the command line, at the prompt and by .connect"""
    address = relayed()
    for transport in ("auto", "dbus"):
        out, err = ask(f"--transport={transport}", "chinook", ".stats on", "SELECT 1 AS a", address=address)
        equal(out, "a\n1\n", transport)
        true("Transport:   dbus\n" in err, f"{transport}: {err}")
    for transport in ("pipe", "channel"):
        for task in ("SELECT 1", ".databases", ".dump Genre"):
            out, err = ask(f"--transport={transport}", "chinook", task, address=address, code=QUERY)
            equal(out, "", f"{task} by {transport}")
            true("passes no descriptors" in err, f"{task} by {transport}: {err}")
        ask("chinook", f".transport {transport}", address=address, code=QUERY)
        out, _ = ask(f"--transport={transport}", "chinook", ".transport auto", "SELECT 1 AS a", address=address)
        equal(out, "a\n1\n", f"{transport}, and then auto")
        out, err = ask(f"--transport={transport}", "chinook", f".connect --address={address}", ".stats on", "SELECT 1 AS a",
                       address=service.address, code=QUERY)
        equal(out, "a\n1\n", f"{transport}, and the bus that was before")
        true(f"Transport:   {transport}\n" in err, f"{transport}, after .connect failed: {err}")


@test
def completion():
    """Tab completes databases, tables, columns and functions"""
    with Shell(f"--address={relayed()}", "chinook", on=service, address=False) as shell:
        for typed, result in (
            ("SELECT * FROM Alb", "SELECT * FROM Album"),
            ("SELECT * FROM Track t WHERE t.Mill", "SELECT * FROM Track t WHERE t.Milliseconds"),
            ("SELECT group_c", "SELECT group_concat("),
            (".open chin", ".open chinook"),
        ):
            shell.complete(typed, result)
            shell.send(control("U"))
            shell.wait_prompt()


@test
def commands():
    """Commands that call the service other than by queries work"""
    address = relayed()
    for command, text in (
        (".databases", "chinook"),
        (".status", "Service      sqlipcd "),
        (".limit", "row-size-max"),
        (".dump Genre", "INSERT INTO Genre VALUES(1,'Rock');"),
        (".schema Genre", "CREATE TABLE [Genre]"),
    ):
        out, _ = ask("chinook", command, address=address)
        true(text in out, f"{command}: {out}")


def ssh_that(home, does):
    """Puts a program of this name first in PATH."""
    program = home / "bin/ssh"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho ssh >>{home}/log; echo asks >&2; {does}\n")
    program.chmod(0o755)
    return {"PATH": f"{program.parent}:{os.environ['PATH']}"}


@test
def interrupted_while_ssh_asks():
    """Ctrl-C while ssh asks or waits: at the start the shell exits; at .connect it keeps its connection"""
    with tempfile.TemporaryDirectory(prefix="sqlipc-relay-") as folder:
        home = pathlib.Path(folder)
        path = ssh_that(home, "exec sleep 1000")
        with Shell("--host=there", "chinook", on=service, address=False, environment=path, home=home, prompt=False) as shell:
            shell.wait_for("asks")
            shell.send(control("C"))
            equal(shell.wait_exit(60), 130, "exit code")  # The library itself waits longer for an answer.
        with Shell("chinook", on=service, environment=path, home=home) as shell:
            shell.type(".connect --host=there")
            shell.send(ENTER)
            shell.wait_for("asks")
            shell.send(control("C"))
            shell.wait_for(shell.at_prompt, "a prompt", seconds=60)
            true("42" in "\n".join(shell.run("SELECT 6 * 7;")), "it does not go on")
        equal((home / "log").read_text(), "ssh\n" * 2, "how often ssh was started")


@test
def ended_ssh():
    """If ssh ends, the shell reports it, and does not start it again, because it may have asked for a password"""
    with tempfile.TemporaryDirectory(prefix="sqlipc-relay-") as folder:
        home = pathlib.Path(folder)
        path = ssh_that(home, "exit 255")
        command = [CLI, "--host=there", "chinook", "SELECT 1"]
        done = subprocess.run(command, env=service.environment | path, capture_output=True, text=True, timeout=120)
        equal(done.returncode, LOST, f"exit code, which said {done.stderr!r}")
        equal((home / "log").read_text(), "ssh\n", "how often ssh was started")


main(service)
