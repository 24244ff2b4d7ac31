//! The operators of a plan as people read them.

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use datafusion::common::stats::Precision;
use datafusion::datasource::memory::DataSourceExec;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::physical_plan::metrics::{MetricValue, MetricsSet};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan};
use regex::Regex;

/// An operator of a plan.
#[derive(Clone, Debug)]
pub struct Step {
    /// What it does, in a word or two.
    pub name: String,
    /// What it does that with.
    pub details: String,
    /// Rows that come out as far as statistics tell, and whether these are exact.
    pub expected: Option<(u64, bool)>,
    /// What it did, if it ran.
    pub done: Option<Work>,
    /// What it takes its rows from.
    pub inputs: Vec<Step>,
}

/// What an operator did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Rows that came out.
    pub rows: Option<u64>,
    /// Time of all threads in it.
    pub time: Option<Duration>,
    /// The most memory that it held at once.
    pub memory: Option<u64>,
    /// Bytes that it wrote to disk for want of memory.
    pub spilled: u64,
}

/// An operator and what is below it. Those that only pass rows on are left out.
pub fn step(plan: &Arc<dyn ExecutionPlan>, ran: bool) -> Step {
    let children = plan.children();
    if let ("CooperativeExec" | "ChunkExec" | "DenseTextExec", [child]) = (plan.name(), children.as_slice()) {
        return step(child, ran);
    }
    let expected = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new()).ok();
    let expected = expected.and_then(|statistics| match statistics.num_rows {
        Precision::Exact(rows) => Some((rows as u64, true)),
        Precision::Inexact(rows) => Some((rows as u64, false)),
        Precision::Absent => None,
    });
    Step {
        name: name(plan.name()),
        details: details(plan.as_ref()),
        expected,
        done: ran.then(|| plan.metrics().map(|metrics| work(&metrics)).unwrap_or_default()),
        inputs: children.into_iter().map(|child| step(child, ran)).collect(),
    }
}

/// What counters tell of an operator's work.
pub fn work(metrics: &MetricsSet) -> Work {
    let (mut time, mut profiled, mut memory, mut asked) = (Duration::ZERO, false, 0_u64, 0_u64);
    for metric in metrics.iter() {
        match metric.value() {
            MetricValue::Time { name, time: spent } if name.starts_with("profile_") => {
                profiled = true;
                time += Duration::from_nanos(spent.value() as u64);
            }
            MetricValue::Gauge { name, gauge } if name == "profile_memory" => memory += gauge.value() as u64,
            MetricValue::Gauge { name, gauge } if name.contains("mem_used") => asked += gauge.value() as u64,
            _ => {}
        }
    }
    let time = if profiled {
        Some(time)
    } else {
        metrics.elapsed_compute().map(|nanoseconds| Duration::from_nanos(nanoseconds as u64))
    };
    let memory = Some(memory.max(asked)).filter(|memory| *memory > 0);
    let spilled = metrics.spilled_bytes().unwrap_or(0) as u64;
    Work { rows: metrics.output_rows().map(|rows| rows as u64), time, memory, spilled }
}

/// What an operator is called by people.
fn name(operator: &str) -> String {
    let known = match operator {
        "DataSourceExec" => "scan",
        "FilterExec" => "filter",
        "ProjectionExec" => "compute",
        "GroupExec" | "AggregateExec" => "aggregate",
        "JoinExec" | "HashJoinExec" => "hash join",
        "SortMergeJoinExec" => "merge join",
        "NestedLoopJoinExec" => "nested loop join",
        "PiecewiseMergeJoin" => "range join",
        "CrossJoinExec" => "cross join",
        "SortExec" | "SortExec(TopK)" => "sort",
        "StreamingTableExec" => "scan of text",
        "TopExec" => "first rows",
        "SortPreservingMergeExec" => "merge sorted",
        "CoalescePartitionsExec" => "gather",
        "RepartitionExec" => "exchange",
        "GlobalLimitExec" | "LocalLimitExec" => "limit",
        "UnionExec" | "InterleaveExec" => "union",
        "WindowAggExec" | "BoundedWindowAggExec" => "window",
        "UnnestExec" => "unnest",
        "RecursiveQueryExec" => "recursion",
        "WorkTableExec" => "recursive rows",
        "PlaceholderRowExec" => "one row",
        "EmptyExec" => "no rows",
        "SharedExec" => "computed once",
        _ => return operator.strip_suffix("Exec").unwrap_or(operator).to_owned(),
    };
    known.to_owned()
}

struct Tree<'a>(&'a dyn ExecutionPlan);

impl fmt::Display for Tree<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_as(DisplayFormatType::TreeRender, f)
    }
}

/// What it is about: its files, and what it says of itself, without what only its makers understand.
fn details(plan: &dyn ExecutionPlan) -> String {
    // Values with their types in front.
    static LITERAL: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"\b(?:U?Int\d+|Float\d+|Utf8(?:View)?|Boolean)\(([^()]*)\)").ok());
    static COLUMN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"([\w)\]])@\d+").ok());
    const QUIET: [&str; 6] =
        ["limit=None", "format=", "file_groups=", "partition_count(in->out)=", "files=", "partitioning_scheme="];
    let text = Tree(plan).to_string();
    let text = COLUMN.as_ref().map_or(text.clone(), |column| column.replace_all(&text, "$1").into_owned());
    let text = LITERAL.as_ref().map_or(text.clone(), |literal| literal.replace_all(&text, "$1").into_owned());
    let text = text.replace("count(1)", "count(*)");
    let files = files(plan);
    let said = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !QUIET.iter().any(|quiet| line.starts_with(quiet)));
    files.into_iter().chain(said.map(plain)).collect::<Vec<_>>().join(" · ")
}

/// A property as people read it.
fn plain(line: &str) -> String {
    let Some((name, value)) = line.split_once('=') else { return line.to_owned() };
    let inner = value.strip_prefix('[').and_then(|value| value.strip_suffix(']')).unwrap_or(value);
    match name {
        "predicate" => format!("where {value}"),
        "keys" | "group_by" if inner.is_empty() => String::from("all rows"),
        "keys" | "group_by" => format!("by {inner}"),
        "aggregates" | "aggr" => inner.to_owned(),
        "on" => format!("on {inner}"),
        "join_type" => value.to_lowercase(),
        "mode" => value.to_lowercase(),
        _ => line.to_owned(),
    }
}

/// The files that a scan reads.
fn files(plan: &dyn ExecutionPlan) -> Option<String> {
    let scan = plan.downcast_ref::<DataSourceExec>()?;
    let config = scan.data_source().downcast_ref::<FileScanConfig>()?;
    let mut names: Vec<String> = Vec::new();
    for file in config.file_groups.iter().flat_map(|group| group.files()) {
        let name = file.object_meta.location.filename().unwrap_or_default().to_owned();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let first = names.first()?;
    Some(match names.len() {
        1 => first.clone(),
        more => format!("{first} and {} more", more - 1),
    })
}
