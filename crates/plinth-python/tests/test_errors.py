"""What goes wrong is raised by kind, and says what, where and what to do."""

import pickle

import pyarrow as pa
import pytest

import plinth


@pytest.mark.parametrize(
    "sql, error, text",
    [
        ("SELEC 1", plinth.ProgrammingError, "Expected: an SQL statement"),
        ("", plinth.ProgrammingError, "no statement"),
        ("SELECT * FROM nothing_here", plinth.ProgrammingError, 'no table "nothing_here"'),
        ("SELECT nope FROM generate_series(1, 2)", plinth.ProgrammingError, "nope"),
        ("SELECT no_function(1)", plinth.ProgrammingError, "no_function"),
        ("SELECT $1", plinth.ProgrammingError, "no value for $1"),
        ("SELECT 1 / 0", plinth.DataError, "division by zero"),
        ("SELECT CAST('x' AS INT)", plinth.DataError, "'x'"),
        ("SELECT * FROM 'missing.csv'", plinth.OperationalError, "missing.csv"),
        ("SELECT * FROM 'missing.plinth'", plinth.OperationalError, "missing.plinth"),
        ("SELECT * FROM 'missing.parquet'", plinth.OperationalError, "missing.parquet"),
        ("SELECT 1; SELEC 2", plinth.ProgrammingError, "SELEC"),
    ],
)
def test_statements_that_fail(con, sql, error, text):
    with pytest.raises(error, match=None) as raised:
        con.sql(sql).fetchall()
    assert text in str(raised.value) and " --" not in str(raised.value)
    # And the connection goes on.
    assert con.sql("SELECT 1").fetchall() == [(1,)]


def test_kinds_are_those_of_dbapi():
    for kind in ("DataError", "OperationalError", "IntegrityError", "InternalError", "ProgrammingError", "NotSupportedError"):
        assert issubclass(getattr(plinth, kind), plinth.DatabaseError)
    assert issubclass(plinth.DatabaseError, plinth.Error) and issubclass(plinth.InterfaceError, plinth.Error)
    assert issubclass(plinth.Error, Exception) and not issubclass(plinth.InterfaceError, plinth.DatabaseError)
    again = pickle.loads(pickle.dumps(plinth.DataError("x")))
    assert isinstance(again, plinth.DataError) and again.args == ("x",)


def test_keys_that_are_there(db):
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY); INSERT INTO t VALUES (1)")
    with pytest.raises(plinth.IntegrityError, match="1"):
        db.sql("INSERT INTO t VALUES (1)")
    assert db.sql("SELECT * FROM t").fetchall() == [(1,)]


def test_folders_that_are_none(tmp_path):
    with pytest.raises(plinth.OperationalError, match="nowhere"):
        plinth.connect(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    with pytest.raises(plinth.OperationalError, match="not a folder"):
        plinth.connect(tmp_path / "file")
    with plinth.connect(tmp_path / "new" / "folder", create=True) as con:
        assert con.tables() == []


def test_arguments_that_are_wrong(con):
    for arguments in ({"threads": 0}, {"memory": "much"}):
        with pytest.raises(plinth.InterfaceError):
            plinth.connect(**arguments)
    with pytest.raises(TypeError):
        plinth.connect(threads="two")
    with pytest.raises(TypeError):
        con.sql(7)
    with pytest.raises(plinth.InterfaceError, match="not a text alone"):
        con.sql("SELECT ?", "x")
    with pytest.raises(plinth.InterfaceError, match="a list, a tuple or a dict"):
        con.sql("SELECT ?", 7)
    for given in ([], [1, 2]):
        with pytest.raises(plinth.ProgrammingError, match="1 places"):
            con.sql("SELECT ?", given)
    with pytest.raises(TypeError):
        con.sql("SELECT $a", {1: 2})


def test_a_closed_connection_says_so(tmp_path):
    con = plinth.connect(tmp_path)
    con.sql("CREATE TABLE t (id BIGINT PRIMARY KEY); INSERT INTO t SELECT value FROM generate_series(1, 30000)")
    waiting, fetched, streamed = (con.sql("SELECT * FROM t") for _ in range(3))
    assert len(fetched.fetchmany(2)) == 2
    reader = streamed.reader()
    reader.read_next_batch()
    con.close()
    con.close()
    assert con.closed and repr(con) == "<plinth.Connection (closed)>"
    for use in (
        lambda: con.sql("SELECT 1"),
        con.tables,
        con.begin,
        waiting.fetchall,
        waiting.arrow,
        lambda: fetched.fetchmany(100_000),
    ):
        with pytest.raises(plinth.InterfaceError, match="closed"):
            use()
    with pytest.raises(Exception, match="closed"):
        reader.read_all()
    # The table is free for another.
    with plinth.connect(tmp_path) as again:
        again.sql("INSERT INTO t VALUES (30001)")
        assert again.sql("SELECT count(*) FROM t").fetchall() == [(30_001,)]


def test_an_error_in_the_middle_of_a_stream(con):
    sql = "SELECT 10 / (value - 50000) AS v FROM generate_series(1, 100000)"
    result = con.sql(sql)
    with pytest.raises(plinth.DataError, match="division by zero"):
        for _ in result:
            pass
    assert result.fetchall() == []
    for take in (result.arrow, result.pl, result.df):
        with pytest.raises(plinth.DataError, match="division by zero"):
            take()
    with pytest.raises(OSError, match="division by zero"):
        pa.table(con.sql(sql))


def test_an_error_of_a_producer_in_the_middle(con):
    schema = pa.schema([("v", pa.int64())])

    def batches():
        yield pa.record_batch([pa.array(range(1000))], schema=schema)
        raise RuntimeError("the producer has lost its source")

    reader = pa.RecordBatchReader.from_batches(schema, batches())
    with pytest.raises(plinth.Error, match="reader: .*lost its source"):
        con.sql("SELECT sum(v) FROM reader").fetchall()


def test_bad_records_are_told(con, tmp_path):
    bad = tmp_path / "bad.json"
    bad.write_text('{"n": 1}\n{"n": \n')
    with pytest.raises(plinth.Error, match="bad.json"):
        con.read_json(bad).fetchall()
    with pytest.raises(plinth.Error, match="no argument"):
        con.read_json(bad, nothing=1)
    with pytest.raises(plinth.InterfaceError, match="an option of type"):
        con.read_json(bad, schema=object())
