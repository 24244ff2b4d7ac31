-- The 43 queries of ClickBench, with literals that match something in the sample of its table (days are numbers and times
-- seconds there, kept so), made to have a total order where they have a limit. queries/tpch.sql tells the form.

-- name: 0
select count(*) from hits
-- name: 1
select count(*) from hits where "AdvEngineID" <> 0
-- name: 2
select sum("AdvEngineID"), count(*), avg("ResolutionWidth") from hits
-- name: 3
select avg(cast("UserID" as double)) from hits
-- name: 4
select count(distinct "UserID") from hits
-- name: 5
select count(distinct "SearchPhrase") from hits
-- name: 6
select min("EventDate"), max("EventDate") from hits
-- name: 7 ordered
select "AdvEngineID", count(*) as n from hits where "AdvEngineID" <> 0 group by "AdvEngineID" order by n desc, 1
-- name: 8 ordered
select "RegionID", count(distinct "UserID") as u from hits group by "RegionID" order by u desc, 1 limit 10
-- name: 9 ordered
select "RegionID", sum("AdvEngineID"), count(*) as c, avg("ResolutionWidth"), count(distinct "UserID") from hits
group by "RegionID" order by c desc, 1 limit 10
-- name: 10 ordered
select "MobilePhoneModel", count(distinct "UserID") as u from hits where "MobilePhoneModel" <> ''
group by "MobilePhoneModel" order by u desc, 1 limit 10
-- name: 11 ordered
select "MobilePhone", "MobilePhoneModel", count(distinct "UserID") as u from hits where "MobilePhoneModel" <> ''
group by "MobilePhone", "MobilePhoneModel" order by u desc, 1, 2 limit 10
-- name: 12 ordered
select "SearchPhrase", count(*) as c from hits where "SearchPhrase" <> '' group by "SearchPhrase" order by c desc, 1 limit 10
-- name: 13 ordered
select "SearchPhrase", count(distinct "UserID") as u from hits where "SearchPhrase" <> ''
group by "SearchPhrase" order by u desc, 1 limit 10
-- name: 14 ordered
select "SearchEngineID", "SearchPhrase", count(*) as c from hits where "SearchPhrase" <> ''
group by "SearchEngineID", "SearchPhrase" order by c desc, 1, 2 limit 10
-- name: 15 ordered
select "UserID", count(*) as c from hits group by "UserID" order by c desc, 1 limit 10
-- name: 16 ordered
select "UserID", "SearchPhrase", count(*) as c from hits group by "UserID", "SearchPhrase" order by c desc, 1, 2 limit 10
-- name: 17
select count(*) from (select "UserID", "SearchPhrase", count(*) from hits group by "UserID", "SearchPhrase" limit 10) as t
-- name: 18 ordered
select "UserID", ("EventTime" - "EventTime" % 60) % 3600 as m, "SearchPhrase", count(*) as c from hits
group by 1, 2, 3 order by c desc, 1, 2, 3 limit 10
-- name: 19
select "UserID" from hits where "UserID" = -7918574344944952583
-- name: 20
select count(*) from hits where "URL" like '%pulove%'
-- name: 21 ordered
select "SearchPhrase", min("URL"), count(*) as c from hits where "URL" like '%pulove%' and "SearchPhrase" <> ''
group by "SearchPhrase" order by c desc, 1 limit 10
-- name: 22 ordered
select "SearchPhrase", min("URL"), min("Title"), count(*) as c, count(distinct "UserID") from hits
where "Title" like '%Google%' and "URL" not like '%.google.%' and "SearchPhrase" <> '' group by "SearchPhrase" order by c desc, 1 limit 10
-- name: 23 ordered
select * from hits where "URL" like '%pulove%' order by "EventTime", "WatchID" limit 10
-- name: 24 ordered
select "SearchPhrase" from hits where "SearchPhrase" <> '' order by "EventTime", "SearchPhrase" limit 10
-- name: 25 ordered
select "SearchPhrase" from hits where "SearchPhrase" <> '' order by "SearchPhrase" limit 10
-- name: 26 ordered
select "SearchPhrase" from hits where "SearchPhrase" <> '' order by "EventTime", "SearchPhrase" limit 10
-- name: 27 ordered
select "CounterID", avg(length("URL")) as l, count(*) as c from hits where "URL" <> ''
group by "CounterID" having count(*) > 5 order by l desc, 1 limit 25
-- name: 28 ordered
select regexp_replace("Referer", '^https?://(?:www\.)?([^/]+)/.*$', '\1') as k, avg(length("Referer")) as l, count(*) as c, min("Referer")
from hits where "Referer" <> '' group by 1 having count(*) > 5 order by l desc, 1 limit 25
-- name: 29
select sum("ResolutionWidth"), sum("ResolutionWidth" + 1), sum("ResolutionWidth" + 2), sum("ResolutionWidth" + 89) from hits
-- name: 30 ordered
select "SearchEngineID", "ClientIP", count(*) as c, sum("IsRefresh"), avg("ResolutionWidth") from hits where "SearchPhrase" <> ''
group by "SearchEngineID", "ClientIP" order by c desc, 1, 2 limit 10
-- name: 31 ordered
select "WatchID", "ClientIP", count(*) as c, sum("IsRefresh"), avg("ResolutionWidth") from hits where "SearchPhrase" <> ''
group by "WatchID", "ClientIP" order by c desc, 1, 2 limit 10
-- name: 32 ordered
select "WatchID", "ClientIP", count(*) as c, sum("IsRefresh"), avg("ResolutionWidth") from hits
group by "WatchID", "ClientIP" order by c desc, 1, 2 limit 10
-- name: 33 ordered
select "URL", count(*) as c from hits group by "URL" order by c desc, 1 limit 10
-- name: 34 ordered
select 1 as one, "URL", count(*) as c from hits group by 1, "URL" order by c desc, 2 limit 10
-- name: 35 ordered
select "ClientIP", "ClientIP" - 1 as a, "ClientIP" - 2 as b, "ClientIP" - 3 as d, count(*) as c from hits
group by 1, 2, 3, 4 order by c desc, 1 limit 10
-- name: 36 ordered
select "URL", count(*) as v from hits where "CounterID" = 38 and "EventDate" >= 15887 and "EventDate" <= 15917
and "DontCountHits" = 0 and "IsRefresh" = 0 and "URL" <> '' group by "URL" order by v desc, 1 limit 10
-- name: 37 ordered
select "Title", count(*) as v from hits where "CounterID" = 38 and "EventDate" >= 15887 and "EventDate" <= 15917
and "DontCountHits" = 0 and "IsRefresh" = 0 and "Title" <> '' group by "Title" order by v desc, 1 limit 10
-- name: 38 ordered
select "URL", count(*) as v from hits where "CounterID" = 38 and "EventDate" >= 15887 and "EventDate" <= 15917
and "IsRefresh" = 0 and "IsLink" <> 0 and "IsDownload" = 0 group by "URL" order by v desc, 1 limit 10 offset 5
-- name: 39 ordered
select "TraficSourceID", "SearchEngineID", "AdvEngineID",
    case when "SearchEngineID" = 0 and "AdvEngineID" = 0 then "Referer" else '' end as src, "URL" as dst, count(*) as v
from hits where "CounterID" = 38 and "EventDate" >= 15887 and "EventDate" <= 15917 and "IsRefresh" = 0
group by 1, 2, 3, 4, 5 order by v desc, 1, 2, 3, 4, 5 limit 10 offset 100
-- name: 40 ordered
select "URLHash", "EventDate", count(*) as v from hits where "CounterID" = 38 and "IsRefresh" = 0 and "TraficSourceID" in (-1, 6)
and "RefererHash" = 2947180871991420512 group by 1, 2 order by v desc, 1, 2 limit 10
-- name: 41 ordered
select "WindowClientWidth", "WindowClientHeight", count(*) as v from hits where "CounterID" = 38 and "IsRefresh" = 0
and "DontCountHits" = 0 and "URLHash" = 2649717405027890163 group by 1, 2 order by v desc, 1, 2 limit 10
-- name: 42 ordered
select "EventTime" - "EventTime" % 60 as m, count(*) as v from hits where "CounterID" = 38 and "EventDate" >= 15900
and "EventDate" <= 15901 and "IsRefresh" = 0 and "DontCountHits" = 0 group by 1 order by m limit 10 offset 20
-- name: cyrillic equality
select count(*), min("URL") from hits where "SearchPhrase" = 'ведомосквы вместу'
-- name: cyrillic prefix
select "SearchPhrase", count(*) from hits where "SearchPhrase" like 'ведомоскв%' group by 1
-- name: cyrillic infix
select count(*), count(distinct "Title") from hits where "Title" like '%Омск%'
-- name: cyrillic functions
select substr("Title", 1, 7) as t, count(*), max(length("Title")) from hits group by 1
