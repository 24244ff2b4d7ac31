"""Faults around Plinth inside DuckDB: an error that says what happened, or the right answer, and the process lives.

    python faults.py EXTENSION WORK [--seed N] [--only NAME]

Reads that fail and refused rings come from faults.c, which is compiled and preloaded where there is a C compiler.
"""

import ctypes
import os
import random
import shutil
import subprocess
import sys
import threading
import time

import duckdb

from extension import main, make, total

CHECKS = {}
SHIM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "faults.c")


def check(function):
    CHECKS[function.__name__] = function
    return function


@check
def damage(case):
    """A file with a flipped byte gives an error that names it, or the same answer."""
    path = make(case, "t", 3000)
    whole = open(path, "rb").read()
    ask = lambda db, path: db.execute(f"select count(*), sum(hash(t)) from read_plinth('{path}') t").fetchall()
    wanted = ask(case.db, path)
    pick = random.Random(case.seed)
    bad = case.path("bad.plinth")
    errors = 0
    for _ in range(150):
        damaged = bytearray(whole)
        damaged[pick.randrange(len(damaged))] ^= 1 << pick.randrange(8)
        with open(bad, "wb") as file:
            file.write(damaged)
        try:
            case.equal(ask(case.db, bad), wanted, "a damaged file")
        except duckdb.Error as e:
            assert "bad.plinth" in str(e) and "INTERNAL" not in str(e) and "panic" not in str(e), e
            errors += 1
    assert errors > 75, f"{errors} of 150 flips were noticed"
    for length in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        with open(bad, "wb") as file:
            file.write(whole[:length])
        case.refused(f"from '{bad}'", "bad.plinth")
    case.equal(ask(case.db, path), wanted, "the whole file, afterwards")


@check
def replaced(case):
    """A file that another takes the place of is read as it is now, and never half."""
    path, other = case.path("t.plinth"), case.path("other.plinth")
    case.db.execute(f"copy (select i from range(100000) r(i)) to '{path}'")
    case.equal(case.one(f"select sum(i) from '{path}'"), sum(range(100_000)), "before")
    reader = case.db.sql(f"select i from '{path}'").to_arrow_reader(2048)
    first = reader.read_next_batch()
    fresh = case.connect()
    fresh.execute(f"copy (select -i as i from range(50) r(i)) to '{other}'")
    os.replace(other, path)
    rest = total(reader)
    case.equal(total([first]) + rest, sum(range(100_000)), "a scan that had begun")
    case.equal(case.one(f"select sum(i) from '{path}'"), -sum(range(50)), "after")


@check
def interrupted(case):
    """A statement is stopped while it scans, and the next one runs."""
    path = case.path("t.plinth")
    case.db.execute(f"copy (select i, md5(i::varchar) as s from range(1000000) r(i)) to '{path}'")
    started, caught = time.time(), []
    stopper = threading.Timer(0.3, case.db.interrupt)
    stopper.start()
    try:
        case.rows(f"select count(*) from '{path}' a, '{path}' b where a.s || b.s like '%never%'")
    except duckdb.Error as e:
        caught.append(str(e))
    stopper.cancel()
    assert caught and "nterrupt" in caught[0], caught
    assert time.time() - started < 60
    case.equal(case.one(f"select count(*) from '{path}'"), 1_000_000, "afterwards")


@check
def memory(case):
    """With 256 MB for DuckDB, an answer or an error, and ours within its own limit."""
    path = case.path("t.plinth")
    case.db.execute(f"copy (select i, md5(i::varchar) as s, i % 100000 as k, i::double as f from range(1500000) r(i)) to '{path}'")
    db = case.connect(memory_limit="256MB", temp_directory=case.path("spill"))
    for sql in ["select count(*), sum(i), max(s) from {t}", "select k, count(*), max(s) from {t} group by k order by k limit 3", "select i, s from {t} order by s limit 5", "select count(*) from {t} a join {t} b on a.s = b.s"]:
        try:
            found = db.execute(sql.replace("{t}", f"'{path}'")).fetchall()
        except duckdb.Error as e:
            assert "emory" in str(e), e
        else:
            case.equal(found, case.rows(sql.replace("{t}", f"'{path}'")), sql)
    counted = dict(db.execute("from plinth_buffers()").fetchall())
    assert counted["memory_limit"] <= 65 << 20, counted
    assert counted["memory_peak"] <= counted["memory_limit"] * 1.2, counted


def preloaded(case):
    """The functions of faults.c; None if a process of its own ran the check, or why it can't be run."""
    if hasattr(ctypes.CDLL(None), "faults_reads"):
        return ctypes.CDLL(None), None
    compiler = shutil.which("cc")
    if not sys.platform.startswith("linux") or not compiler:
        return None, "needs Linux and a C compiler"
    shim = case.path("faults.so")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", shim, SHIM, "-ldl"], check=True)
    name = sys._getframe(1).f_code.co_name
    again = [sys.executable, "-B", __file__, os.path.abspath(case.options.extension), case.path("again"), "--only", name]
    ran = subprocess.run(again, env={**os.environ, "LD_PRELOAD": shim}, capture_output=True, text=True)
    assert ran.returncode == 0, f"{ran.returncode}: {ran.stdout[-500:]}{ran.stderr[-500:]}"
    return None, None


@check
def reads_that_fail(case):
    """EIO at each read in turn: an error that names the file, then the right answer."""
    faults, skipped = preloaded(case)
    if not faults:
        return skipped
    path = make(case, "t", 20_000)
    ask = f"select count(*), sum(i64), max(s), sum(hash(st)) from '{path}' where i32 > 1000"
    wanted = case.rows(ask)
    for io in ("direct", "cached"):
        errors = answers = 0
        for countdown in range(200):
            # An engine of its own, so that nothing is known of the file.
            db = case.connect()
            db.execute(f"set plinth_io = '{io}'")
            # What is in the page cache is read without the call that fails.
            with open(path, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            faults.faults_reads(countdown)
            try:
                found = db.execute(ask).fetchall()
            except duckdb.Error as e:
                assert "t.plinth" in str(e) and "os error 5" in str(e), e
                assert "INTERNAL" not in str(e) and "panic" not in str(e), e
                errors += 1
            else:
                case.equal(found, wanted, f"after {countdown} reads")
                answers += 1
                assert faults.faults_failed() == 0, f"{countdown}: a read failed, and there was an answer"
            faults.faults_reads(-1)
            case.equal(db.execute(ask).fetchall(), wanted, "once reads go well")
            if answers == 3:
                break
        assert errors >= 3 and answers == 3, f"{io}: {errors} errors, {answers} answers"


@check
def refused_rings(case):
    """Where rings are refused threads read in their place."""
    faults, skipped = preloaded(case)
    if not faults:
        return skipped
    path = make(case, "t", 20_000)
    wanted = case.rows("select count(*), sum(hash(t)) from t")
    for io in ("uring", "auto", "direct", "cached"):
        faults.faults_rings(1)
        db = case.connect()
        db.execute(f"set plinth_io = '{io}'")
        case.equal(db.execute(f"select count(*), sum(hash(t)) from '{path}' t").fetchall(), wanted, io)
        if io == "uring":
            assert faults.faults_refused() > 0, "no ring was asked for"


@check
def interrupted_where_nothing_passes(case):
    """A scan whose filter drops every row ends when it is interrupted, too, not at its end."""
    path = case.path("t.plinth")
    case.db.execute(f"copy (select i, md5(i::varchar) as s from range(500000) r(i)) to '{path}'")
    count = 200
    many = case.path("many")
    os.makedirs(many)
    for at in range(count):
        os.link(path, os.path.join(many, f"{at}.plinth"))

    def read():
        counted = dict(case.db.cursor().execute("from plinth_buffers()").fetchall())
        return sum(counted[name] for name in ("bytes_cached", "bytes_queued", "bytes_direct"))

    ask = lambda path: case.one(f"select count(*) from '{path}' where s like '%never%'")
    ask(path)
    before = read()
    ask(f"{many}/0.plinth")
    each, done = read() - before, threading.Event()

    def stop():
        while not done.wait(0.01):
            if read() > before + 5 * each:
                return case.db.interrupt()

    stopper = threading.Thread(target=stop)
    stopper.start()
    try:
        ask(f"{many}/*.plinth")
    except duckdb.Error as e:
        assert "nterrupt" in str(e), e
    else:
        raise AssertionError("was not interrupted")
    finally:
        done.set()
        stopper.join()
    assert each and read() - before < each * count / 2, f"{read() - before} bytes of {each * count} were read"
    case.equal(case.one(f"select count(*) from '{path}'"), 500_000, "afterwards")


if __name__ == "__main__":
    main(CHECKS)
