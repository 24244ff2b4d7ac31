"""The suite of keys: what must be shown, and every table of the example programs."""

from . import io
from .words import table


def shown(figure):
    return f"{figure:,.0f}" if abs(figure) >= 1000 else f"{figure:.2f}"


def cells(of):
    return ["", *of["columns"]], [[name, *map(shown, figures)] for name, figures in of["rows"]]


def section(of):
    return "\n".join([io.verdicts(of), *(table(*cells(one), one["title"]) for one in of["tables"])])


def markdown(of):
    lines = io.markdown_verdicts(of)
    for one in of["tables"]:
        lines += ["", f"{one['title']}:", *io.markdown_table(*cells(one))]
    return "\n".join(lines).strip() + "\n"
