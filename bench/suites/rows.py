"""Rows beside columns: point reads, durable commits, scans of what was written to.

Plinth's is its Rust API (the example `rows`), SQLite's and redb's are theirs (`cargo build --release` in `rows/`), DuckDB's is its
Python package. Each keeps a table of the same rows; whatever is read is compared with the rows as they were made.
"""

import math
import shutil
import statistics

from .. import stores
from ..process import Failed
from ..timing import paired, say, verdict

PARTS = ["read", "index", "commit", "scan", "growth"]
BUILD = "cargo build --release -p plinth-rowstore --example rows"
LOTS = [1, 10, 100, 1_000, 10_000]
MANY = 1_000


class Tables:
    """The stores that are there, each with its table of so many rows."""

    def __init__(self, options, rows, keys=("plinth", "sqlite", "redb", "duckdb")):
        self.folder = options.folder / "scratch" / f"rows-{rows}"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.stores, self.without = [], []
        for key in keys:
            store = self.open(key, options)
            if store is not None:
                loaded = store.ask("load", rows)
                say(f"  {store.label}: {rows:,} rows in {loaded['seconds']:.1f} s")
                self.stores.append(store)

    def open(self, key, options):
        folder = self.folder / key
        folder.mkdir(parents=True)
        if key.startswith("plinth"):
            return stores.Store(key, "Plinth", [options.plinth.parent / "examples" / "rows", "serve", folder])
        if key == "duckdb":
            try:
                return stores.DuckDB(folder)
            except ImportError:
                self.without.append("DuckDB: its package is not installed")
                return None
        if not stores.PEERS.is_file():
            self.without.append(f"{key}: cargo build --release in bench/rows")
            return None
        return stores.Store(key, {"sqlite": "SQLite", "redb": "redb"}[key], [stores.PEERS, key, folder])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for store in self.stores:
            store.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def alternate(tables, turns, ask, wrong, per=lambda answer, store: answer["seconds"]):
    """What `ask` makes each store answer, turn by turn: of each store the figures."""
    runs = {store.key: [] for store in tables.stores}
    used = {store.key: [] for store in tables.stores}
    for turn in range(turns):
        for store in tables.stores if turn % 2 == 0 else reversed(tables.stores):
            answer = ask(store, turn)
            if not answer["right"]:
                wrong.append(f"{store.label}: other rows than were written")
            runs[store.key].append(per(answer, store))
            used[store.key].append(answer.get("cpu", 0.0))
    return runs, used


def figures(tables, what, runs, used=None, count=None):
    """A line of a table: of each store its median and how many times Plinth's it is."""
    line = {"what": what, "stores": []}
    for store in tables.stores:
        pair = paired(runs[store.key], runs["plinth"])
        found = {"key": store.key, "label": store.label, "median": statistics.median(runs[store.key])}
        found |= {"ratio": pair["ratio"], "low": pair["low"], "high": pair["high"]}
        if used:
            found["cpu"] = statistics.median(used[store.key])
        line["stores"].append(found)
        say(f"  {what}, {store.label}: {found['median'] * 1e6:.2f} us, {found['ratio']:.2f} of Plinth's")
    return line


def of(line, key):
    return next((store for store in line["stores"] if store["key"] == key), None)


def demand(suite, what, line, key, least):
    store = of(line, key)
    if store:
        suite["verdicts"].append(verdict(what, least, None, store["ratio"], (store["low"], store["high"])))


def read(options, suite, rows):
    few, turns = (200, 2) if options.quick else (20_000, 7)
    with Tables(options, rows) as tables:
        suite["notes"] += tables.without
        for store in tables.stores:
            # Once over all of it, as far as there is memory for it.
            store.ask("many", min(rows, 20_000 if store.key == "duckdb" else 1_000_000), 10_000, 1)
        for lot in LOTS:
            count = {store.key: few for store in tables.stores} | {"duckdb": few if lot >= MANY else max(lot, few // 20)}
            count = {key: max(number, lot) for key, number in count.items()}

            def ask(store, turn):
                if lot == 1:
                    return store.ask("get", count[store.key], turn + 2)
                return store.ask("many", count[store.key], lot, turn + 2)

            def each(answer, store):
                return answer["seconds"] / count[store.key]

            runs, used = alternate(tables, turns, ask, suite["disagreements"], each)
            used = {key: [seconds / count[key] for seconds in found] for key, found in used.items()}
            what = "one row by its key" if lot == 1 else f"of {lot:,} keys at once, one"
            suite["reads"].append(figures(tables, what, runs, used))
    one, many = suite["reads"][0], suite["reads"][LOTS.index(10_000)]
    if not options.quick:
        suite["verdicts"].append(verdict("microseconds of a processor for a row by its key", None, 5.0, of(one, "plinth")["cpu"] * 1e6))
        suite["verdicts"].append(
            verdict("microseconds of a processor for a key of 10,000", None, 1.0, of(many, "plinth")["cpu"] * 1e6)
        )
    demand(suite, "times faster than DuckDB's prepared SELECT", one, "duckdb", 10.0)
    demand(suite, "times faster than SQLite's prepared SELECT", one, "sqlite", 1.0)


def index(options, suite, rows):
    few, turns = (100, 2) if options.quick else (5_000, 7)
    with Tables(options, rows) as tables:
        runs, _ = alternate(tables, 1, lambda store, _: store.ask("index"), suite["disagreements"])
        suite["indexes"].append(figures(tables, "an index over a number is made", runs))
        count = {store.key: few if store.key != "duckdb" else max(few // 20, 10) for store in tables.stores}

        def each(answer, store):
            return answer["seconds"] / count[store.key]

        # The first turn brings what it needs to memory.
        runs, used = alternate(
            tables, turns + 1, lambda store, turn: store.ask("find", count[store.key], turn), suite["disagreements"], each
        )
        runs, used = ({key: found[1:] for key, found in of.items()} for of in (runs, used))
        used = {key: [seconds / count[key] for seconds in found] for key, found in used.items()}
        suite["indexes"].append(figures(tables, "one row by that number", runs, used))
        runs, _ = alternate(
            tables, turns, lambda store, _: store.ask("commit", 1, 3, MANY), suite["disagreements"], lambda a, _: a["median"]
        )
        suite["indexes"].append(figures(tables, f"{MANY:,} rows committed beside it", runs))


def commit(options, suite, rows):
    turns, few = (2, 3) if options.quick else (9, 20)
    with Tables(options, min(rows, 1_000_000)) as tables:
        # A device is slow now and fast then: each has a bare write and sync before it.
        bare = {store.key: [] for store in tables.stores}
        able = next(store for store in tables.stores if store.key == "plinth")

        def ask(store, _):
            bare[store.key].append(able.ask("bare", few, 4096)["median"])
            return store.ask("commit", 1, few, 1)

        runs, _ = alternate(tables, turns, ask, suite["disagreements"], lambda answer, _: answer["median"])
        line = figures(tables, "a row, one writer", runs)
        for store in tables.stores:
            over = paired(runs[store.key], bare[store.key])
            of(line, store.key)["bare"] = over
            say(f"    {store.label}: {over['ratio']:.2f} of a bare write and fdatasync")
        suite["commits"].append(line)
        over = of(line, "plinth")["bare"]
        suite["verdicts"].append(
            verdict("a commit of one writer over a bare write and fdatasync", None, 1.2, over["ratio"], (over["low"], over["high"]))
        )
        for writers, each, lot in ((16, few, 1), (1, max(few // 4, 1), 1000), (16, 2, 1000)):
            runs, _ = alternate(
                tables,
                turns,
                lambda store, _: store.ask("commit", writers, each, lot),
                suite["disagreements"],
                lambda answer, _: answer["seconds"] / (writers * each),
            )
            what = ("a row" if lot == 1 else f"{lot:,} rows") + (", one writer" if writers == 1 else f", {writers} writers")
            suite["commits"].append(figures(tables, what, runs))
    demand(suite, "times SQLite's commits, 16 writers", suite["commits"][1], "sqlite", 5.0)
    demand(suite, "times redb's batches of 1,000, one writer", suite["commits"][2], "redb", 1.0)
    demand(suite, "times DuckDB's batches of 1,000, one writer", suite["commits"][2], "duckdb", 1.0)


def scan(options, suite, rows):
    turns = 3 if options.quick else 11
    with Tables(options, rows, ("plinth-written", "plinth-merged")) as tables:
        written, merged = tables.stores
        for store in tables.stores:
            store.ask("dirty")
        merged.ask("vacuum")
        runs = {store.key: [] for store in tables.stores}
        digests = set()
        for turn in range(turns + 1):
            for store in tables.stores if turn % 2 == 0 else reversed(tables.stores):
                answer = store.ask("scan")
                digests.add(answer["digest"])
                # The first reads the file for the first time.
                runs[store.key] += [answer["seconds"]] if turn else []
        if len(digests) != 1:
            suite["disagreements"].append("a scan of the written table and of the merged one find other rows")
        pair = paired(runs[written.key], runs[merged.key])
        say(f"  scan with 5 % deleted and 5 % in memory over merged: {pair['ratio']:.2f}")
        what = "a scan with 5 % deleted and 5 % in memory over that of the merged table"
        suite["verdicts"].append(verdict(what, None, 1.2, pair["ratio"], (pair["low"], pair["high"])))


def growth(options, suite, rows):
    sizes = [size for size in (1_000, 10_000, 100_000, 1_000_000) if size < rows] + [rows]
    sizes = sizes[-2:] if options.quick else sizes
    few, turns = (200, 2) if options.quick else (20_000, 5)
    for size in sizes:
        with Tables(options, size, ("plinth", "sqlite", "redb")) as tables:
            for store in tables.stores:
                store.ask("many", min(size, 1_000_000), 10_000, 1)
            runs, _ = alternate(
                tables,
                turns,
                lambda store, turn: store.ask("get", few, turn + 2),
                suite["disagreements"],
                lambda answer, _: answer["seconds"] / few,
            )
            suite["growth"].append({"rows": size} | figures(tables, f"one of {size:,} rows", runs))
    first, last = suite["growth"][0], suite["growth"][-1]
    if first is not last:
        for store in last["stores"]:
            before = of(first, store["key"])["median"]
            store["slope"] = math.log(store["median"] / before) / math.log(last["rows"] / first["rows"])


def run(engines, options):
    if not (options.plinth.parent / "examples" / "rows").is_file():
        raise Failed(f"no example rows beside the program: {BUILD}")
    rows = 20_000 if options.quick else options.table_rows
    parts = [part for part in PARTS if part in options.parts] or PARTS
    suite = {"suite": "rows", "title": f"Rows: {rows:,} of eight columns", "reads": [], "indexes": [], "commits": [], "growth": []}
    suite |= {"verdicts": [], "disagreements": []}
    suite["notes"] = [
        "Every row that is read is compared with the row as it was made: all eight columns of it.",
        "Plinth, SQLite and redb are asked in Rust. SQLite: prepared statements, WAL, synchronous=FULL, one connection a thread. redb: a"
        " row is one value of bytes. DuckDB is asked in Python, whose call is part of its time: EXECUTE of a prepared SELECT, IN (...), INSERT.",
        "A commit returns when it is durable. Stores take turns, and before each turn of one writer stands a bare write of 4 KiB with fdatasync:"
        " figures of commits are ratios of one run, as this device is slow now and fast then.",
    ]
    for part in parts:
        say(f"rows, {part}: {rows:,} rows")
        {"read": read, "index": index, "commit": commit, "scan": scan, "growth": growth}[part](options, suite, rows)
    return suite
