#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The package as users install it from a checkout: `pip install .` into a fresh environment, and a wheel."""

import os
import shutil
import subprocess
import sys
import zipfile

from harness import SOURCE_ROOT, main
from python_service import PythonService
from tap import Skip, equal, test, true

service = PythonService()
checkout = service.folder / "checkout"
venv = service.folder / "venv"
BUILD_FOLDER = "--config-settings=build-dir=builddir"
CI = os.environ.get("CI") == "true"

PROGRAM = """
import importlib.metadata, sqlipc, sqlipc.aio
print(sqlipc.__file__.startswith({venv!r}), sqlipc.version == importlib.metadata.version("sqlipc"))
with sqlipc.connect("notes", bus={bus!r}) as db:
    db.execute("INSERT INTO note(text) VALUES (?)", ("installed",))
print(db.execute("SELECT text FROM note").fetchall())
(entry,) = (e for e in importlib.metadata.entry_points(group="sqlalchemy.dialects") if e.name == "sqlipc")
print(entry.value)
"""


def environment():
    """Nothing of the build tree: what is imported must be installed."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LD_LIBRARY_PATH")}
    return kept | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def run(*command, folder=checkout):
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )
    true(done.returncode == 0, f"{command} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def fresh_environment():
    """Copies the sources, so that the build leaves nothing in them, and makes the environment."""
    if venv.exists():
        return
    # Of the builds, which are as large as the sources, only those in the root are left out.
    left_out = [path.name for path in SOURCE_ROOT.iterdir() if path.name.startswith("build") or path.name == ".git"]
    shutil.copytree(
        SOURCE_ROOT,
        checkout,
        symlinks=True,
        ignore=lambda folder, names: left_out if os.path.samefile(folder, SOURCE_ROOT) else [],
    )
    run(sys.executable, "-m", "venv", venv, folder=service.folder)
    wanted = [venv / "bin/pip", "download", "--quiet", "--no-deps", "--dest", service.folder / "found", "meson-python"]
    found = subprocess.run(wanted, env=environment(), capture_output=True, text=True, check=False)
    if found.returncode != 0 and not CI:
        raise Skip("no network: pip cannot get meson-python")


@test
def install():
    """`pip install .` of a checkout: the package is imported from there and queries the service"""
    fresh_environment()
    # The wheel of the next test uses the same build.
    run(venv / "bin/pip", "install", "--quiet", BUILD_FOLDER, ".")
    program = PROGRAM.format(venv=str(venv), bus=service.address)
    said = run(venv / "bin/python", "-c", program, folder=service.folder).splitlines()
    equal(said, ["True True", "[('installed',)]", "sqlipc.sqlalchemy:SQLiteDialect_sqlipc"], "output")


@test
def wheel():
    """`pip wheel .`: one wheel for all versions of Python from 3.11 on, with the library inside and nothing else"""
    fresh_environment()
    run(venv / "bin/pip", "wheel", "--quiet", "--no-deps", BUILD_FOLDER, "--wheel-dir", "wheels", ".")
    (file,) = (checkout / "wheels").iterdir()
    true("-cp311-abi3-" in file.name, f"the wheel is {file.name}")
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        archive.extractall(service.folder / "wheel")
    modules = {path.name for path in (SOURCE_ROOT / "client-lib/python/sqlipc").iterdir()} - {"meson.build", "__pycache__"}
    packed = {name.removeprefix("sqlipc/") for name in names if name.startswith("sqlipc/")}
    equal(packed, modules | {"_native.abi3.so"}, "files of the package")
    strays = [name for name in names if not name.startswith(("sqlipc/", "sqlipc-"))]
    equal(strays, [], "other files in the wheel")
    needed = run("readelf", "--dynamic", service.folder / "wheel/sqlipc/_native.abi3.so")
    true("libsqlipc" not in needed, f"the wheel needs the shared library:\n{needed}")


main(service)
