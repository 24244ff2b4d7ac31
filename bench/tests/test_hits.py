"""Rows of the shape of hits: like their sample, of their seed, the same however they are made."""

import hashlib

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from bench.data import hits
from bench.suites.axes import slope

import numpy as np

GROWING = ("UserID", "URL", "Title", "Referer", "SearchPhrase")
ROWS, PART_ROWS = 40_000, 6_000


@pytest.fixture(scope="session")
def whole(sample, tmp_path_factory):
    file = tmp_path_factory.mktemp("hits") / "hits.parquet"
    hits.make(sample, file, ROWS)
    return pq.read_table(file)


@pytest.mark.parametrize("rows", [1, 31, 999, 300_000, 5_000_000, 10_000_000, 100_000_000])
@pytest.mark.parametrize("most", [1, 60_000, hits.PART_ROWS])
def test_parts_are_all_days_in_order(rows, most):
    quotas, parts = hits.quotas(rows), hits.parts(rows, most)
    assert sum(quotas) == rows and [place for part in parts for place in part.days] == list(range(len(hits.DAYS)))
    for part in parts:
        assert part.rows == sum(quotas[place] for place in part.days) and part.first_row == sum(quotas[: part.days[0]])
        assert part.rows <= most or len(part.days) == 1 or sum(map(bool, (quotas[place] for place in part.days))) == 1


def test_parts_are_the_rows_of_one_file(sample, whole, tmp_path):
    made = {}
    for processes in (1, 2):
        made[processes] = hits.make_parts(sample, tmp_path / str(processes), ROWS, 1, processes, most=PART_ROWS)
        assert len(made[processes]) == len(hits.parts(ROWS, PART_ROWS)) > 4
    one, two = ([file.read_bytes() for file in files] for files in made.values())
    assert one == two, "the same bytes whatever the processes"
    assert pa.concat_tables(map(pq.read_table, made[1])).equals(whole)
    (alone,) = hits.make_parts(sample, tmp_path / "alone", ROWS, 1, 1, only=[3], most=PART_ROWS)
    assert alone.read_bytes() == one[3], "a part needs no other"
    with pytest.raises(ValueError, match="no part 99"):
        hits.make_parts(sample, tmp_path / "none", ROWS, only=[99])


def test_parts_that_are_there_stay(sample, tmp_path):
    first, second = hits.make_parts(sample, tmp_path, 2_000, processes=1, most=1_000)[:2]
    first.write_bytes(b"kept")
    second.unlink()
    hits.make_parts(sample, tmp_path, 2_000, processes=1, most=1_000)
    assert first.read_bytes() == b"kept" and pq.read_table(second).num_rows == hits.parts(2_000, 1_000)[1].rows


def test_rows_are_of_their_seed(sample, whole, tmp_path):
    hits.make(sample, tmp_path / "other.parquet", ROWS, seed=2)
    other = pq.read_table(tmp_path / "other.parquet")
    assert other.num_rows == ROWS and not other["WatchID"].equals(whole["WatchID"])
    urls = set(whole["URL"].unique().to_pylist())
    shared = urls & set(other["URL"].unique().to_pylist())
    assert 0 < len(shared) < 0.7 * len(urls), "another seed has texts of its own, and the sample's"


def test_rows_keep_their_meaning(whole):
    """The suite's rows are those that figures were taken of."""
    digest = hashlib.sha256()
    for name in ("UserID", "EventTime", "WatchID"):
        digest.update(whole[name].to_numpy().tobytes())
    assert digest.hexdigest()[:16] == "a537475008f05344"


def test_distinct_values_grow_with_heavy_tails(sample, whole, tmp_path):
    hits.make(sample, tmp_path / "few.parquet", ROWS // 4)
    few = pq.read_table(tmp_path / "few.parquet")
    for name in GROWING:
        counts = [(t.num_rows, len(t[name].unique())) for t in (few, whole)]
        assert 0.5 < slope(counts) < 1, f"{name} grows as {counts}"
        often = np.sort(whole[name].combine_chunks().value_counts().field("counts").to_numpy())[::-1]
        assert (often < often.mean()).mean() > 0.6, f"{name} has no tail of what is rare"
        assert often[: len(often) // 100 + 1].sum() > 0.05 * ROWS, f"{name} has nothing that is frequent"


def test_distinct_values_do_not_repeat_part_by_part(whole):
    days = [whole.filter(pc.equal(whole["EventDate"], int(day))) for day in hits.DAYS[:8]]
    for name in GROWING:
        seen, new = set(), []
        for day in days:
            values = set(day[name].unique().to_pylist())
            new.append(len(values - seen) / len(values))
            seen |= values
        assert min(new) > 0.2, f"{name}: a day has hardly a value of its own: {new}"
        assert max(new[4:]) < 0.98, f"{name}: days share nothing: {new}"


def test_hits_are_like_their_sample(tmp_path, sample):
    one, two, many = tmp_path / "one.parquet", tmp_path / "two.parquet", tmp_path / "many.parquet"
    hits.make(sample, one, 20_000)
    hits.make(sample, two, 20_000)
    hits.make(sample, many, 80_000)
    from_sample, few, more = pq.read_table(sample), pq.read_table(one), pq.read_table(many)
    assert few.equals(pq.read_table(two)), "the same seed makes the same rows"
    assert few.schema.equals(from_sample.schema) and few.num_rows == 20_000 and more.num_rows == 80_000
    for name in from_sample.column_names:
        if len(from_sample[name].unique()) > 1 and name not in ("EventDate", "CounterID"):
            assert len(more[name].unique()) > 1, f"{name} became constant"
    for name in ("UserID", "URL", "Title", "Referer", "SearchPhrase"):
        assert len(more[name].unique()) > 2 * len(few[name].unique()) * 0.7, f"{name} does not grow"
    pairs = len(set(zip(more["URL"].to_pylist(), more["URLHash"].to_pylist())))
    assert pairs < 1.1 * len(more["URLHash"].unique()), "a hash belongs to its URL"
    days, times = more["EventDate"].to_numpy(), more["EventTime"].to_numpy()
    assert (np.diff(times) >= 0).all() and ((times + hits.ZONE) // hits.DAY == days).all()
