"""The 43 questions of ClickBench, or the 22 of TPC-H, over an object store that is some milliseconds away: Plinth beside DuckDB with httpfs over Parquet.

    python -m bench.objects --plinth target/release/plinth --server target/release/examples/server --folder bench-data/objects \
        --hits-sample hits.parquet --rows 1000000 --latency 30

needs duckdb and duckdb-extension-httpfs of the same version. The server is Plinth's own for tests (`cargo build --release -p plinth-objects --features server
--example server`): it counts requests and the bytes of answers, and waits before each answer. Each question is asked of a program or a connection that knows
nothing of the files: Plinth without a folder for kept bytes (cold) and with one, the third time (warm); DuckDB without its caches. Of each the median of
`--rounds` is taken, in turn. Answers are compared as in the other suites.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import time
from pathlib import Path

from . import answers
from .data import hits
from .data import tpch as tpch_data
from .suites import clickbench, tpch

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


TIME = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)Z?")

Asked = tuple[float, int, int, list[list[str]]]


def by_plinth(program: Path, server: Server, sql: str, cache: str) -> Asked:
    """Seconds of the statement, requests, bytes, rows."""
    environment = os.environ | KEYS | {"AWS_ENDPOINT_URL": server.endpoint, "PLINTH_OBJECT_CACHE": cache}
    server.asked()
    command = [str(program), "sql", "--format", "csv", "--threads", "2", "--timings", "json", "-c", sql]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{sql}: {done.stderr}"
    seconds = json.loads(done.stderr.strip().splitlines()[-1])["seconds"][0]
    rows = [[TIME.sub(r"\1T\2", cell) if TIME.fullmatch(cell) else cell for cell in row] for row in answers.rows_of_csv(done.stdout)]
    return seconds, *server.asked(), rows


def by_duckdb(server: Server, sql: str) -> Asked:
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
    return time.perf_counter() - begun, *server.asked(), [[answers.cell(value) for value in row] for row in rows]


def middle(runs: list[Asked]) -> Asked:
    """The run that took neither the longest nor the shortest time."""
    return sorted(runs, key=lambda run: run[0])[len(runs) // 2]


def geomean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def over(sql: str, tables: dict[str, Path], end: str) -> str:
    """A question over objects in the place of tables, which are named behind FROM on its line."""
    table = re.compile(rf"(?i)\b({'|'.join(tables)})\b(?=\s*(?:,|\)|;|$|\w))")

    def url(found: re.Match[str]) -> str:
        return f"'s3://bucket/{found[1].lower()}.{end}'"

    lines = (re.split(r"(?i)(\bfrom\s)", line, maxsplit=1) for line in sql.splitlines() if not line.startswith("--"))
    return "\n".join("".join(line[:-1]) + table.sub(url, line[-1]) if len(line) > 1 else line[0] for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--plinth", type=Path, required=True)
    parser.add_argument("--server", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--hits-sample", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--tpch", type=float, help="a scale of TPC-H, in the place of hits")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--latency", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[])
    given = parser.parse_args()
    name = f"tpch-{given.tpch:g}" if given.tpch else f"hits-{given.rows}-{given.seed}"
    files = given.folder / name
    files.mkdir(parents=True, exist_ok=True)
    if given.tpch:
        tables = tpch_data.make(given.folder / f"{name}-made", given.tpch)
        queries = tpch.queries(given.tpch, given.only)
    else:
        tables = {"hits": files / "hits.parquet"}
        if not tables["hits"].exists():
            hits.make(given.hits_sample, tables["hits"], given.rows, given.seed)
        queries = clickbench.queries(given.rows, True, given.only)
    for table, parquet in tables.items():
        if not (files / f"{table}.parquet").exists():
            (files / f"{table}.parquet").hardlink_to(parquet)
        if not (files / f"{table}.plinth").exists():
            subprocess.run([given.plinth, "import", parquet, "--to", files / f"{table}.plinth", "-q"], check=True)
    server = Server(given.server, files, given.latency)
    kept = given.folder / "kept"
    subprocess.run(["rm", "-rf", str(kept)], check=True)
    size = {end: sum((files / f"{table}.{end}").stat().st_size for table in tables) / 1e6 for end in ("plinth", "parquet")}
    print(f"{name}; Plinth {size['plinth']:.1f} MB, Parquet {size['parquet']:.1f} MB; {given.latency} ms.\n")
    print("| question | cold: s, requests, MB | the third time: s, requests, MB | DuckDB: s, requests, MB |\n|---|---|---|---|", flush=True)
    faster, fewer, total = [], [], [0, 0]
    for query in queries:
        mine, theirs = over(query.sql, tables, "plinth"), over(query.text("duckdb"), tables, "parquet")
        runs = [(by_plinth(given.plinth, server, mine, "off"), by_duckdb(server, theirs)) for _ in range(given.rounds)]
        cold, beside = middle([run[0] for run in runs]), middle([run[1] for run in runs])
        warm = [by_plinth(given.plinth, server, mine, str(kept)) for _ in range(3)][-1]
        if query.check:
            checked = over(query.text("plinth", True), tables, "plinth"), over(query.text("duckdb", True), tables, "parquet")
            rows = by_plinth(given.plinth, server, checked[0], "off")[3], by_duckdb(server, checked[1])[3]
            same = answers.alike(query, *rows)
        else:
            same = answers.alike(query, cold[3], beside[3]) and answers.alike(query, warm[3], beside[3])
        cells = (f"{seconds:.2f}, {requests}, {count / 1e6:.1f}" for seconds, requests, count, _ in (cold, warm, beside))
        print(f"| {query.name}{'' if same else ' (OTHER ROWS)'} | {' | '.join(cells)} |", flush=True)
        faster.append(beside[0] / max(cold[0], 1e-3))
        fewer.append(max(cold[2], 1) / max(beside[2], 1))
        total = [total[0] + cold[2], total[1] + beside[2]]
    print(f"\nGeometric mean of DuckDB's time over Plinth's, cold: {geomean(faster):.2f}. Bytes: {total[0] / total[1]:.2f} of DuckDB's in sum, {geomean(fewer):.2f} in the mean.")


if __name__ == "__main__":
    main()
