"""Asks every engine every query: first whether they agree, then how long they take, in turn."""

import math
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


def paired(left, right):
    """Left over right, of runs that took turns: the median of the ratios, and the narrowest pair of them that holds the
    true median with at least 95 %, or the slowest and the fastest where so few can't be as sure."""
    ratios = sorted(a / b for a, b in zip(left, right))
    count = len(ratios)

    def sure(k):
        return 1 - 2 * sum(math.comb(count, i) for i in range(k + 1)) / 2**count

    k = max((k for k in range((count + 1) // 2) if sure(k) >= 0.95), default=0)
    return {
        "ratio": statistics.median(ratios),
        "low": ratios[k],
        "high": ratios[-1 - k],
        "pairs": count,
        "sure": sure(k),
    }


def differences(engines, query, answers):
    """Of each engine that answers otherwise than is expected, or than Plinth, in what: answers are rows and how many
    there are."""
    ours, whose = next(e.key for e in engines if e.ours), "Plinth's"
    wanted = answers.get(ours)
    if query.expected is not None:
        wanted, whose = (query.expected, len(query.expected)), "the expected"
    found = {}
    for engine in engines:
        if engine.key in answers and wanted is not None:
            (left, n), (right, m) = wanted, answers[engine.key]
            if n != m or not alike(query, left, right):
                first = next(((a, b) for a, b in zip(left, right) if a != b), (f"{n} rows", f"{m} rows"))
                found[engine.key] = f"{OTHERWISE}: {first[1]} instead of {whose} {first[0]}"[:400]
    return found


def measure(engines, tables, query, options):
    """A query's record: of each engine its times, or why there are none. The rows of the first round are compared."""
    runs, cold, stayed = ({e.key: [] for e in engines} for _ in range(3))
    memory, answers, errors = {}, {}, {}

    def warm(engine):
        # The first run of a process warms it up and is not counted.
        answer = engine.run(tables, query.text(engine.dialect), options.repeat + 1)
        runs[engine.key] += answer.seconds[1:]
        if held(answer.memory) >= held(memory.get(engine.key, {"resident": 0})):
            memory[engine.key] = answer.memory
        return answer.rows

    for engine in engines:
        try:
            rows = warm(engine)
            count = len(rows)
            if query.check:
                rows = engine.run(tables, query.text(engine.dialect, checked=True)).rows
            answers[engine.key] = rows, count
        except Failed as error:
            errors[engine.key] = str(error)
    errors |= differences(engines, query, answers)
    able = [e for e in engines if e.key not in errors]
    ours = next(e.key for e in engines if e.ours)
    if ours in errors:
        able = []
    for turn in range(1, options.rounds):
        for engine in able if turn % 2 == 0 else reversed(able):
            warm(engine)
    for turn in range(options.cold):
        for engine in able if turn % 2 == 0 else reversed(able):
            stayed[engine.key].append(files.drop(engine.files(tables)))
            cold[engine.key] += engine.run(tables, query.text(engine.dialect)).seconds
    record = {"name": query.name, "title": query.title, "note": query.note, "sql": query.sql, "engines": {}}
    record["digest"] = digest(answers[ours][0]) if ours in answers else None
    record["disagreements"] = [
        f"{query.name}, {key}: {e}" for key, e in errors.items() if key == ours or e.startswith(OTHERWISE)
    ]
    for key, error in errors.items():
        record["engines"][key] = {"error": error}
        say(f"  {query.name}: {key}: {error}")
    for engine in able:
        of = {"warm": summary(runs[engine.key]), "memory": memory[engine.key]}
        if engine.ours and (profile := engine.profile(tables, query.text(engine.dialect))) is not None:
            of["profile"] = profile
        if cold[engine.key]:
            known = [s for s in stayed[engine.key] if s is not None]
            of["cold"] = summary(cold[engine.key]) | {"still_cached": max(known) if known else None}
        record["engines"][engine.key] = of
    return record


def verdict(what, least, most, found, interval=None):
    """What must be shown, what was found, whether that is enough, and whether the interval leaves no doubt of it."""
    wanted = f"at least {least:.2f}" if least else f"at most {most:.2f}"

    def enough(value):
        return value >= least if least else value <= most

    sure = interval is None or len({enough(value) for value in interval}) == 1
    return {"what": what, "wanted": wanted, "found": found, "met": enough(found), "sure": sure, "interval": interval}


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


def best_peers(records, engines):
    """Of each query that Plinth and a peer answered: the peer that was quickest, warm, and how many times longer than
    Plinth it took. None of no such query."""
    ours = next(e.key for e in engines if e.ours)
    found = []
    for record in records:
        times = {key: of["warm"]["median"] for key, of in record["engines"].items() if "warm" in of}
        mine = times.pop(ours, None)
        if mine and times:
            peer = min(times, key=times.get)
            told = {"peer": peer, "seconds": times[peer], "ours": mine, "ratio": times[peer] / mine}
            found.append({"name": record["name"], "title": record["title"], **told})
    if not found:
        return None
    ratios = [of["ratio"] for of in found]
    return {"mean": statistics.geometric_mean(ratios), "lost": sum(r < 1 for r in ratios), "queries": found}
