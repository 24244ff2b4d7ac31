"""The driver of ADBC: through its driver manager, and through libraries that use that."""

import datetime as dt
import decimal
import os
import subprocess
import sys
import threading

import adbc_driver_manager as manager
import pandas
import polars as pl
import pyarrow as pa
import pytest
from adbc_driver_manager import dbapi

import plinth
from plinth import adbc


@pytest.fixture
def memory():
    with adbc.connect(threads=2) as con:
        yield con


@pytest.fixture
def con(tmp_path):
    with adbc.connect(tmp_path / "db", create=True, threads=2) as con:
        yield con


@pytest.fixture
def low(memory):
    """The connection below DB-API."""
    return memory.adbc_connection


def read(stream):
    return pa.RecordBatchReader.from_stream(stream).read_all()


def test_queries_and_values(memory):
    with memory.cursor() as cursor:
        cursor.execute("SELECT value AS n, 'row ' || value AS t FROM generate_series(1, 3)")
        assert cursor.description[0][0] == "n" and cursor.fetchall() == [(1, "row 1"), (2, "row 2"), (3, "row 3")]
        cursor.execute("SELECT ? + 1 AS a, ? AS b", [41, "x"])
        assert cursor.fetchone() == (42, "x")
        cursor.execute("SELECT $n * 2 AS a", pa.RecordBatch.from_pydict({"n": [4]}))
        assert cursor.fetchone() == (8,)
        with pytest.raises(dbapi.ProgrammingError, match="2 places for values, and 1 were bound"):
            cursor.execute("SELECT ?, ?", [1])


def test_a_query_runs_for_each_row_of_values(memory):
    with memory.cursor() as cursor:
        cursor.execute("SELECT ? + 1 AS n", pa.RecordBatch.from_pydict({"x": [1, 2, None]}))
        assert cursor.fetch_arrow_table().to_pydict() == {"n": [2, 3, None]}
        cursor.execute("SELECT ? + 1 AS n", pa.table({"x": pa.array([], pa.int64())}))
        found = cursor.fetch_arrow_table()
        assert found.num_rows == 0 and found.schema.names == ["n"]


def test_large_results_are_streams(memory):
    with memory.cursor() as cursor:
        cursor.execute("SELECT value FROM generate_series(1, 300000)")
        reader = cursor.fetch_record_batch()
        assert reader.read_next_batch().num_rows < 300_000
        assert sum(batch.num_rows for batch in reader) > 0


def test_changes_wait_for_a_commit(con, tmp_path):
    with con.cursor() as cursor:
        cursor.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, v TEXT)")
        assert cursor.rowcount == -1
        cursor.execute("INSERT INTO t VALUES (1, 'one'), (2, 'two')")
        assert cursor.rowcount == 2
        with adbc.connect(tmp_path / "db") as other:
            assert other.execute("SELECT count(*) FROM t").fetchone() == (0,)
        con.rollback()
        assert cursor.execute("SELECT count(*) FROM t").fetchone() == (0,)
        cursor.executemany("INSERT INTO t VALUES (?, ?)", [(n, f"v{n}") for n in range(10)])
        assert cursor.rowcount == 10
        con.commit()
        cursor.execute("UPDATE t SET v = 'x' WHERE id < ?", [3])
        assert cursor.rowcount == 3
        con.commit()
    with plinth.connect(tmp_path / "db") as other:
        assert other.sql("SELECT v FROM t ORDER BY id LIMIT 4").fetchall() == [("x",), ("x",), ("x",), ("v3",)]


def test_many_changes_are_all_or_none(tmp_path):
    with adbc.connect(tmp_path, autocommit=True) as con, con.cursor() as cursor:
        cursor.execute("CREATE TABLE t (id BIGINT PRIMARY KEY)")
        with pytest.raises(dbapi.IntegrityError):
            cursor.executemany("INSERT INTO t VALUES (?)", [(1,), (2,), (1,)])
        assert cursor.execute("SELECT count(*) FROM t").fetchone() == (0,)
        cursor.executemany("INSERT INTO t VALUES (?)", [(1,), (2,)])
        assert cursor.execute("SELECT count(*) FROM t").fetchone() == (2,)


def test_autocommit_is_an_option(con, memory, low):
    below = con.adbc_connection
    assert below.get_option("adbc.connection.autocommit") == "false"
    below.set_options(**{"adbc.connection.autocommit": "true"})
    with pytest.raises(manager.ProgrammingError, match="autocommit"):
        below.commit()
    with pytest.raises(manager.ProgrammingError, match="true or false"):
        below.set_options(**{"adbc.connection.autocommit": "perhaps"})
    # Tables in memory have no transactions, which is said rather than ignored.
    with pytest.raises(manager.NotSupportedError, match="in memory"):
        low.set_options(**{"adbc.connection.autocommit": "false"})


def test_turning_autocommit_on_commits(con):
    with con.cursor() as cursor:
        cursor.execute("CREATE TABLE t (id BIGINT PRIMARY KEY)")
        cursor.execute("INSERT INTO t VALUES (1)")
        con.adbc_connection.set_autocommit(True)
        con.adbc_connection.set_autocommit(False)
        con.rollback()
        assert cursor.execute("SELECT id FROM t").fetchall() == [(1,)]


DATA = pa.table(
    {
        "i": pa.array([1, None, 3], pa.int32()),
        "u": pa.array([1, 2, None], pa.uint16()),
        "x": pa.array([0.5, None, -1.0]),
        "s": pa.array(["a", None, "ü"]),
        "b": pa.array([True, None, False]),
        "d": pa.array([dt.date(2024, 2, 29), None, dt.date(1969, 12, 31)]),
        "t": pa.array([dt.datetime(2024, 1, 1, 12, 0, 0, 250_000), None, None], pa.timestamp("us")),
        "z": pa.array([b"\x00\xff", b"", None]),
        "p": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-2.25")], pa.decimal128(9, 2)),
    }
)


@pytest.mark.parametrize("where", ["folder", "memory"])
def test_tables_are_ingested(where, con, memory):
    con = con if where == "folder" else memory
    names = ", ".join(DATA.schema.names)
    with con.cursor() as cursor:
        assert cursor.adbc_ingest("t", DATA, mode="create") == 3
        with pytest.raises(dbapi.Error, match="already"):
            cursor.adbc_ingest("t", DATA, mode="create")
        assert cursor.adbc_ingest("t", DATA.to_reader(max_chunksize=1), mode="append") == 3
        found = cursor.execute(f"SELECT {names} FROM t ORDER BY i").fetch_arrow_table()
        assert found.num_rows == 6
        rows = sorted(map(repr, found.cast(DATA.schema).to_pylist()))
        assert rows == sorted(map(repr, DATA.to_pylist() * 2))
        if where == "folder":
            # A transaction changes rows, and makes no tables.
            with pytest.raises(dbapi.Error, match="COMMIT first"):
                cursor.adbc_ingest("t", DATA.slice(0, 1), mode="replace")
            con.commit()
        assert cursor.adbc_ingest("t", DATA.slice(0, 1), mode="replace") == 1
        assert cursor.adbc_ingest("t", DATA.slice(1, 1), mode="create_append") == 1
        if where == "folder":
            con.commit()
        assert cursor.adbc_ingest("other", DATA, mode="create_append") == 3
        assert cursor.execute("SELECT count(*) FROM t").fetchone() == (2,)
        with pytest.raises(dbapi.Error, match="no table"):
            cursor.adbc_ingest("missing", DATA, mode="append")
        with pytest.raises(dbapi.Error, match="no column"):
            cursor.adbc_ingest("t", pa.table({"q": [1]}), mode="append")
        with pytest.raises(dbapi.NotSupportedError):
            cursor.adbc_ingest("u", DATA, temporary=True)


def test_data_that_fails_in_the_middle_leaves_no_table(con):
    schema = pa.schema({"n": pa.int64()})

    def batches():
        yield pa.record_batch([pa.array([1, 2])], schema)
        raise ValueError("the source is gone")

    with con.cursor() as cursor:
        with pytest.raises(dbapi.Error, match="the source is gone"):
            cursor.adbc_ingest("t", pa.RecordBatchReader.from_batches(schema, batches()), mode="create")
        assert cursor.adbc_ingest("t", pa.table({"n": [1]}), mode="create") == 1


def test_what_is_known_of_the_driver(memory):
    info = memory.adbc_get_info()
    assert info["vendor_name"] == "Plinth" and info["driver_name"] == "ADBC Plinth Driver"
    assert info["driver_adbc_version"] == 1_001_000


def test_objects_are_listed(con):
    with con.cursor() as cursor:
        cursor.execute("CREATE TABLE keyed (a BIGINT, b TEXT, c DOUBLE, PRIMARY KEY (a, b))")
        cursor.execute("CREATE TABLE plain (n INT)")
    below = con.adbc_connection

    def tables(depth=manager.GetObjectsDepth.ALL, **given):
        (catalog,) = read(below.get_objects(depth, **given)).to_pylist()
        (schema,) = catalog["catalog_db_schemas"]
        assert (catalog["catalog_name"], schema["db_schema_name"]) == ("datafusion", "public")
        return {table["table_name"]: table for table in schema["db_schema_tables"] or ()}

    found = tables()
    assert list(found) == ["keyed", "plain"]
    assert [(c["column_name"], c["ordinal_position"]) for c in found["keyed"]["table_columns"]] == [("a", 1), ("b", 2), ("c", 3)]
    (key,) = found["keyed"]["table_constraints"]
    assert (key["constraint_type"], key["constraint_column_names"]) == ("PRIMARY KEY", ["a", "b"])
    assert found["plain"]["table_constraints"] == []
    assert list(tables(table_name="pl_i%")) == ["plain"]
    assert [c["column_name"] for c in tables(column_name="_")["keyed"]["table_columns"]] == ["a", "b", "c"]
    assert tables(manager.GetObjectsDepth.TABLES)["plain"]["table_columns"] is None
    assert list(tables(table_types=["VIEW"])) == []
    assert read(below.get_objects(manager.GetObjectsDepth.CATALOGS)).to_pylist() == [
        {"catalog_name": "datafusion", "catalog_db_schemas": None}
    ]
    assert read(below.get_objects(manager.GetObjectsDepth.ALL, catalog="elsewhere")).num_rows == 0
    assert con.adbc_get_table_types() == ["BASE TABLE", "VIEW"]


def test_the_schema_of_a_table(con):
    with con.cursor() as cursor:
        cursor.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, d DATE)")
    schema = con.adbc_get_table_schema("t")
    assert (schema.names, schema.types) == (["id", "d"], [pa.int64(), pa.date32()])
    for missing in ("gone", "(SELECT 1)", "t; DROP TABLE t"):
        with pytest.raises(dbapi.Error, match="no table"):
            con.adbc_get_table_schema(missing)
    with pytest.raises(dbapi.Error, match="elsewhere"):
        con.adbc_get_table_schema("t", db_schema_filter="elsewhere")


def test_a_statement_tells_its_columns_and_places(low):
    with manager.AdbcStatement(low) as statement:
        with pytest.raises(manager.ProgrammingError, match="no text"):
            statement.execute_query()
        statement.set_sql_query("SELECT value FROM generate_series(1, 5) WHERE value > ? AND value < ?")
        with pytest.raises(manager.ProgrammingError, match="not prepared"):
            statement.get_parameter_schema()
        statement.prepare()
        places = pa.schema(statement.get_parameter_schema())
        assert (places.names, places.types) == (["1", "2"], [pa.int64(), pa.int64()])
        assert pa.schema(statement.execute_schema()).names == ["value"]
        statement.set_sql_query("INSERT INTO t VALUES (?)")
        statement.prepare()
        assert pa.schema(statement.get_parameter_schema()).types == [pa.null()]
        statement.set_sql_query("SELEC")
        with pytest.raises(manager.ProgrammingError, match="SELEC"):
            statement.prepare()


def test_a_cursor_runs_what_it_prepared(memory):
    with memory.cursor() as cursor:
        assert cursor.adbc_prepare("SELECT ? + 1.0 AS n").names == ["1"]
        for n in (1, 2):
            assert cursor.execute("SELECT ? + 1.0 AS n", [n]).fetchone() == (n + 1,)


def test_errors_have_kinds_and_details(con):
    with con.cursor() as cursor:
        cursor.execute("CREATE TABLE t (id BIGINT PRIMARY KEY)")
        cursor.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(dbapi.IntegrityError) as failed:
            cursor.execute("INSERT INTO t VALUES (1)")
        assert failed.value.status_code == manager.AdbcStatusCode.INTEGRITY
        assert failed.value.sqlstate == "23505" and dict(failed.value.details) == {b"plinth.kind": b"constraint"}
        for sql, kind in [
            ("SELECT nothing", dbapi.ProgrammingError),
            ("SELECT * FROM 'no such file.parquet'", dbapi.OperationalError),
            ("SELECT CAST('x' AS INT)", dbapi.DataError),
        ]:
            with pytest.raises(kind):
                cursor.execute(sql).fetchall()


def test_an_error_in_the_middle_of_a_stream(memory):
    with memory.cursor() as cursor:
        cursor.execute("SELECT 10 / (value - 20000) AS v FROM generate_series(1, 40000)")
        with pytest.raises(dbapi.DataError, match="division by zero") as failed:
            cursor.fetchall()
        assert failed.value.status_code == manager.AdbcStatusCode.INVALID_DATA
        assert cursor.execute("SELECT 1").fetchall() == [(1,)]


LONG = "SELECT sum(a.value * b.value) FROM generate_series(1, 100000) a, generate_series(1, 1000000) b"


def test_a_statement_is_cancelled(memory):
    with memory.cursor() as cursor:
        timer = threading.Timer(0.3, cursor.adbc_cancel)
        timer.start()
        with pytest.raises(dbapi.OperationalError) as failed:
            cursor.execute(LONG).fetchall()
        timer.join()
        assert failed.value.status_code == manager.AdbcStatusCode.CANCELLED
        assert cursor.execute("SELECT 1").fetchall() == [(1,)]


def test_a_connection_is_cancelled(memory):
    with memory.cursor() as cursor:
        timer = threading.Timer(0.3, memory.adbc_cancel)
        timer.start()
        with pytest.raises(dbapi.OperationalError):
            cursor.execute(LONG).fetchall()
        timer.join()


def test_options_are_told_and_refused(tmp_path):
    with adbc.connect(tmp_path, memory="512MB", threads=3) as con:
        database = con.adbc_database
        assert database.get_option("path") == str(tmp_path)
        assert database.get_option("memory") == "512MB" and database.get_option_int("threads") == 3
        with pytest.raises(manager.Error, match="no such option"):
            database.get_option("colour")
        assert con.adbc_current_catalog == "datafusion" and con.adbc_current_db_schema == "public"
        with pytest.raises(manager.NotSupportedError, match="all tables are in"):
            con.adbc_current_db_schema = "elsewhere"
    with pytest.raises(dbapi.NotSupportedError, match="no such option"):
        adbc.connect(db_kwargs={"password": "x"})
    with pytest.raises(dbapi.ProgrammingError, match="threads"):
        adbc.connect(threads=0)
    with pytest.raises(dbapi.Error):
        adbc.connect(tmp_path / "missing")


def test_revision_1_0_0_gets_no_more_than_it_has():
    import ctypes

    library = ctypes.CDLL(adbc.driver())
    size, canary = 29 * ctypes.sizeof(ctypes.c_void_p), b"\xaa" * 64
    place = ctypes.create_string_buffer(b"\0" * size + canary, size + len(canary))
    for name in ("AdbcDriverInit", "PlinthDriverInit"):
        initialise = getattr(library, name)
        # A status is one byte; the rest of the register is whatever it was.
        initialise.restype = ctypes.c_uint8
        assert initialise(1_000_000, place, None) == 0
        assert place.raw[size:] == canary and place.raw[size - 8 : size] != b"\0" * 8
        assert initialise(7, place, None) == 2


def test_pandas_reads_and_writes(con):
    frame = pandas.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"]})
    assert frame.to_sql("t", con, index=False) == 3
    found = pandas.read_sql("SELECT a, b FROM t WHERE a > 1 ORDER BY a", con)
    assert found["a"].tolist() == [2, 3] and found["b"][1] == "z"
    assert pandas.read_sql("t", con)["a"].sum() == 6


def test_polars_reads_and_writes(con):
    frame = pl.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"]})
    assert frame.write_database("t", con, engine="adbc", if_table_exists="replace") == 3
    found = pl.read_database("SELECT a, b FROM t WHERE a > 1 ORDER BY a", con)
    assert found.rows() == [(2, None), (3, "z")]
    assert pl.read_database("SELECT ? AS v", con, execute_options={"parameters": [5]}).item() == 5


def test_connections_of_both_kinds_share_tables(tmp_path):
    with plinth.connect(tmp_path) as own, adbc.connect(tmp_path, autocommit=True) as other:
        own.sql("CREATE TABLE t (id BIGINT PRIMARY KEY)")
        own.sql("INSERT INTO t VALUES (1)")
        other.execute("INSERT INTO t VALUES (2)").close()
        assert own.sql("SELECT id FROM t ORDER BY id").fetchall() == [(1,), (2,)]


def test_threads_share_a_driver(tmp_path):
    with adbc.connect(tmp_path, autocommit=True, threads=2) as con:
        con.execute("CREATE TABLE t (id BIGINT PRIMARY KEY)").close()
        errors = []

        def work(at):
            try:
                with con.cursor() as cursor:
                    for n in range(10):
                        cursor.execute("INSERT INTO t VALUES (?)", [at * 100 + n])
                        cursor.execute("SELECT count(*) FROM t").fetchone()
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(at,)) for at in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
        assert not errors and con.execute("SELECT count(*) FROM t").fetchone() == (80,)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_is_told_to_connect_anew(tmp_path):
    program = f"""
import os
from plinth import adbc
con = adbc.connect({str(tmp_path)!r}, autocommit=True)
con.execute("CREATE TABLE t (id BIGINT PRIMARY KEY)").close()
child = os.fork()
if child == 0:
    try:
        con.execute("SELECT 1")
        os._exit(1)
    except Exception as error:
        os._exit(0 if "forked" in str(error) else 2)
assert os.waitpid(child, 0)[1] == 0
assert con.execute("SELECT count(*) FROM t").fetchone() == (0,)
con.close()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_streams_that_are_left(memory):
    for _ in range(50):
        cursor = memory.cursor()
        cursor.execute("SELECT value FROM generate_series(1, 10000000)")
        cursor.fetch_record_batch().read_next_batch()
        cursor.close()
    assert memory.execute("SELECT 1").fetchone() == (1,)
