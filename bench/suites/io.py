"""How bytes get from storage into memory: each step of the way on its own, beside what fio says is possible.

Ways of reading run in turn, a process each, and are compared round by round: a ratio is the median of the rounds'
ratios. Every way must give the same digest of all values before any has a time.
"""

import copy
import shutil
import statistics
from dataclasses import dataclass

from .. import files, fio, scan, slower, timing
from ..data import pieces
from ..process import Failed, held
from ..scan import Way
from ..timing import paired, say, summary
from . import tpch

REQUEST = 256 << 10
# Bytes a second of the device that is slowed down.
SLOW = 200_000_000
RESIDENT, COLD, SLOWED = "resident", "cold", "slow"
COLUMNS = [1, 4, None]
FULL = {"files": 64, "many": 2000, "points": [250, 500, 1000, 2000], "times": 2, "pairs": 25, "probe": (12, "256MiB")}
QUICK = {"files": 4, "many": 20, "points": [5, 10, 20], "times": 1, "pairs": 2, "probe": (6, "32MiB")}


def ways(condition):
    """The steps from one way to the next. Resident data is read from the page cache, unless a way goes past it."""
    pread = "cached" if condition == RESIDENT else "direct"
    found = [
        Way("swapped", "big-endian, fresh, pread", pread, "reuse,huge-pages", swap=True),
        Way("fresh", "fresh, pread", pread, "reuse,huge-pages"),
        Way("reused", "reused, pread", pread, "huge-pages"),
        Way("huge", "reused, huge, pread", pread),
        Way("ring", "reused, huge, ring", "uring", "registration"),
        Way("small", "registered, ring", "uring", "huge-pages"),
        Way("registered", "registered, huge, ring", "uring"),
        Way("auto", "auto", "auto"),
    ]
    if condition != RESIDENT:
        found.insert(-1, Way("cached", "through the page cache", "cached"))
    return found


@dataclass(frozen=True)
class Step:
    """What one thing brings: a way without it over the way with it."""

    title: str
    without: str
    have: str


STEPS = [
    Step("little-endian values", "swapped", "fresh"),
    Step("buffers used again", "fresh", "reused"),
    Step("huge pages, pread", "reused", "huge"),
    Step("ring for pread", "huge", "ring"),
    Step("registered buffers", "ring", "registered"),
    Step("huge pages, ring", "small", "registered"),
    Step("ring for the page cache", "cached", "registered"),
    Step("auto for fresh pread", "fresh", "auto"),
    Step("all, by ring", "fresh", "registered"),
]


def ask(program, way, paths, *more, condition=RESIDENT, **given):
    """One run of a way, after the files were put into the page cache or out of it; and what share stayed."""
    # Each time, for what is not used for a while may be taken from there.
    stayed = files.warm(paths) if condition == RESIDENT else files.drop(paths)
    return scan.run(program, paths, way, *more, **given), stayed


def checked(program, paths, every, columns, within=None):
    """The ways whose digest of all values is that of the first, and in words what is wrong with the others."""
    digests, errors = {}, {}
    for way in every:
        try:
            digests[way.key] = scan.run(program, paths, way, columns, touch=True, within=within).digest
        except Failed as error:
            errors[way.key] = str(error)
    first = next(iter(digests.values()), None)
    errors |= {key: "other values than the rest" for key, digest in digests.items() if digest != first}
    return [way for way in every if way.key not in errors], errors


def compare(program, data, paths, columns, condition, rounds, within=None):
    """The ways over some files: of each its figures, and what each step brings."""
    every = [way for way in ways(condition) if columns or not way.swap]
    able, errors = checked(program, paths, every, columns, within)
    runs, stayed = {way.key: [] for way in able}, []
    for turn in range(rounds):
        for way in able if turn % 2 == 0 else reversed(able):
            run, left = ask(program, way, paths, columns, condition=condition, within=within)
            runs[way.key].append(run)
            stayed += [left] if left is not None else []
    rows = {run.digest for of in runs.values() for run in of}
    if len(rows) > 1:
        raise Failed(f"the rows that were read are not the same each time: {sorted(rows)}")
    found = {"data": data, "columns": columns, "condition": condition, "still_cached": max(stayed, default=None)}
    found["not_there"] = max(run.waited for of in runs.values() for run in of)
    found["ways"] = [{"key": w.key, "title": w.title, **figures(runs[w.key])} for w in able]
    found["ways"] += [{"key": w.key, "title": w.title, "error": errors[w.key]} for w in every if w.key in errors]
    found["steps"] = steps(runs)
    named = ", ".join(f"{w['key']} {w['rate'] / 1e6:,.0f}" for w in found["ways"] if "rate" in w)
    say(f"  {data}, {columns or 'all'} columns, {condition}, MB/s: {named}")
    return found


def figures(runs):
    """Of the runs of one way."""
    last = runs[-1]
    return {
        "time": summary([run.seconds for run in runs]),
        "rate": statistics.median(run.bytes / run.seconds for run in runs),
        "processor": statistics.median(run.cpu / run.bytes for run in runs),
        "bytes": last.bytes,
        "fetched": statistics.median(run.fetched / run.bytes for run in runs),
        "memory": max(held(run.memory) for run in runs),
        **last.counters,
    }


def steps(runs):
    found = []
    for step in STEPS:
        if step.without in runs and step.have in runs:
            pair = runs[step.without], runs[step.have]
            time = paired(*([run.seconds for run in of] for of in pair))
            processor = paired(*([run.cpu for run in of] for of in pair))
            found.append(
                {"step": step.title, "without": step.without, "with": step.have, "time": time, "cpu": processor}
            )
    return found


def scans(program, data, options, plan):
    rounds = options.rounds + 2
    found = []
    for name, paths in (("plain", data.plain), ("encoded", data.encoded)):
        for columns in COLUMNS:
            for condition in (RESIDENT, COLD):
                found.append(compare(program, name, paths, columns, condition, rounds))
    return {"scans": found}


def slow(program, data, options, plan):
    rate = SLOW // 20 if options.quick else SLOW
    with slower.device(options.folder, rate) as (within, why):
        if within is None:
            say(f"  skipped: the slower device: {why}")
            return {"slow": [], "skipped": {"slow": why}}
        several = [("plain", data.plain, 4), ("encoded", data.encoded, None)]
        return {"slow": [compare(program, *of, SLOWED, options.rounds, within) for of in several], "slow_rate": rate}


def device(program, data, options, plan):
    """Ours beside fio, on the same file in the same rounds."""
    why = fio.missing()
    if why:
        say(f"  skipped: fio as the limit: {why}")
    depths = [] if why else [8, 16, 32]
    ours = {way.key: way for way in ways(COLD) if way.key in ("fresh", "registered")}
    able, errors = checked(program, [data.numbers], list(ours.values()), None)
    if errors:
        raise Failed(f"{data.numbers}: {errors}")
    rates, processor, buffers = {}, {}, {}

    def one(name):
        if name in ours:
            run, _ = ask(program, ours[name], [data.numbers], condition=COLD)
            rate, cost = run.bytes / run.seconds, run.cpu / run.bytes
        else:
            files.drop([data.numbers])
            buffers[name] = fio.memory(REQUEST, int(name.split()[-1]))
            rate, cost = fio.sequential(data.numbers, REQUEST, int(name.split()[-1]))
        rates.setdefault(name, []).append(rate)
        processor.setdefault(name, []).append(cost)

    names = [*ours, *(f"fio, depth {depth}" for depth in depths)]
    for turn in range(options.rounds * 2 + 1):
        for name in names if turn % 2 == 0 else reversed(names):
            one(name)
    small = []
    for _ in range(0 if why else options.rounds + 2):
        pair = fio.random(options.plinth, options.folder / "probe", *plan["probe"])
        small += [pair] if pair else []
    if depths and not small:
        say("  no row of 4 KiB by both engines: the probe had no time for it")
    shutil.rmtree(options.folder / "probe", ignore_errors=True)
    found = {
        "rates": {name: summary(of) for name, of in rates.items()},
        "processor": {name: summary(of) for name, of in processor.items()},
        "fio_buffers": sorted(set(buffers.values())),
        "saved": paired(processor["registered"], processor["fresh"]),
    }
    if depths:
        best = max(names[2:], key=lambda name: statistics.median(rates[name]))
        found |= {"best": best, "sequential": paired(rates["registered"], rates[best])}
    if small:
        found["random"] = paired(*zip(*small))
        found["requests"] = {"ours": summary([a for a, _ in small]), "fio": summary([b for _, b in small])}
    named = ", ".join(f"{name} {of['median'] / 1e6:,.0f}" for name, of in found["rates"].items())
    say(f"  one file of numbers, MB/s: {named}")
    return {"device": found} | ({"skipped": {"device": why}} if why else {})


def many(program, data, options, plan):
    """Memory of scanning ever more files, and of the same rows in one."""
    points = []
    for name in ("auto", "registered"):
        way = next(w for w in ways(RESIDENT) if w.key == name)
        of = [("files", count, data.many[:count]) for count in plan["points"]] + [("one file", 1, [data.one])]
        runs = [[] for _ in of]
        for _ in range(options.rounds):
            for place, (_, _, paths) in enumerate(of):
                # Passes enough for the memory to be seen, however fast they are.
                run, _ = ask(program, way, paths, 8, threads=2, repeat=8)
                runs[place].append(run)
        if runs[-1][0].digest != runs[-2][0].digest:
            raise Failed("the many files have not as many rows as the one")
        for (form, count, _), several in zip(of, runs):
            memory = statistics.median(held(run.memory) for run in several)
            counters = {name: max(run.counters[name] for run in several) for name in several[0].counters}
            counters["extents"] //= 8
            points.append({"way": name, "form": form, "files": count, "memory": memory, **counters})
        told = ", ".join(f"{p['files']}: {p['slabs']} slabs, {p['memory'] / 1e6:,.0f} MB" for p in points[-len(of) :])
        say(f"  {name}, by files: {told}")
    return {"many": points}


def resident(program, data, options, plan):
    """Whether `auto` costs anything where all is in the page cache."""
    found = []
    by = {way.key: way for way in ways(RESIDENT)}
    every = {"auto": by["auto"], "cached": by["huge"], "fresh": by["fresh"]}
    for name, paths in (("plain", data.plain), ("encoded", data.encoded)):
        able, errors = checked(program, paths, list(every.values()), 4)
        if errors:
            raise Failed(f"{name}: {errors}")
        runs = {key: [] for key in every}
        for turn in range(plan["pairs"]):
            keys = list(every)
            for key in keys[turn % 3 :] + keys[: turn % 3]:
                run, _ = ask(program, every[key], paths, 4, repeat=5)
                runs[key].append(run.seconds)
        of = {f"auto over {key}": paired(runs["auto"], runs[key]) for key in ("cached", "fresh")}
        found.append({"data": name, **of})
        told = ", ".join(f"{what} {p['ratio']:.3f} ({p['low']:.3f} to {p['high']:.3f})" for what, p in of.items())
        say(f"  {name}, time of {told}")
    return {"resident": found}


def engines_of(engines):
    """Plinth in each way it can read, and those of its peers that read Parquet."""
    plinth = next(engine for engine in engines if engine.ours)
    found = [plinth]
    for key, label, more in (
        ("uring", "by ring", ["--io", "uring"]),
        ("direct", "by pread past the page cache", ["--io", "direct"]),
        ("cached", "through the page cache", ["--io", "cached"]),
        ("no-reuse", "without buffers used again", ["--io-without", "reuse"]),
    ):
        other = copy.copy(plinth)
        other.key, other.label, other.more, other.ours = f"plinth-{key}", f"Plinth, {label}", more, False
        found.append(other)
    return found + [e for e in engines if e.key in ("plinth-parquet", "datafusion", "duckdb-parquet")]


def queries(data, engines, options):
    engines = engines_of(engines)
    # Many ways, each of which is asked all 22: two rounds of two are what a quarter of an hour has room for.
    fewer = copy.copy(options)
    fewer.rounds, fewer.repeat = min(options.rounds, 2), min(options.repeat, 2)
    scale = 0.01 if options.quick else options.scale
    records = []
    for query in tpch.queries(scale, options.only):
        record = timing.measure(engines, data.tables, query, fewer)
        records.append(record)
        times = [f"{key} {of['warm']['median'] * 1e3:.0f}" for key, of in record["engines"].items() if "warm" in of]
        say(f"  {query.name}, ms: {', '.join(times)}")
    return {
        "engines": [{"key": e.key, "label": e.label} for e in engines],
        "queries": records,
        "disagreements": [text for record in records for text in record["disagreements"]],
        "warm": timing.geometric_means(records, engines),
        "cold": timing.geometric_means(records, engines, "cold"),
    }


def verdicts(found):
    """What must be shown, and what was found."""
    told = []

    def add(*of):
        told.append(timing.verdict(*of))

    def add_pair(what, least, most, pair):
        add(what, least, most, pair["ratio"], [pair["low"], pair["high"]])

    device = found.get("device", {})
    if "sequential" in device:
        add_pair("cold sequential scan of unencoded columns, over fio's best", 0.95, None, device["sequential"])
    if "random" in device:
        add_pair("random reads of 4 KiB, 64 in flight, over fio's", 0.95, None, device["random"])
    if "saved" in device:
        what = "processor time a byte by ring, over pread into fresh buffers, both past the page cache"
        add_pair(what, None, 0.30, device["saved"])
    for way, title in (("auto", "auto"), ("registered", "by ring")):
        points = [p for p in found.get("many", []) if p["way"] == way]
        if points:
            few, most, one = points[0], points[-2], points[-1]
            what = f"slabs for {most['files']:,} files over those for {few['files']:,}, {title}"
            add(what, None, 1, most["slabs"] / few["slabs"])
            what = f"peak memory of {most['files']:,} files over that of one, {title}"
            add(what, None, 1.10, most["memory"] / one["memory"])
    for of in found.get("resident", []):
        for over in ("cached", "fresh"):
            what = f"time of auto over pread into {'reused' if over == 'cached' else over} buffers, resident"
            add_pair(f"{what}, {of['data']}", None, 1.02, of[f"auto over {over}"])
    return told


PARTS = {"device": device, "many": many, "resident": resident, "slow": slow, "scans": scans}


def run(engines, options):
    plan = QUICK if options.quick else FULL
    scale = 0.01 if options.quick else options.scale
    say(f"io: TPC-H {scale:g}, lineitem in {plan['files']} files")
    program = scan.find(options.plinth)
    data = pieces.make(options, scale, plan["files"], plan["many"], plan["times"])
    found, missing = {}, {}
    for name, measure in PARTS.items():
        if not options.parts or name in options.parts:
            say(f"io: {name}")
            of = measure(program, data, options, plan)
            missing |= of.pop("skipped", {})
            found |= of
    if not options.parts or "queries" in options.parts:
        say("io: queries")
        found |= queries(data, engines, options)
    wrong = found.pop("disagreements", [])
    for of in found.get("scans", []) + found.get("slow", []):
        where = f"{of['data']}, {of['columns'] or 'all'} columns, {of['condition']}"
        wrong += [f"{where}, {way['title']}: {way['error']}" for way in of["ways"] if "error" in way]
    notes = [
        f"TPC-H at scale factor {scale:g}, lineitem in {plan['files']} files: encoded, and plain as `plinth import --plain` makes them.",
        "Scans are the example program `scan`: one thread, no engine above. Ways run in turn; a ratio is the median of the"
        " rounds', in brackets the interval that holds the true median with 95 % or, of few rounds, the least and the greatest.",
        "Cold: the kernel was asked to forget the files. Below a virtual machine its host may still have them, and answer reads past the page cache too.",
        "Processor time is that of the whole process, with the kernel's work for it.",
    ]
    notes += [f"Skipped, {name}: {why}." for name, why in missing.items()]
    head = {"suite": "io", "title": "Reading", "notes": notes, "verdicts": verdicts(found)}
    return {**head, "disagreements": wrong, **found}
