"""Files for DuckDB, pyarrow and Polars: what they ask for reaches the scan, and what they get is exact."""

import datetime as dt
import math
import pickle
from random import Random

import datafusion
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import plinth
from plinth import _scan

N = 20_000


@pytest.fixture(scope="module")
def rows():
    return pa.table(
        {
            "i": pa.array(range(N)),
            "s": pa.array([None if i % 11 == 0 else f"text {i % 97}" for i in range(N)]),
            "x": pa.array([math.nan if i % 13 == 0 else i / 7 for i in range(N)]),
            "d": pa.array([dt.date(2024, 1, 1) + dt.timedelta(days=i % 400) for i in range(N)]),
            "t": pa.array([dt.datetime(2024, 1, 1) + dt.timedelta(minutes=i) for i in range(N)], pa.timestamp("us")),
            "b": pa.array([i % 3 == 0 for i in range(N)]),
            "p": pa.array([{"q": i % 5, "r": "z"} for i in range(N)], pa.struct([("q", pa.int64()), ("r", pa.string())])),
        }
    )


@pytest.fixture(scope="module")
def path(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("scans") / "rows.plinth"
    assert plinth.write(path, rows) == N
    return path


@pytest.fixture
def asked(monkeypatch):
    """The statements that scans become."""
    statements = []
    query = _scan._Source.query

    def spy(self, columns, where, limit=None):
        statements.append((None if columns is None else sorted(columns), where and where[0], limit))
        return query(self, columns, where, limit)

    monkeypatch.setattr(_scan._Source, "query", spy)
    return statements


i, s, x, d, t, b = (pc.field(name) for name in "isxdtb")

FILTERS = [
    (i > 19_990, '"i" > ?'),
    ((i >= 5) & (i < 10), '("i" >= ? AND "i" < ?)'),
    ((i < 3) | (i == 77), '("i" < ? OR "i" = ?)'),
    (s == "text 5", '"s" = ?'),
    (s.isin(["text 1", "text 2"]), '"s" IN (?, ?)'),
    (pc.if_else(s.is_valid(), s.isin(["text 1", "text 2"]), pa.scalar(None, pa.bool_())), '("s" IS NOT NULL AND "s" IN (?, ?))'),
    (pc.if_else(i > 5, i < 9, pa.scalar(False)), None),
    (s.is_null(), '"s" IS NULL'),
    (s.is_valid() & (i < 100), '("s" IS NOT NULL AND "i" < ?)'),
    (d < dt.date(2024, 1, 3), '"d" < ?'),
    (t >= dt.datetime(2024, 1, 14, 20), '"t" >= ?'),
    (x > 2850.0, '"x" > ?'),
    (x != 1.0, '"x" <> ?'),
    (x < 0.5, '"x" < ?'),
    (b == True, '"b" = ?'),  # noqa: E712
    # Half of it has no counterpart, or none has.
    ((i < 50) & (pc.field("p", "q") == 3), '("i" < ?)'),
    ((i < 50) & (pc.utf8_length(s) > 6), None),
    ((i < 50) | (pc.utf8_length(s) > 6), None),
    (~(x > 5.0), None),
    (x != math.nan, None),
    (pc.is_nan(x), None),
    (pc.field("p", "q") == 3, None),
    ((i % 7 == 0) if hasattr(i, "__mod__") else (i == i), None),
]


@pytest.mark.parametrize("filter, where", FILTERS, ids=[str(n) for n in range(len(FILTERS))])
def test_filters_of_pyarrow_are_exact(path, rows, asked, filter, where):
    dataset = plinth.open(path)
    asked.clear()
    expected = rows.filter(filter)
    found = dataset.to_table(filter=filter)
    assert found["i"].to_pylist() == expected["i"].to_pylist()
    assert found["s"].to_pylist() == expected["s"].to_pylist()
    assert asked == [(sorted(rows.column_names), where, None)]
    assert dataset.to_table(columns=["d"], filter=filter)["d"].to_pylist() == expected["d"].to_pylist()
    assert dataset.count_rows(filter=filter) == expected.num_rows


def test_a_dataset_reads_the_columns_that_are_wanted(path, rows, asked):
    dataset = plinth.open(path)
    assert isinstance(dataset, ds.Dataset)
    assert dataset.schema.names == rows.column_names
    asked.clear()
    assert dataset.to_table(columns=["s"], filter=i == 5).to_pylist() == [{"s": "text 5"}]
    assert asked.pop() == (["s"], '"i" = ?', None)
    assert dataset.to_table(columns=["s"], filter=x == 1.0).to_pylist() == [{"s": "text 7"}]
    assert asked.pop() == (["s", "x"], '"x" = ?', None)
    assert dataset.count_rows() == N and dataset.head(3).num_rows == 3
    assert sum(batch.num_rows for batch in dataset.to_batches(columns=["i"])) == N
    assert dataset.to_table(columns={"double": i * 2}).slice(4, 1).to_pylist() == [{"double": 8}]
    assert dataset.scanner(columns=["b"]).to_table().num_rows == N
    with pytest.raises(pa.ArrowInvalid, match="no column 'nope'; there are i, s"):
        dataset.to_table(columns=["nope"])
    again = pickle.loads(pickle.dumps(dataset.filter(i == 5)))
    assert again.to_table(columns=["s"]).to_pylist() == [{"s": "text 5"}]
    assert pa.table(dataset).num_rows == N


def test_filters_of_doubles_alone_reach_the_file(tmp_path, asked):
    plinth.write(tmp_path / "x.plinth", pa.table({"x": [0.5, 1.5, float("nan")]}))
    dataset = plinth.open(tmp_path / "x.plinth")
    asked.clear()
    assert dataset.to_table(filter=x > 1.0).to_pylist() == [{"x": 1.5}]
    assert asked.pop() == (["x"], '"x" > ?', None)


QUESTIONS = [
    "SELECT count(*), sum(i), max(s) FROM {0} WHERE i BETWEEN 100 AND 200",
    "SELECT count(*) FROM {0}",
    "SELECT count(*), min(i) FROM {0} WHERE s = 'text 3' AND d < DATE '2024-03-01'",
    "SELECT count(*) FROM {0} WHERE s IS NULL",
    "SELECT count(*) FROM {0} WHERE s IN ('text 1', 'text 4') AND b",
    "SELECT count(*) FROM {0} WHERE x > 2800",
    "SELECT count(*) FROM {0} WHERE x < 3.5",
    "SELECT count(*) FROM {0} WHERE NOT (x < 3.5)",
    "SELECT count(*) FROM {0} WHERE s LIKE 'text 1%'",
    "SELECT count(*) FROM {0} WHERE p.q = 2",
    "SELECT count(*) FROM {0} WHERE i % 2 = 0 OR s = 'text 7'",
    "SELECT max(t) FROM {0} WHERE t < TIMESTAMP '2024-01-03'",
    "SELECT s, count(*) FROM {0} WHERE i > 15000 GROUP BY s ORDER BY 1 NULLS FIRST LIMIT 5",
    "SELECT count(*) FROM {0} WHERE i = 9999999",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_duckdb_answers_as_over_its_own(path, rows, question):
    dataset = plinth.open(path)
    con = duckdb.connect()
    assert con.sql(question.format("dataset")).fetchall() == con.sql(question.format("rows")).fetchall()


def test_duckdb_hands_over_columns_and_filters(path, asked):
    dataset = plinth.open(path)
    asked.clear()
    duckdb.connect().sql("SELECT sum(x) FROM dataset WHERE i IN (1, 2, 30)").fetchall()
    assert asked.pop()[1] == '("i" IS NOT NULL AND "i" IN (?, ?, ?))'
    asked.clear()
    duckdb.connect().sql("SELECT sum(x) FROM dataset WHERE i > 19000 AND i < 19005").fetchall()
    assert all({"x"} <= set(columns) <= {"i", "x"} for columns, _, _ in asked)
    assert any(where and '"i" >' in where for _, where, _ in asked)


def test_datafusion_hands_over_columns_and_filters(path, rows, asked):
    context = datafusion.SessionContext()
    context.register_dataset("t", plinth.open(path))
    asked.clear()
    question = "SELECT count(*) AS n, max(x) AS x FROM t WHERE i > 19000 AND i < 19005 AND s <> 'text 1'"
    answer = context.sql(question).to_pydict()
    assert all({"x"} <= set(columns) <= {"i", "s", "x"} for columns, _, _ in asked) and any(where and '"i" >' in where for _, where, _ in asked)
    context.from_arrow(rows, name="same")
    assert answer == context.sql(question.replace("FROM t", "FROM same")).to_pydict()


PLANNED = [
    "SELECT count(*) AS n, max(x) AS x FROM {0} WHERE i > 19000 AND i < 19005 AND s <> 'text 1'",
    "SELECT count(*) AS n FROM {0}",
    "SELECT b, count(*) AS n, sum(i) AS i FROM {0} AS a WHERE a.s LIKE 'text 1%' OR a.s IS NULL GROUP BY b ORDER BY b",
    "SELECT a.i FROM {0} AS a JOIN {0} AS c ON a.i = c.i + 1 WHERE upper(a.s) = 'TEXT 5' AND c.d BETWEEN DATE '2024-01-02' AND DATE '2024-03-01' ORDER BY 1",
    "SELECT i, t FROM {0} WHERE t IN (TIMESTAMP '2024-01-02', TIMESTAMP '2024-01-03') ORDER BY i",
    "SELECT count(*) AS n FROM (SELECT i FROM {0} LIMIT 7)",
]


@pytest.mark.parametrize("question", PLANNED)
def test_datafusion_plans_over_a_provider(path, rows, question):
    context = datafusion.SessionContext()
    context.register_table("t", plinth.open(path))
    context.from_arrow(rows, name="same")
    assert context.sql(question.format("t")).to_pydict() == context.sql(question.format("same")).to_pydict()
    assert "PlinthExec" in str(context.sql("SELECT i FROM t WHERE i = 5").execution_plan())


def test_a_provider_tells_errors_and_outlives_its_connection(path, tmp_path):
    con = plinth.connect(tmp_path / "db", create=True)
    con.sql("CREATE TABLE n (id BIGINT PRIMARY KEY, v BIGINT)")
    con.sql("INSERT INTO n SELECT value, value * 3 FROM range(1000)")
    context = datafusion.SessionContext()
    context.register_table("n", con.table("n").dataset())
    question = "SELECT sum(v) AS v FROM n WHERE id < 10"
    assert context.sql(question).to_pydict() == {"v": [135]}
    con.sql("INSERT INTO n VALUES (-1, 1000)")
    with pytest.raises(Exception, match="out of range|overflow"):
        context.sql("SELECT 9223372036854775807 - v AS v FROM n WHERE 9223372036854775807 + v > 0").to_pydict()
    con.close()


def test_a_dataset_is_one_fragment(path, rows):
    (fragment,) = plinth.open(path).get_fragments()
    assert fragment.physical_schema == rows.schema and fragment.count_rows() == N
    assert fragment.to_table(columns=["i"], filter=i < 3).to_pydict() == {"i": [0, 1, 2]}
    (part,) = plinth.open(path).get_fragments(filter=i >= 2)
    assert part.to_table(filter=i < 4, columns=["i"]).to_pydict() == {"i": [2, 3]}
    assert part.head(1, columns=["i"]).to_pydict() == {"i": [2]}


POLARS = [
    (pl.col("i") > 19_990, '"i" > ?'),
    ((pl.col("i") >= 5) & (pl.col("i") < 10), '("i" >= ? AND "i" < ?)'),
    ((pl.col("i") < 3) | (pl.col("s") == "text 7"), '("i" < ? OR "s" = ?)'),
    (pl.col("x") < 0.5, '"x" < ?'),
    (pl.col("s") != "text 1", '"s" <> ?'),
    (pl.col("s").is_null(), '"s" IS NULL'),
    ((pl.col("i") < 9) & pl.col("s").is_not_null(), '("i" < ? AND "s" IS NOT NULL)'),
    (pl.col("i").is_between(5, 9), '("i" >= ? AND "i" <= ?)'),
    (pl.col("i").is_between(5, 9, closed="left"), '("i" >= ? AND "i" < ?)'),
    (pl.col("x").is_between(5.0, 9.0, closed="none"), '("x" > ? AND "x" < ?)'),
    ((pl.col("i") < 100) & pl.col("s").str.ends_with("7"), '("i" < ?)'),
    (~(pl.col("x") > 5.0), "any"),
    (pl.col("x").is_nan(), None),
    (pl.col("i").is_in([4, 5]), '"i" IN (?, ?)'),
    (pl.col("s").is_in(["text 1", "text 2", None]), '"s" IN (?, ?)'),
    (pl.col("s").is_in(["text 1", None], nulls_equal=True), None),
    (pl.col("x").is_in([1.0, math.nan]), None),
    (pl.col("d").is_in([dt.date(2024, 1, 2), dt.date(2024, 1, 5)]), '"d" IN (?, ?)'),
    (pl.col("p").struct.field("q") == 3, None),
    (pl.col("d") < dt.date(2024, 1, 3), '"d" < ?'),
    (pl.col("t") >= dt.datetime(2024, 1, 14, 20), '"t" >= ?'),
]


@pytest.mark.parametrize("predicate, where", POLARS, ids=[str(n) for n in range(len(POLARS))])
def test_predicates_of_polars_are_exact(path, rows, asked, predicate, where):
    frame = plinth.scan(path)
    asked.clear()
    expected = pl.DataFrame(rows).filter(predicate)
    assert frame.filter(predicate).collect().equals(expected)
    columns, condition, limit = asked[0]
    assert limit is None and (where == "any" or condition == where)
    assert frame.filter(predicate).select("s").collect().equals(expected.select("s"))
    assert frame.filter(predicate).head(3).collect().equals(expected.head(3))


def test_polars_hands_over_columns_and_limits(path, rows, asked):
    frame = plinth.scan(path)
    assert frame.collect_schema() == pl.DataFrame(rows).schema
    asked.clear()
    assert frame.select("s", "i").head(4).collect().equals(pl.DataFrame(rows).select("s", "i").head(4))
    assert asked.pop() == (["i", "s"], None, 4)
    assert frame.filter(pl.col("i") == 7).select("b").collect().rows() == [(False,)]
    assert asked.pop() == (["b", "i"], '"i" = ?', None)
    assert frame.select(pl.len()).collect().item() == N
    grouped = frame.group_by("b").agg(pl.col("i").sum()).sort("b").collect()
    assert grouped.equals(pl.DataFrame(rows).group_by("b").agg(pl.col("i").sum()).sort("b"))


def random_filters(random, depth):
    """The same condition for pyarrow and for Polars."""
    if depth and random.random() < 0.6:
        one, other = random_filters(random, depth - 1), random_filters(random, depth - 1)
        return random.choice(
            [(one[0] & other[0], one[1] & other[1]), (one[0] | other[0], one[1] | other[1]), (~one[0], ~one[1])]
        )
    name, values = random.choice(
        [
            ("i", [-1, 0, 7, 150, N - 3, 2**40]),
            ("s", ["text 5", "text 9", "", "zzz", "text 12"]),
            ("x", [0.0, 1.0, 3.5, 2800.25, math.inf]),
            ("d", [dt.date(2024, 1, 1), dt.date(2024, 7, 5), dt.date(2030, 1, 1)]),
            ("b", [True, False]),
        ]
    )
    ours, theirs = pc.field(name), pl.col(name)
    kind = random.randrange(4)
    if kind == 0:
        return ours.is_null(), theirs.is_null()
    if kind == 1:
        some = random.sample(values, 2)
        return ours.isin(some), theirs.is_in(some)
    compare = random.choice(["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"])
    value = random.choice(values)
    return getattr(ours, compare)(value), getattr(theirs, compare)(value)


def test_random_filters_are_exact(path, rows):
    dataset, frame, own = plinth.open(path), plinth.scan(path), pl.DataFrame(rows)
    for seed in range(150):
        random = Random(seed)
        ours, theirs = random_filters(random, 3)
        # NaN is not equal to itself, and rows come in no order.
        columns = ["i", *random.sample(["s", "d", "t", "b", "p"], random.randrange(3))]
        expected = rows.filter(ours).select(columns)
        assert dataset.to_table(columns=columns, filter=ours).sort_by("i").equals(expected), (seed, ours)
        assert dataset.count_rows(filter=ours) == rows.filter(ours).num_rows, (seed, ours)
        expected = own.filter(theirs)
        assert frame.filter(theirs).select(columns).collect().sort("i").equals(expected.select(columns)), (seed, theirs)
        first = frame.filter(theirs).head(5).collect()
        assert first.height == min(5, expected.height) and first.join(expected, on="i").height == first.height, (seed, theirs)
        assert frame.filter(theirs).select(pl.len()).collect().item() == own.filter(theirs).height, (seed, theirs)


def test_paths_that_are_none(tmp_path):
    for use in (plinth.open, plinth.scan):
        with pytest.raises(plinth.OperationalError, match="nothing.plinth"):
            use(tmp_path / "nothing.plinth")


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "a b's.plinth"
    frame = pl.DataFrame({"n": [3, 1, 2], "Odd \"name\"": ["c", "a", "b"]})
    assert plinth.write(path, frame, sort_by="n") == 3
    assert plinth.scan(path).collect().equals(frame.sort("n"))
    with pytest.raises(plinth.Error, match="exists"):
        plinth.write(path, frame)
    assert plinth.write(path, iter_of(frame), replace=True) == 3
    assert plinth.open(path).to_table().num_rows == 3
    with pytest.raises(plinth.InterfaceError, match="gives no Arrow data"):
        plinth.write(path, [1, 2])
    with pytest.raises(plinth.InterfaceError, match="must end in .plinth"):
        plinth.write(tmp_path / "x.parquet", frame)

    def broken():
        yield pa.record_batch({"a": [1]})
        raise RuntimeError("lost")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), broken())
    with pytest.raises(plinth.Error, match="lost"):
        plinth.write(tmp_path / "half.plinth", reader)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def iter_of(frame):
    return frame.to_arrow().to_reader()
