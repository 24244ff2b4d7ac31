"""Data of the caller, found by the names of variables."""

import pandas
import polars
import pyarrow as pa
import pyarrow.dataset
import pytest

import plinth

everywhere = pa.table({"a": [10, 20]})


def test_frames_and_tables_are_found(con):
    for data in (
        pandas.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"]}),
        polars.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"]}),
        polars.LazyFrame({"a": [1, 2, 3], "b": ["x", None, "z"]}),
        pa.table({"a": [1, 2, 3], "b": ["x", None, "z"]}),
        pa.record_batch({"a": [1, 2, 3], "b": ["x", None, "z"]}),
        con.sql("SELECT * FROM (VALUES (1, 'x'), (2, NULL), (3, 'z')) t (a, b)"),
    ):
        assert con.sql("SELECT * FROM data ORDER BY a").fetchall() == [(1, "x"), (2, None), (3, "z")]
        assert con.sql("SELECT sum(a) FROM data").fetchall() == [(6,)]
        assert con.sql("SELECT count(*) FROM data").fetchall() == [(3,)]
        assert con.sql("SELECT b FROM data WHERE a = ?", [3]).fetchall() == [("z",)]
        assert con.sql("SELECT data.a, d.b FROM data JOIN data d USING (a) ORDER BY 1 LIMIT 1").fetchall() == [(1, "x")]


def test_names_are_found_where_python_finds_them(con):
    def inner():
        return con.sql("SELECT sum(a) FROM outer_one, everywhere").fetchall()

    outer_one = pa.table({"a": [1]})
    with pytest.raises(plinth.ProgrammingError, match="may be one of several|ambiguous"):
        inner()
    assert con.sql("SELECT sum(a) FROM everywhere").fetchall() == [(30,)]
    del outer_one
    everything = pa.table({"a": [5]})
    assert con.sql("SELECT max(everything.a) FROM everything").fetchall() == [(5,)]
    Mixed = pa.table({"a": [6]})
    assert con.sql("SELECT a FROM Mixed").fetchall() == con.sql('SELECT a FROM "Mixed"').fetchall() == [(6,)]
    del everything, Mixed


def test_tables_and_queries_go_first(db):
    t = pa.table({"a": [1]})
    db.sql("CREATE TABLE t AS SELECT 2 AS a")
    assert db.sql("SELECT a FROM t").fetchall() == [(2,)]
    w = pa.table({"a": [3]})
    assert db.sql("WITH w AS (SELECT 4 AS a) SELECT a FROM w").fetchall() == [(4,)]
    assert db.sql("SELECT a FROM w").fetchall() == [(3,)]
    del t, w


def test_what_is_no_data_is_no_table(con):
    number = 7
    with pytest.raises(plinth.ProgrammingError, match='no table "number"'):
        con.sql("SELECT * FROM number")
    del number


def test_data_goes_into_tables_and_files(db, tmp_path):
    people = polars.DataFrame({"id": [1, 2], "name": ["Ada", "Grace"]})
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT)")
    assert db.sql("INSERT INTO t SELECT * FROM people").rowcount == 2
    assert db.sql("UPDATE t SET name = p.name || '!' FROM people p WHERE p.id = t.id").rowcount == 2
    assert db.sql("SELECT * FROM t ORDER BY id").fetchall() == [(1, "Ada!"), (2, "Grace!")]
    assert db.export("SELECT * FROM people WHERE id > ?", tmp_path / "out.parquet", [1]) == 1
    assert db.read_parquet(tmp_path / "out.parquet").fetchall() == [(2, "Grace")]
    db.sql("CREATE TABLE copy AS SELECT * FROM people")
    assert db.sql("SELECT count(*) FROM copy").fetchall() == [(2,)]


def test_only_the_columns_that_are_wanted_are_converted(con):
    class Bad:
        pass

    frame = pandas.DataFrame({"a": [1, 2], "b": [Bad(), Bad()]})
    table = pa.table({"a": [1, 2], "b": [3, 4]})
    asked = []

    class Spy:
        def __arrow_c_stream__(self, requested_schema=None):
            return table.__arrow_c_stream__(requested_schema)

        def _plinth_select(self, columns):
            asked.append(columns)
            return table.select(columns)

    spy = Spy()
    assert con.sql("SELECT max(b) FROM spy WHERE b < 4").fetchall() == [(3,)]
    assert asked == [["b"]]
    with pytest.raises(Exception, match="Bad"):
        con.sql("SELECT b FROM frame")


def test_a_query_over_data_can_run_again(con):
    frame = polars.DataFrame({"a": range(1000)})
    result = con.sql("SELECT a FROM frame WHERE a % 100 = 0")
    del frame
    assert [result.arrow().num_rows for _ in range(3)] == [10, 10, 10]


def test_a_reader_is_read_once(con):
    reader = pa.table({"a": [1, 2]}).to_reader()
    result = con.sql("SELECT sum(a) FROM reader")
    assert result.fetchall() == [(3,)]
    with pytest.raises(plinth.Error, match="gives its rows once"):
        result.arrow()
    twice = pa.table({"a": [1, 2]}).to_reader()
    with pytest.raises(plinth.Error, match="gives its rows once"):
        con.sql("SELECT count(*) FROM twice a JOIN twice b USING (a)").fetchall()


def test_datasets_are_read_by_columns(con, tmp_path):
    import pyarrow.parquet

    pyarrow.parquet.write_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), tmp_path / "x.parquet")
    dataset = pyarrow.dataset.dataset(tmp_path)
    assert con.sql("SELECT a FROM dataset ORDER BY a DESC").fetchall() == [(2,), (1,)]
    assert con.sql("SELECT b, a FROM dataset WHERE a = 1").fetchall() == [("x", 1)]


def test_no_value_is_copied(con):
    numbers = pa.array(range(100_000))
    texts = pa.array([f"text {i}" for i in range(100_000)])
    data = pa.table({"n": numbers, "s": texts, "v": texts.cast(pa.string_view())})
    back = con.sql("SELECT * FROM data").arrow()
    assert back == data
    for name in ("n", "s", "v"):
        where = [buffer and buffer.address for buffer in data[name].chunk(0).buffers()]
        found = [buffer and buffer.address for buffer in back[name].chunk(0).buffers()]
        assert where[1:] == found[1 : len(where)]


def test_named_data_is_known_to_all(con):
    con.register("known", pa.table({"a": [1]}))
    assert "known" in con.tables()
    assert con.sql("SELECT a FROM known").fetchall() == [(1,)]
    con.register("known", polars.DataFrame({"a": [2]}))
    assert con.sql("SELECT a FROM known").fetchall() == [(2,)]
    con.unregister("known")
    with pytest.raises(plinth.ProgrammingError, match="known"):
        con.sql("SELECT a FROM known")
    with pytest.raises(plinth.InterfaceError, match="gives no Arrow data"):
        con.register("known", 7)


def test_a_view_reads_the_variable_that_it_was_made_over(con):
    frame = pandas.DataFrame({"a": [1, 2, 3]})
    con.sql("CREATE TEMP VIEW v AS SELECT max(a) AS m FROM frame")
    con.sql("CREATE TEMP VIEW w AS SELECT m + count(*) AS n FROM v, frame GROUP BY m")
    frame = pandas.DataFrame({"a": [9]})
    for _ in range(2):
        assert con.sql("SELECT m, n FROM v, w").fetchall() == [(3, 6)]
    assert con.sql("SELECT a FROM frame").fetchall() == [(9,)]
