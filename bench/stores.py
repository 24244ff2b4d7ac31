"""Stores of rows, asked by lines: processes of their own, and DuckDB as its Python package has it."""

import json
import statistics
import subprocess
import threading
import time
from pathlib import Path

from .process import Failed

PEERS = Path(__file__).parent / "rows" / "target" / "release" / "rows"
COLUMNS = "id bigint primary key, a bigint, b bigint, c double, d integer, e integer, f varchar, g varchar"
# `mix` of bench/rows/src/workload.rs in DuckDB's SQL: 64 bits that wrap around.
WRAPPED = "(({id})::hugeint * 6364136223846793005 + 1442695040888963407) % 18446744073709551616"
SIGNED = "(case when w >= 9223372036854775808 then w - 18446744073709551616 else w end)::bigint"
ROWS = f"""select id, m as a, id // 1000 as b, (m % 1000000)::double / 100 as c, (m % 100)::integer as d,
    (m % 100000)::integer as e, 'city ' || m % 5000 as f, 'note ' || m as g from (
        select id, xor(n, n >> 31) & 140737488355327 as m from (
            select id, {SIGNED} as n from (select {{id}} as id, {WRAPPED} as w from range({{first}}, {{last}}) of(i))))"""


def mix(n):
    n = (n * 0x5851F42D4C957F2D + 0x14057B7EF767814F) & (2**64 - 1)
    n -= 2**64 if n >= 2**63 else 0
    return (n ^ (n >> 31)) & 0x7FFFFFFFFFFF


def row(key):
    """A row as it is made of its key."""
    m = mix(key)
    return (key, m, key // 1000, m % 1_000_000 / 100, m % 100, m % 100_000, f"city {m % 5000}", f"note {m}")


def arrow(rows):
    import pyarrow

    names = [column.split()[0] for column in COLUMNS.split(", ")]
    return pyarrow.table([list(values) for values in zip(*rows)], names=names)


class Store:
    """A process that answers commands, a line each (`workload.rs` says which)."""

    def __init__(self, key, label, command):
        self.key, self.label, self.load_seconds = key, label, None
        self.process = subprocess.Popen(
            [str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def ask(self, *command):
        """What the store answers: seconds and the like."""
        try:
            self.process.stdin.write(" ".join(map(str, command)) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise Failed(f"{self.label}, {command[0]}: {self.process.stderr.read()[-600:]}")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class DuckDB:
    """The same commands; what it returns is compared after the time was taken."""

    key, label = "duckdb", "DuckDB 2.0, Python"

    def __init__(self, folder):
        import duckdb

        folder.mkdir(parents=True, exist_ok=True)
        self.connection = duckdb.connect(folder / "rows.duckdb")
        self.connection.execute(f"create table t ({COLUMNS})")
        self.rows = self.next = 0

    def ask(self, what, *numbers):
        return getattr(self, what)(*numbers)

    def load(self, rows):
        began = time.perf_counter()
        self.connection.execute("insert into t " + ROWS.format(id="i * 2", first=0, last=rows))
        self.connection.execute("checkpoint")
        self.connection.execute("prepare point as select * from t where id = $1")
        self.rows = self.next = rows
        return {"seconds": time.perf_counter() - began, "right": True}

    def keys(self, start, end, seed):
        wrapped = (seed << 32) & (2**64 - 1)
        return [mix(wrapped + i) % self.rows * 2 for i in range(start, end)]

    def get(self, count, seed):
        keys, found = self.keys(0, count, seed), []
        began, cpu = time.perf_counter(), time.process_time()
        for key in keys:
            found.append(self.connection.execute(f"execute point({key})").fetchone())
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        return {"seconds": seconds, "cpu": cpu, "right": found == [row(key) for key in keys]}

    def index(self):
        began = time.perf_counter()
        self.connection.execute("create index by_a on t (a)")
        self.connection.execute("checkpoint")
        seconds = time.perf_counter() - began
        self.connection.execute("prepare by_value as select * from t where a = $1")
        return {"seconds": seconds, "right": True}

    def find(self, count, seed):
        wanted, found = [row(key) for key in self.keys(0, count, seed)], []
        began, cpu = time.perf_counter(), time.process_time()
        for one in wanted:
            found.append(self.connection.execute(f"execute by_value({one[1]})").fetchone())
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        return {"seconds": seconds, "cpu": cpu, "right": found == wanted}

    def many(self, count, lot, seed):
        seconds, cpu, right = 0.0, 0.0, True
        for start in range(0, count, lot):
            keys = self.keys(start, min(count, start + lot), seed)
            began, used = time.perf_counter(), time.process_time()
            sql = f"select * from t where id in ({','.join(map(str, keys))})"
            found = self.connection.execute(sql).to_arrow_table()
            seconds, cpu = seconds + time.perf_counter() - began, cpu + time.process_time() - used
            right &= sorted(zip(*(c.to_pylist() for c in found.columns))) == sorted({row(key) for key in keys})
        return {"seconds": seconds, "cpu": cpu, "right": right}

    def commit(self, writers, commits, lot):
        first, self.next = self.next, self.next + writers * commits * lot
        # What comes is made before.
        lots = [[row(k * 2) for k in range(start, start + lot)] for start in range(first, self.next, lot)]
        lots = [arrow(rows) if lot > 1 else rows[0] for rows in lots]
        took = []

        def write(mine):
            cursor = self.connection.cursor()
            for rows in mine:
                began = time.perf_counter()
                if lot > 1:
                    cursor.register("added", rows)
                    cursor.execute("insert into t select * from added")
                else:
                    cursor.execute("insert into t values (?, ?, ?, ?, ?, ?, ?, ?)", rows)
                took.append(time.perf_counter() - began)

        each = [lots[writer * commits : (writer + 1) * commits] for writer in range(writers)]
        threads = [threading.Thread(target=write, args=(mine,)) for mine in each]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.perf_counter() - began
        found = self.connection.execute(f"select * from t where id >= {first * 2} and id < {self.next * 2} order by id")
        right = found.fetchall() == [row(k * 2) for k in range(first, self.next)]
        return {"seconds": seconds, "median": statistics.median(took), "right": right}

    def close(self):
        self.connection.close()
