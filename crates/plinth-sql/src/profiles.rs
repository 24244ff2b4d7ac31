//! `plinth_profile()`: the profile of the last statement that had one.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use datafusion::catalog::{TableFunctionImpl, TableProvider};
use datafusion::common::{Result, exec_err};
use datafusion::datasource::MemTable;
use datafusion::logical_expr::Expr;
use plinth_core::sync::lock;
use plinth_objects::Traffic;
use plinth_profile::{Part, Profile, Profiler, Row, StoreTraffic};

/// The profile of the last statement that had one.
#[derive(Debug, Default)]
pub(crate) struct Profiles {
    last: Mutex<Option<Arc<Profile>>>,
    /// What had gone to stores when the statement that runs began.
    before: Mutex<Traffic>,
    /// Whether the statement that runs asks for it: then its own is not kept.
    asked: AtomicBool,
}

impl Profiles {
    /// A statement begins.
    pub(crate) fn begin(&self, traffic: Traffic) {
        *lock(&self.before) = traffic;
    }

    /// What a statement's profiler recorded, which is the last one from now on.
    pub(crate) fn keep(&self, profiler: &Profiler, traffic: Traffic) -> Option<Profile> {
        let asked = self.asked.swap(false, Relaxed);
        if !profiler.is_recording() {
            return None;
        }
        let mut profile = profiler.finish();
        profile.stores = of_stores(traffic.since(*lock(&self.before)));
        if !asked {
            *lock(&self.last) = Some(Arc::new(profile.clone()));
        }
        Some(profile)
    }
}

/// What went to stores, as profiles have it; none if nothing did.
pub fn of_stores(traffic: Traffic) -> Option<StoreTraffic> {
    let Traffic { requests, bytes, hedged, resumed, drive_bytes, drive_hits } = traffic;
    let some = traffic != Traffic::default();
    some.then_some(StoreTraffic { requests, bytes, hedged, resumed, drive_bytes, drive_hits })
}

impl TableFunctionImpl for Profiles {
    fn call(&self, arguments: &[Expr]) -> Result<Arc<dyn TableProvider>> {
        if !arguments.is_empty() {
            return exec_err!("plinth_profile() takes no arguments");
        }
        self.asked.store(true, Relaxed);
        let last = lock(&self.last).clone();
        let Some(profile) = last else {
            return exec_err!(
                "plinth_profile(): no statement was profiled yet; SET plinth.profile = true has the next ones"
            );
        };
        let batch = table(&profile)?;
        Ok(Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]])?))
    }
}

/// The rows of a profile, with what no stage covers and what threads had left as the last two.
fn table(profile: &Profile) -> Result<RecordBatch> {
    let rows = profile.table();
    let times = |of: fn(&Row) -> Duration| -> ArrayRef {
        let nanos = rows.iter().map(|row| u64::try_from(of(row).as_nanos()).unwrap_or(u64::MAX));
        Arc::new(UInt64Array::from_iter_values(nanos))
    };
    let counts = |of: fn(&Row) -> u64| -> ArrayRef { Arc::new(UInt64Array::from_iter_values(rows.iter().map(of))) };
    let shares = |of: fn(&Row) -> f64| -> ArrayRef { Arc::new(Float64Array::from_iter_values(rows.iter().map(of))) };
    let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let part = |row: &Row| match row.anchor.part {
        Part::Whole => None,
        Part::Name(name) => Some(name.to_owned()),
        Part::Index(index) => Some(index.to_string()),
    };
    let columns: [(&str, ArrayRef); 15] = [
        ("id", Arc::new(Int64Array::from_iter_values((0..rows.len()).map(number)))),
        ("parent", Arc::new(rows.iter().map(|row| row.parent.map(number)).collect::<Int64Array>())),
        ("depth", Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| number(row.depth))))),
        ("stage", Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.anchor.stage.name())))),
        ("part", Arc::new(rows.iter().map(part).collect::<StringArray>())),
        ("name", Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.name)))),
        ("hits", counts(|row| row.hits)),
        ("rows", counts(|row| row.rows)),
        ("bytes", counts(|row| row.bytes)),
        ("time_ns", times(|row| row.time)),
        ("total_ns", times(|row| row.total)),
        ("cpu_ns", times(|row| row.cpu)),
        ("share", shares(|row| row.share)),
        ("total_share", shares(|row| row.total_share)),
        ("bytes_per_second", Arc::new(rows.iter().map(Row::bytes_per_second).collect::<Float64Array>())),
    ];
    Ok(RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))?)
}
