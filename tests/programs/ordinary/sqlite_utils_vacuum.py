# SPDX-License-Identifier: LGPL-2.1-or-later
"""sqlite-utils: add_foreign_key(), which runs VACUUM after its transaction."""

import sqlite3  #~ import sys, sqlipc; sys.modules["sqlite3"] = sqlite3 = sqlipc

import sqlite_utils

connection = sqlite3.connect("database.sqlite")  #~ connection = sqlite3.connect("sqlite-utils-vacuum")
db = sqlite_utils.Database(connection)
db["owners"].insert({"id": 1, "name": "Ada"}, pk="id")
dogs = db["dogs"].insert({"id": 1, "name": "Cleo", "owner": 1}, pk="id")
dogs.add_foreign_key("owner", "owners", "id")
print(dogs.foreign_keys, list(dogs.rows))
