//! Heat maps and curves as SVG.

use std::fmt::Write as _;

use plinth_core::html::escape;
use plinth_core::units;

use crate::{Cell, DEPTHS, Order, Row, SIZES};

/// What a heat map shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    Bandwidth,
    Iops,
    Latency,
}

impl Quantity {
    pub(crate) const ALL: [Self; 3] = [Self::Bandwidth, Self::Iops, Self::Latency];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Bandwidth => "Bandwidth",
            Self::Iops => "Requests a second",
            Self::Latency => "Median latency",
        }
    }

    fn of(self, row: &Row) -> f64 {
        match self {
            Self::Bandwidth => row.bandwidth,
            Self::Iops => row.iops,
            Self::Latency => units::to_f64(row.latency.p50),
        }
    }

    fn text(self, row: &Row) -> String {
        match self {
            Self::Bandwidth => units::speed(row.bandwidth),
            Self::Iops => units::frequency(row.iops),
            Self::Latency => units::latency(row.latency.p50),
        }
    }

    /// From little to much: light to dark, another hue for what is bad when there is much of it.
    fn ends(self) -> [[f64; 3]; 2] {
        match self {
            Self::Bandwidth => [[232.0, 241.0, 250.0], [8.0, 64.0, 129.0]],
            Self::Iops => [[232.0, 245.0, 233.0], [0.0, 90.0, 50.0]],
            Self::Latency => [[255.0, 243.0, 224.0], [140.0, 45.0, 4.0]],
        }
    }
}

/// The smallest and the largest value of rows: what colours span, the same on every map of a quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range(f64, f64);

impl Range {
    pub(crate) fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let positive = values.filter(|value| *value > 0.0);
        let smallest = positive.clone().fold(f64::INFINITY, f64::min);
        let largest = positive.fold(0.0, f64::max);
        if largest > 0.0 { Self(smallest, largest) } else { Self(1.0, 1.0) }
    }

    pub(crate) fn over(rows: &[Row], quantity: Quantity) -> Self {
        Self::of(rows.iter().map(|row| quantity.of(row)))
    }

    /// Where a value lies on a logarithmic scale, 0 to 1: what is measured spans powers of ten.
    fn place(self, value: f64) -> f64 {
        let (low, high) = (self.0.ln(), self.1.ln());
        if high - low < 1e-9 || value <= 0.0 { 0.5 } else { ((value.ln() - low) / (high - low)).clamp(0.0, 1.0) }
    }

    /// Powers of ten within, and their doubles and fives where no more than `few` powers are spanned.
    fn ticks(self, few: f64) -> Vec<f64> {
        let decades = (self.1 / self.0).log10();
        let steps: &[f64] = if decades > few { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let mut ticks = Vec::new();
        let mut power = 10_f64.powf(self.0.log10().floor());
        while power <= self.1 {
            ticks.extend(steps.iter().map(|step| step * power).filter(|tick| (self.0..=self.1).contains(tick)));
            power *= 10.0;
        }
        ticks
    }
}

const CELL: (f64, f64) = (74.0, 30.0);
const LEFT: f64 = 64.0;
const TOP: f64 = 20.0;

/// A map of sizes (down) by depths (across); combinations that were not measured are hatched.
pub(crate) fn heat_map(rows: &[Row], order: Order, reads: u8, quantity: Quantity, range: Range) -> String {
    let (width, height) = (LEFT + CELL.0 * 4.0 + 2.0, TOP + CELL.1 * 6.0 + 24.0);
    let mut svg = open(width, height, &format!("{} by request size and depth", quantity.title()));
    let (bottom, middle) = (TOP + CELL.1 * 6.0, LEFT + CELL.0 * 2.0);
    for (column, depth) in (0_u32..).zip(DEPTHS) {
        let x = LEFT + CELL.0 * (f64::from(column) + 0.5);
        label(&mut svg, x, TOP - 7.0, "middle", &depth.to_string());
    }
    label(&mut svg, middle, bottom + 17.0, "middle", "requests in flight (above), bytes a request (left)");
    for (line, size) in (0_u32..).zip(SIZES) {
        let y = TOP + CELL.1 * f64::from(line);
        label(&mut svg, LEFT - 6.0, y + 19.0, "end", &units::binary(size));
        for (column, depth) in (0_u32..).zip(DEPTHS) {
            let x = LEFT + CELL.0 * f64::from(column);
            let cell = Cell { order, reads, size, depth };
            let row = rows.iter().find(|row| row.cell == cell && row.operations > 0);
            square(&mut svg, x, y, row, quantity, range);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn square(svg: &mut String, x: f64, y: f64, row: Option<&Row>, quantity: Quantity, range: Range) {
    let (width, height) = (CELL.0 - 2.0, CELL.1 - 2.0);
    let Some(row) = row else {
        let _ = writeln!(svg, r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="url(#none)"/>"#);
        return;
    };
    let place = range.place(quantity.of(row));
    let ends = quantity.ends();
    let mix = |i: usize| units::whole(ends[0][i] + (ends[1][i] - ends[0][i]) * place);
    let (red, green, blue) = (mix(0), mix(1), mix(2));
    let ink = if place > 0.5 { "#fff" } else { "#1d2733" };
    let laws = crate::summary::laws(row);
    let mark = if laws.is_empty() { "" } else { " !" };
    let _ = writeln!(
        svg,
        r#"<g><title>{}: {}, {}, p50 {}, p99 {}{}</title><rect x="{x}" y="{y}" width="{width}" height="{height}" rx="3" fill="rgb({red},{green},{blue})"/><text x="{}" y="{}" text-anchor="middle" fill="{ink}">{}{mark}</text></g>"#,
        row.cell,
        units::speed(row.bandwidth),
        units::frequency(row.iops),
        units::latency(row.latency.p50),
        units::latency(row.latency.p99),
        if laws.is_empty() { String::new() } else { format!("; {}", escape(&laws)) },
        x + width / 2.0,
        y + 18.5,
        quantity.text(row),
    );
}

/// One hue a request size, dark to light.
const LINES: [&str; 6] = ["#3b1f6b", "#31688e", "#1f9e89", "#5aa02c", "#d98e04", "#c23b22"];

/// Latency over bandwidth: a line for each request size, a point for each depth; medians solid, p99 dashed.
pub(crate) fn curve(rows: &[Row], order: Order, reads: u8) -> String {
    let (width, height) = (560.0, 380.0);
    let (left, right, top, bottom) = (64.0, 92.0, 14.0, 46.0);
    let rows: Vec<&Row> =
        rows.iter().filter(|row| row.cell.order == order && row.cell.reads == reads && row.operations > 0).collect();
    let mut svg = open(width, height, "Latency over bandwidth");
    let across = Range::of(rows.iter().map(|row| row.bandwidth));
    let up = Range::of(rows.iter().flat_map(|row| [row.latency.p50, row.latency.p99]).map(units::to_f64));
    let x = |bandwidth: f64| left + across.place(bandwidth) * (width - left - right);
    let y = |latency: u64| height - bottom - up.place(units::to_f64(latency)) * (height - top - bottom);
    for tick in across.ticks(1.8) {
        let at = x(tick);
        let _ = writeln!(svg, r##"<path d="M{at:.1} {top}V{}" stroke="#e3e8ee"/>"##, height - bottom);
        label(&mut svg, at, height - bottom + 16.0, "middle", &units::speed(tick));
    }
    for tick in up.ticks(4.0) {
        let at = y(units::whole(tick));
        let _ = writeln!(svg, r##"<path d="M{left} {at:.1}H{}" stroke="#e3e8ee"/>"##, width - right);
        label(&mut svg, left - 6.0, at + 4.0, "end", &units::latency(units::whole(tick)));
    }
    label(&mut svg, left + (width - left - right) / 2.0, height - 8.0, "middle", "bandwidth");
    for (i, (size, colour)) in (0_u32..).zip(SIZES.iter().zip(LINES)) {
        let mut line: Vec<&&Row> = rows.iter().filter(|row| row.cell.size == *size).collect();
        line.sort_by_key(|row| row.cell.depth);
        let path = |latency: fn(&Row) -> u64| {
            let points = line.iter().map(|row| format!("{:.1} {:.1}", x(row.bandwidth), y(latency(row))));
            format!("M{}", points.collect::<Vec<_>>().join("L"))
        };
        if !line.is_empty() {
            let (solid, dashed) = (path(|row| row.latency.p50), path(|row| row.latency.p99));
            let _ = writeln!(svg, r#"<path d="{solid}" fill="none" stroke="{colour}" stroke-width="2"/>"#);
            let _ = writeln!(svg, r#"<path d="{dashed}" fill="none" stroke="{colour}" stroke-dasharray="3 4"/>"#);
        }
        for row in line {
            let (x, y) = (x(row.bandwidth), y(row.latency.p50));
            let _ = writeln!(
                svg,
                r##"<circle cx="{x:.1}" cy="{y:.1}" r="4" fill="{colour}" stroke="#fff"><title>{}: {}, p50 {}, p99 {}</title></circle>"##,
                row.cell,
                units::speed(row.bandwidth),
                units::latency(row.latency.p50),
                units::latency(row.latency.p99),
            );
        }
        let (x, y) = (width - right + 18.0, top + 16.0 + 20.0 * f64::from(i));
        let _ = writeln!(svg, r#"<path d="M{x} {}h16" stroke="{colour}" stroke-width="3"/>"#, y - 4.0);
        label(&mut svg, x + 22.0, y, "start", &units::binary(*size));
    }
    svg.push_str("</svg>\n");
    svg
}

fn open(width: f64, height: f64, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{title}\">\n"
    )
}

fn label(svg: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    let _ = writeln!(svg, r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" class="axis">{}</text>"#, escape(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_logarithmic_and_survive_nothing() {
        let range = Range::of([0.0, 10.0, 1_000.0].into_iter());
        assert_eq!(range, Range(10.0, 1_000.0));
        assert!((range.place(100.0) - 0.5).abs() < 1e-9);
        assert_eq!((range.place(1.0), range.place(1e9)), (0.0, 1.0));
        assert_eq!(range.ticks(2.0), [10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0]);
        assert_eq!(range.ticks(1.0), [10.0, 100.0, 1_000.0]);
        let nothing = Range::of(std::iter::empty());
        assert_eq!((nothing.place(3.0), nothing.ticks(1.0)), (0.5, vec![1.0]));
        assert!(curve(&[], Order::Random, 100).ends_with("</svg>\n"));
        let map = heat_map(&[], Order::Random, 100, Quantity::Iops, nothing);
        assert_eq!(map.matches("url(#none)").count(), 24);
    }
}
