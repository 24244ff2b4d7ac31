"""The curve of imports: its table and its plot, and the records of documents."""

import json
from argparse import Namespace
from pathlib import Path
from xml.etree import ElementTree

from bench.curve import Way, drawn, markdown
from bench.lines import lines


def made():
    found = []
    for maker, name, seconds, size in [
        ("Plinth", "--fast", [2.0, 2.2], 900),
        ("Plinth", "default", [4.0, 4.0], 600),
        ("DuckDB", "a table", [6.0, 6.0], 1500),
    ]:
        found.append(Way(maker, name, lambda _: 0.0, seconds, size * 1_000_000))
    return found


def test_figures_are_beside_those_of_the_default():
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in markdown(made(), Namespace(rounds=2, threads=2)).splitlines() if line.startswith("| ")]
    assert [row[0] for row in rows[1:]] == ["Plinth, --fast", "Plinth, default", "DuckDB, a table"]
    assert [(row[3], row[5]) for row in rows[1:]] == [("0.53", "1.50"), ("1.00", "1.00"), ("1.50", "2.50")]


def test_the_plot_is_a_file_by_itself():
    root = ElementTree.fromstring(drawn(made()))
    names = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"--fast", "default", "a table", "Plinth", "DuckDB"} <= set(names)
    assert "var(" not in drawn(made())
    for circle in root.iter("{http://www.w3.org/2000/svg}circle"):
        assert 0 < float(circle.get("cx")) < 560 and 0 < float(circle.get("cy")) < 326


def test_records_are_repeated_until_there_are_so_many_bytes(tmp_path: Path):
    for text, key, records in [('{"a": {"b": [{"x": "ä"}, {"x": 2}]}}', "a", 1), ('{"p": {"k": 1}, "q": {"k": 2}}', "", 2), ('[{"x": 1}]', "", 1)]:
        document, target = tmp_path / "document.json", tmp_path / "lines.ndjson"
        document.write_text(text)
        count = lines(document, key, target, 1000)
        written = target.read_text().splitlines()
        assert len(written) == count and count % records == 0 and target.stat().st_size >= 1000
        assert len({json.dumps(json.loads(line)) for line in written}) == records
