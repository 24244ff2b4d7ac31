"""Bars of progress, at a terminal and in a notebook."""

import io
import sys
import types

import pytest

import plinth
from plinth import _progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(_progress, "DELAY", 0.0)
    monkeypatch.setattr(_progress, "EVERY", 0.001)


@pytest.fixture
def file(con, tmp_path):
    path = tmp_path / "t.plinth"
    con.write(path, con.sql("SELECT value AS i, 'text ' || (value * 7919) AS s FROM generate_series(1, 200000)"))
    return path


def test_a_bar_is_drawn_and_cleared(at_once, monkeypatch, file):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with plinth.connect(threads=1, progress=True) as con:
        result = con.sql(f"SELECT s FROM '{file}'")
        assert len(result.fetchall()) == 200_000
        assert result.arrow().num_rows == 200_000
    text = terminal.getvalue()
    assert "rows, " in text and " read" in text and "200,000 rows" in text
    assert text.endswith("\r\x1b[K")


def test_a_bar_in_a_notebook(at_once, monkeypatch, file):
    shown = []

    class Handle:
        def update(self, what):
            shown.append(what)

    def display(what, display_id=False):
        assert display_id
        shown.append(what)
        return Handle()

    shell = types.ModuleType("IPython")
    shell.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    tools = types.ModuleType("IPython.display")
    tools.display, tools.HTML = display, str
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", tools)
    # Nobody asked: a notebook has a reader.
    with plinth.connect(threads=1) as con:
        assert con.sql(f"SELECT s FROM '{file}'").arrow().num_rows == 200_000
    assert any("<progress" in text and "rows" in text for text in shown)
    assert shown[-1] == ""


def test_nothing_is_shown_to_programs(at_once, monkeypatch, file):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.delattr(sys, "ps1", raising=False)
    with plinth.connect(threads=1) as con:
        con.sql(f"SELECT s FROM '{file}'").arrow()
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    with plinth.connect(threads=1, progress=False) as con:
        con.sql(f"SELECT s FROM '{file}'").arrow()
    assert terminal.getvalue() == ""
    # At a prompt it is.
    with plinth.connect(threads=1) as con:
        con.sql(f"SELECT s FROM '{file}'").fetchall()
    assert terminal.getvalue() != ""


def test_an_error_ends_the_bar(at_once, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with plinth.connect(threads=1, progress=True) as con:
        for _ in range(3):
            with pytest.raises(plinth.DataError, match="division by zero"):
                con.sql("SELECT 10 / (value - 50000) AS v FROM generate_series(1, 100000)").arrow()
        with pytest.raises(plinth.ProgrammingError):
            con.sql("SELEC")
    assert not terminal.getvalue() or terminal.getvalue().endswith("\x1b[K")


def test_lines_of_a_bar():
    stream = io.StringIO()
    bar = _progress._Terminal(stream)
    bar.draw((500, 1000, 2_500_000))
    assert stream.getvalue() == f"\r[{'█' * 15}{' ' * 15}]  50% 500 of 1,000 rows, 2.5 MB read\x1b[K"
    # More than there are, where a statement reads a file twice.
    assert _progress._share((3000, 1000, 0)) == 1.0
    assert _progress._share((3000, None, 0)) is None and _progress._text((3000, None, 7)) == "3,000 rows, 7 bytes read"
