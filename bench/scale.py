"""What bounds a question of 10^12 rows on 100 nodes: a simulation from costs that were measured on few.

    python -m bench.scale measure --plinth target/release/plinth --tables bench-data/tpch-1   # writes bench/scale.json
    python -m bench.scale simulate --docs docs                                                 # writes the table of docs/design/scale.md

`measure` asks each question of one process with one thread: its processor time, the bytes that its scans read and the memory that it held; then of 2 and
of 4 workers, for the bytes that move. `--program` names another program for the workers, if the one that is timed has none. `simulate` multiplies: work
and bytes by rows, what moves by what it is made of, and divides them by nodes whose speeds and loads differ. Nothing of it was run at that size.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .cluster import Cluster, moved, queries

HERE = Path(__file__).parent
COSTS = HERE / "scale.json"

# Twelve questions; of which table the rows are, and how what moves grows: "fixed" (groups that rows add nothing to), "groups" (distinct values, of
# which more rows have more, to the power of 0.8) or "rows".
QUESTIONS = {
    "q01": ("lineitem", "fixed", "few groups of all rows"),
    "q06": ("lineitem", "fixed", "one sum of few rows"),
    "q03": ("lineitem", "rows", "two joins, groups by a key, the first 10"),
    "q05": ("lineitem", "rows", "five joins, few groups"),
    "q09": ("lineitem", "rows", "five joins, a filter of text, few groups"),
    "q13": ("orders", "rows", "an outer join, groups of groups"),
    "q18": ("lineitem", "rows", "groups by the key of orders, joins"),
    "q21": ("lineitem", "rows", "a table joined with itself three times"),
    "h15": ("hits", "groups", "groups by user, the first 10"),
    "h16": ("hits", "groups", "groups by user and text, the first 10"),
    "h33": ("hits", "groups", "groups by URL, the first 10"),
    "h32": ("hits", "rows", "a group for nearly each row, the first 10"),
}


@dataclass(frozen=True)
class Node:
    """A machine that is assumed: none of these figures was measured."""

    cores: int = 32
    memory: float = 256e9
    drive: float = 4e9  # bytes a second
    network: float = 3e9  # bytes a second each way: 25 Gbit/s
    request: float = 8e6  # bytes of a request to a store
    price_of_requests: float = 0.4e-6
    price: float = 2.5  # an hour
    failures: float = 1 / (90 * 24)  # an hour
    # How much of its processor's time is had where 32 threads share memory and caches.
    scaling: float = 0.7


def measure(options) -> int:
    tables = options.tables.resolve()
    costs = {}
    for key, text in queries(tables).items():
        if key not in QUESTIONS:
            continue
        table = QUESTIONS[key][0]
        once, many = asked(options, tables, text, 1), asked(options, tables, text, 1 + options.runs)
        plain = asked(options, tables, "SELECT 1", 1)
        plan = program(options, tables, f"EXPLAIN ANALYZE VERBOSE {text}", "--threads", "1", "--format", "csv")[0]
        read = sum(number(size) for size in re.findall(r"bytes_read=([0-9.]+ ?[kKMGB]*)", plan))
        rows = int(program(options, tables, f"SELECT count(*) FROM {table}", "--format", "csv")[0].split()[-1])
        costs[key] = {
            "rows": rows,
            "cpu": (many["cpu"] - once["cpu"]) / options.runs,
            "read": read,
            "memory": max(0, once["memory"] - plain["memory"]),
            "moved": {},
        }
        print(key, costs[key], flush=True)
    options.plinth, options.threads = options.program or options.plinth, 2
    options.tables = (options.moving or options.tables).resolve()
    for key in costs:
        counted = f"SELECT count(*) FROM {QUESTIONS[key][0]}"
        costs[key]["rows of moved"] = int(program(options, options.tables, counted, "--format", "csv")[0].split()[-1])
    for many in (2, 4):
        with Cluster(options, many, 1) as cluster:
            for key, text in queries(options.tables).items():
                if key in costs:
                    size, _, _ = moved(cluster.session.explained(text))
                    costs[key]["moved"][many] = number(size)
                    print(many, key, size, flush=True)
    COSTS.write_text(json.dumps(costs, indent=1) + "\n")
    return 0


def program(options, tables: Path, text: str, *more: str):
    command = [str(options.plinth), "sql", *sorted(str(path) for path in tables.glob("*.plinth")), *more, f"--command={text}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    assert status == 0, command
    return out, usage


def asked(options, tables: Path, text: str, runs: int) -> dict[str, float]:
    _, usage = program(options, tables, text, "--threads", "1", "--repeat", str(runs), "--format", "csv")
    return {"cpu": usage.ru_utime + usage.ru_stime, "memory": usage.ru_maxrss * 1024}


def number(size: str) -> float:
    """A size as it is printed."""
    found = re.match(r"([0-9.,]+)\s*([kKMG]?)", size or "0")
    assert found is not None
    return float(found[1].replace(",", "")) * {"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}[found[2]]


def moves(cost: dict, growth: str, factor: float, nodes: int) -> tuple[float, float]:
    """Bytes that go by key, and bytes of parts of groups of each node. With N workers the first is R (1 - 1/N), the second P N."""
    two, four = cost["moved"]["2"], cost["moved"]["4"]
    # m2 = R/2 + 2 P, m4 = 3 R/4 + 4 P.
    by_key = max(0.0, (2 * two - four) / 0.25)
    parts = max(0.0, (two - by_key / 2) / 2)
    if by_key == 0:
        parts = four / 4
    grown = {"fixed": 1.0, "groups": factor**0.8, "rows": factor}[growth]
    # What each node has of groups is bounded by its rows: nodes that are more have fewer.
    each = {"fixed": parts * nodes, "groups": parts * grown, "rows": parts * grown}[growth]
    return by_key * grown * (1 - 1 / nodes), each


def slowest(nodes: int, rounds: int = 400) -> float:
    """How much longer the last node works than the middle one: loads up to a tenth apart, speeds a tenth apart, one node in 100 at half of its speed."""
    dice, total = random.Random(1), 0.0
    for _ in range(rounds):
        times = []
        for _ in range(nodes):
            load = 1 + dice.uniform(-0.1, 0.1)
            speed = math.exp(dice.gauss(0, 0.1)) * (0.5 if dice.random() < 0.01 else 1)
            times.append(load / speed)
        times.sort()
        total += times[-1] / times[len(times) // 2]
    return total / rounds


def row(key: str, cost: dict, rows: float, nodes: int, node: Node, late: float) -> dict:
    _, growth, about = QUESTIONS[key]
    factor = rows / cost["rows"]
    processor = cost["cpu"] * factor / (nodes * node.cores * node.scaling)
    drive = cost["read"] * factor / (nodes * node.drive)
    store = cost["read"] * factor / (nodes * node.network)
    by_key, parts = moves(cost, growth, rows / cost["rows of moved"], nodes)
    network = (by_key + parts) / (nodes * node.network)
    held = cost["memory"] * {"fixed": 1.0, "groups": factor**0.8, "rows": factor}[growth] / nodes
    # What is more than memory goes to the drive and comes back.
    spilled = max(0.0, held - 0.6 * node.memory)
    spill = 2 * spilled / node.drive
    work = {"processors": processor, "drives": drive, "network": network, "spilling": spill}
    bound = max(work, key=work.get)
    warm = max(processor, drive, network) * late + spill
    cold = max(processor, store, network) * late + spill
    hours = cold / 3600
    expected = nodes * node.failures * hours
    again = math.expm1(expected) / expected if expected > 1e-9 else 1.0
    requests = cost["read"] * factor / node.request
    better = "Plinth"
    if spilled > 0 and hours * again > 0.5:
        better = "Spark or Ballista"
    elif spilled > 0 or again > 1.1:
        better = "either"
    return {
        "question": f"{key}: {about}",
        "bound by": bound,
        "warm": span(warm),
        "cold": span(cold),
        "processor hours": f"{cost['cpu'] * factor / 3600:,.0f}",
        "read": size(cost["read"] * factor),
        "requests": f"{requests:,.0f}",
        "moved": size(by_key + parts),
        "held by a node": size(held),
        "last over middle node": f"{late:.1f}",
        "tried": f"{again:.2f}",
        "price, cold": f"{hours * nodes * node.price * again + requests * node.price_of_requests * again:,.2f}",
        "better": better,
    }


def span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def size(count: float) -> str:
    for unit, of in (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= of:
            return f"{count / of:.3g} {unit}"
    return f"{count / 1e3:.3g} kB"


def simulate(options) -> int:
    costs, node = json.loads(COSTS.read_text()), Node()
    late = slowest(options.nodes)
    rows = [row(key, costs[key], options.rows, options.nodes, node, late) for key in QUESTIONS if key in costs]
    heads = list(rows[0])
    lines = ["| " + " | ".join(heads) + " |", "|---|---|" + "--:|" * (len(heads) - 3) + "---|"]
    lines += ["| " + " | ".join(line.values()) + " |" for line in rows]
    measured = [
        "",
        "From these costs (one thread of this machine; bytes that moved between 2 and between 4 workers):",
        "",
        "| question | rows | processor, ns a row | read, bytes a row | held, MB | moved of rows | by 2 workers | by 4 workers |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for key in QUESTIONS:
        if key in costs:
            cost = costs[key]
            measured.append(
                f"| {key} | {cost['rows']:,} | {cost['cpu'] / cost['rows'] * 1e9:.1f} | {cost['read'] / cost['rows']:.1f} "
                f"| {cost['memory'] / 1e6:.0f} | {cost['rows of moved']:,} | {size(cost['moved']['2'])} | {size(cost['moved']['4'])} |"
            )
    text = "\n".join(lines + measured)
    if options.docs:
        page = options.docs / "design" / "scale.md"
        begin, end = "<!-- figures: scale -->", "<!-- /figures: scale -->"
        before, _, rest = page.read_text().partition(begin)
        with tempfile.NamedTemporaryFile("w", dir=page.parent, delete=False) as out:
            out.write(f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}")
        os.replace(out.name, page)
        os.chmod(page, 0o644)
    else:
        print(text)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["measure", "simulate"])
    parser.add_argument("--plinth", type=Path, default=HERE.parent / "target/release/plinth")
    parser.add_argument("--program", type=Path, help="the program of the workers, if it is another one")
    parser.add_argument("--tables", type=Path)
    parser.add_argument("--moving", type=Path, help="smaller tables for what moves, which any build tells alike")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rows", type=float, default=1e12)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--docs", type=Path)
    options = parser.parse_args()
    return {"measure": measure, "simulate": simulate}[options.what](options)


if __name__ == "__main__":
    raise SystemExit(main())
