#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Builds the Debian packages from a copy of the sources, checks them with lintian, and installs them in a booted system,
where inside_package.py runs. Before that, the sections of docs/HACKING.md that need a build tree are followed in that copy.

boot-systemd.sh lists the requirements for the boot. If they are not met, nothing is built, and the test says why.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import test_system
from test_system import HOME, SOURCE

sys.path.insert(0, str(SOURCE / "tests/bus"))
from pages import IN_A_BUILD, blocks, commands  # noqa: E402

PROGRAMS = {"dpkg-buildpackage": "dpkg-dev", "dh": "debhelper", "lintian": "lintian"}


def missing():
    """Why this cannot run here, or nothing."""
    for program, package in PROGRAMS.items():
        if not shutil.which(program):
            return f"needs {program} (package {package})"
    return test_system.missing("broker")


def copy_sources(target):
    """Copies the tracked files in their present state; outside a checkout, everything except build directories."""
    known = subprocess.run(["git", "-C", SOURCE, "ls-files", "-z"], capture_output=True, check=False)
    if known.returncode != 0:
        left_out = [p.name for p in SOURCE.iterdir() if p.name == ".git" or (p / "build.ninja").exists()]
        shutil.copytree(SOURCE, target, symlinks=True, ignore=lambda folder, _: left_out if folder == str(SOURCE) else [])
        return
    for name in known.stdout.decode().split("\0"):
        if name and (SOURCE / name).exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(SOURCE / name, target / name)


def quietly(*words, cwd, **environment):
    """Runs a command whose output matters only if it fails."""
    clean = {"PATH": os.environ["PATH"], "HOME": str(cwd), "LC_ALL": "C.UTF-8"}
    result = subprocess.run(
        words, cwd=cwd, env=clean | environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
    )
    if result.returncode != 0:
        for line in result.stdout.splitlines()[-60:]:
            print("#", line)
        print(f"Bail out! {words[0]} ended with {result.returncode}")
        sys.exit(1)
    return result.stdout


def build(folder):
    """Builds source and binary packages without the unit tests, which run in every other build and take longest, and
    without the packages of debugging symbols, which debhelper makes by itself; so the compiler makes no symbols either."""
    copy_sources(folder / "sqlipc")
    options = f"nocheck noautodbgsym parallel={len(os.sched_getaffinity(0))}"
    quietly("dpkg-buildpackage", "--no-sign", cwd=folder / "sqlipc", DEB_BUILD_OPTIONS=options, DEB_CFLAGS_APPEND="-g0")
    (changes,) = folder.glob("*.changes")
    print(quietly("lintian", "--allow-root", "--fail-on=error", changes, cwd=folder), end="", file=sys.stderr)
    return list(folder.glob("*.deb"))


def make_newer(package, target):
    """Builds the same package again with a higher version."""
    tree = target / package.stem
    quietly("dpkg-deb", "--raw-extract", package, tree, cwd=target)
    control = tree / "DEBIAN/control"
    text = control.read_text()
    version = re.search(r"^Version: (.*)$", text, re.M)[1]
    # Packages of one source depend on each other by version.
    control.write_text(re.sub(rf"((?:^Version: |\(= )){re.escape(version)}\b", rf"\g<1>{version}+newer", text, flags=re.M))
    quietly("dpkg-deb", "-Znone", "--root-owner-group", "--build", tree, target, cwd=target)
    shutil.rmtree(tree)


def insert(path, before, block):
    text = path.read_text()
    if text.count(before) != 1:
        raise ValueError(f"{path} has {text.count(before)} times {before!r}")
    path.write_text(text.replace(before, f"{block}\n{before}"))


def follow_hacking(tree):
    """Adds the method of "A first patch" and runs the service from the build tree, on a bus of its own, with the commands of
    docs/HACKING.md. The build has no test programs in C, so the tests of other names than *.py are left out."""
    page = tree / "docs/HACKING.md"
    texts = [re.search(rf"^## {title}\n([\s\S]*?)(?=^## )", page.read_text(), re.M)[1] for title in IN_A_BUILD]
    (start, database), (xml, function, try_it, row, call, own, check) = (blocks(page, text) for text in texts)
    function, entry = function.rsplit("\n\n", 1)
    insert(tree / "dbus-interfaces/org.sqlipc1.Manager.xml", "  </interface>", xml)
    insert(tree / "daemon/supervisor/bus/manager-bus.c", "static const sd_bus_vtable manager_vtable[]", f"{function}\n")
    insert(tree / "daemon/supervisor/bus/manager-bus.c", "        SD_BUS_VTABLE_END", entry)
    insert(tree / "tests/fuzz/fuzz-bus-methods.c", '        { SQLIPC_MANAGER_INTERFACE, "ListDatabases"', row)
    insert(tree / "tests/reliability/test_hostile_bus.py", '            ("ListRuns", ', call)
    insert(tree / "tests/bus/test_users.py", "main(service)", f"{own}\n\n")
    (tree / "build").symlink_to(*tree.glob("obj-*"))
    (tree / "DIR/databases.d").mkdir(parents=True)
    path = tree / "tests/data/chinook.sqlite"
    (tree / "DIR/databases.d/NAME.conf").write_text(re.sub("(?m)^Path=.*$", f"Path={path}", f"{database}\n"))
    bus, service, listing = commands(start)
    make, ask = commands(try_it)
    identity, named = commands(check)
    scripts = [path for name in named.split()[4:] for path in tree.glob(f"tests/*/test_{name}.py")]
    lines = [make, f"ADDRESS=$({bus})", service.replace(" &", " >service.log 2>&1 &"),
             f"until {listing}; do sleep 0.1; done", ask, identity, *map(str, scripts)]
    script = "\n".join(line.replace("=ADDRESS", "=$ADDRESS") for line in lines)
    quietly("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-eux", "-c", script, cwd=tree)


def make_layer(layer, packages):
    for name in [*test_system.COPIED, "debian/tests", "tests/cli", "tests/glib", "README.md", "docs"]:
        test_system.copy(name, layer / HOME / name)
    for folder in ("packages", "newer"):
        (layer / HOME / folder).mkdir()
    for package in packages:
        shutil.copy(package, layer / HOME / "packages")
        make_newer(package, layer / HOME / "newer")
    for path in [layer, *layer.rglob("*")]:
        path.chmod(path.stat().st_mode | (0o755 if path.is_dir() else 0o644))


def main():
    reason = missing()
    if reason:
        print(f"1..0 # SKIP {reason}")
        return 0
    with tempfile.TemporaryDirectory(prefix="sqlipc-package-") as name:
        folder = pathlib.Path(name)
        layer, journal = folder / "layer", folder / "journal"
        layer.mkdir()
        make_layer(layer, build(folder))
        follow_hacking(folder / "sqlipc")
        boot = [SOURCE / "tests/system/boot-systemd.sh", "-l", layer, "-J", journal]
        inside = ["/usr/bin/python3", "-B", f"/{HOME}/tests/system/inside_package.py", "broker"]
        done = subprocess.run([*boot, "--", *inside], check=False)
        if done.returncode != 0 and journal.exists():
            for line in journal.read_text(errors="replace").splitlines()[-80:]:
                print("#", line)
        return done.returncode


if __name__ == "__main__":
    sys.exit(main())
