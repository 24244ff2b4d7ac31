"""Queries on workers beside one process: answers, bytes that move, times; and workers that are killed, frozen and cut off.

    python -m bench.cluster answers --plinth target/release/plinth --tables bench-data/tpch-1
    python -m bench.cluster times   --plinth target/release/plinth --tables bench-data/tpch-1
    python -m bench.cluster faults  --plinth target/release/plinth --tables bench-data/tpch-1

`--tables` is a folder with the eight tables of TPC-H and, if it is there, ClickBench's `hits`, as `NAME.plinth`; those that are
missing are left out with the queries that name them. All processes are of this machine. `answers` asks everything of one process and
of 1, 2 and 4 workers and compares; `times` takes the best of some runs, with two threads for one process and for one worker, and four
workers of one thread each; `faults` ends a worker in each of some moments of 12 queries, and wants an error that names it or the right
answer, within the time that docs/guide/cluster.md promises, and no process and no file left behind.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent

# Seconds within which a query ends whose worker is lost, in whatever way.
PROMISED = 30
# Seconds that the longest query may take by itself, where a debug build runs it.
SLOW = 120
FAULTY = ["q01", "q03", "q04", "q05", "q07", "q09", "q10", "q13", "q16", "q18", "q21", "h32"]
MOMENTS = [0.0, 0.02, 0.1, 0.3, 0.7, 1.5]


def queries(tables: Path) -> dict[str, str]:
    """The 22 of TPC-H as q01 to q22, and the 43 of ClickBench as h0 to h42, whose tables are there."""
    found = {}
    scale = scale_of(tables)
    for path in sorted((HERE / "tpch").glob("q*.sql")):
        text = path.read_text().strip().rstrip(";")
        found[path.stem] = text.replace("0.0001\n", f"{0.0001 / scale:.10f}\n")
    name = ""
    for line in (ROOT / "tests/duckdb/queries/hits.sql").read_text().splitlines():
        if line.startswith("-- name: "):
            number = line.removeprefix("-- name: ").split()[0]
            name = f"h{number}" if number.isdigit() else ""
            if name:
                found[name] = ""
        elif name:
            found[name] += line + "\n"
    have_tpch = (tables / "lineitem.plinth").exists()
    have_hits = (tables / "hits.plinth").exists()
    return {key: text.strip() for key, text in found.items() if (have_tpch if key[0] == "q" else have_hits)}


def scale_of(tables: Path) -> float:
    match = re.search(r"tpch-([0-9.]+)", str(tables))
    return float(match[1]) if match else 1.0


class Worker:
    """A worker of this machine."""

    def __init__(self, program: Path, root: Path, threads: int, token: str, temporary: Path, memory: str = "2GB") -> None:
        command = [program, "worker", "--listen", "127.0.0.1:0", "--root", root, "--threads", str(threads), "--memory", memory]
        environment = os.environ | {"PLINTH_TOKEN": token, "TMPDIR": str(temporary)}
        self.process = subprocess.Popen([str(part) for part in command], stderr=subprocess.PIPE, text=True, env=environment)
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        found = re.search(r"listen=(\S+)", line)
        assert found is not None, line
        self.address = found[1]
        threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self) -> None:
        assert self.process.stderr is not None
        for _ in self.process.stderr:
            pass

    def connections(self) -> int:
        """Connections that it has, of those who asked it and of those whom it asked."""
        sockets = Path(f"/proc/{self.process.pid}/fd")
        count = 0
        for link in sockets.iterdir():
            try:
                count += os.readlink(link).startswith("socket:")
            except OSError:
                pass
        return count

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Relay:
    """Hands bytes on to a worker, until it is cut."""

    def __init__(self, target: str) -> None:
        host, port = target.rsplit(":", 1)
        self.target = (host, int(port))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.open: list[socket.socket] = []
        self.is_cut = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.is_cut:
                client.close()
                continue
            server = socket.create_connection(self.target)
            self.open += [client, server]
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._hand_on, args=(one, other), daemon=True).start()

    @staticmethod
    def _hand_on(one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(1 << 16):
                other.sendall(data)
        except OSError:
            pass
        for end in (one, other):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self) -> None:
        self.is_cut = True
        for end in self.open:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self) -> None:
        self.cut()
        self.listener.close()


class Session:
    """How the program is asked: alone, or with workers."""

    def __init__(self, program: Path, tables: Path, threads: int, workers: list[str], token: str) -> None:
        files = sorted(str(path) for path in tables.glob("*.plinth"))
        self.command = [str(program), "sql", *files, "--threads", str(threads), "--memory", "4GB"]
        if workers:
            self.command += ["--workers", ",".join(workers)]
        self.environment = os.environ | {"PLINTH_TOKEN": token}

    def start(self, query: str, *more: str) -> subprocess.Popen:
        command = [*self.command, *more, f"--command={query}"]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment)

    def ask(self, query: str, *more: str, timeout: float = SLOW) -> tuple[int, str, str]:
        process = self.start(query, *more)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return -1, "", f"no end within {timeout:g} s"
        return process.returncode, out, err

    def best(self, query: str, runs: int) -> float:
        code, _, err = self.ask(query, "--format", "csv", "--repeat", str(runs), "--timings", "json", timeout=SLOW * runs)
        assert code == 0, err
        return min(json.loads(err.strip().splitlines()[-1])["seconds"])

    def explained(self, query: str) -> str:
        code, out, err = self.ask(f"EXPLAIN ANALYZE {query}", "--format", "table")
        assert code == 0, err
        return out + err


def rows_of(text: str, query: str) -> list[tuple]:
    """The rows of CSV; of floating numbers nine digits; in any order unless the query says in which."""

    def value(cell: str):
        if re.fullmatch(r"-?\d+\.\d+(e[+-]?\d+)?", cell):
            return f"{float(cell):.8e}"
        return cell

    rows = [tuple(value(cell) for cell in row) for row in csv.reader(io.StringIO(text))]
    return rows if "order by" in query.lower() else sorted(rows)


def moved(text: str) -> tuple[str, int, bool]:
    """What a plan tells: bytes moved, stages, and whether workers had a part."""
    found = re.search(r"([0-9.,]+ \S*B) moved between processes", text)
    return (found[1] if found else "", len(set(re.findall(r"stage (\d+)", text))), "no worker has a part" not in text)


class Cluster:
    """Workers, and the sessions that ask them."""

    def __init__(self, options, many: int, threads: int, memory: str = "2GB") -> None:
        self.token = secrets.token_hex(32)
        self.temporary = tempfile.TemporaryDirectory()
        root = options.tables.resolve()
        self.workers = [Worker(options.plinth, root, threads, self.token, Path(self.temporary.name), memory) for _ in range(many)]
        self.session = Session(options.plinth, root, options.threads, [worker.address for worker in self.workers], self.token)

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_) -> None:
        for worker in self.workers:
            worker.close()
        self.temporary.cleanup()


def answers(options) -> int:
    alone = Session(options.plinth, options.tables.resolve(), options.threads, [], "")
    asked = {key: text for key, text in queries(options.tables).items() if not options.only or key in options.only}
    expected = {}
    for key, text in asked.items():
        code, out, err = alone.ask(text, "--format", "csv")
        assert code == 0, (key, err)
        expected[key] = rows_of(out, text)
    wrong = 0
    for many in options.many:
        with Cluster(options, many, options.threads) as cluster:
            for key, text in asked.items():
                code, out, err = cluster.session.ask(text, "--format", "csv")
                same = code == 0 and rows_of(out, text) == expected[key]
                wrong += not same
                size, stages, spread = moved(cluster.session.explained(text)) if code == 0 else ("", 0, False)
                state = "equal" if same else f"WRONG {err.strip()[:200]}"
                print(f"{many} workers  {key:4} {state:6} rows {len(expected[key]) - 1:6} moved {size or '0 B':>10} stages {stages}"
                      f"{'' if spread else '  (no worker)'}", flush=True)
    print(f"{wrong} wrong")
    return wrong


def times(options) -> int:
    asked = {key: text for key, text in queries(options.tables).items() if not options.only or key in options.only}
    alone = Session(options.plinth, options.tables.resolve(), 2, [], "")
    # One worker has the memory of one process, which joins are planned by.
    with Cluster(options, 1, 2, "4GB") as one, Cluster(options, 4, 1) as four:
        sums = [0.0, 0.0, 0.0]
        for key, text in asked.items():
            best = [session.best(text, options.runs) for session in (alone, one.session, four.session)]
            sums = [total + more for total, more in zip(sums, best)]
            print(f"{key:4} one process {best[0] * 1e3:9.1f} ms  one worker {best[1] * 1e3:9.1f} ms ({best[1] / best[0]:.2f})"
                  f"  four workers of a thread {best[2] * 1e3:9.1f} ms ({best[2] / best[0]:.2f})", flush=True)
        print(f"all  one process {sums[0]:9.2f} s   one worker {sums[1]:9.2f} s  ({sums[1] / sums[0]:.2f})"
              f"  four workers of a thread {sums[2]:9.2f} s  ({sums[2] / sums[0]:.2f})")
    return 0


def faults(options) -> int:
    known = queries(options.tables)
    asked = {key: known[key] for key in (options.only or FAULTY) if key in known}
    alone = Session(options.plinth, options.tables.resolve(), options.threads, [], "")
    expected = {key: rows_of(alone.ask(text, "--format", "csv")[1], text) for key, text in asked.items()}
    broken = 0
    outcomes: dict[str, list[float]] = {}
    for how in options.how:
        for key, text in asked.items():
            for moment in options.moments:
                broken += fault(options, how, key, text, moment, expected[key], outcomes)
    for what, seconds in sorted(outcomes.items()):
        print(f"{what}: {len(seconds)} times, the longest {max(seconds):.1f} s")
    print(f"{broken} broken promises")
    return broken


def fault(options, how: str, key: str, text: str, moment: float, expected: list[tuple], outcomes: dict[str, list[float]]) -> int:
    with Cluster(options, 3, 1) as cluster:
        relays = [Relay(worker.address) for worker in cluster.workers] if how == "cut" else []
        addresses = [relay.address for relay in relays] or [worker.address for worker in cluster.workers]
        session = Session(options.plinth, options.tables.resolve(), options.threads, addresses, cluster.token)
        idle = [worker.connections() for worker in cluster.workers]
        process = session.start(text, "--format", "csv", "--spread-bytes", "0")
        time.sleep(moment)
        victim = cluster.workers[1]
        began = time.monotonic()
        if how == "kill":
            victim.process.kill()
        elif how == "freeze":
            victim.process.send_signal(signal.SIGSTOP)
        else:
            relays[1].cut()
        try:
            out, err = process.communicate(timeout=SLOW)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            err = f"no end within {SLOW} s\n{err}"
        seconds = time.monotonic() - began
        what = "right answer"
        wrong = ""
        if process.returncode == 0:
            if rows_of(out, text) != expected:
                wrong = "another answer"
        else:
            what = "error"
            if addresses[1] not in err:
                wrong = f"the error does not name the worker: {err.strip()[:300]}"
        if seconds > PROMISED and not (what == "right answer" and seconds < SLOW):
            wrong = f"{what} after {seconds:.1f} s"
        # Those that are left have nothing to do with the query any more.
        others = [worker for worker in cluster.workers if worker is not victim]
        # Workers keep one connection each way for the next query. One that is cut off still has those that it made itself; those that a
        # frozen one made are given up once its system has answered nothing for a minute.
        until = time.monotonic() + (90 if how == "freeze" else PROMISED)
        kept = 3 if how == "cut" else 2
        while time.monotonic() < until:
            left = [worker.connections() - before for worker, before in zip(cluster.workers, idle) if worker in others]
            if max(left) <= kept:
                break
            time.sleep(0.2)
        else:
            wrong = wrong or f"connections are left: {left}"
        files = list(Path(cluster.temporary.name).iterdir())
        if files:
            wrong = wrong or f"files are left: {files[:3]}"
        for relay in relays:
            relay.close()
        outcomes.setdefault(f"{how}: {what}", []).append(seconds)
        print(f"{how:6} {key} at {moment:4.2f} s: {what} after {seconds:5.1f} s {('BROKEN: ' + wrong) if wrong else ''}", flush=True)
        return bool(wrong)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["answers", "times", "faults"])
    parser.add_argument("--plinth", type=Path, default=ROOT / "target/release/plinth")
    parser.add_argument("--tables", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=2, help="threads of each process of answers and faults")
    parser.add_argument("--many", type=int, nargs="+", default=[1, 2, 4], help="how many workers answer")
    parser.add_argument("--only", nargs="+", help="queries, such as q01 h32")
    parser.add_argument("--how", nargs="+", choices=["kill", "freeze", "cut"], default=["kill", "freeze", "cut"])
    parser.add_argument("--moments", type=float, nargs="+", default=MOMENTS, help="seconds from the start of a query to its fault")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    return {"answers": answers, "times": times, "faults": faults}[options.what](options)


if __name__ == "__main__":
    raise SystemExit(main())
