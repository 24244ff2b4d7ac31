import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bench import texts
from bench.data import events, logs, parquet
from bench.data.text import Variants
from bench.suites import clickbench
from bench.suites.axes import slope
from bench.suites.growth import counter
from bench.timing import paired

import numpy as np


def test_variants():
    texts = ["", "http://example.ru/", "http://example.ru/catalog/page-12?id=34567&q=%D0%BF", "купить шины"]
    variants = Variants(texts, 7)
    every = np.arange(len(texts))
    assert variants.render(every, every * 0).to_pylist() == texts
    some = variants.render(np.array([2] * 100 + [0]), np.arange(1, 102)).to_pylist()
    assert len(set(some[:100])) > 90 and some[100] == "" and all(t.startswith("http://example.ru/") for t in some[:100])
    again = variants.render(np.array([3, 2]), np.array([5, 42])).to_pylist()
    assert again[1] == some[41]


def test_slope():
    assert slope([(1, 3), (2, 12), (4, 48)]) == pytest.approx(2)
    assert slope([(1, 3)]) is None and slope([(1, 5), (10, 5), (100, 5)]) == pytest.approx(0)


def test_paired():
    runs = [float(n) for n in range(1, 26)]
    few, many = paired(runs[:5], [1.0] * 5), paired(runs, [1.0] * 25)
    assert (few["ratio"], few["low"], few["high"]) == (3, 1, 5) and few["sure"] == 0.9375
    assert (many["ratio"], many["low"], many["high"]) == (13, 8, 18) and 0.95 <= many["sure"] < 0.96


def test_split(tmp_path):
    (source,) = events.events(tmp_path / "events.parquet", 1000, 10)
    files = parquet.split(source, tmp_path / "split", 7)
    tables = [pq.read_table(f) for f in files]
    assert [t.num_rows for t in tables] == [143] * 6 + [142]
    assert pa.concat_tables(tables).equals(pq.read_table(source))


def test_counter_of_a_plan():
    assert counter("metrics=[metadata_bytes=2.05 K, x=1], metrics=[metadata_bytes=100]", "metadata_bytes") == 2150
    assert counter("metrics=[]", "metadata_bytes") is None


def test_events(tmp_path):
    files = events.events(tmp_path / "events", 1000, 10, files=3)
    tables = [pq.read_table(f) for f in files]
    assert len(files) == 3 and sum(t.num_rows for t in tables) == 1000
    assert sorted(v for t in tables for v in t["id"].to_pylist()) == list(range(1000))
    assert len({k for t in tables for k in t["k"].to_pylist()}) == 10


def test_all_questions_are_there():
    real, made = clickbench.queries(99_997_497, False, []), clickbench.queries(1_000_000, True, [])
    assert len(real) == len(made) == 43
    assert not any(q.note for q in real) and {q.name for q in made if q.note} >= {
        "q20",
        "q21",
        "q28",
        "q37",
        "q41",
        "q42",
    }
    assert all("{" not in text and "@" not in text for q in real + made for text in q.dialects.values())


def test_logs_are_of_their_seed(tmp_path):
    file = logs.write(tmp_path / "logs.ndjson", 300, 7)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert rows == [logs.row(7, number) for number in range(300)] and rows[0] != logs.row(8, 0)
    assert {"error" in row for row in rows} == {row["request"]["user"] is None for row in rows} == {True, False}


def test_answers_of_files_made_of_text():
    assert texts.alike([1.0, "x"], [1.0 + 1e-12, "x"]) and not texts.alike([1.0], [1.001])
    assert not texts.alike([1.0], ["1"]) and not texts.alike([1.0], [1.0, 2.0])
    assert texts.number("12.5") == 12.5 and texts.number("2024-01-01") == "2024-01-01"
