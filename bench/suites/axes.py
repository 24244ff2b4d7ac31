"""Points along an axis of growth, and the slope through them."""

import math

from .. import timing
from ..timing import say


def times_of(record):
    """A query's medians by engine, and why others have none."""
    engines = record["engines"].items()
    times = {key: of["warm"]["median"] for key, of in engines if "warm" in of}
    return times, {f"{record['name']}, {key}": of["error"] for key, of in engines if "warm" not in of}


def point(x, tables, queries, engines, options, figures):
    """One point of an axis: each query's times."""
    engines = [e for e in engines if tables.duckdb or e.key != "duckdb"]
    records = {q.name: timing.measure(engines, tables, q, options) for q in queries}
    measures, errors = {}, {}
    for query in queries:
        measures[f"{query.title} (s)"], failed = times_of(records[query.name])
        errors |= failed
    mine = {q.name: measures[f"{q.title} (s)"].get("plinth") for q in queries}
    say(f"  {x:,}: " + ", ".join(f"{name} {seconds * 1e3:.1f} ms" for name, seconds in mine.items() if seconds))
    names = {"import": "import (s)", "bytes": "file (bytes)"}
    measures |= {names.get(kind, kind): values for kind, values in figures.items() if values}
    disagreements = [f"at {x:,}: {text}" for r in records.values() for text in r["disagreements"]]
    return {"x": x, "measures": measures, "errors": errors, "disagreements": disagreements}


def slope(pairs):
    """The exponent of the power law that fits points best, or None of fewer than two."""
    pairs = [(math.log(x), math.log(y)) for x, y in pairs if x > 0 and y > 0]
    if len(pairs) < 2:
        return None
    mean_x, mean_y = (sum(p[i] for p in pairs) / len(pairs) for i in (0, 1))
    spread = sum((x - mean_x) ** 2 for x, _ in pairs)
    return sum((x - mean_x) * (y - mean_y) for x, y in pairs) / spread if spread else None


def axis(name, unit, points, note=""):
    slopes = {}
    for measure in dict.fromkeys(m for p in points for m in p["measures"]):
        keys = dict.fromkeys(k for p in points for k in p["measures"].get(measure, {}))
        slopes[measure] = {
            key: slope([(p["x"], p["measures"][measure][key]) for p in points if key in p["measures"].get(measure, {})])
            for key in keys
        }
    return {"axis": name, "unit": unit, "note": note, "points": points, "slopes": slopes}
