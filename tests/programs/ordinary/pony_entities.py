# SPDX-License-Identifier: LGPL-2.1-or-later
"""Pony: entities, relations, queries from generators, a transaction that is rolled back."""

import sqlite3  #~ import sys, sqlipc; sys.modules["sqlite3"] = sqlipc

from pony import orm

db = orm.Database("sqlite", "database.sqlite", create_db=True)  #~ db = orm.Database("sqlite", "pony-entities", True)


class Owner(db.Entity):
    name = orm.Required(str, unique=True)
    pets = orm.Set("Pet")


class Pet(db.Entity):
    name = orm.Required(str)
    age = orm.Optional(int)
    owner = orm.Required(Owner)


db.generate_mapping(create_tables=True)
with orm.db_session:
    for i in range(20):
        owner = Owner(name=f"Owner {i}")
        for n in range(i % 4):
            Pet(name=f"Pet {i}.{n}", age=n, owner=owner)
with orm.db_session:
    print(orm.select((o.name, orm.count(o.pets)) for o in Owner if orm.exists(p for p in o.pets if p.age > 1))[:])
    print(orm.avg(p.age for p in Pet), Owner.get(name="Owner 3").pets.count())
    Owner.get(name="Owner 3").pets.clear()
    orm.rollback()
with orm.db_session:
    print(sorted(p.name.upper() for p in Owner.get(name="Owner 3").pets))
