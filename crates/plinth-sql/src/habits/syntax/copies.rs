//! COPY with options as DuckDB and PostgreSQL write them: `(FORMAT csv, HEADER, DELIMITER ';')`.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::clauses;
use super::tokens::{close, find, is, parts, sql, text, there, there_is, word};

/// An option and its values.
type Options = Vec<(String, Vec<String>)>;

/// `COPY t TO 'x' (...)` with `STORED AS` and `OPTIONS`; `COPY t FROM 'x' (...)` as INSERT.
pub(super) fn copy(tokens: &[TokenWithSpan]) -> Result<Vec<TokenWithSpan>> {
    let Some(at) = find(tokens, 1, &["to", "from"]) else { return clauses::within(tokens) };
    let (subject, target) = (&tokens[1..at], tokens.get(at + 1));
    let mut next = at + 2;
    if there_is(tokens, next, "with") && there(tokens, next + 1, &Token::LParen) {
        next += 1;
    }
    let options = match tokens.get(next) {
        Some(open) if open.token == Token::LParen => {
            let end = close(tokens, next);
            if end + 1 < tokens.len() {
                return plan_err!("COPY: nothing is expected behind the options");
            }
            options(&tokens[next + 1..end])?
        }
        _ => Options::new(),
    };
    if is(&tokens[at], "from") {
        return copy_from(&tokens[0], subject, target, &options);
    }
    let mut out = vec![tokens[0].clone()];
    if subject.first().is_some_and(|open| open.token == Token::LParen) {
        out.extend(clauses::within(subject)?);
    } else if let Some(columns) = subject.iter().position(|token| token.token == Token::LParen) {
        // COPY t (a, b) TO
        let columns_end = close(subject, columns);
        let columns_text = text(subject.get(columns + 1..columns_end).unwrap_or_default());
        out.extend(sql(&format!("(SELECT {columns_text} FROM {})", text(&subject[..columns])), &tokens[0])?);
    } else {
        out.extend_from_slice(subject);
    }
    out.extend(tokens[at..(at + 2).min(tokens.len())].iter().cloned());
    let path = match target.map(|target| &target.token) {
        Some(Token::SingleQuotedString(path)) => path.clone(),
        _ => String::new(),
    };
    if options.is_empty() {
        let rest = tokens.get(at + 2..).unwrap_or_default();
        if find(rest, 0, &["stored"]).is_none()
            && matches!(target.map(|it| &it.token), Some(Token::SingleQuotedString(_)))
        {
            out.extend(sql(&written(&options, &path)?, &tokens[at])?);
        }
        out.extend(rest.iter().filter(|_| next + 1 < tokens.len()).cloned());
        return Ok(out);
    }
    out.extend(sql(&written(&options, &path)?, &tokens[at])?);
    Ok(out)
}

/// `NAME value`, `NAME` alone and `NAME (a, b)`.
fn options(tokens: &[TokenWithSpan]) -> Result<Options> {
    let value = |token: &TokenWithSpan| match &token.token {
        Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => text.clone(),
        Token::EscapedStringLiteral(text) => text.clone(),
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
        Token::Word(word) => word.value.clone(),
        other => other.to_string(),
    };
    let mut options = Options::new();
    for part in parts(tokens) {
        let Some((name, values)) = part.split_first() else { continue };
        let values = match values {
            [equals, values @ ..] if equals.token == Token::Eq => values,
            values => values,
        };
        let values = match values {
            [open, inner @ .., _] if open.token == Token::LParen => {
                parts(inner).into_iter().filter_map(<[_]>::first).map(value).collect()
            }
            [] => Vec::new(),
            [one] => vec![value(one)],
            [minus, number] if minus.token == Token::Minus => vec![format!("-{}", value(number))],
            _ => return plan_err!("COPY: {}: an option has a name and one value", text(part)),
        };
        options.push((word(name), values));
    }
    Ok(options)
}

/// The format that a name says, before the ending of a compression.
fn of_name(path: &str) -> Option<&'static str> {
    let path = path.to_ascii_lowercase();
    let mut parts = path.rsplit('.');
    let mut ending = parts.next()?;
    if ["gz", "zst", "lz4", "bz2"].contains(&ending) {
        ending = parts.next()?;
    }
    // Of a path without a dot the last part is all of it.
    parts.next()?;
    match ending {
        "parquet" | "parq" | "pq" => Some("parquet"),
        "csv" => Some("csv"),
        "tsv" | "tab" => Some("tsv"),
        "json" | "ndjson" | "jsonl" => Some("json"),
        "plinth" => Some("plinth"),
        "arrow" => Some("arrow"),
        _ => None,
    }
}

fn truth(name: &str, values: &[String]) -> Result<bool> {
    match values.first().map(|value| value.to_ascii_lowercase()).as_deref() {
        None | Some("true" | "1" | "on") => Ok(true),
        Some("false" | "0" | "off") => Ok(false),
        Some(other) => plan_err!("COPY: {} is {other:?}: true or false is expected", name.to_uppercase()),
    }
}

fn single<'a>(name: &str, values: &'a [String]) -> Result<&'a str> {
    match values {
        [one] => Ok(one),
        _ => plan_err!("COPY: {} takes one value", name.to_uppercase()),
    }
}

/// The options as the engine writes them.
fn written(options: &Options, path: &str) -> Result<String> {
    let named = |wanted: &str| options.iter().find(|(name, _)| name == wanted);
    let format = match named("format") {
        Some((name, values)) => single(name, values)?.to_ascii_lowercase(),
        None => of_name(path).unwrap_or_default().to_owned(),
    };
    let (mut pairs, mut partitions) = (Vec::new(), String::new());
    let stored = match format.as_str() {
        "parquet" | "csv" | "json" | "plinth" | "arrow" => format!("STORED AS {}", format.to_uppercase()),
        "ndjson" => "STORED AS JSON".to_owned(),
        "tsv" => {
            if !["delimiter", "delim", "sep"].iter().any(|name| named(name).is_some()) {
                pairs.push(("format.delimiter".to_owned(), "\t".to_owned()));
            }
            "STORED AS CSV".to_owned()
        }
        "" if path.ends_with('/') => {
            return plan_err!(
                "COPY TO '{path}': say how it is to be written, as in (FORMAT parquet, PARTITION_BY (a))"
            );
        }
        "" => {
            return plan_err!(
                "COPY TO '{path}': its name says no format; say one, as in (FORMAT csv), or end it in .parquet, .csv, .tsv, \
                 .json, .ndjson or .plinth"
            );
        }
        other => return plan_err!("COPY: FORMAT {other}: is not written; csv, tsv, json, parquet and plinth are"),
    };
    let text = |value: &str| value.replace('\'', "''");
    for (name, values) in options {
        let csv = || match format.as_str() {
            "csv" | "tsv" => Ok(()),
            _ => plan_err!("COPY: {} is an option of CSV: say FORMAT csv", name.to_uppercase()),
        };
        match name.as_str() {
            "format" => {}
            "header" => {
                csv()?;
                pairs.push(("format.has_header".to_owned(), truth(name, values)?.to_string()));
            }
            "delimiter" | "delim" | "sep" => {
                csv()?;
                pairs.push(("format.delimiter".to_owned(), single(name, values)?.replace("\\t", "\t")));
            }
            "null" | "nullstr" => {
                csv()?;
                pairs.push(("format.null_value".to_owned(), single(name, values)?.to_owned()));
            }
            "quote" | "escape" => {
                csv()?;
                pairs.push((format!("format.{name}"), single(name, values)?.to_owned()));
            }
            "dateformat" | "timestampformat" => {
                csv()?;
                let key = if name == "dateformat" { "format.date_format" } else { "format.timestamp_format" };
                pairs.push((key.to_owned(), single(name, values)?.to_owned()));
            }
            "compression" | "codec" => {
                let codec = single(name, values)?.to_ascii_lowercase();
                let level = match named("compression_level") {
                    Some((name, values)) => Some(single(name, values)?),
                    None => None,
                };
                let codec = match (format.as_str(), codec.as_str(), level) {
                    ("parquet", "zstd", level) => format!("zstd({})", level.unwrap_or("3")),
                    ("parquet", "gzip", level) => format!("gzip({})", level.unwrap_or("6")),
                    ("parquet", "brotli", level) => format!("brotli({})", level.unwrap_or("4")),
                    (_, codec, Some(_)) => return plan_err!("COPY: COMPRESSION_LEVEL of {codec}: has none"),
                    ("parquet", "none", None) => "uncompressed".to_owned(),
                    ("csv" | "tsv" | "json" | "ndjson", "none", None) => "uncompressed".to_owned(),
                    (_, codec, None) => codec.to_owned(),
                };
                pairs.push(("format.compression".to_owned(), codec));
            }
            "compression_level" if named("compression").is_some() => {}
            "row_group_size" => {
                pairs.push(("format.max_row_group_size".to_owned(), single(name, values)?.to_owned()));
            }
            "partition_by" => {
                let plain = |name: &String| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                if let Some(name) = values.iter().find(|name| !plain(name)) {
                    return plan_err!("COPY: PARTITION_BY {name:?}: give the column a name of letters and digits");
                }
                partitions = format!("PARTITIONED BY ({})", values.join(", "));
            }
            // A file is replaced anyhow, and a folder with files in it refused.
            "overwrite_or_ignore" | "overwrite" if truth(name, values)? => {}
            "index" => pairs.push(("index".to_owned(), values.join(","))),
            other => {
                return plan_err!(
                    "COPY: no option {}; there are FORMAT, HEADER, DELIMITER, NULL, QUOTE, ESCAPE, DATEFORMAT, TIMESTAMPFORMAT, \
                     COMPRESSION, COMPRESSION_LEVEL, ROW_GROUP_SIZE, PARTITION_BY, OVERWRITE_OR_IGNORE",
                    other.to_uppercase()
                );
            }
        }
    }
    let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("'{key}' '{}'", text(value))).collect();
    let options = if pairs.is_empty() { String::new() } else { format!("OPTIONS ({})", pairs.join(", ")) };
    Ok(format!("{stored} {partitions} {options}"))
}

/// `INSERT INTO t SELECT * FROM plinth_copied('t', 'x', option => value)`.
fn copy_from(
    first: &TokenWithSpan,
    subject: &[TokenWithSpan],
    path: Option<&TokenWithSpan>,
    options: &Options,
) -> Result<Vec<TokenWithSpan>> {
    let Some(Token::SingleQuotedString(path)) = path.map(|path| &path.token) else {
        return plan_err!("COPY ... FROM takes the name of a file as text: COPY t FROM 'x.csv'");
    };
    let quoted = |text: &str| text.replace('\'', "''");
    let (table, columns) = match subject.iter().position(|token| token.token == Token::LParen) {
        Some(open) => (&subject[..open], subject.get(open + 1..subject.len().saturating_sub(1)).unwrap_or_default()),
        None => (subject, [].as_slice()),
    };
    let mut given = Vec::new();
    let mut format = String::new();
    for (name, values) in options {
        let name = match name.as_str() {
            "format" => {
                format = single(name, values)?.to_ascii_lowercase();
                continue;
            }
            "header" => {
                given.push(format!(", header => {}", truth(name, values)?));
                continue;
            }
            // Types are those of the table anyhow.
            "auto_detect" => continue,
            "delimiter" | "delim" | "sep" => "delimiter",
            "null" | "nullstr" => "null",
            "quote" => "quote",
            "escape" => "escape",
            other => {
                return plan_err!(
                    "COPY ... FROM: no option {}; there are FORMAT, HEADER, DELIMITER, NULL, QUOTE, ESCAPE",
                    other.to_uppercase()
                );
            }
        };
        let values: Vec<String> = values.iter().map(|value| format!("'{}'", quoted(value))).collect();
        given.push(format!(", {name} => {}", values.join(",")));
    }
    let listed = if columns.is_empty() { String::new() } else { format!("({})", text(columns)) };
    let of = if columns.is_empty() { "*".to_owned() } else { text(columns) };
    let table = text(table);
    sql(
        &format!(
            "INSERT INTO {table} {listed} SELECT * FROM plinth_copied((SELECT {of} FROM {table}), '{}', '{format}'{})",
            quoted(path),
            given.concat()
        ),
        first,
    )
}
