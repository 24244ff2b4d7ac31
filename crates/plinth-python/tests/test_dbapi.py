"""DB-API 2.0: what PEP 249 asks for, statement by statement."""

import datetime as dt
import threading

import pandas
import pytest

import plinth
from plinth import dbapi


@pytest.fixture
def con(tmp_path):
    connection = dbapi.connect(tmp_path, threads=2)
    yield connection
    if not connection._native.closed:
        connection.close()


@pytest.fixture
def drinks(con):
    con.execute("CREATE TABLE drinks (name TEXT PRIMARY KEY, price DECIMAL(6, 2))")
    con.cursor().executemany("INSERT INTO drinks VALUES (?, ?)", [["Victoria Bitter", 1], ["Cooper's", 2], ["Redback", 3]])
    return con


def test_globals():
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 2, "qmark")


def test_exceptions_are_attributes_of_connections_too(con):
    for name in (
        "Warning",
        "Error",
        "InterfaceError",
        "DatabaseError",
        "DataError",
        "OperationalError",
        "IntegrityError",
        "InternalError",
        "ProgrammingError",
        "NotSupportedError",
    ):
        assert getattr(con, name) is getattr(dbapi, name) is getattr(plinth, name)
    assert issubclass(dbapi.Warning, Exception) and issubclass(dbapi.Error, Exception)


def test_a_cursor_has_its_connection(con):
    assert con.cursor().connection is con


def test_the_description_before_and_after(drinks):
    cursor = drinks.cursor()
    assert cursor.description is None
    cursor.execute("INSERT INTO drinks VALUES ('Carlton', 4)")
    assert cursor.description is None
    cursor.execute("SELECT name, price FROM drinks")
    assert [column[0] for column in cursor.description] == ["name", "price"]
    assert all(len(column) == 7 for column in cursor.description)
    assert cursor.description[0][1] == dbapi.STRING and cursor.description[1][1] == dbapi.NUMBER


def test_the_count_of_rows(drinks):
    cursor = drinks.cursor()
    assert cursor.rowcount == -1
    cursor.execute("UPDATE drinks SET price = price + 1 WHERE price > 1")
    assert cursor.rowcount == 2
    cursor.execute("SELECT * FROM drinks")
    assert cursor.rowcount == -1 and len(cursor.fetchall()) == 3
    cursor.execute("CREATE TABLE empty (id BIGINT PRIMARY KEY)")
    assert cursor.rowcount == -1
    cursor.execute("DELETE FROM drinks")
    assert cursor.rowcount == 3


def test_fetches(drinks):
    cursor = drinks.cursor()
    for fetch in (cursor.fetchone, cursor.fetchmany, cursor.fetchall, cursor.nextset):
        with pytest.raises(dbapi.Error):
            fetch()
    cursor.execute("INSERT INTO drinks VALUES ('x', 9)")
    with pytest.raises(dbapi.Error):
        cursor.fetchone()
    names = sorted(["Victoria Bitter", "Cooper's", "Redback", "x"])
    cursor.execute("SELECT name FROM drinks ORDER BY name")
    assert cursor.fetchone() == (names[0],)
    assert cursor.fetchmany() == [(names[1],)]
    cursor.arraysize = 2
    assert cursor.fetchmany() == [(names[2],), (names[3],)]
    assert cursor.fetchmany() == [] and cursor.fetchone() is None and cursor.fetchall() == []
    assert [row[0] for row in cursor.execute("SELECT name FROM drinks ORDER BY name")] == names
    assert cursor.execute("SELECT name FROM drinks WHERE false").fetchall() == []
    assert cursor.nextset() is None
    cursor.setinputsizes([25])
    cursor.setoutputsize(1000, 0)
    with pytest.raises(dbapi.NotSupportedError):
        cursor.callproc("lower", ["FOO"])


def test_parameters(drinks):
    cursor = drinks.cursor()
    assert cursor.execute("SELECT name FROM drinks WHERE name = ?", ["Cooper's"]).fetchall() == [("Cooper's",)]
    assert cursor.execute("SELECT price FROM drinks WHERE name = $n", {"n": "Redback"}).fetchone()[0] == 3
    with pytest.raises(dbapi.ProgrammingError):
        cursor.execute("SELECT ?")


def test_executemany_is_all_or_nothing(drinks):
    cursor = drinks.cursor()
    assert cursor.executemany("INSERT INTO drinks VALUES (?, ?)", [("a", 1), ("b", 2)]).rowcount == 2
    with pytest.raises(dbapi.IntegrityError):
        cursor.executemany("INSERT INTO drinks VALUES (?, ?)", [("c", 1), ("a", 2)])
    with pytest.raises(dbapi.ProgrammingError, match="executemany"):
        cursor.executemany("SELECT ?", [(1,)])
    assert cursor.execute("SELECT count(*) FROM drinks").fetchone() == (5,)
    assert cursor.executemany("INSERT INTO drinks VALUES (?, ?)", []).rowcount == -1


def test_transactions(drinks):
    drinks.commit()
    drinks.rollback()
    drinks.begin()
    drinks.execute("DELETE FROM drinks")
    drinks.rollback()
    assert drinks.execute("SELECT count(*) FROM drinks").fetchone() == (3,)
    drinks.begin()
    drinks.execute("DELETE FROM drinks WHERE name = 'Redback'")
    drinks.commit()
    assert drinks.execute("SELECT count(*) FROM drinks").fetchone() == (2,)
    drinks.autocommit = False
    drinks.execute("-- all of them\nDELETE FROM drinks")
    drinks.rollback()
    assert drinks.execute("SELECT count(*) FROM drinks").fetchone() == (2,)


def test_blocks_commit_or_roll_back(tmp_path):
    with dbapi.connect(tmp_path, autocommit=False) as con:
        con.execute("CREATE TABLE t (id BIGINT PRIMARY KEY)")
        con.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(KeyError), dbapi.connect(tmp_path, autocommit=False) as con:
        con.execute("INSERT INTO t VALUES (2)")
        raise KeyError
    with dbapi.connect(tmp_path) as con:
        assert con.execute("SELECT * FROM t").fetchall() == [(1,)]


def test_what_is_closed_is_refused(con):
    cursor = con.cursor()
    cursor.execute("SELECT 1")
    cursor.close()
    cursor.close()
    with pytest.raises(dbapi.InterfaceError, match="cursor is closed"):
        cursor.fetchall()
    other = con.cursor()
    con.close()
    for use in (con.close, con.commit, con.rollback, con.cursor, lambda: other.execute("SELECT 1")):
        with pytest.raises(dbapi.InterfaceError, match="closed"):
            use()


def test_constructors_and_types(con):
    assert dbapi.Date(2002, 12, 25) == dbapi.DateFromTicks(dt.datetime(2002, 12, 25).timestamp())
    assert dbapi.Time(13, 45, 30) == dbapi.TimeFromTicks(dt.datetime(2001, 1, 1, 13, 45, 30).timestamp())
    at = dbapi.Timestamp(2002, 12, 25, 13, 45, 30)
    assert at == dbapi.TimestampFromTicks(at.timestamp())
    values = [dbapi.Date(2002, 12, 25), at, dbapi.Binary(b"x"), "x", 1, None]
    cursor = con.cursor().execute("SELECT ?, ?, ?, ?, ?, ?", values)
    kinds = [dbapi.DATETIME, dbapi.DATETIME, dbapi.BINARY, dbapi.STRING, dbapi.NUMBER]
    assert [column[1] for column in cursor.description][:5] == kinds
    assert cursor.fetchone() == tuple(values)
    assert dbapi.STRING != dbapi.NUMBER and dbapi.STRING != "Int64" and len({dbapi.STRING, dbapi.ROWID}) == 2


def test_threads_share_a_connection(drinks):
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(drinks.execute("SELECT count(*) FROM drinks").fetchone()))
        for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [(3,)] * 16


@pytest.mark.filterwarnings("ignore:pandas only supports SQLAlchemy")
def test_pandas_reads_by_it(drinks):
    frame = pandas.read_sql("SELECT name, price FROM drinks WHERE price >= ? ORDER BY name", drinks, params=[2])
    assert frame["name"].tolist() == ["Cooper's", "Redback"]
