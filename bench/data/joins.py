"""One large table and tables of many sizes that it is joined with."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PIECE = 1 << 20
# Rows of the tables of keys, each key once.
SIZES = [1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000]
# Rows that a key has in tables where it has several.
SEVERAL = [4, 16]
# Rows of these tables, and keys of the one that most queries join with.
KEYS = 1_000_000


def tables(folder, rows, most, seed=1):
    """Writes them as Parquet, unless they are there; returns the files by table.

    `big` has `rows` rows and for each size n a column `k` with its zeros (`k3` of 1,000 rows) whose values are keys of
    that table, evenly; `skewed` favours the first of a million as 1/rank does; `text`, `sparse`, `money` and `day` say
    the same as `k6`, or of days as `k4`, in other types; `v` is a number of two digits. A table `build3` of 1,000 rows
    has `k`, in no order, `part`, evenly from 0 to below a million, and `v`."""
    folder.mkdir(parents=True, exist_ok=True)
    sizes = [size for size in SIZES if size <= most]
    files = {"big": folder / "big.parquet"}
    if not files["big"].exists():
        write(files["big"], rows, lambda start, count: big(start, count, sizes, seed))
    for size in sizes:
        name = f"build{len(str(size)) - 1}"
        files[name] = folder / f"{name}.parquet"
        if not files[name].exists():
            write(files[name], size, lambda start, count, size=size: build(start, count, size))
    keys = min(KEYS, most)
    for several in SEVERAL:
        name = f"several{several}"
        files[name] = folder / f"{name}.parquet"
        if not files[name].exists():
            write(files[name], keys, lambda start, count, several=several: repeated(start, count, keys, several))
    return files


def write(path, rows, piece):
    partial, writer = path.with_suffix(".partial"), None
    for start in range(0, rows, PIECE):
        table = piece(start, min(PIECE, rows - start))
        if writer is None:
            writer = pq.ParquetWriter(partial, table.schema, compression="zstd", compression_level=3)
        writer.write_table(table)
    writer.close()
    partial.rename(path)


def mixed(numbers):
    """Numbers of 64 bits that look like chance, each as often as the given."""
    words = numbers.astype(np.uint64)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def in_other_types(keys):
    """The same keys as text, as numbers far apart, as decimals."""
    digits = pa.array(mixed(keys) >> np.uint64(4)).cast(pa.string())
    return {
        "text": digits,
        "sparse": (mixed(keys) >> np.uint64(1)).astype(np.int64),
        "money": pa.array(keys).cast(pa.decimal128(19, 0)).cast(pa.decimal128(18, 2)),
    }


def day(keys):
    return pa.array((keys % 10_000).astype(np.int32)).cast(pa.date32())


def big(start, count, sizes, seed):
    dice = np.random.default_rng([seed, start])
    columns = {"id": np.arange(start, start + count)}
    for size in sizes:
        columns[f"k{len(str(size)) - 1}"] = dice.integers(0, size, count)
    keys = min(KEYS, max(sizes))
    rank = np.exp(dice.random(count) * np.log(keys)).astype(np.int64)
    columns["skewed"] = np.minimum(rank - 1, keys - 1)
    of_keys = columns.get("k6", columns[f"k{len(str(max(sizes))) - 1}"])
    columns |= in_other_types(of_keys)
    columns["day"] = day(columns["k4"] if "k4" in columns else of_keys)
    columns["v"] = dice.integers(10, 100, count).astype(np.int32)
    return pa.table(columns)


def build(start, count, size):
    # Each key once: the factor has none in common with a power of ten.
    keys = (np.arange(start, start + count) * 7919 + 13) % size
    columns = {"k": keys, "part": (mixed(keys) % np.uint64(1_000_000)).astype(np.int64)}
    columns |= in_other_types(keys)
    columns["day"] = day(keys)
    columns["v"] = (keys % 90 + 10).astype(np.int32)
    return pa.table(columns)


def repeated(start, count, keys, several):
    """Rows of a table whose keys have several rows each, of `keys` rows in all."""
    rows = np.arange(start, start + count)
    k = (rows * 7919 % keys) // several
    return pa.table({"k": k, "v": (rows % 90 + 10).astype(np.int32)})
