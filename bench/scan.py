"""Scans by the example program `scan`: files read one way at a time, without an engine above."""

import json
from dataclasses import dataclass

from . import process

BUILD = "cargo build --release -p plinth-format --example scan"


@dataclass(frozen=True)
class Way:
    """A way to read: an `--io` and what to do without."""

    key: str
    title: str
    io: str
    without: str = ""
    # Whether values are turned round, as if they were stored in the other byte order.
    swap: bool = False


@dataclass
class Scan:
    """What one run of a scan told: figures of one pass over the files, the median of its passes."""

    digest: int
    bytes: float
    seconds: float
    # Processor time of the whole process over its passes, so the start of it is in here too.
    cpu: float
    # The share of the bytes that should have been in the page cache and were not.
    waited: float
    # Bytes that the device gave, wanted or not.
    fetched: float
    counters: dict
    memory: dict


def find(program):
    path = program.parent / "examples" / "scan"
    if not path.is_file():
        raise process.Failed(f"no {path}: build it beside the program with `{BUILD}`")
    return path


def run(scan, files, way, columns=None, *, threads=1, repeat=1, touch=False, within=None):
    """One run; `within` makes a command that runs in a control group of one that does not."""
    command = [scan, *files, "--io", way.io, "--threads", threads, "--repeat", repeat]
    command += ["--without", way.without] if way.without else []
    command += ["--columns", columns] if columns else []
    command += ["--swap"] if way.swap else []
    command += ["--touch"] if touch else []
    done = process.run(within(command) if within else command)
    told = json.loads(done.stdout)
    if len(told["digests"]) != 1:
        raise process.Failed(f"{way.title}: one pass over the files is not like the other")
    read = sum(told[f"{kind}_bytes"] for kind in ("cached", "queued", "direct"))
    seconds = sorted(told["seconds"])
    return Scan(
        digest=told["digests"][0],
        bytes=read / repeat,
        seconds=seconds[len(seconds) // 2],
        cpu=done.cpu / repeat,
        waited=told["queued_bytes"] / max(read, 1),
        fetched=done.fetched / repeat,
        counters={name: told[name] for name in ("slabs", "mapped_bytes", "extents")},
        memory=done.memory,
    )
