"""What the suites of queries over fixed tables share: import, sizes, then every query."""

from .. import files, imports, timing
from ..data import parquet
from ..engines import Loaded, Tables
from ..process import Failed
from ..timing import say


def run(sources, queries, engines, options, folder):
    """The figures of a suite whose tables are these Parquet files."""
    ours, duckdb = folder / "plinth", folder / "tables.duckdb"
    imported = imports.measure(sources, ours, duckdb, folder / "scratch", options, say)
    tables = Tables(
        plinth={table: [ours / f"{table}.plinth"] for table in sources},
        parquet={table: [source] for table, source in sources.items()},
        duckdb=duckdb,
    )
    own = [engine for engine in engines if isinstance(engine, Loaded)]
    for engine in own:
        load(engine, tables, folder)
    sizes = {"Plinth": files.size(engine_files(tables.plinth)), "DuckDB's own file": files.size([duckdb])}
    sizes |= {e.label: files.size(e.files(tables)) for e in own if e.key in tables.loaded}
    sizes |= parquet.sizes(sources, folder / "sizes", say)
    records = []
    for number, query in enumerate(queries, 1):
        record = timing.measure(engines, tables, query, options)
        times = [f"{key} {of['warm']['median'] * 1e3:.1f}" for key, of in record["engines"].items() if "warm" in of]
        say(f"  {query.name} ({number} of {len(queries)}), ms: {', '.join(times)}")
        records.append(record)
    return {
        "imports": imported,
        "sizes": sizes,
        "source_bytes": files.size(sources.values()),
        "queries": records,
        "disagreements": [text for record in records for text in record["disagreements"]],
        "warm": timing.geometric_means(records, engines),
        "cold": timing.geometric_means(records, engines, "cold"),
        "best": timing.best_peers(records, engines),
    }


def load(engine, tables, folder):
    """Has an engine make tables of its own; one that can't is left without, and says why of each query."""
    try:
        tables.loaded[engine.key] = engine.load(tables, folder)
        say(f"  {engine.label}: tables made")
    except Failed as error:
        say(f"  {engine.label}: no tables: {error}")


def engine_files(tables):
    return [file for of in tables.values() for file in of]
