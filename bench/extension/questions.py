"""The 22 of TPC-H or the 43 of ClickBench in DuckDB: Plinth files beside Parquet and tables of its own, in turn, answers compared."""

import statistics

from .. import answers
from ..timing import paired, say
from .inside import ask, connect, tables


def text(rows):
    return [[answers.cell(value) for value in row] for row in rows]


def run(given, name, paths, queries):
    """Of each query its medians, and how many times faster DuckDB is over Plinth files than over the others."""
    base = connect(given.extension, given.threads)
    kinds = {kind: {table: files[kind] for table, files in paths.items()} for kind in ("plinth", "parquet")}
    tables(base, kinds | {"own": kinds["parquet"]})
    found = []
    for query in queries:
        runs = {kind: [] for kind in ("plinth", "parquet", "own")}
        rows = {}
        for turn in range(given.rounds + 1):
            for kind in runs if turn % 2 else reversed(runs):
                rows[kind], seconds, _ = ask(base, kind, query.text("duckdb"))
                # The first warms up.
                if turn:
                    runs[kind].append(seconds)
        if query.check:
            rows = {kind: ask(base, kind, query.text("duckdb", True))[0] for kind in runs}
        others = [kind for kind in ("parquet", "own") if not answers.alike(query, text(rows["plinth"]), text(rows[kind]))]
        medians = {kind: statistics.median(of) for kind, of in runs.items()}
        ratios = {kind: paired(runs[kind], runs["plinth"]) for kind in ("parquet", "own")}
        found.append({"name": query.name, "title": query.title, "seconds": medians, "ratios": ratios, "differ": others})
        told = ", ".join(f"{kind} {seconds * 1e3:.0f}" for kind, seconds in medians.items())
        say(f"  {query.name}: {told} ms{'; OTHER ROWS THAN ' + ', '.join(others) if others else ''}")
    return {"name": name, "queries": found, "means": {kind: mean(found, kind) for kind in ("parquet", "own")}}


def mean(found, kind):
    return statistics.geometric_mean(query["ratios"][kind]["ratio"] for query in found)
