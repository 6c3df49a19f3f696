# SPDX-License-Identifier: LGPL-2.1-or-later
"""The names of sqlipc, for programs that import sqlite3.dbapi2."""

from sqlipc import *  # noqa: F403

from ._follow import Change, Live, Watch  # noqa: F401
from ._sql import complete_statement  # noqa: F401
