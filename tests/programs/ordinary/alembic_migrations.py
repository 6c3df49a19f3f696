# SPDX-License-Identifier: LGPL-2.1-or-later
"""Alembic: migrations up and down, with batch operations, which make tables again, below foreign keys."""

import contextlib
import io
import pathlib

import sqlalchemy as sa
from alembic import command
from alembic.config import Config

URL = "sqlite:///database.sqlite"  #~ URL = "sqlipc://user/alembic-migrations"
MIGRATIONS = {
    "one": (
        "op.create_table('owner', sa.Column('id', sa.Integer, primary_key=True), sa.Column('name', sa.String(20)));"
        "op.create_table('pet', sa.Column('id', sa.Integer, primary_key=True),"
        " sa.Column('owner', sa.Integer, sa.ForeignKey('owner.id', name='fk_owner')), sa.Column('name', sa.Text));"
        "op.bulk_insert(sa.table('owner', sa.column('name')), [{'name': n} for n in 'abc']);"
        "op.execute('INSERT INTO pet(owner, name) SELECT id, name FROM owner')",
        "op.drop_table('pet'); op.drop_table('owner')",
    ),
    "two": (
        "op.add_column('pet', sa.Column('age', sa.Integer, server_default='3')); op.create_index('by_age', 'pet', ['age'])",
        "op.drop_index('by_age', 'pet'); op.drop_column('pet', 'age')",
    ),
    "three": (
        "\n    with op.batch_alter_table('pet') as batch:\n        batch.alter_column('name', new_column_name='title')\n"
        "        batch.alter_column('age', nullable=False)",
        "\n    with op.batch_alter_table('pet') as batch:\n        batch.alter_column('age', nullable=True)\n"
        "        batch.alter_column('title', new_column_name='name')",
    ),
}

config = Config()
config.set_main_option("script_location", "migrations")
config.config_file_name = "alembic.ini"
with contextlib.redirect_stdout(io.StringIO()):
    command.init(config, "migrations")
pathlib.Path("migrations/env.py").write_text(
    f"""
import sqlalchemy as sa
from alembic import context
with sa.create_engine({URL!r}).connect() as connection:
    context.configure(connection=connection, target_metadata=None, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()
"""
)
previous = None
for name, (up, down) in MIGRATIONS.items():
    pathlib.Path(f"migrations/versions/{name}.py").write_text(
        f"import sqlalchemy as sa\nfrom alembic import op\nrevision, down_revision = {name!r}, {previous!r}\n"
        f"def upgrade():\n    {up}\ndef downgrade():\n    {down}\n"
    )
    previous = name


def show():
    with sa.create_engine(URL).connect() as connection:
        print(connection.execute(sa.text("SELECT type, name, sql FROM sqlite_master ORDER BY 1, 2")).all())
        print(connection.execute(sa.text("SELECT * FROM alembic_version")).all())
        if sa.inspect(connection).has_table("pet"):
            print(connection.execute(sa.text("SELECT * FROM pet ORDER BY id")).all())


for step in ("+1", "+1", "head"):
    command.upgrade(config, step)
    show()
for step in ("-1", "base"):
    command.downgrade(config, step)
    show()
