"""The reference column: words of 4 to 10 lower-case letters, each row one of them, as text with one word a line.

A row's word is a function of the seed and the row's number, so the first rows of a longer column are the shorter one.
Lengths and letters are uniform; rows are too, or have weights whose logarithm is normal. All is done a piece of the
rows at a time: 140 million rows take no more memory than one million and the distinct words.
"""

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import numpy as np

from .text import mix, share

# What Plinth's import calls the only column of text without a header.
COLUMN = "column1"
PIECE = 1 << 20
SHORTEST, LONGEST = 4, 10
# What hashes are asked for, so that no two questions share a hash; a letter's is LETTER and its place.
LENGTH, WEIGHT, ANGLE, ROW, LETTER = range(5)
# Pieces whose words are counted before they are counted together.
TOGETHER = 16


@dataclass(frozen=True)
class Words:
    """A column to be made. `skew` is the variance of the logarithm of the rows' weights; nought is uniform."""

    rows: int
    distinct: int
    skew: float = 0.0
    seed: int = 1

    @property
    def name(self):
        return f"words-{self.rows}-{self.distinct}-{self.skew:g}-{self.seed}"

    def vocabulary(self):
        """The distinct words in the order they were drawn, as bytes padded with zeros."""
        found, at = np.empty(0, "S10"), 0
        while len(found) < self.distinct:
            numbers = np.arange(at, at + max(self.distinct - len(found), 1000))
            at = int(numbers[-1]) + 1
            found = np.concatenate([found, self._drawn(numbers)])
            _, first = np.unique(found, return_index=True)
            found = found[np.sort(first)]
        return found[: self.distinct]

    def _drawn(self, numbers):
        lengths = SHORTEST + mix(self.seed, LENGTH, numbers) % np.uint64(LONGEST - SHORTEST + 1)
        letters = np.zeros((len(numbers), LONGEST), np.uint8)
        for place in range(LONGEST):
            letter = mix(self.seed, LETTER + place, numbers) % np.uint64(26)
            letters[:, place] = np.where(place < lengths, ord("a") + letter, 0)
        return letters.view("S10").ravel()

    def codes(self):
        """The numbers of the rows' words, a piece at a time."""
        edges = None
        if self.skew:
            each = np.arange(self.distinct)
            radius = np.sqrt(-2 * np.log1p(-share(mix(self.seed, WEIGHT, each))))
            normal = radius * np.cos(2 * np.pi * share(mix(self.seed, ANGLE, each)))
            edges = np.cumsum(np.exp(np.sqrt(self.skew) * normal))
            edges /= edges[-1]
        for start in range(0, self.rows, PIECE):
            hashes = mix(self.seed, ROW, np.arange(start, min(start + PIECE, self.rows)))
            if edges is None:
                yield ((hashes >> np.uint64(32)) * np.uint64(self.distinct) >> np.uint64(32)).astype(np.int64)
            else:
                yield np.minimum(np.searchsorted(edges, share(hashes), side="right"), self.distinct - 1)

    def write(self, target):
        """Writes the column as text."""
        vocabulary = self.vocabulary()
        lengths = np.char.str_len(vocabulary)
        lines = np.zeros((self.distinct, LONGEST + 1), np.uint8)
        lines[:, :LONGEST] = vocabulary.view(np.uint8).reshape(self.distinct, LONGEST)
        lines[np.arange(self.distinct), lengths] = ord("\n")
        target = Path(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(target.name + ".partial")
        with open(partial, "wb") as out:
            for codes in self.codes():
                rows = lines[codes]
                out.write(rows[rows != 0].tobytes())
        partial.rename(target)


def pieces(text):
    """The lines of a text as Arrow arrays of PIECE rows; the last may have fewer."""
    kept, count = [], 0
    for array in _blocks(text):
        while count + len(array) >= PIECE:
            room = PIECE - count
            yield pa.concat_arrays([*kept, array.slice(0, room)])
            kept, count, array = [], 0, array.slice(room)
        if len(array):
            kept.append(array)
            count += len(array)
    if kept:
        yield pa.concat_arrays(kept)


def _blocks(text):
    rest = b""
    with open(text, "rb") as file:
        while True:
            block = file.read(8 << 20)
            if not block and rest:
                # A last line that nothing ends.
                block = b"\n"
            if not block:
                return
            block = rest + block
            end = block.rfind(b"\n") + 1
            rest = block[end:]
            if end:
                yield lines_of(block[:end])


def lines_of(block):
    """The lines of bytes that end with a newline; ValueError if they are not text."""
    data = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = ends - np.arange(len(ends))
    array = pa.StringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(data[data != ord("\n")]))
    array.validate(full=True)
    return array


def to_parquet(text, target, together=1, **options):
    """Writes the column as Parquet by pyarrow, row groups of so many times 2^20 rows."""
    partial = Path(target).with_name(Path(target).name + ".partial")
    schema = pa.schema([(COLUMN, pa.string())])
    with pq.ParquetWriter(partial, schema, **options) as writer:
        every = pieces(text)
        while group := list(islice(every, together)):
            writer.write_table(pa.table([pa.chunked_array(group)], schema=schema), row_group_size=together * PIECE)
    partial.rename(target)


@dataclass
class Census:
    """The naive count that every answer is held against: the distinct words, in the order of their bytes, and how
    often each occurs."""

    words: pa.Array
    counts: np.ndarray
    text_bytes: int

    @property
    def rows(self):
        return int(self.counts.sum())

    def count(self, mask):
        """The rows whose word a mask over the words holds."""
        return int(self.counts[np.asarray(mask, dtype=bool)].sum())

    def entropy(self):
        """Bits a row, of rows drawn independently."""
        shares = self.counts / self.counts.sum()
        return float(-(shares * np.log2(shares)).sum())


def census(text):
    """Counts the words of a text, generated or not."""
    whole, some = None, []

    def merged():
        tables = [whole] if whole is not None else []
        return pa.concat_tables(tables + some).group_by("word").aggregate([("n", "sum")]).rename_columns(["word", "n"])

    for array in pieces(text):
        found = pc.value_counts(array)
        some.append(pa.table({"word": found.field("values"), "n": found.field("counts")}))
        if len(some) == TOGETHER:
            whole, some = merged(), []
    if some:
        whole = merged()
    if whole is None:
        raise ValueError(f"{text}: no lines")
    whole = whole.set_column(0, "word", whole["word"].cast(pa.binary())).sort_by("word")
    return Census(whole["word"].combine_chunks().cast(pa.string()), whole["n"].to_numpy(), Path(text).stat().st_size)


def rows_of_words(text, wanted):
    """The numbers of the rows that hold each of some words, from nought."""
    wanted = pa.array(wanted, pa.string())
    found, start = [[] for _ in range(len(wanted))], 0
    for array in pieces(text):
        at = pc.index_in(array, wanted)
        rows = np.flatnonzero(at.is_valid())
        which = at.drop_null().to_numpy()
        for number, mine in enumerate(found):
            mine.append(rows[which == number] + start)
        start += len(array)
    return [np.concatenate(mine) for mine in found]
