from bench.answers import Query, agree, agree_but_ties, alike, digest, rows_of_csv, same


def test_cells():
    assert same("a", "a") and not same("a", "b")
    assert same("1.0", "1") and same("0.3333333333333333", "0.33333333333333331") and same("1e3", "1000")
    assert same("1.2346", "1.23457") and not same("1.23", "1.24") and not same("1000000", "1000001")


def test_a_unit_of_the_last_place_is_exact():
    assert same("25.575155", "25.575154") and not same("25.575156", "25.575154")


def test_a_line_of_nothing_is_a_row_of_null():
    assert rows_of_csv("x\n\n") == [[""]] and rows_of_csv("x,y\n1,\n") == [["1", ""]] and rows_of_csv("x\n") == []


def test_moments_are_in_utc():
    rows = rows_of_csv("m,t\n2013-07-14T12:40:00Z,Z\n2013-07-14T12:40:00.5Z,12:40:00Z\n")
    assert rows == [["2013-07-14T12:40:00", "Z"], ["2013-07-14T12:40:00.5", "12:40:00Z"]]


def test_rows_in_any_order():
    assert agree([["a", "1"], ["b", "2"]], [["b", "2"], ["a", "1"]])
    assert not agree([["a", "1"]], [["a", "2"]]) and not agree([["a"]], [["a"], ["a"]])
    assert digest([["a"], ["b"]]) == digest([["b"], ["a"]]) != digest([["ab"]])


def test_ties_at_a_limit():
    ours = [["a", "9"], ["b", "5"], ["c", "2"]]
    assert agree_but_ties(ours, [["a", "9"], ["b", "5"], ["x", "2"]], (1,))
    assert not agree_but_ties(ours, [["a", "9"], ["x", "5"], ["c", "2"]], (1,))
    assert not agree_but_ties(ours, [["a", "9"], ["b", "5"], ["c", "1"]], (1,))
    assert not agree_but_ties(ours, [["x", "9"], ["b", "5"], ["c", "2"]], (1,))
    assert agree_but_ties(ours, [["x", "9"], ["b", "5"], ["c", "2"]], (1,), offset=True)
    assert not agree_but_ties(ours, ours[:2], (1,)) and agree_but_ties([], [], (0,))


def test_offset_is_seen_in_the_query():
    query = Query("q", "", "select k, c from t order by c limit 3 offset 7", keys=(1,))
    assert alike(query, [["a", "9"], ["b", "5"], ["c", "2"]], [["x", "9"], ["b", "5"], ["y", "2"]])
