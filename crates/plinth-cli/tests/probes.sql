COPY (SELECT value AS id, value % 3 AS g, CAST(value * 1.5 AS decimal(10, 1)) AS v,
    arrow_cast(1704067200000000 + value * 3600000000, 'Timestamp(Microsecond, None)') AS ts, 'n' || value AS name,
    named_struct('a', value, 'b', 'q') AS s, [value, value + 1] AS l, concat('{"k":{"z":', value, '},"arr":[1,2]}') AS j
    FROM range(10)) TO 't.parquet';
COPY (SELECT id, g, v, ts, name FROM 't.parquet') TO 't.csv';
COPY (SELECT id, g, v, ts, name FROM 't.parquet') TO 't.ndjson' STORED AS JSON;
COPY (SELECT 1 AS a, 'x' AS b) TO 'part/y=2024/m=1/f.parquet';
COPY (SELECT 2 AS a, 'y' AS b) TO 'part/y=2025/m=2/f.parquet';
COPY (SELECT -2461439046089301801 AS "UserID") TO 'nano_hits.parquet';
