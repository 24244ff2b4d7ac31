//! What an instance of DuckDB keeps between statements: an engine of reads, and the tables that statements named last.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use plinth_core::sync::lock;
use plinth_format::OpenOptions;
use plinth_io::{Io, MemoryBudget};
use plinth_table::Snapshot;

use crate::failure::Result;
use crate::planned::Plans;
use crate::settings::{EngineSettings, Settings};
use crate::table::{Asked, Table};

/// Tables whose files stay open.
const KEPT: usize = 16;

/// What statements share.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    engine: Mutex<Option<(EngineSettings, Io)>>,
    /// The one used last is last.
    tables: Mutex<Vec<(Vec<String>, Snapshot)>>,
    pub(crate) vectors: Arc<Vectors>,
    pub(crate) planned: Arc<Plans>,
}

impl Shelf {
    /// The table that an argument names, as it is now. Of files that are as they were, footers and dictionaries are known already.
    ///
    /// # Errors
    /// If something is not there, is no Plinth file, is damaged, or its columns do not meet those of the others.
    pub(crate) fn open(&self, asked: &Asked, settings: &Settings) -> Result<Table> {
        let options = OpenOptions { io: self.engine(settings.engine), ..OpenOptions::default() };
        let before = lock(&self.tables).iter().find(|(named, _)| *named == asked.named).map(|(_, files)| files.clone());
        let table = Table::open(asked, before.as_ref(), &options)?;
        if let Some(files) = table.files() {
            let mut tables = lock(&self.tables);
            tables.retain(|(named, _)| *named != asked.named);
            tables.push((asked.named.clone(), files.clone()));
            let excess = tables.len().saturating_sub(KEPT);
            tables.drain(..excess);
        }
        Ok(table)
    }

    /// The engine with these settings. Another one takes its place, and what was open for it is opened anew.
    fn engine(&self, settings: EngineSettings) -> Io {
        let mut engine = lock(&self.engine);
        if let Some((known, io)) = &*engine
            && *known == settings
        {
            return io.clone();
        }
        lock(&self.tables).clear();
        let io = Io::new(&MemoryBudget::new(settings.memory), settings.options());
        *engine = Some((settings, io.clone()));
        io
    }

    /// What scans took and handed over since the engine was made, by name.
    pub(crate) fn counters(&self) -> Vec<(&'static str, u64)> {
        let engine = lock(&self.engine).as_ref().map(|(_, io)| io.clone());
        let io = engine.as_ref().map(Io::counters).unwrap_or_default();
        let budget = engine.as_ref().map(|io| (io.budget().limit(), io.budget().used(), io.budget().peak()));
        let (limit, used, peak) = budget.unwrap_or_default();
        vec![
            ("memory_limit", limit),
            ("memory_used", used),
            ("memory_peak", peak),
            ("slabs", io.slabs),
            ("slab_bytes", io.mapped_bytes),
            ("reads", io.extents),
            ("bytes_cached", io.cached_bytes),
            ("bytes_queued", io.queued_bytes),
            ("bytes_direct", io.direct_bytes),
            ("kept_bytes", io.kept_bytes),
            ("kept_hits", io.kept_hits),
            ("rows", self.vectors.rows.load(Ordering::Relaxed)),
            ("vectors", self.vectors.all.load(Ordering::Relaxed)),
            ("vectors_in_buffers", self.vectors.shared.load(Ordering::Relaxed)),
        ]
    }
}

/// What was handed over: rows, vectors of columns whose values have one width, and those of them that point into our buffers.
#[derive(Debug, Default)]
pub(crate) struct Vectors {
    pub(crate) rows: AtomicU64,
    pub(crate) all: AtomicU64,
    pub(crate) shared: AtomicU64,
}

/// What the callbacks of one instance share.
pub(crate) type SharedShelf = Arc<Shelf>;
