"""The fewest bytes a column of words can take: codes of its rows, and the set of its words."""

import math

import numpy as np


def log2_choose(letters, length, count):
    """log2 of the ways to choose `count` of the letters^length words of a length, to about ten digits.

    The difference of three log-gammas would lose them: the words there could be are many more than those there are.
    """
    every = letters**length
    if not 0 <= count <= every:
        raise ValueError(f"{count} words of {length} letters, of {every} there can be")
    # every (every - 1) ... (every - count + 1) / count!
    taken = np.log1p(-np.arange(count) * (1 / every)).sum() / math.log(2)
    return count * length * math.log2(letters) + float(taken) - math.lgamma(count + 1) / math.log(2)


def words_bytes(words):
    """Bytes of a set of words as likely as any other of as many words of each length, over the bytes they use."""
    data = np.frombuffer(b"".join(words), np.uint8)
    letters = max(len(np.unique(data)), 1)
    lengths = np.bincount([len(word) for word in words])
    return sum(log2_choose(letters, length, int(count)) for length, count in enumerate(lengths) if count) / 8


def floor(census):
    """The floor in bytes: n log2(distinct) / 8 and the set; and with the rows' entropy in place of log2(distinct)."""
    words = [word.encode() for word in census.words.to_pylist()]
    of_words = words_bytes(words)
    codes = census.rows * math.log2(len(words)) / 8
    entropy = census.rows * census.entropy() / 8
    return {"bytes": codes + of_words, "words": of_words, "codes": codes, "with_skew": entropy + of_words}
