"""What each step from a plain reader to Plinth's brings inside DuckDB: in time, and in processor time a byte of values.

A step is a way of reading beside the way before it, in turn, over the same rows: sums of the columns of lineitem (a scan and little else),
the 22, or the 43. Every way must give the same answers.
"""

import statistics
from dataclasses import dataclass, field

from .. import files
from ..timing import paired, say
from .inside import ask, connect, counters, settle, tables


@dataclass
class Way:
    key: str
    title: str
    kind: str
    settings: dict = field(default_factory=dict)


BLOCKING = {"plinth_io": "direct", "plinth_read_ahead": "false", "plinth_pushdown": "off"}
AHEAD = {"plinth_io": "direct", "plinth_pushdown": "off"}
WAYS = [
    Way("fresh", "a buffer a read, blocking", "plain", BLOCKING | {"plinth_fresh_buffers": "true"}),
    Way("reused", "buffers reused, blocking", "plain", BLOCKING),
    Way("ahead", "read ahead by threads", "plain", AHEAD),
    Way("ring", "read ahead by io_uring", "plain", AHEAD | {"plinth_io": "uring"}),
    Way("encoded", "encoded blocks, io_uring", "plinth", AHEAD | {"plinth_io": "uring"}),
    Way("pushdown", "filters on encoded blocks", "plinth", {"plinth_io": "uring"}),
    Way("auto", "page cache where it has them", "plinth"),
    Way("parquet", "DuckDB's Parquet reader", "parquet"),
]
SUMS = (
    "select count(*), sum(l_orderkey), sum(l_partkey), sum(l_suppkey), sum(l_linenumber), sum(l_quantity), sum(l_extendedprice), sum(l_discount), sum(l_tax),"
    " max(l_shipdate), max(l_commitdate), max(l_receiptdate), max(l_shipmode), max(l_comment) from lineitem"
)
# Bytes that a row of these columns has as values: four numbers and four decimals of 8, three dates of 4, two strings of 16.
SUMS_BYTES = 4 * 8 + 4 * 8 + 3 * 4 + 2 * 16
FILTERED = "select count(*), sum(l_extendedprice * l_discount) from lineitem where l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01' and l_discount between 0.05 and 0.07 and l_quantity < 24"


def one(base, way, statements):
    """Rows of all statements, their seconds, those of processors."""
    settle(base, way.settings)
    rows, time, used = [], 0.0, 0.0
    for sql in statements:
        answer, seconds, processors = ask(base, way.kind, sql)
        rows.append(sorted(map(rounded, answer), key=repr))
        time, used = time + seconds, used + processors
    return rows, time, used


def rounded(row):
    """Sums of floats depend on the order of their parts."""
    return tuple(f"{value:.6g}" if isinstance(value, float) else value for value in row)


def run(given, name, paths, statements, cold, threads, ways=WAYS, checked=True, row_bytes=0):
    """The ways in turn, and each beside the one before it; of rows with so many bytes of values, the processor time of one."""
    base = connect(given.extension, threads)
    tables(base, {kind: {table: of[kind] for table, of in paths.items()} for kind in {way.kind for way in ways}})
    every = {way.key: [path for of in paths.values() for path in of["files"][way.kind]] for way in ways}
    runs = {way.key: [] for way in ways}
    wanted, stayed = None, 0.0
    for turn in range(given.rounds + (0 if cold else 1)):
        for way in ways if turn % 2 else reversed(ways):
            left = files.drop(every[way.key]) if cold else files.warm(every[way.key])
            stayed = max(stayed, left or 0.0)
            rows, seconds, used = one(base, way, statements)
            wanted = rows if wanted is None else wanted
            if checked and rows != wanted:
                raise SystemExit(f"{name}, {way.title}: other answers than the first way's")
            if cold or turn:
                runs[way.key].append((seconds, used))
    found = []
    for at, way in enumerate(ways):
        before = runs[ways[at - 1].key] if at else None
        of = runs[way.key]
        step = None
        if before:
            step = {"time": paired([r[0] for r in before], [r[0] for r in of]), "processor": paired([r[1] for r in before], [r[1] for r in of])}
        found.append({"key": way.key, "title": way.title, "seconds": statistics.median(r[0] for r in of), "processor": statistics.median(r[1] for r in of), "step": step, "bytes": files.size(every[way.key]), "a_byte": found_a_byte(runs[way.key], wanted, row_bytes)})
    say(f"  {name}, {'cold' if cold else 'resident'}, {threads} threads: " + ", ".join(f"{of['key']} {of['seconds'] * 1e3:.0f}" for of in found) + " ms")
    return {"name": name, "cold": cold, "threads": threads, "still_cached": stayed, "ways": found}


def found_a_byte(runs, answers, row_bytes):
    """Seconds of processors for a byte of values: the first answer begins with the number of rows."""
    rows = answers[0][0][0]
    return statistics.median(used for _, used in runs) / (rows * row_bytes) if row_bytes else None


def many(given, counts, make):
    """The same rows in so many files: seconds as files are read by default, and bytes of the buffers that reads take past the page cache."""
    found = []
    for count in counts:
        paths, sql = make(count)
        base = connect(given.extension, given.threads)
        tables(base, {kind: {"rows": paths[kind]} for kind in ("plinth", "parquet")})
        runs = {"plinth": [], "parquet": []}
        answers = {}
        for turn in range(given.rounds + 1):
            for kind in runs:
                answers[kind], *spent = ask(base, kind, sql)
                if turn:
                    runs[kind].append(spent)
        if answers["plinth"] != answers["parquet"]:
            raise SystemExit(f"{count} files: {answers}")
        base.execute("SET plinth_io = 'direct'")
        ask(base, "plinth", sql)
        of = {"files": count, "buffers": counters(base)["slab_bytes"]}
        for kind, spent in runs.items():
            of[kind], of[f"{kind}_processor"] = (statistics.median(each) for each in zip(*spent))
        found.append(of)
        say(f"  {count} files: Plinth {of['plinth'] * 1e3:.0f} ms, Parquet {of['parquet'] * 1e3:.0f} ms, buffers {of['buffers'] / 1e6:.1f} MB")
    return found
