-- Over nasty.parquet and other.parquet of nasty.py; queries/tpch.sql tells the form.

-- name: groups of awkward floats csv
select odd, count(*) from nasty group by odd
-- name: extremes of awkward floats csv
select max(odd), min(odd), count(odd) from nasty where odd < 1e308
-- name: infinities csv
select odd, count(*) from nasty where odd = cast('inf' as double) or odd = cast('-inf' as double) group by odd
-- name: float equality csv
select id, odd from nasty where odd = 0.1
-- name: zero of either sign
select count(*) from nasty where odd = 0
-- name: not zero of either sign
select count(*) from nasty where odd <> 0
-- name: nan equality
select count(*) from nasty where odd = cast('nan' as double)
-- name: nan is greatest
select count(*) from nasty where odd > 123456.789
-- name: floats below
select count(*), sum(ratio) from nasty where ratio < -150.5
-- name: single floats
select count(*), min(single), max(single), sum(single) from nasty where single between -1.5 and 200.25
-- Adding zero makes one zero of two: arrow sorts and counts -0.0 and 0.0 apart, DuckDB together.
-- name: order by floats with nulls last ordered csv
select odd, id from nasty where id < 300 order by odd + 0.0 desc nulls last, id
-- name: null and empty
select count(*), count(text), count(*) filter (where text = ''), count(*) filter (where text is null) from nasty
-- name: is null
select count(*) from nasty where text is null and key is not null
-- name: is not null
select count(*), min(id), max(id) from nasty where point is not null and tags is null
-- name: all null column
select count(nothing), min(nothing), max(nothing), count(*) from nasty
-- name: all null compare
select count(*) from nasty where nothing = 1 or nothing <> 1
-- name: all null is null
select count(*) from nasty where nothing is null and id < 77
-- name: not of null
select count(*) from nasty where not (whole > 0)
-- name: three valued or
select count(*) from nasty where whole > 0 or flag
-- name: three valued and
select count(*) from nasty where not (whole > 0 and flag)
-- name: is distinct from
select count(*) from nasty where text is distinct from 'a'
-- name: is not distinct from
select count(*) from nasty where low is not distinct from null
-- name: flag is not true
select count(*) from nasty where flag is not true
-- name: flag is false
select count(*) from nasty where flag is false
-- name: not flag
select count(*) from nasty where not flag
-- name: groups of null
select low, flag, count(*), count(whole), sum(price) from nasty group by low, flag
-- name: groups of text
select text, count(*), min(key), max(comment) from nasty group by text
-- name: text equality
select id from nasty where text = 'e' || chr(769)
-- name: text equality composed
select count(*) from nasty where text = 'é'
-- name: text range
select count(*), min(text), max(text) from nasty where text >= 'b' and text < 'prefix-common-and-long-0002'
-- name: text above all
select count(*) from nasty where text > '🦀'
-- name: text not equal
select count(*) from nasty where text <> ''
-- name: text in
select text, count(*) from nasty where text in ('', 'é', '日本', '🦀', 'no such', 'NULL') group by text
-- name: text not in with null
select count(*) from nasty where text not in ('a', null)
-- name: text in with null
select count(*) from nasty where text in ('a', null)
-- name: like prefix unicode
select text, count(*) from nasty where text like '日本%' group by text
-- name: like single unicode
select text, count(*) from nasty where text like '_' group by text
-- name: like two
select text, count(*) from nasty where text like 'a_' group by text
-- name: not like
select count(*) from nasty where text not like 'prefix%'
-- name: like everything
select count(*) from nasty where text like '%'
-- name: like empty
select count(*) from nasty where text like ''
-- name: like newline
select count(*) from nasty where text like 'comma%line'
-- name: like escaped percent
--| duckdb
select text, count(*) from nasty where text like '%\%' escape '\' group by text
--| plinth
select text, count(*) from nasty where text like '%\%' group by text
-- name: like escaped underscore
--| duckdb
select text, count(*) from nasty where text like 'a\_b' escape '\' group by text
--| plinth
select text, count(*) from nasty where text like 'a\_b' group by text
-- name: ilike
select text, count(*) from nasty where text ilike 'A%' group by text
-- name: regex
--| duckdb
select text, count(*) from nasty where regexp_matches(text, '^[a-z]+-.*[12]$') group by text
--| plinth
select text, count(*) from nasty where regexp_like(text, '^[a-z]+-.*[12]$') group by text
-- name: starts with
select count(*) from nasty where starts_with(comment, 'w1')
-- name: like over many values
select count(*), count(distinct comment), min(comment) from nasty where comment like '%w1%w2%'
-- name: point in many values
select id, key from nasty where key = 'key-00007919'
-- name: prefix in many values
select id, key from nasty where key like 'key-000012%'
-- name: range in many values
select count(*), min(key), max(key) from nasty where key between 'key-00001' and 'key-00015000'
-- name: text functions
select id, length(text) as n, substr(text, 2, 3) as part, replace(text, 'a', 'b') as other, text || '!' as cat,
    strpos(text, 'a') as p, left(text, 2) as l, right(text, 2) as r, trim(text) as t from nasty where id % 7 = 0
-- name: group by function of text
select length(text) as n, count(*), min(text) from nasty group by length(text)
-- name: where function of text
select count(*) from nasty where length(text) = 1 and lower(text) = 'a'
-- name: coalesce and nullif
select coalesce(low, '<null>') as k, count(nullif(low, '')) as n from nasty group by 1
-- name: greatest and least
select id, greatest(whole, tiny) as g, least(whole, tiny) as l from nasty where whole is not null and tiny is not null and id % 50 = 0
-- name: integers at the edges
select whole, count(*) from nasty where whole in (-2147483648, 2147483647) group by whole
-- name: wide integers
select count(*), min(wide), max(wide) from nasty where wide > 4611686018427387903 or wide <= -4611686018427387904
-- name: beyond the type
select count(*) from nasty where tiny < 1000
-- name: beyond the type below
select count(*) from nasty where tiny > -1000 and tiny <> 500
-- name: unsigned
select unsigned, count(*) from nasty where unsigned > 9223372036854775807 group by unsigned
-- name: unsigned against negative
select count(*) from nasty where small > -1
-- name: integer against fraction
select count(*), min(whole) from nasty where whole > 10.5
-- name: decimals
select count(*), sum(price), min(price), max(price) from nasty where price < -1234.56
-- name: decimal equality
select id, price from nasty where price = 3957.50
-- name: decimal against finer literal
select count(*) from nasty where price > 0.005
-- name: wide decimals
select count(*), sum(exact), min(exact), max(exact) from nasty where exact > 0
-- name: decimal arithmetic
select id, price * 2 as d, price + exact as s, -price as n, abs(price) as a from nasty where id % 100 = 3
-- name: dates before the epoch
select count(*), min(day), max(day) from nasty where day < date '1970-01-01' and day > date '1900-02-28'
-- name: date parts
select extract(year from day) as y, count(*), count(distinct extract(day from day)) from nasty group by 1
-- name: date truncated
select date_trunc('month', moment) as m, count(*) from nasty where moment < timestamp '1970-01-02 00:00:00' group by 1
-- name: timestamps
select count(*), min(moment), max(moment) from nasty where moment >= timestamp '1969-12-31 23:59:59' and moment < timestamp '1980-02-29 12:30:00.5'
-- name: zoned
select count(*), min(zoned), max(zoned) from nasty where zoned >= timestamptz '2024-03-31 03:00:00+02:00'
-- name: date arithmetic
select count(*) from nasty where day + interval '1' month > date '2020-02-29'
-- name: binary
select bytes, count(*) from nasty group by bytes having count(*) > 1
-- name: runs
select run, count(*), min(id), max(id) from nasty group by run
-- name: run filter
select count(*), min(id), max(id) from nasty where run = 17
-- name: run null
select count(*), min(id), max(id) from nasty where run is null
-- name: constant column
select same, count(*) from nasty where same = 'one value' group by same
-- name: not the constant
select count(*) from nasty where same <> 'one value'
-- name: struct field
select point['label'] as label, count(*), sum(point['x']) from nasty group by 1
-- name: struct field filter
select count(*), min(id) from nasty where point['x'] > 90 and point['label'] like 'a%'
-- name: deep struct field
select point['deep']['y'] as y, count(*) from nasty group by 1
-- name: struct field is null
select count(*) from nasty where point['x'] is null
-- name: struct is null
select count(*), min(id), max(id) from nasty where point is null
-- name: unnest text
select id, unnest(tags) as tag from nasty where id < 2000
-- name: unnest and group
select tag, count(*) from (select unnest(tags) as tag from nasty) as t group by tag
-- name: unnest numbers
select n, count(*), sum(id) from (select id, unnest(numbers) as n from nasty where id % 3 = 0) as t where n > 10 group by n
-- name: unnest structs
select p['label'] as label, sum(p['x']), count(*) from (select unnest(points) as p from nasty) as t group by 1
-- name: list element
select id, numbers[1] as first, tags[2] as second from nasty where id % 20 = 0
-- name: list length
--| duckdb
select len(numbers) as n, count(*) from nasty group by 1
--| plinth
select case when numbers is not null then coalesce(array_length(numbers), 0) end as n, count(*) from nasty group by 1
-- name: list is null
select count(*) from nasty where numbers is null
-- name: map element
--| duckdb
select id, attributes['ü'] as u from nasty where id % 20 = 0
--| plinth
select id, map_extract(attributes, 'ü')[1] as u from nasty where id % 20 = 0
-- name: map filter
--| duckdb
select count(*) from nasty where attributes['a'] > 50
--| plinth
select count(*) from nasty where map_extract(attributes, 'a')[1] > 50
-- name: join on text with nulls
select count(*), count(distinct k), sum(n) from nasty join other on nasty.key = other.k
-- name: join on another text
select nasty.text, count(*), max(other.n) from nasty join other on nasty.text = other.text and other.n = 5 group by nasty.text
-- name: left join with nulls
select count(*), count(other.k), sum(id) from nasty left join other on key = k
-- name: right join with nulls
select count(*), count(nasty.key), count(other.k) from nasty right join other on key = k and whole > 0
-- name: semi join
select count(*), min(key), max(key) from nasty where key in (select k from other)
-- name: not in with nulls below
select count(*) from nasty where key not in (select k from other)
-- name: not in without nulls below
select count(*), min(key) from nasty where key not in (select k from other where k is not null)
-- name: anti join
select count(*) from nasty where not exists (select 1 from other where k = key)
-- name: window ranks ordered
select id, low, rank() over (partition by low order by price desc nulls last, id) as r,
    lag(price) over (partition by low order by id) as before from nasty where id < 400 order by low nulls first, r, id
-- name: window over everything ordered
select id, sum(tiny) over (order by id rows between 3 preceding and current row) as s from nasty where id < 1000 order by id
-- name: order by text ordered
select text, id from nasty where id < 500 order by text nulls first, id
-- name: order by text descending ordered
select text, id from nasty order by text desc nulls last, id limit 40
-- name: top by timestamp ordered
select moment, id from nasty order by moment desc nulls last, id limit 20
-- name: top by decimal ordered
select exact, id from nasty order by exact nulls last, id limit 20
-- name: top of a filter ordered
select key, comment from nasty where low = 'green' and flag order by key desc nulls last limit 15
-- name: bottom with offset ordered
select id, price from nasty where price is not null order by price, id limit 5 offset 9999
-- name: limit without order
select count(*) from (select id from nasty where whole = 0 limit 123) as t
-- name: limit zero
select id, text from nasty limit 0
-- name: distinct rows
select distinct low, flag, same from nasty
-- name: distinct on nested
select count(*) from (select distinct point from nasty) as t
-- name: union of both
select text from nasty where id < 50 union select text from other
-- name: intersect
select text from nasty intersect select text from other where n > 40
-- name: rollup
select low, flag, count(*) from nasty group by rollup (low, flag)
-- name: counts with filter
select count(*) filter (where price > 0), sum(price) filter (where flag), count(distinct text) filter (where tiny > 0) from nasty
-- name: many predicates
select count(*) from nasty where tiny > 0 and small < 30000 and flag and price > 0 and low = 'red' and day > date '1950-01-01' and text is not null
-- name: in over integers
select tiny, count(*) from nasty where tiny in (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, -1, -128, 127) group by tiny
-- name: between and not between
select count(*) from nasty where tiny between -5 and 5 and whole not between -500 and 500
-- name: modulo
select id % 13 as k, count(*), min(text) from nasty group by 1
-- name: cast to text
select cast(whole as varchar) as t, count(*) from nasty where whole between -5 and 5 group by 1
-- name: filter by cast
select count(*) from nasty where cast(tiny as bigint) * 1000 > 100000
-- name: statistics
select count(*), min(id), max(id), min(key), max(key), min(price), max(price), min(day), max(day), min(zoned), max(zoned) from nasty
-- name: averages
select avg(whole), avg(ratio), avg(tiny), stddev(ratio), corr(ratio, single) from nasty
