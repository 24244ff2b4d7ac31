//! Scripts of sqllogictest: the form of SQLite's, with what DuckDB's and DataFusion's add.
//!
//! The crate `sqllogictest` reads neither loops nor answers of one value a line, and brings some twenty crates; the form is small.

use std::collections::VecDeque;

/// What a statement is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    Ok,
    Error,
    Either,
    /// Rows: the letters of their columns' types, how they are sorted, and the lines of the answer.
    Rows {
        types: String,
        sort: Sort,
        lines: Vec<String>,
    },
}

/// How rows are sorted before they are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    No,
    Rows,
    Values,
}

/// A statement of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) line: usize,
    pub(crate) sql: String,
    pub(crate) expect: Expect,
}

/// What can't be run of a script, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unfit(pub(crate) String);

/// The most statements that loops may make of a script.
const MOST: usize = 20_000;

/// Words of `require` that ask for nothing that is missing here.
const HAVE: [&str; 18] = [
    "64bit",
    "block_size",
    "exact_vector_size",
    "longdouble",
    "no_alternative_verify",
    "no_block_verification",
    "no_extension_autoloading",
    "no_latest_storage",
    "no_vector_verification",
    "noforcestorage",
    "nothreadsan",
    "notmingw",
    "notmusl",
    "notwindows",
    "ram",
    "skip_reload",
    "strinline",
    "vector_size",
];

/// Reads a script: its steps with their loops written out, up to what can't be run.
pub(crate) fn parse(text: &str) -> (Vec<Step>, Option<Unfit>) {
    let lines: Vec<&str> = text.lines().collect();
    let mut reader = Reader { lines: lines.iter().copied().enumerate().collect(), steps: Vec::new() };
    let unfit = reader.block(&[]).err();
    (reader.steps, unfit)
}

struct Reader<'a> {
    lines: VecDeque<(usize, &'a str)>,
    steps: Vec<Step>,
}

/// Names of loops and their values.
type Values = [(String, String)];

fn filled(text: &str, values: &Values) -> String {
    let fill = |text: String, (name, value): &(String, String)| text.replace(&format!("${{{name}}}"), value);
    values.iter().fold(text.to_owned(), fill)
}

impl<'a> Reader<'a> {
    fn block(&mut self, values: &Values) -> Result<(), Unfit> {
        while let Some((line, text)) = self.lines.pop_front() {
            let text = filled(text.trim(), values);
            let mut words = text.split_whitespace();
            let Some(first) = words.next().filter(|word| !word.starts_with('#')) else { continue };
            let rest: Vec<&str> = words.collect();
            match (first, rest.as_slice()) {
                ("statement", [kind, more @ ..]) => self.statement(line, kind, more, values)?,
                ("query", ["error", ..]) => {
                    let sql = self.sql(values);
                    self.answer(values);
                    self.push(line, sql, Expect::Error)?;
                }
                ("query", more) => self.query(line, more, values)?,
                ("loop", [name, from, to]) => {
                    let number = |text: &str| text.parse::<i64>().map_err(|_| Unfit(format!("loop to {text}")));
                    let numbers = number(from)?..number(to)?;
                    self.repeat(name, numbers.map(|number| number.to_string()).collect(), values)?;
                }
                ("foreach", [name, several @ ..]) => {
                    let several = several.iter().map(|value| (*value).to_owned()).collect();
                    self.repeat(name, several, values)?;
                }
                ("endloop", _) => return Ok(()),
                ("halt", _) => {
                    self.lines.clear();
                    return Ok(());
                }
                ("skipif", [engine, ..]) if matches!(*engine, "plinth" | "duckdb" | "Datafusion") => self.skip_one(),
                ("onlyif", [engine, ..]) if !matches!(*engine, "plinth" | "duckdb" | "Datafusion") => self.skip_one(),
                ("skipif" | "onlyif" | "hash-threshold" | "set" | "tags" | "sleep" | "reset", _) => {}
                ("control", ["resultmode" | "sortmode", ..]) => {}
                ("require", [what, ..]) if HAVE.contains(what) => {}
                ("require", [what, ..]) => return Err(Unfit(format!("requires {what}"))),
                ("mode", ["skip"]) => {
                    while self.lines.pop_front().is_some_and(|(_, text)| text.trim() != "mode unskip") {}
                }
                ("mode", _) => {}
                (other, _) => return Err(Unfit(format!("asks for {other}"))),
            }
        }
        Ok(())
    }

    fn repeat(&mut self, name: &str, several: Vec<String>, values: &Values) -> Result<(), Unfit> {
        let body = self.lines.clone();
        let mut after = None;
        for value in several {
            self.lines = body.clone();
            let values = [values, &[(name.to_owned(), value)]].concat();
            self.block(&values)?;
            after = Some(std::mem::take(&mut self.lines));
        }
        self.lines = after.unwrap_or_default();
        Ok(())
    }

    fn push(&mut self, line: usize, sql: String, expect: Expect) -> Result<(), Unfit> {
        if self.steps.len() >= MOST {
            return Err(Unfit("very many statements".to_owned()));
        }
        self.steps.push(Step { line: line + 1, sql, expect });
        Ok(())
    }

    /// The lines of a statement, up to a blank line or `----`.
    fn sql(&mut self, values: &Values) -> String {
        let mut sql = Vec::new();
        while let Some((_, text)) = self.lines.front() {
            if text.trim().is_empty() || text.trim_end() == "----" {
                break;
            }
            sql.push(filled(text, values));
            self.lines.pop_front();
        }
        sql.join("\n")
    }

    /// The lines behind `----`, up to a blank line.
    fn answer(&mut self, values: &Values) -> Vec<String> {
        let mut lines = Vec::new();
        if self.lines.front().is_none_or(|(_, text)| text.trim_end() != "----") {
            return lines;
        }
        self.lines.pop_front();
        while let Some((_, text)) = self.lines.pop_front() {
            if text.is_empty() {
                break;
            }
            lines.push(filled(text, values));
        }
        lines
    }

    fn skip_one(&mut self) {
        self.lines.pop_front();
        self.sql(&[]);
        self.answer(&[]);
    }

    fn statement(&mut self, line: usize, kind: &str, more: &[&str], values: &Values) -> Result<(), Unfit> {
        let sql = self.sql(values);
        self.answer(values);
        let expect = match kind {
            "ok" | "count" => Expect::Ok,
            "error" => Expect::Error,
            "maybe" => Expect::Either,
            other => return Err(Unfit(format!("asks for statement {other}"))),
        };
        if kind == "ok" && !more.is_empty() {
            return Err(Unfit("several connections".to_owned()));
        }
        self.push(line, sql, expect)
    }

    fn query(&mut self, line: usize, more: &[&str], values: &Values) -> Result<(), Unfit> {
        let sql = self.sql(values);
        let lines = self.answer(values);
        let types = more.first().copied().unwrap_or_default().to_owned();
        let sort = match more.get(1).copied() {
            Some("rowsort") => Sort::Rows,
            Some("valuesort") => Sort::Values,
            Some("nosort") | None => Sort::No,
            Some(_) => return Err(Unfit("several connections".to_owned())),
        };
        let special = |line: &String| line.starts_with("<FILE>") || line.contains("REGEX>:");
        if lines.iter().any(special) {
            return self.push(line, sql, Expect::Either);
        }
        self.push(line, sql, Expect::Rows { types, sort, lines })
    }
}
