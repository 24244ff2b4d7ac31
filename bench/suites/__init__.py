"""Each suite makes its data, asks its questions and returns its figures."""

from . import clickbench, growth, io, sort, tpch

SUITES = {"tpch": tpch.run, "clickbench": clickbench.run, "growth": growth.run, "sort": sort.run, "io": io.run}
