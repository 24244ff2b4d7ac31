//! Timing, and the table that comes out.

/// Nanoseconds of processor time of this thread. What the kernel shows in a file moves in steps of milliseconds; this does not.
fn cpu() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap_or(0)
}

/// Processor time of this thread for something, in nanoseconds, and what it returned.
pub fn timed<T>(run: impl FnOnce() -> T) -> (u64, T) {
    let start = cpu();
    let result = run();
    (cpu() - start, result)
}

/// One that takes part: its name, and what it does, which returns a digest of the answers.
pub struct Entry<'a> {
    pub name: String,
    pub run: Box<dyn FnMut() -> u64 + 'a>,
}

pub fn entry<'a>(name: impl Into<String>, run: impl FnMut() -> u64 + 'a) -> Entry<'a> {
    Entry { name: name.into(), run: Box::new(run) }
}

/// Runs all in turn, several times; checks that they agree; prints medians and ratios to the first.
pub fn compare(title: &str, operations: u64, rounds: usize, mut entries: Vec<Entry<'_>>) {
    let mut times: Vec<Vec<u64>> = vec![Vec::new(); entries.len()];
    let mut digest = None;
    for _ in 0..rounds {
        for (entry, times) in entries.iter_mut().zip(&mut times) {
            let (time, found) = timed(|| (entry.run)());
            assert_eq!(*digest.get_or_insert(found), found, "{title}: {} answers differently", entry.name);
            times.push(time);
        }
    }
    let title = format!("{title}: processor time of {operations} operations, median of {rounds}");
    let mut table = Table::new(title, &["ns each", "ratio"]);
    let mut first = None;
    for (entry, times) in entries.into_iter().zip(&mut times) {
        times.sort_unstable();
        let each = times[times.len() / 2] as f64 / operations as f64;
        table.row(entry.name, [each, each / *first.get_or_insert(each)]);
    }
    table.print();
}

/// Figures by name. Printed for people, or with `--json` as one object a line.
pub struct Table {
    title: String,
    columns: Vec<String>,
    rows: Vec<(String, Vec<f64>)>,
}

impl Table {
    pub fn new(title: impl Into<String>, columns: &[&str]) -> Self {
        Self { title: title.into(), columns: columns.iter().map(|&c| c.to_owned()).collect(), rows: Vec::new() }
    }

    pub fn row(&mut self, name: impl Into<String>, figures: impl Into<Vec<f64>>) {
        self.rows.push((name.into(), figures.into()));
    }

    pub fn print(&self) {
        if std::env::args().any(|argument| argument == "--json") {
            let rows: Vec<String> = self.rows.iter().map(|(name, figures)| format!("[{name:?},{figures:?}]")).collect();
            let (title, columns) = (&self.title, &self.columns);
            println!("{{\"title\":{title:?},\"columns\":{columns:?},\"rows\":[{}]}}", rows.join(","));
            return;
        }
        println!("\n{}", self.title);
        let line = |name: &str, cells: Vec<String>| {
            println!("  {name:<44}{}", cells.iter().map(|cell| format!(" {cell:>14}")).collect::<String>());
        };
        line("", self.columns.clone());
        for (name, figures) in &self.rows {
            line(name, figures.iter().map(|figure| format!("{figure:.2}")).collect());
        }
    }
}

/// A digest that depends on the order.
pub fn digest(sum: u64, value: u64) -> u64 {
    (sum.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
