//! The shell's own commands: they begin with a backslash as psql's do, or with a dot as those of SQLite and DuckDB.

use std::path::PathBuf;

use clap::ValueEnum;
use plinth_core::text::nearest;

use crate::cli::Format;

/// What a command asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// The tables, or the columns of one.
    Describe(Option<String>),
    /// The folder of tables.
    Databases,
    /// Functions whose names hold a text.
    Functions(Option<String>),
    /// The statement that would make a table, or all of them.
    Schema(Option<String>),
    Timing(Option<bool>),
    Vertical(Option<bool>),
    Pager(Option<bool>),
    /// Rows to a file, or back to the screen.
    Output(Option<PathBuf>),
    Include(PathBuf),
    /// The format, or what it is.
    Format(Option<Format>),
    /// A value for a parameter, or what values there are.
    Set(Option<(String, String)>),
    Unset(String),
    Help,
    Quit,
}

/// Every command by all of its names, its arguments, and what it does.
pub(super) const COMMANDS: [(&[&str], &str, &str); 14] = [
    (&["\\d", "\\dt", ".tables"], "[TABLE]", "the tables; the columns, key and indexes of one"),
    (&["\\l", ".databases"], "", "the folder of tables"),
    (&["\\df", ".functions"], "[TEXT]", "the functions; those whose names hold a text"),
    (&[".schema"], "[TABLE]", "the statement that makes a table"),
    (&["\\f", ".mode"], "[FORMAT]", "print rows as table, csv, tsv, json, markdown, parquet or arrow"),
    (&["\\x"], "[on|off]", "one value a line"),
    (&["\\o", ".output"], "[FILE]", "rows to a file, complete at the next \\o; back to the screen"),
    (&["\\i", ".read"], "FILE", "run a file of statements and commands"),
    (&["\\set"], "[NAME VALUE]", "a value for the parameter $NAME; the values there are"),
    (&["\\unset"], "NAME", "forget it"),
    (&["\\timing", ".timer"], "[on|off]", "how long statements take"),
    (&["\\pager", ".pager"], "[on|off]", "long tables a screen at a time"),
    (&["\\?", "\\h", "\\help", ".help", "help"], "", "this help"),
    (&["\\q", "\\quit", ".quit", ".exit", "quit", "exit"], "", "leave (or Ctrl-D)"),
];

/// Commands that are words, which stand alone on their line.
const WORDS: [&str; 3] = ["help", "quit", "exit"];

/// Whether a line where a statement could begin is a command.
pub(super) fn is_command(line: &str) -> bool {
    let line = line.trim();
    let word = line.trim_end_matches(';').trim_end();
    line.starts_with('\\')
        || line.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
        || WORDS.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// The command of a name: the first of its names.
fn first_name(name: &str) -> Option<&'static str> {
    let named = |names: &&[&'static str]| names.contains(&name);
    COMMANDS.iter().map(|(names, ..)| *names).find(named).and_then(|names| names.first().copied())
}

/// Reads a command.
pub(super) fn parse(text: &str) -> Result<Command, String> {
    let text = text.trim().trim_end_matches(';').trim();
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    let argument = (!rest.is_empty()).then(|| unquote(rest).to_owned());
    let needed = |what: &str| argument.clone().ok_or_else(|| format!("{name} needs {what}"));
    let switch = || match argument.as_deref() {
        None => Ok(None),
        Some("on") => Ok(Some(true)),
        Some("off") => Ok(Some(false)),
        Some(other) => Err(format!("{name} is on or off, not {other:?}")),
    };
    let lower = name.to_ascii_lowercase();
    let Some(first) = first_name(if lower.starts_with('\\') { name } else { &lower }) else {
        return Err(unknown(name));
    };
    Ok(match first {
        "\\d" => Command::Describe(argument),
        "\\l" => Command::Databases,
        "\\df" => Command::Functions(argument),
        ".schema" => Command::Schema(argument),
        "\\timing" => Command::Timing(switch()?),
        "\\x" => Command::Vertical(switch()?),
        "\\pager" => Command::Pager(switch()?),
        "\\o" => Command::Output(argument.map(PathBuf::from)),
        "\\i" => Command::Include(PathBuf::from(needed("a file")?)),
        "\\f" => match argument.as_deref() {
            None => Command::Format(None),
            // One value a line is no format here.
            Some("line" | "lines") => Command::Vertical(Some(true)),
            Some(format) => Command::Format(Some(format_of(format)?)),
        },
        "\\set" if rest.is_empty() => Command::Set(None),
        "\\set" => match rest.split_once(char::is_whitespace) {
            Some((name, value)) => {
                let name = name.strip_prefix('$').unwrap_or(name);
                Command::Set(Some((name.to_owned(), unquote(value.trim()).to_owned())))
            }
            None => return Err("\\set needs a name and a value".to_owned()),
        },
        "\\unset" => {
            let name = needed("a name")?;
            Command::Unset(name.strip_prefix('$').unwrap_or(&name).to_owned())
        }
        "\\?" => Command::Help,
        "\\q" => Command::Quit,
        other => return Err(unknown(other)),
    })
}

fn unknown(name: &str) -> String {
    let names = COMMANDS.iter().flat_map(|(names, ..)| names.iter().copied());
    let help = if name.starts_with('.') { ".help" } else { "\\?" };
    match nearest(name, names) {
        Some(near) => format!("no command {name}; is {near} meant? {help} lists them"),
        None => format!("no command {name}: {help} lists them"),
    }
}

/// A format by its name, or by what other shells call it.
fn format_of(name: &str) -> Result<Format, String> {
    let known = match name.to_ascii_lowercase().as_str() {
        "box" | "duckbox" | "column" | "columns" | "ascii" | "aligned" => "table",
        "jsonlines" => "json",
        "tabs" => "tsv",
        _ => name,
    };
    Format::from_str(known, true)
        .map_err(|_| format!("no format {name:?}: there are {}", formats().collect::<Vec<_>>().join(", ")))
}

/// The names of the formats.
pub(super) fn formats() -> impl Iterator<Item = String> {
    let names = Format::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    names.map(|value| value.get_name().to_owned())
}

/// The help.
pub(super) fn help() -> Vec<String> {
    let mut lines = vec!["Statements end with a semicolon and may take several lines. Tab completes.".to_owned()];
    lines.extend(COMMANDS.iter().map(|(names, arguments, what)| {
        let usage = format!("{} {arguments}", names.join(" "));
        format!("  {usage:<30} {what}")
    }));
    lines
}

fn unquote(text: &str) -> &str {
    let inside = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inside('\'').or_else(|| inside('"')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read() {
        for (text, command) in [
            ("\\d", Command::Describe(None)),
            ("\\dt", Command::Describe(None)),
            (".tables", Command::Describe(None)),
            ("\\d  'a b.plinth' ;", Command::Describe(Some("a b.plinth".to_owned()))),
            ("\\d \"T\";", Command::Describe(Some("T".to_owned()))),
            ("\\l", Command::Databases),
            (".schema t", Command::Schema(Some("t".to_owned()))),
            ("\\timing off", Command::Timing(Some(false))),
            (".timer on", Command::Timing(Some(true))),
            ("\\x", Command::Vertical(None)),
            ("\\o out.csv", Command::Output(Some("out.csv".into()))),
            ("\\o", Command::Output(None)),
            (".read a.sql", Command::Include("a.sql".into())),
            ("\\f JSON", Command::Format(Some(Format::Json))),
            (".mode box", Command::Format(Some(Format::Table))),
            (".mode line", Command::Vertical(Some(true))),
            ("\\set $day '2024-01-01'", Command::Set(Some(("day".to_owned(), "2024-01-01".to_owned())))),
            ("\\unset day", Command::Unset("day".to_owned())),
            ("\\q", Command::Quit),
            ("Exit;", Command::Quit),
            ("quit", Command::Quit),
            ("help", Command::Help),
        ] {
            assert!(is_command(text), "{text}");
            assert_eq!(parse(text), Ok(command), "{text}");
        }
        for text in ["\\", "\\tables", "\\i", "\\f xml", "\\x maybe", "\\set a", "\\unset", ".headers on"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(parse(".tabels"), Err("no command .tabels; is .tables meant? .help lists them".to_owned()));
        assert!(
            COMMANDS.iter().flat_map(|(names, ..)| *names).all(|name| is_command(name) && first_name(name).is_some())
        );
        for text in ["help me", "quit_smoking;", "SELECT 1", ".5", ""] {
            assert!(!is_command(text), "{text}");
        }
    }
}
