//! The tree as a flame graph that hangs from the top: width is time, what is below happened within.

use std::fmt::Write as _;

use super::html::colour;
use crate::anchor::Stage;
use crate::profile::{Profile, Row};
use plinth_core::html::escape;
use plinth_core::units;

const WIDTH: f64 = 1100.0;
const LINE: f64 = 22.0;

/// The narrowest bar that is drawn: less can't be seen.
const NARROW: f64 = 0.4;

/// Width of a character of the labels, about.
const CHARACTER: f64 = 6.7;

/// An SVG of all rows and `other`.
pub(super) fn flame(profile: &Profile) -> String {
    let whole = profile.whole().as_secs_f64();
    let deepest = profile.rows.iter().map(|row| row.depth).max().unwrap_or(0);
    let height = LINE * (units::to_f64(units::count_of(deepest)) + 2.0) + 2.0;
    let mut out =
        format!("<svg class=\"flame\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"Flame graph\">\n");
    let all = Row { name: "all threads".into(), ..Row::computed(Stage::Other, profile.whole(), whole) };
    bar(&mut out, &all, 0.0, 0.0, whole);
    // Where the next child of each row begins.
    let mut next: Vec<f64> = Vec::with_capacity(profile.rows.len());
    let mut top = 0.0;
    for row in &profile.rows {
        let place = row.parent.and_then(|parent| next.get_mut(parent)).unwrap_or(&mut top);
        let start = *place;
        *place += row.total.as_secs_f64();
        next.push(start);
        bar(&mut out, row, start, LINE * (units::to_f64(units::count_of(row.depth)) + 1.0), whole);
    }
    bar(&mut out, &Row::computed(Stage::Other, profile.other, whole), top, LINE, whole);
    out.push_str("</svg>\n");
    out
}

fn bar(out: &mut String, row: &Row, start: f64, y: f64, whole: f64) {
    if whole <= 0.0 {
        return;
    }
    let (x, width) = (WIDTH * start / whole, WIDTH * row.total.as_secs_f64() / whole);
    if width < NARROW {
        return;
    }
    let name = escape(&row.name);
    let mut about = format!("{name}: {} with below, {} itself", units::time(row.total), units::time(row.time));
    let _ = write!(about, ", {}", units::percent(row.total_share));
    if row.hits > 0 {
        let _ = write!(about, ", {} times", units::short_count(row.hits));
    }
    if let Some(speed) = row.bytes_per_second() {
        let _ = write!(about, ", {} at {}", units::bytes(row.bytes), units::speed(speed));
    }
    let (inner, height) = ((width - 0.6).max(NARROW), LINE - 2.0);
    // Writing to a String can't fail.
    let _ = write!(
        out,
        "<g><title>{about}</title><rect class=\"{}\" x=\"{x:.2}\" y=\"{y}\" width=\"{inner:.2}\" height=\"{height}\" rx=\"2\"/>",
        colour(row.anchor.stage)
    );
    let label = label(&row.name, width);
    if !label.is_empty() {
        let _ = write!(out, "<text x=\"{:.2}\" y=\"{:.2}\">{}</text>", x + 4.0, y + 14.5, escape(&label));
    }
    out.push_str("</g>\n");
}

/// As much of a name as there is room for.
fn label(name: &str, width: f64) -> String {
    let fits = |n: usize| units::to_f64(units::count_of(n)) * CHARACTER + 8.0 <= width;
    let name = super::text::one_line(name);
    let len = name.chars().count();
    if fits(len) {
        return name;
    }
    let room = (3..len).rev().find(|room| fits(room + 1));
    room.map_or_else(String::new, |room| name.chars().take(room).chain(['…']).collect())
}
