#!/usr/bin/env python3
"""TPC-H: the 22 queries over Plinth files and over Parquet, by the same program and the same number of threads.

    tpch.py PLINTH FOLDER [--quick] [--duckdb] [--json FILE]

The peer is DataFusion 55 over Parquet: PLINTH itself, given the Parquet files. Both kinds of file are made in FOLDER on first use and
kept (--fresh makes them anew). The rounds of a query alternate between the two, each a process of its own, and
start with the other one in turn. Everything is warm: the first run of each process is not counted. No time is printed
unless all answers are equal.
"""

import argparse
import csv
import io
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from common import agree, digest, fail, geometric_mean, machine, median, parquet_to_parquet, plinth, spread, timed

QUERIES = Path(__file__).parent / "tpch"
TABLES = ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"]


def make_files(program, folder, scale):
    """Makes what is missing; returns the folders of the Parquet and the Plinth files."""
    parquet, ours, raw = folder / "parquet", folder / "plinth", folder / "raw"
    missing = [t for t in TABLES if not (parquet / f"{t}.parquet").exists()]
    if missing:
        parquet.mkdir(parents=True, exist_ok=True)
        generator = Path(sys.executable).parent / "tpchgen-cli"
        command = [generator, "parquet", "-s", str(scale), "--quiet", "--overwrite", "--output-dir", raw]
        subprocess.run([*command, f"--tables={','.join(missing)}"], check=True)
        for table in missing:
            parquet_to_parquet(raw / f"{table}.parquet", parquet / f"{table}.parquet")
        shutil.rmtree(raw)
    ours.mkdir(exist_ok=True)
    for table in TABLES:
        if not (ours / f"{table}.plinth").exists():
            started = time.perf_counter()
            plinth(program, "import", "--quiet", parquet / f"{table}.parquet", "--to", ours / f"{table}.plinth")
            print(f"imported {table} in {time.perf_counter() - started:.1f} s", file=sys.stderr)
    return parquet, ours


def sizes(parquet, ours):
    rows = [(t, (parquet / f"{t}.parquet").stat().st_size, (ours / f"{t}.plinth").stat().st_size) for t in TABLES]
    return rows + [("all", sum(r[1] for r in rows), sum(r[2] for r in rows))]


class Plinth:
    def __init__(self, program, database, args):
        self.program, self.database, self.args = program, database, args

    def run(self, query):
        text, seconds = timed(self.program, self.database, query, self.args.threads, self.args.repeat + 1)
        return list(csv.reader(io.StringIO(text)))[1:], seconds[1:]


class DuckDB:
    """DuckDB in this process, a new connection each round."""

    def __init__(self, parquet, args):
        self.parquet, self.args = parquet, args

    def run(self, query):
        import duckdb

        connection = duckdb.connect(config={"threads": self.args.threads})
        for table in TABLES:
            connection.execute(f"create view {table} as select * from read_parquet('{self.parquet / f'{table}.parquet'}')")
        seconds = []
        for _ in range(self.args.repeat + 1):
            started = time.perf_counter()
            rows = connection.execute(query).fetchall()
            seconds.append(time.perf_counter() - started)
        return [["" if v is None else str(v) for v in row] for row in rows], seconds[1:]


def measure(engines, queries, rounds):
    """Seconds of each query and engine; checks all answers first."""
    for name, query in queries.items():
        answers = {engine: of.run(query)[0] for engine, of in engines.items()}
        ours, theirs = digest(answers["plinth"]), digest(answers["parquet"])
        if ours != theirs:
            fail(f"{name}: over Plinth {ours}, over Parquet {theirs}: the answers differ, so nothing was timed")
        if "duckdb" in answers and not agree(answers["plinth"], answers["duckdb"]):
            fail(f"{name}: DuckDB answers otherwise, so nothing was timed: {answers['duckdb'][:2]}, not {answers['plinth'][:2]}")
    print(f"all {len(queries)} answers of {', '.join(engines)} are equal", file=sys.stderr)
    times = {name: {engine: [] for engine in engines} for name in queries}
    for name, query in queries.items():
        for turn in range(rounds):
            order = list(engines) if turn % 2 == 0 else list(reversed(engines))
            for engine in order:
                times[name][engine] += engines[engine].run(query)[1]
    return times


def report(args, table_sizes, engines, times):
    scale = "0.01" if args.quick else f"{args.scale:g}"
    print(f"\n## TPC-H {scale}, {args.threads} threads, warm\n")
    print("| table | Parquet zstd 3 (bytes) | Plinth (bytes) | Plinth / Parquet |\n|---|--:|--:|--:|")
    for table, theirs, ours in table_sizes:
        print(f"| {table} | {theirs:,} | {ours:,} | {ours / theirs:.3f} |")
    others = [e for e in engines if e != "plinth"]
    head = " | ".join(f"{e} (ms) | spread" for e in engines) + " | " + " | ".join(f"{e} / plinth" for e in others)
    print(f"\n| query | {head} |\n|---|{'--:|' * (2 * len(engines) + len(others))}")
    ratios = {e: [] for e in others}
    for name, of in times.items():
        cells = [f"{median(of[e]) * 1e3:.1f} | {spread(of[e]):.0%}" for e in engines]
        for e in others:
            ratios[e].append(median(of[e]) / median(of["plinth"]))
            cells.append(f"{ratios[e][-1]:.2f}")
        print(f"| {name} | {' | '.join(cells)} |")
    means = {e: geometric_mean(r) for e, r in ratios.items()}
    print(f"| geometric mean | {' | '.join([' | '] * len(engines))} | {' | '.join(f'{means[e]:.2f}' for e in others)} |")
    return means


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plinth", type=Path, help="the program, built with --release")
    parser.add_argument("folder", type=Path, help="where the files are or will be")
    parser.add_argument("--scale", type=float, default=1, help="scale factor [default: 1]")
    parser.add_argument("--quick", action="store_true", help="scale factor 0.01, one round: a check of the harness, no figures")
    parser.add_argument("--duckdb", action="store_true", help="time DuckDB over the Parquet files too")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5, help="processes of each engine and query [default: 5]")
    parser.add_argument("--repeat", type=int, default=3, help="counted runs in each [default: 3]")
    parser.add_argument("--fresh", action="store_true", help="make the files of FOLDER anew")
    parser.add_argument("--only", help="queries, such as 1,6,21")
    parser.add_argument("--json", type=Path, help="where the figures go [default: FOLDER/tpch.json]")
    args = parser.parse_args()
    if args.rounds < 1 or args.repeat < 1 or args.threads < 1:
        parser.error("--rounds, --repeat and --threads are at least 1")
    if args.quick:
        args.scale, args.rounds = 0.01, 1
    program = args.plinth.resolve()
    folder = args.folder / f"tpch-{args.scale:g}"
    if args.fresh:
        for kind in ("parquet", "plinth"):
            for table in TABLES:
                (folder / kind / f"{table}.{kind}").unlink(missing_ok=True)
    parquet, ours = make_files(program, folder, args.scale)
    wanted = [int(n) for n in args.only.split(",")] if args.only else range(1, 23)
    queries = {f"q{n:02}": (QUERIES / f"q{n:02}.sql").read_text() for n in wanted}
    if args.scale != 1 and "q11" in queries:
        # The fraction of query 11 belongs to the scale.
        queries["q11"] = queries["q11"].replace("0.0001\n", f"{0.0001 / args.scale:.10f}\n")
    engines = {"plinth": Plinth(program, ours, args), "parquet": Plinth(program, parquet, args)}
    if args.duckdb:
        engines["duckdb"] = DuckDB(parquet, args)
    table_sizes = sizes(parquet, ours)
    times = measure(engines, queries, args.rounds)
    means = report(args, table_sizes, engines, times)
    figures = {
        "machine": machine(),
        "version": plinth(program, "--version").stdout.strip(),
        "scale": args.scale,
        "threads": args.threads,
        "rounds": args.rounds,
        "repeat": args.repeat,
        "bytes": {t: {"parquet": a, "plinth": b} for t, a, b in table_sizes},
        "seconds": times,
        "geometric_mean_over_plinth": means,
    }
    target = args.json or folder / "tpch.json"
    target.write_text(json.dumps(figures, indent=1) + "\n")
    print(f"\nfigures in {target}", file=sys.stderr)


if __name__ == "__main__":
    main()
