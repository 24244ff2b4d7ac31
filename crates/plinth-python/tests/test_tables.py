"""Tables that can be written to: by keys, and by several connections."""

import threading

import numpy
import pandas
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import plinth


@pytest.fixture
def people(db):
    db.sql("CREATE TABLE people (id BIGINT PRIMARY KEY, name TEXT, n INT)")
    table = db.table("people")
    assert table.insert(pandas.DataFrame({"id": [1, 2, 3], "name": ["Ada", "Grace", None], "n": [10, 20, 30]})) == 3
    return table


def test_rows_by_their_keys(people):
    assert people.key == ["id"]
    assert people.get(2) == {"id": 2, "name": "Grace", "n": 20}
    assert people.get(7) is None
    found = people.get_many(numpy.array([3, 9, 1, 3]))
    assert [row and row["n"] for row in found] == [30, None, 10, 30]
    assert people.get_many([]) == []
    assert people.get_many(range(5000))[1:4] == people.get_many(polars.Series([1, 2, 3]))
    with pytest.raises(plinth.InterfaceError, match="1 columns: id"):
        people.get((1, 2))


def test_upserts(people):
    assert people.upsert(polars.DataFrame({"id": [2, 4], "n": [21, 40]})) == 2
    assert people.get_many([2, 4]) == [{"id": 2, "name": "Grace", "n": 21}, {"id": 4, "name": None, "n": 40}]
    assert people.upsert(pa.table({"id": [4, 5]})) in (1, 2)
    assert len(people) == 5
    with pytest.raises(plinth.Error):
        people.upsert(pa.table({"id": [1], "nope": [1]}))
    with pytest.raises(plinth.InterfaceError):
        people.upsert([(1, "x")])


def test_deletes(people):
    assert people.delete(numpy.array([1, 1, 8])) == 1
    assert people.delete([]) == 0
    assert people.delete([2, 3]) == 2
    assert len(people) == 0


def test_keys_of_several_columns(db):
    db.sql("CREATE TABLE visits (person BIGINT, day TEXT, n INT, PRIMARY KEY (person, day))")
    visits = db.table("visits")
    assert visits.key == ["person", "day"]
    visits.insert(pa.table({"person": [1, 1, 2], "day": ["a", "b", "a"], "n": [1, 2, 3]}))
    assert [row and row["n"] for row in visits.get_many([(2, "a"), (2, "b"), (1, "b")])] == [3, None, 2]
    assert visits.upsert(pa.table({"person": [1], "day": ["a"], "n": [7]})) == 1
    assert visits.get((1, "a"))["n"] == 7
    assert visits.delete([(1, "a"), (9, "z")]) == 1
    with pytest.raises(plinth.InterfaceError, match="2 columns: person, day"):
        visits.delete([1])


def test_tables_without_a_key(db):
    db.sql("CREATE TABLE log (event TEXT)")
    log = db.table("log")
    assert log.key == [] and log.insert(pa.table({"event": ["a", "a"]})) == 2
    for use in (lambda: log.get(1), lambda: log.delete([1]), lambda: log.upsert(pa.table({"event": ["b"]}))):
        with pytest.raises(plinth.ProgrammingError, match="has no key"):
            use()


def test_tables_are_scanned(people):
    assert people.dataset().to_table(columns=["name"], filter=pc.field("id") > 1).to_pylist() == [
        {"name": "Grace"},
        {"name": None},
    ]
    assert people.scan().filter(polars.col("id") == 1).select("name").collect().item() == "Ada"


def test_connections_of_a_process_share_tables(tmp_path):
    with plinth.connect(tmp_path, threads=1) as one, plinth.connect(tmp_path, threads=1) as two:
        one.sql("CREATE TABLE t (id BIGINT PRIMARY KEY)")
        two.sql("INSERT INTO t VALUES (1)")
        one.sql("INSERT INTO t VALUES (2)")
        assert two.sql("SELECT * FROM t ORDER BY 1").fetchall() == [(1,), (2,)]
        # Transactions are each connection's own.
        with one.transaction():
            one.sql("INSERT INTO t VALUES (3)")
            assert not two.in_transaction
            assert two.sql("SELECT count(*) FROM t").fetchall() == [(2,)]
            assert one.sql("SELECT count(*) FROM t").fetchall() == [(3,)]
        assert two.sql("SELECT count(*) FROM t").fetchall() == [(3,)]
        one.begin()
        two.begin()
        one.sql("DELETE FROM t WHERE id = 1")
        two.sql("DELETE FROM t WHERE id = 1")
        one.commit()
        with pytest.raises(plinth.OperationalError, match="begin again"):
            two.commit()
        one.close()
        two.sql("INSERT INTO t VALUES (4)")
    with plinth.connect(tmp_path, threads=1) as again:
        assert again.sql("SELECT * FROM t ORDER BY 1").fetchall() == [(2,), (3,), (4,)]


def test_sixteen_threads_on_sixteen_connections(tmp_path):
    with plinth.connect(tmp_path, threads=1) as first:
        first.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, thread BIGINT)")
    wrong = []

    def work(thread):
        try:
            with plinth.connect(tmp_path, threads=1) as con:
                for round in range(5):
                    con.sql("INSERT INTO t VALUES (?, ?)", [thread * 100 + round, thread])
                    if con.sql("SELECT count(*) FROM t WHERE thread = ?", [thread]).fetchall() != [(round + 1,)]:
                        wrong.append(thread)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(180)
    assert not any(thread.is_alive() for thread in threads) and wrong == []
    with plinth.connect(tmp_path, threads=1) as con:
        assert con.sql("SELECT count(*), count(DISTINCT thread) FROM t").fetchall() == [(80, 16)]
