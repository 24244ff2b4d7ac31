"""Files: their bytes, and how to have them in the page cache or out of it."""

import os
import subprocess
from pathlib import Path


def listed(source):
    """The Parquet files of a table: one, or those of a list."""
    return [source] if isinstance(source, (str, Path)) else list(source)


def files_of(path):
    path = Path(path)
    return sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]


def size(paths):
    return sum(file.stat().st_size for path in paths for file in files_of(path))


def warm(paths):
    """Reads files, so that they are in the page cache."""
    piece = bytearray(1 << 20)
    for path in paths:
        for file in files_of(path):
            with open(file, "rb", buffering=0) as open_file:
                while open_file.readinto(piece):
                    pass


def drop(paths):
    """Asks the kernel to forget the cached pages of files; returns the share of their bytes that stayed, or None if
    that can't be known (fincore, of util-linux, tells)."""
    every = [file for path in paths for file in files_of(path)]
    for file in every:
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
    try:
        told = subprocess.run(["fincore", "-n", "-b", "-o", "RES", *map(str, every)], capture_output=True, text=True)
    except OSError:
        return None
    if told.returncode != 0:
        return None
    return sum(map(int, told.stdout.split())) / max(sum(file.stat().st_size for file in every), 1)
