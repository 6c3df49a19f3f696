# SPDX-License-Identifier: LGPL-2.1-or-later
"""Has SQLAlchemy's own tests use a database of the service as they use a file of SQLite: a plugin of pytest."""

import contextlib

import pytest
from sqlalchemy.dialects import registry
from sqlipc.sqlalchemy import dialect

dialect.driver = "pysqlite"  # The tests expect of the driver of this name what SQLite does.
registry.register("sqlipc.pysqlite", "sqlipc.sqlalchemy", "dialect")


def empty(url):
    """Drops what a test class has left. SQLAlchemy removes the file of SQLite."""
    import sqlipc

    with contextlib.closing(sqlipc.connect(url.database, isolation_level=None)) as db:
        for kind, name in db.execute("SELECT type, name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall():
            if not name.startswith("sqlite_"):
                quoted = name.replace('"', '""')
                db.execute(f'DROP {kind} "{quoted}"')


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session):
    from sqlalchemy.dialects.sqlite import provision as sqlite
    from sqlalchemy.testing import provision

    provision.temp_table_keyword_args.for_db("sqlipc")(sqlite.temp_table_keyword_args.fns["sqlite"])
    provision.upsert.for_db("sqlipc")(sqlite.upsert.fns["sqlite"])
    provision.post_configure_testing_engine.for_db("sqlipc")(provision.post_configure_testing_engine.fns["sqlite"])

    @provision.stop_test_class_outside_fixtures.for_db("sqlipc")
    def stop(config, db, cls):
        db.dispose()
        empty(db.url)


def pytest_collection(session):
    from sqlalchemy.testing import config, exclusions

    if session.config.option.dburi[0].startswith("sqlipc"):
        requirements = type(config.requirements)
        requirements.schemas = property(lambda self: exclusions.closed())  # the tests attach another file
        requirements.savepoints = property(lambda self: exclusions.open())  # without what sqlite3 needs for them
