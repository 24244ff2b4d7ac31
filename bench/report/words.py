"""Figures and HTML as text."""

import html


def escape(text):
    return html.escape(str(text), quote=True)


def significant(number):
    """Three digits that mean something, without an exponent."""
    if number == 0:
        return "0"
    digits = 0 if abs(number) >= 100 else 1 if abs(number) >= 10 else 2
    return f"{number:,.{digits}f}"


def seconds(value):
    for unit, factor in (("s", 1), ("ms", 1e3)):
        if value * factor >= 1:
            return f"{significant(value * factor)} {unit}"
    return f"{significant(value * 1e6)} µs"


def size(value):
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= factor:
            return f"{significant(value / factor)} {unit}"
    return f"{value:,.0f} B"


def times(ratio):
    return f"{ratio:.2f}x"


def percent(share, digits=0):
    return f"{share:.{digits}%}"


def table(head, rows, caption=""):
    """A table whose first column is text and whose others are figures. A cell may be (text, class)."""

    def one(tag, value, first):
        text, kind = value if isinstance(value, tuple) else (value, "")
        kinds = " ".join(k for k in ("" if first else "n", kind) if k)
        opening = f'<{tag} class="{kinds}">' if kinds else f"<{tag}>"
        return f"{opening}{escape(text)}</{tag}>"

    lines = ["<div class='wide'><table>"]
    if caption:
        lines.append(f"<caption>{escape(caption)}</caption>")
    lines.append("<thead><tr>" + "".join(one("th", h, i == 0) for i, h in enumerate(head)) + "</tr></thead><tbody>")
    lines += ["<tr>" + "".join(one("td", c, i == 0) for i, c in enumerate(row)) + "</tr>" for row in rows]
    return "\n".join([*lines, "</tbody></table></div>"])


def behind(summary, inner):
    return f"<details><summary>{escape(summary)}</summary>{inner}</details>"


def figure(title, text, plot, behind_it, identity):
    """A plot under its title, with what to see in it, and the table behind it."""
    note = f"<p>{escape(text)}</p>" if text else ""
    return (
        f"<figure id='{escape(identity)}'><h3>{escape(title)}</h3>{note}<div"
        f" class='plot'>{plot}</div>{behind_it}</figure>"
    )
