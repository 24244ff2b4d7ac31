"""Rows shaped like ClickBench's `hits`, of any number, made from a sample of a few ten thousand rows.

Sessions of the sample's users are drawn at random, moved to another time and day, given to other users and shuffled
in time, so that neighbours in the sample are no neighbours here. Their texts become variants (text.py) whose number
grows with the rows, as do users and addresses; hashes follow the texts they belong to; timings are jittered. All else
keeps the sample's values. The same sample, seed and number of rows give the same rows, in memory bounded by the rows
of one day.

Rows are made by parts, each some days of the month: a part depends on nothing but the sample, the seed and the number
of all rows, so that parts are made in any order, by several processes or on several machines. Users and variants are
drawn from what all parts share: a part has values of the others and values of its own, as a day has.
"""

import argparse
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .text import Variants, mix, share

DAYS = np.arange(15887, 15918)  # July 2013.
DAY, ZONE = 86_400, 4 * 3_600  # EventDate is Moscow's day.
PIECE = 250_000
ROW_GROUP = 1_000_000
PART_ROWS = 5_000_000
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


def quotas(rows):
    """How many of the rows each day gets: weekends fewer."""
    weights = np.where((DAYS + 3) % 7 >= 5, 0.8, 1.0)
    edges = np.round(np.cumsum(weights) / weights.sum() * rows).astype(np.int64)
    return np.diff(np.concatenate([[0], edges])).tolist()


@dataclass(frozen=True)
class Part:
    """Days that are made together: places in DAYS, the rows they have and the rows of the days before them."""

    days: range
    rows: int
    first_row: int


def parts(rows, most=PART_ROWS):
    """The parts of so many rows, in their order: days that follow each other and have at most `most` rows, or one day."""
    found, first, held, before = [], 0, 0, 0
    for place, quota in enumerate(quotas(rows)):
        if place > first and held + quota > most:
            found.append(Part(range(first, place), held, before))
            first, before, held = place, before + held, 0
        held += quota
    return [*found, Part(range(first, len(DAYS)), held, before)]


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

    def sessions(self, day, quota):
        """Draws a day's sessions: the dice as they lie then, sessions of the sample, their users, and where each ends."""
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
        return dice, session[:used], users[:used]

    def sessions_of(self, place):
        """How many sessions the day at a place in DAYS has."""
        quota = quotas(self.rows)[place]
        return len(self.sessions(DAYS[place], quota)[1]) if quota else 0

    def day(self, day, quota, first_session):
        """A day's rows in the order of time: their sample rows, sessions, users and times."""
        sample, (dice, session, users) = self.sample, self.sessions(day, quota)
        used, counts = len(session), sample.count[session]
        owner = np.repeat(np.arange(used), counts)[:quota]
        offsets = np.cumsum(counts) - counts
        source = sample.start[session][owner] + np.arange(quota) - offsets[owner]
        times = self.fixed["EventTime"]
        start = (times[sample.start[session]] + ZONE) % DAY + dice.integers(-1800, 1800, used)
        pace = dice.uniform(0.7, 1.4, used)[owner]
        second = start[owner] + ((times[source] - times[sample.start[session]][owner]) * pace).astype(np.int64)
        event = int(day) * DAY - ZONE + second % DAY
        order = np.argsort(event, kind="stable")
        return source[order], owner[order] + first_session, users[owner][order], event[order]

    def batches(self, part, sessions):
        """The rows of a part, in pieces, given the number of each day's sessions: a session's own variants bear its
        number in the month."""
        row = part.first_row
        for place in part.days:
            day, quota = DAYS[place], quotas(self.rows)[place]
            if quota == 0:
                continue
            columns = self.day(day, quota, sum(sessions[:place]))
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


def write(batches, target, schema, told):
    """Writes rows as Parquet: zstd of level 3, row groups of about a million rows. `told` is given how many are written."""
    partial = target.with_suffix(".partial")
    with pq.ParquetWriter(partial, schema, compression="zstd", compression_level=3) as writer:
        waiting, count = [], 0

        def flush():
            writer.write_table(pa.Table.from_batches(waiting), row_group_size=1 << 30)
            told(count)
            waiting.clear()

        for batch in batches:
            waiting.append(batch)
            count += batch.num_rows
            if sum(b.num_rows for b in waiting) >= ROW_GROUP:
                flush()
        if waiting:
            flush()
    partial.rename(target)


def tell(target, rows):
    """What tells of progress on a line of standard error."""
    return lambda count: print(f"\r{target.name}: {count:,} of {rows:,} rows", end="", file=sys.stderr, flush=True)


def make(sample, target, rows, seed=1):
    """Writes the rows as one Parquet file."""
    target = Path(target)
    hits = Hits(sample, rows, seed)
    sessions = [hits.sessions_of(place) for place in range(len(DAYS))]
    batches = (batch for part in parts(rows) for batch in hits.batches(part, sessions))
    write(batches, target, hits.schema, tell(target, rows))
    print(file=sys.stderr)


# What a process that makes parts has read once.
_hits = None


def _begin(sample, rows, seed):
    global _hits
    _hits = Hits(sample, rows, seed)


def _sessions_of(place):
    return _hits.sessions_of(place)


def _write_part(part, sessions, target):
    write(_hits.batches(part, sessions), target, _hits.schema, lambda count: None)
    return part.rows


def make_parts(sample, folder, rows, seed=1, processes=None, only=None, most=PART_ROWS):
    """Writes the rows as Parquet files of a folder, one a part, by some processes; those that are there stay. Returns
    the files of all parts, or of the `only` ones, by number."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    every = parts(rows, most)
    wrong = [number for number in only or [] if not 0 <= number < len(every)]
    if wrong:
        raise ValueError(f"there is no part {wrong[0]} of {rows:,} rows: parts are 0 to {len(every) - 1}")
    files = {number: folder / f"part-{number:04}.parquet" for number in only or range(len(every))}
    missing = [number for number, file in files.items() if not file.exists()]
    if not missing:
        return list(files.values())
    # A new interpreter each: threads of Arrow do not survive a fork.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes or os.cpu_count(), context, _begin, (str(sample), rows, seed)) as pool:
        sessions = list(pool.map(_sessions_of, range(len(DAYS))))
        wanted, count = sum(every[number].rows for number in missing), 0
        jobs = [pool.submit(_write_part, every[number], sessions, files[number]) for number in missing]
        for job in as_completed(jobs):
            count += job.result()
            tell(folder, wanted)(count)
    print(file=sys.stderr)
    return list(files.values())


def main():
    parser = argparse.ArgumentParser(prog="python -m bench.data.hits", description=__doc__.splitlines()[0])
    parser.add_argument("sample", type=Path, help="a Parquet file of hits, such as nano_hits.parquet")
    parser.add_argument("target", type=Path, help="the Parquet file to write, or with --parts the folder")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--parts", action="store_true", help="a file a part, of about five million rows each")
    parser.add_argument("--part", type=int, action="append", help="of the parts only this one; can be repeated")
    parser.add_argument("--processes", type=int, help="that make parts [default: one a core]")
    args = parser.parse_args()
    if args.parts or args.part:
        make_parts(args.sample, args.target, args.rows, args.seed, args.processes, args.part)
    else:
        make(args.sample, args.target, args.rows, args.seed)


if __name__ == "__main__":
    main()
