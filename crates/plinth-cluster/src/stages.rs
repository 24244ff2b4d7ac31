//! A plan in several processes as people read it: stages, the tasks of each, what they did and what moved between them.

use std::sync::Arc;
use std::time::Duration;

use datafusion::common::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_distributed::{
    DistributedExec, DistributedLeafExec, DistributedMetricsFormat, NetworkBoundaryExt, Stage,
    rewrite_distributed_plan_with_metrics,
};
use plinth_sql::{Step, Work, step};
use url::Url;

use crate::route::routes;
use crate::told::{self, Task, Told};
use crate::workers::name;

/// How long to wait for what workers tell once a query is over.
const TELLING: Duration = Duration::from_secs(10);

/// From how many times the time of the middle task on a task is called slow.
const SLOW: u32 = 2;

/// The steps of a plan.
pub(crate) async fn explained(plan: Arc<dyn ExecutionPlan>, ran: bool, workers: Arc<[Url]>) -> Result<Step> {
    let plan = match ran {
        true => {
            let told = rewrite_distributed_plan_with_metrics(Arc::clone(&plan), DistributedMetricsFormat::PerTask);
            // A worker that is lost behind the last row tells nothing.
            match tokio::time::timeout(TELLING, told).await {
                Ok(told) => told?,
                Err(_) => plan,
            }
        }
        false => plan,
    };
    let of = Of { ran, workers };
    let head = plan.children().first().map(|&head| Arc::clone(head));
    let Some(root) = head.filter(|_| plan.is::<DistributedExec>()) else { return Ok(step(&plan, ran)) };
    let mut summary = of.many();
    if ran {
        let mut moved = 0;
        of.moved(&root, &mut moved);
        summary = format!("{summary} · {} moved between processes", bytes(moved));
    }
    let inputs = vec![of.step(&root)];
    Ok(Step { name: "cluster".to_owned(), details: summary, expected: None, done: ran.then(Work::default), inputs })
}

struct Of {
    ran: bool,
    workers: Arc<[Url]>,
}

impl Of {
    fn many(&self) -> String {
        let names: Vec<String> = self.workers.iter().map(name).collect();
        match names.as_slice() {
            [one] => format!("1 worker: {one}"),
            all => format!("{} workers: {}", all.len(), all.join(", ")),
        }
    }

    /// An operator of this process, or of a stage.
    fn step(&self, plan: &Arc<dyn ExecutionPlan>) -> Step {
        if let Some(boundary) = plan.as_network_boundary() {
            return self.stage(plan, boundary.input_stage());
        }
        if let Some(leaf) = plan.downcast_ref::<DistributedLeafExec>() {
            return step(leaf.original(), self.ran);
        }
        let own = step(plan, self.ran);
        // Those that only pass rows on are left out, as elsewhere.
        if plan.name() == "CooperativeExec"
            && let [child] = plan.children().as_slice()
        {
            return self.step(child);
        }
        Step { inputs: plan.children().into_iter().map(|child| self.step(child)).collect(), ..own }
    }

    fn stage(&self, boundary: &Arc<dyn ExecutionPlan>, stage: &Stage) -> Step {
        let moving = match boundary.name() {
            "NetworkShuffleExec" => "by key to those who take them",
            "NetworkBroadcastExec" => "all to each",
            _ => "to one",
        };
        let Stage::Local(stage) = stage else { return step(boundary, self.ran) };
        let homes = routes(&self.workers, &stage.plan, stage.tasks);
        let on: Vec<String> = homes.iter().map(name).collect();
        let tasks = if stage.tasks == 1 { "1 task".to_owned() } else { format!("{} tasks", stage.tasks) };
        let mut details = vec![format!("{tasks} on {}", on.join(", ")), format!("rows go {moving}")];
        let metrics = boundary.metrics().unwrap_or_default();
        let mut done = None;
        let mut inputs = vec![self.step(&stage.plan)];
        if self.ran {
            done = Some(Work { rows: None, ..plinth_sql::work(&metrics) });
            let told = part(&stage.plan).and_then(|part| part.metrics()).map(|metrics| told::heard(&metrics));
            let tasks: Vec<(usize, Task)> = told.unwrap_or_default().into_iter().collect();
            let rows: u64 = tasks.iter().filter_map(|(_, task)| task.steps.first()?.work.rows).sum();
            done = done.map(|work| Work { rows: Some(rows), memory: None, ..work });
            let moved = told::bytes_of(&metrics);
            if moved > 0 {
                details.push(format!("{} came to where it was asked", bytes(moved)));
            }
            details.extend(skew(&tasks, &on));
            if !tasks.is_empty() {
                let boundaries = boundaries(&stage.plan);
                inputs = vec![self.merged(&tasks, &boundaries)];
            }
        }
        Step { name: format!("stage {}", stage.num), details: details.join(" · "), expected: None, done, inputs }
    }

    /// The operators that tasks ran, each once, with what all of them did; below those that take rows of other stages, these.
    fn merged(&self, tasks: &[(usize, Task)], boundaries: &[Arc<dyn ExecutionPlan>]) -> Step {
        let longest = tasks.iter().max_by_key(|(_, task)| task.steps.len());
        let shape = longest.map(|(_, task)| task.steps.as_slice()).unwrap_or_default();
        let sum = |at: usize| {
            let mut all = Work::default();
            for told in tasks.iter().filter_map(|(_, task)| task.steps.get(at)) {
                let add = |one: Option<u64>, other: Option<u64>| match (one, other) {
                    (Some(one), Some(other)) => Some(one + other),
                    (one, other) => one.or(other),
                };
                all.rows = add(all.rows, told.work.rows);
                all.memory = add(all.memory, told.work.memory);
                all.spilled += told.work.spilled;
                all.time = match (all.time, told.work.time) {
                    (Some(one), Some(other)) => Some(one + other),
                    (one, other) => one.or(other),
                };
            }
            all
        };
        let mut left = boundaries.iter();
        let mut at = 0;
        self.subtree(shape, &mut at, 0, &sum, &mut left)
    }

    fn subtree(
        &self,
        shape: &[Told],
        at: &mut usize,
        depth: usize,
        sum: &dyn Fn(usize) -> Work,
        boundaries: &mut std::slice::Iter<'_, Arc<dyn ExecutionPlan>>,
    ) -> Step {
        let here = *at;
        let told = shape.get(here).cloned().unwrap_or_default();
        *at += 1;
        if told.name.starts_with("Network")
            && let Some(boundary) = boundaries.next()
        {
            return self.step(boundary);
        }
        let mut inputs = Vec::new();
        while shape.get(*at).is_some_and(|next| next.depth > depth) {
            let below = shape.get(*at).map_or(depth + 1, |next| next.depth);
            inputs.push(self.subtree(shape, at, below, sum, boundaries));
        }
        Step { name: told.name, details: told.details, expected: None, done: Some(sum(here)), inputs }
    }

    /// Bytes that went from one process to another.
    fn moved(&self, plan: &Arc<dyn ExecutionPlan>, sum: &mut u64) {
        if let Some(boundary) = plan.as_network_boundary() {
            *sum += told::bytes_of(&plan.metrics().unwrap_or_default());
            if let Stage::Local(stage) = boundary.input_stage() {
                let told = part(&stage.plan).and_then(|part| part.metrics()).map(|metrics| told::heard(&metrics));
                let tasks = told.unwrap_or_default();
                *sum += tasks.values().filter_map(|task| task.steps.first()).map(|first| first.moved).sum::<u64>();
                // What stages below told is counted where their parts are.
                boundaries(&stage.plan).iter().for_each(|boundary| self.moved_below(boundary, sum));
            }
            return;
        }
        plan.children().into_iter().for_each(|child| self.moved(child, sum));
    }

    /// As [`Of::moved`], of a boundary within a stage, whose bytes the stage's tasks have told.
    fn moved_below(&self, plan: &Arc<dyn ExecutionPlan>, sum: &mut u64) {
        let Some(Stage::Local(stage)) = plan.as_network_boundary().map(|boundary| boundary.input_stage().clone())
        else {
            return;
        };
        let told = part(&stage.plan).and_then(|part| part.metrics()).map(|metrics| told::heard(&metrics));
        *sum += told
            .unwrap_or_default()
            .values()
            .filter_map(|task| task.steps.first())
            .map(|first| first.moved)
            .sum::<u64>();
        boundaries(&stage.plan).iter().for_each(|boundary| self.moved_below(boundary, sum));
    }
}

/// The operator of a stage that tells what its tasks did: its root, or what is below the one that divides the rows.
fn part(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    match plan.name() {
        "RepartitionExec" | "BroadcastExec" => plan.children().first().map(|&child| Arc::clone(child)),
        _ => Some(Arc::clone(plan)),
    }
}

/// The boundaries of a stage to those below it, in the order of its operators.
fn boundaries(plan: &Arc<dyn ExecutionPlan>) -> Vec<Arc<dyn ExecutionPlan>> {
    if plan.is_network_boundary() {
        return vec![Arc::clone(plan)];
    }
    plan.children().into_iter().flat_map(boundaries).collect()
}

/// What is told of tasks that had much more to do than others, or took much longer.
fn skew(tasks: &[(usize, Task)], on: &[String]) -> Option<String> {
    let mut walls: Vec<Duration> = tasks.iter().map(|(_, task)| task.wall).collect();
    if walls.len() < 2 {
        return None;
    }
    walls.sort_unstable();
    let middle = *walls.get((walls.len() - 1) / 2)?;
    let (number, slowest) = tasks.iter().max_by_key(|(_, task)| task.wall)?;
    let of = |task: &Task| task.steps.first().and_then(|step| step.work.rows).unwrap_or(0);
    let place = on.get(*number).map(String::as_str).unwrap_or("?");
    let times = slowest.wall.as_secs_f64() / middle.as_secs_f64().max(1e-9);
    let slow = slowest.wall > middle * SLOW && slowest.wall > Duration::from_millis(20);
    Some(match slow {
        true => format!(
            "slow: task {number} on {place} took {} ({times:.1} times the middle one) for {} rows",
            time(slowest.wall),
            of(slowest)
        ),
        false => format!("tasks took {} to {}", time(*walls.first()?), time(slowest.wall)),
    })
}

fn time(time: Duration) -> String {
    plinth_core::units::duration(time)
}

fn bytes(bytes: u64) -> String {
    plinth_core::units::bytes(bytes)
}
