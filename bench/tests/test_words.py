import math
from itertools import islice

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bench.answers import Query
from bench.data import words
from bench.data.floor import floor, log2_choose, words_bytes
from bench.data.words import COLUMN, Words, census, rows_of_words
from bench.engines import Engine
from bench.report import fill
from bench.search import Lines, Lookup
from bench.suites.dictionary import inside, questions
from bench.timing import differences

import numpy as np


def made(tmp_path, column, name="words.txt"):
    column.write(tmp_path / name)
    return tmp_path / name


def test_column_is_what_was_asked_for(tmp_path):
    text = made(tmp_path, Words(50_000, 700, seed=3))
    lines = text.read_text().split("\n")
    assert lines.pop() == "" and len(lines) == 50_000
    every = set(lines)
    assert len(every) == 700 and {len(w) for w in every} == set(range(4, 11))
    assert {c for w in every for c in w} == set("abcdefghijklmnopqrstuvwxyz")
    counts = np.unique(lines, return_counts=True)[1]
    # 71 of each, within six deviations.
    assert 20 < counts.min() and counts.max() < 122


def test_seed_decides_and_longer_columns_begin_alike(tmp_path, monkeypatch):
    one = made(tmp_path, Words(3_000, 100, 0.4, 7), "one").read_bytes()
    assert made(tmp_path, Words(3_000, 100, 0.4, 8), "other").read_bytes() != one
    assert made(tmp_path, Words(9_000, 100, 0.4, 7), "longer").read_bytes().startswith(one)
    monkeypatch.setattr(words, "PIECE", 999)
    assert made(tmp_path, Words(3_000, 100, 0.4, 7), "again").read_bytes() == one


def test_skew(tmp_path):
    uniform = census(made(tmp_path, Words(400_000, 500), "uniform"))
    skewed = census(made(tmp_path, Words(400_000, 500, 0.4), "skewed"))
    # Of weights whose logarithm has the variance v, entropy is v / 2 less, in nats.
    lost = math.log2(500) - skewed.entropy()
    assert math.log2(500) - uniform.entropy() < 0.002 and lost == pytest.approx(0.2 / math.log(2), rel=0.25)


def test_census_is_a_count(tmp_path, monkeypatch):
    text = tmp_path / "text"
    text.write_text("b\na\nb\nécu\nb", encoding="utf-8")
    for piece in (1, 2, 1000):
        monkeypatch.setattr(words, "PIECE", piece)
        monkeypatch.setattr(words, "TOGETHER", 2)
        found = census(text)
        assert found.words.to_pylist() == ["a", "b", "écu"] and found.counts.tolist() == [1, 3, 1]
        assert found.rows == 5 and [r.tolist() for r in rows_of_words(text, ["b", "x"])] == [[0, 2, 4], []]
        words.to_parquet(text, tmp_path / "p", together=2)
        assert pq.ParquetFile(tmp_path / "p").num_row_groups == -(-5 // (2 * piece))
        assert pq.read_table(tmp_path / "p")[COLUMN].to_pylist() == ["b", "a", "b", "écu", "b"]
    (tmp_path / "empty").touch()
    with pytest.raises(ValueError, match="no lines"):
        census(tmp_path / "empty")
    (tmp_path / "bytes").write_bytes(b"a\n\xff\n")
    with pytest.raises(pa.ArrowInvalid):
        census(tmp_path / "bytes")


def test_lines_meet_blocks_anywhere(tmp_path):
    text = made(tmp_path, Words(2_000_000, 50))
    assert text.stat().st_size > 8 << 20
    first, second = islice(words.pieces(text), 2)
    assert len(first) == words.PIECE and len(second) == 2_000_000 - words.PIECE
    assert "\n".join(first.to_pylist() + second.to_pylist()) + "\n" == text.read_text()


def test_choosing_is_exact():
    for letters, length, count in ((2, 3, 5), (26, 1, 26), (26, 4, 1000), (26, 10, 300), (7, 0, 1), (3, 2, 0)):
        exact = math.log2(math.comb(letters**length, count))
        assert log2_choose(letters, length, count) == pytest.approx(exact, rel=1e-11, abs=1e-7)
    # More than a number with a fraction can be.
    assert log2_choose(26, 400, 2) == pytest.approx(2 * 400 * math.log2(26) - 1)
    with pytest.raises(ValueError):
        log2_choose(2, 2, 5)


def test_floor():
    known = words.Census(pa.array(["aa", "ab", "b"]), np.array([2, 1, 1]), 11)
    # Two of four words of two letters, one of two of one letter.
    assert words_bytes([b"aa", b"ab", b"b"]) == pytest.approx((math.log2(6) + 1) / 8)
    told = floor(known)
    assert told["bytes"] == pytest.approx((4 * math.log2(3) + math.log2(6) + 1) / 8)
    assert told["with_skew"] == pytest.approx((4 * 1.5 + math.log2(6) + 1) / 8)


def test_expected_answers_are_counts_of_lines(tmp_path):
    text = made(tmp_path, Words(20_000, 300))
    lines, known = text.read_text().split(), census(text)
    by = {q.name: q for q in questions.queries(known)}
    word = by["equal-usual"].sql.split("'")[1]
    assert by["equal-usual"].expected == [[str(lines.count(word))]] and by["equal-absent"].expected == [["0"]]
    for letters in (2, 3, 4):
        some = sum(w.startswith(word[:letters]) for w in lines)
        assert by[f"prefix-{letters}"].expected == [[str(some)]]
    anywhere = sum(word[:3] in w for w in lines)
    assert by["contains"].expected == [[str(anywhere)]] and by["not-contains"].expected == [[str(20_000 - anywhere)]]
    _, low, _, high, _ = by["range"].sql.split("'")
    assert by["range"].expected == [[str(sum(low <= w <= high for w in lines))]]
    assert by["length"].expected == [[str(sum(map(len, lines)))]] and by["distinct"].expected == [["300"]]
    assert by["ends"].expected == [[min(lines), max(lines)]]
    assert [c for _, c in by["group"].expected] == [
        str(n) for n in sorted(map(lines.count, set(lines)), reverse=True)[:10]
    ]
    rows = {q.name: q for q in questions.lookups(known, text)}
    assert rows["rows-usual"].expected == [[str(n)] for n, w in enumerate(lines) if w == word]
    assert rows["rows-prefix"].expected == [[str(n)] for n, w in enumerate(lines) if w.startswith(word[:3])]


@pytest.mark.parametrize("key", ["grep", "rg"])
def test_programs_that_scan_lines(tmp_path, key):
    text = tmp_path / "text"
    text.write_text("abc\nabcd\nxabc\nabc\n")
    lines = Lines(key, key, text)
    if lines.missing():
        pytest.skip(lines.missing())
    asked = {"-c -x -F -e abc": "2", "-c -e ^abc": "3", "-c -F -e bc": "4", "-c -x -F -e b": "0"}
    for how, count in asked.items():
        assert lines.run(None, how).rows == [[count]], how
    assert lines.run(None, "-n -x -F -e abc", 2).rows == [["0"], ["3"]]


def test_rows_of_lookup():
    lookup = Lookup(None, "lookup", "", None, COLUMN)
    assert lookup.rows("row\n3\n17\n", "--equals a --rows") == [["3"], ["17"]]
    assert lookup.rows("count\n17\n", "--equals a --count") == [["17"]]


def test_what_is_expected_comes_before_plinth():
    class Ours(Engine):
        key, ours = "plinth", True

    query = Query("q", "", "", expected=[["5"]])
    wrong = differences([Ours(None, 1)], query, {"plinth": ([["4"]], 1)})
    assert "instead of the expected ['5']" in wrong["plinth"]
    assert differences([Ours(None, 1)], query, {"plinth": ([["5"]], 1)}) == {}


def test_times_of_the_example():
    told = "10 rows, 3 distinct\nvalue to code      351.0 ns, median      400.5\nprefixes of 2 letters: 7 rows each\n  count      1.5 ns, median 2.0\n"
    assert [(t["what"], t["least"], t["median"]) for t in inside.parse(told)] == [
        ("value to code", pytest.approx(351e-9), pytest.approx(400.5e-9)),
        ("prefixes of 2 letters, count", pytest.approx(1.5e-9), pytest.approx(2e-9)),
    ]


def test_pages_are_filled(tmp_path):
    page = tmp_path / "io.md"
    page.write_text("before\n<!-- figures: io -->\nold\n<!-- /figures: io -->\nafter\n")
    assert "replaced" in fill(page, "io", "new\n")
    assert page.read_text() == "before\n<!-- figures: io -->\nnew\n<!-- /figures: io -->\nafter\n"
    assert "left as it is" in fill(page, "sort", "new\n") and "no such page" in fill(tmp_path / "x.md", "io", "")
