"""Rows as tuples, DataFrames, tables and streams."""

import pandas
import polars
import pyarrow
import pytest

import plinth

FIVE = "SELECT value AS i, value * 1.5 AS x, 'a' || value AS s FROM generate_series(1, 5) ORDER BY 1"
ROWS = [(1, 1.5, "a1"), (2, 3.0, "a2"), (3, 4.5, "a3"), (4, 6.0, "a4"), (5, 7.5, "a5")]


def test_rows_are_fetched_once_and_in_order(con):
    result = con.sql(FIVE)
    assert result.columns == ["i", "x", "s"]
    assert result.types == ["Int64", "Float64", "Utf8"]
    assert result.fetchone() == ROWS[0]
    assert result.fetchmany(2) == ROWS[1:3]
    assert result.fetchmany(0) == []
    assert result.fetchall() == ROWS[3:]
    assert (result.fetchone(), result.fetchmany(3), result.fetchall()) == (None, [], [])
    assert list(con.sql(FIVE)) == ROWS


def test_fetching_crosses_batches(con):
    result = con.sql("SELECT value FROM generate_series(1, 30000) ORDER BY 1")
    assert result.fetchmany(10_000)[-1] == (10_000,)
    assert [row[0] for row in result] == list(range(10_001, 30_001))


def test_whole_results_can_be_taken_again(con):
    result = con.sql(FIVE)
    assert result.fetchone() == ROWS[0]
    for _ in range(2):
        assert result.arrow().to_pylist() == [dict(zip("ixs", row)) for row in ROWS]
        assert list(result.df().itertuples(index=False, name=None)) == ROWS
        assert result.pl().rows() == ROWS
    assert result.fetchall() == ROWS[1:]


def test_every_library_takes_a_result_as_it_is(con):
    import duckdb

    result = con.sql(FIVE)
    assert pyarrow.table(result).num_rows == 5
    assert pyarrow.RecordBatchReader.from_stream(result).read_all().num_rows == 5
    assert polars.DataFrame(result).rows() == ROWS
    assert pandas.DataFrame.from_arrow(result)["i"].tolist() == [1, 2, 3, 4, 5]
    # It reads the stream once for its columns, and once more for its rows.
    assert duckdb.sql("SELECT sum(i), max(s) FROM result").fetchall() == [(15, "a5")]
    assert pyarrow.schema(result) == result.arrow().schema


def test_a_reader_gives_batches_as_they_come(con):
    reader = con.sql("SELECT value FROM generate_series(1, 100000)").reader()
    first = reader.read_next_batch()
    assert 0 < first.num_rows < 100_000
    assert first.num_rows + sum(batch.num_rows for batch in reader) == 100_000


def test_an_empty_result_has_its_columns(con):
    result = con.sql("SELECT 1 AS a, 'x' AS b WHERE false")
    assert result.fetchall() == []
    assert result.arrow().column_names == ["a", "b"]
    assert result.pl().shape == (0, 2)
    assert "0 rows" in repr(result)


def test_statements_other_than_queries_run_once(db):
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, s TEXT)")
    inserted = db.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    assert inserted.rowcount == 2
    # Whatever is done with the answer.
    assert inserted.fetchall() == [(2,)]
    assert inserted.arrow().to_pylist() == [{"count": 2}]
    assert db.sql("SELECT count(*) FROM t").fetchall() == [(2,)]
    assert db.sql("SELECT 1").rowcount == -1
    assert db.sql("DELETE FROM t WHERE id = 7").rowcount == 0


def test_several_statements_run_in_order(db):
    result = db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY); INSERT INTO t VALUES (3); SELECT id FROM t")
    assert result.fetchall() == [(3,)]


def test_tables_are_shown(con):
    text = repr(con.sql("SELECT 1 AS n, 'b\nc' AS s, NULL AS z"))
    assert text == (
        "┌───────┬──────┬──────┐\n"
        "│ n     │ s    │ z    │\n"
        "│ Int64 │ Utf8 │ Null │\n"
        "├───────┼──────┼──────┤\n"
        "│     1 │ b\\nc │ NULL │\n"
        "└───────┴──────┴──────┘\n"
        "1 row"
    )
    many = repr(con.sql("SELECT value FROM generate_series(1, 100)"))
    assert "there are more" in many and " 20 │" in many and " 21 │" not in many


def test_show_prints(con, capsys):
    con.sql(FIVE).show(2)
    out = capsys.readouterr().out
    assert "a2" in out and "a3" not in out and "the first 2 rows" in out


def test_html_is_escaped(con):
    html = con.sql("SELECT '<b>&' AS \"<i>\", 1 AS n")._repr_html_()
    assert "&lt;b&gt;&amp;" in html and "&lt;i&gt;" in html
    assert "<b>" not in html and "<i>" not in html


def test_the_description_is_that_of_dbapi(con):
    assert con.sql("SELECT 1 AS a, NULL AS b").description == [
        ("a", "Int64", None, None, None, None, False),
        ("b", "Null", None, None, None, None, True),
    ]


def test_functions_of_the_module_have_a_connection(tmp_path):
    (tmp_path / "a.csv").write_text("n,s\n1,x\n2,y\n")
    (tmp_path / "a.json").write_text('{"n": 1}\n{"n": 5}\n')
    rows = plinth.sql("SELECT 7 AS n")
    assert rows.fetchall() == [(7,)]
    assert plinth.read_csv(tmp_path / "a.csv").fetchall() == [(1, "x"), (2, "y")]
    assert plinth.read_json(tmp_path / "a.json").fetchall() == [(1,), (5,)]
    assert plinth.sql("SELECT sum(n) FROM rows").fetchall() == [(7,)]


def test_a_negative_number_of_rows_is_refused(con):
    with pytest.raises(plinth.InterfaceError, match="a number of rows"):
        con.sql("SELECT 1").fetchmany(-1)


def test_columns_are_where_they_were(con):
    given = pyarrow.table({"i": list(range(50_000)), "x": [n / 7 for n in range(50_000)]})
    taken = con.sql("SELECT i, x FROM given").arrow()
    assert taken.num_rows == 50_000
    for name in given.column_names:
        values = given[name].chunk(0).buffers()[1]
        for chunk in taken[name].chunks:
            assert values.address <= chunk.buffers()[1].address < values.address + values.size
