"""Events of a chosen number of rows and of distinct keys, and tables of a chosen number of columns."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PIECE = 250_000
WIDE_PIECE = 20_000


def events(target, rows, distinct, files=1, seed=1):
    """Writes events: an id, a time, a key of `distinct` ones (some far more frequent), a measure and a count. Returns
    the files."""
    dice = np.random.default_rng(seed)
    keys = pa.array([f"/{n % 97:02}/item-{(n * 2654435761) % (1 << 32):010}" for n in range(distinct)])
    edges = np.linspace(0, rows, files + 1).astype(np.int64)
    many = files > 1
    target.parent.mkdir(parents=True, exist_ok=True)
    if many:
        target.mkdir(exist_ok=True)
    paths = []
    for number, (start, end) in enumerate(zip(edges, edges[1:])):
        path = target / f"part-{number:04}.parquet" if many else target
        schema = None
        writer = None
        for at in range(start, end, PIECE):
            count = int(min(PIECE, end - at))
            ids = np.arange(at, at + count)
            code = (distinct * dice.random(count) ** 2).astype(np.int64)
            at_us = 1_767_225_600_000_000 + ids * 250_000 + dice.integers(0, 200_000, count)
            table = pa.table(
                {
                    "id": ids,
                    "at": pa.array(at_us).cast(pa.timestamp("us")),
                    "k": keys.take(pa.array(code)),
                    "v": np.round(dice.gamma(2.0, 50.0, count), 2),
                    "n": dice.integers(0, 1000, count).astype(np.int32),
                }
            )
            if writer is None:
                schema = table.schema
                writer = pq.ParquetWriter(path, schema, compression="zstd", compression_level=3)
            writer.write_table(table)
        writer.close()
        paths.append(path)
    return paths


# Longer than any period below, so that every slice is there.
LONGEST = WIDE_PIECE + 4001


def number(column, row):
    return 7 * (column + row) % 1009


def text(column, row):
    return f"v{(column + row) % 211}"


class Values:
    """A column's values: of eight kinds in turn, by formulas that are periodic in the row, so that most are slices of
    arrays made once and the answer of a query is known without reading."""

    def __init__(self):
        every = range(LONGEST)
        self.periodic = {
            1: (1009, pa.array([number(0, i) for i in every], pa.int32())),
            2: (4001, pa.array([i % 4001 / 4 for i in every], pa.float64())),
            3: (211, pa.array([text(0, i) for i in every])),
            4: (3, pa.array([i % 3 == 0 for i in every])),
        }

    def batch(self, columns, start, count):
        rows = range(start, start + count)
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


def wide(path, columns, rows):
    """Writes a table of many columns, a piece of the rows at a time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    values, writer = Values(), None
    for start in range(0, rows, WIDE_PIECE):
        batch = values.batch(columns, start, min(WIDE_PIECE, rows - start))
        if writer is None:
            writer = pq.ParquetWriter(partial, batch.schema, compression="zstd", compression_level=1)
        writer.write_table(batch)
    writer.close()
    partial.rename(path)


def wide_question(columns, rows):
    """A query over two columns in the middle of a wide table, and its answer."""
    middle = columns // 2 // 8 * 8
    n, t = f"c{middle + 1:04}", f"c{middle + 3:04}"
    kept = [i for i in range(rows) if number(middle + 1, i) > 5]
    answer = [str(sum(number(middle + 1, i) for i in kept)), str(len({text(middle + 3, i) for i in kept}))]
    return f"select sum({n}) as s, count(distinct {t}) as d from wide where {n} > 5", answer
