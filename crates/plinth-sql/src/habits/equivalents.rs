//! What functions of DuckDB, PostgreSQL and MySQL are called here, and what those mean that are not here.

/// NULL in a list is none of its items.
const HAS_ANY: &str =
    "CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN array_has_any(array_compact($1), array_compact($2)) END";
const HAS_ALL: &str =
    "CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN array_has_all(array_compact($1), array_compact($2)) END";
const SPLIT: &str = "CASE WHEN $1 IS NULL THEN NULL WHEN $2 IS NULL THEN make_array($1) WHEN $1 = '' THEN make_array($1) WHEN $2 = '' THEN string_to_array($1, NULL) \
                     ELSE string_to_array($1, $2) END";

const REMOVE: &str = "CASE WHEN $2 IS NULL THEN array_compact($1) ELSE array_remove_all($1, $2) END";
const MAP_EXTRACT: &str = "CASE WHEN $1 IS NULL THEN NULL WHEN array_has(map_keys($1), $2) THEN map_extract($1, $2) ELSE array_pop_back(map_extract($1, $2)) END";

/// The first value that so many are not greater than.
pub(super) const QUANTILE: &str = "array_element(array_agg($1 ORDER BY $1) FILTER (WHERE $1 IS NOT NULL), CAST(greatest(ceil(count($1) * $2), 1) AS BIGINT))";

/// Functions with another name.
pub(super) const NAMES: &[(&str, &str)] = &[
    ("approx_count_distinct", "approx_distinct"),
    ("approx_quantile", "approx_percentile_cont"),
    ("first", "first_value"),
    ("arbitrary", "first_value"),
    ("sign", "signum"),
    ("last", "last_value"),
    ("list", "array_agg"),
    ("quantile_cont", "percentile_cont"),
    ("regexp_matches", "regexp_like"),
    ("gen_random_uuid", "uuid"),
    ("list_filter", "array_filter"),
    ("filter", "array_filter"),
    ("list_transform", "array_transform"),
    ("list_apply", "array_transform"),
    ("apply", "array_transform"),
    ("list_value", "make_array"),
    ("list_pack", "make_array"),
    ("ucase", "upper"),
    ("lcase", "lower"),
    ("variance", "var_samp"),
    ("ceiling", "ceil"),
    ("group_concat", "string_agg"),
    ("listagg", "string_agg"),
    ("array_replace", "array_replace_all"),
    ("list_replace", "array_replace_all"),
    ("every", "bool_and"),
    ("sum_no_overflow", "sum"),
    ("array_value", "make_array"),
    ("any", "any_value"),
    ("anylast", "last_value"),
    ("logical_and", "bool_and"),
    ("logical_or", "bool_or"),
    ("row_to_json", "to_json"),
    ("array_to_json", "to_json"),
];

/// Centuries and millennia begin with their first year, and there is no year 0.
const CENTURY: &str = "CASE WHEN date_part('year', $1) > 0 THEN (date_part('year', $1) - 1) / 100 + 1 ELSE date_part('year', $1) / 100 - 1 END";
const MILLENNIUM: &str = "CASE WHEN date_part('year', $1) > 0 THEN (date_part('year', $1) - 1) / 1000 + 1 ELSE date_part('year', $1) / 1000 - 1 END";

const ARG_MAX: &str = "first_value($1 ORDER BY $2 DESC NULLS LAST) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL)";
const ARG_MIN: &str = "first_value($1 ORDER BY $2 ASC NULLS LAST) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL)";

/// The values beside the largest, and the smallest: so many.
const MOST: &str =
    "array_slice(array_agg($1 ORDER BY $2 DESC NULLS LAST) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL), 1, $3)";
const LEAST: &str =
    "array_slice(array_agg($1 ORDER BY $2 ASC NULLS LAST) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL), 1, $3)";

const GEOMEAN: &str = "exp(avg(ln($1)))";

/// The third and fourth moments about the mean, by those about zero.
const SKEWNESS: &str = "CASE WHEN count($1) > 2 THEN sqrt(CAST(count($1) AS DOUBLE) * (count($1) - 1)) / (count($1) - 2) \
                        * (avg(power(CAST($1 AS DOUBLE), 3)) - 3 * avg(CAST($1 AS DOUBLE)) * avg(power(CAST($1 AS DOUBLE), 2)) + 2 * power(avg(CAST($1 AS DOUBLE)), 3)) \
                        / power(var_pop(CAST($1 AS DOUBLE)), 1.5) END";
const KURTOSIS_POP: &str = "CASE WHEN count($1) > 1 THEN (avg(power(CAST($1 AS DOUBLE), 4)) - 4 * avg(CAST($1 AS DOUBLE)) * avg(power(CAST($1 AS DOUBLE), 3)) \
                            + 6 * power(avg(CAST($1 AS DOUBLE)), 2) * avg(power(CAST($1 AS DOUBLE), 2)) - 3 * power(avg(CAST($1 AS DOUBLE)), 4)) \
                            / power(var_pop(CAST($1 AS DOUBLE)), 2) - 3 END";
const KURTOSIS: &str = "CASE WHEN count($1) > 3 THEN (count($1) - 1) * ((count($1) + 1) * ((avg(power(CAST($1 AS DOUBLE), 4)) - 4 * avg(CAST($1 AS DOUBLE)) * avg(power(CAST($1 AS DOUBLE), 3)) \
                        + 6 * power(avg(CAST($1 AS DOUBLE)), 2) * avg(power(CAST($1 AS DOUBLE), 2)) - 3 * power(avg(CAST($1 AS DOUBLE)), 4)) \
                        / power(var_pop(CAST($1 AS DOUBLE)), 2)) - 3 * (count($1) - 1)) / (CAST(count($1) - 2 AS DOUBLE) * (count($1) - 3)) END";

/// The host of a URL.
const DOMAIN: &str = "CASE WHEN $1 IS NOT NULL THEN coalesce(regexp_match($1, '^(?:[A-Za-z][A-Za-z0-9+.-]*:)?//(?:[^@/?#]*@)?([^/:?#]+)')[1], '') END";

const AS_JSON: &str = "CASE WHEN count(*) > 0 THEN to_json(array_agg($1)) END";

const CODE_POINT: &str = "CASE WHEN $1 = '' THEN -1 ELSE ascii($1) END";
const FROM_HEX: &str = "decode(CASE WHEN length($1) % 2 = 1 THEN concat('0', $1) ELSE $1 END, 'hex')";
const EXACT_SUM: &str = "sum_exact(CAST($1 AS DOUBLE))";

/// Functions by their name and the number of their arguments, and what they mean.
pub(super) const TEMPLATES: &[(&str, usize, &str)] = &[
    ("mod", 2, "$1 % $2"),
    // The engine has a list of NULL for a key that is not there.
    ("map_extract", 2, MAP_EXTRACT),
    // All, as PostgreSQL has it, where the engine's have the first, and NULL of all for NULL.
    ("array_remove", 2, REMOVE),
    ("list_remove", 2, REMOVE),
    ("element_at", 2, MAP_EXTRACT),
    ("if", 3, "CASE WHEN $1 THEN $2 ELSE $3 END"),
    ("iff", 3, "CASE WHEN $1 THEN $2 ELSE $3 END"),
    ("count_if", 1, "count(CASE WHEN $1 THEN 1 END)"),
    ("countif", 1, "count(CASE WHEN $1 THEN 1 END)"),
    ("year", 1, "date_part('year', $1)"),
    ("quarter", 1, "date_part('quarter', $1)"),
    ("month", 1, "date_part('month', $1)"),
    ("week", 1, "date_part('week', $1)"),
    ("day", 1, "date_part('day', $1)"),
    ("dayofmonth", 1, "date_part('day', $1)"),
    ("dayofweek", 1, "date_part('dow', $1)"),
    ("dayofyear", 1, "date_part('doy', $1)"),
    ("hour", 1, "date_part('hour', $1)"),
    ("minute", 1, "date_part('minute', $1)"),
    ("epoch", 1, "date_part('epoch', $1)"),
    ("isodow", 1, "date_part('isodow', $1)"),
    ("weekday", 1, "date_part('dow', $1)"),
    ("weekofyear", 1, "date_part('week', $1)"),
    ("millisecond", 1, "date_part('millisecond', $1)"),
    ("microsecond", 1, "date_part('microsecond', $1)"),
    ("second", 1, "CAST(floor(date_part('second', $1)) AS BIGINT)"),
    ("to_timestamp", 1, "CAST(plinth_moment($1) AS TIMESTAMP WITH TIME ZONE)"),
    ("epoch_us", 1, "CAST(arrow_cast($1, 'Timestamp(Microsecond, None)') AS BIGINT)"),
    ("epoch_ns", 1, "CAST(arrow_cast($1, 'Timestamp(Nanosecond, None)') AS BIGINT)"),
    (
        "make_timestamp",
        6,
        "CAST(make_date($1, $2, $3) AS TIMESTAMP) + arrow_cast(CAST(round(($4 * 3600 + $5 * 60 + $6) * 1000000.0) AS BIGINT), 'Duration(Microsecond)')",
    ),
    (
        "age",
        2,
        "plinth_age(arrow_cast($1, 'Timestamp(Microsecond, None)'), arrow_cast($2, 'Timestamp(Microsecond, None)'))",
    ),
    (
        "age",
        1,
        "plinth_age(arrow_cast(current_date(), 'Timestamp(Microsecond, None)'), arrow_cast($1, 'Timestamp(Microsecond, None)'))",
    ),
    ("list_has_any", 2, HAS_ANY),
    ("array_has_any", 2, HAS_ANY),
    ("list_has_all", 2, HAS_ALL),
    ("array_has_all", 2, HAS_ALL),
    // Without a separator letters, and with NULL for one the whole: the engine's have it the other way round.
    ("string_split", 2, SPLIT),
    ("str_split", 2, SPLIT),
    ("split", 2, SPLIT),
    ("list_count", 1, "len(array_compact($1))"),
    ("list_distinct", 1, "array_compact(array_distinct($1))"),
    ("array_distinct", 1, "array_compact(array_distinct($1))"),
    ("list_unique", 1, "len(array_compact(array_distinct($1)))"),
    ("list_first", 1, "$1[1]"),
    ("list_last", 1, "$1[-1]"),
    ("list_reverse_sort", 1, "array_sort($1, 'DESC', 'NULLS LAST')"),
    ("regexp_full_match", 2, "regexp_like($1, '^(?:' || $2 || ')$')"),
    ("prefix", 2, "starts_with($1, $2)"),
    ("suffix", 2, "ends_with($1, $2)"),
    ("position", 2, "strpos($2, $1)"),
    ("xor", 2, "($1 | $2) - ($1 & $2)"),
    ("getvariable", 1, "plinth_variable($1)"),
    ("dayname", 1, "to_char($1, '%A')"),
    ("monthname", 1, "to_char($1, '%B')"),
    ("last_day", 1, "CAST(date_trunc('month', $1) + INTERVAL '1 month' - INTERVAL '1 day' AS DATE)"),
    ("to_years", 1, "INTERVAL '1 year' * $1"),
    ("to_months", 1, "INTERVAL '1 month' * $1"),
    ("to_weeks", 1, "INTERVAL '7 days' * $1"),
    ("to_days", 1, "INTERVAL '1 day' * $1"),
    ("to_hours", 1, "INTERVAL '1 hour' * $1"),
    ("to_minutes", 1, "INTERVAL '1 minute' * $1"),
    ("to_seconds", 1, "INTERVAL '1 second' * $1"),
    ("to_milliseconds", 1, "INTERVAL '1 millisecond' * $1"),
    ("to_microseconds", 1, "INTERVAL '1 microsecond' * $1"),
    ("quantile_disc", 2, QUANTILE),
    ("struct_extract", 2, "get_field($1, $2)"),
    ("isinf", 1, "abs(CAST($1 AS DOUBLE)) = CAST('inf' AS DOUBLE)"),
    ("isfinite", 1, "CAST($1 AS DOUBLE) < CAST('inf' AS DOUBLE) AND CAST($1 AS DOUBLE) > CAST('-inf' AS DOUBLE)"),
    ("date_add", 2, "$1 + $2"),
    ("date_sub", 2, "$1 - $2"),
    ("arg_max", 2, ARG_MAX),
    ("max_by", 2, ARG_MAX),
    ("arg_min", 2, ARG_MIN),
    ("min_by", 2, ARG_MIN),
    (
        "regexp_extract",
        2,
        "CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN coalesce(regexp_match($1, concat('(', $2, ')'))[1], '') END",
    ),
    (
        "regexp_extract",
        3,
        "CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN coalesce(regexp_match($1, concat('(', $2, ')'))[$3 + 1], '') END",
    ),
    ("date_diff day", 2, "CAST($2 AS DATE) - CAST($1 AS DATE)"),
    ("date_diff week", 2, "CAST(trunc((CAST($2 AS DATE) - CAST($1 AS DATE)) / 7.0) AS BIGINT)"),
    (
        "date_diff quarter",
        2,
        "(date_part('year', $2) - date_part('year', $1)) * 4 + date_part('quarter', $2) - date_part('quarter', $1)",
    ),
    ("date_diff year", 2, "date_part('year', $2) - date_part('year', $1)"),
    (
        "date_diff month",
        2,
        "(date_part('year', $2) - date_part('year', $1)) * 12 + date_part('month', $2) - date_part('month', $1)",
    ),
    (
        "date_diff hour",
        2,
        "CAST((date_part('epoch', date_trunc('hour', $2)) - date_part('epoch', date_trunc('hour', $1))) / 3600 AS BIGINT)",
    ),
    (
        "date_diff minute",
        2,
        "CAST((date_part('epoch', date_trunc('minute', $2)) - date_part('epoch', date_trunc('minute', $1))) / 60 AS BIGINT)",
    ),
    (
        "date_diff second",
        2,
        "CAST(date_part('epoch', date_trunc('second', $2)) - date_part('epoch', date_trunc('second', $1)) AS BIGINT)",
    ),
    ("time_bucket days", 2, "date_bin($1, $2, TIMESTAMP '2000-01-03 00:00:00')"),
    ("time_bucket months", 2, "date_bin($1, $2, TIMESTAMP '2000-01-01 00:00:00')"),
    ("strlen", 1, "octet_length($1)"),
    ("arg_max", 3, MOST),
    ("max_by", 3, MOST),
    ("arg_min", 3, LEAST),
    ("min_by", 3, LEAST),
    ("geomean", 1, GEOMEAN),
    ("geometric_mean", 1, GEOMEAN),
    ("argmax", 2, ARG_MAX),
    ("argmin", 2, ARG_MIN),
    ("quantile", 2, QUANTILE),
    ("sem", 1, "stddev_pop($1) / sqrt(count($1))"),
    ("fsum", 1, EXACT_SUM),
    ("favg", 1, "avg_exact(CAST($1 AS DOUBLE))"),
    ("kahan_sum", 1, EXACT_SUM),
    ("sumkahan", 1, EXACT_SUM),
    ("json_group_array", 1, AS_JSON),
    ("json_agg", 1, AS_JSON),
    ("jsonb_agg", 1, AS_JSON),
    ("to_base64", 1, "encode($1, 'base64pad')"),
    ("base64", 1, "encode($1, 'base64pad')"),
    ("from_base64", 1, "decode($1, 'base64pad')"),
    ("from_hex", 1, FROM_HEX),
    ("unhex", 1, FROM_HEX),
    ("unicode", 1, CODE_POINT),
    ("ord", 1, CODE_POINT),
    ("parse_filename", 1, "split_part(replace($1, chr(92), '/'), '/', -1)"),
    ("isoyear", 1, "date_part('isoyear', $1)"),
    ("yearweek", 1, "date_part('isoyear', $1) * 100 + date_part('week', $1)"),
    ("decade", 1, "date_part('year', $1) / 10"),
    ("century", 1, CENTURY),
    ("millennium", 1, MILLENNIUM),
    ("era", 1, "CASE WHEN date_part('year', $1) > 0 THEN 1 WHEN $1 IS NOT NULL THEN 0 END"),
    ("julian", 1, "date_part('epoch', $1) / 86400.0 + 2440588"),
    ("days_in_month", 1, "date_part('day', date_trunc('month', $1) + INTERVAL '1 month' - INTERVAL '1 day')"),
    ("to_quarters", 1, "INTERVAL '3 months' * $1"),
    ("to_decades", 1, "INTERVAL '10 years' * $1"),
    ("to_centuries", 1, "INTERVAL '100 years' * $1"),
    ("to_millennia", 1, "INTERVAL '1000 years' * $1"),
    ("list_string_agg", 1, "CASE WHEN array_length(array_compact($1)) > 0 THEN array_to_string($1, ',') END"),
    ("map_contains", 2, "array_has(map_keys($1), $2)"),
    ("map_extract_value", 2, "$1[$2]"),
    ("even", 1, "CASE WHEN $1 < 0 THEN 2 * floor($1 / 2.0) ELSE 2 * ceil($1 / 2.0) END"),
    ("add", 2, "$1 + $2"),
    ("subtract", 2, "$1 - $2"),
    ("multiply", 2, "$1 * $2"),
    ("modulo", 2, "$1 % $2"),
    ("skewness", 1, SKEWNESS),
    ("kurtosis", 1, KURTOSIS),
    ("kurtosis_pop", 1, KURTOSIS_POP),
    ("count_star", 0, "count(*)"),
    ("make_timestamp", 1, "arrow_cast(CAST($1 AS BIGINT), 'Timestamp(Microsecond, None)')"),
    ("quote_literal", 1, "'''' || replace(CAST($1 AS TEXT), '''', '''''') || ''''"),
    // MySQL's.
    ("isnull", 1, "$1 IS NULL"),
    ("space", 1, "repeat(' ', $1)"),
    ("curdate", 0, "current_date()"),
    ("truncate", 2, "trunc($1, $2)"),
    ("unix_timestamp", 1, "CAST(floor(date_part('epoch', $1)) AS BIGINT)"),
    // ClickHouse's.
    ("toyear", 1, "date_part('year', $1)"),
    ("toquarter", 1, "date_part('quarter', $1)"),
    ("tomonth", 1, "date_part('month', $1)"),
    ("todayofmonth", 1, "date_part('day', $1)"),
    ("todayofweek", 1, "date_part('isodow', $1)"),
    ("todayofyear", 1, "date_part('doy', $1)"),
    ("tohour", 1, "date_part('hour', $1)"),
    ("tominute", 1, "date_part('minute', $1)"),
    ("tosecond", 1, "CAST(floor(date_part('second', $1)) AS BIGINT)"),
    ("tostartofyear", 1, "date_trunc('year', $1)"),
    ("tostartofquarter", 1, "date_trunc('quarter', $1)"),
    ("tostartofmonth", 1, "date_trunc('month', $1)"),
    ("tomonday", 1, "date_trunc('week', $1)"),
    ("tostartofday", 1, "date_trunc('day', $1)"),
    ("tostartofhour", 1, "date_trunc('hour', $1)"),
    ("tostartofminute", 1, "date_trunc('minute', $1)"),
    ("todate", 1, "CAST($1 AS DATE)"),
    ("tostring", 1, "CAST($1 AS TEXT)"),
    ("tofloat64", 1, "CAST($1 AS DOUBLE)"),
    ("uniq", 1, "approx_distinct($1)"),
    ("uniqexact", 1, "count(DISTINCT $1)"),
    ("sumif", 2, "coalesce(sum(CASE WHEN $2 THEN $1 END), 0)"),
    ("avgif", 2, "avg(CASE WHEN $2 THEN $1 END)"),
    ("minif", 2, "min(CASE WHEN $2 THEN $1 END)"),
    ("maxif", 2, "max(CASE WHEN $2 THEN $1 END)"),
    ("grouparray", 1, "array_agg($1) FILTER (WHERE $1 IS NOT NULL)"),
    ("has", 2, "array_has($1, $2)"),
    ("arrayjoin", 1, "unnest($1)"),
    ("splitbychar", 2, "string_to_array($2, $1)"),
    ("splitbystring", 2, "string_to_array($2, $1)"),
    ("notempty", 1, "length($1) > 0"),
    ("domain", 1, DOMAIN),
    ("cutquerystring", 1, "regexp_replace($1, '[?][^#]*', '')"),
];
