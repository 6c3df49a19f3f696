#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""sqlipcctl and the files of a database: cat, edit and remove."""
import json

from harness import CHINOOK, CTL, Service, main
from tap import equal, test, true

OK, FAILED, USAGE = 0, 1, 2
service = Service({"chinook": CHINOOK})
vendor = service.folder / "vendor"
drop_in = service.config_dir / "databases.d/chinook.conf.d/override.conf"


def ask(*arguments, code=OK, editor="false"):
    folders = [f"--config-dir={folder}" for folder in (service.config_dir, vendor)]
    done = service.run("env", f"EDITOR={editor}", CTL, f"--address={service.address}", *folders, *arguments)
    out, err = done.stdout.decode(), done.stderr.decode()
    equal(done.returncode, code, f"exit code of {arguments}, which said {err!r} and printed {out!r}")
    return out, err


def appends(line):
    """An editor that adds a line."""
    return f"sh -c 'echo \"{line}\" >>\"$0\"'"


@test
def edit():
    """edit: a drop-in by default; checked before it is in place; unchanged, empty and broken texts change nothing"""
    true("Nothing was changed" in ask("edit", "chinook", editor="true")[1], "an editor that changes nothing")
    true("editor failed" in ask("edit", "chinook", code=FAILED)[1], "an editor that fails")
    ask("edit", "chinook", editor="sh -c ': >\"$0\"'")
    err = ask("edit", "chinook", code=FAILED, editor=appends("Immutable=perhaps"))[1]
    true("Immutable=perhaps" in err and "The new text is in " in err, err)
    true(not drop_in.exists(), "a drop-in was written")
    out = ask("edit", "chinook", "--reload", editor=appends("Description=edited"))[0]
    equal(out, f"Wrote {drop_in}.\nPublished: 1 database.\n", "what it printed")
    equal(json.loads(ask("--json", "list")[0])[0]["description"], "edited", "description")
    equal([p.name for p in drop_in.parent.iterdir()], ["override.conf"], "files")
    err = ask("edit", "chinook", code=FAILED, editor=appends("Expsoe=Genre"))[1]
    true("key Expsoe= is not known: perhaps Expose= is meant" in err and "Nothing was changed" in err, err)
    true("is on line" in ask("edit", "chinook", editor=appends("Polkit=no\nPolkit=no"))[1], "warning")
    file = service.config_dir / "databases.d/chinook.conf"
    told = json.loads(ask("edit", "chinook", "--full", "--json", editor=appends("Immutable=no"))[0])
    equal(told, {"file": str(file)}, "document")
    true(file.read_text().endswith("Immutable=no\n"), file.read_text())
    true("no database" in ask("edit", "nosuch", code=FAILED, editor="true")[1], "a database that is not there")


@test
def cat():
    """cat: the effective file and its drop-ins with their paths, safe to show"""
    more = vendor / "databases.d/chinook.conf.d/10-vendor.conf"
    more.parent.mkdir(parents=True)
    more.write_text("[Database]\nDescription=\x1b[2Jred")
    out = ask("cat", "chinook")[0]
    paths = [line[2:] for line in out.splitlines() if line.startswith("# /")]
    equal(paths, [str(p) for p in (service.config_dir / "databases.d/chinook.conf", more, drop_in)], "paths")
    true(f"Path={CHINOOK}\n" in out and "Description=\\x1b[2Jred\n" in out and "Description=edited\n" in out, out)
    equal([file["file"] for file in json.loads(ask("--json", "cat", "chinook")[0])], paths, "paths as JSON")
    for name in ("nosuch", "../chinook"):
        true("no database" in ask("cat", name, code=FAILED)[1], f"cat {name}")
    more.unlink()


@test
def remove():
    """remove: removes and names the files that add and edit wrote, not those of other directories"""
    (vendor / "databases.d/theirs.conf").write_text(f"[Database]\nPath={CHINOOK}\n")
    err = ask("remove", "theirs", code=FAILED)[1]
    true(f"ln -s /dev/null {service.config_dir}/databases.d/theirs.conf" in err, err)
    true((vendor / "databases.d/theirs.conf").exists(), "the vendor's file is gone")
    true("no database" in ask("remove", "nosuch", code=FAILED)[1], "what it says of one that is not there")
    ask("remove", "../config/databases.d/chinook", code=USAGE)
    file = service.config_dir / "databases.d/chinook.conf"
    out = ask("remove", "chinook", "--reload")[0]
    equal(out, f"Removed {file}.\nRemoved {drop_in}.\nPublished: 0 databases.\n", "what it printed")
    equal(list((service.config_dir / "databases.d").iterdir()), [], "what is left")


main(service)
