"""The axis of hits as figures and as a page, of measures that were made up."""

from bench.report import growth as page
from bench.suites import clickbench, growth_hits

ROWS = [1_000_000, 10_000_000]
# Of each question the exponents of Plinth and of DuckDB.
EXPONENTS = {"q02": (1.0, 1.0), "q05": (1.3, 0.9), "q17": (1.3, 1.2), "q33": (0.5, 1.2)}


def made_up(rows=ROWS):
    points, questions = [], [{"name": q, "title": f"{q} asked", "why": growth_hits.ASKED[q]} for q in EXPONENTS]
    for x in rows:
        measures = {
            "import (s)": {"plinth-limited": x / 1e5, "plinth": x / 2e5, "duckdb": x / 1e5},
            "import (rows/s)": {"plinth-limited": 1e5, "plinth": 2e5, "duckdb": 1e5},
            "peak memory of import (bytes)": {"plinth-limited": 1.5e9, "plinth": 2.5e9, "duckdb": 3e9},
            "size (bytes)": {"plinth": 60 * x, "duckdb": 200 * x} | {name: 100 * x for name in growth_hits.PARQUET},
        }
        for q, pair in EXPONENTS.items():
            measures[f"{q} asked (s)"] = {k: 1e-9 * x**e for k, e in zip(growth_hits.PEERS, pair)}
            measures[f"{q} asked, peak memory (bytes)"] = {"plinth": 1e8, "duckdb": 2e8}
        points.append({"x": x, "measures": measures, "errors": {}, "disagreements": []})
    return growth_hits.told_of(points, questions, "made up", 20e6)


def suite(of):
    engines = [{"key": key, "label": label} for key, label in (("plinth", "Plinth"), ("duckdb", "DuckDB"))]
    return {
        "suite": "growth",
        "notes": ["Made up."],
        "engines": engines,
        "axes": [of],
        "verdicts": growth_hits.verdicts(of),
    }


def test_what_is_more_than_linear_is_told_from_what_is_so_for_every_engine():
    of = made_up()
    assert {q["name"]: q["beyond"] for q in of["questions"]} == {
        "q02": [],
        "q05": ["plinth"],
        "q17": ["plinth", "duckdb"],
        "q33": ["duckdb"],
    }
    memory, size, importing, alone = growth_hits.verdicts(of)
    assert memory["met"] and size["found"] == 0.6 and importing["met"]
    assert not alone["met"] and alone["found"] == 1 and "(q05)" in alone["what"]


def test_one_point_has_no_exponents():
    of = made_up(ROWS[:1])
    assert all(not q["beyond"] and set(q["slopes"].values()) == {None} for q in of["questions"])
    assert len(growth_hits.verdicts(of)) == 2
    assert "one point alone has none" in page.section(suite(of)) and "| none |" in page.markdown(suite(of))


def test_pages():
    of = suite(made_up())
    html, text = page.section(of), page.markdown(of)
    assert '<td class="n">every engine</td>' in html and html.count("<figure") == 4 + len(EXPONENTS)
    assert "| q17 asked | DuckDB | 15.8 ms | 251 ms | 1.20 |" in text
    assert "| import (rows/s) | Plinth, with a limit of memory | 100,000 | 100,000 | 0.00 |" in text
    assert "Exponents above 1.1: for Plinth q05; for Plinth and DuckDB q17; for DuckDB q33." in text


def test_questions_are_of_the_43():
    assert len(growth_hits.ASKED) == 12
    assert set(growth_hits.ASKED) <= {q.name for q in clickbench.queries(ROWS[0], True, [])}
