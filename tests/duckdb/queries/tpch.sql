-- Queries beside the 22 of bench/tpch. A line "-- name: NAME [ordered] [csv]" begins a query: "ordered" compares rows in
-- their order, "csv" asks Plinth for CSV, which tells infinities and NaN from NULL (JSON can't) but not '' from NULL.
-- "--| duckdb" and "--| plinth" begin the text for that engine where the dialects leave no common one.

-- name: group by with having
select l_suppkey, count(*) as n, sum(l_quantity) as q from lineitem group by l_suppkey having sum(l_quantity) > 15500
-- name: top rows ordered
select l_orderkey, l_linenumber, l_extendedprice from lineitem
order by l_extendedprice desc, l_orderkey, l_linenumber limit 25
-- name: top rows with offset ordered
select o_orderkey, o_totalprice from orders order by o_totalprice, o_orderkey limit 10 offset 500
-- name: top rows by text ordered
select c_name, c_phone from customer order by c_phone limit 12
-- name: between dates
select count(*), min(o_orderkey), max(o_totalprice) from orders
where o_orderdate between date '1994-02-28' and date '1994-03-01'
-- name: in with text
select p_container, count(*) from part where p_container in ('JUMBO BAG', 'LG BOX', 'no such', 'WRAP JAR') group by p_container
-- name: not in with text
select count(*) from part where p_container not in ('JUMBO BAG', 'LG BOX', 'WRAP JAR')
-- name: like prefix
select p_partkey, p_name from part where p_name like 'a%' and p_type like 'STANDARD%'
-- name: like infix
select count(*) from orders where o_comment like '%furiously%deposits%'
-- name: like suffix
select count(*), min(o_comment) from orders where o_comment like '%.'
-- name: like single
select p_brand, count(*) from part where p_brand like 'Brand#_3' group by p_brand
-- name: like nothing
select count(*), min(p_name) from part where p_name like 'zzz%'
-- name: decimal equality
select count(*) from lineitem where l_discount = 0.07 and l_tax <> 0.02
-- name: decimal against integer
select count(*) from lineitem where l_quantity < 3 or l_quantity >= 50
-- name: column against column
select count(*), sum(l_quantity) from lineitem where l_shipdate > l_commitdate and l_receiptdate <= l_commitdate + interval '20' day
-- name: or over columns
select count(*) from lineitem where l_returnflag = 'R' or l_shipmode = 'AIR' or l_linenumber = 7
-- name: not of or
select count(*) from lineitem where not (l_returnflag = 'R' or l_shipmode = 'AIR')
-- name: no row
select * from lineitem where l_orderkey = -1
-- name: impossible
select count(*), sum(l_quantity), max(l_comment) from lineitem where l_shipdate < date '1900-01-01'
-- name: point
select * from orders where o_orderkey = 1
-- name: join and group
select n_name, r_name, count(*) as n, min(s_acctbal) as least from supplier, nation, region
where s_nationkey = n_nationkey and n_regionkey = r_regionkey group by n_name, r_name
-- name: left join
select c_mktsegment, count(*), count(o_orderkey) from customer left join orders on c_custkey = o_custkey and o_totalprice > 300000
group by c_mktsegment
-- name: full join
select count(*), count(a.n_name), count(b.c_name)
from nation a full join (select * from customer where c_acctbal > 9000) b on a.n_nationkey = b.c_nationkey and b.c_nationkey < 12
-- name: self join
select count(*) from nation a join nation b on a.n_regionkey = b.n_regionkey and a.n_name < b.n_name
-- name: case
select case when l_quantity < 10 then 'few' when l_quantity < 40 then 'some' else 'many' end as k, count(*), sum(l_tax)
from lineitem group by 1
-- name: substring
select substring(c_phone, 1, 2) as code, count(*) from customer group by 1
-- name: dates in parts
select extract(year from o_orderdate) as y, extract(month from o_orderdate) as m, count(*), sum(o_totalprice) from orders group by 1, 2
-- name: window
select o_custkey, o_orderkey, row_number() over (partition by o_custkey order by o_orderdate, o_orderkey) as r,
    sum(o_totalprice) over (partition by o_custkey order by o_orderdate, o_orderkey) as running
from orders where o_custkey < 100
-- name: union
select n_name as name from nation union all select r_name from region union all select s_name from supplier where s_suppkey < 5
-- name: except
select o_custkey from orders where o_orderdate < date '1993-01-01' except select o_custkey from orders where o_orderdate >= date '1995-01-01'
-- name: distinct pairs
select distinct l_shipmode, l_returnflag from lineitem
-- name: counts of distincts
select count(distinct l_suppkey), count(distinct l_comment), count(distinct l_shipdate), count(distinct l_extendedprice) from lineitem
-- name: scalar subquery
select count(*) from orders where o_totalprice > (select avg(o_totalprice) from orders)
