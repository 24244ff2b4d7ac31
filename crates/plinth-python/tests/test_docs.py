"""The examples of the docs run."""

import doctest
import importlib
import os
import pathlib

import pytest

import plinth  # noqa: F401

DOCS = pathlib.Path(__file__).parents[3] / "docs"


@pytest.fixture(autouse=True)
def here():
    folder = os.getcwd()
    yield
    os.chdir(folder)


@pytest.mark.parametrize("page, examples", [("python.md", 30), ("coming-from.md", 15)])
def test_pages_of_the_docs(page, examples):
    # A fence is no output.
    text = (DOCS / page).read_text().replace("```python\n", "").replace("```\n", "\n")
    test = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    assert len(test.examples) > examples
    results = doctest.DocTestRunner().run(test)
    assert results.failed == 0


@pytest.mark.parametrize("name", ["plinth", "plinth.dbapi", "plinth.adbc"])
def test_docstrings(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0 and results.failed == 0


def test_everything_public_has_a_docstring():
    for module in map(importlib.import_module, ("plinth", "plinth.dbapi", "plinth.adbc")):
        for name in module.__all__:
            member = getattr(module, name)
            if callable(member) and getattr(member, "__module__", "").startswith("plinth"):
                assert member.__doc__, name
                for part, value in vars(member).items() if isinstance(member, type) else ():
                    if not part.startswith("_") and (callable(value) or isinstance(value, property)) and not isinstance(value, type):
                        assert value.__doc__, f"{name}.{part}"
