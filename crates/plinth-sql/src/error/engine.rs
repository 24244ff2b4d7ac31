//! What the query engine says when it refuses or fails, as this program says things: what, where, and what to do, on one
//! line, in the words of SQL. The engine speaks of its own types, settings and bug tracker; who reads has never heard of them.

use std::borrow::Cow;
use std::sync::LazyLock;

use arrow_schema::ArrowError;
use datafusion::common::{Column, SchemaError};
use datafusion::error::DataFusionError;
use parquet::errors::ParquetError;
use plinth_core::text::nearest;
use plinth_format::FormatError;
use plinth_ingest::IngestError;
use plinth_io::IoError;
use plinth_rowstore::TableError;
use regex::Regex;

use super::near;

/// Columns that a message names at most.
const NAMED: usize = 20;

/// What the engine puts before the part that helps.
const PREFIXES: [&str; 32] = [
    "Error during planning: ",
    "Optimizer rule ",
    "Execution error: ",
    "External error: ",
    "External: ",
    "Schema error: ",
    "Arrow error: ",
    "Arrow: ",
    "Parquet error: ",
    "Parquet argument error: ",
    "Object Store error: ",
    "IO error: ",
    "Io error: ",
    "SQL error: ",
    "Internal error: ",
    "Invalid or Unsupported Configuration: ",
    "This feature is not implemented: ",
    "Resources exhausted: ",
    "ExecutionJoin error: ",
    "FFI error: ",
    "Substrait error: ",
    "Not yet implemented: ",
    "Cast error: ",
    "Compute error: ",
    "Parser error: ",
    "Invalid argument error: ",
    "Arithmetic overflow: ",
    "Csv error: ",
    "Json error: ",
    "Ipc error: ",
    "Memory error: ",
    "NYI: ",
];

/// What an error says that is no failure of ours.
pub(super) fn sentence(error: &DataFusionError) -> String {
    match error {
        DataFusionError::Collection(errors) => errors.first().map_or_else(String::new, sentence),
        DataFusionError::Diagnostic(_, inner) => sentence(inner),
        DataFusionError::Shared(inner) => sentence(inner),
        DataFusionError::SchemaError(error, _) => schema(error),
        DataFusionError::ArrowError(error, _) => arrow(error),
        DataFusionError::ParquetError(error) => parquet_text(error),
        DataFusionError::External(error) => external(error.as_ref()),
        DataFusionError::SQL(parser, _) => {
            let text = parser.to_string();
            let text = text.strip_prefix("sql parser error: ").unwrap_or(&text);
            format!("SQL: {}", joined(text))
        }
        DataFusionError::ResourcesExhausted(what) => {
            format!("out of memory: {}", reworded(&what.replace("raise the limit", "raise --memory")))
        }
        DataFusionError::Internal(what) if is_of_types(what) => reworded(what),
        DataFusionError::Internal(what) => format!("internal error: {}; please report it", reworded(what)),
        DataFusionError::NotImplemented(what) => {
            let what = reworded(what);
            if what.contains("not ") || what.contains("nsupported") { what } else { format!("not supported: {what}") }
        }
        other => reworded(&other.strip_backtrace()),
    }
}

/// Whether what the engine takes for its own mistake is one of types in the statement.
pub(super) fn is_of_types(what: &str) -> bool {
    ["Function '", "Failed to coerce", "Expect", "Cannot infer", "Cannot run range queries"]
        .iter()
        .any(|beginning| what.starts_with(beginning))
}

fn external(error: &(dyn std::error::Error + Send + Sync + 'static)) -> String {
    if let Some(engine) = error.downcast_ref::<DataFusionError>() {
        return sentence(engine.find_root());
    }
    if let Some(error) = error.downcast_ref::<ArrowError>() {
        return arrow(error);
    }
    if let Some(error) = error.downcast_ref::<ParquetError>() {
        return parquet_text(error);
    }
    // Ours are sentences already, and what they name may hold blanks and ends of lines that belong to it.
    let ours =
        error.is::<FormatError>() || error.is::<IngestError>() || error.is::<IoError>() || error.is::<TableError>();
    if ours { error.to_string() } else { reworded(&error.to_string()) }
}

pub(super) fn arrow(error: &ArrowError) -> String {
    match error {
        ArrowError::ExternalError(inner) => external(inner.as_ref()),
        ArrowError::DivideByZero => "division by zero".to_owned(),
        ArrowError::OffsetOverflowError(_) => "more than 2 GiB of text or lists are to be in memory at once".to_owned(),
        ArrowError::DictionaryKeyOverflowError => {
            "a column has more different values than can be told apart".to_owned()
        }
        other => reworded(&other.to_string()),
    }
}

fn parquet_text(error: &ParquetError) -> String {
    match error {
        ParquetError::External(inner) => external(inner.as_ref()),
        ParquetError::NeedMoreData(_) | ParquetError::NeedMoreDataRange(_) => {
            "not a readable Parquet file: it ends too early".to_owned()
        }
        other => reworded(&other.to_string()),
    }
}

fn schema(error: &SchemaError) -> String {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => no_column(field, valid_fields),
        SchemaError::AmbiguousReference { field } => {
            let name = field.quoted_flat_name();
            format!("column {name} may be one of several tables: name the table before it, as in t.{name}")
        }
        SchemaError::DuplicateUnqualifiedField { name } => {
            format!("column {name:?} occurs twice; give one of them another name with AS")
        }
        SchemaError::DuplicateQualifiedField { qualifier, name } => {
            let table = plain_names(&qualifier.to_string()).into_owned();
            format!("column {name:?} of {table:?} occurs twice; give one of them another name with AS")
        }
    }
}

fn no_column(field: &Column, valid: &[Column]) -> String {
    let shown = |column: &Column| plain_names(&column.quoted_flat_name()).into_owned();
    let name = shown(field);
    if let Some(other) =
        valid.iter().find(|other| other.name.eq_ignore_ascii_case(&field.name) && other.name != field.name)
    {
        return format!("no column {name}: write {} in double quotes, as the case of its letters counts", shown(other));
    }
    if let Some(near) = nearest(&field.name, valid.iter().map(|other| other.name.as_str()))
        && let Some(other) = valid.iter().find(|other| other.name == near)
    {
        return format!("no column {name}; is {} meant?", shown(other));
    }
    let more = if valid.len() > NAMED { ", and others" } else { "" };
    let mut names: Vec<String> = Vec::new();
    for name in valid.iter().map(shown) {
        if names.len() < NAMED && !names.contains(&name) {
            names.push(name);
        }
    }
    match names.is_empty() {
        true => format!("no column {name}: there are no columns here"),
        false => format!("no column {name}; there are {}{more}", names.join(", ")),
    }
}

/// A text on one line. Where a line ends for the sake of layout a blank is enough; an end of a line within a name is kept.
pub(super) fn joined(text: &str) -> String {
    let mut lines = text.trim().lines();
    let mut joined = lines.next().unwrap_or_default().trim_end().to_owned();
    for line in lines {
        let laid_out = line.starts_with([' ', '\t', '^', '~']) || line.is_empty();
        if laid_out || joined.ends_with(['.', ':', ',', ';', '?', '!', '(', '[', '{', '^', '~', ' ']) {
            if !joined.ends_with(' ') && !line.is_empty() {
                joined.push(' ');
            }
            joined.push_str(line.trim());
        } else {
            joined.push_str("\\n");
            joined.push_str(line.trim_end());
        }
    }
    joined
}

/// A text of the engine in our words.
pub(super) fn reworded(text: &str) -> String {
    let text = joined(text);
    let mut rest = text.as_str();
    while let Some(shorter) = PREFIXES.iter().find_map(|prefix| rest.strip_prefix(prefix)) {
        rest = shorter;
    }
    if let Some(text) = no_function(rest) {
        return text;
    }
    let text = plain_names(without_tail(rest));
    let mut text = without_debug(&text).into_owned();
    for (pattern, words) in REWORDINGS.iter() {
        if let Cow::Owned(better) = pattern.replace_all(&text, *words) {
            text = better;
        }
    }
    lower(text.trim().trim_end_matches([':', '.', ',', ';', '!', ' ']))
}

/// What is said of a function that there is not: with the one that is meant, if that can be told.
fn no_function(text: &str) -> Option<String> {
    static INVALID: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^Invalid function '([^']*)'(?:\.\s*Did you mean '([^']*)'\?)?").ok());
    let found = INVALID.as_ref()?.captures(text)?;
    let name = found.get(1)?.as_str();
    Some(match near::function(name, found.get(2).map(|proposed| proposed.as_str())) {
        Some(meant) => format!("no function {name}; is {meant} meant?"),
        None => format!("no function {name}; SHOW FUNCTIONS lists them"),
    })
}

/// Without what the engine tells its developers.
fn without_tail(text: &str) -> &str {
    const TAILS: [&str; 8] = [
        "No function matches the given name",
        "This issue was likely caused by a bug in DataFusion",
        "This was likely caused by a bug in DataFusion",
        "Candidate functions:",
        "You might need to add explicit type casts",
        "Please help us",
        "Please file",
        "Backtrace:",
    ];
    let end = TAILS.iter().filter_map(|tail| text.find(tail)).min().unwrap_or(text.len());
    text.get(..end).unwrap_or(text).trim_end()
}

/// Names without the catalog and the schema that all tables are in.
fn plain_names(text: &str) -> Cow<'_, str> {
    if !text.contains("datafusion.") {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace("datafusion.public.", ""))
}

/// Sentences that begin like ours: a word in lower case, unless it is a name or a keyword.
fn lower(text: &str) -> String {
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(first), Some(second)) if first.is_ascii_uppercase() && second.is_ascii_lowercase() => {
            let word = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or(text);
            // A word with capitals within, or digits, or an argument, is the name of a type.
            let called = text.get(word.len()..).is_some_and(|rest| rest.starts_with('('));
            if !called && word.chars().skip(1).all(|c| c.is_ascii_lowercase()) {
                return first.to_ascii_lowercase().to_string() + text.get(1..).unwrap_or_default();
            }
            text.to_owned()
        }
        _ => text.to_owned(),
    }
}

/// What is left of a message that shows a value as its programmers see it: the words before, and the names within.
fn without_debug(text: &str) -> Cow<'_, str> {
    static VALUE: LazyLock<Option<Regex>> =
        // SQL is in capitals: ARRAY(SELECT ...) is no such value.
        LazyLock::new(|| Regex::new(r"\b[A-Z]+[a-z][A-Za-z]*(?: \{ |\([A-Z][A-Za-z]*[({ ]|\(\w+ \{ )").ok());
    static NAME: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r#"(?:value: |name: |Number\(|QuotedString\()"((?:[^"\\]|\\.)*)""#).ok());
    let Some(found) = VALUE.as_ref().and_then(|value| value.find(text)) else { return Cow::Borrowed(text) };
    let (before, value) = text.split_at(found.start());
    let mut names: Vec<&str> = Vec::new();
    for name in NAME.iter().flat_map(|name| name.captures_iter(value)).filter_map(|name| name.get(1)) {
        if names.len() < 3 && !names.contains(&name.as_str()) {
            names.push(name.as_str());
        }
    }
    let before = before.trim_end().trim_end_matches([':', '[', '(', ',', '+', '-', ' ']);
    Cow::Owned(if names.is_empty() { before.to_owned() } else { format!("{before} (near {})", names.join(", ")) })
}

/// Messages of the engine and what is said instead, in this order.
static REWORDINGS: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    let compiled = |(pattern, words): &(&str, &'static str)| Some((Regex::new(pattern).ok()?, *words));
    WORDS.iter().filter_map(compiled).collect()
});

#[rustfmt::skip]
const WORDS: &[(&str, &str)] = &[
    // Prefixes within, and literals as the engine writes them.
    (r"(^|: |, ?)(?:(?:Error during planning|Execution error|Arrow error|Schema error|External error|Internal error|Cast error|Compute error|Parser error|Invalid argument error): )+", "$1"),
    (r"\b(?:U?Int|Float)(?:8|16|32|64)\((-?[0-9.eE+-]+)\)", "$1"),
    (r#"\b(?:Large)?Utf8(?:View)?\("([^"]*)"\)"#, "'$1'"),
    (r"\bBoolean\((true|false)\)", "$1"),
    // Values.
    (r"^Overflow happened on:? (.*)$", "$1 is out of range"),
    (r"^Divide by zero error$", "division by zero"),
    (r"^Cannot run range queries on datatype: (.*)$", "RANGE with a distance needs numbers, dates or times to order by, not $1; ROWS counts rows"),
    (r"^Date arithmetic overflow.*$", "a date is out of range"),
    (r"^Cannot cast (?:string|value) '(.*)' to value of (.*) type$", "'$1' is no $2"),
    (r"^Can't cast value (.*) to type (\S+)$", "$1 is no $2"),
    (r"^Error parsing timestamp from '(.*)': (.*)$", "'$1' is no timestamp: $2"),
    (r#"^Invalid input syntax for type interval: "(.*)"$"#, "'$1' is no interval"),
    (r"^Unable to cast to Date32 .*$", "a text is no date, such as 2024-12-31"),
    // SIMILAR TO puts its pattern between these.
    (r"^.*?regex parse error: \^\(\?:(.*)\)\$ \^+ error: ([^~]*).*$", "'$1' is no regular expression: $2"),
    (r"^.*?regex parse error: (.*?) \^+ error: ([^~]*).*$", "'$1' is no regular expression: $2"),
    // Names.
    (r#"^Unable to get field named "(.*)"\. Valid fields: \[(.*)\]$"#, r#"no column "$1"; there are $2"#),
    (r"^Field (.*) not found in struct$", "no field $1 in the struct"),
    (r"^table function '(.*)' not found$", "no table function $1; read_csv, read_json, range and generate_series are some"),
    (r"^Prepared statement '(.*)' does not exist$", "no statement $1 was prepared"),
    (r"^Column for (primary key|unique constraint) not found in schema: (.*)$", "$1: no column $2"),
    (r#"^variable \["(.*)"\] has no type information$"#, "no variable $1"),
    (r#"^Config value "(.*)" not found on (?:Table)?(?:Parquet|Csv|Json|)Options$"#, r#"the format has no option "$1""#),
    (r#"^Config value "(.*)" not found on \w+$"#, r#"no setting "$1"; SHOW ALL lists them"#),
    (r#"^[Cc]ould not find config namespace (?:for key )?"(.*)"$"#, r#"no setting "$1"; SHOW ALL lists them"#),
    (r"^Unable to find factory for (.*)$", "STORED AS $1: no such format"),
    (r"^There is no registered file format with ext (.*)$", "no known format is kept in files that end in .$1"),
    (r"^No files found at (?:file://)?(\S+)\. Cannot infer .*$", "$1: no such file"),
    // Types.
    (r"^Function '([^']*)' failed to match any signature.*$", "function '$1' takes no arguments of these types, or not so many"),
    (r"^Function '([^']*)' user-defined coercion failed with:? (.*)$", "function '$1': $2"),
    (r"^Cannot coerce arithmetic expression (.*) to valid types$", "$1 has no meaning; cast one of them to another type"),
    (r"^Cannot create filter with non-boolean predicate '(.*)' returning (\S+)$", "a condition is true or false, but $1 is $2"),
    (r"^expr type (\S+) can't cast to (\S+) in SetComparison$", "$1 and $2 can't be compared"),
    (r#"^Column in (?:SELECT|HAVING|ORDER BY) must be in GROUP BY or an aggregate function: (?:While expanding wildcard, )?column "(.*?)" must appear in the GROUP BY clause.*$"#, r#"column "$1" must be in GROUP BY, or within an aggregate such as min"#),
    (r"^Inconsistent data length across values list: got (\d+) values in row \d+ but expected (\d+)$", "a row of VALUES has $1 values where $2 are expected"),
    (r"^invalid digit found in string$", "a whole number is expected"),
    (r#"^Projections require unique expression names but the expression "(.*)" at position \d+ and "(.*)" at position \d+ have the same name.*$"#, r#"$1 and $2 have the same name; give one of them another with AS"#),
    (r"^(?:There isn't a common type to coerce|Failed to coerce types) (.*) in (\w+) expression$", "$1 have no common type for $2"),
    (r"^Failed to coerce arguments to satisfy a call to '([^']*)' function: coercion from (.*?) to the signature.*$", "function '$1' does not take $2"),
    (r"^Cannot infer common argument type for comparison operation (.*)$", "$1 can't be compared"),
    (r"^Inconsistent data type across values list at row \d+ column \d+\. Was (.*) but found (.*)$", "the rows of VALUES differ: one has $1 where another has $2"),
    // What there is not.
    (r"^[Uu]nsupported ast node(?: in sqltorel| in create_relation)?", "this part of SQL is not supported"),
    (r"^SET variant not implemented yet", "this form of SET is not supported"),
    (r"^Function factory has not been configured$", "CREATE FUNCTION is not supported"),
    (r"^Dot access not supported for non-string expr", "a field behind a dot is not supported here"),
    (r"^Physical plan does not support logical expression", "this expression is not supported here"),
    (r"^(?:Consider increasing|consider increasing) `?datafusion\.[a-z_.]+`?.*$", "raise --memory"),
    // Files.
    (r"^.*encryption feature is (?:disabled|not enabled).*$", "the file is encrypted, which can't be read; decrypt it first"),
    (r"^Invalid Parquet file\. (.*)$", "not a readable Parquet file: $1"),
    // Types, but for what stands in quotes or is a part of something else.
    (r#"(^|[^"'.\w])(?:Large)?Utf8(?:View)?($|[^"'.\w(])"#, "${1}TEXT$2"),
    (r#"(^|[^"'.\w])(?:Large|FixedSize)?Binary(?:View)?($|[^"'.\w(])"#, "${1}BYTEA$2"),
    (r#"(^|[^"'.\w])Int8($|[^"'.\w(])"#, "${1}TINYINT$2"),
    (r#"(^|[^"'.\w])Int16($|[^"'.\w(])"#, "${1}SMALLINT$2"),
    (r#"(^|[^"'.\w])Int32($|[^"'.\w(])"#, "${1}INT$2"),
    (r#"(^|[^"'.\w])Int64($|[^"'.\w(])"#, "${1}BIGINT$2"),
    (r#"(^|[^"'.\w])UInt64($|[^"'.\w(])"#, "${1}BIGINT UNSIGNED$2"),
    (r#"(^|[^"'.\w])Float32($|[^"'.\w(])"#, "${1}REAL$2"),
    (r#"(^|[^"'.\w])Float64($|[^"'.\w(])"#, "${1}DOUBLE$2"),
    (r#"(^|[^"'.\w])Date(?:32|64)($|[^"'.\w(])"#, "${1}DATE$2"),
    (r#"(^|[^"'.\w])Boolean($|[^"'.\w(])"#, "${1}BOOLEAN$2"),
    (r#"(^|[^"'.\w])Time(?:32|64)\(\w+\)"#, "${1}TIME"),
    (r#"(^|[^"'.\w])Timestamp\(\w+\)"#, "${1}TIMESTAMP"),
    (r#"(^|[^"'.\w])Interval\(\w+\)"#, "${1}INTERVAL"),
    (r#"(^|[^"'.\w])Decimal(?:32|64|128|256)\((\d+), (-?\d+)\)"#, "${1}DECIMAL($2, $3)"),
    (r"\bDecimal(?:32|64|128|256) of precision\b", "DECIMAL of precision"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_engine_says_becomes_a_sentence() {
        for (theirs, ours) in [
            (
                "ARRAY(SELECT DISTINCT ... ORDER BY 1): not supported",
                "ARRAY(SELECT DISTINCT ... ORDER BY 1): not supported",
            ),
            ("Cast error: Cannot cast string 'x' to value of Int32 type", "'x' is no INT"),
            (
                "Cannot coerce arithmetic expression Utf8View + Utf8 to valid types",
                "TEXT + TEXT has no meaning; cast one of them to another type",
            ),
            (
                "Timestamp(ns) and Decimal128(12, 2) of \"Int64\" or 'Utf8'",
                "TIMESTAMP and DECIMAL(12, 2) of \"Int64\" or 'Utf8'",
            ),
            (
                "Function 'abs' expects 1 arguments but received 2. No function matches the given name and argument \
                 types 'abs(Int64, Int64)'. You might need to add explicit type casts.\n\tCandidate functions:\n\tabs(Numeric(1))",
                "function 'abs' expects 1 arguments but received 2",
            ),
            (
                "Function 'greatest' user-defined coercion failed with: Error during planning: greatest was called without \
                 any arguments. It requires at least 1.. No function matches the given name",
                "function 'greatest': greatest was called without any arguments. It requires at least 1",
            ),
            (
                "Unsupported ast node in sqltorel: Collate { expr: Value(ValueWithSpan { value: SingleQuotedString(\"a\"), \
                 span: Span(Location(1,8)..Location(1,11)) }), collation: ObjectName([Identifier(Ident { value: \"nosuch\" })]) }",
                "this part of SQL is not supported (near a, nosuch)",
            ),
            ("regex parse error:\n    (\n    ^\nerror: unclosed group", "'(' is no regular expression: unclosed group"),
            (
                "HAVING clause references: t.plinth.id > Int64(1) must appear in the GROUP BY clause",
                "HAVING clause references: t.plinth.id > 1 must appear in the GROUP BY clause",
            ),
            ("table 'datafusion.public.x' not found", "table 'x' not found"),
            ("table 'datafusion.public.two\nlines' not found", "table 'two\\nlines' not found"),
            ("Too many columns!", "too many columns"),
            ("List(x) = 1", "List(x) = 1"),
        ] {
            assert_eq!(reworded(theirs), ours);
        }
        let internal = DataFusionError::Internal("x is y".into());
        assert_eq!(sentence(&internal), "internal error: x is y; please report it");
    }

    #[test]
    fn every_rewording_is_a_pattern() {
        assert_eq!(REWORDINGS.len(), WORDS.len());
    }
}
