# SPDX-License-Identifier: LGPL-2.1-or-later
"""pandas: to_sql() and read_sql() with an engine of SQLAlchemy."""

import pandas
import sqlalchemy

URL = "sqlite:///database.sqlite"  #~ URL = "sqlipc://user/pandas-frames"
engine = sqlalchemy.create_engine(URL)
days = pandas.date_range("2024-01-01", periods=3)
columns = {"n": [1, 2, 3], "x": [0.5, None, 1e300], "text": ["a", None, "ü"], "day": days, "flag": [True, False, True]}
frame = pandas.DataFrame(columns)
print(frame.to_sql("frame", engine, index=False))
print(frame.to_sql("frame", engine, index=False, if_exists="append", method="multi", chunksize=2))
print(pandas.read_sql("frame", engine).to_string())
query = sqlalchemy.text("SELECT n, count(*) AS c FROM frame WHERE n > :n GROUP BY n")
print(pandas.read_sql(query, engine, params={"n": 1}))
print(frame.to_sql("frame", engine, if_exists="replace", index_label="i", dtype={"n": sqlalchemy.Text}))
print(pandas.read_sql_query("SELECT i, typeof(n), day FROM frame", engine, index_col="i", parse_dates=["day"]).dtypes)
try:
    frame.to_sql("frame", engine)
except ValueError as error:
    print(error)
big = pandas.DataFrame({"a": range(20000)})
print(big.to_sql("big", engine, index=False), sum(len(part) for part in pandas.read_sql("big", engine, chunksize=3000)))
