"""Measuring, of engines that only pretend."""

from types import SimpleNamespace

import pytest
from bench import timing
from bench.answers import Query
from bench.engines import Answer, Engine

QUERY = Query("q", "", "select 1")
OPTIONS = SimpleNamespace(rounds=1, repeat=1, cold=0)


class Pretender(Engine):
    key, ours = "pretender", True

    def run(self, tables, sql, repeat=1):
        return Answer([["1"]], [0.1] * repeat, {"resident": 1})


class Profiled(Pretender):
    def profile(self, tables, sql):
        return {"stages": {}}


@pytest.mark.parametrize(("kind", "profile"), [(Pretender, None), (Profiled, {"stages": {}})])
def test_profiles_are_kept_of_those_that_have_any(kind, profile):
    record = timing.measure([kind(None, 1)], None, QUERY, OPTIONS)
    assert not record["disagreements"] and record["engines"]["pretender"].get("profile") == profile
