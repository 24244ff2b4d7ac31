//! The parts of the page of what runs.

use std::fmt::Write;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plinth_core::html::{escape, page};
use plinth_core::units;

use crate::door::Door;
use crate::entry::Caller;
use crate::session::Session;
use crate::statement::{Phase, Statement};

pub(super) const STYLE: &str = "
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --bar: #3b82c4; --warn: #b3261e }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem }
h1 { font-size: 1.5rem; margin: 0 0 .25rem }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem }
p { margin: .25rem 0; opacity: .8 }
.wide { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
th { font-weight: 600; white-space: nowrap; font-size: .85rem; opacity: .7 }
td.n, th.n { text-align: right; white-space: nowrap }
td.n:first-child, th.n:first-child { width: 3rem; text-align: left }
td.text { width: 50%; min-width: 18rem }
code { font: 13px/1.45 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere }
.meter { background: var(--soft); border: 1px solid var(--line); height: .7rem; min-width: 6rem; border-radius: .2rem; overflow: hidden }
.meter i { display: block; height: 100%; background: var(--bar) }
button { font: inherit; font-size: .85rem; padding: .1rem .6rem; color: var(--warn); background: none; border: 1px solid; border-radius: .25rem; cursor: pointer }
form { margin: 0 }
";

/// A duration as people read it.
fn time(time: Duration) -> String {
    match time.as_secs() {
        0..=9 => format!("{:.1} s", time.as_secs_f64()),
        seconds @ 10..=119 => format!("{seconds} s"),
        seconds @ 120..=7199 => format!("{} min", seconds / 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Parts of a hundred.
fn percent(part: u64, of: u64) -> u64 {
    if of == 0 { 0 } else { (u128::from(part) * 100 / u128::from(of)).try_into().unwrap_or(100).min(100) }
}

fn meter(part: u64, of: u64) -> String {
    format!("<div class=\"meter\"><i style=\"width:{}%\"></i></div>", percent(part, of))
}

/// A table with these columns, those with `#` of numbers; or a sentence if it has no rows.
fn table(columns: &[&str], rows: &str, none: &str) -> String {
    if rows.is_empty() {
        return format!("<p>{none}</p>\n");
    }
    let heads: String = columns
        .iter()
        .map(|name| match name.strip_prefix('#') {
            Some(name) => format!("<th class=\"n\">{name}</th>"),
            None => format!("<th>{name}</th>"),
        })
        .collect();
    format!("<div class=\"wide\"><table>\n<tr>{heads}</tr>\n{rows}</table></div>\n")
}

fn statement_row(statement: &Statement, key: &str) -> String {
    let made = statement.rows.load(Ordering::Relaxed);
    let progress = match (statement.phase(), statement.engine.progress()) {
        (Phase::Waits, _) | (_, None) => String::new(),
        (_, Some((rows, Some(of)))) if of > 0 => {
            format!("{}{} % of {of} rows read", meter(rows, of), percent(rows, of))
        }
        (_, Some((rows, _))) => format!("{rows} rows read"),
    };
    let state = statement.stopped().map_or_else(|| statement.phase().to_string(), |why| why.to_string());
    format!(
        "<tr><td class=\"n\">{0}</td><td>{1}</td><td class=\"n\">{2}</td><td>{state}</td><td>{progress}</td><td class=\"n\">{made}</td>\
         <td><form method=\"post\" action=\"/cancel\"><input type=\"hidden\" name=\"key\" value=\"{key}\"><input type=\"hidden\" \
         name=\"statement\" value=\"{0}\"><button>cancel</button></form></td><td class=\"text\"><code>{3}</code></td></tr>\n",
        statement.number,
        escape(statement.user.name()),
        time(statement.begun.elapsed()),
        escape(&statement.text),
    )
}

fn session_row(door: &Door, session: &Session) -> String {
    format!(
        "<tr><td class=\"n\">{}</td><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
         <td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
        session.number,
        escape(session.user.name()),
        session.user.role(),
        time(session.begun.elapsed()),
        time(session.idle()),
        session.statements().len(),
        session.count(),
        door.handles.transactions(session),
    )
}

/// The page of what runs, as far as it is a user's business: those who only read see what is their own.
pub(super) fn status(door: &Door, caller: &Caller) -> String {
    let user = &caller.user;
    let sessions = door.sessions();
    let mine: Vec<_> = sessions.iter().filter(|session| user.may_manage(&session.user)).collect();
    let key = door.form_key(user);
    let mut out = page("Plinth", STYLE);
    let _ = writeln!(
        out,
        "<p>{} &middot; {} &middot; up {} &middot; {} &middot; {}, {} waiting{}</p>",
        escape(user.name()),
        user.role(),
        time(door.begun.elapsed()),
        units::counted(units::count_of(sessions.len()), "session"),
        units::counted(units::count_of(door.running()), "statement"),
        door.queue.waiting(),
        if door.is_closing() { " &middot; closing" } else { "" },
    );
    let rows: String =
        mine.iter().flat_map(|session| session.statements()).map(|statement| statement_row(&statement, &key)).collect();
    let columns = ["#no.", "user", "#time", "state", "progress", "#rows", "", "statement"];
    let _ = write!(out, "<h2>Statements</h2>\n{}", table(&columns, &rows, "Nothing runs."));
    let rows: String = mine.iter().map(|session| session_row(door, session)).collect();
    let columns = ["#no.", "user", "role", "#open for", "#idle for", "#running", "#statements", "#transactions"];
    let _ = write!(out, "<h2>Sessions</h2>\n{}", table(&columns, &rows, "No session is open."));
    let budget = door.host.budget();
    let _ = write!(
        out,
        "<h2>Memory</h2>\n<p>{} of {} in use, at most {} so far</p>\n{}",
        units::bytes(budget.in_use()),
        units::bytes(budget.limit()),
        units::bytes(budget.peak()),
        meter(budget.in_use(), budget.limit()),
    );
    // The names of sessions are of their users.
    let shown = |consumer: &str| {
        user.role() == crate::users::Role::Write
            || mine.iter().any(|session| is_of(consumer, session))
            || !is_session(consumer)
    };
    let usage = budget.usage().into_iter().filter(|usage| usage.peak > 0 && shown(&usage.consumer));
    let rows: String = usage
        .map(|usage| {
            format!(
                "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
                escape(&usage.consumer),
                units::bytes(usage.used),
                units::bytes(usage.peak)
            )
        })
        .collect();
    let _ = write!(out, "{}", table(&["owner", "#now", "#at most"], &rows, "No owner holds any."));
    let rows: String = door
        .profiles(user)
        .iter()
        .map(|profiled| {
            format!(
                "<tr><td class=\"n\"><a href=\"/profile/{0}\">{0}</a></td><td>{1}</td><td class=\"n\">{2}</td>\
                 <td class=\"text\"><code>{3}</code></td></tr>\n",
                profiled.number,
                escape(profiled.user.name()),
                time(profiled.profile.whole()),
                escape(&profiled.profile.title),
            )
        })
        .collect();
    let none =
        "None yet: SET plinth.profile = true has the next queries of a session, plinth serve --profile those of all.";
    let _ = write!(out, "<h2>Profiles</h2>\n{}", table(&["#no.", "user", "#time", "statement"], &rows, none));
    out.push_str("</html>\n");
    out
}

fn is_session(consumer: &str) -> bool {
    consumer.starts_with("session ")
}

fn is_of(consumer: &str, session: &Session) -> bool {
    consumer.starts_with(&format!("session {} ", session.number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_within_a_hundred() {
        assert_eq!([percent(0, 0), percent(1, 3), percent(5, 3), percent(u64::MAX, u64::MAX)], [0, 33, 100, 100]);
    }

    #[test]
    fn times_are_short() {
        let shown = [0.04, 9.96, 59.0, 119.0, 120.0, 7199.0, 7260.0].map(|s| time(Duration::from_secs_f64(s)));
        assert_eq!(shown, ["0.0 s", "10.0 s", "59 s", "119 s", "2 min", "119 min", "2 h 1 min"]);
    }
}
