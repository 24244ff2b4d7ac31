//! Random tables of text written in random dialects: what is told from the file alone is what was written.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_schema::DataType;
use plinth_core::random::Random;
use plinth_ingest::{CsvOptions, Sample, SourceOptions};

use crate::{Draw, read, write};

/// A table and how it is to be written.
#[derive(Debug)]
struct Table {
    names: Option<Vec<String>>,
    rows: Vec<Vec<String>>,
    delimiter: char,
    quote: Option<char>,
    escape: Option<char>,
    /// Whether quotes are around text that needs none.
    all: bool,
    line_end: &'static str,
    mark: bool,
    blank: bool,
    ended: bool,
}

impl Table {
    fn random(random: &mut Random) -> Self {
        let quote = *random.pick(&[Some('"'), Some('"'), Some('\''), None]);
        let mut table = Self {
            names: None,
            rows: Vec::new(),
            delimiter: *random.pick(&[',', ',', '\t', ';', '|']),
            quote,
            escape: *random.pick(&[None, None, Some('\\')]),
            all: random.one_in(3),
            line_end: *random.pick(&["\n", "\n", "\r\n"]),
            mark: random.one_in(6),
            blank: random.one_in(6),
            ended: !random.one_in(4),
        };
        let columns = 1 + random.index(5);
        let header = random.one_in(2);
        // Names and values are told apart by numbers: without one, any first record may be names.
        let numbers: Vec<bool> = (0..columns).map(|_| random.one_in(2)).collect();
        let numbers = if numbers.contains(&true) { numbers } else { vec![true; columns] };
        let rows = if random.one_in(5) { 1 } else { 1 + random.index(20) };
        if header {
            table.names = Some((0..columns).map(|at| format!("n{at}{}", table.text(random, 4))).collect());
        }
        for _ in 0..rows {
            let number = |random: &mut Random| (random.index(4_000) as i64 - 1_000).to_string();
            let cell = |at: &bool, random: &mut Random| if *at { number(random) } else { table.text(random, 8) };
            let row = numbers.iter().map(|at| cell(at, random)).collect();
            table.rows.push(row);
        }
        table
    }

    /// A text that is no number. Without quotes it can't hold what separates fields.
    fn text(&self, random: &mut Random, most: usize) -> String {
        if random.one_in(12) && most > 4 {
            return String::new();
        }
        let mut text = random.pick(&["x", "yz", "O", "été", "5 by 3m"]).to_string();
        for _ in 0..random.index(most) {
            let piece =
                *random.pick(&["a", "b", " ", "-", "e", ",", ";", "\n", "\"", "'", ".", "t", "it's", "\r\n", "|"]);
            let meant = [self.delimiter, '\n', '\r'];
            if self.quote.is_some() || !piece.contains(meant) {
                text.push_str(piece);
            }
        }
        // What a quote begins is between quotes, or else it would be read as such.
        if self.quote.is_none() && random.one_in(5) {
            text.insert(0, '"');
        }
        text
    }

    fn write(&self) -> String {
        let field = |text: &String, first: bool| {
            let special = |quote: char| text.contains([quote, self.delimiter, '\n', '\r']);
            match self.quote {
                Some(quote) if (self.all && !first && text.parse::<i64>().is_err()) || special(quote) => {
                    let inner = match self.escape {
                        Some(escape) => {
                            let doubled = text.replace(escape, &format!("{escape}{escape}"));
                            doubled.replace(quote, &format!("{escape}{quote}"))
                        }
                        None => text.replace(quote, &format!("{quote}{quote}")),
                    };
                    format!("{quote}{inner}{quote}")
                }
                _ => text.clone(),
            }
        };
        let record = |row: &Vec<String>, first: bool| {
            row.iter().map(|text| field(text, first)).collect::<Vec<_>>().join(&self.delimiter.to_string())
        };
        let names = self.names.iter().map(|names| record(names, true));
        let records: Vec<String> = names.chain(self.rows.iter().map(|row| record(row, false))).collect();
        let between = if self.blank { self.line_end.repeat(2) } else { self.line_end.to_owned() };
        let text = records.join(&between);
        format!("{}{text}{}", if self.mark { "\u{feff}" } else { "" }, if self.ended { self.line_end } else { "" })
    }

    /// Whether the file shows how it is written, or could as well be of another dialect: another delimiter occurs equally often in
    /// all records, or quotes that mean nothing look as if they closed what another opened.
    fn shows(&self, text: &str) -> bool {
        let lines = || text.lines().filter(|line| !line.is_empty());
        let alike = |other: char| {
            let mut counts = lines().map(|line| line.matches(other).count());
            let first = counts.next().unwrap_or(0);
            first > 0 && counts.all(|count| count == first)
        };
        let others = [',', '\t', ';', '|'].into_iter().filter(|byte| *byte != self.delimiter);
        let doubtful = others.into_iter().any(alike);
        let all = || self.names.iter().chain(&self.rows).flatten();
        let closes = |text: &String| text.ends_with('"');
        let looks_quoted = self.quote.is_none() && all().any(|text| text.starts_with('"')) && all().any(closes);
        self.rows.first().is_some_and(|row| row.len() > 1) && !doubtful && !looks_quoted
    }
}

fn texts(column: &ArrayRef) -> Vec<String> {
    let column = cast(column, &DataType::Utf8).unwrap();
    let column = column.as_string::<i32>();
    (0..column.len())
        .map(|row| if column.is_null(row) { String::new() } else { column.value(row).to_owned() })
        .collect()
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Right,
    /// An error, which says so.
    Refused,
    Wrong,
}

fn outcome(table: &Table, text: &str, csv: CsvOptions) -> (Outcome, String) {
    let dir = tempfile::tempdir().unwrap();
    let options = SourceOptions { sample: Sample::Everything, csv, ..SourceOptions::default() };
    let found = match read(&[write(dir.path(), "x.csv", text)], &options) {
        Ok(found) => found,
        Err(e) => return (Outcome::Refused, e),
    };
    let names: Vec<String> = found.schema().fields().iter().map(|field| field.name().clone()).collect();
    let columns: Vec<Vec<String>> = found.columns().iter().map(texts).collect();
    let width = table.rows.first().map_or(0, Vec::len);
    let expected = table.names.clone().unwrap_or_else(|| (1..=width).map(|at| format!("column{at}")).collect());
    let rows: Vec<Vec<String>> =
        (0..found.num_rows()).map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect();
    let right = names == expected && rows == table.rows;
    (if right { Outcome::Right } else { Outcome::Wrong }, format!("{names:?} {rows:?}"))
}

#[test]
fn a_dialect_that_shows_is_told_right_or_refused() {
    let mut random = Random(0x5EED);
    let (mut right, mut refused, mut wrong) = (0, 0, Vec::new());
    let mut told_right = 0;
    for round in 0..6_000 {
        let table = Table::random(&mut random);
        let text = table.write();
        if !table.shows(&text) {
            continue;
        }
        match outcome(&table, &text, CsvOptions::default()) {
            (Outcome::Right, _) => right += 1,
            (Outcome::Refused, _) => refused += 1,
            (Outcome::Wrong, found) => wrong.push((round, text.clone(), found)),
        }
        // What is said is not guessed.
        let mark =
            |byte: Option<char>| byte.map_or(plinth_ingest::Mark::None, |byte| plinth_ingest::Mark::Byte(byte as u8));
        let csv = CsvOptions {
            delimiter: Some(table.delimiter as u8),
            header: Some(table.names.is_some()),
            quote: mark(table.quote),
            escape: mark(table.escape.filter(|_| table.quote.is_some())),
            ..CsvOptions::default()
        };
        let (outcome, found) = outcome(&table, &text, csv);
        assert_eq!(outcome, Outcome::Right, "{table:?}\n{text:?}\n{found}");
        told_right += 1;
    }
    for (round, text, found) in wrong.iter().take(12) {
        eprintln!("{round}: {text:?}\n    {found}");
    }
    eprintln!("{right} right, {refused} refused, {} wrong of {told_right}", wrong.len());
    assert!(wrong.is_empty(), "{} of {told_right} are read as what was not written", wrong.len());
    assert!(right * 100 >= told_right * 98, "{right} right, {refused} refused of {told_right}");
}

#[test]
fn quotes_that_enclose_names_with_commas_and_single_records_are_read() {
    let rows = |text: &str| {
        let dir = tempfile::tempdir().unwrap();
        read(&[write(dir.path(), "x.csv", text)], &SourceOptions::default()).map(|rows| crate::lines(&rows))
    };
    assert_eq!(rows("\"Name, first\"\n\"Doe, J\"\n").unwrap(), [r#"{"Name, first":"Doe, J"}"#]);
    assert_eq!(rows("'Name, first'\n'Doe, J'\n").unwrap(), [r#"{"Name, first":"Doe, J"}"#]);
    assert_eq!(rows("1,x,2.5\n").unwrap(), [r#"{"column1":1,"column2":"x","column3":2.5}"#]);
    assert_eq!(rows("0,0").unwrap(), [r#"{"column1":0,"column2":0}"#]);
    assert_eq!(rows("2024-01-01\n").unwrap(), [r#"{"column1":"2024-01-01"}"#]);
    assert!(rows("a,b\n").unwrap().is_empty());
    assert_eq!(rows("a,b\n\"x,1\n\"y,2\n").unwrap(), [r#"{"a":"\"x","b":1}"#, r#"{"a":"\"y","b":2}"#]);
}

#[test]
fn messages_say_what_to_do_about_quotes_and_names() {
    let dir = tempfile::tempdir().unwrap();
    let said = |text: &str| read(&[write(dir.path(), "x.csv", text)], &SourceOptions::default()).unwrap_err();
    for text in ["a,b\n\"x\",1\n\"y\",2\n\"z,3\n", "a,b\n\"x\",1\n\"y\",2\n\"z\"!,3\n"] {
        let e = said(text);
        assert!(e.contains("--quote none") && !e.contains('\n'), "{e}");
    }
    let e = said("a,a\n1,2\n");
    assert!(e.contains("\"a\" occurs twice") && e.contains("--no-header"), "{e}");
}
