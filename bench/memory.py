"""Whether `plinth sql --memory` holds: queries over a table much larger than the limit, each in a process of its own.

    python -m bench.memory --plinth target/release/plinth --source lineitem.parquet --folder bench-data/memory

The table is TPC-H's lineitem, imported once and linked as often as it takes to be `--table` bytes of files. A query's answer is
compared with DuckDB's over the same Parquet file before its memory is printed; what can't be answered within the limit must end
with an error that names the operator. Each process runs in a control group of what one holds after `SELECT 1` and 1.1 times the
limit, in which the kernel counts all of its memory, the pages of files and what it needs to keep track of them included: those it
takes back; a process that holds more ends. Where no group can be made, the resident set is looked at.
"""

import argparse
import json
import os
import re
import shutil
import sys
from pathlib import Path

from . import process
from .answers import Query, agree, rows_of_csv
from .engines import work
from .imports import bytes_of
from .process import Failed
from .timing import say

SORTED = "select l_extendedprice, l_orderkey, l_linenumber, l_shipdate, l_shipmode, l_comment from lineitem"
ORDER = "l_extendedprice, l_orderkey, l_linenumber"
# What a sorted copy must have in common with its table, and its keys must be in order.
SUMS = """select count(*) as c, sum(l_orderkey) as o, sum(l_linenumber) as l, sum(l_extendedprice) as e,
    min(l_shipdate) as a, max(l_shipdate) as z, count(distinct l_shipmode) as m, sum(length(l_comment)) as t"""

QUERIES = [
    Query(
        "scan",
        "all columns",
        """select count(*), sum(l_orderkey), sum(l_partkey), sum(l_suppkey), sum(l_linenumber), sum(l_quantity),
    sum(l_extendedprice), sum(l_discount), sum(l_tax), min(l_returnflag), max(l_linestatus), min(l_shipdate),
    max(l_commitdate), max(l_receiptdate), min(l_shipinstruct), max(l_shipmode), min(l_comment), max(l_comment)
    from lineitem""",
    ),
    Query("like", "text searched", "select count(*) from lineitem where l_comment like '%express%deposits%'"),
    Query(
        "group",
        "GROUP BY, 15 M groups",
        """select count(*), sum(n), max(n), sum(q) from
    (select l_orderkey, count(*) as n, sum(l_quantity) as q from lineitem group by l_orderkey) as g""",
    ),
    Query(
        "group-text",
        "GROUP BY two columns of text",
        """select count(*), sum(n), max(n) from
    (select l_comment, l_shipmode, count(*) as n from lineitem where l_orderkey < 6000000
     group by l_comment, l_shipmode) as g""",
    ),
    Query("distinct", "COUNT(DISTINCT)", "select count(distinct l_orderkey), count(distinct l_partkey) from lineitem"),
    Query(
        "top",
        "ORDER BY with LIMIT",
        "select l_orderkey, l_linenumber, l_comment from lineitem order by l_extendedprice desc, l_orderkey, l_linenumber"
        " limit 100",
    ),
    Query(
        "join-small",
        "JOIN, the smaller side fits",
        """select count(*), sum(l.l_quantity) from lineitem as l join
    (select l_partkey from lineitem where l_orderkey < 1000000 group by l_partkey) as p
    on l.l_partkey = p.l_partkey""",
    ),
    Query(
        "join",
        "JOIN, no side fits",
        """select count(*), sum(a.l_quantity), sum(b.l_tax) from lineitem as a join lineitem as b
    on a.l_orderkey = b.l_orderkey and a.l_linenumber = b.l_linenumber""",
    ),
    Query(
        "window",
        "a window of all rows",
        "select max(s), sum(r) from (select sum(l_quantity) over () as s,"
        " row_number() over (partition by l_suppkey order by l_orderkey, l_linenumber, l_comment) as r from lineitem) as w",
    ),
    Query(
        "cross",
        "a cross join",
        "select max(a.l_comment || b.c) from lineitem as a, (select l_comment as c from lineitem) as b",
        note="refused",
    ),
]
# An error that tells what to do: an operator, a size, the limit.
CLEAR = re.compile(r"out of memory: .+ needs .+B more.* of the memory limit of .+ are left.*: raise --memory")


def table(options):
    """The folder of the table's files, and how often it holds the source's rows."""
    folder = options.folder / "tables"
    files = folder / "lineitem"
    first = files / "00000.plinth"
    if not first.exists():
        files.mkdir(parents=True, exist_ok=True)
        process.run([options.plinth, "import", "--quiet", options.source, "--to", first])
    copies = max(1, round(options.table / first.stat().st_size))
    for copy in range(1, copies):
        link = files / f"{copy:05}.plinth"
        if not link.exists():
            os.link(first, link)
    return folder, copies


def expected(options, query, copies):
    """DuckDB's answer, kept: it is the same for every run."""
    kept = options.folder / "answers.json"
    answers = json.loads(kept.read_text()) if kept.exists() else {}
    key = f"{query.sql} of {copies}"
    if key not in answers:
        files = [str(options.source)] * copies
        request = {"engine": "duckdb", "tables": {"lineitem": files}, "threads": options.threads, "repeat": 1}
        answers[key] = work(request | {"sql": query.sql}).rows
        kept.write_text(json.dumps(answers))
    return answers[key]


def ask(options, folder, sql, memory, limit=None):
    command = [options.plinth, "sql", "--db", folder, "--threads", options.threads, "--format", "csv"]
    done = process.run([*command, "--memory", memory], sql, limit=limit)
    return rows_of_csv(done.stdout), done


def sort(options, folder, copies, most):
    """COPY of an ORDER BY: the process, and what is wrong with what it wrote."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    target, exported = options.folder / "sorted.plinth", options.folder / "sorted.parquet"
    target.unlink(missing_ok=True)
    try:
        _, done = ask(options, folder, f"copy ({SORTED} order by {ORDER}) to '{target}'", options.memory, most)
        wrong = []
        rows, _ = ask(options, options.folder, f"{SUMS} from '{target}'", "4GB")
        if not agree(rows, expected(options, Query("", "", f"{SUMS} from lineitem"), copies)):
            wrong.append("the sorted file holds other rows")
        # Rows go to Parquet in the order of the file only where one thread reads them.
        process.run([options.plinth, "sql", "--threads", 1, "-c", f"copy (select {ORDER} from '{target}') to '{exported}'"])
        last = None
        for batch in pq.ParquetFile(exported).iter_batches(1 << 20):
            prices = batch.column(0)
            steps = pc.less_equal(prices[:-1], prices[1:])
            if pc.all(steps).as_py() is False or (last is not None and prices[0].as_py() < last):
                wrong.append("the sorted file is not in order")
                break
            last = prices[-1].as_py()
        return done, wrong
    finally:
        target.unlink(missing_ok=True)
        exported.unlink(missing_ok=True)


def main():
    parser = argparse.ArgumentParser(prog="python -m bench.memory", description=__doc__.splitlines()[0])
    parser.add_argument("--plinth", type=Path, required=True, help="the program, built with --release")
    parser.add_argument("--source", type=Path, required=True, help="lineitem as Parquet")
    parser.add_argument("--folder", type=Path, default=Path("bench-data/memory"))
    parser.add_argument("--table", type=bytes_of, default=4e9, help="bytes of the table's files [default: 4GB]")
    parser.add_argument("--memory", default="256MB", help="the limit [default: 256MB]")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", type=lambda text: text.split(","), help="some of the queries, such as scan,join")
    options = parser.parse_args()
    options.plinth, options.source = options.plinth.resolve(), options.source.resolve()
    options.folder = options.folder.resolve()
    options.folder.mkdir(parents=True, exist_ok=True)
    folder, copies = table(options)
    idle = process.held(ask(options, folder, "select 1", options.memory)[1].memory)
    most = idle + 1.1 * bytes_of(options.memory)
    say(f"limit {options.memory}, idle {idle / 1e6:,.0f} MB, so at most {most / 1e6:,.0f} MB")
    found, failed = [], False

    def report(name, title, seconds, memory, verdict):
        nonlocal failed
        failed |= verdict not in ("right", "refused, clearly")
        peak = process.held(memory) if memory else 0
        failed |= peak > most
        over = f", {(peak - most) / 1e6:,.0f} MB TOO MUCH" if peak > most else ""
        say(f"{name:11} {title:30} {seconds:7.2f} s {peak / 1e6:6,.0f} MB  {verdict}{over}")
        found.append({"query": name, "seconds": seconds, "memory": memory, "verdict": verdict, "within": peak <= most})

    for query in QUERIES:
        if options.only and query.name not in options.only:
            continue
        try:
            rows, done = ask(options, folder, query.sql, options.memory, most)
        except Failed as error:
            clear = CLEAR.search(str(error)) is not None
            report(query.name, query.title, error.seconds, error.memory, "refused, clearly" if clear else str(error))
            say(f"            {error}")
            continue
        right = query.note == "refused" or agree(rows, expected(options, query, copies))
        report(query.name, query.title, done.seconds, done.memory, "right" if right else "WRONG")
    if not options.only or "sort" in options.only:
        try:
            done, wrong = sort(options, folder, copies, most)
            report("sort", "COPY of an ORDER BY", done.seconds, done.memory, "; ".join(wrong) or "right")
        except Failed as error:
            report("sort", "COPY of an ORDER BY", error.seconds, error.memory, str(error))
    figures = {"limit": options.memory, "idle": idle, "most": most, "queries": found}
    (options.folder / "memory.json").write_text(json.dumps(figures, indent=1) + "\n")
    shutil.rmtree(options.folder / "scratch", ignore_errors=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
