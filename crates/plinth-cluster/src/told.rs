//! What the operators of a part did, as counters that travel: a worker's operators are not those that it was sent, so its root tells of all.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::{Count, Metric, MetricValue, MetricsSet};
use datafusion_distributed::{BytesCounterMetric, DISTRIBUTED_DATAFUSION_TASK_ID_LABEL, NetworkBoundaryExt};
use plinth_sql::{Step, Work};

/// The counter of the time that a part took.
pub(crate) const WALL: &str = "plinth_wall";

/// How the counters of an operator begin.
const PREFIX: &str = "plinth_step";

/// Operators of a part that are told of at most.
const STEPS: usize = 500;

/// Letters of what an operator does that are told.
const LETTERS: usize = 300;

/// What an operator in a worker did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) depth: usize,
    pub(crate) name: String,
    pub(crate) details: String,
    pub(crate) work: Work,
    /// Bytes that came from other processes.
    pub(crate) moved: u64,
}

/// What a task did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Task {
    pub(crate) steps: Vec<Told>,
    /// From the beginning of its first partition to the end of its last.
    pub(crate) wall: Duration,
}

/// The counters of a part.
pub(crate) fn tell(run: &Arc<dyn ExecutionPlan>, own: &MetricsSet) -> MetricsSet {
    let mut told = MetricsSet::new();
    let mut steps = Vec::new();
    flatten(&plinth_sql::step(run, true), 0, &mut steps);
    let mut moved = Vec::new();
    moved_bytes(run, &mut moved);
    let mut count = |name: String, value: u64| {
        let count = Count::new();
        count.add(usize::try_from(value).unwrap_or(usize::MAX));
        told.push(Arc::new(Metric::new(MetricValue::Count { name: Cow::Owned(name), count }, None)));
    };
    for (at, (depth, step)) in steps.into_iter().take(STEPS).enumerate() {
        let plain = |text: &str| text.replace('|', "¦").chars().take(LETTERS).collect::<String>();
        count(format!("{PREFIX}|{at}|{depth}|is|{}|{}", plain(&step.name), plain(&step.details)), 0);
        let done = step.done.unwrap_or_default();
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let counters = [
            ("rows", done.rows),
            ("time", done.time.map(nanos)),
            ("memory", done.memory),
            ("spilled", Some(done.spilled).filter(|bytes| *bytes > 0)),
        ];
        for (what, value) in counters {
            if let Some(value) = value {
                count(format!("{PREFIX}|{at}|{depth}|{what}"), value);
            }
        }
    }
    count(format!("{PREFIX}|0|0|moved"), moved.iter().sum());
    let wall = own.iter().filter(|metric| metric.value().name() == WALL).map(|metric| metric.value().as_usize() as u64);
    count(WALL.to_owned(), wall.max().unwrap_or(0));
    told
}

fn flatten(step: &Step, depth: usize, into: &mut Vec<(usize, Step)>) {
    // It only passes rows on.
    if let ("States", [groups]) = (step.name.as_str(), step.inputs.as_slice()) {
        return flatten(groups, depth, into);
    }
    into.push((depth, Step { inputs: Vec::new(), ..step.clone() }));
    step.inputs.iter().for_each(|input| flatten(input, depth + 1, into));
}

/// Bytes that came over the network to the leaves of a plan.
pub(crate) fn moved_bytes(plan: &Arc<dyn ExecutionPlan>, into: &mut Vec<u64>) {
    if plan.is_network_boundary() {
        let metrics = plan.metrics().unwrap_or_default();
        into.push(bytes_of(&metrics));
        return;
    }
    plan.children().into_iter().for_each(|child| moved_bytes(child, into));
}

/// Bytes that a boundary has taken from the network.
pub(crate) fn bytes_of(metrics: &MetricsSet) -> u64 {
    let bytes = metrics.iter().filter_map(|metric| match metric.value() {
        MetricValue::Custom { name, value } if name == "bytes_transferred" => {
            value.as_any().downcast_ref::<BytesCounterMetric>().map(|bytes| bytes.value() as u64)
        }
        _ => None,
    });
    bytes.sum()
}

/// What tasks told, by their numbers.
pub(crate) fn heard(metrics: &MetricsSet) -> BTreeMap<usize, Task> {
    let mut tasks: BTreeMap<usize, Task> = BTreeMap::new();
    for metric in metrics.iter() {
        let MetricValue::Count { name, count } = metric.value() else { continue };
        let label = metric.labels().iter().find(|label| label.name() == DISTRIBUTED_DATAFUSION_TASK_ID_LABEL);
        let number = label.and_then(|label| label.value().parse().ok()).unwrap_or(0);
        let value = count.value() as u64;
        if name == WALL {
            tasks.entry(number).or_default().wall = Duration::from_nanos(value);
            continue;
        }
        let mut parts = name.splitn(4, '|');
        let (Some(PREFIX), Some(at), Some(depth), Some(what)) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let (Ok(at), Ok(depth)) = (at.parse::<usize>(), depth.parse::<usize>()) else { continue };
        if at >= STEPS {
            continue;
        }
        let steps = &mut tasks.entry(number).or_default().steps;
        if steps.len() <= at {
            steps.resize_with(at + 1, Told::default);
        }
        let Some(step) = steps.get_mut(at) else { continue };
        match what {
            "rows" => step.work.rows = Some(value),
            "time" => step.work.time = Some(Duration::from_nanos(value)),
            "memory" => step.work.memory = Some(value),
            "spilled" => step.work.spilled = value,
            "moved" => step.moved = value,
            other => {
                if let Some((name, details)) = other.strip_prefix("is|").and_then(|rest| rest.split_once('|')) {
                    (step.depth, step.name, step.details) = (depth, name.to_owned(), details.to_owned());
                }
            }
        }
    }
    tasks
}
