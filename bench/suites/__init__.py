"""Each suite makes its data, asks its questions and returns its figures."""

from . import clickbench, dictionary, growth, io, joins, json, keys, memory, profile, pushdown, rows, sort, tpch

SUITES = {
    "tpch": tpch.run,
    "clickbench": clickbench.run,
    "joins": joins.run,
    "growth": growth.run,
    "sort": sort.run,
    "io": io.run,
    "dictionary": dictionary.run,
    "pushdown": pushdown.run,
    "json": json.run,
    "keys": keys.run,
    "memory": memory.run,
    "profile": profile.run,
    "rows": rows.run,
}
# Suites of which a part can be run.
PARTS = {
    "io": [*io.PARTS, "queries"],
    "dictionary": dictionary.PARTS,
    "pushdown": pushdown.PARTS,
    "json": json.PARTS,
    "keys": keys.PARTS,
    "memory": memory.PARTS,
    "profile": profile.PARTS,
    "rows": rows.PARTS,
}
