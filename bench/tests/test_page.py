"""Runs every suite at quick sizes and looks at the page in a browser."""

import html
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from bench.scan import BUILD

SUITES = ["tpch", "clickbench", "growth", "sort", "dictionary", "io"]
ROOT = Path(__file__).parents[2]

# What the browser finds out about a page as wide as a phone.
LOOK = """
<script>
document.querySelector('iframe').onload = () => {
  const page = document.querySelector('iframe').contentDocument;
  const all = selector => [...page.querySelectorAll(selector)];
  const found = {
    overflow: page.documentElement.scrollWidth - page.documentElement.clientWidth,
    plots: all('figure svg').map(s => s.getBoundingClientRect()).map(box => [box.width, box.height]),
    figures: all('figure').map(f => [f.id, f.querySelectorAll('svg').length, f.querySelectorAll('table').length]),
    rows: page.querySelectorAll('table tr').length,
    sections: all('section').map(s => s.id),
    foreign: page.querySelectorAll('script, link, img').length,
    text: page.body.innerText.length,
  };
  const told = document.createElement('pre');
  told.id = 'found';
  told.textContent = JSON.stringify(found);
  document.body.appendChild(told);
};
</script>"""


@pytest.fixture(scope="session")
def run(program, tmp_path_factory, request):
    folder = tmp_path_factory.mktemp("bench")
    command = [
        sys.executable,
        "-m",
        "bench",
        "--quick",
        "--plinth",
        program,
        "--folder",
        folder,
        "--only",
        "q01,q06,q22,q34,equal-usual,prefix-3,contains,group",
    ]
    suites = SUITES if (program.parent / "examples" / "scan").is_file() else SUITES[:-1]
    if suites != SUITES:
        print(f"without io: {BUILD}")
    command += ["--suite", ",".join(suites), "--axes", "rows,columns,files,threads,hits"]
    try:
        command += ["--hits-sample", request.getfixturevalue("sample")]
    except pytest.skip.Exception as why:
        print(f"without clickbench: {why}")
    done = subprocess.run([str(c) for c in command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


def test_figures(run):
    figures = json.loads((run / "figures.json").read_text())
    assert [s["suite"] for s in figures["suites"]] in (SUITES, SUITES[:-1])
    for suite in figures["suites"]:
        assert not suite.get("disagreements")
        for query in suite.get("queries", []):
            assert query["digest"] and "warm" in query["engines"]["plinth"], query["name"]
    tpch = figures["suites"][0]
    assert {"Plinth", "Parquet zstd, pyarrow", "Parquet snappy, DuckDB"} <= set(tpch["sizes"])
    assert tpch["warm"]["plinth-parquet"]["queries"] == 3
    axes = {of["axis"]: of for of in figures["suites"][2]["axes"]}
    assert set(axes) - {"rows of hits"} == {"rows", "columns", "files", "threads"}
    if "rows of hits" in axes:
        of = axes["rows of hits"]
        assert [q["name"] for q in of["questions"]] == ["q34"] and set(of["questions"][0]["slopes"]) == {"plinth", "duckdb"}
        assert of["slopes"]["size (bytes)"]["plinth"] == pytest.approx(1, abs=0.3)
        text = (run / "growth.md").read_text()
        assert "| q34 busiest pages | Plinth |" in text and "with --memory 2GB" in text
    for suite in figures["suites"][:2]:
        if "skipped" not in suite:
            assert [q["name"] for q in suite["best"]["queries"]] == [q["name"] for q in suite["queries"]]
            assert {q["peer"] for q in suite["best"]["queries"]} <= {e["key"] for e in figures["engines"]} - {"plinth"}
    assert axes["rows"]["slopes"]["file (bytes)"]["plinth"] == pytest.approx(1, abs=0.4)
    assert 0 < axes["columns"]["metadata_share"] <= 1


def test_reading(run):
    of = next((s for s in json.loads((run / "figures.json").read_text())["suites"] if s["suite"] == "io"), None)
    if of is None:
        pytest.skip(f"no example program: {BUILD}")
    assert {(r["data"], r["columns"], r["condition"]) for r in of["scans"]} == {
        (data, columns, condition)
        for data in ("plain", "encoded")
        for columns in (1, 4, None)
        for condition in ("resident", "cold")
    }
    for record in of["scans"] + of["slow"]:
        # What is asked for is read, whichever way.
        read = {way["key"]: way["bytes"] for way in record["ways"]}
        assert min(read.values()) > 0 and max(read.values()) < 1.05 * min(read.values()), read
        assert all(way["fetched"] >= 0 for way in record["ways"])
        steps = {step["step"] for step in record["steps"]}
        assert ("little-endian values" in steps) == (record["columns"] is not None)
        assert ("ring for the page cache" in steps) == (record["condition"] != "resident")
    plain = {r["columns"]: r["ways"][0]["bytes"] for r in of["scans"] if r["data"] == "plain"}
    assert plain[1] < plain[4] < plain[None]
    points = [p for p in of["many"] if p["way"] == "registered"]
    assert [p["files"] for p in points] == [5, 10, 20, 1] and points[2]["extents"] > points[0]["extents"]
    assert all(p["slabs"] >= 1 and p["memory"] > 0 for p in points)
    assert {e["key"] for e in of["engines"]} >= {"plinth", "plinth-uring", "plinth-direct", "plinth-parquet"}
    assert all("warm" in engine for q in of["queries"] for engine in q["engines"].values())
    assert len(of["verdicts"]) >= 7
    table = (run / "io.md").read_text()
    assert "| ring for pread |" in table and "| Plinth, by ring |" in table


def test_words(run):
    of = next(s for s in json.loads((run / "figures.json").read_text())["suites"] if s["suite"] == "dictionary")
    sizes = {s["name"]: s["bytes"] for s in of["sizes"]}
    assert 0 < sizes["floor"] < sizes["Plinth"] < sizes["text"] == of["column"]["text_bytes"]
    assert [q["name"] for q in of["queries"]] == ["equal-usual", "prefix-3", "contains", "group"]
    assert {(w["who"], w["threads"]) for w in of["encode"]} >= {("Plinth", 1), ("DuckDB, CREATE TABLE AS", 1)}
    assert all(way["rate"] > 0 for way in of["encode"] + of["decode"])
    assert [axis["axis"] for axis in of["axes"]] == ["rows", "distinct words"][: len(of["axes"])]
    assert "| floor |" in (run / "dictionary.md").read_text()


def test_page(run, browser, tmp_path):
    page = (run / "report.html").read_text()
    outer = tmp_path / "outer.html"
    outer.write_text(
        "<!doctype html><meta charset='utf-8'><body><iframe width='375' height='800'"
        f' srcdoc="{html.escape(page)}"></iframe>{LOOK}'
    )
    command = [
        browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=10000",
        "--dump-dom",
        f"file://{outer}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    told = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.S)
    assert told, done.stderr[-1000:]
    found = json.loads(html.unescape(told[1]))
    assert found["overflow"] <= 0 and found["foreign"] == 0 and found["text"] > 2000
    assert found["plots"] and all(width > 300 and height > 20 for width, height in found["plots"])
    assert all(plots >= 1 and tables >= 1 for _, plots, tables in found["figures"])
    have = {identity for identity, *_ in found["figures"]}
    assert {
        "tpch-ratio-plinth-parquet",
        "tpch-best",
        "tpch-times",
        "tpch-memory",
        "tpch-sizes",
        "tpch-import",
        "growth-rows-0",
    } <= have
    sections = [s["suite"] for s in json.loads((run / "figures.json").read_text())["suites"]]
    assert found["sections"] == [*sections, "setting"] and found["rows"] > 50
    assert {"dictionary-sizes", "dictionary-times", "dictionary-ratio-duckdb", "dictionary-encode"} <= have
    if "io" in sections:
        drawn = {"io-resident-plain", "io-cold-encoded", "io-steps-cold-plain", "io-device", "io-many", "io-auto"}
        assert drawn | {"io-queries-warm", "io-queries-cold"} <= have
