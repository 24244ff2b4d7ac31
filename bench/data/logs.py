"""Rows as services write them, an object of text, numbers and objects a line: keys that are missing, nulls, escapes, any script.

A row is a function of the seed and its number.
"""

import json
import random

LEVELS = ["info"] * 12 + ["warn"] * 3 + ["error"]
SERVICES = ["checkout", "search", "auth", "картотека", "カート", "müller-api"]
WORDS = (
    'connection reset by peer while reading response header from upstream timed out after retry "quoted" path\\to\\file '
    "пользователь не найден é ü 日本 slow query took too long user logged in cache miss key expired token refreshed"
).split(" ")


def row(seed, number):
    of = random.Random(seed * 1_000_003 + number)
    text = " ".join(of.choices(WORDS, k=of.randint(2, 14)))
    found = {
        "at": f"2024-{of.randint(1, 12):02}-{of.randint(1, 28):02}T{of.randint(0, 23):02}:{of.randint(0, 59):02}:{of.randint(0, 59):02}Z",
        "level": of.choice(LEVELS),
        "service": of.choice(SERVICES),
        "message": text,
        "request": {
            "id": f"{of.getrandbits(64):016x}",
            "user": None if of.random() < 0.1 else of.randint(1, 1_000_000),
            "client": {"address": f"10.{of.randint(0, 255)}.{of.randint(0, 255)}.{of.randint(0, 255)}", "port": of.randint(1024, 65535)},
        },
        "status": of.choice([200] * 9 + [404, 500]),
        "seconds": round(of.expovariate(4), 6),
        "bytes": of.randint(0, 1 << 24),
        "retry": of.random() < 0.05,
    }
    if of.random() < 0.2:
        found["error"] = {"kind": of.choice(["io", "timeout", "parse"]), "stack": text[:40]}
    return found


def write(file, rows, seed):
    """Writes so many rows, unless they are there."""
    if not file.exists():
        partial = file.with_suffix(".partial")
        with partial.open("w") as out:
            for number in range(rows):
                out.write(json.dumps(row(seed, number), ensure_ascii=False, separators=(",", ":")) + "\n")
        partial.rename(file)
    return file
