"""Threads, each with its own connection: writers, readers and long lives."""

import os
import threading

import pytest

import plinth

THREADS = 16


def together(work):
    """What all threads are done with, or the first error of one."""
    begin, errors = threading.Barrier(THREADS), []

    def run(at):
        try:
            begin.wait()
            work(at)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(at,), daemon=True) for at in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
        assert not thread.is_alive(), "a thread waits for ever"
    if errors:
        raise errors[0]


def test_sixteen_connections_write_and_read(tmp_path):
    with plinth.connect(tmp_path, threads=1) as con:
        con.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, owner INT, v BIGINT)")

    def work(at):
        with plinth.connect(tmp_path, threads=1) as con:
            if at % 2:
                for n in range(20):
                    con.sql("INSERT INTO t VALUES (?, ?, ?), (?, ?, ?)", [at * 1000 + 2 * n, at, 1, at * 1000 + 2 * n + 1, at, -1])
            else:
                seen = 0
                for _ in range(20):
                    # Two rows at a time, or none of them.
                    rows, total = con.sql("SELECT count(*), coalesce(sum(v), 0) FROM t").fetchone()
                    assert rows % 2 == 0 and total == 0 and rows >= seen
                    seen = rows

    together(work)
    with plinth.connect(tmp_path, threads=1) as con:
        counts = con.sql("SELECT owner, count(*), sum(v) FROM t GROUP BY owner ORDER BY owner").fetchall()
    assert counts == [(at, 40, 0) for at in range(1, THREADS, 2)]


def test_sixteen_streams_that_fail_in_the_middle(tmp_path):
    with plinth.connect(threads=2) as con:

        def work(at):
            for _ in range(5):
                result = con.sql(f"SELECT 10 / (value - {20_000 + at}) AS v FROM generate_series(1, 40000)")
                with pytest.raises(plinth.DataError, match="division by zero"):
                    result.arrow()
                assert con.sql("SELECT ?", [at]).fetchall() == [(at,)]

        together(work)


def test_streams_that_are_left(con):
    for _ in range(200):
        reader = con.sql("SELECT value FROM generate_series(1, 1000000)").reader()
        assert reader.read_next_batch().num_rows > 0
        del reader
    assert con.sql("SELECT 1").fetchall() == [(1,)]


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="there is no /proc")
def test_connections_come_and_go(tmp_path):
    def resident():
        with open("/proc/self/statm") as counts:
            return int(counts.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def cycle(times):
        for _ in range(times):
            with plinth.connect(tmp_path, threads=1) as con:
                assert con.sql("SELECT 1").fetchall() == [(1,)]

    cycle(30)
    before, threads = resident(), threading.active_count()
    cycle(100)
    assert resident() - before < 32 << 20 and threading.active_count() == threads
