"""Types that Python lacks."""

from __future__ import annotations

from typing import NamedTuple


class Interval(NamedTuple):
    """A value of SQL's type INTERVAL: a month has no fixed number of days, and a day none of hours."""

    months: int
    days: int
    nanoseconds: int
