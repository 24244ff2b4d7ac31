"""Documents of JSON as lines: the records of each, again and again until there are so many bytes, imported by Plinth and by DuckDB.

    python -m bench.lines --plinth target/release/plinth --folder bench-data/lines twitter.json:statuses citm_catalog.json:performances gsoc-2018.json:

Behind the colon is the key of the records, a list or an object of them; without one they are the document's own. simdjson's examples are at
https://github.com/simdjson/simdjson-data. Of Plinth whole processes are timed, of DuckDB `CREATE TABLE AS` once Python has started, in turn. Both must have as many rows, or it is an error.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import duckdb

from . import process
from .timing import say, summary

COUNT = "select count(*) from "


def records(document: Path, key: str) -> list[object]:
    found = json.loads(document.read_text())
    found = found[key] if key else found
    return list(found.values()) if isinstance(found, dict) else found


def lines(document: Path, key: str, target: Path, bytes_: int) -> int:
    """Writes the records a line each, again and again; returns how many."""
    text = [json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n" for record in records(document, key)]
    each = sum(len(line.encode()) for line in text)
    times = max(-(-bytes_ // each), 1)
    with open(target, "w") as file:
        for _ in range(times):
            file.writelines(text)
    return times * len(text)


def by_plinth(options: argparse.Namespace, source: Path, target: Path) -> float:
    target.unlink(missing_ok=True)
    return process.run([options.plinth, "import", "--quiet", "--threads", options.threads, "--to", target, source]).seconds


def by_duckdb(options: argparse.Namespace, source: Path, target: Path) -> float:
    target.unlink(missing_ok=True)
    with duckdb.connect(str(target), config={"threads": options.threads, "storage_compatibility_version": "latest"}) as connection:
        start = time.perf_counter()
        connection.execute(f"create table t as from read_json('{source}', format = 'newline_delimited'); checkpoint")
        return time.perf_counter() - start


def rows_of_plinth(options: argparse.Namespace, target: Path) -> int:
    done = process.run([options.plinth, "sql", "--format", "csv", "-c", f"{COUNT}'{target}'"])
    return int(done.stdout.split()[-1])


def rows_of_duckdb(target: Path) -> int:
    with duckdb.connect(str(target), read_only=True) as connection:
        return int(connection.execute(COUNT + "t").fetchone()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", nargs="+", metavar="DOCUMENT:KEY")
    parser.add_argument("--plinth", type=Path, required=True)
    parser.add_argument("--folder", type=Path, default=Path("bench-data/lines"))
    parser.add_argument("--bytes", type=int, default=200_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for named in options.documents:
        document, _, key = named.partition(":")
        source = options.folder / f"{Path(document).stem}.ndjson"
        count = lines(Path(document), key, source, options.bytes)
        targets = {"Plinth": source.with_suffix(".plinth"), "DuckDB": source.with_suffix(".duckdb")}
        ways = {"Plinth": by_plinth, "DuckDB": by_duckdb}
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        for turn in range(options.rounds):
            for way in ways if turn % 2 == 0 else reversed(ways):
                seconds[way].append(ways[way](options, source, targets[way]))
        found = {"Plinth": rows_of_plinth(options, targets["Plinth"]), "DuckDB": rows_of_duckdb(targets["DuckDB"])}
        if set(found.values()) != {count}:
            raise SystemExit(f"{named}: {count} records, of which {found} were found")
        ratios = summary([theirs / ours for ours, theirs in zip(seconds["Plinth"], seconds["DuckDB"])])
        told = ", ".join(f"{way} {summary(of)['median']:.2f} s" for way, of in seconds.items())
        size = source.stat().st_size
        say(f"{named}: {count:,} records, {size / 1e6:.0f} MB: {told}: {ratios['median']:.2f} times DuckDB's speed (spread {ratios['spread'] * 100:.0f} %)")
        for made in (source, *targets.values()):
            made.unlink()


if __name__ == "__main__":
    main()
