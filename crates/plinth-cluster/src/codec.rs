//! Scans of Plinth files as messages, and back.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use arrow_schema::Schema;
use datafusion::common::{DataFusionError, Result, Statistics, exec_err, internal_datafusion_err, internal_err};
use datafusion::datasource::memory::DataSourceExec;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::projection::ProjectionExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{
    PhysicalExtensionCodec, PhysicalPlanDecodeContext, PhysicalProtoConverterExtension,
};
use datafusion_proto::protobuf::FileScanExecConf;
use plinth_core::sync::lock;
use plinth_datafusion::{Piece, Shipped};
use plinth_format::{File, OpenOptions, PushdownMode};
use prost::Message;

use crate::reach::Reach;
use crate::whole::WholeExec;
use crate::wire;

/// Files that a worker keeps open at most.
const OPEN: usize = 4096;

/// Makes messages of scans and, where files can be opened, scans of messages.
#[derive(Clone)]
pub(crate) struct Codec(Option<Arc<Files>>);

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Codec")
    }
}

impl Codec {
    /// One that makes messages.
    pub(crate) fn sending() -> Self {
        Self(None)
    }

    /// One that makes scans of messages, of files that may be read.
    pub(crate) fn receiving(options: OpenOptions, reach: Reach) -> Self {
        Self(Some(Arc::new(Files { options, reach, open: Mutex::default() })))
    }

    fn scan(
        &self,
        scan: wire::Scan,
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(files) = &self.0 else { return internal_err!("no scan is to come here") };
        let base = scan.base.unwrap_or_default();
        let missing = |what: &str| internal_datafusion_err!("a scan without {what}");
        let schema: Schema = base.schema.as_ref().ok_or_else(|| missing("columns"))?.try_into()?;
        let statistics: Statistics = base.statistics.as_ref().ok_or_else(|| missing("statistics"))?.try_into()?;
        let decoding = PhysicalPlanDecodeContext::new(context, self);
        let expr = |expr: &_| converter.proto_to_physical_expr(expr, &schema, &decoding);
        let output = |output: &wire::Output| {
            let found = output.expr.as_ref().ok_or_else(|| missing("a column"))?;
            Ok(ProjectionExpr::new(expr(found)?, output.alias.clone()))
        };
        let projection = scan.projection.iter().map(output).collect::<Result<Vec<_>>>()?;
        let owned = scan.owned.iter().map(expr).collect::<Result<Vec<_>>>()?;
        let opened = scan.files.iter().map(|file| files.open(file)).collect::<Result<Vec<_>>>()?;
        let piece = |piece: &wire::Piece| {
            let at = usize::try_from(piece.file).unwrap_or(usize::MAX);
            let (Some(file), Some(named)) = (opened.get(at), scan.files.get(at)) else {
                return internal_err!("a scan has no file of number {at}");
            };
            let range = piece.start.zip(piece.end);
            if range.is_some_and(|(start, end)| start < 0 || end < start) {
                return internal_err!("a scan of bytes {range:?}");
            }
            Ok(Piece::new(file.clone(), named.name.clone(), range))
        };
        let group = |group: &wire::Group| group.pieces.iter().map(piece).collect::<Result<Vec<_>>>();
        let groups = scan.groups.iter().map(group).collect::<Result<Vec<_>>>()?;
        let count = |count: Option<u64>| count.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        let shipped = Shipped {
            table: TableSchema::from(Arc::new(schema)),
            projection,
            owned,
            pushdown: mode(&scan.pushdown)?,
            batch_size: count(scan.batch_size),
            limit: count(scan.limit),
            statistics,
        };
        Ok(shipped.scan(groups))
    }
}

fn mode(name: &str) -> Result<PushdownMode> {
    let all = [PushdownMode::Auto, PushdownMode::AfterDecode, PushdownMode::Interleaved, PushdownMode::FilterFirst];
    let found = all.into_iter().find(|mode| mode.to_string() == name);
    found.ok_or_else(|| internal_datafusion_err!("{name:?} is no way to push filters down"))
}

impl PhysicalExtensionCodec for Codec {
    fn try_decode(
        &self,
        message: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let node = wire::Node::decode(message).map_err(|e| internal_datafusion_err!("a node that is none: {e}"))?;
        match (node.kind, inputs) {
            (Some(wire::Kind::Scan(scan)), []) => self.scan(*scan, context, converter),
            (Some(wire::Kind::Whole(_)), [input]) => Ok(Arc::new(WholeExec::new(Arc::clone(input)))),
            (kind, _) => internal_err!("a node of no known kind, with {} inputs: {}", inputs.len(), kind.is_some()),
        }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        message: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let kind = if node.is::<WholeExec>() {
            wire::Kind::Whole(wire::Whole {})
        } else {
            let scan = node.downcast_ref::<DataSourceExec>();
            let config = scan.and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>());
            let Some(config) = config else { return exec_err!("{} runs where it is planned", node.name()) };
            wire::Kind::Scan(Box::new(message_of(config, self, converter)?))
        };
        wire::Node { kind: Some(kind) }.encode(message).map_err(|e| internal_datafusion_err!("{e}"))
    }
}

/// The message of a scan.
fn message_of(
    config: &FileScanConfig,
    codec: &Codec,
    converter: &dyn PhysicalProtoConverterExtension,
) -> Result<wire::Scan> {
    let (shipped, groups) = Shipped::of(config).map_err(DataFusionError::Execution)?;
    let expr = |expr: &Arc<_>| converter.physical_expr_to_proto(expr, codec);
    let output =
        |output: &ProjectionExpr| Ok(wire::Output { expr: Some(expr(&output.expr)?), alias: output.alias.clone() });
    let (mut files, mut numbers) = (Vec::new(), HashMap::new());
    let mut piece = |piece: &Piece| {
        let next = u32::try_from(files.len()).unwrap_or(u32::MAX);
        let file = *numbers.entry(piece.name.clone()).or_insert_with(|| {
            let (len, fingerprint) = (piece.file.byte_len(), piece.file.fingerprint());
            files.push(wire::File { name: piece.name.clone(), len, fingerprint });
            next
        });
        wire::Piece { file, start: piece.range.map(|range| range.0), end: piece.range.map(|range| range.1) }
    };
    let groups = groups.iter().map(|group| wire::Group { pieces: group.iter().map(&mut piece).collect() }).collect();
    let base = FileScanExecConf {
        schema: Some(shipped.table.file_schema().as_ref().try_into()?),
        statistics: Some((&shipped.statistics).into()),
        ..FileScanExecConf::default()
    };
    Ok(wire::Scan {
        base: Some(base),
        projection: shipped.projection.iter().map(output).collect::<Result<_>>()?,
        owned: shipped.owned.iter().map(expr).collect::<Result<_>>()?,
        pushdown: shipped.pushdown.to_string(),
        batch_size: shipped.batch_size.map(|rows| rows as u64),
        limit: shipped.limit.map(|rows| rows as u64),
        files,
        groups,
    })
}

/// Files that stay open, so that footers and dictionaries are read once.
struct Files {
    options: OpenOptions,
    reach: Reach,
    open: Mutex<HashMap<(String, u64), File>>,
}

impl Files {
    /// The file that was meant: the one of its name, if it has the bytes that were seen where the query was planned.
    fn open(&self, wanted: &wire::File) -> Result<File> {
        self.reach.check(&wanted.name)?;
        let key = (wanted.name.clone(), wanted.fingerprint);
        if let Some(file) = lock(&self.open).get(&key) {
            return Ok(file.clone());
        }
        // It may wait for a store, which other tasks of this thread should not.
        let file = waiting(|| File::open_with(&wanted.name, &self.options));
        let file = file.map_err(plinth_datafusion::from_format)?;
        if file.byte_len() != wanted.len || file.fingerprint() != wanted.fingerprint {
            return exec_err!(
                "{}: is another file on this worker than where the query was planned; it may have been replaced: run the query again",
                wanted.name
            );
        }
        let mut open = lock(&self.open);
        if open.len() >= OPEN {
            open.clear();
        }
        open.insert(key, file.clone());
        Ok(file)
    }
}

/// Does what may wait, without keeping other tasks from their thread where that can be helped.
fn waiting<T>(work: impl FnOnce() -> T) -> T {
    use tokio::runtime::{Handle, RuntimeFlavor};
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
