//! `plinth sql`: statements in, rows out.

mod print;

use std::io::{IsTerminal, Read};
use std::time::{Duration, Instant};

use futures::StreamExt;

use crate::cli::{Format, SqlArgs, Timings};
use crate::error::{Failure, Result};
use crate::session::{Session, SessionOptions, block_on, parse};
use crate::{interrupt, machine, units};
use print::Printer;

/// Runs the command.
pub(crate) fn run(args: &SqlArgs) -> Result {
    let text = read_statements(args)?;
    let statements = parse(&text)?;
    let options = SessionOptions {
        db: args.db.clone(),
        memory: args.memory.unwrap_or_else(machine::default_memory),
        threads: args.threads.unwrap_or_else(machine::threads),
    };
    interrupt::listen()?;
    let terminal = std::io::stdout().is_terminal();
    let format = args.format.unwrap_or(if terminal { Format::Table } else { Format::Csv });
    let mut printer = Printer::new(format);
    let result = block_on(options.threads, async {
        let session = Session::new(&options)?;
        let mut seconds = Vec::new();
        let last = statements.len().saturating_sub(1);
        for (at, statement) in statements.into_iter().enumerate() {
            let runs = if at == last { args.repeat } else { 1 };
            for run in 1..=runs {
                let started = Instant::now();
                let mut stream = session.execute(statement.clone()).await?;
                let rows = if run == runs {
                    printer.print(stream).await?
                } else {
                    let mut rows = 0;
                    while let Some(batch) = stream.next().await {
                        rows += batch?.num_rows() as u64;
                    }
                    rows
                };
                let elapsed = started.elapsed();
                if at == last {
                    seconds.push(elapsed);
                }
                if terminal && args.timings.is_none() && format == Format::Table && run == runs {
                    eprintln!("{} in {}", units::counted(rows, "row"), units::duration(elapsed));
                }
            }
        }
        printer.finish()?;
        Ok(seconds)
    });
    let seconds = match result {
        // The writer below wraps the error of a pipe nobody reads until it can't be told apart.
        Err(Failure::Message(_)) if printer.is_broken() => return Err(Failure::BrokenPipe),
        other => other?,
    };
    if let Some(Timings::Json) = args.timings {
        eprintln!("{}", timings(&seconds));
    }
    Ok(())
}

fn timings(seconds: &[Duration]) -> String {
    let seconds: Vec<f64> = seconds.iter().map(Duration::as_secs_f64).collect();
    serde_json::json!({ "seconds": seconds }).to_string()
}

fn read_statements(args: &SqlArgs) -> Result<String> {
    let mut parts = args.command.clone();
    if let Some(path) = &args.file {
        let text = std::fs::read_to_string(path).map_err(|e| Failure::new(format!("{}: {e}", path.display())))?;
        parts.push(text);
    }
    if args.command.is_empty() && args.file.is_none() {
        let mut text = String::new();
        let mut stdin = std::io::stdin();
        if stdin.is_terminal() {
            return Err(Failure::new("nothing to run: give statements with -c or -f, or on standard input"));
        }
        stdin.read_to_string(&mut text).map_err(|e| Failure::new(format!("standard input: {e}")))?;
        parts.push(text);
    }
    // A part may or may not end with its semicolon, and may end in a comment.
    Ok(parts.join("\n;\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timings_are_one_object() {
        let text = timings(&[Duration::from_millis(1_500), Duration::from_millis(250)]);
        assert_eq!(text, r#"{"seconds":[1.5,0.25]}"#);
    }
}
