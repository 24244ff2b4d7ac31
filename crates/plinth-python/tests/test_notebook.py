"""The notebooks of the docs run, and say what they said when they were kept."""

import ast
import base64
import contextlib
import io
import json
import os
import pathlib

import matplotlib
import pandas
import pytest

import plinth  # noqa: F401

FOLDER = pathlib.Path(__file__).parents[3] / "docs" / "notebooks"


def run(source, names):
    """What a cell prints, and the text of its last expression, as a notebook shows them."""
    tree = ast.parse(source)
    last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        value = None if last is None else eval(compile(last, "cell", "eval"), names)
    return printed.getvalue(), None if value is None else repr(value)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    names, figures = {"__name__": "__main__"}, 0
    for cell in cells:
        # Lines for the notebook itself.
        source = "".join(line for line in cell["source"] if not line.startswith("%"))
        # As wide as in a notebook, whatever the terminal is.
        with pandas.option_context("display.max_columns", 20, "display.width", 80):
            printed, shown = run(source, names)
        for output in cell["outputs"]:
            data = output.get("data", {})
            if output["output_type"] == "stream":
                assert printed == "".join(output["text"])
            elif "image/png" in data:
                from matplotlib import pyplot

                assert base64.b64decode(data["image/png"])[1:4] == b"PNG"
                assert all(axes.has_data() for axes in pyplot.gcf().axes)
                pyplot.close()
                figures += 1
            else:
                assert shown == "".join(data["text/plain"])
    assert figures == 1 and os.listdir(tmp_path)
