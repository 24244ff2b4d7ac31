//! Many threads' blocks become one profile.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use plinth_core::sync::lock;

use crate::anchor::{Anchor, Sleeps, Stage};
use crate::block::Block;
use crate::clock::{Clock, Faults};
use crate::profile::{Hardware, Profile, Row, Span, Worker};
use crate::shared::Shared;

/// A path, with what all threads did there.
#[derive(Debug)]
struct Merged {
    anchor: Anchor,
    parent: usize,
    children: Vec<usize>,
    hits: u64,
    rows: u64,
    bytes: u64,
    time: u64,
    total: u64,
    cpu: u64,
    faults: Faults,
}

impl Merged {
    fn new(anchor: Anchor, parent: usize) -> Self {
        let faults = Faults::default();
        Self { anchor, parent, children: Vec::new(), hits: 0, rows: 0, bytes: 0, time: 0, total: 0, cpu: 0, faults }
    }
}

/// All paths, each after the one above it; the first stands above all.
#[derive(Debug)]
struct Tree(Vec<Merged>);

pub(crate) fn merge(shared: &Shared, blocks: &[Arc<Block>]) -> Profile {
    let clock = &shared.clock;
    let finished = clock.ticks();
    let wall = clock.nanoseconds(finished.saturating_sub(shared.started));
    let mut profile = Profile {
        title: shared.title.clone(),
        started_at: Some(shared.started_at),
        wall: Duration::from_nanos(wall),
        threads: shared.threads,
        paused: Duration::from_nanos(clock.nanoseconds(shared.paused.load(Relaxed))),
        faults: clock.process_faults().since(shared.faults),
        detailed: shared.detailed,
        memory: lock(&shared.held).iter().map(|(anchor, (_, most))| (*anchor, *most)).collect(),
        ..Profile::default()
    };
    let mut tree = Tree(vec![Merged::new(Stage::Other.into(), 0)]);
    let names = shared.names();
    let (mut places, mut named, mut own) = (Vec::new(), 0, 0);
    for block in blocks {
        let nodes = tree.add(block, clock, shared.detailed, &names.parts);
        let (time, cpu) = nodes.iter().skip(1).fold((0, 0), |(time, cpu), node| (time + node.time, cpu + node.cpu));
        named += cpu;
        own += block.cpu.get();
        profile.workers.push(Worker {
            name: block.thread.clone(),
            time: Duration::from_nanos(time),
            cpu: Duration::from_nanos(cpu),
        });
        profile.folded += block.folded.get();
        profile.spans_lost += block.spans_lost.get();
        places.push(nodes);
    }
    tree.total();
    let process = clock.process_cpu().zip(shared.cpu).map(|(now, then)| now.saturating_sub(then));
    // What other profilers claimed meanwhile is theirs.
    let claimed = clock.claimed().load(Relaxed).saturating_sub(shared.claimed).saturating_sub(own);
    let cpu = process.map(|process| process.saturating_sub(claimed).max(named));
    profile.cpu = cpu.map(Duration::from_nanos);
    profile.named = Duration::from_nanos(named);
    profile.other = Duration::from_nanos(cpu.map_or(0, |cpu| cpu - named));
    let most = wall.saturating_mul(plinth_core::units::count_of(shared.threads));
    profile.idle = Duration::from_nanos(cpu.map_or(0, |cpu| most.saturating_sub(cpu)));
    let rows = tree.rows(&mut profile, &names.labels);
    for (worker, (block, nodes)) in blocks.iter().zip(&places).enumerate() {
        for span in block.spans() {
            let node = usize::try_from(span.node).ok().and_then(|at| nodes.get(at));
            let Some(row) = node.and_then(|node| rows.get(node.place).copied().flatten()) else { continue };
            let start = clock.nanoseconds(span.start.saturating_sub(shared.started));
            let time = clock.nanoseconds(span.end.unwrap_or(finished).saturating_sub(span.start));
            profile.spans.push(Span {
                worker,
                row,
                start: Duration::from_nanos(start),
                time: Duration::from_nanos(time),
            });
        }
    }
    profile.hardware = hardware(blocks);
    profile
}

#[cfg(feature = "counters")]
fn hardware(blocks: &[Arc<Block>]) -> Hardware {
    crate::counters::sum(blocks.iter().map(|block| &block.counters))
}

#[cfg(not(feature = "counters"))]
fn hardware(_blocks: &[Arc<Block>]) -> Hardware {
    Hardware::NotAsked
}

/// A thread's node: where it went, and what of its times is known only now.
struct Placed {
    place: usize,
    time: u64,
    cpu: u64,
}

impl Tree {
    /// Adds what a thread recorded; says where each of its nodes went.
    fn add(
        &mut self,
        block: &Block,
        clock: &Clock,
        detailed: bool,
        parts: &HashMap<Anchor, Option<Anchor>>,
    ) -> Vec<Placed> {
        let nodes: Vec<_> = (0..block.len()).filter_map(|at| block.node(at)).collect();
        let mut times: Vec<u64> = nodes.iter().map(|node| clock.nanoseconds(node.ticks.get())).collect();
        let sleeps: Vec<Sleeps> = nodes.iter().map(|node| node.anchor().0.stage.sleeps()).collect();
        let cpus = if detailed {
            nodes.iter().map(|node| node.cpu.get()).collect()
        } else {
            shares(&times, &sleeps, block.cpu.get())
        };
        for ((time, sleeps), cpu) in times.iter_mut().zip(sleeps).zip(&cpus) {
            if sleeps == Sleeps::Apart {
                *time = *cpu;
            }
        }
        let mut placed: Vec<Placed> = Vec::with_capacity(nodes.len());
        for (at, (node, (time, cpu))) in nodes.iter().zip(times.into_iter().zip(cpus)).enumerate() {
            let (anchor, above) = node.anchor();
            let above = usize::try_from(above).ok().and_then(|above| placed.get(above)).map_or(0, |above| above.place);
            let place = match at {
                0 => 0,
                _ if parts.contains_key(&anchor) => self.part(anchor, parts),
                _ => self.child(above, anchor),
            };
            placed.push(Placed { place, time, cpu });
            let Some(merged) = self.0.get_mut(place) else { continue };
            merged.hits += node.hits.get();
            merged.rows = merged.rows.saturating_add(node.rows.get());
            merged.bytes = merged.bytes.saturating_add(node.bytes.get());
            merged.time += time;
            merged.cpu += cpu;
            merged.faults.minor += node.minor.get();
            merged.faults.major += node.major.get();
        }
        placed
    }

    /// The place of an anchor of which it was said what it is part of.
    fn part(&mut self, anchor: Anchor, parts: &HashMap<Anchor, Option<Anchor>>) -> usize {
        let path = std::iter::successors(Some(anchor), |anchor| parts.get(anchor).copied().flatten());
        // No longer than there are parts: anchors that are parts of each other come in some order.
        let path: Vec<Anchor> = path.take(parts.len() + 1).collect();
        path.into_iter().rev().fold(0, |above, anchor| self.child(above, anchor))
    }

    fn child(&mut self, above: usize, anchor: Anchor) -> usize {
        let children = self.0.get(above).map(|above| above.children.as_slice()).unwrap_or_default();
        let known = children.iter().copied().find(|at| self.0.get(*at).is_some_and(|child| child.anchor == anchor));
        known.unwrap_or_else(|| {
            let new = self.0.len();
            self.0.push(Merged::new(anchor, above));
            if let Some(above) = self.0.get_mut(above) {
                above.children.push(new);
            }
            new
        })
    }

    /// Adds times up from the leaves, and puts those with the most first.
    fn total(&mut self) {
        for at in (0..self.0.len()).rev() {
            let Some(merged) = self.0.get_mut(at) else { continue };
            merged.total += merged.time;
            let (total, parent) = (merged.total, merged.parent);
            if let Some(parent) = self.0.get_mut(parent).filter(|_| at > 0) {
                parent.total += total;
            }
        }
        let totals: Vec<u64> = self.0.iter().map(|merged| merged.total).collect();
        for merged in &mut self.0 {
            // Those that came first stay first among equals.
            merged.children.sort_by_key(|child| std::cmp::Reverse(totals.get(*child).copied()));
        }
    }

    /// Fills in the rows; says which row each path became.
    fn rows(&self, profile: &mut Profile, labels: &HashMap<Anchor, String>) -> Vec<Option<usize>> {
        let whole =
            self.0.iter().skip(1).map(|merged| Duration::from_nanos(merged.time)).sum::<Duration>() + profile.other;
        let share = |time: u64| match whole.as_secs_f64() {
            0.0 => 0.0,
            whole => Duration::from_nanos(time).as_secs_f64() / whole,
        };
        let mut rows = vec![None; self.0.len()];
        let mut waited = 0;
        let children = |at: usize| self.0.get(at).map(|merged| merged.children.as_slice()).unwrap_or_default();
        let mut todo: Vec<(usize, usize)> = children(0).iter().rev().map(|at| (*at, 0)).collect();
        while let Some((at, depth)) = todo.pop() {
            let Some(merged) = self.0.get(at) else { continue };
            if let Some(row) = rows.get_mut(at) {
                *row = Some(profile.rows.len());
            }
            if matches!(merged.anchor.stage.sleeps(), Sleeps::Sometimes | Sleeps::Mostly) {
                waited += merged.time.saturating_sub(merged.cpu);
            }
            profile.rows.push(Row {
                parent: rows.get(merged.parent).copied().flatten(),
                depth,
                anchor: merged.anchor,
                name: Profile::name_of(merged.anchor, labels),
                hits: merged.hits,
                rows: merged.rows,
                bytes: merged.bytes,
                time: Duration::from_nanos(merged.time),
                total: Duration::from_nanos(merged.total),
                cpu: Duration::from_nanos(merged.cpu),
                faults: merged.faults,
                share: share(merged.time),
                total_share: share(merged.total),
            });
            todo.extend(children(at).iter().rev().map(|child| (*child, depth + 1)));
        }
        profile.waited = Duration::from_nanos(waited);
        rows
    }
}

/// Shares a thread's processor time out to what it did: what never sleeps had it all the while, as far as there is any; what is
/// left went to what sometimes does, and so on. The shares add up to it, unless it exceeds all times together.
fn shares(times: &[u64], sleeps: &[Sleeps], mut cpu: u64) -> Vec<u64> {
    let mut shares = vec![0; times.len()];
    for rank in [Sleeps::Never, Sleeps::Sometimes, Sleeps::Mostly, Sleeps::Always, Sleeps::Apart] {
        let of_rank = || times.iter().zip(sleeps).enumerate().filter(|(_, (_, sleeps))| **sleeps == rank);
        let whole: u64 = of_rank().map(|(_, (time, _))| *time).sum();
        let mut part = Part { to: cpu.min(whole), of: whole, done: 0 };
        cpu -= part.to;
        for (at, (time, _)) in of_rank() {
            if let Some(share) = shares.get_mut(at) {
                *share = part.take(*time);
            }
        }
    }
    shares
}

/// A whole that is handed out in proportion, without a rest.
struct Part {
    to: u64,
    of: u64,
    done: u64,
}

impl Part {
    fn take(&mut self, time: u64) -> u64 {
        let until = |done: u64| match self.of {
            0 => 0,
            of => u64::try_from(u128::from(done) * u128::from(self.to) / u128::from(of)).unwrap_or(u64::MAX),
        };
        let share = until(self.done + time) - until(self.done);
        self.done += time;
        share
    }
}
