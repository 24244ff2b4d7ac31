"""Sorting at import within little memory: `plinth import --sort-by` beside DuckDB's ORDER BY into a table.

Both files must hold the same rows, and Plinth's in the order asked for, before a time is printed.
"""

from .. import imports, process
from ..answers import agree
from ..data import events
from ..engines import DuckDB, Plinth, Tables
from ..timing import say, summary

# The rows come in the order of id; by key and id they are shuffled throughout.
ORDER = ["k", "id"]
MEMORY = "512MB"
WHOLE = """select count(*) as c, sum(id) as i, sum(n) as n, sum(v) as v, min(k) as k, max(k) as l,
    count(distinct k) as d, min("at") as a, max("at") as b, sum(id * n) as x from events"""
# Rows as they lie in the file.
AT_FIRST = "select k, id, n from events limit 1000"


def run(engines, options):
    rows = 200_000 if options.quick else options.sort_rows
    distinct = max(rows // 10, 1)
    folder = options.folder / f"sort-{rows}"
    say(f"sort: {rows:,} rows")
    source = folder / "parquet" / "events.parquet"
    if not source.exists():
        partial = source.with_suffix(".partial")
        events.events(partial, rows, distinct)
        partial.rename(source)
    program, threads, sources = options.plinth, options.threads, {"events": source}
    ours, theirs = folder / "plinth", folder / "sorted.duckdb"
    more = ["--sort-by", ",".join(ORDER)]
    ways = {
        f"Plinth, --sort-by, --memory {MEMORY}": lambda: imports.by_plinth(
            program, sources, ours, threads, MEMORY, more
        ),
        f"DuckDB, ORDER BY, memory_limit {MEMORY}": lambda: imports.by_duckdb(
            sources, theirs, threads, MEMORY, "order by " + ", ".join(ORDER)
        ),
    }
    runs, memory, errors = {way: [] for way in ways}, {}, {}
    for turn in range(options.import_rounds):
        for way in ways if turn % 2 == 0 else reversed(ways):
            try:
                seconds, peak = ways[way]()
            except process.Failed as error:
                errors[way] = str(error)
                say(f"  {way}: {error}")
                continue
            runs[way].append(seconds)
            if way not in memory or process.held(peak) > process.held(memory[way]):
                memory[way] = peak
            say(f"  {way}: {seconds:.2f} s, {process.held(peak) / 1e6:,.0f} MB")
    wrong = (
        [] if errors else differences(program, threads, Tables({"events": [ours / "events.plinth"]}, sources, theirs))
    )
    found = [{"way": w, **summary(runs[w]), "memory": memory[w]} for w in ways if w not in errors and not wrong]
    found += [{"way": w, "error": errors.get(w, "the rows differ")} for w in ways if w in errors or wrong]
    notes = [
        (
            f"{rows:,} events with {distinct:,} keys, in the order of id, sorted by key and id;"
            f" {source.stat().st_size:,} bytes of Parquet."
        ),
        "Both hold the same rows, and in the same order, before a time is printed.",
    ]
    idle = imports.idle(program, folder / "scratch", threads)
    figures = {"imports": {"ways": found, "idle": idle, "limit": MEMORY}, "disagreements": wrong}
    return {"suite": "sort", "title": f"Sorting {rows:,} rows in {MEMORY}", "notes": notes, **figures}


def differences(program, threads, tables):
    """How the sorted tables differ, in words."""
    plinth, duckdb = Plinth(program, 1), DuckDB(program, threads)
    found = []
    if not agree(plinth.run(tables, WHOLE).rows, duckdb.run(tables, WHOLE).rows):
        found.append("the tables hold different rows")
    if plinth.run(tables, AT_FIRST).rows != duckdb.run(tables, AT_FIRST).rows:
        found.append("the first 1,000 rows are not the same or in another order")
    return found
