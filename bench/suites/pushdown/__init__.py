"""Filters pushed into the scan, against none: every question by each way to scan, on Plinth's files and on Parquet.

The questions are ClickBench's 43 (or over rows of their shape), TPC-H's 22, and predicates of every selectivity over one table.
"""

import statistics

from ... import imports, timing
from ...data import tpch
from ...engines import DuckDBParquet, Plinth, SameProgram, Tables
from ...timing import paired, say, verdict
from .. import clickbench
from .. import tpch as tpch_suite
from . import predicates

PARTS = ["clickbench", "tpch", "predicates"]
# The questions a pushed filter is known for: ClickBench's 20 to 24 and 27, counted from nought.
NOTED = ["q21", "q22", "q23", "q24", "q25", "q28"]
WIDE = "q24"


class AfterDecode(Plinth):
    key, label, ours = "plinth-after-decode", "Plinth, every column decoded before it is filtered", False
    before = ("SET plinth.pushdown = 'after-decode'",)


class FilterFirst(Plinth):
    key, label, ours = "plinth-filter-first", "Plinth, filters first", False
    before = ("SET plinth.pushdown = 'filter-first'",)


class OnParquet(SameProgram):
    key, label = "plinth-scans-parquet", "Plinth, Parquet"
    before = ()


class Off(SameProgram):
    key, label = "datafusion-off", "DataFusion 55, Parquet, pushdown off"
    before = (*SameProgram.before, "SET datafusion.execution.parquet.pushdown_filters = false")


def on(name, cache):
    """DataFusion with its filters pushed down, and so many bytes for what they decoded."""

    class On(SameProgram):
        key, label = f"datafusion-on-{name}", f"DataFusion 55, Parquet, pushdown on, cache {name}"
        before = (
            *SameProgram.before,
            "SET datafusion.execution.parquet.pushdown_filters = true",
            f"SET datafusion.execution.parquet.max_predicate_cache_size = {cache}",
        )

    return On


ENGINES = [
    Plinth,
    AfterDecode,
    FilterFirst,
    OnParquet,
    Off,
    on("0", 0),
    on("100MB", 100_000_000),
    on("unlimited", 1 << 50),
    DuckDBParquet,
]


def run(_, options):
    engines = [kind(options.plinth, options.threads) for kind in ENGINES]
    engines = [engine for engine in engines if engine.missing() is None]
    parts = [part for part in PARTS if not options.parts or part in options.parts]
    records, notes = [], []
    for part in parts:
        say(f"pushdown: {part}")
        tables, queries, note = DATA[part](options)
        if tables is None:
            say(f"  skipped: {note}")
            notes.append(f"{part}: skipped: {note}")
            continue
        for number, query in enumerate(queries, 1):
            record = timing.measure(engines, tables, query, options.without_cold()) | {"part": part}
            times = [f"{key} {of['warm']['median'] * 1e3:.1f}" for key, of in record["engines"].items() if "warm" in of]
            say(f"  {query.name} ({number} of {len(queries)}), ms: {', '.join(times)}")
            records.append(record)
    return {
        "suite": "pushdown",
        "title": "Filters pushed into the scan",
        "notes": notes,
        "arms": [{"key": e.key, "label": e.label} for e in engines],
        "queries": records,
        "disagreements": [text for record in records for text in record["disagreements"]],
        "verdicts": verdicts(records),
    }


def verdicts(records):
    told = []

    def ratios(over, under, chosen):
        """Of each record the ratio of two engines' times, run by run."""
        found = []
        for record in chosen:
            of = record["engines"]
            if all("warm" in of.get(key, {}) for key in (over, under)):
                pair = paired(of[over]["warm"]["runs"], of[under]["warm"]["runs"])
                found.append((f"{record['part']} {record['name']}", pair))
        return found

    def never_slower(what, over, under):
        found = ratios(over, under, records)
        if found:
            name, pair = max(found, key=lambda one: one[1]["ratio"])
            lost = [name for name, pair in found if pair["low"] > 1.03]
            text = f"{what}, the worst of {len(found)} ({name}; surely above: {', '.join(lost) or 'none'})"
            told.append(verdict(text, None, 1.03, pair["ratio"], [pair["low"], pair["high"]]))

    def mean(what, least, over, under, chosen):
        pairs = [
            (min(r["engines"][key]["warm"]["median"] for key in over if "warm" in r["engines"].get(key, {})), mine)
            for r in chosen
            if (mine := r["engines"].get(under, {}).get("warm", {}).get("median"))
            and any("warm" in r["engines"].get(key, {}) for key in over)
        ]
        if pairs:
            told.append(verdict(what, least, None, statistics.geometric_mean(theirs / mine for theirs, mine in pairs)))

    switched_on = [kind.key for kind in ENGINES if kind.key.startswith("datafusion-on")]
    hits_43 = [r for r in records if r["part"] == "clickbench"]
    noted = [r for r in hits_43 if r["name"] in NOTED]
    wide = [r for r in hits_43 if r["name"] == WIDE]
    never_slower("Parquet: time over DataFusion's without pushdown", "plinth-scans-parquet", "datafusion-off")
    mean("Parquet: the better of off and on over ours, six questions", 1.3, ["datafusion-off", *switched_on],
         "plinth-scans-parquet", noted)
    mean("Parquet: off over ours, SELECT * ... LIKE ... LIMIT 10", 6, ["datafusion-off"], "plinth-scans-parquet", wide)
    mean("Parquet: the best of on and DuckDB over ours, the same", 1.3, [*switched_on, "duckdb-parquet"],
         "plinth-scans-parquet", wide)
    never_slower("Plinth: time over that of decoding before filtering", "plinth", "plinth-after-decode")
    mean("Plinth: DataFusion over Parquet over ours, the 43", 2, ["datafusion-off"], "plinth", hits_43)
    return told


def imported(sources, folder, options):
    """The tables, imported if they are not there."""
    ours = folder / "plinth"
    if any(not (ours / f"{table}.plinth").exists() for table in sources):
        imports.by_plinth(options.plinth, sources, ours, options.threads)
    return Tables(
        plinth={table: [ours / f"{table}.plinth"] for table in sources},
        parquet={table: [source] for table, source in sources.items()},
    )


def of_clickbench(options):
    found = clickbench.prepare(options)
    if found is None:
        return None, [], clickbench.NONE_GIVEN
    source, rows, made = found
    return imported({"hits": source}, source.parent.parent, options), clickbench.queries(rows, made, options.only), ""


def of_tpch(options):
    scale = 0.01 if options.quick else options.scale
    folder = options.folder / f"tpch-{scale:g}"
    return imported(tpch.make(folder, scale), folder, options), tpch_suite.queries(scale, options.only), ""


def of_predicates(options):
    rows = 50_000 if options.quick else predicates.ROWS
    folder = options.folder / f"predicates-{rows}-{options.seed}"
    source = folder / "parquet" / "t.parquet"
    if not source.exists():
        predicates.make(source, rows, options.seed)
    return imported({"t": source}, folder, options), predicates.queries(rows, options.only), ""


DATA = {"clickbench": of_clickbench, "tpch": of_tpch, "predicates": of_predicates}
