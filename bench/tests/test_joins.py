import re

import pyarrow.parquet as pq

from bench.data import joins
from bench.suites import joins as suite


def test_keys_are_told_apart_and_meet_in_every_type(tmp_path):
    files = joins.tables(tmp_path, 5_000, 10_000)
    big, build = pq.read_table(files["big"]).to_pydict(), pq.read_table(files["build4"]).to_pydict()
    assert sorted(build["k"]) == list(range(10_000)) != build["k"]
    of = {key: place for place, key in enumerate(build["k"])}
    for name in ("text", "sparse", "money", "day"):
        assert len(set(build[name])) == 10_000
        assert all(build[name][of[key]] == value for key, value in zip(big["k4"], big[name]))
    several = pq.read_table(files["several4"]).to_pydict()["k"]
    assert len(several) == 10_000 and all(several.count(key) == 4 for key in (0, 7, 2_499))


def test_every_query_is_of_tables_that_are_made(tmp_path):
    files = joins.tables(tmp_path, 100, 1_000)
    queries = suite.queries(1_000)
    names = [query.name for query in queries]
    assert len(names) == len(set(names)) > 10
    asked = {table for query in queries for table in re.findall(r"(?:from|join) (\w+)", query.sql)}
    assert asked == set(files) == {"big", "build3", "several4", "several16"}
