# SPDX-License-Identifier: LGPL-2.1-or-later
"""SQLAlchemy's own tests of dialects, for sqlite and for sqlipc with the same requirements."""

from sqlalchemy.dialects import registry
from sqlalchemy.testing.provision import temp_table_keyword_args, upsert

registry.register("sqlipc", "sqlipc.sqlalchemy", "dialect")
registry.register("sqlipc.sqlipc", "sqlipc.sqlalchemy", "dialect")  # how the tests write it

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
