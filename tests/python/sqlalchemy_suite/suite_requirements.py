# SPDX-License-Identifier: LGPL-2.1-or-later
"""What SQLite can do, of what SQLAlchemy's tests of dialects ask for; all else is as SQLAlchemy assumes it."""

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements


class Requirements(SuiteRequirements):
    """For both dialects the same."""


def _set(names, value):
    for name in names.split():
        setattr(Requirements, name, property(lambda self: value))


_set(
    "ctes ctes_on_dml datetime_historic date_historic json_type named_constraints regexp_match savepoints tuple_in"
    " temp_table_names temp_table_reflection temporary_tables temporary_views unique_constraint_reflection views"
    " window_functions",
    exclusions.open(),
)
_set(
    "schemas identity_columns sequences computed_columns",
    exclusions.closed(),
)
