"""The suite of the profiler: its verdicts, what each question costs and how much of it is named."""

from . import io
from .words import percent, table


def section(of):
    parts = [io.verdicts(of)]
    for head, rows, caption in tables(of):
        parts.append(table(head, rows, caption))
    return "\n".join(part for part in parts if part)


def tables(of):
    for part, shares in of.get("named", {}).items():
        rows = [[name, percent(share, 1)] for name, share in shares.items()]
        yield ["question", "named"], rows, f"Processor time in named stages, {part}"
    rows = []
    for case in of.get("perf", []):
        families = list(dict.fromkeys([*case["perf"], *case["profile"]]))
        rows += [
            [f"{case['case']}, {family}", *(percent(case[who].get(family, 0.0), 1) for who in ("perf", "profile"))]
            for family in families
        ]
    if rows:
        yield ["what the time was for", "perf", "the profile"], rows, "Shares of processor time"


def markdown(of):
    lines = io.markdown_verdicts(of)
    for head, rows, caption in tables(of):
        if not caption.startswith("Processor time in named"):
            lines += ["", f"{caption}:", *io.markdown_table(head, rows)]
    return "\n".join(lines).strip() + "\n"
