"""How the column's figures grow: with rows, and with distinct words."""

import dataclasses
import shutil

from ...data.floor import floor
from ...timing import say
from ..axes import axis, point as measured
from . import questions
from .column import make

ROWS = [1_000_000, 2_000_000, 5_000_000, 10_000_000]
DISTINCT = [10, 1_000, 70_000, 976_000]
FIXED = {"rows": 10_000_000, "distinct": 70_000}
QUICK = {"rows": [20_000, 80_000], "distinct": [10, 5_000], "fixed": {"rows": 50_000, "distinct": 2_000}}
ASKED = ["equal-usual", "prefix-3", "contains", "group"]
PEERS = ["plinth", "plinth-parquet", "duckdb"]


def point(x, words, engines, options):
    column = make(words, options)
    sizes = column.bytes() | {"floor": floor(column.census)["bytes"], "text": column.census.text_bytes}
    figures = {"import": column.seconds, "bytes": sizes}
    found = measured(x, column.tables, questions.queries(column.census, ASKED), engines, options, figures)
    shutil.rmtree(column.folder)
    return found


def measure(words, engines, options):
    """The axes around a column of the same skew and seed."""
    engines = [e for e in engines if e.key in PEERS]
    # Of a folder of their own, which may be removed.
    options = dataclasses.replace(options, folder=options.folder / "words-growth", cold=0)
    rows, distinct, fixed = (
        (QUICK[n] for n in ("rows", "distinct", "fixed")) if options.quick else (ROWS, DISTINCT, FIXED)
    )
    found = []
    for name, unit, values, note in (
        ("rows", "rows", rows, f"{fixed['distinct']:,} distinct words"),
        ("distinct", "distinct words", distinct, f"{fixed['rows']:,} rows"),
    ):
        if options.axes and name not in options.axes:
            continue
        say(f"dictionary: {unit}")
        points = [point(n, dataclasses.replace(words, **fixed | {name: n}), engines, options) for n in values]
        found.append(axis(unit, unit, points, note))
    shutil.rmtree(options.folder, ignore_errors=True)
    bad = [f"{of['axis']} {text}" for of in found for p in of["points"] for text in p["disagreements"]]
    return {"axes": found, "disagreements": bad}
