# SPDX-License-Identifier: LGPL-2.1-or-later
"""SQLAlchemy's own tests of dialects, for sqlite and for sqlipc with the same requirements."""

import fnmatch
import os
import pathlib

import pytest
from sqlalchemy.dialects import registry
from sqlalchemy.testing.provision import temp_table_keyword_args, upsert

registry.register("sqlipc", "sqlipc.sqlalchemy", "dialect")
registry.register("sqlipc.sqlipc", "sqlipc.sqlalchemy", "dialect")  # how the tests write it

from sqlalchemy.testing.plugin import pytestplugin  # noqa: E402
from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403


# SQLAlchemy chooses these by the name in the URL.
@temp_table_keyword_args.for_db("sqlipc")
def _temporary(cfg, engine):
    return {"prefixes": ["TEMPORARY"]}


@upsert.for_db("sqlipc")
def _upsert(cfg, table, returning, *, set_lambda=None, sort_by_parameter_order=False, index_elements=None):
    from sqlalchemy.dialects.sqlite import insert

    statement = insert(table)
    if set_lambda:
        statement = statement.on_conflict_do_update(set_=set_lambda(statement.excluded))
    else:
        statement = statement.on_conflict_do_nothing()
    return statement.returning(*returning, sort_by_parameter_order=sort_by_parameter_order)


def excluded():
    """Returns the patterns of excluded.txt."""
    lines = (pathlib.Path(__file__).parent / "excluded.txt").read_text().splitlines()
    return ["::".join(line.split()[:2]) for line in lines if not line.startswith("#")]


def pytest_collection_modifyitems(session, config, items):
    """Drops the excluded cases, after SQLAlchemy's own hook, which the name above hides."""
    pytestplugin.pytest_collection_modifyitems(session, config, items)
    out = excluded()
    chosen, dropped = [], []
    for item in items:
        case = item.parent.name.partition("_sqlite+")[0] + "::" + item.name
        is_out = not os.environ.get("SQLIPC_TEST_EXCLUDED") and any(fnmatch.fnmatchcase(case, pattern) for pattern in out)
        (dropped if is_out else chosen).append(item)
    items[:] = chosen
    config.hook.pytest_deselected(items=dropped)
