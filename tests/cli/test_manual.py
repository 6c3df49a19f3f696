#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""ipcq-cli(1) agrees with the program about options, commands with aliases, modes and settings."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bus"))
from harness import CLI, SOURCE_ROOT, Service, main  # noqa: E402
from tap import equal, test, true  # noqa: E402

SOURCE = (SOURCE_ROOT / "docs/man/ipcq-cli.1.rst").read_text()
# Removes the markup within lines: *emphasis*, **strong**, escapes.
PAGE = re.sub(r"\\(.)", r"\1", re.sub(r"(?<!\\)\*", "", SOURCE))

service = Service()


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


main(service)
