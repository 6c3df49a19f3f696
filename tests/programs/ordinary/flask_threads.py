# SPDX-License-Identifier: LGPL-2.1-or-later
"""Flask-SQLAlchemy: 20 threads send 400 requests, each of which adds a row and reads others."""

import concurrent.futures
import os

from flask import Flask
from flask_sqlalchemy import SQLAlchemy

app = Flask(__name__, instance_path=os.getcwd())
URL = "sqlite:///database.sqlite"  #~ URL = "sqlipc://user/flask-threads?isolation_level=IMMEDIATE"
app.config["SQLALCHEMY_DATABASE_URI"] = URL
app.config["SQLALCHEMY_ENGINE_OPTIONS"] = {"pool_size": 20, "connect_args": {"timeout": 600}}
db = SQLAlchemy(app)


class Visit(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    name = db.Column(db.String, nullable=False)


@app.get("/visit/<name>")
def visit(name):
    db.session.add(Visit(name=name))
    db.session.commit()
    return {"n": db.session.query(Visit).filter_by(name=name).count()}


with app.app_context():
    db.create_all()
with concurrent.futures.ThreadPoolExecutor(20) as pool:
    replies = list(pool.map(lambda i: app.test_client().get(f"/visit/{i % 7}"), range(400)))
print({reply.status_code for reply in replies}, {reply.json["n"] > 0 for reply in replies if reply.json})
with app.app_context():
    print(db.session.query(Visit).count())
