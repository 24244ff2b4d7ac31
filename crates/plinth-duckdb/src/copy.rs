//! `COPY ... TO 'x.plinth'`, and the registration of both ways of COPY.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Decimal128Type;
use arrow_schema::Schema;
use duckdb_neo::column_data_collection::ColumnDataCollection;
use duckdb_neo::connection::Context;
use duckdb_neo::copy_function::{CopyFunctionBuilder, CopyToBindInfo, CopyToFunctionCallbacks};
use duckdb_neo::extension::Extension;
use duckdb_neo::logical_type::{LogicalType, LogicalTypeID};
use duckdb_neo::value::Value;
use plinth_core::sync::lock;
use plinth_encoding::Effort;
use plinth_format::{Writer, WriterOptions};

use crate::failure::{Result, guarded, of_arrow, of_format, refused};
use crate::function;
use crate::handover::Taken;
use crate::shelf::SharedShelf;

/// Rows that DuckDB gathers before they are handed over: those of a row group.
const ROWS: usize = 131_072;

/// The format `plinth` of COPY.
pub(crate) struct PlinthFormat {
    pub(crate) shelf: SharedShelf,
}

/// What a file is made of.
pub(crate) struct Bound {
    columns: Vec<(String, LogicalType)>,
    schema: Schema,
    options: WriterOptions,
}

impl Bound {
    fn columns(&self) -> Vec<(&str, LogicalType)> {
        self.columns.iter().map(|(name, column_type)| (name.as_str(), column_type.clone())).collect()
    }
}

impl CopyToFunctionCallbacks for PlinthFormat {
    /// None once it is finished.
    type InitData = Mutex<Option<Writer>>;
    type BindData = Bound;
    type BatchData = Vec<RecordBatch>;

    fn bind(&self, context: &Context, info: &CopyToBindInfo) -> Result<Bound> {
        guarded(|| {
            let columns = (0..info.column_count()?)
                .map(|at| info.get_column(at).map(|(name, column_type)| (name.to_owned(), column_type)))
                .collect::<Result<Vec<_>>>()?;
            for (name, column_type) in &columns {
                check(name, column_type)?;
            }
            let options = WriterOptions { threads: function::threads(context)?, ..options(info.options()?)? };
            let mut bound = Bound { columns, schema: Schema::empty(), options };
            let schema = Taken::new(context, &bound.columns())?.schema().clone();
            bound.schema = schema;
            Ok(bound)
        })
    }

    fn init(&self, _: &Context, bound: &Bound, file_path: &str) -> Result<Self::InitData> {
        guarded(|| {
            let writer = Writer::create(file_path, &bound.schema, bound.options.clone()).map_err(of_format)?;
            Ok(Mutex::new(Some(writer)))
        })
    }

    fn batch_size(&self, _: &Context, _: &Bound) -> Result<Option<NonZeroUsize>> {
        Ok(NonZeroUsize::new(ROWS))
    }

    fn batch(
        &self,
        context: &Context,
        bound: &Bound,
        _: &Self::InitData,
        input: &ColumnDataCollection<'_>,
    ) -> Result<Vec<RecordBatch>> {
        guarded(|| {
            let mut batches = Vec::new();
            let columns = bound.columns();
            let mut taken = Taken::new(context, &columns)?;
            let mut chunks = input.to_scan(context)?;
            let mut keep = |batch: RecordBatch| {
                of_its_digits(&bound.columns, &batch)?;
                batches.push(batch);
                Ok(())
            };
            while let Some(chunk) = chunks.next_chunk()? {
                taken.append(&chunk, &mut keep)?;
            }
            taken.finish(&mut keep)?;
            Ok(batches)
        })
    }

    fn flush(
        &self,
        _: &Context,
        _: &Bound,
        writer: &Self::InitData,
        _: &ColumnDataCollection<'_>,
        batches: &mut Vec<RecordBatch>,
    ) -> Result<()> {
        guarded(|| {
            let mut writer = lock(writer);
            let writer = writer.as_mut().ok_or_else(|| of_arrow("rows for a file that is finished"))?;
            batches.drain(..).try_for_each(|batch| writer.write(&batch).map_err(of_format))
        })
    }

    fn finalize(&self, _: &Context, _: &Bound, writer: &Self::InitData) -> Result<()> {
        guarded(|| {
            let writer = lock(writer).take().ok_or_else(|| of_arrow("a file that is finished twice"))?;
            writer.finish().map(|_| ()).map_err(of_format)
        })
    }
}

/// Refuses types of which Arrow, or a file, would have other values.
fn check(name: &str, column_type: &LogicalType) -> Result<()> {
    let id = column_type.id()?;
    let exact = !matches!(
        id,
        LogicalTypeID::UHugeInt
            | LogicalTypeID::TimeTz
            | LogicalTypeID::Bit
            | LogicalTypeID::BigNum
            | LogicalTypeID::Union
            | LogicalTypeID::Variant
            | LogicalTypeID::Geometry
    );
    if !exact {
        return Err(refused(format!("column {name:?}: a Plinth file has no {column_type}; cast it to VARCHAR")));
    }
    for (_, parameter) in column_type.get_params()? {
        if let Ok(Some(inner)) = parameter.get::<LogicalType>() {
            check(name, &inner)?;
        }
    }
    Ok(())
}

/// HUGEINT travels as decimals of 38 digits, which not all of its values have.
fn of_its_digits(columns: &[(String, LogicalType)], batch: &RecordBatch) -> Result<()> {
    for ((name, column_type), array) in columns.iter().zip(batch.columns()) {
        if column_type.id()? == LogicalTypeID::HugeInt
            && let Some(wide) = array.as_primitive_opt::<Decimal128Type>()
            && wide.validate_decimal_precision(38).is_err()
        {
            return Err(refused(format!(
                "column {name:?}: a HUGEINT has 39 digits, a Plinth file's integers 38; cast it to VARCHAR"
            )));
        }
    }
    Ok(())
}

fn options(given: HashMap<String, Value>) -> Result<WriterOptions> {
    let mut options = WriterOptions { replace: true, ..WriterOptions::default() };
    for (name, value) in given {
        let single = |value: &Value| match value.logical_type()?.id()? {
            LogicalTypeID::List if value.child_count()? == 1 => Ok(value.get_child(0)?.to_string()),
            _ => Ok(value.to_string()),
        };
        match name.to_lowercase().as_str() {
            "effort" => {
                options.effort = match single(&value)?.to_lowercase().as_str() {
                    "plain" => Effort::Plain,
                    "fast" => Effort::Fast,
                    "balanced" => Effort::Balanced,
                    "compact" => Effort::Compact,
                    other => return Err(refused(format!("EFFORT {other}: it is plain, fast, balanced or compact"))),
                };
            }
            _ => {
                return Err(refused(format!(
                    "COPY to a Plinth file has no option {}; it has EFFORT",
                    name.to_uppercase()
                )));
            }
        }
    }
    Ok(options)
}

/// Makes the format known to COPY, by its name and by the end of a file's.
///
/// # Errors
/// If DuckDB refuses.
pub(crate) fn register(extension: &Extension, shelf: &SharedShelf) -> Result<()> {
    CopyFunctionBuilder::new("plinth", PlinthFormat { shelf: Arc::clone(shelf) })
        .with_fallback_extension(plinth_table::EXTENSION)
        .with_progress()
        .register_to_and_from(extension)
}
