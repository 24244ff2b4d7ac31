"""TPC-H: the 22 queries with the validation parameters of the specification."""

from pathlib import Path

from ..answers import Query
from ..data import tpch
from ..timing import say
from . import tables

# ClickHouse reckons with literals in binary fractions, and its sum of no rows is 0.
BY_CLICKHOUSE = {
    "q06": [("0.06 - 0.01", "0.05"), ("0.06 + 0.01", "0.07")],
    "q17": [("sum(", "sumOrNull(")],
}
QUERIES = Path(__file__).parent.parent / "tpch"


def queries(scale, only):
    found = []
    for path in sorted(QUERIES.glob("q*.sql")):
        if only and path.stem not in only:
            continue
        text = path.read_text()
        title = text.partition("\n")[0].removeprefix("-- ")
        note = ""
        if path.stem == "q11" and scale != 1:
            # The fraction of query 11 belongs to the scale.
            text = text.replace("0.0001\n", f"{0.0001 / scale:.10f}\n")
            note = f"0.0001 became {0.0001 / scale:.10f}, as the scale demands."
        by_clickhouse = text
        for ours, theirs in BY_CLICKHOUSE.get(path.stem, []):
            by_clickhouse = by_clickhouse.replace(ours, theirs)
        found.append(Query(path.stem, title, text, {"clickhouse": by_clickhouse}, note=note))
    return found


def run(engines, options):
    scale = 0.01 if options.quick else options.scale
    folder = options.folder / f"tpch-{scale:g}"
    say(f"tpch: scale {scale:g}")
    sources = tpch.make(folder, scale)
    figures = tables.run(sources, queries(scale, options.only), engines, options, folder)
    notes = [
        (
            f"TPC-H at scale factor {scale:g}, made by tpchgen-cli and written by pyarrow as Parquet with zstd level 3,"
            " row groups of 2^20 rows; every engine imports or reads these files."
        ),
        "Not a TPC result: one stream of queries, no refresh functions.",
    ]
    return {"suite": "tpch", "title": f"TPC-H {scale:g}", "notes": notes, **figures}
