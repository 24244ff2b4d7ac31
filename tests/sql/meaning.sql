-- Questions that the query engine below answers wrong, with the answers of PostgreSQL.
--
-- A case is a name, statements, and behind `-->` what they print as CSV: lines in any order, unless the name ends with
-- "ordered". A line `error: text` is an error with this text in it. All run on the tables of the first case.

-- name: tables
CREATE TABLE t (id BIGINT PRIMARY KEY, x INT, y INT);
INSERT INTO t VALUES (1, 1, 10), (2, 2, NULL), (3, NULL, 30), (4, 4, 40);
CREATE TABLE s (id BIGINT PRIMARY KEY, v INT, k BIGINT);
INSERT INTO s VALUES (1, 1, 1), (2, NULL, 2), (3, 7, 3);
CREATE TABLE n (id BIGINT PRIMARY KEY, v INT NOT NULL);
INSERT INTO n VALUES (1, 1), (2, 7);
CREATE TABLE f (id BIGINT PRIMARY KEY, g INT, d DOUBLE, r REAL);
INSERT INTO f VALUES (1, 1, 'inf', 'inf'), (2, 1, 'inf', 'inf'), (3, 2, '-inf', '-inf'), (4, 3, 'nan', 'nan'), (5, 3, 1.5, 1.5), (6, 4, 'nan', 'nan'), (7, 5, NULL, NULL);
CREATE TABLE m (a INT, b TEXT);
INSERT INTO m VALUES (1, 'p'), (1, 'p'), (1, 'p'), (2, 'q'), (NULL, NULL), (NULL, NULL);
CREATE TABLE o (a INT, b TEXT);
INSERT INTO o VALUES (1, 'p'), (2, 'q'), (2, 'q'), (NULL, NULL);
-->

-- name: a: NOT IN beside OR
SELECT id FROM t WHERE x NOT IN (SELECT v FROM s) OR id = 4
-->
id
4

-- name: a: lists side by side
SELECT id FROM t WHERE x NOT IN (1) OR x NOT IN (2, 4);
SELECT id FROM t WHERE NOT (x IN (1, 2) AND x IN (4));
SELECT id FROM t WHERE x IN (1, 2) AND x NOT IN (2, NULL);
SELECT id FROM t WHERE (x IN (1) AND x IN (2)) IS NULL;
SELECT id FROM t WHERE x IN (1, 2) AND x IN (2, 4);
SELECT id FROM t WHERE x NOT IN (1.5) OR x NOT IN (3000000000, 2);
BEGIN;
DELETE FROM t WHERE x NOT IN (1) OR x NOT IN (1000);
SELECT count(*) AS n FROM t;
ROLLBACK
-->
id
1
2
4
id
1
2
4
id
id
3
id
2
id
1
2
4
n
1

-- name: a: NOT IN beside OR, by no NULL
SELECT id FROM t WHERE x NOT IN (SELECT v FROM n) OR id = 3
-->
id
2
3
4

-- name: a: NOT IN alone
SELECT id FROM t WHERE x NOT IN (SELECT v FROM s)
-->
id

-- name: a: NOT IN of nothing
SELECT id FROM t WHERE x NOT IN (SELECT v FROM s WHERE false) OR id < 0
-->
id
1
2
3
4

-- name: a: NOT IN of a constant
SELECT id FROM t WHERE 5 NOT IN (SELECT v FROM s)
-->
id

-- name: a: NOT IN of an expression that may be NULL
SELECT id FROM n WHERE nullif(v, 7) NOT IN (SELECT v + 100 FROM n)
-->
id
1

-- name: a: NOT IN of NULL
SELECT id FROM t WHERE NULL NOT IN (SELECT v FROM s)
-->
id

-- name: a: NOT (IN) within NOT
SELECT id FROM t WHERE NOT (x IN (SELECT v FROM s) AND y > 0)
-->
id

-- name: a: IN IS NULL
SELECT id FROM t WHERE (x IN (SELECT v FROM s)) IS NULL
-->
id
2
3
4

-- name: a: IN IS NOT TRUE
SELECT id FROM t WHERE (x IN (SELECT v FROM s)) IS NOT TRUE
-->
id
2
3
4

-- name: a: IN a list IS NULL
SELECT id FROM t WHERE (x IN (1, NULL)) IS NULL
-->
id
2
3
4

-- name: a: IN a long list IS NULL
SELECT id FROM t WHERE (x IN (1, 11, 12, 13, 14, 15, 16, 17, NULL)) IS NULL
-->
id
2
3
4

-- name: a: IN a list of columns IS NULL
SELECT id FROM t WHERE (1 IN (y, x)) IS NULL
-->
id
2
3

-- name: a: NOT IN correlated
SELECT id FROM t WHERE x NOT IN (SELECT v FROM s WHERE s.k = t.id)
-->
id
4

-- name: a: NOT IN correlated beside OR
SELECT id FROM t WHERE x NOT IN (SELECT v FROM s WHERE s.k = t.id) OR y = 10
-->
id
1
4

-- name: a: NOT IN an aggregate of related rows
SELECT id FROM t WHERE x NOT IN (SELECT max(v) FROM s WHERE s.k = t.id)
-->
id

-- name: a: NOT IN selected
SELECT id, x NOT IN (SELECT v FROM s) AS a, x IN (SELECT v FROM s) AS b, x IN (SELECT v FROM n) AS c FROM t
-->
id,a,b,c
1,false,true,true
2,,,false
3,,,
4,,,false

-- name: a: NOT IN within CASE
SELECT id, CASE WHEN x NOT IN (SELECT v FROM s) THEN 'out' WHEN x IN (SELECT v FROM s) THEN 'in' ELSE '?' END AS w FROM t
-->
id,w
1,in
2,?
3,?
4,?

-- name: a: NOT IN of HAVING
SELECT x FROM t GROUP BY x HAVING max(x) NOT IN (SELECT v FROM s) OR max(x) IN (SELECT v FROM n)
-->
x
1

-- name: a: NOT IN of an aggregate's argument
SELECT count(*) FILTER (WHERE (x IN (SELECT v FROM s)) IS NULL) AS c, sum(CASE WHEN x IN (SELECT v FROM n) THEN 1 ELSE 0 END) AS n FROM t
-->
c,n
3,1

-- name: a: NOT IN of a group
SELECT x IN (SELECT v FROM s) AS g, count(*) AS c FROM t GROUP BY x IN (SELECT v FROM s)
-->
g,c
true,1
,3

-- name: a: NOT IN of an order ordered
SELECT id FROM t ORDER BY x IN (SELECT v FROM s) NULLS FIRST, id DESC
-->
id
4
3
2
1

-- name: a: NOT IN of an inner join
SELECT t.id, s.id AS i FROM t JOIN s ON t.id = s.id AND t.x NOT IN (SELECT v FROM s)
-->
id,i

-- name: a: IN IS NULL of an outer join
SELECT t.id, s.id AS i FROM t LEFT JOIN s ON t.id = s.id AND (t.x IN (SELECT v FROM s)) IS NULL
-->
id,i
1,
2,2
3,3
4,

-- name: a: EXISTS selected
SELECT id, EXISTS (SELECT 1 FROM s WHERE s.v = t.x) AS e FROM t
-->
id,e
1,true
2,false
3,false
4,false

-- name: a: a DELETE by it
BEGIN;
DELETE FROM t WHERE x NOT IN (SELECT v FROM s) OR id = 4;
SELECT id FROM t;
ROLLBACK
-->
id
1
2
3

-- name: a: an UPDATE by it
BEGIN;
UPDATE t SET y = 0 WHERE (x IN (SELECT v FROM s)) IS NULL;
SELECT id, y FROM t;
ROLLBACK
-->
id,y
1,10
2,0
3,0
4,0

-- name: a: a MERGE by it
BEGIN;
MERGE INTO t USING n ON t.id = n.id WHEN MATCHED AND (t.x IN (SELECT v FROM s)) IS NULL THEN DELETE;
SELECT id FROM t;
ROLLBACK
-->
id
1
3
4

-- name: b: EXCEPT ALL
SELECT a, b FROM m EXCEPT ALL SELECT a, b FROM o
-->
a,b
1,p
1,p
,

-- name: b: INTERSECT ALL
SELECT a, b FROM m INTERSECT ALL SELECT a, b FROM o
-->
a,b
1,p
2,q
,

-- name: b: EXCEPT
SELECT a, b FROM m EXCEPT SELECT a, b FROM o WHERE a = 1
-->
a,b
2,q
,

-- name: b: EXCEPT ALL of a table and itself, of types that differ
SELECT a FROM m EXCEPT ALL SELECT CAST(a AS BIGINT) FROM m WHERE a IS NULL OR a = 2 EXCEPT ALL SELECT 1.0
-->
a
1
1

-- name: b: an INSERT by it
BEGIN;
INSERT INTO m SELECT a, b FROM m EXCEPT ALL SELECT a, b FROM o;
SELECT count(*) AS c FROM m;
ROLLBACK
-->
c
9

-- name: c: IS DISTINCT FROM before AND
SELECT id FROM t WHERE x IS DISTINCT FROM 1 AND id > 2
-->
id
3
4

-- name: c: IS DISTINCT FROM between AND and OR
SELECT id FROM t WHERE id = 1 AND x IS DISTINCT FROM 1 OR id = 4
-->
id
4

-- name: c: IS NOT DISTINCT FROM before OR, and arithmetic
SELECT id FROM t WHERE x IS NOT DISTINCT FROM 1 + 1 OR x IS NULL AND y IS DISTINCT FROM 31
-->
id
2
3

-- name: c: IS DISTINCT FROM before a comparison and after NOT
SELECT NOT 1 IS DISTINCT FROM 2 AS a, true IS DISTINCT FROM 1 = 1 AS b, 1 IS NOT DISTINCT FROM 1 AND NULL IS NOT DISTINCT FROM NULL OR false AS c
-->
a,b,c
false,false,true

-- name: d: > ANY over a column of the outer name
SELECT id FROM t WHERE x > ANY (SELECT x FROM t WHERE id < 3)
-->
id
2
4

-- name: d: = ANY and <> ALL over a column of the outer name
SELECT id, x = ANY (SELECT x FROM t WHERE id > 1) AS a, x <> ALL (SELECT x FROM t WHERE id < 3) AS b FROM t
-->
id,a,b
1,,false
2,true,false
3,,
4,true,true

-- name: d: ALL of nothing
SELECT id FROM t WHERE x > ALL (SELECT x FROM t WHERE id > 99)
-->
id
1
2
3
4

-- name: d: >= ALL
SELECT id FROM t WHERE x >= ALL (SELECT x FROM t WHERE x IS NOT NULL)
-->
id
4

-- name: d: ANY correlated
SELECT id FROM t AS o WHERE x > ANY (SELECT x FROM t WHERE t.id < o.id)
-->
id
2
4

-- name: e: a named window that is refined
SELECT id, row_number() OVER (w ORDER BY id DESC) AS r FROM f WINDOW w AS (PARTITION BY g)
-->
id,r
1,2
2,1
3,1
4,2
5,1
6,1
7,1

-- name: e: a named window of another
SELECT id, sum(id) OVER (v ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS r FROM f WINDOW w AS (PARTITION BY g), v AS (w ORDER BY id)
-->
id,r
1,1
2,3
3,3
4,4
5,9
6,6
7,7

-- name: e: a named window within ORDER BY ordered
SELECT id FROM f WINDOW w AS (PARTITION BY g) ORDER BY row_number() OVER (w ORDER BY id DESC), id
-->
id
2
3
5
6
7
1
4

-- name: e: a named window that is not there
SELECT row_number() OVER (w ORDER BY id) FROM f
-->
error: window "w"

-- name: e: a second partition of a named window
SELECT row_number() OVER (w PARTITION BY id) FROM f WINDOW w AS (PARTITION BY g)
-->
error: PARTITION BY

-- name: f: min and max by groups
SELECT g, min(d) AS a, max(d) AS b, min(r) AS c, max(r) AS e FROM f GROUP BY g
-->
g,a,b,c,e
1,inf,inf,inf,inf
2,-inf,-inf,-inf,-inf
3,1.5,NaN,1.5,NaN
4,NaN,NaN,NaN,NaN
5,,,,

-- name: f: min and max without groups
SELECT min(d) AS a, max(d) AS b, min(r) AS c, max(r) AS e FROM f WHERE g = 3
-->
a,b,c,e
1.5,NaN,1.5,NaN

-- name: f: NaN that was computed is the largest number, too
SELECT min(q) AS a, max(q) AS b FROM (SELECT (d - d) / (d - d) AS q FROM f WHERE id = 5 UNION ALL SELECT 2.0)
-->
a,b
2.0,NaN

-- name: f: and in groups, and in frames
SELECT id, min(q) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS w FROM (SELECT id, CASE WHEN id = 5 THEN (d - d) / (d - d) ELSE 2.0 END AS q FROM f WHERE id > 3)
-->
id,w
4,2.0
5,2.0
6,2.0
7,2.0

-- name: g: any_value by an order
SELECT g, any_value(id ORDER BY id DESC) AS a, any_value(d ORDER BY id DESC) AS b FROM f WHERE g IN (1, 3, 5) GROUP BY g
-->
g,a,b
1,2,inf
3,5,1.5
5,7,

-- name: h: a date and hours
SELECT DATE '2020-01-01' + INTERVAL '5 hours' AS a, DATE '2020-01-01' - INTERVAL '1 minute' AS b, INTERVAL '90 seconds' + DATE '2020-01-01' AS c
-->
a,b,c
2020-01-01T05:00:00,2019-12-31T23:59:00,2020-01-01T00:01:30

-- name: h: a date and days
SELECT DATE '2020-01-31' + INTERVAL '1 month' AS a, DATE '2020-01-01' - INTERVAL '1 day' = DATE '2019-12-31' AS b
-->
a,b
2020-02-29,true

-- name: h: a date and an interval that is no constant
SELECT CAST('2020-01-01' AS DATE) + v AS a FROM (SELECT INTERVAL '36 hours' AS v)
-->
a
2020-01-02T12:00:00

-- name: i: BETWEEN looks once
SELECT count(*) FILTER (WHERE random() BETWEEN 0.4 AND 0.6) BETWEEN 18500 AND 21500 AS a, count(*) FILTER (WHERE random() NOT BETWEEN 0.4 AND 0.6) BETWEEN 78500 AND 81500 AS b FROM generate_series(1, 100000)
-->
a,b
true,true

-- name: i: CASE and coalesce look once
SELECT count(*) AS c FROM generate_series(1, 20000) WHERE coalesce(nullif(floor(random() * 2), 1.0), 5.0) NOT IN (0.0, 5.0)
-->
c
0

-- name: j: floats to integers round to the nearest, halves to even
SELECT CAST(q AS INT) AS a, CAST(q AS BIGINT) AS b, CAST(CAST(q AS REAL) AS SMALLINT) AS c FROM (VALUES (CAST(0.5 AS DOUBLE)), (1.5), (2.5), (-0.5), (-1.5), (2.7), (-2.7)) AS v(q)
-->
a,b,c
0,0,0
2,2,2
2,2,2
0,0,0
-2,-2,-2
3,3,3
-3,-3,-3

-- name: j: decimals to integers round halves away from zero
SELECT CAST(q AS INT) AS a, CAST(q AS BIGINT) AS b FROM (VALUES (CAST(0.5 AS DECIMAL(10, 2))), (1.49), (2.50), (-0.50), (-1.51), (9.99)) AS v(q)
-->
a,b
1,1
1,1
3,3
-1,-1
-2,-2
10,10

-- name: j: decimals of fewer places
SELECT CAST(q AS DECIMAL(5, 1)) AS a FROM (VALUES (CAST(0.25 AS DECIMAL(10, 2))), (1.24), (-0.25), (99.95)) AS v(q)
-->
a
0.3
1.2
-0.3
100.0

-- name: j: comparisons of what is rounded
SELECT count(*) AS c FROM (VALUES (CAST(1.50 AS DECIMAL(10, 2))), (1.49), (2.00), (2.49), (2.50)) AS v(q) WHERE CAST(q AS INT) = 2 AND CAST(q AS DECIMAL(9, 0)) = 2
-->
c
3

-- name: j: beyond the range
SELECT CAST(q AS SMALLINT) FROM (VALUES (CAST(32767.5 AS DOUBLE))) AS v(q)
-->
error: 32768

-- name: j: TRY_CAST beyond the range
SELECT coalesce(TRY_CAST(q AS SMALLINT), -1) AS a FROM (VALUES (CAST(32767.4 AS DOUBLE)), (32767.5), ('nan'), (NULL)) AS v(q)
-->
a
-1
-1
-1
32767

-- name: j: numbers with a point are decimals
SELECT CAST(2.5 AS INT) AS a, CAST(-0.5 AS INT) AS b, CAST(2.5e0 AS DOUBLE)::INT AS c
-->
a,b,c
3,-1,2

-- name: j: INSERT rounds, too
BEGIN;
INSERT INTO n VALUES (9, 2.5), (10, 3.5);
UPDATE n SET v = CAST(6.5 AS DOUBLE) WHERE id = 1;
SELECT id, v FROM n;
ROLLBACK
-->
id,v
1,6
2,7
9,3
10,4

-- name: j: time stamps of fewer places
SELECT CAST(TIMESTAMP '2020-01-01 00:00:00.9996' AS TIMESTAMP(3)) AS a, CAST(TIMESTAMP '1969-12-31 23:59:59.6' AS TIMESTAMP(0)) AS b
-->
a,b
2020-01-01T00:00:01,1970-01-01T00:00:00

-- name: j: the day of a time stamp before 1970
SELECT CAST(q AS DATE) AS a FROM (VALUES (TIMESTAMP '1969-12-31 23:00:00'), (TIMESTAMP '1969-12-30 00:00:00')) AS v(q)
-->
a
1969-12-31
1969-12-30

-- name: k: a recursion under a limit
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT n FROM r LIMIT 5
-->
n
1
2
3
4
5

-- name: k: a recursion under a limit, a filter and an expression
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n * 10 AS n FROM r WHERE n % 2 = 0 LIMIT 3
-->
n
20
40
60

-- name: k: a recursion under a limit and a join
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM (SELECT * FROM r LIMIT 3) JOIN t ON t.id = n
-->
n
1
2
3

-- name: k: a recursion of a union of distinct rows
WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT (n + 1) % 4 FROM r) SELECT n FROM r
-->
n
0
1
2
3

-- name: l: DISTINCT ON with a parameter ordered
PREPARE p(BIGINT) AS SELECT DISTINCT ON (g) g, id + $1 AS i FROM f WHERE g < 4 ORDER BY g, id DESC;
EXECUTE p(100)
-->
g,i
1,102
2,103
3,105

-- name: l: DISTINCT ON a parameter
PREPARE q(INT) AS SELECT DISTINCT ON (g % $1) g % $1 AS r, id FROM f ORDER BY g % $1, id;
EXECUTE q(2)
-->
r,id
0,3
1,1

-- name: m: IS FALSE within an aggregate
SELECT sum(CASE WHEN (x < 2) IS FALSE THEN 1 WHEN NOT ((x < 2) IS FALSE) THEN 100 ELSE 10000 END) AS n FROM t
-->
n
202

-- name: m: IN a subquery that depends on the row, of a value computed
SELECT t.id FROM t WHERE CAST(1 AS BIGINT) IN (SELECT s.v FROM s WHERE s.v = t.x)
-->
id
1

-- name: f: the first of keys of which one is NaN
SELECT d FROM f GROUP BY d ORDER BY d LIMIT 1
-->
d
-inf

-- name: f: both zeros are one distinct value
SELECT g, count(DISTINCT d) AS n FROM (VALUES (1, CAST('0' AS DOUBLE)), (1, CAST('-0' AS DOUBLE))) AS z(g, d) GROUP BY g
-->
g,n
1,1

-- name: n: a filter on one of two columns of the same name
SELECT s.v, n.v FROM s RIGHT JOIN n ON s.k = n.id AND s.v = 1 WHERE s.v IS NULL
-->
v,v_1
,7

-- name: n: the same behind groups
SELECT n.v, count(s.v) AS c, count(n.id) AS i FROM s RIGHT JOIN n ON s.k = n.id AND s.v = 1 WHERE s.v IS NULL GROUP BY n.v
-->
v,c,i
7,0,1

-- name: n: the same of a full join
SELECT s.id, n.id FROM s FULL JOIN n ON s.v = n.v WHERE s.id IS NULL OR n.id IS NULL
-->
id,id_1
2,

-- name: n: both sides once more
SELECT a.v, b.v, n.v FROM s AS a RIGHT JOIN (s AS b RIGHT JOIN n ON b.id = n.id + 1) ON a.id = b.id + 5 WHERE b.v IS NULL AND a.v IS NULL
-->
v,v_1,v_2
,,1
