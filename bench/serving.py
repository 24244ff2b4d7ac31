"""Point reads of many sessions at once through `plinth serve`: times of each, and the memory of the server at the start and at the end. And many writers.

    python -m bench.serving reads  --plinth target/release/plinth --folder bench-data/serving --sessions 200 --seconds 120
    python -m bench.serving writes --plinth target/release/plinth --folder bench-data/serving --sessions 32 --seconds 20 --rounds 3

needs adbc-driver-flightsql and pyarrow; `writes` the package plinth, too. Each session is a connection of the driver of ADBC. Those of `reads` read one row
by its key after the other, with `--pause` milliseconds between them. Those of `writes` insert a row, commit, and go on, in turns with as many threads of one
process that has the folder open itself; all rows that were acknowledged are counted at the end. The server, the driver and Python share the machine: what is
measured is all three.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import secrets
import statistics
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from adbc_driver_flightsql import dbapi as flightsql


class Server:
    """The program, serving a folder to one user."""

    def __init__(self, program: Path, folder: Path, memory: str) -> None:
        self.token = secrets.token_hex(32)
        command = [program, "serve", "--db", str(folder), "--listen", "127.0.0.1:0", "--memory", memory]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | {"PLINTH_TOKEN": self.token})
        assert self.process.stderr is not None
        address = re.search(r"listen=(\S+)", self.process.stderr.readline())
        assert address is not None
        self.uri = f"grpc://{address[1]}"
        threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self) -> None:
        assert self.process.stderr is not None
        for _ in self.process.stderr:
            pass

    def resident(self) -> int:
        """Bytes of the server in memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) * 1024

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


def reads(server: Server, rows: int, pause: float, until: float, seed: int, times: list[float], ready: threading.Barrier) -> None:
    """One session: reads by key until the time is over."""
    numbers = random.Random(seed)
    connection = flightsql.connect(server.uri, db_kwargs={"username": "owner", "password": server.token}, autocommit=True)
    cursor = connection.cursor()
    ready.wait()
    end = time.monotonic() + until
    time.sleep(numbers.random() * pause)
    while time.monotonic() < end:
        key = numbers.randrange(rows)
        begun = time.perf_counter()
        cursor.execute("SELECT name FROM t WHERE id = ?", (key,))
        answer = cursor.fetchall()
        times.append(time.perf_counter() - begun)
        assert answer == [(f"name {key}",)], (key, answer)
        time.sleep(pause)
    cursor.close()
    connection.close()


def measure_reads(given: argparse.Namespace) -> None:
    table = (
        "CREATE TABLE IF NOT EXISTS t (id BIGINT PRIMARY KEY, name TEXT); DELETE FROM t; "
        f"INSERT INTO t SELECT value, 'name ' || value FROM generate_series(0, {given.rows - 1})"
    )
    subprocess.run([given.plinth, "sql", "--db", given.folder, "-c", table], check=True, stdout=subprocess.DEVNULL)
    server = Server(given.plinth, given.folder, given.memory)
    empty = server.resident()
    times: list[list[float]] = [[] for _ in range(given.sessions)]
    ready = threading.Barrier(given.sessions + 1)
    arguments = (server, given.rows, given.pause / 1000, given.seconds)
    threads = [threading.Thread(target=reads, args=(*arguments, at, of, ready)) for at, of in enumerate(times)]
    for thread in threads:
        thread.start()
    ready.wait()
    held = [(0.0, server.resident())]
    begun = time.monotonic()
    while any(thread.is_alive() for thread in threads):
        time.sleep(1)
        held.append((time.monotonic() - begun, server.resident()))
    seconds = time.monotonic() - begun
    all_times = sorted(time for of in times for time in of)
    half = len(held) // 2
    print(f"{given.sessions} sessions, {len(all_times)} reads in {seconds:.0f} s: {len(all_times) / seconds:.0f} a second")
    for part in (0.5, 0.9, 0.99, 1):
        print(f"p{part * 100:g}: {all_times[min(int(len(all_times) * part), len(all_times) - 1)] * 1000:.1f} ms")
    print(f"memory: {empty >> 20} MiB without sessions, {held[0][1] >> 20} with all, {held[half][1] >> 20} half way, {held[-1][1] >> 20} at the end")
    time.sleep(1)
    print(f"memory once all have gone: {server.resident() >> 20} MiB")
    server.close()


def writes(connect: Callable[[], Any], table: str, at: int, until: float, counts: list[int], ready: threading.Barrier) -> None:
    """One session: a row for each transaction until the time is over."""
    connection = connect()
    cursor = connection.cursor()
    ready.wait()
    end = time.monotonic() + until
    while time.monotonic() < end:
        cursor.execute(f"INSERT INTO {table} VALUES (?, ?)", (at * 1_000_000_000 + counts[at], f"name {at}"))
        counts[at] += 1
    cursor.close()
    connection.close()


def committed(connect: Callable[[], Any], table: str, given: argparse.Namespace) -> float:
    """Commits a second of all sessions; an error if a row is missing or twice."""
    counts = [0] * given.sessions
    owner = connect()
    owner.cursor().execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, name TEXT)")
    ready = threading.Barrier(given.sessions + 1)
    arguments = (given.seconds, counts, ready)
    threads = [threading.Thread(target=writes, args=(connect, table, at, *arguments)) for at in range(given.sessions)]
    for thread in threads:
        thread.start()
    ready.wait()
    begun = time.monotonic()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - begun
    cursor = owner.cursor()
    cursor.execute(f"SELECT count(*) FROM {table}")
    found = cursor.fetchall()
    assert found == [(sum(counts),)], (found, sum(counts))
    cursor.execute(f"DROP TABLE {table}")
    owner.close()
    return sum(counts) / seconds


def measure_writes(given: argparse.Namespace) -> None:
    from plinth import dbapi

    ratios = []
    for at in range(given.rounds):
        server = Server(given.plinth, given.folder, given.memory)
        key = {"username": "owner", "password": server.token}
        remote = committed(lambda: flightsql.connect(server.uri, db_kwargs=key, autocommit=True), f"remote_{at}", given)
        server.close()
        local = committed(lambda: dbapi.connect(given.folder, autocommit=True), f"local_{at}", given)
        print(f"{given.sessions} writers: {remote:.0f} commits a second by the server, {local:.0f} of one process ({remote / local:.2f})", flush=True)
        ratios.append(remote / local)
    print(f"ratio: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["reads", "writes"])
    parser.add_argument("--plinth", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pause", type=float, default=1000, help="milliseconds between the reads of a session")
    parser.add_argument("--memory", default="1GB")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    {"reads": measure_reads, "writes": measure_writes}[given.what](given)


if __name__ == "__main__":
    main()
