"""Files, tables, transactions, threads and interruption."""

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pyarrow as pa
import pytest

import plinth

ENDLESS = "SELECT sum(a.value * b.value) FROM generate_series(1, 100000000) a, generate_series(1, 100000000) b"


def test_files_are_read(con, tmp_path):
    (tmp_path / "a.csv").write_text("n;s\n1;x\n")
    (tmp_path / "b.csv").write_text("n;s\n2;y\n")
    both = [tmp_path / "a.csv", tmp_path / "b.csv"]
    assert con.read_csv(both, delimiter=";").fetchall() == [(1, "x"), (2, "y")]
    (tmp_path / "a.json").write_text('{"rows": [{"n": 1, "at": {"x": 5}}, {"n": 2}]}')
    rows = con.read_json(tmp_path / "a.json", root="rows", columns={"n": "$.n", "x": "$.at.x"})
    assert rows.fetchall() == [(1, 5), (2, None)]
    typed = con.read_csv(tmp_path / "a.csv", delimiter=";", schema="n DOUBLE, s TEXT", header=True)
    assert typed.fetchall() == [(1.0, "x")]


def test_imports_and_exports(con, tmp_path):
    (tmp_path / "it's.json").write_text("".join(f'{{"n": {n % 7}, "s": "t{n}"}}\n' for n in range(100)))
    path = tmp_path / "it's.plinth"
    assert con.import_(tmp_path / "it's.json", path, sort_by=["n:desc", "s"], index="s", effort="compact") == 100
    with pytest.raises(plinth.Error, match="exists"):
        con.import_(tmp_path / "it's.json", path)
    assert con.import_(tmp_path / "it's.json", path, sort_by="n:desc", index=["s"], replace=True) == 100
    quoted = str(path).replace("'", "''")
    rows = con.sql(f"SELECT n FROM '{quoted}'").fetchall()
    assert rows == sorted(rows, reverse=True) and len(rows) == 100
    assert con.sql(f"SELECT n FROM '{quoted}' WHERE s = 't8'").fetchall() == [(1,)]
    assert con.export(f"SELECT * FROM '{quoted}' ORDER BY s LIMIT 3;", tmp_path / "out.csv") == 3
    assert (tmp_path / "out.csv").read_text().splitlines()[:2] == ["n,s", "0,t0"]
    assert con.export(f"SELECT * FROM '{quoted}'", tmp_path / "out.parquet") == 100
    assert con.import_(tmp_path / "out.parquet", tmp_path / "again.plinth") == 100
    assert con.import_([tmp_path / "out.csv"], tmp_path / "csv.plinth") == 3
    for wrong in (
        lambda: con.import_(tmp_path / "out.csv", tmp_path / "no.parquet"),
        lambda: con.import_(tmp_path / "no", tmp_path / "no.plinth"),
        lambda: con.import_([tmp_path / "out.parquet"], tmp_path / "no.plinth"),
    ):
        with pytest.raises(plinth.InterfaceError):
            wrong()
    with pytest.raises(plinth.Error, match="effort"):
        con.import_(tmp_path / "out.csv", tmp_path / "no.plinth", effort="most")
    with pytest.raises(plinth.Error, match="nope"):
        con.import_(tmp_path / "out.csv", tmp_path / "no.plinth", sort_by="nope")
    assert not any(name.startswith(("no", ".")) for name in os.listdir(tmp_path))


def test_tables_by_name(db):
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, \"Odd name\" TEXT)")
    table = db.table("t")
    assert table.columns == ["id", "Odd name"] and len(table) == 0
    assert table.insert(pa.table({"Odd name": ["b", "a"], "id": [2, 1]})) == 2
    assert len(table) == 2 and {"id": 1, "Odd name": "a"} in table.arrow().to_pylist()
    assert table.pl().shape == table.df().shape == (2, 2)
    with pytest.raises(plinth.IntegrityError):
        table.insert(pa.table({"Odd name": ["c", "x"], "id": [3, 1]}))
    assert len(table) == 2
    with pytest.raises(plinth.ProgrammingError, match="nope"):
        table.insert(pa.table({"nope": [1]}))
    with pytest.raises(plinth.ProgrammingError, match="nothing"):
        db.table("nothing")
    assert db.tables() == ["t"]
    assert "Odd name" in repr(table) and "Odd name" in table._repr_html_()


def test_transactions_end_with_their_blocks(db):
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY)")
    with db.transaction():
        db.sql("INSERT INTO t VALUES (1)")
        assert db.in_transaction
        assert db.sql("SELECT count(*) FROM t").fetchall() == [(1,)]
    with pytest.raises(KeyError), db.transaction():
        db.sql("INSERT INTO t VALUES (2)")
        raise KeyError
    assert not db.in_transaction
    assert db.sql("SELECT * FROM t").fetchall() == [(1,)]
    db.begin()
    db.sql("DELETE FROM t")
    db.rollback()
    db.begin()
    db.sql("INSERT INTO t VALUES (3)")
    db.commit()
    assert db.sql("SELECT * FROM t ORDER BY 1").fetchall() == [(1,), (3,)]
    with pytest.raises(plinth.ProgrammingError, match="no transaction is open"):
        db.commit()


def test_an_interrupt_from_another_thread(con):
    timer = threading.Timer(0.3, con.interrupt)
    timer.start()
    with pytest.raises(plinth.InterruptedError):
        con.sql(ENDLESS).fetchall()
    timer.join()
    timer = threading.Timer(0.3, con.interrupt)
    timer.start()
    with pytest.raises(plinth.InterruptedError):
        con.sql(f"CREATE TABLE t AS {ENDLESS}")
    timer.join()
    timer = threading.Timer(0.3, con.interrupt)
    timer.start()
    with pytest.raises(plinth.InterruptedError):
        con.sql(ENDLESS).arrow()
    timer.join()
    assert con.sql("SELECT 1").fetchall() == [(1,)]


CTRL_C = """
import os, signal, threading, plinth
con = plinth.connect(threads=2)
endless = {endless!r}
for take in (lambda: con.sql(endless).fetchall(), lambda: con.sql(endless).arrow(), lambda: con.sql(endless).pl(),
             lambda: con.sql("CREATE TABLE t AS " + endless)):
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        take()
        for _ in range(1000): pass
    except KeyboardInterrupt:
        print("interrupted")
    except Exception as error:
        print(type(error), error)
print(con.sql("SELECT 1").fetchall())
"""


def test_ctrl_c_ends_what_runs():
    done = subprocess.run(
        [sys.executable, "-c", CTRL_C.format(endless=ENDLESS)], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.splitlines() == ["interrupted"] * 4 + ["[(1,)]"], done.stdout + done.stderr


def test_sixteen_threads_on_one_connection(db):
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, thread BIGINT)")
    wrong = []

    def work(thread):
        frame = pa.table({"a": list(range(thread, thread + 1000))})
        try:
            for round in range(5):
                if db.sql("SELECT min(a), count(*) FROM frame").fetchall() != [(thread, 1000)]:
                    wrong.append("data")
                if db.sql("INSERT INTO t VALUES (?, ?)", [thread * 100 + round, thread]).rowcount != 1:
                    wrong.append("insert")
                if db.sql("SELECT count(*) FROM t WHERE thread = ?", [thread]).fetchall() != [(round + 1,)]:
                    wrong.append("count")
                if db.sql("SELECT sum(value) AS s FROM generate_series(1, 20000)").arrow()["s"].to_pylist() != [200010000]:
                    wrong.append("sum")
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(180)
    assert not any(thread.is_alive() for thread in threads) and wrong == []
    assert db.sql("SELECT count(*), count(DISTINCT thread) FROM t").fetchall() == [(80, 16)]


def test_one_result_and_many_threads(con):
    result = con.sql("SELECT value FROM generate_series(1, 50000)")
    found = []

    def work():
        while rows := result.fetchmany(777):
            found.extend(rows)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(found) == [(i,) for i in range(1, 50_001)]


def test_others_run_while_a_query_does(con):
    result = con.sql(ENDLESS)
    thread = threading.Thread(target=lambda: pytest.raises(plinth.InterruptedError, result.fetchall))
    thread.start()
    time.sleep(0.2)
    # Neither the interpreter nor the connection waits for it.
    assert con.sql("SELECT 1").fetchall() == [(1,)]
    con.interrupt()
    thread.join(60)
    assert not thread.is_alive()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_connects_again(tmp_path):
    con = plinth.connect(threads=2)
    assert con.sql("SELECT 1").fetchall() == [(1,)]
    child = os.fork()
    if child == 0:
        try:
            con.sql("SELECT 1")
        except plinth.InterfaceError as error:
            with plinth.connect(threads=2) as own:
                told = f"{error} {own.sql('SELECT 2').fetchall()} {plinth.sql('SELECT 3').fetchall()}"
            (tmp_path / "told").write_text(told)
        con.close()
        del con
        os._exit(0)
    deadline = time.monotonic() + 60
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        assert time.monotonic() < deadline, os.kill(child, signal.SIGKILL)
        time.sleep(0.05)
    told = (tmp_path / "told").read_text()
    assert "forked" in told and "[(2,)] [(3,)]" in told
    assert con.sql("SELECT 1").fetchall() == [(1,)]
    con.close()


def test_a_killed_process_loses_no_commit(tmp_path):
    program = """
import sys, plinth
con = plinth.connect(sys.argv[1], threads=1)
con.sql("CREATE TABLE t (id BIGINT PRIMARY KEY)")
for n in range(10**6):
    con.sql("INSERT INTO t VALUES (?)", [n])
    print(n, flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    seen = -1
    with process.stdout:
        for line in process.stdout:
            seen = int(line)
            if seen >= 50:
                break
        process.kill()
        rest = process.stdout.read().split()
    process.wait()
    seen = int(rest[-1]) if rest else seen
    with plinth.connect(tmp_path) as con:
        count, most = con.sql("SELECT count(*), max(id) FROM t").fetchone()
    assert count == most + 1 and most >= seen


def test_memory_stays_where_it_is(con):
    def resident():
        return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    if not sys.platform.startswith("linux"):
        pytest.skip("there is no /proc")
    data = pa.table({"a": list(range(10_000))})

    def some(count):
        for _ in range(count):
            con.sql("SELECT a + 1 AS b FROM data").arrow()
            con.sql("SELECT a FROM data LIMIT 3").fetchall()

    some(100)
    before = resident()
    some(300)
    # Of leaked results, each would be 80 kB.
    assert resident() - before < 16 << 20
