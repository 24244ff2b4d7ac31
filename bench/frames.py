"""Plinth in Python beside DuckDB, Polars and pyarrow: whole tables as DataFrames, and questions of Polars and DuckDB over files.

    python -m bench.frames --folder bench-data/frames --rows 10000000

needs an installed `plinth` (a release build), duckdb, polars, pyarrow and pandas. Every answer over a Plinth file is compared with the same over Parquet,
and DataFrames by the sum of `id`. Times are the best of `--repeat` runs with files in the page cache, and of Plinth's with one connection, which keeps
blocks in memory.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

import plinth

ROWS = """SELECT value AS id, CAST((value * 7919) % 100003 AS INT) AS user_id, CAST((value * 104729) % 1000003 AS DOUBLE) / 7 AS amount,
  'c' || ((value * 31) % 50) AS country, 'note ' || value AS note FROM generate_series(1, {rows})"""

C = pl.col


def questions(rows: int) -> list[tuple[str, str, Callable[[pl.LazyFrame], pl.LazyFrame]]]:
    """What is asked, for DuckDB and for Polars; each has one row."""
    low, mid, one = rows // 100, rows // 2, f"note {rows // 3}"
    n = pl.len().alias("n")
    return [
        ("rows of a range", f"SELECT count(*) FROM t WHERE id BETWEEN {mid} AND {mid + low}",
         lambda t: t.filter(C("id").is_between(mid, mid + low)).select(n)),
        ("sum of one user", "SELECT sum(amount) FROM t WHERE user_id = 4711",
         lambda t: t.filter(C("user_id") == 4711).select(C("amount").sum())),
        ("rows of one country", "SELECT count(*) FROM t WHERE country = 'c7'",
         lambda t: t.filter(C("country") == "c7").select(n)),
        ("sum of the first rows", f"SELECT sum(amount) FROM t WHERE id < {low}",
         lambda t: t.filter(C("id") < low).select(C("amount").sum())),
        ("largest of all", "SELECT max(amount) FROM t", lambda t: t.select(C("amount").max())),
        ("largest group", "SELECT max(n) FROM (SELECT country, count(*) AS n FROM t GROUP BY country)",
         lambda t: t.group_by("country").agg(n).select(C("n").max())),
        ("one text of all", f"SELECT count(*), max(id) FROM t WHERE note = '{one}'",
         lambda t: t.filter(C("note") == one).select(n, C("id").max())),
        ("three users", "SELECT count(*), sum(id) FROM t WHERE user_id IN (1, 2, 3)",
         lambda t: t.filter(C("user_id").is_in([1, 2, 3])).select(n, C("id").sum())),
        ("two columns", "SELECT count(*), sum(id) FROM t WHERE amount > 140000 AND country = 'c3'",
         lambda t: t.filter((C("amount") > 140000) & (C("country") == "c3")).select(n, C("id").sum())),
        ("one user or another", "SELECT min(id), max(id) FROM t WHERE user_id = 17 OR user_id = 18",
         lambda t: t.filter((C("user_id") == 17) | (C("user_id") == 18)).select(C("id").min().alias("a"), C("id").max().alias("b"))),
        ("texts of a short range", f"SELECT max(note) FROM t WHERE id BETWEEN {mid} AND {mid + 100}",
         lambda t: t.filter(C("id").is_between(mid, mid + 100)).select(C("note").max())),
        ("sum of all", "SELECT sum(id), sum(user_id) FROM t", lambda t: t.select(C("id").sum(), C("user_id").cast(pl.Int64).sum())),
    ]


def best(repeat: int, work: Callable[[], Any]) -> tuple[float, Any]:
    """The shortest time in seconds, and the answer."""
    times, answer = [], None
    for _ in range(repeat):
        answer = None
        begun = time.perf_counter()
        answer = work()
        times.append(time.perf_counter() - begun)
    return min(times), answer


def same(one: Any, other: Any) -> bool:
    return len(one) == len(other) and all(
        math.isclose(a, b, rel_tol=1e-9) if isinstance(a, float) else a == b for a, b in zip(one, other)
    )


def geomean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def import_times() -> list[float]:
    """Milliseconds of `import plinth` in fresh interpreters."""
    text = "import time; b = time.perf_counter(); import plinth; print((time.perf_counter() - b) * 1000)"
    return sorted(float(subprocess.check_output([sys.executable, "-c", text])) for _ in range(7))


def copies(con: plinth.Connection) -> list[str]:
    """Columns of a table of pyarrow whose values are elsewhere after a query of all its rows."""
    import numpy

    table = pa.table({"i": pa.array(numpy.arange(100_000)), "x": pa.array(numpy.arange(100_000) / 7)})
    con.register("given", table)
    taken = con.sql("SELECT i, x FROM given").arrow()
    moved = []
    for name in table.column_names:
        of = table.column(name).chunk(0).buffers()[1]
        for chunk in taken.column(name).chunks:
            # The slice of a column keeps the buffer's address or a later one of it.
            at = chunk.buffers()[1].address
            if not of.address <= at < of.address + of.size and name not in moved:
                moved.append(name)
    con.unregister("given")
    return moved


def frames(con: plinth.Connection, ours: Path, parquet: Path, repeat: int) -> None:
    """Whole tables, by each library."""
    sql = f"SELECT * FROM '{ours}'"
    duck = f"SELECT * FROM '{parquet}'"
    arrow = {
        "Plinth": lambda: con.sql(sql).arrow(),
        "DuckDB": lambda: duckdb.sql(duck).to_arrow_table(),
        "Polars": lambda: pl.read_parquet(parquet).to_arrow(),
        "pyarrow": lambda: pq.read_table(parquet),
    }
    pandas = {
        "Plinth": lambda: con.sql(sql).df(),
        "DuckDB": lambda: duckdb.sql(duck).df(),
        "Polars": lambda: pl.read_parquet(parquet).to_pandas(),
        "pyarrow": lambda: pq.read_table(parquet).to_pandas(),
    }
    polars = {
        "Plinth": lambda: con.sql(sql).pl(),
        "DuckDB": lambda: duckdb.sql(duck).pl(),
        "Polars": lambda: pl.read_parquet(parquet),
        "pyarrow": lambda: pl.DataFrame(pq.read_table(parquet)),
    }
    print("| all rows, seconds | Plinth | DuckDB | Polars | pyarrow |\n|---|---|---|---|---|", flush=True)
    for what, ways in (("as a table of pyarrow", arrow), ("as a DataFrame of pandas", pandas), ("as a DataFrame of Polars", polars)):
        cells, sums = [], set()
        for work in ways.values():
            seconds, frame = best(repeat, work)
            column = frame["id"]
            sums.add(int(pa.compute.sum(column).as_py() if isinstance(frame, pa.Table) else column.sum()))
            cells.append(f"{seconds:.2f}")
            del frame, column
        assert len(sums) == 1, f"{what}: sums differ: {sums}"
        print(f"| {what} | {' | '.join(cells)} |", flush=True)


def scans(con: plinth.Connection, ours: Path, parquet: Path, rows: int, repeat: int) -> None:
    """Questions of Polars and DuckDB over both files."""
    duck = duckdb.connect()
    t = con.open(ours)
    duck.register("plinth_t", t)
    print("| question | Polars over Plinth, ms | over Parquet | DuckDB over Plinth, ms | over Parquet |", flush=True)
    print("|---|---|---|---|---|")
    of_polars, of_duckdb = [], []
    for name, sql, ask in questions(rows):
        mine, mine_rows = best(repeat, lambda: ask(con.scan(ours)).collect().row(0))
        theirs, their_rows = best(repeat, lambda: ask(pl.scan_parquet(parquet)).collect().row(0))
        assert same(mine_rows, their_rows), f"Polars, {name}: {mine_rows} and {their_rows}"
        over, over_rows = best(repeat, lambda: duck.sql(sql.replace("FROM t", "FROM plinth_t")).fetchall()[0])
        beside, beside_rows = best(repeat, lambda: duck.sql(sql.replace("FROM t", f"FROM '{parquet}'")).fetchall()[0])
        assert same(over_rows, beside_rows), f"DuckDB, {name}: {over_rows} and {beside_rows}"
        assert same(mine_rows, over_rows), f"{name}: {mine_rows} and {over_rows}"
        of_polars.append(theirs / mine)
        of_duckdb.append(beside / over)
        times = " | ".join(f"{seconds * 1000:.1f}" for seconds in (mine, theirs, over, beside))
        print(f"| {name} | {times} |", flush=True)
    print(f"\nGeometric mean of Parquet's time over Plinth's: Polars {geomean(of_polars):.2f}, DuckDB {geomean(of_duckdb):.2f}.")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    ours, parquet = given.folder / f"t{given.rows}.plinth", given.folder / f"t{given.rows}.parquet"
    con = plinth.connect()
    if not ours.exists() or not parquet.exists():
        con.write(ours, con.sql(ROWS.format(rows=given.rows)), replace=True)
        pq.write_table(con.sql(f"SELECT * FROM '{ours}'").arrow(), parquet, compression="zstd")
    took = import_times()
    print(f"{given.rows:,} rows; Plinth {ours.stat().st_size / 1e6:.1f} MB, Parquet with Zstandard {parquet.stat().st_size / 1e6:.1f} MB.")
    print(f"`import plinth`: {took[len(took) // 2]:.0f} ms, the median of {len(took)} fresh interpreters.")
    print(f"Columns copied on their way from pyarrow through a query and back: {', '.join(copies(con)) or 'none'}.\n", flush=True)
    frames(con, ours, parquet, given.repeat)
    print()
    scans(con, ours, parquet, given.rows, given.repeat)


if __name__ == "__main__":
    main()
