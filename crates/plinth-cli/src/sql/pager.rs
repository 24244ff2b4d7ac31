//! A program that shows a long text a screen at a time.

use std::io::Write;
use std::process::{Command, Stdio};

/// The command that pages: `PLINTH_PAGER`, else `PAGER`, else `less`. None if the user wants none.
pub(crate) fn command() -> Option<String> {
    let given = ["PLINTH_PAGER", "PAGER"].into_iter().find_map(|name| std::env::var(name).ok());
    let command = given.unwrap_or_else(|| "less -SFRX".to_owned());
    let command = command.trim();
    (!command.is_empty() && command != "cat").then(|| command.to_owned())
}

/// Shows lines; false if the pager can't be started.
pub(crate) fn show(command: &str, lines: &[String]) -> bool {
    let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    // A shell would say that there is no such program only after it took the text.
    let program = command.split_whitespace().next().unwrap_or_default();
    if !cfg!(windows) && !is_program(program) {
        return false;
    }
    let mut pager = Command::new(shell);
    pager.args([flag, command]).stdin(Stdio::piped());
    // As Git does: whatever pager it is, if it is `less` it chops lines, takes colours and leaves short texts alone.
    if std::env::var_os("LESS").is_none() {
        pager.env("LESS", "SFRX");
    }
    let Ok(mut child) = pager.spawn() else { return false };
    if let Some(mut input) = child.stdin.take() {
        for line in lines {
            // A pager that is left early has shown enough.
            if writeln!(input, "{line}").is_err() {
                break;
            }
        }
    }
    let _ = child.wait();
    true
}

fn is_program(name: &str) -> bool {
    // Words of the shell, such as assignments, are for the shell to judge.
    if name.contains(['=', '$', '(', '"', '\'']) {
        return true;
    }
    if name.contains('/') {
        return std::path::Path::new(name).is_file();
    }
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).is_file()))
}
