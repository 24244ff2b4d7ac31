//! The shell's own commands, which begin with a backslash.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::cli::Format;

/// What a command asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// The tables, or the columns of one.
    Describe(Option<String>),
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

/// Every command, its arguments, and what it does.
pub(super) const COMMANDS: [(&str, &str, &str); 12] = [
    ("\\d", "[TABLE]", "the tables; the columns of one"),
    ("\\f", "[FORMAT]", "print rows as table, csv, tsv, json, markdown or parquet"),
    ("\\x", "[on|off]", "one value a line"),
    ("\\o", "[FILE]", "rows to a file, complete at the next \\o; back to the screen"),
    ("\\i", "FILE", "run a file of statements and commands"),
    ("\\set", "[NAME VALUE]", "a value for the parameter $NAME; the values there are"),
    ("\\unset", "NAME", "forget it"),
    ("\\timing", "[on|off]", "how long statements take"),
    ("\\pager", "[on|off]", "long tables a screen at a time"),
    ("\\?", "", "this help"),
    ("\\h", "", "this help"),
    ("\\q", "", "leave (or Ctrl-D)"),
];

/// Reads a command, which begins with a backslash.
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
    Ok(match name {
        "\\d" => Command::Describe(argument),
        "\\timing" => Command::Timing(switch()?),
        "\\x" => Command::Vertical(switch()?),
        "\\pager" => Command::Pager(switch()?),
        "\\o" => Command::Output(argument.map(PathBuf::from)),
        "\\i" => Command::Include(PathBuf::from(needed("a file")?)),
        "\\f" => Command::Format(match argument.as_deref() {
            None => None,
            Some(format) => Some(Format::from_str(format, true).map_err(|_| {
                format!("no format {format:?}: there are {}", formats().collect::<Vec<_>>().join(", "))
            })?),
        }),
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
        "\\?" | "\\h" | "\\help" => Command::Help,
        "\\q" | "\\quit" => Command::Quit,
        other => return Err(format!("no command {other}: \\? lists them")),
    })
}

/// The names of the formats.
pub(super) fn formats() -> impl Iterator<Item = String> {
    let names = Format::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    names.map(|value| value.get_name().to_owned())
}

/// The help.
pub(super) fn help() -> Vec<String> {
    let mut lines = vec!["Statements end with a semicolon and may take several lines. Tab completes.".to_owned()];
    lines.extend(COMMANDS.iter().map(|(name, arguments, what)| {
        let usage = format!("{name} {arguments}");
        format!("  {usage:<20} {what}")
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
            ("\\d  'a b.plinth' ;", Command::Describe(Some("a b.plinth".to_owned()))),
            ("\\d \"T\";", Command::Describe(Some("T".to_owned()))),
            ("\\timing off", Command::Timing(Some(false))),
            ("\\x", Command::Vertical(None)),
            ("\\o out.csv", Command::Output(Some("out.csv".into()))),
            ("\\o", Command::Output(None)),
            ("\\f JSON", Command::Format(Some(Format::Json))),
            ("\\set $day '2024-01-01'", Command::Set(Some(("day".to_owned(), "2024-01-01".to_owned())))),
            ("\\unset day", Command::Unset("day".to_owned())),
            ("\\q", Command::Quit),
        ] {
            assert_eq!(parse(text), Ok(command), "{text}");
        }
        for text in ["\\", "\\tables", "\\i", "\\f xml", "\\x maybe", "\\set a", "\\unset"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(COMMANDS.iter().all(|(name, ..)| !matches!(parse(name), Err(e) if e.starts_with("no command"))));
    }
}
