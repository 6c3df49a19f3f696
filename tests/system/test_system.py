#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Boots a real systemd with a real system bus over an installed tree, and runs inside.py there.

usage: test_system.py broker|daemon

What is needed to boot stands in boot-systemd.sh; where it is not there, the suite is skipped and says why.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SQLIPC_BUILD_ROOT", SOURCE / "build"))
# Where the tests lie inside, with the folders that they have here.
HOME = "usr/lib/sqlipc-test"
COPIED = [
    "tests/bus/client.py",
    "tests/bus/tap.py",
    "tests/vectors/page_decoder.py",
    "tests/system/inside.py",
    "tests/data/chinook.sqlite",
    "dbus-interfaces/sqlipc-errors.h",
]


def missing(bus):
    """Why this cannot run here, or nothing."""
    if os.geteuid() != 0:
        return "needs root"
    if not shutil.which("systemd-nspawn"):
        return "needs systemd-nspawn (package systemd-container)"
    unit = "dbus-broker" if bus == "broker" else "dbus"
    if not pathlib.Path(f"/usr/lib/systemd/system/{unit}.service").exists():
        return f"needs {unit}"
    if " - cgroup2 " not in pathlib.Path("/proc/self/mountinfo").read_text():
        return "needs a cgroup2 mount"
    return None


def make_layer(layer):
    """What is copied over the root: an installation, the tests, and what an administrator would write."""
    subprocess.run(
        ["meson", "install", "-C", BUILD, "--quiet", "--destdir", layer], check=True, stdout=sys.stderr
    )
    for name in COPIED:
        target = layer / HOME / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SOURCE / name, target)
    written = {
        "etc/dbus-1/system.d/org.sqlipc1.conf": (SOURCE / "tests/system/org.sqlipc1.conf").read_text(),
        "usr/lib/sysusers.d/sqlipc-test.conf": "u sqlipc-daemon - - -\nu sqlipc-reader - - -\nu sqlipc-other - - -\n",
        "etc/sqlipc/databases.d/chinook.conf": f"[Database]\nPath=/{HOME}/tests/data/chinook.sqlite\n"
        "Description=A store\nAllowUsers=*\n",
    }
    for name, text in written.items():
        (layer / name).parent.mkdir(parents=True, exist_ok=True)
        (layer / name).write_text(text)
    for path in [layer, *layer.rglob("*")]:
        path.chmod(path.stat().st_mode | (0o755 if path.is_dir() else 0o644))


def main():
    bus = sys.argv[1]
    reason = missing(bus)
    if reason:
        print(f"1..0 # SKIP {reason}")
        return 0
    with tempfile.TemporaryDirectory(prefix="sqlipc-layer-") as folder:
        layer, journal = pathlib.Path(folder, "layer"), pathlib.Path(folder, "journal")
        layer.mkdir()
        make_layer(layer)
        done = subprocess.run(
            [
                SOURCE / "tests/system/boot-systemd.sh",
                "-l",
                layer,
                "-B",
                bus,
                "-J",
                journal,
                "--",
                "/usr/bin/python3",
                "-B",
                f"/{HOME}/tests/system/inside.py",
                bus,
            ],
            check=False,
        )
        if done.returncode != 0 and journal.exists():
            for line in journal.read_text(errors="replace").splitlines()[-80:]:
                print("#", line)
        return done.returncode


sys.exit(main())
