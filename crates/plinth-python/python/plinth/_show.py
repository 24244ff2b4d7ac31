"""Rows as text and as HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

#: Characters of a cell.
WIDTH = 50


def _text(value: Any) -> str:
    if value is None:
        return "NULL"
    text = value if isinstance(value, str) else str(value)
    text = text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


def _is_number(type: str) -> bool:
    return type.startswith(("Int", "UInt", "Float", "Decimal"))


def _more(rows: int) -> str:
    return f"the first {rows} rows; there are more"


def table(columns: Sequence[tuple[str, str, bool]], rows: Sequence[tuple[Any, ...]], more: bool) -> str:
    """Rows in a frame: names, types, values; numbers on the right."""
    names = [_text(name) for name, _, _ in columns]
    types = [_text(type) for _, type, _ in columns]
    cells = [[_text(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(names, types, *cells)]
    right = [_is_number(type) for type in types]

    def line(values: Sequence[str], numbers: Sequence[bool]) -> str:
        parts = (v.rjust(w) if r else v.ljust(w) for v, w, r in zip(values, widths, numbers))
        return "│ " + " │ ".join(parts) + " │"

    def rule(left: str, middle: str, end: str) -> str:
        return left + middle.join("─" * (width + 2) for width in widths) + end

    left = [False] * len(columns)
    lines = [rule("┌", "┬", "┐"), line(names, left), line(types, left), rule("├", "┼", "┤")]
    lines.extend(line(row, right) for row in cells)
    lines.append(rule("└", "┴", "┘"))
    lines.append(_more(len(rows)) if more else f"{len(rows)} row{'' if len(rows) == 1 else 's'}")
    return "\n".join(lines)


def html_table(columns: Sequence[tuple[str, str, bool]], rows: Sequence[tuple[Any, ...]], more: bool) -> str:
    """Rows as a table of HTML, in which no value is anything but text."""

    def escape(value: Any) -> str:
        return html.escape(_text(value))

    head = "".join(f'<th title="{html.escape(type)}">{escape(name)}</th>' for name, type, _ in columns)
    body = []
    for row in rows:
        cells = zip(row, columns)
        style = {True: ' style="text-align: right"', False: ""}
        body.append("<tr>" + "".join(f"<td{style[_is_number(c[1])]}>{escape(v)}</td>" for v, c in cells) + "</tr>")
    count = _more(len(rows)) if more else f"{len(rows)} row{'' if len(rows) == 1 else 's'}"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table><p>{count}</p>"
