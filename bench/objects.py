"""The 43 questions of ClickBench over an object store that is some milliseconds away: Plinth beside DuckDB with httpfs over Parquet.

    python -m bench.objects --plinth target/release/plinth --server target/release/examples/server --folder bench-data/objects \
        --hits-sample hits.parquet --rows 1000000 --latency 30

needs duckdb and duckdb-extension-httpfs of the same version. The server is Plinth's own for tests (`cargo build --release -p plinth-objects --features server
--example server`): it counts requests and the bytes of answers, and waits before each answer. Each question is asked of a program or a connection that knows
nothing of the file: Plinth without a folder for kept bytes (cold) and with one, the third time (warm); DuckDB without its caches. Answers are compared as sorted
rows of text, numbers to nine digits.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any

from .data import hits
from .suites import clickbench

KEYS = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_REGION": "us-east-1"}


class Server:
    """The server over a folder, and what was asked of it."""

    def __init__(self, program: Path, folder: Path, latency: int) -> None:
        self.process = subprocess.Popen(
            [program, str(folder), str(latency)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.endpoint = self._line()

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def asked(self) -> tuple[int, int]:
        """Requests and bytes since the last call."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        requests, count = self._line().split()
        return int(requests), int(count)


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))[1:]


def plain(value: Any) -> str:
    """A value as it is compared."""
    text = "" if value is None else str(value)
    try:
        number = float(text)
    except ValueError:
        return text.replace("T", " ").removesuffix("Z")
    return f"{number:.9g}" if math.isfinite(number) else text


def answer(rows: list[Any]) -> list[tuple[str, ...]]:
    return sorted(tuple(plain(value) for value in row) for row in rows)


def by_plinth(program: Path, server: Server, sql: str, cache: str) -> tuple[float, int, int, list[tuple[str, ...]]]:
    """Seconds of the statement, requests, bytes, rows."""
    environment = os.environ | KEYS | {"AWS_ENDPOINT_URL": server.endpoint, "PLINTH_OBJECT_CACHE": cache}
    server.asked()
    command = [str(program), "sql", "--format", "csv", "--threads", "2", "--timings", "json", "-c", sql]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{sql}: {done.stderr}"
    seconds = json.loads(done.stderr.strip().splitlines()[-1])["seconds"][0]
    return seconds, *server.asked(), answer(rows_of(done.stdout))


def by_duckdb(server: Server, sql: str) -> tuple[float, int, int, list[tuple[str, ...]]]:
    import duckdb
    from duckdb_extensions import import_extension

    con = duckdb.connect()
    import_extension("httpfs", con=con)
    host = server.endpoint.removeprefix("http://")
    con.execute("SET threads = 2; SET enable_external_file_cache = false; SET enable_http_metadata_cache = false")
    con.execute(
        f"CREATE SECRET (TYPE s3, KEY_ID 'bench', SECRET 'bench', REGION 'us-east-1', ENDPOINT '{host}', URL_STYLE 'path', USE_SSL false)"
    )
    server.asked()
    begun = time.perf_counter()
    rows = con.execute(sql).fetchall()
    return time.perf_counter() - begun, *server.asked(), answer(rows)


def geomean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--plinth", type=Path, required=True)
    parser.add_argument("--server", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--hits-sample", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--latency", type=int, default=30)
    parser.add_argument("--only", nargs="*", default=[])
    given = parser.parse_args()
    files = given.folder / f"hits-{given.rows}-{given.seed}"
    files.mkdir(parents=True, exist_ok=True)
    parquet, ours = files / "hits.parquet", files / "hits.plinth"
    if not parquet.exists():
        hits.make(given.hits_sample, parquet, given.rows, given.seed)
    if not ours.exists():
        subprocess.run([given.plinth, "import", parquet, "--to", ours, "-q"], check=True)
    server = Server(given.server, files, given.latency)
    kept = given.folder / "kept"
    subprocess.run(["rm", "-rf", str(kept)], check=True)
    print(f"{given.rows:,} rows; Plinth {ours.stat().st_size / 1e6:.1f} MB, Parquet {parquet.stat().st_size / 1e6:.1f} MB; {given.latency} ms.\n")
    print("| question | cold: s, requests, MB | the third time: s, requests, MB | DuckDB: s, requests, MB |\n|---|---|---|---|", flush=True)
    faster, fewer, total = [], [], [0, 0]
    for query in clickbench.queries(given.rows, True, given.only):
        mine = re.sub(r"(?i)from hits\b", "FROM 's3://bucket/hits.plinth'", query.sql)
        theirs = re.sub(r"(?i)from hits\b", "FROM 's3://bucket/hits.parquet'", query.dialects["duckdb"])
        cold = by_plinth(given.plinth, server, mine, "off")
        warm = [by_plinth(given.plinth, server, mine, str(kept)) for _ in range(3)][-1]
        beside = by_duckdb(server, theirs)
        same = cold[3] == beside[3] and warm[3] == beside[3]
        cells = (f"{seconds:.2f}, {requests}, {count / 1e6:.1f}" for seconds, requests, count, _ in (cold, warm, beside))
        print(f"| {query.name}{'' if same else ' (other rows)'} | {' | '.join(cells)} |", flush=True)
        faster.append(beside[0] / max(cold[0], 1e-3))
        fewer.append(max(cold[2], 1) / max(beside[2], 1))
        total = [total[0] + cold[2], total[1] + beside[2]]
    print(f"\nGeometric mean of DuckDB's time over Plinth's, cold: {geomean(faster):.2f}. Bytes: {total[0] / total[1]:.2f} of DuckDB's in sum, {geomean(fewer):.2f} in the mean.")


if __name__ == "__main__":
    main()
