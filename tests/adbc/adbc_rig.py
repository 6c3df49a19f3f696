# SPDX-License-Identifier: LGPL-2.1-or-later
"""The environment of the ADBC driver's tests: their packages, the driver by its manifest, connections to a service's bus.

Imported by /usr/bin/python3, it makes the environment (make-environment.sh) and starts the test again in it.
"""
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
BUILD_ROOT = pathlib.Path(os.environ.get("SQLIPC_BUILD_ROOT", HERE.parents[1] / "build"))
sys.path.insert(0, str(HERE.parent / "bus"))
from tap import make_for_file  # noqa: E402

FOLDER = BUILD_ROOT / "tests/adbc/environment"
PYTHON = FOLDER / "python/bin/python"
DRIVER = BUILD_ROOT / "client-lib/adbc/libadbc_driver_sqlipc.so"
CI = os.environ.get("CI") == "true"

if pathlib.Path(sys.prefix) != PYTHON.parents[1]:
    make_for_file(HERE / "make-environment.sh", FOLDER, "the Python packages cannot be installed")
    os.execv(PYTHON, [PYTHON, *sys.argv])

import adbc_driver_manager.dbapi  # noqa: E402
import pyarrow  # noqa: E402
from harness import PATIENCE  # noqa: E402
from library import service_of_notes  # noqa: E402, F401 - for the tests

# A folder in which driver managers find the driver of the build tree by its name.
MANIFESTS = FOLDER / "manifests"
MANIFESTS.mkdir(exist_ok=True)
text = (BUILD_ROOT / "client-lib/adbc/sqlipc.toml").read_text()
installed = next(line for line in text.splitlines() if line.startswith("shared = "))
# Tests that run at the same time share it, and may be reading it.
new = MANIFESTS / f"sqlipc.toml.{os.getpid()}"
new.write_text(text.replace(installed, f'shared = "{DRIVER}"'))
new.replace(MANIFESTS / "sqlipc.toml")
os.environ["ADBC_DRIVER_PATH"] = str(MANIFESTS)


def connect(service, database, autocommit=True, options=None, **more):
    """`options`: of the database; `more`: adbc.sqlipc.X=Y, of the connection."""
    keywords = {"adbc.sqlipc.bus": service.address, "adbc.sqlipc.database": database} | (options or {})
    return adbc_driver_manager.dbapi.connect(
        "sqlipc",
        db_kwargs=keywords,
        conn_kwargs={f"adbc.sqlipc.{key}": str(value) for key, value in ({"timeout": PATIENCE} | more).items()},
        autocommit=autocommit,
    )


def table(connection, sql, parameters=None, **options):
    """Returns the result as a table that pyarrow has checked; `options`: adbc.sqlipc.X=Y, of the statement."""
    with connection.cursor() as cursor:
        if options:
            cursor.adbc_statement.set_options(**{f"adbc.sqlipc.{key}": str(value) for key, value in options.items()})
        cursor.execute(sql, parameters)
        result = cursor.fetch_arrow_table()
        result.validate(full=True)
        return result


def rows(connection, sql, parameters=None, **options):
    return [tuple(row.values()) for row in table(connection, sql, parameters, **options).to_pylist()]


def fails(status, function, *arguments, **keywords):
    """Fails unless the call raises an error of ADBC with this status; returns the error, with its details as a dict."""
    try:
        result = function(*arguments, **keywords)
    except adbc_driver_manager.Error as error:
        if error.status_code.name != status:
            raise AssertionError(f"got {error}, expected {status}") from None
        error.facts = {key.decode() if isinstance(key, bytes) else key: value.decode() for key, value in error.details or []}
        return error
    raise AssertionError(f"got {str(result)[:300]}, expected {status}")


def breaks_off(text, function):
    """Fails unless the call of a reader of pyarrow, which does not know ADBC's errors, raises one with this text."""
    try:
        function()
    except (pyarrow.ArrowInvalid, OSError) as error:
        if text not in str(error):
            raise AssertionError(f"{text!r} is not in {error}") from None
        return
    raise AssertionError("the reader went on")
