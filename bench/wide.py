#!/usr/bin/env python3
"""A table of very many columns: what share of a Plinth file's metadata a query over two of them reads.

    wide.py PLINTH FOLDER [--columns 2000] [--rows 1000000]

The Parquet file is made in FOLDER on first use, a batch of rows at a time, imported, and asked once under EXPLAIN ANALYZE. The exit
code is 1 if the answer is wrong or more than --limit of the metadata was touched.
"""

import argparse
import csv
import io
import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from common import fail, plinth

BATCH = 20_000


# Longer than any period below, so that every slice is there.
LONGEST = BATCH + 4001


def number(column, row):
    return 7 * (column + row) % 1009


def text(column, row):
    return f"v{(column + row) % 211}"


class Values:
    """A column's values: of eight kinds in turn, by formulas that are periodic in the row, so that most are slices of arrays
    made once and the answer of a query is known without reading."""

    def __init__(self):
        import pyarrow as pa

        self.pa = pa
        every = range(LONGEST)
        self.periodic = {
            1: (1009, pa.array([number(0, i) for i in every], pa.int32())),
            2: (4001, pa.array([i % 4001 / 4 for i in every], pa.float64())),
            3: (211, pa.array([text(0, i) for i in every])),
            4: (3, pa.array([i % 3 == 0 for i in every])),
        }

    def batch(self, columns, start, count):
        pa, rows = self.pa, range(start, start + count)
        ids = pa.array(rows, pa.int64())
        holes = pa.array([None if i % 10 else i // 100 for i in rows], pa.int64())
        runs = pa.array([i // 5000 for i in rows], pa.int64())

        def values(column):
            kind = column % 8
            if kind in self.periodic:
                period, array = self.periodic[kind]
                return array.slice((column + start) % period, count)
            same = pa.repeat(pa.scalar(column, pa.int32()), count) if kind == 6 else None
            return {0: ids, 5: holes, 6: same, 7: runs}[kind]

        return pa.table([values(i) for i in range(columns)], names=[f"c{i:04}" for i in range(columns)])


def make(path, columns, rows):
    import pyarrow.parquet as pq

    partial = path.with_suffix(".partial")
    values, writer = Values(), None
    for start in range(0, rows, BATCH):
        count = min(BATCH, rows - start)
        batch = values.batch(columns, start, count)
        if writer is None:
            writer = pq.ParquetWriter(partial, batch.schema, compression="zstd", compression_level=1)
        writer.write_table(batch)
        print(f"\r{start + count:,} of {rows:,} rows", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    writer.close()
    partial.rename(path)


def counter(plan, name):
    """The sum of a counter over the scans of a plan; rounded to three digits."""
    units = {"": 1, "B": 1, "K": 1e3, "KB": 1024, "MB": 1 << 20, "GB": 1 << 30, "M": 1e6, "G": 1e9}
    found = re.findall(rf"\b{name}=([\d.]+)\s*([KMG]?B?)\b", plan)
    return sum(float(n) * units[u] for n, u in found) if found else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plinth", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--columns", type=int, default=2_000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--limit", type=float, default=0.02, help="largest share of the metadata [default: 0.02]")
    args = parser.parse_args()
    if args.columns < 16 or args.rows < 1:
        parser.error("at least 16 columns and 1 row")
    args.folder.mkdir(parents=True, exist_ok=True)
    name = f"wide_{args.columns}_{args.rows}"
    parquet, ours = args.folder / f"{name}.parquet", args.folder / f"{name}.plinth"
    program = args.plinth.resolve()
    if not parquet.exists():
        make(parquet, args.columns, args.rows)
    if not ours.exists():
        plinth(program, "import", "--quiet", parquet, "--to", ours)
    middle = args.columns // 2 // 8 * 8
    n, t = f"c{middle + 1:04}", f"c{middle + 3:04}"
    query = f"select sum({n}), count(distinct {t}) from {name} where {n} > 5"
    kept = [i for i in range(args.rows) if number(middle + 1, i) > 5]
    expected = f"{sum(number(middle + 1, i) for i in kept)},{len({text(middle + 3, i) for i in kept})}"
    answer = plinth(program, "sql", "--db", args.folder, "--format", "csv", "-c", query).stdout.splitlines()[1]
    if answer != expected:
        fail(f"{query}: {answer} instead of {expected}")
    plan = plinth(program, "sql", "--db", args.folder, "--format", "csv", "-c", f"explain analyze {query}").stdout
    plan = "\n".join(row[-1] for row in csv.reader(io.StringIO(plan)))
    # EXPLAIN ANALYZE rounds what was touched; the whole is exact.
    whole = json.loads(plinth(program, "inspect", "--json", ours).stdout)
    touched, metadata = counter(plan, "metadata_bytes"), whole.get("metadata_bytes")
    figures = {
        "columns": args.columns,
        "rows": args.rows,
        "parquet_bytes": parquet.stat().st_size,
        "plinth_bytes": ours.stat().st_size,
        "metadata_bytes": metadata,
        "metadata_bytes_touched": touched,
        "bytes_read": counter(plan, "bytes_read"),
    }
    print(json.dumps(figures, indent=1))
    if touched is None:
        fail("EXPLAIN ANALYZE has no counter metadata_bytes")
    if not metadata:
        fail("plinth inspect --json has no metadata_bytes of the file")
    print(f"{touched / metadata:.2%} of the metadata touched")
    if touched > args.limit * metadata:
        sys.exit(1)


if __name__ == "__main__":
    main()
