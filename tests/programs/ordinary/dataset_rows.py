# SPDX-License-Identifier: LGPL-2.1-or-later
"""dataset: tables and columns that come with the rows, in transactions."""

import dataset

db = dataset.connect("sqlite:///database.sqlite")  #~ db = dataset.connect("sqlipc://user/dataset-rows")
table = db["people"]
print(table.insert({"name": "Ada", "age": 36}), table.insert({"name": "Grace", "born": "1906", "x": 1.5}))
table.insert_many([{"name": str(i), "age": i} for i in range(100)])
print(table.columns, len(table), table.update({"name": "Ada", "age": 37}, ["name"]))
print(table.upsert({"name": "New", "age": 1}, ["name"]), [dict(row) for row in table.find(age={">": 98})])
try:
    with db as tx:
        tx["people"].insert({"name": "gone"})
        raise ZeroDivisionError
except ZeroDivisionError:
    print(table.count(name="gone"))
table.create_index(["name"])
print([dict(row) for row in db.query("SELECT age, count(*) AS n FROM people GROUP BY age ORDER BY n DESC, age LIMIT 2")])
print(table.delete(age={"<": 50}), db.tables, list(table.distinct("born")))
