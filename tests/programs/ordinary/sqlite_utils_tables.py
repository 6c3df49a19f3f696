# SPDX-License-Identifier: LGPL-2.1-or-later
"""sqlite-utils: tables from dictionaries, upserts, full-text search, and transformations, which make tables again."""

import sqlite3  #~ import sys, sqlipc; sys.modules["sqlite3"] = sqlite3 = sqlipc

import sqlite_utils

connection = sqlite3.connect("database.sqlite")  #~ connection = sqlite3.connect("sqlite-utils-tables")
db = sqlite_utils.Database(connection)
dogs = db["dogs"].insert_all([{"id": i, "name": f"Dog {i}", "age": i % 7, "tags": ["a", i]} for i in range(300)], pk="id")
print(dogs.schema, dogs.count)
dogs.upsert({"id": 3, "name": "Cleo", "good": True}, pk="id", alter=True)
print(dogs.get(3), dogs.columns_dict)
dogs.create_index(["age"])
dogs.enable_fts(["name"], create_triggers=True)
print([row["id"] for row in dogs.search("Cleo")])
dogs.transform(rename={"age": "years"}, drop={"tags"}, types={"good": int})
print(dogs.schema, [index.columns for index in dogs.indexes], db.schema)
db["owners"].insert({"id": 1, "name": "Ada"}, pk="id")
dogs.add_column("owner", int)
dogs.transform(add_foreign_keys=[("owner", "owners", "id")])
print(dogs.foreign_keys, dogs.update(5, {"owner": 1}).get(5))
db.execute("DROP INDEX idx_dogs_age")
dogs.extract("years", table="ages")
print(db.table_names(), list(db.query("SELECT count(*) AS n FROM dogs JOIN ages ON ages.id = ages_id")))
dogs.delete_where("id > ?", [10])
print(dogs.count, db.view_names(), list(dogs.rows_where(limit=2, order_by="id desc")))
