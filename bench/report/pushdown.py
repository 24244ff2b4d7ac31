"""The suite of pushed filters: every way to scan beside every other, question by question."""

import statistics

from . import io, queries
from .words import table

OFF = "datafusion-off"
PARTS = {"clickbench": "ClickBench's 43", "tpch": "TPC-H's 22", "predicates": "Predicates over one table"}


def section(of):
    shown = [(a["key"], a["label"], f"c{i}") for i, a in enumerate(of["arms"])]
    parts = [io.verdicts(of)]
    for part, records in by_part(of):
        head, rows = ratios(of, records)
        caption = f"{PARTS[part]}: time over that of DataFusion over Parquet without pushdown. Below 1 is faster."
        parts.append(table(head, rows, caption))
        parts.append(queries.all_times({"queries": records}, shown, f"pushdown-times-{part}", "warm"))
    return "\n".join(part for part in parts if part)


def by_part(of):
    for part in PARTS:
        records = [record for record in of["queries"] if record["part"] == part]
        if records:
            yield part, records


def medians(record):
    return {key: e["warm"]["median"] for key, e in record["engines"].items() if "warm" in e}


def ratios(of, records):
    """Of each question every arm's time over that of Parquet without pushdown."""
    arms = [a for a in of["arms"] if a["key"] != OFF]
    rows = []
    for record in records:
        times = medians(record)
        if OFF in times:
            cells = [f"{times[a['key']] / times[OFF]:.2f}" if a["key"] in times else "" for a in arms]
            rows.append([f"{record['name']}, {record['title']}", *cells])
    return ["", *(a["label"] for a in arms)], rows


def markdown(of):
    lines = io.markdown_verdicts(of)
    parts = list(by_part(of))
    lines += ["", "Time over that of DataFusion over Parquet without pushdown, geometric means (least to most):"]
    rows = []
    for arm in of["arms"]:
        cells = []
        for _, records in parts:
            found = [t[arm["key"]] / t[OFF] for t in map(medians, records) if arm["key"] in t and OFF in t]
            cells.append(f"{statistics.geometric_mean(found):.2f} ({min(found):.2f} to {max(found):.2f})" if found else "")
        rows.append([arm["label"], *cells])
    lines += io.markdown_table(["", *(PARTS[part] for part, _ in parts)], rows)
    for part, records in parts:
        if part == "predicates":
            head, rows = ratios(of, records)
            lines += ["", "The predicates, each:", *io.markdown_table(head, rows)]
    return "\n".join(lines).strip() + "\n"
