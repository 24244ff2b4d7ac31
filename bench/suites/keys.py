"""Indexes and sorts by the exact type of a key, beside what they were chosen over and beside others' stores.

The example programs of plinth-index and plinth-core do the work: they run what is compared in turn, check every answer by a digest
before they print a time, and print tables. `bench/keys` adds redb and LMDB, and DuckDB's ORDER BY is asked here.
"""

import json
import statistics
import time
from pathlib import Path

import duckdb

from .. import process
from ..process import Failed
from ..timing import say, verdict

BUILD = "cargo build --release -p plinth-index -p plinth-core --examples"
PEERS = Path(__file__).parents[1] / "keys" / "target" / "release" / "keys"
PARTS = ["insert", "lookup", "layouts", "nodes", "threads", "pools", "cold", "peers", "sort"]
QUICK = 20_000
ROUNDS = 5
# Columns as the example sorts them, and what DuckDB makes of a row number.
COLUMNS = {
    "i32, random": "(hash(i) >> 32)::UINTEGER::BIGINT - 2147483648",
    "i64, random": "hash(i)::HUGEINT - 9223372036854775808",
    "UUID, random": "gen_random_uuid()",
    "strings": "'https://www.example.com/' || ['item/', 'user/', ''][1 + (hash(i) % 3)::BIGINT] || (hash(i) >> 34)",
}
TYPES = {"i32, random": "INTEGER", "i64, random": "BIGINT", "UUID, random": "UUID", "strings": "VARCHAR"}


def run(_, options):
    parts = [part for part in PARTS if part in options.parts] or PARTS
    rows, many, sorted_rows = (QUICK,) * 3 if options.quick else (options.keys_rows, options.keys_many, options.keys_sorted)
    found, skipped = [], []
    for part in parts:
        say(f"keys: {part}")
        if part == "peers":
            found += peers(options, (rows, many)) if PEERS.is_file() else []
            skipped += [] if PEERS.is_file() else [f"without redb and LMDB: no {PEERS}: `cargo build --release` in bench/keys"]
        elif part == "sort":
            for threads in dict.fromkeys([1, options.threads]):
                tables = tables_of(example(options, "sort"), sorted_rows, threads)
                found += [tagged(table, part) for table in tables] + duckdb_sorts(tables, sorted_rows, threads)
        else:
            for count in dict.fromkeys([rows, many] if part in ("lookup", "nodes") else [rows]):
                count *= 20 if part == "cold" else 1
                tables = tables_of(example(options, "keys"), part, count, options.folder)
                found += [tagged(table, part) for table in tables]
    notes = [
        "Times are of the processor unless a table says otherwise; what is compared ran in turn, in one process, and gave the same answers.",
        *skipped,
    ]
    return {"suite": "keys", "title": "Indexes and sorts by type", "notes": notes, "tables": found, "verdicts": verdicts(found)}


def example(options, name):
    path = options.plinth.parent / "examples" / name
    if not path.is_file():
        raise Failed(f"no {path}: build it beside the program with `{BUILD}`")
    return path


def tables_of(program, *arguments):
    done = process.run([program, *arguments, "--json"])
    return [json.loads(line) for line in done.stdout.splitlines()]


def tagged(table, part):
    return table | {"part": part}


def peers(options, sizes):
    tables = []
    for rows in dict.fromkeys(sizes):
        tables += tables_of(PEERS, rows, options.folder / "peers")
    return [tagged(table, "peers") for table in tables]


def duckdb_sorts(tables, rows, threads):
    """What DuckDB takes to write a column in order, less what it takes to write it as it is, beside the example's times."""
    ours = {table["title"].split(":")[0]: dict(table["rows"])["plinth"][0] for table in tables}
    found = []
    for name, expression in COLUMNS.items():
        mine = next(each for title, each in ours.items() if title.startswith(name))
        connection = duckdb.connect(config={"threads": threads})
        connection.execute(f"create table t as select ({expression})::{TYPES[name]} as k from range({rows}) r(i)")
        spent = {"": [], " order by k": []}
        for _ in range(ROUNDS):
            for order, times in spent.items():
                start = clock(threads)
                connection.execute(f"create or replace temp table s as select k from t{order}")
                times.append(clock(threads) - start)
        wrong = connection.execute("select count(*) from (select k, lag(k) over () as b from s) where b > k").fetchone()[0]
        if wrong:
            raise Failed(f"keys: DuckDB's {name} are not in order")
        each = (statistics.median(spent[" order by k"]) - statistics.median(spent[""])) / rows * 1e9
        title = f"{name}: {rows} values, {threads} thread(s), ORDER BY"
        line = [["plinth", [mine, 1.0]], ["DuckDB 2.0, ORDER BY", [each, each / mine]]]
        found.append({"part": "sort", "title": title, "columns": ["ns each", "ratio"], "rows": line})
    return found


def clock(threads):
    """As the example: of the processor for one thread, else of the clock."""
    return time.process_time() if threads == 1 else time.perf_counter()


def verdicts(tables):
    told = []
    for table in tables:
        rows, title = dict(table["rows"]), table["title"].split(":")[0]
        if table["part"] == "insert":
            told.append(verdict(f"{title}, generic over specialised", 1.25, None, rows["generic (byte strings)"][1]))
        if table["part"] == "sort" and "1 thread(s)" in table["title"]:
            for name, (_, ratio, *_) in rows.items():
                if name.startswith("comparator called") and title.split(",")[-1] in (" random", "strings (24 bytes in common)"):
                    told.append(verdict(f"sort of {title}, comparator called over plinth", 1.25, None, ratio))
                if name.startswith("DuckDB"):
                    told.append(verdict(f"sort of {title}, DuckDB's ORDER BY over plinth", 1, None, ratio))
        if table["part"] == "cold":
            lookups, reads, each, share = rows["batches of 256, 2 thread(s)"]
            told.append(verdict("larger than memory, reads a lookup", None, 2, each))
            told.append(verdict("larger than memory, share of the device's reads a second, 2 threads", 0.9, None, share))
    return told
