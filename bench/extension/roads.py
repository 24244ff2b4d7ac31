"""What DuckDB's own tables gain from what an extension in C can't tell or be told, and what Plinth files lose by it.

The first is found by turning off the parts of DuckDB's optimizer that make use of it, in turn with the whole, over its own tables; the
second by the same question of files in which it costs something and in which it does not.
"""

import statistics

from ..timing import paired, say
from .inside import ask, connect, tables

# Parts of the optimizer (duckdb_optimizers()) by what they need from a scan.
ROADS = [
    ("statistics of columns", "statistics_propagation,compressed_materialization"),
    ("keys of joins while the query runs", "join_filter_pushdown"),
    ("rows by number, later", "late_materialization"),
    ("all three", "statistics_propagation,compressed_materialization,join_filter_pushdown,late_materialization"),
]


def off(given, name, paths, queries):
    """Of each road how many times as long the questions take without it, in the geometric mean and at the worst."""
    base = connect(given.extension, given.threads)
    tables(base, {"own": {table: files["parquet"] for table, files in paths.items()}})
    found = []
    for road, parts in ROADS:
        ratios = []
        for query in queries:
            runs = {"": [], parts: []}
            rows = {}
            for turn in range(given.rounds + 1):
                for disabled in runs if turn % 2 else reversed(runs):
                    base.execute(f"SET disabled_optimizers = '{disabled}'")
                    rows[disabled], seconds, _ = ask(base, "own", query.text("duckdb", True) if query.check and not turn else query.text("duckdb"))
                    if turn:
                        runs[disabled].append(seconds)
            ratios.append((paired(runs[parts], runs[""])["ratio"], query.name))
        worst = max(ratios)
        found.append({"set": name, "road": road, "mean": statistics.geometric_mean(ratio for ratio, _ in ratios), "worst": worst[0], "of": worst[1]})
        say(f"  {name}, without {road}: {found[-1]['mean']:.2f}x, {worst[1]} {worst[0]:.2f}x")
    return found


def files(given, lineitem, folder):
    """Seconds of pairs of questions: with what has no road, and beside it without."""
    base = connect(given.extension, given.threads)
    folder.mkdir(parents=True, exist_ok=True)
    wide = folder / "struct.plinth"
    if not wide.exists():
        base.execute(f"COPY (SELECT row_number() OVER () AS n, l AS s FROM '{lineitem['plinth']}' l) TO '{wide}'")
    asked = [
        ("a field of a struct of 16", f"SELECT sum(s.l_extendedprice) FROM '{wide}'", f"SELECT sum(l_extendedprice) FROM '{lineitem['plinth']}'"),
        ("no column", f"SELECT count(*) FROM '{lineitem['plinth']}'", f"SELECT count(*) FROM '{lineitem['parquet']}'"),
        ("the first rows of an order, all columns", f"SELECT * FROM '{lineitem['plinth']}' ORDER BY l_extendedprice DESC, l_orderkey, l_linenumber LIMIT 10", f"SELECT * FROM '{lineitem['parquet']}' ORDER BY l_extendedprice DESC, l_orderkey, l_linenumber LIMIT 10"),
    ]
    found = []
    for title, sql, beside in asked:
        runs, rows = {sql: [], beside: []}, {}
        for turn in range(given.rounds + 1):
            for one in runs:
                rows[one], seconds, _ = ask(base, "main", one)
                if turn:
                    runs[one].append(seconds)
        if rows[sql] != rows[beside]:
            raise SystemExit(f"{title}: {rows[sql]}, beside {rows[beside]}")
        found.append({"title": title, "seconds": statistics.median(runs[sql]), "beside": statistics.median(runs[beside])})
        say(f"  {title}: {found[-1]['seconds'] * 1e3:.1f} ms beside {found[-1]['beside'] * 1e3:.1f}")
    return found
