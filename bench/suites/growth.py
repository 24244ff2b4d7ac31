"""How figures grow: with rows, columns, distinct values, files, threads and rows of hits, each on an axis of its own.

Along an axis one thing changes and all else stays. A slope is the exponent b of a power law a x^b fitted to the
points: 1 means twice as much takes twice as long, 0 that it costs nothing.
"""

import csv
import io
import json
import re
import shutil
from dataclasses import replace

from .. import files, imports, process
from ..answers import Query
from ..data import events
from ..engines import Tables
from ..timing import say, verdict
from . import growth_hits
from .axes import axis, point

ROWS = [250_000, 500_000, 1_000_000, 2_000_000, 4_000_000]
DISTINCT = [10, 100, 1_000, 10_000, 100_000, 1_000_000]
COLUMNS = [64, 256, 1_024, 2_000]
FILES = [1, 4, 16, 64, 256]
HITS = [1_000_000, 10_000_000]
FIXED_ROWS = 1_000_000
FIXED_DISTINCT = 10_000
QUICK = {
    "rows": [10_000, 40_000],
    "distinct": [10, 10_000],
    "columns": [16, 256],
    "files": [1, 4],
    "hits": [10_000, 40_000],
    "fixed": 20_000,
}
# The peers drawn here: the others are in the suites of queries.
PEERS = ["plinth", "plinth-parquet", "duckdb", "duckdb-parquet"]
# The largest share of a wide file's metadata that a query over two of its columns may read.
METADATA_LIMIT = 0.02


def questions(rows, distinct):
    one = (distinct // 2 * 2654435761) % (1 << 32)
    key = f"/{distinct // 2 % 97:02}/item-{one:010}"
    return [
        Query("scan", "filter and sum", "select count(*) as c, sum(n) as s from events where v < 20"),
        Query(
            "group",
            "group by key",
            "select k, count(*) as c, sum(n) as s from events group by k order by c desc, k limit 10",
        ),
        Query("key", "one key", f"select count(*) as c, sum(n) as s from events where k = '{key}'"),
        Query(
            "range",
            "one row in a thousand by id",
            f"select sum(n) as s from events where id between {rows // 2} and {rows // 2 + rows // 1000}",
        ),
    ]


def prepare(folder, options, source_files):
    """Imports Parquet files as a table `events`; returns its forms and the seconds of the imports."""
    program, threads = options.plinth, options.threads
    ours, theirs = folder / "plinth", folder / "events.duckdb"
    if len(source_files) == 1:
        sources, into = {"events": source_files[0]}, ours
    else:
        sources, into = {f.stem: f for f in source_files}, ours / "events"
    shutil.rmtree(ours, ignore_errors=True)
    seconds, _ = imports.by_plinth(program, sources, into, threads)
    tables = Tables({"events": [into / f"{name}.plinth" for name in sources]}, {"events": list(source_files)})
    figures = {"import": {"plinth": seconds}, "bytes": {"plinth": files.size(tables.plinth["events"])}}
    figures["bytes"]["plinth-parquet"] = files.size(source_files)
    if len(source_files) == 1:
        tables = replace(tables, duckdb=theirs)
        figures["import"]["duckdb"] = imports.by_duckdb(sources, theirs, threads)[0]
        figures["bytes"]["duckdb"] = files.size([theirs])
    return tables, figures


def rows_axis(folder, engines, options, plan):
    points = []
    for rows in plan["rows"]:
        sources = events.events(folder / f"rows-{rows}" / "parquet" / "events.parquet", rows, FIXED_DISTINCT)
        tables, figures = prepare(folder / f"rows-{rows}", options, sources)
        points.append(point(rows, tables, questions(rows, FIXED_DISTINCT), engines, options, figures))
    return axis("rows", "rows", points, f"{FIXED_DISTINCT:,} distinct keys")


def distinct_axis(folder, engines, options, plan):
    points, rows = [], plan["fixed"]
    for distinct in plan["distinct"]:
        sources = events.events(folder / f"distinct-{distinct}" / "parquet" / "events.parquet", rows, distinct)
        tables, figures = prepare(folder / f"distinct-{distinct}", options, sources)
        points.append(point(distinct, tables, questions(rows, distinct), engines, options, figures))
    return axis(
        "distinct values", "distinct keys", points, f"{rows:,} rows; the keys drawn from, not all of which occur"
    )


def files_axis(folder, engines, options, plan):
    points, rows = [], plan["fixed"]
    for count in plan["files"]:
        name = "events" if count > 1 else "events.parquet"
        sources = events.events(folder / f"files-{count}" / "parquet" / name, rows, FIXED_DISTINCT, count)
        tables, figures = prepare(folder / f"files-{count}", options, sources)
        tables = replace(tables, duckdb=None)
        del figures["import"]  # That of many files is the start of as many processes.
        figures["bytes"].pop("duckdb", None)
        points.append(point(count, tables, questions(rows, FIXED_DISTINCT), engines, options, figures))
    return axis("files", "files", points, f"{rows:,} rows in all; a folder of Plinth files is one table")


def threads_axis(folder, engines, options, plan):
    points, rows = [], plan["rows"][-1]
    sources = events.events(folder / "threads" / "parquet" / "events.parquet", rows, FIXED_DISTINCT)
    tables, _ = prepare(folder / "threads", options, sources)
    for threads in options.threads_axis:
        of = [type(e)(e.program, threads) for e in engines]
        seconds, _ = imports.by_plinth(options.plinth, {"events": sources[0]}, folder / "threads" / "again", threads)
        theirs, _ = imports.by_duckdb({"events": sources[0]}, folder / "threads" / "again.duckdb", threads)
        figures = {"import": {"plinth": seconds, "duckdb": theirs}}
        points.append(point(threads, tables, questions(rows, FIXED_DISTINCT), of, options, figures))
    return axis("threads", "threads", points, f"{rows:,} rows; a slope of -1 is perfect")


def columns_axis(folder, engines, options, plan):
    points, rows = [], options.wide_rows if not options.quick else plan["fixed"]
    for columns in plan["columns"]:
        at = folder / f"columns-{columns}"
        source, ours, theirs = at / "parquet" / "wide.parquet", at / "plinth", at / "wide.duckdb"
        events.wide(source, columns, rows)
        seconds, _ = imports.by_plinth(options.plinth, {"wide": source}, ours, options.threads)
        duckdb_seconds, _ = imports.by_duckdb({"wide": source}, theirs, options.threads)
        tables = Tables({"wide": [ours / "wide.plinth"]}, {"wide": [source]}, theirs)
        sql, expected = events.wide_question(columns, rows)
        query = Query("two", "two of the columns", sql)
        answer = engines[0].run(tables, sql).rows
        if answer != [expected]:
            raise process.Failed(f"{sql}: {answer} instead of {expected}")
        sizes = {"plinth": files.size([ours]), "plinth-parquet": files.size([source]), "duckdb": files.size([theirs])}
        touched, whole = metadata(options.plinth, ours, sql)
        figures = {
            "import": {"plinth": seconds, "duckdb": duckdb_seconds},
            "bytes": sizes,
            "metadata read (bytes)": {"plinth": touched, "the file has": whole},
        }
        points.append(point(columns, tables, [query], engines, options, figures))
        share = touched / whole
        points[-1]["metadata_share"] = share
        say(f"  {columns:,} columns: {share:.2%} of the metadata touched")
    of = axis("columns", "columns", points, f"{rows:,} rows; two columns are asked for")
    of["metadata_share"], of["metadata_limit"] = points[-1]["metadata_share"], METADATA_LIMIT
    return of


def metadata(program, folder, sql):
    """Bytes of a wide file's metadata that a query read, and that there are."""
    done = process.run([program, "sql", "--db", folder, "--format", "csv", "-c", f"explain analyze {sql}"])
    plan = "\n".join(row[-1] for row in csv.reader(io.StringIO(done.stdout)))
    whole = json.loads(process.run([program, "inspect", "--json", folder / "wide.plinth"]).stdout).get("metadata_bytes")
    touched = counter(plan, "metadata_bytes")
    if touched is None or not whole:
        raise process.Failed(
            "EXPLAIN ANALYZE has no counter metadata_bytes, or plinth inspect --json no metadata_bytes"
        )
    return touched, whole


def counter(plan, name):
    """The sum of a counter over the scans of a plan; EXPLAIN ANALYZE rounds it to three digits."""
    units = {"": 1, "B": 1, "K": 1e3, "KB": 1024, "MB": 1 << 20, "GB": 1 << 30, "M": 1e6, "G": 1e9}
    found = re.findall(rf"\b{name}=([\d.]+)\s*([KMG]?B?)\b", plan)
    return sum(float(n) * units[u] for n, u in found) if found else None


AXES = {
    "rows": rows_axis,
    "columns": columns_axis,
    "distinct": distinct_axis,
    "files": files_axis,
    "threads": threads_axis,
    "hits": growth_hits.measure,
}


def run(engines, options):
    plan = (
        QUICK
        if options.quick
        else {"rows": ROWS, "distinct": DISTINCT, "columns": COLUMNS, "files": FILES, "hits": HITS, "fixed": FIXED_ROWS}
    )
    plan = plan | {"hits": options.hits_axis or plan["hits"]}
    engines = [e for e in engines if e.key in PEERS]
    options = options.without_cold()
    folder = options.folder / "growth"
    found = []
    for name, measure in AXES.items():
        if options.axes and name not in options.axes:
            continue
        say(f"growth: {name}")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if (of := measure(folder, engines, options, plan)) is not None:
            found.append(of)
    shutil.rmtree(folder, ignore_errors=True)
    notes = [
        "Made events of five columns, tables of ever more columns, or rows of the shape of hits; warm times, medians,"
        f" {options.threads} threads.",
    ]
    bad = [f"{of['axis']} {text}" for of in found for p in of["points"] for text in p["disagreements"]]
    return {
        "suite": "growth",
        "title": "Growth",
        "notes": notes,
        "engines": [{"key": e.key, "label": e.label} for e in engines],
        "axes": found,
        "verdicts": [told for of in found for told in verdicts(of)],
        "disagreements": bad,
    }


def verdicts(of):
    if "questions" in of:
        return growth_hits.verdicts(of)
    if "metadata_share" in of:
        what = f"share of the metadata of {of['points'][-1]['x']:,} columns that two of them need"
        return [verdict(what, None, of["metadata_limit"], of["metadata_share"])]
    return []
