//! The roofline as a chart, and the limits as bars.

use std::fmt::Write as _;

use crate::limits::{Limit, Resource, Roofline};
use crate::profile::Profile;
use plinth_core::html::escape;
use plinth_core::units;

const WIDTH: f64 = 1100.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 16.0;
const PLOT: f64 = 300.0;

/// A logarithmic axis.
#[derive(Clone, Copy)]
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// Whole powers of ten around some values, two at least.
    fn around(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values
            .filter(|value| *value > 0.0 && value.is_finite())
            .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        if high <= 0.0 {
            return Self { low: 0.0, high: 2.0 };
        }
        let (low, high) = (low.log10().floor(), high.log10().ceil());
        Self { low, high: high.max(low + 2.0) }
    }

    /// 0 to 1.
    fn place(self, value: f64) -> f64 {
        ((value.log10() - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    fn ticks(self) -> impl Iterator<Item = f64> {
        std::iter::successors(Some(self.low), |power| Some(power + 1.0))
            .take_while(move |power| *power <= self.high)
            .map(|power| 10_f64.powf(power))
    }
}

/// Where a query stands below the roofs: values decoded a second, over the values that each byte read became. `None` if it read or
/// decoded nothing, or no roof is known.
pub(super) fn chart(profile: &Profile, roofline: &Roofline) -> Option<String> {
    let moved = |resource| roofline.limit(resource).map_or(0, |limit| limit.moved.saturating_add(limit.unmeasured));
    let decoded = units::to_f64(moved(Resource::Decode));
    let read = units::to_f64(moved(Resource::Device).saturating_add(moved(Resource::PageCache)));
    let wall = profile.wall.as_secs_f64();
    if decoded <= 0.0 || read <= 0.0 || wall <= 0.0 {
        return None;
    }
    let (gain, speed) = (decoded / read, decoded / wall);
    let ceiling = |resource| roofline.limit(resource).and_then(|limit| Some((limit.resource, limit.ceiling?)));
    let slopes: Vec<_> = [Resource::Device, Resource::PageCache].into_iter().filter_map(ceiling).collect();
    let flats: Vec<_> = [Resource::Decode, Resource::Memory].into_iter().filter_map(ceiling).collect();
    if slopes.is_empty() && flats.is_empty() {
        return None;
    }
    let lowest = flats.iter().map(|(_, ceiling)| *ceiling).fold(f64::INFINITY, f64::min);
    let ridges = slopes.iter().map(|(_, slope)| lowest / slope);
    let x = Axis::around(ridges.chain([gain / 3.0, gain * 3.0]));
    let ends = slopes.iter().flat_map(|(_, slope)| [slope * gain, slope * 10_f64.powf(x.low)]);
    let y = Axis::around(ends.chain(flats.iter().map(|(_, ceiling)| ceiling * 1.5)).chain([speed]));
    let place =
        |at: f64, speed: f64| (LEFT + (WIDTH - LEFT - RIGHT) * x.place(at), TOP + PLOT * (1.0 - y.place(speed)));
    let mut out = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"Roofline\">\n",
        TOP + PLOT + 48.0
    );
    let (right, bottom) = (WIDTH - RIGHT, TOP + PLOT);
    // Writing to a String can't fail.
    for tick in x.ticks() {
        let at = place(tick, 1.0).0;
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{at:.1} {TOP}V{bottom}\"/><text class=\"quiet\" x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{tick}</text>",
            bottom + 17.0
        );
    }
    for tick in y.ticks() {
        let at = place(1.0, tick).1;
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right}\"/><text class=\"quiet\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 8.0,
            at + 4.0,
            units::speed(tick)
        );
    }
    let _ = writeln!(
        out,
        "<text class=\"quiet\" x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">bytes of values from each byte read</text>",
        (LEFT + right) / 2.0,
        bottom + 38.0
    );
    for (resource, slope) in &slopes {
        // From where the line enters the plot to where it meets the lowest flat roof, or leaves.
        let from = 10_f64.powf(x.low).max(10_f64.powf(y.low) / slope);
        let to = 10_f64.powf(x.high).min(lowest.min(10_f64.powf(y.high)) / slope).max(from);
        let ((x1, y1), (x2, y2)) = (place(from, from * slope), place(to, to * slope));
        let _ = writeln!(out, "<path class=\"roof slope\" d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\"/>");
        let angle = (y2 - y1).atan2(x2 - x1).to_degrees();
        let (at_x, at_y) = (x1 + 0.25 * (x2 - x1), y1 + 0.25 * (y2 - y1) - 6.0);
        let _ = writeln!(
            out,
            "<text x=\"{at_x:.1}\" y=\"{at_y:.1}\" transform=\"rotate({angle:.1} {at_x:.1} {at_y:.1})\">{} {}</text>",
            resource.name(),
            units::speed(*slope)
        );
    }
    for (resource, ceiling) in &flats {
        let first =
            slopes.iter().map(|(_, slope)| ceiling / slope).fold(f64::INFINITY, f64::min).min(10_f64.powf(x.high));
        let ((x1, at), _) = (place(if slopes.is_empty() { 10_f64.powf(x.low) } else { first }, *ceiling), ());
        let _ = writeln!(
            out,
            "<path class=\"roof flat\" d=\"M{:.1} {at:.1}H{right}\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{} {}</text>",
            x1.min(right - 160.0),
            right - 4.0,
            at - 6.0,
            resource.name(),
            units::speed(*ceiling)
        );
    }
    let (px, py) = place(gain, speed);
    let anchor = if px > WIDTH / 2.0 { ("end", -12.0) } else { ("start", 12.0) };
    let _ = writeln!(
        out,
        "<circle class=\"query\" cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"7\"/><text class=\"strong\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{}\">this query: {}, {gain:.2} from each byte</text>",
        px + anchor.1,
        py + 18.0,
        anchor.0,
        units::speed(speed)
    );
    out.push_str("</svg>\n");
    Some(out)
}

/// The time each limit alone would take, below the time it took.
pub(super) fn bars(profile: &Profile, roofline: &Roofline) -> String {
    let known: Vec<&Limit> = roofline.limits.iter().filter(|limit| limit.alone.is_some()).collect();
    let wall = profile.wall.as_secs_f64();
    let longest =
        known.iter().filter_map(|limit| limit.alone).map(|alone| alone.as_secs_f64()).fold(wall, f64::max).max(1e-9);
    let (name, line) = (150.0, 30.0);
    let height = line * (units::to_f64(units::count_of(known.len())) + 1.0) + 4.0;
    let scale = (WIDTH - name - 190.0) / longest;
    let mut out = format!("<svg class=\"bars\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"Limits\">\n");
    let mut bar = |at: usize, class: &str, title: &str, seconds: f64, text: &str| {
        let y = line * units::to_f64(units::count_of(at));
        // Writing to a String can't fail.
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text><rect class=\"{class}\" x=\"{name}\" y=\"{:.1}\" width=\"{:.1}\" height=\"20\" rx=\"3\"/><text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            name - 10.0,
            y + 18.0,
            escape(title),
            y + 4.0,
            (seconds * scale).max(1.0),
            name + seconds * scale + 8.0,
            y + 18.0,
            escape(text)
        );
    };
    bar(0, "wall", "it took", wall, &units::time(profile.wall));
    for (at, limit) in known.iter().enumerate() {
        let (alone, reached) = (limit.alone.unwrap_or_default(), limit.reached.map_or(String::new(), units::percent));
        bar(
            at + 1,
            "limit",
            &format!("{} alone", limit.resource.name()),
            alone.as_secs_f64(),
            &format!("{}, {reached}", units::time(alone)),
        );
    }
    out.push_str("</svg>\n");
    out
}
