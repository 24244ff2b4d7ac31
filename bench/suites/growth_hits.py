"""How figures grow with rows of the shape of hits: import, size, and twelve of ClickBench's 43 questions, with DuckDB
beside each, so that what is more than linear for every engine is told from what is so for Plinth alone.

Rows are made in parts (data/hits.py) and kept; what is imported of them is removed before the next point, so that the disk
holds one point at a time.
"""

import shutil

from .. import files, imports, process, timing
from ..data import hits, parquet
from ..engines import Tables
from ..timing import say, verdict
from . import clickbench
from .axes import axis, times_of

MEMORY = "2GB"
PEERS = ["plinth", "duckdb"]
# An exponent above this is more than linear: what comes of noise and of warming up is below.
LINEAR = 1.1
# The smallest Parquet is one of these.
PARQUET = ["Parquet zstd, pyarrow", "Parquet zstd, DuckDB"]
# Of each kind of work one or two, and why.
ASKED = {
    "q02": "a filter over numbers: the bare scan",
    "q05": "distinct integers, whose number grows with the rows",
    "q10": "few groups, several aggregates each, one of them distinct",
    "q13": "groups by text behind a filter",
    "q17": "groups by two keys, nearly as many as sessions",
    "q20": "a few rows of all: what zone maps and filters leave",
    "q21": "LIKE over long text",
    "q24": "whole rows behind LIKE, first by time: columns fetched late",
    "q29": "a regular expression of each row",
    "q33": "as many groups as rows: what no memory holds at last",
    "q34": "groups by long text, whose number grows with the rows",
    "q37": "several filters, one of them a range of days",
}


def tables_of(sources, at, options):
    """Imports the rows, once by each way; the tables, and the figures of the imports."""
    program, threads, of = options.plinth, options.threads, {"hits": sources}
    seconds, memory = {}, {}
    seconds["plinth-limited"], memory["plinth-limited"] = imports.by_plinth(
        program, of, at / "limited", threads, MEMORY
    )
    shutil.rmtree(at / "limited")
    seconds["plinth"], memory["plinth"] = imports.by_plinth(program, of, at / "plinth", threads)
    seconds["duckdb"], memory["duckdb"] = imports.by_duckdb(of, at / "hits.duckdb", threads)
    held = {key: process.held(peak) for key, peak in memory.items()}
    return Tables({"hits": [at / "plinth" / "hits.plinth"]}, {"hits": sources}, at / "hits.duckdb"), seconds, held


def point(rows, folder, engines, options):
    """One number of rows: imports, sizes, questions."""
    kept = options.folder / f"hits-{rows}-{options.seed}-parts"
    sources = hits.make_parts(options.hits_sample, kept, rows, options.seed)
    at = folder / f"hits-{rows}"
    sizes = parquet.sizes({"hits": sources}, at / "sizes", say, PARQUET)
    tables, seconds, held = tables_of(sources, at, options)
    sizes |= {"plinth": files.size(tables.plinth["hits"]), "duckdb": files.size([tables.duckdb])}
    told = ", ".join(f"{key} {rows / s:,.0f} rows/s, {held[key] / 1e6:,.0f} MB" for key, s in seconds.items())
    say(f"  {rows:,}: import: {told}")
    measures = {
        "import (s)": seconds,
        "import (rows/s)": {key: rows / s for key, s in seconds.items()},
        "peak memory of import (bytes)": held,
        "size (bytes)": sizes,
    }
    errors, disagreements, questions = {}, [], []
    for query in clickbench.queries(rows, True, options.only):
        if query.name not in ASKED:
            continue
        record = timing.measure(engines, tables, query, options)
        times, failed = times_of(record)
        say(f"  {rows:,}: {query.name}, ms: " + ", ".join(f"{key} {s * 1e3:.1f}" for key, s in times.items()))
        title = f"{query.name} {query.title}"
        questions.append({"name": query.name, "title": title, "why": ASKED[query.name]})
        measures[f"{title} (s)"] = times
        peaks = {k: process.held(of["memory"]) for k, of in record["engines"].items() if "memory" in of}
        measures[f"{title}, peak memory (bytes)"] = peaks
        errors |= failed
        disagreements += [f"at {rows:,}: {text}" for text in record["disagreements"]]
    shutil.rmtree(at)
    found = {"x": rows, "measures": measures, "errors": errors, "disagreements": disagreements}
    return found, questions


def measure(folder, engines, options, plan):
    """The axis, or None without rows to make others of."""
    if options.hits_sample is None:
        say("growth: hits: skipped: --hits-sample was not given")
        return None
    engines = [e for e in engines if e.key in PEERS]
    every = [point(rows, folder, engines, options) for rows in plan["hits"]]
    idle = process.held(imports.idle(options.plinth, folder / "idle", options.threads))
    return told_of([p for p, _ in every], every[-1][1], f"seed {options.seed}; imports once each", idle)


def told_of(points, questions, note, idle):
    """The axis of points, with each question's exponents and the engines it is more than linear for."""
    of = axis("rows of hits", "rows", points, note)
    for question in questions:
        question["slopes"] = slopes = of["slopes"][f"{question['title']} (s)"]
        question["beyond"] = [key for key, slope in slopes.items() if slope is not None and slope > LINEAR]
        told = ", ".join(f"{key} {slope:.2f}" for key, slope in slopes.items() if slope is not None)
        say(f"  {question['name']}, exponent in the rows: {told or 'one point has none'}")
    return of | {"questions": questions, "linear": LINEAR, "memory": MEMORY, "idle": idle}


def verdicts(of):
    """What must hold of the most rows, and of the slopes where there are several points."""
    last, slopes = of["points"][-1], of["slopes"]
    measures, rows = last["measures"], f"{last['x']:,} rows of hits"
    held = measures["peak memory of import (bytes)"]["plinth-limited"]
    sizes = measures["size (bytes)"]
    told = [
        verdict(
            f"{rows}, imported with --memory {of['memory']}: memory over 1.1 times that and an idle process",
            None,
            1,
            held / (1.1 * imports.bytes_of(of["memory"]) + of["idle"]),
        ),
        verdict(f"{rows}: size over the smallest Parquet", None, 1, sizes["plinth"] / min(sizes[p] for p in PARQUET)),
    ]
    if (slope := slopes["import (s)"]["plinth"]) is not None:
        told.append(verdict("exponent of import in the rows", None, of["linear"], slope))
        alone = [q["name"] for q in of["questions"] if q["beyond"] == ["plinth"]]
        named = f" ({', '.join(alone)})" if alone else ""
        what = f"questions with an exponent above {of['linear']} for Plinth and not for DuckDB{named}"
        told.append(verdict(what, None, 0, len(alone)))
    return told
