"""Each suite makes its data, asks its questions and returns its figures."""

from . import clickbench, growth, sort, tpch

SUITES = {"tpch": tpch.run, "clickbench": clickbench.run, "growth": growth.run, "sort": sort.run}
