# SPDX-License-Identifier: LGPL-2.1-or-later
"""peewee: models, nested atomic(), savepoints, upsert, and a migration that makes a table again."""

#~ import sys, sqlipc; sys.modules["sqlite3"] = sqlipc
import peewee
from playhouse.migrate import SqliteMigrator, migrate

db = peewee.SqliteDatabase("database.sqlite")  #~ db = peewee.SqliteDatabase("peewee-nested"); db._functions.clear()


class Person(peewee.Model):
    name = peewee.CharField(unique=True)
    age = peewee.IntegerField(default=1)

    class Meta:
        database = db


class Pet(peewee.Model):
    owner = peewee.ForeignKeyField(Person, backref="pets", on_delete="CASCADE")
    name = peewee.TextField(null=True)

    class Meta:
        database = db


db.connect()
db.create_tables([Person, Pet])
with db.atomic():
    ada = Person.create(name="Ada")
    try:
        with db.atomic():
            Person.create(name="Grace")
            with db.atomic():
                Pet.create(owner=ada, name="Cat")
            Person.create(name="Ada")
    except peewee.IntegrityError as error:
        print("undone:", error)
    with db.atomic() as nested:
        Pet.create(owner=ada, name="Dog")
        nested.rollback()
        Pet.create(owner=ada, name="Bird")
print(list(Person.select().tuples()), [(pet.name, pet.owner.name) for pet in Pet.select()], db.in_transaction())
Person.insert(name="Ada", age=5).on_conflict(conflict_target=[Person.name], preserve=[Person.age]).execute()
print(Person.insert_many([{"name": str(i)} for i in range(200)]).execute())
print(Person.update(age=Person.age + 1).where(Person.name != "Ada").execute(), Person.get(Person.name == "Ada").age)
migrator = SqliteMigrator(db)
migrate(migrator.drop_column("person", "age"), migrator.add_column("pet", "n", peewee.IntegerField(null=True)))
print(db.get_columns("person"), db.get_columns("pet"), db.get_indexes("person"), db.get_foreign_keys("pet"))
print(Pet.select().count(), ada.delete_instance(), Person.select().count())
db.close()
