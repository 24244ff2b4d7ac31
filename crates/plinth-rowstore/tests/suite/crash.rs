//! Power failures on a simulated disk: at each moment of a history of commits and merges the disk is copied, power fails on the
//! copy, the table is opened (with a second failure while it is), and must hold what was acknowledged, and of the commit under
//! way all or nothing.
//!
//! `PLINTH_CRASH_POINTS` says how many failures to try. A million:
//!
//! ```text
//! PLINTH_CRASH_POINTS=1000000 cargo test --release -p plinth-rowstore --test suite crash -- --nocapture
//! ```

use std::time::Duration;

use super::model::step;
use super::*;

/// When something was acknowledged, and what the table held then.
struct Acknowledged {
    /// Changes of the disk by then.
    moment: usize,
    model: Model,
}

/// A history: the disk that watched it, and what was acknowledged when. The first is the empty table.
fn history(seed: u64, options: &TableOptions) -> (SimDisk, Vec<Acknowledged>) {
    let (disk, storage) = disk(seed);
    let mut table = Table::create_in(&storage, &schema(), &["id"], options.clone()).unwrap();
    disk.watch();
    let (mut random, mut model) = (Random(seed), Model::new());
    let mut history = vec![Acknowledged { moment: 0, model: model.clone() }];
    for _ in 0..25 {
        step(&table, &mut model, &mut random).unwrap();
        if random.below(5) == 0 {
            change_index(&table, &mut random).unwrap();
        }
        history.push(Acknowledged { moment: disk.moments(), model: model.clone() });
        if random.below(12) == 0 {
            if random.below(2) == 0 {
                table.close().unwrap();
            } else {
                // As a killed process leaves it.
                std::mem::forget(table);
            }
            table = Table::open_in(&storage, options.clone()).unwrap();
        }
    }
    (disk, history)
}

/// Creates an index, or takes it away.
fn change_index(table: &Table, random: &mut Random) -> Result<()> {
    let (name, columns) = super::indexes::INDEXES[usize::try_from(random.below(5)).unwrap()];
    let there = table.snapshot().indexes().iter().any(|index| index.name == name);
    if there { table.drop_index(name) } else { table.create_index(name, columns, false) }
}

/// Fails power at one moment, perhaps a second time while the table is opened, and checks what is there.
fn fails(
    disk: &SimDisk,
    history: &[Acknowledged],
    moment: usize,
    seed: u64,
    options: &TableOptions,
    least: usize,
) -> usize {
    let failed = disk.moment(moment, seed).unwrap();
    failed.crash();
    let mut random = Random(seed ^ 0x5555);
    let opened = |disk: &SimDisk| {
        let storage: Arc<dyn Storage> = Arc::new(disk.clone());
        Table::open_in(&storage, options.clone())
    };
    if random.below(2) == 0 {
        // It fails again while what is left is put in order.
        let again = failed.copy(seed + 1);
        let operations = 1 + random.below(40);
        again.set_faults(Faults { at_once: 100, vanishing: Some(operations), ..Faults::default() });
        drop(opened(&again));
        again.crash();
        let table = opened(&again).unwrap();
        let found = check(&table, history, moment, seed, least);
        drop(table);
        if random.below(8) == 0 {
            // Trees are what they would be if they were built now.
            let storage: Arc<dyn Storage> = Arc::new(again);
            let problems = Table::verify_in(&storage, options).unwrap().problems;
            assert!(problems.is_empty(), "seed {seed}, moment {moment}: {problems:?}");
        }
        return found;
    }
    let without = failed.copy(seed);
    let table = opened(&failed).unwrap_or_else(|e| panic!("seed {seed}, moment {moment}: {e}"));
    let found = check(&table, history, moment, seed, least);
    if random.below(3) == 0 {
        // What a crash has left is told from a file that is gone: one that was not named yet has nothing.
        let newest = newest_log(&without);
        Storage::remove(&without, &newest).unwrap();
        match opened(&without) {
            Ok(table) => assert_eq!(scan(&table).unwrap(), history[found].model, "seed {seed}, moment {moment}"),
            Err(error) => assert!(error.to_string().contains(&newest), "seed {seed}, moment {moment}: {error}"),
        }
    }
    if random.below(4) == 0 {
        // And goes on as if nothing had been.
        let mut model = scan(&table).unwrap();
        (0..3).for_each(|_| step(&table, &mut model, &mut random).unwrap());
        assert_eq!(scan(&table).unwrap(), model);
    }
    found
}

/// Which of the acknowledged states is there: the last by that moment, or the next one; or one from `least` on.
fn check(table: &Table, history: &[Acknowledged], moment: usize, seed: u64, least: usize) -> usize {
    let last = history.iter().rposition(|known| known.moment <= moment).unwrap();
    let found = scan(table).unwrap_or_else(|e| panic!("seed {seed}, moment {moment}: {e}"));
    super::indexes::check(&table.snapshot(), &found, &mut Random(seed));
    let candidates = (last.saturating_sub(least)..=last + 1).rev();
    let state = candidates.clone().find(|&i| history.get(i).is_some_and(|known| known.model == found));
    state.unwrap_or_else(|| panic!("seed {seed}, moment {moment}: none of the states {candidates:?} but {found:?}"))
}

fn points() -> usize {
    usize::try_from(trials("PLINTH_CRASH_POINTS", 20_000)).unwrap()
}

#[test]
fn what_was_acknowledged_survives_and_all_else_is_whole_or_absent() {
    let (points, threads) = (points(), 2);
    let run = |thread: u64| {
        let (mut tried, mut seed, mut kept) = (0, thread, 0);
        while tried < points / 2 {
            // In every third history segments have trees of their keys in the place of filters.
            let filter_bytes = if seed % 3 == 0 { 0 } else { small().filter_bytes };
            let options = TableOptions { filter_bytes, ..small() };
            let (disk, history) = history(seed, &options);
            for moment in 0..disk.moments() {
                for variant in 0..4 {
                    let last = history.iter().rposition(|known| known.moment <= moment).unwrap();
                    let found = fails(&disk, &history, moment, seed * 1000 + variant, &options, 0);
                    kept += usize::from(found > last && history[found].model != history[last].model);
                    tried += 1;
                }
            }
            seed += threads;
        }
        assert!(kept > 0, "some commit is there before it is acknowledged");
        tried
    };
    let tried: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    println!("{tried} power failures");
}

#[test]
fn commits_that_are_not_waited_for_go_in_order_and_whole() {
    let options = TableOptions { durability: Durability::None, ..small() };
    let mut lost = 0;
    for seed in 0..20 {
        let (disk, history) = history(seed, &options);
        for moment in (0..disk.moments()).step_by(3) {
            let last = history.iter().rposition(|known| known.moment <= moment).unwrap();
            lost += usize::from(fails(&disk, &history, moment, seed, &options, 30) < last);
        }
    }
    assert!(lost > 20, "{lost}");
    let bounded = TableOptions { durability: Durability::Group(Duration::from_millis(1)), ..small() };
    let (disk, storage) = disk(1);
    let table = Table::create_in(&storage, &schema(), &["id"], bounded.clone()).unwrap();
    table.insert(&one(1, 1)).unwrap();
    // The table syncs by itself; here it is only waited for.
    let synced = (0..10_000).any(|i| {
        std::thread::sleep(Duration::from_millis(1));
        let failed = disk.copy(i);
        failed.crash();
        let storage: Arc<dyn Storage> = Arc::new(failed);
        scan(&Table::open_in(&storage, small()).unwrap()).unwrap().len() == 1
            && (0..8).all(|j| {
                let failed = disk.copy(j);
                failed.crash();
                let storage: Arc<dyn Storage> = Arc::new(failed);
                scan(&Table::open_in(&storage, small()).unwrap()).unwrap().len() == 1
            })
    });
    assert!(synced);
}

#[test]
fn a_table_is_created_whole_or_can_be_created_again() {
    let (disk, storage) = disk(1);
    disk.watch();
    drop(Table::create_in(&storage, &schema(), &["id"], small()).unwrap());
    let mut whole = 0;
    for moment in 0..disk.moments() {
        for seed in 0..50 {
            let failed = disk.moment(moment, seed).unwrap();
            failed.crash();
            let storage: Arc<dyn Storage> = Arc::new(failed);
            match Table::open_in(&storage, small()) {
                Ok(table) => {
                    whole += 1;
                    assert!(scan(&table).unwrap().is_empty());
                }
                Err(_) => match Table::create_in(&storage, &schema(), &["id"], small()) {
                    Ok(table) => assert!(scan(&table).unwrap().is_empty()),
                    Err(error) => assert!(error.to_string().contains("both slots are damaged"), "{error}"),
                },
            }
        }
    }
    assert!(whole > 50);
}

/// One operation after the other fails; the table says so, and nothing that it acknowledged is lost.
fn one_fails(failing: u64, faults: impl Fn(u64) -> Faults, crash: bool) -> bool {
    let (disk, storage) = disk(failing);
    let table = Table::create_in(&storage, &schema(), &["id"], small()).unwrap();
    let (mut random, mut model) = (Random(failing % 7), Model::new());
    disk.set_faults(faults(disk.counters().operations + failing));
    let mut tried = Vec::new();
    let mut failed = false;
    for _ in 0..25 {
        let mut after = model.clone();
        let done = step(&table, &mut after, &mut random.clone());
        // What was tried, by a table that nothing happens to.
        step_of(&model, &mut random, &mut tried);
        match done {
            Ok(()) => model = after,
            Err(_) => {
                failed = true;
                break;
            }
        }
    }
    if failed {
        // Readers read on.
        disk.set_faults(Faults { at_once: 100, ..Faults::default() });
        assert_eq!(scan(&table).unwrap(), model);
    }
    drop(table);
    disk.set_faults(Faults { at_once: 100, ..Faults::default() });
    if crash {
        disk.crash();
    }
    let found = scan(&Table::open_in(&storage, small()).unwrap()).unwrap();
    assert!(found == model || (failed && tried.last() == Some(&found)), "operation {failing}");
    failed
}

/// What a step makes of a model.
fn step_of(model: &Model, random: &mut Random, after: &mut Vec<Model>) {
    let (_, storage) = disk(0);
    let table = Table::create_in(&storage, &schema(), &["id"], small()).unwrap();
    if !model.is_empty() {
        table.insert(&batch(model)).unwrap();
    }
    let mut model = model.clone();
    step(&table, &mut model, random).unwrap();
    after.push(model);
}

#[test]
fn errors_of_the_device_lose_nothing_that_was_acknowledged() {
    let mut failures = 0;
    for failing in 0..160 {
        for crash in [false, true] {
            let faults = |operation| Faults { at_once: 100, failing: Some(operation), ..Faults::default() };
            failures += u64::from(one_fails(failing, faults, crash));
        }
    }
    assert!(failures > 150, "{failures}");
}

#[test]
fn a_full_device_loses_nothing_that_was_acknowledged() {
    let mut failures = 0;
    for space in 0..60 {
        for crash in [false, true] {
            let faults = |_| Faults { at_once: 100, space: Some(16_000 + space * 2_000), ..Faults::default() };
            failures += u64::from(one_fails(space, faults, crash));
        }
    }
    assert!(failures > 30, "{failures}");
}

#[test]
fn after_a_failed_sync_no_commit_is_taken() {
    let (disk, storage) = disk(3);
    let table = Table::create_in(&storage, &schema(), &["id"], small()).unwrap();
    table.insert(&one(1, 1)).unwrap();
    // A commit writes, and then syncs.
    let sync = disk.counters().operations + 1;
    disk.set_faults(Faults { at_once: 100, failing: Some(sync), ..Faults::default() });
    let error = table.insert(&one(2, 2)).unwrap_err().to_string();
    assert!(error.starts_with("no more commits are taken since a write failed: _log-000002: cannot sync"), "{error}");
    for _ in 0..3 {
        assert_eq!(table.insert(&one(3, 3)).unwrap_err().to_string(), error);
        assert!(table.merge().is_err() && table.sync().is_err());
    }
    assert_eq!(scan(&table).unwrap().len(), 1, "reading goes on");
    assert!(table.close().is_err());
    let table = Table::open_in(&storage, small()).unwrap();
    table.insert(&one(3, 3)).unwrap();
}
