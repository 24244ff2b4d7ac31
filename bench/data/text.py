"""Texts in ever more variants: each text of a sample is a template, and a variant of it has some pieces replaced.

A piece is half a word, a short word, up to four digits or a percent escape. Replacements are drawn from the pieces of
the same kind in the same column, so a column keeps its alphabet, its words and its entropy, while new words and
identifiers arise. Variant 0 is the text itself. Everything is a function of the template and the variant: the same
pair is the same text anywhere in the data.
"""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

PIECES = re.compile(r"(?P<escape>%[0-9A-Fa-f]{2})|(?P<digits>\d{1,4})|(?P<word>[^\W\d_]+)|(?P<rest>[\W_])")
HOST = re.compile(r"[a-z]+://[^/?#%]*")
FIXED, ESCAPE, SHORT, HEAD, TAIL, DIGITS = 0, 1, 2, 3, 4, 5
# How likely a piece is replaced.
RATES = np.array([0.0, 0.25, 0.15, 0.30, 0.30, 0.60])


def mix(*numbers):
    """A 64-bit hash of numbers or arrays of them (splitmix64, folded)."""
    state = np.zeros(1, np.uint64)
    for number in numbers:
        state = state + np.asarray(number).astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state = state ^ (state >> np.uint64(31))
    return state


def share(hashes):
    """A hash as a number from 0 to 1."""
    return (hashes >> np.uint64(11)) / float(1 << 53)


def pieces(text):
    """The pieces of a text with their kinds; a host at its start stays whole."""
    host = HOST.match(text)
    start = host.end() if host else 0
    if host:
        yield FIXED, host[0]
    for found in PIECES.finditer(text, start):
        piece = found[0]
        if found.lastgroup == "word":
            if len(piece) <= 3:
                yield SHORT, piece
            else:
                middle = (len(piece) + 1) // 2
                yield HEAD, piece[:middle]
                yield TAIL, piece[middle:]
        else:
            yield {"escape": ESCAPE, "digits": DIGITS, "rest": FIXED}[found.lastgroup], piece


class Variants:
    """The templates of a list of distinct texts."""

    def __init__(self, texts, seed):
        self.seed = seed
        numbers, kinds, counts = {}, [], []
        codes = []
        for text in texts:
            before = len(codes)
            for kind, piece in pieces(text):
                codes.append(numbers.setdefault(piece, len(numbers)))
                kinds.append(kind)
            counts.append(len(codes) - before)
        self.codes, self.kinds = np.array(codes, np.int64), np.array(kinds, np.int8)
        self.starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        digits = [f"{number:0{width}}" for width in range(1, 5) for number in range(10**width)]
        self.digits_start = len(numbers)
        self.words = pa.array(list(numbers) + digits, pa.string())
        self.widths = np.array([len(piece) for piece in numbers] + [len(piece) for piece in digits])
        # Occurrences, so that what is frequent is drawn often.
        self.pools = {kind: self.codes[self.kinds == kind] for kind in (ESCAPE, SHORT, HEAD, TAIL)}

    def render(self, templates, variants):
        """The texts of pairs of a template and a variant, as a string array."""
        starts, counts = self.starts[templates], np.diff(self.starts)[templates]
        offsets = np.concatenate([[0], np.cumsum(counts)])
        owner = np.repeat(np.arange(len(templates)), counts)
        place = np.arange(offsets[-1]) - offsets[owner]
        at = starts[owner] + place
        codes, kinds = self.codes[at].copy(), self.kinds[at]
        dice = mix(self.seed, templates[owner], variants[owner], place)
        # One piece is always tried, lest short texts come out as they were.
        chosen = mix(self.seed, variants, templates) % np.maximum(counts, 1).astype(np.uint64)
        replace = (share(dice) < RATES[kinds]) | (place == chosen[owner].astype(np.int64))
        replace &= (kinds != FIXED) & (variants[owner] != 0)
        dice = mix(dice)
        for kind, pool in self.pools.items():
            here = np.flatnonzero(replace & (kinds == kind))
            if len(here):
                codes[here] = pool[(dice[here] % np.uint64(len(pool))).astype(np.int64)]
        here = np.flatnonzero(replace & (kinds == DIGITS))
        widths = self.widths[codes[here]]
        first = self.digits_start + (10**widths - 10) // 9
        codes[here] = first + (dice[here] % (10**widths).astype(np.uint64)).astype(np.int64)
        lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), self.words.take(pa.array(codes)))
        return pc.binary_join(lists, "")
