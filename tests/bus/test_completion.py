#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Completion in a real bash and a real zsh on a terminal of their own: the line after Tab, and the choices that Tab offers.

A line is typed, Tab pressed, and then a key that writes down what the shell has in its line editor. The shell reads keys one
after the other, so nothing waits for time.
"""
import os
import pathlib
import pty
import re
import shutil
import subprocess
import tempfile

from harness import BUILD_ROOT, CHINOOK, CLI, PATIENT, SOURCE_ROOT, Service, main, wait_for
from tap import Skip, equal, test, true

CTL = BUILD_ROOT / "tools/ctl/sqlipcctl"
COMPLETION = SOURCE_ROOT / "tools/completion"

service = Service({"chinook": {"Path": CHINOOK}, "other": {"Path": CHINOOK}}, limits=PATIENT)
TO_SERVICE = f"--address={service.address}"

BASH = """
PS1= PS2= HISTFILE=
bind 'set bell-style none'
bind 'set show-all-if-ambiguous off'
bind 'set completion-query-items 0'
source {completion}/sqlipcctl.bash
source {completion}/ipcq-cli.bash
complete -p sqlipcctl ipcq-cli || exit
record() {{
    "$@"
    offered=("${{COMPREPLY[@]}}")
}}
complete_sqlipcctl() {{ record _sqlipcctl; }}
complete_ipcq_cli() {{ record _ipcq_cli; }}
complete -F complete_sqlipcctl sqlipcctl
complete -F complete_ipcq_cli ipcq-cli
dump() {{ printf '%s\\n' "$READLINE_LINE" "${{offered[@]}}" >{out}.new; mv {out}.new {out}; }}
bind -x '"\\C-xd": dump'
"""

ZSH = """
PS1= PS2= HISTFILE=
setopt no_beep no_list_beep
fpath=({completion} $fpath)
autoload -Uz compinit
compinit -u -D
typeset -ga offered
compadd() {{
    local -a hits
    if [[ ${{@[1,(i)(-|--)]}} == *-(O|A|D)\\ * ]]; then
        builtin compadd "$@"
        return
    fi
    builtin compadd -A hits "$@"
    offered+=($hits)
    builtin compadd "$@"
}}
begin() {{ offered=(); zle expand-or-complete }}
dump() {{ print -rl -- "$BUFFER" $offered >{out}.new; mv {out}.new {out} }}
zle -N begin
zle -N dump
bindkey '^I' begin
bindkey '^Xd' dump
"""


class Shell:
    """One of the two, interactive."""

    def __init__(self, name):
        self.name = name
        program = shutil.which(name)
        if not program:
            raise Skip(f"{name} is not installed")
        self.folder = tempfile.TemporaryDirectory(prefix="sqlipc-completion-")
        self.out = pathlib.Path(self.folder.name) / "out"
        # timeout(1) of two seconds would complete nothing on a machine that takes longer to start a program.
        patient = pathlib.Path(self.folder.name) / "timeout"
        patient.write_text('#!/bin/sh\nshift\nexec "$@"\n')
        patient.chmod(0o755)
        script = pathlib.Path(self.folder.name) / ".zshrc"
        script.write_text((ZSH if name == "zsh" else BASH).format(completion=COMPLETION, out=self.out))
        command = [program, "-d", "-i"] if name == "zsh" else [program, "--noprofile", "--rcfile", script, "-i"]
        environment = service.environment | {
            "PATH": f"{self.folder.name}:{CTL.parent}:{CLI.parent}:{os.environ['PATH']}",
            "TERM": "dumb",
            "ZDOTDIR": self.folder.name,
            "DBUS_SESSION_BUS_ADDRESS": service.address,
            "HOME": self.folder.name,
        }
        self.terminal, slave = pty.openpty()
        self.process = subprocess.Popen(
            list(map(str, command)),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            cwd=self.folder.name,
            start_new_session=True,
        )
        os.close(slave)
        os.set_blocking(self.terminal, False)
        self.talk = b""

    def _has_written(self):
        try:  # what the shell shows is read, so that it never waits for us
            self.talk += os.read(self.terminal, 65536)
        except (BlockingIOError, OSError):
            pass
        true(self.process.poll() is None, f"{self.name} ended, having said {self.talk!r}")
        return self.out.exists()

    def complete(self, line):
        """The line after Tab, and the choices."""
        self.out.unlink(missing_ok=True)
        os.write(self.terminal, b"\x15" + line.encode() + b"\t\x18d")
        wait_for(self._has_written, f"{self.name} completes {line!r}; it said {self.talk!r}")
        after, *offered = self.out.read_text().splitlines()
        return after, sorted(set(filter(None, offered)))

    def close(self):
        os.close(self.terminal)
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()


def in_both(function):
    """A test in each of the two shells."""
    for name in ("bash", "zsh"):

        def run(name=name):
            shell = Shell(name)
            try:
                function(shell)
            finally:
                shell.close()

        run.__name__ = f"{function.__name__}_{name}"
        run.__doc__ = f"{name}: {function.__doc__}"
        test(run)
    return function


def help_of(*command):
    return service.run(*command, "--help").stdout.decode()


def options_of(*command):
    return re.findall(r"^  (?:-[A-Za-z0-9], )?(--[a-z-]+)", help_of(*command), re.M)


def modes():
    """Of ipcq-cli."""
    listed = re.findall(r"^  ([a-z]+) ", help_of(CLI).split("Modes:")[1].split("\n\n")[0], re.M)
    true(len(listed) > 10, f"--help lists the modes {listed}")
    return sorted(listed)


@in_both
def verbs(shell):
    """Verbs: all, those that begin so, the one"""
    listed = re.findall(r"^  ([a-z]+) ", help_of(CTL).split("Verbs:")[1], re.M)
    true(len(listed) >= 10, f"--help lists {listed}")
    equal(shell.complete("sqlipcctl ")[1], sorted(listed), "verbs")
    equal(shell.complete("sqlipcctl sta")[1], ["statements", "status"], "verbs with sta")
    equal(shell.complete("sqlipcctl rel")[0], "sqlipcctl reload ", "line")
    equal(shell.complete(f"sqlipcctl {TO_SERVICE} secu")[0], f"sqlipcctl {TO_SERVICE} security ", "line with an option")


@in_both
def options(shell):
    """Options: each that --help shows, those of a verb behind it"""
    for command, program in ((["sqlipcctl"], CTL), (["sqlipcctl", "add"], CTL), (["ipcq-cli"], CLI)):
        offered = shell.complete(" ".join(command) + " --")[1]
        wanted = options_of(program, *command[1:])
        true(len(wanted) > 5, f"{command} --help shows {wanted}")
        equal([option.rstrip("=") for option in offered], sorted(wanted), f"options of {command}")
    equal(shell.complete("sqlipcctl add --forc")[0], "sqlipcctl add --force ", "line")
    equal(shell.complete("sqlipcctl add --desc")[0], "sqlipcctl add --description=", "line of one with a value")


@in_both
def databases(shell):
    """Databases, from the running service"""
    for verb in ("status", "security"):
        equal(shell.complete(f"sqlipcctl {TO_SERVICE} {verb} ")[1], ["chinook", "other"], "offered")
        equal(shell.complete(f"sqlipcctl {verb} {TO_SERVICE} ch")[0], f"sqlipcctl {verb} {TO_SERVICE} chinook ", "line")
    equal(shell.complete(f"ipcq-cli {TO_SERVICE} ")[1], ["chinook", "other"], "offered")
    equal(shell.complete("ipcq-cli --user --mode=csv o")[0], "ipcq-cli --user --mode=csv other ", "line")


@in_both
def runs(shell):
    """Numbers of runs, for cancel"""
    client = service.client()
    run = client.query("chinook", "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT x FROM n")
    line = f"sqlipcctl {TO_SERVICE} cancel "
    equal(shell.complete(line)[0], f"{line}{run.number} ", "line")
    service.forget()


@in_both
def tables(shell):
    """Tables at the end of the SQL, in and out of quotes"""
    for quote in "'\"":
        line = f"ipcq-cli {TO_SERVICE} chinook {quote}SELECT * FROM Alb"
        equal(shell.complete(line)[0].rstrip(quote), line + "um", "line")
        equal(shell.complete(f"{line}um{quote}")[0].rstrip(), f"{line}um{quote}", "line with its quote closed")
    offered = shell.complete(f"ipcq-cli {TO_SERVICE} chinook 'SELECT * FROM Al")[1]
    equal([text.split()[-1] for text in offered], ["Album"], "offered")
    line = f"ipcq-cli {TO_SERVICE} chinook --mode=csv -c 'SELECT * FROM Alb"
    equal(shell.complete(line)[0].rstrip("'"), line + "um", "line with -c")
    line = f"ipcq-cli {TO_SERVICE} chinook 'SELECT 1' 'SELECT * FROM Alb"
    equal(shell.complete(line)[0].rstrip("'"), line + "um", "line with two statements")
    line = f"ipcq-cli --address {service.address} chinook '.schema Alb"
    equal(shell.complete(line)[0].rstrip("'"), line + "um", "line with a command")


@in_both
def watched_tables(shell):
    """Tables after --wait DATABASE: all words are names, and none is SQL"""
    equal(shell.complete(f"ipcq-cli {TO_SERVICE} --wait chinook Pl")[1], ["Playlist", "PlaylistTrack"], "tables with Pl")
    wait = f"ipcq-cli {TO_SERVICE} --wait chinook"
    equal(shell.complete(f"{wait} Track Pl")[1], ["Playlist", "PlaylistTrack"], "another table")
    equal(shell.complete(f"{wait} Albu")[0].strip(), f"{wait} Album", "the one with Albu")


@in_both
def commands(shell):
    """Commands of the shell, in the place of SQL: all that .help lists"""
    listed = re.findall(r"^(\.[a-z]+)", service.run(CLI, "-c", ".help").stdout.decode(), re.M)
    true(len(listed) > 20, f".help lists {listed}")
    offered = shell.complete(f"ipcq-cli {TO_SERVICE} chinook .")[1]
    equal(offered, sorted(set(listed)), "offered")
    equal(shell.complete("ipcq-cli chinook .tabl")[0], "ipcq-cli chinook .tables ", "line")
    equal(shell.complete("ipcq-cli chinook '.tabl")[0].rstrip(" '"), "ipcq-cli chinook '.tables", "line with a quote")
    line = "ipcq-cli --mode=csv chinook -c .tabl"
    equal(shell.complete(line)[0], f"{line}es ", "line with -c")


@in_both
def values(shell):
    """Values of options: modes, words that --help lists, files, users, folders, keys"""
    equal(shell.complete("ipcq-cli --mode=")[1], modes(), "modes")
    equal(shell.complete("ipcq-cli -m ")[1], modes(), "modes behind -m")
    equal(shell.complete("ipcq-cli chinook --mode=ta")[1], ["table"], "modes with ta")
    equal(shell.complete("ipcq-cli --headers=")[1], ["auto", "off", "on"], "values of --headers")
    equal(shell.complete("ipcq-cli --transport ch")[0], "ipcq-cli --transport channel ", "line with --transport")
    keys = shell.complete("sqlipcctl top --sort=")[1]
    true(len(keys) > 5, f"keys {keys}")
    for key in keys:
        equal(service.run(CTL, TO_SERVICE, "top", f"--sort={key}", "--count=1").returncode, 0, f"exit code of --sort={key}")
    true("root" in shell.complete("sqlipcctl add --allow-user=roo")[0], "users")
    folder = pathlib.Path(shell.folder.name)
    (folder / "a-folder").mkdir()
    (folder / "a-file").touch()
    true(shell.complete("sqlipcctl --config-dir=a-f")[0].startswith("sqlipcctl --config-dir=a-folder"), "folders alone")
    equal(shell.complete("sqlipcctl check a-fi")[0], "sqlipcctl check a-file ", "files")
    for option in ("--output=", "--output ", "-o ", "-f ", "--file="):
        equal(shell.complete(f"ipcq-cli {option}a-fi")[0], f"ipcq-cli {option}a-file ", f"files of {option}")
    equal(shell.complete("sqlipcctl create --schema=a-fi")[0], "sqlipcctl create --schema=a-file ", "files of --schema")
    equal(shell.complete("sqlipcctl add --mode=read-w")[0], "sqlipcctl add --mode=read-write ", "modes")
    equal(shell.complete("sqlipcctl add name a-fi")[0], "sqlipcctl add name a-file ", "files of add")


@in_both
def nobody_there(shell):
    """Without a service nothing is offered, and nothing is said"""
    nowhere = "--address=unix:path=/nonexistent"
    for line in (f"sqlipcctl {nowhere} status x", f"ipcq-cli {nowhere} x", f"ipcq-cli {nowhere} x 'SELECT * FROM x"):
        equal(shell.complete(line), (line, []), "line and offers")


@in_both
def another_machine(shell):
    """Another machine is not asked: ssh might want a password"""
    ssh = pathlib.Path(shell.folder.name) / "ssh"
    ssh.write_text(f"#!/bin/sh\ntouch {shell.folder.name}/asked\n")
    ssh.chmod(0o755)
    for option in ("--host=somewhere", "--host somewhere", "-H somewhere"):
        for rest in ("ch", "chinook 'SELECT * FROM Alb"):
            line = f"ipcq-cli {option} {rest}"
            equal(shell.complete(line), (line, []), "line and offers")
        line = f"sqlipcctl {option} status ch"
        equal(shell.complete(line), (line, []), "line and offers of sqlipcctl")
    true(not (ssh.parent / "asked").exists(), "it asked")


main(service)
