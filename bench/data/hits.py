"""Rows shaped like ClickBench's `hits`, of any number, made from a sample of a few ten thousand rows.

Sessions of the sample's users are drawn at random, moved to another time and day, given to other users and shuffled
in time, so that neighbours in the sample are no neighbours here. Their texts become variants (text.py) whose number
grows with the rows, as do users and addresses; hashes follow the texts they belong to; timings are jittered. All else
keeps the sample's values. The same sample, seed and number of rows give the same rows, in memory bounded by the rows
of one day.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .text import Variants, mix, share

DAYS = np.arange(15887, 15918)  # July 2013.
DAY, ZONE = 86_400, 4 * 3_600  # EventDate is Moscow's day.
PIECE = 250_000
ROW_GROUP = 1_000_000
ROWS_OF_SESSION = 4

# Shares of a session's texts that stay the sample's own, and of no other; the others are shared, few of
# them often.
TEXTS = {"page": (0.30, 0.36), "title": (0.70, 0.10), "referer": (0.30, 0.40), "phrase": (0.20, 0.65)}
SHARED = 1 << 20

DEVICE = """
    JavaEnable OS UserAgent ResolutionWidth ResolutionHeight ResolutionDepth FlashMajor FlashMinor FlashMinor2
    NetMajor NetMinor UserAgentMajor UserAgentMinor IsMobile MobilePhone MobilePhoneModel WindowClientWidth
    WindowClientHeight SilverlightVersion1 SilverlightVersion2 SilverlightVersion3 SilverlightVersion4
    BrowserLanguage BrowserCountry
""".split()
PERSON = ["Age", "Sex", "Income", "Interests"]
TIMINGS = ["DNSTiming", "ConnectTiming", "ResponseStartTiming", "ResponseEndTiming", "FetchTiming"]


class Sample:
    """The sample's columns and its sessions, each a range of rows of one user, with the users they belong to."""

    def __init__(self, path, seed):
        self.table = pq.read_table(path).combine_chunks()
        wrong = {n for n in ("UserID", "HID", "EventTime") if n not in self.table.column_names}
        if wrong or self.table.num_rows < 100:
            raise ValueError(
                f"{path}: not a sample of hits: {self.table.num_rows} rows, without {sorted(wrong) or 'nothing'}"
            )
        self.table = self.table.sort_by([("UserID", "ascending"), ("EventTime", "ascending"), ("WatchID", "ascending")])
        rows = self.table.num_rows
        user, page, time = self.numbers("UserID"), self.numbers("HID"), self.numbers("EventTime")
        new_user = np.diff(user) != 0
        chance = np.random.default_rng(seed).random(rows - 1) < 1 / (ROWS_OF_SESSION / 2)
        cut = new_user | (np.diff(time) > 600) | (chance & (np.diff(page) != 0))
        self.start = np.concatenate([[0], np.flatnonzero(cut) + 1])
        self.count = np.diff(np.concatenate([self.start, [rows]]))
        self.user_ids = user[np.concatenate([[0], np.flatnonzero(new_user) + 1])]
        self.user = np.searchsorted(self.user_ids, user[self.start])
        self.user_start = np.searchsorted(self.user, np.arange(len(self.user_ids)))
        self.user_count = np.bincount(self.user)

    def numbers(self, column):
        return self.table[column].combine_chunks().to_numpy(zero_copy_only=False)

    def codes(self, *columns):
        """The distinct texts of some columns, and for each column which of them its rows are."""
        every = (
            pa.chunked_array([c for name in columns for c in self.table[name].chunks])
            .combine_chunks()
            .dictionary_encode()
        )
        codes = every.indices.to_numpy().astype(np.int64)
        return every.dictionary.to_pylist(), np.split(codes, len(columns))


class Hits:
    """The plan of the rows: users and sessions of each day, and how a session's rows are made."""

    def __init__(self, sample, rows, seed):
        self.seed, self.rows = seed, rows
        self.sample = Sample(sample, seed)
        sample = self.sample
        self.schema = sample.table.schema.remove_metadata()
        self.users = max(int(1.2 * rows / sample.count.mean()), len(sample.user_ids))
        urls, (self.url, self.referer) = sample.codes("URL", "Referer")
        originals, (self.original,) = sample.codes("OriginalURL")
        titles, (self.title,) = sample.codes("Title")
        phrases, (self.phrase,) = sample.codes("SearchPhrase")
        self.texts = [Variants(t, mix(seed, i)) for i, t in enumerate((urls, originals, titles, phrases))]
        self.fixed = {
            n: sample.numbers(n) for n in self.schema.names if not pa.types.is_string(self.schema.field(n).type)
        }

    def quotas(self):
        """How many rows each day gets: weekends fewer."""
        weights = np.where((DAYS + 3) % 7 >= 5, 0.8, 1.0)
        edges = np.round(np.cumsum(weights) / weights.sum() * self.rows).astype(np.int64)
        return np.diff(np.concatenate([[0], edges]))

    def day(self, day, quota, first_session):
        """A day's rows in the order of time: their sample rows, sessions, users and times; and the sessions used."""
        sample, dice = self.sample, np.random.default_rng([self.seed, int(day)])
        drawn = int(quota / sample.count.mean() * 1.2) + 100
        while True:
            often = dice.random(drawn) < 0.1
            users = np.where(often, dice.integers(0, self.users // 500 + 1, drawn), dice.integers(0, self.users, drawn))
            # A user behaves as one of the sample, drawn by sessions; the first are those of the sample.
            like = sample.user[(mix(self.seed, users) % np.uint64(len(sample.user))).astype(np.int64)]
            like = np.where(users < len(sample.user_ids), np.minimum(users, len(sample.user_ids) - 1), like)
            session = sample.user_start[like] + (dice.random(drawn) * sample.user_count[like]).astype(np.int64)
            ends = np.cumsum(sample.count[session])
            if ends[-1] >= quota:
                break
            drawn *= 2
        used = int(np.searchsorted(ends, quota)) + 1
        session, users, counts = session[:used], users[:used], sample.count[session[:used]]
        owner = np.repeat(np.arange(used), counts)[:quota]
        offsets = np.cumsum(counts) - counts
        source = sample.start[session][owner] + np.arange(quota) - offsets[owner]
        times = self.fixed["EventTime"]
        start = (times[sample.start[session]] + ZONE) % DAY + dice.integers(-1800, 1800, used)
        pace = dice.uniform(0.7, 1.4, used)[owner]
        second = start[owner] + ((times[source] - times[sample.start[session]][owner]) * pace).astype(np.int64)
        event = int(day) * DAY - ZONE + second % DAY
        order = np.argsort(event, kind="stable")
        return source[order], owner[order] + first_session, users[owner][order], event[order], used

    def batches(self):
        """The rows, in pieces."""
        sessions = row = 0
        for day, quota in zip(DAYS, self.quotas()):
            if quota == 0:
                continue
            *columns, used = self.day(day, quota, sessions)
            sessions += used
            for at in range(0, quota, PIECE):
                source, session, user, event = (c[at : at + PIECE] for c in columns)
                yield self.piece(day, row, source, session, user, event)
                row += len(source)

    def variant(self, kind, session, code):
        """Which variant a session sees of its texts: the same one of the same text."""
        own, unique = TEXTS[kind]
        family = "page" if kind == "title" else kind
        dice = mix(self.seed, len(family), session, code)
        u = share(dice)
        shared = np.exp(share(mix(dice)) * np.log(SHARED)).astype(np.int64)
        return np.where(u < own, 0, np.where(u > 1 - unique, SHARED * 2 + session, shared))

    def text(self, which, template, variant):
        pairs, inverse = np.unique(np.stack([template, variant], 1).view("i8,i8").ravel(), return_inverse=True)
        made = self.texts[which].render(pairs["f0"].astype(np.int64), pairs["f1"].astype(np.int64))
        return made.take(pa.array(inverse.ravel()))

    def piece(self, day, row, source, session, user, event):
        sample, seed, fixed = self.sample, self.seed, self.fixed
        url, referer = self.url[source], self.referer[source]
        # A referer that is a page of the same session is the same text.
        url_variant = self.variant("page", session, url)
        is_page = np.isin(referer, self.url)
        referer_variant = np.where(
            is_page, self.variant("page", session, referer), self.variant("referer", session, referer)
        )
        title_variant = self.variant("title", session, url)
        phrase = self.phrase[source]
        made = {
            "URL": self.text(0, url, url_variant),
            "Referer": self.text(0, referer, referer_variant),
            "OriginalURL": self.text(1, self.original[source], url_variant),
            "Title": self.text(2, self.title[source], title_variant),
            "SearchPhrase": self.text(3, phrase, self.variant("phrase", session, phrase)),
            "EventTime": event,
            "EventDate": np.full(len(source), day, np.uint16),
            "WatchID": (
                (mix(seed, 1, np.arange(row, row + len(source))) >> np.uint64(2) | np.uint64(1 << 62)).astype(np.int64)
            ),
        }
        moved = event - fixed["EventTime"][source]
        for name in ("LocalEventTime", "ClientEventTime"):
            made[name] = fixed[name][source] + moved
        known = user < len(sample.user_ids)
        made["UserID"] = np.where(known, sample.user_ids[np.where(known, user, 0)], mix(seed, 2, user).astype(np.int64))
        for name in ("ClientIP", "RemoteIP"):
            old = fixed[name][source]
            made[name] = (old & ~0xFFF) | (mix(seed, 3, user, old) & np.uint64(0xFFF)).astype(np.int64)
        first = fixed["FUniqID"][source]
        made["FUniqID"] = np.where(first == 0, 0, (mix(seed, 4, user, first) >> np.uint64(1)).astype(np.int64))
        page = fixed["HID"][source]
        made["HID"] = np.where(page == 0, 0, (mix(seed, 5, session, page) & np.uint64((1 << 30) - 1)).astype(np.int64))
        for name, variant in (("URLHash", url_variant), ("RefererHash", referer_variant)):
            old = fixed[name][source]
            made[name] = np.where(variant == 0, old, mix(seed, 6, old, variant).astype(np.int64))
        for number, name in enumerate(TIMINGS):
            old = fixed[name][source]
            factor = 0.8 + 0.4 * share(mix(seed, 7, number, np.arange(row, row + len(source))))
            made[name] = np.where((old == 0) | (old == 30_000), old, np.maximum(old * factor, 1).astype(np.int64))
        groups = {}
        for number, names in ((8, DEVICE), (9, PERSON)):
            # Half the users have another's device, and half another's person: their combinations grow.
            dice = mix(seed, number, user)
            other = (dice % np.uint64(sample.table.num_rows)).astype(np.int64)
            rows = np.where(share(mix(dice)) < 0.5, other, source)
            groups |= {name: rows for name in names}
        columns = []
        for field in self.schema:
            values = made.get(field.name)
            if values is None:
                columns.append(sample.table[field.name].combine_chunks().take(pa.array(groups.get(field.name, source))))
            elif isinstance(values, np.ndarray):
                columns.append(pa.array(values).cast(field.type))
            else:
                columns.append(values.cast(field.type))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def make(sample, target, rows, seed=1):
    """Writes the rows as Parquet (zstd 3, row groups of a million rows)."""
    target = Path(target)
    hits = Hits(sample, rows, seed)
    partial = target.with_suffix(".partial")
    waiting, count = [], 0
    with pq.ParquetWriter(partial, hits.schema, compression="zstd", compression_level=3) as writer:
        for batch in hits.batches():
            waiting.append(batch)
            count += batch.num_rows
            if sum(b.num_rows for b in waiting) >= ROW_GROUP or count == rows:
                writer.write_table(pa.Table.from_batches(waiting), row_group_size=1 << 30)
                waiting = []
                print(f"\r{target.name}: {count:,} of {rows:,} rows", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    partial.rename(target)


def main():
    parser = argparse.ArgumentParser(prog="python -m bench.data.hits", description=__doc__.splitlines()[0])
    parser.add_argument("sample", type=Path, help="a Parquet file of hits, such as nano_hits.parquet")
    parser.add_argument("target", type=Path, help="the Parquet file to write")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    make(args.sample, args.target, args.rows, args.seed)


if __name__ == "__main__":
    main()
