"""DuckDB's own scripts about Parquet files, asked of Plinth files: by hand, not in CI.

    python scripts.py EXTENSION WORK FOLDER

FOLDER has scripts of sqllogictest, such as `test/sql/copy/parquet` of DuckDB's repository at the version of the extension. `parquet` becomes `plinth` in names of
files, functions and formats. A script ends at the first statement that is refused for what Plinth does not have (an option of COPY, a
function, a file that is only there as Parquet); what it had asked before counts. Prints each answer that differs, and a table.
"""

import argparse
import os
import re
import shutil
from collections import Counter
from pathlib import Path

import duckdb

# What is about Parquet alone.
ELSEWHERE = re.compile(
    r"parquet_(metadata|schema|file_metadata|kv_metadata|bloom_probe|full_metadata)|read_text|read_blob|parquet_version|encryption|field_ids|kv_metadata|binary_as_string|"
    r"file_row_number|row_group_size|compression|codec|read_csv|read_json|httpfs|s3://|https?://|data/|DATA_DIR|debug_|force_|can_have_nan|schema\s*=|overwrite|append true|per_thread|file_size_bytes|return_stats|write_partition|"
    r"explicit_cardinality|dictionary_size|string_dictionary|preserve_order|file_extension|attach|bloom|shredding|variant|geometry|file_index|hive_types\s*=|enum|glob\('|filename\s*=\s*'|duckdb_|pragma|rowid|memory_limit|EXPLAIN",
    re.IGNORECASE,
)


def ours(sql, folder):
    sql = re.sub(r"\{TEST_DIR\}|__TEST_DIR__", folder, sql)
    sql = re.sub(r"\b(read_parquet|parquet_scan)\b", "read_plinth", sql, flags=re.IGNORECASE)
    sql = re.sub(r"(\(\s*format\s+)['\"]?parquet['\"]?", r"\1plinth", sql, flags=re.IGNORECASE)
    sql = re.sub(r"(,\s*format\s+)['\"]?parquet['\"]?", r"\1plinth", sql, flags=re.IGNORECASE)
    return re.sub(r"\.parquet\b", ".plinth", sql)


def records(text):
    """Statements and queries: (kind, what is expected of it, its text, the lines of its answer, its line)."""
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        head, start = lines[at].strip(), at + 1
        at += 1
        if not head or head.startswith("#"):
            continue
        words = head.split()
        body = []
        if words[0] in ("statement", "query"):
            while at < len(lines) and lines[at].strip() and lines[at].strip() != "----":
                body.append(lines[at])
                at += 1
            answer = []
            if at < len(lines) and lines[at].strip() == "----":
                at += 1
                while at < len(lines) and lines[at].strip():
                    answer.append(lines[at])
                    at += 1
            yield words[0], words[1:], "\n".join(body), answer, start
        else:
            yield words[0], words[1:], "", [], start


def loops(found):
    """Records with loops unrolled: an innermost one at a time."""
    found = list(found)
    while any(record[0] in ("loop", "foreach", "concurrentloop", "concurrentforeach") for record in found):
        first = max(at for at, record in enumerate(found) if record[0] in ("loop", "foreach", "concurrentloop", "concurrentforeach"))
        last = next(at for at in range(first, len(found)) if found[at][0] == "endloop")
        kind, (name, *values), *_ = found[first]
        if kind.endswith("loop"):
            values = [str(n) for n in range(int(values[0]), int(values[1]))]
        body = found[first + 1 : last]
        replaced = [
            (k, [w.replace("${" + name + "}", v).replace("{" + name + "}", v) for w in words], sql.replace("${" + name + "}", v).replace("{" + name + "}", v), [a.replace("${" + name + "}", v).replace("{" + name + "}", v) for a in answer], line)
            for v in values
            for k, words, sql, answer, line in body
        ]
        found[first : last + 1] = replaced
    return found


def cell(value):
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "True" if value else "False"
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    text = str(value)
    return text if text else "(empty)"


def alike(found, wanted):
    if found == wanted:
        return True
    flags = {"1": "true", "0": "false"}
    found, wanted = (flags.get(text.lower(), text.lower()) if text.lower() in ("1", "0", "true", "false") else text for text in (found, wanted))
    if found == wanted:
        return True
    try:
        a, b = float(found), float(wanted)
        return a == b or abs(a - b) <= 1e-9 * max(abs(a), abs(b))
    except ValueError:
        return False


def answer(db, sql):
    """Rows as DuckDB prints their values, not as Python has them."""
    relation = db.execute(sql)
    if not relation.description:
        return []
    rows = relation.fetchall()
    plain = all(isinstance(value, (bool, int, float, str, type(None))) for row in rows for value in row)
    if plain or not re.match(r"\s*(select|from|with|values|\()", sql, re.IGNORECASE):
        return rows
    return db.execute(f"select columns(*)::varchar from ({sql.rstrip().rstrip(';')})").fetchall()


def run(path, extension, folder, told):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    db = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    db.execute(f"LOAD '{extension}'")
    saved, found = {}, Counter()
    for kind, words, sql, wanted, line in loops(records(path.read_text())):
        if kind == "require" and words[0] not in ("parquet", "skip_reload", "no_alternative_verify", "vector_size", "noforcestorage"):
            found["skipped"] += 1
            return found
        if kind in ("mode", "load", "restart", "reconnect", "set", "require-env", "test-env", "unzip", "sleep", "onlyif", "skipif", "hash-threshold"):
            if kind in ("require-env", "restart", "load", "test-env"):
                found["skipped"] += 1
                return found
            continue
        if kind not in ("statement", "query"):
            continue
        if ELSEWHERE.search(sql):
            found["elsewhere"] += 1
            return found
        sql = ours(sql, folder)
        try:
            rows = answer(db, sql)
        except duckdb.Error as e:
            if kind == "statement" and words[0] in ("error", "maybe"):
                found["equal"] += 1
                continue
            said = str(e).splitlines()[0]
            known = "has no option" in said or "does not exist" in said or "no files found" in said.lower() or "no parameter" in said.lower() or "Invalid named parameter" in said or "has no" in said or "read_plinth" in said and "argument" in said
            found["refused" if known else "other"] += 1
            told(f"{path}:{line}: {'refused' if known else 'ERROR'}: {said[:200]}")
            return found
        if kind == "statement":
            if words[0] == "error":
                found["other"] += 1
                told(f"{path}:{line}: answered, though it must fail: {sql[:200]}")
            else:
                found["equal"] += 1
            continue
        cells = [[cell(value) for value in row] for row in rows]
        if "rowsort" in words:
            cells.sort()
        values = [value for row in cells for value in row]
        if "valuesort" in words:
            values.sort()
        label = words[-1] if len(words) > 1 and words[-1] not in ("nosort", "rowsort", "valuesort") else None
        if not wanted and label:
            same = saved.setdefault(label, values) == values
        elif wanted and re.match(r"\d+ values hashing to", wanted[0]) or any(a.startswith("<REGEX>") or a.startswith("<!REGEX>") for a in wanted):
            found["not compared"] += 1
            continue
        else:
            split = [a.split("\t") for a in wanted]
            if split and len(split[0]) == 1 and rows and len(rows[0]) > 1:
                flat = [a for row in split for a in row]
            else:
                if "rowsort" in words:
                    split.sort()
                flat = [a for row in split for a in row]
            if "valuesort" in words:
                flat.sort()
            same = len(flat) == len(values) and all(map(alike, values, flat))
            if label:
                saved.setdefault(label, values)
        found["equal" if same else "other"] += 1
        if not same:
            told(f"{path}:{line}: OTHER: {sql[:160]!r}: {values[:8]} wanted {flat[:8] if wanted else saved.get(label)}")
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("extension")
    parser.add_argument("work")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    every = Counter()
    for path in sorted(options.folder.rglob("*.test")):
        try:
            found = run(path, options.extension, os.path.join(options.work, "scripts"), print)
        except Exception as e:
            found = Counter(broken=1)
            print(f"{path}: {type(e).__name__}: {e}")
        every += found
        every["scripts"] += 1
    print(dict(every))


if __name__ == "__main__":
    main()
