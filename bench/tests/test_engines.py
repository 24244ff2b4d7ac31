"""Engines with tables of their own, and the best peer of each query."""

import datetime
from types import SimpleNamespace

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bench import timing
from bench.answers import agree
from bench.engines import ClickHouse, DuckDBParquet, Hyper, Loaded, Polars, Tables
from bench.data import hits
from bench.process import Failed
from bench.suites import clickbench, tables, tpch

LOADED = [Hyper, ClickHouse]
QUESTIONS = [
    "select count(*), sum(n), avg(x), min(t), max(t) from a",
    "select a.k, b.label from a left join b on a.k = b.k",
    "select d, count(*) as c from a group by d",
    "select m from a where n > 1",
    "select x from a where k = 99",
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("engines")
    day = datetime.date(2013, 7, 1)
    a = {
        "k": [1, 2, 3, 3],
        "n": pa.array([1, 2, 3, None], pa.int32()),
        "x": [0.5, 1.5, 2.5, -1.0],
        "t": ["", "щ", "'\\", None],
        "d": [day, day, None, day + datetime.timedelta(1)],
        "m": pa.array([datetime.datetime(2013, 7, 1, 12, i) for i in range(4)], pa.timestamp("us")),
    }
    parquet = {}
    for name, of in (("a", a), ("b", {"k": [1, 3], "label": ["one", "three"]})):
        pq.write_table(pa.table(of), folder / f"{name}.parquet")
        parquet[name] = [folder / f"{name}.parquet"]
    return Tables({}, parquet), folder


@pytest.mark.parametrize("kind", LOADED)
def test_own_tables_hold_the_same_rows(kind, made):
    given, folder = made
    engine, other = kind(None, 1), DuckDBParquet(None, 1)
    if why := engine.missing():
        pytest.skip(why)
    for _ in range(2):
        # Tables that are there are made anew.
        tables.load(engine, given, folder)
    assert engine.files(given)[0].exists()
    for sql in QUESTIONS:
        answer, wanted = engine.run(given, sql, 2), other.run(given, sql)
        assert agree(answer.rows, wanted.rows), (sql, answer.rows, wanted.rows)
        assert len(answer.seconds) == 2
    with pytest.raises(Failed, match="nosuch"):
        engine.run(given, "select * from nosuch")


class Nowhere(Loaded):
    key, label, dialect, package = "nowhere", "Nowhere", "duckdb", "no-such-package-at-all"


def test_what_has_no_tables_says_so_and_the_others_go_on(made, capsys):
    given, folder = made
    engine = Nowhere(None, 1)
    assert "no-such-package-at-all is not installed" in engine.missing()
    tables.load(engine, given, folder)
    assert "Nowhere: no tables: " in capsys.readouterr().err
    with pytest.raises(Failed, match="no tables of these rows"):
        engine.run(given, "select 1")


def test_questions_have_the_words_of_each_dialect():
    by_name = {q.name: q for q in clickbench.queries(1_000_000, True, []) + tpch.queries(0.1, ["q06"])}
    assert "toFloat64" in by_name["q04"].text("clickhouse") and "toFloat64" not in by_name["q04"].text("duckdb")
    assert r"'\\1'" in by_name["q29"].text("clickhouse") and r"'\1'" in by_name["q29"].text("hyper")
    (forecast,) = tpch.queries(0.1, ["q06"])
    assert "between 0.05 and 0.07" in forecast.text("clickhouse") and "0.06 - 0.01" in forecast.text("hyper")


@pytest.mark.parametrize("seed", [2, 3])
def test_made_rows_answer_every_literal(sample, tmp_path, seed):
    """Whatever the seed, what questions ask for occurs: it is of the sample, whose rows are drawn."""
    file, made = tmp_path / "hits.parquet", clickbench.MADE
    hits.make(sample, file, 50_000, seed)
    equal = {"RefererHash": made["referer_hash"], "URLHash": made["url_hash"], "CounterID": made["site"]}
    conditions = [f'"{column}" = {value}' for column, value in equal.items()]
    conditions += [f"\"URL\" like '%{made['in_url']}%'", f"\"Title\" like '%{made['in_title']}%'"]
    for condition in conditions:
        assert duckdb.sql(f"select count(*) from '{file}' where {condition}").fetchall()[0][0] > 0, condition
    plan = hits.Hits(sample, 1_000_000, seed)
    place = plan.sample.user_ids.tolist().index(int(made["user"]))
    drawn = [plan.sessions(day, quota)[2] for day, quota in zip(hits.DAYS, hits.quotas(plan.rows))]
    assert any((users == place).any() for users in drawn), "the user occurs, of a million rows"


def test_rows_of_each_seed_are_kept_apart(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(clickbench.hits, "make", lambda sample, target, rows, seed: made.append(seed) or target.touch())
    options = [SimpleNamespace(quick=True, folder=tmp_path, seed=seed, hits_sample="any") for seed in (1, 2, 1)]
    files = [clickbench.made(of)[0] for of in options]
    assert made == [1, 2] and files[0] == files[2] != files[1]


def test_the_best_peer_of_each_query():
    def record(name, **medians):
        engines = {key: {"warm": {"median": m}} if m else {"error": "no"} for key, m in medians.items()}
        return {"name": name, "title": name, "engines": engines}

    records = [
        record("q1", plinth=1.0, duckdb=4.0, hyper=2.0),
        record("q2", plinth=1.0, duckdb=0.5, hyper=None),
        record("q3", plinth=None, duckdb=1.0),
        record("q4", plinth=1.0, duckdb=None),
    ]

    class Ours:
        key, ours = "plinth", True

    found = timing.best_peers(records, [Ours])
    assert [(q["name"], q["peer"], q["ratio"]) for q in found["queries"]] == [
        ("q1", "hyper", 2.0),
        ("q2", "duckdb", 0.5),
    ]
    assert found["mean"] == pytest.approx(1.0) and found["lost"] == 1
    assert timing.best_peers(records[2:], [Ours]) is None


def test_a_question_by_hand_may_have_several_lines(made):
    engine = Polars(None, 1)
    if why := engine.missing():
        pytest.skip(why)
    assert engine.run(made[0], 'python: a.select(pl.col("k")\n    .sum())\n    .limit(1)').rows == [["9"]]
