"""Asks every engine every query: first whether they agree, then how long they take, in turn."""

import statistics
import sys

from . import files
from .answers import alike, digest
from .process import Failed, held

OTHERWISE = "answers otherwise"


def say(text):
    print(text, file=sys.stderr, flush=True)


def summary(seconds):
    """The median of some runs and their spread, slowest less fastest over the median."""
    middle = statistics.median(seconds)
    return {"median": middle, "spread": (max(seconds) - min(seconds)) / middle if middle else 0.0, "runs": seconds}


def check(engines, tables, query):
    """Asks each engine once. Returns the digest of Plinth's answer, and why an engine's times must not be printed."""
    answers, errors = {}, {}
    for engine in engines:
        try:
            rows = engine.run(tables, query.text(engine.dialect, checked=True)).rows
            count = len(engine.run(tables, query.text(engine.dialect)).rows) if query.check else len(rows)
            answers[engine.key] = rows, count
        except Failed as error:
            errors[engine.key] = str(error)
    ours = next((e.key for e in engines if e.ours), None)
    if ours in errors:
        return None, errors
    for engine in engines:
        if engine.key in answers and engine.key != ours:
            (left, n), (right, m) = answers[ours], answers[engine.key]
            if n != m or not alike(query, left, right):
                first = next(((a, b) for a, b in zip(left, right) if a != b), (f"{n} rows", f"{m} rows"))
                errors[engine.key] = f"{OTHERWISE}: {first[1]} instead of Plinth's {first[0]}"[:400]
    return digest(answers[ours][0]), errors


def measure(engines, tables, query, options):
    """A query's record: of each engine its times, or why there are none."""
    record = {"name": query.name, "title": query.title, "note": query.note, "sql": query.sql, "engines": {}}
    record["digest"], errors = check(engines, tables, query)
    record["rows_checked_by"] = "keys" if query.keys else "values"
    able = [e for e in engines if e.key not in errors]
    for key, error in errors.items():
        record["engines"][key] = {"error": error}
        say(f"  {query.name}: {key}: {error}")
    record["disagreements"] = [
        f"{query.name}, {key}: {e}" for key, e in errors.items() if key == "plinth" or OTHERWISE in e
    ]
    runs = {e.key: [] for e in able}
    cold = {e.key: [] for e in able}
    stayed = {e.key: [] for e in able}
    memory = {}
    try:
        for turn in range(options.rounds):
            for engine in able if turn % 2 == 0 else reversed(able):
                # The first run of a process warms it up and is not counted.
                answer = engine.run(tables, query.text(engine.dialect), options.repeat + 1)
                runs[engine.key] += answer.seconds[1:]
                if held(answer.memory) >= held(memory.get(engine.key, {"resident": 0})):
                    memory[engine.key] = answer.memory
        for turn in range(options.cold):
            for engine in able if turn % 2 == 0 else reversed(able):
                stayed[engine.key].append(files.drop(engine.files(tables)))
                cold[engine.key] += engine.run(tables, query.text(engine.dialect)).seconds
    except Failed as error:
        raise Failed(f"{query.name}: {error}") from error
    for engine in able:
        of = {"warm": summary(runs[engine.key]), "memory": memory[engine.key]}
        if cold[engine.key]:
            known = [s for s in stayed[engine.key] if s is not None]
            of["cold"] = summary(cold[engine.key]) | {"still_cached": max(known) if known else None}
        record["engines"][engine.key] = of
    return record


def geometric_means(records, engines, which="warm"):
    """How many times longer than Plinth each peer takes, over the queries both answer."""
    ours = next(e.key for e in engines if e.ours)
    means = {}
    for engine in engines:
        pairs = [
            (r["engines"][engine.key][which]["median"], r["engines"][ours][which]["median"])
            for r in records
            if which in r["engines"].get(engine.key, {}) and which in r["engines"].get(ours, {})
        ]
        if pairs and engine.key != ours:
            ratios = [theirs / mine for theirs, mine in pairs]
            means[engine.key] = {
                "mean": statistics.geometric_mean(ratios),
                "queries": len(pairs),
                "best": max(ratios),
                "worst": min(ratios),
                "lost": sum(r < 1 for r in ratios),
            }
    return means
