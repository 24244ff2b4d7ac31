"""What the benchmarks share: running Plinth, digests of answers, the machine's name."""

import hashlib
import json
import os
import platform
import re
import statistics
import subprocess
import sys
from pathlib import Path


def fail(text):
    sys.exit(f"error: {text}")


def machine():
    """What a figure stands beside."""
    try:
        cpu = next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
    except (OSError, StopIteration):
        cpu = platform.processor() or platform.machine()
    return {"cpu": cpu, "cores": os.cpu_count(), "memory_gb": round(memory() / 1e9, 1), "system": platform.platform()}


def memory():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def plinth(program, *args, **more):
    done = subprocess.run([program, *map(str, args)], capture_output=True, text=True, encoding="utf-8", **more)
    if done.returncode != 0:
        fail(f"plinth {' '.join(map(str, args))[:200]}: {done.stderr.strip()}")
    return done


def timed(program, database, query, threads, repeat):
    """Rows of a query as CSV, and the seconds of each of its runs in one process."""
    options = ["--db", database, "--threads", threads, "--repeat", repeat, "--timings", "json", "--format", "csv"]
    done = plinth(program, "sql", *options, input=query)
    return done.stdout, json.loads(done.stderr.strip().splitlines()[-1])["seconds"]


FRACTION = re.compile(r"-?\d+\.(\d+)")


def in_order(rows):
    """Rows of text cells sorted, by what is exact first, so that rounding can't change which rows meet."""

    def key(row):
        numbers = [FRACTION.fullmatch(c) is not None for c in row]
        exact = [c for c, is_number in zip(row, numbers) if not is_number]
        return exact, [float(c) for c, is_number in zip(row, numbers) if is_number]

    return sorted(rows, key=key)


def digest(rows):
    """A digest of rows in any order, byte for byte."""
    return hashlib.sha256("\x1e".join("\x1f".join(row) for row in in_order(rows)).encode()).hexdigest()


def agree(left, right):
    """Whether two engines answer alike: in exactly the same text, but for numbers with a fraction, which may differ by 1e-9 or by
    one unit of the last of at least four decimal places (engines give averages and quotients of decimals different places)."""

    def same(a, b):
        x, y = FRACTION.fullmatch(a), FRACTION.fullmatch(b)
        if a == b or not x or not y:
            return a == b
        places = min(len(x[1]), len(y[1]))
        gap = abs(float(a) - float(b))
        return gap <= 1e-9 * abs(float(a)) if places < 4 else gap <= max(1e-9 * abs(float(a)), 10.0**-places)

    pairs = list(zip(in_order(left), in_order(right)))
    return len(left) == len(right) and all(len(a) == len(b) and all(map(same, a, b)) for a, b in pairs)


def median(values):
    return statistics.median(values)


def spread(values):
    """From the fastest to the slowest, as a share of the median."""
    return (max(values) - min(values)) / median(values)


def geometric_mean(values):
    return statistics.geometric_mean(values)


def parquet_to_parquet(source, target):
    """Rewrites a Parquet file by pyarrow with zstd level 3 and otherwise its defaults, a batch of rows at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(source)
    # As many rows as pyarrow's default row group holds, so that the groups are what write_table would make.
    batches = file.iter_batches(batch_size=1 << 20)
    partial = Path(f"{target}.partial")
    with pq.ParquetWriter(partial, file.schema_arrow, compression="zstd", compression_level=3) as writer:
        for batch in batches:
            writer.write_table(pa.Table.from_batches([batch]))
    partial.rename(target)
