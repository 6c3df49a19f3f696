#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""ipcq-cli(1) agrees with the program about options, commands with aliases, modes and settings; and its examples run."""
import os
import re
import sqlite3
import subprocess

from pty_shell import ENTER, Shell, control  # finds what follows

from harness import CLI, SOURCE_ROOT, Service, main
from tap import equal, test, true

SOURCE = (SOURCE_ROOT / "docs/man/ipcq-cli.1.rst").read_text()
# Removes the markup within lines: *emphasis*, **strong**, escapes.
PAGE = re.sub(r"\\(.)", r"\1", re.sub(r"(?<!\\)\*", "", SOURCE))

service = Service(start=False)
packages = service.data / "packages.sqlite"
with sqlite3.connect(packages) as connection:
    connection.execute("CREATE TABLE package(name TEXT, version TEXT, installed_size INTEGER)")
    rows = [(f"lib{n:03}", str(n), n * 1000) for n in range(100)]
    connection.executemany("INSERT INTO package VALUES(?, ?, ?)", rows)
connection.close()
service.database("packages", Path=packages)
service.start()


def said(*arguments):
    done = service.run(CLI, *arguments)
    equal(done.returncode, 0, f"exit code of {arguments}, which said {done.stderr!r}")
    return done.stdout.decode()


def section(title, line="="):
    """Returns the text without markup."""
    return re.search(rf"^{title}\n{line}+\n(.*?)(?=^[^\n]+\n={{3,}}$|\Z)", PAGE, re.M | re.S)[1]


@test
def options():
    """The manual has all options with the names of their values"""
    shown = re.findall(r"^  ((?:-[A-Za-z0-9], )?--[a-z-]+)(?:=(\S+))?  ", said("--help"), re.M)
    true(len(shown) > 15, f"--help shows {shown}")
    wanted = sorted(re.sub(r"(-\w)(?=,)", rf"\1 {value}", names) + f"={value}" if value else names for names, value in shown)
    equal(sorted(re.findall(r"^((?:-\w(?: \S+)?, )?--[a-z-]+(?:=\S+)?)$", section("OPTIONS"), re.M)), wanted, "options")


@test
def commands():
    """The manual has all commands of .help with their arguments and aliases"""
    shown = re.findall(r"^(\.[a-z]+.*)(?:\n    Also (.*)\.)?", said("-c", ".help --all"), re.M)
    true(len(shown) > 40, f".help --all shows {shown}")
    documented = re.findall(r"^(\.[a-z]+.*)(?:\n    Also (.*?)\.(?:\s|$))?", section("COMMANDS"), re.M)
    equal(sorted(documented), sorted(shown), "commands")


@test
def modes():
    """The manual has all modes that --help shows"""
    shown = re.findall(r"^  ([a-z]+) ", said("--help").split("Modes:")[1].split("\n\n")[0], re.M)
    true(len(shown) > 10, f"--help shows {shown}")
    documented = re.findall(r"^([a-z]+(?:, [a-z]+)*)(?:, also tabs)?$", section("MODES"), re.M)
    equal(sorted(", ".join(documented).split(", ")), sorted(shown), "modes")


@test
def settings():
    """The manual has all settings that .show shows"""
    shown = re.findall(r"^ *([a-z-]+): ", said("-c", ".show"), re.M)
    documented = re.search(r"The settings are (.*?);", section("CONFIGURATION"), re.S)[1]
    documented = re.split(r",\s+|\s+and\s+", re.sub(r"\s+\(.*?\)", "", documented))
    equal(sorted(documented), sorted(set(shown) - {"bus", "database", "output"}), "settings")


def examples(title):
    """Returns the lines of the literal block after this text."""
    block = re.search(rf"^{title}::\n\n((?:    .*\n)+)", SOURCE, re.M)
    return [line.strip() for line in block[1].splitlines()]


@test
def examples_for_scripts():
    """Each example for scripts runs, and writes something or fills a file"""
    lines = examples("For scripts")
    true(len(lines) > 5, f"examples {lines}")
    for line in lines:
        environment = service.environment | {
            "PATH": f"{CLI.parent}:{os.environ['PATH']}",
            "DBUS_SESSION_BUS_ADDRESS": service.address,
            "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nonexistent",
        }
        command = ["bash", "-o", "pipefail", "-c", line]
        done = subprocess.run(command, env=environment, cwd=service.folder, capture_output=True, text=True, check=False)
        equal((done.returncode, done.stderr), (0, ""), f"what came of {line!r}")
        written = re.findall(r"sqlite3 (\S+)", line)
        true(done.stdout or written, f"{line!r} wrote nothing")
        for name in written:
            with sqlite3.connect(service.folder / name) as connection:
                copied = sorted(connection.execute("SELECT name, CAST(version AS TEXT) FROM package"))
            equal(copied, [row[:2] for row in rows], f"rows by {line!r}")
            connection.close()


@test
def examples_at_the_prompt():
    """Each example for the prompt runs there without an error"""
    lines = examples("At the prompt")
    true(len(lines) > 5, f"examples {lines}")
    with Shell("--no-pager", "packages", on=service, size=(60, 120)) as shell:
        for line in lines:
            if line.startswith(".watch"):
                shell.type(line)
                shell.send(ENTER)
                shell.wait_for(lambda: re.search(r"\b100\b", shell.text()))
                shell.send(control("C"))
                shell.wait_prompt()
                continue
            shown = "\n".join(shell.run(line))
            true("Error" not in shown, f"{line} says {shown!r}")
        with open(shell.home / "copy.csv", encoding="ascii") as file:
            equal(len(file.readlines()), len(rows) + 1, "lines of the export")


main(service)
