"""What became slower from one run of the harness to another, and in which stage.

    python -m bench compare BEFORE AFTER

Both are folders with figures, or their `figures.json`. A query's ratio is its median after over the median before, freed of the
machine's own change: of how much the peers, which are the same programs in both, took longer over the same queries. A query
changed for sure if its slowest run of one side is faster than the fastest of the other. Profiles say where: the stage whose processor
time grew most, or shrank most.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

NOTABLE = 1.05


def load(path):
    path = Path(path)
    return json.loads((path / "figures.json" if path.is_dir() else path).read_text())


def queries(figures):
    """Records by suite, part and name; those that were measured."""
    found = {}
    for suite in figures["suites"]:
        for record in suite.get("queries", []):
            if "engines" in record:
                found[(suite["suite"], record.get("part", ""), record["name"])] = record["engines"]
    return found


def warm(engines, key):
    return engines.get(key, {}).get("warm")


def drift(before, after, ours="plinth"):
    """How much longer the same peers took over the same queries, in the geometric mean; 1 if there are none."""
    ratios = []
    for name in before.keys() & after.keys():
        for key in before[name].keys() & after[name].keys():
            a, b = warm(before[name], key), warm(after[name], key)
            # Plinth's program over Parquet changes with it.
            if not key.startswith(ours) and a and b:
                ratios.append(b["median"] / a["median"])
    return statistics.geometric_mean(ratios) if ratios else 1.0


def moved(a, b, scale):
    """The stage whose processor time changed most, in the direction of the whole: its name, and seconds before and after."""
    if not a or not b:
        return None
    before = {name: of["cpu"] * scale for name, of in a["stages"].items()}
    after = {name: of["cpu"] for name, of in b["stages"].items()}
    change = {name: after.get(name, 0.0) - before.get(name, 0.0) for name in before.keys() | after.keys()}
    grows = sum(change.values()) >= 0
    name = (max if grows else min)(sorted(change), key=change.get)
    return name, before.get(name, 0.0), after.get(name, 0.0)


def compare(before, after, key="plinth"):
    """A record a query of both runs, the slowed first."""
    left, right = queries(before), queries(after)
    scale = drift(left, right)
    found = []
    for name in left.keys() & right.keys():
        a, b = warm(left[name], key), warm(right[name], key)
        if not a or not b:
            continue
        # As the machine of the second run would have taken.
        runs = [seconds * scale for seconds in a["runs"]]
        found.append(
            {
                "name": " ".join(part for part in name if part),
                "before": a["median"],
                "after": b["median"],
                "ratio": b["median"] / (a["median"] * scale),
                "sure": min(b["runs"]) > max(runs) or max(b["runs"]) < min(runs),
                "stage": moved(left[name][key].get("profile"), right[name][key].get("profile"), scale),
            }
        )
    return scale, sorted(found, key=lambda record: -record["ratio"])


def text(scale, found):
    lines = [f"{len(found)} queries; the peers took {scale:.3f} times as long, which ratios are freed of", ""]
    if found:
        mean = statistics.geometric_mean(record["ratio"] for record in found)
        lines[0] += f"; Plinth {mean:.3f} in the geometric mean"
    for record in found:
        if 1 / NOTABLE < record["ratio"] < NOTABLE:
            continue
        line = f"{record['name']:24} {record['before'] * 1e3:9.1f} ms {record['after'] * 1e3:9.1f} ms {record['ratio']:6.2f}x"
        line += "" if record["sure"] else "  within noise"
        if record["stage"]:
            name, a, b = record["stage"]
            line += f"  {name}: {a * 1e3:.1f} to {b * 1e3:.1f} ms of processor time"
        lines.append(line)
    if len(lines) == 2:
        lines.append(f"none changed by more than {NOTABLE - 1:.0%}")
    return "\n".join(lines)


def main(arguments):
    parser = argparse.ArgumentParser(prog="python -m bench compare", description=__doc__.partition("\n")[0])
    parser.add_argument("before", type=Path, help="a folder with figures.json, or such a file")
    parser.add_argument("after", type=Path)
    args = parser.parse_args(arguments)
    figures = []
    for path in (args.before, args.after):
        try:
            figures.append(load(path))
        except (OSError, ValueError) as error:
            parser.error(f"{path}: {error}")
    scale, found = compare(*figures)
    if not found:
        sys.exit("error: the two have no query of Plinth's in common")
    print(text(scale, found))
    sys.exit(1 if any(record["sure"] and record["ratio"] >= NOTABLE for record in found) else 0)
