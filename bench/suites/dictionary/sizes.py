"""Bytes of the column in every form, beside the floor, and bits a row."""

import json
import shutil
import subprocess
import time

from ...data.floor import floor
from ...data.words import to_parquet
from ...timing import say

# (bits a row, what): figures of others, at 140 million rows and 976 thousand words, that were not measured here.
QUOTED = [(24.35, "earlier codec, quoted at 140 M rows, 976 k words"), (27.7, "WinRAR, quoted likewise")]
PARQUET = {
    "Parquet snappy, pyarrow's defaults": {"compression": "snappy"},
    "Parquet zstd 3": {"compression": "zstd", "compression_level": 3},
    "Parquet zstd 15, 64 MB dictionaries, 16 M rows a group": {
        "together": 16,
        "compression": "zstd",
        "compression_level": 15,
        "dictionary_pagesize_limit": 64 << 20,
    },
}
# Programs with what they are told before the text; each writes to standard output or, where it can't, to {out}.
COMPRESSORS = {
    "xz -9": ["xz", "-9", "-k", "-c", "-T1"],
    "zstd -19": ["zstd", "-19", "-q", "-c"],
    "7z -mx9": ["7z", "a", "-mx9", "-bd", "-y", "{out}"],
    "7z PPMd, order 6": ["7z", "a", "-m0=PPMd:o=6:mem=1g", "-bd", "-y", "{out}"],
}


def compressed(command, text, out):
    """Bytes that a program makes of the text, or a line that says why there are none."""
    if shutil.which(command[0]) is None:
        return f"no program {command[0]}"
    out.unlink(missing_ok=True)
    by_name = "{out}" in command
    command = [str(out) if part == "{out}" else part for part in command]
    with open("/dev/null" if by_name else out, "wb") as target:
        done = subprocess.run([*command, str(text)], stdout=target, stderr=subprocess.PIPE)
    if done.returncode != 0:
        return f"ended with {done.returncode}: {done.stderr.decode(errors='replace').strip()[:200]}"
    made = out.stat().st_size
    out.unlink()
    return made


def measure(column, options):
    """The table of sizes. What peers and compressors make is kept: it takes minutes and stays the same."""
    kept_in = column.folder / "sizes.json"
    kept = json.loads(kept_in.read_text()) if kept_in.exists() else {}
    scratch, skipped = column.folder / "scratch", {}
    scratch.mkdir(exist_ok=True)

    def keep(name, make):
        if name not in kept:
            started = time.perf_counter()
            made = make()
            if isinstance(made, str):
                skipped[name] = made
                say(f"  sizes: skipped: {name}, {made}")
                return
            kept[name] = {"bytes": made, "seconds": time.perf_counter() - started}
            kept_in.write_text(json.dumps(kept, indent=1) + "\n")
        add(name, kept[name]["bytes"], seconds=kept[name]["seconds"])

    rows, of_floor = column.census.rows, floor(column.census)
    found = []

    def add(name, count, **more):
        found.append({"name": name, "bytes": count, "bits": 8 * count / rows, **more})
        say(f"  sizes: {name}: {count:,.0f} bytes, {8 * count / rows:.2f} bits a row")

    files = column.bytes()
    add("floor", of_floor["bytes"])
    add("Plinth", files["plinth"])
    if "plinth-indexed" in files:
        add("Plinth with postings", files["plinth-indexed"])
    add("text", column.census.text_bytes)
    add("DuckDB 2.0's own file", files["duckdb"])
    add("Parquet zstd 3, dictionary pages of 64 MB", files["plinth-parquet"])

    def parquet(how):
        to_parquet(column.text, scratch / "words.parquet", **how)
        return (scratch / "words.parquet").stat().st_size

    for name, how in PARQUET.items():
        keep(name, lambda how=how: parquet(how))
    for name, command in COMPRESSORS.items():
        if options.compressors or name in kept:
            keep(name, lambda command=command: compressed(command, column.text, scratch / "words.compressed.7z"))
        else:
            skipped[name] = "takes minutes: ask for it with --compressors"
    shutil.rmtree(scratch)
    found += [{"name": name, "bytes": None, "bits": bits, "quoted": True} for bits, name in QUOTED]
    return {"floor": of_floor, "sizes": found, "skipped": skipped}
